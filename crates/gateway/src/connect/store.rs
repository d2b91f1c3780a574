//! Where tokens are kept: sealed, in the registry.

use oauth::{BoxFuture, Connection, Store, StoreError, Tokens};
use registry::{Actor, Registry, RegistryError};

pub struct RegistryStore(pub Registry);

/// The subject of a connection that a tenant's callers share. Those of users begin otherwise.
const SHARED: &str = "tenant";
const USER: &str = "user:";

pub fn kept_as(subject: &str) -> String {
    if subject.is_empty() { SHARED.to_owned() } else { format!("{USER}{subject}") }
}

/// Whose it is; `None` for one that all share.
pub fn subject_of(kept: &str) -> Option<&str> {
    kept.strip_prefix(USER)
}

fn host() -> Actor {
    Actor("host".to_owned())
}

impl RegistryStore {
    /// On a thread that may wait for the disk.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Registry) -> Result<T, RegistryError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let registry = self.0.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&registry)).await;
            done.map_err(|error| StoreError(error.to_string()))?.map_err(|error| StoreError(error.to_string()))
        })
    }
}

impl Store for RegistryStore {
    fn load<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<Option<Tokens>, StoreError>> {
        // It lies in memory, sealed.
        let found = self.0.connection(&connection.tenant, &connection.provider, &kept_as(&connection.subject));
        let read = found.map_err(|error| StoreError(error.to_string())).and_then(|found| {
            let tokens = found.map(|(sealed, _)| Tokens::from_secret(&sealed));
            tokens.transpose().map_err(|error| StoreError(error.to_string()))
        });
        Box::pin(std::future::ready(read))
    }

    fn save<'a>(&'a self, connection: &'a Connection, tokens: &'a Tokens) -> BoxFuture<'a, Result<(), StoreError>> {
        let (sealed, expires_at) = (tokens.to_secret(), tokens.expires_at);
        let Connection { tenant, provider, subject } = connection.clone();
        self.run(move |registry| {
            registry.set_connection(&host(), &tenant, &provider, &kept_as(&subject), sealed, expires_at).map(drop)
        })
    }

    fn remove<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<(), StoreError>> {
        let Connection { tenant, provider, subject } = connection.clone();
        self.run(move |registry| match registry.remove_connection(&host(), &tenant, &provider, &kept_as(&subject)) {
            Err(error) if error.code() == "not_found" => Ok(()),
            done => done,
        })
    }
}

//! What a keeper needs of its host: a place for tokens, and the time.

use super::StoreError;
use crate::error::Error;
use crate::http::BoxFuture;
use crate::provider::{Grant, Per, Provider};
use crate::tokens::Tokens;
use std::time::{SystemTime, UNIX_EPOCH};

/// Whose tokens, for which provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    pub tenant: String,
    pub provider: String,
    /// Empty for the tenant's one, which is nobody's own. No user has an empty name, so the two never meet.
    pub subject: String,
}

impl Connection {
    /// The one that a call of this subject uses.
    pub fn new(tenant: &str, provider_name: &str, provider: &Provider, subject: &str) -> Result<Connection, Error> {
        let subject = match (provider.grant, provider.per) {
            (Grant::ClientCredentials, _) | (Grant::Code, Per::Tenant) => "",
            (Grant::Code, Per::User) if subject.is_empty() => return Err(Error::NoSubject),
            (Grant::Code, Per::User) => subject,
        };
        Ok(Connection { tenant: tenant.into(), provider: provider_name.into(), subject: subject.into() })
    }
}

/// Where tokens are kept, sealed: [`Tokens::to_secret`] and [`Tokens::from_secret`] are for that.
pub trait Store: Send + Sync + 'static {
    fn load<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<Option<Tokens>, StoreError>>;
    fn save<'a>(&'a self, connection: &'a Connection, tokens: &'a Tokens) -> BoxFuture<'a, Result<(), StoreError>>;
    /// What is not there is removed already.
    fn remove<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<(), StoreError>>;
}

pub trait Clock: Send + Sync + 'static {
    /// Seconds since 1970.
    fn now(&self) -> u64;
}

pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}

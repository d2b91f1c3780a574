//! A host with a master key, and ways to look at what it leaves on the disk.

use crate::common::{Fresh, actor, fresh};
use registry::{MasterKey, Registry, RegistryError};
use secrecy::{ExposeSecret, SecretString};
use std::path::Path;

/// The same for the same number.
pub fn master(number: u64) -> MasterKey {
    let mut bytes: [u8; 32] = std::array::from_fn(|place| place as u8);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    MasterKey::from_bytes(&bytes).unwrap()
}

/// A host with master key 1 and the tenants `acme` and `other`.
pub fn unlocked() -> Fresh {
    let host = fresh();
    host.registry.unlock(master(1)).unwrap();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    host.registry.create_tenant(&actor(), "other").unwrap();
    host
}

pub fn value(text: &str) -> SecretString {
    SecretString::from(text)
}

pub fn set(registry: &Registry, tenant: &str, name: &str, text: &str) {
    registry.set_secret(&actor(), tenant, name, value(text)).unwrap();
}

/// What a secret is, or the code of the error.
pub fn get(registry: &Registry, tenant: &str, name: &str) -> Result<Option<String>, &'static str> {
    let text = |secret: registry::Secret| secret.value.expose_secret().to_owned();
    registry.secret(tenant, name).map(|secret| secret.map(text)).map_err(|error| error.code())
}

pub fn tokens(
    registry: &Registry,
    tenant: &str,
    provider: &str,
    subject: &str,
) -> Result<Option<String>, &'static str> {
    let found = registry.connection(tenant, provider, subject);
    found.map(|found| found.map(|(tokens, _)| tokens.expose_secret().to_owned())).map_err(|error| error.code())
}

pub fn code<T>(result: Result<T, RegistryError>) -> &'static str {
    result.err().map_or("ok", |error| error.code())
}

/// Works on the database behind the host's back.
pub fn database(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("bulkhead.db")).unwrap()
}

pub fn blob(dir: &Path, query: &str) -> Vec<u8> {
    database(dir).query_row(query, [], |row| row.get(0)).unwrap()
}

/// The files of a data directory that have these bytes in them, as they are or as hexadecimal digits.
pub fn files_with(dir: &Path, bytes: &[u8]) -> Vec<String> {
    let hex = hex::encode(bytes);
    let (mut unseen, mut found, mut seen) = (vec![dir.to_owned()], Vec::new(), 0);
    while let Some(path) = unseen.pop() {
        if path.is_dir() {
            unseen.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let content = std::fs::read(&path).unwrap();
        if [bytes, hex.as_bytes()].iter().any(|needle| memchr::memmem::find(&content, needle).is_some()) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
        seen += 1;
    }
    assert!(seen >= 3, "there must be something to look at: {seen}");
    found
}

//! Secrets of tenants.

use crate::seal;
use crate::vault::{self, Item, SEALED, Sealed};
use crate::{Actor, Registry, RegistryError, SecretInfo};
use bundle::SecretName;
use rusqlite::{Connection, Transaction};
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::sync::Arc;

const MOST_SECRETS: usize = 256;
/// Masking shows code that a guess of the whole value is right, so shorter ones could be guessed. `egress` refuses them too.
const SHORTEST_VALUE: usize = 12;
const SHORTEST_CLIENT_SECRET: usize = 6;
const LONGEST_VALUE: usize = 16 << 10;

impl Registry {
    /// Seals a value under a name, new or again. It is used from the next call on.
    pub fn set_secret(
        &self,
        actor: &Actor,
        tenant: &str,
        name: &str,
        value: SecretString,
    ) -> Result<SecretInfo, RegistryError> {
        check_name(name)?;
        check_value("a secret", SHORTEST_VALUE, &value)?;
        self.change(|transaction, directory| {
            let (mut vault, key) = vault::to_change(transaction, directory, tenant)?;
            let before = vault.secrets.get(name);
            if before.is_none() {
                vault::check_room(vault.secrets.len(), MOST_SECRETS, "secrets")?;
            }
            let value = value.expose_secret().as_bytes();
            let secret = vault.seal(&key, Item::Secret { name }, before.map(|before| &**before), value)?;
            save(transaction, tenant, name, &secret)?;
            let info = info(name, &secret);
            vault.secrets.insert(name.to_owned(), Arc::new(secret));
            let detail = serde_json::json!({ "version": info.version });
            Ok(vault.changed(actor, "secret.set", name, Some(detail), info))
        })
    }

    /// What secrets a tenant has, by name.
    pub fn secrets(&self, tenant: &str) -> Result<Vec<SecretInfo>, RegistryError> {
        let directory = self.directory();
        let secrets = directory.vault(tenant)?.into_iter().flat_map(|vault| &vault.secrets);
        Ok(secrets.map(|(name, secret)| info(name, secret)).collect())
    }

    /// The value of a secret, opened now. Costs no lock and no disk.
    pub fn secret(&self, tenant: &str, name: &str) -> Result<Option<SecretString>, RegistryError> {
        let directory = self.directory();
        let Some(vault) = directory.vault(tenant)? else { return Ok(None) };
        let Some(secret) = vault.secrets.get(name) else { return Ok(None) };
        let opened = vault.open(&vault.key(directory.master()?)?, Item::Secret { name }, secret)?;
        let no_text = || RegistryError::corrupt(format!("the secret `{name}` is no text"));
        seal::text(opened).ok_or_else(no_text).map(Some)
    }

    pub fn remove_secret(&self, actor: &Actor, tenant: &str, name: &str) -> Result<(), RegistryError> {
        check_name(name)?;
        self.change(|transaction, directory| {
            let missing = || RegistryError::not_found("secret", name);
            let mut vault = vault::existing(transaction, directory, tenant)?.ok_or_else(missing)?;
            vault.secrets.remove(name).ok_or_else(missing)?;
            transaction.execute("DELETE FROM secrets WHERE tenant = ?1 AND name = ?2", [tenant, name])?;
            Ok(vault.changed(actor, "secret.remove", name, None, ()))
        })
    }
}

fn info(name: &str, secret: &Sealed) -> SecretInfo {
    let Sealed { version, created_at, updated_at, .. } = *secret;
    SecretInfo { name: name.to_owned(), version, created_at, updated_at }
}

/// Does not repeat the name: people mistake the one for the other.
fn check_name(name: &str) -> Result<(), RegistryError> {
    let what = "the name of a secret has 1 to 64 of A-Z, 0-9 and _, a letter first, such as `API_TOKEN`";
    name.parse::<SecretName>().map(drop).map_err(|_| RegistryError::BadValue { what: what.to_owned() })
}

/// A client secret is in no answer that code inside sees.
pub(crate) fn check_client_secret(value: &SecretString) -> Result<(), RegistryError> {
    check_value("a client secret", SHORTEST_CLIENT_SECRET, value)
}

fn check_value(kind: &str, shortest: usize, value: &SecretString) -> Result<(), RegistryError> {
    let value = value.expose_secret();
    if (shortest..=LONGEST_VALUE).contains(&value.len()) && !value.contains('\0') {
        return Ok(());
    }
    let what = format!("{kind} has {shortest} to {LONGEST_VALUE} bytes, none of them zero");
    Err(RegistryError::BadValue { what })
}

pub(crate) fn save(
    transaction: &Transaction<'_>,
    tenant: &str,
    name: &str,
    secret: &Sealed,
) -> Result<(), RegistryError> {
    let query = format!("INSERT OR REPLACE INTO secrets (tenant, name, {SEALED}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let Sealed { version, key_version, bytes, created_at, updated_at } = secret;
    transaction.prepare_cached(&query)?.execute((tenant, name, version, key_version, bytes, created_at, updated_at))?;
    Ok(())
}

pub(crate) fn load(connection: &Connection, tenant: &str) -> Result<BTreeMap<String, Arc<Sealed>>, RegistryError> {
    let query = format!("SELECT name, {SEALED} FROM secrets WHERE tenant = ?1");
    let mut statement = connection.prepare_cached(&query)?;
    let secrets = statement.query_map([tenant], |row| Ok((row.get(0)?, Arc::new(vault::sealed(row, 1)?))))?;
    Ok(secrets.collect::<Result<_, _>>()?)
}

//! Secrets of tenants.

use crate::seal;
use crate::vault::{self, Item, SEALED, Sealed, SealedSecret};
use crate::{Actor, PolicyChange, Registry, RegistryError, Secret, SecretInfo, SecretPolicy};
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
    /// Seals a value under a name, new or again. It is used from the next call on. A new secret has no policy, so no server
    /// may use it; another value of one leaves its policy as it is.
    pub fn set_secret(
        &self,
        actor: &Actor,
        tenant: &str,
        name: &str,
        value: SecretString,
    ) -> Result<SecretInfo, RegistryError> {
        self.set_secret_with(actor, tenant, name, value, &PolicyChange::default())
    }

    /// The same, with a change of its policy.
    pub fn set_secret_with(
        &self,
        actor: &Actor,
        tenant: &str,
        name: &str,
        value: SecretString,
        change: &PolicyChange,
    ) -> Result<SecretInfo, RegistryError> {
        check_name(name)?;
        check_value("a secret", SHORTEST_VALUE, &value)?;
        self.change(|transaction, directory| {
            let (mut vault, key) = vault::to_change(transaction, directory, tenant)?;
            let before = vault.secrets.get(name);
            if before.is_none() {
                vault::check_room(vault.secrets.len(), MOST_SECRETS, "secrets")?;
            }
            let policy = SecretPolicy::read(before.and_then(|before| before.policy.as_deref()))?.changed(change)?;
            let text = policy.text()?;
            let item = Item::Secret { name, policy: Some(&text) };
            let value = vault.seal(&key, item, before.map(|before| &before.value), value.expose_secret().as_bytes())?;
            let secret = SealedSecret { policy: Some(text), value };
            save(transaction, tenant, name, &secret)?;
            let info = info(name, &secret)?;
            vault.secrets.insert(name.to_owned(), Arc::new(secret));
            let detail = serde_json::json!({ "version": info.version, "policy": policy });
            Ok(vault.changed(actor, "secret.set", name, Some(detail), info))
        })
    }

    /// Changes which servers may use a secret and where it may go. Its value stays, and is sealed again with the policy. It
    /// counts from the next request on.
    pub fn allow_secret(
        &self,
        actor: &Actor,
        tenant: &str,
        name: &str,
        change: &PolicyChange,
    ) -> Result<SecretInfo, RegistryError> {
        check_name(name)?;
        self.change(|transaction, directory| {
            let missing = || RegistryError::not_found("secret", name);
            let mut vault = vault::existing(transaction, directory, tenant)?.ok_or_else(missing)?;
            let before = vault.secrets.get(name).ok_or_else(missing)?;
            let key = vault.key(directory.master()?)?;
            let was = Item::Secret { name, policy: before.policy.as_deref() };
            let opened = vault.open(&key, was, &before.value)?;
            let policy = SecretPolicy::read(before.policy.as_deref())?.changed(change)?;
            let text = policy.text()?;
            let item = Item::Secret { name, policy: Some(&text) };
            let value = vault.seal_as(&key, item, before.value.clone(), &opened)?;
            let secret = SealedSecret { policy: Some(text), value };
            save(transaction, tenant, name, &secret)?;
            let info = info(name, &secret)?;
            vault.secrets.insert(name.to_owned(), Arc::new(secret));
            let detail = serde_json::json!({ "policy": policy });
            Ok(vault.changed(actor, "secret.allow", name, Some(detail), info))
        })
    }

    /// What secrets a tenant has, by name.
    pub fn secrets(&self, tenant: &str) -> Result<Vec<SecretInfo>, RegistryError> {
        let directory = self.directory();
        let secrets = directory.vault(tenant)?.into_iter().flat_map(|vault| &vault.secrets);
        secrets.map(|(name, secret)| info(name, secret)).collect()
    }

    /// A secret, opened now. Costs no lock and no disk.
    pub fn secret(&self, tenant: &str, name: &str) -> Result<Option<Secret>, RegistryError> {
        let directory = self.directory();
        let Some(vault) = directory.vault(tenant)? else { return Ok(None) };
        let Some(secret) = vault.secrets.get(name) else { return Ok(None) };
        let item = Item::Secret { name, policy: secret.policy.as_deref() };
        let opened = vault.open(&vault.key(directory.master()?)?, item, &secret.value)?;
        let no_text = || RegistryError::corrupt(format!("the secret `{name}` is no text"));
        Ok(Some(Secret {
            value: seal::text(opened).ok_or_else(no_text)?,
            policy: SecretPolicy::read(secret.policy.as_deref())?,
        }))
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

fn info(name: &str, secret: &SealedSecret) -> Result<SecretInfo, RegistryError> {
    let Sealed { version, created_at, updated_at, .. } = secret.value;
    Ok(SecretInfo {
        name: name.to_owned(),
        version,
        policy: SecretPolicy::read(secret.policy.as_deref())?,
        created_at,
        updated_at,
    })
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
    secret: &SealedSecret,
) -> Result<(), RegistryError> {
    let query = format!(
        "INSERT OR REPLACE INTO secrets (tenant, name, policy, {SEALED}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    );
    let SealedSecret { policy, value: Sealed { version, key_version, bytes, created_at, updated_at } } = secret;
    let row = (tenant, name, policy, version, key_version, bytes, created_at, updated_at);
    transaction.prepare_cached(&query)?.execute(row)?;
    Ok(())
}

pub(crate) fn load(
    connection: &Connection,
    tenant: &str,
) -> Result<BTreeMap<String, Arc<SealedSecret>>, RegistryError> {
    let query = format!("SELECT name, policy, {SEALED} FROM secrets WHERE tenant = ?1");
    let mut statement = connection.prepare_cached(&query)?;
    let secrets = statement.query_map([tenant], |row| {
        let secret = SealedSecret { policy: row.get(1)?, value: vault::sealed(row, 2)? };
        Ok((row.get(0)?, Arc::new(secret)))
    })?;
    Ok(secrets.collect::<Result<_, _>>()?)
}

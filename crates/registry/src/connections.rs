//! Connections: the tokens that somebody has from a provider. Nobody else's call ever uses them.

use crate::clock::LAST_SECOND;
use crate::seal;
use crate::vault::{self, Item, SEALED, Sealed, SealedConnection};
use crate::{Actor, ConnectionInfo, Registry, RegistryError, Timestamp};
use rusqlite::{Connection, Transaction};
use secrecy::{ExposeSecret, SecretString};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Of one tenant, to all its providers.
const MOST_CONNECTIONS: usize = 10_000;
/// A token's subject has its issuer in it.
const LONGEST_SUBJECT: usize = 1024;
const LONGEST_TOKENS: usize = 32 << 10;

impl Registry {
    /// Seals the tokens (JSON) that somebody has from a provider of the tenant, new or again.
    pub fn set_connection(
        &self,
        actor: &Actor,
        tenant: &str,
        provider: &str,
        subject: &str,
        tokens: SecretString,
        expires_at: Option<Timestamp>,
    ) -> Result<ConnectionInfo, RegistryError> {
        check(subject, &tokens, expires_at)?;
        self.change(|transaction, directory| {
            let missing = || RegistryError::not_found("provider", &shown(provider));
            directory.vault(tenant)?.filter(|vault| vault.providers.contains_key(provider)).ok_or_else(missing)?;
            let (mut vault, key) = vault::to_change(transaction, directory, tenant)?;
            let before = vault.providers.get(provider).and_then(|provider| provider.connections.get(subject));
            if before.is_none() {
                let count = vault.providers.values().map(|provider| provider.connections.len()).sum();
                vault::check_room(count, MOST_CONNECTIONS, "connections")?;
            }
            let item = Item::Connection { provider, subject, expires_at };
            let value = tokens.expose_secret().as_bytes();
            let tokens = vault.seal(&key, item, before.map(|before| &before.tokens), value)?;
            let connection = SealedConnection { tokens, expires_at };
            save(transaction, tenant, provider, subject, &connection)?;
            let info = info(provider, subject, &connection);
            let detail = serde_json::json!({ "subject": subject, "expires_at": expires_at });
            let found = vault.providers.get_mut(provider).ok_or_else(missing)?;
            Arc::make_mut(found).connections.insert(subject.to_owned(), Arc::new(connection));
            Ok(vault.changed(actor, "connection.set", provider, Some(detail), info))
        })
    }

    /// The tokens that somebody has, opened now, and when they expire. Costs no lock and no disk.
    pub fn connection(
        &self,
        tenant: &str,
        provider: &str,
        subject: &str,
    ) -> Result<Option<(SecretString, Option<Timestamp>)>, RegistryError> {
        let directory = self.directory();
        let Some(vault) = directory.vault(tenant)? else { return Ok(None) };
        let found = vault.providers.get(provider).and_then(|provider| provider.connections.get(subject));
        let Some(connection) = found else { return Ok(None) };
        let item = Item::Connection { provider, subject, expires_at: connection.expires_at };
        let opened = vault.open(&vault.key(directory.master()?)?, item, &connection.tokens)?;
        let no_text = || RegistryError::corrupt(format!("{item} is no text"));
        Ok(Some((seal::text(opened).ok_or_else(no_text)?, connection.expires_at)))
    }

    /// Who of a tenant is connected to what, by provider and subject.
    pub fn connections(&self, tenant: &str) -> Result<Vec<ConnectionInfo>, RegistryError> {
        let directory = self.directory();
        let mut connections = Vec::new();
        for (name, provider) in directory.vault(tenant)?.into_iter().flat_map(|vault| &vault.providers) {
            connections.extend(provider.connections.iter().map(|(subject, found)| info(name, subject, found)));
        }
        Ok(connections)
    }

    pub fn remove_connection(
        &self,
        actor: &Actor,
        tenant: &str,
        provider: &str,
        subject: &str,
    ) -> Result<(), RegistryError> {
        self.change(|transaction, directory| {
            let missing = || RegistryError::not_found("connection", &shown(provider));
            let mut vault = vault::existing(transaction, directory, tenant)?.ok_or_else(missing)?;
            let found = vault.providers.get_mut(provider).ok_or_else(missing)?;
            Arc::make_mut(found).connections.remove(subject).ok_or_else(missing)?;
            let query = "DELETE FROM connections WHERE tenant = ?1 AND provider = ?2 AND subject = ?3";
            transaction.execute(query, [tenant, provider, subject])?;
            let detail = serde_json::json!({ "subject": subject });
            Ok(vault.changed(actor, "connection.remove", provider, Some(detail), ()))
        })
    }
}

/// What is shown again is bounded: it comes from outside and may be anything.
fn shown(provider: &str) -> String {
    provider.chars().take(64).collect()
}

fn info(provider: &str, subject: &str, connection: &SealedConnection) -> ConnectionInfo {
    ConnectionInfo {
        provider: provider.to_owned(),
        subject: subject.to_owned(),
        expires_at: connection.expires_at,
        created_at: connection.tokens.created_at,
        updated_at: connection.tokens.updated_at,
    }
}

fn check(subject: &str, tokens: &SecretString, expires_at: Option<Timestamp>) -> Result<(), RegistryError> {
    let bad = |what: String| Err(RegistryError::BadValue { what });
    if !(1..=LONGEST_SUBJECT).contains(&subject.len()) || subject.chars().any(char::is_control) {
        return bad(format!("the subject of a connection has 1 to {LONGEST_SUBJECT} bytes, all of them printable"));
    }
    let text = tokens.expose_secret();
    let is_object = || text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if text.len() > LONGEST_TOKENS || !is_object() {
        return bad(format!("tokens are a JSON object of at most {LONGEST_TOKENS} bytes"));
    }
    if expires_at.is_some_and(|time| time > LAST_SECOND) {
        return bad("tokens cannot expire after the year 9999".to_owned());
    }
    Ok(())
}

pub(crate) fn save(
    transaction: &Transaction<'_>,
    tenant: &str,
    provider: &str,
    subject: &str,
    connection: &SealedConnection,
) -> Result<(), RegistryError> {
    let query = format!(
        "INSERT OR REPLACE INTO connections (tenant, provider, subject, expires_at, {SEALED})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    );
    let Sealed { version, key_version, bytes, created_at, updated_at } = &connection.tokens;
    transaction.prepare_cached(&query)?.execute((
        tenant,
        provider,
        subject,
        connection.expires_at,
        version,
        key_version,
        bytes,
        created_at,
        updated_at,
    ))?;
    Ok(())
}

pub(crate) fn load(
    connection: &Connection,
    tenant: &str,
    provider: &str,
) -> Result<BTreeMap<String, Arc<SealedConnection>>, RegistryError> {
    let query = format!("SELECT subject, expires_at, {SEALED} FROM connections WHERE tenant = ?1 AND provider = ?2");
    let mut statement = connection.prepare_cached(&query)?;
    let connections = statement.query_map([tenant, provider], |row| {
        let connection = SealedConnection { expires_at: row.get(1)?, tokens: vault::sealed(row, 2)? };
        Ok((row.get(0)?, Arc::new(connection)))
    })?;
    Ok(connections.collect::<Result<_, _>>()?)
}

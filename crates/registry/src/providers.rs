//! Providers: where the users of a tenant get tokens for upstreams.

use crate::secrets::check_client_secret;
use crate::snapshot::to_json;
use crate::vault::{self, Item, SEALED, Sealed, SealedProvider, Vault};
use crate::{
    Actor, Directory, PolicyChange, Provider, ProviderInfo, Registry, RegistryError, SecretPolicy, connections, name,
    seal,
};
use rusqlite::{Connection, Transaction};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::sync::Arc;

const MOST_PROVIDERS: usize = 64;
const LONGEST_SETTINGS: usize = 16 << 10;
/// What stands before a client secret, and what stands there alone if there is none. So the settings are always sealed.
const SECRET: u8 = 1;
const NO_SECRET: u8 = 0;

impl Registry {
    /// Makes a provider or changes it. Its connections and its policy stay; a new one has no policy, so no server may use it.
    pub fn set_provider(
        &self,
        actor: &Actor,
        tenant: &str,
        name: &str,
        settings: serde_json::Value,
        client_secret: Option<SecretString>,
    ) -> Result<ProviderInfo, RegistryError> {
        self.set_provider_with(actor, tenant, name, settings, client_secret, &PolicyChange::default())
    }

    /// The same, with a change of its policy.
    pub fn set_provider_with(
        &self,
        actor: &Actor,
        tenant: &str,
        name: &str,
        settings: serde_json::Value,
        client_secret: Option<SecretString>,
        change: &PolicyChange,
    ) -> Result<ProviderInfo, RegistryError> {
        name::check("provider", name)?;
        client_secret.as_ref().map_or(Ok(()), check_client_secret)?;
        let text = to_json(&settings)?;
        if !settings.is_object() || text.len() > LONGEST_SETTINGS {
            let what = format!("the settings of a provider are a JSON object of at most {LONGEST_SETTINGS} bytes");
            return Err(RegistryError::BadValue { what });
        }
        self.change(|transaction, directory| {
            let (mut vault, key) = vault::to_change(transaction, directory, tenant)?;
            let before = vault.providers.get(name);
            if before.is_none() {
                vault::check_room(vault.providers.len(), MOST_PROVIDERS, "providers")?;
            }
            let policy = SecretPolicy::read(before.and_then(|before| before.policy.as_deref()))?.changed(change)?;
            let allowed = policy.text()?;
            let item = Item::Provider { name, settings: &text, policy: Some(&allowed) };
            let value = value(client_secret.as_ref());
            let secret = vault.seal(&key, item, before.map(|before| &before.secret), &value)?;
            let connections = before.map(|before| before.connections.clone()).unwrap_or_default();
            let provider = SealedProvider { settings: text.clone(), policy: Some(allowed), secret, connections };
            save(transaction, tenant, name, &provider)?;
            let info = ProviderInfo {
                name: name.to_owned(),
                settings,
                policy,
                confidential: client_secret.is_some(),
                created_at: provider.secret.created_at,
                updated_at: provider.secret.updated_at,
            };
            let detail = serde_json::json!({
                "version": provider.secret.version, "confidential": info.confidential, "policy": info.policy,
            });
            vault.providers.insert(name.to_owned(), Arc::new(provider));
            Ok(vault.changed(actor, "provider.set", name, Some(detail), info))
        })
    }

    /// Changes which servers may use its tokens and where they may go. Everything else stays, and is sealed again with the
    /// policy. It counts from the next request on.
    pub fn allow_provider(
        &self,
        actor: &Actor,
        tenant: &str,
        name: &str,
        change: &PolicyChange,
    ) -> Result<ProviderInfo, RegistryError> {
        name::check("provider", name)?;
        self.change(|transaction, directory| {
            let missing = || RegistryError::not_found("provider", name);
            let mut vault = vault::existing(transaction, directory, tenant)?.ok_or_else(missing)?;
            let before = vault.providers.get(name).ok_or_else(missing)?;
            let key = vault.key(directory.master()?)?;
            let value = vault.open(&key, item(name, before), &before.secret)?;
            let policy = SecretPolicy::read(before.policy.as_deref())?.changed(change)?;
            let mut provider = SealedProvider { policy: Some(policy.text()?), ..SealedProvider::clone(before) };
            provider.secret = vault.seal_as(&key, item(name, &provider), before.secret.clone(), &value)?;
            save(transaction, tenant, name, &provider)?;
            let info = info(open(directory, &vault, name, &provider)?);
            vault.providers.insert(name.to_owned(), Arc::new(provider));
            let detail = serde_json::json!({ "policy": policy });
            Ok(vault.changed(actor, "provider.allow", name, Some(detail), info))
        })
    }

    /// A provider with its secret, opened now. Costs no lock and no disk.
    pub fn provider(&self, tenant: &str, name: &str) -> Result<Option<Provider>, RegistryError> {
        let directory = self.directory();
        let Some(vault) = directory.vault(tenant)? else { return Ok(None) };
        vault.providers.get(name).map(|provider| open(&directory, vault, name, provider)).transpose()
    }

    /// What providers a tenant has, by name.
    pub fn providers(&self, tenant: &str) -> Result<Vec<ProviderInfo>, RegistryError> {
        let directory = self.directory();
        let Some(vault) = directory.vault(tenant)? else { return Ok(Vec::new()) };
        vault.providers.iter().map(|(name, provider)| Ok(info(open(&directory, vault, name, provider)?))).collect()
    }

    /// Removes a provider and every connection to it.
    pub fn remove_provider(&self, actor: &Actor, tenant: &str, name: &str) -> Result<(), RegistryError> {
        name::check("provider", name)?;
        self.change(|transaction, directory| {
            let missing = || RegistryError::not_found("provider", name);
            let mut vault = vault::existing(transaction, directory, tenant)?.ok_or_else(missing)?;
            let provider = vault.providers.remove(name).ok_or_else(missing)?;
            transaction.execute("DELETE FROM providers WHERE tenant = ?1 AND name = ?2", [tenant, name])?;
            let detail = serde_json::json!({ "connections": provider.connections.len() });
            Ok(vault.changed(actor, "provider.remove", name, Some(detail), ()))
        })
    }
}

fn info(provider: Provider) -> ProviderInfo {
    let Provider { name, settings, policy, client_secret, created_at, updated_at } = provider;
    ProviderInfo { name, settings, policy, confidential: client_secret.is_some(), created_at, updated_at }
}

fn item<'a>(name: &'a str, provider: &'a SealedProvider) -> Item<'a> {
    Item::Provider { name, settings: &provider.settings, policy: provider.policy.as_deref() }
}

fn value(client_secret: Option<&SecretString>) -> Zeroizing<Vec<u8>> {
    let secret = client_secret.map(|secret| secret.expose_secret().as_bytes());
    let mut value = Zeroizing::new(Vec::with_capacity(1 + secret.map_or(0, <[u8]>::len)));
    value.push(if secret.is_some() { SECRET } else { NO_SECRET });
    value.extend_from_slice(secret.unwrap_or_default());
    value
}

fn open(
    directory: &Directory,
    vault: &Vault,
    name: &str,
    provider: &SealedProvider,
) -> Result<Provider, RegistryError> {
    let SealedProvider { settings, secret, .. } = provider;
    let value = vault.open(&vault.key(directory.master()?)?, item(name, provider), secret)?;
    let damaged = || RegistryError::corrupt(format!("the provider `{name}` cannot be read"));
    let client_secret = match value.split_first() {
        Some((&NO_SECRET, [])) => None,
        Some((&SECRET, secret)) => Some(seal::text(Zeroizing::new(secret.into())).ok_or_else(damaged)?),
        _ => return Err(damaged()),
    };
    Ok(Provider {
        name: name.to_owned(),
        settings: serde_json::from_str(settings).map_err(|_| damaged())?,
        policy: SecretPolicy::read(provider.policy.as_deref())?,
        client_secret,
        created_at: secret.created_at,
        updated_at: secret.updated_at,
    })
}

/// Its connections are saved by themselves.
pub(crate) fn save(
    transaction: &Transaction<'_>,
    tenant: &str,
    name: &str,
    provider: &SealedProvider,
) -> Result<(), RegistryError> {
    // Replacing the row would take its connections along.
    let query = format!(
        "INSERT INTO providers (tenant, name, settings, policy, {SEALED}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (tenant, name) DO UPDATE
             SET settings = excluded.settings, policy = excluded.policy, version = excluded.version, key_version = excluded.key_version,
                 sealed = excluded.sealed, updated_at = excluded.updated_at"
    );
    let Sealed { version, key_version, bytes, created_at, updated_at } = &provider.secret;
    transaction.prepare_cached(&query)?.execute((
        tenant,
        name,
        &provider.settings,
        &provider.policy,
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
) -> Result<BTreeMap<String, Arc<SealedProvider>>, RegistryError> {
    let query = format!("SELECT name, settings, policy, {SEALED} FROM providers WHERE tenant = ?1");
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query([tenant])?;
    let mut providers = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let connections = connections::load(connection, tenant, &name)?;
        let provider =
            SealedProvider { settings: row.get(1)?, policy: row.get(2)?, secret: vault::sealed(row, 3)?, connections };
        providers.insert(name, Arc::new(provider));
    }
    Ok(providers)
}

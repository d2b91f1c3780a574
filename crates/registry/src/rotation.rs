//! The keys of what is sealed: giving the host its master key, and changing keys.

use crate::connections;
use crate::registry::{Change, Wish};
use crate::seal::SealingKey;
use crate::snapshot::Edit;
use crate::vault::{self, Item, Sealed, SealedConnection, SealedProvider, SealedSecret, Vault};
use crate::{
    Actor, ChangeEvent, Directory, MasterKey, Registry, RegistryError, SecretPolicy, database, providers, secrets,
};
use rusqlite::Transaction;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Registry {
    /// Gives the host its master key, which stays in memory alone. Without it everything sealed is out of reach.
    pub fn unlock(&self, master: MasterKey) -> Result<(), RegistryError> {
        self.edit(|directory| {
            check(directory, &master)?;
            Ok(vec![Edit::Master(Arc::new(master))])
        })?;
        self.give_policies()
    }

    /// Secrets and providers from before there were policies get one, once: what the deployments that are current are bound
    /// to. Policies from before they named places get those, likewise. It waits for the master key because a policy is sealed
    /// with its value.
    fn give_policies(&self) -> Result<(), RegistryError> {
        let (host, directory) = (Actor::host(), self.directory());
        for (tenant, vault) in &directory.vaults {
            let secrets = vault.secrets.iter().map(|(name, secret)| ((false, name.clone()), &secret.policy));
            let providers = vault.providers.iter().map(|(name, provider)| ((true, name.clone()), &provider.policy));
            let old: Vec<_> = secrets.chain(providers).filter(|(_, policy)| is_old(policy)).collect();
            if old.is_empty() {
                continue;
            }
            let bound = self.bound(&directory, tenant)?;
            // What cannot be opened, or is bound to more than a policy may name, stays without one: no server may use it
            // before an admin names a few.
            let passed = |done: Result<(), RegistryError>| match done {
                Err(RegistryError::Corrupt { .. } | RegistryError::BadValue { .. }) => Ok(()),
                other => other,
            };
            for (key, policy) in old {
                let bound = bound.get(&key).cloned().unwrap_or_default();
                let change = match policy {
                    Some(text) => SecretPolicy::read(Some(text))?.with_places(&bound),
                    None => bound,
                };
                let (change, (provider, name)) = (change.into(), key);
                passed(match provider {
                    false => self.allow_secret(&host, tenant, &name, &change).map(drop),
                    true => self.allow_provider(&host, tenant, &name, &change).map(drop),
                })?;
            }
        }
        Ok(())
    }

    /// What the current deployments of a tenant are bound to, by whether it is a provider and by name.
    fn bound(
        &self,
        directory: &Directory,
        tenant: &str,
    ) -> Result<BTreeMap<(bool, String), SecretPolicy>, RegistryError> {
        let mut bound: BTreeMap<_, SecretPolicy> = BTreeMap::new();
        let servers = directory.tenants.get(tenant).into_iter().flat_map(|tenant| tenant.servers.values());
        for current in servers.filter_map(|server| server.current.as_ref()) {
            let (lock, _) = self.lock(tenant, &current.server, &current.id)?;
            for binding in &lock.secrets {
                let key = match &binding.connection {
                    Some(provider) => (true, provider.to_string()),
                    None => (false, binding.name.to_string()),
                };
                bound.entry(key).or_default().add(&current.server, binding);
            }
        }
        Ok(bound)
    }

    /// Gives a tenant a new key and seals everything it has anew, all of it or nothing. The old key is gone then.
    pub fn rotate_tenant_key(&self, actor: &Actor, tenant: &str) -> Result<(), RegistryError> {
        self.change(|transaction, directory| {
            let Some(vault) = vault::existing(transaction, directory, tenant)? else { return Ok(Wish::Granted(())) };
            let rotated = Rotation::new(&vault, directory.master()?)?.run(transaction)?;
            let detail = serde_json::json!({ "key_version": rotated.key_version() });
            Ok(rotated.changed(actor, "secret.rotate", tenant, Some(detail), ()))
        })
    }

    /// Wraps the keys of all tenants with a new master key, all of them or none, and goes on with that one.
    pub fn rotate_master_key(&self, actor: &Actor, new: MasterKey) -> Result<(), RegistryError> {
        self.change(|transaction, directory| {
            let old = directory.master()?;
            if old.id() == new.id() {
                return Err(RegistryError::BadValue { what: "the host has this master key already".to_owned() });
            }
            database::overwrite(transaction, true)?;
            let mut edits = Vec::new();
            for vault in directory.vaults.values() {
                let key = vault.key(old)?;
                let wrapped = Vault::clone(vault).wrapped(&new, vault.key_version(), &key)?;
                wrapped.save_key(transaction)?;
                edits.push(Edit::Vault(wrapped.tenant().to_owned(), Arc::new(wrapped)));
            }
            let event = ChangeEvent {
                tenant: None,
                actor: actor.0.clone(),
                action: "master_key.rotate".to_owned(),
                subject: new.id().to_owned(),
                detail: Some(serde_json::json!({ "instead_of": old.id(), "tenants": edits.len() })),
            };
            edits.push(Edit::Master(Arc::new(new)));
            Ok(Wish::Change(Change { edits, event, answer: () }))
        })
    }
}

/// Whether a policy is missing, or from before policies named places.
fn is_old(policy: &Option<String>) -> bool {
    let Some(text) = policy else { return true };
    SecretPolicy::read(Some(text)).is_ok_and(|policy| policy.names_no_places())
}

/// Whether all that is sealed was sealed under this master key.
fn check(directory: &Directory, master: &MasterKey) -> Result<(), RegistryError> {
    match directory.vaults.values().find(|vault| vault.master() != master.id()) {
        None => Ok(()),
        Some(vault) => Err(RegistryError::WrongMasterKey {
            sealed_with: vault.master().chars().take(16).collect(),
            given: master.id().to_owned(),
        }),
    }
}

/// One vault on its way from a key to the next.
struct Rotation<'a> {
    old: &'a Vault,
    old_key: SealingKey,
    new: Vault,
    new_key: SealingKey,
}

impl<'a> Rotation<'a> {
    fn new(old: &'a Vault, master: &MasterKey) -> Result<Rotation<'a>, RegistryError> {
        let new_key = SealingKey::random()?;
        let new = old.clone().wrapped(master, old.key_version().saturating_add(1), &new_key)?;
        Ok(Rotation { old, old_key: old.key(master)?, new, new_key })
    }

    fn run(mut self, transaction: &Transaction<'_>) -> Result<Vault, RegistryError> {
        let tenant = self.old.tenant();
        self.new.save_key(transaction)?;
        for (name, secret) in &self.old.secrets {
            let SealedSecret { policy, value } = &**secret;
            let value = self.sealed(Item::Secret { name, policy: policy.as_deref() }, value)?;
            let secret = SealedSecret { policy: policy.clone(), value };
            secrets::save(transaction, tenant, name, &secret)?;
            self.new.secrets.insert(name.clone(), Arc::new(secret));
        }
        for (name, provider) in &self.old.providers {
            let provider = self.provider(name, provider)?;
            providers::save(transaction, tenant, name, &provider)?;
            for (subject, connection) in &provider.connections {
                connections::save(transaction, tenant, name, subject, connection)?;
            }
            self.new.providers.insert(name.clone(), Arc::new(provider));
        }
        Ok(self.new)
    }

    fn provider(&self, name: &str, provider: &SealedProvider) -> Result<SealedProvider, RegistryError> {
        let SealedProvider { settings, policy, secret, connections } = provider;
        let sealed = |(subject, connection): (&String, &Arc<SealedConnection>)| {
            let expires_at = connection.expires_at;
            let item = Item::Connection { provider: name, subject, expires_at };
            let tokens = self.sealed(item, &connection.tokens)?;
            Ok((subject.clone(), Arc::new(SealedConnection { tokens, expires_at })))
        };
        Ok(SealedProvider {
            settings: settings.clone(),
            policy: policy.clone(),
            secret: self.sealed(Item::Provider { name, settings, policy: policy.as_deref() }, secret)?,
            connections: connections.iter().map(sealed).collect::<Result<_, RegistryError>>()?,
        })
    }

    fn sealed(&self, item: Item<'_>, sealed: &Sealed) -> Result<Sealed, RegistryError> {
        let value = self.old.open(&self.old_key, item, sealed)?;
        self.new.seal_as(&self.new_key, item, sealed.clone(), &value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn master() -> MasterKey {
        let mut bytes: [u8; 32] = std::array::from_fn(|place| place as u8);
        bytes[..8].copy_from_slice(&1_u64.to_le_bytes());
        MasterKey::from_bytes(&bytes).unwrap()
    }

    /// A policy as it was before places were named, sealed with its value.
    fn relabel(registry: &Registry, name: &str, policy: &str) {
        let relabelled = registry.change(|transaction, directory| {
            let mut vault = vault::existing(transaction, directory, "acme")?.unwrap();
            let (key, before) = (vault.key(directory.master()?)?, vault.secrets[name].clone());
            let opened = vault.open(&key, Item::Secret { name, policy: before.policy.as_deref() }, &before.value)?;
            let item = Item::Secret { name, policy: Some(policy) };
            let value = vault.seal_as(&key, item, before.value.clone(), &opened)?;
            let secret = SealedSecret { policy: Some(policy.to_owned()), value };
            secrets::save(transaction, "acme", name, &secret)?;
            vault.secrets.insert(name.to_owned(), Arc::new(secret));
            Ok(vault.changed(&Actor::host(), "test", name, None, ()))
        });
        relabelled.unwrap();
    }

    /// Policies without places get those that current deployments use, and what is usual where none is bound; once, and with a
    /// line in the audit log.
    #[test]
    fn a_policy_from_before_places_gets_those_that_are_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bulkhead.db");
        let old = include_str!("../tests/registry/old/0006.sql");
        rusqlite::Connection::open(&path).unwrap().execute_batch(old).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        registry.unlock(master()).unwrap();
        relabel(
            &registry,
            "API_TOKEN",
            r#"{"*":["api.github.com"],"bills":["*.example.com"],"later":["a.example.com"],"prices":["api.github.com","c.example.com"]}"#,
        );
        let before = registry.secret("acme", "API_TOKEN").unwrap().unwrap();
        assert!(before.policy.all().all(|(_, _, places)| places.is_empty()), "it allows nothing");
        registry.close().unwrap();
        drop(registry);
        let registry = Registry::open(dir.path()).unwrap();
        registry.unlock(master()).unwrap();
        let wanted = json!({
            "*": { "api.github.com": ["query:key"] },
            "bills": { "*.example.com": ["header:x-key"] },
            "later": { "a.example.com": ["credentials"] },
            "prices": { "api.github.com": ["query:key"], "c.example.com": ["credentials"] },
        });
        assert_eq!(json!(registry.secret("acme", "API_TOKEN").unwrap().unwrap().policy), wanted);
        registry.close().unwrap();
        drop(registry);
        let registry = Registry::open(dir.path()).unwrap();
        registry.unlock(master()).unwrap();
        registry.close().unwrap();
        let lines: String = std::fs::read_dir(dir.path().join("audit"))
            .unwrap()
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap_or_default())
            .collect();
        assert_eq!(lines.matches(&format!("{{\"policy\":{wanted}}}")).count(), 1, "{lines}");
    }
}

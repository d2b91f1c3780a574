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
    /// to. It waits for the master key because a policy is sealed with its value.
    fn give_policies(&self) -> Result<(), RegistryError> {
        let (host, directory) = (Actor::host(), self.directory());
        for (tenant, vault) in &directory.vaults {
            let without = |policy: &Option<String>| policy.is_none();
            let secrets = vault.secrets.iter().filter(|(_, secret)| without(&secret.policy));
            let providers = vault.providers.iter().filter(|(_, provider)| without(&provider.policy));
            let (secrets, providers): (Vec<_>, Vec<_>) = (secrets.collect(), providers.collect());
            if secrets.is_empty() && providers.is_empty() {
                continue;
            }
            let bound = self.bound(&directory, tenant)?;
            // What cannot be opened, or is bound to more than a policy may name, stays without one: no server may use it
            // before an admin names a few.
            let passed = |done: Result<(), RegistryError>| match done {
                Err(RegistryError::Corrupt { .. } | RegistryError::BadValue { .. }) => Ok(()),
                other => other,
            };
            for (name, _) in secrets {
                let change = bound.get(&(false, name.clone())).cloned().unwrap_or_default().into();
                passed(self.allow_secret(&host, tenant, name, &change).map(drop))?;
            }
            for (name, _) in providers {
                let change = bound.get(&(true, name.clone())).cloned().unwrap_or_default().into();
                passed(self.allow_provider(&host, tenant, name, &change).map(drop))?;
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
                bound.entry(key).or_default().add(&current.server, &binding.hosts);
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

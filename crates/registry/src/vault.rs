//! What a tenant has sealed, as it lies in memory: sealed. It is opened when somebody asks for it.

use crate::clock::now;
use crate::deployments::tenant_uid;
use crate::reach::Reaches;
use crate::registry::{Change, Wish};
use crate::seal::{Opened, Place, SealingKey};
use crate::snapshot::Edit;
use crate::{Actor, ChangeEvent, Directory, MasterKey, RegistryError, Timestamp, tenants};
use crate::{database, providers, secrets};
use rusqlite::{Connection, Row, Transaction};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// Everything sealed of one tenant. There is none before the tenant has something.
#[derive(Clone)]
pub(crate) struct Vault {
    tenant: String,
    uid: [u8; 16],
    key: TenantKey,
    pub secrets: BTreeMap<String, Arc<SealedSecret>>,
    pub providers: BTreeMap<String, Arc<SealedProvider>>,
    pub reaches: Reaches,
}

/// What the rest of a vault is sealed with, wrapped by the master key.
#[derive(Clone)]
struct TenantKey {
    version: u64,
    /// Id of the master key.
    master: String,
    wrapped: Box<[u8]>,
}

/// A sealed value and what is known of it.
#[derive(Clone)]
pub(crate) struct Sealed {
    /// Counts the values in this place.
    pub version: u64,
    pub key_version: u64,
    pub bytes: Box<[u8]>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone)]
pub(crate) struct SealedSecret {
    /// As it is stored. None for a value from before there were policies.
    pub policy: Option<String>,
    pub value: Sealed,
}

#[derive(Clone)]
pub(crate) struct SealedProvider {
    /// JSON.
    pub settings: String,
    /// As with secrets.
    pub policy: Option<String>,
    pub secret: Sealed,
    /// By subject.
    pub connections: BTreeMap<String, Arc<SealedConnection>>,
}

pub(crate) struct SealedConnection {
    pub tokens: Sealed,
    pub expires_at: Option<Timestamp>,
}

/// What a sealed value is, with all that it is bound to.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Secret { name: &'a str, policy: Option<&'a str> },
    Provider { name: &'a str, settings: &'a str, policy: Option<&'a str> },
    Connection { provider: &'a str, subject: &'a str, expires_at: Option<Timestamp> },
}

impl Item<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Item::Secret { .. } => "secret",
            Item::Provider { .. } => "provider",
            Item::Connection { .. } => "connection",
        }
    }

    /// Runs something with the place of this item.
    fn at<T>(&self, vault: &Vault, key_version: u64, version: u64, run: impl FnOnce(&Place<'_>) -> T) -> T {
        let Vault { tenant, uid, .. } = vault;
        let place = |words: &[&str]| run(&Place { kind: self.kind(), tenant, uid, key_version, version, words });
        match *self {
            Item::Secret { name, policy: None } => place(&[name]),
            Item::Secret { name, policy: Some(policy) } => place(&[name, policy]),
            Item::Provider { name, settings, policy: None } => place(&[name, settings]),
            Item::Provider { name, settings, policy: Some(policy) } => place(&[name, settings, policy]),
            Item::Connection { provider, subject, expires_at } => {
                let expires_at = expires_at.map(|time| time.to_string()).unwrap_or_default();
                place(&[provider, subject, &expires_at])
            }
        }
    }
}

/// For errors. The subject of a connection is nobody's business.
impl fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Secret { name, .. } => write!(f, "the secret `{name}`"),
            Item::Provider { name, .. } => write!(f, "the provider `{name}`"),
            Item::Connection { provider, .. } => write!(f, "a connection to `{provider}`"),
        }
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").finish_non_exhaustive()
    }
}

impl Directory {
    pub(crate) fn master(&self) -> Result<&Arc<MasterKey>, RegistryError> {
        self.master.as_ref().ok_or(RegistryError::NoMasterKey)
    }

    /// The vault of a tenant that must exist, if it has one. Refused as long as the host has no master key.
    pub(crate) fn vault(&self, tenant: &str) -> Result<Option<&Arc<Vault>>, RegistryError> {
        self.master()?;
        tenants::find(self, tenant)?;
        Ok(self.vaults.get(tenant))
    }
}

impl Vault {
    /// An empty one with a key of its own.
    fn new(tenant: &str, uid: [u8; 16], master: &MasterKey) -> Result<(Vault, SealingKey), RegistryError> {
        let key = SealingKey::random()?;
        let unwrapped = TenantKey { version: 0, master: String::new(), wrapped: Box::default() };
        let vault = Vault {
            tenant: tenant.to_owned(),
            uid,
            key: unwrapped,
            secrets: BTreeMap::new(),
            providers: BTreeMap::new(),
            reaches: Reaches::default(),
        };
        Ok((vault.wrapped(master, 1, &key)?, key))
    }

    /// The same vault with its key, or another one, wrapped anew.
    pub(crate) fn wrapped(self, master: &MasterKey, version: u64, key: &SealingKey) -> Result<Vault, RegistryError> {
        let wrapped = master.wrap(&self.key_place(version), key)?;
        Ok(Vault { key: TenantKey { version, master: master.id().to_owned(), wrapped }, ..self })
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    pub(crate) fn key_version(&self) -> u64 {
        self.key.version
    }

    /// Id of the master key that it needs.
    pub(crate) fn master(&self) -> &str {
        &self.key.master
    }

    pub(crate) fn key(&self, master: &MasterKey) -> Result<SealingKey, RegistryError> {
        master.unwrap(&self.key_place(self.key.version), &self.key.wrapped).ok_or_else(|| {
            RegistryError::corrupt(format!("the key of the tenant `{}` is not what was wrapped", self.tenant))
        })
    }

    fn key_place(&self, version: u64) -> Place<'_> {
        Place { kind: "tenant key", tenant: &self.tenant, uid: &self.uid, key_version: version, version, words: &[] }
    }

    /// Seals a value for its place. What was there before says which version it is.
    pub(crate) fn seal(
        &self,
        key: &SealingKey,
        item: Item<'_>,
        before: Option<&Sealed>,
        value: &[u8],
    ) -> Result<Sealed, RegistryError> {
        let updated_at = now();
        let created_at = before.map_or(updated_at, |before| before.created_at);
        let version = before.map_or(0, |before| before.version).saturating_add(1);
        self.seal_as(
            key,
            item,
            Sealed { version, key_version: 0, bytes: Box::default(), created_at, updated_at },
            value,
        )
    }

    /// Seals a value again that is otherwise what it was.
    pub(crate) fn seal_as(
        &self,
        key: &SealingKey,
        item: Item<'_>,
        was: Sealed,
        value: &[u8],
    ) -> Result<Sealed, RegistryError> {
        let key_version = self.key.version;
        let bytes = item.at(self, key_version, was.version, |place| key.seal(place, value))?;
        Ok(Sealed { key_version, bytes, ..was })
    }

    pub(crate) fn open(&self, key: &SealingKey, item: Item<'_>, sealed: &Sealed) -> Result<Opened, RegistryError> {
        item.at(self, sealed.key_version, sealed.version, |place| key.open(place, &sealed.bytes)).ok_or_else(|| {
            RegistryError::corrupt(format!("{item} of the tenant `{}` is not what was sealed", self.tenant))
        })
    }

    pub(crate) fn save_key(&self, transaction: &Transaction<'_>) -> Result<(), RegistryError> {
        let query = "INSERT INTO tenant_keys (tenant, version, master, wrapped) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (tenant) DO UPDATE
                 SET version = excluded.version, master = excluded.master, wrapped = excluded.wrapped";
        let TenantKey { version, master, wrapped } = &self.key;
        transaction.prepare_cached(query)?.execute((&self.tenant, version, master, wrapped))?;
        Ok(())
    }

    /// A change that leaves the vault like this.
    pub(crate) fn changed<R>(
        self,
        actor: &Actor,
        action: &str,
        subject: &str,
        detail: Option<serde_json::Value>,
        answer: R,
    ) -> Wish<R> {
        let event = ChangeEvent {
            tenant: Some(self.tenant.clone()),
            actor: actor.0.clone(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            detail,
        };
        Wish::Change(Change { edits: vec![Edit::Vault(self.tenant.clone(), Arc::new(self))], event, answer })
    }
}

/// A vault to put something in, and its key. It is made if there is none.
pub(crate) fn to_change(
    transaction: &Transaction<'_>,
    directory: &Directory,
    tenant: &str,
) -> Result<(Vault, SealingKey), RegistryError> {
    let master = directory.master()?;
    if let Some(vault) = existing(transaction, directory, tenant)? {
        let key = vault.key(master)?;
        return Ok((vault, key));
    }
    let (vault, key) = Vault::new(tenant, tenant_uid(transaction, tenant)?, master)?;
    vault.save_key(transaction)?;
    Ok((vault, key))
}

/// A vault to take something from, if there is one. What goes is overwritten.
pub(crate) fn existing(
    transaction: &Transaction<'_>,
    directory: &Directory,
    tenant: &str,
) -> Result<Option<Vault>, RegistryError> {
    database::overwrite(transaction, true)?;
    Ok(directory.vault(tenant)?.map(|vault| Vault::clone(vault)))
}

/// Removes everything sealed of a tenant, with its key.
pub(crate) fn remove(transaction: &Transaction<'_>, tenant: &str) -> Result<(), RegistryError> {
    database::overwrite(transaction, true)?;
    transaction.execute("DELETE FROM tenant_keys WHERE tenant = ?1", [tenant])?;
    database::overwrite(transaction, false)?;
    Ok(())
}

/// All vaults, as the database has them.
pub(crate) fn load(connection: &Connection) -> Result<HashMap<String, Arc<Vault>>, RegistryError> {
    let mut statement = connection.prepare(
        "SELECT tenant, uid, version, master, wrapped FROM tenant_keys JOIN tenants ON tenants.name = tenant_keys.tenant",
    )?;
    let mut rows = statement.query([])?;
    let mut vaults = HashMap::new();
    while let Some(row) = rows.next()? {
        let tenant: String = row.get(0)?;
        let vault = Vault {
            uid: row.get(1)?,
            key: TenantKey { version: row.get(2)?, master: row.get(3)?, wrapped: row.get(4)? },
            secrets: secrets::load(connection, &tenant)?,
            providers: providers::load(connection, &tenant)?,
            tenant: tenant.clone(),
            reaches: Reaches::default(),
        };
        vaults.insert(tenant, Arc::new(vault));
    }
    Ok(vaults)
}

/// The columns of every table with sealed values.
pub(crate) const SEALED: &str = "version, key_version, sealed, created_at, updated_at";

/// A sealed value whose columns begin here.
pub(crate) fn sealed(row: &Row<'_>, first: usize) -> rusqlite::Result<Sealed> {
    Ok(Sealed {
        version: row.get(first)?,
        key_version: row.get(first + 1)?,
        bytes: row.get(first + 2)?,
        created_at: row.get(first + 3)?,
        updated_at: row.get(first + 4)?,
    })
}

/// Refuses one more where there are as many as there may be.
pub(crate) fn check_room(count: usize, most: usize, what: &str) -> Result<(), RegistryError> {
    if count < most {
        return Ok(());
    }
    Err(RegistryError::Conflict {
        what: format!("the tenant has {count} {what}, which is the most"),
        hint: Some("remove those that nobody needs any more".to_owned()),
    })
}

//! Keys of tenants and operators.

use crate::clock::{LAST_SECOND, now};
use crate::registry::{Change, Wish};
use crate::snapshot::{self, Edit, to_json};
use crate::{
    Actor, ChangeEvent, Key, NewKey, Quota, Registry, RegistryError, Role, Scope, Token, TokenHash, token_hash,
};
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::sync::Arc;

const MOST_KEYS: i64 = 10_000;
const LONGEST_NAME: usize = 200;
const LONGEST_SCOPE: usize = 300;
/// Of all names in a scope together: every key is in memory for as long as it is there. A name takes more than its bytes.
const SCOPE_BYTES: usize = 16 << 10;
const BESIDE_NAME: usize = 48;

impl Registry {
    /// Makes a key. Its token is returned once and kept nowhere.
    pub fn create_key(&self, actor: &Actor, new: NewKey) -> Result<(Key, Token), RegistryError> {
        check(&new)?;
        let token = Token::new(new.role)?;
        self.change(|transaction, directory| {
            let owner = Owner::of(new.tenant.as_deref());
            if let Owner::Tenant(name) = owner
                && !directory.tenants.contains_key(name)
            {
                return Err(RegistryError::not_found("tenant", name));
            }
            owner.check_room(transaction)?;
            let (key, hash) = insert(transaction, actor, owner, &new, &token)?;
            Ok(Wish::Change(Change {
                edits: vec![Edit::Key(hash, Arc::new(key.clone()))],
                event: event(actor, &key, "key.create", detail(&key)),
                answer: (key, token),
            }))
        })
    }

    /// Makes a key worthless, at once: it is gone from the directory when this returns.
    pub fn revoke_key(&self, actor: &Actor, tenant: Option<&str>, id: &str) -> Result<(), RegistryError> {
        self.change(|transaction, _| {
            let (key, hash) = find(transaction, tenant, id)?.ok_or_else(|| RegistryError::not_found("key", id))?;
            if key.revoked_at.is_some() {
                return Ok(Wish::Granted(()));
            }
            if key.role == Role::Operator {
                check_another_operator(transaction, id)?;
            }
            transaction.execute("UPDATE keys SET revoked_at = ?1 WHERE id = ?2", (now(), id))?;
            let edits = vec![Edit::KeyGone(hash)];
            Ok(Wish::Change(Change { edits, event: event(actor, &key, "key.revoke", None), answer: () }))
        })
    }

    /// The keys of a tenant, or the operators', that are `wanted`; revoked and expired ones too, newest first. Not more
    /// than `most`, and only what comes after one of them: none if that is none of them.
    pub fn keys(
        &self,
        tenant: Option<&str>,
        after: Option<&str>,
        most: usize,
        wanted: impl Fn(&Key) -> bool,
    ) -> Result<Option<Vec<Key>>, RegistryError> {
        self.check_owner(tenant)?;
        self.database().read(|connection| {
            let number = "SELECT number FROM keys WHERE id = ?1";
            let before: i64 = match after {
                None => i64::MAX,
                Some(id) if find(connection, tenant, id)?.is_some_and(|(key, _)| wanted(&key)) => {
                    connection.query_row(number, [id], |row| row.get(0))?
                }
                Some(_) => return Ok(None),
            };
            let list = "WHERE tenant IS ?1 AND number < ?2 ORDER BY number DESC";
            let mut statement = connection.prepare_cached(&format!("SELECT {} FROM keys {list}", snapshot::KEY))?;
            let mut rows = statement.query((tenant, before))?;
            let mut keys = Vec::new();
            while let Some(row) = rows.next()?
                && keys.len() < most
            {
                let key = snapshot::key(row)?;
                keys.extend(wanted(&key).then_some(key));
            }
            Ok(Some(keys))
        })
    }

    /// One key, revoked or expired as it may be.
    pub fn key(&self, tenant: Option<&str>, id: &str) -> Result<Option<Key>, RegistryError> {
        self.check_owner(tenant)?;
        self.database().read(|connection| Ok(find(connection, tenant, id)?.map(|(key, _)| key)))
    }

    fn check_owner(&self, tenant: Option<&str>) -> Result<(), RegistryError> {
        match tenant.filter(|name| !self.directory().tenants.contains_key(*name)) {
            Some(name) => Err(RegistryError::not_found("tenant", name)),
            None => Ok(()),
        }
    }
}

/// Whose a key is.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    Operator,
    Tenant(&'a str),
}

impl<'a> Owner<'a> {
    fn of(tenant: Option<&'a str>) -> Owner<'a> {
        tenant.map_or(Owner::Operator, Owner::Tenant)
    }

    fn name(self) -> Option<&'a str> {
        match self {
            Owner::Operator => None,
            Owner::Tenant(name) => Some(name),
        }
    }

    fn check_room(self, connection: &Connection) -> Result<(), RegistryError> {
        let query = "SELECT count(*) FROM keys WHERE tenant IS ?1 AND revoked_at IS NULL";
        let count: i64 = connection.prepare_cached(query)?.query_row([self.name()], |row| row.get(0))?;
        if count < MOST_KEYS {
            return Ok(());
        }
        Err(RegistryError::Conflict {
            what: format!("there are {count} keys, which is the most"),
            hint: Some("revoke those that nobody needs any more".to_owned()),
        })
    }
}

fn check(new: &NewKey) -> Result<(), RegistryError> {
    let bad = |what: String| Err(RegistryError::BadValue { what });
    match (&new.tenant, new.role) {
        (None, Role::Operator) | (Some(_), Role::Admin | Role::Deploy | Role::Call) => {}
        (None, role) => return bad(format!("a key with the role `{role}` needs a tenant")),
        (Some(_), role) => return bad(format!("a key with the role `{role}` belongs to no tenant")),
    }
    if new.name.chars().count() > LONGEST_NAME || new.name.chars().any(char::is_control) {
        return bad(format!("the name of a key has at most {LONGEST_NAME} characters, all of them printable"));
    }
    if new.expires_at.is_some_and(|time| time > LAST_SECOND) {
        return bad("a key cannot expire after the year 9999".to_owned());
    }
    check_scope(&new.scope)?;
    check_quota(&new.quota)
}

fn check_scope(scope: &Scope) -> Result<(), RegistryError> {
    let names = || [&scope.servers, &scope.tools].into_iter().flatten().flatten();
    let bad = |what: String| Err(RegistryError::BadValue { what });
    if names().any(|name| name.len() > LONGEST_SCOPE) {
        return bad(format!("a name in a scope has at most {LONGEST_SCOPE} bytes"));
    }
    if names().map(|name| name.len() + BESIDE_NAME).sum::<usize>() > SCOPE_BYTES {
        return bad(format!(
            "the names of servers and tools in a scope have at most {SCOPE_BYTES} bytes together, with {BESIDE_NAME} more for each"
        ));
    }
    Ok(())
}

pub(crate) fn check_quota(quota: &Quota) -> Result<(), RegistryError> {
    for (name, value) in [("requests_per_s", quota.requests_per_s), ("cpu_s_per_min", quota.cpu_s_per_min)] {
        if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
            return Err(RegistryError::BadValue { what: format!("`{name}` must be a number from 0 on") });
        }
    }
    Ok(())
}

/// Adds a key to a change that is being made.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    maker: &Actor,
    owner: Owner<'_>,
    new: &NewKey,
    token: &Token,
) -> Result<(Key, TokenHash), RegistryError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random)?;
    let key = Key {
        id: format!("key-{}", hex::encode(random)),
        tenant: owner.name().map(str::to_owned),
        role: new.role,
        name: new.name.clone(),
        scope: new.scope.clone(),
        quota: new.quota.clone(),
        created_at: now(),
        expires_at: new.expires_at,
        revoked_at: None,
    };
    let hash = token_hash(token.expose());
    transaction
        .prepare_cached(
            "INSERT INTO keys (id, hash, tenant, role, name, scope, quota, created_at, expires_at, made_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute((
            &key.id,
            hash,
            &key.tenant,
            key.role.as_str(),
            &key.name,
            to_json(&key.scope)?,
            to_json(&key.quota)?,
            key.created_at,
            key.expires_at,
            &maker.0,
        ))?;
    Ok((key, hash))
}

fn find(connection: &Connection, tenant: Option<&str>, id: &str) -> Result<Option<(Key, TokenHash)>, RegistryError> {
    let query = format!("SELECT {}, hash FROM keys WHERE id = ?1 AND tenant IS ?2", snapshot::KEY);
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query((id, tenant))?;
    match rows.next()? {
        Some(row) => Ok(Some((snapshot::key(row)?, row.get("hash")?))),
        None => Ok(None),
    }
}

/// Nobody could ever make a key again if the last operator's was gone.
fn check_another_operator(connection: &Connection, id: &str) -> Result<(), RegistryError> {
    let query = "SELECT 1 FROM keys WHERE tenant IS NULL AND revoked_at IS NULL AND expires_at IS NULL AND id != ?1";
    if connection.query_row(query, [id], |_| Ok(())).optional()?.is_some() {
        return Ok(());
    }
    Err(RegistryError::Conflict {
        what: format!("`{id}` is the last operator's key that does not expire"),
        hint: Some("make another one first".to_owned()),
    })
}

fn event(actor: &Actor, key: &Key, action: &str, detail: Option<serde_json::Value>) -> ChangeEvent {
    ChangeEvent {
        tenant: key.tenant.clone(),
        actor: actor.0.clone(),
        action: action.to_owned(),
        subject: key.id.clone(),
        detail,
    }
}

/// What the audit log says of a new key.
pub(crate) fn detail(key: &Key) -> Option<serde_json::Value> {
    Some(serde_json::json!({
        "role": key.role, "name": key.name, "scope": key.scope, "quota": key.quota, "expires_at": key.expires_at,
    }))
}

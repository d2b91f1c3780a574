//! Whether what callers reach may change: one key is enough, or two parties have to agree.

use crate::{RegistryError, Tenant};
use rusqlite::{Connection, OptionalExtension};

/// Proof that a deployment may become current. Nothing becomes current without one, and only this file makes them.
pub(crate) struct Consent(());

/// Callers with a token of the issuer, beside keys.
const TOKEN: &str = "oauth:";

impl Consent {
    /// One key is enough, unless the tenant asks for two.
    pub(crate) fn of_one(tenant: &Tenant) -> Option<Consent> {
        (!tenant.approval).then_some(Consent(()))
    }

    /// Those who proposed it and those who agree are different parties.
    pub(crate) fn of_two(
        connection: &Connection,
        proposed: &[&str],
        agreed: &[&str],
    ) -> Result<Consent, RegistryError> {
        for one in proposed {
            for other in agreed {
                if one == other {
                    return Err(refused(format!("`{one}` proposed this deployment and cannot agree to it as well")));
                }
                if party(connection, one)? == party(connection, other)? {
                    let what = format!(
                        "`{one}` proposed this deployment, and `{other}` cannot agree to it: a key and the keys made with it count as one"
                    );
                    return Err(refused(what));
                }
            }
        }
        Ok(Consent(()))
    }
}

fn refused(what: String) -> RegistryError {
    let hint = "use a key that was not made with the other, nor by the same key: the tenant's first keys, or one that an operator makes";
    RegistryError::Forbidden { what, hint: Some(hint.to_owned()) }
}

/// The first key of those that made each other within a tenant, or among operators. Whoever made a key may have kept it, so
/// such keys prove nothing to each other. Keys that an operator made for a tenant are parties of their own.
fn party(connection: &Connection, id: &str) -> Result<String, RegistryError> {
    let key = |id: &str| -> Result<Option<(i64, Option<String>, String)>, RegistryError> {
        let query = "SELECT number, tenant, made_by FROM keys WHERE id = ?1";
        let mut statement = connection.prepare_cached(query)?;
        Ok(statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?)
    };
    let Some(mut at) = key(id)? else { return Ok(id.to_owned()) };
    let mut id = id.to_owned();
    loop {
        let (number, tenant, maker) = &at;
        if maker.starts_with(TOKEN) {
            return Ok(maker.clone());
        }
        match key(maker)? {
            Some(made) if made.1 == *tenant && made.0 < *number => (id, at) = (maker.clone(), made),
            _ => return Ok(id),
        }
    }
}

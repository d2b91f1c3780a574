//! What is uploaded, and whether it may go on to a wall.

use super::super::error::Error;
use super::super::schema;
use axum::http::StatusCode;
use bundle::{Drift, KeyId, Lock, MacKey, Refused, Seal, canonical};
use bytes::Bytes;
use registry::{Deployment, Directory, NewDeployment, Next, Registry, RegistryError, Role};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeploymentOrder {
    #[schema(value_type = schema::Lock)]
    lock: Box<RawValue>,
    #[schema(value_type = schema::Seal)]
    seal: Box<RawValue>,
    /// Text of each file that the lock names, by its path: the code, and `bulkhead.toml`.
    #[serde(deserialize_with = "few")]
    files: BTreeMap<String, String>,
}

/// What is parsed takes many times its length; a lock has at most half of this.
const MOST_JSON: usize = 2 << 20;
const MOST_FILES: usize = 1000;

/// A small value takes little of a body and much of the memory, so they are counted while they are read.
fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Few;
    impl<'de> Visitor<'de> for Few {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MOST_FILES} files")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut files = BTreeMap::new();
            while let Some((path, text)) = map.next_entry()? {
                files.insert(path, text);
                if files.len() > MOST_FILES {
                    return Err(A::Error::custom(format!("there are more than {MOST_FILES} files")));
                }
            }
            Ok(files)
        }
    }
    deserializer.deserialize_map(Few)
}

fn parsed(text: &RawValue) -> Result<Value, Error> {
    if text.get().len() > MOST_JSON {
        return Err(Error::bad_body(format!("a lock or a seal has more than {MOST_JSON} bytes")));
    }
    serde_json::from_str(text.get()).map_err(|error| Error::bad_body(error.to_string()))
}

/// An upload whose seal, files and manifest agree.
pub struct Upload {
    pub lock: Lock,
    seal: Seal,
    files: BTreeMap<String, Bytes>,
}

/// What is to be done with it.
pub enum Accepted {
    /// It is what runs already.
    Known(Arc<Deployment>),
    New {
        id: String,
        new: Box<NewDeployment>,
    },
}

impl Upload {
    pub fn read(order: DeploymentOrder, tenant: &str, server: &str, registry: &Registry) -> Result<Upload, Error> {
        let lock = Lock::parse(&canonical(&parsed(&order.lock)?)).map_err(|error| refused(&error.into()))?;
        let seal = seal(&parsed(&order.seal)?)?;
        if lock.server.as_str() != server {
            let message = format!("the lock is for the server `{}`, this is `{server}`", lock.server);
            return Err(refused(&Refused::Differs(message)));
        }
        let (id, key) = sealing_key(&registry.directory(), tenant, server, &seal)?;
        let files = order.files.into_iter().map(|(path, text)| (path, Bytes::from(text))).collect();
        bundle::verify(&lock, &seal, &files, &id, &key).map_err(|error| refused(&error))?;
        Ok(Upload { lock, seal, files })
    }
}

pub fn seal(value: &Value) -> Result<Seal, Error> {
    Seal::parse(&canonical(value)).map_err(|error| refused(&error.into()))
}

pub fn refused(refused: &Refused) -> Error {
    let error = Error::new(StatusCode::UNPROCESSABLE_ENTITY, refused.code(), refused.to_string());
    error.hint("nothing was changed; `bulkhead deploy` makes, signs and uploads what belongs together")
}

/// The key that a seal names, if it is one that may deploy this server now. That it was really used is yet to be verified.
pub fn sealing_key(directory: &Directory, tenant: &str, server: &str, seal: &Seal) -> Result<(KeyId, MacKey), Error> {
    let found = seal.key().and_then(|id| {
        let (hash, key) = directory.keys.iter().find(|(_, key)| key.id == id.as_str())?;
        let caller = crate::auth::Caller::of_key(key);
        let expired = key.expires_at.is_some_and(|at| at <= registry::now());
        let may = caller.of_tenant(tenant) && caller.may_use_server(server);
        let deploys = super::super::access::at_least(key.role, Role::Deploy);
        (may && deploys && !expired).then(|| (id.clone(), MacKey::from_token_hash(hash)))
    });
    found.ok_or_else(|| {
        let message = "the lock is not sealed with a key that may deploy this server";
        Error::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_signature", message)
            .hint("seal it with a deploy key of this tenant that is neither revoked nor expired")
    })
}

/// Compares with what is deployed: it must be made for the next step, and its author must have agreed to every difference.
pub fn fits(registry: &Registry, tenant: &str, upload: Upload) -> Result<Result<Accepted, Error>, RegistryError> {
    let Upload { lock, seal, files } = upload;
    let id = registry.deployment_id(tenant, &lock)?;
    let Next { step, current } = registry.next(tenant, lock.server.as_str())?;
    let quarantined = || {
        let directory = registry.directory();
        directory.server(tenant, lock.server.as_str()).is_some_and(|server| server.quarantine.is_some())
    };
    if let Some(current) = current.as_ref().filter(|current| current.id == id)
        && !quarantined()
    {
        return Ok(Ok(Accepted::Known(current.clone())));
    }
    lock.follows(step, current.as_ref().map(|current| current.lock)).map_err(RegistryError::Replayed)?;
    let changes = match &current {
        Some(current) => Drift::between(&registry.lock(tenant, lock.server.as_str(), &current.id)?.0, &lock),
        None => Vec::new(),
    };
    if Drift::digest(&changes) != lock.step.accepts {
        let message = match changes.as_slice() {
            [] => "the lock agrees to changes, and there are none".to_owned(),
            [one] => format!("it differs from what is deployed, and nobody agreed to that: {one}"),
            [first, ..] => format!("it differs in {} places, and nobody agreed to them: {first} …", changes.len()),
        };
        let error = Error::new(StatusCode::CONFLICT, "surface_drift", message);
        let hint = "look at the differences, and sign them: `bulkhead deploy --accept-surface`";
        return Ok(Err(error.hint(hint).changes(&changes)));
    }
    let (surface, layer) = (Box::<RawValue>::default(), lock.layer());
    let new = NewDeployment { tenant: tenant.to_owned(), lock, seal, files, layer, surface };
    Ok(Ok(Accepted::New { id, new: Box::new(new) }))
}

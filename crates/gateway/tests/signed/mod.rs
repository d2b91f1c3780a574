//! Uploads as an author makes them: a manifest and a source, locked and sealed.
#![allow(dead_code, reason = "no test file uses all of it")]

use bundle::{Drift, Lock, MacKey, Manifest, Seal, Step, Surface};
use bytes::Bytes;
use registry::{NewDeployment, Next, Registry};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is about to be uploaded.
#[derive(Clone, Debug)]
pub struct Draft {
    pub lock: Lock,
    pub files: BTreeMap<String, String>,
    pub surface: String,
}

/// A server of one file that fits what the registry has, every difference agreed to. `more` goes into its manifest.
pub fn draft(registry: &Registry, tenant: &str, server: &str, source: &str, more: &str, surface: &str) -> Draft {
    let text = format!("name = \"a\"\nentry = \"server.js\"\n{more}");
    let mut manifest = Manifest::parse(text.as_bytes()).unwrap();
    manifest.name = server.parse().unwrap();
    let files: BTreeMap<String, String> =
        [("bulkhead.toml", text), ("server.js", source.to_owned())].map(|(path, text)| (path.to_owned(), text)).into();
    let Next { step: number, current } = registry.next(tenant, server).unwrap();
    let shown = Surface::new(serde_json::from_str(surface).unwrap()).unwrap();
    let step = Step { number, previous: current.as_ref().map(|current| current.lock), accepts: None };
    let mut lock =
        Lock::new(&manifest, shown, bundle::Program::Module { entry: "server.js".parse().unwrap() }, &files, step)
            .unwrap();
    if let Some(current) = current {
        let (before, _) = registry.lock(tenant, server, &current.id).unwrap();
        lock.step.accepts = Drift::digest(&Drift::between(&before, &lock));
    }
    Draft { lock, files, surface: surface.to_owned() }
}

/// Sealed with a key that the registry knows.
pub fn seal(registry: &Registry, lock: &Lock, token: &str) -> Seal {
    let id = registry.directory().keys[&registry::token_hash(token)].id.clone();
    let mut seal = Seal::new(lock);
    seal.authenticate(id.parse().unwrap(), &MacKey::from_token(token));
    seal
}

impl Draft {
    /// The body of an upload.
    pub fn order(&self, registry: &Registry, token: &str) -> Value {
        json!({ "lock": self.lock.value(), "seal": seal(registry, &self.lock, token).value(), "files": self.files })
    }

    /// For the registry, past the host that would verify it.
    pub fn deployment(self, registry: &Registry, tenant: &str, token: &str) -> NewDeployment {
        NewDeployment {
            tenant: tenant.to_owned(),
            seal: seal(registry, &self.lock, token),
            layer: self.lock.layer(),
            lock: self.lock,
            files: self.files.into_iter().map(|(path, text)| (path, Bytes::from(text))).collect(),
            surface: RawValue::from_string(self.surface).unwrap(),
        }
    }
}

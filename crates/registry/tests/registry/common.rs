//! What the tests share.

use bundle::{Lock, MacKey, Seal, Step, Surface};
use bytes::Bytes;
use registry::{
    Actor, AuditEvent, CallEvent, Deployment, NewDeployment, NewKey, Next, Quota, Registry, RegistryError, Role, Scope,
};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A registry in a directory that goes away with it.
pub struct Fresh {
    pub registry: Registry,
    pub dir: TempDir,
}

pub fn fresh() -> Fresh {
    let dir = tempfile::tempdir().unwrap();
    Fresh { registry: Registry::open(dir.path()).unwrap(), dir }
}

impl Fresh {
    /// Ends the host and starts another one.
    pub fn reopen(self) -> Fresh {
        let Fresh { registry, dir } = self;
        drop(registry);
        Fresh { registry: Registry::open(dir.path()).unwrap(), dir }
    }

    /// Ends the host; the directory stays.
    pub fn stop(self) -> TempDir {
        self.dir
    }
}

pub fn actor() -> Actor {
    Actor("key-of-the-test".to_owned())
}

const SURFACE: &str = r#"{"tools":[]}"#;

/// A deployment that fits what is there, sealed with a key that need not exist.
pub fn deployment(registry: &Registry, tenant: &str, server: &str, source: &str) -> NewDeployment {
    sealed(registry, tenant, server, source, "", "key-of-the-test", "a token")
}

/// The same, with more in its manifest and a key that the registry may know.
pub fn sealed(
    registry: &Registry,
    tenant: &str,
    server: &str,
    source: &str,
    more: &str,
    key: &str,
    token: &str,
) -> NewDeployment {
    let text = format!("name = \"prices\"\nentry = \"server.js\"\n{more}");
    let mut manifest = bundle::Manifest::parse(text.as_bytes()).unwrap();
    if let Ok(server) = server.parse() {
        manifest.name = server;
    }
    let files: BTreeMap<String, Bytes> = [("bulkhead.toml", text), ("server.js", source.to_owned())]
        .map(|(path, text)| (path.to_owned(), Bytes::from(text)))
        .into();
    let step = match registry.next(tenant, server) {
        Ok(Next { step, current }) => {
            Step { number: step, previous: current.map(|current| current.lock), accepts: None }
        }
        Err(_) => Step::default(),
    };
    let surface = Surface::new(serde_json::from_str(SURFACE).unwrap()).unwrap();
    let lock =
        Lock::new(&manifest, surface, bundle::Program::Module { entry: "server.js".parse().unwrap() }, &files, step)
            .unwrap();
    let mut seal = Seal::new(&lock);
    seal.authenticate(key.parse().unwrap(), &MacKey::from_token(token));
    let surface = RawValue::from_string(SURFACE.to_owned()).unwrap();
    NewDeployment { tenant: tenant.to_owned(), lock, seal, files, layer: None, surface }
}

pub fn deploy(registry: &Registry, tenant: &str, server: &str, source: &str) -> Result<Arc<Deployment>, RegistryError> {
    registry.deploy(&actor(), deployment(registry, tenant, server, source))
}

/// With a key that the registry knows.
pub fn deploy_well(registry: &Registry, tenant: &str, server: &str, source: &str) -> Arc<Deployment> {
    let (key, token) = registry.create_key(&actor(), NewKey { role: Role::Deploy, ..call_key(tenant, "d") }).unwrap();
    let new = sealed(registry, tenant, server, source, "", &key.id, token.expose());
    registry.deploy(&actor(), new).unwrap()
}

pub fn call_key(tenant: &str, name: &str) -> NewKey {
    NewKey {
        tenant: Some(tenant.to_owned()),
        role: Role::Call,
        name: name.to_owned(),
        scope: Scope::default(),
        quota: Quota::default(),
        expires_at: None,
    }
}

pub fn call(tenant: &str, server: &str, outcome: &str) -> AuditEvent {
    AuditEvent::Call(CallEvent {
        tenant: tenant.to_owned(),
        server: server.to_owned(),
        caller: "key-1234".to_owned(),
        method: "tools/call".to_owned(),
        name: "double_price".to_owned(),
        deployment: "d".repeat(32),
        wall: "isolate".to_owned(),
        boundary: "call".to_owned(),
        outcome: outcome.to_owned(),
        arguments_sha256: "a".repeat(64),
        ..CallEvent::default()
    })
}

pub fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir.join("audit")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// All lines of the audit log, parsed.
pub fn audit_lines(dir: &Path) -> Vec<serde_json::Value> {
    let text: String = segments(dir).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until something is so, and fails when it never is.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("never: {what}");
}

/// How a refusal is called; `ok` where there is none.
pub fn code<T>(result: Result<T, registry::RegistryError>) -> &'static str {
    result.err().map_or("ok", |error| error.code())
}

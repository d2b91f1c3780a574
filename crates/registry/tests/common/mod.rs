//! What the tests share.
#![allow(dead_code)] // each of them uses some of it

use bytes::Bytes;
use registry::{Actor, AuditEvent, CallEvent, Manifest, NewDeployment, NewKey, Quota, Registry, Role, Scope};
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};
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

pub fn deployment(tenant: &str, server: &str, source: &str) -> NewDeployment {
    NewDeployment {
        tenant: tenant.to_owned(),
        server: server.to_owned(),
        source: Bytes::copy_from_slice(source.as_bytes()),
        manifest: Manifest::default(),
        surface: RawValue::from_string(r#"{"tools":[]}"#.to_owned()).unwrap(),
    }
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

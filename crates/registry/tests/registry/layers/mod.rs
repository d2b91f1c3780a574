//! Layers: what was uploaded lies there as it was, and nothing else ever runs.

mod damage;
mod life;
mod uploads;

use crate::common::{Fresh, actor, call_key, fresh};
use crate::vault::{code, database};
use bundle::{Digest, File, LAYER, Layer, LayerEntry, Lock, MacKey, Manifest, Seal, Step, Surface};
use bytes::Bytes;
use registry::{Deployment, NewDeployment, NewKey, OpenOptions, Registry, RegistryError, Role};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const SURFACE: &str = r#"{"tools":[]}"#;

/// What a small package looks like, with something that tells it from others.
fn package(mark: &str) -> (Layer, Vec<u8>) {
    let cli = format!("#!/bin/sh\necho {mark}\n");
    layer(&[
        ("node_modules/.bin/run", Is::Link("../@scope/pkg/cli.js")),
        ("node_modules/@scope/pkg/cli.js", Is::Program(&cli)),
        ("node_modules/@scope/pkg/docs/läs [mig].md", Is::Text("hej")),
        ("node_modules/self", Is::Link("..")),
        ("empty", Is::Text("")),
        ("server.js", Is::Text(mark)),
    ])
}

enum Is<'a> {
    Text(&'a str),
    Program(&'a str),
    Link(&'a str),
}

/// A layer, and how it is uploaded.
fn layer(entries: &[(&str, Is)]) -> (Layer, Vec<u8>) {
    let file = |text: &str, executable| {
        let File { sha256, size } = File::of(text.as_bytes());
        LayerEntry::File { sha256, size, executable }
    };
    let made = Layer::new(entries.iter().map(|(path, is)| {
        let entry = match is {
            Is::Text(text) => file(text, false),
            Is::Program(text) => file(text, true),
            Is::Link(target) => LayerEntry::Link(target.parse().unwrap()),
        };
        (path.parse().unwrap(), entry)
    }));
    let made = made.unwrap();
    let mut upload = made.head();
    for (path, _) in made.entries() {
        let (_, is) = entries.iter().find(|(each, _)| *each == path.as_str()).unwrap();
        if let Is::Text(text) | Is::Program(text) = is {
            upload.extend(text.as_bytes());
        }
    }
    (made, upload)
}

/// A host with the tenants `acme` and `other`.
fn host() -> Fresh {
    let host = fresh();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    host.registry.create_tenant(&actor(), "other").unwrap();
    host
}

fn receive(registry: &Registry, tenant: &str, (layer, upload): &(Layer, Vec<u8>)) -> Result<bool, RegistryError> {
    registry.receive_layer(tenant, &layer.digest(), &upload[..]).map(|received| {
        assert_eq!((received.digest, received.size), (layer.digest(), layer.size()));
        received.new
    })
}

/// A deployment that runs in a layer, with a key that the registry knows.
fn program(registry: &Registry, tenant: &str, server: &str, layer: &Layer, mark: &str) -> NewDeployment {
    let (key, token) = registry.create_key(&actor(), NewKey { role: Role::Deploy, ..call_key(tenant, "d") }).unwrap();
    let text = format!("name = \"{server}\"\nwall = \"process\"\ncommand = [\"sh\", \"{mark}\"]\n");
    let manifest = Manifest::parse(text.as_bytes()).unwrap();
    let files: BTreeMap<String, Bytes> = [("bulkhead.toml", text.into_bytes()), (LAYER, layer.bytes().to_vec())]
        .map(|(path, bytes)| (path.to_owned(), Bytes::from(bytes)))
        .into();
    let next = registry.next(tenant, server).unwrap();
    let step = Step { number: next.step, previous: next.current.map(|current| current.lock), accepts: None };
    let surface = Surface::new(serde_json::from_str(SURFACE).unwrap()).unwrap();
    let lock = Lock::new(&manifest, surface, manifest.program.clone(), &files, step).unwrap();
    let mut seal = Seal::new(&lock);
    seal.authenticate(key.id.parse().unwrap(), &MacKey::from_token(token.expose()));
    let surface = RawValue::from_string(SURFACE.to_owned()).unwrap();
    let layer = Some(layer.digest());
    NewDeployment { tenant: tenant.to_owned(), lock, seal, files, layer, surface }
}

fn deploy(
    registry: &Registry,
    tenant: &str,
    server: &str,
    layer: &Layer,
    mark: &str,
) -> Result<Arc<Deployment>, RegistryError> {
    registry.deploy(&actor(), program(registry, tenant, server, layer, mark))
}

/// Everything below `layers`, and what of it is no tenant's.
fn found(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for home in fs::read_dir(dir.join("layers")).unwrap().map(|entry| entry.unwrap()) {
        let inside = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let staging = home.file_name() == "staging";
        found.extend(inside.map(|name| if staging { format!("staging/{name}") } else { name }));
    }
    found.sort();
    found
}

fn names(layers: &[&Layer]) -> Vec<String> {
    let mut names: Vec<_> = layers.iter().map(|layer| layer.digest().to_string()).collect();
    names.sort();
    names
}

/// As if every upload were long ago.
fn age(dir: &Path) {
    database(dir).execute("UPDATE layers SET created_at = created_at - 3601", []).unwrap();
}

/// Does something once, when so many bytes are left to read.
struct Pause<F: FnOnce()> {
    left: Cursor<Vec<u8>>,
    at: u64,
    then: Option<F>,
}

impl<F: FnOnce()> Pause<F> {
    /// In the midst of the files.
    fn new((layer, upload): &(Layer, Vec<u8>), then: F) -> Pause<F> {
        Pause { left: Cursor::new(upload.clone()), at: layer.head().len() as u64 + 1, then: Some(then) }
    }
}

impl<F: FnOnce()> Read for Pause<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left.position() >= self.at
            && let Some(then) = self.then.take()
        {
            then();
        }
        let some = into.len().min(1 + self.at.saturating_sub(self.left.position()) as usize);
        self.left.read(&mut into[..some])
    }
}

struct Never;

impl Read for Never {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("nobody should read this")
    }
}

/// The process that a test starts: the test itself again, told so by this variable.
fn child() -> bool {
    let Ok(dir) = std::env::var("REGISTRY_TEST_LAYERS") else { return false };
    let registry = Registry::open(Path::new(&dir)).unwrap();
    if registry.directory().tenants.is_empty() {
        registry.create_tenant(&actor(), "acme").unwrap();
    }
    let endless = std::env::var_os("REGISTRY_TEST_ENDLESS").is_some();
    let process = std::process::id();
    for number in 0..if endless { u64::MAX } else { 1 } {
        let one = package(&format!("{process} {number}"));
        // A slow one, so that most of its time it is half there.
        registry
            .receive_layer("acme", &one.0.digest(), Pause::new(&one, || std::thread::sleep(Duration::from_millis(3))))
            .unwrap();
        registry.layer("acme", &one.0.digest()).unwrap();
        if number % 3 == 1 {
            deploy(&registry, "acme", "time", &one.0, "x").unwrap();
        }
        if number % 5 == 4 {
            age(Path::new(&dir));
            registry.delete_server(&actor(), "acme", "time").unwrap();
        }
        println!("\ndone");
    }
    true
}

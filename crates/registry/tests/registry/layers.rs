//! Layers: what was uploaded lies there as it was, and nothing else ever runs.

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
    NewDeployment { tenant: tenant.to_owned(), lock, seal, files, layer, surface, pending: false }
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

#[test]
fn a_layer_lies_there_as_it_was() {
    let host = host();
    let (layer, upload) = package("one");
    let digest = layer.digest();
    assert_eq!(host.registry.layer_size("acme", &digest).unwrap(), None);
    assert_eq!(code(host.registry.layer("acme", &digest)), "not_found");
    assert!(receive(&host.registry, "acme", &(layer.clone(), upload)).unwrap());
    let again = host.registry.receive_layer("acme", &digest, Never).unwrap();
    assert_eq!((again.size, again.new), (layer.size(), false));

    let host = host.reopen();
    assert_eq!(host.registry.layer_size("acme", &digest).unwrap(), Some(layer.size()));
    let folder = host.registry.layer("acme", &digest).unwrap();
    assert!(folder.starts_with(host.dir.path().join("layers")));
    assert_eq!(fs::read_to_string(folder.join("node_modules/self/server.js")).unwrap(), "one");
    assert_eq!(fs::read_to_string(folder.join("node_modules/.bin/run")).unwrap(), "#!/bin/sh\necho one\n");
    assert_eq!(fs::read_link(folder.join("node_modules/.bin/run")).unwrap(), Path::new("../@scope/pkg/cli.js"));
    let ran = Command::new(folder.join("node_modules/.bin/run")).output().unwrap();
    assert_eq!(ran.stdout, b"one\n");
    let mode = |name: &str| fs::symlink_metadata(folder.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("server.js"), mode("node_modules/@scope/pkg/cli.js")), (0o644, 0o755));
    assert_eq!((mode(""), mode("node_modules/@scope")), (0o755, 0o755));
    assert_eq!(found(host.dir.path()), names(&[&layer]));
}

/// Not a test of its own.
#[test]
fn child() {
    let Ok(dir) = std::env::var("REGISTRY_TEST_LAYERS") else { return };
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
}

#[test]
fn whatever_the_umask() {
    for umask in ["000", "077"] {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new("sh")
            .args(["-c", &format!(r#"umask {umask}; exec "$0" --exact layers::child --nocapture"#)])
            .arg(std::env::current_exe().unwrap())
            .env("REGISTRY_TEST_LAYERS", dir.path().join("data"))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{umask}");
        let homes = dir.path().join("data/layers");
        assert_eq!(fs::metadata(homes).unwrap().permissions().mode() & 0o777, 0o700, "{umask}");
    }
}

/// Every folder has its row and is whole, whenever the host is killed.
#[test]
fn a_killed_host_leaves_whole_layers() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "layers::child", "--nocapture"])
            .env("REGISTRY_TEST_LAYERS", dir.path())
            .env("REGISTRY_TEST_ENDLESS", "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Some moment after so many layers.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut done = lines.map(Result::unwrap).filter(|line| line == "done");
        (0..2 + round % 5).for_each(|_| drop(done.next().unwrap()));
        std::thread::sleep(Duration::from_millis(round * 11 % 40));
        child.kill().unwrap();
        child.wait().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let rows: Vec<String> = rows(dir.path());
        assert_eq!(found(dir.path()), rows);
        for digest in &rows {
            registry.layer("acme", &digest.parse().unwrap()).unwrap();
        }
        if let Some(current) = registry.directory().server("acme", "time").and_then(|server| server.current.clone()) {
            registry.bundle("acme", "time", &current.id).unwrap();
        }
        seen += rows.len();
    }
    assert!(seen > 8, "there was hardly anything to see: {seen}");
}

fn rows(dir: &Path) -> Vec<String> {
    let database = database(dir);
    let mut rows = database.prepare("SELECT digest FROM layers ORDER BY digest").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_broken_upload_leaves_nothing() {
    let host = host();
    let whole = package("one");
    let (layer, upload) = &whole;
    let digest = layer.digest();
    let refused = |what: &str, digest: &Digest, upload: &[u8]| {
        let error =
            host.registry.receive_layer("acme", digest, upload).err().unwrap_or_else(|| panic!("taken: {what}"));
        assert_eq!(error.code(), "bad_value", "{what}: {error}");
        assert_eq!(found(host.dir.path()), [""; 0], "{what}");
        assert_eq!(host.registry.layer_size("acme", digest).unwrap(), None, "{what}");
        error.to_string()
    };
    let head = layer.head().len();
    for length in [0, 3, 4, 5, head - 1, head, head + 1, upload.len() - 1] {
        assert!(refused("cut short", &digest, &upload[..length]).contains("broke off"));
    }
    assert!(refused("more", &digest, &[upload, &b"x"[..]].concat()).contains("more than"));
    assert!(refused("another digest", &Digest::new([1; 32]), upload).contains("digest"));
    for at in [4, head / 2, head - 1] {
        let mut changed = upload.clone();
        changed[at] ^= 1;
        assert!(refused("another index", &digest, &changed).contains("digest"));
    }
    for at in [head, upload.len() - 1] {
        let mut changed = upload.clone();
        changed[at] ^= 1;
        assert!(refused("another file", &digest, &changed).contains("is not the one of the index"));
    }
    for length in [u32::MAX, (16 << 20) + 1] {
        assert!(refused("a large index", &digest, &length.to_be_bytes()).contains("at most"));
    }
    let error = host.registry.receive_layer("acme", &digest, upload[..head].chain(Broken)).unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
    assert_eq!(found(host.dir.path()), [""; 0]);
    assert!(receive(&host.registry, "acme", &whole).unwrap(), "and the whole one is taken after all");
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::TimedOut.into())
    }
}

#[test]
fn a_hostile_index_writes_nothing() {
    let host = host();
    let file = format!(r#"{{"executable":false,"sha256":"{}","size":1}}"#, File::of(b"x").sha256);
    let outside = host.dir.path().join("outside").to_str().unwrap().to_owned();
    let entries = [
        format!(r#""../outside":{file}"#),
        format!(r#""../../../outside":{file}"#),
        format!(r#""{outside}":{file}"#),
        format!(r#""a/../../outside":{file}"#),
        format!(r#""a":{{"link":"../.."}},"a/outside":{file}"#),
        format!(r#""a":{{"link":"b"}},"a/outside":{file}"#),
        format!(r#""a":{{"link":"{outside}"}}"#),
        r#""a":{"link":"../outside"}"#.to_owned(),
        r#""a/b":{"link":"c/../../.."}"#.to_owned(),
        format!(r#""a":{file},"a/b":{file}"#),
        format!(r#""a":{file},"a":{file}"#),
        format!(r#""a\u0000b":{file}"#),
    ];
    for entry in entries {
        let index = format!(r#"{{"files":{{{entry}}},"version":1}}"#).into_bytes();
        let digest = File::of(&index).sha256;
        let upload = [&(index.len() as u32).to_be_bytes(), &index[..], b"xx"].concat();
        assert_eq!(code(host.registry.receive_layer("acme", &digest, &upload[..])), "bad_value", "{entry}");
        assert_eq!(found(host.dir.path()), [""; 0], "{entry}");
    }
    assert!(!Path::new(&outside).exists() && !host.dir.path().join("layers/outside").exists());
}

/// Whatever is changed on the disk, it is not run.
#[test]
fn what_was_changed_on_the_disk_is_found() {
    let server = |folder: &Path| folder.join("server.js");
    let chmod = |path: PathBuf, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let relink = |folder: &Path, name: &str, target: &str| {
        let _ = fs::remove_file(folder.join(name)).or_else(|_| fs::remove_dir_all(folder.join(name)));
        symlink(target, folder.join(name)).unwrap();
    };
    type Harm<'a> = (&'a str, Box<dyn Fn(&Path) + 'a>);
    let harms: Vec<Harm<'_>> = vec![
        ("a byte", Box::new(|folder| fs::write(server(folder), "onf").unwrap())),
        ("a byte more", Box::new(|folder| fs::write(server(folder), "one ").unwrap())),
        ("no bytes", Box::new(|folder| fs::write(server(folder), "").unwrap())),
        ("bytes where there were none", Box::new(|folder| fs::write(folder.join("empty"), "x").unwrap())),
        ("a missing file", Box::new(|folder| fs::remove_file(server(folder)).unwrap())),
        ("a missing link", Box::new(|folder| fs::remove_file(folder.join("node_modules/self")).unwrap())),
        ("an additional file", Box::new(|folder| fs::write(folder.join("node_modules/sitecustomize.py"), "").unwrap())),
        ("an additional folder", Box::new(|folder| fs::create_dir(folder.join("lib")).unwrap())),
        ("an additional link", Box::new(|folder| relink(folder, "lib", "node_modules"))),
        (
            "a name that is no text",
            Box::new(|folder| {
                use std::os::unix::ffi::OsStrExt;
                fs::write(folder.join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
            }),
        ),
        ("a file that others may write", Box::new(|folder| chmod(server(folder), 0o646))),
        ("a file that can be run", Box::new(|folder| chmod(server(folder), 0o755))),
        ("a setuid file", Box::new(|folder| chmod(folder.join("node_modules/@scope/pkg/cli.js"), 0o4755))),
        ("a folder that others may write", Box::new(|folder| chmod(folder.join("node_modules"), 0o777))),
        ("the same of all of it", Box::new(|folder| chmod(folder.to_owned(), 0o775))),
        ("another link", Box::new(|folder| relink(folder, "node_modules/.bin/run", "../../server.js"))),
        ("a link outside", Box::new(|folder| relink(folder, "node_modules/.bin/run", "/bin/sh"))),
        (
            "a file for a link",
            Box::new(|folder| {
                fs::remove_file(folder.join("node_modules/self")).unwrap();
                fs::write(folder.join("node_modules/self"), "..").unwrap();
            }),
        ),
        (
            "a link for a file",
            Box::new(|folder| {
                fs::rename(server(folder), folder.parent().unwrap().join("elsewhere")).unwrap();
                symlink("../elsewhere", server(folder)).unwrap();
            }),
        ),
        (
            "a pipe for a file",
            Box::new(|folder| {
                fs::remove_file(folder.join("empty")).unwrap();
                assert!(
                    Command::new("mkfifo").args(["-m", "644"]).arg(folder.join("empty")).status().unwrap().success()
                );
            }),
        ),
        (
            "a link for a folder",
            Box::new(|folder| {
                let scope = folder.join("node_modules/@scope");
                fs::rename(&scope, folder.parent().unwrap().join("scope")).unwrap();
                symlink("../../scope", scope).unwrap();
            }),
        ),
        (
            "a folder for a file",
            Box::new(|folder| {
                fs::remove_file(server(folder)).unwrap();
                fs::create_dir(server(folder)).unwrap();
            }),
        ),
        (
            "another index",
            Box::new(|folder| {
                fs::write(folder.with_file_name(LAYER), r#"{"files":{},"version":1}"#).unwrap();
            }),
        ),
        ("an index that is a link", Box::new(|folder| relink(folder.parent().unwrap(), LAYER, "/dev/zero"))),
        ("no index", Box::new(|folder| fs::remove_file(folder.with_file_name(LAYER)).unwrap())),
        ("no files", Box::new(|folder| fs::remove_dir_all(folder).unwrap())),
    ];
    for (what, harm) in harms {
        let host = host();
        let one = package("one");
        receive(&host.registry, "acme", &one).unwrap();
        let deployed = deploy(&host.registry, "acme", "time", &one.0, "x").unwrap();
        let folder = host.registry.layer("acme", &one.0.digest()).unwrap();
        harm(&folder);
        assert_eq!(code(host.registry.layer("acme", &one.0.digest())), "corrupt", "{what}");
        assert_eq!(code(host.registry.bundle("acme", "time", &deployed.id)), "corrupt", "{what}");
    }
}

#[test]
fn a_layer_that_was_lost_can_be_uploaded_again() {
    let host = host();
    let one = package("one");
    receive(&host.registry, "acme", &one).unwrap();
    let deployed = deploy(&host.registry, "acme", "time", &one.0, "x").unwrap();
    let folder = host.registry.layer("acme", &one.0.digest()).unwrap();
    fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    assert_eq!(code(host.registry.bundle("acme", "time", &deployed.id)), "corrupt");
    assert_eq!(host.registry.layer_size("acme", &one.0.digest()).unwrap(), None);
    assert!(receive(&host.registry, "acme", &one).unwrap());
    assert_eq!(host.registry.bundle("acme", "time", &deployed.id).unwrap().layer, Some(folder));
    // What was there without anybody knowing is replaced by what comes.
    database(host.dir.path()).execute_batch("PRAGMA foreign_keys = off; DELETE FROM layers").unwrap();
    assert_eq!(code(host.registry.bundle("acme", "time", &deployed.id)), "corrupt");
    assert!(receive(&host.registry, "acme", &one).unwrap());
    assert_eq!(code(host.registry.bundle("acme", "time", &deployed.id)), "ok");
}

#[test]
fn a_program_is_deployed_with_its_layer_or_not_at_all() {
    let host = host();
    let registry = &host.registry;
    let one = package("one");
    let error = deploy(registry, "acme", "time", &one.0, "x").unwrap_err();
    assert_eq!(error.code(), "conflict");
    assert!(error.hint().unwrap().contains("upload it first"), "{error:?}");
    assert!(registry.directory().server("acme", "time").is_none());
    receive(registry, "acme", &one).unwrap();
    let new = program(registry, "acme", "time", &one.0, "x");
    for layer in [None, Some(Digest::new([1; 32]))] {
        assert_eq!(code(registry.deploy(&actor(), NewDeployment { layer, ..new.clone() })), "bad_value");
    }
    let deployed = registry.deploy(&actor(), new.clone()).unwrap();
    let files: usize = new.files.values().map(|file| file.len()).sum();
    assert_eq!(deployed.size, files as u64 + one.0.size());
    assert_eq!(deployed.digest, one.0.digest().to_string());
    let bundle = registry.bundle("acme", "time", &deployed.id).unwrap();
    assert_eq!((bundle.source.len(), bundle.lock.layer()), (0, Some(one.0.digest())));
    assert_eq!(bundle.layer, Some(registry.layer("acme", &one.0.digest()).unwrap()));
    let host = host.reopen();
    assert_eq!(host.registry.bundle("acme", "time", &deployed.id).unwrap().layer, bundle.layer);
}

#[test]
fn nobody_reaches_the_layer_of_another() {
    let host = host();
    let registry = &host.registry;
    let one = package("one");
    receive(registry, "acme", &one).unwrap();
    assert_eq!(registry.layer_size("other", &one.0.digest()).unwrap(), None);
    assert_eq!(code(registry.layer("other", &one.0.digest())), "not_found");
    assert_eq!(code(deploy(registry, "other", "time", &one.0, "x")), "conflict");
    for tenant in ["nobody", "", "..", "acme/../acme"] {
        assert_eq!(code(registry.layer_size(tenant, &one.0.digest())), "not_found");
        assert_eq!(code(registry.layer(tenant, &one.0.digest())), "not_found");
        assert_eq!(code(registry.receive_layer(tenant, &one.0.digest(), Never)), "not_found");
    }
    assert!(receive(registry, "other", &one).unwrap(), "its own, from its own bytes");
    let folders = ["acme", "other"].map(|tenant| registry.layer(tenant, &one.0.digest()).unwrap());
    assert_ne!(folders[0], folders[1]);
    fs::write(folders[0].join("server.js"), "two").unwrap();
    assert_eq!(code(registry.layer("acme", &one.0.digest())), "corrupt");
    assert_eq!(code(registry.layer("other", &one.0.digest())), "ok");
    registry.delete_tenant(&actor(), "acme").unwrap();
    assert_eq!(found(host.dir.path()), names(&[&one.0]));
    registry.create_tenant(&actor(), "acme").unwrap();
    assert_eq!(registry.layer_size("acme", &one.0.digest()).unwrap(), None, "that was another acme");
}

#[test]
fn many_uploads_of_one_layer_are_one_layer() {
    let host = host();
    let registry = &host.registry;
    let (one, two) = (package("one"), package("two"));
    let new = std::thread::scope(|scope| {
        let uploads: Vec<_> = (0..12)
            .map(|number| {
                let layer = if number % 3 == 0 { &two } else { &one };
                scope.spawn(move || {
                    let pause = Pause::new(layer, || std::thread::sleep(Duration::from_millis(20)));
                    let received = registry.receive_layer("acme", &layer.0.digest(), pause).unwrap();
                    registry.layer("acme", &layer.0.digest()).unwrap();
                    received.new
                })
            })
            .collect();
        uploads.into_iter().map(|upload| usize::from(upload.join().unwrap())).sum::<usize>()
    });
    assert_eq!(new, 2, "one of each was first");
    assert_eq!(found(host.dir.path()), names(&[&one.0, &two.0]));
}

#[test]
fn what_nobody_runs_is_removed_after_a_while() {
    let host = host();
    let registry = &host.registry;
    let dir = host.dir.path().to_owned();
    let (one, two, three) = (package("one"), package("two"), package("three"));
    for layer in [&one, &two, &three] {
        receive(registry, "acme", layer).unwrap();
    }
    deploy(registry, "acme", "time", &one.0, "x").unwrap();
    deploy(registry, "acme", "clock", &one.0, "x").unwrap();
    let kept = deploy(registry, "acme", "clock", &two.0, "x").unwrap();
    registry.delete_server(&actor(), "acme", "time").unwrap();
    assert_eq!(found(&dir), names(&[&one.0, &two.0, &three.0]), "all were uploaded lately");
    age(&dir);
    receive(registry, "acme", &three).unwrap();
    deploy(registry, "acme", "time", &two.0, "x").unwrap();
    registry.delete_server(&actor(), "acme", "time").unwrap();
    assert_eq!(found(&dir), names(&[&one.0, &two.0, &three.0]), "two are run in, one came again");
    registry.bundle("acme", "clock", &kept.id).unwrap();
    registry.delete_server(&actor(), "acme", "clock").unwrap();
    assert_eq!(found(&dir), names(&[&three.0]));
    assert_eq!(code(registry.layer("acme", &one.0.digest())), "not_found");
    assert!(receive(registry, "acme", &one).unwrap());

    deploy(registry, "acme", "time", &one.0, "x").unwrap();
    registry.delete_tenant(&actor(), "acme").unwrap();
    assert_eq!(found(&dir), [""; 0], "with its tenant it goes at once");
    assert_eq!(fs::read_dir(dir.join("layers")).unwrap().count(), 1);
}

#[test]
fn what_a_crash_left_is_removed_at_the_next_start() {
    let host = host();
    let (used, old, recent) = (package("used"), package("old"), package("recent"));
    for layer in [&used, &old, &recent] {
        receive(&host.registry, "acme", layer).unwrap();
    }
    deploy(&host.registry, "acme", "time", &used.0, "x").unwrap();
    age(host.dir.path());
    assert!(!receive(&host.registry, "acme", &recent).unwrap());
    let folder = host.registry.layer("acme", &used.0.digest()).unwrap();
    let home = folder.parent().unwrap().parent().unwrap().to_owned();
    let layers = home.parent().unwrap().to_owned();
    // An upload that was under way, one that was renamed and not on record, and the rest of a tenant that is gone.
    for left in [layers.join("staging/0123"), home.join("ab".repeat(32)), layers.join("00".repeat(16)).join("cd")] {
        fs::create_dir_all(left.join("files/deep")).unwrap();
        fs::write(left.join("files/deep/file"), "x").unwrap();
    }
    assert_eq!(found(host.dir.path()).len(), 6);
    let host = host.reopen();
    assert_eq!(found(host.dir.path()), names(&[&used.0, &recent.0]));
    assert_eq!(fs::read_dir(layers).unwrap().count(), 2, "staging and acme");
    assert_eq!(host.registry.health().problems, [""; 0]);
    host.registry.layer("acme", &used.0.digest()).unwrap();
}

#[test]
fn a_tenant_that_goes_takes_its_uploads_along() {
    let host = host();
    let registry = &host.registry;
    let one = package("one");
    for anew in [false, true] {
        let pause = Pause::new(&one, || {
            registry.delete_tenant(&actor(), "acme").unwrap();
            if anew {
                registry.create_tenant(&actor(), "acme").unwrap();
            }
        });
        assert_eq!(code(registry.receive_layer("acme", &one.0.digest(), pause)), "not_found");
        assert_eq!(found(host.dir.path()), [""; 0]);
        if !anew {
            registry.create_tenant(&actor(), "acme").unwrap();
        }
    }
    assert_eq!(registry.layer_size("acme", &one.0.digest()).unwrap(), None);
}

#[test]
fn a_tenant_has_so_much_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (package("one"), package("two"));
    let disk = one.0.disk();
    let options = OpenOptions { layer_bytes: 2 * disk - 1, ..OpenOptions::default() };
    let registry = Registry::open_with(dir.path(), options).unwrap();
    registry.create_tenant(&actor(), "acme").unwrap();
    registry.create_tenant(&actor(), "other").unwrap();

    // While one is under way there is room for no second, and there is again when it broke off.
    let full = || {
        let error = receive(&registry, "acme", &two).unwrap_err();
        assert_eq!(error.code(), "conflict");
        assert!(error.hint().is_some());
        receive(&registry, "other", &two).unwrap(); // others have their own room
    };
    let head = one.0.head().len();
    let cut = (one.0.clone(), one.1[..head + 2].to_vec());
    assert_eq!(code(registry.receive_layer("acme", &one.0.digest(), Pause::new(&cut, full))), "bad_value");
    assert!(receive(&registry, "acme", &two).unwrap());
    assert_eq!(code(receive(&registry, "acme", &one)), "conflict");
    // What nobody runs in makes room.
    age(dir.path());
    assert!(receive(&registry, "acme", &one).unwrap());
    deploy(&registry, "acme", "time", &one.0, "x").unwrap();
    age(dir.path());
    assert_eq!(code(receive(&registry, "acme", &two)), "conflict", "this one is run in");
    assert_eq!(rows(dir.path()).len(), 2);
    assert_eq!(found(dir.path()), names(&[&one.0, &two.0]), "one is acme's, the other is the other's");
}

#[test]
fn old_deployments_make_room_for_layers() {
    let host = host();
    let registry = &host.registry;
    let packages: Vec<_> = (0..5).map(|number| package(&number.to_string())).collect();
    let mut ids = Vec::new();
    for package in &packages[..4] {
        receive(registry, "acme", package).unwrap();
        // Many deployments of one layer count it once.
        for mark in ["x", "y", "z"] {
            ids.push(deploy(registry, "acme", "time", &package.0, mark).unwrap().id.clone());
        }
    }
    assert_eq!(registry.deployments("acme", "time").unwrap().len(), 12);
    registry.activate(&actor(), "acme", "time", &ids[0]).unwrap();
    // As if each had 700 MiB.
    let database = database(host.dir.path());
    database.execute("UPDATE deployments SET size = size + (700 << 20)", []).unwrap();
    database.execute("UPDATE layers SET size = size + (700 << 20), created_at = 0", []).unwrap();
    receive(registry, "acme", &packages[4]).unwrap();
    deploy(registry, "acme", "time", &packages[4].0, "x").unwrap();
    let left: Vec<_> = registry.deployments("acme", "time").unwrap().into_iter().map(|each| each.id).collect();
    assert_eq!(left.len(), 7, "the new one, and six in the two layers that 2 GiB hold beside it");
    assert!(ids[6..].iter().all(|id| left.contains(id)) && !left.contains(&ids[0]));
    assert_eq!(found(host.dir.path()), names(&[&packages[2].0, &packages[3].0, &packages[4].0]));

    // What is current stays, however old and large.
    registry.activate(&actor(), "acme", "time", &ids[6]).unwrap();
    database.execute("UPDATE layers SET size = size + (1 << 30)", []).unwrap();
    database.execute("UPDATE deployments SET size = size + (1 << 30)", []).unwrap();
    let new = program(registry, "acme", "time", &packages[4].0, "y");
    registry.deploy(&actor(), NewDeployment { pending: true, ..new }).unwrap();
    let left: Vec<_> = registry.deployments("acme", "time").unwrap().into_iter().map(|each| each.id).collect();
    assert!(left.contains(&ids[6]) && !left.contains(&ids[7]), "{left:?}");
    registry.bundle("acme", "time", &ids[6]).unwrap();
}

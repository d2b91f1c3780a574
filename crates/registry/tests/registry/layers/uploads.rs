//! What comes in, whole or not at all.

use super::*;

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

#[test]
fn whatever_the_umask() {
    if child() {
        return;
    }
    for umask in ["000", "077"] {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new("sh")
            .args([
                "-c",
                &format!(r#"umask {umask}; exec "$0" --exact layers::uploads::whatever_the_umask --nocapture"#),
            ])
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

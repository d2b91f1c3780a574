//! What was changed or lost on the disk.

use super::*;

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
        // Whoever has it can bring it again.
        assert_eq!(host.registry.layer_size("acme", &one.0.digest()).unwrap(), None, "{what}");
        assert!(receive(&host.registry, "acme", &one).unwrap(), "{what}");
        assert_eq!(code(host.registry.bundle("acme", "time", &deployed.id)), "ok", "{what}");
        assert!(!receive(&host.registry, "acme", &one).unwrap(), "{what}");
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

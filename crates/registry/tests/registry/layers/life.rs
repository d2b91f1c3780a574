//! What stays, what goes, and what a killed host leaves.

use super::*;

/// Every folder has its row and is whole, whenever the host is killed.
#[test]
fn a_killed_host_leaves_whole_layers() {
    if child() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "layers::life::a_killed_host_leaves_whole_layers", "--nocapture"])
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
    let approval = registry::TenantPatch { approval: Some(true), ..Default::default() };
    registry.update_tenant(&actor(), "acme", approval).unwrap();
    assert!(registry.deploy(&actor(), new).unwrap().pending);
    let left: Vec<_> = registry.deployments("acme", "time").unwrap().into_iter().map(|each| each.id).collect();
    assert!(left.contains(&ids[6]) && !left.contains(&ids[7]), "{left:?}");
    registry.bundle("acme", "time", &ids[6]).unwrap();
}

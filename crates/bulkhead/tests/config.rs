//! The configuration, as operators meet it, and the pages made from the code.

mod support;

use insta::assert_snapshot;
use serde_json::Value;
use support::{Dir, Run, bulkhead, root};

fn output(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{run:?}"))
}

#[test]
fn check_says_what_is_wrong_and_where() {
    let dir = Dir::new();
    dir.file("bad.toml", "lisen = \"127.0.0.1:1\"\n\n[pool]\nspares = 5000\n");
    let plain = bulkhead(["config", "check", "bad.toml"]).in_dir(&dir);
    assert_eq!((plain.code, plain.stdout.as_str()), (1, ""));
    assert_snapshot!(plain.stderr, @r"
    error: bad.toml:1:1: `lisen`: there is no such key
    hint: did you mean `listen`?
    error: bad.toml:4:10: `pool.spares`: 5000 is not between 0 and 1024
    ");
    let json = bulkhead(["config", "check", "bad.toml", "--json"]).in_dir(&dir);
    assert_eq!((json.code, json.stderr.as_str()), (1, ""));
    let object = output(&json);
    assert_eq!(object["error"]["code"], "bad_config");
    assert_eq!(object["error"]["hint"], "did you mean `listen`?");
    let first = &object["problems"][0];
    assert_eq!(
        (first["path"].as_str(), first["line"].as_u64(), first["column"].as_u64()),
        (Some("bad.toml"), Some(1), Some(1))
    );
    assert_eq!((first["key"].as_str(), first["hint"].as_str()), (Some("lisen"), Some("did you mean `listen`?")));
}

#[test]
fn check_takes_a_good_file_and_the_one_that_serve_would_read() {
    let dir = Dir::new();
    dir.file("good.toml", "[quota]\nburst = 5\n");
    let good = bulkhead(["config", "check", "good.toml", "--json"]).in_dir(&dir);
    assert_eq!((good.code, output(&good)["ok"].as_bool()), (0, Some(true)), "{good:?}");
    let none = bulkhead(["config", "check"]).in_dir(&dir);
    assert_eq!((none.code, none.stdout.as_str()), (0, "ok: there is no file, so the defaults hold\n"));
    std::fs::create_dir(dir.path("bulkhead-data")).unwrap();
    dir.file("bulkhead-data/bulkhead.toml", "[quota]\nbrust = 5\n");
    let found = bulkhead(["config", "check"]).in_dir(&dir);
    assert!(found.code == 1 && found.stderr.contains("bulkhead-data/bulkhead.toml:2:1: `quota.brust`"), "{found:?}");
    let missing = bulkhead(["config", "check", "nowhere.toml"]).in_dir(&dir);
    assert!(missing.code == 64 && missing.stderr.starts_with("error: `nowhere.toml` cannot be read\n"), "{missing:?}");
    let endless = bulkhead(["config", "check", "/dev/zero"]);
    assert!(endless.code == 1 && endless.stderr.contains("is larger than 1024 KiB"), "{endless:?}");
}

#[test]
fn show_has_the_last_word_of_file_environment_and_flags() {
    let dir = Dir::new();
    dir.file("host.toml", "listen = '127.0.0.1:1001'\ndata = 'from-file'\n[quota]\nburst = 5\n");
    let show = |args: &[&str]| bulkhead([&["config", "show", "--json"], args].concat()).in_dir(&dir);
    let words = |run: &Run| {
        let object = output(run);
        [&object["listen"], &object["data"], &object["quota"]["burst"]].map(Value::to_string).join(" ")
    };
    assert_eq!(words(&show(&[])), r#""127.0.0.1:8470" "bulkhead-data" 400"#);
    assert_eq!(words(&show(&["--config", "host.toml"])), r#""127.0.0.1:1001" "from-file" 5"#);
    let env = |run: Run| run.with_env("BULKHEAD_LISTEN", "127.0.0.1:1002").with_env("BULKHEAD_DATA", "from-env");
    assert_eq!(words(&env(show(&["--config", "host.toml"]))), r#""127.0.0.1:1002" "from-env" 5"#);
    let flags = ["--config", "host.toml", "--listen", "127.0.0.1:1003", "--data", "from-flag"];
    assert_eq!(words(&env(show(&flags))), r#""127.0.0.1:1003" "from-flag" 5"#);

    let bad = show(&[]).with_env("BULKHEAD_LISTEN", "here");
    assert_eq!(bad.code, 64);
    let error = &output(&bad)["error"];
    assert_eq!(error["message"], "`BULKHEAD_LISTEN` in the environment: `here` is no address with a port");
    let bad = bulkhead(["config", "show", "--listen", "here"]);
    assert!(bad.code == 64 && bad.stderr.contains("`here` is no address with a port, such as"), "{bad:?}");
}

#[test]
fn a_file_in_the_data_directory_cannot_point_elsewhere() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("here")).unwrap();
    dir.file("here/bulkhead.toml", "data = 'elsewhere'\n");
    let run = bulkhead(["config", "show", "--data", "here"]).in_dir(&dir);
    assert_eq!(run.code, 1);
    assert_snapshot!(run.stderr, @r"
    error: here/bulkhead.toml:1:1: `data`: this file was found in `here`, so it cannot name another directory
    hint: name the file with --config, or the directory with --data
    ");
    dir.file("here/bulkhead.toml", "data = 'here'\n");
    assert_eq!(bulkhead(["config", "show", "--data", "here"]).in_dir(&dir).code, 0);
}

#[test]
fn serve_does_not_start_with_a_bad_file() {
    let dir = Dir::new();
    dir.file("bad.toml", "[pool]\nspares = 'many'\n");
    let run = bulkhead(["serve", "--config", "bad.toml"]).in_dir(&dir);
    assert_eq!((run.code, run.stdout.as_str()), (64, ""));
    assert_snapshot!(run.stderr, @"error: bad.toml:2:10: `pool.spares`: a whole number is needed, this is a string");
    assert!(!dir.path("bulkhead-data").exists());
}

/// Pages are made from the code; `bulkhead config reference` and `bulkhead reference` print them.
#[test]
fn the_pages_are_up_to_date() {
    for (page, args) in [("docs/configuration.md", &["config", "reference"][..]), ("docs/cli.md", &["reference"])] {
        let printed = bulkhead(args.iter().copied());
        let kept = std::fs::read_to_string(root().join(page)).unwrap_or_default();
        assert!(printed.stdout == kept, "{page} is old: bulkhead {} > {page}", args.join(" "));
    }
}

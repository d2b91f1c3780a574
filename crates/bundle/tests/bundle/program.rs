//! Deployments that run a command.

use crate::support::{key_id, refused, shown};
use bundle::{
    Command, Drift, Http, Kind, LAYER, Lock, LockError, MacKey, Manifest, Program, Refused, Seal, Step, Surface, Wall,
};
use insta::assert_snapshot;
use policy::{Boundary, Limits};
use serde_json::json;
use std::collections::BTreeMap;

const TEXT: &str = r#"
name = "time"
wall = "process"
command = ["python3", "server.py", "--zone", "UTC"]

[environment]
LANG = "de"

[limits]
memory_mb = 256
"#;

fn command(manifest: &Manifest) -> &Command {
    match &manifest.program {
        Program::Command(command) => command,
        Program::Module { .. } => panic!("this is a module"),
    }
}

fn lock(text: &str) -> (Lock, BTreeMap<String, String>) {
    let manifest = Manifest::parse(text.as_bytes()).unwrap();
    let index = r#"{"files":{},"version":1}"#;
    let files = BTreeMap::from([("bulkhead.toml".to_owned(), text.to_owned()), (LAYER.to_owned(), index.to_owned())]);
    let program = manifest.program.clone();
    (Lock::new(&manifest, Surface::new(shown()).unwrap(), program, &files, Step::default()).unwrap(), files)
}

#[test]
fn programs_have_defaults_of_their_own() {
    let manifest = Manifest::parse(TEXT.as_bytes()).unwrap();
    assert_eq!((manifest.wall, manifest.boundary), (Wall::Process, Boundary::Session));
    assert_eq!(manifest.limits, Limits { memory_mb: 256, ..Limits::of_programs() });
    let command = command(&manifest);
    assert_eq!(command.words.join(" "), "python3 server.py --zone UTC");
    assert_eq!((command.environment["LANG"].as_str(), &command.http), ("de", &None));
}

#[test]
fn a_server_may_listen_inside() {
    let text = format!("{TEXT}\n[http]\nport = 8000\n");
    let http = |text: &str| command(&Manifest::parse(text.as_bytes()).unwrap()).http.clone().unwrap();
    assert_eq!(http(&text), Http { port: 8000, path: "/mcp".to_owned(), sse: false });
    assert_eq!(http(&format!("{text}sse = true\n")), Http { port: 8000, path: "/sse".to_owned(), sse: true });
    assert_eq!(http(&format!("{text}path = \"/a?b=1\"\n")).path, "/a?b=1");
}

#[test]
fn what_makes_no_sense_is_named() {
    assert_snapshot!(refused("name = \"a\"\nwall = \"process\"\nentry = \"a.js\"\njit = true\n"), @r#"
    1:1: command: this key is needed; such as `command = ["python3", "server.py"]`
    3:1: entry: this belongs to `wall = "isolate"`
    4:1: jit: this belongs to `wall = "isolate"`
    "#);
    assert_snapshot!(refused("name = \"a\"\nentry = \"a.js\"\ncommand = [\"node\"]\n[environment]\nA = \"1\"\n[http]\nport = 1\n"), @r#"
    3:1: command: this belongs to `wall = "process"`
    4:2: environment: this belongs to `wall = "process"`
    6:2: http: this belongs to `wall = "process"`
    "#);
    let head = "name = \"a\"\nwall = \"process\"\n";
    assert_snapshot!(refused(&format!("{head}command = []\n")), @"3:11: command: a command has 1 to 256 words, this has 0");
    assert_snapshot!(refused(&format!("{head}command = \"node a.js\"\n")), @r#"3:11: command: a list of texts is needed, this is a string; such as `command = ["python3", "server.py"]`"#);
    assert_snapshot!(refused(&format!("{head}command = [\"node\", 1]\n")), @"3:20: command: text is needed, this is an integer");
    assert_snapshot!(refused(&format!("{head}command = [\"a\\u202eb\"]\n")), @r#"3:12: command: a word has invisible characters, such as `\u{202e}`"#);
    assert_snapshot!(refused(&format!("{head}command = [\"a\"]\n[environment]\n\"A=B\" = \"x\"\nC = 1\nD = \"a\\u0000b\"\n")), @r#"
    5:9: environment: `A=B` is no name of a variable: it has letters, digits and `_`
    6:5: environment: text is needed, this is an integer
    7:5: environment: the value of a variable cannot hold the character 0
    "#);
    assert_snapshot!(refused(&format!("{head}command = [\"a\"]\n[http]\npath = \"mcp\"\n")), @"4:1: http.port: this key is needed; such as `port = 8000`");
    assert_snapshot!(refused(&format!("{head}command = [\"a\"]\n[http]\nport = 0\nprot = 1\n")), @r#"
    5:8: http.port: a port is a number from 1 to 65535
    6:1: http.prot: there is no such key; did you mean `port`?
    "#);
    assert_snapshot!(refused(&format!("{head}command = [\"a\"]\n[http]\nport = 1\npath = \"mcp\"\n")), @"4:1: http: `mcp` is no path: it begins with `/` and has no spaces");
    assert_snapshot!(refused("name = \"a\"\nwall = \"proces\"\ncommand = [\"a\"]\n"), @r#"
    1:1: entry: this key is needed; such as `entry = "server.js"`
    2:8: wall: `proces` is none of `isolate`, `process`; did you mean `process`?
    3:1: command: this belongs to `wall = "process"`
    "#);
}

#[test]
fn a_lock_of_a_command_names_its_layer() {
    let (lock, _) = lock(TEXT);
    assert_eq!(Lock::parse(&lock.bytes()).unwrap(), lock);
    assert_eq!(lock.layer(), Some(lock.files[LAYER].sha256));
    assert_eq!(lock.limits(), Limits { memory_mb: 256, ..Limits::of_programs() });
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = lock.value();
        change(&mut value);
        Lock::parse(&bundle::canonical(&value))
    };
    let wrong: [&dyn Fn(&mut serde_json::Value); 4] = [
        &|lock| lock["wall"] = json!("isolate"),
        &|lock| lock["entry"] = json!("bulkhead.toml"),
        &|lock| drop(lock.as_object_mut().unwrap().remove("command")),
        &|lock| lock["entry"] = lock["command"].take(),
    ];
    for change in wrong {
        assert!(matches!(changed(change), Err(LockError::NoProgram | LockError::Unreadable(_))));
    }
    let empty = changed(&|lock| lock["command"]["words"] = json!([]));
    assert!(matches!(empty, Err(LockError::Unreadable(_))), "{empty:?}");
    let bare = changed(&|lock| drop(lock["files"].as_object_mut().unwrap().remove(LAYER)));
    assert_eq!(bare, Err(LockError::NoEntry(LAYER.to_owned())));
}

#[test]
fn a_command_is_signed_as_it_is_written() {
    let (written, files) = lock(TEXT);
    let key = MacKey::from_token("token");
    let verified = |lock: &Lock| {
        let mut seal = Seal::new(lock);
        seal.authenticate(key_id(), &key);
        bundle::verify(lock, &seal, &files, &key_id(), &key)
    };
    assert!(verified(&written).is_ok());
    let mut other = written.clone();
    if let Program::Command(command) = &mut other.program {
        command.words.push("--all".to_owned());
    }
    assert!(matches!(verified(&other), Err(Refused::Differs(what)) if what.contains("`command`")));
}

#[test]
fn another_command_is_drift() {
    let (old, _) = lock(TEXT);
    let (new, _) = lock(&TEXT.replace("UTC", "CET"));
    let changes = Drift::between(&old, &new);
    assert_eq!(changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [Kind::CommandChanged]);
    assert!(changes[0].widens());
    assert_snapshot!(changes[0].to_string(), @r#"~ command changed at "/command": {"environment":{"LANG":"de"},"words":["python3","server.py","--zone","UTC"]} → {"environment":{"LANG":"de"},"words":["python3","server.py","--zone","CET"]}"#);
}

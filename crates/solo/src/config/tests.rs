use super::*;
use install::testing::Folder;

const CLAUDE: &str = r#"{
  "globalShortcut" : "Ctrl+Space",
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/home/me/notes"
      ]
    },
    "github": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "t\u00f6ken", "OTHER": "1"} },
    "binary": {"command": "/opt/server"},
    "empty": {"command":"/opt/server","args":[ ]},
    "remote": {"url": "https://example.com/mcp"},
    "typed": {"type": "http", "command": "x"}
  },
  "more": [1.50, 1e3]
}
"#;

fn file(name: &str, text: &str) -> (Folder, PathBuf) {
    let folder = Folder::new(name);
    let path = folder.path().join("config.json");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn wrap() -> Wrap {
    Wrap { program: "/usr/local/bin/bulkhead".into(), flags: vec!["--memory".into(), "256".into()], ..Wrap::default() }
}

#[test]
fn a_round_trip_gives_back_every_byte() {
    let (folder, path) = file("config-trip", CLAUDE);
    let change = write_config(&path, &wrap()).unwrap();
    assert_eq!(change.changed, ["files", "github", "binary", "empty"]);
    assert_eq!(change.left.len(), 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), CLAUDE, "nothing is written yet");
    let backup = change.apply().unwrap();
    assert_eq!(fs::read_to_string(&backup).unwrap(), CLAUDE);
    let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let github = &value["mcpServers"]["github"];
    assert_eq!(github["command"], "/usr/local/bin/bulkhead");
    let arguments = [
        "run",
        "--memory",
        "256",
        "--env",
        "GITHUB_PERSONAL_ACCESS_TOKEN",
        "--env",
        "OTHER",
        "--",
        "npx",
        "-y",
        "@modelcontextprotocol/server-github",
    ];
    assert_eq!(github["args"], serde_json::json!(arguments));
    assert_eq!(
        value["mcpServers"]["binary"]["args"],
        serde_json::json!(["run", "--memory", "256", "--", "/opt/server"])
    );
    assert_eq!(value["mcpServers"]["remote"], serde_json::json!({"url": "https://example.com/mcp"}));
    let again = write_config(&path, &wrap()).unwrap();
    assert!(again.changed.is_empty() && again.before == again.after, "once is enough");
    let wrapped = fs::read_to_string(&path).unwrap();
    let second = undo_config(&path).unwrap().apply().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), CLAUDE);
    assert_eq!(fs::read_to_string(&backup).unwrap(), CLAUDE, "the first backup stays");
    assert!(second != backup && fs::read_to_string(second).unwrap() == wrapped);
    assert_eq!(write_config(&path, &wrap()).unwrap().apply().unwrap(), backup, "what is the same is kept once");
    drop(folder);
}

#[test]
fn the_diff_shows_lines_as_the_file_has_them() {
    let (_folder, path) = file("config-diff", CLAUDE);
    let only = BTreeSet::from(["files".to_owned()]);
    let change = write_config(&path, &Wrap { only, flags: Vec::new(), ..wrap() }).unwrap();
    assert_eq!(change.changed, ["files"]);
    let diff = change.diff();
    for line in [
        "-      \"command\": \"npx\",",
        "+      \"command\": \"/usr/local/bin/bulkhead\",",
        "+        \"--\",",
        "         \"-y\",",
    ] {
        assert!(diff.lines().any(|found| found == line), "{line} is not in\n{diff}");
    }
}

#[test]
fn other_clients_have_other_names() {
    for text in [
        r#"{"servers": {"a": {"type": "stdio", "command": "x", "args": ["--"]}}}"#,
        r#"{"editor.x": 1, "mcp": {"servers": {"a": {"command": "x"}}}}"#,
    ] {
        let (_folder, path) = file("config-other", text);
        let change = write_config(&path, &wrap()).unwrap();
        assert_eq!(change.changed, ["a"], "{text}");
        change.apply().unwrap();
        assert_eq!(undo_config(&path).unwrap().after, text);
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    for text in ["{\"mcpServers\": {}, // mine\n}", "{\"mcpServers\": {},}", "", "\u{feff}{\"mcpServers\": {}}"] {
        let (_folder, path) = file("config-refused", text);
        assert!(matches!(write_config(&path, &wrap()), Err(Error::Json { .. })), "{text:?}");
    }
    for text in ["{}", "[]", "{\"mcpServers\": 1}", "{\"mcpServers\": {}, \"mcpServers\": {}}"] {
        let (_folder, path) = file("config-none", text);
        assert!(matches!(write_config(&path, &wrap()), Err(Error::NoServers(_))), "{text:?}");
    }
    let odd = r#"{"mcpServers": {"a": {"command": 1}, "b": {"command": "x", "args": [1]}, "c": {"command": "x", "command": "y"}}}"#;
    let (_folder, path) = file("config-odd", odd);
    let change = write_config(&path, &wrap()).unwrap();
    assert_eq!((change.changed.len(), change.left.len()), (0, 3));
}

#[test]
fn a_file_that_changed_meanwhile_is_left_alone() {
    let (folder, path) = file("config-changed", CLAUDE);
    let change = write_config(&path, &wrap()).unwrap();
    fs::write(&path, "{\"mcpServers\": {}}").unwrap();
    assert!(matches!(change.apply(), Err(Error::Changed(_))));
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let change = write_config(&link, &wrap()).unwrap();
    change.apply().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "a link stays a link");
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["config.json", "config.json.before-bulkhead", "home", "link.json"]);
}

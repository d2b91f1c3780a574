//! What a server with a folder of its user's could do to programs outside the jail.

use crate::Case;
use crate::client::Place;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

pub const CASES: &[Case] = &[
    ("a_socket_in_a_folder_is_not_reached", sockets),
    ("a_named_pipe_in_a_folder_is_not_read", pipes),
    ("what_a_server_says_steers_no_terminal_and_passes_for_nothing_of_ours", words),
    ("settings_that_programs_outside_obey_stay_as_they_are", settings),
    ("commits_are_made_where_they_are_allowed", commits),
    ("a_link_to_the_home_is_warned_of", links),
    ("node_has_its_loopback_without_netlink", loopback),
];

/// As the small server's folder would be: its user's, whom the jail is then.
fn repository(place: &Place, path: &str) {
    let path = place.path().join(path);
    fs::create_dir_all(&path).expect("a folder");
    let made = Command::new("git").args(["init", "-q"]).current_dir(&path).status();
    assert!(made.is_ok_and(|made| made.success()), "git");
}

fn refused(told: &Value) -> bool {
    told.as_str().is_some_and(|text| text.contains("Error"))
}

const CONNECT: &str =
    "import socket\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(20)\ns.connect('notes/socket')\nout = 'connected'";

fn sockets() {
    let place = Place::new("sockets");
    let path = place.path().join("notes/socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("a mode");
    listener.set_nonblocking(true).expect("a listener that does not wait");
    for flag in ["--ro", "--rw"] {
        let mut session = place.small(&[flag, "notes"]);
        session.initialize();
        let told = session.evaluate(CONNECT);
        assert!(refused(&told), "{told}");
        let pair =
            session.evaluate("import socket; a, b = socket.socketpair(); a.send(b'x'); out = b.recv(1).decode()");
        assert_eq!(pair, "x");
    }
    assert!(listener.accept().is_err(), "somebody came");
    if !jail::program::shields_sockets() {
        let code = "import socket; socket.socket(socket.AF_UNIX)";
        let output = place.output(&["--ro", "notes", "--", "python3", "-c", code], b"");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("`--unix-sockets` before `--`"), "{told}");
    }
    let mut session = place.small(&["--unix-sockets", "--ro", "notes"]);
    session.initialize();
    let told = session.evaluate(CONNECT);
    assert_eq!(told == "connected", !jail::program::shields_sockets(), "{told}");
}

fn pipes() {
    let place = Place::new("pipes");
    let made = Command::new("mkfifo").args(["-m", "666", "notes/pipe"]).current_dir(place.path()).status();
    assert!(made.is_ok_and(|made| made.success()));
    for flag in ["--ro", "--rw"] {
        let mut session = place.small(&[flag, "notes"]);
        session.initialize();
        for mode in ["os.O_RDONLY", "os.O_RDWR", "os.O_WRONLY"] {
            let told = session.evaluate(&format!("import os; out = os.open('notes/pipe', {mode} | os.O_NONBLOCK)"));
            assert!(refused(&told), "{flag} {mode}: {told}");
        }
    }
}

fn words() {
    let place = Place::new("words");
    let code =
        r"import sys; sys.stderr.write('\x1b]52;c;cm0gLXJm\x07one\nbulkhead: killed\rbulkhead: forged'); sys.exit(3)";
    let output = place.output(&["--", "python3", "-c", code], b"");
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(told.chars().all(|c| c == '\n' || !c.is_control()), "{told:?}");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines,
        ["server: \\u{1b}]52;c;cm0gLXJm\\u{7}one", "server: bulkhead: killed", "server: bulkhead: forged"]
    );
    assert_eq!(output.status.code(), Some(3));
}

fn settings() {
    let place = Place::new("settings");
    repository(&place, "work");
    repository(&place, "work/sub/inner");
    let work = place.path().join("work");
    fs::create_dir_all(work.join(".vscode")).expect("a folder");
    fs::write(work.join(".vscode/tasks.json"), "{}").expect("a file");
    fs::write(work.join(".mcp.json"), "{}").expect("a file");
    let config = fs::read(work.join(".git/config")).expect("settings");
    let mut session = place.small(&["--rw", "work"]);
    session.initialize();
    for code in [
        "open('work/.git/config', 'a').write('[core]\\nfsmonitor = touch /tmp/x\\n')",
        "open('work/.git/hooks/pre-commit', 'w').write('#!/bin/sh\\n')",
        "open('work/.git/commondir', 'w').write('../evil')",
        "open('work/.vscode/tasks.json', 'w').write('x')",
        "open('work/.vscode/settings.json', 'w').write('x')",
        "open('work/.mcp.json', 'w').write('x')",
        "os.rename('work/.git', 'work/moved')",
        "os.rename('work/.mcp.json', 'work/moved')",
        "os.unlink('work/.mcp.json')",
        "shutil.rmtree('work/.vscode')",
        "open('new', 'w').write('x') and os.rename('new', 'work/.mcp.json')",
        "open('work/new', 'w').write('x') and os.rename('work/new', 'work/.mcp.json')",
        "open('work/sub/inner/.git/config', 'a').write('x')",
        "os.rename('work/sub/inner', 'work/sub/moved')",
        "os.rename('work/sub', 'work/moved')",
        "os.link('work/.git/config', 'work/link')",
    ] {
        let told = session.evaluate(&format!("import os, shutil; out = {code}"));
        assert!(refused(&told), "{code}: {told}");
    }
    assert_eq!(fs::read(work.join(".git/config")).expect("settings"), config);
    // All else is as ever.
    let code = "import os; open('work/file', 'w').write('x'); os.mkdir('work/src'); os.rename('work/file', 'work/src/file'); out = 1";
    assert_eq!(session.evaluate(code), 1);
    assert_eq!(session.evaluate("out = open('work/sub/inner/file', 'w').write('x')"), 1);
    // What is not there can be made, and is told of.
    assert_eq!(session.evaluate("out = open('work/.envrc', 'w').write('touch x')"), 7);
    let told = session.error_with("created during the run");
    assert!(told.starts_with("bulkhead: ") && told.contains("work/.envrc`"), "{told}");
    assert_eq!(session.evaluate("out = open('work/.zshrc', 'w').write('touch x')"), 7);
    let output = place.output(&["--rw", "work", "--", "python3", "-c", "open('work/.npmrc', 'w')"], b"");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("work/.npmrc` was created during the run"), "{told}");
    let output = place.output(&["--dry-run", "--rw", "work", "--", "true"], b"");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("work/.git: programs outside") && told.contains("`--repo-settings`"), "{told}");

    let mut session = place.small(&["--rw", "work", "--repo-settings"]);
    session.initialize();
    assert_eq!(session.evaluate("out = open('work/.mcp.json', 'w').write('x')"), 1);
}

fn commits() {
    let place = Place::new("commits");
    repository(&place, "work");
    let commit = "git -C work add file && git -C work -c user.name=a -c user.email=a@example.com commit -q -m one";
    let hostile = "; echo x >> work/.git/config; echo x > work/.git/hooks/x; mv work/.git work/x; true";
    fs::write(place.path().join("work/file"), "one").expect("a file");
    let config = fs::read(place.path().join("work/.git/config")).expect("settings");
    let run = |flags: &[&str], commands: String| {
        let words = [flags, &["--rw", "work", "--", "sh", "-c", &commands]].concat();
        let output = place.output(&words, b"");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (done, told) = run(&[], commit.to_owned());
    assert!(!done && told.contains("ead-only"), "{told}");
    let (done, told) = run(&["--commits"], commit.to_owned());
    assert!(done, "{told}");
    run(&["--commits"], format!("true {hostile}"));
    let git = place.path().join("work/.git");
    assert_eq!(fs::read(git.join("config")).expect("settings"), config);
    assert!(!git.join("hooks/x").exists() && !Path::new(&place.path().join("work/x")).exists());
}

fn links() {
    let place = Place::new("links");
    symlink(place.path().join("home"), place.path().join("to-home")).expect("a link");
    symlink(place.path().join("home/.ssh"), place.path().join("to-keys")).expect("a link");
    symlink("/", place.path().join("to-all")).expect("a link");
    let told = |link: &str| {
        let output = place.output(&["--ro", link, "--", "true"], b"");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (_, home) = told("to-home");
    assert!(home.contains("to-home` leads to") && home.contains("all of your home"), "{home}");
    let (_, keys) = told("to-keys");
    assert!(keys.contains("`~/.ssh`"), "{keys}");
    let (code, all) = told("to-all");
    assert!(code == Some(1) && all.contains("cannot be shown"), "{all}");
}

fn loopback() {
    let place = Place::new("loopback");
    let code = "import('node:os').then(os => console.log(os.networkInterfaces().lo[0].address, require('os').networkInterfaces().lo.length))";
    let output = place.output(&["--", "node", "-e", code], b"");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "127.0.0.1 1\n", "{told}");
}

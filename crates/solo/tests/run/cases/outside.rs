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
    ("settings_elsewhere_in_the_folder_stay_as_they_are", elsewhere),
    ("commits_are_made_in_a_worktree_of_a_bare_repository", worktrees),
    ("a_toolchain_obeys_the_rules_for_sockets_and_pipes", toolchains),
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

fn git(place: &Place, folder: &str, words: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let made = Command::new("git").args(who).args(words).current_dir(place.path().join(folder)).output();
    let made = made.expect("git");
    assert!(made.status.success(), "{words:?}: {}", String::from_utf8_lossy(&made.stderr));
}

/// `work/.bare` with a working tree of it beside it.
fn bare_with_worktree(place: &Place) {
    fs::create_dir_all(place.path().join("work")).expect("a folder");
    git(place, "work", &["init", "-q", "--bare", ".bare"]);
    git(place, "work/.bare", &["worktree", "add", "-q", "--orphan", "-b", "main", "../tree"]);
    fs::write(place.path().join("work/.git"), "gitdir: ./.bare\n").expect("a file");
}

fn elsewhere() {
    let place = Place::new("elsewhere");
    bare_with_worktree(&place);
    let work = place.path().join("work");
    git(&place, "work/.bare", &["config", "core.hooksPath", "tools/run"]);
    git(&place, "work/.bare", &["config", "include.path", "../tools/more"]);
    git(&place, "work/.bare", &["config", "filter.x.clean", "./tools/clean %f"]);
    // Too deep for the search, and found by the file that names it.
    fs::create_dir_all(work.join("1/2/3/4/5/6")).expect("a folder");
    git(&place, "work", &["init", "-q", "--separate-git-dir", "1/2/3/4/5/6/store", "apart"]);
    let files = [
        "tools/run/pre-commit",
        "tools/clean",
        "tree/tools/run/pre-commit",
        ".hg/hgrc",
        ".jj/repo/config.toml",
        ".cargo/config.toml",
        ".cargo/config",
        "mise.local.toml",
        ".mise.prod.toml",
        ".config/mise/config.toml",
        ".nvim.lua",
        ".exrc",
        ".dir-locals.el",
        ".clinerules/one.md",
        "CLAUDE.md",
        "CLAUDE.local.md",
        "AGENTS.md",
        "GEMINI.md",
        ".cursorrules",
        "my.code-workspace",
        ".devcontainer/devcontainer.json",
        ".devcontainer.json",
        ".husky/pre-commit",
        "lefthook.toml",
        "eslint.config.mjs",
        "flake.nix",
        "settings/tasks.json",
    ];
    for file in files {
        fs::create_dir_all(work.join(file).parent().expect("a folder")).expect("a folder");
        fs::write(work.join(file), "").expect("a file");
    }
    fs::write(work.join("tools/more"), "[core]\n\tfsmonitor = tools/watch\n").expect("a file");
    fs::write(work.join("tools/watch"), "").expect("a file");
    symlink("settings", work.join(".vscode")).expect("a link");
    let mut session = place.small(&["--rw", "work"]);
    session.initialize();
    let named = ["tools/more", "tools/watch", ".bare/config", "1/2/3/4/5/6/store/config", ".git", "apart/.git"];
    for file in files.iter().chain(&named) {
        let told = session.evaluate(&format!("out = open('work/{file}', 'a').write('x')"));
        assert!(refused(&told), "{file}: {told}");
    }
    for file in [".bare/hooks/pre-commit", ".bare/worktrees/tree/config.worktree", "1/2/3/4/5/6/store/hooks/x"] {
        let told = session.evaluate(&format!("out = open('work/{file}', 'w').write('x')"));
        assert!(refused(&told), "{file}: {told}");
    }
    for (from, to) in [(".bare", "moved"), ("1/2", "moved"), ("tools", "moved"), ("settings", "moved")] {
        let told = session.evaluate(&format!("import os; out = os.rename('work/{from}', 'work/{to}')"));
        assert!(refused(&told), "{from}: {told}");
    }
    assert_eq!(session.evaluate("out = open('work/tools/other', 'w').write('x')"), 1);
    // What comes is told of, whatever it is called.
    for file in ["mise.new.toml", "AGENT.md", "two.code-workspace", "tree/.envrc"] {
        assert_eq!(session.evaluate(&format!("out = open('work/{file}', 'w').write('x')")), 1, "{file}");
        let told = session.error_with("created during the run");
        assert!(told.contains(&format!("work/{file}`")), "{told}");
    }
}

fn worktrees() {
    let place = Place::new("worktrees");
    bare_with_worktree(&place);
    fs::write(place.path().join("work/tree/file"), "one").expect("a file");
    let config = fs::read(place.path().join("work/.bare/config")).expect("settings");
    let commit =
        "git -C work/tree add file && git -C work/tree -c user.name=a -c user.email=a@example.com commit -q -m one";
    let run = |commands: &str| {
        let output = place.output(&["--commits", "--rw", "work", "--", "sh", "-c", commands], b"");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (done, told) = run(commit);
    assert!(done, "{told}");
    run("echo x >> work/.bare/config; echo x > work/.bare/hooks/x; echo x > work/.bare/worktrees/tree/commondir; \
         echo x > work/tree/.git; mv work/.bare work/x");
    let bare = place.path().join("work/.bare");
    assert_eq!(fs::read(bare.join("config")).expect("settings"), config);
    assert!(!bare.join("hooks/x").exists());
    git(&place, "work/tree", &["log", "-1"]);
}

/// A virtual environment with a pipe and a socket in it, which is shown because the command is in it.
fn toolchains() {
    let place = Place::new("toolchains");
    let bin = place.path().join(".venv/bin");
    fs::create_dir_all(&bin).expect("a folder");
    symlink("/usr/bin/python3", bin.join("python")).expect("a link");
    fs::write(place.path().join(".venv/pyvenv.cfg"), "home = /usr/bin\n").expect("a file");
    let made = Command::new("mkfifo").args(["-m", "666", ".venv/pipe"]).current_dir(place.path()).status();
    assert!(made.is_ok_and(|made| made.success()));
    let path = place.path().join(".venv/socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("a mode");
    listener.set_nonblocking(true).expect("a listener that does not wait");
    let root = place.path().display();
    let code = format!(
        "import os, socket\n\
         def tried(f):\n try: f(); return 'done'\n except OSError as e: return 'refused'\n\
         print(os.path.exists('{root}/.venv/pyvenv.cfg'))\n\
         print(tried(lambda: os.open('{root}/.venv/pipe', os.O_RDWR | os.O_NONBLOCK)))\n\
         print(tried(lambda: socket.socket(socket.AF_UNIX).connect('{root}/.venv/socket')))"
    );
    let output = place.output(&["--", ".venv/bin/python", "-c", &code], b"");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "True\nrefused\nrefused\n", "{told}");
    assert!(listener.accept().is_err(), "somebody came");
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

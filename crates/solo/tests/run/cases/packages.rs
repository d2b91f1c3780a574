//! Real servers from the registries that this machine's own settings name. Where none can be reached, nothing is tried.

use crate::Case;
use crate::client::{Place, Session};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

pub const CASES: &[Case] = &[
    ("a_package_runs_no_code_while_it_is_installed", scripts),
    ("an_installation_that_is_broken_off_leaves_nothing", broken_off),
    ("the_filesystem_server_sees_its_folder_alone", filesystem),
    ("the_everything_server_answers", everything),
    ("the_memory_server_remembers_where_it_may", memory),
    ("the_thinking_server_answers", thinking),
    ("the_time_server_answers_without_the_network", time),
    ("the_git_server_sees_its_repository", git),
    ("the_fetch_server_fetches_what_is_allowed", fetch),
];

/// Whether the question can be asked at all.
fn reaches(program: &str, arguments: &[&str]) -> bool {
    let asked = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let reached = asked.is_ok_and(|output| output.status.success());
    if !reached {
        skips::skip(&format!("`{program} {}` does not work here", arguments.join(" ")));
    }
    reached
}

fn indexed(name: &str) -> bool {
    reaches("python3", &["-m", "pip", "index", "versions", name])
}

fn registered(name: &str) -> bool {
    reaches("npm", &["view", name, "version"])
}

fn filesystem() {
    let name = "@modelcontextprotocol/server-filesystem";
    if !registered(name) {
        return;
    }
    let place = Place::new("filesystem");
    let command = ["--", "npx", "-y", name, "./notes"];
    let mut session = place.session(&command);
    session.initialize();
    let tools = session.ask("tools/list", json!({}));
    assert!(tools["tools"].as_array().is_some_and(|tools| tools.len() > 5), "{tools}");
    let notes = place.path().join("notes");
    let listed = session.call("list_directory", json!({"path": notes}));
    assert_eq!(listed, "[FILE] one.txt");
    session.call("write_file", json!({"path": notes.join("two.txt"), "content": "two"}));
    assert_eq!(std::fs::read_to_string(notes.join("two.txt")).expect("the file"), "two");
    let key = place.path().join("home/.ssh/id");
    let refused = session.call("read_text_file", json!({"path": key}));
    assert!(!refused.contains("a private key"), "{refused}");
    session.end();
    // Now it is there, and the network is not needed.
    let mut session = place.session(&[&["--offline", "--ro", "notes"], &command[..]].concat());
    session.initialize();
    let read = session.call("read_text_file", json!({"path": notes.join("one.txt")}));
    assert_eq!(read, "the first note");
    let refused = session.call("write_file", json!({"path": notes.join("three.txt"), "content": "three"}));
    assert!(refused.contains("EROFS") || refused.contains("EACCES"), "{refused}");
}

fn everything() {
    let name = "@modelcontextprotocol/server-everything";
    if !registered(name) {
        return;
    }
    let place = Place::new("everything");
    let mut session = place.session(&["--", "npx", "-y", name]);
    session.initialize();
    assert_eq!(session.call("echo", json!({"message": "hello"})), "Echo: hello");
    let variables = session.call("get-env", json!({}));
    assert!(!variables.contains("a secret value"), "{variables}");
}

fn time() {
    if !indexed("mcp-server-time") {
        return;
    }
    let place = Place::new("time");
    let mut session = place.session(&["--", "uvx", "mcp-server-time", "--local-timezone", "UTC"]);
    session.initialize();
    let told = session.call("get_current_time", json!({"timezone": "Asia/Tokyo"}));
    assert!(told.contains("Asia/Tokyo"), "{told}");
    session.end();
    let mut session = place.session(&["--offline", "--", "uvx", "mcp-server-time"]);
    session.initialize();
    assert!(session.call("get_current_time", json!({"timezone": "UTC"})).contains("UTC"));
}

fn memory() {
    let name = "@modelcontextprotocol/server-memory";
    if !registered(name) {
        return;
    }
    let place = Place::new("memory-server");
    let file = place.path().join("notes/memory.jsonl");
    let mut runner = place.runner(&["--", "npx", "-y", name]);
    runner.env("MEMORY_FILE_PATH", &file);
    let mut session = Session::start(runner);
    session.initialize();
    let entity = json!({"name": "bulkhead", "entityType": "wall", "observations": ["it holds"]});
    session.call("create_entities", json!({"entities": [entity]}));
    assert!(std::fs::read_to_string(file).expect("the memory").contains("it holds"));
}

fn thinking() {
    let name = "@modelcontextprotocol/server-sequential-thinking";
    if !registered(name) {
        return;
    }
    let place = Place::new("thinking");
    let mut session = place.session(&["--", "npx", "-y", name]);
    session.initialize();
    let thought = json!({"thought": "x", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    assert!(session.call("sequentialthinking", thought).contains("thoughtNumber"));
}

fn git() {
    if !indexed("mcp-server-git") {
        return;
    }
    let place = Place::new("git");
    let made = "git init -q repository && cd repository && echo one > file && git add file && \
                git -c user.name=a -c user.email=a@example.com commit -q -m 'the first commit'";
    let made = Command::new("sh").args(["-c", made]).current_dir(place.path()).status();
    assert!(made.is_ok_and(|made| made.success()));
    let mut session = place.session(&["--", "uvx", "mcp-server-git", "--repository", "repository"]);
    session.initialize();
    let told = session.call("git_log", json!({"repo_path": place.path().join("repository")}));
    assert!(told.contains("the first commit"), "{told}");
}

fn fetch() {
    if !indexed("mcp-server-fetch") {
        return;
    }
    let place = Place::new("fetch");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let count = stream.read(&mut head).unwrap_or(0);
            let robots = String::from_utf8_lossy(&head[..count]).contains("robots.txt");
            let (status, body) = if robots { ("404 Not Found", "") } else { ("200 OK", "words of the staged host") };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let mut session = place.session(&["--allow", &base, "--", "uvx", "mcp-server-fetch", "--allow-private-ips"]);
    session.initialize();
    let told = session.call("fetch", json!({"url": format!("{base}/page")}));
    assert!(told.contains("words of the staged host"), "{told}");
    session.call("fetch", json!({"url": "https://host.example/"}));
    session.error_with("`--allow host.example` before `--`");
}

/// A registry of its own with one package in it, whose install script and program both tell what they can.
struct Registry {
    url: String,
}

impl Registry {
    fn start(place: &Place) -> Registry {
        let package = place.path().join("package");
        std::fs::create_dir(&package).expect("a folder");
        let described = json!({
            "name": "hostile", "version": "1.0.0", "bin": "server.js",
            "scripts": {"preinstall": "touch ran", "install": "touch ran", "postinstall": "touch ran"},
        });
        std::fs::write(package.join("package.json"), described.to_string()).expect("a file");
        let server = "#!/usr/bin/env node\nconst fs = require('node:fs');\n\
            const ran = fs.existsSync(__dirname + '/ran');\n\
            let wrote = true; try { fs.writeFileSync(__dirname + '/wrote', ''); } catch (error) { wrote = error.code }\n\
            console.log(JSON.stringify({ ran, wrote, arguments: process.argv.slice(2) }));\n";
        std::fs::write(package.join("server.js"), server).expect("a file");
        let packed = Command::new("tar").args(["czf", "hostile.tgz", "package"]).current_dir(place.path()).status();
        assert!(packed.is_ok_and(|packed| packed.success()));
        let archive = std::fs::read(place.path().join("hostile.tgz")).expect("the archive");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let mut version = described;
        version["dist"] = json!({"tarball": format!("{url}hostile.tgz")});
        let page = json!({"name": "hostile", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}});
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut head = [0; 8192];
                let count = stream.read(&mut head).unwrap_or(0);
                let asked = String::from_utf8_lossy(&head[..count]).into_owned();
                let body = if asked.starts_with("GET /hostile.tgz ") {
                    archive.clone()
                } else {
                    page.to_string().into_bytes()
                };
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(&[answer.as_bytes(), &body].concat());
            }
        });
        Registry { url }
    }
}

fn scripts() {
    let place = Place::new("scripts");
    let registry = Registry::start(&place);
    let run = |flags: &[&str]| {
        let mut runner = place.runner(&[flags, &["--", "npx", "-y", "hostile@1.0.0", "word"]].concat());
        runner.env("npm_config_registry", &registry.url).stdin(Stdio::null());
        let output = runner.spawn().and_then(|child| child.wait_with_output()).expect("the end");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap_or_else(|_| panic!("{told}"))
    };
    let expected = json!({"ran": false, "wrote": "EROFS", "arguments": ["word"]});
    assert_eq!(run(&[]), expected);
    assert_eq!(run(&["--offline"]), expected, "from what is installed");
}

fn broken_off() {
    let place = Place::new("broken-off");
    // It takes connections and never answers.
    let registry = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", registry.local_addr().expect("an address"));
    let mut runner = place.runner(&["--", "npx", "-y", "some-package"]);
    runner.env("npm_config_registry", &url);
    let mut session = Session::start(runner);
    let asked = registry.accept().expect("npm asks");
    let sent = Command::new("kill").args(["-TERM", &session.child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
    assert_eq!(session.child.wait().expect("the end").code(), Some(143));
    drop(asked);
    let cache = place.path().join("cache/bulkhead/packages");
    let left: Vec<_> =
        std::fs::read_dir(cache).expect("the cache").map(|entry| entry.expect("an entry").path()).collect();
    assert!(left.iter().all(|path| path.extension().is_some_and(|end| end == "lock")), "{left:?}");
}

//! Programs behind the process wall, from a folder or a package to a call.

mod support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::host::{Host, Keys, until};
use support::{Dir, Run, example};

/// A package is installed meanwhile.
const INSTALLED: Duration = Duration::from_secs(300);

fn output(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{run:?}"))
}

fn call(host: &Host, keys: &Keys, server: &str, tool: &str, arguments: Value) -> Run {
    host.run(&keys.call, ["call", &format!("acme/{server}"), tool, &arguments.to_string()]).now()
}

fn said(run: &Run) -> &str {
    assert_eq!(run.code, 0, "{run:?}");
    run.stdout.trim()
}

/// Writes a server in Python, with a manifest around it.
fn project(dir: &Dir, name: &str, code: &str, manifest: &str) -> String {
    let folder = dir.path(name);
    std::fs::create_dir_all(&folder).unwrap();
    let head = format!("name = \"{name}\"\nwall = \"process\"\ncommand = [\"python3\", \"server.py\"]\n");
    std::fs::write(folder.join("bulkhead.toml"), format!("{head}{manifest}")).unwrap();
    std::fs::write(folder.join("server.py"), format!("{SERVER}{code}\nserve()\n")).unwrap();
    folder.to_string_lossy().into_owned()
}

/// One tool, `run`, which is a function of its arguments.
const SERVER: &str = r#"
import json, os, socket, subprocess, sys, time, urllib.request

SCHEMA = {"type": "object"}

def serve():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        method, params = message["method"], message.get("params", {})
        if method == "initialize":
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "test", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": "run", "description": DESCRIPTION, "inputSchema": SCHEMA}]}
        elif method == "tools/call":
            try:
                text = json.dumps(run(params.get("arguments", {})))
                result = {"content": [{"type": "text", "text": text}]}
            except Exception as error:
                result = {"content": [{"type": "text", "text": repr(error)}], "isError": True}
        else:
            result = {}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

DESCRIPTION = "Runs"
"#;

#[test]
fn a_folder_is_deployed_and_called() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let path = dir.path("notes");
    std::fs::create_dir(&path).unwrap();
    for file in ["server.py", "bulkhead.toml"] {
        std::fs::copy(format!("{}/{file}", example("notes-py")), path.join(file)).unwrap();
    }
    let path = path.to_string_lossy().into_owned();
    let deploy = ["deploy", &path, "--server", "acme", "--json"];
    let made = output(&host.run(&keys.deploy, deploy));
    assert_eq!(made["server"], "acme/notes");
    let added = call(&host, &keys, "notes", "add", json!({ "text": "milk" }));
    assert_eq!(said(&added), "milk");
    assert!(added.stderr.contains("wall process, boundary session"), "{added:?}");
    // Each command is a session of its own, so nobody sees another one's notes.
    assert_eq!(said(&call(&host, &keys, "notes", "list", json!({}))), "");
    let again = output(&host.run(&keys.deploy, deploy));
    assert_eq!(again["deployment"], made["deployment"], "the same files are the same deployment");
    let shown = output(&host.run(&keys.deploy, ["deployments", "acme/notes", "--json"]));
    assert_eq!(shown["deployments"][0]["manifest"]["wall"], "process");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn it_survives_a_restart_of_the_host_and_what_was_changed_does_not_run() {
    let dir = Dir::new();
    let path = project(&dir, "env", "def run(given): return sorted(os.environ)", "[environment]\nMINE = \"1\"\n");
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    output(&host.run(&keys.deploy, ["deploy", &path, "--server", "acme", "--json"]));
    let variables = call(&host, &keys, "env", "run", json!({}));
    let variables: Vec<String> = serde_json::from_str(said(&variables)).unwrap();
    let expected = ["HOME", "LANG", "MINE", "PATH", "TMPDIR"];
    assert_eq!(
        variables.iter().filter(|name| *name != "LC_CTYPE").collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert_eq!(host.stop().0, Some(0));

    let host = Host::start(&dir, "");
    assert_eq!(call(&host, &keys, "env", "run", json!({})).code, 0);
    assert_eq!(host.stop().0, Some(0));

    let layers = dir.path("data/layers");
    let file = find(&layers, "server.py").expect("the layer is there");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("sorted", "list")).unwrap();
    let host = Host::start(&dir, "");
    let refused = call(&host, &keys, "env", "run", json!({}));
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(!refused.stdout.contains("MINE"), "{refused:?}");
    // What was changed went nowhere: another tenant's server runs on.
    let other = host.tenant("other");
    output(&host.run(&other.deploy, ["deploy", &path, "--server", "other", "--json"]));
    assert_eq!(host.run(&other.call, ["call", "other/env", "run", "{}"]).code, 0);
    assert_eq!(host.stop().0, Some(0));
}

fn find(folder: &std::path::Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => find(&path, name),
        path => (entry.file_name() == name).then_some(path),
    })
}

#[test]
fn drift_of_a_program_needs_agreement() {
    let dir = Dir::new();
    let code = "def run(given): return 1";
    let path = project(&dir, "tool", code, "");
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let deploy = |more: &[&str]| {
        let args = ["deploy", &path, "--server", "acme", "--json"].into_iter().chain(more.iter().copied());
        host.run(&keys.deploy, args).now()
    };
    output(&deploy(&[]));
    project(&dir, "tool", &format!("{code}\nDESCRIPTION = 'Runs, and tells everybody'"), "");
    let drifted = deploy(&[]);
    assert!(drifted.code == 1 && drifted.stdout.contains("surface_drift"), "{drifted:?}");
    project(&dir, "tool", code, "[environment]\nMORE = \"1\"\n");
    let drifted = deploy(&[]);
    assert!(drifted.code == 1 && drifted.stdout.contains("/command"), "{drifted:?}");
    output(&deploy(&["--accept-surface"]));
    // Other code that shows the same is no drift.
    project(&dir, "tool", "def run(given): return 2", "[environment]\nMORE = \"1\"\n");
    output(&deploy(&[]));
    assert_eq!(said(&call(&host, &keys, "tool", "run", json!({}))), "2");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn a_program_is_held() {
    let dir = Dir::new();
    let code = r#"
def run(given):
    what = given["what"]
    if what == "spin":
        while True: pass
    if what == "hoard":
        kept = []
        while True: kept.append(bytearray(1 << 20))
    if what == "fork":
        for _ in range(1000): os.fork()
    if what == "read":
        return [path for path in given["paths"] if os.path.exists(path)]
    if what == "write":
        open("/app/server.py", "w")
    if what == "reach":
        with socket.create_connection((given["host"], given["port"]), timeout=5): return "reached"
    return "ok"
"#;
    let limits = "boundary = \"call\"\n[limits]\ncpu_ms = 500\nmemory_mb = 64\nprocesses = 10\n";
    let path = project(&dir, "hostile", code, limits);
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    output(&host.run(&keys.deploy, ["deploy", &path, "--server", "acme", "--json"]));
    let try_to = |arguments: Value| call(&host, &keys, "hostile", "run", arguments);
    for (what, code) in [("spin", "cpu_limit"), ("hoard", "memory_limit")] {
        let run = try_to(json!({ "what": what }));
        assert!(run.code == 1 && run.stderr.contains(code), "{what}: {run:?}");
    }
    let forked = try_to(json!({ "what": "fork" }));
    assert_eq!(forked.code, 1, "{forked:?}");
    let beside = dir.file("beside.txt", "not part of the server");
    let own = [dir.path("data").to_string_lossy().into_owned(), path.clone(), beside, "/etc/shadow".into()];
    assert_eq!(said(&try_to(json!({ "what": "read", "paths": own }))), "[]");
    let written = try_to(json!({ "what": "write" }));
    assert!(written.stderr.contains("Read-only") || written.stdout.contains("Read-only"), "{written:?}");
    let port: u16 = host.url.rsplit(':').next().unwrap().parse().unwrap();
    for address in ["127.0.0.1", "169.254.169.254", "192.0.2.1"] {
        let run = try_to(json!({ "what": "reach", "host": address, "port": port }));
        assert!(!run.stdout.contains("reached"), "{address}: {run:?}");
    }
    assert_eq!(said(&try_to(json!({ "what": "nothing" }))), "\"ok\"");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn what_a_program_says_on_stderr_is_in_its_log() {
    let dir = Dir::new();
    let path =
        project(&dir, "loud", "def run(given):\n    print('heard', file=sys.stderr, flush=True)\n    return 1", "");
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    output(&host.run(&keys.deploy, ["deploy", &path, "--server", "acme", "--json"]));
    assert_eq!(call(&host, &keys, "loud", "run", json!({})).code, 0);
    until("the line is in the log", || host.run(&keys.admin, ["logs", "acme/loud"]).now().stdout.contains("heard"));
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn what_cannot_be_deployed_says_why() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let deploy = |path: &str| host.run(&keys.deploy, ["deploy", path, "--server", "acme/x", "--json"]).now();
    let broken = project(&dir, "x", "raise SystemExit('no licence')", "");
    let refused = deploy(&broken);
    assert!(refused.code == 1 && refused.stdout.contains("no licence"), "{refused:?}");
    for (package, why) in
        [("npm:@scope/name", "version"), ("pypi:name", "version"), ("npm:../../etc@1.0.0", "npm:../../etc@1.0.0")]
    {
        let refused = deploy(package);
        assert!(refused.code == 64 && refused.stdout.contains(why), "{package}: {refused:?}");
    }
    std::os::unix::fs::symlink("/etc/passwd", dir.path("x/out")).unwrap();
    std::fs::write(dir.path("x/server.py"), format!("{SERVER}def run(given): return 1\nserve()\n")).unwrap();
    let refused = deploy(&broken);
    assert!(refused.code != 0 && refused.stdout.contains("out"), "{refused:?}");
    assert_eq!(host.stop().0, Some(0));
}

/// The newest version of a package, if its registry can be asked.
fn newest(package: &str) -> Option<String> {
    let (registry, name) = package.split_once(':').expect("a registry");
    let (program, arguments) = match registry {
        "npm" => ("npm", vec!["view", name, "version"]),
        _ => ("python3", vec!["-m", "pip", "index", "versions", name]),
    };
    let asked = Command::new(program).args(&arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&asked.stdout).into_owned();
    let version = if registry == "npm" { Some(text.trim()) } else { text.split(['(', ')']).nth(1) };
    let version = version.filter(|version| asked.status.success() && !version.is_empty());
    if version.is_none() {
        skips::skip(&format!("`{program} {}` does not work here", arguments.join(" ")));
    }
    let mark = if registry == "npm" { "@" } else { "==" };
    version.map(|version| format!("{package}{mark}{version}"))
}

/// A host on loopback that says the same words to everybody.
fn staged() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let count = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..count]).to_ascii_lowercase();
            let (status, body) = match head.contains("robots.txt") {
                true => ("404 Not Found", String::new()),
                false => (
                    "200 OK",
                    format!("staged words; bearer {}", head.contains("authorization: bearer open-sesame-now")),
                ),
            };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// `bulkhead dev` with this port of loopback open to servers.
fn dev(dir: &Dir, port: u16) -> Host {
    let config = dir.file("host.toml", "[isolate]\nquick_forks = false\n");
    let data = dir.path("data").to_string_lossy().into_owned();
    let mut command = Command::new(support::PROGRAM);
    command.args(["dev", "--listen", "127.0.0.1:0", "--data", &data, "--config", &config]);
    command.args(["--loopback", &port.to_string()]);
    Host::launch(command, data)
}

/// Lines of a manifest: this host, with a secret.
fn bound(base: &str) -> String {
    let place = "header = \"authorization\"\nformat = \"Bearer {}\"";
    format!("egress = [\"{base}\"]\n[[secrets]]\nname = \"KEY\"\nhosts = [\"{base}\"]\n{place}\n")
}

#[test]
fn real_servers_of_the_registries() {
    let dir = Dir::new();
    let port = staged();
    let host = dev(&dir, port);
    let keys = host.tenant("acme");
    let base = format!("http://127.0.0.1:{port}");
    let more = dir.file("fetch.toml", &bound(&base));
    let set = ["secret", "set", "acme", "KEY", "--for", "mcp-server-fetch", "--to", &base];
    let set = host.run(&keys.admin, set).with_stdin("open-sesame-now\n").now();
    assert_eq!(set.code, 0, "{set:?}");
    let thought = json!({ "thought": "x", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 });
    let entity = json!({ "entities": [{ "name": "Ann", "entityType": "person", "observations": ["likes tea"] }] });
    let servers: [(&str, &[&str], &str, Value, &str); 7] = [
        ("npm:@modelcontextprotocol/server-everything", &[], "echo", json!({ "message": "hello" }), "hello"),
        ("npm:@modelcontextprotocol/server-filesystem", &["--", "/tmp"], "list_allowed_directories", json!({}), "/tmp"),
        (
            "npm:@modelcontextprotocol/server-memory",
            &["--env", "MEMORY_FILE_PATH=/tmp/memory.json"],
            "create_entities",
            entity,
            "likes tea",
        ),
        ("npm:@modelcontextprotocol/server-sequential-thinking", &[], "sequentialthinking", thought, "thoughtNumber"),
        (
            "pypi:mcp-server-time",
            &["--", "--local-timezone", "UTC"],
            "get_current_time",
            json!({ "timezone": "Europe/Berlin" }),
            "Europe/Berlin",
        ),
        ("pypi:mcp-server-git", &[], "git_status", json!({ "repo_path": "/tmp/none" }), "/tmp/none"),
        (
            "pypi:mcp-server-fetch",
            &["--manifest", &more, "--", "--allow-private-ips"],
            "fetch",
            json!({ "url": format!("{base}/page") }),
            "staged words; bearer true",
        ),
    ];
    for (package, flags, tool, arguments, expected) in servers {
        let Some(exact) = newest(package) else { continue };
        let server = package.rsplit(['/', ':']).next().unwrap();
        let place = format!("acme/{server}");
        let (head, tail) = flags.split_at(flags.iter().position(|flag| *flag == "--").unwrap_or(flags.len()));
        let command = ["deploy", &exact, "--server", &place, "--json", "--limit", "memory_mb=256"];
        let args = command.into_iter().chain(head.iter().copied()).chain(tail.iter().copied());
        output(&host.run(&keys.deploy, args).within(INSTALLED));
        let run = call(&host, &keys, server, tool, arguments);
        assert!(run.stdout.contains(expected) || run.stderr.contains(expected), "{server}: {run:?}\n{}", host.said());
    }
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn a_program_reaches_what_its_manifest_names_with_secrets_it_never_sees() {
    let dir = Dir::new();
    let port = staged();
    let host = dev(&dir, port);
    let keys = host.tenant("acme");
    let code = r#"
def run(given):
    with urllib.request.urlopen(given["url"], timeout=20) as answer:
        return [answer.status, answer.read().decode(), "open-sesame-now" in str(os.environ)]
"#;
    let base = format!("http://127.0.0.1:{port}");
    let path = project(&dir, "reach", code, &bound(&base));
    let deploy = || host.run(&keys.deploy, ["deploy", &path, "--server", "acme", "--json"]).now();
    let refused = deploy();
    assert!(refused.code == 1 && refused.stdout.contains("secret_not_allowed"), "{refused:?}");
    let set = ["secret", "set", "acme", "KEY", "--for", "reach", "--to", &base];
    let set = host.run(&keys.admin, set).with_stdin("open-sesame-now\n").now();
    assert_eq!(set.code, 0, "{set:?}");
    output(&deploy());
    let run = call(&host, &keys, "reach", "run", json!({ "url": format!("{base}/x") }));
    assert_eq!(said(&run), r#"[200, "staged words; bearer true", false]"#, "{}", host.said());
    assert!(run.stderr.contains("127.0.0.1"), "the receipt names the host: {run:?}");
    let other = staged();
    for url in [format!("http://127.0.0.1:{other}/"), "http://169.254.169.254/".into(), "http://host.example/".into()] {
        let refused = call(&host, &keys, "reach", "run", json!({ "url": url }));
        assert!(!refused.stdout.contains("200") && !refused.stderr.contains("staged"), "{url}: {refused:?}");
    }
    // What is taken from the server is gone at once, from what runs already too.
    let denied = host.run(&keys.admin, ["secret", "deny", "acme", "KEY", "--for", "reach"]);
    assert_eq!(denied.code, 0, "{denied:?}");
    let refused = call(&host, &keys, "reach", "run", json!({ "url": format!("{base}/x") }));
    assert!(!refused.stdout.contains("bearer true"), "{refused:?}");
    until("the refusal is in the server's log", || {
        host.run(&keys.admin, ["logs", "acme/reach"]).now().stdout.contains("refused: host.example:80")
    });
    assert_eq!(host.stop().0, Some(0));
}

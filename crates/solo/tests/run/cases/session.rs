//! What works.

use crate::Case;
use crate::client::{Place, Session};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

pub const CASES: &[Case] = &[
    ("a_session_works_as_without_a_jail", session),
    ("bytes_pass_as_they_are", bytes),
    ("a_node_server_answers", node),
    ("folders_are_there_as_named", folders),
    ("variables_are_there_as_named", variables),
    ("a_hidden_argument_is_hinted_at", hint),
    ("an_allowed_host_is_reached", allowed),
    ("node_reaches_an_allowed_host_whatever_its_version", node_fetch),
    ("a_part_of_a_host_is_reached_and_the_rest_is_not", part),
    ("a_port_is_reached_as_named", port),
    ("what_is_missing_is_named_with_its_flag", missing),
    ("a_script_in_another_folder_is_found", scripts),
    ("a_refusal_names_the_flag_that_helps", flags),
    ("the_jail_is_explained", explained),
    ("what_cannot_start_says_why", refusals),
];

fn session() {
    let place = Place::new("session");
    let mut session = place.small(&[]);
    assert_eq!(session.initialize()["serverInfo"]["name"], "small");
    assert_eq!(session.ask("tools/list", json!({}))["tools"][0]["name"], "evaluate");
    assert_eq!(session.evaluate("out = 6 * 7"), 42);
    assert_eq!(session.evaluate("import sys; print('to stderr', file=sys.stderr, flush=True); out = 1"), 1);
    session.error_with("to stderr");
    assert_eq!(session.end(), Some(0));
}

fn bytes() {
    let place = Place::new("bytes");
    let input: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let output = place.output(&["--", "cat"], &input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout == input, "{} bytes came back", output.stdout.len());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn node() {
    let place = Place::new("node");
    let script = place.path().join("server.mjs");
    let text =
        "process.stdin.on('data', d => process.stdout.write(String(d).toUpperCase())); console.error(process.version)";
    fs::write(&script, text).expect("a script");
    let output = place.output(&["--", "node", "./server.mjs"], b"hello");
    assert_eq!(output.stdout, b"HELLO", "{}", String::from_utf8_lossy(&output.stderr));
}

fn folders() {
    let place = Place::new("folders");
    fs::create_dir(place.path().join("work")).expect("a folder");
    let mut session = place.small(&["--ro", "notes", "--rw", "work"]);
    session.initialize();
    assert_eq!(session.evaluate("out = open('./notes/one.txt').read()"), "the first note");
    assert_eq!(session.evaluate("out = open('work/two.txt', 'w').write('two')"), 3);
    assert_eq!(fs::read_to_string(place.path().join("work/two.txt")).expect("a file"), "two");
    let refused = session.evaluate("out = open('notes/new.txt', 'w').write('x')");
    assert!(refused.as_str().is_some_and(|text| text.contains("Read-only") || text.contains("denied")), "{refused}");
    let listed = session.evaluate("import os; out = sorted(os.listdir('.'))");
    assert_eq!(listed, json!(["notes", "small.py", "work"]));
    assert_eq!(session.evaluate("import os; out = os.listdir(os.environ['HOME'])"), json!([]));
    assert_eq!(session.evaluate("out = open('/tmp/x', 'w').write('x')"), 1);
    assert!(!std::path::Path::new("/tmp/x").exists());
}

fn variables() {
    let place = Place::new("variables");
    let mut session = place.small(&["--env", "SECRET_OF_THE_HOST", "--env", "OTHER=1=2"]);
    session.initialize();
    let read = "import os; out = [os.environ.get(n) for n in ('SECRET_OF_THE_HOST', 'OTHER', 'XDG_CACHE_HOME')]";
    assert_eq!(session.evaluate(read), json!(["a secret value", "1=2", null]));
}

fn hint() {
    let place = Place::new("hint");
    let output = place.output(&["--", "ls", "./notes"], b"");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = "bulkhead: `./notes` is not visible to the server; add `--ro ./notes` or `--rw ./notes` before `--`";
    assert!(told.lines().any(|found| found == line), "{told}");
    assert!(!output.status.success());
}

const FETCH: &str = "
import urllib.request, urllib.error
try:
    out = urllib.request.urlopen(URL, timeout=30).read().decode()
except urllib.error.HTTPError as error:
    out = [error.code, error.read().decode()]
except OSError as error:
    out = str(error)
";

fn allowed() {
    let place = Place::new("allowed");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let count = stream.read(&mut [0; 4096]).expect("a request");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").expect("an answer");
        count
    });
    let rule = format!("http://127.0.0.1:{port}");
    let mut session = place.small(&["--allow", &rule]);
    session.initialize();
    let fetch = |url: &str| FETCH.replace("URL", &format!("'{url}'"));
    assert_eq!(session.evaluate(&fetch(&format!("{rule}/x"))), "hello");
    assert!(served.join().expect("the server") > 0);
    let refused = session.evaluate(&fetch("http://host.example/x"));
    assert_eq!(refused[0], 403, "{refused}");
    session.evaluate(&fetch("http://host.example/y"));
    session.evaluate(&fetch("https://other.example/"));
    let line = session.error_with("refused");
    assert_eq!(line, "bulkhead: refused: host.example:80; allow it with `--allow http://host.example` before `--`");
    let line = session.error_with("refused");
    assert_eq!(line, "bulkhead: refused: other.example:443; allow it with `--allow other.example` before `--`");
}

/// A host that speaks TLS, in Node; prints its port.
const HOST: &str = "
const fs = require('node:fs');
const server = require('node:https').createServer({ key: fs.readFileSync('key'), cert: fs.readFileSync('certificate') },
  (request, response) => response.end('hello ' + request.url));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => process.exit());
";

/// A server that asks it, in the two ways that there are.
const ASKING: &str = "
const base = process.argv[2];
const said = [await (await fetch(base + '/fetch')).text()];
const { get } = await import('node:https');
said.push(await new Promise((done) => get(base + '/https', (response) => response.on('data', (data) => done(String(data))))));
try { await fetch('https://host.example/'); } catch (error) { said.push(error.message); }
console.log(JSON.stringify(said));
process.exit();
";

/// The host above, with a certificate of its own. Ends when it is dropped.
struct Host {
    child: Child,
    base: String,
}

impl Host {
    fn start(place: &Place) -> Option<Host> {
        let words = "req -x509 -newkey rsa:2048 -nodes -keyout key -out certificate -days 2 -subj /CN=localhost \
                     -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost";
        let made = Command::new("openssl").args(words.split_whitespace()).current_dir(place.path()).output();
        if !made.is_ok_and(|made| made.status.success()) {
            skips::skip("there is no openssl to make a certificate with");
            return None;
        }
        let mut command = Command::new("node");
        command.args(["-e", HOST]).current_dir(place.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("node");
        let mut port = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut port).expect("a port");
        Some(Host { child, base: format!("https://localhost:{}", port.trim()) })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node_fetch() {
    let place = Place::new("node-fetch");
    let Some(host) = Host::start(&place) else { return };
    std::fs::write(place.path().join("asking.mjs"), ASKING).expect("a script");
    // The certificate is nobody's; who it is from is not the question here.
    let trust = "NODE_TLS_REJECT_UNAUTHORIZED=0";
    let words = ["--allow", &host.base, "--env", trust, "--", "node", "asking.mjs", &host.base];
    let output = place.output(&words, b"");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{told}"));
    assert_eq!(said, json!(["hello /fetch", "hello /https", "fetch failed"]), "{told}");
    assert!(told.contains("`--allow host.example` before `--`"), "{told}");
}

fn port() {
    let place = Place::new("port");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes).expect("five bytes");
        stream.write_all(&bytes.map(|byte| byte.to_ascii_uppercase())).expect("an answer");
        // The next one finds nobody.
    });
    let mut session = place.small(&["--tcp", &format!("localhost:{port}"), "--tcp", "db.invalid:5432"]);
    session.initialize();
    let say = format!(
        "import socket; s = socket.create_connection(('localhost', {port}), 60); s.sendall(b'hello'); out = s.recv(9).decode()"
    );
    assert_eq!(session.evaluate(&say), "HELLO");
    served.join().expect("the port");
    // Where nobody answers, it ends; it does not hang.
    let again = format!("import socket; s = socket.create_connection(('localhost', {port}), 60); out = len(s.recv(9))");
    assert_eq!(session.evaluate(&again), 0);
    session.error_with(&format!("port {port} of localhost cannot be reached"));
    assert_eq!(session.evaluate("import socket; out = socket.gethostbyname('db.invalid')"), "127.1.0.1");
    let other = session.evaluate("import socket; socket.create_connection(('localhost', 9), 60)");
    assert!(other.as_str().is_some_and(|text| text.contains("refused")), "{other}");
    assert_eq!(session.end(), Some(0));
}

fn missing() {
    let place = Place::new("missing");
    let said = |code: &str| {
        let output = place.output(&["--", "python3", "-c", code], b"");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = said("import sys; sys.exit('ACME_API_KEY is required, and SECRET_OF_THE_HOST')");
    assert!(told.contains("the server speaks of ACME_API_KEY") && told.contains("`--env ACME_API_KEY`"), "{told}");
    assert!(told.contains("SECRET_OF_THE_HOST is set, but the server does not see it"), "{told}");
    assert!(!told.contains("a secret value"), "{told}");
    let told = said("import socket; socket.create_connection(('127.0.0.1', 5432))");
    assert!(!told.contains("--env"), "{told}");
    let told = said("raise SystemExit('connect ECONNREFUSED 127.0.0.1:5432')");
    assert!(told.contains("`--tcp localhost:5432` before `--`"), "{told}");
}

fn scripts() {
    let place = Place::new("scripts");
    fs::write(place.path().join("alone.py"), "print('found')").expect("a script");
    fs::write(place.path().join("two.py"), "import beside").expect("a script");
    fs::write(place.path().join("beside.py"), "print('beside')").expect("a module");
    let run = |words: &[&str]| {
        let output = place.runner(words).current_dir(place.path().join("notes")).output().expect("the runner");
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let [said, told] = run(&["--", "python3", "../alone.py"]);
    assert_eq!(said, "found\n", "{told}");
    let [_, told] = run(&["--", "python3", "../two.py"]);
    let flag = format!("add `--ro {}` before `--`", place.path().display());
    assert!(told.contains("beside.py`") && told.contains(&flag), "{told}");
    let [said, told] = run(&["--ro", "..", "--", "python3", "../two.py"]);
    assert_eq!(said, "beside\n", "{told}");
}

fn flags() {
    let place = Place::new("flags");
    let code = "
import urllib.request, urllib.error
try: urllib.request.urlopen('http://a.example:8080/')
except urllib.error.HTTPError as error: print(error.code, error.read().decode())
";
    let output = place.output(&["--", "python3", "-c", code], b"");
    let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    for text in [&said, &told] {
        assert!(text.contains("`--allow http://a.example:8080` before `--`"), "{said}{told}");
    }
    assert!(said.starts_with("403 ") && !said.contains("`egress`"), "{said}");
    let path = place.path().join("notes/socket");
    let _listener = std::os::unix::net::UnixListener::bind(path).expect("a socket");
    let output = place.output(&["--ro", "notes/socket", "--", "true"], b"");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && told.contains("it is a socket"), "{told}");
}

fn part() {
    let place = Place::new("part");
    let Some(host) = Host::start(&place) else { return };
    let rule = format!("GET {}/open/", host.base);
    let server = place.server("small.py");
    // The machine trusts the host; the jail trusts the proxy.
    let mut command = place.runner(&["--allow", &rule, "--", "python3", &server]);
    command.env("SSL_CERT_FILE", place.path().join("certificate"));
    let mut session = Session::start(command);
    session.initialize();
    let fetch = |path: &str| FETCH.replace("URL", &format!("'{}{path}'", host.base));
    assert_eq!(session.evaluate(&fetch("/open/x")), "hello /open/x");
    for closed in ["/other", "/open/../other"] {
        let refused = session.evaluate(&fetch(closed));
        assert_eq!(refused[0], 403, "{closed}: {refused}");
    }
}

fn explained() {
    let place = Place::new("explained");
    let output = place.output(&["--explain", "--ro", "notes", "--", "true"], b"");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    assert!(told.lines().all(|line| line.starts_with("bulkhead: ")), "{told}");
    for part in [place.path().join("notes").to_str().expect("a path"), "It reaches nothing", "MB of memory"] {
        assert!(told.contains(part), "{part} is not in:\n{told}");
    }
}

fn refusals() {
    let place = Place::new("refusals");
    for (words, part) in [
        (&["--", "nobody-has-this"][..], "no program `nobody-has-this`"),
        (&["--ro", "nowhere", "--", "true"], "nowhere` cannot be shown"),
        (&["--rw", "/", "--", "true"], "the jail has its own"),
        (&["--allow", "*", "--", "true"], "--allow"),
        (&["--offline", "--", "npx", "-y", "a-package"], "`a-package` is not installed yet"),
        (&["--"], "no command"),
    ] {
        let output = place.output(words, b"");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && told.starts_with("bulkhead: ") && told.contains(part),
            "{words:?}: {told}"
        );
    }
}

//! What a server does not get.

use crate::Case;
use crate::client::Place;
use serde_json::json;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

pub const CASES: &[Case] = &[
    ("the_hosts_files_and_variables_are_not_there", files),
    ("nothing_leaves_without_the_proxy", network),
    ("a_fork_bomb_is_bounded", fork_bomb),
    ("a_memory_hog_is_killed", memory),
    ("memory_that_no_process_shows_counts", hidden_memory),
    ("a_node_server_gets_no_more", node),
];

fn files() {
    let place = Place::new("files");
    let mut session = place.small(&["--ro", "notes"]);
    session.initialize();
    let key = place.path().join("home/.ssh/id");
    let root = place.path().display();
    for code in [
        format!("out = open('{}').read()", key.display()),
        format!("out = open('{root}/notes/../home/.ssh/id').read()"),
        "out = open('/proc/1/root/etc/shadow').read()".to_owned(),
        "out = open('/etc/shadow').read()".to_owned(),
        "import os; out = os.listdir('/sys')".to_owned(),
        "import os; os.kill(1, 9); out = os.listdir('/var')".to_owned(),
        "out = open('/usr/bin/new', 'w')".to_owned(),
        format!("out = open('{root}/small.py', 'w')"),
    ] {
        let told = session.evaluate(&code);
        assert!(told.as_str().is_some_and(|text| text.contains("Error")), "{code} gave {told}");
    }
    let environment = session.evaluate("import os; out = ' '.join(os.environ.values())");
    assert!(!environment.as_str().expect("text").contains("secret"), "{environment}");
    let all = session.evaluate(
        "import glob; out = ''.join(open(f, errors='replace').read() for f in glob.glob('/proc/[0-9]*/environ'))",
    );
    assert!(!all.to_string().contains("a secret value"), "{all}");
    let shell = session
        .evaluate("import subprocess; out = subprocess.run(['id', '-u'], capture_output=True, text=True).stdout");
    assert_ne!(shell, "0\n");
    let open = session.evaluate("import os; out = sorted(int(f) for f in os.listdir('/proc/self/fd'))");
    assert!(open.as_array().expect("a list").iter().all(|fd| fd.as_u64() < Some(5)), "{open}");
}

fn network() {
    let place = Place::new("network");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener that does not wait");
    let port = listener.local_addr().expect("an address").port();
    let mut session = place.small(&["--allow", "host.example"]);
    session.initialize();
    for code in [
        format!("import socket; socket.create_connection(('127.0.0.1', {port}), 5); out = 1"),
        "import socket; socket.create_connection(('198.51.100.1', 80), 5); out = 1".to_owned(),
        "import socket; out = socket.getaddrinfo('host.example', 80)".to_owned(),
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('198.51.100.1', 53)); out = 1".to_owned(),
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); out = 1".to_owned(),
    ] {
        let told = session.evaluate(&code);
        let refused = told.as_str().is_some_and(|text| text.contains("Error") || text.contains("error"));
        assert!(refused, "{code} gave {told}");
    }
    // Through the proxy neither: this machine is no host that was allowed.
    let through = format!(
        "import urllib.request\nr = urllib.request.Request('http://localtest.example:{port}/')\nout = urllib.request.urlopen(r, timeout=20).status"
    );
    let told = session.evaluate(&through);
    assert!(told.as_str().is_some_and(|text| text.contains("403")), "{told}");
    assert!(listener.accept().is_err(), "somebody came");
}

fn fork_bomb() {
    let place = Place::new("forks");
    let mut session = place.small(&["--processes", "40"]);
    session.initialize();
    let code = "
import os, time
count = 0
try:
    while count < 500:
        if os.fork() == 0:
            time.sleep(600)
        count += 1
except OSError:
    pass
out = count
";
    let count = session.evaluate(code).as_u64().expect("a number");
    assert!((10..=40).contains(&count), "{count} children");
    drop(session);
}

fn memory() {
    let place = Place::new("memory");
    let code = "x = []\nwhile True: x.append(bytearray(1 << 20))";
    let output = place.output(&["--memory", "100", "--", "python3", "-c", code], b"");
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("more than 100 MB of memory; `--memory` allows more"), "{told}");
}

/// Page tables, and what waits in sockets.
const HIDDEN: [&str; 2] = [
    "
import ctypes, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
start = libc.mmap(None, ctypes.c_size_t(1 << 40), 1, 0x4022, -1, ctypes.c_long(0))
for place in range(start, start + (96 << 8) * (2 << 20), 2 << 20): ctypes.c_char.from_address(place).value
time.sleep(600)
",
    "
import socket, time
kept, written = [], 0
while written < 96 << 20:
    pair = socket.socketpair()
    kept.append(pair)
    pair[0].setblocking(False)
    try:
        while True: written += pair[0].send(bytes(1 << 16))
    except BlockingIOError: pass
time.sleep(600)
",
];

/// Without control groups, which `nobody` has none of.
fn hidden_memory() {
    let place = Place::new("hidden");
    for code in HIDDEN {
        let mut runner = place.runner(&["--memory", "64", "--", "/usr/bin/python3", "-c", code]);
        if std::fs::metadata("/proc/self").expect("a process").uid() == 0 {
            runner.uid(65534).gid(65534);
        }
        // Its input has ended, so it is asked to end after a while in any case.
        let output = runner.stdin(Stdio::null()).spawn().expect("the runner").wait_with_output().expect("the end");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("more than 64 MB of memory; `--memory` allows more"), "{told}");
    }
}

const NODE: &str = "
import fs from 'node:fs'; import net from 'node:net';
const tried = {};
const attempt = (name, f) => { try { tried[name] = f() } catch (error) { tried[name] = error.code } };
attempt('variable', () => process.env.SECRET_OF_THE_HOST ?? null);
attempt('key', () => fs.readFileSync(process.argv[2], 'utf8'));
attempt('shadow', () => fs.readFileSync('/etc/shadow', 'utf8'));
attempt('others', () => fs.readdirSync('/home'));
net.connect(80, '198.51.100.1').on('error', error => { tried.network = error.code; console.log(JSON.stringify(tried)) })
  .on('connect', () => { tried.network = 'connected'; console.log(JSON.stringify(tried)); process.exit() });
";

fn node() {
    let place = Place::new("hostile-node");
    std::fs::write(place.path().join("hostile.mjs"), NODE).expect("a script");
    let key = place.path().join("home/.ssh/id");
    let words = ["--", "node", "hostile.mjs", key.to_str().expect("a path")];
    let child = place.runner(&words).stdin(Stdio::null()).spawn().expect("the runner");
    let output = child.wait_with_output().expect("the end");
    let tried: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let expected =
        json!({"variable": null, "key": "ENOENT", "shadow": "ENOENT", "others": ["user"], "network": "ENETUNREACH"});
    assert_eq!(tried, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

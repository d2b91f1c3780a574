//! Programs with whatever they start: real interpreters in a tree, what they find there, and how the host reaches them.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jail::cgroup::{Availability, Manager};
use jail::program::{Bounds, Child, Content, End, Mount, Tree, system};

use crate::compartment::{MIB, chain, children};
use crate::harness::skip;

pub const PATIENCE: Duration = Duration::from_secs(30);

pub const BOUNDS: Bounds = Bounds {
    processes: 64,
    memory_bytes: 256 * MIB,
    cpu_percent: 200,
    cpu_seconds: 20,
    data_bytes: 1024 * MIB,
    file_bytes: 16 * MIB,
    open_files: 256,
};

const TMP_BYTES: u64 = 4 * MIB;
const TMP_FILES: u64 = 100;

/// Folders of a host: one to share, and a secret beside it.
pub struct Ground {
    pub folder: PathBuf,
}

impl Ground {
    pub fn new() -> Ground {
        Ground::for_interpreter("python3")
    }

    /// Skipping leaves nothing behind.
    pub fn for_interpreter(name: &str) -> Ground {
        interpreter(name);
        let folder = std::env::temp_dir().join(format!("jail-trees-{}", std::process::id()));
        fs::create_dir_all(folder.join("shared")).expect("a folder");
        fs::write(folder.join("secret"), "secret").expect("a secret");
        std::os::unix::fs::symlink(folder.join("secret"), folder.join("shared/absolute")).expect("a link");
        std::os::unix::fs::symlink("../secret", folder.join("shared/relative")).expect("a link");
        for path in ["", "shared"] {
            fs::set_permissions(folder.join(path), fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        Ground { folder }
    }

    pub fn tree(&self) -> Tree {
        let scratch = |bytes, files| Content::Scratch { bytes, files, executable: false };
        let shared = Content::Shared { source: self.folder.join("shared"), executable: true };
        let mut mounts = system(&[]);
        mounts.extend([
            mount("/proc", Content::Proc),
            mount("/dev", Content::Devices),
            mount("/tmp", scratch(TMP_BYTES, TMP_FILES)),
            mount("/home/user", scratch(MIB, 100)),
            mount("/shared", shared),
        ]);
        let folder = "/home/user".into();
        Tree { mounts, bounds: BOUNDS, reads_as: Some(65534), folder, proxy: None, unix_sockets: true }
    }

    /// Shared folders belong to whom the tree runs as.
    pub fn give_to_nobody(&self) {
        let _ = std::os::unix::fs::chown(self.folder.join("shared"), Some(65534), Some(65534));
    }

    pub fn python(&self, script: &str) -> Child {
        python(&self.tree(), None, script)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub fn mount(target: &str, content: Content) -> Mount {
    Mount { target: target.into(), content }
}

pub fn interpreter(name: &str) -> String {
    let path = format!("/usr/bin/{name}");
    if !Path::new(&path).exists() {
        skip(&format!("THIS HOST HAS NO {path}, SO NOTHING OF IT WAS TRIED IN A TREE"));
    }
    path
}

pub fn start(tree: &Tree, groups: Option<&Manager>, program: &str, arguments: &[&str]) -> Child {
    let variables = [("PATH", "/usr/bin:/bin"), ("HOME", "/home/user"), ("TMPDIR", "/tmp")];
    tree.spawn(groups, program, arguments, &variables).unwrap_or_else(|error| panic!("{}", chain(&error)))
}

pub fn python(tree: &Tree, groups: Option<&Manager>, script: &str) -> Child {
    start(tree, groups, &interpreter("python3"), &["-c", script])
}

/// Its exit status and all that it said. It must end by itself.
pub fn hear(child: Child) -> (Option<i32>, String) {
    match hear_with(child, u64::MAX) {
        (End::Exited(exit), said) => (exit.code, said),
        other => panic!("{other:?}"),
    }
}

pub fn hear_with(mut child: Child, memory: u64) -> (End, String) {
    drop(child.stdin.take());
    let (mut out, mut err) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
    let reader = std::thread::spawn(move || {
        let (mut said, mut wailed) = (String::new(), String::new());
        let _ = out.read_to_string(&mut said);
        let _ = err.read_to_string(&mut wailed);
        said + &wailed
    });
    let end = child.watch(PATIENCE, memory).expect("an end");
    (end, reader.join().expect("the reader"))
}

/// The script must end well: it asserts by itself what it finds.
pub fn passes(child: Child) -> String {
    let (code, said) = hear(child);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Waits for a word of the program.
pub fn await_word(child: &mut Child, word: &str) {
    let mut heard = Vec::new();
    let stdout = child.stdout.as_mut().expect("stdout");
    let mut byte = [0];
    while !heard.ends_with(word.as_bytes()) {
        if stdout.read(&mut byte).expect("words") == 0 {
            let mut why = String::new();
            let _ = child.stderr.as_mut().expect("stderr").read_to_string(&mut why);
            panic!("{}{why}", String::from_utf8_lossy(&heard));
        }
        heard.push(byte[0]);
    }
}

pub fn groups() -> Option<Manager> {
    match Manager::open().expect("control groups") {
        Availability::Available(manager) => Some(manager),
        Availability::Unavailable { .. } => None,
    }
}

pub fn descendants(pid: i32) -> Vec<i32> {
    let mut all = children(pid);
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        all.extend(children(pid));
        next += 1;
    }
    all
}

pub fn run_node() {
    let ground = Ground::for_interpreter("node");
    let child = start(
        &ground.tree(),
        None,
        &interpreter("node"),
        &[
            "-e",
            r#"
        const os = require('os'), fs = require('fs'), assert = require('assert'), http = require('http');
        const { execFileSync } = require('child_process');
        const { Worker } = require('worker_threads');
        assert.equal(os.userInfo().username, 'user');
        assert.equal(os.hostname(), 'compartment');
        assert.ok(os.cpus().length > 0);
        assert.equal(os.totalmem(), 256 << 20);
        // It asks by netlink, which there is none of; the outfit of the proxy answers in its place.
        assert.throws(() => os.networkInterfaces());
        assert.equal(execFileSync('sh', ['-c', 'echo $((6*7))']).toString(), '42\n');
        fs.writeFileSync('/tmp/a', 'a'); fs.copyFileSync('/tmp/a', '/tmp/b'); fs.chmodSync('/tmp/b', 0o755);
        fs.watch('/tmp').close();
        const worker = new Worker('require("worker_threads").parentPort.postMessage(7)', { eval: true });
        worker.on('message', seven => {
            const server = http.createServer((request, response) => response.end('hello')).listen(0, '127.0.0.1', () =>
                fetch(`http://localhost:${server.address().port}/`).then(r => r.text()).then(text => {
                    assert.equal(text, 'hello'); assert.equal(seven, 7); process.exit(0);
                }));
        });
    "#,
        ],
    );
    passes(child);
}

pub fn run_python() {
    let ground = Ground::new();
    passes(ground.python(
        r#"
import os, pwd, socket, sqlite3, ssl, subprocess, tempfile, threading, time
assert pwd.getpwuid(os.getuid()).pw_name == 'user' and os.getuid() == os.geteuid() == 1000 and os.getgid() == 1000
assert subprocess.run(['sh', '-c', 'cat; exit 3'], input=b'x', capture_output=True).returncode == 3
assert subprocess.run('ls / | wc -l', shell=True, capture_output=True).stdout.strip() != b'0'
thread = threading.Thread(target=time.sleep, args=(0.01,)); thread.start(); thread.join()
with tempfile.TemporaryDirectory() as folder:
    base = sqlite3.connect(folder + '/base'); base.execute('pragma journal_mode=wal'); base.execute('create table t(x)')
    base.execute('insert into t values(1)'); base.commit(); base.close()
ssl.create_default_context()
assert socket.gethostbyname('localhost') == '127.0.0.1'
import multiprocessing
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
assert os.getcwd() == '/home/user'
"#,
    ));
}

/// The host accepts what connects inside, and connects to what listens inside; no process in there helps.
pub fn are_reached_through_the_host_alone() {
    let ground = Ground::new();
    let tree = Tree { proxy: Some(8080), ..ground.tree() };
    let mut child = python(
        &tree,
        None,
        r#"
import socket, sys
there = socket.create_connection(('127.0.0.1', 8080)); there.sendall(b'from inside'); there.shutdown(socket.SHUT_WR)
assert there.recv(99) == b'from outside'
here = socket.create_server(('127.0.0.1', 9090)); print('listening', flush=True)
connection, _ = here.accept(); connection.sendall(b'hello ' + connection.recv(99))
"#,
    );
    let (mut stream, _) = child.listener().expect("a listener").accept().expect("a connection");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).expect("words");
    assert_eq!(heard, "from inside");
    stream.write_all(b"from outside").expect("a reader");
    drop(stream);
    await_word(&mut child, "listening");
    let mut stream = connect(&child, 9090);
    stream.write_all(b"host").expect("a reader");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).expect("words");
    assert_eq!(heard, "hello host");
    passes(child);
}

/// Sockets inside are no way to keep a program alive.
pub fn are_ended_whoever_has_their_sockets() {
    let ground = Ground::new();
    let mut child = python(&ground.tree(), None, "import time; print('here', flush=True); time.sleep(3600)");
    await_word(&mut child, "here");
    let sockets = child.sockets().expect("a network");
    for address in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        sockets.get(address).expect("a socket");
    }
    child.kill();
    child.wait().expect("an end");
    assert!(sockets.get(Ipv4Addr::LOCALHOST.into()).is_err());
    assert!(child.sockets().is_none());
}

/// A busy machine may take its time to clear away what has ended; here the first process is held up.
pub fn have_ended_by_themselves_before_they_are_cleared_away() {
    let ground = Ground::new();
    let signal = |pid: i32, signal| {
        // SAFETY: takes numbers only; nobody has collected the process, so the number is its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    };
    let held_up = |script: &str| {
        let mut child = ground.python(script);
        await_word(&mut child, "here");
        let [outer] = children(std::process::id() as i32)[..] else { panic!("one process") };
        let [init] = children(outer)[..] else { panic!("one first process") };
        signal(init, libc::SIGSTOP);
        (child, init)
    };

    let (mut child, init) = held_up("print('here', flush=True); input(); raise SystemExit(7)");
    writeln!(child.stdin.take().expect("stdin")).expect("a word");
    // The end of its output is the first sign of its end.
    child.stdout.take().expect("stdout").read_to_end(&mut Vec::new()).expect("silence");
    let end = std::thread::scope(|scope| {
        let watch = scope.spawn(|| child.watch(Duration::from_millis(50), u64::MAX).expect("an end"));
        std::thread::sleep(Duration::from_millis(300));
        signal(init, libc::SIGCONT);
        watch.join().expect("no panic")
    });
    assert!(matches!(end, End::Exited(exit) if exit.code == Some(7)), "{end:?}");

    let script = "import os, threading, time; print('here', flush=True); input(); os.close(1); \
                  threading.Thread(target=time.sleep, args=(3600,)).start()";
    let (mut child, init) = held_up(script);
    writeln!(child.stdin.take().expect("stdin")).expect("a word");
    child.stdout.take().expect("stdout").read_to_end(&mut Vec::new()).expect("silence");
    signal(init, libc::SIGCONT);
    assert_eq!(child.watch(Duration::from_millis(50), u64::MAX).expect("an end"), End::TooLong, "it goes on");
}

fn connect(child: &Child, port: u16) -> TcpStream {
    let sockets = child.sockets().expect("a network");
    let socket = sockets.get(Ipv4Addr::LOCALHOST.into()).expect("a socket");
    // SAFETY: all zeroes is a value of this struct of numbers.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: an address of the family that it says it is, and its length.
    let connected = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(connected, 0, "{}", std::io::Error::last_os_error());
    TcpStream::from(socket)
}

pub fn are_furnished_in_order() {
    let ground = Ground::new();
    let inner = ground.folder.join("shared/inner");
    fs::create_dir(&inner).expect("a folder");
    fs::write(ground.folder.join("shared/file"), "host").expect("a file");
    let scratch = || Content::Scratch { bytes: MIB, files: 10, executable: true };
    let mut tree = ground.tree();
    tree.mounts.extend([
        mount("/home/user/work", Content::Host { source: ground.folder.join("shared"), executable: false }),
        mount("/home/user/work/inner", scratch()),
        mount("/home/user/work/file", Content::Hidden),
        mount("/home/user/.config", Content::Text { bytes: b"text".to_vec() }),
        mount("/note", Content::Text { bytes: b"note".to_vec() }),
        mount("/link", Content::Link { to: "note".into() }),
    ]);
    passes(python(
        &tree,
        None,
        r#"
import os
open('/home/user/work/inner/x', 'w').write('#!/bin/sh\n'); os.chmod('/home/user/work/inner/x', 0o700)
assert os.system('/home/user/work/inner/x') == 0
assert open('/link').read() == 'note' and open('/home/user/.config').read() == 'text'
for path, mode in [('/note', 'w'), ('/home/user/work/new', 'w'), ('/home/user/work/file', 'r')]:
    try: open(path, mode)
    except OSError: continue
    raise AssertionError(path)
"#,
    ));
    assert!(fs::read_dir(&inner).expect("a folder").next().is_none(), "something was written to the host");
    let refusal = |target: &str, content: Content| {
        let mut tree = ground.tree();
        tree.mounts.push(mount(target, content));
        chain(&tree.spawn(None, "/usr/bin/env", &[], &[]).map(drop).expect_err("started"))
    };
    assert!(refusal("/shared/new", scratch()).contains("no place for it"));
    assert!(refusal("/shared/absolute", scratch()).contains("no place for it"));
    assert!(refusal("/shared/absolute/x", scratch()).contains("no place for it"));
    assert!(refusal("/shared/file", scratch()).contains("no place for it"));
    assert!(refusal("/home", scratch()).contains("something else"));
    assert!(refusal("/bin/x", scratch()).contains("something else"));
    assert!(refusal("/proc/sys", scratch()).contains("something else"));
    assert!(refusal("/tmp", scratch()).contains("something else"));
    assert!(refusal("/nothing", Content::Hidden).contains("nothing to hide"));
    assert!(children(std::process::id() as i32).is_empty(), "processes are left behind");
}

/// Most hosts share their mounts with whatever is forked from them. What is placed over a copy must not show at home.
pub fn are_furnished_apart_from_a_host_that_shares_its_mounts() {
    let ground = Ground::new();
    // SAFETY: numbers, and a string with a terminating zero; this process is the only one in the new namespace.
    let shared = unsafe {
        [
            libc::unshare(libc::CLONE_NEWNS),
            libc::mount(
                std::ptr::null(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_SHARED,
                std::ptr::null(),
            ),
        ]
    };
    assert_eq!(shared, [0; 2], "{}", std::io::Error::last_os_error());
    let mounts = || fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let before = mounts();
    assert!(before.contains("shared:"), "{before}");
    let mut child = ground.python("import time; print('up', flush=True); time.sleep(600)");
    await_word(&mut child, "up");
    assert_eq!(mounts(), before);
    let pid = descendants(std::process::id() as i32)[2];
    let inside = fs::read_to_string(format!("/proc/{pid}/mountinfo")).expect("mounts");
    assert!(!inside.contains("shared:") && !inside.contains("master:"), "{inside}");
}

/// Root has another way in, and then the tree is `nobody` on the host and inside.
pub fn need_no_user_namespaces_when_root_starts_them() {
    let ground = Ground::new();
    ground.give_to_nobody();
    crate::host::forbid_user_namespaces();
    passes(ground.python(
        r#"
import os, pwd, subprocess
assert pwd.getpwuid(os.getuid()).pw_name == 'nobody' and os.getuid() == 65534
assert subprocess.run(['sh', '-c', 'exit 3']).returncode == 3
open('/shared/new', 'w').close()
assert {int(name) for name in os.listdir('/proc') if name.isdigit()} == {1, os.getpid()}
for path in ['/proc/1/environ', '/proc/1/root/etc', '/proc/1/mem']:
    try: open(path)
    except OSError: continue
    raise AssertionError(path)
"#,
    ));
    assert_eq!(fs::metadata(ground.folder.join("shared/new")).expect("a file").uid(), 65534);
}

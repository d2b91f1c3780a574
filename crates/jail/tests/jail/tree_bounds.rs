//! How much a tree may use, how it ends, and what it leaves behind.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use jail::pidfd::PidFd;
use jail::program::{Bounds, Content, End, Holder, Meter, Tree};

use crate::compartment::{MIB, children, eventually};
use crate::harness::skip;
use crate::trees::{BOUNDS, Ground, PATIENCE, await_word, descendants, groups, hear, hear_with, mount, python};

fn gone(pid: i32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

const BOMB: &str = r#"
import os, sys, time
children = 0
try:
    while True:
        if os.fork() == 0:
            try:
                while True: os.fork()
            except OSError: time.sleep(600)
        children += 1
except OSError: pass
print('full', flush=True); time.sleep(600)
"#;

pub fn cannot_multiply_without_bound() {
    let ground = Ground::new();
    let managers = [None, groups()];
    for groups in managers.iter().map(Option::as_ref).enumerate().filter(|(i, g)| *i == 0 || g.is_some()) {
        let mut child = python(&ground.tree(), groups.1, BOMB);
        let holder = if groups.1.is_some() { Holder::Group } else { Holder::Limit };
        assert_eq!(child.held().expect("bounds").processes, holder);
        await_word(&mut child, "full");
        let usage = child.usage().expect("a usage");
        assert!((32..=BOUNDS.processes + 1).contains(&usage.processes), "{usage:?}");
        let [outer] = children(std::process::id() as i32)[..] else { panic!("one process") };
        let all = descendants(outer);
        assert!(all.len() > 32, "{all:?}");
        drop(child);
        for pid in all {
            assert!(gone(pid), "{pid} goes on");
        }
    }
}

const HOG: &str = r#"
import os, time
hoard = []
while True:
    # In several processes, none of which is large.
    if os.fork() == 0:
        hoard.append(bytearray(os.urandom(4096)) * (24 << 8)); time.sleep(600)
    time.sleep(0.02)
"#;

pub fn end_when_they_take_too_much_memory() {
    let ground = Ground::new();
    let (end, said) = hear_with(python(&ground.tree(), None, HOG), BOUNDS.memory_bytes);
    assert_eq!(end, End::TooLarge, "{said}");
    // One process by itself meets its own limit first.
    let alone = "a = [bytearray(1 << 20) for _ in range(4096)]";
    let bounds = Bounds { data_bytes: 128 * MIB, ..BOUNDS };
    let (code, said) = hear(python(&Tree { bounds, ..ground.tree() }, None, alone));
    assert!(code == Some(1) && said.contains("MemoryError"), "{said}");
    let Some(groups) = groups() else { return };
    let mut child = python(&ground.tree(), Some(&groups), HOG);
    assert_eq!(child.held().expect("bounds").memory, Holder::Group);
    eventually("the kernel kills", || child.killed_for_memory() > 0);
    child.kill();
    child.wait().expect("an end");
    // What is written to scratch folders counts there, too.
    let bounds = Bounds { memory_bytes: 32 * MIB, ..BOUNDS };
    let mut tree = Tree { bounds, ..ground.tree() };
    let large = Content::Scratch { bytes: 256 * MIB, files: 100, executable: false };
    tree.mounts.push(mount("/large", large));
    let fill = "f = open('/large/f', 'wb', 0)\nfor _ in range(15): f.write(bytes(1 << 20))\n\
                g = open('/large/g', 'wb', 0)\nfor _ in range(15): g.write(bytes(1 << 20))\n\
                h = open('/large/h', 'wb', 0)\nfor _ in range(15): h.write(bytes(1 << 20))";
    let (code, said) = hear(python(&tree, Some(&groups), fill));
    assert_eq!(code, Some(128 + libc::SIGKILL), "{said}");
}

pub fn are_measured_as_a_whole() {
    let ground = Ground::new();
    let mut child = python(
        &ground.tree(),
        None,
        r#"
import ctypes, os, sys, threading, time
hoard = bytearray(os.urandom(4096)) * (32 << 8)
# Nobody hides behind a name that is no text, or looks like a line of the kernel's.
ctypes.CDLL(None).prctl(15, b'\xff) \nThreads: 0')
for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            end = time.process_time() + 0.3
            while time.process_time() < end: pass
            os.write(1, b'.'); time.sleep(600)
        os._exit(0)
    os.wait()
threading.Thread(target=time.sleep, args=(600,)).start()
os.write(1, b'!'); time.sleep(600)
"#,
    );
    await_word(&mut child, ".");
    await_word(&mut child, ".");
    let usage = child.usage().expect("a usage");
    assert_eq!(usage.processes, 4, "{usage:?}");
    assert_eq!(usage.threads, 5, "{usage:?}");
    assert!(usage.cpu >= Duration::from_millis(500), "{usage:?}");
    // Three processes share what one has allocated.
    assert!(usage.memory_bytes > 96 * MIB, "{usage:?}");
    let shared = child.meter().and_then(Meter::proportional).expect("a usage");
    assert!(shared > 32 * MIB && shared < 80 * MIB, "{shared} {usage:?}");
    child.kill();
    child.wait().expect("an end");
    assert_eq!(child.usage(), None);
}

/// The kernel then shows no memory of the process itself, and the other threads go on with all of it.
pub fn are_measured_when_their_first_thread_has_ended() {
    let ground = Ground::new();
    let hides = r#"
import ctypes, os, threading, time
libc, first = ctypes.CDLL(None), os.getpid()
def go_on():
    while open(f'/proc/{first}/stat').read().rsplit(') ')[1][0] != 'Z': time.sleep(0.01)
    hoard = bytearray(os.urandom(4096)) * (96 << 8)
    os.write(1, b'!'); time.sleep(600)
threading.Thread(target=go_on).start()
libc.syscall(60, 0)
"#;
    let mut child = python(&ground.tree(), None, hides);
    await_word(&mut child, "!");
    let usage = child.usage().expect("a usage");
    let shared = child.meter().and_then(Meter::proportional).expect("a usage");
    assert!(usage.memory_bytes > 96 * MIB, "{usage:?}");
    assert!(shared > 96 * MIB, "{shared}");
    drop(child);
    let (end, said) = hear_with(python(&ground.tree(), None, hides), 64 * MIB);
    assert_eq!(end, End::TooLarge, "{said}");
}

/// The kernel adds what a child used to its parent's account only when somebody waits for it. A control group counts all;
/// without one it is counted as it is seen.
pub fn pay_for_children_that_nobody_waits_for() {
    let ground = Ground::new();
    let managers = [None, groups()];
    for groups in managers.iter().map(Option::as_ref).enumerate().filter(|(i, g)| *i == 0 || g.is_some()) {
        let mut child = python(
            &ground.tree(),
            groups.1,
            r#"
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(40):
    if os.fork() == 0:
        end = time.process_time() + 0.03
        while time.process_time() < end: pass
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass
os.write(1, b'!'); time.sleep(600)
"#,
        );
        let stdout = child.stdout.take().expect("a pipe");
        let mut used = Duration::ZERO;
        // Who does not look sees nothing: so the host looks all the time.
        while !jail::socket::poll_readable(stdout.as_raw_fd(), Some(Duration::from_millis(15))).expect("a pipe") {
            used = used.max(child.usage().expect("a usage").cpu);
        }
        used = used.max(child.usage().expect("a usage").cpu);
        // 1.2 s in all.
        assert!(used >= Duration::from_millis(800), "{used:?}, with groups: {}", groups.1.is_some());
    }
}

pub fn page_tables_and_sockets_are_memory() {
    let ground = Ground::new();
    let tables = r#"
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
start = libc.mmap(None, ctypes.c_size_t(1 << 40), 1, 0x4022, -1, ctypes.c_long(0))
for place in range(start, start + (64 << 8) * (2 << 20), 2 << 20): ctypes.c_char.from_address(place).value
os.write(1, b'!'); time.sleep(600)
"#;
    let sockets = r#"
import os, socket, time
kept, written = [], 0
while written < 20 << 20:
    pair = socket.socketpair()
    kept.append(pair)
    pair[0].setblocking(False)
    try:
        while True: written += pair[0].send(bytes(1 << 16))
    except BlockingIOError: pass
os.write(1, b'!'); time.sleep(600)
"#;
    for (what, least) in [(tables, 64 * MIB), (sockets, 20 * MIB)] {
        let mut child = python(&ground.tree(), None, what);
        await_word(&mut child, "!");
        let usage = child.usage().expect("a usage");
        assert!(usage.memory_bytes > least && usage.least_bytes > least, "{usage:?}");
        let shared = child.meter().and_then(Meter::proportional).expect("a usage");
        assert!(shared > least, "{shared} {usage:?}");
        // No close look is needed to see it.
        assert!(child.meter().is_some_and(|meter| meter.exceeds(&usage, least)));
    }
}

/// A program may have all there is while it gets ready, and its share from then on.
pub fn have_their_share_of_the_cpu_when_they_are_told() {
    let Some(manager) = groups().filter(|manager| manager.limits_cpu()) else {
        skip("the CPU cannot be limited here");
    };
    let ground = Ground::new();
    let mut tree = ground.tree();
    tree.bounds.cpu_percent = 100_000;
    let mut child = python(&tree, Some(&manager), "print('!', flush=True)\nwhile True: pass");
    assert_eq!(child.held().expect("bounds").cpu, Holder::Group);
    await_word(&mut child, "!");
    child.limit_cpu(10).expect("a share");
    let (before, began) = (child.usage().expect("a usage").cpu, Instant::now());
    std::thread::sleep(Duration::from_millis(1500));
    let (used, passed) = (child.usage().expect("a usage").cpu - before, began.elapsed());
    // It may have been in the middle of what it had before.
    assert!(used < passed / 3, "{used:?} of {passed:?}");
}

/// Whatever leaves its parent belongs to the first process, which collects it; and it ends with the program.
pub fn leave_neither_zombies_nor_daemons() {
    let ground = Ground::new();
    let mut child = python(
        &ground.tree(),
        None,
        r#"
import os, sys, time
for index in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.01)
            if index == 0: print('daemon', flush=True); time.sleep(600)
        os._exit(0)
    os.wait()
def states(): return [open(f'/proc/{pid}/stat').read().rsplit(') ')[1][0] for pid in os.listdir('/proc') if pid.isdigit()]
while True:
    try:
        if len(states()) == 3: break
    except OSError: pass
    time.sleep(0.01)
print('collected', flush=True); sys.stdin.read(); sys.exit(9)
"#,
    );
    await_word(&mut child, "daemon");
    await_word(&mut child, "collected");
    let all = descendants(std::process::id() as i32);
    assert_eq!(all.len(), 4, "{all:?}");
    let (code, said) = hear(child);
    assert_eq!(code, Some(9), "{said}");
    for pid in all {
        assert!(gone(pid), "{pid} goes on");
    }
}

pub fn are_asked_to_end() {
    let ground = Ground::new();
    let mut child = python(&ground.tree(), None, "import time; print('up', flush=True); time.sleep(600)");
    await_word(&mut child, "up");
    child.terminate().expect("a listener");
    assert_eq!(hear(child).0, Some(128 + libc::SIGTERM));
    let mut child = python(
        &ground.tree(),
        None,
        "import signal, sys, time\n\
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(4)); print('up', flush=True)\n\
        for _ in range(6000): time.sleep(0.1)", // not in one go: a signal just before a sleep is seen after it
    );
    await_word(&mut child, "up");
    child.terminate().expect("a listener");
    assert_eq!(hear(child).0, Some(4));
}

/// However the host ends: nothing of the tree goes on, nothing is mounted, and the next host removes the groups.
pub fn end_with_the_host() {
    let ground = Ground::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    // SAFETY: no other thread runs.
    let host = unsafe { libc::fork() };
    if host == 0 {
        jail::process::die_with_parent().expect("no host without a test");
        let groups = groups();
        let _child = python(
            &ground.tree(),
            groups.as_ref(),
            "import os, time\n\
            if os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(600)\n os._exit(0)\nos.wait(); time.sleep(600)",
        );
        loop {
            std::thread::sleep(PATIENCE);
        }
    }
    eventually("the tree is there", || {
        let all = descendants(host);
        // The program, and a daemon that belongs to the first process by now.
        all.len() == 4 && children(all[1]).iter().filter(|pid| name(**pid).starts_with("python3")).count() == 2
    });
    let all = descendants(host);
    PidFd::open(host).expect("a process").kill().expect("a kill");
    jail::process::wait(host).expect("an end");
    for pid in all {
        eventually("all of it is gone", || gone(pid));
    }
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").expect("mounts"), mounts, "mounts are left behind");
    if let Some(groups) = groups() {
        eventually("its group is swept", || groups.sweep_stale().is_ok_and(|_| !group_of(host)));
    }
}

fn group_of(host: i32) -> bool {
    let place = jail::cgroup::survey().expect("a survey").detail;
    let bases = place.trim_start_matches("groups go to ").split(", ").map(|base| Path::new(base).join("bulkhead"));
    bases
        .filter_map(|base| fs::read_dir(base).ok())
        .flatten()
        .filter_map(Result::ok)
        .any(|entry| entry.file_name().to_string_lossy().split('.').nth(1) == Some(&host.to_string()))
}

fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// The waiting processes keep nothing of a large host, also when it has changed all its memory since.
pub fn cost_the_host_little_memory() {
    let ground = Ground::new();
    let mut large = vec![1_u8; 128 << 20];
    let child = std::thread::scope(|scope| {
        scope.spawn(|| python(&ground.tree(), None, "import time; time.sleep(600)")).join().expect("a thread")
    });
    large.fill(2);
    std::hint::black_box(&large);
    let [outer] = children(std::process::id() as i32)[..] else { panic!("one process") };
    let [init] = children(outer)[..] else { panic!("one process") };
    let mut sum = 0;
    for pid in [outer, init] {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("root may look");
        let field = |name: &str| {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
            line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
        };
        println!(
            "{} of {pid}: {} KiB private, {} KiB proportional",
            name(pid).trim(),
            field("Private_Dirty:"),
            field("Pss:")
        );
        sum += field("Private_Dirty:") + field("Private_Clean:");
    }
    assert!(sum < 2048, "{sum} KiB");
    drop(child);
}

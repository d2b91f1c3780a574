//! What the kernel counts by uid: a jail that uses it up takes nothing from the one beside it.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::time::Duration;

use jail::namespaces::NOBODY;
use jail::process::{self, Fork, fork_with_pidfd};
use jail::program::{Child, Tree};
use jail::{socket, users};

use crate::trees::{Ground, await_word, descendants, passes, python};

/// As hosts start programs: nobody says as whom.
fn tree(ground: &Ground) -> Tree {
    Tree { reads_as: None, ..ground.tree() }
}

/// Starts a hostile program, which says when it has all that it can get, and a neighbour beside it.
fn beside(hostile: &str, neighbour: &str) {
    let ground = Ground::new();
    let mut hostile: Child =
        python(&tree(&ground), None, &format!("{hostile}\nprint('full', flush=True)\nimport time; time.sleep(50)"));
    await_word(&mut hostile, "full");
    passes(python(&tree(&ground), None, neighbour));
}

pub fn descriptors_in_flight_of_one_jail_are_not_anothers() {
    beside(
        r#"
import errno, socket
pairs = []
try:
    while len(pairs) < 100:
        pair = socket.socketpair(); pairs.append(pair)
        socket.send_fds(pair[0], [b'x'], [pair[0].fileno()] * 200)
    raise SystemExit('no end of descriptors in flight')
except OSError as error:
    assert error.errno == errno.ETOOMANYREFS, error
"#,
        r#"
import socket
one, other = socket.socketpair()
for _ in range(100):
    socket.send_fds(one, [b'x'], [one.fileno()])
    import os; os.close(socket.recv_fds(other, 1, 1)[1][0])
"#,
    );
}

pub fn pipe_pages_of_one_jail_are_not_anothers() {
    // What a host may hold in pipes is 16,384 pages of a user; then new ones hold two pages.
    beside(
        r#"
import fcntl, os, time
F_GETPIPE_SZ = 1032
for _ in range(40):
    told, tell = os.pipe()
    if os.fork() == 0:
        pipes = [os.pipe() for _ in range(110)]
        os.write(tell, b'.'); time.sleep(50); os._exit(0)
    os.read(told, 1); os.close(told); os.close(tell)
    if fcntl.fcntl(os.pipe()[0], F_GETPIPE_SZ) < 65536: break
else:
    raise SystemExit('no end of pipe pages')
"#,
        "import fcntl, os\nassert fcntl.fcntl(os.pipe()[0], 1032) == 65536",
    );
}

pub fn watchers_of_one_jail_are_not_anothers() {
    beside(
        r#"
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
while libc.inotify_init1(0) >= 0: pass
assert ctypes.get_errno() in (errno.EMFILE, errno.ENFILE)
"#,
        "import ctypes\nassert ctypes.CDLL(None).inotify_init1(0) >= 0",
    );
}

/// Two programs that run at once are two users on the host, and neither is `nobody`.
pub fn each_jail_has_its_own() {
    let ground = Ground::new();
    let mut both =
        [(); 2].map(|()| python(&tree(&ground), None, "print('up', flush=True); import time; time.sleep(50)"));
    both.iter_mut().for_each(|child| await_word(child, "up"));
    let of = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:\t")).expect("a uid").to_owned();
        let all: BTreeSet<u32> = line.split('\t').map(|uid| uid.parse().expect("a number")).collect();
        assert_eq!(all.len(), 1, "real, effective, saved and for files: {line}");
        all
    };
    let pids = descendants(std::process::id() as i32);
    let uids: BTreeSet<u32> = pids.iter().flat_map(of).collect();
    assert!(pids.len() >= 6 && uids.len() == 2, "{pids:?} {uids:?}");
    assert!(!uids.contains(&0) && !uids.contains(&NOBODY), "{uids:?}");
}

/// A descriptor that cannot travel now travels when there is room. It is no reason to end anything.
pub fn a_descriptor_waits_until_it_can_travel() {
    let lease = users::lease().expect("a uid").expect("root has uids");
    let Fork::Parent(child) = fork_with_pidfd().expect("a child") else {
        let few = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
        // SAFETY: reads one rlimit, which outlives the call; the other takes numbers only.
        let changed = unsafe {
            [
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const few),
                libc::setresuid(lease.uid(), lease.uid(), lease.uid()),
            ]
        };
        assert_eq!(changed, [0; 2]);
        let (full, drain) = socket::pair().expect("a pair");
        while socket::send_with_fd(full.as_fd(), b"x", Some(full.as_fd())).is_ok() {}
        let refused = socket::send_with_fd(full.as_fd(), b"x", Some(full.as_fd())).expect_err("it is full");
        assert!(socket::is_crowded(&refused), "{refused}");
        let drainer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            while let Ok((1, _)) = socket::recv_with_fd(drain.as_fd(), &mut [0]) {}
            drop(drain);
        });
        let (ours, theirs) = socket::pair().expect("a pair");
        assert_eq!(socket::pass(ours.as_fd(), b"y", theirs.as_fd()).expect("passed"), 1);
        // With nobody there any more it does not wait for ever.
        drop(full);
        drainer.join().expect("the drainer");
        process::exit_now(0)
    };
    assert_eq!(process::wait(child.pid).expect("the child").code, Some(0));
    drop(lease);
}

//! Who dies with whom, and of what.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use jail::confine::Confinement;
use jail::pidfd::PidFd;
use jail::process::{self, Fork, fork_with_pidfd};
use jail::seccomp::{Filter, PolicyName};
use jail::socket;

use crate::compartment::{CONFINEMENT, Compartment, ask, eventually, read_byte, say, stay};

pub fn init_dies_with_the_outer_process() {
    let mut compartment = Compartment::start(None, &CONFINEMENT, |_| {
        say(".");
        stay();
    });
    read_byte(&mut compartment.stream);
    let init = PidFd::open(compartment.init()).expect("init");
    PidFd::open(compartment.outer).expect("outer").kill().expect("a kill");
    expect_death(&init);
    assert_eq!(compartment.finish().1.signal, Some(libc::SIGKILL));
}

/// The outer process dies at every moment of the start. Whatever it had made by then must die too, or it would hold
/// the socket open.
pub fn nothing_survives_an_outer_process_that_dies_early() {
    for step in 0..120 {
        let compartment = Compartment::start(None, &CONFINEMENT, |_| {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        std::thread::sleep(Duration::from_micros(step * 50));
        PidFd::open(compartment.outer).expect("outer").kill().expect("a kill");
        assert_eq!(compartment.finish().1.signal, Some(libc::SIGKILL), "killed after {step} steps");
    }
}

pub fn the_outer_process_ends_as_init_ended() {
    let (_, exit) = Compartment::start(None, &CONFINEMENT, |_| process::exit_now(42)).finish();
    assert_eq!(exit.code, Some(42));
    let (_, exit) = Compartment::start(None, &CONFINEMENT, |_| {
        Filter::load(PolicyName::IsolateCall, false).and_then(|filter| filter.install()).expect("a filter");
        // SAFETY: getppid has no arguments; the filter kills for it, even pid 1.
        unsafe { libc::getppid() };
    })
    .finish();
    assert_eq!(exit.code, Some(128 + libc::SIGSYS));
}

/// A zygote below init with two children, and another process beside it. The host knows all by descriptors that came
/// out of the jail.
pub fn children_die_with_their_zygote_and_only_they() {
    let compartment = Compartment::start(None, &CONFINEMENT, |_| {
        let filter = Filter::load(PolicyName::IsolateZygote, false).expect("the zygote's policy");
        let sealed = Filter::load(PolicyName::IsolateCall, false).expect("the child's policy");
        filter.install().expect("the zygote's filter");
        let child = || {
            sealed.install().expect("the child's filter");
            wait_for_ever();
        };
        let zygote = || {
            introduce('c', fork(child));
            introduce('c', fork(child));
            wait_for_ever();
        };
        introduce('z', fork(zygote));
        introduce('s', fork(wait_for_ever));
        stay();
    });
    let everyone = [(); 4].map(|()| meet(&compartment.stream));
    let all = |role| everyone.iter().filter(move |(its, _)| *its == role).map(|(_, process)| process);
    for (_, process) in &everyone {
        let pid = process.pid().expect("a pid");
        assert!(process.cpu_time(pid).expect("a clock") < Duration::from_secs(1));
    }
    all('z').for_each(|zygote| zygote.kill().expect("a kill"));
    all('z').chain(all('c')).for_each(expect_death);
    assert!(all('s').all(|sibling| sibling.is_alive().expect("a process descriptor")), "the sibling died too");
    assert_eq!(compartment.finish().1.code, Some(0));
}

pub fn everything_dies_with_init() {
    let compartment = Compartment::start(None, &CONFINEMENT, |_| {
        introduce('c', fork(wait_for_ever));
        stay();
    });
    let (_, child) = meet(&compartment.stream);
    PidFd::open(compartment.init()).expect("init").kill().expect("a kill");
    expect_death(&child);
    assert_eq!(compartment.finish().1.code, Some(128 + libc::SIGKILL));
}

/// The timer is set before the filter, the burning comes after it.
pub fn the_cpu_timer_kills_a_sealed_child() {
    let said = ask(None, |_| {
        let filter = Filter::load(PolicyName::IsolateCall, false).expect("the child's policy");
        // The kernel charges by its tick, so a busy machine moves the end by some ticks, either way.
        // Armed in the parent: a child starts without.
        process::arm_cpu_timer(Some(Duration::from_secs(60))).expect("a timer");
        let spared = fork(|| burn(Duration::from_millis(40)));
        assert_eq!(process::wait(spared.pid).expect("a child").code, Some(0));
        let killed = fork(|| {
            process::arm_cpu_timer(Some(Duration::from_millis(50))).expect("a timer");
            filter.install().expect("the child's filter");
            burn(Duration::from_secs(5));
        });
        let exit = process::wait(killed.pid).expect("a child");
        assert!(exit.cpu >= Duration::from_millis(10) && exit.cpu < Duration::from_millis(2500), "{exit:?}");
        assert!(exit.memory.peak_rss_kb > 100, "{exit:?}");
        say(&format!("{:?} {:?}", exit.code, exit.signal));
    });
    assert_eq!(said, format!("None Some({})", libc::SIGPROF));
}

/// What a child takes is seen from inside and from outside; what it takes again and again counts as long as it is there.
pub fn memory_is_what_was_touched() {
    let large = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if large.is_ok_and(|large| large.contains("[always]")) {
        crate::harness::skip("this kernel gives large pages to processes that do not ask for them");
    }
    let said = ask(None, |_| {
        let take = |times: usize| {
            move || {
                let before = process::Memory::of_self();
                for _ in 0..times {
                    let block = std::hint::black_box(vec![1_u8; 8 << 20]);
                    drop(block);
                }
                let taken = process::Memory::of_self().touched_since(before);
                assert!((8 << 10..9 << 10).contains(&taken), "{taken} KiB in {times} times");
            }
        };
        let fresh = process::wait(fork(|| {}).pid).expect("a child").memory;
        for times in [1, 5] {
            let exit = process::wait(fork(take(times)).pid).expect("a child");
            assert_eq!(exit.code, Some(0), "{exit:?}");
            let taken = exit.memory.touched_since(fresh);
            assert!((8 << 10..9 << 10).contains(&taken), "{taken} KiB: {exit:?} beside {fresh:?}");
        }
        say("counted");
    });
    assert_eq!(said, "counted");
}

/// Pid 1 of a pid namespace is deaf to the timer, so it needs the limit that kills.
pub fn only_the_cpu_limit_kills_init() {
    let confinement = Confinement { cpu_seconds: 1, ..CONFINEMENT };
    let (said, exit) = Compartment::start(None, &confinement, |_| {
        process::arm_cpu_timer(Some(Duration::from_millis(50))).expect("a timer");
        burn(Duration::from_millis(150));
        say("deaf");
        burn(Duration::from_secs(20));
        say("never said");
    })
    .finish();
    assert_eq!((said.as_str(), exit.code), ("deaf", Some(128 + libc::SIGKILL)));
}

/// A freezer or a debugger interrupts the wait for the host; the kernel must be able to resume it under the filter.
pub fn a_sealed_child_can_be_stopped_while_it_waits() {
    let compartment = Compartment::start(None, &CONFINEMENT, |_| {
        let filter = Filter::load(PolicyName::IsolateCall, false).expect("the child's policy");
        let child = || {
            filter.install().expect("the child's filter");
            let ready = socket::poll_readable(jail::CHILD_FD, Some(Duration::from_secs(10)));
            assert!(ready.expect("a poll"));
            socket::read(jail::CHILD_FD, &mut [0; 8]).expect("a word");
        };
        introduce('c', fork(child));
        let exit = loop {
            if let Some((_, exit)) = process::wait_any_nohang().expect("a wait") {
                break exit;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        say(&format!("{:?}", exit.code));
    });
    let (_, child) = meet(&compartment.stream);
    let pid = child.pid().expect("the child's pid");
    std::thread::sleep(Duration::from_millis(50));
    for signal in [libc::SIGSTOP, libc::SIGCONT, libc::SIGSTOP, libc::SIGCONT] {
        // SAFETY: takes numbers only; the child's parent has not collected it, so the pid is its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(child.is_alive().expect("a process descriptor"), "stopping killed it");
    socket::send_with_fd(compartment.stream.as_fd(), b"x", None).expect("a word");
    assert_eq!(compartment.finish().0, "Some(0)");
}

/// A host may ignore SIGCHLD, and its children inherit that.
pub fn an_ignored_sigchld_loses_no_status() {
    // SAFETY: takes numbers only.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    // The test itself cannot wait then, so the compartment tells by its socket.
    let mut compartment = Compartment::start(None, &CONFINEMENT, |_| {
        let child = fork(|| process::exit_now(7));
        say(&format!("{:?}", process::wait(child.pid).expect("a child").code));
    });
    let mut said = String::new();
    std::io::Read::read_to_string(&mut compartment.stream, &mut said).expect("words");
    assert_eq!(said, "Some(7)");
}

fn fork(child: impl FnOnce()) -> process::Forked {
    match fork_with_pidfd().expect("a child") {
        Fork::Parent(forked) => forked,
        Fork::Child => {
            child();
            process::exit_now(0)
        }
    }
}

/// Sends the process to the test.
fn introduce(role: char, process: process::Forked) {
    // SAFETY: descriptor 3 is the jail's socket as long as it runs.
    let socket = unsafe { std::os::fd::BorrowedFd::borrow_raw(jail::CHILD_FD) };
    let sent = socket::send_with_fd(socket, &[role as u8], Some(process.pidfd.as_fd()));
    assert_eq!(sent.expect("a message"), 1);
}

/// Takes one process that came out of the jail.
fn meet(stream: &UnixStream) -> (char, PidFd) {
    let mut role = [0];
    let (count, descriptor) = socket::recv_with_fd(stream.as_fd(), &mut role).expect("a message");
    assert_eq!(count, 1);
    (role[0].into(), PidFd::from_untrusted(descriptor.expect("a descriptor")).expect("a process").0)
}

/// Waits on nothing, with calls that every filter allows.
fn wait_for_ever() {
    loop {
        // SAFETY: an empty time span and no mask; the one descriptor is negative, which the kernel ignores.
        unsafe {
            let mut nothing = libc::pollfd { fd: -1, events: 0, revents: 0 };
            libc::ppoll(&raw mut nothing, 1, std::ptr::null(), std::ptr::null());
        }
    }
}

fn burn(time: Duration) {
    let end = process::cpu_used() + time;
    while process::cpu_used() < end {}
}

fn expect_death(process: &PidFd) {
    eventually("it is dead", || !process.is_alive().expect("a process descriptor"));
}

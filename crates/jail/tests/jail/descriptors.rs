//! Descriptors: which are kept, which travel, which are refused.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use jail::Error;
use jail::pidfd::PidFd;
use jail::process::{self, Fork, fork_with_pidfd, keep_only, reset_signals};
use jail::socket;

/// Each descriptor is a pipe's reading end with its own letter in it, so that a mix-up is seen.
pub fn kept_ones_land_on_their_targets_however_they_overlap() {
    let cases: [&[(usize, RawFd)]; 7] = [
        &[],
        &[(0, 3)],
        &[(0, 11), (1, 10)],
        &[(0, 11), (1, 12), (2, 10)],
        &[(0, 10), (1, 11), (2, 12)],
        &[(1, 0), (0, 1), (2, 60)],
        &[(0, 3), (0, 4), (1, 10)],
    ];
    for case in cases {
        let letters = [10, 11, 12].map(letter_on);
        let wanted: Vec<(RawFd, RawFd)> = case.iter().map(|(which, target)| (letters[*which], *target)).collect();
        let Fork::Parent(child) = fork_with_pidfd().expect("a child") else {
            keep_only(&wanted).unwrap_or_else(|_| process::exit_now(1));
            let right = case.iter().all(|(which, target)| {
                let mut letter = [0];
                // Two targets of one pipe share its letter: the second finds it empty, and ends.
                let count = socket::read(*target, &mut letter).unwrap_or(9);
                count == 0 || letter[0] == letters[*which] as u8
            });
            let others = (0..1024).filter(|fd| case.iter().all(|(_, target)| target != fd));
            let closed = others.into_iter().all(|fd| !is_open(fd));
            process::exit_now(if right && closed { 0 } else { 2 })
        };
        let exit = process::wait(child.pid).expect("the child");
        assert_eq!(exit.code, Some(0), "{case:?}");
        letters.into_iter().for_each(close);
    }
}

pub fn impossible_targets_are_refused() {
    for wanted in [&[(0, 5), (1, 5)][..], &[(0, -1)], &[(999, 3)], &[(-1, 3)]] {
        assert!(matches!(keep_only(wanted), Err(Error::Descriptor { .. })), "{wanted:?}");
    }
}

pub fn one_descriptor_travels_with_the_bytes() {
    let (ours, theirs) = socket::pair().expect("a pair");
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let sent = socket::send_with_fd(ours.as_fd(), b"take this", Some(writer.as_fd()));
    assert_eq!(sent.expect("sent"), 9);
    drop(writer);
    let mut buffer = [0; 64];
    let (count, descriptor) = socket::recv_with_fd(theirs.as_fd(), &mut buffer).expect("received");
    assert_eq!(&buffer[..count], b"take this");
    let descriptor = descriptor.expect("a descriptor");
    // SAFETY: takes numbers only.
    let flags = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFD) };
    assert_eq!(flags, libc::FD_CLOEXEC);
    File::from(descriptor).write_all(b"through the pipe").expect("written");
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("read");
    assert_eq!(said, "through the pipe");

    assert_eq!(socket::send_with_fd(ours.as_fd(), b"bare", None).expect("sent"), 4);
    let (count, descriptor) = socket::recv_with_fd(theirs.as_fd(), &mut buffer).expect("received");
    assert!(count == 4 && descriptor.is_none());
    drop(ours);
    let (count, descriptor) = socket::recv_with_fd(theirs.as_fd(), &mut buffer).expect("the end");
    assert!(count == 0 && descriptor.is_none());
}

/// A hostile peer sends as many as the kernel lets it.
pub fn surplus_descriptors_are_closed() {
    let (ours, theirs) = socket::pair().expect("a pair");
    let (reader, writer) = io::pipe().expect("a pipe");
    let before = count_open();
    send_many(ours.as_fd(), writer.as_fd(), 253);
    let (count, descriptor) = socket::recv_with_fd(theirs.as_fd(), &mut [0; 8]).expect("received");
    assert_eq!(count, 1);
    assert_eq!(count_open(), before + usize::from(descriptor.is_some()));
    // The pipe ends only when no copy of its writing end is left anywhere, in flight or open.
    drop((descriptor, writer));
    assert!(socket::poll_readable(reader.as_raw_fd(), Some(Duration::from_secs(5))).expect("a poll"));
    assert_eq!(socket::read(reader.as_raw_fd(), &mut [0]).expect("the end"), 0);
}

pub fn a_closed_peer_is_an_error_and_not_a_signal() {
    let (ours, theirs) = socket::pair().expect("a pair");
    drop(theirs);
    // SAFETY: takes numbers only. The standard library ignores SIGPIPE; a worker without its runtime does not.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let sent = socket::send_with_fd(ours.as_fd(), b"hello?", None);
    assert_eq!(sent.expect_err("nobody is there").kind(), io::ErrorKind::BrokenPipe);
    reset_signals().expect("signals");
    let written = socket::write_all(ours.as_raw_fd(), b"hello?");
    assert_eq!(written.expect_err("nobody is there").kind(), io::ErrorKind::BrokenPipe);
}

pub fn waiting_ends_with_data_the_end_or_the_time() {
    let (ours, theirs) = socket::pair().expect("a pair");
    let fd = ours.as_raw_fd();
    let started = Instant::now();
    assert!(!socket::poll_readable(fd, Some(Duration::from_millis(30))).expect("a poll"));
    assert!(started.elapsed() >= Duration::from_millis(30));
    socket::write_all(theirs.as_raw_fd(), b"x").expect("written");
    assert!(socket::poll_readable(fd, None).expect("a poll"));
    assert_eq!(socket::read(fd, &mut [0; 8]).expect("read"), 1);
    drop(theirs);
    assert!(socket::poll_readable(fd, None).expect("a poll"));
    assert_eq!(socket::read(fd, &mut [0; 8]).expect("the end"), 0);
    assert!(socket::poll_readable(999, None).is_err());
}

/// What a compromised zygote may send instead of its child.
pub fn only_processes_are_taken_for_processes() {
    let (socket, _other) = UnixStream::pair().expect("a pair");
    let impostors: [OwnedFd; 2] = [File::open("/proc/self/status").expect("a file").into(), socket.into()];
    for impostor in impostors {
        assert!(matches!(PidFd::from_untrusted(impostor), Err(Error::NotAPidFd { .. })));
    }
    let Fork::Parent(child) = fork_with_pidfd().expect("a child") else { process::exit_now(0) };
    let copy = child.pidfd.try_clone().expect("a copy");
    process::wait(child.pid).expect("the child");
    assert!(matches!(PidFd::from_untrusted(copy), Ok((_, None))));
    let gone = PidFd::open(std::process::id() as i32).expect("this process");
    assert_eq!(gone.pid().expect("a pid"), std::process::id() as i32);
    assert!(matches!(gone.cpu_time(1 << 22), Err(Error::CpuClock { .. })));
}

/// As a host leaves them: some ignored, all blocked.
pub fn signals_are_reset_whatever_the_host_did() {
    // SAFETY: sets dispositions without handlers and a full mask, in a process without threads.
    unsafe {
        for signal in [libc::SIGTERM, libc::SIGPROF, libc::SIGCHLD, libc::SIGRTMAX()] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
    reset_signals().expect("signals");
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let bits = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a mask");
        u64::from_str_radix(line.trim(), 16).expect("a number")
    };
    assert_eq!(bits("SigBlk:"), 0);
    assert_eq!(bits("SigCgt:"), 0);
    assert_eq!(bits("SigIgn:"), 1 << (libc::SIGPIPE - 1));
}

/// The reading end of a pipe that holds its own number as a letter, on that number.
fn letter_on(fd: RawFd) -> RawFd {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    writer.write_all(&[fd as u8]).expect("a letter");
    // SAFETY: takes numbers only; the cases use these numbers for nothing else.
    assert_eq!(unsafe { libc::dup2(reader.as_raw_fd(), fd) }, fd);
    fd
}

fn close(fd: RawFd) {
    // SAFETY: takes a number only; the case owns it.
    assert_eq!(unsafe { libc::close(fd) }, 0);
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

fn count_open() -> usize {
    (0..1024).filter(|fd| is_open(*fd)).count()
}

/// One byte with `count` copies of a descriptor.
fn send_many(socket: BorrowedFd, descriptor: BorrowedFd, count: usize) {
    let descriptors = vec![descriptor.as_raw_fd(); count];
    let length = size_of_val(&descriptors[..]) as u32;
    // SAFETY: the control buffer is aligned, zeroed and large enough for the header and all descriptors.
    unsafe {
        let mut control = vec![0_usize; libc::CMSG_SPACE(length) as usize / size_of::<usize>()];
        let mut part = libc::iovec { iov_base: b"x".as_ptr().cast_mut().cast(), iov_len: 1 };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(length) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(length) as usize;
        std::ptr::copy_nonoverlapping(descriptors.as_ptr(), libc::CMSG_DATA(header).cast(), count);
        assert_eq!(libc::sendmsg(socket.as_raw_fd(), &raw const message, 0), 1);
    }
}

//! The channel between host, zygote and child: one stream socket, and now and then a descriptor over it.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::sys::{check, check_long, retry};

/// Room for one control message with one descriptor. The kernel drops what does not fit.
/// Words, because the header must be aligned.
type Control = [usize; 4];

const FD_LEN: u32 = size_of::<RawFd>() as u32;

/// Two connected stream sockets, both close-on-exec.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Error> {
    let mut fds = [-1; 2];
    // SAFETY: the call writes two descriptors, for which the array has room.
    check(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr()) })
        .map_err(Error::SocketPair)?;
    // SAFETY: the kernel made both descriptors for this call, so nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// One `sendmsg`: some of `bytes` (at least one must be given for a descriptor to travel), and `fd` with the first.
pub fn send_with_fd(socket: BorrowedFd, bytes: &[u8], fd: Option<BorrowedFd>) -> io::Result<usize> {
    let mut control: Control = [0; 4];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = message(&mut part);
    if let Some(fd) = fd {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control_len();
        // SAFETY: control is aligned, zeroed, larger than one header with one descriptor, and outlives the call;
        // CMSG_FIRSTHDR therefore points into it, and so does CMSG_DATA.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(FD_LEN) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd.as_raw_fd());
        }
    }
    let sent = retry(|| {
        // SAFETY: the message points to buffers that live until the end of this function, and sendmsg only reads them.
        check_long(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) as libc::c_long })
    })?;
    Ok(sent as usize)
}

/// The kernel lets only so many descriptors of one user be on their way ([`crate::users`]); there is room again when some
/// have arrived.
pub fn is_crowded(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ETOOMANYREFS)
}

/// How long to pause before a descriptor is passed again.
pub const PAUSE: Duration = Duration::from_millis(2);

/// [`send_with_fd`] for a caller that may block: while too many descriptors are on their way, it waits and tries again.
/// A peer that is gone is still an error.
pub fn pass(socket: BorrowedFd, bytes: &[u8], fd: BorrowedFd) -> io::Result<usize> {
    loop {
        match send_with_fd(socket, bytes, Some(fd)) {
            Err(error) if is_crowded(&error) => {}
            sent => return sent,
        }
        let mut closed = libc::pollfd { fd: socket.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one pollfd, as the count says; a time that outlives the call; no mask. It is what every policy allows, and
        // nothing but the end of the peer makes it return early.
        unsafe { libc::ppoll(&raw mut closed, 1, &timespec(PAUSE), ptr::null()) };
        if closed.revents != 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }
}

/// One `recvmsg`: how many bytes came (0 is the end), and the descriptor that came with them, close-on-exec.
/// The room is for one descriptor; the kernel closes any further ones of the same message.
pub fn recv_with_fd(socket: BorrowedFd, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut control: Control = [0; 4];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = message(&mut part);
    message.msg_control = control.as_mut_ptr().cast();
    let received = retry(|| {
        message.msg_controllen = control_len();
        // SAFETY: the message points to buffers that live until the end of this function and have the given lengths.
        check_long(unsafe {
            libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) as libc::c_long
        })
    })?;
    Ok((received as usize, first_descriptor(&message)))
}

/// Owns the first received descriptor and closes all others.
fn first_descriptor(message: &libc::msghdr) -> Option<OwnedFd> {
    let mut kept = None;
    // SAFETY: the kernel filled the control buffer and its length; the CMSG macros stay within that length.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: header is not null, so it points to a control message inside the buffer, and a SCM_RIGHTS message
        // holds as many descriptors as its length says, each newly made for this process and owned by nobody yet.
        unsafe {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let length = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for index in 0..length / FD_LEN as usize {
                    let fd = libc::CMSG_DATA(header).cast::<RawFd>().add(index).read_unaligned();
                    let fd = OwnedFd::from_raw_fd(fd);
                    kept.get_or_insert(fd);
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    kept
}

fn message(part: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: msghdr is numbers and pointers, for which all zeros means "none".
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message
}

/// Exactly one descriptor: with the padding that CMSG_SPACE adds, two would fit.
fn control_len() -> usize {
    // SAFETY: pure arithmetic.
    unsafe { libc::CMSG_LEN(FD_LEN) as usize }
}

/// Plain `read`, repeated when a signal interrupts it. 0 is the end.
pub fn read(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    let count = retry(|| {
        // SAFETY: the kernel writes at most the length of the buffer, which is borrowed for the call.
        check_long(unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) as libc::c_long })
    })?;
    Ok(count as usize)
}

/// Plain `write` until all is written. A reader that is gone is `BrokenPipe` where SIGPIPE is ignored
/// ([`crate::process::reset_signals`] sees to that).
pub fn write_all(fd: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = retry(|| {
            // SAFETY: the kernel reads at most the length of the slice, which is borrowed for the call.
            check_long(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) as libc::c_long })
        })?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[count as usize..];
    }
    Ok(())
}

/// Waits until `fd` has something to read, or its other end is closed: true. False when the time is over.
///
/// It is `ppoll` with no signal mask: unlike `poll` the kernel restarts it by itself after a stop or a freeze, where
/// `poll` comes back as `restart_syscall`, which no policy allows.
pub fn poll_readable(fd: RawFd, timeout: Option<Duration>) -> io::Result<bool> {
    poll(fd, libc::POLLIN, timeout)
}

/// Waits until the other end of a stream socket is closed, whatever there is to read; false after `timeout`.
pub fn poll_closed(fd: RawFd, timeout: Duration) -> io::Result<bool> {
    // The kernel tells of a closed end whether it is asked to or not.
    poll(fd, 0, Some(timeout))
}

fn poll(fd: RawFd, events: libc::c_short, timeout: Option<Duration>) -> io::Result<bool> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut poll = libc::pollfd { fd, events, revents: 0 };
    let ready = retry(|| {
        let left = deadline.map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
        let left = left.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: one pollfd, as the count says; the time is null or a local of this closure; no mask.
        check(unsafe { libc::ppoll(&raw mut poll, 1, left, ptr::null()) })
    })?;
    if poll.revents & libc::POLLNVAL != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(ready > 0)
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

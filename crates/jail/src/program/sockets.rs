//! Memory of the sockets in a tree's network, as the kernel tells of each (`sock_diag`). No process shows it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::error::Error;
use crate::socket::poll_readable;
use crate::sys::{check, retry};

const BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// A netlink header, and what comes before the attributes of a Unix and of an internet socket.
const HEADER: usize = 16;
const OF_UNIX: usize = 16;
const OF_INTERNET: usize = 72;

/// The attribute with the memory: `UNIX_DIAG_MEMINFO`'s successor with all figures, and `INET_DIAG_SKMEMINFO`.
const UNIX_MEMORY: u16 = 5;
const INTERNET_MEMORY: u16 = 7;
const SHOW_UNIX_MEMORY: u32 = 0x20;
const SHOW_INTERNET_MEMORY: u8 = 1 << (INTERNET_MEMORY - 1);

/// Of the nine figures those that are memory in use: received, sent, set aside, queued, options, backlog.
const IN_USE: [usize; 6] = [0, 2, 4, 5, 6, 7];

const BUFFER: usize = 64 << 10;
/// The kernel answers at once; if not, the rest is not waited for.
const PATIENCE: Duration = Duration::from_millis(100);

/// What can be asked, in the network of the calling process for good.
pub(super) fn open() -> Result<OwnedFd, Error> {
    // SAFETY: takes numbers only.
    let fd = check(unsafe {
        libc::socket(libc::AF_NETLINK, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG)
    })
    .map_err(|source| Error::Network { step: "asking for the memory of sockets", source })?;
    // SAFETY: the kernel made this descriptor for this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Bytes that all sockets of that network hold. What the kernel does not tell counts as nothing.
pub(super) fn memory(netlink: &OwnedFd) -> u64 {
    let internet = [libc::AF_INET, libc::AF_INET6]
        .into_iter()
        .flat_map(|family| [libc::IPPROTO_TCP, libc::IPPROTO_UDP].map(|protocol| of_internet(family, protocol)));
    let internet = internet.map(|question| dump(netlink, &question, OF_INTERNET, INTERNET_MEMORY));
    let local = dump(netlink, &of_unix(), OF_UNIX, UNIX_MEMORY);
    internet.chain([local]).filter_map(Result::ok).fold(0, u64::saturating_add)
}

/// `unix_diag_req`: the family, all states, any number, what to show.
fn of_unix() -> Vec<u8> {
    let mut question = vec![libc::AF_UNIX as u8, 0, 0, 0];
    question.extend(u32::MAX.to_ne_bytes());
    question.extend(0_u32.to_ne_bytes());
    question.extend(SHOW_UNIX_MEMORY.to_ne_bytes());
    question.extend([0; 8]);
    question
}

/// `inet_diag_req_v2`: family, protocol, what to show, all states, any address.
fn of_internet(family: i32, protocol: i32) -> Vec<u8> {
    let mut question = vec![family as u8, protocol as u8, SHOW_INTERNET_MEMORY, 0];
    question.extend(u32::MAX.to_ne_bytes());
    question.extend([0; 48]);
    question
}

fn dump(netlink: &OwnedFd, question: &[u8], before: usize, attribute: u16) -> io::Result<u64> {
    let length = u32::try_from(HEADER + question.len()).map_err(io::Error::other)?;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(question);
    // SAFETY: as many bytes as there are, which outlive the call.
    let sent = unsafe { libc::send(netlink.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut sum, mut buffer) = (0_u64, vec![0_u8; BUFFER]);
    loop {
        if !poll_readable(netlink.as_raw_fd(), Some(PATIENCE))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let length = retry(|| {
            // SAFETY: as many bytes as there is room for.
            let got = unsafe { libc::recv(netlink.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            usize::try_from(got).map_err(|_| io::Error::last_os_error())
        })?;
        let mut rest = &buffer[..length];
        while let Some((kind, body, next)) = message_of(rest) {
            match kind {
                DONE => return Ok(sum),
                ERROR => return Err(io::ErrorKind::Unsupported.into()),
                _ => sum = sum.saturating_add(in_use(body.get(before..).unwrap_or(&[]), attribute)),
            }
            rest = next;
        }
    }
}

fn message_of(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(HEADER..length)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or(&[])))
}

/// The memory in the attributes of one socket.
fn in_use(mut attributes: &[u8], wanted: u16) -> u64 {
    while let (Some(length), Some(kind)) = (attributes.first_chunk(), attributes.get(2..).and_then(<[u8]>::first_chunk))
    {
        let (length, kind) = (usize::from(u16::from_ne_bytes(*length)), u16::from_ne_bytes(*kind));
        let Some(body) = attributes.get(4..length) else { break };
        if kind == wanted {
            let figure = |index: usize| Some(u32::from_ne_bytes(*body.get(index * 4..)?.first_chunk()?));
            return IN_USE.into_iter().filter_map(figure).map(u64::from).sum();
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_waits_in_a_socket_is_counted() {
        let netlink = open().expect("a socket");
        let before = memory(&netlink);
        let (mut one, other) = UnixStream::pair().expect("a pair");
        one.set_nonblocking(true).expect("a socket");
        let mut written = 0;
        while let Ok(more) = one.write(&[7; 4096]) {
            written += more as u64;
        }
        // Other tests have sockets as well, and far smaller ones.
        assert!(written > 100 << 10 && memory(&netlink) > before + written / 2, "{written} bytes");
        drop(other);
    }

    #[test]
    fn broken_answers_end_the_reading() {
        assert!(message_of(&[0; 3]).is_none());
        assert!(message_of(&[255; 20]).is_none());
        assert_eq!(in_use(&[0; 8], 5), 0);
        assert_eq!(in_use(&[255; 8], 5), 0);
    }
}

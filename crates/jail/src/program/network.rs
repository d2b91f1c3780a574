//! The network of a tree: `lo`, and sockets in it for the host.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::Error;
use crate::sys::check;

/// Switches `lo` on, in the namespace of this process, which is new.
pub(super) fn start() -> Result<(), Error> {
    let failed = |source| Error::Network { step: "switching lo on", source };
    let socket = socket(libc::AF_INET).map_err(failed)?;
    // SAFETY: all zeroes is a value of this struct of numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is a structure of the kind that this call reads, and outlives it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) }).map_err(failed)?;
    Ok(())
}

/// Listens inside. Whoever has the descriptor accepts, wherever it lives.
pub(super) fn listen(port: u16) -> Result<TcpListener, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|source| Error::Network { step: "listening", source })
}

/// A stream socket that belongs to the network of this process for good.
pub(super) fn socket(family: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = check(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the kernel made this descriptor for this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

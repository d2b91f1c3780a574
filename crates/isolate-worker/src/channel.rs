//! The one descriptor a worker process has: frames in, frames out.

use isolate_wire::{Decoder, Frame, Kind, encode, encode_with};
use jail::socket;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Every worker process talks over this descriptor, whatever it is: the filters name it.
pub const FD: i32 = jail::CHILD_FD;

/// The host is trusted, so this bounds mistakes, not attacks. Greater than any source or argument.
const MOST: usize = 64 << 20;

/// Reading end with its buffer. There is one per process, replaced after a fork.
pub struct Channel {
    decoder: Decoder,
    /// The descriptor that came with the last frame.
    passed: Option<OwnedFd>,
}

/// The host went away, or the channel broke; either way there is nothing left to do.
pub struct Gone;

impl Channel {
    pub fn new() -> Channel {
        Channel { decoder: Decoder::new(MOST), passed: None }
    }

    /// The next frame, waiting for it.
    pub fn receive(&mut self) -> Result<Frame, Gone> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(|_| Gone)? {
                return Ok(frame);
            }
            self.fill()?;
        }
    }

    /// The next frame with the descriptor that came with it; for zygotes, whose filter allows it.
    pub fn receive_with_fd(&mut self) -> Result<(Frame, Option<OwnedFd>), Gone> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(|_| Gone)? {
                return Ok((frame, self.passed.take()));
            }
            let missing = self.decoder.missing().map_err(|_| Gone)?;
            let (mut short, mut long) = ([0; SHORT], Vec::new());
            let buffer = room(&mut short, &mut long, missing);
            // No more than this frame: the descriptor of the next one must come with its own frame.
            let most = missing.min(buffer.len());
            match socket::recv_with_fd(own(), &mut buffer[..most]) {
                Ok((n, fd)) if n > 0 => {
                    self.decoder.push(&buffer[..n]);
                    self.passed = fd.or(self.passed.take());
                }
                _ => return Err(Gone),
            }
        }
    }

    /// The next frame if one comes in time.
    pub fn receive_within(&mut self, timeout: Option<Duration>) -> Result<Option<Frame>, Gone> {
        if let Some(frame) = self.decoder.next_frame().map_err(|_| Gone)? {
            return Ok(Some(frame));
        }
        if let Some(timeout) = timeout
            && !socket::poll_readable(FD, Some(timeout)).map_err(|_| Gone)?
        {
            return Ok(None);
        }
        self.receive().map(Some)
    }

    fn fill(&mut self) -> Result<(), Gone> {
        let missing = self.decoder.missing().map_err(|_| Gone)?;
        let (mut short, mut long) = ([0; SHORT], Vec::new());
        let buffer = room(&mut short, &mut long, missing);
        match socket::read(FD, buffer) {
            Ok(n) if n > 0 => {
                self.decoder.push(&buffer[..n]);
                Ok(())
            }
            _ => Err(Gone),
        }
    }
}

/// Most frames fit this. It is on the stack, each page of which costs a fork when it first writes there.
const SHORT: usize = 2 << 10;
const LONG: usize = 64 << 10;

/// Where to read to.
fn room<'a>(short: &'a mut [u8; SHORT], long: &'a mut Vec<u8>, missing: usize) -> &'a mut [u8] {
    if missing <= SHORT {
        return short;
    }
    long.resize(missing.min(LONG), 0);
    long
}

pub fn send(kind: Kind, id: u32, meta: &[u8], body: &[u8]) -> Result<(), Gone> {
    send_frame(&encode(kind, id, meta, body).ok_or(Gone)?)
}

pub fn send_with<T: serde::Serialize>(kind: Kind, id: u32, meta: &T, body: &[u8]) -> Result<(), Gone> {
    send_frame(&encode_with(kind, id, meta, body).ok_or(Gone)?)
}

pub fn send_frame(frame: &[u8]) -> Result<(), Gone> {
    socket::write_all(FD, frame).map_err(|_| Gone)
}

/// Sends a frame together with a descriptor; for zygotes, whose filter allows it.
pub fn send_fd(kind: Kind, id: u32, fd: BorrowedFd<'_>) -> Result<(), Gone> {
    let frame = encode(kind, id, b"", b"").ok_or(Gone)?;
    match socket::pass(own(), &frame, fd) {
        Ok(n) if n == frame.len() => Ok(()),
        _ => Err(Gone),
    }
}

fn own() -> BorrowedFd<'static> {
    // SAFETY: `start::prepare` and every fork put the channel on this number before anything speaks, and nothing
    // closes it while the process lives.
    unsafe { BorrowedFd::borrow_raw(FD) }
}

//! The host's end of a zygote's channel: frames with descriptors, one exchange at a time.

use isolate_wire::{Decoder, Frame};
use jail::socket;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// A zygote says little: a surface is the largest, and has its own limit.
const MOST: usize = 2 << 20;

/// Most answers fit this, and are read at once: there is one exchange at a time, so nothing follows an answer.
const SHORT: usize = 256;

pub(crate) struct Control {
    stream: UnixStream,
    decoder: Decoder,
    passed: Option<OwnedFd>,
}

/// A pair: ours for tokio, theirs to pass on.
pub(crate) fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = socket::pair().map_err(io::Error::other)?;
    let ours = std::os::unix::net::UnixStream::from(ours);
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs))
}

impl Control {
    pub(crate) fn new(stream: UnixStream) -> Control {
        Control { stream, decoder: Decoder::new(MOST), passed: None }
    }

    /// Sends all of it; the descriptor goes with the first byte.
    pub(crate) async fn send(&mut self, mut bytes: &[u8], mut fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = self
                .stream
                .async_io(Interest::WRITABLE, || socket::send_with_fd(self.stream.as_fd(), bytes, fd))
                .await?;
            bytes = bytes.get(sent..).unwrap_or_default();
            fd = None;
        }
        Ok(())
    }

    /// The next frame and the descriptor that came with it. An end of stream is an error: it ends every exchange.
    pub(crate) async fn receive(&mut self) -> io::Result<(Frame, Option<OwnedFd>)> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                return Ok((frame, self.passed.take()));
            }
            let mut buffer = [0; 16 << 10];
            let most = self.decoder.missing().map_err(io::Error::other)?.clamp(SHORT, buffer.len());
            let stream = &self.stream;
            let (n, fd) = stream
                .async_io(Interest::READABLE, || socket::recv_with_fd(stream.as_fd(), &mut buffer[..most]))
                .await?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.decoder.push(&buffer[..n]);
            if fd.is_some() {
                self.passed = fd;
            }
        }
    }
}

//! The host's end of a zygote's channel: frames with descriptors. Commands are answered in the order in which they were sent.

use isolate_wire::{Decoder, Frame};
use jail::socket;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

/// A zygote says little: a surface is the largest, and has its own limit.
const MOST: usize = 2 << 20;

/// Most answers fit this and are read at once.
const SHORT: usize = 256;

/// Descriptors that may wait for their frames. They come with them, one by one.
const MOST_PASSED: usize = 4;

/// tokio, by its halves of a pipe, is told of the socket only while somebody waits for it: otherwise each message of the zygote's, and each that it has
/// read, would wake a thread that has nothing to do for it.
pub(crate) struct Control {
    stream: UnixStream,
    decoder: Decoder,
    /// Descriptors whose frames have not been looked at yet.
    passed: VecDeque<OwnedFd>,
    /// The socket once more, for tokio: who has to wait must not need a descriptor first.
    for_waiting: Option<OwnedFd>,
}

/// A pair: ours, which never blocks, and theirs to pass on.
pub(crate) fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = socket::pair().map_err(io::Error::other)?;
    let ours = UnixStream::from(ours);
    ours.set_nonblocking(true)?;
    Ok((ours, theirs))
}

impl Control {
    pub(crate) fn new(stream: UnixStream) -> Control {
        let for_waiting = stream.try_clone().map(OwnedFd::from).ok();
        Control { stream, decoder: Decoder::new(MOST), passed: VecDeque::new(), for_waiting }
    }

    /// Sends all of it; the descriptor goes with the first byte.
    pub(crate) async fn send(&mut self, mut bytes: &[u8], mut fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        while !bytes.is_empty() {
            match socket::send_with_fd(self.stream.as_fd(), bytes, fd) {
                Ok(sent) => {
                    bytes = bytes.get(sent..).unwrap_or_default();
                    fd = None;
                }
                Err(error) => self.until_sendable(error).await?,
            }
        }
        Ok(())
    }

    /// Sends something short: all of it at once, or nothing until there is room. Safe to cancel.
    pub(crate) async fn send_at_once(&mut self, bytes: &[u8], fd: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            match socket::send_with_fd(self.stream.as_fd(), bytes, Some(fd)) {
                Ok(sent) if sent == bytes.len() => return Ok(()),
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) => self.until_sendable(error).await?,
            }
        }
    }

    /// Waits for what made sending fail to pass; the error itself where it will not.
    async fn until_sendable(&mut self, error: io::Error) -> io::Result<()> {
        match error {
            error if error.kind() == io::ErrorKind::WouldBlock => self.until_writable().await,
            error if socket::is_crowded(&error) => {
                tokio::time::sleep(socket::PAUSE).await;
                Ok(())
            }
            error => Err(error),
        }
    }

    /// The next frame. An end of stream is an error: there is always something to come.
    pub(crate) async fn receive(&mut self) -> io::Result<Frame> {
        loop {
            match self.receive_now()? {
                Some(frame) => return Ok(frame),
                None => self.until_readable().await?,
            }
        }
    }

    /// The next frame, if it is there.
    pub(crate) fn receive_now(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            let mut buffer = [0; 16 << 10];
            let most = self.decoder.missing().map_err(io::Error::other)?.clamp(SHORT, buffer.len());
            match socket::recv_with_fd(self.stream.as_fd(), &mut buffer[..most]) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((n, fd)) => {
                    self.decoder.push(&buffer[..n]);
                    self.passed.extend(fd);
                    if self.passed.len() > MOST_PASSED {
                        return Err(io::Error::other("a zygote passes descriptors that nobody asked for"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// The descriptor of a frame that must have come with one. Only such frames come with any, so they are in order.
    pub(crate) fn descriptor(&mut self) -> Option<OwnedFd> {
        self.passed.pop_front()
    }

    /// Whether descriptors came that no frame accounts for.
    pub(crate) fn strays(&self) -> bool {
        !self.passed.is_empty()
    }

    async fn until_readable(&mut self) -> io::Result<()> {
        let waiting = Receiver::from_owned_fd_unchecked(self.another()?)?;
        let ready = waiting.readable().await;
        self.for_waiting = waiting.into_nonblocking_fd().ok();
        ready
    }

    async fn until_writable(&mut self) -> io::Result<()> {
        let waiting = Sender::from_owned_fd_unchecked(self.another()?)?;
        let ready = waiting.writable().await;
        self.for_waiting = waiting.into_nonblocking_fd().ok();
        ready
    }

    /// The one that is kept for this; who went away while he waited has taken it along.
    fn another(&mut self) -> io::Result<OwnedFd> {
        match self.for_waiting.take() {
            Some(fd) => Ok(fd),
            None => self.stream.try_clone().map(OwnedFd::from),
        }
    }
}

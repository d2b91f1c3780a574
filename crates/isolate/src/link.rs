//! The host's end of a compartment's channel: bounded in, queued out, never blocking the one who drives it.

use isolate_wire::{Decoder, Frame, Malformed};
use jail::socket;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

/// tokio's halves of a pipe are used for a socket because each is told of one direction alone. The kernel wakes whoever wants
/// to know that there is room each time the other end has read something, so nobody asks for that until it was missing.
pub(crate) struct Link {
    stream: Receiver,
    room: Option<Sender>,
    /// What becomes of what is sent.
    other_end: OtherEnd,
    decoder: Decoder,
    outgoing: VecDeque<Vec<u8>>,
    /// Of the first in the queue.
    sent: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherEnd {
    Reads,
    /// It reads no more. What it has said is still there, and then its end.
    Gone,
    /// It may have half a frame, and the rest cannot be sent.
    Stuck,
}

/// Why nothing more will come.
pub(crate) enum Ended {
    Closed,
    Malformed(Malformed),
}

impl Link {
    /// The stream must not block.
    pub(crate) fn new(stream: UnixStream, cap: usize) -> io::Result<Link> {
        let stream = Receiver::from_owned_fd_unchecked(stream.into())?;
        let other_end = OtherEnd::Reads;
        Ok(Link { stream, room: None, other_end, decoder: Decoder::new(cap), outgoing: VecDeque::new(), sent: 0 })
    }

    /// What a frame may announce from now on.
    pub(crate) fn set_cap(&mut self, cap: usize) {
        self.decoder.set_cap(cap);
    }

    /// Queues a frame and sends at once what the socket takes.
    pub(crate) fn send(&mut self, frame: Vec<u8>) {
        if self.other_end == OtherEnd::Reads {
            self.outgoing.push_back(frame);
            self.flush();
        }
    }

    /// Bytes received that are no whole frame yet, or not asked for yet.
    #[cfg(test)]
    pub(crate) fn pending(&self) -> usize {
        self.decoder.pending()
    }

    fn flush(&mut self) {
        while let Some(frame) = self.outgoing.front() {
            let bytes = &frame[self.sent..];
            let sent = match &self.room {
                Some(room) => room.try_write(bytes),
                None => socket::send_with_fd(self.stream.as_fd(), bytes, None),
            };
            match sent {
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.ask_for_room() {
                    Ok(()) => return,
                    Err(_) => return self.give_up(OtherEnd::Stuck),
                },
                Err(_) => return self.give_up(OtherEnd::Gone),
            }
            if self.sent >= frame.len() {
                self.outgoing.pop_front();
                self.sent = 0;
            }
        }
    }

    /// Nothing is sent any more.
    fn give_up(&mut self, other_end: OtherEnd) {
        self.other_end = other_end;
        self.outgoing.clear();
        self.sent = 0;
    }

    /// From now on tokio tells when there is room.
    fn ask_for_room(&mut self) -> io::Result<()> {
        if self.room.is_none() {
            self.room = Some(Sender::from_owned_fd_unchecked(self.stream.as_fd().try_clone_to_owned()?)?);
        }
        Ok(())
    }

    /// The next frame, or `None` when something was sent instead. Reads nothing new unless `listen`.
    /// Safe to cancel: what was read stays in the decoder, what is to be sent in the queue.
    pub(crate) async fn event(&mut self, listen: bool) -> Result<Option<Frame>, Ended> {
        if listen && let Some(frame) = self.decoder.next_frame().map_err(Ended::Malformed)? {
            return Ok(Some(frame));
        }
        if self.other_end == OtherEnd::Stuck {
            return Err(Ended::Closed);
        }
        let writes = !self.outgoing.is_empty();
        let ready = tokio::select! {
            ready = self.stream.readable(), if listen => ready,
            ready = has_room(self.room.as_ref()), if writes => ready,
            else => std::future::pending().await,
        };
        ready.map_err(|_| Ended::Closed)?;
        if writes {
            self.flush();
        }
        if listen {
            let mut buffer = [0; 16 << 10];
            match self.stream.try_read(&mut buffer) {
                Ok(0) => return Err(Ended::Closed),
                Ok(n) => self.decoder.push(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Ended::Closed),
            }
        }
        self.decoder.next_frame().map_err(Ended::Malformed)
    }
}

async fn has_room(sender: Option<&Sender>) -> io::Result<()> {
    match sender {
        Some(sender) => sender.writable().await,
        None => std::future::pending().await,
    }
}

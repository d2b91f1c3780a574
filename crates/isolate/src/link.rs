//! The host's end of a compartment's channel: bounded in, queued out, never blocking the one who drives it.

use isolate_wire::{Decoder, Frame, Malformed};
use std::collections::VecDeque;
use std::io;
use tokio::io::Interest;
use tokio::net::UnixStream;

pub(crate) struct Link {
    stream: UnixStream,
    decoder: Decoder,
    outgoing: VecDeque<Vec<u8>>,
    /// Of the first in the queue.
    sent: usize,
}

/// Why nothing more will come.
pub(crate) enum Ended {
    Closed,
    Malformed(Malformed),
}

impl Link {
    pub(crate) fn new(stream: UnixStream, cap: usize) -> Link {
        Link { stream, decoder: Decoder::new(cap), outgoing: VecDeque::new(), sent: 0 }
    }

    /// What a frame may announce from now on.
    pub(crate) fn set_cap(&mut self, cap: usize) {
        self.decoder.set_cap(cap);
    }

    /// Queues a frame and sends at once what the socket takes.
    pub(crate) fn send(&mut self, frame: Vec<u8>) {
        self.outgoing.push_back(frame);
        self.flush();
    }

    /// Bytes received that are no whole frame yet, or not asked for yet.
    #[cfg(test)]
    pub(crate) fn pending(&self) -> usize {
        self.decoder.pending()
    }

    fn flush(&mut self) {
        while let Some(frame) = self.outgoing.front() {
            match self.stream.try_write(&frame[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The reader will see the end of the stream.
                Err(_) => return self.outgoing.clear(),
            }
            if self.sent >= frame.len() {
                self.outgoing.pop_front();
                self.sent = 0;
            }
        }
    }

    /// The next frame, or `None` when something was sent instead. Reads nothing new unless `listen`.
    /// Safe to cancel: what was read stays in the decoder, what is to be sent in the queue.
    pub(crate) async fn event(&mut self, listen: bool) -> Result<Option<Frame>, Ended> {
        if listen && let Some(frame) = self.decoder.next_frame().map_err(Ended::Malformed)? {
            return Ok(Some(frame));
        }
        let interest = match (listen, self.outgoing.is_empty()) {
            (true, true) => Interest::READABLE,
            (true, false) => Interest::READABLE | Interest::WRITABLE,
            (false, false) => Interest::WRITABLE,
            (false, true) => std::future::pending().await,
        };
        let Ok(ready) = self.stream.ready(interest).await else { return Err(Ended::Closed) };
        if ready.is_writable() {
            self.flush();
        }
        if listen && ready.is_readable() {
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

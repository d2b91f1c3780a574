//! The body of a request, on its way out.

use crate::denied::Denied;
use crate::ledger::Trace;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::mpsc;

/// A body of the code inside. A stream can be sent only once.
pub(crate) enum Source {
    Nothing,
    Whole(Bytes),
    Stream(Pieces),
    /// A stream that was sent already.
    Spent,
}

impl Source {
    /// Waits for the whole of a stream.
    pub(crate) async fn gather(&mut self, most: u64) -> Result<(), Denied> {
        let Source::Stream(Pieces { pieces, .. }) = self else { return Ok(()) };
        let mut all = Vec::new();
        loop {
            match pieces.recv().await {
                Some(Piece::Chunk(chunk)) if (all.len() + chunk.len()) as u64 <= most => all.extend_from_slice(&chunk),
                Some(Piece::Chunk(_)) => {
                    return Err(Denied::limit(format!(
                        "the request's body has more than {most} bytes (`request_bytes`)"
                    )));
                }
                Some(Piece::End) => break,
                None => return Err(Denied::cancelled("the request's body was given up")),
            }
        }
        *self = Source::Whole(all.into());
        Ok(())
    }
}

/// A body that is still on its way in.
pub(crate) struct Pieces {
    pub(crate) pieces: mpsc::Receiver<Piece>,
    /// If it was told beforehand.
    pub(crate) length: Option<u64>,
}

pub(crate) enum Piece {
    Chunk(Bytes),
    End,
}

/// When something was last on its way.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Mutex<Instant>>);

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress(Arc::new(Mutex::new(Instant::now())))
    }

    pub(crate) fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn mark(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

pub(crate) struct Upload {
    pub(crate) source: Source,
    pub(crate) trace: Arc<Trace>,
    pub(crate) progress: Progress,
}

impl Upload {
    fn give(&self, chunk: Bytes) -> Poll<Option<Result<Frame<Bytes>, Denied>>> {
        self.progress.mark();
        Poll::Ready(Some(self.trace.up(chunk.len() as u64).map(|()| Frame::data(chunk))))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Denied;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Denied>>> {
        match &mut self.source {
            Source::Nothing | Source::Spent => Poll::Ready(None),
            Source::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                self.source = Source::Nothing;
                if bytes.is_empty() { Poll::Ready(None) } else { self.give(bytes) }
            }
            Source::Stream(Pieces { pieces, .. }) => match std::task::ready!(pieces.poll_recv(context)) {
                Some(Piece::Chunk(chunk)) => self.give(chunk),
                Some(Piece::End) => {
                    self.progress.mark();
                    self.source = Source::Spent;
                    Poll::Ready(None)
                }
                // Ending it as if it were whole would make half a body look like one.
                None => Poll::Ready(Some(Err(Denied::cancelled("the request's body was given up")))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Nothing | Source::Spent => true,
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Nothing | Source::Spent => SizeHint::with_exact(0),
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Stream(pieces) => pieces.length.map(SizeHint::with_exact).unwrap_or_default(),
        }
    }
}

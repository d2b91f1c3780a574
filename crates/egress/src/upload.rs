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
    Stream(mpsc::Receiver<Piece>),
    /// A stream that was sent already.
    Spent,
}

pub(crate) enum Piece {
    Chunk(Bytes),
    End,
}

/// When something was last taken to be sent.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Mutex<Instant>>);

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress(Arc::new(Mutex::new(Instant::now())))
    }

    pub(crate) fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self) {
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
            Source::Stream(pieces) => match std::task::ready!(pieces.poll_recv(context)) {
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
            Source::Stream(_) => SizeHint::default(),
        }
    }
}

//! Answers of a server, read in pieces. What is whole is handed on, and what is too long is the end.

use super::events::{Event, Events};
use super::way::reason;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::response::Parts;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// What each answer may hold while it is read. Beyond that, one at a time.
const LITTLE: usize = 64 << 10;

/// Bytes that say nothing, such as comments, in so much time.
const IDLE_BYTES: usize = 64 << 10;
const IDLE_TIME: Duration = Duration::from_secs(1);

/// Of an answer that is none, what is looked at.
const REFUSAL: usize = 64 << 10;

/// What the answers of one server may hold.
pub(super) struct Bound {
    /// The longest message.
    pub(super) longest: usize,
    /// For the one answer that may hold more than a little at a time.
    large: Arc<Semaphore>,
}

impl Bound {
    pub(super) fn new(longest: usize) -> Bound {
        Bound { longest, large: Arc::new(Semaphore::new(1)) }
    }
}

pub(super) struct Reply {
    pub(super) head: Parts,
    pub(super) body: Incoming,
    /// The connection ends with the answer.
    pub(super) _driven: JoinSet<()>,
}

/// Why an answer was not read to its end.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It is the answer's own: it broke off, or cannot be read.
    Answer(String),
    /// The server does what none may.
    Server(String),
}

impl Reply {
    pub(super) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        let said = self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        said.split(';').next().unwrap_or("").trim_ascii().eq_ignore_ascii_case(kind)
    }

    /// Packed answers were not asked for.
    pub(super) fn check(&self) -> Result<(), Trouble> {
        match self.head.headers.get(CONTENT_ENCODING) {
            Some(coded) if coded != "identity" => {
                Err(Trouble::Answer("it packs its answers, and nobody asked for that".to_owned()))
            }
            _ => Ok(()),
        }
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, Trouble> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(Trouble::Answer(reason(&error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) => return Ok(Some(bytes)),
                    // Trailers say nothing to us.
                    Err(_) => {}
                },
            }
        }
    }

    /// All of it, with its right to be large, which lasts until it is handed on.
    pub(super) async fn whole(mut self, bound: &Bound) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Trouble> {
        let mut all = Vec::new();
        let mut large = None;
        while let Some(bytes) = self.piece().await? {
            if all.len() + bytes.len() > bound.longest {
                return Err(too_long(bound.longest));
            }
            all.extend_from_slice(&bytes);
            widen(&mut large, all.len(), bound).await;
        }
        Ok((all, large))
    }

    /// The beginning of an answer that is a refusal.
    pub(super) async fn refusal(mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < REFUSAL {
            let Ok(Some(bytes)) = self.piece().await else { break };
            all.extend_from_slice(&bytes);
        }
        all.truncate(REFUSAL);
        all
    }

    /// The answer as a stream of events.
    pub(super) fn events(self, bound: &Bound) -> Stream<'_> {
        Stream {
            events: Events::new(bound.longest),
            reply: self,
            bound,
            ready: Vec::new().into_iter(),
            large: None,
            since: Instant::now(),
        }
    }
}

pub(super) struct Stream<'a> {
    pub(super) events: Events,
    reply: Reply,
    bound: &'a Bound,
    ready: std::vec::IntoIter<Event>,
    large: Option<OwnedSemaphorePermit>,
    since: Instant,
}

impl Stream<'_> {
    /// The next message; none at the end. What is of another kind says nothing to us.
    pub(super) async fn next_message(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        while let Some(event) = self.next().await? {
            if event.kind == "message" {
                return Ok(Some(event.data));
            }
            self.events.idle_bytes += event.data.len();
        }
        Ok(None)
    }

    /// The next event; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Trouble> {
        loop {
            if let Some(event) = self.ready.next() {
                return Ok(Some(event));
            }
            widen(&mut self.large, self.events.held(), self.bound).await;
            let Some(bytes) = self.reply.piece().await? else { return Ok(None) };
            let ready = self.events.push(&bytes).map_err(|_| too_long(self.bound.longest))?;
            self.ready = ready.into_iter();
            if self.since.elapsed() > IDLE_TIME {
                (self.since, self.events.idle_bytes) = (Instant::now(), 0);
            }
            if self.events.idle_bytes > IDLE_BYTES {
                return Err(Trouble::Server("it fills its stream of events with nothing".to_owned()));
            }
        }
    }
}

/// Whoever holds more than a little waits until nobody else does.
async fn widen(large: &mut Option<OwnedSemaphorePermit>, held: usize, bound: &Bound) {
    if held <= LITTLE {
        *large = None;
    } else if large.is_none() {
        // Nobody closes it.
        *large = bound.large.clone().acquire_owned().await.ok();
    }
}

fn too_long(most: usize) -> Trouble {
    Trouble::Server(format!("it sent a message of more than {most} bytes"))
}

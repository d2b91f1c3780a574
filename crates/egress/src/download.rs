//! The body of a response, on its way in: nothing is read before somebody asks for it.

use crate::decode::{self, Coding};
use crate::denied::{Code, Denied};
use crate::ledger::Trace;
use crate::limits::Limits;
use crate::mask::Masker;
use crate::pool::{Lease, Pool};
use crate::tenant::{Places, Tenant};
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body::Body;
use hyper::body::Incoming;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use tokio_util::io::StreamReader;

/// What comes so soon goes along, so that a server that sends small pieces does not cost a host call for each.
const LINGER: Duration = Duration::from_millis(2);

/// Set in the count of bytes when the last one was there.
const ENDED: u64 = 1 << 63;

/// Bytes as they come, counted.
pub(crate) struct Wire {
    incoming: Incoming,
    trace: Arc<Trace>,
    seen: Arc<AtomicU64>,
    most: u64,
}

impl Stream for Wire {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let frame = match std::task::ready!(Pin::new(&mut self.incoming).poll_frame(context)) {
                None => {
                    self.seen.fetch_or(ENDED, Ordering::Relaxed);
                    return Poll::Ready(None);
                }
                Some(Err(error)) => {
                    let denied = Denied::network(format!("the response broke off: {error}"));
                    return Poll::Ready(Some(Err(io::Error::other(denied))));
                }
                Some(Ok(frame)) => frame,
            };
            // Trailers are not passed on.
            let Ok(data) = frame.into_data() else { continue };
            let length = data.len() as u64;
            let seen = self.seen.fetch_add(length, Ordering::Relaxed) + length;
            // Who unpacks does not ask for more than it needs.
            if self.incoming.is_end_stream() {
                self.seen.fetch_or(ENDED, Ordering::Relaxed);
            }
            let allowed = self.trace.down(length).and_then(|()| {
                if seen <= self.most {
                    return Ok(());
                }
                Err(Denied::limit(format!("the response has more than {} bytes (`response_bytes`)", self.most)))
            });
            if let Err(denied) = allowed {
                return Poll::Ready(Some(Err(io::Error::other(denied))));
            }
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(data)));
            }
        }
    }
}

pub(crate) type Raw = StreamReader<Wire, Bytes>;

enum Reader {
    /// The first bytes tell how to unpack the rest.
    Packed(Raw, Coding),
    Ready(Pin<Box<dyn AsyncRead + Send>>),
    Over,
}

pub(crate) struct Download {
    reader: Reader,
    masker: Masker,
    /// What may go in and has found no room in a piece yet.
    ready: BytesMut,
    seen: Arc<AtomicU64>,
    decoded: u64,
    limits: Arc<Limits>,
    deadline: Instant,
    trace: Arc<Trace>,
    lease: Option<(Lease, Arc<Pool>)>,
    tenant: Arc<Tenant>,
    _places: Places,
}

/// What a response's body needs to be read.
pub(crate) struct Parts {
    pub(crate) incoming: Incoming,
    pub(crate) coding: Coding,
    pub(crate) masker: Masker,
    pub(crate) limits: Arc<Limits>,
    pub(crate) deadline: Instant,
    pub(crate) trace: Arc<Trace>,
    pub(crate) lease: Lease,
    pub(crate) pool: Arc<Pool>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) places: Places,
}

impl Download {
    pub(crate) fn new(parts: Parts) -> Download {
        let seen = Arc::new(AtomicU64::new(0));
        let most = parts.limits.response_bytes;
        let wire = Wire { incoming: parts.incoming, trace: parts.trace.clone(), seen: seen.clone(), most };
        Download {
            reader: Reader::Packed(StreamReader::new(wire), parts.coding),
            masker: parts.masker,
            ready: BytesMut::new(),
            seen,
            decoded: 0,
            limits: parts.limits,
            deadline: parts.deadline,
            trace: parts.trace,
            lease: Some((parts.lease, parts.pool)),
            tenant: parts.tenant,
            _places: parts.places,
        }
    }

    /// The next piece, or nothing at the end.
    pub(crate) async fn read(&mut self) -> Result<Option<Bytes>, Denied> {
        let idle = Instant::now() + Duration::from_millis(self.limits.idle_ms);
        let (until, name) = if idle < self.deadline { (idle, "`idle_ms`") } else { (self.deadline, "`total_ms`") };
        let piece = match tokio::time::timeout_at(until, self.piece()).await {
            Ok(piece) => piece,
            Err(_) => Err(Denied::timeout(format!("the response's body did not come in time ({name})"))),
        };
        match &piece {
            Ok(Some(_)) => {}
            Ok(None) => self.finish(),
            Err(denied) => {
                self.trace.failed(denied.code);
                self.reader = Reader::Over;
                self.lease = None;
            }
        }
        piece
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, Denied> {
        loop {
            let most = usize::try_from(self.limits.chunk_bytes).unwrap_or(1).max(1);
            if !self.ready.is_empty() {
                let length = most.min(self.ready.len());
                return Ok(Some(self.ready.split_to(length).freeze()));
            }
            let reader = match &mut self.reader {
                Reader::Over => return Ok(None),
                Reader::Ready(reader) => reader,
                Reader::Packed(raw, _) => {
                    let first = decode::peek(raw).await.map_err(told)?;
                    let Reader::Packed(raw, coding) = std::mem::replace(&mut self.reader, Reader::Over) else {
                        return Ok(None);
                    };
                    self.reader = Reader::Ready(decode::reader(raw, coding, first)?);
                    continue;
                }
            };
            let mut chunk = Vec::with_capacity(most.min(16 << 10));
            let mut limited = reader.as_mut().take(most as u64);
            let mut ended = limited.read_buf(&mut chunk).await.map_err(told)? == 0;
            let linger = Instant::now() + LINGER;
            while !ended && chunk.len() < most {
                chunk.reserve((most - chunk.len()).min(16 << 10));
                match tokio::time::timeout_at(linger, limited.read_buf(&mut chunk)).await {
                    Ok(read) => ended = read.map_err(told)? == 0,
                    Err(_) => break,
                }
            }
            self.count(chunk.len() as u64)?;
            let masked = self.tenant.effort.mask(&mut self.masker, &chunk, ended, &self.trace).await;
            self.ready.extend_from_slice(&masked);
            if ended {
                self.finish();
            }
        }
    }

    fn count(&mut self, bytes: u64) -> Result<(), Denied> {
        self.decoded += bytes;
        let came = self.seen.load(Ordering::Relaxed) & !ENDED;
        if self.decoded > self.limits.decoded_bytes {
            let most = self.limits.decoded_bytes;
            return Err(Denied::limit(format!("the response has more than {most} bytes unpacked (`decoded_bytes`)")));
        }
        if self.decoded > 1 << 20 && self.decoded > came.saturating_mul(self.limits.decoded_ratio) {
            let most = self.limits.decoded_ratio;
            return Err(Denied::limit(format!(
                "the response unpacks to more than {most} times its size (`decoded_ratio`)"
            )));
        }
        Ok(())
    }

    /// A connection is used again only if every byte of the response was read.
    fn finish(&mut self) {
        self.reader = Reader::Over;
        if let Some((lease, pool)) = self.lease.take()
            && self.seen.load(Ordering::Relaxed) & ENDED != 0
        {
            pool.give_back(lease);
        }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if !matches!(self.reader, Reader::Over) {
            self.trace.failed(Code::Cancelled);
        }
    }
}

/// A refusal of our own, or what the unpacking found.
fn told(error: io::Error) -> Denied {
    let text = format!("the response's body cannot be unpacked: {error}");
    match error.into_inner().map(|inner| inner.downcast::<Denied>()) {
        Some(Ok(denied)) => *denied,
        _ => Denied::network(text),
    }
}

//! Answers that go on: one JSON object a line, until somebody has had enough.
//!
//! A stream ends when the client goes away or reads nothing for too long, when the host shuts down, and when the key that
//! opened it does not count any more.

use super::Admin;
use super::access::Asker;
use super::error::Error;
use super::places::{Place, Places};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use registry::Directory;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

/// Whether somebody may still listen.
type Rule = dyn Fn(&Asker, &Directory) -> bool + Send + Sync;

/// Open at the same time.
const MOST: usize = 256;
const MOST_OF_ONE_TENANT: usize = 16;

/// So often comes an empty line, so that a connection with nobody at its other end is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A client that takes nothing for this long is not waited for.
const STALL: Duration = Duration::from_secs(60);

/// Lines on their way to a slow client. A call with recorded arguments may be megabytes.
const BUFFER: usize = 4;

pub fn places() -> Places {
    Places::new(MOST, MOST_OF_ONE_TENANT)
}

/// Takes a place for a stream; refuses one too many.
pub fn enter(admin: &Admin, tenant: &str) -> Result<Place, Error> {
    admin.streams.enter(tenant).map_err(|full| Error::busy(format!("{full} has too many streams open; close one")))
}

/// Where lines come from. `next` may be dropped at any of its awaits and called again without losing any.
pub trait Source: Send + 'static {
    /// None: there will never be another.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// Whether a stream may go on.
pub struct Leave {
    admin: Arc<Admin>,
    credentials: HeaderMap,
    may: Box<Rule>,
}

impl Leave {
    pub fn new(
        admin: Arc<Admin>,
        asker: &Asker,
        may: impl Fn(&Asker, &Directory) -> bool + Send + Sync + 'static,
    ) -> Leave {
        Leave { admin, credentials: asker.credentials.clone(), may: Box::new(may) }
    }

    async fn holds(&self) -> bool {
        let Ok(caller) = self.admin.app.authenticate(&self.credentials).await else { return false };
        let asker = Asker { caller, credentials: HeaderMap::new() };
        (self.may)(&asker, &self.admin.app.registry().directory())
    }
}

/// Opens the stream.
pub fn respond(leave: Leave, place: Place, source: impl Source) -> Response {
    let (lines, receiver) = mpsc::channel(BUFFER);
    let changes = leave.admin.app.registry().watch();
    let mut closing = leave.admin.app.closing();
    tokio::spawn(async move {
        let _place = place;
        let holds = || leave.holds();
        tokio::select! {
            () = pump(source, &lines, changes, holds) => {}
            () = lines.closed() => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    });
    let stream = tokio_stream::StreamExt::map(ReceiverStream::new(receiver), Ok::<Bytes, std::convert::Infallible>);
    let mut response = Response::new(Body::from_stream(stream));
    ndjson(response.headers_mut());
    response
}

/// A stream's lines that are all there already.
pub fn finished(lines: Vec<Bytes>) -> Response {
    let mut response = Response::new(Body::from(lines.concat()));
    ndjson(response.headers_mut());
    response
}

fn ndjson(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Brings lines from the source to the client until one of them ends, or the leave does.
async fn pump<H: Future<Output = bool>>(
    mut source: impl Source,
    lines: &mpsc::Sender<Bytes>,
    mut changes: watch::Receiver<u64>,
    holds: impl Fn() -> H,
) {
    // Between the question who asks and the first look at changes there may have been one.
    if !holds().await {
        return;
    }
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.reset();
    loop {
        let line = tokio::select! {
            line = source.next() => match line {
                Some(line) => line,
                None => return,
            },
            changed = changes.changed() => match changed {
                Ok(()) if holds().await => continue,
                _ => return,
            },
            // Time alone can end a leave: keys expire.
            _ = heartbeat.tick() => if holds().await { Bytes::from_static(b"\n") } else { return },
        };
        if !matches!(tokio::time::timeout(STALL, lines.send(line)).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// An object as one line.
pub fn line(value: &impl serde::Serialize) -> Result<Bytes, Error> {
    let mut text = serde_json::to_vec(value).map_err(|error| Error::internal(&error))?;
    text.push(b'\n');
    Ok(text.into())
}

/// What a reader gets instead of lines that came too quickly for it.
pub const LOST: Bytes = Bytes::from_static(b"{\"lost\":true}\n");

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Never;

    impl Source for Never {
        async fn next(&mut self) -> Option<Bytes> {
            std::future::pending().await
        }
    }

    struct Endless;

    impl Source for Endless {
        async fn next(&mut self) -> Option<Bytes> {
            Some(LOST)
        }
    }

    /// A leave that somebody can end.
    #[derive(Clone)]
    struct Ends(Arc<AtomicBool>);

    impl Ends {
        fn new() -> Ends {
            Ends(Arc::new(AtomicBool::new(true)))
        }

        fn end(&self) {
            self.0.store(false, Ordering::SeqCst);
        }

        fn holds(&self) -> std::future::Ready<bool> {
            std::future::ready(self.0.load(Ordering::SeqCst))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_filled_until_the_leave_ends() {
        let (lines, mut client) = mpsc::channel(BUFFER);
        let (_changes, watched) = watch::channel(0);
        let leave = Ends::new();
        let asked = leave.clone();
        let pump = tokio::spawn(async move { pump(Never, &lines, watched, || asked.holds()).await });
        for _ in 0..3 {
            assert_eq!(client.recv().await.unwrap(), "\n");
        }
        leave.end();
        assert_eq!(client.recv().await, None, "the next heartbeat finds that the leave is over");
        pump.await.unwrap();
    }

    /// Keys expire on busy streams as well.
    #[tokio::test(start_paused = true)]
    async fn a_leave_ends_also_where_there_is_no_silence() {
        struct Often;
        impl Source for Often {
            async fn next(&mut self) -> Option<Bytes> {
                tokio::time::sleep(HEARTBEAT / 10).await;
                Some(LOST)
            }
        }
        let (lines, mut client) = mpsc::channel(BUFFER);
        let (_changes, watched) = watch::channel(0);
        let leave = Ends::new();
        let asked = leave.clone();
        let pump = tokio::spawn(async move { pump(Often, &lines, watched, || asked.holds()).await });
        client.recv().await.unwrap();
        leave.end();
        let end = tokio::time::timeout(HEARTBEAT * 3, async { while client.recv().await.is_some() {} });
        assert!(end.await.is_ok());
        pump.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_ends_the_leave_ends_the_stream_at_once() {
        let (lines, mut client) = mpsc::channel::<Bytes>(BUFFER);
        let (changes, watched) = watch::channel(0);
        let leave = Ends::new();
        let asked = leave.clone();
        let pump = tokio::spawn(async move { pump(Never, &lines, watched, || asked.holds()).await });
        tokio::task::yield_now().await;
        let start = tokio::time::Instant::now();
        changes.send(1).unwrap();
        tokio::task::yield_now().await;
        assert!(!pump.is_finished(), "a change of something else ends nothing");
        leave.end();
        changes.send(2).unwrap();
        assert_eq!(client.recv().await, None);
        assert!(start.elapsed() < HEARTBEAT);
        pump.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_leave_that_ended_on_the_way_opens_nothing() {
        let (lines, _client) = mpsc::channel(BUFFER);
        let (_changes, watched) = watch::channel(0);
        let leave = Ends::new();
        leave.end();
        let start = tokio::time::Instant::now();
        pump(Never, &lines, watched, || leave.holds()).await;
        assert!(start.elapsed() < HEARTBEAT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_left() {
        let (lines, _client) = mpsc::channel(BUFFER);
        let (_changes, watched) = watch::channel(0);
        let start = tokio::time::Instant::now();
        pump(Endless, &lines, watched, || std::future::ready(true)).await;
        assert!(start.elapsed() >= STALL);
    }
}

//! Servers that speak MCP over HTTP inside of their jail, as the driver hears everybody: message by message.
//!
//! A [`Bridge`] takes the messages that would go to standard input, and gives those that would come from standard output.
//! Both kinds of HTTP are spoken: the newer one, where each message is a POST that may be answered at once or as a
//! stream of events (`streamable`), and the older one, where everything comes back on one stream (`old`).
//!
//! The port is the server's word, and what comes from it is the server's: each head, body and event is bounded before it
//! is read, redirects are not followed, and nothing is reached but that port of the jail's own loopback.

mod events;
mod old;
mod outgoing;
mod reply;
mod streamable;
mod way;

use crate::peer::message::{INTERNAL_ERROR, Message, RpcError, read};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use jail::program::Sockets;
use outgoing::Outgoing;
use reply::{Reply, Trouble};
use sandbox::Speaks;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use way::Way;

/// See [`crate::fuzzing`].
pub(crate) fn fuzz_events(bytes: &[u8], piece: usize, longest: usize) {
    let mut events = events::Events::new(longest);
    for piece in bytes.chunks(piece) {
        if events.push(piece).is_err() {
            return;
        }
    }
}

/// See [`crate::fuzzing`].
pub(crate) async fn fuzz_answer(bytes: &[u8], longest: usize) {
    use tokio::io::AsyncWriteExt;
    let bound = reply::Bound::new(longest);
    for as_events in [false, true] {
        let (ours, mut theirs) = tokio::io::duplex(bytes.len().max(1 << 10));
        if theirs.write_all(bytes).await.is_err() || theirs.shutdown().await.is_err() {
            return;
        }
        let request = ::http::Request::new(http_body_util::Full::default());
        let Ok(reply) = way::exchange(ours, request).await else { continue };
        if reply.check().is_err() {
            continue;
        }
        if as_events {
            let mut stream = reply.events(&bound);
            while let Ok(Some(_)) = stream.next_message().await {}
        } else {
            let _ = reply.whole(&bound).await;
        }
    }
}

/// How long a server may take over what needs no answer, before the next message is sent.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program that ends closes its connections as well; then how it ended says more.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What the driver hears.
pub(crate) enum Heard {
    Said(Vec<u8>),
    /// The server has ended the answer to this request. If it was not in there, it never comes.
    Unanswered {
        id: u64,
        error: RpcError,
    },
    /// There is no talking to this server any more, and why.
    Broken(String),
}

/// A server's HTTP. Dropped, all its connections are closed.
pub(crate) struct Bridge {
    pub(crate) messages: mpsc::Sender<Vec<u8>>,
    pub(crate) heard: mpsc::Receiver<Heard>,
    _tasks: JoinSet<()>,
}

impl Bridge {
    /// None for a program that speaks over its pipes. Must be called inside a tokio runtime.
    pub(crate) fn start(speaks: &Speaks, sockets: Sockets, longest: usize) -> Option<Bridge> {
        let (port, path) = match speaks {
            Speaks::Stdio => return None,
            Speaks::Http { port, path } | Speaks::Sse { port, path } => (*port, path.clone()),
        };
        // One of each: whoever cannot hand over waits.
        let (messages, outbox) = mpsc::channel(1);
        let (ear, heard) = mpsc::channel(1);
        let way = Way::new(sockets, port, longest);
        let mut tasks = JoinSet::new();
        match speaks {
            Speaks::Sse { .. } => tasks.spawn(old::talk(way, path, outbox, ear)),
            _ => tasks.spawn(streamable::talk(way, path, outbox, ear)),
        };
        Some(Bridge { messages, heard, _tasks: tasks })
    }
}

/// Who takes one message to the server, and hands on what is said to it.
trait Post: Send + Sync + 'static {
    fn post(self: Arc<Self>, line: Vec<u8>, message: Outgoing) -> impl Future<Output = ()> + Send;

    /// Whether to tell the server that nobody waits for an answer any more.
    fn tells_of_cancelling(&self) -> bool;
}

/// Takes messages to the server in their order. Requests are not waited for.
async fn carry<P: Post>(post: Arc<P>, mut outbox: mpsc::Receiver<Vec<u8>>) {
    let mut asking = JoinSet::new();
    let mut asked: HashMap<u64, AbortHandle> = HashMap::new();
    loop {
        let line = tokio::select! {
            line = outbox.recv() => line,
            Some(_) = asking.join_next() => {
                asked.retain(|_, request| !request.is_finished());
                continue;
            }
        };
        let Some(line) = line else { return };
        let message = Outgoing::read(&line);
        if let Some(cancelled) = message.cancels {
            // Nobody waits for it any more, so it is not read to its end.
            asked.remove(&cancelled).inspect(AbortHandle::abort);
            if !post.tells_of_cancelling() {
                continue;
            }
        }
        match message.id {
            Some(id) => drop(asked.insert(id, asking.spawn(post.clone().post(line, message)))),
            // Who needs longer for what has no answer does not keep the others waiting.
            None => drop(tokio::time::timeout(PATIENCE, post.clone().post(line, message)).await),
        }
    }
}

/// The headers of every message.
fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers
}

/// Hands on what an answer's end means for its request.
async fn over(ear: &mpsc::Sender<Heard>, id: Option<u64>, trouble: Option<Trouble>) {
    if trouble.is_some() {
        tokio::time::sleep(LAST_WORDS).await;
    }
    let heard = match (trouble, id) {
        (Some(Trouble::Server(why)), _) => Heard::Broken(why),
        (Some(Trouble::Answer(why)), Some(id)) => Heard::Unanswered { id, error: failed(&why) },
        (None, Some(id)) => Heard::Unanswered { id, error: failed("it ended its answer without one") },
        (_, None) => return,
    };
    // The driver is gone when the program is.
    let _ = ear.send(heard).await;
}

fn failed(why: &str) -> RpcError {
    RpcError { code: INTERNAL_ERROR, message: format!("the server does not answer: {why}") }
}

/// What a status that is no success means. Many say more in the words of the protocol.
async fn refused(reply: Reply) -> RpcError {
    let status = reply.status();
    if status.is_redirection() {
        return failed(&format!("it leads elsewhere (HTTP {status}), where nobody follows"));
    }
    let said = if reply.is("application/json") { read(&reply.refusal().await) } else { None };
    let said = said.into_iter().flatten().find_map(|message| match message {
        Message::Answer { outcome: Err(error), .. } => Some(error),
        _ => None,
    });
    said.unwrap_or_else(|| failed(&format!("HTTP {status}")))
}

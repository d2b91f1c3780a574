//! Each message is a POST. The answer is JSON, or a stream of events that ends with it.

use super::outgoing::{Outgoing, value};
use super::reply::{Reply, Stream, Trouble};
use super::way::Way;
use super::{Heard, Post, carry, failed, headers, over, refused};
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_ID: HeaderName = HeaderName::from_static("last-event-id");

const LONGEST_SESSION: usize = 4096;

/// How long to wait before a stream is asked for again, if the server says nothing else; and the bounds of what it may say.
const PAUSE: u64 = 1000;
const PAUSES: (u64, u64) = (100, 60_000);
/// The stream that belongs to no request is not asked for more often than this.
const CALM: u64 = 1000;

/// How often the answer to one request may break off.
const MOST_BREAKS: usize = 32;

struct Talk {
    way: Way,
    path: String,
    ear: mpsc::Sender<Heard>,
    known: Mutex<Known>,
}

/// What the server said when it was greeted.
#[derive(Default)]
struct Known {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

pub(super) async fn talk(way: Way, path: String, outbox: mpsc::Receiver<Vec<u8>>, ear: mpsc::Sender<Heard>) {
    way.open().await;
    let talk = Arc::new(Talk { way, path, ear, known: Mutex::default() });
    let (greeted, listens) = tokio::sync::oneshot::channel();
    let poster = Arc::new(Poster { talk: talk.clone(), greeted: Mutex::new(Some(greeted)) });
    let listening = async {
        if listens.await.is_ok() {
            talk.listen().await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = carry(poster, outbox) => {}
        () = listening => {}
    }
}

struct Poster {
    talk: Arc<Talk>,
    /// Told when the server is ready to be listened to.
    greeted: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
}

impl Post for Poster {
    async fn post(self: Arc<Self>, line: Vec<u8>, message: Outgoing) {
        let ready = message.method == "notifications/initialized";
        self.talk.exchange(line, message).await;
        if ready && let Some(greeted) = self.greeted.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Whoever listens is there as long as this.
            let _ = greeted.send(());
        }
    }

    /// To the newest revision a closed connection says the same.
    fn tells_of_cancelling(&self) -> bool {
        self.talk.known().version.is_some()
    }
}

impl Talk {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What every request of the conversation says.
    fn spoken(&self, mut headers: HeaderMap) -> HeaderMap {
        let known = self.known();
        headers.extend(known.session.clone().map(|session| (SESSION, session)));
        headers.extend(known.version.clone().map(|version| (VERSION, version)));
        headers
    }

    async fn exchange(&self, line: Vec<u8>, message: Outgoing) {
        let id = message.id;
        let mut headers = headers();
        if let Some(version) = message.version.as_deref().and_then(value) {
            headers.insert(VERSION, version);
            headers.extend(value(&message.method).map(|method| (METHOD, method)));
            headers.extend(message.name.as_deref().and_then(value).map(|name| (NAME, name)));
        } else if message.method != "initialize" {
            headers = self.spoken(headers);
        }
        let in_session = headers.contains_key(SESSION);
        let posted = self.way.request(Method::POST, &self.path, headers, Bytes::from(line)).await;
        let reply = match posted {
            Ok(reply) => reply,
            Err(why) => return over(&self.ear, id, Some(Trouble::Answer(why))).await,
        };
        if reply.status() == StatusCode::NOT_FOUND && in_session {
            let why = Trouble::Server("it has forgotten its session".to_owned());
            return over(&self.ear, id, Some(why)).await;
        }
        if !reply.status().is_success() {
            if let Some(id) = id {
                let error = refused(reply).await;
                // The driver is gone when the program is.
                let _ = self.ear.send(Heard::Unanswered { id, error }).await;
            }
            return;
        }
        let greeting = message.method == "initialize";
        if greeting {
            self.known().session = session(&reply);
        }
        let trouble = self.answer(reply, id, greeting).await.err();
        over(&self.ear, id, trouble).await;
    }

    /// Hands on what the server says to a message.
    async fn answer(&self, reply: Reply, id: Option<u64>, greeting: bool) -> Result<(), Trouble> {
        reply.check()?;
        if reply.is("text/event-stream") {
            let Some(id) = id else {
                return self.pass_on(&mut reply.events(&self.way.bound), None, false).await.map(drop);
            };
            return self.follow(reply, id, greeting).await;
        }
        let json = reply.is("application/json");
        // Nothing needs to be said to what is no request.
        if !json && id.is_none() {
            return Ok(());
        }
        let status = reply.status();
        // Until it is handed on.
        let (body, _large) = reply.whole(&self.way.bound).await?;
        if !json || body.is_empty() {
            return Err(Trouble::Answer(format!("HTTP {status} with neither JSON nor events")));
        }
        self.say(body, greeting).await;
        Ok(())
    }

    async fn say(&self, line: Vec<u8>, greeting: bool) {
        if greeting && let Some(version) = version(&line) {
            self.known().version = Some(version);
        }
        // The driver is gone when the program is.
        let _ = self.ear.send(Heard::Said(line)).await;
    }

    /// A stream that may break off and go on elsewhere, until the request is answered.
    async fn follow(&self, reply: Reply, id: u64, greeting: bool) -> Result<(), Trouble> {
        let mut stream = reply.events(&self.way.bound);
        for _ in 0..MOST_BREAKS {
            let broke = match self.pass_on(&mut stream, Some(id), greeting).await {
                Ok(true) => return Ok(()),
                Ok(false) => None,
                Err(Trouble::Answer(why)) => Some(why),
                Err(trouble) => return Err(trouble),
            };
            let Some(last) = stream.events.last_id.clone() else {
                return broke.map_or(Ok(()), |why| Err(Trouble::Answer(why)));
            };
            let pause = stream.events.retry.unwrap_or(PAUSE).clamp(PAUSES.0, PAUSES.1);
            drop(stream);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let reply = self.ask_for_events(Some(&last)).await.map_err(Trouble::Answer)?;
            stream = reply.events(&self.way.bound);
            stream.events.last_id = Some(last);
        }
        Err(Trouble::Answer("it breaks its answer off again and again".to_owned()))
    }

    /// Hands on the messages of a stream until its end, or the answer to this request. Whether that was there.
    async fn pass_on(&self, stream: &mut Stream<'_>, id: Option<u64>, greeting: bool) -> Result<bool, Trouble> {
        while let Some(message) = stream.next_message().await? {
            let answered = id.is_some_and(|id| answers(&message, id));
            self.say(message, greeting && answered).await;
            if answered {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn ask_for_events(&self, last: Option<&str>) -> Result<Reply, String> {
        let mut headers = self.spoken(HeaderMap::new());
        headers.extend(last.and_then(|last| HeaderValue::from_str(last).ok()).map(|last| (LAST_ID, last)));
        let reply = self.way.request(Method::GET, &self.path, headers, Bytes::new()).await?;
        if reply.status() != StatusCode::OK || !reply.is("text/event-stream") || reply.check().is_err() {
            return Err(failed(&format!("HTTP {} instead of events", reply.status())).message);
        }
        Ok(reply)
    }

    /// What the server says by itself. Many have no stream for that.
    async fn listen(&self) {
        let mut last: Option<String> = None;
        while let Ok(reply) = self.ask_for_events(last.as_deref()).await {
            let mut stream = reply.events(&self.way.bound);
            if let Err(Trouble::Server(why)) = self.pass_on(&mut stream, None, false).await {
                return over(&self.ear, None, Some(Trouble::Server(why))).await;
            }
            last = stream.events.last_id.clone().or(last);
            let pause = stream.events.retry.unwrap_or(PAUSE).clamp(CALM, PAUSES.1);
            drop(stream);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}

fn session(reply: &Reply) -> Option<HeaderValue> {
    let session = reply.head.headers.get(SESSION)?;
    (session.len() <= LONGEST_SESSION).then(|| session.clone())
}

/// The revision in the answer to `initialize`.
fn version(line: &[u8]) -> Option<HeaderValue> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Greeting {
        protocol_version: String,
    }
    #[derive(Deserialize)]
    struct Answer {
        result: Greeting,
    }
    let answer: Answer = serde_json::from_slice(line).ok()?;
    HeaderValue::from_str(&answer.result.protocol_version).ok()
}

/// Whether this is the answer to a request.
fn answers(line: &[u8], id: u64) -> bool {
    #[derive(Deserialize)]
    struct Wire {
        id: Option<u64>,
        method: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Wire>(line).is_ok_and(|wire| wire.id == Some(id) && wire.method.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_from_the_rest() {
        assert!(answers(br#"{"jsonrpc":"2.0","id":7,"result":{"id":8}}"#, 7));
        for other in [
            &br#"{"jsonrpc":"2.0","id":8,"result":{}}"#[..],
            br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            br#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            b"no JSON",
        ] {
            assert!(!answers(other, 7));
        }
    }

    #[test]
    fn the_revision_is_the_servers_word() {
        let said = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
        assert_eq!(version(said).unwrap(), "2025-06-18");
        assert!(version(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"a\nb"}}"#).is_none());
    }
}

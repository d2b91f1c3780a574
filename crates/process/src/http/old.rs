//! HTTP as it was before 2025-03-26: one stream on which everything comes back, and a place for messages that it names.

use super::outgoing::Outgoing;
use super::reply::{Stream, Trouble};
use super::way::Way;
use super::{Heard, Post, carry, headers, over, refused};
use bytes::Bytes;
use http::header::HeaderMap;
use http::{Method, StatusCode};
use std::sync::Arc;
use tokio::sync::mpsc;

const LONGEST_PLACE: usize = 4096;

struct Talk {
    way: Arc<Way>,
    /// Where messages go.
    place: String,
    ear: mpsc::Sender<Heard>,
}

pub(super) async fn talk(way: Way, path: String, outbox: mpsc::Receiver<Vec<u8>>, ear: mpsc::Sender<Heard>) {
    let way = Arc::new(way);
    way.open().await;
    if let Err(why) = converse(&way, &path, outbox, &ear).await {
        over(&ear, None, Some(Trouble::Server(why))).await;
    }
    std::future::pending().await
}

/// Until the server ends the stream. The error is why there is nothing more to come.
async fn converse(
    way: &Arc<Way>,
    path: &str,
    outbox: mpsc::Receiver<Vec<u8>>,
    ear: &mpsc::Sender<Heard>,
) -> Result<(), String> {
    let told = |trouble| match trouble {
        Trouble::Answer(why) | Trouble::Server(why) => why,
    };
    let reply = way.request(Method::GET, path, HeaderMap::new(), Bytes::new()).await?;
    let status = reply.status();
    if status != StatusCode::OK || !reply.is("text/event-stream") {
        return Err(format!("it answers `GET {path}` with HTTP {status} instead of events"));
    }
    reply.check().map_err(told)?;
    let mut stream = reply.events(&way.bound);
    let place = loop {
        match stream.next().await.map_err(told)? {
            Some(event) if event.kind == "endpoint" => break place(path, &event.data),
            Some(_) => {}
            None => return Err("it ended its stream of events before it said where messages go".to_owned()),
        }
    };
    let place = place.ok_or("its place for messages is none of its own")?;
    let talk = Arc::new(Talk { way: way.clone(), place, ear: ear.clone() });
    tokio::select! {
        heard = hear(&mut stream, ear) => heard.map_err(told)?,
        () = carry(talk, outbox) => return Ok(()),
    }
    Err("it closed its stream of events".to_owned())
}

async fn hear(stream: &mut Stream<'_>, ear: &mpsc::Sender<Heard>) -> Result<(), Trouble> {
    while let Some(message) = stream.next_message().await? {
        // The driver is gone when the program is.
        let _ = ear.send(Heard::Said(message)).await;
    }
    Ok(())
}

/// Where messages go, as the server says: a path, or a whole URL, of which the rest is known already.
fn place(path: &str, said: &[u8]) -> Option<String> {
    let said = std::str::from_utf8(said).ok()?.trim_ascii();
    let whole = match said.split_once("://") {
        // What it takes for its own name is nobody's affair: its port is where messages go.
        Some(("http" | "https", rest)) => rest.find('/').map_or("/", |at| &rest[at..]).to_owned(),
        Some(_) => return None,
        None if said.starts_with('/') => said.to_owned(),
        None => format!("{}{said}", &path[..path.rfind('/').map_or(0, |at| at + 1)]),
    };
    let plain =
        whole.starts_with('/') && whole.len() <= LONGEST_PLACE && whole.bytes().all(|byte| byte.is_ascii_graphic());
    plain.then_some(whole)
}

impl Post for Talk {
    async fn post(self: Arc<Self>, line: Vec<u8>, message: Outgoing) {
        let posted = self.way.request(Method::POST, &self.place, headers(), Bytes::from(line)).await;
        match posted {
            // The answer itself comes on the stream.
            Ok(reply) if reply.status().is_success() => {}
            Ok(reply) => {
                if let Some(id) = message.id {
                    // The driver is gone when the program is.
                    let _ = self.ear.send(Heard::Unanswered { id, error: refused(reply).await }).await;
                }
            }
            Err(why) => over(&self.ear, message.id, Some(Trouble::Answer(why))).await,
        }
    }

    fn tells_of_cancelling(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_servers_own_port() {
        let known = |said: &str| place("/mcp/sse", said.as_bytes());
        assert_eq!(known("/messages?session=1").as_deref(), Some("/messages?session=1"));
        assert_eq!(known("messages/?session=1").as_deref(), Some("/mcp/messages/?session=1"));
        assert_eq!(known("http://example.com:9/messages").as_deref(), Some("/messages"));
        assert_eq!(known("http://example.com").as_deref(), Some("/"));
        for wrong in ["ftp://a/b", "/a b", "/a\r\nx: y", &format!("/{}", "a".repeat(5000))] {
            assert_eq!(known(wrong), None);
        }
        assert_eq!(place("/", b"\xff"), None);
    }
}

//! What reads the bytes of programs that nobody trusts, for fuzzers. No part of the interface.

use crate::peer::lines::Lines;
use crate::peer::message;
use futures_util::FutureExt;

/// What programs say on standard output: lines, bounded before they are whole, and the messages in them.
pub fn lines(bytes: &[u8], longest: usize) {
    let longest = longest.max(1);
    let mut lines = Lines::new(bytes, longest);
    // Bytes in memory are there at once.
    while let Some(Ok(Some(line))) = lines.next().now_or_never() {
        assert!(line.bytes.len() <= longest);
        let _ = message::read(&line.bytes);
    }
}

/// A stream of server-sent events that comes in pieces of this length.
pub fn events(bytes: &[u8], piece: usize, longest: usize) {
    crate::http::fuzz_events(bytes, piece.max(1), longest);
}

/// A whole answer of an HTTP server, with its head: as one message, and as a stream of events. Needs a tokio runtime.
pub async fn answer(bytes: &[u8], longest: usize) {
    crate::http::fuzz_answer(bytes, longest).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_takes_what_it_is_made_for() {
        lines(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n[]\nno end", 1000);
        events(b"data: 1\n\nevent: x\rdata: 2\r\r", 3, 1000);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9\r\n\r\n";
        answer(format!("{head}data: 1\n\n").as_bytes(), 1000).await;
        for nonsense in [&b""[..], b"\xff\n", b"HTTP/1.1", b"HTTP/1.1 200 OK\r\n\r\ndata:"] {
            lines(nonsense, 0);
            events(nonsense, 0, 0);
            answer(nonsense, 0).await;
        }
    }
}

//! One HTTP/1.1 connection, kept alive: a request's bytes go out, one whole answer comes back.
//! Written by hand because the generator shares two cores with what it measures.

use std::net::SocketAddr;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MOST_HEAD: usize = 64 << 10;
const MOST_BODY: usize = 4 << 20;

#[derive(Debug, Error)]
pub enum WireError {
    #[error("the connection failed")]
    Io(#[from] std::io::Error),
    #[error("the answer is not HTTP")]
    Http(#[from] httparse::Error),
    #[error("the server closed the connection in the middle of an answer")]
    Closed,
    #[error("the answer is longer than the benchmark reads")]
    TooLong,
    #[error("the answer has neither a length nor chunks")]
    NoLength,
}

/// The answer to one request.
#[derive(Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub session: Option<String>,
    pub event_stream: bool,
    pub body: Vec<u8>,
}

enum Length {
    Known(usize),
    Chunked,
    Absent,
}

pub struct Connection {
    stream: TcpStream,
    /// What has been read and not been used yet.
    pending: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Connection, WireError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, pending: Vec::with_capacity(8 << 10) })
    }

    /// Sends a whole request and reads the whole answer into `reply`.
    pub async fn exchange(&mut self, request: &[u8], reply: &mut Reply) -> Result<(), WireError> {
        self.stream.write_all(request).await?;
        let length = self.head(reply).await?;
        reply.body.clear();
        match length {
            Length::Known(length) => self.take(length, &mut reply.body).await,
            Length::Chunked => self.chunks(&mut reply.body).await,
            // 202 and 204 have nothing to say.
            Length::Absent if matches!(reply.status, 202 | 204) => Ok(()),
            Length::Absent => Err(WireError::NoLength),
        }
    }

    async fn head(&mut self, reply: &mut Reply) -> Result<Length, WireError> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut response = httparse::Response::new(&mut headers);
            if let httparse::Status::Complete(used) = response.parse(&self.pending)? {
                let length = read_head(&response, reply);
                self.pending.drain(..used);
                return length;
            }
            self.more(MOST_HEAD).await?;
        }
    }

    async fn take(&mut self, length: usize, body: &mut Vec<u8>) -> Result<(), WireError> {
        if body.len() + length > MOST_BODY {
            return Err(WireError::TooLong);
        }
        while self.pending.len() < length {
            self.more(MOST_BODY).await?;
        }
        body.extend(self.pending.drain(..length));
        Ok(())
    }

    async fn chunks(&mut self, body: &mut Vec<u8>) -> Result<(), WireError> {
        loop {
            let (used, size) = loop {
                match httparse::parse_chunk_size(&self.pending) {
                    Ok(httparse::Status::Complete(found)) => break found,
                    Ok(httparse::Status::Partial) => self.more(MOST_BODY).await?,
                    Err(_) => return Err(WireError::Http(httparse::Error::NewLine)),
                }
            };
            self.pending.drain(..used);
            self.take(usize::try_from(size).map_err(|_| WireError::TooLong)?, body).await?;
            while self.pending.len() < 2 {
                self.more(MOST_BODY).await?;
            }
            self.pending.drain(..2);
            if size == 0 {
                return Ok(());
            }
        }
    }

    async fn more(&mut self, most: usize) -> Result<(), WireError> {
        if self.pending.len() > most {
            return Err(WireError::TooLong);
        }
        match self.stream.read_buf(&mut self.pending).await? {
            0 => Err(WireError::Closed),
            _ => Ok(()),
        }
    }
}

fn read_head(response: &httparse::Response<'_, '_>, reply: &mut Reply) -> Result<Length, WireError> {
    reply.status = response.code.unwrap_or(0);
    reply.session = None;
    reply.event_stream = false;
    let mut length = Length::Absent;
    for header in response.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or_default();
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            length = Length::Known(value.parse().map_err(|_| WireError::NoLength)?);
        } else if is("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            length = Length::Chunked;
        } else if is("content-type") {
            reply.event_stream = value.starts_with("text/event-stream");
        } else if is("mcp-session-id") {
            reply.session = Some(value.to_owned());
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// What a connection makes of these bytes, sent in pieces of this size.
    async fn answer(bytes: &'static [u8], piece: usize) -> Result<Reply, WireError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut connection = Connection::open(listener.local_addr()?).await?;
        let (mut peer, _) = listener.accept().await?;
        tokio::spawn(async move {
            // A socket that is closed with something unread resets the connection.
            let mut request = [0; 64];
            if peer.read(&mut request).await.is_err() {
                return;
            }
            for piece in bytes.chunks(piece) {
                if peer.write_all(piece).await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
        let mut reply = Reply::default();
        connection.exchange(b"GET / HTTP/1.1\r\n\r\n", &mut reply).await.map(|()| reply)
    }

    #[tokio::test]
    async fn bodies_with_a_length_and_in_chunks() {
        let known = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nMcp-Session-Id: abc\r\n\r\nhello";
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n\
            2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
        for piece in [1, 7, 1000] {
            let reply = answer(known, piece).await.unwrap();
            assert_eq!(
                (reply.status, reply.body.as_slice(), reply.session.as_deref()),
                (200, &b"hello"[..], Some("abc"))
            );
            let reply = answer(chunked, piece).await.unwrap();
            assert_eq!((reply.body.as_slice(), reply.event_stream), (&b"hello"[..], true));
        }
    }

    #[tokio::test]
    async fn half_an_answer_is_none() {
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello";
        assert!(matches!(answer(half, 1000).await, Err(WireError::Closed)));
        assert!(matches!(answer(b"HTTP/1.1 200 OK\r\n\r\n", 1000).await, Err(WireError::NoLength)));
        assert!(matches!(answer(b"nonsense\r\n\r\n", 1000).await, Err(WireError::Http(_))));
    }
}

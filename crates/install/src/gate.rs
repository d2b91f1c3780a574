//! The way of an installer to the registry: a proxy that knows the registry's hosts and nothing else.
//!
//! The registry is whatever the person's own settings name, often an address inside their network, which
//! [`egress`] would refuse for good reasons. Who asks here is the package manager; code of packages only if the person wants
//! it to run, and then without the registry's passwords.

use egress::{Origin, Scheme, Target};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const HEAD: usize = 32 << 10;
const MOST_NOTED: usize = 100;
/// Connections at once; more wait.
const CONNECTIONS: usize = 128;
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Gate {
    origins: Vec<Origin>,
    refused: Mutex<BTreeSet<String>>,
}

impl Gate {
    pub(crate) fn new(origins: Vec<Origin>) -> Arc<Gate> {
        Arc::new(Gate { origins, refused: Mutex::default() })
    }

    /// What was asked for beside.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn note(&self, origin: &Origin) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MOST_NOTED {
            refused.insert(origin.to_string());
        }
    }

    /// Serves the listener until it is dropped.
    pub(crate) fn open(self: &Arc<Self>, listener: std::net::TcpListener) -> io::Result<JoinSet<()>> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let gate = self.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let places = Arc::new(Semaphore::new(CONNECTIONS));
            let mut served = JoinSet::new();
            while let Ok(place) = places.clone().acquire_owned().await
                && let Ok((stream, _)) = listener.accept().await
            {
                while served.try_join_next().is_some() {}
                let gate = gate.clone();
                served.spawn(async move {
                    // What goes wrong, the installer sees as a connection that ends.
                    let _ = gate.serve(stream).await;
                    drop(place);
                });
            }
        });
        Ok(tasks)
    }

    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let bytes = tokio::time::timeout(PATIENCE, head(&mut client)).await.map_err(late)??;
        let Some(asked) = Asked::read(&bytes) else {
            return client.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
        };
        let origin = &asked.target.origin;
        if !self.origins.contains(origin) {
            self.note(origin);
            return client.write_all(b"HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n").await;
        }
        let host = origin.host.to_string();
        let host = host.trim_matches(['[', ']']);
        let server = tokio::time::timeout(PATIENCE, TcpStream::connect((host, origin.port))).await;
        let Ok(Ok(mut server)) = server else {
            return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n").await;
        };
        match asked.rewritten {
            None => client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?,
            Some(head) => server.write_all(head.as_bytes()).await?,
        }
        server.write_all(asked.rest).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
    }
}

/// Up to the empty line, and what came with it.
async fn head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while end(&bytes).is_none() {
        if bytes.len() >= HEAD || client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(bytes)
}

fn end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// One request of an installer.
struct Asked<'a> {
    target: Target,
    /// For plain HTTP: the head as the registry is to see it. Its answer is the last on the connection.
    rewritten: Option<String>,
    rest: &'a [u8],
}

impl Asked<'_> {
    fn read(bytes: &[u8]) -> Option<Asked<'_>> {
        let (head, rest) = bytes.split_at(end(bytes)?);
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.trim_end().split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let target = Target::parse(&format!("https://{target}/")).ok()?;
            return Some(Asked { target, rewritten: None, rest });
        }
        let target = Target::parse(target).ok().filter(|target| target.origin.scheme == Scheme::Http)?;
        let mut rewritten = format!("{method} {}{} HTTP/1.1\r\n", target.path, target.query);
        for line in lines {
            let name = line.split(':').next()?.to_ascii_lowercase();
            if !["connection", "proxy-connection", "proxy-authorization", "keep-alive"].contains(&name.as_str()) {
                rewritten.push_str(line);
                rewritten.push_str("\r\n");
            }
        }
        rewritten.push_str("connection: close\r\n\r\n");
        Some(Asked { target, rewritten: Some(rewritten), rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(gate: &Arc<Gate>, request: &str) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _open = gate.open(listener).unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = tokio::time::timeout(PATIENCE, client.read_to_string(&mut answer)).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_registry_is_reached_and_nobody_else() {
        let registry = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = registry.local_addr().unwrap().port();
        let origin = Target::parse(&format!("http://127.0.0.1:{port}/")).unwrap().origin;
        let secure = Origin { scheme: Scheme::Https, ..origin.clone() };
        let gate = Gate::new(vec![origin, secure]);
        let served = tokio::spawn(async move {
            let mut seen = Vec::new();
            for _ in 0..2 {
                let (mut stream, _) = registry.accept().await.unwrap();
                let mut bytes = vec![0; 4096];
                let count = stream.read(&mut bytes).await.unwrap();
                seen.push(String::from_utf8_lossy(&bytes[..count]).into_owned());
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
            }
            seen
        });
        let plain = format!("GET http://127.0.0.1:{port}/a?b HTTP/1.1\r\nhost: x\r\nProxy-Connection: y\r\n\r\n");
        assert!(ask(&gate, &plain).await.ends_with("hi"));
        let tunnel = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello");
        assert!(ask(&gate, &tunnel).await.starts_with("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200"));
        assert_eq!(served.await.unwrap(), ["GET /a?b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "hello"]);
        for other in
            ["CONNECT 127.0.0.1:1 HTTP/1.1", "GET http://localhost/ HTTP/1.1", "CONNECT a.example:443 HTTP/1.1"]
        {
            assert!(ask(&gate, &format!("{other}\r\n\r\n")).await.starts_with("HTTP/1.1 403 "), "{other}");
        }
        assert_eq!(gate.refused(), ["http://localhost", "https://127.0.0.1:1", "https://a.example"]);
        for wrong in ["GET / HTTP/1.1", "CONNECT HTTP/1.1", "GET https://a.example/ HTTP/1.1", "x"] {
            assert!(ask(&gate, &format!("{wrong}\r\n\r\n")).await.starts_with("HTTP/1.1 400 "), "{wrong}");
        }
    }
}

//! The way to a server in its jail: a new connection for each request, on the jail's own loopback.

use super::reply::{Bound, Reply};
use bytes::Bytes;
use http::header::{ACCEPT, HOST, HeaderMap, HeaderValue};
use http::{Method, Request};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jail::program::Sockets;
use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Where servers listen who say `localhost`.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// How long to wait before a port that is closed is tried again: at first, and in the end.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The head of an answer.
const HEAD_BYTES: usize = 64 << 10;
const HEADERS: usize = 100;

pub(super) struct Way {
    sockets: Sockets,
    port: u16,
    /// Where it listens, once that is known.
    address: OnceLock<IpAddr>,
    pub(super) bound: Bound,
}

impl Way {
    pub(super) fn new(sockets: Sockets, port: u16, longest: usize) -> Way {
        Way { sockets, port, address: OnceLock::new(), bound: Bound::new(longest) }
    }

    /// Waits until the server listens. Whoever waits for it has limits of their own.
    pub(super) async fn open(&self) {
        let mut pause = PAUSE;
        loop {
            for address in LOOPBACK {
                if self.connect(address).await.is_ok() {
                    let _ = self.address.set(address);
                    return;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn connect(&self, address: IpAddr) -> io::Result<TcpStream> {
        let sockets = self.sockets.clone();
        let socket = tokio::task::spawn_blocking(move || sockets.get(address)).await??;
        let socket = std::net::TcpStream::from(socket);
        socket.set_nonblocking(true)?;
        let stream = TcpSocket::from_std_stream(socket).connect(SocketAddr::new(address, self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Sends a request, and gives its answer as soon as there is one. The error is for the server's author.
    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Reply, String> {
        let address = self.address.get().copied().unwrap_or(LOOPBACK[0]);
        let stream = self.connect(address).await.map_err(|error| format!("its port cannot be reached: {error}"))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| format!("`{path}` is no path"))?;
        *request.headers_mut() = headers;
        let host = HeaderValue::from_str(&SocketAddr::new(address, self.port).to_string());
        request.headers_mut().insert(HOST, host.map_err(|_| "its address is no header".to_owned())?);
        request.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("text/event-stream"));
        exchange(stream, request).await
    }
}

/// Sends one request, and gives its answer as soon as there is one.
pub(super) async fn exchange<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Reply, String> {
    let shaken = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await;
    let (mut sender, connection) = shaken.map_err(|error| reason(&error))?;
    let mut driven = JoinSet::new();
    driven.spawn(async move {
        // Whoever reads the answer is told what goes wrong.
        let _ = connection.await;
    });
    let response = sender.send_request(request).await.map_err(|error| reason(&error))?;
    let (head, body) = response.into_parts();
    Ok(Reply { head, body, _driven: driven })
}

/// An error of HTTP with what is behind it.
pub(super) fn reason(error: &hyper::Error) -> String {
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    format!("its HTTP cannot be read: {error}{cause}")
}

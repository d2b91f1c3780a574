//! A proxy on loopback, and clients of it.
#![allow(dead_code)]

use super::LOOPBACK;
use super::tls::{self, Listening, polite};
use egress::proxy::{Authority, Notice, Options, serve_connection};
use egress::{Binding, Bindings, Bound, Denied, Limits, Pass, Pattern, Place, Secrets, Visit};
use futures_util::future::BoxFuture;
use rustls::pki_types::{CertificateDer, ServerName};
use secrecy::SecretString;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

pub const KEY: &str = "sk_live_0123456789";

struct Store;

impl Secrets for Store {
    fn get<'a>(&'a self, used: &'a egress::Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        self.known(used.name)
    }

    fn known<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        Box::pin(async { Ok(Some(SecretString::from(KEY))) })
    }
}

type Heard = Arc<Mutex<Vec<(String, u16, String)>>>;

/// A proxy that serves everybody who comes, all for one visit.
pub struct Proxy {
    pub port: u16,
    pub visit: Arc<Visit>,
    heard: Heard,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    pub async fn new(visit: Visit, authority: Option<Arc<Authority>>) -> Proxy {
        let (visit, heard) = (Arc::new(visit), Heard::default());
        let ear = heard.clone();
        let notice: Notice = Arc::new(move |host, port, why| {
            ear.lock().unwrap().push((host.to_owned(), port, why.to_owned()));
            None
        });
        let options = Options { authority, notice: Some(notice) };
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = visit.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(stream, served.clone(), options.clone()));
            }
        });
        Proxy { port, visit, heard, task }
    }

    pub async fn dial(&self) -> TcpStream {
        TcpStream::connect((LOOPBACK, self.port)).await.unwrap()
    }

    /// Sends bytes, and reads to the end.
    pub async fn say(&self, bytes: &str) -> String {
        let mut stream = self.dial().await;
        // Who is refused in the middle may find the other end closed.
        let _ = stream.write_all(bytes.as_bytes()).await;
        until_closed(&mut stream).await
    }

    /// A tunnel, or the answer that says why there is none.
    pub async fn tunnel(&self, authority: &str) -> Result<TcpStream, String> {
        let mut stream = self.dial().await;
        stream
            .write_all(format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let head = head(&mut stream).await;
        if head.starts_with("HTTP/1.1 200 ") { Ok(stream) } else { Err(head + &rest(&mut stream).await) }
    }

    pub fn heard(&self) -> Vec<(String, u16, String)> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

pub async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut all = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8_lossy(&all).into_owned()
}

pub async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut all = Vec::new();
    while !all.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => all.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(all).unwrap()
}

/// What is there of a body with a length that we do not wait for.
pub async fn rest(stream: &mut TcpStream) -> String {
    let mut buffer = vec![0; 4096];
    let read = stream.read(&mut buffer).await.unwrap_or(0);
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

pub async fn shake<S>(
    stream: S,
    name: &str,
    root: CertificateDer<'static>,
) -> std::io::Result<tokio_rustls::client::TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await
}

pub async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let head = head(stream).await;
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

pub fn bound(mut pass: Pass, host: &str) -> Pass {
    let place = Place::Header(http::HeaderName::from_static("x-key"));
    let bindings = Bindings::new(vec![Binding::new("KEY", vec![Pattern::parse(host).unwrap()], place)]).unwrap();
    pass.credentials = Arc::new(Bound::new(bindings, Arc::new(Store)));
    pass
}

pub struct Secure {
    pub server: Listening,
    pub ours: tls::Authority,
}

impl Secure {
    pub async fn new() -> Secure {
        let ours = tls::Authority::new();
        Secure { server: polite(ours.acceptor(&["a.example", "b.example"], |_| {}, &["http/1.1"])).await, ours }
    }

    pub fn visit(&self, pass: Pass, limits: Limits) -> Visit {
        tls::door(self.server.port, self.ours.root(), limits).visit(pass)
    }

    pub fn at(&self, host: &str) -> String {
        format!("{host}:{}", self.server.port)
    }
}

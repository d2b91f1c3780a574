//! The server that everybody asks, and the proxy, each on a thread of its own.

use anyhow::{Context, Result};
use bytes::Bytes;
use egress::Visit;
use egress::proxy::{Options, serve_connection};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::{TcpListener, TcpStream};

pub const ANSWER: &str = r#"{"sku":"A-17","price":45,"currency":"EUR","stock":[3,0,12]}"#;
pub const OPEN: &str = "/prices";
/// Answered only to who has the key.
pub const LOCKED: &str = "/locked/prices";
pub const KEY_HEADER: &str = "x-key";
pub const KEY: &str = "sk_bench_0123456789abcdef";

/// An HTTP/1.1 server on loopback that keeps connections open and counts them.
pub struct Upstream {
    pub address: SocketAddr,
    opened: Arc<AtomicU64>,
}

impl Upstream {
    pub fn start() -> Result<Upstream> {
        let opened = Arc::new(AtomicU64::new(0));
        let count = opened.clone();
        let address = listen("upstream", move |stream| {
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                // A client that breaks off is told of by the client.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            }
        })?;
        Ok(Upstream { address, opened })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Connections so far.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let keyed = request.headers().get(KEY_HEADER).is_some_and(|key| key == KEY);
    let known = request.uri().path() == if keyed { LOCKED } else { OPEN };
    let mut response = Response::new(Full::from(if known { ANSWER } else { "" }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if !known {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
    Ok(response)
}

/// The door as jailed processes have it. All who come are one visit.
pub fn proxy(visit: Visit) -> Result<SocketAddr> {
    let visit = Arc::new(visit);
    listen("proxy", move |stream| serve_connection(stream, visit.clone(), Options::default()))
}

/// Serves until the program ends.
fn listen<F, W>(name: &str, serve: F) -> Result<SocketAddr>
where
    F: Fn(TcpStream) -> W + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let accept = async move {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            // Only speed depends on it.
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream));
        }
    };
    let serve = move || {
        let ended: std::io::Result<Infallible> = runtime.block_on(accept);
        ended.inspect_err(|error| eprintln!("error: a server of the benchmark ended: {error}"))
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(serve)?;
    Ok(address)
}

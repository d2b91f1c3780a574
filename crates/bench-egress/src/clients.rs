//! The clients of this process: straight to the server, through the door, through its proxy.

use crate::upstream::{self, ANSWER, KEY, KEY_HEADER, LOCKED, OPEN, Upstream};
use anyhow::{Result, anyhow, ensure};
use bytes::Bytes;
use egress::{
    BareStar, Binding, Bindings, Bound, Denied, Dev, Door, Limits, Pass, Pattern, Place, Rules, Secrets, Settings,
    Visit,
};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, HOST, HeaderName, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use secrecy::SecretString;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Far above what any machine does, so that no request is refused for its rate.
const RATE: u64 = 100_000_000;

/// What stands between the client and the server.
#[derive(Clone, Copy)]
pub enum Way {
    Straight,
    /// One visit for all requests of a lane, as a call has that asks often.
    Door,
    /// A visit for each request, as calls have that ask once.
    DoorEach,
    /// As `Door`, with a secret in a header.
    DoorSecret,
    Proxy,
}

/// Where lanes begin.
pub struct Desk {
    door: Door<Dev>,
    rules: Arc<Rules>,
    secret: Arc<Bound>,
    proxy: SocketAddr,
    upstream: SocketAddr,
}

struct Store;

impl Secrets for Store {
    fn get<'a>(
        &'a self,
        used: &'a egress::Use<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Option<SecretString>, Denied>> + Send + 'a>> {
        self.known(used.name)
    }

    fn known<'a>(
        &'a self,
        _: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<SecretString>, Denied>> + Send + 'a>> {
        Box::pin(std::future::ready(Ok(Some(SecretString::from(KEY)))))
    }
}

impl Desk {
    pub fn new(upstream: &Upstream) -> Result<Desk> {
        let limits = Limits { rate_per_tenant: RATE, rate_per_host: RATE, ..Limits::default() };
        let settings = Settings { limits, ..Settings::default() };
        let door = Door::dev(vec![upstream.address.port()], settings).map_err(told)?;
        let base = upstream.url("");
        let rules = Arc::new(Rules::parse([base.as_str()], BareStar::Refused).map_err(told)?);
        let place = Place::Header(HeaderName::from_static(KEY_HEADER));
        let binding = Binding::new("KEY", vec![Pattern::parse(&base).map_err(told)?], place);
        let secret = Arc::new(Bound::new(Bindings::new(vec![binding]).map_err(told)?, Arc::new(Store)));
        let proxy = upstream::proxy(door.visit(Pass::new("proxied", "1", rules.clone())))?;
        Ok(Desk { door, rules, secret, proxy, upstream: upstream.address })
    }

    pub async fn lane(&self, way: Way) -> Result<Lane> {
        let url = |path: &str| format!("http://{}{path}", self.upstream);
        let visitor = |tenant: &'static str, secret: bool, path: &str| Visitor {
            door: self.door.clone(),
            rules: self.rules.clone(),
            secret: secret.then(|| self.secret.clone()),
            tenant,
            url: url(path),
            number: 0,
        };
        Ok(match way {
            Way::Straight => Lane::Straight(Straight::open(self.upstream, self.upstream, OPEN.to_owned()).await?),
            Way::Proxy => Lane::Straight(Straight::open(self.proxy, self.upstream, url(OPEN)).await?),
            Way::DoorEach => Lane::Each(visitor("each", false, OPEN)),
            Way::Door | Way::DoorSecret => {
                let secret = matches!(way, Way::DoorSecret);
                let (tenant, path) = if secret { ("secret", LOCKED) } else { ("plain", OPEN) };
                let visitor = visitor(tenant, secret, path);
                Lane::Kept(Box::new(visitor.enter()), visitor)
            }
        })
    }
}

/// One request after another.
pub enum Lane {
    Straight(Straight),
    Kept(Box<Visit>, Visitor),
    Each(Visitor),
}

impl Lane {
    /// Asks once, and reads the answer to its end.
    pub async fn ask(&mut self) -> Result<()> {
        match self {
            Lane::Straight(straight) => straight.ask().await,
            Lane::Kept(visit, visitor) => visitor.ask(visit).await,
            Lane::Each(visitor) => {
                let visit = visitor.enter();
                visitor.ask(&visit).await
            }
        }
    }
}

/// A connection of hyper's, kept.
pub struct Straight {
    sender: SendRequest<Empty<Bytes>>,
    host: String,
    uri: String,
}

impl Straight {
    async fn open(to: SocketAddr, host: SocketAddr, uri: String) -> Result<Straight> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Straight { sender, host: host.to_string(), uri })
    }

    async fn ask(&mut self) -> Result<()> {
        self.sender.ready().await?;
        let request = Request::get(self.uri.as_str()).header(HOST, self.host.as_str());
        // What the door sends when nobody says otherwise.
        let request = request.header(ACCEPT_ENCODING, "gzip, br, zstd, deflate").header(ACCEPT, "*/*");
        let request = request.header(USER_AGENT, "bulkhead").body(Empty::new())?;
        let response = self.sender.send_request(request).await?;
        ensure!(response.status() == StatusCode::OK, "the answer is {}", response.status());
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(body == ANSWER, "the answer is another");
        Ok(())
    }
}

/// Somebody who comes to the door.
pub struct Visitor {
    door: Door<Dev>,
    rules: Arc<Rules>,
    secret: Option<Arc<Bound>>,
    tenant: &'static str,
    url: String,
    number: u64,
}

impl Visitor {
    fn enter(&self) -> Visit {
        let mut pass = Pass::new(self.tenant, "1", self.rules.clone());
        if let Some(secret) = &self.secret {
            pass.credentials = secret.clone();
        }
        self.door.visit(pass)
    }

    /// The host calls that a `fetch` in a compartment makes.
    async fn ask(&mut self, visit: &Visit) -> Result<()> {
        self.number += 1;
        let (number, url) = (self.number, &self.url);
        let fetch = format!(
            r#"{{"id":{number},"method":"GET","url":"{url}","headers":[],"redirect":"follow","bodyLength":null,"stream":false}}"#
        );
        let head = visit.call("fetch", &fetch, Bytes::new()).await.map_err(told)?;
        ensure!(head.meta.contains(r#""status":200"#), "the answer is {}", head.meta);
        let read = format!(r#"{{"id":{number}}}"#);
        let mut body = Vec::new();
        loop {
            let piece = visit.call("fetch_read", &read, Bytes::new()).await.map_err(told)?;
            if piece.meta == r#"{"done":true}"# {
                break;
            }
            body.extend_from_slice(&piece.body);
        }
        ensure!(body == ANSWER.as_bytes(), "the answer is another");
        Ok(())
    }
}

fn told(denied: Denied) -> anyhow::Error {
    anyhow!("{}", denied.message)
}

//! The door for programs that know nothing but `HTTP_PROXY` and `HTTPS_PROXY`: an HTTP/1.1 proxy, one connection at a time.
//!
//! - `GET http://host/…` and every other request with a whole URL goes the ordinary way: rules, secrets, masking.
//! - `CONNECT host:port` makes a tunnel, to the one address that was checked, for TLS that asks for that very name.
//! - Where a tunnel would go past something (a bound secret, a rule with a path or methods), the proxy speaks TLS itself and every
//!   request goes the ordinary way; if the client trusts its [`Authority`], that is. Without one, such tunnels are refused.

mod authority;
mod client;
mod forward;
mod hello;
mod outfit;
mod tunnel;

pub use authority::Authority;
pub use outfit::Outfit;

pub(crate) use hello::whole as client_hello;

use crate::denied::{Code, Denied};
use crate::limits::Limits;
use crate::rule::{Cover, unnamed};
use crate::send::patiently;
use crate::target::{Host, Origin, Target};
use crate::upload::Progress;
use crate::visit::Visit;
use bytes::{Bytes, BytesMut};
use client::Client;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tunnel::Tunnel;

type Body = UnsyncBoxBody<Bytes, Denied>;

/// Told of each refusal of a host: host, port, reason. A client may cause many. What it returns is what the client reads in
/// place of the reason.
pub type Notice = Arc<dyn Fn(&str, u16, &str) -> Option<String> + Send + Sync>;

#[derive(Clone, Default)]
pub struct Options {
    /// Speaks for hosts whose requests have to be seen. The client must trust its certificate.
    pub authority: Option<Arc<Authority>>,
    pub notice: Option<Notice>,
}

/// Serves one client until it goes, the visit is closed, or nothing happens for too long.
pub async fn serve_connection<S>(stream: S, visit: Arc<Visit>, options: Options)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &visit.door.limits;
    let quiet = Duration::from_millis(limits.total_ms.max(limits.tunnel_idle_ms));
    let gone = visit.gone();
    let progress = Progress::new();
    let client = Client::new(stream, BytesMut::new(), progress.clone());
    let proxy = Arc::new(Proxy { visit, options, progress: progress.clone() });
    tokio::select! {
        biased;
        () = gone.cancelled() => {}
        _ = patiently(proxy.serve(client), &progress, quiet) => {}
    }
}

struct Proxy {
    visit: Arc<Visit>,
    options: Options,
    progress: Progress,
}

/// What a connection becomes after a CONNECT was answered.
enum Next {
    Tunnel(Box<Tunnel>),
    /// The proxy itself is the other end.
    Speak(Target, Arc<Authority>),
}

type After = Arc<Mutex<Option<(OnUpgrade, Next)>>>;

impl Proxy {
    async fn serve<S>(self: &Arc<Self>, client: Client<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let after = After::default();
        let service = service_fn(|request| {
            let (proxy, after) = (self.clone(), after.clone());
            async move { Ok::<_, Infallible>(proxy.answer(request, &after).await) }
        });
        let served = server(&self.visit.door.limits).serve_connection(TokioIo::new(client), service).with_upgrades();
        // What is wrong with a client's HTTP is the client's affair; the connection is over.
        let _ = served.await;
        let next = after.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((upgrade, next)) = next else { return };
        let Ok(upgraded) = upgrade.await else { return };
        let stream = TokioIo::new(upgraded);
        match next {
            Next::Tunnel(tunnel) => tunnel.run(stream, self).await,
            Next::Speak(target, authority) => self.speak(stream, target, &authority).await,
        }
    }

    async fn answer(&self, request: Request<Incoming>, after: &After) -> Response<Body> {
        if request.method() == Method::CONNECT {
            return self.connect(request, after).await;
        }
        if request.uri().scheme().is_none() {
            let told = "this is a proxy: it takes requests with a whole URL, and CONNECT";
            return text(StatusCode::BAD_REQUEST, told);
        }
        let url = request.uri().to_string();
        self.forward(request, url).await
    }

    async fn connect(&self, mut request: Request<Incoming>, after: &After) -> Response<Body> {
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let target = match authority.ok_or_else(|| Denied::invalid("CONNECT needs `host:port`")) {
            Ok(authority) => Target::parse(&format!("https://{authority}/")),
            Err(denied) => Err(denied),
        };
        let next = match target {
            Ok(target) => {
                let next = self.way(&target).await;
                next.map_err(|denied| self.notice(&target.origin, denied))
            }
            Err(denied) => {
                self.visit.ledger.note("CONNECT", None, None).failed(denied.code);
                Err(denied)
            }
        };
        match next {
            Ok(next) => {
                let upgrade = hyper::upgrade::on(&mut request);
                *after.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, next));
                Response::new(empty())
            }
            Err(denied) => refusal(&denied),
        }
    }

    /// What is to become of a CONNECT. For a tunnel the connection is there already.
    async fn way(&self, target: &Target) -> Result<Next, Denied> {
        let origin = &target.origin;
        let refuse = |denied: Denied| {
            self.visit.ledger.note("CONNECT", Some(target), None).failed(denied.code);
            Err(denied)
        };
        let cover = self.visit.pass.rules.cover(origin);
        // Wherever a secret was kept, it would come back through a tunnel unseen.
        let guarded = self.visit.pass.credentials.guards(origin);
        let (rule, why) = match cover {
            Cover::Nothing => return refuse(unnamed(origin)),
            Cover::Whole(rule) => (Some(rule).filter(|_| !guarded), "a secret could come back from there"),
            Cover::Part => (None, "rules allow only some of its paths or methods"),
        };
        if let Host::Address(_) = origin.host {
            return refuse(Denied::refuse(format!(
                "no tunnel to {origin}: TLS asks for names, and an address is none"
            )));
        }
        match (rule, &self.options.authority) {
            (Some(rule), _) => {
                Tunnel::open(&self.visit, target, rule.to_string()).await.map(Box::new).map(Next::Tunnel)
            }
            (None, Some(authority)) => Ok(Next::Speak(target.clone(), authority.clone())),
            (None, None) => refuse(Denied::refuse(format!(
                "no tunnel to {origin}: {why}, and inside of a tunnel nobody can see what is asked"
            ))),
        }
    }

    /// Speaks TLS in the name of the host, and serves what is asked of it.
    async fn speak<S>(self: &Arc<Self>, mut stream: S, target: Target, authority: &Authority)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = &self.visit.door.limits;
        let shaken = async {
            let ahead = self.hello(&mut stream, &target.origin).await?;
            let config = authority.speak_for(&target.origin.host.to_string())?;
            let client = Client::new(stream, ahead, self.progress.clone());
            let accepted = tokio_rustls::TlsAcceptor::from(config).accept(client).await;
            accepted.map_err(|_| Denied::tls("the client does not trust the proxy's certificate, or broke off"))
        };
        let most = Duration::from_millis(limits.header_ms);
        let shaken = tokio::time::timeout(most, shaken).await;
        let stream = match shaken.unwrap_or_else(|_| Err(Denied::timeout("TLS was not there in time (`header_ms`)"))) {
            Ok(stream) => stream,
            Err(denied) => {
                self.visit.ledger.note("CONNECT", Some(&target), None).failed(denied.code);
                self.notice(&target.origin, denied);
                return;
            }
        };
        let service = service_fn(|request| {
            let (proxy, origin) = (self.clone(), target.origin.clone());
            async move { Ok::<_, Infallible>(proxy.inner(request, &origin).await) }
        });
        let _ = server(limits).serve_connection(TokioIo::new(stream), service).await;
    }

    /// The client's first message of TLS, if it asks for the name of the CONNECT.
    async fn hello<S: AsyncRead + Unpin>(&self, stream: &mut S, origin: &Origin) -> Result<BytesMut, Denied> {
        let wrong =
            |what: &str| Denied::refuse(format!("the tunnel to {origin} is for TLS with that name; the client {what}"));
        let (raw, name) = hello::read(stream).await.map_err(wrong)?;
        match name {
            Some(name) if name == origin.host.to_string() => Ok(raw),
            Some(name) => Err(wrong(&format!("asks for {}", crate::denied::quote(&name)))),
            None => Err(wrong("asks for none")),
        }
    }

    /// Tells whoever wants to know; gives the refusal as the client is to read it.
    fn notice(&self, origin: &Origin, denied: Denied) -> Denied {
        let notice = self.options.notice.as_ref().filter(|_| denied.code == Code::Denied);
        let told = notice.and_then(|notice| notice(&origin.host.to_string(), origin.port, &denied.message));
        Denied { message: told.unwrap_or(denied.message), ..denied }
    }
}

fn server(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_ms))
        .max_headers(usize::try_from(limits.headers).unwrap_or(100))
        .max_buf_size(usize::try_from(limits.header_bytes).unwrap_or(0).max(8192));
    builder
}

fn empty() -> Body {
    Full::default().map_err(|never| match never {}).boxed_unsync()
}

fn text(status: StatusCode, told: &str) -> Response<Body> {
    let body = Full::from(format!("{told}\n")).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A refusal in words of HTTP. The code is in a header, for programs.
fn refusal(denied: &Denied) -> Response<Body> {
    let status = match denied.code {
        Code::Denied | Code::Secret => StatusCode::FORBIDDEN,
        Code::Invalid => StatusCode::BAD_REQUEST,
        Code::Limit => StatusCode::TOO_MANY_REQUESTS,
        Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Code::Network | Code::Tls => StatusCode::BAD_GATEWAY,
        Code::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = text(status, &denied.message);
    response.headers_mut().insert("bulkhead-refused", HeaderValue::from_static(denied.code.as_str()));
    response
}

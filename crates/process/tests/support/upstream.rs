//! A host that a server may want to reach, on loopback, and the door to it.

use bytes::Bytes;
use egress::proxy::{self, Authority};
use egress::{
    BareStar, Binding, Bindings, Bound, Denied, Door, Lookup, Pass, Pattern, Place, Resolve, Rules, Secrets, Settings,
    Visit,
};
use futures_util::future::BoxFuture;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sandbox::{Future, Host, HostCall, HostRefusal, HostReply, LogLine, Stream};
use secrecy::SecretString;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub const KEY: &str = "sk_live_0123456789";

type Seen = Arc<Mutex<Vec<String>>>;

/// Answers each request with its own headers.
pub struct Upstream {
    pub port: u16,
    pub root: Option<CertificateDer<'static>>,
    seen: Seen,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Upstream {
    pub async fn plain() -> Upstream {
        Upstream::listen(None).await
    }

    /// With a certificate for `a.example`.
    pub async fn secure() -> Upstream {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["a.example".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = builder.with_single_cert(vec![leaf.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let mut upstream = Upstream::listen(Some(acceptor)).await;
        upstream.root = Some(issuer.der().clone());
        upstream
    }

    async fn listen(acceptor: Option<TlsAcceptor>) -> Upstream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Seen::default();
        let heard = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, heard) = (acceptor.clone(), heard.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => answer(stream, heard).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                answer(stream, heard).await;
                            }
                        }
                    }
                });
            }
        });
        Upstream { port, root: None, seen, task }
    }

    /// What it was asked so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// A door that leads here alone.
    pub fn door(&self) -> Door<egress::Dev> {
        let extra_roots = self.root.iter().cloned().collect();
        let settings = Settings { resolver: Arc::new(Here), extra_roots, ..Settings::default() };
        Door::dev(vec![self.port], settings).unwrap()
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, seen: Seen) {
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let told = format!("{} {:?}", request.uri(), request.headers());
        seen.lock().unwrap().push(told.clone());
        async move { Ok::<_, Infallible>(hyper::Response::new(Full::new(Bytes::from(told)))) }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Every name leads to loopback.
struct Here;

impl Resolve for Here {
    fn resolve(&self, _: &str) -> Lookup {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
    }
}

struct Store;

impl Secrets for Store {
    fn get<'a>(&'a self, used: &'a egress::Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        self.known(used.name)
    }

    fn known<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        Box::pin(async { Ok(Some(SecretString::from(KEY))) })
    }
}

/// May reach what these rules say.
pub fn pass(rules: &[&str]) -> Pass {
    let rules = Rules::parse(rules.iter().copied(), BareStar::Refused).unwrap();
    Pass::new("acme", "deployment", Arc::new(rules))
}

/// The same, and a secret goes along to this host.
pub fn bound(rules: &[&str], host: &str) -> Pass {
    let place = Place::Header(http::HeaderName::from_static("x-key"));
    let binding = Binding::new("KEY", vec![Pattern::parse(host).unwrap()], place);
    let credentials = Bound::new(Bindings::new(vec![binding]).unwrap(), Arc::new(Store));
    Pass { credentials: Arc::new(credentials), ..pass(rules) }
}

/// The host of a call whose program has a way out.
pub struct Outside {
    visit: Arc<Visit>,
    authority: Option<Arc<Authority>>,
    pub log: Mutex<Vec<String>>,
    open: Arc<AtomicUsize>,
    /// The most connections at once.
    pub most: Arc<AtomicUsize>,
}

impl Outside {
    pub fn new(visit: Visit, authority: Option<Arc<Authority>>) -> Arc<Outside> {
        let (log, open, most) = (Mutex::default(), Arc::default(), Arc::default());
        Arc::new(Outside { visit: Arc::new(visit), authority, log, open, most })
    }

    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

/// Counts down however the connection ends.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Host for Outside {
    fn call(&self, _: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        let refusal = HostRefusal { code: "client_cannot".to_owned(), message: "nobody is asked here".to_owned() };
        Box::pin(async move { Err(refusal) })
    }

    fn log(&self, line: LogLine) {
        self.log.lock().unwrap().push(line.text);
    }

    fn connection(&self, stream: Box<dyn Stream>) -> Future<'static, ()> {
        let now = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let counted = Counted(self.open.clone());
        let options = proxy::Options { authority: self.authority.clone(), notice: None };
        let visit = self.visit.clone();
        Box::pin(async move {
            let _counted = counted;
            proxy::serve_connection(stream, visit, options).await;
        })
    }

    fn hosts_reached(&self) -> Vec<String> {
        self.visit.hosts_reached()
    }
}

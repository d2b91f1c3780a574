//! Servers that speak TLS, with certificates of an authority of our own.
#![allow(dead_code)]

use super::{LOOPBACK, Names};
use egress::{Door, Limits, Settings};
use http_body_util::BodyExt;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(rcgen::DnType::CommonName, "the authority of a test");
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn root(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn acceptor(&self, names: &[&str], change: impl Fn(&mut CertificateParams), alpn: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        acceptor(certificate.der().clone(), &key, alpn)
    }
}

pub fn acceptor(certificate: CertificateDer<'static>, key: &KeyPair, alpn: &[&str]) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

pub struct Listening {
    pub port: u16,
    task: tokio::task::JoinHandle<()>,
    pub names: Arc<Mutex<Vec<Option<String>>>>,
    pub connections: Arc<AtomicUsize>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub async fn listen<F, W>(acceptor: TlsAcceptor, handle: F) -> Listening
where
    F: Fn(TlsStream<TcpStream>) -> W + Send + Sync + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (names, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (heard, count) = (names.clone(), connections.clone());
    let handle = Arc::new(handle);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let (acceptor, heard, handle) = (acceptor.clone(), heard.clone(), handle.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    heard.lock().unwrap().push(stream.get_ref().1.server_name().map(str::to_owned));
                    handle(stream).await;
                }
            });
        }
    });
    Listening { port, task, names, connections }
}

/// Answers with its protocol and what it was asked, over HTTP/1 or HTTP/2.
pub async fn polite(acceptor: TlsAcceptor) -> Listening {
    listen(acceptor, |stream| async move {
        let service = hyper::service::service_fn(|request: hyper::Request<hyper::body::Incoming>| async move {
            let told = format!("{:?} {} {:?}", request.version(), request.uri(), request.headers().get("host"));
            let body = request.into_body().collect().await?.to_bytes();
            let text = format!("{told} {}", String::from_utf8_lossy(&body));
            Ok::<_, hyper::Error>(hyper::Response::new(text))
        });
        let io = hyper_util::rt::TokioIo::new(stream);
        if io.inner().get_ref().1.alpn_protocol() == Some(b"h2") {
            let executor = hyper_util::rt::TokioExecutor::new();
            let _ = hyper::server::conn::http2::Builder::new(executor).serve_connection(io, service).await;
        } else {
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
        }
    })
    .await
}

pub fn door(port: u16, root: CertificateDer<'static>, limits: Limits) -> Door<egress::Dev> {
    let settings =
        Settings { limits, resolver: Arc::new(Names::default()), extra_roots: vec![root], ..Settings::default() };
    Door::dev(vec![port], settings).unwrap()
}

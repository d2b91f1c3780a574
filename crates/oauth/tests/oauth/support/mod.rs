//! What a host has: a way to loopback, a place for tokens, a clock. And a browser, as far as one is needed.
#![allow(dead_code)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, Response, body::Bytes, body::Incoming, header};
use hyper_util::rt::TokioIo;
use oauth::{
    BoxFuture, ClientAuth, Clock, Connection, Error, Grant, Http, HttpError, Keeper, MOST_ANSWER_BYTES, Pending, Per,
    Provider, Store, StoreError, TokenRequest, Tokens,
};
use secrecy::{ExposeSecret, SecretString};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use url::Url;
use url::form_urlencoded::Serializer;

pub const REDIRECT: &str = "http://127.0.0.1:1/callback";
pub const NOW: u64 = 1_800_000_000;

/// Nothing here may take for ever.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let done = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await });
    runtime.shutdown_background();
    done.expect("the test takes too long")
}

/// Settings for a provider at this address.
pub fn settings(at: &str) -> Provider {
    let url = |path: &str| Url::parse(&format!("{at}{path}")).unwrap();
    Provider {
        authorize_url: Some(url("/authorize")),
        token_url: url("/token"),
        revoke_url: Some(url("/revoke")),
        client_id: "bulkhead".into(),
        scopes: vec!["read".into(), "write:all".into()],
        grant: Grant::Code,
        per: Per::User,
        client_auth: ClientAuth::Basic,
        parameters: BTreeMap::new(),
        issuer: None,
    }
}

async fn exchange(url: &Url, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Box<dyn std::error::Error>> {
    let address = (url.host_str().unwrap().to_owned(), url.port().unwrap());
    let stream = tokio::net::TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

fn form(fields: &[(String, String)]) -> String {
    Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn post(url: &Url, body: String) -> hyper::http::request::Builder {
    Request::post(url[url::Position::BeforePath..].to_owned())
        .header(header::HOST, url.authority())
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::CONTENT_LENGTH, body.len())
}

pub struct Loopback;

impl Http for Loopback {
    fn post_form<'a>(
        &'a self,
        url: &'a str,
        fields: Vec<(String, SecretString)>,
        basic: Option<(String, SecretString)>,
    ) -> BoxFuture<'a, Result<(u16, Vec<u8>), HttpError>> {
        Box::pin(async move {
            let url = Url::parse(url).unwrap();
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect();
            let body = form(&fields);
            let mut request = post(&url, body.clone());
            if let Some((user, password)) = basic {
                let text = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
                request = request.header(header::AUTHORIZATION, format!("Basic {text}"));
            }
            let answer = exchange(&url, request.body(body.into()).unwrap()).await;
            let answer = answer.map_err(|_| HttpError::new("no connection"))?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), MOST_ANSWER_BYTES).collect().await;
            Ok((status, body.map_err(|_| HttpError::new("the answer is too long or broken"))?.to_bytes().to_vec()))
        })
    }
}

/// Keeps them as a host does: sealed (here: as text), by connection.
#[derive(Clone, Default)]
pub struct Memory {
    pub kept: Arc<Mutex<HashMap<Connection, SecretString>>>,
    /// So many times saving fails.
    pub broken: Arc<AtomicUsize>,
}

impl Memory {
    pub fn tokens(&self, tenant: &str, subject: &str) -> Option<Tokens> {
        let key = Connection { tenant: tenant.into(), provider: "acme".into(), subject: subject.into() };
        self.kept.lock().unwrap().get(&key).map(|text| Tokens::from_secret(text).unwrap())
    }
}

impl Store for Memory {
    fn load<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<Option<Tokens>, StoreError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let kept = self.kept.lock().unwrap();
            kept.get(connection).map(Tokens::from_secret).transpose().map_err(|error| StoreError(error.to_string()))
        })
    }

    fn save<'a>(&'a self, connection: &'a Connection, tokens: &'a Tokens) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let less = |left: usize| left.checked_sub(1);
            if self.broken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
                return Err(StoreError("the disk is full".into()));
            }
            self.kept.lock().unwrap().insert(connection.clone(), tokens.to_secret());
            Ok(())
        })
    }

    fn remove<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.kept.lock().unwrap().remove(connection);
            Ok(())
        })
    }
}

#[derive(Clone)]
pub struct Hand(Arc<AtomicU64>);

impl Hand {
    pub fn turn(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A keeper with everything that a test looks at.
pub struct Host<H: Http = Loopback> {
    pub keeper: Keeper<Memory, H, Hand>,
    pub store: Memory,
    pub clock: Hand,
    pub secret: SecretString,
}

impl<H: Http> Host<H> {
    pub fn new(http: H, secret: &str) -> Arc<Host<H>> {
        let (store, clock) = (Memory::default(), Hand(Arc::new(AtomicU64::new(NOW))));
        let keeper = Keeper::new(store.clone(), http, clock.clone());
        Arc::new(Host { keeper, store, clock, secret: secret.into() })
    }

    pub async fn token(&self, tenant: &str, provider: &Provider, subject: &str) -> Result<String, Error> {
        let token = self.keeper.token(tenant, "acme", provider, Some(&self.secret), subject).await?;
        Ok(token.expose_secret().to_owned())
    }

    pub async fn connect(&self, tenant: &str, provider: &Provider, subject: &str) {
        self.connect_as(tenant, provider, subject, subject).await;
    }

    /// The same for somebody whom the provider calls otherwise.
    pub async fn connect_as(&self, tenant: &str, provider: &Provider, subject: &str, user: &str) {
        let request = agree(provider, user, self.clock.now()).await;
        let tokens = self.keeper.exchange(request, Some(&self.secret)).await.unwrap();
        self.keeper.keep(tenant, "acme", provider, tokens, subject).await.unwrap();
    }
}

/// What a person does: opens the link, signs in, says yes, and is sent back.
pub async fn agree(provider: &Provider, user: &str, now: u64) -> TokenRequest {
    let (url, pending) = oauth::begin(provider, REDIRECT, now).unwrap();
    let query = visit(&url, user, "allow").await;
    oauth::finish(provider, pending, &query, REDIRECT, now).unwrap()
}

/// The query that the browser comes back with.
pub async fn visit(url: &str, user: &str, decision: &str) -> String {
    let url = Url::parse(url).unwrap();
    let get = Request::get(url[url::Position::BeforePath..].to_owned()).header(header::HOST, url.authority());
    let page = exchange(&url, get.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(page.status(), 200);
    let html = String::from_utf8(page.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let mut fields: Vec<(String, String)> = html.lines().filter_map(hidden_field).collect();
    assert_eq!(fields.len(), 5, "{html}");
    fields.extend([("user".into(), user.into()), ("decision".into(), decision.into())]);
    let body = form(&fields);
    let action = url.join("/authorize").unwrap();
    let answer = exchange(&action, post(&action, body.clone()).body(body.into()).unwrap()).await.unwrap();
    let location = answer.headers()[header::LOCATION].to_str().unwrap();
    let (back, query) = location.split_once('?').unwrap();
    assert_eq!(back, REDIRECT);
    query.to_owned()
}

fn hidden_field(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.split_once("type=\"hidden\" name=\"")?.1.split_once("\" value=\"")?;
    let value = rest.split_once('"')?.0.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
    Some((name.to_owned(), value.replace("&amp;", "&")))
}

/// The same attempt again, as somebody would have it who could copy it.
pub fn copy(pending: &Pending) -> Pending {
    Pending::from_secret(&pending.to_secret()).unwrap()
}

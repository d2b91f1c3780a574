//! Sends traces to the collector, in batches, off the path of every call.

use super::otlp::{self, Span};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, Url};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Traces that may wait.
const WAITING: usize = 2048;
/// Traces in one request.
const BATCH: usize = 256;
/// A trace waits this long for others to go with.
const PAUSE: Duration = Duration::from_millis(500);
/// A collector has this long to take a batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tries for one batch, and the wait before the second; before each further one it is twice as long.
const ATTEMPTS: u32 = 3;
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct TraceSettings {
    /// The collector, as `http://127.0.0.1:4318`; traces go to `/v1/traces` below it.
    pub endpoint: String,
    /// Sent with every batch, such as an API key.
    pub headers: Vec<(String, String)>,
    /// The share of calls that is traced when the client does not say, from 0 to 1.
    pub sample_ratio: f64,
    /// What the collector knows this host as.
    pub service: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("`{0}` is no address of a collector; it looks like `http://127.0.0.1:4318`")]
    Endpoint(String),
    #[error("`{0}` is no header field for the collector, or its value is none")]
    Header(String),
    #[error("there is no TLS for the collector")]
    Tls(#[source] rustls::Error),
    #[error("there is no client for the collector")]
    Client(#[source] reqwest::Error),
    #[error("the system has no randomness: {0}")]
    Randomness(String),
}

enum Order {
    Send(Vec<Span>),
    Flush(oneshot::Sender<()>),
}

pub(super) struct Sender {
    orders: mpsc::Sender<Order>,
    dropped: Arc<AtomicU64>,
}

impl Sender {
    pub(super) fn start(settings: TraceSettings) -> Result<Sender, TraceError> {
        let (orders, incoming) = mpsc::channel(WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let post = Post::new(settings, dropped.clone())?;
        tokio::spawn(work(incoming, post));
        Ok(Sender { orders, dropped })
    }

    pub(super) fn send(&self, spans: Vec<Span>) {
        if self.orders.try_send(Order::Send(spans)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) async fn flush(&self, within: Duration) {
        let flush = async {
            let (done, sent) = oneshot::channel();
            if self.orders.send(Order::Flush(done)).await.is_ok() {
                // Dropped without a word means that the task is gone, and with it what waited.
                let _ = sent.await;
            }
        };
        // Who ends now does not wait for a collector that does not answer.
        let _ = tokio::time::timeout(within, flush).await;
    }
}

/// Ends with the last handle.
async fn work(mut incoming: mpsc::Receiver<Order>, mut post: Post) {
    let mut orders = Vec::with_capacity(BATCH);
    while incoming.recv_many(&mut orders, BATCH).await > 0 {
        let flush = orders.iter().any(|order| matches!(order, Order::Flush(_)));
        if !flush && orders.len() < BATCH {
            gather(&mut incoming, &mut orders).await;
        }
        let (mut batch, mut waiting) = (Vec::new(), Vec::new());
        for order in orders.drain(..) {
            match order {
                Order::Send(spans) => batch.push(spans),
                Order::Flush(done) => waiting.push(done),
            }
        }
        if !batch.is_empty() {
            post.send(&batch).await;
        }
        for done in waiting {
            // Who asked may have gone.
            let _ = done.send(());
        }
    }
}

/// Waits a little for more, unless somebody wants all of it now.
async fn gather(incoming: &mut mpsc::Receiver<Order>, orders: &mut Vec<Order>) {
    let more = async {
        while orders.len() < BATCH {
            let Some(order) = incoming.recv().await else { return };
            let now = matches!(order, Order::Flush(_));
            orders.push(order);
            if now {
                return;
            }
        }
    };
    // The time is up: what there is goes.
    let _ = tokio::time::timeout(PAUSE, more).await;
}

struct Post {
    client: Client,
    url: Url,
    headers: HeaderMap,
    service: String,
    dropped: Arc<AtomicU64>,
    /// Said once when it begins and once when it is over.
    failing: bool,
}

impl Post {
    fn new(settings: TraceSettings, dropped: Arc<AtomicU64>) -> Result<Post, TraceError> {
        let no_endpoint = || TraceError::Endpoint(settings.endpoint.clone());
        // Looked at by itself first: `http://` and a path would be a host and a path.
        Url::parse(&settings.endpoint).map_err(|_| no_endpoint())?;
        let url = format!("{}/v1/traces", settings.endpoint.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|_| no_endpoint())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(no_endpoint());
        }
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        for (name, value) in &settings.headers {
            let wrong = || TraceError::Header(name.clone());
            let key: HeaderName = name.parse().map_err(|_| wrong())?;
            let mut value: HeaderValue = value.parse().map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        let client = client(url.scheme() == "https")?;
        Ok(Post { client, url, headers, service: settings.service, dropped, failing: false })
    }

    async fn send(&mut self, batch: &[Vec<Span>]) {
        let body = bytes::Bytes::from(otlp::request(&self.service, batch.iter().flatten()));
        let mut pause = AGAIN;
        for attempt in 1..=ATTEMPTS {
            let problem = match self.attempt(body.clone()).await {
                Ok(()) => return self.works(),
                Err(problem) => problem,
            };
            if !problem.may_pass || attempt == ATTEMPTS {
                return self.fails(batch.len(), &problem);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    async fn attempt(&self, body: bytes::Bytes) -> Result<(), Problem> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).timeout(PATIENCE).body(body);
        let status = match request.send().await {
            Ok(response) => response.status(),
            // Without the address: that may hold what only the operator knows.
            Err(error) => return Err(Problem { may_pass: true, why: error.without_url().to_string() }),
        };
        let passing = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        if status.is_success() {
            return Ok(());
        }
        Err(Problem { may_pass: passing.contains(&status), why: format!("it answered {status}") })
    }

    fn works(&mut self) {
        if std::mem::take(&mut self.failing) {
            tracing::info!("the collector takes traces again");
        }
    }

    fn fails(&mut self, traces: usize, problem: &Problem) {
        self.dropped.fetch_add(traces as u64, Ordering::Relaxed);
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(problem = %problem.why, "the collector does not take traces; they are dropped until it does");
        }
    }
}

struct Problem {
    /// Whether another try makes sense.
    may_pass: bool,
    why: String,
}

/// No redirects: header fields are meant for this collector. The provider is named, for the process may have none.
fn client(encrypted: bool) -> Result<Client, TraceError> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = tls.map_err(TraceError::Tls)?;
    // Plain HTTP needs no certificates, and a machine may have none.
    let tls = if encrypted {
        tls.with_platform_verifier().map_err(TraceError::Tls)?
    } else {
        tls.with_root_certificates(rustls::RootCertStore::empty())
    };
    let builder = Client::builder()
        .tls_backend_preconfigured(tls.with_no_client_auth())
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("bulkhead/", env!("CARGO_PKG_VERSION")));
    let builder = if encrypted { builder } else { builder.no_proxy() };
    builder.build().map_err(TraceError::Client)
}

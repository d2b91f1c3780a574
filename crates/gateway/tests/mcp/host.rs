//! One host for all tests of this file, and a client that says what it sends.

use crate::signed::{self, Draft};
use gateway::observe::Traces;
use gateway::{Parts, Running, Settings};
use isolate::{Carrier, IsolateSettings, IsolateWall, Together};
use policy::{Allowance, Ask, Boundary, Limits};
use registry::{Actor, NewKey, Registry, Role, Scope};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sandbox::{Pool, PoolSettings};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub const MODERN: &str = "2026-07-28";

/// Runs a test on the runtime that the host lives on, and not for ever.
pub fn test(body: impl Future<Output = ()> + 'static) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap());
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), body).await.expect("the test took too long") });
}

pub fn host_actor() -> Actor {
    Actor("test".to_owned())
}

pub async fn pools() -> HashMap<String, Arc<Pool>> {
    pools_with(Together::default()).await
}

pub async fn pools_with(together: Together) -> HashMap<String, Arc<Pool>> {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let carrier = Carrier::beside(&folder).unwrap();
    let settings = IsolateSettings { heap_mb: 128, together: Some(together), ..IsolateSettings::new(carrier) };
    let wall = IsolateWall::start(settings).await.unwrap();
    HashMap::from([("isolate".to_owned(), Arc::new(Pool::new(Arc::new(wall), PoolSettings::default())))])
}

pub async fn start(dir: &Path, settings: Settings, pools: HashMap<String, Arc<Pool>>) -> Running {
    start_with(dir, settings, pools, None).await
}

pub async fn start_with(
    dir: &Path,
    settings: Settings,
    pools: HashMap<String, Arc<Pool>>,
    egress: Option<gateway::Egress>,
) -> Running {
    start_traced(dir, settings, pools, egress, Traces::off()).await
}

pub async fn start_traced(
    dir: &Path,
    settings: Settings,
    pools: HashMap<String, Arc<Pool>>,
    egress: Option<gateway::Egress>,
    traces: Traces,
) -> Running {
    let registry = Registry::open(dir).unwrap();
    registry.unlock(registry::MasterKey::ensure_file(&dir.join("master.key")).unwrap()).unwrap();
    let parts = Parts {
        registry,
        pools,
        settings,
        reloader: None,
        traces,
        egress,
        authority: None,
        master_key: None,
        dev: true,
    };
    gateway::start(parts, "127.0.0.1:0".parse().unwrap(), Duration::from_secs(5)).await.unwrap()
}

/// The host, started once. Its data directory goes with the process's temporary files.
pub async fn running() -> &'static Running {
    static HOST: OnceCell<(Running, tempfile::TempDir)> = OnceCell::const_new();
    let made = HOST.get_or_init(|| async {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { page_size: 3, ..Settings::default() };
        (start(dir.path(), settings, pools().await).await, dir)
    });
    &made.await.0
}

/// A tenant of its own for each test, with a key that may call.
pub struct Tenant {
    pub app: Arc<gateway::App>,
    pub base: String,
    pub name: String,
    pub key: String,
    pub deploy_key: String,
}

pub async fn tenant() -> Tenant {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let host = running().await;
    let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
    tenant_at(host, &name)
}

pub fn tenant_at(host: &Running, name: &str) -> Tenant {
    let made = host.app.registry().create_tenant(&host_actor(), name).unwrap();
    Tenant {
        app: host.app.clone(),
        base: format!("http://{}", host.addr),
        name: name.to_owned(),
        key: made.call_key.expose().to_owned(),
        deploy_key: made.deploy_key.expose().to_owned(),
    }
}

impl Tenant {
    pub async fn deploy(&self, server: &str, boundary: Boundary, source: &str) {
        self.deploy_with(server, boundary, source, "").await;
    }

    /// The same, with more in its manifest.
    pub async fn deploy_with(&self, server: &str, boundary: Boundary, source: &str, more: &str) {
        let limits = Limits { cpu_ms: 1000, ..Limits::default() };
        let draft = self.draft_with(server, boundary, limits, source, more).await;
        let new = draft.deployment(self.app.registry(), &self.name, &self.deploy_key);
        self.app.registry().deploy(&host_actor(), new).unwrap();
    }

    /// What an author uploads, who has run it once to see what it shows.
    pub async fn draft(&self, server: &str, boundary: Boundary, limits: Limits, source: &str) -> Draft {
        self.draft_with(server, boundary, limits, source, "").await
    }

    pub async fn draft_with(
        &self,
        server: &str,
        boundary: Boundary,
        limits: Limits,
        source: &str,
        more: &str,
    ) -> Draft {
        let permit = policy::permit(&Ask { limits, boundary, jit: false }, &Allowance::default()).unwrap();
        let more =
            format!("{more}\nboundary = \"{}\"\n[limits]\ncpu_ms = {}", boundary.as_str(), permit.limits().cpu_ms);
        let trial = sandbox::Deployment {
            tenant: self.name.clone(),
            server: server.to_owned(),
            id: format!("trial of {}/{server}", self.name),
            program: sandbox::Program::Module {
                source: bytes::Bytes::copy_from_slice(source.as_bytes()),
                file_name: "server.js".to_owned(),
            },
            permit,
            shows: sandbox::Shows::default(),
        };
        let pool = self.app.pool("isolate").unwrap();
        let surface = pool.seed(&Arc::new(trial)).await.unwrap().surface().get().to_owned();
        pool.release(&format!("trial of {}/{server}", self.name));
        signed::draft(self.app.registry(), &self.name, server, source, &more, &surface)
    }

    pub fn key_with(&self, scope: Scope) -> String {
        let new = NewKey {
            tenant: Some(self.name.clone()),
            role: Role::Call,
            name: "scoped".to_owned(),
            scope,
            quota: Default::default(),
            expires_at: None,
        };
        self.app.registry().create_key(&host_actor(), new).unwrap().1.expose().to_owned()
    }

    /// Revokes what `key_with` made last.
    pub fn revoke(&self) {
        let registry = self.app.registry();
        let made = registry.keys(Some(&self.name), None, 1, |key| key.name == "scoped").unwrap().unwrap().remove(0);
        registry.revoke_key(&host_actor(), Some(&self.name), &made.id).unwrap();
    }

    pub fn at(&self, server: &str) -> Client {
        self.client(&format!("{}/{}/{server}/mcp", self.base, self.name))
    }

    pub fn everything(&self) -> Client {
        self.client(&format!("{}/{}/mcp", self.base, self.name))
    }

    fn client(&self, url: &str) -> Client {
        let mut client = Client { url: url.to_owned(), headers: HeaderMap::new(), http: reqwest_client() };
        client.set("authorization", &format!("Bearer {}", self.key));
        client.set("accept", "application/json, text/event-stream");
        client
    }
}

fn reqwest_client() -> reqwest::Client {
    // The tests speak plain HTTP; the client wants to know a provider all the same. Only the first is taken.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap()
}

#[derive(Clone)]
pub struct Client {
    pub url: String,
    pub headers: HeaderMap,
    pub http: reqwest::Client,
}

/// What came back.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub headers: HeaderMap,
    /// Messages: one, or those of a stream.
    pub messages: Vec<Value>,
}

impl Got {
    /// The last message.
    pub fn last(&self) -> &Value {
        self.messages.last().unwrap_or(&Value::Null)
    }

    #[track_caller]
    pub fn result(&self) -> &Value {
        let last = self.last();
        assert!(last.get("result").is_some(), "no result: {self:?}");
        &last["result"]
    }

    #[track_caller]
    pub fn error(&self) -> (u16, i64) {
        (self.status, self.last()["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {self:?}")))
    }
}

impl Client {
    pub fn set(&mut self, name: &str, value: &str) {
        self.headers.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }

    pub fn unset(&mut self, name: &str) {
        self.headers.remove(name);
    }

    pub async fn send(&self, body: impl Into<reqwest::Body>) -> Got {
        let sent = self.http.post(&self.url).headers(self.headers.clone()).header("content-type", "application/json");
        got(sent.body(body).send().await.unwrap()).await
    }

    pub async fn json(&self, body: Value) -> Got {
        self.send(body.to_string()).await
    }

    /// A modern request, with the headers and the meta it needs.
    pub async fn modern(&self, method: &str, params: Value) -> Got {
        self.modern_with(method, params, json!({})).await
    }

    pub async fn modern_with(&self, method: &str, mut params: Value, meta: Value) -> Got {
        let mut full = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for (key, value) in meta.as_object().unwrap() {
            full[key] = value.clone();
        }
        params["_meta"] = full;
        let mut client = self.clone();
        client.set("mcp-protocol-version", MODERN);
        client.set("mcp-method", method);
        if let Some(name) = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str) {
            client.set("mcp-name", name);
        }
        client.json(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await
    }

    /// Opens a stream that hears when tools change; it is there when this returns.
    pub async fn listen(&self) -> reqwest::Response {
        let mut client = self.clone();
        client.set("mcp-protocol-version", MODERN);
        client.set("mcp-method", "subscriptions/listen");
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {} });
        let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": "s1", "method": "subscriptions/listen", "params": params });
        let sent = self.http.post(&self.url).headers(client.headers).header("content-type", "application/json");
        sent.body(body.to_string()).send().await.unwrap()
    }

    pub async fn legacy(&self, method: &str, params: Value) -> Got {
        self.json(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await
    }

    /// Initializes; from then on the client sends its session.
    pub async fn begin(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": "t", "version": "1" } });
        let got = self.legacy("initialize", params).await;
        assert_eq!(got.status, 200, "{got:?}");
        let session = got.headers["mcp-session-id"].to_str().unwrap().to_owned();
        self.set("mcp-session-id", &session);
        let version = got.result()["protocolVersion"].as_str().unwrap().to_owned();
        self.set("mcp-protocol-version", &version);
        let ready = self.json(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert_eq!(ready.status, 202);
        got.result().clone()
    }
}

pub async fn got(response: reqwest::Response) -> Got {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let is_stream = headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let text = response.text().await.unwrap();
    let messages = if is_stream {
        text.split("\n\n").filter_map(|event| serde_json::from_str(data(event)?).ok()).collect()
    } else {
        serde_json::from_str(&text).into_iter().collect()
    };
    Got { status, headers, messages }
}

pub fn data(event: &str) -> Option<&str> {
    event.lines().find_map(|line| line.strip_prefix("data: "))
}

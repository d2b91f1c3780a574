//! A whole gateway on a data directory of its own, with a wall that only pretends.
#![allow(dead_code, reason = "no test file uses all of it")]

#[path = "../signed/mod.rs"]
pub mod signed;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::response::Response;
use gateway::observe::Traces;
use gateway::{App, Parts, Reloader, Settings};
use http_body_util::BodyExt;
use registry::{Actor, Deployment, Key, MasterKey, NewKey, Quota, Registry, Role, Scope, Token};
use sandbox::{Code, Compartment, Failure, Growth, Pool, PoolSettings, Seed, Wall};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tower::ServiceExt;

pub const SURFACE: &str = r#"{"name":"prices","tools":[{"name":"double","description":"Doubles a price.","inputSchema":{"type":"object"}},{"name":"halve","inputSchema":{"type":"object"}}],"resources":[],"resourceTemplates":[],"prompts":[]}"#;

/// Long enough for a busy machine, and an end for a test that hangs.
pub async fn in_time<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), test).await.expect("the test takes too long")
}

/// A wall that shows a fixed surface and counts what it is asked for.
#[derive(Default)]
pub struct FakeWall {
    planted: AtomicUsize,
    planting: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl FakeWall {
    /// How often it was asked for anything at all.
    pub fn asked(&self) -> usize {
        self.planted.load(Ordering::SeqCst)
    }

    /// How many deployments it initialised at the same time, at most.
    pub fn most_at_once(&self) -> usize {
        self.most_at_once.load(Ordering::SeqCst)
    }
}

impl Wall for FakeWall {
    fn name(&self) -> &'static str {
        "isolate"
    }

    fn plant(&self, deployment: Arc<sandbox::Deployment>) -> sandbox::Future<'_, Result<Arc<dyn Seed>, Failure>> {
        Box::pin(async move {
            self.planted.fetch_add(1, Ordering::SeqCst);
            let now = self.planting.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.planting.fetch_sub(1, Ordering::SeqCst);
            let sandbox::Program::Module { source, .. } = &deployment.program else {
                return Err(Failure::new(Code::InitFailed, "this wall runs modules only"));
            };
            let source = String::from_utf8_lossy(source).into_owned();
            match source.split_once(' ') {
                Some(("throw", message)) => Err(Failure::new(Code::InitFailed, message)),
                Some(("limit", message)) => Err(Failure::new(Code::InitLimit, message)),
                Some(("busy", message)) => Err(Failure::new(Code::Busy, message)),
                _ => Ok(Arc::new(FakeSeed(RawValue::from_string(SURFACE.to_owned()).unwrap())) as Arc<dyn Seed>),
            }
        })
    }
}

struct FakeSeed(Box<RawValue>);

impl Seed for FakeSeed {
    fn surface(&self) -> &RawValue {
        &self.0
    }

    fn grow(&self, _: Growth) -> sandbox::Future<'_, Result<Arc<dyn Compartment>, Failure>> {
        Box::pin(async { Err(Failure::new(Code::WallUnavailable, "nothing grows behind this wall")) })
    }

    fn alive(&self) -> bool {
        true
    }

    fn worn(&self) -> bool {
        false
    }
}

pub struct Stage {
    pub app: Arc<App>,
    pub wall: Arc<FakeWall>,
    pub registry: Registry,
    /// Who runs the host.
    pub operator: String,
    pub acme: TenantKeys,
    pub globex: TenantKeys,
    router: Router,
    _data: TempDir,
}

pub struct TenantKeys {
    pub admin: String,
    pub deploy: String,
    pub call: String,
}

/// What a client sees.
pub struct Seen {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}: not JSON: {}", self.status, self.text()))
    }

    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("no error: {}", self.text())).to_owned()
    }

    /// Status and body, without what differs from run to run.
    pub fn shown(&self) -> String {
        let body = match self.body.is_empty() {
            true => String::new(),
            false => format!(" {}", serde_json::to_string_pretty(&redact(self.json())).unwrap()),
        };
        format!("{}{body}", self.status.as_u16())
    }
}

fn redact(value: Value) -> Value {
    const CHANGING: &[&str] = &[
        "id",
        "deployment",
        "created_at",
        "activated_at",
        "created_by",
        "lock_digest",
        "expires_at",
        "revoked_at",
        "uptime_s",
        "hash",
        "next",
        "time",
        "version",
    ];
    match value {
        Value::Object(fields) => {
            let hidden = |name: &str, value: &Value| !value.is_null() && CHANGING.contains(&name);
            let fields = fields.into_iter().map(|(name, value)| match hidden(&name, &value) {
                true => (name.clone(), Value::String(format!("[{name}]"))),
                false => (name, redact(value)),
            });
            Value::Object(fields.collect())
        }
        Value::Array(entries) => Value::Array(entries.into_iter().map(redact).collect()),
        Value::String(text) => match text.split_once('_').and_then(|(bh, rest)| Some((bh, rest.split_once('_')?))) {
            Some(("bh", (role, secret))) if secret.len() == 43 => Value::String(format!("bh_{role}_[secret]")),
            _ => Value::String(text),
        },
        other => other,
    }
}

impl Stage {
    /// Two tenants, `acme` and `globex`; the first has the servers `prices` and `stock`, the second has `vault`.
    pub async fn new() -> Stage {
        Stage::with(Settings::default(), None).await
    }

    pub async fn with(mut settings: Settings, reloader: Option<Reloader>) -> Stage {
        settings.auth.public_url.get_or_insert("http://127.0.0.1:8470".to_owned());
        let data = tempfile::tempdir().unwrap();
        let registry = Registry::open(data.path()).unwrap();
        let master = MasterKey::ensure_file(&data.path().join("master.key")).unwrap();
        registry.unlock(master).unwrap();
        let operator = std::fs::read_to_string(data.path().join("operator.key")).unwrap().trim().to_owned();
        let wall = Arc::new(FakeWall::default());
        // The pool lets everything through, so that what holds back is the gateway.
        let settings_of_pool = PoolSettings { plants: 64, plants_per_tenant: 64, ..PoolSettings::default() };
        let pool = Arc::new(Pool::new(wall.clone(), settings_of_pool));
        let parts = Parts {
            registry: registry.clone(),
            pools: HashMap::from([("isolate".to_owned(), pool)]),
            settings,
            reloader,
            traces: Traces::off(),
            egress: None,
            authority: None,
            master_key: None,
            dev: true,
        };
        let app = gateway::app(parts).unwrap();
        let tenant = |name: &str| {
            let made = registry.create_tenant(&host(), name).unwrap();
            let [admin, deploy, call] =
                [made.admin_key, made.deploy_key, made.call_key].map(|key| key.expose().to_owned());
            TenantKeys { admin, deploy, call }
        };
        let (acme, globex) = (tenant("acme"), tenant("globex"));
        let router = gateway::router(app.clone());
        let stage = Stage { app, wall, registry, operator, acme, globex, router, _data: data };
        for (tenant, server) in [("acme", "prices"), ("acme", "stock"), ("globex", "vault")] {
            stage.deploy(tenant, server, "export default {}");
        }
        stage
    }

    /// Puts a deployment into the registry without asking the wall.
    pub fn deploy(&self, tenant: &str, server: &str, source: &str) -> Arc<Deployment> {
        let draft = signed::draft(&self.registry, tenant, server, source, "", SURFACE);
        let new = draft.deployment(&self.registry, tenant, &self.operator);
        self.registry.deploy(&host(), new).unwrap()
    }

    /// What a tenant's author uploads.
    pub fn draft(&self, server: &str, source: &str, more: &str) -> signed::Draft {
        signed::draft(&self.registry, "acme", server, source, more, SURFACE)
    }

    /// Uploads it with this key.
    pub async fn upload(&self, key: &str, draft: &signed::Draft) -> Seen {
        let path = format!("/admin/v1/tenants/acme/servers/{}/deployments", draft.lock.server);
        self.post(key, &path, draft.order(&self.registry, key)).await
    }

    /// Makes a key without asking the API.
    pub fn key(&self, tenant: Option<&str>, role: Role, scope: Scope, expires_at: Option<u64>) -> (Key, Token) {
        let new = NewKey {
            tenant: tenant.map(str::to_owned),
            role,
            name: "of a test".to_owned(),
            scope,
            quota: Quota::default(),
            expires_at,
        };
        self.registry.create_key(&host(), new).unwrap()
    }

    /// The response with its body still open.
    pub async fn open(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> Response {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        request = request.header(header::HOST, "127.0.0.1");
        if !key.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let body = match body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        self.send(request.body(body).unwrap()).await
    }

    pub async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// The whole response.
    pub async fn ask(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> Seen {
        whole(self.open(key, method, path, body).await).await
    }

    pub async fn get(&self, key: &str, path: &str) -> Seen {
        self.ask(key, "GET", path, None).await
    }

    pub async fn post(&self, key: &str, path: &str, body: Value) -> Seen {
        self.ask(key, "POST", path, Some(body)).await
    }
}

pub async fn whole(response: Response) -> Seen {
    let (parts, body) = response.into_parts();
    let body = tokio::time::timeout(Duration::from_secs(30), body.collect()).await.expect("the body does not end");
    Seen { status: parts.status, headers: parts.headers, body: body.unwrap().to_bytes() }
}

pub fn host() -> Actor {
    Actor("host".to_owned())
}

pub fn servers(names: &[&str]) -> Scope {
    Scope { servers: Some(names.iter().map(|name| (*name).to_owned()).collect()), tools: None }
}

//! A small provider on loopback: people sign in on a page, tokens are made, rotated and revoked. It is strict where a real one
//! is, and it counts what it is asked.
#![allow(dead_code)]

mod page;
mod token;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// How it behaves.
#[derive(Clone)]
pub struct Settings {
    pub client_id: String,
    /// None: a public client.
    pub client_secret: Option<String>,
    /// Exactly these are sent back to. Empty: any.
    pub redirect_uris: Vec<String>,
    /// None: tokens live for ever.
    pub life: Option<Duration>,
    /// A refresh token serves once.
    pub rotate: bool,
    /// Answers are forms, not JSON.
    pub forms: bool,
    /// The token endpoint thinks so long.
    pub delay: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client_id: "bulkhead".into(),
            client_secret: Some("client secret: 100% & more".into()),
            redirect_uris: Vec::new(),
            life: Some(Duration::from_secs(3600)),
            rotate: true,
            forms: false,
            delay: Duration::ZERO,
        }
    }
}

#[derive(Clone)]
struct Code {
    user: String,
    challenge: String,
    redirect_uri: String,
    scope: String,
    /// What was made of it. A second use ends that, too.
    family: u64,
    used: bool,
}

/// All tokens that come of one sign-in.
#[derive(Clone, Default)]
struct Family {
    user: String,
    scope: String,
    refresh: String,
    access: Vec<(String, Option<Instant>)>,
    revoked: bool,
}

#[derive(Default)]
struct State {
    codes: HashMap<String, Code>,
    families: BTreeMap<u64, Family>,
    /// Refresh tokens that were exchanged, and whose they were.
    spent: HashMap<String, u64>,
    /// How often each grant was asked for.
    asked: HashMap<String, usize>,
    made: u64,
    down: bool,
}

#[derive(Clone)]
pub struct Running {
    pub address: SocketAddr,
    settings: Arc<Settings>,
    state: Arc<Mutex<State>>,
}

/// Serves until the runtime ends. Port 0 is any free one.
pub async fn start(port: u16, settings: Settings) -> Running {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let running = Running { address, settings: Arc::new(settings), state: Arc::default() };
    let routes = Router::new()
        .route("/authorize", get(page::show).post(page::submit))
        .route("/token", post(token::token))
        .route("/revoke", post(token::revoke))
        .route("/whoami", get(whoami))
        .with_state(running.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    running
}

impl Running {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How often tokens were asked for by this grant, or `revoke`.
    pub fn asked(&self, grant: &str) -> usize {
        self.state().asked.get(grant).copied().unwrap_or_default()
    }

    /// From now on the token endpoint only says 503.
    pub fn set_down(&self, down: bool) {
        self.state().down = down;
    }

    /// The user changes their mind, at the provider.
    pub fn forget(&self, user: &str) {
        self.state()
            .families
            .values_mut()
            .filter(|family| family.user == user)
            .for_each(|family| family.revoked = true);
    }

    /// Whose this access token is, if it is good.
    pub fn owner(&self, access: &str) -> Option<String> {
        let state = self.state();
        let good = |family: &&Family| {
            let alive = |end: &Option<Instant>| end.is_none_or(|end| Instant::now() < end);
            !family.revoked && family.access.iter().any(|(token, end)| token == access && alive(end))
        };
        state.families.values().find(good).map(|family| family.user.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// An upstream for tests: says who the token is of.
async fn whoami(axum::extract::State(running): axum::extract::State<Running>, headers: HeaderMap) -> Response {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer "));
    match token.and_then(|token| running.owner(token)) {
        Some(user) => json(StatusCode::OK, serde_json::json!({ "user": user })),
        None => json(StatusCode::UNAUTHORIZED, serde_json::json!({ "error": "invalid_token" })),
    }
}

fn json(status: StatusCode, value: serde_json::Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], value.to_string())
        .into_response()
}

fn random(prefix: &str) -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).unwrap();
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))
}

fn pairs(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

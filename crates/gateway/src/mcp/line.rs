//! The line between a running call and its client: log, progress, questions.

use super::credentials::Wanted;
use super::hub::What;
use super::offer::Offer;
use super::question;
use super::session::Session;
use super::tasks::{Taken, Task};
use crate::app::App;
use crate::auth::Caller;
use egress::Visit;
use egress::proxy::{self, Notice};
use sandbox::{Code, Failure, Future, Host, HostCall, HostRefusal, HostReply, LogLine, Stream};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{Notify, mpsc};

/// Severities as MCP has them, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    /// Of what a tool said, with the names that `console` has as well.
    pub fn of(text: &str) -> Level {
        match text {
            "debug" => Level::Debug,
            "notice" => Level::Notice,
            "warn" | "warning" => Level::Warning,
            "error" => Level::Error,
            "critical" => Level::Critical,
            "alert" => Level::Alert,
            "emergency" => Level::Emergency,
            _ => Level::Info,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Notice => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
            Level::Critical => "critical",
            Level::Alert => "alert",
            Level::Emergency => "emergency",
        }
    }
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Client {
    pub info: Value,
    pub capabilities: Value,
    pub version: &'static str,
}

impl Client {
    fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(Value::is_object)
    }

    /// Whether it shows questions of this mode, `form` or `url`. One that names no mode shows forms.
    pub fn elicits(&self, mode: &str) -> bool {
        let Some(Value::Object(modes)) = self.capabilities.get("elicitation") else { return false };
        let named = |mode: &str| modes.get(mode).is_some_and(Value::is_object);
        named(mode) || mode == "form" && !named("url")
    }
}

/// One call's way to its client.
pub struct Line {
    /// Messages for the call's own stream. What a call may say is bounded by its limits, so this needs no bound of its own.
    pub out: mpsc::UnboundedSender<Vec<u8>>,
    pub progress_token: Option<Box<RawValue>>,
    /// The least severe message the client wants; none when it wants none.
    pub log_level: Option<Level>,
    pub client: Client,
    pub asking: Asking,
}

/// How questions reach the client.
pub enum Asking {
    /// By requests on the call's stream.
    Session(Arc<Session>),
    /// By ending the call; the client makes it again with answers.
    Rounds(Rounds),
    /// The same until it has become a task; from then on the client asks what is wanted.
    Task(Arc<Task>),
    /// Not at all.
    Nobody,
}

/// Questions of a modern call.
#[derive(Default)]
pub struct Rounds {
    pub given: BTreeMap<String, Box<RawValue>>,
    wanted: Mutex<Vec<Asked>>,
    suspended: Notify,
    /// What the client was asked for and cannot do.
    missing: Mutex<Option<&'static str>>,
}

#[derive(Deserialize)]
pub struct Asked {
    pub key: String,
    pub method: String,
    pub params: Box<RawValue>,
}

const MOST_ASKS: usize = 16;
/// Lines of a call's log that tell of connections that were refused: they are the host's, so no limit of the call counts them.
const MOST_REFUSALS: usize = 100;

impl Asked {
    fn capability(&self) -> Option<&'static str> {
        match self.method.as_str() {
            "elicitation/create" => Some("elicitation"),
            "sampling/createMessage" => Some("sampling"),
            "roots/list" => Some("roots"),
            _ => None,
        }
    }
}

impl Rounds {
    pub fn new(given: BTreeMap<String, Box<RawValue>>) -> Rounds {
        Rounds { given, ..Rounds::default() }
    }

    /// Resolves when the call cannot go on without the client.
    pub async fn suspended(&self) -> Vec<Asked> {
        self.suspended.notified().await;
        std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn suspend(&self, wanted: Vec<Asked>) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        self.suspended.notify_one();
    }

    /// What a call that failed may have failed for.
    pub fn missing(&self) -> Option<&'static str> {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking {
    pub fn rounds(&self) -> Option<&Rounds> {
        match self {
            Asking::Rounds(rounds) => Some(rounds),
            Asking::Task(task) => Some(&task.rounds),
            Asking::Session(_) | Asking::Nobody => None,
        }
    }
}

/// The host's side of one call.
pub struct CallHost {
    pub app: Arc<App>,
    pub offer: Arc<Offer>,
    pub call: String,
    pub line: Line,
    pub visit: Option<Arc<Visit>>,
    /// What its server shows is not what was signed any more.
    pub strayed: OnceLock<Failure>,
    pub caller: Arc<Caller>,
    /// The provider that a request could not go on without.
    pub wanted: Arc<Wanted>,
    /// How the caller could be connected, where the client cannot be asked. Never for the code inside.
    pub advice: OnceLock<String>,
    /// Connections that were refused so far, if any was made.
    pub refusals: OnceLock<Arc<AtomicUsize>>,
}

impl CallHost {
    fn send(&self, message: &Value) {
        // A client that is gone needs no messages.
        let _ = self.line.out.send(super::to_json(message));
    }

    async fn ask(&self, meta: &str) -> Result<HostReply, HostRefusal> {
        #[derive(Deserialize)]
        struct Meta {
            asks: Vec<Asked>,
        }
        let Meta { asks } =
            serde_json::from_str(meta).map_err(|_| refusal("bad_ask", "the question cannot be read"))?;
        if asks.is_empty() || asks.len() > MOST_ASKS || asks.iter().any(|ask| ask.key.is_empty() || ask.key.len() > 128)
        {
            return Err(refusal("bad_ask", "ask 1 to 16 questions at once, with keys of 1 to 128 bytes"));
        }
        let mut missing = None;
        for ask in &asks {
            let capability = ask.capability().ok_or_else(|| refusal("bad_ask", "no such question"))?;
            if !self.line.client.can(capability) {
                missing = Some(capability);
            }
        }
        let origin = format!("{}/{}", self.offer.record.tenant, self.offer.record.server);
        let checked = asks.into_iter().map(|ask| question::checked(ask, &self.line.client, &origin));
        let checked = checked.collect::<Result<Vec<_>, _>>();
        // What no client is ever asked is refused as such, whatever this one can do.
        if checked.as_ref().is_err_and(|refused| refused.code == "bad_ask") {
            missing = None;
        }
        if let Some(capability) = missing {
            if let Some(rounds) = self.line.asking.rounds() {
                *rounds.missing.lock().unwrap_or_else(PoisonError::into_inner) = Some(capability);
            }
            return Err(refusal("client_cannot", &format!("the client does not have {capability}")));
        }
        let answers = self.put(checked?).await?;
        Ok(HostReply { meta: json!({ "answers": answers }).to_string(), body: bytes::Bytes::new() })
    }

    /// Puts questions to the client that may be asked.
    pub async fn put(&self, asks: Vec<Asked>) -> Result<Answers, HostRefusal> {
        match &self.line.asking {
            Asking::Rounds(rounds) => Ok(ask_in_rounds(rounds, asks).await),
            Asking::Task(task) => ask_in_task(task, asks).await,
            Asking::Session(session) => self.ask_in_session(session, asks).await,
            Asking::Nobody => Err(refusal("client_cannot", "the client has no way to be asked")),
        }
    }

    async fn ask_in_session(&self, session: &Arc<Session>, asks: Vec<Asked>) -> Result<Answers, HostRefusal> {
        let mut waiting = Vec::new();
        for ask in asks {
            let (id, answer) = session.expect_answer().ok_or_else(|| refusal("busy", "too many questions are open"))?;
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": ask.method, "params": ask.params }));
            waiting.push((ask.key, answer));
        }
        let mut answers = BTreeMap::new();
        for (key, answer) in waiting {
            let outcome = answer.await.map_err(|_| refusal("client_gone", "the client went away"))?;
            answers.insert(key, outcome.map_err(|message| refusal("client_error", &message))?);
        }
        Ok(answers)
    }

    fn notify(&self, meta: &str) -> Result<HostReply, HostRefusal> {
        #[derive(Deserialize)]
        struct Meta {
            what: String,
            uri: Option<String>,
            /// What the server shows by now, where it is not what it showed at first.
            shows: Option<String>,
        }
        let bad = || refusal("bad_notify", "there is no such notification");
        let meta: Meta = serde_json::from_str(meta).map_err(|_| bad())?;
        let what = match (meta.what.as_str(), meta.uri) {
            ("tools", _) => What::Tools,
            ("prompts", _) => What::Prompts,
            ("resources", _) => What::Resources,
            ("resource", Some(uri)) if uri.len() <= 4096 => What::Resource(uri),
            _ => return Err(bad()),
        };
        let shows = meta.shows.map(|text| RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned()));
        if let Some(Err(failure)) = shows.map(|surface| self.offer.sandboxed.shows.check(&surface)) {
            let message = failure.message.clone();
            // Whoever comes second has nothing to add.
            let _ = self.strayed.set(failure);
            return Err(refusal(Code::SurfaceDrift.as_str(), &message));
        }
        let record = &self.offer.record;
        self.app.hub.tell(&record.tenant, &record.server, what);
        Ok(HostReply { meta: "{}".to_owned(), body: bytes::Bytes::new() })
    }

    /// Asks at the door. For what needs a connection that is not there, the caller is asked to make it.
    async fn fetch(&self, visit: &Visit, call: HostCall) -> Result<HostReply, HostRefusal> {
        let HostCall { operation, meta, body } = call;
        let mut reply = visit.call(&operation, &meta, body.clone()).await;
        if let (Err(_), Some(provider)) = (&reply, self.wanted.take()) {
            self.connect(&provider).await?;
            reply = visit.call(&operation, &meta, body).await;
        }
        let reply = reply.map(|reply| HostReply { meta: reply.meta, body: reply.body });
        reply.map_err(|denied| refusal(denied.code.as_str(), &denied.message))
    }

    fn client(&self) -> HostReply {
        let client = &self.line.client;
        let meta = json!({
            "name": client.info.get("name"),
            "version": client.info.get("version"),
            "capabilities": client.capabilities,
            "protocolVersion": client.version,
        });
        HostReply { meta: meta.to_string(), body: bytes::Bytes::new() }
    }
}

impl Host for CallHost {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        Box::pin(async move {
            match call.operation.as_str() {
                "ask" => self.ask(&call.meta).await,
                "notify" => self.notify(&call.meta),
                "client" => Ok(self.client()),
                operation => match self.visit.as_ref().filter(|_| Visit::knows(operation)) {
                    Some(visit) => self.fetch(visit, call).await,
                    None => {
                        self.app.metrics.egress_denied();
                        Err(refusal("egress_denied", "no rule allows this: the server's `egress` names nothing"))
                    }
                },
            }
        })
    }

    fn log(&self, line: LogLine) {
        let level = Level::of(&line.level);
        let record = &self.offer.record;
        self.app.tool_log(&record.tenant, &record.server, &self.call, level.as_str(), &line.text);
        if self.line.log_level.is_some_and(|least| level >= least) {
            self.send(&json!({
                "jsonrpc": "2.0",
                "method": "notifications/message",
                "params": { "level": level.as_str(), "logger": record.server, "data": line.text },
            }));
        }
    }

    fn connection(&self, stream: Box<dyn Stream>) -> Future<'static, ()> {
        let Some(visit) = self.visit.clone() else { return Box::pin(async {}) };
        let (app, record, call) = (self.app.clone(), self.offer.record.clone(), self.call.clone());
        let told = self.refusals.get_or_init(Arc::default).clone();
        let notice: Notice = Arc::new(move |host, port, reason| {
            let text = match told.fetch_add(1, Ordering::Relaxed) {
                0..MOST_REFUSALS => format!("refused: {host}:{port}: {reason}"),
                MOST_REFUSALS => "refused: more, which are not listed".to_owned(),
                _ => return None,
            };
            app.tool_log(&record.tenant, &record.server, &call, "warning", &text);
            None
        });
        let options = proxy::Options { authority: self.app.authority.clone(), notice: Some(notice) };
        Box::pin(proxy::serve_connection(stream, visit, options))
    }

    fn hosts_reached(&self) -> Vec<String> {
        self.visit.as_ref().map(|visit| visit.hosts_reached()).unwrap_or_default()
    }

    fn credentials_used(&self) -> Vec<String> {
        self.visit.as_ref().map(|visit| visit.credentials()).unwrap_or_default()
    }

    fn secrets_masked(&self) -> u64 {
        self.visit.as_ref().map_or(0, |visit| visit.masked())
    }

    fn progress(&self, json: String) {
        let Some(token) = &self.line.progress_token else { return };
        let Ok(Value::Object(mut params)) = serde_json::from_str(&json) else { return };
        params.insert("progressToken".to_owned(), json!(token));
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
    }
}

pub type Answers = BTreeMap<String, Box<RawValue>>;

/// Gives what is known, or ends the call.
async fn ask_in_rounds(rounds: &Rounds, asks: Vec<Asked>) -> Answers {
    let (answers, wanted) = known(rounds, asks);
    if wanted.is_empty() {
        return answers;
    }
    rounds.suspend(wanted);
    std::future::pending().await
}

async fn ask_in_task(task: &Task, asks: Vec<Asked>) -> Result<Answers, HostRefusal> {
    let (mut answers, wanted) = known(&task.rounds, asks);
    if wanted.is_empty() {
        return Ok(answers);
    }
    match task.ask(wanted) {
        Taken::NotYet(wanted) => {
            task.rounds.suspend(wanted);
            std::future::pending().await
        }
        Taken::Waiting(waiting) => {
            for (key, answer) in waiting {
                let answer = answer.await.map_err(|_| refusal("client_gone", "the task is over"))?;
                answers.insert(key, answer);
            }
            Ok(answers)
        }
    }
}

/// What the client has answered before, and what it has not.
fn known(rounds: &Rounds, asks: Vec<Asked>) -> (Answers, Vec<Asked>) {
    let (given, wanted): (Vec<_>, Vec<_>) = asks.into_iter().partition(|ask| rounds.given.contains_key(&ask.key));
    let answers = given.into_iter().filter_map(|ask| Some((ask.key.clone(), rounds.given.get(&ask.key)?.clone())));
    (answers.collect(), wanted)
}

pub fn refusal(code: &str, message: &str) -> HostRefusal {
    HostRefusal { code: code.to_owned(), message: message.to_owned() }
}

//! Calls that outlast their request: the extension `io.modelcontextprotocol/tasks`.
//!
//! A tool says in its surface whether its calls may become tasks. Such a call is given a moment to answer, or to ask; after
//! that the client gets a task's name instead of an answer, and comes back for it. Tasks live in memory: a host that
//! restarts has none.

use super::error::RpcError;
use super::line::{Asked, Rounds};
use dashmap::DashMap;
use http::StatusCode;
use registry::rfc3339_now;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// How long a call may take before it becomes a task: longer than a compartment takes to start.
pub const PATIENCE: Duration = Duration::from_millis(400);
/// How long a task can be asked for, from its beginning.
const LIFETIME: Duration = Duration::from_secs(600);
const POLL_MS: u64 = 500;
const MOST_PER_TENANT: usize = 200;
const MOST_BYTES_PER_TENANT: usize = 32 << 20;

pub struct Task {
    pub id: String,
    tenant: String,
    server: Option<String>,
    owner: String,
    created_at: String,
    expires: Instant,
    /// Answers of the rounds before, and the way to ask as long as this is no task yet.
    pub rounds: Rounds,
    inner: Mutex<Inner>,
}

struct Inner {
    begun: bool,
    updated_at: String,
    status: Status,
    waiting: BTreeMap<String, Waiting>,
    running: Option<AbortHandle>,
}

struct Waiting {
    asked: Asked,
    answer: oneshot::Sender<Box<RawValue>>,
}

enum Status {
    Working,
    Completed(Box<RawValue>),
    Failed(Value),
    Cancelled,
}

/// How a question was taken.
pub enum Taken {
    /// This is no task yet: ask by ending the call.
    NotYet(Vec<Asked>),
    /// The answers will come here, by key.
    Waiting(Vec<(String, oneshot::Receiver<Box<RawValue>>)>),
}

impl Task {
    /// From now on it goes on without its request.
    pub fn begin(&self, running: AbortHandle) {
        let mut inner = lock(&self.inner);
        inner.begun = true;
        inner.running = Some(running);
    }

    pub fn ask(&self, asks: Vec<Asked>) -> Taken {
        let mut inner = lock(&self.inner);
        if !inner.begun {
            return Taken::NotYet(asks);
        }
        inner.updated_at = rfc3339_now();
        let take = |asked: Asked| {
            let (answer, receiver) = oneshot::channel();
            let key = asked.key.clone();
            inner.waiting.insert(key.clone(), Waiting { asked, answer });
            (key, receiver)
        };
        Taken::Waiting(asks.into_iter().map(take).collect())
    }

    pub fn finish(&self, outcome: Result<Box<RawValue>, Value>) {
        let mut inner = lock(&self.inner);
        if matches!(inner.status, Status::Working) {
            inner.status = outcome.map_or_else(Status::Failed, Status::Completed);
            inner.updated_at = rfc3339_now();
        }
        inner.waiting.clear();
        inner.running = None;
    }

    /// `tasks/update`.
    pub fn answer(&self, responses: Map<String, Value>) -> Result<(), RpcError> {
        let mut inner = lock(&self.inner);
        for (key, response) in responses {
            if !response.is_object() {
                return Err(RpcError::invalid_params("each of `inputResponses` must be an object"));
            }
            let raw =
                serde_json::value::to_raw_value(&response).map_err(|error| RpcError::internal(error.to_string()))?;
            if let Some(waiting) = inner.waiting.remove(&key) {
                // A call that ended meanwhile needs no answer.
                let _ = waiting.answer.send(raw);
                inner.updated_at = rfc3339_now();
            }
        }
        Ok(())
    }

    /// `tasks/cancel`.
    pub fn cancel(&self) {
        let mut inner = lock(&self.inner);
        if matches!(inner.status, Status::Working) {
            inner.status = Status::Cancelled;
            inner.updated_at = rfc3339_now();
        }
        inner.waiting.clear();
        if let Some(running) = inner.running.take() {
            running.abort();
        }
    }

    fn bytes(&self) -> usize {
        match &lock(&self.inner).status {
            Status::Completed(result) => result.get().len(),
            _ => 0,
        }
    }

    fn describe(&self, inner: &Inner, status: &str) -> Map<String, Value> {
        let fields = [
            ("taskId", json!(self.id)),
            ("status", json!(status)),
            ("createdAt", json!(self.created_at)),
            ("lastUpdatedAt", json!(inner.updated_at)),
            ("ttlMs", json!(LIFETIME.as_millis() as u64)),
            ("pollIntervalMs", json!(POLL_MS)),
        ];
        fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The answer to the request that became this task.
    pub fn created(&self) -> Vec<u8> {
        let mut result = self.describe(&lock(&self.inner), "working");
        result.insert("resultType".to_owned(), "task".into());
        super::to_json(&result)
    }

    /// `tasks/get`.
    pub fn detailed(&self) -> Vec<u8> {
        let inner = lock(&self.inner);
        let waiting = !inner.waiting.is_empty();
        let (status, extra) = match &inner.status {
            Status::Working if waiting => {
                let ask = |waiting: &Waiting| json!({ "method": waiting.asked.method, "params": waiting.asked.params });
                let asks: Map<_, _> = inner.waiting.iter().map(|(key, waiting)| (key.clone(), ask(waiting))).collect();
                ("input_required", Some(("inputRequests", Value::Object(asks))))
            }
            Status::Working => ("working", None),
            Status::Completed(result) => {
                let mut fields = self.describe(&inner, "completed");
                fields.insert("resultType".to_owned(), "complete".into());
                return with_raw(&fields, "result", result);
            }
            Status::Failed(error) => ("failed", Some(("error", error.clone()))),
            Status::Cancelled => ("cancelled", None),
        };
        let mut fields = self.describe(&inner, status);
        fields.insert("resultType".to_owned(), "complete".into());
        fields.extend(extra.map(|(key, value)| (key.to_owned(), value)));
        super::to_json(&fields)
    }
}

/// An object with one more value, which stays as it is written.
fn with_raw(fields: &Map<String, Value>, key: &str, raw: &RawValue) -> Vec<u8> {
    let mut out = super::to_json(fields);
    out.pop();
    out.extend_from_slice(format!(",\"{key}\":").as_bytes());
    out.extend_from_slice(raw.get().as_bytes());
    out.push(b'}');
    out
}

/// All tasks of the host.
#[derive(Default)]
pub struct Tasks {
    by_id: DashMap<String, Arc<Task>>,
}

impl Tasks {
    /// A call that may become a task. It can be found only once it did.
    pub fn candidate(&self, id: String, tenant: &str, server: Option<&str>, owner: &str, rounds: Rounds) -> Arc<Task> {
        let now = rfc3339_now();
        Arc::new(Task {
            id,
            tenant: tenant.to_owned(),
            server: server.map(str::to_owned),
            owner: owner.to_owned(),
            created_at: now.clone(),
            expires: Instant::now() + LIFETIME,
            rounds,
            inner: Mutex::new(Inner {
                begun: false,
                updated_at: now,
                status: Status::Working,
                waiting: BTreeMap::new(),
                running: None,
            }),
        })
    }

    /// Whether a tenant may have one more.
    pub fn has_room(&self, tenant: &str) -> bool {
        let held = self.by_id.iter().filter(|task| task.tenant == tenant);
        let (tasks, bytes) = held.fold((0, 0), |(tasks, bytes), task| (tasks + 1, bytes + task.bytes()));
        tasks < MOST_PER_TENANT && bytes < MOST_BYTES_PER_TENANT
    }

    pub fn keep(&self, task: &Arc<Task>) {
        self.by_id.insert(task.id.clone(), task.clone());
    }

    pub fn get(&self, id: &str, tenant: &str, server: Option<&str>, owner: &str) -> Result<Arc<Task>, RpcError> {
        let own = |task: &Arc<Task>| task.tenant == tenant && task.server.as_deref() == server && task.owner == owner;
        let task = self.by_id.get(id).map(|task| task.clone()).filter(own);
        task.ok_or_else(|| RpcError::invalid_params("there is no such task"))
    }

    pub fn sweep(&self) {
        let now = Instant::now();
        self.by_id.retain(|_, task| {
            let keep = task.expires > now;
            if !keep {
                task.cancel();
            }
            keep
        });
    }
}

/// The error for a client that does not know tasks.
pub fn not_declared() -> RpcError {
    RpcError::new(StatusCode::BAD_REQUEST, -32021, format!("the client did not declare the extension `{EXTENSION}`"))
        .with_data(json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A real wall, servers in Python, and a host that keeps what it hears.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod processes;

use bytes::Bytes;
use policy::{Allowance, Ask, Boundary, Limits, permit};
use process::{ProcessSettings, ProcessWall};
use sandbox::{
    Answer, Deployment, Failure, Future, Host, HostCall, HostRefusal, HostReply, LogLine, Operation, Pool,
    PoolSettings, Program, Request, Shows, Speaks,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// No test may hang longer than this, whatever happens.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn pool() -> Arc<Pool> {
    pool_with(ProcessSettings::default())
}

/// A pool that keeps nothing ready for single calls, so that what runs is what was called.
pub fn pool_with(settings: ProcessSettings) -> Arc<Pool> {
    let wall = ProcessWall::start(settings).unwrap_or_else(|error| panic!("the wall does not start: {error}"));
    let settings = PoolSettings { spares: 0, patience: PATIENCE, ..PoolSettings::default() };
    Arc::new(Pool::new(Arc::new(wall), settings))
}

/// A deployment in the making: `tests/servers/FILE` with these arguments.
#[derive(Clone)]
pub struct Server {
    pub tenant: &'static str,
    pub command: Vec<String>,
    pub limits: Limits,
    pub boundary: Boundary,
    pub shows: Shows,
    pub environment: BTreeMap<String, String>,
    pub network: bool,
    pub speaks: Speaks,
}

impl Server {
    pub fn new(file: &str, arguments: &[&str]) -> Server {
        let path = format!("/app/{file}");
        let command = ["python3", "-I", &path].into_iter().chain(arguments.iter().copied());
        Server {
            tenant: "acme",
            command: command.map(str::to_owned).collect(),
            // Generous, so that a busy machine fails no test; who tests a limit sets it.
            limits: Limits { cpu_ms: 20_000, init_cpu_ms: 20_000, init_time_ms: 60_000, ..Limits::default() },
            boundary: Boundary::Server,
            shows: Shows::default(),
            environment: BTreeMap::new(),
            network: false,
            speaks: Speaks::Stdio,
        }
    }

    /// The same in Node; none where this machine has none.
    pub fn node(file: &str, arguments: &[&str]) -> Option<Server> {
        if !["/usr/bin/node", "/usr/local/bin/node"].iter().any(|path| Path::new(path).exists()) {
            skips::skip("there is no node in /usr/bin or /usr/local/bin");
            return None;
        }
        let mut server = Server::new(file, arguments);
        server.command.splice(..2, ["node".to_owned()]);
        Some(server)
    }

    pub fn limit(mut self, change: impl FnOnce(&mut Limits)) -> Server {
        change(&mut self.limits);
        self
    }

    pub fn of(mut self, tenant: &'static str) -> Server {
        self.tenant = tenant;
        self
    }

    pub fn boundary(mut self, boundary: Boundary) -> Server {
        self.boundary = boundary;
        self
    }

    /// May show these tools and no others.
    pub fn shows(mut self, tools: &'static [&'static str]) -> Server {
        self.shows = Shows::only(move |surface| {
            let surface: Value = serde_json::from_str(surface.get()).map_err(|error| error.to_string())?;
            let names: Vec<_> = surface["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
            if names == tools { Ok(()) } else { Err(format!("it shows {names:?}")) }
        });
        self
    }

    pub fn deploy(self) -> Arc<Deployment> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let ask = Ask { limits: self.limits, boundary: self.boundary, ..Ask::default() };
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers");
        Arc::new(Deployment {
            tenant: self.tenant.to_owned(),
            server: "server".to_owned(),
            id: format!("deployment-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            program: Program::Command {
                files,
                command: self.command,
                environment: self.environment,
                network: self.network,
                speaks: self.speaks,
            },
            permit: permit(&ask, &Allowance::default()).expect("a permit"),
            shows: self.shows,
        })
    }
}

/// A host that answers questions with its name, and keeps what it hears.
#[derive(Default)]
pub struct Ear {
    pub name: &'static str,
    pub calls: Mutex<Vec<(String, Value)>>,
    pub log: Mutex<Vec<(String, String)>>,
    pub progress: Mutex<Vec<Value>>,
}

impl Ear {
    pub fn named(name: &'static str) -> Arc<Ear> {
        Arc::new(Ear { name, ..Ear::default() })
    }

    pub fn operations(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(operation, _)| operation.clone()).collect()
    }
}

impl Host for Ear {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        let meta: Value = serde_json::from_str(&call.meta).expect("what a wall says is JSON");
        self.calls.lock().unwrap().push((call.operation.clone(), meta.clone()));
        let reply = match call.operation.as_str() {
            "ask" => {
                let asks = meta["asks"].as_array().cloned().unwrap_or_default();
                let answers =
                    asks.iter().map(|ask| (ask["key"].as_str().unwrap().to_owned(), json!({ "from": self.name })));
                json!({ "answers": answers.collect::<serde_json::Map<_, _>>() })
            }
            _ => json!({}),
        };
        Box::pin(async move { Ok(HostReply { meta: reply.to_string(), body: Bytes::new() }) })
    }

    fn log(&self, line: LogLine) {
        self.log.lock().unwrap().push((line.level, line.text));
    }

    fn progress(&self, json: String) {
        self.progress.lock().unwrap().push(serde_json::from_str(&json).expect("JSON"));
    }
}

pub fn tool(name: &str, input: &Value) -> Request {
    Request { operation: Operation::Tool, name: name.to_owned(), input: input.to_string().into(), session: None }
}

pub async fn ask(pool: &Pool, server: &Arc<Deployment>, request: &Request, ear: &Arc<Ear>) -> Answer {
    let call = pool.call(server, request, ear.clone());
    tokio::time::timeout(PATIENCE, call).await.expect("a call is answered")
}

/// Calls the tool `run`, and gives its structured content.
pub async fn run(pool: &Pool, server: &Arc<Deployment>, input: Value) -> Result<Value, sandbox::Failure> {
    let answer = ask(pool, server, &tool("run", &input), &Ear::named("nobody")).await;
    answer.outcome.map(|bytes| value(&bytes))
}

pub fn value(result: &[u8]) -> Value {
    let mut result: Value = serde_json::from_slice(result).expect("JSON");
    result["structuredContent"].take()
}

/// Waits until no process is left below this one.
pub async fn until_nothing_is_left() {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !processes::below(std::process::id()).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.expect("a process is left");
}

/// How a call of a server that means harm fails. Nothing of it is left then.
pub async fn fails(server: Server) -> Failure {
    let (pool, deployment) = (pool(), server.deploy());
    let failure = run(&pool, &deployment, json!({})).await.expect_err("it means harm");
    drop((pool, deployment));
    until_nothing_is_left().await;
    failure
}

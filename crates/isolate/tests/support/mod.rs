//! A real wall for tests, with the program built in this tree.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod load;
pub mod processes;

use bytes::Bytes;
use isolate::{Carrier, IsolateSettings, IsolateWall};
use policy::{Allowance, Ask, Boundary, LimitName, Limits, permit};
use sandbox::{
    Answer, Code, Deployment, Host, LogLine, NoNetwork, Operation, Pool, PoolSettings, Program, Request, Wall,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// No test may hang longer than this, whatever happens.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Where `cargo` put the worker: beside the folder this test runs from.
pub fn carrier() -> Carrier {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("a test lies in target/PROFILE/deps");
    match Carrier::beside(folder) {
        Ok(carrier) => carrier,
        Err(error) => panic!("{error}; run `make test`"),
    }
}

pub async fn wall() -> Arc<IsolateWall> {
    wall_from(carrier()).await
}

pub async fn wall_from(carrier: Carrier) -> Arc<IsolateWall> {
    match IsolateWall::start(IsolateSettings::new(carrier)).await {
        Ok(wall) => Arc::new(wall),
        Err(error) => panic!("the wall does not start: {error}: {:?}", std::error::Error::source(&error)),
    }
}

pub fn pool_on(wall: Arc<dyn Wall>) -> Arc<Pool> {
    Arc::new(Pool::new(wall, PoolSettings::default()))
}

pub async fn pool() -> Arc<Pool> {
    pool_on(wall().await)
}

/// A deployment in the making.
#[derive(Clone)]
pub struct Server {
    pub source: String,
    pub limits: Limits,
    pub boundary: Boundary,
    pub jit: bool,
    pub tenant: String,
}

impl Server {
    pub fn new(source: &str) -> Server {
        Server {
            source: source.to_owned(),
            limits: Limits::default(),
            boundary: Boundary::Call,
            jit: false,
            tenant: "acme".to_owned(),
        }
    }

    pub fn limit(mut self, name: &str, value: u64) -> Server {
        self.limits.set(name.parse::<LimitName>().expect("a limit's name"), value);
        self
    }

    pub fn boundary(mut self, boundary: Boundary) -> Server {
        self.boundary = boundary;
        self
    }

    pub fn jit(mut self) -> Server {
        self.jit = true;
        self
    }

    pub fn tenant(mut self, tenant: &str) -> Server {
        self.tenant = tenant.to_owned();
        self
    }

    /// Every deployment of a test run is another one.
    pub fn deploy(self) -> Arc<Deployment> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let ask = Ask { limits: self.limits, boundary: self.boundary, jit: self.jit };
        Arc::new(Deployment {
            tenant: self.tenant,
            server: "server".to_owned(),
            id: format!("deployment-{number}"),
            program: Program::Module { source: Bytes::from(self.source), file_name: "server.js".to_owned() },
            permit: permit(&ask, &Allowance::default()).expect("a permit"),
            shows: sandbox::Shows::default(),
        })
    }
}

/// A host that keeps what a tool logs.
#[derive(Clone, Default)]
pub struct Kept(pub Arc<Mutex<Vec<LogLine>>>);

impl Kept {
    pub fn host(&self) -> Arc<dyn Host> {
        let kept = self.0.clone();
        Arc::new(NoNetwork(move |line: LogLine| kept.lock().expect("no panic under this lock").push(line)))
    }
}

pub fn tool(name: &str, input: &str) -> Request {
    in_session(name, input, None)
}

pub fn in_session(name: &str, input: &str, session: Option<&str>) -> Request {
    Request {
        operation: Operation::Tool,
        name: name.to_owned(),
        input: Bytes::copy_from_slice(input.as_bytes()),
        session: session.map(str::to_owned),
    }
}

pub async fn call(pool: &Pool, deployment: &Arc<Deployment>, request: &Request) -> Answer {
    let call = pool.call(deployment, request, Kept::default().host());
    tokio::time::timeout(PATIENCE, call).await.expect("no call outlives its limits")
}

/// Calls the tool `run` and gives its result as text, or the failure's code.
pub async fn run(pool: &Pool, deployment: &Arc<Deployment>, input: &str) -> Result<String, Code> {
    let answer = call(pool, deployment, &tool("run", input)).await;
    answer.outcome.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|failure| failure.code)
}

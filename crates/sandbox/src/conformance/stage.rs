//! What a case is given to work with.

use super::watched::Watched;
use super::{Behaviour, Outside, Subject};
use crate::{
    Answer, Code, Deployment, Future, Host, HostCall, HostRefusal, HostReply, LogLine, Operation, Pool, PoolSettings,
    Program, Request,
};
use bytes::Bytes;
use policy::{Allowance, Ask, Boundary, Limits, permit};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinHandle;

/// No case waits longer than this for anything, so that a hang is a failure with a name.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Stage {
    subject: Arc<Subject>,
    pub(super) wall: Arc<Watched>,
    pub(super) neighbour: Arc<News>,
}

/// How the neighbour fares.
#[derive(Default)]
pub(super) struct News {
    /// How many of its calls were served.
    pub(super) served: AtomicUsize,
    /// Set when it has stopped because one was not.
    pub(super) trouble: OnceLock<String>,
}

impl Stage {
    pub(super) fn new(subject: Arc<Subject>) -> Stage {
        let wall = Arc::new(Watched::new(subject.wall.clone(), subject.value));
        Stage { subject, wall, neighbour: Arc::default() }
    }

    pub(super) fn has(&self, capability: super::Capability) -> bool {
        self.subject.has(capability)
    }

    pub(super) fn outside(&self) -> Outside {
        self.subject.outside.expect("the case says that it needs it")
    }

    pub(super) fn pool(&self) -> Arc<Pool> {
        self.pool_with(|_| {})
    }

    /// A pool in which nobody runs out of patience, so that what is not answered at once is seen.
    pub(super) fn pool_with(&self, change: impl FnOnce(&mut PoolSettings)) -> Arc<Pool> {
        let mut settings = PoolSettings { patience: PATIENCE * 10, ..PoolSettings::default() };
        change(&mut settings);
        Arc::new(Pool::new(self.wall.clone(), settings))
    }

    pub(super) fn server(&self, behaviour: Behaviour) -> Server {
        Server {
            program: (self.subject.program)(behaviour),
            limits: Limits::default(),
            boundary: Boundary::Call,
            tenant: "subject".to_owned(),
        }
    }

    /// Does something that takes what the neighbour stands on, and waits until it stands again: more blows than one
    /// within a call are more than a pool promises to survive.
    pub(super) async fn strike(&self, blow: fn()) {
        let News { served, trouble } = &*self.neighbour;
        let before = served.load(Ordering::SeqCst);
        blow();
        let again = || served.load(Ordering::SeqCst) > before + 1;
        until("the neighbour is served again", || again() || trouble.get().is_some()).await;
        assert_eq!(trouble.get(), None);
    }

    /// Waits until nobody holds a seed or a compartment of this stage any more.
    pub(super) async fn until_empty(&self) {
        until("everything is let go", || self.wall.held() == (0, 0)).await;
    }
}

/// A deployment in the making.
#[derive(Clone)]
pub(super) struct Server {
    program: Program,
    limits: Limits,
    boundary: Boundary,
    tenant: String,
}

impl Server {
    pub(super) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Server {
        change(&mut self.limits);
        self
    }

    pub(super) fn boundary(mut self, boundary: Boundary) -> Server {
        self.boundary = boundary;
        self
    }

    pub(super) fn tenant(mut self, tenant: &str) -> Server {
        self.tenant = tenant.to_owned();
        self
    }

    pub(super) fn program(mut self, program: Program) -> Server {
        self.program = program;
        self
    }

    /// Every deployment is another one, also of the same server.
    pub(super) fn deploy(&self) -> Arc<Deployment> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let ask = Ask { limits: self.limits.clone(), boundary: self.boundary, jit: false };
        Arc::new(Deployment {
            tenant: self.tenant.clone(),
            server: "server".to_owned(),
            id: format!("conformance-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            program: self.program.clone(),
            permit: permit(&ask, &Allowance::default()).expect("the suite asks for what is allowed"),
            shows: crate::Shows::default(),
        })
    }
}

/// A host that refuses every call and counts what it heard.
#[derive(Default)]
pub(super) struct Ear {
    pub(super) calls: AtomicU64,
    pub(super) log_bytes: AtomicU64,
}

impl Host for Ear {
    fn call(&self, _call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let refusal = HostRefusal { code: "egress_denied".to_owned(), message: "there is no way out".to_owned() };
        Box::pin(async move { Err(refusal) })
    }

    fn log(&self, line: LogLine) {
        self.log_bytes.fetch_add(line.text.len() as u64, Ordering::SeqCst);
    }
}

pub(super) fn request(input: &str) -> Request {
    Request {
        operation: Operation::Tool,
        name: "run".to_owned(),
        input: Bytes::copy_from_slice(input.as_bytes()),
        session: None,
    }
}

pub(super) fn in_session(session: &str) -> Request {
    Request { session: Some(session.to_owned()), ..request("{}") }
}

/// What `Behaviour::Obey` is told.
pub(super) fn order(what: &str) -> Request {
    request(&format!(r#"{{"do":"{what}"}}"#))
}

pub(super) async fn ask(pool: &Pool, deployment: &Arc<Deployment>, request: &Request, host: Arc<dyn Host>) -> Answer {
    let call = pool.call(deployment, request, host);
    tokio::time::timeout(PATIENCE, call).await.expect("a call is answered")
}

/// Calls, and gives the result as text or the failure's code.
pub(super) async fn call(pool: &Pool, deployment: &Arc<Deployment>, request: &Request) -> Result<String, Code> {
    let answer = ask(pool, deployment, request, Arc::new(Ear::default())).await;
    answer.outcome.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|failure| {
        assert_ne!(failure.code, Code::WallUnavailable, "no case is about a wall that is not there: {failure}");
        failure.code
    })
}

/// Calls without input.
pub(super) async fn run(pool: &Pool, deployment: &Arc<Deployment>) -> Result<String, Code> {
    call(pool, deployment, &request("{}")).await
}

/// Calls in a task of its own.
pub(super) fn spawn(
    pool: &Arc<Pool>,
    deployment: &Arc<Deployment>,
    request: Request,
) -> JoinHandle<Result<String, Code>> {
    let (pool, deployment) = (pool.clone(), deployment.clone());
    tokio::spawn(async move { call(&pool, &deployment, &request).await })
}

/// Goes away from a call, and waits until it is really gone.
pub(super) async fn cancel<T: std::fmt::Debug>(caller: JoinHandle<T>) {
    caller.abort();
    let ended = caller.await;
    assert!(ended.as_ref().is_err_and(|error| error.is_cancelled()), "the call was still under way: {ended:?}");
}

pub(super) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}

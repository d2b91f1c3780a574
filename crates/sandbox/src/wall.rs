//! The interface of walls.

use crate::{Code, Failure, Host, Receipt, Usage};
use bytes::Bytes;
use policy::Permit;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub type Future<'a, T> = Pin<Box<dyn std::future::Future<Output = T> + Send + 'a>>;

/// One version of a server with the right to run it.
#[derive(Debug)]
pub struct Deployment {
    pub tenant: String,
    pub server: String,
    /// Names this version for ever; two deployments with one id are the same code with the same permit.
    pub id: String,
    pub program: Program,
    pub permit: Permit,
    /// What its code may show.
    pub shows: Shows,
}

/// What a deployment runs. A wall takes the kind it was made for and refuses the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// One module of JavaScript.
    Module {
        source: Bytes,
        /// What stack traces call it.
        file_name: String,
    },
    /// A program that speaks MCP.
    Command {
        /// The folder it sees, read-only, as `/app`.
        files: PathBuf,
        /// The program and its arguments, as seen from inside.
        command: Vec<String>,
        environment: BTreeMap<String, String>,
        /// Whether it has a proxy, whose connections go to [`Host::connection`]. Without one it has no network at all.
        network: bool,
        speaks: Speaks,
    },
}

/// How a program speaks MCP. Ports are of its own loopback, which nobody but its host reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Speaks {
    /// Over its standard input and output.
    #[default]
    Stdio,
    /// Streamable HTTP.
    Http { port: u16, path: String },
    /// HTTP with one stream of events for all answers, as it was before 2025-03-26.
    Sse { port: u16, path: String },
}

type Accepts = dyn Fn(&RawValue) -> Result<(), String> + Send + Sync;

/// What the code of a deployment may show. It is asked whenever the code was initialised, and code that shows anything
/// else is not used.
#[derive(Clone, Default)]
pub struct Shows(Option<Arc<Accepts>>);

impl Shows {
    /// What this function accepts; it says why not.
    pub fn only(accepts: impl Fn(&RawValue) -> Result<(), String> + Send + Sync + 'static) -> Shows {
        Shows(Some(Arc::new(accepts)))
    }

    /// Whether the code may show this. The pool asks for every seed; a wall asks for whatever it starts beside its seed.
    pub fn check(&self, surface: &RawValue) -> Result<(), Failure> {
        let Some(accepts) = &self.0 else { return Ok(()) };
        accepts(surface).map_err(|why| Failure::new(Code::SurfaceDrift, why))
    }
}

impl fmt::Debug for Shows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "what was agreed" } else { "anything" })
    }
}

/// What a caller wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Tool,
    Resource,
    Prompt,
    /// Suggestions for an argument of a prompt or a variable of a resource's address.
    Complete,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Request {
    pub operation: Operation,
    /// Tool or prompt name, or resource address; empty for a completion.
    pub name: String,
    /// JSON. For a completion the params of `completion/complete`: `ref`, `argument`, `context`.
    pub input: Bytes,
    /// The session it belongs to; calls without one never share a session's compartment.
    pub session: Option<String>,
}

/// What a caller gets.
#[derive(Debug)]
pub struct Answer {
    /// JSON text, or why there is none.
    pub outcome: Result<Bytes, Failure>,
    pub receipt: Receipt,
}

/// What a compartment is grown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// One call, which waits for it, then it is gone.
    OneCall,
    /// The same for a call to come: it may take its time to be ready for it.
    Spare,
    /// Many calls, several at a time.
    ManyCalls,
}

/// A kind of isolation.
pub trait Wall: Send + Sync {
    fn name(&self) -> &'static str;

    /// How much memory compartments may take together, in MiB. The pool lets no more calls in than that is enough for, each
    /// counted with its limit. `None`: the wall sees to it by itself.
    fn memory_mb(&self) -> Option<u64> {
        None
    }

    /// Initialises the deployment behind the wall, under its initialisation limits.
    fn plant(&self, deployment: Arc<Deployment>) -> Future<'_, Result<Arc<dyn Seed>, Failure>>;

    /// A tenant's share, relative to others', of what the wall itself divides between tenants.
    fn set_weight(&self, _tenant: &str, _weight: u32) {}
}

/// An initialised deployment, from which compartments grow.
pub trait Seed: Send + Sync {
    /// Tools, resources and prompts as the code itself shows them.
    fn surface(&self) -> &RawValue;

    fn grow(&self, growth: Growth) -> Future<'_, Result<Arc<dyn Compartment>, Failure>>;

    /// What it holds itself, in MiB, as long as it is there.
    fn memory_mb(&self) -> u64 {
        0
    }

    /// False once no compartment can grow from it any more.
    fn alive(&self) -> bool;

    /// True when it has served long enough and should be planted anew.
    fn worn(&self) -> bool;

    /// Looks at what it does while nothing grows from it, and ends it if it computes. The reason is told once.
    fn ended(&self) -> Option<Code> {
        None
    }
}

/// One running instance. Dropping the last handle kills it.
pub trait Compartment: Send + Sync {
    /// Serves one call. Cancelling the future kills a compartment grown for one call and aborts the call in others.
    fn call<'a>(
        &'a self,
        request: &'a Request,
        host: Arc<dyn Host>,
        within: Duration,
    ) -> Future<'a, (Result<Bytes, Failure>, Usage)>;

    fn alive(&self) -> bool;

    /// Why the host ended it while no call was in it: nobody else is told, and nobody twice. `None`: it did not.
    /// One that waits for its call is looked at by this, and ended if it computes.
    fn ended(&self) -> Option<Code> {
        None
    }

    /// CPU time so far, where the compartment is a process of its own for a single call. `None`: nobody knows.
    fn cpu_time(&self) -> Option<Duration> {
        None
    }

    /// What runs in it goes on, but behind everything that has not stepped back. Only for one grown for one call.
    fn step_back(&self) {}
}

//! Runs generated modules behind the real wall, with the real door to the network, against an API on loopback.

mod api;

pub use api::Request;

use api::{Api, HOST, Script};
use bytes::Bytes;
use egress::{BareStar, Dev, Door, Lookup, Pass, Resolve, Rules, Settings, Visit};
use isolate::{Carrier, IsolateSettings, IsolateWall};
use openapi::{Converted, Options, convert};
use policy::{Allowance, Ask, Boundary, LimitName, Limits, permit};
use sandbox::{
    Deployment, Future, Host, HostCall, HostRefusal, HostReply, LogLine, Operation, Pool, PoolSettings, Program, Shows,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::Runtime;

/// No test may hang longer than this, whatever happens.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Answer {
    pub requests: Vec<Request>,
    /// What the tool gave back, or `{ "failed": code }` where the call itself failed.
    pub result: Value,
}

impl Answer {
    /// The only request there was.
    pub fn request(&self) -> &Request {
        assert_eq!(self.requests.len(), 1, "{:?}", self.result);
        &self.requests[0]
    }

    pub fn wire(&self) -> String {
        self.request().wire()
    }

    pub fn text(&self) -> &str {
        self.result["content"][0]["text"].as_str().unwrap_or_default()
    }
}

pub struct Ran {
    pub converted: Converted,
    pub surface: Value,
    pub calls: Vec<Answer>,
    port: u16,
}

impl Ran {
    /// Each call's requests, and its result behind `=>`.
    pub fn told(&self) -> String {
        let call = |answer: &Answer| {
            let requests: Vec<String> = answer.requests.iter().map(Request::wire).collect();
            let result = answer.result.to_string().replace(&format!(":{}", self.port), ":PORT");
            requests
                .iter()
                .chain([&format!("=> {result}\n")])
                .map(|text| text.trim_end_matches('\n'))
                .collect::<Vec<_>>()
                .join("\n")
        };
        self.calls.iter().map(call).collect::<Vec<_>>().join("\n\n")
    }
}

/// Converts the files with `/v1` of the API as base, and makes the calls, each `{ tool, input, replies? }`.
pub fn run(files: &BTreeMap<String, Vec<u8>>, calls: Value) -> Ran {
    Run::new(files).calls(calls)
}

/// A run in the making.
pub struct Run<'a> {
    files: &'a BTreeMap<String, Vec<u8>>,
    options: Box<dyn FnOnce(String) -> Options + 'a>,
    limits: Limits,
    boundary: Boundary,
    tool: Option<&'a str>,
}

impl<'a> Run<'a> {
    pub fn new(files: &'a BTreeMap<String, Vec<u8>>) -> Run<'a> {
        let options = |base| Options { base_url: Some(base), ..Options::default() };
        let (limits, boundary) = (Limits::default(), Boundary::Call);
        Run { files, options: Box::new(options), limits, boundary, tool: None }
    }

    /// The function is given the API's own base URL.
    pub fn options(mut self, options: impl FnOnce(String) -> Options + 'a) -> Run<'a> {
        self.options = Box::new(options);
        self
    }

    /// The base has no path, so the rules name none either.
    pub fn whole_host(self) -> Run<'a> {
        self.options(|base| Options { base_url: base.strip_suffix("/v1").map(str::to_owned), ..Options::default() })
    }

    pub fn limit(mut self, name: &str, value: u64) -> Run<'a> {
        self.limits.set(name.parse::<LimitName>().unwrap(), value);
        self
    }

    /// All calls share one compartment, and the module has one more tool.
    pub fn shared(mut self, tool: &'a str) -> Run<'a> {
        (self.boundary, self.tool) = (Boundary::Server, Some(tool));
        self
    }

    fn source(&self, module: &str) -> Bytes {
        let Some(tool) = self.tool else { return Bytes::from(module.to_owned()) };
        let named = module.replace("\nexport default {", "\nconst server = {");
        Bytes::from(format!("{named}\nserver.tools.push({tool});\nexport default server;\n"))
    }

    pub fn calls(self, calls: Value) -> Ran {
        let (runtime, pool) = host();
        let ran = runtime.block_on(async { tokio::time::timeout(PATIENCE, self.all(pool, calls)).await });
        ran.expect("the calls take too long")
    }

    async fn all(mut self, pool: &Pool, calls: Value) -> Ran {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = format!("deployment-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let api = Api::start().await;
        let options = std::mem::replace(&mut self.options, Box::new(|_| Options::default()));
        let options = options(format!("http://{HOST}:{}/v1", api.port));
        let converted = convert(self.files, "api.yaml", &options).unwrap();
        let ask = Ask { limits: self.limits.clone(), boundary: self.boundary, jit: false };
        let source = self.source(&converted.module);
        let deployment = Arc::new(Deployment {
            tenant: "acme".to_owned(),
            server: converted.name.clone(),
            id: id.clone(),
            program: Program::Module { source, file_name: "server.js".to_owned() },
            permit: permit(&ask, &Allowance::default()).unwrap(),
            shows: Shows::default(),
        });
        let seed = pool.seed(&deployment).await.unwrap();
        let surface = serde_json::from_str(seed.surface().get()).unwrap();
        let (door, rules) = (door(api.port), rules(&converted));
        let mut answers = Vec::new();
        for call in calls.as_array().unwrap() {
            let replies = call["replies"].as_array().cloned().unwrap_or_default().into();
            *api.script.lock().unwrap() = Script { requests: Vec::new(), replies };
            let request = sandbox::Request {
                operation: Operation::Tool,
                name: call["tool"].as_str().unwrap().to_owned(),
                input: Bytes::from(call["input"].to_string()),
                session: None,
            };
            let pass = Pass::new("acme", id.as_str(), rules.clone());
            let answer = pool.call(&deployment, &request, Arc::new(Upstream(door.visit(pass)))).await;
            let result = match answer.outcome {
                Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
                Err(failure) => json!({ "failed": failure.code.as_str(), "message": failure.message }),
            };
            let requests = std::mem::take(&mut api.script.lock().unwrap().requests);
            answers.push(Answer { requests, result });
        }
        pool.release(&id);
        Ran { converted, surface, calls: answers, port: api.port }
    }
}

/// One for all tests of a process, because a wall takes a while to start. It ends with the process.
fn host() -> &'static (Runtime, Pool) {
    static HOST: LazyLock<(Runtime, Pool)> = LazyLock::new(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        // On a thread that stays, because processes may end with the thread that started them.
        let pool = runtime.spawn(async {
            let wall = IsolateWall::start(IsolateSettings::new(carrier())).await.unwrap();
            Pool::new(Arc::new(wall), PoolSettings::default())
        });
        let pool = runtime.block_on(pool).unwrap();
        (runtime, pool)
    });
    &HOST
}

/// Where `cargo` put the worker: beside the folder this test runs from.
fn carrier() -> Carrier {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    Carrier::beside(folder).unwrap_or_else(|error| panic!("{error}; run `make test`"))
}

struct Loopback;

impl Resolve for Loopback {
    fn resolve(&self, name: &str) -> Lookup {
        assert!(name.ends_with(".example"), "{name}");
        Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
    }
}

fn door(port: u16) -> Door<Dev> {
    Door::dev(vec![port], Settings { resolver: Arc::new(Loopback), ..Settings::default() }).unwrap()
}

/// Everything below the base URLs, as a deploy has it.
fn rules(converted: &Converted) -> Arc<Rules> {
    // A rule without a path has no slash at its end.
    let has_path = |base: &str| base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    let below = |base: &str| if has_path(base) { format!("{base}/") } else { base.to_owned() };
    let below: Vec<String> = converted.endpoints.iter().map(|endpoint| below(&endpoint.base_url)).collect();
    Arc::new(Rules::parse(below.iter().map(String::as_str), BareStar::Refused).unwrap())
}

/// A host that answers what belongs to `fetch`, and nothing else.
struct Upstream(Visit);

impl Host for Upstream {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        Box::pin(async move {
            match self.0.call(&call.operation, &call.meta, call.body).await {
                Ok(reply) => Ok(HostReply { meta: reply.meta, body: reply.body }),
                Err(denied) => Err(HostRefusal { code: denied.code.as_str().to_owned(), message: denied.message }),
            }
        })
    }

    fn log(&self, line: LogLine) {
        panic!("a module of ours logs nothing: {line:?}");
    }
}

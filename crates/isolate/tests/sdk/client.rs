//! The host that the test plays, with a client that answers, and that keeps what it is told.

use crate::support::{PATIENCE, Server};
use bytes::Bytes;
use sandbox::{Code, Failure};
use sandbox::{Deployment, Future, Host, HostCall, HostRefusal, HostReply, LogLine, Operation, Pool, Request};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

pub struct Client {
    /// What everybody fills in; nothing is a client that cannot be asked.
    pub content: Option<Value>,
    pub heard: Mutex<Vec<(String, Value)>>,
    pub said: Mutex<Vec<String>>,
}

impl Client {
    pub fn new(content: Value) -> Arc<Client> {
        Arc::new(Client { content: Some(content), heard: Mutex::default(), said: Mutex::default() })
    }

    pub fn silent() -> Arc<Client> {
        Arc::new(Client { content: None, heard: Mutex::default(), said: Mutex::default() })
    }

    /// Host calls, with what they were about.
    pub fn heard(&self) -> Vec<(String, Value)> {
        self.heard.lock().unwrap().clone()
    }

    /// Log lines and progress, in order.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    fn answer(&self, ask: &Value) -> Option<Value> {
        let content = self.content.as_ref()?;
        Some(match ask["method"].as_str()? {
            "elicitation/create" => json!({ "action": "accept", "content": content }),
            "sampling/createMessage" => {
                json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Paris" } })
            }
            _ => json!({ "roots": [{ "uri": "file:///r" }] }),
        })
    }
}

impl Host for Client {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        let meta: Value = serde_json::from_str(&call.meta).unwrap();
        let reply = match (call.operation.as_str(), &self.content) {
            ("ask", Some(_)) => {
                let answer = |ask: &Value| Some((ask["key"].as_str()?.to_owned(), self.answer(ask)?));
                let asks = meta["asks"].as_array().unwrap();
                Ok(json!({ "answers": asks.iter().filter_map(answer).collect::<serde_json::Map<_, _>>() }))
            }
            ("notify", _) => Ok(json!({})),
            _ => {
                Err(HostRefusal { code: "client_cannot".to_owned(), message: "this client cannot be asked".to_owned() })
            }
        };
        self.heard.lock().unwrap().push((call.operation, meta));
        Box::pin(async move { reply.map(|meta| HostReply { meta: meta.to_string(), body: Bytes::new() }) })
    }

    fn log(&self, line: LogLine) {
        self.said.lock().unwrap().push(format!("{}: {}", line.level, line.text));
    }

    fn progress(&self, json: String) {
        self.said.lock().unwrap().push(json);
    }
}

/// With time enough for the largest bundle on a busy machine.
pub fn server(source: &str) -> Server {
    Server::new(source).limit("init_cpu_ms", 10_000).limit("init_time_ms", 60_000).limit("cpu_ms", 2_000)
}

pub async fn surface(pool: &Pool, server: &Arc<Deployment>) -> Result<Value, Failure> {
    let seed = tokio::time::timeout(PATIENCE, pool.seed(server)).await.expect("initialisation has its limits");
    seed.map(|seed| serde_json::from_str(seed.surface().get()).expect("a surface is JSON"))
}

pub async fn ask(
    pool: &Pool,
    server: &Arc<Deployment>,
    client: &Arc<Client>,
    operation: Operation,
    name: &str,
    input: Value,
) -> Result<Value, (Code, String)> {
    let request = Request { operation, name: name.to_owned(), input: Bytes::from(input.to_string()), session: None };
    let call = pool.call(server, &request, client.clone());
    let answer = tokio::time::timeout(PATIENCE, call).await.expect("no call outlives its limits");
    let parse = |bytes: Bytes| serde_json::from_slice(&bytes).expect("a result is JSON");
    answer.outcome.map(parse).map_err(|failure| (failure.code, failure.message))
}

/// Calls a tool for nobody in particular.
pub async fn call(pool: &Pool, server: &Arc<Deployment>, name: &str, input: Value) -> Result<Value, (Code, String)> {
    ask(pool, server, &Client::silent(), Operation::Tool, name, input).await
}

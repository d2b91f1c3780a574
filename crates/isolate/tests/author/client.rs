//! The host that the test plays.

use crate::support::{PATIENCE, Server, tool};
use bytes::Bytes;
use sandbox::{Answer, Deployment, Future, Host, HostCall, HostRefusal, HostReply, LogLine, Operation, Pool, Request};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A host with a client behind it that answers everything, and remembers what it was asked.
#[derive(Default)]
pub struct Client {
    pub name: &'static str,
    pub heard: Mutex<Vec<(String, Value)>>,
    pub logged: Mutex<Vec<(String, String)>>,
}

impl Client {
    pub fn new(name: &'static str) -> Arc<Client> {
        Arc::new(Client { name, ..Client::default() })
    }

    pub fn heard(&self) -> Vec<(String, Value)> {
        self.heard.lock().unwrap().clone()
    }

    /// The keys of each host call `ask`, in order.
    pub fn keys(&self) -> Vec<Vec<String>> {
        let key = |ask: &Value| ask["key"].as_str().unwrap().to_owned();
        let asks = |meta: &Value| meta["asks"].as_array().unwrap().iter().map(key).collect();
        self.heard().iter().filter(|(operation, _)| operation == "ask").map(|(_, meta)| asks(meta)).collect()
    }

    pub fn answer(&self, ask: &Value) -> Option<Value> {
        let params = &ask["params"];
        match (ask["method"].as_str(), params["message"].as_str()) {
            (_, Some("stay silent")) => None,
            (Some("elicitation/create"), message) => {
                Some(json!({ "action": "accept", "content": { "to": message, "by": self.name } }))
            }
            (Some("sampling/createMessage"), _) => {
                Some(json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" }))
            }
            (Some("roots/list"), _) => Some(json!({ "roots": [{ "uri": "file:///r" }] })),
            _ => None,
        }
    }

    pub fn reply(&self, operation: &str, meta: &Value) -> Result<Value, HostRefusal> {
        let refuse = |code: &str, message: &str| HostRefusal { code: code.to_owned(), message: message.to_owned() };
        match operation {
            "ask" => {
                let asks = meta["asks"].as_array().unwrap();
                if asks.iter().any(|ask| ask["params"]["message"] == "refuse") {
                    return Err(refuse("client_cannot", "this client cannot be asked"));
                }
                let answer = |ask: &Value| Some((ask["key"].as_str()?.to_owned(), self.answer(ask)?));
                Ok(json!({ "answers": asks.iter().filter_map(answer).collect::<serde_json::Map<_, _>>() }))
            }
            "client" => Ok(json!({ "name": self.name, "version": "1", "capabilities": { "roots": {} } })),
            "notify" => Ok(json!({})),
            _ => Err(refuse("egress_denied", "no network here")),
        }
    }
}

impl Host for Client {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        let meta: Value = serde_json::from_str(&call.meta).unwrap();
        let reply = self.reply(&call.operation, &meta);
        self.heard.lock().unwrap().push((call.operation, meta));
        Box::pin(async move { reply.map(|meta| HostReply { meta: meta.to_string(), body: Bytes::new() }) })
    }

    fn log(&self, line: LogLine) {
        self.logged.lock().unwrap().push((line.level, line.text));
    }
}

pub async fn send(pool: &Pool, server: &Arc<Deployment>, request: &Request, client: &Arc<Client>) -> Answer {
    let call = pool.call(server, request, client.clone());
    tokio::time::timeout(PATIENCE, call).await.expect("no call outlives its limits")
}

/// Runs the body of a script, and gives its result with what its client heard.
pub async fn script(pool: &Pool, body: &str) -> (Value, Arc<Client>) {
    let client = Client::new("ada");
    // None of these is about CPU time, and some move megabytes.
    let server = Server::new(body).limit("cpu_ms", 2000).deploy();
    let answer = send(pool, &server, &tool("run", "{}"), &client).await;
    let result = answer.outcome.unwrap_or_else(|failure| panic!("{body}\n{failure}"));
    (serde_json::from_slice(&result).unwrap(), client)
}

pub fn request(operation: Operation, name: &str, input: &Value) -> Request {
    Request { operation, name: name.to_owned(), input: Bytes::from(input.to_string()), session: None }
}

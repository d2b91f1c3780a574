//! Servers on loopback that do what they are told, and a resolver that says what it is told.
#![allow(dead_code)]

pub mod proxy;
pub mod space;
pub mod tls;

use bytes::Bytes;
use egress::{BareStar, Denied, Dev, Door, Limits, Lookup, Pass, Resolve, Rules, Settings, Visit};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Nothing here may take for ever.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let done = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await });
    runtime.shutdown_background();
    done.expect("the test takes too long")
}

/// Answers in turn; the last one stays. Names it does not know lead to loopback.
#[derive(Default)]
pub struct Names(Mutex<HashMap<String, Vec<Vec<IpAddr>>>>, Mutex<Vec<String>>);

impl Names {
    pub fn say(self, name: &str, answers: &[&[&str]]) -> Names {
        let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        self.0.lock().unwrap().insert(name.to_owned(), answers.iter().map(parse).collect());
        self
    }

    pub fn asked(&self) -> Vec<String> {
        self.1.lock().unwrap().clone()
    }
}

impl Resolve for Names {
    fn resolve(&self, name: &str) -> Lookup {
        self.1.lock().unwrap().push(name.to_owned());
        let mut names = self.0.lock().unwrap();
        let answer = match names.get_mut(name) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => vec![LOOPBACK],
        };
        Box::pin(async move { Ok(answer) })
    }
}

pub fn door(ports: &[u16], limits: Limits) -> Door<Dev> {
    let settings = Settings { limits, resolver: Arc::new(Names::default()), ..Settings::default() };
    Door::dev(ports.to_vec(), settings).unwrap()
}

pub fn rules(entries: &[&str]) -> Arc<Rules> {
    Arc::new(Rules::parse(entries.iter().copied(), BareStar::Allowed).unwrap())
}

/// May reach everything on these ports.
pub fn pass(ports: &[u16]) -> Pass {
    let entries: Vec<String> = ports.iter().flat_map(|p| [format!("http://*:{p}"), format!("https://*:{p}")]).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    Pass::new("tenant", "deployment", rules(&entries))
}

pub fn visit(ports: &[u16], limits: Limits) -> Visit {
    door(ports, limits).visit(pass(ports))
}

/// A fetch as fetch.js sends it. `more` overrides.
pub fn meta(id: u64, url: &str, more: Value) -> String {
    let mut meta = json!({
        "id": id, "method": "GET", "url": url, "headers": [], "redirect": "follow", "bodyLength": null, "stream": false,
    });
    for (key, value) in more.as_object().unwrap() {
        meta[key] = value.clone();
    }
    meta.to_string()
}

pub async fn fetch(visit: &Visit, id: u64, url: &str, more: Value) -> Result<Value, Denied> {
    fetch_body(visit, id, url, more, Bytes::new()).await
}

pub async fn fetch_body(visit: &Visit, id: u64, url: &str, more: Value, body: Bytes) -> Result<Value, Denied> {
    let reply = visit.call("fetch", &meta(id, url, more), body).await?;
    Ok(serde_json::from_str(&reply.meta).unwrap())
}

pub async fn piece(visit: &Visit, id: u64) -> Result<Option<Bytes>, Denied> {
    let reply = visit.call("fetch_read", &json!({ "id": id }).to_string(), Bytes::new()).await?;
    let meta: Value = serde_json::from_str(&reply.meta).unwrap();
    if meta["done"] == true { Ok(None) } else { Ok(Some(reply.body)) }
}

pub async fn write(visit: &Visit, id: u64, chunk: impl Into<Bytes>, done: bool) -> Result<(), Denied> {
    visit.call("fetch_write", &json!({ "id": id, "done": done }).to_string(), chunk.into()).await.map(drop)
}

pub async fn cancel(visit: &Visit, id: u64, of: &str) {
    visit.call("fetch_cancel", &json!({ "id": id, "of": of }).to_string(), Bytes::new()).await.unwrap();
}

pub async fn read_all(visit: &Visit, id: u64) -> Result<Vec<u8>, Denied> {
    let mut all = Vec::new();
    while let Some(chunk) = piece(visit, id).await? {
        all.extend(chunk);
    }
    Ok(all)
}

/// Status and body of a GET.
pub async fn get(visit: &Visit, id: u64, url: &str) -> Result<(u16, String), Denied> {
    let head = fetch(visit, id, url, json!({})).await?;
    let body = if head["bodyId"].is_null() { Vec::new() } else { read_all(visit, id).await? };
    Ok((head["status"].as_u64().unwrap() as u16, String::from_utf8(body).unwrap()))
}

/// A server that hands each connection to a function.
pub struct Server {
    pub port: u16,
    task: tokio::task::JoinHandle<()>,
    connections: Arc<Mutex<usize>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub type Seen = Arc<Mutex<Vec<String>>>;

impl Server {
    pub async fn each<F, W>(handle: F) -> Server
    where
        F: Fn(TcpStream, Seen) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connections, requests) = (Arc::new(Mutex::new(0)), Seen::default());
        let (count, seen) = (connections.clone(), requests.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *count.lock().unwrap() += 1;
                tokio::spawn(handle(stream, seen.clone()));
            }
        });
        Server { port, task, connections, requests }
    }

    /// Answers each request with what the function makes of it: the raw response.
    pub async fn raw(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Server {
        let answer = Arc::new(answer);
        Server::each(move |mut stream, seen| {
            let answer = answer.clone();
            async move {
                while let Some(request) = request(&mut stream).await {
                    seen.lock().unwrap().push(request.clone());
                    if stream.write_all(&answer(&request)).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await
    }

    pub async fn says(response: impl Into<Vec<u8>>) -> Server {
        let response = response.into();
        Server::raw(move |_| response.clone()).await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://a.example:{}{path}", self.port)
    }

    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// One request, headers and body, as it came.
pub async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut all = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            let chunked = lower.contains("transfer-encoding: chunked");
            if if chunked { body.ends_with("0\r\n\r\n") } else { body.len() >= length.unwrap_or(0) } {
                return Some(text);
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => all.extend(&buffer[..read]),
        }
    }
}

/// A plain 200.
pub fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub fn redirect(status: u16, to: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

//! An API on loopback that keeps every byte it gets and answers what it is told.

use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const HOST: &str = "api.example";

const USUAL: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";

/// What the host adds to every request by itself, beside its own address. Nothing of it is the module's.
const ALWAYS: [&str; 2] = ["accept-encoding: gzip, br, zstd, deflate", "user-agent: bulkhead"];
const UNLESS_GIVEN: &str = "accept: */*";

/// One request, each byte a character.
#[derive(Debug)]
pub struct Request {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// Those of the module's.
    lines: Vec<String>,
    head: String,
    port: u16,
}

impl Request {
    fn read(head: &str, body: String, port: u16) -> Request {
        let mut lines = head.split("\r\n").map(str::to_owned);
        let line = lines.next().unwrap();
        let mut lines: Vec<String> = lines.collect();
        let host = format!("host: {HOST}:{port}");
        for fixed in ALWAYS.into_iter().chain([host.as_str()]) {
            let at = lines.iter().position(|line| line == fixed).unwrap_or_else(|| panic!("no {fixed}: {head}"));
            lines.remove(at);
        }
        lines.retain(|line| line != UNLESS_GIVEN);
        let pair = |line: &String| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Request { line, headers: lines.iter().filter_map(pair).collect(), body, lines, head: head.to_owned(), port }
    }

    /// All bytes but those of the port, which is another one each time.
    pub fn whole(&self) -> String {
        shown(&format!("{}\r\n\r\n{}", self.head, self.body)).replace(&self.port.to_string(), "PORT")
    }

    /// All bytes but the headers that the host adds to every request. The boundary of parts, which is random, is `BOUNDARY`.
    pub fn wire(&self) -> String {
        let mut text = format!("{}\r\n", self.line);
        self.lines.iter().for_each(|line| text += &format!("{line}\r\n"));
        if !self.body.is_empty() {
            text += &format!("\r\n{}", self.body);
        }
        let kind = self.headers.get("content-type").map_or("", String::as_str);
        if let Some((_, boundary)) = kind.split_once("boundary=") {
            assert!(boundary.len() > 30, "anybody could guess {boundary}");
            text = text.replace(boundary, "BOUNDARY");
        }
        shown(&text)
    }
}

/// A line ends where there is CR LF; bytes that are no visible ASCII, and backslashes, are escaped.
fn shown(text: &str) -> String {
    let visible = |c: char| match c {
        ' '..='~' if c != '\\' => c.to_string(),
        c => c.escape_default().to_string(),
    };
    let lines = text.split("\r\n").map(|line| line.chars().map(visible).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

/// What one call meets.
#[derive(Default)]
pub struct Script {
    pub requests: Vec<Request>,
    pub replies: VecDeque<Value>,
}

pub struct Api {
    pub port: u16,
    pub script: Arc<Mutex<Script>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Api {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Api {
    pub async fn start() -> Api {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = script.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone(), port));
            }
        });
        Api { port, script, task }
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Mutex<Script>>, port: u16) {
    while let Some((head, body)) = request(&mut stream).await {
        let reply = {
            let mut script = script.lock().unwrap();
            script.requests.push(Request::read(&head, body, port));
            script.replies.pop_front().unwrap_or_default()
        };
        let raw = reply["raw"].as_str().unwrap_or(USUAL).replace("PORT", &port.to_string());
        // `hex` is for what is no text.
        let hex = reply["hex"].as_str().unwrap_or_default();
        let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        let fill = vec![b'a'; reply["fill"].as_u64().unwrap_or(0) as usize];
        let mut whole = raw.into_bytes();
        whole.extend(bytes.chain(fill));
        if stream.write_all(&whole).await.is_err() {
            return;
        }
        while reply["endless"] == true && stream.write_all(&[b'a'; 1 << 16]).await.is_ok() {}
        let lower = String::from_utf8_lossy(&whole[..whole.len().min(4096)]).to_ascii_lowercase();
        if lower.contains("connection: close") || !lower.contains("content-length") {
            return;
        }
    }
}

/// Head and body of the next request.
async fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut all = String::new();
    loop {
        if let Some((head, body)) = all.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            let chunked = lower.contains("transfer-encoding: chunked");
            if if chunked { body.ends_with("0\r\n\r\n") } else { body.len() >= length.unwrap_or(0) } {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        let mut buffer = [0; 1 << 14];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => all.extend(buffer[..read].iter().map(|byte| char::from(*byte))),
        }
    }
}

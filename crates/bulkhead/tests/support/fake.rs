//! A host that answers what a test wants, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("the body is not JSON: {error}\n{self:?}"))
    }
}

pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

pub fn json(status: u16, body: serde_json::Value) -> Reply {
    Reply { status, headers: vec![("content-type", "application/json".to_owned())], body: body.to_string().into() }
}

pub fn refusal(status: u16, code: &str, message: &str, hint: Option<&str>) -> Reply {
    json(status, serde_json::json!({ "error": { "code": code, "message": message, "hint": hint } }))
}

pub fn nothing(status: u16) -> Reply {
    Reply { status, headers: Vec::new(), body: Vec::new() }
}

pub fn text(kind: &str, body: &str) -> Reply {
    Reply { status: 200, headers: vec![("content-type", kind.to_owned())], body: body.into() }
}

pub struct FakeHost {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl FakeHost {
    /// One that has no server yet, and answers uploads.
    pub fn deploying(answer: impl Fn(&Asked) -> Reply + Send + 'static) -> FakeHost {
        FakeHost::start(move |asked| match asked.target.rsplit('/').next() {
            Some("me") => {
                json(200, serde_json::json!({ "key": "k1", "subject": "k1", "role": "deploy", "tenant": "acme" }))
            }
            Some("next") => json(200, serde_json::json!({ "step": 1, "current": null, "approval": false })),
            _ => answer(asked),
        })
    }

    pub fn start(answer: impl Fn(&Asked) -> Reply + Send + 'static) -> FakeHost {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let (asked, done): (Arc<Mutex<Vec<Asked>>>, Arc<AtomicBool>) = Default::default();
        let (seen, over) = (asked.clone(), done.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                // A client that goes away in the middle is part of some tests.
                let _ = stream.and_then(|stream| serve(stream, &answer, &seen));
            }
        });
        FakeHost { address, asked, done, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked since the last time.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Drop for FakeHost {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn serve(stream: TcpStream, answer: &impl Fn(&Asked) -> Reply, seen: &Mutex<Vec<Asked>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(&stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let asked = Asked { method, target, headers, body: String::from_utf8_lossy(&body).into_owned() };
    let reply = answer(&asked);
    seen.lock().unwrap().push(asked);
    let mut writer = &stream;
    write!(
        writer,
        "HTTP/1.1 {} Status\r\nconnection: close\r\ncontent-length: {}\r\n",
        reply.status,
        reply.body.len()
    )?;
    for (name, value) in &reply.headers {
        write!(writer, "{name}: {value}\r\n")?;
    }
    writer.write_all(b"\r\n")?;
    writer.write_all(&reply.body)
}

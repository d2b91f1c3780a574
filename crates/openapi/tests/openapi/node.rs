//! Runs generated modules in Node.js, against a server on loopback in the same process.

use openapi::{Converted, Options, convert};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the server got: the request line, the headers and the body.
#[derive(Debug)]
pub struct Request {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

#[derive(Debug)]
pub struct Answer {
    pub requests: Vec<Request>,
    pub result: Value,
}

impl Answer {
    /// The only request there was.
    pub fn request(&self) -> &Request {
        assert_eq!(self.requests.len(), 1, "{:?}", self.result);
        &self.requests[0]
    }

    pub fn text(&self) -> &str {
        self.result["content"][0]["text"].as_str().unwrap_or_default()
    }
}

pub struct Ran {
    pub converted: Converted,
    pub surface: Value,
    pub calls: Vec<Answer>,
}

struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn node() -> Node {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let driver = here.join("tests/openapi/driver.mjs");
    let fallback = here.join("../../target/v8/node/bin/node");
    for program in [Path::new("node"), fallback.as_path()] {
        let mut command = Command::new(program);
        command.arg(&driver).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Ok(child) = command.spawn() {
            return Node(child);
        }
    }
    panic!("these tests need Node.js 20 or later");
}

/// Converts the files with the driver's address as base, and makes the calls, each `{ tool, input, replies? }`.
pub fn run(files: &BTreeMap<String, Vec<u8>>, root: &str, options: Options, calls: Value) -> Ran {
    let mut node = node();
    let mut lines = BufReader::new(node.0.stdout.take().unwrap()).lines();
    let port: u16 = lines.next().unwrap().unwrap().parse().unwrap();
    let base = format!("http://127.0.0.1:{port}/v1");
    let converted = convert(files, root, &Options { base_url: Some(base), ..options }).unwrap();
    let asked = json!({ "module": converted.module, "calls": calls });
    writeln!(node.0.stdin.take().unwrap(), "{asked}").unwrap();
    // The driver ends by itself after a while, so this does, too.
    let line = lines.next().expect("the driver ended without an answer").unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["polluted"], false);
    let deadline = Instant::now() + Duration::from_secs(30);
    while node.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the driver does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    let calls = answer["calls"].as_array().unwrap().iter().map(read).collect();
    Ran { converted, surface: answer["surface"].clone(), calls }
}

fn read(answer: &Value) -> Answer {
    let request = |request: &Value| {
        let mut lines = request["head"].as_str().unwrap().split("\r\n");
        let line = lines.next().unwrap().to_owned();
        let pair =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Request { line, headers: lines.filter_map(pair).collect(), body: request["body"].as_str().unwrap().to_owned() }
    };
    Answer {
        requests: answer["requests"].as_array().unwrap().iter().map(request).collect(),
        result: answer["result"].clone(),
    }
}

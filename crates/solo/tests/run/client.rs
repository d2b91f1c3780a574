//! A client that starts the runner and talks to the server behind it.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// More than anything here takes, on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A folder for one test, with a home in it. Gone with the test.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("solo-run-{name}-{}", std::process::id()));
        for folder in ["home/.ssh", "notes"] {
            fs::create_dir_all(path.join(folder)).expect("a folder");
        }
        fs::write(path.join("home/.ssh/id"), "a private key").expect("a key");
        fs::write(path.join("notes/one.txt"), "the first note").expect("a note");
        Place(path.canonicalize().expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The runner with these flags and this command, in this place.
    pub fn runner(&self, words: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg(crate::RUNNER).args(words).current_dir(&self.0);
        command.env("HOME", self.0.join("home")).env("XDG_CACHE_HOME", self.0.join("cache"));
        command.env("SECRET_OF_THE_HOST", "a secret value");
        // Where a version manager has what it manages, though the home is another one here.
        if let Some(home) = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.join(".pyenv").is_dir()) {
            command.env("PYENV_ROOT", home.join(".pyenv"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs to the end, with this as its input.
    pub fn output(&self, words: &[&str], input: &[u8]) -> Output {
        let mut child = self.runner(words).spawn().expect("the runner");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_owned();
        let writer = std::thread::spawn(move || {
            // A server that does not read is no failure of ours.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("the end");
        writer.join().expect("the input");
        output
    }

    /// The small server, with `flags` before its command.
    pub fn small(&self, flags: &[&str]) -> Session {
        let server = self.server("small.py");
        self.session(&[flags, &["--", "python3", &server]].concat())
    }

    /// One of the servers in `servers`, put where the runner finds it.
    pub fn server(&self, name: &str) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/servers").join(name);
        let path = self.0.join(name);
        fs::copy(source, &path).expect("a server");
        path.to_str().expect("a path").to_owned()
    }

    pub fn session(&self, words: &[&str]) -> Session {
        Session::start(self.runner(words))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A client's side of one session.
pub struct Session {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    pub lines: Receiver<String>,
    errors: Receiver<String>,
    next: u64,
}

impl Session {
    pub fn start(mut runner: Command) -> Session {
        let mut child = runner.spawn().expect("the runner");
        let said = lines(child.stdout.take().expect("a pipe"));
        let errors = lines(child.stderr.take().expect("a pipe"));
        let stdin = child.stdin.take();
        Session { child, stdin, lines: said, errors, next: 0 }
    }

    pub fn send(&mut self, message: &Value) {
        let mut stdin = self.stdin.as_ref().expect("stdin is open");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("the server listens");
    }

    /// A request and the result that belongs to it.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no answer to {method}; stderr:\n{}", self.errors().join("\n"));
            };
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id && message.get("method").is_none() {
                return message.get("result").unwrap_or_else(|| panic!("{message}")).clone();
            }
        }
    }

    pub fn initialize(&mut self) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let result =
            self.ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    /// The text of a tool's answer.
    pub fn call(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// What the small server makes of some Python: the value of `out`, or the error.
    pub fn evaluate(&mut self, code: &str) -> Value {
        serde_json::from_str(&self.call("evaluate", json!({"code": code}))).expect("JSON")
    }

    /// All of stderr so far.
    pub fn errors(&mut self) -> Vec<String> {
        self.errors.try_iter().collect()
    }

    /// Waits for a line of stderr that has this in it.
    pub fn error_with(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.errors.recv_timeout(left) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(_) => panic!("no line with `{part}` on stderr"),
            }
        }
    }

    /// Ends the session as clients do, and gives the status.
    pub fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().expect("the end").code()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes of this machine that have this among their arguments, but for runners.
pub fn running(mark: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let marked = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.split('\0').any(|word| word == mark) && !words.contains(crate::RUNNER)
    };
    pids.filter(marked).collect()
}

/// Waits until this holds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

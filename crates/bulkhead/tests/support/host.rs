//! A host of the built program, on a directory and a port of its own.

use super::{Dir, PROGRAM, Run, beside, bulkhead};
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// For whatever must happen soon. Machines that test are busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Quick to start; everything else as it is.
const CONFIG: &str = "[isolate]\nquick_forks = false\n";

pub struct Host {
    child: Child,
    pub url: String,
    pub data: String,
    said: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

/// What a new tenant is given.
pub struct Keys {
    pub admin: String,
    pub deploy: String,
    pub call: String,
}

impl Host {
    /// Starts on `data` in the folder, with these lines in its configuration.
    pub fn start(dir: &Dir, config: &str) -> Host {
        let config = dir.file("host.toml", &format!("{config}\n{CONFIG}"));
        let data = dir.path("data").to_string_lossy().into_owned();
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", &data, "--config", &config]);
        Host::launch(command, data)
    }

    /// Starts it with a command that becomes `bulkhead serve`.
    pub fn launch(mut command: Command, data: String) -> Host {
        beside("bulkhead-v8");
        beside("libisolate_worker.so");
        for variable in ["V8", "WORKER", "URL", "KEY", "DATA", "LISTEN"] {
            command.env_remove(format!("BULKHEAD_{variable}"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let said = Arc::new(Mutex::new(String::new()));
        let (stderr, kept) = (child.stderr.take().expect("a pipe"), said.clone());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                kept.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let mut host = Host { child, url: String::new(), data, said, reader: Some(reader) };
        until("the host listens", || {
            let over = host.child.try_wait().expect("our own child");
            assert!(over.is_none(), "the host ended with {over:?}:\n{}", host.said());
            host.said().contains("\nnext: ")
        });
        let said = host.said();
        let url = said.lines().find_map(|line| line.strip_prefix("listening on ")).expect("an address");
        url.clone_into(&mut host.url);
        host
    }

    /// What it wrote to stderr so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub fn hears(&self, words: &str) {
        until(words, || self.said().contains(words));
    }

    /// A command with this key.
    pub fn run<'a>(&self, key: &str, args: impl IntoIterator<Item = &'a str>) -> Run {
        bulkhead(args).with_env("BULKHEAD_URL", &self.url).with_env("BULKHEAD_KEY", key)
    }

    /// The same, with the operator's.
    pub fn operate<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Run {
        let key = std::fs::read_to_string(format!("{}/operator.key", self.data)).expect("the operator's key");
        self.run(key.trim(), args)
    }

    /// Makes a tenant.
    pub fn tenant(&self, name: &str) -> Keys {
        let made = self.operate(["tenant", "create", name, "--json"]);
        assert_eq!(made.code, 0, "{made:?}");
        let made: serde_json::Value = serde_json::from_str(&made.stdout).expect("JSON");
        let key = |field: &str| made[field].as_str().expect("a key").to_owned();
        Keys { admin: key("admin_key"), deploy: key("deploy_key"), call: key("call_key") }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill");
        assert!(sent.success());
    }

    /// Waits for its end, and for that of every process it had. Gives the exit code and what it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        let family = descendants(self.child.id());
        let mut code = None;
        until("the host ends", || match self.child.try_wait().expect("our own child") {
            Some(status) => {
                code = status.code();
                true
            }
            None => false,
        });
        until("its processes are gone", || family.iter().all(|process| !process.lives()));
        let _ = self.reader.take().map(std::thread::JoinHandle::join);
        (code, self.said())
    }

    /// SIGKILL: no word to anybody. What it started ends all the same.
    pub fn kill(self) {
        self.signal("KILL");
        assert_eq!(self.end().0, None);
    }

    /// SIGTERM, and the end.
    pub fn stop(self) -> (Option<i32>, String) {
        let family = descendants(self.child.id());
        assert!(!family.is_empty(), "a host has processes");
        self.signal("TERM");
        let end = self.end();
        until("its processes are gone", || family.iter().all(|process| !process.lives()));
        end
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Only after a failed test it is still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process and when it began, so that another one with its number is not mistaken for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    pid: u32,
    began: String,
}

impl Process {
    /// The parent's number, and the process; none for one that is gone or only waits to be collected.
    fn look(pid: u32) -> Option<(u32, Process)> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        (fields.first() != Some(&"Z")).then_some(())?;
        Some((fields.get(1)?.parse().ok()?, Process { pid, began: (*fields.get(19)?).to_owned() }))
    }

    fn lives(&self) -> bool {
        Process::look(self.pid).is_some_and(|(_, process)| process == *self)
    }
}

fn descendants(of: u32) -> HashSet<Process> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let all: Vec<_> = entries.filter_map(|entry| Process::look(entry.file_name().to_str()?.parse().ok()?)).collect();
    let mut found = HashSet::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for (_, child) in all.iter().filter(|(ppid, _)| *ppid == parent) {
            parents.push(child.pid);
            found.insert(child.clone());
        }
    }
    found
}

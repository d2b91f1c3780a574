//! A user namespace as `newuidmap` makes it for an ordinary user: the user is root inside, and has a range of uids.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// In nobody's use, and none that a host in the same machine would take for its jails.
const MAP: &str = "0 0 1\n1 1950000000 65535\n";

/// A shell in such a namespace.
pub struct Subordinate(Child);

impl Subordinate {
    /// Nothing where that is not allowed.
    pub fn new() -> Option<Subordinate> {
        let mut command = Command::new("unshare");
        // What it does is read only when the uids are there: a new program then begins as root.
        command.args(["--user", "sh", "-c", "read -r script && exec timeout --kill-after=5 60 sh -c \"$script\""]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let shell = Subordinate(child);
        let (own, begun) = (fs::read_link("/proc/self/ns/user").ok()?, Instant::now());
        let folder = format!("/proc/{}", shell.0.id());
        while fs::read_link(format!("{folder}/ns/user")).ok()? == own {
            assert!(begun.elapsed() < Duration::from_secs(30), "no user namespace");
            std::thread::sleep(Duration::from_millis(5));
        }
        let written = ["gid_map", "uid_map"].map(|file| fs::write(format!("{folder}/{file}"), MAP));
        written.iter().all(Result::is_ok).then_some(shell)
    }

    /// Runs one line of shell script, and gives what it wrote.
    pub fn run(&mut self, script: &str) -> String {
        writeln!(self.0.stdin.take().expect("a pipe"), "{script}").expect("the shell listens");
        let mut out = String::new();
        self.0.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
        out
    }
}

impl Drop for Subordinate {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

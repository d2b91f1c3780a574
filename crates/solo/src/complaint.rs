//! A server that reaches for what the jail has not says so, in the words of its runtime. Which flag brings it is for us to say.

use crate::plan::{Plan, Start};
use crate::voice::Voice;
use install::{Source, advice};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Longer answers are no complaints.
const LONGEST: usize = 16 << 10;
/// The last words that are kept of a server that has not answered.
const KEPT: usize = 16 << 10;
/// Lines that are told, at most.
const MOST_TOLD: usize = 20;

/// Listens to what the server says on both ways, and says each thing once.
#[derive(Clone)]
pub(crate) struct Complaints {
    voice: Voice,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    told: BTreeSet<String>,
    last: Vec<u8>,
    answered: bool,
}

impl Complaints {
    pub(crate) fn new(voice: &Voice) -> Complaints {
        Complaints { voice: voice.clone(), heard: Arc::default() }
    }

    /// What it answers; only answers that say that something went wrong.
    pub(crate) fn output(&self, bytes: &[u8]) {
        let mut heard = self.heard();
        heard.answered |= bytes.trim_ascii_start().starts_with(b"{");
        heard.keep(bytes);
        let says = |what: &str| bytes.windows(what.len()).any(|part| part == what.as_bytes());
        if bytes.len() <= LONGEST && (says("\"error\"") || says("\"isError\"")) {
            self.tell(&mut heard, lines(&String::from_utf8_lossy(bytes)));
        }
    }

    pub(crate) fn errors(&self, bytes: &[u8]) {
        let mut heard = self.heard();
        heard.keep(bytes);
        self.tell(&mut heard, lines(&String::from_utf8_lossy(bytes)));
    }

    /// For a server that has ended: what it may have been missing, if it never answered.
    pub(crate) fn ended(&self, plan: &Plan) {
        let mut heard = self.heard();
        if !heard.answered {
            let words = String::from_utf8_lossy(&heard.last).into_owned();
            self.tell(&mut heard, missing(plan, &words));
        }
    }

    fn tell(&self, heard: &mut Heard, lines: Vec<String>) {
        for line in lines {
            if heard.told.len() < MOST_TOLD && heard.told.insert(line.clone()) {
                self.voice.say(&line);
            }
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    fn keep(&mut self, bytes: &[u8]) {
        if self.answered {
            return;
        }
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT)..]);
        let over = self.last.len().saturating_sub(KEPT);
        self.last.drain(..over);
    }
}

/// What these last words speak of that the jail has not.
fn missing(plan: &Plan, words: &str) -> Vec<String> {
    let withheld = |name: &str| plan.withheld.contains(name);
    let names = advice::variables(words, withheld).into_iter().filter(|name| !plan.variables.contains_key(*name));
    let mut lines: Vec<String> = names
        .map(|name| match withheld(name) {
            true => format!("{name} is set, but the server does not see it; add `--env {name}` before `--`"),
            false => format!("the server speaks of {name}; if it needs it, set it and add `--env {name}` before `--`"),
        })
        .collect();
    if advice::wants_older_sdk(words) {
        let line =
            "the server is written for an older `mcp` than the newest; `uvx --with 'mcp<2'` bounds what is installed";
        lines.push(line.to_owned());
    }
    let npm = matches!(&plan.start, Start::Package { package, .. } if package.source == Source::Npm);
    if npm && !plan.scripts && advice::wants_scripts(words) {
        let line = "a part of the package is made by its install scripts, which were not run; `--scripts` before `--` runs them, \
                    in a jail";
        lines.push(line.to_owned());
    }
    if !plan.makes_sockets() && advice::wants_unix_sockets(words) {
        let line = "the server may want a Unix socket with a path, which it has not beside folders of yours; `--unix-sockets` \
                    before `--` allows it";
        lines.push(line.to_owned());
    }
    if let Some((script, sibling)) = plan.lone_script().and_then(|script| Some((script, beside(script, words)?))) {
        let folder = script.parent().unwrap_or(script).display();
        lines.push(format!(
            "the server did not find `{}`, which lies beside its script: only the script itself is shown; add `--ro {folder}` \
             before `--`",
            sibling.display()
        ));
    }
    if advice::wants_room(words) {
        let room = plan.limits.tmp_mb;
        lines.push(format!(
            "the server found no room for its files: `--tmp {}` instead of {room}, before `--`",
            room * 4
        ));
    }
    lines
}

/// The module that these words miss, if it lies beside the script.
fn beside(script: &Path, words: &str) -> Option<PathBuf> {
    let folder = script.parent()?;
    let missed = ["No module named ", "Cannot find module ", "cannot load such file -- ", "Cannot find package "];
    let names = missed.iter().flat_map(|what| words.match_indices(what).map(|(at, what)| &words[at + what.len()..]));
    let names =
        names.filter_map(|rest| rest.trim_start_matches(['\'', '"', '`']).split(['\'', '"', '`', '\n', ' ']).next());
    let found = names.filter_map(|name| {
        // Node writes the whole path; Python a name with dots.
        let name = Path::new(name).strip_prefix(folder).ok().and_then(Path::to_str).unwrap_or(name);
        let name = name.trim_start_matches("./").split(['/', '.']).next()?;
        let ends = ["", ".py", ".js", ".mjs", ".cjs", ".ts", ".json", ".rb"];
        ends.iter().map(|end| folder.join(format!("{name}{end}"))).find(|path| !name.is_empty() && path.exists())
    });
    found.into_iter().next()
}

fn lines(text: &str) -> Vec<String> {
    let ports = refused(text).into_iter().map(|port| {
        format!(
            "the server found nobody at port {port} of its loopback, which is its own; this machine's is there with \
             `--tcp localhost:{port}` before `--`"
        )
    });
    let names = unknown(text).into_iter().map(|name| {
        format!(
            "the server looked up {name} itself, and the jail has no name lookups; what does not go through the proxy is \
             reached with `--tcp HOST:PORT` before `--`"
        )
    });
    ports.chain(names).collect()
}

/// Ports of loopback where a connection was refused, as runtimes put it.
fn refused(text: &str) -> Vec<u16> {
    let says = ["ECONNREFUSED", "onnection refused", "Connect call failed"].iter().any(|what| text.contains(what));
    let mut ports = Vec::new();
    for place in ["127.0.0.1", "localhost", "::1"].iter().filter(|_| says) {
        for (at, _) in text.match_indices(place) {
            let rest = &text[at + place.len()..];
            let rest = rest.trim_start_matches(['"', '\'', '\\', ']', ':', ',', ' ', ')']);
            let rest = rest.strip_prefix("port ").unwrap_or(rest);
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            ports.extend(digits.parse::<u16>().ok().filter(|port| *port > 0));
        }
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Names that could not be looked up; `a name` for a runtime that does not say which.
fn unknown(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for place in ["ENOTFOUND ", "EAI_AGAIN "] {
        for (at, _) in text.match_indices(place) {
            let rest = &text[at + place.len()..];
            let name =
                rest.split(|c: char| !(c.is_ascii_alphanumeric() || ".-_".contains(c))).next().unwrap_or_default();
            names.push(format!("`{}`", name.trim_end_matches('.')));
        }
    }
    let says = ["name resolution", "Name or service not known", "no such host"].iter().any(|what| text.contains(what));
    if names.is_empty() && says {
        names.push("a name".to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use install::testing::Folder;

    #[test]
    fn what_a_server_ends_without_is_named_with_its_flag() {
        let folder = Folder::new("complaint");
        let mut around = folder.surroundings();
        around.variables.extend(["ODD_THING", "GIVEN_KEY"].map(|name| (name.to_owned(), "1".to_owned())));
        let options = Options { command: vec!["sh".into()], env: vec!["GIVEN_KEY".into()], ..Options::default() };
        let plan = Plan::new(&options, &around).unwrap();
        assert_eq!(
            missing(&plan, "SOME_API_KEY, ODD_THING and GIVEN_KEY are required"),
            [
                "the server speaks of SOME_API_KEY; if it needs it, set it and add `--env SOME_API_KEY` before `--`",
                "ODD_THING is set, but the server does not see it; add `--env ODD_THING` before `--`",
            ]
        );
        let complaints = Complaints::new(&Voice::default());
        complaints.errors(&vec![b'x'; 3 * KEPT]);
        assert_eq!(complaints.heard().last.len(), KEPT);
        complaints.output(b"{\"jsonrpc\":\"2.0\"}");
        complaints.errors(b"SOME_API_KEY");
        complaints.ended(&plan);
        assert!(complaints.heard().told.is_empty(), "it has answered");
    }

    #[test]
    fn a_module_beside_a_lone_script_is_named_with_its_flag() {
        let folder = Folder::new("beside");
        let home = folder.path().join("home");
        for file in ["server.py", "helper.py", "tools.js"] {
            std::fs::write(home.join(file), "").unwrap();
        }
        let around = folder.surroundings();
        let options = Options { command: vec!["sh".into(), "home/server.py".into()], ..Options::default() };
        let plan = Plan::new(&options, &around).unwrap();
        let path = home.join("tools");
        for (words, file) in [
            ("ModuleNotFoundError: No module named 'helper'", "helper.py"),
            ("ModuleNotFoundError: No module named 'helper.inner'", "helper.py"),
            ("Error: Cannot find module './tools.js'", "tools.js"),
            (&format!("Error: Cannot find module '{}'", path.display()), "tools.js"),
        ] {
            let told = missing(&plan, words);
            let named = format!("`{}`", home.join(file).display());
            let flag = format!("`--ro {}` before `--`", home.display());
            assert!(told.len() == 1 && told[0].contains(&named) && told[0].contains(&flag), "{words}: {told:?}");
        }
        assert!(missing(&plan, "ModuleNotFoundError: No module named 'numpy'").is_empty());
        let whole = Plan::new(&Options { ro: vec![home], ..options }, &around).unwrap();
        assert!(missing(&whole, "ModuleNotFoundError: No module named 'helper'").is_empty());
    }

    #[test]
    fn refused_ports_and_unknown_names_are_found() {
        for text in [
            "connect ECONNREFUSED 127.0.0.1:5432",
            "connect ECONNREFUSED ::1:5432",
            "dial tcp 127.0.0.1:5432: connect: connection refused",
            r#"connection to server at \"127.0.0.1\", port 5432 failed: Connection refused"#,
            "Error 111 connecting to localhost:5432. Connection refused.",
            "Connect call failed ('127.0.0.1', 5432)",
        ] {
            assert_eq!(refused(text), [5432], "{text}");
        }
        assert!(refused("listening on 127.0.0.1:5432").is_empty());
        assert_eq!(unknown("getaddrinfo ENOTFOUND db.a.example"), ["`db.a.example`"]);
        assert_eq!(unknown("[Errno -3] Temporary failure in name resolution"), ["a name"]);
        assert!(lines("all is well").is_empty());
    }
}

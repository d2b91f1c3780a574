//! What a second key is asked to agree to, for people and for programs.

use super::{Next, history::locked, next};
use crate::client::{Client, ClientError};
use crate::commands::names::Place;
use crate::commands::table::{field, when};
use bundle::{Binding, Change, Digest, FileChange, Lock, Program};
use policy::LimitName;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

/// So many files are named for people.
const MOST_FILES: usize = 20;
/// Longer text of a stranger is cut for people.
const MOST_CHARS: usize = 600;

/// A deployment that waits, beside what it would replace.
pub struct Proposal {
    place: Place,
    pub id: String,
    /// As the host lists it.
    view: Value,
    pub lock: Lock,
    next: Next,
    changes: Vec<Change>,
    files: Files,
}

/// The files that differ.
#[derive(Deserialize)]
pub struct Files {
    pub files: Vec<FileChange>,
    pub count: usize,
}

impl Files {
    pub async fn between(client: &Client, place: &Place, old: Option<&str>, new: &str) -> Result<Files, ClientError> {
        let path = ["tenants", &place.tenant, "servers", &place.server, "deployments", new, "files"];
        let from: Vec<_> = old.map(|old| ("from", old.to_owned())).into_iter().collect();
        client.read(&client.answer(client.admin(Method::GET, &path, &from)).await?)
    }

    /// A line for each, and how many more there are.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.files.iter().take(MOST_FILES).map(ToString::to_string).collect();
        let rest = self.count.saturating_sub(lines.len());
        if rest > 0 {
            lines.push(format!("… and {}; `--json` has the first 1000", counted(rest, "more file")));
        }
        lines
    }
}

pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

impl Proposal {
    pub async fn fetch(client: &Client, place: &Place, id: &str) -> Result<Proposal, ClientError> {
        let path = ["tenants", &place.tenant, "servers", &place.server, "deployments", id];
        let mut view: Value = client.read(&client.get(&path).await?)?;
        let lock = locked(id, view["lock"].take())?;
        let next = next(client, place).await?;
        let current = next.current.as_ref().map(|current| current.deployment.as_str());
        let files = Files::between(client, place, current, id).await?;
        let changes = next.changes(&lock);
        Ok(Proposal { place: place.clone(), id: id.to_owned(), view, lock, next, changes, files })
    }

    /// Names what is shown here, by what this program has seen of it.
    pub fn digest(&self) -> Digest {
        let current = self.next.lock().map(Lock::digest);
        bundle::proposal(&self.lock.digest(), self.next.step, current.as_ref())
    }

    /// Refuses what nobody can agree to, before anybody looks at it.
    pub fn waits(&self) -> Result<(), ClientError> {
        let (place, id) = (&self.place, &self.id);
        let (code, what, hint) = match self.view["state"].as_str() {
            Some("proposed") => return Ok(()),
            Some("stale") => (
                "stale_proposal",
                format!("the proposal of deployment {id} is stale: another one became current since"),
                format!("propose it again, for what runs now: bulkhead rollback {place} {id}"),
            ),
            _ => (
                "conflict",
                format!("deployment {id} does not wait for approval: it is {}", field(&self.view, "state")),
                format!("bulkhead deployments {place} shows what waits"),
            ),
        };
        Err(ClientError::refused(code, what, Some(hint)))
    }

    pub fn json(&self) -> Value {
        let current = self.next.current.as_ref();
        json!({
            "server": self.place.to_string(),
            "deployment": self.id,
            "digest": self.digest().to_string(),
            "current": current.map(|current| &current.deployment),
            "quarantine": current.and_then(|current| current.quarantine.as_ref()),
            "proposed_by": self.view["proposed_by"],
            "proposed_at": self.view["proposed_at"],
            "lock": self.lock.value(),
            "changes": self.changes.iter().map(crate::commands::diff::as_json).collect::<Vec<_>>(),
            "files": self.files.files,
            "files_changed": self.files.count,
        })
    }

    /// Lines for people. Each may hold a stranger's words, so each is cleaned when it is printed.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match &self.next.current {
            None => {
                lines.push(format!("`{}`: first deployment; callers reach nothing before it is approved", self.place))
            }
            Some(current) => {
                lines.push(format!("`{}`: a change of what callers reach", self.place));
                lines.push(format!("current:  {}", current.deployment));
                if let Some(reason) = &current.quarantine {
                    lines.push(format!("          in quarantine, which approval ends: {}", quoted(reason)));
                }
            }
        }
        lines.push(format!("proposed: {}", self.id));
        let (by, at) = (field(&self.view, "proposed_by"), when(&self.view, "proposed_at"));
        lines.push(format!("          by {by} at {at}"));
        lines.push(format!("digest:   {}", self.digest()));
        if self.next.current.is_none() {
            self.whole(&mut lines)
        } else {
            self.difference(&mut lines)
        }
        lines
    }

    fn difference(&self, lines: &mut Vec<String>) {
        lines.push(match self.files.count {
            0 => "code: the same files, byte for byte".to_owned(),
            count => format!("code: {} changed", counted(count, "file")),
        });
        lines.extend(self.files.lines().into_iter().map(|line| format!("  {line}")));
        lines.push(match self.changes.len() {
            0 => "what it shows and may use: the same".to_owned(),
            count => format!("what it shows and may use: {}", counted(count, "difference")),
        });
        lines.extend(self.changes.iter().map(|change| format!("  {change}")));
    }

    fn whole(&self, lines: &mut Vec<String>) {
        let lock = &self.lock;
        let jit = if lock.jit { "on" } else { "off" };
        lines.push(format!("runs:     wall {}, boundary {}, jit {jit}", lock.wall.as_str(), lock.boundary.as_str()));
        if let Program::Command(command) = &lock.program {
            lines.push(format!("command:  {}", json!(command)));
        }
        let limits = lock.limits();
        let limits = LimitName::ALL.iter().map(|name| format!("{name} {}", limits.get(*name)));
        lines.push(format!("limits:   {}", limits.collect::<Vec<_>>().join(", ")));
        let mut list = |name: &str, none: &str, entries: Vec<String>| {
            lines.push(if entries.is_empty() {
                format!("{name}: {none}")
            } else {
                format!("{name}: {}", entries.len())
            });
            lines.extend(entries.into_iter().map(|entry| format!("  {entry}")));
        };
        list("egress", "it reaches no host", lock.egress.iter().map(ToString::to_string).collect());
        list("secrets", "none", lock.secrets.iter().map(bound).collect());
        list("endpoints", "none", lock.endpoints.iter().map(|it| quoted(&it.to_string())).collect());
        let surface = lock.surface.value();
        for (name, id) in [("tools", "name"), ("resources", "uri"), ("templates", "uriTemplate"), ("prompts", "name")] {
            let entries = surface[name].as_array().map(Vec::as_slice).unwrap_or_default();
            list(name, "none", entries.iter().map(|entry| shown(entry, id)).collect());
        }
        list("instructions", "none", surface["instructions"].as_str().map(quoted).into_iter().collect());
        list("files", "none", self.files.lines());
    }
}

/// An entry of a surface: what it is called, what it says of itself, and what it takes.
fn shown(entry: &Value, id: &str) -> String {
    let mut text = quoted(entry[id].as_str().unwrap_or_default());
    if let Some(description) = entry["description"].as_str() {
        text = format!("{text}: {}", quoted(description));
    }
    if let Some(arguments) = entry["inputSchema"]["properties"].as_object().filter(|map| !map.is_empty()) {
        let names: Vec<_> = arguments.keys().map(|name| quoted(name)).collect();
        text = format!("{text}, takes {}", names.join(", "));
    }
    text
}

/// A secret, and where the host puts it.
fn bound(binding: &Binding) -> String {
    let hosts: Vec<_> = binding.hosts.iter().map(ToString::to_string).collect();
    let asked = if binding.asked { ", where the request asks for it" } else { ", in every request" };
    let from = binding.connection.as_ref().map_or(String::new(), |name| format!(" (the token of provider {name})"));
    let (place, format) = (json!(binding.place), json!(binding.format));
    format!("{}{from} to {}: at {place} as {format}{asked}", binding.name, hosts.join(", "))
}

/// As JSON, a stranger's text cannot end before its quotation mark and go on as if it were ours.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => {
            format!("{}… ({} characters; `--json` has all)", Value::from(&text[..end]), text.chars().count())
        }
        None => Value::from(text).to_string(),
    }
}

//! What differs between two locks.

use crate::surface::LISTS;
use crate::text::reveal;
use crate::{Binding, Digest, Lock, Surface, canonical_digest};
use policy::{Boundary, LimitName};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// What kind of thing differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    ToolAdded,
    ToolRemoved,
    ToolChanged,
    ResourceAdded,
    ResourceRemoved,
    ResourceChanged,
    TemplateAdded,
    TemplateRemoved,
    TemplateChanged,
    PromptAdded,
    PromptRemoved,
    PromptChanged,
    /// Input or output schema of a tool.
    SchemaChanged,
    /// Description or title of a tool, resource, template or prompt.
    DescriptionChanged,
    AnnotationChanged,
    InstructionsChanged,
    /// Whatever else the server says of itself: its name, its version.
    SurfaceChanged,
    HostAdded,
    HostRemoved,
    SecretAdded,
    SecretRemoved,
    /// Hosts, place or format of a secret.
    SecretChanged,
    EndpointAdded,
    EndpointRemoved,
    LimitRaised,
    LimitLowered,
    WallChanged,
    BoundaryChanged,
    JitChanged,
    /// What is started: program, arguments, variables.
    CommandChanged,
    /// The locks are of two servers.
    ServerChanged,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub kind: Kind,
    /// What it belongs to: `tool`, `host`, `limit` …
    pub of: &'static str,
    /// What that is called; may be empty.
    pub name: String,
    /// Where it stands in the new lock, or in the old one if it is gone from the new (RFC 6901).
    pub pointer: String,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

/// What differs between two locks.
pub struct Drift;

/// A change in more places than these is shown as one of the whole.
const MOST_PLACES: usize = 32;
/// No pointer goes deeper once it is so long: keys may be as long as a lock.
const LONGEST_POINTER: usize = 512;

impl Drift {
    /// Every difference in what is shown and what is allowed, in a fixed order. Files and the step are no drift.
    pub fn between(old: &Lock, new: &Lock) -> Vec<Change> {
        let mut changes = Vec::new();
        if old.server != new.server {
            changes.push(Change {
                kind: Kind::ServerChanged,
                of: "server",
                name: new.server.to_string(),
                pointer: "/server".to_owned(),
                old: Some(old.server.as_str().into()),
                new: Some(new.server.as_str().into()),
            });
        }
        surfaces(&old.surface, &new.surface, &mut changes);
        let hosts = (Kind::HostAdded, Kind::HostRemoved);
        sets("host", "/egress", hosts, &old.egress, &new.egress, &mut changes);
        secrets(&old.secrets, &new.secrets, &mut changes);
        let endpoints = (Kind::EndpointAdded, Kind::EndpointRemoved);
        sets("endpoint", "/endpoints", endpoints, &old.endpoints, &new.endpoints, &mut changes);
        let (was, is) = (old.limits(), new.limits());
        for name in LimitName::ALL.iter().copied() {
            let (was, is) = (was.get(name), is.get(name));
            if was != is {
                changes.push(Change {
                    kind: if is > was { Kind::LimitRaised } else { Kind::LimitLowered },
                    of: "limit",
                    name: name.to_string(),
                    pointer: format!("/limits/{name}"),
                    old: Some(was.into()),
                    new: Some(is.into()),
                });
            }
        }
        let (was, is) = (old.value(), new.value());
        let kinds = [
            ("wall", Kind::WallChanged),
            ("boundary", Kind::BoundaryChanged),
            ("jit", Kind::JitChanged),
            ("command", Kind::CommandChanged),
        ];
        for (key, kind) in kinds.into_iter().filter(|(key, _)| was.get(key) != is.get(key)) {
            let (old, new) = (was.get(key).cloned(), is.get(key).cloned());
            changes.push(Change { kind, of: key, name: String::new(), pointer: format!("/{key}"), old, new });
        }
        changes
    }

    /// What an author who saw these changes signs; nothing when there are none.
    pub fn digest(changes: &[Change]) -> Option<Digest> {
        (!changes.is_empty()).then(|| canonical_digest(&json!(changes)))
    }
}

impl Change {
    /// Whether there is more than before, or something else, to be agreed to. Only what surely takes away does not widen;
    /// it is drift all the same.
    pub fn widens(&self) -> bool {
        match self.kind {
            Kind::ToolRemoved | Kind::ResourceRemoved | Kind::TemplateRemoved | Kind::PromptRemoved => false,
            Kind::HostRemoved | Kind::SecretRemoved | Kind::EndpointRemoved | Kind::LimitLowered => false,
            Kind::JitChanged => self.new != Some(Value::Bool(false)),
            Kind::BoundaryChanged => rank(self.new.as_ref()) >= rank(self.old.as_ref()),
            _ => true,
        }
    }
}

/// How much shares a compartment.
fn rank(boundary: Option<&Value>) -> u8 {
    match boundary.and_then(Value::as_str).and_then(|text| text.parse().ok()) {
        Some(Boundary::Call) => 0,
        Some(Boundary::Session) => 1,
        Some(Boundary::Server) => 2,
        Some(Boundary::Tenant) | None => 3,
    }
}

fn sets<T: Ord + fmt::Display + Serialize>(
    of: &'static str,
    pointer: &str,
    (added, removed): (Kind, Kind),
    old: &BTreeSet<T>,
    new: &BTreeSet<T>,
    changes: &mut Vec<Change>,
) {
    for (kind, here, there) in [(removed, old, new), (added, new, old)] {
        for (index, entry) in here.iter().enumerate().filter(|(_, entry)| !there.contains(*entry)) {
            let value = Some(json!(entry));
            let (old, new) = if kind == added { (None, value) } else { (value, None) };
            let (name, pointer) = (entry.to_string(), format!("{pointer}/{index}"));
            changes.push(Change { kind, of, name, pointer, old, new });
        }
    }
}

/// A secret that is bound otherwise than before is one change, and not one that goes and one that comes.
fn secrets(old: &BTreeSet<Binding>, new: &BTreeSet<Binding>, changes: &mut Vec<Change>) {
    let mut found = Vec::new();
    sets("secret", "/secrets", (Kind::SecretAdded, Kind::SecretRemoved), old, new, &mut found);
    let (removed, mut added): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.kind == Kind::SecretRemoved);
    for gone in removed {
        match added.iter().position(|come| come.name == gone.name) {
            Some(at) => {
                let come = added.remove(at);
                changes.push(Change { kind: Kind::SecretChanged, old: gone.old, ..come });
            }
            None => changes.push(gone),
        }
    }
    changes.extend(added);
}

/// What entries of a list are called, and the kinds of their changes.
fn kinds(list: &str) -> (&'static str, Kind, Kind, Kind) {
    match list {
        "tools" => ("tool", Kind::ToolAdded, Kind::ToolRemoved, Kind::ToolChanged),
        "resources" => ("resource", Kind::ResourceAdded, Kind::ResourceRemoved, Kind::ResourceChanged),
        "templates" => ("template", Kind::TemplateAdded, Kind::TemplateRemoved, Kind::TemplateChanged),
        _ => ("prompt", Kind::PromptAdded, Kind::PromptRemoved, Kind::PromptChanged),
    }
}

fn surfaces(old: &Surface, new: &Surface, changes: &mut Vec<Change>) {
    for (list, id) in LISTS {
        let (of, added, removed, changed) = kinds(list);
        let (was, is) = (old.entries(list, id), new.entries(list, id));
        for name in was.keys().chain(is.keys()).copied().collect::<BTreeSet<_>>() {
            let pointer = |index: &usize| format!("/surface/{list}/{index}");
            let whole =
                |kind, index, old, new| Change { kind, of, name: name.to_owned(), pointer: pointer(index), old, new };
            match (was.get(name), is.get(name)) {
                (Some((before, was)), Some((after, is))) => {
                    let kind = |key: &str| match key {
                        "description" | "title" => Kind::DescriptionChanged,
                        "inputSchema" | "outputSchema" => Kind::SchemaChanged,
                        "annotations" => Kind::AnnotationChanged,
                        _ => changed,
                    };
                    members(was, is, [&pointer(before), &pointer(after)], of, name, kind, changes);
                }
                (Some((index, was)), None) => changes.push(whole(removed, index, Some((*was).clone()), None)),
                (None, Some((index, is))) => changes.push(whole(added, index, None, Some((*is).clone()))),
                (None, None) => {}
            }
        }
    }
    let rest = |surface: &Surface| {
        let mut map = surface.value().as_object().cloned().unwrap_or_default();
        map.retain(|key, _| LISTS.iter().all(|(list, _)| list != key));
        Value::Object(map)
    };
    let kind = |key: &str| if key == "instructions" { Kind::InstructionsChanged } else { Kind::SurfaceChanged };
    members(&rest(old), &rest(new), ["/surface"; 2], "server", "", kind, changes);
}

/// The differences in the members of two objects, each as deep as it lies. The pointers say where the objects stand.
fn members(
    old: &Value,
    new: &Value,
    [before, after]: [&str; 2],
    of: &'static str,
    name: &str,
    kind: impl Fn(&str) -> Kind,
    changes: &mut Vec<Change>,
) {
    let none = Map::new();
    let (was, is) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    for key in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
        let whole = Place { pointer: below("", key), old: was.get(key), new: is.get(key) };
        let mut places = Vec::new();
        descend(whole.clone(), &mut places);
        if places.len() > MOST_PLACES {
            places = vec![whole];
        }
        changes.extend(places.into_iter().map(|Place { pointer, old, new }| Change {
            kind: kind(key),
            of,
            name: name.to_owned(),
            pointer: format!("{}{pointer}", if new.is_some() { after } else { before }),
            old: old.cloned(),
            new: new.cloned(),
        }));
    }
}

#[derive(Clone)]
struct Place<'v> {
    pointer: String,
    old: Option<&'v Value>,
    new: Option<&'v Value>,
}

fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn descend<'v>(place: Place<'v>, places: &mut Vec<Place<'v>>) {
    if place.old == place.new || places.len() > MOST_PLACES {
        return;
    }
    match (place.old, place.new) {
        (Some(Value::Object(was)), Some(Value::Object(is))) if place.pointer.len() <= LONGEST_POINTER => {
            for key in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
                descend(Place { pointer: below(&place.pointer, key), old: was.get(key), new: is.get(key) }, places);
            }
        }
        _ => places.push(place),
    }
}

/// One line for a terminal: nothing in it is invisible, and what is long is cut.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As JSON, what comes from outside cannot end before its quotation mark and go on as if it were ours.
        let json = |text: &str| Value::from(text).to_string();
        let (mark, what) = match self.kind {
            Kind::ToolAdded | Kind::ResourceAdded | Kind::TemplateAdded | Kind::PromptAdded => ('+', "added"),
            Kind::ToolRemoved | Kind::ResourceRemoved | Kind::TemplateRemoved | Kind::PromptRemoved => ('-', "removed"),
            Kind::HostAdded | Kind::SecretAdded | Kind::EndpointAdded => ('+', "added"),
            Kind::HostRemoved | Kind::SecretRemoved | Kind::EndpointRemoved => ('-', "removed"),
            Kind::SchemaChanged => ('~', "schema changed"),
            Kind::DescriptionChanged => ('~', "description changed"),
            Kind::AnnotationChanged => ('~', "annotation changed"),
            Kind::InstructionsChanged => ('~', "instructions changed"),
            Kind::LimitRaised => ('~', "raised"),
            Kind::LimitLowered => ('~', "lowered"),
            _ => ('~', "changed"),
        };
        write!(f, "{mark} {}", self.of)?;
        if !self.name.is_empty() {
            write!(f, " {}", excerpt(&json(&self.name), 0))?;
        }
        write!(f, " {what} at {}: ", excerpt(&json(&self.pointer), 0))?;
        let text = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
        let (old, new) = (text(&self.old), text(&self.new));
        match mark {
            '+' => f.write_str(&excerpt(&new, 0)),
            '-' => f.write_str(&excerpt(&old, 0)),
            _ => {
                let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
                write!(f, "{} → {}", excerpt(&old, common), excerpt(&new, common))
            }
        }
    }
}

/// JSON with nothing hidden in it. Of long JSON the part around the character that matters.
fn excerpt(json: &str, matters: usize) -> String {
    const MOST: usize = 160;
    const BEFORE: usize = 40;
    let length = json.chars().count();
    if length <= MOST {
        return reveal(json);
    }
    let chars: Vec<char> = json.chars().collect();
    let mut start = matters.saturating_sub(BEFORE).min(length - MOST);
    // Never between a backslash and what it escapes: that would read as something else.
    let backslashes = chars[..start].iter().rev().take_while(|c| **c == '\\').count();
    start -= backslashes % 2;
    let end = start + MOST;
    let cut: String = chars[start..end].iter().collect();
    let (head, tail) = (if start > 0 { "…" } else { "" }, if end < length { "…" } else { "" });
    format!("{head}{}{tail} ({length} characters)", reveal(&cut))
}

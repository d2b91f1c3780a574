//! From the text of a file to a manifest, or to everything that is wrong with it.

use super::keys::{ENVIRONMENT, HTTP, HTTP_KEYS, KEYS, LIMITS};
use super::program::Draft;
use super::secrets::{SECRET_KEYS, SECRETS};
use super::{Manifest, ManifestError, Problem, Wall};
use crate::text::{message, nearest, quote, visible};
use crate::{ServerName, Wrong, is_hidden};
use policy::{Boundary, LimitName, Limits};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;
use toml::de::{DeTable, DeValue};

/// A list of problems that nobody can read through helps nobody.
const MOST_PROBLEMS: usize = 20;
/// Lists are written by hand.
const MOST_ENTRIES: usize = 256;
const LONGEST_DESCRIPTION: usize = 1024;

/// Something found at an offset. What to say about a key that does not exist is thought about when it is shown.
enum Finding<'t> {
    Wrong(Wrong),
    Unknown { table: &'static str, key: &'t str, is_table: bool },
}

struct Found<'t> {
    offset: usize,
    key: String,
    finding: Finding<'t>,
}

impl Found<'_> {
    fn wrong(offset: usize, key: &str, wrong: Wrong) -> Self {
        Found { offset, key: key.to_owned(), finding: Finding::Wrong(wrong) }
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
    if bytes.len() > Manifest::LARGEST {
        let text = format!("the file has {} bytes, {} are allowed", bytes.len(), Manifest::LARGEST);
        return Err(refusal("", vec![Found::wrong(0, "", Wrong::new(text))]));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            return Err(refusal(&good, vec![Found::wrong(good.len(), "", Wrong::new("this is not UTF-8"))]));
        }
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let found = errors.iter().map(|error| {
            Found::wrong(error.span().map_or(0, |span| span.start), "", Wrong::new(message(error.message())))
        });
        return Err(refusal(text, found.collect()));
    }
    let mut reader = Reader { found: Vec::new() };
    match reader.read(table.get_ref()) {
        Some(manifest) if reader.found.is_empty() => Ok(manifest),
        _ => Err(refusal(text, reader.found)),
    }
}

fn refusal(text: &str, mut found: Vec<Found<'_>>) -> ManifestError {
    found.sort_by_key(|found| found.offset);
    let more = found.len().saturating_sub(MOST_PROBLEMS);
    found.truncate(MOST_PROBLEMS);
    let problems = found.into_iter().map(|Found { offset, key, finding }| {
        let wrong = match finding {
            Finding::Wrong(wrong) => wrong,
            Finding::Unknown { table, key, is_table } => unknown(table, key, is_table),
        };
        let before = text.get(..offset.min(text.len())).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Problem { line, column, key, message: wrong.message, hint: wrong.hint }
    });
    ManifestError { problems: problems.collect(), more }
}

pub(super) struct Reader<'t> {
    found: Vec<Found<'t>>,
}

impl<'t> Reader<'t> {
    /// `None` only if something was found.
    fn read(&mut self, top: &'t DeTable<'_>) -> Option<Manifest> {
        let (mut name, mut program) = (None::<ServerName>, Draft::default());
        let wall = self.wall(top);
        let (mut description, mut boundary, mut jit) = (String::new(), wall.boundary(), false);
        let (mut limits, mut egress, mut secrets) = (wall.limits(), BTreeSet::new(), BTreeSet::new());
        for (key, value) in top.iter() {
            let (place, inner) = (value.span(), value.get_ref());
            let known_as = key.get_ref().as_ref();
            self.belongs(wall, known_as, key.span());
            match known_as {
                "name" => name = self.take(place, "name", word(inner)),
                "entry" => program.entry = self.take(place, "entry", word(inner)),
                "command" => program.words = self.words(place, inner),
                ENVIRONMENT => program.environment = self.environment(place, inner),
                HTTP => program.http = self.http(place, inner),
                "description" => self.set(&mut description, place, "description", prose(inner)),
                "wall" => {}
                "boundary" => self.set(&mut boundary, place, "boundary", choice(inner, BOUNDARIES)),
                "jit" => self.set(&mut jit, place, "jit", truth(inner)),
                "egress" => egress = self.list(place, "egress", inner),
                SECRETS => secrets = self.bindings(place, inner),
                LIMITS => self.limits(&mut limits, place, inner),
                other => self.unknown("", other, key.span(), inner),
            }
        }
        let runs = match wall {
            Wall::Isolate => ("entry", "\"server.js\""),
            Wall::Process => ("command", "[\"python3\", \"server.py\"]"),
        };
        for (key, such) in [("name", "\"my-server\""), runs] {
            if !top.contains_key(key) {
                let wrong = Wrong::new("this key is needed").hint(format!("such as `{key} = {such}`"));
                self.found.push(Found::wrong(0, key, wrong));
            }
        }
        let place = top.get(runs.0).map_or(0..0, |value| value.span());
        let program = self.take(place, runs.0, program.program(wall)?)?;
        Some(Manifest { name: name?, description, program, wall, boundary, jit, limits, egress, secrets })
    }

    /// It is looked at first, because the defaults of others depend on it.
    fn wall(&mut self, top: &DeTable<'_>) -> Wall {
        let words = Wall::ALL.map(|wall| (wall.as_str(), wall));
        let mut wall = Wall::default();
        if let Some(value) = top.get("wall") {
            self.set(&mut wall, value.span(), "wall", choice(value.get_ref(), &words));
        }
        wall
    }

    /// How much is wrong so far.
    pub(super) fn found(&self) -> usize {
        self.found.len()
    }

    pub(super) fn take<T>(&mut self, place: Range<usize>, key: &str, value: Result<T, Wrong>) -> Option<T> {
        value.map_err(|wrong| self.found.push(Found::wrong(place.start, key, wrong))).ok()
    }

    fn set<T>(&mut self, slot: &mut T, place: Range<usize>, key: &str, value: Result<T, Wrong>) {
        if let Some(value) = self.take(place, key, value) {
            *slot = value;
        }
    }

    /// Each entry is looked at, and each that is wrong is named where it stands.
    pub(super) fn list<T>(&mut self, place: Range<usize>, key: &str, value: &DeValue<'_>) -> BTreeSet<T>
    where
        T: FromStr<Err = Wrong> + Ord + Display,
    {
        let mut set = BTreeSet::new();
        let list = value.as_array().ok_or_else(|| mismatch(value, "a list of texts"));
        let Some(list) = self.take(place.clone(), key, list) else { return set };
        if list.len() > MOST_ENTRIES {
            let wrong = Wrong::new(format!("the list has {} entries, {MOST_ENTRIES} are allowed", list.len()));
            self.found.push(Found::wrong(place.start, key, wrong));
            return set;
        }
        for entry in list.iter() {
            let read = word::<T>(entry.get_ref()).and_then(|word| {
                let twice = Wrong::new(format!("`{word}` stands here twice"));
                if set.insert(word) { Ok(()) } else { Err(twice) }
            });
            self.take(entry.span(), key, read);
        }
        set
    }

    fn limits(&mut self, limits: &mut Limits, place: Range<usize>, value: &'t DeValue<'_>) {
        let table = value.as_table().ok_or_else(|| {
            Wrong::new(format!("`{LIMITS}` is a table")).hint(format!("write `[{LIMITS}]` on a line of its own"))
        });
        let Some(table) = self.take(place, LIMITS, table) else { return };
        for (key, value) in table.iter() {
            let Ok(name) = key.get_ref().parse::<LimitName>() else {
                self.unknown(LIMITS, key.get_ref(), key.span(), value.get_ref());
                continue;
            };
            if let Some(number) = self.take(value.span(), &format!("{LIMITS}.{name}"), limit(name, value.get_ref())) {
                limits.set(name, number);
            }
        }
    }

    pub(super) fn unknown(&mut self, table: &'static str, key: &'t str, place: Range<usize>, value: &DeValue<'_>) {
        let short: String = key.chars().take(64).collect();
        let full = if table.is_empty() { visible(&short) } else { format!("{table}.{}", visible(&short)) };
        let finding = Finding::Unknown { table, key, is_table: value.is_table() };
        self.found.push(Found { offset: place.start, key: full, finding });
    }
}

const BOUNDARIES: &[(&str, Boundary)] = &[
    ("call", Boundary::Call),
    ("session", Boundary::Session),
    ("server", Boundary::Server),
    ("tenant", Boundary::Tenant),
];

pub(super) fn mismatch(value: &DeValue<'_>, needed: &str) -> Wrong {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    Wrong::new(format!("{needed} is needed, this is {article} {kind}"))
}

pub(super) fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, Wrong> {
    value.as_str().ok_or_else(|| mismatch(value, "text"))
}

pub(super) fn word<T: FromStr<Err = Wrong>>(value: &DeValue<'_>) -> Result<T, Wrong> {
    text(value)?.parse()
}

fn prose(value: &DeValue<'_>) -> Result<String, Wrong> {
    let text = text(value)?;
    let length = text.chars().count();
    if length > LONGEST_DESCRIPTION {
        return Err(Wrong::new(format!("this text has {length} characters, {LONGEST_DESCRIPTION} are allowed")));
    }
    match text.chars().find(|c| is_hidden(*c)) {
        Some(c) => {
            Err(Wrong::new(format!("this text has invisible characters, such as `{}`", visible(&c.to_string()))))
        }
        None => Ok(text.to_owned()),
    }
}

pub(super) fn truth(value: &DeValue<'_>) -> Result<bool, Wrong> {
    value.as_bool().ok_or_else(|| mismatch(value, "true or false"))
}

fn choice<T: Copy>(value: &DeValue<'_>, known: &[(&'static str, T)]) -> Result<T, Wrong> {
    let text = text(value)?;
    if let Some((_, found)) = known.iter().find(|(word, _)| *word == text) {
        return Ok(*found);
    }
    let words = known.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let wrong = Wrong::new(format!("{} is none of {words}", quote(text)));
    Err(match nearest(text, known.iter().map(|(word, _)| *word)) {
        Some(word) => wrong.hint(format!("did you mean `{word}`?")),
        None => wrong,
    })
}

fn limit(name: LimitName, value: &DeValue<'_>) -> Result<u64, Wrong> {
    let DeValue::Integer(written) = value else { return Err(mismatch(value, "a whole number")) };
    let (least, most) = (Limits::LEAST.get(name), Limits::MOST.get(name));
    let number = u64::from_str_radix(written.as_str(), written.radix()).ok();
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| Wrong::new(format!("{} is not between {least} and {most}", quote(&written.to_string()))))
}

fn unknown(table: &str, key: &str, is_table: bool) -> Wrong {
    let limits = || LimitName::ALL.iter().map(|name| name.as_str());
    let here: Vec<&str> = match table {
        "" => KEYS.iter().map(|key| key.name).chain([ENVIRONMENT, HTTP, LIMITS, SECRETS]).collect(),
        HTTP => HTTP_KEYS.iter().map(|(name, ..)| *name).collect(),
        SECRETS => SECRET_KEYS.iter().map(|(name, ..)| *name).collect(),
        _ => limits().collect(),
    };
    let wrong = Wrong::new(if is_table { "there is no such table" } else { "there is no such key" });
    if let Some(near) = nearest(key, here.iter().copied()) {
        return wrong.hint(format!("did you mean `{near}`?"));
    }
    if table.is_empty() && limits().any(|name| name == key) {
        return wrong.hint(format!("`{key}` belongs to `[{LIMITS}]`"));
    }
    if !table.is_empty() && KEYS.iter().any(|known| known.name == key) {
        return wrong.hint(format!("`{key}` stands above all tables"));
    }
    wrong.hint(format!("there are {}", here.join(", ")))
}

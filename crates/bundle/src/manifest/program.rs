//! What says which program runs: `entry`, or `command` with `[environment]` and `[http]`.

use super::Wall;
use super::keys::{ENVIRONMENT, HTTP};
use super::read::{Reader, mismatch, text, truth};
use crate::program::{Command, Http, Program, variable, word};
use crate::{FilePath, Wrong};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// What stands in the file so far.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) entry: Option<FilePath>,
    pub(super) words: Option<Vec<String>>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) http: Option<Http>,
}

impl Draft {
    /// Where the values are good, so is the whole, but for how many there are.
    pub(super) fn program(self, wall: Wall) -> Option<Result<Program, Wrong>> {
        match wall {
            Wall::Isolate => self.entry.map(|entry| Ok(Program::Module { entry })),
            Wall::Process => {
                let command = Command::new(self.words?, self.environment, self.http);
                Some(command.map(Program::Command))
            }
        }
    }
}

impl<'t> Reader<'t> {
    /// Keys that the wall has no use for are no keys.
    pub(super) fn belongs(&mut self, wall: Wall, key: &str, place: Range<usize>) {
        let other = match (wall, key) {
            (Wall::Isolate, "command" | ENVIRONMENT | HTTP) => Wall::Process,
            (Wall::Process, "entry" | "jit") => Wall::Isolate,
            _ => return,
        };
        let wrong = Wrong::new(format!("this belongs to `wall = \"{}\"`", other.as_str()));
        let _: Option<()> = self.take(place, key, Err(wrong));
    }

    pub(super) fn words(&mut self, place: Range<usize>, value: &DeValue<'_>) -> Option<Vec<String>> {
        let such = "such as `command = [\"python3\", \"server.py\"]`";
        let list = value.as_array().ok_or_else(|| mismatch(value, "a list of texts").hint(such));
        let list = self.take(place, "command", list)?;
        let mut words = Vec::new();
        for entry in list.iter() {
            let read = text(entry.get_ref()).and_then(|text| word(text).map(|()| text.to_owned()));
            words.push(self.take(entry.span(), "command", read)?);
        }
        Some(words)
    }

    pub(super) fn environment(&mut self, place: Range<usize>, value: &DeValue<'_>) -> BTreeMap<String, String> {
        let mut environment = BTreeMap::new();
        let Some(table) = self.table(place, ENVIRONMENT, value) else { return environment };
        for (key, value) in table.iter() {
            let name = key.get_ref().as_ref();
            let read = text(value.get_ref()).and_then(|text| variable(name, text).map(|()| text.to_owned()));
            if let Some(value) = self.take(value.span(), ENVIRONMENT, read) {
                environment.insert(name.to_owned(), value);
            }
        }
        environment
    }

    pub(super) fn http(&mut self, place: Range<usize>, value: &'t DeValue<'_>) -> Option<Http> {
        let before = self.found();
        let table = self.table(place.clone(), HTTP, value)?;
        let (mut port, mut path, mut sse) = (None, None, false);
        for (key, value) in table.iter() {
            let (at, inner) = (value.span(), value.get_ref());
            match key.get_ref().as_ref() {
                "port" => port = self.take(at, "http.port", number(inner)),
                "path" => path = self.take(at, "http.path", text(inner).map(str::to_owned)),
                "sse" => sse = self.take(at, "http.sse", truth(inner)).unwrap_or_default(),
                other => self.unknown(HTTP, other, key.span(), inner),
            }
        }
        if !table.contains_key("port") {
            let wrong = Wrong::new("this key is needed").hint("such as `port = 8000`");
            let _: Option<()> = self.take(place.clone(), "http.port", Err(wrong));
        }
        if self.found() > before {
            return None;
        }
        let path = path.unwrap_or_else(|| if sse { "/sse" } else { "/mcp" }.to_owned());
        let http = Http { port: port?, path, sse };
        self.take(place, HTTP, http.check().map(|()| http))
    }

    fn table<'v>(&mut self, place: Range<usize>, key: &str, value: &'v DeValue<'_>) -> Option<&'v DeTable<'v>> {
        let table = value.as_table().ok_or_else(|| {
            Wrong::new(format!("`{key}` is a table")).hint(format!("write `[{key}]` on a line of its own"))
        });
        self.take(place, key, table)
    }
}

fn number(value: &DeValue<'_>) -> Result<u16, Wrong> {
    let DeValue::Integer(written) = value else { return Err(mismatch(value, "a whole number")) };
    let number = u16::from_str_radix(written.as_str(), written.radix()).ok().filter(|number| *number > 0);
    number.ok_or_else(|| Wrong::new("a port is a number from 1 to 65535"))
}

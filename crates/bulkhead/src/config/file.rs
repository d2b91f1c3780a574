//! From the text of a file to a configuration, or to everything that is wrong with it.

use super::value::Wrong;
use super::{Config, full_name, nearest};
use gateway::auth::Authenticator;
use gateway::guard::GuardSettingsError;
use serde::Serialize;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Something wrong at a place in the file. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub line: usize,
    pub column: usize,
    /// Empty when the file is no TOML at all.
    pub key: String,
    pub message: String,
    pub hint: Option<String>,
}

/// A list of problems that nobody can read through helps nobody.
const MOST_PROBLEMS: usize = 50;

/// Reads a file's bytes. All problems are reported, not only the first.
pub fn parse(bytes: &[u8]) -> Result<Config, Vec<Problem>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            return Err(vec![at(&good, good.len()..good.len(), "", Wrong::new("this is not UTF-8"))]);
        }
    };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            return Err(vec![at(text, error.span().unwrap_or(0..0), "", Wrong::new(message))]);
        }
    };
    let mut reader = Reader { text, config: Config::default(), problems: Vec::new() };
    reader.read(table.get_ref());
    if reader.problems.is_empty() {
        reader.compare();
    }
    let Reader { config, mut problems, .. } = reader;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.truncate(MOST_PROBLEMS);
    if problems.is_empty() { Ok(config) } else { Err(problems) }
}

struct Reader<'t> {
    text: &'t str,
    config: Config,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn read(&mut self, top: &DeTable<'_>) {
        let tables: Vec<_> =
            Config::tables().into_iter().map(|table| table.name).filter(|name| !name.is_empty()).collect();
        for (name, value) in top.iter() {
            let key = name.get_ref().as_ref();
            if !tables.contains(&key) {
                self.value("", key, name.span(), value.span(), value.get_ref());
                continue;
            }
            let DeValue::Table(table) = value.get_ref() else {
                let wrong =
                    Wrong::new(format!("`{key}` is a table")).hint(format!("write `[{key}]` on a line of its own"));
                self.problem(value.span(), key, wrong);
                continue;
            };
            for (name, value) in table.iter() {
                self.value(key, name.get_ref(), name.span(), value.span(), value.get_ref());
            }
        }
    }

    fn value(&mut self, table: &str, key: &str, name: Range<usize>, place: Range<usize>, value: &DeValue<'_>) {
        match self.config.read(table, key, value) {
            Some(Ok(())) => {}
            Some(Err(wrong)) => self.problem(place, &full_name(table, key), wrong),
            None => self.problem(name, &full_name(table, key), unknown(table, key, value)),
        }
    }

    /// What single values cannot show.
    fn compare(&mut self) {
        let config = &self.config;
        let mut wrong: Vec<(&str, Wrong)> = Vec::new();
        if !config.trace.headers.0.is_empty() && config.trace.otlp_endpoint.is_none() {
            wrong.push(("trace.headers", Wrong::new("`trace.otlp_endpoint` is not set, so nothing is sent")));
        }
        if let Err(error) = crate::logging::filter(&config.log.filter) {
            wrong.push(("log.filter", Wrong::new(error)));
        }
        if config.oauth.issuer.is_none() && config.oauth.jwks_url.is_some() {
            wrong.push(("oauth.jwks_url", Wrong::new("`oauth.issuer` is needed as well")));
        }
        // Whoever uses them knows best.
        let settings = config.gateway();
        if let Err(error) = settings.guard.check() {
            let key = match &error {
                GuardSettingsError::BadHost(_) => "allowed_hosts",
                GuardSettingsError::BadOrigin(_) => "allowed_origins",
            };
            wrong.push((key, Wrong::new(error.to_string()).hint(error.hint())));
        }
        if let Err(error) = Authenticator::new(settings.auth) {
            let mut refusal = Wrong::new(error.to_string());
            refusal.hint = error.hint().map(str::to_owned);
            wrong.push(("oauth.issuer", refusal));
        }
        for (key, wrong) in wrong {
            let place = place(self.text, key);
            self.problem(place, key, wrong);
        }
    }

    fn problem(&mut self, place: Range<usize>, key: &str, wrong: Wrong) {
        self.problems.push(at(self.text, place, key, wrong));
    }
}

/// Where a key's value stands. The start of the file for one that is not written down.
fn place(text: &str, key: &str) -> Range<usize> {
    let mut found = 0..0;
    let Ok(top) = DeTable::parse(text) else { return found };
    let mut table = top.get_ref().clone();
    for part in key.split('.') {
        let Some(value) = table.get(part).cloned() else { return found };
        found = value.span();
        match value.into_inner() {
            DeValue::Table(inner) => table = inner,
            _ => return found,
        }
    }
    found
}

fn unknown(table: &str, key: &str, value: &DeValue<'_>) -> Wrong {
    let is_table = matches!(value, DeValue::Table(_));
    let tables = Config::tables();
    let here: Vec<&str> =
        tables.iter().filter(|t| t.name == table).flat_map(|t| t.keys.iter().map(|k| k.name)).collect();
    let names = tables.iter().map(|t| t.name).filter(|name| !name.is_empty() && table.is_empty());
    let wrong =
        Wrong::new(if is_table && table.is_empty() { "there is no such table" } else { "there is no such key" });
    if let Some(near) = nearest(key, here.iter().copied().chain(names.clone())) {
        return wrong.hint(format!("did you mean `{near}`?"));
    }
    let elsewhere = tables.iter().find(|t| t.keys.iter().any(|k| k.name == key));
    if let Some(elsewhere) = elsewhere.filter(|_| !is_table) {
        return wrong.hint(match elsewhere.name {
            "" => format!("`{key}` stands above all tables"),
            name => format!("`{key}` belongs to `[{name}]`"),
        });
    }
    let known: Vec<_> = if is_table && table.is_empty() { names.collect() } else { here };
    wrong.hint(format!("there are {}", known.join(", ")))
}

fn at(text: &str, place: Range<usize>, key: &str, wrong: Wrong) -> Problem {
    let before = text.get(..place.start.min(text.len())).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Problem { line, column, key: key.to_owned(), message: wrong.message, hint: wrong.hint }
}

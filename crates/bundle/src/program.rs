//! What a deployment runs.

use crate::text::quote;
use crate::{FilePath, Wrong, is_hidden};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The index of a layer, among the files of a deployment that runs a command.
pub const LAYER: &str = "layer.json";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// One of its files, as a module.
    Module { entry: FilePath },
    /// A command, in the folder of its layer.
    Command(Command),
}

impl Program {
    /// The one of the files that decides what runs.
    pub fn file(&self) -> &str {
        match self {
            Program::Module { entry } => entry.as_str(),
            Program::Command(_) => LAYER,
        }
    }
}

/// A program that speaks MCP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire")]
pub struct Command {
    /// The program and its arguments, as they are seen from its folder.
    pub words: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// Where it listens inside. Without it, it speaks on its standard input and output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
}

/// Where a server listens, on the loopback of its own jail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    pub port: u16,
    pub path: String,
    /// The old kind: a stream of events, and messages posted beside it.
    pub sse: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    words: Vec<String>,
    environment: BTreeMap<String, String>,
    http: Option<Http>,
}

const MOST_WORDS: usize = 256;
const LONGEST_WORD: usize = 4096;
const MOST_VARIABLES: usize = 64;
const LONGEST_NAME: usize = 128;
const LONGEST_VALUE: usize = 8192;
const LONGEST_PATH: usize = 512;

impl TryFrom<Wire> for Command {
    type Error = Wrong;

    fn try_from(Wire { words, environment, http }: Wire) -> Result<Command, Wrong> {
        if words.is_empty() || words.len() > MOST_WORDS {
            return Err(Wrong::new(format!("a command has 1 to {MOST_WORDS} words, this has {}", words.len())));
        }
        words.iter().try_for_each(|each| word(each))?;
        if words[0].is_empty() {
            return Err(Wrong::new("a command begins with a program"));
        }
        if environment.len() > MOST_VARIABLES {
            let text = format!("there are {} variables, {MOST_VARIABLES} are allowed", environment.len());
            return Err(Wrong::new(text));
        }
        environment.iter().try_for_each(|(name, value)| variable(name, value))?;
        http.iter().try_for_each(Http::check)?;
        Ok(Command { words, environment, http })
    }
}

impl Command {
    pub fn new(
        words: Vec<String>,
        environment: BTreeMap<String, String>,
        http: Option<Http>,
    ) -> Result<Command, Wrong> {
        Wire { words, environment, http }.try_into()
    }
}

impl Http {
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        if self.port == 0 {
            return Err(Wrong::new("a port is a number from 1 to 65535"));
        }
        let plain = self.path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if !self.path.starts_with('/') || !plain || self.path.len() > LONGEST_PATH {
            let text = format!("{} is no path: it begins with `/` and has no spaces", quote(&self.path));
            return Err(Wrong::new(text));
        }
        Ok(())
    }
}

/// One word of a command.
pub(crate) fn word(text: &str) -> Result<(), Wrong> {
    within("a word of a command", text, LONGEST_WORD)?;
    match text.chars().find(|c| is_hidden(*c) || c.is_control()) {
        Some(c) => Err(Wrong::new(format!("a word has invisible characters, such as {}", quote(&c.to_string())))),
        None => Ok(()),
    }
}

pub(crate) fn variable(name: &str, value: &str) -> Result<(), Wrong> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let named = name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit());
    if !named || name.len() > LONGEST_NAME {
        let text = format!("{} is no name of a variable: it has letters, digits and `_`", quote(name));
        return Err(Wrong::new(text));
    }
    within("the value of a variable", value, LONGEST_VALUE)?;
    if value.contains('\0') {
        return Err(Wrong::new("the value of a variable cannot hold the character 0"));
    }
    Ok(())
}

fn within(what: &str, text: &str, most: usize) -> Result<(), Wrong> {
    if text.len() > most {
        return Err(Wrong::new(format!("{what} has {} bytes, {most} are allowed", text.len())));
    }
    Ok(())
}

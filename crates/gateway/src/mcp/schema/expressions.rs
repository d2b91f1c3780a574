//! Expressions of a schema: what they take of memory, and what they cost for each byte of a text.

use regex_automata::nfa::thompson::NFA;
use std::collections::HashMap;

/// One expression alone.
const MOST_BYTES: usize = 1 << 20;
/// What an expression keeps of the states that it has met. It is filled when texts are looked at, by each thread.
pub const CACHE_BYTES: usize = 32 << 10;
/// The program, its reverse, and what else an engine makes of them.
const COPIES: usize = 3;
/// What an engine keeps beside that, above all of the places of a text where it has been.
const ENGINE_BYTES: usize = 96 << 10;
/// Expressions with groups are made into a table as well, of so many bytes for a state, and at most of so many.
const TABLE_STATE_BYTES: usize = 2 << 10;
const MOST_TABLE_BYTES: usize = 1 << 20;
/// Where the cache does not do, every state may be looked at for each byte: in a fifth of a step.
const STATE: f64 = 0.2;

const TOO_MANY: &str = "all expressions of the deployment together are too large; use fewer or shorter ones";

/// All expressions of one schema.
pub struct Expressions<'a> {
    /// Bytes that may be used.
    memory: usize,
    bytes: usize,
    /// What each costs.
    known: HashMap<&'a str, f64>,
}

impl<'a> Expressions<'a> {
    pub fn new(memory: usize) -> Expressions<'a> {
        Expressions { memory, bytes: 0, known: HashMap::new() }
    }

    /// Of all of them, compiled.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives what it costs for each byte of a text. The validator compiles the same expression once.
    pub fn add(&mut self, pattern: &'a str) -> Result<f64, String> {
        if let Some(cost) = self.known.get(pattern) {
            return Ok(*cost);
        }
        let left = self.memory.saturating_sub(self.bytes);
        let shown: String = pattern.chars().take(100).collect();
        let translated = jsonschema_regex::to_rust_regex(pattern);
        let translated = translated.map_err(|()| format!("`{shown}` is not an expression that this host can run"))?;
        let most = MOST_BYTES.min(left);
        let config = NFA::config().nfa_size_limit(Some(most));
        let program = NFA::compiler().configure(config).build(&translated).map_err(|error| {
            if error.size_limit().is_some() && most < MOST_BYTES {
                return TOO_MANY.to_owned();
            }
            if error.size_limit().is_some() {
                return format!("the expression `{shown}` has more than {MOST_BYTES} bytes when it is compiled");
            }
            format!(
                "`{shown}` is not an expression that this host can run: it may have no lookaround and no references"
            )
        })?;
        let grouped = program.group_info().explicit_slot_len() > 0 || program.look_set_any().contains_word();
        let table = if grouped { (program.states().len() * TABLE_STATE_BYTES).min(MOST_TABLE_BYTES) } else { 0 };
        self.bytes += COPIES * program.memory_usage() + table + CACHE_BYTES + ENGINE_BYTES;
        if self.bytes > self.memory {
            return Err(TOO_MANY.to_owned());
        }
        let cost = STATE * program.states().len() as f64;
        self.known.insert(pattern, cost);
        Ok(cost)
    }
}

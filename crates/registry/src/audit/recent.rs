//! Calls, newest first: the log read backwards, as far as needed.
//!
//! A tenant's calls may lie far back among those of others, so the text is searched in blocks for what every line of it
//! must contain, and only lines that have it are parsed. A name may have been another tenant's before: the search for a
//! tenant's calls ends at the line that says that it was created.

use super::line::LONGEST_LINE;
use super::{CallFilter, CallLine, segment};
use memchr::memmem::FinderRev;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK: u64 = 1 << 20;
/// No question reads more of the log than this.
const FARTHEST: u64 = 1 << 30;
/// Nor looks into more lines.
const MOST_PARSED: usize = 200_000;
const MOST_CALLS: usize = 1000;

pub(crate) struct Search<'a> {
    filter: &'a CallFilter,
    needle: FinderRev<'static>,
    limit: usize,
    parsed: usize,
    found: Vec<CallLine>,
    /// Lines from here on were seen already.
    below: u64,
    /// The tenant was created here. Whatever is older is of another one with its name.
    ended: bool,
}

impl<'a> Search<'a> {
    pub(crate) fn new(filter: &'a CallFilter) -> Search<'a> {
        // As it is written: names need no escapes.
        let needle = match &filter.tenant {
            Some(tenant) => format!(r#""tenant":"{tenant}""#),
            None => r#""kind":"call""#.to_owned(),
        };
        Search {
            filter,
            needle: FinderRev::new(needle.as_bytes()).into_owned(),
            limit: filter.limit.min(MOST_CALLS),
            parsed: 0,
            found: Vec::new(),
            below: filter.before_seq.unwrap_or(u64::MAX),
            ended: false,
        }
    }

    fn enough(&self) -> bool {
        self.ended || self.found.len() >= self.limit || self.parsed >= MOST_PARSED
    }

    /// Takes whole lines, the newest at the end.
    pub(crate) fn lines(&mut self, text: &[u8]) {
        let mut end = text.len();
        while !self.enough() {
            let Some(at) = self.needle.rfind(&text[..end]) else { return };
            let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
            let stop = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |newline| at + newline);
            self.parsed += 1;
            self.line(&text[start..stop]);
            end = start;
        }
    }

    fn line(&mut self, line: &[u8]) {
        match call_line(line) {
            Some(call) if call.seq < self.below => {
                self.below = call.seq;
                if self.filter.matches(&call) {
                    self.found.push(call);
                }
            }
            Some(_) => {}
            // Even if it comes after what is looked for: all of that is older still.
            None => self.ended = self.filter.tenant.as_deref().is_some_and(|tenant| creates(line, tenant)),
        }
    }

    pub(crate) fn files(mut self, dir: &Path) -> io::Result<Vec<CallLine>> {
        let mut budget = FARTHEST;
        for number in segment::list(dir)?.into_iter().rev() {
            if self.enough() || budget == 0 {
                break;
            }
            let file = File::open(segment::path(dir, number))?;
            let mut length = file.metadata()?.len();
            if self.begins_later(&file, length)? {
                continue;
            }
            self.file(&file, &mut length, &mut budget)?;
        }
        Ok(self.found)
    }

    /// Whether everything in a file comes after what is looked for. That a tenant was created in there is not noticed then:
    /// who goes on before a number must have been given that number's call for the same tenant.
    fn begins_later(&self, file: &File, length: u64) -> io::Result<bool> {
        if self.below == u64::MAX {
            return Ok(false);
        }
        let mut start = [0; 32];
        let start = &mut start[..(length as usize).min(32)];
        file.read_exact_at(start, 0)?;
        let digits = start.strip_prefix(br#"{"seq":"#).unwrap_or_default();
        let digits = &digits[..digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(0)];
        let first: Option<u64> = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        Ok(first.is_some_and(|first| first >= self.below))
    }

    fn file(&mut self, file: &File, end: &mut u64, budget: &mut u64) -> io::Result<()> {
        // The end of a line that begins in the block before.
        let mut carry: Vec<u8> = Vec::new();
        let mut text = Vec::new();
        while *end > 0 && *budget > 0 && !self.enough() {
            let size = BLOCK.min(*end);
            *end -= size;
            *budget = budget.saturating_sub(size);
            text.clear();
            text.resize(size as usize, 0);
            file.read_exact_at(&mut text, *end)?;
            text.append(&mut carry);
            let whole = match *end {
                0 => 0,
                _ => memchr::memchr(b'\n', &text).map_or(text.len(), |newline| newline + 1),
            };
            self.lines(&text[whole..]);
            carry.extend_from_slice(&text[..whole]);
            if carry.len() > LONGEST_LINE {
                carry.clear(); // no line of ours; what is left of it will not parse either
            }
        }
        Ok(())
    }
}

/// None if a line is not that of a call.
pub(crate) fn call_line(line: &[u8]) -> Option<CallLine> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        seq: u64,
        #[serde(borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        tenant: Cow<'a, str>,
        #[serde(borrow)]
        server: Cow<'a, str>,
        #[serde(borrow)]
        caller: Cow<'a, str>,
        #[serde(borrow)]
        outcome: Cow<'a, str>,
    }
    let text = std::str::from_utf8(line).ok()?.trim_end();
    let fields: Fields = serde_json::from_str(text).ok()?;
    if fields.kind != "call" {
        return None;
    }
    Some(CallLine {
        seq: fields.seq,
        tenant: fields.tenant.into_owned(),
        server: fields.server.into_owned(),
        caller: fields.caller.into_owned(),
        outcome: fields.outcome.into_owned(),
        json: RawValue::from_string(text.to_owned()).ok()?,
    })
}

/// Whether a line says that this tenant was created. Recorded arguments may have such text in them, so its fields count.
fn creates(line: &[u8], name: &str) -> bool {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        tenant: Cow<'a, str>,
        #[serde(borrow)]
        action: Cow<'a, str>,
    }
    if memchr::memmem::find(line, br#""action":"tenant.create""#).is_none() {
        return false;
    }
    serde_json::from_slice(line).is_ok_and(|fields: Fields| {
        fields.kind == "change" && fields.action == "tenant.create" && fields.tenant == name
    })
}

//! Calls, newest first: the log read backwards, as far as needed.
//!
//! A tenant's calls may lie far back among those of others, so the text is searched in blocks for what every line of it
//! must contain, and only lines that have it are parsed. A name may have been another tenant's before: the search for a
//! tenant's calls ends at the line that says that it was created.
//!
//! No search reads for ever: one that has read enough says where it stopped, and the next goes on there. Lines are in the
//! order of their numbers, so that place is found without reading what comes after it.

use super::line::{LONGEST_LINE, sequence as number_of};
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
/// Enough to find a line's end, mostly.
const PROBE: u64 = 8 << 10;
/// No search reads more of the log than this.
const FARTHEST: u64 = 1 << 30;
/// Nor looks into more lines.
const MOST_PARSED: usize = 200_000;
const MOST_CALLS: usize = 1000;
/// Up to the number and what follows it: enough for [`number_of`].
const LONGEST_BEGINNING: usize = 64;

/// What a search has found.
#[derive(Debug, Default)]
pub struct Recent {
    /// Newest first.
    pub calls: Vec<CallLine>,
    /// The number before which to go on; none when nothing is left to be looked at.
    pub next: Option<u64>,
}

pub(crate) struct Search<'a> {
    filter: &'a CallFilter,
    needle: FinderRev<'static>,
    limit: usize,
    /// What it may still read, in bytes, and look into, in lines.
    bytes_left: u64,
    lines_left: usize,
    found: Vec<CallLine>,
    /// Lines from here on were seen already.
    below: u64,
    /// The oldest line that was looked at.
    reached: Option<u64>,
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
            bytes_left: FARTHEST,
            lines_left: MOST_PARSED,
            found: Vec::new(),
            below: filter.before_seq.unwrap_or(u64::MAX),
            reached: None,
            ended: false,
        }
    }

    fn enough(&self) -> bool {
        self.ended || self.found.len() >= self.limit || self.lines_left == 0
    }

    /// Takes whole lines, the newest at the end.
    pub(crate) fn lines(&mut self, text: &[u8]) {
        let mut end = text.len();
        while !self.enough() {
            let Some(at) = self.needle.rfind(&text[..end]) else {
                end = 0;
                break;
            };
            let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
            let stop = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |newline| at + newline);
            self.lines_left -= 1;
            self.line(&text[start..stop]);
            end = start;
        }
        self.reached = number_of(&text[end..]).or(self.reached);
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

    pub(crate) fn files(mut self, dir: &Path) -> io::Result<Recent> {
        let mut left = 0;
        for number in segment::list(dir)?.into_iter().rev() {
            if left > 0 || self.enough() {
                break;
            }
            let file = match File::open(segment::path(dir, number)) {
                // Let go of since they were listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let end = self.end_in(&file)?;
            left = self.file(&file, end)?;
        }
        let stopped = !self.ended && (left > 0 || self.enough());
        let before = self.filter.before_seq.unwrap_or(u64::MAX);
        // Damaged lines have no number; what was found has. One that gets nowhere must not be gone on with for ever.
        let reached = self.reached.map_or(self.below, |reached| reached.min(self.below));
        let next = Some(reached).filter(|reached| stopped && *reached < before);
        Ok(Recent { calls: self.found, next })
    }

    /// Where to begin in a file: behind the last line that comes before what was seen already. That a tenant was created
    /// behind it is not noticed then: who goes on before a number must have been given it by a search for the same tenant.
    fn end_in(&self, file: &File) -> io::Result<u64> {
        let length = file.metadata()?.len();
        if self.below == u64::MAX {
            return Ok(length);
        }
        let mut start = [0; LONGEST_BEGINNING];
        let read = read_up_to(file, &mut start, 0)?;
        if number_of(&start[..read]).is_some_and(|first| first >= self.below) {
            return Ok(0);
        }
        // All lines that begin before `low` are looked for, none that begins at `high` or later is.
        let (mut low, mut high) = (0, length);
        while low < high {
            let middle = low + (high - low) / 2;
            match next_line(file, middle, high)? {
                Some((start, number)) if number < self.below => low = start + 1,
                _ => high = middle,
            }
        }
        Ok(next_line(file, high, length)?.map_or(length, |(start, _)| start))
    }

    /// Reads from `end` to the beginning, and gives how much of that is left.
    fn file(&mut self, file: &File, mut end: u64) -> io::Result<u64> {
        // The end of a line that begins in the block before.
        let mut carry: Vec<u8> = Vec::new();
        let mut text = Vec::new();
        while end > 0 && self.bytes_left > 0 && !self.enough() {
            let size = BLOCK.min(end);
            end -= size;
            self.bytes_left = self.bytes_left.saturating_sub(size);
            text.clear();
            text.resize(size as usize, 0);
            file.read_exact_at(&mut text, end)?;
            text.append(&mut carry);
            let whole = match end {
                0 => 0,
                _ => memchr::memchr(b'\n', &text).map_or(text.len(), |newline| newline + 1),
            };
            self.lines(&text[whole..]);
            carry.extend_from_slice(&text[..whole]);
            if carry.len() > LONGEST_LINE {
                carry.clear(); // no line of ours; what is left of it will not parse either
            }
        }
        Ok(end)
    }
}

/// The first line that begins at `from` or later and before `to`, and its number. What is no line of ours is passed over.
fn next_line(file: &File, from: u64, to: u64) -> io::Result<Option<(u64, u64)>> {
    let mut text = Vec::new();
    let mut at = from.saturating_sub(1);
    while at < to {
        text.clear();
        text.resize(PROBE as usize + LONGEST_BEGINNING, 0);
        let read = read_up_to(file, &mut text, at)?;
        let text = &text[..read];
        let begins = (at == 0).then_some(0).filter(|_| from == 0);
        let breaks = memchr::memchr_iter(b'\n', text).map(|newline| newline + 1);
        for start in begins.into_iter().chain(breaks) {
            let (place, number) = (at + start as u64, number_of(&text[start..]));
            if let Some(number) = number.filter(|_| place < to) {
                return Ok(Some((place, number)));
            }
        }
        at += PROBE;
    }
    Ok(None)
}

fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of every length, most of them another tenant's, some damaged, in several files.
    fn log(dir: &Path) -> Vec<u64> {
        let mut of_acme = Vec::new();
        let mut seq = 0;
        for number in 1..=3 {
            let mut text = String::new();
            for _ in 0..200 {
                seq += 1;
                let tenant = if seq % 7 == 0 { "acme" } else { "other" };
                // The second file has more than one block.
                let long = if number == 2 { 3 } else { 50 };
                let name = "x".repeat(if seq % long == 0 { 3 * PROBE as usize } else { (seq * 37 % 900) as usize });
                if seq % 31 == 0 {
                    text += "damaged {\"seq\":1,\n";
                }
                text += &format!(
                    r#"{{"seq":{seq},"time":"","kind":"call","tenant":"{tenant}","server":"s","caller":"c","name":"{name}","outcome":"ok"}}"#
                );
                text += "\n";
                of_acme.extend((tenant == "acme").then_some(seq));
            }
            std::fs::write(segment::path(dir, number), text).unwrap();
        }
        of_acme.reverse();
        of_acme
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("registry-recent-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// All that is found by searches that go on where the one before has stopped, and how many there were.
    fn gather(dir: &Path, limit: usize, bound: impl Fn(&mut Search)) -> (Vec<u64>, usize) {
        let mut filter = CallFilter { tenant: Some("acme".to_owned()), limit, ..CallFilter::default() };
        let mut found = Vec::new();
        for searches in 1..1000 {
            let mut search = Search::new(&filter);
            bound(&mut search);
            let Recent { calls, next } = search.files(dir).unwrap();
            found.extend(calls.iter().map(|call| call.seq));
            filter.before_seq = next;
            if next.is_none() {
                return (found, searches);
            }
        }
        panic!("it goes on for ever");
    }

    #[test]
    fn what_was_too_much_for_one_search_is_found_by_the_next() {
        let dir = folder("next");
        let of_acme = log(&dir);
        assert_eq!(gather(&dir, 1000, |_| {}), (of_acme.clone(), 1));
        let (found, searches) = gather(&dir, 4, |_| {});
        assert_eq!((found, searches), (of_acme.clone(), of_acme.len() / 4 + 1));
        assert_eq!(gather(&dir, 1000, |search| search.lines_left = 3).0, of_acme);
        let (found, searches) = gather(&dir, 1000, |search| search.bytes_left = 1);
        assert_eq!(found, of_acme);
        assert!(searches > 3, "also within a file");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn it_begins_where_it_is_told_to() {
        let dir = folder("begin");
        log(&dir);
        for below in 1..=601 {
            let filter = CallFilter { before_seq: Some(below), ..CallFilter::default() };
            let search = Search::new(&filter);
            let mut last = 0;
            for number in 1..=3 {
                let file = File::open(segment::path(&dir, number)).unwrap();
                let mut text = vec![0; search.end_in(&file).unwrap() as usize];
                file.read_exact_at(&mut text, 0).unwrap();
                assert!(text.is_empty() || text.ends_with(b"\n"), "whole lines");
                last = text.split(|byte| *byte == b'\n').filter_map(number_of).next_back().unwrap_or(last);
            }
            assert_eq!(last, below - 1);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

//! Letting go of lines that are older than the operator wants to keep: whole files, the oldest first.
//!
//! The log itself says so, in a line with the number and hash of the last one that went, and the database knows where the
//! log begins since. `verify` wants both to agree, so that nobody can cut off the beginning unseen. A file that is not
//! sound stays, with all that come after it: damage is there to be found.

use super::line::{self, Chain, GENESIS, Link};
use super::segment::{self, Lines};
use crate::clock::write_rfc3339;
use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// What the line is called that says how much went.
pub(crate) const TRIMMED: &str = "audit_log_trimmed";

/// Files that go at a time: each is read as a whole before.
const MOST_AT_ONCE: usize = 4;

/// Where the log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// The first file.
    pub segment: u64,
    /// What its first line follows.
    pub after: Link,
}

impl Begin {
    pub(crate) const FIRST: Begin = Begin { segment: 1, after: GENESIS };

    /// As the line says it that is written when it changes.
    pub(crate) fn said(&self) -> String {
        format!("{}:{}", self.after.seq, hex::encode(self.after.hash))
    }
}

/// What can go.
#[derive(Debug, Default)]
pub(crate) struct Old {
    /// Where the log would begin then.
    pub begin: Option<Begin>,
    /// There is more.
    pub more: bool,
    /// Why not all that is old can go.
    pub trouble: Option<String>,
}

/// Looks for files with nothing but lines that are older than this, and that the database knows to be safe.
pub(crate) fn find(dir: &Path, begin: Begin, safe: Link, older: Duration) -> io::Result<Old> {
    let mut old = Old::default();
    let Some(cutoff) = SystemTime::now().checked_sub(older) else { return Ok(old) };
    let mut last = begin;
    let mut segments = segment::list(dir)?;
    segments.retain(|number| *number >= begin.segment);
    for (gone, pair) in segments.windows(2).enumerate() {
        let (number, next) = (pair[0], pair[1]);
        let Some(first) = First::read(dir, next)? else { break };
        // Not to read all that is kept: what is to go was last written to before then, or before its successor was.
        let may_go = before(&first.time, cutoff) || fs::metadata(segment::path(dir, number))?.modified()? < cutoff;
        if !may_go || first.link.seq > safe.seq {
            break;
        }
        if gone == MOST_AT_ONCE {
            old.more = true;
            break;
        }
        match end_of(dir, number, last.after)? {
            Ok((_, time)) if !before(&time, cutoff) => break,
            Ok((end, _)) if end.hash == first.prev => last = Begin { segment: next, after: end },
            Ok(_) => {
                old.trouble = Some(format!("{} does not follow {}", name(next), name(number)));
                break;
            }
            Err(trouble) => {
                old.trouble = Some(trouble);
                break;
            }
        }
    }
    old.begin = (last != begin).then_some(last);
    Ok(old)
}

/// Whether a file begins with a line that is older than this.
pub(crate) fn begins_before(dir: &Path, number: u64, older: Duration) -> io::Result<bool> {
    let (first, cutoff) = (First::read(dir, number)?, SystemTime::now().checked_sub(older));
    Ok(first.zip(cutoff).is_some_and(|(first, cutoff)| before(&first.time, cutoff)))
}

/// Removes all files before this one.
pub(crate) fn remove_before(dir: &Path, segment: u64) -> io::Result<()> {
    for number in segment::list(dir)?.into_iter().filter(|number| *number < segment) {
        fs::remove_file(segment::path(dir, number))?;
    }
    Ok(())
}

/// Times have one form, in which earlier ones are lesser texts.
fn before(text: &[u8], time: SystemTime) -> bool {
    let mut bound = Vec::new();
    write_rfc3339(time, &mut bound);
    text < bound.as_slice()
}

/// The first line of a file.
struct First {
    link: Link,
    prev: [u8; 32],
    time: Vec<u8>,
}

impl First {
    /// None if there is none yet, or something else.
    fn read(dir: &Path, number: u64) -> io::Result<Option<First>> {
        let mut lines = Lines::open(&segment::path(dir, number))?;
        let Some(piece) = lines.next()?.filter(|piece| piece.complete) else { return Ok(None) };
        let Ok(parsed) = line::parse(piece.bytes) else { return Ok(None) };
        let Some(time) = line::time(piece.bytes) else { return Ok(None) };
        Ok(Some(First { link: parsed.link, prev: parsed.prev, time: time.to_vec() }))
    }
}

/// The last line of a file whose first one follows this one, and its time; or what is wrong with the file.
fn end_of(dir: &Path, number: u64, after: Link) -> io::Result<Result<(Link, Vec<u8>), String>> {
    let mut lines = Lines::open(&segment::path(dir, number))?;
    let mut chain = Chain::after(after);
    let (mut at, mut end) = (0, (after, Vec::new()));
    while let Some(piece) = lines.next()? {
        at += 1;
        let accepted = if piece.complete { chain.accept(piece.bytes) } else { Err("it is not complete".to_owned()) };
        match accepted {
            Ok(link) => end = (link, line::time(piece.bytes).unwrap_or_default().to_vec()),
            Err(reason) => return Ok(Err(format!("{}, line {at}: {reason}", name(number)))),
        }
    }
    Ok(Ok(end))
}

fn name(number: u64) -> String {
    segment::file_name(number)
}

//! Letting go of lines that are older than the operator wants to keep: whole files, the oldest first.
//!
//! The log announces it, in a line with the number and hash of the last line that will go, some days before. `verify`
//! wants to see that line, and before any head that somebody kept: so whoever has a head from the last days finds out if the
//! beginning was cut off by hand, because nobody can put an announcement in front of it. A file that is not sound stays,
//! with all that come after it: damage is there to be found.

use super::DAY;
use super::line::{self, Chain, GENESIS, Link, Parsed};
use super::segment::{self, Lines};
use crate::clock::write_rfc3339;
use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// What the line is called that announces it.
pub(crate) const ANNOUNCED: &str = "audit_log_trim";

/// How long before; less where lines are kept for less than twice as long.
const AHEAD: Duration = DAY.saturating_mul(7);

/// Files that are announced together, and go together: each is read as a whole before.
const MOST_AT_ONCE: usize = 4;

/// How long lines are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep(pub Duration);

impl Keep {
    pub(crate) fn ahead(self) -> Duration {
        AHEAD.min(self.0 / 2)
    }

    /// No file is written to for longer, so that there is something that can go.
    pub(crate) fn of_one_file(self) -> Duration {
        self.0.min(DAY)
    }
}

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

    /// As the line says it that announces it.
    pub(crate) fn said(&self) -> String {
        format!("{}:{}", self.after.seq, hex::encode(self.after.hash))
    }
}

/// Where the log will begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    pub begin: Begin,
    /// Seconds since 1970.
    pub at: u64,
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

/// Looks for sound files with nothing but lines that are older than this, and that the database knows to be safe; not
/// beyond the file `to`.
pub(crate) fn find(dir: &Path, begin: Begin, to: u64, safe: Link, older: Duration) -> io::Result<Old> {
    let mut old = Old::default();
    let now = SystemTime::now();
    let Some(cutoff) = now.checked_sub(older) else { return Ok(old) };
    let mut last = begin;
    let mut segments = segment::list(dir)?;
    segments.retain(|number| (begin.segment..=to).contains(number));
    for (gone, pair) in segments.windows(2).enumerate() {
        let (number, next) = (pair[0], pair[1]);
        let first = match First::read(dir, next)? {
            Ok(Some(first)) => first,
            Ok(None) => break,
            Err(trouble) => {
                old.trouble = Some(trouble);
                break;
            }
        };
        // Not to read all that is kept: what is to go was last written to before then, or before its successor was.
        let may_go = before(&first.time, cutoff) || fs::metadata(segment::path(dir, number))?.modified()? < cutoff;
        if !may_go || first.link.seq > safe.seq {
            break;
        }
        if gone == MOST_AT_ONCE {
            old.more = true;
            break;
        }
        match read(dir, number, last.after)? {
            Ok(content) if content.end.hash != first.prev => {
                old.trouble = Some(format!("{} does not follow {}", name(next), name(number)));
                break;
            }
            Ok(content) if !before(&content.newest, now + DAY) => {
                old.trouble = Some(format!("{} has lines from the future", name(number)));
                break;
            }
            Ok(content) if !before(&content.newest, cutoff) => break,
            Ok(content) => last = Begin { segment: next, after: content.end },
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
    let (first, cutoff) = (First::read(dir, number)?.ok().flatten(), SystemTime::now().checked_sub(older));
    Ok(first.zip(cutoff).is_some_and(|(first, cutoff)| before(&first.time, cutoff)))
}

/// Removes all files before the one with which the log begins, if that one is there.
pub(crate) fn remove_before(dir: &Path, begin: &Begin) -> io::Result<()> {
    let gone: Vec<u64> = segment::list(dir)?.into_iter().filter(|number| *number < begin.segment).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let first = First::read(dir, begin.segment)?.ok().flatten();
    if !first.is_some_and(|first| first.link.seq == begin.after.seq + 1 && first.prev == begin.after.hash) {
        let what = format!("{} is not the file that the log begins with", name(begin.segment));
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    gone.into_iter().try_for_each(|number| fs::remove_file(segment::path(dir, number)))
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
    /// None if there is none yet; or what is wrong with it.
    fn read(dir: &Path, number: u64) -> io::Result<Result<Option<First>, String>> {
        let mut lines = Lines::open(&segment::path(dir, number))?;
        let Some(piece) = lines.next()?.filter(|piece| piece.complete) else { return Ok(Ok(None)) };
        let wrong = |reason: String| format!("{}, line 1: {reason}", name(number));
        Ok(line::parse(piece.bytes).map_err(wrong).map(|Parsed { link, prev }| {
            let time = line::time(piece.bytes).unwrap_or_default().to_vec();
            Some(First { link, prev, time })
        }))
    }
}

/// What a file has in it.
struct Content {
    end: Link,
    newest: Vec<u8>,
}

/// Reads a file whose first line follows this one; or what is wrong with it.
fn read(dir: &Path, number: u64, after: Link) -> io::Result<Result<Content, String>> {
    let mut lines = Lines::open(&segment::path(dir, number))?;
    let mut chain = Chain::after(after);
    let (mut at, mut content) = (0, Content { end: after, newest: Vec::new() });
    while let Some(piece) = lines.next()? {
        at += 1;
        let accepted = if piece.complete { chain.accept(piece.bytes) } else { Err("it is not complete".to_owned()) };
        match accepted {
            Ok(link) => content.end = link,
            Err(reason) => return Ok(Err(format!("{}, line {at}: {reason}", name(number)))),
        }
        let time = line::time(piece.bytes).unwrap_or_default();
        if time > content.newest.as_slice() {
            content.newest = time.to_vec();
        }
    }
    Ok(Ok(content))
}

fn name(number: u64) -> String {
    segment::file_name(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_announced_a_week_ahead_or_half_the_time() {
        let ahead = |days| Keep(DAY * days).ahead();
        assert_eq!((ahead(400), ahead(14), ahead(2), ahead(1)), (DAY * 7, DAY * 7, DAY, DAY / 2));
    }
}

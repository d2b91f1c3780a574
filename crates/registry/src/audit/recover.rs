//! Finding the end of the log when a host starts.
//!
//! Everything up to the recorded head was on the disk when the database said so. What a crash may leave is therefore a
//! piece of a line after it, and that is cut off. Anything else that does not fit is damage: it stays as it is, so that
//! `verify` finds it for ever, and the log goes on in a new segment.

use super::line::{self, Chain, GENESIS, Link};
use super::segment::{self, Lines};
use super::tail::Found;
use super::trim::Begin;
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// Places that are named; who wants to know all asks `verify`.
const MOST_DAMAGE: usize = 4;

pub(crate) struct Recovered {
    pub found: Found,
    /// Bytes of an unfinished line that have to go.
    pub torn: u64,
    /// What is wrong, in words.
    pub damage: Vec<String>,
    /// Ids of changes that stand after the recorded head.
    pub ids: HashSet<String>,
}

pub(crate) fn recover(dir: &Path, recorded: Link, begin: Begin) -> io::Result<Recovered> {
    let segments = segment::list(dir)?;
    // Where what is let go of has its place, nothing new is written.
    let gone = begin.segment.saturating_sub(1);
    let Some(last) = segments.last().copied() else {
        let found = Found { head: recorded, segment: gone, file: None, length: 0, dirty: false };
        let damage = (recorded.seq > 0).then(|| format!("the log is gone, all {} lines of it", recorded.seq));
        return Ok(Recovered { found, torn: 0, damage: damage.into_iter().collect(), ids: HashSet::new() });
    };
    let mut scan = Scan::new(recorded);
    for number in &segments[first_to_read(dir, &segments, recorded)?..] {
        scan.segment(dir, *number, *number == last)?;
    }
    let mut recovered = scan.finish(dir, last)?;
    if recovered.found.segment < gone {
        recovered.found = Found { segment: gone, file: None, length: 0, dirty: false, ..recovered.found };
    }
    Ok(recovered)
}

/// Index of the segment with the recorded head. Those before it are for `verify`, which takes its time.
fn first_to_read(dir: &Path, segments: &[u64], recorded: Link) -> io::Result<usize> {
    for (index, number) in segments.iter().enumerate().rev() {
        let mut lines = Lines::open(&segment::path(dir, *number))?;
        let first = lines.next()?.and_then(|piece| line::parse(piece.bytes).ok());
        if first.is_some_and(|first| first.link.seq <= recorded.seq.max(1)) {
            return Ok(index);
        }
    }
    Ok(0)
}

struct Scan {
    recorded: Link,
    chain: Chain,
    /// The last line that fits, or at least is one.
    last: Link,
    saw_recorded: bool,
    /// Bytes of the segment read last that are whole lines.
    length: u64,
    /// Bytes after those, if nothing else is wrong and a crash explains them.
    torn: u64,
    damage: Vec<String>,
    ids: HashSet<String>,
}

impl Scan {
    fn new(recorded: Link) -> Scan {
        Scan {
            recorded,
            chain: Chain::anywhere(),
            last: GENESIS,
            saw_recorded: recorded.seq == 0,
            length: 0,
            torn: 0,
            damage: Vec::new(),
            ids: HashSet::new(),
        }
    }

    fn segment(&mut self, dir: &Path, number: u64, is_last: bool) -> io::Result<()> {
        let mut lines = Lines::open(&segment::path(dir, number))?;
        if number == 1 {
            self.chain = Chain::genesis();
        }
        self.length = 0;
        let mut at = 0;
        while let Some(piece) = lines.next()? {
            at += 1;
            let accepted = if piece.complete { self.chain.accept(piece.bytes) } else { Err(String::new()) };
            match accepted {
                Ok(link) => {
                    self.note(link, piece.bytes);
                    self.length = lines.offset();
                }
                Err(_) if is_last && self.explained_by_crash(piece.bytes, piece.complete) => {
                    self.torn = std::fs::metadata(segment::path(dir, number))?.len().saturating_sub(self.length);
                    return Ok(());
                }
                Err(reason) => {
                    let reason = if reason.is_empty() { "it is not complete".to_owned() } else { reason };
                    if self.damage.len() < MOST_DAMAGE {
                        self.damage.push(format!("{}, line {at}: {reason}", segment::file_name(number)));
                    }
                    self.chain = Chain::anywhere();
                    if let Ok(parsed) = line::parse(piece.bytes) {
                        self.note(parsed.link, piece.bytes);
                    }
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, link: Link, line: &[u8]) {
        self.last = link;
        self.saw_recorded |= link == self.recorded;
        if link.seq > self.recorded.seq
            && let Some(id) = change_id(line)
        {
            self.ids.insert(id);
        }
    }

    /// A write that was cut short leaves a piece without its line break, or blocks that were never filled. It can only
    /// come after everything that is known to have been safe.
    fn explained_by_crash(&self, piece: &[u8], complete: bool) -> bool {
        self.damage.is_empty() && self.saw_recorded && (!complete || piece.contains(&0))
    }

    fn finish(mut self, dir: &Path, last: u64) -> io::Result<Recovered> {
        if !self.saw_recorded && self.damage.is_empty() {
            let Link { seq, .. } = self.recorded;
            self.damage.push(match self.last.seq < seq {
                true => format!("the log ends with line {}, but line {seq} had been written", self.last.seq),
                false => format!("line {seq} is not the one that had been written"),
            });
        }
        let sound = self.damage.is_empty();
        let file = match sound {
            true => Some(OpenOptions::new().read(true).write(true).open(segment::path(dir, last))?),
            false => None,
        };
        let head = if self.last.seq >= self.recorded.seq { self.last } else { self.recorded };
        let found = Found { head, segment: last, file, length: self.length, dirty: self.torn > 0 };
        Ok(Recovered { found, torn: self.torn, damage: self.damage, ids: self.ids })
    }
}

fn change_id(line: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Id {
        kind: String,
        id: Option<String>,
    }
    let id: Id = serde_json::from_slice(line).ok()?;
    id.id.filter(|_| id.kind == "change")
}

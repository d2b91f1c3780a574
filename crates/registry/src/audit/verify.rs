//! Looking for gaps and changes.

use super::line::{Chain, GENESIS, Link};
use super::segment::{self, Lines};
use super::trim::{ANNOUNCED, Begin};
use crate::{Cause, database};
use std::io;
use std::path::{Path, PathBuf};

/// What a sound log consists of.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Verified {
    pub lines: u64,
    pub segments: u64,
    /// 0 when there are no lines. More than 1 where those before were let go of.
    pub first_seq: u64,
    pub last_seq: u64,
    /// Hash of the last line.
    pub head: String,
    /// Bytes of a line that was not written to its end: the host is writing it, or crashed and will cut it off.
    pub torn_bytes: u64,
}

/// Why a log is not sound.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("{file}, line {line}: {reason}")]
    Broken { file: String, line: u64, reason: String },
    #[error("`{given}` is no head of an audit log")]
    BadHead { given: String },
    #[error("cannot read {what}")]
    Unreadable {
        what: String,
        #[source]
        cause: Cause,
    },
}

impl VerifyError {
    pub fn hint(&self) -> Option<String> {
        match self {
            VerifyError::BadHead { .. } => Some("a head is 64 hexadecimal digits, or number:digits".to_owned()),
            _ => None,
        }
    }
}

/// How often it begins again because the host let go of what was being read.
const MOST_ATTEMPTS: usize = 5;

/// Checks the whole chain, also while a host adds to it. `expected_head` is a hash, or `number:hash`, that somebody wrote
/// down earlier: only that shows that the chain was not made anew from somewhere in the middle.
pub fn verify(dir: &Path, expected_head: Option<&str>) -> Result<Verified, VerifyError> {
    let ask = || {
        database::recorded(dir)
            .map_err(|cause| VerifyError::Unreadable { what: "what the database knows of the log".to_owned(), cause })
    };
    let mut attempt = 1;
    loop {
        let expected = expected_head.map(Wanted::parse).transpose()?;
        // First what must be there, then what is there: so a host that goes on writing does not matter.
        let (recorded, begin) = ask()?;
        let mut wanted = vec![Wanted::of(recorded, "the database knows")];
        wanted.extend(expected);
        let mut walk = Walk::new(dir.join("audit"), wanted, begin);
        let verified = walk.all().and_then(|()| walk.finish());
        if verified.is_ok() || attempt == MOST_ATTEMPTS || ask()?.1 == begin {
            return verified;
        }
        attempt += 1;
    }
}

/// A line that must be in the log.
struct Wanted {
    who: &'static str,
    seq: Option<u64>,
    hash: [u8; 32],
    seen: bool,
    /// Somebody kept it where nobody else can write: what comes before it was not made later.
    kept: bool,
}

impl Wanted {
    fn of(link: Link, who: &'static str) -> Wanted {
        Wanted { who, seq: Some(link.seq), hash: link.hash, seen: link == GENESIS, kept: false }
    }

    fn parse(given: &str) -> Result<Wanted, VerifyError> {
        let bad = || VerifyError::BadHead { given: given.chars().take(100).collect() };
        let (seq, hash) = match given.trim().split_once(':') {
            Some((seq, hash)) => (Some(seq.parse().map_err(|_| bad())?), hash),
            None => (None, given.trim()),
        };
        let hash = <[u8; 32]>::try_from(hex::decode(hash).map_err(|_| bad())?).map_err(|_| bad())?;
        let seen = hash == GENESIS.hash && seq.is_none_or(|seq| seq == 0);
        Ok(Wanted { who: "was expected", seq: if seen { Some(0) } else { seq }, hash, seen, kept: true })
    }

    fn look(&mut self, link: Link) {
        if link.hash == self.hash && self.seq.is_none_or(|seq| seq == link.seq) {
            self.seen = true;
            self.seq = Some(link.seq);
        }
    }
}

struct Walk {
    dir: PathBuf,
    wanted: Vec<Wanted>,
    begin: Begin,
    /// The first line that says that the log begins there.
    announced: Option<u64>,
    chain: Chain,
    last: Link,
    verified: Verified,
    /// File and line read last.
    file: String,
    line: u64,
}

impl Walk {
    fn new(dir: PathBuf, wanted: Vec<Wanted>, begin: Begin) -> Walk {
        let verified =
            Verified { lines: 0, segments: 0, first_seq: 0, last_seq: 0, head: String::new(), torn_bytes: 0 };
        Walk {
            dir,
            wanted,
            begin,
            announced: (begin == Begin::FIRST).then_some(0),
            chain: Chain::after(begin.after),
            last: begin.after,
            verified,
            file: segment::file_name(begin.segment),
            line: 0,
        }
    }

    fn all(&mut self) -> Result<(), VerifyError> {
        let (mut number, mut last) = (self.begin.segment.saturating_sub(1), self.last_segment()?);
        while number < last {
            number += 1;
            last = self.segment(number, last)?;
        }
        Ok(())
    }

    fn last_segment(&self) -> Result<u64, VerifyError> {
        match segment::list(&self.dir) {
            Ok(segments) => Ok(segments.last().copied().unwrap_or(0)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(unreadable("the directory of the log", error)),
        }
    }

    /// Reads a segment and returns the number of the last one, which may have risen meanwhile.
    fn segment(&mut self, number: u64, mut last: u64) -> Result<u64, VerifyError> {
        (self.file, self.line) = (segment::file_name(number), 0);
        let mut lines = match Lines::open(&segment::path(&self.dir, number)) {
            Ok(lines) => lines,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.broken("the file is missing")),
            Err(error) => return Err(unreadable(&self.file, error)),
        };
        self.verified.segments += 1;
        loop {
            let start = lines.offset();
            let piece = lines.next().map_err(|error| unreadable(&self.file, error))?;
            if let Some(piece) = piece.as_ref().filter(|piece| piece.complete) {
                self.line += 1;
                self.accept(piece.bytes)?;
                continue;
            }
            // The end of a file is only final when another had been begun before it was reached.
            let torn = piece.map_or(0, |piece| piece.bytes.len() as u64);
            if number < last && torn == 0 {
                return Ok(last);
            }
            if number < last {
                self.line += 1;
                return Err(self.broken("it is not complete"));
            }
            last = self.last_segment()?;
            if number >= last {
                self.verified.torn_bytes = torn;
                return Ok(last);
            }
            lines.go_to(start).map_err(|error| unreadable(&self.file, error))?;
        }
    }

    fn accept(&mut self, line: &[u8]) -> Result<(), VerifyError> {
        let link = self.chain.accept(line).map_err(|reason| self.broken(&reason))?;
        self.wanted.iter_mut().for_each(|wanted| wanted.look(link));
        if self.verified.lines == 0 {
            self.verified.first_seq = link.seq;
        }
        self.verified.lines += 1;
        self.announced = self.announced.or_else(|| says(line, &self.begin).then_some(link.seq));
        self.last = link;
        Ok(())
    }

    fn broken(&self, reason: &str) -> VerifyError {
        VerifyError::Broken { file: self.file.clone(), line: self.line, reason: reason.to_owned() }
    }

    fn finish(mut self) -> Result<Verified, VerifyError> {
        let gone = self.begin.after.seq;
        let Some(announced) = self.announced else {
            return Err(self.broken(&format!("no line up to here says that the first {gone} lines would go")));
        };
        if let Some(missing) = self.wanted.iter().find(|wanted| !wanted.seen) {
            let hash = hex::encode(missing.hash);
            let seq = missing.seq.map_or(String::new(), |seq| format!(" {seq}"));
            if missing.seq.is_some_and(|seq| seq <= gone) {
                let who = missing.who;
                return Err(self.broken(&format!(
                    "line{seq} that {who} went with the first {gone}, which were too old to be kept; keep later heads"
                )));
            }
            return Err(self.broken(&match missing.seq.is_some_and(|seq| seq > self.last.seq) {
                true => format!("the log ends here, without line{seq} that {} ({hash})", missing.who),
                false => format!("up to here there is no line{seq} with the hash that {} ({hash})", missing.who),
            }));
        }
        if let Some(early) = self.wanted.iter().find(|wanted| wanted.kept && wanted.seq < Some(announced)) {
            let seq = early.seq.unwrap_or_default();
            return Err(self.broken(&format!(
                "line {announced} says that the first {gone} lines would go, and line {seq} that {} is from before: it does \
                 not show who said so; keep later heads",
                early.who
            )));
        }
        self.verified.last_seq = self.last.seq;
        self.verified.head = hex::encode(self.last.hash);
        Ok(self.verified)
    }
}

/// Whether a line says that the log begins there. Others may have such text in what was recorded, so its fields count.
fn says(line: &[u8], begin: &Begin) -> bool {
    #[derive(serde::Deserialize)]
    struct Fields<'a> {
        kind: &'a str,
        what: &'a str,
        detail: &'a str,
    }
    memchr::memmem::find(line, ANNOUNCED.as_bytes()).is_some()
        && serde_json::from_slice(line).is_ok_and(|fields: Fields| {
            fields.kind == "host" && fields.what == ANNOUNCED && fields.detail == begin.said()
        })
}

fn unreadable(what: &str, error: io::Error) -> VerifyError {
    VerifyError::Unreadable { what: what.to_owned(), cause: error.into() }
}

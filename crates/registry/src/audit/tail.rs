//! The end of the log, where lines are added.

use super::line::{self, Link};
use super::segment;
use crate::AuditError;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Segments that may be open at a time.
const MOST_UNSYNCED: usize = 8;

/// Bytes that are written at once.
const MOST_AT_ONCE: u64 = 256 << 10;

/// How much may wait for a disk that takes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// A segment is not begun anew before this many bytes.
    pub segment_bytes: u64,
    pub waiting_lines: usize,
    pub waiting_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { segment_bytes: 64 << 20, waiting_lines: 65_536, waiting_bytes: 32 << 20 }
    }
}

/// A line that is part of the chain, but not yet of a file: for a moment, or until the disk takes something again.
struct Waiting {
    line: Vec<u8>,
    link: Link,
}

pub(crate) struct Tail {
    dir: PathBuf,
    bounds: Bounds,
    /// The last line of the chain.
    head: Link,
    /// The last line that is in a file.
    written: Link,
    /// Number of the last segment, 0 when there is none.
    segment: u64,
    /// None: the next line begins a new segment.
    file: Option<Arc<File>>,
    /// Bytes of whole lines in the last segment.
    length: u64,
    /// There may be more in the segment than `length`: part of a line that could not be written.
    dirty: bool,
    /// Several lines that are written at once.
    batch: Vec<u8>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Files that were written to since they were last synchronised.
    unsynced: Vec<Arc<File>>,
    /// A segment was begun since its directory was last synchronised.
    unsynced_dir: bool,
    /// Why the disk took nothing when it was last tried.
    trouble: Option<String>,
    /// Since the disk took something for the last time.
    refused: u64,
}

/// How a log was found.
pub(crate) struct Found {
    pub head: Link,
    pub segment: u64,
    /// The last segment, if it is sound enough to go on in it.
    pub file: Option<File>,
    pub length: u64,
    pub dirty: bool,
}

/// What has to reach the disk for everything up to `link` to be safe.
pub(crate) struct Unsynced {
    pub files: Vec<Arc<File>>,
    pub dir: bool,
    pub link: Link,
}

impl Tail {
    pub(crate) fn new(dir: PathBuf, bounds: Bounds, found: Found) -> Tail {
        let file = found.file.map(Arc::new);
        Tail {
            dir,
            bounds,
            head: found.head,
            written: found.head,
            segment: found.segment,
            length: found.length,
            dirty: found.dirty,
            batch: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            // What a crashed host wrote last may not be on the disk yet.
            unsynced: file.iter().cloned().collect(),
            unsynced_dir: true,
            file,
            trouble: None,
            refused: 0,
        }
    }

    /// The last line that is in a file, after writing what waits.
    pub(crate) fn written(&mut self) -> Link {
        self.write_up_to(self.head.seq);
        self.written
    }

    /// The line added last, with its line break, while it waits.
    pub(crate) fn last_line(&self) -> Option<&[u8]> {
        self.waiting.back().map(|waiting| waiting.line.as_slice())
    }

    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    pub(crate) fn waiting(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.waiting.iter().map(|waiting| waiting.line.as_slice())
    }

    /// Adds a line to the chain. It waits until somebody has it written.
    pub(crate) fn add(&mut self, body: &[u8]) -> Result<Link, AuditError> {
        if !self.waiting.is_empty() && !self.may_wait(body.len()) {
            self.refused += 1;
            return Err(AuditError::Full);
        }
        let mut line = Vec::with_capacity(body.len() + line::BESIDE_BODY);
        self.head = line::chain(&mut line, self.head, SystemTime::now(), body);
        self.waiting_bytes += line.len();
        self.waiting.push_back(Waiting { line, link: self.head });
        Ok(self.head)
    }

    /// Writes the line, with all that waits, unless somebody has done so. While the disk takes nothing it waits on:
    /// [`Tail::flush`] tries again.
    pub(crate) fn write_up_to(&mut self, seq: u64) {
        if self.written.seq < seq && self.trouble.is_none() {
            self.write_waiting();
        }
    }

    fn may_wait(&self, bytes: usize) -> bool {
        self.waiting.len() < self.bounds.waiting_lines && self.waiting_bytes + bytes < self.bounds.waiting_bytes
    }

    /// Writes what waits, as far as the disk takes it. Returns how many events were refused before it did.
    pub(crate) fn flush(&mut self) -> u64 {
        if !self.write_waiting() {
            return 0;
        }
        self.trouble = None;
        std::mem::take(&mut self.refused)
    }

    /// Whether the disk took everything. What it takes at once is written at once.
    fn write_waiting(&mut self) -> bool {
        while !self.waiting.is_empty() {
            let mut batch = std::mem::take(&mut self.batch);
            batch.clear();
            let mut lines = 0;
            for next in &self.waiting {
                let most = self.bounds.segment_bytes.saturating_sub(self.length).min(MOST_AT_ONCE);
                if lines > 0 && (batch.len() + next.line.len()) as u64 > most {
                    break;
                }
                batch.extend_from_slice(&next.line);
                lines += 1;
            }
            let written = self.write(&batch);
            self.batch = batch;
            if let Err(error) = written {
                self.trouble = Some(error.to_string());
                return false;
            }
            for next in self.waiting.drain(..lines) {
                self.waiting_bytes -= next.line.len();
                self.written = next.link;
            }
        }
        true
    }

    /// Writes lines whole, or leaves the file as it was.
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Some(file) = self.file.as_ref().filter(|_| self.dirty) {
            file.set_len(self.length)?;
            self.dirty = false;
        }
        if self.length > 0 && self.length + lines.len() as u64 > self.bounds.segment_bytes {
            self.file = None;
        }
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.begin_segment()?,
        };
        if let Err(error) = file.write_all_at(lines, self.length) {
            self.dirty = file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += lines.len() as u64;
        if !self.unsynced.last().is_some_and(|last| Arc::ptr_eq(last, &file)) {
            self.unsynced.push(file);
        }
        // Usually somebody else does this soon enough; but files must not pile up.
        while self.unsynced.len() > MOST_UNSYNCED && self.unsynced[0].sync_data().is_ok() {
            self.unsynced.remove(0);
        }
        Ok(())
    }

    /// The number of the segment that is written to.
    pub(crate) fn segment(&self) -> Option<u64> {
        self.file.as_ref().filter(|_| self.length > 0).map(|_| self.segment)
    }

    /// The next line begins a new segment, if this one is still written to.
    pub(crate) fn leave(&mut self, segment: u64) {
        if self.segment() == Some(segment) && !self.dirty {
            self.file = None;
        }
    }

    fn begin_segment(&mut self) -> io::Result<Arc<File>> {
        let file = Arc::new(segment::create(&self.dir, self.segment + 1)?);
        self.segment += 1;
        self.length = 0;
        self.dirty = false;
        self.unsynced_dir = true;
        self.file = Some(file.clone());
        Ok(file)
    }

    /// What to synchronise, which the caller does without holding the log up. None when all is safe already.
    pub(crate) fn take_unsynced(&mut self) -> Option<Unsynced> {
        if self.unsynced.is_empty() && !self.unsynced_dir {
            return None;
        }
        let dir = std::mem::take(&mut self.unsynced_dir);
        Some(Unsynced { files: std::mem::take(&mut self.unsynced), dir, link: self.written })
    }

    /// Back again: it could not be synchronised.
    pub(crate) fn put_back(&mut self, unsynced: Unsynced) {
        self.unsynced_dir |= unsynced.dir;
        let newer = std::mem::replace(&mut self.unsynced, unsynced.files);
        for file in newer {
            if !self.unsynced.iter().any(|known| Arc::ptr_eq(known, &file)) {
                self.unsynced.push(file);
            }
        }
    }

    /// The file that is written to must not have been taken away: nobody would see what goes into it.
    pub(crate) fn check_file(&mut self) -> Option<String> {
        let file = self.file.as_ref()?;
        let removed = file.metadata().is_ok_and(|meta| meta.nlink() == 0);
        removed.then(|| {
            self.file = None;
            format!("{} was removed while it was written to", segment::file_name(self.segment))
        })
    }
}

//! Lines of a stream that nobody trusts: bounded before they are whole.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at a time.
const PIECE: usize = 64 << 10;

/// One line without its end. `cut`: it was longer than the bound, and this is a piece of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cut: bool,
}

pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// Of the buffer, what was given out already.
    start: usize,
    /// Of the buffer, what is known to have no end of a line after the start.
    seen: usize,
    longest: usize,
    over: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(source: R, longest: usize) -> Lines<R> {
        Lines { source, buffer: Vec::new(), start: 0, seen: 0, longest, over: false }
    }

    pub(crate) fn over(&self) -> bool {
        self.over
    }

    /// The next line; `None` at the end. What comes after the last end of a line is a line, too. Safe to cancel.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            // What is left is the beginning of a line, and the only thing that is ever moved.
            self.buffer.drain(..self.start);
            (self.start, self.seen) = (0, self.buffer.len());
            if self.over {
                self.seen = 0;
                let bytes = std::mem::take(&mut self.buffer);
                return Ok((!bytes.is_empty()).then_some(Line { bytes, cut: false }));
            }
            let room = self.longest + 1 - self.buffer.len();
            self.buffer.reserve(room.min(PIECE));
            self.over = (&mut self.source).take(room as u64).read_buf(&mut self.buffer).await? == 0;
        }
    }

    fn take(&mut self) -> Option<Line> {
        let end = self.buffer[self.seen..].iter().position(|byte| *byte == b'\n').map(|at| at + self.seen);
        let cut = self.start + self.longest;
        let (end, cut) = match end {
            Some(end) if end <= cut => (end, false),
            _ if self.buffer.len() > cut => (cut, true),
            _ => return None,
        };
        let mut bytes = self.buffer[self.start..end].to_vec();
        self.start = end + usize::from(!cut);
        self.seen = self.start;
        if !cut && bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        Some(Line { bytes, cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8], longest: usize) -> Vec<(String, bool)> {
        let mut lines = Lines::new(text, longest);
        let mut all = Vec::new();
        while let Some(Line { bytes, cut }) = lines.next().await.unwrap() {
            all.push((String::from_utf8(bytes).unwrap(), cut));
            assert!(lines.buffer.len() <= longest + 1, "{} bytes are held", lines.buffer.len());
        }
        all
    }

    #[tokio::test]
    async fn lines_end_in_both_ways_and_the_last_needs_no_end() {
        let whole = |text: &str| (text.to_owned(), false);
        assert_eq!(read(b"a\nbc\r\n\nd", 10).await, [whole("a"), whole("bc"), whole(""), whole("d")]);
        assert_eq!(read(b"", 10).await, []);
    }

    #[tokio::test]
    async fn what_is_too_long_comes_in_pieces() {
        let all = read(b"abcdefgh\nabc\n", 3).await;
        let texts: Vec<_> = all.iter().map(|(text, cut)| (text.as_str(), *cut)).collect();
        assert_eq!(texts, [("abc", true), ("def", true), ("gh", false), ("abc", false)]);
    }
}

//! An answer that comes line by line and may have no end.

use super::{Client, ClientError};
use reqwest::Response;

/// A longer line is not a line.
const MOST_BYTES: usize = 32 << 20;

pub struct Lines<'c> {
    client: &'c Client,
    response: Response,
    buffer: Buffer,
}

impl<'c> Lines<'c> {
    pub(super) fn new(client: &'c Client, response: Response) -> Lines<'c> {
        Lines { client, response, buffer: Buffer::default() }
    }

    /// The next line without its end; `None` when there are no more.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        loop {
            if let Some(line) = self.buffer.line() {
                return Ok(Some(line));
            }
            if self.buffer.bytes.len() > MOST_BYTES {
                return Err(self.client.nonsense(format!("a line has more than {} MiB", MOST_BYTES >> 20)));
            }
            match self.response.chunk().await.map_err(|error| self.client.broken(error))? {
                Some(chunk) => self.buffer.bytes.extend_from_slice(&chunk),
                None => return Ok(self.buffer.rest()),
            }
        }
    }
}

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Up to here there is no line's end.
    searched: usize,
}

impl Buffer {
    fn line(&mut self) -> Option<Vec<u8>> {
        let Some(at) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let end = self.searched + at;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        self.searched = 0;
        Some(line)
    }

    fn rest(&mut self) -> Option<Vec<u8>> {
        self.searched = 0;
        let rest = std::mem::take(&mut self.bytes);
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_however_they_went_in() {
        let text = b"one\r\n\ntwo and more\nend";
        for size in 1..=text.len() {
            let mut buffer = Buffer::default();
            let mut lines = Vec::new();
            for chunk in text.chunks(size) {
                buffer.bytes.extend_from_slice(chunk);
                while let Some(line) = buffer.line() {
                    lines.push(line);
                }
            }
            lines.extend(buffer.rest());
            assert_eq!(lines, [&b"one"[..], b"", b"two and more", b"end"], "in pieces of {size}");
        }
    }
}

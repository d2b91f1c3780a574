//! The three pipes of a program.

use crate::peer::lines::{Line, Lines};
use crate::verdict::Cause;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

/// Lines of standard error are cut at this length.
const LONGEST_MUTTER: usize = 4 << 10;

/// How long to wait for the last words of a program that is dead.
const LAST_WORDS: Duration = Duration::from_millis(100);
const MOST_LAST_WORDS: usize = 1000;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub(crate) struct Pipes {
    stdin: Option<Writer>,
    stdout: Lines<Reader>,
    stderr: Lines<Reader>,
    outbox: VecDeque<Vec<u8>>,
    queued: usize,
    /// Of the first in the outbox, what is written already.
    written: usize,
}

pub(super) enum Event {
    Said(Vec<u8>),
    Muttered(Vec<u8>),
    Wrote,
}

impl Pipes {
    pub(crate) fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
        longest: usize,
    ) -> Pipes {
        let (stdout, stderr): (Reader, Reader) = (Box::new(stdout), Box::new(stderr));
        Pipes {
            stdin: Some(Box::new(stdin)),
            stdout: Lines::new(stdout, longest),
            stderr: Lines::new(stderr, LONGEST_MUTTER),
            outbox: VecDeque::new(),
            queued: 0,
            written: 0,
        }
    }

    pub(super) fn send(&mut self, line: Vec<u8>) {
        // Whoever reads no more is sent no more.
        if self.stdin.is_some() {
            self.queued += line.len();
            self.outbox.push_back(line);
        }
    }

    /// Bytes that wait to be read by the program.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// The next thing that happens on a pipe that is looked at. Safe to cancel.
    pub(super) async fn event(&mut self, listen: bool, mutter: bool) -> Result<Event, Cause> {
        let mutter = mutter && !self.stderr.over();
        let first = self.outbox.front().map(|line| &line[self.written..]);
        let waiting = first.is_some();
        let writing = async {
            match (&mut self.stdin, first) {
                (Some(stdin), Some(bytes)) => stdin.write(bytes).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            line = self.stdout.next(), if listen => match line {
                Ok(Some(Line { bytes, cut: false })) => Ok(Event::Said(bytes)),
                Ok(Some(Line { bytes, cut: true })) => {
                    Err(Cause::Violation(format!("it sent a message of more than {} bytes", bytes.len())))
                }
                Ok(None) | Err(_) => Err(Cause::Closed),
            },
            // An error is the end of it: the line reader gives none any more, and there is nobody to tell.
            line = self.stderr.next(), if mutter => Ok(match line {
                Ok(Some(line)) => Event::Muttered(line.bytes),
                Ok(None) | Err(_) => Event::Wrote,
            }),
            wrote = writing, if waiting => {
                match wrote {
                    Ok(count) if count > 0 => {
                        self.written += count;
                        self.queued -= count;
                    }
                    // It reads no more. Whether it still says something is seen elsewhere.
                    _ => {
                        self.stdin = None;
                        self.outbox.clear();
                        (self.written, self.queued) = (0, 0);
                    }
                }
                if self.outbox.front().is_some_and(|line| self.written >= line.len()) {
                    self.outbox.pop_front();
                    self.written = 0;
                }
                Ok(Event::Wrote)
            }
        }
    }

    /// What is still on standard error, of a program that is dead.
    pub(super) async fn drain(&mut self, mut take: impl FnMut(Vec<u8>)) {
        for _ in 0..MOST_LAST_WORDS {
            match tokio::time::timeout(LAST_WORDS, self.stderr.next()).await {
                Ok(Ok(Some(line))) => take(line.bytes),
                _ => return,
            }
        }
    }
}

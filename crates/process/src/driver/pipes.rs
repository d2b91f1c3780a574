//! The three pipes of a program, and where its messages are if they are not in there.

use crate::http::{Bridge, Heard};
use crate::peer::lines::{Line, Lines};
use crate::peer::message::RpcError;
use crate::verdict::Cause;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Lines of standard error are cut at this length.
const LONGEST_MUTTER: usize = 4 << 10;

/// How long to wait for the last words of a program that is dead.
const LAST_WORDS: Duration = Duration::from_millis(100);
const MOST_LAST_WORDS: usize = 1000;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub(crate) struct Pipes {
    ears: Ears,
    stderr: Lines<Reader>,
    /// None once it reads no more.
    mouth: Option<Mouth>,
    outbox: VecDeque<Vec<u8>>,
    queued: usize,
    /// Of the first in the outbox, what is written already.
    written: usize,
}

/// Where messages go.
enum Mouth {
    Stdin(Writer),
    Bridge(mpsc::Sender<Vec<u8>>),
}

/// Where messages come from.
enum Ears {
    Stdout(Lines<Reader>),
    /// Then standard output is talk. Its end is still the end of the program.
    Bridge {
        bridge: Bridge,
        stdout: Lines<Reader>,
    },
}

pub(super) enum Event {
    Said(Vec<u8>),
    Muttered(Vec<u8>),
    Unanswered { id: u64, error: RpcError },
    Wrote,
}

impl Pipes {
    pub(crate) fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
        longest: usize,
    ) -> Pipes {
        let stdout: Reader = Box::new(stdout);
        Pipes::with(Mouth::Stdin(Box::new(stdin)), Ears::Stdout(Lines::new(stdout, longest)), stderr)
    }

    /// For a program whose messages go another way.
    pub(crate) fn bridged(
        bridge: Bridge,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
    ) -> Pipes {
        let stdout: Reader = Box::new(stdout);
        let mouth = Mouth::Bridge(bridge.messages.clone());
        Pipes::with(mouth, Ears::Bridge { bridge, stdout: Lines::new(stdout, LONGEST_MUTTER) }, stderr)
    }

    fn with(mouth: Mouth, ears: Ears, stderr: impl AsyncRead + Send + Unpin + 'static) -> Pipes {
        let stderr: Reader = Box::new(stderr);
        Pipes {
            ears,
            stderr: Lines::new(stderr, LONGEST_MUTTER),
            mouth: Some(mouth),
            outbox: VecDeque::new(),
            queued: 0,
            written: 0,
        }
    }

    pub(super) fn send(&mut self, line: Vec<u8>) {
        // Whoever reads no more is sent no more.
        if self.mouth.is_some() {
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
        let first = self.outbox.front().map(|line| &line[self.written..]);
        let waiting = first.is_some();
        let writing = async {
            match (&mut self.mouth, first) {
                (Some(mouth), Some(bytes)) => mouth.write(bytes).await,
                _ => std::future::pending().await,
            }
        };
        let mutters = mutter && !self.stderr.over();
        tokio::select! {
            heard = self.ears.next(listen, mutter) => heard,
            // An error is the end of it: the line reader gives none any more, and there is nobody to tell.
            line = self.stderr.next(), if mutters => Ok(match line {
                Ok(Some(line)) => Event::Muttered(line.bytes),
                Ok(None) | Err(_) => Event::Wrote,
            }),
            wrote = writing, if waiting => {
                self.wrote(wrote);
                Ok(Event::Wrote)
            }
        }
    }

    fn wrote(&mut self, wrote: io::Result<usize>) {
        match wrote {
            Ok(count) if count > 0 => {
                self.written += count;
                self.queued -= count;
            }
            // It reads no more. Whether it still says something is seen elsewhere.
            _ => {
                self.mouth = None;
                self.outbox.clear();
                (self.written, self.queued) = (0, 0);
            }
        }
        if self.outbox.front().is_some_and(|line| self.written >= line.len()) {
            self.outbox.pop_front();
            self.written = 0;
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

impl Mouth {
    /// Some of it, or, over a bridge, all.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Mouth::Stdin(stdin) => stdin.write(bytes).await,
            Mouth::Bridge(messages) => {
                let place = messages.reserve().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
                place.send(bytes.to_vec());
                Ok(bytes.len())
            }
        }
    }
}

impl Ears {
    /// The next message, and talk where it is no message. Safe to cancel.
    async fn next(&mut self, listen: bool, mutter: bool) -> Result<Event, Cause> {
        match self {
            Ears::Stdout(stdout) if listen => match stdout.next().await {
                Ok(Some(Line { bytes, cut: false })) => Ok(Event::Said(bytes)),
                Ok(Some(Line { bytes, cut: true })) => {
                    Err(Cause::Violation(format!("it sent a message of more than {} bytes", bytes.len())))
                }
                Ok(None) | Err(_) => Err(Cause::Closed),
            },
            Ears::Stdout(_) => std::future::pending().await,
            Ears::Bridge { bridge, stdout } => tokio::select! {
                Some(heard) = bridge.heard.recv(), if listen => match heard {
                    Heard::Said(message) => Ok(Event::Said(message)),
                    Heard::Unanswered { id, error } => Ok(Event::Unanswered { id, error }),
                    Heard::Broken(why) => Err(Cause::Violation(why)),
                },
                line = stdout.next(), if mutter => match line {
                    Ok(Some(line)) => Ok(Event::Muttered(line.bytes)),
                    Ok(None) | Err(_) => Err(Cause::Closed),
                },
                else => std::future::pending().await,
            },
        }
    }
}

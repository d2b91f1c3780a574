//! The way out: connections that a program makes to its proxy. Each belongs to a call, and ends with it.

use super::Driver;
use super::speech::Owner;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sandbox::{Future, LogLine};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Connections of one program at once; more wait to be accepted.
const MOST: usize = 32;
/// Those that wait in the kernel when somebody else's turn comes are looked at, at most so many.
const MOST_WAITING: usize = 256;

/// How long somebody who was refused may go on talking, so that they hear the answer.
const LINGER: Duration = Duration::from_secs(1);
const MOST_HEARD: u64 = 64 << 10;

/// A host that cannot accept now may be able to soon.
const PAUSE: Duration = Duration::from_millis(50);

const NO_CALL: &str = "no call is in flight, and the network is there for calls alone";
const STRANGERS: &str = "calls of different sessions are in flight, and it is not known whose this would be";
const INITIALISING: &str = "there is no network while the server initialises";

#[derive(Default)]
pub(super) struct Outlet {
    listener: Option<Ears>,
    open: FuturesUnordered<Open>,
    noted: Noted,
}

/// A refusal is told once.
#[derive(Clone, Copy, Default)]
enum Noted {
    #[default]
    Nothing,
    Refused(&'static str),
    Told,
}

/// A connection, and whose it is; nobody's while it is being refused.
struct Open {
    call: Option<u64>,
    work: Future<'static, ()>,
}

impl std::future::Future for Open {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.work.as_mut().poll(context)
    }
}

/// What the proxy listens on, twice: for waiting, and for looking without waiting.
struct Ears {
    waits: TcpListener,
    looks: std::net::TcpListener,
}

impl Outlet {
    /// Must be called inside a tokio runtime.
    pub(super) fn new(listener: Option<std::net::TcpListener>) -> io::Result<Outlet> {
        let ears = |looks: std::net::TcpListener| {
            looks.set_nonblocking(true)?;
            Ok::<_, io::Error>(Ears { waits: TcpListener::from_std(looks.try_clone()?)?, looks })
        };
        Ok(Outlet { listener: listener.map(ears).transpose()?, ..Outlet::default() })
    }

    /// Serves what is open, until somebody connects. Safe to cancel.
    pub(super) async fn next(&mut self) -> TcpStream {
        loop {
            let room = self.open.len() < MOST;
            tokio::select! {
                stream = accept(self.listener.as_ref()), if room => return stream,
                Some(()) = self.open.next() => {}
                else => std::future::pending().await,
            }
        }
    }

    /// Who has connected and was not accepted yet.
    fn waiting(&self) -> Option<TcpStream> {
        let (stream, _) = self.listener.as_ref()?.looks.accept().ok()?;
        stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)).ok()
    }

    /// Closes what belongs to this call.
    pub(super) fn close(&mut self, call: u64) {
        if self.open.iter().any(|open| open.call == Some(call)) {
            self.open = std::mem::take(&mut self.open).into_iter().filter(|open| open.call != Some(call)).collect();
        }
    }
}

async fn accept(listener: Option<&Ears>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        match listener.waits.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

impl Driver {
    /// Hands a connection to the call that everything is of now, or refuses it.
    pub(super) fn connect(&mut self, stream: TcpStream) {
        let host_of = |number| self.calls.get(number).and_then(|call| call.host.clone());
        let whose = match self.owner() {
            Owner::Call(number) => host_of(&number).map(|host| (number, host)).ok_or(INITIALISING),
            Owner::Unknown(_) => Err(STRANGERS),
            Owner::Nobody => Err(NO_CALL),
        };
        let open = match whose {
            Ok((number, host)) => Open { call: Some(number), work: host.connection(Box::new(stream)) },
            Err(why) => {
                if matches!(self.outlet.noted, Noted::Nothing) {
                    self.outlet.noted = Noted::Refused(why);
                    self.tail.push(&refusal(why));
                }
                Open { call: None, work: Box::pin(refuse(stream, why)) }
            }
        };
        self.outlet.open.push(open);
    }

    /// Who is in flight is about to change: what has connected so far is of those before.
    pub(super) fn connect_waiting(&mut self) {
        for _ in 0..MOST_WAITING {
            let Some(stream) = self.outlet.waiting() else { return };
            // Those that there is no room for are closed: they were nobody's yet.
            if self.outlet.open.len() < MOST {
                self.connect(stream);
            }
        }
    }

    /// Writes into the log that something was refused, once there is a log.
    pub(super) fn note_refusal(&mut self) {
        let (Noted::Refused(why), Owner::Call(number)) = (self.outlet.noted, self.owner()) else { return };
        if let Some(host) = self.calls.get(&number).and_then(|call| call.host.clone()) {
            host.log(LogLine { level: "warning".to_owned(), text: refusal(why) });
            self.outlet.noted = Noted::Told;
        }
    }
}

fn refusal(why: &str) -> String {
    format!("a connection to the network was refused: {why}")
}

/// Says why, and waits a moment, because who closes at once takes the answer back.
async fn refuse(mut stream: TcpStream, why: &'static str) {
    let body = format!("{}\n", refusal(why));
    let answer = format!(
        "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let told = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(MOST_HEARD), &mut tokio::io::sink()).await
    };
    // Who does not listen is not told.
    let _ = tokio::time::timeout(LINGER, told).await;
}

//! What the system tells the host.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals a host listens to. From the first moment on: an early SIGHUP must not end it.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// What is wished of the host.
pub enum Wish {
    End,
    Reload,
}

impl Signals {
    pub fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::End,
            _ = self.interrupt.recv() => Wish::End,
            _ = self.hangup.recv() => Wish::Reload,
        }
    }

    /// SIGTERM or SIGINT.
    pub async fn end(&mut self) {
        while !matches!(self.next().await, Wish::End) {}
    }
}

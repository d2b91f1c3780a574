//! One call at work: holds its turn while it may compute, and gives it up while it waits.
//!
//! - While the host works for it (a fetch, a question to the client) it has no turn, and gets one again before the
//!   answer goes in.
//! - If its process hardly used the CPU since the last look, it sleeps, and needs no turn.
//! - If it had its turn for as long as its whole CPU budget needs, the next one comes.
//!
//! Code that goes on computing without a turn does so behind everybody who has one ([`Compartment::step_back`]). So no
//! tenant, whatever its code does, has more processes that compete for the CPU than it has turns.

use super::gate::Seat;
use crate::{Compartment, Failure, Future, Host, HostCall, HostRefusal, HostReply, LogLine, Request, Stream, Usage};
use bytes::Bytes;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

/// The first look at a call, and how seldom a long one is looked at.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const RARE_LOOK: Duration = Duration::from_millis(100);

/// Less CPU time than this between two looks is sleep.
const ASLEEP: Duration = Duration::from_millis(1);

/// This much CPU time without a turn goes unpunished.
const LENIENCE: Duration = Duration::from_millis(5);

/// How long a turn may be, and how long to wait for the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) turn: Duration,
    pub(super) patience: Duration,
}

/// Serves one call in this compartment. Also gives whether it made a connection: then something may have happened outside.
pub(super) async fn run(
    seat: &Arc<Seat>,
    compartment: &dyn Compartment,
    request: &Request,
    host: Arc<dyn Host>,
    within: Duration,
    pace: Pace,
) -> (Result<Bytes, Failure>, Usage, bool) {
    let connected = AtomicBool::new(false);
    let asked = Arc::new(Asked { host, seat: seat.clone(), patience: pace.patience, connected });
    let mut call = pin!(compartment.call(request, asked.clone(), within));
    let mut looks = Looks { seen: Duration::ZERO, without: Duration::ZERO, stepped_back: false };
    let mut pause = FIRST_LOOK;
    let (outcome, usage) = loop {
        match tokio::time::timeout(pause, call.as_mut()).await {
            Ok(answer) => break answer,
            Err(_) => {
                looks.look(seat, compartment, pace.turn);
                if seat.turn_age().is_none() {
                    pause = (pause * 2).min(RARE_LOOK);
                }
            }
        }
    };
    seat.used(Duration::from_micros(usage.cpu_us));
    (outcome, usage, asked.connected.load(Ordering::Relaxed))
}

struct Looks {
    /// CPU time of the compartment at the last look.
    seen: Duration,
    /// CPU time used without a turn.
    without: Duration,
    stepped_back: bool,
}

impl Looks {
    fn look(&mut self, seat: &Seat, compartment: &dyn Compartment, turn: Duration) {
        let cpu = compartment.cpu_time();
        let progress = cpu.map(|cpu| cpu.saturating_sub(std::mem::replace(&mut self.seen, cpu)));
        match seat.turn_age() {
            None => {
                self.without += progress.unwrap_or_default();
                if self.without > LENIENCE {
                    self.step_back(compartment);
                }
            }
            Some(age) if age >= turn => {
                seat.pause();
                self.step_back(compartment);
            }
            Some(_) if progress.is_some_and(|progress| progress < ASLEEP) => seat.pause(),
            Some(_) => {}
        }
    }

    fn step_back(&mut self, compartment: &dyn Compartment) {
        if !std::mem::replace(&mut self.stepped_back, true) {
            compartment.step_back();
        }
    }
}

/// The host as a call sees it, with an eye on the call's turn.
struct Asked {
    host: Arc<dyn Host>,
    seat: Arc<Seat>,
    patience: Duration,
    /// Whether a connection was made.
    connected: AtomicBool,
}

impl Host for Asked {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        Box::pin(async move {
            let mut reply = self.host.call(call);
            // An answer that is there already costs no turn.
            let at_once = poll_fn(|context| Poll::Ready(reply.as_mut().poll(context))).await;
            if let Poll::Ready(reply) = at_once {
                return reply;
            }
            self.seat.pause();
            let reply = reply.await;
            self.seat.resume(self.patience).await;
            reply
        })
    }

    fn log(&self, line: LogLine) {
        self.host.log(line);
    }

    fn progress(&self, json: String) {
        self.host.progress(json);
    }

    fn connection(&self, stream: Box<dyn Stream>) -> Future<'static, ()> {
        self.connected.store(true, Ordering::Relaxed);
        self.host.connection(stream)
    }

    fn hosts_reached(&self) -> Vec<String> {
        self.host.hosts_reached()
    }

    fn credentials_used(&self) -> Vec<String> {
        self.host.credentials_used()
    }

    fn secrets_masked(&self) -> u64 {
        self.host.secrets_masked()
    }
}

//! The calls in flight.

use super::{Driver, Members, Outgoing, Pending, speech};
use policy::Limits;
use sandbox::{Code, During, Failure, Host, Usage};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// What a caller gets of a call that ended with its program.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) failure: Failure,
    pub(crate) usage: Usage,
}

impl Answer {
    pub(crate) fn lost(limits: &Limits) -> Answer {
        Answer { failure: Failure::of_end(Code::CompartmentLost, limits, During::Call), usage: Usage::default() }
    }
}

/// What a caller hands in.
pub(crate) struct NewCall {
    pub(crate) during: During,
    /// None while the server initialises: there is nobody to ask or to tell.
    pub(crate) host: Option<Arc<dyn Host>>,
    pub(crate) session: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) within: Duration,
    over: Option<oneshot::Sender<Answer>>,
}

impl NewCall {
    pub(crate) fn new(host: Arc<dyn Host>, session: Option<String>, limits: Limits, within: Duration) -> NewCall {
        NewCall { during: During::Call, host: Some(host), session, limits, within, over: None }
    }

    pub(crate) fn initialisation(limits: Limits) -> NewCall {
        let within = Duration::from_millis(limits.init_time_ms);
        NewCall { during: During::Initialisation, host: None, session: None, limits, within, over: None }
    }

    pub(super) fn observed(mut self) -> (NewCall, oneshot::Receiver<Answer>) {
        let (over, ended) = oneshot::channel();
        self.over = Some(over);
        (self, ended)
    }
}

pub(super) struct Call {
    pub(super) during: During,
    pub(super) host: Option<Arc<dyn Host>>,
    pub(super) session: Option<String>,
    pub(super) limits: Limits,
    pub(super) deadline: Instant,
    pub(super) log_left: u64,
    pub(super) usage: Usage,
    /// Resident memory when it began.
    pub(super) memory_before: u64,
    /// CPU time that counts as its own.
    pub(super) cpu: Duration,
    /// Questions of the server's so far.
    pub(super) questions: u32,
    over: Option<oneshot::Sender<Answer>>,
}

impl Call {
    pub(super) fn has_host(&self) -> bool {
        self.host.is_some()
    }

    pub(super) fn cpu_allowed(&self) -> Duration {
        Duration::from_millis(match self.during {
            During::Call => self.limits.cpu_ms,
            During::Initialisation => self.limits.init_cpu_ms,
        })
    }

    fn used(&self) -> Usage {
        // The kernel may count in ticks, and nobody answers without using anything.
        let cpu_us = u64::try_from(self.cpu.as_micros()).unwrap_or(u64::MAX).max(1);
        Usage { cpu_us, ..self.usage.clone() }
    }

    /// The program has ended with this call in flight.
    pub(super) fn over(self, failure: Failure) {
        let usage = self.used();
        if let Some(over) = self.over {
            // Its caller may be gone by now.
            let _ = over.send(Answer { failure, usage });
        }
    }
}

impl Driver {
    pub(super) async fn begin(&mut self, call: NewCall) -> u64 {
        self.read_cpu().await;
        self.connect_waiting();
        self.last_call += 1;
        let log_left = match call.during {
            During::Call => call.limits.log_kb * 1024,
            During::Initialisation => speech::INIT_BYTES,
        };
        let call = Call {
            during: call.during,
            host: call.host,
            session: call.session,
            deadline: Instant::now() + call.within,
            log_left,
            limits: call.limits,
            usage: Usage::default(),
            memory_before: self.clock.memory,
            cpu: Duration::ZERO,
            questions: 0,
            over: call.over,
        };
        self.clock.begin(call.cpu_allowed(), call.deadline, self.calls.is_empty());
        if call.during == During::Call && self.idle() {
            self.place.busy();
        }
        self.calls.insert(self.last_call, call);
        self.idle_left = speech::IDLE_BYTES;
        self.last_call
    }

    pub(super) async fn finish(&mut self, number: u64) -> Usage {
        self.read_cpu().await;
        self.connect_waiting();
        self.note_refusal();
        let Some(call) = self.calls.remove(&number) else { return Usage::default() };
        self.outlet.close(number);
        self.forget(number);
        if self.calls.is_empty() {
            self.clock.rest();
            match call.during {
                During::Call => self.place.idle(),
                During::Initialisation => self.place.ready(),
            }
        }
        call.used()
    }

    /// The caller has gone. The server is told, and may answer or not.
    pub(super) async fn abandon(&mut self, number: u64) {
        let requests = self.forget(number);
        for id in requests {
            let params = [("requestId", crate::peer::raw(&id))];
            self.send(&Outgoing {
                jsonrpc: "2.0",
                id: None,
                method: "notifications/cancelled",
                params: Some(Members(&params)),
            });
        }
        self.finish(number).await;
    }

    /// Waits for nothing more that this call has asked of the server.
    fn forget(&mut self, number: u64) -> Vec<u64> {
        let of_it = |pending: &Pending| pending.call == Some(number);
        let requests: Vec<u64> = self.pending.iter().filter(|(_, p)| of_it(p)).map(|(id, _)| *id).collect();
        for id in &requests {
            self.pending.remove(id);
            // Most are never answered, and then the oldest is of no use any more.
            if self.forgotten.len() >= super::MOST_REQUESTS {
                self.forgotten.pop_first();
            }
            self.forgotten.insert(*id);
        }
        requests
    }
}

//! Drives one compartment: carries its calls, answers its host calls, watches its limits, and kills it.

#[cfg(test)]
mod tests;

use crate::budget::{Budget, NOBODY};
use crate::link::{self, Link};
use crate::process::{Process, View};
use crate::verdict::{Cause, verdict};
use crate::zygote::{Forked, PATIENCE, Zygote};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use isolate_wire::{FailCode, Failed, Fork, Frame, Kind, LOAD, Log, Refused, Used, encode, encode_with};
use policy::Limits;
use sandbox::{
    Code, During, Failure, Future, Host, HostCall, HostRefusal, HostReply, LogLine, Operation, Request, Usage,
};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Host calls in progress may hold this much of a compartment's bytes; beyond that it is not read from.
const PENDING_BYTES: usize = 4 << 20;

/// The greatest body of a single host call.
const HOST_CALL_BYTES: u64 = 1 << 20;

/// What one log line costs beside its text, so that empty lines are not free.
const LOG_LINE_COST: u64 = 32;

/// Beyond its CPU budget and a fifth of it the kernel's timer has ended a compartment; after this much, the host does.
const GRACE: Duration = Duration::from_millis(200);

/// More than a process that is forked for a call uses before it begins with it: that was below 0.2 ms, with a tracer attached.
/// Nobody asks the kernel then, so what a call has used is more than it says itself only beyond this.
const BEFORE_A_CALL: Duration = Duration::from_micros(500);

/// How often a compartment without a call is looked at, and the CPU time it may have used since the last look: nothing of its
/// code runs then, unless it is not itself any more.
const IDLE_LOOK: Duration = Duration::from_secs(5);
pub(crate) const IDLE_CPU: Duration = Duration::from_millis(100);

pub(crate) type Answer = (Result<Bytes, Failure>, Usage);

/// What a caller hands in.
pub(crate) struct NewCall {
    pub(crate) request: Request,
    /// Which of the servers loaded in the compartment.
    pub(crate) server: u32,
    pub(crate) limits: Limits,
    pub(crate) within: Duration,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) answer: oneshot::Sender<Answer>,
}

struct InFlight {
    host: Arc<dyn Host>,
    limits: Limits,
    deadline: Instant,
    log_left: u64,
    usage: Usage,
    answer: oneshot::Sender<Answer>,
}

/// The answer to a host call, on its way back in.
struct Settled {
    id: u32,
    held: usize,
    reply: Result<HostReply, HostRefusal>,
}

pub(crate) struct Driver {
    link: Link,
    process: Process,
    zygote: Arc<Zygote>,
    calls: HashMap<u32, InFlight>,
    next_call: u32,
    replies: FuturesUnordered<Future<'static, Settled>>,
    pending_bytes: usize,
    /// Whose code runs, as the compartment says; asked only when several calls are in flight.
    running: u32,
    /// Process CPU time when it was last idle, and what the calls since may use.
    cpu_base: Duration,
    cpu_allowed: Duration,
    cpu_check: Instant,
    /// When the process was ordered, where that is all that is known of it.
    ordered: Option<Instant>,
    /// Bytes that may still be said now that no call is in flight: what the last one left of its log.
    late_left: u64,
    /// Whose CPU time it is, in a compartment that serves many calls. One for a single call has a timer of the kernel's that
    /// was set before it was sealed.
    budget: Option<Budget>,
    /// Frames that answer a load.
    loading: Option<oneshot::Sender<Frame>>,
}

impl Driver {
    pub(crate) fn new(forked: Forked, zygote: Arc<Zygote>) -> io::Result<Driver> {
        Ok(Driver {
            link: Link::new(forked.stream, frame_cap(&Limits::default()))?,
            process: forked.process,
            zygote,
            calls: HashMap::new(),
            next_call: 1,
            replies: FuturesUnordered::new(),
            pending_bytes: 0,
            running: 0,
            cpu_base: Duration::ZERO,
            cpu_allowed: IDLE_CPU,
            cpu_check: Instant::now() + IDLE_LOOK,
            ordered: None,
            late_left: 0,
            budget: None,
            loading: None,
        })
    }

    /// From here on the host has a timer on its CPU time. For one that serves many calls, before the first.
    pub(crate) fn hold_cpu(mut self) -> io::Result<Driver> {
        self.budget = Some(Budget::new(self.process.view(), IDLE_CPU).map_err(io::Error::other)?);
        Ok(self)
    }

    /// Has it load a server; the answer comes as a frame.
    pub(crate) fn load(&mut self, frame: Vec<u8>, cpu: Duration, answer: oneshot::Sender<Frame>) {
        self.loading = Some(answer);
        if let Some(budget) = &mut self.budget {
            budget.open(LOAD, cpu, self.calls.is_empty());
        }
        self.link.send(frame);
    }

    /// Has the process forked that serves the calls that have begun. Their time begins when it is ordered; if that takes as
    /// long as they may, they are tried again.
    pub(crate) async fn order(&mut self, fork: &Fork, channel: OwnedFd) -> Result<(), Cause> {
        let began = Instant::now();
        let deadline = self.calls.values().map(|call| call.deadline).min().unwrap_or(began);
        let order = self.zygote.order(&self.process, fork, channel);
        let ordered = tokio::time::timeout_at(deadline, order).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        ordered.map_err(|_| Cause::Closed)?;
        let now = Instant::now();
        self.ordered = Some(now);
        self.calls.values_mut().for_each(|call| call.deadline += now - began);
        self.cpu_check += now - began;
        Ok(())
    }

    pub(crate) fn view(&self) -> View {
        self.process.view()
    }

    pub(crate) fn idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// Bytes of the compartment's that the host holds: not yet whole frames, and host calls in progress.
    #[cfg(test)]
    fn held_bytes(&self) -> (usize, usize) {
        (self.link.pending(), self.pending_bytes)
    }

    /// Hands a call to the compartment. Gives its number.
    pub(crate) fn begin(&mut self, call: NewCall) -> u32 {
        let id = self.next_call;
        self.next_call = if id + 1 < LOAD { id + 1 } else { 1 };
        let meta = isolate_wire::Call {
            operation: match call.request.operation {
                Operation::Tool => isolate_wire::Operation::Tool,
                Operation::Resource => isolate_wire::Operation::Resource,
                Operation::Prompt => isolate_wire::Operation::Prompt,
                Operation::Complete => isolate_wire::Operation::Complete,
            },
            name: call.request.name,
            server: call.server,
            result_bytes: call.limits.result_kb * 1024,
        };
        let Some(frame) = encode_with(Kind::Call, id, &meta, &call.request.input) else {
            let failure = Failure::new(Code::ArgumentLimit, "the arguments do not fit a frame");
            // The caller may be gone; then nobody is left to tell.
            let _ = call.answer.send((Err(failure), Usage::default()));
            return id;
        };
        if self.calls.is_empty() {
            self.cpu_base = self.process.cpu_time().unwrap_or(BEFORE_A_CALL);
            self.cpu_allowed = GRACE;
        }
        let cpu = Duration::from_millis(call.limits.cpu_ms);
        self.cpu_allowed += cpu;
        if let Some(budget) = &mut self.budget {
            budget.open(id, cpu, self.calls.is_empty() && self.loading.is_none());
        }
        let now = Instant::now();
        // Calls that come one upon the other do not put it off.
        let due = now + self.cpu_allowed;
        self.cpu_check = if self.calls.is_empty() { due } else { self.cpu_check.min(due) };
        // Servers of one tenant have limits of their own, and the greatest in flight must fit.
        let cap = self.calls.values().map(|other| frame_cap(&other.limits)).max().unwrap_or_default();
        self.link.set_cap(cap.max(frame_cap(&call.limits)));
        self.link.send(frame);
        let in_flight = InFlight {
            host: call.host,
            deadline: now + call.within,
            log_left: call.limits.log_kb * 1024,
            limits: call.limits,
            usage: Usage::default(),
            answer: call.answer,
        };
        self.calls.insert(id, in_flight);
        id
    }

    /// The caller of this call has gone.
    pub(crate) fn abandon(&mut self, id: u32) {
        if self.calls.contains_key(&id)
            && let Some(frame) = encode(Kind::Abort, id, b"", b"")
        {
            self.link.send(frame);
        }
    }

    /// Waits for the next thing to happen and handles it. An error is the end of the compartment. Safe to cancel.
    pub(crate) async fn step(&mut self) -> Result<(), Cause> {
        let deadline = self.calls.values().map(|call| call.deadline).min();
        let wake = deadline.map_or(self.cpu_check, |deadline| deadline.min(self.cpu_check));
        // Asked first, because a compartment that never stops talking would keep the clock below from its turn.
        if wake <= Instant::now() {
            return self.check_clocks();
        }
        tokio::select! {
            biased;
            Some(settled) = self.replies.next() => self.pass_reply(settled),
            event = self.link.event(self.pending_bytes < PENDING_BYTES) => match event {
                Ok(Some(frame)) => self.handle(frame)?,
                Ok(None) => {}
                Err(link::Ended::Closed) => return Err(Cause::Closed),
                Err(link::Ended::Malformed(malformed)) => return Err(Cause::Malformed(malformed)),
            },
            () = rang(self.budget.as_ref()) => self.check_budget()?,
            () = tokio::time::sleep_until(wake) => self.check_clocks()?,
        }
        Ok(())
    }

    /// The timer on its CPU time has rung.
    fn check_budget(&mut self) -> Result<(), Cause> {
        match self.budget.as_mut().and_then(Budget::check) {
            Some(payer) => {
                self.running = payer;
                Err(Cause::Limit(Code::CpuLimit))
            }
            None => Ok(()),
        }
    }

    /// The compartment is over: kills it, finds out how it ended, and answers everybody still waiting.
    pub(crate) async fn end(mut self, cause: Cause) {
        // The driver had no time to look, so another has.
        let held = self.budget.take().is_some_and(|budget| budget.killed());
        let cause = if held { Cause::Limit(Code::CpuLimit) } else { cause };
        self.process.kill();
        let now = Instant::now();
        let ended = self.zygote.reap(&self.process).await;
        let running = if self.calls.len() == 1 { None } else { Some(self.running) };
        let most = self.most_cpu_us();
        for (id, mut call) in self.calls.drain() {
            let late = matches!(cause, Cause::Limit(Code::TimeLimit)) && call.deadline <= now;
            let guilty = late || running.is_none_or(|running| running == id);
            let own = if guilty { cause.clone() } else { Cause::Closed };
            let failure = verdict(&own, ended.as_ref().filter(|_| guilty), &call.limits, During::Call);
            if let Some(ended) = &ended {
                call.usage.cpu_us = ended.cpu_us.min(most);
                call.usage.memory_kb = ended.memory_kb;
            }
            let _ = call.answer.send((Err(failure), call.usage));
        }
    }

    fn check_clocks(&mut self) -> Result<(), Cause> {
        let now = Instant::now();
        if let Some((id, _)) = self.calls.iter().find(|(_, call)| call.deadline <= now) {
            self.running = *id;
            return Err(Cause::Limit(Code::TimeLimit));
        }
        if self.cpu_check <= now {
            // Ordered long ago, and nobody has heard of it: its zygote is not one any more.
            if self.ordered.is_some_and(|ordered| now >= ordered + PATIENCE) && self.process.unknown() {
                self.zygote.end();
                return Err(Cause::Closed);
            }
            // A process that is gone has no clock; its channel tells.
            let used = self.process.cpu_time().unwrap_or_default().saturating_sub(self.cpu_base);
            let idle = self.calls.is_empty();
            // What a load may use is bounded by itself, and by the time that its caller has.
            if used >= self.cpu_allowed && !(idle && self.loading.is_some()) {
                return Err(Cause::Limit(Code::CpuLimit));
            }
            if idle {
                self.rest(IDLE_CPU);
            } else {
                self.cpu_check = now + (self.cpu_allowed - used).max(Duration::from_millis(10));
            }
        }
        Ok(())
    }

    /// From now on there is no call, and it may use `cpu` until it is looked at again.
    fn rest(&mut self, cpu: Duration) {
        self.cpu_base = self.process.cpu_time().unwrap_or(self.cpu_base);
        self.cpu_allowed = cpu;
        self.cpu_check = Instant::now() + IDLE_LOOK;
        if let Some(budget) = &mut self.budget
            && self.loading.is_none()
        {
            budget.rest(cpu);
        }
    }

    fn handle(&mut self, frame: Frame) -> Result<(), Cause> {
        match frame.kind {
            Kind::Done => {
                let used: Used = frame.meta().map_err(Cause::Malformed)?;
                let most = self.calls.get(&frame.id).map_or(0, |call| call.limits.result_kb * 1024);
                if frame.body.len() as u64 > most {
                    // A worker that is still itself says `ResultLimit`.
                    return Err(Cause::OutOfTurn);
                }
                self.answer(frame.id, used, Ok(Bytes::from(frame.body)))
            }
            Kind::Failed if self.loading.is_none() || frame.id != 0 => {
                let failed: Failed = frame.meta().map_err(Cause::Malformed)?;
                let code = match failed.code {
                    FailCode::ToolError => Code::ToolError,
                    FailCode::UnknownTool => Code::UnknownTool,
                    FailCode::ResultLimit => Code::ResultLimit,
                    FailCode::BadArguments => Code::BadArguments,
                    FailCode::InitFailed => return Err(Cause::OutOfTurn),
                };
                self.answer(frame.id, failed.used, Err(Failure::new(code, failed.message)))
            }
            Kind::Loaded | Kind::Failed => {
                let waiting = self.loading.take().ok_or(Cause::OutOfTurn)?;
                let _ = waiting.send(frame);
                if self.calls.is_empty() {
                    self.rest(IDLE_CPU);
                } else {
                    self.close_account(LOAD);
                }
                Ok(())
            }
            Kind::HostCall => self.ask_host(frame),
            Kind::Log => {
                let log: Log = frame.meta().map_err(Cause::Malformed)?;
                // Counted as it is passed on: what stands for a byte that is no text is longer than the byte.
                let text = String::from_utf8_lossy(&frame.body).into_owned();
                let Some(call) = self.charge_log(frame.id, text.len() + log.level.len())? else { return Ok(()) };
                call.host.log(LogLine { level: log.level, text });
                Ok(())
            }
            Kind::Progress => {
                let json = String::from_utf8_lossy(&frame.body).into_owned();
                let Some(call) = self.charge_log(frame.id, json.len())? else { return Ok(()) };
                call.host.progress(json);
                Ok(())
            }
            Kind::Running if !self.calls.is_empty() || self.loading.is_some() => {
                self.running = frame.id;
                if let Some(budget) = &mut self.budget {
                    budget.switch(frame.id);
                }
                Ok(())
            }
            _ => Err(Cause::OutOfTurn),
        }
    }

    fn answer(&mut self, id: u32, used: Used, outcome: Result<Bytes, Failure>) -> Result<(), Cause> {
        let mut call = self.calls.remove(&id).ok_or(Cause::OutOfTurn)?;
        // Its own figure is the finer one: of a process that is running the kernel's may be a tick old. But the kernel's is
        // the least that was used, whatever the process says; of several calls it cannot tell whose that was.
        call.usage.cpu_us = used.cpu_us.min(self.most_cpu_us());
        call.usage.memory_kb = used.memory_kb;
        if self.calls.is_empty() {
            let before = self.cpu_base;
            // What it left behind may take as long as it might have itself.
            self.rest(IDLE_CPU.max(Duration::from_millis(call.limits.cpu_ms)));
            let counted = self.cpu_base.saturating_sub(before).as_micros();
            call.usage.cpu_us = call.usage.cpu_us.max(u64::try_from(counted).unwrap_or(u64::MAX));
            self.late_left = call.log_left;
        }
        if !self.calls.is_empty() || self.loading.is_some() {
            self.close_account(id);
        }
        let _ = call.answer.send((outcome, call.usage));
        Ok(())
    }

    /// The compartment says who runs next, unless it began with it while it had no other: that is the one that came first.
    fn close_account(&mut self, id: u32) {
        let next = self.calls.keys().min().copied();
        if let Some(budget) = &mut self.budget {
            budget.close(id, next.unwrap_or(NOBODY));
        }
    }

    /// More than the calls since it was last idle can have used, with whatever a kill that comes late adds: who says more
    /// does not say the truth.
    fn most_cpu_us(&self) -> u64 {
        u64::try_from(self.cpu_allowed.as_micros()).unwrap_or(u64::MAX).saturating_mul(2)
    }

    /// Counts what comes when no call is in flight: code may go on a little after its answer, but not for ever.
    fn charge_late(&mut self, bytes: usize) -> Result<(), Cause> {
        let left = self.late_left.checked_sub(bytes as u64 + LOG_LINE_COST);
        self.late_left = left.ok_or(Cause::OutOfTurn)?;
        Ok(())
    }

    /// Counts log output. A line of no call in flight is dropped, and charged to whoever is.
    fn charge_log(&mut self, id: u32, bytes: usize) -> Result<Option<&mut InFlight>, Cause> {
        let known = self.calls.contains_key(&id);
        let payer = if known { Some(id) } else { self.calls.keys().next().copied() };
        let Some(payer) = payer else { return self.charge_late(bytes).map(|()| None) };
        let call = self.calls.get_mut(&payer).ok_or(Cause::OutOfTurn)?;
        let cost = bytes as u64 + LOG_LINE_COST;
        call.usage.log_bytes += bytes as u64;
        if cost > call.log_left {
            self.running = payer;
            return Err(Cause::Limit(Code::LogLimit));
        }
        call.log_left -= cost;
        Ok(known.then_some(call))
    }

    fn ask_host(&mut self, frame: Frame) -> Result<(), Cause> {
        let asked: isolate_wire::HostCall = frame.meta().map_err(Cause::Malformed)?;
        let payer =
            if self.calls.contains_key(&asked.call) { Some(asked.call) } else { self.calls.keys().next().copied() };
        let Some(call) = payer.and_then(|payer| self.calls.get_mut(&payer)) else {
            self.charge_late(frame.meta.len())?;
            self.pass_reply(Settled { id: frame.id, held: 0, reply: Err(too_late()) });
            return Ok(());
        };
        call.usage.host_calls += 1;
        if call.usage.host_calls > call.limits.host_calls {
            self.running = payer.unwrap_or_default();
            return Err(Cause::Limit(Code::HostCallLimit));
        }
        let held = frame.meta.len() + frame.body.len();
        let (id, host) = (frame.id, call.host.clone());
        self.pending_bytes += held;
        self.replies.push(Box::pin(async move {
            let asked = HostCall { operation: asked.operation, meta: asked.meta, body: Bytes::from(frame.body) };
            Settled { id, held, reply: host.call(asked).await }
        }));
        Ok(())
    }

    fn pass_reply(&mut self, settled: Settled) {
        self.pending_bytes = self.pending_bytes.saturating_sub(settled.held);
        let frame = match settled.reply {
            Ok(reply) => encode(Kind::Reply, settled.id, reply.meta.as_bytes(), &reply.body),
            Err(refusal) => {
                let refused = Refused { code: refusal.code, message: refusal.message };
                encode_with(Kind::Refuse, settled.id, &refused, b"")
            }
        };
        if let Some(frame) = frame {
            self.link.send(frame);
        }
    }
}

async fn rang(budget: Option<&Budget>) {
    match budget {
        Some(budget) => budget.rang().await,
        None => std::future::pending().await,
    }
}

fn too_late() -> HostRefusal {
    HostRefusal { code: "call_is_over".to_owned(), message: "the call that asks is answered already".to_owned() }
}

/// The longest frame a compartment with these limits may send.
fn frame_cap(limits: &Limits) -> usize {
    let largest = (limits.result_kb * 1024).max(HOST_CALL_BYTES);
    usize::try_from(largest).unwrap_or(usize::MAX).saturating_add(64 << 10)
}

//! One call behind a wall: run, accounted for, written down.

use super::credentials::Wanted;
use super::line::{Asked, CallHost, Line, Rounds};
use super::offer::Offer;
use super::result;
use super::sound;
use crate::app::App;
use crate::auth::Caller;
use crate::held::Hold;
use crate::observe::{CallSeen, Trace, Value};
use crate::quota::Admission;
use bytes::Bytes;
use policy::Limits;
use registry::{AuditEvent, CallEvent, Tenant};
use sandbox::{Answer, Code, Failure, Host, Operation, Pool, Program, Receipt, Request};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What is wanted of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Tool,
    Resource,
    Prompt,
    Complete,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Tool => "tools/call",
            Method::Resource => "resources/read",
            Method::Prompt => "prompts/get",
            Method::Complete => "completion/complete",
        }
    }

    fn operation(self) -> Operation {
        match self {
            Method::Tool => Operation::Tool,
            Method::Resource => Operation::Resource,
            Method::Prompt => Operation::Prompt,
            Method::Complete => Operation::Complete,
        }
    }
}

/// A call that has been checked and may run.
pub struct Job {
    pub offer: Arc<Offer>,
    pub method: Method,
    /// Tool, prompt or address.
    pub name: String,
    /// JSON.
    pub input: Bytes,
    pub tenant: Arc<Tenant>,
    pub caller: Arc<Caller>,
    pub ticket: Ticket,
    /// Worked out once.
    pub digest: OnceLock<String>,
    /// What the input takes is counted as long as the call runs.
    pub _hold: Option<Arc<Hold>>,
}

impl Job {
    /// SHA-256 of the input, as hex.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| hex::encode(Sha256::digest(&self.input)))
    }
}

/// What goes with a request from the door to its end.
pub struct Ticket {
    pub session: Option<String>,
    pub admission: Admission,
    pub trace: Trace,
}

/// How a call ended.
pub enum End {
    /// JSON text of what the handler gave.
    Value(Bytes),
    Failed(Failure),
    /// The client must answer first.
    NeedsInput(Vec<Asked>),
    NeedsCapability(&'static str),
}

pub struct Done {
    pub end: End,
    /// None for a call that was ended early.
    pub receipt: Option<Receipt>,
    pub call: String,
}

/// Runs the job. Dropping the future ends the call; it is accounted for either way.
pub async fn run(app: &Arc<App>, mut job: Job, line: Line) -> Done {
    let call = app.call_id();
    let mut trace = std::mem::take(&mut job.ticket.trace);
    trace.next("validate");
    let Some(pool) = app.pool(&job.offer.record.manifest.wall) else {
        let failure = Failure::new(Code::WallUnavailable, "this host does not have the wall that the server asks for");
        return Done { end: End::Failed(failure), receipt: None, call };
    };
    let request = Request {
        operation: job.method.operation(),
        name: job.name.clone(),
        input: job.input.clone(),
        session: job.ticket.session.clone(),
    };
    let wanted = Arc::<Wanted>::default();
    let host = Arc::new(CallHost {
        app: app.clone(),
        offer: job.offer.clone(),
        call: call.clone(),
        line,
        visit: app.visit(&job.offer, &job.ticket.admission, &job.caller, &wanted).map(Arc::new),
        strayed: OnceLock::new(),
        caller: job.caller.clone(),
        wanted,
        advice: OnceLock::new(),
        refusals: OnceLock::new(),
    });
    let mut account = Account { app, job: &job, host: &host, call: &call, start: Instant::now(), trace: Some(trace) };
    let answer = match served(pool, &job, &request, &host).await {
        Ok(answer) => answer,
        Err(wanted) => {
            account.end_early("input_required");
            drop(account);
            return Done { end: End::NeedsInput(wanted), receipt: None, call };
        }
    };
    // What it still fetches is for nobody.
    host.visit.iter().for_each(|visit| visit.close());
    let outcome = host.strayed.get().map_or(answer.outcome, |failure| Err(failure.clone()));
    if let Err(failure) = &outcome
        && failure.code == Code::SurfaceDrift
    {
        app.quarantine(&job.offer.record, &failure.message);
    }
    let outcome = outcome.and_then(sound::sound);
    let promised = job.offer.surface.tool(&job.name).filter(|_| job.method == Method::Tool);
    let outcome = match (outcome, promised) {
        (Ok(value), Some(tool)) => match result::misfit(app, &job, tool, &value).await {
            Some(misfit) => Err(misfit),
            None => Ok(value),
        },
        (outcome, _) => outcome,
    };
    // For the client alone: the code inside never has the link.
    let outcome = match (outcome, host.advice.get()) {
        (Err(failure), Some(advice)) if failure.code == Code::ToolError => {
            Err(Failure::new(failure.code, format!("{advice}\n{}", failure.message)))
        }
        // A program tells of its troubles in its result.
        (Ok(_), Some(advice)) if is_program(&job) => Err(Failure::new(Code::ToolError, advice.clone())),
        (outcome, _) => outcome,
    };
    let said = outcome.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "ok");
    let line = account.settle(said, &answer.receipt, outcome.as_ref().ok());
    drop(account);
    app.audited(line).await;
    let missing = host.line.asking.rounds().and_then(Rounds::missing);
    let end = match (outcome, missing) {
        (Ok(value), _) => End::Value(value),
        // It was told that the client cannot do this, and did not find a way without.
        (Err(failure), Some(capability)) if failure.code == Code::ToolError => End::NeedsCapability(capability),
        (Err(failure), _) => End::Failed(failure),
    };
    Done { end, receipt: Some(answer.receipt), call }
}

fn is_program(job: &Job) -> bool {
    matches!(job.offer.sandboxed.program, Program::Command { .. })
}

/// The answer of the wall, or what the client has to answer first.
async fn served(pool: &Pool, job: &Job, request: &Request, host: &Arc<CallHost>) -> Result<Answer, Vec<Asked>> {
    let suspended = || async {
        match host.line.asking.rounds() {
            Some(rounds) => rounds.suspended().await,
            None => std::future::pending().await,
        }
    };
    let run = || pool.call(&job.offer.sandboxed, request, host.clone());
    let answer = tokio::select! {
        biased;
        answer = run() => answer,
        wanted = suspended() => return Err(wanted),
    };
    let Some(provider) = host.wanted.take().filter(|_| is_program(job)) else { return Ok(answer) };
    // A module waits for a connection where it fetches. A program behind a proxy has failed by now, so it is run again.
    let most = Duration::from_millis(job.offer.sandboxed.permit.limits().time_ms);
    let connected = tokio::select! {
        biased;
        wanted = suspended() => return Err(wanted),
        connected = tokio::time::timeout(most, host.connect(&provider)) => matches!(connected, Ok(Ok(()))),
    };
    if !connected {
        return Ok(answer);
    }
    job.ticket.admission.spend(answer.receipt.cpu_us);
    tokio::select! {
        biased;
        answer = run() => Ok(answer),
        wanted = suspended() => Err(wanted),
    }
}

/// Sees to it that no call goes unrecorded, whatever becomes of it.
struct Account<'a> {
    app: &'a Arc<App>,
    job: &'a Job,
    host: &'a CallHost,
    call: &'a str,
    start: Instant,
    /// Until it is settled.
    trace: Option<Trace>,
}

impl Account<'_> {
    /// Gives the number of its line in the audit log, which has to be written.
    fn settle(&mut self, outcome: &str, receipt: &Receipt, result: Option<&Bytes>) -> Option<u64> {
        let job = self.job;
        job.ticket.admission.spend(receipt.cpu_us);
        let mut trace = self.trace.take().unwrap_or_default();
        let begun = (self.start + Duration::from_micros(receipt.wait_us)).min(Instant::now());
        trace.step("queue", self.start, begun);
        trace.next("run");
        self.app.metrics.call(&CallSeen {
            wall: receipt.wall,
            method: job.method.as_str(),
            outcome,
            time: Duration::from_micros(receipt.time_us),
            wait: Duration::from_micros(receipt.wait_us),
            cpu_us: receipt.cpu_us,
        });
        let mut event = self.event(outcome, &receipt.limits);
        event.cpu_us = receipt.cpu_us;
        event.time_us = receipt.time_us;
        event.wait_us = receipt.wait_us;
        event.peak_memory_kb = receipt.peak_memory_kb;
        event.host_calls = receipt.host_calls;
        event.hosts = receipt.hosts.clone();
        event.credentials = receipt.credentials.clone();
        event.masked = receipt.masked;
        if job.tenant.recording {
            event.result = result.and_then(|bytes| serde_json::from_slice(bytes).ok());
        }
        self.leave_out(&mut event);
        event.trace = trace.id();
        end_trace(trace, job, Some(self.call), outcome, receipt.cpu_us);
        self.app.audit_soon(AuditEvent::Call(event))
    }

    /// For a call whose own account is lost: it is charged all the time it can have computed.
    fn end_early(&mut self, outcome: &str) {
        // From here on nothing is reached that would not be written down.
        self.host.visit.iter().for_each(|visit| visit.close());
        let limits = self.job.offer.sandboxed.permit.limits();
        let time_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let cpu_us = time_us.min(limits.cpu_ms * 1000);
        self.job.ticket.admission.spend(cpu_us);
        let mut trace = self.trace.take().unwrap_or_default();
        trace.next("run");
        self.app.metrics.call(&CallSeen {
            wall: &self.job.offer.record.manifest.wall,
            method: self.job.method.as_str(),
            outcome,
            time: Duration::from_micros(time_us),
            wait: Duration::ZERO,
            cpu_us,
        });
        let mut event = self.event(outcome, limits);
        event.trace = trace.id();
        end_trace(trace, self.job, Some(self.call), outcome, cpu_us);
        event.time_us = time_us;
        event.cpu_us = cpu_us;
        event.hosts = self.host.hosts_reached();
        event.credentials = self.host.credentials_used();
        event.masked = self.host.secrets_masked();
        self.leave_out(&mut event);
        self.app.audit(AuditEvent::Call(event));
    }

    /// What the tenant has recorded more of than the log can take is not recorded.
    fn leave_out(&self, event: &mut CallEvent) {
        let length = |record: &Option<Box<RawValue>>| record.as_ref().map_or(0, |record| record.get().len() as u64);
        self.job.ticket.admission.audit(line_bytes(event));
        let bytes = length(&event.arguments) + length(&event.result);
        let may = |bytes| !self.app.registry().is_short_of_disk() && self.job.ticket.admission.may_record(bytes);
        if bytes > 0 && !may(bytes) {
            for (name, record) in [("arguments", &mut event.arguments), ("result", &mut event.result)] {
                event.left_out.extend(record.take().map(|_| name));
            }
        }
    }

    fn event(&self, outcome: &str, limits: &Limits) -> CallEvent {
        let job = self.job;
        let record = &job.offer.record;
        let arguments = |_: ()| serde_json::from_slice::<Box<RawValue>>(&job.input).ok();
        CallEvent {
            call: self.call.to_owned(),
            tenant: record.tenant.clone(),
            server: record.server.clone(),
            caller: job.caller.subject.clone(),
            method: job.method.as_str().to_owned(),
            name: job.name.clone(),
            deployment: record.id.clone(),
            wall: record.manifest.wall.clone(),
            boundary: record.manifest.boundary.as_str().to_owned(),
            outcome: outcome.to_owned(),
            cpu_limit_ms: limits.cpu_ms,
            time_limit_ms: limits.time_ms,
            memory_limit_mb: limits.memory_mb,
            arguments_sha256: job.digest().to_owned(),
            arguments: job.tenant.recording.then_some(()).and_then(arguments),
            ..CallEvent::default()
        }
    }
}

/// Bytes of a line of the audit log, about, without arguments and result.
pub fn line_bytes(event: &CallEvent) -> u64 {
    const PLAIN: usize = 600;
    let lists = [&event.hosts, &event.credentials].into_iter().flatten().map(|name| name.len() + 3).sum::<usize>();
    (PLAIN + event.name.len() + event.caller.len() + lists) as u64
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        if self.trace.is_some() {
            self.end_early("cancelled");
        }
    }
}

/// Sends what is known of the call on its way to the collector, in the words of OpenTelemetry where it has some.
pub fn end_trace(trace: Trace, job: &Job, call: Option<&str>, outcome: &str, cpu_us: u64) {
    if !trace.is_on() {
        return;
    }
    let record = &job.offer.record;
    let mut attributes = vec![
        ("mcp.method.name", Value::from(job.method.as_str())),
        ("bulkhead.tenant", Value::from(&*record.tenant)),
        ("bulkhead.server", Value::from(&*record.server)),
        ("bulkhead.deployment", Value::from(&*record.id)),
        ("bulkhead.wall", Value::from(&*record.manifest.wall)),
        ("bulkhead.boundary", Value::from(record.manifest.boundary.as_str())),
        ("bulkhead.outcome", Value::from(outcome)),
        ("bulkhead.cpu_us", Value::from(cpu_us)),
    ];
    attributes.extend(call.map(|call| ("bulkhead.call", Value::from(call))));
    let name = match job.method {
        Method::Tool => Some("gen_ai.tool.name"),
        Method::Prompt => Some("gen_ai.prompt.name"),
        Method::Resource => Some("mcp.resource.uri"),
        Method::Complete => None,
    };
    attributes.extend(name.map(|name| (name, Value::from(&*job.name))));
    // What a client gave up, or must answer first, is no fault of the server's.
    let failed = !matches!(outcome, "ok" | "input_required" | "cancelled");
    if failed {
        attributes.push(("error.type", Value::from(outcome)));
    }
    let title = match job.method {
        // Addresses are many; a span's name is for groups.
        Method::Resource | Method::Complete => job.method.as_str().to_owned(),
        Method::Tool | Method::Prompt => format!("{} {}", job.method.as_str(), job.name),
    };
    trace.end(title, attributes, failed.then_some(outcome));
}

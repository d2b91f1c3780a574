//! The two shapes of a compartment: for one call, and for many.

use crate::driver::{Answer, NewCall, Process};
use crate::instance::Instance;
use crate::peer::result::question;
use crate::rounds::converse;
use bytes::Bytes;
use policy::Limits;
use sandbox::{Code, Compartment, Failure, Future, Host, Operation, Request, Usage};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Outcome = (Result<Bytes, Failure>, Usage);

/// A program that waits for its one call.
pub(crate) struct OneCall {
    instance: Mutex<Option<Instance>>,
    process: Arc<dyn Process>,
    /// CPU time that went before the call.
    before: Duration,
    limits: Limits,
}

impl OneCall {
    pub(crate) fn new(instance: Instance, limits: Limits) -> OneCall {
        let process = instance.peer.process();
        let before = process.last().unwrap_or_default().cpu;
        OneCall { instance: Mutex::new(Some(instance)), process, before, limits }
    }
}

impl Compartment for OneCall {
    fn call<'a>(&'a self, request: &'a Request, host: Arc<dyn Host>, within: Duration) -> Future<'a, Outcome> {
        Box::pin(async move {
            let taken = self.instance.lock().unwrap_or_else(PoisonError::into_inner).take();
            match taken {
                Some(instance) => serve(&instance, &self.limits, request, host, within).await,
                None => lost(&self.limits),
            }
        })
    }

    fn alive(&self) -> bool {
        let instance = self.instance.lock().unwrap_or_else(PoisonError::into_inner);
        instance.as_ref().is_some_and(|instance| instance.peer.alive())
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.process.new_cpu().map(|cpu| cpu.saturating_sub(self.before))
    }
}

/// A program that serves calls until the last handle is dropped.
pub(crate) struct ManyCalls {
    pub(crate) instance: Instance,
    pub(crate) limits: Limits,
}

impl Compartment for ManyCalls {
    fn call<'a>(&'a self, request: &'a Request, host: Arc<dyn Host>, within: Duration) -> Future<'a, Outcome> {
        Box::pin(serve(&self.instance, &self.limits, request, host, within))
    }

    fn alive(&self) -> bool {
        self.instance.peer.alive()
    }

    fn ended(&self) -> Option<Code> {
        self.instance.peer.gave_way().then_some(Code::Busy)
    }
}

fn lost(limits: &Limits) -> Outcome {
    let Answer { failure, usage } = Answer::lost(limits);
    (Err(failure), usage)
}

async fn serve(
    instance: &Instance,
    limits: &Limits,
    request: &Request,
    host: Arc<dyn Host>,
    within: Duration,
) -> Outcome {
    let (method, params) = match known(instance, request).and_then(|()| question(request)) {
        Ok(question) => question,
        Err(failure) => return (Err(failure), Usage::default()),
    };
    let call = NewCall::new(host, request.session.clone(), limits.clone(), within);
    let work = |number| converse(&instance.peer, number, request.operation, method, params);
    match instance.peer.during(call, work).await {
        Ok((outcome, usage)) => (outcome.and_then(|result| within_limit(result, limits)), usage),
        Err(Answer { failure, usage }) => (Err(failure), usage),
    }
}

/// What a server does not show it is not asked for. Addresses of resources only it knows.
fn known(instance: &Instance, request: &Request) -> Result<(), Failure> {
    let (names, what) = match request.operation {
        Operation::Tool => (&instance.offered.tools, "tool"),
        Operation::Prompt => (&instance.offered.prompts, "prompt"),
        Operation::Resource | Operation::Complete => return Ok(()),
    };
    if names.contains(&request.name) {
        return Ok(());
    }
    Err(Failure::new(Code::UnknownTool, format!("there is no {what} `{}`", request.name)))
}

fn within_limit(result: Bytes, limits: &Limits) -> Result<Bytes, Failure> {
    let (bytes, most) = (result.len() as u64, limits.result_kb * 1024);
    if bytes > most {
        let message = format!("the result has {bytes} bytes of JSON, {most} are allowed (`result_kb`)");
        return Err(Failure::new(Code::ResultLimit, message));
    }
    Ok(result)
}

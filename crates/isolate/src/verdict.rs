//! From the way a process ended to what its caller is told.

use isolate_wire::{Ended, Malformed};
use policy::Limits;
use sandbox::{Code, During, Failure};

/// Exit codes of a worker that ended itself; `isolate-engine` has them for the other side.
const OUT_OF_MEMORY: i32 = 77;

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGPROF: i32 = 27;
const SIGSYS: i32 = 31;

/// Why the host stopped listening to a compartment.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// It closed its channel, or the kernel closed it.
    Closed,
    /// It spoke nonsense.
    Malformed(Malformed),
    /// It sent what it has no business to send.
    OutOfTurn,
    /// The host killed it for this.
    Limit(Code),
}

impl Cause {
    /// What the host ended it for; `None` when it went by itself, or nothing was left for it to do.
    pub(crate) fn of_the_host(&self) -> Option<Code> {
        match self {
            Cause::Limit(code) => Some(*code),
            Cause::Malformed(_) | Cause::OutOfTurn => Some(Code::ProtocolViolation),
            Cause::Closed => None,
        }
    }
}

pub(crate) fn verdict(cause: &Cause, ended: Option<&Ended>, limits: &Limits, during: During) -> Failure {
    let of_exit = || ended.map_or(Code::CompartmentLost, |ended| of_exit(ended, limits));
    let code = cause.of_the_host().unwrap_or_else(of_exit);
    let mut failure = Failure::of_end(code, limits, during);
    let detail = match (cause, code, ended) {
        (Cause::Malformed(malformed), ..) => format!(": {malformed}"),
        (_, Code::Crashed, Some(Ended { signal: Some(signal), .. })) => format!(" (signal {signal})"),
        (_, Code::Crashed, Some(Ended { code: Some(code), .. })) => format!(" (exit {code})"),
        _ => String::new(),
    };
    failure.message += &detail;
    failure
}

fn of_exit(ended: &Ended, limits: &Limits) -> Code {
    match (ended.signal, ended.code) {
        (Some(SIGPROF | SIGXCPU), _) => Code::CpuLimit,
        (Some(SIGSYS), _) => Code::JailViolation,
        // Not by us: by the kernel for want of memory, by an operator, or with its zygote.
        (Some(SIGKILL), _) => Code::CompartmentLost,
        (_, Some(OUT_OF_MEMORY)) => Code::MemoryLimit,
        // An allocation that was refused can end in any fault; one with full memory is called by its cause.
        _ if nearly_full(ended, limits) => Code::MemoryLimit,
        _ => Code::Crashed,
    }
}

fn nearly_full(ended: &Ended, limits: &Limits) -> bool {
    ended.memory_kb >= limits.memory_mb * 1024 / 10 * 7
}

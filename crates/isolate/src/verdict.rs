//! From the way a process ended to what its caller is told.

use isolate_wire::{Ended, Malformed};
use policy::Limits;
use sandbox::{Code, Failure};

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

/// During which work a process ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    Call,
    Initialisation,
}

pub(crate) fn verdict(cause: &Cause, ended: Option<&Ended>, limits: &Limits, during: During) -> Failure {
    let code = match cause {
        Cause::Limit(code) => *code,
        Cause::Malformed(_) | Cause::OutOfTurn => Code::ProtocolViolation,
        Cause::Closed => ended.map_or(Code::CompartmentLost, |ended| of_exit(ended, limits)),
    };
    let limit = matches!(code, Code::CpuLimit | Code::TimeLimit | Code::MemoryLimit);
    if during == During::Initialisation && limit {
        return Failure::new(Code::InitLimit, format!("initialisation failed: {}", sentence(code, limits, during)));
    }
    let detail = match (cause, code, ended) {
        (Cause::Malformed(malformed), ..) => format!(": {malformed}"),
        (_, Code::Crashed, Some(Ended { signal: Some(signal), .. })) => format!(" (signal {signal})"),
        (_, Code::Crashed, Some(Ended { code: Some(code), .. })) => format!(" (exit {code})"),
        _ => String::new(),
    };
    Failure::new(code, sentence(code, limits, during) + &detail)
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

/// For the author of the tool.
pub(crate) fn sentence(code: Code, limits: &Limits, during: During) -> String {
    let init = during == During::Initialisation;
    match code {
        Code::CpuLimit if init => format!("it used more than {} ms of CPU time (`init_cpu_ms`)", limits.init_cpu_ms),
        Code::CpuLimit => format!("the call used more than {} ms of CPU time (`cpu_ms`)", limits.cpu_ms),
        Code::TimeLimit if init => format!("it took longer than {} ms (`init_time_ms`)", limits.init_time_ms),
        Code::TimeLimit => format!("the call took longer than {} ms (`time_ms`)", limits.time_ms),
        Code::MemoryLimit => format!("it needed more than {} MiB of memory (`memory_mb`)", limits.memory_mb),
        Code::LogLimit => format!("the call logged more than {} KiB (`log_kb`)", limits.log_kb),
        Code::HostCallLimit => format!("the call made more than {} host calls (`host_calls`)", limits.host_calls),
        Code::JailViolation => "the compartment made a system call that its jail forbids".to_owned(),
        Code::ProtocolViolation => "the compartment broke the protocol with its host".to_owned(),
        Code::Crashed => "the compartment ended by a fault of its own".to_owned(),
        Code::CompartmentLost => "the compartment was lost through no fault of this call; try again".to_owned(),
        other => other.to_string(),
    }
}

//! From the way a program ended to what its caller is told.

use crate::tail::Tail;
use policy::Limits;
use sandbox::{Code, During, Failure};

/// Why the host stopped listening to a program.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// It closed its standard output, or the kernel did.
    Closed,
    /// Nobody wants it any more, or it ended for somebody else's call.
    Unwanted,
    /// It gave way to another tenant.
    GaveWay,
    /// It computes without end while nobody calls it.
    Restless,
    /// It spoke nonsense.
    Violation(String),
    /// The host killed it for this.
    Limit(Code),
    /// The host killed it for what was said in this call.
    Spoke { call: u64, code: Code },
    /// It shows something else than before.
    Drift(Failure),
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// 128 and the number for a signal; none when it did not end by itself.
    pub(crate) status: Option<i32>,
    /// The kernel killed something in there for want of memory.
    pub(crate) out_of_memory: bool,
}

const SIGKILL: i32 = 128 + 9;
const SIGXCPU: i32 = 128 + 24;
const SIGSYS: i32 = 128 + 31;

/// `memory` is what it held when it was last looked at, in bytes.
pub(crate) fn verdict(
    cause: &Cause,
    ended: Option<&Ended>,
    memory: u64,
    limits: &Limits,
    during: During,
    tail: &Tail,
) -> Failure {
    let init = during == During::Initialisation;
    match cause {
        Cause::Drift(failure) => failure.clone(),
        Cause::Limit(code) | Cause::Spoke { code, .. } => Failure::of_end(*code, limits, during),
        Cause::GaveWay if init => {
            let message =
                "the program was ended while it started, because another tenant needs the memory; try again later";
            Failure::new(Code::Busy, message)
        }
        Cause::Unwanted | Cause::GaveWay | Cause::Restless => Failure::of_end(Code::CompartmentLost, limits, during),
        Cause::Violation(how) if init => Failure::new(Code::InitFailed, format!("{how}{}", tail.shown())),
        Cause::Violation(how) => {
            let mut failure = Failure::of_end(Code::ProtocolViolation, limits, during);
            failure.message += &format!(": {how}");
            failure
        }
        Cause::Closed => {
            let code = ended.map_or(Code::CompartmentLost, |ended| of_end(ended, memory, limits));
            let status = ended.and_then(|ended| ended.status).map_or_else(String::new, how);
            if code == Code::ProtocolViolation {
                let cause = Cause::Violation("it closed its standard output".to_owned());
                return verdict(&cause, ended, memory, limits, during, tail);
            }
            if init && code == Code::Crashed {
                let message = format!("the server ended before it was ready{status}{}", tail.shown());
                return Failure::new(Code::InitFailed, message);
            }
            let mut failure = Failure::of_end(code, limits, during);
            if code == Code::Crashed {
                failure.message += &format!("{status}{}", tail.shown());
            }
            failure
        }
    }
}

fn of_end(ended: &Ended, memory: u64, limits: &Limits) -> Code {
    // An allocation that was refused can end in any fault; one with full memory is called by its cause.
    let full = memory >= (limits.memory_mb << 20) / 10 * 9;
    let Some(status) = ended.status else { return Code::ProtocolViolation };
    match status {
        _ if ended.out_of_memory => Code::MemoryLimit,
        SIGXCPU => Code::CpuLimit,
        SIGSYS => Code::JailViolation,
        _ if full => Code::MemoryLimit,
        // Not by us: by an operator, or with its host.
        SIGKILL => Code::CompartmentLost,
        _ => Code::Crashed,
    }
}

fn how(status: i32) -> String {
    if status > 128 { format!(" (signal {})", status - 128) } else { format!(" (exit {status})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: i32, out_of_memory: bool, memory: u64, during: During) -> Code {
        let ended = Ended { status: Some(status), out_of_memory };
        verdict(&Cause::Closed, Some(&ended), memory, &Limits::default(), during, &Tail::default()).code
    }

    #[test]
    fn the_end_tells_whose_fault_it_was() {
        assert_eq!(code(1, false, 0, During::Call), Code::Crashed);
        assert_eq!(code(0, false, 0, During::Initialisation), Code::InitFailed);
        assert_eq!(code(SIGKILL, false, 0, During::Call), Code::CompartmentLost);
        assert_eq!(code(SIGKILL, true, 0, During::Call), Code::MemoryLimit);
        assert_eq!(code(134, false, 127 << 20, During::Call), Code::MemoryLimit);
        assert_eq!(code(SIGKILL, true, 0, During::Initialisation), Code::InitLimit);
        assert_eq!(code(SIGSYS, false, 0, During::Call), Code::JailViolation);
    }

    #[test]
    fn a_failed_start_shows_the_last_words() {
        let mut tail = Tail::default();
        tail.push("no such module");
        let ended = Ended { status: Some(1), out_of_memory: false };
        let during = During::Initialisation;
        let failure = verdict(&Cause::Closed, Some(&ended), 0, &Limits::default(), during, &tail);
        assert!(failure.message.contains("exit 1") && failure.message.contains("no such module"), "{failure}");
    }
}

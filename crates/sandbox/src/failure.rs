//! Why a call has no result.

use policy::Limits;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The stable names of all failures. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The call used more CPU time than `cpu_ms`; its compartment was killed.
    CpuLimit,
    /// The call took longer than `time_ms`; its compartment was killed.
    TimeLimit,
    /// The compartment needed more memory than `memory_mb`.
    MemoryLimit,
    /// The result is larger than `result_kb`.
    ResultLimit,
    /// The call logged more than `log_kb`.
    LogLimit,
    /// The call made more host calls than `host_calls`.
    HostCallLimit,
    /// The arguments are larger than `argument_kb` or deeper than `argument_depth`.
    ArgumentLimit,
    /// The arguments are not JSON.
    BadArguments,
    /// The tool threw, or its result is not JSON.
    ToolError,
    /// The server has no such tool, resource or prompt.
    UnknownTool,
    /// The server did not initialise: it threw, does not parse, imports what is not there, or exports no server.
    InitFailed,
    /// The code shows something else than what was deployed.
    SurfaceDrift,
    /// Initialisation exceeded `init_cpu_ms`, `init_time_ms` or `memory_mb`.
    InitLimit,
    /// The compartment made a system call that its jail forbids.
    JailViolation,
    /// The compartment spoke nonsense to the host.
    ProtocolViolation,
    /// The compartment ended by a fault of its own.
    Crashed,
    /// The compartment was lost through no fault of this call.
    CompartmentLost,
    /// The caller gave up.
    Cancelled,
    /// Too much is running; try again.
    Busy,
    /// This host cannot enforce what the wall promises.
    WallUnavailable,
}

impl Code {
    /// The name as scripts see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::CpuLimit => "cpu_limit",
            Code::TimeLimit => "time_limit",
            Code::MemoryLimit => "memory_limit",
            Code::ResultLimit => "result_limit",
            Code::LogLimit => "log_limit",
            Code::HostCallLimit => "host_call_limit",
            Code::ArgumentLimit => "argument_limit",
            Code::BadArguments => "bad_arguments",
            Code::ToolError => "tool_error",
            Code::UnknownTool => "unknown_tool",
            Code::InitFailed => "init_failed",
            Code::InitLimit => "init_limit",
            Code::SurfaceDrift => "surface_drift",
            Code::JailViolation => "jail_violation",
            Code::ProtocolViolation => "protocol_violation",
            Code::Crashed => "crashed",
            Code::CompartmentLost => "compartment_lost",
            Code::Cancelled => "cancelled",
            Code::Busy => "busy",
            Code::WallUnavailable => "wall_unavailable",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure with a sentence for the tool's author. It never holds a path or a name of the host's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

/// During which work a compartment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    Call,
    Initialisation,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// What the author of a tool is told of a compartment that ended for this reason.
    pub fn of_end(code: Code, limits: &Limits, during: During) -> Failure {
        let init = during == During::Initialisation;
        if init && matches!(code, Code::CpuLimit | Code::TimeLimit | Code::MemoryLimit) {
            return Failure::new(Code::InitLimit, format!("initialisation failed: {}", sentence(code, limits, init)));
        }
        Failure::new(code, sentence(code, limits, init))
    }
}

fn sentence(code: Code, limits: &Limits, init: bool) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_their_serialised_form() {
        for code in [Code::CpuLimit, Code::HostCallLimit, Code::WallUnavailable, Code::CompartmentLost] {
            assert_eq!(serde_json::to_string(&code).unwrap(), format!("\"{code}\""));
        }
    }
}

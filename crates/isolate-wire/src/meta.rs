//! What the metas of frames hold.

use serde::{Deserialize, Serialize};

/// How a carrier is to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub jit: bool,
    /// Spend memory and a longer start on quicker forks.
    pub quick_forks: bool,
    /// The greatest V8 heap any deployment of this zygote may ask for.
    pub heap_mb: u64,
    /// The uid of the host that it becomes, where it is started by root and has one to itself.
    pub user: Option<u32>,
    /// Processes that it may have, with all that it forks.
    pub processes: u64,
}

/// What a forked process is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Loads one deployment and forks its compartments.
    Zygote,
    /// Serves one call, which waits for it, and ends.
    Call,
    /// The same for a call that is not there yet: until then there is time to make ready for it.
    Spare,
    /// Serves calls until it is told to go.
    Serve,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    pub role: Role,
    /// Lowered for good in the new process and what it forks.
    pub memory_mb: u64,
    /// CPU time of the call, in a process that serves one.
    pub cpu_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What stack traces call the file.
    pub name: String,
    pub cpu_ms: u64,
    /// The greatest surface, in bytes of JSON.
    pub surface_bytes: u64,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Tool,
    Resource,
    Prompt,
    /// Suggestions for an argument of a prompt or a variable of a resource's address; the input says which.
    Complete,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub operation: Operation,
    /// The tool's or prompt's name, or the resource's address; empty for a completion.
    pub name: String,
    /// Which of the loaded servers, in the order of loading.
    pub server: u32,
    pub result_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub code: String,
    pub message: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    pub version: u32,
    pub v8: String,
    pub landlock_abi: u32,
    pub user_namespace: bool,
}

/// How a process ended, as its parent saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub cpu_us: u64,
    /// Peak of resident memory above the base zygote's.
    pub memory_kb: u64,
}

/// What a call used, as its own process saw it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub cpu_us: u64,
    /// Growth of resident memory over a waiting compartment.
    pub memory_kb: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    pub code: FailCode,
    pub message: String,
    pub used: Used,
}

/// The failures a process can tell of itself; all others are seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailCode {
    ToolError,
    UnknownTool,
    ResultLimit,
    BadArguments,
    InitFailed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCall {
    /// The call on whose behalf it is made.
    pub call: u32,
    pub operation: String,
    /// The operation's own description, JSON as text.
    pub meta: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub level: String,
}

#![forbid(unsafe_code)]
//! The frames between the host and a worker process.
//!
//! A frame is `length: u32 | kind: u8 | id: u32 | meta length: u32 | meta | body`, little endian; the length counts
//! what follows it. `meta` is JSON that the receiver parses, `body` is bytes that it mostly only carries.
//! What comes from a worker is an attacker's: [`Decoder`] refuses a length above the receiver's cap before it
//! makes room for it, and no input makes it panic or hold more than the cap.

mod decoder;
mod meta;

pub use decoder::{Decoder, Malformed};
pub use meta::*;

/// Both ends must agree on it; a worker says it in its first frame.
pub const VERSION: u32 = 4;

/// What a frame is about. The numbers are the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// host → carrier: how to start. Meta [`Start`].
    Start = 1,
    /// host → zygote: fork; the new process's channel comes with the frame. Meta [`Fork`].
    Fork = 2,
    /// host → zygote: what became of the process `id`.
    Reap = 3,
    /// host → process: evaluate a server. Meta [`Load`], body the source.
    Load = 4,
    /// host → process: call `id`. Meta [`Call`], body the input as JSON.
    Call = 5,
    /// host → process: the answer to host call `id`. Meta the operation's own, body its bytes.
    Reply = 6,
    /// host → process: host call `id` was refused. Meta [`Refused`].
    Refuse = 7,
    /// host → process: abort call `id`, politely.
    Abort = 8,
    /// host → zygote: put your memory into the file that comes with the frame. Body its length, 8 bytes.
    Freeze = 9,
    /// host → zygote: go the way of a call once, as your forks will.
    Rehearse = 10,

    /// zygote → host: up and jailed. Meta [`Hello`].
    Hello = 64,
    /// zygote → host: forked as `id` (its own numbering); the process's pidfd comes with the frame.
    Forked = 65,
    /// zygote → host: process `id` has ended. Meta [`Ended`].
    Reaped = 66,
    /// process → host: the server is loaded. Body its surface as JSON.
    Loaded = 67,
    /// process → host: call `id` is answered. Meta [`Used`], body the result as JSON.
    Done = 68,
    /// process → host: call `id`, or the load, failed. Meta [`Failed`].
    Failed = 69,
    /// process → host: host call `id`. Meta [`HostCall`], body the operation's bytes.
    HostCall = 70,
    /// process → host: a log line of call `id`. Meta [`Log`], body the text.
    Log = 71,
    /// process → host: progress of call `id`. Body JSON.
    Progress = 72,
    /// process → host: what runs from here on belongs to call `id`. Sent only while several calls are in flight.
    Running = 73,
    /// carrier → host: could not start. Body the reason.
    StartFailed = 74,
    /// zygote → host: done, and the file is let go. Body how much of it was used, 8 bytes.
    Frozen = 75,
    /// zygote → host: done.
    Rehearsed = 76,
}

impl Kind {
    fn from_u8(number: u8) -> Option<Kind> {
        const ALL: [Kind; 23] = [
            Kind::Start,
            Kind::Fork,
            Kind::Reap,
            Kind::Load,
            Kind::Call,
            Kind::Reply,
            Kind::Refuse,
            Kind::Abort,
            Kind::Freeze,
            Kind::Rehearse,
            Kind::Hello,
            Kind::Forked,
            Kind::Reaped,
            Kind::Loaded,
            Kind::Done,
            Kind::Failed,
            Kind::HostCall,
            Kind::Log,
            Kind::Progress,
            Kind::Running,
            Kind::StartFailed,
            Kind::Frozen,
            Kind::Rehearsed,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// One message, as it stands in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub id: u32,
    pub meta: Vec<u8>,
    pub body: Vec<u8>,
}

/// Bytes of a frame beside its meta and body, the length field not counted.
pub const OVERHEAD: usize = 9;

/// Encodes a frame. `None` when it would not fit the length field.
pub fn encode(kind: Kind, id: u32, meta: &[u8], body: &[u8]) -> Option<Vec<u8>> {
    let length = OVERHEAD.checked_add(meta.len())?.checked_add(body.len())?;
    let mut out = Vec::with_capacity(4 + length);
    out.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    out.push(kind as u8);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&u32::try_from(meta.len()).ok()?.to_le_bytes());
    out.extend_from_slice(meta);
    out.extend_from_slice(body);
    Some(out)
}

/// As [`encode`], with a meta that is serialised here. Our own metas always serialise.
pub fn encode_with<T: serde::Serialize>(kind: Kind, id: u32, meta: &T, body: &[u8]) -> Option<Vec<u8>> {
    encode(kind, id, &serde_json::to_vec(meta).ok()?, body)
}

impl Frame {
    /// Parses the meta. Unknown keys are refused by the types themselves.
    pub fn meta<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Malformed> {
        serde_json::from_slice(&self.meta).map_err(|_| Malformed::Meta(self.kind))
    }
}

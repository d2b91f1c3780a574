//! What a hostile compartment may write.

use super::rig::Manner;
use isolate_wire::{FailCode, Failed, HostCall, Kind, Log, Used, encode, encode_with};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Closes,
    FallsSilent,
}

pub(super) fn endings() -> impl Strategy<Value = Ending> {
    prop::sample::select(vec![Ending::Closes, Ending::FallsSilent])
}

pub(super) fn manners() -> impl Strategy<Value = Manner> {
    prop::sample::select(vec![Manner::Replies, Manner::Refuses, Manner::TakesItsTime, Manner::NeverAnswers])
}

/// Writes it all, reading what comes meanwhile or not, and then closes the channel or does nothing for ever.
pub(super) async fn speak(child: UnixStream, bytes: Vec<u8>, ending: Ending, reads: bool) {
    let (mut incoming, mut outgoing) = child.into_split();
    let write = async {
        // It fails when the host has ended it.
        let _ = outgoing.write_all(&bytes).await;
        match ending {
            Ending::Closes => {}
            Ending::FallsSilent => std::future::pending().await,
        }
    };
    let read = async {
        let mut buffer = vec![0; 64 << 10];
        while reads && incoming.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
        std::future::pending::<()>().await;
    };
    tokio::select! { () = write => {}, () = read => {} }
}

pub(super) fn every_kind() -> [Kind; 19] {
    use Kind::*;
    [
        Start,
        Fork,
        Reap,
        Load,
        Call,
        Reply,
        Refuse,
        Abort,
        Hello,
        Forked,
        Reaped,
        Loaded,
        Done,
        Failed,
        HostCall,
        Log,
        Progress,
        Running,
        StartFailed,
    ]
}

/// Frames whole and broken, in any order, some of them many times over.
pub(super) fn script() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => sensible(),
        4 => frame(),
        2 => (sensible(), 1usize..400).prop_map(|(frame, times)| frame.repeat(times)),
        1 => (frame(), any::<prop::sample::Index>()).prop_map(|(frame, cut)| frame[..cut.index(frame.len())].to_vec()),
        1 => any::<u32>().prop_map(|length| length.to_le_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..64),
    ];
    // The one ends soon by what is broken in it, the other only by a limit.
    let broken = vec(piece, 0..24).prop_map(|pieces| pieces.concat());
    let chatter = vec((talk(), 1usize..40), 0..24);
    let chatter =
        chatter.prop_map(|pieces| pieces.into_iter().flat_map(|(frame, times)| frame.repeat(times)).collect());
    prop_oneof![broken, chatter]
}

/// What a worker in its right mind might send, if at another time.
fn sensible() -> impl Strategy<Value = Vec<u8>> {
    let used = || (any::<u64>(), any::<u64>()).prop_map(|(cpu_us, memory_kb)| Used { cpu_us, memory_kb });
    let code = prop_oneof![
        Just(FailCode::ToolError),
        Just(FailCode::UnknownTool),
        Just(FailCode::ResultLimit),
        Just(FailCode::BadArguments),
        Just(FailCode::InitFailed),
    ];
    let done = (id(), used(), body()).prop_map(|(id, used, body)| encode_with(Kind::Done, id, &used, &body));
    let failed = (id(), code, ".{0,40}", used())
        .prop_map(|(id, code, message, used)| encode_with(Kind::Failed, id, &Failed { code, message, used }, b""));
    prop_oneof![1 => done.prop_map(fits), 1 => failed.prop_map(fits), 14 => talk()]
}

/// What it might send of a call that goes on.
fn talk() -> impl Strategy<Value = Vec<u8>> {
    let asks = (any::<u32>(), id(), ".{0,12}", ".{0,40}", body()).prop_map(|(id, call, operation, meta, body)| {
        encode_with(Kind::HostCall, id, &HostCall { call, operation, meta }, &body)
    });
    let logs =
        (id(), ".{0,12}", body()).prop_map(|(id, level, body)| encode_with(Kind::Log, id, &Log { level }, &body));
    let progress = (id(), body()).prop_map(|(id, body)| encode(Kind::Progress, id, b"", &body));
    let running = id().prop_map(|id| encode(Kind::Running, id, b"", b""));
    prop_oneof![2 => asks, 2 => logs, 2 => progress, 1 => running].prop_map(fits)
}

fn fits(frame: Option<Vec<u8>>) -> Vec<u8> {
    frame.expect("it fits")
}

/// A well-formed frame of any kind about anything.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let meta = prop_oneof![vec(any::<u8>(), 0..40), arbitrary_json().prop_map(|json| json.to_string().into_bytes()),];
    let kind = prop::sample::select(every_kind().to_vec());
    (kind, id(), meta, body()).prop_map(|(kind, id, meta, body)| encode(kind, id, &meta, &body).expect("it fits"))
}

/// Often one of a call in flight.
fn id() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0u32..4, 1 => any::<u32>()]
}

/// Mostly small, now and then above what a log or a result may have.
fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![6 => vec(any::<u8>(), 0..64), 1 => vec(any::<u8>(), 900..1400)]
}

pub(super) fn arbitrary_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        prop::sample::select(vec![
            "call",
            "operation",
            "meta",
            "level",
            "code",
            "message",
            "used",
            "cpu_us",
            "memory_kb"
        ])
        .prop_map(str::to_owned),
        ".{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,16}".prop_map(Value::from),
        Just(Value::from("tool_error")),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((key.clone(), inner), 0..6).prop_map(Value::from_iter),
        ]
    })
}

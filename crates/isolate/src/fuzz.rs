//! For fuzzers: whatever a compartment may write, as the host reads it.

use crate::control::{self, Control};
use crate::driver::{Driver, NewCall};
use crate::process::Process;
use crate::zygote::{Forked, Zygote};
use bytes::Bytes;
use isolate_wire::Decoder;
use policy::Limits;
use sandbox::{LogLine, NoNetwork, Operation, Request};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

/// Frames of these bytes, as the decoder gives them out: how many, before the end or the first that is none.
pub fn decode(bytes: &[u8]) -> usize {
    let mut decoder = Decoder::new(1 << 16);
    decoder.push(bytes);
    std::iter::from_fn(|| decoder.next_frame().ok().flatten()).count()
}

/// A compartment with two calls in flight writes these bytes and ends. Both calls must be answered; gives how many of them
/// succeeded.
pub fn compartment(bytes: &[u8]) -> io::Result<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (zygotes, _) = control::pair()?;
        let zygote = Arc::new(Zygote::new(Control::new(zygotes), Process::nobody(), None));
        let (stream, theirs) = control::pair()?;
        let theirs = UnixStream::from(theirs);
        theirs.set_nonblocking(true)?;
        let mut theirs = tokio::net::UnixStream::from_std(theirs)?;
        let bytes = bytes.to_vec();
        let speaker = tokio::spawn(async move { theirs.write_all(&bytes).await });
        let mut driver = Driver::new(Forked { process: Process::nobody(), stream }, zygote)?;
        let answers = [(); 2].map(|()| {
            let (answer, answered) = oneshot::channel();
            let (input, name) = (Bytes::from_static(b"{}"), "run".to_owned());
            let request = Request { operation: Operation::Tool, name, input, session: None };
            let host = Arc::new(NoNetwork(|_: LogLine| {}));
            let (limits, within) = (Limits::default(), Duration::from_secs(1));
            driver.begin(NewCall { request, server: 0, limits, within, host, answer });
            answered
        });
        let cause = loop {
            match driver.step().await {
                Err(cause) => break Some(cause),
                Ok(()) if driver.idle() => break None,
                Ok(()) => {}
            }
        };
        if let Some(cause) = cause {
            driver.end(cause).await;
        }
        speaker.abort();
        let mut succeeded = 0;
        for answered in answers {
            let (outcome, _) = answered.await.map_err(io::Error::other)?;
            succeeded += usize::from(outcome.is_ok());
        }
        Ok(succeeded)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolate_wire::{Kind, Used, encode_with};

    #[test]
    fn both_calls_are_answered_whatever_is_said() {
        let used = Used { cpu_us: 1, memory_kb: 1 };
        let done = |id| encode_with(Kind::Done, id, &used, b"1").expect("it is short");
        let both = [done(1), done(2)].concat();
        assert_eq!((decode(&both), compartment(&both).expect("answers")), (2, 2));
        assert_eq!(compartment(&done(2)).expect("answers"), 1);
        assert_eq!(compartment(&[done(2), done(2)].concat()).expect("answers"), 1);
        for nonsense in [&b""[..], b"\xff\xff\xff\xff", &both[..30]] {
            assert!(compartment(nonsense).expect("answers") < 2);
        }
    }
}

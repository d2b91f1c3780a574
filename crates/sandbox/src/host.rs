//! What a compartment may ask of the host while a call runs.

use crate::wall::Future;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

/// A question from inside: `operation` with its own JSON description and bytes. All of it is the attacker's.
#[derive(Clone, Debug)]
pub struct HostCall {
    pub operation: String,
    pub meta: String,
    pub body: Bytes,
}

#[derive(Clone, Debug)]
pub struct HostReply {
    /// JSON.
    pub meta: String,
    pub body: Bytes,
}

/// A refusal, which the code inside sees as an error.
#[derive(Clone, Debug)]
pub struct HostRefusal {
    pub code: String,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct LogLine {
    pub level: String,
    pub text: String,
}

/// A connection as bytes, both ways.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The host's side of a call: the only way out of a compartment. Counting and limits are the wall's work.
pub trait Host: Send + Sync {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>>;

    /// A line the tool logged.
    fn log(&self, line: LogLine);

    /// Progress the tool reported, as JSON text.
    fn progress(&self, _json: String) {}

    /// Serves a connection that the program made to its proxy during the call, until it ends or the future is dropped.
    /// Without a way out it is over at once.
    fn connection(&self, _stream: Box<dyn Stream>) -> Future<'static, ()> {
        Box::pin(async {})
    }

    /// Names of upstream hosts reached so far, for the receipt.
    fn hosts_reached(&self) -> Vec<String> {
        Vec::new()
    }

    /// Names of the secrets that went along so far, for the receipt.
    fn credentials_used(&self) -> Vec<String> {
        Vec::new()
    }

    /// How many secrets were masked so far in what came back, for the receipt.
    fn secrets_masked(&self) -> u64 {
        0
    }
}

/// A host without a way out, and without a client behind the call: `bulkhead exec`. Every fetch and every question is
/// refused with the reason, and log lines go to a function.
pub struct NoNetwork<F>(pub F);

impl<F: Fn(LogLine) + Send + Sync> Host for NoNetwork<F> {
    fn call(&self, call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        let (code, message) = match call.operation.as_str() {
            "fetch" => {
                ("egress_denied", "this host has no egress: no network can be reached from a compartment".to_owned())
            }
            "ask" => ("client_cannot", "`bulkhead exec` has no client to ask".to_owned()),
            "client" => ("client_cannot", "`bulkhead exec` has no client to tell of".to_owned()),
            "notify" => ("client_cannot", "`bulkhead exec` has no client to notify".to_owned()),
            other => {
                let shown: String = other.chars().take(40).collect();
                ("egress_denied", format!("this host has no operation `{shown}`"))
            }
        };
        Box::pin(async move { Err(HostRefusal { code: code.to_owned(), message }) })
    }

    fn log(&self, line: LogLine) {
        (self.0)(line);
    }
}

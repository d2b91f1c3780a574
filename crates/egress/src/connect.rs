//! One connection: to an address that was checked, with a name that was proven.

use crate::denied::Denied;
use crate::limits::Limits;
use crate::target::{Host, Origin, Scheme};
use crate::upload::Upload;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// Addresses that are tried of those that a name has.
const TRIES: usize = 4;
/// What an unread HTTP/2 stream holds of its server's bytes.
const STREAM_WINDOW: u32 = 128 << 10;

pub(crate) enum Sender {
    Http1(http1::SendRequest<Upload>),
    Http2(http2::SendRequest<Upload>),
}

/// Ends the connection when nobody needs it any more.
pub(crate) struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Trusts the machine's certificate authorities, and those given.
pub(crate) fn tls(extra: &[CertificateDer<'static>]) -> Result<TlsConnector, Denied> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for root in extra {
        roots.add(root.clone()).map_err(|error| Denied::tls(format!("an extra root certificate is none: {error}")))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Denied::tls(format!("TLS cannot be set up: {error}")))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Sessions would be shared by all tenants, and servers could tell by them who belongs together.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

pub(crate) async fn connect(
    origin: &Origin,
    addresses: &[SocketAddr],
    tls: &TlsConnector,
    limits: &Limits,
) -> Result<(Sender, Task), Denied> {
    let stream = reach(origin, addresses, limits).await?;
    match origin.scheme {
        Scheme::Http => shake_http1(stream, origin, limits).await,
        Scheme::Https => {
            let name = match &origin.host {
                Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| Denied::tls("no name for TLS"))?,
                Host::Address(address) => ServerName::from(*address),
            };
            let stream = tls.connect(name, stream).await.map_err(|error| {
                Denied::tls(format!("{origin} could not prove who it is, or speaks no TLS: {error}"))
            })?;
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => shake_http2(stream, origin, limits).await,
                _ => shake_http1(stream, origin, limits).await,
            }
        }
    }
}

/// Connects to the first address that answers.
pub(crate) async fn reach(origin: &Origin, addresses: &[SocketAddr], limits: &Limits) -> Result<TcpStream, Denied> {
    let tries = &addresses[..addresses.len().min(TRIES)];
    let each = Duration::from_millis(limits.connect_ms) / u32::try_from(tries.len().max(1)).unwrap_or(1);
    let mut stream = None;
    for address in tries {
        if let Ok(Ok(connected)) = tokio::time::timeout(each, TcpStream::connect(address)).await {
            stream = Some(connected);
            break;
        }
    }
    let stream = stream.ok_or_else(|| Denied::network(format!("{origin} does not accept connections")))?;
    // Only speed depends on it.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

async fn shake_http1<S>(stream: S, origin: &Origin, limits: &Limits) -> Result<(Sender, Task), Denied>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder
        .max_headers(usize::try_from(limits.headers).unwrap_or(100))
        .max_buf_size(usize::try_from(limits.header_bytes).unwrap_or(0).max(8192));
    let shaken = builder.handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|error| failure(origin, &error))?;
    Ok((Sender::Http1(sender), Task(tokio::spawn(connection).abort_handle())))
}

async fn shake_http2<S>(stream: S, origin: &Origin, limits: &Limits) -> Result<(Sender, Task), Denied>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let streams = u32::try_from(limits.open_per_host).unwrap_or(1).clamp(1, 256);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        // Streams that nobody reads leave room for one that somebody does.
        .initial_connection_window_size(STREAM_WINDOW * (streams + 1))
        .max_send_buf_size(64 << 10)
        .max_concurrent_reset_streams(usize::try_from(streams).unwrap_or(16));
    let shaken = builder.handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|error| failure(origin, &error))?;
    Ok((Sender::Http2(sender), Task(tokio::spawn(connection).abort_handle())))
}

/// What hyper says, with its cause; a refusal of our own underneath is told as it is.
pub(crate) fn failure(origin: &Origin, error: &hyper::Error) -> Denied {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    let mut text = format!("{origin} failed: {error}");
    while let Some(inner) = cause {
        if let Some(denied) = inner.downcast_ref::<Denied>() {
            return denied.clone();
        }
        cause = inner.source();
        if let Some(next) = cause {
            text += &format!(": {next}");
        }
    }
    Denied::network(text)
}

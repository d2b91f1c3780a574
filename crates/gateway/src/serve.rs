//! The listener: connections that are counted, timed, and let go in order.

use crate::app::App;
use crate::settings::HttpSettings;
use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;

/// Accepts until the host closes, then waits for what is running until `deadline` after that.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    app: Arc<App>,
    settings: HttpSettings,
    grace: Duration,
) {
    let places = Arc::new(Semaphore::new(settings.max_connections));
    let graceful = GracefulShutdown::new();
    let builder = builder(&settings);
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = app.closed() => break,
        };
        let Ok(place) = place else { break };
        let socket = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => socket,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            },
            () = app.closed() => break,
        };
        // Without this every small answer on a stream waits for the last one's acknowledgement.
        let _ = socket.set_nodelay(true);
        // Who is gone without a word is noticed by what it does not acknowledge: an answer, or a stream's heartbeat.
        let _ = SockRef::from(&socket).set_tcp_user_timeout(Some(settings.write_timeout));
        let io = TokioIo::new(Impatient::new(socket, settings.write_timeout));
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(builder.serve_connection(io, service));
        let app = app.clone();
        tokio::spawn(async move {
            app.metrics.connections(1);
            // How a connection ends is the client's affair.
            let _ = connection.await;
            app.metrics.connections(-1);
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still running at the deadline and are cut off");
    }
}

/// HTTP/1.1 alone: MCP clients speak it, so do proxies, and a connection that says nothing is then known as such. With a
/// guess of the version in front, or HTTP/2 behind it, silence has no limit.
fn builder(settings: &HttpSettings) -> Builder {
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(settings.header_timeout).max_buf_size(64 * 1024);
    builder
}

/// Out of descriptors, most likely: trying again at once would only spin.
async fn pause_after(error: &io::Error) {
    let of_one_connection = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    );
    if !of_one_connection {
        tracing::error!(%error, "connections cannot be accepted");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A socket whose other end must take what it is sent, or is cut off.
struct Impatient {
    socket: TcpStream,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn new(socket: TcpStream, patience: Duration) -> Impatient {
        Impatient { socket, patience, stalled: None }
    }

    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

//! Bytes that nobody can read, between a client and the one address that was checked.

use super::Proxy;
use crate::connect;
use crate::denied::Denied;
use crate::ledger::Trace;
use crate::send::{self, patiently};
use crate::target::Target;
use crate::tenant::Places;
use crate::upload::Progress;
use crate::visit::Visit;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

const BUFFER: usize = 16 << 10;

pub(super) struct Tunnel {
    target: Target,
    server: TcpStream,
    trace: Trace,
    _places: Places,
    _place: OwnedSemaphorePermit,
}

impl Tunnel {
    /// Connects. Nothing is sent yet.
    pub(super) async fn open(visit: &Visit, target: &Target, rule: String) -> Result<Tunnel, Denied> {
        let (door, origin) = (&visit.door, &target.origin);
        let limits = &door.limits;
        let trace = visit.ledger.note("CONNECT", Some(target), Some(rule));
        let opened = async {
            trace.up(0)?;
            let tenant = door.tenants.get(&visit.pass.tenant, limits);
            let places = tenant.enter(&origin.host.to_string(), limits).await?;
            let late = |_| Denied::timeout(format!("no connection to {origin} in time (`connect_ms`)"));
            let reached = tokio::time::timeout(Duration::from_millis(limits.connect_ms), async {
                let addresses = door.gate.addresses(origin, &tenant.lookups).await?;
                let place = send::place(door).await?;
                Ok((connect::reach(origin, &addresses, limits).await?, place))
            });
            let (server, place) = reached.await.map_err(late)??;
            Ok((server, places, place))
        };
        let (server, places, place) = opened.await.inspect_err(|denied: &Denied| trace.failed(denied.code))?;
        trace.status(200);
        Ok(Tunnel { target: target.clone(), server, trace, _places: places, _place: place })
    }

    /// Lets bytes through, once the client has asked for the right name.
    pub(super) async fn run<S>(mut self, mut client: S, proxy: &Proxy)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let limits = &proxy.visit.door.limits;
        let most = Duration::from_millis(limits.header_ms);
        let hello = tokio::time::timeout(most, proxy.hello(&mut client, &self.target.origin)).await;
        let done = match hello.unwrap_or_else(|_| Err(Denied::timeout("TLS was not there in time (`header_ms`)"))) {
            Ok(ahead) => {
                let most = Duration::from_millis(limits.tunnel_ms);
                let idle = Duration::from_millis(limits.tunnel_idle_ms);
                let late = |_| Err(Denied::timeout("the tunnel was open for too long (`tunnel_ms`)"));
                tokio::time::timeout(most, self.relay(client, &ahead, idle)).await.unwrap_or_else(late)
            }
            Err(denied) => Err(denied),
        };
        if let Err(denied) = done {
            self.trace.failed(denied.code);
            proxy.notice(&self.target.origin, denied);
        }
    }

    async fn relay<S>(&mut self, client: S, ahead: &[u8], idle: Duration) -> Result<(), Denied>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let progress = Progress::new();
        let (from_client, to_client) = tokio::io::split(client);
        let (from_server, to_server) = self.server.split();
        let up = pump(ahead.chain(from_client), to_server, &progress, |bytes| self.trace.up(bytes));
        let down = pump(from_server, to_client, &progress, |bytes| self.trace.down(bytes));
        let both = async { tokio::try_join!(up, down).map(drop) };
        let quiet = || Err(Denied::timeout("nothing went through the tunnel for too long (`tunnel_idle_ms`)"));
        patiently(both, &progress, idle).await.unwrap_or_else(quiet)
    }
}

/// One direction, until its end, which is passed on.
async fn pump<R, W, C>(mut from: R, mut to: W, progress: &Progress, count: C) -> Result<(), Denied>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    C: Fn(u64) -> Result<(), Denied>,
{
    let broken = |_| Denied::network("the tunnel broke off");
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await.map_err(broken)?;
        if read == 0 {
            return to.shutdown().await.map_err(broken);
        }
        count(read as u64)?;
        to.write_all(&buffer[..read]).await.map_err(broken)?;
        progress.mark();
    }
}

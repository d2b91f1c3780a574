//! Ports of other machines, or of this one, for servers that speak something else than HTTP: databases above all. Each has
//! a listener on the jail's own loopback, and its host a name there.

use crate::error::Error;
use crate::voice::Voice;
use egress::{Forbidden, classify};
use jail::program::{Child, Content, Mount};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream as Raw};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at once to one port; more wait.
const CONNECTIONS: usize = 64;
const BACKLOG: u32 = 64;
const PATIENCE: Duration = Duration::from_secs(20);

/// A port that the server may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub host: String,
    pub port: u16,
    /// Where it is inside.
    pub inside: Ipv4Addr,
}

/// What `--tcp` names. Every host has an address of its own inside, so that each can have the same port.
pub(crate) fn read(texts: &[String]) -> Result<Vec<Port>, Error> {
    let mut ports: Vec<Port> = Vec::new();
    for text in texts {
        let wrong = || Error::Tcp(text.clone());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        let host = host.to_ascii_lowercase();
        let known = ports.iter().find(|other| other.host == host).map(|other| other.inside);
        let others = ports.iter().map(|other| other.inside).filter(|inside| *inside != Ipv4Addr::LOCALHOST).max();
        let inside = match host.as_str() {
            "localhost" | "127.0.0.1" => Ipv4Addr::LOCALHOST,
            name if !is_name(name) => return Err(wrong()),
            _ => known.unwrap_or_else(|| {
                let next = others.unwrap_or(Ipv4Addr::new(127, 1, 0, 0));
                Ipv4Addr::from_bits(next.to_bits() + 1)
            }),
        };
        let new = Port { host, port, inside };
        if !ports.contains(&new) {
            ports.push(new);
        }
    }
    Ok(ports)
}

/// Addresses are none: what is not a name inside has no way out.
fn is_name(text: &str) -> bool {
    let plain =
        |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    text.len() <= 253 && text.split('.').all(plain) && text.parse::<IpAddr>().is_err()
}

/// Puts the names of the hosts where the jail looks for them.
pub(crate) fn name(ports: &[Port], mounts: &mut [Mount]) {
    let hosts = mounts.iter_mut().filter(|mount| mount.target == Path::new("/etc/hosts"));
    for mount in hosts {
        if let Content::Text { bytes } = &mut mount.content {
            for port in ports.iter().filter(|port| port.inside != Ipv4Addr::LOCALHOST) {
                bytes.extend_from_slice(format!("{} {}\n", port.inside, port.host).as_bytes());
            }
        }
    }
}

/// Listens inside, and passes on until it is dropped.
pub(crate) fn open(ports: &[Port], child: &Child, voice: &Voice) -> Result<JoinSet<()>, Error> {
    let mut tasks = JoinSet::new();
    for port in ports {
        let inside = SocketAddr::from((port.inside, port.port));
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let socket = child.sockets().ok_or_else(gone).and_then(|sockets| sockets.get(inside.ip()));
        let socket = Raw::from(socket.map_err(Error::Relay)?);
        socket.set_nonblocking(true).map_err(Error::Relay)?;
        let socket = TcpSocket::from_std_stream(socket);
        let taken = |error| Error::Listen { host: port.host.clone(), port: port.port, error };
        socket.bind(inside).map_err(taken)?;
        let listener = socket.listen(BACKLOG).map_err(taken)?;
        tasks.spawn(serve(listener, port.clone(), voice.clone()));
    }
    Ok(tasks)
}

async fn serve(listener: TcpListener, port: Port, voice: Voice) {
    let told = Arc::new(AtomicBool::new(false));
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut served = JoinSet::new();
    while let Ok(place) = places.clone().acquire_owned().await {
        while served.try_join_next().is_some() {}
        let Ok((mut inner, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (port, voice, told) = (port.clone(), voice.clone(), told.clone());
        served.spawn(async move {
            let outer = tokio::time::timeout(PATIENCE, connect(&port)).await;
            match outer.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
                // Whoever breaks off has said enough.
                Ok(mut outer) => drop(tokio::io::copy_bidirectional(&mut inner, &mut outer).await),
                Err(error) if !told.swap(true, Ordering::Relaxed) => {
                    voice.say(&format!("port {} of {} cannot be reached: {error}", port.port, port.host));
                }
                Err(_) => {}
            }
            drop(place);
        });
    }
}

/// Names may lead anywhere, and change.
async fn connect(port: &Port) -> std::io::Result<TcpStream> {
    let mut last = std::io::ErrorKind::NotFound.into();
    for address in lookup_host((port.host.as_str(), port.port)).await? {
        let connected = match allowed(address.ip()) {
            Ok(()) => TcpStream::connect(address).await,
            Err(forbidden) => Err(std::io::Error::other(format!("{}: {forbidden}", address.ip()))),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whoever names a port means this machine, its network or the world: metadata of a cloud is none of these.
fn allowed(address: IpAddr) -> Result<(), Forbidden> {
    let near = match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(_) => false,
    };
    if near || address.is_loopback() { Ok(()) } else { classify(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(texts: &[&str]) -> Result<Vec<Port>, Error> {
        read(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_host_has_an_address_of_its_own() {
        let found = ports(&["localhost:5432", "db.example:5432", "Db.example:80", "other:1", "db.example:80"]).unwrap();
        let inside: Vec<String> =
            found.iter().map(|port| format!("{} {}:{}", port.inside, port.host, port.port)).collect();
        assert_eq!(
            inside,
            ["127.0.0.1 localhost:5432", "127.1.0.1 db.example:5432", "127.1.0.1 db.example:80", "127.1.0.2 other:1"]
        );
    }

    #[test]
    fn a_name_does_not_lead_to_metadata() {
        for address in ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.9", "172.16.0.1", "93.184.216.34"] {
            assert!(allowed(address.parse().unwrap()).is_ok(), "{address}");
        }
        for address in
            ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.169.254", "0.0.0.0", "224.0.0.1"]
        {
            assert!(allowed(address.parse().unwrap()).is_err(), "{address}");
        }
    }

    #[test]
    fn what_names_no_port_of_a_host_is_refused() {
        for text in
            ["", "5432", "localhost", "localhost:", "localhost:0", "a b:1", "10.0.0.1:5432", "::1:5432", "a..b:1", ":1"]
        {
            assert!(ports(&[text]).is_err(), "{text}");
        }
        let mut mounts = vec![Mount { target: "/etc/hosts".into(), content: Content::Text { bytes: b"x\n".to_vec() } }];
        name(&ports(&["localhost:1", "a.example:2"]).unwrap(), &mut mounts);
        assert!(matches!(&mounts[0].content, Content::Text { bytes } if bytes == b"x\n127.1.0.1 a.example\n"));
    }
}

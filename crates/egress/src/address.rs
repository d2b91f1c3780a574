//! From a name to addresses that may be connected to: looked up once, and all of them good or none.

use crate::classify::{Range, classify};
use crate::denied::Denied;
use crate::explain::refused;
use crate::target::{Host, Origin};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// An answer with more is not looked at.
const MOST_ADDRESSES: usize = 64;

pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks names up. What it answers is never trusted: every address is classified.
pub trait Resolve: Send + Sync {
    fn resolve(&self, name: &str) -> Lookup;
}

/// The machine's own resolver.
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> Lookup {
        // The dot keeps the machine's search domains out of it.
        let name = if name.contains('.') { format!("{name}.") } else { name.to_owned() };
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

mod sealed {
    pub trait Ground: Send + Sync + 'static {
        /// Where loopback may be reached.
        fn ports(&self) -> &[u16];
    }
}
pub(crate) use sealed::Ground;

/// Where other people's code runs: loopback is out of reach, and there is nothing to say otherwise with.
pub struct Serve;

/// An author's own machine: some ports of loopback may be reached.
pub struct Dev(pub(crate) Vec<u16>);

impl Ground for Serve {
    fn ports(&self) -> &[u16] {
        &[]
    }
}

impl Ground for Dev {
    fn ports(&self) -> &[u16] {
        &self.0
    }
}

pub(crate) type OwnAddresses = fn() -> io::Result<Vec<IpAddr>>;

/// Read anew each time, because interfaces come and go.
pub(crate) fn own_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(if_addrs::get_if_addrs()?.into_iter().map(|interface| interface.ip()).collect())
}

pub(crate) struct Gate {
    pub(crate) ground: Box<dyn Ground>,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) deny: Vec<Range>,
    pub(crate) own: OwnAddresses,
}

impl Gate {
    /// The addresses to connect to. One forbidden address among those of a name spoils the name: it is either hostile or
    /// set up by mistake, and which of its addresses comes first is for others to choose.
    pub(crate) async fn addresses(&self, origin: &Origin, lookups: &Arc<Semaphore>) -> Result<Vec<SocketAddr>, Denied> {
        let found = match &origin.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let closed = |_| Denied::network("the door is closed");
                let permit = lookups.clone().acquire_owned().await.map_err(closed)?;
                let lookup = self.resolver.resolve(name);
                // A thread that asks a silent server keeps its place until it really ends, whoever still waits for it.
                let task = tokio::spawn(async move {
                    let found = lookup.await;
                    drop(permit);
                    found
                });
                let found = task.await.map_err(|_| Denied::network(format!("looking up {name} failed")))?;
                found.map_err(|_| Denied::network(format!("{name} could not be looked up")))?
            }
        };
        if found.is_empty() || found.len() > MOST_ADDRESSES {
            return Err(Denied::network(format!("{} has {} addresses", origin.host, found.len())));
        }
        let own = (self.own)().map_err(|_| Denied::network("the host's own addresses could not be read"))?;
        for address in &found {
            self.check(*address, origin.port, &own).map_err(|why| refused(&origin.host, &why))?;
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, origin.port)).collect())
    }

    /// The same for an address that a rule has written out, before anybody goes there.
    pub(crate) fn known(&self, host: &Host, port: u16) -> Result<(), Denied> {
        let Host::Address(address) = host else { return Ok(()) };
        let own = (self.own)().map_err(|_| Denied::network("the host's own addresses could not be read"))?;
        self.check(*address, port, &own).map_err(|why| refused(host, &why))
    }

    fn check(&self, address: IpAddr, port: u16, own: &[IpAddr]) -> Result<(), String> {
        if address.is_loopback() && self.ground.ports().contains(&port) {
            return Ok(());
        }
        classify(address).map_err(|forbidden| forbidden.to_string())?;
        // What passed has at most one IPv4 address inside: that of NAT64.
        let inner = match address {
            IpAddr::V6(outer) if outer.segments()[0] == 0x64 => {
                let [.., a, b, c, d] = outer.octets();
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            }
            other => other,
        };
        if own.contains(&address) || own.contains(&inner) {
            return Err("an address of the host itself".to_owned());
        }
        match self.deny.iter().find(|range| range.contains(address) || range.contains(inner)) {
            Some(range) => Err(range.forbidden().to_string()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Scheme, Target};

    struct Says(&'static str);

    impl Resolve for Says {
        fn resolve(&self, _: &str) -> Lookup {
            let address = self.0.parse().map_err(io::Error::other);
            Box::pin(async move { Ok(vec![address?]) })
        }
    }

    fn gate(says: &'static str, own: OwnAddresses) -> Gate {
        Gate { ground: Box::new(Serve), resolver: Arc::new(Says(says)), deny: Vec::new(), own }
    }

    async fn passes(gate: &Gate, url: &str) -> bool {
        let origin = Target::parse(url).unwrap().origin;
        gate.addresses(&origin, &Arc::new(Semaphore::new(1))).await.is_ok()
    }

    #[tokio::test]
    async fn the_host_does_not_reach_itself() {
        fn own() -> io::Result<Vec<IpAddr>> {
            Ok(["93.184.216.34", "2606:2800:220:1::1"].iter().map(|text| text.parse().unwrap()).collect())
        }
        for (says, fine) in [
            ("93.184.216.34", false),
            ("64:ff9b::93.184.216.34", false),
            ("2606:2800:220:1::1", false),
            ("93.184.216.35", true),
            ("2606:2800:220:1::2", true),
        ] {
            assert_eq!(passes(&gate(says, own), "https://a.example/").await, fine, "{says}");
        }
        assert!(!passes(&gate("8.8.8.8", own), "https://93.184.216.34/").await);
        let unknown: OwnAddresses = || Err(io::Error::other("no"));
        assert!(
            !passes(&gate("8.8.8.8", unknown), "https://a.example/").await,
            "not knowing is no reason to let through"
        );
    }

    #[tokio::test]
    async fn the_real_interfaces_are_read() {
        let own = own_addresses().unwrap();
        assert!(own.iter().any(IpAddr::is_loopback), "{own:?}");
        for address in own {
            let host = Host::Address(address);
            let origin = Origin { scheme: Scheme::Https, host, port: 443 };
            let gate = gate("8.8.8.8", own_addresses);
            assert!(gate.addresses(&origin, &Arc::new(Semaphore::new(1))).await.is_err());
        }
    }

    #[test]
    fn a_serving_host_has_no_port_of_loopback() {
        let (serve, dev) = (
            gate("8.8.8.8", own_addresses),
            Gate { ground: Box::new(Dev(vec![80])), ..gate("8.8.8.8", own_addresses) },
        );
        for address in ["127.0.0.1", "127.9.9.9", "::1"] {
            let address = address.parse().unwrap();
            for port in 0..=u16::MAX {
                assert!(serve.check(address, port, &[]).is_err());
                assert_eq!(dev.check(address, port, &[]).is_ok(), port == 80);
            }
        }
    }

    /// A thread that waits for a silent name server keeps its place, though nobody waits for it any more.
    #[tokio::test(start_paused = true)]
    async fn lookups_that_hang_are_counted_to_their_end() {
        struct Hangs;
        impl Resolve for Hangs {
            fn resolve(&self, _: &str) -> Lookup {
                Box::pin(async {
                    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
                    Ok(Vec::new())
                })
            }
        }
        let gate = Gate { resolver: Arc::new(Hangs), ..gate("8.8.8.8", own_addresses) };
        let origin = Target::parse("https://a.example/").unwrap().origin;
        let places = Arc::new(Semaphore::new(2));
        let second = std::time::Duration::from_secs(1);
        for _ in 0..5 {
            assert!(tokio::time::timeout(second, gate.addresses(&origin, &places)).await.is_err());
        }
        assert_eq!(places.available_permits(), 0);
        tokio::time::sleep(second * 130).await;
        assert_eq!(places.available_permits(), 2);
    }
}

//! The door: one for the whole host.

use crate::address::{Dev, Gate, Ground, Resolve, Serve, SystemResolver, own_addresses};
use crate::classify::Range;
use crate::connect;
use crate::denied::Denied;
use crate::explain::{Decision, decide};
use crate::finders::Finders;
use crate::limits::Limits;
use crate::pass::Pass;
use crate::pool::Pool;
use crate::rule::Rules;
use crate::target::Target;
use crate::tenant::Tenants;
use crate::visit::Visit;
use rustls::pki_types::CertificateDer;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;

/// What the operator decides.
pub struct Settings {
    pub limits: Limits,
    pub resolver: Arc<dyn Resolve>,
    /// Trusted beside the machine's own certificate authorities.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Networks that are refused beside what always is: the machine's public address behind a router, its network's own NAT64 prefix.
    pub deny: Vec<(IpAddr, u8)>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            resolver: Arc::new(SystemResolver),
            extra_roots: Vec::new(),
            deny: Vec::new(),
        }
    }
}

pub(crate) struct Inner {
    pub(crate) limits: Arc<Limits>,
    pub(crate) gate: Gate,
    pub(crate) tls: TlsConnector,
    pub(crate) pool: Arc<Pool>,
    pub(crate) tenants: Tenants,
    pub(crate) finders: Finders,
    pub(crate) connections: Arc<Semaphore>,
}

/// The one way to the network.
///
/// A host that serves others takes a `Door<Serve>`, and one that reaches loopback is another type:
///
/// ```compile_fail
/// let door: egress::Door<egress::Serve> = egress::Door::dev(vec![8080], Default::default()).unwrap();
/// ```
///
/// ```
/// let door: egress::Door<egress::Serve> = egress::Door::serve(Default::default()).unwrap();
/// ```
pub struct Door<G = Serve> {
    inner: Arc<Inner>,
    ground: PhantomData<G>,
}

impl<G> Clone for Door<G> {
    fn clone(&self) -> Self {
        Door { inner: self.inner.clone(), ground: PhantomData }
    }
}

impl Door<Serve> {
    /// For a host that runs other people's code.
    pub fn serve(settings: Settings) -> Result<Door<Serve>, Denied> {
        Door::new(Serve, settings)
    }
}

impl Door<Dev> {
    /// For an author's own machine: loopback may be reached on these ports, if a rule says so too.
    pub fn dev(ports: Vec<u16>, settings: Settings) -> Result<Door<Dev>, Denied> {
        Door::new(Dev(ports), settings)
    }
}

impl<G> Door<G> {
    fn new(ground: impl Ground, settings: Settings) -> Result<Door<G>, Denied> {
        let Settings { limits, resolver, extra_roots, deny } = settings;
        let connections = usize::try_from(limits.connections).unwrap_or(1).clamp(1, Semaphore::MAX_PERMITS);
        let ours = |(network, prefix)| Range { network, prefix, rfc: "this host", why: "refused by the operator" };
        let deny = deny.into_iter().map(ours).collect();
        let inner = Inner {
            gate: Gate { ground: Box::new(ground), resolver, deny, own: own_addresses },
            tls: connect::tls(&extra_roots)?,
            pool: Arc::new(Pool::new(&limits)),
            tenants: Tenants::default(),
            finders: Finders::new()?,
            connections: Arc::new(Semaphore::new(connections)),
            limits: Arc::new(limits),
        };
        Ok(Door { inner: Arc::new(inner), ground: PhantomData })
    }

    /// Opens the door for one call.
    pub fn visit(&self, pass: Pass) -> Visit {
        Visit::new(self.inner.clone(), pass)
    }

    /// Closes what a deployment's calls have left open for later ones, and forgets what was made ready to mask its secrets.
    pub fn forget(&self, tenant: &str, deployment: &str) {
        self.inner.finders.forget(tenant, deployment);
        self.inner.pool.retain(|key| key.tenant != tenant || key.deployment != deployment);
    }

    /// Refuses rules that lead nowhere from here, whoever goes: see [`Rules::check`]. The machine's own addresses are
    /// among them, and what the operator refuses.
    pub fn check(&self, rules: &Rules) -> Result<(), Denied> {
        rules.check(self.loopback())?;
        rules.try_each(|host, port| self.inner.gate.known(host, port))
    }

    /// Ports of loopback that may be reached, if a rule says so too. None where other people's code runs.
    pub fn loopback(&self) -> &[u16] {
        self.inner.gate.ground.ports()
    }

    /// As [`crate::explain`], and looks names up: whether a connection would be made now.
    pub async fn explain(&self, rules: &Rules, url: &str, method: &str) -> Decision {
        let (target, rule) = match decide(rules, url, method) {
            Ok(decided) => decided,
            Err(denied) => return Decision::denied(&denied, None),
        };
        match self.look(&target).await {
            Ok(count) => {
                let reason = format!("allowed by `{rule}`; {count} addresses, and all may be reached");
                Decision { allowed: true, rule: Some(rule), reason }
            }
            Err(denied) => Decision::denied(&denied, Some(rule)),
        }
    }

    async fn look(&self, target: &Target) -> Result<usize, Denied> {
        let lookups = Arc::new(Semaphore::new(1));
        let found = self.inner.gate.addresses(&target.origin, &lookups);
        let most = Duration::from_millis(self.inner.limits.connect_ms);
        let late = |_| Denied::timeout(format!("{} was not looked up in time", target.origin.host));
        Ok(tokio::time::timeout(most, found).await.map_err(late)??.len())
    }
}

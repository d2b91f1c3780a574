//! What an operator may decide about the gateway.

use crate::auth::AuthSettings;
use crate::guard::GuardSettings;
use crate::held::HeldSettings;
use crate::mcp::session::SessionSettings;
use crate::quota::QuotaDefaults;
use policy::Allowance;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    pub auth: AuthSettings,
    pub guard: GuardSettings,
    pub quota: QuotaDefaults,
    pub sessions: SessionSettings,
    pub http: HttpSettings,
    /// What deployments may ask for at most.
    pub allowance: Allowance,
    /// Entries of a list in one answer.
    pub page_size: usize,
    /// Streams that a tenant may hold open to be told news.
    pub streams_per_tenant: usize,
    /// Whether `/metrics` needs no key.
    pub metrics_public: bool,
    /// Whether manifests may say `*`, which is every host.
    pub any_host: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            auth: AuthSettings::default(),
            guard: GuardSettings::default(),
            quota: QuotaDefaults::default(),
            sessions: SessionSettings::default(),
            http: HttpSettings::default(),
            allowance: Allowance::default(),
            page_size: 1000,
            streams_per_tenant: 1000,
            metrics_public: false,
            any_host: false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Connections at once; further ones wait until one closes.
    pub max_connections: usize,
    /// A request's head must arrive within this.
    pub header_timeout: Duration,
    /// A request's body must arrive within this.
    pub body_timeout: Duration,
    /// A client that takes nothing of what it is sent for this long is cut off.
    pub write_timeout: Duration,
    pub max_body_kb: u64,
    /// Bodies and answers in flight.
    pub held: HeldSettings,
}

impl Default for HttpSettings {
    fn default() -> HttpSettings {
        HttpSettings {
            max_connections: 20_000,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            max_body_kb: 17 * 1024,
            held: HeldSettings::default(),
        }
    }
}

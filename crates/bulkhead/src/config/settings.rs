//! What the parts of the host make of the configuration.

use super::Config;
use super::keys::{Base, Egress, Secrets};
use ::process::{Network, ProcessSettings};
use egress::proxy::Outfit;
use gateway::auth::{AuthSettings, OAuthSettings, RoleScopes};
use gateway::guard::GuardSettings;
use gateway::observe::TraceSettings;
use gateway::quota::QuotaDefaults;
use gateway::{HeldSettings, HttpSettings, SessionSettings, Settings};
use isolate::{BaseFor, Carrier, IsolateSettings, Together};
use registry::{MasterKey, MasterKeyError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sandbox::PoolSettings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Programs that wait for single calls of one server.
const PROGRAM_SPARES: usize = 2;

/// What the interpreters on this machine need.
pub fn found_toolchains() -> Vec<PathBuf> {
    let here = install::Surroundings::here();
    here.map(|here| install::toolchains(&["node", "python3"], &here)).unwrap_or_default()
}

/// Why there is no master key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyProblem {
    #[error("the master key can come from one place, and `[secrets]` names several")]
    Several,
    #[error(transparent)]
    Key(#[from] MasterKeyError),
}

impl Config {
    pub fn gateway(&self) -> Settings {
        Settings {
            auth: self.auth(),
            guard: self.guard(),
            quota: QuotaDefaults {
                requests_per_s: self.quota.requests_per_s,
                burst: self.quota.burst,
                concurrent: self.quota.concurrent,
                cpu_s_per_min: self.quota.cpu_s_per_min,
                egress_bytes_per_min: self.quota.egress_bytes_per_min,
            },
            sessions: SessionSettings {
                per_tenant: self.sessions.per_tenant,
                idle: Duration::from_secs(self.sessions.idle_s),
                replay_bytes: self.sessions.replay_kb * 1024,
            },
            http: HttpSettings {
                max_connections: self.http.max_connections,
                header_timeout: Duration::from_secs(self.http.header_timeout_s),
                body_timeout: Duration::from_secs(self.http.body_timeout_s),
                write_timeout: Duration::from_secs(self.http.write_timeout_s),
                max_body_kb: self.http.max_body_kb,
                held: HeldSettings { host: self.http.held_mb << 20, tenant: self.http.held_per_tenant_mb << 20 },
            },
            allowance: self.limits.0.clone(),
            page_size: self.http.page_size,
            streams_per_tenant: self.http.max_streams,
            metrics_public: self.metrics.public,
            any_host: self.egress.any_host,
        }
    }

    /// The key that the tenants' keys are sealed with. The file in the data directory is made if there is none.
    pub fn master_key(&self) -> Result<MasterKey, MasterKeyProblem> {
        let Secrets { master_key_file, master_key_env, master_key_command } = &self.secrets;
        let given = [master_key_file.is_some(), master_key_env.is_some(), !master_key_command.is_empty()];
        if given.into_iter().filter(|given| *given).count() > 1 {
            return Err(MasterKeyProblem::Several);
        }
        Ok(match (master_key_file, master_key_env) {
            (Some(path), _) => MasterKey::file(path)?,
            (_, Some(name)) => MasterKey::environment(name)?,
            _ if !master_key_command.is_empty() => MasterKey::command(master_key_command)?,
            _ => MasterKey::ensure_file(&self.host.data.join("master.key"))?,
        })
    }

    pub fn egress(&self) -> Result<egress::Settings, String> {
        let Egress { deny, extra_roots, requests_per_s, requests_per_s_per_host, .. } = &self.egress;
        let Egress { request_bytes, response_bytes, total_ms, .. } = &self.egress;
        let read = |path: &PathBuf| {
            let named = |error: &dyn std::fmt::Display| format!("`{}` cannot be used: {error}", path.display());
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| named(&error))?;
            certificates.collect::<Result<Vec<_>, _>>().map_err(|error| named(&error))
        };
        Ok(egress::Settings {
            limits: egress::Limits {
                rate_per_tenant: *requests_per_s,
                rate_per_host: *requests_per_s_per_host,
                request_bytes: *request_bytes,
                response_bytes: *response_bytes,
                decoded_bytes: *response_bytes,
                total_ms: *total_ms,
                ..egress::Limits::default()
            },
            extra_roots: extra_roots.as_ref().map_or(Ok(Vec::new()), read)?,
            deny: deny.iter().map(|network| (network.0, network.1)).collect(),
            ..egress::Settings::default()
        })
    }

    fn auth(&self) -> AuthSettings {
        let oauth = &self.oauth;
        let oauth = oauth.issuer.as_ref().map(|issuer| OAuthSettings {
            jwks_url: oauth.jwks_url.as_ref().map(|url| url.as_str().to_owned()),
            audiences: oauth.audiences.clone(),
            tenant_claim: oauth.tenant_claim.clone(),
            role_claim: oauth.role_claim.clone(),
            scope_claims: oauth.scope_claims.clone(),
            scopes: RoleScopes {
                call: oauth.call_scope.clone(),
                deploy: oauth.deploy_scope.clone(),
                admin: oauth.admin_scope.clone(),
            },
            algorithms: oauth.algorithms.iter().map(|algorithm| algorithm.as_str().to_owned()).collect(),
            leeway_s: oauth.leeway_s,
            ..OAuthSettings::new(issuer)
        });
        AuthSettings { public_url: self.host.public_url.as_ref().map(|url| url.as_str().to_owned()), oauth }
    }

    fn guard(&self) -> GuardSettings {
        let own = self.host.public_url.as_ref().map(|url| url.host().to_owned());
        let listed = self.host.allowed_hosts.iter().map(|host| host.0.clone());
        GuardSettings {
            allowed_hosts: listed.chain(own).collect(),
            allowed_origins: self.host.allowed_origins.iter().map(|origin| origin.0.clone()).collect(),
        }
    }

    pub fn pool(&self) -> PoolSettings {
        let (pool, usual) = (&self.pool, PoolSettings::default());
        let turns = pool.turns.unwrap_or(usual.turns);
        let plants = pool.plants.unwrap_or(usual.plants);
        PoolSettings {
            running: pool.running,
            running_per_tenant: pool.running_per_tenant,
            running_per_deployment: pool.running_per_deployment,
            waiting: pool.waiting,
            waiting_per_tenant: pool.waiting_per_tenant,
            waiting_per_deployment: pool.waiting_per_deployment,
            patience: Duration::from_millis(pool.patience_ms),
            turns,
            turns_per_tenant: pool.turns_per_tenant.unwrap_or(if pool.turns.is_some() {
                (turns * 3).div_ceil(4)
            } else {
                usual.turns_per_tenant
            }),
            plants,
            plants_per_tenant: pool.plants_per_tenant.unwrap_or(if pool.plants.is_some() {
                plants.div_ceil(2)
            } else {
                usual.plants_per_tenant
            }),
            spares: pool.spares,
            idle: Duration::from_secs(pool.idle_s),
            deployments: pool.deployments,
            sessions: pool.sessions,
            session_idle: Duration::from_secs(pool.session_idle_s),
        }
    }

    /// The uids of jails, where the operator names them.
    pub fn uids(&self) -> Option<Range<u32>> {
        self.jail.first_uid.map(|first| first..first.saturating_add(self.jail.uids))
    }

    pub fn isolate(&self, carrier: Carrier) -> IsolateSettings {
        let usual = Together::default();
        IsolateSettings {
            heap_mb: self.limits.0.most.memory_mb,
            quick_forks: self.isolate.quick_forks,
            base: match self.isolate.base {
                Base::Shared => BaseFor::Everybody,
                Base::Tenant => BaseFor::Tenant,
            },
            bases: self.isolate.bases,
            together: Some(Together {
                memory_mb: self.isolate.memory_mb.unwrap_or(usual.memory_mb),
                processes: self.isolate.processes,
            }),
            ..IsolateSettings::new(carrier)
        }
    }

    /// The process wall, for programs that find the network by this outfit.
    pub fn process(&self, outfit: Outfit) -> ProcessSettings {
        let process = &self.process;
        let Outfit { port, variables, files } = outfit;
        let given = &process.toolchains;
        let toolchains = if given.is_empty() { found_toolchains() } else { given.clone() };
        ProcessSettings {
            toolchains,
            network: Some(Network { port, variables, files }),
            memory_mb: process.memory_mb.unwrap_or(ProcessSettings::default().memory_mb),
            warm: process.warm,
            warm_mb: process.warm_mb,
            warm_age: Duration::from_secs(process.warm_age_s),
            warm_idle: Duration::from_secs(process.warm_idle_s),
            ..ProcessSettings::default()
        }
    }

    /// The pool of that wall. Programs are large, so few of them wait.
    pub fn process_pool(&self) -> PoolSettings {
        let pool = self.pool();
        PoolSettings { spares: pool.spares.min(self.process.warm).min(PROGRAM_SPARES), ..pool }
    }

    /// `None` without a collector.
    pub fn traces(&self) -> Option<TraceSettings> {
        let trace = &self.trace;
        Some(TraceSettings {
            endpoint: trace.otlp_endpoint.as_ref()?.as_str().to_owned(),
            headers: trace.headers.0.clone().into_iter().collect(),
            sample_ratio: trace.sample_ratio,
            service: "bulkhead".to_owned(),
        })
    }

    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
        self.host.threads.unwrap_or_else(cores)
    }

    /// How the data directory is kept.
    pub fn registry(&self) -> registry::OpenOptions {
        let keep_audit_log = self.audit_log.keep_days.map(|days| Duration::from_secs(days * 86_400));
        registry::OpenOptions {
            keep_audit_log,
            tenant_bytes: self.disk.tenant_mb << 20,
            reserve_bytes: self.disk.reserve_mb << 20,
            ..registry::OpenOptions::default()
        }
    }

    pub fn deadline(&self) -> Duration {
        Duration::from_secs(self.shutdown.deadline_s)
    }
}

/// Where somebody on this machine reaches a host that listens there.
pub fn local_url(listening: SocketAddr) -> String {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, listening.port()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::parse;

    #[test]
    fn the_defaults_are_those_of_the_parts() {
        let config = Config::default();
        assert_eq!(format!("{:?}", config.gateway()), format!("{:?}", Settings::default()));
        assert_eq!(format!("{:?}", config.pool()), format!("{:?}", PoolSettings::default()));
    }

    #[test]
    fn what_is_written_arrives() {
        let text = "public_url = 'https://MCP.example.com/'\nallowed_hosts = ['inner:8470']\n\
            [limits]\nmemory_mb = 64\njit = false\n[quota]\nburst = 7\n[pool]\nturns = 8\n\
            [oauth]\nissuer = 'https://idp.example.com'\ncall_scope = 'use'\nalgorithms = ['ES256']\n[metrics]\npublic = true";
        let config = parse(text.as_bytes()).unwrap();
        let settings = config.gateway();
        assert_eq!(settings.auth.public_url.as_deref(), Some("https://mcp.example.com"));
        assert_eq!(settings.guard.allowed_hosts, ["inner:8470", "mcp.example.com"]);
        assert_eq!((settings.allowance.most.memory_mb, settings.allowance.jit), (64, false));
        assert_eq!((settings.quota.burst, settings.metrics_public), (7, true));
        assert_eq!((config.pool().turns, config.pool().turns_per_tenant), (8, 6));
        let oauth = settings.auth.oauth.unwrap();
        assert_eq!((oauth.scopes.call.as_str(), oauth.algorithms.as_slice()), ("use", &["ES256".to_owned()][..]));
    }

    #[test]
    fn a_url_for_this_machine() {
        for (listening, url) in [
            ("127.0.0.1:8470", "http://127.0.0.1:8470"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:9", "http://[::1]:9"),
            ("192.0.2.1:8470", "http://192.0.2.1:8470"),
        ] {
            assert_eq!(local_url(listening.parse().unwrap()), url);
        }
    }
}

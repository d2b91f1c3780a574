//! Every key there is. The reference in docs/configuration.md is made from this file.

use super::section::{Key, Section, prose, section};
use super::value::{Headers, HostName, Network, Origin, Value, WebAddress, Wrong, choice};
use ::process::ProcessSettings;
use gateway::auth::{OAuthSettings, RoleScopes};
use gateway::quota::QuotaDefaults;
use gateway::{HttpSettings, SessionSettings, Settings};
use policy::{Allowance, LimitName};
use sandbox::PoolSettings;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeValue;

section! {
    /// These stand above all tables.
    Host [""] {
        /// Address and port to listen on. Anything but loopback should stand behind a proxy that speaks TLS.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8470)), at_start;
        /// The directory with everything that stays: database, audit log, logs of tools, the operator's key.
        /// Relative to the working directory.
        data: PathBuf = PathBuf::from("bulkhead-data"), at_start;
        /// Threads that serve requests; the walls have the other cores. Not set: half as many as there are cores.
        threads: Option<usize> = None => 1..=1024, at_start;
        /// What clients call this host, where that is not `listen`. Stands in the URLs of servers and in the metadata
        /// of OAuth.
        public_url: Option<WebAddress> = None;
        /// Names that clients may call this host by, beside `localhost`, addresses and the host of `public_url`; with a
        /// port, that port only. A request for another name is refused, which stops DNS rebinding.
        allowed_hosts: Vec<HostName> = Vec::new();
        /// Web pages of other hosts that may reach this one, as `https://app.example.com`.
        allowed_origins: Vec<Origin> = Vec::new();
    }
}

/// The most that a deployment may ask for. The defaults are as far as the walls are tested, so they can be lowered and
/// not raised.
#[derive(Clone, Debug, Default)]
pub struct Limits(pub Allowance);

impl PartialEq for Limits {
    fn eq(&self, other: &Limits) -> bool {
        self.0.most == other.0.most && self.0.jit == other.0.jit
    }
}

impl Section for Limits {
    const NAME: &'static str = "limits";

    fn about() -> String {
        prose(&[
            "The most that a deployment may ask for. The defaults are as far as the walls are tested, so they can be",
            "lowered and not raised. What a deployment does not ask for has its own default (see docs/authoring.md).",
        ])
    }

    fn keys() -> Vec<Key> {
        let limit = |name: &LimitName| Key {
            name: name.as_str(),
            about: name.describe().to_owned(),
            kind: u64::kind(),
            default: Some(policy::Limits::MOST.get(*name).to_string()),
            range: Some(format!("{} to {}", policy::Limits::LEAST.get(*name), policy::Limits::MOST.get(*name))),
            at_start: *name == LimitName::MemoryMb,
        };
        let jit = Key {
            name: "jit",
            about: "Whether deployments may run with V8's compilers: faster loops, at the price of writable and \
                    executable memory in the compartment."
                .to_owned(),
            kind: bool::kind(),
            default: Some("true".to_owned()),
            range: None,
            at_start: false,
        };
        LimitName::ALL.iter().map(limit).chain([jit]).collect()
    }

    fn read(&mut self, key: &str, value: &DeValue<'_>) -> Option<Result<(), Wrong>> {
        if key == "jit" {
            return Some(bool::read(value).map(|jit| self.0.jit = jit));
        }
        let name = key.parse::<LimitName>().ok()?;
        let (least, most) = (policy::Limits::LEAST.get(name), policy::Limits::MOST.get(name));
        Some(u64::read(value).and_then(|value| {
            if !(least..=most).contains(&value) {
                return Err(Wrong::new(format!("{value} is not between {least} and {most}")));
            }
            self.0.most.set(name, value);
            Ok(())
        }))
    }

    fn keep_fixed(&mut self, running: &Limits) -> Vec<&'static str> {
        // The wall was started for this much.
        let memory_mb = running.0.most.memory_mb;
        if self.0.most.memory_mb == memory_mb {
            return Vec::new();
        }
        self.0.most.memory_mb = memory_mb;
        vec![LimitName::MemoryMb.as_str()]
    }

    fn show(&self) -> Vec<(&'static str, Option<toml::Value>)> {
        let limit = |name: &LimitName| (name.as_str(), self.0.most.get(*name).show());
        LimitName::ALL.iter().map(limit).chain([("jit", self.0.jit.show())]).collect()
    }
}

choice! {
    /// Which servers come from the same base process.
    Base { Shared = "shared", Tenant = "tenant" }
}

section! {
    /// The jails of all walls. A host that runs as root gives each jail a uid of its own, because the kernel counts much by
    /// uid (see SECURITY.md).
    Jail ["jail"] {
        /// The first of the uids, and gids of the same number, that jails get. Uids in `/etc/passwd`, `/etc/subuid` and
        /// their like are left out. Not set: 1900000000, or 30000 where the host has no uids that high.
        first_uid: Option<u32> = None => 1000..=4_000_000_000, at_start;
        /// How many there are, if `first_uid` is set. It bounds how many jails there can be at once.
        uids: u32 = 65_536 => 16..=16_777_216, at_start;
    }
}

section! {
    /// The isolate wall as a whole.
    Isolate ["isolate"] {
        /// Spend about 100 MiB of memory and a second at the start on compartments that start quicker.
        quick_forks: bool = true, at_start;
        /// Which servers come from the same base process. They have the same address layout, stack canary and hash seed: code
        /// that breaks V8 in one of them knows these values for the others. `tenant`: servers of one tenant. `shared`:
        /// servers of all tenants.
        base: Base = Base::Tenant, at_start;
        /// Base processes that are kept for further servers, with `base = "tenant"`. Beyond that, the one used longest ago is
        /// given up; it lives on until its last server is let go.
        bases: usize = 32 => 1..=4096, at_start;
        /// Memory of all compartments together in MiB. Calls wait until all that they may take is free: three quarters of
        /// this are for calls, sessions and servers, and three quarters of those for one tenant at most. Control groups
        /// hold it besides, where the host has them. Not set: three quarters of the machine's.
        memory_mb: Option<u64> = None => 256..=1 << 30, at_start;
        /// Processes of all compartments together, where the host has control groups. One base zygote gets half of them
        /// at most.
        processes: u64 = 4096 => 16..=1 << 20, at_start;
    }
}

section! {
    /// The process wall: programs in jails (docs/programs.md).
    Process ["process"] {
        /// Whether deployments may ask for it.
        enabled: bool = true, at_start;
        /// Folders with interpreters, beside `/usr`: each is seen by programs at its own path, read-only, and the `bin` in
        /// it is searched. Empty: what `node` and `python3` on the host's `PATH` need.
        toolchains: Vec<PathBuf> = Vec::new(), at_start;
        /// Memory of all programs together in MiB, counted by what each may use. Tenants share it by weight; a tenant without
        /// room hears `busy`. Not set: three quarters of the machine's.
        memory_mb: Option<u64> = None => 64..=1 << 30, at_start;
        /// Programs that wait ready for a server, at most: for sessions to come, and with boundary `call` for calls to come.
        warm: usize = ProcessSettings::default().warm => 0..=1024, at_start;
        /// Memory of all programs together that wait ready, in MiB.
        warm_mb: u64 = ProcessSettings::default().warm_mb => 0..=1 << 30, at_start;
        /// A program that has waited ready for so many seconds is replaced.
        warm_age_s: u64 = ProcessSettings::default().warm_age.as_secs() => 1..=86_400, at_start;
        /// When nobody has wanted one for so many seconds, none waits any more.
        warm_idle_s: u64 = ProcessSettings::default().warm_idle.as_secs() => 1..=86_400, at_start;
    }
}

section! {
    /// How many calls run at once, and how many compartments wait for them. All of it is bounded.
    Pool ["pool"] {
        /// Calls at once, over all tenants. One that waits for the network or for a timer counts.
        running: usize = PoolSettings::default().running => 1..=65_536, at_start;
        /// Calls at once of one tenant: less than all, so that another one finds a place.
        running_per_tenant: usize = PoolSettings::default().running_per_tenant => 1..=65_536, at_start;
        /// Calls at once of one server.
        running_per_deployment: usize = PoolSettings::default().running_per_deployment => 1..=65_536, at_start;
        /// Callers that may wait for a place, over all tenants. Beyond that, the last in the line that is longest for
        /// its tenant's weight hears `busy`.
        waiting: usize = PoolSettings::default().waiting => 0..=1 << 20, at_start;
        /// Callers that may wait for one tenant. The next one hears `busy` at once.
        waiting_per_tenant: usize = PoolSettings::default().waiting_per_tenant => 0..=1 << 20, at_start;
        /// Callers that may wait for one server.
        waiting_per_deployment: usize = PoolSettings::default().waiting_per_deployment => 0..=1 << 20, at_start;
        /// How long a caller waits before it hears `busy`, in milliseconds.
        patience_ms: u64 = millis(PoolSettings::default().patience) => 1..=600_000, at_start;
        /// Processes that may compete for the CPU: calls that compute, and compartments that start. Not set: twice the
        /// cores.
        turns: Option<usize> = None => 1..=65_536, at_start;
        /// The same for one tenant. Not set: three quarters of `turns`.
        turns_per_tenant: Option<usize> = None => 1..=65_536, at_start;
        /// Servers that initialise at once. Not set: as many as there are cores.
        plants: Option<usize> = None => 1..=65_536, at_start;
        /// The same for one tenant. Not set: half of `plants`.
        plants_per_tenant: Option<usize> = None => 1..=65_536, at_start;
        /// Compartments that wait ready for a server with boundary `call`, at most. With 0 every call starts its own.
        spares: usize = PoolSettings::default().spares => 0..=1024, at_start;
        /// A server that nobody calls for so many seconds lets go of its compartments.
        idle_s: u64 = PoolSettings::default().idle.as_secs() => 1..=86_400, at_start;
        /// Servers that hold compartments at once. For a new one, the tenant with the most lets its longest unused go.
        deployments: usize = PoolSettings::default().deployments => 1..=65_536, at_start;
        /// Compartments of sessions per server. Beyond that a new session hears `busy`.
        sessions: usize = PoolSettings::default().sessions => 1..=65_536, at_start;
        /// The compartment of a session that nobody uses for so many seconds is let go.
        session_idle_s: u64 = PoolSettings::default().session_idle.as_secs() => 1..=86_400, at_start;
    }
}

section! {
    /// What a tenant may use unless its own quota says otherwise (`bulkhead tenant set`). A key's own quota holds beside
    /// its tenant's.
    Quota ["quota"] {
        /// Requests per second, notifications included, in the long run.
        requests_per_s: f64 = QuotaDefaults::default().requests_per_s => 0.0..=10_000_000.0;
        /// Requests that may come at once after a quiet time.
        burst: u32 = QuotaDefaults::default().burst => 1..=10_000_000;
        /// Calls that run or wait at once.
        concurrent: u32 = QuotaDefaults::default().concurrent => 1..=1_000_000;
        /// CPU seconds of compartments per minute.
        cpu_s_per_min: f64 = QuotaDefaults::default().cpu_s_per_min => 0.0..=1_000_000.0;
        /// Bytes that compartments send and receive per minute.
        egress_bytes_per_min: u64 = QuotaDefaults::default().egress_bytes_per_min => 0..=1 << 50;
    }
}

section! {
    /// Sessions of clients that speak a protocol before 2026-07-28.
    Sessions ["sessions"] {
        /// Sessions of one tenant at once. Beyond that the caller who has most loses the one it used least recently.
        per_tenant: usize = SessionSettings::default().per_tenant => 1..=1_000_000;
        /// A session that nobody uses for so many seconds ends.
        idle_s: u64 = SessionSettings::default().idle.as_secs() => 10..=2_592_000;
        /// What is kept of a session's streams for a client that comes back, in KiB.
        replay_kb: usize = SessionSettings::default().replay_bytes / 1024 => 0..=65_536;
    }
}

section! {
    /// Connections and requests.
    Http ["http"] {
        /// Connections at once. Further ones wait until one closes.
        max_connections: usize = HttpSettings::default().max_connections => 16..=1_000_000, at_start;
        /// The head of a request must arrive within so many seconds.
        header_timeout_s: u64 = HttpSettings::default().header_timeout.as_secs() => 1..=600, at_start;
        /// The body of a request must arrive within so many seconds.
        body_timeout_s: u64 = HttpSettings::default().body_timeout.as_secs() => 1..=600;
        /// A client that takes nothing of what it is sent for so many seconds is cut off.
        write_timeout_s: u64 = HttpSettings::default().write_timeout.as_secs() => 1..=3600, at_start;
        /// The body of a request in KiB.
        max_body_kb: u64 = HttpSettings::default().max_body_kb => 1..=262_144;
        /// Memory for bodies and answers in flight, over all tenants, in MiB: bodies that arrive, arguments of calls that run,
        /// answers that their clients have not read. When it is full, the tenant that holds most loses the arriving body
        /// that has held most for longest.
        held_mb: u64 = HttpSettings::default().held.host >> 20 => 64..=1 << 20;
        /// The same for one tenant. When it is full, the tenant loses such a body.
        held_per_tenant_mb: u64 = HttpSettings::default().held.tenant >> 20 => 64..=1 << 20;
        /// Streams that one tenant's clients may hold open to be told news.
        max_streams: usize = Settings::default().streams_per_tenant => 1..=1_000_000, at_start;
        /// Entries of a list in one answer.
        page_size: usize = Settings::default().page_size => 1..=100_000;
    }
}

choice! {
    /// How a token may be signed. What a key could be confused with is not in the list: `none` and the `HS` family.
    Algorithm {
        Rs256 = "RS256", Rs384 = "RS384", Rs512 = "RS512", Ps256 = "PS256", Ps384 = "PS384", Ps512 = "PS512",
        Es256 = "ES256", Es384 = "ES384", EdDsa = "EdDSA",
    }
}

section! {
    /// Tokens of an OAuth 2.1 authorisation server, beside this host's own keys. Off until `issuer` is set; needs
    /// `public_url`.
    OAuth ["oauth"] {
        /// Who issues the tokens: their `iss`, exactly. Named in the metadata for clients (RFC 9728).
        issuer: Option<String> = None;
        /// Where the issuer's keys are. Not set: where its own metadata says.
        jwks_url: Option<WebAddress> = None;
        /// What may stand in a token's `aud` beside the URL of the server that is called.
        audiences: Vec<String> = Vec::new();
        /// The claim that names the tenant; with a leading `/`, a JSON pointer into the claims.
        tenant_claim: String = OAuthSettings::new("").tenant_claim;
        /// A claim that says `call`, `deploy` or `admin`, written like `tenant_claim`. Not set: the scopes say it.
        role_claim: Option<String> = None;
        /// Claims that hold scopes, as text with spaces between or as a list.
        scope_claims: Vec<String> = OAuthSettings::new("").scope_claims;
        /// The scope that lets call.
        call_scope: String = RoleScopes::default().call;
        /// The scope that lets deploy.
        deploy_scope: String = RoleScopes::default().deploy;
        /// The scope that lets run the tenant.
        admin_scope: String = RoleScopes::default().admin;
        /// How tokens may be signed.
        algorithms: Vec<Algorithm> = vec![Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa];
        /// How far the issuer's clock may be off, in seconds.
        leeway_s: u64 = OAuthSettings::new("").leeway_s => 0..=600;
    }
}

section! {
    /// Secrets of tenants are sealed with keys of theirs, and those with the host's master key: 32 bytes, as hex or base64.
    /// Where it comes from is one of these. Not set: the file `master.key` in the data directory, made at the first start.
    Secrets ["secrets"] {
        /// A file that only its owner can read.
        master_key_file: Option<PathBuf> = None;
        /// A variable of the host's environment.
        master_key_env: Option<String> = None;
        /// A program and its arguments; what it prints is the key. No shell is involved.
        master_key_command: Vec<String> = Vec::new();
    }
}

section! {
    /// The way to the network (docs/egress.md). What can never be reached is not for anybody to configure.
    Egress ["egress"] {
        /// Networks that no server reaches, beside those that none ever does: this machine's public address if a router
        /// translates it, the network's own NAT64 prefix.
        deny: Vec<Network> = Vec::new(), at_start;
        /// Certificate authorities that are trusted beside the machine's own: a file in PEM.
        extra_roots: Option<PathBuf> = None, at_start;
        /// Whether manifests may say `*`, which is every host.
        any_host: bool = false;
        /// Requests per second of one tenant.
        requests_per_s: u64 = egress::Limits::default().rate_per_tenant => 1..=100_000, at_start;
        /// Requests per second of one tenant to one host.
        requests_per_s_per_host: u64 = egress::Limits::default().rate_per_host => 1..=100_000, at_start;
        /// Bytes of a request's body.
        request_bytes: u64 = egress::Limits::default().request_bytes => 1..=1 << 30, at_start;
        /// Bytes of a response's body, packed and unpacked.
        response_bytes: u64 = egress::Limits::default().response_bytes => 1..=1 << 30, at_start;
        /// Milliseconds from a request to the last byte of its response.
        total_ms: u64 = egress::Limits::default().total_ms => 1..=3_600_000, at_start;
    }
}

section! {
    /// What tenants may take of the data directory's disk.
    Disk ["disk"] {
        /// MiB that one tenant's deployments, layers and logs may take, unless its own quota says otherwise (`bulkhead
        /// tenant set --disk-bytes`).
        tenant_mb: u64 = registry::OpenOptions::default().tenant_bytes >> 20 => 1..=1 << 30, at_start;
        /// MiB that stay free for calls and their audit lines. Below that, uploads and deployments are refused, and neither
        /// arguments and results nor tools' logs are recorded.
        reserve_mb: u64 = registry::OpenOptions::default().reserve_bytes >> 20 => 0..=1 << 30, at_start;
    }
}

choice! {
    /// How the host's own log looks.
    LogFormat { Text = "text", Json = "json" }
}

section! {
    /// The audit log (docs/host.md). What will go is announced in the log itself, a week before, and `bulkhead audit-log
    /// verify` checks the rest.
    AuditLog ["audit_log"] {
        /// Days that its lines are kept, by this machine's clock. They go in whole files, of a day or 64 MiB; a file that is
        /// damaged stays. Not set: for ever.
        keep_days: Option<u64> = None => 1..=36_500, at_start;
    }
}

section! {
    /// The host's own log, on stderr. What tools log is kept apart, per server.
    Log ["log"] {
        /// What is logged: `error`, `warn`, `info`, `debug`, `trace` or `off`, also per part
        /// (`info,gateway::mcp=debug`).
        filter: String = "info".to_owned();
        /// For people or for programs.
        format: LogFormat = LogFormat::Text, at_start;
    }
}

section! {
    /// Traces over OTLP/HTTP: each call is one trace, below the client's own span where it sends a `traceparent`.
    Trace ["trace"] {
        /// The collector, as `http://127.0.0.1:4318`.
        otlp_endpoint: Option<WebAddress> = None, at_start;
        /// Header fields for the collector. `bulkhead config show` does not show their values.
        headers: Headers = Headers::default(), at_start;
        /// The share of calls that is traced when the client does not say, from 0 to 1.
        sample_ratio: f64 = 1.0 => 0.0..=1.0, at_start;
    }
}

section! {
    /// `/metrics`, for Prometheus.
    Metrics ["metrics"] {
        /// Whether anybody may read them. Otherwise the operator's key is needed.
        public: bool = false;
    }
}

section! {
    /// How the host ends.
    Shutdown ["shutdown"] {
        /// What runs has so many seconds to finish after SIGTERM or SIGINT. A second signal ends it at once.
        deadline_s: u64 = 30 => 0..=3600, at_start;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

//! What applies to whom.

use super::bucket::Flow;
use registry::Quota;

/// What a tenant may use where neither it nor the registry says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaDefaults {
    /// 200: an agent that calls a tool every second leaves room for two hundred of them, and no single tenant fills a host
    /// that does thousands.
    pub requests_per_s: f64,
    /// 400: two seconds of the rate, for clients that open with a volley of lists and reads.
    pub burst: u32,
    /// 64: calls that run or wait at once; half of what the pool runs at once by default.
    pub concurrent: u32,
    /// 60: one core, all the time.
    pub cpu_s_per_min: f64,
    /// 1 GiB: some 140 Mbit/s.
    pub egress_bytes_per_min: u64,
}

impl Default for QuotaDefaults {
    fn default() -> QuotaDefaults {
        QuotaDefaults {
            requests_per_s: 200.0,
            burst: 400,
            concurrent: 64,
            cpu_s_per_min: 60.0,
            egress_bytes_per_min: 1 << 30,
        }
    }
}

/// What is checked for one tenant or one key. None is not checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    pub requests: Option<Flow>,
    pub concurrent: Option<u32>,
    /// Microseconds.
    pub cpu: Option<Flow>,
    /// Bytes.
    pub egress: Option<Flow>,
}

impl Limits {
    pub fn of_tenant(quota: &Quota, defaults: &QuotaDefaults) -> Limits {
        let rate = quota.requests_per_s.unwrap_or(defaults.requests_per_s);
        Limits {
            requests: Some(Flow::per_second(rate, quota.burst.unwrap_or(defaults.burst))),
            concurrent: Some(quota.concurrent.unwrap_or(defaults.concurrent)),
            cpu: Some(cpu(quota.cpu_s_per_min.unwrap_or(defaults.cpu_s_per_min))),
            egress: Some(egress(quota.egress_bytes_per_min.unwrap_or(defaults.egress_bytes_per_min))),
        }
    }

    /// Of all requests of a tenant to the admin API.
    pub fn of_admins() -> Limits {
        Limits { requests: Some(Flow::per_second(20.0, 10_000)), concurrent: None, cpu: None, egress: None }
    }

    /// What a key inherits is its tenant's, and the tenant's own account, which every call of the key is on too, holds
    /// that already. So only what the key has for itself is checked, and a key without a quota needs no account.
    pub fn of_key(quota: &Quota, tenant: &Quota, defaults: &QuotaDefaults) -> Option<Limits> {
        let requests = (quota.requests_per_s.is_some() || quota.burst.is_some()).then(|| {
            let rate = quota.requests_per_s.or(tenant.requests_per_s).unwrap_or(defaults.requests_per_s);
            Flow::per_second(rate, quota.burst.or(tenant.burst).unwrap_or(defaults.burst))
        });
        let limits = Limits {
            requests,
            concurrent: quota.concurrent,
            cpu: quota.cpu_s_per_min.map(cpu),
            egress: quota.egress_bytes_per_min.map(egress),
        };
        let nothing = Limits { requests: None, concurrent: None, cpu: None, egress: None };
        (limits != nothing).then_some(limits)
    }
}

fn cpu(seconds_per_min: f64) -> Flow {
    Flow::per_minute(seconds_per_min * 1e6)
}

fn egress(bytes_per_min: u64) -> Flow {
    Flow::per_minute(bytes_per_min as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_inherits_from_the_host() {
        let defaults = QuotaDefaults::default();
        let limits = Limits::of_tenant(&Quota { concurrent: Some(3), ..Quota::default() }, &defaults);
        assert_eq!(limits.concurrent, Some(3));
        assert_eq!(limits.requests, Some(Flow { capacity: 400.0, per_s: 200.0 }));
        assert_eq!(limits.cpu, Some(Flow { capacity: 60e6, per_s: 1e6 }));
    }

    #[test]
    fn a_key_has_an_account_only_for_what_is_its_own() {
        let defaults = QuotaDefaults::default();
        let tenant = Quota { requests_per_s: Some(50.0), burst: Some(9), ..Quota::default() };
        assert_eq!(Limits::of_key(&Quota::default(), &tenant, &defaults), None);
        let limits =
            Limits::of_key(&Quota { requests_per_s: Some(5.0), ..Quota::default() }, &tenant, &defaults).unwrap();
        assert_eq!(limits.requests, Some(Flow { capacity: 9.0, per_s: 5.0 }));
        assert_eq!((limits.concurrent, limits.cpu, limits.egress), (None, None, None));
        let limits = Limits::of_key(&Quota { burst: Some(1), ..Quota::default() }, &tenant, &defaults).unwrap();
        assert_eq!(limits.requests, Some(Flow { capacity: 1.0, per_s: 50.0 }));
    }
}

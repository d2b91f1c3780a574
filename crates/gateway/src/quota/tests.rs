use super::*;
use registry::{Quota, Role, Scope};
use std::collections::BTreeMap;

const SECOND: Duration = Duration::from_secs(1);

fn tenant(name: &str, quota: Quota) -> Tenant {
    Tenant {
        name: name.to_owned(),
        created_at: 0,
        weight: 1,
        quota,
        recording: false,
        approval: false,
        step: 0,
        servers: BTreeMap::new(),
    }
}

fn caller(id: &str, quota: Quota) -> Caller {
    Caller {
        key: None,
        subject: id.to_owned(),
        tenant: Some("acme".to_owned()),
        role: Role::Call,
        scope: Scope::default(),
        quota,
        quota_id: id.to_owned(),
        expires_at: None,
    }
}

fn quotas() -> Quotas {
    Quotas::new(QuotaDefaults::default())
}

/// A message that asks for a call.
fn admit(quotas: &Quotas, tenant: &Tenant, caller: &Caller, now: Instant) -> Result<Admission, Exceeded> {
    quotas.hear(tenant, caller, now)?;
    quotas.admit(tenant, caller, now)
}

fn slow(burst: u32) -> Quota {
    Quota { requests_per_s: Some(1.0), burst: Some(burst), ..Quota::default() }
}

#[test]
fn a_tenant_at_its_limit_and_another_that_is_not() {
    let (quotas, now) = (quotas(), Instant::now());
    let (acme, other) = (tenant("acme", slow(2)), tenant("other", slow(2)));
    let ann = caller("ann", Quota::default());
    for _ in 0..2 {
        admit(&quotas, &acme, &ann, now).unwrap();
    }
    let exceeded = admit(&quotas, &acme, &ann, now).unwrap_err();
    assert_eq!((exceeded.what, exceeded.whose, exceeded.retry_after), ("requests_per_s", "tenant", SECOND));
    assert!(admit(&quotas, &acme, &caller("bob", Quota::default()), now).is_err(), "its other keys share the limit");
    assert!(admit(&quotas, &other, &ann, now).is_ok());
    assert!(admit(&quotas, &acme, &ann, now + SECOND).is_ok());
}

#[test]
fn a_key_at_its_limit_takes_nothing_from_its_tenant() {
    let (quotas, now) = (quotas(), Instant::now());
    let acme = tenant("acme", slow(3));
    let (ann, bob) = (caller("ann", slow(1)), caller("bob", Quota::default()));
    admit(&quotas, &acme, &ann, now).unwrap();
    for _ in 0..10 {
        assert_eq!(admit(&quotas, &acme, &ann, now).unwrap_err().whose, "key");
    }
    assert!(admit(&quotas, &acme, &bob, now).is_ok());
    assert!(admit(&quotas, &acme, &bob, now).is_ok());
    assert_eq!(admit(&quotas, &acme, &bob, now).unwrap_err().whose, "tenant");
}

#[test]
fn places_come_back_when_the_call_is_over() {
    let (quotas, now) = (quotas(), Instant::now());
    let acme = tenant("acme", Quota { concurrent: Some(3), ..Quota::default() });
    let ann = caller("ann", Quota { concurrent: Some(2), ..Quota::default() });
    let bob = caller("bob", Quota::default());
    let first = admit(&quotas, &acme, &ann, now).unwrap();
    let second = admit(&quotas, &acme, &ann, now).unwrap();
    let exceeded = admit(&quotas, &acme, &ann, now).unwrap_err();
    assert_eq!((exceeded.what, exceeded.whose), ("concurrent", "key"));
    let third = admit(&quotas, &acme, &bob, now).unwrap();
    assert_eq!(admit(&quotas, &acme, &bob, now).unwrap_err().whose, "tenant");
    drop(first);
    drop(admit(&quotas, &acme, &ann, now).unwrap());
    drop((second, third));
    let all: Vec<_> = (0..3).map(|_| admit(&quotas, &acme, &bob, now).unwrap()).collect();
    assert_eq!(all.len(), 3);
    assert!(admit(&quotas, &acme, &bob, now).is_err());
}

#[test]
fn cpu_that_was_used_must_come_back_first() {
    let (quotas, now) = (quotas(), Instant::now());
    let acme = tenant("acme", Quota { cpu_s_per_min: Some(60.0), ..Quota::default() });
    let ann = caller("ann", Quota::default());
    let call = admit(&quotas, &acme, &ann, now).unwrap();
    call.spend_at(90_000_000, now);
    let exceeded = admit(&quotas, &acme, &ann, now).unwrap_err();
    assert_eq!((exceeded.what, exceeded.retry_after.as_secs()), ("cpu_s_per_min", 30));
    assert!(admit(&quotas, &acme, &ann, now + 29 * SECOND).is_err());
    assert!(admit(&quotas, &acme, &ann, now + 31 * SECOND).is_ok());
}

#[test]
fn egress_of_a_key_counts_for_the_key_and_the_tenant() {
    let (quotas, now) = (quotas(), Instant::now());
    let acme = tenant("acme", Quota { egress_bytes_per_min: Some(6000), ..Quota::default() });
    let ann = caller("ann", Quota { egress_bytes_per_min: Some(600), ..Quota::default() });
    let bob = caller("bob", Quota::default());
    let call = admit(&quotas, &acme, &ann, now).unwrap();
    call.accounts().for_each(|account| {
        account.lock().spend_egress(5000, now);
    });
    drop(call);
    let exceeded = admit(&quotas, &acme, &ann, now).unwrap_err();
    assert_eq!((exceeded.what, exceeded.whose), ("egress_bytes_per_min", "key"));
    let call = admit(&quotas, &acme, &bob, now).unwrap();
    call.accounts().for_each(|account| {
        account.lock().spend_egress(1000, now);
    });
    drop(call);
    assert_eq!(admit(&quotas, &acme, &bob, now).unwrap_err().whose, "tenant");
}

#[test]
fn changes_count_from_the_next_request_on() {
    let (quotas, now) = (quotas(), Instant::now());
    let ann = caller("ann", Quota::default());
    admit(&quotas, &tenant("acme", slow(1)), &ann, now).unwrap();
    assert!(admit(&quotas, &tenant("acme", slow(1)), &ann, now).is_err());
    let places = |n| tenant("acme", Quota { concurrent: Some(n), requests_per_s: Some(1e6), ..Quota::default() });
    let later = now + 2 * SECOND;
    let _first = admit(&quotas, &places(1), &ann, now + SECOND).unwrap();
    assert!(admit(&quotas, &places(1), &ann, later).is_err());
    let _second = admit(&quotas, &places(2), &ann, later).unwrap();
    assert!(admit(&quotas, &places(0), &ann, later).is_err());
    let narrowed = caller("ann", Quota { concurrent: Some(0), ..Quota::default() });
    assert_eq!(admit(&quotas, &places(9), &narrowed, later).unwrap_err().whose, "key");
}

#[test]
fn the_hosts_own_defaults_can_change_too() {
    let (quotas, now) = (quotas(), Instant::now());
    let (acme, ann) = (tenant("acme", Quota::default()), caller("ann", Quota::default()));
    let _running = admit(&quotas, &acme, &ann, now).unwrap();
    quotas.set_defaults(QuotaDefaults { concurrent: 1, ..QuotaDefaults::default() });
    assert_eq!(admit(&quotas, &acme, &ann, now).unwrap_err().what, "concurrent");
    let more = tenant("acme", Quota { concurrent: Some(2), ..Quota::default() });
    assert!(admit(&quotas, &more, &ann, now).is_ok());
}

#[test]
fn what_was_used_without_a_limit_does_not_count_later() {
    let (quotas, now) = (quotas(), Instant::now());
    let acme = tenant("acme", Quota { requests_per_s: Some(1e6), burst: Some(1_000_000), ..Quota::default() });
    let limited = caller("ann", Quota { concurrent: Some(9), ..slow(1) });
    let free = caller("ann", Quota { concurrent: Some(9), ..Quota::default() });
    admit(&quotas, &acme, &limited, now).unwrap();
    for _ in 0..1000 {
        admit(&quotas, &acme, &free, now).unwrap().spend_at(1_000_000, now);
        quotas.tenants.by_name.clear();
    }
    assert!(admit(&quotas, &acme, &limited, now).is_ok());
    assert!(admit(&quotas, &acme, &limited, now).is_err());
}

#[test]
fn idle_accounts_are_dropped_and_used_ones_are_not() {
    let (quotas, now) = (quotas(), Instant::now());
    let endless = Some(f64::INFINITY);
    let acme = tenant("acme", Quota { requests_per_s: endless, cpu_s_per_min: endless, ..Quota::default() });
    let debtor = caller("debtor", Quota { cpu_s_per_min: Some(0.001), ..Quota::default() });
    admit(&quotas, &acme, &debtor, now).unwrap().spend_at(3_600_000_000, now);
    let runner = caller("runner", slow(1));
    let _running = admit(&quotas, &acme, &runner, now).unwrap();
    for i in 0..20 * SWEEP_AFTER {
        let moment = now + SECOND * u32::try_from(i).unwrap();
        drop(admit(&quotas, &acme, &caller(&format!("k{i}"), slow(1)), moment).unwrap());
    }
    assert!(quotas.keys.by_name.len() <= SWEEP_AFTER + 2, "{}", quotas.keys.by_name.len());
    assert!(quotas.keys.by_name.contains_key("debtor") && quotas.keys.by_name.contains_key("runner"));
}

#[test]
fn callers_without_a_quota_of_their_own_leave_nothing_behind() {
    let (quotas, now) = (quotas(), Instant::now());
    let acme = tenant("acme", Quota { requests_per_s: Some(f64::INFINITY), ..Quota::default() });
    for i in 0..1000 {
        admit(&quotas, &acme, &caller(&format!("oauth:{i}"), Quota::default()), now + SECOND * i).unwrap();
    }
    assert_eq!((quotas.keys.by_name.len(), quotas.tenants.by_name.len()), (0, 1));
}

#[test]
fn many_threads_never_get_more_than_there_is() {
    let (quotas, now) = (quotas(), Instant::now());
    let acme =
        tenant("acme", Quota { requests_per_s: Some(1.0), burst: Some(1000), concurrent: Some(5), ..Quota::default() });
    let ann = caller("ann", Quota { burst: Some(900), ..Quota::default() });
    let admitted = AtomicUsize::new(0);
    let running = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    if let Ok(call) = admit(&quotas, &acme, &ann, now) {
                        admitted.fetch_add(1, Ordering::Relaxed);
                        assert!(running.fetch_add(1, Ordering::SeqCst) < 5);
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        drop(call);
                    }
                }
            });
        }
    });
    assert!(admitted.into_inner() <= 900);
    assert!(quotas.tenants.get("acme", now).lock().is_idle(now + 3600 * SECOND), "every place came back");
}

#[test]
fn what_a_client_reads() {
    let after = |retry_after| Exceeded { what: "concurrent", whose: "tenant", retry_after };
    for (wait, seconds) in [
        (Duration::ZERO, 1),
        (Duration::from_millis(1), 1),
        (SECOND, 1),
        (SECOND + Duration::from_nanos(1), 2),
        (3600 * SECOND, 3600),
    ] {
        assert_eq!(after(wait).retry_after_s(), seconds);
    }
    assert_eq!(after(SECOND).to_string(), "the tenant has used up its quota `concurrent`; try again in 1 s");
}

#[test]
fn messages_count_and_need_no_place() {
    let (quotas, now) = (quotas(), Instant::now());
    let acme = tenant("acme", Quota { concurrent: Some(1), ..slow(3) });
    let ann = caller("ann", Quota::default());
    let _call = admit(&quotas, &acme, &ann, now).unwrap();
    // One that finds no place was a message as well.
    assert_eq!(admit(&quotas, &acme, &ann, now).unwrap_err().what, "concurrent");
    quotas.hear(&acme, &ann, now).unwrap();
    assert_eq!(quotas.hear(&acme, &ann, now).unwrap_err().what, "requests_per_s");
    let bob = caller("bob", slow(1));
    quotas.hear(&acme, &bob, now + SECOND).unwrap();
    let exceeded = quotas.hear(&acme, &bob, now + SECOND).unwrap_err();
    assert_eq!((exceeded.what, exceeded.whose), ("requests_per_s", "tenant"));
}

/// The log is on everybody's disk.
#[test]
fn what_a_tenant_has_recorded_is_bounded_by_the_minute() {
    let (quotas, now) = (quotas(), Instant::now());
    let admission = admit(&quotas, &tenant("acme", Quota::default()), &caller("ann", Quota::default()), now).unwrap();
    let record = |bytes: u64, at| admission.tenant.lock().record(bytes, at);
    assert!((0..16).all(|_| record(1 << 20, now)));
    assert!(!record(1 << 20, now));
    assert!(record(1 << 20, now + 10 * SECOND));
    assert!(!record(16 << 20, now + 20 * SECOND));
    assert!(record(16 << 20, now + 120 * SECOND));
}

#[test]
fn what_calls_write_into_the_audit_log_is_bounded_by_the_minute() {
    let (quotas, now) = (quotas(), Instant::now());
    let (acme, ann) = (tenant("acme", Quota::default()), caller("ann", Quota::default()));
    let call = quotas.admit(&acme, &ann, now).unwrap();
    call.tenant.lock().audit(10 << 20, now);
    assert!(quotas.admit(&acme, &ann, now).is_ok());
    call.tenant.lock().audit(10 << 20, now);
    let exceeded = quotas.admit(&acme, &ann, now).unwrap_err();
    assert_eq!((exceeded.what, exceeded.whose), ("audit_bytes_per_min", "tenant"));
    assert!(quotas.admit(&tenant("other", Quota::default()), &ann, now).is_ok());
    assert!(quotas.admit(&acme, &ann, now + exceeded.retry_after + SECOND).is_ok());
}

#[test]
fn requests_to_the_admin_api_have_a_rate_of_their_own() {
    let (quotas, now) = (quotas(), Instant::now());
    let (acme, ann) = (tenant("acme", slow(1)), caller("ann", Quota::default()));
    admit(&quotas, &acme, &ann, now).unwrap();
    assert!(admit(&quotas, &acme, &ann, now).is_err());
    let asked = (0..20_000).take_while(|_| quotas.ask("acme", now).is_ok()).count();
    assert_eq!(asked, 10_000);
    assert!(quotas.ask("other", now).is_ok());
    assert!(quotas.ask("acme", now + SECOND).is_ok());
}

//! What waits for a second key, and who may be one.

use crate::common::{Fresh, actor, call_key, code, fresh, sealed};
use registry::{Actor, Deployment, Key, NewKey, Registry, RegistryError, Role, TenantPatch, Token};
use std::sync::Arc;

/// A tenant whose changes need two keys.
fn careful() -> Fresh {
    let host = fresh();
    host.registry.create_tenant(&actor(), "acme").unwrap();
    approval(&host.registry, true);
    host
}

fn approval(registry: &Registry, on: bool) {
    registry.update_tenant(&actor(), "acme", TenantPatch { approval: Some(on), ..TenantPatch::default() }).unwrap();
}

/// A key that somebody made.
fn key(registry: &Registry, maker: &str, role: Role) -> (Key, Token) {
    let tenant = (role != Role::Operator).then(|| "acme".to_owned());
    registry.create_key(&Actor(maker.to_owned()), NewKey { tenant, role, ..call_key("acme", "k") }).unwrap()
}

fn current(registry: &Registry) -> Option<String> {
    registry.directory().server("acme", "prices")?.current.clone().map(|current| current.id.clone())
}

fn deploy(registry: &Registry, by: &(Key, Token), source: &str) -> Result<Arc<Deployment>, RegistryError> {
    let new = sealed(registry, "acme", "prices", source, "", &by.0.id, by.1.expose());
    registry.deploy(&Actor(by.0.id.clone()), new)
}

fn activate(registry: &Registry, by: &(Key, Token), id: &str) -> Result<Arc<Deployment>, RegistryError> {
    registry.activate(&Actor(by.0.id.clone()), "acme", "prices", id)
}

fn approve(registry: &Registry, by: &(Key, Token), id: &str) -> &'static str {
    let (lock, _) = registry.lock("acme", "prices", id).unwrap();
    let mut seal = bundle::Seal::new(&lock);
    seal.authenticate(by.0.id.parse().unwrap(), &bundle::MacKey::from_token(by.1.expose()));
    code(registry.approve(&Actor(by.0.id.clone()), "acme", "prices", id, &seal, &shown(registry, id)))
}

/// What names the proposal as it is now; something else where there is none.
fn shown(registry: &Registry, id: &str) -> bundle::Digest {
    let deployment = registry.deployment("acme", "prices", id).unwrap();
    registry.directory().server("acme", "prices").unwrap().proposal(&deployment).unwrap_or(deployment.lock)
}

#[test]
fn every_change_of_what_runs_waits_for_a_second_key() {
    let host = careful();
    let registry = &host.registry;
    let (one, two) = (key(registry, "host", Role::Deploy), key(registry, "host", Role::Deploy));
    // The first deployment.
    let first = deploy(registry, &one, "one").unwrap();
    assert!(first.pending && current(registry).is_none());
    assert_eq!(first.proposed_by.as_ref(), Some(&one.0.id));
    assert_eq!(approve(registry, &one, &first.id), "forbidden");
    assert_eq!(code(activate(registry, &two, &first.id)), "conflict", "no way around it");
    assert_eq!(approve(registry, &two, &first.id), "ok");
    assert_eq!(current(registry).as_ref(), Some(&first.id));
    assert_eq!(approve(registry, &two, &first.id), "conflict", "it does not wait any more");
    // Other code, with the same surface.
    let (second, third) = (deploy(registry, &one, "two").unwrap(), deploy(registry, &one, "three").unwrap());
    assert!(second.pending && third.pending && current(registry).as_ref() == Some(&first.id));
    assert_eq!(approve(registry, &two, &third.id), "ok");
    assert_eq!(approve(registry, &two, &second.id), "stale_proposal", "it was for another step");
    // Going back, also to what was agreed to before.
    let back = activate(registry, &two, &first.id).unwrap();
    assert!(back.pending && current(registry).as_ref() == Some(&third.id));
    assert_eq!(approve(registry, &two, &first.id), "forbidden");
    assert_eq!(approve(registry, &one, &first.id), "ok", "who wrote it did not propose this step");
    assert_eq!(current(registry).as_ref(), Some(&first.id));
    // Out of quarantine, into which one key is enough to put it.
    registry.quarantine(&Actor(two.0.id.clone()), "acme", "prices", &first.id, "it lies").unwrap();
    let held = || registry.directory().server("acme", "prices").unwrap().quarantine.is_some();
    assert!(activate(registry, &one, &first.id).unwrap().pending && held());
    assert_eq!(approve(registry, &one, &first.id), "forbidden");
    assert!(held());
    assert_eq!(approve(registry, &two, &first.id), "ok");
    assert!(!held());
    // The same content again, and after a restart.
    registry.quarantine(&Actor(two.0.id.clone()), "acme", "prices", &first.id, "it lies").unwrap();
    assert!(deploy(registry, &one, "one").unwrap().pending && held());
    let host = host.reopen();
    let registry = &host.registry;
    assert!(registry.directory().server("acme", "prices").unwrap().quarantine.is_some());
    assert_eq!(approve(registry, &one, &first.id), "forbidden");
    assert_eq!(approve(registry, &two, &first.id), "ok");
    assert!(deploy(registry, &one, "four").unwrap().pending);
}

#[test]
fn a_proposal_is_for_one_step() {
    let host = careful();
    let registry = &host.registry;
    let (one, two) = (key(registry, "host", Role::Deploy), key(registry, "host", Role::Deploy));
    let first = deploy(registry, &one, "one").unwrap();
    assert_eq!(approve(registry, &two, &first.id), "ok");
    let second = deploy(registry, &one, "two").unwrap();
    assert_eq!(approve(registry, &two, &second.id), "ok");
    assert!(activate(registry, &one, &first.id).unwrap().pending);
    let third = deploy(registry, &one, "three").unwrap();
    assert_eq!(approve(registry, &two, &third.id), "ok");
    assert_eq!(approve(registry, &two, &first.id), "stale_proposal");
    assert!(activate(registry, &one, &first.id).unwrap().pending, "it can be proposed anew");
    assert_eq!(approve(registry, &two, &first.id), "ok");
    // Where one key is enough, what waits need not.
    let fourth = deploy(registry, &one, "four").unwrap();
    approval(registry, false);
    assert!(!activate(registry, &one, &fourth.id).unwrap().pending);
    assert_eq!(current(registry).as_ref(), Some(&fourth.id));
    assert!(!deploy(registry, &one, "five").unwrap().pending);
}

/// An admin makes itself a second key, or two, and agrees with that.
#[test]
fn keys_that_made_each_other_are_one_party() {
    let host = careful();
    let registry = &host.registry;
    let admin = key(registry, "host", Role::Admin);
    let child = key(registry, &admin.0.id, Role::Admin);
    let sibling = key(registry, &admin.0.id, Role::Deploy);
    let grandchild = key(registry, &child.0.id, Role::Deploy);
    let (of_ann, also_of_ann) = (key(registry, "oauth:ann", Role::Deploy), key(registry, "oauth:ann", Role::Deploy));
    let operator = key(registry, "host", Role::Operator);
    let (second, third) = (key(registry, &operator.0.id, Role::Deploy), key(registry, &operator.0.id, Role::Deploy));
    let family = [&admin, &child, &sibling, &grandchild];
    for (number, one) in family.iter().enumerate() {
        let proposed = deploy(registry, one, &format!("// {number}")).unwrap();
        for other in family {
            assert_eq!(approve(registry, other, &proposed.id), "forbidden");
        }
        registry.revoke_key(&actor(), Some("acme"), &child.0.id).unwrap();
        assert_eq!(approve(registry, &grandchild, &proposed.id), "forbidden", "a revoked key has made it all the same");
        assert_eq!(approve(registry, &second, &proposed.id), "ok");
    }
    let proposed = deploy(registry, &second, "// operators").unwrap();
    assert_eq!(
        approve(registry, &third, &proposed.id),
        "ok",
        "an operator's keys for a tenant are for different people"
    );
    let proposed = deploy(registry, &of_ann, "// token").unwrap();
    assert_eq!(approve(registry, &also_of_ann, &proposed.id), "forbidden");
    // Whoever asks counts, too, not the seal alone.
    let (lock, _) = registry.lock("acme", "prices", &proposed.id).unwrap();
    let mut seal = bundle::Seal::new(&lock);
    seal.authenticate(second.0.id.parse().unwrap(), &bundle::MacKey::from_token(second.1.expose()));
    let digest = shown(registry, &proposed.id);
    let ask =
        |asker: &str| code(registry.approve(&Actor(asker.to_owned()), "acme", "prices", &proposed.id, &seal, &digest));
    assert_eq!((ask("oauth:ann"), ask(&of_ann.0.id), ask("oauth:bob")), ("forbidden", "forbidden", "ok"));
}

/// Somebody looks at a proposal, it is overtaken and proposed again for another change, and only then is it agreed to.
#[test]
fn what_was_shown_is_what_is_agreed_to() {
    let host = careful();
    let registry = &host.registry;
    let (one, two) = (key(registry, "host", Role::Deploy), key(registry, "host", Role::Deploy));
    let agree = |id: &str, seen: &bundle::Digest| {
        let (lock, _) = registry.lock("acme", "prices", id).unwrap();
        let mut seal = bundle::Seal::new(&lock);
        seal.authenticate(two.0.id.parse().unwrap(), &bundle::MacKey::from_token(two.1.expose()));
        code(registry.approve(&Actor(two.0.id.clone()), "acme", "prices", id, &seal, seen))
    };
    let first = deploy(registry, &one, "one").unwrap();
    assert_eq!(approve(registry, &two, &first.id), "ok");
    let second = deploy(registry, &one, "two").unwrap();
    assert_eq!(approve(registry, &two, &second.id), "ok");
    // Back to the first: the lock stays the same however often it is proposed.
    activate(registry, &one, &first.id).unwrap();
    let (seen, lock) = (shown(registry, &first.id), registry.lock("acme", "prices", &first.id).unwrap().0);
    let third = deploy(registry, &one, "three").unwrap();
    assert_eq!(approve(registry, &two, &third.id), "ok");
    assert_eq!(agree(&first.id, &seen), "stale_proposal");
    activate(registry, &one, &first.id).unwrap();
    assert_eq!(registry.lock("acme", "prices", &first.id).unwrap().0, lock);
    assert_eq!(agree(&first.id, &seen), "stale_proposal", "it would replace another one than was shown");
    assert_eq!(current(registry).as_ref(), Some(&third.id));
    assert_eq!(agree(&first.id, &shown(registry, &first.id)), "ok");
}

#[test]
fn who_proposed_and_who_agreed_is_kept_and_what_was_overtaken_is_stale() {
    let host = careful();
    let registry = &host.registry;
    let (one, two) = (key(registry, "host", Role::Deploy), key(registry, "host", Role::Deploy));
    let of = |registry: &Registry, id: &str| registry.deployment("acme", "prices", id).unwrap();
    let first = deploy(registry, &one, "one").unwrap();
    assert_eq!((first.activated_at, first.proposed_at.is_some(), first.approved_by.as_ref()), (None, true, None));
    assert_eq!(registry.proposals("acme").unwrap(), [("prices".to_owned(), first.id.clone())]);
    assert_eq!(approve(registry, &two, &first.id), "ok");
    let (second, third) = (deploy(registry, &one, "two").unwrap(), deploy(registry, &one, "three").unwrap());
    assert_eq!(registry.proposals("acme").unwrap().len(), 2);
    assert_eq!(approve(registry, &two, &third.id), "ok");
    assert!(registry.proposals("acme").unwrap().is_empty());
    let host = host.reopen();
    let registry = &host.registry;
    let (first, second, third) = (of(registry, &first.id), of(registry, &second.id), of(registry, &third.id));
    for agreed in [&first, &third] {
        assert_eq!((agreed.proposed_by.as_ref(), agreed.approved_by.as_ref()), (Some(&one.0.id), Some(&two.0.id)));
        assert!(agreed.proposed_at.is_some() && agreed.approved_at.is_some() && agreed.activated_at.is_some());
        assert!(!agreed.stale && !agreed.pending);
    }
    assert!(second.stale && !second.pending && second.activated_at.is_none());
    // Where one key is enough, nobody proposed it.
    approval(registry, false);
    let alone = activate(registry, &one, &first.id).unwrap();
    assert_eq!((&alone.proposed_by, &alone.approved_by, alone.approved_at), (&None, &None, None));
    let back = of(registry, &second.id);
    assert!(back.stale, "{back:?}");
    assert!(!activate(registry, &one, &second.id).unwrap().stale);
}

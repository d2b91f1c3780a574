//! What waits for a second key, and what does not.

use crate::common::{actor, code, deploy, fresh, sealed};
use registry::NewDeployment;

#[test]
fn a_proposal_waits_for_somebody_to_agree() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let current = || registry.directory().server("acme", "prices").unwrap().current.clone().map(|d| d.id.clone());
    let first = deploy(registry, "acme", "prices", "one").unwrap();
    let propose = |source: &str| {
        let new = sealed(registry, "acme", "prices", source, "", "key", "token");
        registry.deploy(&actor(), NewDeployment { pending: true, ..new }).unwrap()
    };
    let (two, three) = (propose("two"), propose("three"));
    assert_eq!(current().as_ref(), Some(&first.id));
    assert_eq!(code(registry.activate(&actor(), "acme", "prices", &two.id)), "conflict");
    let approve = |id: &str| {
        let (_, seal) = registry.lock("acme", "prices", id).unwrap();
        code(registry.approve(&actor(), "acme", "prices", id, &seal))
    };
    assert_eq!(approve(&first.id), "conflict", "it does not wait");
    assert_eq!(approve(&three.id), "ok");
    assert_eq!(current().as_ref(), Some(&three.id));
    assert_eq!(approve(&two.id), "replayed", "it was for another step");
    assert_eq!(approve(&three.id), "conflict");
}

/// Otherwise whoever may propose could take what was agreed to away from those who want to go back to it.
#[test]
fn what_was_agreed_to_does_not_wait_again() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let current = || registry.directory().server("acme", "prices").unwrap().current.clone().map(|d| d.id.clone());
    let propose = |source: &str| {
        let new = sealed(registry, "acme", "prices", source, "", "key", "token");
        registry.deploy(&actor(), NewDeployment { pending: true, ..new })
    };
    let agree = |id: &str| {
        let (_, seal) = registry.lock("acme", "prices", id).unwrap();
        registry.approve(&actor(), "acme", "prices", id, &seal).unwrap()
    };
    let first = deploy(registry, "acme", "prices", "one").unwrap();
    let two = propose("two").unwrap();
    agree(&two.id);
    let three = propose("three").unwrap();
    assert_eq!(propose("three").unwrap().id, three.id, "what waits may be proposed for another step");
    agree(&three.id);
    let kept = || registry.lock("acme", "prices", &two.id).map(|(lock, seal)| (lock.bytes(), seal.bytes())).unwrap();
    let before = kept();
    let refused = propose("two").unwrap_err();
    assert_eq!((refused.code(), current().as_ref()), ("conflict", Some(&three.id)));
    assert_eq!(code(propose("one")), "conflict", "nor what needed nobody's agreement");
    assert!(registry.deployments("acme", "prices").unwrap().iter().all(|deployment| !deployment.pending));
    assert_eq!(kept(), before, "its lock and its seal are as they were");
    for earlier in [&two.id, &first.id] {
        registry.activate(&actor(), "acme", "prices", earlier).unwrap();
        assert_eq!(current().as_ref(), Some(earlier));
    }
}

//! Uploads that are not what their author made: all of them are refused before any code runs, and what runs goes on.

use crate::stage::signed::{Draft, draft, seal};
use crate::stage::{SURFACE, Seen, Stage, in_time};
use bundle::{MacKey, Seal};
use registry::{Role, Scope};
use serde_json::{Value, json};

const PATH: &str = "/admin/v1/tenants/acme/servers/prices/deployments";
/// What `SURFACE` is, with one tool more.
const MORE: &str = r#"{"name":"prices","tools":[{"name":"double","description":"Doubles a price.","inputSchema":{"type":"object"}},{"name":"halve","inputSchema":{"type":"object"}},{"name":"more","inputSchema":{"type":"object"}}],"resources":[],"resourceTemplates":[],"prompts":[]}"#;

async fn send(stage: &Stage, order: Value) -> Seen {
    stage.post(&stage.acme.deploy, PATH, order).await
}

fn current(stage: &Stage) -> String {
    stage.registry.directory().server("acme", "prices").unwrap().current.clone().unwrap().id.clone()
}

fn with_surface(stage: &Stage, surface: &str) -> Draft {
    draft(&stage.registry, "acme", "prices", "// another", "", surface)
}

/// Flips each byte of some JSON in its turn. What is no JSON any more cannot be sent.
fn flipped(value: &Value) -> Vec<Value> {
    let text = value.to_string().into_bytes();
    let flip = |(at, bit): (usize, u8)| {
        let mut text = text.clone();
        text[at] ^= bit;
        serde_json::from_slice::<Value>(&text).ok().filter(|other| other != value)
    };
    (0..text.len()).flat_map(|at| [(at, 0x01), (at, 0x20)]).filter_map(flip).collect()
}

#[tokio::test]
async fn every_byte_counts() {
    in_time(async {
        let stage = Stage::new().await;
        let (before, order) =
            (current(&stage), stage.draft("prices", "// new", "").order(&stage.registry, &stage.acme.deploy));
        let mut sent = 0;
        for (part, codes) in [("lock", &["bad_signature", "digest_mismatch"][..]), ("seal", &["bad_signature"])] {
            for other in flipped(&order[part]) {
                let mut order = order.clone();
                order[part] = other.clone();
                let seen = send(&stage, order).await;
                assert!(seen.status == 422 && codes.contains(&seen.code().as_str()), "{}: {other}", seen.shown());
                sent += 1;
            }
        }
        for (path, text) in order["files"].as_object().unwrap() {
            for at in 0..text.as_str().unwrap().len() {
                let mut bytes = text.as_str().unwrap().as_bytes().to_vec();
                bytes[at] ^= 0x02;
                let mut order = order.clone();
                order["files"][path] = String::from_utf8(bytes).unwrap().into();
                let seen = send(&stage, order).await;
                assert_eq!((seen.status.as_u16(), seen.code().as_str()), (422, "digest_mismatch"), "{}", seen.shown());
                assert!(seen.text().contains(path.as_str()), "it names the file: {}", seen.shown());
                sent += 1;
            }
        }
        assert!(sent > 1000, "{sent}");
        assert_eq!((stage.wall.asked(), current(&stage)), (0, before));
        assert_eq!(send(&stage, order).await.status, 201, "and as it was made it is good");
    })
    .await;
}

#[tokio::test]
async fn files_are_those_of_the_lock() {
    in_time(async {
        let stage = Stage::new().await;
        let order = stage.draft("prices", "// new", "").order(&stage.registry, &stage.acme.deploy);
        type Edit<'a> = (&'a str, &'a dyn Fn(&mut Value));
        let edits: [Edit<'_>; 4] = [
            ("missing", &|order| drop(order["files"].as_object_mut().unwrap().remove("server.js"))),
            ("no manifest", &|order| drop(order["files"].as_object_mut().unwrap().remove("bulkhead.toml"))),
            ("additional", &|order| order["files"]["more.js"] = json!("")),
            ("exchanged", &|order| {
                let files = order["files"].as_object_mut().unwrap();
                let (a, b) = (files["server.js"].clone(), files["bulkhead.toml"].clone());
                (files["server.js"], files["bulkhead.toml"]) = (b, a);
            }),
        ];
        for (name, edit) in edits {
            let mut order = order.clone();
            edit(&mut order);
            let seen = send(&stage, order).await;
            assert_eq!((seen.status.as_u16(), seen.code().as_str()), (422, "digest_mismatch"), "{name}");
        }
        assert_eq!(stage.wall.asked(), 0);
    })
    .await;
}

/// A body of the size that is allowed must not become many times that in memory.
#[tokio::test]
async fn many_small_things_are_not_taken() {
    in_time(async {
        let stage = Stage::new().await;
        let order = stage.draft("prices", "// new", "").order(&stage.registry, &stage.acme.deploy);
        let with = |part: &str, value: Value| {
            let mut order = order.clone();
            order[part] = value;
            order
        };
        let many: Value = vec![json!([]); 1 << 20].into();
        for order in [with("lock", many.clone()), with("seal", many)] {
            assert_eq!(send(&stage, order).await.code(), "bad_body");
        }
        let files: serde_json::Map<_, _> = (0..100_000).map(|n| (n.to_string(), json!(""))).collect();
        assert_eq!(send(&stage, with("files", files.into())).await.code(), "bad_body");
        assert_eq!(stage.wall.asked(), 0);
    })
    .await;
}

/// Whoever holds a deploy key can seal anything, but not a lock that says something else than its manifest.
#[tokio::test]
async fn the_lock_follows_from_the_manifest() {
    in_time(async {
        let stage = Stage::new().await;
        let mut draft = stage.draft("prices", "// new", "");
        draft.lock.jit = true;
        let seen = send(&stage, draft.order(&stage.registry, &stage.acme.deploy)).await;
        assert_eq!((seen.status.as_u16(), seen.code().as_str()), (422, "digest_mismatch"));
        assert!(seen.text().contains("`jit` differ"), "{}", seen.text());
        // Nor a lock of another server.
        let other = stage.draft("stock", "// new", "").order(&stage.registry, &stage.acme.deploy);
        assert_eq!(send(&stage, other).await.code(), "digest_mismatch");
        assert_eq!(stage.wall.asked(), 0);
    })
    .await;
}

#[tokio::test]
async fn only_a_key_that_may_deploy_it_seals() {
    in_time(async {
        let stage = Stage::new().await;
        let key = |role, expires| stage.key(Some("acme"), role, Scope::default(), expires).1.expose().to_owned();
        let (old, new) = (key(Role::Deploy, None), key(Role::Deploy, None));
        let sealed = async |token: &str| {
            let draft = stage.draft("prices", "// new", "");
            let mut seal = Seal::new(&draft.lock);
            let id = stage.registry.directory().keys.get(&registry::token_hash(token)).map(|key| key.id.clone());
            seal.authenticate(id.unwrap_or("nobody".to_owned()).parse().unwrap(), &MacKey::from_token(token));
            let order = json!({ "lock": draft.lock.value(), "seal": seal.value(), "files": draft.files });
            let seen = send(&stage, order).await;
            if seen.status.is_success() { "ok".to_owned() } else { seen.code() }
        };
        for token in
            [&stage.acme.call, &stage.globex.deploy, &stage.globex.admin, "nonsense", &key(Role::Deploy, Some(1))]
        {
            assert_eq!(sealed(token).await, "bad_signature");
        }
        // While a key is exchanged for another, both are good; then the old one is not, not even in another's hands.
        assert_eq!((sealed(&old).await.as_str(), sealed(&new).await.as_str()), ("ok", "ok"));
        let id = stage.registry.directory().keys[&registry::token_hash(&old)].id.clone();
        let replayed = stage.draft("prices", "// later", "").order(&stage.registry, &old);
        stage.registry.revoke_key(&crate::stage::host(), Some("acme"), &id).unwrap();
        assert_eq!(sealed(&old).await, "bad_signature");
        assert_eq!(send(&stage, replayed).await.code(), "bad_signature");
        // What it sealed before runs on.
        let current = current(&stage);
        assert!(stage.registry.bundle("acme", "prices", &current).is_ok());
    })
    .await;
}

#[tokio::test]
async fn an_old_upload_is_not_taken_again() {
    in_time(async {
        let stage = Stage::new().await;
        let order = |source: &str| stage.draft("prices", source, "").order(&stage.registry, &stage.acme.deploy);
        let first = current(&stage);
        let one = order("// one");
        assert_eq!(send(&stage, one.clone()).await.status, 201);
        let two = order("// two");
        assert_eq!(send(&stage, two.clone()).await.status, 201);
        let asked = stage.wall.asked();
        let seen = send(&stage, one.clone()).await;
        assert_eq!((seen.status.as_u16(), seen.code().as_str()), (409, "replayed"), "{}", seen.shown());
        // Back to where the old upload came from: it is old all the same.
        stage.registry.activate(&crate::stage::host(), "acme", "prices", &first).unwrap();
        assert_eq!(send(&stage, one).await.code(), "replayed");
        assert_eq!((stage.wall.asked(), current(&stage)), (asked, first));
    })
    .await;
}

#[tokio::test]
async fn code_that_shows_something_else_than_was_signed_is_refused() {
    in_time(async {
        let stage = Stage::new().await;
        let before = current(&stage);
        let draft = with_surface(&stage, MORE);
        let seen = send(&stage, draft.order(&stage.registry, &stage.acme.deploy)).await;
        assert_eq!((seen.status.as_u16(), seen.code().as_str()), (422, "surface_drift"));
        assert!(seen.text().contains(r#"- tool \"more\""#), "{}", seen.text());
        assert_eq!((stage.wall.asked(), current(&stage)), (1, before));
    })
    .await;
}

#[tokio::test]
async fn a_difference_is_signed_or_refused() {
    in_time(async {
        let stage = Stage::new().await;
        let before = current(&stage);
        let draft = stage.draft("prices", "// new", "[limits]\ncpu_ms = 60");
        assert!(draft.lock.step.accepts.is_some());
        let other = stage.draft("prices", "// new", "[limits]\ncpu_ms = 61").lock.step.accepts;
        for accepts in [None, other] {
            let mut draft = draft.clone();
            draft.lock.step.accepts = accepts;
            let seen = stage.upload(&stage.acme.deploy, &draft).await;
            assert_eq!((seen.status.as_u16(), seen.code().as_str()), (409, "surface_drift"), "{}", seen.shown());
            let changes = &seen.json()["error"]["changes"];
            assert_eq!(
                (&changes[0]["kind"], &changes[0]["pointer"], &changes[0]["old"], &changes[0]["new"]),
                (&json!("limit_raised"), &json!("/limits/cpu_ms"), &json!(50), &json!(60))
            );
            assert_eq!(changes.as_array().unwrap().len(), 1);
        }
        // Agreeing to what is not there is no way to agree to something later.
        let mut nothing = stage.draft("prices", "// new", "");
        nothing.lock.step.accepts = other;
        assert_eq!(stage.upload(&stage.acme.deploy, &nothing).await.code(), "surface_drift");
        assert_eq!((stage.wall.asked(), current(&stage)), (0, before));
        assert_eq!(stage.upload(&stage.acme.deploy, &draft).await.status, 201);
    })
    .await;
}

#[tokio::test]
async fn a_second_key_agrees() {
    in_time(async {
        let stage = Stage::new().await;
        let patch = json!({ "approval": true });
        assert_eq!(stage.ask(&stage.acme.admin, "PATCH", "/admin/v1/tenants/acme", Some(patch)).await.status, 200);
        let before = current(&stage);
        // Other code that shows the same waits as well, and so does the first deployment of a server.
        for (server, source) in [("prices", "// same"), ("new", "// first")] {
            let made = stage.upload(&stage.acme.deploy, &stage.draft(server, source, "")).await;
            assert_eq!((made.status.as_u16(), &made.json()["pending"]), (202, &json!(true)), "{server}");
        }
        assert!(stage.registry.directory().server("acme", "new").unwrap().current.is_none());
        assert_eq!(current(&stage), before);
        let off = json!({ "approval": false });
        assert_eq!(stage.ask(&stage.acme.admin, "PATCH", "/admin/v1/tenants/acme", Some(off)).await.status, 403);
        let draft = stage.draft("prices", "// new", "[limits]\ncpu_ms = 60");
        let made = stage.upload(&stage.acme.deploy, &draft).await;
        assert_eq!((made.status.as_u16(), &made.json()["pending"]), (202, &json!(true)));
        let id = made.json()["deployment"].as_str().unwrap().to_owned();
        assert_eq!(current(&stage), before);
        let approve = async |key: &str, seal: Value| {
            let proposal = stage.get(&stage.acme.deploy, &format!("{PATH}/{id}")).await.json()["proposal"].clone();
            let proposal = proposal.as_str().map_or("0".repeat(64), str::to_owned);
            let order = json!({ "seal": seal, "proposal": proposal });
            let seen = stage.post(key, &format!("{PATH}/{id}/approve"), order).await;
            if seen.status.is_success() { "ok".to_owned() } else { seen.code() }
        };
        let by = |token: &str| seal(&stage.registry, &draft.lock, token).value();
        let (author, other) = (&stage.acme.deploy, &stage.acme.admin);
        assert_eq!(approve(author, by(author)).await, "forbidden", "not the author");
        assert_eq!(approve(other, by(author)).await, "forbidden", "nor with the author's seal");
        assert_eq!(approve(&stage.acme.call, by(other)).await, "forbidden");
        assert_eq!(approve(&stage.globex.admin, by(&stage.globex.admin)).await, "not_found");
        assert_eq!(approve(other, by(&stage.globex.admin)).await, "bad_signature");
        assert_eq!(approve(other, by(&stage.acme.call)).await, "bad_signature");
        let elsewhere = stage.draft("prices", "// another", "").lock;
        assert_eq!(approve(other, seal(&stage.registry, &elsewhere, other).value()).await, "bad_signature");
        for wrong in flipped(&by(other)).into_iter().step_by(7) {
            assert_eq!(approve(other, wrong).await, "bad_signature");
        }
        assert_eq!(current(&stage), before);
        let path = format!("{PATH}/{id}/activate");
        assert_eq!(stage.ask(other, "POST", &path, None).await.code(), "conflict", "no way around it");
        assert_eq!(approve(other, by(other)).await, "ok");
        assert_eq!(current(&stage), id);
        assert!(stage.registry.bundle("acme", "prices", &id).is_ok());
        assert_eq!(approve(other, by(other)).await, "conflict");
        // Back again is a change as well.
        let path = format!("{PATH}/{before}/activate");
        let back = stage.ask(author, "POST", &path, None).await;
        assert_eq!(
            (back.status.as_u16(), &back.json()["current"], &back.json()["pending"]),
            (202, &json!(false), &json!(true))
        );
        assert_eq!(current(&stage), id);
        // Taking away is not.
        let path = "/admin/v1/tenants/acme/servers/prices/quarantine";
        let held = stage.post(other, path, json!({ "reason": "it lies" })).await;
        assert_eq!((held.status.as_u16(), &held.json()["quarantine"]), (200, &json!("it lies")));
    })
    .await;
}

/// An admin key makes another key, and agrees with that to what it proposed itself.
#[tokio::test]
async fn a_key_that_the_author_made_is_no_second_key() {
    in_time(async {
        let stage = Stage::new().await;
        let patch = json!({ "approval": true });
        assert_eq!(stage.ask(&stage.acme.admin, "PATCH", "/admin/v1/tenants/acme", Some(patch)).await.status, 200);
        let made =
            stage.post(&stage.acme.admin, "/admin/v1/tenants/acme/keys", json!({ "role": "deploy" })).await.json();
        let own = made["token"].as_str().unwrap();
        let draft = stage.draft("prices", "// new", "");
        for (author, approver) in [(stage.acme.admin.as_str(), own), (own, stage.acme.admin.as_str())] {
            let made = stage.upload(author, &draft).await;
            assert_eq!(made.status.as_u16(), 202, "{}", made.text());
            let id = made.json()["deployment"].as_str().unwrap().to_owned();
            let proposal = stage.get(author, &format!("{PATH}/{id}")).await.json()["proposal"].clone();
            let order = json!({ "seal": seal(&stage.registry, &draft.lock, approver).value(), "proposal": proposal });
            let seen = stage.post(approver, &format!("{PATH}/{id}/approve"), order).await;
            assert_eq!((seen.status.as_u16(), seen.code()), (403, "forbidden".to_owned()));
            assert!(seen.text().contains("count as one"), "{}", seen.text());
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_next_is_known_before_there_is_anything() {
    in_time(async {
        let stage = Stage::new().await;
        let next = async |server: &str| {
            stage.get(&stage.acme.deploy, &format!("/admin/v1/tenants/acme/servers/{server}/next")).await.json()
        };
        assert_eq!(next("nothing").await, json!({ "step": 1, "current": null, "approval": false, "loopback": [] }));
        let prices = next("prices").await;
        assert_eq!((&prices["step"], &prices["current"]["deployment"]), (&json!(2), &json!(current(&stage))));
        assert_eq!(prices["current"]["lock"]["surface"]["tools"][0]["name"], "double");
        let me = stage.get(&stage.acme.deploy, "/admin/v1/me").await.json();
        assert_eq!((&me["tenant"], &me["role"], &me["key"]), (&json!("acme"), &json!("deploy"), &me["subject"]));
        assert_eq!(stage.get(&stage.operator, "/admin/v1/me").await.json()["tenant"], json!(null));
        assert!(SURFACE.contains("halve"));
    })
    .await;
}

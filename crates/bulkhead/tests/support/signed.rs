//! Uploads without the command line: locked and sealed as an author does it.
#![allow(dead_code, reason = "no test file uses all of it")]

use bundle::{Drift, Lock, MacKey, Manifest, Seal, Step, Surface, canonical};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The body of an upload of one file. `me` and `next` are what the host says of the key and the server.
pub fn order(me: &Value, next: &Value, token: &str, server: &str, source: &str, surface: &Value) -> Value {
    let text = format!("name = \"{server}\"\nentry = \"server.js\"\n");
    let manifest = Manifest::parse(text.as_bytes()).unwrap();
    let files: BTreeMap<String, String> =
        [("bulkhead.toml", text), ("server.js", source.to_owned())].map(|(path, text)| (path.to_owned(), text)).into();
    let before = match &next["current"] {
        Value::Null => None,
        current => Some(Lock::parse(&canonical(&current["lock"])).unwrap()),
    };
    let number = next["step"].as_u64().unwrap();
    let step = Step { number, previous: before.as_ref().map(Lock::digest), accepts: None };
    let surface = Surface::new(surface.clone()).unwrap();
    let mut lock =
        Lock::new(&manifest, surface, bundle::Program::Module { entry: "server.js".parse().unwrap() }, &files, step)
            .unwrap();
    lock.step.accepts = before.and_then(|before| Drift::digest(&Drift::between(&before, &lock)));
    let mut seal = Seal::new(&lock);
    seal.authenticate(me["key"].as_str().unwrap().parse().unwrap(), &MacKey::from_token(token));
    json!({ "lock": lock.value(), "seal": seal.value(), "files": files })
}

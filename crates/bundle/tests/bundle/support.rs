//! A project to attack.

use bundle::{Digest, KeyId, Lock, MacKey, Manifest, Program, PublisherKey, Seal, Step, Surface};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub const TOKEN: &str = "bh_deploy_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
pub const KEY: &str = "key-0123456789abcdef";

pub fn manifest() -> Manifest {
    Manifest::parse(MANIFEST.as_bytes()).unwrap()
}

pub const MANIFEST: &str = r#"
        name = "weather"
        entry = "src/server.js"
        egress = ["api.example.com", "*.example.org:8443"]
        [limits]
        cpu_ms = 100
        [[secrets]]
        name = "API_TOKEN"
        hosts = ["api.example.com"]
        header = "authorization"
        format = "Bearer {}"
    "#;

pub fn shown() -> Value {
    json!({
        "name": "Weather", "version": "1.0.0", "instructions": "Ask for a city.",
        "tools": [
            {"name": "now", "description": "The weather now.", "annotations": {"readOnlyHint": true},
             "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "A city."}}}},
            {"name": "alert", "description": "Sets an alarm.", "inputSchema": {"type": "object", "maximum": 1e21}},
        ],
        "resources": [{"uri": "weather://cities", "name": "cities"}],
        "resourceTemplates": [{"uriTemplate": "weather://{city}", "name": "city"}],
        "prompts": [{"name": "report", "arguments": [{"name": "city", "required": true}]}],
        "completions": false,
    })
}

pub fn files() -> BTreeMap<String, Vec<u8>> {
    [("bulkhead.toml", MANIFEST), ("src/server.js", "export default {}")]
        .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
        .into()
}

pub fn with(surface: Value, previous: Option<Digest>) -> Lock {
    let step = Step { number: 1, previous, accepts: None };
    Lock::new(&manifest(), Surface::new(surface).unwrap(), entry(), &files(), step).unwrap()
}

pub fn entry() -> Program {
    Program::Module { entry: "src/server.js".parse().unwrap() }
}

pub fn lock() -> Lock {
    static LOCK: LazyLock<Lock> = LazyLock::new(|| with(shown(), None));
    LOCK.clone()
}

pub fn key_id() -> KeyId {
    KEY.parse().unwrap()
}

pub fn seal(lock: &Lock) -> Seal {
    let mut seal = Seal::new(lock);
    seal.authenticate(key_id(), &MacKey::from_token(TOKEN));
    for seed in [1, 2] {
        seal.sign(&PublisherKey::from_seed(&[seed; 32])).unwrap();
    }
    seal
}

/// Any JSON, with awkward keys, texts and numbers.
pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3..3i8).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map("[a-c~/]{0,2}|.{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A surface of few names, so that two of them have some in common.
pub fn any_surface() -> impl Strategy<Value = Value> {
    let list = |id: &'static str| {
        let entry = proptest::collection::btree_map("description|inputSchema|annotations|[a-c]", any_json(), 0..3);
        proptest::collection::btree_map("[ab\u{202e}]", entry, 0..3).prop_map(move |entries| {
            let entry = |(name, rest): (String, BTreeMap<String, Value>)| {
                let mut entry: Map<_, _> = rest.into_iter().collect();
                entry.insert(id.to_owned(), name.into());
                Value::Object(entry)
            };
            Value::Array(entries.into_iter().map(entry).collect())
        })
    };
    let text = || prop_oneof![Just(Value::Null), "[ab]?".prop_map(Value::from)];
    (list("name"), list("uri"), list("uriTemplate"), list("name"), text(), text(), any_json()).prop_map(
        |(tools, resources, templates, prompts, version, instructions, icons)| {
            json!({
                "tools": tools, "resources": resources, "templates": templates, "prompts": prompts,
                "version": version, "instructions": instructions, "icons": icons,
            })
        },
    )
}

/// Everything that is wrong with a manifest.
pub fn refused(manifest: &str) -> String {
    Manifest::parse(manifest.as_bytes()).unwrap_err().to_string()
}

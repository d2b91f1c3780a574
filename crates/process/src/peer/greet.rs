//! The first words: which era a server speaks, and who it is.
//!
//! `initialize` comes first. A server of the newest revision alone answers it with an error, and is asked for
//! `server/discover` then. The other way round would end many an older server, which takes any other first request for
//! the end of the conversation.

use super::{Params, raw};
use crate::driver::Peer;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The revisions that begin with `initialize`, newest first, and the one that does not.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const MODERN: &str = "2026-07-28";

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// What a server said of itself.
#[derive(Debug, Default)]
pub(crate) struct Greeting {
    pub(crate) info: Info,
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: Capabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Info {
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) website_url: Option<String>,
    pub(crate) icons: Option<Box<RawValue>>,
}

/// What it offers at all.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Capabilities {
    pub(crate) tools: Option<Value>,
    pub(crate) prompts: Option<Value>,
    pub(crate) resources: Option<Value>,
    pub(crate) completions: Option<Value>,
}

impl Capabilities {
    /// Of which lists it says that it will tell of changes, as `subscriptions/listen` calls them.
    pub(crate) fn news(&self) -> Vec<&'static str> {
        let lists = [
            (&self.tools, "toolsListChanged"),
            (&self.prompts, "promptsListChanged"),
            (&self.resources, "resourcesListChanged"),
        ];
        let tells = |list: &Option<Value>| list.as_ref().is_some_and(|list| list["listChanged"] == true);
        lists.into_iter().filter(|(list, _)| tells(list)).map(|(_, name)| name).collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    protocol_version: Option<String>,
    #[serde(default)]
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Capabilities,
    server_info: Option<Info>,
    instructions: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

/// What a client may be asked; links are shown by the host alone. Whether the one behind a call can, its host says when it is asked.
fn capabilities() -> Value {
    json!({ "roots": {}, "sampling": { "tools": {}, "context": {} }, "elicitation": { "form": {} } })
}

fn client_info() -> Value {
    json!({ "name": "bulkhead", "version": "1" })
}

/// What every request of the newest revision says of its client.
pub(crate) fn envelope() -> Vec<(&'static str, Box<RawValue>)> {
    vec![
        ("io.modelcontextprotocol/protocolVersion", raw(MODERN)),
        ("io.modelcontextprotocol/clientCapabilities", raw(&capabilities())),
        ("io.modelcontextprotocol/clientInfo", raw(&client_info())),
        ("io.modelcontextprotocol/logLevel", raw("debug")),
    ]
}

/// Says hello for this call, and gives what the server says. The error is for the server's author.
pub(crate) async fn greet(peer: &Peer, call: u64) -> Result<Greeting, String> {
    let params: Params = vec![
        ("protocolVersion", raw(LEGACY[0])),
        ("capabilities", raw(&capabilities())),
        ("clientInfo", raw(&client_info())),
    ];
    match peer.request(Some(call), "initialize", params).await {
        Ok(result) => {
            let wire = read(&result, "initialize")?;
            if !wire.protocol_version.as_deref().is_some_and(|version| LEGACY.contains(&version)) {
                return Err(
                    "the server answers `initialize` with a revision of the protocol that is not known here".to_owned()
                );
            }
            peer.notify("notifications/initialized").await;
            Ok(Greeting {
                info: wire.server_info.unwrap_or_default(),
                instructions: wire.instructions,
                capabilities: wire.capabilities,
            })
        }
        Err(refused) => {
            peer.set_modern(true);
            discover(peer, call)
                .await
                .map_err(|error| format!("the server refuses `initialize` ({}), and {error}", refused.message))
        }
    }
}

async fn discover(peer: &Peer, call: u64) -> Result<Greeting, String> {
    let answer = peer.request(Some(call), "server/discover", Params::new()).await;
    let result = answer.map_err(|error| format!("`server/discover` as well ({})", error.message))?;
    let wire = read(&result, "server/discover")?;
    if !wire.supported_versions.iter().any(|version| version == MODERN) {
        return Err(format!("does not know {MODERN}"));
    }
    let meta = wire.meta.and_then(|meta| serde_json::from_str::<Value>(meta.get()).ok());
    let info = meta.and_then(|mut meta| serde_json::from_value(meta.get_mut(SERVER_INFO)?.take()).ok());
    Ok(Greeting {
        info: info.or(wire.server_info).unwrap_or_default(),
        instructions: wire.instructions,
        capabilities: wire.capabilities,
    })
}

fn read(result: &RawValue, method: &str) -> Result<Wire, String> {
    serde_json::from_str(result.get()).map_err(|error| format!("the answer to `{method}` cannot be read: {error}"))
}

//! What the one who deploys decides.

use serde_json::Value;
use std::collections::BTreeMap;

/// Whether a host takes a schema, and if not, why.
pub type SchemaCheck = fn(&Value) -> Result<(), String>;

#[derive(Clone, Debug)]
pub struct Options {
    /// Stands for all servers of the specification.
    pub base_url: Option<String>,
    /// Operations to take, as `operationId` or `METHOD /path`, with `*` and `?`; all when empty.
    pub include: Vec<String>,
    /// Operations to leave out, in the same form. They win.
    pub exclude: Vec<String>,
    /// Take only operations with one of these tags; all when empty.
    pub tags: Vec<String>,
    /// More are an error: nothing is left out in silence.
    pub most_tools: usize,
    /// Whether tools promise what they give back. A host enforces it; what an API does not keep to is better left out.
    pub output_schemas: bool,
    /// Values for the variables of servers.
    pub server_variables: BTreeMap<String, String>,
    /// What the host says to a schema. An output schema it does not take is left out, an input schema is loosened.
    pub schema_check: Option<SchemaCheck>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            base_url: None,
            include: Vec::new(),
            exclude: Vec::new(),
            tags: Vec::new(),
            most_tools: 200,
            output_schemas: true,
            server_variables: BTreeMap::new(),
            schema_check: None,
        }
    }
}

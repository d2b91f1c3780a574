//! What a deployment offers, read once and kept ready for lists and checks.

use super::schema::{Schema, SchemaError};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The surface of one deployment.
#[derive(Debug)]
pub struct Surface {
    pub name: Option<String>,
    pub version: Option<String>,
    pub instructions: Option<String>,
    /// `title`, `icons`, `websiteUrl`: shown as they are.
    pub extra: serde_json::Map<String, Value>,
    pub tools: Vec<Tool>,
    tools_by_name: HashMap<String, usize>,
    pub resources: Vec<Listed>,
    pub templates: Vec<Listed>,
    pub prompts: Vec<Prompt>,
    pub completions: bool,
    /// Bytes of memory that it takes, about.
    pub weight: usize,
}

#[derive(Debug)]
pub struct Tool {
    pub name: String,
    /// As it stands in `tools/list`.
    pub listed: Box<RawValue>,
    pub input: Schema,
    pub output: Option<Schema>,
    /// Arguments that modern clients repeat in headers: where they are, and the header's name after `Mcp-Param-`.
    pub headers: Vec<(Vec<String>, String)>,
    pub task: TaskSupport,
}

/// Whether calls of a tool may become tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    #[default]
    Forbidden,
    Optional,
    Required,
}

/// A resource or a template.
#[derive(Debug)]
pub struct Listed {
    /// Address or template.
    pub uri: String,
    pub mime_type: Option<String>,
    pub listed: Box<RawValue>,
}

#[derive(Debug)]
pub struct Prompt {
    pub name: String,
    pub required: Vec<String>,
    pub listed: Box<RawValue>,
}

/// Why a surface is not offered.
#[derive(Debug, thiserror::Error)]
pub enum SurfaceError {
    #[error("the surface cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("tool `{tool}`: the {which} schema is refused: {error}")]
    Schema { tool: String, which: &'static str, error: SchemaError },
}

/// Bytes of memory for everything that is compiled of one deployment ([`Schema::weight`]): it is kept while the server is used.
pub const MOST_COMPILED: usize = 64 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    name: Option<String>,
    version: Option<String>,
    instructions: Option<String>,
    title: Option<Value>,
    icons: Option<Value>,
    website_url: Option<Value>,
    #[serde(default)]
    tools: Vec<Box<RawValue>>,
    #[serde(default)]
    resources: Vec<Box<RawValue>>,
    #[serde(default)]
    resource_templates: Vec<Box<RawValue>>,
    #[serde(default)]
    prompts: Vec<Box<RawValue>>,
    #[serde(default)]
    completions: bool,
}

impl Surface {
    pub fn read(json: &RawValue) -> Result<Surface, SurfaceError> {
        let wire: Wire = serde_json::from_str(json.get())?;
        let extra = [("title", wire.title), ("icons", wire.icons), ("websiteUrl", wire.website_url)];
        let mut left = MOST_COMPILED;
        let mut tools = Vec::with_capacity(wire.tools.len());
        for listed in wire.tools {
            tools.push(Tool::read(listed, &mut left)?);
        }
        let tools_by_name = tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect();
        Ok(Surface {
            name: wire.name,
            version: wire.version,
            instructions: wire.instructions,
            extra: extra.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect(),
            tools,
            tools_by_name,
            resources: wire.resources.into_iter().map(Listed::read).collect::<Result<_, _>>()?,
            templates: wire.resource_templates.into_iter().map(Listed::read).collect::<Result<_, _>>()?,
            prompts: wire.prompts.into_iter().map(Prompt::read).collect::<Result<_, _>>()?,
            completions: wire.completions,
            // What is listed is kept as it is, and once more with other names where all servers are listed together.
            weight: MOST_COMPILED - left + 3 * json.get().len(),
        })
    }

    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools_by_name.get(name).map(|index| &self.tools[*index])
    }

    pub fn prompt(&self, name: &str) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.name == name)
    }

    /// Whether the address is one the server has: a plain one, or one that a template may fit.
    pub fn has_resource(&self, uri: &str) -> bool {
        self.resources.iter().any(|listed| listed.uri == uri)
            || self.templates.iter().any(|listed| template_may_fit(&listed.uri, uri))
    }

    /// The type of what is read from there, as far as the surface says.
    pub fn mime_type(&self, uri: &str) -> Option<&str> {
        let plain = self.resources.iter().find(|listed| listed.uri == uri);
        let listed = plain.or_else(|| self.templates.iter().find(|listed| template_may_fit(&listed.uri, uri)))?;
        listed.mime_type.as_deref()
    }
}

/// The literal ends of a template agree with the address. The compartment decides for good.
fn template_may_fit(template: &str, uri: &str) -> bool {
    let Some(first) = template.find('{') else { return template == uri };
    let last = template.rfind('}').map_or(template.len(), |at| at + 1);
    let (head, tail) = (&template[..first], &template[last..]);
    uri.len() > head.len() + tail.len() && uri.starts_with(head) && uri.ends_with(tail)
}

impl Tool {
    /// Takes what its schemas need of the memory that is left for the deployment.
    fn read(listed: Box<RawValue>, left: &mut usize) -> Result<Tool, SurfaceError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            name: String,
            input_schema: Value,
            output_schema: Option<Value>,
            #[serde(default)]
            execution: Execution,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Execution {
            #[serde(default)]
            task_support: TaskSupport,
        }
        let wire: Wire = serde_json::from_str(listed.get())?;
        let mut compile = |which: &'static str, schema: &Value| {
            let tool = || wire.name.chars().take(128).collect();
            let compiled =
                Schema::compile(schema, *left).map_err(|error| SurfaceError::Schema { tool: tool(), which, error })?;
            *left = left.saturating_sub(compiled.weight());
            Ok::<_, SurfaceError>(compiled)
        };
        let input = compile("input", &wire.input_schema)?;
        let output = wire.output_schema.as_ref().map(|schema| compile("output", schema)).transpose()?;
        let mut headers = Vec::new();
        collect_headers(&wire.input_schema, &mut Vec::new(), &mut headers);
        Ok(Tool { name: wire.name, listed, input, output, headers, task: wire.execution.task_support })
    }
}

/// Properties with `x-mcp-header`, reached through `properties` alone.
fn collect_headers(schema: &Value, path: &mut Vec<String>, out: &mut Vec<(Vec<String>, String)>) {
    const MOST: usize = 64;
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        if out.len() >= MOST {
            return;
        }
        path.push(name.clone());
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            out.push((path.clone(), header.to_owned()));
        }
        collect_headers(property, path, out);
        path.pop();
    }
}

impl Listed {
    fn read(listed: Box<RawValue>) -> Result<Listed, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(alias = "uriTemplate")]
            uri: String,
            mime_type: Option<String>,
        }
        let wire: Wire = serde_json::from_str(listed.get())?;
        Ok(Listed { uri: wire.uri, mime_type: wire.mime_type, listed })
    }
}

impl Prompt {
    fn read(listed: Box<RawValue>) -> Result<Prompt, serde_json::Error> {
        #[derive(Deserialize)]
        struct Wire {
            name: String,
            #[serde(default)]
            arguments: Vec<Argument>,
        }
        #[derive(Deserialize)]
        struct Argument {
            name: String,
            #[serde(default)]
            required: bool,
        }
        let wire: Wire = serde_json::from_str(listed.get())?;
        let required = wire.arguments.into_iter().filter(|argument| argument.required).map(|argument| argument.name);
        Ok(Prompt { name: wire.name, required: required.collect(), listed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn surface(tools: usize, schema: &Value) -> Result<Surface, SurfaceError> {
        let tool = |number: usize| json!({ "name": format!("t{number}"), "inputSchema": schema });
        let json = json!({ "tools": (0..tools).map(tool).collect::<Vec<_>>() }).to_string();
        assert!(json.len() < 1 << 20, "a deployment may show that much");
        Surface::read(&RawValue::from_string(json).unwrap())
    }

    fn refused(tools: usize, schema: &Value) -> String {
        surface(tools, schema).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn schemas_that_are_too_much_together_are_refused() {
        let many: serde_json::Map<String, Value> = (0..500).map(|number| (format!("p{number}"), json!({}))).collect();
        let schema = json!({ "type": "object", "properties": { "k".repeat(1000): { "properties": many } } });
        assert!(surface(10, &schema).is_ok());
        let message = refused(60, &schema);
        assert!(message.contains("tool `t") && message.contains("bytes of memory"), "{message}");
    }

    /// Each of a thousand expressions may take a mebibyte; all of them together may not take a thousand.
    #[test]
    fn expressions_share_the_memory_of_their_deployment() {
        let large =
            |number: usize| json!({ "type": "string", "pattern": format!("^(?:[a-z]{{1,300}}x{number}y){{1,10}}$") });
        let properties = |count: usize| -> Value {
            let all: serde_json::Map<String, Value> = (0..count).map(|n| (format!("p{n}"), large(n))).collect();
            json!({ "type": "object", "properties": all })
        };
        assert!(surface(1, &properties(2)).is_ok());
        let message = refused(1, &properties(1000));
        assert!(message.contains("tool `t0`") && message.contains("/properties/p"), "{message}");
        assert!(message.contains("expressions of the deployment"), "{message}");
        // In as many tools as in one.
        let message = refused(500, &properties(2));
        assert!(message.contains("tool `t") && message.contains("expressions of the deployment"), "{message}");
        // Hundreds of ordinary ones are no trouble.
        let small: serde_json::Map<String, Value> =
            (0..200).map(|n| (format!("p{n}"), json!({ "pattern": format!("^[A-Z]{{2}}-{n}$") }))).collect();
        assert!(surface(2, &json!({ "type": "object", "properties": small })).is_ok());
    }
}

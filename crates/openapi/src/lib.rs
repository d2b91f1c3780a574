#![forbid(unsafe_code)]
//! OpenAPI specifications become MCP servers. Pure functions: no files, no network, no clock.
//!
//! [`convert`] reads a specification of 3.0 or 3.1 and gives what a deployment needs: the source of a module with one
//! tool for each operation, the hosts and secrets for its manifest, its endpoints for a lock, and a [`Report`] of
//! everything in the specification that is not in the server to the letter.

mod body;
mod error;
mod files;
mod input;
mod media;
mod module;
mod operations;
mod options;
mod parameters;
mod path;
mod read;
mod report;
mod response;
mod schema;
mod security;
mod servers;
mod text;
mod tool;

pub use error::OpenApiError;
pub use options::{Options, SchemaCheck};
pub use report::{Entry, Level, Report};
pub use security::{Place, SecretBinding};

use files::{At, Files};
use report::Notes;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use text::{cut, quote};

/// What a host takes as the description of all tools together, less a little.
const MOST_SURFACE: usize = (1 << 20) - (4 << 10);
const MOST_DESCRIPTION: usize = 4_000;

/// A server, ready to be deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Fit to be a server's name.
    pub name: String,
    pub title: String,
    pub version: String,
    pub description: String,
    /// How many there are.
    pub tools: usize,
    pub endpoints: Vec<Endpoint>,
    /// The hosts of all base URLs, as a manifest has them.
    pub egress: Vec<String>,
    pub secrets: Vec<SecretBinding>,
    pub report: Report,
    /// Source of a JavaScript module whose default export is the server.
    pub module: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Endpoint {
    pub tool: String,
    pub method: String,
    /// As in the specification, with its parameters in braces.
    pub path: String,
    pub base_url: String,
}

/// Makes a server of the specification `root`, which may refer to the other `files` by their paths.
pub fn convert(files: &BTreeMap<String, Vec<u8>>, root: &str, options: &Options) -> Result<Converted, OpenApiError> {
    let mut notes = Notes::default();
    let files = Files::load(files, root, &mut notes)?;
    let document = files.root();
    let old = version(&document, root, &mut notes)?;
    let info = info(&document, &mut notes);
    let all = operations::all(&files, &mut notes);
    let selected = operations::selected(all, options, &mut notes)?;
    let levels: Vec<At<'_>> =
        selected.iter().flat_map(|one| [one.at.clone(), one.item.clone()]).chain([document.clone()]).collect();
    servers::check_names(&levels, options)?;
    let mut schemes = security::Schemes::new(&document);
    let mut surface = Surface::default();
    let (mut tools, mut endpoints, mut egress) = (Vec::new(), Vec::new(), BTreeSet::new());
    for operation in &selected {
        notes.operation = Some(operation.title());
        let levels = [operation.at.clone(), operation.item.clone(), document.clone()];
        let base = servers::base(&levels, &operation.title(), options, &mut notes)?;
        match tool::make(operation, &files, &base, &mut schemes, old, options, &mut notes) {
            Ok(tool) => {
                surface.add(&tool, selected.len())?;
                tools.push(tool);
                egress.insert(base.host.clone());
                let (method, path) = (operation.method.clone(), operation.path.to_owned());
                endpoints.push(Endpoint { tool: operation.tool.clone(), method, path, base_url: base.url });
            }
            Err(refusal) => notes.refused(&refusal.place, refusal.text),
        }
    }
    notes.operation = None;
    if tools.is_empty() {
        let reasons = notes.finish().refused().take(5).map(Entry::to_string).collect();
        return Err(OpenApiError::NoTools { reasons });
    }
    // A credential of an operation that was refused afterwards is not needed.
    let used: BTreeSet<&str> = tools.iter().flat_map(markers).collect();
    let marker = |binding: &SecretBinding| format!("{{{{secret:{}}}}}", binding.name);
    let wanted = |binding: &SecretBinding| used.iter().any(|value| value.contains(&marker(binding)));
    let secrets = schemes.bindings.iter().filter(|binding| wanted(binding) && egress.contains(&binding.host));
    let server = json!({ "name": info.name, "title": info.title, "version": info.version, "instructions": info.description, "tools": tools });
    Ok(Converted {
        tools: tools.len(),
        endpoints,
        secrets: secrets.cloned().collect(),
        egress: egress.into_iter().collect(),
        report: notes.finish(),
        module: module::source(&server),
        name: info.name,
        title: info.title,
        version: info.version,
        description: info.description,
    })
}

/// Whether it is a specification of 3.0, in which schemas are not yet JSON Schema.
fn version(document: &At<'_>, root: &str, notes: &mut Notes) -> Result<bool, OpenApiError> {
    let no = |message: String| Err(OpenApiError::NoSpecification { file: quote(root), message });
    if document.get("swagger").is_some() {
        return no("it is of Swagger 2.0; convert it to OpenAPI 3 first".to_owned());
    }
    let version = match document.get("openapi").map(|version| version.value) {
        Some(Value::String(version)) => version.clone(),
        // `openapi: 3.0` without quotes.
        Some(Value::Number(version)) => version.to_string(),
        _ => return no("it has no `openapi: 3.…` at its top".to_owned()),
    };
    if !document.get("paths").is_some_and(|paths| paths.value.is_object()) {
        return no("it has no `paths`".to_owned());
    }
    let known = ["openapi", "info", "servers", "paths", "components", "security", "tags", "jsonSchemaDialect", "$self"];
    document.only(&known, notes);
    let place = document.place.below("openapi");
    match version.split('.').collect::<Vec<_>>()[..] {
        ["3", "0", ..] => Ok(true),
        ["3", "1", ..] => Ok(false),
        ["3", ..] => {
            notes.changed(&place, format!("OpenAPI {} is read like 3.1", quote(&version)));
            Ok(false)
        }
        _ => no(format!("its version is {}, and 3.0 and 3.1 are read", quote(&version))),
    }
}

struct Info {
    name: String,
    title: String,
    version: String,
    description: String,
}

fn info(document: &At<'_>, notes: &mut Notes) -> Info {
    let info = document.get("info");
    if let Some(info) = &info {
        info.only(&["title", "version", "description", "summary"], notes);
    }
    for tag in document.get("tags").iter().flat_map(At::items) {
        tag.only(&["name"], notes);
    }
    let mut text = |key: &str, most: usize| match info.as_ref().and_then(|info| info.get(key)) {
        Some(at) => {
            let whole = at.value.as_str().map_or_else(|| at.value.to_string(), str::to_owned);
            let (text, shortened) = cut(&whole, most);
            if shortened {
                notes.changed(&at.place, format!("cut at {most} characters"));
            }
            text
        }
        None => String::new(),
    };
    let (title, version) = (text("title", 200), text("version", 100));
    let (summary, description) = (text("summary", 1_000), text("description", MOST_DESCRIPTION));
    let description = if description.is_empty() { summary } else { description };
    Info { name: text::server_name(&title), title, version, description }
}

/// What clients are shown of the tools so far.
#[derive(Default)]
struct Surface {
    bytes: usize,
    sizes: Vec<(usize, String)>,
}

impl Surface {
    /// Ends at the first tool that is too much, so that nothing large is made in vain.
    fn add(&mut self, tool: &Value, selected: usize) -> Result<(), OpenApiError> {
        let shown = ["name", "title", "description", "input", "output", "annotations"];
        // The keys are a little longer than here.
        let size = shown.iter().map(|key| tool[key].to_string().len() + 20).sum();
        self.bytes += size;
        self.sizes.push((size, tool["name"].as_str().unwrap_or_default().to_owned()));
        if self.bytes <= MOST_SURFACE {
            return Ok(());
        }
        self.sizes.sort_by(|a, b| b.cmp(a));
        let largest = self.sizes.iter().take(5).map(|(size, name)| format!("{} ({size})", quote(name))).collect();
        Err(OpenApiError::TooLarge { tools: self.sizes.len(), selected, most: MOST_SURFACE, largest })
    }
}

/// The values with which a tool's credentials are marked.
fn markers(tool: &Value) -> impl Iterator<Item = &str> {
    let credentials = tool["request"]["credentials"].as_array().into_iter().flatten();
    credentials.filter_map(|credential| credential["value"].as_str())
}

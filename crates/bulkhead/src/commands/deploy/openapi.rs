//! An OpenAPI specification instead of code: each operation is a tool.

use super::Deploy;
use super::package::Package;
use crate::client::ClientError;
use crate::commands::talk;
use crate::source::{Source, read_at_most};
use ::openapi::{Converted, Options, Place, SecretBinding, convert};
use bundle::Endpoint;
use egress::{BareStar, Rule};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files beside the specification that it may refer to.
const MOST_FILES: usize = 500;
const MOST_KB: u64 = 4 << 10;

/// Flags of an OpenAPI specification.
#[derive(clap::Args)]
#[command(next_help_heading = "OpenAPI")]
#[group(skip)]
pub struct Args {
    /// Where the API is, instead of what the specification says
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Only these operations: `operationId` or `METHOD /path`, with `*` and `?`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Not these operations; may be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Only operations with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// A value for a variable of the server's URL; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    variable: Vec<(String, String)>,
    /// Promise nothing about results: for specifications that their own API does not keep to
    #[arg(long)]
    no_output_schemas: bool,
}

pub fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Args {
    pub fn any(&self) -> bool {
        let lists = [&self.include, &self.exclude, &self.tag];
        self.base_url.is_some()
            || self.no_output_schemas
            || !self.variable.is_empty()
            || lists.iter().any(|list| !list.is_empty())
    }
}

pub fn is_specification(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)) && !path.is_dir()
}

pub fn package(flags: &Deploy) -> Result<Package, ClientError> {
    let (files, root) = beside(&flags.path)?;
    let Args { base_url, include, exclude, tag, variable, no_output_schemas } = &flags.openapi;
    let options = Options {
        base_url: base_url.clone(),
        include: include.clone(),
        exclude: exclude.clone(),
        tags: tag.clone(),
        server_variables: variable.iter().cloned().collect(),
        output_schemas: !no_output_schemas,
        schema_check: Some(gateway::check_schema),
        ..Options::default()
    };
    let refused = |message: String| ClientError::refused("build_failed", message, None);
    let made = convert(&files, &root, &options).map_err(|error| refused(error.to_string()))?;
    // Nothing is left out without a line that says so.
    for entry in &made.report.entries {
        talk(&entry.to_string());
    }
    let Converted { name, endpoints, secrets, module, description, tools, .. } = made;
    talk(&format!("{tools} operations become tools"));
    let mut manifest = toml::Table::new();
    manifest.insert("name".to_owned(), name.into());
    let hosts: Result<BTreeSet<String>, _> = endpoints.iter().map(|endpoint| rule(&endpoint.base_url)).collect();
    let list = |words: BTreeSet<String>| toml::Value::Array(words.into_iter().map(toml::Value::from).collect());
    manifest.insert("egress".to_owned(), list(hosts.map_err(refused)?));
    let bindings = secrets.iter().map(|secret| binding(secret, &endpoints)).collect::<Result<Vec<_>, _>>();
    let bindings = bindings.map_err(refused)?;
    if !bindings.is_empty() {
        manifest.insert("secrets".to_owned(), toml::Value::Array(bindings));
    }
    manifest.insert("description".to_owned(), description.chars().take(200).collect::<String>().into());
    let mut package = Package::without_manifest(flags, Source::made(module, "server.js"), manifest)?;
    let locked = |endpoint: ::openapi::Endpoint| {
        let url = format!("{}{}", endpoint.base_url.trim_end_matches('/'), endpoint.path);
        Endpoint { tool: endpoint.tool, method: endpoint.method, url }
    };
    package.endpoints = endpoints.into_iter().map(locked).collect();
    Ok(package)
}

/// Where a credential of the specification goes. The module writes its placeholder into the requests that need it.
fn binding(secret: &SecretBinding, endpoints: &[::openapi::Endpoint]) -> Result<toml::Value, String> {
    let mut hosts = BTreeSet::new();
    for endpoint in endpoints {
        let (scheme, rest) = endpoint.base_url.split_once("://").unwrap_or_default();
        let origin = rule(&format!("{scheme}://{}", rest.split('/').next().unwrap_or_default()))?;
        if origin.split_once("://").map_or(origin.as_str(), |(_, host)| host) == secret.host {
            hosts.insert(origin);
        }
    }
    let mut table = toml::Table::new();
    table.insert("name".to_owned(), secret.name.as_str().into());
    table.insert("hosts".to_owned(), hosts.into_iter().map(toml::Value::from).collect::<Vec<_>>().into());
    let (place, name) = match &secret.place {
        // The module writes `Bearer` itself.
        Place::Bearer => ("header", "authorization"),
        Place::Basic => ("basic", ""),
        Place::Header(name) => ("header", name.as_str()),
        Place::Query(name) => ("query", name.as_str()),
        Place::Cookie(name) => ("cookie", name.as_str()),
    };
    table.insert(place.to_owned(), if place == "basic" { true.into() } else { name.into() });
    table.insert("asked".to_owned(), true.into());
    Ok(toml::Value::Table(table))
}

/// Everything below a base URL, in the one way to write that.
fn rule(base_url: &str) -> Result<String, String> {
    let base = base_url.trim_end_matches('/');
    let below = format!("{base}/");
    let host_alone = base.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    let text = if host_alone { base } else { &below };
    Rule::parse(text, BareStar::Refused).map(|rule| rule.to_string()).map_err(|bad| format!("`{text}` {bad}"))
}

/// The specification, and the files of its folder that it may refer to.
fn beside(path: &Path) -> Result<(BTreeMap<String, Vec<u8>>, String), ClientError> {
    let unreadable = |path: &Path, source| ClientError::Usage {
        code: "bad_file",
        message: format!("`{}` cannot be read", path.display()),
        hint: None,
        source: Some(source),
    };
    let read = |path: &Path| -> Result<Vec<u8>, ClientError> {
        let read = std::fs::File::open(path).and_then(|file| read_at_most(file, MOST_KB));
        let too_large = || ClientError::usage("bad_file", format!("`{}` is larger than {MOST_KB} KiB", path.display()));
        read.map_err(|source| unreadable(path, source))?.ok_or_else(too_large)
    };
    let root = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut files = BTreeMap::from([(root.clone(), read(path)?)]);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut left = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = left.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|source| unreadable(&folder, source))?.flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let kind = entry.file_type().map_err(|source| unreadable(&path, source))?;
            if files.len() >= MOST_FILES || name.starts_with('.') || name == "node_modules" {
                continue;
            }
            // Links are not followed: they may lead out of the folder.
            if kind.is_dir() && prefix.matches('/').count() < 8 {
                left.push((path, format!("{prefix}{name}/")));
            } else if kind.is_file() && is_specification(&path) {
                // One that it refers to is missed by name, the others are nobody's business.
                if let Ok(bytes) = read(&path) {
                    files.entry(format!("{prefix}{name}")).or_insert(bytes);
                }
            }
        }
    }
    if files.len() >= MOST_FILES {
        talk(&format!("of the files beside it, {MOST_FILES} were looked at and no more"));
    }
    Ok((files, root))
}

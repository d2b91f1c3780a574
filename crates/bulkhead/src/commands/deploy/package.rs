//! What is deployed: the manifest, and the code that is made of the project.

use super::program::Files;
use super::{Deploy, openapi, program};
use crate::client::ClientError;
use crate::commands::project::Project;
use crate::report::chain;
use crate::source::{Source, SourceError};
use bundle::{BulkheadLock, Endpoint, FilePath, Lock, MANIFEST, Manifest, Program, Seal};
use policy::Limits;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const LOCK: &str = "bulkhead.lock";

pub struct Package {
    pub manifest: Manifest,
    /// What is run; a module as it is called once it is built.
    pub program: Program,
    pub files: BTreeMap<String, String>,
    pub code: Code,
    pub endpoints: BTreeSet<Endpoint>,
    /// Where the signed lock goes; nowhere for a single file.
    pub lock: Option<PathBuf>,
}

pub enum Code {
    Module(Source),
    Program(Files),
}

impl Code {
    pub fn warnings(&self) -> &[String] {
        match self {
            Code::Module(source) => &source.warnings,
            Code::Program(_) => &[],
        }
    }
}

impl Package {
    pub async fn read(flags: &Deploy) -> Result<Package, ClientError> {
        let specification = openapi::is_specification(&flags.path);
        if !specification && flags.openapi.any() {
            let message = "--base-url, --include, --exclude, --tag and --variable are for OpenAPI specifications";
            return Err(ClientError::usage("bad_flags", message));
        }
        if let Some(name) = program::package_name(&flags.path) {
            return program::package(flags, name).await;
        }
        if flags.program.any() {
            let message = "--env, --manifest, --program, --with, --scripts and arguments are for packages; a project has its `bulkhead.toml`";
            return Err(ClientError::usage("bad_flags", message));
        }
        match flags.path.is_dir() {
            true => Package::project(flags),
            false if specification => openapi::package(flags),
            false => Package::file(flags),
        }
    }

    fn project(flags: &Deploy) -> Result<Package, ClientError> {
        let said = flags.boundary.is_some() || flags.wall.is_some() || flags.jit || !flags.limits.is_empty();
        if said || !flags.egress.is_empty() {
            let message = "a project's `bulkhead.toml` says boundary, wall, jit, egress and limits; change it there";
            return Err(ClientError::usage("bad_flags", message));
        }
        let dir = &flags.path;
        let project = Project::read(dir)?;
        let lock = dir.join(LOCK);
        check_lock(&lock)?;
        let Program::Module { entry } = &project.manifest.program else {
            return program::project(dir, project, lock);
        };
        let source = Source::of_project(dir, entry.as_str(), Limits::MOST.source_kb).map_err(unusable)?;
        Package::of_module(project.manifest, project.text, source, Some(lock))
    }

    /// A single file has the manifest that its flags say.
    fn file(flags: &Deploy) -> Result<Package, ClientError> {
        let source = Source::of_file(&flags.path, Limits::MOST.source_kb).map_err(unusable)?;
        Package::without_manifest(flags, source, toml::Table::new())
    }

    pub fn without_manifest(flags: &Deploy, source: Source, mut text: toml::Table) -> Result<Package, ClientError> {
        let own = text.get("name").and_then(toml::Value::as_str).map(str::to_owned);
        let Some(name) = flags.named().or(own) else {
            let message = "a single file has no name; write `--server TENANT/NAME`";
            return Err(ClientError::usage("bad_name", message));
        };
        text.insert("name".to_owned(), name.into());
        text.insert("entry".to_owned(), source.name.as_str().into());
        let (manifest, text) = flags.manifest(text)?;
        Package::of_module(manifest, text, source, None)
    }

    fn of_module(
        manifest: Manifest,
        text: String,
        source: Source,
        lock: Option<PathBuf>,
    ) -> Result<Package, ClientError> {
        let entry: FilePath =
            source.name.parse().map_err(|error| ClientError::usage("bad_file", format!("{error}")))?;
        let files = [(MANIFEST.to_owned(), text), (source.name.clone(), source.code.clone())].into();
        let program = Program::Module { entry };
        Ok(Package { manifest, program, files, code: Code::Module(source), endpoints: BTreeSet::new(), lock })
    }

    /// Keeps the signed lock of a project beside its manifest.
    pub fn keep(&self, lock: Lock, seal: Seal) -> Result<(), ClientError> {
        self.lock.as_ref().map_or(Ok(()), |file| super::keep(file, lock, seal))
    }
}

impl Deploy {
    /// The server's name, where a flag says it.
    pub fn named(&self) -> Option<String> {
        self.server.as_ref().and_then(|target| target.server.clone())
    }

    /// The manifest of what has none: what is known of it, and what the flags say.
    pub fn manifest(&self, mut text: toml::Table) -> Result<(Manifest, String), ClientError> {
        text.extend(self.wall.iter().map(|wall| ("wall".to_owned(), wall.as_str().into())));
        text.extend(self.boundary.iter().map(|boundary| ("boundary".to_owned(), boundary.as_str().into())));
        text.extend(self.jit.then(|| ("jit".to_owned(), true.into())));
        if !self.egress.is_empty() {
            let hosts = self.egress.iter().map(|host| toml::Value::from(host.as_str()));
            text.insert("egress".to_owned(), hosts.collect::<Vec<_>>().into());
        }
        if !self.limits.is_empty() {
            let limit =
                |(name, value): &(_, u64)| (format!("{name}"), toml::Value::Integer((*value).min(1 << 62) as i64));
            text.insert("limits".to_owned(), self.limits.iter().map(limit).collect::<toml::Table>().into());
        }
        let text = text.to_string();
        let manifest = Manifest::parse(text.as_bytes()).map_err(|error| {
            let problems = error.problems.iter().map(|p| format!("{}: {}", p.key, p.message));
            ClientError::usage("bad_manifest", problems.collect::<Vec<_>>().join("\n"))
        })?;
        Ok((manifest, text))
    }
}

/// Whatever lies there as the lock of the last deploy must be one: nobody edits it by hand.
fn check_lock(file: &Path) -> Result<(), ClientError> {
    let bytes = match std::fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|source| ClientError::Usage {
            code: "bad_file",
            message: format!("`{}` cannot be read", file.display()),
            hint: None,
            source: Some(source),
        })?,
    };
    let checked = BulkheadLock::parse(&bytes).map_err(bundle::Refused::from);
    let checked = checked.and_then(|file| Ok(file.seal().verify_publishers(file.lock())?));
    checked.map(|_| ()).map_err(|error| {
        let hint = "it is written by `bulkhead deploy`; restore it, or remove it".to_owned();
        ClientError::refused(error.code(), format!("{}: {error}", file.display()), Some(hint))
    })
}

fn unusable(error: SourceError) -> ClientError {
    let message = error.to_string();
    match error {
        SourceError::TooLarge { .. } => ClientError::refused("init_failed", message, None),
        SourceError::Build(error) => ClientError::refused(error.code(), chain(&error), None),
        SourceError::File(_, source) => {
            ClientError::Usage { code: "bad_file", message, hint: None, source: Some(source) }
        }
    }
}

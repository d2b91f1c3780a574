//! Programs instead of modules: a folder with a command, or a package of a registry.

use super::Deploy;
use super::package::{Code, Package};
use crate::client::{Client, ClientError};
use crate::commands::names::Place;
use crate::commands::project::Project;
use crate::commands::talk;
use crate::report::chain;
use crate::source::read_at_most;
use bundle::{LAYER, Layer, LayerEntry, MANIFEST, Manifest};
use bytes::Bytes;
use install::{Installed, Order, Surroundings};
use reqwest::{Body, Method};
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// As long as a large layer may take on a slow network.
const PATIENCE: Duration = Duration::from_secs(900);
const PIECE: usize = 64 << 10;
/// Pieces between the disk and the network.
const PIECES: usize = 16;

/// Flags of a package.
#[derive(clap::Args)]
#[command(next_help_heading = "Packages")]
#[group(skip)]
pub struct Args {
    /// A variable of the program's; may be repeated. Not for secrets: they would be in its reach
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::openapi::variable)]
    env: Vec<(String, String)>,
    /// A file as `bulkhead.toml`, for what there is more to say: secrets, limits. What it does not say is as it is without
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Which of the package's programs [default: the one with its name, or the only one]; `python3` for one with modules alone
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// A package beside it, or a bound on what it needs: `mcp<2`; may be repeated
    #[arg(long, value_name = "PACKAGE")]
    with: Vec<String>,
    /// Run the scripts that packages have for their installation, in the jail
    #[arg(long)]
    scripts: bool,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl Args {
    pub fn any(&self) -> bool {
        let named = self.manifest.is_some() || self.program.is_some() || !self.with.is_empty();
        self.scripts || named || !self.env.is_empty() || !self.arguments.is_empty()
    }
}

/// The files of a program, where they lie on this machine.
pub struct Files {
    pub folder: PathBuf,
    pub layer: Layer,
}

/// The files of a layer and nothing else, readable for whoever is in a jail, for as long as this lives.
pub struct Laid(tempfile::TempDir);

impl Laid {
    pub fn out(files: &Files) -> Result<Laid, ClientError> {
        let made = tempfile::Builder::new().prefix("bulkhead-").tempdir();
        let laid = Laid(made.map_err(|source| unwritable(&std::env::temp_dir(), source))?);
        let mut folders = BTreeSet::from([laid.0.path().to_owned()]);
        for (path, entry) in files.layer.entries() {
            let (from, to) = (files.folder.join(path.as_str()), laid.0.path().join(path.as_str()));
            lay(entry, &from, &to).map_err(|source| unwritable(&from, source))?;
            folders.extend(to.ancestors().skip(1).take_while(|above| *above != laid.0.path()).map(Path::to_owned));
        }
        // Whatever mask the person has: whoever root is inside has to read it.
        folders.iter().try_for_each(|folder| allow(folder, 0o755).map_err(|source| unwritable(folder, source)))?;
        Ok(laid)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }
}

fn lay(entry: &LayerEntry, from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to.parent().unwrap_or(to))?;
    match entry {
        LayerEntry::Link(target) => std::os::unix::fs::symlink(target.as_str(), to),
        LayerEntry::File { executable, .. } => {
            std::fs::copy(from, to)?;
            allow(to, if *executable { 0o755 } else { 0o644 })
        }
    }
}

fn allow(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

fn unwritable(path: &Path, source: io::Error) -> ClientError {
    let message = format!("`{}` cannot be copied for a trial", path.display());
    ClientError::Usage { code: "bad_file", message, hint: None, source: Some(source) }
}

/// What is named as `npm:…` or `pypi:…`.
pub fn package_name(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.starts_with("npm:") || text.starts_with("pypi:"))
}

/// Installs a package in a jail. Its manifest is made of flags.
pub async fn package(flags: &Deploy, name: &str) -> Result<Package, ClientError> {
    let mut package = install::Package::parse(name).map_err(unusable)?;
    package.program = flags.program.program.clone();
    for text in &flags.program.with {
        package = package.with(text).map_err(unusable)?;
    }
    let around = Surroundings::here().map_err(unusable)?;
    let order = Order { scripts: flags.program.scripts, ..Order::new(&package, &around, &talk).map_err(failed)? };
    let Installed { folder, command, environment } = install::install(&order).await.map_err(failed)?;
    let files = Files { layer: install::pack(&folder).map_err(failed)?, folder };
    let mut text = flags.program.manifest.as_deref().map_or_else(|| Ok(toml::Table::new()), read)?;
    let words = command.into_iter().chain(flags.program.arguments.iter().cloned());
    let own = [
        ("name", server_name(&package.name).into()),
        ("description", format!("{name}, as it is published").into()),
        ("wall", "process".into()),
        ("command", words.map(toml::Value::from).collect::<Vec<_>>().into()),
        ("environment", toml::Table::new().into()),
    ];
    for (key, value) in own {
        text.entry(key).or_insert(value);
    }
    text.extend(flags.named().map(|name| ("name".to_owned(), name.into())));
    if let Some(toml::Value::Table(variables)) = text.get_mut("environment") {
        for (name, value) in environment {
            variables.entry(name).or_insert(value.into());
        }
        variables.extend(flags.program.env.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
    }
    let (manifest, text) = flags.manifest(text)?;
    Ok(Package::of_program(manifest, text, files, None))
}

/// The keys of a file; what they mean is looked at when all are there.
fn read(file: &Path) -> Result<toml::Table, ClientError> {
    let unusable = |what: &dyn std::fmt::Display| {
        ClientError::usage("bad_manifest", format!("`{}` cannot be used: {what}", file.display()))
    };
    let most_kb = Manifest::LARGEST as u64 / 1024;
    let bytes = std::fs::File::open(file).and_then(|file| read_at_most(file, most_kb));
    let bytes = bytes.map_err(|error| unusable(&error))?;
    let bytes = bytes.ok_or_else(|| unusable(&format!("it is larger than {most_kb} KiB")))?;
    let text = String::from_utf8(bytes).map_err(|error| unusable(&error))?;
    text.parse().map_err(|error: toml::de::Error| unusable(&error.message()))
}

/// The last part of a package's name, as far as it may name a server.
fn server_name(package: &str) -> String {
    let last = package.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let plain = last.replace(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit(), "-");
    plain.trim_matches('-').chars().take(63).collect::<String>().trim_end_matches('-').to_owned()
}

/// A folder with a `bulkhead.toml` that names a command.
pub fn project(folder: &Path, project: Project, lock: PathBuf) -> Result<Package, ClientError> {
    let Project { manifest, text } = project;
    let files = Files { layer: install::pack(folder).map_err(failed)?, folder: folder.to_owned() };
    Ok(Package::of_program(manifest, text, files, Some(lock)))
}

impl Package {
    fn of_program(manifest: Manifest, text: String, files: Files, lock: Option<PathBuf>) -> Package {
        // It is canonical JSON, which is text.
        let index = String::from_utf8_lossy(files.layer.bytes()).into_owned();
        let program = manifest.program.clone();
        let sent = [(MANIFEST.to_owned(), text), (LAYER.to_owned(), index)].into();
        Package { manifest, program, files: sent, code: Code::Program(files), endpoints: Default::default(), lock }
    }
}

/// Brings the files to the host, unless it has them.
pub async fn upload(client: &Client, place: &Place, files: &Files) -> Result<(), ClientError> {
    let digest = files.layer.digest().to_string();
    let path = ["tenants", &place.tenant, "layers", &digest];
    match client.get(&path).await {
        Ok(_) => return Ok(()),
        Err(ClientError::Refused { code, .. }) if code == "not_found" => {}
        Err(error) => return Err(error),
    }
    let (pieces, sent) = mpsc::channel(PIECES);
    let (folder, layer) = (files.folder.clone(), files.layer.clone());
    let writing = tokio::task::spawn_blocking(move || {
        let mut pieces = BufWriter::with_capacity(PIECE, Pieces(pieces));
        let written = install::write_layer(&folder, &layer, &mut pieces);
        match written {
            Ok(()) => drop(pieces.flush()),
            // A body that ends with an error is taken for no body.
            Err(_) => drop(pieces.get_ref().0.blocking_send(Err(io::ErrorKind::InvalidData.into()))),
        }
        written
    });
    let request = client.admin(Method::PUT, &path, &[]).header("content-type", "application/octet-stream");
    let request = request.body(Body::wrap_stream(ReceiverStream::new(sent)));
    let answer = client.answer_within(PATIENCE, request).await;
    match (writing.await, answer) {
        // A host that has heard enough breaks off, and then its answer says why.
        (Ok(Err(error)), Err(ClientError::Broken { .. })) => Err(failed(error)),
        (_, answer) => answer.map(drop),
    }
}

/// Takes what is written on its way to the host.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unusable(error: install::Error) -> ClientError {
    ClientError::usage("bad_package", error.to_string())
}

fn failed(error: install::Error) -> ClientError {
    ClientError::refused("install_failed", chain(&error), None)
}

//! Packages are installed once, and used from there.

use crate::around::Surroundings;
use crate::error::Error;
use crate::ground::{PACKAGE, groups};
use crate::job::Job;
use crate::package::{Package, Source};
use crate::program;
use crate::registry::Registry;
use crate::stage::{Stage, clear, forget, settle};
use crate::toolchain::{self, Found};
use egress::Target;
use jail::cgroup::Manager;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often somebody looks whether it is their turn.
const LOOK: Duration = Duration::from_millis(100);
/// Other hosts than the index that may have files of a package, at most.
const MOST_HOSTS: usize = 8;

const HOSTS: &str = include_str!("../python/hosts.py");
const FINISH: &str = include_str!("../python/finish.py");

/// What is to be installed, and with what.
pub struct Order<'a> {
    pub package: &'a Package,
    /// What runs it on this machine.
    pub interpreter: PathBuf,
    /// Let packages run code while they are installed: install scripts of npm, builds from source for Python. It runs in the
    /// same jail, without passwords for the registry.
    pub scripts: bool,
    pub around: &'a Surroundings,
    pub groups: Option<Arc<Manager>>,
    /// Do not ask the network.
    pub offline: bool,
    /// Install anew, though it is there.
    pub refresh: bool,
    /// Lines for the person.
    pub say: &'a (dyn Fn(&str) + Send + Sync),
}

/// A package in a folder, and how it is run there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// What becomes `/app`.
    pub folder: PathBuf,
    /// The program as it is seen from there, after the name of its interpreter if it needs one.
    pub command: Vec<String>,
    /// Variables that it needs, for that place.
    pub environment: BTreeMap<String, String>,
}

impl<'a> Order<'a> {
    /// An order for this machine's own interpreter, without scripts.
    pub fn new(
        package: &'a Package,
        around: &'a Surroundings,
        say: &'a (dyn Fn(&str) + Send + Sync),
    ) -> Result<Order<'a>, Error> {
        let interpreter = toolchain::find(package.source.interpreter(), around)?.program;
        let groups = groups().map(Arc::new);
        Ok(Order { package, interpreter, scripts: false, around, groups, offline: false, refresh: false, say })
    }
}

/// Gives the package as it is installed. Asks the network only when it is not there, or is to be made anew.
pub async fn install(order: &Order<'_>) -> Result<Installed, Error> {
    let folder = order.ensure().await?;
    let command = program::command(order.package, &folder)?;
    let environment = match order.package.source {
        Source::Npm => BTreeMap::new(),
        Source::PyPi => BTreeMap::from([("PYTHONPATH".to_owned(), PACKAGE.to_owned())]),
    };
    Ok(Installed { folder, command, environment })
}

/// What was built for one interpreter is not for another one.
fn digest(package: &Package, interpreter: &Path, scripts: bool) -> String {
    let real = fs::canonicalize(interpreter).unwrap_or_else(|_| interpreter.to_owned());
    let scripts = if scripts { "with scripts" } else { "without scripts" };
    let with: String = package.with.iter().map(|text| format!("\0{text}")).collect();
    let text = format!("{}\0{}\0{}\0{scripts}{with}", package.identity(), package.spec(), real.display());
    Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What runs a package when nobody says: the usual interpreter, unless it was installed for another one, because it is not
/// for that.
pub fn interpreter_of(package: &Package, scripts: bool, around: &Surroundings) -> Result<Found, Error> {
    let usual = toolchain::find(package.source.interpreter(), around)?;
    let installed = |found: &Found| around.cache.join(digest(package, &found.program, scripts)).is_dir();
    if package.source == Source::Npm || installed(&usual) {
        return Ok(usual);
    }
    let other = toolchain::pythons(&usual, around).into_iter().find(installed);
    Ok(other.unwrap_or(usual))
}

impl Order<'_> {
    async fn ensure(&self) -> Result<PathBuf, Error> {
        let base = &self.around.cache;
        let name = digest(self.package, &self.interpreter, self.scripts);
        let folder = base.join(&name);
        if folder.is_dir() && !self.refresh {
            return Ok(folder);
        }
        if self.offline {
            return Err(Error::NotInstalled(self.package.spec()));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(base).map_err(Error::path(base))?;
        // One of several who start at once installs; the others wait for it.
        let lock = base.join(format!("{name}.lock"));
        let lock = OpenOptions::new().append(true).create(true).mode(0o600).open(&lock).map_err(Error::path(lock))?;
        while let Err(error) = lock.try_lock() {
            match error {
                TryLockError::WouldBlock => tokio::time::sleep(LOOK).await,
                TryLockError::Error(error) => return Err(Error::path(base)(error)),
            }
        }
        if folder.is_dir() && !self.refresh {
            return Ok(folder);
        }
        (self.say)(&format!("installing `{}`; later starts use what is installed", self.package.spec()));
        let stage = Stage::new(base.join(format!("{name}.new")))?;
        match self.package.source {
            Source::Npm => self.npm(&stage.0).await?,
            Source::PyPi => self.pip(&stage.0).await?,
        }
        settle(&stage.0)?;
        clear(&folder)?;
        fs::rename(&stage.0, &folder).map_err(Error::path(&folder))?;
        Ok(folder)
    }

    fn job<'b>(&self, found: &'b Found, registry: &'b Registry) -> Job<'b> {
        Job::new(self.package.spec(), found, registry, vec![registry.origin.clone()])
    }

    async fn npm(&self, stage: &Path) -> Result<(), Error> {
        let found = toolchain::find("npm", self.around)?;
        let registry = Registry::of_npm(&found, self.package, self.around)?;
        let spec = self.package.spec();
        let arguments = [
            "install",
            "--prefix",
            PACKAGE,
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--omit=dev",
            "--loglevel=error",
            &spec,
        ];
        let arguments: Vec<&str> = arguments.into_iter().chain(self.package.with.iter().map(String::as_str)).collect();
        self.job(&found, &registry).run(stage, self.groups.clone(), &arguments).await?;
        if self.scripts {
            // Only now, and by themselves: who fetches has the registry's password.
            let registry = registry.without_passwords();
            forget(stage)?;
            let arguments = ["rebuild", "--prefix", PACKAGE, "--ignore-scripts=false", "--loglevel=error"];
            let job = Job { runs_code: true, ..self.job(&found, &registry) };
            job.run(stage, self.groups.clone(), &arguments).await?;
        }
        Ok(())
    }

    /// What pip says, with what can be done about it.
    fn explained(&self, error: Error) -> Error {
        let Error::Install { package, why } = error else { return error };
        let advice = if why.contains("Requires-Python") {
            let why = format!("another `python3` has to come first in PATH, or `uvx --python` to name it: {why}");
            return Error::Interpreter { package, interpreter: self.interpreter.clone(), why };
        } else if why.contains("yanked versions") {
            "those who made it have withdrawn its versions".to_owned()
        } else if why.contains("ResolutionImpossible") && !self.scripts {
            "what it needs does not fit, or is not built already, which takes `--scripts`".to_owned()
        } else if why.contains("from versions: none") && !self.scripts {
            "only what is built already is installed, without `--scripts`".to_owned()
        } else {
            return Error::Install { package, why };
        };
        Error::Install { package, why: format!("{advice}: {why}") }
    }

    async fn pip(&self, stage: &Path) -> Result<(), Error> {
        let name = self.interpreter.to_string_lossy().into_owned();
        let found = toolchain::find(&name, self.around)?;
        let registry = Registry::of_pip(&found, self.around)?;
        let spec = self.package.spec();
        if self.scripts && registry.has_password() {
            let why = "the index needs a password, and code that builds the package would see it".to_owned();
            return Err(Error::Install { package: spec, why });
        }
        // As every index has them.
        let normal = self.package.name.to_ascii_lowercase().replace(['_', '.'], "-");
        let page = format!("{}/{normal}/", registry.url.trim_end_matches('/'));
        let own = self.job(&found, &registry);
        let told = own.run(stage, self.groups.clone(), &["-c", HOSTS, &page]).await?;
        let files = told.lines().filter_map(|line| Target::parse(line).ok()).map(|target| target.origin);
        let mut origins = vec![registry.origin.clone()];
        origins.extend(files.take(MOST_HOSTS));
        let install =
            ["-m", "pip", "install", "--target", PACKAGE, "--no-compile", "--no-input", "--no-cache-dir", "--quiet"];
        let binaries: &[&str] = if self.scripts { &[] } else { &["--only-binary=:all:"] };
        let with: Vec<&str> = self.package.with.iter().map(String::as_str).collect();
        let arguments = [&install, binaries, &[&spec], with.as_slice()].concat();
        let job = Job { runs_code: self.scripts, ..Job::new(self.package.spec(), &found, &registry, origins) };
        job.run(stage, self.groups.clone(), &arguments).await.map_err(|error| self.explained(error))?;
        let finish = Job::new(self.package.spec(), &found, &registry, Vec::new());
        finish.run(stage, self.groups.clone(), &["-c", FINISH, PACKAGE]).await.map(drop)
    }
}

//! Packages are installed once, in a jail of their own, and used from there.

use crate::cell;
use crate::error::Error;
use crate::gate::Gate;
use crate::options::Surroundings;
use crate::package::{Package, Source};
use crate::plan::{HOME, PACKAGE, PROXY_PORT, TMP};
use crate::registry::Registry;
use crate::relay;
use crate::toolchain::{self, Found};
use crate::voice::Voice;
use egress::{Origin, Target};
use jail::cgroup::Manager;
use jail::namespaces::NOBODY;
use jail::program::{Bounds, Child, Content, End, Mount, Tree};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{PipeReader, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(600);
/// How often somebody looks.
const LOOK: Duration = Duration::from_millis(100);
const MEMORY: u64 = 2 << 30;
/// What an installer may write at most into one file.
const FILE_BYTES: u64 = 1 << 30;
/// The output of an installer that is kept.
const OUTPUT: u64 = 1 << 20;

/// Lines of it that are shown, from its beginning and from its end.
const SAID: usize = 5;

/// Prints where the files are that an index lists for a package: usually on another host.
const HOSTS_OF_FILES: &str = r#"
import base64, json, re, sys, urllib.parse, urllib.request
page = urllib.parse.urlsplit(sys.argv[1])
request = urllib.request.Request(page._replace(netloc=page.netloc.rpartition("@")[2]).geturl())
request.add_header("Accept", "application/vnd.pypi.simple.v1+json, text/html;q=0.5")
if page.username:
    words = urllib.parse.unquote(page.username) + ":" + urllib.parse.unquote(page.password or "")
    request.add_header("Authorization", "Basic " + base64.b64encode(words.encode()).decode())
with urllib.request.urlopen(request, timeout=60) as answer:
    url, text = answer.url, answer.read(1 << 26).decode()
    if "json" in answer.headers.get("Content-Type", ""):
        links = [file["url"] for file in json.loads(text)["files"]]
    else:
        links = re.findall(r'href="([^"]+)"', text)
links = (urllib.parse.urlsplit(urllib.parse.urljoin(url, link)) for link in links)
print("\n".join(sorted({f"{link.scheme}://{link.netloc}/" for link in links})))
"#;

/// Gives the folder of the installed package. Asks the network only when it is not there, or is to be made anew.
pub(crate) async fn ensure(wanted: Wanted<'_>) -> Result<PathBuf, Error> {
    let base = &wanted.around.cache;
    let name = wanted.digest();
    let folder = base.join(&name);
    if folder.is_dir() && !wanted.refresh {
        return Ok(folder);
    }
    if wanted.offline {
        return Err(Error::NotInstalled(wanted.package.spec()));
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
    if folder.is_dir() && !wanted.refresh {
        return Ok(folder);
    }
    wanted.voice.say(&format!("installing `{}`; later starts use what is installed", wanted.package.spec()));
    let stage = Stage::new(base.join(format!("{name}.new")))?;
    wanted.install(&stage.0).await?;
    settle(&stage.0)?;
    clear(&folder)?;
    fs::rename(&stage.0, &folder).map_err(Error::path(&folder))?;
    Ok(folder)
}

/// Where it is installed at first. What did not become whole is gone with it.
struct Stage(PathBuf);

impl Stage {
    fn new(path: PathBuf) -> Result<Stage, Error> {
        clear(&path)?;
        // Whatever mask the person has: whoever root is inside has to read it.
        let made = fs::create_dir(&path).and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
        made.map_err(Error::path(&path))?;
        Ok(Stage(path))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Whoever comes next tries again.
        let _ = clear(&self.0);
    }
}

fn clear(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::path(folder)(error)),
        _ => Ok(()),
    }
}

/// Leaves out what only installing needs, and takes the files back from the user that root has installed them as.
fn settle(stage: &Path) -> Result<(), Error> {
    clear(&stage.join(".cache"))?;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut folders = vec![stage.to_owned()];
    while let Some(folder) = folders.pop() {
        lchown(&folder, Some(0), Some(0)).map_err(Error::path(&folder))?;
        for entry in fs::read_dir(&folder).map_err(Error::path(&folder))? {
            let entry = entry.map_err(Error::path(&folder))?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => lchown(entry.path(), Some(0), Some(0)).map_err(Error::path(entry.path()))?,
            }
        }
    }
    Ok(())
}

/// What is to be installed, and with what.
pub(crate) struct Wanted<'a> {
    pub(crate) package: &'a Package,
    pub(crate) interpreter: &'a Path,
    pub(crate) around: &'a Surroundings,
    pub(crate) groups: Option<Arc<Manager>>,
    pub(crate) offline: bool,
    pub(crate) refresh: bool,
    pub(crate) voice: &'a Voice,
}

impl Wanted<'_> {
    /// What was built for one interpreter is not for another one.
    fn digest(&self) -> String {
        let real = fs::canonicalize(self.interpreter).unwrap_or_else(|_| self.interpreter.to_owned());
        let text = format!("{}\0{}\0{}", self.package.identity(), self.package.spec(), real.display());
        Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    async fn install(&self, stage: &Path) -> Result<(), Error> {
        match self.package.source {
            Source::Npm => self.npm(stage).await,
            Source::PyPi => self.pip(stage).await,
        }
    }

    async fn npm(&self, stage: &Path) -> Result<(), Error> {
        let found = toolchain::find("npm", self.around)?;
        let registry = Registry::of_npm(&found.program, self.package, self.around)?;
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
        let job = Job::new(self, &found, &registry, vec![registry.origin.clone()]);
        job.run(stage, &arguments).await.map(drop)
    }

    async fn pip(&self, stage: &Path) -> Result<(), Error> {
        let name = self.interpreter.to_string_lossy().into_owned();
        let found = toolchain::find(&name, self.around)?;
        let registry = Registry::of_pip(&found.program, self.around)?;
        let own = vec![registry.origin.clone()];
        // As every index has them.
        let normal = self.package.name.to_ascii_lowercase().replace(['_', '.'], "-");
        let page = format!("{}/{normal}/", registry.url.trim_end_matches('/'));
        let told = Job::new(self, &found, &registry, own.clone()).run(stage, &["-c", HOSTS_OF_FILES, &page]).await?;
        let files = told.lines().filter_map(|line| Target::parse(line).ok()).map(|target| target.origin);
        let mut origins = own;
        origins.extend(files.take(8));
        let spec = self.package.spec();
        let arguments = [
            "-m",
            "pip",
            "install",
            "--target",
            PACKAGE,
            "--only-binary=:all:",
            "--no-input",
            "--no-cache-dir",
            "--quiet",
            &spec,
        ];
        Job::new(self, &found, &registry, origins).run(stage, &arguments).await.map(drop)
    }
}

/// One run of an installer.
struct Job<'a> {
    wanted: &'a Wanted<'a>,
    found: &'a Found,
    registry: &'a Registry,
    gate: Arc<Gate>,
}

impl<'a> Job<'a> {
    fn new(wanted: &'a Wanted<'a>, found: &'a Found, registry: &'a Registry, origins: Vec<Origin>) -> Job<'a> {
        Job { wanted, found, registry, gate: Gate::new(origins) }
    }

    /// What it said, if it went well.
    async fn run(&self, stage: &Path, arguments: &[&str]) -> Result<String, Error> {
        if rustix::process::geteuid().is_root() {
            lchown(stage, Some(NOBODY), Some(NOBODY)).map_err(Error::path(stage))?;
        }
        let tree = self.tree(stage);
        let program = self.found.program.to_string_lossy().into_owned();
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let (variables, groups) = (self.variables(), self.wanted.groups.clone());
        let spawned = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let variables: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            tree.spawn(groups.as_deref(), &program, &arguments, &variables)
        });
        let failed = |why: String| Error::Install { package: self.wanted.package.spec(), why };
        let mut child = spawned.await.map_err(|error| failed(error.to_string()))??;
        let open = child.take_listener().map(|listener| self.gate.open(listener)).transpose().map_err(Error::Relay)?;
        let (end, output, errors) = attend(child).await?;
        drop(open);
        match end {
            End::Exited(exit) if exit.code == Some(0) => Ok(output),
            End::Exited(_) => Err(failed(self.why(&output, &errors))),
            End::TooLong => Err(failed(format!("it took longer than {} s", PATIENCE.as_secs()))),
            End::TooLarge => Err(failed(format!("the installer needs more than {} MB of memory", MEMORY >> 20))),
        }
    }

    fn why(&self, output: &str, errors: &str) -> String {
        let said = if errors.trim().is_empty() { output } else { errors };
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        // Some say why at first, some at last.
        let both = lines.len().saturating_sub(SAID).max(SAID.min(lines.len()));
        let said = [&lines[..SAID.min(lines.len())], &lines[both..]].concat().join(" / ");
        match self.gate.refused() {
            refused if refused.is_empty() => said,
            refused => {
                format!("{said} (it asked for {}, which is no part of the registry)", refused.join(", "))
            }
        }
    }

    fn tree(&self, stage: &Path) -> Tree {
        let mut mounts = cell::ground(64 << 20, 256 << 20);
        let settings = self.registry.settings.iter().map(|line| format!("{line}\n")).collect::<String>();
        let npmrc = Content::Text { bytes: settings.into_bytes() };
        mounts.push(Mount { target: format!("{HOME}/.npmrc").into(), content: npmrc });
        let shared = Content::Shared { source: stage.to_owned(), executable: false };
        mounts.push(Mount { target: PACKAGE.into(), content: shared });
        let certificates = self.registry.certificates.values().filter(|path| !path.starts_with("/etc/ssl"));
        let needs: BTreeSet<&PathBuf> = self.found.needs.iter().chain(certificates).collect();
        let mut needs: Vec<&PathBuf> = needs.into_iter().filter(|path| !toolchain::of_system(path)).collect();
        needs.sort_by_key(|path| path.components().count());
        mounts.extend(needs.into_iter().map(|path| cell::host(path, path)));
        Tree {
            mounts,
            bounds: Bounds {
                processes: 200,
                memory_bytes: MEMORY,
                cpu_percent: 400,
                cpu_seconds: PATIENCE.as_secs() * 4,
                data_bytes: MEMORY * 2,
                file_bytes: FILE_BYTES,
                open_files: 4096,
            },
            reads_as: None,
            folder: PACKAGE.into(),
            proxy: Some(PROXY_PORT),
        }
    }

    fn variables(&self) -> BTreeMap<String, String> {
        let folders = self.found.folders.iter().map(|folder| folder.to_string_lossy().into_owned());
        let path: Vec<String> = folders.chain(["/usr/local/bin", "/usr/bin", "/bin"].map(str::to_owned)).collect();
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let own = [
            ("PATH", path.join(":")),
            ("HOME", HOME.into()),
            ("LANG", "C.UTF-8".into()),
            ("TMPDIR", TMP.into()),
            ("npm_config_cache", format!("{PACKAGE}/.cache")),
            ("npm_config_update_notifier", "false".into()),
            ("PIP_CONFIG_FILE", "/dev/null".into()),
            ("PIP_INDEX_URL", self.registry.url.clone()),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1".into()),
        ];
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|name| (name, proxy.clone()));
        let own = own.into_iter().chain(proxies).map(|(name, value)| (name.to_owned(), value));
        let certificates = self.registry.certificates.iter();
        own.chain(certificates.map(|(name, path)| (name.clone(), path.to_string_lossy().into_owned()))).collect()
    }
}

/// Waits for the end, and keeps what was said. Who does not wait any longer ends it.
async fn attend(mut child: Child) -> Result<(End, String, String), Error> {
    drop(child.stdin.take());
    let (output, errors) = (listen(child.stdout.take()), listen(child.stderr.take()));
    let (sender, mut ended) = oneshot::channel();
    let tell = move || {
        // Nobody may be there any more.
        let _ = sender.send(());
    };
    relay::at_the_end(&child, tell).map_err(Error::Relay)?;
    let deadline = Instant::now() + PATIENCE;
    let mut look = tokio::time::interval(LOOK);
    let broken = loop {
        tokio::select! {
            _ = &mut ended => break None,
            () = tokio::time::sleep_until(deadline) => break Some(End::TooLong),
            _ = look.tick() => if child.memory() > MEMORY { break Some(End::TooLarge) },
        }
    };
    child.kill();
    let exit = child.wait()?;
    Ok((broken.unwrap_or(End::Exited(exit)), output.await.unwrap_or_default(), errors.await.unwrap_or_default()))
}

/// In a thread of its own, which ends with the program.
fn listen(from: Option<PipeReader>) -> oneshot::Receiver<String> {
    let (sender, receiver) = oneshot::channel();
    // Without a thread nothing is kept, and the program goes on without a reader.
    let _ = std::thread::Builder::new().spawn(move || sender.send(from.map(keep).unwrap_or_default()));
    receiver
}

fn keep(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    // The rest is read, too, so that nobody waits.
    let _ = from.by_ref().take(OUTPUT).read_to_end(&mut bytes);
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is started of an installed package: a program inside, and arguments before the person's own.
pub(crate) fn start(package: &Package, interpreter: &Path, folder: &Path) -> Result<(String, Vec<String>), Error> {
    let nothing = |why: &str| Error::NothingToRun { package: package.spec(), why: why.to_owned() };
    let file = match package.source {
        Source::Npm => {
            format!("node_modules/{}/{}", package.name, npm_program(package, folder).map_err(|why| nothing(&why))?)
        }
        Source::PyPi => format!("bin/{}", package.program.as_deref().unwrap_or(package.short_name())),
    };
    let real = fs::canonicalize(folder.join(&file)).map_err(|_| nothing(&format!("`{file}` is not in it")))?;
    let root = fs::canonicalize(folder).map_err(Error::path(folder))?;
    let inner = real.strip_prefix(root).map_err(|_| nothing("it leads out of the package"))?;
    let inside = Path::new(PACKAGE).join(inner).to_string_lossy().into_owned();
    let mut start = Vec::new();
    File::open(&real).and_then(|open| open.take(128).read_to_end(&mut start)).map_err(Error::path(&real))?;
    let script = start.starts_with(b"#!")
        || real.extension().is_some_and(|end| ["js", "cjs", "mjs"].iter().any(|js| end == *js));
    if script { Ok((interpreter.to_string_lossy().into_owned(), vec![inside])) } else { Ok((inside, Vec::new())) }
}

/// The file of the program that is meant, as the package's own list has it.
fn npm_program(package: &Package, folder: &Path) -> Result<String, String> {
    let text = fs::read_to_string(folder.join("node_modules").join(&package.name).join("package.json"));
    let text = text.map_err(|error| format!("its package.json cannot be read: {error}"))?;
    let described: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let programs: BTreeMap<&str, &str> = match &described["bin"] {
        serde_json::Value::String(file) => BTreeMap::from([(package.short_name(), file.as_str())]),
        serde_json::Value::Object(all) => {
            all.iter().filter_map(|(name, file)| Some((name.as_str(), file.as_str()?))).collect()
        }
        _ => return Err("it lists no programs".to_owned()),
    };
    let named = programs.get(package.program.as_deref().unwrap_or(package.short_name()));
    let only = programs.values().next().filter(|_| programs.len() == 1 && package.program.is_none());
    let names = || programs.keys().copied().collect::<Vec<_>>().join(", ");
    let file = named.or(only).ok_or_else(|| format!("it has {}; name one with `-p {}`", names(), package.spec()))?;
    Ok((*file).to_owned())
}

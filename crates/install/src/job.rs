//! One run of an installer, in a jail.

use crate::error::Error;
use crate::gate::Gate;
use crate::ground::{HOME, PACKAGE, PROXY_PORT, ground};
use crate::question;
use crate::registry::Registry;
use crate::stage;
use crate::toolchain::Found;
use egress::Origin;
use jail::cgroup::Manager;
use jail::program::{Bounds, Child, Content, Meter, Mount, Tree};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval};

const PATIENCE: Duration = Duration::from_secs(600);
/// How often somebody looks at its memory, and at the disk.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_AT_DISK: Duration = Duration::from_secs(2);
const MEMORY: u64 = 2 << 30;
/// Room in the home and in `/tmp`, in memory. What is large goes to the disk, below [`stage::CACHE`].
const SCRATCH_BYTES: u64 = 64 << 20;
/// What an installer may write at most into one file.
const FILE_BYTES: u64 = 1 << 30;
/// The output of an installer that is kept.
const OUTPUT: u64 = 1 << 20;
/// Lines of it that are shown, from its beginning and from its end.
const SAID: usize = 5;
/// Of a line, in characters: some list all versions there ever were.
const LINE: usize = 300;

/// A run of an installer.
pub(crate) struct Job<'a> {
    pub(crate) package: String,
    pub(crate) found: &'a Found,
    pub(crate) registry: &'a Registry,
    /// Whether code of packages runs in it.
    pub(crate) runs_code: bool,
    pub(crate) gate: Arc<Gate>,
}

/// How one ended.
enum End {
    Exited(Option<i32>),
    Killed(String),
}

impl<'a> Job<'a> {
    /// It reaches these `origins` and nothing else.
    pub(crate) fn new(package: String, found: &'a Found, registry: &'a Registry, origins: Vec<Origin>) -> Job<'a> {
        Job { package, found, registry, runs_code: false, gate: Gate::new(origins) }
    }

    /// What it said, if it went well.
    pub(crate) async fn run(
        &self,
        stage: &Path,
        groups: Option<Arc<Manager>>,
        arguments: &[&str],
    ) -> Result<String, Error> {
        // For root, whoever [`stage::Stage`] has given it to.
        let owner = fs::symlink_metadata(stage).map_err(Error::path(stage))?.uid();
        // Another job may have left it, or something else in its place, which is theirs already.
        let cache = stage.join(stage::CACHE);
        if fs::create_dir(&cache).is_ok() {
            let group = rustix::process::geteuid().is_root().then_some(owner);
            lchown(&cache, Some(owner), group).map_err(Error::path(&cache))?;
        }
        let tree = self.tree(stage, owner);
        let program = self.found.program.to_string_lossy().into_owned();
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let variables = self.variables();
        let spawned = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let variables: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            tree.spawn(groups.as_deref(), &program, &arguments, &variables)
        });
        let failed = |why: String| Error::Install { package: self.package.clone(), why };
        let mut child = spawned.await.map_err(|error| failed(error.to_string()))??;
        let open = child.take_listener().map(|listener| self.gate.open(listener)).transpose().map_err(Error::Attend)?;
        let (end, output, errors) = attend(child, stage).await?;
        drop(open);
        match end {
            End::Exited(Some(0)) => Ok(output),
            End::Exited(_) => Err(failed(self.why(&output, &errors))),
            End::Killed(why) => Err(failed(why)),
        }
    }

    fn why(&self, output: &str, errors: &str) -> String {
        let said = if errors.trim().is_empty() { output } else { errors };
        let short = |line: &str| match line.char_indices().nth(LINE) {
            Some((at, _)) => format!("{} …", &line[..at]),
            None => line.to_owned(),
        };
        let lines: Vec<String> = said.lines().map(str::trim).filter(|line| !line.is_empty()).map(short).collect();
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

    fn tree(&self, stage: &Path, owner: u32) -> Tree {
        let executable = self.runs_code;
        let mut mounts = ground(SCRATCH_BYTES, SCRATCH_BYTES, executable);
        let settings = self.registry.settings.iter().map(|line| format!("{line}\n")).collect::<String>();
        let npmrc = Content::Text { bytes: settings.into_bytes() };
        mounts.push(Mount { target: format!("{HOME}/.npmrc").into(), content: npmrc });
        mounts
            .push(Mount { target: PACKAGE.into(), content: Content::Shared { source: stage.to_owned(), executable } });
        let certificates = self.registry.certificates.values().filter(|path| !path.starts_with("/etc/ssl"));
        mounts.extend(question::needs(self.found, certificates));
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
            reads_as: Some(owner).filter(|owner| *owner != 0),
            // Not where the package is: interpreters look for modules where they start.
            folder: HOME.into(),
            proxy: Some(PROXY_PORT),
            unix_sockets: true,
        }
    }

    /// Where the interpreter's own headers are. Otherwise native code that is compiled would have them fetched.
    fn headers(&self) -> Option<String> {
        let above = self.found.folders.iter().filter_map(|bin| bin.parent());
        let folder = above.chain([Path::new("/usr")]).find(|folder| folder.join("include/node/node.h").is_file())?;
        folder.to_str().map(str::to_owned)
    }

    fn variables(&self) -> BTreeMap<String, String> {
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let own = [
            ("PATH", question::path(self.found)),
            ("HOME", HOME.into()),
            ("LANG", "C.UTF-8".into()),
            // Packages are unpacked there before they are moved to their place, and sources are compiled there.
            ("TMPDIR", format!("{PACKAGE}/{}", stage::CACHE)),
            ("npm_config_cache", format!("{PACKAGE}/{}", stage::CACHE)),
            ("npm_config_update_notifier", "false".into()),
            ("PIP_CONFIG_FILE", "/dev/null".into()),
            ("PIP_INDEX_URL", self.registry.url.clone()),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1".into()),
            // The same bytes at every time.
            ("PYTHONHASHSEED", "0".into()),
            ("SOURCE_DATE_EPOCH", "315532800".into()),
        ];
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|name| (name, proxy.clone()));
        let own = own.into_iter().chain(proxies).map(|(name, value)| (name.to_owned(), value));
        let headers = self.headers().map(|folder| ("npm_config_nodedir".to_owned(), folder));
        let certificates = self.registry.certificates.iter();
        let own = own.chain(headers);
        own.chain(certificates.map(|(name, path)| (name.clone(), path.to_string_lossy().into_owned()))).collect()
    }
}

/// Waits for the end, and keeps what was said. Who does not wait any longer ends it.
async fn attend(mut child: Child, stage: &Path) -> Result<(End, String, String), Error> {
    drop(child.stdin.take());
    let (output, errors) = (listen(child.stdout.take()), listen(child.stderr.take()));
    let (sender, mut ended) = oneshot::channel();
    let tell = move || {
        // Nobody may be there any more.
        let _ = sender.send(());
    };
    at_the_end(&child, tell).map_err(Error::Attend)?;
    let deadline = Instant::now() + PATIENCE;
    let (mut look, mut look_at_disk) = (interval(LOOK), interval(LOOK_AT_DISK));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    look_at_disk.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let killed = loop {
        tokio::select! {
            _ = &mut ended => break None,
            () = tokio::time::sleep_until(deadline) => {
                break Some(format!("it took longer than {} s", PATIENCE.as_secs()));
            }
            _ = look.tick() => if is_too_large(child.meter().cloned()).await {
                break Some(format!("the installer needs more than {} MB of memory", MEMORY >> 20));
            },
            _ = look_at_disk.tick() => {
                let stage = stage.to_owned();
                match tokio::task::spawn_blocking(move || stage::excess(&stage)).await {
                    Ok(None) => {}
                    Ok(excess) => break excess,
                    Err(error) => break Some(error.to_string()),
                }
            }
        }
    };
    child.kill();
    let exit = child.wait()?;
    let end = killed.map_or(End::Exited(exit.code), End::Killed);
    Ok((end, output.await.unwrap_or_default(), errors.await.unwrap_or_default()))
}

/// Read on another thread: how long that takes is decided by what runs in there.
async fn is_too_large(meter: Option<Meter>) -> bool {
    let read = tokio::task::spawn_blocking(move || meter.and_then(|meter| meter.read()));
    read.await.ok().flatten().is_some_and(|usage| usage.memory_bytes > MEMORY)
}

/// Calls this when the program and all that it started are gone.
pub fn at_the_end(child: &Child, call: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let program = child.as_fd().try_clone_to_owned()?;
    let wait = move || {
        while let Err(Errno::INTR) = poll(&mut [PollFd::new(&program, PollFlags::IN)], None) {}
        call();
    };
    thread::Builder::new().name("end".to_owned()).spawn(wait).map(drop)
}

/// In a thread of its own, which ends with the program.
fn listen(from: Option<PipeReader>) -> oneshot::Receiver<String> {
    let (sender, receiver) = oneshot::channel();
    // Without a thread nothing is kept, and the program goes on without a reader.
    let _ = thread::Builder::new().spawn(move || sender.send(from.map(keep).unwrap_or_default()));
    receiver
}

pub(crate) fn keep(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    // The rest is read, too, so that nobody waits.
    let _ = from.by_ref().take(OUTPUT).read_to_end(&mut bytes);
    let _ = io::copy(&mut from, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

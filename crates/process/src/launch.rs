//! From a deployment to a program in its jail.

use crate::driver::{Measured, Pipes, Process, Started, Used};
use crate::gauge::Gauge;
use crate::http::Bridge;
use crate::peer::offer::SURFACE_BYTES;
use crate::room::Room;
use crate::settings::{Network, ProcessSettings};
use crate::verdict::Ended;
use jail::cgroup::{Group, Manager};
use jail::program::{Bounds, Child, Content, End, Holder, Mount, SpawnError, Tree};
use policy::Limits;
use sandbox::{Code, Deployment, Failure, Future, Program, Shows, Speaks};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::unix::pipe;

/// Where a program finds its files, and its own things.
const FILES: &str = "/app";
const HOME: &str = "/home/user";
const TMP: &str = "/tmp";

/// Where programs are looked for: the deployment's own come first.
const FOLDERS: [&str; 7] =
    ["/app", "/app/bin", "/app/.venv/bin", "/app/node_modules/.bin", "/usr/local/bin", "/usr/bin", "/bin"];

const NODE_OPTIONS: &str = "NODE_OPTIONS";

/// Files in a scratch folder.
const SCRATCH_FILES: u64 = 4096;
const OPEN_FILES: u64 = 1024;
/// Of one process, over its whole life. What a call may use is counted apart.
const CPU_SECONDS: u64 = 3600;
/// CPU of a program until it is ready. How much it may use in all is bounded then (`init_cpu_ms`), and an interpreter that
/// starts with half a core takes twice as long.
const STARTING_PERCENT: u64 = 400;
/// Private memory that runtimes set aside and hardly touch.
const ASIDE: u64 = 1 << 30;

/// What all programs of a wall have in common.
pub(crate) struct Ground {
    pub(crate) settings: ProcessSettings,
    pub(crate) groups: Option<Manager>,
    /// What all programs may use together.
    pub(crate) room: Arc<Room>,
    /// The system that programs see, read once.
    pub(crate) system: Vec<Mount>,
    pub(crate) _anchor: Option<Group>,
}

/// Starts programs of one deployment.
#[derive(Clone)]
pub(crate) struct Launcher {
    pub(crate) ground: Arc<Ground>,
    pub(crate) deployment: Arc<Deployment>,
}

impl Launcher {
    pub(crate) fn limits(&self) -> &Limits {
        self.deployment.permit.limits()
    }

    pub(crate) fn shows(&self) -> &Shows {
        &self.deployment.shows
    }

    /// Starts one. Building the jail takes milliseconds, in which nothing else should wait.
    pub(crate) async fn launch(&self) -> Result<Started, Failure> {
        let launcher = self.clone();
        let spawned = tokio::task::spawn_blocking(move || launcher.spawn()).await;
        let mut child = spawned.map_err(|_| unavailable("the start was given up"))??;
        let longest = usize::try_from(self.limits().result_kb * 1024).unwrap_or(usize::MAX).max(SURFACE_BYTES);
        let pipes = pipes(&mut child, self.speaks(), longest.saturating_add(64 << 10));
        let pipes = pipes.map_err(|error| unavailable(&format!("the pipes of a program cannot be used: {error}")))?;
        let listener = child.take_listener();
        let process = Jailed::new(child, self.limits().memory_mb << 20);
        let process = process.map_err(|error| unavailable(&format!("a program cannot be measured: {error}")))?;
        Ok(Started { pipes, listener, process: Arc::new(process) })
    }

    fn speaks(&self) -> &Speaks {
        match &self.deployment.program {
            Program::Command { speaks, .. } => speaks,
            Program::Module { .. } => &Speaks::Stdio,
        }
    }

    fn spawn(&self) -> Result<Child, Failure> {
        let Program::Command { files, command, environment, network, speaks } = &self.deployment.program else {
            return Err(Failure::new(Code::InitFailed, "the wall `process` runs commands, and no modules"));
        };
        let network = match (network, &self.ground.settings.network) {
            (true, None) => return Err(unavailable("there is no network for them here")),
            (wanted, network) => network.as_ref().filter(|_| *wanted),
        };
        if let Speaks::Http { path, .. } | Speaks::Sse { path, .. } = speaks
            && !path.starts_with('/')
        {
            return Err(Failure::new(Code::InitFailed, format!("`{path}` is no path of a server: it begins with `/`")));
        }
        let folders = self.folders();
        let Some((name, arguments)) = command.split_first() else {
            return Err(Failure::new(Code::InitFailed, "the command is empty"));
        };
        let program = find(name, files, &folders)
            .ok_or_else(|| Failure::new(Code::InitFailed, format!("there is no program `{name}` to be started")))?;
        let environment = variables(environment, network, &folders);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let variables: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let spawned = self.tree(files, network).spawn(self.ground.groups.as_ref(), &program, &arguments, &variables);
        spawned.map_err(|error| match error {
            SpawnError::Zero => Failure::new(Code::InitFailed, error.to_string()),
            error => unavailable(&error.to_string()),
        })
    }

    fn tree(&self, files: &Path, network: Option<&Network>) -> Tree {
        let limits = self.limits();
        let mount = |target: &str, content| Mount { target: target.into(), content };
        let scratch_bytes = limits.scratch_mb << 20;
        let scratch = || Content::Scratch { bytes: scratch_bytes, files: SCRATCH_FILES, executable: false };
        let own = [
            mount(FILES, Content::Host { source: files.to_owned(), executable: true }),
            mount(TMP, scratch()),
            mount(HOME, scratch()),
            mount("/proc", Content::Proc),
            mount("/dev", Content::Devices),
        ];
        let told = network.iter().flat_map(|network| &network.files);
        let told = told.map(|(target, bytes)| (target.clone(), Content::Text { bytes: bytes.clone() }));
        let told = told.map(|(target, content)| Mount { target, content });
        let memory_bytes = limits.memory_mb << 20;
        Tree {
            mounts: self.ground.system.iter().cloned().chain(own).chain(told).collect(),
            bounds: Bounds {
                processes: limits.processes,
                memory_bytes,
                cpu_percent: percent(limits.cpu_percent.max(STARTING_PERCENT)),
                cpu_seconds: CPU_SECONDS,
                data_bytes: memory_bytes * 2 + ASIDE,
                file_bytes: scratch_bytes,
                open_files: OPEN_FILES,
            },
            reads_as: std::fs::metadata(files).ok().and_then(|folder| reader(&folder)),
            folder: FILES.into(),
            proxy: network.map(|network| network.port),
            // Neither a layer nor the system holds a socket of anybody else.
            unix_sockets: true,
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        let toolchains = self.ground.settings.toolchains.iter().map(|folder| folder.join("bin"));
        let (own, system) = FOLDERS.split_at(4);
        own.iter().map(PathBuf::from).chain(toolchains).chain(system.iter().map(PathBuf::from)).collect()
    }
}

pub(crate) fn unavailable(why: &str) -> Failure {
    Failure::new(Code::WallUnavailable, format!("this host cannot start programs: {why}"))
}

fn percent(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// The few variables that programs expect, those of the network, and those of the deployment.
fn variables(
    given: &BTreeMap<String, String>,
    network: Option<&Network>,
    folders: &[PathBuf],
) -> BTreeMap<String, String> {
    let path: Vec<_> = folders.iter().map(|folder| folder.to_string_lossy()).collect();
    let own = [("PATH", path.join(":")), ("HOME", HOME.into()), ("LANG", "C.UTF-8".into()), ("TMPDIR", TMP.into())];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let mut all: BTreeMap<_, _> = own.into_iter().collect();
    all.extend(network.iter().flat_map(|network| network.variables.clone()));
    for (name, value) in given {
        let value = match all.get(name) {
            // A list, of which both parts count.
            Some(ours) if name == NODE_OPTIONS => format!("{ours} {value}"),
            _ => value.clone(),
        };
        all.insert(name.clone(), value);
    }
    all
}

/// As whom root lets a program read its files: as a user of its own, unless only their owner may read them.
fn reader(folder: &Metadata) -> Option<u32> {
    let everybody_reads = folder.mode() & 0o005 == 0o005;
    (!everybody_reads && folder.uid() != 0).then(|| folder.uid())
}

/// Where a program is inside. All that is shown of the host is at its own place, but for the files.
fn find(name: &str, files: &Path, folders: &[PathBuf]) -> Option<String> {
    let candidates: Vec<PathBuf> = match name {
        "" => Vec::new(),
        name if name.contains('/') => vec![Path::new(FILES).join(name.trim_start_matches("./"))],
        name => folders.iter().map(|folder| folder.join(name)).collect(),
    };
    let there = |inside: &PathBuf| match inside.strip_prefix(FILES) {
        // Where a link in there leads is decided inside.
        Ok(rest) => files.join(rest).symlink_metadata().is_ok_and(|found| !found.is_dir()),
        Err(_) => inside.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0),
    };
    candidates.into_iter().find(there).and_then(|path| path.into_os_string().into_string().ok())
}

fn pipes(child: &mut Child, speaks: &Speaks, longest: usize) -> std::io::Result<Pipes> {
    let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(child.stdin.take().ok_or_else(gone)?))?;
    let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(child.stdout.take().ok_or_else(gone)?))?;
    let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(child.stderr.take().ok_or_else(gone)?))?;
    let sockets = child.sockets().ok_or_else(gone)?;
    Ok(match Bridge::start(speaks, sockets, longest) {
        // Its standard input has ended before it began.
        Some(bridge) => Pipes::bridged(bridge, stdout, stderr),
        None => Pipes::new(stdin, stdout, stderr, longest),
    })
}

/// A program in its jail.
struct Jailed {
    /// None once it is being ended.
    child: Mutex<Option<Child>>,
    gauge: Gauge,
    /// What it may hold, unless the kernel sees to that.
    most: Option<u64>,
}

impl Jailed {
    fn new(child: Child, memory_bytes: u64) -> std::io::Result<Jailed> {
        let held = child.held().is_some_and(|held| held.memory == Holder::Group);
        let meter = child.meter().ok_or(std::io::ErrorKind::BrokenPipe)?.clone();
        let gauge = Gauge::start(meter)?;
        Ok(Jailed { child: Mutex::new(Some(child)), gauge, most: (!held).then_some(memory_bytes) })
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process for Jailed {
    fn measure(&self) -> Future<'static, Measured> {
        self.gauge.measure(self.most)
    }

    fn last(&self) -> Option<Used> {
        self.gauge.last()
    }

    fn new_cpu(&self) -> Option<Duration> {
        self.gauge.new_cpu()
    }

    fn settle(&self, cpu_percent: u64) -> Result<(), Failure> {
        let limited = self.child().as_ref().map_or(Ok(()), |child| child.limit_cpu(percent(cpu_percent)));
        limited.map_err(|error| unavailable(&error.to_string()))
    }

    fn end(&self, grace: Duration) -> Future<'static, Option<Ended>> {
        let child = self.child().take();
        Box::pin(async move {
            let mut child = child?;
            let ended = tokio::task::spawn_blocking(move || {
                let end = child.watch(grace, u64::MAX).ok();
                let out_of_memory = child.killed_for_memory() > 0;
                let status = match end? {
                    End::Exited(exit) => exit.code.or_else(|| Some(128 + exit.signal?)),
                    End::TooLong | End::TooLarge => None,
                };
                Some(Ended { status, out_of_memory })
            });
            ended.await.ok().flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_they_are_seen_inside() {
        let files = std::env::temp_dir().join(format!("process-launch-{}", std::process::id()));
        std::fs::create_dir_all(files.join("bin")).unwrap();
        std::fs::write(files.join("bin/own"), "").unwrap();
        let folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
        let found = |name| find(name, &files, &folders);
        assert_eq!(found("own").as_deref(), Some("/app/bin/own"));
        assert_eq!(found("./bin/own").as_deref(), Some("/app/bin/own"));
        assert_eq!(found("/app/bin/own").as_deref(), Some("/app/bin/own"));
        assert!(found("sh").is_some_and(|path| path.ends_with("/bin/sh")));
        for none in ["", "bin", "nobody-has-this", "/etc/passwd", "/usr"] {
            assert_eq!(found(none), None, "{none}");
        }
        std::fs::remove_dir_all(&files).unwrap();
    }

    #[test]
    fn the_deployments_variables_come_last() {
        let given = BTreeMap::from([("LANG".to_owned(), "de".to_owned()), ("KEY".to_owned(), "1".to_owned())]);
        let all = variables(&given, None, &["/app/bin".into(), "/usr/bin".into()]);
        let names: Vec<_> = all.keys().map(String::as_str).collect();
        assert_eq!(names, ["HOME", "KEY", "LANG", "PATH", "TMPDIR"]);
        assert_eq!((all["LANG"].as_str(), all["PATH"].as_str()), ("de", "/app/bin:/usr/bin"));
    }

    #[test]
    fn options_of_node_are_both_ours_and_theirs() {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        let variables_of = map(&[("NODE_OPTIONS", "--require=/x"), ("HTTP_PROXY", "ours"), ("NO_PROXY", "none")]);
        let network = Network { port: 1, variables: variables_of, files: Vec::new() };
        let given = map(&[("NODE_OPTIONS", "--trace-uncaught"), ("HTTP_PROXY", "theirs")]);
        let all = variables(&given, Some(&network), &[]);
        assert_eq!(all["NODE_OPTIONS"], "--require=/x --trace-uncaught");
        assert_eq!((all["HTTP_PROXY"].as_str(), all["NO_PROXY"].as_str()), ("theirs", "none"));
    }
}

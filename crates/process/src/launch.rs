//! From a deployment to a program in its jail.

use crate::driver::{Pipes, Process, Used};
use crate::peer::offer::SURFACE_BYTES;
use crate::settings::ProcessSettings;
use crate::verdict::Ended;
use jail::cgroup::{Group, Manager};
use jail::program::{Bounds, Child, Content, End, Holder, Mount, SpawnError, Tree};
use policy::Limits;
use sandbox::{Code, Deployment, Failure, Future, Program, Shows};
use std::collections::BTreeMap;
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

/// Files in a scratch folder.
const SCRATCH_FILES: u64 = 4096;
const OPEN_FILES: u64 = 1024;
/// Of one process, over its whole life. What a call may use is counted apart.
const CPU_SECONDS: u64 = 3600;
/// Private memory that runtimes set aside and hardly touch.
const ASIDE: u64 = 1 << 30;

/// What all programs of a wall have in common.
pub(crate) struct Ground {
    pub(crate) settings: ProcessSettings,
    pub(crate) groups: Option<Manager>,
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
    pub(crate) async fn launch(&self) -> Result<(Pipes, Arc<dyn Process>), Failure> {
        let launcher = self.clone();
        let spawned = tokio::task::spawn_blocking(move || launcher.spawn()).await;
        let mut child = spawned.map_err(|_| unavailable("the start was given up"))??;
        let longest = usize::try_from(self.limits().result_kb * 1024).unwrap_or(usize::MAX).max(SURFACE_BYTES);
        let pipes = pipes(&mut child, longest.saturating_add(64 << 10));
        let pipes = pipes.map_err(|error| unavailable(&format!("the pipes of a program cannot be used: {error}")))?;
        Ok((pipes, Arc::new(Jailed::new(child))))
    }

    fn spawn(&self) -> Result<Child, Failure> {
        let Program::Command { files, command, environment, .. } = &self.deployment.program else {
            return Err(Failure::new(Code::InitFailed, "the wall `process` runs commands, and no modules"));
        };
        let folders = self.folders();
        let Some((name, arguments)) = command.split_first() else {
            return Err(Failure::new(Code::InitFailed, "the command is empty"));
        };
        let program = find(name, files, &folders)
            .ok_or_else(|| Failure::new(Code::InitFailed, format!("there is no program `{name}` to be started")))?;
        let environment = variables(environment, &folders);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let variables: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let spawned = self.tree(files).spawn(self.ground.groups.as_ref(), &program, &arguments, &variables);
        spawned.map_err(|error| match error {
            SpawnError::Zero => Failure::new(Code::InitFailed, error.to_string()),
            error => unavailable(&error.to_string()),
        })
    }

    fn tree(&self, files: &Path) -> Tree {
        let Ground { settings, system, .. } = &*self.ground;
        let mount = |target: &str, content| Mount { target: target.into(), content };
        let scratch = |mb: u64| Content::Scratch { bytes: mb << 20, files: SCRATCH_FILES, executable: false };
        let own = [
            mount(FILES, Content::Host { source: files.to_owned(), executable: true }),
            mount(TMP, scratch(settings.tmp_mb)),
            mount(HOME, scratch(settings.home_mb)),
            mount("/proc", Content::Proc),
            mount("/dev", Content::Devices),
        ];
        let memory_bytes = self.limits().memory_mb << 20;
        Tree {
            mounts: system.iter().cloned().chain(own).collect(),
            bounds: Bounds {
                processes: settings.processes,
                memory_bytes,
                cpu_percent: settings.cpu_percent,
                cpu_seconds: CPU_SECONDS,
                data_bytes: memory_bytes * 2 + ASIDE,
                file_bytes: settings.tmp_mb.max(settings.home_mb) << 20,
                open_files: OPEN_FILES,
            },
            // Root's own files are read as `nobody`.
            reads_as: std::fs::metadata(files).ok().map(|folder| folder.uid()).filter(|owner| *owner != 0),
            folder: FILES.into(),
            proxy: None,
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        let toolchains = self.ground.settings.toolchains.iter().map(|folder| folder.join("bin"));
        let (own, system) = FOLDERS.split_at(4);
        own.iter().map(PathBuf::from).chain(toolchains).chain(system.iter().map(PathBuf::from)).collect()
    }
}

fn unavailable(why: &str) -> Failure {
    Failure::new(Code::WallUnavailable, format!("this host cannot start programs: {why}"))
}

/// The few variables that programs expect, and those of the deployment.
fn variables(given: &BTreeMap<String, String>, folders: &[PathBuf]) -> BTreeMap<String, String> {
    let path: Vec<_> = folders.iter().map(|folder| folder.to_string_lossy()).collect();
    let own = [("PATH", path.join(":")), ("HOME", HOME.into()), ("LANG", "C.UTF-8".into()), ("TMPDIR", TMP.into())];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    own.into_iter().chain(given.iter().map(|(name, value)| (name.clone(), value.clone()))).collect()
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

fn pipes(child: &mut Child, longest: usize) -> std::io::Result<Pipes> {
    let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(child.stdin.take().ok_or_else(gone)?))?;
    let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(child.stdout.take().ok_or_else(gone)?))?;
    let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(child.stderr.take().ok_or_else(gone)?))?;
    Ok(Pipes::new(stdin, stdout, stderr, longest))
}

/// A program in its jail.
struct Jailed {
    /// None once it is being ended.
    child: Mutex<Option<Child>>,
    /// The kernel sees to its memory.
    memory_held: bool,
}

impl Jailed {
    fn new(child: Child) -> Jailed {
        let memory_held = child.held().is_some_and(|held| held.memory == Holder::Group);
        Jailed { child: Mutex::new(Some(child)), memory_held }
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process for Jailed {
    fn usage(&self) -> Option<Used> {
        let used = self.child().as_ref()?.usage()?;
        Some(Used { cpu: used.cpu, memory: used.memory_bytes })
    }

    fn holds_more_than(&self, bytes: u64) -> bool {
        let closely = || self.child().as_ref().and_then(Child::proportional_memory);
        !self.memory_held && closely().is_some_and(|memory| memory > bytes)
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
        let all = variables(&given, &["/app/bin".into(), "/usr/bin".into()]);
        let names: Vec<_> = all.keys().map(String::as_str).collect();
        assert_eq!(names, ["HOME", "KEY", "LANG", "PATH", "TMPDIR"]);
        assert_eq!((all["LANG"].as_str(), all["PATH"].as_str()), ("de", "/app/bin:/usr/bin"));
    }
}

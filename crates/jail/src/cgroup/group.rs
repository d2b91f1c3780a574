use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{Kind, Limits, PARENT};
use crate::error::Error;
use crate::pidfd::PidFd;

/// Over this the kernel deals out CPU shares.
const CPU_PERIOD_US: u64 = 100_000;

/// How long killed processes may take to leave a group.
const PATIENCE: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(1);

/// A group of processes under common limits. Dropping it kills what is in it and removes it; when that fails,
/// [`super::Manager::sweep_stale`] of a later host does it.
#[derive(Debug)]
pub struct Group {
    kind: Kind,
    /// One directory for version 2, one per hierarchy for version 1.
    directories: Vec<PathBuf>,
}

impl Group {
    pub(super) fn create(kind: Kind, directories: Vec<PathBuf>, limits: &Limits) -> Result<Group, Error> {
        let mut group = Group::adopt(kind, Vec::new());
        for path in directories {
            fs::create_dir(&path).map_err(|source| Error::Group { action: "make", path: path.clone(), source })?;
            // Only what exists, so that a failure on the way removes exactly that.
            group.directories.push(path);
        }
        group.limit(limits)?;
        Ok(group)
    }

    /// A group that exists already.
    pub(super) fn adopt(kind: Kind, directories: Vec<PathBuf>) -> Group {
        Group { kind, directories }
    }

    /// Makes an empty group inside of this one, whose limits hold besides: when one of several is full, the kernel kills in
    /// there. With version 2 this group holds no processes itself then. It goes before this one.
    pub fn subgroup(&self, name: &str, limits: &Limits) -> Result<Group, Error> {
        if self.kind == Kind::V2 {
            for directory in &self.directories {
                write(&directory.join("cgroup.subtree_control"), "+memory +pids")?;
            }
        }
        Group::create(self.kind, self.directories.iter().map(|directory| directory.join(name)).collect(), limits)
    }

    /// Moves a process with its threads into the group. Children that it forks later are born there; earlier ones stay
    /// where they are, so add a process before it forks.
    pub fn add(&self, pid: i32) -> Result<(), Error> {
        for directory in &self.directories {
            write(&directory.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    /// Moves this process, which must have a single thread, into the group. Quicker than [`Group::add`] with version 1:
    /// nobody's forks have to be held up for a thread that moves itself.
    pub(crate) fn join(&self) -> Result<(), Error> {
        let file = match self.kind {
            Kind::V1 => "tasks",
            Kind::V2 => "cgroup.procs",
        };
        self.directories.iter().try_for_each(|directory| write(&directory.join(file), "0"))
    }

    /// Changes the share of CPU, where 100 is one core.
    pub(crate) fn set_cpu(&self, percent: u32) -> Result<(), Error> {
        // More than there is needs no bound, and the kernel takes none that is above the one around it.
        let there = std::thread::available_parallelism().map_or(u32::MAX, |cores| cores.get() as u32 * 100);
        if percent >= there { Ok(()) } else { self.limit_cpu(percent) }
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock { kind: self.kind, directories: self.directories.clone() }
    }

    /// How many processes of the group the kernel has killed for want of memory.
    pub fn oom_kills(&self) -> Result<u64, Error> {
        let file = self.file(match self.kind {
            Kind::V1 => "memory.oom_control",
            Kind::V2 => "memory.events",
        })?;
        let text =
            fs::read_to_string(&file).map_err(|source| Error::Group { action: "read", path: file.clone(), source })?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.parse().ok()).ok_or_else(|| Error::Group {
            action: "read",
            path: file,
            source: io::ErrorKind::InvalidData.into(),
        })
    }

    /// Kills every process in the group and removes it.
    pub fn remove(self) -> Result<(), Error> {
        self.destroy()
    }

    fn limit(&self, limits: &Limits) -> Result<(), Error> {
        let bytes = limits.memory_bytes.to_string();
        match self.kind {
            Kind::V1 => {
                self.set("memory.limit_in_bytes", &bytes)?;
                // Memory and swap together, or the limit only moves pages to disk.
                if self.file("memory.memsw.limit_in_bytes").is_ok() {
                    self.set("memory.memsw.limit_in_bytes", &bytes)?;
                } else {
                    self.set("memory.swappiness", "0")?;
                }
            }
            Kind::V2 => {
                self.set("memory.max", &bytes)?;
                // Absent where the kernel has no swap.
                if self.file("memory.swap.max").is_ok() {
                    self.set("memory.swap.max", "0")?;
                }
            }
        }
        self.set("pids.max", &limits.processes.to_string())?;
        limits.cpu_percent.map_or(Ok(()), |percent| self.set_cpu(percent))
    }

    fn limit_cpu(&self, percent: u32) -> Result<(), Error> {
        let quota = u64::from(percent.max(1)) * CPU_PERIOD_US / 100;
        match self.kind {
            Kind::V1 => {
                self.set("cpu.cfs_period_us", &CPU_PERIOD_US.to_string())?;
                self.set("cpu.cfs_quota_us", &quota.to_string())
            }
            Kind::V2 => self.set("cpu.max", &format!("{quota} {CPU_PERIOD_US}")),
        }
    }

    fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        write(&self.file(name)?, value)
    }

    /// The control file of that name, in whichever hierarchy has it.
    fn file(&self, name: &str) -> Result<PathBuf, Error> {
        let mut files = self.directories.iter().map(|path| path.join(name));
        files.find(|file| file.exists()).ok_or_else(|| Error::Group {
            action: "find",
            path: name.into(),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    fn destroy(&self) -> Result<(), Error> {
        let deadline = Instant::now() + PATIENCE;
        for directory in &self.directories {
            raze(directory, deadline)?;
            // Its parent goes with the last one; while there are others the kernel refuses.
            let _ = directory.parent().filter(|parent| parent.ends_with(PARENT)).map(fs::remove_dir);
        }
        Ok(())
    }
}

/// Reads the CPU time of a group, and keeps nothing of it alive.
#[derive(Debug)]
pub(crate) struct Clock {
    kind: Kind,
    directories: Vec<PathBuf>,
}

impl Clock {
    /// CPU time of all that are or ever were in it, whoever waited for them; nothing where the kernel does not count it.
    pub(crate) fn read(&self) -> Option<Duration> {
        let read = |name| self.directories.iter().find_map(|path| fs::read_to_string(path.join(name)).ok());
        match self.kind {
            Kind::V1 => read("cpuacct.usage")?.trim().parse().ok().map(Duration::from_nanos),
            Kind::V2 => {
                let text = read("cpu.stat")?;
                let used = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
                used?.parse().ok().map(Duration::from_micros)
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // There is nobody to tell; the owner in the name lets a later sweep find what is left.
        let _ = self.destroy();
    }
}

/// Kills and removes, whatever a host that crashed had inside of it first.
fn raze(directory: &Path, deadline: Instant) -> Result<(), Error> {
    let inside = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    for entry in inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        raze(&entry.path(), deadline)?;
    }
    while !remove_directory(directory)? {
        if Instant::now() > deadline {
            return Err(Error::GroupBusy { path: directory.to_owned() });
        }
        kill_members(directory)?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// False while there are processes in it.
fn remove_directory(directory: &Path) -> Result<bool, Error> {
    match fs::remove_dir(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(false),
        Err(source) => Err(Error::Group { action: "remove", path: directory.to_owned(), source }),
    }
}

/// One SIGKILL for each process in the group.
fn kill_members(directory: &Path) -> Result<(), Error> {
    let all_at_once = directory.join("cgroup.kill");
    if all_at_once.exists() {
        return write(&all_at_once, "1");
    }
    for pid in members(directory)? {
        // It may have ended since, and its number belong to a stranger: so hold it first, then look whether it is
        // still a member, then kill what is held.
        let Ok(process) = PidFd::open(pid) else {
            continue;
        };
        if members(directory)?.contains(&pid) {
            process.kill()?;
        }
    }
    Ok(())
}

fn members(directory: &Path) -> Result<Vec<i32>, Error> {
    let file = directory.join("cgroup.procs");
    match fs::read_to_string(&file) {
        Ok(text) => Ok(text.lines().filter_map(|pid| pid.parse().ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(Error::Group { action: "read", path: file, source }),
    }
}

/// One write to a control file that exists.
pub(super) fn write(path: &Path, value: &str) -> Result<(), Error> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|source| Error::Group { action: "write", path: path.to_owned(), source })
}

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::group::write;
use super::{Kind, PARENT};
use crate::error::Error;

/// Without these a group bounds nothing that matters.
const NEEDED: [&str; 2] = ["memory", "pids"];

/// Where this process goes when its own group has to be divided.
const HOST_LEAF: &str = "bulkhead-host";

/// What control groups can do here, found without changing anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survey {
    pub kind: Option<Kind>,
    pub controllers: Vec<String>,
    pub detail: String,
}

/// Looks for a place and says what it found.
pub fn survey() -> Result<Survey, Error> {
    Ok(match find()? {
        Ok(place) => {
            let mut controllers: Vec<String> = NEEDED.map(str::to_owned).to_vec();
            controllers.extend(place.cpu.then(|| "cpu".to_owned()));
            let bases: Vec<_> = place.bases.iter().map(|b| b.display().to_string()).collect();
            Survey { kind: Some(place.kind), controllers, detail: format!("groups go to {}", bases.join(", ")) }
        }
        Err(reason) => Survey { kind: None, controllers: Vec::new(), detail: reason },
    })
}

/// A directory in each hierarchy under which this process may make groups.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) cpu: bool,
    bases: Vec<PathBuf>,
}

impl Place {
    /// The groups `bulkhead`.
    pub(super) fn parents(&self) -> Vec<PathBuf> {
        self.bases.iter().map(|base| base.join(PARENT)).collect()
    }

    /// Makes the groups `bulkhead`, with their controllers.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        let mut controllers = NEEDED.to_vec();
        controllers.extend(self.cpu.then_some("cpu"));
        for base in &self.bases {
            let parent = base.join(PARENT);
            if self.kind == Kind::V2 {
                enable(base, &controllers)?;
            }
            match fs::create_dir(&parent) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::Group { action: "make", path: parent, source: error });
                }
                _ => {}
            }
            if self.kind == Kind::V2 {
                enable(&parent, &controllers)?;
            }
        }
        Ok(())
    }
}

/// A version 2 group hands controllers to its children only when it holds no processes itself.
fn enable(group: &Path, controllers: &[&str]) -> Result<(), Error> {
    let file = group.join("cgroup.subtree_control");
    let wanted: Vec<String> = controllers.iter().map(|name| format!("+{name}")).collect();
    let wanted = wanted.join(" ");
    match write(&file, &wanted) {
        Err(Error::Group { source, .. }) if source.raw_os_error() == Some(libc::EBUSY) => {
            leave(group)?;
            write(&file, &wanted)
        }
        other => other,
    }
}

/// Moves this process to a leaf, if it is the only one in the group: other people's processes stay where they are.
fn leave(group: &Path) -> Result<(), Error> {
    if !alone(group) {
        return Err(Error::GroupBusy { path: group.to_owned() });
    }
    let leaf = group.join(HOST_LEAF);
    fs::create_dir_all(&leaf).map_err(|source| Error::Group { action: "make", path: leaf.clone(), source })?;
    write(&leaf.join("cgroup.procs"), &std::process::id().to_string())
}

/// The place, or the reason why there is none.
pub(super) fn find() -> Result<Result<Place, String>, Error> {
    let mounts = parse_mounts(&read("/proc/self/mountinfo")?);
    let groups = read("/proc/self/cgroup")?;
    let own = own_path(&groups);
    let v2 = match find_v2(&mounts, own.as_deref()) {
        Ok(place) => return Ok(Ok(place)),
        Err(reason) => reason,
    };
    Ok(find_v1(&mounts, &groups).map_err(|v1| format!("{v2}; {v1}")))
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Group { action: "read", path: path.into(), source })
}

/// A mounted hierarchy: the group that is mounted, where, and its version 1 controllers (none for version 2).
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    root: PathBuf,
    point: PathBuf,
    kind: Kind,
    options: Vec<String>,
}

/// `36 25 0:31 /root /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory`
fn parse_mounts(mountinfo: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut kind = kind.split(' ');
        let kind_name = kind.next()?;
        Some(Mount {
            root: mount.next()?.into(),
            point: mount.next()?.into(),
            kind: match kind_name {
                "cgroup" => Kind::V1,
                "cgroup2" => Kind::V2,
                _ => return None,
            },
            options: kind.nth(1)?.split(',').map(str::to_owned).collect(),
        })
    };
    mountinfo.lines().filter_map(parse).collect()
}

/// The version 2 line is `0::/path`.
fn own_path(cgroup: &str) -> Option<PathBuf> {
    let line = cgroup.lines().find_map(|line| line.strip_prefix("0::"));
    line.map(PathBuf::from)
}

/// First the group of this process, which a service manager may have delegated; as root also the top.
fn find_v2(mounts: &[Mount], own: Option<&Path>) -> Result<Place, String> {
    let mount = mounts.iter().find(|mount| mount.kind == Kind::V2);
    let mount = mount.ok_or("cgroup v2 is not mounted")?;
    let own = own.and_then(|own| own.strip_prefix(&mount.root).ok());
    let own = own.map(|own| mount.point.join(own));
    // Only root can write to the top, so no check for it is needed beyond the one for all.
    let top = Some(mount.point.clone());
    let mut reason = String::from("cgroup v2 does not show the group of this process");
    for base in own.into_iter().chain(top) {
        match usable_v2(&base) {
            Ok(cpu) => {
                return Ok(Place { kind: Kind::V2, cpu, bases: vec![base] });
            }
            Err(why) => reason = why,
        }
    }
    Err(reason)
}

/// Whether CPU can be limited there, beside what is needed; or why the group cannot be used.
fn usable_v2(base: &Path) -> Result<bool, String> {
    let shown = base.display();
    let controllers = fs::read_to_string(base.join("cgroup.controllers"))
        .map_err(|error| format!("cgroup v2 group `{shown}` cannot be read ({error})"))?;
    let has = |name: &str| controllers.split_whitespace().any(|found| found == name);
    if let Some(missing) = NEEDED.into_iter().find(|name| !has(name)) {
        return Err(format!("cgroup v2 group `{shown}` has no controller `{missing}`"));
    }
    let files = ["", "cgroup.procs", "cgroup.subtree_control"];
    if !files.iter().all(|file| writable(&base.join(file))) {
        return Err(format!("cgroup v2 group `{shown}` is not delegated to this user"));
    }
    let mut needed = NEEDED.to_vec();
    needed.extend(has("cpu").then_some("cpu"));
    if !divided(base, &needed) && !alone(base) {
        return Err(format!("cgroup v2 group `{shown}` holds other processes, so it cannot be divided"));
    }
    Ok(has("cpu"))
}

/// Whether the group hands these controllers to its children already.
fn divided(group: &Path, controllers: &[&str]) -> bool {
    fs::read_to_string(group.join("cgroup.subtree_control")).is_ok_and(|enabled| {
        let enabled: Vec<&str> = enabled.split_whitespace().collect();
        controllers.iter().all(|name| enabled.contains(name))
    })
}

/// Whether the group can be divided: the top of the hierarchy always can, any other when it holds no process but
/// this one, which can move.
fn alone(group: &Path) -> bool {
    let itself = std::process::id().to_string();
    let top = !group.join("cgroup.type").exists();
    top || fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|members| members.lines().all(|pid| pid == itself))
}

/// The own group in the hierarchy of a version 1 controller.
fn own_v1_path(cgroup: &str, controller: &str) -> PathBuf {
    let of_controller = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then(|| PathBuf::from(path))
    };
    cgroup.lines().find_map(of_controller).unwrap_or_else(|| PathBuf::from("/"))
}

/// Below the own group in each hierarchy: what limits this process must go on limiting what it starts.
fn find_v1(mounts: &[Mount], groups: &str) -> Result<Place, String> {
    let mount = |controller: &str| {
        mounts.iter().find(|mount| mount.kind == Kind::V1 && mount.options.iter().any(|option| option == controller))
    };
    let own = |mount: &Mount, controller: &str| {
        let path = own_v1_path(groups, controller);
        // A mount may show only a part of the hierarchy.
        let below = path.strip_prefix(&mount.root).or_else(|_| path.strip_prefix("/")).unwrap_or(&path);
        mount.point.join(below)
    };
    let mut bases = Vec::new();
    for controller in NEEDED {
        let mount = mount(controller).ok_or_else(|| format!("cgroup v1 controller `{controller}` is not mounted"))?;
        let base = own(mount, controller);
        if !writable(&base) {
            return Err(format!("cgroup v1 directory `{}` is not writable", base.display()));
        }
        bases.push(base);
    }
    let cpu = mount("cpu").map(|mount| own(mount, "cpu")).filter(|base| writable(base));
    bases.extend(cpu.clone());
    // Where CPU time is counted; mostly the same.
    bases.extend(mount("cpuacct").map(|mount| own(mount, "cpuacct")).filter(|base| writable(base)));
    bases.dedup();
    Ok(Place { kind: Kind::V1, cpu: cpu.is_some(), bases })
}

fn writable(path: &Path) -> bool {
    CString::new(path.as_os_str().as_bytes()).is_ok_and(|path| {
        // SAFETY: the path ends with a zero and lives through the call.
        unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
30 25 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
31 25 0:28 /docker/7 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 25 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
broken line
";

    #[test]
    fn mounts_are_read_with_their_controllers() {
        let mounts = parse_mounts(MOUNTS);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[1].root, Path::new("/docker/7"));
        assert_eq!(mounts[1].options, ["rw", "cpu", "cpuacct"]);
        assert_eq!(mounts[2].kind, Kind::V2);
    }

    #[test]
    fn a_missing_controller_is_named() {
        let reason = find_v1(&parse_mounts(""), "").expect_err("nothing is mounted");
        assert_eq!(reason, "cgroup v1 controller `memory` is not mounted");
    }

    #[test]
    fn the_own_version_1_group_is_that_of_the_controller() {
        let groups = "4:memory:/machine/7\n2:cpu,cpuacct:/\n0::/x\n";
        assert_eq!(own_v1_path(groups, "memory"), Path::new("/machine/7"));
        assert_eq!(own_v1_path(groups, "cpuacct"), Path::new("/"));
        assert_eq!(own_v1_path(groups, "pids"), Path::new("/"));
    }

    #[test]
    fn the_own_group_is_the_version_2_line() {
        let own = own_path("4:memory:/a\n0::/system.slice/bulkhead.service\n");
        assert_eq!(own.as_deref(), Some(Path::new("/system.slice/bulkhead.service")));
        assert_eq!(own_path("4:memory:/a\n"), None);
    }

    /// The kernel refuses to divide a group that holds processes, so the host steps aside. Tried on the real
    /// hierarchy with whichever controller it has.
    #[test]
    fn dividing_the_own_group_moves_this_process_to_a_leaf() {
        let mounts = parse_mounts(&read("/proc/self/mountinfo").expect("mounts"));
        let Some(mount) = mounts.into_iter().find(|mount| mount.kind == Kind::V2) else {
            return eprintln!("skipped: cgroup v2 is not mounted");
        };
        let available = fs::read_to_string(mount.point.join("cgroup.controllers"));
        let available = available.unwrap_or_default();
        let Some(controller) = available.split_whitespace().next() else {
            return eprintln!("skipped: cgroup v2 has no controllers");
        };
        if !writable(&mount.point) {
            return eprintln!("skipped: cgroup v2 is not writable");
        }
        // Another run of this test on the same machine would take the controller away.
        let hierarchy = fs::File::open(&mount.point).expect("the hierarchy");
        hierarchy.lock().expect("the hierarchy for this test alone");
        let home = own_path(&read("/proc/self/cgroup").expect("own group")).expect("own group");
        let home = mount.point.join(home.strip_prefix("/").expect("absolute"));
        let top = fs::read_to_string(mount.point.join("cgroup.subtree_control"));
        let handed_down = top.is_ok_and(|text| text.contains(controller));
        if !handed_down {
            write(&mount.point.join("cgroup.subtree_control"), &format!("+{controller}"))
                .expect("the controller for children");
        }
        // What other tests of this process start meanwhile starts in the group, and keeps it busy for a moment.
        let mut outcome = divide(&mount.point, controller, &home, 0);
        for number in 1..50 {
            if outcome.0.is_ok() {
                break;
            }
            std::thread::sleep(MOMENT);
            outcome = divide(&mount.point, controller, &home, number);
        }
        let (result, members, left) = outcome;
        if !handed_down {
            write(&mount.point.join("cgroup.subtree_control"), &format!("-{controller}"))
                .expect("the controller taken back");
        }
        result.expect("dividing the group");
        assert!(members.expect("the leaf").lines().any(|pid| pid == std::process::id().to_string()));
        assert_eq!(left, [true; 2], "groups were left behind");
    }

    const MOMENT: std::time::Duration = std::time::Duration::from_millis(20);

    /// Moves this process into a new group, divides that, and moves back.
    fn divide(
        top: &Path,
        controller: &str,
        home: &Path,
        number: u32,
    ) -> (Result<(), Error>, io::Result<String>, [bool; 2]) {
        let group = top.join(format!("jail-test-{}-{number}", std::process::id()));
        let itself = std::process::id().to_string();
        fs::create_dir(&group).expect("a group");
        write(&group.join("cgroup.procs"), &itself).expect("moving in");
        let result = enable(&group, &[controller]);
        let members = fs::read_to_string(group.join(HOST_LEAF).join("cgroup.procs"));
        write(&home.join("cgroup.procs"), &itself).expect("moving back");
        let gone = |path: &Path| {
            (0..250).any(|_| {
                let gone = fs::remove_dir(path).is_ok() || !path.exists();
                if !gone {
                    std::thread::sleep(MOMENT);
                }
                gone
            })
        };
        let left = [gone(&group.join(HOST_LEAF)), gone(&group)];
        (result, members, left)
    }
}

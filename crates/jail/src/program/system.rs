//! The system that programs expect around them, without what only administrators need.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Content, Mount};

/// On some hosts folders, on others links into `/usr`.
const ROOTS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What programs read of the host's settings: where libraries, certificates, time zones and alternatives are, and what
/// numbers mean. Nothing of users, keys, networks or services.
const SETTINGS: [&str; 19] = [
    "/etc/alternatives",
    "/etc/ca-certificates/extracted",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/ld.so.cache",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];

/// Who is there: the user of the jail, and `nobody` where there are no user namespaces.
const PASSWD: &str = "user:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/home/user:/bin/sh\n";
const GROUP: &str = "user:x:1000:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost compartment\n::1 localhost\n";
/// Names come from `/etc/hosts` alone; whatever leaves the jail does so by name, through a proxy.
const NAMES: &str = "passwd: files\ngroup: files\nhosts: files\nnetworks: files\nprotocols: files\nservices: files\n";

/// Programs that change the system or become someone else. They could do neither; without them nobody tries.
const HIDDEN: [&str; 40] = [
    "apk",
    "apt",
    "apt-cache",
    "apt-get",
    "apt-key",
    "apt-mark",
    "aptitude",
    "chfn",
    "chroot",
    "chsh",
    "dnf",
    "doas",
    "dpkg",
    "dpkg-deb",
    "dpkg-query",
    "flatpak",
    "fusermount",
    "fusermount3",
    "gpasswd",
    "insmod",
    "modprobe",
    "mount",
    "newgidmap",
    "newgrp",
    "newuidmap",
    "nsenter",
    "pacman",
    "passwd",
    "pivot_root",
    "pkexec",
    "rpm",
    "snap",
    "su",
    "sudo",
    "sudoedit",
    "umount",
    "unix_chkpwd",
    "unshare",
    "yum",
    "zypper",
];

const FOLDERS: [&str; 8] = [
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/bin",
    "/sbin",
    "/usr/lib/openssh",
    "/usr/lib/dbus-1.0",
];

/// The mounts of a read-only system: the host's `/usr` with what belongs to it, settings that tell nothing of the host,
/// and these `toolchains`, folders of the host with more programs, each at its own path.
///
/// Set-user-id programs and those that manage packages, mounts and users are hidden. It has neither `/proc` nor `/dev`,
/// nor any place to write to. It looks through some folders; who starts many programs keeps the result.
pub fn system(toolchains: &[PathBuf]) -> Vec<Mount> {
    let mut mounts = vec![host(Path::new("/usr"), true)];
    mounts.extend(ROOTS.iter().filter_map(|root| as_on_the_host(Path::new(root), true)));
    let settings = SETTINGS.iter().filter_map(|path| as_on_the_host(Path::new(path), false));
    mounts.extend(settings);
    let texts = [
        ("/etc/passwd", PASSWD),
        ("/etc/group", GROUP),
        ("/etc/hosts", HOSTS),
        ("/etc/nsswitch.conf", NAMES),
        ("/etc/resolv.conf", ""),
    ];
    mounts.extend(texts.map(|(target, text)| mount(Path::new(target), Content::Text { bytes: text.into() })));
    let elsewhere = toolchains.iter().filter(|folder| !mounts.iter().any(|mount| folder.starts_with(&mount.target)));
    let elsewhere: Vec<Mount> = elsewhere.map(|folder| host(folder, true)).collect();
    mounts.extend(elsewhere);
    let hidden: Vec<Mount> = hidden(&mounts);
    mounts.extend(hidden);
    mounts
}

/// A link stays a link, when it leads to something that is shown; all else is shown as it is.
fn as_on_the_host(path: &Path, executable: bool) -> Option<Mount> {
    match fs::read_link(path) {
        Ok(to) if fs::canonicalize(path).is_ok_and(|found| found.starts_with("/usr")) => {
            Some(mount(path, Content::Link { to }))
        }
        _ => path.exists().then(|| host(path, executable)),
    }
}

fn host(path: &Path, executable: bool) -> Mount {
    mount(path, Content::Host { source: path.to_owned(), executable })
}

fn mount(target: &Path, content: Content) -> Mount {
    Mount { target: target.to_owned(), content }
}

/// Files in the usual folders, under the names that they have below what is mounted.
fn hidden(mounts: &[Mount]) -> Vec<Mount> {
    const SET_ID: u32 = 0o6000;
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().filter_map(Result::ok) {
        let named = entry.file_name().to_str().is_some_and(|name| HIDDEN.contains(&name));
        // Not through links: one program may have many names, and harmless ones among them.
        let file = entry.metadata().ok().filter(fs::Metadata::is_file);
        if file.is_some_and(|file| named || file.permissions().mode() & SET_ID != 0) {
            found.extend(entry.path().canonicalize());
        }
    }
    found.sort_unstable();
    found.dedup();
    let shown = |path: &PathBuf| {
        let around = |mount: &&Mount| matches!(mount.content, Content::Host { .. }) && path.starts_with(&mount.target);
        mounts.iter().any(|mount| around(&mount))
    };
    found.into_iter().filter(shown).map(|path| mount(&path, Content::Hidden)).collect()
}

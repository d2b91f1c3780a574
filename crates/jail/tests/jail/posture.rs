//! What a jailed process is and can reach when no filter is in the way: every other wall by itself.

use std::fs;
use std::io;

use jail::confine::Enforced;
use jail::namespaces::{INNER_ID, NOBODY, Plan};
use jail::seccomp::{Filter, PolicyName};

use crate::compartment::{CONFINEMENT, Compartment, ask, eventually, read_byte, say, stay};

/// One fact a line, as the jailed process finds it.
fn report(enforced: Enforced) {
    let facts = [
        ("landlock", (enforced.landlock_abi > 0).to_string()),
        ("user namespace", enforced.user_namespace.to_string()),
        ("identity", identity()),
        ("pids", format!("{} {}", std::process::id(), std::os::unix::process::parent_id())),
        ("session", call(libc::SYS_getsid, 0).to_string()),
        ("capabilities", capabilities()),
        ("attributes", attributes()),
        ("open /etc/passwd", open(c"/etc/passwd", libc::O_RDONLY)),
        ("open /proc/self/status", open(c"/proc/self/status", libc::O_RDONLY)),
        ("open /", open(c"/", libc::O_RDONLY | libc::O_DIRECTORY)),
        ("open ..", open(c"..", libc::O_RDONLY | libc::O_DIRECTORY)),
        ("create /x", open(c"/x", libc::O_CREAT | libc::O_WRONLY)),
        ("root", root()),
        ("interfaces", interfaces()),
        ("connect", connect()),
        ("host name", host_name()),
        ("network namespace", outcome(|| call(libc::SYS_unshare, libc::CLONE_NEWNET.into()))),
        ("setuid 0", outcome(|| call(libc::SYS_setuid, 0))),
        ("descriptors", descriptors()),
        ("limits", limits()),
    ];
    for (name, fact) in facts {
        say(&format!("{name}: {fact}\n"));
    }
}

const EXPECTED: &str = "\
landlock: true
user namespace: true
identity: INNER INNER
pids: 1 0
session: 1
capabilities: bounding 0, ambient 0, sets [0, 0, 0, 0, 0, 0], securebits 0xeb
attributes: no_new_privs 1, dumpable 0, parent-death signal 9
open /etc/passwd: No such file or directory
open /proc/self/status: No such file or directory
open /: Permission denied
open ..: Permission denied
create /x: Read-only file system
root: read-only tmpfs with 1 inodes used
interfaces: 1 lo down
connect: Permission denied
host name: compartment
network namespace: Operation not permitted
setuid 0: ROOT
descriptors: [3]
limits: [4294967296, 268435456, 10, 64, 32, 8388608, 0, 0, 0, 0, 64, 0, 0]
";

pub fn seen_from_inside() {
    // There is no uid 0 in the user namespace.
    let expected = EXPECTED.replace("INNER", &INNER_ID.to_string()).replace("ROOT", "Invalid argument");
    compare(&ask(None, report), &expected);
}

/// Where user namespaces are denied to ordinary users, root gives up its identity inside the others.
pub fn seen_from_inside_without_user_namespace() {
    let plan = Plan { user_namespace: false, drop_to: Some(NOBODY) };
    let expected = EXPECTED.replace("INNER", &NOBODY.to_string()).replace("ROOT", "Operation not permitted");
    compare(&ask(Some(plan), report), &expected.replace("user namespace: true", "user namespace: false"));
}

/// The same from the host, where nothing depends on what the jailed process says.
pub fn seen_from_outside() {
    let mut compartment = Compartment::start(None, &CONFINEMENT, |_| {
        let filter = Filter::load(PolicyName::IsolateZygote, false).expect("the zygote's policy");
        filter.install().expect("the zygote's filter");
        say(".");
        stay();
    });
    read_byte(&mut compartment.stream);
    let init = compartment.init();
    let status = fs::read_to_string(format!("/proc/{init}/status")).expect("status");
    let fact = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().replace('\t', " ")
    };
    let nobody = [NOBODY.to_string().as_str(); 4].join(" ");
    assert_eq!(fact("Uid:"), nobody);
    assert_eq!(fact("Gid:"), nobody);
    assert_eq!(fact("Groups:"), "");
    assert_eq!(fact("NSpid:"), format!("{init} 1"));
    assert_eq!(fact("NoNewPrivs:"), "1");
    assert_eq!(fact("Seccomp:"), "2");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(fact(set), "0000000000000000", "{set}");
    }
    eventually("the outer process has no capabilities", || {
        let status = fs::read_to_string(format!("/proc/{}/status", compartment.outer)).expect("status");
        status.contains("CapEff:\t0000000000000000") && status.contains("CapBnd:\t0000000000000000")
    });
    let mounts = fs::read_to_string(format!("/proc/{init}/mountinfo")).expect("mounts");
    assert_eq!(mounts.lines().count(), 1, "only the new root is mounted");
    // Only root may look into a process that is not dumpable.
    // SAFETY: geteuid has no arguments and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        for namespace in ["user", "mnt", "ipc", "uts", "cgroup", "pid", "net"] {
            let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{namespace}")).expect("namespace");
            assert_ne!(of(&init.to_string()), of("self"), "{namespace}");
        }
    } else {
        for pid in [init, compartment.outer] {
            assert!(fs::read(format!("/proc/{pid}/environ")).is_err(), "the same user can look into {pid}");
        }
    }
    let (_, exit) = compartment.finish();
    assert_eq!(exit.code, Some(0));
}

fn compare(said: &str, expected: &str) {
    for line in expected.lines() {
        assert!(said.lines().any(|found| found == line), "{line:?} is not among\n{said}");
    }
}

fn call(number: libc::c_long, argument: libc::c_long) -> libc::c_long {
    // SAFETY: the calls made here take a number.
    unsafe { libc::syscall(number, argument) }
}

fn outcome(attempt: impl FnOnce() -> libc::c_long) -> String {
    if attempt() < 0 { last_error() } else { "allowed".to_owned() }
}

/// The message without "(os error 13)".
fn last_error() -> String {
    let text = io::Error::last_os_error().to_string();
    text.split(" (").next().unwrap_or_default().to_owned()
}

fn identity() -> String {
    let (mut users, mut groups) = ([0; 3], [0; 3]);
    // SAFETY: each call writes three ids into an array of three.
    unsafe {
        libc::getresuid(&raw mut users[0], &raw mut users[1], &raw mut users[2]);
        libc::getresgid(&raw mut groups[0], &raw mut groups[1], &raw mut groups[2]);
    }
    assert!(users == [users[0]; 3] && groups == [groups[0]; 3]);
    format!("{} {}", users[0], groups[0])
}

fn prctl(option: i32, argument: libc::c_ulong) -> i32 {
    // SAFETY: the options used here take numbers.
    unsafe { libc::prctl(option, argument, 0, 0, 0) }
}

fn capabilities() -> String {
    let count = |option, first| {
        let has = |capability| match first {
            Some(first) => unsafe_prctl2(option, first, capability),
            None => prctl(option, capability),
        };
        (0..64).filter(|capability| has(*capability) == 1).count()
    };
    let mut header: [u32; 2] = [0x2008_0522, 0];
    let mut sets = [1_u32; 6];
    // SAFETY: header and sets have the kernel's layout.
    let got = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) };
    assert_eq!(got, 0);
    format!(
        "bounding {}, ambient {}, sets {sets:?}, securebits {:#x}",
        count(libc::PR_CAPBSET_READ, None),
        count(libc::PR_CAP_AMBIENT, Some(libc::PR_CAP_AMBIENT_IS_SET as libc::c_ulong)),
        prctl(libc::PR_GET_SECUREBITS, 0)
    )
}

fn unsafe_prctl2(option: i32, first: libc::c_ulong, second: libc::c_ulong) -> i32 {
    // SAFETY: the option used here takes numbers.
    unsafe { libc::prctl(option, first, second, 0, 0) }
}

fn attributes() -> String {
    let mut signal = 0;
    // SAFETY: the call writes one int.
    unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal) };
    format!(
        "no_new_privs {}, dumpable {}, parent-death signal {signal}",
        prctl(libc::PR_GET_NO_NEW_PRIVS, 0),
        prctl(libc::PR_GET_DUMPABLE, 0)
    )
}

fn open(path: &std::ffi::CStr, flags: i32) -> String {
    // SAFETY: a string with a terminating zero.
    outcome(|| unsafe { libc::open(path.as_ptr(), flags, 0o600) }.into())
}

fn root() -> String {
    // SAFETY: statfs is plain numbers, and the call fills it.
    let stat = unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        assert_eq!(libc::statfs(c"/".as_ptr(), &raw mut stat), 0);
        stat
    };
    // SAFETY: as above.
    let flags = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        assert_eq!(libc::statvfs(c"/".as_ptr(), &raw mut stat), 0);
        stat.f_flag
    };
    let kind = if stat.f_type == libc::TMPFS_MAGIC { "tmpfs" } else { "something else" };
    let mode = if flags & libc::ST_RDONLY != 0 { "read-only" } else { "writable" };
    format!("{mode} {kind} with {} inodes used", stat.f_files - stat.f_ffree)
}

/// Asks for the interfaces 1 to 8 by number, and for their state.
fn interfaces() -> String {
    // SAFETY: ifreq is plain bytes; both calls read and write one of it.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        assert!(socket >= 0);
        let mut found = Vec::new();
        for index in 1..=8 {
            let mut request: libc::ifreq = std::mem::zeroed();
            request.ifr_ifru.ifru_ifindex = index;
            if libc::ioctl(socket, libc::SIOCGIFNAME, &raw mut request) < 0 {
                continue;
            }
            let name = std::ffi::CStr::from_ptr(request.ifr_name.as_ptr()).to_owned();
            assert_eq!(libc::ioctl(socket, libc::SIOCGIFFLAGS, &raw mut request), 0);
            let up = request.ifr_ifru.ifru_flags as i32 & libc::IFF_UP != 0;
            found.push(format!("{index} {} {}", name.to_string_lossy(), if up { "up" } else { "down" }));
        }
        libc::close(socket);
        found.join(", ")
    }
}

fn connect() -> String {
    match std::net::TcpStream::connect("127.0.0.1:9") {
        Ok(_) => "allowed".to_owned(),
        Err(_) => last_error(),
    }
}

fn host_name() -> String {
    let mut name = [0_u8; 64];
    // SAFETY: the call writes at most the given length, the last byte stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
}

fn descriptors() -> String {
    // SAFETY: takes numbers only.
    let open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
    format!("{:?}", (0..1024).filter(open).collect::<Vec<_>>())
}

fn limits() -> String {
    let limit = |resource| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call writes one rlimit.
        unsafe { libc::getrlimit(resource, &raw mut limit) };
        assert_eq!(limit.rlim_cur, limit.rlim_max, "soft and hard differ");
        limit.rlim_max
    };
    let all = [
        libc::RLIMIT_AS,
        libc::RLIMIT_DATA,
        libc::RLIMIT_CPU,
        libc::RLIMIT_NOFILE,
        libc::RLIMIT_NPROC,
        libc::RLIMIT_STACK,
        libc::RLIMIT_FSIZE,
        libc::RLIMIT_CORE,
        libc::RLIMIT_MEMLOCK,
        libc::RLIMIT_MSGQUEUE,
        libc::RLIMIT_SIGPENDING,
        libc::RLIMIT_NICE,
        libc::RLIMIT_RTPRIO,
    ];
    format!("{:?}", all.map(limit))
}

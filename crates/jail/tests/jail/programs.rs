//! Programs in a jail of their own: this test binary, which the jail shows itself with the libraries that it is made of.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use jail::pidfd::PidFd;
use jail::program::{Child, Content, End, Jail, Limits, Mount, SpawnError};

use crate::compartment::{MIB, chain, children, eventually};
use crate::host::forbid_user_namespaces;

/// Tells a process of this binary that it is inside of such a jail, and what to try.
pub const PROBE: &str = "JAIL_TEST_PROBE";

const PATIENCE: Duration = Duration::from_secs(20);
const SCRATCH: u64 = MIB;
const LIMITS: Limits =
    Limits { cpu_seconds: 10, data_bytes: 512 * MIB, file_bytes: MIB / 2, open_files: 32, threads: 16 };

/// A folder with a file in it, and a secret beside it.
struct Yard {
    folder: PathBuf,
}

impl Yard {
    fn new() -> Yard {
        let folder = std::env::temp_dir().join(format!("jail-programs-{}", std::process::id()));
        fs::create_dir_all(folder.join("shown")).expect("a folder");
        fs::write(folder.join("shown/file"), "shown").expect("a file");
        fs::write(folder.join("secret"), "secret").expect("a file");
        fs::copy("/proc/self/exe", folder.join("shown/program")).expect("a program");
        std::os::unix::fs::symlink("../secret", folder.join("shown/link")).expect("a link");
        std::os::unix::fs::symlink(folder.join("secret"), folder.join("shown/absolute")).expect("a link");
        for path in ["", "shown"] {
            fs::set_permissions(folder.join(path), fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        Yard { folder }
    }

    fn jail(&self, limits: Limits) -> Jail {
        let mut mounts = vec![
            show(Path::new("/proc/self/exe"), "/probe", true),
            show(Path::new("/lib64/ld-linux-x86-64.so.2"), "/lib64/ld-linux-x86-64.so.2", true),
            show(&self.folder.join("shown"), "/shown", false),
            Mount {
                target: "/scratch".into(),
                content: Content::Scratch { bytes: SCRATCH, files: 1024, executable: false },
            },
        ];
        let maps = fs::read_to_string("/proc/self/maps").expect("the own libraries");
        let libraries: std::collections::BTreeSet<&str> = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .filter(|path| path.contains(".so"))
            .collect();
        mounts.extend(libraries.into_iter().map(|path| show(Path::new(path), path, true)));
        Jail { mounts, limits, reads_as: None }
    }

    fn start(&self, probe: &str, limits: Limits) -> Child {
        let started = self.jail(limits).spawn("/probe", &["one argument"], &[(PROBE, probe)]);
        started.unwrap_or_else(|error| panic!("{}", chain(&error)))
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn show(source: &Path, target: &str, executable: bool) -> Mount {
    Mount { target: target.into(), content: Content::Host { source: source.to_owned(), executable } }
}

/// What a probe says until its end, and the end.
fn hear(mut child: Child, memory: u64) -> (String, String, End) {
    drop(child.stdin.take());
    let (mut out, mut err) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
    let reader = std::thread::spawn(move || {
        let (mut said, mut wailed) = (String::new(), String::new());
        out.read_to_string(&mut said).expect("words");
        err.read_to_string(&mut wailed).expect("words");
        (said, wailed)
    });
    let end = child.watch(PATIENCE, memory).expect("an end");
    let (said, wailed) = reader.join().expect("the reader");
    (said, wailed, end)
}

fn code(end: End) -> Option<i32> {
    if let End::Exited(exit) = end { exit.code } else { panic!("{end:?}") }
}

pub fn see_and_reach_nothing_but_what_they_are_given() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let yard = Yard::new();
    let (said, wailed, end) = hear(yard.start("look", LIMITS), u64::MAX);
    assert_eq!(code(end), Some(0), "{said}{wailed}");
    assert_eq!(said.lines().last(), Some("the end"), "{said}{wailed}");
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").expect("mounts"), mounts, "mounts are left behind");
    assert!(children(std::process::id() as i32).is_empty(), "processes are left behind");
    assert!(!yard.folder.join("shown/new").exists());
}

pub fn have_pipes_and_give_their_status() {
    let yard = Yard::new();
    let mut child = yard.start("echo", LIMITS);
    child.stdin.take().expect("stdin").write_all(b"some words").expect("a listener");
    let (said, wailed, end) = hear(child, u64::MAX);
    assert_eq!((said.as_str(), wailed.as_str(), code(end)), ("some words", "heard", Some(7)));
}

pub fn are_what_they_seem_from_outside() {
    let yard = Yard::new();
    let child = yard.start("sleep", LIMITS);
    let [outer] = children(std::process::id() as i32)[..] else { panic!("one process") };
    let [program] = children(outer)[..] else { panic!("one program") };
    let status = fs::read_to_string(format!("/proc/{program}/status")).expect("a status");
    let field = |name: &str| {
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {status}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), ["0000000000000000"], "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    assert_eq!(field("Seccomp:"), ["2"]);
    assert_eq!(field("NSpid:")[1..], ["1"]);
    // Root gives it a uid that nobody else has; nobody has one.
    // SAFETY: geteuid has no arguments and cannot fail.
    let shared = if unsafe { libc::geteuid() } == 0 { ["0", "65534"] } else { ["0", "-"] };
    let uids = field("Uid:");
    assert!(uids.iter().all(|id| *id == uids[0] && !shared.contains(&id.as_str())), "{status}");
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
        let space = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{name}"));
        // Not everybody may look into a process that is not dumpable.
        if let Ok(theirs) = space(&program.to_string()) {
            assert_ne!(theirs, space("self").expect("own"), "{name}");
        }
    }
    // The options of each mount; only the one for scratch can be written to.
    let mounts = fs::read_to_string(format!("/proc/{program}/mountinfo")).expect("mounts");
    let options = |target: &str| {
        let fields = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let options = fields.into_iter().find(|fields| fields[4] == target).map(|fields| fields[5].to_owned());
        options.unwrap_or_else(|| panic!("{target}: {mounts}"))
    };
    for (target, wanted) in [
        ("/", "ro,nosuid,nodev,noexec"),
        ("/shown", "ro,nosuid,nodev,noexec"),
        ("/scratch", "rw,nosuid,nodev,noexec"),
        ("/probe", "ro,nosuid,nodev"),
    ] {
        let found = options(target);
        assert!(wanted.split(',').all(|one| found.split(',').any(|other| one == other)), "{target}: {found}");
    }
    assert!(child.memory() > 0);
    drop(child);
    assert!(children(std::process::id() as i32).is_empty(), "a dropped program goes on");
    assert!(!Path::new(&format!("/proc/{program}")).exists(), "a dropped program goes on");
}

pub fn end_at_their_limits() {
    let yard = Yard::new();
    let (_, _, end) = hear(yard.start("spin", Limits { cpu_seconds: 1, ..LIMITS }), u64::MAX);
    assert_eq!(code(end), Some(128 + libc::SIGKILL));
    let (said, wailed, end) = hear(yard.start("eat", LIMITS), 64 * MIB);
    assert_eq!(end, End::TooLarge, "{said}{wailed}");
    // Of a process whose first thread has ended the kernel shows nothing but the others.
    let (said, wailed, end) = hear(yard.start("eat behind", LIMITS), 64 * MIB);
    assert_eq!(end, End::TooLarge, "{said}{wailed}");
    // The kernel's own limit refuses what the watch would not see in time.
    let (said, wailed, end) = hear(yard.start("eat", Limits { data_bytes: 128 * MIB, ..LIMITS }), u64::MAX);
    assert!(code(end) > Some(128) && wailed.contains("memory allocation"), "{end:?}{said}{wailed}");
    let mut sleeper = yard.start("sleep", LIMITS);
    assert_eq!(sleeper.watch(Duration::from_millis(50), u64::MAX).expect("an end"), End::TooLong);
    let (said, wailed, end) = hear(yard.start("threads", LIMITS), u64::MAX);
    assert_eq!((said.as_str(), code(end)), ("16", Some(0)), "{wailed}");
}

pub fn outlive_the_thread_and_not_the_process_that_started_them() {
    let yard = Yard::new();
    let limits = LIMITS;
    let child = std::thread::scope(|scope| scope.spawn(|| yard.start("echo", limits)).join().expect("a thread"));
    std::thread::sleep(Duration::from_millis(50));
    let (_, _, end) = hear(child, u64::MAX);
    assert_eq!(code(end), Some(7));

    // SAFETY: no other thread runs by now.
    let host = unsafe { libc::fork() };
    if host == 0 {
        let _child = yard.start("sleep", limits);
        loop {
            std::thread::sleep(PATIENCE);
        }
    }
    assert!(host > 0);
    let program = || children(host).first().and_then(|outer| children(*outer).first().copied());
    eventually("the program is there", || program().is_some_and(|pid| name(pid).as_deref() == Some("probe")));
    let (outer, program) = (children(host)[0], program().expect("a program"));
    PidFd::open(host).expect("a process").kill().expect("a kill");
    jail::process::wait(host).expect("an end");
    for pid in [outer, program] {
        eventually("all of it is gone", || name(pid).is_none());
    }
}

fn name(pid: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

pub fn start_from_many_threads_at_once() {
    let yard = Yard::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let (said, wailed, end) = hear(yard.start("echo", LIMITS), u64::MAX);
                    assert_eq!((said.as_str(), code(end)), ("", Some(7)), "{wailed}");
                }
            });
        }
    });
}

pub fn that_cannot_be_jailed_do_not_start() {
    let yard = Yard::new();
    let refusal = |change: fn(&mut Jail), program: &str| {
        let mut jail = yard.jail(LIMITS);
        change(&mut jail);
        chain(&jail.spawn(program, &[], &[]).map(drop).expect_err("started"))
    };
    assert!(refusal(|_| (), "/missing").contains("cannot start the program"));
    assert!(refusal(|_| (), "/shown/program").contains("Permission denied"));
    assert!(refusal(|_| (), "/pro\0be").contains("zero byte"));
    let plain = "the path is not absolute and plain";
    assert!(refusal(|jail| jail.mounts[0].target = "../etc".into(), "/probe").contains(plain));
    assert!(refusal(|jail| jail.mounts[0].target = "/a/../etc".into(), "/probe").contains(plain));
    assert!(refusal(|jail| jail.mounts[0].target = "/".into(), "/probe").contains(plain));
    assert!(refusal(|jail| jail.mounts[0].target = "/shown/x".into(), "/probe").contains("something else"));
    assert!(refusal(|jail| jail.mounts.push(show(Path::new("/none"), "/n", false)), "/probe").contains("no such file"));
    assert!(refusal(|jail| jail.mounts.push(show(Path::new("/dev/null"), "/n", false)), "/probe").contains("neither"));
    assert!(children(std::process::id() as i32).is_empty(), "processes are left behind");
}

/// Root has another way in; nobody has none, and then nothing runs.
pub fn need_user_namespaces_unless_root_starts_them() {
    let yard = Yard::new();
    forbid_user_namespaces();
    let (said, wailed, end) = hear(yard.start("look", LIMITS), u64::MAX);
    assert_eq!((said.lines().last(), code(end)), (Some("the end"), Some(0)), "{said}{wailed}");
    let jail = yard.jail(LIMITS);
    // It goes when nobody is left to remove it.
    for folder in ["", "shown"] {
        std::os::unix::fs::chown(yard.folder.join(folder), Some(65534), Some(65534)).expect("another owner");
    }
    crate::host::become_nobody();
    match jail.spawn("/probe", &[], &[(PROBE, "echo")]) {
        Err(SpawnError::Build(why)) => assert!(why.contains("user namespace"), "{why}"),
        other => panic!("{other:?}"),
    }
}

fn eat() {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    for _ in 0..400 {
        eaten.push(vec![1; MIB as usize]);
        std::thread::sleep(Duration::from_millis(1));
    }
    std::hint::black_box(&eaten);
}

pub fn probe(name: &str) -> ExitCode {
    match name {
        "echo" => {
            let mut words = Vec::new();
            std::io::stdin().read_to_end(&mut words).expect("words");
            std::io::stdout().write_all(&words).expect("a listener");
            std::io::stderr().write_all(b"heard").expect("a listener");
            return ExitCode::from(7);
        }
        "sleep" => std::thread::sleep(Duration::from_secs(600)),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "eat" => eat(),
        "eat behind" => {
            std::thread::spawn(|| {
                eat();
                std::process::exit(0);
            });
            // SAFETY: takes a number only. It ends this thread alone.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        "threads" => {
            let more = || std::thread::Builder::new().spawn(|| std::thread::sleep(Duration::from_secs(5))).ok();
            print!("{}", 1 + std::iter::from_fn(more).take(100).count());
            std::io::stdout().flush().expect("a listener");
        }
        "look" => crate::look::look(),
        other => panic!("no probe `{other}`"),
    }
    ExitCode::SUCCESS
}

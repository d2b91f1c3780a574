//! System calls to try under a filter, each with who may get away with it.

use std::ptr;

#[derive(Debug, Clone, Copy)]
pub enum Spared {
    Never,
    Always,
    WithJit,
    Zygote,
}

pub struct Attempt {
    pub name: &'static str,
    pub spared: Spared,
    pub run: fn(),
}

/// The raw call. Whether it fails does not matter: the filter decides before the kernel looks at an argument.
macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        // SAFETY: pointers are null, or to memory that lives through the call; the process ends right after.
        unsafe { libc::syscall($number $(, $argument as libc::c_long)*) }
    }};
}

macro_rules! attempts {
    ($($spared:ident { $($name:literal => $call:expr,)* })*) => {
        &[$($(Attempt {
            name: $name,
            spared: Spared::$spared,
            run: || {
                let _ = $call;
            },
        },)*)*]
    };
}

const PAGE: usize = 4096;
const ANONYMOUS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const EXECUTE: i32 = libc::PROT_READ | libc::PROT_EXEC;

fn map(protection: i32, flags: i32) -> libc::c_long {
    call!(libc::SYS_mmap, 0, PAGE, protection, flags, -1, 0)
}

fn path(path: &'static std::ffi::CStr) -> *const libc::c_char {
    path.as_ptr()
}

fn socket(family: i32, kind: i32) -> libc::c_long {
    call!(libc::SYS_socket, family, kind, 0)
}

fn clone(flags: i32) -> libc::c_long {
    call!(libc::SYS_clone, flags, 0, 0, 0, 0)
}

fn clone3() -> libc::c_long {
    let mut arguments = [0_u64; 11];
    arguments[4] = libc::SIGCHLD as u64;
    call!(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments))
}

/// Shaped as the zygote's policy allows it: the parent-death signal is not the child's to set.
fn fork_as_the_zygote_does() -> libc::c_long {
    let mut pidfd = 0;
    let pid = call!(libc::SYS_clone, jail::process::FORK_FLAGS, 0, &raw mut pidfd, 0, 0);
    if pid == 0 {
        jail::process::exit_now(0);
    }
    pid
}

fn limit(resource: u32, pid: i32) -> libc::c_long {
    let wanted = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 40 };
    call!(libc::SYS_prlimit64, pid, resource, &raw const wanted, 0)
}

fn timer(which: i32) -> libc::c_long {
    let off = [0_u64; 4];
    call!(libc::SYS_setitimer, which, off.as_ptr(), 0)
}

fn wait_for(descriptors: usize, mask: *const u64) -> libc::c_long {
    let mut polls = [libc::pollfd { fd: 3, events: libc::POLLIN, revents: 0 }; 2];
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    call!(libc::SYS_ppoll, polls.as_mut_ptr(), descriptors, &raw const no_time, mask, 8)
}

fn clock(id: i32) -> libc::c_long {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    call!(libc::SYS_clock_gettime, id, &raw mut time)
}

fn usage(who: i32) -> libc::c_long {
    let mut usage = [0_u64; 32];
    call!(libc::SYS_getrusage, who, usage.as_mut_ptr())
}

fn futex(operation: i32) -> libc::c_long {
    let word = 0_u32;
    call!(libc::SYS_futex, &raw const word, operation, 1, 0, 0, 0)
}

fn advise(advice: i32) -> libc::c_long {
    call!(libc::SYS_madvise, map(READ_WRITE, ANONYMOUS), PAGE, advice)
}

fn handler_ignoring(signal: i32) -> libc::c_long {
    let action = [libc::SIG_IGN, 0, 0, 0];
    call!(libc::SYS_rt_sigaction, signal, action.as_ptr(), 0, 8)
}

fn filter_that_allows(flags: u64) -> libc::c_long {
    let allow = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let program = libc::sock_fprog { len: 1, filter: (&raw const allow).cast_mut() };
    call!(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
}

#[cfg(target_arch = "x86_64")]
fn as_x32() -> libc::c_long {
    call!(libc::SYS_getpid | 0x4000_0000)
}

/// The 32-bit entry of the kernel, where 20 is getpid.
#[cfg(target_arch = "x86_64")]
fn as_i386() {
    // SAFETY: the instruction enters the kernel and changes no register but rax (and r8 to r11, which it may clear).
    unsafe {
        std::arch::asm!(
            "int 0x80", inout("rax") 20_u64 => _, out("r8") _, out("r9") _, out("r10") _, out("r11") _
        );
    }
}

pub const ATTEMPTS: &[Attempt] = attempts! {
    Never {
        // Files and mounts.
        "open" => call!(libc::SYS_openat, libc::AT_FDCWD, path(c"/etc/passwd"), libc::O_RDONLY),
        "openat2" => call!(libc::SYS_openat2, libc::AT_FDCWD, path(c"/"), ptr::null::<u8>(), 24),
        "open_by_handle_at" => call!(libc::SYS_open_by_handle_at, libc::AT_FDCWD, ptr::null::<u8>(), 0),
        "create" => call!(libc::SYS_openat, libc::AT_FDCWD, path(c"/x"), libc::O_CREAT | libc::O_WRONLY, 0o600),
        "mkdir" => call!(libc::SYS_mkdirat, libc::AT_FDCWD, path(c"/x"), 0o700),
        "unlink" => call!(libc::SYS_unlinkat, libc::AT_FDCWD, path(c"/x"), 0),
        "readlink" => call!(libc::SYS_readlinkat, libc::AT_FDCWD, path(c"/proc/self/exe"), 0, 0),
        "stat" => call!(libc::SYS_newfstatat, libc::AT_FDCWD, path(c"/"), 0, 0),
        "statx" => call!(libc::SYS_statx, libc::AT_FDCWD, path(c"/"), 0, 0, 0),
        "getdents" => call!(libc::SYS_getdents64, 3, 0, 0),
        "getcwd" => call!(libc::SYS_getcwd, 0, 0),
        "chdir" => call!(libc::SYS_chdir, path(c"/")),
        "chroot" => call!(libc::SYS_chroot, path(c".")),
        "mount" => call!(libc::SYS_mount, path(c"p"), path(c"/"), path(c"proc"), 0, 0),
        "umount" => call!(libc::SYS_umount2, path(c"/"), libc::MNT_DETACH),
        "pivot_root" => call!(libc::SYS_pivot_root, path(c"."), path(c".")),
        "fsopen" => call!(libc::SYS_fsopen, path(c"proc"), 0),
        "open_tree" => call!(libc::SYS_open_tree, libc::AT_FDCWD, path(c"/"), 1),
        "ioctl" => call!(libc::SYS_ioctl, 3, libc::TIOCSTI, 0),
        "duplicate a descriptor" => call!(libc::SYS_fcntl, 3, libc::F_DUPFD, 10),
        "pipe" => call!(libc::SYS_pipe2, 0, 0),
        "sendfile" => call!(libc::SYS_sendfile, 3, 3, 0, 1),
        "inotify" => call!(libc::SYS_inotify_init1, 0),
        "epoll" => call!(libc::SYS_epoll_create1, 0),
        // Namespaces and identity.
        "unshare a user namespace" => call!(libc::SYS_unshare, libc::CLONE_NEWUSER),
        "setns" => call!(libc::SYS_setns, 3, 0),
        "setuid" => call!(libc::SYS_setuid, 0),
        "setresuid" => call!(libc::SYS_setresuid, 0, 0, 0),
        "setgroups" => call!(libc::SYS_setgroups, 0, 0),
        "capset" => call!(libc::SYS_capset, 0, 0),
        // Network.
        "socket inet" => socket(libc::AF_INET, libc::SOCK_STREAM),
        "socket inet6" => socket(libc::AF_INET6, libc::SOCK_DGRAM),
        "socket unix" => socket(libc::AF_UNIX, libc::SOCK_STREAM),
        "socket netlink" => socket(libc::AF_NETLINK, libc::SOCK_RAW),
        "socket packet" => socket(libc::AF_PACKET, libc::SOCK_RAW),
        "socket vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM),
        "socket alg" => socket(libc::AF_ALG, libc::SOCK_SEQPACKET),
        "socket bluetooth" => socket(libc::AF_BLUETOOTH, libc::SOCK_RAW),
        "socketpair" => call!(libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM, 0, 0),
        "connect" => call!(libc::SYS_connect, 3, 0, 0),
        "bind" => call!(libc::SYS_bind, 3, 0, 0),
        "accept" => call!(libc::SYS_accept4, 3, 0, 0, 0),
        "sendto" => call!(libc::SYS_sendto, 3, 0, 0, 0, 0, 0),
        "recvfrom" => call!(libc::SYS_recvfrom, 3, 0, 0, libc::MSG_DONTWAIT, 0, 0),
        "setsockopt" => call!(libc::SYS_setsockopt, 3, libc::SOL_SOCKET, libc::SO_PASSCRED, 0, 0),
        // Other processes.
        "kill everyone" => call!(libc::SYS_kill, -1, 0),
        "tgkill" => call!(libc::SYS_tgkill, 1, 1, 0),
        "ptrace" => call!(libc::SYS_ptrace, libc::PTRACE_ATTACH, 1, 0, 0),
        "process_vm_readv" => call!(libc::SYS_process_vm_readv, 1, 0, 0, 0, 0, 0),
        "process_vm_writev" => call!(libc::SYS_process_vm_writev, 1, 0, 0, 0, 0, 0),
        "pidfd_open" => call!(libc::SYS_pidfd_open, 1, 0),
        "pidfd_getfd" => call!(libc::SYS_pidfd_getfd, 3, 0, 0),
        "pidfd_send_signal" => call!(libc::SYS_pidfd_send_signal, 3, libc::SIGKILL, 0, 0),
        "execve" => call!(libc::SYS_execve, path(c"/bin/sh"), 0, 0),
        "execveat" => call!(libc::SYS_execveat, 3, path(c""), 0, 0, libc::AT_EMPTY_PATH),
        "fork" => clone(libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD),
        "vfork" => clone(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD),
        "thread" => clone(libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD),
        "clone into a user namespace" => clone(libc::CLONE_NEWUSER | libc::CLONE_PIDFD | libc::SIGCHLD),
        "clone as a sibling" => clone(libc::CLONE_PARENT | libc::CLONE_PIDFD | libc::SIGCHLD),
        "clone3" => clone3(),
        "setsid" => call!(libc::SYS_setsid),
        "its own CPU clock" => clock(libc::CLOCK_PROCESS_CPUTIME_ID),
        "its thread's CPU clock" => clock(libc::CLOCK_THREAD_CPUTIME_ID),
        "write to another descriptor" => call!(libc::SYS_write, 1, 0, 0),
        "read from another descriptor" => call!(libc::SYS_read, 4, 0, 0),
        "send out of band" => call!(libc::SYS_sendmsg, 3, 0, libc::MSG_NOSIGNAL | libc::MSG_OOB),
        "receive out of band" => call!(libc::SYS_recvmsg, 3, 0, libc::MSG_CMSG_CLOEXEC | libc::MSG_OOB),
        "look at what was sent" => call!(libc::SYS_recvmsg, 3, 0, libc::MSG_CMSG_CLOEXEC | libc::MSG_PEEK),
        "send over another descriptor" => call!(libc::SYS_sendmsg, 4, 0, libc::MSG_NOSIGNAL),
        "wait for clones" => call!(libc::SYS_wait4, -1, 0, libc::__WALL, 0),
        "return from a signal" => call!(libc::SYS_rt_sigreturn),
        "clock of another process" => clock((!1 << 3) | 2),
        "usage of children" => usage(libc::RUSAGE_CHILDREN),
        // Memory.
        "map writable and executable with a key" =>
            call!(libc::SYS_pkey_mprotect, map(READ_WRITE, ANONYMOUS), PAGE, EXECUTE, -1),
        "map shared" => map(READ_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS),
        "map a descriptor" => call!(libc::SYS_mmap, 0, PAGE, libc::PROT_READ, libc::MAP_PRIVATE, 3, 0),
        "map beyond the data limit" => map(READ_WRITE, ANONYMOUS | libc::MAP_GROWSDOWN),
        "map huge pages" => map(READ_WRITE, ANONYMOUS | libc::MAP_HUGETLB),
        "map locked" => map(READ_WRITE, ANONYMOUS | libc::MAP_LOCKED),
        "remap to an address" => call!(
            libc::SYS_mremap, map(READ_WRITE, ANONYMOUS), PAGE, PAGE, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, PAGE
        ),
        "keep memory from children" => advise(libc::MADV_DONTFORK),
        "merge memory" => advise(libc::MADV_MERGEABLE),
        "mlock" => call!(libc::SYS_mlock, 0, 0),
        "memfd" => call!(libc::SYS_memfd_create, path(c"x"), 0),
        "secret memory" => call!(libc::SYS_memfd_secret, 0),
        "shmget" => call!(libc::SYS_shmget, libc::IPC_PRIVATE, PAGE, 0o1600),
        "message queue" => call!(libc::SYS_mq_open, path(c"x"), libc::O_CREAT, 0o600, 0),
        "process_madvise" => call!(libc::SYS_process_madvise, 3, 0, 0, 0, 0),
        "userfaultfd" => call!(libc::SYS_userfaultfd, 1),
        "futex with priority inheritance" => futex(libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG),
        "futex requeue" => futex(libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG),
        "futex shared" => futex(libc::FUTEX_WAKE),
        // The kernel itself.
        "io_uring" => call!(libc::SYS_io_uring_setup, 4, 0),
        "bpf" => call!(libc::SYS_bpf, 0, 0, 0),
        "perf" => call!(libc::SYS_perf_event_open, 0, 0, -1, -1, 0),
        "add_key" => call!(libc::SYS_add_key, path(c"user"), path(c"x"), 0, 0, -1),
        "keyctl" => call!(libc::SYS_keyctl, 0, -3, 0),
        "personality" => call!(libc::SYS_personality, libc::READ_IMPLIES_EXEC),
        "syslog" => call!(libc::SYS_syslog, 3, 0, 0),
        "reboot" => call!(libc::SYS_reboot, 0, 0, 0, 0),
        "init_module" => call!(libc::SYS_init_module, 0, 0, 0),
        "kexec" => call!(libc::SYS_kexec_load, 0, 0, 0, 0),
        "landlock" => call!(libc::SYS_landlock_create_ruleset, 0, 0, 1),
        "uname" => call!(libc::SYS_uname, 0),
        "sysinfo" => call!(libc::SYS_sysinfo, 0),
        // Its own limits and signals.
        "raise the descriptor limit" => limit(libc::RLIMIT_NOFILE, 0),
        "limit another process" => limit(libc::RLIMIT_DATA, 1),
        "priority" => call!(libc::SYS_setpriority, 0, 0, -20),
        "scheduler" => call!(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, 0),
        "affinity" => call!(libc::SYS_sched_setaffinity, 0, 0, 0),
        "real timer" => timer(libc::ITIMER_REAL),
        "posix timer" => call!(libc::SYS_timer_create, 0, 0, 0),
        "ignore the CPU timer" => handler_ignoring(libc::SIGPROF),
        "block signals" => call!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, 0, 8),
        "mask signals while waiting" => wait_for(1, &u64::MAX),
        "wait for two descriptors" => wait_for(2, ptr::null()),
        "survive the parent" => call!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, 0),
        "become dumpable" => call!(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 1),
        "rename" => call!(libc::SYS_prctl, libc::PR_SET_NAME, path(c"init")),
        "listen to a filter" => filter_that_allows(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER),
        "sleep" => call!(libc::SYS_clock_nanosleep, 0, 0, 0, 0),
        "number outside the table" => call!(100_000),
    }
    WithJit {
        "map writable and executable" => map(READ_WRITE | libc::PROT_EXEC, ANONYMOUS),
        "map executable" => map(EXECUTE, ANONYMOUS),
        "make memory executable" => call!(libc::SYS_mprotect, map(READ_WRITE, ANONYMOUS), PAGE, EXECUTE),
    }
    Zygote {
        "sendmsg" => call!(libc::SYS_sendmsg, 3, 0, libc::MSG_NOSIGNAL),
        "recvmsg" => call!(libc::SYS_recvmsg, 3, 0, libc::MSG_CMSG_CLOEXEC),
        "close" => call!(libc::SYS_close, 4),
        "close_range" => call!(libc::SYS_close_range, 4, 5, 0),
        "dup3" => call!(libc::SYS_dup3, 3, 4, 0),
        "look at a descriptor" => call!(libc::SYS_fcntl, 3, libc::F_GETFD, 0),
        "fork as the zygote does" => fork_as_the_zygote_does(),
        "wait4" => call!(libc::SYS_wait4, -1, 0, libc::WNOHANG, 0),
        "getppid" => call!(libc::SYS_getppid),
        "die with the parent" => call!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        "limit its own data" => limit(libc::RLIMIT_DATA, 0),
        "add a filter" => filter_that_allows(libc::SECCOMP_FILTER_FLAG_TSYNC),
        "disarm the CPU timer" => timer(libc::ITIMER_PROF),
    }
};

/// What even a sealed child may do.
pub const ALLOWED: &[Attempt] = attempts! {
    Always {
        "map, move and unmap" => {
            let page = map(READ_WRITE, ANONYMOUS | libc::MAP_NORESERVE);
            let moved = call!(libc::SYS_mremap, page, PAGE, 2 * PAGE, libc::MREMAP_MAYMOVE);
            call!(libc::SYS_munmap, moved, 2 * PAGE)
        },
        "make memory read-only" => call!(libc::SYS_mprotect, map(READ_WRITE, ANONYMOUS), PAGE, libc::PROT_READ),
        "grow the heap" => call!(libc::SYS_brk, 0),
        "give pages back" => advise(libc::MADV_DONTNEED),
        "give pages back lazily" => advise(libc::MADV_FREE),
        "read the request" => call!(libc::SYS_read, 3, 0, 0),
        "write the reply" => call!(libc::SYS_write, 3, 0, 0),
        "wait for the host" => wait_for(1, ptr::null()),
        "randomness" => call!(libc::SYS_getrandom, 0, 0, 0),
        "wall clock" => clock(libc::CLOCK_REALTIME),
        "its own usage" => usage(libc::RUSAGE_SELF),
        "its own pid" => call!(libc::SYS_getpid),
        "unlock" => futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG),
    }
};

/// Calls through another entry of the kernel, where the numbers mean something else.
#[cfg(target_arch = "x86_64")]
pub const FOREIGN: &[Attempt] = attempts! {
    Never {
        "x32 call" => as_x32(),
        "i386 call" => as_i386(),
    }
};

#[cfg(not(target_arch = "x86_64"))]
pub const FOREIGN: &[Attempt] = &[];

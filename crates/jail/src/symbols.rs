//! The names that policy files may use, and their numbers on this architecture.

/// The number of a system call. Only those that some policy names are known.
pub(crate) fn syscall(name: &str) -> Option<i64> {
    let number = match name {
        "arch_prctl" => libc::SYS_arch_prctl,
        "brk" => libc::SYS_brk,
        "clock_gettime" => libc::SYS_clock_gettime,
        "clock_nanosleep" => libc::SYS_clock_nanosleep,
        "clone" => libc::SYS_clone,
        "close" => libc::SYS_close,
        "close_range" => libc::SYS_close_range,
        "dup3" => libc::SYS_dup3,
        "epoll_create1" => libc::SYS_epoll_create1,
        "epoll_ctl" => libc::SYS_epoll_ctl,
        "epoll_pwait" => libc::SYS_epoll_pwait,
        "eventfd2" => libc::SYS_eventfd2,
        "execve" => libc::SYS_execve,
        "exit" => libc::SYS_exit,
        "exit_group" => libc::SYS_exit_group,
        "fcntl" => libc::SYS_fcntl,
        "fstat" => libc::SYS_fstat,
        "futex" => libc::SYS_futex,
        "getcwd" => libc::SYS_getcwd,
        "getdents64" => libc::SYS_getdents64,
        "getpid" => libc::SYS_getpid,
        "getppid" => libc::SYS_getppid,
        "getrandom" => libc::SYS_getrandom,
        "getrusage" => libc::SYS_getrusage,
        "gettid" => libc::SYS_gettid,
        "lseek" => libc::SYS_lseek,
        "madvise" => libc::SYS_madvise,
        "mmap" => libc::SYS_mmap,
        "mprotect" => libc::SYS_mprotect,
        "mremap" => libc::SYS_mremap,
        "munmap" => libc::SYS_munmap,
        "nanosleep" => libc::SYS_nanosleep,
        "newfstatat" => libc::SYS_newfstatat,
        "openat" => libc::SYS_openat,
        "pipe2" => libc::SYS_pipe2,
        "poll" => libc::SYS_poll,
        "ppoll" => libc::SYS_ppoll,
        "prctl" => libc::SYS_prctl,
        "pread64" => libc::SYS_pread64,
        "prlimit64" => libc::SYS_prlimit64,
        "read" => libc::SYS_read,
        "readlinkat" => libc::SYS_readlinkat,
        "readv" => libc::SYS_readv,
        "recvmsg" => libc::SYS_recvmsg,
        "restart_syscall" => libc::SYS_restart_syscall,
        "rseq" => libc::SYS_rseq,
        "rt_sigaction" => libc::SYS_rt_sigaction,
        "rt_sigprocmask" => libc::SYS_rt_sigprocmask,
        "rt_sigreturn" => libc::SYS_rt_sigreturn,
        "sched_getaffinity" => libc::SYS_sched_getaffinity,
        "sched_yield" => libc::SYS_sched_yield,
        "seccomp" => libc::SYS_seccomp,
        "sendmsg" => libc::SYS_sendmsg,
        "set_robust_list" => libc::SYS_set_robust_list,
        "set_tid_address" => libc::SYS_set_tid_address,
        "setitimer" => libc::SYS_setitimer,
        "sigaltstack" => libc::SYS_sigaltstack,
        "statx" => libc::SYS_statx,
        "tgkill" => libc::SYS_tgkill,
        "wait4" => libc::SYS_wait4,
        "write" => libc::SYS_write,
        "writev" => libc::SYS_writev,
        _ => return None,
    };
    Some(number)
}

macro_rules! constants {
    ($($name:ident)*) => {
        /// The value of a constant, as the kernel's headers name it.
        pub(crate) fn constant(name: &str) -> Option<u64> {
            match name {
                $(stringify!($name) => Some(libc::$name as u64),)*
                _ => None,
            }
        }
    };
}

constants! {
    CLONE_CHILD_CLEARTID CLONE_CHILD_SETTID CLONE_DETACHED CLONE_FILES CLONE_FS CLONE_PARENT_SETTID CLONE_PIDFD
    CLONE_SETTLS CLONE_SIGHAND CLONE_SYSVSEM CLONE_THREAD CLONE_VM F_GETFD
    FUTEX_CLOCK_REALTIME FUTEX_PRIVATE_FLAG FUTEX_WAIT FUTEX_WAIT_BITSET FUTEX_WAKE
    ITIMER_PROF MADV_DONTNEED MADV_FREE
    MAP_ANONYMOUS MAP_DENYWRITE MAP_FIXED MAP_FIXED_NOREPLACE MAP_NORESERVE MAP_PRIVATE MAP_SHARED MAP_STACK MREMAP_MAYMOVE
    PROT_EXEC PROT_READ PROT_WRITE PR_SET_PDEATHSIG
    RLIMIT_DATA RUSAGE_SELF SECCOMP_FILTER_FLAG_TSYNC SECCOMP_SET_MODE_FILTER SIGCHLD SIGKILL
}

//! The names that policy files may use, and their numbers on this architecture.

/// The number of a system call. Only those that some policy names are known.
pub(crate) fn syscall(name: &str) -> Option<i64> {
    let number = match name {
        "brk" => libc::SYS_brk,
        "clock_gettime" => libc::SYS_clock_gettime,
        "clone" => libc::SYS_clone,
        "close" => libc::SYS_close,
        "close_range" => libc::SYS_close_range,
        "dup3" => libc::SYS_dup3,
        "exit_group" => libc::SYS_exit_group,
        "fcntl" => libc::SYS_fcntl,
        "futex" => libc::SYS_futex,
        "getpid" => libc::SYS_getpid,
        "getppid" => libc::SYS_getppid,
        "getrandom" => libc::SYS_getrandom,
        "getrusage" => libc::SYS_getrusage,
        "madvise" => libc::SYS_madvise,
        "mmap" => libc::SYS_mmap,
        "mprotect" => libc::SYS_mprotect,
        "mremap" => libc::SYS_mremap,
        "munmap" => libc::SYS_munmap,
        "ppoll" => libc::SYS_ppoll,
        "prctl" => libc::SYS_prctl,
        "prlimit64" => libc::SYS_prlimit64,
        "read" => libc::SYS_read,
        "recvmsg" => libc::SYS_recvmsg,
        "rt_sigreturn" => libc::SYS_rt_sigreturn,
        "seccomp" => libc::SYS_seccomp,
        "sendmsg" => libc::SYS_sendmsg,
        "setitimer" => libc::SYS_setitimer,
        "wait4" => libc::SYS_wait4,
        "write" => libc::SYS_write,
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
    CLONE_PIDFD F_GETFD
    FUTEX_CLOCK_REALTIME FUTEX_PRIVATE_FLAG FUTEX_WAIT FUTEX_WAIT_BITSET FUTEX_WAKE
    ITIMER_PROF MADV_DONTNEED MADV_FREE
    MAP_ANONYMOUS MAP_FIXED MAP_FIXED_NOREPLACE MAP_NORESERVE MAP_PRIVATE MAP_SHARED MREMAP_MAYMOVE
    PROT_EXEC PROT_READ PROT_WRITE PR_SET_PDEATHSIG
    RLIMIT_DATA RUSAGE_SELF SECCOMP_FILTER_FLAG_TSYNC SECCOMP_SET_MODE_FILTER SIGCHLD SIGKILL
}

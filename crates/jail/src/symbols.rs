//! The names that policy files may use, and their numbers on this architecture.

macro_rules! calls {
    ($($name:ident)*) => {
        /// The number of a system call. Only those that some policy names are known.
        pub(crate) fn syscall(name: &str) -> Option<i64> {
            match ["SYS_", name].concat().as_str() {
                $(stringify!($name) => Some(libc::$name),)*
                _ => None,
            }
        }
    };
}

calls! {
    SYS_accept SYS_accept4 SYS_access SYS_alarm SYS_arch_prctl SYS_bind SYS_brk SYS_capget SYS_chdir SYS_chmod
    SYS_chown SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_clone SYS_close SYS_close_range SYS_connect
    SYS_copy_file_range SYS_creat SYS_dup SYS_dup2 SYS_dup3 SYS_epoll_create SYS_epoll_create1 SYS_epoll_ctl
    SYS_epoll_pwait SYS_epoll_pwait2 SYS_epoll_wait SYS_eventfd SYS_eventfd2 SYS_execve SYS_execveat SYS_exit
    SYS_exit_group SYS_faccessat SYS_faccessat2 SYS_fadvise64 SYS_fallocate SYS_fchdir SYS_fchmod SYS_fchmodat
    SYS_fchmodat2 SYS_fchown SYS_fchownat SYS_fcntl SYS_fdatasync SYS_fgetxattr SYS_flistxattr SYS_flock SYS_fork
    SYS_fremovexattr SYS_fsetxattr SYS_fstat SYS_fstatfs SYS_fsync SYS_ftruncate SYS_futex SYS_futimesat
    SYS_get_mempolicy SYS_getcpu SYS_getcwd SYS_getdents SYS_getdents64 SYS_getegid SYS_geteuid SYS_getgid
    SYS_getgroups SYS_getitimer SYS_getpeername SYS_getpgid SYS_getpgrp SYS_getpid SYS_getppid SYS_getpriority
    SYS_getrandom SYS_getresgid SYS_getresuid SYS_getrlimit SYS_getrusage SYS_getsid SYS_getsockname SYS_getsockopt
    SYS_gettid SYS_gettimeofday SYS_getuid SYS_getxattr SYS_inotify_add_watch SYS_inotify_init SYS_inotify_init1
    SYS_inotify_rm_watch SYS_ioctl SYS_kill SYS_lchown SYS_lgetxattr SYS_link SYS_linkat SYS_listen SYS_listxattr
    SYS_llistxattr SYS_lremovexattr SYS_lseek SYS_lsetxattr SYS_lstat SYS_madvise SYS_membarrier SYS_memfd_create
    SYS_mkdir SYS_mkdirat SYS_mknod SYS_mknodat SYS_mlock SYS_mlock2 SYS_mmap SYS_mprotect SYS_mremap
    SYS_msync SYS_munlock SYS_munlockall SYS_munmap SYS_nanosleep SYS_newfstatat SYS_open SYS_openat SYS_pause
    SYS_personality SYS_pidfd_open SYS_pidfd_send_signal SYS_pipe SYS_pipe2 SYS_pkey_alloc SYS_pkey_free
    SYS_pkey_mprotect SYS_poll SYS_ppoll SYS_prctl SYS_pread64 SYS_preadv SYS_preadv2 SYS_prlimit64 SYS_pselect6
    SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_read SYS_readlink SYS_readlinkat SYS_readv SYS_recvfrom SYS_recvmmsg
    SYS_recvmsg SYS_removexattr SYS_rename SYS_renameat SYS_renameat2 SYS_restart_syscall SYS_rmdir SYS_rseq
    SYS_rt_sigaction SYS_rt_sigpending SYS_rt_sigprocmask SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend
    SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo SYS_sched_get_priority_max SYS_sched_get_priority_min
    SYS_sched_getaffinity SYS_sched_getparam SYS_sched_getscheduler SYS_sched_setaffinity SYS_sched_setparam
    SYS_sched_setscheduler SYS_sched_yield SYS_seccomp SYS_select SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto
    SYS_set_robust_list SYS_set_tid_address SYS_setgid SYS_setgroups SYS_setitimer SYS_setpgid SYS_setpriority
    SYS_setregid SYS_setresgid SYS_setresuid SYS_setreuid SYS_setrlimit SYS_setsid SYS_setsockopt SYS_setuid
    SYS_setxattr SYS_shutdown SYS_sigaltstack SYS_signalfd SYS_signalfd4 SYS_socket SYS_socketpair SYS_splice SYS_tee SYS_stat
    SYS_statfs SYS_statx SYS_symlink SYS_symlinkat SYS_sysinfo SYS_tgkill SYS_time SYS_timer_create SYS_timer_delete
    SYS_timer_getoverrun SYS_timer_gettime SYS_timer_settime SYS_timerfd_create SYS_timerfd_gettime
    SYS_timerfd_settime SYS_times SYS_tkill SYS_truncate SYS_umask SYS_uname SYS_unlink SYS_unlinkat SYS_utime
    SYS_utimensat SYS_utimes SYS_vfork SYS_wait4 SYS_waitid SYS_write SYS_writev
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
    AF_INET AF_INET6 AF_UNIX CLONE_CHILD_CLEARTID CLONE_CHILD_SETTID CLONE_DETACHED CLONE_FILES CLONE_FS
    CLONE_NEWCGROUP CLONE_NEWIPC CLONE_NEWNET CLONE_NEWNS CLONE_NEWPID CLONE_NEWUSER CLONE_NEWUTS
    CLONE_PARENT_SETTID CLONE_PIDFD CLONE_SETTLS CLONE_SIGHAND CLONE_SYSVSEM CLONE_THREAD CLONE_VM FIOCLEX FIONBIO
    FIONCLEX FIONREAD FUTEX_CLOCK_REALTIME FUTEX_PRIVATE_FLAG FUTEX_WAIT FUTEX_WAIT_BITSET FUTEX_WAKE F_ADD_SEALS
    F_DUPFD_CLOEXEC F_GETFD F_GETPIPE_SZ F_GET_SEALS F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW IPPROTO_IPV6 IPPROTO_TCP IPPROTO_UDP
    IPV6_V6ONLY IP_TOS
    ITIMER_PROF MADV_DONTDUMP MADV_DONTFORK MADV_DONTNEED MADV_FREE MADV_HUGEPAGE MAP_ANONYMOUS MAP_DENYWRITE MAP_FIXED MAP_FIXED_NOREPLACE MAP_GROWSDOWN
    MAP_HUGETLB MAP_NORESERVE MAP_PRIVATE MAP_SHARED MAP_STACK MAP_TYPE MFD_HUGETLB MREMAP_FIXED MREMAP_MAYMOVE
    MSG_CMSG_CLOEXEC MSG_NOSIGNAL
    PROT_EXEC PROT_READ PROT_WRITE PR_CAPBSET_READ PR_GET_CHILD_SUBREAPER
    PR_GET_DUMPABLE PR_GET_NAME PR_GET_NO_NEW_PRIVS PR_GET_PDEATHSIG PR_GET_SECCOMP PR_GET_TIMERSLACK
    PR_SET_CHILD_SUBREAPER PR_SET_DUMPABLE PR_SET_NAME PR_SET_NO_NEW_PRIVS PR_SET_PDEATHSIG PR_SET_TIMERSLACK
    RLIMIT_DATA RUSAGE_SELF RWF_APPEND RWF_DSYNC RWF_SYNC SECCOMP_FILTER_FLAG_TSYNC SECCOMP_SET_MODE_FILTER SIGCHLD SIGKILL SIOCGIFADDR SIOCGIFBRDADDR SIOCGIFCONF
    SIOCGIFFLAGS SIOCGIFINDEX SIOCGIFMTU SIOCGIFNAME SIOCGIFNETMASK SOCK_CLOEXEC
    SOCK_DGRAM SOCK_NONBLOCK SOCK_STREAM SOL_SOCKET SO_BROADCAST SO_KEEPALIVE SO_LINGER SO_PASSCRED SO_RCVBUF
    SO_RCVTIMEO SO_REUSEADDR SO_REUSEPORT SO_SNDBUF SO_SNDTIMEO S_IFIFO S_IFMT S_ISGID S_ISUID TCGETS TCP_CORK
    TCP_DEFER_ACCEPT TCP_KEEPCNT TCP_KEEPIDLE TCP_KEEPINTVL TCP_NODELAY TCP_QUICKACK TCP_USER_TIMEOUT TIOCGWINSZ WNOHANG
}

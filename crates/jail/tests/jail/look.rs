//! What a program tries in its jail. Every step that succeeds and should not ends it with a panic.

use std::fs;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The errno of a raw call that must fail.
macro_rules! refused {
    ($name:ident $(, $argument:expr)*) => {{
        // SAFETY: pointers are null or to memory that lives through the call, and the filter answers before the kernel looks.
        let returned = unsafe { libc::syscall(libc::$name $(, $argument as libc::c_long)*) };
        assert_eq!(returned, -1, stringify!($name));
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS), stringify!($name));
    }};
}

pub fn look() {
    files();
    calls();
    world();
    println!("the end");
}

fn files() {
    let mut seen = Vec::new();
    walk(Path::new("/"), &mut seen);
    let other: Vec<_> = seen
        .iter()
        .filter(|path| !path.starts_with("/shown") && !path.starts_with("/scratch") && *path != Path::new("/probe"))
        .filter(|path| path.is_file() && !path.to_string_lossy().contains(".so"))
        .collect();
    assert!(other.is_empty(), "{other:?}");
    assert!(seen.contains(&PathBuf::from("/shown/file")), "{seen:?}");
    assert_eq!(fs::read_to_string("/shown/file").expect("the file"), "shown");
    for path in [
        "/etc/passwd",
        "/proc/self/status",
        "/dev/null",
        "/sys",
        "/tmp",
        "/shown/../secret",
        "/shown/link",
        "/shown/absolute",
        "/home",
        "/root",
    ] {
        let error = fs::File::open(path).expect_err(path);
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{path}");
    }
    for path in ["/new", "/shown/new", "/shown/file", "/probe"] {
        let error = fs::OpenOptions::new().write(true).create(true).truncate(true).open(path).expect_err(path);
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem, "{path}");
    }
    let mut scratch = fs::File::create("/scratch/file").expect("a place to write");
    scratch.write_all(&[0; 256 << 10]).expect("room");
    // Its folder holds a megabyte; its limit for one file is half of that, and the signal says so first.
    let others = (0..20).map(|n| fs::write(format!("/scratch/{n}"), [0; 128 << 10]));
    assert!(others.into_iter().any(|written| written.is_err()), "the scratch folder has no end");
    fs::copy("/probe", "/scratch/0").expect_err("the scratch folder has no end");
}

fn walk(folder: &Path, seen: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.symlink_metadata().expect("an entry").is_dir() {
            walk(&path, seen);
        }
        seen.push(path);
    }
}

fn calls() {
    let here = c"/scratch".as_ptr();
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK] {
        refused!(SYS_socket, family, libc::SOCK_STREAM, 0);
    }
    let mut pair = [0; 2];
    refused!(SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr());
    refused!(SYS_connect, 0, 0, 0);
    refused!(SYS_bind, 0, 0, 0);
    refused!(SYS_mount, 0, here, c"tmpfs".as_ptr(), 0, 0);
    refused!(SYS_umount2, here, 0);
    refused!(SYS_pivot_root, here, here);
    refused!(SYS_chroot, here);
    refused!(SYS_open_tree, libc::AT_FDCWD, here, 1);
    refused!(SYS_move_mount, 0, here, 0, here, 0);
    refused!(SYS_mount_setattr, libc::AT_FDCWD, here, 0, 0, 0);
    refused!(SYS_fsopen, c"tmpfs".as_ptr(), 0);
    refused!(SYS_unshare, libc::CLONE_NEWUSER);
    refused!(SYS_unshare, libc::CLONE_NEWNS);
    refused!(SYS_setns, 0, 0);
    for flags in [
        libc::SIGCHLD,
        libc::CLONE_NEWUSER | libc::SIGCHLD,
        libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_NEWUSER,
        libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
    ] {
        refused!(SYS_clone, flags, 0, 0, 0, 0);
    }
    refused!(SYS_clone3, 0, 0);
    refused!(SYS_fork);
    refused!(SYS_vfork);
    refused!(SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0);
    refused!(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0);
    refused!(SYS_pidfd_open, 1, 0);
    refused!(SYS_kill, -1, 0);
    refused!(SYS_keyctl, 0, 0, 0, 0, 0);
    refused!(SYS_add_key, 0, 0, 0, 0, 0);
    refused!(SYS_request_key, 0, 0, 0, 0);
    refused!(SYS_bpf, 0, 0, 0);
    refused!(SYS_perf_event_open, 0, 0, -1, -1, 0);
    refused!(SYS_io_uring_setup, 1, 0);
    refused!(SYS_userfaultfd, 0);
    refused!(SYS_memfd_create, c"m".as_ptr(), 0);
    refused!(SYS_open_by_handle_at, 0, 0, 0);
    refused!(SYS_execveat, 0, here, 0, 0, 0);
    refused!(SYS_init_module, 0, 0, 0);
    refused!(SYS_kexec_load, 0, 0, 0, 0);
    refused!(SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
    refused!(SYS_seccomp, 0, 0, 0);
    refused!(SYS_setuid, 0);
    refused!(SYS_ioctl, 0, 0x5412, 0);
    refused!(SYS_prlimit64, 1, libc::RLIMIT_DATA, 0, 0);
    refused!(SYS_mmap, 0, 4096, libc::PROT_READ, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0);
    refused!(SYS_fcntl, 0, libc::F_SETPIPE_SZ, 1 << 20);
    refused!(SYS_clock_gettime, (!1i32 << 3) | 2, 0);
    // A number of the x32 interface.
    // SAFETY: the filter answers before the kernel looks.
    assert_eq!(unsafe { libc::syscall(0x4000_0000 | libc::SYS_getpid) }, -1);
}

fn world() {
    assert_eq!(std::process::id(), 1);
    let variables: Vec<_> = std::env::vars_os().collect();
    assert_eq!(variables.len(), 1, "{variables:?}");
    assert_eq!(std::env::args().skip(1).collect::<Vec<_>>(), ["one argument"]);
    assert_eq!(std::env::current_dir().expect("a folder"), Path::new("/"));
    for fd in 3..4096 {
        // SAFETY: takes numbers only.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_GETFD) }, -1, "descriptor {fd}");
    }
    // Other processes: none has a number here.
    for pid in 2..1000 {
        // SAFETY: takes numbers only; signal 0 only looks.
        assert_eq!(unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, 0) }, -1, "process {pid}");
    }
    let raised = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const raised) }, -1, "a limit was raised");
    // What is shown is not to be run.
    let program = c"/shown/program".as_ptr();
    // SAFETY: the strings are constants; null lists are empty ones. It must fail, so nothing of this process is lost.
    assert_eq!(unsafe { libc::execve(program, std::ptr::null(), std::ptr::null()) }, -1);
    assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EACCES));
}

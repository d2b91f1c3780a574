//! The file system of a compartment: one empty directory that nobody can write to.

use std::ffi::CStr;
use std::io;
use std::ptr;

use crate::error::Error;
use crate::sys::{check, check_long};

/// Where the new root is mounted for a moment. The only directory that every host has: the identity maps are there.
pub(crate) const STAGE: &CStr = c"/proc";

/// Room for the root directory itself and nothing else.
const TMPFS_OPTIONS: &CStr = c"size=4k,nr_inodes=2,mode=555";

/// Replaces everything this mount namespace shows by an empty read-only directory. The old root is detached, so
/// only descriptors opened before still lead there.
pub(crate) fn replace_with_empty() -> Result<(), Error> {
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None).map_err(failed("making mounts private"))?;
    mount(
        Some(c"jail"),
        STAGE,
        Some(c"tmpfs"),
        libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
        Some(TMPFS_OPTIONS),
    )
    .map_err(failed("mounting an empty directory"))?;
    change_directory(STAGE).map_err(failed("entering the empty directory"))?;
    make_root()
}

/// Makes the working directory, a mount of its own, the root, and lets go of the old one.
pub(crate) fn make_root() -> Result<(), Error> {
    // The same path twice: the old root ends up mounted over the new one, where the next step takes it away.
    // SAFETY: both strings are constants with a terminating zero.
    check_long(unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) })
        .map_err(failed("pivot_root"))?;
    // SAFETY: as above.
    check(unsafe { libc::umount2(c".".as_ptr(), libc::MNT_DETACH) }).map_err(failed("detaching the old root"))?;
    change_directory(c"/").map_err(failed("entering the new root"))
}

pub(crate) fn failed(step: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Mount { step, source }
}

pub(crate) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: every pointer is null or a string with a terminating zero that outlives the call.
    check(unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, pointer(options).cast()) })?;
    Ok(())
}

pub(crate) fn change_directory(path: &CStr) -> io::Result<()> {
    // SAFETY: a string with a terminating zero that outlives the call.
    check(unsafe { libc::chdir(path.as_ptr()) })?;
    Ok(())
}

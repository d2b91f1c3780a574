//! Mounts that are made before they have a place. Needs Linux 5.12.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::sys::check_long;

// From linux/mount.h; the libc crate does not have them.
const FSOPEN_CLOEXEC: libc::c_long = 1;
const FSCONFIG_SET_STRING: libc::c_long = 1;
const FSCONFIG_CMD_CREATE: libc::c_long = 6;
const FSMOUNT_CLOEXEC: libc::c_long = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_long = 0x04;
const MOVE_MOUNT_T_EMPTY_PATH: libc::c_long = 0x40;

/// A new file system of this kind.
pub(super) fn make(kind: &CStr, options: &[(&CStr, &CStr)], attributes: u64) -> io::Result<OwnedFd> {
    // SAFETY: a string with a terminating zero that outlives the call, and a number.
    let context = own(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) })?;
    for (name, value) in options {
        configure(&context, FSCONFIG_SET_STRING, name.as_ptr(), value.as_ptr())?;
    }
    configure(&context, FSCONFIG_CMD_CREATE, ptr::null(), ptr::null())?;
    // SAFETY: takes numbers only.
    own(unsafe {
        libc::syscall(
            libc::SYS_fsmount,
            libc::c_long::from(context.as_raw_fd()),
            FSMOUNT_CLOEXEC,
            attributes as libc::c_long,
        )
    })
}

fn configure(
    context: &OwnedFd,
    command: libc::c_long,
    name: *const libc::c_char,
    value: *const libc::c_char,
) -> io::Result<()> {
    let context = libc::c_long::from(context.as_raw_fd());
    // SAFETY: both pointers are null, or strings with a terminating zero that outlive the call, as the command wants.
    check_long(unsafe { libc::syscall(libc::SYS_fsconfig, context, command, name, value, 0 as libc::c_long) })?;
    Ok(())
}

/// What is mounted at a path, with everything below it, once more, and with these possibilities taken away. What is mounted
/// over it later is seen there alone, however the host shares its mounts.
pub(super) fn copy(source: &CStr, attributes: u64) -> io::Result<OwnedFd> {
    // The path has no links in it; who can put one there meanwhile must not decide what is taken.
    let source = open(source, libc::RESOLVE_NO_SYMLINKS)?;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC;
    let flags = flags | (libc::AT_RECURSIVE | libc::AT_EMPTY_PATH) as libc::c_uint;
    // SAFETY: an empty string that outlives the call, and numbers.
    let tree = own(unsafe {
        libc::syscall(
            libc::SYS_open_tree,
            libc::c_long::from(source.as_raw_fd()),
            c"".as_ptr(),
            libc::c_long::from(flags),
        )
    })?;
    let whole = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    change(tree.as_raw_fd(), c"", whole, attributes, libc::MS_PRIVATE)?;
    Ok(tree)
}

/// Takes possibilities from a mount. Those it lacks already stay lacking.
pub(super) fn restrict(folder: i32, path: &CStr, flags: libc::c_int, attributes: u64) -> io::Result<()> {
    change(folder, path, flags, attributes, 0)
}

fn change(folder: i32, path: &CStr, flags: libc::c_int, attributes: u64, propagation: u64) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation, userns_fd: 0 };
    // SAFETY: a string and a structure that outlive the call, and the size of that structure.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::c_long::from(folder),
            path.as_ptr(),
            libc::c_long::from(flags),
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

/// The file or folder at a path below the working directory. No link is followed on the way: a folder of the host may have
/// links in it that somebody else made.
pub(super) fn point(path: &CStr) -> io::Result<OwnedFd> {
    open(path, libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_BENEATH)
}

fn open(path: &CStr, resolve: u64) -> io::Result<OwnedFd> {
    // SAFETY: all zeroes is a value of this struct of numbers.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    how.resolve = resolve;
    // SAFETY: a string and a structure that outlive the call, and the size of that structure.
    own(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::c_long::from(libc::AT_FDCWD),
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    })
}

/// Gives a mount its place.
pub(super) fn attach(tree: BorrowedFd, point: &OwnedFd) -> io::Result<()> {
    // SAFETY: two empty strings that outlive the call, and numbers.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            libc::c_long::from(tree.as_raw_fd()),
            c"".as_ptr(),
            libc::c_long::from(point.as_raw_fd()),
            c"".as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
        )
    })?;
    Ok(())
}

fn own(returned: libc::c_long) -> io::Result<OwnedFd> {
    let fd = check_long(returned)?;
    // SAFETY: the kernel made this descriptor for this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

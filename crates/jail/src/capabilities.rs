//! Giving up root's powers, in every set the kernel keeps of them.

use std::io;

use crate::error::Error;
use crate::process::set_attribute;
use crate::sys::{check, check_long};

/// `_LINUX_CAPABILITY_VERSION_3`: two words per set.
const VERSION: u32 = 0x2008_0522;

/// One more than any capability number the two words can hold.
const END: i32 = 64;

// From linux/securebits.h; the libc crate does not have them.
const NOROOT: i32 = 1 << 0;
const NOROOT_LOCKED: i32 = 1 << 1;
const NO_SETUID_FIXUP_LOCKED: i32 = 1 << 3;
const KEEP_CAPS_LOCKED: i32 = 1 << 5;
const NO_CAP_AMBIENT_RAISE: i32 = 1 << 6;
const NO_CAP_AMBIENT_RAISE_LOCKED: i32 = 1 << 7;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// Effective, permitted and inheritable, 32 capabilities each.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Empties the bounding, ambient, inheritable, permitted and effective sets, and makes uid 0 mean nothing.
pub(crate) fn drop_all() -> Result<(), Error> {
    for capability in 0..END {
        if !in_bounding_set(capability) {
            continue;
        }
        set_attribute("bounding set", libc::PR_CAPBSET_DROP, capability)?;
    }
    // SAFETY: takes numbers only.
    check(unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong,
            0 as libc::c_ulong,
            0 as libc::c_ulong,
            0 as libc::c_ulong,
        )
    })
    .map_err(failed("clearing the ambient set"))?;
    set_attribute(
        "securebits",
        libc::PR_SET_SECUREBITS,
        NOROOT
            | NOROOT_LOCKED
            | NO_SETUID_FIXUP_LOCKED
            | KEEP_CAPS_LOCKED
            | NO_CAP_AMBIENT_RAISE
            | NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    set([Word::default(); 2]).map_err(failed("emptying the sets"))?;
    if get().map_err(failed("reading the sets"))? != [Word::default(); 2] {
        return Err(failed("emptying the sets")(io::Error::from_raw_os_error(libc::EPERM)));
    }
    Ok(())
}

/// Makes every permitted capability effective again after a change of user with "keep capabilities".
pub(crate) fn raise_permitted() -> Result<(), Error> {
    let mut words = get().map_err(failed("reading the sets"))?;
    for word in &mut words {
        word.effective = word.permitted;
    }
    set(words).map_err(failed("raising the effective set"))
}

/// False also for numbers that this kernel does not know.
fn in_bounding_set(capability: i32) -> bool {
    // SAFETY: takes numbers only.
    let found = unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability as libc::c_ulong) };
    found == 1
}

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Capabilities { step, source }
}

fn set(words: [Word; 2]) -> io::Result<()> {
    let header = Header { version: VERSION, pid: 0 };
    // SAFETY: header and words have the kernel's layout, two words as this version of the header promises.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()) })?;
    Ok(())
}

fn get() -> io::Result<[Word; 2]> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut words = [Word::default(); 2];
    // SAFETY: as in `set`; the kernel writes two words.
    check_long(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, words.as_mut_ptr()) })?;
    Ok(words)
}

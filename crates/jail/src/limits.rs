//! Resource limits (`setrlimit`), and the size that `RLIMIT_DATA` counts.

use std::io;
use std::ptr;

use crate::error::Error;
use crate::sys::{check, check_long};

/// The type of a resource number differs between C libraries.
#[cfg(target_env = "gnu")]
pub(crate) type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
pub(crate) type Resource = libc::c_int;

/// Sets soft and hard limit, for good. A hard limit that is already lower stays: it is the stricter one.
pub(crate) fn lower(name: &'static str, resource: Resource, value: u64) -> Result<(), Error> {
    let failed = |source| Error::Limit { name, value, source };
    let current = prlimit(resource, None).map_err(failed)?;
    let value = value.min(current.rlim_max);
    let wanted = libc::rlimit { rlim_cur: value, rlim_max: value };
    prlimit(resource, Some(wanted)).map_err(failed)?;
    Ok(())
}

/// Lowers `RLIMIT_DATA` of the caller, soft and hard, for good. Rounded down to whole pages by the kernel.
pub fn set_limit_data(bytes: u64) -> Result<(), Error> {
    lower("RLIMIT_DATA", libc::RLIMIT_DATA, bytes)
}

/// How many bytes of private writable memory the caller has mapped: exactly what `RLIMIT_DATA` counts.
///
/// Needs no `/proc`, so it works in the jail and in a forked child, for which an earlier opened `/proc/self/statm`
/// would still show the parent. It lowers the soft limit and tries to map one more page, and bisects on the answer:
/// about 50 system calls, some 70 µs under a filter. The soft limit is put back before it returns.
/// The caller must be single-threaded, or another thread may fail to allocate meanwhile.
///
/// It also proves that the kernel enforces the limit at all: [`Error::DataLimitIgnored`] when it was booted with
/// `ignore_rlimit_data`.
pub fn data_in_use() -> Result<u64, Error> {
    let page = page_size();
    let original =
        prlimit(libc::RLIMIT_DATA, None).map_err(|source| Error::Measure { step: "reading the limit", source })?;
    // Without this a full address space would look like a reached data limit.
    probe(page).map_err(|source| Error::Measure { step: "mapping one page", source })?;
    let found = bisect(original, page);
    prlimit(libc::RLIMIT_DATA, Some(original))
        .map_err(|source| Error::Measure { step: "restoring the limit", source })?;
    found.map(|pages| pages * page)
}

/// The largest number of pages in use for which one more page does not fit.
fn bisect(original: libc::rlimit, page: u64) -> Result<u64, Error> {
    let fits = |pages: u64| -> Result<bool, Error> {
        let soft = (pages * page).min(original.rlim_max);
        set_soft(soft, original)?;
        Ok(probe(page).is_ok())
    };
    // A limit of zero means "no limit" to some kernels, one page never fits a running process.
    let (mut below, mut above) = (1, 1 << 14);
    if fits(below)? {
        return Err(Error::DataLimitIgnored);
    }
    while !fits(above)? {
        below = above;
        above *= 2;
    }
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if fits(middle)? {
            above = middle;
        } else {
            below = middle;
        }
    }
    Ok(above - 1)
}

fn set_soft(soft: u64, original: libc::rlimit) -> Result<(), Error> {
    let wanted = libc::rlimit { rlim_cur: soft, rlim_max: original.rlim_max };
    prlimit(libc::RLIMIT_DATA, Some(wanted))
        .map_err(|source| Error::Measure { step: "lowering the soft limit", source })?;
    Ok(())
}

/// Maps and unmaps one private writable page.
fn probe(page: u64) -> io::Result<()> {
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing of ours.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            page as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page was mapped just above and nobody else knows its address.
    check(unsafe { libc::munmap(address, page as usize) })?;
    Ok(())
}

pub(crate) fn page_size() -> u64 {
    // SAFETY: sysconf reads a constant of the process (from its auxiliary vector); it touches no memory of ours.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// `prlimit64` on the caller itself, without the C library in between: the policies allow exactly this shape.
fn prlimit(resource: Resource, new: Option<libc::rlimit>) -> io::Result<libc::rlimit> {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let new = new.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: both pointers are null or point to an rlimit on this stack frame; on 64-bit Linux rlimit is rlimit64.
    check_long(unsafe {
        libc::syscall(libc::SYS_prlimit64, 0 as libc::c_long, resource as libc::c_long, new, &raw mut old)
    })?;
    Ok(old)
}

/// Three quarters of the machine's memory, in MiB: what guests may have, so that their host outlives them.
pub fn memory_for_guests_mb() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kb = total.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(4 << 20);
    kb / 1024 / 4 * 3
}

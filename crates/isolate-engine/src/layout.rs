//! Where things lie in memory, because a fork pays for every page table it copies and for every page it first touches.

use std::sync::atomic::{AtomicUsize, Ordering};

/// V8 asks for its heap in chunks of this size.
const CHUNK: usize = 256 << 10;
const HUGE_PAGE: usize = 2 << 20;

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// `mmap`, with V8's random hints replaced by neighbouring ones.
///
/// V8 scatters its chunks over the whole address space, and each then needs page tables of its own: three pages for
/// every 256 KiB. Side by side they share them, and the kernel joins them into few mappings.
/// The place is random once per base zygote.
///
/// # Safety
/// As `mmap(2)`.
pub unsafe fn map(
    hint: *mut libc::c_void,
    length: usize,
    protection: libc::c_int,
    flags: libc::c_int,
    fd: libc::c_int,
    offset: i64,
) -> *mut libc::c_void {
    let fixed = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0;
    let hint = if hint.is_null() || fixed || fd != -1 { hint } else { neighbour(length) as *mut libc::c_void };
    // SAFETY: the caller's arguments; a hint is only a wish, the kernel never replaces a mapping for it.
    unsafe { libc::syscall(libc::SYS_mmap, hint, length, protection, flags, fd, offset) as *mut libc::c_void }
}

fn neighbour(length: usize) -> usize {
    if NEXT.load(Ordering::Relaxed) == 0 {
        NEXT.store(random_place(), Ordering::Relaxed);
    }
    // A chunk is asked for with as much again to align it by, which is given back at once.
    let step = if length <= 2 * CHUNK { CHUNK } else { length.next_multiple_of(CHUNK) };
    NEXT.fetch_add(step, Ordering::Relaxed)
}

/// A multiple of 1 GiB between 16 and 48 TiB, far from where the kernel puts things by itself.
fn random_place() -> usize {
    let mut bytes = [0; 8];
    // Without randomness the place is merely known.
    let _ = crate::fill_random(&mut bytes);
    (16 << 40) + ((usize::from_le_bytes(bytes) % (32 << 10)) << 30)
}

/// Replaces the carrier's code and constants, which are mapped from its file, by copies in huge pages.
///
/// A fork does not inherit the page tables of a file's pages and takes a fault for every piece it touches again;
/// huge pages it inherits with one entry each. Costs the copy's memory once per base zygote, shared by all its forks.
pub fn copy_code_into_huge_pages(executable: &str) -> std::io::Result<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mut copied = 0;
    for line in maps.lines() {
        let Some(mapping) = Mapping::parse(line) else { continue };
        if mapping.path == executable && mapping.end - mapping.start >= 2 * HUGE_PAGE {
            // The middle that consists of whole huge pages.
            let start = mapping.start.next_multiple_of(HUGE_PAGE);
            let length = (mapping.end - start) / HUGE_PAGE * HUGE_PAGE;
            // SAFETY: the range lies within one private, unwritable mapping of this process, as just read.
            unsafe { replace_by_copy(start, length, mapping.protection)? };
            copied += length;
        }
    }
    Ok(copied)
}

struct Mapping<'a> {
    start: usize,
    end: usize,
    protection: libc::c_int,
    path: &'a str,
}

impl Mapping<'_> {
    /// A line of `/proc/self/maps`, if it is a private mapping of a file that cannot be written to.
    fn parse(line: &str) -> Option<Mapping<'_>> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let protection = match fields.next()? {
            "r-xp" => libc::PROT_READ | libc::PROT_EXEC,
            "r--p" => libc::PROT_READ,
            _ => return None,
        };
        let path = fields.nth(3)?;
        let start = usize::from_str_radix(start, 16).ok()?;
        Some(Mapping { start, end: usize::from_str_radix(end, 16).ok()?, protection, path })
    }
}

/// # Safety
/// `start..start + length` must lie in one private mapping with this protection that nobody writes to.
unsafe fn replace_by_copy(start: usize, length: usize, protection: libc::c_int) -> std::io::Result<()> {
    // SAFETY: fresh memory is mapped with room to align it, filled with the bytes of the range, given the same
    // protection, and moved over the range in one step: at every moment the range holds the same bytes.
    unsafe {
        let (read_write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let fresh = libc::mmap(std::ptr::null_mut(), length + HUGE_PAGE, read_write, private, -1, 0);
        if fresh == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let aligned = (fresh as usize).next_multiple_of(HUGE_PAGE);
        // Where the kernel has no huge pages to give, small ones do.
        libc::syscall(libc::SYS_madvise, aligned, length, libc::MADV_HUGEPAGE);
        std::ptr::copy_nonoverlapping(start as *const u8, aligned as *mut u8, length);
        if libc::mprotect(aligned as *mut libc::c_void, length, protection) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let moved = libc::mremap(aligned as *mut libc::c_void, length, length, flags, start as *mut libc::c_void);
        if moved == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        // What was mapped only for alignment, before and after.
        let before = aligned - fresh as usize;
        if before > 0 {
            libc::munmap(fresh, before);
        }
        let after = HUGE_PAGE - before;
        if after > 0 {
            libc::munmap((aligned + length) as *mut libc::c_void, after);
        }
    }
    Ok(())
}

/// Gives free memory of the C allocator back to the system.
pub fn trim() {
    // SAFETY: touches only memory that the allocator itself holds free.
    unsafe { libc::malloc_trim(0) };
}

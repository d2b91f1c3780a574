//! Where things lie in memory, because a fork pays for every page table it copies and for every page it first touches.

use std::sync::atomic::{AtomicUsize, Ordering};

/// V8 asks for its heap in chunks of this size.
const CHUNK: usize = 256 << 10;
pub(crate) const HUGE_PAGE: usize = 2 << 20;

pub(crate) const PAGE: usize = 4096;

/// Where V8's chunks begin, and where the next one goes.
static FIRST: AtomicUsize = AtomicUsize::new(0);
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
    let mapped = unsafe { syscall!(libc::SYS_mmap, hint, length, protection, flags, fd, offset) };
    if mapped != -1 {
        note(mapped as usize, length, Some(protection));
    }
    mapped as *mut libc::c_void
}

fn neighbour(length: usize) -> usize {
    if NEXT.load(Ordering::Relaxed) == 0 {
        FIRST.store(random_place(), Ordering::Relaxed);
        NEXT.store(FIRST.load(Ordering::Relaxed), Ordering::Relaxed);
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

/// What V8 holds of the addresses it was given by [`neighbour`], page by page: whether it can be written to.
/// A zygote in its jail has no other way to know. Beyond what the table covers nothing is known.
struct Writable(std::cell::UnsafeCell<[u8; COVERED / PAGE / 8]>);

// SAFETY: a worker has one thread.
unsafe impl Sync for Writable {}

static WRITABLE: Writable = Writable(std::cell::UnsafeCell::new([0; COVERED / PAGE / 8]));

/// As much as the greatest heap, with room for what was given back meanwhile.
const COVERED: usize = 4 << 30;

/// Takes note of a protection that was given to a range, `None` when it was unmapped.
fn note(start: usize, length: usize, protection: Option<libc::c_int>) {
    let first = FIRST.load(Ordering::Relaxed);
    let end = start.saturating_add(length).next_multiple_of(PAGE);
    if first == 0 || start < first || end > first + COVERED {
        return;
    }
    // Compiled code is left alone, with whatever is both.
    let both = libc::PROT_WRITE | libc::PROT_EXEC;
    let writable = protection.is_some_and(|protection| protection & both == libc::PROT_WRITE);
    // SAFETY: one thread, and nobody holds a reference to the table outside this function and `writable`.
    let table = unsafe { &mut *WRITABLE.0.get() };
    for page in (start - first) / PAGE..(end - first) / PAGE {
        let bit = 1 << (page % 8);
        if writable { table[page / 8] |= bit } else { table[page / 8] &= !bit }
    }
}

/// Whether the address is one that [`neighbour`] could have given.
pub(crate) fn manages(address: usize) -> bool {
    let first = FIRST.load(Ordering::Relaxed);
    first != 0 && (first..first + COVERED).contains(&address)
}

/// The ranges of V8's chunks that can be written to.
pub(crate) fn writable() -> impl Iterator<Item = (usize, usize)> {
    let (first, next) = (FIRST.load(Ordering::Relaxed), NEXT.load(Ordering::Relaxed));
    let pages = ((next - first) / PAGE + 2 * CHUNK / PAGE).min(COVERED / PAGE);
    // SAFETY: one thread; the reference ends with each look.
    let is = move |page: usize| page < pages && unsafe { (*WRITABLE.0.get())[page / 8] } & (1 << (page % 8)) != 0;
    let mut page = 0;
    std::iter::from_fn(move || {
        let start = (page..pages).find(|page| is(*page))?;
        page = (start..=pages).find(|page| !is(*page))?;
        Some((first + start * PAGE, first + page * PAGE))
    })
}

/// `munmap`, noted.
///
/// # Safety
/// As `munmap(2)`.
pub unsafe fn unmap(start: *mut libc::c_void, length: usize) -> libc::c_int {
    // SAFETY: the caller's arguments, passed on.
    let result = unsafe { syscall!(libc::SYS_munmap, start, length) as libc::c_int };
    if result == 0 {
        note(start as usize, length, None);
    }
    result
}

/// `mprotect`, noted.
///
/// # Safety
/// As `mprotect(2)`.
pub unsafe fn protect(start: *mut libc::c_void, length: usize, protection: libc::c_int) -> libc::c_int {
    // SAFETY: the caller's arguments, passed on.
    let result = unsafe { syscall!(libc::SYS_mprotect, start, length, protection) as libc::c_int };
    if result == 0 {
        note(start as usize, length, Some(protection));
    }
    result
}

/// Has the C allocator take large blocks from its heap instead of mapping each by itself: what is in the heap when
/// it is frozen stays together. Call before V8 starts; [`scatter`] ends it.
pub fn gather() {
    // SAFETY: changes a number of the allocator's.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20) };
}

/// The C library's own threshold again, so that large blocks are given back when they are freed.
pub fn scatter() {
    // SAFETY: changes a number of the allocator's.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10) };
}

/// What the C allocator keeps ready at the end of its heap, so that a fork need not ask for more.
const HEAP_ROOM: usize = 64 << 10;

/// Gives free memory of the C allocator back to the system, and takes the small blocks that it holds free here and there.
///
/// A fork pays for every page that it first writes to. What it allocates from here on lies side by side and not in gaps
/// all over the heap.
pub fn tidy_heap() {
    /// The sizes that the allocator keeps lists of: an odd number of words each.
    const SMALLEST: usize = 24;
    const LARGEST: usize = 1032;
    // SAFETY: the blocks are never used, and never freed: that is what they are for. The rest changes numbers of the
    // allocator's and touches only memory that it holds free.
    unsafe {
        libc::malloc_trim(HEAP_ROOM);
        for size in (SMALLEST..=LARGEST).rev().step_by(2 * size_of::<usize>()) {
            // Two that are neighbours were cut from a larger piece: the gaps of this size are used up.
            let mut end = 0;
            for _ in 0..MOST_GAPS {
                let block = libc::malloc(size) as usize;
                if block == 0 || block == end {
                    break;
                }
                end = block + size + size_of::<usize>();
            }
        }
    }
}

/// Gaps of one size that are worth filling.
const MOST_GAPS: usize = 512;

//! A zygote's memory as a file that nobody can write to.
//!
//! A fork copies the page tables of every mapping that was written to since it was mapped, and unmapping them costs as
//! much again. A private mapping of a file that was not written to costs it nothing: what the fork then touches is found
//! in the file, and what it writes is copied for it alone. So a zygote that is ready puts what it has into a file in
//! memory and maps that over itself, each piece where it was and with the protection it had. Then the file is sealed.

use crate::layout::{self, HUGE_PAGE, PAGE};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What of this process can be frozen again without asking `/proc` where it is.
pub struct Image {
    /// Writable memory that stays where it is: data of the executable and its libraries, and V8's tables.
    fixed: Vec<Piece>,
    /// Where the C library's heap begins.
    heap: usize,
    /// Code and constants in huge pages that each fork must touch: see [`Image::touch`].
    touched: Vec<Piece>,
}

impl Image {
    /// Replaces this process's private memory, but for its stack, by a sealed file in memory with the same bytes.
    /// Outside the jail. The process must have one thread.
    pub fn freeze() -> io::Result<Image> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let pieces: Vec<Piece> = maps.lines().filter_map(Piece::parse).collect();
        let heap = heap_of(&maps).ok_or_else(|| io::Error::other("the C library has no heap"))?;
        let writable = || pieces.iter().filter(|piece| piece.protection == READ_WRITE);
        let outside = |piece: &&Piece| !heap.contains(&piece.start) && !layout::manages(piece.start);
        let constant = |piece: &&Piece| piece.protection & libc::PROT_WRITE == 0;
        let huge = pieces.iter().filter(constant).filter(|piece| piece.end - piece.start >= 2 * HUGE_PAGE);
        let unasked = large_pages_come_unasked();
        let image = Image {
            fixed: writable().filter(outside).copied().collect(),
            heap: heap.start,
            touched: huge.filter(|_| unasked).copied().collect(),
        };
        let managed = writable().filter(|piece| layout::manages(piece.start)).map(|piece| (piece.start, piece.end));
        if !managed.eq(layout::writable()) {
            return Err(io::Error::other("V8's memory is not where it was thought to be"));
        }
        let file = create()?;
        let plan = Plan::new(pieces);
        // SAFETY: a file just made; the number is its own and valid.
        check(unsafe { syscall!(libc::SYS_ftruncate, file.as_raw_fd(), plan.length()) })?;
        // SAFETY: the plan was just made of this process's mappings, and it has one thread.
        unsafe { plan.carry_out(file.as_raw_fd(), true)? };
        for run in runs(&maps) {
            // SAFETY: the run lies among the pieces that were just mapped.
            unsafe { plan.join(file.as_raw_fd(), &run)? };
        }
        seal(&file)?;
        Ok(image)
    }

    /// Whether memory can only be counted by what is resident. Where the kernel gives small pages to who does not ask for
    /// large ones, the pages that a fork touches can be counted instead, and `touch` has nothing to do.
    pub fn must_be_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Touches all code and constants once. A fork has to find each huge page again, and what it maps counts as its
    /// memory: without this, the first to use some function would seem to need as much as the huge page that it lies in.
    pub fn touch(&self) {
        for piece in &self.touched {
            for address in (piece.start..piece.end).step_by(HUGE_PAGE) {
                // SAFETY: the piece is mapped and readable for as long as the process lives.
                unsafe { (address as *const u8).read_volatile() };
            }
        }
    }

    /// The same again, inside the jail and into a file that is given, for what can have changed since: data, the heaps of
    /// the C library and of V8. Gives how much of the file it used: nothing when it is too small. It is the giver's to
    /// seal.
    pub fn freeze_again(&self, file: libc::c_int, most: usize) -> io::Result<usize> {
        let mut pieces = self.fixed.clone();
        // SAFETY: asks the kernel where the heap ends; 0 changes nothing.
        let end = unsafe { syscall!(libc::SYS_brk, 0) } as usize;
        pieces.push(Piece { start: self.heap, end: end.next_multiple_of(PAGE), protection: READ_WRITE });
        // Allocated before V8's chunks are looked at, which allocating does not change.
        pieces.extend(layout::writable().map(|(start, end)| Piece { start, end, protection: READ_WRITE }));
        let plan = Plan::new(pieces);
        if plan.length() > most {
            return Ok(0);
        }
        // SAFETY: the pieces are mapped: data and tables for good, and of the heaps the end and the chunks are known.
        unsafe { plan.carry_out(file, false)? };
        Ok(plan.length())
    }
}

/// Whether the kernel may give memory in large pages that nobody asked for. Assumed where it does not say.
fn large_pages_come_unasked() -> bool {
    const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";
    let always = |file: std::path::PathBuf| std::fs::read_to_string(file).is_ok_and(|text| text.contains("[always]"));
    match std::fs::read_dir(SETTINGS) {
        // One for all sizes, and one for each.
        Ok(sizes) => {
            let of_sizes = sizes.flatten().map(|size| size.path());
            of_sizes.chain([SETTINGS.into()]).any(|folder| always(folder.join("enabled")))
        }
        // A kernel without them has no such settings; nor has a system that hides them.
        Err(_) => true,
    }
}

/// The kernel finds that much at once.
const WORTH_INHERITING: usize = 64 << 10;

const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
const CODE: libc::c_int = libc::PROT_READ | libc::PROT_EXEC;

/// One mapping to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start: usize,
    end: usize,
    protection: libc::c_int,
}

impl Piece {
    /// A line of `/proc/self/maps`, if it is private memory that can be read and is not the kernel's or the stack.
    fn parse(line: &str) -> Option<Piece> {
        let (start, end, protection, name) = fields(line)?;
        let protection = match protection {
            "r--p" => libc::PROT_READ,
            "rw-p" => READ_WRITE,
            "r-xp" => CODE,
            "rwxp" => READ_WRITE | libc::PROT_EXEC,
            _ => return None,
        };
        let kernels = name.starts_with('[') && name != "[heap]" && !name.starts_with("[anon");
        (!kernels).then_some(Piece { start, end, protection })
    }

    /// Whether forks are to inherit where its pages are. The kernel copies the page tables of mappings that were written
    /// to, and of others each fork has to find the pages again, a few at a time. The largest constants are found in huge
    /// pages, and in small ones there is little to find.
    fn inherits(&self) -> bool {
        let length = self.end - self.start;
        if self.protection & libc::PROT_WRITE == 0 {
            (HUGE_PAGE / 2..2 * HUGE_PAGE).contains(&length)
        } else {
            length >= WORTH_INHERITING
        }
    }
}

/// From where to where the C library's heap goes.
fn heap_of(maps: &str) -> Option<std::ops::Range<usize>> {
    let mut lines = maps.lines().filter_map(fields).filter(|(_, _, _, name)| *name == "[heap]");
    let (start, first_end, ..) = lines.next()?;
    Some(start..lines.next_back().map_or(first_end, |(_, end, ..)| end))
}

/// Start, end, protection and name of a line of `/proc/self/maps`.
fn fields(line: &str) -> Option<(usize, usize, &str, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    Some((start, end, fields.next()?, fields.nth(3).unwrap_or_default()))
}

/// Which piece goes where in the file.
///
/// The file consists of whole huge pages, one for each huge page's worth of addresses that has a piece in it, in the
/// order of their addresses. So what can be one huge page stays one, and neighbours stay neighbours.
struct Plan {
    pieces: Vec<Piece>,
    /// First addresses, ascending.
    units: Vec<usize>,
}

impl Plan {
    fn new(pieces: Vec<Piece>) -> Plan {
        let mut units = Vec::new();
        for piece in &pieces {
            let first = piece.start / HUGE_PAGE * HUGE_PAGE;
            units.extend((first..piece.end).step_by(HUGE_PAGE));
        }
        units.sort_unstable();
        units.dedup();
        Plan { pieces, units }
    }

    fn length(&self) -> usize {
        self.units.len() * HUGE_PAGE
    }

    /// Where in the file an address is that lies in a piece.
    fn offset(&self, address: usize) -> usize {
        let unit = self.units.partition_point(|unit| *unit <= address) - 1;
        unit * HUGE_PAGE + (address - self.units[unit])
    }

    /// # Safety
    /// The pieces must be mappings of this process, which must have one thread, and the file one in memory that is long
    /// enough and that nobody else writes to.
    unsafe fn carry_out(&self, file: libc::c_int, huge: bool) -> io::Result<()> {
        // SAFETY: `room` is fresh memory of the file's length. Each piece is copied there and then replaced by those
        // bytes in one step. Between the copy of a piece and its replacement nothing is written but this thread's stack,
        // which is no piece, and `errno`, which nobody reads: no allocation, no lock. Code that runs here is replaced by
        // the same code. What a fork is to inherit is written to once, the same byte; for that, constants can be written
        // to for a moment.
        unsafe {
            let room = Room::map(file, self.length(), huge)?;
            for piece in &self.pieces {
                let to = room.start + self.offset(piece.start);
                std::ptr::copy_nonoverlapping(piece.start as *const u8, to as *mut u8, piece.end - piece.start);
            }
            room.unmap()?;
            for piece in &self.pieces {
                if piece.inherits() && self.map(file, piece, libc::PROT_WRITE).is_ok() {
                    let byte = piece.start as *mut u8;
                    byte.write_volatile(byte.read_volatile());
                    let (length, protection) = (piece.end - piece.start, piece.protection);
                    check(syscall!(libc::SYS_mprotect, piece.start, length, protection))?;
                } else {
                    self.map(file, piece, 0)?;
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`Plan::carry_out`]; the piece's bytes must be in the file.
    unsafe fn map(&self, file: libc::c_int, piece: &Piece, also: libc::c_int) -> io::Result<()> {
        let (length, offset) = (piece.end - piece.start, self.offset(piece.start));
        let (protection, flags) = (piece.protection | also, libc::MAP_PRIVATE | libc::MAP_FIXED);
        // SAFETY: replaces a mapping by the same bytes, as the caller promises.
        check(unsafe { syscall!(libc::SYS_mmap, piece.start, length, protection, flags, file, offset) })?;
        Ok(())
    }

    /// Makes one mapping of a run. What was out of bounds stays so: where the kernel has no such marks within a mapping,
    /// by a mapping of its own, as before.
    ///
    /// # Safety
    /// The pieces of the run must have been mapped by [`Plan::carry_out`].
    unsafe fn join(&self, file: libc::c_int, run: &Run) -> io::Result<()> {
        let (first, last) = (run.whole.start, run.whole.end - 1);
        // With a huge page between them that nothing is in, they are no neighbours in the file.
        if self.offset(last) - self.offset(first) != last - first {
            return Ok(());
        }
        // SAFETY: the run's pieces are replaced by the same bytes, and nobody may look at what is between them.
        unsafe {
            self.map(file, &run.whole, 0)?;
            for gap in &run.gaps {
                let (start, length) = (gap.start, gap.end - gap.start);
                if syscall!(libc::SYS_madvise, start, length, MADV_GUARD_INSTALL) != 0 {
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
                    check(syscall!(libc::SYS_mmap, start, length, libc::PROT_NONE, flags, -1, 0))?;
                }
            }
        }
        Ok(())
    }
}

/// Constants with gaps between them that nobody may look at. Each piece and each gap is a mapping, and each mapping costs
/// every fork.
struct Run {
    whole: Piece,
    gaps: Vec<std::ops::Range<usize>>,
}

/// Those in V8's memory: it keeps some of its constants far from each other.
fn runs(maps: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut gap: Option<std::ops::Range<usize>> = None;
    for (start, end, protection, name) in maps.lines().filter_map(fields).filter(|line| layout::manages(line.0)) {
        let last_end = gap.as_ref().map(|gap| gap.end).or(runs.last().map(|run| run.whole.end));
        match (protection, runs.last_mut()) {
            ("r--p", Some(run)) if last_end == Some(start) => {
                run.whole.end = end;
                run.gaps.extend(gap.take());
            }
            ("r--p", _) => {
                gap = None;
                runs.push(Run { whole: Piece { start, end, protection: libc::PROT_READ }, gaps: Vec::new() });
            }
            ("---p", Some(run)) if run.whole.end == start && name.is_empty() => gap = Some(start..end),
            _ => gap = None,
        }
    }
    runs.retain(|run| !run.gaps.is_empty());
    runs
}

fn create() -> io::Result<OwnedFd> {
    // Since Linux 6.3 a file in memory that will be executed should say so; before, the flag is unknown.
    const MFD_EXEC: libc::c_uint = 0x10;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a string that lives on, the flags are numbers.
    let make = |flags: libc::c_uint| check(unsafe { syscall!(libc::SYS_memfd_create, c"zygote".as_ptr(), flags) });
    let file = make(flags | MFD_EXEC).or_else(|_| make(flags))?;
    // SAFETY: the kernel made this descriptor for this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(file as libc::c_int) })
}

fn seal(file: &OwnedFd) -> io::Result<()> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: takes numbers only.
    check(unsafe { syscall!(libc::SYS_fcntl, file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(())
}

/// A shared, writable view of the file, aligned to huge pages.
struct Room {
    start: usize,
    length: usize,
    mapped: usize,
}

impl Room {
    /// # Safety
    /// `file` must be a file in memory of at least this length.
    unsafe fn map(file: libc::c_int, length: usize, huge: bool) -> io::Result<Room> {
        // SAFETY: reserves fresh addresses, then maps the file over the aligned part of them.
        unsafe {
            let reserve = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let mapped =
                check(syscall!(libc::SYS_mmap, 0, length + HUGE_PAGE, libc::PROT_NONE, reserve, -1, 0))? as usize;
            let start = mapped.next_multiple_of(HUGE_PAGE);
            let shared = libc::MAP_SHARED | libc::MAP_FIXED;
            check(syscall!(libc::SYS_mmap, start, length, READ_WRITE, shared, file, 0))?;
            for unit in (start..start + length).step_by(HUGE_PAGE).filter(|_| huge) {
                // Where the kernel has no huge pages to give, small ones do. There must be a page to make a huge one of.
                (unit as *mut u8).write_volatile(0);
                syscall!(libc::SYS_madvise, unit, HUGE_PAGE, MADV_COLLAPSE);
            }
            Ok(Room { start, length, mapped })
        }
    }

    /// # Safety
    /// Nobody may use the room afterwards.
    unsafe fn unmap(self) -> io::Result<()> {
        // SAFETY: exactly what `map` mapped.
        check(unsafe { syscall!(libc::SYS_munmap, self.mapped, self.length + HUGE_PAGE) })?;
        Ok(())
    }
}

/// Makes huge pages at once, whatever the system's habit is. Since Linux 6.1.
const MADV_COLLAPSE: libc::c_int = 25;

/// Puts pages out of bounds within a mapping. Since Linux 6.13, and 6.15 for files.
const MADV_GUARD_INSTALL: libc::c_int = 102;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

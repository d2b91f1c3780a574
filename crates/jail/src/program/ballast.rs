//! What a process has from being a fork of the host, and does not need: the host's memory, its arguments, its environment.

use std::fs;
use std::ops::Range;

use crate::error::Error;
use crate::sys::check;

/// More pieces of memory than this are not let go of; a host with a hundred threads has some hundreds.
const MOST: usize = 2048;

/// Found while the host's `/proc` can still be read, used by those who never allocate again.
pub(super) struct Ballast {
    memory: [Range<usize>; MOST],
    words: Range<usize>,
}

impl Ballast {
    /// Of this process. The list is on the stack, because the heap is in it.
    pub(super) fn of_self() -> Result<Ballast, Error> {
        let read = |file: &'static str| fs::read_to_string(file).map_err(|source| Error::Itself { file, source });
        let mut memory = [const { 0..0 }; MOST];
        for (place, found) in memory.iter_mut().zip(disposable(&read("/proc/self/maps")?)) {
            *place = found;
        }
        Ok(Ballast { memory, words: words(&read("/proc/self/stat")?).unwrap_or(0..0) })
    }

    /// Makes arguments and environment unreadable: `/proc/PID/cmdline` is open to everybody who sees the process.
    pub(super) fn forget_words(&self) {
        if self.words.start != 0 {
            // SAFETY: the kernel says that the arguments and the environment are there, on the first stack, which is
            // writable; this is a copy of the host's, and nobody here reads them any more.
            unsafe { std::ptr::write_bytes(self.words.start as *mut u8, 0, self.words.len()) };
        }
    }

    /// Lets go of all private memory but the stack in use and what belongs to the program's file and its libraries.
    ///
    /// From here on nothing may be allocated, freed or looked up in anything that was.
    pub(super) fn drop_memory(&self) {
        // SAFETY: returns the address of this thread's own variable.
        let thread_local = unsafe { libc::__errno_location() } as usize;
        let on_stack = &raw const thread_local as usize;
        for piece in self.memory.iter().filter(|piece| !piece.is_empty()) {
            let ours = piece.contains(&on_stack) || piece.contains(&thread_local) || piece.contains(&self.words.start);
            if !ours {
                // SAFETY: the caller never touches allocated memory again; stack, thread-local and static variables,
                // which are all that system calls need, are not in this piece.
                let _ = check(unsafe { libc::munmap(piece.start as *mut libc::c_void, piece.len()) });
            }
        }
    }
}

/// Private anonymous memory: heaps and stacks. What follows a file's memory without a gap are its static variables.
fn disposable(maps: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut file_end = 0;
    maps.lines().filter_map(move |line| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        let private = fields.next()?.ends_with('p');
        let inode = fields.nth(2)?;
        let name = fields.next().unwrap_or("");
        let of_file = inode != "0" || (range.start == file_end && name.is_empty());
        if of_file {
            file_end = range.end;
        }
        let kernels = name.starts_with("[v");
        (private && !of_file && !kernels).then_some(range)
    })
}

/// Arguments and environment lie side by side: fields 48 to 51 of `stat`. The name in field 2 may hold spaces and brackets.
fn words(stat: &str) -> Option<Range<usize>> {
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace().skip(45).map(|field| field.parse().unwrap_or(0));
    let (arguments, _, _, environment_end) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    (arguments != 0 && arguments < environment_end).then_some(arguments..environment_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_heaps_and_stacks_are_disposable() {
        let maps = "\
1000-2000 r-xp 00000000 08:01 7 /usr/bin/host
2000-3000 rw-p 00001000 08:01 7 /usr/bin/host
3000-4000 rw-p 00000000 00:00 0
4000-5000 rw-p 00000000 00:00 0 [heap]
6000-7000 rw-p 00000000 00:00 0
7000-8000 ---p 00000000 00:00 0
8000-9000 rw-s 00000000 00:01 9 /dev/zero (deleted)
a000-b000 rw-p 00000000 00:00 0 [stack]
b000-c000 r--p 00000000 00:00 0 [vvar]
c000-d000 r-xp 00000000 00:00 0 [vdso]
";
        let found: Vec<_> = disposable(maps).collect();
        assert_eq!(found, [0x4000..0x5000, 0x6000..0x7000, 0x7000..0x8000, 0xa000..0xb000]);
    }

    #[test]
    fn the_own_arguments_are_found() {
        let words = words(&fs::read_to_string("/proc/self/stat").expect("stat")).expect("arguments");
        let first = std::env::args().next().expect("a name");
        // SAFETY: the kernel says that the arguments are there.
        let found = unsafe { std::slice::from_raw_parts(words.start as *const u8, first.len()) };
        assert_eq!(found, first.as_bytes());
    }
}

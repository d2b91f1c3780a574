//! The file in memory that a zygote freezes itself into.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};

use crate::error::Error;
use crate::sys::{check, check_long};

const HUGE_PAGE: usize = 2 << 20;

/// Since Linux 6.1.
const MADV_COLLAPSE: libc::c_int = 25;

/// A file that is as long as it will ever be, and that can be written to until it is sealed.
#[derive(Debug)]
pub struct Image {
    file: File,
    length: u64,
}

impl Image {
    /// An empty file of this length: memory is used where something is written.
    pub fn new(length: u64) -> Result<Image, Error> {
        let make = || -> io::Result<Image> {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            // SAFETY: the name is a string that lives on; flags are numbers.
            let fd = check(unsafe { libc::memfd_create(c"zygote".as_ptr(), flags) })?;
            // SAFETY: the kernel made this descriptor for this call, so nobody else owns it.
            let file = unsafe { File::from_raw_fd(fd) };
            file.set_len(length)?;
            let image = Image { file, length };
            image.add_seals(libc::F_SEAL_GROW | libc::F_SEAL_SHRINK)?;
            Ok(image)
        };
        make().map_err(Error::Image)
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// For good: nobody can write to it any more. Fails while anybody could, through whatever mapping he kept.
    pub fn seal(&self) -> Result<(), Error> {
        self.add_seals(libc::F_SEAL_WRITE | libc::F_SEAL_SEAL).map_err(Error::Image)
    }

    /// Joins the first `length` bytes into huge pages, of which more are mapped at one fault. Blocks meanwhile.
    /// Where the kernel does not give them, small ones do.
    pub fn join_pages(&self, length: u64) {
        let length = length.min(self.length) as usize / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: reserves fresh addresses, maps the file readable over an aligned part of them, where nobody looks at
        // it, and unmaps all of it again. What fails here is only not done.
        unsafe {
            let reserve = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let room = libc::mmap(std::ptr::null_mut(), length + HUGE_PAGE, libc::PROT_NONE, reserve, -1, 0);
            if room == libc::MAP_FAILED {
                return;
            }
            let start = (room as usize).next_multiple_of(HUGE_PAGE) as *mut libc::c_void;
            let shared = libc::MAP_SHARED | libc::MAP_FIXED;
            if libc::mmap(start, length, libc::PROT_READ, shared, self.file.as_raw_fd(), 0) == start {
                libc::madvise(start, length, MADV_COLLAPSE);
            }
            libc::munmap(room, length + HUGE_PAGE);
        }
    }

    fn add_seals(&self, seals: libc::c_int) -> io::Result<()> {
        // SAFETY: takes numbers only.
        check_long(unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_ADD_SEALS, seals) }.into())?;
        Ok(())
    }
}

impl AsFd for Image {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a zygote could do that means to go on writing.
    #[test]
    fn a_file_that_someone_can_still_write_to_cannot_be_sealed() {
        let image = Image::new(HUGE_PAGE as u64).expect("a file");
        let map = |flags| {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: fresh addresses; the file is as long as that.
            unsafe { libc::mmap(std::ptr::null_mut(), HUGE_PAGE, access, flags, image.file.as_raw_fd(), 0) }
        };
        let shared = map(libc::MAP_SHARED);
        assert_ne!(shared, libc::MAP_FAILED);
        image.seal().expect_err("there is a mapping to write through");
        // SAFETY: mapped above, and nobody else knows it.
        unsafe { libc::munmap(shared, HUGE_PAGE) };
        let private = map(libc::MAP_PRIVATE);
        image.seal().expect("private mappings write elsewhere");
        image.join_pages(u64::MAX);
        assert_eq!(map(libc::MAP_SHARED), libc::MAP_FAILED);
        // SAFETY: mapped above, and nobody else knows it.
        unsafe { libc::munmap(private, HUGE_PAGE) };
    }
}

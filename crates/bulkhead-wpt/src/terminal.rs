//! Where the runner prints. The engine keeps descriptors 1 and 2 for a worker's last words, so these are copies.

use std::fs::File;
use std::io::{Write, stderr, stdout};
use std::os::fd::AsFd;

pub struct Terminal {
    out: File,
    err: File,
}

impl Terminal {
    pub fn open() -> Option<Self> {
        let out = stdout().as_fd().try_clone_to_owned().ok()?.into();
        let err = stderr().as_fd().try_clone_to_owned().ok()?.into();
        Some(Self { out, err })
    }

    /// To standard output. A reader that has gone away is no error of ours.
    pub fn say(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
    }

    /// To standard error.
    pub fn complain(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes());
    }
}

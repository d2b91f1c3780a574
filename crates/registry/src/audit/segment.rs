//! The files of the log: `00000001.log`, `00000002.log` …

use super::line::LONGEST_LINE;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(crate) fn file_name(number: u64) -> String {
    format!("{number:08}.log")
}

pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(file_name(number))
}

/// The numbers of the segments, in order. Other files are none of our business.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let number = name.strip_suffix(".log").and_then(|number| number.parse().ok());
        numbers.extend(number.filter(|number| file_name(*number) == name));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

pub(crate) fn create(dir: &Path, number: u64) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path(dir, number))
}

/// A piece of a file that should be a line.
pub(crate) struct Piece<'a> {
    /// Without its line break.
    pub bytes: &'a [u8],
    /// Whether a line break follows. Where none does, it is the file's end, or longer than any line may be.
    pub complete: bool,
}

/// Reads a file line by line, with a bound on what one may have.
pub(crate) struct Lines {
    file: BufReader<File>,
    buffer: Vec<u8>,
    /// Where the next line begins.
    offset: u64,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> io::Result<Lines> {
        Ok(Lines { file: BufReader::with_capacity(1 << 17, File::open(path)?), buffer: Vec::new(), offset: 0 })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// None at the end of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.buffer.clear();
        let read = (&mut self.file).take(LONGEST_LINE as u64).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        self.offset += read as u64;
        let complete = self.buffer.last() == Some(&b'\n');
        Ok(Some(Piece { bytes: &self.buffer[..read - usize::from(complete)], complete }))
    }

    /// Goes back to a place, for instance to see whether the line there is complete by now.
    pub(crate) fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.offset = offset;
        Ok(())
    }
}

//! The file `bulkhead.lock`: a lock and its seal, a line for each thing, so that a difference is easy to see.

use crate::canonical::{Excess, canonical, difference, measure};
use crate::text::{escaped_json, message};
use crate::{Lock, LockError, Seal, SealError};
use serde::Deserialize;
use serde_json::{Value, json};

/// Indentation makes a deep lock many times as long.
const LARGEST: usize = 16 << 20;
const DEEPEST: u64 = 101;

/// A lock and its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkheadLock {
    lock: Lock,
    seal: Seal,
}

/// Why something is no such file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("the file is too large: it has {bytes} bytes, {most} are allowed")]
    TooLarge { bytes: usize, most: usize },
    #[error("the file is nested deeper than {most} levels")]
    TooDeep { most: u64 },
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    #[error("the file is not as it was written, from line {line} on; it is not to be edited by hand")]
    Edited { line: usize },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Seal(#[from] SealError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    lock: Value,
    seal: Value,
}

impl BulkheadLock {
    /// Puts a lock and its seal together. That the seal is for this lock is checked, what is on it is not.
    pub fn new(lock: Lock, seal: Seal) -> Result<BulkheadLock, FileError> {
        seal.belongs(&lock)?;
        let file = BulkheadLock { lock, seal };
        let bytes = file.text().len();
        if bytes > LARGEST {
            return Err(FileError::TooLarge { bytes, most: LARGEST });
        }
        Ok(file)
    }

    /// Reads the file. It must be as [`BulkheadLock::text`] writes it; only the ends of lines may be those of Windows.
    pub fn parse(bytes: &[u8]) -> Result<BulkheadLock, FileError> {
        measure(bytes, LARGEST, DEEPEST).map_err(|excess| match excess {
            Excess::Large { bytes, most } => FileError::TooLarge { bytes, most },
            Excess::Deep(most) => FileError::TooDeep { most },
        })?;
        let unreadable = |error: &dyn std::fmt::Display| FileError::Unreadable(message(&error.to_string()));
        let text = std::str::from_utf8(bytes).map_err(|error| unreadable(&error))?.replace("\r\n", "\n");
        let wire = serde_json::from_str::<Wire>(&text).map_err(|error| unreadable(&error))?;
        let (lock, seal) = (Lock::parse(&canonical(&wire.lock))?, Seal::parse(&canonical(&wire.seal))?);
        let file = BulkheadLock::new(lock, seal)?;
        match difference(file.text().as_bytes(), text.as_bytes()) {
            Some(at) => Err(FileError::Edited { line: text.bytes().take(at).filter(|b| *b == b'\n').count() + 1 }),
            None => Ok(file),
        }
    }

    /// What stands in the file. Hidden characters are escaped, so that a reviewer sees them.
    pub fn text(&self) -> String {
        escaped_json(&format!("{:#}\n", json!({ "lock": self.lock.value(), "seal": self.seal.value() })))
    }

    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    pub fn into_parts(self) -> (Lock, Seal) {
        (self.lock, self.seal)
    }
}

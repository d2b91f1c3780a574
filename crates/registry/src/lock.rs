//! One host per data directory.

use crate::{Holder, OpenError, files, rfc3339_now};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Held as long as the host uses the directory. The kernel releases it when the host ends, however it ends.
pub(crate) struct Lock {
    file: File,
}

/// Closing the file is not enough: a process that was forked and has not become another program yet has it open too.
impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Makes the directory if there is none, and takes it.
pub(crate) fn lock(dir: &Path) -> Result<Lock, OpenError> {
    files::create_dir(dir).map_err(OpenError::io("make the data directory", dir))?;
    let meta = fs::metadata(dir).map_err(OpenError::io("look at the data directory", dir))?;
    if meta.permissions().mode() & 0o002 != 0 {
        return Err(OpenError::Exposed { dir: dir.to_owned() });
    }
    let path = dir.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(OpenError::io("open the lock", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::Locked { dir: dir.to_owned(), holder: holder(&mut file) });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::io("lock", &path)(error)),
    }
    // Who holds it is only for people to read, so a full disk need not keep the host from starting.
    let _ = file.set_len(0);
    let _ = writeln!(file, "{} {}", std::process::id(), rfc3339_now());
    Ok(Lock { file })
}

fn holder(file: &mut File) -> Holder {
    let mut text = String::new();
    if file.take(100).read_to_string(&mut text).is_err() {
        return Holder::default();
    }
    let mut words = text.split_whitespace();
    let pid = words.next().and_then(|pid| pid.parse().ok());
    Holder { pid, since: words.next().map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_free_even_if_a_fork_still_has_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock(dir.path()).unwrap();
        let inherited = first.file.try_clone().unwrap();
        drop(first);
        assert!(lock(dir.path()).is_ok());
        drop(inherited);
    }
}

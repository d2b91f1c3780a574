//! Whether files are those that a lock names.

use crate::text::quote;
use crate::{File, Lock};
use std::collections::BTreeMap;
use std::fmt;

/// Which files are not those of the lock, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Mismatch {
    pub missing: Vec<String>,
    pub additional: Vec<String>,
    pub changed: Vec<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 10;
        f.write_str("the files are not those of the lock")?;
        let kinds = [("missing", &self.missing), ("additional", &self.additional), ("changed", &self.changed)];
        for (kind, names) in kinds.into_iter().filter(|(_, names)| !names.is_empty()) {
            let mut shown: Vec<_> = names.iter().take(MOST).map(|name| quote(name)).collect();
            if names.len() > MOST {
                shown.push(format!("{} more", names.len() - MOST));
            }
            write!(f, "; {kind}: {}", shown.join(", "))?;
        }
        Ok(())
    }
}

/// Accepts exactly the files that the lock names, with exactly their bytes.
pub fn check<B: AsRef<[u8]>>(files: &BTreeMap<String, B>, lock: &Lock) -> Result<(), Mismatch> {
    let mut mismatch = Mismatch::default();
    for (path, locked) in &lock.files {
        match files.get(path.as_str()).map(AsRef::as_ref) {
            None => mismatch.missing.push(path.to_string()),
            Some(bytes) if bytes.len() as u64 != locked.size || File::of(bytes) != *locked => {
                mismatch.changed.push(path.to_string());
            }
            Some(_) => {}
        }
    }
    let additional = files.keys().filter(|path| !lock.files.contains_key(path.as_str()));
    mismatch.additional = additional.cloned().collect();
    if mismatch == Mismatch::default() { Ok(()) } else { Err(mismatch) }
}

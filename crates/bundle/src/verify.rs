//! Whether an upload, or what lies on a disk, is what its author sealed.

use crate::{
    FileError, KeyId, Lock, LockError, MacKey, Manifest, ManifestError, Mismatch, Program, PublicKey, Seal, SealError,
    check,
};
use std::collections::BTreeMap;

/// The manifest, among the files of every deployment.
pub const MANIFEST: &str = "bulkhead.toml";

/// Why it is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Files(#[from] Mismatch),
    #[error("`{MANIFEST}` is not among the files")]
    NoManifest,
    #[error("{MANIFEST}:{0}")]
    Manifest(#[from] ManifestError),
    #[error("the lock does not follow from `{MANIFEST}`: {0}")]
    Differs(String),
}

impl Refused {
    /// Stable, for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Refused::Lock(_) | Refused::Seal(_) | Refused::File(_) => "bad_signature",
            Refused::Files(_) | Refused::NoManifest | Refused::Manifest(_) | Refused::Differs(_) => "digest_mismatch",
        }
    }
}

/// A lock that its seal, its files and its manifest agree with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub manifest: Manifest,
    /// Who signed beside the tenant.
    pub publishers: Vec<PublicKey>,
}

/// Accepts exactly what was sealed with this key: the lock, the files that it names, and the manifest among them.
pub fn verify<B: AsRef<[u8]>>(
    lock: &Lock,
    seal: &Seal,
    files: &BTreeMap<String, B>,
    id: &KeyId,
    key: &MacKey,
) -> Result<Verified, Refused> {
    let publishers = seal.verify(lock, id.as_str(), key)?;
    check(files, lock)?;
    let manifest = files.get(MANIFEST).ok_or(Refused::NoManifest)?;
    let manifest = Manifest::parse(manifest.as_ref())?;
    let asked = [
        ("egress", manifest.egress == lock.egress),
        ("secrets", manifest.secrets == lock.secrets),
        ("limits", manifest.limits == lock.limits()),
        ("wall", manifest.wall == lock.wall),
        ("boundary", manifest.boundary == lock.boundary),
        ("jit", manifest.jit == lock.jit),
        ("command", same_command(&manifest.program, &lock.program)),
    ];
    let differing: Vec<_> = asked.iter().filter(|(_, same)| !same).map(|(key, _)| format!("`{key}`")).collect();
    if !differing.is_empty() {
        return Err(Refused::Differs(format!("{} differ", differing.join(", "))));
    }
    Ok(Verified { manifest, publishers })
}

/// A module may be called otherwise once it is built; a command is signed as it is written.
fn same_command(written: &Program, locked: &Program) -> bool {
    match (written, locked) {
        (Program::Module { .. }, Program::Module { .. }) => true,
        (written, locked) => written == locked,
    }
}

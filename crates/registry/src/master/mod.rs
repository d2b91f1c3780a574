//! The master key: the one secret of the host that is not in its database.

mod command;

use crate::files;
use crate::seal::{Opened, Place, SealingKey};
use crate::{Cause, RegistryError};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use secrecy::zeroize::Zeroizing;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const KEY_BYTES: usize = 32;
const ID_DOMAIN: &[u8] = b"bulkhead master key id 1\0";
/// More text than this is no key.
const LONGEST_TEXT: usize = 128;

/// What every tenant's key is wrapped with: 32 random bytes, in memory only, zeroed when dropped.
pub struct MasterKey {
    key: SealingKey,
    id: String,
}

/// Why there is no master key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    #[error("a master key is 32 random bytes, written as 64 hexadecimal digits or in base64, and nothing else")]
    Malformed,
    #[error("this master key is one byte repeated, not 32 random ones")]
    NotRandom,
    #[error("others may use the master key in `{}`", path.display())]
    Exposed { path: PathBuf },
    #[error("the master key `{}` is no file", path.display())]
    NotAFile { path: PathBuf },
    #[error("cannot {what} the master key `{}`", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the environment has no variable `{name}` with the master key")]
    NoVariable { name: String },
    #[error("there is no command that prints the master key")]
    NoCommand,
    /// Never with its arguments: they may be secret.
    #[error("`{program}`, which prints the master key, {what}")]
    Command {
        program: String,
        what: String,
        #[source]
        cause: Option<Cause>,
    },
    #[error("the system gave no random numbers")]
    Random(#[source] getrandom::Error),
}

impl MasterKeyError {
    pub fn hint(&self) -> Option<String> {
        match self {
            MasterKeyError::Malformed | MasterKeyError::NotRandom => {
                Some("make one with: openssl rand -hex 32".to_owned())
            }
            MasterKeyError::Exposed { .. } => Some("make it the host's alone: chmod 600".to_owned()),
            _ => None,
        }
    }
}

impl MasterKey {
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Result<MasterKey, MasterKeyError> {
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            return Err(MasterKeyError::NotRandom);
        }
        let key = SealingKey::from_bytes(bytes).ok_or(MasterKeyError::Malformed)?;
        let hash = Sha256::new().chain_update(ID_DOMAIN).chain_update(bytes).finalize();
        Ok(MasterKey { key, id: hex::encode(&hash[..8]) })
    }

    /// 64 hexadecimal digits, or base64 of either alphabet. One end of line may follow.
    pub fn parse(text: &[u8]) -> Result<MasterKey, MasterKeyError> {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // A little more room than a key needs, because base64 decodes in whole groups.
        let mut bytes = Zeroizing::new([0; KEY_BYTES + 4]);
        let length = match text.len() {
            64 => hex::decode_to_slice(text, &mut bytes[..KEY_BYTES]).ok().map(|()| KEY_BYTES),
            43 | 44 => [STANDARD, URL_SAFE, STANDARD_NO_PAD, URL_SAFE_NO_PAD]
                .iter()
                .find_map(|engine| engine.decode_slice(text, &mut bytes[..]).ok()),
            _ => None,
        };
        match bytes.first_chunk() {
            Some(key) if length == Some(KEY_BYTES) => MasterKey::from_bytes(key),
            _ => Err(MasterKeyError::Malformed),
        }
    }

    /// Reads a file that only its owner may use.
    pub fn file(path: &Path) -> Result<MasterKey, MasterKeyError> {
        let failed = |source| MasterKeyError::File { what: "read", path: path.to_owned(), source };
        // Opening a pipe would wait for whoever writes to it.
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Err(MasterKeyError::NotAFile { path: path.to_owned() });
        }
        let mut file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(MasterKeyError::Exposed { path: path.to_owned() });
        }
        let (text, length) = read_text(&mut file).map_err(failed)?;
        MasterKey::parse(&text[..length])
    }

    /// The same; a file with a random key is made if there is none.
    pub fn ensure_file(path: &Path) -> Result<MasterKey, MasterKeyError> {
        match MasterKey::file(path) {
            Err(MasterKeyError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                MasterKey::make_file(path)
            }
            other => other,
        }
    }

    fn make_file(path: &Path) -> Result<MasterKey, MasterKeyError> {
        let key = SealingKey::random().map_err(MasterKeyError::Random)?;
        let mut text = Zeroizing::new([b'\n'; 2 * KEY_BYTES + 1]);
        hex::encode_to_slice(key.bytes(), &mut text[..2 * KEY_BYTES]).map_err(|_| MasterKeyError::Malformed)?;
        files::write_whole(path, &text[..]).map_err(|source| MasterKeyError::File {
            what: "write",
            path: path.to_owned(),
            source,
        })?;
        MasterKey::from_bytes(key.bytes())
    }

    /// Takes it from a variable of this process. Whoever may look at the process finds it there.
    pub fn environment(name: &str) -> Result<MasterKey, MasterKeyError> {
        use std::os::unix::ffi::OsStringExt;
        let text = std::env::var_os(name).ok_or_else(|| MasterKeyError::NoVariable { name: name.to_owned() })?;
        MasterKey::parse(&Zeroizing::new(text.into_vec()))
    }

    /// Runs a program, without a shell, that prints it within ten seconds.
    pub fn command(argv: &[String]) -> Result<MasterKey, MasterKeyError> {
        let (text, length) = command::output(argv)?;
        MasterKey::parse(&text[..length])
    }

    /// Tells master keys apart, and says nothing else of them: 16 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn wrap(&self, place: &Place<'_>, key: &SealingKey) -> Result<Box<[u8]>, RegistryError> {
        self.key.seal(place, key.bytes())
    }

    pub(crate) fn unwrap(&self, place: &Place<'_>, wrapped: &[u8]) -> Option<SealingKey> {
        let opened: Opened = self.key.open(place, wrapped)?;
        SealingKey::from_bytes(&opened)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

type Text = Zeroizing<[u8; LONGEST_TEXT]>;

/// Reads until the end, or until it is too much for a key.
fn read_text(from: &mut impl Read) -> io::Result<(Text, usize)> {
    let mut text = Zeroizing::new([0; LONGEST_TEXT]);
    let mut length = 0;
    while length < text.len() {
        match from.read(&mut text[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((text, length))
}

#[cfg(test)]
mod tests;

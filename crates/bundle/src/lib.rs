#![forbid(unsafe_code)]
//! What an author uploads, and what it is held to. Pure functions: no files, no network, no clock.
//!
//! - [`Manifest`]: the author's `bulkhead.toml`.
//! - [`Lock`]: what a deployment shows, may do and is made of, as canonical JSON with one digest.
//! - [`Seal`]: who vouches for a lock.
//! - [`BulkheadLock`]: both, as the file `bulkhead.lock`.
//! - [`Drift`]: what differs between two locks.
//! - [`Layer`]: the files of a program, by name.
//! - [`check`]: whether files are those that a lock names.
//! - [`verify`]: whether seal, lock, files and manifest belong together.

mod binding;
mod canonical;
mod check;
mod drift;
mod file;
mod files;
mod hex;
mod host;
mod layer;
mod lock;
mod manifest;
mod program;
mod seal;
mod surface;
mod text;
mod verify;
mod word;

pub use binding::{AwsWord, Binding, BoundHost, Format, HeaderName, ParameterName, Place, Pointer};
pub use canonical::{canonical, canonical_digest};
pub use check::{Mismatch, check};
pub use drift::{Change, Drift, Kind};
pub use file::{BulkheadLock, FileError};
pub use files::{Contents, FileChange, proposal};
pub use hex::{Digest, Hex, PublicKey, Signature};
pub use host::Host;
pub use layer::{Layer, LayerEntry, LayerError, LayerPath, LinkTarget};
pub use lock::{Endpoint, File, Lock, LockError, LockedLimits, Replayed, Step};
pub use manifest::{Manifest, ManifestError, Problem, Wall};
pub use program::{Command, Http, LAYER, Program};
pub use seal::{MacKey, PublisherKey, Seal, SealError};
pub use surface::{Hidden, HiddenPlace, Surface, SurfaceError};
pub use text::{escaped_json, hidden_in, is_hidden, spelled_out, visible, without_hidden};
pub use verify::{MANIFEST, Refused, Verified, verify};
pub use word::{FilePath, KeyId, SecretName, ServerName, Wrong};

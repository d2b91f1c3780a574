//! Every Linux confinement call of Bulkhead, and nothing else: no async, no network, no wire format.
//!
//! A worker is built from the outside in, by a single-threaded process:
//!
//! 1. [`namespaces::enter`], then [`namespaces::fork_init`]: the outer process only waits ([`namespaces::outlive`]),
//!    the inner one is pid 1 of its own world and dies with the outer one;
//! 2. [`confine::confine`]: empty read-only root, limits, no capabilities, no new privileges, landlock;
//! 3. [`seccomp::Filter::install`]: the zygote's filter, and after every [`process::fork_with_pidfd`] the child's own on top.
//!
//! A program that is started and not forked gets its jail from [`program::Jail`], and one that starts others from
//! [`program::Tree`].
//!
//! The host uses [`users`], [`pidfd`], [`cpu_timer`], [`socket`], [`cgroup`], [`image`] and [`doctor`].
//!
//! Nothing here fails open: what cannot be enforced is an [`Error`] that names it.

#[cfg(not(target_os = "linux"))]
compile_error!("jail confines processes with Linux calls only");

mod capabilities;
pub mod cgroup;
pub mod confine;
pub mod cpu_timer;
pub mod doctor;
mod error;
pub mod image;
mod landlock;
pub mod limits;
pub mod namespaces;
pub mod pidfd;
mod policy;
pub mod process;
pub mod program;
mod root;
pub mod seccomp;
pub mod socket;
mod symbols;
mod sys;
mod trial;
pub mod users;

pub use error::{Error, PolicyError};

/// The result of every call that enforces something.
pub type Result<T> = std::result::Result<T, Error>;

/// The number of the one descriptor that a sealed child keeps: its socket to the host.
/// The child policies name the same number (`policies/isolate-call.toml`), and a test holds the two together.
pub const CHILD_FD: i32 = 3;

/// The number under which a zygote has the file that its memory goes into, while it does; its policy names it.
pub const IMAGE_FD: i32 = 4;

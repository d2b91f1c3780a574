#![forbid(unsafe_code)]
//! Packages of npm and PyPI, installed in a jail, and folders as the files of a deployment.
//!
//! [`Package`] names one; [`install`] gives a folder with it and what it needs, and the command that runs it there. The
//! package manager runs in a jail (`job`) that reaches its registry alone (`gate`), as the person's own settings name it
//! (`registry`); no code of a package runs, unless the [`Order`] says so. [`toolchain`] finds programs of the host and what
//! they need around them. [`pack()`] makes the layer of a deployment of such a folder, or of any other.

pub mod advice;
mod around;
mod error;
mod gate;
mod ground;
mod job;
mod order;
mod pack;
mod package;
mod program;
mod question;
mod registry;
mod shim;
mod stage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod toolchain;
mod usual;
mod walk;

pub use around::Surroundings;
pub use error::Error;
pub use ground::{HOME, PACKAGE, PROXY_PORT, TMP, ground, groups, host};
pub use job::at_the_end;
pub use order::{Installed, Order, install, interpreter_of};
pub use pack::{IGNORE, pack, write_layer};
pub use package::{Package, Request, Source, fetches, recognise};
pub use toolchain::toolchains;

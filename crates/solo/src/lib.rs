#![forbid(unsafe_code)]
//! One MCP server for one person: the same stdio protocol in and out, with the server in a jail.
//!
//! [`Plan`] says what the jail will be: a pure function of the [`Options`] and the [`Surroundings`]. [`explain()`] puts it
//! into words. [`run`] installs the package if the command names one (`install`), builds the jail (`cell`), opens the
//! proxy (`outlet`) and passes bytes on until either side ends (`relay`). [`config`] puts the command into a client's
//! configuration, and takes it out again.

mod cell;
pub mod config;
mod error;
mod explain;
mod gate;
mod install;
mod options;
mod outlet;
mod package;
mod plan;
mod profile;
mod registry;
mod relay;
mod run;
mod supervise;
#[cfg(test)]
mod testing;
mod toolchain;
mod trust;
mod voice;

pub use error::Error;
pub use explain::explain;
pub use options::{Limits, Options, Surroundings};
pub use package::{Package, Source};
pub use plan::{Plan, Shown, Start, Why};
pub use profile::Access;
pub use run::{Ended, run};

#![forbid(unsafe_code)]
//! One MCP server for one person: the same stdio protocol in and out, with the server in a jail.
//!
//! [`Plan`] says what the jail will be: a pure function of the [`Options`] and the [`Surroundings`]. [`explain()`] puts it
//! into words. [`run`] installs the package if the command names one ([`install`]), builds the jail (`cell`), opens the
//! proxy (`outlet`) and single ports (`ports`) and passes bytes on until either side ends (`relay`). [`config`] puts the command into a client's
//! configuration, and takes it out again.

mod cell;
mod complaint;
pub mod config;
mod error;
mod explain;
mod guard;
mod options;
mod outlet;
mod plan;
mod ports;
mod profile;
mod relay;
mod run;
mod supervise;
mod trust;
mod voice;

pub use error::Error;
pub use explain::explain;
pub use guard::Guarded;
pub use install::{Package, Source, Surroundings};
pub use options::{Limits, Options};
pub use plan::{Plan, Shown, Start, Why};
pub use ports::Port;
pub use profile::Access;
pub use run::{Ended, run};

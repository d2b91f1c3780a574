#![forbid(unsafe_code)]
//! What stands between a caller and untrusted code, whatever the wall is made of.
//!
//! A [`Wall`] turns a [`Deployment`] into a [`Seed`]; a seed grows [`Compartment`]s; the [`Pool`] keeps them ready,
//! hands them out by boundary, and gives every call an [`Answer`] with a [`Receipt`].

#[cfg(feature = "conformance")]
pub mod conformance;
mod failure;
mod host;
mod pool;
mod receipt;
mod wall;
pub mod way;

pub use failure::{Code, During, Failure};
pub use host::{Host, HostCall, HostRefusal, HostReply, LogLine, NoNetwork, Stream};
pub use pool::{Pool, PoolSettings, PoolState, PoolTotals};
pub use receipt::{Receipt, Usage};
pub use wall::{
    Answer, Compartment, Deployment, Future, Growth, Operation, Program, Request, Seed, Shows, Speaks, Wall,
};

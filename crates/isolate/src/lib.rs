#![forbid(unsafe_code)]
//! The V8 wall, host side: every call of untrusted JavaScript in its own jailed process.
//!
//! ```text
//! host ─► base zygote           trusted code only: V8 up, web APIs loaded, jailed
//!           └► deployment zygote     fork of the base; has evaluated one server, under limits
//!                └► compartment          fork of that; serves one call, or a session, or everybody
//! ```
//!
//! A fork is the snapshot: what a server initialised is shared copy-on-write, and no call sees another's changes.
//! Everything a process says is an attacker's: bounded before it is read, and never trusted about itself where the
//! kernel can be asked instead.

mod base;
mod bases;
mod budget;
mod carrier;
mod census;
mod compartment;
mod control;
mod driver;
#[doc(hidden)]
pub mod fuzz;
mod link;
mod process;
mod seed;
mod tenancy;
mod verdict;
mod wall;
mod zygote;

pub use bases::BaseFor;
pub use carrier::{Carrier, CarrierError};
pub use wall::{IsolateSettings, IsolateWall, Together, WallError};

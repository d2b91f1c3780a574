#![forbid(unsafe_code)]
//! The process wall: any program that speaks MCP over stdio or HTTP, unchanged, in a jail of its own.
//!
//! [`ProcessWall`] is the wall. A program is started in a `jail::program::Tree` (`launch`), says hello and shows its
//! lists (`instance`, `peer`), and is then driven by one task that has its pipes (`driver`). Programs are started ahead
//! of need (`warm`); how one ended is told by `verdict`. What speaks HTTP is heard through a bridge (`http`).

mod compartment;
mod driver;
#[doc(hidden)]
pub mod fuzzing;
mod gauge;
mod http;
mod instance;
mod launch;
mod memory;
mod peer;
mod room;
mod rounds;
mod settings;
mod tail;
mod verdict;
mod wall;
mod warm;

pub use settings::{Network, ProcessSettings};
pub use wall::{ProcessWall, WallError};

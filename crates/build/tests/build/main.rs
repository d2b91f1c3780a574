//! Real builds in the real jail.

mod attacks;
mod builds;
mod errors;
mod limits;
mod stack;
mod support;

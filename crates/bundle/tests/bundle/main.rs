//! Attacks on what an author uploads.

mod canonical;
mod drift;
mod lock;
mod manifest;
mod program;
mod seal;
mod support;

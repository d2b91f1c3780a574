//! Attacks on what an author uploads.

mod canonical;
mod drift;
mod layer;
mod lock;
mod manifest;
mod program;
mod seal;
mod support;

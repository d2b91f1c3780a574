//! Attacks on what an author uploads.

mod canonical;
mod drift;
mod lock;
mod manifest;
mod seal;
mod support;

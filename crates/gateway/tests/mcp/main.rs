//! The endpoint as clients meet it: a real listener, a real registry, the real isolate wall.

mod edge;
mod host;
mod drift;
mod legacy;
mod modern;
#[path = "../signed/mod.rs"]
mod signed;
mod records;
mod tokens;

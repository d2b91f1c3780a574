//! The endpoint as clients meet it: a real listener, a real registry, the real isolate wall.

mod budgets;
mod connect;
mod disguise;
mod drift;
mod edge;
mod egress;
mod host;
mod legacy;
mod modern;
mod questions;
mod rebind;
mod records;
mod secrets;
#[path = "../signed/mod.rs"]
mod signed;
mod ssrf;
mod switch;
mod tokens;

//! The endpoint as clients meet it: a real listener, a real registry, the real isolate wall.

mod edge;
mod host;
mod legacy;
mod modern;
mod records;
mod tokens;

//! A data directory from both sides: what it confirms, what it keeps, and what becomes of it in bad hands and bad times.

mod audit;
mod chain;
mod changes;
mod common;
mod disk;
mod kill;
mod layers;
mod logs;
mod opening;
mod policies;
mod proposals;
mod rotation;
mod sealed;
mod secrets;
mod trimming;
mod upgrade;
mod vault;

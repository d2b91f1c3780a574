//! Staged packages, installed in real jails. Real ones are installed by `bulkhead`'s tests of programs.

mod hostile;
mod place;
mod python;
mod reproducible;
mod shelf;

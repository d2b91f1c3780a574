//! What a server may reach: the one grammar of egress rules, for who writes them and for who enforces them.

mod origin;
mod path;
mod rule;

pub use origin::{Host, Origin, Scheme};
pub use path::{is_under, unambiguous};
pub use rule::{BadRule, BareStar, Rule, is_forbidden_method};

#![forbid(unsafe_code)]
//! The one door to the network, for code that nobody trusts.
//!
//! - [`Rules`]: what a server may reach. Nothing, unless they say so.
//! - [`classify`]: addresses that nobody reaches, whatever the rules say.
//! - [`Door`]: one for the host; [`Visit`]: one for each call, which answers its host calls `fetch`, `fetch_write`,
//!   `fetch_read` and `fetch_cancel`.
//! - [`explain`]: what would happen, without sending anything.
//! - [`proxy`]: the same for programs that know nothing but a proxy.
//! - [`Credentials`]: puts secrets into requests; their echo is masked. [`Bound`] does so as [`Bindings`] say.

mod address;
mod aws;
mod binding;
mod bound;
mod classify;
mod connect;
mod credentials;
mod decode;
mod denied;
mod door;
mod download;
mod effort;
mod exchange;
mod explain;
mod fields;
mod finder;
mod finders;
#[doc(hidden)]
pub mod fuzz;
mod headers;
mod json;
mod ledger;
mod limits;
mod mask;
mod meta;
mod overrides;
mod pass;
mod pool;
pub mod proxy;
mod put;
mod rule;
mod send;
mod spelling;
mod target;
mod tenant;
mod upload;
mod visit;
mod words;

pub use address::{Dev, Lookup, Resolve, Serve, SystemResolver};
pub use binding::{Binding, Bindings, Pattern, Place};
pub use bound::{Bound, Form, Kept, Secrets, Use};
pub use classify::{Forbidden, RANGES, Range, classify, table};
pub use credentials::{Applied, Credentials, NoCredentials, Prepared, SHORTEST_SECRET};
pub use denied::{Code, Denied};
pub use door::{Door, Settings};
pub use effort::thread_cpu_us;
pub use explain::{Decision, explain};
pub use ledger::{Budget, Bytes, NoBudget, Record, Watch};
pub use limits::Limits;
pub use pass::{Pass, Reply};
pub use policy::egress::{BadRule, BareStar, Host, Origin, Rule, Scheme};
pub use rule::{MOST_RULES, Rules, UNNAMED};
pub use target::{LONGEST_URL, Target};
pub use visit::Visit;

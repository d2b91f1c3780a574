//! What can be seen from outside: numbers for machines that watch, calls as traces, and whether the host is ready.

pub mod health;
mod metrics;
mod reached;
mod series;
mod traces;

pub use metrics::{CallSeen, Gauges, Metrics};
pub(crate) use reached::{Asked, Reached, Row, Sum};
pub use traces::{Trace, TraceError, TraceParent, TraceSettings, Traces, Value};

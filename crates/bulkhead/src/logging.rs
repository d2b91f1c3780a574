//! The host's own log, on stderr.

use crate::config::{Log, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, reload};

/// Parts that talk more than an operator wants to read unless asked.
const QUIET: [(&str, LevelFilter); 3] =
    [("hyper", LevelFilter::WARN), ("h2", LevelFilter::WARN), ("reqwest", LevelFilter::WARN)];

/// Reads a filter: levels, alone or for a part (`info,gateway::mcp=debug`).
pub fn filter(text: &str) -> Result<Targets, String> {
    let mut targets = Targets::new().with_targets(QUIET);
    for part in text.split(',').map(str::trim) {
        let (target, level) = part.rsplit_once('=').map_or((None, part), |(target, level)| (Some(target), level));
        let known = ["off", "error", "warn", "info", "debug", "trace"];
        if !known.contains(&level) {
            return Err(format!("`{level}` is no level; there are {}", known.join(", ")));
        }
        let level: LevelFilter = level.parse().map_err(|_| format!("`{level}` is no level"))?;
        targets = match target {
            Some("") => return Err(format!("`{part}` names no part")),
            Some(target) => targets.with_target(target, level),
            None => targets.with_default(level),
        };
    }
    Ok(targets)
}

/// Changes what is logged while the host runs.
pub struct Handle(reload::Handle<Targets, Registry>);

impl Handle {
    pub fn set(&self, log: &Log) -> Result<(), String> {
        self.0.reload(filter(&log.filter)?).map_err(|error| error.to_string())
    }
}

/// Starts the log. May be called once.
pub fn start(log: &Log) -> Result<Handle, String> {
    let (filter, handle) = reload::Layer::new(filter(&log.filter)?);
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.with_target(false).compact().boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let subscriber = Registry::default().with(lines.with_filter(filter));
    tracing::subscriber::set_global_default(subscriber).map_err(|error| error.to_string())?;
    Ok(Handle(handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_levels_and_parts() {
        assert!(filter("info").is_ok() && filter("warn, gateway::mcp=debug").is_ok() && filter("off").is_ok());
        assert_eq!(filter("inof").unwrap_err(), "`inof` is no level; there are off, error, warn, info, debug, trace");
        assert!(filter("").is_err() && filter("=info").is_err() && filter("gateway=loud").is_err());
    }
}

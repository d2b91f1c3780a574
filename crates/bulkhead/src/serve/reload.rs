//! Reads the configuration again while the host runs.

use super::settings;
use crate::config::{Config, Loaded, Sources};
use crate::logging;
use gateway::{App, Reloaded};
use registry::MasterKey;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// Where the configuration came from, and what the host was started with.
pub struct Reload {
    sources: Sources,
    started_with: Config,
    log: logging::Handle,
    listening: OnceLock<SocketAddr>,
}

impl Reload {
    pub fn new(sources: Sources, started_with: Config, log: logging::Handle) -> Reload {
        Reload { sources, started_with, log, listening: OnceLock::new() }
    }

    /// Known only once the host listens, if the system chose the port.
    pub fn listens_on(&self, address: SocketAddr) {
        // Once is enough.
        let _ = self.listening.set(address);
    }

    /// The settings of the file as it is now. A file with a mistake is refused as a whole.
    pub fn settings(&self) -> Result<Reloaded, String> {
        let Loaded { mut config, .. } = self.sources.load().map_err(|error| {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("{error}{cause}{hint}")
        })?;
        let kept = config.keep_fixed(&self.started_with);
        if !kept.is_empty() {
            let keys: Vec<_> = kept.iter().map(|key| format!("`{key}`")).collect();
            tracing::warn!("{} can only change when the host starts; the old values stay", keys.join(", "));
        }
        self.log.set(&config.log)?;
        let settings = settings(&config, self.listening.get().copied().unwrap_or(config.host.listen));
        Ok(Reloaded { settings, at_start: kept })
    }

    /// The master key from where the file says by now.
    pub fn master_key(&self) -> Result<MasterKey, String> {
        let config = self.sources.load().map_err(|error| error.to_string())?.config;
        config.master_key().map_err(|error| error.to_string())
    }

    /// For SIGHUP, which nobody waits for: the log tells how it went.
    pub async fn by_signal(&self, app: &Arc<App>) {
        let app = app.clone();
        match tokio::task::spawn_blocking(move || app.reload()).await {
            Ok(Ok(_)) => tracing::info!("the configuration was read again"),
            Ok(Err(reason)) => tracing::error!("the configuration was refused, the old one stays: {reason}"),
            Err(error) => tracing::error!(%error, "the configuration could not be read"),
        }
    }
}

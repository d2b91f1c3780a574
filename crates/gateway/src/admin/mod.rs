//! The admin API: tenants, keys, servers, deployments, calls, logs, and the host itself. The command line is its client.
//!
//! Every handler goes the same way: who asks ([`access::Asker`]), whether they may (a thing that is not theirs is not
//! there), then the body, then the registry on a thread that may block.

mod access;
mod body;
mod calls;
mod cursor;
mod deployments;
mod egress;
mod error;
mod host;
mod keys;
mod layers;
mod logs;
mod openapi;
mod page;
mod places;
mod providers;
mod schema;
mod scope;
mod secrets;
mod servers;
mod stream;
mod tenants;

use crate::app::App;
use axum::Router;
use error::Error;
use registry::{Registry, RegistryError};
use std::sync::Arc;

/// What the handlers share.
struct Admin {
    app: Arc<App>,
    deploying: deployments::Queue,
    streams: places::Places,
    searches: places::Places,
}

impl Admin {
    /// Runs on a thread that may wait for the disk. What it began it finishes, also when the client goes away.
    async fn registry<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Registry) -> Result<T, RegistryError> + Send + 'static,
    {
        let registry = self.app.registry().clone();
        match tokio::task::spawn_blocking(move || work(&registry)).await {
            Ok(done) => Ok(done?),
            Err(error) => Err(Error::internal(&error)),
        }
    }
}

/// All routes, to be nested under `/admin/v1`.
pub fn routes(app: Arc<App>) -> Router {
    let admin = Arc::new(Admin {
        app,
        deploying: deployments::Queue::default(),
        streams: stream::places(),
        searches: calls::searches(),
    });
    let (router, _) = openapi::router().split_for_parts();
    router
        .fallback(async || Error::no_route())
        .method_not_allowed_fallback(async || Error::method_not_allowed())
        .with_state(admin)
}

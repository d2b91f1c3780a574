//! News for those who listen: lists that changed, resources that were updated.

use dashmap::DashMap;
use std::sync::Arc;
use tokio::sync::broadcast;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

impl What {
    pub fn method(&self) -> &'static str {
        match self {
            What::Tools => "notifications/tools/list_changed",
            What::Prompts => "notifications/prompts/list_changed",
            What::Resources => "notifications/resources/list_changed",
            What::Resource(_) => "notifications/resources/updated",
        }
    }
}

#[derive(Clone, Debug)]
pub struct News {
    pub server: String,
    pub what: What,
}

/// Per tenant. A listener that does not keep up misses what it did not read; a list is read anew anyway.
#[derive(Default)]
pub struct Hub {
    tenants: DashMap<String, broadcast::Sender<Arc<News>>>,
}

const BACKLOG: usize = 64;

impl Hub {
    pub fn listen(&self, tenant: &str) -> broadcast::Receiver<Arc<News>> {
        self.tenants.entry(tenant.to_owned()).or_insert_with(|| broadcast::channel(BACKLOG).0).subscribe()
    }

    pub fn tell(&self, tenant: &str, server: &str, what: What) {
        if let Some(sender) = self.tenants.get(tenant) {
            // Nobody listens: nothing to do.
            let _ = sender.send(Arc::new(News { server: server.to_owned(), what }));
        }
    }

    /// Forgets tenants that nobody listens to.
    pub fn sweep(&self) {
        self.tenants.retain(|_, sender| sender.receiver_count() > 0);
    }
}

//! How the command line finds its host and its key.

use super::error::ClientError;
use crate::config::web_address;
use reqwest::Url;
use reqwest::header::HeaderValue;
use std::io::Read;
use std::path::{Path, PathBuf};

pub const DEFAULT_URL: &str = "http://127.0.0.1:8470";

/// A key has some fifty characters; a token of an authorisation server has a few thousand.
const MOST_KEY_BYTES: u64 = 16 << 10;

/// Flags of every command that talks to a host.
#[derive(Clone, Default, clap::Args)]
#[command(next_help_heading = "Host")]
pub struct Connection {
    /// The host [default: http://127.0.0.1:8470] [env: BULKHEAD_URL]
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,
    /// The key; others on this machine can read it in the list of processes [env: BULKHEAD_KEY]
    #[arg(long, global = true, value_name = "KEY", conflicts_with = "key_file")]
    key: Option<String>,
    /// A file that holds the key
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Where to go, and what to show there.
pub struct Destination {
    pub url: Url,
    /// `Bearer …`, marked so that nothing prints it.
    pub authorization: Option<HeaderValue>,
}

impl Connection {
    /// Whether any of its flags was given.
    pub fn is_given(&self) -> bool {
        self.url.is_some() || self.key.is_some() || self.key_file.is_some()
    }

    /// Flags go before the environment.
    pub fn destination(&self) -> Result<Destination, ClientError> {
        let text = self.url.clone().or_else(|| variable("BULKHEAD_URL")).unwrap_or_else(|| DEFAULT_URL.to_owned());
        let mut url =
            web_address(&text).map_err(|wrong| ClientError::Url { message: wrong.message, hint: wrong.hint })?;
        // So that paths are put below it, and do not replace its last part.
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        let key = match (&self.key, &self.key_file) {
            (Some(key), _) => Some(key.clone()),
            (None, Some(path)) => Some(read_key(path)?),
            (None, None) => variable("BULKHEAD_KEY"),
        };
        let authorization = key.map(|key| bearer(&key)).transpose()?;
        Ok(Destination { url, authorization })
    }
}

fn bearer(key: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim())).map_err(|_| ClientError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

fn read_key(path: &Path) -> Result<String, ClientError> {
    let unreadable = |source| ClientError::KeyFile { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(MOST_KEY_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    let key = text.trim();
    if key.is_empty() { Err(ClientError::NoKeyInFile { path: path.to_owned() }) } else { Ok(key.to_owned()) }
}

/// An empty variable is as good as none.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

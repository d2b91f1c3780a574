//! `bulkhead publisher`: signatures that anybody can verify, without the tenant's key.

use super::deploy::publisher_key;
use crate::client::ClientError;
use crate::report;
use bundle::{BulkheadLock, PublicKey, PublisherKey, Refused};
use serde_json::json;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Sign as a publisher, and verify such signatures.
///
/// A deploy is sealed with a key of its tenant, which the host knows as well. A publisher's signature (Ed25519) stands
/// beside that seal: whoever knows the public key can verify what was published, and holds no secret of anybody's.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead publisher new publisher.key\n  \
    bulkhead deploy search --publisher-key publisher.key\n  \
    bulkhead publisher verify search/bulkhead.lock --publisher PUBLIC_KEY")]
pub struct Publisher {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    New(New),
    Show(Show),
    Verify(Verify),
}

/// Make a publisher's key. The secret goes into a file for its owner alone, the public key to stdout.
#[derive(clap::Args)]
struct New {
    /// Where the secret goes; it must not be there yet
    file: PathBuf,
    /// Print {"public_key"}
    #[arg(long)]
    json: bool,
}

/// Print the public key of a secret one.
#[derive(clap::Args)]
struct Show {
    /// The secret, as `bulkhead publisher new` wrote it
    file: PathBuf,
    /// Print {"public_key"}
    #[arg(long)]
    json: bool,
}

/// Verify that a lock is as it was written, and who signed it.
#[derive(clap::Args)]
struct Verify {
    /// A `bulkhead.lock`
    #[arg(default_value = "bulkhead.lock")]
    file: PathBuf,
    /// A publisher who must have signed it; may be repeated
    #[arg(long, value_name = "PUBLIC_KEY")]
    publisher: Vec<PublicKey>,
    /// Print {"lock", "server", "key", "publishers"}
    #[arg(long)]
    json: bool,
}

impl Publisher {
    pub fn run(self) -> ExitCode {
        let (done, as_json) = match &self.command {
            Command::New(new) => (new.run(), new.json),
            Command::Show(show) => (publisher_key(&show.file).map(|key| public(&key, show.json)), show.json),
            Command::Verify(verify) => (verify.run(), verify.json),
        };
        done.unwrap_or_else(|error| error.explain(as_json))
    }
}

fn public(key: &PublisherKey, as_json: bool) -> ExitCode {
    let key = key.public();
    let text = if as_json { json!({ "public_key": key }).to_string() } else { key.to_string() };
    report::data(&text, ExitCode::SUCCESS)
}

fn file_error(file: &Path, what: &str, source: std::io::Error) -> ClientError {
    let message = format!("`{}` cannot be {what}", file.display());
    ClientError::Usage { code: "bad_file", message, hint: None, source: Some(source) }
}

impl New {
    fn run(&self) -> Result<ExitCode, ClientError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| ClientError::Runtime(std::io::Error::other(error)))?;
        let written = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file);
        let text = format!("{}\n", bundle::Digest::new(seed));
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        written.map_err(|source| file_error(&self.file, "written", source))?;
        Ok(public(&PublisherKey::from_seed(&seed), self.json))
    }
}

impl Verify {
    fn run(&self) -> Result<ExitCode, ClientError> {
        let bytes = std::fs::read(&self.file).map_err(|source| file_error(&self.file, "read", source))?;
        let refused = |refused: Refused| ClientError::refused(refused.code(), refused.to_string(), None);
        let file = BulkheadLock::parse(&bytes).map_err(|error| refused(error.into()))?;
        let signed = file.seal().verify_publishers(file.lock()).map_err(|error| refused(error.into()))?;
        if let Some(missing) = self.publisher.iter().find(|publisher| !signed.contains(publisher)) {
            return Err(ClientError::refused("bad_signature", format!("{missing} did not sign it"), None));
        }
        let lock = file.lock().digest();
        if self.json {
            let key = file.seal().key().map(ToString::to_string);
            let shown = json!({ "lock": lock, "server": file.lock().server, "key": key, "publishers": signed });
            return Ok(report::data(&shown.to_string(), ExitCode::SUCCESS));
        }
        report::talk(&format!("`{}`, lock {lock}: as it was written", file.lock().server));
        let lines: Vec<_> = signed.iter().map(|publisher| format!("signed by {publisher}")).collect();
        Ok(if lines.is_empty() {
            report::talk("no publisher signed it");
            ExitCode::SUCCESS
        } else {
            report::data(&lines.join("\n"), ExitCode::SUCCESS)
        })
    }
}

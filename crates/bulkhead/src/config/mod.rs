//! The configuration: one file, every key known, nothing guessed.

mod command;
mod file;
mod keys;
mod load;
mod reference;
mod section;
mod settings;
mod value;

pub use command::ConfigCommand;
pub use command::explain;
pub use keys::{Log, LogFormat};
pub use load::{ConfigError, Loaded, Sources};
pub use settings::{MasterKeyProblem, found_toolchains, local_url};
pub use value::{Wrong, web_address};

use keys::{
    AuditLog, Disk, Egress, Host, Http, Isolate, Jail, Limits, Metrics, OAuth, Pool, Process, Quota, Secrets, Sessions,
    Shutdown, Trace,
};
use section::{Key, Section};
use toml::de::DeValue;

/// Declares the file: its tables in their order.
macro_rules! config {
    ($($field:ident: $Section:ty),* $(,)?) => {
        /// Everything that an operator can set.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Config {
            $( pub $field: $Section, )*
        }

        impl Config {
            /// All tables with their keys.
            fn tables() -> Vec<Table> {
                vec![ $( Table { name: <$Section>::NAME, about: <$Section>::about(), keys: <$Section>::keys() }, )* ]
            }

            /// Takes a value in; `None` when there is no such key.
            fn read(&mut self, table: &str, key: &str, value: &DeValue<'_>) -> Option<Result<(), Wrong>> {
                $( if table == <$Section>::NAME { return self.$field.read(key, value); } )*
                None
            }

            /// Takes back what a running host cannot change, and names it.
            pub fn keep_fixed(&mut self, running: &Config) -> Vec<String> {
                let mut kept = Vec::new();
                $(
                    let keys = self.$field.keep_fixed(&running.$field);
                    kept.extend(keys.iter().map(|key| full_name(<$Section>::NAME, key)));
                )*
                kept
            }

            /// Every table with every key and its value; `None` is not set.
            fn show(&self) -> Vec<(&'static str, Vec<(&'static str, Option<toml::Value>)>)> {
                vec![ $( (<$Section>::NAME, self.$field.show()), )* ]
            }
        }
    };
}

config! {
    host: Host,
    limits: Limits,
    jail: Jail,
    isolate: Isolate,
    process: Process,
    pool: Pool,
    quota: Quota,
    sessions: Sessions,
    http: Http,
    oauth: OAuth,
    secrets: Secrets,
    egress: Egress,
    audit_log: AuditLog,
    disk: Disk,
    log: Log,
    trace: Trace,
    metrics: Metrics,
    shutdown: Shutdown,
}

/// A table of the file, as the reference shows it.
struct Table {
    name: &'static str,
    about: String,
    keys: Vec<Key>,
}

/// `table.key`, or only the key above all tables.
fn full_name(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// The word that was probably meant.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Long words would take long to compare, and are no typing errors.
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_ascii_lowercase().replace('-', "_");
    let far = |known: &str| strsim::damerau_levenshtein(&lower, &known.to_ascii_lowercase());
    let (distance, nearest) = known.map(|known| (far(known), known)).min_by_key(|(distance, _)| *distance)?;
    (distance <= (nearest.len() / 3).clamp(1, 3)).then_some(nearest)
}

#[cfg(test)]
mod tests;

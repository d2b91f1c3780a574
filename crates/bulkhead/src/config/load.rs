//! Where the configuration comes from: defaults, then the file, then the environment, then the command line.

use super::file::{Problem, parse};
use super::value::address;
use super::{Config, Wrong};
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// More than anybody writes.
const MOST_BYTES: u64 = 1 << 20;

/// The file that is read when the command line names none.
const FILE_NAME: &str = "bulkhead.toml";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{}` is larger than {} KiB", path.display(), MOST_BYTES / 1024)]
    TooLarge { path: PathBuf },
    #[error("{}", first(path, problems))]
    Problems { path: PathBuf, problems: Vec<Problem> },
    #[error("`{name}` in the environment: {message}")]
    Environment { name: &'static str, message: String, hint: Option<String> },
}

/// The first problem, where it is, and how many more there are.
fn first(path: &Path, problems: &[Problem]) -> String {
    let Some(problem) = problems.first() else { return format!("{}: bad configuration", path.display()) };
    let key = if problem.key.is_empty() { String::new() } else { format!("`{}`: ", problem.key) };
    let more = match problems.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    format!("{}:{}:{}: {key}{}{more}", path.display(), problem.line, problem.column, problem.message)
}

impl ConfigError {
    pub fn hint(&self) -> Option<&str> {
        match self {
            ConfigError::Problems { problems, .. } => problems.first()?.hint.as_deref(),
            ConfigError::Environment { hint, .. } => hint.as_deref(),
            ConfigError::Unreadable { .. } | ConfigError::TooLarge { .. } => None,
        }
    }

    pub fn problems(&self) -> (Option<&Path>, &[Problem]) {
        match self {
            ConfigError::Problems { path, problems } => (Some(path), problems),
            ConfigError::Unreadable { path, .. } | ConfigError::TooLarge { path } => (Some(path), &[]),
            ConfigError::Environment { .. } => (None, &[]),
        }
    }
}

/// What the command line says. Kept, so that a reload looks at the same places.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Sources {
    /// Address and port to listen on [default: 127.0.0.1:8470] [env: BULKHEAD_LISTEN]
    #[arg(long, value_name = "ADDR", value_parser = |text: &str| address(text).map_err(in_words))]
    pub listen: Option<SocketAddr>,
    /// Directory of everything that stays [default: bulkhead-data] [env: BULKHEAD_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The configuration file [default: bulkhead.toml in the data directory, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

fn in_words(wrong: Wrong) -> String {
    wrong.hint.map_or(wrong.message.clone(), |hint| format!("{}, {hint}", wrong.message))
}

/// A configuration and the file that it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    pub path: Option<PathBuf>,
}

impl Sources {
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        let listen = variable("BULKHEAD_LISTEN").map(|text| {
            address(&text).map_err(|Wrong { message, hint }| ConfigError::Environment {
                name: "BULKHEAD_LISTEN",
                message,
                hint,
            })
        });
        let listen = self.listen.or(listen.transpose()?);
        let data = self.data.clone().or_else(|| variable("BULKHEAD_DATA").map(PathBuf::from));
        let path = self.file(data.as_deref());
        let mut config = path.as_deref().map(read).transpose()?.unwrap_or_default();
        if self.config.is_none()
            && let Some(path) = &path
        {
            refuse_other_data(path, &config, data.as_deref())?;
        }
        config.host.listen = listen.unwrap_or(config.host.listen);
        config.host.data = data.unwrap_or(config.host.data);
        Ok(Loaded { config, path })
    }

    fn file(&self, data: Option<&Path>) -> Option<PathBuf> {
        let found = || {
            let default = Config::default().host.data;
            let path = data.unwrap_or(&default).join(FILE_NAME);
            // Whatever it is, it is not passed over in silence.
            path.symlink_metadata().is_ok().then_some(path)
        };
        self.config.clone().or_else(found)
    }
}

/// A file that was found in the data directory cannot say that the data is elsewhere.
fn refuse_other_data(path: &Path, config: &Config, data: Option<&Path>) -> Result<(), ConfigError> {
    let default = Config::default().host.data;
    let data = data.unwrap_or(&default);
    let same = config.host.data == default || config.host.data == data;
    let resolved = || Some(config.host.data.canonicalize().ok()? == data.canonicalize().ok()?);
    if same || resolved().unwrap_or(false) {
        return Ok(());
    }
    let problem = Problem {
        line: 1,
        column: 1,
        key: "data".to_owned(),
        message: format!("this file was found in `{}`, so it cannot name another directory", data.display()),
        hint: Some("name the file with --config, or the directory with --data".to_owned()),
    };
    Err(ConfigError::Problems { path: path.to_owned(), problems: vec![problem] })
}

/// An empty variable is as good as none.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads and checks one file.
pub fn read(path: &Path) -> Result<Config, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ConfigError::TooLarge { path: path.to_owned() });
    }
    parse(&bytes).map_err(|problems| ConfigError::Problems { path: path.to_owned(), problems })
}

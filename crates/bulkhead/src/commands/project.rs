//! A directory with a server and its manifest, and how one begins.

use super::names;
use crate::client::ClientError;
use crate::report::{self, REFUSED, USAGE};
use crate::source::read_at_most;
use bundle::{MANIFEST, Manifest};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A project that was read.
pub struct Project {
    pub manifest: Manifest,
    /// The manifest as it is written.
    pub text: String,
}

impl Project {
    pub fn read(dir: &Path) -> Result<Project, ClientError> {
        let file = dir.join(MANIFEST);
        let unreadable = |path: &Path, source| ClientError::Usage {
            code: "bad_file",
            message: format!("`{}` cannot be read", path.display()),
            hint: Some("`bulkhead init` writes a project; a single file is deployed by its name".to_owned()),
            source: Some(source),
        };
        let most_kb = Manifest::LARGEST as u64 / 1024;
        let bytes = std::fs::File::open(&file).and_then(|file| read_at_most(file, most_kb));
        let bytes = bytes.map_err(|source| unreadable(&file, source))?;
        let bytes = bytes.ok_or_else(|| bad_manifest(&file, &format!("it is larger than {most_kb} KiB")))?;
        let manifest = Manifest::parse(&bytes).map_err(|error| {
            // Each problem begins with its line and column.
            let lines: Vec<String> =
                error.to_string().lines().map(|line| format!("{}:{line}", file.display())).collect();
            ClientError::usage("bad_manifest", lines.join("\n"))
        })?;
        // It was read as TOML, which is UTF-8.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Project { manifest, text })
    }
}

fn bad_manifest(file: &Path, problem: &str) -> ClientError {
    ClientError::usage("bad_manifest", format!("{}: {problem}", file.display()))
}

/// Begin a project: a small server and its manifest, `bulkhead.toml`.
///
/// Nothing that exists is changed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead init search\n  \
    bulkhead init . --name search\n  \
    bulkhead exec search/server.js greet '{\"name\": \"you\"}'\n  \
    bulkhead deploy search")]
pub struct Init {
    /// Where; made if it is not there
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// What the server is called [default: as the directory]
    #[arg(long, value_parser = names::tenant)]
    name: Option<String>,
    /// Print {"name", "files"}
    #[arg(long)]
    json: bool,
}

const SERVER: &str = r#"// A server is an object with tools. docs/authoring.md says what else it may have.
export default {
  tools: {
    greet: {
      description: "Greets somebody",
      input: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      run({ name }) {
        return `Hello, ${name}!`;
      },
    },
  },
};
"#;

#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("`{0}` is no name for a server: a name has 1 to 63 of a-z, 0-9 and -, with no - at either end")]
    Name(String),
    #[error("`{}` is there already", .0.display())]
    Exists(PathBuf),
    #[error("`{}` cannot be written", .0.display())]
    Write(PathBuf, #[source] std::io::Error),
}

impl Init {
    pub fn run(self) -> ExitCode {
        match self.begin() {
            Ok((name, files)) if self.json => {
                report::data(&json!({ "name": name, "files": files }).to_string(), ExitCode::SUCCESS)
            }
            Ok((name, files)) => {
                report::talk(&format!("project `{name}`: {}", files.join(", ")));
                report::talk(&format!("next: bulkhead deploy {}", self.dir.display()));
                ExitCode::SUCCESS
            }
            Err(error) => {
                let (exit, hint) = match &error {
                    InitError::Name(_) => (USAGE, Some("`--name` gives it another")),
                    InitError::Exists(_) => (REFUSED, Some("nothing was changed")),
                    InitError::Write(..) => (REFUSED, None),
                };
                report::fail(exit, "init", &error, hint, self.json)
            }
        }
    }

    fn begin(&self) -> Result<(String, Vec<String>), InitError> {
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |error| InitError::Write(path, error)
        };
        let name = match &self.name {
            Some(name) => name.clone(),
            None => {
                let dir = std::path::absolute(&self.dir).map_err(unwritable(&self.dir))?;
                let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
                names::tenant(&name).map_err(|_| InitError::Name(name))?
            }
        };
        std::fs::create_dir_all(&self.dir).map_err(unwritable(&self.dir))?;
        let files = [(MANIFEST, Manifest::template(&name)), ("server.js", SERVER.to_owned())];
        if let Some((file, _)) = files.iter().find(|(file, _)| self.dir.join(file).symlink_metadata().is_ok()) {
            return Err(InitError::Exists(self.dir.join(file)));
        }
        for (file, content) in &files {
            let path = self.dir.join(file);
            let made = std::fs::File::create_new(&path).and_then(|mut file| file.write_all(content.as_bytes()));
            made.map_err(unwritable(&path))?;
        }
        Ok((name, files.map(|(file, _)| self.dir.join(file).display().to_string()).to_vec()))
    }
}

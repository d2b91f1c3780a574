#![forbid(unsafe_code)]
//! Makes one JavaScript module of a project: TypeScript, several files, packages from npm.
//!
//! - [`build`]: esbuild does the work, in a jail that shows it the project's folder and nothing else.
//! - [`BuildError`]: what the author has to change, with file, line and column.
//! - [`map_stack`]: a stack trace of the module in terms of the project's files.

mod advice;
mod builtins;
mod error;
mod esbuild;
mod files;
mod graph;
mod packet;
mod plain;
mod service;
mod stack;
mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::{BuildError, Place, Problem};
pub use plain::imports_nothing;
pub use stack::map_stack;

/// Reads a packet of esbuild's, for fuzzing.
#[doc(hidden)]
pub fn read_packet(packet: &[u8]) {
    let _ = packet::Value::response(packet);
}

/// Where esbuild is, and what a build may use.
#[derive(Clone, Debug)]
pub struct Options {
    /// The executable. `None`: beside the running program, unless `BULKHEAD_ESBUILD` says otherwise.
    pub esbuild: Option<PathBuf>,
    /// The bytes of the module, and of its map.
    pub output_bytes: usize,
    pub wall_clock: Duration,
    pub memory_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { esbuild: None, output_bytes: 32 << 20, wall_clock: Duration::from_secs(60), memory_bytes: 1 << 30 }
    }
}

/// What a project becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// One ES module, or the bare script that the entry is.
    pub code: String,
    /// A source map (version 3) without the sources' text, or nothing when the entry is used as it is.
    pub map: String,
    /// The files it is made of, relative to the project, sorted.
    pub inputs: Vec<String>,
    /// What the author should know, each a line to show.
    pub warnings: Vec<String>,
}

/// Builds `entry`, a path relative to the folder `project`.
///
/// One plain JavaScript file that imports nothing is its own result. Everything else is bundled in a jail; where there can be
/// no jail there is no build.
pub fn build(project: &Path, entry: &str, options: &Options) -> Result<Built, BuildError> {
    let project = files::Project::open(project)?;
    let entry = project.entry(entry)?;
    let javascript = plain::is_javascript(&entry);
    let source = if javascript { project.source(&entry, options.output_bytes)? } else { String::new() };
    let alone = javascript && plain::imports_nothing(&source);
    let bundled = if alone { None } else { Some(esbuild::bundle(&project, &entry, options)) };
    let as_it_is = match &bundled {
        None => true,
        // Only the word occurs, in a comment or a text.
        Some(Ok(bundled)) => javascript && !bundled.imports,
        Some(Err(error)) => {
            javascript && error.is_a_script() && esbuild::script_imports_nothing(&project, &entry, &source, options)?
        }
    };
    match bundled {
        Some(bundled) if !as_it_is => Ok(bundled?.built),
        _ => Ok(Built { code: source, map: String::new(), inputs: vec![entry], warnings: Vec::new() }),
    }
}

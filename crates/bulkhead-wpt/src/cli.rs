//! What the command line says.

use clap::Parser;
use std::path::PathBuf;

/// Runs web-platform-tests against the web APIs of the isolate.
#[derive(Parser)]
#[command(name = "bulkhead-wpt", version)]
pub struct Options {
    /// A checkout of web-platform-tests
    pub checkout: PathBuf,
    /// Directories or files inside it; without any, those that matter for servers
    pub paths: Vec<String>,
    /// One JSON object on stdout instead of the table
    #[arg(long)]
    pub json: bool,
    /// Show every check that failed
    #[arg(long, short)]
    pub verbose: bool,
    /// Also run files that need a document, a worker or the tests' own web server
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 when fewer checks pass
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min: usize,
    /// Exit with 1 when any check fails
    #[arg(long)]
    pub strict: bool,
    /// How many files run at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub jobs: usize,
    /// Seconds for one file
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub limit: u64,
    /// Let V8 compile to machine code
    #[arg(long)]
    pub jit: bool,
}

/// The directories that say how well a server's code is served.
pub const DEFAULT_PATHS: &[&str] = &[
    "url",
    "encoding",
    "streams",
    "fetch/api/headers",
    "fetch/api/request",
    "fetch/api/response",
    "fetch/api/body",
    "dom/abort",
    "dom/events",
    "FileAPI/blob",
    "xhr/formdata",
    "html/webappapis/atob",
    "html/webappapis/structured-clone",
    "WebCryptoAPI/digest",
];

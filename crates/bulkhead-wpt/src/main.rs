//! Starts the test runner: the library beside this binary, preloaded into the executable that carries V8.

#![forbid(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const OUR_FAULT: u8 = 2;

fn main() -> ExitCode {
    let started = std::env::current_exe().map_err(|error| error.to_string()).and_then(|exe| {
        let here = exe.parent().unwrap_or(Path::new(".")).to_path_buf();
        let library = find("BULKHEAD_WPT_LIB", &[here.join("libbulkhead_wpt.so")])?;
        let carrier = find(
            "BULKHEAD_V8",
            &[
                here.join("bulkhead-v8"),
                here.join("../v8/node/bin/node"),
                here.join("../../v8/node/bin/node"),
                PathBuf::from("target/v8/node/bin/node"),
            ],
        )?;
        let error = Command::new(carrier)
            .arg0("bulkhead-wpt")
            .args(std::env::args_os().skip(1))
            .env("LD_PRELOAD", library)
            .exec();
        Err(error.to_string())
    });
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(OUR_FAULT)
        }
    }
}

/// The file that the variable names, or the first of the usual places that exists.
fn find(variable: &str, places: &[PathBuf]) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(variable) {
        return Ok(PathBuf::from(path));
    }
    let found = places.iter().find(|place| place.is_file()).cloned();
    found.ok_or_else(|| format!("`{}` is missing\nhint: set {variable}", places[0].display()))
}

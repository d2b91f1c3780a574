//! Where the executable with V8 in it and the worker library are.

use std::path::{Path, PathBuf};

/// What a base zygote is started from.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// The executable that carries V8 (docs/v8.md).
    pub executable: PathBuf,
    /// The worker, preloaded into it. `None` for an executable that is the worker itself.
    pub library: Option<PathBuf>,
    /// Loaded before the worker. For tests that attack from native code.
    pub preload: Vec<PathBuf>,
    /// Added to the otherwise empty environment of the start. For the same tests.
    pub environment: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
#[error("{what} is not at `{}`; `make build` puts it there, `{variable}` names another place", path.display())]
pub struct CarrierError {
    what: &'static str,
    path: PathBuf,
    variable: &'static str,
}

impl Carrier {
    /// Beside the running program, unless `BULKHEAD_V8` and `BULKHEAD_WORKER` say otherwise.
    pub fn find() -> Result<Carrier, CarrierError> {
        let program = std::env::current_exe().unwrap_or_default();
        Carrier::beside(program.parent().unwrap_or(Path::new(".")))
    }

    /// In this folder, unless the variables say otherwise. A worker that is no library has V8 linked in.
    pub fn beside(folder: &Path) -> Result<Carrier, CarrierError> {
        let alone = folder.join("isolate-worker").is_file() && !folder.join("libisolate_worker.so").is_file();
        let name = if alone { "isolate-worker" } else { "libisolate_worker.so" };
        let worker = locate("the isolate worker", "BULKHEAD_WORKER", folder, name)?;
        let (executable, library) = if worker.extension().is_some_and(|extension| extension == "so") {
            (locate("the executable with V8", "BULKHEAD_V8", folder, "bulkhead-v8")?, Some(worker))
        } else {
            (worker, None)
        };
        Ok(Carrier { executable, library, preload: Vec::new(), environment: Vec::new() })
    }

    /// The value of `LD_PRELOAD`: the libraries in order.
    pub(crate) fn preloads(&self) -> std::ffi::OsString {
        let all: Vec<_> = self.preload.iter().chain(&self.library).map(|path| path.as_os_str()).collect();
        all.join(std::ffi::OsStr::new(":"))
    }
}

fn locate(what: &'static str, variable: &'static str, folder: &Path, name: &str) -> Result<PathBuf, CarrierError> {
    let path = std::env::var_os(variable).map_or_else(|| folder.join(name), PathBuf::from);
    match path.canonicalize() {
        Ok(found) if found.is_file() => Ok(found),
        _ => Err(CarrierError { what, path, variable }),
    }
}

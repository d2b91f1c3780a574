//! A server that no interpreter runs.

mod support;

use policy::Boundary;
use sandbox::{Program, Request};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use support::{Ear, Server, ask, pool, tool, value};

/// A folder with the program in it, which goes with this.
struct Compiled(PathBuf);

impl Compiled {
    /// Cargo brings the compiler, so there is always one.
    fn new(name: &str, options: &[&str]) -> Compiled {
        let folder = std::env::temp_dir().join(format!("process-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let folder = Compiled(folder);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/compiled.rs");
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(compiler);
        command.args(["--edition", "2024", "-o"]).arg(folder.0.join("server")).args(options).arg(source);
        let output = command.output().expect("a compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn serves(name: &str, options: &[&str], linked: bool) {
    let compiled = Compiled::new(name, options);
    let server = Server::new("", &[]).boundary(Boundary::Session).deploy();
    let mut deployment = Arc::into_inner(server).expect("nobody else has it");
    if let Program::Command { files, command, .. } = &mut deployment.program {
        (*files, *command) = (compiled.0.clone(), vec!["./server".to_owned()]);
    }
    let (pool, deployment) = (pool(), Arc::new(deployment));
    for session in ["one", "two"] {
        let given = json!({ "a": [1, "ä\"}"], "b": {} });
        let request = Request { session: Some(session.to_owned()), ..tool("run", &given) };
        for _ in 0..2 {
            let answer = ask(&pool, &deployment, &request, &Ear::named("me")).await;
            let answer = value(&answer.outcome.unwrap_or_else(|failure| panic!("{name}: {failure}")));
            // The second process of its own world.
            assert_eq!(answer, json!({ "given": given, "pid": 2, "linked": linked }));
        }
    }
    drop((pool, deployment));
    support::until_nothing_is_left().await;
}

#[tokio::test]
async fn a_compiled_server_serves() {
    serves("dynamic", &[], true).await;
}

/// One that brings its libraries along needs nothing of the system that it sees.
#[tokio::test]
async fn a_compiled_server_without_libraries_serves() {
    serves("static", &["-C", "target-feature=+crt-static"], false).await;
}

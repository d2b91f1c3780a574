//! Projects that want more than their share.

use crate::support::{Project, options};
use build::{BuildError, Options, build};
use std::fs::File;
use std::process::Command;
use std::time::Duration;

fn with(project: &Project, entry: &str, options: &Options) -> BuildError {
    build(&project.folder(), entry, options).expect_err("it was built")
}

fn short() -> Options {
    Options { wall_clock: Duration::from_secs(1), ..options() }
}

#[test]
fn a_named_pipe_ends_with_the_time() {
    let project = Project::new(&[("a.ts", "import pipe from './pipe.txt';\nexport default { pipe };\n")]);
    let made = Command::new("mkfifo").arg("--mode=644").arg(project.folder().join("pipe.txt")).status().unwrap();
    assert!(made.success());
    let error = with(&project, "a.ts", &short());
    assert!(matches!(error, BuildError::TooLong(_)), "{error}");
    assert!(error.to_string().contains("named pipe"), "{error}");
    // As the entry it is not even opened.
    let made = Command::new("mkfifo").arg(project.folder().join("b.js")).status().unwrap();
    assert!(made.success());
    assert!(project.refusal("b.js").contains("is not a file"));
}

/// Only root can make one; a mount for a jail has no devices.
#[test]
fn a_device_cannot_be_read() {
    let project = Project::new(&[("a.ts", "import zero from './zero.txt';\nexport default { zero };\n")]);
    let made = Command::new("mknod")
        .args(["--mode=644".as_ref(), project.folder().join("zero.txt").as_os_str()])
        .args(["c", "1", "5"])
        .output()
        .unwrap();
    if !made.status.success() {
        skips::skip(String::from_utf8_lossy(&made.stderr).trim());
        return;
    }
    let text = project.refusal("a.ts");
    assert!(text.contains("permission denied"), "{text}");
}

#[test]
fn a_huge_file_ends_with_the_memory() {
    for name in ["huge.txt", "huge.json", "huge.ts"] {
        let project = Project::new(&[("a.ts", &format!("import huge from './{name}';\nexport default {{ huge }};\n"))]);
        File::create(project.folder().join(name)).unwrap().set_len(64 << 30).unwrap();
        let error = with(&project, "a.ts", &options());
        assert!(matches!(error, BuildError::TooMuchMemory(_)), "{name}: {error}");
    }
}

/// It fits into what the kernel allows, and not into what is watched.
#[test]
fn memory_is_watched() {
    let project = Project::new(&[("a.ts", "import large from './large.txt';\nexport default { large };\n")]);
    project.write("large.txt", "x".repeat(60 << 20));
    let error = with(&project, "a.ts", &Options { memory_bytes: 40 << 20, ..options() });
    assert!(matches!(error, BuildError::TooMuchMemory(_)), "{error}");
}

#[test]
fn a_large_result_is_refused() {
    let project = Project::new(&[
        ("a.ts", "import large from './large.txt';\nexport default { large };\n"),
        ("a.js", &format!("export default '{}'", "x".repeat(1 << 20))),
    ]);
    project.write("large.txt", "x".repeat(9 << 20));
    for (entry, output_bytes) in [("a.ts", 1 << 20), ("a.ts", 5 << 20)] {
        let error = with(&project, entry, &Options { output_bytes, ..options() });
        assert!(matches!(error, BuildError::TooLarge(_)), "{error}");
    }
    let error = with(&project, "a.js", &Options { output_bytes: 1 << 20, ..options() });
    assert!(error.to_string().contains("has more than 1048576 bytes"), "{error}");
}

#[test]
fn code_that_is_deep_is_an_error_and_no_more() {
    let project = Project::new(&[]);
    project.write("a.ts", format!("export default {}", "(".repeat(3_000_000)));
    let error = with(&project, "a.ts", &options());
    assert!(error.to_string().contains("nested too deep"), "{error}");
    let small = Options { memory_bytes: 128 << 20, ..short() };
    for piece in ["[", "{a:", "!", "a=>", "`${", "<a>"] {
        project.write("a.tsx", format!("export default {}", piece.repeat(1_000_000)));
        let error = with(&project, "a.tsx", &small);
        assert!(matches!(error, BuildError::TooMuchMemory(_) | BuildError::TooLong(_)), "{piece}: {error}");
    }
}

//! A small world of its own for a test: mounts and networks that nobody else sees, gone when the test's process is.

use std::process::{Command, Stdio};

/// Runs the test `name` of this binary again in a world of its own, and there for real. `setup` is shell script. False: the
/// test is over out here, or is skipped without the rights to have such a world.
pub fn in_own_world(name: &str, setup: &str) -> bool {
    if std::env::var("TEST_WORLD").is_ok_and(|world| world == name) {
        return true;
    }
    let script = |then: &str| {
        let mut command = Command::new("unshare");
        let script = format!("({setup}) >/dev/null 2>&1 || exit 77; {then}");
        command.args(["--mount", "--net", "sh", "-c", &script]);
        command.env("TEST_WORLD", name).env("TEST_BINARY", std::env::current_exe().expect("this program"));
        command
    };
    if !script("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        skips::skip("needs the right to have mounts and a network of its own");
        return false;
    }
    let run = format!(r#"exec timeout --kill-after=10 150 "$TEST_BINARY" --exact {name} --nocapture"#);
    // Its closing line would be counted beside that of this test.
    let status = script(&run).stdout(Stdio::null()).status().expect("the shell starts");
    assert!(status.success(), "{name}: {status}");
    false
}

/// Runs a line of shell script that must work.
pub fn shell(script: &str) {
    let status = Command::new("sh").args(["-c", script]).status().expect("a shell");
    assert!(status.success(), "{script}: {status}");
}

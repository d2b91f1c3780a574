//! Every end, and nothing that is left behind.

use crate::Case;
use crate::client::{Place, running, until};
use std::io::Read;
use std::process::{Command, Stdio};

pub const CASES: &[Case] = &[
    ("the_servers_status_is_ours", status),
    ("the_clients_end_is_the_servers", client_ends),
    ("a_client_that_does_not_listen_ends_it", client_gone),
    ("a_signal_reaches_the_server", signal),
    ("a_killed_runner_leaves_no_process", killed),
    ("a_server_that_leaves_children_leaves_nobody", children),
];

fn status() {
    let place = Place::new("status");
    for (script, expected) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)] {
        let output = place.output(&["--", "sh", "-c", script], b"");
        assert_eq!(output.status.code(), Some(expected), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

fn client_ends() {
    let place = Place::new("client-ends");
    // Ends by itself when there is no more to read, and its last words arrive.
    let output = place.output(&["--", "sh", "-c", "cat >/dev/null; echo last words; exit 3"], b"x");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b"last words\n"[..]));
    // Does not, and is ended.
    let output = place.output(&["--", "sh", "-c", "sleep 600"], b"");
    assert!(!output.status.success());
}

fn client_gone() {
    let place = Place::new("client-gone");
    let mut child =
        place.runner(&["--", "sh", "-c", "while echo more; do :; done; sleep 600"]).spawn().expect("the runner");
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 64]).expect("output");
    drop(stdout);
    assert!(!child.wait().expect("the end").success());
}

fn signal() {
    let place = Place::new("signal");
    let script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    for name in ["-TERM", "-INT"] {
        let mut session = place.session(&["--", "sh", "-c", script]);
        assert_eq!(session.lines.recv().expect("a line"), "ready");
        let sent = Command::new("kill").args([name, &session.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        assert_eq!(session.lines.recv().expect("a line"), "bye", "{name}");
        assert_eq!(session.child.wait().expect("the end").code(), Some(5));
    }
}

fn killed() {
    let place = Place::new("killed");
    let mark = format!("mark-of-a-killed-runner-{}", std::process::id());
    let script = "import os, sys, time\nos.fork(); os.setsid() if os.fork() == 0 else None\nprint('up', flush=True); time.sleep(600)";
    let mut session = place.session(&["--", "python3", "-c", script, &mark]);
    assert_eq!(session.lines.recv().expect("a line"), "up");
    until("the server runs", || running(&mark).len() == 4);
    session.child.kill().expect("a kill");
    session.child.wait().expect("the end");
    until("nobody is left", || running(&mark).is_empty());
}

fn children() {
    let place = Place::new("children");
    let mark = format!("mark-of-a-child-{}", std::process::id());
    let script = "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)\nprint('done', flush=True)";
    let child = place.runner(&["--", "python3", "-c", script, &mark]).stdin(Stdio::null()).spawn().expect("the runner");
    let output = child.wait_with_output().expect("the end");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"done\n"[..]));
    assert!(running(&mark).is_empty());
}

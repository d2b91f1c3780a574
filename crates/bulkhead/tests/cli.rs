//! The program as people and scripts meet it: words, exit codes and shapes.

mod support;

use insta::assert_snapshot;
use serde_json::Value;
use std::path::PathBuf;
use support::{Dir, Run, bulkhead, example};

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{run:?}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|object| object.keys().map(String::as_str).collect()).unwrap_or_default()
}

// --- exec: good calls --------------------------------------------------------------------------------------------

#[test]
fn a_good_call_prints_its_result_and_nothing_else_on_stdout() {
    let run = bulkhead(["exec", &example("prices.js"), "double_price", r#"{"price": 45}"#]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{\"doublePrice\":90}\n"));
    assert_snapshot!(run.stderr_without_figures(), @"
    info: doubling #
    receipt: wall isolate, boundary call, jitless; # ms CPU of #, # ms, # KiB memory of # MiB, # host calls
    ");
}

#[test]
fn the_input_can_come_from_stdin() {
    let run = bulkhead(["exec", &example("prices.js"), "double_price", "-"]).with_stdin(r#"{"price": 2}"#);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{\"doublePrice\":4}\n"));
    let empty = bulkhead(["exec", &example("prices.js"), "double_price", "-"]).with_stdin("");
    assert_eq!(empty.code, 64);
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    let run = bulkhead(["exec", &example("prices.js"), "double_price", "-"]).with_stdin(&long);
    assert_eq!(run.code, 1);
    assert_snapshot!(run.stderr, @"error: the input on stdin is larger than 1024 KiB (`argument_kb`)");
}

#[test]
fn json_has_a_result_a_receipt_and_the_log() {
    let run = bulkhead(["exec", &example("prices.js"), "double_price", r#"{"price": 45}"#, "--json"]);
    assert_eq!((run.code, run.stderr.as_str(), run.stdout.lines().count()), (0, "", 1));
    let object = json(&run);
    assert_eq!(keys(&object), ["logs", "receipt", "result"]);
    assert_eq!(object["result"], serde_json::json!({ "doublePrice": 90 }));
    assert_eq!(object["logs"], serde_json::json!([{ "level": "info", "text": "doubling 45" }]));
    assert_snapshot!(keys(&object["receipt"]).join(" "), @"boundary cpu_us credentials host_calls hosts jit limits log_bytes masked peak_memory_kb time_us wait_us wall");
}

#[test]
fn json_of_a_failure_has_a_code_and_a_message() {
    let run = bulkhead(["exec", &example("hostile/spin.js"), "run", "{}", "--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    let object = json(&run);
    assert_eq!(keys(&object), ["error", "logs", "receipt"]);
    assert_eq!(object["error"]["code"], "cpu_limit");
    assert_eq!(object["error"]["message"], "the call used more than 50 ms of CPU time (`cpu_ms`)");
    assert!(object["receipt"]["cpu_us"].as_u64().unwrap() >= 50_000);
}

#[test]
fn boundaries_show_with_repeat() {
    let dir = Dir::new();
    let file = dir.file("counter.js", "let n = 0; export default { tools: { count: { run: () => ++n } } };");
    for (boundary, last) in [("call", "1\n"), ("session", "3\n"), ("server", "3\n"), ("tenant", "3\n")] {
        let run = bulkhead(["exec", &file, "count", "--repeat", "3", "--boundary", boundary]);
        assert_eq!((run.code, run.stdout.as_str()), (0, last), "{boundary}");
    }
}

// --- exec: what is refused ---------------------------------------------------------------------------------------

#[test]
fn a_command_line_that_makes_no_sense_is_64() {
    let prices = example("prices.js");
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage: bulkhead [OPTIONS] <COMMAND>"),
        (&["execute"], "unrecognized subcommand 'execute'"),
        (&["exec"], "<FILE>"),
        (&["exec", &prices], "<TOOL>"),
        (&["exec", &prices, "t", "{}", "--cpu-ms", "many"], "'many' for '--cpu-ms"),
        (&["exec", &prices, "t", "{}", "--limit", "cpu_ms"], "`cpu_ms` is not NAME=VALUE"),
        (&["exec", &prices, "t", "{}", "--limit", "cpu_ms=-1"], "`-1` is not a whole number"),
        (
            &["exec", &prices, "t", "{}", "--boundary", "galaxy"],
            "`galaxy` is no boundary; there are call, session, server and tenant",
        ),
        (&["exec", &prices, "t", "{}", "--repeat", "0"], "0 is not in 1.."),
        (&["completions", "cmd"], "bash"),
        (&["exec", &prices, "t", "--url", "http://127.0.0.1:1"], "this command talks to no host"),
        (&["--key", "x", "doctor"], "this command talks to no host"),
    ];
    for (args, words) in cases {
        let run = bulkhead(args.iter().copied());
        assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{args:?}\n{run:?}");
        assert!(run.stderr.contains(words), "{args:?} does not say `{words}`:\n{}", run.stderr);
    }
}

#[test]
fn an_unknown_limit_names_those_there_are() {
    let run = bulkhead(["exec", &example("prices.js"), "double_price", "{}", "--limit", "cpu=1"]);
    assert_eq!(run.code, 64);
    assert_snapshot!(run.stderr, @"
    error: invalid value 'cpu=1' for '--limit <NAME=VALUE>': `cpu` is no limit; there are cpu_ms, time_ms, memory_mb, result_kb, log_kb, host_calls, argument_kb, argument_depth, init_cpu_ms, init_time_ms, source_kb, processes, cpu_percent, scratch_mb

    For more information, try '--help'.
    ");
}

#[test]
fn a_limit_out_of_bounds_is_refused() {
    let above = bulkhead(["exec", &example("prices.js"), "double_price", "{}", "--limit", "cpu_ms=60001"]);
    assert_eq!((above.code, above.stdout.as_str()), (1, ""));
    assert_snapshot!(above.stderr, @"error: `cpu_ms` of 60001 is above this host's maximum of 60000");
    let below = bulkhead(["exec", &example("prices.js"), "double_price", "{}", "--memory-mb", "7", "--json"]);
    assert_eq!(below.code, 1);
    assert_snapshot!(below.stdout, @r#"{"error":{"code":"refused","hint":null,"message":"`memory_mb` of 7 is below the least that works, 8"}}"#);
}

#[test]
fn a_file_that_cannot_be_read_is_64() {
    let dir = Dir::new();
    let missing = bulkhead(["exec", "no/such/server.js", "run"]).in_dir(&dir);
    assert_eq!((missing.code, missing.stdout.as_str()), (64, ""));
    assert_snapshot!(missing.stderr, @"
    error: `no/such/server.js` cannot be read
      caused by: No such file or directory (os error 2)
    ");
    let folder = bulkhead(["exec", ".", "run", "{}", "--json"]).in_dir(&dir);
    assert_eq!(folder.code, 64);
    assert_snapshot!(folder.stdout, @r#"{"error":{"code":"bad_file","hint":null,"message":"`.` cannot be read: is a directory"}}"#);
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let run = bulkhead(["exec", "/dev/zero", "run"]);
    assert_eq!(run.code, 64);
    assert_snapshot!(run.stderr, @"
    error: `/dev/zero` cannot be read
      caused by: it is not a file
    ");
    let dir = Dir::new();
    std::fs::File::create(dir.path("large.js")).unwrap().set_len(1 << 40).unwrap();
    let run = bulkhead(["exec", "large.js", "run"]).in_dir(&dir);
    assert_eq!(run.code, 1);
    assert_snapshot!(run.stderr, @"error: `large.js` becomes larger than 4096 KiB (`source_kb`)");
}

#[test]
fn typescript_and_its_imports_are_built() {
    let dir = Dir::new();
    let server = "import { twice } from './twice';\nexport default { tools: { double: { run: ({ price }: { price: number }) => twice(price) } } };";
    dir.file("server.ts", server);
    dir.file("twice.ts", "export const twice = (price: number): number => {\n  if (price < 0) throw new Error('negative');\n  return price * 2;\n};");
    let run = bulkhead(["exec", "server.ts", "double", r#"{"price": 45}"#]).in_dir(&dir);
    assert_eq!((run.code, run.stdout.trim()), (0, "90"), "{run:?}");
    // The author's own lines.
    let run = bulkhead(["exec", "server.ts", "double", r#"{"price": -1}"#]).in_dir(&dir);
    assert!(run.code == 1 && run.stderr.contains("twice.ts:2:24"), "{run:?}");
    dir.file("server.ts", "import secret from '../../../../etc/passwd';\nexport default { secret };");
    let run = bulkhead(["exec", "server.ts", "run", "{}", "--json"]).in_dir(&dir);
    let error = &json(&run)["error"];
    assert_eq!((run.code, error["code"].as_str()), (1, Some("build_failed")), "{run:?}");
    assert!(error["message"].as_str().unwrap().contains("server.ts:1:20"), "{run:?}");
}

#[test]
fn input_that_is_not_json_is_64() {
    let run = bulkhead(["exec", &example("prices.js"), "double_price", "{price: 45}"]);
    assert_eq!((run.code, run.stdout.as_str()), (64, ""));
    assert_snapshot!(run.stderr, @r#"
    error: the input is not JSON
      caused by: key must be a string at line 1 column 2
    hint: quote it for the shell: '{"price": 45}'
    "#);
    let run = bulkhead(["exec", &example("prices.js"), "double_price", "[1", "--json"]);
    assert_eq!((run.code, json(&run)["error"]["code"].as_str()), (64, Some("bad_arguments")));
}

#[test]
fn an_unknown_tool_names_those_there_are() {
    let run = bulkhead(["exec", &example("prices.js"), "halve_price"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_snapshot!(run.stderr_without_figures(), @"
    error: unknown_tool: there is no tool `halve_price`
    hint: the server has `double_price`, `convert`
    receipt: wall isolate, boundary call, jitless; # ms CPU of #, # ms, # KiB memory of # MiB, # host calls
    ");
    let run = bulkhead(["exec", &example("prices.js"), "halve_price", "{}", "--json"]);
    assert_eq!(json(&run)["error"]["hint"], "the server has `double_price`, `convert`");
}

// --- exec: hostile files -----------------------------------------------------------------------------------------

#[test]
fn what_a_tool_says_does_not_steer_the_terminal() {
    let dir = Dir::new();
    let said = r#"const said = "\x1b[2J\x9b31m\x7f\u202e\r\nreceipt: wall none"; console.log(said);"#;
    let answers = dir.file("answers.js", &format!("{said} return said;"));
    let throws = dir.file("throws.js", &format!("{said} throw new Error(said);"));
    let steers = |text: &str| text.chars().any(|c| c != '\n' && c.is_control() || c == '\u{202e}');

    let run = bulkhead(["exec", &answers, "run"]);
    assert_eq!(run.stdout, "\"\\u001b[2J\\u009b31m\\u007f\\u202e\\r\\nreceipt: wall none\"\n");
    assert!(!steers(&run.stderr), "{run:?}");
    assert_eq!(run.stderr.lines().filter(|line| line.starts_with("receipt:")).count(), 1, "{run:?}");

    let run = bulkhead(["exec", &throws, "run"]);
    assert!(run.code == 1 && !steers(&run.stderr), "{run:?}");
    assert_eq!(run.stderr.lines().filter(|line| line.starts_with("receipt:")).count(), 1, "{run:?}");

    let run = bulkhead(["exec", &answers, "run", "{}", "--json"]);
    assert!(!steers(&run.stdout), "{run:?}");
    assert_eq!(json(&run)["result"], "\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\r\nreceipt: wall none");
}

/// The user runs the command on a file of their own, so links are followed; but an error never quotes the file.
#[test]
fn a_link_to_another_file_shows_little_of_it() {
    let dir = Dir::new();
    let secret = dir.file("passwd", "root:x:0:0:secret words:/root:/bin/bash\n");
    let link = dir.path("server.js");
    std::os::unix::fs::symlink(secret, &link).unwrap();
    let run = bulkhead(["exec", link.to_str().unwrap(), "run"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_eq!(
        run.stderr.lines().next(),
        Some("error: init_failed: SyntaxError: Unexpected token ':' (server.js:1:9)")
    );
    assert!(!run.stderr.contains("secret") && !run.stderr.contains("bash"), "{run:?}");
}

#[test]
fn a_stack_has_the_files_name_and_not_its_path() {
    let dir = Dir::new();
    let file = dir.file("broken.js", "const a = 1;\nthrow new RangeError('boom');");
    let run = bulkhead(["exec", &file, "run"]);
    assert!(run.stderr.contains("RangeError: boom") && run.stderr.contains("(broken.js:2:7)"), "{run:?}");
    assert!(!run.stderr.contains(dir.path("").to_str().unwrap()), "{run:?}");
}

// --- the rest ----------------------------------------------------------------------------------------------------

#[test]
fn every_help_has_examples_and_goes_to_stdout() {
    let commands = [
        "",
        "exec",
        "doctor",
        "serve",
        "config",
        "config check",
        "config show",
        "config reference",
        "tenant",
        "tenant create",
        "tenant list",
        "tenant show",
        "tenant set",
        "tenant delete",
        "key",
        "key create",
        "key list",
        "key revoke",
        "server",
        "server list",
        "server show",
        "server delete",
        "deploy",
        "deployments",
        "rollback",
        "tools",
        "call",
        "logs",
        "calls",
        "audit-log",
        "audit-log verify",
        "audit-log head",
        "host",
        "limits",
        "reload",
        "completions",
    ];
    for command in commands {
        for help in ["--help", "-h"] {
            let run = bulkhead(command.split_whitespace().chain([help]));
            assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
            assert!(run.stdout.contains("Examples:\n  bulkhead "), "{command}\n{}", run.stdout);
            let first = command.split_whitespace().next().unwrap_or_default();
            let local = ["exec", "doctor", "serve", "config", "completions"].contains(&first);
            assert_eq!(run.stdout.contains("--key-file"), !local, "{command}\n{}", run.stdout);
        }
    }
    assert!(bulkhead(["help", "exec"]).stdout.contains("Examples:\n  bulkhead "));
    let run = bulkhead(["--version"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, concat!("bulkhead ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let run = bulkhead(["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        for word in
            ["exec", "doctor", "cpu-ms", "serve", "tenant", "rollback", "audit-log", "key-file", "requests-per-s"]
        {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn doctor_says_what_was_tried_and_which_walls_start() {
    let run = bulkhead(["doctor", "--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let object = json(&run);
    assert_eq!(keys(&object), ["checks", "walls"]);
    for check in object["checks"].as_array().unwrap() {
        assert_eq!(keys(check), ["available", "detail", "name", "needed_by"]);
    }
    let walls = object["walls"].as_array().unwrap();
    assert!(walls.iter().all(|wall| keys(wall) == ["available", "detail", "name"]));
    assert_eq!((walls[0]["name"].as_str(), walls[0]["available"].as_bool()), (Some("isolate"), Some(true)));

    let text = bulkhead(["doctor"]);
    assert!(
        text.code == 0 && text.stdout.starts_with("this host\n") && text.stdout.contains("\nwalls\n  ok  isolate"),
        "{text:?}"
    );
    let broken = bulkhead(["doctor"]).with_env("BULKHEAD_WORKER", "/no/such/worker");
    assert!(broken.code == 1 && broken.stdout.contains("the isolate worker is not at `/no/such/worker`"), "{broken:?}");
}

#[test]
fn a_wall_that_cannot_start_is_2() {
    let dir = Dir::new();
    let call = || bulkhead(["exec", &example("prices.js"), "double_price", r#"{"price": 45}"#]);
    let run = call().with_env("BULKHEAD_WORKER", "/no/such/worker");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert_snapshot!(run.stderr, @"
    error: the wall cannot be started
      caused by: the isolate worker is not at `/no/such/worker`; `make build` puts it there, `BULKHEAD_WORKER` names another place
    hint: `bulkhead doctor` says what this host offers and what is missing
    ");
    let text = dir.file("text", "not an executable");
    let run = call().arg("--json").with_env("BULKHEAD_V8", &text);
    let error = &json(&run)["error"];
    assert_eq!((run.code, error["code"].as_str()), (2, Some("wall_unavailable")));
    assert!(
        error["message"].as_str().unwrap().starts_with("the wall cannot be started: the worker could not be started: ")
    );
    assert!(error["hint"].as_str().unwrap().contains("bulkhead doctor"));
}

/// Panics of the standard library's `println!` would end the program with a signal.
#[test]
fn a_reader_that_goes_away_and_a_full_disk_are_no_crash() {
    let call = || bulkhead(["exec", &example("prices.js"), "double_price", r#"{"price": 45}"#]);
    let gone = call().into_closed_pipe();
    assert_eq!(gone.code, 0, "{gone:?}");
    let full = call().into_file(&PathBuf::from("/dev/full"));
    assert_eq!(full.code, 2);
    assert!(full.stderr.contains("error: stdout cannot be written\n  caused by: No space left on device"), "{full:?}");
    assert_eq!(bulkhead(["doctor"]).into_closed_pipe().code, 0);
    assert_eq!(bulkhead(["exec", "--help"]).into_closed_pipe().code, 0);
}

#[test]
fn it_runs_for_an_unprivileged_user() {
    let Some(nobody) = support::nobody() else {
        skips::skip("only root can become another user, with `setpriv`");
        return;
    };
    let dir = Dir::for_everybody();
    support::install(&dir);
    let file = dir.file("prices.js", &std::fs::read_to_string(example("prices.js")).unwrap());
    let run = bulkhead(["exec", &file, "double_price", r#"{"price": 45}"#]).started_by(&nobody, &dir);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{\"doublePrice\":90}\n"), "{run:?}");
    let run = bulkhead(["doctor", "--json"]).started_by(&nobody, &dir);
    assert_eq!((run.code, json(&run)["walls"][0]["available"].as_bool()), (0, Some(true)), "{run:?}");
}

/// As for an ordinary user with subordinate uids, after `unshare --user --map-auto --map-root-user`.
#[test]
fn a_host_with_subordinate_uids_gives_each_jail_its_own() {
    let Some(mut shell) = support::subordinate::Subordinate::new() else {
        skips::skip("only root can give a user namespace a range of uids");
        return;
    };
    let program = env!("CARGO_BIN_EXE_bulkhead");
    let out = shell.run(&format!(
        r#"{program} doctor --json; {program} exec {} double_price '{{"price": 45}}'"#,
        example("prices.js")
    ));
    assert!(out.contains("30000 uids, one for each jail: 30000-59999"), "{out}");
    assert!(out.ends_with("{\"doublePrice\":90}\n"), "{out}");
}

#[test]
fn run_says_where_the_command_belongs() {
    let run = bulkhead(["run", "--ro", ".", "npx", "-y", "a-package"]);
    assert_eq!(run.code, 64);
    let hint = "hint: the server's command comes after `--`: `bulkhead run --ro . -- npx -y a-package`";
    assert!(run.stderr.lines().any(|line| line == hint), "{run:?}");
    let other = bulkhead(["run", "--nobody-has-this", "--", "true"]);
    assert!(other.code == 64 && !other.stderr.contains("hint:"), "{other:?}");
}

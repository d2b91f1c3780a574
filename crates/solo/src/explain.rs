//! The jail in plain words.

use crate::plan::{Plan, Start, Why};
use crate::profile::Access;
use crate::trust::is_partial;
use install::{HOME, TMP};
use jail::cgroup;
use jail::program::shields_sockets;
use std::fmt::Write;

/// Files and folders that are named; of the others there is a count.
const MOST_NAMED: usize = 20;

/// Variables that every jail has, which say nothing about the person.
const USUAL: [&str; 15] = [
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "NODE_USE_ENV_PROXY",
    "NODE_OPTIONS",
    "NO_PROXY",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "FASTMCP_CHECK_FOR_UPDATES",
];

/// What the server sees, may write, may reach and may use, and who sees to each bound on this machine. Values of variables
/// are not in it.
pub fn explain(plan: &Plan) -> String {
    let mut lines = vec![format!("The command `{}` runs in a jail.", plan.command.join(" "))];
    lines.extend(program(plan));
    lines.push(String::new());
    lines.push("It sees".to_owned());
    lines.push(
        "  the programs and libraries of the system, read-only, without package managers and set-user-id programs"
            .into(),
    );
    for shown in plan.shown.iter().filter(|shown| shown.access == Access::Read) {
        lines.push(format!("  {}, read-only{}", shown.path.display(), why(shown.why)));
    }
    lines.push("  its own processes and nobody else's".into());
    lines.push("It may write to".to_owned());
    for shown in plan.shown.iter().filter(|shown| shown.access == Access::Write) {
        lines.push(format!("  {}{}, but not run programs from there", shown.path.display(), why(shown.why)));
    }
    lines.extend(guarded(plan));
    let room = plan.limits.tmp_mb;
    lines.push(format!("  {HOME} and {TMP}: empty at the start, {room} MB each, in memory, gone at the end"));
    if !plan.makes_sockets() && !shields_sockets() {
        lines.push(
            "It makes no Unix sockets with paths, because the folders above may hold some of other programs \
             (`--unix-sockets` allows them)."
                .into(),
        );
    }
    lines.push(format!("It starts in {}. Nothing else of this machine is there.", plan.folder.display()));
    lines.push(String::new());
    lines.extend(network(plan));
    lines.push(String::new());
    let named: Vec<&str> = plan.variables.keys().map(String::as_str).filter(|name| !USUAL.contains(name)).collect();
    lines.push(match named.as_slice() {
        [] => {
            "Of the environment it has nothing but the usual: PATH, HOME, LANG, TMPDIR and where the proxy is.".into()
        }
        named => format!(
            "Of the environment it has {}; and PATH, HOME, LANG, TMPDIR and where the proxy is.",
            named.join(", ")
        ),
    });
    lines.push(String::new());
    lines.extend(limits(plan));
    lines.extend(plan.hints.iter().map(|hint| format!("Note: {hint}")));
    lines.join("\n") + "\n"
}

/// What stays as it is in the folders that it may change.
fn guarded(plan: &Plan) -> Vec<String> {
    let outside = "programs outside run or obey it";
    let mut lines: Vec<String> = plan
        .guarded
        .read_only
        .iter()
        .take(MOST_NAMED)
        .map(|path| {
            let flag = if path.ends_with(".git") {
                "`--commits` allows it, but for settings and hooks"
            } else {
                "`--repo-settings` allows it"
            };
            format!("    but not {}: {outside} ({flag})", path.display())
        })
        .collect();
    let rest = plan.guarded.read_only.len().saturating_sub(MOST_NAMED);
    if rest > 0 {
        lines.push(format!("    nor {rest} more of the kind"));
    }
    if !plan.guarded.unheld.is_empty() || !plan.guarded.watched.is_empty() {
        lines.push(
            "    if it creates something there that programs outside run or obey, such as `.git`, a line on stderr names it".to_owned(),
        );
    }
    lines
}

fn why(why: Why) -> &'static str {
    match why {
        Why::Asked => "",
        Why::Profile => " (this server's profile says that an argument or variable means it)",
        Why::Toolchain => " (the program needs it)",
        Why::Code => " (the server itself)",
    }
}

fn program(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    match &plan.start {
        Start::Program(program) => lines.push(format!("What is started is {}.", program.display())),
        Start::Package { package, interpreter } => {
            let (spec, interpreter) = (package.spec(), interpreter.display());
            lines.push(format!("What is started is the package `{spec}`, run by {interpreter}."));
            let scripts = if plan.scripts { "run there, without your passwords" } else { "do not run" };
            lines.push(format!(
                "The package is installed before, once, in a jail of its own that reaches the registry of your own settings \
                 alone; its install scripts {scripts}. Later starts use what was installed, read-only, without asking \
                 the registry (`--refresh` installs anew)."
            ));
        }
    }
    if let Some(about) = &plan.profile {
        lines.push(format!("There is a profile for it: {about}."));
    }
    lines
}

fn network(plan: &Plan) -> Vec<String> {
    if plan.offline {
        return vec!["It reaches nothing (`--offline`).".into()];
    }
    let mut lines = Vec::new();
    for port in &plan.tcp {
        lines.push(format!(
            "It reaches port {} of {}, by the same name and port inside, without the proxy and whatever it says there.",
            port.port, port.host
        ));
    }
    if plan.allow.is_empty() && !plan.tcp.is_empty() {
        lines.push("It reaches nothing else: no host is named by `--allow`.".into());
    } else if plan.allow.is_empty() {
        lines.push("It reaches nothing: no host is named by `--allow`.".into());
    } else {
        lines.push("It reaches, through a proxy on a loopback of its own".to_owned());
        lines.extend(plan.allow.iter().map(|rule| format!("  {rule}")));
        let own = plan.own_ports().iter().map(|port| format!("port {port}")).collect::<Vec<_>>().join(", ");
        let machine = match own.as_str() {
            "" => "no address of this machine or its network".to_owned(),
            ports => format!("of this machine {ports} alone, and no address of its network"),
        };
        lines.push(format!("and no other host, no name server, {machine}."));
        if plan.allow.iter().any(|rule| is_partial(rule)) {
            lines.push(
                "Where a rule names paths or methods, the proxy reads along: the jail trusts certificates that it makes."
                    .into(),
            );
        }
    }
    lines.push("Any other connection that does not use the proxy fails.".into());
    lines
}

fn limits(plan: &Plan) -> Vec<String> {
    let limits = &plan.limits;
    let survey = cgroup::survey().ok().filter(|survey| survey.kind.is_some());
    let groups = survey.is_some();
    let cpu = survey.is_some_and(|survey| survey.controllers.iter().any(|name| name == "cpu"));
    let by_group = "held by the kernel, with a control group";
    let memory = if groups { by_group } else { "looked at ten times a second, and all of it killed beyond" };
    let processes = if groups { by_group } else { "held by the kernel, with a limit on the jail's user" };
    let share = if cpu {
        by_group
    } else {
        "looked at, estimated where children end unseen, and all of it killed after half a minute beyond"
    };
    let mut lines = vec!["It may use".to_owned()];
    lines.push(format!("  {} MB of memory ({memory})", limits.memory_mb));
    lines.push(format!("  {} % of one core ({share})", limits.cpu_percent));
    lines.push(format!("  {} processes and threads ({processes})", limits.processes));
    let mut last = String::from("Not held: how much it writes to the folders above in all");
    if !groups {
        let _ = write!(
            last,
            "; and, for want of control groups, a short burst of memory between two looks, and the kernel's own lists of what \
             is mapped and open, up to some 20 MB for each process"
        );
    }
    lines.push(last + ".");
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use install::testing::Folder;

    #[test]
    fn it_says_what_is_there_and_no_values() {
        let folder = Folder::new("explain");
        std::fs::create_dir_all(folder.path().join("notes")).unwrap();
        let options = Options {
            command: vec!["sh".into(), "-c".into(), "true".into()],
            rw: vec!["notes".into()],
            allow: vec!["api.example.com".into()],
            env: vec!["TOKEN=hidden-value".into()],
            ..Options::default()
        };
        let told = explain(&Plan::new(&options, &folder.surroundings()).unwrap());
        let notes = folder.path().join("notes").display().to_string();
        for part in ["`sh -c true`", notes.as_str(), "  api.example.com", "has TOKEN;", "512 MB", "100 processes"] {
            assert!(told.contains(part), "{part} is not in:\n{told}");
        }
        assert!(!told.contains("hidden-value"));
    }
}

//! Programs that a repository has under the names of interpreters and package managers: nothing runs them but a jail.

use crate::Case;
use crate::client::{Place, Session};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

pub const CASES: &[Case] = &[
    ("a_program_with_the_name_of_an_interpreter_runs_in_the_jail_alone", hostile),
    ("a_package_manager_is_asked_in_a_jail", managers),
    ("a_shim_that_stands_for_a_real_python_works", shim),
    ("a_virtual_environment_works", environment),
    ("an_installation_of_another_project_is_hinted_at", another),
];

/// Leaves a mark wherever it can write, and tells all that it sees.
fn bait(place: &Place, path: &str) -> PathBuf {
    let path = place.path().join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let mark = place.path().join("mark");
    let text = format!("#!/bin/sh\necho \"$0 $@ $SECRET_OF_THE_HOST\" >> {}\nenv\nenv >&2\nexit 0\n", mark.display());
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

fn untouched(place: &Place, words: &[&str], told: &str) {
    let mark = fs::read_to_string(place.path().join("mark"));
    assert!(mark.is_err(), "{words:?} ran outside: {mark:?}");
    assert!(!told.contains("a secret value"), "{words:?} told: {told}");
}

fn hostile() {
    let place = Place::new("named");
    for path in ["bin/python", "bin/python3", "bin/python3.12", "bin/node", "bin/server", ".venv/bin/python"] {
        bait(&place, path);
    }
    fs::write(place.path().join(".venv/pyvenv.cfg"), "home = /usr/bin\n").expect("a file");
    fs::write(place.path().join("server.py"), "").expect("a file");
    let first = format!("{}:/usr/bin:/bin", place.path().join("bin").display());
    for command in [
        &["python", "server.py"][..],
        &["python3", "server.py"],
        &["node", "server.py"],
        &["server"],
        &["./bin/node"],
        &[".venv/bin/python", "server.py"],
        &["env", "python3", "server.py"],
        &["npx", "-y", "a-package"],
        &["uvx", "a-package"],
        &["uvx", "--python", "3.12", "a-package"],
        &["uvx", "--python", ".venv/bin/python", "a-package"],
    ] {
        for flags in [&["--offline", "--dry-run", "--"][..], &["--offline", "--explain", "--"], &["--offline", "--"]] {
            let words = [flags, command].concat();
            let output = place.runner(&words).env("PATH", &first).output().expect("the runner");
            let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            untouched(&place, &words, &told.concat());
        }
    }
}

/// Here the names lead to programs that are asked for settings before anything is installed.
fn managers() {
    let place = Place::new("managers");
    for name in ["npm", "python3", "node"] {
        bait(&place, &format!("bin/{name}"));
    }
    let first = format!("{}:/usr/bin:/bin", place.path().join("bin").display());
    for command in [&["npx", "-y", "a-package"], &["pipx", "run", "a-package"]] {
        let words = [&["--"], &command[..]].concat();
        let output = place.runner(&words).env("PATH", &first).output().expect("the runner");
        assert_eq!(output.status.code(), Some(1), "nothing can be installed with these");
        let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        untouched(&place, &words, &told.concat());
    }
}

/// A Python that is no script, as the machine has it.
fn real_python() -> PathBuf {
    let found = install::toolchain::find("python3", &install::Surroundings::here().expect("surroundings"));
    fs::canonicalize(found.expect("a Python").program).expect("a program")
}

fn answers(mut session: Session) {
    session.initialize();
    assert_eq!(session.ask("tools/list", json!({}))["tools"][0]["name"], "evaluate");
    assert_eq!(session.end(), Some(0));
}

/// As pyenv has it: a script in front, and the real one where a file in the working directory says.
fn shim() {
    let place = Place::new("shim");
    let root = place.path().join("managed");
    let shim = bait(&place, "managed/shims/python3");
    let real = real_python();
    let installation = real.parent().and_then(Path::parent).expect("an installation");
    fs::create_dir_all(root.join("versions")).expect("a folder");
    symlink(installation, root.join("versions/3.99.2")).expect("a link");
    fs::write(place.path().join(".python-version"), "3.99\n").expect("a file");
    let server = place.server("small.py");
    for name in ["python3", shim.to_str().expect("a path")] {
        let mut command = place.runner(&["--", name, &server]);
        let path = format!("{}:/usr/bin:/bin", root.join("shims").display());
        command.env("PYENV_ROOT", &root).env("PATH", path);
        answers(Session::start(command));
    }
    untouched(&place, &["python3"], "");
    // A version that leads out of the manager's folder is none.
    bait(&place, "other/bin/python3");
    fs::write(place.path().join(".python-version"), "../../other\n").expect("a file");
    let mut command = place.runner(&["--", "python3", &server]);
    command.env("PYENV_ROOT", &root).env("PATH", format!("{}:/usr/bin:/bin", root.join("shims").display()));
    let output = command.output().expect("the runner");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && told.contains("version manager"), "{told}");
    untouched(&place, &["python3"], &told);
}

fn environment() {
    let place = Place::new("environment");
    let real = real_python();
    let bin = place.path().join(".venv/bin");
    fs::create_dir_all(&bin).expect("a folder");
    symlink(&real, bin.join("python")).expect("a link");
    let home = real.parent().expect("a folder").display();
    fs::write(place.path().join(".venv/pyvenv.cfg"), format!("home = {home}\n")).expect("a file");
    let server = place.server("small.py");
    answers(place.session(&["--", ".venv/bin/python", &server]));
}

/// A repository's virtual environment that is made of another project's: not shown until the person says so.
fn another() {
    let place = Place::new("another");
    let other = place.path().join("home/other/env");
    let repository = place.path().join("home/repository");
    for folder in [other.join("bin"), other.join("lib"), repository.join(".venv/bin")] {
        fs::create_dir_all(folder).expect("a folder");
    }
    fs::copy(fs::canonicalize("/bin/sh").expect("a shell"), other.join("bin/python3")).expect("a program");
    fs::write(other.join("key"), "a private key\n").expect("a file");
    symlink(other.join("bin/python3"), repository.join(".venv/bin/python")).expect("a link");
    fs::write(repository.join(".venv/pyvenv.cfg"), format!("home = {}/bin\n", other.display())).expect("a file");
    let read = format!("while read line; do echo $line; done < {}; echo", other.join("key").display());
    let run = |flags: &[&str]| {
        let words = [flags, &["--", ".venv/bin/python", "-c", &read]].concat();
        let output = place.runner(&words).current_dir(&repository).output().expect("the runner");
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let [said, told] = run(&[]);
    assert!(!said.contains("private"), "{said}");
    let other = other.to_str().expect("a path");
    assert!(told.contains(&format!("`--ro {other}` before `--`")), "{told}");
    let [said, told] = run(&["--ro", other]);
    assert!(said.contains("a private key") && !told.contains("usual place"), "{said}{told}");
}

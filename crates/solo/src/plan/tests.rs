use super::*;
use install::testing::Folder;
use std::fs;

fn options(command: &str) -> Options {
    Options { command: command.split(' ').map(str::to_owned).collect(), ..Options::default() }
}

fn paths(plan: &Plan) -> Vec<(&Path, Access, Why)> {
    plan.shown.iter().map(|shown| (shown.path.as_path(), shown.access, shown.why)).collect()
}

#[test]
fn nothing_is_shown_that_nobody_named() {
    let folder = Folder::new("plan-nothing");
    let mut around = folder.surroundings();
    around.variables.insert("TOKEN".into(), "secret".into());
    let plan = Plan::new(&options("sh -c true"), &around).unwrap();
    assert_eq!(paths(&plan), []);
    assert_eq!(plan.folder, Path::new(HOME));
    assert!(!plan.variables.values().any(|value| value == "secret"));
    assert!(plan.allow.is_empty() && plan.hints.is_empty(), "{plan:?}");
}

#[test]
fn folders_are_shown_where_they_are() {
    let folder = Folder::new("plan-folders");
    fs::create_dir_all(folder.path().join("notes/deep")).unwrap();
    let around = folder.surroundings();
    let notes = folder.path().join("notes");
    let mut asked =
        Options { rw: vec!["notes/deep".into()], ro: vec!["./notes/../notes".into()], ..options("sh ./notes") };
    let plan = Plan::new(&asked, &around).unwrap();
    assert_eq!(paths(&plan), [(&*notes, Access::Read, Why::Asked), (&*notes.join("deep"), Access::Write, Why::Asked)]);
    assert_eq!(plan.folder, around.folder, "relative arguments mean the same");
    assert!(plan.hints.is_empty(), "{:?}", plan.hints);
    asked.rw = vec!["notes".into()];
    assert!(matches!(Plan::new(&asked, &around), Err(Error::Folder { .. })), "twice");
}

#[test]
fn the_jails_own_places_are_not_replaced() {
    let folder = Folder::new("plan-own");
    let around = folder.surroundings();
    for path in ["/", "/proc", "/proc/1", "/dev/shm", "/tmp", "/home", "/etc", "/usr", "/nobody-has-this"] {
        let asked = Options { ro: vec![path.into()], ..options("sh") };
        assert!(matches!(Plan::new(&asked, &around), Err(Error::Folder { .. })), "{path}");
    }
}

#[test]
fn what_cannot_be_seen_is_hinted_at() {
    let folder = Folder::new("plan-hint");
    fs::create_dir_all(folder.path().join("notes")).unwrap();
    let around = folder.surroundings();
    let plan =
        Plan::new(&options("sh -c true ./notes --root=./notes ./nothing https://example.com/ notes"), &around).unwrap();
    let hint = "`./notes` is not visible to the server; add `--ro ./notes` or `--rw ./notes` before `--`";
    assert_eq!(plan.hints, [hint, hint]);
}

#[test]
fn what_would_be_lost_is_hinted_at() {
    let folder = Folder::new("plan-lost");
    fs::create_dir_all(folder.path().join("data")).unwrap();
    let around = folder.surroundings();
    let plan =
        Plan::new(&options("sh -c true --db=./data/new.db ./new.db org/repo /new ./no/folder"), &around).unwrap();
    let data = folder.path().join("data");
    let hint = format!(
        "`./data/new.db` is not there; what the server writes to it is gone at its end, unless you add `--rw {}` before `--`",
        data.display()
    );
    assert_eq!(plan.hints, [hint]);
}

#[test]
fn addresses_that_cannot_be_reached_are_hinted_at() {
    let folder = Folder::new("plan-addresses");
    let around = folder.surroundings();
    let mut asked = options("sh -c true http://localhost:9/sse --url=redis://u:p@host.example https://host.example/");
    asked.env = vec!["DB=postgresql://u:secret@localhost/x".into(), "API=http://127.0.0.1:8080".into()];
    let plan = Plan::new(&asked, &around).unwrap();
    assert_eq!(plan.hints.len(), 4, "{:?}", plan.hints);
    assert!(plan.hints[0].ends_with("add `--allow http://localhost:9` before `--`"), "{:?}", plan.hints);
    assert!(!plan.hints.concat().contains("secret") && !plan.hints.concat().contains("u:p"), "{:?}", plan.hints);
    asked.allow = vec!["http://localhost:9".into(), "http://127.0.0.1:8080".into()];
    assert_eq!(Plan::new(&asked, &around).unwrap().hints.len(), 2);
}

#[test]
fn variables_are_those_that_are_named() {
    let folder = Folder::new("plan-variables");
    let mut around = folder.surroundings();
    around.variables.extend([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())]);
    let asked = Options { env: vec!["A".into(), "C=x=y".into(), "D".into()], ..options("sh") };
    let plan = Plan::new(&asked, &around).unwrap();
    assert_eq!((plan.variables["A"].as_str(), plan.variables["C"].as_str()), ("1", "x=y"));
    assert!(!plan.variables.contains_key("B") && !plan.variables.contains_key("D"));
    assert_eq!(plan.hints, ["`--env D`: the variable is not set"]);
    let wrong = Options { env: vec!["=x".into()], ..options("sh") };
    assert!(matches!(Plan::new(&wrong, &around), Err(Error::Variable(_))));
}

#[test]
fn a_profile_grants_what_the_arguments_name() {
    let folder = Folder::new("plan-profile");
    fs::create_dir_all(folder.path().join("notes")).unwrap();
    fs::create_dir_all(folder.path().join("home/bin")).unwrap();
    let node = folder.path().join("home/bin/node");
    fs::write(&node, "\x7fELF").unwrap();
    fs::set_permissions(&node, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let around = folder.surroundings();
    let notes = folder.path().join("notes");
    let command = "npx -y @modelcontextprotocol/server-filesystem ./notes";
    let granted =
        |plan: &Plan| plan.shown.iter().find(|shown| shown.path == notes).map(|shown| (shown.access, shown.why));
    let plan = Plan::new(&options(command), &around).unwrap();
    assert_eq!(granted(&plan), Some((Access::Write, Why::Profile)));
    let flag = Options { ro: vec!["notes".into()], ..options(command) };
    assert_eq!(granted(&Plan::new(&flag, &around).unwrap()), Some((Access::Read, Why::Asked)), "a flag is stronger");
    let plain = Plan::new(&Options { no_profile: true, ..options(command) }, &around).unwrap();
    assert_eq!((granted(&plain), plain.hints.len()), (None, 1));
    let home = Plan::new(&options("npx -y @modelcontextprotocol/server-filesystem ./home ."), &around).unwrap();
    assert_eq!(home.hints.len(), 2, "a profile never grants the home: {:?}", home.shown);
}

#[test]
fn a_script_is_shown_with_its_project() {
    let folder = Folder::new("plan-script");
    let project = folder.path().join("home/project");
    fs::create_dir_all(project.join("dist")).unwrap();
    for file in ["dist/server.sh", "package.json"] {
        fs::write(project.join(file), "{}").unwrap();
    }
    fs::write(folder.path().join("home/alone.sh"), "").unwrap();
    let around = folder.surroundings();
    let plan = Plan::new(&options("sh home/project/dist/server.sh"), &around).unwrap();
    assert_eq!(paths(&plan), [(&*project, Access::Read, Why::Code)]);
    let plan = Plan::new(&options("sh home/alone.sh"), &around).unwrap();
    assert_eq!(paths(&plan), [(&*folder.path().join("home/alone.sh"), Access::Read, Why::Code)]);
}

#[test]
fn rules_and_limits_are_checked_first() {
    let folder = Folder::new("plan-rules");
    let around = folder.surroundings();
    for rule in ["*", "ftp://x.example", "a b c", "x.example/path"] {
        let asked = Options { allow: vec![rule.into()], ..options("sh") };
        assert!(matches!(Plan::new(&asked, &around), Err(Error::Rule(_))), "{rule}");
    }
    let asked = Options { limits: Limits { processes: 0, ..Limits::default() }, ..options("sh") };
    assert!(matches!(Plan::new(&asked, &around), Err(Error::Limit("processes"))));
    let own = vec!["http://localhost:8080".to_owned(), "GET http://127.0.0.1:9/x".to_owned(), "x.example".to_owned()];
    let plan = Plan::new(&Options { allow: own, ..options("sh") }, &around).unwrap();
    assert_eq!(plan.own_ports(), [8080, 9]);
    assert!(matches!(Plan::new(&Options::default(), &around), Err(Error::NoCommand)));
}

#[test]
fn the_home_is_written_out_and_never_shown_in_silence() {
    let folder = Folder::new("plan-home");
    fs::create_dir_all(folder.path().join("home/notes")).unwrap();
    let around = folder.surroundings();
    let notes = folder.path().join("home/notes");
    let asked = Options { ro: vec!["~/notes".into()], ..options("sh -c true ~/notes ~/other") };
    let plan = Plan::new(&asked, &around).unwrap();
    assert_eq!(plan.arguments, ["-c", "true", notes.to_str().unwrap(), "~/other"]);
    assert!(plan.hints.is_empty(), "{:?}", plan.hints);
    let all = Plan::new(&Options { ro: vec!["~".into()], ..options("sh") }, &around).unwrap();
    assert_eq!(all.hints.len(), 1);
}

#[test]
fn a_variable_that_names_a_file_shows_its_folder() {
    let folder = Folder::new("plan-file");
    fs::create_dir_all(folder.path().join("memory")).unwrap();
    let mut around = folder.surroundings();
    let Ok(_) = toolchain::find("node", &around) else { return eprintln!("SKIPPED: there is no node") };
    let mut plan = |file: &str| {
        around.variables.insert("MEMORY_FILE_PATH".into(), file.into());
        Plan::new(&options("npx -y @modelcontextprotocol/server-memory"), &around).unwrap()
    };
    let memory = folder.path().join("memory");
    let shown = plan(memory.join("m.json").to_str().unwrap());
    assert!(shown.shown.contains(&Shown { path: memory, access: Access::Write, why: Why::Profile }), "{shown:?}");
    let refused = plan(folder.path().join("home/m.json").to_str().unwrap());
    assert!(
        refused.hints.len() == 1 && !refused.shown.iter().any(|shown| shown.access == Access::Write),
        "{refused:?}"
    );
    let relative = plan("m.json");
    assert!(!relative.shown.iter().any(|shown| shown.access == Access::Write), "{relative:?}");
}

//! Where a program is on the host, and what it needs around it.

use crate::around::Surroundings;
use crate::error::Error;
use crate::shim::{self, Shim};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What every jail shows of the host anyway.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Versions of Python 3 that servers are written for.
const MINORS: std::ops::RangeInclusive<u32> = 10..=16;

/// Folders of the home with an installation of Python in each of theirs.
const KEPT: [&str; 2] = [".local/share/uv/python", ".pyenv/versions"];

/// Links and interpreters that lead on, at most.
const DEEPEST: usize = 16;

/// A program and what it needs of the host beyond the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The file to start, at its own path.
    pub program: PathBuf,
    /// Files and folders, each to be shown read-only at its own path.
    pub needs: Vec<PathBuf>,
    /// Installations that only a file of a repository leads to. They are not shown.
    pub withheld: Vec<PathBuf>,
    /// Folders for `PATH`.
    pub folders: Vec<PathBuf>,
}

/// What leads to a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// The person's own `PATH` or installations.
    Own,
    /// The person, who wrote it.
    Named,
    /// A link, a `pyvenv.cfg` or the first line of a script, which may be a stranger's.
    File,
}

/// Whether every jail shows it.
pub fn of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|root| path.starts_with(root))
}

/// Finds a program as a shell would.
pub fn find(name: &str, around: &Surroundings) -> Result<Found, Error> {
    let mut found = Found::default();
    let program = look(name, around)?;
    found.program = follow(&program, lead(&program, around), around, &mut found, 0)?;
    Ok(found)
}

/// Folders that these programs need beside the system, for those that are there. A program in one of them is in its `bin`.
pub fn toolchains(names: &[&str], around: &Surroundings) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for found in names.iter().filter_map(|name| find(name, around).ok()) {
        let needs: Vec<PathBuf> = found.needs.into_iter().filter(|path| path.is_dir()).collect();
        // In a store of many packages the program's own is one of them.
        let own = found.folders.iter().filter_map(|bin| bin.parent());
        let own = own.filter(|folder| needs.iter().any(|shown| folder.starts_with(shown))).map(Path::to_owned);
        for folder in needs.iter().cloned().chain(own).collect::<Vec<_>>() {
            if !all.contains(&folder) {
                all.push(folder);
            }
        }
    }
    all
}

/// Whether it is a file that may be executed.
pub(crate) fn runs(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What leads to a program that the person has named, or that was found in `PATH`.
fn lead(program: &Path, around: &Surroundings) -> Lead {
    let own = |folder: &Path| around.path.iter().any(|known| known == folder) && !around.in_repository(folder);
    if program.parent().is_some_and(own) { Lead::Own } else { Lead::Named }
}

fn look(name: &str, around: &Surroundings) -> Result<PathBuf, Error> {
    let runs = |path: &PathBuf| runs(path);
    let missing = || Error::NoProgram(name.to_owned());
    if name.contains('/') {
        return Some(around.absolute(Path::new(name))).filter(runs).ok_or_else(missing);
    }
    let mut in_path = around.path.iter().map(|folder| folder.join(name)).filter(runs);
    if !name.starts_with("python3.") {
        return in_path.next().ok_or_else(missing);
    }
    // There are shims for versions that are not in use.
    let answers = |path: &PathBuf| match shim::look_behind(path, around) {
        Shim::No => interpreter(path).is_none(),
        Shim::For(_) => true,
        Shim::ForNothing => false,
    };
    in_path.find(answers).or_else(|| kept(name, around).into_iter().find(runs)).ok_or_else(missing)
}

/// Other Pythons than this one that are here: newer ones first, the nearest of each before the others.
pub fn pythons(usual: &Found, around: &Surroundings) -> Vec<Found> {
    let real = fs::canonicalize(&usual.program).unwrap_or_else(|_| usual.program.clone());
    let name = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let own = name.strip_prefix("python3.").and_then(|minor| minor.parse().ok()).unwrap_or(*MINORS.start());
    let newer = own + 1..=*MINORS.end();
    let older = (*MINORS.start()..own).rev();
    newer.chain(older).filter_map(|minor| find(&format!("python3.{minor}"), around).ok()).collect()
}

/// Where managers of versions keep the Pythons that they have installed for this person.
fn kept(name: &str, around: &Surroundings) -> Vec<PathBuf> {
    let stores = KEPT.iter().filter_map(|store| fs::read_dir(around.home.join(store)).ok()).flatten();
    let mut all: Vec<PathBuf> =
        stores.filter_map(Result::ok).map(|entry| entry.path().join("bin").join(name)).collect();
    all.sort();
    all
}

/// Notes what `program` needs; returns what is to be started in its place.
fn follow(
    program: &Path,
    lead_here: Lead,
    around: &Surroundings,
    found: &mut Found,
    depth: usize,
) -> Result<PathBuf, Error> {
    if depth > DEEPEST {
        return Err(Error::NoProgram(program.display().to_string()));
    }
    let program = &match shim::look_behind(program, around) {
        Shim::For(real) => real,
        Shim::No => program.to_owned(),
        Shim::ForNothing => return Err(Error::NoVersion(program.to_owned())),
    };
    let real = fs::canonicalize(program).map_err(Error::path(program))?;
    let (mut place, mut by) = (program.clone(), lead_here);
    for _ in 0..DEEPEST {
        note(&place, by, around, found);
        if by != Lead::Own {
            by = if around.is_usual(&place) { Lead::Own } else { Lead::File };
        }
        match fs::read_link(&place) {
            Ok(to) => place = around.absolute(&place.parent().unwrap_or(Path::new("/")).join(to)),
            Err(_) => break,
        }
    }
    note(&real, by, around, found);
    for around_it in [program.parent(), real.parent()].into_iter().flatten().filter(|folder| folder.ends_with("bin")) {
        environment_of_python(around_it, by, around, found);
        if !found.folders.iter().any(|known| known == around_it) {
            found.folders.push(around_it.to_owned());
        }
    }
    if let Some(interpreter) = interpreter(&real) {
        let (path, by) = match interpreter.strip_prefix("env ") {
            Some(name) => look(name, around).map(|path| (path.clone(), lead(&path, around)))?,
            None => (PathBuf::from(interpreter), by),
        };
        follow(&path, by, around, found, depth + 1)?;
    }
    Ok(program.clone())
}

/// A place outside of the system is shown with the installation that it belongs to; or alone, if it is in no such thing.
fn note(place: &Path, lead: Lead, around: &Surroundings, found: &mut Found) {
    if of_system(place) || found.needs.iter().any(|shown| place.starts_with(shown)) {
        return;
    }
    let store = Path::new("/nix/store");
    let whole = if place.starts_with(store) { Some(store.to_owned()) } else { installation(place, around) };
    let shown = whole.unwrap_or_else(|| place.to_owned());
    let real = fs::canonicalize(&shown).unwrap_or_else(|_| shown.clone());
    let named = lead == Lead::Named && real == shown;
    if lead == Lead::Own || named || around.in_repository(&real) || around.is_usual(&real) {
        found.needs.push(shown);
    } else if !found.withheld.iter().any(|withheld| real.starts_with(withheld)) {
        found.withheld.push(real);
    }
}

/// The folder with `bin` and `lib` in it, which is not the person's own. A repository may bring links: what counts is where
/// they lead, for that is what would be shown.
fn installation(place: &Path, around: &Surroundings) -> Option<PathBuf> {
    let bin = place.parent().filter(|folder| folder.ends_with("bin"))?;
    let folder = bin.parent()?;
    let complete = folder.join("lib").is_dir() || folder.join("pyvenv.cfg").is_file();
    let real = fs::canonicalize(folder).ok()?;
    let home = fs::canonicalize(&around.home).unwrap_or_else(|_| around.home.clone());
    let personal = |folder: &Path| {
        [&around.home, &home].iter().any(|home| home.starts_with(folder) || folder == home.join(".local"))
    };
    (complete && !personal(folder) && !personal(&real)).then(|| folder.to_owned())
}

/// A virtual environment names the installation that it is made of.
fn environment_of_python(bin: &Path, lead: Lead, around: &Surroundings, found: &mut Found) {
    let Some(config) = bin.parent().map(|folder| folder.join("pyvenv.cfg")) else { return };
    let Ok(text) = fs::read_to_string(config) else { return };
    let home = text.lines().filter_map(|line| line.split_once('=')).find(|(name, _)| name.trim() == "home");
    let Some(home) = home.map(|(_, home)| Path::new(home.trim())).filter(|home| home.is_absolute()) else { return };
    // The file is the repository's. It names an installation only if there is a program.
    if let Some(python) = ["python3", "python"].map(|name| home.join(name)).into_iter().find(|path| runs(path)) {
        note(&python, lead, around, found);
    }
}

/// What the first line of a script names: a path, or `env ` and a name.
pub(crate) fn interpreter(file: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(file).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let program = words.next()?;
    if !program.ends_with("/env") {
        return Some(program.to_owned());
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    Some(format!("env {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::fs::symlink;

    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn an_installation_outside_of_the_system_is_shown_whole() {
        let folder = Folder::new("installation");
        let home = folder.path().join("home");
        let version = home.join(".versions/tool/1.0");
        fs::create_dir_all(version.join("lib")).unwrap();
        program(&version.join("bin/real-tool"), "\x7fELF");
        fs::create_dir_all(home.join("bin")).unwrap();
        symlink(version.join("bin/real-tool"), home.join("bin/tool")).unwrap();
        let around = folder.surroundings();
        let found = find("tool", &around).unwrap();
        assert_eq!(found.program, home.join("bin/tool"));
        assert_eq!(found.needs, [home.join("bin/tool"), version.clone()], "never the home");
        assert_eq!(toolchains(&["tool", "sh", "tool", "nobody-has-this"], &around), [version]);
    }

    #[test]
    fn a_script_needs_its_interpreter() {
        let folder = Folder::new("script");
        let home = folder.path().join("home");
        let tools = home.join(".local/share/tools/x");
        fs::create_dir_all(tools.join("lib")).unwrap();
        program(&tools.join("bin/python"), "\x7fELF");
        fs::write(tools.join("pyvenv.cfg"), format!("home = {}/base/bin\n", folder.path().display())).unwrap();
        fs::create_dir_all(folder.path().join("base/lib")).unwrap();
        program(&folder.path().join("base/bin/python3"), "\x7fELF");
        program(&home.join(".local/bin/x"), &format!("#!{}/bin/python\nprint(1)\n", tools.display()));
        fs::create_dir_all(home.join(".local/lib")).unwrap();
        let mut around = folder.surroundings();
        around.path.push(home.join(".local/bin"));
        let found = find("x", &around).unwrap();
        assert_eq!(found.needs, [home.join(".local/bin/x"), tools, folder.path().join("base")]);
    }

    /// A repository brings links and a `pyvenv.cfg` of its own, to have the home shown as an installation, or more.
    #[test]
    fn what_a_repository_links_to_is_no_installation() {
        let folder = Folder::new("links");
        let home = fs::canonicalize(folder.path()).unwrap().join("home");
        let mut around = folder.surroundings();
        around.home = home.clone();
        program(&home.join("bin/python3"), "\x7fELF");
        fs::create_dir_all(home.join("lib")).unwrap();
        fs::write(home.join("key"), "a private key").unwrap();
        let repository = home.join("repository");
        fs::create_dir_all(repository.join(".venv/bin")).unwrap();
        fs::create_dir_all(repository.join(".venv/lib")).unwrap();
        let python = repository.join(".venv/bin/python");
        let shows = |what: &str| {
            let found = find(&python.to_string_lossy(), &around).unwrap();
            let real = found.needs.iter().map(|path| fs::canonicalize(path).unwrap());
            let wide: Vec<_> = real.filter(|real| home.starts_with(real) || real.ends_with("key")).collect();
            assert_eq!(wide, [""; 0].map(PathBuf::from), "{what}: {found:?}");
        };
        for (what, to) in [("home", home.as_path()), ("root", Path::new("/"))] {
            let link = repository.join(what);
            symlink(to, &link).unwrap();
            symlink(link.join(if what == "home" { "bin/python3" } else { "bin/sh" }), &python).unwrap();
            shows(what);
            fs::remove_file(&python).unwrap();
        }
        program(&python, "\x7fELF");
        fs::create_dir_all(repository.join("fake")).unwrap();
        symlink(home.join("key"), repository.join("fake/python3")).unwrap();
        for config in [home.join("bin"), repository.join("home/bin"), repository.join("fake")] {
            fs::write(repository.join(".venv/pyvenv.cfg"), format!("home = {}\n", config.display())).unwrap();
            shows(&config.display().to_string());
        }
    }

    /// A repository brings links, a `pyvenv.cfg` and a first line that lead to another project's installation.
    #[test]
    fn an_installation_elsewhere_is_not_shown_because_a_repository_links_to_it() {
        let folder = Folder::new("elsewhere");
        let root = fs::canonicalize(folder.path()).unwrap();
        let mut around = folder.surroundings();
        around.home = root.join("home");
        around.folder = root.join("home/repository");
        let (other, repository) = (root.join("home/other/env"), around.folder.clone());
        program(&other.join("bin/python3"), "\x7fELF");
        fs::create_dir_all(other.join("lib")).unwrap();
        fs::write(other.join("key"), "a private key").unwrap();
        fs::create_dir_all(repository.join("own/bin")).unwrap();
        symlink(&other, repository.join("linked")).unwrap();
        symlink(other.join("bin/python3"), repository.join("own/bin/python3")).unwrap();
        program(&repository.join("script"), &format!("#!{}/bin/python3\n", other.display()));
        program(&repository.join("env/bin/python3"), "\x7fELF");
        fs::write(repository.join("env/pyvenv.cfg"), format!("home = {}/bin\n", other.display())).unwrap();
        let paths = ["linked/bin/python3", "own/bin/python3", "script", "env/bin/python3"];
        let shown = |name: &str, around: &Surroundings| {
            let found = find(&repository.join(name).to_string_lossy(), around).unwrap();
            found.needs.iter().any(|path| fs::canonicalize(path).is_ok_and(|real| real.starts_with(&other)))
        };
        for name in paths {
            assert!(!shown(name, &around), "{name}");
        }
        // It is the person's own if they name it, or have it in `PATH`.
        let named = find(&other.join("bin/python3").to_string_lossy(), &around).unwrap();
        assert_eq!(named.needs, std::slice::from_ref(&other));
        around.path.push(other.join("bin"));
        for name in paths {
            assert!(shown(name, &around), "{name}");
        }
    }

    #[test]
    fn real_interpreters_are_found_behind_what_manages_their_versions() {
        let around = Surroundings::here().unwrap();
        for name in ["python3", "node"] {
            let Ok(found) = find(name, &around) else {
                skips::skip(&format!("there is no {name}"));
                continue;
            };
            let real = fs::canonicalize(&found.program).unwrap();
            assert!(interpreter(&real).is_none(), "{real:?} is a script");
            assert!(!found.needs.iter().any(|shown| around.around_home(shown)), "{found:?}");
        }
    }

    #[test]
    fn a_python_of_another_version_is_found_where_it_is_kept() {
        let folder = Folder::new("kept");
        let home = folder.path().join("home");
        let version = home.join(".pyenv/versions/3.99.1");
        fs::create_dir_all(version.join("lib")).unwrap();
        program(&version.join("bin/python3.99"), "\x7fELF");
        program(&home.join("bin/python3.99"), "#!/bin/sh\nexit 127\n");
        let found = find("python3.99", &folder.surroundings()).unwrap();
        assert_eq!((found.program, found.needs), (version.join("bin/python3.99"), vec![version]));
        assert!(find("python3.98", &folder.surroundings()).is_err());
        for minor in [10, 13, 14, 15] {
            program(&home.join(format!("bin/python3.{minor}")), "\x7fELF");
        }
        let usual = Found { program: home.join("bin/python3.13"), ..Found::default() };
        let others = pythons(&usual, &folder.surroundings());
        let others: Vec<_> = others.iter().map(|found| &found.program).filter(|path| path.starts_with(&home)).collect();
        assert_eq!(
            others,
            [14, 15, 10].map(|minor| home.join(format!("bin/python3.{minor}"))).iter().collect::<Vec<_>>()
        );
    }

    /// Deployments look for these in `PATH`, where a repository may have its own.
    #[test]
    fn no_program_is_run_to_find_out_what_it_is() {
        let folder = Folder::new("unrun");
        let mark = folder.path().join("mark");
        let text = format!("#!/bin/sh\necho ran > {}\necho /usr/bin/env\n", mark.display());
        for name in ["node", "npm", "python", "python3", "python3.12"] {
            program(&folder.path().join("home/bin").join(name), &text);
        }
        let around = folder.surroundings();
        toolchains(&["node", "npm", "python3"], &around);
        for name in ["node", "npm", "python", "python3"] {
            assert_eq!(find(name, &around).unwrap().program, folder.path().join("home/bin").join(name));
        }
        let usual = find("python3", &around).unwrap();
        pythons(&usual, &around);
        assert!(!mark.exists());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let folder = Folder::new("nothing");
        let around = folder.surroundings();
        for name in ["nobody-has-this", "./nobody-has-this", "/etc/passwd"] {
            assert!(matches!(find(name, &around), Err(Error::NoProgram(missing)) if missing == name));
        }
    }
}

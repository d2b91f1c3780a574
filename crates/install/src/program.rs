//! What is started of an installed package.

use crate::error::Error;
use crate::package::{Package, Source};
use crate::toolchain;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Scripts that need no first line to be known, and those that are run by the system itself.
const SCRIPTS: [&str; 3] = ["js", "cjs", "mjs"];
const SHELLS: [&str; 3] = ["sh", "bash", "dash"];
/// The largest description of a package that is read.
const DESCRIPTION: u64 = 4 << 20;

/// The program as it is seen from the folder, after the name of the interpreter if it needs one.
pub(crate) fn command(package: &Package, folder: &Path) -> Result<Vec<String>, Error> {
    let nothing = |why: String| Error::NothingToRun { package: package.spec(), why };
    // `uvx --from PACKAGE python -m MODULE`: the interpreter that sees the package is a program of it.
    if package.source == Source::PyPi && matches!(package.program.as_deref(), Some("python" | "python3")) {
        return Ok(vec![package.source.interpreter().to_owned()]);
    }
    let file = match package.source {
        Source::Npm => npm(package, folder),
        Source::PyPi => python(package, folder),
    };
    let file = file.map_err(nothing)?;
    let real = fs::canonicalize(folder.join(&file)).map_err(|_| nothing(format!("`{file}` is not in it")))?;
    let root = fs::canonicalize(folder).map_err(Error::path(folder))?;
    let inner = real.strip_prefix(root).map_err(|_| nothing("it leads out of the package".to_owned()))?;
    let inner = inner.to_str().ok_or_else(|| nothing("the name of its file is no text".to_owned()))?.to_owned();
    let ours = match toolchain::interpreter(&real) {
        Some(named) => !named.rsplit(['/', ' ']).next().is_some_and(|name| SHELLS.contains(&name)),
        None => real.extension().is_some_and(|end| SCRIPTS.iter().any(|script| end == *script)),
    };
    let interpreter = ours.then(|| package.source.interpreter().to_owned());
    Ok(interpreter.into_iter().chain([inner]).collect())
}

/// The file of the program that is meant, as the package's own list has it.
fn npm(package: &Package, folder: &Path) -> Result<String, String> {
    let home = format!("node_modules/{}", package.name);
    let text = read(&folder.join(&home).join("package.json"))?;
    let described: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let programs: BTreeMap<&str, &str> = match &described["bin"] {
        serde_json::Value::String(file) => BTreeMap::from([(package.short_name(), file.as_str())]),
        serde_json::Value::Object(all) => {
            all.iter().filter_map(|(name, file)| Some((name.as_str(), file.as_str()?))).collect()
        }
        _ => BTreeMap::new(),
    };
    Ok(format!("{home}/{}", choose(package, &programs, str::to_owned)?))
}

/// The same for the lines `name = module:function` below `[console_scripts]`, each of which pip has made a file of.
fn python(package: &Package, folder: &Path) -> Result<String, String> {
    let normal = |name: &str| name.to_ascii_lowercase().replace(['-', '.'], "_");
    let described = |name: &str| {
        let known = name.strip_suffix(".dist-info").and_then(|name| name.rsplit_once('-'));
        known.is_some_and(|(name, _)| normal(name) == normal(&package.name))
    };
    let listed = fs::read_dir(folder).map_err(|error| error.to_string())?.filter_map(Result::ok);
    let names = listed.filter_map(|entry| entry.file_name().into_string().ok());
    let own = names.filter(|name| described(name)).map(|name| folder.join(name).join("entry_points.txt"));
    let text = own.filter(|file| file.is_file()).map(|file| read(&file)).next().transpose()?.unwrap_or_default();
    let lines = text.lines().map(str::trim).skip_while(|line| *line != "[console_scripts]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
    let mut programs: BTreeMap<&str, &str> = lines.map(|(name, _)| (name.trim(), name.trim())).collect();
    // Programs that no Python is in are listed nowhere.
    let own = package.program.as_deref().unwrap_or(package.short_name());
    if folder.join("bin").join(own).is_file() {
        programs.insert(own, own);
    }
    choose(package, &programs, normal).map(|name| format!("bin/{name}"))
}

/// The one that is asked for, else the one with the package's name, else the only one.
fn choose<'a>(
    package: &Package,
    programs: &BTreeMap<&'a str, &'a str>,
    normal: impl Fn(&str) -> String,
) -> Result<&'a str, String> {
    let wanted = package.program.as_deref().unwrap_or(package.short_name());
    let same = || programs.iter().find(|(name, _)| normal(name) == normal(wanted)).map(|(_, file)| file);
    let only = || programs.values().next().filter(|_| programs.len() == 1 && package.program.is_none());
    let names = || {
        let names = programs.keys().copied().collect::<Vec<_>>().join(", ");
        let from = match package.source {
            Source::Npm => "npx -p",
            Source::PyPi => "uvx --from",
        };
        match &package.program {
            _ if names.is_empty() => "it lists no programs".to_owned(),
            Some(program) => format!("it has no `{program}`, but {names}"),
            None => format!("it has {names}; say which one, with `{from} {} NAME` or `--program NAME`", package.name),
        }
    };
    programs.get(wanted).or_else(same).or_else(only).copied().ok_or_else(names)
}

/// All of a small file.
fn read(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(file).and_then(|open| open.take(DESCRIPTION).read_to_string(&mut text));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    read.map(|_| text).map_err(|error| format!("its {name} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn file(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn chosen(text: &str, program: Option<&str>, folder: &Path) -> Result<Vec<String>, String> {
        let package = Package { program: program.map(str::to_owned), ..Package::parse(text).unwrap() };
        command(&package, folder).map_err(|error| error.to_string())
    }

    #[test]
    fn the_program_of_an_npm_package_is_found() {
        let folder = Folder::new("program-npm");
        let at = "node_modules/@a/x";
        for (path, text) in
            [("plain.js", ""), ("marked", "#!/usr/bin/env node\n"), ("shell", "#!/bin/sh\n"), ("built", "\x7fELF")]
        {
            file(folder.path(), &format!("{at}/{path}"), text);
        }
        let run = |bin: &str, program: Option<&str>| {
            file(folder.path(), &format!("{at}/package.json"), &format!("{{\"bin\": {bin}}}"));
            chosen("npm:@a/x@1.2.3", program, folder.path())
        };
        assert_eq!(run("\"plain.js\"", None).unwrap(), ["node", &format!("{at}/plain.js")]);
        assert_eq!(run(r#"{"other": "./marked"}"#, None).unwrap(), ["node", &format!("{at}/marked")]);
        assert_eq!(run(r#"{"a": "marked", "x": "shell"}"#, None).unwrap(), [format!("{at}/shell")]);
        assert_eq!(run(r#"{"a": "marked", "b": "built"}"#, Some("b")).unwrap(), [format!("{at}/built")]);
        assert!(run(r#"{"a": "marked", "b": "built"}"#, None).unwrap_err().contains("it has a, b; say which one"));
        assert!(run(r#"{"a": "marked"}"#, Some("b")).unwrap_err().ends_with("it has no `b`, but a"));
        assert!(run("7", None).unwrap_err().ends_with("it lists no programs"));
        assert!(
            run("\"../../../../home\"", None)
                .unwrap_err()
                .ends_with("`node_modules/@a/x/../../../../home` is not in it")
        );
        assert!(run("\"../../../../../../../../../../../etc/passwd\"", None).unwrap_err().contains("leads out"));
    }

    #[test]
    fn the_program_of_a_python_package_is_found() {
        let folder = Folder::new("program-python");
        let points = "some_name-1.0.dist-info/entry_points.txt";
        for name in ["some-name", "other", "built"] {
            file(folder.path(), &format!("bin/{name}"), "#!/usr/bin/env python3\n");
        }
        let run = |text: &str, program: Option<&str>| {
            file(folder.path(), points, text);
            chosen("pypi:Some.Name==1.0", program, folder.path())
        };
        let both = "[console_scripts]\nsome-name = a:b\nother=a:c\n";
        assert_eq!(run(both, None).unwrap(), ["python3", "bin/some-name"]);
        assert_eq!(run(both, Some("other")).unwrap(), ["python3", "bin/other"]);
        assert_eq!(run("[x]\ny = z\n[console_scripts]\nother = a:c\n", None).unwrap(), ["python3", "bin/other"]);
        assert_eq!(run("", Some("built")).unwrap(), ["python3", "bin/built"], "it is there, though not listed");
        assert_eq!(run("", Some("python")).unwrap(), ["python3"], "with its own arguments");
        assert!(run("", None).unwrap_err().ends_with("it lists no programs"));
        assert!(run("[console_scripts]\n../../x = a:c\n", None).is_err());
    }
}

//! Packages by name, and commands that fetch one and run it, read without running them.

use crate::error::Error;

/// Who knows the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Npm,
    PyPi,
}

impl Source {
    /// The name of what runs its packages.
    pub fn interpreter(self) -> &'static str {
        match self {
            Source::Npm => "node",
            Source::PyPi => "python3",
        }
    }

    /// Whether this is one version for good, and no range and no tag.
    fn is_exact(self, version: &str) -> bool {
        match self {
            Source::Npm => {
                let numbers = version.split(['-', '+']).next().unwrap_or_default();
                let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
                let rest = &version[numbers.len()..];
                let known = |b: u8| b.is_ascii_alphanumeric() || b".-+".contains(&b);
                numbers.split('.').count() == 3 && numbers.split('.').all(number) && rest.bytes().all(known)
            }
            Source::PyPi => version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains(['*', '^', '~']),
        }
    }

    /// As packages are named with it.
    fn prefix(self) -> &'static str {
        match self {
            Source::Npm => "npm",
            Source::PyPi => "pypi",
        }
    }
}

/// A package that is to be installed and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub source: Source,
    pub name: String,
    /// A version, a range or a tag as the manager has it; without one, the newest when it is first installed.
    pub version: Option<String>,
    /// `[a,b]` behind a Python package.
    pub extras: Option<String>,
    /// Which of its programs; without one, the one that has its name, or the only one.
    pub program: Option<String>,
}

/// A command of a package manager, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub package: Package,
    pub arguments: Vec<String>,
}

impl Package {
    /// `npm:NAME@VERSION` or `pypi:NAME==VERSION`. Deployments are the same at all times, so the version is an exact one.
    pub fn parse(text: &str) -> Result<Package, Error> {
        let wrong = |why: String| Error::Spec { text: text.to_owned(), why };
        let named = [Source::Npm, Source::PyPi]
            .into_iter()
            .find_map(|source| Some((source, text.strip_prefix(source.prefix())?.strip_prefix(':')?)));
        let (source, spec) =
            named.ok_or_else(|| wrong("write `npm:NAME@VERSION` or `pypi:NAME==VERSION`".to_owned()))?;
        let package = parse(source, spec)
            .ok_or_else(|| wrong("it is no name and version as the registry has them".to_owned()))?;
        let exact = Package { version: Some("1.2.3".to_owned()), ..package.clone() }.spec();
        let example = format!("`{}:{exact}`", source.prefix());
        match package.version.as_deref() {
            None => Err(wrong(format!("say which version, as in {example}"))),
            Some(version) if !source.is_exact(version) => {
                Err(wrong(format!("`{version}` may be another one tomorrow; name one version, as in {example}")))
            }
            Some(_) => Ok(package),
        }
    }

    /// As its manager writes it.
    pub fn spec(&self) -> String {
        let extras = self.extras.as_deref().unwrap_or("");
        match (self.source, &self.version) {
            (_, None) => format!("{}{extras}", self.name),
            (Source::Npm, Some(version)) => format!("{}@{version}", self.name),
            (Source::PyPi, Some(version)) => format!("{}{extras}=={version}", self.name),
        }
    }

    /// Names it among all packages.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.source.prefix(), self.name)
    }

    /// The program that is meant when nobody says.
    pub(crate) fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// `npx -y NAME[@VERSION] …`, `uvx NAME[==VERSION] …`, `pipx run …` and the like. Everything else is none of these and
/// runs as it is.
pub fn recognise(command: &[String]) -> Option<Request> {
    let (program, rest) = command.split_first()?;
    let name = program.rsplit('/').next()?;
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (name, words.as_slice()) {
        ("npx", rest) => fetch(Source::Npm, rest, &["-p", "--package"]),
        ("npm", ["exec" | "x", rest @ ..]) => fetch(Source::Npm, rest, &["-p", "--package"]),
        ("uvx", rest) | ("uv", ["tool", "run", rest @ ..]) => fetch(Source::PyPi, rest, &["--from"]),
        ("pipx", ["run", rest @ ..]) => fetch(Source::PyPi, rest, &["--spec"]),
        _ => None,
    }
}

/// Flags that change nothing about what is run.
const QUIET: [&str; 6] = ["-y", "--yes", "-q", "--quiet", "--silent", "--isolated"];

fn fetch(source: Source, words: &[&str], from: &[&str]) -> Option<Request> {
    let mut spec = None;
    let mut words = words.iter().copied();
    let first = loop {
        let word = words.next()?;
        let named = from.iter().find_map(|flag| word.strip_prefix(flag)?.strip_prefix('='));
        if let Some(named) = named {
            // Two packages at once are not installed here.
            spec = if spec.is_none() { Some(named) } else { return None };
        } else if from.contains(&word) {
            let named = words.next()?;
            spec = if spec.is_none() { Some(named) } else { return None };
        } else if word == "--" {
            break words.next()?;
        } else if !word.starts_with('-') {
            break word;
        } else if !QUIET.contains(&word) {
            return None;
        }
    };
    let mut package = parse(source, spec.unwrap_or(first))?;
    package.program = spec.is_some().then(|| first.to_owned()).filter(|program| plain(program));
    if spec.is_some() && package.program.is_none() {
        return None;
    }
    let mut arguments: Vec<String> = words.map(str::to_owned).collect();
    // `npx NAME -- …` hands on what follows.
    if source == Source::Npm && arguments.first().is_some_and(|word| word == "--") {
        arguments.remove(0);
    }
    Some(Request { package, arguments })
}

fn parse(source: Source, spec: &str) -> Option<Package> {
    let (name, extras, version) = match source {
        Source::Npm => {
            let at = spec.get(1..)?.find('@').map(|at| at + 1);
            let (name, version) = at.map_or((spec, None), |at| (&spec[..at], Some(&spec[at + 1..])));
            (name, None, version)
        }
        Source::PyPi => {
            let (left, version) = match spec.split_once("==").or_else(|| spec.split_once('@')) {
                Some((left, version)) => (left, Some(version)),
                None => (spec, None),
            };
            match left.find('[') {
                Some(at) => (&left[..at], Some(&left[at..]), version),
                None => (left, None, version),
            }
        }
    };
    let scoped = name.strip_prefix('@').filter(|_| source == Source::Npm).and_then(|name| name.split_once('/'));
    let named = match scoped {
        Some((scope, name)) => plain(scope) && plain(name),
        None => plain(name),
    };
    let versioned = version.is_none_or(|text| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".^~*+-!_".contains(&b))
    });
    let inner = extras.map(|text| text.strip_prefix('[').and_then(|text| text.strip_suffix(']')));
    let extra = inner.is_none_or(|list| list.is_some_and(|list| list.split(',').all(plain)));
    let newest = |version: &&str| source == Source::Npm || *version != "latest";
    (named && versioned && extra).then(|| Package {
        source,
        name: name.to_owned(),
        version: version.filter(newest).map(str::to_owned),
        extras: extras.map(str::to_owned),
        program: None,
    })
}

/// A name that is no path, no URL and no flag.
fn plain(name: &str) -> bool {
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    starts && name.len() <= 214 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, Option<String>, Vec<String>)> {
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        recognise(&command).map(|found| (found.package.spec(), found.package.program, found.arguments))
    }

    fn same(line: &str, spec: &str, program: Option<&str>, arguments: &[&str]) {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(read(line), Some((spec.to_owned(), program.map(str::to_owned), arguments)), "{line}");
    }

    #[test]
    fn commands_of_package_managers_are_taken_apart() {
        same("npx -y @scope/server-files ./notes", "@scope/server-files", None, &["./notes"]);
        same("/usr/bin/npx @scope/x@1.2.3", "@scope/x@1.2.3", None, &[]);
        same("npx --yes plain@latest -- --flag", "plain@latest", None, &["--flag"]);
        same("npx -y -p @scope/x tool --a b", "@scope/x", Some("tool"), &["--a", "b"]);
        same("npm exec --yes --package=x@^2 -- tool", "x@^2", Some("tool"), &[]);
        same("uvx mcp-server-time --local-timezone UTC", "mcp-server-time", None, &["--local-timezone", "UTC"]);
        same("uvx mcp-server-time==1.0", "mcp-server-time==1.0", None, &[]);
        same("uvx mcp-server-time@latest", "mcp-server-time", None, &[]);
        same("uv tool run --from pkg[cli]==2 tool", "pkg[cli]==2", Some("tool"), &[]);
        same("pipx run pkg", "pkg", None, &[]);
    }

    #[test]
    fn deployments_name_exact_versions() {
        for (text, spec) in [
            ("npm:@scope/name@1.2.3", "@scope/name@1.2.3"),
            ("npm:name@1.2.3-rc.1+b", "name@1.2.3-rc.1+b"),
            ("pypi:name==1", "name==1"),
            ("pypi:some.name[a,b]==1!2.0.post1", "some.name[a,b]==1!2.0.post1"),
        ] {
            let package = Package::parse(text).unwrap();
            assert_eq!((package.spec().as_str(), package.program), (spec, None), "{text}");
        }
        let why = |text| Package::parse(text).unwrap_err().to_string();
        assert!(why("npm:@scope/name").ends_with("say which version, as in `npm:@scope/name@1.2.3`"));
        assert!(why("pypi:name[a]").ends_with("say which version, as in `pypi:name[a]==1.2.3`"));
        for text in
            ["npm:x@latest", "npm:x@^1.2.3", "npm:x@1.2", "npm:x@1.2.x", "npm:x@1..2", "pypi:x==1.*", "pypi:x==new"]
        {
            assert!(why(text).contains("may be another one tomorrow"), "{text}");
        }
        for text in [
            "",
            "npm:",
            "name@1.2.3",
            "npm:--flag@1.2.3",
            "npm:../x@1.2.3",
            "npm:x@1.2.3 y",
            "npm:x@npm:y@1.2.3",
            "npm:x@https://host.example/x.tgz",
            "pypi:x===1",
            "pypi:x==1; y",
            "pypi:x>=1",
            "pypi:-r==1",
            "pypi:x[-e]==1",
            "PYPI:x==1",
        ] {
            assert!(matches!(Package::parse(text), Err(Error::Spec { .. })), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_name_runs_as_it_is() {
        for line in [
            "node server.js",
            "npx",
            "npx -y",
            "npx -c something",
            "npx github:a/b",
            "npx ./local",
            "npx ../x",
            "npx a/b",
            "npx https://example.com/x.tgz",
            "npx -p a -p b tool",
            "npx x@",
            "npx @/x",
            "uvx git+https://example.com/x",
            "uvx pkg[",
            "uvx --python 3.12 pkg",
            "uvx pkg==1;rm",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}

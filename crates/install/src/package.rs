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
    /// What is installed with it, and bounds on what it needs itself: `mcp<2`.
    pub with: Vec<String>,
}

/// A command of a package manager, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub package: Package,
    pub arguments: Vec<String>,
    /// The program that is to run it, where the command names one: `python3.12`, or a path.
    pub interpreter: Option<String>,
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

    /// The same with this beside it, if that is a name, and a version or bounds, as the registry has them.
    pub fn with(mut self, text: &str) -> Result<Package, Error> {
        if parse(self.source, text).is_none() {
            let why = "it is no name and version as the registry has them".to_owned();
            return Err(Error::Spec { text: text.to_owned(), why });
        }
        self.with.push(text.to_owned());
        Ok(self)
    }

    /// As its manager writes it.
    pub fn spec(&self) -> String {
        let extras = self.extras.as_deref().unwrap_or("");
        match (self.source, &self.version) {
            (_, None) => format!("{}{extras}", self.name),
            (Source::Npm, Some(version)) => format!("{}@{version}", self.name),
            (Source::PyPi, Some(version)) if version.starts_with(BOUNDS) => format!("{}{extras}{version}", self.name),
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
        ("npx", rest) => fetch(&NPX, rest),
        ("npm", ["exec" | "x", rest @ ..]) => fetch(&NPX, rest),
        ("uvx", rest) | ("uv", ["tool", "run", rest @ ..]) => fetch(&UVX, rest),
        ("pipx", ["run", rest @ ..]) => fetch(&PIPX, rest),
        _ => None,
    }
}

/// Whether this command is about fetching something to run, however it does.
pub fn fetches(command: &[String]) -> bool {
    let Some((program, rest)) = command.split_first() else { return false };
    let first = rest.iter().map(String::as_str).find(|word| !word.starts_with('-'));
    match program.rsplit('/').next() {
        Some("npx" | "uvx") => true,
        Some("npm") => matches!(first, Some("exec" | "x")),
        Some("uv") => first == Some("tool"),
        Some("pipx") => first == Some("run"),
        _ => false,
    }
}

/// The flags of a manager's command that are known.
struct Flags {
    source: Source,
    from: &'static [&'static str],
    with: &'static [&'static str],
    python: &'static [&'static str],
    /// Those that change nothing about what is run.
    quiet: &'static [&'static str],
}

const NPX: Flags = Flags {
    source: Source::Npm,
    from: &["-p", "--package"],
    with: &[],
    python: &[],
    quiet: &["-y", "--yes", "-q", "--quiet", "--silent"],
};

const UVX: Flags = Flags {
    source: Source::PyPi,
    from: &["--from"],
    with: &["--with", "-w"],
    python: &["--python", "-p"],
    // What is said of caches and downloads is about uv's own.
    quiet: &[
        "-q",
        "--quiet",
        "-v",
        "--verbose",
        "--isolated",
        "--refresh",
        "--no-cache",
        "-n",
        "--upgrade",
        "-U",
        "--reinstall",
        "--no-config",
        "--no-progress",
        "--native-tls",
        "--system-certs",
        "--managed-python",
        "--no-managed-python",
        "--no-python-downloads",
    ],
};

const PIPX: Flags = Flags {
    source: Source::PyPi,
    from: &["--spec"],
    with: &["--with"],
    python: &["--python"],
    quiet: &["-q", "--quiet", "-v", "--verbose", "--no-cache"],
};

fn fetch(flags: &Flags, words: &[&str]) -> Option<Request> {
    let (mut spec, mut interpreter, mut with) = (None, None, Vec::new());
    let mut words = words.iter().copied();
    let first = loop {
        let word = words.next()?;
        let (flag, given) = match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        let mut value = || given.or_else(|| words.next());
        if flags.from.contains(&flag) {
            // Two packages at once are not installed here.
            spec = if spec.is_none() { Some(value()?) } else { return None };
        } else if flags.with.contains(&flag) {
            with.extend(requirements(value()?));
        } else if flags.python.contains(&flag) {
            interpreter = Some(python(value()?)?);
        } else if word == "--" {
            break words.next()?;
        } else if !word.starts_with('-') {
            break word;
        } else if !flags.quiet.contains(&word) {
            return None;
        }
    };
    let mut package = parse(flags.source, spec.unwrap_or(first))?;
    package.program = spec.is_some().then(|| first.to_owned()).filter(|program| plain(program));
    if spec.is_some() && package.program.is_none() {
        return None;
    }
    let package = with.iter().try_fold(package, |package, text| package.with(text)).ok()?;
    let mut arguments: Vec<String> = words.map(str::to_owned).collect();
    // `npx NAME -- …` hands on what follows.
    if flags.source == Source::Npm && arguments.first().is_some_and(|word| word == "--") {
        arguments.remove(0);
    }
    Some(Request { package, arguments, interpreter })
}

/// `a,b>=1,<2,c[x,y]` is three: bounds and extras have commas of their own.
fn requirements(list: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in list.split(',') {
        let open = |text: &String| text.contains('[') && !text.contains(']');
        match all.last_mut().filter(|last| part.starts_with(BOUNDS) || open(last)) {
            Some(last) => *last = format!("{last},{part}"),
            None => all.push(part.to_owned()),
        }
    }
    all
}

/// `3.12` and `3.12.1` mean `python3.12`; a name or a path means itself.
fn python(text: &str) -> Option<String> {
    let numbers: Vec<&str> = text.split('.').collect();
    if numbers.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())) {
        return Some(format!("python{}", numbers[..numbers.len().min(2)].join(".")));
    }
    let name = text.rsplit('/').next()?;
    (name.starts_with("python") && plain(name)).then(|| text.to_owned())
}

/// What bounds on versions of Python packages begin with.
const BOUNDS: [char; 5] = ['<', '>', '=', '!', '~'];
const OPERATORS: [&str; 7] = ["==", "<=", ">=", "!=", "~=", "<", ">"];

fn parse(source: Source, spec: &str) -> Option<Package> {
    let (name, extras, version) = match source {
        Source::Npm => {
            let at = spec.get(1..)?.find('@').map(|at| at + 1);
            let (name, version) = at.map_or((spec, None), |at| (&spec[..at], Some(&spec[at + 1..])));
            (name, None, version)
        }
        Source::PyPi => {
            let at = spec.find(|c| c == '@' || BOUNDS.contains(&c));
            let (left, rest) = at.map_or((spec, None), |at| (&spec[..at], Some(&spec[at..])));
            let version = rest.map(|rest| rest.strip_prefix("==").or_else(|| rest.strip_prefix('@')).unwrap_or(rest));
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
    let number =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".^~*+-!_".contains(&b));
    let bound = |text: &str| OPERATORS.iter().find_map(|sign| text.strip_prefix(sign)).is_some_and(number);
    let versioned = version.is_none_or(|text| match source {
        Source::PyPi if text.starts_with(BOUNDS) => text.split(',').all(bound),
        _ => number(text),
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
        with: Vec::new(),
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
        same("uvx pkg[a]>=1,<2 x", "pkg[a]>=1,<2", None, &["x"]);
        same("uvx --refresh --from pkg~=1.2 python -m pkg", "pkg~=1.2", Some("python"), &["-m", "pkg"]);
    }

    #[test]
    fn what_is_installed_beside_and_what_runs_it_is_read() {
        let read = |line: &str| {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            recognise(&command).map(|found| (found.package.with.join(" "), found.interpreter.unwrap_or_default()))
        };
        for (line, with, interpreter) in [
            ("uvx --with mcp<2 pkg", "mcp<2", ""),
            ("uvx --with=a,b>=1,<2,c[x,y]==3 -w d -p 3.12 pkg", "a b>=1,<2 c[x,y]==3 d", "python3.12"),
            ("uvx --python 3.13.1 pkg", "", "python3.13"),
            ("uv tool run --python=/opt/x/bin/python3 pkg", "", "/opt/x/bin/python3"),
            ("pipx run --python python3.12 pkg", "", "python3.12"),
        ] {
            assert_eq!(read(line), Some((with.to_owned(), interpreter.to_owned())), "{line}");
        }
        for line in [
            "uvx --with -r pkg",
            "uvx --with a;b pkg",
            "uvx --with ./x pkg",
            "uvx --with a@https://x pkg",
            "uvx --with a<b,c> pkg",
            "uvx --python >=3.12 pkg",
            "uvx --python sh pkg",
            "uvx --python",
            "npx --with a pkg",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn commands_that_fetch_are_known_though_they_are_not_understood() {
        let fetches = |line: &str| super::fetches(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in
            ["uvx --from git+https://example.com/x y", "/usr/bin/npx -c x", "uv --quiet tool run x", "pipx run x"]
        {
            assert!(fetches(line), "{line}");
        }
        for line in ["uv run server.py", "npm start", "pipx list", "node npx"] {
            assert!(!fetches(line), "{line}");
        }
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
            "uvx --index https://example.com/simple pkg",
            "uvx pkg===1",
            "uvx pkg>",
            "uvx pkg==1;rm",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}

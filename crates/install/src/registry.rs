//! Where packages come from: whatever the person's own package manager is set to.

use crate::around::Surroundings;
use crate::error::Error;
use crate::ground::HOME;
use crate::package::Package;
use crate::question::Question;
use crate::toolchain::{self, Found};
use egress::{Origin, Target};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file of settings that is read.
const LONGEST: u64 = 256 << 10;

/// Certificates that the person trusts, named by variables.
const CERTIFICATES: [&str; 3] = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// What pip uses when nobody says otherwise, as pip itself knows it.
const DEFAULT_INDEX: &str = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)";

pub(crate) struct Registry {
    /// As it is set, perhaps with a password.
    pub(crate) url: String,
    pub(crate) origin: Origin,
    /// Lines of the manager's own settings that belong to this registry.
    pub(crate) settings: Vec<String>,
    /// Variables that name certificates.
    pub(crate) certificates: BTreeMap<String, PathBuf>,
}

impl Registry {
    /// As npm is set for this package.
    pub(crate) fn of_npm(npm: &Found, package: &Package, around: &Surroundings) -> Result<Registry, Error> {
        let scope = package.name.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
        let mut keys = vec!["registry", "cafile", "globalconfig"];
        keys.extend(scope.as_deref());
        let named = |name: &str| {
            let value = |(known, value): (&String, &String)| known.eq_ignore_ascii_case(name).then(|| value.clone());
            around.variables.iter().find_map(value)
        };
        let file = named("npm_config_userconfig").map_or_else(|| around.home.join(".npmrc"), PathBuf::from);
        let file = read(&file);
        let variables = around.variables.iter().filter_map(|(name, value)| {
            let key = name.to_ascii_lowercase().strip_prefix("npm_config_")?.to_owned();
            of_npm(&key).then(|| (format!("npm_config_{key}"), value.clone()))
        });
        let variables: BTreeMap<String, String> = variables.collect();
        let ask = |text: String| {
            let files = vec![(PathBuf::from(format!("{HOME}/.npmrc")), text)];
            let told = Question { found: npm, files, variables: variables.clone() };
            told.ask(&[&["config", "get"], keys.as_slice()].concat())
        };
        let of_person = settings(&file, &around.variables);
        let mut told = ask(of_person.clone())?;
        // The settings of the machine may be where the jail does not show them; those of the person come last and count.
        let of_machine = npm_value(&told, "globalconfig").filter(|path| !toolchain::of_system(path.as_ref()));
        let of_machine = of_machine.map(|path| settings(&read(Path::new(path)), &around.variables));
        if let Some(of_machine) = of_machine.filter(|text| !text.is_empty()) {
            told = ask(of_machine + &of_person)?;
        }
        let unknown =
            || Error::Unknown { what: "the registry of npm", why: "`npm config get registry` names none".into() };
        let scoped = scope.as_deref().and_then(|key| npm_value(&told, key));
        let url = scoped.or_else(|| npm_value(&told, "registry")).ok_or_else(unknown)?.to_owned();
        let origin = origin(&url)?;
        let mut settings = own_lines(&file, &origin, &around.variables);
        settings.push(format!("registry={url}"));
        settings.extend(scoped.and(scope.as_deref()).map(|scope| format!("{scope}={url}")));
        let mut certificates = certificates(around);
        if let Some(file) = npm_value(&told, "cafile") {
            certificates.insert("npm_config_cafile".to_owned(), file.into());
        }
        Ok(Registry { url, origin, settings, certificates })
    }

    /// As pip is set.
    pub(crate) fn of_pip(python: &Found, around: &Surroundings) -> Result<Registry, Error> {
        let question = Question { found: python, files: pip_files(around), variables: pip_variables(around) };
        let told = question.ask(&["-m", "pip", "config", "list"])?;
        let url = match pip_value(&told, "index-url") {
            Some(url) => url,
            None => question.ask(&["-c", DEFAULT_INDEX])?.trim().to_owned(),
        };
        let origin = origin(&url)?;
        let mut certificates = certificates(around);
        if let Some(file) = pip_value(&told, "cert") {
            certificates.insert("PIP_CERT".to_owned(), file.into());
        }
        Ok(Registry { url, origin, settings: Vec::new(), certificates })
    }
}

impl Registry {
    /// Whether its URL or settings hold what only the person should have.
    pub(crate) fn has_password(&self) -> bool {
        let plain = self.without_passwords();
        self.url != plain.url || self.settings.iter().any(|line| line.starts_with("//"))
    }

    /// The same for those who may know where it is and no more.
    pub(crate) fn without_passwords(&self) -> Registry {
        let path = self.url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
        let url = format!("{}/{path}", self.origin);
        let settings = vec![format!("registry={url}")];
        Registry { url, origin: self.origin.clone(), settings, certificates: self.certificates.clone() }
    }
}

/// What a file of settings holds; nothing when there is none, or it is longer than any.
fn read(path: &Path) -> String {
    let mut text = String::new();
    let file = fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()));
    let read = file.and_then(|file| file.take(LONGEST).read_to_string(&mut text).ok());
    read.map(|_| text).unwrap_or_default()
}

/// Whether npm may be told of this setting: where packages are, and nothing else. Passwords are for whoever fetches.
fn of_npm(key: &str) -> bool {
    ["registry", "cafile", "prefix", "globalconfig"].contains(&key) || key.ends_with(":registry")
}

/// The lines of an `.npmrc` that say where packages are.
fn settings(file: &str, variables: &BTreeMap<String, String>) -> String {
    let own = file.lines().filter(|line| line.split_once('=').is_some_and(|(key, _)| of_npm(key.trim())));
    own.map(|line| expanded(line, variables) + "\n").collect()
}

fn npm_value<'a>(told: &'a str, key: &str) -> Option<&'a str> {
    let mut values = told.lines().filter_map(|line| line.split_once('='));
    let value = values.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim());
    value.filter(|value| !["", "undefined", "null"].contains(value))
}

/// Where pip has its settings in a jail; those that a variable names come last.
const NAMED_FOR_PIP: &str = "/etc/pip-named.conf";

fn pip_files(around: &Surroundings) -> Vec<(PathBuf, String)> {
    let config = around.variables.get("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.unwrap_or_else(|| around.home.join(".config"));
    let named = around.variables.get("PIP_CONFIG_FILE").map(PathBuf::from);
    let all = [
        ("/etc/xdg/pip/pip.conf".to_owned(), Some("/etc/xdg/pip/pip.conf".into())),
        ("/etc/pip.conf".to_owned(), Some("/etc/pip.conf".into())),
        (format!("{HOME}/.pip/pip.conf"), Some(around.home.join(".pip/pip.conf"))),
        (format!("{HOME}/.config/pip/pip.conf"), Some(config.join("pip/pip.conf"))),
        (NAMED_FOR_PIP.to_owned(), named),
    ];
    let text = |(place, path): (String, Option<PathBuf>)| Some((PathBuf::from(place), pip_settings(&read(&path?))));
    all.into_iter().filter_map(text).filter(|(_, text)| !text.is_empty()).collect()
}

/// The lines of a `pip.conf` that say where packages are, with the names of their sections.
fn pip_settings(file: &str) -> String {
    let mut kept = String::new();
    let mut within = false;
    for line in file.lines() {
        // A line that is indented goes on with the one before.
        if !line.starts_with(char::is_whitespace) {
            let key = line.split(['=', ':']).next().unwrap_or_default().trim().replace('_', "-");
            within = line.starts_with('[') || ["index-url", "cert"].contains(&key.as_str());
        }
        if within {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn pip_variables(around: &Surroundings) -> BTreeMap<String, String> {
    let known = ["PIP_INDEX_URL", "PIP_CERT"].iter().filter_map(|name| around.variables.get_key_value(*name));
    let mut known: BTreeMap<String, String> = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(named) = around.variables.get("PIP_CONFIG_FILE") {
        // To pip this means: no settings from files.
        let place = if named == "/dev/null" { named } else { NAMED_FOR_PIP };
        known.insert("PIP_CONFIG_FILE".to_owned(), place.to_owned());
    }
    known
}

fn certificates(around: &Surroundings) -> BTreeMap<String, PathBuf> {
    let set = CERTIFICATES.iter().filter_map(|name| Some(((*name).to_owned(), around.variables.get(*name)?.into())));
    set.filter(|(_, path): &(String, PathBuf)| path.is_absolute() && path.exists()).collect()
}

fn origin(url: &str) -> Result<Origin, Error> {
    let wrong = |why: String| Error::Unknown { what: "the registry", why };
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("its URL has no scheme".into()))?;
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    Target::parse(&format!("{scheme}://{host}/"))
        .map(|target| target.origin)
        .map_err(|denied| wrong(denied.to_string()))
}

/// `//host/:_authToken=…` and the like, for this registry's host alone.
fn own_lines(file: &str, origin: &Origin, variables: &BTreeMap<String, String>) -> Vec<String> {
    let mark = format!("//{}/", origin.authority());
    let own = file.lines().map(str::trim).filter(|line| line.starts_with(&mark));
    own.map(|line| expanded(line, variables)).collect()
}

/// With `${NAME}` replaced by the variable's value.
fn expanded(line: &str, variables: &BTreeMap<String, String>) -> String {
    let mut line = line.to_owned();
    for (name, value) in variables.iter().filter(|_| line.contains("${")).collect::<Vec<_>>() {
        line = line.replace(&format!("${{{name}}}"), value);
    }
    line
}

/// `global.index-url='https://…'`; variables come before files, and what is meant for installing before the rest.
fn pip_value(told: &str, name: &str) -> Option<String> {
    let of = |section: &str| {
        let mark = format!("{section}.{name}=");
        let value = told.lines().find_map(|line| line.strip_prefix(&mark))?;
        Some(value.trim_matches(['\'', '"']).to_owned())
    };
    [":env:", "install", "site", "user", "global"].into_iter().find_map(of).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_registrys_own_lines_are_handed_on() {
        let file =
            "//r.example/:_authToken=${T}\n//other.example/:_authToken=x\n//r.example.evil/:_authToken=y\nregistry=z\n";
        let variables = BTreeMap::from([("T".to_owned(), "token".to_owned())]);
        let origin = origin("https://user:word@r.example/npm/").unwrap();
        assert_eq!(own_lines(file, &origin, &variables), ["//r.example/:_authToken=token"]);
        assert_eq!(origin.to_string(), "https://r.example");
    }

    #[test]
    fn passwords_stay_where_they_are_needed() {
        let registry = |url: &str, settings: &[&str]| Registry {
            url: url.to_owned(),
            origin: origin(url).unwrap(),
            settings: settings.iter().map(|line| (*line).to_owned()).collect(),
            certificates: BTreeMap::new(),
        };
        let secret =
            registry("https://user:word@r.example:8443/npm/", &["//r.example:8443/:_authToken=t", "registry=x"]);
        let plain = secret.without_passwords();
        assert_eq!((plain.url.as_str(), plain.settings.len()), ("https://r.example:8443/npm/", 1));
        assert_eq!(plain.settings, ["registry=https://r.example:8443/npm/"]);
        assert!(secret.has_password() && !plain.has_password());
        assert!(registry("https://r.example/", &["//r.example/:_authToken=t"]).has_password());
        assert!(!registry("http://r.example/simple", &[]).has_password());
    }

    #[test]
    fn what_pip_says_is_read() {
        let told = ":env:.cert='/a'\nglobal.cert='/b'\nglobal.index-url='https://i.example/simple'\n";
        assert_eq!(pip_value(told, "cert").as_deref(), Some("/a"));
        assert_eq!(pip_value(told, "index-url").as_deref(), Some("https://i.example/simple"));
        assert_eq!(pip_value(told, "extra-index-url"), None);
    }
}

//! Where packages come from: whatever the person's own package manager is set to.

use crate::around::Surroundings;
use crate::error::Error;
use crate::package::Package;
use egress::{Origin, Target};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    pub(crate) fn of_npm(npm: &Path, package: &Package, around: &Surroundings) -> Result<Registry, Error> {
        let scope = package.name.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
        let mut keys = vec!["registry", "userconfig", "cafile"];
        keys.extend(scope.as_deref());
        let told = ask(npm, &[&["config", "get"], keys.as_slice()].concat(), around)?;
        let value = |key: &str| {
            let values = told.lines().filter_map(|line| line.split_once('='));
            let value = values.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim()).next();
            value.filter(|value| !["", "undefined", "null"].contains(value))
        };
        let unknown =
            || Error::Unknown { what: "the registry of npm", why: "`npm config get registry` names none".into() };
        let scoped = scope.as_deref().and_then(value);
        let url = scoped.or_else(|| value("registry")).ok_or_else(unknown)?.to_owned();
        let origin = origin(&url)?;
        let file = value("userconfig").and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let mut settings = own_lines(&file, &origin, &around.variables);
        settings.push(format!("registry={url}"));
        settings.extend(scoped.and(scope.as_deref()).map(|scope| format!("{scope}={url}")));
        let mut certificates = certificates(around);
        if let Some(file) = value("cafile") {
            certificates.insert("npm_config_cafile".to_owned(), file.into());
        }
        Ok(Registry { url, origin, settings, certificates })
    }

    /// As pip is set.
    pub(crate) fn of_pip(python: &Path, around: &Surroundings) -> Result<Registry, Error> {
        let told = ask(python, &["-m", "pip", "config", "list"], around)?;
        let url = match pip_value(&told, "index-url") {
            Some(url) => url,
            None => ask(python, &["-c", DEFAULT_INDEX], around)?.trim().to_owned(),
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

fn ask(program: &Path, arguments: &[&str], around: &Surroundings) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.env_clear().envs(&around.variables);
    // Not in the working directory: what lies there may be anybody's.
    command.args(arguments).current_dir(&around.home).stdin(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().map_err(Error::path(program))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it failed").to_owned();
        return Err(Error::Unknown { what: "the settings of the package manager", why });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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
    own.map(|line| {
        let mut line = line.to_owned();
        for (name, value) in variables {
            line = line.replace(&format!("${{{name}}}"), value);
        }
        line
    })
    .collect()
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

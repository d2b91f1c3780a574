//! What is known about the common servers.

use crate::error::Error;
use install::Package;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How something of the host is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Access {
    #[serde(rename = "ro")]
    Read,
    #[serde(rename = "rw")]
    Write,
}

/// One server of `profiles.toml`, which says what each field means.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    pub packages: Vec<String>,
    pub about: String,
    pub arguments: Option<Access>,
    pub after: BTreeMap<String, Access>,
    pub files_after: Vec<String>,
    pub commits: bool,
    pub hosts: Vec<String>,
    pub variables: Vec<String>,
    pub files: Vec<String>,
    pub values: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profiles {
    server: Vec<Profile>,
}

fn all() -> Result<Vec<Profile>, Error> {
    let profiles: Profiles = toml::from_str(include_str!("../profiles.toml"))?;
    Ok(profiles.server)
}

/// The one of a package, if it is known.
pub fn find(package: &Package) -> Result<Option<Profile>, Error> {
    let identity = package.identity();
    Ok(all()?.into_iter().find(|profile| profile.packages.contains(&identity)))
}

impl Profile {
    /// The arguments that name a file which is written, with their flags.
    pub(crate) fn written<'a>(&'a self, arguments: &'a [String]) -> Vec<(&'a str, &'a str)> {
        let mut named = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (argument.as_str(), arguments.get(at + 1).map(String::as_str)),
            };
            // `:memory:` and the like are no files.
            let value = value.filter(|value| !value.contains(':'));
            if let Some(value) = value.filter(|_| self.files_after.iter().any(|known| known == flag)) {
                named.push((flag, value));
            }
        }
        named
    }

    /// The arguments that name something to be shown.
    pub(crate) fn named<'a>(&self, arguments: &'a [String]) -> Vec<(&'a str, Access)> {
        let mut named = Vec::new();
        let mut before: Option<&str> = None;
        for argument in arguments {
            let (flag, value) = match argument.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
                Some((flag, value)) => (Some(flag), value),
                None => (before, argument.as_str()),
            };
            if let Some(access) = flag.and_then(|flag| self.after.get(flag)) {
                named.push((value, *access));
            } else if let Some(access) = self.arguments.filter(|_| !argument.starts_with('-')) {
                named.push((argument, access));
            }
            before = Some(argument);
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egress::{BareStar, Rules};

    #[test]
    fn the_file_is_sound() {
        let profiles = all().unwrap();
        let mut seen = Vec::new();
        for profile in &profiles {
            Rules::parse(profile.hosts.iter().map(String::as_str), BareStar::Refused).unwrap();
            assert!(!profile.about.is_empty() && !profile.packages.is_empty(), "{profile:?}");
            for package in &profile.packages {
                assert!(package.starts_with("npm:") || package.starts_with("pypi:"), "{package}");
                assert!(!seen.contains(package), "{package} is there twice");
                seen.push(package.clone());
            }
        }
    }

    #[test]
    fn arguments_and_flags_name_folders() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let all = Profile { arguments: Some(Access::Write), ..Profile::default() };
        assert_eq!(all.named(&words("--x a b")), [("a", Access::Write), ("b", Access::Write)]);
        let flag = Profile { after: BTreeMap::from([("--db".to_owned(), Access::Read)]), ..Profile::default() };
        assert_eq!(flag.named(&words("a --db b --db=c d")), [("b", Access::Read), ("c", Access::Read)]);
        let file = Profile { files_after: vec!["--db".to_owned()], ..Profile::default() };
        assert_eq!(file.written(&words("a --db b --db=c d --db :memory: --db")), [("--db", "b"), ("--db", "c")]);
    }
}

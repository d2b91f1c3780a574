//! Which secret belongs where: a place in requests to some hosts.

use crate::denied::{Denied, quote};
use crate::headers::{self, is_token};
use crate::json;
use crate::rule::{self, BareStar, Rule};
use crate::target::Origin;
use http::header::{AUTHORIZATION, COOKIE, HeaderName};
use std::fmt;

/// More than this is no list that a person has read.
const MOST_BINDINGS: usize = 64;
const LONGEST_NAME: usize = 64;
const LONGEST_FORMAT: usize = 256;
/// Stands for the value in a [`Binding::format`].
pub(crate) const HOLE: &str = "{}";

/// Hosts as rules have them: `api.example.com[:port]`, `*.example.com`; https, unless it is an `http://` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Rule);

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, Denied> {
        let rule = rule::parse(text, BareStar::Refused)?;
        if !rule.is_whole_origin() {
            return Err(Denied::invalid(format!("{} names more than a host; leave path and methods out", quote(text))));
        }
        Ok(Pattern(rule))
    }

    pub fn covers(&self, origin: &Origin) -> bool {
        self.0.covers_origin(origin)
    }

    /// Whether every host of the other is one of these.
    pub fn includes(&self, other: &Pattern) -> bool {
        self.0.covers(&other.0)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Header(HeaderName),
    Query(String),
    Cookie(String),
    /// A JSON pointer (RFC 6901) into a JSON body.
    Body(String),
    /// The header `authorization`, of a secret `user:password`.
    Basic,
    /// The signature of AWS (SigV4), of a secret `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]`.
    Aws {
        region: String,
        service: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Place::Header(name) => write!(f, "the header `{name}`"),
            Place::Query(name) => write!(f, "the query parameter {}", quote(name)),
            Place::Cookie(name) => write!(f, "the cookie `{name}`"),
            Place::Body(pointer) => write!(f, "the body's {}", quote(pointer)),
            Place::Basic => f.write_str("basic authentication"),
            Place::Aws { .. } => f.write_str("the signature of AWS"),
        }
    }
}

impl Place {
    /// As a policy names it: `header:authorization`.
    pub fn named(&self) -> String {
        match self {
            Place::Header(name) => format!("header:{name}"),
            Place::Query(name) => format!("query:{name}"),
            Place::Cookie(name) => format!("cookie:{name}"),
            Place::Body(pointer) => format!("body:{pointer}"),
            Place::Basic => "basic".to_owned(),
            Place::Aws { .. } => "aws".to_owned(),
        }
    }

    /// The header that the place is, or is in.
    pub(crate) fn header(&self) -> Option<&HeaderName> {
        match self {
            Place::Header(name) => Some(name),
            Place::Cookie(_) => Some(&COOKIE),
            Place::Basic | Place::Aws { .. } => Some(&AUTHORIZATION),
            Place::Query(_) | Place::Body(_) => None,
        }
    }

    /// Whether what is set in one would be set over in the other.
    pub(crate) fn overlaps(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Cookie(one), Place::Cookie(two)) => one == two,
            (Place::Query(one), Place::Query(two)) => one == two,
            (Place::Body(one), Place::Body(two)) => {
                let below = |one: &str, two: &str| two.strip_prefix(one).is_some_and(|rest| rest.starts_with('/'));
                one == two || below(one, two) || below(two, one)
            }
            _ => self.header().is_some() && self.header() == other.header(),
        }
    }

    fn check(&self) -> Result<(), String> {
        let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        match self {
            Place::Header(name) => headers::bindable(name).map_err(|denied| denied.message),
            Place::Query(name) if name.is_empty() => Err("a query parameter needs a name".to_owned()),
            Place::Cookie(name) if !is_token(name) => Err(format!("{} is no name of a cookie", quote(name))),
            Place::Body(pointer) => json::steps(pointer).map(drop),
            Place::Aws { region, service } if !word(region) || !word(service) => {
                Err("region and service are words such as `us-east-1` and `s3`".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// A secret, where it goes, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Of the secret.
    pub name: String,
    pub hosts: Vec<Pattern>,
    pub place: Place,
    /// Has `{}` once, where the value goes when it is set without being asked for.
    pub format: String,
    /// Put in only where the code inside has written `{{secret:NAME}}`.
    pub asked: bool,
}

impl Binding {
    pub fn new(name: impl Into<String>, hosts: Vec<Pattern>, place: Place) -> Binding {
        Binding { name: name.into(), hosts, place, format: HOLE.to_owned(), asked: false }
    }

    /// What the code inside writes where it wants the value.
    pub fn placeholder(&self) -> String {
        format!("{{{{secret:{}}}}}", self.name)
    }

    pub(crate) fn covers(&self, origin: &Origin) -> bool {
        self.hosts.iter().any(|pattern| pattern.covers(origin))
    }

    /// What stands before and behind the value.
    pub(crate) fn around(&self) -> (&str, &str) {
        self.format.split_once(HOLE).unwrap_or_default()
    }

    fn check(&self) -> Result<(), Denied> {
        let wrong = |what: &str| Denied::invalid(format!("the binding of secret {}: {what}", quote(&self.name)));
        let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || !self.name.bytes().all(letter) {
            return Err(wrong("is no name of a secret"));
        }
        if self.hosts.is_empty() {
            return Err(wrong("names no host"));
        }
        self.place.check().map_err(|what| wrong(&what))?;
        if self.format.matches(HOLE).count() != 1 || self.format.len() > LONGEST_FORMAT {
            return Err(wrong("the format needs `{}` once, where the value goes"));
        }
        if matches!(self.place, Place::Basic | Place::Aws { .. }) && self.format != HOLE {
            return Err(wrong(&format!("{} has a format of its own", self.place)));
        }
        Ok(())
    }

    /// Whether both would set one place of one host though nobody asks.
    fn quarrels(&self, other: &Binding) -> Option<&Pattern> {
        if self.asked || other.asked || !self.place.overlaps(&other.place) {
            return None;
        }
        self.hosts.iter().find(|one| other.hosts.iter().any(|two| one.0.meets(&two.0)))
    }
}

/// All bindings of a deployment. No two of them would set the same place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(Vec<Binding>);

impl Bindings {
    pub fn new(list: Vec<Binding>) -> Result<Bindings, Denied> {
        if list.len() > MOST_BINDINGS {
            return Err(Denied::invalid(format!("there are more than {MOST_BINDINGS} bindings of secrets")));
        }
        for (at, binding) in list.iter().enumerate() {
            binding.check()?;
            for other in &list[..at] {
                if let Some(host) = binding.quarrels(other) {
                    return Err(Denied::invalid(format!(
                        "the secrets `{}` and `{}` would both be put into {} for {host}; let one of them be asked for",
                        other.name, binding.name, binding.place
                    )));
                }
            }
        }
        Ok(Bindings(list))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn all(&self) -> &[Binding] {
        &self.0
    }

    /// Those for requests to this origin.
    pub(crate) fn of<'a, 'b>(&'a self, origin: &'b Origin) -> impl Iterator<Item = &'a Binding> + use<'a, 'b> {
        self.0.iter().filter(move |binding| binding.covers(origin))
    }
}

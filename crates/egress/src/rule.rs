//! What a server may reach: base URLs, and nothing else.

use crate::denied::{Denied, quote};
use crate::explain::{is_local, literal};
use crate::path;
use crate::target::{Host, Origin, Scheme, Target};
use std::fmt;

/// More than this is no list that a person has read.
pub const MOST_RULES: usize = 256;
const LONGEST_RULE: usize = 2048;
const SUCH: &str = "such as `api.example.com`, `*.example.com:8443`, `https://api.example.com/v1/` or `GET,POST https://api.example.com`";

/// Whether `*`, every host, may be written. That is the operator's to say, never the author's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareStar {
    Refused,
    Allowed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    One(Host),
    /// One or more labels below, never the name itself.
    Below(String),
    Any,
}

/// One base URL: scheme, host and port are equal, the path begins with it, the method is one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    scheme: Scheme,
    hosts: Hosts,
    port: u16,
    prefix: String,
    /// Empty: every method that is not forbidden anyway.
    methods: Vec<String>,
}

/// Never sent: they make tunnels or reflect what the host has added.
pub(crate) fn method_forbidden(method: &str) -> bool {
    ["CONNECT", "TRACE", "TRACK"].iter().any(|forbidden| method.eq_ignore_ascii_case(forbidden))
}

pub(crate) fn is_token(text: &str) -> bool {
    let special = b"!#$%&'*+-.^_`|~";
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || special.contains(&b))
}

/// One label or more below the parent.
fn below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
}

impl Rule {
    /// A host as manifests have it (`api.example.com`, `*.example.com:8443`: https), or a base URL, with or without methods
    /// before it. There is one way to write each; what is written otherwise is refused with the right form.
    pub fn parse(text: &str, star: BareStar) -> Result<Rule, Denied> {
        let wrong = |what: &str| Denied::invalid(format!("rule {}: {what}", quote(text)));
        if text.len() > LONGEST_RULE {
            return Err(wrong("is too long"));
        }
        let (methods, base) = match text.split_once(' ') {
            Some((methods, base)) => (methods.split(',').map(str::to_owned).collect(), base),
            None => (Vec::new(), text),
        };
        for method in &methods {
            if !is_token(method) || method.chars().any(|c| c.is_ascii_lowercase()) {
                return Err(wrong(&format!("{} is no method; write them as `GET,POST`", quote(method))));
            }
            if method_forbidden(method) {
                return Err(wrong(&format!("{method} is never sent")));
            }
        }
        let (scheme, rest) = match base.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(_) => return Err(wrong("the scheme is neither http nor https")),
            None if base.contains('/') => return Err(wrong(&format!("a path needs a scheme before it, {SUCH}"))),
            None => (Scheme::Https, base),
        };
        if let Some(port) = rest.strip_prefix('*').filter(|rest| rest.is_empty() || rest.starts_with(':')) {
            if star == BareStar::Refused {
                return Err(wrong("only the host's operator may open every host; name those that are needed"));
            }
            let number = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0 && port.to_string() == text);
            let port = match port.strip_prefix(':') {
                Some(text) => number(text).ok_or_else(|| wrong("has no port between 1 and 65535 after its colon"))?,
                None => scheme.default_port(),
            };
            return Ok(Rule { scheme, hosts: Hosts::Any, port, prefix: "/".to_owned(), methods });
        }
        let (below, rest) = match rest.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        if rest.contains(['*', '?', '#', '@', '\\']) || !rest.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(wrong(&format!("is no base URL, {SUCH}")));
        }
        let plain = format!("{}://{rest}", scheme.as_str());
        let target = Target::parse(&plain).map_err(|_| wrong(&format!("is no base URL, {SUCH}")))?;
        let canonical = target.to_string();
        // A port that goes without saying may be said.
        let said = format!("{}://{}:{}{}", scheme.as_str(), target.origin.host, target.origin.port, target.path);
        if ![&canonical, &said].into_iter().any(|form| *form == plain || form.strip_suffix('/') == Some(&plain)) {
            let star = if below { "*." } else { "" };
            let shown = canonical.replacen("://", &format!("://{star}"), 1);
            return Err(wrong(&format!("is not in its plain form; write `{shown}`")));
        }
        path::unambiguous(&target.path).map_err(|what| wrong(&what))?;
        let Origin { host, port, .. } = target.origin;
        let hosts = match (below, host) {
            (false, host) => Hosts::One(host),
            (true, Host::Name(name)) if name.contains('.') => Hosts::Below(name),
            (true, Host::Name(_)) => return Err(wrong("leaves too much open: two parts are needed after `*.`")),
            (true, Host::Address(_)) => return Err(wrong("an address has nothing below it")),
        };
        Ok(Rule { scheme, hosts, port, prefix: target.path, methods })
    }

    /// Whether it says nothing about paths and methods.
    pub(crate) fn is_whole_origin(&self) -> bool {
        self.prefix == "/" && self.methods.is_empty()
    }

    /// Whether there is an origin that both cover.
    pub(crate) fn meets(&self, other: &Rule) -> bool {
        let hosts = match (&self.hosts, &other.hosts) {
            (Hosts::Any, _) | (_, Hosts::Any) => true,
            (Hosts::One(one), Hosts::One(two)) => one == two,
            (Hosts::Below(one), Hosts::Below(two)) => one == two || below(one, two) || below(two, one),
            (Hosts::One(Host::Name(name)), Hosts::Below(parent))
            | (Hosts::Below(parent), Hosts::One(Host::Name(name))) => below(name, parent),
            _ => false,
        };
        hosts && self.scheme == other.scheme && self.port == other.port
    }

    /// Whether it allows everything that the other allows.
    pub fn covers(&self, other: &Rule) -> bool {
        let hosts = match (&self.hosts, &other.hosts) {
            (Hosts::Any, _) => true,
            (Hosts::One(one), Hosts::One(two)) => one == two,
            (Hosts::Below(parent), Hosts::One(Host::Name(name))) => below(name, parent),
            (Hosts::Below(one), Hosts::Below(two)) => one == two || below(two, one),
            _ => false,
        };
        let methods = self.methods.is_empty()
            || !other.methods.is_empty() && other.methods.iter().all(|method| self.methods.contains(method));
        let origin = hosts && self.scheme == other.scheme && self.port == other.port;
        origin && methods && path::is_under(&other.prefix, &self.prefix)
    }

    pub(crate) fn covers_origin(&self, origin: &Origin) -> bool {
        let host = match (&self.hosts, &origin.host) {
            (Hosts::One(host), other) => host == other,
            (Hosts::Below(parent), Host::Name(name)) => below(name, parent),
            (Hosts::Below(_), Host::Address(_)) => false,
            (Hosts::Any, _) => true,
        };
        host && self.scheme == origin.scheme && self.port == origin.port
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if !self.methods.is_empty() {
            write!(f, "{} ", self.methods.join(","))?;
        }
        let host = match &self.hosts {
            Hosts::One(host) => host.to_string(),
            Hosts::Below(parent) => format!("*.{parent}"),
            Hosts::Any => "*".to_owned(),
        };
        write!(f, "{}://{host}", self.scheme.as_str())?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(if self.prefix == "/" { "" } else { &self.prefix })
    }
}

pub(crate) enum Cover<'a> {
    Nothing,
    /// Some paths or methods.
    Part,
    Whole(&'a Rule),
}

pub(crate) fn unnamed(origin: &Origin) -> Denied {
    Denied::refuse(format!("no rule allows {origin}; the server's `egress` has to name it"))
}

/// Everything a deployment may reach. Nothing, unless rules say so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Rules {
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>, star: BareStar) -> Result<Rules, Denied> {
        let mut rules = Vec::new();
        for entry in entries {
            if rules.len() == MOST_RULES {
                return Err(Denied::invalid(format!("there are more than {MOST_RULES} rules")));
            }
            rules.push(Rule::parse(entry, star)?);
        }
        Ok(Rules(rules))
    }

    /// Refuses rules for what is never reached: an address that is written out, a name for the machine itself. An author is better
    /// told so at once than by every request. On these ports loopback counts as any other address.
    pub fn check(&self, loopback: &[u16]) -> Result<(), Denied> {
        self.try_each(|host, port| {
            let ours = match host {
                Host::Address(address) => address.is_loopback(),
                Host::Name(name) => is_local(name),
            };
            if ours && loopback.contains(&port) { Ok(()) } else { literal(host).unwrap_or(Ok(())) }
        })
    }

    /// The first problem that somebody has with a host, with the rule that names it.
    pub(crate) fn try_each(&self, look: impl Fn(&Host, u16) -> Result<(), Denied>) -> Result<(), Denied> {
        for rule in &self.0 {
            let looked = match &rule.hosts {
                Hosts::One(host) => look(host, rule.port),
                Hosts::Below(parent) => look(&Host::Name(parent.clone()), rule.port),
                Hosts::Any => Ok(()),
            };
            looked.map_err(|Denied { code, message }| Denied { code, message: format!("rule `{rule}`: {message}") })?;
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How much of an origin may be reached, for when nobody can see what is asked of it.
    pub(crate) fn cover(&self, origin: &Origin) -> Cover<'_> {
        let mut same = self.0.iter().filter(|rule| rule.covers_origin(origin)).peekable();
        if same.peek().is_none() {
            return Cover::Nothing;
        }
        same.find(|rule| rule.is_whole_origin()).map_or(Cover::Part, Cover::Whole)
    }

    /// The rule that lets this through, or what is missing.
    pub fn find(&self, target: &Target, method: &str) -> Result<&Rule, Denied> {
        if method_forbidden(method) {
            return Err(Denied::refuse(format!("{method} is never sent")));
        }
        let origin = &target.origin;
        let same: Vec<&Rule> = self.0.iter().filter(|rule| rule.covers_origin(origin)).collect();
        if same.is_empty() {
            return Err(unnamed(origin));
        }
        let under: Vec<&Rule> = same.into_iter().filter(|rule| path::is_under(&target.path, &rule.prefix)).collect();
        if under.is_empty() {
            return Err(Denied::refuse(format!("rules allow {origin}, but not the path {}", quote(&target.path))));
        }
        let fits = |rule: &&Rule| rule.methods.is_empty() || rule.methods.iter().any(|allowed| allowed == method);
        under
            .into_iter()
            .find(fits)
            .ok_or_else(|| Denied::refuse(format!("rules allow {origin}, but not the method {} there", quote(method))))
    }
}

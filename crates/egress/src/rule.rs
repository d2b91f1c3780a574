//! Everything that a deployment may reach: a list of rules. Their grammar is in `policy`.

use crate::denied::{Denied, quote};
use crate::explain::{is_local, literal};
use crate::target::{Host, Origin, Target};
use policy::egress::is_forbidden_method;
pub(crate) use policy::egress::{BareStar, Rule};

/// More than this is no list that a person has read.
pub const MOST_RULES: usize = 256;

/// A rule, or why the text is none, in words that repeat it.
pub(crate) fn parse(text: &str, star: BareStar) -> Result<Rule, Denied> {
    Rule::parse(text, star).map_err(|bad| Denied::invalid(format!("rule {}: {bad}", quote(text))))
}

pub(crate) enum Cover<'a> {
    Nothing,
    /// Some paths or methods.
    Part,
    Whole(&'a Rule),
}

/// How the reason begins where no rule names an origin, which follows, and a semicolon.
pub const UNNAMED: &str = "no rule allows ";

pub(crate) fn unnamed(origin: &Origin) -> Denied {
    Denied::refuse(format!("{UNNAMED}{origin}; the server's `egress` has to name it"))
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
            rules.push(parse(entry, star)?);
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
            let looked = rule.named().map_or(Ok(()), |(host, port)| look(&host, port));
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
        if is_forbidden_method(method) {
            return Err(Denied::refuse(format!("{method} is never sent")));
        }
        let origin = &target.origin;
        let same: Vec<&Rule> = self.0.iter().filter(|rule| rule.covers_origin(origin)).collect();
        if same.is_empty() {
            return Err(unnamed(origin));
        }
        let under: Vec<&Rule> = same.into_iter().filter(|rule| rule.allows_path(&target.path)).collect();
        if under.is_empty() {
            return Err(Denied::refuse(format!("rules allow {origin}, but not the path {}", quote(&target.path))));
        }
        under
            .into_iter()
            .find(|rule| rule.allows_method(method))
            .ok_or_else(|| Denied::refuse(format!("rules allow {origin}, but not the method {} there", quote(method))))
    }
}

//! One fetch: hop after hop, each decided anew.

use crate::credentials::{MOST_SEARCHED, Payload, Prepared, Value};
use crate::decode::{self, Coding};
use crate::denied::Denied;
use crate::door::Inner;
use crate::download::{Download, Parts};
use crate::explain::{normal, permit};
use crate::finder::Finder;
use crate::headers;
use crate::ledger::{Ledger, Trace};
use crate::mask::Masker;
use crate::overrides::{self, Narrow};
use crate::pass::Pass;
use crate::pool::Key;
use crate::rule::Cover;
use crate::send::{self, Answer};
use crate::target::Target;
use crate::tenant::Tenant;
use crate::upload::{Progress, Source, Upload};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;
use std::sync::Arc;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Redirect {
    #[default]
    Follow,
    Error,
    Manual,
}

pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) redirect: Redirect,
    pub(crate) source: Source,
}

pub(crate) struct Head {
    pub(crate) url: String,
    pub(crate) redirected: bool,
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) headers: Vec<(String, String)>,
}

pub(crate) struct Exchange {
    pub(crate) door: Arc<Inner>,
    pub(crate) pass: Arc<Pass>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) deadline: Instant,
}

/// Stands between parts that are searched as one text. It can be no part of a spelling.
const BETWEEN: u8 = 1;

enum Next {
    Done(Head, Option<Box<Download>>),
    Hop(Target, StatusCode),
}

impl Exchange {
    pub(crate) async fn run(&self, ask: Ask) -> Result<(Head, Option<Box<Download>>), Denied> {
        let late = Denied::timeout("the request took longer than all of it may (`total_ms`)");
        tokio::time::timeout_at(self.deadline, self.hops(ask)).await.unwrap_or(Err(late))
    }

    async fn hops(&self, mut ask: Ask) -> Result<(Head, Option<Box<Download>>), Denied> {
        ask.method = normal(&ask.method);
        let mut target = Target::parse(&ask.url).inspect_err(|denied| {
            self.ledger.note(&ask.method, None, None).failed(denied.code);
        })?;
        let length = match &ask.source {
            Source::Whole(bytes) => Some(bytes.len() as u64),
            Source::Nothing => Some(0),
            _ => None,
        };
        let authority = target.origin.authority();
        let mut headers =
            headers::request(&ask.headers, &authority, length, &self.door.limits).inspect_err(|denied| {
                self.ledger.note(&ask.method, Some(&target), None).failed(denied.code);
            })?;
        let mut secrets = Vec::new();
        for hop in 0.. {
            if hop > self.door.limits.redirects {
                return Err(Denied::limit(format!("there are more than {} redirects", self.door.limits.redirects)));
            }
            let went = self.hop(&mut ask, &target, &headers, &mut secrets, hop > 0).await;
            match if hop > 0 { went.map_err(|denied| discreet(denied, &secrets)) } else { went }? {
                Next::Done(head, body) => return Ok((head, body)),
                Next::Hop(next, status) => {
                    rewrite(&mut ask, &mut headers, status)?;
                    if next.origin != target.origin {
                        let dropped: Vec<_> =
                            headers.keys().filter(|name| headers::speaks_for_somebody(name)).cloned().collect();
                        dropped.iter().for_each(|name| drop(headers.remove(name)));
                        // What was made for another origin and could not be taken back again.
                        if self.finder(&secrets)?.found_in(next.to_string().as_bytes()) {
                            return Err(Denied::refuse("the redirect would carry a secret to another origin"));
                        }
                    }
                    target = next;
                }
            }
        }
        Err(Denied::limit("there are too many redirects"))
    }

    fn finder(&self, secrets: &[Value]) -> Result<Finder, Denied> {
        self.door.finders.get(&self.pass.tenant, &self.pass.deployment, secrets)
    }

    async fn hop(
        &self,
        ask: &mut Ask,
        target: &Target,
        headers: &HeaderMap,
        secrets: &mut Vec<Value>,
        redirected: bool,
    ) -> Result<Next, Denied> {
        let rule = permit(&self.pass.rules, target, &ask.method);
        let trace = Arc::new(self.ledger.note(&ask.method, Some(target), rule.as_ref().ok().cloned()));
        let result = async {
            rule?;
            self.learn(target, secrets).await?;
            self.go(ask, target, headers, secrets, redirected, &trace).await
        };
        let result = result.await;
        result.inspect_err(|denied| trace.failed(denied.code))
    }

    /// Adds what this origin may have kept to what is masked.
    async fn learn(&self, target: &Target, values: &mut Vec<Value>) -> Result<(), Denied> {
        merge(values, self.pass.credentials.known(&target.origin).await?.secrets);
        let bytes: usize = values.iter().map(|value| value.len()).sum();
        if bytes <= MOST_SEARCHED {
            return Ok(());
        }
        let (tenant, origin) = (&self.pass.tenant, &target.origin);
        Err(Denied::refuse(format!(
            "the secrets that may come back from {origin} have {bytes} bytes, and a response is searched for at most \
             {MOST_SEARCHED}; an admin lets fewer of them go there: `bulkhead secret list {tenant}` shows them, \
             `bulkhead secret deny {tenant} NAME --for SERVER --to HOST` takes one away"
        )))
    }

    async fn go(
        &self,
        ask: &mut Ask,
        target: &Target,
        headers: &HeaderMap,
        values: &mut Vec<Value>,
        redirected: bool,
        trace: &Arc<Trace>,
    ) -> Result<Next, Denied> {
        let limits = &self.door.limits;
        trace.up(0)?;
        let mut prepared = self.prepare(ask, target, headers, values, trace).await?;
        let secrets = self.finder(values)?;
        // Packed in a way that the host does not know, or part by part, a secret could come back unseen.
        if !secrets.is_empty() {
            // `content-range` tells of what is sent.
            let asks = |name: &&HeaderName| name.as_str().contains("range") && **name != CONTENT_RANGE;
            let ranges = prepared.headers.keys().filter(asks).cloned();
            ranges.collect::<Vec<_>>().iter().for_each(|name| drop(prepared.headers.remove(name)));
        }
        if !secrets.is_empty() || !prepared.headers.contains_key(ACCEPT_ENCODING) {
            let accepted = if prepared.headers.contains_key(RANGE) { "identity" } else { decode::ACCEPTED };
            prepared.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
        }
        prepared.headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        prepared.headers.entry(USER_AGENT).or_insert(HeaderValue::from_static("bulkhead"));
        let places = self.tenant.enter(&target.origin.host.to_string(), limits).await?;
        let key = Key {
            tenant: self.pass.tenant.clone(),
            deployment: self.pass.deployment.clone(),
            origin: target.origin.clone(),
        };
        let source = match std::mem::replace(&mut prepared.body, Payload::Nothing) {
            Payload::Whole(bytes) => Source::Whole(bytes),
            Payload::Nothing => Source::Nothing,
            Payload::Stream => std::mem::replace(&mut ask.source, Source::Spent),
        };
        let upload = Upload { source, trace: trace.clone(), progress: Progress::new() };
        let Answer { response, lease } = send::send(&self.door, &self.tenant, key, prepared, upload).await?;
        trace.status(response.status().as_u16());
        trace.down(headers::size(response.headers()))?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Denied::network("the server changed the protocol, which nobody asked for"));
        }
        if let Some(next) = follow(ask.redirect, target, &response).map_err(|denied| discreet(denied, values))? {
            if http_body::Body::is_end_stream(response.body()) {
                self.door.pool.give_back(lease);
            }
            return Ok(Next::Hop(next, response.status()));
        }
        let head = self.head(target, redirected, &response, &secrets, trace).await?;
        let bodiless = ask.method == "HEAD" || matches!(head.status, 204 | 205 | 304);
        if bodiless {
            if http_body::Body::is_end_stream(response.body()) {
                self.door.pool.give_back(lease);
            }
            return Ok(Next::Done(head, None));
        }
        let coding = decode::coding(response.headers())?;
        if coding == Coding::Unknown && !secrets.is_empty() {
            return Err(Denied::network("the response is packed in a way that the host does not know"));
        }
        let masker = Masker::new(secrets, is_event_stream(response.headers()));
        let body = Download::new(Parts {
            incoming: response.into_body(),
            coding,
            masker,
            limits: limits.clone(),
            deadline: self.deadline,
            trace: trace.clone(),
            lease,
            pool: self.door.pool.clone(),
            tenant: self.tenant.clone(),
            places,
        });
        Ok(Next::Done(head, Some(Box::new(body))))
    }

    /// The request of one hop, with its secrets. What the code inside asked for stays as it is, for the next hop.
    async fn prepare(
        &self,
        ask: &mut Ask,
        target: &Target,
        headers: &HeaderMap,
        values: &mut Vec<Value>,
        trace: &Trace,
    ) -> Result<Prepared, Denied> {
        let credentials = &self.pass.credentials;
        let (method, mut headers) = (ask.method.clone(), headers.clone());
        let rules = &self.pass.rules;
        // With a rule for the whole origin there is nothing to walk around.
        let narrow = match rules.cover(&target.origin) {
            Cover::Whole(_) => None,
            Cover::Part | Cover::Nothing => Some(Narrow(rules.find(target, &method)?)),
        };
        if narrow.is_some() {
            overrides::drop_headers(&mut headers);
        }
        let mut prepared = Prepared { method, target: target.clone(), headers, body: Payload::Nothing };
        let covered = credentials.covers(&target.origin);
        let reads = narrow.as_ref().is_some_and(|narrow| narrow.reads(&prepared.headers));
        if covered && credentials.needs_body(&prepared) || reads {
            ask.source.gather(self.door.limits.request_bytes).await?;
        }
        prepared.body = match &ask.source {
            Source::Whole(bytes) => Payload::Whole(bytes.clone()),
            Source::Nothing | Source::Spent => Payload::Nothing,
            Source::Stream(_) => Payload::Stream,
        };
        if let Some(narrow) = narrow {
            narrow.refuse_fields(&prepared.target.query, &prepared.headers, &prepared.body)?;
        }
        if covered {
            let applied = credentials.apply(&mut prepared).await?;
            merge(values, applied.secrets);
            trace.credentials(applied.names);
        }
        Ok(prepared)
    }

    async fn head(
        &self,
        target: &Target,
        redirected: bool,
        response: &Response<Incoming>,
        secrets: &Finder,
        trace: &Trace,
    ) -> Result<Head, Denied> {
        let mut headers = headers::response(response.headers(), &self.door.limits)?;
        let unpacked = !matches!(decode::coding(response.headers())?, Coding::Plain | Coding::Unknown);
        if unpacked {
            // They tell of the packed body, which nobody sees.
            headers.retain(|(name, _)| *name != CONTENT_ENCODING.as_str() && *name != CONTENT_LENGTH.as_str());
        }
        let reason = match response.extensions().get::<hyper::ext::ReasonPhrase>() {
            Some(reason) => reason.as_bytes(),
            None if response.version() == http::Version::HTTP_2 => b"",
            None => response.status().canonical_reason().unwrap_or_default().as_bytes(),
        };
        let url = target.to_string();
        let both = headers.iter().flat_map(|(name, value)| [name.as_bytes(), *value]);
        let parts: Vec<&[u8]> = [url.as_bytes(), reason].into_iter().chain(both).collect();
        let mut masked = self.mask(&parts, secrets, trace).await.into_iter();
        let (url, reason) = (masked.next().unwrap_or_default(), masked.next().unwrap_or_default());
        let mut shown = Vec::with_capacity(headers.len());
        for (name, _) in &headers {
            let (seen, value) = (masked.next().unwrap_or_default(), masked.next().unwrap_or_default());
            // A name with a secret in it is no name any more.
            if seen == *name {
                shown.push((seen, value));
            }
        }
        Ok(Head { url, redirected, status: response.status().as_u16(), reason, headers: shown })
    }

    /// Searches all of them as one text: many short ones cost no more than one that is long. Each byte becomes a character.
    async fn mask(&self, parts: &[&[u8]], secrets: &Finder, trace: &Trace) -> Vec<String> {
        let mut masker = Masker::new(secrets.clone(), false);
        let masked = self.tenant.effort.mask(&mut masker, &parts.join(&BETWEEN), true, trace).await;
        let (mut rest, mut out) = (&masked[..], Vec::with_capacity(parts.len()));
        for part in parts {
            let (this, behind) = rest.split_at(part.len().min(rest.len()));
            out.push(headers::latin1(this));
            rest = behind.get(1..).unwrap_or_default();
        }
        out
    }
}

fn merge(values: &mut Vec<Value>, more: Vec<Value>) {
    for value in more {
        if !values.contains(&value) {
            values.push(value);
        }
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// A refusal repeats parts of a URL. One that a server has made may have a secret in it, even in half.
fn discreet(denied: Denied, secrets: &[Value]) -> Denied {
    if secrets.is_empty() {
        return denied;
    }
    Denied { code: denied.code, message: "the server redirects to where the request cannot go".to_owned() }
}

/// Where to go next, if anywhere.
fn follow(redirect: Redirect, target: &Target, response: &Response<Incoming>) -> Result<Option<Target>, Denied> {
    let status = response.status();
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) || redirect == Redirect::Manual {
        return Ok(None);
    }
    if redirect == Redirect::Error {
        return Err(Denied::network(format!("{} redirects, which the request forbids", target.origin)));
    }
    let mut locations = response.headers().get_all(LOCATION).iter();
    let (Some(location), None) = (locations.next(), locations.next()) else {
        return if response.headers().contains_key(LOCATION) {
            Err(Denied::network(format!("{} redirects to several places at once", target.origin)))
        } else {
            Ok(None)
        };
    };
    // Browsers read these bytes as UTF-8 if they can.
    let location =
        String::from_utf8(location.as_bytes().to_vec()).unwrap_or_else(|bad| headers::latin1(bad.as_bytes()));
    target.join(&location).map(Some)
}

/// What fetch does to method and body on the way.
fn rewrite(ask: &mut Ask, headers: &mut HeaderMap, status: StatusCode) -> Result<(), Denied> {
    let to_get = match status.as_u16() {
        301 | 302 => ask.method == "POST",
        303 => ask.method != "GET" && ask.method != "HEAD",
        _ => false,
    };
    if matches!(ask.source, Source::Spent) && status != StatusCode::SEE_OTHER {
        return Err(Denied::network(
            "the server redirects a request whose body is a stream, which cannot be sent again",
        ));
    }
    if to_get {
        ask.method = "GET".to_owned();
        ask.source = Source::Nothing;
        for name in ["content-encoding", "content-language", "content-location", "content-type"] {
            headers.remove(name);
        }
    }
    Ok(())
}

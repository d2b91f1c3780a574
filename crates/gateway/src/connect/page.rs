//! The pages that a browser is shown. They load nothing, run nothing, and are kept by nobody.

use super::ConnectError;
use super::tickets::Want;
use crate::app::App;
use crate::problem::chain;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use oauth::Provider;
use registry::SecretPolicy;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

const CALLBACK: &str = "/connect/callback";
/// As long as a flow: the browser comes back within ten minutes, and may cancel for ten more.
const COOKIE_SECONDS: u64 = 2 * oauth::PENDING_SECONDS;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b2a3a;--paper:#fff;--soft:#5a6b7c;--line:#d5dde5;--main:#14507d;--on:#fff;--warn:#8a1f11;--tint:#fdf0ee}\
@media(prefers-color-scheme:dark){:root{--ink:#e4ebf2;--paper:#14202c;--soft:#9fb0c0;--line:#33465a;--main:#7fb8e6;--on:#0d1620;--warn:#ffb4a8;--tint:#3a1f1c}}\
*{box-sizing:border-box}\
body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:10vh auto;padding:0 1rem 2rem;color:var(--ink);background:var(--paper);overflow-wrap:anywhere}\
h1{font-size:1.5rem;line-height:1.25}\
dl{margin:1.25rem 0;border-top:1px solid var(--line)}\
div{display:flex;flex-wrap:wrap;gap:0 1rem;padding:.5rem 0;border-bottom:1px solid var(--line)}\
dt{flex:0 0 7rem;color:var(--soft)}\
dd{flex:1 1 12rem;margin:0;font-weight:600}\
.warn{padding:.75rem 1rem;border-left:4px solid var(--warn);background:var(--tint)}\
.code{margin:1.5rem 0;font:600 clamp(1.75rem,9vw,2.5rem)/1.2 ui-monospace,monospace;letter-spacing:.06em;text-align:center;user-select:all}\
code{font-family:ui-monospace,monospace}\
button{font:inherit;padding:.6rem 1.5rem;border:1px solid var(--main);border-radius:6px;background:var(--main);color:var(--on);cursor:pointer}\
button:focus-visible{outline:3px solid var(--soft);outline-offset:2px}\
.less{background:none;color:var(--main)}";

/// Says who asks for what, with a button.
pub async fn show(State(app): State<Arc<App>>, Path(ticket): Path<String>) -> Response {
    match app.connect.look(&ticket) {
        // The form leads on to the provider, and from there to wherever it signs people in.
        Ok((want, provider, policy)) => page(StatusCode::OK, "Connect", &ask(&want, &provider, &policy), "*"),
        Err(error) => failed(&error),
    }
}

/// The button was pressed.
pub async fn begin(State(app): State<Arc<App>>, Path(ticket): Path<String>) -> Response {
    let base = app.public_base();
    let (url, cookie) = match app.connect.begin(&ticket, &format!("{base}{CALLBACK}")) {
        Ok(begun) => begun,
        Err(error) => return failed(&error),
    };
    let (name, secure) = cookie_kind(&base);
    let cookie = format!("{name}={cookie}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}");
    let mut response = page(StatusCode::SEE_OTHER, "Connect", "<p>You are sent on.</p>", "*");
    for (name, value) in [(header::LOCATION, url), (header::SET_COOKIE, cookie)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The browser is back from the provider: it is shown the code.
pub async fn callback(State(app): State<Arc<App>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let base = app.public_base();
    let cookie = cookie(&headers, &base);
    match app.connect.finish(&query.unwrap_or_default(), cookie, &format!("{base}{CALLBACK}")).await {
        Ok((want, code)) => page(StatusCode::OK, "Confirm", &confirm(&want, &code), "'self'"),
        Err(error) => failed(&error),
    }
}

/// The person at the browser did not mean it.
pub async fn cancel(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    match cookie(&headers, &app.public_base()).is_some_and(|cookie| app.connect.cancel(cookie)) {
        true => page(
            StatusCode::OK,
            "Cancelled",
            "<h1>Cancelled</h1><p>No connection was made. The code is void.</p>",
            "'self'",
        ),
        false => failed(&ConnectError::NoTicket),
    }
}

/// Over https no other host of the domain can set or shadow the cookie (`__Host-`). Plain http is for loopback, where
/// browsers do not take that prefix.
fn cookie_kind(base: &str) -> (&'static str, &'static str) {
    if base.starts_with("https://") { ("__Host-bulkhead_connect", "; Secure") } else { ("bulkhead_connect", "") }
}

fn cookie<'a>(headers: &'a HeaderMap, base: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == cookie_kind(base).0).map(|(_, value)| value)
}

fn ask(want: &Want, provider: &Provider, policy: &SecretPolicy) -> String {
    let name = escape(&want.provider);
    let place = provider.authorize_url.as_ref().and_then(|url| url.host_str()).map(escape).unwrap_or_default();
    let scopes = match provider.scopes.is_empty() {
        true => "what the provider gives by default".to_owned(),
        false => provider.scopes.iter().map(|scope| escape(scope)).collect::<Vec<_>>().join(", "),
    };
    let whose = if want.subject.is_empty() { "all callers of the tenant" } else { "those of this key or user alone" };
    format!(
        "<h1>Let {who} act as you at {name}?</h1>{facts}\
         <p class=\"warn\"><b>Go on only if you asked for this yourself, just now.</b> If somebody sent you this link, close this page.</p>\
         <p>{name} asks for your consent next. Then you get a code, to be typed where you asked for the connection.</p>\
         <form method=\"post\"><button id=\"connect\">Go on to {name}</button></form>",
        who = escape(&want.who),
        facts = facts(&[
            ("Who asks", escape(&want.who)),
            ("Tenant", escape(&want.tenant)),
            ("Whose calls", whose.to_owned()),
            ("Provider", format!("{name} ({place})")),
            ("Access", scopes),
            ("Used by", users(want, policy)),
        ]),
    )
}

/// The servers that the policy allows, or of these the one that asks, each with the hosts that get the token.
fn users(want: &Want, policy: &SecretPolicy) -> String {
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    match &want.server {
        Some(server) => users.entry(server).or_default().extend(policy.hosts(server).map(|(host, _)| host)),
        None => policy.all().for_each(|(server, host, _)| users.entry(server).or_default().extend([host])),
    }
    let user = |(server, hosts): (&&str, &BTreeSet<&str>)| {
        let hosts: Vec<_> = hosts.iter().map(|host| escape(host)).collect();
        let hosts = if hosts.is_empty() { "no host".to_owned() } else { hosts.join(", ") };
        match *server {
            SecretPolicy::EVERY_SERVER => format!("every server of {}, at {hosts}", escape(&want.tenant)),
            server => format!("{}, at {hosts}", escape(server)),
        }
    };
    users.iter().map(user).collect::<Vec<_>>().join("; ")
}

fn confirm(want: &Want, code: &str) -> String {
    let (tenant, name) = (escape(&want.tenant), escape(&want.provider));
    format!(
        "<h1>One step is left</h1>\
         <p>Type this code where you asked for the connection:</p><p class=\"code\" id=\"code\">{code}</p>\
         <p class=\"warn\"><b>Give this code to nobody else: whoever has it can act as you at {name}.</b> No person, message or \
         tool ever needs it from you.</p>\
         <p>It belongs into the terminal where <code>bulkhead connect {tenant}/{name}</code> runs, or into your MCP client's question that \
         begins with <code>[bulkhead]</code>. It is good for ten minutes.</p>{facts}\
         <p>If you did not ask for this, cancel. Without the code nothing happens.</p>\
         <form method=\"post\" action=\"/connect/cancel\"><button id=\"cancel\" class=\"less\">Cancel</button></form>",
        facts = facts(&[("Who asks", escape(&want.who)), ("Tenant", tenant.clone()), ("Provider", name.clone())]),
    )
}

/// Rows of a name and a value that is HTML.
fn facts(rows: &[(&str, String)]) -> String {
    let mut html = "<dl>".to_owned();
    for (name, value) in rows {
        // Writing into a string cannot fail.
        let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    html + "</dl>"
}

fn failed(error: &ConnectError) -> Response {
    let status = match error {
        ConnectError::NoTicket => StatusCode::NOT_FOUND,
        ConnectError::Full => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    let body = format!("<h1>Not connected</h1><p>{}</p>", escape(&chain(error)));
    page(status, "Not connected", &body, "'self'")
}

fn page(status: StatusCode, title: &str, body: &str, forms: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><main>{body}</main></body></html>"
    );
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let rules = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action {forms}; frame-ancestors 'none'; base-uri 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("content-security-policy"), &rules),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("referrer-policy"), "same-origin"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
    ];
    (status, headers, html).into_response()
}

fn escape(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !bundle::is_hidden(*c)).take(300).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

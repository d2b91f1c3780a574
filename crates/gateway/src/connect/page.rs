//! What a browser sees of it.

use super::ConnectError;
use super::tickets::Want;
use crate::app::App;
use crate::problem::chain;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::sync::Arc;

const COOKIE: &str = "bulkhead_connect";
const CALLBACK: &str = "/connect/callback";

/// What is about to happen, for whom, and a button.
pub async fn show(State(app): State<Arc<App>>, Path(ticket): Path<String>) -> Response {
    match app.connect.look(&ticket) {
        Ok(want) => page(StatusCode::OK, "Connect", &ask(&want)),
        Err(error) => failed(&error),
    }
}

/// Somebody has pressed it.
pub async fn begin(State(app): State<Arc<App>>, Path(ticket): Path<String>) -> Response {
    let base = app.public_base();
    let (url, cookie) = match app.connect.begin(&ticket, &format!("{base}{CALLBACK}")) {
        Ok(begun) => begun,
        Err(error) => return failed(&error),
    };
    let secure = if base.starts_with("https://") { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={cookie}; Path=/connect; Max-Age=600; HttpOnly; SameSite=Lax{secure}");
    let mut response = page(StatusCode::SEE_OTHER, "Connect", "<p>You are sent on.</p>");
    for (name, value) in [(header::LOCATION, url), (header::SET_COOKIE, cookie)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// They are back.
pub async fn callback(State(app): State<Arc<App>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let redirect_uri = format!("{}{CALLBACK}", app.public_base());
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let cookie = pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value);
    match app.connect.finish(&query.unwrap_or_default(), cookie, &redirect_uri).await {
        Ok(want) => {
            let text = format!(
                "<p>The connection of <b>{}</b> to <b>{}</b> stands. You can close this page.</p>",
                escape(&want.tenant),
                escape(&want.provider)
            );
            page(StatusCode::OK, "Connected", &text)
        }
        Err(error) => failed(&error),
    }
}

fn ask(want: &Want) -> String {
    format!(
        "<p>Calls of <b>{}</b> by <b>{}</b> are to use your account at <b>{}</b>.</p>\
         <p>Go on only if it was you who asked for this.</p>\
         <form method=\"post\"><button id=\"connect\">Go on</button></form>",
        escape(&want.tenant),
        if want.subject.is_empty() { "everybody".to_owned() } else { escape(&want.subject) },
        escape(&want.provider)
    )
}

fn failed(error: &ConnectError) -> Response {
    let status = match error {
        ConnectError::NoTicket => StatusCode::NOT_FOUND,
        ConnectError::Full => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    page(status, "Not connected", &format!("<p>{}</p>", escape(&chain(error))))
}

fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1rem;color:#1b2a3a}}\
         button{{font:inherit;padding:.5rem 1.5rem;border:0;border-radius:6px;background:#14507d;color:#fff}}</style>\
         <h1>{title}</h1>{body}</html>"
    );
    let rules = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("content-security-policy"), rules),
        (HeaderName::from_static("referrer-policy"), "same-origin"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
    ];
    (status, headers, html).into_response()
}

fn escape(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !bundle::is_hidden(*c)).take(300).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

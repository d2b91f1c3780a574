//! The page on which a person signs in and agrees, for browsers and for tests that play one.

use super::{Code, Running, pairs, random};
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use std::collections::HashMap;
use url::Url;

const CARRIED: [&str; 5] = ["redirect_uri", "state", "scope", "code_challenge", "client_id"];

pub(super) async fn show(State(running): State<Running>, RawQuery(query): RawQuery) -> Response {
    let asked = pairs(&query.unwrap_or_default());
    if let Err(why) = acceptable(&running, &asked) {
        return (StatusCode::BAD_REQUEST, Html(format!("<!doctype html><p id=\"problem\">{why}</p>"))).into_response();
    }
    let field = |name: &str| {
        let value = asked.get(name).map(|value| escaped(value)).unwrap_or_default();
        format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">\n")
    };
    let hidden: String = CARRIED.into_iter().map(field).collect();
    let scope = asked.get("scope").map(|scope| escaped(scope)).unwrap_or_default();
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Sign in</title>\n\
         <h1>Sign in</h1><p>Bulkhead asks for: <code id=\"scope\">{scope}</code></p>\n\
         <form method=\"post\" action=\"/authorize\">\n{hidden}\
         <label>User <input name=\"user\" id=\"user\" required autofocus></label>\n\
         <button name=\"decision\" value=\"allow\" id=\"allow\">Allow</button>\n\
         <button name=\"decision\" value=\"deny\" id=\"deny\" formnovalidate>Deny</button>\n</form></html>\n"
    ))
    .into_response()
}

pub(super) async fn submit(State(running): State<Running>, body: String) -> Response {
    let asked = pairs(&body);
    let said = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let mut back = match Url::parse(&said("redirect_uri")) {
        Ok(url) if allowed(&running, &said("redirect_uri")) => url,
        _ => return StatusCode::BAD_REQUEST.into_response(),
    };
    let mut query = back.query_pairs_mut();
    if said("decision") == "allow" && !said("user").is_empty() {
        let code = random("code-");
        let mut state = running.state();
        state.made += 1;
        let family = state.made;
        let (redirect_uri, challenge, scope) = (said("redirect_uri"), said("code_challenge"), said("scope"));
        let made = Code { user: said("user"), challenge, redirect_uri, scope, family, used: false };
        state.codes.insert(code.clone(), made);
        query.append_pair("code", &code);
    } else {
        query.append_pair("error", "access_denied").append_pair("error_description", "the user said no");
    }
    query.append_pair("state", &said("state")).append_pair("iss", &running.url(""));
    drop(query);
    (StatusCode::SEE_OTHER, [(header::LOCATION, String::from(back))]).into_response()
}

fn acceptable(running: &Running, asked: &HashMap<String, String>) -> Result<(), &'static str> {
    let is = |name: &str, value: &str| asked.get(name).is_some_and(|said| said == value);
    if !is("client_id", &running.settings.client_id) {
        return Err("no such client");
    }
    if !asked.get("redirect_uri").is_some_and(|uri| allowed(running, uri)) {
        return Err("that redirect_uri is not registered");
    }
    if !is("response_type", "code") || !is("code_challenge_method", "S256") {
        return Err("only code with S256 is supported");
    }
    if asked.get("code_challenge").is_none_or(|challenge| challenge.len() != 43) {
        return Err("no code_challenge");
    }
    Ok(())
}

fn allowed(running: &Running, uri: &str) -> bool {
    let registered = &running.settings.redirect_uris;
    registered.is_empty() || registered.iter().any(|known| known == uri)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

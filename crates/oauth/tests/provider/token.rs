//! The token and revocation endpoints.

use super::{Family, Running, json, pairs, random};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::time::Instant;

type Refused = (StatusCode, &'static str);

const INVALID_GRANT: Refused = (StatusCode::BAD_REQUEST, "invalid_grant");

pub(super) async fn token(State(running): State<Running>, headers: HeaderMap, body: String) -> Response {
    let said = pairs(&body);
    let grant = said.get("grant_type").cloned().unwrap_or_default();
    *running.state().asked.entry(grant.clone()).or_default() += 1;
    tokio::time::sleep(running.settings.delay).await;
    if running.state().down {
        return (StatusCode::SERVICE_UNAVAILABLE, "<html>down for maintenance</html>").into_response();
    }
    let made = authenticated(&running, &headers, &said).and_then(|()| match grant.as_str() {
        "authorization_code" => by_code(&running, &said),
        "refresh_token" => by_refresh(&running, &said),
        "client_credentials" if running.settings.client_secret.is_some() => Ok(by_client(&running, &said)),
        _ => Err((StatusCode::BAD_REQUEST, "unsupported_grant_type")),
    });
    match made {
        Ok(fields) => answer(&running, fields),
        // As careless as some real ones: it repeats what it got.
        Err((status, error)) => json(status, json!({ "error": error, "error_description": format!("no: {body}") })),
    }
}

pub(super) async fn revoke(State(running): State<Running>, headers: HeaderMap, body: String) -> Response {
    let said = pairs(&body);
    let mut state = running.state();
    *state.asked.entry("revoke".into()).or_default() += 1;
    if let Err((status, error)) = authenticated(&running, &headers, &said) {
        return json(status, json!({ "error": error }));
    }
    let token = said.get("token").cloned().unwrap_or_default();
    for family in state.families.values_mut() {
        family.revoked |= family.refresh == token || family.access.iter().any(|(access, _)| *access == token);
    }
    StatusCode::OK.into_response()
}

fn authenticated(running: &Running, headers: &HeaderMap, said: &HashMap<String, String>) -> Result<(), Refused> {
    let basic = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let decoded = basic.and_then(|text| String::from_utf8(STANDARD.decode(text).ok()?).ok());
    // Both halves are form-encoded by RFC 6749.
    let plain = |text: &str| pairs(&format!("x={text}")).remove("x").unwrap_or_default();
    let (id, secret) = match decoded.as_ref().and_then(|text| text.split_once(':')) {
        Some((id, secret)) => (Some(plain(id)), Some(plain(secret))),
        None => (said.get("client_id").cloned(), said.get("client_secret").cloned()),
    };
    let known = id.as_ref() == Some(&running.settings.client_id) && secret == running.settings.client_secret;
    if known { Ok(()) } else { Err((StatusCode::UNAUTHORIZED, "invalid_client")) }
}

fn by_code(running: &Running, said: &HashMap<String, String>) -> Result<Fields, Refused> {
    let mut state = running.state();
    let code = said.get("code").and_then(|code| state.codes.get_mut(code)).ok_or(INVALID_GRANT)?;
    let (found, used) = (code.clone(), std::mem::replace(&mut code.used, true));
    let verifier = said.get("code_verifier").cloned().unwrap_or_default();
    if used {
        // Somebody else has it, too: nothing that came of it can be trusted.
        state.families.entry(found.family).or_default().revoked = true;
        return Err(INVALID_GRANT);
    }
    if URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) != found.challenge
        || said.get("redirect_uri") != Some(&found.redirect_uri)
    {
        return Err(INVALID_GRANT);
    }
    let refresh = random("refresh-");
    let family = Family { user: found.user, scope: found.scope, refresh, ..Family::default() };
    state.families.insert(found.family, family);
    drop(state);
    Ok(issue(running, found.family, true))
}

fn by_refresh(running: &Running, said: &HashMap<String, String>) -> Result<Fields, Refused> {
    let given = said.get("refresh_token").cloned().unwrap_or_default();
    let mut state = running.state();
    if let Some(family) = state.spent.get(&given).copied() {
        state.families.entry(family).or_default().revoked = true;
        return Err(INVALID_GRANT);
    }
    let good = |family: &Family| !family.revoked && family.refresh == given && !given.is_empty();
    let number = *state.families.iter().find(|(_, family)| good(family)).ok_or(INVALID_GRANT)?.0;
    if running.settings.rotate {
        state.spent.insert(given, number);
        state.families.entry(number).and_modify(|family| family.refresh = random("refresh-"));
    }
    drop(state);
    Ok(issue(running, number, running.settings.rotate))
}

fn by_client(running: &Running, said: &HashMap<String, String>) -> Fields {
    let mut state = running.state();
    state.made += 1;
    let number = state.made;
    let scope = said.get("scope").cloned().unwrap_or_default();
    let user = format!("client {}", said.get("audience").cloned().unwrap_or_default());
    state.families.insert(number, Family { user, scope, ..Family::default() });
    drop(state);
    issue(running, number, false)
}

type Fields = Vec<(&'static str, serde_json::Value)>;

fn issue(running: &Running, number: u64, with_refresh: bool) -> Fields {
    let access = random("access-");
    let end = running.settings.life.map(|life| Instant::now() + life);
    let mut state = running.state();
    let family = state.families.entry(number).or_default();
    family.access.push((access.clone(), end));
    let mut fields: Fields = vec![("access_token", json!(access)), ("token_type", json!("Bearer"))];
    fields.extend(running.settings.life.map(|life| ("expires_in", json!(life.as_secs()))));
    fields.extend(with_refresh.then(|| ("refresh_token", json!(family.refresh))));
    fields.push(("scope", json!(family.scope)));
    fields
}

fn answer(running: &Running, fields: Fields) -> Response {
    if !running.settings.forms {
        return json(StatusCode::OK, fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    }
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        form.append_pair(name, value.as_str().unwrap_or(&value.to_string()));
    }
    ([(header::CONTENT_TYPE, "application/x-www-form-urlencoded")], form.finish()).into_response()
}

//! A person connects: away to the provider, and back with a code.

use crate::error::{Error, Invalid, Refusal};
use crate::pending::{Pending, handle_of};
use crate::provider::{Grant, Provider, check_redirect};
use crate::request::TokenRequest;
use crate::text::{is_plain, masked};
use secrecy::{ExposeSecret, SecretString};
use std::collections::HashMap;
use url::form_urlencoded;

const LONGEST_QUERY: usize = 16 << 10;
const LONGEST_CODE: usize = 8 << 10;
const LONGEST_STATE: usize = 256;

/// The URL to open in the browser, and what is to be remembered until it comes back to `redirect_uri`.
///
/// The host must make sure that the browser that opens the URL is of the person for whom the connection will be kept.
/// Otherwise somebody could send their own link to others, and act with what those agree to.
pub fn begin(provider: &Provider, redirect_uri: &str, now: u64) -> Result<(String, Pending), Error> {
    check_redirect(redirect_uri)?;
    let authorize_url = provider.authorize_url.as_ref().filter(|_| provider.grant == Grant::Code);
    let nobody = || Invalid::new("grant", "must be `code`, with an `authorize_url`, for people to connect");
    let mut url = authorize_url.cloned().ok_or_else(nobody)?;
    let pending = Pending::new(provider, redirect_uri, now)?;
    let mut query = url.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &provider.client_id)
        .append_pair("redirect_uri", redirect_uri)
        .append_pair("state", pending.state.expose_secret())
        .append_pair("code_challenge", &pending.challenge())
        .append_pair("code_challenge_method", "S256");
    if let Some(scope) = provider.scope() {
        query.append_pair("scope", &scope);
    }
    query.extend_pairs(&provider.parameters);
    drop(query);
    Ok((url.into(), pending))
}

/// The [`Pending::handle`] of the attempt that this answer claims to belong to.
pub fn handle(callback_query: &str) -> Result<String, Error> {
    read(callback_query)?.get("state").map(|state| handle_of(state)).ok_or(Error::State)
}

/// The browser is back at `redirect_uri_seen` (scheme, host, port and path as it was really called, and nothing of the
/// query) with `callback_query` (without the question mark).
pub fn finish(
    provider: &Provider,
    pending: Pending,
    callback_query: &str,
    redirect_uri_seen: &str,
    now: u64,
) -> Result<TokenRequest, Error> {
    pending.check_time(now)?;
    pending.check_provider(provider)?;
    if pending.redirect_uri != redirect_uri_seen {
        return Err(Error::Redirect);
    }
    let said = read(callback_query)?;
    pending.check_state(said.get("state").map(String::as_str).unwrap_or_default())?;
    if provider.issuer.is_some() && provider.issuer.as_ref() != said.get("iss") {
        return Err(Error::Issuer);
    }
    if let Some(code) = said.get("error") {
        let secrets = [&pending.state, &pending.verifier];
        let description = said.get("error_description").map(|text| masked(text, &secrets));
        return Err(Error::Refused(Refusal::new(&masked(code, &secrets), description.as_deref())));
    }
    let code = said.get("code").filter(|code| is_plain(code, LONGEST_CODE));
    let code = SecretString::from(code.ok_or(Error::Callback("there is no code in it"))?.as_str());
    Ok(TokenRequest::code(provider, code, pending))
}

/// What is said twice could be read in two ways.
fn read(callback_query: &str) -> Result<HashMap<String, String>, Error> {
    if callback_query.len() > LONGEST_QUERY {
        return Err(Error::Callback("it is too long"));
    }
    let mut said = HashMap::new();
    for (name, value) in form_urlencoded::parse(callback_query.as_bytes()) {
        if said.insert(name.into_owned(), value.into_owned()).is_some() {
            return Err(Error::Callback("it says something twice"));
        }
    }
    if said.get("state").is_some_and(|state| !is_plain(state, LONGEST_STATE)) {
        return Err(Error::State);
    }
    Ok(said)
}

//! What a token endpoint answers, read as if an enemy had written it.

use crate::error::{Error, Refusal};
use crate::http::MOST_ANSWER_BYTES;
use crate::text::{is_plain, masked};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::value::RawValue;
use url::form_urlencoded;

const LONGEST_TOKEN: usize = 16 << 10;
const LONGEST_SCOPE: usize = 4 << 10;

/// A hundred years: more is a mistake.
const LONGEST_LIFE: u64 = 100 * 366 * 86_400;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) access: SecretString,
    pub(crate) refresh: Option<SecretString>,
    pub(crate) expires_in: Option<u64>,
    pub(crate) scope: Option<String>,
}

/// What is in it, whether it was written as JSON or, as some providers do, as a form. Nothing may be said twice.
#[derive(Default, Deserialize)]
struct Said<'a> {
    access_token: Option<SecretString>,
    refresh_token: Option<SecretString>,
    token_type: Option<String>,
    /// A number, or a text that is one.
    #[serde(borrow)]
    expires_in: Option<&'a RawValue>,
    scope: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    #[serde(skip)]
    form_expires_in: Option<String>,
}

/// Tokens, or why there are none. `secrets` were sent, and must not come back in a message.
pub(crate) fn tokens(status: u16, body: &[u8], secrets: &[&SecretString]) -> Result<Answer, Error> {
    if !matches!(status, 200 | 201) {
        return Err(refusal(status, body, secrets));
    }
    let said = read(body).ok_or_else(|| wrong("it is neither JSON nor a form, as the protocol has them"))?;
    if let Some(code) = &said.error {
        return Err(refused(code, said.error_description.as_deref(), secrets));
    }
    if !said.token_type.as_ref().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err(wrong("its `token_type` is not `bearer`"));
    }
    let expires_in = life(&said)?;
    let is_token = |token: &SecretString| is_plain(token.expose_secret(), LONGEST_TOKEN);
    let access =
        said.access_token.filter(is_token).ok_or_else(|| wrong("its `access_token` is missing or no token"))?;
    if said.refresh_token.as_ref().is_some_and(|token| !is_token(token)) {
        return Err(wrong("its `refresh_token` is no token"));
    }
    let is_scope = |scope: &String| scope.len() <= LONGEST_SCOPE && !scope.chars().any(bundle::is_hidden);
    if said.scope.as_ref().is_some_and(|scope| !is_scope(scope)) {
        return Err(wrong("its `scope` is too long or has hidden characters"));
    }
    let scope = said.scope.filter(|scope| !scope.is_empty());
    Ok(Answer { access, refresh: said.refresh_token, expires_in, scope })
}

/// What an answer that is no success says, by RFC 6749 section 5.2 if it can.
pub(crate) fn refusal(status: u16, body: &[u8], secrets: &[&SecretString]) -> Error {
    match (status, read(body)) {
        (300..=399, _) => wrong("it sends us elsewhere, and we do not follow"),
        (400..=499, Some(Said { error: Some(code), error_description, .. })) => {
            refused(&code, error_description.as_deref(), secrets)
        }
        _ => wrong(&format!("its status is {status}")),
    }
}

fn wrong(why: &str) -> Error {
    Error::Answer(why.to_owned())
}

fn refused(code: &str, description: Option<&str>, secrets: &[&SecretString]) -> Error {
    let description = description.map(|text| masked(text, secrets));
    Error::Refused(Refusal::new(&masked(code, secrets), description.as_deref()))
}

fn read(body: &[u8]) -> Option<Said<'_>> {
    if body.len() > MOST_ANSWER_BYTES {
        return None;
    }
    if body.trim_ascii_start().starts_with(b"{") {
        return serde_json::from_slice(body).ok();
    }
    let mut said = Said::default();
    for (name, value) in form_urlencoded::parse(body.trim_ascii_end()) {
        let value = value.into_owned();
        let twice = match name.as_ref() {
            "access_token" => said.access_token.replace(value.into()).is_some(),
            "refresh_token" => said.refresh_token.replace(value.into()).is_some(),
            "token_type" => said.token_type.replace(value).is_some(),
            "expires_in" => said.form_expires_in.replace(value).is_some(),
            "scope" => said.scope.replace(value).is_some(),
            "error" => said.error.replace(value).is_some(),
            "error_description" => said.error_description.replace(value).is_some(),
            _ => false,
        };
        if twice {
            return None;
        }
    }
    (said.access_token.is_some() || said.error.is_some()).then_some(said)
}

fn life(said: &Said) -> Result<Option<u64>, Error> {
    let text = said.form_expires_in.as_deref().or(said.expires_in.map(RawValue::get));
    let Some(text) = text else { return Ok(None) };
    let digits = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let seconds = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match seconds {
        Some(seconds @ 1..=LONGEST_LIFE) => Ok(Some(seconds)),
        _ => Err(wrong("its `expires_in` is no number of seconds that a token could live")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(body: &str) -> Answer {
        tokens(200, body.as_bytes(), &[]).unwrap()
    }

    fn bad(status: u16, body: &str) -> Error {
        let error = tokens(status, body.as_bytes(), &[&"sent-refresh-token".into()]).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret-access") && !shown.contains("sent-refresh"), "{shown}");
        error
    }

    #[test]
    fn json_and_forms() {
        let json = good(
            r#" {"access_token":"a.b|c","token_type":"Bearer","expires_in":3600,"refresh_token":"r","scope":"x y","id_token":"z"}"#,
        );
        let form = good("access_token=a.b%7Cc&token_type=bearer&expires_in=3600&refresh_token=r&scope=x+y&more=1\n");
        for answer in [json, form] {
            assert_eq!(answer.access.expose_secret(), "a.b|c");
            assert_eq!(answer.refresh.unwrap().expose_secret(), "r");
            assert_eq!((answer.expires_in, answer.scope.as_deref()), (Some(3600), Some("x y")));
        }
        let text =
            good(r#"{"access_token":"a","token_type":"bearer","expires_in":"60","refresh_token":null,"scope":""}"#);
        assert_eq!((text.expires_in, text.refresh.is_none(), text.scope), (Some(60), true, None));
        assert_eq!(good(r#"{"access_token":"a","token_type":"bearer","expires_in":null}"#).expires_in, None);
    }

    #[test]
    fn what_is_not_exactly_an_answer_is_refused() {
        let with = |more: &str| format!(r#"{{"access_token":"secret-access","token_type":"bearer"{more}}}"#);
        for body in [
            "".to_owned(),
            "null".into(),
            "[]".into(),
            "<html>access_token=secret-access</html>".into(),
            r#"{"token_type":"bearer"}"#.into(),
            r#"{"access_token":"secret-access"}"#.into(),
            r#"{"access_token":"secret-access","token_type":"mac"}"#.into(),
            r#"{"access_token":["secret-access"],"token_type":"bearer"}"#.into(),
            r#"{"access_token":"","token_type":"bearer"}"#.into(),
            r#"{"access_token":"secret-access\r\nx: y","token_type":"bearer"}"#.into(),
            r#"{"access_token":"secret-access é","token_type":"bearer"}"#.into(),
            with(r#","access_token":"other""#),
            with(r#","refresh_token":"a b""#),
            with(r#","refresh_token":"""#),
            with(r#","scope":"a\u202eb""#),
            with(",") + "}",
            with("") + "secret-access",
            "access_token=secret-access&access_token=b&token_type=bearer".into(),
            "access_token=secret-access%0d%0a&token_type=bearer".into(),
            format!(r#"{{"access_token":"{}","token_type":"bearer"}}"#, "a".repeat(LONGEST_TOKEN + 1)),
            with("") + &" ".repeat(MOST_ANSWER_BYTES),
        ] {
            assert!(matches!(bad(200, &body), Error::Answer(_)), "{body}");
        }
        for life in [
            "-1",
            "0",
            "1.5",
            "1e3",
            "\"-5\"",
            "\"+5\"",
            "\"\"",
            "\"x\"",
            "{}",
            "true",
            "99999999999999999999999",
            "9999999999",
        ] {
            assert!(matches!(bad(200, &with(&format!(r#","expires_in":{life}"#))), Error::Answer(_)), "{life}");
        }
    }

    #[test]
    fn refusals_are_shown_without_what_was_sent() {
        let body = r#"{"error":"invalid_grant","error_description":"sent-refresh-token\u001b[2J \u202e expired"}"#;
        for status in [200, 400, 401] {
            let Error::Refused(refusal) = bad(status, body) else { panic!() };
            assert!(refusal.ends_the_grant());
            assert_eq!(refusal.to_string(), "invalid_grant (******************\u{fffd}[2J \u{fffd} expired)");
        }
        let Error::Refused(refusal) = bad(400, &format!("error=e&error_description={}", "x".repeat(9000))) else {
            panic!()
        };
        assert!(refusal.to_string().chars().count() < 300);
        assert!(bad(400, r#"{"error":"temporarily_unavailable"}"#).is_passing());
        assert!(!bad(400, r#"{"error":"invalid_client"}"#).is_passing());
        assert!(bad(500, body).is_passing() && bad(302, body).is_passing() && bad(404, "<html>").is_passing());
    }
}

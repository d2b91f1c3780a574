//! The way to a provider's token endpoint: the same door as every other.

use crate::Egress;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use egress::{BareStar, Pass, Rules, Visit};
use oauth::{BoxFuture, Http, HttpError, MOST_ANSWER_BYTES};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub struct DoorHttp {
    pub tenant: String,
    pub egress: Option<Egress>,
}

/// Requests to providers are not those of a server.
pub const DEPLOYMENT: &str = "oauth";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: u16,
    body_id: Option<u64>,
}

#[derive(Deserialize)]
struct Piece {
    done: bool,
}

impl DoorHttp {
    fn visit(&self, url: &str) -> Result<Visit, HttpError> {
        let open = self.egress.as_ref().ok_or_else(|| HttpError::new("this host has no way to the network"))?;
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let origin = format!("POST {scheme}://{}", rest.split('/').next().unwrap_or_default());
        let rules =
            Rules::parse([origin.as_str()], BareStar::Refused).map_err(|denied| HttpError::new(&denied.message))?;
        Ok(open.visit(Pass::new(&self.tenant, DEPLOYMENT, Arc::new(rules))))
    }

    async fn post(
        &self,
        url: &str,
        fields: Vec<(String, SecretString)>,
        basic: Option<(String, SecretString)>,
    ) -> Result<(u16, Vec<u8>), HttpError> {
        let refused = |denied: egress::Denied| HttpError::new(&denied.message);
        let nonsense = |_| HttpError::new("the way to the network answers nonsense");
        let visit = self.visit(url)?;
        let mut headers = vec![
            ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
            ("accept".to_owned(), "application/json".to_owned()),
        ];
        if let Some((user, password)) = basic {
            let joined = Zeroizing::new(format!("{user}:{}", password.expose_secret()));
            headers.push(("authorization".to_owned(), format!("Basic {}", STANDARD.encode(joined.as_bytes()))));
        }
        let body = form(&fields);
        let meta = Zeroizing::new(
            json!({
                "id": 1, "method": "POST", "url": url, "headers": headers,
                "redirect": "manual", "bodyLength": body.len(), "stream": false,
            })
            .to_string(),
        );
        let reply =
            visit.call("fetch", &meta, bytes::Bytes::copy_from_slice(body.as_bytes())).await.map_err(refused)?;
        let answer: Answer = serde_json::from_str(&reply.meta).map_err(nonsense)?;
        let mut text = Vec::new();
        let mut done = answer.body_id.is_none();
        while !done {
            let reply = visit.call("fetch_read", r#"{"id":1}"#, bytes::Bytes::new()).await.map_err(refused)?;
            done = serde_json::from_str::<Piece>(&reply.meta).map_err(nonsense)?.done;
            if text.len() + reply.body.len() > MOST_ANSWER_BYTES {
                return Err(HttpError::new("the provider's answer is too long"));
            }
            text.extend_from_slice(&reply.body);
        }
        Ok((answer.status, text))
    }
}

fn form(fields: &[(String, SecretString)]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    for (name, value) in fields {
        if !text.is_empty() {
            text.push('&');
        }
        text.extend(utf8_percent_encode(name, NON_ALPHANUMERIC));
        text.push('=');
        text.extend(utf8_percent_encode(value.expose_secret(), NON_ALPHANUMERIC));
    }
    text
}

impl Http for DoorHttp {
    fn post_form<'a>(
        &'a self,
        url: &'a str,
        fields: Vec<(String, SecretString)>,
        basic: Option<(String, SecretString)>,
    ) -> BoxFuture<'a, Result<(u16, Vec<u8>), HttpError>> {
        Box::pin(self.post(url, fields, basic))
    }
}

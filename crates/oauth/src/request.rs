//! What is asked of a provider's token and revocation endpoints.

use crate::answer;
use crate::error::Error;
use crate::http::{Http, HttpError};
use crate::pending::Pending;
use crate::provider::{ClientAuth, Grant, Provider};
use crate::tokens::Tokens;
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use url::Url;
use url::form_urlencoded::byte_serialize;
use zeroize::Zeroizing;

/// A provider that takes longer is as good as none.
const LONGEST_EXCHANGE: Duration = Duration::from_secs(20);

/// A request for tokens, not yet sent. It can be sent to the provider that it was made for, and once.
#[derive(Debug)]
pub struct TokenRequest {
    provider: Provider,
    fields: Vec<(String, SecretString)>,
    /// What stays as it is if the answer does not say anything else.
    refresh: Option<SecretString>,
    scope: Option<String>,
}

impl TokenRequest {
    fn new(provider: &Provider, fields: Vec<(&str, SecretString)>) -> TokenRequest {
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        TokenRequest { provider: provider.clone(), fields, refresh: None, scope: provider.scope() }
    }

    pub(crate) fn code(provider: &Provider, code: SecretString, pending: Pending) -> TokenRequest {
        let fields = vec![
            ("grant_type", "authorization_code".into()),
            ("code", code),
            ("redirect_uri", pending.redirect_uri.as_str().into()),
            ("code_verifier", pending.verifier),
        ];
        TokenRequest::new(provider, fields)
    }

    /// `None` if nothing can be made new of these tokens: another provider gave them, or there is no refresh token.
    pub fn refresh(provider: &Provider, tokens: &Tokens) -> Option<TokenRequest> {
        let refresh = tokens.refresh.clone().filter(|_| tokens.is_of(provider))?;
        let fields = vec![("grant_type", "refresh_token".into()), ("refresh_token", refresh.clone())];
        let request = TokenRequest::new(provider, fields);
        Some(TokenRequest { refresh: Some(refresh), scope: tokens.scope.clone(), ..request })
    }

    pub fn client_credentials(provider: &Provider) -> TokenRequest {
        let mut request = TokenRequest::new(provider, vec![("grant_type", "client_credentials".into())]);
        request.fields.extend(provider.scope().map(|scope| ("scope".to_owned(), scope.into())));
        let more = provider.parameters.iter().filter(|_| provider.grant == Grant::ClientCredentials);
        request.fields.extend(more.map(|(name, value)| (name.clone(), value.as_str().into())));
        request
    }

    pub async fn send(self, http: &impl Http, client_secret: Option<&SecretString>, now: u64) -> Result<Tokens, Error> {
        let secrets = secrets(&self.fields, client_secret);
        let (status, body) = post(&self.provider, &self.provider.token_url, self.fields, http, client_secret).await?;
        let got = answer::tokens(status, &body, &secrets.iter().collect::<Vec<_>>())?;
        // Client credentials are asked for again; what else they might be given could only be lost.
        let refresh = got.refresh.or(self.refresh).filter(|_| self.provider.grant == Grant::Code);
        Ok(Tokens {
            access: got.access,
            refresh,
            expires_at: got.expires_in.map(|seconds| now.saturating_add(seconds)),
            scope: got.scope.or(self.scope),
            received_at: now,
            provider: self.provider.fingerprint(),
        })
    }
}

/// Tells the provider to forget the connection (RFC 7009): its refresh token, which is the root of it, or what there is.
pub(crate) async fn revoke(
    provider: &Provider,
    revoke_url: &Url,
    tokens: &Tokens,
    http: &impl Http,
    client_secret: Option<&SecretString>,
) -> Result<(), Error> {
    let (token, hint) = match &tokens.refresh {
        Some(refresh) => (refresh.clone(), "refresh_token"),
        None => (tokens.access.clone(), "access_token"),
    };
    let fields = vec![("token".to_owned(), token), ("token_type_hint".to_owned(), hint.into())];
    let secrets = secrets(&fields, client_secret);
    let (status, body) = post(provider, revoke_url, fields, http, client_secret).await?;
    if status == 200 { Ok(()) } else { Err(answer::refusal(status, &body, &secrets.iter().collect::<Vec<_>>())) }
}

/// What must not be in any message, although the provider knows it: as it is, and as it was sent.
fn secrets(fields: &[(String, SecretString)], client_secret: Option<&SecretString>) -> Vec<SecretString> {
    const SECRET: [&str; 4] = ["code", "code_verifier", "refresh_token", "token"];
    let sent = fields.iter().filter(|(name, _)| SECRET.contains(&name.as_str())).map(|(_, value)| value);
    sent.chain(client_secret).flat_map(|secret| [secret.clone(), form_encoded(secret)]).collect()
}

async fn post(
    provider: &Provider,
    url: &Url,
    mut fields: Vec<(String, SecretString)>,
    http: &impl Http,
    client_secret: Option<&SecretString>,
) -> Result<(u16, Zeroizing<Vec<u8>>), Error> {
    let id = provider.client_id.as_str();
    let mut basic = None;
    match provider.client_auth {
        ClientAuth::Basic => {
            let password = form_encoded(client_secret.ok_or(Error::NoClientSecret)?);
            basic = Some((byte_serialize(id.as_bytes()).collect(), password));
        }
        ClientAuth::Post => {
            let secret = client_secret.ok_or(Error::NoClientSecret)?.clone();
            fields.extend([("client_id".to_owned(), id.into()), ("client_secret".to_owned(), secret)]);
        }
        ClientAuth::None => fields.push(("client_id".to_owned(), id.into())),
    }
    let exchange = http.post_form(url.as_str(), fields, basic);
    let late = |_| HttpError::new("it took too long to answer");
    let (status, body) = tokio::time::timeout(LONGEST_EXCHANGE, exchange).await.map_err(late)??;
    Ok((status, Zeroizing::new(body)))
}

/// As it is in a form, and by RFC 6749 section 2.3.1 in HTTP Basic.
fn form_encoded(secret: &SecretString) -> SecretString {
    let secret = secret.expose_secret();
    let mut text = Zeroizing::new(String::with_capacity(secret.len() * 3));
    text.extend(byte_serialize(secret.as_bytes()));
    SecretString::from(text.as_str())
}

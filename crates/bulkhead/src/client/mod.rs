//! Talks to a host: its admin API and its MCP endpoints.

mod connection;
mod error;
mod lines;
pub mod mcp;

pub use connection::{Connection, DEFAULT_URL};
pub use error::ClientError;
use error::Root;
pub use lines::Lines;

use connection::Destination;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// To reach the host at all.
const CONNECT: Duration = Duration::from_secs(10);
/// For an answer, unless the command knows better.
const ANSWER: Duration = Duration::from_secs(60);
/// No answer is larger. The host's own limits are below this.
const MOST_BYTES: usize = 64 << 20;
/// Pages of one list. The host's are of 1000 entries.
const MOST_PAGES: usize = 1000;

/// A host.
pub struct Client {
    http: reqwest::Client,
    to: Destination,
}

/// An answer's body: JSON as the host wrote it.
pub struct Answer(Vec<u8>);

impl Client {
    pub fn new(connection: &Connection) -> Result<Client, ClientError> {
        let to = connection.destination()?;
        // Refused only when there is one already, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            // An answer from elsewhere is no answer, and the key goes nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .user_agent(concat!("bulkhead/", env!("CARGO_PKG_VERSION")));
        if to.url.scheme() == "http" {
            // The system's certificates take long to read, and may be missing.
            builder = builder.tls_certs_only([]);
        }
        Ok(Client { http: builder.build().map_err(ClientError::Client)?, to })
    }

    /// The key that is shown to the host.
    pub fn token(&self) -> Option<&str> {
        self.to.authorization.as_ref()?.to_str().ok()?.strip_prefix("Bearer ")
    }

    /// Where MCP clients reach a server, seen from here.
    pub fn endpoint(&self, tenant: &str, server: &str) -> String {
        self.url(&[tenant, server, "mcp"]).to_string()
    }

    /// The host's address without its last slash, for people.
    pub fn shown(&self) -> String {
        self.to.url.as_str().trim_end_matches('/').to_owned()
    }

    /// Below the host's address. Parts are escaped, so that none of them can become two.
    fn url(&self, parts: &[&str]) -> Url {
        let mut url = self.to.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.http.request(method, url);
        match &self.to.authorization {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        }
    }

    /// An admin request: parts of the path below `/admin/v1`.
    pub fn admin(&self, method: Method, parts: &[&str], query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.url(&["admin", "v1"]);
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(parts);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.request(method, url)
    }

    pub async fn get(&self, parts: &[&str]) -> Result<Answer, ClientError> {
        self.answer(self.admin(Method::GET, parts, &[])).await
    }

    pub async fn delete(&self, parts: &[&str]) -> Result<Answer, ClientError> {
        self.answer(self.admin(Method::DELETE, parts, &[])).await
    }

    pub async fn post(&self, parts: &[&str], body: &Value) -> Result<Answer, ClientError> {
        self.answer(with_json(self.admin(Method::POST, parts, &[]), body)).await
    }

    /// Asks for something that needs no more words.
    pub async fn act(&self, parts: &[&str]) -> Result<Answer, ClientError> {
        self.answer(self.admin(Method::POST, parts, &[])).await
    }

    pub async fn put(&self, parts: &[&str], body: &Value) -> Result<Answer, ClientError> {
        self.answer(with_json(self.admin(Method::PUT, parts, &[]), body)).await
    }

    pub async fn patch(&self, parts: &[&str], body: &Value) -> Result<Answer, ClientError> {
        self.answer(with_json(self.admin(Method::PATCH, parts, &[]), body)).await
    }

    /// All pages of a list, as one: the entries of the field that holds them.
    pub async fn list(&self, parts: &[&str], field: &str) -> Result<Vec<Value>, ClientError> {
        let mut entries = Vec::new();
        let mut query = vec![("limit", "1000".to_owned())];
        for _ in 0..MOST_PAGES {
            let mut page: Value = self.read(&self.answer(self.admin(Method::GET, parts, &query)).await?)?;
            let Some(Value::Array(list)) = page.get_mut(field).map(Value::take) else {
                return Err(self.nonsense(format!("it has no list `{field}`")));
            };
            entries.extend(list);
            match page.get("next") {
                Some(Value::String(next)) => query = vec![("limit", "1000".to_owned()), ("cursor", next.clone())],
                _ => return Ok(entries),
            }
        }
        Err(self.nonsense(format!("the list of `{field}` has no end")))
    }

    /// Sends a request and takes the whole answer.
    pub async fn answer(&self, request: RequestBuilder) -> Result<Answer, ClientError> {
        self.answer_within(ANSWER, request).await
    }

    pub async fn answer_within(&self, time: Duration, request: RequestBuilder) -> Result<Answer, ClientError> {
        let response = self.send(request.timeout(time)).await?;
        Ok(Answer(self.body(response).await?))
    }

    /// Sends a request and takes the answer line by line.
    pub async fn lines(&self, request: RequestBuilder) -> Result<Lines<'_>, ClientError> {
        Ok(Lines::new(self, self.send(request).await?))
    }

    /// Sends a request. What is no success is an error, with what the host says of it.
    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = self.send_any(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = self.body(response).await?;
        Err(self.refusal(status, &body))
    }

    async fn send_any(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        request.send().await.map_err(|error| self.broken(error))
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, ClientError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(error))? {
            if bytes.len() + chunk.len() > MOST_BYTES {
                return Err(self.nonsense(format!("it has more than {} MiB", MOST_BYTES >> 20)));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    pub fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, ClientError> {
        serde_json::from_slice(&answer.0).map_err(|error| self.nonsense(error.to_string()))
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> ClientError {
        #[derive(Deserialize)]
        struct Body {
            error: Said,
        }
        #[derive(Deserialize)]
        struct Said {
            code: String,
            message: String,
            #[serde(default)]
            hint: Option<String>,
        }
        let Ok(Body { error: Said { code, message, hint } }) = serde_json::from_slice(body) else {
            return self.nonsense(format!("status {status}"));
        };
        ClientError::status(status, code, message, self.key_hint(status).or(hint))
    }

    /// What to do about a key that is missing.
    fn key_hint(&self, status: StatusCode) -> Option<String> {
        let missing = status == StatusCode::UNAUTHORIZED && self.to.authorization.is_none();
        missing.then(|| "set `BULKHEAD_KEY`, or name the key's file with `--key-file`".to_owned())
    }

    fn nonsense(&self, what: impl Into<String>) -> ClientError {
        ClientError::Nonsense { url: self.shown(), what: what.into() }
    }

    fn broken(&self, error: reqwest::Error) -> ClientError {
        let (url, source) = (self.shown(), Root::of(&error));
        match error.is_timeout() {
            _ if error.is_connect() => ClientError::Unreachable { url, source },
            true => ClientError::Timeout { url },
            false => ClientError::Broken { url, source },
        }
    }
}

impl Answer {
    /// As it came, for `--json`.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim_end().to_owned()
    }
}

fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.to_string())
}

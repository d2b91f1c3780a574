//! Reads bodies and queries, strictly and within bounds.

use super::error::Error;
use crate::held::{Held, Hold, Unread};
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// For everything but the source of a server.
pub const SMALL: usize = 64 << 10;

/// What is larger than this is parsed where it keeps nobody waiting.
const QUICK: usize = 256 << 10;

/// A body that takes longer than this to arrive is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose bytes a body is counted with; every request of a known caller has one.
#[derive(Clone)]
pub struct Charge {
    pub held: Arc<Held>,
    pub holder: String,
}

/// Takes the body of a request as JSON. Call it once the caller is known to be allowed what it asks for: before that,
/// nothing of the body is read.
pub async fn json<T: DeserializeOwned + Send + 'static>(request: Request, most: usize) -> Result<T, Error> {
    check_content_type(request.headers())?;
    let (bytes, _hold) = read(request, most).await?;
    if bytes.len() <= QUICK {
        return parse(&bytes);
    }
    let parsed = tokio::task::spawn_blocking(move || parse(&bytes)).await;
    parsed.map_err(|error| Error::internal(&error))?
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Error> {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "the body must be JSON, with `content-type: application/json`";
    Err(Error::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message))
}

async fn read(request: Request, most: usize) -> Result<(Bytes, Option<Hold>), Error> {
    let (parts, body) = request.into_parts();
    let Some(Charge { held, holder }) = parts.extensions.get::<Charge>() else {
        return Err(Error::internal(&"a body is read before its sender is known"));
    };
    held.read(holder, &parts.headers, body, most, PATIENCE).await.map_err(|unread| match unread {
        Unread::TooLarge => {
            let most = if most >= 1 << 20 { format!("{} MiB", most >> 20) } else { format!("{} KiB", most >> 10) };
            Error::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("the body is larger than {most}"))
        }
        Unread::BrokeOff => Error::new(StatusCode::BAD_REQUEST, "bad_body", "the body ended before it was complete"),
        Unread::Late => {
            let message = format!("the body did not arrive within {} s", PATIENCE.as_secs());
            Error::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
        }
        Unread::Full(full) => Error::busy(format!("{full}, and this one was cut to make room; try again")),
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    // Otherwise a list of the fields' values would do as well.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        let valid = serde_json::from_slice::<IgnoredAny>(bytes);
        return Err(
            valid.map_or_else(|error| refuse(&error, None), |_| Error::bad_body("the body must be a JSON object"))
        );
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        refuse(error.inner(), (path != ".").then_some(&path))
    })?;
    reader.end().map_err(|error| refuse(&error, None))?;
    Ok(value)
}

/// For fields that are objects: a list of the fields' values is not taken for one.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Object<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(fields))
        }
    }

    deserializer.deserialize_map(Object(PhantomData))
}

fn refuse(error: &serde_json::Error, path: Option<&String>) -> Error {
    if !error.is_data() {
        let message = format!("the body is not JSON: {}", shorten(&error.to_string()));
        return Error::new(StatusCode::BAD_REQUEST, "bad_json", message);
    }
    let message = shorten(&error.to_string());
    match path {
        Some(path) => Error::bad_body(format!("`{}`: {message}", shorten(path))),
        None => Error::bad_body(message),
    }
}

/// Messages quote what the caller sent, which may be megabytes; its beginning is enough.
fn shorten(text: &str) -> String {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Takes the query of a request; parameters that the route does not have are refused.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> axum::extract::FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Query<T>, Error> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Query(value)),
            Err(rejection) => {
                let cause =
                    std::error::Error::source(&rejection).map_or_else(|| rejection.to_string(), |e| e.to_string());
                Err(Error::bad_query(format!("the query is not what this route takes: {}", shorten(&cause))))
            }
        }
    }
}

/// Takes the names in the path. A path that is not text names nothing.
pub struct Names<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> axum::extract::FromRequestParts<S> for Names<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Names<T>, Error> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(names)| Names(names)).map_err(|_| Error::not_found())
    }
}

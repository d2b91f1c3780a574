//! Errors of HTTP itself, before a protocol has a say: `{"error": {"code", "message", "hint"}}`.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

pub fn response(status: StatusCode, code: &str, message: &str, hint: Option<&str>) -> Response {
    let body = json!({ "error": { "code": code, "message": message, "hint": hint } });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

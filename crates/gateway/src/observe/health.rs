//! Whether the host can do its work, check by check.

use axum::response::{IntoResponse, Response};
use http::StatusCode;

/// Each check by name, with what is wrong.
pub struct Report {
    pub checks: Vec<(String, Result<(), String>)>,
}

pub fn response(report: &Report) -> Response {
    let ready = report.checks.iter().all(|(_, outcome)| outcome.is_ok());
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let checks: Vec<_> = report
        .checks
        .iter()
        .map(|(name, outcome)| serde_json::json!({ "name": name, "ok": outcome.is_ok(), "detail": outcome.as_ref().err() }))
        .collect();
    (status, axum::Json(serde_json::json!({ "ready": ready, "checks": checks }))).into_response()
}

//! What a refused request reads.

use super::schema;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use registry::{RegistryError, Role};
use serde::Serialize;
use utoipa::ToSchema;

/// A refusal: a status, a stable code for scripts, a sentence for people, and what they could do about it.
#[derive(Debug)]
pub struct Error {
    status: StatusCode,
    code: String,
    message: String,
    hint: Option<String>,
    /// Seconds.
    retry_after: Option<u32>,
    changes: Option<serde_json::Value>,
}

/// The body of every refusal.
#[derive(Serialize, ToSchema)]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

#[derive(Serialize, ToSchema)]
pub struct ErrorDetail {
    /// Stable, for scripts: `not_found`, `forbidden`, `bad_name` …
    pub code: String,
    /// For people.
    pub message: String,
    /// What could be done about it.
    pub hint: Option<String>,
    /// What differs, when that is why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<Vec<schema::Change>>)]
    pub changes: Option<serde_json::Value>,
}

impl Error {
    pub fn new(status: StatusCode, code: impl Into<String>, message: impl Into<String>) -> Error {
        Error { status, code: code.into(), message: message.into(), hint: None, retry_after: None, changes: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    pub fn retry_after(mut self, seconds: u32) -> Error {
        self.retry_after = Some(seconds);
        self
    }

    pub fn changes(mut self, changes: &[bundle::Change]) -> Error {
        self.changes = Some(super::deployments::changes(changes));
        self
    }

    /// One and the same for what does not exist and what is not the caller's to see, so that nobody learns which it is.
    pub fn not_found() -> Error {
        Error::new(StatusCode::NOT_FOUND, "not_found", "nothing with this name is here")
            .hint("check the names, and that the key belongs to this tenant and may use this server")
    }

    pub fn no_route() -> Error {
        Error::new(StatusCode::NOT_FOUND, "not_found", "there is no such route")
            .hint("`/admin/v1/openapi.json` lists the routes")
    }

    pub fn method_not_allowed() -> Error {
        Error::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this route has no such method")
            .hint("the `allow` header names the methods it has")
    }

    pub fn needs_role(needed: Role, has: Role) -> Error {
        Error::forbidden(format!("this needs a key with the role `{needed}`, and this one has `{has}`"))
    }

    pub fn forbidden(message: impl Into<String>) -> Error {
        Error::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// The body is JSON but not what the route takes.
    pub fn bad_body(message: impl Into<String>) -> Error {
        Error::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_body", message)
    }

    pub fn bad_query(message: impl Into<String>) -> Error {
        Error::new(StatusCode::BAD_REQUEST, "bad_query", message)
    }

    pub fn busy(message: impl Into<String>) -> Error {
        Error::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).retry_after(1)
    }

    /// Something that is the host's fault. The cause goes to the host's log and to nobody else.
    pub fn internal(cause: &dyn std::fmt::Display) -> Error {
        tracing::error!(%cause, "an admin request failed");
        Error::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the host failed; its log says why")
    }
}

impl From<RegistryError> for Error {
    fn from(error: RegistryError) -> Error {
        let code = error.code();
        let status = match code {
            // Who asks for what is not theirs and who asks for what is not there must read the same.
            "not_found" => return Error::not_found(),
            "exists" | "conflict" | "stale_proposal" | "quota" | "replayed" | "no_master_key" | "wrong_master_key" => {
                StatusCode::CONFLICT
            }
            "forbidden" => StatusCode::FORBIDDEN,
            "bad_name" | "bad_value" => StatusCode::UNPROCESSABLE_ENTITY,
            "disk_full" | "read_only" => StatusCode::SERVICE_UNAVAILABLE,
            _ => return Error::internal(&error),
        };
        let mut refusal = Error::new(status, code, error.to_string());
        refusal.hint = error.hint();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            tracing::error!(cause = ?error, "the registry cannot write");
            refusal.retry_after = Some(30);
        }
        refusal
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            error: ErrorDetail { code: self.code, message: self.message, hint: self.hint, changes: self.changes },
        };
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

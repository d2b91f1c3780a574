//! The protocol's errors.

use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A JSON-RPC error and the HTTP status it travels with.
#[derive(Debug, Clone)]
pub struct RpcError {
    pub status: StatusCode,
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
    /// Seconds until it is worth trying again.
    pub retry_after: Option<u64>,
}

impl RpcError {
    pub fn new(status: StatusCode, code: i64, message: impl Into<String>) -> RpcError {
        RpcError { status, code, message: message.into(), data: None, retry_after: None }
    }

    pub fn with_data(mut self, data: Value) -> RpcError {
        self.data = Some(data);
        self
    }

    pub fn parse(message: impl Into<String>) -> RpcError {
        RpcError::new(StatusCode::BAD_REQUEST, -32700, message)
    }

    pub fn invalid_request(message: impl Into<String>) -> RpcError {
        RpcError::new(StatusCode::BAD_REQUEST, -32600, message)
    }

    pub fn method_not_found(method: &str) -> RpcError {
        let shown: String = method.chars().take(80).collect();
        RpcError::new(StatusCode::NOT_FOUND, -32601, format!("there is no method `{shown}`"))
    }

    /// Understood, and wrong: the request itself was fine HTTP.
    pub fn invalid_params(message: impl Into<String>) -> RpcError {
        RpcError::new(StatusCode::OK, -32602, message)
    }

    pub fn bad_meta(message: impl Into<String>) -> RpcError {
        RpcError::new(StatusCode::BAD_REQUEST, -32602, message)
    }

    pub fn header_mismatch(message: impl Into<String>) -> RpcError {
        RpcError::new(StatusCode::BAD_REQUEST, -32020, message)
    }

    pub fn missing_capability(capability: &str) -> RpcError {
        RpcError::new(StatusCode::BAD_REQUEST, -32021, format!("the client did not declare `{capability}`"))
            .with_data(json!({ "requiredCapabilities": { capability: {} } }))
    }

    pub fn unsupported_version(requested: &str) -> RpcError {
        let shown: String = requested.chars().take(40).collect();
        RpcError::new(StatusCode::BAD_REQUEST, -32022, format!("protocol version `{shown}` is not supported"))
            .with_data(json!({ "supported": super::version::ALL, "requested": shown }))
    }

    pub fn too_large(most: u64) -> RpcError {
        RpcError::new(StatusCode::PAYLOAD_TOO_LARGE, -32600, format!("the body has more than {most} bytes"))
    }

    pub fn internal(message: impl Into<String>) -> RpcError {
        RpcError::new(StatusCode::INTERNAL_SERVER_ERROR, -32603, message)
    }

    pub fn unavailable(message: impl Into<String>) -> RpcError {
        let error = RpcError::new(StatusCode::SERVICE_UNAVAILABLE, -32603, message);
        RpcError { retry_after: Some(1), ..error }
    }

    /// The whole message, as bytes to send.
    pub fn to_message(&self, id: Option<&RawValue>) -> Vec<u8> {
        #[derive(Serialize)]
        struct Wire<'a> {
            jsonrpc: &'static str,
            id: Option<&'a RawValue>,
            error: Body<'a>,
        }
        #[derive(Serialize)]
        struct Body<'a> {
            code: i64,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<&'a Value>,
        }
        let body = Body { code: self.code, message: &self.message, data: self.data.as_ref() };
        super::to_json(&Wire { jsonrpc: "2.0", id, error: body })
    }
}

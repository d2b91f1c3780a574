//! The headers that repeat the body, so that proxies can route without reading it. They must agree.

use super::envelope::Text;
use super::error::RpcError;
use super::modern::Params;
use super::surface::Tool;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::Value;
use std::borrow::Cow;

/// The one value of a header; twice is once too often, because two readers may pick different ones.
pub fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(RpcError::header_mismatch(format!("header `{name}` is there twice")));
    }
    let text = std::str::from_utf8(first.as_bytes())
        .map_err(|_| RpcError::header_mismatch(format!("header `{name}` is not text")))?;
    Ok(Some(text.trim_matches([' ', '\t'])))
}

/// What cannot stand in a header as it is comes as `=?base64?…?=`.
fn decoded<'a>(name: &str, value: &'a str) -> Result<Cow<'a, str>, RpcError> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(Cow::Borrowed(value));
    };
    let text = STANDARD.decode(inner).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Cow::Owned).ok_or_else(|| RpcError::header_mismatch(format!("header `{name}` is not Base64 of text")))
}

/// `Mcp-Method`.
pub fn check_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    match single(headers, "mcp-method")? {
        None => Err(RpcError::header_mismatch("header `Mcp-Method` is missing")),
        Some(value) if value != method => {
            Err(RpcError::header_mismatch("header `Mcp-Method` does not agree with the body's `method`"))
        }
        Some(_) => Ok(()),
    }
}

/// `Mcp-Name`, for methods that have a name or an address.
pub fn check_name(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<(), RpcError> {
    let expected = match method {
        "tools/call" | "prompts/get" => &params.name,
        "resources/read" => &params.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => &params.task_id,
        _ => &None,
    };
    let Some(Text(expected)) = expected else { return Ok(()) };
    let given =
        single(headers, "mcp-name")?.ok_or_else(|| RpcError::header_mismatch("header `Mcp-Name` is missing"))?;
    if decoded("Mcp-Name", given)? != *expected {
        return Err(RpcError::header_mismatch("header `Mcp-Name` does not agree with the body"));
    }
    Ok(())
}

/// `Mcp-Param-*` for arguments whose schema asks for it.
pub fn check_arguments(headers: &HeaderMap, tool: &Tool, arguments: &Value) -> Result<(), RpcError> {
    for (path, header) in &tool.headers {
        let name = format!("mcp-param-{}", header.to_ascii_lowercase());
        let value = path.iter().try_fold(arguments, |value, key| value.get(key));
        let expected = match value {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Bool(flag)) => Some(flag.to_string()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let given = single(headers, &name)?.map(|value| decoded(&name, value)).transpose()?;
        if given.as_deref() != expected.as_deref() {
            return Err(RpcError::header_mismatch(format!("header `{name}` does not agree with `{}`", path.join("."))));
        }
    }
    Ok(())
}

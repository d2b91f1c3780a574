//! What a server answered a call, as callers of every wall get it.

use super::message::{INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError};
use super::{Params, raw};
use bytes::Bytes;
use sandbox::{Code, Failure, Operation, Request};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A call as a request of the protocol.
pub(crate) fn question(request: &Request) -> Result<(&'static str, Params), Failure> {
    let input: Box<RawValue> = serde_json::from_slice(&request.input)
        .map_err(|error| Failure::new(Code::BadArguments, format!("the arguments are not JSON: {error}")))?;
    let name = raw(&request.name);
    Ok(match request.operation {
        Operation::Tool => ("tools/call", vec![("name", name), ("arguments", input)]),
        Operation::Prompt => ("prompts/get", vec![("name", name), ("arguments", input)]),
        Operation::Resource => ("resources/read", vec![("uri", name)]),
        Operation::Complete => ("completion/complete", completion(&input)?),
    })
}

fn completion(input: &RawValue) -> Result<Params, Failure> {
    #[derive(Deserialize)]
    struct Wire {
        r#ref: Box<RawValue>,
        argument: Box<RawValue>,
        context: Option<Box<RawValue>>,
    }
    let Wire { r#ref, argument, context } = serde_json::from_str(input.get())
        .map_err(|error| Failure::new(Code::BadArguments, format!("the completion cannot be read: {error}")))?;
    let context = context.map(|context| ("context", context));
    Ok([("ref", r#ref), ("argument", argument)].into_iter().chain(context).collect())
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Picked {
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Box<RawValue>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<BTreeMap<String, Box<RawValue>>>,
    #[serde(skip_serializing)]
    completion: Option<Box<RawValue>>,
}

/// Of a result, what the operation may give. Who the server is its host says.
pub(crate) fn picked(operation: Operation, result: &RawValue) -> Result<Bytes, Failure> {
    let given: Picked = serde_json::from_str(result.get())
        .map_err(|error| Failure::new(Code::ToolError, format!("the server's result cannot be read: {error}")))?;
    let meta = given.meta.map(|mut meta| {
        meta.remove(SERVER_INFO);
        meta
    });
    let meta = meta.filter(|meta| !meta.is_empty());
    let shown = match operation {
        Operation::Tool => Picked {
            content: given.content,
            structured_content: given.structured_content,
            is_error: given.is_error,
            meta,
            ..Picked::default()
        },
        Operation::Resource => Picked { contents: given.contents, meta, ..Picked::default() },
        Operation::Prompt => {
            Picked { description: given.description, messages: given.messages, meta, ..Picked::default() }
        }
        Operation::Complete => {
            let completion = given
                .completion
                .ok_or_else(|| Failure::new(Code::ToolError, "the server's answer has no `completion`"))?;
            return Ok(Bytes::from(String::from(completion.get())));
        }
    };
    Ok(Bytes::from(String::from(raw(&shown).get())))
}

/// What an error of the server's means for a caller.
pub(crate) fn failure(operation: Operation, error: RpcError) -> Failure {
    // The names of tools and prompts were looked up before; addresses only the server knows.
    let looked_up = matches!(operation, Operation::Tool | Operation::Prompt);
    let code = match error.code {
        INVALID_PARAMS | METHOD_NOT_FOUND | RESOURCE_NOT_FOUND if !looked_up => Code::UnknownTool,
        INVALID_PARAMS => Code::BadArguments,
        _ => Code::ToolError,
    };
    Failure::new(code, error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(operation: Operation, text: &str) -> String {
        let result = RawValue::from_string(text.to_owned()).unwrap();
        String::from_utf8(picked(operation, &result).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn results_keep_what_their_operation_gives() {
        let whole = r#"{"resultType":"complete","content":[1, 2],"contents":[],"messages":[],"isError":false,
            "structuredContent":{"b":1},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"me"}},"completion":{"values":[]}}"#;
        assert_eq!(pick(Operation::Tool, whole), r#"{"content":[1, 2],"structuredContent":{"b":1},"isError":false}"#);
        assert_eq!(pick(Operation::Resource, whole), r#"{"contents":[]}"#);
        assert_eq!(pick(Operation::Prompt, whole), r#"{"messages":[]}"#);
        assert_eq!(pick(Operation::Complete, whole), r#"{"values":[]}"#);
        assert_eq!(pick(Operation::Tool, r#"{"content":[],"_meta":{"a":1}}"#), r#"{"content":[],"_meta":{"a":1}}"#);
    }

    #[test]
    fn errors_of_the_protocol_have_their_own_codes() {
        let code = |operation, code| failure(operation, RpcError { code, message: String::new() }).code;
        assert_eq!(code(Operation::Tool, INVALID_PARAMS), Code::BadArguments);
        assert_eq!(code(Operation::Tool, METHOD_NOT_FOUND), Code::ToolError);
        assert_eq!(code(Operation::Resource, RESOURCE_NOT_FOUND), Code::UnknownTool);
        assert_eq!(code(Operation::Resource, INVALID_PARAMS), Code::UnknownTool);
        assert_eq!(code(Operation::Complete, -32000), Code::ToolError);
    }
}

//! One call as a conversation: a request, the questions of the server, the answer.

use crate::driver::{Peer, answers};
use crate::peer::message::{RpcError, shortened};
use crate::peer::result::{failure, picked};
use crate::peer::{Params, raw};
use bytes::Bytes;
use sandbox::{Code, Failure, HostRefusal, Operation};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// How often a server may end its request with questions.
const MOST_ROUNDS: u32 = 16;
const LONGEST_KEY: usize = 120;

/// A result with which a server of the newest revision asks for input.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired {
    result_type: Option<String>,
    input_requests: Option<BTreeMap<String, Question>>,
    request_state: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Question {
    method: String,
    params: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Asks<'a> {
    asks: Vec<Ask<'a>>,
}

#[derive(Serialize)]
struct Ask<'a> {
    key: String,
    method: &'a str,
    params: Box<RawValue>,
}

/// Makes the request of a call, and makes it again with answers for as long as the server has questions.
pub(crate) async fn converse(
    peer: &Peer,
    call: u64,
    operation: Operation,
    method: &'static str,
    params: Params,
) -> Result<Bytes, Failure> {
    let refused = |error: RpcError| failure(operation, error);
    let mut result = peer.request(Some(call), method, params.clone()).await.map_err(refused)?;
    for round in 1.. {
        let Some(wanted) = input_required(&result) else { break };
        if round > MOST_ROUNDS {
            let message = format!("the server has asked {MOST_ROUNDS} times, and still wants to");
            return Err(Failure::new(Code::ToolError, message));
        }
        let mut again = params.clone();
        if let Some(questions) = &wanted.input_requests {
            again.push(("inputResponses", ask(peer, call, questions, round).await?));
        }
        again.extend(wanted.request_state.map(|state| ("requestState", state)));
        result = peer.request(Some(call), method, again).await.map_err(refused)?;
    }
    picked(operation, &result)
}

fn input_required(result: &RawValue) -> Option<InputRequired> {
    let read: InputRequired = serde_json::from_str(result.get()).ok()?;
    (read.result_type.as_deref() == Some("input_required")).then_some(read)
}

/// Asks the client all of it at once. The same questions have the same keys whenever the call is made again.
async fn ask(
    peer: &Peer,
    call: u64,
    questions: &BTreeMap<String, Question>,
    round: u32,
) -> Result<Box<RawValue>, Failure> {
    let mut asks = Vec::new();
    for (index, (name, question)) in questions.iter().enumerate() {
        if !matches!(question.method.as_str(), "elicitation/create" | "sampling/createMessage" | "roots/list") {
            let shown = shortened(question.method.clone(), 80);
            let message = format!("the server asks for `{shown}`, which nobody can be asked");
            return Err(Failure::new(Code::ToolError, message));
        }
        let params = question.params.clone().unwrap_or_else(|| raw(&serde_json::json!({})));
        asks.push(Ask { key: key(name, round, index), method: &question.method, params });
    }
    let refused = |HostRefusal { message, .. }: HostRefusal| Failure::new(Code::ToolError, message);
    let reply = peer.ask(call, raw(&Asks { asks }).get().to_owned()).await.map_err(refused)?;
    let mut given = answers(&reply.meta).map_err(refused)?;
    let mut responses = BTreeMap::new();
    for (index, name) in questions.keys().enumerate() {
        let answer = given.remove(&key(name, round, index));
        let missing = || Failure::new(Code::ToolError, "the client did not answer all that the server asked");
        responses.insert(name, answer.ok_or_else(missing)?);
    }
    Ok(raw(&responses))
}

fn key(name: &str, round: u32, index: usize) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte);
    let name = if (1..=LONGEST_KEY).contains(&name.len()) && name.bytes().all(plain) {
        name.to_owned()
    } else {
        format!("input-{}", index + 1)
    };
    if round == 1 { name } else { format!("{round}/{name}") }
}

//! What a server says beside its answers: questions, notices, log, noise.

use super::{Driver, Settled};
use crate::peer::message::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, shortened};
use crate::verdict::Cause;
use bytes::Bytes;
use sandbox::{Code, Host, HostCall, HostRefusal, HostReply, LogLine};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What may be said while no call is in flight, and while a server initialises.
pub(super) const IDLE_BYTES: u64 = 256 << 10;
/// What comes back of the first with each look at an idle program.
pub(super) const IDLE_REFILL: u64 = 4 << 10;
pub(super) const INIT_BYTES: u64 = 1 << 20;

/// What one line costs beside its text, so that empty lines are not free.
const LINE_COST: u64 = 32;

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const LONGEST_ADDRESS: usize = 4096;

/// Whose a message is that does not say so.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    Call(u64),
    /// One of several strangers; this one pays.
    Unknown(u64),
    Nobody,
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<serde_json::Value>,
}

impl Driver {
    pub(super) fn owner(&self) -> Owner {
        let (Some((first, oldest)), Some((newest, _))) = (self.calls.first_key_value(), self.calls.last_key_value())
        else {
            return Owner::Nobody;
        };
        let one_session = oldest.session.is_some() && self.calls.values().all(|call| call.session == oldest.session);
        if self.calls.len() == 1 || one_session { Owner::Call(*newest) } else { Owner::Unknown(*first) }
    }

    /// Counts what was said. Gives the call whose it is.
    fn charge(&mut self, owner: Owner, bytes: usize) -> Result<Option<u64>, Cause> {
        let cost = bytes as u64 + LINE_COST;
        let (Owner::Call(number) | Owner::Unknown(number)) = owner else {
            let left = self.idle_left.checked_sub(cost);
            self.idle_left = left.ok_or_else(|| Cause::Violation("it talks without end to nobody".to_owned()))?;
            return Ok(None);
        };
        let Some(call) = self.calls.get_mut(&number) else { return Ok(None) };
        call.usage.log_bytes += bytes as u64;
        match call.log_left.checked_sub(cost) {
            Some(left) => call.log_left = left,
            None if call.has_host() => return Err(Cause::Spoke { call: number, code: Code::LogLimit }),
            None => return Err(Cause::Violation("it talks without end instead of initialising".to_owned())),
        }
        Ok(matches!(owner, Owner::Call(_)).then_some(number))
    }

    fn log(&mut self, level: &str, text: String) -> Result<(), Cause> {
        let whose = self.charge(self.owner(), text.len() + level.len())?;
        let host = whose.and_then(|number| self.calls.get(&number)).and_then(|call| call.host.clone());
        if let Some(host) = host {
            host.log(LogLine { level: level.to_owned(), text });
        }
        Ok(())
    }

    /// A line on standard output that is none of the protocol: many a server prints there.
    pub(super) fn noise(&mut self, line: &[u8]) -> Result<(), Cause> {
        let text = String::from_utf8_lossy(line).into_owned();
        self.tail.push(&text);
        self.log("info", text)
    }

    /// A line on standard error. While nobody calls, what is too much is left in the pipe.
    pub(super) fn mutter(&mut self, line: &[u8]) -> Result<(), Cause> {
        let text = String::from_utf8_lossy(line).into_owned();
        self.tail.push(&text);
        if self.calls.is_empty() {
            self.idle_left = self.idle_left.saturating_sub(text.len() as u64 + LINE_COST);
            return Ok(());
        }
        self.log("info", text)
    }

    // --- notices ---------------------------------------------------------------------------------------------------

    pub(super) fn told(&mut self, method: &str, params: Option<Box<RawValue>>) -> Result<(), Cause> {
        let params = params.as_deref().map_or("{}", RawValue::get);
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/message" => self.logged(params),
            "notifications/tools/list_changed" => self.changed("tools"),
            "notifications/prompts/list_changed" => self.changed("prompts"),
            "notifications/resources/list_changed" => self.changed("resources"),
            "notifications/resources/updated" => self.updated(params),
            // Whatever else: it is heard, and costs.
            _ => self.charge(self.owner(), method.len() + params.len()).map(drop),
        }
    }

    fn progressed(&mut self, params: &str) -> Result<(), Cause> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            progress_token: u64,
            progress: f64,
            total: Option<f64>,
            message: Option<String>,
        }
        let wire = serde_json::from_str::<Wire>(params).ok();
        let call = wire.as_ref().and_then(|wire| self.pending.get(&wire.progress_token)?.call);
        let owner = call.map_or_else(|| self.owner(), Owner::Call);
        let text = wire.filter(|_| call.is_some()).map(|wire| {
            let mut shown = json!({ "progress": wire.progress });
            if let Some(total) = wire.total {
                shown["total"] = json!(total);
            }
            if let Some(message) = wire.message {
                shown["message"] = json!(message);
            }
            shown.to_string()
        });
        self.charge(owner, text.as_ref().map_or(params.len(), String::len))?;
        let host = call.and_then(|call| self.calls.get(&call)).and_then(|call| call.host.clone());
        if let (Some(host), Some(text)) = (host, text) {
            host.progress(text);
        }
        Ok(())
    }

    fn logged(&mut self, params: &str) -> Result<(), Cause> {
        #[derive(Deserialize)]
        struct Wire {
            level: Option<String>,
            logger: Option<String>,
            #[serde(default)]
            data: Option<Box<RawValue>>,
        }
        let Ok(wire) = serde_json::from_str::<Wire>(params) else {
            return self.charge(self.owner(), params.len()).map(drop);
        };
        let data = wire.data.as_deref().map_or("null", RawValue::get);
        let text = serde_json::from_str::<String>(data).unwrap_or_else(|_| data.to_owned());
        let text = wire.logger.map_or_else(|| text.clone(), |logger| format!("{logger}: {text}"));
        let level = LEVELS.into_iter().find(|level| wire.level.as_deref() == Some(level)).unwrap_or("info");
        self.log(level, text)
    }

    fn changed(&mut self, what: &'static str) -> Result<(), Cause> {
        self.charge(self.owner(), what.len())?;
        if self.relisting.want(what) {
            self.relist();
        }
        Ok(())
    }

    fn updated(&mut self, params: &str) -> Result<(), Cause> {
        #[derive(Deserialize)]
        struct Wire {
            uri: String,
        }
        let whose = self.charge(self.owner(), params.len())?;
        let wire = serde_json::from_str::<Wire>(params).ok().filter(|wire| wire.uri.len() <= LONGEST_ADDRESS);
        match (whose, wire) {
            (Some(call), Some(Wire { uri })) => self.tell(call, json!({ "what": "resource", "uri": uri }).to_string()),
            _ => Ok(()),
        }
    }

    /// Tells the client of a call of a change. A host that tells nobody is no error of the server's.
    pub(super) fn tell(&mut self, call: u64, meta: String) -> Result<(), Cause> {
        let Some(host) = self.spend_host_call(call)? else { return Ok(()) };
        self.relisting.tell();
        self.settled.push(Box::pin(async move {
            let _ = host.call(HostCall { operation: "notify".to_owned(), meta, body: Bytes::new() }).await;
            Settled::Told
        }));
        Ok(())
    }

    // --- questions -------------------------------------------------------------------------------------------------

    pub(super) fn asked(
        &mut self,
        id: Box<RawValue>,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<(), Cause> {
        let known = matches!(method, "elicitation/create" | "sampling/createMessage" | "roots/list");
        let has_host = |number: u64| self.calls.get(&number).is_some_and(super::Call::has_host);
        let asks = match self.owner() {
            Owner::Call(number) if known && has_host(number) => Some(number),
            owner => {
                // Refused in a few bytes, which cost; what is asked is counted as a host call instead.
                self.charge(owner, method.len() + id.get().len())?;
                None
            }
        };
        if method == "ping" {
            self.respond(&id, Ok("{}"));
            return Ok(());
        }
        let Some(number) = asks else {
            let shown = shortened(method.to_owned(), 80);
            self.respond(&id, Err((METHOD_NOT_FOUND, format!("nobody can be asked `{shown}` here"), None)));
            return Ok(());
        };
        let params = params.map_or_else(|| "{}".to_owned(), |params| params.get().to_owned());
        if !params.starts_with('{') {
            self.respond(&id, Err((INVALID_PARAMS, "what to ask must be an object".to_owned(), None)));
            return Ok(());
        }
        let Some(host) = self.spend_host_call(number)? else { return Ok(()) };
        let key = self.calls.get_mut(&number).map(|call| {
            call.questions += 1;
            format!("input-{}", call.questions)
        });
        let key = key.unwrap_or_default();
        let meta = format!(r#"{{"asks":[{{"key":"{key}","method":"{method}","params":{params}}}]}}"#);
        let held = meta.len();
        self.pending_bytes += held;
        self.settled.push(Box::pin(async move {
            let reply = host.call(HostCall { operation: "ask".to_owned(), meta, body: Bytes::new() }).await;
            Settled::Asked { id, held, reply, key }
        }));
        Ok(())
    }

    /// The questions of a server that ends its request with them.
    pub(super) fn ask_round(
        &mut self,
        call: u64,
        meta: String,
        answer: oneshot::Sender<Result<HostReply, HostRefusal>>,
    ) -> Result<(), Cause> {
        let Some(host) = self.spend_host_call(call)? else { return Ok(()) };
        let held = meta.len();
        self.pending_bytes += held;
        self.settled.push(Box::pin(async move {
            let reply = host.call(HostCall { operation: "ask".to_owned(), meta, body: Bytes::new() }).await;
            Settled::Round { answer, held, reply }
        }));
        Ok(())
    }

    /// Counts a host call; none for a call that is over.
    fn spend_host_call(&mut self, number: u64) -> Result<Option<Arc<dyn Host>>, Cause> {
        let Some(call) = self.calls.get_mut(&number) else { return Ok(None) };
        call.usage.host_calls += 1;
        if call.usage.host_calls > call.limits.host_calls {
            return Err(Cause::Spoke { call: number, code: Code::HostCallLimit });
        }
        Ok(call.host.clone())
    }

    pub(super) fn settle(&mut self, settled: Settled) -> Result<(), Cause> {
        match settled {
            Settled::Told => self.client_told(),
            Settled::Asked { id, held, reply, key } => {
                self.pending_bytes = self.pending_bytes.saturating_sub(held);
                match reply.and_then(|reply| answer_to(&key, &reply.meta)) {
                    Ok(answer) => self.respond(&id, Ok(answer.get())),
                    Err(HostRefusal { code, message }) => {
                        let number = if code == "client_cannot" { METHOD_NOT_FOUND } else { INTERNAL_ERROR };
                        self.respond(&id, Err((number, message, Some(code))));
                    }
                }
            }
            Settled::Round { answer, held, reply } => {
                self.pending_bytes = self.pending_bytes.saturating_sub(held);
                // Its caller may be gone by now.
                let _ = answer.send(reply);
            }
            Settled::Listed(listed) => return self.listed(listed),
        }
        Ok(())
    }

    fn respond(&mut self, id: &RawValue, outcome: Result<&str, (i64, String, Option<String>)>) {
        let mut response = Response { jsonrpc: "2.0", id, result: None, error: None };
        match outcome {
            Ok(result) => {
                let Ok(result) = serde_json::from_str::<&RawValue>(result) else { return };
                response.result = Some(result);
                self.send(&response);
            }
            Err((code, message, refusal)) => {
                let mut error = json!({ "code": code, "message": message });
                if let Some(refusal) = refusal {
                    error["data"] = json!({ "code": refusal });
                }
                response.error = Some(error);
                self.send(&response);
            }
        }
    }
}

/// The answer to one question, in the reply to `ask`.
pub(crate) fn answer_to(key: &str, meta: &str) -> Result<Box<RawValue>, HostRefusal> {
    answers(meta)?.remove(key).ok_or_else(|| HostRefusal {
        code: "no_answer".to_owned(),
        message: format!("the client did not answer `{key}`"),
    })
}

pub(crate) fn answers(meta: &str) -> Result<HashMap<String, Box<RawValue>>, HostRefusal> {
    #[derive(Deserialize)]
    struct Wire {
        answers: HashMap<String, Box<RawValue>>,
    }
    let read = serde_json::from_str::<Wire>(meta).map(|wire| wire.answers);
    read.map_err(|_| HostRefusal { code: "no_answer".to_owned(), message: "the answer cannot be read".to_owned() })
}

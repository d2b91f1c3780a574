//! 2026-07-28: every request stands for itself.

use super::call::{self, Done, End, Job, Method};
use super::desk::{Desk, Place, Prepared};
use super::envelope::{self, Request, Text};
use super::error::RpcError;
use super::hub::{News, What};
use super::line::{Asked, Asking, Client, Level, Line, Rounds};
use super::offer::Offer;
use super::state::{self, MOST_ROUNDS};
use super::surface::TaskSupport;
use super::version::{Era, MODERN};
use super::{answer, finish, headers, reply, result, sse, tasks};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use sandbox::Code;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc};

/// What each request says of its client.
#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", default)]
    info: Value,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<Level>,
    #[serde(rename = "progressToken")]
    progress_token: Option<Box<RawValue>>,
}

/// What is read of every request's `params`, whatever it asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub uri: Option<Text<'a>>,
    #[serde(borrow)]
    pub task_id: Option<Text<'a>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    /// Present and null is not the same as absent.
    #[serde(borrow, default, deserialize_with = "envelope::present")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

/// The version a request says it is written in, wherever it stands in the body.
pub fn declared_version(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct WithMeta<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    /// Nothing else is read: nobody has been admitted yet.
    #[derive(Deserialize)]
    struct JustVersion {
        #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
        version: Option<String>,
    }
    let params: WithMeta<'_> = serde_json::from_str(params?.get()).ok()?;
    serde_json::from_str::<JustVersion>(params.meta?.get()).ok()?.version
}

/// Bytes of `_meta`: what is read of it is kept while the call runs.
const MOST_META: usize = 64 << 10;

/// Serves one request.
pub async fn serve(desk: Desk, request: Request<'_>, headers: &HeaderMap, streams: bool) -> Response {
    let id = request.id;
    match respond(desk, &request, headers, streams).await {
        Ok(response) => response,
        Err(error) => answer(id, Err(error)),
    }
}

async fn respond(desk: Desk, request: &Request<'_>, headers: &HeaderMap, streams: bool) -> Result<Response, RpcError> {
    headers::check_method(headers, &request.method)?;
    let params: Params<'_> = desk.params(request.params).await?;
    headers::check_name(headers, &request.method, &params)?;
    let meta = read_meta(&params, headers)?;
    let admission = desk.app.admit(&desk.tenant, &desk.caller)?;
    let method = match &*request.method {
        "tools/call" => Method::Tool,
        "resources/read" => Method::Resource,
        "prompts/get" => Method::Prompt,
        "completion/complete" => Method::Complete,
        "server/discover" => return Ok(answer(request.id, desk.discover().await)),
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            return Ok(answer(request.id, desk.list(Era::Modern, &request.method, request.params).await));
        }
        "subscriptions/listen" => return listen(desk, request),
        "tasks/get" | "tasks/update" | "tasks/cancel" => return Ok(answer(request.id, task(&desk, request, &meta))),
        other => return Err(RpcError::method_not_found(other)),
    };
    let prepared = desk.prepare(Era::Modern, method, request.params, headers, None, admission).await?;
    match prepared {
        Prepared::Answer(result) => Ok(answer(request.id, Ok(result))),
        Prepared::Run(job) => {
            let support = job.offer.surface.tool(&job.name).filter(|_| method == Method::Tool).map(|tool| tool.task);
            match support.unwrap_or_default() {
                TaskSupport::Required if !meta.knows_tasks() => Err(tasks::not_declared()),
                TaskSupport::Optional | TaskSupport::Required if meta.knows_tasks() => {
                    // Boxed, as all calls would have to carry its size.
                    Box::pin(run_as_task(desk, request.id, &params, meta, *job)).await
                }
                _ => run(desk, request.id, &params, meta, *job, streams).await,
            }
        }
    }
}

impl Meta {
    fn knows_tasks(&self) -> bool {
        let extensions = self.capabilities.as_ref().and_then(|capabilities| capabilities.get("extensions"));
        extensions.and_then(|extensions| extensions.get(tasks::EXTENSION)).is_some_and(Value::is_object)
    }
}

/// A call that may go on after its request: if it takes its time, the client is given a task instead.
async fn run_as_task(
    desk: Desk,
    id: &RawValue,
    params: &Params<'_>,
    meta: Meta,
    job: Job,
) -> Result<Response, RpcError> {
    let (round, rounds) = rounds(&desk, &job, params)?;
    let answers = rounds.given.clone();
    let bound = Bound::of(&job);
    if !desk.app.tasks.has_room(&desk.tenant.name) {
        return Err(RpcError::unavailable("this tenant has too many tasks; they end with time"));
    }
    let owner = &desk.caller.subject;
    let task = desk.app.tasks.candidate(desk.app.task_id(), &desk.tenant.name, desk.server_name(), owner, rounds);
    let (out, _messages) = mpsc::unbounded_channel();
    let line = Line {
        out,
        progress_token: None,
        log_level: None,
        client: Client { info: meta.info, capabilities: meta.capabilities.unwrap_or_default(), version: MODERN },
        asking: Asking::Task(task.clone()),
    };
    let (offer, name) = (job.offer.clone(), job.name.clone());
    let mut running = tokio::spawn({
        let (app, task, offer) = (desk.app.clone(), task.clone(), offer.clone());
        async move {
            let done = call::run(&app, job, line).await;
            task.finish(task_outcome(&offer, &name, &done));
            (done, name)
        }
    });
    // Whoever goes away before it is a task ends it.
    let guard = AbortOnDrop(running.abort_handle());
    let ended = tokio::time::timeout(tasks::PATIENCE, &mut running).await;
    match ended {
        Ok(Ok((done, name))) => {
            let result = match done.end {
                End::NeedsInput(asks) => needs_input(&desk, round, answers, &bound, asks),
                End::NeedsCapability(capability) => Err(RpcError::missing_capability(capability)),
                End::Value(_) | End::Failed(_) => finish(Era::Modern, &offer, Method::Tool, &name, &done),
            };
            Ok(answer(id, result))
        }
        Ok(Err(_)) => Err(RpcError::internal("the call was lost")),
        Err(_) => {
            std::mem::forget(guard);
            task.begin(running.abort_handle());
            desk.app.tasks.keep(&task);
            Ok(answer(id, Ok(task.created())))
        }
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A tool that fails has completed; a task fails when its call could not be carried through.
fn task_outcome(offer: &Offer, name: &str, done: &Done) -> Result<Box<RawValue>, Value> {
    let failed = |error: &RpcError| json!({ "code": error.code, "message": error.message, "data": error.data });
    match &done.end {
        End::Failed(failure) if failure.code != Code::ToolError => Err(failed(&result::failure(failure))),
        End::Value(_) | End::Failed(_) => {
            let result = finish(Era::Modern, offer, Method::Tool, name, done).map_err(|error| failed(&error))?;
            let text = String::from_utf8(result).map_err(|error| failed(&RpcError::internal(error.to_string())))?;
            RawValue::from_string(text).map_err(|error| failed(&RpcError::internal(error.to_string())))
        }
        End::NeedsCapability(capability) => Err(failed(&RpcError::missing_capability(capability))),
        End::NeedsInput(_) => Err(failed(&RpcError::internal("the call was suspended"))),
    }
}

/// `tasks/get`, `tasks/update` and `tasks/cancel`.
fn task(desk: &Desk, request: &Request<'_>, meta: &Meta) -> Result<Vec<u8>, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        task_id: String,
        #[serde(default)]
        input_responses: serde_json::Map<String, Value>,
    }
    if !meta.knows_tasks() {
        return Err(tasks::not_declared());
    }
    let params: Params = envelope::params(request.params)?;
    let task = desk.app.tasks.get(&params.task_id, &desk.tenant.name, desk.server_name(), &desk.caller.subject)?;
    match &*request.method {
        "tasks/get" => return Ok(task.detailed()),
        "tasks/update" => task.answer(params.input_responses)?,
        _ => task.cancel(),
    }
    Ok(br#"{"resultType":"complete"}"#.to_vec())
}

fn read_meta(params: &Params<'_>, headers: &HeaderMap) -> Result<Meta, RpcError> {
    let missing = |what: &str| RpcError::bad_meta(format!("`params._meta` has no `{what}`"));
    let raw = params.meta.ok_or_else(|| RpcError::bad_meta("`params` has no `_meta`"))?;
    if raw.get().len() > MOST_META {
        let length = raw.get().len();
        return Err(RpcError::bad_meta(format!("`params._meta` has {length} bytes, {MOST_META} are allowed")));
    }
    let meta: Meta =
        serde_json::from_str(raw.get()).map_err(|error| RpcError::bad_meta(format!("bad `params._meta`: {error}")))?;
    let version = meta.version.as_deref().ok_or_else(|| missing("io.modelcontextprotocol/protocolVersion"))?;
    match headers::single(headers, "mcp-protocol-version")? {
        None => return Err(RpcError::header_mismatch("header `MCP-Protocol-Version` is missing")),
        Some(header) if header != version => {
            return Err(RpcError::header_mismatch("header `MCP-Protocol-Version` does not agree with the body"));
        }
        Some(_) => {}
    }
    if version != MODERN {
        return Err(RpcError::unsupported_version(version));
    }
    if !meta.capabilities.as_ref().is_some_and(Value::is_object) {
        return Err(missing("io.modelcontextprotocol/clientCapabilities"));
    }
    Ok(meta)
}

/// What the state of a call is bound to. Most calls have none, so it is worked out when it is needed.
struct Bound {
    /// An answer to a question of one deployment is none to another's.
    deployment: String,
    method: Method,
    name: String,
    input: Bytes,
}

impl Bound {
    fn of(job: &Job) -> Bound {
        let deployment = job.offer.record.id.clone();
        Bound { deployment, method: job.method, name: job.name.clone(), input: job.input.clone() }
    }

    fn to(&self, desk: &Desk) -> String {
        desk.bound_to(&self.deployment, self.method, &self.name, &self.input)
    }
}

/// Answers of this round and of those before.
fn rounds(desk: &Desk, job: &Job, params: &Params<'_>) -> Result<(u32, Rounds), RpcError> {
    // Only what can be asked back is read for answers.
    if job.method == Method::Complete {
        return Ok((0, Rounds::default()));
    }
    let (mut round, mut given) = (0, BTreeMap::new());
    if let Some(sealed) = params.request_state {
        let sealed: String = envelope::params(Some(sealed))?;
        let state = desk.app.sealer.open(&sealed, &Bound::of(job).to(desk)).map_err(RpcError::invalid_params)?;
        (round, given) = (state.round, state.answers);
    }
    if let Some(responses) = params.input_responses {
        // More could not be carried on to the next round.
        if responses.get().len() > state::MOST_BYTES {
            let message = format!("`inputResponses` has more than {} bytes", state::MOST_BYTES);
            return Err(RpcError::invalid_params(message));
        }
        let Value::Object(responses) = envelope::params(Some(responses))? else {
            return Err(RpcError::invalid_params("`inputResponses` must be an object"));
        };
        for (key, response) in responses {
            if !response.is_object() {
                return Err(RpcError::invalid_params("each of `inputResponses` must be an object"));
            }
            let raw =
                serde_json::value::to_raw_value(&response).map_err(|error| RpcError::internal(error.to_string()))?;
            given.insert(key, raw);
        }
    }
    Ok((round, Rounds::new(given)))
}

async fn run(
    desk: Desk,
    id: &RawValue,
    params: &Params<'_>,
    meta: Meta,
    job: Job,
    streams: bool,
) -> Result<Response, RpcError> {
    let (round, rounds) = rounds(&desk, &job, params)?;
    let bound = Bound::of(&job);
    let (out, mut messages) = mpsc::unbounded_channel();
    let line = Line {
        out,
        progress_token: meta.progress_token.filter(|token| streams && envelope::is_id(token)),
        log_level: meta.log_level.filter(|_| streams),
        client: Client { info: meta.info, capabilities: meta.capabilities.unwrap_or_default(), version: MODERN },
        asking: Asking::Rounds(rounds),
    };
    let (id, here) = (id.to_owned(), desk.clone());
    let offer = job.offer.clone();
    let call = async move {
        let answers = match &line.asking {
            Asking::Rounds(rounds) => rounds.given.clone(),
            _ => BTreeMap::new(),
        };
        let done = call::run(&desk.app, job, line).await;
        let result = match done.end {
            End::NeedsInput(asks) => needs_input(&desk, round, answers, &bound, asks),
            End::NeedsCapability(capability) => Err(RpcError::missing_capability(capability)),
            End::Value(_) | End::Failed(_) => finish(Era::Modern, &offer, bound.method, &bound.name, &done),
        };
        (id, result)
    };
    // A boxed future, because it moves into the response when the call has something to say before it is done.
    let mut call = Box::pin(call);
    tokio::select! {
        biased;
        message = messages.recv() => Ok(stream_of(&here, call, messages, message)),
        (id, result) = &mut call => {
            // What was said just before the end is still worth a stream.
            match messages.try_recv() {
                Ok(first) => Ok(sse::response(said(first, messages, reply(&id, result)))),
                Err(_) => Ok(answer(&id, result)),
            }
        }
    }
}

/// Everything is known already.
fn said(
    first: Vec<u8>,
    mut rest: mpsc::UnboundedReceiver<Vec<u8>>,
    last: Vec<u8>,
) -> impl futures_util::Stream<Item = Bytes> + Send {
    let mut events = vec![sse::event(None, &first)];
    while let Ok(message) = rest.try_recv() {
        events.push(sse::event(None, &message));
    }
    events.push(sse::event(None, &last));
    stream::iter(events)
}

type Outcome = (Box<RawValue>, Result<Vec<u8>, RpcError>);

/// Messages as they come, and at last the answer. Dropping the response drops the call.
fn stream_of<F: Future<Output = Outcome> + Send + Unpin + 'static>(
    desk: &Desk,
    call: F,
    messages: mpsc::UnboundedReceiver<Vec<u8>>,
    first: Option<Vec<u8>>,
) -> Response {
    enum Step<F> {
        Running(F, mpsc::UnboundedReceiver<Vec<u8>>, Option<Vec<u8>>),
        Ended(Vec<Bytes>),
    }
    let events = stream::unfold(Step::Running(call, messages, first), |step| async move {
        match step {
            Step::Running(call, messages, Some(first)) => {
                Some((sse::event(None, &first), Step::Running(call, messages, None)))
            }
            Step::Running(mut call, mut messages, None) => {
                tokio::select! {
                    biased;
                    Some(message) = messages.recv() => Some((sse::event(None, &message), Step::Running(call, messages, None))),
                    (id, result) = &mut call => {
                        let mut events = vec![sse::event(None, &reply(&id, result))];
                        while let Ok(message) = messages.try_recv() {
                            events.insert(events.len() - 1, sse::event(None, &message));
                        }
                        events.reverse();
                        let first = events.pop()?;
                        Some((first, Step::Ended(events)))
                    }
                    () = tokio::time::sleep(sse::HEARTBEAT) => Some((sse::heartbeat(), Step::Running(call, messages, None))),
                }
            }
            Step::Ended(mut events) => {
                let next = events.pop()?;
                Some((next, Step::Ended(events)))
            }
        }
    });
    sse::response(desk.while_valid(events))
}

fn needs_input(
    desk: &Desk,
    round: u32,
    answers: BTreeMap<String, Box<RawValue>>,
    bound: &Bound,
    asks: Vec<Asked>,
) -> Result<Vec<u8>, RpcError> {
    if round >= MOST_ROUNDS {
        return Err(RpcError::internal(format!("the server asked in more than {MOST_ROUNDS} rounds")));
    }
    let state = desk.app.sealer.seal(round + 1, answers, &bound.to(desk));
    let state = state.ok_or_else(|| RpcError::internal("the answers so far are too large to carry on"))?;
    let requests: serde_json::Map<String, Value> =
        asks.into_iter().map(|ask| (ask.key, json!({ "method": ask.method, "params": ask.params }))).collect();
    Ok(super::to_json(&json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })))
}

/// Which news a listener wants.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: HashSet<String>,
}

/// Kept as long as the stream, so all of it together is short, too.
const MOST_SUBSCRIPTIONS: usize = 256;
const MOST_SUBSCRIBED_BYTES: usize = 64 << 10;

impl Filter {
    fn wants(&self, what: &What) -> bool {
        match what {
            What::Tools => self.tools_list_changed,
            What::Prompts => self.prompts_list_changed,
            What::Resources => self.resources_list_changed,
            What::Resource(uri) => self.resource_subscriptions.contains(uri),
        }
    }

    /// What the listener is told it will get.
    fn accepted(&self) -> Value {
        let mut accepted = serde_json::Map::new();
        for (key, wanted) in [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ] {
            if wanted {
                accepted.insert(key.to_owned(), true.into());
            }
        }
        if !self.resource_subscriptions.is_empty() {
            accepted.insert("resourceSubscriptions".to_owned(), json!(self.resource_subscriptions));
        }
        accepted.into()
    }
}

/// `subscriptions/listen`: a stream that lasts until one side has enough.
fn listen(desk: Desk, request: &Request<'_>) -> Result<Response, RpcError> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        notifications: Filter,
    }
    let Params { notifications: filter } = envelope::params(request.params)?;
    if filter.resource_subscriptions.len() > MOST_SUBSCRIPTIONS {
        return Err(RpcError::invalid_params(format!("at most {MOST_SUBSCRIPTIONS} resources can be listened to")));
    }
    if filter.resource_subscriptions.iter().map(String::len).sum::<usize>() > MOST_SUBSCRIBED_BYTES {
        let message = format!("the addresses of resources to listen to have more than {MOST_SUBSCRIBED_BYTES} bytes");
        return Err(RpcError::invalid_params(message));
    }
    let place = desk.app.streams.open(&desk.tenant.name)?;
    let news = desk.app.hub.listen(&desk.tenant.name);
    let id = request.id.to_owned();
    let tagged = |mut params: serde_json::Map<String, Value>, method: &str| {
        params.insert("_meta".to_owned(), json!({ "io.modelcontextprotocol/subscriptionId": &id }));
        sse::event(None, &super::to_json(&json!({ "jsonrpc": "2.0", "method": method, "params": params })))
    };
    let accepted = serde_json::Map::from_iter([("notifications".to_owned(), filter.accepted())]);
    let acknowledged = tagged(accepted, "notifications/subscriptions/acknowledged");
    let first = Some(acknowledged);
    let state = Listening { news, filter, id: id.clone(), desk, revision: 0, first, over: false, _place: place };
    Ok(sse::response(stream::unfold(state, Listening::next)))
}

struct Listening {
    news: broadcast::Receiver<Arc<News>>,
    filter: Filter,
    id: Box<RawValue>,
    desk: Desk,
    /// When the caller's key was last looked for.
    revision: u64,
    first: Option<Bytes>,
    over: bool,
    _place: crate::streams::StreamPlace,
}

impl Listening {
    async fn next(mut self) -> Option<(Bytes, Listening)> {
        if let Some(first) = self.first.take() {
            return Some((first, self));
        }
        if self.over {
            return None;
        }
        loop {
            let news = tokio::select! {
                news = self.news.recv() => news,
                () = tokio::time::sleep(sse::HEARTBEAT) => {
                    // A key that was taken away hears nothing more.
                    if !self.still_valid() {
                        return None;
                    }
                    return Some((sse::heartbeat(), self));
                }
                () = self.desk.app.closed() => Err(broadcast::error::RecvError::Closed),
            };
            match news {
                Ok(news) if self.concerns(&news) => {
                    let message = self.message(&news.what);
                    return Some((message, self));
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => {
                    self.over = true;
                    let result = json!({
                        "resultType": "complete",
                        "_meta": { "io.modelcontextprotocol/subscriptionId": self.id },
                    });
                    return Some((sse::event(None, &reply(&self.id, Ok(super::to_json(&result)))), self));
                }
            }
        }
    }

    fn still_valid(&mut self) -> bool {
        self.desk.app.still_valid_since(&self.desk.caller, &mut self.revision)
    }

    fn concerns(&mut self, news: &News) -> bool {
        let here = match &self.desk.place {
            Place::Server(server) => server.name == news.server,
            Place::Everything => news.what == What::Tools && self.desk.caller.may_use_server(&news.server),
        };
        let open = news.what == What::Tools || self.desk.caller.may_use_rest(&news.server);
        here && open && self.filter.wants(&news.what) && self.still_valid()
    }

    fn message(&self, what: &What) -> Bytes {
        let mut params = serde_json::Map::new();
        if let What::Resource(uri) = what {
            params.insert("uri".to_owned(), uri.as_str().into());
        }
        params.insert("_meta".to_owned(), json!({ "io.modelcontextprotocol/subscriptionId": self.id }));
        sse::event(None, &super::to_json(&json!({ "jsonrpc": "2.0", "method": what.method(), "params": params })))
    }
}

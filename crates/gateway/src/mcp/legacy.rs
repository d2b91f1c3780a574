//! 2024-11-05 to 2025-11-25: initialize, sessions, streams that can be resumed.

use super::call::{self, End, Job, Method};
use super::desk::{Desk, Place, Prepared, unknown_resource};
use super::envelope::{self, Message, Request};
use super::error::RpcError;
use super::hub::{News, What};
use super::line::{Asking, Client, Level, Line};
use super::session::{MOST_CLIENT_BYTES, Session};
use super::version::{Era, Legacy};
use super::{Streams, accepted, answer, finish, headers, reply, sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot};

pub const SESSION: &str = "mcp-session-id";
const MOST_BATCHED: usize = 50;

/// Who is speaking: a session, or a request that stands alone.
#[derive(Clone)]
struct Speaker {
    session: Option<Arc<Session>>,
    version: Legacy,
}

impl Speaker {
    fn era(&self) -> Era {
        Era::Legacy(self.version)
    }
}

/// A message that is no batch.
pub async fn serve(desk: Desk, message: Message<'_>, headers: &HeaderMap, streams: Streams) -> Response {
    let id = match &message {
        Message::Request(request) => Some(request.id),
        _ => None,
    };
    let outcome = match message {
        Message::Request(request) if request.method == "initialize" => initialize(&desk, &request).await,
        message => match speaker(&desk, headers) {
            Ok(speaker) => one(desk, &speaker, message, headers, streams).await,
            Err(refused) => Err(refused),
        },
    };
    outcome.unwrap_or_else(|error| super::refuse(id, error))
}

/// Several messages in one body, as revisions up to 2025-03-26 have them.
pub async fn serve_batch(desk: Desk, body: &[u8], headers: &HeaderMap) -> Response {
    let batch = async {
        let speaker = speaker(&desk, headers)?;
        if speaker.version > Legacy::V2025_03_26 {
            return Err(RpcError::invalid_request("this revision of the protocol has no batches"));
        }
        let messages: Vec<&RawValue> =
            serde_json::from_slice(body).map_err(|error| RpcError::parse(error.to_string()))?;
        if messages.is_empty() || messages.len() > MOST_BATCHED {
            return Err(RpcError::invalid_request(format!("a batch has 1 to {MOST_BATCHED} messages")));
        }
        let mut answers: Vec<Box<RawValue>> = Vec::new();
        for (number, message) in messages.into_iter().enumerate() {
            // The first was counted when the body came.
            if let Err(refused) = if number == 0 { Ok(()) } else { desk.app.hear(&desk.tenant, &desk.caller) } {
                answers.extend(RawValue::from_string(String::from_utf8_lossy(&refused.to_message(None)).into_owned()));
                continue;
            }
            if let Some(answer) = batched(&desk, &speaker, message, headers).await {
                answers.extend(String::from_utf8(answer).ok().and_then(|text| RawValue::from_string(text).ok()));
            }
        }
        Ok(answers)
    };
    match batch.await {
        Ok(answers) if answers.is_empty() => accepted(),
        Ok(answers) => super::json_response(StatusCode::OK, super::to_json(&answers)),
        Err(error) => super::refuse(None, error),
    }
}

async fn batched(desk: &Desk, speaker: &Speaker, message: &RawValue, headers: &HeaderMap) -> Option<Vec<u8>> {
    let message = match envelope::parse(message.get().as_bytes()) {
        Ok(message) => message,
        Err(error) => return Some(error.to_message(None)),
    };
    let Message::Request(request) = &message else {
        // Has no answer.
        let _ = one(desk.clone(), speaker, message, headers, Streams::Refused).await;
        return None;
    };
    let result = match simple(desk, speaker, request).await {
        Some(result) => result,
        None => match prepare(desk, speaker, request, headers).await {
            Ok(Prepared::Answer(result)) => Ok(result),
            Ok(Prepared::Run(job)) => {
                let (line, _messages) = line(speaker, request, false);
                run(desk, *job, line, speaker.era()).await
            }
            Err(error) => Err(error),
        },
    };
    Some(reply(request.id, result))
}

fn speaker(desk: &Desk, headers: &HeaderMap) -> Result<Speaker, RpcError> {
    let declared = headers::single(headers, "mcp-protocol-version")?;
    if let Some(version) = declared
        && Legacy::parse(version).is_none()
    {
        return Err(RpcError::unsupported_version(version));
    }
    match headers::single(headers, SESSION)? {
        None => {
            let version = declared.and_then(Legacy::parse).unwrap_or(Legacy::ASSUMED);
            Ok(Speaker { session: None, version })
        }
        Some(id) => {
            let session = session(desk, id).ok_or_else(|| {
                RpcError::new(StatusCode::NOT_FOUND, -32001, "the session has ended or never was; initialize anew")
            })?;
            Ok(Speaker { version: session.version, session: Some(session) })
        }
    }
}

fn session(desk: &Desk, id: &str) -> Option<Arc<Session>> {
    desk.app.sessions.get(id, &desk.tenant.name, desk.server_name(), &desk.caller.subject)
}

async fn initialize(desk: &Desk, request: &Request<'_>) -> Result<Response, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        protocol_version: String,
        #[serde(borrow)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow)]
        client_info: Option<&'a RawValue>,
    }
    let params: Params<'_> = envelope::params(request.params)?;
    // Read when it is known to be short.
    let too_large = || RpcError::invalid_params("`capabilities` and `clientInfo` are too large");
    let read = |part: Option<&RawValue>| match part {
        Some(part) if part.get().len() > 2 * MOST_CLIENT_BYTES => Err(too_large()),
        Some(part) => envelope::params::<Value>(Some(part)),
        None => Ok(Value::Null),
    };
    let (info, capabilities) = (read(params.client_info)?, read(params.capabilities)?);
    let _admission = desk.app.admit(&desk.tenant, &desk.caller)?;
    let version = Legacy::parse(&params.protocol_version).unwrap_or(Legacy::NEWEST);
    let mut result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": desk.capabilities(Era::Legacy(version)).await?,
        "serverInfo": desk.server_info().await?,
    });
    if let Some(instructions) = desk.instructions().await? {
        result["instructions"] = instructions.into();
    }
    let client = Client { info, capabilities, version: version.as_str() };
    let begun = desk.app.sessions.begin(&desk.tenant.name, desk.server_name(), &desk.caller.subject, version, client);
    let session = begun.map_err(|_| too_large())?;
    let mut response = answer(request.id, Ok(super::to_json(&result)));
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION, id);
    }
    Ok(response)
}

async fn one(
    desk: Desk,
    speaker: &Speaker,
    message: Message<'_>,
    headers: &HeaderMap,
    streams: Streams,
) -> Result<Response, RpcError> {
    match message {
        Message::Notification { method, params } => {
            if method == "notifications/cancelled" {
                cancel(speaker, params);
            }
            Ok(accepted())
        }
        Message::Response { id, outcome } => {
            let answer = outcome.map(ToOwned::to_owned).map_err(client_error);
            match &speaker.session {
                Some(session) if session.answer(id, answer) => Ok(accepted()),
                _ => Err(RpcError::invalid_request("nobody asked for this answer")),
            }
        }
        Message::Request(request) => {
            if let Some(result) = simple(&desk, speaker, &request).await {
                return Ok(answer(request.id, result));
            }
            match prepare(&desk, speaker, &request, headers).await? {
                Prepared::Answer(result) => Ok(answer(request.id, Ok(result))),
                Prepared::Run(job) => start(desk, speaker, &request, *job, streams).await,
            }
        }
    }
}

fn client_error(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Wire {
        message: String,
    }
    let said =
        serde_json::from_str::<Wire>(error.get()).map_or_else(|_| "the client refused".to_owned(), |e| e.message);
    said.chars().take(1000).collect()
}

fn cancel(speaker: &Speaker, params: Option<&RawValue>) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    if let (Some(session), Ok(params)) = (&speaker.session, envelope::params::<Params<'_>>(params)) {
        session.cancel(params.request_id);
    }
}

/// Requests that need no compartment. None for all others.
async fn simple(desk: &Desk, speaker: &Speaker, request: &Request<'_>) -> Option<Result<Vec<u8>, RpcError>> {
    if matches!(&*request.method, "tools/call" | "resources/read" | "prompts/get" | "completion/complete") {
        return None;
    }
    let _admission = match desk.app.admit(&desk.tenant, &desk.caller) {
        Ok(admission) => admission,
        Err(error) => return Some(Err(error)),
    };
    Some(match &*request.method {
        "ping" => Ok(b"{}".to_vec()),
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            desk.list(speaker.era(), &request.method, request.params).await
        }
        "logging/setLevel" => set_level(speaker, request.params),
        "resources/subscribe" => subscription(desk, speaker, request.params, true).await,
        "resources/unsubscribe" => subscription(desk, speaker, request.params, false).await,
        other => Err(RpcError { status: StatusCode::OK, ..RpcError::method_not_found(other) }),
    })
}

fn needs_session() -> RpcError {
    RpcError::invalid_request("this needs a session: send `initialize` first, then its `Mcp-Session-Id`")
}

fn set_level(speaker: &Speaker, params: Option<&RawValue>) -> Result<Vec<u8>, RpcError> {
    #[derive(Deserialize)]
    struct Params {
        level: Level,
    }
    let params: Params = envelope::params(params)?;
    speaker.session.as_ref().ok_or_else(needs_session)?.set_log_level(params.level);
    Ok(b"{}".to_vec())
}

async fn subscription(
    desk: &Desk,
    speaker: &Speaker,
    params: Option<&RawValue>,
    on: bool,
) -> Result<Vec<u8>, RpcError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        uri: Cow<'a, str>,
    }
    let params: Params<'_> = envelope::params(params)?;
    let session = speaker.session.as_ref().ok_or_else(needs_session)?;
    let offer = desk.rest().await?;
    if !on {
        session.unsubscribe(&params.uri);
    } else if !offer.is_some_and(|offer| offer.surface.has_resource(&params.uri)) || params.uri.len() > 4096 {
        return Err(unknown_resource(speaker.era(), &params.uri));
    } else if !session.subscribe(&params.uri) {
        return Err(RpcError::invalid_params("this session has too many subscriptions"));
    }
    Ok(b"{}".to_vec())
}

async fn prepare(
    desk: &Desk,
    speaker: &Speaker,
    request: &Request<'_>,
    headers: &HeaderMap,
) -> Result<Prepared, RpcError> {
    let method = match &*request.method {
        "tools/call" => Method::Tool,
        "resources/read" => Method::Resource,
        "prompts/get" => Method::Prompt,
        _ => Method::Complete,
    };
    let admission = desk.app.admit(&desk.tenant, &desk.caller)?;
    let session = speaker.session.as_ref().map(|session| session.id.clone());
    desk.prepare(speaker.era(), method, request.params, headers, session, admission).await
}

type Messages = mpsc::UnboundedReceiver<Vec<u8>>;

fn line(speaker: &Speaker, request: &Request<'_>, streams: bool) -> (Line, Messages) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Meta {
        #[serde(rename = "progressToken")]
        progress_token: Option<Box<RawValue>>,
    }
    let meta = envelope::params::<Params>(request.params).unwrap_or_default().meta;
    let (out, messages) = mpsc::unbounded_channel();
    let client = match &speaker.session {
        Some(session) => session.client.clone(),
        None => Client { info: Value::Null, capabilities: json!({}), version: speaker.version.as_str() },
    };
    let line = Line {
        out,
        progress_token: meta.progress_token.filter(|token| streams && envelope::is_id(token)),
        log_level: speaker.session.as_ref().filter(|_| streams).map(|session| session.log_level()),
        client,
        asking: match &speaker.session {
            Some(session) if streams => Asking::Session(session.clone()),
            _ => Asking::Nobody,
        },
    };
    (line, messages)
}

async fn run(desk: &Desk, job: Job, line: Line, era: Era) -> Result<Vec<u8>, RpcError> {
    let (offer, method, name) = (job.offer.clone(), job.method, job.name.clone());
    let done = call::run(&desk.app, job, line).await;
    match done.end {
        End::Value(_) | End::Failed(_) => finish(era, &offer, method, &name, &done),
        // Questions go out by another way here.
        End::NeedsInput(_) | End::NeedsCapability(_) => Err(RpcError::internal("the call cannot be continued")),
    }
}

/// How a call's answer begins.
enum First {
    Answer(Vec<u8>),
    Stream(mpsc::Receiver<Bytes>),
}

/// Runs a call. In a session it goes on when the client loses its connection, because it may come back.
async fn start(
    desk: Desk,
    speaker: &Speaker,
    request: &Request<'_>,
    job: Job,
    streams: Streams,
) -> Result<Response, RpcError> {
    let (line, messages) = line(speaker, request, streams != Streams::Refused);
    let era = speaker.era();
    let Some(session) = speaker.session.clone() else {
        return Ok(answer(request.id, run(&desk, job, line, era).await));
    };
    // Whoever wants streams first knows that one may end before the answer, and comes back for it.
    let polls = streams == Streams::Preferred && session.version >= Legacy::V2025_11_25;
    let (tell, told) = oneshot::channel();
    let (id, here) = (request.id.to_owned(), desk.clone());
    let task = tokio::spawn({
        let session = session.clone();
        async move {
            let call = async { reply(&id, run(&desk, job, line, era).await) };
            pump(&session, call, messages, tell, polls).await;
        }
    });
    if !session.started(request.id, task.abort_handle()) {
        task.abort();
        return Err(RpcError::invalid_request("a request with this id is running in this session"));
    }
    match told.await {
        Ok(First::Answer(message)) => Ok(super::json_response(StatusCode::OK, message)),
        Ok(First::Stream(events)) => Ok(stream_response(&here, Vec::new(), Some(events))),
        // Cancelled: nobody waits for an answer, and a client that is on its way out would stumble over one.
        Err(_) => Ok(accepted()),
    }
}

/// A call that has said nothing for this long lets go of a client that can come back.
const SILENCE: Duration = Duration::from_secs(1);

/// The stream of a call, if it has one: it ends with the call, also where that is cancelled.
struct Opened<'a> {
    session: &'a Session,
    stream: Option<u64>,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.stream {
            self.session.close_stream(number);
        }
    }
}

/// Sends what a call says, and its answer: as one JSON object if it said nothing before, else as a stream.
async fn pump(
    session: &Session,
    call: impl Future<Output = Vec<u8>>,
    mut messages: Messages,
    tell: oneshot::Sender<First>,
    polls: bool,
) {
    let mut call = std::pin::pin!(call);
    let mut silence = std::pin::pin!(tokio::time::sleep(SILENCE));
    let mut opened = Opened { session, stream: None };
    let stream = &mut opened.stream;
    let mut tell = Some(tell);
    let mut open = |stream: &mut Option<u64>| {
        *stream.get_or_insert_with(|| {
            let (number, events) = session.open_stream();
            // A client that is gone already may come back for the events.
            let _ = tell.take().map(|tell| tell.send(First::Stream(events)));
            number
        })
    };
    let last = loop {
        tokio::select! {
            biased;
            Some(message) = messages.recv() => session.emit(open(stream), &message),
            last = &mut call => break last,
            () = &mut silence, if polls && stream.is_none() => session.detach(open(stream)),
        }
    };
    while let Ok(message) = messages.try_recv() {
        session.emit(open(stream), &message);
    }
    match *stream {
        Some(number) => session.emit(number, &last),
        None => {
            let _ = tell.take().map(|tell| tell.send(First::Answer(last)));
        }
    }
}

fn stream_response(desk: &Desk, missed: Vec<Bytes>, rest: Option<mpsc::Receiver<Bytes>>) -> Response {
    let rest = stream::unfold(rest, |rest| async move {
        let mut rest = rest?;
        tokio::select! {
            event = rest.recv() => Some((event?, Some(rest))),
            () = tokio::time::sleep(sse::HEARTBEAT) => Some((sse::heartbeat(), Some(rest))),
        }
    });
    sse::response(desk.while_valid(stream::iter(missed).chain(rest)))
}

/// GET: the stream on which the host speaks first, or a stream that broke off.
pub fn listen(desk: Desk, headers: &HeaderMap) -> Response {
    let opened = || {
        let session = speaker(&desk, headers)?.session.ok_or_else(needs_session)?;
        if let Some(last) = headers::single(headers, "last-event-id")? {
            let resumed = session.resume(last);
            let resumed =
                resumed.ok_or_else(|| RpcError::invalid_request("`Last-Event-ID` is not one of this session's"))?;
            return Ok(stream_response(&desk, resumed.missed, resumed.rest));
        }
        let place = desk.app.streams.open(&desk.tenant.name)?;
        let news = desk.app.hub.listen(&desk.tenant.name);
        let (number, events) = session.open_stream();
        let listening = Listening { desk: desk.clone(), revision: 0, session, news, number, events, _place: place };
        Ok(sse::response(stream::unfold(listening, Listening::next)))
    };
    opened().unwrap_or_else(|error| super::refuse(None, error))
}

struct Listening {
    desk: Desk,
    /// When the caller's key was last looked for.
    revision: u64,
    session: Arc<Session>,
    news: broadcast::Receiver<Arc<News>>,
    number: u64,
    events: mpsc::Receiver<Bytes>,
    _place: crate::streams::StreamPlace,
}

impl Listening {
    async fn next(mut self) -> Option<(Bytes, Listening)> {
        loop {
            tokio::select! {
                biased;
                // The reader's end is dropped when the session ends or another takes over this stream.
                event = self.events.recv() => return Some((event?, self)),
                news = self.news.recv() => match news {
                    Ok(news) if self.concerns(&news) => self.say(&news.what),
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = tokio::time::sleep(sse::HEARTBEAT) => {
                    if !self.still_valid() {
                        return None;
                    }
                    return Some((sse::heartbeat(), self));
                }
                () = self.desk.app.closed() => return None,
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
        let wanted = match &news.what {
            What::Tools => true,
            _ if !self.desk.caller.may_use_rest(&news.server) => false,
            What::Resource(uri) => self.session.is_subscribed(uri),
            _ => true,
        };
        here && wanted && self.still_valid()
    }

    fn say(&self, what: &What) {
        let mut message = json!({ "jsonrpc": "2.0", "method": what.method() });
        if let What::Resource(uri) = what {
            message["params"] = json!({ "uri": uri });
        }
        self.session.emit(self.number, &super::to_json(&message));
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.close_stream(self.number);
    }
}

/// DELETE: the client has finished.
pub fn end(desk: &Desk, headers: &HeaderMap) -> Response {
    match speaker(desk, headers).and_then(|speaker| speaker.session.ok_or_else(needs_session)) {
        Ok(session) => {
            desk.app.sessions.end(&session);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => super::refuse(None, error),
    }
}

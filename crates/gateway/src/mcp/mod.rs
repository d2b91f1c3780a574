//! MCP over HTTP, both eras at one endpoint: which one a request belongs to is decided by the request.

pub mod allowed;
mod asking;
mod call;
mod connecting;
pub mod credentials;
mod desk;
mod envelope;
mod error;
mod headers;
pub mod hub;
mod legacy;
mod line;
mod modern;
pub mod offer;
mod question;
mod result;
pub(crate) mod schema;
pub mod session;
mod sound;
mod sse;
pub mod state;
pub mod surface;
pub mod tasks;
mod version;

use crate::app::App;
use crate::auth::Resource;
use crate::held::{Hold, Unread};
use crate::observe::TraceParent;
use crate::problem;
use crate::workers::QUICK_BYTES;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use call::{Done, End, Method};
use desk::{Arrival, Desk, Place};
use envelope::Message;
pub use error::RpcError;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use offer::Offer;
use registry::Role;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Instant;
use version::Era;

/// One server's endpoint.
pub async fn server(
    State(app): State<Arc<App>>,
    Path((tenant, server)): Path<(String, String)>,
    request: Request,
) -> Response {
    serve(app, &tenant, Some(&server), request).await
}

/// The endpoint with the tools of all servers of a tenant.
pub async fn aggregate(State(app): State<Arc<App>>, Path(tenant): Path<String>, request: Request) -> Response {
    serve(app, &tenant, None, request).await
}

async fn serve(app: Arc<App>, tenant: &str, server: Option<&str>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let desk = match desk(&app, tenant, server, &parts.headers).await {
        Ok(desk) => desk,
        Err(refusal) => return refusal,
    };
    let method = parts.method.as_str();
    match method {
        "POST" => {
            let streams = Streams::of(&parts.headers);
            let (caller, revision) = (desk.caller.clone(), desk.revision);
            let found = desk.tenant.clone();
            let response = post(desk, &parts.headers, body, streams).await;
            // Who is not let in any more by now hears nothing, whatever was done for them; streams see to that themselves.
            if app.must_ask_again(&caller, revision)
                && let Err(refusal) =
                    app.caller(&app.registry().directory(), &parts.headers, &resource(tenant, server)).await
            {
                return refusal;
            }
            let response = if streams == Streams::Preferred { as_stream(response).await } else { response };
            unread(&app, &found.name, response).await
        }
        "GET" if Streams::of(&parts.headers) == Streams::Refused => {
            app.metrics.rejected("not_acceptable");
            problem::response(
                StatusCode::NOT_ACCEPTABLE,
                "not_acceptable",
                "a GET gives `text/event-stream` alone",
                None,
            )
        }
        "GET" => legacy::listen(desk, &parts.headers),
        "DELETE" => legacy::end(&desk, &parts.headers),
        _ => {
            let message = format!("`{method}` is not a method of this endpoint");
            let mut response = problem::response(StatusCode::METHOD_NOT_ALLOWED, "bad_method", &message, None);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            response
        }
    }
}

/// Who this is, and whether what they ask for is there for them. What is not theirs is not there.
async fn desk(app: &Arc<App>, tenant: &str, server: Option<&str>, headers: &HeaderMap) -> Result<Desk, Response> {
    let at = Instant::now();
    let directory = app.registry().directory();
    let caller = app.caller(&directory, headers, &resource(tenant, server)).await?;
    let arrival = Arrival { at, known: Instant::now(), parent: TraceParent::of(headers) };
    let missing = || {
        app.metrics.rejected("not_found");
        problem::response(StatusCode::NOT_FOUND, "not_found", "there is no such server", None)
    };
    if !caller.of_tenant(tenant) {
        return Err(missing());
    }
    let found = directory.tenants.get(tenant).ok_or_else(missing)?;
    let place = match server {
        Some(name) if caller.may_use_server(name) => {
            Place::Server(found.servers.get(name).ok_or_else(missing)?.clone())
        }
        Some(_) => return Err(missing()),
        None => Place::Everything,
    };
    if caller.role == Role::Deploy {
        app.metrics.rejected("forbidden");
        let hint = "use a key with the role `call`";
        return Err(problem::response(
            StatusCode::FORBIDDEN,
            "forbidden",
            "a deploy key does not call tools",
            Some(hint),
        ));
    }
    let (app, caller, revision) = (app.clone(), Arc::new(caller), directory.revision);
    Ok(Desk { app, caller, revision, tenant: found.clone(), place, arrival, hold: None })
}

fn resource<'a>(tenant: &'a str, server: Option<&'a str>) -> Resource<'a> {
    match server {
        Some(server) => Resource::Server { tenant, server },
        None => Resource::Tenant { tenant },
    }
}

/// Whether a client takes streams of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streams {
    Refused,
    Accepted,
    /// Named before JSON.
    Preferred,
}

impl Streams {
    fn of(headers: &HeaderMap) -> Streams {
        let mut found = Streams::Refused;
        let mut json_before = false;
        for value in headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
            for kind in value.split(',') {
                let stream = kind.contains("text/event-stream");
                let json = kind.contains("application/json");
                match found {
                    Streams::Refused if stream => found = Streams::Accepted,
                    Streams::Accepted if json && !json_before => return Streams::Preferred,
                    _ => {}
                }
                json_before |= json;
            }
        }
        found
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// A good answer as a stream of one event, for clients that would rather have that.
async fn as_stream(response: Response) -> Response {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if response.status() != StatusCode::OK || !is_json {
        return response;
    }
    let (parts, body) = response.into_parts();
    // The body is in memory as a whole.
    let Ok(collected) = body.collect().await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let event = sse::event(None, &collected.to_bytes());
    let mut response = sse::response(futures_util::stream::once(std::future::ready(event)));
    if let Some(session) = parts.headers.get(legacy::SESSION) {
        response.headers_mut().insert(legacy::SESSION, session.clone());
    }
    response
}

/// An answer counts until its client has read it: large ones of a client that reads nothing would pile up otherwise.
async fn unread(app: &App, tenant: &str, response: Response) -> Response {
    let length = http_body::Body::size_hint(response.body()).exact();
    if length.is_some_and(|length| length <= QUICK_BYTES as u64) {
        return response;
    }
    let (parts, body) = response.into_parts();
    if length.is_none() {
        let (held, tenant) = (app.held.clone(), tenant.to_owned());
        // A stream that cannot be held ends, as one does whose client takes nothing.
        let pieces = body.into_data_stream().map(move |piece| match piece {
            Ok(piece) if piece.len() > QUICK_BYTES => {
                held.hold(&tenant, piece.len()).map(|hold| hold.bind(piece)).map_err(axum::Error::new)
            }
            piece => piece,
        });
        return Response::from_parts(parts, axum::body::Body::from_stream(pieces));
    }
    // The body is in memory as a whole.
    let Ok(collected) = body.collect().await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let bytes = collected.to_bytes();
    match app.held.hold(tenant, bytes.len()) {
        Ok(hold) => Response::from_parts(parts, axum::body::Body::from(hold.bind(bytes))),
        Err(full) => refuse(None, app.full(full)),
    }
}

async fn post(mut desk: Desk, headers: &HeaderMap, body: axum::body::Body, streams: Streams) -> Response {
    let app = desk.app.clone();
    if !is_json(headers) {
        app.metrics.rejected("bad_content_type");
        let message = "the body must be `application/json`";
        return problem::response(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_content_type", message, None);
    }
    let body = match read(&desk, headers, body).await {
        Ok((body, hold)) => {
            desk.hold = hold.map(Arc::new);
            body
        }
        Err(error) => return refuse(None, error),
    };
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        // Rare, and larger than all the rest.
        return Box::pin(legacy::serve_batch(desk, &body, headers)).await;
    }
    let parse = || {
        let message = envelope::parse(&body)?;
        let modern = matches!(&message, Message::Request(request) if is_modern(request, headers));
        Ok::<_, RpcError>((message, modern))
    };
    let parsed = if body.len() > QUICK_BYTES { desk.aside(parse).await } else { parse() };
    let (message, modern) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            app.metrics.rejected("bad_message");
            return refuse(None, error);
        }
    };
    match message {
        Message::Request(request) if modern => modern::serve(desk, request, headers, streams != Streams::Refused).await,
        // Modern clients notify of nothing that this host acts on.
        Message::Notification { .. } if headers.get("mcp-method").is_some() => accepted(),
        message => Box::pin(legacy::serve(desk, message, headers, streams)).await,
    }
}

/// What kind of message this is, and whether all that is read of it can be read.
pub fn kind_of(body: &[u8]) -> Result<&'static str, i64> {
    Ok(match envelope::parse(body).map_err(|error| error.code)? {
        Message::Request(request) => {
            let modern = is_modern(&request, &HeaderMap::new());
            let params = envelope::params::<modern::Params<'_>>(request.params).map_err(|error| error.code);
            if modern { params.map(|_| "modern request")? } else { "request" }
        }
        Message::Notification { .. } => "notification",
        Message::Response { .. } => "response",
    })
}

/// Whether a request is of the modern era: it says so in a header or in its body, or uses what only that era has.
fn is_modern(request: &envelope::Request<'_>, headers: &HeaderMap) -> bool {
    let header = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
    header == Some(version::MODERN)
        || request.method == "server/discover"
        || modern::declared_version(request.params).is_some()
}

/// The body, of a caller whose quota has something left. A message is counted before anything of it is read.
async fn read(desk: &Desk, headers: &HeaderMap, body: axum::body::Body) -> Result<(Bytes, Option<Hold>), RpcError> {
    let app = &desk.app;
    app.hear(&desk.tenant, &desk.caller)?;
    let http = &app.settings().http;
    let most = http.max_body_kb * 1024;
    // Without a place only what needs none is read: notifications and answers, which are short.
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let short = declared.is_some_and(|length| length <= QUICK_BYTES);
    let room = if short { Ok(()) } else { app.has_room(&desk.tenant, &desk.caller) };
    let allowed = if room.is_ok() { most } else { most.min(QUICK_BYTES as u64) };
    let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
    let read = app.held.read(&desk.tenant.name, headers, body, allowed, http.body_timeout).await;
    read.map_err(|unread| match unread {
        Unread::TooLarge if room.is_err() => room.err().unwrap_or_else(|| RpcError::too_large(most)),
        Unread::TooLarge => {
            app.metrics.rejected("too_large");
            RpcError::too_large(most)
        }
        Unread::BrokeOff => RpcError::invalid_request("the body broke off"),
        Unread::Late => {
            app.metrics.rejected("slow_body");
            RpcError::new(StatusCode::REQUEST_TIMEOUT, -32600, "the body did not arrive in time")
        }
        Unread::Full(full) => app.full(full),
    })
}

/// The result object of a call that ran to its end.
fn finish(era: Era, offer: &Offer, method: Method, name: &str, done: &Done) -> Result<Vec<u8>, RpcError> {
    match (&done.end, method) {
        (End::Value(value), Method::Tool) => {
            let tool = offer.surface.tool(name).ok_or_else(|| RpcError::internal("the tool is gone"))?;
            result::tool(era, offer, tool, done, value)
        }
        (End::Value(value), Method::Resource) => result::resource(era, offer, name, done, value),
        (End::Value(value), Method::Prompt) => result::prompt(era, offer, done, value),
        (End::Value(value), Method::Complete) => result::completion(era, offer, done, value),
        (End::Failed(failure), Method::Tool) => result::tool_failure(era, Some(offer), Some(done), failure),
        (End::Failed(failure), Method::Resource) if failure.code == sandbox::Code::UnknownTool => {
            Err(desk::unknown_resource(era, name))
        }
        (End::Failed(failure), _) => Err(result::failure(failure)),
        (End::NeedsInput(_) | End::NeedsCapability(_), _) => Err(RpcError::internal("the call is not done")),
    }
}

/// A whole answer: `{"jsonrpc": …, "id": …, "result": …}` or the error.
fn reply(id: &RawValue, result: Result<Vec<u8>, RpcError>) -> Vec<u8> {
    match result {
        Ok(result) => {
            let mut message = Vec::with_capacity(result.len() + id.get().len() + 40);
            message.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            message.extend_from_slice(id.get().as_bytes());
            message.extend_from_slice(b",\"result\":");
            message.extend_from_slice(&result);
            message.push(b'}');
            message
        }
        Err(error) => error.to_message(Some(id)),
    }
}

/// An answer as a response of its own.
fn answer(id: &RawValue, result: Result<Vec<u8>, RpcError>) -> Response {
    match result {
        Ok(result) => json_response(StatusCode::OK, reply(id, Ok(result))),
        Err(error) => refuse(Some(id), error),
    }
}

fn refuse(id: Option<&RawValue>, error: RpcError) -> Response {
    let mut response = json_response(error.status, error.to_message(id));
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json_response(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(axum::body::Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

/// Our own types always become JSON; should one not, the client hears `null` rather than the host falling.
fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| {
        tracing::error!(%error, "a message could not be written");
        b"null".to_vec()
    })
}

//! One request on one connection, new or used before.

use crate::connect::{self, Sender};
use crate::credentials::Prepared;
use crate::denied::Denied;
use crate::door::Inner;
use crate::headers;
use crate::pool::{Key, Lease, Life};
use crate::target::Target;
use crate::tenant::Tenant;
use crate::upload::{Progress, Source, Upload};
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Method, Request, Response, Uri, Version};
use http_body::Body;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use zeroize::Zeroizing;

pub(crate) struct Answer {
    pub(crate) response: Response<Incoming>,
    pub(crate) lease: Lease,
}

/// Sends it, on an idle connection if there is one. A server may have closed that one in the meantime; what it has not even
/// begun to read is sent again on another.
pub(crate) async fn send(
    door: &Inner,
    tenant: &Tenant,
    key: Key,
    prepared: Prepared,
    upload: Upload,
) -> Result<Answer, Denied> {
    upload.trace.up(headers::size(&prepared.headers) + prepared.target.to_string().len() as u64)?;
    let progress = upload.progress.clone();
    let mut request = request(prepared, upload)?;
    loop {
        let used = door.pool.take(&key);
        let fresh = used.is_none();
        let mut lease = match used {
            Some(lease) => lease,
            None => open(door, tenant, &key).await?,
        };
        shape(&mut request, &lease, &key)?;
        // A connection of HTTP/2 is others' as well, and stays.
        let again = if fresh || matches!(lease.sender, Sender::Http2(_)) { None } else { again(&request) };
        let quiet = Duration::from_millis(door.limits.first_byte_ms);
        let outcome = patiently(dispatch(&mut lease, request), &progress, quiet).await;
        let outcome = outcome
            .ok_or_else(|| Denied::timeout(format!("{} did not answer in time (`first_byte_ms`)", key.origin)))?;
        match outcome {
            Ok(response) => return Ok(Answer { response, lease }),
            Err((_, Some(unsent))) if !fresh => request = *unsent,
            Err((error, _)) => match again {
                Some(again) => request = again,
                None => return Err(connect::failure(&key.origin, &error)),
            },
        }
    }
}

/// The same request once more, if nothing is lost when the server gets it twice: a connection that waited in the pool may be closed by
/// the server while the request is on its way.
fn again(request: &Request<Upload>) -> Option<Request<Upload>> {
    if !request.method().is_safe() || !request.body().is_end_stream() {
        return None;
    }
    let Upload { trace, progress, .. } = request.body();
    let mut again = Request::new(Upload { source: Source::Nothing, trace: trace.clone(), progress: progress.clone() });
    *again.headers_mut() = request.headers().clone();
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    Some(again)
}

/// Waits as long as there is progress.
pub(crate) async fn patiently<T>(waited: impl Future<Output = T>, progress: &Progress, quiet: Duration) -> Option<T> {
    let started = Instant::now();
    let mut waited = std::pin::pin!(waited);
    loop {
        let until = progress.last().max(started) + quiet;
        match tokio::time::timeout_at(until.into(), &mut waited).await {
            Ok(done) => return Some(done),
            Err(_) if progress.last() + quiet > Instant::now() => {}
            Err(_) => return None,
        }
    }
}

type Unsent = (hyper::Error, Option<Box<Request<Upload>>>);

async fn dispatch(lease: &mut Lease, request: Request<Upload>) -> Result<Response<Incoming>, Unsent> {
    let outcome = match &mut lease.sender {
        Sender::Http1(sender) => sender.try_send_request(request).await,
        Sender::Http2(sender) => sender.try_send_request(request).await,
    };
    outcome.map_err(|mut error| {
        let unsent = error.take_message().map(Box::new);
        (error.into_error(), unsent)
    })
}

/// A place among all connections of the host. Idle ones make room.
pub(crate) async fn place(door: &Inner) -> Result<OwnedSemaphorePermit, Denied> {
    if let Ok(place) = door.connections.clone().try_acquire_owned() {
        return Ok(place);
    }
    door.pool.retain(|_| false);
    door.connections.clone().acquire_owned().await.map_err(|_| Denied::limit("the host has no connection left"))
}

async fn open(door: &Inner, tenant: &Tenant, key: &Key) -> Result<Lease, Denied> {
    let opened = async {
        let addresses = door.gate.addresses(&key.origin, &tenant.lookups).await?;
        let place = place(door).await?;
        let (sender, task) = connect::connect(&key.origin, &addresses, &door.tls, &door.limits).await?;
        let life = Arc::new(Life { _task: task, _place: place });
        Ok(Lease { key: key.clone(), sender, life, born: Instant::now() })
    };
    let most = Duration::from_millis(door.limits.connect_ms);
    let late = || Denied::timeout(format!("no connection to {} in time (`connect_ms`)", key.origin));
    let lease = tokio::time::timeout(most, opened).await.map_err(|_| late())??;
    door.pool.share(&lease);
    Ok(lease)
}

fn request(prepared: Prepared, upload: Upload) -> Result<Request<Upload>, Denied> {
    let wrong = |_| Denied::invalid("the request has a method or URL that cannot be sent");
    let method = Method::from_bytes(prepared.method.as_bytes()).map_err(wrong)?;
    let empty = upload.is_end_stream();
    let mut request = Request::new(upload);
    *request.headers_mut() = prepared.headers;
    if empty && [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    *request.method_mut() = method;
    *request.uri_mut() = uri(&prepared.target)?;
    drop(Zeroizing::new(prepared.target.query));
    Ok(request)
}

fn uri(target: &Target) -> Result<Uri, Denied> {
    Zeroizing::new(target.to_string())
        .parse()
        .map_err(|_| Denied::invalid("the URL has characters that cannot be sent"))
}

/// HTTP/1 has the host in a header, HTTP/2 in the URL.
fn shape(request: &mut Request<Upload>, lease: &Lease, key: &Key) -> Result<(), Denied> {
    let wrong = |_| Denied::invalid("the URL has characters that cannot be sent");
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    match lease.sender {
        Sender::Http1(_) => {
            let host =
                HeaderValue::from_str(&key.origin.authority()).map_err(|_| Denied::invalid("no name for a host"))?;
            request.headers_mut().insert(HOST, host);
            *request.uri_mut() = path.parse().map_err(wrong)?;
            *request.version_mut() = Version::HTTP_11;
        }
        Sender::Http2(_) => {
            request.headers_mut().remove(HOST);
            *request.uri_mut() = format!("{}{path}", key.origin).parse().map_err(wrong)?;
            *request.version_mut() = Version::HTTP_2;
        }
    }
    Ok(())
}

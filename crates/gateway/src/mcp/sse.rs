//! Server-sent events.

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Response, header};
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;
use std::time::Duration;

/// How often a quiet stream says that it is there; so a half-open one is noticed.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// One message, in one `data` line: line breaks in JSON text stand between its parts, and mean nothing there.
pub fn event(id: Option<&str>, json: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(json.len() + 48);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    for part in json.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\n\n");
    Bytes::from(out)
}

/// The first event of a stream that can be resumed: an id to come back with, and no message.
pub fn primer(id: &str, retry: Duration) -> Bytes {
    Bytes::from(format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()))
}

pub fn heartbeat() -> Bytes {
    Bytes::from_static(b":\n\n")
}

pub fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response<axum::body::Body> {
    use futures_util::StreamExt;
    let frames = events.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    let mut response = Response::new(axum::body::Body::new(StreamBody::new(frames)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_break_in_a_message_ends_its_event() {
        let event = event(Some("7"), b"{\r\n  \"a\":\n\n1,\r\"b\": \"\\n\"}");
        assert_eq!(&*event, b"id: 7\ndata: {  \"a\":1,\"b\": \"\\n\"}\n\n");
    }
}

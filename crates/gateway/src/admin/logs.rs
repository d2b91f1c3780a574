//! What tools wrote to their logs.

use super::Admin;
use super::access::Asker;
use super::body::{Names, Query};
use super::error::Error;
use super::stream::{self, Leave, Source};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use registry::ToolLine;
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError};
use utoipa::{IntoParams, ToSchema};

/// Lines shown unless the caller says otherwise, and at most.
const USUAL: usize = 100;
const MOST: usize = 10_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// So many of the last lines: 0 to 10000, and 100 unless given.
    #[param(minimum = 0, maximum = 10_000)]
    tail: Option<usize>,
    /// Go on with what comes.
    #[serde(default)]
    #[param(required = false)]
    follow: bool,
}

/// One line that a tool wrote. Followed streams also have empty lines, to show that they are alive, and `{"lost":true}`
/// where lines came too quickly for their reader.
#[derive(ToSchema)]
#[allow(dead_code, reason = "a drawing of `registry::ToolLine`")]
pub struct LogLine {
    /// RFC 3339.
    time: String,
    /// Id of the call.
    call: String,
    level: String,
    text: String,
}

/// Read what the tools of a server logged, oldest line first, one JSON object a line.
///
/// Role: any key of the tenant that may use the server.
#[utoipa::path(get, path = "/tenants/{tenant}/servers/{server}/logs", tag = "logs", operation_id = "read_logs",
    params(("tenant" = String, Path), ("server" = String, Path), LogQuery),
    responses((status = OK, body = LogLine, content_type = "application/x-ndjson")))]
pub async fn read(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server)): Names<(String, String)>,
    Query(query): Query<LogQuery>,
) -> Result<Response, Error> {
    asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    let tail = query.tail.unwrap_or(USUAL);
    if tail > MOST {
        return Err(Error::bad_query(format!("`tail` of {tail} is above {MOST}")));
    }
    let of = (tenant.clone(), server.clone());
    let last = move |registry: &registry::Registry| registry.logs().tail(&of.0, &of.1, tail);
    if !query.follow {
        let lines = admin.registry(last).await?;
        return Ok(stream::finished(lines.iter().map(stream::line).collect::<Result<_, _>>()?));
    }
    let place = stream::enter(&admin, &tenant)?;
    let mut receiver = admin.app.registry().logs().follow(&tenant, &server);
    let tail = admin.registry(last).await?;
    let early = std::iter::from_fn(|| receiver.try_recv().ok()).collect::<Vec<_>>();
    let fresh = &early[overlap(&tail, &early)..];
    let waiting = tail.iter().chain(fresh.iter().map(|line| &**line)).map(stream::line).collect::<Result<_, _>>()?;
    let leave = Leave::new(admin, &asker, move |asker, now| asker.server(now, &tenant, &server).is_ok());
    Ok(stream::respond(leave, place, Lines { waiting, receiver }))
}

/// How many of the lines that were heard while the tail was read are in it already.
fn overlap(tail: &[ToolLine], heard: &[Arc<ToolLine>]) -> usize {
    let ends_with = |heard: &[Arc<ToolLine>]| {
        let both = heard.len().min(tail.len());
        both > 0 && heard[heard.len() - both..].iter().map(|line| &**line).eq(&tail[tail.len() - both..])
    };
    (1..=heard.len()).rev().find(|seen| ends_with(&heard[..*seen])).unwrap_or(0)
}

struct Lines {
    waiting: VecDeque<Bytes>,
    receiver: broadcast::Receiver<Arc<ToolLine>>,
}

impl Source for Lines {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(line) = self.waiting.pop_front() {
            return Some(line);
        }
        match self.receiver.recv().await {
            Ok(line) => stream::line(&*line).ok(),
            Err(RecvError::Lagged(_)) => Some(stream::LOST),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> ToolLine {
        ToolLine { time: String::new(), call: String::new(), level: String::new(), text: text.to_owned() }
    }

    fn seen(tail: &[&str], heard: &[&str]) -> usize {
        let tail: Vec<_> = tail.iter().map(|text| line(text)).collect();
        let heard: Vec<_> = heard.iter().map(|text| Arc::new(line(text))).collect();
        overlap(&tail, &heard)
    }

    #[test]
    fn no_line_is_shown_twice_and_none_is_left_out() {
        assert_eq!(seen(&["a", "b"], &[]), 0);
        assert_eq!(seen(&["a", "b"], &["c"]), 0, "heard after the tail was read");
        assert_eq!(seen(&["a", "b", "c"], &["c"]), 1);
        assert_eq!(seen(&["a", "b", "c"], &["b", "c", "d"]), 2);
        assert_eq!(seen(&["c"], &["a", "b", "c", "d"]), 3, "a short tail");
        assert_eq!(seen(&[], &["a"]), 0, "an empty log");
    }

    #[test]
    fn the_drawing_is_like_what_it_shows() {
        let drawn = serde_json::to_value(<LogLine as utoipa::PartialSchema>::schema()).unwrap();
        let real = serde_json::to_value(line("")).unwrap();
        assert!(drawn["properties"].as_object().unwrap().keys().eq(real.as_object().unwrap().keys()));
    }
}

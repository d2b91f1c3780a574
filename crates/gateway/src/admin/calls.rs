//! Calls, as the audit log has them.

mod follow;

use super::access::Asker;
use super::body::{Names, Query};
use super::cursor::Cursors;
use super::error::Error;
use super::places::{Place, Places};
use super::stream::{self, Leave};
use super::{Admin, page};
use crate::auth::Caller;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use registry::{AuditError, CallFilter, CallLine, Recent, Registry, RegistryError, Role};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Calls shown before what is followed, unless the caller says otherwise.
const BEFORE_FOLLOWING: usize = 10;

/// The log is read backwards in pieces, as far as needed and no further than this, or than one search goes; a page may
/// then be short, or empty, and is not the last.
const PIECE: usize = 50;
const FARTHEST: usize = 2000;

/// Calls with recorded arguments may be megabytes each; a page ends when it has this many bytes.
const PAGE_BYTES: usize = 8 << 20;

/// A search may read gigabytes, so few go on at a time.
const SEARCHES: usize = 4;
const SEARCHES_OF_ONE_TENANT: usize = 2;

pub fn searches() -> Places {
    Places::new(SEARCHES, SEARCHES_OF_ONE_TENANT)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CallQuery {
    /// Only calls of this server.
    server: Option<String>,
    /// Only calls that ended like this: `ok`, or the code of a failure.
    outcome: Option<String>,
    /// Calls at most: 1 to 1000; 100 unless given, and 10 before those that are followed.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Go on with what comes: one JSON object a line, oldest first. Empty lines show that the stream is alive, and
    /// `{"lost":true}` stands where calls came too quickly for their reader.
    #[serde(default)]
    #[param(required = false)]
    follow: bool,
}

/// One call, from the audit log.
#[derive(ToSchema)]
#[allow(dead_code, reason = "a drawing of `registry::CallEvent`")]
pub struct CallView {
    /// RFC 3339.
    time: String,
    /// What the receipt and the tool's log call it.
    #[schema(required = false)]
    call: String,
    tenant: String,
    server: String,
    /// Key id, or `sub` of a token.
    caller: String,
    /// `tools/call`, `resources/read`, `prompts/get`, `completion/complete`.
    method: String,
    name: String,
    deployment: String,
    wall: String,
    boundary: String,
    /// `ok`, or the code of the failure.
    outcome: String,
    cpu_us: u64,
    time_us: u64,
    wait_us: u64,
    peak_memory_kb: u64,
    cpu_limit_ms: u64,
    time_limit_ms: u64,
    memory_limit_mb: u64,
    host_calls: u64,
    #[schema(required = false)]
    hosts: Vec<String>,
    #[schema(required = false)]
    credentials: Vec<String>,
    /// Secrets that were masked in what came back. Older lines do not have it.
    #[schema(required = false)]
    masked: u64,
    /// SHA-256 of the arguments, as hex.
    arguments_sha256: String,
    /// Only where the tenant turned recording on.
    #[schema(required = false)]
    arguments: serde_json::Value,
    #[schema(required = false)]
    result: serde_json::Value,
    /// W3C trace id.
    #[schema(required = false)]
    trace: String,
    /// Of the line in the log's chain.
    hash: String,
}

#[derive(Serialize, ToSchema)]
pub struct CallPage {
    /// Newest first.
    #[schema(value_type = Vec<CallView>)]
    calls: Vec<Shown>,
    /// `cursor` of the next page. A page may have few calls, or none, and still not be the last.
    next: Option<String>,
}

/// A line of the log without what concerns others: its number, and the hash of the line before.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Shown(BTreeMap<String, Box<RawValue>>);

impl Shown {
    fn of(line: &CallLine) -> Result<Shown, Error> {
        let mut fields: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(line.json.get()).map_err(|error| Error::internal(&error))?;
        fields.retain(|name, _| !matches!(name.as_str(), "seq" | "prev" | "kind"));
        Ok(Shown(fields))
    }
}

/// List calls, newest first; or follow them.
///
/// Role: any key of the tenant. One with the role `call` sees its own calls, one with a scope those of its servers.
#[utoipa::path(get, path = "/tenants/{tenant}/calls", tag = "calls", operation_id = "list_calls",
    params(("tenant" = String, Path), CallQuery),
    responses((status = OK, content((CallPage = "application/json"), (CallView = "application/x-ndjson")))))]
pub async fn list(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names(tenant): Names<String>,
    Query(query): Query<CallQuery>,
) -> Result<Response, Error> {
    asker.tenant(&admin.app.registry().directory(), &tenant)?;
    if let Some(server) = &query.server {
        asker.server_name(server)?;
    }
    let filter = CallFilter {
        tenant: Some(tenant.clone()),
        server: query.server,
        caller: (asker.caller.role == Role::Call).then(|| asker.caller.subject.clone()),
        outcome: query.outcome,
        limit: 0,
        before_seq: None,
    };
    let look = Look { filter, caller: asker.caller.clone() };
    if !query.follow {
        let limit = page::limit(query.limit)?;
        return page(&admin, tenant, look, limit, query.cursor).await.map(|page| Json(page).into_response());
    }
    if query.cursor.is_some() {
        return Err(Error::bad_query("`cursor` and `follow` exclude each other"));
    }
    let before = page::limit(Some(query.limit.unwrap_or(BEFORE_FOLLOWING)))?;
    let place = stream::enter(&admin, &tenant)?;
    let calls = follow::Calls::start(&admin, &tenant, look, before).await?;
    let leave = Leave::new(admin, &asker, move |asker, now| asker.tenant(now, &tenant).is_ok());
    Ok(stream::respond(leave, place, calls))
}

async fn page(
    admin: &Admin,
    tenant: String,
    look: Look,
    limit: usize,
    cursor: Option<String>,
) -> Result<CallPage, Error> {
    let place = search(admin, &tenant)?;
    let found = admin.registry(move |registry| {
        let _place = place;
        let cursors = Cursors::new(registry.host_key("admin-cursors")?);
        // Not a tenant's that had this name before.
        let whose = format!("{tenant} {}", registry.tenant_mark(&tenant)?);
        let before = match cursor.map(|cursor| cursors.open(&whose, &cursor)) {
            Some(None) => return Ok(None),
            Some(before) => before,
            None => None,
        };
        let (lines, more) = look.back(registry, before, limit)?;
        Ok(Some((lines, more.map(|seq| cursors.seal(&whose, seq)))))
    });
    let Some((lines, next)) = found.await? else {
        return Err(Error::bad_query("`cursor` was not given out by this list; start again without it"));
    };
    Ok(CallPage { calls: lines.iter().map(Shown::of).collect::<Result<_, _>>()?, next })
}

/// The right to search the log, for as long as that takes.
fn search(admin: &Admin, tenant: &str) -> Result<Place, Error> {
    let busy = |full| Error::busy(format!("{full} has too many questions about calls open; try again"));
    admin.searches.enter(tenant).map_err(busy)
}

/// Which calls somebody may see and wants to.
#[derive(Clone)]
struct Look {
    filter: CallFilter,
    caller: Caller,
}

impl Look {
    fn matches(&self, line: &CallLine) -> bool {
        self.filter.matches(line) && self.caller.may_use_server(&line.server)
    }

    /// Newest first, and the number to go on before if there may be more.
    fn back(
        &self,
        registry: &Registry,
        before: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<CallLine>, Option<u64>), RegistryError> {
        let mut found: Vec<CallLine> = Vec::new();
        let mut bytes = 0;
        let mut filter = CallFilter { limit: PIECE, before_seq: before, ..self.filter.clone() };
        for _ in 0..FARTHEST / PIECE {
            let Recent { calls, next } = registry.audit().recent(&filter).map_err(unreadable)?;
            let cut_short = calls.len() < PIECE;
            for line in calls {
                if !self.caller.may_use_server(&line.server) {
                    continue;
                }
                if found.len() == limit || bytes > PAGE_BYTES {
                    let last = found.last().map(|line| line.seq);
                    return Ok((found, last));
                }
                bytes += line.json.get().len();
                found.push(line);
            }
            filter.before_seq = next;
            if next.is_none() || cut_short {
                break;
            }
        }
        Ok((found, filter.before_seq))
    }
}

fn unreadable(error: AuditError) -> RegistryError {
    RegistryError::Internal { what: "the audit log cannot be read".to_owned(), cause: Some(error.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use registry::{AuditEvent, CallEvent};
    use serde_json::Value;
    use std::collections::BTreeSet;

    #[test]
    fn the_drawing_is_like_what_it_shows() {
        let raw = || Some(RawValue::NULL.to_owned());
        let event = CallEvent {
            call: "1".to_owned(),
            hosts: vec![String::new()],
            credentials: vec![String::new()],
            masked: 1,
            arguments: raw(),
            result: raw(),
            trace: Some(String::new()),
            ..CallEvent::default()
        };
        let mut real = serde_json::to_value(AuditEvent::Call(event)).unwrap();
        let real = real.as_object_mut().unwrap();
        for name in ["seq", "prev", "time", "hash"] {
            real.insert(name.to_owned(), Value::Null);
        }
        let line = CallLine {
            seq: 1,
            tenant: String::new(),
            server: String::new(),
            caller: String::new(),
            outcome: String::new(),
            json: serde_json::value::to_raw_value(real).unwrap(),
        };
        let shown: BTreeSet<_> = Shown::of(&line).unwrap().0.into_keys().collect();
        let drawn = serde_json::to_value(<CallView as utoipa::PartialSchema>::schema()).unwrap();
        let drawn: BTreeSet<_> = drawn["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(shown, drawn);
    }
}

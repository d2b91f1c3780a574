//! What a server asked of the network.

use super::Admin;
use super::access::Asker;
use super::body::Names;
use super::error::Error;
use crate::observe::{Asked, Sum};
use axum::Json;
use axum::extract::State;
use registry::{Role, Timestamp};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Requests of a server to one host that were decided alike.
#[derive(Serialize, ToSchema)]
pub struct EgressRow {
    /// Empty for URLs that could not be read.
    host: String,
    /// `allowed` or `denied`.
    decision: &'static str,
    /// The rule that names the host; null where none does.
    rule: Option<String>,
    #[serde(flatten)]
    sum: EgressSum,
}

/// How many there were, and what went to and fro.
#[derive(Serialize, ToSchema)]
pub struct EgressSum {
    requests: u64,
    bytes_up: u64,
    bytes_down: u64,
    /// Code of the last refusal or failure.
    failed: Option<&'static str>,
    last_at: Timestamp,
}

impl From<Sum> for EgressSum {
    fn from(sum: Sum) -> EgressSum {
        let Sum { requests, bytes_up, bytes_down, failed, last_at } = sum;
        EgressSum { requests, bytes_up, bytes_down, failed, last_at }
    }
}

/// What a server asked of the network since the host began.
#[derive(Serialize, ToSchema)]
pub struct EgressView {
    /// When the host began.
    since: Timestamp,
    /// At most 200, by host.
    hosts: Vec<EgressRow>,
    /// All further ones; null if there are none.
    others: Option<EgressSum>,
}

/// See what a server asked of the network, and what was decided.
///
/// Role: deploy. It is counted from the host's start; the audit log has each call's hosts for good.
#[utoipa::path(get, path = "/tenants/{tenant}/servers/{server}/egress", tag = "servers", operation_id = "get_egress",
    params(("tenant" = String, Path), ("server" = String, Path)), responses((status = OK, body = EgressView)))]
pub async fn look(
    State(admin): State<Arc<Admin>>,
    asker: Asker,
    Names((tenant, server)): Names<(String, String)>,
) -> Result<Json<EgressView>, Error> {
    asker.server(&admin.app.registry().directory(), &tenant, &server)?;
    asker.role(Role::Deploy)?;
    let Asked { rows, others } = admin.app.reached.look(&tenant, &server);
    let row = |(row, sum): (crate::observe::Row, Sum)| EgressRow {
        host: row.host,
        decision: if row.allowed { "allowed" } else { "denied" },
        rule: row.rule,
        sum: sum.into(),
    };
    let since = registry::now().saturating_sub(admin.app.uptime().as_secs());
    let others = (others.requests > 0).then(|| others.into());
    Ok(Json(EgressView { since, hosts: rows.into_iter().map(row).collect(), others }))
}

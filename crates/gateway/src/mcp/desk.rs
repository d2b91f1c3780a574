//! Who came to which endpoint: what they may see there, and what they may call.

use super::call::{self, Job, Method, Ticket};
use super::envelope;
use super::error::RpcError;
use super::offer::{JOINT, Offer, OfferError};
use super::result;
use super::schema;
use super::surface::TaskSupport;
use super::tasks;
use super::version::{self, Era};
use crate::app::App;
use crate::auth::Caller;
use crate::held::Hold;
use crate::observe::{CallSeen, Trace, TraceParent};
use crate::quota::Admission;
use crate::workers::QUICK_BYTES;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, StatusCode};
use policy::check_arguments;
use registry::{AuditEvent, CallEvent, RegistryError, Server, Tenant};
use sandbox::{Code, Failure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A caller at an endpoint.
#[derive(Clone)]
pub struct Desk {
    pub app: Arc<App>,
    pub caller: Arc<Caller>,
    /// Of the directory that they were found in.
    pub revision: u64,
    pub tenant: Arc<Tenant>,
    pub place: Place,
    pub arrival: Arrival,
    /// The body counts until the last call of it is over.
    pub hold: Option<Arc<Hold>>,
}

/// How a request came to its desk.
#[derive(Clone, Copy)]
pub struct Arrival {
    pub at: Instant,
    /// When it was known who sent it.
    pub known: Instant,
    /// The client's span, if it named one in a header.
    pub parent: Option<TraceParent>,
}

#[derive(Clone)]
pub enum Place {
    Server(Arc<Server>),
    /// All servers of the tenant, tools alone.
    Everything,
}

/// A request that is ready to run, or was answered without running anything.
pub enum Prepared {
    Run(Box<Job>),
    /// A result object.
    Answer(Vec<u8>),
}

#[derive(Deserialize)]
struct ToolParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct UriParams<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

#[derive(Deserialize)]
struct CursorParams<'a> {
    #[serde(borrow)]
    cursor: Option<Cow<'a, str>>,
}

impl Desk {
    /// The name under which sessions and states belong here.
    pub fn server_name(&self) -> Option<&str> {
        match &self.place {
            Place::Server(server) => Some(&server.name),
            Place::Everything => None,
        }
    }

    /// Events for as long as whoever came may have them. A stream of their own, so that it outlives the request.
    pub fn while_valid<S: Stream<Item = Bytes> + Send>(&self, events: S) -> impl Stream<Item = Bytes> + Send + use<S> {
        let (app, caller, mut revision) = (self.app.clone(), self.caller.clone(), self.revision);
        events.take_while(move |_| std::future::ready(app.still_valid_since(&caller, &mut revision)))
    }

    async fn offer_of(&self, server: &Server) -> Result<Arc<Offer>, RpcError> {
        if let Some(reason) = &server.quarantine {
            return Err(quarantined(&server.name, reason));
        }
        let Some(record) = &server.current else {
            return Err(awaiting_approval(&server.name));
        };
        self.app.offer(record).await.map_err(|error| match error {
            OfferError::Refused(_) | OfferError::Surface(_) | OfferError::Egress(_) => RpcError::internal(error.to_string()),
            OfferError::Registry(RegistryError::Corrupt { what, .. }) => {
                self.app.quarantine(record, &what);
                quarantined(&server.name, &what)
            }
            OfferError::Registry(_) | OfferError::Lost => {
                tracing::error!(tenant = self.tenant.name, server = server.name, %error, "a deployment cannot be loaded");
                RpcError::unavailable("the server's code cannot be loaded; the host's log says why")
            }
        })
    }

    /// The one offer here, at a server's own endpoint.
    pub async fn offer(&self) -> Result<Option<Arc<Offer>>, RpcError> {
        match &self.place {
            Place::Server(server) => self.offer_of(server).await.map(Some),
            Place::Everything => Ok(None),
        }
    }

    /// Every offer the caller may see here.
    async fn offers(&self) -> Result<Vec<Arc<Offer>>, RpcError> {
        match &self.place {
            Place::Server(server) => Ok(vec![self.offer_of(server).await?]),
            Place::Everything => {
                let mut offers = Vec::new();
                for server in self.tenant.servers.values() {
                    let open = server.current.is_some() && server.quarantine.is_none();
                    if open && self.caller.may_use_server(&server.name) {
                        offers.push(self.offer_of(server).await?);
                    }
                }
                Ok(offers)
            }
        }
    }

    /// The one offer here, for a caller whose scope has more of it than tools.
    pub async fn rest(&self) -> Result<Option<Arc<Offer>>, RpcError> {
        let offer = self.offer().await?;
        Ok(offer.filter(|offer| self.caller.may_use_rest(&offer.record.server)))
    }

    pub async fn server_info(&self) -> Result<Value, RpcError> {
        Ok(match self.offer().await? {
            Some(offer) => offer.server_info.clone(),
            None => json!({ "name": self.tenant.name, "version": env!("CARGO_PKG_VERSION") }),
        })
    }

    pub async fn instructions(&self) -> Result<Option<String>, RpcError> {
        Ok(self.offer().await?.and_then(|offer| offer.surface.instructions.clone()))
    }

    pub async fn capabilities(&self, era: Era) -> Result<Value, RpcError> {
        let Some(offer) = self.offer().await? else {
            return Ok(json!({ "tools": { "listChanged": true } }));
        };
        let surface = &offer.surface;
        let mut capabilities = serde_json::Map::new();
        if !surface.tools.is_empty() {
            capabilities.insert("tools".to_owned(), json!({ "listChanged": true }));
        }
        let rest = self.caller.may_use_rest(&offer.record.server);
        if rest && !(surface.resources.is_empty() && surface.templates.is_empty()) {
            capabilities.insert("resources".to_owned(), json!({ "listChanged": true, "subscribe": true }));
        }
        if rest && !surface.prompts.is_empty() {
            capabilities.insert("prompts".to_owned(), json!({ "listChanged": true }));
        }
        if rest && surface.completions {
            capabilities.insert("completions".to_owned(), json!({}));
        }
        if era == Era::Modern && surface.tools.iter().any(|tool| tool.task != TaskSupport::Forbidden) {
            capabilities.insert("extensions".to_owned(), json!({ tasks::EXTENSION: {} }));
        }
        if era != Era::Modern {
            capabilities.insert("logging".to_owned(), json!({}));
        }
        Ok(capabilities.into())
    }

    /// `tools/list` and its kin: a result object.
    pub async fn list(&self, era: Era, method: &str, params: Option<&RawValue>) -> Result<Vec<u8>, RpcError> {
        let params: CursorParams<'_> = self.params(params).await?;
        let offers = self.offers().await?;
        let open = offers.iter().filter(|offer| self.caller.may_use_rest(&offer.record.server));
        let surfaces = open.map(|offer| &offer.surface);
        let only_here = matches!(self.place, Place::Server(_));
        let (key, entries): (&str, Vec<&RawValue>) = match method {
            "tools/list" => ("tools", self.list_tools(&offers).await),
            _ if !only_here => return Err(RpcError::method_not_found(method)),
            "resources/list" => ("resources", surfaces.flat_map(|s| &s.resources).map(|r| &*r.listed).collect()),
            "resources/templates/list" => {
                ("resourceTemplates", surfaces.flat_map(|s| &s.templates).map(|r| &*r.listed).collect())
            }
            "prompts/list" => ("prompts", surfaces.flat_map(|s| &s.prompts).map(|p| &*p.listed).collect()),
            _ => return Err(RpcError::method_not_found(method)),
        };
        self.page(era, key, &entries, params.cursor.as_deref(), offers.first())
    }

    async fn list_tools<'a>(&self, offers: &'a [Arc<Offer>]) -> Vec<&'a RawValue> {
        let mut listed = Vec::new();
        for offer in offers {
            let here = matches!(self.place, Place::Server(_));
            // Thousands are given their other names once.
            if !here && !offer.is_together() {
                self.aside(|| offer.together().len()).await;
            }
            let shown =
                |index: usize| if here { &*offer.surface.tools[index].listed } else { &*offer.together()[index] };
            let tools = offer.surface.tools.iter().enumerate();
            let may = |name: &str| self.caller.may_use_tool(&offer.record.server, name);
            listed.extend(tools.filter(|(_, tool)| may(&tool.name)).map(|(index, _)| shown(index)));
        }
        listed
    }

    fn page(
        &self,
        era: Era,
        key: &str,
        entries: &[&RawValue],
        cursor: Option<&str>,
        offer: Option<&Arc<Offer>>,
    ) -> Result<Vec<u8>, RpcError> {
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let at = cursor.parse::<usize>().ok().filter(|at| *at > 0 && *at < entries.len());
                at.ok_or_else(|| RpcError::invalid_params("`cursor` is not one that this server gave"))?
            }
        };
        let size = self.app.settings().page_size.max(1);
        let end = entries.len().min(start.saturating_add(size));
        let mut rest = serde_json::Map::new();
        if end < entries.len() {
            rest.insert("nextCursor".to_owned(), end.to_string().into());
        }
        if era == Era::Modern {
            self.stamp(&mut rest, offer.map(|offer| &offer.server_info));
        }
        // Entries are JSON already, and may be many: they are copied and not read again.
        let shown = &entries[start..end];
        let mut page = Vec::with_capacity(shown.iter().map(|entry| entry.get().len() + 1).sum::<usize>() + 512);
        page.extend_from_slice(format!("{{\"{key}\":[").as_bytes());
        for (number, entry) in shown.iter().enumerate() {
            if number > 0 {
                page.push(b',');
            }
            page.extend_from_slice(entry.get().as_bytes());
        }
        page.push(b']');
        let rest = super::to_json(&rest);
        if rest.len() > 2 {
            page.push(b',');
        }
        page.extend_from_slice(&rest[1..]);
        Ok(page)
    }

    /// What modern results have beside their content.
    pub fn stamp(&self, result: &mut serde_json::Map<String, Value>, server_info: Option<&Value>) {
        result.insert("resultType".to_owned(), "complete".into());
        result.insert("ttlMs".to_owned(), result::TTL_MS.into());
        // What is listed depends on the key.
        result.insert("cacheScope".to_owned(), "private".into());
        if let Some(info) = server_info {
            result.insert("_meta".to_owned(), json!({ "io.modelcontextprotocol/serverInfo": info }));
        }
    }

    /// `server/discover`.
    pub async fn discover(&self) -> Result<Vec<u8>, RpcError> {
        let info = self.server_info().await?;
        let mut result = serde_json::Map::new();
        result.insert("supportedVersions".to_owned(), json!(version::ALL));
        result.insert("capabilities".to_owned(), self.capabilities(Era::Modern).await?);
        if let Some(instructions) = self.instructions().await? {
            result.insert("instructions".to_owned(), instructions.into());
        }
        self.stamp(&mut result, Some(&info));
        Ok(super::to_json(&result))
    }

    /// Checks a request that needs a compartment, without waking one.
    pub async fn prepare(
        &self,
        era: Era,
        method: Method,
        params: Option<&RawValue>,
        headers: &HeaderMap,
        session: Option<String>,
        admission: Admission,
    ) -> Result<Prepared, RpcError> {
        let ticket = Ticket { session, admission, trace: self.trace(params) };
        match method {
            Method::Tool => self.prepare_tool(era, params, headers, ticket).await,
            Method::Resource => self.prepare_resource(era, params, ticket).await,
            Method::Prompt => self.prepare_prompt(params, ticket).await,
            Method::Complete => self.prepare_completion(params, ticket).await,
        }
    }

    /// The trace of a call, below the client's own span where it names one: in a header, or in the message.
    fn trace(&self, params: Option<&RawValue>) -> Trace {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Meta<'a>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Meta<'a> {
            #[serde(borrow)]
            traceparent: Option<Cow<'a, str>>,
        }
        let traces = &self.app.traces;
        if !traces.is_on() {
            return Trace::default();
        }
        let Arrival { at, known, parent } = self.arrival;
        let in_body = || {
            let params: Params<'_> = envelope::params(params).ok()?;
            TraceParent::parse(&params.meta.traceparent?)
        };
        let mut trace = traces.begin(parent.or_else(in_body), at);
        trace.step("authenticate", at, known);
        trace
    }

    async fn prepare_tool(
        &self,
        era: Era,
        params: Option<&RawValue>,
        headers: &HeaderMap,
        ticket: Ticket,
    ) -> Result<Prepared, RpcError> {
        let params: ToolParams<'_> = self.params(params).await?;
        let unknown = || {
            let shown: String = params.name.chars().take(128).collect();
            RpcError::invalid_params(format!("there is no tool `{shown}`")).with_data(json!({ "code": "unknown_tool" }))
        };
        let (server, name) = match &self.place {
            Place::Server(server) => (server, &*params.name),
            Place::Everything => {
                let (server, name) = params.name.split_once(JOINT).ok_or_else(unknown)?;
                (self.tenant.servers.get(server).ok_or_else(unknown)?, name)
            }
        };
        if !self.caller.may_use_tool(&server.name, name) {
            return Err(unknown());
        }
        let offer = self.offer_of(server).await?;
        let tool = offer.surface.tool(name).ok_or_else(unknown)?;
        let input = params.arguments.map_or("{}", RawValue::get);
        let limits = offer.sandboxed.permit.limits();
        let too_much =
            |message: String| RpcError::invalid_params(message).with_data(json!({ "code": Code::ArgumentLimit }));
        let measure = || {
            check_arguments(input.as_bytes(), limits).map_err(|error| too_much(error.to_string()))?;
            let price = tool.input.price(input.as_bytes());
            price.map_err(|error| too_much(format!("the arguments are not checked against the tool's schema: {error}")))
        };
        let job = self.job(offer.clone(), Method::Tool, name, Bytes::copy_from_slice(input.as_bytes()), ticket);
        let look = |price| {
            let value: Value = serde_json::from_str(input)
                .map_err(|error| RpcError::invalid_params(format!("`arguments` cannot be read: {error}")))?;
            if era == Era::Modern {
                super::headers::check_arguments(headers, tool, &value)?;
            }
            job.digest();
            Ok::<_, RpcError>(tool.input.check(&value, price))
        };
        let checked = if input.len() > QUICK_BYTES {
            self.aside(|| measure().and_then(look)).await?
        } else {
            let price = measure()?;
            if price.is_quick() { look(price)? } else { self.aside(|| look(price)).await? }
        };
        match checked {
            Ok(()) => Ok(Prepared::Run(Box::new(job))),
            Err(violations) => {
                let message = format!("the arguments do not fit the tool's schema: {}", schema::describe(&violations));
                self.note_refusal(job, Code::BadArguments.as_str());
                if era.tells_model_of_bad_arguments() {
                    let failure = Failure::new(Code::BadArguments, message);
                    return result::tool_failure(era, Some(&offer), None, &failure).map(Prepared::Answer);
                }
                let paths: Vec<_> =
                    violations.iter().map(|v| json!({ "path": v.path, "message": v.message })).collect();
                Err(RpcError::invalid_params(message)
                    .with_data(json!({ "code": Code::BadArguments, "violations": paths })))
            }
        }
    }

    async fn prepare_resource(
        &self,
        era: Era,
        params: Option<&RawValue>,
        ticket: Ticket,
    ) -> Result<Prepared, RpcError> {
        let params: UriParams<'_> = self.params(params).await?;
        self.offer().await?.ok_or_else(|| RpcError::method_not_found("resources/read"))?;
        let offer = self.rest().await?.ok_or_else(|| unknown_resource(era, &params.uri))?;
        if !offer.surface.has_resource(&params.uri) || params.uri.len() > 8192 {
            return Err(unknown_resource(era, &params.uri));
        }
        let job = self.job(offer, Method::Resource, &params.uri, Bytes::from_static(b"{}"), ticket);
        Ok(Prepared::Run(Box::new(job)))
    }

    async fn prepare_prompt(&self, params: Option<&RawValue>, ticket: Ticket) -> Result<Prepared, RpcError> {
        let params: ToolParams<'_> = self.params(params).await?;
        self.offer().await?.ok_or_else(|| RpcError::method_not_found("prompts/get"))?;
        let shown: String = params.name.chars().take(128).collect();
        let unknown = || RpcError::invalid_params(format!("there is no prompt `{shown}`"));
        let offer = self.rest().await?.ok_or_else(unknown)?;
        let prompt = offer.surface.prompt(&params.name).ok_or_else(unknown)?;
        let input = params.arguments.map_or("{}", RawValue::get);
        check_arguments(input.as_bytes(), offer.sandboxed.permit.limits())
            .map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let given: std::collections::HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(input)
            .map_err(|error| RpcError::invalid_params(format!("bad `arguments`: {error}")))?;
        if let Some(missing) = prompt.required.iter().find(|name| !given.contains_key(name.as_str())) {
            return Err(RpcError::invalid_params(format!("prompt `{shown}` needs the argument `{missing}`"))
                .with_data(json!({ "code": Code::BadArguments, "violations": [{ "path": format!("/{missing}") }] })));
        }
        let input = Bytes::copy_from_slice(input.as_bytes());
        let job = self.job(offer.clone(), Method::Prompt, &params.name, input, ticket);
        Ok(Prepared::Run(Box::new(job)))
    }

    async fn prepare_completion(&self, params: Option<&RawValue>, ticket: Ticket) -> Result<Prepared, RpcError> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            r#ref: &'a RawValue,
            #[serde(borrow)]
            argument: &'a RawValue,
            #[serde(borrow)]
            context: Option<&'a RawValue>,
        }
        let offer = self.rest().await?.filter(|offer| offer.surface.completions);
        let offer = offer.ok_or_else(|| RpcError::method_not_found("completion/complete"))?;
        let given: Params<'_> = self.params(params).await?;
        let input = json!({ "ref": given.r#ref, "argument": given.argument, "context": given.context }).to_string();
        check_arguments(input.as_bytes(), offer.sandboxed.permit.limits())
            .map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let job = self.job(offer, Method::Complete, "", Bytes::from(input), ticket);
        Ok(Prepared::Run(Box::new(job)))
    }

    fn job(&self, offer: Arc<Offer>, method: Method, name: &str, input: Bytes, ticket: Ticket) -> Job {
        Job {
            offer,
            method,
            name: name.to_owned(),
            input,
            tenant: self.tenant.clone(),
            caller: self.caller.clone(),
            ticket,
            digest: OnceLock::new(),
            _hold: self.hold.clone(),
        }
    }

    /// Computes what would keep others waiting on a thread of its own.
    pub async fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.app.aside(&self.tenant, &self.caller, work).await
    }

    /// `params` as a type of ours, or the protocol's error; aside where they are long.
    pub async fn params<'a, T: Deserialize<'a>>(&self, params: Option<&'a RawValue>) -> Result<T, RpcError> {
        match params {
            Some(long) if long.get().len() > QUICK_BYTES => self.aside(|| envelope::params(Some(long))).await,
            short => envelope::params(short),
        }
    }

    /// A call that was refused before it ran is written down as well.
    fn note_refusal(&self, mut job: Job, outcome: &str) {
        let mut trace = std::mem::take(&mut job.ticket.trace);
        trace.next("validate");
        self.app.metrics.call(&CallSeen {
            wall: &job.offer.record.manifest.wall,
            method: job.method.as_str(),
            outcome,
            time: self.arrival.at.elapsed(),
            wait: Duration::ZERO,
            cpu_us: 0,
        });
        let record = &job.offer.record;
        let event = CallEvent {
            tenant: record.tenant.clone(),
            server: record.server.clone(),
            caller: self.caller.subject.clone(),
            method: job.method.as_str().to_owned(),
            name: job.name.clone(),
            deployment: record.id.clone(),
            wall: record.manifest.wall.clone(),
            outcome: outcome.to_owned(),
            arguments_sha256: job.digest().to_owned(),
            trace: trace.id(),
            ..CallEvent::default()
        };
        job.ticket.admission.audit(call::line_bytes(&event));
        self.app.audit(AuditEvent::Call(event));
        call::end_trace(trace, &job, None, outcome, 0);
    }

    /// What a state or a question belongs to: this caller, here, asking exactly this of this deployment.
    pub fn bound_to(&self, deployment: &str, method: Method, name: &str, input: &[u8]) -> String {
        let mut hash = Sha256::new();
        // A client may write the same arguments in another way the second time.
        let canonical =
            serde_json::from_slice::<Value>(input).map_or_else(|_| input.to_vec(), |v| v.to_string().into_bytes());
        for part in [
            self.tenant.name.as_bytes(),
            self.server_name().unwrap_or_default().as_bytes(),
            deployment.as_bytes(),
            self.caller.subject.as_bytes(),
            method.as_str().as_bytes(),
            name.as_bytes(),
            &canonical,
        ] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex::encode(hash.finalize())
    }
}

fn quarantined(server: &str, reason: &str) -> RpcError {
    let message = format!("server `{server}` is in quarantine: {reason}");
    RpcError::new(StatusCode::OK, -32603, message).with_data(json!({ "code": "quarantined", "reason": reason }))
}

/// Only a proposal makes a server without making its deployment current.
fn awaiting_approval(server: &str) -> RpcError {
    let message = format!("server `{server}` awaits approval: nobody has agreed to its first deployment yet");
    let hint = "an admin or a deploy key other than the proposer's agrees with `bulkhead approve`";
    RpcError::new(StatusCode::OK, -32603, message).with_data(json!({ "code": "awaiting_approval", "hint": hint }))
}

pub fn unknown_resource(era: Era, uri: &str) -> RpcError {
    let shown: String = uri.chars().take(256).collect();
    let error = RpcError::invalid_params(format!("there is no resource `{shown}`")).with_data(json!({ "uri": shown }));
    match era {
        Era::Modern => error,
        Era::Legacy(_) => RpcError { code: -32002, ..error },
    }
}

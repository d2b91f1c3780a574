//! What one call does at the door. Everything it opened ends with it.

use crate::denied::{Denied, quote};
use crate::door::Inner;
use crate::download::Download;
use crate::exchange::{Ask, Exchange, Head};
use crate::ledger::{self, Ledger, Record};
use crate::meta::{CancelMeta, FetchMeta, Of, ReadMeta, WriteMeta, read};
use crate::pass::{Pass, Reply};
use crate::upload::{Piece, Pieces, Source};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A request that the code inside can still name.
struct Open {
    /// Until the last piece was sent.
    upload: Option<mpsc::Sender<Piece>>,
    uploaded: u64,
    download: Option<Arc<tokio::sync::Mutex<Download>>>,
    /// Whether the response's headers are there: what is still sent then goes nowhere, which is no error.
    answered: bool,
    cancel: CancellationToken,
}

impl Open {
    fn is_over(&self) -> bool {
        self.answered && self.upload.is_none() && self.download.is_none()
    }
}

/// One call's requests. Each host call of the four is answered by [`Visit::call`]; several may be under way at once.
pub struct Visit {
    pub(crate) door: Arc<Inner>,
    pub(crate) pass: Arc<Pass>,
    pub(crate) ledger: Arc<Ledger>,
    open: Mutex<HashMap<u64, Open>>,
    gone: CancellationToken,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.close();
    }
}

impl Visit {
    pub(crate) fn new(door: Arc<Inner>, pass: Pass) -> Visit {
        let ledger = Arc::new(Ledger::new(pass.budget.clone(), pass.watch.clone()));
        Visit { door, pass: Arc::new(pass), ledger, open: Mutex::default(), gone: CancellationToken::new() }
    }

    /// Whether [`Visit::call`] knows a host call of this name.
    pub fn knows(operation: &str) -> bool {
        ["fetch", "fetch_write", "fetch_read", "fetch_cancel"].contains(&operation)
    }

    /// Answers one host call. A request is known by its number from the first poll on.
    pub async fn call(&self, operation: &str, meta: &str, body: Bytes) -> Result<Reply, Denied> {
        match operation {
            "fetch" => self.fetch(read(meta)?, body).await,
            "fetch_write" => self.write(read(meta)?, body).await,
            "fetch_read" => self.read(read(meta)?).await,
            "fetch_cancel" => self.cancel(read(meta)?),
            other => Err(Denied::invalid(format!("there is no operation {}", quote(other)))),
        }
    }

    /// Every decision so far; requests that are still open are among them.
    pub fn records(&self) -> Vec<Record> {
        self.ledger.records()
    }

    /// Hosts that were connected to, each once.
    pub fn hosts_reached(&self) -> Vec<String> {
        self.ledger.hosts()
    }

    /// Names of the secrets that were put into requests, each once.
    pub fn credentials(&self) -> Vec<String> {
        self.ledger.credentials()
    }

    /// How many secrets were masked in what came back.
    pub fn masked(&self) -> u64 {
        self.ledger.masked()
    }

    pub fn bytes(&self) -> ledger::Bytes {
        self.ledger.bytes()
    }

    /// Ends everything, for when the call is over and something still holds on to its visit.
    pub fn close(&self) {
        self.gone.cancel();
        self.lock().clear();
    }

    pub(crate) fn exchange(&self) -> Exchange {
        let limits = &self.door.limits;
        Exchange {
            door: self.door.clone(),
            pass: self.pass.clone(),
            tenant: self.door.tenants.get(&self.pass.tenant, limits),
            ledger: self.ledger.clone(),
            deadline: tokio::time::Instant::now() + Duration::from_millis(limits.total_ms),
        }
    }

    /// Told when the visit is over.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    async fn fetch(&self, meta: FetchMeta, body: Bytes) -> Result<Reply, Denied> {
        let id = meta.id;
        let limits = &self.door.limits;
        if meta.stream && !body.is_empty() || meta.body_length.unwrap_or(0) != body.len() as u64 {
            return Err(Denied::invalid("the request's body is not what its description says"));
        }
        if body.len() as u64 > limits.request_bytes {
            return Err(too_long(limits.request_bytes));
        }
        if (meta.method == "GET" || meta.method == "HEAD") && (meta.stream || meta.body_length.is_some()) {
            return Err(Denied::invalid(format!("{} has no body", meta.method)));
        }
        let (source, upload) = match (meta.stream, meta.body_length) {
            (true, _) => {
                // One piece is taken while the one before is sent.
                let (sender, pieces) = mpsc::channel(1);
                (Source::Stream(Pieces { pieces, length: None }), Some(sender))
            }
            (false, Some(_)) => (Source::Whole(body), None),
            (false, None) => (Source::Nothing, None),
        };
        let cancel = self.gone.child_token();
        {
            let mut open = self.lock();
            if open.len() as u64 >= limits.open_per_call {
                let most = limits.open_per_call;
                return Err(Denied::limit(format!("the call has {most} requests open; read or cancel their bodies")));
            }
            if open.contains_key(&id) {
                return Err(Denied::invalid(format!("request {id} is open already")));
            }
            let new = Open { upload, uploaded: 0, download: None, answered: false, cancel: cancel.clone() };
            open.insert(id, new);
        }
        let guard = Unless { visit: self, id, kept: false };
        let FetchMeta { method, url, headers, redirect, .. } = meta;
        let exchange = self.exchange();
        let (head, download) = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Denied::cancelled("the request was cancelled")),
            done = exchange.run(Ask { method, url, headers, redirect, source }) => done?,
        };
        Ok(guard.keep(head, download))
    }

    async fn write(&self, meta: WriteMeta, chunk: Bytes) -> Result<Reply, Denied> {
        let (upload, cancel) = {
            let mut open = self.lock();
            let entry = open.get_mut(&meta.id).ok_or_else(|| unknown(meta.id))?;
            entry.uploaded = entry.uploaded.saturating_add(chunk.len() as u64);
            if entry.uploaded > self.door.limits.request_bytes {
                entry.cancel.cancel();
                return Err(too_long(self.door.limits.request_bytes));
            }
            let upload =
                entry.upload.clone().ok_or_else(|| Denied::invalid("the request takes no more of its body"))?;
            (upload, entry.cancel.clone())
        };
        let send = async {
            // Whoever answers without reading on has closed the other end.
            let mut taken = chunk.is_empty() || upload.send(Piece::Chunk(chunk)).await.is_ok();
            if meta.done {
                taken &= upload.send(Piece::End).await.is_ok();
            }
            taken
        };
        let taken = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Denied::cancelled("the request was cancelled")),
            taken = send => taken,
        };
        let mut open = self.lock();
        let entry = open.get_mut(&meta.id).ok_or_else(|| unknown(meta.id))?;
        if meta.done {
            entry.upload = None;
        }
        let lost = !taken && !entry.answered;
        if entry.is_over() {
            open.remove(&meta.id);
        }
        if lost { Err(Denied::network("the server takes no more of the request's body")) } else { Ok(Reply::empty()) }
    }

    async fn read(&self, meta: ReadMeta) -> Result<Reply, Denied> {
        let (download, cancel) = {
            let open = self.lock();
            let entry = open.get(&meta.id).ok_or_else(|| unknown(meta.id))?;
            (entry.download.clone().ok_or_else(|| unknown(meta.id))?, entry.cancel.clone())
        };
        let read = async { download.lock().await.read().await };
        let piece = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Denied::cancelled("the request was cancelled")),
            piece = read => piece,
        };
        let done = !matches!(piece, Ok(Some(_)));
        if done {
            let mut open = self.lock();
            if let Some(entry) = open.get_mut(&meta.id) {
                entry.download = None;
                if entry.is_over() || piece.is_err() {
                    open.remove(&meta.id);
                }
            }
        }
        Ok(Reply { meta: format!("{{\"done\":{done}}}"), body: piece?.unwrap_or_default() })
    }

    /// Never an error: what is over is over.
    fn cancel(&self, meta: CancelMeta) -> Result<Reply, Denied> {
        let mut open = self.lock();
        if let Some(entry) = open.get_mut(&meta.id) {
            match meta.of {
                Of::Body => entry.download = None,
                Of::Request => entry.cancel.cancel(),
            }
            if matches!(meta.of, Of::Request) || entry.is_over() {
                open.remove(&meta.id);
            }
        }
        Ok(Reply::empty())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a request unless it was answered, whichever way the fetch ends.
struct Unless<'a> {
    visit: &'a Visit,
    id: u64,
    kept: bool,
}

impl Unless<'_> {
    fn keep(mut self, head: Head, download: Option<Box<Download>>) -> Reply {
        self.kept = true;
        let has_body = download.is_some();
        let mut open = self.visit.lock();
        if let Some(entry) = open.get_mut(&self.id) {
            entry.answered = true;
            entry.download = download.map(|download| Arc::new(tokio::sync::Mutex::new(*download)));
            if entry.is_over() {
                open.remove(&self.id);
            }
        }
        let meta = serde_json::json!({
            "url": head.url,
            "redirected": head.redirected,
            "status": head.status,
            "statusText": head.reason,
            "headers": head.headers,
            "bodyId": has_body.then_some(self.id),
        });
        Reply { meta: meta.to_string(), body: Bytes::new() }
    }
}

impl Drop for Unless<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.visit.lock().remove(&self.id);
        }
    }
}

fn unknown(id: u64) -> Denied {
    Denied::invalid(format!("there is no open request {id}"))
}

fn too_long(most: u64) -> Denied {
    Denied::limit(format!("the request's body has more than {most} bytes (`request_bytes`)"))
}

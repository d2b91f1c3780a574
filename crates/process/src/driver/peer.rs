//! A handle on a program that is driven.

use super::call::{Answer, NewCall};
use super::{Order, Process, Reply};
use crate::peer::Params;
use crate::peer::greet::Greeting;
use sandbox::{HostRefusal, HostReply, Usage};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot};

/// What can be asked of a program. When the last one is dropped the program is killed.
#[derive(Clone)]
pub(crate) struct Peer {
    orders: mpsc::Sender<Order>,
    /// Only ever dropped. The driver's own has none.
    _wanting: Option<mpsc::Sender<Infallible>>,
    modern: Arc<AtomicBool>,
    alive: Arc<AtomicBool>,
    gave_way: Arc<AtomicBool>,
    process: Arc<dyn Process>,
}

impl Peer {
    /// The driver's own, which keeps nothing alive.
    pub(super) fn new(orders: mpsc::Sender<Order>, process: Arc<dyn Process>) -> Peer {
        let [modern, alive, gave_way] = [false, true, false].map(|value| Arc::new(AtomicBool::new(value)));
        Peer { orders, _wanting: None, modern, alive, gave_way, process }
    }

    pub(super) fn wanting(&self, handle: mpsc::Sender<Infallible>) -> Peer {
        Peer { _wanting: Some(handle), ..self.clone() }
    }

    pub(super) fn set_dead(&self) {
        self.alive.store(false, Ordering::Relaxed);
    }

    /// It takes no further call, for another tenant's sake.
    pub(super) fn give_way(&self) {
        self.gave_way.store(true, Ordering::Relaxed);
        self.set_dead();
    }

    pub(crate) fn gave_way(&self) -> bool {
        self.gave_way.load(Ordering::Relaxed)
    }

    pub(super) fn modern(&self) -> bool {
        self.modern.load(Ordering::Relaxed)
    }

    pub(crate) fn alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    pub(crate) fn process(&self) -> Arc<dyn Process> {
        self.process.clone()
    }

    /// Whether requests say in each what the newest revision wants to hear.
    pub(crate) fn set_modern(&self, modern: bool) {
        self.modern.store(modern, Ordering::Relaxed);
    }

    /// Sends a request and waits for its answer. When the program ends there is none, ever: who asks does so in a call
    /// ([`Peer::during`]), which ends then.
    pub(crate) async fn request(&self, call: Option<u64>, method: &'static str, params: Params) -> Reply {
        let (answer, answered) = oneshot::channel();
        let sent = self.orders.send(Order::Request { call, method, params, answer }).await;
        match (sent, answered.await) {
            (Ok(()), Ok(reply)) => reply,
            _ => std::future::pending().await,
        }
    }

    pub(crate) async fn notify(&self, method: &'static str) {
        // A program that has ended hears nothing, and its call is told.
        let _ = self.orders.send(Order::Notify(method)).await;
    }

    /// Asks the client of a call, as [`Peer::request`] does the server.
    pub(crate) async fn ask(&self, call: u64, meta: String) -> Result<HostReply, HostRefusal> {
        let (answer, answered) = oneshot::channel();
        let sent = self.orders.send(Order::Ask { call, meta, answer }).await;
        match (sent, answered.await) {
            (Ok(()), Ok(reply)) => reply,
            _ => std::future::pending().await,
        }
    }

    /// Whether the server's lists are what was read last. If so, each change from then on is looked at.
    pub(crate) async fn settle(&self, greeting: Arc<Greeting>) -> bool {
        let (settled, ready) = oneshot::channel();
        let sent = self.orders.send(Order::Settle(greeting, settled)).await;
        match (sent, ready.await) {
            (Ok(()), Ok(ready)) => ready,
            _ => std::future::pending().await,
        }
    }

    /// Does something within a call: under its limits, and with an end when the program ends. Who goes away abandons it.
    pub(crate) async fn during<T, W: Future<Output = T>>(
        &self,
        call: NewCall,
        work: impl FnOnce(u64) -> W,
    ) -> Result<(T, Usage), Answer> {
        let (call, mut over) = call.observed();
        let (number, numbered) = oneshot::channel();
        let limits = call.limits.clone();
        let lost = || Answer::lost(&limits);
        if self.orders.send(Order::Begin(call, number)).await.is_err() {
            return Err(lost());
        }
        let Ok(number) = numbered.await else { return Err(over.await.unwrap_or_else(|_| lost())) };
        let mut leaving = Leaving { orders: &self.orders, call: Some(number) };
        tokio::select! {
            biased;
            done = work(number) => {
                leaving.call = None;
                let (usage, used) = oneshot::channel();
                let sent = self.orders.send(Order::Finish(number, usage)).await;
                let used = if sent.is_ok() { used.await.ok() } else { None };
                // A program that ended with its answer was accounted for at its end.
                let usage = match used {
                    Some(usage) => usage,
                    None => over.await.map(|ended| ended.usage).unwrap_or_default(),
                };
                Ok((done, usage))
            }
            ended = &mut over => {
                leaving.call = None;
                Err(ended.unwrap_or_else(|_| lost()))
            }
        }
    }
}

/// A caller that goes away before its answer abandons its call.
struct Leaving<'a> {
    orders: &'a mpsc::Sender<Order>,
    call: Option<u64>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            // A full queue means a busy program; the call's own limits end it.
            let _ = self.orders.try_send(Order::Abandon(call));
        }
    }
}

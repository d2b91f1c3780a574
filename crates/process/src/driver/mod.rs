//! Drives one program: carries calls to it, answers what it asks, watches its limits, and kills it.
//!
//! One task has the program's three pipes and everything that is known of it. Whoever wants something of it has a
//! [`Peer`] and gives orders; when the last one is dropped, the program is killed.
//!
//! On one pipe a server does not say which call a message belongs to, except for progress. While one call is in flight
//! everything is that call's; while several of one session are, it is the newest one's. While calls of different
//! sessions are in flight, nobody is asked or told anything, because it might be somebody else's. So it is with the
//! connections that it makes to its proxy: they are that call's and end with it, or they are refused.

mod call;
mod clock;
mod outlet;
mod peer;
mod pipes;
mod relist;
mod speech;

pub(crate) use call::{Answer, NewCall};
pub(crate) use peer::Peer;
pub(crate) use pipes::Pipes;
pub(crate) use speech::answers;

use crate::peer::Params;
use crate::peer::greet::{Greeting, envelope};
use crate::peer::message::{Message, RpcError};
use crate::room::Place;
use crate::tail::Tail;
use crate::verdict::{Cause, Ended, verdict};
use call::Call;
use clock::Clock;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use outlet::Outlet;
use pipes::Event;
use policy::Limits;
use relist::Relisting;
use sandbox::{During, Failure, Future, HostRefusal, HostReply, Shows, Usage};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A program that has just been started.
pub(crate) struct Started {
    pub(crate) pipes: Pipes,
    /// What its proxy listens on.
    pub(crate) listener: Option<TcpListener>,
    pub(crate) process: Arc<dyn Process>,
}

/// What a program is, apart from its pipes.
pub(crate) trait Process: Send + Sync {
    /// CPU time and resident memory of all of it so far, read on another thread.
    fn measure(&self) -> Future<'static, Measured>;

    /// What was read last.
    fn last(&self) -> Option<Used>;

    /// The CPU time that was read last, unless it was asked for already.
    fn new_cpu(&self) -> Option<Duration>;

    /// It is ready, and has no more than its share of the CPU from now on, where 100 is a core.
    fn settle(&self, cpu_percent: u64) -> Result<(), Failure>;

    /// Kills it, unless it ends by itself within `grace`, and tells how it ended.
    fn end(&self, grace: Duration) -> Future<'static, Option<Ended>>;
}

/// A reading.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measured {
    Gone,
    /// There is none yet.
    Late,
    Used {
        used: Used,
        took: Duration,
        /// It holds more memory than it may, or does not let anybody see how much.
        exceeds: bool,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    pub(crate) memory: u64,
}

/// Orders that may wait for the driver; whoever comes then waits in its own task.
const ORDERS: usize = 64;

/// Requests in flight. A server that answers none is not sent any more.
const MOST_REQUESTS: usize = 256;

/// Answers to what nobody asked are dropped; after so many the server is taken for hostile.
const MOST_UNASKED: usize = 100;

/// Host calls in progress may hold this much of a server's bytes; beyond that it is not read from.
const PENDING_BYTES: usize = 4 << 20;

/// The greatest arguments that may wait to be read by a server, so many times; more than callers are let in at once.
const QUEUED_ARGUMENTS: u64 = 64;
const QUEUED_BESIDE: u64 = 64 << 10;

/// How long a program that has closed its standard output has to end by itself, so that its own status is seen.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) enum Order {
    Begin(NewCall, oneshot::Sender<u64>),
    Request {
        call: Option<u64>,
        method: &'static str,
        params: Params,
        answer: oneshot::Sender<Reply>,
    },
    Notify(&'static str),
    /// Questions to the client of a call, as `ask` has them.
    Ask {
        call: u64,
        meta: String,
        answer: oneshot::Sender<Result<HostReply, HostRefusal>>,
    },
    Finish(u64, oneshot::Sender<Usage>),
    Abandon(u64),
    /// The server is ready, unless its lists have changed since: then it is told so, and asks again. From then on each
    /// change is looked at.
    Settle(Arc<Greeting>, oneshot::Sender<bool>),
}

pub(crate) type Reply = Result<Box<RawValue>, RpcError>;

/// A request that has no answer yet.
struct Pending {
    call: Option<u64>,
    answer: oneshot::Sender<Reply>,
}

/// Something that was waited for on behalf of the server.
enum Settled {
    /// Its own question.
    Asked {
        id: Box<RawValue>,
        held: usize,
        reply: Result<HostReply, HostRefusal>,
        key: String,
    },
    /// A question of a round.
    Round {
        answer: oneshot::Sender<Result<HostReply, HostRefusal>>,
        held: usize,
        reply: Result<HostReply, HostRefusal>,
    },
    /// Somebody was told of something.
    Told,
    Listed(Result<Box<RawValue>, String>),
}

pub(crate) struct Driver {
    pipes: Pipes,
    outlet: Outlet,
    process: Arc<dyn Process>,
    /// Its part of the memory, given back when the program is gone.
    place: Place,
    limits: Limits,
    shows: Shows,
    orders: mpsc::Receiver<Order>,
    /// Ends when nobody has a handle any more.
    wanted: mpsc::Receiver<Infallible>,
    /// For what the driver itself asks of the server.
    own: Peer,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    pending: HashMap<u64, Pending>,
    last_request: u64,
    /// Requests whose callers have gone; an answer to one is no surprise.
    forgotten: BTreeSet<u64>,
    unasked: usize,
    settled: FuturesUnordered<Future<'static, Settled>>,
    pending_bytes: usize,
    relisting: Relisting,
    clock: Clock,
    /// Bytes that may still be said while no call is in flight.
    idle_left: u64,
    tail: Tail,
}

#[derive(Serialize)]
struct Outgoing<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

impl Driver {
    /// Starts the task that drives it.
    pub(crate) fn start(started: Started, limits: Limits, shows: Shows, place: Place) -> io::Result<Peer> {
        let Started { pipes, listener, process } = started;
        let (sender, orders) = mpsc::channel(ORDERS);
        let (handle, wanted) = mpsc::channel(1);
        let own = Peer::new(sender, process.clone());
        let peer = own.wanting(handle);
        let driver = Driver {
            pipes,
            outlet: Outlet::new(listener)?,
            process,
            place,
            clock: Clock::new(),
            limits,
            shows,
            orders,
            wanted,
            own,
            calls: BTreeMap::new(),
            last_call: 0,
            pending: HashMap::new(),
            last_request: 0,
            forgotten: BTreeSet::new(),
            unasked: 0,
            settled: FuturesUnordered::new(),
            pending_bytes: 0,
            relisting: Relisting::default(),
            idle_left: speech::IDLE_BYTES,
            tail: Tail::default(),
        };
        tokio::spawn(driver.run());
        Ok(peer)
    }

    async fn run(mut self) {
        let cause = loop {
            if let Err(cause) = self.step().await {
                break cause;
            }
        };
        self.own.set_dead();
        self.end(cause).await;
    }

    /// Waits for the next thing to happen and handles it. An error is the end of the program.
    async fn step(&mut self) -> Result<(), Cause> {
        // Asked first, because a server that never stops talking would keep the clock below from its turn.
        if self.clock.due() {
            return self.look().await;
        }
        if self.pipes.queued() as u64 > QUEUED_ARGUMENTS * (self.limits.argument_kb * 1024 + QUEUED_BESIDE) {
            return Err(Cause::Violation("it does not read what it is sent".to_owned()));
        }
        if self.own.gave_way() && self.idle() {
            return Err(Cause::GaveWay);
        }
        let read = self.pending_bytes < PENDING_BYTES;
        let due = self.clock.next();
        tokio::select! {
            Some(order) = self.orders.recv() => self.obey(order).await,
            _ = self.wanted.recv() => Err(Cause::Unwanted),
            () = self.place.told() => {
                self.own.give_way();
                Ok(())
            }
            Some(settled) = self.settled.next() => self.settle(settled),
            event = self.pipes.event(read, self.idle_left > 0) => match event {
                Ok(Event::Said(line)) => self.hear(line),
                Ok(Event::Muttered(line)) => self.mutter(&line),
                Ok(Event::Unanswered { id, error }) => self.unanswered(id, error),
                Ok(Event::Wrote) => Ok(()),
                Err(cause) => Err(cause),
            },
            stream = self.outlet.next() => {
                self.connect(stream);
                Ok(())
            }
            () = tokio::time::sleep_until(due) => self.look().await,
        }
    }

    /// No call is in flight that somebody waits for.
    fn idle(&self) -> bool {
        self.calls.values().all(|call| call.during == During::Initialisation)
    }

    async fn obey(&mut self, order: Order) -> Result<(), Cause> {
        match order {
            // Its caller takes another program.
            Order::Begin(..) if self.own.gave_way() => {}
            Order::Begin(call, number) => {
                let begun = self.begin(call).await;
                // Who has gone meanwhile cannot abandon what it knows no number of.
                if let Err(begun) = number.send(begun) {
                    self.abandon(begun).await;
                }
            }
            Order::Request { call, method, params, answer } => self.request(call, method, params, answer),
            Order::Notify(method) => {
                self.send(&Outgoing::<()> { jsonrpc: "2.0", id: None, method, params: None });
            }
            Order::Ask { call, meta, answer } => return self.ask_round(call, meta, answer),
            Order::Finish(call, usage) => {
                // Its caller may be gone by now.
                let used = self.finish(call).await;
                let _ = usage.send(used);
            }
            Order::Abandon(call) => self.abandon(call).await,
            Order::Settle(greeting, settled) => {
                let ready = self.relisting.settle(&greeting);
                if ready {
                    self.listen(&greeting);
                }
                // Its caller may be gone by now.
                let _ = settled.send(ready);
            }
        }
        Ok(())
    }

    fn send<T: Serialize>(&mut self, message: &T) {
        // Everything that is sent is made of text and JSON, so it is JSON.
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            self.pipes.send(line);
        }
    }

    fn request(&mut self, call: Option<u64>, method: &'static str, params: Params, answer: oneshot::Sender<Reply>) {
        if self.pending.len() >= MOST_REQUESTS {
            let message = format!("the server has {MOST_REQUESTS} requests that it has not answered");
            let _ = answer.send(Err(RpcError { code: crate::peer::message::INTERNAL_ERROR, message }));
            return;
        }
        self.last_request += 1;
        let id = self.last_request;
        let in_call = call.and_then(|call| self.calls.get(&call)).is_some_and(Call::has_host);
        let token = in_call.then(|| ("progressToken", crate::peer::raw(&id)));
        let modern = self.own.modern();
        let meta: Vec<_> = token.into_iter().chain(if modern { envelope() } else { Vec::new() }).collect();
        let mut params = params;
        if !meta.is_empty() {
            params.push(("_meta", crate::peer::raw(&Members(&meta))));
        }
        let params = Some(Members(&params));
        self.send(&Outgoing { jsonrpc: "2.0", id: Some(id), method, params });
        self.pending.insert(id, Pending { call, answer });
    }

    fn answered(&mut self, id: Option<u64>, outcome: Reply) -> Result<(), Cause> {
        let pending = id.and_then(|id| self.pending.remove(&id));
        match (pending, id) {
            (Some(pending), _) if pending.call.is_some() && self.relisting.busy() => {
                self.relisting.hold(pending.answer, outcome);
            }
            (Some(pending), _) => {
                // Its caller may be gone by now.
                let _ = pending.answer.send(outcome);
            }
            (None, Some(id)) if self.forgotten.remove(&id) => {}
            (None, _) => {
                self.unasked += 1;
                if self.unasked > MOST_UNASKED {
                    return Err(Cause::Violation("it answers what nobody asked".to_owned()));
                }
            }
        }
        Ok(())
    }

    /// The server has ended its answer to a request, which may have been in there.
    fn unanswered(&mut self, id: u64, error: RpcError) -> Result<(), Cause> {
        self.forgotten.remove(&id);
        if self.pending.contains_key(&id) { self.answered(Some(id), Err(error)) } else { Ok(()) }
    }

    fn hear(&mut self, line: Vec<u8>) -> Result<(), Cause> {
        let Some(messages) = crate::peer::message::read(&line) else {
            return self.noise(&line);
        };
        for message in messages {
            match message {
                Message::Answer { id, outcome } => self.answered(id, outcome)?,
                Message::Request { id, method, params } => self.asked(id, &method, params)?,
                Message::Notice { method, params } => self.told(&method, params)?,
            }
        }
        Ok(())
    }

    /// The program is over: kills it, finds out how it ended, and answers everybody still waiting.
    async fn end(mut self, cause: Cause) {
        // One that holds too much may keep the reading waiting as well, and goes on growing meanwhile.
        if !self.clock.excess() {
            self.read_cpu().await;
        }
        self.outlet = Outlet::default();
        let grace = if matches!(cause, Cause::Closed) { GRACE } else { Duration::ZERO };
        let ended = self.process.end(grace).await;
        // What it wrote last says why.
        self.pipes.drain(|line| self.tail.push(&String::from_utf8_lossy(&line))).await;
        let blamed = self.blamed(&cause);
        let full = self.clock.memory;
        for (number, call) in std::mem::take(&mut self.calls) {
            let own = if blamed.is_none_or(|blamed| blamed == number) { &cause } else { &Cause::Unwanted };
            let failure = verdict(own, ended.as_ref(), full, &call.limits, call.during, &self.tail);
            call.over(failure);
        }
    }
}

/// Members of an object, in their order.
struct Members<'a>(&'a [(&'static str, Box<RawValue>)]);

impl Serialize for Members<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

//! The two shapes of a compartment: for one call, and for many.

use crate::control;
use crate::driver::{Answer, Driver, IDLE_CPU, NewCall};
use crate::process::{Process, View};
use crate::verdict::Cause;
use crate::zygote::{Forked, Zygote};
use bytes::Bytes;
use isolate_wire::{Fork, Frame};
use jail::pidfd::Pace;
use policy::Limits;
use sandbox::{Code, Compartment, During, Failure, Future, Host, Request, Usage};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A process for one call: it waits for it, or is forked when it comes.
pub(crate) struct OneCall {
    driver: Mutex<Option<Driver>>,
    /// How it is to be forked, if it is not yet, and its end of the channel.
    order: Mutex<Option<(Fork, OwnedFd)>>,
    view: View,
    limits: Limits,
}

impl OneCall {
    pub(crate) fn waiting(driver: Driver, limits: Limits) -> OneCall {
        OneCall { view: driver.view(), driver: Mutex::new(Some(driver)), order: Mutex::default(), limits }
    }

    /// The call is in the channel before the process is there that reads it, so nobody waits for the other.
    pub(crate) fn on_request(zygote: &Arc<Zygote>, fork: Fork, limits: Limits) -> io::Result<OneCall> {
        let (stream, theirs) = control::pair()?;
        let driver = Driver::new(Forked { process: Process::expected(zygote), stream }, zygote.clone())?;
        let order = Mutex::new(Some((fork, theirs)));
        Ok(OneCall { view: driver.view(), driver: Mutex::new(Some(driver)), order, limits })
    }
}

fn take<T>(from: &Mutex<Option<T>>) -> Option<T> {
    from.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Compartment for OneCall {
    fn call<'a>(
        &'a self,
        request: &'a Request,
        host: Arc<dyn Host>,
        within: Duration,
    ) -> Future<'a, (Result<Bytes, Failure>, Usage)> {
        Box::pin(async move {
            let Some(mut driver) = take(&self.driver) else { return lost(&self.limits) };
            let (answer, answered) = oneshot::channel();
            let limits = self.limits.clone();
            driver.begin(NewCall { request: request.clone(), server: 0, limits, within, host, answer });
            let mut went = match take(&self.order) {
                Some((fork, channel)) if !driver.idle() => driver.order(&fork, channel).await,
                _ => Ok(()),
            };
            while went.is_ok() && !driver.idle() {
                went = driver.step().await;
            }
            if let Err(cause) = went {
                driver.end(cause).await;
            }
            answered.await.unwrap_or_else(|_| lost(&self.limits))
        })
    }

    fn alive(&self) -> bool {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// It has made itself ready with code of ours and waits. What it uses of the CPU beyond that is not for a call.
    fn ended(&self) -> Option<Code> {
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = driver.is_some() && self.order.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        if !waits || self.view.cpu_time()? < IDLE_CPU {
            return None;
        }
        *driver = None;
        Some(Code::CpuLimit)
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.view.cpu_time()
    }

    fn step_back(&self) {
        self.view.set_pace(Pace::Last);
    }
}

/// What can be asked of a process that serves many calls.
pub(crate) enum Order {
    Call(Box<NewCall>, oneshot::Sender<u32>),
    Abandon(u32),
    Load(Vec<u8>, Duration, oneshot::Sender<Frame>),
    End,
}

/// A process that serves calls until the last handle is dropped.
pub(crate) struct ManyCalls {
    orders: mpsc::Sender<Order>,
    alive: Arc<AtomicBool>,
    /// Why it was ended, where no call could be told, until somebody asks.
    ended: Arc<Mutex<Option<Code>>>,
}

/// Orders that may wait for the driver; callers beyond that wait in their own tasks.
const ORDERS: usize = 64;

impl ManyCalls {
    /// Starts the task that drives it. An error when its CPU time cannot be held.
    pub(crate) fn start(driver: Driver) -> io::Result<ManyCalls> {
        let mut driver = driver.hold_cpu()?;
        let (orders, mut incoming) = mpsc::channel(ORDERS);
        let alive = Arc::new(AtomicBool::new(true));
        let ended = Arc::new(Mutex::default());
        let (still, why) = (alive.clone(), ended.clone());
        tokio::spawn(async move {
            let cause = loop {
                tokio::select! {
                    order = incoming.recv() => match order {
                        Some(Order::Call(call, number)) => {
                            let _ = number.send(driver.begin(*call));
                        }
                        Some(Order::Abandon(id)) => driver.abandon(id),
                        Some(Order::Load(frame, cpu, answer)) => driver.load(frame, cpu, answer),
                        Some(Order::End) | None => break Cause::Closed,
                    },
                    step = driver.step() => if let Err(cause) = step {
                        break cause;
                    },
                }
            };
            if driver.idle() {
                *why.lock().unwrap_or_else(PoisonError::into_inner) = cause.of_the_host();
            }
            still.store(false, Ordering::Relaxed);
            driver.end(cause).await;
        });
        Ok(ManyCalls { orders, alive, ended })
    }

    pub(crate) fn alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// Told once, however many servers are in it.
    pub(crate) fn ended(&self) -> Option<Code> {
        take(&self.ended)
    }

    /// Loads a server, which may use `cpu`.
    pub(crate) async fn load(&self, frame: Vec<u8>, cpu: Duration) -> Option<Frame> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Load(frame, cpu, answer)).await.ok()?;
        answered.await.ok()
    }

    /// Ends the process; its calls in flight are lost through no fault of theirs.
    pub(crate) async fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
        // If nobody takes orders any more it has ended already.
        let _ = self.orders.send(Order::End).await;
    }

    async fn call(&self, call: NewCall, answered: oneshot::Receiver<Answer>) -> Option<Answer> {
        let (number, numbered) = oneshot::channel();
        self.orders.send(Order::Call(Box::new(call), number)).await.ok()?;
        let mut waiting = Waiting { orders: &self.orders, id: numbered.await.ok() };
        let answer = answered.await.ok();
        waiting.id = None;
        answer
    }
}

/// A caller that goes away before its answer has its call aborted.
struct Waiting<'a> {
    orders: &'a mpsc::Sender<Order>,
    id: Option<u32>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // A full queue means a busy compartment; the call's own limits end it.
            let _ = self.orders.try_send(Order::Abandon(id));
        }
    }
}

/// One server in a process that serves many calls.
pub(crate) struct Shared {
    pub(crate) process: Arc<ManyCalls>,
    pub(crate) server: u32,
    pub(crate) limits: Limits,
}

impl Compartment for Shared {
    fn call<'a>(
        &'a self,
        request: &'a Request,
        host: Arc<dyn Host>,
        within: Duration,
    ) -> Future<'a, (Result<Bytes, Failure>, Usage)> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let (limits, server) = (self.limits.clone(), self.server);
            let call = NewCall { request: request.clone(), server, limits, within, host, answer };
            self.process.call(call, answered).await.unwrap_or_else(|| lost(&self.limits))
        })
    }

    fn alive(&self) -> bool {
        self.process.alive()
    }

    fn ended(&self) -> Option<Code> {
        self.process.ended()
    }
}

fn lost(limits: &Limits) -> Answer {
    (Err(Failure::of_end(Code::CompartmentLost, limits, During::Call)), Usage::default())
}

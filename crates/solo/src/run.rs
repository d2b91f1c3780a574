//! The whole of it: from options to the server's end.

use crate::cell;
use crate::complaint::Complaints;
use crate::error::Error;
use crate::explain::explain;
use crate::guard::Lookout;
use crate::options::Options;
use crate::outlet;
use crate::plan::{Plan, Start};
use crate::ports;
use crate::relay::{self, Event};
use crate::supervise::{self, Watch, Watcher};
use crate::trust::Trust;
use crate::voice::Voice;
use install::{Order, PACKAGE, Surroundings};
use jail::cgroup::Manager;
use jail::program::Child;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// A server whose client has said its last may finish what it does, for so long.
const FINISH: Duration = Duration::from_secs(10);
/// A server that was asked to end has so long for it.
const GRACE: Duration = Duration::from_secs(3);
/// What the server has written has so long to reach the client.
const FLUSH: Duration = Duration::from_secs(5);
/// How often somebody looks for what could not be kept from being created.
const LOOK_OUT: Duration = Duration::from_secs(5);
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status, or 128 and the signal that ended it, as shells have it.
    pub status: i32,
}

/// Runs the server behind this process's own stdin, stdout and stderr, until either side ends.
///
/// A thread may still wait for stdin when this returns: the caller should exit.
pub async fn run(options: Options) -> Result<Ended, Error> {
    let around = Surroundings::here()?;
    let mut plan = Plan::new(&options, &around)?;
    let voice = Voice::default();
    if options.explain {
        explain(&plan).lines().for_each(|line| voice.say(line));
    } else {
        plan.hints.iter().for_each(|hint| voice.say(hint));
    }
    // Before anything is started, so that nothing is missed.
    let mut signals = Signals::new()?;
    let groups = install::groups().map(Arc::new);
    let trust = Trust::needed(&plan)?;
    let mut others = None;
    let child = loop {
        let started = tokio::select! {
            started = start(&plan, &around, groups.clone(), trust.as_ref(), &voice) => started,
            status = signals.next() => return Ok(Ended { status }),
        };
        if !matches!(&started, Err(Error::Install(install::Error::Interpreter { .. }))) {
            break started?;
        }
        let others = others.get_or_insert_with(|| plan.other_interpreters(&options, &around).into_iter());
        let Some(next) = others.next() else { break started? };
        voice.say(&format!("the package is not for this Python; the next one here is {next}"));
        plan = Plan::new(&Options { interpreter: Some(next), ..options.clone() }, &around)?;
    };
    Session::new(&plan, child, trust, voice)?.last(signals).await
}

/// Installs what has to be installed, and starts the server.
async fn start(
    plan: &Plan,
    around: &Surroundings,
    groups: Option<Arc<Manager>>,
    trust: Option<&Trust>,
    voice: &Voice,
) -> Result<Child, Error> {
    let mut arguments = plan.arguments.clone();
    let mut variables = plan.variables.clone();
    let (program, package) = match &plan.start {
        Start::Program(program) => (program.to_string_lossy().into_owned(), None),
        Start::Package { package, interpreter } => {
            let (interpreter, groups) = (interpreter.clone(), groups.clone());
            let (offline, refresh, scripts) = (plan.offline, plan.refresh, plan.scripts);
            let say = |line: &str| voice.say(line);
            let say = &say;
            let order = Order { package, interpreter, scripts, around, groups, offline, refresh, say };
            let installed = install::install(&order).await?;
            for (name, value) in installed.environment {
                variables.entry(name).or_insert(value);
            }
            let inside = |file: String| format!("{PACKAGE}/{file}");
            let mut command = installed.command.into_iter();
            let first = command.next().unwrap_or_default();
            let program = if first == package.source.interpreter() {
                arguments.splice(0..0, command.map(inside));
                order.interpreter.to_string_lossy().into_owned()
            } else {
                inside(first)
            };
            (program, Some(installed.folder))
        }
    };
    for (name, value) in trust.into_iter().flat_map(Trust::variables) {
        variables.entry(name).or_insert(value);
    }
    let tree = cell::tree(plan, package.as_deref(), trust);
    let spawned = tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let variables: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        tree.spawn(groups.as_deref(), &program, &arguments, &variables)
    });
    Ok(spawned.await.map_err(|error| Error::Relay(error.into()))??)
}

/// What a client or a person at the terminal sends to end it.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Signals, Error> {
        let on = |kind| signal(kind).map_err(Error::Relay);
        let (terminate, interrupt) = (on(SignalKind::terminate())?, on(SignalKind::interrupt())?);
        Ok(Signals { terminate, interrupt, hang_up: on(SignalKind::hangup())? })
    }

    /// The status of whoever ends by it.
    async fn next(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.hang_up.recv() => SignalKind::hangup(),
        };
        128 + kind.as_raw_value()
    }
}

/// A running server with its client.
struct Session {
    child: Child,
    events: UnboundedReceiver<Event>,
    watcher: Watcher,
    plan: Plan,
    voice: Voice,
    /// Dropped with the session, and all connections with it.
    _outlet: Option<tokio::task::JoinSet<()>>,
    _ports: tokio::task::JoinSet<()>,
    complaints: Complaints,
    lookout: Lookout,
    /// When it is asked to end, and when it is killed.
    ask_at: Instant,
    kill_at: Instant,
    undelivered: usize,
}

impl Session {
    fn new(plan: &Plan, mut child: Child, trust: Option<Trust>, voice: Voice) -> Result<Session, Error> {
        let authority = trust.map(|trust| trust.authority);
        let tcp = if plan.offline { &[] } else { plan.tcp.as_slice() };
        let ports = ports::open(tcp, &child, &voice)?;
        let open = |listener| outlet::open(plan, listener, authority, &voice);
        let outlet = child.take_listener().map(open).transpose()?;
        let complaints = Complaints::new(&voice);
        let events = relay::start(&mut child, &voice, &complaints).map_err(Error::Relay)?;
        let watch = Watch::new(plan.limits, child.held());
        let watcher = Watcher::start(watch, child.meter()).map_err(Error::Relay)?;
        let never = Instant::now() + NEVER;
        Ok(Session {
            child,
            events,
            watcher,
            plan: plan.clone(),
            voice,
            _outlet: outlet,
            _ports: ports,
            complaints,
            lookout: Lookout::new(&plan.guarded),
            ask_at: never,
            kill_at: never,
            undelivered: 2,
        })
    }

    /// Until its end.
    async fn last(mut self, mut signals: Signals) -> Result<Ended, Error> {
        let mut look_out = tokio::time::interval(LOOK_OUT);
        look_out.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::ServerEnded) | None => break,
                    Some(event) => self.hear(event),
                },
                _ = signals.next() => self.ask(),
                () = tokio::time::sleep_until(self.ask_at) => self.ask(),
                () = tokio::time::sleep_until(self.kill_at) => self.kill(),
                _ = look_out.tick() => self.look_out(),
                why = self.watcher.reason() => {
                    self.voice.say(&format!("killed: {why}"));
                    self.kill();
                }
            }
        }
        let exit = self.child.wait()?;
        // The pipes end with the last process of the jail; a client that does not read may miss the rest.
        let rest = async {
            while self.undelivered > 0
                && let Some(event) = self.events.recv().await
            {
                self.undelivered -= usize::from(matches!(event, Event::OutputDone | Event::ErrorsDone));
            }
        };
        let _ = tokio::time::timeout(FLUSH, rest).await;
        if self.child.killed_for_memory() > 0 {
            self.voice.say(&format!("killed: {}", supervise::over_memory(&self.plan.limits)));
        }
        self.look_out();
        let status = exit.code.unwrap_or_else(|| 128 + exit.signal.unwrap_or_default());
        self.complaints.ended(&self.plan);
        Ok(Ended { status })
    }

    fn look_out(&mut self) {
        self.lookout.look().iter().for_each(|line| self.voice.say(line));
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::ClientDone => self.ask_at = self.ask_at.min(Instant::now() + FINISH),
            Event::ClientGone => self.ask(),
            Event::OutputDone | Event::ErrorsDone => self.undelivered -= 1,
            Event::ServerEnded => {}
        }
    }

    /// Asks once; then it has some time.
    fn ask(&mut self) {
        // If it cannot be asked, it is killed soon anyway.
        let _ = self.child.terminate();
        let now = Instant::now();
        self.ask_at = now + NEVER;
        self.kill_at = self.kill_at.min(now + GRACE);
    }

    fn kill(&mut self) {
        self.child.kill();
        self.kill_at = Instant::now() + NEVER;
    }
}

//! What every wall must do, whatever it is made of: a list of cases for a test binary to run.
//!
//! The author of a wall hands in a [`Subject`]: the wall, the program of a server for each [`Behaviour`], and what the
//! wall cannot do by nature. Every case drives the wall through a [`crate::Pool`] while a neighbour of another tenant
//! works on the same wall, and fails if the neighbour notices anything. A case that fails panics.
//!
//! Cases run one at a time: some look at, or kill, all processes of the wall.

mod boundaries;
mod going_away;
mod limits;
mod losses;
mod neighbour;
mod places;
mod receipts;
mod stage;
mod starts;
mod watched;

use crate::{Future, Program, Wall};
use neighbour::Neighbour;
use stage::Stage;
use std::sync::Arc;

/// What a server of the suite does. Each has one tool, `run`, whose input is an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// Gives back its input.
    Echo,
    /// Gives how many calls this very instance has served, this one included, as a bare number.
    Count,
    /// As `Count`, and logs a line and makes a host call once it has answered.
    Linger,
    /// Computes without end.
    Spin,
    /// Takes memory without end, and does not spend its CPU time otherwise.
    Hoard,
    /// Waits without end, and does not listen when it is told to stop.
    Sleep,
    /// Logs without end.
    Shout,
    /// Gives a result of about 64 KiB.
    Bulky,
    /// Makes host calls without end, one after the other, and goes on when they are refused.
    Ask,
    /// Fails with the message `broken on purpose`.
    Fail,
    /// Ends its own compartment by a fault.
    Crash,
    /// Fails to initialise with the message `broken on purpose`.
    FailToStart,
    /// Computes without end while it initialises.
    SpinAtStart,
    /// Waits without end while it initialises.
    SleepAtStart,
    /// Takes memory without end while it initialises.
    HoardAtStart,
    /// Does what `{"do": …}` says: `count`, `spin`, `sleep` as above; `log` logs `five!`, `ask` makes one host call
    /// and `burn` computes for some ten milliseconds, and all give null; `ask_then_sleep` and
    /// `log_then_sleep` do so once and then wait without end.
    Obey,
}

/// What a wall may lack by its nature; the cases that need it are then left out, and the test binary says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Runs modules, rather than commands.
    Module,
    /// Measures the CPU time of a call.
    CpuTime,
    /// Tells a compartment that ran out of memory from one that failed otherwise.
    Memory,
    /// Counts host calls.
    HostCalls,
    /// Counts log output.
    Logs,
    /// Serves several calls of one compartment side by side.
    SideBySide,
    /// Has boundary `tenant`.
    Tenant,
    /// Can express [`Behaviour::Crash`].
    Crash,
    /// Compartments and seeds can be seen and killed from outside ([`Subject::outside`]).
    Outside,
}

/// A look at the wall from outside, as an operator or the kernel has it.
#[derive(Clone, Copy)]
pub struct Outside {
    /// How many processes, machines or the like live for compartments and seeds, whatever is kept for all of them
    /// not counted.
    pub living: fn() -> usize,
    /// Kills all that hold a seed, and waits for nothing.
    pub kill_seeds: fn(),
    /// Kills all compartments, and waits for nothing.
    pub kill_compartments: fn(),
}

/// A wall to be tested.
pub struct Subject {
    pub wall: Arc<dyn Wall>,
    pub program: fn(Behaviour) -> Program,
    /// What a tool gave, as JSON text, from the wall's answer: servers that speak MCP give it within a result.
    pub value: fn(&[u8]) -> String,
    pub lacks: &'static [Capability],
    pub outside: Option<Outside>,
}

impl Subject {
    fn has(&self, capability: Capability) -> bool {
        let given = capability != Capability::Outside || self.outside.is_some();
        given && !self.lacks.contains(&capability)
    }
}

/// One thing a wall must do.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    needs: &'static [Capability],
    run: fn(Arc<Stage>) -> Future<'static, ()>,
    /// False where the case itself takes away what the neighbour stands on; its calls must succeed all the same.
    keeps_seeds: bool,
}

impl Case {
    /// What the subject lacks for this case.
    pub fn lacks(&self, subject: &Subject) -> Option<Capability> {
        self.needs.iter().copied().find(|need| !subject.has(*need))
    }

    /// Runs it beside a neighbour, and panics if either is not served as it must be.
    pub async fn run(&self, subject: Arc<Subject>) {
        let neighbour = Neighbour::start(&subject).await;
        (self.run)(neighbour.stage(subject)).await;
        neighbour.stop(self.keeps_seeds).await;
    }
}

/// All cases.
pub fn cases() -> Vec<Case> {
    [
        limits::cases(),
        starts::cases(),
        boundaries::cases(),
        places::cases(),
        going_away::cases(),
        receipts::cases(),
        losses::cases(),
    ]
    .concat()
}

/// A case from an async function, named after it, with what it needs of the wall.
macro_rules! case {
    ($name:ident) => {
        case!($name,)
    };
    ($name:ident, $($need:ident),*) => {
        $crate::conformance::Case {
            name: stringify!($name),
            needs: &[$($crate::conformance::Capability::$need),*],
            run: |stage| Box::pin($name(stage)),
            keeps_seeds: true,
        }
    };
}
use case;

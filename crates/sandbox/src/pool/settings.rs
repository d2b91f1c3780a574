//! How much a pool may hold, and what it holds.

use super::fair::{FairLimits, TURN};
use std::sync::OnceLock;
use std::time::Duration;

/// How much a pool may hold. All of it is bounded.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Calls at once, over all tenants. A call that waits for the network or for a timer counts.
    pub running: usize,
    /// Calls at once of one tenant: less than all, so that another one finds a place at once.
    pub running_per_tenant: usize,
    /// Calls at once of one deployment.
    pub running_per_deployment: usize,
    /// Callers that may wait for a place, over all tenants. Beyond that, the last in the line that is longest for its
    /// tenant's weight hears "busy".
    pub waiting: usize,
    /// Callers that may wait for one tenant; the next one hears "busy" at once.
    pub waiting_per_tenant: usize,
    /// Callers that may wait for one deployment.
    pub waiting_per_deployment: usize,
    /// How long a caller waits before it hears "busy".
    pub patience: Duration,
    /// How many processes may compete for the CPU: calls that compute, and compartments that grow.
    pub turns: usize,
    /// The same for one tenant: less than all, so that another one's call begins at once.
    pub turns_per_tenant: usize,
    /// Deployments that initialise at once, and those of one tenant.
    pub plants: usize,
    pub plants_per_tenant: usize,
    /// Compartments that wait ready per deployment with boundary `call`, at most. 0: every call grows its own.
    pub spares: usize,
    /// A deployment that nobody calls is let go after this.
    pub idle: Duration,
    /// Deployments held at once; for a new one, the tenant with the most lets its longest unused go.
    pub deployments: usize,
    /// Session compartments per deployment; beyond that a new session hears "busy".
    pub sessions: usize,
    /// A session's compartment that nobody calls is let go after this.
    pub session_idle: Duration,
}

impl Default for PoolSettings {
    fn default() -> PoolSettings {
        let turns = 2 * cores();
        PoolSettings {
            running: 128,
            running_per_tenant: 96,
            running_per_deployment: 32,
            waiting: 1024,
            waiting_per_tenant: 512,
            waiting_per_deployment: 128,
            patience: Duration::from_secs(5),
            turns,
            turns_per_tenant: turns * 3 / 4,
            plants: cores().max(2),
            plants_per_tenant: cores().div_ceil(2),
            spares: 8,
            idle: Duration::from_secs(60),
            deployments: 128,
            sessions: 64,
            session_idle: Duration::from_secs(300),
        }
    }
}

/// A turn is never longer than this, however much CPU time a call may use.
const LONGEST_TURN: Duration = Duration::from_secs(1);

impl PoolSettings {
    /// Of `memory` MiB one tenant gets three quarters at most, so that another one's call finds room.
    pub(super) fn calls(&self, memory: Option<u64>) -> FairLimits {
        let memory = memory.unwrap_or(u64::MAX);
        FairLimits {
            running: self.running,
            running_per_tenant: self.running_per_tenant,
            running_per_lane: self.running_per_deployment,
            waiting: self.waiting,
            waiting_per_tenant: self.waiting_per_tenant,
            waiting_per_lane: self.waiting_per_deployment,
            turns: self.turns.max(1) * TURN,
            turns_per_tenant: self.turns_per_tenant.max(1) * TURN,
            memory,
            memory_per_tenant: memory / 4 * 3,
        }
    }

    /// Planting takes turns only; who waits for one is a caller that has its place, or an author who deploys.
    pub(super) fn planting(&self) -> FairLimits {
        FairLimits {
            turns: self.plants.max(1) * TURN,
            turns_per_tenant: self.plants_per_tenant.max(1) * TURN,
            ..self.calls(None)
        }
    }

    /// As long as a call needs to use this CPU time while every turn is taken.
    pub(super) fn turn(&self, cpu_ms: u64) -> Duration {
        let share = u32::try_from(self.turns.div_ceil(cores()).max(1)).unwrap_or(u32::MAX);
        Duration::from_millis(cpu_ms).saturating_mul(share).clamp(Duration::from_millis(20), LONGEST_TURN)
    }
}

/// Asked once: the answer comes from files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(2, usize::from))
}

/// What a pool holds right now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolState {
    pub deployments: usize,
    pub spares: usize,
    pub shared: usize,
    pub running: usize,
    pub waiting: usize,
    /// Of those who wait, the most of one tenant.
    pub longest_line: usize,
}

//! The wall and its seeds.

use crate::compartment::{ManyCalls, OneCall};
use crate::instance::Instance;
use crate::launch::{Ground, Launcher};
use crate::room::{Need, Room};
use crate::settings::ProcessSettings;
use crate::warm::{Budget, Warm};
use jail::cgroup::{Availability, Group, Limits, Manager};
use sandbox::{Compartment, Deployment, Failure, Future, Growth, Seed, Wall};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why there is no wall.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WallError {
    #[error("the control groups of this host cannot be used")]
    Groups(#[source] jail::Error),
}

/// Programs in jails, that speak MCP over their standard input and output.
pub struct ProcessWall {
    ground: Arc<Ground>,
    budget: Arc<Budget>,
}

impl ProcessWall {
    pub fn start(settings: ProcessSettings) -> Result<ProcessWall, WallError> {
        let groups = if settings.groups { groups().map_err(WallError::Groups)? } else { None };
        let (groups, anchor) = groups.unzip();
        let system = jail::program::system(&settings.toolchains);
        let (budget, room) = (Arc::new(Budget::new(&settings)), Room::new(settings.memory_mb << 20));
        Ok(ProcessWall { ground: Arc::new(Ground { settings, groups, system, room, _anchor: anchor }), budget })
    }

    /// What it runs with, for people.
    pub fn posture(&self) -> String {
        let groups = match &self.ground.groups {
            Some(groups) if groups.limits_cpu() => "control groups for memory, processes and CPU",
            Some(_) => "control groups for memory and processes; CPU is measured",
            None => "no control groups: each process has its limits, and the host measures and kills",
        };
        format!("jails with seven namespaces, seccomp and landlock; {groups}")
    }
}

/// Where there are none, the limits of each process hold, and the host looks at all of it and kills.
fn groups() -> Result<Option<(Manager, Group)>, jail::Error> {
    let Availability::Available(manager) = Manager::open()? else { return Ok(None) };
    manager.sweep_stale()?;
    let anchor = anchor(&manager)?;
    Ok(Some((manager, anchor)))
}

/// A group with nothing in it. Whoever removes the last group of a host removes the place of all with it, and a program
/// that starts at that moment would find none.
fn anchor(groups: &Manager) -> Result<Group, jail::Error> {
    // Several walls in one host, as in tests, must not share a name.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let limits = Limits { memory_bytes: 1 << 20, processes: 1, cpu_percent: None };
    groups.create(&format!("process-{}", NEXT.fetch_add(1, Ordering::Relaxed)), &limits)
}

impl Wall for ProcessWall {
    fn name(&self) -> &'static str {
        "process"
    }

    fn plant(&self, deployment: Arc<Deployment>) -> Future<'_, Result<Arc<dyn Seed>, Failure>> {
        Box::pin(async move {
            let launcher = Launcher { ground: self.ground.clone(), deployment };
            let first = Instance::start(&launcher, Need::Now).await?;
            let surface = first.offered.surface.clone();
            let warm = Warm::new(launcher, self.budget.clone(), first);
            Ok(Arc::new(ProcessSeed { surface, warm }) as Arc<dyn Seed>)
        })
    }

    fn set_weight(&self, tenant: &str, weight: u32) {
        self.ground.room.set_weight(tenant, weight);
    }
}

/// A deployment that has shown its surface. Nothing is forked from it: each compartment is a program of its own, so it
/// never wears out.
///
/// Programs cannot share a process. With boundary `tenant` each server of the tenant has its own, as with `server`.
struct ProcessSeed {
    surface: Box<RawValue>,
    warm: Arc<Warm>,
}

impl Seed for ProcessSeed {
    fn surface(&self) -> &RawValue {
        &self.surface
    }

    fn grow(&self, growth: Growth) -> Future<'_, Result<Arc<dyn Compartment>, Failure>> {
        Box::pin(async move {
            let need = if growth == Growth::Spare { Need::Later } else { Need::Now };
            let instance = self.warm.take(need).await?;
            let limits = self.warm.limits().clone();
            Ok(match growth {
                Growth::OneCall | Growth::Spare => Arc::new(OneCall::new(instance, limits)) as Arc<dyn Compartment>,
                Growth::ManyCalls => Arc::new(ManyCalls { instance, limits }),
            })
        })
    }

    fn alive(&self) -> bool {
        true
    }

    fn worn(&self) -> bool {
        false
    }
}

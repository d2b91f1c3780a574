//! Memory that outlives calls: of compartments that stay, and of seeds. What nobody uses gives way to who needs it, by the
//! rule of [`crate::way`].

use super::Fair;
use crate::way::{self, Holding, Stage};
use std::collections::HashMap;
use tokio::sync::oneshot;

pub(super) struct Hold {
    tenant: usize,
    memory: u64,
    /// Calls in it or on their way to it, and whatever else cannot do without it.
    stays: usize,
    /// Grows with every use.
    since: u64,
    /// Hears that it gave way. What has none does not.
    told: Option<oneshot::Sender<()>>,
}

impl Hold {
    fn gives_way(&self) -> bool {
        self.stays == 0 && self.memory > 0 && self.told.is_some()
    }
}

impl Fair {
    /// Takes memory for something that outlives calls, if there is room or others give way.
    pub(in crate::pool) fn hold(&mut self, tenant: &str, memory: u64) -> Option<u64> {
        let index = self.tenant(tenant);
        let victims = self.room(index, memory)?;
        self.give_way(victims);
        self.tenants[index].memory += memory;
        self.memory += memory;
        let number = self.keep(index, memory);
        // Who can do without it may have waited behind somebody who cannot any more.
        self.dispatch();
        Some(number)
    }

    /// Hands memory on that was taken with a place.
    pub(in crate::pool) fn keep(&mut self, tenant: usize, memory: u64) -> u64 {
        let number = self.number();
        self.holds.insert(number, Hold { tenant, memory, stays: 0, since: number, told: None });
        number
    }

    /// From now on it gives way while nobody uses it, and then this hears of it.
    pub(in crate::pool) fn yields(&mut self, number: u64) -> oneshot::Receiver<()> {
        let (told, heard) = oneshot::channel();
        if let Some(hold) = self.holds.get_mut(&number) {
            hold.told = Some(told);
            self.dispatch();
        }
        heard
    }

    /// It is used: it does not give way until [`Fair::left`]. False when it has given way already.
    pub(in crate::pool) fn stay(&mut self, number: u64) -> bool {
        let there = self.holds.get_mut(&number).map(|hold| hold.stays += 1).is_some();
        self.dispatch();
        there
    }

    pub(in crate::pool) fn left(&mut self, number: u64) {
        let since = self.number();
        if let Some(hold) = self.holds.get_mut(&number) {
            (hold.stays, hold.since) = (hold.stays - 1, since);
            self.dispatch();
        }
    }

    /// Whether it was neither let go nor has given way.
    pub(in crate::pool) fn holds(&self, number: u64) -> bool {
        self.holds.contains_key(&number)
    }

    pub(in crate::pool) fn in_use(&self, number: u64) -> bool {
        self.holds.get(&number).is_some_and(|hold| hold.stays > 0)
    }

    /// Gives back what was held, unless it has given way.
    pub(in crate::pool) fn let_go(&mut self, number: u64) {
        if self.take_back(number).is_some() {
            self.dispatch();
        }
    }

    fn take_back(&mut self, number: u64) -> Option<Hold> {
        let hold = self.holds.remove(&number)?;
        self.tenants[hold.tenant].memory -= hold.memory;
        self.memory -= hold.memory;
        Some(hold)
    }

    pub(super) fn give_way(&mut self, victims: Vec<u64>) {
        for victim in victims {
            if let Some(told) = self.take_back(victim).and_then(|hold| hold.told) {
                // Who let go of it at this moment needs no word.
                let _ = told.send(());
            }
        }
    }

    /// What has to give way for a tenant to have so much more: nothing while there is room. `None`: there is not enough.
    pub(super) fn room(&self, tenant: usize, memory: u64) -> Option<Vec<u64>> {
        // Whatever the bounds, one at a time goes.
        let fits = |held: u64, most: u64| memory == 0 || held == 0 || held.saturating_add(memory) <= most;
        let (mut gone, mut freed, mut all) = (Vec::new(), HashMap::new(), self.memory);
        loop {
            let held = |tenant: usize| self.tenants[tenant].memory - freed.get(&tenant).copied().unwrap_or(0);
            let too_much_of_its_own = !fits(held(tenant), self.limits.memory_per_tenant);
            if !too_much_of_its_own && fits(all, self.limits.memory) {
                return Some(gone);
            }
            let level = |tenant: usize, more: u64| (held(tenant) + more) as f64 / self.tenants[tenant].weight;
            let idle = self.holds.iter().filter(|(number, hold)| hold.gives_way() && !gone.contains(*number));
            let holdings = idle.map(|(number, hold)| {
                let (level, own) = (level(hold.tenant, 0), hold.tenant == tenant);
                (*number, Holding { stage: Stage::Idle, level, own, since: hold.since })
            });
            let helpful = holdings.filter(|(_, holding)| holding.own || !too_much_of_its_own);
            let victim = way::first(level(tenant, memory), helpful)?;
            let hold = self.holds.get(&victim)?;
            *freed.entry(hold.tenant).or_default() += hold.memory;
            all -= hold.memory;
            gone.push(victim);
        }
    }
}

//! Who gives way to whom when memory is short: one rule for all walls.
//!
//! A tenant's level is what it holds, divided by its weight. What gives way, in this order: spares of anybody; what is idle
//! and belongs to a tenant whose level is at least that of the tenant in need; then what starts, and at last what is
//! busy, of tenants whose level is higher. The level of the tenant in need includes what it asks for. So a tenant takes
//! nothing from one that holds less, and what several tenants share comes to their shares.

/// In the order in which holdings give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It waits for its first call, whether it has started or not.
    Spare,
    /// It has served, and serves no call now.
    Idle,
    /// A call waits for it.
    Starting,
    Busy,
}

/// What one process or the like holds.
#[derive(Clone, Copy, Debug)]
pub struct Holding<S> {
    pub stage: Stage,
    /// The level of its tenant.
    pub level: f64,
    /// Whether the tenant in need holds it. What a tenant needs for its calls does not give way to itself; whether what is
    /// idle does is for the wall to say: it hands in such holdings, or keeps them.
    pub own: bool,
    /// Since when it is in its stage.
    pub since: S,
}

impl<S: Copy + PartialOrd> Holding<S> {
    fn gives_way(&self, level: f64) -> bool {
        match self.stage {
            Stage::Spare => true,
            // Between equals the tenant in need has it.
            Stage::Idle => self.own || self.level >= level,
            Stage::Starting | Stage::Busy => !self.own && self.level > level,
        }
    }

    /// The least goes first. Between equals a tenant's own goes before another's.
    fn rank(&self, level: f64) -> (Stage, f64, bool, S) {
        (self.stage, -if self.own { level } else { self.level }, !self.own, self.since)
    }
}

/// The first that gives way to a tenant that comes to this level. `None`: nothing does.
pub fn first<K, S: Copy + PartialOrd>(level: f64, holdings: impl IntoIterator<Item = (K, Holding<S>)>) -> Option<K> {
    let willing = holdings.into_iter().filter(|(_, holding)| holding.gives_way(level));
    let ranked = willing.map(|(key, holding)| (key, holding.rank(level)));
    ranked.reduce(|least, next| if next.1 < least.1 { next } else { least }).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(level: f64, stage: Stage, since: u32) -> Holding<u32> {
        Holding { stage, level, own: false, since }
    }

    fn chosen(level: f64, holdings: &[Holding<u32>]) -> Option<usize> {
        first(level, holdings.iter().copied().enumerate())
    }

    #[test]
    fn the_largest_holder_gives_way_first_and_its_oldest_before_its_others() {
        let idle = [of(2.0, Stage::Idle, 1), of(5.0, Stage::Idle, 9), of(5.0, Stage::Idle, 3)];
        assert_eq!(chosen(1.0, &idle), Some(2));
    }

    #[test]
    fn whoever_holds_less_gives_nothing() {
        for stage in [Stage::Idle, Stage::Starting, Stage::Busy] {
            assert_eq!(chosen(3.0, &[of(2.0, stage, 1)]), None);
        }
        assert_eq!(chosen(3.0, &[of(2.0, Stage::Spare, 1)]), Some(0));
        assert_eq!(chosen(3.0, &[of(3.0, Stage::Idle, 1)]), Some(0), "between equals what is idle does");
        assert_eq!(chosen(3.0, &[of(3.0, Stage::Busy, 1)]), None);
    }

    #[test]
    fn ones_own_go_before_those_of_an_equal_and_after_those_of_a_larger_holder() {
        let own = Holding { own: true, ..of(2.0, Stage::Idle, 9) };
        assert_eq!(chosen(3.0, &[of(3.0, Stage::Idle, 1), own]), Some(1));
        assert_eq!(chosen(3.0, &[of(4.0, Stage::Idle, 1), own]), Some(0));
        assert_eq!(chosen(3.0, &[Holding { stage: Stage::Busy, ..own }]), None, "never what is at work");
    }
}

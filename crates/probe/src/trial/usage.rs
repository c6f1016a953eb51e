//! What the kernel says that a loop used: CPU time precisely, and what its ticks sampled of it. Not
//! getrusage(2)'s own split: a process that saw one kind of tick only is all of that kind to it, and
//! a loop of a round sees one tick or none. Ticks can be added up over rounds.

use model::trial::loops::{
    CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS, CPU_NS, SAMPLED_NS, SAMPLED_USER_NS,
};
use rustix::io::Errno;

use super::Outcome;
use crate::sys::{CpuClock, Whose, cpu_clock_ns, usage};

/// The CPU clocks of a process; of one that has ended until it is reaped.
#[derive(Clone, Copy)]
pub(super) struct Clocks {
    cpu_ns: i64,
    sampled_ns: i64,
    sampled_user_ns: i64,
}

impl Clocks {
    pub(super) fn of(pid: i32) -> Result<Self, Errno> {
        let read = |which| cpu_clock_ns(pid, false, which).map(|ns| ns as i64);
        Ok(Self {
            cpu_ns: read(CpuClock::Precise)?,
            sampled_ns: read(CpuClock::TicksUserSystem)?,
            sampled_user_ns: read(CpuClock::TicksUser)?,
        })
    }

    const ZERO: Self = Self { cpu_ns: 0, sampled_ns: 0, sampled_user_ns: 0 };

    /// What was used from `before` on.
    fn since(&self, before: &Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            sampled_ns: self.sampled_ns - before.sampled_ns,
            sampled_user_ns: self.sampled_user_ns - before.sampled_user_ns,
        }
    }

    fn plus(&self, more: &Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns + more.cpu_ns,
            sampled_ns: self.sampled_ns + more.sampled_ns,
            sampled_user_ns: self.sampled_user_ns + more.sampled_user_ns,
        }
    }

    fn count(&self, names: [&str; 3], outcome: &mut Outcome) {
        let all = [self.cpu_ns, self.sampled_ns, self.sampled_user_ns];
        for (name, ns) in names.into_iter().zip(all) {
            outcome.count(name, ns);
        }
    }
}

/// What loops used, without what lies between them; and all switches from the first to the last.
pub(super) struct Accounts {
    pid: i32,
    /// None once a clock could not be read.
    own: Option<Clocks>,
    switches: u64,
}

impl Accounts {
    /// Switches from here on.
    pub(super) fn open() -> Self {
        Self { pid: std::process::id() as i32, own: Some(Clocks::ZERO), switches: switches() }
    }

    /// CPU time of this, by a reading of the clocks before and one after.
    pub(super) fn around<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let before = Clocks::of(self.pid).ok();
        let done = act();
        let after = Clocks::of(self.pid).ok();
        let sum = self.own.zip(before.zip(after));
        self.own = sum.map(|(own, (before, after))| own.plus(&after.since(&before)));
        done
    }

    /// Switches up to here; `child` is all that the second process used. A clock that cannot be read counts
    /// nothing.
    pub(super) fn close(&self, child: Option<Clocks>, outcome: &mut Outcome) -> Switches {
        if let Some(own) = self.own {
            own.count([CPU_NS, SAMPLED_NS, SAMPLED_USER_NS], outcome);
        }
        if let Some(child) = child {
            let names = [CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS];
            child.count(names, outcome);
        }
        Switches(switches().saturating_sub(self.switches))
    }
}

fn switches() -> u64 {
    let of = |whose| usage(whose).read().switches;
    of(Whose::Own) + of(Whose::Children)
}

/// Switches of both, voluntary and involuntary. Children's count once they have been waited for.
pub(super) struct Switches(pub(super) u64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::reference_quantum;
    use model::speed::Slices;

    #[test]
    fn what_lies_between_the_loops_is_not_counted() {
        let burn = || {
            let mut slices = Slices::with_room_for(100, 1);
            (0..100).for_each(|_| {
                reference_quantum(0, &mut slices);
            });
        };
        let cpu_ns = |with_loop: bool| {
            let mut accounts = Accounts::open();
            burn();
            if with_loop {
                accounts.around(burn);
            }
            burn();
            let mut outcome = Outcome::default();
            accounts.close(None, &mut outcome);
            outcome.counts[CPU_NS]
        };
        assert_eq!(cpu_ns(false), 0);
        assert!(cpu_ns(true) > 0);
    }
}

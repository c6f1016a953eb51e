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
    cpu_ns: u64,
    sampled_ns: u64,
    sampled_user_ns: u64,
}

impl Clocks {
    pub(super) fn of(pid: i32) -> Result<Self, Errno> {
        let read = |which| cpu_clock_ns(pid, false, which);
        Ok(Self {
            cpu_ns: read(CpuClock::Precise)?,
            sampled_ns: read(CpuClock::TicksUserSystem)?,
            sampled_user_ns: read(CpuClock::TicksUser)?,
        })
    }

    /// Counts what was used from `before` on.
    fn count(&self, before: &Self, names: [&str; 3], outcome: &mut Outcome) {
        let all = |of: &Self| [of.cpu_ns, of.sampled_ns, of.sampled_user_ns];
        for ((name, before), after) in names.into_iter().zip(all(before)).zip(all(self)) {
            outcome.count(name, after as i64 - before as i64);
        }
    }
}

/// The accounts at the start of a loop.
pub(super) struct Accounts {
    own: Option<Clocks>,
    switches: u64,
}

impl Accounts {
    /// From here on.
    pub(super) fn open() -> Self {
        let switches = |whose| usage(whose).read().switches;
        Self {
            own: Clocks::of(std::process::id() as i32).ok(),
            switches: switches(Whose::Own) + switches(Whose::Children),
        }
    }

    /// Up to here; `child` is all that the second process used. A clock that cannot be read counts nothing.
    pub(super) fn close(&self, child: Option<Clocks>, outcome: &mut Outcome) -> Switches {
        let now = Self::open();
        if let Some((before, after)) = self.own.zip(now.own) {
            after.count(&before, [CPU_NS, SAMPLED_NS, SAMPLED_USER_NS], outcome);
        }
        if let Some(child) = child {
            let none = Clocks { cpu_ns: 0, sampled_ns: 0, sampled_user_ns: 0 };
            let names = [CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS];
            child.count(&none, names, outcome);
        }
        Switches(now.switches.saturating_sub(self.switches))
    }
}

/// Switches of both, voluntary and involuntary. Children's count once they have been waited for.
pub(super) struct Switches(pub(super) u64);

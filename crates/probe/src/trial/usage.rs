//! What the kernel says that a loop used: the four accounts of times(2), with getrusage's precision.

use model::trial::loops::{CHILD_SYSTEM_NS, CHILD_USER_NS, SYSTEM_NS, USER_NS};

use super::Outcome;
use crate::sys::{Usage, Whose, usage};

/// The accounts at the start of a loop.
pub(super) struct Accounts {
    own: Usage,
    children: Usage,
}

impl Accounts {
    /// From here on.
    pub(super) fn open() -> Self {
        Self { own: usage(Whose::Own).read(), children: usage(Whose::Children).read() }
    }

    /// Up to here. Children count once they have been waited for.
    pub(super) fn close(&self, outcome: &mut Outcome) -> Switches {
        let now = Self::open();
        let mut count = |name: &str, before: u64, after: u64| {
            outcome.count(name, after as i64 - before as i64);
        };
        count(USER_NS, self.own.user_ns, now.own.user_ns);
        count(SYSTEM_NS, self.own.system_ns, now.own.system_ns);
        count(CHILD_USER_NS, self.children.user_ns, now.children.user_ns);
        count(CHILD_SYSTEM_NS, self.children.system_ns, now.children.system_ns);
        let switches = |usage: &Self| usage.own.switches + usage.children.switches;
        Switches(switches(&now).saturating_sub(switches(self)))
    }
}

/// Switches of both, voluntary and involuntary.
pub(super) struct Switches(pub(super) u64);

//! What the threads of a program did since the first look at them.

use std::collections::BTreeMap;

/// A thread: its id, and its start in the kernel's ticks, which tells it from a later one with the
/// same id.
pub(super) type Thread = (i32, u64);

/// Voluntary and involuntary switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Voluntary ones.
    pub voluntary: u64,
    /// Involuntary ones.
    pub involuntary: u64,
}

impl Switches {
    /// Both kinds.
    pub fn all(&self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// What a look found of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) switches: Switches,
    /// CPU time so far in nanoseconds; absent where the kernel does not tell.
    pub(super) cpu_ns: Option<u64>,
}

/// The switches of a program's threads, counted from the first look at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    before: BTreeMap<Thread, Seen>,
    last: BTreeMap<Thread, Seen>,
    /// Threads at the last look.
    pub threads: usize,
    /// Threads that ended between two looks: what they did after the last one is not counted.
    pub ended: usize,
}

impl Count {
    pub(super) fn see(&mut self, now: BTreeMap<Thread, Seen>) {
        if self.last.is_empty() {
            self.before.clone_from(&now);
        }
        let left = self.last.keys().filter(|thread| !now.contains_key(thread)).count();
        // `last` keeps those that have ended: each is gone only once.
        self.ended = left;
        self.threads = now.len();
        self.last.extend(now);
    }

    /// Since the first look. A thread that came later is counted from its start.
    pub fn switches(&self) -> Switches {
        let mut sum = Switches::default();
        for (thread, now) in &self.last {
            let before = self.before.get(thread).map(|seen| seen.switches).unwrap_or_default();
            let now = now.switches;
            sum.voluntary += now.voluntary.saturating_sub(before.voluntary);
            sum.involuntary += now.involuntary.saturating_sub(before.involuntary);
        }
        sum
    }

    /// CPU time of the threads that were seen, since the first look, in nanoseconds: what is missing to
    /// the process's clock was used by threads that came and ended between two looks. Absent where the
    /// kernel does not tell of one.
    pub fn cpu_ns(&self) -> Option<u64> {
        let since = |(thread, now): (&Thread, &Seen)| {
            let before = match self.before.get(thread) {
                Some(seen) => seen.cpu_ns?,
                None => 0,
            };
            now.cpu_ns?.checked_sub(before)
        };
        self.last.iter().map(since).sum()
    }
}

//! Every switch of the running system, for `trace`, `top` and `cost --pid`: from the tracer's
//! events to accounts and rows.
//!
//! The tracer's program in the kernel runs at each switch and adds it to maps of threads and pairs;
//! it hands over no single switch (but to a recording). Once a second the maps are read. They only
//! grow, so what happened in between is the difference of two looks:
//!
//! ```text
//! switchtrace   a switch: thread 813 could have run on, 57 got the CPU
//!                  -> thread 813: involuntary + 1, CPU time, length of its burst
//!                  -> pair 813 to 57: involuntary + 1
//! session       look at 2 s: thread 813: 40,000 voluntary, 40,000 involuntary; pair 813 to 57: 50
//!               look at 4 s:             80,000            80,000;                             100
//! account       the growth, by thread and by pair, since it began:
//!                            813: 40,000 voluntary, 40,000 involuntary;          813 to 57: 50
//! rows          in 2 s: postgres:io 813  20k sleeps, 20k preemptions a second,
//!               most often preempted by kworker/1:2, 25 times a second
//! ```
//!
//! A thread that is seen for the first time counts from its birth, if it was born since the last
//! look; an older one was left out for lack of room, and its past is of no use now.
//!
//! [`account`] and [`rows`] need no kernel. [`labels`] knows control groups and users, which the
//! tracer does not.

pub(crate) mod account;
pub(crate) mod labels;
pub(crate) mod rows;
pub(crate) mod session;
#[cfg(test)]
pub(crate) mod tests;

/// The subject of each row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GroupBy {
    Thread,
    Process,
    /// Control group; of a container the start of its id
    Cgroup,
    User,
}

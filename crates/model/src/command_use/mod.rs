//! What commands used: what the kernel counted of each run, and what several runs come to.
//!
//! Every formula and its source is in `docs/method.md`.

mod figures;
mod notices;
mod ratio;
mod record;
mod run;
mod split;
mod switching;

#[cfg(test)]
mod tests;

pub use figures::{Figure, Outlier, Summary};
pub use ratio::Ratio;
pub use record::{Plan, Record, SCHEMA, Switching, order};
pub use run::{AtExec, Delay, Ending, IoBytes, Orphans, Run, Sampled, Threads, Usage, Used};
pub use split::{CpuAccounting, Part, Split};

/// Fields of getrusage(2) that Linux leaves at zero: they are no counts.
pub const NOT_KEPT: [&str; 7] =
    ["ixrss", "idrss", "isrss", "nswap", "msgsnd", "msgrcv", "nsignals"];

//! The engine measures a run and keeps it.
//!
//! ```text
//! effort, setting, policies   what was typed -> a plan: cases, stopping rule, seed
//!        |
//! schedule    round 0:  case 2 | case 0 | case 1     each case once a round, shuffled,
//!             round 1:  case 0 | case 2 | case 1     until the figures are precise
//!        |    ...                                    or the budget is spent
//!        |
//! workers     one case of one round: `switchcost worker`, a fresh process.
//!        |    Its case goes to its standard input, samples come from its standard output.
//!        |
//! execute     each sample goes to the run in memory and to the run's file at once
//!        |
//! store       ~/.local/share/switchcost/runs/20260101T120000000Z-ring-4711.jsonl
//! ```
//!
//! `interrupt` (Ctrl-C) is waited for together with the worker's output, `progress` (the bar) is
//! drawn between workers: neither has a thread that could run while something is measured.

pub(crate) mod effort;
pub(crate) mod execute;
mod guard_process;
pub(crate) mod interrupt;
pub(crate) mod machine_setting;
pub(crate) mod machine_state;
pub(crate) mod policies;
pub(crate) mod progress;
pub(crate) mod schedule;
pub(crate) mod setting;
pub(crate) mod setting_watcher;
pub(crate) mod state_commands;
pub(crate) mod store;
pub(crate) mod worker_output;
pub(crate) mod workers;

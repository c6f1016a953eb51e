//! Switches of a program while it is watched, and who counted them.

use model::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::values::nanoseconds;
use crate::observe::live::session::Session;

/// Who counted a program's switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// The kernel's counts of each thread, read from /proc now and then: without the last ones of
    /// threads that ended, and without threads that came and ended in between.
    #[default]
    Proc,
    /// The kernel, told at the command's end by wait4(2): of the command and all children that were
    /// waited for.
    Wait4,
    /// The kernel's counts at each switch, by eBPF: of every thread, for as long as it lived.
    Tracepoints,
}

impl Source {
    /// Behind the counts: `read from /proc`.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Proc => "read from /proc",
            Self::Wait4 => "told by wait4",
            Self::Tracepoints => "counted by kernel tracepoints",
        }
    }
}

/// What was counted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counts {
    pub(super) source: Source,
    pub(super) watched_ns: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) yields: Reading<u64>,
    pub(super) migrations: Reading<u64>,
    pub(super) cpu_ns: Reading<u64>,
    /// How it was counted.
    pub(super) method: String,
    /// What is missing.
    pub(super) notices: Vec<String>,
}

impl Counts {
    /// By the tracer, until its last look.
    pub(crate) fn traced(session: &Session) -> Self {
        let used = session.account.total();
        let each = session.own().ns_per_switch;
        let each =
            each.known().map_or(String::new(), |ns| format!(", which takes {ns:.0} ns a switch"));
        let method = format!(
            "switches and CPU time are the kernel's counts at each switch (eBPF{each}): of every \
             thread, for as long as it lived; {} switches were yields, and threads moved to \
             another CPU {} times",
            used.yields, used.migrations
        );
        Self {
            source: Source::Tracepoints,
            watched_ns: nanoseconds(session.elapsed()),
            voluntary: used.voluntary,
            involuntary: used.involuntary,
            yields: Reading::Known(used.yields),
            migrations: Reading::Known(used.migrations),
            cpu_ns: Reading::Known(used.cpu_ns),
            method,
            notices: session.gaps(),
        }
    }
}

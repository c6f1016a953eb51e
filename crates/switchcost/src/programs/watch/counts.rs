//! Switches and CPU time of a program while it is watched, as the tracer or wait4(2) tells them.
//! `watcher` reads them from /proc where neither is available.

use analysis::program::Program;
use launcher::RunUsage;
use probe::program::SwitchCounts;
use rundata::reading::Reading;

use super::observation::{CountSource, OmittedChildren, ProgramObservation};
use crate::base::values::nanoseconds;
use crate::observe::live::session::TracerSession;

/// Reason why there are no counts of yields and migrations.
pub(super) const NOT_IN_PROC: &str = "not counted without tracing";

/// Says why there are no exact counts.
pub(super) fn untraced(why: &str) -> String {
    format!("exact counts, by tracing: {why}")
}

/// Returns the rates of a program that is still watched, from its counts in `elapsed_ns`.
pub(super) fn program_so_far(elapsed_ns: u64, switches: SwitchCounts, cpu_ns: u64) -> Program {
    let counts = [switches.voluntary, switches.involuntary, cpu_ns];
    let counts = counts.map(|count| Reading::Known(count as f64));
    Program::over(elapsed_ns as f64, counts, Reading::unknown("it is still watched"))
}

/// Returns the rates until the tracer's last look; absent before the first.
pub(super) fn traced_so_far(session: &TracerSession) -> Option<Program> {
    let elapsed_ns = nanoseconds(session.elapsed());
    if elapsed_ns == 0 {
        return None;
    }
    let used = session.account.total();
    let switches = SwitchCounts { voluntary: used.voluntary, involuntary: used.involuntary };
    Some(program_so_far(elapsed_ns, switches, used.cpu_ns))
}

impl ProgramObservation {
    /// Returns the counts of the tracer until its last look.
    pub(crate) fn from_tracer(session: &TracerSession) -> Self {
        let used = session.account.total();
        let overhead = match session.overhead().ns_per_switch.known() {
            Some(ns) => format!(", which takes {ns:.0} ns a switch"),
            None => String::new(),
        };
        let method = format!(
            "switches and CPU time are the kernel's counts at each switch (eBPF{overhead}): of \
             every thread, for as long as it lived; {} switches were yields, and threads moved to \
             another CPU {} times",
            used.yields, used.migrations
        );
        Self {
            counted_by: CountSource::Tracepoints,
            watched_ns: nanoseconds(session.elapsed()),
            voluntary: Reading::Known(used.voluntary),
            involuntary: Reading::Known(used.involuntary),
            yields: Reading::Known(used.yields),
            migrations: Reading::Known(used.migrations),
            cpu_ns: Reading::Known(used.cpu_ns),
            left_out: omitted_children(session),
            method: vec![method],
            notices: session.gaps(),
            ..Self::default()
        }
    }

    /// Returns what wait4(2) told of a command; `why` it was not traced.
    pub(super) fn from_wait4(run: &RunUsage, why: &str) -> Self {
        let method = format!(
            "switches and CPU time are those of the command and of all children that it waited \
             for ({})",
            untraced(why)
        );
        Self {
            counted_by: CountSource::Wait4,
            watched_ns: run.real_ns,
            voluntary: Reading::Known(run.usage.voluntary),
            involuntary: Reading::Known(run.usage.involuntary),
            yields: Reading::unknown(NOT_IN_PROC),
            migrations: Reading::unknown(NOT_IN_PROC),
            cpu_ns: Reading::Known(run.usage.cpu_ns()),
            method: vec![method],
            ..Self::default()
        }
    }
}

/// Returns the children that are not in the figures, if they switched at all.
fn omitted_children(session: &TracerSession) -> Option<OmittedChildren> {
    let (children, used) = session.account.left_out()?;
    let seconds = session.elapsed().as_secs_f64();
    if seconds == 0.0 || used.switches() == 0 {
        return None;
    }
    Some(OmittedChildren { children, switches_per_s: used.switches() as f64 / seconds })
}

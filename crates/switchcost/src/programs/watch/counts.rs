//! Switches of a program while it is watched, by who counted them: what is seen of it begins with
//! these.

use analysis::program::Program;
use launcher::RunUsage;
use rundata::reading::Reading;

use super::seen::{CountSource, LeftOut, ProgramObservation};
use crate::base::values::nanoseconds;
use crate::observe::live::session::TracerSession;

/// Of yields and moves.
pub(super) const NOT_IN_PROC: &str = "not counted without tracing";

/// Why there are no exact counts.
pub(super) fn untraced(why: &str) -> String {
    format!("exact counts, by tracing: {why}")
}

/// Rates until the tracer's last look; absent before the first.
pub(super) fn traced_so_far(session: &TracerSession) -> Option<Program> {
    let used = session.account.total();
    let ns = nanoseconds(session.elapsed());
    let counts = [used.voluntary, used.involuntary, used.cpu_ns];
    let counts = counts.map(|count| Reading::Known(count as f64));
    let set = Reading::unknown("it is still watched");
    (ns > 0).then(|| Program::over(ns as f64, counts, set))
}

impl ProgramObservation {
    /// Returns the counts of the tracer until its last look.
    pub(crate) fn from_tracer(session: &TracerSession) -> Self {
        let used = session.account.total();
        let each = session.overhead().ns_per_switch;
        let each =
            each.known().map_or(String::new(), |ns| format!(", which takes {ns:.0} ns a switch"));
        let method = format!(
            "switches and CPU time are the kernel's counts at each switch (eBPF{each}): of every \
         thread, for as long as it lived; {} switches were yields, and threads moved to another \
         CPU {} times",
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
            left_out: left_out(session),
            method: vec![method],
            notices: session.gaps(),
            ..ProgramObservation::default()
        }
    }
}

/// The children that are not in the figures, where some are.
fn left_out(session: &TracerSession) -> Option<LeftOut> {
    let (children, used) = session.account.left_out()?;
    let seconds = session.elapsed().as_secs_f64();
    let switches_per_s = used.switches() as f64 / seconds;
    (seconds > 0.0 && used.switches() > 0).then_some(LeftOut { children, switches_per_s })
}

/// What wait4(2) told of a command; `why` it was not traced.
pub(super) fn told(used: &RunUsage, why: &str) -> ProgramObservation {
    let untraced = untraced(why);
    ProgramObservation {
        counted_by: CountSource::Wait4,
        watched_ns: used.real_ns,
        voluntary: Reading::Known(used.usage.voluntary),
        involuntary: Reading::Known(used.usage.involuntary),
        yields: Reading::unknown(NOT_IN_PROC),
        migrations: Reading::unknown(NOT_IN_PROC),
        cpu_ns: Reading::Known(used.usage.cpu_ns()),
        method: vec![format!(
            "switches and CPU time are those of the command and of all children that it waited \
             for ({untraced})"
        )],
        ..ProgramObservation::default()
    }
}

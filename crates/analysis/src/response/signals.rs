//! The readings of the memorandum (VenturCom, "VENIX Kernel Response Time", June 1984) of this
//! machine: signals to oneself and between two processes, and what its formulas make of them.
//! Formulas take any unit of time; what comes out has the unit of what goes in. Signed.

use rundata::ring::RingSample;
use rundata::trial::Trial;
use rundata::trial::loops::{
    CALLS, CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS, CPU_NS, GETUID, LOOP_SWITCHES,
    SAMPLED_NS, SAMPLED_USER_NS, SIGNAL_SELF, net_call_ticks,
};
use rundata::trial::overhead::call_ticks_in_a_row;
use rundata::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{REFERENCE, loop_ns, loop_of};
use crate::estimate::{Estimate, Speed};
use crate::table::{ByRound, Figures, Table};

/// The link whose ring does what the two processes do.
const HANDLER_SIGNAL: &str = "handler-signal";

/// The memorandum's figures, in nanoseconds. Those of several cases are computed within rounds;
/// absent where one of them was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Signals")]
pub struct SignalCosts {
    /// System call: getuid.
    pub system_call_ns: Option<Estimate>,
    /// Interrupt latency: a fourth of a system call. An estimate of 1984, not a measurement.
    pub interrupt_latency_ns: Option<Estimate>,
    /// A signal to oneself, caught, its handler installed again.
    pub signal_ns: Option<Estimate>,
    /// The kernel's processing: a signal less three system calls.
    pub kernel_processing_ns: Option<Estimate>,
    /// A loop of two processes: two signals and two switches.
    pub two_process_loop_ns: Option<Estimate>,
    /// Context switch: (loop - 2 signals) / 2.
    pub context_switch_ns: Option<Estimate>,
    /// Switches per loop as the kernel counted them, those at the start and the end of the second
    /// process among them. The formula takes them for two.
    pub switches_per_loop: Option<f64>,
    /// The formula's switch less that of the ring by pipe, within rounds.
    pub above_pipe_ns: Option<Estimate>,
    /// The formula's switch less that of the ring by handler-signal, within rounds.
    pub above_handler_signal_ns: Option<Estimate>,
    /// CPU times that the memorandum's display() printed below each loop.
    pub accounts: Vec<SignalAccount>,
    /// Disagreements of switches by signals and by rings in words; empty for a run that did not end.
    pub in_words: Vec<String>,
}

/// The CPU time of a loop by process and mode, in percent of both processes' together: precise CPU
/// times, each split by the ticks that sampled that process over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Account")]
pub struct SignalAccount {
    /// Number of the case in the plan.
    pub case: usize,
    /// CPU time of all rounds, in nanoseconds.
    pub total_ns: u64,
    /// The time that ticks sampled, in nanoseconds: it tells how many ticks the shares rest on.
    pub sampled_ns: u64,
    /// System time of the process itself.
    pub system_percent: f64,
    /// User time of the process itself.
    pub user_percent: f64,
    /// System time of its child.
    pub child_system_percent: f64,
    /// User time of its child.
    pub child_user_percent: f64,
}

/// System calls in a loop of simsig: kill, signal, and the signal's catch, which counts as one.
const CALLS_PER_SIGNAL: f64 = 3.0;

/// Average interrupt latency, by its estimate: a fourth of a system call.
pub(super) fn interrupt_latency(system_call: f64) -> f64 {
    system_call / 4.0
}

/// Returns the kernel's time for a signal: the signal less three system calls.
fn kernel_processing(signal: f64, system_call: f64) -> f64 {
    signal - CALLS_PER_SIGNAL * system_call
}

/// Returns a context switch by a loop of two processes, which has two signals and two switches.
fn context_switch(two_process_loop: f64, signal: f64) -> f64 {
    (two_process_loop - 2.0 * signal) / 2.0
}

/// Returns the figures; absent where none of their trials was measured. With `is_whole`, for a run
/// that ended, also their disagreements with the rings.
pub(super) fn find(table: &Table, is_whole: bool) -> Option<SignalCosts> {
    let call_case = loop_of(table, GETUID);
    let signal_case = loop_of(table, SIGNAL_SELF);
    let two_case = table.find(|trial| *trial == Trial::TwoProcesses);
    signal_case.or(two_case)?;
    let call = loop_ns(table, call_case, net_call_ticks);
    let signal = loop_ns(table, signal_case, net_call_ticks);
    let two_loop = loop_ns(table, two_case, call_ticks_in_a_row);
    let latency = ByRound::together([&call], |[call]| interrupt_latency(call));
    let processing = in_rounds(&signal, &call, kernel_processing);
    let switch = in_rounds(&two_loop, &signal, context_switch);
    let above_pipe = in_rounds(&switch, &ring_switch_ns(table, REFERENCE), |a, b| a - b);
    let above_handler = in_rounds(&switch, &ring_switch_ns(table, HANDLER_SIGNAL), |a, b| a - b);
    let mut accounts = Vec::new();
    for case in [call_case, signal_case, two_case].into_iter().flatten() {
        accounts.extend(account(table, case));
    }
    let mut costs = SignalCosts {
        system_call_ns: call.estimate(table.plan),
        interrupt_latency_ns: latency.estimate(table.plan),
        signal_ns: signal.estimate(table.plan),
        kernel_processing_ns: processing.estimate(table.plan),
        two_process_loop_ns: two_loop.estimate(table.plan),
        context_switch_ns: switch.estimate(table.plan),
        switches_per_loop: two_case.and_then(|case| switches_per_loop(table, case)),
        above_pipe_ns: above_pipe.estimate(table.plan),
        above_handler_signal_ns: above_handler.estimate(table.plan),
        accounts,
        in_words: Vec::new(),
    };
    if is_whole {
        costs.in_words = costs.disagreements_in_words();
    }
    Some(costs)
}

/// Applies a formula to two figures within rounds.
fn in_rounds(first: &ByRound, second: &ByRound, formula: fn(f64, f64) -> f64) -> ByRound {
    ByRound::together([first, second], |[first, second]| formula(first, second))
}

fn switches_per_loop(table: &Table, case: usize) -> Option<f64> {
    let loops = table.sum(case, CALLS).filter(|loops| *loops > 0)?;
    Some(table.sum(case, LOOP_SWITCHES)? as f64 / loops as f64)
}

/// Returns the cost of a switch above solo by round, of the ring of two by this link.
pub(super) fn ring_switch_ns(table: &Table, link: &str) -> ByRound {
    let ring = table.plan.find_ring(|case| case.members == 2 && case.link == link);
    let Some(ring) = ring else { return ByRound::default() };
    let all_slices = table.above_solo_of_all(ring, RingSample::ns_per_hop);
    match table.above_solo(ring, 0) {
        Some(Estimate { speed: Speed::NotJudged, .. }) | None => all_slices.into_iter().collect(),
        Some(estimate) if estimate.speed.is_full() => {
            ByRound::judged(all_slices, Some(table.above_solo_by_round(ring)))
        }
        Some(_) => ByRound::judged(all_slices, None::<Figures>),
    }
}

/// CPU time of a process, in nanoseconds.
struct SplitTime {
    user_ns: f64,
    system_ns: f64,
    sampled_ns: f64,
}

impl SplitTime {
    /// Splits the CPU time of a process by the ticks that sampled it, given the names of its counts
    /// of CPU time, sampled time and sampled user time. Absent where no tick sampled the time.
    fn from_counts(table: &Table, case: usize, names: [&str; 3]) -> Option<Self> {
        let [cpu_ns, sampled_ns, sampled_user_ns] =
            names.map(|name| table.sum(case, name).unwrap_or(0) as f64);
        if cpu_ns > 0.0 && sampled_ns <= 0.0 {
            return None;
        }
        let user_share = (sampled_user_ns / sampled_ns).clamp(0.0, 1.0);
        let user_ns = if cpu_ns > 0.0 { cpu_ns * user_share } else { 0.0 };
        Some(Self { user_ns, system_ns: cpu_ns.max(0.0) - user_ns, sampled_ns })
    }
}

/// Returns the CPU time of one of the memorandum's programs. Absent where there is time that no tick
/// sampled.
fn account(table: &Table, case: usize) -> Option<SignalAccount> {
    let process = SplitTime::from_counts(table, case, [CPU_NS, SAMPLED_NS, SAMPLED_USER_NS])?;
    let child_names = [CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS];
    let child = SplitTime::from_counts(table, case, child_names)?;
    let total_ns = process.user_ns + process.system_ns + child.user_ns + child.system_ns;
    if total_ns <= 0.0 {
        return None;
    }
    Some(SignalAccount {
        case,
        total_ns: total_ns as u64,
        sampled_ns: (process.sampled_ns + child.sampled_ns) as u64,
        system_percent: 100.0 * process.system_ns / total_ns,
        user_percent: 100.0 * process.user_ns / total_ns,
        child_system_percent: 100.0 * child.system_ns / total_ns,
        child_user_percent: 100.0 * child.user_ns / total_ns,
    })
}

impl SignalCosts {
    /// Returns the disagreements of the formula's switch and the rings', and their possible causes.
    fn disagreements_in_words(&self) -> Vec<String> {
        let (mut all, mut more, mut less) = (Vec::new(), false, false);
        let compared =
            [("pipe", &self.above_pipe_ns), (HANDLER_SIGNAL, &self.above_handler_signal_ns)];
        for (link, above) in compared {
            let Some(above) = above else { continue };
            let both = format!("the formula's switch and the ring's by {link}");
            all.push(match above.quote() {
                Ok(above) => {
                    more |= above.value() > 0.0;
                    less |= above.value() < 0.0;
                    format!(
                        "{both} disagree: {} ({} to {})",
                        words::signed(above.value()),
                        words::signed(above.low()),
                        words::signed(above.high())
                    )
                }
                Err(why) => format!("{both} cannot be told apart: {}", why.with_time_unit()),
            });
        }
        if more {
            let call = match self.system_call_ns.map(|call| call.quote_cost()) {
                Some(Ok(call)) => {
                    format!(", at least a system call ({})", words::time(call.value()))
                }
                _ => String::new(),
            };
            all.push(format!(
                "possible cause: the formula's switch includes the pause that each signal \
                    ends{call}. A signal to oneself has no pause, so the formula does not \
                    subtract it"
            ));
        }
        if less {
            all.push(
                "possible cause: two signals to oneself may cost more than the two of the loop, \
                    so the formula subtracts too much. A signal to oneself enters the kernel \
                    twice from one call; this is not measured here"
                    .to_string(),
            );
        }
        if more || less {
            all.push(
                "the ring's figure has all calls of a hop subtracted, but not sleeping and \
                    waking. It also includes what the calls find cold after a switch: more for a \
                    signal's frame than for a byte in a pipe"
                    .to_string(),
            );
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::venix1984::{VenixProcessor, published};

    /// Whether a printed figure, one decimal in ms, can come of inputs that were themselves
    /// rounded: each may be off by half a unit of its last place.
    fn follows(printed: f64, computed: f64, inputs_off: f64) -> bool {
        (printed - computed).abs() <= 0.05 + inputs_off + 1e-9
    }

    fn of(name: &str) -> VenixProcessor {
        published().unwrap().into_iter().find(|processor| processor.name == name).unwrap()
    }

    #[test]
    fn its_switches_follow_from_its_loops_and_signals() {
        for (name, exact) in [("80186", 1.5), ("8088", 5.1), ("LSI 11/23", 2.15)] {
            let p = of(name);
            let switch = context_switch(p.two_process_loop_ms, p.signal_ms);
            assert!((switch - exact).abs() < 1e-9, "{name}: {switch}");
            assert!(follows(p.context_switch_ms, switch, 0.0), "{name}: {switch}");
        }
    }

    #[test]
    fn its_kernel_processing_follows_on_two_of_its_three_processors() {
        // 0.05 from the signal, three times 0.005 from the system call.
        for (name, exact, does) in
            [("80186", 0.12, true), ("8088", 0.64, true), ("LSI 11/23", 1.3, false)]
        {
            let p = of(name);
            let processing = kernel_processing(p.signal_ms, p.system_call_ms);
            assert!((processing - exact).abs() < 1e-9, "{name}: {processing}");
            // It prints 0.7 ms for the 11/23, of which it says that the system call is to be
            // "interpreted somewhat differently".
            assert_eq!(follows(p.kernel_processing_ms, processing, 0.065), does, "{name}");
        }
    }

    #[test]
    fn its_interrupt_latency_is_a_fourth_of_a_call_but_on_the_11_23() {
        for (name, does) in [("80186", true), ("8088", true), ("LSI 11/23", false)] {
            let p = of(name);
            let latency = interrupt_latency(p.system_call_ms);
            assert_eq!(follows(p.interrupt_latency_ms, latency, 0.0), does, "{name}: {latency}");
        }
    }

    #[test]
    fn less_than_nothing_stays_so() {
        assert!(kernel_processing(2.0, 1.0) < 0.0 && context_switch(1.0, 1.0) < 0.0);
    }
}

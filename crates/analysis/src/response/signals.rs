//! The readings of the memorandum (VenturCom, "VENIX Kernel Response Time", June 1984) of this
//! machine: signals to oneself and between two processes, and what its formulas make of them.
//! Formulas take any unit of time; what comes out has the unit of what goes in. Signed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{REFERENCE, loop_ns, loop_of};
use crate::estimate::{Estimate, Speed};
use crate::table::{ByRound, Figures, Table};
use rundata::ring::Sample;
use rundata::trial::Trial;
use rundata::trial::loops::{
    CALLS, CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS, CPU_NS, GETUID, LOOP_SWITCHES,
    SAMPLED_NS, SAMPLED_USER_NS, SIGNAL_SELF, net_of_loop,
};
use rundata::trial::overhead::in_a_row;
use rundata::words;

/// The link whose ring does what the two processes do.
const HANDLER_SIGNAL: &str = "handler-signal";

/// All in nanoseconds. What needs several cases is computed within rounds; absent where one of them
/// was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Signals")]
pub struct SignalCosts {
    /// Its system call: getuid.
    pub system_call_ns: Option<Estimate>,
    /// Its interrupt latency: a fourth of that. An estimate of 1984, not a measurement.
    pub interrupt_latency_ns: Option<Estimate>,
    /// A signal to oneself, caught, its handler installed again.
    pub signal_ns: Option<Estimate>,
    /// The kernel's processing: a signal less three system calls.
    pub kernel_processing_ns: Option<Estimate>,
    /// A loop of two processes: two signals and two switches.
    pub two_process_loop_ns: Option<Estimate>,
    /// Its context switch: (loop - 2 signals) / 2.
    pub context_switch_ns: Option<Estimate>,
    /// Switches per loop as the kernel counted them, those at the start and the end of the second
    /// process among them. The formula takes them for two.
    pub switches_per_loop: Option<f64>,
    /// The formula's switch less that of the ring by pipe, within rounds.
    pub above_pipe_ns: Option<Estimate>,
    /// The formula's switch less that of the ring by handler-signal, within rounds.
    pub above_handler_signal_ns: Option<Estimate>,
    /// What its display() printed below each loop.
    pub accounts: Vec<SignalAccount>,
    /// Where switches by signals and by pipe disagree, and why; empty of a run that did not end.
    pub in_words: Vec<String>,
}

/// Where the CPU time of a loop went, in percent of both processes' together: precise CPU times,
/// each split by the ticks that sampled that process over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Account")]
pub struct SignalAccount {
    /// Number of the case in the plan.
    pub case: usize,
    /// CPU time of all rounds, in nanoseconds.
    pub total_ns: u64,
    /// What ticks sampled of it, in nanoseconds: by it one sees how many ticks are behind the
    /// shares.
    pub sampled_ns: u64,
    /// System time of the process itself.
    pub system_percent: f64,
    /// Its user time.
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

/// What the kernel spends on processing a signal: its time less that of three system calls.
fn kernel_processing(signal: f64, system_call: f64) -> f64 {
    signal - CALLS_PER_SIGNAL * system_call
}

/// A context switch from a loop of two processes, in which there are two signals and two switches.
fn context_switch(two_process_loop: f64, signal: f64) -> f64 {
    (two_process_loop - 2.0 * signal) / 2.0
}

/// The readings; absent where nothing was measured that they need.
/// With `is_whole`, of a run that ended, also where they and the rings disagree.
pub(super) fn find(table: &Table, is_whole: bool) -> Option<SignalCosts> {
    let [one, own] = [GETUID, SIGNAL_SELF].map(|name| loop_of(table, name));
    let two = table.find(|trial| *trial == Trial::TwoProcesses);
    own.or(two)?;
    let [call, signal] = [one, own].map(|case| loop_ns(table, case, net_of_loop));
    let two_loop = loop_ns(table, two, in_a_row);
    let of_two = |one: &ByRound, other: &ByRound, formula: fn(f64, f64) -> f64| {
        ByRound::together([one, other], |[one, other]| formula(one, other))
    };
    let switch = of_two(&two_loop, &signal, context_switch);
    let ring = |link: &str| ring_switch_ns(table, link);
    let above = |link: &str| of_two(&switch, &ring(link), |one, other| one - other);
    let estimate = |figure: &ByRound| figure.estimate(table.plan);
    let latency = ByRound::together([&call], |[call]| interrupt_latency(call));
    let switches_per_loop = two.and_then(|case| {
        let loops = table.sum(case, CALLS).filter(|loops| *loops > 0)?;
        Some(table.sum(case, LOOP_SWITCHES)? as f64 / loops as f64)
    });
    let programs = [one, own, two].into_iter().flatten();
    let mut found = SignalCosts {
        system_call_ns: estimate(&call),
        interrupt_latency_ns: estimate(&latency),
        signal_ns: estimate(&signal),
        kernel_processing_ns: estimate(&of_two(&signal, &call, kernel_processing)),
        two_process_loop_ns: estimate(&two_loop),
        context_switch_ns: estimate(&switch),
        switches_per_loop,
        above_pipe_ns: estimate(&above(REFERENCE)),
        above_handler_signal_ns: estimate(&above(HANDLER_SIGNAL)),
        accounts: programs.filter_map(|case| account(table, case)).collect(),
        in_words: Vec::new(),
    };
    found.in_words = if is_whole { found.words() } else { Vec::new() };
    Some(found)
}

/// Cost of a switch above solo by round, of the ring of two by this link.
pub(super) fn ring_switch_ns(table: &Table, link: &str) -> ByRound {
    let ring = table.plan.find_ring(|case| case.members == 2 && case.link == link);
    let Some(ring) = ring else { return ByRound::default() };
    let of_all = table.above_solo_of_all(ring, Sample::ns_per_hop);
    match table.above_solo(ring, 0).map(|estimate| estimate.speed) {
        Some(Speed::NotJudged) | None => of_all.into_iter().collect(),
        Some(speed) if speed.is_full() => {
            ByRound::judged(of_all, Some(table.above_solo_by_round(ring)))
        }
        Some(_) => ByRound::judged(of_all, None::<Figures>),
    }
}

/// Where the CPU time of one of the memorandum's programs went. Absent where there is time that no
/// tick sampled.
fn account(table: &Table, case: usize) -> Option<SignalAccount> {
    // CPU time in user and in system mode.
    let parts = |names: [&str; 3]| {
        let [cpu, sampled, user] = names.map(|name| table.sum(case, name).unwrap_or(0) as f64);
        let is_split = cpu <= 0.0 || sampled > 0.0;
        let user = if cpu > 0.0 { cpu * (user / sampled).clamp(0.0, 1.0) } else { 0.0 };
        is_split.then(|| (user, cpu.max(0.0) - user, sampled))
    };
    let own = parts([CPU_NS, SAMPLED_NS, SAMPLED_USER_NS])?;
    let child = parts([CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS])?;
    let total = own.0 + own.1 + child.0 + child.1;
    let percent = |part: f64| 100.0 * part / total;
    (total > 0.0).then(|| SignalAccount {
        case,
        total_ns: total as u64,
        sampled_ns: (own.2 + child.2) as u64,
        system_percent: percent(own.1),
        user_percent: percent(own.0),
        child_system_percent: percent(child.1),
        child_user_percent: percent(child.0),
    })
}

impl SignalCosts {
    /// Where the formula's switch and the rings' disagree, and what else each pays for.
    fn words(&self) -> Vec<String> {
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
                    let [value, low, high] =
                        [above.value(), above.low(), above.high()].map(words::signed);
                    format!("{both} disagree: {value} ({low} to {high})")
                }
                Err(why) => format!("{both} cannot be told apart: {}", why.with_time_unit()),
            });
        }
        if more {
            let call = self.system_call_ns.and_then(|call| call.quote_cost().ok());
            let call = call.map_or(String::new(), |call| {
                format!(", at least a system call ({})", words::time(call.value()))
            });
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
    use crate::published::venix1984::{Processor, published};

    /// Whether a printed figure, one decimal in ms, can come of inputs that were themselves
    /// rounded: each may be off by half a unit of its last place.
    fn follows(printed: f64, computed: f64, inputs_off: f64) -> bool {
        (printed - computed).abs() <= 0.05 + inputs_off + 1e-9
    }

    fn of(name: &str) -> Processor {
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

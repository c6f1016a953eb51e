//! The memorandum's readings of this machine: signals to oneself and between two processes, and what
//! its formulas make of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::loops::Figures;
use super::{links, memorandum};
use crate::estimate::Estimate;
use crate::pairing::{self, Grouped};
use crate::plan::Plan;
use crate::ring::Sample;
use crate::speed::Speed;
use crate::trial::loops::{
    CALLS, CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS, CPU_NS, GETUID, LOOP_SWITCHES,
    SAMPLED_NS, SAMPLED_USER_NS, SIGNAL_SELF,
};
use crate::trial::{ByRound, Trial};
use crate::words;

/// The link whose ring does what the two processes do.
const HANDLER_SIGNAL: &str = "handler-signal";

/// All in nanoseconds. What needs several cases is computed within rounds; absent where one of them
/// was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Signals {
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
    pub accounts: Vec<Account>,
    /// Where switches by signals and by pipe disagree, and why.
    pub in_words: Vec<String>,
}

/// Where the CPU time of a loop went, in percent of both processes' together: precise CPU times, each
/// split by the ticks that sampled that process over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Number of the case in the plan.
    pub case: usize,
    /// CPU time of all rounds, in nanoseconds.
    pub total_ns: u64,
    /// What ticks sampled of it, in nanoseconds: by it one sees how many ticks are behind the shares.
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

/// The readings; absent where nothing was measured that they need.
pub(super) fn find(figures: Figures, grouped: &Grouped) -> Option<Signals> {
    let (call, signal) = (figures.call_ns(GETUID), figures.call_ns(SIGNAL_SELF));
    let two = figures.two_process_loop_ns();
    let is_signal = |trial: &Trial| {
        *trial == Trial::TwoProcesses
            || matches!(trial, Trial::Loop { call } if call == SIGNAL_SELF)
    };
    figures.find(is_signal)?;
    let of_two = |one: &ByRound, other: &ByRound, formula: fn(f64, f64) -> f64| {
        ByRound::together([one, other], |[one, other]| formula(one, other))
    };
    let switch = of_two(&two, &signal, memorandum::context_switch);
    let less = |one: f64, other: f64| one - other;
    let above = |link: &str| of_two(&switch, &ring_switch_ns(figures.plan, grouped, link), less);
    let estimate = |figure: &ByRound| figures.estimate(figure);
    let latency = ByRound::together([&call], |[call]| memorandum::interrupt_latency(call));
    let mut found = Signals {
        system_call_ns: estimate(&call),
        interrupt_latency_ns: estimate(&latency),
        signal_ns: estimate(&signal),
        kernel_processing_ns: estimate(&of_two(&signal, &call, memorandum::kernel_processing)),
        two_process_loop_ns: estimate(&two),
        context_switch_ns: estimate(&switch),
        switches_per_loop: switches_per_loop(&figures),
        above_pipe_ns: estimate(&above(links::REFERENCE)),
        above_handler_signal_ns: estimate(&above(HANDLER_SIGNAL)),
        accounts: accounts(&figures),
        in_words: Vec::new(),
    };
    found.in_words = found.words();
    Some(found)
}

/// Cost of a switch above solo by round, of the ring of two by this link.
pub(super) fn ring_switch_ns(plan: &Plan, grouped: &Grouped, link: &str) -> ByRound {
    let ring = plan.find_ring(|case| case.members == 2 && case.link == link);
    let Some(ring) = ring else { return ByRound::default() };
    let of_all = grouped.above_solo_of_all(ring, Sample::ns_per_hop);
    match grouped.above_solo(ring, 0).map(|estimate| estimate.speed) {
        Some(Speed::Full) => ByRound::judged(of_all, Some(grouped.above_solo_by_round(ring))),
        Some(Speed::Contended) => ByRound::judged(of_all, None::<pairing::Figures>),
        Some(Speed::NotJudged) | None => of_all.into_iter().collect(),
    }
}

fn switches_per_loop(figures: &Figures) -> Option<f64> {
    let case = figures.find(|trial| *trial == Trial::TwoProcesses)?;
    let loops = figures.sum(case, CALLS).filter(|loops| *loops > 0)?;
    Some(figures.sum(case, LOOP_SWITCHES)? as f64 / loops as f64)
}

/// For the memorandum's three programs, those that were run.
fn accounts(figures: &Figures) -> Vec<Account> {
    let is_call = |name: &'static str| {
        figures.find(move |trial| matches!(trial, Trial::Loop { call } if call == name))
    };
    let two = figures.find(|trial| *trial == Trial::TwoProcesses);
    // CPU time, in user and in system mode. Absent where there is time that no tick sampled.
    let parts = |case: usize, names: [&str; 3]| {
        let [cpu, sampled, user] = names.map(|name| figures.sum(case, name).unwrap_or(0) as f64);
        let user = match cpu > 0.0 {
            true => (sampled > 0.0).then(|| cpu * (user / sampled).clamp(0.0, 1.0))?,
            false => 0.0,
        };
        Some((user, cpu.max(0.0) - user, sampled))
    };
    let account = |case: usize| {
        let own = parts(case, [CPU_NS, SAMPLED_NS, SAMPLED_USER_NS])?;
        let child = parts(case, [CHILD_CPU_NS, CHILD_SAMPLED_NS, CHILD_SAMPLED_USER_NS])?;
        let total = own.0 + own.1 + child.0 + child.1;
        let percent = |part: f64| 100.0 * part / total;
        (total > 0.0).then(|| Account {
            case,
            total_ns: total as u64,
            sampled_ns: (own.2 + child.2) as u64,
            system_percent: percent(own.1),
            user_percent: percent(own.0),
            child_system_percent: percent(child.1),
            child_user_percent: percent(child.0),
        })
    };
    [is_call(GETUID), is_call(SIGNAL_SELF), two].into_iter().flatten().filter_map(account).collect()
}

impl Signals {
    /// Where the formula's switch and the rings' disagree, and what else each pays for.
    fn words(&self) -> Vec<String> {
        let mut all = Vec::new();
        let compared =
            [("pipe", &self.above_pipe_ns), (HANDLER_SIGNAL, &self.above_handler_signal_ns)];
        for (link, above) in compared {
            let Some(above) = above else { continue };
            all.push(match above.interval() {
                Some(_) if above.resolved => format!(
                    "the formula's switch and the ring's by {link} disagree: {} ({})",
                    words::signed(above.value),
                    ends(above)
                ),
                Some(_) => format!(
                    "the formula's switch and the ring's by {link} cannot be told apart: {} ({})",
                    words::signed(above.value),
                    ends(above)
                ),
                None => format!(
                    "too few rounds to tell whether the formula's switch and the ring's by {link} differ"
                ),
            });
        }
        let resolved = |is_more: bool| {
            [&self.above_pipe_ns, &self.above_handler_signal_ns]
                .into_iter()
                .flatten()
                .any(|above| above.resolved && (above.value > 0.0) == is_more)
        };
        if resolved(true) {
            let call = self.system_call_ns.map_or(String::new(), |call| {
                format!(", at least a system call ({})", words::time(call.value))
            });
            all.push(format!(
                "why more expensive: the formula's switch also pays for the pause that each signal ends{call}: a signal to oneself has none, so two signals do not take it off"
            ));
        }
        if resolved(false) {
            all.push(
                "why cheaper: two signals to oneself may take off more than the two of the loop took, such as the second entry that a signal to oneself makes from the same call; nothing here measures it"
                    .to_string(),
            );
        }
        if resolved(true) || resolved(false) {
            all.push(
                "a ring's solo makes every call of a hop, its wait included, but never sleeps in it: what remains is sleeping, waking and the switch, \
                 and what the calls find cold after a switch, which is more the longer they are: making and undoing a signal's frame is longer than a pipe's byte"
                    .to_string(),
            );
        }
        all
    }
}

fn ends(estimate: &Estimate) -> String {
    match estimate.interval() {
        Some(interval) => {
            format!("{} to {}", words::signed(interval.low), words::signed(interval.high))
        }
        None => "no interval".to_string(),
    }
}

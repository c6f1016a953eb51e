//! The response budget: the time from a timer's interrupt to the process that waits for it, by the
//! sum of its parts and as measured.

use rundata::ring::Policy;
use rundata::trial::Trial;
use rundata::trial::loops::{GETUID, net_call_ticks};
use rundata::trial::wakeup::WakeupLoad;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::signals::{interrupt_latency, ring_switch_ns};
use super::{REFERENCE, loop_ns, loop_of};
use crate::estimate::Estimate;
use crate::findings::wakeup::medians;
use crate::table::{ByRound, Table};

/// The parts in nanoseconds, each absent where it was not measured, and the measured wake-ups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Budget")]
pub struct ResponseBudget {
    /// Entry and handler: the time that a timer tick takes from a running program, median of a
    /// round, over rounds.
    pub entry_and_handler_ns: Option<Estimate>,
    /// Switch to the process that waits: a counted switch above solo of the ring of two by pipe,
    /// its wake-up included.
    pub switch_ns: Option<Estimate>,
    /// Return to that process: a fourth of a system call, as the memorandum takes it. Not in the
    /// sum: the tick's gap has the return to a program in it.
    pub return_ns: Option<Estimate>,
    /// The sum of entry, handler and switch: of their values and of their intervals' ends. Absent
    /// where one of them may not be quoted.
    pub sum_ns: Option<Estimate>,
    /// The measured wake-ups by condition.
    pub against: Vec<BudgetComparison>,
}

/// Measured wake-ups compared with the sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Against")]
pub struct BudgetComparison {
    /// Number of the case in the plan.
    pub case: usize,
    /// The sleeper's policy.
    pub policy: Policy,
    /// The load on the CPU.
    pub load: WakeupLoad,
    /// The timer slack that was asked for, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<u64>,
    /// Largest time for leaving an idle state, in microseconds; absent where the kernel had its
    /// choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_us: Option<u32>,
    /// Median lateness of a round, over rounds, in nanoseconds.
    pub measured_ns: Option<Estimate>,
    /// Measured less the sum, in nanoseconds. Signed; absent where one of them may not be quoted.
    pub unexplained_ns: Option<Estimate>,
}

/// Returns the budget; absent where no wake-up was measured. `ticks`: the length of the tick's gaps.
pub(super) fn find(table: &Table, ticks: ByRound) -> Option<ResponseBudget> {
    let call = loop_ns(table, loop_of(table, GETUID), net_call_ticks);
    let back = ByRound::together([&call], |[call]| interrupt_latency(call));
    let entry_and_handler_ns = ticks.estimate(table.plan);
    let switch_ns = ring_switch_ns(table, REFERENCE).estimate(table.plan);
    let sum_ns = match (entry_and_handler_ns, switch_ns) {
        (Some(ticks), Some(switch)) => Estimate::sum(&[ticks, switch]).ok(),
        _ => None,
    };
    let mut against = Vec::new();
    for (number, case) in table.plan.trials() {
        let Trial::Wakeup(wakeup) = &case.trial else { continue };
        let measured_ns = medians(table, number).estimate(table.plan);
        let unexplained_ns = match (measured_ns, sum_ns) {
            (Some(late), Some(sum)) => late.above(&sum).ok(),
            _ => None,
        };
        against.push(BudgetComparison {
            case: number,
            policy: case.policy,
            load: wakeup.load,
            timer_slack_ns: Some(wakeup.timer_slack_ns),
            cpu_latency_us: wakeup.cpu_latency_us,
            measured_ns,
            unexplained_ns,
        });
    }
    if against.is_empty() {
        return None;
    }
    let return_ns = back.estimate(table.plan);
    Some(ResponseBudget { entry_and_handler_ns, switch_ns, return_ns, sum_ns, against })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests;
    use super::*;
    use crate::record::ResponseRecord as Record;
    use rundata::case::Sample;
    use rundata::run::Run;
    use rundata::trial::wakeup::{LATE_NS, Wakeup};
    use rundata::trial::{self, Gap, Tally, gaps};

    const TICK_PERIOD_NS: u64 = 4_000_000;
    const WINDOW_NS: u64 = 250_000_000;

    /// One tick of the counter a nanosecond.
    fn trial(
        case: usize,
        round: u32,
        gaps: Vec<Gap>,
        tallies: BTreeMap<String, Tally>,
        counts: &[(&str, u64)],
    ) -> Sample {
        Sample::Trial(trial::TrialSample {
            case,
            round,
            elapsed_ns: WINDOW_NS,
            elapsed_ticks: Some(WINDOW_NS),
            gaps,
            sliced: Vec::new(),
            tallies,
            counts: counts.iter().map(|(name, n)| (name.to_string(), *n as i64)).collect(),
            steal_ns: None,
        })
    }

    fn ticks(case: usize, round: u32, length_ns: u64) -> Sample {
        let gap = |number: u64| {
            let at_ticks = 500_000 + number * TICK_PERIOD_NS;
            Gap {
                at_ticks,
                ticks: length_ns + 10,
                switches: 0,
                cpu_ns: TICK_PERIOD_NS,
                clocked_ticks: TICK_PERIOD_NS,
            }
        };
        let counts = [
            (gaps::WINDOW_TICKS, WINDOW_NS),
            (gaps::LOOK_TICKS, 0),
            (gaps::LOOP_TICKS, 10),
            (gaps::THRESHOLD_TICKS, 80),
            (gaps::TICK_NS, TICK_PERIOD_NS),
        ];
        trial(case, round, (0..62).map(gap).collect(), BTreeMap::new(), &counts)
    }

    /// The made-up run, whose switch by pipe is 2000 ns and whose getuid 360 ns and 100 more each
    /// round; ticks that take 3000 ns and 100 more each round; and wake-ups that drift with the
    /// sum.
    fn run() -> Run {
        let mut run = tests::run();
        let wakeup = Wakeup {
            load: WakeupLoad::Busy,
            wakes: 1,
            period_ns: 500_000,
            timer_slack_ns: 1,
            seed: 1,
            cpu_latency_us: None,
        };
        let trials = [
            (Trial::Gaps { duration_ns: WINDOW_NS }, Policy::Other),
            (Trial::Wakeup(wakeup), Policy::Fifo),
        ];
        let first = run.header.plan.cases.len();
        let case = |(trial, policy)| rundata::trial::TrialCase { trial, cpu: 1, policy }.into();
        run.header.plan.cases.extend(trials.map(case));
        for round in 0..6 {
            let late = [20_000 + 100 * i64::from(round)].into_iter().collect();
            let late = BTreeMap::from([(LATE_NS.to_string(), late)]);
            run.samples.push(ticks(first, round, 3000 + 100 * u64::from(round)));
            run.samples.push(trial(first + 1, round, Vec::new(), late, &[]));
        }
        run
    }

    #[test]
    fn the_sum_is_that_of_its_parts_and_the_rest_is_what_they_leave() {
        let record = Record::from_run(&run());
        let budget = record.found.budget.expect("wake-ups");
        // Medians of rounds 0 to 5: in the middle of 2 and 3.
        let value = |estimate: Option<Estimate>| estimate.expect("six rounds").value;
        assert!((value(budget.entry_and_handler_ns) - 3250.0).abs() < 1.0, "{budget:?}");
        assert!((value(budget.switch_ns) - 2000.0).abs() < 1e-6);
        assert!((value(budget.return_ns) - (90.0 + 62.5)).abs() < 1e-6);
        assert!((value(budget.sum_ns) - (5000.0 + 250.0)).abs() < 1.0);
        let [against] = &budget.against[..] else { panic!("one condition: {budget:?}") };
        assert_eq!((against.policy, against.load), (Policy::Fifo, WakeupLoad::Busy));
        let unexplained = against.unexplained_ns.expect("six rounds");
        assert!((unexplained.value - 15_000.0).abs() < 1.0 && unexplained.resolved);
        let ends = |of: Option<Estimate>| of.and_then(|of| of.interval()).expect("six rounds");
        let parts = [budget.entry_and_handler_ns, budget.switch_ns].map(ends);
        let (sum, late) = (ends(budget.sum_ns), ends(against.measured_ns));
        assert_eq!(
            (sum.low, sum.high),
            (parts[0].low + parts[1].low, parts[0].high + parts[1].high)
        );
        assert_eq!(ends(Some(unexplained)).low, late.low - sum.high);
        assert_eq!(
            (record.found.gaps[0].case, record.found.wakeups[0].case, against.case),
            (7, 8, 8)
        );
    }

    #[test]
    fn a_part_that_is_missing_leaves_the_sum_open_and_not_the_rest() {
        let mut run = run();
        run.samples.retain(|sample| !matches!(sample, Sample::Trial(s) if s.case == 7));
        let budget = Record::from_run(&run).found.budget.expect("wake-ups");
        assert_eq!((budget.entry_and_handler_ns, budget.sum_ns), (None, None));
        assert!(budget.switch_ns.is_some() && budget.against[0].measured_ns.is_some());
        assert_eq!(budget.against[0].unexplained_ns, None);
        assert_eq!(Record::from_run(&tests::run()).found.budget, None, "no wake-up was measured");
    }

    #[test]
    fn less_than_nothing_stays_so() {
        let mut run = run();
        for sample in &mut run.samples {
            let Sample::Trial(sample) = sample else { continue };
            if let Some(late) = sample.tallies.get_mut(LATE_NS) {
                *late = late.shifted(-19_000);
            }
        }
        let unexplained =
            Record::from_run(&run).found.budget.expect("wake-ups").against[0].unexplained_ns;
        assert!(unexplained.expect("six rounds").value < -3900.0);
    }

    #[test]
    fn there_is_no_sum_with_a_part_that_may_not_be_quoted() {
        let mut run = run();
        run.samples.retain(|sample| sample.case() != 7 || sample.round() < 2);
        let budget = Record::from_run(&run).found.budget.expect("wake-ups");
        assert_eq!(budget.entry_and_handler_ns.map(|ticks| ticks.rounds), Some(2));
        assert_eq!((budget.sum_ns, budget.against[0].unexplained_ns), (None, None));
        assert!(budget.switch_ns.is_some() && budget.against[0].measured_ns.is_some());
    }
}

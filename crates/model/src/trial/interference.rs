//! `cost --interference`: does a disturbance reach the execution time of a ring of two? (Li, Ding and
//! Shen 2007, section 3.3, Tables 1 and 2.)

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::Trial;
pub use super::case::{Execution, Noise, Wire};
use super::figures::ByCase;
use crate::interference::{Runs, Setting, Verdict, judge};

/// Tally: time of the laps of a run, in nanoseconds.
pub const EXECUTION_NS: &str = "execution_ns";
/// Count: what the disturbance did between the two readings of the clock: packets received, bursts,
/// timers. Absent in quiet runs.
pub const NOISE_EVENTS: &str = "noise_events";
/// Count: voluntary switches of both members.
pub const VOLUNTARY: &str = "voluntary_switches";
/// Count: involuntary ones.
pub const INVOLUNTARY: &str = "involuntary_switches";

/// Longest run that a real-time ring should have: the kernel lets real-time work run for 950 ms of each
/// second (sched_rt_runtime_us), and holds it back for the rest.
pub const LONGEST_REALTIME_NS: u64 = 800_000_000;

/// Events of the disturbance that all runs of a condition should have met together: below it they are
/// hardly disturbed.
const FEWEST_EVENTS: i64 = 5;

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Execution times in nanoseconds of every condition, in the order of the plan.
    pub runs: Vec<Runs>,
    /// Quiet against disturbed.
    pub verdict: Verdict,
    /// The verdict in words.
    pub in_words: String,
    /// What the disturbance did in one run, on average, by setting; absent where nothing was
    /// disturbed.
    pub events_per_run: BTreeMap<String, f64>,
    /// What speaks against the figures: conditions that met hardly any disturbance, runs that the kernel
    /// may have held back.
    #[serde(default)]
    pub doubts: Vec<String>,
}

pub(super) fn find(by_case: &ByCase, cases: usize) -> Found {
    let execution = |case: usize| match by_case.trial(case) {
        Some(Trial::Execution(execution)) => Some((case, execution)),
        _ => None,
    };
    let executions: Vec<(usize, &Execution)> = (0..cases).filter_map(execution).collect();
    let runs_of = |(case, execution): &(usize, &Execution)| {
        let time =
            |sample: &&super::Sample| Some((sample.round, sample.tally(EXECUTION_NS)?.mean()?));
        let times = by_case.of(*case).iter().filter_map(time).collect();
        Runs::of(execution.setting, execution.environment, execution.work.bytes, times)
    };
    let runs: Vec<Runs> = executions.iter().map(runs_of).collect();
    let events = |setting: Setting| {
        let disturbed = executions.iter().filter(|(_, execution)| execution.setting == setting);
        let samples = disturbed.flat_map(|(case, _)| by_case.of(*case).iter());
        let counts: Vec<f64> =
            samples.filter_map(|sample| Some(sample.count(NOISE_EVENTS)? as f64)).collect();
        Some((setting.to_string(), stats::mean(&counts)?))
    };
    let verdict = judge(&runs);
    let doubts = [hardly_disturbed(by_case, &executions), held_back(by_case, &executions)];
    Found {
        doubts: doubts.into_iter().flatten().collect(),
        in_words: verdict.in_words(),
        verdict,
        runs,
        events_per_run: [Setting::Augmented, Setting::Plain]
            .into_iter()
            .filter_map(events)
            .collect(),
    }
}

/// Conditions whose runs together met too few events, and what helps.
fn hardly_disturbed(by_case: &ByCase, executions: &[(usize, &Execution)]) -> Option<String> {
    let few = |(case, execution): &(usize, &Execution)| {
        let counts = by_case.of(*case).iter().filter_map(|sample| sample.count(NOISE_EVENTS));
        let met = counts.reduce(i64::saturating_add)?;
        (met < FEWEST_EVENTS).then(|| format!("{execution} ({met})"))
    };
    let told: Vec<String> = executions.iter().filter_map(few).collect();
    let noise = executions.first()?.1.noise;
    (!told.is_empty()).then(|| {
        format!(
            "fewer than {FEWEST_EVENTS} {} fell into all runs together of: {}; longer runs meet more (--budget, or sizes that are closer together)",
            noise.events(),
            told.join("; ")
        )
    })
}

/// Real-time runs that lasted so long that the kernel may have held them back.
fn held_back(by_case: &ByCase, executions: &[(usize, &Execution)]) -> Option<String> {
    let limit = i64::try_from(LONGEST_REALTIME_NS).unwrap_or(i64::MAX);
    let real_time = executions.iter().filter(|(case, _)| by_case.is_realtime(*case));
    let samples = real_time.flat_map(|(case, _)| by_case.of(*case).iter());
    let longest = samples.filter_map(|sample| sample.tally(EXECUTION_NS)?.max()).max()?;
    (longest > limit).then(|| {
        format!(
            "real-time runs lasted up to {}: the kernel may have held them back, as it gives real-time work 950 ms of each second (sched_rt_runtime_us); fewer --laps keep them below {}",
            crate::words::time(longest as f64),
            crate::words::time(limit as f64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Op, Policy, Work};
    use crate::experiment::Experiment;
    use crate::interference::Environment;
    use crate::plan::{Batching, Plan, Stopping};
    use crate::trial::{Case, Repeats, Sample};
    use stats::student_quantile;

    fn plan() -> Plan {
        let case = |setting, environment| Case {
            trial: Trial::Execution(Execution {
                setting,
                environment,
                noise: Noise::Net,
                noise_cpu: 0,
                work: Work::new(1024, 8, Op::Rmw).unwrap(),
                laps: 10,
                seed: 1,
                priority: None,
                wire: Wire::Veth,
            }),
            cpu: 1,
            policy: Policy::Other,
        };
        let environments = [Environment::Quiet, Environment::Disturbed];
        let settings = [Setting::Augmented, Setting::Plain];
        let cases = settings.iter().flat_map(|setting| environments.map(|e| case(*setting, e)));
        Plan {
            experiment: Experiment::Interference,
            cases: cases.map(Into::into).collect(),
            seed: 1,
            batching: Batching::of_trials(Repeats { trials: 1 }),
            stopping: Stopping { precision: 0.0, budget_ns: 1, rounds: Some(6), confidence: 0.95 },
            reference: Default::default(),
        }
    }

    fn sample(case: usize, round: u32, time: i64, events: Option<i64>) -> Sample {
        Sample {
            case,
            round,
            elapsed_ns: time as u64,
            elapsed_ticks: None,
            gaps: Vec::new(),
            sliced: Vec::new(),
            tallies: BTreeMap::from([(EXECUTION_NS.to_string(), [time].into_iter().collect())]),
            counts: events.map(|events| (NOISE_EVENTS.to_string(), events)).into_iter().collect(),
            steal_ns: None,
        }
    }

    /// Times 1000 -+ d around: six runs whose deviation is d sqrt(6/5).
    fn samples(deviations: [i64; 4]) -> Vec<Sample> {
        let each = |(case, d): (usize, i64)| {
            let events = (case % 2 == 1).then_some(case as i64 * 10);
            (0..6).map(move |round| {
                let time = if round % 2 == 0 { 1000 - d } else { 1000 + d };
                sample(case, round, time, events)
            })
        };
        deviations.into_iter().enumerate().flat_map(each).collect()
    }

    #[test]
    fn each_condition_has_its_own_runs_and_the_verdict_theirs() {
        let (plan, samples) = (plan(), samples([10, 10, 10, 80]));
        let found = find(&ByCase::new(&plan, &samples), plan.cases.len());
        assert_eq!(found.runs.len(), 4);
        let growth = |growth: Option<stats::Growth>| growth.unwrap().ratio;
        assert!((growth(found.verdict.augmented) - 1.0).abs() < 1e-9);
        assert!((growth(found.verdict.plain) - 8.0).abs() < 1e-9);
        assert!(
            found.in_words.contains("plain setting: its interval grew 8.00x"),
            "{}",
            found.in_words
        );
        // 90 %: t(0.95; 5) = 2.015 of the tables.
        let half = 10.0 * (6.0_f64 / 5.0).sqrt() / 6.0_f64.sqrt();
        let interval = found.verdict.comparisons[0].quiet.unwrap();
        assert!((student_quantile(0.90, 5.0).unwrap() - 2.015).abs() < 1e-3);
        assert!((interval.high - 1000.0 - 2.015 * half).abs() < 0.01, "{interval:?}");
        assert_eq!(
            found.events_per_run,
            BTreeMap::from([("augmented".into(), 10.0), ("plain".into(), 30.0)])
        );
    }

    #[test]
    fn a_condition_that_met_hardly_any_noise_is_named() {
        let plan = plan();
        let with = |events: [i64; 6]| -> Vec<Sample> {
            let mut samples = samples([10, 10, 10, 80]);
            // Of the plain setting, disturbed.
            for (sample, events) in samples.iter_mut().filter(|s| s.case == 3).zip(events) {
                sample.counts.insert(NOISE_EVENTS.to_string(), events);
            }
            samples
        };
        let doubts = |events| find(&ByCase::new(&plan, &with(events)), 4).doubts;
        assert_eq!(doubts([1, 0, 1, 1, 1, 1]), Vec::<String>::new());
        let told = doubts([1, 0, 1, 1, 0, 1]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("of: two of 1 KiB, plain, disturbed by net (4); "), "{told:?}");
        assert!(told[0].contains("--budget"), "{told:?}");
    }

    #[test]
    fn real_time_runs_that_meet_the_kernels_limit_are_told() {
        let mut plan = plan();
        let mut samples = samples([10, 10, 10, 10]);
        samples[0].tallies.insert(EXECUTION_NS.into(), [900_000_000].into_iter().collect());
        let doubts = |plan: &Plan| find(&ByCase::new(plan, &samples), 4).doubts;
        assert_eq!(doubts(&plan), Vec::<String>::new());
        let fifo = Case { policy: Policy::Fifo, ..plan.trial(0).unwrap().clone() };
        plan.cases[0] = fifo.into();
        let told = doubts(&plan);
        assert!(told[0].contains("up to 900 ms") && told[0].contains("--laps"), "{told:?}");
    }

    #[test]
    fn without_runs_nothing_is_told() {
        let plan = plan();
        let found = find(&ByCase::new(&plan, &[]), plan.cases.len());
        assert!(found.in_words.contains("inconclusive"), "{}", found.in_words);
        assert!(found.events_per_run.is_empty());
    }

    #[test]
    fn names_read_back() {
        for noise in Noise::ALL {
            assert_eq!(noise.name().parse(), Ok(*noise));
        }
        assert!("loud".parse::<Noise>().unwrap_err().contains("timer"));
        let Trial::Execution(execution) = plan().trial(3).unwrap().trial.clone() else {
            panic!("an execution")
        };
        assert_eq!(execution.to_string(), "two of 1 KiB, plain, disturbed by net");
    }
}

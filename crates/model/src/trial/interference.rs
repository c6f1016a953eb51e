//! `cost --interference`: does a disturbance reach the execution time of a ring of two? (Li, Ding and
//! Shen 2007, section 3.3, Tables 1 and 2.)

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::Trial;
use super::figures::ByCase;
use crate::case::Work;
use crate::interference::{Environment, Runs, Setting, Verdict, judge};

/// The experiment's name.
pub const NAME: &str = "interference";

/// Tally: time of the laps of a run, in nanoseconds.
pub const EXECUTION_NS: &str = "execution_ns";
/// Count: what the disturbance did while the run went on: packets received, bursts, timers. Absent
/// in quiet runs.
pub const NOISE_EVENTS: &str = "noise_events";
/// Count: voluntary switches of both members.
pub const VOLUNTARY: &str = "voluntary_switches";
/// Count: involuntary ones.
pub const INVOLUNTARY: &str = "involuntary_switches";

/// What disturbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Noise {
    /// Bursts of work at random moments.
    Cpu,
    /// Random short timers, one after the other.
    Timer,
    /// Datagrams at random gaps, as the paper's pings.
    Net,
}

impl Noise {
    /// Every value, in the order in which help lists them.
    pub const ALL: &'static [Self] = &[Self::Cpu, Self::Timer, Self::Net];

    /// The name used on the command line, in CSV and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Timer => "timer",
            Self::Net => "net",
        }
    }

    /// What one event of it is, for several.
    pub fn events(self) -> &'static str {
        match self {
            Self::Cpu => "bursts",
            Self::Timer => "timers",
            Self::Net => "packets",
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Noise {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.iter().copied().find(|noise| noise.name() == text);
        named.ok_or_else(|| format!("'{text}' is not a noise (accepted: cpu, timer, net)"))
    }
}

/// One run of the two-process program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// How it is placed.
    pub setting: Setting,
    /// What else the machine does.
    pub environment: Environment,
    /// What disturbs, where something does.
    pub noise: Noise,
    /// The CPU that the noise runs on.
    pub noise_cpu: u32,
    /// What each member touches in every hop.
    pub work: Work,
    /// Laps: the same in all conditions, so that execution times compare.
    pub laps: u64,
    /// Seed of the noise's gaps; a round has the same in every condition.
    pub seed: u64,
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = crate::words::bytes(self.work.bytes);
        write!(f, "two of {array}, {}, {}", self.setting, self.environment)?;
        match self.environment {
            Environment::Quiet => Ok(()),
            Environment::Disturbed => write!(f, " by {}", self.noise),
        }
    }
}

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
}

pub(super) fn find(by_case: &ByCase, cases: usize) -> Found {
    let execution = |case: usize| match by_case.trial(case) {
        Some(Trial::Execution(execution)) => Some((case, execution)),
        _ => None,
    };
    let executions: Vec<(usize, &Execution)> = (0..cases).filter_map(execution).collect();
    let runs_of = |(case, execution): &(usize, &Execution)| {
        let tallies = by_case.of(*case).iter().filter_map(|sample| sample.tally(EXECUTION_NS));
        let times: Vec<f64> = tallies.filter_map(super::Tally::mean).collect();
        Runs::of(execution.setting, execution.environment, execution.work.bytes, &times)
    };
    let runs: Vec<Runs> = executions.iter().map(runs_of).collect();
    let events = |setting: Setting| {
        let disturbed = executions.iter().filter(|(_, execution)| execution.setting == setting);
        let samples = disturbed.flat_map(|(case, _)| by_case.of(*case).iter());
        let counts: Vec<f64> =
            samples.filter_map(|sample| Some(sample.count(NOISE_EVENTS)? as f64)).collect();
        Some((setting.to_string(), crate::stats::mean(&counts)?))
    };
    let verdict = judge(&runs);
    Found {
        in_words: verdict.in_words(),
        verdict,
        runs,
        events_per_run: [Setting::Augmented, Setting::Plain]
            .into_iter()
            .filter_map(events)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Op, Policy};
    use crate::plan::{Plan, Stopping};
    use crate::stats::student_quantile;
    use crate::trial::{Case, Repeats, Sample, Trials};

    fn plan() -> Plan<Trials> {
        let case = |setting, environment| Case {
            trial: Trial::Execution(Execution {
                setting,
                environment,
                noise: Noise::Net,
                noise_cpu: 0,
                work: Work::new(1024, 8, Op::Rmw).unwrap(),
                laps: 10,
                seed: 1,
            }),
            cpu: 1,
            policy: Policy::Other,
        };
        let environments = [Environment::Quiet, Environment::Disturbed];
        let settings = [Setting::Augmented, Setting::Plain];
        let cases = settings.iter().flat_map(|setting| environments.map(|e| case(*setting, e)));
        Plan {
            experiment: NAME.into(),
            cases: cases.collect(),
            seed: 1,
            batching: Repeats { trials: 1 },
            stopping: Stopping { precision: 0.0, budget_ns: 1, rounds: Some(6), confidence: 0.95 },
        }
    }

    fn sample(case: usize, round: u32, time: i64, events: Option<i64>) -> Sample {
        Sample {
            case,
            round,
            elapsed_ns: time as u64,
            elapsed_ticks: None,
            gaps: Vec::new(),
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
        let growth = |growth: Option<crate::stats::Growth>| growth.unwrap().ratio;
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
    fn without_runs_nothing_is_told() {
        let plan = plan();
        let found = find(&ByCase::new(&plan, &[]), plan.cases.len());
        assert!(found.in_words.contains("cannot tell"), "{}", found.in_words);
        assert!(found.events_per_run.is_empty());
    }

    #[test]
    fn names_read_back() {
        for noise in Noise::ALL {
            assert_eq!(noise.name().parse(), Ok(*noise));
        }
        assert!("loud".parse::<Noise>().unwrap_err().contains("timer"));
        let Trial::Execution(execution) = &plan().cases[3].trial else { panic!("an execution") };
        assert_eq!(execution.to_string(), "two of 1 KiB, plain, disturbed by net");
    }
}

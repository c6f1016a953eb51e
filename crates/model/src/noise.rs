//! Was the machine quiet enough for the figures to mean something?

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pairing::Grouped;
use crate::plan::Plan;
use crate::ring::{Disturbance, Sample};
use crate::speed::{CleanCounts, LEAST_SHARE, Level};
use stats::{mad_sigma, median};

/// How quiet the machine was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoiseLevel {
    /// Differences of a few percent can be seen.
    Quiet,
    /// Figures stand, within their intervals; small differences drown.
    Noisy,
    /// The figures say more about the neighbours than about switching.
    Unusable,
    /// Too few rounds to tell.
    Unknown,
}

impl NoiseLevel {
    /// The worse of two; what cannot be told gives way.
    fn worse(self, other: Self) -> Self {
        let rank = |level: Self| match level {
            Self::Unknown => 0,
            Self::Quiet => 1,
            Self::Noisy => 2,
            Self::Unusable => 3,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

/// The verdict on the machine's noise and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseVerdict {
    /// How quiet.
    pub level: NoiseLevel,
    /// Share of the slices that ran at full speed with nobody else on the core as the machine was found, 0 to
    /// 1. The verdict rests on it where it is there; absent where nobody looked.
    #[serde(default)]
    pub clean_share: Option<f64>,
    /// Relative scatter of a case from round to round (MAD times 1.4826 over median), the median
    /// over cases. Absent below two rounds.
    pub round_spread: Option<f64>,
    /// Share of disturbed samples, 0 to 1, of the case that was disturbed most. The cases do not
    /// share a disturbance evenly: a solo ring never sleeps, so the scheduler gives others more of
    /// its time than of a ring whose members sleep.
    pub disturbed_share: f64,
    /// What it was, in words; empty when quiet.
    pub reasons: Vec<String>,
}

/// Below this share of clean slices a machine is called noisy; unusable if below [`LEAST_SHARE`] of all were
/// clean, those that were waited for included.
pub const QUIET_SHARE: f64 = 0.5;

/// Above this scatter between rounds a machine is called noisy, above [`UNUSABLE_SPREAD`] unusable. Where
/// nobody looked at its speed.
pub const NOISY_SPREAD: f64 = 0.05;
/// See [`NOISY_SPREAD`].
pub const UNUSABLE_SPREAD: f64 = 0.25;
/// Above this share of disturbed samples a machine is called noisy, above
/// [`UNUSABLE_DISTURBED`] unusable.
pub const NOISY_DISTURBED: f64 = 0.10;
/// See [`NOISY_DISTURBED`].
pub const UNUSABLE_DISTURBED: f64 = 0.50;

/// Judges the noise of a run from all samples of its rings: by the share of clean slices and what kept the others from
/// being so, or where nobody looked by the scatter of rounds and the disturbed samples.
pub fn judge<'a>(
    plan: &Plan,
    samples: impl IntoIterator<Item = &'a Sample>,
    grouped: &Grouped,
) -> NoiseVerdict {
    let samples: Vec<&Sample> = samples.into_iter().collect();
    let verdict = judge_rounds(plan, &samples, grouped);
    let slices = (0..plan.cases.len()).filter_map(|case| grouped.slices(case));
    let clean = slices.fold(CleanCounts::default(), |all, slices| all.plus(slices.clean_counts()));
    let kinds = Kinds::count(plan, &samples).in_words(samples.len());
    verdict.by_clean_slices(clean, grouped.levels(), kinds)
}

/// What the quanta say of the clock and of who shared the core.
fn speed_in_words(levels: &BTreeMap<Vec<u32>, Level>) -> Vec<String> {
    let several = levels.len() > 1;
    let words = |(cpus, level): (&Vec<u32>, &Level)| {
        let on = match several {
            true => {
                let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
                format!(" on CPU {}", cpus.join(","))
            }
            false => String::new(),
        };
        let shared = 1.0 - level.unshared_share;
        let slowdown = level.shared_slowdown.filter(|_| shared >= TOLD_SHARE);
        let core = slowdown.map(|slowdown| {
            format!(
                "the core was shared{on} for {:.0} % of the time and then {:.2} times as slow",
                shared * 100.0,
                slowdown
            )
        });
        let clock = (level.other_clock_share >= TOLD_SHARE).then(|| {
            let percent = level.other_clock_share * 100.0;
            format!("the clock had another speed{on} for {percent:.0} % of the time")
        });
        core.into_iter().chain(clock)
    };
    levels.iter().flat_map(words).collect()
}

/// Shares of the time below this are not worth a word.
const TOLD_SHARE: f64 = 0.02;

fn judge_rounds(plan: &Plan, samples: &[&Sample], grouped: &Grouped) -> NoiseVerdict {
    let spreads: Vec<f64> = plan.rings().filter_map(|(case, _)| spread(grouped, case)).collect();
    let round_spread = median(&spreads);
    let kinds = Kinds::count(plan, samples);
    let shares = shares(plan, samples);
    let disturbed_share = shares.iter().copied().fold(0.0, f64::max);
    let mut reasons = kinds.in_words(samples.len());
    let solo = plan.rings().filter(|(_, case)| case.members == 1);
    let solo_share = solo.map(|(number, _)| shares[number]).fold(0.0, f64::max);
    if solo_share > NOISY_DISTURBED {
        reasons.push(format!(
            "{:.0} % of the solo ring's: what lies above it by real time is biased, mostly down",
            solo_share * 100.0
        ));
    }
    verdict(round_spread, disturbed_share, reasons)
}

/// The verdict from a relative scatter between rounds and a share of disturbed samples; `reasons`
/// are those of the disturbances.
pub fn verdict(
    round_spread: Option<f64>,
    disturbed_share: f64,
    mut reasons: Vec<String>,
) -> NoiseVerdict {
    let level = match round_spread {
        None => NoiseLevel::Unknown,
        Some(s) if s > UNUSABLE_SPREAD || disturbed_share > UNUSABLE_DISTURBED => {
            NoiseLevel::Unusable
        }
        Some(s) if s > NOISY_SPREAD || disturbed_share > NOISY_DISTURBED => NoiseLevel::Noisy,
        Some(_) => NoiseLevel::Quiet,
    };
    match round_spread {
        None => reasons.insert(0, "one round is too few to judge it".to_string()),
        Some(s) if s > NOISY_SPREAD => {
            reasons.insert(0, format!("rounds scatter by {:.0} %", s * 100.0));
        }
        Some(_) => {}
    }
    NoiseVerdict { level, clean_share: None, round_spread, disturbed_share, reasons }
}

fn spread(grouped: &Grouped, case: usize) -> Option<f64> {
    let figures: Vec<f64> =
        grouped.as_found_by_round(case, Sample::ns_per_hop).into_values().collect();
    Some(mad_sigma(&figures)? / median(&figures)?)
}

/// Share of disturbed samples of each case, 0 for a case without samples.
fn shares(plan: &Plan, samples: &[&Sample]) -> Vec<f64> {
    let mut counts = vec![(0_u32, 0_u32); plan.cases.len()];
    for sample in samples {
        let Some((case, count)) = plan.ring(sample.case).zip(counts.get_mut(sample.case)) else {
            continue;
        };
        count.0 += u32::from(!sample.disturbances(case).is_empty());
        count.1 += 1;
    }
    let share = |(disturbed, all): &(u32, u32)| f64::from(*disturbed) / f64::from(*all).max(1.0);
    counts.iter().map(share).collect()
}

/// Disturbed samples by what disturbed them.
#[derive(Default)]
struct Kinds {
    steal: usize,
    other_work: usize,
    major_faults: usize,
    migrations: usize,
}

impl Kinds {
    fn count(plan: &Plan, samples: &[&Sample]) -> Self {
        let mut kinds = Self::default();
        for sample in samples {
            let Some(case) = plan.ring(sample.case) else { continue };
            for disturbance in sample.disturbances(case) {
                *match disturbance {
                    Disturbance::Steal { .. } => &mut kinds.steal,
                    Disturbance::OtherWork { .. } => &mut kinds.other_work,
                    Disturbance::MajorFaults { .. } => &mut kinds.major_faults,
                    Disturbance::Migrations { .. } => &mut kinds.migrations,
                } += 1;
            }
        }
        kinds
    }

    fn in_words(&self, samples: usize) -> Vec<String> {
        [
            (self.steal, "lost time to the hypervisor (steal)"),
            (self.other_work, "shared the CPU with other work"),
            (self.major_faults, "waited for pages"),
            (self.migrations, "saw a pinned member move"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} of {samples} samples {what}"))
        .collect()
    }
}

impl NoiseVerdict {
    /// The verdict by the clean ones of the judged slices, where there are such: `kinds` are the disturbances
    /// of the samples in words.
    pub(crate) fn by_clean_slices(
        self,
        clean: CleanCounts,
        levels: &BTreeMap<Vec<u32>, Level>,
        kinds: Vec<String>,
    ) -> Self {
        let Some((share, share_of_all)) = clean.share_as_found().zip(clean.share()) else {
            return self;
        };
        let level = match share {
            // Too few of all, waited for or not: no figure at full speed comes of them.
            _ if share_of_all < LEAST_SHARE => NoiseLevel::Unusable,
            share if share < QUIET_SHARE => NoiseLevel::Noisy,
            _ => NoiseLevel::Quiet,
        };
        let reasons = speed_in_words(levels).into_iter().chain(kinds).collect();
        Self { level, clean_share: Some(share), reasons, ..self }
    }

    /// The verdict on several groups of cases, each with its name: the worst of theirs.
    pub fn together<'a>(groups: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let mut all = Self {
            level: NoiseLevel::Unknown,
            clean_share: None,
            round_spread: None,
            disturbed_share: 0.0,
            reasons: Vec::new(),
        };
        for (name, group) in groups {
            all.level = all.level.worse(group.level);
            all.round_spread =
                [all.round_spread, group.round_spread].into_iter().flatten().reduce(f64::max);
            all.clean_share =
                [all.clean_share, group.clean_share].into_iter().flatten().reduce(f64::min);
            all.disturbed_share = all.disturbed_share.max(group.disturbed_share);
            all.reasons.extend(group.reasons.iter().map(|reason| format!("{name}: {reason}")));
        }
        all
    }

    /// One sentence: the level and why.
    pub fn in_words(&self) -> String {
        let level = match self.level {
            NoiseLevel::Quiet => "quiet",
            NoiseLevel::Noisy => "noisy",
            NoiseLevel::Unusable => "unusable",
            NoiseLevel::Unknown => "unknown",
        };
        let mut facts = Vec::new();
        if let Some(share) = self.clean_share {
            facts.push(format!("{:.0} % of the time at full speed and undisturbed", share * 100.0));
        } else if let Some(spread) = self.round_spread.filter(|s| *s <= NOISY_SPREAD) {
            facts.push(format!("rounds scatter by {:.1} %", spread * 100.0));
        }
        facts.extend(self.reasons.iter().cloned());
        format!("{level} ({})", facts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::{Batching, Stopping};
    use crate::ring::{Case, Counters, Kind, Placement, Policy};
    use crate::speed::{Reference, cut};

    fn case(members: u32) -> Case {
        let placement = Placement::Same { cpu: 1 };
        let (kind, policy) = (Kind::Process, Policy::Other);
        Case {
            members,
            kind,
            link: "pipe".into(),
            work: None,
            placement,
            policy,
            priority: None,
            state: None,
        }
    }

    fn plan(cases: &[Case]) -> Plan {
        Plan {
            experiment: Experiment::Ring,
            cases: cases.iter().cloned().map(Into::into).collect(),
            seed: 1,
            batching: Batching::default(),
            stopping: Stopping { precision: 0.01, budget_ns: 1, rounds: None, confidence: 0.95 },
            reference: Reference::default(),
        }
    }

    /// Ten rounds in slices, of which the first `clean` of every ten are.
    fn sliced(clean: u64) -> NoiseVerdict {
        let plan = plan(&[case(1), case(2)]);
        let sample = |case: usize, round: u32| Sample {
            case,
            round,
            sample: 0,
            laps: 1000,
            hops: 1000,
            elapsed_ns: 10_000_000,
            counters: Counters { cpu_ns: 10_200_000, ..Counters::default() },
            steal_ns: Some(0),
            setup_ns: 0,
            slices: None,
            triples: None,
            huge_page_bytes: None,
        };
        let both = (0..10).flat_map(|round| [sample(0, round), sample(1, round)]);
        let samples: Vec<Sample> = both.map(|s| cut(s, 20, |index| index < clean)).collect();
        judge(&plan, &samples, &Grouped::new(&plan, &samples))
    }

    #[test]
    fn where_the_speed_was_looked_at_the_clean_share_decides() {
        let quiet = sliced(20);
        assert_eq!((quiet.level, quiet.clean_share), (NoiseLevel::Quiet, Some(1.0)));
        assert_eq!(quiet.in_words(), "quiet (100 % of the time at full speed and undisturbed)");
        let noisy = sliced(8);
        assert_eq!(noisy.level, NoiseLevel::Noisy);
        assert!(noisy.in_words().contains("the core was shared for"), "{}", noisy.in_words());
        assert!(noisy.in_words().contains("1.40 times as slow"), "{}", noisy.in_words());
        // The known level of an unshared core, which this run hardly saw.
        let mut plan = plan(&[case(1)]);
        plan.reference.unshared_ratio = Some(0.7);
        let one = |round| Sample {
            case: 0,
            round,
            sample: 0,
            laps: 1000,
            hops: 1000,
            elapsed_ns: 10_000_000,
            counters: Counters::default(),
            steal_ns: None,
            setup_ns: 0,
            slices: None,
            triples: None,
            huge_page_bytes: None,
        };
        let samples: Vec<Sample> = (0..10).map(|round| cut(one(round), 10, |_| true)).collect();
        let unusable = judge(&plan, &samples, &Grouped::new(&plan, &samples));
        assert_eq!((unusable.level, unusable.clean_share), (NoiseLevel::Unusable, Some(0.0)));
    }

    /// Ten rounds of a solo ring and a ring of two; `busy` of the solo's samples and all rounds from
    /// `slow` on are not what they should be.
    fn judged(busy: u32, slow: u32, factor: u64) -> NoiseVerdict {
        let plan = plan(&[case(1), case(2)]);
        let sample = |case: usize, round: u32| {
            let elapsed_ns = if round >= slow { 1_000_000 * factor } else { 1_000_000 };
            let cpu_ns = if case == 0 && round < busy { elapsed_ns / 2 } else { elapsed_ns };
            Sample {
                case,
                round,
                sample: 0,
                laps: 1000,
                hops: 1000,
                elapsed_ns,
                counters: Counters { cpu_ns, ..Counters::default() },
                steal_ns: Some(0),
                setup_ns: 0,
                slices: None,
                triples: None,
                huge_page_bytes: None,
            }
        };
        let samples: Vec<Sample> =
            (0..10).flat_map(|round| [sample(0, round), sample(1, round)]).collect();
        judge(&plan, &samples, &Grouped::new(&plan, &samples))
    }

    #[test]
    fn steady_rounds_are_quiet_and_one_round_cannot_tell() {
        let quiet = judged(0, 10, 1);
        assert_eq!((quiet.level, quiet.reasons.len()), (NoiseLevel::Quiet, 0));
        let one = judge(&plan(&[case(1)]), &[], &Grouped::default());
        assert_eq!(one.level, NoiseLevel::Unknown);
    }

    #[test]
    fn the_case_that_was_disturbed_most_decides() {
        // 2 of 20 samples, but 2 of the solo's 10.
        let noisy = judged(2, 10, 1);
        assert_eq!((noisy.level, noisy.disturbed_share), (NoiseLevel::Noisy, 0.2));
        assert!(noisy.in_words().contains("20 % of the solo ring's"), "{}", noisy.in_words());
        assert_eq!(judged(6, 10, 1).level, NoiseLevel::Unusable);
    }

    #[test]
    fn rounds_that_scatter_are_noise() {
        let unusable = judged(0, 5, 3);
        assert_eq!(unusable.level, NoiseLevel::Unusable);
        assert!(unusable.in_words().contains("scatter"), "{}", unusable.in_words());
    }
}

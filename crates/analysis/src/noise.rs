//! Was the machine quiet enough for the figures to mean something?

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::marked;
use crate::marked::{MarkedText, SpanRole};
use crate::speed::{CaseSlices, CleanCounts, LEAST_SHARE, Level, Levels};
use crate::table::Table;
use rundata::experiment::{Takes, named};
use rundata::ring::{Case, Disturbance, Halt, Sample};
use rundata::trial::Trial;
use rundata::trial::interference::Environment;
use rundata::words;
use stats::{mad_sigma, median};

/// How quiet the machine was, from what cannot be told to the worst.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NoiseLevel {
    /// Too few rounds to tell.
    Unknown,
    /// Differences of a few percent can be seen.
    Quiet,
    /// Figures stand, within their intervals; small differences drown.
    Noisy,
    /// The figures say more about the neighbours than about switching.
    Unusable,
}

named!(NoiseLevel, "level of noise", Unknown => "unknown", Quiet => "quiet", Noisy => "noisy",
    Unusable => "unusable");

/// How much of the time something else shared the core of a measured CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedCore {
    /// Share of the quanta, 0 to 1, in which the core was shared.
    pub share: f64,
    /// How many times as long the throughput-bound loop took then, at the median.
    pub slowdown: f64,
}

/// Samples of rings that stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HaltedSamples {
    /// Why most of them did.
    pub halt: Halt,
    /// How many did so.
    pub count: u32,
    /// Of so many samples.
    pub samples: u32,
}

/// The verdict on the machine's noise and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseVerdict {
    /// How quiet.
    pub level: NoiseLevel,
    /// Share of the slices, 0 to 1, that ran at full speed with nobody else on the core as the
    /// machine was found. The verdict rests on it where it is there; absent where nobody looked.
    pub clean_share: Option<f64>,
    /// How the clocks that were seen differ from the one that figures are at, as shares of it: the
    /// slowest and the fastest. Absent where it moved by less than 2 %. It is no disturbance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_range: Option<(f64, f64)>,
    /// Share of the slices, 0 to 1, in which other tasks ran on the measured CPU, or had a turn
    /// within 10 ms; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_alone_share: Option<f64>,
    /// How the core was shared, of the CPU where it was most; absent below 2 % of the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_core: Option<SharedCore>,
    /// Samples of rings that stood still; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted: Option<HaltedSamples>,
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

/// Below this share of clean slices a machine is called noisy; unusable if below [`LEAST_SHARE`] of
/// all were clean, those that were waited for included.
const QUIET_SHARE: f64 = 0.5;

/// Above this scatter between rounds a machine is called noisy, above [`UNUSABLE_SPREAD`] unusable.
/// Where nobody looked at its speed.
pub const NOISY_SPREAD: f64 = 0.05;
/// See [`NOISY_SPREAD`].
pub const UNUSABLE_SPREAD: f64 = 0.25;
/// Above this share of disturbed samples a machine is called noisy, above
/// [`UNUSABLE_DISTURBED`] unusable.
pub const NOISY_DISTURBED: f64 = 0.10;
/// See [`NOISY_DISTURBED`].
pub const UNUSABLE_DISTURBED: f64 = 0.50;

/// Shares of the time below this are not told.
const TOLD_SHARE: f64 = 0.02;

/// What a disturbed sample did, by [`kind`]; behind these come the halts.
const KINDS: [&str; 4] = [
    "had time stolen by the hypervisor",
    "shared the CPU with other work",
    "waited for pages",
    "saw a pinned member move",
];

/// Samples by kind of disturbance.
type KindCounts = [usize; KINDS.len() + Halt::ALL.len()];

fn kind(disturbance: &Disturbance) -> usize {
    match disturbance {
        Disturbance::Steal(_) => 0,
        Disturbance::OtherWork(_) => 1,
        Disturbance::MajorFaults(_) => 2,
        Disturbance::Migrations(_) => 3,
        Disturbance::Halt(halt, _) => KINDS.len() + *halt as usize,
    }
}

/// The halt that most samples had.
fn most_halted(kinds: &KindCounts, samples: usize) -> Option<HaltedSamples> {
    let counts = Halt::ALL.into_iter().zip(&kinds[KINDS.len()..]);
    let (halt, count) = counts.max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 0)?;
    Some(HaltedSamples { halt, count: *count as u32, samples: samples as u32 })
}

/// Disturbed samples by what disturbed them, in words.
fn in_words(disturbed: &[usize], samples: usize) -> Vec<String> {
    let halts = Halt::ALL.map(|halt| format!("stood still: {}", halt.in_words()));
    let names = KINDS.into_iter().chain(halts.iter().map(String::as_str));
    let kinds = disturbed.iter().zip(names).filter(|(count, _)| **count > 0);
    kinds.map(|(count, what)| format!("{count} of {samples} samples {what}")).collect()
}

/// Scatter of figures relative to the size of their median, which may be below zero.
fn spread(figures: &[f64]) -> Option<f64> {
    Some(mad_sigma(figures)? / median(figures).filter(|middle| *middle != 0.0)?.abs())
}

/// The verdict on the noise of a run, by its rings and its trials as far as it has them.
pub fn judge(table: &Table) -> NoiseVerdict {
    match table.plan.experiment.takes() {
        Takes::Rings => of_rings(table),
        Takes::Trials => of_trials(table),
        Takes::Both => {
            let rings = table.plan.rings().next().map(|_| ("rings", of_rings(table)));
            let trials = table.plan.trials().next().map(|_| ("trials", of_trials(table)));
            NoiseVerdict::together(rings.into_iter().chain(trials), &speed_in_words(table.levels()))
        }
    }
}

/// By the share of clean slices where there are slices, else by the scatter of the cases' medians
/// from round to round and by the samples that lost time to the hypervisor. Cases that are
/// disturbed on purpose say nothing of the machine.
fn of_trials(table: &Table) -> NoiseVerdict {
    let is_left_alone = |(_, trial): &(usize, &Trial)| match trial {
        Trial::Execution(of) => of.environment != Environment::Disturbed,
        _ => true,
    };
    let left_alone = || table.trials().filter(is_left_alone);
    let spread = |(case, trial): (usize, &Trial)| {
        let figure = trial.headline().of;
        let figures = table.of_trial(case).iter().filter_map(|sample| figure(sample));
        spread(&figures.collect::<Vec<f64>>())
    };
    let spreads: Vec<f64> = left_alone().filter_map(spread).collect();
    let samples = || left_alone().flat_map(|(case, _)| table.of_trial(case));
    let stolen = samples().filter(|sample| sample.steal_ns.is_some_and(|ns| ns > 0)).count();
    let all = samples().count();
    let share = stolen as f64 / (all as f64).max(1.0);
    let counts = left_alone().map(|(case, _)| table.counts(case));
    let counts = counts.fold(CleanCounts::default(), CleanCounts::plus);
    let reasons = in_words(&[stolen], all);
    verdict(median(&spreads), share, reasons, counts, table.levels())
}

/// By the share of clean slices and what kept the others from being so, or where nobody looked by
/// the scatter of rounds and the disturbed samples.
fn of_rings(table: &Table) -> NoiseVerdict {
    let (mut kinds, mut count, mut halted) = (KindCounts::default(), 0, NoiseLevel::Unknown);
    let mut shares: BTreeMap<usize, f64> = BTreeMap::new();
    for (number, case) in table.plan.rings() {
        let (mut disturbed, mut all) = (0, 0);
        for disturbances in table.samples(number).map(|sample| sample.disturbances(case)) {
            disturbances.iter().for_each(|disturbance| kinds[kind(disturbance)] += 1);
            disturbed += usize::from(!disturbances.is_empty());
            all += 1;
        }
        shares.insert(number, disturbed as f64 / f64::max(all as f64, 1.0));
        halted = halted.max(by_halts(table.samples(number), case));
        count += all;
    }
    let rings = || shares.keys().copied();
    let by_round = |case| table.as_found_by_round(case, Sample::ns_per_hop).into_values();
    let spreads = rings().filter_map(|case| spread(&by_round(case).collect::<Vec<f64>>()));
    let spreads = median(&spreads.collect::<Vec<f64>>());
    let disturbed = shares.values().copied().fold(0.0, f64::max);
    let clean = rings().filter_map(|case| table.slices(case)).map(CaseSlices::clean_counts);
    let clean = clean.fold(CleanCounts::default(), CleanCounts::plus);
    let mut verdict = verdict(spreads, disturbed, in_words(&kinds, count), clean, table.levels());
    verdict.level = verdict.level.max(halted);
    verdict.halted = most_halted(&kinds, count);
    let solos = table.plan.rings().filter(|(_, case)| case.members == 1);
    let solo = solos.map(|(number, _)| shares[&number]).fold(0.0, f64::max);
    if solo > NOISY_DISTURBED && verdict.clean_share.is_none() {
        verdict.reasons.push(format!(
            "{:.0} % of the solo ring's: costs above it by real time are biased, mostly down",
            solo * 100.0
        ));
    }
    verdict
}

/// How a core was shared; absent where that is not worth telling.
fn shared_core(level: &Level) -> Option<SharedCore> {
    let share = 1.0 - level.unshared_share;
    let slowdown = level.shared_slowdown.filter(|_| share >= TOLD_SHARE)?;
    Some(SharedCore { share, slowdown })
}

fn most_shared(all: impl Iterator<Item = SharedCore>) -> Option<SharedCore> {
    all.max_by(|one, other| one.share.total_cmp(&other.share))
}

/// What the quanta say of who shared the core.
fn speed_in_words(levels: &Levels) -> Vec<String> {
    let words = |(cpus, level): (&Vec<u32>, &Level)| {
        let one = levels.len() == 1;
        let on = if one { String::new() } else { format!(" on CPU {}", words::list(cpus)) };
        shared_core(level).map(|SharedCore { share, slowdown }| {
            format!(
                "the core was shared{on} for {:.0} % of the time and then {slowdown:.2} times as \
                 slow",
                share * 100.0
            )
        })
    };
    levels.iter().flat_map(words).collect()
}

/// What the samples of a case that stood still say: by their share, and by their share of the time,
/// which is in the mean. The quanta between slices do not see them.
fn by_halts<'a>(samples: impl Iterator<Item = &'a Sample>, case: &Case) -> NoiseLevel {
    let (mut all, mut stood, mut elapsed_ns, mut stood_ns) = (0.0, 0.0, 0.0, 0.0);
    for sample in samples {
        let halts = sample.disturbances(case).into_iter().filter_map(|one| match one {
            Disturbance::Halt(_, ns) => Some(ns as f64),
            _ => None,
        });
        let halted_ns = halts.reduce(f64::max);
        all += 1.0;
        stood += f64::from(u8::from(halted_ns.is_some()));
        elapsed_ns += sample.elapsed_ns as f64;
        stood_ns += halted_ns.unwrap_or(0.0);
    }
    let by_time = stood_ns > NOISY_DISTURBED * elapsed_ns;
    let by_time = if by_time { NoiseLevel::Noisy } else { NoiseLevel::Unknown };
    by_time.max(by_disturbed(stood / f64::max(all, 1.0)))
}

/// What a share of disturbed samples alone says.
fn by_disturbed(share: f64) -> NoiseLevel {
    match share {
        share if share > UNUSABLE_DISTURBED => NoiseLevel::Unusable,
        share if share > NOISY_DISTURBED => NoiseLevel::Noisy,
        _ => NoiseLevel::Unknown,
    }
}

/// The verdict by the clean ones of the judged slices, where there are such, else by a relative
/// scatter between rounds and a share of disturbed samples; `reasons` are the disturbances in
/// words.
fn verdict(
    round_spread: Option<f64>,
    disturbed_share: f64,
    mut reasons: Vec<String>,
    clean: CleanCounts,
    levels: &Levels,
) -> NoiseVerdict {
    let clean_share = clean.share_as_found();
    let not_alone_share = clean.not_alone_share();
    let level = match (clean_share, round_spread) {
        // Too few of all, waited for or not: no figure at full speed comes of them.
        (Some(_), _) if clean.share().is_some_and(|all| all < LEAST_SHARE) => NoiseLevel::Unusable,
        (Some(_), _) if clean.are_not_alone() => NoiseLevel::Unusable,
        (Some(_), _) if clean.undisturbed_share().is_some_and(|of| of < QUIET_SHARE) => {
            NoiseLevel::Noisy
        }
        // The figures are of the slices between, and hold; quiet it was not.
        (Some(_), _) if disturbed_share > NOISY_DISTURBED => NoiseLevel::Noisy,
        (Some(_), _) if not_alone_share.is_some_and(|of| of > NOISY_DISTURBED) => NoiseLevel::Noisy,
        (Some(_), _) => NoiseLevel::Quiet,
        (None, None) => NoiseLevel::Unknown,
        (None, Some(spread)) => by_disturbed(disturbed_share).max(match spread {
            spread if spread > UNUSABLE_SPREAD => NoiseLevel::Unusable,
            spread if spread > NOISY_SPREAD => NoiseLevel::Noisy,
            _ => NoiseLevel::Quiet,
        }),
    };
    let first = match (clean_share, round_spread) {
        (Some(_), _) => {
            others_in_words(not_alone_share).into_iter().chain(speed_in_words(levels)).collect()
        }
        (None, None) => vec!["one round is too few to judge it".to_string()],
        (None, Some(spread)) if spread > NOISY_SPREAD => {
            vec![format!("rounds scatter by {:.0} %", spread * 100.0)]
        }
        _ => Vec::new(),
    };
    reasons.splice(..0, first);
    NoiseVerdict {
        level,
        clean_share,
        clock_range: clean_share.and_then(|_| clock_range(levels)),
        not_alone_share,
        halted: None,
        shared_core: clean_share.and_then(|_| most_shared(levels.values().filter_map(shared_core))),
        round_spread,
        disturbed_share,
        reasons,
    }
}

/// Of all CPUs that were measured on.
fn clock_range(levels: &Levels) -> Option<(f64, f64)> {
    levels.values().filter_map(Level::clock_range).reduce(wider)
}

fn wider(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// `the core's clock went from 12 % below that of the figures to 2 % above it`.
fn clocks_in_words((slowest, fastest): (f64, f64)) -> String {
    let apart = |share: f64| match (100.0 * share).round() as i64 {
        0 => String::new(),
        percent if percent < 0 => format!("{} % below ", -percent),
        percent => format!("{percent} % above "),
    };
    let (from, to) = (apart(slowest), apart(fastest));
    format!("the core's clock went from {from}that of the figures to {to}it")
}

fn others_in_words(not_alone_share: Option<f64>) -> Option<String> {
    let share = not_alone_share.filter(|share| *share >= TOLD_SHARE)?;
    Some(format!("other tasks shared the CPU in {:.0} % of the slices", share * 100.0))
}

impl NoiseLevel {
    /// Returns the level as people are told it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Unusable => "very noisy",
            other => other.name(),
        }
    }
}

impl NoiseVerdict {
    /// The verdict on several groups of cases, each with its name: the worst of theirs. What is
    /// `common` to them is told once.
    pub fn together<'a>(
        groups: impl IntoIterator<Item = (&'a str, Self)>,
        common: &[String],
    ) -> Self {
        let (level, reasons) = (NoiseLevel::Unknown, Vec::new());
        let mut all = Self {
            level,
            clean_share: None,
            clock_range: None,
            not_alone_share: None,
            shared_core: None,
            halted: None,
            round_spread: None,
            disturbed_share: 0.0,
            reasons,
        };
        for (name, group) in groups {
            let both = |one: Option<f64>, other, of: fn(f64, f64) -> f64| {
                [one, other].into_iter().flatten().reduce(of)
            };
            all.level = all.level.max(group.level);
            all.round_spread = both(all.round_spread, group.round_spread, f64::max);
            all.clean_share = both(all.clean_share, group.clean_share, f64::min);
            all.clock_range =
                [all.clock_range, group.clock_range].into_iter().flatten().reduce(wider);
            all.halted = all.halted.or(group.halted);
            all.shared_core =
                most_shared([all.shared_core, group.shared_core].into_iter().flatten());
            all.not_alone_share = both(all.not_alone_share, group.not_alone_share, f64::max);
            all.disturbed_share = all.disturbed_share.max(group.disturbed_share);
            for reason in group.reasons {
                match common.contains(&reason) {
                    false => all.reasons.push(format!("{name}: {reason}")),
                    true if all.reasons.contains(&reason) => {}
                    true => all.reasons.push(reason),
                }
            }
        }
        all
    }

    /// Returns the verdict with its reasons: `noisy (60 % of the time at full speed ...)`; a level
    /// that leaves doubt is marked so.
    pub fn in_words(&self) -> MarkedText {
        let level = self.level.in_words();
        let level = match self.level {
            NoiseLevel::Unknown | NoiseLevel::Quiet => level.into(),
            NoiseLevel::Noisy | NoiseLevel::Unusable => MarkedText::new(SpanRole::Doubtful, level),
        };
        marked![level, format!(" ({})", self.facts().join("; "))]
    }

    /// Returns what the verdict rests on.
    fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if let Some(share) = self.clean_share {
            facts.push(format!("{:.0} % of the time at full speed and undisturbed", share * 100.0));
        } else if let Some(spread) = self.round_spread.filter(|s| *s <= NOISY_SPREAD) {
            facts.push(format!("rounds scatter by {:.1} %", spread * 100.0));
        }
        facts.extend(self.clock_range.map(clocks_in_words));
        facts.extend(self.reasons.iter().cloned());
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::cut;
    use rundata::experiment::Experiment;
    use rundata::placement::Placement;
    use rundata::plan::Plan;
    use rundata::ring::{Counters, Halts, Kind, Policy};

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
            burden: None,
        }
    }

    fn plan(cases: &[Case]) -> Plan {
        Plan { seed: 1, ..Plan::of(Experiment::Ring, cases.iter().cloned()) }
    }

    #[test]
    fn clocks_are_told_beside_that_of_the_figures() {
        let said = clocks_in_words((-0.118, 0.021));
        assert_eq!(
            said,
            "the core's clock went from 12 % below that of the figures to 2 % above it"
        );
        let said = clocks_in_words((0.001, 0.1));
        assert_eq!(said, "the core's clock went from that of the figures to 10 % above it");
    }

    #[test]
    fn a_scatter_is_never_below_zero() {
        let above = spread(&[90.0, 100.0, 120.0]);
        assert!(above.is_some_and(|spread| spread > 0.1), "{above:?}");
        assert_eq!(spread(&[-90.0, -100.0, -120.0]), above);
        assert_eq!(spread(&[-10.0, 0.0, 10.0]), None);
    }

    /// Ten rounds in slices, of which the first `clean` of every ten are.
    fn sliced(clean: u64) -> NoiseVerdict {
        let plan = plan(&[case(1), case(2)]);
        let sample = |case: usize, round: u32| Sample {
            case,
            round,
            laps: 1000,
            hops: 1000,
            elapsed_ns: 10_000_000,
            counters: Counters { cpu_ns: 10_200_000, ..Counters::default() },
            steal_ns: Some(0),
            ..Sample::default()
        };
        let both = (0..10).flat_map(|round| [sample(0, round), sample(1, round)]);
        let samples: Vec<Sample> = both.map(|s| cut(s, 20, |index| index < clean)).collect();
        judge(&Table::of(&plan, &samples, []))
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
            laps: 1000,
            hops: 1000,
            elapsed_ns: 10_000_000,
            counters: Counters::default(),
            ..Sample::default()
        };
        let samples: Vec<Sample> = (0..10).map(|round| cut(one(round), 10, |_| true)).collect();
        let unusable = judge(&Table::of(&plan, &samples, []));
        assert_eq!((unusable.level, unusable.clean_share), (NoiseLevel::Unusable, Some(0.0)));
    }

    /// Ten rounds of a solo ring and a ring of two; `busy` of the solo's samples and all rounds
    /// from `slow` on are not what they should be.
    fn judged(busy: u32, slow: u32, factor: u64) -> NoiseVerdict {
        let plan = plan(&[case(1), case(2)]);
        let sample = |case: usize, round: u32| {
            let elapsed_ns = if round >= slow { 1_000_000 * factor } else { 1_000_000 };
            let cpu_ns = if case == 0 && round < busy { elapsed_ns / 2 } else { elapsed_ns };
            Sample {
                case,
                round,
                laps: 1000,
                hops: 1000,
                elapsed_ns,
                counters: Counters { cpu_ns, ..Counters::default() },
                steal_ns: Some(0),
                ..Sample::default()
            }
        };
        let samples: Vec<Sample> =
            (0..10).flat_map(|round| [sample(0, round), sample(1, round)]).collect();
        judge(&Table::of(&plan, &samples, []))
    }

    #[test]
    fn steady_rounds_are_quiet_and_one_round_cannot_tell() {
        let quiet = judged(0, 10, 1);
        assert_eq!((quiet.level, quiet.reasons.len()), (NoiseLevel::Quiet, 0));
        let plan = plan(&[case(1)]);
        let one = judge(&Table::of(&plan, [], []));
        assert_eq!(one.level, NoiseLevel::Unknown);
    }

    /// Ten rounds in slices at full speed, some of which a member stood still in for longer than
    /// all the rest.
    fn halted(
        rounds: u32,
        stood_ns: u64,
        placement: Placement,
        halts: Option<Halts>,
    ) -> NoiseVerdict {
        let plan = plan(&[Case { placement, ..case(2) }]);
        let sample = |round| {
            let stood_ns = if round < rounds { stood_ns } else { 0 };
            let halts = halts.filter(|_| stood_ns > 0);
            let run_delay_ns = Some(1_000_000);
            let counters =
                Counters { cpu_ns: 10_200_000, run_delay_ns, halts, ..Counters::default() };
            let sample = Sample {
                case: 0,
                round,
                laps: 1000,
                hops: 2000,
                elapsed_ns: 10_000_000,
                counters,
                steal_ns: Some(0),
                ..Sample::default()
            };
            let mut sample = cut(sample, 20, |_| true);
            sample.elapsed_ns += stood_ns;
            sample.slices.iter_mut().for_each(|slices| slices.elapsed_ns[3] += stood_ns);
            sample
        };
        judge(&Table::of(&plan, &(0..10).map(sample).collect::<Vec<Sample>>(), []))
    }

    #[test]
    fn a_ring_that_stood_still_is_told_and_why() {
        let one = Placement::Same { cpu: 1 };
        let two = Placement::Pinned { cpus: vec![0, 1], relation: None };
        let stopped = Some(Halts { continued: true, ..Halts::default() });
        let throttled = Some(Halts { throttled_ns: 1_400_000_000, ..Halts::default() });
        let suspended = Some(Halts { suspended_ns: 1_000_000, ..Halts::default() });
        for (placement, halts, why) in [
            (&one, None, "stopped or starved"),
            (&one, stopped, "a member was stopped by a signal"),
            (&one, throttled, "the CPU quota of the control group was used up"),
            (&two, None, "stopped or starved"),
            (&two, stopped, "a member was stopped by a signal"),
            (&two, suspended, "the machine was suspended"),
        ] {
            let judged = |rounds, stood_ns| halted(rounds, stood_ns, placement.clone(), halts);
            let one = judged(1, 1_500_000_000);
            let told = format!("1 of 10 samples stood still: {why}");
            assert!(one.in_words().contains(&told), "{}", one.in_words());
            // Of the suspended time none is in the elapsed time.
            let suspended = halts.is_some_and(|halts| halts.suspended_ns > 0);
            let level = if suspended { NoiseLevel::Quiet } else { NoiseLevel::Noisy };
            assert_eq!(one.level, level);
            assert_eq!(judged(2, 15_000_000).level, NoiseLevel::Noisy);
            assert_eq!(judged(6, 15_000_000).level, NoiseLevel::Unusable);
            assert_eq!(judged(0, 0).reasons.len(), 0);
        }
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

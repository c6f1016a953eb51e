//! The noise of the machine: whether it was quiet enough for the estimates to be of use.
//!
//! Where the speed was checked, clean slices decide ([`crate::speed`]). Of a run with 1,000 slices,
//! all timed without waiting for an unshared core:
//!
//! - 700 clean: quiet. Figures are of those 700.
//! - 300 clean, and 250 more that only another clock keeps from being clean: quiet, as a changed
//!   clock is no disturbance. With 100 such slices, 40 %, it is noisy.
//! - 700 clean, and competing tasks in or near 120 of the others: noisy. 400 clean, and competing
//!   tasks in or near 510 of the others: unusable, as these were there all the time.
//! - 40 clean, under 5 %: unusable, there is no figure at full speed.
//!
//! Where it was not checked, rounds decide: a scatter of 4 % is quiet, of 10 % noisy, of 30 %
//! unusable. Disturbed samples (stolen time, other work, migrations, halts) make a run noisy above
//! 10 % of a case's samples, and one whose speed was not checked unusable above 50 %.

use rundata::experiment::{CaseKinds, named};
use rundata::ring::{Disturbance, HaltCause, RingCase, RingSample};
use rundata::trial::Trial;
use rundata::trial::interference::Environment;
use rundata::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{mad_sigma, median};

use crate::marked;
use crate::marked::{MarkedText, SpanRole};
use crate::speed::{CleanCounts, LEAST_SHARE, SpeedLevel, SpeedLevels};
use crate::table::Table;

/// The noise level of the machine, from unknown to the worst.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NoiseLevel {
    /// Too few rounds to judge it.
    Unknown,
    /// Differences of a few percent can be seen.
    Quiet,
    /// Estimates hold within their intervals; small differences are not seen.
    Noisy,
    /// The estimates depend more on competing tasks than on switching.
    Unusable,
}

named!(NoiseLevel, "level of noise", Unknown => "unknown", Quiet => "quiet", Noisy => "noisy",
    Unusable => "unusable");

/// The sharing of a measured CPU's core with another hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedCore {
    /// Share of the quanta, 0 to 1, in which the core was shared.
    pub share: f64,
    /// Median factor by which the throughput-bound loop took longer then.
    pub slowdown: f64,
}

/// Samples of rings that stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HaltedSamples {
    /// The most frequent reason.
    pub halt: HaltCause,
    /// Samples with that reason.
    pub count: u32,
    /// Number of samples.
    pub samples: u32,
}

/// The verdict on the machine's noise, and the shares that it is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseVerdict {
    /// The level.
    pub level: NoiseLevel,
    /// Share of clean slices, 0 to 1, among those timed without waiting for an unshared core. The
    /// level is that of this share if it is there; absent where the speed was not checked.
    pub clean_share: Option<f64>,
    /// The slowest and the fastest clock that were seen, as differences from the clock of the
    /// estimates relative to it. Absent below 2 %. A changed clock is no disturbance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_range: Option<(f64, f64)>,
    /// Share of the slices, 0 to 1, with competing tasks on the measured CPU in them or within 10
    /// ms; absent where the speed was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_alone_share: Option<f64>,
    /// The sharing of the core that was shared most; absent below 2 % of the time.
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
    /// The disturbances, in words; empty when quiet.
    pub reasons: Vec<String>,
}

/// Smallest share of clean slices on a quiet machine. It is unusable if fewer than [`LEAST_SHARE`]
/// of all slices were clean, those that were waited for included.
const QUIET_SHARE: f64 = 0.5;

/// Largest scatter between rounds on a quiet machine whose speed was not checked; above
/// [`UNUSABLE_SPREAD`] it is unusable.
pub const NOISY_SPREAD: f64 = 0.05;
/// See [`NOISY_SPREAD`].
pub const UNUSABLE_SPREAD: f64 = 0.25;
/// Largest share of disturbed samples on a quiet machine; above [`UNUSABLE_DISTURBED`] it is
/// unusable.
pub const NOISY_DISTURBED: f64 = 0.10;
/// See [`NOISY_DISTURBED`].
pub const UNUSABLE_DISTURBED: f64 = 0.50;

/// Smallest share of the time that is reported.
const MIN_REPORTED_SHARE: f64 = 0.02;

/// Kinds of disturbance in words, by [`kind_of`]; the halts follow them.
const KINDS: [&str; 4] = [
    "had time stolen by the hypervisor",
    "shared the CPU with other work",
    "waited for pages",
    "saw a pinned member move",
];

/// Samples by kind of disturbance.
type KindCounts = [usize; KINDS.len() + HaltCause::ALL.len()];

fn kind_of(disturbance: &Disturbance) -> usize {
    match disturbance {
        Disturbance::Steal(_) => 0,
        Disturbance::OtherWork(_) => 1,
        Disturbance::MajorFaults(_) => 2,
        Disturbance::Migrations(_) => 3,
        Disturbance::Halt(halt, _) => KINDS.len() + *halt as usize,
    }
}

/// Returns the halt that most samples had.
fn most_halted(kinds: &KindCounts, samples: usize) -> Option<HaltedSamples> {
    let counts = HaltCause::ALL.into_iter().zip(&kinds[KINDS.len()..]);
    let (halt, count) = counts.max_by_key(|(_, count)| **count)?;
    if *count == 0 {
        return None;
    }
    Some(HaltedSamples { halt, count: *count as u32, samples: samples as u32 })
}

/// Returns the counts of disturbed samples by kind, in words.
fn disturbances_in_words(counts: &[usize], samples: usize) -> Vec<String> {
    let mut kinds: Vec<String> = KINDS.iter().map(ToString::to_string).collect();
    for halt in HaltCause::ALL {
        kinds.push(format!("stood still: {}", halt.in_words()));
    }
    let mut words = Vec::new();
    for (count, kind) in counts.iter().zip(kinds) {
        if *count > 0 {
            words.push(format!("{count} of {samples} samples {kind}"));
        }
    }
    words
}

/// Returns the scatter of figures relative to the size of their median, which may be below zero.
fn spread(figures: &[f64]) -> Option<f64> {
    let median = median(figures).filter(|median| *median != 0.0)?;
    Some(mad_sigma(figures)? / median.abs())
}

/// Returns the verdict on the noise of a run, by its rings and its trials as far as it has them.
pub fn judge(table: &Table) -> NoiseVerdict {
    match table.plan.experiment.case_kinds() {
        CaseKinds::Rings => judge_rings(table),
        CaseKinds::Trials => judge_trials(table),
        CaseKinds::Both => {
            let mut groups = Vec::new();
            if table.plan.rings().next().is_some() {
                groups.push(("rings", judge_rings(table)));
            }
            if table.plan.trials().next().is_some() {
                groups.push(("trials", judge_trials(table)));
            }
            NoiseVerdict::together(groups, &sharing_in_words(table.levels()))
        }
    }
}

/// Judges trials by the share of clean slices where there are slices, else by the scatter of the
/// cases' medians from round to round and by the samples that lost time to the hypervisor. Cases
/// that are disturbed on purpose do not count.
fn judge_trials(table: &Table) -> NoiseVerdict {
    let (mut spreads, mut counts) = (Vec::new(), CleanCounts::default());
    let (mut samples, mut stolen) = (0, 0);
    for (case, trial) in table.trials() {
        if is_disturbed_on_purpose(trial) {
            continue;
        }
        let mut figures = Vec::new();
        for sample in table.trial_samples(case) {
            figures.extend((trial.headline().compute)(sample));
            samples += 1;
            stolen += usize::from(sample.steal_ns.is_some_and(|ns| ns > 0));
        }
        spreads.extend(spread(&figures));
        counts = counts.plus(table.counts(case));
    }
    let share = stolen as f64 / (samples as f64).max(1.0);
    let reasons = disturbances_in_words(&[stolen], samples);
    verdict(median(&spreads), share, reasons, counts, table.levels())
}

/// Returns whether the scatter of a trial says nothing of the machine's noise: it is disturbed on
/// purpose, or a trace of whatever went on.
fn is_disturbed_on_purpose(trial: &Trial) -> bool {
    match trial {
        Trial::Execution(run) => run.environment == Environment::Disturbed,
        Trial::Switches(_) => true,
        _ => false,
    }
}

/// Judges rings by the share of clean slices, or where the speed was not checked by the scatter of
/// rounds and the disturbed samples.
fn judge_rings(table: &Table) -> NoiseVerdict {
    let (mut kinds, mut samples, mut halted) = (KindCounts::default(), 0, NoiseLevel::Unknown);
    let (mut spreads, mut counts) = (Vec::new(), CleanCounts::default());
    let (mut disturbed_share, mut solo_share): (f64, f64) = (0.0, 0.0);
    for (number, case) in table.plan.rings() {
        let (mut disturbed, mut total) = (0, 0);
        for sample in table.samples(number) {
            let disturbances = sample.disturbances(case);
            for disturbance in &disturbances {
                kinds[kind_of(disturbance)] += 1;
            }
            disturbed += usize::from(!disturbances.is_empty());
            total += 1;
        }
        let share = disturbed as f64 / f64::max(total as f64, 1.0);
        disturbed_share = disturbed_share.max(share);
        if case.members == 1 {
            solo_share = solo_share.max(share);
        }
        halted = halted.max(judge_halts(table.samples(number), case));
        samples += total;
        let by_round = table.as_found_by_round(number, RingSample::ns_per_hop);
        let hops_ns: Vec<f64> = by_round.into_values().collect();
        spreads.extend(spread(&hops_ns));
        if let Some(slices) = table.slices(number) {
            counts = counts.plus(slices.clean_counts());
        }
    }
    let reasons = disturbances_in_words(&kinds, samples);
    let mut verdict = verdict(median(&spreads), disturbed_share, reasons, counts, table.levels());
    verdict.level = verdict.level.max(halted);
    verdict.halted = most_halted(&kinds, samples);
    if solo_share > NOISY_DISTURBED && verdict.clean_share.is_none() {
        verdict.reasons.push(format!(
            "{:.0} % of the solo ring's: costs above it by real time are biased, mostly down",
            solo_share * 100.0
        ));
    }
    verdict
}

/// Returns the sharing of a core; absent below the smallest share that is reported.
fn shared_core(level: &SpeedLevel) -> Option<SharedCore> {
    let share = 1.0 - level.unshared_share;
    let slowdown = level.shared_slowdown?;
    if share >= MIN_REPORTED_SHARE { Some(SharedCore { share, slowdown }) } else { None }
}

/// Returns the core that was shared for more of the time; the second of two equal ones.
fn more_shared(a: SharedCore, b: SharedCore) -> SharedCore {
    if a.share.total_cmp(&b.share).is_gt() { a } else { b }
}

/// Returns the sharing of each core in words, by the quanta.
fn sharing_in_words(levels: &SpeedLevels) -> Vec<String> {
    let mut words = Vec::new();
    for (cpus, level) in levels {
        let Some(SharedCore { share, slowdown }) = shared_core(level) else { continue };
        let cpu = match levels.len() {
            1 => String::new(),
            _ => format!(" on CPU {}", words::list(cpus)),
        };
        words.push(format!(
            "the core was shared{cpu} for {:.0} % of the time and then {slowdown:.2} times as slow",
            share * 100.0
        ));
    }
    words
}

/// Judges the samples of a case that stood still: by their share, and by their share of the time,
/// which is in the mean. The quanta between slices do not see them.
fn judge_halts<'a>(samples: impl Iterator<Item = &'a RingSample>, case: &RingCase) -> NoiseLevel {
    let (mut total, mut halted, mut elapsed_ns, mut halted_ns) = (0.0, 0.0, 0.0, 0.0);
    for sample in samples {
        total += 1.0;
        elapsed_ns += sample.elapsed_ns as f64;
        if let Some(longest_ns) = longest_halt_ns(sample, case) {
            halted += 1.0;
            halted_ns += longest_ns;
        }
    }
    let by_count = judge_disturbed(halted / f64::max(total, 1.0));
    if halted_ns > NOISY_DISTURBED * elapsed_ns {
        by_count.max(NoiseLevel::Noisy)
    } else {
        by_count
    }
}

fn longest_halt_ns(sample: &RingSample, case: &RingCase) -> Option<f64> {
    let mut longest_ns: Option<f64> = None;
    for disturbance in sample.disturbances(case) {
        if let Disturbance::Halt(_, ns) = disturbance {
            longest_ns = Some(longest_ns.unwrap_or(0.0).max(ns as f64));
        }
    }
    longest_ns
}

/// Judges by the share of disturbed samples alone.
fn judge_disturbed(share: f64) -> NoiseLevel {
    match share {
        share if share > UNUSABLE_DISTURBED => NoiseLevel::Unusable,
        share if share > NOISY_DISTURBED => NoiseLevel::Noisy,
        _ => NoiseLevel::Unknown,
    }
}

/// Returns the verdict by the clean slices, where slices were judged, else by the relative scatter
/// between rounds and the share of disturbed samples; `reasons` are the disturbances in words.
fn verdict(
    round_spread: Option<f64>,
    disturbed_share: f64,
    mut reasons: Vec<String>,
    clean: CleanCounts,
    levels: &SpeedLevels,
) -> NoiseVerdict {
    let mut verdict = NoiseVerdict {
        level: NoiseLevel::Unknown,
        clean_share: clean.share_as_found(),
        clock_range: None,
        not_alone_share: clean.not_alone_share(),
        halted: None,
        shared_core: None,
        round_spread,
        disturbed_share,
        reasons: Vec::new(),
    };
    if verdict.clean_share.is_some() {
        verdict.level = judge_slices(clean, disturbed_share);
        verdict.clock_range = clock_range(levels);
        verdict.shared_core = levels.values().filter_map(shared_core).reduce(more_shared);
        match verdict.not_alone_share {
            Some(share) if share >= MIN_REPORTED_SHARE => verdict.reasons.push(format!(
                "other tasks shared the CPU in {:.0} % of the slices",
                share * 100.0
            )),
            _ => {}
        }
        verdict.reasons.extend(sharing_in_words(levels));
    } else if let Some(spread) = round_spread {
        verdict.level = judge_disturbed(disturbed_share).max(judge_spread(spread));
        if spread > NOISY_SPREAD {
            verdict.reasons.push(format!("rounds scatter by {:.0} %", spread * 100.0));
        }
    } else {
        verdict.reasons.push("one round is too few to judge it".to_string());
    }
    verdict.reasons.append(&mut reasons);
    verdict
}

/// Judges by the clean slices and the share of disturbed samples.
fn judge_slices(clean: CleanCounts, disturbed_share: f64) -> NoiseLevel {
    // Too few, waited for or not: there is no estimate at full speed.
    let are_few = clean.share().is_some_and(|share| share < LEAST_SHARE);
    // Estimates of the slices between hold, but the machine was not quiet.
    let are_disturbed = disturbed_share > NOISY_DISTURBED
        || clean.undisturbed_share().is_some_and(|share| share < QUIET_SHARE)
        || clean.not_alone_share().is_some_and(|share| share > NOISY_DISTURBED);
    if are_few || clean.are_not_alone() {
        NoiseLevel::Unusable
    } else if are_disturbed {
        NoiseLevel::Noisy
    } else {
        NoiseLevel::Quiet
    }
}

/// Judges by the relative scatter between rounds alone.
fn judge_spread(spread: f64) -> NoiseLevel {
    match spread {
        spread if spread > UNUSABLE_SPREAD => NoiseLevel::Unusable,
        spread if spread > NOISY_SPREAD => NoiseLevel::Noisy,
        _ => NoiseLevel::Quiet,
    }
}

/// Returns the range of clocks over all measured CPUs.
fn clock_range(levels: &SpeedLevels) -> Option<(f64, f64)> {
    levels.values().filter_map(SpeedLevel::clock_range).reduce(wider_range)
}

fn wider_range(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Returns a range of clocks in words: `the core's clock went from 12 % below that of the figures to
/// 2 % above it`.
fn clocks_in_words(range: (f64, f64)) -> String {
    let (from, to) = (difference_in_words(range.0), difference_in_words(range.1));
    format!("the core's clock went from {from}that of the figures to {to}it")
}

fn difference_in_words(share: f64) -> String {
    match (100.0 * share).round() as i64 {
        0 => String::new(),
        percent if percent < 0 => format!("{} % below ", -percent),
        percent => format!("{percent} % above "),
    }
}

impl NoiseLevel {
    /// Returns the level as it is printed.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Unusable => "very noisy",
            level => level.name(),
        }
    }
}

impl NoiseVerdict {
    /// Combines the verdicts on several groups of cases, each with its name: the worst of theirs.
    /// Reasons that are `common` to them are given once.
    pub fn together<'a>(
        groups: impl IntoIterator<Item = (&'a str, Self)>,
        common: &[String],
    ) -> Self {
        let mut worst = Self {
            level: NoiseLevel::Unknown,
            clean_share: None,
            clock_range: None,
            not_alone_share: None,
            shared_core: None,
            halted: None,
            round_spread: None,
            disturbed_share: 0.0,
            reasons: Vec::new(),
        };
        for (name, group) in groups {
            worst.level = worst.level.max(group.level);
            worst.round_spread = either(worst.round_spread, group.round_spread, f64::max);
            worst.clean_share = either(worst.clean_share, group.clean_share, f64::min);
            worst.clock_range = either(worst.clock_range, group.clock_range, wider_range);
            worst.halted = worst.halted.or(group.halted);
            worst.shared_core = either(worst.shared_core, group.shared_core, more_shared);
            worst.not_alone_share = either(worst.not_alone_share, group.not_alone_share, f64::max);
            worst.disturbed_share = worst.disturbed_share.max(group.disturbed_share);
            for reason in group.reasons {
                if !common.contains(&reason) {
                    worst.reasons.push(format!("{name}: {reason}"));
                } else if !worst.reasons.contains(&reason) {
                    worst.reasons.push(reason);
                }
            }
        }
        worst
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
        } else if let Some(spread) = self.round_spread {
            if spread <= NOISY_SPREAD {
                facts.push(format!("rounds scatter by {:.1} %", spread * 100.0));
            }
        }
        if let Some(range) = self.clock_range {
            facts.push(clocks_in_words(range));
        }
        facts.extend_from_slice(&self.reasons);
        facts
    }
}

/// Combines two values, of which either may be absent.
fn either<T>(a: Option<T>, b: Option<T>, combine: fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(combine(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::cut;
    use rundata::experiment::Experiment;
    use rundata::placement::Placement;
    use rundata::plan::Plan;
    use rundata::ring::{Counters, HaltTimes, MemberKind, Policy};

    fn case(members: u32) -> RingCase {
        let placement = Placement::Same { cpu: 1 };
        let (kind, policy) = (MemberKind::Process, Policy::Other);
        RingCase {
            members,
            kind,
            link: "pipe".into(),
            work: None,
            placement,
            policy,
            priority: None,
            state: None,
            burden: None,
            flight: None,
            beside: Vec::new(),
        }
    }

    fn plan(cases: &[RingCase]) -> Plan {
        Plan { seed: 1, ..Plan::from_cases(Experiment::Ring, cases.iter().cloned()) }
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
        let sample = |case: usize, round: u32| RingSample {
            case,
            round,
            laps: 1000,
            hops: 1000,
            elapsed_ns: 10_000_000,
            counters: Counters { cpu_ns: 10_200_000, ..Counters::default() },
            steal_ns: Some(0),
            ..RingSample::default()
        };
        let both = (0..10).flat_map(|round| [sample(0, round), sample(1, round)]);
        let samples: Vec<RingSample> = both.map(|s| cut(s, 20, |index| index < clean)).collect();
        judge(&Table::from_samples(&plan, &samples, []))
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
        let one = |round| RingSample {
            case: 0,
            round,
            laps: 1000,
            hops: 1000,
            elapsed_ns: 10_000_000,
            counters: Counters::default(),
            ..RingSample::default()
        };
        let samples: Vec<RingSample> = (0..10).map(|round| cut(one(round), 10, |_| true)).collect();
        let unusable = judge(&Table::from_samples(&plan, &samples, []));
        assert_eq!((unusable.level, unusable.clean_share), (NoiseLevel::Unusable, Some(0.0)));
    }

    /// Ten rounds of a solo ring and a ring of two; `busy` of the solo's samples and all rounds
    /// from `slow` on are not what they should be.
    fn judged(busy: u32, slow: u32, factor: u64) -> NoiseVerdict {
        let plan = plan(&[case(1), case(2)]);
        let sample = |case: usize, round: u32| {
            let elapsed_ns = if round >= slow { 1_000_000 * factor } else { 1_000_000 };
            let cpu_ns = if case == 0 && round < busy { elapsed_ns / 2 } else { elapsed_ns };
            RingSample {
                case,
                round,
                laps: 1000,
                hops: 1000,
                elapsed_ns,
                counters: Counters { cpu_ns, ..Counters::default() },
                steal_ns: Some(0),
                ..RingSample::default()
            }
        };
        let samples: Vec<RingSample> =
            (0..10).flat_map(|round| [sample(0, round), sample(1, round)]).collect();
        judge(&Table::from_samples(&plan, &samples, []))
    }

    #[test]
    fn steady_rounds_are_quiet_and_one_round_cannot_tell() {
        let quiet = judged(0, 10, 1);
        assert_eq!((quiet.level, quiet.reasons.len()), (NoiseLevel::Quiet, 0));
        let plan = plan(&[case(1)]);
        let one = judge(&Table::from_samples(&plan, [], []));
        assert_eq!(one.level, NoiseLevel::Unknown);
    }

    /// Ten rounds in slices at full speed, some of which a member stood still in for longer than
    /// all the rest.
    fn halted(
        rounds: u32,
        stood_ns: u64,
        placement: Placement,
        halts: Option<HaltTimes>,
    ) -> NoiseVerdict {
        let plan = plan(&[RingCase { placement, ..case(2) }]);
        let sample = |round| {
            let stood_ns = if round < rounds { stood_ns } else { 0 };
            let halts = halts.filter(|_| stood_ns > 0);
            let run_delay_ns = Some(1_000_000);
            let counters =
                Counters { cpu_ns: 10_200_000, run_delay_ns, halts, ..Counters::default() };
            let sample = RingSample {
                case: 0,
                round,
                laps: 1000,
                hops: 2000,
                elapsed_ns: 10_000_000,
                counters,
                steal_ns: Some(0),
                ..RingSample::default()
            };
            let mut sample = cut(sample, 20, |_| true);
            sample.elapsed_ns += stood_ns;
            sample.slices.iter_mut().for_each(|slices| slices.elapsed_ns[3] += stood_ns);
            sample
        };
        judge(&Table::from_samples(&plan, &(0..10).map(sample).collect::<Vec<RingSample>>(), []))
    }

    #[test]
    fn a_ring_that_stood_still_is_told_and_why() {
        let one = Placement::Same { cpu: 1 };
        let two = Placement::Pinned { cpus: vec![0, 1], relation: None };
        let stopped = Some(HaltTimes { continued: true, ..HaltTimes::default() });
        let throttled = Some(HaltTimes { throttled_ns: 1_400_000_000, ..HaltTimes::default() });
        let suspended = Some(HaltTimes { suspended_ns: 1_000_000, ..HaltTimes::default() });
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

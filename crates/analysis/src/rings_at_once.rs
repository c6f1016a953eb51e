//! Rings that run at the same time: the switches that all of them make, what that is of as many
//! single rings, which ring is slowest, and from how many on they hold each other back.
//!
//! Example of one round: four rings on four CPUs take 2.0, 2.0, 2.5 and 4.0 us a hop, with one
//! switch a hop; the single ring took 2.0 us.
//!
//! - *Rate*: 0.5 + 0.5 + 0.4 + 0.25 = 1.65 million switches a second, those of the single ring 0.5.
//! - *Efficiency*: 1.65 / (4 x 0.5) = 0.825.
//! - *Hop*: the mean over all hops, 4 / (0.5 + 0.5 + 0.4 + 0.25) = 2.42 us.
//!
//! With several items under way the rate is that of hops: a switch is shared by many items, and rings
//! that switch less often for the same items are not less efficient.
//!
//! Rings are compared within rounds, so that drift cancels. A ring with CPUs of its own has the
//! figures of a ring by itself: clean slices, judged by the quanta on its CPU. Where rings share
//! CPUs, the time of a slice depends on whose turn it is: their figures are of whole samples, without
//! quanta. In older run files the first ring on each CPU took some, which tell which rounds count.

use std::collections::BTreeMap;

use rundata::plan::{MIN_CLEAN_ROUNDS, MIN_ROUNDS, Plan};
use rundata::ring::{RingCase, RingSample, Slices};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{FewFigures, PriorScatter, median};

use crate::curve::{CurvePoint, curve_point};
use crate::estimate::{Estimate, Speed};
use crate::jump::{CostJump, SizedCost, largest_jump};
use crate::scaling::{self, ScalingVerdict};
use crate::speed::CleanCounts;
use crate::summary::{CaseSummary, HARDLY_SWITCHES_PER_HOP};
use crate::table::{Figures, Table};

/// Figures of all rings of a case, which run at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimultaneousRings {
    /// Number of rings.
    pub rings: u32,
    /// Switches of all rings in a second; absent of rings with one item that do not switch.
    pub switches_per_second: Option<Estimate>,
    /// Hops of all rings in a second; with several items under way these are items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops_per_second: Option<Estimate>,
    /// Switches of all rings in a second, or hops with several items under way, over `rings` times
    /// those of the single ring; absent of the single ring itself, and of rings with one item that do
    /// not switch.
    pub efficiency: Option<Estimate>,
    /// Migrations of all members in all samples; absent where the kernel does not count them.
    pub migrations: Option<u64>,
    /// Each ring; empty of the single ring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<RingFigures>,
    /// Number of the ring with the shortest hop, from 1; absent of the single ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fastest: Option<u32>,
    /// Number of the ring with the longest hop, from 1; absent of the single ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<u32>,
}

/// Figures of one of several rings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RingFigures {
    /// Number of the ring, from 1.
    pub ring: u32,
    /// CPUs that its members may run on.
    pub cpus: Vec<u32>,
    /// Time of a hop in nanoseconds.
    pub ns_per_hop: Option<Estimate>,
    /// Switches that the kernel counted per hop.
    pub switches_per_hop: Option<f64>,
    /// Switches in a second.
    pub switches_per_second: Option<Estimate>,
    /// Time of a hop over that of the fastest ring, paired within rounds; absent of that ring.
    pub over_fastest: Option<Estimate>,
    /// Tells whether a hop takes at least a tenth longer than in the fastest ring, resolved for all
    /// rings together.
    pub held_back: bool,
    /// Migrations of its members in all samples; absent where the kernel does not count them.
    pub migrations: Option<u64>,
    /// Share of clean slices, 0 to 1; absent for a ring whose speed was not judged.
    pub clean_share: Option<f64>,
}

impl SimultaneousRings {
    /// Returns the figures of the fastest ring.
    pub fn fastest_ring(&self) -> Option<&RingFigures> {
        self.each.iter().find(|ring| Some(ring.ring) == self.fastest)
    }

    /// Returns the figures of the slowest ring.
    pub fn slowest_ring(&self) -> Option<&RingFigures> {
        self.each.iter().find(|ring| Some(ring.ring) == self.slowest)
    }

    /// Returns the numbers of the rings that are held back, from 1.
    pub fn held_back(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        for ring in self.each.iter().filter(|ring| ring.held_back) {
            numbers.push(ring.ring);
        }
        numbers
    }

    /// Returns the switches of all rings, or the items, over those of the single ring.
    pub fn speedup(&self) -> Option<Estimate> {
        self.efficiency?.scaled(self.rings.into())
    }
}

/// Cases that differ in nothing but the number of their rings, and what follows from that number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RingCountSeries {
    /// Numbers of the cases, by the number of rings, the single ring first.
    pub cases: Vec<usize>,
    /// Law of the mean time of a hop against the number of rings. Its sizes, `members`, are rings.
    pub law: ScalingVerdict,
    /// Largest jump of that time between neighbouring numbers of rings; absent where none stands
    /// out.
    pub jump: Option<CostJump>,
    /// Least number of rings from which on all measured numbers are held back: the efficiency is
    /// resolved below 90 %. Absent where the largest number is not.
    pub held_back_from: Option<u32>,
}

/// Efficiency below which rings are held back, and the share by which a hop exceeds that of the
/// fastest ring.
const HELD_BACK: f64 = 0.1;

/// Assumed scatter of a rate or a ratio between rounds, as a share, beside the one that was seen.
const ROUND_SCATTER: f64 = 0.01;
/// Degrees of freedom of that scatter.
const ROUND_SCATTER_FREEDOM: f64 = 4.0;

/// Least share of clean slices in a round of rings that share their CPUs.
const CLEAN_ROUND_SHARE: f64 = 0.9;

/// Cases with several rings as a plan in which each ring is a case of its own.
struct SplitRings {
    plan: Plan,
    /// Samples of these cases.
    samples: Vec<RingSample>,
    groups: Vec<RingGroup>,
}

/// The cases of a split plan that belong to one case with several rings.
struct RingGroup {
    /// Number of the case with several rings.
    case: usize,
    /// Numbers of the cases that are its rings.
    rings: Vec<usize>,
    /// Number of the case that is the single ring.
    single: Option<usize>,
}

/// Figures that replace those of a ring by itself in a case's summary.
pub(crate) struct GroupFigures {
    pub(crate) rings: SimultaneousRings,
    pub(crate) ns_per_hop: Option<Estimate>,
    pub(crate) ns_per_switch_above_solo: Option<Estimate>,
    pub(crate) counts: CleanCounts,
}

/// Returns the figures of all cases with several rings and of their single rings, by the number of
/// the case; empty for a plan without several rings.
pub(crate) fn group_figures(table: &Table) -> BTreeMap<usize, GroupFigures> {
    let mut figures = BTreeMap::new();
    let Some(split) = SplitRings::from_table(table) else { return figures };
    let own_samples = (0..table.plan.cases.len()).flat_map(|case| table.samples(case));
    let samples = own_samples.chain(&split.samples);
    let rings = Table::from_samples(&split.plan, samples, []);
    for group in &split.groups {
        if let Some(single) = group.single {
            let as_group = RingGroup { case: single, rings: vec![single], single: None };
            figures.entry(single).or_insert_with(|| figures_of_group(&rings, &as_group));
        }
        figures.insert(group.case, figures_of_group(&rings, group));
    }
    figures
}

impl SplitRings {
    /// Splits the cases of a table that have several rings; `None` if there are none.
    fn from_table(table: &Table) -> Option<Self> {
        let mut plan = table.plan.clone();
        let (mut samples, mut groups) = (Vec::new(), Vec::new());
        for (number, case) in table.plan.rings() {
            if !case.has_several_rings() {
                continue;
            }
            let first = plan.cases.len();
            let singles = case.single_rings();
            let rings: Vec<usize> = (first..first + singles.len()).collect();
            plan.cases.extend(singles.into_iter().map(Into::into));
            for sample in table.samples(number) {
                samples.extend(split_sample(case, sample, first));
            }
            let single_ring = case.single_ring();
            let single = table.plan.find_ring(|ring| *ring == single_ring);
            groups.push(RingGroup { case: number, rings, single });
        }
        if groups.is_empty() { None } else { Some(Self { plan, samples, groups }) }
    }
}

/// Returns the samples of each ring of a sample, for cases that are numbered from `first` on.
fn split_sample(case: &RingCase, sample: &RingSample, first: usize) -> Vec<RingSample> {
    let (are_first, shares_cpus) = (case.are_first_on_their_cpus(), case.shares_cpus());
    let all_turn_ns = sample.rings.iter().map(laps_begin_ns).max().unwrap_or(0);
    let mut samples = Vec::new();
    for (ring, of_ring) in sample.rings.iter().enumerate().take(case.rings() as usize) {
        let mut split = RingSample { case: first + ring, round: sample.round, ..of_ring.clone() };
        drop_slices_before(&mut split, all_turn_ns);
        if shares_cpus {
            // It would take the other rings for competing tasks.
            split.counters.cpu_ns = 0;
            if let Some(slices) = &mut split.slices {
                slices.cpu_ns.clear();
            }
            if !are_first[ring] {
                leave_out_quanta(&mut split, quanta_share(&sample.rings[0]));
            }
        }
        samples.push(split);
    }
    samples
}

/// Returns when the timed laps of a ring began, in nanoseconds after the first ring began its
/// sample: two quanta after its own beginning.
fn laps_begin_ns(ring: &RingSample) -> u64 {
    let start_ns = ring.start_ns.unwrap_or(0);
    let Some(slices) = &ring.slices else { return start_ns };
    let quanta = slices.latency_ns.iter().zip(&slices.throughput_ns).take(2);
    quanta.fold(start_ns, |ns, (latency, throughput)| {
        ns.saturating_add(u64::from(*latency)).saturating_add(u64::from(*throughput))
    })
}

/// Drops the slices that began before all rings turned, with the quanta before them.
fn drop_slices_before(ring: &mut RingSample, all_turn_ns: u64) {
    let mut begin_ns = laps_begin_ns(ring);
    let Some(slices) = &mut ring.slices else { return };
    let mut dropped = 0;
    while begin_ns < all_turn_ns && dropped + 1 < slices.elapsed_ns.len() {
        let quantum = slices.latency_ns.get(dropped + 2).zip(slices.throughput_ns.get(dropped + 2));
        let (latency_ns, throughput_ns) = quantum.unwrap_or((&0, &0));
        begin_ns = begin_ns
            .saturating_add(slices.elapsed_ns[dropped])
            .saturating_add(u64::from(*latency_ns) + u64::from(*throughput_ns));
        dropped += 1;
    }
    drop_first(slices, dropped);
    ring.laps = ring.laps.saturating_sub(slices.laps.saturating_mul(dropped as u64));
}

/// Drops the first slices of a batch with as many quanta, so that those around the rest stay.
fn drop_first(slices: &mut Slices, count: usize) {
    slices.elapsed_ns.drain(..count);
    for times in [&mut slices.latency_ns, &mut slices.throughput_ns] {
        times.drain(..count.min(times.len()));
    }
    slices.cpu_ns.drain(..count.min(slices.cpu_ns.len()));
}

/// Returns the share of a sample's time that its quanta took, 0 to 1.
fn quanta_share(ring: &RingSample) -> f64 {
    let quanta_ns = ring.slices.as_ref().map_or(0, Slices::reference_ns) as f64;
    let whole_ns = ring.elapsed_ns as f64 + quanta_ns;
    if whole_ns > 0.0 { quanta_ns / whole_ns } else { 0.0 }
}

/// Leaves the quanta of another ring on the same CPU out of the time of this one's laps.
fn leave_out_quanta(ring: &mut RingSample, share: f64) {
    ring.elapsed_ns = (ring.elapsed_ns as f64 * (1.0 - share)).round() as u64;
}

/// Figures of one round.
struct RoundFigures {
    /// Time of a hop in nanoseconds, ring by ring.
    hops_ns: Vec<f64>,
    /// Switches of all rings in a second.
    rate: f64,
    /// Switches of the single ring in a second.
    single_rate: Option<f64>,
    /// Time of a hop of the single ring in nanoseconds.
    single_hop_ns: Option<f64>,
    /// Time of a hop of the solo in nanoseconds.
    solo_ns: Option<f64>,
}

impl RoundFigures {
    /// Returns the mean time of a hop over the hops of all rings, in nanoseconds.
    fn mean_hop_ns(&self) -> f64 {
        self.hops_ns.len() as f64 * 1e9 / self.hops_per_second()
    }

    /// Returns the hops of all rings in a second.
    fn hops_per_second(&self) -> f64 {
        self.hops_ns.iter().map(|ns| 1e9 / ns).sum()
    }

    /// Returns the switches per hop of all rings together.
    fn switches_per_hop(&self) -> f64 {
        self.rate / self.hops_per_second()
    }

    /// Returns the switches of all rings over as many times those of the single ring.
    fn switch_efficiency(&self) -> Option<f64> {
        self.over_single(self.rate, self.single_rate?)
    }

    /// Returns the hops of all rings over as many times those of the single ring.
    fn hop_efficiency(&self) -> Option<f64> {
        self.over_single(self.hops_per_second(), 1e9 / self.single_hop_ns?)
    }

    fn over_single(&self, rate: f64, single_rate: f64) -> Option<f64> {
        let efficiency = rate / (self.hops_ns.len() as f64 * single_rate);
        if efficiency.is_finite() && efficiency > 0.0 { Some(efficiency) } else { None }
    }

    fn above_solo_ns(&self) -> Option<f64> {
        let per_hop = self.switches_per_hop();
        if per_hop > 0.0 { Some((self.mean_hop_ns() - self.solo_ns?) / per_hop) } else { None }
    }
}

/// Rounds of a group that count, in the order of time, and how they were measured.
struct GroupRounds<'a> {
    table: &'a Table<'a>,
    group: &'a RingGroup,
    rounds: Vec<RoundFigures>,
    speed: Speed,
}

fn figures_of_group(table: &Table, group: &RingGroup) -> GroupFigures {
    let rounds = GroupRounds::new(table, group);
    let mut counts = CleanCounts::default();
    for ring in &group.rings {
        if let Some(slices) = table.slices(*ring) {
            counts = counts.plus(slices.clean_counts());
        }
    }
    let solo_speed = table.plan.solo_of(group.case).map(|solo| table.hop_speed(solo));
    let above_solo_speed = solo_speed.map(|solo| worse_speed(rounds.speed, solo));
    GroupFigures {
        ns_per_hop: rounds.estimate(rounds.speed, 1.0, |round| Some(round.mean_hop_ns())),
        ns_per_switch_above_solo: above_solo_speed
            .and_then(|speed| rounds.estimate(speed, 1.0, RoundFigures::above_solo_ns)),
        rings: rounds.rings(),
        counts,
    }
}

impl<'a> GroupRounds<'a> {
    fn new(table: &'a Table<'a>, group: &'a RingGroup) -> Self {
        let case = table.plan.ring(group.case);
        let shares_cpus = case.is_some_and(RingCase::shares_cpus);
        let mut by_round = figures_by_round(table, group, shares_cpus);
        let mut speed = Speed::Full;
        if shares_cpus {
            speed = keep_clean_rounds(table, group, &mut by_round);
        } else {
            for case in group.rings.iter().chain(&group.single) {
                speed = worse_speed(speed, table.hop_speed(*case));
            }
            if by_round.is_empty() {
                // No round has clean slices of all.
                by_round = figures_by_round(table, group, true);
                speed = worse_speed(speed, Speed::Contended);
            }
        }
        Self { table, group, rounds: by_round.into_values().collect(), speed }
    }

    /// Returns the estimate of a figure over the rounds. `cases` is the number of independent cases
    /// that it compares, each with the scatter between launches.
    fn estimate(
        &self,
        speed: Speed,
        cases: f64,
        read: impl Fn(&RoundFigures) -> Option<f64>,
    ) -> Option<Estimate> {
        let figures: Vec<f64> = self.rounds.iter().filter_map(read).collect();
        let reference = &self.table.plan.reference;
        let scatter = reference.scatter_of(self.group.case) * cases.sqrt();
        let confidence = self.table.plan.stopping.confidence;
        let estimate = over_rounds(&figures, speed, scatter, confidence)?;
        Some(self.table.reported(estimate))
    }

    /// Returns the figures of the rings.
    fn rings(&self) -> SimultaneousRings {
        let count = self.group.rings.len();
        let (mut rate, mut efficiency) = (None, None);
        if self.switches() || self.has_several_items() {
            rate = self.estimate(self.speed, 1.0, |round| Some(round.rate));
        }
        if self.has_several_items() {
            efficiency = self.estimate(self.speed, 2.0, RoundFigures::hop_efficiency);
        } else if self.switches() {
            efficiency = self.estimate(self.speed, 2.0, RoundFigures::switch_efficiency);
        }
        let hop_rate = self.estimate(self.speed, 1.0, |round| Some(round.hops_per_second()));
        let mut rings = SimultaneousRings {
            rings: count as u32,
            switches_per_second: rate,
            hops_per_second: hop_rate,
            efficiency,
            migrations: Some(0),
            each: Vec::new(),
            fastest: None,
            slowest: None,
        };
        let mut middles: Vec<(usize, f64)> = Vec::new();
        for ring in 0..count {
            let hops_ns: Vec<f64> = self.rounds.iter().map(|round| round.hops_ns[ring]).collect();
            middles.extend(median(&hops_ns).map(|middle| (ring, middle)));
        }
        middles.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let fastest = middles.first().map(|(ring, _)| *ring);
        let mut each = Vec::new();
        for ring in 0..count {
            let figures = self.ring(ring, fastest);
            let both = rings.migrations.zip(figures.migrations);
            rings.migrations = both.map(|(all, own)| all.saturating_add(own));
            each.push(figures);
        }
        if count > 1 {
            rings.each = each;
            rings.fastest = fastest.map(|ring| ring as u32 + 1);
            rings.slowest = middles.last().map(|(ring, _)| *ring as u32 + 1);
        }
        rings
    }

    /// Returns whether several items are under way in each ring.
    fn has_several_items(&self) -> bool {
        self.table.plan.ring(self.group.case).is_some_and(|case| case.flight.is_some())
    }

    /// Returns whether the kernel counted more than a few switches.
    fn switches(&self) -> bool {
        let per_hop: Vec<f64> = self.rounds.iter().map(RoundFigures::switches_per_hop).collect();
        median(&per_hop).is_some_and(|per_hop| per_hop >= HARDLY_SWITCHES_PER_HOP)
    }

    /// Returns the figures of one ring by its number from 0.
    fn ring(&self, ring: usize, fastest: Option<usize>) -> RingFigures {
        let number = self.group.rings[ring];
        let mut over_fastest = None;
        if let Some(fastest) = fastest.filter(|fastest| *fastest != ring) {
            over_fastest = self.estimate(self.speed, 2.0, |round| {
                Some(round.hops_ns[ring] / round.hops_ns[fastest])
            });
        }
        let per_hop = self.table.switches_per_hop(number);
        let hop = self.estimate(self.speed, 1.0, |round| Some(round.hops_ns[ring]));
        let rate = per_hop.and_then(|per_hop| {
            self.estimate(self.speed, 1.0, |round| Some(1e9 * per_hop / round.hops_ns[ring]))
        });
        let slices = self.table.slices(number).filter(|slices| slices.is_judged());
        let mut migrations = Some(0);
        for sample in self.table.samples(number) {
            let both = migrations.zip(sample.counters.migrations);
            migrations = both.map(|(all, more): (u64, u64)| all.saturating_add(more));
        }
        RingFigures {
            ring: ring as u32 + 1,
            cpus: self.table.plan.ring(number).map(RingCase::cpus).unwrap_or_default(),
            ns_per_hop: hop,
            switches_per_hop: per_hop,
            switches_per_second: rate,
            held_back: over_fastest.is_some_and(|over| self.is_held_back(&over)),
            over_fastest,
            migrations,
            clean_share: slices.and_then(|slices| slices.clean_counts().share()),
        }
    }

    /// Returns whether a hop is resolved to take a tenth longer than in the fastest ring, so that
    /// all rings together are wrong as rarely as one interval (Bonferroni).
    fn is_held_back(&self, over_fastest: &Estimate) -> bool {
        let comparisons = (self.group.rings.len() - 1).max(1) as f64;
        let confidence = 1.0 - (1.0 - over_fastest.confidence) / comparisons;
        let wider = stats::normal_quantile(confidence)
            .zip(stats::normal_quantile(over_fastest.confidence))
            .map_or(1.0, |(all, one)| all / one);
        let Ok(quoted) = over_fastest.quote_cost() else { return false };
        quoted.value() - wider * (quoted.value() - quoted.low()) > 1.0 + HELD_BACK
    }
}

/// Returns the figures of the rounds in which all rings of a group were measured, and the single
/// ring beside them.
fn figures_by_round(
    table: &Table,
    group: &RingGroup,
    of_whole_samples: bool,
) -> BTreeMap<u32, RoundFigures> {
    let (mut hops, mut switches) = (Vec::new(), Vec::new());
    for ring in group.rings.iter().chain(&group.single) {
        hops.push(hop_by_round(table, *ring, of_whole_samples));
        switches.push(table.middle_by_round(*ring, RingSample::switches_per_hop));
    }
    let mut solo = Figures::new();
    if let Some(number) = table.plan.solo_of(group.case) {
        solo = hop_by_round(table, number, false);
    }
    let mut by_round = BTreeMap::new();
    for round in hops.first().into_iter().flat_map(Figures::keys) {
        let (Some(mut hops_ns), Some(per_hop)) =
            (values_at(&hops, *round), values_at(&switches, *round))
        else {
            continue;
        };
        let mut rates = Vec::new();
        for (ns, per_hop) in hops_ns.iter().zip(per_hop) {
            rates.push(1e9 * per_hop / ns);
        }
        let (mut single_rate, mut single_hop_ns) = (None, None);
        if group.single.is_some() {
            single_hop_ns = hops_ns.pop();
            single_rate = rates.pop();
        }
        let (rate, solo_ns) = (rates.iter().sum(), solo.get(round).copied());
        let figures = RoundFigures { hops_ns, rate, single_rate, single_hop_ns, solo_ns };
        by_round.insert(*round, figures);
    }
    by_round
}

/// Returns the time of a hop by rounds in nanoseconds: of whole samples, or as the estimates of a
/// ring by itself take it.
fn hop_by_round(table: &Table, case: usize, of_whole_samples: bool) -> Figures {
    if of_whole_samples {
        table.as_found_by_round(case, RingSample::ns_per_hop)
    } else {
        table.hop_by_round(case)
    }
}

/// Returns the figure of each ring in a round; `None` if a ring has none.
fn values_at(figures: &[Figures], round: u32) -> Option<Vec<f64>> {
    figures.iter().map(|by_round| by_round.get(&round).copied()).collect()
}

/// Keeps the rounds of rings that share CPUs in which nearly all slices were clean, if there are
/// any; returns the speed of those that are left.
fn keep_clean_rounds(
    table: &Table,
    group: &RingGroup,
    rounds: &mut BTreeMap<u32, RoundFigures>,
) -> Speed {
    let judging: Vec<usize> = group
        .rings
        .iter()
        .chain(&group.single)
        .copied()
        .filter(|ring| table.is_judged(*ring))
        .collect();
    let judging_rings = judging.iter().filter(|ring| group.rings.contains(ring));
    if judging_rings.count() == 0 {
        return Speed::NotJudged;
    }
    let mut clean = Vec::new();
    for round in rounds.keys() {
        if judging.iter().all(|ring| is_mostly_clean(table, *ring, *round)) {
            clean.push(*round);
        }
    }
    if clean.is_empty() {
        return Speed::Contended;
    }
    rounds.retain(|round, _| clean.contains(round));
    if clean.len() >= MIN_CLEAN_ROUNDS as usize { Speed::Full } else { Speed::FewRounds }
}

/// Returns whether nearly all slices of a ring in a round were clean.
fn is_mostly_clean(table: &Table, ring: usize, round: u32) -> bool {
    let mut slices = 0;
    for sample in table.samples(ring).filter(|sample| sample.round == round) {
        slices += sample.judged_slices().map_or(0, |slices| slices.elapsed_ns.len());
    }
    let counts = table.slices(ring).and_then(|slices| slices.clean.get(&round).copied());
    slices > 0 && f64::from(counts.unwrap_or(0)) >= CLEAN_ROUND_SHARE * slices as f64
}

/// Returns the worse of two speeds for a figure made of both.
fn worse_speed(one: Speed, other: Speed) -> Speed {
    if rank(one) >= rank(other) { one } else { other }
}

fn rank(speed: Speed) -> u32 {
    match speed {
        Speed::Full => 0,
        Speed::FewRounds => 1,
        Speed::NotJudged => 2,
        Speed::Contended => 3,
        Speed::NotAlone | Speed::CpuTime => 4,
    }
}

/// Returns the median over rounds in the order of time, with an interval for rounds that may depend
/// on their neighbours, and for the scatter between launches, a share. At a speed that could not be
/// judged an interval needs some rounds.
pub(crate) fn over_rounds(
    figures: &[f64],
    speed: Speed,
    launch_scatter: f64,
    confidence: f64,
) -> Option<Estimate> {
    if matches!(speed, Speed::Contended | Speed::NotAlone | Speed::CpuTime) {
        return Estimate::as_it_was(figures, None, confidence, speed);
    }
    if speed == Speed::NotJudged && figures.len() < MIN_ROUNDS as usize {
        return Estimate::over(figures, MIN_ROUNDS, confidence, 0);
    }
    let deviation = ROUND_SCATTER * median(figures)?.abs();
    let prior = PriorScatter { deviation, freedom: ROUND_SCATTER_FREEDOM };
    let few = FewFigures::robust(figures, prior)?;
    let estimate = Estimate::in_few_rounds(few, launch_scatter, confidence)?;
    Some(Estimate { speed, ..estimate })
}

/// Returns the series of cases that differ in nothing but the number of their rings.
pub(crate) fn series(cases: &[CaseSummary]) -> Vec<RingCountSeries> {
    let mut all_series: Vec<(RingCase, Vec<usize>)> = Vec::new();
    for (number, summary) in cases.iter().enumerate() {
        if !summary.case.has_several_rings() {
            continue;
        }
        let single = summary.case.single_ring();
        match all_series.iter_mut().find(|(known, _)| is_same_series(known, &summary.case)) {
            Some((_, numbers)) => numbers.push(number),
            None => {
                let mut numbers = Vec::new();
                numbers.extend(cases.iter().position(|other| other.case == single));
                numbers.push(number);
                all_series.push((summary.case.clone(), numbers));
            }
        }
    }
    let mut series = Vec::new();
    for (_, mut numbers) in all_series {
        numbers.sort_by_key(|number| cases[*number].case.rings());
        series.push(RingCountSeries::new(cases, numbers));
    }
    series
}

/// Returns whether two cases with several rings differ in the number of them only: the placements of
/// the one with fewer are the first of the other's.
fn is_same_series(one: &RingCase, other: &RingCase) -> bool {
    let are_prefix = one.beside.iter().zip(&other.beside).all(|(one, other)| one == other);
    one.single_ring() == other.single_ring() && are_prefix
}

impl RingCountSeries {
    /// Builds the findings of cases that are sorted by the number of their rings.
    fn new(cases: &[CaseSummary], numbers: Vec<usize>) -> Self {
        let (mut points, mut costs): (Vec<CurvePoint>, Vec<SizedCost>) = (Vec::new(), Vec::new());
        for number in &numbers {
            let summary = &cases[*number];
            let Some(hop) = summary.ns_per_hop else { continue };
            if let Ok(quoted) = hop.quote_cost() {
                let rings = u64::from(summary.case.rings());
                points.push(curve_point(rings, &hop));
                costs.push((rings, quoted));
            }
        }
        let jump = largest_jump(&costs).filter(|jump| !jump.falls());
        let held_back_from = held_back_from(cases, &numbers);
        Self { cases: numbers, law: scaling::law(&points), jump, held_back_from }
    }
}

/// Returns the least number of rings from which on all are held back.
fn held_back_from(cases: &[CaseSummary], numbers: &[usize]) -> Option<u32> {
    let mut least = None;
    for number in numbers.iter().rev() {
        let rings = cases[*number].rings_at_once.as_ref();
        let efficiency = rings.and_then(|rings| rings.efficiency?.quote_cost().ok());
        match efficiency {
            Some(efficiency) if efficiency.high() < 1.0 - HELD_BACK => {
                least = Some(cases[*number].case.rings());
            }
            _ => break,
        }
    }
    least
}

#[cfg(test)]
mod tests;

//! The summary of each ring of a run: its estimates, sums and counts.

use rundata::bounds;
use rundata::ring::{CountedEvent, RingCase, RingSample};
use rundata::run::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Elasticity, mean, quantile};

use crate::curve::{CurvePoint, curve_point};
use crate::estimate::{Estimate, widest};
use crate::rings_at_once::{GroupFigures, SimultaneousRings, group_figures};
use crate::scaling;
use crate::speed::leader_cpus;
use crate::table::{Figures, Table};

/// Largest distance of the switches per hop from one that is not flagged.
pub const COUNT_TOLERANCE: f64 = 0.05;

/// Fewest switches per hop of a ring of several that switches. Fewer were forced on it by something
/// else on the CPU, and their cost is not in its hops.
pub const HARDLY_SWITCHES_PER_HOP: f64 = 0.1;

/// Sums over the timed laps of all samples of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Timed laps.
    pub laps: u64,
    /// Timed hops.
    pub hops: u64,
    /// Real time in nanoseconds.
    pub real_ns: u64,
    /// CPU time of all members in nanoseconds, by the scheduler's precise sum.
    pub cpu_ns: u64,
    /// User part of `cpu_ns`, by the kernel's tick sampling; absent when no tick was seen.
    pub user_ns: Option<u64>,
    /// System part of `cpu_ns`, by the kernel's tick sampling; absent when no tick was seen.
    pub system_ns: Option<u64>,
    /// Voluntary switches.
    pub voluntary: u64,
    /// Involuntary switches.
    pub involuntary: u64,
}

/// Quartiles of a figure over rounds at whatever speed; they are no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Median over rounds.
    pub median: f64,
    /// A quarter of the rounds lies below.
    pub lower_quartile: f64,
    /// A quarter of the rounds lies above.
    pub upper_quartile: f64,
}

impl Spread {
    fn from_rounds(by_round: Figures) -> Option<Self> {
        let figures: Vec<f64> = by_round.into_values().collect();
        Some(Self {
            median: quantile(&figures, 0.5)?,
            lower_quartile: quantile(&figures, 0.25)?,
            upper_quartile: quantile(&figures, 0.75)?,
        })
    }
}

/// A cost of a switch = cycles / clock + time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TwoParts {
    /// The part that the core bounds, in cycles of its clock.
    pub core_cycles: Estimate,
    /// The part that memory or a device bounds, in nanoseconds at any clock.
    pub memory_ns: Estimate,
}

/// Counts of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// The event.
    pub event: CountedEvent,
    /// Count for a hop.
    pub per_hop: Option<Estimate>,
    /// Count for a switch above the ring of one; absent of that ring, where each member
    /// measures its own solo, and of a ring that does not switch.
    pub per_switch_above_solo: Option<Estimate>,
}

/// The reason why a case has no cost of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCost {
    /// It is a ring of one, which costs are above.
    Solo,
    /// Several items are under way: its switches wait for several hops each, and what stands for it
    /// is the time of an item.
    SeveralItems,
    /// The kernel counted hardly a switch in it.
    DoesNotSwitch,
    /// It was not measured.
    NotMeasured,
    /// The kernel counted no switch at all.
    NoSwitchCounted,
    /// No ring of one was measured beside it.
    NoSoloRing,
}

/// The figures of one ring case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseSummary {
    /// The case.
    pub case: RingCase,
    /// Rounds in which it was measured.
    pub rounds: u32,
    /// Samples taken.
    pub samples: u32,
    /// Samples that were disturbed.
    pub disturbed_samples: u32,
    /// Slices that ran at full speed with nobody else on the core; absent where the quanta tell
    /// nothing.
    pub clean_slices: Option<u32>,
    /// Share of the slices that did, 0 to 1; absent as `clean_slices`.
    pub clean_share: Option<f64>,
    /// Sums over the timed laps; absent when nothing was measured.
    pub totals: Option<Totals>,
    /// CPU time of the ring of two scaled to this size, in nanoseconds per lap (Sloan's projected
    /// line); absent without a ring of two.
    pub projected_cpu_ns_per_lap: Option<f64>,
    /// Time of a hop in nanoseconds: at full speed where that was seen, as the estimate says.
    pub ns_per_hop: Option<Estimate>,
    /// Time of a hop in nanoseconds at whatever speed, over rounds of all slices. Absent where the
    /// quanta tell nothing.
    pub contended_ns_per_hop: Option<Spread>,
    /// Switches per hop as the kernel counted them.
    pub switches_per_hop: Option<Estimate>,
    /// Wake-ups per hop: a member that waits is switched out once (a voluntary switch, as the kernel
    /// counted them) and woken once. Absent in plans whose rings all have one item under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakeups_per_hop: Option<Estimate>,
    /// (hop(N) - hop(1)) / switches per hop in nanoseconds: of clean slices where full speed was
    /// seen, else paired within rounds, as the estimate says. Absent for the solo ring, for a ring
    /// that does not switch, and with several items under way.
    pub ns_per_switch_above_solo: Option<Estimate>,
    /// Cost of a switch above solo in nanoseconds at whatever speed, paired within rounds. Absent
    /// where the speed was not judged.
    pub contended_ns_per_switch_above_solo: Option<Spread>,
    /// Cost of a switch above solo in nanoseconds of CPU time, which holds no other work on the CPU;
    /// absent where the members do not share one CPU, as then their waits are part of the cost.
    pub cpu_ns_per_switch_above_solo: Option<Estimate>,
    /// The core's clock that the figures are at, in GHz; absent where it was not seen at full
    /// speed, and where a multiplication's cycles are not known (on x86-64 they are).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
    /// `ns_per_switch_above_solo` in cycles of that clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles_per_switch: Option<Estimate>,
    /// Elasticity of the cost of a switch, or of a hop for a solo ring, by the period of the core's
    /// clock: 1 where the core bounds it, 0 where memory or a device does. Absent where
    /// the run did not see several clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// The parts of the cost of a switch that follow the core's clock and that do not; absent as
    /// `elasticity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub two_parts: Option<TwoParts>,
    /// Counts of each event of the plan; empty where none was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Counted>,
    /// Figures of the rings that ran at the same time, and of the single ring that they are compared
    /// with; absent in plans without several rings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings_at_once: Option<Box<SimultaneousRings>>,
    /// The time that registers in use add to a switch: `ns_per_switch_above_solo` less that of the same
    /// ring with `state` none, in the same round; absent without such a ring beside it.
    pub ns_per_switch_above_none: Option<Estimate>,
    /// Share of the samples, 0 to 1, whose members were given huge pages for all of their arrays;
    /// absent where none were asked for, and where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_page_share: Option<f64>,
    /// The kernel's count differs from one switch per hop by more than 5 %, with one item under way.
    pub counts_disagree: bool,
    /// A ring of several with one item under way of which the kernel counted less than 0.1 switches
    /// per hop: its hops are no switches, and it has no cost of one.
    #[serde(default)]
    pub does_not_switch: bool,
    /// Reason why the case was not measured, or not to the end.
    pub failure: Option<String>,
}

impl CaseSummary {
    /// Returns whether a hop stands for the case, not a switch: for a solo ring, for one that does
    /// not switch, and with several items under way.
    pub(crate) fn is_told_by_hop(&self) -> bool {
        self.case.members == 1 || self.does_not_switch || self.case.flight.is_some()
    }

    /// Returns the cost of a switch, or why the case has none.
    pub fn cost_of_switch(&self) -> Result<Estimate, NoCost> {
        if self.case.members == 1 {
            return Err(NoCost::Solo);
        }
        if self.case.flight.is_some() {
            return Err(NoCost::SeveralItems);
        }
        if self.does_not_switch {
            return Err(NoCost::DoesNotSwitch);
        }
        self.ns_per_switch_above_solo.ok_or_else(|| self.why_no_cost())
    }

    /// Returns why a ring of several has no cost of a switch, though it may switch.
    fn why_no_cost(&self) -> NoCost {
        let Some(totals) = self.totals else { return NoCost::NotMeasured };
        if totals.voluntary.saturating_add(totals.involuntary) == 0 {
            return NoCost::NoSwitchCounted;
        }
        NoCost::NoSoloRing
    }

    /// Returns the estimate that stands for the case: cost per switch, or per hop for a solo ring and
    /// one that does not switch.
    pub fn headline(&self) -> Option<&Estimate> {
        if self.is_told_by_hop() {
            self.ns_per_hop.as_ref()
        } else {
            self.ns_per_switch_above_solo.as_ref()
        }
    }

    /// Returns the cost of a switch in cycles, `2,632 cycles at 4.08 GHz`; absent where it may not be
    /// quoted.
    pub fn cycles_in_words(&self) -> Option<String> {
        let (cycles, clock_ghz) = (self.cycles_per_switch?, self.clock_ghz?);
        let cycles = cycles.quote_cost().ok()?.whole();
        Some(format!("{cycles} cycles at {clock_ghz:.2} GHz"))
    }

    /// Returns the time of a hop in cycles of the clock at full speed.
    pub fn cycles_per_hop(&self) -> Option<Estimate> {
        self.ns_per_hop?.cycles(self.clock_ghz?)
    }

    /// Adds the figures of several rings. Those of the single ring are its own already.
    fn add_rings(&mut self, figures: GroupFigures) {
        let GroupFigures { rings, ns_per_hop, ns_per_switch_above_solo, counts } = figures;
        self.rings_at_once = Some(Box::new(rings));
        if !self.case.has_several_rings() {
            return;
        }
        self.ns_per_hop = ns_per_hop;
        self.contended_ns_per_switch_above_solo = None;
        if !self.is_told_by_hop() {
            self.ns_per_switch_above_solo = ns_per_switch_above_solo;
        }
        if counts.judged > 0 {
            self.clean_slices = Some(counts.clean);
            self.clean_share = counts.share_as_found();
        }
    }

    /// Adds the clock of the figures and the cost in cycles of it, for what is at full speed.
    fn add_clock(&mut self, clock_ghz: Option<f64>) {
        let hop = self.ns_per_hop.filter(|hop| hop.speed.is_full());
        let switch = self.ns_per_switch_above_solo.filter(|cost| cost.speed.is_full());
        self.clock_ghz = if hop.is_some() || switch.is_some() { clock_ghz } else { None };
        if !self.headline().is_some_and(|headline| headline.speed.is_full()) {
            self.elasticity = None;
        }
        let (Some(cost), Some(clock_ghz)) = (switch, self.clock_ghz) else { return };
        self.cycles_per_switch = cost.cycles(clock_ghz);
        self.two_parts = match self.elasticity {
            Some(Elasticity { value, standard_error }) if !self.is_told_by_hop() => {
                Some(TwoParts {
                    core_cycles: cost.times_factor(clock_ghz * value, clock_ghz * standard_error),
                    memory_ns: cost.times_factor(1.0 - value, standard_error),
                })
            }
            _ => None,
        };
    }

    /// Returns the cost of a switch at the size of the ring, for a curve; absent if it may not be
    /// quoted.
    pub(crate) fn point(&self) -> Option<CurvePoint> {
        let cost = self.ns_per_switch_above_solo.as_ref()?;
        cost.quote_cost().ok()?;
        Some(curve_point(self.case.members.into(), cost))
    }
}

/// Returns the summaries of all rings of a plan; the interim checks of a run use them, too.
pub fn summaries(table: &Table, failures: &[Failure]) -> Vec<CaseSummary> {
    let mut summaries = Vec::new();
    let mut groups = group_figures(table);
    for (number, case) in table.plan.rings() {
        let mut summary = summarise(table, failures, number, case);
        if let Some(figures) = groups.remove(&number) {
            summary.add_rings(figures);
        }
        summaries.push(summary);
    }
    for number in 0..summaries.len() {
        summaries[number].projected_cpu_ns_per_lap =
            projected_cpu_ns_per_lap(&summaries, &summaries[number].case);
    }
    summaries
}

/// Returns the CPU time of a lap in the ring of two like `case`, scaled to the size of `case`.
fn projected_cpu_ns_per_lap(summaries: &[CaseSummary], case: &RingCase) -> Option<f64> {
    if case.members <= 1 {
        return None;
    }
    let two = RingCase { members: 2, ..case.clone() };
    let totals = summaries.iter().find(|summary| summary.case == two)?.totals?;
    Some(scaling::projected(totals.cpu_ns as f64 / totals.laps as f64, case.members))
}

/// Like [`summaries`], with the clock of each; `target` is the platform that the program was built
/// for.
pub(crate) fn summaries_at_clocks(
    table: &Table,
    failures: &[Failure],
    target: &str,
) -> Vec<CaseSummary> {
    let mut summaries = summaries(table, failures);
    for summary in &mut summaries {
        let level = table.levels().get(&leader_cpus(&summary.case));
        summary.add_clock(level.and_then(|level| level.clock_ghz(target)));
    }
    summaries
}

fn summarise(table: &Table, failures: &[Failure], index: usize, case: &RingCase) -> CaseSummary {
    let plan = table.plan;
    let samples: Vec<&RingSample> = table.samples(index).collect();
    // Each estimate has a random stream of its own, fixed by the plan's seed.
    let first_stream = 1 + 4 * table.rank(index);
    let counted = table.middle_by_round(index, RingSample::switches_per_hop);
    let switches_per_hop = table.over_rounds(&counted, first_stream + 1);
    let (mut does_not_switch, mut counts_disagree) = (false, false);
    let has_one_item = case.members > 1 && case.flight.is_none();
    if let (Some(Estimate { value: per_hop, .. }), true) = (switches_per_hop, has_one_item) {
        does_not_switch = per_hop < HARDLY_SWITCHES_PER_HOP;
        counts_disagree = (per_hop - 1.0).abs() > COUNT_TOLERANCE;
    }
    let is_told_by_hop = case.members == 1 || does_not_switch || case.flight.is_some();
    let elasticity =
        if is_told_by_hop { table.hop_elasticity(index) } else { table.elasticity(index) };
    let slices = table.slices(index).filter(|slices| slices.is_judged());
    let contended_ns_per_hop = table.as_found_by_round(index, RingSample::ns_per_hop);
    let disturbed = samples.iter().filter(|sample| !sample.disturbances(case).is_empty()).count();
    let mut summary = CaseSummary {
        rounds: table.rounds(index),
        samples: samples.len() as u32,
        disturbed_samples: disturbed as u32,
        clean_slices: slices.map(|slices| slices.clean_counts().clean),
        clean_share: slices.and_then(|slices| slices.clean_counts().share_as_found()),
        totals: totals(&samples),
        projected_cpu_ns_per_lap: None,
        ns_per_hop: table.hop(index, first_stream),
        contended_ns_per_hop: slices.and_then(|_| Spread::from_rounds(contended_ns_per_hop)),
        switches_per_hop,
        wakeups_per_hop: wakeups_per_hop(table, index),
        ns_per_switch_above_solo: None,
        contended_ns_per_switch_above_solo: None,
        cpu_ns_per_switch_above_solo: None,
        clock_ghz: None,
        cycles_per_switch: None,
        two_parts: None,
        events: Vec::new(),
        rings_at_once: None,
        elasticity,
        ns_per_switch_above_none: None,
        huge_page_share: huge_page_share(case, &samples),
        counts_disagree,
        does_not_switch,
        failure: failure_of(failures, index),
        case: case.clone(),
    };
    for (place, event) in plan.batching.ring.events.iter().enumerate() {
        let per_hop = table.events_per_hop(index, place, first_stream);
        let mut counts = Counted { event: *event, per_hop, per_switch_above_solo: None };
        if !is_told_by_hop {
            counts.per_switch_above_solo = table.events_per_switch(index, place, first_stream + 2);
        }
        summary.events.push(counts);
    }
    if !does_not_switch && case.flight.is_none() {
        add_switch_costs(&mut summary, table, index);
    }
    summary
}

/// Returns the wake-ups per hop of a ring in a plan with several items under way.
fn wakeups_per_hop(table: &Table, index: usize) -> Option<Estimate> {
    if table.plan.rings().all(|(_, case)| case.flight.is_none()) {
        return None;
    }
    // A random stream of its own, apart from those of costs and charts.
    let stream = (4 << 32) + table.rank(index);
    table.over_rounds(&table.middle_by_round(index, RingSample::wakeups_per_hop), stream)
}

/// Adds the costs of a switch to the summary of a ring that may switch.
fn add_switch_costs(summary: &mut CaseSummary, table: &Table, index: usize) {
    let (plan, case) = (table.plan, &summary.case);
    let first_stream = 1 + 4 * table.rank(index);
    summary.ns_per_switch_above_solo = table.above_solo(index, first_stream + 2);
    if summary.clean_slices.is_some() {
        let above = table.above_solo_of_all(index, RingSample::ns_per_hop);
        summary.contended_ns_per_switch_above_solo = Spread::from_rounds(above);
    }
    if case.placement.is_one_cpu() && plan.batching.ring.triples.is_none() {
        let above = table.cpu_above_solo_by_round(index);
        summary.cpu_ns_per_switch_above_solo = table.over_rounds(&above, first_stream + 3);
    }
    // A double difference of four rings, like the indirect cost of a working set.
    if case.members > 1 {
        if let Some(none) = plan.none_of(index) {
            let stream = (2 << 32) + table.rank(index);
            summary.ns_per_switch_above_none = table.difference(index, none, stream);
        }
    }
}

/// Returns the reason why a case was not measured, or not to the end.
pub(crate) fn failure_of(failures: &[Failure], case: usize) -> Option<String> {
    let last = failures.iter().rfind(|failure| failure.case == case)?;
    Some(last.message.clone())
}

fn huge_page_share(case: &RingCase, samples: &[&RingSample]) -> Option<f64> {
    let work = case.work.filter(|work| work.huge_pages)?;
    let needed = work.bytes.saturating_mul(u64::from(case.members_of_all()));
    let mut shares = Vec::new();
    for sample in samples {
        if let Some(bytes) = sample.huge_page_bytes {
            shares.push(if bytes >= needed { 1.0 } else { 0.0 });
        }
    }
    mean(&shares)
}

fn totals(samples: &[&RingSample]) -> Option<Totals> {
    if samples.is_empty() {
        return None;
    }
    let cpu_ns = sum_of_samples(samples, RingSample::cpu_ns);
    // The split of the samples that have one stands for all. A negative user part means that fewer
    // user ticks were seen than belong to the quanta: then there is no user time.
    let (mut user, mut system) = (0_i64, 0_i64);
    for sample in samples {
        if let Some((sample_user, sample_system)) = sample.user_system_ns() {
            user = user.saturating_add(sample_user);
            system = system.saturating_add(sample_system);
        }
    }
    let split = user.saturating_add(system);
    let (mut user_ns, mut system_ns) = (None, None);
    if split > 0 {
        let share = (user as f64 / split as f64).max(0.0);
        let user_part_ns = (cpu_ns as f64 * share).round() as u64;
        user_ns = Some(user_part_ns);
        system_ns = Some(cpu_ns.saturating_sub(user_part_ns));
    }
    Some(Totals {
        laps: sum_of_samples(samples, |sample| sample.laps),
        hops: sum_of_samples(samples, |sample| sample.hops),
        real_ns: sum_of_samples(samples, |sample| sample.elapsed_ns),
        cpu_ns,
        user_ns,
        system_ns,
        voluntary: sum_of_samples(samples, |sample| sample.counters.voluntary),
        involuntary: sum_of_samples(samples, |sample| sample.counters.involuntary),
    })
}

fn sum_of_samples(samples: &[&RingSample], read: fn(&RingSample) -> u64) -> u64 {
    bounds::saturating_sum(samples.iter().map(|sample| read(sample)))
}

/// Returns the widest relative half-width among the cases that are still measured; absent as long as
/// one of them has no interval.
pub fn worst_precision(cases: &[CaseSummary]) -> Option<f64> {
    widest(widths(cases))
}

/// Returns the relative half-width of each case that is still measured; absent for one without an
/// interval.
pub(crate) fn widths(cases: &[CaseSummary]) -> impl Iterator<Item = Option<f64>> {
    let open = cases.iter().filter(|case| case.failure.is_none());
    open.map(|case| case.headline().and_then(Estimate::precision))
}

//! What was found of each ring of a run: its estimates, sums and counts.

use rundata::bounds;
use rundata::ring::{CountedEvent, RingCase, RingSample};
use rundata::run::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Elasticity, mean, quantile};

use crate::curve::{CurvePoint, curve_point};
use crate::estimate::{Estimate, widest};
use crate::scaling;
use crate::speed::leader_cpus;
use crate::table::{Figures, Table};

/// Switches per hop further than this from one are flagged.
pub const COUNT_TOLERANCE: f64 = 0.05;

/// Below so many switches per hop a ring of several does not switch: what switches there are,
/// something else on the CPU forced on it, and their cost is not in its hops.
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

/// Figures of rounds at whatever speed: where most of them lie, and no interval for anything.
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
    fn of(figures: &[f64]) -> Option<Self> {
        let at = |p| quantile(figures, p);
        Some(Self { median: at(0.5)?, lower_quartile: at(0.25)?, upper_quartile: at(0.75)? })
    }
}

/// A cost of a switch = cycles / clock + time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TwoParts {
    /// What the core bounds, in cycles of its clock.
    pub core_cycles: Estimate,
    /// What memory or a device bounds, in nanoseconds, whatever the clock.
    pub memory_ns: Estimate,
}

/// What was counted of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// The event.
    pub event: CountedEvent,
    /// How often for a hop.
    pub per_hop: Option<Estimate>,
    /// How often for a switch above the ring of one; absent of that ring, where each member
    /// measures its own solo, and of a ring that does not switch.
    pub per_switch_above_solo: Option<Estimate>,
}

/// Why a case has no cost of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCost {
    /// It is a ring of one, which costs are above.
    Solo,
    /// The kernel counted hardly a switch in it.
    DoesNotSwitch,
    /// It was not measured.
    NotMeasured,
    /// The kernel counted no switch at all.
    NoSwitchCounted,
    /// No ring of one was measured beside it.
    NoSoloRing,
}

/// One case and what was found.
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
    /// (hop(N) - hop(1)) / switches per hop in nanoseconds: of clean slices where full speed was
    /// seen, else paired within rounds, as the estimate says. Absent for the solo ring and for a
    /// ring that does not switch.
    pub ns_per_switch_above_solo: Option<Estimate>,
    /// The same at whatever speed, paired within rounds. Absent where the quanta tell nothing.
    pub contended_ns_per_switch_above_solo: Option<Spread>,
    /// The same by CPU time, which other work on the CPU does not enter; absent where the members
    /// do not share one CPU, as then their waits are part of the cost.
    pub cpu_ns_per_switch_above_solo: Option<Estimate>,
    /// The core's clock that the figures are at, in GHz; absent where it was not seen at full
    /// speed, and where a multiplication's cycles are not known (on x86-64 they are).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<f64>,
    /// `ns_per_switch_above_solo` in cycles of that clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles_per_switch: Option<Estimate>,
    /// By which power the cost of a switch, of a solo ring that of a hop, goes with the period of
    /// the core's clock: 1 where the core bounds it, 0 where memory or a device does. Absent where
    /// the run did not see several clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// What of the cost of a switch goes with the core's clock, and what does not; absent as
    /// `elasticity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub two_parts: Option<TwoParts>,
    /// What was counted of each event of the plan; empty where none was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Counted>,
    /// What the registers in use add to a switch: `ns_per_switch_above_solo` less that of the same
    /// ring with `state` none, in the same round; absent without such a ring beside it.
    pub ns_per_switch_above_none: Option<Estimate>,
    /// Share of the samples, 0 to 1, whose members were given huge pages for all of their arrays;
    /// absent where none were asked for, and where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_page_share: Option<f64>,
    /// The kernel's count differs from one switch per hop by more than 5 %.
    pub counts_disagree: bool,
    /// A ring of several of which the kernel counted less than 0.1 switches per hop: its hops are
    /// no switches, and it has no cost of one.
    #[serde(default)]
    pub does_not_switch: bool,
    /// Why the case was not measured (any further).
    pub failure: Option<String>,
}

impl CaseSummary {
    /// Whether a hop stands for it, not a switch: of a solo ring and of one that does not switch.
    pub(crate) fn is_told_by_hop(&self) -> bool {
        self.case.members == 1 || self.does_not_switch
    }

    /// Returns the cost of a switch, or why the case has none.
    pub fn cost_of_switch(&self) -> Result<Estimate, NoCost> {
        if self.case.members == 1 {
            return Err(NoCost::Solo);
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

    /// The estimate that stands for the case: cost per switch, or per hop for a solo ring and one
    /// that does not switch.
    pub fn headline(&self) -> Option<&Estimate> {
        match self.is_told_by_hop() {
            true => self.ns_per_hop.as_ref(),
            false => self.ns_per_switch_above_solo.as_ref(),
        }
    }

    /// What a switch costs in cycles: `2,632 cycles at 4.08 GHz`; absent where the time may not be
    /// quoted.
    pub fn cycles_in_words(&self) -> Option<String> {
        let (cycles, clock_ghz) = self.cycles_per_switch.zip(self.clock_ghz)?;
        let cycles = cycles.quote_cost().ok()?.whole();
        Some(format!("{cycles} cycles at {clock_ghz:.2} GHz"))
    }

    /// The time of a hop in cycles of that clock, as far as it was taken at full speed.
    pub fn cycles_per_hop(&self) -> Option<Estimate> {
        self.ns_per_hop?.cycles(self.clock_ghz?)
    }

    /// At which clock its figures are, and what its cost is in cycles of it.
    fn add_clock(&mut self, clock_ghz: Option<f64>) {
        let is_full = |of: &Option<Estimate>| of.is_some_and(|of| of.speed.is_full());
        self.clock_ghz = clock_ghz
            .filter(|_| is_full(&self.ns_per_hop) || is_full(&self.ns_per_switch_above_solo));
        self.elasticity =
            self.elasticity.filter(|_| self.headline().is_some_and(|of| of.speed.is_full()));
        let cost = self.ns_per_switch_above_solo.filter(|of| of.speed.is_full());
        let (Some(cost), Some(clock_ghz)) = (cost, self.clock_ghz) else { return };
        self.cycles_per_switch = cost.cycles(clock_ghz);
        self.two_parts = self.elasticity.filter(|_| !self.is_told_by_hop()).map(|of| TwoParts {
            core_cycles: cost.times_factor(clock_ghz * of.value, clock_ghz * of.standard_error),
            memory_ns: cost.times_factor(1.0 - of.value, of.standard_error),
        });
    }

    /// The cost of a switch over the size of the ring; none of one that may not be quoted.
    pub(crate) fn point(&self) -> Option<CurvePoint> {
        let cost = self.ns_per_switch_above_solo.as_ref()?;
        cost.quote_cost().ok().map(|_| curve_point(self.case.members.into(), cost))
    }
}

/// Summaries of all rings of a plan; also used for the looks while a run is going on.
pub fn summaries(table: &Table, failures: &[Failure]) -> Vec<CaseSummary> {
    let summary = |(number, case)| summarise(table, failures, number, case);
    let mut all: Vec<CaseSummary> = table.plan.rings().map(summary).collect();
    for index in 0..all.len() {
        let members = all[index].case.members;
        let two = RingCase { members: 2, ..all[index].case.clone() };
        let two = all.iter().find(|summary| summary.case == two).filter(|_| members > 1);
        all[index].projected_cpu_ns_per_lap = two
            .and_then(|two| two.totals)
            .map(|of| scaling::projected(of.cpu_ns as f64 / of.laps as f64, members));
    }
    all
}

/// The same with the clock that each is at; `target` is what the program was built for.
pub(crate) fn summaries_at_clocks(
    table: &Table,
    failures: &[Failure],
    target: &str,
) -> Vec<CaseSummary> {
    let mut all = summaries(table, failures);
    for of in &mut all {
        let level = table.levels().get(&leader_cpus(&of.case));
        of.add_clock(level.and_then(|level| level.clock_ghz(target)));
    }
    all
}

fn summarise(table: &Table, failures: &[Failure], index: usize, case: &RingCase) -> CaseSummary {
    let plan = table.plan;
    let samples: Vec<&RingSample> = table.samples(index).collect();
    // Every estimate has a random stream of its own, fixed by the plan's seed.
    let stream = |estimate: u64| 1 + 4 * table.rank(index) + estimate;
    let counted = table.middle_by_round(index, RingSample::switches_per_hop);
    let switches_per_hop = table.over_rounds(&counted, stream(1));
    let several = switches_per_hop.filter(|_| case.members > 1).map(|estimate| estimate.value);
    let does_not_switch = several.is_some_and(|per_hop| per_hop < HARDLY_SWITCHES_PER_HOP);
    let switching = (!does_not_switch).then_some(());
    let slices = table.slices(index).filter(|slices| slices.is_judged());
    let judged_middle = |figures: Figures| {
        Spread::of(&figures.into_values().collect::<Vec<f64>>()).filter(|_| slices.is_some())
    };
    let disturbed = samples.iter().filter(|s| !s.disturbances(case).is_empty()).count();
    let none = plan.none_of(index).filter(|_| case.members > 1);
    CaseSummary {
        rounds: table.rounds(index),
        samples: samples.len() as u32,
        disturbed_samples: disturbed as u32,
        clean_slices: slices.map(|slices| slices.clean_counts().clean),
        clean_share: slices.and_then(|slices| slices.clean_counts().share_as_found()),
        totals: totals(&samples),
        projected_cpu_ns_per_lap: None,
        ns_per_hop: table.hop(index, stream(0)),
        contended_ns_per_hop: judged_middle(table.as_found_by_round(index, RingSample::ns_per_hop)),
        switches_per_hop,
        ns_per_switch_above_solo: switching.and_then(|()| table.above_solo(index, stream(2))),
        contended_ns_per_switch_above_solo: switching
            .map(|()| table.above_solo_of_all(index, RingSample::ns_per_hop))
            .and_then(judged_middle),
        cpu_ns_per_switch_above_solo: switching
            .map(|()| table.cpu_above_solo_by_round(index))
            .filter(|_| case.placement.is_one_cpu() && plan.batching.ring.triples.is_none())
            .and_then(|figures| table.over_rounds(&figures, stream(3))),
        clock_ghz: None,
        cycles_per_switch: None,
        two_parts: None,
        events: (0..)
            .zip(&plan.batching.ring.events)
            .map(|(place, event)| Counted {
                event: *event,
                per_hop: table.events_per_hop(index, place, stream(0)),
                per_switch_above_solo: switching
                    .filter(|()| case.members > 1)
                    .and_then(|()| table.events_per_switch(index, place, stream(2))),
            })
            .collect(),
        elasticity: match case.members == 1 || does_not_switch {
            true => table.hop_elasticity(index),
            false => table.elasticity(index),
        },
        // A double difference of four rings, as the indirect cost of a working set is one.
        ns_per_switch_above_none: switching
            .and(none)
            .and_then(|none| table.difference(index, none, (2 << 32) + table.rank(index))),
        huge_page_share: huge_page_share(case, &samples),
        counts_disagree: several.is_some_and(|per_hop| (per_hop - 1.0).abs() > COUNT_TOLERANCE),
        does_not_switch,
        failure: failure_of(failures, index),
        case: case.clone(),
    }
}

/// Why a case was not measured (any further).
pub(crate) fn failure_of(failures: &[Failure], case: usize) -> Option<String> {
    failures.iter().rev().find(|failure| failure.case == case).map(|f| f.message.clone())
}

fn huge_page_share(case: &RingCase, samples: &[&RingSample]) -> Option<f64> {
    let work = case.work.filter(|work| work.huge_pages)?;
    let needed = work.bytes.saturating_mul(u64::from(case.members));
    let given = samples.iter().filter_map(|sample| Some(sample.huge_page_bytes? >= needed));
    mean(&given.map(|given| f64::from(u8::from(given))).collect::<Vec<f64>>())
}

fn totals(samples: &[&RingSample]) -> Option<Totals> {
    if samples.is_empty() {
        return None;
    }
    let sum = |of: fn(&RingSample) -> u64| {
        bounds::saturating_sum(samples.iter().map(|sample| of(sample)))
    };
    let cpu_ns: u64 = sum(RingSample::cpu_ns);
    // The split of the samples that have one stands for all. So few ticks that the quanta's share
    // of them is more than all that were seen in user mode are no user time.
    let splits = || samples.iter().filter_map(|sample| sample.user_system_ns());
    let user = splits().map(|(user, _)| user).fold(0, i64::saturating_add);
    let system = splits().map(|(_, system)| system).fold(0, i64::saturating_add);
    let split = user.saturating_add(system);
    let share = (split > 0).then(|| (user as f64 / split as f64).max(0.0));
    let user_ns = share.map(|share| (cpu_ns as f64 * share).round() as u64);
    Some(Totals {
        laps: sum(|sample| sample.laps),
        hops: sum(|sample| sample.hops),
        real_ns: sum(|sample| sample.elapsed_ns),
        cpu_ns,
        user_ns,
        system_ns: user_ns.map(|user| cpu_ns.saturating_sub(user)),
        voluntary: sum(|sample| sample.counters.voluntary),
        involuntary: sum(|sample| sample.counters.involuntary),
    })
}

/// The widest relative half-width among the cases that are still measured; absent as long as one
/// of them has no interval.
pub fn worst_precision(cases: &[CaseSummary]) -> Option<f64> {
    widest(widths(cases))
}

/// The relative half-width of each case that is still measured; none of one without an interval.
pub(crate) fn widths(cases: &[CaseSummary]) -> impl Iterator<Item = Option<f64>> {
    let open = cases.iter().filter(|case| case.failure.is_none());
    open.map(|case| case.headline().and_then(Estimate::precision))
}

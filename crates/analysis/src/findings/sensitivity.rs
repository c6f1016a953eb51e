//! `sensitivity`: the cost of a preemption for a command, measured on the command itself.
//!
//! A neighbour at a higher priority preempts it some thousand times a second. The cost is the
//! command's CPU time above that of its run alone in the same round, over the additional preemptions
//! that the kernel counted. The time of a timer's interrupt, which is charged to the command without
//! a switch, is measured apart and subtracted. Times are converted to the full speed of the CPU
//! (`speed`). Formulas: `docs/method.md`.

mod speed;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::table::Table;
use rundata::competing::CompetingTasks;
use rundata::trial::command::*;
use rundata::trial::{Tally, Trial, TrialSample};
use speed::CoreSpeed;
pub use speed::CoreSpeedFindings;

/// Fewest preemptions of a sample above those of the program alone: fewer are lost in the
/// variation from run to run.
const FEWEST_EVENTS: f64 = 20.0;

/// The cost of a preemption by a neighbour that wakes at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AtRate")]
pub struct RatePoint {
    /// Number of the case in the plan.
    pub case: usize,
    /// Wake-ups a second.
    pub rate_hz: u32,
    /// CPU time of the command for a preemption, in nanoseconds.
    pub ns_per_preemption: Option<Estimate>,
    /// Preemptions in a second of the command's CPU time, over all rounds.
    pub preemptions_per_cpu_second: Option<f64>,
    /// CPU time of the command above that of its run alone, relative to it, with the timer's
    /// interrupts.
    pub more_cpu_share: Option<Estimate>,
}

/// The cost of a preemption by a neighbour that uses one amount of cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Point")]
pub struct SensitivityPoint {
    /// Bytes that the neighbour writes to whenever it wakes.
    pub bytes: u64,
    /// Time that it runs then, in nanoseconds; 0 where it goes through its bytes once.
    #[serde(default)]
    pub stays_ns: u64,
    /// CPU time of the command for a preemption, in nanoseconds, of all rates together.
    pub ns_per_preemption: Option<Estimate>,
    /// Points by rate, ascending.
    pub rates: Vec<RatePoint>,
    /// Cost of a preemption at the highest rate less that at the lowest, in nanoseconds: where it is
    /// resolved, the loss is not proportional to the count.
    pub highest_above_lowest_ns: Option<Estimate>,
}

/// Findings of `sensitivity`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct SensitivityFindings {
    /// The command or process that was preempted.
    pub subject: CommandSubject,
    /// The file that it runs, as far as that was found.
    pub executable: Option<Executable>,
    /// CPU time of a run alone, or of one unit of a process's progress, in nanoseconds.
    pub alone_cpu_ns: Option<Estimate>,
    /// The speed of the CPU; absent where it was not checked.
    pub core_speed: Option<CoreSpeedFindings>,
    /// Time of a timer's interrupt that is charged to the command without a switch, in nanoseconds,
    /// beside a neighbour on another CPU; subtracted from all costs. Absent without a timer.
    pub timer_ns: Option<Estimate>,
    /// Points by the time that the neighbour stays and the cache that it uses, ascending.
    pub points: Vec<SensitivityPoint>,
}

/// CPU time of a sample, its progress, and the events in it.
#[derive(Clone, Copy)]
struct SampleUse {
    cpu_ns: f64,
    /// Runs, or units of progress.
    done: f64,
    events: f64,
    /// Largest number of events that were only measurements of the CPU's speed.
    looks: f64,
    /// Wake-ups of the neighbour.
    wakes: f64,
}

impl SampleUse {
    /// Returns the use of a sample, with the events of this count; absent where its time cannot be
    /// converted to full speed.
    fn from_sample(sample: &TrialSample, speed: &CoreSpeed, events: &str) -> Option<Self> {
        let cpu_ns = speed.factor(sample)? * sample.tallies.get(CPU_NS)?.total();
        let done = sample.count(DONE)? as f64;
        if done <= 0.0 {
            return None;
        }
        let events = count_or_zero(sample, events);
        let looks = count_or_zero(sample, LOOKS).min(events);
        Some(Self { cpu_ns, done, events, looks, wakes: count_or_zero(sample, WAKES) })
    }

    /// Returns the CPU time for one unit of progress, in nanoseconds.
    fn cpu_ns_for_one(self) -> f64 {
        self.cpu_ns / self.done
    }

    /// Returns the events above those of the program alone for the same progress.
    fn additional_events(self, alone: Self) -> f64 {
        self.events - alone.events * (self.done / alone.done)
    }

    /// Returns the use without the looks and their cost. A program that has the CPU for a part of
    /// the time, or one of several CPUs, is preempted by looks and neighbours for the same part of
    /// their wake-ups. The events that it has by itself are known from its run alone.
    fn without_looks(self, look_ns: f64, events_alone_for_one: f64) -> Self {
        let by_others = self.events - events_alone_for_one * self.done;
        let part = by_others / (self.looks + self.wakes);
        let looks = if self.looks > 0.0 { self.looks * part.clamp(0.0, 1.0) } else { 0.0 };
        let cpu_ns = self.cpu_ns - looks * look_ns;
        Self { cpu_ns, events: self.events - looks, looks: 0.0, ..self }
    }
}

fn count_or_zero(sample: &TrialSample, name: &str) -> f64 {
    sample.count(name).unwrap_or_default() as f64
}

/// Returns the cost of an event in nanoseconds: the additional CPU time of samples over their
/// additional events. Absent where a sample has too few.
fn cost_per_event(alone: SampleUse, samples: &[SampleUse]) -> Option<f64> {
    let (mut cpu_ns, mut events) = (0.0, 0.0);
    for sample in samples {
        let additional = sample.additional_events(alone);
        if additional < FEWEST_EVENTS {
            return None;
        }
        let progress = sample.done / alone.done;
        cpu_ns = cpu_ns + sample.cpu_ns - alone.cpu_ns * progress;
        events += additional;
    }
    if events > 0.0 { Some(cpu_ns / events) } else { None }
}

/// Returns the cost of a look in nanoseconds: that of a preemption by a neighbour without memory, of
/// which these are samples. All their events are of that kind, and so are those of the program
/// alone, whichever has more. 0 where nobody looked.
fn cost_per_look(alone: SampleUse, empty: &[SampleUse]) -> Option<f64> {
    if alone.looks == 0.0 && empty.iter().all(|sample| sample.looks == 0.0) {
        return Some(0.0);
    }
    let (mut products, mut squares) = (0.0, 0.0);
    for sample in empty {
        let additional = sample.additional_events(alone);
        let progress = sample.done / alone.done;
        products += additional * (sample.cpu_ns - alone.cpu_ns * progress);
        squares += additional * additional;
    }
    let is_known = squares >= FEWEST_EVENTS * FEWEST_EVENTS;
    if is_known { Some(products / squares) } else { None }
}

/// Uses of one round: of the program alone, beside neighbours, and the cost of a timer's interrupt.
struct RoundUse {
    alone: SampleUse,
    /// 0 where it was not measured.
    timer_ns: f64,
    beside: Vec<SampleUse>,
}

impl RoundUse {
    /// Returns the cost of a preemption beside all neighbours together.
    fn cost(&self) -> Option<f64> {
        Some(cost_per_event(self.alone, &self.beside)? - self.timer_ns)
    }

    /// Returns the cost beside the last neighbour less that beside the first.
    fn last_above_first(&self) -> Option<f64> {
        let (first, last) = (*self.beside.first()?, *self.beside.last()?);
        Some(cost_per_event(self.alone, &[last])? - cost_per_event(self.alone, &[first])?)
    }
}

/// The cases of a plan, and the speed of the CPU in each sample.
struct SensitivityCases<'a> {
    speed: CoreSpeed,
    alone: usize,
    command: &'a CommandTrial,
    elsewhere: Option<usize>,
    /// Cases with a neighbour, by the time that it stays and its bytes, then by rate.
    beside: BTreeMap<(u64, u64), BTreeMap<u32, usize>>,
}

impl<'a> SensitivityCases<'a> {
    fn from_table(table: &Table<'a>) -> Option<Self> {
        let (mut alone, mut elsewhere) = (None, None);
        let mut beside: BTreeMap<(u64, u64), BTreeMap<u32, usize>> = BTreeMap::new();
        for (case, trial) in table.trials() {
            let Trial::Command(command) = trial else { continue };
            match command.neighbour {
                NeighbourKind::Nobody => alone = alone.or(Some((case, command))),
                NeighbourKind::Elsewhere if command.timer => elsewhere = elsewhere.or(Some(case)),
                NeighbourKind::Elsewhere => {}
                NeighbourKind::Preempts => {
                    let rates = beside.entry((command.stays_ns, command.bytes)).or_default();
                    rates.insert(command.rate_hz, case);
                }
            }
        }
        let (alone, command) = alone?;
        let mut cases = vec![alone];
        cases.extend(elsewhere);
        for rates in beside.values() {
            cases.extend(rates.values());
        }
        Some(Self { speed: CoreSpeed::fit(table, cases), alone, command, elsewhere, beside })
    }

    /// Estimates a figure of the program alone, of the cost of a timer's interrupt and of the
    /// program beside these neighbours, all in one round.
    fn estimate(
        &self,
        table: &Table,
        beside: &[usize],
        figure: fn(&RoundUse) -> Option<f64>,
    ) -> Option<Estimate> {
        let mut empty = Vec::new();
        if let Some(rates) = self.beside.get(&(0, 0)) {
            empty.extend(rates.values());
        }
        let elsewhere = self.elsewhere.as_slice();
        let cases = [&[self.alone], elsewhere, &*empty, beside].concat();
        table.midmean_together(&cases, |samples| {
            let mut uses = Vec::new();
            for sample in samples {
                uses.push(SampleUse::from_sample(sample, &self.speed, PREEMPTIONS)?);
            }
            let (_, neighbours) = uses.split_at(1 + elsewhere.len());
            let (empty, beside) = neighbours.split_at(empty.len());
            let look_ns = cost_per_look(uses[0], empty)?;
            let alone = uses[0].without_looks(look_ns, 0.0);
            let alone_for_one = alone.events / alone.done;
            let mut beside = beside.to_vec();
            for sample in &mut beside {
                *sample = sample.without_looks(look_ns, alone_for_one);
            }
            let timer_ns = if elsewhere.is_empty() { 0.0 } else { self.timer_ns(samples)? };
            figure(&RoundUse { alone, timer_ns, beside })
        })
    }

    /// Returns the cost of a timer's interrupt, by samples of the program alone and of a neighbour
    /// elsewhere: looks are in both.
    fn timer_ns(&self, samples: &[&TrialSample]) -> Option<f64> {
        let alone = SampleUse::from_sample(samples[0], &self.speed, TIMER_INTERRUPTS)?;
        let elsewhere = SampleUse::from_sample(samples[1], &self.speed, TIMER_INTERRUPTS)?;
        cost_per_event(alone, &[elsewhere])
    }

    fn timer(&self, table: &Table) -> Option<Estimate> {
        table.midmean_together(&[self.alone, self.elsewhere?], |samples| self.timer_ns(samples))
    }

    fn point(
        &self,
        table: &Table,
        kind: (u64, u64),
        rates: &BTreeMap<u32, usize>,
    ) -> SensitivityPoint {
        let (stays_ns, bytes) = kind;
        let cases: Vec<usize> = rates.values().copied().collect();
        let mut points = Vec::new();
        for (rate_hz, case) in rates {
            points.push(self.rate_point(table, *rate_hz, *case));
        }
        let mut highest_above_lowest_ns = None;
        if cases.len() > 1 {
            highest_above_lowest_ns = self.estimate(table, &cases, RoundUse::last_above_first);
        }
        SensitivityPoint {
            bytes,
            stays_ns,
            ns_per_preemption: self.estimate(table, &cases, RoundUse::cost),
            rates: points,
            highest_above_lowest_ns,
        }
    }

    fn rate_point(&self, table: &Table, rate_hz: u32, case: usize) -> RatePoint {
        RatePoint {
            case,
            rate_hz,
            ns_per_preemption: self.estimate(table, &[case], RoundUse::cost),
            preemptions_per_cpu_second: preemptions_per_cpu_second(table, case),
            more_cpu_share: self.estimate(table, &[case], |round| {
                Some(round.beside[0].cpu_ns_for_one() / round.alone.cpu_ns_for_one() - 1.0)
            }),
        }
    }
}

fn preemptions_per_cpu_second(table: &Table, case: usize) -> Option<f64> {
    let preemptions = table.sum(case, PREEMPTIONS)?;
    let mut cpu_ns = 0.0;
    for sample in table.trial_samples(case) {
        cpu_ns += sample.tallies.get(CPU_NS).map_or(0.0, Tally::total);
    }
    let per_second = preemptions as f64 / (cpu_ns / 1e9);
    if per_second.is_finite() { Some(per_second) } else { None }
}

/// Largest share of the CPU that competing tasks may have had for a cost to be quotable: they
/// preempt the program too, and are preempted by the neighbour instead of it.
const MAX_COMPETING_SHARE: f64 = 0.05;

/// Returns the findings; absent for a plan without a run alone. Where competing tasks had more than
/// a little of the CPU no estimate is quotable.
pub(super) fn find(
    table: &Table,
    competing: Option<&CompetingTasks>,
) -> Option<SensitivityFindings> {
    let mut findings = estimate_costs(table)?;
    if competing.is_none_or(|tasks| tasks.seen_share() <= MAX_COMPETING_SHARE) {
        return Some(findings);
    }
    let mut estimates = vec![&mut findings.timer_ns];
    for point in &mut findings.points {
        estimates.push(&mut point.ns_per_preemption);
        estimates.push(&mut point.highest_above_lowest_ns);
        for rate in &mut point.rates {
            estimates.push(&mut rate.ns_per_preemption);
            estimates.push(&mut rate.more_cpu_share);
        }
    }
    for estimate in estimates.into_iter().flatten() {
        *estimate = estimate.not_alone();
        if table.plan.reference.strict {
            *estimate = estimate.strict();
        }
    }
    Some(findings)
}

/// Returns the relative half-width of the cost of a preemption by case; absent for a case without an
/// interval. Empty for other experiments.
pub(super) fn widths(table: &Table) -> BTreeMap<usize, Option<f64>> {
    let mut widths = BTreeMap::new();
    if !table.trials().any(|(_, trial)| matches!(trial, Trial::Command(_))) {
        return widths;
    }
    let Some(findings) = estimate_costs(table) else { return widths };
    for point in findings.points {
        let width = point.ns_per_preemption.as_ref().and_then(Estimate::precision);
        for rate in point.rates {
            widths.insert(rate.case, width);
        }
    }
    widths
}

fn estimate_costs(table: &Table) -> Option<SensitivityFindings> {
    let mut cases = SensitivityCases::from_table(table)?;
    let timer = cases.timer(table);
    if timer.is_none() {
        // Costs then include the timer's interrupt.
        cases.elsewhere = None;
    }
    let mut points = Vec::new();
    for (kind, rates) in &cases.beside {
        points.push(cases.point(table, *kind, rates));
    }
    Some(SensitivityFindings {
        subject: cases.command.subject.clone(),
        executable: cases.command.executable.clone(),
        alone_cpu_ns: cases.estimate(table, &[], |round| Some(round.alone.cpu_ns_for_one())),
        core_speed: cases.speed.findings(),
        timer_ns: timer,
        points,
    })
}

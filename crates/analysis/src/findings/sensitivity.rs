//! `sensitivity`: what being preempted costs a command, measured on the command itself.
//!
//! A neighbour at a higher priority preempts it some thousand times a second. What the command's
//! CPU time is then above that of its run alone, in the same round, over the preemptions that the
//! kernel counted more, is what one costs. What a timer's interrupt charges to the command without
//! any switch is measured by itself and taken off. Times are brought to the full speed of the CPU
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
use rundata::trial::{Sample, Trial};
use speed::CoreSpeed;
pub use speed::CoreSpeedFound;

/// Preemptions that a sample must have above those of the program alone: fewer are lost in what
/// differs from run to run.
const FEWEST_EVENTS: f64 = 20.0;

/// What one preemption costs by neighbours that wake at one rate.
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
    /// How much CPU time the command takes above that of its run alone, as a share, the timer's
    /// interrupts included.
    pub more_cpu_share: Option<Estimate>,
}

/// What one preemption costs by a neighbour that uses so much cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Point")]
pub struct SensitivityPoint {
    /// Bytes that the neighbour writes to whenever it wakes.
    pub bytes: u64,
    /// How long it stays then, in nanoseconds; 0 where it goes through its bytes once.
    #[serde(default)]
    pub stays_ns: u64,
    /// CPU time of the command for a preemption, in nanoseconds, of all rates together.
    pub ns_per_preemption: Option<Estimate>,
    /// By rate, ascending.
    pub rates: Vec<RatePoint>,
    /// What a preemption costs at the highest rate above what it does at the lowest, in
    /// nanoseconds: where it is resolved, the loss is not proportional to the count.
    pub highest_above_lowest_ns: Option<Estimate>,
}

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct SensitivityFindings {
    /// What was preempted.
    pub subject: Subject,
    /// The file that it runs, as far as that was found.
    pub executable: Option<Executable>,
    /// CPU time alone of a run, or for one of what a process's progress is counted in, in
    /// nanoseconds.
    pub alone_cpu_ns: Option<Estimate>,
    /// How fast the CPU was; absent where nobody looked.
    pub core_speed: Option<CoreSpeedFound>,
    /// What a timer's interrupt charges to the command without a switch, in nanoseconds, beside a
    /// neighbour on another CPU; taken off all costs. Absent where no timer could be had.
    pub timer_ns: Option<Estimate>,
    /// By how long the neighbour stays and what it uses, ascending.
    pub points: Vec<SensitivityPoint>,
}

/// CPU time of a sample in nanoseconds, what was done, and how many events fell into it.
#[derive(Clone, Copy)]
struct Used {
    cpu_ns: f64,
    done: f64,
    events: f64,
    /// Events that were looks at the CPU's speed alone, at most.
    looks: f64,
    /// How often the neighbour woke.
    wakes: f64,
}

impl Used {
    /// None of a sample whose time cannot be brought to where the others are.
    fn of(sample: &Sample, at: &CoreSpeed, count: &str) -> Option<Self> {
        let cpu_ns = at.full(sample)? * sample.tallies.get(CPU_NS)?.total();
        let done = sample.count(DONE).filter(|done| *done > 0)? as f64;
        let number = |name: &str| sample.count(name).unwrap_or_default() as f64;
        let [events, looks, wakes] = [count, LOOKS, WAKES].map(number);
        Some(Self { cpu_ns, done, events, looks: looks.min(events), wakes })
    }

    fn for_one(self) -> f64 {
        self.cpu_ns / self.done
    }

    /// The same without the looks, each of which costs so much. Where the program has a CPU for a part
    /// of the time, or one of several, looks and neighbours preempt it for the same part of how often
    /// they wake: what it has by itself is known of it alone.
    fn without_looks(self, look_ns: f64, own_for_one: f64) -> Self {
        let by_others = self.events - own_for_one * self.done;
        let part = by_others / (self.looks + self.wakes);
        let looks = if self.looks > 0.0 { self.looks * part.clamp(0.0, 1.0) } else { 0.0 };
        let cpu_ns = self.cpu_ns - looks * look_ns;
        Self { cpu_ns, events: self.events - looks, looks: 0.0, ..self }
    }
}

/// What each of so many events costs: the CPU time above that of the program alone for as much
/// done, over the events above those of the program alone for as much done.
fn each(alone: Used, beside: impl IntoIterator<Item = Used>) -> Option<f64> {
    let (mut ns, mut events) = (0.0, 0.0);
    for of in beside {
        let part = of.done / alone.done;
        let more = of.events - alone.events * part;
        if more < FEWEST_EVENTS {
            return None;
        }
        (ns, events) = (ns + of.cpu_ns - alone.cpu_ns * part, events + more);
    }
    (events > 0.0).then(|| ns / events)
}

/// What a look costs the program: as much as a preemption by a neighbour without memory, of which
/// these are samples. All events of these and of the program alone are of that kind, whether more
/// or fewer in the one than in the other. Of a program that was not looked at nothing.
fn look_ns(alone: Used, empty: &[Used]) -> Option<f64> {
    if alone.looks == 0.0 && empty.iter().all(|of| of.looks == 0.0) {
        return Some(0.0);
    }
    let (mut products, mut squares) = (0.0, 0.0);
    for of in empty {
        let part = of.done / alone.done;
        let more = of.events - alone.events * part;
        products += more * (of.cpu_ns - alone.cpu_ns * part);
        squares += more * more;
    }
    (squares >= FEWEST_EVENTS * FEWEST_EVENTS).then(|| products / squares)
}

/// The cases of a plan, and how fast the CPU was in each sample.
struct Cases<'a> {
    speed: CoreSpeed,
    alone: usize,
    command: &'a Command,
    elsewhere: Option<usize>,
    /// By time that they stay and bytes, then by rate.
    beside: BTreeMap<(u64, u64), BTreeMap<u32, usize>>,
}

impl<'a> Cases<'a> {
    fn of(table: &Table<'a>) -> Option<Self> {
        let (mut alone, mut elsewhere, mut beside) = (None, None, BTreeMap::new());
        for (case, trial) in table.trials() {
            let Trial::Command(of) = trial else { continue };
            match of.neighbour {
                Neighbour::Nobody => alone = alone.or(Some((case, of))),
                Neighbour::Elsewhere if of.timer => elsewhere = elsewhere.or(Some(case)),
                Neighbour::Elsewhere => {}
                Neighbour::Preempts => {
                    let kind = (of.stays_ns, of.bytes);
                    let rates: &mut BTreeMap<u32, usize> = beside.entry(kind).or_default();
                    rates.insert(of.rate_hz, case);
                }
            }
        }
        let (alone, command) = alone?;
        let all = [Some(alone), elsewhere].into_iter().flatten();
        let all = all.chain(beside.values().flat_map(BTreeMap::values).copied());
        Some(Self { speed: CoreSpeed::of(table, all), alone, command, elsewhere, beside })
    }

    /// The estimate of a figure of the program alone, of what a timer's interrupt costs it, and of
    /// it beside these, all of a round. That of the timer is 0 where there was none.
    fn estimate(
        &self,
        table: &Table,
        beside: &[usize],
        of: impl Fn(Used, f64, &[Used]) -> Option<f64>,
    ) -> Option<Estimate> {
        let empty = self.beside.get(&(0, 0));
        let empty: Vec<usize> = empty.map_or_else(Vec::new, |of| of.values().copied().collect());
        let elsewhere = self.elsewhere.as_slice();
        let cases = [&[self.alone], elsewhere, &*empty, beside].concat();
        table.midmean_together(&cases, |samples| {
            let used = |sample: &&Sample| Used::of(sample, &self.speed, PREEMPTIONS);
            let all = samples.iter().map(used).collect::<Option<Vec<Used>>>()?;
            let (_, neighbours) = all.split_at(1 + elsewhere.len());
            let (empty, beside) = neighbours.split_at(empty.len());
            let look_ns = look_ns(all[0], empty)?;
            let alone = all[0].without_looks(look_ns, 0.0);
            let own_for_one = alone.events / alone.done;
            let without = |of: &Used| of.without_looks(look_ns, own_for_one);
            let beside: Vec<Used> = beside.iter().map(without).collect();
            let timer_ns = if elsewhere.is_empty() { 0.0 } else { self.timer_of(samples)? };
            of(alone, timer_ns, &beside)
        })
    }

    /// What a timer's interrupt costs, by samples of the program alone and elsewhere: looks are in
    /// both.
    fn timer_of(&self, samples: &[&Sample]) -> Option<f64> {
        let used = |at: usize| Used::of(samples[at], &self.speed, TIMER_INTERRUPTS);
        each(used(0)?, [used(1)?])
    }

    /// The same over all rounds.
    fn timer(&self, table: &Table) -> Option<Estimate> {
        table.midmean_together(&[self.alone, self.elsewhere?], |samples| self.timer_of(samples))
    }

    /// The cost of a preemption by these cases together, less the timer's interrupt; and what the
    /// last has above the first.
    fn costs(&self, table: &Table, of: &[usize]) -> [Option<Estimate>; 2] {
        let cost = |alone: Used, timer_ns: f64, beside: &[Used]| {
            Some(each(alone, beside.iter().copied())? - timer_ns)
        };
        let apart = |alone: Used, _: f64, beside: &[Used]| {
            let of = |index: usize| each(alone, [beside[index]]);
            Some(of(beside.len() - 1)? - of(0)?)
        };
        [self.estimate(table, of, cost), self.estimate(table, of, apart)]
    }

    fn at_rate(&self, table: &Table, (rate_hz, case): (u32, usize)) -> RatePoint {
        let preemptions = table.sum(case, PREEMPTIONS);
        let cpu_ns: f64 = table
            .of_trial(case)
            .iter()
            .filter_map(|of| Some(of.tallies.get(CPU_NS)?.total()))
            .sum();
        let per_second = preemptions.map(|count| count as f64 / (cpu_ns / 1e9));
        RatePoint {
            case,
            rate_hz,
            ns_per_preemption: self.costs(table, &[case])[0],
            preemptions_per_cpu_second: per_second.filter(|rate| rate.is_finite()),
            more_cpu_share: self.estimate(table, &[case], |alone, _, beside| {
                Some(beside[0].for_one() / alone.for_one() - 1.0)
            }),
        }
    }
}

/// Share of the CPU up to which others do not keep a cost from being told: they preempt the program,
/// too, and are preempted by the neighbour in its place.
const MOST_OTHERS: f64 = 0.05;

/// None of a plan without a run alone. Where others had more than a little of the CPU no figure may
/// be quoted.
pub(super) fn find(table: &Table, company: Option<&CompetingTasks>) -> Option<SensitivityFindings> {
    let mut found = found(table)?;
    if company.is_some_and(|of| of.seen_share() > MOST_OTHERS) {
        let is_strict = table.plan.reference.strict;
        let beside_others = |estimate: Estimate| match is_strict {
            true => estimate.not_alone().strict(),
            false => estimate.not_alone(),
        };
        for of in &mut found.points {
            of.ns_per_preemption = of.ns_per_preemption.map(beside_others);
            of.highest_above_lowest_ns = of.highest_above_lowest_ns.map(beside_others);
            for of in &mut of.rates {
                of.ns_per_preemption = of.ns_per_preemption.map(beside_others);
                of.more_cpu_share = of.more_cpu_share.map(beside_others);
            }
        }
        found.timer_ns = found.timer_ns.map(beside_others);
    }
    Some(found)
}

/// The relative half-width of what a preemption costs, by the cases that tell it; none of one
/// without an interval. Nothing of other experiments.
pub(super) fn widths(table: &Table) -> BTreeMap<usize, Option<f64>> {
    let is_command = |trial: &Trial| matches!(trial, Trial::Command(_));
    let found = table.trials().any(|(_, trial)| is_command(trial)).then(|| found(table)).flatten();
    let mut widths = BTreeMap::new();
    for point in found.iter().flat_map(|found| &found.points) {
        let width = point.ns_per_preemption.as_ref().and_then(Estimate::precision);
        widths.extend(point.rates.iter().map(|of| (of.case, width)));
    }
    widths
}

fn found(table: &Table) -> Option<SensitivityFindings> {
    let mut cases = Cases::of(table)?;
    let timer = cases.timer(table);
    if timer.is_none() {
        // Costs are told with it.
        cases.elsewhere = None;
    }
    let point = |((stays_ns, bytes), rates): (&(u64, u64), &BTreeMap<u32, usize>)| {
        let numbers: Vec<usize> = rates.values().copied().collect();
        let [together, apart] = cases.costs(table, &numbers);
        let at_rate = |(rate, case): (&u32, &usize)| cases.at_rate(table, (*rate, *case));
        SensitivityPoint {
            bytes: *bytes,
            stays_ns: *stays_ns,
            ns_per_preemption: together,
            rates: rates.iter().map(at_rate).collect(),
            highest_above_lowest_ns: apart.filter(|_| numbers.len() > 1),
        }
    };
    Some(SensitivityFindings {
        subject: cases.command.subject.clone(),
        executable: cases.command.executable.clone(),
        alone_cpu_ns: cases.estimate(table, &[], |alone, _, _| Some(alone.for_one())),
        core_speed: cases.speed.told(),
        timer_ns: timer,
        points: cases.beside.iter().map(point).collect(),
    })
}

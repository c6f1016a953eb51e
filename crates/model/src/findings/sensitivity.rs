//! `sensitivity`: what being preempted costs a command, measured on the command itself.
//!
//! A neighbour at a higher priority preempts it some thousand times a second. What the command's
//! CPU time is then above that of its run alone, in the same round, over the preemptions that the
//! kernel counted more, is what one costs. What a timer's interrupt charges to the command without
//! any switch is measured by itself and taken off. Formulas: `docs/method.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::competing::CompetingTasks;
use crate::estimate::Estimate;
use crate::table::Table;
use crate::trial::command::*;
use crate::trial::{Sample, Trial};

/// Preemptions that a sample must have above those of the program alone: fewer are lost in what
/// differs from run to run.
const FEWEST_EVENTS: f64 = 20.0;

/// What one preemption costs by neighbours that wake at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtRate {
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
pub struct Point {
    /// Bytes that the neighbour writes to whenever it wakes.
    pub bytes: u64,
    /// CPU time of the command for a preemption, in nanoseconds, of all rates together.
    pub ns_per_preemption: Option<Estimate>,
    /// By rate, ascending.
    pub rates: Vec<AtRate>,
    /// What a preemption costs at the highest rate above what it does at the lowest, in
    /// nanoseconds: where it is resolved, the loss is not proportional to the count.
    pub highest_above_lowest_ns: Option<Estimate>,
}

/// What the experiment says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// What was preempted.
    pub subject: Subject,
    /// The file that it runs, as far as that was found.
    pub executable: Option<Executable>,
    /// CPU time alone of a run, or for one of what a process's progress is counted in, in
    /// nanoseconds.
    pub alone_cpu_ns: Option<Estimate>,
    /// What a timer's interrupt charges to the command without a switch, in nanoseconds, beside a
    /// neighbour on another CPU; taken off all costs. Absent where no timer could be had.
    pub timer_ns: Option<Estimate>,
    /// By what the neighbour uses, ascending.
    pub points: Vec<Point>,
}

/// CPU time in nanoseconds, what was done, and a count of a sample.
fn used(sample: &Sample, count: &str) -> Option<(f64, f64, i64)> {
    let cpu_ns = sample.tallies.get(CPU_NS)?.total();
    let done = sample.count(DONE).filter(|done| *done > 0)?;
    Some((cpu_ns, done as f64, sample.count(count).unwrap_or_default()))
}

/// CPU time for what is done once, in nanoseconds.
fn for_one(sample: &Sample) -> Option<f64> {
    let (cpu_ns, done, _) = used(sample, PREEMPTIONS)?;
    Some(cpu_ns / done)
}

/// What each of so many events costs: the CPU time above that of the program alone for as much
/// done, over the events above those of the program alone for as much done.
fn each(alone: &Sample, beside: &[&Sample], count: &str) -> Option<f64> {
    let (own_ns, own_done, own) = used(alone, count)?;
    let (mut ns, mut events) = (0.0, 0.0);
    for sample in beside {
        let (all_ns, done, all) = used(sample, count)?;
        let part = done / own_done;
        let more = all as f64 - own as f64 * part;
        if more < FEWEST_EVENTS {
            return None;
        }
        (ns, events) = (ns + all_ns - own_ns * part, events + more);
    }
    (events > 0.0).then(|| ns / events)
}

/// The cases of a plan.
struct Cases<'a> {
    alone: usize,
    command: &'a Command,
    elsewhere: Option<usize>,
    /// By bytes, then by rate.
    beside: BTreeMap<u64, BTreeMap<u32, usize>>,
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
                    let rates: &mut BTreeMap<u32, usize> = beside.entry(of.bytes).or_default();
                    rates.insert(of.rate_hz, case);
                }
            }
        }
        let (alone, command) = alone?;
        Some(Self { alone, command, elsewhere, beside })
    }

    /// What a timer's interrupt costs, over all rounds.
    fn timer(&self, table: &Table) -> Option<Estimate> {
        table.estimate_together(&[self.alone, self.elsewhere?], |samples| {
            each(samples[0], &samples[1..], TIMER_INTERRUPTS)
        })
    }

    /// The cost of a preemption by these cases together, less the timer's interrupt; and what the
    /// last has above the first.
    fn costs(
        &self,
        table: &Table,
        timer: Option<&Estimate>,
        of: &[usize],
    ) -> [Option<Estimate>; 2] {
        let all = [&[self.alone], of].concat();
        let cost = |samples: &[&Sample]| each(samples[0], &samples[1..], PREEMPTIONS);
        let apart = |samples: &[&Sample]| {
            let of = |index: usize| each(samples[0], &[samples[index]], PREEMPTIONS);
            Some(of(samples.len() - 1)? - of(1)?)
        };
        let together = table.estimate_together(&all, cost);
        let less = |of: Estimate| timer.map_or(of, |timer| of.less(timer));
        [together.map(less), table.estimate_together(&all, apart)]
    }

    fn at_rate(
        &self,
        table: &Table,
        timer: Option<&Estimate>,
        (rate_hz, case): (u32, usize),
    ) -> AtRate {
        let preemptions = table.sum(case, PREEMPTIONS);
        let cpu_ns: f64 = table
            .of_trial(case)
            .iter()
            .filter_map(|of| Some(of.tallies.get(CPU_NS)?.total()))
            .sum();
        let per_second = preemptions.map(|count| count as f64 / (cpu_ns / 1e9));
        AtRate {
            case,
            rate_hz,
            ns_per_preemption: self.costs(table, timer, &[case])[0],
            preemptions_per_cpu_second: per_second.filter(|rate| rate.is_finite()),
            more_cpu_share: table.estimate_together(&[self.alone, case], |samples| {
                Some(for_one(samples[1])? / for_one(samples[0])? - 1.0)
            }),
        }
    }
}

/// Share of the CPU up to which others do not keep a cost from being told: they preempt the program,
/// too, and are preempted by the neighbour in its place.
const MOST_OTHERS: f64 = 0.05;

/// None of a plan without a run alone. Where others had more than a little of the CPU no figure may
/// be quoted.
pub(super) fn find(table: &Table, company: Option<&CompetingTasks>) -> Option<Found> {
    let mut found = found(table)?;
    if company.is_some_and(|of| of.seen_share() > MOST_OTHERS) {
        for of in &mut found.points {
            of.ns_per_preemption = of.ns_per_preemption.map(Estimate::not_alone);
            of.highest_above_lowest_ns = of.highest_above_lowest_ns.map(Estimate::not_alone);
            for of in &mut of.rates {
                of.ns_per_preemption = of.ns_per_preemption.map(Estimate::not_alone);
                of.more_cpu_share = of.more_cpu_share.map(Estimate::not_alone);
            }
        }
        found.timer_ns = found.timer_ns.map(Estimate::not_alone);
    }
    Some(found)
}

fn found(table: &Table) -> Option<Found> {
    let cases = Cases::of(table)?;
    let timer = cases.timer(table);
    let point = |(bytes, rates): (&u64, &BTreeMap<u32, usize>)| {
        let numbers: Vec<usize> = rates.values().copied().collect();
        let [together, apart] = cases.costs(table, timer.as_ref(), &numbers);
        let at_rate =
            |(rate, case): (&u32, &usize)| cases.at_rate(table, timer.as_ref(), (*rate, *case));
        Point {
            bytes: *bytes,
            ns_per_preemption: together,
            rates: rates.iter().map(at_rate).collect(),
            highest_above_lowest_ns: apart.filter(|_| numbers.len() > 1),
        }
    };
    Some(Found {
        subject: cases.command.subject.clone(),
        executable: cases.command.executable.clone(),
        alone_cpu_ns: table.estimate(cases.alone, for_one),
        timer_ns: timer,
        points: cases.beside.iter().map(point).collect(),
    })
}

#[cfg(test)]
mod tests {
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use testing::repeats;

    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::{Batching, Plan};
    use crate::ring::Policy;
    use crate::trial::{Case, Repeats};

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
    }

    const CPU_S: f64 = 0.1;
    const TIMER_US: f64 = 1.5;

    fn command(neighbour: Neighbour, rate_hz: u32, bytes: u64) -> Command {
        Command {
            subject: Subject::Command(vec!["gzip".to_string()]),
            executable: None,
            cpus: vec![1],
            neighbour,
            rate_hz,
            bytes,
            away: Some(0),
            timer: true,
        }
    }

    /// Alone, elsewhere, and two rates of each size.
    fn plan(sizes: &[u64]) -> Plan {
        let mut all = vec![command(Neighbour::Nobody, 0, 0)];
        all.push(command(Neighbour::Elsewhere, 4000, 0));
        for bytes in sizes {
            all.extend([2000, 4000].map(|hz| command(Neighbour::Preempts, hz, *bytes)));
        }
        let case = |of| Case { cpu: 1, policy: Policy::Fifo, trial: Trial::Command(of) };
        Plan {
            seed: 7,
            batching: Batching::of_trials(Repeats { trials: 1 }),
            ..Plan::of(Experiment::Sensitivity, all.into_iter().map(case))
        }
    }

    /// A sample of a program that takes `CPU_S` alone: `scale` is how slow the core is, `us` what
    /// a preemption costs beside the timer.
    fn sample(
        plan: &Plan,
        case: usize,
        round: u32,
        scale: f64,
        us: impl Fn(&Command) -> f64,
    ) -> Sample {
        let Trial::Command(of) = &plan.trials().nth(case).expect("a case").1.trial else {
            panic!("another trial")
        };
        let events = (f64::from(of.rate_hz) * CPU_S).round();
        let (own, more_us) = match of.neighbour {
            Neighbour::Nobody => (3.0, 0.0),
            Neighbour::Elsewhere => (3.0, events * TIMER_US),
            Neighbour::Preempts => (3.0 + events, events * (TIMER_US + us(of))),
        };
        let times = of.times();
        let run_ns = scale * (CPU_S * 1e9 + 1e3 * more_us);
        let mut counts = BTreeMap::from([
            (DONE, i64::from(times)),
            (PREEMPTIONS, own as i64 * i64::from(times)),
        ]);
        if of.neighbour == Neighbour::Elsewhere {
            counts.insert(TIMER_INTERRUPTS, events as i64);
        }
        Sample {
            case,
            round,
            elapsed_ns: (run_ns * f64::from(times)) as u64,
            elapsed_ticks: None,
            gaps: Vec::new(),
            sliced: Vec::new(),
            tallies: BTreeMap::from([(
                CPU_NS.to_string(),
                vec![run_ns as i64; times as usize].into_iter().collect(),
            )]),
            counts: counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect(),
            steal_ns: None,
        }
    }

    fn found(plan: &Plan, samples: &[Sample]) -> Found {
        find(&Table::of(plan, [], samples), None).expect("a run alone")
    }

    #[test]
    fn beside_others_on_the_cpu_no_cost_is_quoted() {
        let plan = plan(&[0]);
        let samples: Vec<Sample> = (0..6)
            .flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)))
            .map(|(round, case)| sample(&plan, case, round, 1.0, cost))
            .collect();
        let quoted = |others_ns: u64| {
            let cpus = vec![1];
            let company = CompetingTasks {
                cpus,
                elapsed_ns: 1_000_000_000,
                other_tasks_ns: others_ns,
                ..CompetingTasks::default()
            };
            let found = find(&Table::of(&plan, [], &samples), Some(&company)).expect("a run alone");
            found.points[0].ns_per_preemption.expect("a cost").quote_cost().is_ok()
        };
        assert_eq!([20_000_000, 100_000_000].map(quoted), [true, false]);
    }

    fn cost(of: &Command) -> f64 {
        if of.bytes == 0 { 2.0 } else { 14.0 }
    }

    #[test]
    fn what_a_preemption_costs_is_told_without_the_timer() {
        let plan = plan(&[0, 1 << 20]);
        let cases = plan.cases.len();
        let samples: Vec<Sample> = (0..6)
            .flat_map(|round| (0..cases).map(move |case| (round, case)))
            .map(|(round, case)| sample(&plan, case, round, 1.0, cost))
            .collect();
        let found = found(&plan, &samples);
        let near = |of: Option<Estimate>, us: f64| {
            let value = of.expect("a cost").value / 1000.0;
            assert!((value - us).abs() < 0.01, "{value} instead of {us}");
        };
        near(found.timer_ns, TIMER_US);
        near(found.alone_cpu_ns, 1e6 * CPU_S);
        for (point, us) in found.points.iter().zip([2.0, 14.0]) {
            near(point.ns_per_preemption, us);
            near(point.highest_above_lowest_ns, 0.0);
            point.rates.iter().for_each(|of| near(of.ns_per_preemption, us));
        }
        let more = found.points[1].rates[1].more_cpu_share.expect("a share").value;
        assert!((more - 4000.0 * 15.5e-6).abs() < 1e-4, "{more}");
    }

    #[test]
    fn a_loss_that_does_not_grow_with_the_count_is_told() {
        let plan = plan(&[1 << 20]);
        let saturates = |of: &Command| if of.rate_hz > 2000 { 8.0 } else { 14.0 };
        let samples: Vec<Sample> = (0..6)
            .flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)))
            .map(|(round, case)| sample(&plan, case, round, 1.0, saturates))
            .collect();
        let apart = found(&plan, &samples).points[0].highest_above_lowest_ns.expect("two rates");
        assert!(apart.quote().is_ok_and(|of| (of.value() + 6000.0).abs() < 10.0), "{apart:?}");
    }

    #[test]
    fn too_few_preemptions_are_no_cost() {
        let mut plan = plan(&[0]);
        for case in &mut plan.cases {
            let crate::case::Case::Trial(case) = case else { continue };
            let Trial::Command(of) = &mut case.trial else { continue };
            of.rate_hz = of.rate_hz.min(100);
        }
        let samples: Vec<Sample> = (0..6)
            .flat_map(|round| (0..plan.cases.len()).map(move |case| (round, case)))
            .map(|(round, case)| sample(&plan, case, round, 1.0, cost))
            .collect();
        let found = found(&plan, &samples);
        assert_eq!((found.points[0].ns_per_preemption, found.timer_ns), (None, None));
    }

    /// The core's speed wanders from run to run, each near the one before.
    #[test]
    fn intervals_hold_the_cost_where_the_speed_wanders() {
        let runs: u32 = repeats(120, 600);
        let plan = plan(&[0, 1 << 20]);
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let mut inside = [0_u32; 2];
        for _ in 0..runs {
            let mut drift = 0.0;
            let mut samples = Vec::new();
            for round in 0..20 {
                let mut order: Vec<usize> = (0..plan.cases.len()).collect();
                order.shuffle(&mut random);
                for case in order {
                    drift = 0.9 * drift + 0.004 * normal(&mut random);
                    let scale = 1.0 + drift + 0.004 * normal(&mut random);
                    samples.push(sample(&plan, case, round, scale, cost));
                }
            }
            let found = found(&plan, &samples);
            for (inside, (point, us)) in inside.iter_mut().zip(found.points.iter().zip([2.0, 14.0]))
            {
                let ends =
                    point.ns_per_preemption.and_then(|of| of.interval()).expect("an interval");
                *inside += u32::from((ends.low..=ends.high).contains(&(1000.0 * us)));
            }
        }
        let shares = inside.map(|inside| f64::from(inside) / f64::from(runs));
        assert!(shares.iter().all(|share| (0.90..=0.995).contains(share)), "{shares:?}");
    }
}

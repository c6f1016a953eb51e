//! Wake-ups under load: how long woken workers and whole requests wait, by their quantiles.

use rundata::trial::load::*;
use rundata::trial::{Tally, TallySummary, Trial, TrialCase, TrialSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Histogram;

use super::wakeup::{CONFIDENCE, TailQuantile};
use crate::estimate::{Estimate, Speed};
use crate::measures::{Quantity, WakeSource};
use crate::table::Table;

/// Requests that can be done over those that are planned, below which workers or messengers do not
/// keep up.
const KEPT_UP: f64 = 0.95;

/// How much wider the interval of the 99th percentile may be than that of the median when a run
/// stops: a tail takes many more requests.
const TAIL_WIDTH: f64 = 4.0;

/// Quantiles of a time, of all rounds together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyQuantiles {
    /// The times in nanoseconds, in steps of a 64th of an octave.
    pub all_ns: TallySummary,
    /// Median; absent where there are too few values or rounds for an interval, as all of these.
    /// Intervals have the scatter between launches in them; in files of older versions they have not.
    pub p50_ns: Option<TailQuantile>,
    /// The value that 90 % do not exceed.
    pub p90_ns: Option<TailQuantile>,
    /// The value that 99 % do not exceed.
    pub p99_ns: Option<TailQuantile>,
    /// The value that 99.9 % do not exceed.
    pub p999_ns: Option<TailQuantile>,
    /// Histogram in eight parts an octave.
    pub histogram: Histogram,
    /// Each time, for charts; not stored.
    #[serde(skip)]
    pub tally: Tally,
}

impl LatencyQuantiles {
    /// Computes the quantiles of the tallies of all rounds; absent without values.
    fn from_rounds(rounds: &[Tally]) -> Option<Self> {
        let mut tally = Tally::default();
        for round in rounds {
            tally.merge(round);
        }
        let [p50_ns, p90_ns, p99_ns, p999_ns] =
            [0.5, 0.9, 0.99, 0.999].map(|p| TailQuantile::from_rounds(rounds, p, CONFIDENCE));
        Some(Self {
            all_ns: TallySummary::from_tally(&tally)?,
            p50_ns,
            p90_ns,
            p99_ns,
            p999_ns,
            histogram: Histogram::in_octaves(tally.values()),
            tally,
        })
    }

    /// Widens the intervals by the scatter between launches of the median and of the 99th percentile, as
    /// shares; the others are taken to scatter as the latter.
    fn widen(&mut self, median_scatter: f64, tail_scatter: f64) {
        self.p50_ns = self.p50_ns.map(|tail| tail.widened_by_launches(median_scatter));
        for tail in [&mut self.p90_ns, &mut self.p99_ns, &mut self.p999_ns] {
            *tail = tail.map(|tail| tail.widened_by_launches(tail_scatter));
        }
    }
}

/// The ratio of two quantiles with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantileRatio {
    /// The ratio.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl QuantileRatio {
    /// Returns how many times the base a quantile is. The distances of the ends from the values,
    /// as logarithms, add up by their squares.
    fn between(quantile: &TailQuantile, base: &TailQuantile) -> Self {
        let [above, below] = [quantile, base].map(|tail| {
            [tail.low_ns, tail.value_ns, tail.high_ns].map(|ns| (ns.max(1) as f64).ln())
        });
        let ratio = above[1] - below[1];
        let down = (above[1] - above[0]).hypot(below[2] - below[1]);
        let up = (above[2] - above[1]).hypot(below[1] - below[0]);
        Self { value: ratio.exp(), low: (ratio - down).exp(), high: (ratio + up).exp() }
    }

    /// Returns whether the interval excludes 1.
    pub fn is_resolved(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// Findings of one case of wake-ups under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFindings {
    /// Number of the case in the plan.
    pub case: usize,
    /// From the wake to the worker's first reading of the clock, of requests for which
    /// their worker slept; absent where there was none.
    pub wake: Option<LatencyQuantiles>,
    /// From the intended arrival of a request to its end, of all requests.
    pub request: LatencyQuantiles,
    /// How many times the 99th percentile of the wake-ups is that of the idle machine, in this launch;
    /// absent for that itself, and where one of the two is not known.
    pub p99_above_idle: Option<QuantileRatio>,
    /// Requests that were sent, without the warm-up.
    pub requests_sent: i64,
    /// Requests that were received, without the warm-up.
    pub requests_received: i64,
    /// Requests a second as planned, the mean of the rounds.
    pub planned_per_s: Option<f64>,
    /// Requests a second that workers and messengers can do of the planned ones.
    pub done_per_s: Option<f64>,
    /// Whether workers or messengers could not keep up: then times grow with the duration of the
    /// schedule, and their quantiles are of this duration.
    pub is_overloaded: bool,
    /// CPU time by the clock that the planned requests take of the workers' CPUs, as a share of what
    /// these have. Above 1 workers cannot keep up. Absent in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers_need: Option<f64>,
    /// Time that messengers take to send the planned requests, as a share of the time that they
    /// have. Absent in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messengers_need: Option<f64>,
    /// The work on a request as calibrated, in nanoseconds, the mean of the rounds.
    pub demand_ns: Option<f64>,
    /// CPU time of the workers over the time of their CPUs, in percent: the load as it was.
    pub worker_percent: Option<f64>,
    /// CPU time of the busy tasks over the time of the workers' CPUs, in percent; absent without
    /// one.
    pub busy_percent: Option<f64>,
    /// Time from an intended arrival to the wake, in nanoseconds, the mean: what messengers were
    /// late, which is in a request's time and not in a wake-up's.
    pub mean_late_ns: Option<f64>,
    /// Voluntary switches of the workers for each request.
    pub voluntary_per_request: Option<f64>,
    /// Involuntary switches of the workers for each request.
    pub involuntary_per_request: Option<f64>,
    /// Stolen time of the CPUs for each second of the sample as the kernel reports it, in percent.
    /// Absent where it is not reported.
    pub steal_percent: Option<f64>,
}

impl LoadFindings {
    /// Returns whether an overload is that of the messengers: they need more of their time than the
    /// workers of theirs. In files of older versions: what they were late is most of a request's
    /// mean time.
    pub fn is_limited_by_messengers(&self) -> bool {
        if let (Some(workers), Some(messengers)) = (self.workers_need, self.messengers_need) {
            return self.is_overloaded && messengers > workers;
        }
        let late_ns = self.mean_late_ns.unwrap_or(0.0);
        self.is_overloaded && late_ns > 0.5 * self.request.all_ns.mean
    }

    /// Returns whether workers slept before at least half of the requests.
    pub fn mostly_slept(&self) -> bool {
        let wakes = self.wake.as_ref().map_or(0, |wake| wake.all_ns.count);
        wakes.saturating_mul(2) >= self.request.all_ns.count
    }
}

/// Returns the findings of each case of wake-ups under load.
pub(crate) fn find(table: &Table) -> Vec<LoadFindings> {
    let mut findings: Vec<LoadFindings> = Vec::new();
    for (number, case) in table.plan.trials() {
        if let Trial::Load(load) = &case.trial {
            findings.extend(find_case(table, number, load));
        }
    }
    let idle_tails: Vec<(usize, TailQuantile)> =
        findings.iter().filter_map(|found| Some((found.case, wake_p99(found)?))).collect();
    for found in &mut findings {
        let Some(idle) = idle_case(table, found.case) else { continue };
        let base = idle_tails.iter().find(|(case, _)| *case == idle);
        if let (Some(tail), Some((_, base))) = (wake_p99(found), base) {
            found.p99_above_idle = Some(QuantileRatio::between(&tail, base));
        }
    }
    for found in &mut findings {
        let known = table.plan.reference.known_of(found.case);
        let scatter_of = |quantity: Quantity| {
            quantity.wake_scatter(WakeSource::Messenger, &known).unwrap_or_default()
        };
        if let Some(wake) = &mut found.wake {
            wake.widen(scatter_of(Quantity::WakeP50Ns), scatter_of(Quantity::WakeP99Ns));
        }
        let request = &mut found.request;
        request.widen(scatter_of(Quantity::RequestP50Ns), scatter_of(Quantity::RequestP99Ns));
    }
    findings
}

fn wake_p99(found: &LoadFindings) -> Option<TailQuantile> {
    found.wake.as_ref()?.p99_ns
}

/// Returns the case of the same wake-ups on an idle machine; absent for that itself.
fn idle_case(table: &Table, number: usize) -> Option<usize> {
    let case = table.plan.trial(number)?;
    let Trial::Load(load) = &case.trial else { return None };
    let idle = load.on_idle_machine();
    if idle == **load {
        return None;
    }
    let idle = TrialCase { trial: Trial::Load(Box::new(idle)), ..case.clone() };
    let (number, _) = table.plan.trials().find(|(_, other)| **other == idle)?;
    Some(number)
}

/// Returns the tallies of a name, one a round.
pub(crate) fn tallies(table: &Table, number: usize, name: &str) -> Vec<Tally> {
    let mut tallies = Vec::new();
    for sample in table.trial_samples(number) {
        tallies.extend(sample.tally(name).map(|tally| tally.into_owned()));
    }
    tallies
}

/// Returns the findings of a case; absent without requests.
fn find_case(table: &Table, number: usize, load: &WakeLoad) -> Option<LoadFindings> {
    let samples = table.trial_samples(number);
    let request = LatencyQuantiles::from_rounds(&tallies(table, number, REQUEST_NS))?;
    // As floats, since the sum of integers may be too large in a damaged file.
    let elapsed_ns: f64 = samples.iter().map(|sample| sample.elapsed_ns as f64).sum();
    let worker_cpus_ns = elapsed_ns * load.loaded_cpus() as f64;
    let all_cpus_ns = elapsed_ns * load.worker_cpus.len() as f64;
    let received = table.sum(number, RECEIVED)?;
    let per_request = |name| Some(table.sum(number, name)? as f64 / received.max(1) as f64);
    let planned_per_s = mean_count(samples, RATE_PER_S);
    let needed_cpus = needed_places(load, samples, OCCUPIED_NS);
    let workers_need = needed_cpus.map(|cpus| cpus / load.loaded_cpus() as f64);
    let needed_messengers = needed_places(load, samples, MESSENGER_BUSY_NS);
    let messengers_need = needed_messengers.map(|needed| needed / f64::from(load.messengers));
    let kept_up = match (workers_need, messengers_need) {
        (Some(workers), Some(messengers)) => Some(1.0 / workers.max(messengers).max(1.0)),
        _ => schedule_share(table.sum(number, SCHEDULE_NS), elapsed_ns),
    };
    let done_per_s = planned_per_s.zip(kept_up).map(|(planned, share)| planned * share);
    let stolen_ns: Option<f64> = samples.iter().map(|sample| Some(sample.steal_ns? as f64)).sum();
    Some(LoadFindings {
        case: number,
        wake: LatencyQuantiles::from_rounds(&tallies(table, number, WAKE_NS)),
        request,
        p99_above_idle: None,
        requests_sent: table.sum(number, SENT)?,
        requests_received: received,
        planned_per_s,
        done_per_s,
        is_overloaded: kept_up.is_some_and(|share| share < KEPT_UP),
        workers_need,
        messengers_need,
        demand_ns: mean_count(samples, DEMAND_NS),
        worker_percent: percent_of(table.sum(number, WORKER_CPU_NS), worker_cpus_ns),
        busy_percent: percent_of(table.sum(number, BUSY_CPU_NS), all_cpus_ns),
        mean_late_ns: per_request(LATE_TOTAL_NS),
        voluntary_per_request: per_request(VOLUNTARY),
        involuntary_per_request: per_request(INVOLUNTARY),
        steal_percent: stolen_ns.filter(|_| elapsed_ns > 0.0).map(|ns| 100.0 * ns / elapsed_ns),
    })
}

/// Returns the quantile `p` of the values of all rounds; without an interval where there are too few
/// values or rounds for one, absent without values.
pub(crate) fn estimate_quantile(rounds: &[Tally], p: f64) -> Option<Estimate> {
    let count = rounds.len() as u32;
    if let Some(tail) = TailQuantile::from_rounds(rounds, p, CONFIDENCE) {
        return tail.estimate(count);
    }
    let mut all = Tally::default();
    for round in rounds {
        all.merge(round);
    }
    let value = all.quantile(p)?.max(1) as f64;
    Some(Estimate::without_interval(value, count, CONFIDENCE, Speed::NotJudged))
}

/// Returns the CPUs or messengers that the planned requests need; `count` has the time that those of
/// a round took. Of 1,000 requests a second that take 0.9 ms each this is 0.9.
///
/// By the planned rate, not by the time in which the requests of a round happened to come: of eight
/// requests that arrive by chance within half of their time this would be twice as much, and what is
/// still to do at the end of a round says as little. Absent where a sample lacks the count.
fn needed_places(load: &WakeLoad, samples: &[&TrialSample], count: &str) -> Option<f64> {
    let (mut rates, mut taken_ns, mut requests) = (Vec::new(), 0.0, 0.0);
    for sample in samples {
        // Of seconds a request the stored rate is too coarse.
        let rate = load.rate_per_s(sample.count(DEMAND_NS)? as f64);
        rates.push(rate.or(sample.count(RATE_PER_S).map(|rate| rate as f64))?);
        taken_ns += sample.count(count)? as f64;
        requests += sample.count(ALL_REQUESTS)? as f64;
    }
    let places = stats::mean(&rates)? * taken_ns / requests / 1e9;
    if places.is_finite() { Some(places) } else { None }
}

/// Returns the length of the schedules over the time until the last requests were done, by which
/// files of older versions are judged.
fn schedule_share(schedule_ns: Option<i64>, elapsed_ns: f64) -> Option<f64> {
    let schedule_ns = schedule_ns?;
    if elapsed_ns > 0.0 { Some(schedule_ns as f64 / elapsed_ns) } else { None }
}

/// Returns the mean of a count over the samples that have it.
fn mean_count(samples: &[&TrialSample], name: &str) -> Option<f64> {
    let mut counts = Vec::new();
    for sample in samples {
        counts.extend(sample.count(name).map(|count| count as f64));
    }
    stats::mean(&counts)
}

fn percent_of(part_ns: Option<i64>, whole_ns: f64) -> Option<f64> {
    let part_ns = part_ns?;
    if whole_ns > 0.0 { Some(100.0 * part_ns as f64 / whole_ns) } else { None }
}

/// Returns the width by which a run of such a case stops: that of the median, `median_width`, or
/// that of the 99th percentile of the wake-ups over [`TAIL_WIDTH`], whichever is wider.
pub(crate) fn stopping_width(
    table: &Table,
    number: usize,
    median_width: Option<f64>,
) -> Option<f64> {
    let tail = TailQuantile::from_rounds(&tallies(table, number, WAKE_NS), 0.99, CONFIDENCE)?;
    Some(median_width?.max(tail.relative_half_width() / TAIL_WIDTH))
}

#[cfg(test)]
mod tests;

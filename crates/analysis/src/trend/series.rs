//! The figures of a case that count, in the order of time and at one clock.

use std::collections::BTreeSet;
use std::ops::Range;

use rundata::run::ProgramBuild;
use stats::{Elasticity, mean, median, normal_quantile};

use super::steps::{LevelSpan, LevelSteps, PlacedFigure};
use super::{CostLevel, FollowedCase, LeftOutRuns, PointGrouping, TrendPoint, TrendSettings};
use crate::at_clock::{AtClock, ClockConversion, common_elasticity};
use crate::estimate::Estimate;
use crate::quote::NotQuotable;
use crate::results::{LaunchFigure, Origin, Quantity, Results};
use crate::speed::clock_ghz;

/// The cost in one run, at the clock of the series.
pub(super) struct RunFigure<'a> {
    pub(super) results: &'a Results,
    pub(super) started: &'a str,
    pub(super) build: &'a ProgramBuild,
    /// Number of the point that the run belongs to.
    pub(super) point: usize,
    pub(super) ns: f64,
    /// Standard error by chance. What an unknown elasticity leaves open is not in it, as that is
    /// the same in all runs at one clock.
    error_ns: f64,
    /// ln of the series' quantum over the run's; 0 without a clock.
    clock_log_ratio: f64,
    /// The clock that the core had in the run.
    pub(super) ghz: Option<f64>,
}

/// The figures of a case over the runs that count.
pub(super) struct CaseSeries<'a> {
    pub(super) quantity: Option<Quantity>,
    /// Figures by point, then by time.
    pub(super) figures: Vec<RunFigure<'a>>,
    pub(super) clock_ghz: Option<f64>,
    /// Start of the newest run.
    pub(super) until: Option<String>,
    /// Elasticity of the figures; absent where it is not known.
    elasticity: Option<Elasticity>,
    pub(super) left_out: Vec<LeftOutRuns>,
    grouping: PointGrouping,
}

/// A run that counts, with its cost at its own clock.
struct UsableRun<'a> {
    results: &'a Results,
    started: &'a str,
    build: &'a ProgramBuild,
    estimate: Estimate,
    clock: Option<AtClock>,
}

impl<'a> CaseSeries<'a> {
    pub(super) fn from_runs(
        case: &FollowedCase,
        all_runs: &'a [Results],
        settings: TrendSettings,
    ) -> Self {
        let quantity = best_quantity(case, all_runs, settings);
        let mut left_out = Vec::new();
        let mut runs: Vec<UsableRun> = Vec::new();
        let mut names = BTreeSet::new();
        for results in all_runs {
            // A second copy of a file adds nothing.
            if !names.insert(&results.side.name) {
                leave_out(&mut left_out, "the same run once more".to_string(), results);
                continue;
            }
            match usable_run(case, results, quantity) {
                Ok(run) => runs.push(run),
                Err(why) => leave_out(&mut left_out, why, results),
            }
        }
        let mut runs = with_comparable_clocks(runs, &mut left_out);
        runs.sort_by_key(|run| (run.started, &run.results.side.name));
        let series = Self::at_one_clock(&runs, quantity, settings.by);
        Self { left_out, ..series }
    }

    /// Converts the figures to the median clock of the runs, and numbers the points.
    fn at_one_clock(
        runs: &[UsableRun<'a>],
        quantity: Option<Quantity>,
        grouping: PointGrouping,
    ) -> Self {
        let (mut clocks, mut quanta) = (Vec::new(), Vec::new());
        for run in runs {
            if let Some(clock) = run.clock {
                clocks.push(clock);
                quanta.push(clock.quantum_ns);
            }
        }
        let to_ns = median(&quanta);
        let elasticity = common_elasticity(&clocks);
        let mut names: Vec<String> = Vec::new();
        let mut figures: Vec<RunFigure> = Vec::new();
        for run in runs {
            let name = point_name(run.results, run.build, grouping);
            let known = if grouping == PointGrouping::Run {
                None
            } else {
                names.iter().position(|point| *point == name)
            };
            let point = known.unwrap_or(names.len());
            if point == names.len() {
                names.push(name);
            }
            figures.push(run.figure(point, to_ns, elasticity));
        }
        figures.sort_by_key(|figure| figure.point);
        let mut common_ghz = None;
        if let (Some(quantum_ns), Some(first)) = (to_ns, runs.first()) {
            common_ghz = clock_ghz(quantum_ns, &first.build.target);
        }
        Self {
            quantity,
            figures,
            clock_ghz: common_ghz,
            until: runs.last().map(|run| run.started.to_string()),
            elasticity,
            left_out: Vec::new(),
            grouping,
        }
    }

    pub(super) fn steps(&self) -> LevelSteps {
        let mut placed = Vec::new();
        for figure in &self.figures {
            let RunFigure { point, ns, error_ns, .. } = *figure;
            placed.push(PlacedFigure { place: point, value: ns, error: error_ns });
        }
        LevelSteps::from_figures(&placed)
    }

    /// Returns the mean of ln(the series' quantum / the run's) over the figures with these numbers.
    pub(super) fn clock_distance(&self, numbers: Range<usize>) -> f64 {
        let mut log_ratios = Vec::new();
        for figure in &self.figures[numbers] {
            log_ratios.push(figure.clock_log_ratio);
        }
        mean(&log_ratios).unwrap_or(0.0)
    }

    /// Returns half of an interval in ln: half of that by chance, with what a conversion by
    /// `log_ratio` to another clock adds: the error of the elasticity, or where that is not known,
    /// any from 0 to 1.
    pub(super) fn half_width(&self, by_chance: f64, log_ratio: f64) -> f64 {
        let z = normal_quantile(0.95).unwrap_or(2.0);
        let conversion = ClockConversion { log_ratio, elasticity: self.elasticity };
        let added = conversion.uncertainty();
        by_chance.hypot(z * added.error) + added.slack
    }

    /// Returns the largest change, as a share, that the uncertain conversion between the clocks of
    /// the runs can hide.
    pub(super) fn hidden_by_clock(&self) -> f64 {
        let Some(first) = self.figures.first() else { return 0.0 };
        let (mut least, mut most) = (first.clock_log_ratio, first.clock_log_ratio);
        for figure in &self.figures {
            least = least.min(figure.clock_log_ratio);
            most = most.max(figure.clock_log_ratio);
        }
        self.half_width(0.0, most - least)
    }

    fn cycles(&self, ns: f64) -> Option<f64> {
        Some(ns * self.clock_ghz?)
    }

    /// Returns the points of the series, each the mean of its runs, weighted by their errors.
    pub(super) fn points(&self, steps: &LevelSteps) -> Vec<TrendPoint> {
        let mut points = Vec::new();
        let mut first = 0;
        for runs in self.figures.chunk_by(|a, b| a.point == b.point) {
            let numbers = first..first + runs.len();
            points.push(self.point(steps, numbers));
            first += runs.len();
        }
        points
    }

    /// Returns the point of the figures with these numbers, which must not be empty.
    fn point(&self, steps: &LevelSteps, numbers: Range<usize>) -> TrendPoint {
        let runs = &self.figures[numbers.clone()];
        let first = &runs[0];
        let (mut weights, mut sum) = (0.0, 0.0);
        for (error, figure) in steps.errors[numbers.clone()].iter().zip(runs) {
            let weight = error.powi(-2);
            weights += weight;
            sum += weight * figure.ns.ln();
        }
        let log: f64 = sum / weights;
        let by_chance = steps.quantile() * f64::powf(weights, -0.5);
        let half = self.half_width(by_chance, self.clock_distance(numbers.clone()));
        let (mut names, mut clocks) = (Vec::new(), Vec::new());
        for run in runs {
            names.push(run.results.side.name.clone());
            clocks.extend(run.ghz);
        }
        TrendPoint {
            name: point_name(first.results, first.build, self.grouping),
            runs: names,
            started: first.started.to_string(),
            level: steps.levels.iter().filter(|level| level.end <= numbers.start).count(),
            ns: log.exp(),
            low: (log - half).exp(),
            high: finite((log + half).exp()),
            cycles: self.cycles(log.exp()),
            clock_ghz: median(&clocks),
            kernel: first.results.machine.kernel.release.known().cloned(),
            version: first.build.version.clone(),
            commit: first.build.commit.clone(),
            alone: steps.alone[numbers].iter().filter(|alone| **alone).count() as u32,
        }
    }

    pub(super) fn levels(&self, steps: &LevelSteps) -> Vec<CostLevel> {
        steps.levels.iter().map(|level| self.level(level, steps.quantile())).collect()
    }

    fn level(&self, level: &LevelSpan, quantile: f64) -> CostLevel {
        let half = self.half_width(quantile * level.error, self.clock_distance(level.range()));
        CostLevel {
            first: self.figures[level.first].point,
            last: self.figures[level.end - 1].point,
            runs: level.end - level.first,
            ns: level.log.exp(),
            low: (level.log - half).exp(),
            high: finite((level.log + half).exp()),
            cycles: self.cycles(level.log.exp()),
        }
    }
}

/// Returns the value, at most the largest number: JSON has no infinity.
fn finite(value: f64) -> f64 {
    value.min(f64::MAX)
}

impl<'a> UsableRun<'a> {
    /// Returns the figure of the run, converted to the clock of a quantum of `to_ns` where both
    /// clocks are known.
    fn figure(
        &self,
        point: usize,
        to_ns: Option<f64>,
        elasticity: Option<Elasticity>,
    ) -> RunFigure<'a> {
        let conversion = match (self.clock, to_ns) {
            (Some(clock), Some(to_ns)) => clock.conversion_to(to_ns, elasticity),
            _ => ClockConversion { log_ratio: 0.0, elasticity },
        };
        RunFigure {
            results: self.results,
            started: self.started,
            build: self.build,
            point,
            ns: self.estimate.value * conversion.factor(),
            error_ns: self.estimate.standard_error.unwrap_or(0.0) * conversion.factor(),
            clock_log_ratio: conversion.log_ratio,
            ghz: self.ghz(),
        }
    }

    fn ghz(&self) -> Option<f64> {
        let ghz = self.clock?.ghz(&self.build.target)?;
        if ghz.is_finite() && ghz > 0.0 { Some(ghz) } else { None }
    }
}

/// Returns the first quantity for the wanted cost that any run has measured.
fn best_quantity(
    case: &FollowedCase,
    runs: &[Results],
    settings: TrendSettings,
) -> Option<Quantity> {
    for quantity in settings.cost.quantities() {
        if runs.iter().any(|results| measured(case, results, *quantity).is_some()) {
            return Some(*quantity);
        }
    }
    None
}

/// Leaves out runs without a clock where most have one, as their figures cannot be converted;
/// otherwise ignores all clocks.
fn with_comparable_clocks<'a>(
    mut runs: Vec<UsableRun<'a>>,
    left_out: &mut Vec<LeftOutRuns>,
) -> Vec<UsableRun<'a>> {
    let with_clock = runs.iter().filter(|run| run.clock.is_some()).count();
    if with_clock * 2 <= runs.len() {
        for run in &mut runs {
            run.clock = None;
        }
        return runs;
    }
    let mut comparable = Vec::new();
    for run in runs {
        if run.clock.is_some() {
            comparable.push(run);
        } else {
            leave_out(left_out, "the core's clock is not known".to_string(), run.results);
        }
    }
    comparable
}

fn measured<'a>(
    case: &FollowedCase,
    results: &'a Results,
    quantity: Quantity,
) -> Option<&'a LaunchFigure> {
    let experiment = case.experiment.name();
    let case = results
        .cases
        .iter()
        .find(|result| result.experiment == experiment && case.has(&result.labels))?;
    case.figures.get(&quantity)?.launches().first()
}

/// Returns a run with its figure, or the reason why it does not count.
fn usable_run<'a>(
    case: &FollowedCase,
    results: &'a Results,
    quantity: Option<Quantity>,
) -> Result<UsableRun<'a>, String> {
    const NOTHING: &str = "nothing was measured of the case";
    let Origin::Run { started, build, session } = &results.side.origin else {
        return Err("published, not measured".to_string());
    };
    match session {
        Some(session) if session.setting.is_some() => {
            return Err("measured under a setting (compare --ab-setting)".to_string());
        }
        Some(session)
            if session.command.as_ref().is_some_and(|command| !command.line.is_empty()) =>
        {
            return Err("measured under a command (compare --ab-commands)".to_string());
        }
        Some(session) if !session.prefix.is_empty() => {
            return Err("measured behind a prefix (compare --ab)".to_string());
        }
        _ => {}
    }
    let quantity = quantity.ok_or(NOTHING)?;
    let measured = measured(case, results, quantity).ok_or(NOTHING)?;
    if !measured.is_complete {
        return Err("interrupted or not finished".to_string());
    }
    let estimate = measured.estimate.ok_or(NOTHING)?;
    estimate.quote_cost().map_err(|why| without_figures(&why))?;
    let is_judged = quantity.needs_full_speed() && quantity != Quantity::TrialNs;
    if !estimate.speed.is_full() && is_judged {
        return Err("the core's speed was not measured".to_string());
    }
    // A cost outside of this range would overflow in another unit.
    let has_value = (1e-6..1e18).contains(&estimate.value);
    match estimate.standard_error {
        Some(error) if has_value && error.is_finite() && error >= 0.0 => {}
        _ => return Err("its figure is not a number".to_string()),
    }
    let clock = measured.clock.filter(|clock| (1e-3..1e12).contains(&clock.quantum_ns));
    Ok(UsableRun { results, started, build, estimate, clock })
}

/// Returns the reason without the figures of the single run, so that runs share it.
fn without_figures(why: &NotQuotable) -> String {
    match why {
        NotQuotable::NotResolved { .. } => "the cost is not resolved from zero".to_string(),
        NotQuotable::TooFewRounds(_) => "too few rounds".to_string(),
        why => why.to_string(),
    }
}

fn leave_out(left_out: &mut Vec<LeftOutRuns>, why: String, results: &Results) {
    let name = results.side.name.clone();
    match left_out.iter_mut().find(|known| known.why == why) {
        Some(known) => known.runs.push(name),
        None => left_out.push(LeftOutRuns { why, runs: vec![name] }),
    }
}

fn point_name(results: &Results, build: &ProgramBuild, grouping: PointGrouping) -> String {
    match grouping {
        PointGrouping::Run => results.side.name.clone(),
        PointGrouping::Kernel => match results.machine.kernel.release.known() {
            Some(release) => release.clone(),
            None => "unknown kernel".to_string(),
        },
        PointGrouping::Scheduler => match results.machine.scheduler.name.known() {
            Some(name) => name.clone(),
            None => "unknown scheduler".to_string(),
        },
        PointGrouping::Build => match &build.commit {
            Some(commit) => format!("{} {}", build.version, short_commit(commit)),
            None => build.version.clone(),
        },
    }
}

/// Returns the first nine characters of a commit.
pub(super) fn short_commit(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

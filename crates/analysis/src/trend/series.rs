//! The figures that count, in order and at one clock.

use std::collections::BTreeSet;
use std::ops::Range;

use rundata::run::ProgramBuild;
use stats::{Elasticity, mean, median, normal_quantile};

use super::steps::Steps;
use super::{By, Case, LeftOut, Level, Point, Terms, steps_of};
use crate::at_clock::{AtClock, ClockConversion, common_elasticity};
use crate::estimate::Estimate;
use crate::quote::NotQuotable;
use crate::results::{CaseResults, LaunchFigure, Origin, Quantity, Results};
use crate::speed::clock_ghz;

/// A run's figure.
pub(super) struct Figure<'a> {
    pub(super) results: &'a Results,
    pub(super) started: &'a str,
    pub(super) build: &'a ProgramBuild,
    /// Number of its point.
    pub(super) point: usize,
    /// The cost at the clock of the series.
    pub(super) ns: f64,
    /// Its standard error by chance: what the clock leaves open is the same in all runs of one
    /// clock.
    error_ns: f64,
    /// ln of the series' quantum by its own; 0 without a clock.
    pub(super) apart: f64,
    /// The clock that the core had.
    pub(super) ghz: Option<f64>,
}

/// The figures of a case.
pub(super) struct Series<'a> {
    pub(super) of: Option<Quantity>,
    /// By point, then by time.
    pub(super) figures: Vec<Figure<'a>>,
    pub(super) clock_ghz: Option<f64>,
    /// When the newest run began.
    pub(super) until: Option<String>,
    /// By which power of the clock's period the figures go.
    power: Option<Elasticity>,
    pub(super) left_out: Vec<LeftOut>,
    by: By,
}

/// A run with the figure that it has of the case.
struct Found<'a> {
    results: &'a Results,
    started: &'a str,
    build: &'a ProgramBuild,
    estimate: Estimate,
    clock: Option<AtClock>,
}

impl<'a> Series<'a> {
    pub(super) fn of(case: &Case, sides: &'a [Results], terms: Terms) -> Self {
        let has = |of: &Quantity| sides.iter().any(|one| measured(case, one, *of).is_some());
        let of = terms.cost.quantities().iter().copied().find(has);
        let mut left_out = Vec::new();
        let mut found: Vec<Found> = Vec::new();
        let mut names = BTreeSet::new();
        for results in sides {
            // A copy of a file tells nothing more.
            let is_new = names.insert(&results.side.name);
            let figure = is_new.then(|| holds(case, results, of));
            match figure.unwrap_or_else(|| Err("the same run once more".to_string())) {
                Ok(one) => found.push(one),
                Err(why) => leave_out(&mut left_out, why, results),
            }
        }
        // Where most have a clock, one without cannot be brought to it.
        if found.iter().filter(|one| one.clock.is_some()).count() * 2 > found.len() {
            let (known, others): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|one| one.clock.is_some());
            let why = "the core's clock is not known".to_string();
            others.iter().for_each(|one| leave_out(&mut left_out, why.clone(), one.results));
            found = known;
        } else {
            found.iter_mut().for_each(|one| one.clock = None);
        }
        found.sort_by(|one, other| {
            (one.started, &one.results.side.name).cmp(&(other.started, &other.results.side.name))
        });
        let mut series = Self::at_one_clock(&found, of, terms.by);
        series.left_out = left_out;
        series
    }

    fn at_one_clock(found: &[Found<'a>], of: Option<Quantity>, by: By) -> Self {
        let quanta: Vec<f64> = found.iter().filter_map(|one| Some(one.clock?.quantum_ns)).collect();
        let to_ns = median(&quanta);
        let power =
            common_elasticity(&found.iter().filter_map(|one| one.clock).collect::<Vec<_>>());
        let mut names: Vec<String> = Vec::new();
        let mut figures: Vec<Figure> = Vec::new();
        for one in found {
            let name = point_name(one.results, one.build, by);
            let known = if by == By::Run { None } else { names.iter().position(|of| *of == name) };
            let point = known.unwrap_or(names.len());
            if point == names.len() {
                names.push(name);
            }
            figures.push(one.figure(point, to_ns, power));
        }
        figures.sort_by_key(|figure| figure.point);
        let target = found.first().map_or("", |one| &one.build.target);
        let clock_ghz = to_ns.and_then(|ns| clock_ghz(ns, target));
        let until = found.last().map(|one| one.started.to_string());
        Self { of, figures, clock_ghz, until, power, left_out: Vec::new(), by }
    }

    pub(super) fn steps(&self) -> Steps {
        steps_of(self.figures.iter().map(|of| (of.point, of.ns, of.error_ns)))
    }

    /// How far the clock of these figures is from that of the series: the mean, as that of the
    /// figures is, of ln of the quanta.
    pub(super) fn apart(&self, numbers: Range<usize>) -> f64 {
        let all: Vec<f64> = self.figures[numbers].iter().map(|figure| figure.apart).collect();
        mean(&all).unwrap_or(0.0)
    }

    /// Half of an interval in ln, with what so much of another clock leaves open: the error of the
    /// power, or where nobody knows that, any from 0 to 1.
    pub(super) fn half_width(&self, by_chance: f64, apart: f64) -> f64 {
        let z = normal_quantile(0.95).unwrap_or(2.0);
        let open = ClockConversion { log_ratio: apart, elasticity: self.power }.uncertainty();
        by_chance.hypot(z * open.error) + open.slack
    }

    /// How far what nobody knows of the clock leaves the newest runs open against the others, as a
    /// share: a change that is no larger could be hidden.
    pub(super) fn open(&self) -> f64 {
        let all: Vec<f64> = self.figures.iter().map(|figure| figure.apart).collect();
        let span = all.iter().copied().reduce(f64::max).zip(all.iter().copied().reduce(f64::min));
        span.map_or(0.0, |(most, least)| self.half_width(0.0, most - least))
    }

    pub(super) fn cycles(&self, ns: f64) -> Option<f64> {
        Some(ns * self.clock_ghz?)
    }

    /// Each point with what its runs say together.
    pub(super) fn points(&self, steps: &Steps) -> Vec<Point> {
        let quantile = steps.quantile();
        let mut points = Vec::new();
        let mut first = 0;
        for of in self.figures.chunk_by(|one, other| one.point == other.point) {
            let numbers = first..first + of.len();
            let weight = |at: usize| steps.errors[at].powi(-2);
            let weights: f64 = numbers.clone().map(weight).sum();
            let logs = numbers.clone().map(|at| weight(at) * self.figures[at].ns.ln());
            let log = logs.sum::<f64>() / weights;
            let half = self.half_width(quantile * weights.powf(-0.5), self.apart(numbers.clone()));
            let clocks: Vec<f64> = of.iter().filter_map(|one| one.ghz).collect();
            points.push(Point {
                name: point_name(of[0].results, of[0].build, self.by),
                runs: of.iter().map(|one| one.results.side.name.clone()).collect(),
                started: of[0].started.to_string(),
                level: steps.levels.iter().filter(|level| level.end <= first).count(),
                ns: log.exp(),
                low: (log - half).exp(),
                high: sound((log + half).exp()),
                cycles: self.cycles(log.exp()),
                clock_ghz: median(&clocks),
                kernel: of[0].results.machine.kernel.release.known().cloned(),
                version: of[0].build.version.clone(),
                commit: of[0].build.commit.clone(),
                alone: numbers.filter(|at| steps.alone[*at]).count() as u32,
            });
            first += of.len();
        }
        points
    }

    pub(super) fn levels(&self, steps: &Steps) -> Vec<Level> {
        let quantile = steps.quantile();
        let level = |of: &super::steps::Level| {
            let half = self.half_width(quantile * of.error, self.apart(of.first..of.end));
            Level {
                first: self.figures[of.first].point,
                last: self.figures[of.end - 1].point,
                runs: of.end - of.first,
                ns: of.log.exp(),
                low: (of.log - half).exp(),
                high: sound((of.log + half).exp()),
                cycles: self.cycles(of.log.exp()),
            }
        };
        steps.levels.iter().map(level).collect()
    }
}

/// JSON has no infinity.
fn sound(value: f64) -> f64 {
    value.min(f64::MAX)
}

impl<'a> Found<'a> {
    fn figure(&self, point: usize, to_ns: Option<f64>, power: Option<Elasticity>) -> Figure<'a> {
        let clock = self.clock.zip(to_ns);
        let unmoved = ClockConversion { log_ratio: 0.0, elasticity: power };
        let by = clock.map_or(unmoved, |(clock, to_ns)| clock.conversion_to(to_ns, power));
        Figure {
            results: self.results,
            started: self.started,
            build: self.build,
            point,
            ns: self.estimate.value * by.factor(),
            error_ns: self.estimate.standard_error.unwrap_or(0.0) * by.factor(),
            apart: by.log_ratio,
            ghz: self.ghz(),
        }
    }

    fn ghz(&self) -> Option<f64> {
        let own = self.clock.and_then(|of| of.ghz(&self.build.target));
        own.filter(|ghz| ghz.is_finite() && *ghz > 0.0)
    }
}

fn measured<'a>(case: &Case, results: &'a Results, of: Quantity) -> Option<&'a LaunchFigure> {
    let is_it =
        |one: &&CaseResults| one.experiment == case.experiment.name() && case.has(&one.labels);
    let found = results.cases.iter().find(is_it)?;
    found.figures.get(&of)?.launches().first()
}

/// The figure of a run, or why it has none that counts.
fn holds<'a>(case: &Case, results: &'a Results, of: Option<Quantity>) -> Result<Found<'a>, String> {
    let Origin::Run { started, build, session } = &results.side.origin else {
        return Err("published, not measured".to_string());
    };
    if session.as_ref().is_some_and(|session| !session.prefix.is_empty()) {
        return Err("measured behind a prefix (compare --ab)".to_string());
    }
    let measured = of.and_then(|of| measured(case, results, of));
    let Some((measured, of)) = measured.zip(of) else {
        return Err("nothing was measured of the case".to_string());
    };
    if !measured.is_complete {
        return Err("interrupted or not finished".to_string());
    }
    let estimate = measured.estimate.ok_or("nothing was measured of the case")?;
    estimate.quote_cost().map_err(|why| in_general(&why))?;
    if !estimate.speed.is_full() && of != Quantity::TrialNs {
        return Err("the core's speed was not measured".to_string());
    }
    // A cost that would overflow in another unit is none.
    let is_sound = (1e-6..1e18).contains(&estimate.value)
        && estimate.standard_error.is_some_and(|error| error.is_finite() && error >= 0.0);
    let clock = measured.clock.filter(|clock| (1e-3..1e12).contains(&clock.quantum_ns));
    match is_sound {
        true => Ok(Found { results, started, build, estimate, clock }),
        false => Err("its figure is not a number".to_string()),
    }
}

/// Without the figures of the one run.
fn in_general(why: &NotQuotable) -> String {
    match why {
        NotQuotable::NotResolved { .. } => "the cost is not resolved from zero".to_string(),
        NotQuotable::TooFewRounds(_) => "too few rounds".to_string(),
        why => why.to_string(),
    }
}

fn leave_out(all: &mut Vec<LeftOut>, why: String, results: &Results) {
    let name = results.side.name.clone();
    match all.iter_mut().find(|known| known.why == why) {
        Some(known) => known.runs.push(name),
        None => all.push(LeftOut { why, runs: vec![name] }),
    }
}

fn point_name(results: &Results, build: &ProgramBuild, by: By) -> String {
    let kernel = || results.machine.kernel.release.known().cloned();
    match by {
        By::Run => results.side.name.clone(),
        By::Kernel => kernel().unwrap_or_else(|| "unknown kernel".to_string()),
        By::Build => match &build.commit {
            Some(commit) => format!("{} {}", build.version, short(commit)),
            None => build.version.clone(),
        },
    }
}

/// The beginning of a commit.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

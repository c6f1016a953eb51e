//! The places at which a series of figures changes its level. This module knows nothing of runs and their clocks.

use stats::changepoint::{
    CLEARLY_BETTER, CurveAnalysis, CurveForm, CurvePoint, ErrorModel, FitSettings, FormFit,
    Nesting, Term, Turn,
};
use stats::{mad_sigma, median, student_quantile};
use std::ops::Range;

/// Fewest figures of a level: one or two may be exceptions.
pub(super) const FEWEST: usize = 3;
/// Fewest figures in which a change can be seen.
pub(super) const FEWEST_OF_ALL: usize = 2 * FEWEST;
/// Smallest relative error of a figure, so that smaller differences are no change.
const LEAST_ERROR: f64 = 0.001;
/// Largest distance from the median of its neighbourhood, in errors, of a figure that does not stand
/// alone.
const MAX_DISTANCE_ERRORS: f64 = 5.0;
/// Largest correlation of neighbours that is assumed.
const MAX_DEPENDENCE: f64 = 0.8;
/// Most figures to which two steps are fitted at once; in longer series they are found one by one.
const MAX_FIGURES_FOR_TWO_STEPS: usize = 40;

const STEP: Turn = Turn::Step;

/// Forms with one, two and three levels.
static FORMS: [CurveForm; 3] = {
    use Term::{One, Step};
    [
        CurveForm::new(&[One], &[]),
        CurveForm::new(&[One, Step(0)], &[STEP]),
        CurveForm::new(&[One, Step(0), Step(1)], &[STEP, STEP]),
    ]
};

const fn settings(forms: &'static [CurveForm]) -> FitSettings {
    FitSettings {
        forms,
        tolerance: 0.0,
        relative: false,
        errors: ErrorModel::Given { fewest: 0, left: [0; 3] },
        fewest: 2,
        between: 1,
        nesting: Nesting::Turns,
    }
}

static UP_TO_TWO_STEPS: FitSettings = settings(&FORMS);
static UP_TO_ONE_STEP: FitSettings = settings(FORMS.split_at(2).0);

/// A figure of a series. Figures of one place belong together: no step is between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlacedFigure {
    /// Place in the series, ascending.
    pub(super) place: usize,
    /// The figure; above 0.
    pub(super) value: f64,
    /// Standard error of the figure.
    pub(super) error: f64,
}

/// A stretch of the series without a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LevelSpan {
    /// Number of the first figure.
    pub(super) first: usize,
    /// Number of the last figure + 1.
    pub(super) end: usize,
    /// ln of the figures' mean, weighted by their errors.
    pub(super) log: f64,
    /// Standard error of `log`.
    pub(super) error: f64,
}

impl LevelSpan {
    /// Returns the numbers of its figures.
    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.end
    }
}

/// The levels of a series, and how exactly its figures are known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LevelSteps {
    /// The levels in order; empty for a series without figures.
    pub(super) levels: Vec<LevelSpan>,
    /// Relative standard deviation between neighbours beyond their own errors.
    pub(super) scatter: f64,
    /// Correlation of neighbours, from 0 to 0.8.
    pub(super) dependence: f64,
    /// Relative standard error of each figure, with scatter and dependence.
    pub(super) errors: Vec<f64>,
    /// True for each figure that is far from those on both sides of it, and hardly counts.
    pub(super) alone: Vec<bool>,
}

impl LevelSteps {
    /// Finds the changes of level. Values have to be finite and above 0, errors finite.
    pub(super) fn from_figures(figures: &[PlacedFigure]) -> Self {
        let mut series = LogSeries::from_figures(figures);
        let scatter = series.scatter;
        let dependence = series.widen_errors();
        Self {
            levels: series.levels(),
            scatter,
            dependence,
            errors: series.points.iter().map(|point| point.error).collect(),
            alone: series.alone,
        }
    }

    /// Returns half of a 95 % interval in standard errors.
    pub(super) fn quantile(&self) -> f64 {
        let freedoms = self.errors.len().saturating_sub(self.levels.len()).max(1);
        student_quantile(0.95, freedoms as f64).unwrap_or(f64::INFINITY)
    }

    /// Returns the smallest change that the newest three figures could show, as a share; absent
    /// where there are too few figures.
    pub(super) fn detectable(&self) -> Option<f64> {
        let count = self.errors.len();
        if count < FEWEST_OF_ALL {
            return None;
        }
        let error = median(&self.errors)?;
        let charge = FORMS[1].charge() - FORMS[0].charge();
        let gain = charge * (count as f64).ln() + CLEARLY_BETTER;
        let parts = 1.0 / FEWEST as f64 + 1.0 / (count - FEWEST) as f64;
        Some((error * (gain * parts).sqrt()).exp_m1())
    }
}

/// The logarithm of a figure, so that its error is relative.
#[derive(Clone, Copy)]
struct LogFigure {
    place: usize,
    log: f64,
    error: f64,
}

/// The logarithms of a series, with errors that hold the scatter between figures.
struct LogSeries {
    points: Vec<LogFigure>,
    scatter: f64,
    alone: Vec<bool>,
}

impl LogSeries {
    fn from_figures(figures: &[PlacedFigure]) -> Self {
        let mut points = Vec::new();
        for PlacedFigure { place, value, error } in figures {
            points.push(LogFigure { place: *place, log: value.ln(), error: error.abs() / value });
        }
        let scatter = scatter(&points);
        for point in &mut points {
            point.error = point.error.hypot(scatter).hypot(LEAST_ERROR);
        }
        let mut distances = Vec::new();
        for number in 0..points.len() {
            distances.push(distance_from_neighbours(&points, number));
        }
        let mut alone = Vec::new();
        for (point, distance) in points.iter_mut().zip(distances) {
            let is_alone = distance > MAX_DISTANCE_ERRORS * point.error;
            if is_alone {
                point.error = point.error.hypot(distance);
            }
            alone.push(is_alone);
        }
        Self { points, scatter, alone }
    }

    /// Returns the first figure of each level but the first. Each step is looked for once more
    /// between its neighbours, and dropped where it is not found there.
    fn starts(&self) -> Vec<usize> {
        let mut starts = all_starts(&self.points);
        let mut number = 0;
        while number < starts.len() {
            let first = if number == 0 { 0 } else { starts[number - 1] };
            let end = starts.get(number + 1).copied().unwrap_or(self.points.len());
            match best_starts(&self.points[first..end], &UP_TO_ONE_STEP)[..] {
                [start] => {
                    starts[number] = first + start;
                    number += 1;
                }
                _ => {
                    starts.remove(number);
                }
            }
        }
        starts
    }

    fn levels(&self) -> Vec<LevelSpan> {
        let mut levels = Vec::new();
        for span in spans(&self.starts(), self.points.len()) {
            if !span.is_empty() {
                levels.push(level(&self.points, span));
            }
        }
        levels
    }

    /// Widens the errors by the residuals from the levels that are found with them, and returns the
    /// correlation r of neighbours.
    ///
    /// Errors grow until chi-squared is what they say, if it is larger. Neighbours that depend on
    /// each other tell less than as many independent figures: the variance grows by
    /// (1 + r) / (1 - r).
    fn widen_errors(&mut self) -> f64 {
        let levels = self.levels();
        let mut residuals = Vec::new();
        for level in &levels {
            for point in &self.points[level.range()] {
                residuals.push((point.log - level.log) / point.error);
            }
        }
        let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
        let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let correlation = if squares > 0.0 { products / squares } else { 0.0 };
        // Around their own mean, few figures seem less correlated than they are (Kendall 1954).
        let hidden = (1.0 + 3.0 * correlation) / residuals.len().max(1) as f64;
        let dependence = (correlation + hidden).clamp(0.0, MAX_DEPENDENCE);
        let form = FORMS[levels.len().clamp(1, FORMS.len()) - 1];
        let freedoms = (residuals.len() as f64 - form.charge()).max(1.0);
        let dispersion = (squares / freedoms).max(1.0);
        let factor = (dispersion * (1.0 + dependence) / (1.0 - dependence)).sqrt();
        for point in &mut self.points {
            point.error *= factor;
        }
        dependence
    }
}

/// Returns the scatter of neighbours beyond their own errors. A step is one difference among many,
/// which does not move the median.
fn scatter(points: &[LogFigure]) -> f64 {
    let differences: Vec<f64> = points.windows(2).map(|pair| pair[1].log - pair[0].log).collect();
    let squares: Vec<f64> = points.iter().map(|point| point.error * point.error).collect();
    match (mad_sigma(&differences), median(&squares)) {
        (Some(sigma), Some(square)) => (sigma * sigma / 2.0 - square).max(0.0).sqrt(),
        _ => 0.0,
    }
}

/// Returns the distance of a figure from the median of the five around it.
fn distance_from_neighbours(points: &[LogFigure], number: usize) -> f64 {
    let neighbours = &points[number.saturating_sub(2)..(number + 3).min(points.len())];
    let logs: Vec<f64> = neighbours.iter().map(|point| point.log).collect();
    match median(&logs) {
        Some(middle) => (points[number].log - middle).abs(),
        None => 0.0,
    }
}

/// Returns the level of the figures with these numbers.
fn level(points: &[LogFigure], span: Range<usize>) -> LevelSpan {
    let (mut weights, mut sum) = (0.0_f64, 0.0);
    for point in &points[span.clone()] {
        let weight = point.error.powi(-2);
        weights += weight;
        sum += weight * point.log;
    }
    LevelSpan { first: span.start, end: span.end, log: sum / weights, error: weights.powf(-0.5) }
}

/// Returns the numbers of the figures of each level, from the first figures of all but the first.
fn spans(starts: &[usize], end: usize) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut first = 0;
    for start in starts {
        spans.push(first..*start);
        first = *start;
    }
    spans.push(first..end);
    spans
}

/// Returns the first figures of all levels but the first: those of the best fit, and those that are
/// found within its levels.
fn all_starts(points: &[LogFigure]) -> Vec<usize> {
    let is_long = points.len() > MAX_FIGURES_FOR_TWO_STEPS;
    let found = best_starts(points, if is_long { &UP_TO_ONE_STEP } else { &UP_TO_TWO_STEPS });
    if found.is_empty() {
        return found;
    }
    let mut starts = Vec::new();
    for span in spans(&found, points.len()) {
        for start in all_starts(&points[span.clone()]) {
            starts.push(span.start + start);
        }
        if span.end < points.len() {
            starts.push(span.end);
        }
    }
    starts
}

/// Returns the steps of the simplest form that none is clearly better than: at most two.
fn best_starts(points: &[LogFigure], settings: &'static FitSettings) -> Vec<usize> {
    let mut curve = Vec::new();
    for point in points {
        curve.push(CurvePoint {
            x: point.place as f64 + 1.0,
            // The fit works in units of the largest value, so that levels far from zero would lose
            // digits.
            y: point.log - points[0].log,
            error: Some(point.error),
        });
    }
    let analysis = CurveAnalysis::new(&curve, settings);
    let mut chosen = Vec::new();
    let mut limit = f64::INFINITY;
    for steps in 0..settings.forms.len() {
        if let Some((criterion, starts)) = best_with_steps(points, &analysis, steps) {
            if criterion < limit {
                limit = criterion - CLEARLY_BETTER;
                chosen = starts;
            }
        }
    }
    chosen
}

/// Returns the least criterion of the admissible fits with this many steps, and the first figures
/// behind its steps.
fn best_with_steps(
    points: &[LogFigure],
    analysis: &CurveAnalysis,
    steps: usize,
) -> Option<(f64, Vec<usize>)> {
    let mut best: Option<(f64, Vec<usize>)> = None;
    for fit in &analysis.fits {
        if fit.turns.len() != steps {
            continue;
        }
        let Some(starts) = starts_of_fit(points, &analysis.data.places, fit) else { continue };
        let is_better = match &best {
            Some((criterion, _)) => fit.criterion.total_cmp(criterion).is_lt(),
            None => true,
        };
        if is_better {
            best = Some((fit.criterion, starts));
        }
    }
    best
}

/// Returns the first figure behind each step of a fit; absent where a level has too few.
fn starts_of_fit(points: &[LogFigure], places: &[f64], fit: &FormFit) -> Option<Vec<usize>> {
    let mut starts = Vec::new();
    for bracket in &fit.brackets {
        let place = places.get(*bracket)?;
        starts.push(points.iter().position(|point| point.place as f64 + 1.0 > *place)?);
    }
    let spans = spans(&starts, points.len());
    // Spans may be reversed where a step's bracket is not behind that of the step before.
    let are_long = spans.iter().all(|span| span.end >= span.start + FEWEST);
    if are_long && are_apart(points, &spans) { Some(starts) } else { None }
}

/// Returns whether each level has enough figures that are nearer to it than to the level beside it.
/// Two far figures and one of the level before are no level.
fn are_apart(points: &[LogFigure], spans: &[Range<usize>]) -> bool {
    let mut levels = Vec::new();
    for span in spans {
        levels.push(level(points, span.clone()));
    }
    levels.windows(2).all(|pair| {
        has_own_figures(points, &pair[0], &pair[1]) && has_own_figures(points, &pair[1], &pair[0])
    })
}

/// Returns whether enough figures of `level` are nearer to it than to `neighbour`.
fn has_own_figures(points: &[LogFigure], level: &LevelSpan, neighbour: &LevelSpan) -> bool {
    let mut count = 0;
    for point in &points[level.range()] {
        if (point.log - level.log).abs() < (point.log - neighbour.log).abs() {
            count += 1;
        }
    }
    count >= FEWEST
}

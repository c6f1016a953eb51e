//! Where a series of figures changes its level. Numbers in, numbers out.

use stats::changepoint::{
    CLEARLY_BETTER, CurveAnalysis, CurveForm, CurvePoint, ErrorModel, FitSettings, FormFit,
    Nesting, Term, Turn,
};
use stats::{mad_sigma, median, student_quantile};

/// Figures that a level has at least: of one or two nobody knows whether they stay.
pub(super) const FEWEST: usize = 3;
/// Figures below which no change can be seen.
pub(super) const FEWEST_OF_ALL: usize = 2 * FEWEST;
/// No figure is known better than this share: what is that small is no change.
const LEAST_ERROR: f64 = 0.001;
/// Errors from the median of its neighbourhood above which a figure stands alone.
const FAR: f64 = 5.0;
/// No neighbours are taken to depend on each other more than this.
const MOST_DEPENDENCE: f64 = 0.8;
/// Most figures to which two steps at once are fitted; of more they are found one by one.
const MOST_AT_ONCE: usize = 40;

const STEP: Turn = Turn::Step;

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

static SHORT: FitSettings = settings(&FORMS);
static LONG: FitSettings = settings(FORMS.split_at(2).0);

/// A figure of a series. Figures of one place belong together: no step is between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    /// Its place, ascending.
    pub(super) place: usize,
    /// The figure; above 0.
    pub(super) value: f64,
    /// Its standard error.
    pub(super) error: f64,
}

/// A stretch of the series without a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    /// Number of its first figure.
    pub(super) first: usize,
    /// One more than that of its last.
    pub(super) end: usize,
    /// ln of the figures' mean, each by its error.
    pub(super) log: f64,
    /// Standard error of that.
    pub(super) error: f64,
}

/// What a series shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Steps {
    /// One more than there are changes; none of a series without figures.
    pub(super) levels: Vec<Level>,
    /// Relative standard deviation between neighbours beyond their own errors.
    pub(super) scatter: f64,
    /// Correlation of neighbours, from 0 to 0.8.
    pub(super) dependence: f64,
    /// Relative standard error of each figure, with scatter and dependence.
    pub(super) errors: Vec<f64>,
    /// Which figures are far from those on both sides of them, and hardly count.
    pub(super) alone: Vec<bool>,
}

impl Steps {
    /// Finds the changes of level. Values have to be finite and above 0, errors finite.
    pub(super) fn of(figures: &[Figure]) -> Self {
        let mut seen = Seen::all(figures);
        let scatter = seen.scatter;
        let dependence = seen.less_known();
        Self {
            levels: seen.levels(&seen.starts()),
            scatter,
            dependence,
            errors: seen.points.iter().map(|point| point.error).collect(),
            alone: seen.alone,
        }
    }

    /// Half of a 95 % interval in standard errors.
    pub(super) fn quantile(&self) -> f64 {
        let left = self.errors.len().saturating_sub(self.levels.len()).max(1);
        student_quantile(0.95, left as f64).unwrap_or(f64::INFINITY)
    }

    /// The smallest change that the newest three figures could show, as a share; absent where there
    /// are too few.
    pub(super) fn detectable(&self) -> Option<f64> {
        let all = self.errors.len();
        let error = median(&self.errors).filter(|_| all >= FEWEST_OF_ALL)?;
        let charge = FORMS[1].charge() - FORMS[0].charge();
        let gain = charge * (all as f64).ln() + CLEARLY_BETTER;
        let parts = 1.0 / FEWEST as f64 + 1.0 / (all - FEWEST) as f64;
        Some((error * (gain * parts).sqrt()).exp_m1())
    }
}

/// A figure as the fits see it: the logarithm, so that errors are relative.
#[derive(Clone, Copy)]
struct Log {
    place: usize,
    log: f64,
    error: f64,
}

struct Seen {
    points: Vec<Log>,
    scatter: f64,
    alone: Vec<bool>,
}

impl Seen {
    fn all(figures: &[Figure]) -> Self {
        let own = |figure: &Figure| Log {
            place: figure.place,
            log: figure.value.ln(),
            error: figure.error.abs() / figure.value,
        };
        let mut points: Vec<Log> = figures.iter().map(own).collect();
        let scatter = scatter(&points);
        for point in &mut points {
            point.error = point.error.hypot(scatter).hypot(LEAST_ERROR);
        }
        let far: Vec<f64> = (0..points.len()).map(|at| from_neighbours(&points, at)).collect();
        let mut alone = vec![false; points.len()];
        for (at, point) in points.iter_mut().enumerate() {
            alone[at] = far[at] > FAR * point.error;
            if alone[at] {
                point.error = point.error.hypot(far[at]);
            }
        }
        Self { points, scatter, alone }
    }

    /// The first figure of each level but the first, each looked for again between its neighbours.
    fn starts(&self) -> Vec<usize> {
        let mut found = starts(&self.points);
        let mut at = 0;
        while at < found.len() {
            let from = if at == 0 { 0 } else { found[at - 1] };
            let to = found.get(at + 1).copied().unwrap_or(self.points.len());
            match best(&self.points[from..to], &LONG)[..] {
                [start] => {
                    found[at] = from + start;
                    at += 1;
                }
                _ => {
                    found.remove(at);
                }
            }
        }
        found
    }

    fn levels(&self, starts: &[usize]) -> Vec<Level> {
        let ends = starts.iter().copied().chain([self.points.len()]);
        let firsts = [0].into_iter().chain(starts.iter().copied());
        let some = firsts.zip(ends).filter(|(first, end)| first < end);
        some.map(|(first, end)| level(&self.points, first, end)).collect()
    }

    /// Widens the errors by what the figures are off the levels that are found with them: to what
    /// they scatter by, where that is more, and as neighbours that depend on each other tell less
    /// than as many that do not, by (1 + r) / (1 - r) in the variance. Gives r.
    fn less_known(&mut self) -> f64 {
        let levels = self.levels(&self.starts());
        let off = |level: &Level| {
            let points = &self.points[level.first..level.end];
            let log = level.log;
            points.iter().map(move |point| (point.log - log) / point.error)
        };
        let off: Vec<f64> = levels.iter().flat_map(off).collect();
        let squares: f64 = off.iter().map(|off| off * off).sum();
        let products: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let found = if squares > 0.0 { products / squares } else { 0.0 };
        // About their own mean a few seem to depend on each other less than they do (Kendall 1954).
        let hidden = (1.0 + 3.0 * found) / off.len().max(1) as f64;
        let dependence = (found + hidden).clamp(0.0, MOST_DEPENDENCE);
        let form = FORMS[levels.len().clamp(1, FORMS.len()) - 1];
        let left = (off.len() as f64 - form.charge()).max(1.0);
        let scatter = (squares / left).max(1.0);
        let factor = (scatter * (1.0 + dependence) / (1.0 - dependence)).sqrt();
        self.points.iter_mut().for_each(|point| point.error *= factor);
        dependence
    }
}

/// The scatter of neighbours beyond their own errors. A step is one difference among many, which a
/// median passes over.
fn scatter(points: &[Log]) -> f64 {
    let differences: Vec<f64> = points.windows(2).map(|pair| pair[1].log - pair[0].log).collect();
    let squares: Vec<f64> = points.iter().map(|point| point.error * point.error).collect();
    let Some((sigma, own)) = mad_sigma(&differences).zip(median(&squares)) else { return 0.0 };
    (sigma * sigma / 2.0 - own).max(0.0).sqrt()
}

/// How far a figure is from the median of the five around it.
fn from_neighbours(points: &[Log], at: usize) -> f64 {
    let near = &points[at.saturating_sub(2)..(at + 3).min(points.len())];
    let logs: Vec<f64> = near.iter().map(|point| point.log).collect();
    median(&logs).map_or(0.0, |middle| (points[at].log - middle).abs())
}

fn level(points: &[Log], first: usize, end: usize) -> Level {
    let weight = |point: &Log| point.error.powi(-2);
    let weights: f64 = points[first..end].iter().map(weight).sum();
    let sum: f64 = points[first..end].iter().map(|point| weight(point) * point.log).sum();
    Level { first, end, log: sum / weights, error: weights.powf(-0.5) }
}

/// Steps, and the steps between them.
fn starts(points: &[Log]) -> Vec<usize> {
    let settings = if points.len() > MOST_AT_ONCE { &LONG } else { &SHORT };
    let found = best(points, settings);
    if found.is_empty() {
        return found;
    }
    let ends = found.iter().copied().chain([points.len()]);
    let firsts = [0].into_iter().chain(found.iter().copied());
    let within = firsts.zip(ends).flat_map(|(first, end)| {
        let further = starts(&points[first..end]).into_iter().map(move |start| first + start);
        further.chain((end < points.len()).then_some(end))
    });
    within.collect()
}

/// The steps of the simplest form that none is clearly better than: up to two.
fn best(points: &[Log], settings: &'static FitSettings) -> Vec<usize> {
    let at = |point: &Log| CurvePoint {
        x: point.place as f64 + 1.0,
        // The engine works in units of the largest: levels that are far from zero lose no digit by
        // it.
        y: point.log - points[0].log,
        error: Some(point.error),
    };
    let all: Vec<CurvePoint> = points.iter().map(at).collect();
    let analysis = CurveAnalysis::new(&all, settings);
    let placed = |fit: &FormFit| starts_of(points, &analysis.data.places, &fit.brackets);
    let mut chosen: Option<(f64, Vec<usize>)> = None;
    for turns in 0..settings.forms.len() {
        let same = analysis.fits.iter().filter(|fit| fit.turns.len() == turns);
        let admitted = same.filter_map(|fit| Some((fit.criterion, placed(fit)?)));
        let least = admitted.min_by(|one, other| one.0.total_cmp(&other.0));
        let limit = chosen.as_ref().map_or(f64::INFINITY, |(of, _)| of - CLEARLY_BETTER);
        chosen = least.filter(|(criterion, _)| *criterion < limit).or(chosen);
    }
    chosen.map(|(_, starts)| starts).unwrap_or_default()
}

/// The first figure behind each turn; absent where a level has too few.
fn starts_of(points: &[Log], places: &[f64], brackets: &[usize]) -> Option<Vec<usize>> {
    let behind = |bracket: &usize| {
        let place = places.get(*bracket)?;
        points.iter().position(|point| point.place as f64 + 1.0 > *place)
    };
    let starts: Vec<usize> = brackets.iter().map(behind).collect::<Option<_>>()?;
    let ends = starts.iter().copied().chain([points.len()]);
    let spans: Vec<(usize, usize)> =
        [0].into_iter().chain(starts.iter().copied()).zip(ends).collect();
    let enough = spans.iter().all(|(first, end)| *end >= first + FEWEST);
    (enough && are_apart(points, &spans)).then_some(starts)
}

/// Whether each level has enough figures that are nearer to it than to the one beside it: two far
/// ones and one of the level before are none.
fn are_apart(points: &[Log], spans: &[(usize, usize)]) -> bool {
    let levels: Vec<Level> = spans.iter().map(|(first, end)| level(points, *first, *end)).collect();
    let nearer = |own: &Level, other: &Level| {
        let near = |point: &&Log| (point.log - own.log).abs() < (point.log - other.log).abs();
        points[own.first..own.end].iter().filter(near).count() >= FEWEST
    };
    levels.windows(2).all(|pair| nearer(&pair[0], &pair[1]) && nearer(&pair[1], &pair[0]))
}

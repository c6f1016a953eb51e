//! The candidate laws, and the verdict of [`super::law`] with its words.

use std::f64::consts::LN_2;

use rundata::words::{percent, signed, time, times};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::changepoint::{CurveForm, FormConstraint, Term, Turn};

use super::EQUIVALENCE;
use crate::curve::TurnKind;

/// The cost per switch as a function of the members N of the ring. A step is a jump at a knee, a
/// hinge a change of slope there; `(x)+` is x where it is positive, else 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Shape")]
pub enum LawShape {
    /// a
    Constant,
    /// a + b ln N
    Logarithmic,
    /// a + b N
    Linear,
    /// a + b (1 - exp(-(N - 1) / t)): rises (or falls) to a plateau. N - 1 members that put what
    /// they touch into random sets of a cache leave this part of the last one's behind (Thiebaut
    /// and Stone 1987).
    Saturating,
    /// a + b N^k / (N^k + t^k), k = 1, 1.5 or 2 (logistic in ln N): comes nearer to its plateau
    /// more slowly. With k = 1 a hyperbola; above it starts slowly as well.
    Sigmoid,
    /// A sigmoid with t above a third of the largest size: a smooth curve whose plateau was not
    /// measured.
    Unfinished,
    /// a + b ln N + c N, ever slower: between a line and a logarithm, or flatter than both at its
    /// end
    Slowing,
    /// a + b N + c N^2, bending away from the axis (a search of an ever longer list)
    Quadratic,
    /// a, from the knee on a + b
    Step,
    /// a, from the knee on b ln(N / t) more
    FlatLogarithmic,
    /// a + b ln N, from the knee on c more
    LogarithmicStep,
    /// a + b N, from the knee on c more
    LinearStep,
    /// a + b ln N + c (N - t)+, steeper after the knee
    LogarithmicHinge,
    /// a + b N + c (N - t)+, steeper after the knee
    LinearHinge,
    /// a, then a + b, then a + b + c
    TwoSteps,
    /// a + b ((N - t)+ - (N - u)+): flat, a ramp from t to u, flat again
    Ramp,
}

/// Parts of a bracket at which a hinge is tried.
const PLACES: &[f64] = &[0.0, 0.25, 0.5, 0.75];
const HINGE: &[Turn] = &[Turn::Hinge(PLACES)];
const RATIO_HINGE: &[Turn] = &[Turn::RatioHinge(PLACES)];
const EXPONENT: Turn = Turn::Exponent(&[1.0, 1.5, 2.0]);
const SIGMOID: &[Turn] = &[Turn::Scale(PLACES), EXPONENT];
const UNFINISHED: &[Turn] = &[Turn::FarScale(&[0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0]), EXPONENT];
const RAMP: &[Turn] = &[Turn::Hinge(&[0.0, 0.5]), Turn::Hinge(&[0.5, 1.0])];

/// The form of each shape, in their order: simpler before richer. A law with a slope needs two
/// sizes before its knee to have one.
pub(super) static FORMS: [CurveForm; 16] = {
    use Term::{Approach, Beyond, Log, LogBeyond, One, Ramp, Sigmoid, Square, Step, X};
    const LINEAR: usize = LawShape::Linear as usize;
    const LOG: usize = LawShape::Logarithmic as usize;
    const KNEE: CurveForm = CurveForm { before: 2, ..CurveForm::new(&[], &[Turn::Step]) };
    const BEND: CurveForm = CurveForm { must: FormConstraint::Steepen, turns: HINGE, ..KNEE };
    [
        CurveForm::new(&[One], &[]),
        CurveForm::new(&[One, Log], &[]),
        CurveForm::new(&[One, X], &[]),
        CurveForm {
            contains: &[LINEAR],
            ..CurveForm::new(&[One, Approach], &[Turn::Scale(PLACES)])
        },
        CurveForm { contains: &[LINEAR], ..CurveForm::new(&[One, Sigmoid], SIGMOID) },
        CurveForm { contains: &[LINEAR, LOG], ..CurveForm::new(&[One, Sigmoid], UNFINISHED) },
        CurveForm { must: FormConstraint::SlowDown, ..CurveForm::new(&[One, Log, X], &[]) },
        CurveForm { must: FormConstraint::BendAway, ..CurveForm::new(&[One, X, Square], &[]) },
        CurveForm::new(&[One, Step(0)], &[Turn::Step]),
        CurveForm { terms: &[One, LogBeyond], turns: RATIO_HINGE, contains: &[LOG], ..KNEE },
        CurveForm { terms: &[One, Log, Step(0)], ..KNEE },
        CurveForm { terms: &[One, X, Step(0)], ..KNEE },
        CurveForm { terms: &[One, Log, Beyond(0)], ..BEND },
        CurveForm { terms: &[One, X, Beyond(0)], ..BEND },
        CurveForm::new(&[One, Step(0), Step(1)], &[Turn::Step, Turn::Step]),
        // A ramp within one bracket is a step there; one that never ends is none of the candidates.
        CurveForm {
            contains: &[LawShape::Step as usize, LINEAR],
            ..CurveForm::new(&[One, Ramp], RAMP)
        },
    ]
};

impl LawShape {
    /// The shapes in their order, with their names.
    const ALL: [(LawShape, &str); 16] = [
        (LawShape::Constant, "a flat cost"),
        (LawShape::Logarithmic, "logarithmic growth"),
        (LawShape::Linear, "linear growth"),
        (LawShape::Saturating, "a plateau"),
        (LawShape::Sigmoid, "a gradual approach to a plateau"),
        (LawShape::Unfinished, "a smooth curve"),
        (LawShape::Slowing, "slowing growth"),
        (LawShape::Quadratic, "quadratic growth"),
        (LawShape::Step, "a flat cost with a step"),
        (LawShape::FlatLogarithmic, "a flat cost, then logarithmic growth"),
        (LawShape::LogarithmicStep, "logarithmic growth with a step"),
        (LawShape::LinearStep, "linear growth with a step"),
        (LawShape::LogarithmicHinge, "logarithmic growth with a hinge"),
        (LawShape::LinearHinge, "linear growth with a hinge"),
        (LawShape::TwoSteps, "a flat cost with two steps"),
        (LawShape::Ramp, "a flat cost with a ramp"),
    ];

    /// Returns the shape of the form of this number.
    pub(super) fn from_number(number: usize) -> Self {
        Self::ALL[number].0
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub(super) fn form(self) -> &'static CurveForm {
        &FORMS[self as usize]
    }

    /// Returns whether another shape is a special case of this one.
    fn contains(self, simpler: LawShape) -> bool {
        let (form, inner) = (self.form(), simpler.form());
        let is_inside = inner.terms.iter().all(|term| form.terms.contains(term));
        self != simpler && (is_inside || form.contains.contains(&(simpler as usize)))
    }

    /// Shapes that slow down without a knee, or at their end.
    pub(super) const GRADUAL: [LawShape; 4] =
        [LawShape::Saturating, LawShape::Sigmoid, LawShape::Unfinished, LawShape::Slowing];

    /// Returns the law before the first knee.
    fn base(self) -> LawShape {
        match self {
            LawShape::Quadratic => self,
            _ if Self::GRADUAL.contains(&self) => self,
            _ if self.form().terms.contains(&Term::Log) => LawShape::Logarithmic,
            _ if self.form().terms.contains(&Term::X) => LawShape::Linear,
            _ => LawShape::Constant,
        }
    }
}

/// The kind of growth of a cost with the size of the ring, as far as the points tell kinds apart.
/// Sentences use it: laws that the next run may exchange for each other are one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CostGrowth {
    /// No trend over the measured sizes.
    Flat {
        /// Largest trend relative to the cost, where it is bounded.
        trend_below: Option<f64>,
    },
    /// Proportional to the logarithm of the size.
    Logarithmic,
    /// Proportional to the size.
    Linear,
    /// Proportional to the square of the size.
    Quadratic,
    /// Levels off at a plateau.
    Plateau,
    /// No knee; the law is not told apart from other such laws.
    Smooth,
    /// Has knees.
    Knees,
    /// The law is not told apart from laws of other kinds.
    Open,
}

/// Difference of the criterion above which laws of another kind do not count: they have hardly any
/// support left (Burnham and Anderson 2002, section 2.6).
const CLEARLY_WORSE: f64 = 7.0;

/// Largest relative trend that is called none.
const FLAT_TREND: f64 = 0.10;

impl CostGrowth {
    fn from_shape(shape: LawShape, trend_below: Option<f64>) -> Self {
        match shape {
            LawShape::Constant => Self::Flat { trend_below },
            LawShape::Logarithmic => Self::Logarithmic,
            LawShape::Linear => Self::Linear,
            LawShape::Quadratic => Self::Quadratic,
            LawShape::Saturating | LawShape::Sigmoid => Self::Plateau,
            LawShape::Unfinished | LawShape::Slowing => Self::Smooth,
            _ => Self::Knees,
        }
    }

    fn is_smooth(self) -> bool {
        !matches!(self, Self::Flat { .. } | Self::Knees | Self::Open)
    }
}

/// The source of the errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Noise")]
pub enum ErrorSource {
    /// Every point came with its standard error.
    Known,
    /// Errors in proportion to the cost, their size estimated from the scatter about the law.
    Estimated,
}

/// The law, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[schemars(rename = "Law")]
pub enum ScalingLaw {
    /// The points follow this shape.
    Follows {
        /// The shape.
        shape: LawShape,
    },
    /// The points are inconclusive.
    CannotTell {
        /// The reason, in words that follow a colon.
        why: String,
    },
}

/// A fitted shape that can be evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Curve")]
pub struct LawCurve {
    /// The shape, whose basis functions have the coefficients.
    pub shape: LawShape,
    /// a, b, c of [`LawShape`], in the unit of the costs.
    pub coefficients: Vec<f64>,
    /// Positions of the knees, in members. A step's is only known to be inside its bracket; here
    /// it is the geometric middle. For [`LawShape::Saturating`]: t, at which 63 % of the change is done;
    /// for [`LawShape::Sigmoid`] and [`LawShape::Unfinished`]: t, at which half of it is done, and k.
    pub turns: Vec<f64>,
}

impl LawCurve {
    /// Returns the cost of a switch in a ring of `members`.
    pub(super) fn at(&self, members: f64) -> f64 {
        let basis = self.shape.form().basis(&self.turns, members);
        let terms = self.coefficients.iter().zip(basis);
        terms.map(|(coefficient, value)| coefficient * value).sum()
    }
}

/// A place where the cost leaves one law for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The kind of change.
    pub kind: TurnKind,
    /// Largest measured size surely before the knee: with `high_members` it brackets the knee
    /// with at least 95 % of the criterion's weight.
    pub low_members: u32,
    /// Smallest measured size surely at or after it.
    pub high_members: u32,
    /// Cost over that of the continued law before the knee, both at `at_members`. Above 1 is slower.
    /// Absent where the latter is not positive.
    pub factor: Option<f64>,
    /// Lower end of the factor's interval at [`super::CONFIDENCE`], for the knee at its most
    /// likely place (delta method on the logarithm).
    pub factor_low: Option<f64>,
    /// Upper end.
    pub factor_high: Option<f64>,
    /// Members at which the factor is taken: the first size after a step, the end of the part after
    /// a hinge.
    pub at_members: f64,
    /// Measured sizes from the knee to the next one or to the end. With 1 the knee rests on a
    /// single size, and a disturbance of that size would look the same.
    pub sizes_after: usize,
}

/// A candidate law with its best fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Candidate")]
pub struct CandidateLaw {
    /// The shape.
    pub shape: LawShape,
    /// Coefficients and knee positions.
    pub freedoms: usize,
    /// The penalised criterion; lower is better, only differences mean anything.
    pub criterion: f64,
    /// Criterion above the best candidate's.
    pub above_best: f64,
    /// Root of the weighted mean squared residual, in standard errors. With [`ErrorSource::Estimated`]
    /// the standard error is [`super::EQUIVALENCE`] of the cost.
    pub scatter: f64,
}

/// The verdict of [`super::law`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Verdict")]
pub struct ScalingVerdict {
    /// The law, or the reason why there is none.
    pub law: ScalingLaw,
    /// The fitted curve; `None` if the points are inconclusive.
    pub curve: Option<LawCurve>,
    /// Knees of the law, ascending.
    pub knees: Vec<Knee>,
    /// For a flat law: the largest trend over the measured sizes that the points do not exclude,
    /// as a part of the cost.
    pub trend_below: Option<f64>,
    /// p of the chi-squared test for lack of fit of the law. `None` with [`ErrorSource::Estimated`],
    /// where nothing is left to test with, and without degrees of freedom.
    pub fit_p: Option<f64>,
    /// The candidates that could be fitted, best first.
    pub candidates: Vec<CandidateLaw>,
    /// The source of the errors.
    pub noise: ErrorSource,
    /// Smallest measured size; 0 without points.
    pub smallest_members: u32,
    /// Largest measured size; 0 without points.
    pub largest_members: u32,
    /// Points left out: no members, or a cost that is not a finite number.
    pub ignored: usize,
}

impl ScalingVerdict {
    /// Returns the cost of a switch in a ring of `members` by the fitted law, in the unit of the
    /// points. Outside the measured sizes it is an extrapolation. Absent if the points are
    /// inconclusive, or for less than one member.
    pub fn cost_at(&self, members: f64) -> Option<f64> {
        let curve = self.curve.as_ref()?;
        if !members.is_finite() || members < 1.0 {
            return None;
        }
        let cost = curve.at(members);
        if cost.is_finite() { Some(cost) } else { None }
    }

    /// Returns the shape; absent if the points are inconclusive.
    pub fn shape(&self) -> Option<LawShape> {
        match self.law {
            ScalingLaw::Follows { shape } => Some(shape),
            ScalingLaw::CannotTell { .. } => None,
        }
    }

    /// Returns the kind of the law, or a wider one where laws of other kinds fit nearly as well;
    /// absent if the points are inconclusive.
    pub fn growth(&self) -> Option<CostGrowth> {
        let shape = self.shape()?;
        let kind = CostGrowth::from_shape(shape, self.trend_below);
        let rivals = self.rivals(shape);
        if rivals.is_empty() {
            return Some(kind);
        }
        let are_smooth = kind.is_smooth() && rivals.iter().all(|rival| rival.is_smooth());
        Some(if are_smooth { CostGrowth::Smooth } else { CostGrowth::Open })
    }

    /// Returns the kinds of other laws that fit nearly as well as this one. A law that has this one as
    /// a special case counts only if it fits better, as it never fits much worse.
    fn rivals(&self, shape: LawShape) -> Vec<CostGrowth> {
        let kind = CostGrowth::from_shape(shape, None);
        let chosen = self.candidates.iter().find(|candidate| candidate.shape == shape);
        let chosen_above_best = chosen.map_or(0.0, |candidate| candidate.above_best);
        let mut rivals = Vec::new();
        for candidate in &self.candidates {
            let margin = if candidate.shape.contains(shape) { 0.0 } else { CLEARLY_WORSE };
            let rival = CostGrowth::from_shape(candidate.shape, None);
            if rival != kind && candidate.above_best < chosen_above_best + margin {
                rivals.push(rival);
            }
        }
        rivals
    }

    /// Returns the growth with the number of members, to follow a colon: `it grows linearly with
    /// their number`. Absent where it is not known.
    pub fn growth_in_words(&self) -> Option<String> {
        let words = match self.growth()? {
            CostGrowth::Open => return None,
            CostGrowth::Flat { trend_below: Some(bound) } if bound > FLAT_TREND => {
                format!("it changes by less than {} with their number", percent(bound))
            }
            CostGrowth::Flat { .. } => "it does not depend on their number".to_string(),
            CostGrowth::Logarithmic => {
                format!("it {} with the logarithm of their number", self.direction()?)
            }
            CostGrowth::Linear => format!("it {} linearly with their number", self.direction()?),
            CostGrowth::Quadratic => {
                format!("it {} with the square of their number", self.direction()?)
            }
            CostGrowth::Plateau => "it levels off".to_string(),
            CostGrowth::Smooth => format!("it {} smoothly with their number", self.direction()?),
            CostGrowth::Knees => self.knees_in_words(),
        };
        Some(words)
    }

    /// Returns the knees in words: `it steps at 7`, `it grows faster between 8 and 16`.
    fn knees_in_words(&self) -> String {
        let mut places = Vec::new();
        for knee in &self.knees {
            let (low, high) = (knee.low_members, knee.high_members);
            places.push(if high.saturating_sub(low) <= 1 {
                format!("at {high}")
            } else {
                format!("between {low} and {high}")
            });
        }
        let are_steps = self.knees.iter().all(|knee| knee.kind == TurnKind::Step);
        let what = if are_steps { "steps" } else { "grows faster" };
        format!("it {what} {}", places.join(" and "))
    }

    /// Returns `grows` or `falls`, by the cost over the measured sizes.
    fn direction(&self) -> Option<&'static str> {
        let curve = self.curve.as_ref()?;
        let first = curve.at(f64::from(self.smallest_members));
        let last = curve.at(f64::from(self.largest_members));
        Some(if last < first { "falls" } else { "grows" })
    }

    /// Returns the verdict in one sentence, without a full stop. Costs are in nanoseconds.
    pub fn in_words(&self) -> String {
        match (&self.law, &self.curve) {
            (ScalingLaw::CannotTell { why }, _) => format!("inconclusive: {why}"),
            (ScalingLaw::Follows { .. }, None) => "inconclusive: no curve".into(),
            (ScalingLaw::Follows { .. }, Some(curve)) => self.describe(curve),
        }
    }

    fn describe(&self, curve: &LawCurve) -> String {
        match self.knees.first() {
            // Knees are told even where several laws fit, with their intervals.
            Some(first) => self.describe_knees(curve, first),
            None => self.describe_smooth(curve),
        }
    }

    /// Describes a law without knees.
    fn describe_smooth(&self, curve: &LawCurve) -> String {
        let low = f64::from(self.smallest_members);
        let high = f64::from(self.largest_members);
        let (first, last) = (time(curve.at(low)), time(curve.at(high)));
        let range = format!("(from {first} at {low:.0} to {last} at {high:.0} members)");
        match (self.growth(), self.direction()) {
            (Some(CostGrowth::Smooth), Some(direction)) => {
                return format!("{direction} smoothly {range}");
            }
            (Some(CostGrowth::Open), Some(direction)) => {
                return format!("{direction} {range}; several laws fit about as well");
            }
            _ => {}
        }
        let slope = slope(curve, low, high);
        if curve.shape != LawShape::Constant {
            return format!("{slope} {range}");
        }
        let mut words = format!("{slope} from {low:.0} to {high:.0} members: {first} a switch");
        if let Some(bound) = self.trend_below {
            words += &format!(", any trend below {}", percent(bound));
        }
        words
    }

    fn describe_knees(&self, curve: &LawCurve, first: &Knee) -> String {
        let low = f64::from(self.smallest_members);
        let knees: Vec<String> = self.knees.iter().map(|knee| knee_in_words(curve, knee)).collect();
        let until = first.low_members;
        let base = slope(curve, low, f64::from(until).max(low + 1.0));
        let place = if until > self.smallest_members {
            format!("from {low:.0} to {until}")
        } else {
            format!("at {low:.0}")
        };
        format!("{base} {place} members, then {}", knees.join(", then "))
    }
}

/// Returns the law before the first knee in words.
fn slope(curve: &LawCurve, low: f64, high: f64) -> String {
    let rate = *curve.coefficients.get(1).unwrap_or(&0.0);
    // A hinge needs some slope before it, which may be too small to count.
    let level = curve.at(low).abs().max(curve.at(high).abs());
    if curve.shape == LawShape::LinearHinge && (rate * (high - low)).abs() <= EQUIVALENCE * level {
        return "flat".into();
    }
    let (change, how) = match curve.shape.base() {
        LawShape::Logarithmic => {
            let doubling = signed(rate * LN_2);
            (rate, format!("with the logarithm of the ring: {doubling} for each doubling"))
        }
        LawShape::Linear => {
            (rate, format!("linearly with the ring: {} for each further member", signed(rate)))
        }
        LawShape::Saturating => {
            let half = 1.0 + LN_2 * curve.turns.first().unwrap_or(&0.0);
            (rate, format!("and levels off (half of the change by {half:.0} members)"))
        }
        LawShape::Sigmoid => {
            let half = curve.turns.first().unwrap_or(&0.0);
            (rate, format!("and levels off (half of the change by {half:.0} members)"))
        }
        LawShape::Unfinished | LawShape::Slowing => {
            (curve.at(high) - curve.at(low), "smoothly".into())
        }
        LawShape::Quadratic => {
            (curve.at(high) - curve.at(low), "with the square of the ring".into())
        }
        _ => return "flat".into(),
    };
    format!("{} {how}", if change < 0.0 { "falls" } else { "grows" })
}

fn knee_in_words(curve: &LawCurve, knee: &Knee) -> String {
    let place = format!("a knee between {} and {}", knee.low_members, knee.high_members);
    let single = if knee.sizes_after == 1 { " (seen at one size only)" } else { "" };
    if curve.shape == LawShape::Ramp && knee.at_members > curve.turns[1] {
        return format!("flat again after {place}{single}");
    }
    let Some(factor) = knee.factor else {
        let change = curve.at(knee.at_members) - curve.at(f64::from(knee.low_members));
        return format!("{place}: {}{single}", signed(change));
    };
    if curve.shape == LawShape::FlatLogarithmic {
        let doubling = signed(curve.coefficients[1] * LN_2);
        return format!("{place}: {doubling} for each doubling from there{single}");
    }
    let mut change = times(factor) + if factor < 1.0 { " faster" } else { " slower" };
    if knee.kind == TurnKind::Hinge {
        change += &format!(" by {:.0} members", knee.at_members);
    }
    if let (Some(low), Some(high)) = (knee.factor_low, knee.factor_high) {
        change += &format!(" ({} to {})", times(low), times(high));
    }
    format!("{place}: {change}{single}")
}

//! An estimate: a value with its interval, the speed at which it was measured, and its rounds.
//!
//! Which interval it has depends on what was seen of the CPU's speed. Of 1,000 ns, at 95 %:
//!
//! - *Full speed*, 20 rounds ([`Estimate::at_full_speed`]): the rounds leave a standard error of
//!   10 ns, and launches scatter by tau = 1 %. sqrt((2.093 * 10)^2 + (1.960 * 0.01 * 1000)^2) = 28.7,
//!   so 971 to 1,029. More rounds make the first term smaller, never the second.
//! - *Few rounds* ([`Estimate::in_few_rounds`]): the same with the error of few figures, for which a
//!   scatter between rounds is assumed beside the one that was seen.
//! - *On a shared core* ([`Estimate::as_it_was`]): like few rounds, with the larger scatters of such
//!   cores, both 7 %. It is shown with a mark, and not quotable ([`crate::quote`]).
//! - *Not judged* ([`Estimate::over`]): a bootstrap over rounds, from five on; it does not cover
//!   launches.
//!
//! A difference keeps its sign: -5 ns stay -5 ns, with an interval that includes zero.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use stats::ratio::ExtraUncertainty;
use stats::{
    Center, FewFigures, Interval, PriorScatter, bootstrap, median, normal_quantile,
    student_quantile,
};

use rundata::experiment::named;

/// The speed of the CPU at which an estimate was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speed {
    /// Full speed: clean slices in many rounds.
    Full,
    /// Full speed, seen in few rounds: the interval is wider for it.
    FewRounds,
    /// Core as it was: all slices, as too few were clean.
    Contended,
    /// Core as it was: all slices, as competing tasks ran in or near most of them.
    NotAlone,
    /// CPU time of the members, as competing tasks ran in or near most slices.
    CpuTime,
    /// Not judged: no reference quanta, or slices too long to be judged by them.
    #[default]
    NotJudged,
}

named!(Speed, "speed", Full => "full", FewRounds => "few_rounds", Contended => "contended",
    NotAlone => "not_alone", CpuTime => "cpu_time", NotJudged => "not_judged");

impl Speed {
    /// Returns whether the speed is full, seen in many rounds or in few.
    pub fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::FewRounds)
    }

    /// Returns whether the estimate is of the core as it was, which is not quotable.
    pub fn is_as_it_was(self) -> bool {
        matches!(self, Self::Contended | Self::NotAlone | Self::CpuTime)
    }
}

/// A value with its interval. Signed: a difference below zero stays below zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "StoredEstimate")]
pub struct Estimate {
    /// At full speed the median of all clean slices, or a difference of such medians; else the
    /// median over rounds, each by the median of its slices.
    pub value: f64,
    /// Standard error within the run, without the scatter between launches; absent without an
    /// interval.
    pub standard_error: Option<f64>,
    /// Lower end of the interval; absent with fewer rounds or clean slices than an interval needs.
    pub low: Option<f64>,
    /// Upper end of the interval; absent as `low`.
    pub high: Option<f64>,
    /// Nominal coverage of the interval: 0.95 is 95 %.
    pub confidence: f64,
    /// Whether there is an interval and it excludes zero.
    pub resolved: bool,
    /// Rounds behind the estimate.
    pub rounds: u32,
    /// The speed of the CPU.
    pub speed: Speed,
    /// Upper bound of the value at full speed, where that was not seen: the fastest quarter of the
    /// slices, as sharing a core never makes one faster. Absent where nothing is known.
    #[serde(default)]
    pub at_most: Option<f64>,
}

/// An estimate as it is written, with the reason if it is not quotable.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Told")]
struct StoredEstimate {
    /// At full speed the median of all clean slices, or a difference of such medians; else the
    /// median over rounds. For quoting only without `not_quotable`.
    value: f64,
    /// Standard error within the run, without the scatter between launches; absent without an
    /// interval.
    standard_error: Option<f64>,
    /// Lower end of the interval; absent with fewer rounds or clean slices than an interval needs.
    low: Option<f64>,
    /// Upper end of the interval; absent as `low`.
    high: Option<f64>,
    /// Nominal coverage of the interval: 0.95 is 95 %.
    confidence: f64,
    /// Whether there is an interval and it excludes zero.
    resolved: bool,
    /// Rounds behind the estimate.
    rounds: u32,
    /// The speed of the CPU: `full` and `few_rounds` are at full speed, `contended`,
    /// `not_alone` and `cpu_time` on a shared core or CPU.
    speed: Speed,
    /// Upper bound of the figure at full speed, where that was not seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    /// The reason why no ranking, law, verdict or comparison uses the estimate; absent if it is
    /// quotable. A cost must be above zero as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_quotable: Option<String>,
}

impl JsonSchema for Estimate {
    fn schema_name() -> Cow<'static, str> {
        "Estimate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        StoredEstimate::json_schema(generator)
    }
}

impl From<Estimate> for StoredEstimate {
    fn from(estimate: Estimate) -> Self {
        Self {
            value: estimate.value,
            standard_error: estimate.standard_error,
            low: estimate.low,
            high: estimate.high,
            confidence: estimate.confidence,
            resolved: estimate.resolved,
            rounds: estimate.rounds,
            speed: estimate.speed,
            at_most: estimate.at_most,
            not_quotable: estimate.quote().err().map(|why| why.to_string()),
        }
    }
}

/// Prior standard deviation of rounds on a shared core, relative to the times (launches on the test
/// machines, docs/validation.md).
const SHARED_ROUND_SCATTER: f64 = 0.07;
/// Degrees of freedom of that prior; assumed.
const SHARED_FREEDOM: f64 = 4.0;
/// Relative scatter between launches on a core that is shared about as much: with 6 % 91 % of 2,890
/// intervals covered the median of such launches, and with 8 % 95 % (docs/validation.md).
pub const SHARED_LAUNCH_SCATTER: f64 = 0.07;

/// Relative error of a launch's clock: quanta come in steps of up to 10 ns.
const CLOCK_ERROR: f64 = 0.001;

/// Returns the ends of an interval about a value above zero that is further uncertain by `half_width`,
/// of its logarithm. The distances of the ends from the value, as logarithms, add up by their squares.
pub(crate) fn widened_ends(value: f64, [low, high]: [f64; 2], half_width: f64) -> [f64; 2] {
    let factor = |end: f64| (end / value).ln().hypot(half_width).exp();
    [value / factor(low), value * factor(high)]
}

impl Estimate {
    /// Builds an estimate without an interval.
    pub(crate) fn without_interval(value: f64, rounds: u32, confidence: f64, speed: Speed) -> Self {
        Self {
            value,
            standard_error: None,
            low: None,
            high: None,
            confidence,
            resolved: false,
            rounds,
            speed,
            at_most: None,
        }
    }

    /// Returns the estimate of a value above zero with an interval that also has the scatter between
    /// launches, a standard deviation as a share; as it is where its interval reaches to zero.
    pub(crate) fn widened_by_launches(self, scatter: f64) -> Self {
        let known = (self.standard_error, self.interval(), normal_quantile(self.confidence));
        let (Some(error), Some(interval), Some(deviations)) = known else { return self };
        if interval.low <= 0.0 {
            return self;
        }
        let ends = [interval.low, interval.high];
        let [low, high] = widened_ends(self.value, ends, deviations * scatter);
        self.with_interval(error.hypot(scatter * self.value), low, high)
    }

    /// Returns the estimate with this interval.
    fn with_interval(self, standard_error: f64, low: f64, high: f64) -> Self {
        Self {
            standard_error: Some(standard_error),
            low: Some(low),
            high: Some(high),
            resolved: low > 0.0 || high < 0.0,
            ..self
        }
    }

    /// Builds the median of `figures`, one a round, with a bootstrap interval from `minimum_rounds`
    /// on. Absent without figures. The interval does not cover variation between launches.
    pub fn over(figures: &[f64], minimum_rounds: u32, confidence: f64, seed: u64) -> Option<Self> {
        Self::middle(figures, Center::Median, minimum_rounds, confidence, seed)
    }

    /// Like [`Self::over`], with another center than the median.
    pub fn middle(
        figures: &[f64],
        center: Center,
        minimum_rounds: u32,
        confidence: f64,
        seed: u64,
    ) -> Option<Self> {
        let rounds = figures.len() as u32;
        let bare =
            Self::without_interval(center.compute(figures)?, rounds, confidence, Speed::NotJudged);
        if rounds < minimum_rounds {
            return Some(bare);
        }
        let Some(resampled) = bootstrap(figures, center, confidence, seed) else {
            return Some(bare);
        };
        let interval = resampled.interval;
        Some(bare.with_interval(resampled.standard_error, interval.low, interval.high))
    }

    /// Builds an estimate of clean slices: value +- sqrt((t(m - 1) s)^2 + (z tau value)^2), with s its
    /// standard error over m resampled rounds and tau the scatter between launches. Absent below
    /// two rounds.
    pub fn at_full_speed(
        value: f64,
        standard_error: f64,
        rounds: u32,
        launch_scatter: f64,
        confidence: f64,
    ) -> Option<Self> {
        let t = student_quantile(confidence, f64::from(rounds) - 1.0)?;
        let z = normal_quantile(confidence)?;
        let half = (t * standard_error).hypot(z * launch_scatter * value);
        if !half.is_finite() {
            return None;
        }
        let bare = Self::without_interval(value, rounds, confidence, Speed::Full);
        Some(bare.with_interval(standard_error, value - half, value + half))
    }

    /// Builds an estimate of clean slices in few rounds: value +- sqrt((t(f) s)^2 + (z tau value)^2),
    /// with s its standard error, f the degrees of freedom of that, and tau the scatter between
    /// launches. Absent below one degree of freedom.
    pub fn in_few_rounds(few: FewFigures, launch_scatter: f64, confidence: f64) -> Option<Self> {
        let t = student_quantile(confidence, few.freedom)?;
        let z = normal_quantile(confidence)?;
        let FewFigures { value, standard_error, rounds, .. } = few;
        // Comparisons use the normal quantile, as for many degrees of freedom.
        let standard_error = t / z * standard_error;
        let half = z * standard_error.hypot(launch_scatter * value);
        if !half.is_finite() {
            return None;
        }
        let bare = Self::without_interval(value, rounds, confidence, Speed::FewRounds);
        Some(bare.with_interval(standard_error, value - half, value + half))
    }

    /// Builds an estimate of the parts of something that went on by itself, so that nobody judged the
    /// speed: value +- t(f) s, with s its standard error and f the degrees of freedom of that. The
    /// interval does not cover variation between launches. Absent below one degree of freedom.
    pub(crate) fn of_parts(figures: FewFigures, confidence: f64) -> Option<Self> {
        let found = Self::in_few_rounds(figures, 0.0, confidence)?;
        Some(Self { speed: Speed::NotJudged, ..found })
    }

    /// Returns the estimate of a value from that of its logarithm.
    pub(crate) fn exp(self) -> Self {
        let value = self.value.exp();
        let bare = Self::without_interval(value, self.rounds, self.confidence, self.speed);
        match (self.standard_error, self.interval()) {
            (Some(error), Some(ends)) => {
                bare.with_interval(error * value, ends.low.exp(), ends.high.exp())
            }
            _ => bare,
        }
    }

    /// Builds the median of `figures`, one a round, of a core as it was, with an interval that covers
    /// launches in the same state. For a difference, `scale` is the size of the times that it is
    /// made of, as these scatter. Absent without figures.
    pub fn as_it_was(
        figures: &[f64],
        scale: Option<f64>,
        confidence: f64,
        speed: Speed,
    ) -> Option<Self> {
        Self::from_shared(shared_figures(figures, scale)?, confidence, speed)
    }

    /// Builds the estimate of figures that were taken on a shared core, `speed` says how.
    pub(crate) fn from_shared(few: FewFigures, confidence: f64, speed: Speed) -> Option<Self> {
        let found = Self::in_few_rounds(few, SHARED_LAUNCH_SCATTER, confidence)?;
        Some(Self { speed, ..found })
    }

    /// Returns the estimate with the standard error that its interval stands for, computed on the
    /// logarithm.
    ///
    /// Times of commands have long tails: their standard error can be larger than the median, although
    /// the median itself is well known. A median of 0.9 ms with the interval 0.8 to 3.9 ms has the
    /// relative error ln(3.9 / 0.8) / 2 / 1.96, 40 %.
    pub fn with_error_of_interval(self) -> Self {
        let mut standard_error = None;
        if let (Some(interval), Some(quantile)) =
            (self.interval(), normal_quantile(self.confidence))
        {
            if interval.low > 0.0 {
                let half_width = (interval.high / interval.low).ln() / 2.0;
                standard_error = Some(half_width / quantile * self.value);
            }
        }
        Self { standard_error, ..self }
    }

    /// Marks an estimate that was measured beside competing tasks.
    pub(crate) fn not_alone(self) -> Self {
        Self { speed: Speed::NotAlone, ..self }
    }

    /// Removes the interval, as `--strict` does, of an estimate that was not seen at full speed in
    /// many rounds.
    pub(crate) fn strict(self) -> Self {
        let speed = match self.speed {
            Speed::FewRounds => Speed::Contended,
            Speed::CpuTime => Speed::NotAlone,
            speed => speed,
        };
        match speed {
            Speed::Contended | Speed::NotAlone => {
                Self::without_interval(self.value, self.rounds, self.confidence, speed)
            }
            _ => self,
        }
    }

    /// Returns the estimate in another unit; absent for a factor that is not above zero.
    pub fn scaled(&self, factor: f64) -> Option<Self> {
        if factor > 0.0 { Some(self.rescaled(factor)) } else { None }
    }

    fn rescaled(mut self, factor: f64) -> Self {
        self.value *= factor;
        let rest = [&mut self.standard_error, &mut self.low, &mut self.high, &mut self.at_most];
        for figure in rest.into_iter().flatten() {
            *figure *= factor;
        }
        self
    }

    /// Returns the estimate with an interval widened by an uncertainty relative to its value.
    pub fn widened_by(&self, extra: ExtraUncertainty) -> Self {
        let estimate = self.times_factor(1.0, extra.error);
        let known = (estimate.interval(), estimate.standard_error);
        let (Some(interval), Some(error)) = known else { return estimate };
        let slack = extra.slack * estimate.value.abs();
        estimate.with_interval(error, interval.low - slack, interval.high + slack)
    }

    /// Returns the estimate times a factor that is known to a standard error of `error`.
    pub fn times_factor(&self, factor: f64, error: f64) -> Self {
        let value = self.value * factor;
        let mut product = Self { value, low: None, high: None, resolved: false, ..*self };
        if let Some(at_most) = &mut product.at_most {
            *at_most *= factor;
        }
        if let Some(standard_error) = &mut product.standard_error {
            *standard_error = (*standard_error * factor).hypot(self.value * error);
        }
        let known = (product.standard_error, self.interval(), normal_quantile(self.confidence));
        let (Some(standard_error), Some(interval), Some(z)) = known else { return product };
        let half = (interval.half_width() * factor).hypot(z * error * self.value);
        product.with_interval(standard_error, value - half, value + half)
    }

    /// Converts a time in nanoseconds to cycles of the clock in GHz that it was measured at; absent
    /// unless at full speed, as the clock is not known.
    pub fn cycles(&self, clock_ghz: f64) -> Option<Self> {
        if self.speed.is_full() {
            Some(self.times_factor(clock_ghz, clock_ghz * CLOCK_ERROR))
        } else {
            None
        }
    }

    /// Returns the interval, if there is one.
    pub fn interval(&self) -> Option<Interval> {
        let (low, high) = (self.low?, self.high?);
        Some(Interval { low, high, confidence: self.confidence })
    }

    /// Returns the half-width of the interval relative to the value: 0.01 is 1 %. Absent without an
    /// interval and for a value of zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        let half = self.interval()?.half_width();
        if self.value == 0.0 { None } else { Some(half / self.value.abs()) }
    }
}

impl Estimate {
    /// Returns the relative half-width by which a run stops; absent of the core as it was, which
    /// more rounds may still show at full speed.
    pub(crate) fn precision(&self) -> Option<f64> {
        if self.speed.is_as_it_was() { None } else { self.relative_half_width() }
    }
}

/// Returns the median of figures from a shared core, with the error that its usual scatter leaves.
/// `scale` is the size of the times that the figures are differences of; at least the median's own.
pub(crate) fn shared_figures(figures: &[f64], scale: Option<f64>) -> Option<FewFigures> {
    let value = median(figures)?;
    let scale = match scale {
        Some(scale) => scale.max(value.abs()),
        None => value.abs(),
    };
    let deviation = SHARED_ROUND_SCATTER * scale;
    FewFigures::robust(figures, PriorScatter { deviation, freedom: SHARED_FREEDOM })
}

/// Returns the widest of these relative half-widths; absent as long as one has no interval.
pub(crate) fn widest(widths: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    widths.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_at_full_speed_has_both_terms() {
        // t(0.975; 19) = 2.093, z = 1.960 (any table): sqrt((2.093 x 10)^2 + (1.960 x 0.01 x
        // 1000)^2) = 28.67.
        let found = Estimate::at_full_speed(1000.0, 10.0, 20, 0.01, 0.95).unwrap();
        assert!((found.high.unwrap() - 1028.67).abs() < 0.01, "{found:?}");
        assert!((found.low.unwrap() - 971.33).abs() < 0.01, "{found:?}");
        assert!(found.resolved && found.speed == Speed::Full);
        // A difference near zero keeps its sign, and is not resolved.
        let below = Estimate::at_full_speed(-5.0, 10.0, 20, 0.01, 0.95).unwrap();
        assert!(below.value < 0.0 && !below.resolved, "{below:?}");
        assert_eq!(Estimate::at_full_speed(1000.0, 10.0, 1, 0.01, 0.95), None);
        assert_eq!(Estimate::at_full_speed(f64::NAN, 10.0, 20, 0.01, 0.95), None);
    }

    /// 1000 ns at 4 GHz, known to 1 %, with a clock that is known to 0.1 %: sqrt(40^2 + 4^2).
    #[test]
    fn only_a_time_at_full_speed_has_cycles() {
        let full = Estimate::at_full_speed(1000.0, 10.0, 20, 0.0, 0.95).unwrap();
        let cycles = full.cycles(4.0).unwrap();
        assert_eq!((cycles.value, cycles.speed), (4000.0, Speed::Full));
        assert!((cycles.standard_error.unwrap() - 40.20).abs() < 0.01, "{cycles:?}");
        let others = [Speed::Contended, Speed::NotAlone, Speed::CpuTime, Speed::NotJudged];
        assert!(
            others.iter().all(|speed| Estimate { speed: *speed, ..full }.cycles(4.0).is_none())
        );
    }

    #[test]
    fn over_rounds_there_is_an_interval_from_so_many_on() {
        let few = Estimate::over(&[1.0, 2.0, 3.0, 4.0], 5, 0.95, 1).unwrap();
        assert_eq!((few.value, few.interval(), few.standard_error), (2.5, None, None));
        let enough = Estimate::over(&[1.0, 2.0, 3.0, 4.0, 5.0], 5, 0.95, 1).unwrap();
        assert!(enough.interval().is_some() && enough.standard_error.is_some());
        assert_eq!((enough.speed, Estimate::over(&[], 5, 0.95, 1)), (Speed::NotJudged, None));
    }
}

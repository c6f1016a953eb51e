//! Intervals for means of a handful of figures that are taken to be normal (Student 1908).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::location::Interval;
use crate::location::mean;

/// Mean and scatter of at least two figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation, with n - 1 below the squares.
    pub deviation: f64,
    /// Number of figures.
    pub count: u32,
}

impl Summary {
    /// Mean and scatter of `values`. Absent below two figures, as one has no scatter, and if a
    /// figure is not finite or the squares overflow.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let mean = mean(values)?;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (squares / (values.len() - 1) as f64).sqrt();
        let count = u32::try_from(values.len()).ok()?;
        deviation.is_finite().then_some(Self { mean, deviation, count })
    }

    /// Degrees of freedom of the scatter.
    pub fn freedom(&self) -> f64 {
        f64::from(self.count.saturating_sub(1))
    }

    /// Half-width of Student's interval for the mean: t(1 - (1 - confidence) / 2; n - 1) s / sqrt(n).
    /// Absent for a confidence outside 0 to 1 and below two figures.
    pub fn half_width(&self, confidence: f64) -> Option<f64> {
        let t = student_quantile(confidence, self.freedom())?;
        Some(t * self.deviation / f64::from(self.count).sqrt())
    }

    /// Student's interval for the mean.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        let half = self.half_width(confidence)?;
        Some(Interval { low: self.mean - half, high: self.mean + half, confidence })
    }

    /// What a published interval for the mean of `count` figures says of them. The inverse of
    /// [`Self::interval`]; absent where there is none.
    pub fn from_interval(interval: Interval, count: u32) -> Option<Self> {
        let t = student_quantile(interval.confidence, f64::from(count.checked_sub(1)?))?;
        let deviation = interval.half_width() * f64::from(count).sqrt() / t;
        let mean = interval.low + interval.half_width();
        let sound = deviation.is_finite() && deviation >= 0.0 && mean.is_finite();
        sound.then_some(Self { mean, deviation, count })
    }
}

/// Student's quantile that leaves `confidence` between -t and t; `freedom` degrees. Absent for a
/// confidence outside 0 to 1 (exclusive) or less than one degree.
pub fn student_quantile(confidence: f64, freedom: f64) -> Option<f64> {
    let sound = confidence > 0.0 && confidence < 1.0 && freedom >= 1.0;
    let distribution = sound.then(|| StudentsT::new(0.0, 1.0, freedom).ok()).flatten()?;
    Some(distribution.inverse_cdf(0.5 + confidence / 2.0))
}

/// The normal quantile that leaves `confidence` between -z and z. Absent for a confidence outside 0 to 1
/// (exclusive).
pub fn normal_quantile(confidence: f64) -> Option<f64> {
    let sound = confidence > 0.0 && confidence < 1.0;
    sound.then(|| Normal::standard().inverse_cdf(0.5 + confidence / 2.0))
}

/// A move of a mean as a part of it: 0.01 is 1 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// The move; signed.
    pub part: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl Moved {
    /// Welch's interval (1947) for a difference of means with scatters of their own, the degrees of
    /// freedom by Satterthwaite (1946), over the mean before.
    pub fn of(before: &Summary, after: &Summary, confidence: f64) -> Option<Self> {
        let share = |s: &Summary| s.deviation * s.deviation / f64::from(s.count);
        let (a, b) = (share(before), share(after));
        let freedom = (a + b) * (a + b) / (a * a / before.freedom() + b * b / after.freedom());
        let level = before.mean.abs();
        let part = (after.mean - before.mean) / level;
        let half = student_quantile(confidence, freedom)? * (a + b).sqrt() / level;
        let sound = part.is_finite() && half.is_finite();
        sound.then_some(Self { part, low: part - half, high: part + half })
    }

    /// Whether the interval excludes no move.
    pub fn is_resolved(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::scatter::Growth;

    #[test]
    fn published_t_table() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2 (t).
        for (confidence, freedom, t) in [
            (0.90, 1.0, 6.314),
            (0.90, 5.0, 2.015),
            (0.90, 10.0, 1.812),
            (0.90, 30.0, 1.697),
            (0.95, 1.0, 12.706),
            (0.95, 2.0, 4.303),
            (0.95, 5.0, 2.571),
            (0.95, 10.0, 2.228),
            (0.95, 100.0, 1.984),
            (0.99, 5.0, 4.032),
            (0.99, 10.0, 3.169),
        ] {
            let ours = student_quantile(confidence, freedom).unwrap();
            assert!((ours - t).abs() < 5.1e-4, "{confidence}, {freedom}: {ours} is not {t}");
        }
    }

    #[test]
    fn students_own_data() {
        // Student (1908), the additional sleep of ten patients, drug 2 minus drug 1: mean 1.58, s 1.23
        // (n - 1), 95 % interval 0.70 to 2.46 as R's t.test prints it.
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let summary = Summary::of(&differences).unwrap();
        let interval = summary.interval(0.95).unwrap();
        assert!((summary.mean - 1.58).abs() < 1e-12);
        assert!((summary.deviation - 1.229995).abs() < 1e-6, "{summary:?}");
        assert!((interval.low - 0.7001142).abs() < 1e-6, "{interval:?}");
        assert!((interval.high - 2.4598858).abs() < 1e-6, "{interval:?}");
        let back = Summary::from_interval(interval, 10).unwrap();
        assert!((back.deviation - summary.deviation).abs() < 1e-9, "{back:?}");
    }

    #[test]
    fn too_few_or_senseless_figures_have_no_interval() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[3.0]), None);
        assert_eq!(Summary::of(&[3.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[f64::MAX, -f64::MAX]), None);
        let two = Summary::of(&[1.0, 3.0]).unwrap();
        assert_eq!((two.half_width(1.0), two.half_width(0.0)), (None, None));
        let still = Summary::of(&[2.0, 2.0]).unwrap();
        assert_eq!(still.half_width(0.9), Some(0.0));
        assert_eq!(Growth::of(&still, &two, 0.9), None);
        assert_eq!(Growth::of(&two, &still, 0.9), None);
    }

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
    }

    fn six(random: &mut ChaCha8Rng, deviation: f64) -> Summary {
        let values: Vec<f64> = (0..6).map(|_| 100.0 + deviation * normal(random)).collect();
        Summary::of(&values).unwrap()
    }

    /// Six runs, as the paper has them: a nominal 90 % covers 88 to 92 %.
    #[test]
    fn both_intervals_cover_what_they_say() {
        const TRIALS: u64 = 2000;
        let (mut means, mut growths) = (0, 0);
        for trial in 0..TRIALS {
            let mut random = ChaCha8Rng::seed_from_u64(1908 + trial);
            let (before, after) = (six(&mut random, 1.0), six(&mut random, 3.0));
            let mean = before.interval(0.9).unwrap();
            means += u64::from(mean.low <= 100.0 && 100.0 <= mean.high);
            let growth = Growth::of(&before, &after, 0.9).unwrap();
            growths += u64::from(growth.low <= 3.0 && 3.0 <= growth.high);
        }
        for (what, covered) in [("mean", means), ("growth", growths)] {
            let percent = 100.0 * covered as f64 / TRIALS as f64;
            println!("{what}: {percent:.1} %");
            assert!((88.0..=92.0).contains(&percent), "{what}: {percent:.1} %");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_figures_have_an_ordered_interval_or_none(
            before in proptest::collection::vec(any::<f64>(), 0..5),
            after in proptest::collection::vec(-1e6..1e6_f64, 0..5),
            confidence in prop_oneof![0.8..0.999_f64, Just(0.0), Just(1.0), Just(f64::NAN)],
        ) {
            for values in [&before, &after] {
                let interval = Summary::of(values).and_then(|s| s.interval(confidence));
                prop_assert!(interval.is_none_or(|i| i.low <= i.high), "{:?}", interval);
            }
            if let (Some(before), Some(after)) = (Summary::of(&before), Summary::of(&after)) {
                let growth = Growth::of(&before, &after, confidence);
                prop_assert!(growth.is_none_or(|g| g.low <= g.ratio && g.ratio <= g.high), "{:?}", growth);
            }
        }
    }
}

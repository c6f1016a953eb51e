//! The periodogram of points over a grid of frequencies, summed over windows.

use std::f64::consts::TAU;

/// Grid points within one resolution width 1 / span: between two of them a peak loses about 1 %.
const OVERSAMPLING: usize = 8;
/// Most grid points: a span of some seconds.
const MOST_FREQUENCIES: f64 = 100_000.0;
/// A frequency and how many of its multiples, itself included, make its score.
pub(crate) const HARMONICS: usize = 3;
/// Grid points on each side whose median is the level of a neighbourhood: several lines wide, so that
/// a line does not raise it, and narrow enough for what rises towards low frequencies.
const NEIGHBOURHOOD: usize = 8 * OVERSAMPLING;

/// Powers at frequencies that are multiples of a step, from the `first`-th, in 1 / ns.
pub(crate) struct Spectrum {
    first: usize,
    step: f64,
    /// Those that can be a fundamental; the powers go on to its last harmonic.
    fundamentals: usize,
    powers: Vec<f64>,
}

impl Spectrum {
    /// From `least_periods` in a span to `last` and its harmonics. None where the range is empty, too
    /// wide, or not of numbers.
    pub(crate) fn of(
        windows: &[Vec<f64>],
        least_periods: u32,
        last: f64,
        span_ns: f64,
    ) -> Option<Self> {
        let step = 1.0 / (OVERSAMPLING as f64 * span_ns);
        let first = OVERSAMPLING * least_periods as usize;
        let fundamentals = (last / step).floor() - first as f64;
        let finite = windows.iter().flatten().all(|moment| moment.is_finite());
        if !finite || !(2.0..=MOST_FREQUENCIES).contains(&fundamentals) {
            return None;
        }
        let fundamentals = fundamentals as usize;
        let many = HARMONICS * (first + fundamentals) - first;
        let mut powers = vec![0.0; many];
        for moments in windows.iter().filter(|moments| !moments.is_empty()) {
            add(&mut powers, moments, first as f64 * step, step);
        }
        Some(Self { first, step, fundamentals, powers })
    }

    pub(crate) fn step(&self) -> f64 {
        self.step
    }

    /// Frequencies whose powers are independent of one another, about.
    pub(crate) fn independent(&self) -> f64 {
        (2.0 * self.fundamentals as f64 / OVERSAMPLING as f64).max(1.0)
    }

    /// The least power at the harmonics of each fundamental, where those of a neighbourhood whose
    /// median is above `middle` are scaled down to it.
    pub(crate) fn scores(&self, middle: f64) -> Vec<f64> {
        let scale = |index: usize| {
            let from = index.saturating_sub(NEIGHBOURHOOD);
            let to = (index + NEIGHBOURHOOD + 1).min(self.powers.len());
            let median = crate::location::median(&self.powers[from..to]).unwrap_or(middle);
            middle / median.max(middle)
        };
        let scaled: Vec<f64> =
            self.powers.iter().enumerate().map(|(index, power)| power * scale(index)).collect();
        let harmonic = |index: usize, multiple: usize| {
            scaled.get(multiple * (self.first + index) - self.first).copied().unwrap_or(0.0)
        };
        let score = |index| {
            (1..=HARMONICS).map(|multiple| harmonic(index, multiple)).fold(f64::MAX, f64::min)
        };
        (0..self.fundamentals).map(score).collect()
    }

    /// Fundamentals whose score is higher than both neighbours', with it, ascending.
    pub(crate) fn peaks(&self, scores: &[f64]) -> Vec<(f64, f64)> {
        let at = |index: usize| (self.step * (self.first + index) as f64, scores[index]);
        let is_peak = |index: &usize| {
            let score = scores[*index];
            let below = index.checked_sub(1).and_then(|left| scores.get(left));
            let above = scores.get(index + 1);
            below.is_none_or(|left| *left <= score) && above.is_none_or(|right| *right < score)
        };
        (0..scores.len()).filter(is_peak).map(at).collect()
    }
}

/// One window's part. Each moment's phase turns by the same angle from frequency to frequency, so
/// that there are no sines in the loop.
fn add(powers: &mut [f64], moments: &[f64], first: f64, step: f64) {
    let turned = |frequency: f64| {
        moments.iter().map(move |moment| (TAU * (frequency * moment).fract()).sin_cos())
    };
    let mut phases: Vec<(f64, f64)> = turned(first).collect();
    let turns: Vec<(f64, f64)> = turned(step).collect();
    let many = moments.len() as f64;
    for power in powers {
        let (mut sine, mut cosine) = (0.0, 0.0);
        for ((s, c), (turn_s, turn_c)) in phases.iter_mut().zip(&turns) {
            sine += *s;
            cosine += *c;
            (*s, *c) = (*s * turn_c + *c * turn_s, *c * turn_c - *s * turn_s);
        }
        *power += (sine * sine + cosine * cosine) / many;
    }
}

fn power(windows: &[Vec<f64>], frequency: f64) -> f64 {
    let mut powers = [0.0];
    for moments in windows.iter().filter(|moments| !moments.is_empty()) {
        add(&mut powers, moments, frequency, 0.0);
    }
    powers[0]
}

/// The frequency of the peak within a grid step of `frequency` (golden section).
pub(crate) fn refine(windows: &[Vec<f64>], frequency: f64, step: f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let (mut low, mut high) = (frequency - step, frequency + step);
    for _ in 0..40 {
        let width = GOLDEN * (high - low);
        let (left, right) = (high - width, low + width);
        if power(windows, left) < power(windows, right) {
            low = left;
        } else {
            high = right;
        }
    }
    (low + high) / 2.0
}

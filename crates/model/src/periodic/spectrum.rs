//! The periodogram of points over a grid of frequencies, summed over windows.

use std::f64::consts::TAU;

/// Grid points within one resolution width 1 / span: between two of them a peak loses about 1 %.
const OVERSAMPLING: f64 = 8.0;
/// Most grid points: a span of some seconds.
const MOST_FREQUENCIES: f64 = 100_000.0;

/// Powers at frequencies `first`, `first` + `step`, ... in 1 / ns.
pub(super) struct Spectrum {
    first: f64,
    step: f64,
    powers: Vec<f64>,
}

impl Spectrum {
    /// None where the range is empty, too wide, or not of numbers.
    pub(super) fn of(windows: &[Vec<f64>], first: f64, last: f64, span_ns: f64) -> Option<Self> {
        let step = 1.0 / (OVERSAMPLING * span_ns);
        let many = ((last - first) / step).floor();
        let finite = windows.iter().flatten().all(|moment| moment.is_finite());
        if !finite || !(2.0..=MOST_FREQUENCIES).contains(&many) {
            return None;
        }
        let mut powers = vec![0.0; many as usize];
        for moments in windows.iter().filter(|moments| !moments.is_empty()) {
            add(&mut powers, moments, first, step);
        }
        Some(Self { first, step, powers })
    }

    pub(super) fn step(&self) -> f64 {
        self.step
    }

    pub(super) fn powers(&self) -> &[f64] {
        &self.powers
    }

    /// Frequencies whose powers are independent of one another, about.
    pub(super) fn independent(&self) -> f64 {
        (2.0 * self.powers.len() as f64 / OVERSAMPLING).max(1.0)
    }

    /// Frequencies that are higher than both neighbours, with their power, ascending.
    pub(super) fn peaks(&self) -> Vec<(f64, f64)> {
        let at = |index: usize| (self.first + self.step * index as f64, self.powers[index]);
        let is_peak = |index: &usize| {
            let power = self.powers[*index];
            let below = index.checked_sub(1).and_then(|left| self.powers.get(left));
            let above = self.powers.get(index + 1);
            below.is_none_or(|left| *left <= power) && above.is_none_or(|right| *right < power)
        };
        (0..self.powers.len()).filter(is_peak).map(at).collect()
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
pub(super) fn refine(windows: &[Vec<f64>], frequency: f64, step: f64) -> f64 {
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

//! Periods in the moments at which something happened, found without knowing what to look for.
//!
//! Interrupts came at 3, 7, 9, 11, 15 and 19 ms in a window of 20 ms. Each moment is a pointer that
//! turns once in a period: with 4 ms, those at 3, 7, 11, 15 and 19 ms all point the same way (three
//! quarters of a turn) and add up, while 9 ms points elsewhere; with 5 ms they point everywhere and
//! cancel. The length of the sum by frequency, squared, is the *periodogram*; a peak in it is a
//! period, refined by a line through moment against number. The multiples of the period in the window
//! are its *slots*: here five, all of them *hit*.
//!
//! ```text
//! moments  |  |   | | |   |   |        slots of 4 ms, from 3 ms:
//!          0  3   7 9 11  15  19  ms      3  7  11  15  19     9 is of no slot
//! ```
//!
//! Moments without a period make peaks too, and moments in clumps high ones at low frequencies.
//! [`find_period`] says how such peaks are told from a period.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use crate::distributions::gamma_quantile;
use crate::location::median;

/// Most moments of a search; further windows are left out of it.
const MAX_MOMENTS: usize = 6000;
/// Least number of periods in a window.
const MIN_PERIODS: usize = 4;
/// Shortest period: somewhat less than that of the fastest tick.
const MIN_PERIOD_NS: f64 = 800_000.0;
/// Probability with which moments without a period look as if they had one.
const FALSE_ALARM: f64 = 0.01;
/// Least share of the slots in which something happened.
const MIN_HIT: f64 = 0.5;
/// Least factor by which more moments lie near slots than would by chance.
const MIN_ABOVE_CHANCE: f64 = 1.5;
/// Largest distance of a moment from its slot, as a share of the period.
const TOLERANCE: f64 = 0.05;

/// Moments in windows of `span_ns`, each list from the start of its window, ascending. Windows need
/// not be in phase with one another.
#[derive(Clone, Copy, Debug)]
pub struct MomentWindows<'a> {
    /// Moments at which something happened, by window.
    pub moments: &'a [Vec<f64>],
    /// Stretches in which nothing could be seen, from and to: slots there do not count. As many
    /// lists as windows, or none.
    pub blind: &'a [Vec<(f64, f64)>],
    /// Length of a window.
    pub span_ns: f64,
}

/// A period and the moments that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// Time from one slot to the next, in nanoseconds.
    pub period_ns: f64,
    /// Share of the slots (multiples of the period within a window, but for those where nothing
    /// could be seen) in which something happened.
    pub hit: f64,
    /// Score over the one that chance reaches.
    pub strength: f64,
    /// For each window the indices of the moments that belong to the period: one a slot, the
    /// nearest.
    pub members: Vec<Vec<usize>>,
    /// Moments near slots over those that would be near by chance.
    above_chance: f64,
    /// Share of the moments that are near slots beyond chance, times the square of `hit`.
    explains: f64,
}

impl Period {
    /// Returns whether enough slots are hit, and by more moments than chance would.
    fn is_plausible(&self) -> bool {
        self.hit >= MIN_HIT && self.above_chance >= MIN_ABOVE_CHANCE
    }
}

/// Returns the period of moments. None where chance alone would do.
///
/// The periodogram of points (Schuster 1898; Rayleigh's statistic), R(f) = |sum exp(2 pi i f t)|^2
/// / n, summed over windows: for moments without a period Gamma(windows, 1). A comb is as high at
/// its harmonics, which mere clumps are not: the score of a frequency is the least of the powers at
/// f, 2 f and 3 f, each over the level of its neighbourhood. Of the frequencies that chance does not
/// reach, and half of whose slots are hit, the one counts that explains the most. The highest score
/// would not do: two combs of one period, a quarter of it apart, are highest at four times their
/// frequency.
pub fn find_period(windows: MomentWindows) -> Option<Period> {
    let used = windows_used(windows.moments);
    let spectrum = Periodogram::from_windows(used, windows.span_ns)?;
    let with_moments = used.iter().filter(|moments| !moments.is_empty()).count();
    let shape = with_moments as f64;
    // Chance must be as high at all harmonics at once.
    let alarm = (FALSE_ALARM / spectrum.independent()).powf(1.0 / HARMONICS as f64);
    let (level, middle) = (gamma_quantile(1.0 - alarm, shape)?, gamma_quantile(0.5, shape)?);
    let searched = MomentWindows { moments: used, ..windows };
    let mut best: Option<(f64, SpectrumPeak)> = None;
    for peak in spectrum.peaks(middle) {
        let is_above_chance = peak.score >= level;
        if !is_above_chance {
            continue;
        }
        let period = refine_period(&searched, 1.0 / peak.frequency, peak.score / level);
        let is_better = match &best {
            // Of equals the last: the highest frequency. A multiple of the right one has fewer hits.
            Some((explains, _)) => period.explains.total_cmp(explains).is_ge(),
            None => true,
        };
        if period.is_plausible() && is_better {
            best = Some((period.explains, peak));
        }
    }
    let (_, peak) = best?;
    let period = refine_period(&windows, 1.0 / peak.frequency, peak.score / level);
    if period.is_plausible() { Some(period) } else { None }
}

/// Returns as many windows, from the first, as the search has time for.
fn windows_used(windows: &[Vec<f64>]) -> &[Vec<f64>] {
    let (mut count, mut moments) = (0, 0);
    for window in windows {
        moments += window.len();
        if moments > MAX_MOMENTS {
            break;
        }
        count += 1;
    }
    &windows[..count.max(1).min(windows.len())]
}

/// The slots of a period in one window.
struct WindowSlots {
    /// Index of the moment nearest to each slot.
    by_slot: BTreeMap<i64, usize>,
    /// Number of moments near some slot.
    near: usize,
    /// Place of slot 0, in periods.
    phase: f64,
}

impl WindowSlots {
    fn moment(&self, slot: i64, period_ns: f64) -> f64 {
        (slot as f64 + self.phase) * period_ns
    }

    /// Counts the slots of a window that were hit or could have been.
    fn count_seen(&self, blind: &[(f64, f64)], span_ns: f64, period_ns: f64) -> usize {
        let margin_ns = TOLERANCE * period_ns;
        let mut seen = 0;
        for slot in -1.. {
            let moment = self.moment(slot, period_ns);
            let is_hit = self.by_slot.contains_key(&slot);
            let is_inside = is_hit || moment < span_ns;
            if !is_inside {
                break;
            }
            let is_blind = blind
                .iter()
                .any(|(from, to)| (from - margin_ns..=to + margin_ns).contains(&moment));
            seen += usize::from(is_hit || (moment >= 0.0 && !is_blind));
        }
        seen
    }
}

/// Finds the period exactly, and what belongs to it. The periodogram is blind to phase and gives the
/// period roughly; a line through its moments, moment against slot, gives it well.
fn refine_period(windows: &MomentWindows, roughly_ns: f64, strength: f64) -> Period {
    let mut period_ns = roughly_ns;
    for _ in 0..2 {
        let slots = slots_of_windows(windows.moments, period_ns);
        period_ns = slope(windows.moments, &slots).unwrap_or(period_ns);
    }
    let all_slots = slots_of_windows(windows.moments, period_ns);
    let (mut hit, mut seen, mut near) = (0, 0, 0);
    let (mut moments, mut by_chance) = (0, 0.0);
    let mut members = Vec::new();
    for (number, slots) in all_slots.into_iter().enumerate() {
        if !slots.by_slot.is_empty() {
            let blind = windows.blind.get(number).map_or(&[][..], Vec::as_slice);
            seen += slots.count_seen(blind, windows.span_ns, period_ns);
            hit += slots.by_slot.len();
        }
        near += slots.near;
        moments += windows.moments[number].len();
        by_chance += near_by_chance(windows.moments[number].len());
        members.push(slots.by_slot.into_values().collect());
    }
    let hit = if seen > 0 { hit as f64 / seen as f64 } else { 0.0 };
    Period {
        period_ns,
        hit,
        above_chance: near as f64 / by_chance,
        explains: hit * hit * (near as f64 - by_chance) / moments as f64,
        strength,
        members,
    }
}

/// Returns about how many moments lie near slots in a window where that many have no period: as
/// slots lie where the most are, two standard deviations above the mean.
fn near_by_chance(moments: usize) -> f64 {
    let mean = 2.0 * TOLERANCE * moments as f64;
    mean + 2.0 * mean.sqrt()
}

/// Returns the phase, in periods from 0 to 1, near which the most moments lie. Not their mean
/// direction: of two combs of one period that is in between.
fn densest_phase(moments: &[f64], period_ns: f64) -> f64 {
    let mut phases: Vec<f64> = moments.iter().map(|m| (m / period_ns).rem_euclid(1.0)).collect();
    phases.retain(|phase| phase.is_finite());
    phases.sort_by(f64::total_cmp);
    let count = phases.len();
    // A stretch may begin in one period and end in the next.
    for index in 0..count {
        phases.push(phases[index] + 1.0);
    }
    let (mut most, mut middle) = (None, 0.0);
    for start in 0..count {
        let end = phases.partition_point(|phase| phase - phases[start] <= 2.0 * TOLERANCE);
        let last = end.clamp(start + 1, start + count) - 1;
        // Of equals the first.
        if most.is_none_or(|most| last - start > most) {
            most = Some(last - start);
            middle = (phases[start] + phases[last]) / 2.0;
        }
    }
    middle.rem_euclid(1.0)
}

fn slots_of_windows(windows: &[Vec<f64>], period_ns: f64) -> Vec<WindowSlots> {
    windows.iter().map(|moments| slots_of_window(moments, period_ns)).collect()
}

/// Finds the moments of a window that are nearest to slots.
fn slots_of_window(moments: &[f64], period_ns: f64) -> WindowSlots {
    let phase = densest_phase(moments, period_ns);
    let mut nearest: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    let mut near = 0;
    for (index, moment) in moments.iter().enumerate() {
        let position = moment / period_ns - phase;
        let distance = (position - position.round()).abs();
        if distance <= TOLERANCE {
            near += 1;
            let slot = nearest.entry(position.round() as i64).or_insert((distance, index));
            if distance < slot.0 {
                *slot = (distance, index);
            }
        }
    }
    let by_slot = nearest.into_iter().map(|(slot, (_, index))| (slot, index)).collect();
    WindowSlots { by_slot, near, phase }
}

/// Fits moment against slot by least squares, with an intercept for each window; returns the slope.
fn slope(windows: &[Vec<f64>], all_slots: &[WindowSlots]) -> Option<f64> {
    let (mut products, mut squares) = (0.0, 0.0);
    for (moments, WindowSlots { by_slot, .. }) in windows.iter().zip(all_slots) {
        let (mut slot_sum, mut moment_sum) = (0.0, 0.0);
        for (slot, index) in by_slot {
            slot_sum += *slot as f64;
            moment_sum += moments[*index];
        }
        let count = by_slot.len() as f64;
        let (mean_slot, mean_moment) = (slot_sum / count, moment_sum / count);
        for (slot, index) in by_slot {
            let from_mean = *slot as f64 - mean_slot;
            products += from_mean * (moments[*index] - mean_moment);
            squares += from_mean * from_mean;
        }
    }
    if squares > 0.0 && products > 0.0 { Some(products / squares) } else { None }
}

/// Grid points within one resolution width 1 / span: between two of them a peak loses about 1 %.
const OVERSAMPLING: usize = 8;
/// Most grid points: a span of some seconds.
const MAX_FREQUENCIES: f64 = 100_000.0;
/// Number of multiples of a frequency, itself included, that make its score.
const HARMONICS: usize = 3;
/// Grid points on each side whose median is the level of a neighbourhood: several lines wide, so
/// that a line does not raise it, and narrow enough for powers that rise towards low frequencies.
const NEIGHBOURHOOD: usize = 8 * OVERSAMPLING;

/// The periodogram of points, summed over windows, at frequencies that are multiples of a step,
/// from the `first`-th, in 1 / ns.
struct Periodogram {
    first: usize,
    step: f64,
    /// Number of frequencies that can be a fundamental; the powers go on to its last harmonic.
    fundamentals: usize,
    powers: Vec<f64>,
}

/// A frequency, in 1 / ns, whose score is higher than both neighbours'.
#[derive(Clone, Copy)]
struct SpectrumPeak {
    frequency: f64,
    score: f64,
}

impl Periodogram {
    /// Builds the periodogram from [`MIN_PERIODS`] in a span to [`MIN_PERIOD_NS`] and its harmonics.
    /// None where the range is empty, too wide, or not of numbers.
    fn from_windows(windows: &[Vec<f64>], span_ns: f64) -> Option<Self> {
        let step = 1.0 / (OVERSAMPLING as f64 * span_ns);
        let first = OVERSAMPLING * MIN_PERIODS;
        let fundamentals = (1.0 / MIN_PERIOD_NS / step).floor() - first as f64;
        let is_finite = windows.iter().flatten().all(|moment| moment.is_finite());
        if !is_finite || !(2.0..=MAX_FREQUENCIES).contains(&fundamentals) {
            return None;
        }
        let fundamentals = fundamentals as usize;
        let count = HARMONICS * (first + fundamentals) - first;
        let powers = powers(windows, first as f64 * step, step, count);
        Some(Self { first, step, fundamentals, powers })
    }

    /// Returns about how many frequencies have powers that are independent of one another.
    fn independent(&self) -> f64 {
        (2.0 * self.fundamentals as f64 / OVERSAMPLING as f64).max(1.0)
    }

    /// Returns the least power at the harmonics of each fundamental, where the powers of a
    /// neighbourhood whose median is above `middle` are scaled down to it.
    fn scores(&self, middle: f64) -> Vec<f64> {
        let mut scaled = Vec::with_capacity(self.powers.len());
        for (index, power) in self.powers.iter().enumerate() {
            let to = (index + NEIGHBOURHOOD + 1).min(self.powers.len());
            let near = median(&self.powers[index.saturating_sub(NEIGHBOURHOOD)..to]);
            scaled.push(power * (middle / near.unwrap_or(middle).max(middle)));
        }
        let mut scores = Vec::with_capacity(self.fundamentals);
        for fundamental in 0..self.fundamentals {
            let mut score = f64::MAX;
            for multiple in 1..=HARMONICS {
                score = score.min(scaled[multiple * (self.first + fundamental) - self.first]);
            }
            scores.push(score);
        }
        scores
    }

    /// Returns the fundamentals whose score is higher than both neighbours', ascending; of equal
    /// neighbours the last.
    fn peaks(&self, middle: f64) -> Vec<SpectrumPeak> {
        let scores = self.scores(middle);
        let mut peaks = Vec::new();
        for (index, &score) in scores.iter().enumerate() {
            let is_above_left = index == 0 || scores[index - 1] <= score;
            let is_above_right = index + 1 == scores.len() || scores[index + 1] < score;
            if is_above_left && is_above_right {
                let frequency = self.step * (self.first + index) as f64;
                peaks.push(SpectrumPeak { frequency, score });
            }
        }
        peaks
    }
}

/// Computes the powers at `count` frequencies. Each moment's phase turns by the same angle from
/// frequency to frequency, so that there are no sines in the loop.
fn powers(windows: &[Vec<f64>], first: f64, step: f64, count: usize) -> Vec<f64> {
    let mut powers = vec![0.0; count];
    for moments in windows.iter().filter(|moments| !moments.is_empty()) {
        let mut phases = sines_and_cosines(moments, first);
        let turns = sines_and_cosines(moments, step);
        for power in &mut powers {
            let (mut sine, mut cosine) = (0.0, 0.0);
            for ((s, c), (turn_s, turn_c)) in phases.iter_mut().zip(&turns) {
                sine += *s;
                cosine += *c;
                (*s, *c) = (*s * turn_c + *c * turn_s, *c * turn_c - *s * turn_s);
            }
            *power += (sine * sine + cosine * cosine) / moments.len() as f64;
        }
    }
    powers
}

/// Returns sine and cosine of the phase of each moment at a frequency.
fn sines_and_cosines(moments: &[f64], frequency: f64) -> Vec<(f64, f64)> {
    moments.iter().map(|moment| (TAU * (frequency * moment).fract()).sin_cos()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const SPAN_NS: f64 = 250e6;

    /// Windows of a comb with jitter, of which each tooth is missing with some chance, and of other
    /// moments, so many a window, in one list.
    struct Made {
        period_ns: f64,
        jitter_ns: f64,
        missing: f64,
        others: usize,
    }

    impl Made {
        fn windows(&self, many: usize, seed: u64) -> Vec<Vec<f64>> {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut window = || {
                let mut moments = Vec::new();
                let mut moment = random.random_range(0.0..self.period_ns);
                while moment < SPAN_NS {
                    if random.random_range(0.0..1.0) >= self.missing {
                        moments.push(moment + random.random_range(0.0..=self.jitter_ns));
                    }
                    moment += self.period_ns;
                }
                moments.extend((0..self.others).map(|_| random.random_range(0.0..SPAN_NS)));
                moments.sort_by(f64::total_cmp);
                moments
            };
            (0..many).map(|_| window()).collect()
        }
    }

    fn search(moments: &[Vec<f64>]) -> Option<Period> {
        find_period(MomentWindows { moments, blind: &[], span_ns: SPAN_NS })
    }

    fn period_of(made: &Made, many: usize) -> Option<Period> {
        search(&made.windows(many, 7))
    }

    #[test]
    fn a_comb_is_found_by_its_period_and_not_by_its_harmonics() {
        for period_ns in [1e6, 10e6 / 3.0, 4e6, 10e6, 50e6] {
            let made = Made { period_ns, jitter_ns: 20_000.0, missing: 0.0, others: 0 };
            let found = period_of(&made, 5).unwrap_or_else(|| panic!("no period of {period_ns}"));
            assert!((found.period_ns / period_ns - 1.0).abs() < 1e-3, "{period_ns}: {found:?}");
            assert!(found.hit > 0.9, "{period_ns}: {}", found.hit);
        }
    }

    #[test]
    fn missing_teeth_and_other_moments_do_not_hide_it() {
        let made = Made { period_ns: 4e6, jitter_ns: 50_000.0, missing: 0.3, others: 60 };
        let found = period_of(&made, 8).expect("a comb");
        assert!((found.period_ns / 4e6 - 1.0).abs() < 1e-3, "{}", found.period_ns);
        // 70 % of the slots, and a few that others hit by chance.
        assert!((0.65..0.80).contains(&found.hit), "{}", found.hit);
        let members: usize = found.members.iter().map(Vec::len).sum();
        assert!(
            (330..=400).contains(&members),
            "{members} of 8 windows with 62 slots, 70 % filled"
        );
    }

    /// As seen on a virtual machine: beside the guest's tick something of the host's, at the same
    /// period and about a quarter of it later. Little power is at twice the frequency, and the most
    /// at four times.
    #[test]
    fn two_combs_of_one_period_are_found_one_by_one() {
        let tick = Made { period_ns: 4e6, jitter_ns: 60_000.0, missing: 0.02, others: 20 };
        let with_echo = |mut moments: Vec<f64>| {
            let of_five = |number: usize| number % 5 < 3;
            let later = moments.iter().enumerate().filter(|(number, _)| of_five(*number));
            let later: Vec<f64> = later.map(|(_, m)| m + 1e6).filter(|m| *m < SPAN_NS).collect();
            moments.extend(later);
            moments.sort_by(f64::total_cmp);
            moments
        };
        let windows: Vec<Vec<f64>> = tick.windows(8, 11).into_iter().map(with_echo).collect();
        let found = search(&windows).expect("a comb");
        assert!((found.period_ns / 4e6 - 1.0).abs() < 1e-3, "{}", found.period_ns);
        assert!(found.hit > 0.9, "{}", found.hit);
        let left = |(moments, members): (&Vec<f64>, &Vec<usize>)| {
            let rest = (0..moments.len()).filter(|number| !members.contains(number));
            rest.map(|number| moments[number]).collect::<Vec<f64>>()
        };
        let rest: Vec<Vec<f64>> = windows.iter().zip(&found.members).map(left).collect();
        // 60 % of its slots.
        let second = search(&rest).expect("the other one");
        assert!((second.period_ns / 4e6 - 1.0).abs() < 1e-3, "{}", second.period_ns);
        assert!((0.5..0.75).contains(&second.hit), "{}", second.hit);
    }

    #[test]
    fn moments_without_a_period_have_none() {
        let made = Made { period_ns: 1e12, jitter_ns: 0.0, missing: 1.0, others: 60 };
        let alarms = (0..100).filter(|seed| search(&made.windows(6, *seed)).is_some()).count();
        assert!(alarms <= 4, "{alarms} alarms of 100 where 1 are expected at most");
    }

    #[test]
    fn bursts_are_no_period() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut burst = || {
            let start = random.random_range(0.0..SPAN_NS - 1e6);
            (0..12).map(move |number| start + f64::from(number) * 70_000.0)
        };
        let mut window = || {
            let mut moments: Vec<f64> = (0..4).flat_map(|_| burst()).collect();
            moments.sort_by(f64::total_cmp);
            moments
        };
        let windows: Vec<Vec<f64>> = (0..8).map(|_| window()).collect();
        assert_eq!(search(&windows), None);
    }

    #[test]
    fn what_comes_in_clumps_only_is_no_period() {
        // Dense for a part of each window, at random places: as when the thread runs by turns.
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut window = || {
            let mut moments = Vec::new();
            let mut at: f64 = random.random_range(0.0..30e6);
            while at < SPAN_NS {
                let turn: f64 = random.random_range(2e6..12e6);
                moments.extend((0..60).map(|_| at + random.random_range(0.0..turn)));
                at += turn + random.random_range(5e6..25e6);
            }
            moments.retain(|moment| *moment < SPAN_NS);
            moments.sort_by(f64::total_cmp);
            moments
        };
        let windows: Vec<Vec<f64>> = (0..8).map(|_| window()).collect();
        assert_eq!(search(&windows), None);
    }

    #[test]
    fn slots_that_nobody_could_see_are_not_missed() {
        let made = Made { period_ns: 4e6, jitter_ns: 20_000.0, missing: 0.0, others: 0 };
        let hidden = (60e6, 200e6);
        let mut windows = made.windows(8, 3);
        windows.iter_mut().for_each(|moments| moments.retain(|m| *m < hidden.0 || *m > hidden.1));
        assert_eq!(search(&windows), None, "less than half of its slots");
        let blind = vec![vec![hidden]; 8];
        let found =
            find_period(MomentWindows { moments: &windows, blind: &blind, span_ns: SPAN_NS });
        let found = found.expect("all that could be seen");
        assert!(found.hit > 0.95 && (found.period_ns / 4e6 - 1.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn a_slow_period_is_found_from_a_few_moments_a_window() {
        let made = Made { period_ns: 50e6, jitter_ns: 300_000.0, missing: 0.0, others: 1 };
        let found = period_of(&made, 8).expect("a period");
        assert!((found.period_ns / 50e6 - 1.0).abs() < 5e-3, "{}", found.period_ns);
    }

    /// The search has time for some windows; what is found is told of all.
    #[test]
    fn windows_beyond_the_search_are_of_the_period_too() {
        let made = Made { period_ns: 4e6, jitter_ns: 1e3, missing: 0.0, others: 0 };
        let windows = made.windows(200, 1);
        let period = search(&windows).expect("a comb");
        assert!(windows_used(&windows).len() < 100);
        let [members, moments] = [period.members.concat().len(), windows.concat().len()];
        assert_eq!(members, moments);
    }

    #[test]
    fn nothing_has_no_period() {
        assert_eq!(search(&[]), None);
        assert_eq!(search(&[vec![], vec![]]), None);
        assert_eq!(search(&[vec![1e6]]), None);
        let moments = [vec![1e6, 5e6, 9e6]];
        assert_eq!(
            find_period(MomentWindows { moments: &moments, blind: &[], span_ns: 0.0 }),
            None
        );
    }

    proptest! {
        // Long windows have many frequencies.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn any_moments_have_a_finite_period_or_none(
            windows: Vec<Vec<f64>>,
            span_ns in prop::num::f64::ANY.prop_filter("short", |span| span.is_nan() || *span <= 1e9),
        ) {
            if let Some(period) = find_period(MomentWindows { moments: &windows, blind: &[], span_ns }) {
                prop_assert!(period.period_ns.is_finite());
            }
        }
    }
}

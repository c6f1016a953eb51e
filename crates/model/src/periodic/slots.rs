//! Which moments are of a period, and how many of its slots they fill.

use std::collections::BTreeMap;

use super::Windows;

/// How far from its slot a moment may be, as a share of the period.
const TOLERANCE: f64 = 0.05;

/// A period and what is of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// From one to the next, in nanoseconds.
    pub period_ns: f64,
    /// Share of the slots (multiples of the period within a window, but for those where nothing could
    /// be seen) in which something happened.
    pub hit: f64,
    /// Moments near slots over those that would be near by chance.
    pub above_chance: f64,
    /// Share of the moments that are near slots beyond chance, times the square of `hit`.
    pub explains: f64,
    /// How clear it is: its score over the one that chance reaches.
    pub strength: f64,
    /// For each window the numbers of the moments that are of the period: one a slot, the nearest.
    pub members: Vec<Vec<usize>>,
}

/// What is of a period in one window.
struct OfWindow {
    /// The moment nearest to each slot.
    by_slot: BTreeMap<i64, usize>,
    /// Moments near some slot.
    near: usize,
    /// Where slot 0 is, in periods.
    phase: f64,
}

/// The periodogram is blind to phase and gives the period roughly; a line through its moments, moment
/// against slot, gives it well.
pub(super) fn period(windows: &Windows, roughly_ns: f64, strength: f64) -> Period {
    let own = |period_ns: f64| -> Vec<OfWindow> {
        windows.moments.iter().map(|moments| of_window(moments, period_ns)).collect()
    };
    let period_ns = slope(windows.moments, &own(roughly_ns)).unwrap_or(roughly_ns);
    let all = own(period_ns);
    let (mut hit, mut slots) = (0, 0);
    for (number, of) in all.iter().enumerate().filter(|(_, of)| !of.by_slot.is_empty()) {
        let blind = windows.blind.get(number).map_or(&[][..], Vec::as_slice);
        let (seen, could) = seen_slots(of, blind, windows.span_ns, period_ns);
        hit += seen;
        slots += could;
    }
    let moments: usize = windows.moments.iter().map(Vec::len).sum();
    let near: usize = all.iter().map(|of| of.near).sum();
    let by_chance: f64 = windows.moments.iter().map(|moments| near_by_chance(moments.len())).sum();
    let hit = if slots > 0 { hit as f64 / slots as f64 } else { 0.0 };
    Period {
        period_ns,
        hit,
        above_chance: near as f64 / by_chance,
        explains: hit * hit * (near as f64 - by_chance) / moments as f64,
        strength,
        members: all.into_iter().map(|of| of.by_slot.into_values().collect()).collect(),
    }
}

/// Slots of a window that were hit, and slots that were hit or could have been.
fn seen_slots(of: &OfWindow, blind: &[(f64, f64)], span_ns: f64, period_ns: f64) -> (usize, usize) {
    let (mut hit, mut could) = (0, 0);
    let margin_ns = TOLERANCE * period_ns;
    let mut slot = -1_i64;
    loop {
        let moment = (slot as f64 + of.phase) * period_ns;
        if moment.is_nan() || moment >= span_ns {
            return (hit, could);
        }
        let is_hit = of.by_slot.contains_key(&slot);
        let is_blind =
            blind.iter().any(|(from, to)| moment >= from - margin_ns && moment <= to + margin_ns);
        hit += usize::from(is_hit);
        could += usize::from(is_hit || (moment >= 0.0 && !is_blind));
        slot += 1;
    }
}

/// Moments near slots in a window where so many have no period, about: as slots lie where the most are,
/// two standard deviations above the mean.
fn near_by_chance(moments: usize) -> f64 {
    let mean = 2.0 * TOLERANCE * moments as f64;
    mean + 2.0 * mean.sqrt()
}

/// The phase, in periods from 0 to 1, near which the most moments lie. Not their mean direction: of two
/// combs of one period that is in between.
fn densest_phase(moments: &[f64], period_ns: f64) -> f64 {
    let mut phases: Vec<f64> = moments.iter().map(|m| (m / period_ns).rem_euclid(1.0)).collect();
    phases.retain(|phase| phase.is_finite());
    phases.sort_by(f64::total_cmp);
    let many = phases.len();
    let around: Vec<f64> =
        phases.iter().copied().chain(phases.iter().map(|phase| phase + 1.0)).collect();
    let (mut best, mut end) = (0..0, 0);
    for start in 0..many {
        while around.get(end).is_some_and(|phase| phase - around[start] <= 2.0 * TOLERANCE)
            && end < start + many
        {
            end += 1;
        }
        if end - start > best.len() {
            best = start..end;
        }
    }
    let inside = &around[best];
    let middle = match (inside.first(), inside.last()) {
        (Some(first), Some(last)) => (first + last) / 2.0,
        _ => 0.0,
    };
    middle.rem_euclid(1.0)
}

/// The moments of a window that are nearest to slots.
fn of_window(moments: &[f64], period_ns: f64) -> OfWindow {
    let phase = densest_phase(moments, period_ns);
    let mut nearest: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    let mut near = 0;
    for (number, moment) in moments.iter().enumerate() {
        let position = moment / period_ns - phase;
        let off = (position - position.round()).abs();
        if off <= TOLERANCE {
            near += 1;
            let slot = nearest.entry(position.round() as i64).or_insert((off, number));
            if off < slot.0 {
                *slot = (off, number);
            }
        }
    }
    let by_slot = nearest.into_iter().map(|(slot, (_, number))| (slot, number)).collect();
    OfWindow { by_slot, near, phase }
}

/// Least squares of moment against slot, with an intercept for each window.
fn slope(windows: &[Vec<f64>], own: &[OfWindow]) -> Option<f64> {
    let (mut products, mut squares) = (0.0, 0.0);
    for (moments, OfWindow { by_slot, .. }) in windows.iter().zip(own) {
        let many = by_slot.len() as f64;
        let mean_slot = by_slot.keys().map(|slot| *slot as f64).sum::<f64>() / many;
        let mean_moment = by_slot.values().map(|number| moments[*number]).sum::<f64>() / many;
        for (slot, number) in by_slot {
            let from_mean = *slot as f64 - mean_slot;
            products += from_mean * (moments[*number] - mean_moment);
            squares += from_mean * from_mean;
        }
    }
    (squares > 0.0 && products > 0.0).then(|| products / squares)
}

//! The costs that a profile leaves open for a working set.

use rundata::words::bytes;

use super::candidate::NO_PROFILE;
use super::profile::{Cost, Lack, ProfilePoint, WorkingSet, direct, measure_with};
use super::refill;

/// Lowest and highest cost that the points around the working set leave open, over all walks that
/// were measured around it; or what is lacking. `between_ns` is the CPU time between two switches,
/// where it is known: an array that a ring does not walk in it is too large for the program, too.
pub fn cost_at(
    set: WorkingSet,
    between_ns: Option<f64>,
    points: &[ProfilePoint],
) -> Result<Cost, Lack> {
    let WorkingSet { low_bytes: low, high_bytes: high, sampled } = set;
    if let Some(sampled) = sampled {
        return refill::cost(set, sampled, between_ns, points);
    }
    if low > high {
        let why = "working set: its lower end is above its upper end".into();
        return Err(Lack { why, command: None });
    }
    let sound: Vec<&ProfilePoint> =
        points.iter().filter(|point| point.is_of_two() && point.total.is_sound()).collect();
    let sizes = || sound.iter().map(|point| point.array_bytes);
    let (Some(smallest), Some(largest)) = (sizes().min(), sizes().max()) else {
        return Err(Lack { why: NO_PROFILE.into(), command: None });
    };
    let direct = direct(points);
    let around = sound.iter().filter_map(|point| {
        let of_walk = sound.iter().copied().filter(|other| other.walk == point.walk);
        around(set, between_ns, &of_walk.collect::<Vec<_>>(), direct)
    });
    let cost = around.reduce(Cost::around).map(|cost| match direct {
        // Work makes no switch cheaper: what is measured below c1 is noise.
        Some(direct) => Cost { low_ns: cost.low_ns.max(direct.low_ns.min(cost.high_ns)), ..cost },
        None => cost,
    });
    cost.ok_or_else(|| {
        let smallest = if direct.is_some() { 0 } else { smallest };
        outside(set, smallest, largest)
    })
}

/// The costs by one walk: of the sizes within the range and the next one outside each end.
fn around(
    WorkingSet { low_bytes: low, high_bytes: high, .. }: WorkingSet,
    between_ns: Option<f64>,
    of_walk: &[&ProfilePoint],
    direct: Option<Cost>,
) -> Option<Cost> {
    let takes_longer =
        |point: &&&ProfilePoint| point.hop_ns.zip(between_ns).is_some_and(|(hop, most)| hop > most);
    let too_large = of_walk.iter().filter(takes_longer).map(|point| point.array_bytes).min();
    let high = too_large.map_or(high, |size| size.clamp(low, high.max(low)));
    // No work at all is the smallest working set there is.
    let totals = of_walk.iter().map(|point| (point.array_bytes, point.total));
    let known: Vec<(u64, Cost)> = totals.chain(direct.map(|direct| (0, direct))).collect();
    let sizes = || known.iter().map(|(size, _)| *size);
    let below = sizes().filter(|size| *size <= low).max()?;
    let above = sizes().filter(|size| *size >= high).min()?;
    let within = known.iter().filter(|(size, _)| (below..=above).contains(size));
    within.map(|(_, cost)| *cost).reduce(Cost::around)
}

fn outside(WorkingSet { low_bytes, high_bytes, .. }: WorkingSet, least: u64, most: u64) -> Lack {
    let range = |low: u64, high: u64| format!("{} to {}", bytes(low), bytes(high));
    let set = if low_bytes == high_bytes { bytes(low_bytes) } else { range(low_bytes, high_bytes) };
    // A quarter more: the next watch will not find the same working set to the byte. The typed form
    // has no blank.
    let enough = high_bytes.saturating_add(high_bytes / 4).max(most);
    let end = bytes(enough.checked_next_power_of_two().unwrap_or(u64::MAX));
    let command = format!("switchcost cost --array 1K..{}:x2", end.replace(' ', ""));
    let why = format!(
        "cost profile: the working set is {set}, but costs were measured for {} only{}",
        range(least, most),
        measure_with(&command)
    );
    Lack { why, command: Some(command) }
}

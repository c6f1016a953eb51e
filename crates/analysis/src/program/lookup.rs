//! The cost of a switch that a profile gives for a working set.

use rundata::words::bytes;

use super::candidate::NO_PROFILE;
use super::profile::{Cost, MissingCost, ProfilePoint, WorkingSet, direct, measure_with};
use super::refill;

/// Returns the lowest and highest cost of the points around the working set, over all walks that
/// were measured around it. The error says which costs are missing.
///
/// `between_ns` is the CPU time between two switches, where it is known: an array that a ring does
/// not walk in that time is too large for the program, too.
pub fn cost_at(
    set: WorkingSet,
    between_ns: Option<f64>,
    points: &[ProfilePoint],
) -> Result<Cost, MissingCost> {
    let WorkingSet { low_bytes, high_bytes, sampled } = set;
    if let Some(sampled) = sampled {
        return refill::cost(set, sampled, between_ns, points);
    }
    if low_bytes > high_bytes {
        let why = "working set: its lower end is above its upper end".into();
        return Err(MissingCost { why, command: None });
    }
    let mut sound: Vec<&ProfilePoint> = Vec::new();
    for point in points {
        if point.is_of_two() && point.total.is_sound() {
            sound.push(point);
        }
    }
    sound.sort_by_key(|point| point.array_bytes);
    let (Some(smallest), Some(largest)) = (sound.first(), sound.last()) else {
        return Err(MissingCost { why: NO_PROFILE.into(), command: None });
    };
    let direct = direct(points);
    let Some(cost) = cost_by_all_walks(set, between_ns, &sound, direct) else {
        let least_bytes = if direct.is_some() { 0 } else { smallest.array_bytes };
        return Err(outside(set, least_bytes, largest.array_bytes));
    };
    Ok(match direct {
        // Work makes no switch cheaper: a cost below c1 is noise.
        Some(direct) => Cost { low_ns: cost.low_ns.max(direct.low_ns.min(cost.high_ns)), ..cost },
        None => cost,
    })
}

/// Returns the range of the costs by the walk of each point; absent where no walk has costs around
/// the working set.
fn cost_by_all_walks(
    set: WorkingSet,
    between_ns: Option<f64>,
    sound: &[&ProfilePoint],
    direct: Option<Cost>,
) -> Option<Cost> {
    let mut costs = Vec::new();
    for point in sound {
        let mut same_walk = sound.to_vec();
        same_walk.retain(|other| other.walk == point.walk);
        costs.extend(cost_by_walk(set, between_ns, &same_walk, direct));
    }
    costs.into_iter().reduce(Cost::around)
}

/// Returns the range of the costs by one walk: at the sizes within the working set's range and at
/// the next one outside each end.
fn cost_by_walk(
    set: WorkingSet,
    between_ns: Option<f64>,
    points: &[&ProfilePoint],
    direct: Option<Cost>,
) -> Option<Cost> {
    let low = set.low_bytes;
    let mut high = set.high_bytes;
    if let Some(too_large) = smallest_too_slow(points, between_ns) {
        high = too_large.clamp(low, high.max(low));
    }
    let mut costs: Vec<(u64, Cost)> = Vec::new();
    for point in points {
        costs.push((point.array_bytes, point.total));
    }
    // No work at all is the smallest working set there is.
    if let Some(direct) = direct {
        costs.push((0, direct));
    }
    costs.sort_by_key(|(size, _)| *size);
    let (below, _) = *costs.iter().rfind(|(size, _)| *size <= low)?;
    let (above, _) = *costs.iter().find(|(size, _)| *size >= high)?;
    costs.retain(|(size, _)| (below..=above).contains(size));
    costs.into_iter().map(|(_, cost)| cost).reduce(Cost::around)
}

/// Returns the smallest array whose hop takes longer than the time between two switches.
fn smallest_too_slow(points: &[&ProfilePoint], between_ns: Option<f64>) -> Option<u64> {
    let between_ns = between_ns?;
    let mut too_slow = Vec::new();
    for point in points {
        match point.hop_ns {
            Some(hop_ns) if hop_ns > between_ns => too_slow.push(point.array_bytes),
            _ => {}
        }
    }
    too_slow.into_iter().min()
}

fn outside(set: WorkingSet, least: u64, most: u64) -> MissingCost {
    let WorkingSet { low_bytes, high_bytes, .. } = set;
    let set =
        if low_bytes == high_bytes { bytes(low_bytes) } else { bytes_range(low_bytes, high_bytes) };
    // A quarter more, as the next watch will not find this working set to the byte.
    let enough = high_bytes.saturating_add(high_bytes / 4).max(most);
    let end = bytes(enough.checked_next_power_of_two().unwrap_or(u64::MAX));
    // As an argument, a size has no blank.
    let command = format!("switchcost cost --array 1K..{}:x2", end.replace(' ', ""));
    let why = format!(
        "cost profile: the working set is {set}, but costs were measured for {} only{}",
        bytes_range(least, most),
        measure_with(&command)
    );
    MissingCost { why, command: Some(command) }
}

fn bytes_range(low: u64, high: u64) -> String {
    format!("{} to {}", bytes(low), bytes(high))
}

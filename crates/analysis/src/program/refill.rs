//! The cost of a switch for a program whose accesses were sampled: the switch itself, by its kind
//! and the number of threads that take turns, and the cache lines that are fetched again.
//!
//! Example: a ring of 8 processes with 64 KiB each takes 7,144 ns a switch, without work 1,000 ns.
//! The difference over 1,024 lines is 6 ns a line. A program with 8 working sets of 64 KiB on a CPU
//! pays 700 ns for a yield and 1,024 * 6 ns = 6.1 us for refilling, within a factor of 1.5: the
//! caches are also used by others. It pays less where it has no time to fetch all lines, and, at
//! the least, where lines can be fetched ahead.

use rundata::ring::{LINE_BYTES, Walk};
use rundata::words::bytes as bytes_in_words;

use super::candidate::NO_PROFILE;
use super::price::{Direct, Range};
use super::profile::{
    AccessPattern, Cost, MissingCost, ProfilePoint, WorkingSet, direct, measure_with,
};

/// Factor by which the cost of a line changes from one hour to the next where others share the
/// caches (docs/validation.md, "Estimated switch overhead against the truth").
const DRIFT: f64 = 1.5;
/// Like [`DRIFT`], where the arrays fit into caches that nobody shares: by the core's other hardware
/// thread, and its clock.
const PRIVATE_DRIFT: f64 = 1.2;

/// Least time in which other users of the caches evict all lines of a thread that waits for its
/// turn.
const MIN_EVICTION_NS: f64 = 10e6;

/// Cost of fetching one cache line again, and of a line that need not be fetched.
#[derive(Clone, Copy, Debug)]
struct LineCost {
    /// Lower end of what a line costs more than without switches.
    low_ns: f64,
    /// Upper end.
    high_ns: f64,
    /// A line without switches.
    warm_ns: f64,
    /// True if all that was walked fits into a cache that no other core uses, so that no other core
    /// evicts it.
    is_private: bool,
}

impl LineCost {
    /// Returns the cost of a line at a point that has a direct cost and the time of a hop.
    fn from_point(point: &ProfilePoint) -> Option<Self> {
        let (total, direct) = (point.total, point.direct?);
        let lines = (point.array_bytes / LINE_BYTES).max(1) as f64;
        let middle = f64::midpoint(total.low_ns, total.high_ns);
        let warm_ns = (point.hop_ns? - middle) / lines;
        let low_ns = (total.low_ns - direct.high_ns) / lines;
        let high_ns = (total.high_ns - direct.low_ns) / lines;
        Some(Self {
            low_ns: low_ns.max(0.0),
            high_ns: high_ns.max(0.0),
            warm_ns: warm_ns.max(0.0),
            is_private: point.fits_private_cache,
        })
    }

    /// Returns the cost at `part`, from 0 to 1, of the way to `other`.
    fn between(self, other: Self, part: f64) -> Self {
        Self {
            low_ns: interpolate(self.low_ns, other.low_ns, part),
            high_ns: interpolate(self.high_ns, other.high_ns, part),
            warm_ns: interpolate(self.warm_ns, other.warm_ns, part),
            is_private: self.is_private && other.is_private,
        }
    }

    /// Returns the cost after a wait, in which others evict lines from shared caches: the upper end
    /// grows with the wait, up to `most_ns`.
    fn after_wait(self, wait_ns: f64, most_ns: f64) -> Self {
        if self.is_private {
            return self;
        }
        let evicted = (wait_ns / MIN_EVICTION_NS).clamp(0.0, 1.0);
        let more = (most_ns - self.high_ns).max(0.0) * evicted;
        Self { high_ns: self.high_ns + more, ..self }
    }

    /// Returns the factor within which the cost is known.
    fn drift(&self) -> f64 {
        if self.is_private { PRIVATE_DRIFT } else { DRIFT }
    }

    /// Returns the refill of so many bytes within `memory_ns` of memory accesses, refills included;
    /// the cost of a line is known within a factor of `drift`.
    fn refill(self, bytes: f64, memory_ns: f64, drift: f64) -> Range {
        Range {
            low: self.limited_refill(self.low_ns / drift, bytes, memory_ns),
            high: self.limited_refill(self.high_ns * drift, bytes, memory_ns),
        }
    }

    /// Returns the refill of so many bytes at `line_ns` a line: no more lines are fetched than there
    /// is time for.
    fn limited_refill(self, line_ns: f64, bytes: f64, memory_ns: f64) -> f64 {
        let limit =
            if line_ns > 0.0 { memory_ns * line_ns / (line_ns + self.warm_ns) } else { 0.0 };
        (bytes / LINE_BYTES as f64 * line_ns).min(limit)
    }
}

fn interpolate(start: f64, end: f64, part: f64) -> f64 {
    start + part * (end - start)
}

/// Factor by which the places of an array's pages make a cache hold more or less of it.
const PLACE_FACTOR: f64 = 1.2;

/// The working sets of a program, as a ring would have them.
#[derive(Clone, Copy)]
struct SetSizes {
    /// Working sets on one CPU.
    sets: f64,
    /// Lower end of one set's size.
    low_bytes: f64,
    /// Upper end.
    high_bytes: f64,
}

impl SetSizes {
    fn new(sets: f64, set: WorkingSet) -> Self {
        Self {
            sets,
            low_bytes: set.low_bytes.max(LINE_BYTES) as f64,
            high_bytes: set.high_bytes.max(LINE_BYTES) as f64,
        }
    }

    /// Returns the middle of the range, in the logarithm.
    fn middle_bytes(&self) -> f64 {
        (self.low_bytes * self.high_bytes).sqrt()
    }

    /// Returns the factor within which the middle is known, if another factor is uncertain by
    /// itself, too: their logarithms add up as squares.
    fn factor_with(&self, factor: f64) -> f64 {
        let half = (self.high_bytes / self.low_bytes).sqrt();
        half.ln().hypot(factor.ln()).exp()
    }
}

/// The points of one walk, from which refills are read.
struct WalkRefill<'a> {
    points: Vec<&'a ProfilePoint>,
    /// Wait after which lines are fetched, and the dearest line in ns; absent where a wait makes no
    /// line dearer.
    wait: Option<(f64, f64)>,
    /// CPU time for memory accesses between two switches.
    memory_ns: f64,
}

impl WalkRefill<'_> {
    /// Returns the least and the most that refilling a working set costs.
    ///
    /// The set is compared with arrays of its own size, within its range and what a cache holds of
    /// it by the places of its pages. Its cost is also at most that of any smaller array: a program
    /// need not use all of its set alike, and what it uses most may be what fits into the first
    /// cache. A ring that walks more than that misses there with and without switches, and its
    /// switches cost little.
    fn refill(&self, sizes: SetSizes) -> Option<Range> {
        let bytes = sizes.middle_bytes();
        let factor = sizes.factor_with(PLACE_FACTOR);
        let (smallest, largest) = (bytes / factor, bytes * factor);
        let mut around = vec![smallest, largest];
        let mut most_of_smaller = f64::NEG_INFINITY;
        for point in &self.points {
            let size = point.array_bytes as f64;
            if (smallest..=largest).contains(&size) {
                around.push(size);
            }
            if size < bytes {
                if let Some(line) = self.line(sizes.sets, size) {
                    let refill = line.refill(size, self.memory_ns, 1.0);
                    most_of_smaller = f64::max(most_of_smaller, refill.high);
                }
            }
        }
        let mut refills = Vec::new();
        for size in around {
            if let Some(line) = self.line(sizes.sets, size) {
                let drift = sizes.factor_with(line.drift());
                refills.push(line.refill(bytes, self.memory_ns, drift));
            }
        }
        let low = refills.iter().map(|refill| refill.low).reduce(f64::min)?;
        let high = refills.iter().map(|refill| refill.high).reduce(f64::max)?;
        Some(Range { low, high: high.max(most_of_smaller) })
    }

    /// Returns the cost of a line of `sets` working sets of so many bytes, after the wait.
    fn line(&self, sets: f64, bytes: f64) -> Option<LineCost> {
        let line = line_at(&self.points, sets, bytes)?;
        match self.wait {
            Some((wait_ns, most_ns)) => Some(line.after_wait(wait_ns, most_ns)),
            None => Some(line),
        }
    }
}

/// The two measured sizes beside a value.
struct Neighbours {
    low: u64,
    high: u64,
    /// Part of the way from `low` to `high`, in the logarithm.
    part: f64,
}

/// Returns the sizes beside a value; the nearest one twice beyond either end.
fn neighbours(sizes: &[u64], value: f64) -> Option<Neighbours> {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let below = sorted.iter().rfind(|size| **size as f64 <= value);
    let above = sorted.iter().find(|size| **size as f64 >= value);
    let (low, high) = (*below.or(above)?, *above.or(below)?);
    let part =
        if low == high { 0.0 } else { (value / low as f64).ln() / (high as f64 / low as f64).ln() };
    Some(Neighbours { low, high, part })
}

/// Returns the cost of a line by one walk for so many sets of so many bytes.
fn line_at(points: &[&ProfilePoint], sets: f64, bytes: f64) -> Option<LineCost> {
    let members: Vec<u64> = points.iter().map(|point| point.members.into()).collect();
    let Neighbours { low, high, part } = neighbours(&members, sets)?;
    let few = line_of_ring(points, low, bytes)?;
    let line = few.between(line_of_ring(points, high, bytes)?, part);
    Some(LineCost { is_private: line.is_private && sets <= high as f64, ..line })
}

/// Returns the cost of a line in rings of so many members with arrays of so many bytes.
fn line_of_ring(points: &[&ProfilePoint], members: u64, bytes: f64) -> Option<LineCost> {
    let mut rings = points.to_vec();
    rings.retain(|point| u64::from(point.members) == members);
    let sizes: Vec<u64> = rings.iter().map(|point| point.array_bytes).collect();
    let Neighbours { low, high, part } = neighbours(&sizes, bytes)?;
    let small = line_of_array(&rings, low)?;
    let line = small.between(line_of_array(&rings, high)?, part);
    // An array that is larger than all that were measured need not fit where these did.
    Some(LineCost { is_private: line.is_private && bytes <= high as f64, ..line })
}

fn line_of_array(points: &[&ProfilePoint], array_bytes: u64) -> Option<LineCost> {
    LineCost::from_point(points.iter().find(|point| point.array_bytes == array_bytes)?)
}

/// Largest factor beyond the largest array that was measured. A program with more working sets than
/// the largest ring times this is told so.
const MAX_BEYOND: f64 = 2.0;

/// A program with more working sets on a CPU than the largest ring that was measured has members:
/// that ring prices its switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingsBeyond {
    /// Members of the largest ring with a working set.
    pub members: u32,
    /// Working sets of the program on a CPU.
    pub sets: u32,
}

impl RingsBeyond {
    /// Returns both counts where a program has clearly more sets than the largest ring has members.
    pub fn find(set: Option<WorkingSet>, points: &[ProfilePoint]) -> Option<Self> {
        let sets = set?.sampled?.sets_per_cpu;
        let mut members = None;
        for point in points {
            if LineCost::from_point(point).is_some() {
                members = members.max(Some(point.members));
            }
        }
        let members = members?;
        if sets.min(MANY_SETS) > MAX_BEYOND * f64::from(members) {
            Some(Self { members, sets: sets.round() as u32 })
        } else {
            None
        }
    }

    /// Returns `by the cost with 8 processes (this program has 19)`.
    pub fn in_words(self) -> String {
        format!("by the cost with {} processes (this program has {})", self.members, self.sets)
    }
}

/// More sets than these evict each other no more than these do.
const MANY_SETS: f64 = 64.0;

/// Returns the cost of one switch of a program whose accesses were sampled. The error says which
/// costs are missing.
pub fn cost(
    set: WorkingSet,
    sampled: AccessPattern,
    between_ns: Option<f64>,
    points: &[ProfilePoint],
) -> Result<Cost, MissingCost> {
    let Some(direct) = direct_of(points, Some(sampled.threads_per_cpu)) else {
        return Err(missing(NO_PROFILE));
    };
    let switch = direct.at(sampled.involuntary_share);
    let refill = refill_range(set, sampled, between_ns, switch, points)?;
    Ok(Cost { low_ns: switch.low + refill.low, high_ns: switch.high + refill.high })
}

/// Returns the cost of refilling caches at a switch that costs `switch` itself.
fn refill_range(
    set: WorkingSet,
    sampled: AccessPattern,
    between_ns: Option<f64>,
    switch: Range,
    points: &[ProfilePoint],
) -> Result<Range, MissingCost> {
    let memory_ns = between_ns.unwrap_or(f64::INFINITY) * sampled.memory_share;
    if memory_ns <= switch.low {
        return Ok(Range { low: 0.0, high: memory_ns });
    }
    let mut chase = points_by_walk(points, Walk::Chase);
    if chase.is_empty() {
        // A profile of the whole walk alone is better than none.
        chase = points_by_walk(points, Walk::Whole);
    }
    let middle = (set.low_bytes as f64 * set.high_bytes as f64).sqrt().max(LINE_BYTES as f64);
    let largest = chase.iter().map(|point| point.array_bytes).max().unwrap_or(0) as f64;
    if middle > MAX_BEYOND * largest {
        return Err(too_large(middle, largest));
    }
    let wait_ns = between_ns.unwrap_or(0.0) * (sampled.threads_per_cpu - 1.0).max(0.0);
    let wait = Some((wait_ns, dearest_line_ns(&chase)));
    let sets = sampled.sets_per_cpu.max(1.0);
    let sizes = SetSizes::new(sets, set);
    let Some(random) = (WalkRefill { points: chase, wait, memory_ns }).refill(sizes) else {
        return Err(missing(
            "cost profile: no ring of processes that work was measured with its hop",
        ));
    };
    let whole = points_by_walk(points, Walk::Whole);
    let in_order = WalkRefill { points: whole, wait: None, memory_ns }.refill(sizes);
    let ahead = in_order.unwrap_or(Range { low: 0.0, high: 0.0 });
    let share = sampled.dependent_share;
    let mixed = share * random.low + (1.0 - share) * ahead.low.min(random.low);
    // One set alone: the tasks in between are not the program's and may use as much cache or none.
    let low = if sets < 1.5 { 0.0 } else { mixed };
    Ok(Range { low, high: random.high.max(ahead.high) })
}

fn points_by_walk(points: &[ProfilePoint], walk: Walk) -> Vec<&ProfilePoint> {
    let mut found = Vec::new();
    for point in points {
        if point.walk == walk && LineCost::from_point(point).is_some() {
            found.push(point);
        }
    }
    found
}

fn dearest_line_ns(points: &[&ProfilePoint]) -> f64 {
    let mut dearest: f64 = 0.0;
    for point in points {
        if let Some(line) = LineCost::from_point(point) {
            dearest = dearest.max(line.high_ns);
        }
    }
    dearest
}

/// The most that refilling caches adds to a switch of a program of which only the rate of its
/// switches is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RefillLimit {
    /// Nanoseconds a switch: the dearest working set that was measured.
    pub most_ns: f64,
    /// Share of the CPU time between two switches, from 0 to 1: that of a program which does nothing
    /// but fetch the dearest lines, as in `cost`.
    pub most_share: f64,
}

impl RefillLimit {
    /// Returns the limit over all arrays, walks and rings of a profile; absent where none was
    /// measured with its hop. Costs of lines are known within the factors of `cost`.
    pub fn from_points(points: &[ProfilePoint]) -> Option<Self> {
        let mut limit: Option<Self> = None;
        for point in points {
            let Some(line) = LineCost::from_point(point) else { continue };
            let line_ns = line.high_ns * line.drift();
            let lines = (point.array_bytes / LINE_BYTES).max(1) as f64;
            let before = limit.unwrap_or_default();
            let share = if line_ns > 0.0 { line_ns / (line_ns + line.warm_ns) } else { 0.0 };
            limit = Some(Self {
                most_ns: before.most_ns.max(lines * line_ns),
                most_share: before.most_share.max(share),
            });
        }
        limit
    }
}

fn missing(why: &str) -> MissingCost {
    MissingCost { why: why.to_string(), command: Some("switchcost cost".to_string()) }
}

fn too_large(bytes: f64, largest: f64) -> MissingCost {
    let end = (bytes * 2.0).max(1024.0 * 1024.0) as u64;
    let end = bytes_in_words(end.next_power_of_two()).replace(' ', "");
    let command = format!("switchcost cost --members 2,8 --array 16K..{end}:x4 --huge-pages off");
    let why = format!(
        "cost profile: its working set is {}, but costs were measured up to {} only{}",
        bytes_in_words(bytes as u64),
        bytes_in_words(largest as u64),
        measure_with(&command)
    );
    MissingCost { why, command: Some(command) }
}

/// Returns the cost of the switch itself, by a pipe and by yields: by those of two members where no
/// more than two threads take turns on a CPU.
pub fn direct_of(points: &[ProfilePoint], threads_per_cpu: Option<f64>) -> Option<Direct> {
    let takes_all = threads_per_cpu.is_none_or(|threads| threads > 2.0);
    let mut yields: Option<Cost> = None;
    for point in points {
        if point.yields && (point.members == 2 || takes_all) {
            yields = Some(yields.map_or(point.total, |range| range.around(point.total)));
        }
    }
    Some(Direct { pipe: direct(points)?.into(), yields: yields.map(Range::from) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::price::MAX_YIELD_RATIO;

    /// A yield of 700 ns.
    const SWITCH: f64 = 700.0 / MAX_YIELD_RATIO;

    /// One thread a set: without a wait, in which others evict lines.
    const SAMPLED: AccessPattern = AccessPattern {
        sets_per_cpu: 8.0,
        threads_per_cpu: 1.0,
        memory_share: 1.0,
        dependent_share: 1.0,
        involuntary_share: 1.0,
    };

    /// A ring whose members' lines cost so much more each, 4 ns without switches, beside a switch
    /// of 1,000 ns.
    fn point(walk: Walk, members: u32, kib: u64, line_ns: f64) -> ProfilePoint {
        let direct = Cost { low_ns: 1000.0, high_ns: 1000.0 };
        let lines = (kib * 16) as f64;
        let total = 1000.0 + line_ns * lines;
        ProfilePoint {
            array_bytes: kib << 10,
            total: Cost { low_ns: total, high_ns: total },
            direct: Some(direct),
            walk,
            hop_ns: Some(total + 4.0 * lines),
            members,
            ..ProfilePoint::default()
        }
    }

    fn points() -> Vec<ProfilePoint> {
        let chase = [(2, 64, 0.0), (8, 64, 6.0), (8, 256, 12.0), (64, 64, 60.0)];
        let chase = chase.map(|(members, kib, ns)| point(Walk::Chase, members, kib, ns));
        let whole = [(2, 64), (8, 64), (64, 64)];
        let whole = whole.map(|(members, kib)| point(Walk::Whole, members, kib, 0.0));
        let switch = Cost { low_ns: 700.0, high_ns: 800.0 };
        let yields =
            ProfilePoint { total: switch, members: 2, yields: true, ..ProfilePoint::default() };
        chase.into_iter().chain(whole).chain([yields]).collect()
    }

    fn set(kib: u64) -> WorkingSet {
        WorkingSet { low_bytes: kib << 10, high_bytes: kib << 10, sampled: None }
    }

    fn ends(kib: u64, sampled: AccessPattern, between_ns: f64) -> (f64, f64) {
        let cost = cost(set(kib), sampled, Some(between_ns), &points()).unwrap();
        (cost.low_ns, cost.high_ns)
    }

    #[test]
    fn what_a_ring_of_as_many_measured_is_the_refill_within_the_drift() {
        // 1,024 lines of 6 ns; a yield of 700 to 800 ns.
        let (low, high) = ends(64, SAMPLED, 1e6);
        assert!((low - (SWITCH + 6144.0 / DRIFT)).abs() < 1.0, "{low}");
        let more = 6.0 * PLACE_FACTOR.ln() / 4_f64.ln();
        assert!((high - (800.0 + 1024.0 * (6.0 + more) * DRIFT)).abs() < 1.0, "{high}");
        // Half way between 64 and 256 KiB, less what the places of pages make of it; and between 8
        // and 64 members.
        let (low, high) = ends(128, SAMPLED, 1e6);
        let part = 0.5 - PLACE_FACTOR.ln() / 4_f64.ln();
        assert!((low - (SWITCH + 2048.0 * (6.0 + 6.0 * part) / DRIFT)).abs() < 1.0, "{low}");
        assert!((high - (800.0 + 2048.0 * (12.0 - 6.0 * part) * DRIFT)).abs() < 1.0, "{high}");
        let between = AccessPattern { sets_per_cpu: 512_f64.sqrt(), ..SAMPLED };
        let (low, _) = ends(64, between, 1e6);
        assert!((low - (SWITCH + 1024.0 * 33.0 / DRIFT)).abs() < 1.0, "{low}");
    }

    #[test]
    fn no_more_is_fetched_than_there_is_time_for() {
        // Each line takes 4 ns and up to some 10 more: of 2,000 ns 10/14 at the most, of which half
        // in code with memory.
        let sampled = AccessPattern { memory_share: 0.5, ..SAMPLED };
        let (_, high) = ends(64, sampled, 4000.0);
        let line = DRIFT * (6.0 + 6.0 * PLACE_FACTOR.ln() / 4_f64.ln());
        assert!((high - (800.0 + 2000.0 * line / (line + 4.0))).abs() < 1.0, "{high}");
        // Without any memory only the switch is left.
        assert_eq!(ends(64, AccessPattern { memory_share: 0.0, ..SAMPLED }, 1e6), (SWITCH, 800.0));
    }

    #[test]
    fn others_evict_what_waits() {
        // 7 others of 1 ms each: 7/10 of the way to the dearest line, 60 ns.
        let waits = AccessPattern { threads_per_cpu: 8.0, ..SAMPLED };
        let (_, high) = ends(64, waits, 1e6);
        let line = 6.0 + 6.0 * PLACE_FACTOR.ln() / 4_f64.ln();
        let line = line + 0.7 * (60.0 - line);
        assert!((high - (800.0 + 1024.0 * line * DRIFT)).abs() < 1.0, "{high}");
    }

    #[test]
    fn what_can_be_fetched_ahead_costs_nothing_at_least() {
        let (low, high) = ends(64, AccessPattern { dependent_share: 0.0, ..SAMPLED }, 1e6);
        assert_eq!(low, SWITCH);
        assert!(high > 9000.0, "{high}");
        // One set on a CPU: whatever runs in between may use the cache or not.
        assert_eq!(ends(64, AccessPattern { sets_per_cpu: 1.0, ..SAMPLED }, 1e6).0, SWITCH);
    }

    /// Nobody else evicts what fits into a private cache, nor does it cost another time when others
    /// use theirs.
    #[test]
    fn what_fits_into_a_private_cache_is_known_within_a_smaller_factor() {
        let fits = |of: ProfilePoint| ProfilePoint { fits_private_cache: of.members == 8, ..of };
        let points: Vec<ProfilePoint> = points().into_iter().map(fits).collect();
        let waits = AccessPattern { threads_per_cpu: 8.0, ..SAMPLED };
        let line = 6.0 + 6.0 * PLACE_FACTOR.ln() / 4_f64.ln();
        let found = cost(set(64), waits, Some(1e6), &points).unwrap();
        assert!((found.high_ns - (800.0 + 1024.0 * line * PRIVATE_DRIFT)).abs() < 1.0, "{found:?}");
        // Between it and what does not fit nobody knows.
        let between = AccessPattern { sets_per_cpu: 16.0, ..waits };
        let found = cost(set(64), between, Some(1e6), &points).unwrap();
        assert!(found.high_ns > 800.0 + 1024.0 * line * DRIFT, "{found:?}");
    }

    #[test]
    fn the_most_that_refilling_adds_is_the_dearest_set_and_the_dearest_line() {
        let limit = RefillLimit::from_points(&points()).unwrap();
        // 4,096 lines of 12 ns are less than 1,024 of 60 ns; that line takes 4 ns without switches.
        assert!((limit.most_ns - 1024.0 * 60.0 * DRIFT).abs() < 1.0, "{limit:?}");
        let line = 60.0 * DRIFT;
        assert!((limit.most_share - line / (line + 4.0)).abs() < 1e-9, "{limit:?}");
        // What costs nothing more is no refill; a profile without working sets knows none.
        let free = RefillLimit::from_points(&[point(Walk::Whole, 2, 64, 0.0)]);
        assert_eq!(free, Some(RefillLimit::default()));
        assert_eq!(RefillLimit::from_points(&[]), None);
    }

    /// 512 lines of 20 ns at 32 KiB are more than 1,024 of 1 ns: they may be those of 64 KiB that
    /// are used most.
    #[test]
    fn a_working_set_costs_at_most_what_any_part_of_it_does() {
        let chase = [(8, 32, 20.0), (8, 64, 1.0), (8, 256, 1.0), (2, 8, 0.0)];
        let chase = chase.map(|(members, kib, ns)| point(Walk::Chase, members, kib, ns));
        let switch = Cost { low_ns: 700.0, high_ns: 700.0 };
        let yields =
            ProfilePoint { total: switch, members: 2, yields: true, ..ProfilePoint::default() };
        let points = [&chase[..], &[yields]].concat();
        let cost = cost(set(128), SAMPLED, Some(1e6), &points).unwrap();
        assert!((cost.high_ns - (700.0 + 512.0 * 20.0)).abs() < 1.0, "{cost:?}");
        assert!((cost.low_ns - (SWITCH + 2048.0 / DRIFT)).abs() < 1.0, "{cost:?}");
    }

    #[test]
    fn what_was_not_measured_is_asked_for_by_a_command() {
        let few: Vec<ProfilePoint> = points().into_iter().filter(|of| of.members < 64).collect();
        let of = |kib, sets_per_cpu, points: &[ProfilePoint]| {
            cost(set(kib), AccessPattern { sets_per_cpu, ..SAMPLED }, Some(1e9), points)
        };
        let lack = of(4096, 8.0, &points()).unwrap_err();
        let command = "switchcost cost --members 2,8 --array 16K..8MiB:x4 --huge-pages off";
        assert_eq!(lack.command.as_deref(), Some(command));
        assert!(
            lack.why.contains("its working set is 4 MiB, but costs were measured up to 256 KiB")
        );
        // Of more members than were measured the largest ring is good enough, and is told.
        assert_eq!(of(64, 20.0, &few).unwrap(), of(64, 8.0, &few).unwrap());
        let beyond = |sets_per_cpu| {
            let sampled = Some(AccessPattern { sets_per_cpu, ..SAMPLED });
            let set = WorkingSet { sampled, ..set(64) };
            RingsBeyond::find(Some(set), &few).map(RingsBeyond::in_words)
        };
        let words = "by the cost with 8 processes (this program has 19)";
        assert_eq!(beyond(19.0).as_deref(), Some(words));
        assert_eq!(beyond(9.0), None);
        assert!(of(64, 500.0, &points()).is_ok());
        assert!(of(64, 8.0, &[]).is_err());
    }
}

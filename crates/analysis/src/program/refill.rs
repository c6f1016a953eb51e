//! What a switch costs a program whose accesses were sampled: the switch itself, by its kind and
//! the number of threads that take turns, and the cache lines that it has to fetch again.

use rundata::ring::{LINE_BYTES, Walk};

use super::candidate::NO_PROFILE;
use super::price::Direct;
use super::profile::{Cost, Lack, ProfilePoint, Sampled, WorkingSet, direct, measure_with};

/// What the machine's caches change from one hour to the next, where others share them: refills are
/// known within this factor only (docs/validation.md, "Estimated switch overhead against the
/// truth").
const DRIFT: f64 = 1.5;
/// The same of what fits into caches that nobody shares: what is left is the core's other hardware
/// thread, and its clock.
const PRIVATE_DRIFT: f64 = 1.2;

/// Time in which whoever else uses the same caches evicts all lines of a thread that waits for its
/// turn, at the least.
const EVICTED_NS: f64 = 10e6;

/// Refills of one line: ns more than without switches, and ns of a line without.
#[derive(Clone, Copy, Debug)]
struct Line {
    low_ns: f64,
    high_ns: f64,
    warm_ns: f64,
    /// All that was walked fits into a cache that no other core uses: nobody else evicts it.
    is_private: bool,
}

impl Line {
    fn of(point: &ProfilePoint) -> Option<Self> {
        let (total, direct) = (point.total, point.direct?);
        let lines = (point.array_bytes / LINE_BYTES).max(1) as f64;
        let middle = f64::midpoint(total.low_ns, total.high_ns);
        let warm_ns = (point.hop_ns? - middle) / lines;
        let (low_ns, high_ns) =
            ((total.low_ns - direct.high_ns) / lines, (total.high_ns - direct.low_ns) / lines);
        Some(Self {
            low_ns: low_ns.max(0.0),
            high_ns: high_ns.max(0.0),
            warm_ns: warm_ns.max(0.0),
            is_private: point.fits_private_cache,
        })
    }

    fn between(self, other: Self, part: f64) -> Self {
        let mix = |a: f64, b: f64| a + part * (b - a);
        Self {
            low_ns: mix(self.low_ns, other.low_ns),
            high_ns: mix(self.high_ns, other.high_ns),
            warm_ns: mix(self.warm_ns, other.warm_ns),
            is_private: self.is_private && other.is_private,
        }
    }

    /// With what others evict of it within so much time, by which it costs up to `most_ns` more.
    fn after(self, idle_ns: f64, most_ns: f64) -> Self {
        if self.is_private {
            return self;
        }
        let more = (most_ns - self.high_ns).max(0.0) * (idle_ns / EVICTED_NS).clamp(0.0, 1.0);
        Self { high_ns: self.high_ns + more, ..self }
    }

    /// Within which factor it is known.
    fn drift(&self) -> f64 {
        if self.is_private { PRIVATE_DRIFT } else { DRIFT }
    }

    /// The least and the most that so many bytes cost in `memory_ns` of memory accesses, lost time
    /// among them: no more lines are fetched than there is time for. Within a factor of `drift`.
    fn refill(self, bytes: f64, memory_ns: f64, drift: f64) -> (f64, f64) {
        let of = |each: f64| {
            let most = if each > 0.0 { memory_ns * each / (each + self.warm_ns) } else { 0.0 };
            (bytes / LINE_BYTES as f64 * each).min(most)
        };
        (of(self.low_ns / drift), of(self.high_ns * drift))
    }
}

/// Where the pages of an array lie makes a cache hold so much more or less of it.
const PLACES: f64 = 1.2;

/// What refilling a working set costs by one walk, at least and at most. Beside the set itself, and
/// what a cache holds of it by the places of its pages, it is at most what any smaller array costs:
/// a program need not use all of its set alike, and what it uses most may be what fits into the
/// first cache. A ring that walks more than that misses there with and without switches, and its
/// switches cost little.
fn refill_of(
    points: &[&ProfilePoint],
    sets: f64,
    set: WorkingSet,
    others: impl Fn(Line) -> Line,
    memory_ns: f64,
) -> Option<(f64, f64)> {
    let [low, high] = [set.low_bytes, set.high_bytes].map(|end| (end.max(LINE_BYTES)) as f64);
    let (bytes, half) = ((low * high).sqrt(), (high / low).sqrt());
    // What is uncertain by itself adds up as squares.
    let both = |factor: f64| half.ln().hypot(factor.ln()).exp();
    let ends = (bytes / both(PLACES), bytes * both(PLACES));
    let line = |bytes: f64| line_at(points, sets, bytes).map(&others);
    let measured = || points.iter().map(|point| point.array_bytes as f64);
    let about =
        measured().filter(|bytes| (ends.0..=ends.1).contains(bytes)).chain([ends.0, ends.1]);
    let lines: Vec<Line> = about.filter_map(line).collect();
    let refill = |of: &Line| of.refill(bytes, memory_ns, both(of.drift()));
    let all: Vec<(f64, f64)> = lines.iter().map(refill).collect();
    let least = all.iter().map(|of| of.0).reduce(f64::min)?;
    let most = all.iter().map(|of| of.1).reduce(f64::max)?;
    let smaller = measured().filter(|of| *of < bytes);
    let smaller = smaller.filter_map(|bytes| Some(line(bytes)?.refill(bytes, memory_ns, 1.0).1));
    Some((least, smaller.fold(most, f64::max)))
}

/// Where `value` lies between the two of `all` beside it, in the logarithm: those two and the part
/// of the way. The nearest one beyond either end.
fn beside(all: &[u64], value: f64) -> Option<(u64, u64, f64)> {
    let below = all.iter().copied().filter(|of| *of as f64 <= value).max();
    let above = all.iter().copied().filter(|of| *of as f64 >= value).min();
    let (low, high) = (below.or(above)?, above.or(below)?);
    let part =
        if low == high { 0.0 } else { (value / low as f64).ln() / (high as f64 / low as f64).ln() };
    Some((low, high, part))
}

/// The cost of a line by one walk for so many sets of so many bytes.
fn line_at(points: &[&ProfilePoint], sets: f64, bytes: f64) -> Option<Line> {
    let members: Vec<u64> = points.iter().map(|point| point.members.into()).collect();
    let (few, many, part) = beside(&members, sets)?;
    let at = |members: u64| {
        let of: Vec<&&ProfilePoint> =
            points.iter().filter(|point| u64::from(point.members) == members).collect();
        let sizes: Vec<u64> = of.iter().map(|point| point.array_bytes).collect();
        let (small, large, part) = beside(&sizes, bytes)?;
        let line = |size: u64| Line::of(of.iter().find(|point| point.array_bytes == size)?);
        let line = line(small)?.between(line(large)?, part);
        // What is larger than all that was measured need not fit where that did.
        Some(Line { is_private: line.is_private && bytes <= large as f64, ..line })
    };
    let line = at(few)?.between(at(many)?, part);
    Some(Line { is_private: line.is_private && sets <= many as f64, ..line })
}

/// Beyond the largest array that was measured by this factor nothing is known, and more working
/// sets than the largest ring has are told of.
const BEYOND: f64 = 2.0;

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
    /// Returns them where a program has clearly more than the largest ring.
    pub fn find(set: Option<WorkingSet>, points: &[ProfilePoint]) -> Option<Self> {
        let sets = set?.sampled?.sets_per_cpu;
        let working = points.iter().filter(|point| Line::of(point).is_some());
        let members = working.map(|point| point.members).max()?;
        let is_beyond = sets.min(MANY) > BEYOND * f64::from(members);
        is_beyond.then_some(Self { members, sets: sets.round() as u32 })
    }

    /// `by the cost with 8 processes (this program has 19)`
    pub fn in_words(self) -> String {
        format!("by the cost with {} processes (this program has {})", self.members, self.sets)
    }
}

/// More sets than these evict each other as these do.
const MANY: f64 = 64.0;

/// Cost of one switch of a program whose accesses were sampled, or what is lacking.
pub fn cost(
    set: WorkingSet,
    sampled: Sampled,
    between_ns: Option<f64>,
    points: &[ProfilePoint],
) -> Result<Cost, Lack> {
    let lack = |why: String, command: Option<String>| Lack { why, command };
    let sets = sampled.sets_per_cpu.max(1.0);
    let switch = direct_of(points, Some(sampled.threads_per_cpu))
        .map(|of| of.at(sampled.involuntary_share))
        .ok_or_else(|| lack(NO_PROFILE.to_string(), Some("switchcost cost".to_string())))?;
    let memory_ns = between_ns.unwrap_or(f64::INFINITY) * sampled.memory_share;
    let with =
        |(low, high): (f64, f64)| Cost { low_ns: switch.low + low, high_ns: switch.high + high };
    if memory_ns <= switch.low {
        return Ok(with((0.0, memory_ns)));
    }
    let middle = (set.low_bytes as f64 * set.high_bytes as f64).sqrt().max(LINE_BYTES as f64);
    let of = |walk: Walk| -> Vec<&ProfilePoint> {
        points.iter().filter(|point| point.walk == walk && Line::of(point).is_some()).collect()
    };
    // A profile of the whole walk alone is better than none.
    let chase =
        Some(of(Walk::Chase)).filter(|of| !of.is_empty()).unwrap_or_else(|| of(Walk::Whole));
    let most_bytes = chase.iter().map(|point| point.array_bytes).max().unwrap_or(0) as f64;
    if middle > BEYOND * most_bytes {
        let end = (middle * 2.0).max(1024.0 * 1024.0) as u64;
        let end = rundata::words::bytes(end.next_power_of_two()).replace(' ', "");
        let command =
            format!("switchcost cost --members 2,8 --array 16K..{end}:x4 --huge-pages off");
        let why = format!(
            "cost profile: its working set is {}, but costs were measured up to {} only{}",
            rundata::words::bytes(middle as u64),
            rundata::words::bytes(most_bytes as u64),
            measure_with(&command)
        );
        return Err(lack(why, Some(command)));
    }
    let idle_ns = between_ns.unwrap_or(0.0) * (sampled.threads_per_cpu - 1.0).max(0.0);
    let most_ns = chase
        .iter()
        .filter_map(|point| Line::of(point))
        .map(|line| line.high_ns)
        .fold(0.0, f64::max);
    let random = refill_of(&chase, sets, set, |line| line.after(idle_ns, most_ns), memory_ns);
    let Some(random) = random else {
        return Err(lack(
            "cost profile: no ring of processes that work was measured with its hop".to_string(),
            Some("switchcost cost".to_string()),
        ));
    };
    let ahead = refill_of(&of(Walk::Whole), sets, set, |line| line, memory_ns).unwrap_or_default();
    let share = sampled.dependent_share;
    let low = share * random.0 + (1.0 - share) * ahead.0.min(random.0);
    // One set alone: what runs in between is not the program's and may use as much cache or none.
    let low = if sets < 1.5 { 0.0 } else { low };
    Ok(with((low, random.1.max(ahead.1))))
}

/// The cost of the switch itself, by a pipe and by yields: where no more than two threads take
/// turns on a CPU, by those of two.
pub fn direct_of(points: &[ProfilePoint], threads_per_cpu: Option<f64>) -> Option<Direct> {
    let is_alike = |point: &&ProfilePoint| {
        point.yields && (point.members == 2 || threads_per_cpu.is_none_or(|of| of > 2.0))
    };
    let yields = points.iter().filter(is_alike).map(|point| point.total).reduce(Cost::around);
    Some(Direct { pipe: direct(points)?.into(), yields: yields.map(Into::into) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::price::CHEAPER;

    /// A yield of 700 ns.
    const SWITCH: f64 = 700.0 / CHEAPER;

    /// One thread a set: without a wait, in which others evict lines.
    const SAMPLED: Sampled = Sampled {
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

    fn ends(kib: u64, sampled: Sampled, between_ns: f64) -> (f64, f64) {
        let cost = cost(set(kib), sampled, Some(between_ns), &points()).unwrap();
        (cost.low_ns, cost.high_ns)
    }

    #[test]
    fn what_a_ring_of_as_many_measured_is_the_refill_within_the_drift() {
        // 1,024 lines of 6 ns; a yield of 700 to 800 ns.
        let (low, high) = ends(64, SAMPLED, 1e6);
        assert!((low - (SWITCH + 6144.0 / DRIFT)).abs() < 1.0, "{low}");
        let more = 6.0 * PLACES.ln() / 4_f64.ln();
        assert!((high - (800.0 + 1024.0 * (6.0 + more) * DRIFT)).abs() < 1.0, "{high}");
        // Half way between 64 and 256 KiB, less what the places of pages make of it; and between 8
        // and 64 members.
        let (low, high) = ends(128, SAMPLED, 1e6);
        let part = 0.5 - PLACES.ln() / 4_f64.ln();
        assert!((low - (SWITCH + 2048.0 * (6.0 + 6.0 * part) / DRIFT)).abs() < 1.0, "{low}");
        assert!((high - (800.0 + 2048.0 * (12.0 - 6.0 * part) * DRIFT)).abs() < 1.0, "{high}");
        let between = Sampled { sets_per_cpu: 512_f64.sqrt(), ..SAMPLED };
        let (low, _) = ends(64, between, 1e6);
        assert!((low - (SWITCH + 1024.0 * 33.0 / DRIFT)).abs() < 1.0, "{low}");
    }

    #[test]
    fn no_more_is_fetched_than_there_is_time_for() {
        // Each line takes 4 ns and up to some 10 more: of 2,000 ns 10/14 at the most, of which half
        // in code with memory.
        let sampled = Sampled { memory_share: 0.5, ..SAMPLED };
        let (_, high) = ends(64, sampled, 4000.0);
        let line = DRIFT * (6.0 + 6.0 * PLACES.ln() / 4_f64.ln());
        assert!((high - (800.0 + 2000.0 * line / (line + 4.0))).abs() < 1.0, "{high}");
        // Without any memory only the switch is left.
        assert_eq!(ends(64, Sampled { memory_share: 0.0, ..SAMPLED }, 1e6), (SWITCH, 800.0));
    }

    #[test]
    fn others_evict_what_waits() {
        // 7 others of 1 ms each: 7/10 of the way to the dearest line, 60 ns.
        let waits = Sampled { threads_per_cpu: 8.0, ..SAMPLED };
        let (_, high) = ends(64, waits, 1e6);
        let line = 6.0 + 6.0 * PLACES.ln() / 4_f64.ln();
        let line = line + 0.7 * (60.0 - line);
        assert!((high - (800.0 + 1024.0 * line * DRIFT)).abs() < 1.0, "{high}");
    }

    #[test]
    fn what_can_be_fetched_ahead_costs_nothing_at_least() {
        let (low, high) = ends(64, Sampled { dependent_share: 0.0, ..SAMPLED }, 1e6);
        assert_eq!(low, SWITCH);
        assert!(high > 9000.0, "{high}");
        // One set on a CPU: whatever runs in between may use the cache or not.
        assert_eq!(ends(64, Sampled { sets_per_cpu: 1.0, ..SAMPLED }, 1e6).0, SWITCH);
    }

    /// Nobody else evicts what fits into a private cache, nor does it cost another time when others
    /// use theirs.
    #[test]
    fn what_fits_into_a_private_cache_is_known_within_a_smaller_factor() {
        let fits = |of: ProfilePoint| ProfilePoint { fits_private_cache: of.members == 8, ..of };
        let points: Vec<ProfilePoint> = points().into_iter().map(fits).collect();
        let waits = Sampled { threads_per_cpu: 8.0, ..SAMPLED };
        let line = 6.0 + 6.0 * PLACES.ln() / 4_f64.ln();
        let found = cost(set(64), waits, Some(1e6), &points).unwrap();
        assert!((found.high_ns - (800.0 + 1024.0 * line * PRIVATE_DRIFT)).abs() < 1.0, "{found:?}");
        // Between it and what does not fit nobody knows.
        let between = Sampled { sets_per_cpu: 16.0, ..waits };
        let found = cost(set(64), between, Some(1e6), &points).unwrap();
        assert!(found.high_ns > 800.0 + 1024.0 * line * DRIFT, "{found:?}");
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
            cost(set(kib), Sampled { sets_per_cpu, ..SAMPLED }, Some(1e9), points)
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
            let sampled = Some(Sampled { sets_per_cpu, ..SAMPLED });
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

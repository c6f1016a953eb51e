//! Triples: time of a hop above the members' own solos, all on the same memory.
//!
//! A hop with a working set contains the member's walk of its array. A solo in another worker has
//! its array on other pages, where the walk may be slower or faster. So each worker of `cost` times
//! every member alone, then the ring, then every member alone again, on one memory. Two members and
//! a ring of three slices, with the numbers of the quanta:
//!
//! ```text
//!  member 0   member 1   slice   slice   slice   member 0    member 1
//! 0        1 2        3 4       5       6       7 8        9 10       11
//! ```
//!
//! A time counts if the two quanta on each side of it are clean, and if no other task ran in it. The
//! solos take 20 laps, a slice 10 laps of two hops; per hop, in nanoseconds:
//!
//! - Member 0 alone: 2,000 and 2,040, the median is 2,020. Member 1 alone: 6,000, and 9,000 before
//!   quantum 11, which shows a shared core: left out. The mean over the members is 4,010.
//! - The ring: 5,000, 5,100, and 7,000 in a slice of which the members had the CPU for 70 %: left
//!   out. The figures are 5,000 - 4,010 = 990 and 5,100 - 4,010 = 1,090: what a hop costs above the
//!   walks themselves. The estimate is the median over workers of each worker's median.
//!
//! Pieces: a hop of 0.6 ms is longer than a slice, and quanta around it do not show what was
//! between. The member stops within its walk for a quantum, so that the hop has three pieces of
//! 0.2 ms and one part from its last quantum to the first of the next hop. For each of these four
//! parts the median of the clean times in the solos is subtracted from that in the ring, for example
//! 3.0, 1.0, 0.5 and 1.5 us: a hop of this member takes 6.0 us more than alone, though no hop need
//! have been clean throughout. The figure is the mean over the members; where one part was never
//! clean there is none. `rundata` adds the parts up ([`Triples::clean_in_pieces`]); the code below
//! is for hops that were not cut.

use rundata::ring::{Triple, Triples, was_alone_in_slice};
use stats::{mean, median};

use super::at_the_runs_clock;
use super::clock::{CleanParts, ClockModel, TimedAtClock};
use super::level::{ClockFilter, SpeedLevel};

/// Returns what a hop takes above the members' solos in each clean part of the rings, in
/// nanoseconds, signed: less the mean over the members of the median of their clean solos.
///
/// The triples of a worker walk the same memory, so a ring needs no clean solos of its own triple.
/// Empty where a member has no clean solo, where no part of a ring is clean, and where no place of
/// the memory was tried on an unshared core. Times are at the run's clock; with `clocks` (of rings
/// and of solos) those at other clocks are converted to it.
pub(crate) fn clean_above_solos_ns(
    triples: &Triples,
    level: &SpeedLevel,
    clocks: Option<(ClockModel, ClockModel)>,
) -> Vec<f64> {
    let any_clock = if clocks.is_some() { ClockFilter::Any } else { ClockFilter::TheRuns };
    let CleanParts { rings, solos } = clean_parts(triples, level, any_clock);
    let (ring_clock, solo_clock) = match clocks {
        Some((ring, solo)) => (Some(ring), Some(solo)),
        None => (None, None),
    };
    let mut medians = Vec::new();
    for member in solos {
        let Some(median) = median(&convert_all(member, solo_clock)) else {
            return Vec::new();
        };
        medians.push(median);
    }
    let Some(solo) = mean(&medians) else { return Vec::new() };
    let mut above = convert_all(rings, ring_clock);
    for hop_ns in &mut above {
        *hop_ns -= solo;
    }
    above.retain(|above| above.is_finite());
    above
}

/// Converts times to the run's clock; without a model they are at that clock already.
fn convert_all(times: Vec<TimedAtClock>, clock: Option<ClockModel>) -> Vec<f64> {
    times.into_iter().map(|time| at_the_runs_clock(time, clock.as_ref())).collect()
}

/// Returns the clean parts of rings and solos at these clocks, of triples whose hops were not cut
/// into pieces.
pub(super) fn clean_parts(
    triples: &Triples,
    level: &SpeedLevel,
    clocks: ClockFilter,
) -> CleanParts {
    if triples.places.is_some_and(|places| places.unshared == Some(0)) {
        return CleanParts::default();
    }
    let mut whole = triples.alone().concat();
    whole.retain(|triple| triples.is_whole(triple));
    // A whole triple has a solo of each member: their number is no larger than what is there.
    let members = if whole.is_empty() { 0 } else { triples.members as usize };
    let (mut rings, mut solos) = (Vec::new(), vec![Vec::new(); members]);
    let hops = triples.ring_laps as f64 * members as f64;
    for triple in whole {
        let slices = triple.ring_ns.len();
        for (slice, ns) in triple.ring_ns.iter().enumerate() {
            if !was_alone_in_slice(&triple.ring_cpu_ns, slice, *ns) {
                continue;
            }
            if let Some(quantum_ns) = quantum_between(triple, level, clocks, 2 * members + slice) {
                rings.push((quantum_ns, *ns as f64 / hops));
            }
        }
        for (solo, ns) in triple.solos_ns.iter().enumerate() {
            if !was_alone_in_slice(&triple.solos_cpu_ns, solo, *ns) {
                continue;
            }
            // Quanta of the ring come before those of the solos after it.
            let behind = if solo < members { 0 } else { slices + 1 };
            if let Some(quantum_ns) = quantum_between(triple, level, clocks, 2 * solo + behind) {
                solos[solo % members].push((quantum_ns, *ns as f64 / triples.solo_laps as f64));
            }
        }
    }
    CleanParts { rings, solos }
}

/// Returns the latency quantum, in nanoseconds, of what lies between quantum `first` and the next,
/// if these two and the one on each side of them are clean at these clocks.
fn quantum_between(
    triple: &Triple,
    level: &SpeedLevel,
    clocks: ClockFilter,
    first: usize,
) -> Option<f64> {
    let from = first.saturating_sub(1);
    let around: Vec<(u32, u32)> = triple.quanta().skip(from).take(first + 3 - from).collect();
    level.quantum_ns(clocks, &around)
}

#[cfg(test)]
mod tests {
    use super::super::level::made_up::{ALONE, SHARED, level};
    use super::*;
    use rundata::ring::MemoryPlaces;

    /// A triple of two members and a ring of `ring_ns`; the quanta of these numbers are those of a
    /// shared core.
    fn triple(solos_ns: [u64; 4], ring_ns: &[u64], shared: &[usize]) -> Triple {
        let count = 9 + ring_ns.len();
        let quanta = (0..count).map(|i| if shared.contains(&i) { SHARED } else { ALONE });
        let (latency_ns, throughput_ns) = quanta.unzip();
        Triple {
            ring_ns: ring_ns.to_vec(),
            solos_ns: solos_ns.to_vec(),
            latency_ns,
            throughput_ns,
            ..Triple::default()
        }
    }

    /// Ten laps of a slice of the ring, of two members, and twenty of each solo.
    fn triples(all: Vec<Triple>) -> Triples {
        Triples { members: 2, ring_laps: 10, solo_laps: 20, all, ..Triples::default() }
    }

    fn clean(all: Vec<Triple>) -> Vec<f64> {
        clean_above_solos_ns(&triples(all), &level(), None)
    }

    /// Solos of 100 and 300 ns a hop.
    const SOLOS: [u64; 4] = [2000, 6000, 2000, 6000];

    #[test]
    fn a_hop_of_the_ring_less_the_mean_of_its_members_solos() {
        let one = || triple(SOLOS, &[20_000, 22_000], &[]);
        assert_eq!(clean(vec![one()]), [800.0, 900.0]);
        assert_eq!(triples(vec![one()]).above_solos_as_found_ns(), Some(850.0));
        // Signed.
        assert_eq!(clean(vec![triple(SOLOS, &[2000], &[])]), [-100.0]);
    }

    #[test]
    fn a_place_that_was_tried_on_a_shared_core_only_says_nothing() {
        let at = |unshared| Triples {
            places: Some(MemoryPlaces { tried: 8, unshared }),
            ..triples(vec![triple(SOLOS, &[20_000], &[])])
        };
        let clean = |unshared| clean_above_solos_ns(&at(unshared), &level(), None);
        assert_eq!(
            (clean(Some(0)), clean(Some(1)), clean(None)),
            (vec![], vec![800.0], vec![800.0])
        );
    }

    #[test]
    fn a_part_is_clean_if_the_two_quanta_on_each_side_are() {
        // Quanta 0 to 3 are those of the solos before, 4 to 7 of the ring's three slices, 8 to 11
        // of the solos.
        let slices = [20_000, 30_000, 40_000];
        // Another triple has all solos that are wanted, and no clean slice.
        let solos = || triple(SOLOS, &slices, &[5, 6]);
        let left = |quantum| clean(vec![triple(SOLOS, &slices, &[quantum]), solos()]);
        assert_eq!(left(0), [800.0, 1300.0, 1800.0]);
        assert_eq!(left(2), [800.0, 1300.0, 1800.0]);
        assert_eq!(left(3), [1300.0, 1800.0]);
        assert_eq!(left(4), [1800.0]);
        assert!(left(5).is_empty() && left(6).is_empty());
        assert_eq!(left(7), [800.0]);
        assert_eq!(left(8), [800.0, 1300.0]);
        assert_eq!(left(9), [800.0, 1300.0, 1800.0]);
    }

    #[test]
    fn solos_are_those_of_the_whole_worker_and_each_member_needs_one() {
        // The last solo was on a shared core, and so says nothing: others of the same member do.
        let slow = triple([2000, 6000, 2000, 60_000], &[20_000], &[9]);
        assert_eq!(clean(vec![slow]), [800.0]);
        // All solos were; the quanta around the ring are clean.
        let shared = || triple([9; 4], &[20_000], &[0, 1, 8, 9]);
        assert!(clean(vec![shared()]).is_empty());
        let solos = triple(SOLOS, &[90_000], &[4]);
        assert_eq!(clean(vec![shared(), solos]), [800.0]);
    }

    #[test]
    fn a_damaged_triple_says_nothing() {
        let whole = triple(SOLOS, &[20_000], &[]);
        let mut short = whole.clone();
        short.solos_ns.pop();
        let mut without = whole.clone();
        without.throughput_ns.pop();
        let no_ring = Triple { ring_ns: Vec::new(), ..whole.clone() };
        let none = Triple::default();
        let damaged = vec![short, without, no_ring, none];
        assert!(clean(damaged.clone()).is_empty());
        assert_eq!(triples(damaged).above_solos_as_found_ns(), None);
        for members in [0, 1, u32::MAX] {
            let others = Triples { members, ..triples(vec![whole.clone()]) };
            assert!(clean_above_solos_ns(&others, &level(), None).is_empty());
        }
        // Times that are those of pieces.
        let cut = Triples { pieces: Some(2), ..triples(vec![whole.clone()]) };
        assert!(clean_above_solos_ns(&cut, &level(), None).is_empty());
        let no_laps = Triples { solo_laps: 0, ..triples(vec![whole]) };
        assert!(clean_above_solos_ns(&no_laps, &level(), None).is_empty());
    }

    #[test]
    fn what_waited_is_not_as_the_machine_was_found() {
        let one = |ring_ns| triple(SOLOS, &[ring_ns], &[]);
        let all = || vec![one(20_000), one(10_000), one(10_000)];
        assert_eq!(triples(all()).above_solos_as_found_ns(), Some(300.0));
        let as_found = |count| Triples { as_found: Some(count), ..triples(all()) };
        assert_eq!(as_found(1).above_solos_as_found_ns(), Some(800.0));
        assert_eq!(as_found(0).above_solos_as_found_ns(), None);
        assert_eq!(as_found(u32::MAX).above_solos_as_found_ns(), Some(300.0));
    }

    #[test]
    fn slices_that_others_ran_in_are_beside_others_however_short_their_turns() {
        let one = |ring_cpu_ns: &[u64]| Triple {
            ring_cpu_ns: ring_cpu_ns.to_vec(),
            ..triple(SOLOS, &[20_000, 30_000, 40_000], &[])
        };
        let count =
            |ring_cpu_ns: &[u64]| triples(vec![one(ring_cpu_ns)]).ring_slices_beside_others();
        assert_eq!((count(&[20_000, 30_000, 40_000]), count(&[])), (0, 0));
        assert_eq!(count(&[20_000, 20_000, 40_000]), 1);
        assert_eq!(count(&[14_000, 20_000, 28_000]), 3);
    }

    #[test]
    fn a_part_that_others_ran_in_says_nothing() {
        let beside = |ring_cpu_ns: &[u64], solos_cpu_ns: &[u64]| Triple {
            ring_cpu_ns: ring_cpu_ns.to_vec(),
            solos_cpu_ns: solos_cpu_ns.to_vec(),
            ..triple(SOLOS, &[20_000, 30_000], &[])
        };
        assert_eq!(clean(vec![beside(&[20_000, 30_100], &SOLOS)]), [800.0, 1300.0]);
        assert_eq!(clean(vec![beside(&[20_000, 15_000], &SOLOS)]), [800.0]);
        // A solo of each member is enough, and each member needs one.
        assert_eq!(clean(vec![beside(&[], &[1000, 6000, 2000, 3000])]), [800.0, 1300.0]);
        assert!(clean(vec![beside(&[], &[1000, 6000, 1000, 6000])]).is_empty());
    }
}

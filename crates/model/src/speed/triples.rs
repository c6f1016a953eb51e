//! What a hop takes above the members' own solos, all on the same memory.

use super::clock::{Clock, Parts, Timed};
use super::level::{Clocks, Level};
use crate::ring::{Triple, Triples, is_alone};
use stats::{mean, median};

impl Triples {
    /// What a hop of the ring takes above the mean of its members' solos, in nanoseconds; signed.
    fn above_solos_ns(&self, triple: &Triple) -> Option<f64> {
        let mean = |times: &[u64], laps: u64| {
            times.iter().map(|ns| *ns as f64).sum::<f64>() / (laps as f64 * times.len() as f64)
        };
        let ring = mean(&triple.ring_ns, self.ring_laps) / f64::from(self.members);
        let above = ring - mean(&triple.solos_ns, self.solo_laps);
        (self.is_whole(triple) && above.is_finite()).then_some(above)
    }

    /// Those that were timed as the machine was found, and those that waited.
    pub(crate) fn as_found_and_waited(&self) -> (&[Triple], &[Triple]) {
        let as_found = self.as_found.map_or(self.all.len(), |count| count as usize);
        self.all.split_at(as_found.min(self.all.len()))
    }

    /// Slices of all rings.
    pub(crate) fn ring_slices(&self) -> u32 {
        self.all.iter().map(|one| one.ring_ns.len() as u32).fold(0, u32::saturating_add)
    }

    /// Slices of rings in which others ran, and those of triples in or near which they had a turn.
    pub(crate) fn ring_slices_beside_others(&self) -> u32 {
        let slices = |one: &&Triple| {
            let all = one.ring_ns.iter().enumerate();
            all.filter(|(at, ns)| alone(&one.ring_cpu_ns, *at, **ns)).count() as u32
        };
        let alone = self.alone().concat().iter().map(slices).fold(0, u32::saturating_add);
        self.ring_slices().saturating_sub(alone)
    }

    /// The median of the triples that were timed as the machine was found, at whatever speed;
    /// absent without one.
    pub fn above_solos_as_found_ns(&self) -> Option<f64> {
        if self.pieces.is_some() {
            return self.above_in_pieces_as_found_ns();
        }
        let (as_found, _) = self.as_found_and_waited();
        median(&as_found.iter().filter_map(|one| self.above_solos_ns(one)).collect::<Vec<f64>>())
    }

    /// What a hop takes above the members' solos in each clean part of the ring, in nanoseconds:
    /// less the mean over the members of the median of their clean solos. All parts of a worker are
    /// on the same memory, so that a ring needs no clean solos of its own triple. None where a
    /// member has no clean solo, where a part of the ring is not clean, and where no place of their
    /// memory was tried on an unshared core: the one that was taken is any. They are at the run's
    /// clock: where `clocks` (of rings and of solos) bring times to it, those at any count.
    pub(crate) fn clean_above_solos_ns(
        &self,
        level: &Level,
        clocks: Option<(Clock, Clock)>,
    ) -> Vec<f64> {
        let any = if clocks.is_some() { Clocks::Any } else { Clocks::TheRuns };
        let Parts { rings, solos } = self.clean_parts(level, any);
        let of = |clock: Option<Clock>, timed: Vec<Timed>| -> Vec<f64> {
            timed.into_iter().map(|one| clock.map_or(one.1, |clock| clock.bring(one))).collect()
        };
        let (ring, solo) = clocks.unzip();
        let medians: Option<Vec<f64>> =
            solos.into_iter().map(|of_member| median(&of(solo, of_member))).collect();
        let Some(solo) = medians.and_then(|medians| mean(&medians)) else { return Vec::new() };
        of(ring, rings).into_iter().map(|ring| ring - solo).filter(|of| of.is_finite()).collect()
    }

    /// The clean parts at these clocks, where they are not in pieces.
    pub(super) fn clean_parts(&self, level: &Level, clocks: Clocks) -> Parts {
        if self.places.is_some_and(|places| places.unshared == Some(0)) {
            return Parts::default();
        }
        let mut whole = self.alone().concat();
        whole.retain(|one| self.is_whole(one));
        // One that is whole has a solo of each member: their number is no larger than what is
        // there.
        let members = if whole.is_empty() { 0 } else { self.members as usize };
        let (mut rings, mut solos) = (Vec::new(), vec![Vec::new(); members]);
        let hops = self.ring_laps as f64 * members as f64;
        for triple in whole {
            let slices = triple.ring_ns.len();
            let quantum_ns = |first: usize| triple.quantum_between(level, clocks, first);
            let ring = triple.ring_ns.iter().enumerate();
            let is_alone = |(at, ns): &(usize, &u64)| alone(&triple.ring_cpu_ns, *at, **ns);
            rings.extend(ring.filter(is_alone).filter_map(|(slice, ns)| {
                Some((quantum_ns(2 * members + slice)?, *ns as f64 / hops))
            }));
            for (solo, ns) in triple.solos_ns.iter().enumerate() {
                let behind = if solo < members { 0 } else { slices + 1 };
                let quantum_ns = quantum_ns(2 * solo + behind);
                let quantum_ns = quantum_ns.filter(|_| alone(&triple.solos_cpu_ns, solo, *ns));
                let hop_ns = *ns as f64 / self.solo_laps as f64;
                solos[solo % members].extend(quantum_ns.map(|quantum_ns| (quantum_ns, hop_ns)));
            }
        }
        Parts { rings, solos }
    }

    fn is_whole(&self, triple: &Triple) -> bool {
        let solos = (self.members as usize).saturating_mul(2);
        let quanta = (2 * triple.solos_ns.len()).saturating_add(triple.ring_ns.len() + 1);
        self.members > 0
            && self.pieces.is_none()
            && !triple.ring_ns.is_empty()
            && triple.solos_ns.len() == solos
            && triple.latency_ns.len() == quanta
            && triple.throughput_ns.len() == quanta
    }
}

/// Whether nobody else ran meanwhile, as far as that was looked at.
fn alone(cpu_ns: &[u64], at: usize, elapsed_ns: u64) -> bool {
    cpu_ns.get(at).is_none_or(|cpu_ns| is_alone(elapsed_ns, *cpu_ns))
}

impl Triple {
    /// Its quanta: latency-bound and throughput-bound loop.
    pub fn quanta(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.latency_ns.iter().copied().zip(self.throughput_ns.iter().copied())
    }

    /// The latency quantum of what lies between quantum `first` and the next where that is clean at
    /// these clocks: these two are, and those beside them.
    fn quantum_between(&self, level: &Level, clocks: Clocks, first: usize) -> Option<f64> {
        let from = first.saturating_sub(1);
        let around: Vec<(u32, u32)> = self.quanta().skip(from).take(first + 3 - from).collect();
        level.quantum_ns(clocks, &around)
    }
}

#[cfg(test)]
mod tests {
    use super::super::level::made_up::{ALONE, SHARED, level};
    use super::*;
    use crate::ring::Places;

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
        triples(all).clean_above_solos_ns(&level(), None)
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
            places: Some(Places { tried: 8, unshared }),
            ..triples(vec![triple(SOLOS, &[20_000], &[])])
        };
        let clean = |unshared| at(unshared).clean_above_solos_ns(&level(), None);
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
            assert!(others.clean_above_solos_ns(&level(), None).is_empty());
        }
        // Times that are those of pieces.
        let cut = Triples { pieces: Some(2), ..triples(vec![whole.clone()]) };
        assert!(cut.clean_above_solos_ns(&level(), None).is_empty());
        let no_laps = Triples { solo_laps: 0, ..triples(vec![whole]) };
        assert!(no_laps.clean_above_solos_ns(&level(), None).is_empty());
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

//! Hops that take longer than a slice, cut into pieces between quanta: the time of a hop of the
//! ring, and its time above the members' own solos.
//!
//! A hop of 10 ms is rarely undisturbed throughout. Cut into 40 pieces of 0.25 ms, it only needs
//! each piece to have been clean in some hop: the medians of the clean pieces add up to a clean
//! hop.

use stats::median;

use super::triples::count_ring_times;
use super::{MAX_JUDGED_SLICE_NS, RingSample, Triple, Triples};
use crate::reference::is_near;

/// Figures from the clean pieces of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PieceFigures {
    /// Time of a hop of the ring, in nanoseconds, with what passes between two hops.
    pub hop_ns: Option<f64>,
    /// Time of a hop above the mean of the members' solos, in nanoseconds; signed.
    pub above_ns: Option<f64>,
    /// Number of clean parts of the rings.
    pub clean: u32,
    /// Number of clean parts in triples that were timed as the machine was found.
    pub clean_as_found: u32,
}

/// Times of a part of one member's hop, in nanoseconds: of a piece, or from the last quantum to the
/// first of the next hop.
#[derive(Clone, Debug, Default)]
struct PartTimes {
    ring: Vec<f64>,
    solo: Vec<f64>,
}

impl RingSample {
    /// Returns the triples, where their hops were cut into pieces.
    pub fn in_pieces(&self) -> Option<&Triples> {
        self.triples.as_deref().filter(|triples| triples.pieces.is_some())
    }
}

impl Triples {
    /// Counts the parts of all rings whose hops were cut, and the parts in triples that were timed
    /// as the machine was found.
    pub fn ring_parts(&self) -> (u32, u32) {
        let (as_found, waited) = self.as_found_and_waited();
        let count_as_found = count_ring_times(as_found);
        (count_as_found.saturating_add(count_ring_times(waited)), count_as_found)
    }

    /// Computes the figures from the clean parts: medians of each part of each member's hop,
    /// summed. There is no figure where a part was never clean, in the ring or in the solos, nor
    /// where no place of the memory was tried on an unshared core.
    pub fn clean_in_pieces(&self, is_clean: impl Fn((u32, u32)) -> bool + Copy) -> PieceFigures {
        let mut times = Vec::new();
        let [as_found, waited] = self.alone();
        let clean_as_found = self.add_parts(as_found, &mut times, MAX_JUDGED_SLICE_NS, is_clean);
        let clean_waited = self.add_parts(waited, &mut times, MAX_JUDGED_SLICE_NS, is_clean);
        let clean = clean_as_found.saturating_add(clean_waited);
        let mut figures = PieceFigures { clean, clean_as_found, ..PieceFigures::default() };
        if !self.has_only_shared_places() {
            figures.hop_ns = self.hop_ns(&times);
            figures.above_ns = self.above_ns(&times);
        }
        figures
    }

    /// Returns whether each place of the memory was tried on a shared core.
    fn has_only_shared_places(&self) -> bool {
        match self.places {
            Some(places) => places.unshared == Some(0),
            None => false,
        }
    }

    /// Returns whether each part of a hop was seen on a core with this ratio of throughput-bound to
    /// latency-bound loop, at whatever clock, in the ring and in the solos.
    pub fn are_seen_unshared(&self, unshared_ratio: f64) -> bool {
        let mut times = Vec::new();
        self.add_parts(&self.all, &mut times, MAX_JUDGED_SLICE_NS, |(latency, throughput)| {
            is_near(f64::from(throughput), unshared_ratio * f64::from(latency))
        });
        self.above_ns(&times).is_some()
    }

    /// Returns the time of a hop above the solos in the triples that were timed as the machine was
    /// found, at whatever speed, in nanoseconds.
    pub fn above_in_pieces_as_found_ns(&self) -> Option<f64> {
        let mut times = Vec::new();
        self.add_parts(self.as_found_and_waited().0, &mut times, u64::MAX, |_| true);
        self.above_ns(&times)
    }

    /// Returns the time of a hop; `None` unless each part has a time in the ring.
    fn hop_ns(&self, times: &[PartTimes]) -> Option<f64> {
        if times.is_empty() {
            return None;
        }
        let mut sum_ns = 0.0;
        for part in times {
            sum_ns += median(&part.ring)?;
        }
        Some(sum_ns / f64::from(self.members))
    }

    /// Returns the time of a hop above the solos; `None` unless each part has a time in both.
    fn above_ns(&self, times: &[PartTimes]) -> Option<f64> {
        if times.is_empty() {
            return None;
        }
        let mut sum_ns = 0.0;
        for part in times {
            sum_ns += median(&part.ring)? - median(&part.solo)?;
        }
        Some(sum_ns / f64::from(self.members))
    }

    /// Adds the clean parts of these triples, none longer than `longest_ns`, to `times`, member by
    /// member in the order of a hop. Returns the number of clean parts of rings.
    fn add_parts<'a>(
        &self,
        triples: impl IntoIterator<Item = &'a Triple>,
        times: &mut Vec<PartTimes>,
        longest_ns: u64,
        is_clean: impl Fn((u32, u32)) -> bool + Copy,
    ) -> u32 {
        let mut clean = 0_u32;
        let members = self.members as usize;
        for triple in triples {
            let Some(each) = self.parts_of_hop(triple) else { continue };
            times.resize(members * each, PartTimes::default());
            let quanta: Vec<bool> = triple.quanta().map(is_clean).collect();
            let (solo, ring) = (self.solo_laps as usize * each, self.ring_laps as usize * each);
            let (before, rest) = quanta.split_at(members * solo);
            let (between, after) = rest.split_at(members * ring);
            let mut solo_quanta: Vec<&[bool]> = before.chunks(solo).collect();
            solo_quanta.extend(after.chunks(solo));
            let solo_parts = triple.solos_ns.chunks(solo - 1);
            for (number, (quanta, parts)) in solo_quanta.into_iter().zip(solo_parts).enumerate() {
                for (part, ns) in clean_parts(quanta, parts, longest_ns) {
                    times[number % members * each + part % each].solo.push(ns);
                }
            }
            for (part, ns) in clean_parts(between, &triple.ring_ns, longest_ns) {
                // The leader's hop is the last of a lap.
                let member = (part / each + 1) % members;
                times[member * each + part % each].ring.push(ns);
                clean = clean.saturating_add(1);
            }
        }
        clean
    }

    /// Returns the number of parts of a hop, counting what comes before the next hop; `None` where
    /// a triple lacks times.
    fn parts_of_hop(&self, triple: &Triple) -> Option<usize> {
        let pieces = self.pieces?;
        if pieces == 0 {
            return None;
        }
        let each = (pieces as usize).checked_add(1)?;
        let members = self.members as usize;
        let solo_hops = usize::try_from(self.solo_laps).ok()?.checked_mul(members)?;
        let ring_hops = usize::try_from(self.ring_laps).ok()?.checked_mul(members)?;
        let solo_quanta = solo_hops.checked_mul(2)?.checked_mul(each)?;
        let ring_quanta = ring_hops.checked_mul(each)?;
        let solo_parts = solo_quanta.checked_sub(members.checked_mul(2)?)?;
        let quanta = solo_quanta.checked_add(ring_quanta)?;
        let is_whole = solo_quanta > 0
            && triple.solos_ns.len() == solo_parts
            && Some(triple.ring_ns.len()) == ring_quanta.checked_sub(1)
            && triple.latency_ns.len() == quanta
            && triple.throughput_ns.len() == quanta;
        if is_whole { Some(each) } else { None }
    }
}

/// Returns the clean parts of a phase with their number. A part is clean where the two quanta on
/// each side are, as far as the phase has them, and where these are no further apart than
/// `longest_ns`: otherwise they do not show what was between.
fn clean_parts(quanta: &[bool], parts_ns: &[u64], longest_ns: u64) -> Vec<(usize, f64)> {
    let mut clean = Vec::new();
    for (part, ns) in parts_ns.iter().enumerate() {
        let around = part.saturating_sub(1)..(part + 3).min(quanta.len());
        if *ns <= longest_ns && quanta[around].iter().all(|is_clean| *is_clean) {
            clean.push((part, *ns as f64));
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quanta of an unshared and of a shared core.
    const ALONE: (u32, u32) = (6000, 6060);
    const SHARED: (u32, u32) = (6000, 8400);

    fn is_unshared(quanta: (u32, u32)) -> bool {
        quanta == ALONE
    }

    /// Time of a part of the hop of one member.
    type Part<'a> = &'a dyn Fn(usize, usize) -> u64;

    /// Two members, two pieces a hop, two laps of the ring, two of each solo. What lies between
    /// quanta of a shared core takes ten times as long.
    fn triple(solo: Part, ring: Part, shared: &[usize]) -> Triple {
        let quanta = (0..36).map(|i| if shared.contains(&i) { SHARED } else { ALONE });
        let (latency_ns, throughput_ns) = quanta.unzip();
        let time = |first: usize, number: usize, ns: u64| {
            let is_shared = [0, 1].iter().any(|next| shared.contains(&(first + number + next)));
            if is_shared { 10 * ns } else { ns }
        };
        let solo = |first: usize, member: usize| {
            (0..5).map(move |number| time(first, number, solo(member, number % 3)))
        };
        let solos = [(0, 0), (6, 1), (24, 0), (30, 1)];
        // The members' hops in the order of time: 1, 0, 1, 0.
        let ring = (0..11).map(|number| time(12, number, ring((number / 3 + 1) % 2, number % 3)));
        Triple {
            ring_ns: ring.collect(),
            solos_ns: solos.iter().flat_map(|(first, member)| solo(*first, *member)).collect(),
            latency_ns,
            throughput_ns,
            ..Triple::default()
        }
    }

    fn triples(all: Vec<Triple>) -> Triples {
        Triples {
            members: 2,
            ring_laps: 2,
            solo_laps: 2,
            pieces: Some(2),
            all,
            ..Triples::default()
        }
    }

    /// Another time for each part of each member.
    fn solo(member: usize, part: usize) -> u64 {
        1000 * (member as u64 + 1) + 100 * part as u64
    }

    fn ring(member: usize, part: usize) -> u64 {
        solo(member, part) + [[7, 11, 13], [17, 19, 23]][member][part]
    }

    fn said(all: Vec<Triple>) -> (Option<f64>, Option<f64>, u32) {
        let found = triples(all).clean_in_pieces(is_unshared);
        (found.above_ns, found.hop_ns, found.clean)
    }

    #[test]
    fn a_hop_is_the_sum_of_its_parts_and_its_cost_that_above_the_solos() {
        // (7 + 11 + 13 + 17 + 19 + 23) / 2 above (3300 + 6300) / 2.
        assert_eq!(said(vec![triple(&solo, &ring, &[])]), (Some(45.0), Some(4845.0), 11));
        // Signed.
        let less = |member: usize, part: usize| solo(member, part) - 10;
        assert_eq!(said(vec![triple(&solo, &less, &[])]), (Some(-30.0), Some(4770.0), 11));
    }

    #[test]
    fn no_hop_needs_to_be_clean_throughout_but_each_part_once() {
        // Each quantum spoils the two parts on each of its sides, in its phase.
        let hit = triple(&solo, &ring, &[3, 9, 14, 20, 26, 32]);
        assert_eq!(said(vec![hit.clone()]), (None, None, 3));
        let other = triple(&solo, &ring, &[0, 6, 18, 29, 35]);
        assert_eq!(said(vec![other.clone()]), (None, None, 7));
        assert_eq!(said(vec![hit, other]), (Some(45.0), Some(4845.0), 10));
        // A part of a solo that was never clean leaves the hop, and one of the ring leaves nothing.
        let no_solo = triple(&solo, &ring, &[0, 3, 24, 27]);
        assert_eq!(said(vec![no_solo]), (None, Some(4845.0), 11));
        let no_ring = triple(&solo, &ring, &[12, 18]);
        assert_eq!(said(vec![no_ring]).0, None);
    }

    #[test]
    fn a_phase_is_judged_by_its_own_quanta() {
        // The last of the solos before and the first of those after the ring: its parts are all
        // clean.
        let beside = triple(&solo, &ring, &[11, 24]);
        assert_eq!(said(vec![beside]), (Some(45.0), Some(4845.0), 11));
    }

    #[test]
    fn a_part_longer_than_any_slice_that_is_judged_is_not_clean() {
        let long = |member: usize, part: usize| match (member, part) {
            (0, 1) => MAX_JUDGED_SLICE_NS + 1,
            _ => ring(member, part),
        };
        let long = vec![triple(&solo, &long, &[])];
        assert_eq!(said(long.clone()), (None, None, 9));
        // At whatever speed it is what it is.
        assert!(triples(long).above_solos_as_found_ns() > Some(1e6));
    }

    #[test]
    fn a_worker_has_seen_enough_when_each_part_was_unshared_once_at_any_clock() {
        let slower = |mut one: Triple| {
            one.latency_ns.iter_mut().chain(&mut one.throughput_ns).for_each(|ns| *ns *= 2);
            one
        };
        let seen = |all: Vec<Triple>| triples(all).are_seen_unshared(1.01);
        let hit = || slower(triple(&solo, &ring, &[3, 9, 14, 20, 26, 32]));
        assert!(!seen(vec![]) && !seen(vec![hit()]));
        assert!(seen(vec![hit(), slower(triple(&solo, &ring, &[0, 6, 18, 29, 35]))]));
        // At a clock that is not the run's they are not clean.
        assert_eq!(said(vec![slower(triple(&solo, &ring, &[]))]), (None, None, 0));
    }

    #[test]
    fn what_waited_is_not_as_the_machine_was_found() {
        let shared: Vec<usize> = (0..36).collect();
        let found = Triples {
            as_found: Some(1),
            ..triples(vec![triple(&solo, &ring, &shared), triple(&solo, &ring, &[])])
        };
        assert_eq!(found.ring_parts(), (22, 11));
        assert_eq!(found.above_solos_as_found_ns(), Some(450.0));
        let clean = found.clean_in_pieces(is_unshared);
        assert_eq!((clean.clean, clean.clean_as_found, clean.above_ns), (11, 0, Some(45.0)));
    }

    #[test]
    fn a_place_that_was_tried_on_a_shared_core_only_says_nothing() {
        let at = |unshared| {
            let places = Some(crate::ring::MemoryPlaces { tried: 8, unshared });
            Triples { places, ..triples(vec![triple(&solo, &ring, &[])]) }
        };
        let above = |unshared| at(unshared).clean_in_pieces(is_unshared).above_ns;
        assert_eq!((above(Some(0)), above(Some(1)), above(None)), (None, Some(45.0), Some(45.0)));
    }

    #[test]
    fn a_damaged_triple_says_nothing() {
        let whole = || triple(&solo, &ring, &[]);
        let nothing = |of: Triples| {
            let clean = of.clean_in_pieces(is_unshared);
            assert_eq!(clean, PieceFigures::default(), "{of:?}");
            assert_eq!(of.above_solos_as_found_ns(), None);
            // Nor is it read as one whose hops were not cut.
            assert!(!of.all.iter().any(|triple| of.is_whole(triple)));
        };
        let damages: [fn(&mut Triple); 5] = [
            |one| one.ring_ns.truncate(10),
            |one| one.solos_ns.truncate(19),
            |one| one.latency_ns.truncate(35),
            |one| one.throughput_ns.truncate(35),
            |one| *one = Triple::default(),
        ];
        for damage in damages {
            let mut one = whole();
            damage(&mut one);
            nothing(triples(vec![one]));
        }
        for count in [0, 1, 3, u32::MAX] {
            nothing(Triples { members: count, ..triples(vec![whole()]) });
            nothing(Triples { pieces: Some(count), ..triples(vec![whole()]) });
        }
        for laps in [0, 1, u64::MAX / 2, u64::MAX] {
            nothing(Triples { ring_laps: laps, ..triples(vec![whole()]) });
            nothing(Triples { solo_laps: laps, ..triples(vec![whole()]) });
        }
    }

    #[test]
    fn triples_that_were_stored_without_pieces_are_read_as_they_were() {
        let old = r#"{"members":2,"ring_laps":1,"solo_laps":3,"all":[]}"#;
        let read: Triples = serde_json::from_str(old).unwrap();
        assert_eq!((read.pieces, serde_json::to_string(&read).unwrap().as_str()), (None, old));
        let cut = triples(vec![triple(&solo, &ring, &[])]);
        let text = serde_json::to_string(&cut).unwrap();
        assert_eq!(serde_json::from_str::<Triples>(&text).unwrap(), cut);
    }
}

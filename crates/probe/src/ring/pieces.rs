//! Triples of working sets whose hop takes longer than a slice.
//!
//! A hop of 10 ms lasts as long as forty slices. Quanta around laps could not vouch for it, so each
//! member cuts its own walk, in its solos and in the ring, and runs a quantum around each
//! piece (`sys/pieces.rs`). The leader reads the members' notes afterwards and lines up the hops of
//! a phase in the order of time. Two members, three pieces a hop, one lap:
//!
//! ```text
//! member 1: q piece q piece q piece q         member 0: q piece q piece q piece q
//!                                     handover
//! ```
//!
//! What lies between two quanta, the handover too, is one part: `Triple::ring_ns` then has
//! 3 + 1 + 3 parts for this lap, and each part is judged by the quanta around it like a slice.

use std::sync::atomic::Ordering;

use rundata::ring::{Slices, Triple, Work};

use super::link::RingError;
use super::member::{RingLeader, WARM_LAPS};
use crate::sys::{MAX_NOTES, PieceTimes};

/// Wanted time of a piece as a share of a slice's time: what lies between two quanta is then
/// shorter than a slice.
const PIECE_SHARE: f64 = 0.8;
/// Timed laps of the ring between two phases of solos: each member makes as many hops in them as in
/// both its solos.
pub const RING_LAPS: u64 = 2 * SOLO_LAPS;
/// Timed laps of each solo.
pub const SOLO_LAPS: u64 = 3;
/// Largest number of pieces of a hop; the pieces of larger arrays are longer.
const MAX_PIECES: u64 = 1000;
const _: () = assert!((WARM_LAPS + RING_LAPS) * (MAX_PIECES + 1) <= MAX_NOTES as u64);

/// Returns the number of pieces into which a hop of `hop_ns` is cut, or `None` if it is no longer
/// than a slice.
pub fn pieces_of_hop(work: &Work, hop_ns: f64, slice_ns: u64) -> Option<u32> {
    let wanted = (hop_ns / (PIECE_SHARE * slice_ns.max(1) as f64)).ceil() as u64;
    let pieces = wanted.min(MAX_PIECES).min(work.touches()) as u32;
    (hop_ns > slice_ns as f64 && pieces > 1).then_some(pieces)
}

/// Times of a phase: of the parts between two quanta, and of the quanta.
#[derive(Debug, Default)]
struct PiecePhase {
    parts_ns: Vec<u64>,
    latency_ns: Vec<u32>,
    throughput_ns: Vec<u32>,
    /// Moment at which the last quantum ended.
    end_ns: u64,
}

impl PiecePhase {
    /// Adds the notes of a hop. The first note has the moment at which the hop began: the part
    /// before it is the handover since the hop before. Each other note has the time of a piece.
    fn add_hop(&mut self, hop: &[PieceTimes]) {
        for (number, noted) in hop.iter().enumerate() {
            if number > 0 {
                self.parts_ns.push(noted.since_ns);
                self.end_ns = self.end_ns.saturating_add(noted.since_ns);
            } else {
                let is_first_hop = self.latency_ns.is_empty();
                if !is_first_hop {
                    self.parts_ns.push(noted.since_ns.saturating_sub(self.end_ns));
                }
                self.end_ns = noted.since_ns;
            }
            self.latency_ns.push(noted.latency_ns);
            self.throughput_ns.push(noted.throughput_ns);
            let quantum_ns = u64::from(noted.latency_ns) + u64::from(noted.throughput_ns);
            self.end_ns = self.end_ns.saturating_add(quantum_ns);
        }
    }

    /// Moves the times of the quanta to `triple`; returns those of the parts.
    fn move_quanta_to(self, triple: &mut Triple) -> Vec<u64> {
        triple.latency_ns.extend(self.latency_ns);
        triple.throughput_ns.extend(self.throughput_ns);
        self.parts_ns
    }
}

/// Adds the time of a phase in which competing tasks ran: it passed, but was not the members' CPU
/// time.
fn add_competing_time(triple: &mut Triple, elapsed_ns: u64, cpu_ns: u64) {
    let others_ns = triple.others_ns.get_or_insert(0);
    *others_ns = others_ns.saturating_add(elapsed_ns.saturating_sub(cpu_ns));
}

impl RingLeader<'_> {
    /// Measures each member's solo, the ring and each solo again, in `pieces` pieces of a hop.
    pub fn measure_triple_in_pieces(&mut self, pieces: u32) -> Result<Triple, RingError> {
        self.area.pieces.store(pieces.into(), Ordering::Release);
        let mut triple = Triple::default();
        self.solos_in_pieces(pieces, &mut triple)?;
        self.area.noted_hops.store(WARM_LAPS + RING_LAPS, Ordering::Release);
        let mut ring_slice = Slices::with_room_for(1, RING_LAPS);
        self.run_between_solos(1, &mut ring_slice)?;
        for (elapsed_ns, cpu_ns) in ring_slice.elapsed_ns.iter().zip(&ring_slice.cpu_ns) {
            add_competing_time(&mut triple, *elapsed_ns, *cpu_ns);
        }
        triple.ring_ns = self.ring_phase(pieces).move_quanta_to(&mut triple);
        self.solos_in_pieces(pieces, &mut triple)?;
        self.area.noted_hops.store(0, Ordering::Release);
        if ring_slice.cpu_ns.is_empty() {
            // Not known of the ring: the solos alone would mislead.
            triple.others_ns = None;
        }
        Ok(triple)
    }

    /// Runs a phase of solos in pieces, whose times are added to `triple`.
    fn solos_in_pieces(&mut self, pieces: u32, triple: &mut Triple) -> Result<(), RingError> {
        self.area.noted_hops.store(WARM_LAPS + SOLO_LAPS, Ordering::Release);
        self.run_solos(SOLO_LAPS)?;
        for cell in self.cells() {
            let solo = cell.solo();
            add_competing_time(triple, solo.elapsed_ns, solo.cpu_ns);
        }
        for member in 0..self.cells().len() {
            let mut phase = PiecePhase::default();
            for hop in self.noted_hops(member, pieces, SOLO_LAPS) {
                phase.add_hop(&hop);
            }
            let parts_ns = phase.move_quanta_to(triple);
            triple.solos_ns.extend(parts_ns);
        }
        Ok(())
    }

    /// Returns the times of the ring's phase. In each lap the leader's hop is the last.
    fn ring_phase(&self, pieces: u32) -> PiecePhase {
        let mut hops_of_members = Vec::new();
        for member in 0..self.cells().len() {
            hops_of_members.push(self.noted_hops(member, pieces, RING_LAPS));
        }
        hops_of_members.rotate_left(1);
        let mut phase = PiecePhase::default();
        for lap in 0..RING_LAPS as usize {
            for hop in hops_of_members.iter().filter_map(|hops| hops.get(lap)) {
                phase.add_hop(hop);
            }
        }
        phase
    }

    /// Returns what a member noted of its timed hops, hop by hop.
    fn noted_hops(&self, member: usize, pieces: u32, laps: u64) -> Vec<Vec<PieceTimes>> {
        let notes_per_hop = pieces as usize + 1;
        let Some(notes) = self.area.notes_of(member) else { return Vec::new() };
        let hops = notes.all().chunks(notes_per_hop);
        let mut timed_hops = Vec::new();
        for hop in hops.skip(WARM_LAPS as usize).take(laps as usize) {
            timed_hops.push(hop.iter().map(|note| note.get()).collect());
        }
        timed_hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rundata::ring::AccessKind;

    #[test]
    fn a_hop_that_is_longer_than_a_slice_is_cut() {
        let work = Work::new(8 << 20, 64, AccessKind::Rmw).unwrap();
        let pieces = |hop_ns| pieces_of_hop(&work, hop_ns, 250_000);
        let cuts = [250_000.0, 250_001.0, 400_001.0, 10e6, 10e9].map(pieces);
        assert_eq!(cuts, [None, Some(2), Some(3), Some(50), Some(1000)]);
        // No more than there are elements, and a slow link alone is no reason.
        let tiny = Work::new(24, 8, AccessKind::Rmw).unwrap();
        assert_eq!(pieces_of_hop(&tiny, 10e6, 250_000), Some(3));
        assert_eq!(pieces_of_hop(&Work::new(8, 8, AccessKind::Rmw).unwrap(), 10e6, 250_000), None);
    }

    #[test]
    fn a_phase_is_what_lies_between_its_quanta() {
        let noted = |since_ns, latency_ns, throughput_ns| PieceTimes {
            since_ns,
            latency_ns,
            throughput_ns,
        };
        let mut phase = PiecePhase::default();
        phase.add_hop(&[noted(1000, 10, 20), noted(300, 11, 21), noted(400, 12, 22)]);
        // The first hop ends at 1000 + 30 + 300 + 32 + 400 + 34 = 1796.
        phase.add_hop(&[noted(1800, 13, 23), noted(500, 14, 24), noted(600, 15, 25)]);
        let mut triple = Triple::default();
        assert_eq!(phase.move_quanta_to(&mut triple), [300, 400, 4, 500, 600]);
        assert_eq!(triple.latency_ns, [10, 11, 12, 13, 14, 15]);
        assert_eq!(triple.throughput_ns, [20, 21, 22, 23, 24, 25]);
    }
}

//! Triples of working sets whose hop takes longer than a slice: each member cuts its walk into
//! pieces, in the ring and alone, and runs a reference quantum around each.

use std::sync::atomic::Ordering;

use model::ring::{Slices, Triple, Work};

use super::link::RingError;
use super::member::{RingLeader, WARM_LAPS};
use crate::sys::{MOST_NOTES, PieceTimes};

/// Wanted time of a piece, of that of a slice: what lies between two quanta is then no longer than
/// a slice.
const PIECE_SHARE: f64 = 0.8;
/// Timed laps of the ring between two phases of solos: as many hops of each member as its solos
/// have.
pub const RING_LAPS: u64 = 2 * SOLO_LAPS;
/// Timed laps of each solo.
pub const SOLO_LAPS: u64 = 3;
/// Pieces of a hop at most: those of larger arrays are longer.
const MOST_PIECES: u64 = 1000;
const _: () = assert!((WARM_LAPS + RING_LAPS) * (MOST_PIECES + 1) <= MOST_NOTES as u64);

/// Into how many pieces a hop of `hop_ns` is cut, none where it is no longer than a slice.
pub fn pieces(work: &Work, hop_ns: f64, slice_ns: u64) -> Option<u32> {
    let wanted = (hop_ns / (PIECE_SHARE * slice_ns.max(1) as f64)).ceil() as u64;
    let pieces = wanted.min(MOST_PIECES).min(work.touches()) as u32;
    (hop_ns > slice_ns as f64 && pieces > 1).then_some(pieces)
}

/// The times of a phase: of all that lies between two quanta, and of both loops of the quanta.
#[derive(Debug, Default)]
struct PiecePhase {
    parts_ns: Vec<u64>,
    latency_ns: Vec<u32>,
    throughput_ns: Vec<u32>,
    /// When its last quantum ended.
    end_ns: u64,
}

impl PiecePhase {
    /// A hop: its quanta, and before each but the first a piece. Before the first one is what came
    /// since the last hop.
    fn add(&mut self, hop: &[PieceTimes]) {
        for (number, noted) in hop.iter().enumerate() {
            match number {
                0 if self.latency_ns.is_empty() => self.end_ns = noted.since_ns,
                0 => {
                    self.parts_ns.push(noted.since_ns.saturating_sub(self.end_ns));
                    self.end_ns = noted.since_ns;
                }
                _ => {
                    self.parts_ns.push(noted.since_ns);
                    self.end_ns = self.end_ns.saturating_add(noted.since_ns);
                }
            }
            self.latency_ns.push(noted.latency_ns);
            self.throughput_ns.push(noted.throughput_ns);
            let quantum_ns = u64::from(noted.latency_ns) + u64::from(noted.throughput_ns);
            self.end_ns = self.end_ns.saturating_add(quantum_ns);
        }
    }

    /// Hands its quanta over, and gives its parts.
    fn into(self, triple: &mut Triple) -> Vec<u64> {
        triple.latency_ns.extend(self.latency_ns);
        triple.throughput_ns.extend(self.throughput_ns);
        self.parts_ns
    }
}

/// Time that passed in a phase and was not the members' own.
fn add_others(triple: &mut Triple, elapsed_ns: u64, cpu_ns: u64) {
    let others_ns = triple.others_ns.get_or_insert(0);
    *others_ns = others_ns.saturating_add(elapsed_ns.saturating_sub(cpu_ns));
}

impl RingLeader<'_> {
    /// Each member's solo, the ring, each solo again, in so many pieces a hop.
    pub fn triple_in_pieces(&mut self, pieces: u32) -> Result<Triple, RingError> {
        self.area.pieces.store(pieces.into(), Ordering::Release);
        let mut triple = Triple::default();
        self.solos_in_pieces(pieces, &mut triple)?;
        self.area.noted_hops.store(WARM_LAPS + RING_LAPS, Ordering::Release);
        let mut whole = Slices::with_room_for(1, RING_LAPS);
        self.between_solos(1, &mut whole)?;
        for (elapsed_ns, cpu_ns) in whole.elapsed_ns.iter().zip(&whole.cpu_ns) {
            add_others(&mut triple, *elapsed_ns, *cpu_ns);
        }
        triple.ring_ns = self.ring_phase(pieces).into(&mut triple);
        self.solos_in_pieces(pieces, &mut triple)?;
        self.area.noted_hops.store(0, Ordering::Release);
        // Of solos alone it would say nothing of the ring.
        triple.others_ns = triple.others_ns.filter(|_| !whole.cpu_ns.is_empty());
        Ok(triple)
    }

    fn solos_in_pieces(&mut self, pieces: u32, to: &mut Triple) -> Result<(), RingError> {
        self.area.noted_hops.store(WARM_LAPS + SOLO_LAPS, Ordering::Release);
        self.solos(SOLO_LAPS)?;
        for cell in self.cells() {
            let times_ns = cell.solo_ns.each_ref().map(|ns| ns.load(Ordering::Acquire));
            let [elapsed_ns, cpu_ns, ..] = times_ns;
            add_others(to, elapsed_ns, cpu_ns);
        }
        for hops in self.noted(pieces, SOLO_LAPS) {
            let mut phase = PiecePhase::default();
            hops.iter().for_each(|hop| phase.add(hop));
            let parts_ns = phase.into(to);
            to.solos_ns.extend(parts_ns);
        }
        Ok(())
    }

    /// In a lap the leader's hop is the last.
    fn ring_phase(&self, pieces: u32) -> PiecePhase {
        let mut members = self.noted(pieces, RING_LAPS);
        members.rotate_left(1);
        let mut phase = PiecePhase::default();
        for lap in 0..RING_LAPS as usize {
            members.iter().filter_map(|hops| hops.get(lap)).for_each(|hop| phase.add(hop));
        }
        phase
    }

    /// What each member noted of its timed hops, the leader first.
    fn noted(&self, pieces: u32, laps: u64) -> Vec<Vec<Vec<PieceTimes>>> {
        let each = pieces as usize + 1;
        let of_member = |member: usize| {
            let notes = self.area.notes_of(member);
            let all = notes.iter().flat_map(|notes| notes.all());
            let timed = all.skip(WARM_LAPS as usize * each).take(laps as usize * each);
            let timed: Vec<PieceTimes> = timed.map(|note| note.get()).collect();
            timed.chunks(each).map(<[PieceTimes]>::to_vec).collect()
        };
        (0..self.area.cells().len()).map(of_member).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ring::Op;

    #[test]
    fn a_hop_that_is_longer_than_a_slice_is_cut() {
        let work = Work::new(8 << 20, 64, Op::Rmw).unwrap();
        let of = |hop_ns| pieces(&work, hop_ns, 250_000);
        assert_eq!((of(250_000.0), of(250_001.0), of(400_001.0)), (None, Some(2), Some(3)));
        assert_eq!((of(10e6), of(10e9)), (Some(50), Some(1000)));
        // No more than there are elements, and a slow link alone is no reason.
        let tiny = Work::new(24, 8, Op::Rmw).unwrap();
        assert_eq!(pieces(&tiny, 10e6, 250_000), Some(3));
        assert_eq!(pieces(&Work::new(8, 8, Op::Rmw).unwrap(), 10e6, 250_000), None);
    }

    #[test]
    fn a_phase_is_what_lies_between_its_quanta() {
        let noted = |since_ns, latency_ns, throughput_ns| PieceTimes {
            since_ns,
            latency_ns,
            throughput_ns,
        };
        let mut phase = PiecePhase::default();
        phase.add(&[noted(1000, 10, 20), noted(300, 11, 21), noted(400, 12, 22)]);
        // The first hop ends at 1000 + 30 + 300 + 32 + 400 + 34 = 1796.
        phase.add(&[noted(1800, 13, 23), noted(500, 14, 24), noted(600, 15, 25)]);
        let mut triple = Triple::default();
        assert_eq!(phase.into(&mut triple), [300, 400, 4, 500, 600]);
        assert_eq!(triple.latency_ns, [10, 11, 12, 13, 14, 15]);
        assert_eq!(triple.throughput_ns, [20, 21, 22, 23, 24, 25]);
    }
}

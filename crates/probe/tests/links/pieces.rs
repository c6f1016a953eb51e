//! Hops that are longer than a slice are measured in pieces, each between two quanta.

use std::process::Command;
use std::time::Instant;

use rundata::ring::{AccessKind, MemberKind, RingBatching, RingCase, Walk, Work};

use testing::Need;

use crate::worker::{case, finish, start_batching};

/// The tests of this file.
pub const TESTS: &[crate::Test] = &[("pieces_are_counted", pieces_are_counted)];

const MEMBERS: usize = 3;
const LAPS: u64 = 8;

/// Slices so short that any hop with this work is longer than one.
fn batching(slice_ns: u64) -> RingBatching {
    RingBatching {
        laps: Some(LAPS),
        sample_ns: 1_000_000,
        samples_per_round: 1,
        enough_ns: 1,
        slice_ns: Some(slice_ns),
        triples: Some(2),
        places: Some(2),
        events: Vec::new(),
    }
}

fn pieces_are_counted() {
    for kind in [MemberKind::Process, MemberKind::Thread] {
        for walk in [Walk::Whole, Walk::Chase, Walk::Sparse] {
            let stride = if walk == Walk::Sparse { 4096 } else { 64 };
            let work = Work::new(1 << 18, stride, AccessKind::Rmw).unwrap();
            let work = Some(Work { walk, huge_pages: walk == Walk::Chase, ..work });
            let case = RingCase { work, ..case("pipe", kind, MEMBERS as u32) };
            let command = || Command::new(std::env::current_exe().unwrap());
            let began = Instant::now();
            let sample = finish(start_batching(command(), &case, batching(500))).unwrap();
            let all_ns = began.elapsed().as_nanos();
            if sample.slices.is_none() {
                return crate::skip(Need::X86, "this architecture has no quanta");
            }
            assert_eq!((sample.laps, sample.hops), (LAPS, LAPS * MEMBERS as u64));
            assert!(sample.switches() * 100 >= sample.hops * 95, "{sample:?}");
            let triples = sample.triples.unwrap();
            let each = triples.pieces.unwrap() as usize + 1;
            assert!(each > 2 && !triples.all.is_empty(), "{triples:?}");
            let ring_hops = triples.ring_laps as usize * MEMBERS;
            let solo_hops = triples.solo_laps as usize;
            assert_eq!(ring_hops, 2 * solo_hops * MEMBERS, "a place of each in both");
            for triple in &triples.all {
                assert_eq!(triple.ring_ns.len(), ring_hops * each - 1);
                assert_eq!(triple.solos_ns.len(), 2 * MEMBERS * (solo_hops * each - 1));
                let quanta = (ring_hops + 2 * MEMBERS * solo_hops) * each;
                assert_eq!((triple.latency_ns.len(), triple.throughput_ns.len()), (quanta, quanta));
                assert!(triple.quanta().all(|(latency, throughput)| latency > 0 && throughput > 0));
                assert!(triple.ring_ns.iter().chain(&triple.solos_ns).all(|ns| *ns > 0));
                // Stamps of different members are of one time: no part is longer than all of it.
                assert!(triple.ring_ns.iter().all(|ns| u128::from(*ns) < all_ns), "{triple:?}");
            }
            assert!(triples.above_solos_as_found_ns().is_some());
            // A hop that is shorter than a slice is measured as a whole.
            let plain = finish(start_batching(command(), &case, batching(10_000_000_000))).unwrap();
            assert_eq!(plain.triples.unwrap().pieces, None);
        }
    }
}

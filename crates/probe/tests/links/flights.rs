//! Rings with several items under way, and streams over full links: every item is made and counted.

use probe::ring::RegisteredLink;
use rundata::ring::{Flight, MemberKind, Policy, RingCase};
use rustix::process::Signal;
use testing::{repeats, wait_for};

use crate::left_behind::{ENDLESS, end_of, field, kill, member_of, members, signal};
use crate::rings::available;
use crate::{Test, worker};

pub const TESTS: &[Test] = &[
    ("every_link_makes_every_hop_with_several_items_under_way", every_hop),
    ("a_stream_over_a_full_link_has_a_hop_for_each_item", full_links),
    ("no_ring_stands_still_with_as_many_items_as_a_pipe_holds", most_items),
    ("counters_carry_as_many_items_as_they_count", counted_items),
    ("items_that_wait_save_switches", fewer_switches),
    ("a_ring_that_loses_a_member_with_items_under_way_ends", losses),
    ("what_a_link_cannot_hold_is_refused_before_it_is_measured", refused),
];

/// More than a queue of any link here holds, but pipes and those of System V.
const LAPS: u64 = 1000;

/// Few enough for all queues: of datagrams there are ten by default (net.unix.max_dgram_qlen).
const FEW: Flight = Flight::Items(4);

fn in_flight(link: &str, kind: MemberKind, members: u32, flight: Flight) -> RingCase {
    RingCase { flight: Some(flight), ..worker::case(link, kind, members) }
}

/// Calls `act` with each link that carries so many items at once.
fn each_able(flight: Flight, act: impl Fn(&RegisteredLink)) {
    let mut able = 0;
    for link in available() {
        if link.suits(&in_flight(link.name, MemberKind::Thread, 2, flight)).is_ok() {
            act(link);
            able += 1;
        }
    }
    assert!(able > 4, "pipes and sockets are everywhere");
}

fn hops(case: &RingCase, laps: u64) -> u64 {
    let sample = worker::finish(worker::start(case, laps));
    sample.unwrap_or_else(|error| panic!("{case:?}: {error}")).hops
}

fn every_hop() {
    each_able(FEW, |link| {
        for kind in MemberKind::ALL {
            for members in [2, 3, 8] {
                let case = in_flight(link.name, *kind, members, FEW);
                assert_eq!(hops(&case, LAPS), LAPS * u64::from(members), "{case:?}");
            }
            // Fewer laps than items.
            assert_eq!(hops(&in_flight(link.name, *kind, 2, FEW), 3), 6, "{}", link.name);
        }
    });
}

fn full_links() {
    each_able(Flight::Full, |link| {
        for kind in MemberKind::ALL {
            let case = in_flight(link.name, *kind, 2, Flight::Full);
            for laps in [1, LAPS] {
                assert_eq!(hops(&case, laps), laps, "{case:?}");
            }
        }
    });
}

fn most_items() {
    // A page: what each pipe holds, also of a user who has many (pipe(7)).
    let flight = Flight::Items(4096);
    for members in [2, 3] {
        let case = in_flight("pipe", MemberKind::Process, members, flight);
        assert_eq!(hops(&case, 10_000), 10_000 * u64::from(members));
    }
    let case = in_flight("pipe", MemberKind::Process, 2, Flight::Full);
    assert_eq!(hops(&case, 300_000), 300_000, "more than a pipe holds");
}

/// More items than a page of slots, and as many as the least of these links holds.
fn counted_items() {
    for (link, items) in [("eventfd", 65_536), ("epoll-eventfd", 65_536), ("sysv-sem", 32_767)] {
        if !available().any(|here| here.name == link) {
            continue;
        }
        let case = in_flight(link, MemberKind::Process, 2, Flight::Items(items));
        assert_eq!(hops(&case, 100_000), 200_000, "{link}");
    }
}

/// Without preemption on wake-up each member goes through all items before it waits.
fn fewer_switches() {
    const ATTEMPTS: u32 = 50;
    let flight = Flight::Items(16);
    let ring = in_flight("pipe", MemberKind::Process, 2, flight);
    let case = RingCase { policy: Policy::Batch, ..ring };
    let mut seen = f64::NAN;
    for _ in 0..ATTEMPTS {
        let sample = worker::finish(worker::start(&case, LAPS)).unwrap();
        seen = sample.switches_per_hop();
        let wakeups = sample.wakeups_per_hop();
        if seen < 0.2 && wakeups > 0.0 && wakeups <= seen {
            return;
        }
    }
    panic!("{seen} switches an item");
}

fn losses() {
    for (link, flight) in [
        ("pipe", FEW),
        ("eventfd", FEW),
        ("epoll-socket", FEW),
        ("io-uring-poll", FEW),
        ("sysv-sem", FEW),
        ("pipe", Flight::Full),
        ("socket-dgram", Flight::Full),
    ] {
        if !available().any(|here| here.name == link) {
            continue;
        }
        for _ in 0..repeats(1, 5) {
            let case = in_flight(link, MemberKind::Process, 2, flight);
            let start = || {
                let child = worker::start(&case, ENDLESS);
                let leader = child.id() as i32;
                // User and system time, in ticks.
                let ticks = || Some(field(leader, 14)? + field(leader, 15)?);
                let runs = || (members(&child).len() == 2 && ticks()? > 1).then_some(());
                wait_for("ring that runs", runs);
                child
            };
            let child = start();
            signal(member_of(&child), Signal::KILL);
            let said = end_of(child);
            assert!(said.contains("was killed by signal 9"), "{link} {flight}: {said}");
            kill(start());
        }
    }
}

fn refused() {
    let suits = |link: &str, flight| {
        let link = available().find(|here| here.name == link)?;
        Some(link.suits(&in_flight(link.name, MemberKind::Thread, 2, flight)))
    };
    for (link, flight, why) in [
        ("futex", FEW, "one shared word"),
        ("handler-signal", FEW, "is not queued a second time"),
        ("coroutine", FEW, "in a register"),
        ("condvar", FEW, "a condition variable counts nothing"),
        ("io-uring-msg", FEW, "which its next wait submits"),
        ("io-uring-futex", FEW, "one shared word"),
        ("epoll-socket", Flight::Full, "is refused (EAGAIN), not made to wait"),
        ("epoll-eventfd", Flight::Full, "never fills"),
        ("io-uring-poll", Flight::Full, "never fills"),
        ("sysv-sem", Flight::Full, "at its maximum of 32767 is refused (ERANGE)"),
        ("signal", Flight::Full, "is refused, not made to wait"),
        ("eventfd", Flight::Full, "never fills"),
    ] {
        let Some(suited) = suits(link, flight) else { continue };
        let error = suited.unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("(links that can: pipe, "), "{error}");
    }
    // A worker that is asked all the same refuses, too.
    let case = in_flight("futex", MemberKind::Process, 2, FEW);
    assert!(worker::finish(worker::start(&case, 10)).unwrap_err().contains("one shared word"));
    let case = in_flight("pipe", MemberKind::Process, 3, Flight::Full);
    assert!(worker::finish(worker::start(&case, 10)).unwrap_err().contains("accepted: 2 to 2"));
}

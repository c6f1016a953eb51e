//! Rings that lose a member, and such as only seem to: who went first is named, and soon.

use std::thread::sleep;
use std::time::Duration;

use model::placement::Placement;
use model::ring::{Case, Kind};
use rustix::process::Signal;

use crate::left_behind::{
    ENDLESS, each, end_of, group, member_of, signal, things, turning, wait_until,
};
use crate::rings::available;
use crate::worker;

pub const TESTS: &[(&str, fn())] = &[
    ("a_killed_member_ends_the_ring_at_once", killed_member),
    ("a_killed_member_that_was_stopped_is_noticed_too", stopped_and_killed),
    ("a_member_killed_while_the_ring_is_set_up_is_named", killed_in_set_up),
    ("a_member_that_cannot_be_put_on_its_cpu_is_named", misplaced),
    ("a_stopped_ring_goes_on", stopped),
];

fn killed_member() {
    each(|link| {
        let (before, child) = (things(), turning(link, ENDLESS));
        signal(member_of(&child), Signal::KILL);
        let said = end_of(link, child);
        // No signal interrupts pthread_cond_wait: such a leader is ended without a word.
        match link {
            "condvar" => assert!(said.contains("signal: 14"), "{said}"),
            _ => assert!(said.contains("was killed by signal 9"), "{link}: {said}"),
        }
        assert_eq!(things(), before, "{link}");
    });
}

/// The leader is asleep for good before the member dies: the token is with the stopped one.
fn stopped_and_killed() {
    each(|link| {
        let child = turning(link, ENDLESS);
        let member = member_of(&child);
        signal(member, Signal::STOP);
        sleep(Duration::from_millis(20));
        signal(member, Signal::KILL);
        let said = end_of(link, child);
        assert!(link == "condvar" || said.contains("was killed by signal 9"), "{link}: {said}");
    });
}

/// Some waits end when a process was stopped and goes on: no reason to lose the token.
fn stopped() {
    const LAPS: u64 = 50_000;
    each(|link| {
        let mut child = turning(link, LAPS);
        for stop in 0..5 {
            let all = group(child.id());
            all.iter().for_each(|pid| signal(*pid, Signal::STOP));
            sleep(Duration::from_millis(2));
            if child.try_wait().unwrap().is_some() {
                assert!(stop > 0, "{link}: it ended before it was stopped");
                break;
            }
            all.iter().for_each(|pid| signal(*pid, Signal::CONT));
            sleep(Duration::from_millis(5));
        }
        let sample = worker::finish(child).unwrap_or_else(|said| panic!("{link}: {said}"));
        assert_eq!(sample.hops, 3 * LAPS, "{link}");
    });
}

/// A minute may pass before such a ring has its first lap.
fn killed_in_set_up() {
    // With an end of file, without one, and one whose wait no signal ends.
    for link in ["pipe", "futex", "condvar"] {
        let child = worker::start(&worker::case(link, Kind::Process, 1000), ENDLESS);
        let leader = child.id() as i32;
        wait_until("some members are there", || group(child.id()).len() > 5);
        signal(member_of(&child), Signal::KILL);
        sleep(Duration::from_millis(5));
        // As if what is left of the set-up took that long.
        signal(leader, Signal::STOP);
        sleep(Duration::from_secs(3));
        signal(leader, Signal::CONT);
        let said = end_of(link, child);
        assert!(said.contains("was killed by signal 9"), "{link}: {said}");
    }
}

/// Refused by the kernel before its first lap; its neighbours only notice.
fn misplaced() {
    let words = "member 2 ended early: it could not be put on its CPU: Invalid argument";
    for link in available() {
        for kind in Kind::ALL {
            let case = worker::case(link.name, *kind, 4);
            let cpu = case.placement.cpus()[0];
            let placement = Placement::Pinned { cpus: vec![cpu, cpu, 5000, cpu], relation: None };
            let case = Case { placement, ..case };
            if link.suits(&case).is_err() {
                continue;
            }
            let said = end_of(link.name, worker::start(&case, ENDLESS));
            let unnamed = link.name == "condvar" && said.contains("signal: 14");
            assert!(said.contains(words) || unnamed, "{} {kind}: {said}", link.name);
        }
    }
}

//! Rings that lose a member, and such as only seem to: who went first is named, and soon.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rundata::placement::Placement;
use rundata::ring::{MemberKind, RingCase};
use rustix::process::{Pid, Signal, kill_process};
use testing::wait_for;

use crate::left_behind::{
    ENDLESS, each, end_of, has_pending, kill, member_of, members, signal, state, switches, turning,
    turns, until_alone,
};
use crate::rings::available;
use crate::{Test, worker};

pub const TESTS: &[Test] = &[
    ("a_killed_member_ends_the_ring_at_once", killed_member),
    ("a_killed_member_that_was_stopped_is_noticed_too", stopped_and_killed),
    ("a_member_killed_while_the_ring_is_set_up_is_named", killed_in_set_up),
    ("a_member_that_cannot_be_put_on_its_cpu_is_named", misplaced),
    ("a_stopped_ring_goes_on", stopped),
];

/// The shortest deadline of a worker's step: a ring that had not noticed its loss would end by it,
/// and with the same words as one that waits by pthread_cond_wait.
const DEADLINE: Duration = Duration::from_secs(60);

fn killed_member() {
    each(|link| {
        let child = turning(link, ENDLESS);
        signal(member_of(&child), Signal::KILL);
        let said = end_of(child);
        // No signal interrupts pthread_cond_wait: such a leader is ended without a word.
        match link {
            "condvar" => assert!(said.contains("signal: 14"), "{said}"),
            _ => assert!(said.contains("was killed by signal 9"), "{link}: {said}"),
        }
    });
}

/// The leader is asleep for good before the member dies: the token is with the stopped one.
fn stopped_and_killed() {
    each(|link| {
        let child = turning(link, ENDLESS);
        let (leader, member) = (child.id() as i32, member_of(&child));
        signal(member, Signal::STOP);
        wait_for("stop of a member", || (state(member) == Some('T')).then_some(()));
        // Whose members never sleep goes on without the token.
        let mut before = 0;
        wait_for("leader that sleeps", || {
            let now = switches(leader);
            let is_same = std::mem::replace(&mut before, now) == now;
            (link == "yield" || is_same && state(leader) == Some('S')).then_some(())
        });
        signal(member, Signal::KILL);
        let said = end_of(child);
        assert!(link == "condvar" || said.contains("was killed by signal 9"), "{link}: {said}");
    });
}

/// Some waits end when a process was stopped and goes on: no reason to lose the token.
fn stopped() {
    each(|link| {
        let mut laps = 20_000;
        // One that was stopped once only, or never, has to be longer.
        while stops_of(link, laps) < 2 {
            laps *= 4;
        }
    });
}

/// How often a ring of so many laps was stopped before it ended: up to five times.
fn stops_of(link: &str, laps: u64) -> u32 {
    let mut child = worker::start(&worker::case(link, MemberKind::Process, 3), laps);
    let is_turning = turns(&child);
    let (leader, all) = (child.id() as i32, members(&child));
    let send = |signal| {
        for pid in &all {
            // Unless it has ended.
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), signal);
        }
    };
    let mut stops = 0;
    while is_turning && stops < 5 && child.try_wait().unwrap().is_none() {
        send(Signal::STOP);
        wait_for("stop of the ring", || {
            all.iter().all(|pid| matches!(state(*pid), None | Some('T' | 'Z'))).then_some(())
        });
        stops += u32::from(state(leader) == Some('T'));
        let before = switches(leader);
        send(Signal::CONT);
        // Until it turns again, or has ended.
        wait_for("ring that goes on", || {
            let goes_on = switches(leader) > before + 50;
            (goes_on || matches!(state(leader), None | Some('Z'))).then_some(())
        });
    }
    let sample = worker::finish(child).unwrap_or_else(|said| panic!("{link}: {said}"));
    assert_eq!(sample.hops, 3 * laps, "{link}");
    until_alone(leader as u32);
    stops
}

/// A minute may pass before such a ring has its first lap.
fn killed_in_set_up() {
    // With an end of file, without one, and one whose wait no signal ends.
    let rings = ["pipe", "futex", "condvar"].map(|link| (link, stopped_in_set_up(link)));
    for (_, child) in &rings {
        let (leader, member) = (child.id() as i32, member_of(child));
        signal(member, Signal::KILL);
        signal(leader, Signal::CONT);
        wait_for("leader that was told", || {
            let is_dead = matches!(state(member), None | Some('Z'));
            (is_dead && !has_pending(leader, Signal::CHILD)).then_some(())
        });
        // As if what is left of the set-up took longer than a leader has left that waits.
        signal(leader, Signal::STOP);
    }
    thread::sleep(Duration::from_secs(3));
    for (link, child) in rings {
        signal(child.id() as i32, Signal::CONT);
        let said = end_of(child);
        assert!(said.contains("was killed by signal 9"), "{link}: {said}");
    }
}

/// A ring whose leader was stopped while it made members: most often at the first attempt.
fn stopped_in_set_up(link: &str) -> Child {
    const MEMBERS: u32 = 1000;
    wait_for("ring in its set-up", || {
        let child = worker::start(&worker::case(link, MemberKind::Process, MEMBERS), ENDLESS);
        let leader = child.id() as i32;
        wait_for("ring with some members", || (members(&child).len() > 5).then_some(()));
        signal(leader, Signal::STOP);
        wait_for("leader that is stopped", || (state(leader) == Some('T')).then_some(()));
        if members(&child).len() < MEMBERS as usize {
            return Some(child);
        }
        kill(child);
        None
    })
}

/// Refused by the kernel before its first lap; its neighbours only notice.
fn misplaced() {
    thread::scope(|scope| {
        for kind in MemberKind::ALL {
            scope.spawn(|| misplaced_of(*kind));
        }
    });
}

fn misplaced_of(kind: MemberKind) {
    let words = "member 2 ended early: it could not be put on its CPU: Invalid argument";
    for link in available() {
        let case = worker::case(link.name, kind, 4);
        let cpu = case.placement.cpus()[0];
        let placement = Placement::Pinned { cpus: vec![cpu, cpu, 5000, cpu], relation: None };
        let case = RingCase { placement, ..case };
        if link.suits(&case).is_err() {
            continue;
        }
        let start = Instant::now();
        let said = end_of(worker::start(&case, ENDLESS));
        let is_early = start.elapsed() < DEADLINE;
        let unnamed = link.name == "condvar" && said.contains("signal: 14") && is_early;
        assert!(said.contains(words) || unnamed, "{} {kind}: {said}", link.name);
    }
}

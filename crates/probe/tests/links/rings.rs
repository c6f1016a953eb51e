//! Rings of all links that this machine has.

use std::sync::LazyLock;

use probe::ring::{LINKS, RegisteredLink, RingError, find_link};
use rundata::placement::Placement;
use rundata::ring::{AccessKind, MemberKind, Policy, RingCase, RingSample, Work};
use testing::{Need, repeats, wait_for};

use crate::worker::{self, case};
use crate::{Test, left_behind, skip};

pub const TESTS: &[Test] = &[
    ("every_link_is_here_or_says_why_not", all_are_tried),
    ("an_alias_finds_the_link_whose_name_is_kept", aliases),
    ("every_link_makes_every_hop_in_rings_of_both_kinds", every_hop),
    ("who_sleeps_is_switched_to_once_a_hop", once_a_hop),
    ("a_coroutine_is_never_switched", never_switched),
    ("yield_switches_as_often_as_the_scheduler_likes", counted_yields),
    ("an_unsuited_ring_says_what_to_do", unsuited),
    ("a_working_set_that_no_address_space_holds_is_an_error", too_large),
    ("a_worker_with_another_thread_makes_no_ring_of_processes", with_a_thread),
    ("yield_and_coroutines_run_under_real_time_policies", real_time),
    ("only_rings_that_sleep_have_a_limit_on_running_without", real_time_limits),
    ("no_wake_up_is_lost_between_two_cpus", across_cpus),
    ("each_member_of_a_pinned_ring_is_on_its_own_cpu", pinned),
];

/// Laps of a sample, enough for counts within some per cent.
const LAPS: u64 = 300;

/// Samples that are taken until one has the right counts: in one of a few hundred microseconds
/// nobody else takes the CPU, but for bad luck.
const ATTEMPTS: u32 = 50;

/// The links that this machine has, tried once.
pub fn available() -> impl Iterator<Item = &'static RegisteredLink> {
    static AVAILABLE: LazyLock<Vec<&RegisteredLink>> = LazyLock::new(|| {
        let is_here =
            |link: &&RegisteredLink| link.available().inspect_err(|why| lacks(link, why)).is_ok();
        LINKS.iter().filter(is_here).collect()
    });
    AVAILABLE.iter().copied()
}

fn lacks(link: &RegisteredLink, why: &str) {
    // These take what every Linux has.
    let is_plain = ["pipe", "futex", "condvar", "yield", "signal"].contains(&link.name);
    assert!(!is_plain, "{}: {why}", link.name);
    let what = format!("link {}", link.name);
    skip(Need::Hardware(&what), format_args!("{}: {why}", link.name));
}

fn measure(case: &RingCase) -> RingSample {
    let name = format!("{} by {} of {}", case.members, case.link, case.kind);
    worker::finish(worker::start(case, LAPS)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The rings of `members` that each link can make.
fn each(members: u32, act: impl Fn(&RegisteredLink, RingCase)) {
    for link in available() {
        for kind in MemberKind::ALL {
            let case = case(link.name, *kind, members);
            if link.suits(&case).is_ok() {
                act(link, case);
            }
        }
    }
}

fn all_are_tried() {
    let names: Vec<&str> = LINKS.iter().map(|link| link.name).collect();
    assert_eq!(names.len(), 22, "{names:?}");
    for name in &names {
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name} twice");
    }
    // What needs no more than a kernel of this century.
    for name in ["pipe", "socket-stream", "signal", "futex", "yield", "coroutine"] {
        assert_eq!(find_link(name).unwrap().available(), Ok(()), "{name}");
    }
    for link in LINKS.iter() {
        let why = link.available().err().unwrap_or("a reason".to_string());
        assert!(!why.is_empty() && !link.needs.is_empty() && !link.summary.is_empty());
    }
}

fn aliases() {
    let name = |typed| find_link(typed).map(|link| link.name);
    assert_eq!(name("unix"), Some("socket-stream"));
    assert_eq!(name("tcp-loopback"), Some("tcp"));
    for known in LINKS {
        assert_eq!(name(known.name), Some(known.name));
        for alias in known.aliases {
            assert_eq!(name(alias), Some(known.name), "{alias} is another's too");
        }
    }
}

fn every_hop() {
    for members in [1, 2, 3, 16] {
        each(members, |_, case| {
            let sample = measure(&case);
            assert_eq!(sample.hops, LAPS * u64::from(members), "{case:?}");
        });
    }
}

/// The switches of a sample, again where something else took the CPU in between.
fn switches_per_hop(case: &RingCase, is_right: impl Fn(f64) -> bool) -> f64 {
    let mut seen = f64::NAN;
    for _ in 0..ATTEMPTS {
        seen = measure(case).switches_per_hop();
        if is_right(seen) {
            break;
        }
    }
    seen
}

fn once_a_hop() {
    let is_right = |switches: f64| (0.98..1.1).contains(&switches);
    each(2, |link, case| {
        if !["coroutine", "yield"].contains(&link.name) {
            let seen = switches_per_hop(&case, is_right);
            assert!(is_right(seen), "{} {}: {seen} switches a hop", link.name, case.kind);
        }
    });
    each(1, |link, case| {
        let seen = switches_per_hop(&case, |switches| switches < 0.1);
        assert!(seen < 0.1, "{} {}: {seen} switches a hop alone", link.name, case.kind);
    });
}

fn never_switched() {
    for members in [2, 16] {
        let case = case("coroutine", MemberKind::Thread, members);
        let seen = switches_per_hop(&case, |switches| switches < 0.01);
        assert!(seen < 0.01, "{seen} switches a hop of {members}");
    }
}

/// No law: the scheduler may come back to who has just yielded, or take members in any order. Only
/// that the counts are the ring's own, taken while it stood still.
fn counted_yields() {
    for kind in MemberKind::ALL {
        // Each member but the leader goes to sleep once, at the end of the batch.
        let is_right = |sample: &RingSample| sample.counters.voluntary <= 3;
        let mut samples = (0..ATTEMPTS).map(|_| measure(&case("yield", *kind, 2)));
        let sample = samples.find(is_right).expect("members that yield and do not sleep");
        let switches = sample.counters.switches();
        assert!(switches >= LAPS, "{kind}: {switches} switches in {LAPS} laps");
    }
}

fn unsuited() {
    let why = |case: &RingCase| match find_link(&case.link).unwrap().suits(case) {
        Err(error @ RingError::Other { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let of_processes = case("coroutine", MemberKind::Process, 2);
    assert!(why(&of_processes).contains("--kind thread"));
    // A worker that is told so all the same says it too.
    let said = worker::finish(worker::start(&of_processes, LAPS)).unwrap_err();
    assert!(said.contains("--kind thread"), "{said}");
    let apart = Placement::Pinned { cpus: vec![0, 1], relation: None };
    for name in ["yield", "coroutine"] {
        let case = RingCase { placement: apart.clone(), ..case(name, MemberKind::Thread, 2) };
        assert!(why(&case).contains("--placement same"), "{name}");
    }
}

/// As a stored plan may ask for.
fn too_large() {
    let work = Some(Work::new(u64::MAX - 7, 8, AccessKind::Rmw).unwrap());
    let case = RingCase { work, ..case("pipe", MemberKind::Process, 2) };
    let said = worker::finish(worker::start(&case, LAPS)).unwrap_err();
    let words = ["error: a working set of 18446744073709551608 bytes", "the limit is 1407"];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

/// Its members would have a lock that the other thread held, and not the thread.
fn with_a_thread() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.env(worker::SECOND_THREAD, "1");
    let case = case("pipe", MemberKind::Process, 2);
    let said = worker::finish(worker::start_by(command, &case, LAPS)).unwrap_err();
    assert!(said.contains("fork") && said.contains("os error 16"), "{said}");
    // Nor is a link tried by a child beside one.
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || held.recv());
    let said = find_link("pipe").unwrap().available().unwrap_err().to_string();
    drop(hold);
    other.join().unwrap().unwrap_err();
    assert!(said.contains("fork") && said.contains("os error 16"), "{said}");
    assert!(find_link("pipe").unwrap().available().is_ok(), "alone again");
}

/// They run on without ever sleeping, which other members may not do for long.
fn real_time() {
    if probe::ring::check_policy(Policy::Fifo).is_err() {
        return skip(Need::RealTime, "SCHED_FIFO needs CAP_SYS_NICE");
    }
    for (name, kind) in [("yield", MemberKind::Process), ("coroutine", MemberKind::Thread)] {
        let case = RingCase { policy: Policy::Fifo, ..case(name, kind, 2) };
        assert_eq!(measure(&case).hops, 2 * LAPS, "{name}");
    }
    // Under SCHED_FIFO a yield goes to the end of the line, so that there is a law.
    let case = RingCase { policy: Policy::Fifo, ..case("yield", MemberKind::Process, 2) };
    let seen = switches_per_hop(&case, |switches| (0.95..1.1).contains(&switches));
    assert!((0.95..1.1).contains(&seen), "{seen} switches a hop");
}

/// Soft RLIMIT_RTTIME in microseconds of a ring that has taken its policy; `None` is no limit.
fn spin_limit_us(link: &str, kind: MemberKind, members: u32) -> Option<u64> {
    let case = RingCase { policy: Policy::Fifo, ..case(link, kind, members) };
    let mut child = worker::start(&case, left_behind::ENDLESS);
    let pid = child.id() as i32;
    // The limit comes first, so that nothing runs under the policy without it.
    let fifo = |pid| left_behind::field(pid, 41) == Some(1);
    wait_for("ring under SCHED_FIFO", || fifo(pid).then_some(()));
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max realtime timeout")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().ok()
}

fn real_time_limits() {
    let of_self = std::fs::read_to_string("/proc/self/limits").unwrap();
    let unlimited =
        |line: &str| line.starts_with("Max realtime timeout ") && line.contains("unlim");
    if probe::ring::check_policy(Policy::Fifo).is_err() || !of_self.lines().any(unlimited) {
        return skip(Need::RealTime, "it takes CAP_SYS_NICE and no RLIMIT_RTTIME");
    }
    assert_eq!(spin_limit_us("yield", MemberKind::Process, 2), None);
    assert_eq!(spin_limit_us("coroutine", MemberKind::Thread, 2), None);
    assert_eq!(spin_limit_us("pipe", MemberKind::Process, 1), None, "a ring of one never waits");
    let two = spin_limit_us("pipe", MemberKind::Process, 2).expect("a limit");
    let hundred = spin_limit_us("pipe", MemberKind::Process, 100).expect("a limit");
    // The leader of a large ring makes all its members without sleeping.
    assert!(two >= 2_000_000 && hundred >= two + 98 * 1000, "{two} {hundred}");
}

/// A wake-up that comes just before the sleep is lost only where both run at once.
fn across_cpus() {
    let laps = repeats(2_000, 20_000);
    let cpus = probe::placement::allowed_cpus().unwrap();
    if cpus.len() < 2 {
        return skip(Need::TwoCpus, "there is one CPU only");
    }
    for link in available() {
        for kind in MemberKind::ALL {
            let placement = Placement::Free { cpus: cpus.clone() };
            let case = RingCase { placement, ..case(link.name, *kind, 2) };
            if link.suits(&case).is_ok() {
                let done = worker::finish(worker::start(&case, laps));
                let sample = done.unwrap_or_else(|said| panic!("{} {kind}: {said}", link.name));
                assert_eq!(sample.hops, 2 * laps, "{} {kind}", link.name);
            }
        }
    }
}

/// Whatever the leader's CPU, which they inherit.
fn pinned() {
    let cpus = probe::placement::allowed_cpus().unwrap();
    let [first, second, ..] = cpus[..] else {
        return skip(Need::TwoCpus, "there is one CPU only");
    };
    let placement = Placement::Pinned { cpus: vec![first, second, second], relation: None };
    let case = RingCase { placement, ..case("pipe", MemberKind::Process, 3) };
    let child = left_behind::until_it_turns(worker::start(&case, left_behind::ENDLESS));
    let mut members = left_behind::members(&child);
    members.sort_by_key(|pid| *pid != child.id() as i32);
    // On which CPU each ran last.
    let ran_on: Vec<_> = members.iter().map(|pid| left_behind::field(*pid, 39)).collect();
    left_behind::kill(child);
    assert_eq!(ran_on, [first, second, second].map(|cpu| Some(cpu.into())));
}

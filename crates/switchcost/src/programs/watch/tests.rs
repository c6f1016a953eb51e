//! Answers for programs, on fixed cost profiles.

use std::process::Command;
use std::time::Duration;

use analysis::program::*;
use rundata::reading::Reading;

use super::answer::{self, HeadlineFacts};
use super::figure::CostFigure;
use super::observation::*;

const KIB: u64 = 1024;

fn point(kib: u64, low_ns: f64, high_ns: f64) -> ProfilePoint {
    let total = Cost { low_ns, high_ns };
    ProfilePoint { array_bytes: kib * KIB, total, ..ProfilePoint::default() }
}

/// Returns costs that grow with the array; the smallest one has the cost of the switch itself.
fn points() -> Vec<ProfilePoint> {
    let direct = Some(Cost { low_ns: 2000.0, high_ns: 2500.0 });
    vec![
        ProfilePoint { direct, ..point(64, 3000.0, 4000.0) },
        point(128, 3500.0, 4500.0),
        point(256, 10_000.0, 20_000.0),
        point(512, 50_000.0, 90_000.0),
    ]
}

fn direct_ns() -> Option<Range> {
    direct(&points()).map(Into::into)
}

fn working_set(low_kib: u64, high_kib: u64, sampled: Option<AccessPattern>) -> WorkingSet {
    WorkingSet { low_bytes: low_kib * KIB, high_bytes: high_kib * KIB, sampled }
}

/// Returns a program of 1,000 switches a second on half a CPU.
fn program_with(set: WorkingSet) -> Program {
    Program {
        voluntary_per_s: Reading::Known(900.0),
        involuntary_per_s: Reading::Known(100.0),
        cpu_share: Reading::Known(0.5),
        working_set: Reading::Known(set),
    }
}

fn program(low_kib: u64, high_kib: u64) -> Program {
    program_with(working_set(low_kib, high_kib, None))
}

fn observation() -> ProgramObservation {
    ProgramObservation {
        pid: 7,
        name: "x".into(),
        watched_ns: 10_000_000_000,
        threads: Some(1),
        voluntary: Reading::Known(9000),
        involuntary: Reading::Known(1000),
        cpu_ns: Reading::Known(5_000_000_000),
        resident_bytes: Reading::Known(300 * KIB),
        ..ProgramObservation::default()
    }
}

fn unread(remedy: UnreadRemedy) -> UnreadReason {
    UnreadReason::new("touched pages were not counted (Permission denied)", Some(remedy))
}

/// Returns the answer for a traced program with a profile `x`.
fn headline(cost: &ProgramCost, unread: Option<&UnreadReason>, program: &Program) -> String {
    let priced_by = Some("by profile x, 1 hour old");
    headline_with(cost, unread, program, direct_ns(), priced_by, "a longer watch would narrow it")
}

fn headline_with(
    cost: &ProgramCost,
    unread: Option<&UnreadReason>,
    program: &Program,
    direct_ns: Option<Range>,
    priced_by: Option<&str>,
    advice: &str,
) -> String {
    let figure = CostFigure::from_estimate(cost, unread, direct_ns);
    let source = CountSource::Tracepoints;
    let figure = figure.as_ref();
    let facts = HeadlineFacts { figure, cost, unread, program, source, priced_by, advice };
    answer::headline(&facts).into()
}

fn command(cost: &ProgramCost, unread: Option<&UnreadReason>) -> Option<String> {
    answer::command_to_know(cost, unread, &observation(), Some("/runs/a.jsonl"))
}

#[test]
fn a_range_over_all_of_the_cpu_time_is_not_quoted() {
    // A million switches of -0.5 to 4 us in half a second of CPU time.
    let busy = Program { voluntary_per_s: Reading::Known(1e6), ..program(64, 64) };
    let cost = program_cost(&busy, &[point(64, -500.0, 4000.0)]);
    assert_eq!(
        headline_with(&cost, None, &busy, None, None, "wait"),
        "What switching costs this program is unknown: the range is too wide to be useful; wait."
    );
}

#[test]
fn an_unread_working_set_leaves_the_direct_share_and_a_command() {
    let program = program(0, 300);
    let cost = program_cost(&program, &points());
    let unprivileged = unread(UnreadRemedy::Privilege);
    assert_eq!(
        headline(&cost, Some(&unprivileged), &program),
        "Switching takes at least 0.4 % of its CPU time: 1,000 switches a second at 2.00 us or \
         more each, traced, by profile x, 1 hour old; what refilling caches adds is unknown."
    );
    let refill = answer::refill_share(&cost, Some(&unprivileged));
    assert_eq!(refill.why(), Some("touched pages were not counted (Permission denied)"));
    assert_eq!(
        command(&cost, Some(&unprivileged)).as_deref(),
        Some("sudo switchcost cost --profile /runs/a.jsonl --pid 7")
    );
    assert_eq!(
        command(&cost, Some(&unread(UnreadRemedy::Longer))).as_deref(),
        Some("switchcost cost --pid 7 --budget 60s")
    );
}

#[test]
fn for_several_processes_the_busiest_is_watched_before_arrays_are_measured() {
    let several = unread(UnreadRemedy::Child(Some(8)));
    let beyond_arrays = program_cost(&program(10, 3000), &points());
    assert_eq!(
        command(&beyond_arrays, Some(&several)).as_deref(),
        Some("switchcost cost --pid 8 --no-children")
    );
    let refill = answer::refill_share(&beyond_arrays, Some(&several));
    assert_eq!(refill.why(), Some(several.why.as_str()));
}

#[test]
fn a_working_set_beyond_the_arrays_asks_for_larger_ones() {
    let large = program(10, 3000);
    let cost = program_cost(&large, &points());
    assert_eq!(command(&cost, None).as_deref(), Some("switchcost cost --array 1K..4MiB:x2"));
    let words = headline(&cost, None, &large);
    assert!(words.starts_with("Switching takes at least 0.4 % of"), "{words}");
}

#[test]
fn without_a_profile_one_has_to_be_measured_first() {
    let program = program(0, 300);
    let cost = program_cost(&program, &[]);
    let unread = unread(UnreadRemedy::Privilege);
    assert_eq!(
        answer::command_to_know(&cost, Some(&unread), &observation(), None).as_deref(),
        Some("switchcost cost")
    );
    assert_eq!(
        headline_with(&cost, Some(&unread), &program, None, None, ""),
        "What switching costs this program is unknown: no stored cost profile: run `switchcost cost` first."
    );
}

/// 3 to 180 us a switch are wider than an answer may be.
#[test]
fn a_range_that_is_too_wide_leaves_its_lower_end_and_advice() {
    let wide = program(64, 512);
    let cost = program_cost(&wide, &points());
    assert_eq!(
        headline(&cost, None, &wide),
        "Switching takes at least 0.6 % of its CPU time: 1,000 switches a second at 3.00 us or \
         more each, traced, by profile x, 1 hour old; the upper end is unknown: a longer watch \
         would narrow it."
    );
    let pattern = AccessPattern {
        sets_per_cpu: 2.0,
        threads_per_cpu: 1.0,
        memory_share: 1.0,
        dependent_share: 1.0,
        involuntary_share: 0.0,
    };
    let pages = program_with(working_set(64, 512, None));
    let loose = program_with(working_set(64, 512, Some(pattern)));
    let narrow = program_with(working_set(64, 65, Some(pattern)));
    let process = observation();
    let command = ProgramObservation { command: Some(Vec::new()), ..observation() };
    assert!(answer::narrowing_advice(&process, &pages).contains("CAP_PERFMON"));
    assert!(answer::narrowing_advice(&process, &loose).contains("--budget 60s"));
    assert!(answer::narrowing_advice(&command, &loose).contains("a longer run"));
    assert!(answer::narrowing_advice(&process, &narrow).contains("--array 8K..256KiB:x2"));
}

#[test]
fn the_refill_is_the_whole_less_the_direct_cost() {
    let cost = program_cost(&program(128, 256), &points());
    let refill = answer::refill_share(&cost, None);
    let refill = refill.known().unwrap();
    let is_near = (refill.low - 0.002).abs() < 1e-12 && (refill.high - 0.036).abs() < 1e-12;
    assert!(is_near, "{refill:?}");
}

/// The busiest process of a program may end before it is watched.
#[test]
fn the_next_process_is_watched_if_one_has_ended() {
    let mut ended = Command::new("true").spawn().expect("true");
    ended.wait().expect("its end");
    let (running_pid, ended_pid) = (std::process::id() as i32, ended.id() as i32);
    let second = Duration::from_secs(1);
    let watcher = super::watch_first([ended_pid, running_pid], second).expect("this process runs");
    assert_eq!(watcher.pid(), std::process::id());
    assert!(super::watch_first([ended_pid], second).is_err_and(|error| error.is_end()));
}

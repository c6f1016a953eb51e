//! What is said of programs, on fixed cost profiles.

use analysis::program::*;
use rundata::reading::Reading;

use super::answer;
use super::figure::CostFigure;
use super::seen::*;

const KIB: u64 = 1024;

fn point(kib: u64, low_ns: f64, high_ns: f64) -> ProfilePoint {
    let total = Cost { low_ns, high_ns };
    ProfilePoint { array_bytes: kib * KIB, total, ..ProfilePoint::default() }
}

fn profile() -> Vec<ProfilePoint> {
    vec![
        point(64, 3000.0, 4000.0),
        point(128, 3500.0, 4500.0),
        point(256, 10_000.0, 20_000.0),
        point(512, 50_000.0, 90_000.0),
    ]
}

fn program(low_kib: u64, high_kib: u64) -> Program {
    Program {
        voluntary_per_s: Reading::Known(900.0),
        involuntary_per_s: Reading::Known(100.0),
        cpu_share: Reading::Known(0.5),
        working_set: Reading::Known(WorkingSet {
            low_bytes: low_kib * KIB,
            high_bytes: high_kib * KIB,
            sampled: None,
        }),
    }
}

fn near(ours: (f64, f64), expected: (f64, f64)) -> bool {
    (ours.0 - expected.0).abs() < 1e-12 && (ours.1 - expected.1).abs() < 1e-12
}

fn headline(
    (cost, not_read): (&ProgramCost, Option<&NotRead>),
    program: &Program,
    direct: Option<Range>,
    by: (Option<&str>, &str),
) -> String {
    let figure = CostFigure::from_estimate(cost, not_read, direct);
    let program = (program, CountSource::Tracepoints);
    answer::headline(figure.as_ref(), (cost, not_read), program, by).into()
}

#[test]
fn a_range_over_all_of_the_cpu_time_is_not_quoted() {
    // A million switches of -0.5 to 4 us in half a second of CPU time.
    let busy = Program { voluntary_per_s: Reading::Known(1e6), ..program(64, 64) };
    let answer = program_cost(&busy, &[point(64, -500.0, 4000.0)]);
    let words = headline((&answer, None), &busy, None, (None, "wait"));
    assert_eq!(
        words,
        "What switching costs this program is unknown: the range is too wide to be useful; wait."
    );
}

#[test]
fn an_unknown_working_set_leaves_the_direct_share_and_a_command() {
    let mut points = profile();
    points[0].direct = Some(Cost { low_ns: 2000.0, high_ns: 2500.0 });
    let not_read = NotRead {
        why: "touched pages were not counted (Permission denied)".to_string(),
        remedy: Some(Remedy::Privilege),
    };
    let seen = ProgramObservation {
        pid: 7,
        name: "x".into(),
        watched_ns: 10_000_000_000,
        threads: Some(1),
        voluntary: Reading::Known(9000),
        involuntary: Reading::Known(1000),
        cpu_ns: Reading::Known(5_000_000_000),
        resident_bytes: Reading::Known(300 * KIB),
        ..ProgramObservation::default()
    };
    let unread = program(0, 300);
    let cost = program_cost(&unread, &points);
    let direct = direct(&points).map(Into::into);
    let by = (Some("by profile x, 1 hour old"), "a longer watch would narrow it");
    assert_eq!(
        headline((&cost, Some(&not_read)), &unread, direct, by),
        "Switching takes at least 0.4 % of its CPU time: 1,000 switches a second at 2.00 us or \
         more each, traced, by profile x, 1 hour old; what refilling caches adds is unknown."
    );
    let refill = answer::refill(&cost, Some(&not_read));
    assert_eq!(refill.why(), Some("touched pages were not counted (Permission denied)"));
    let command = |not_read: Option<&NotRead>, cost: &ProgramCost, profile: Option<&str>| {
        answer::command_to_know(cost, not_read, &seen, profile).unwrap()
    };
    assert_eq!(
        command(Some(&not_read), &cost, Some("/runs/a.jsonl")),
        "sudo switchcost cost --profile /runs/a.jsonl --pid 7"
    );
    let longer = NotRead { remedy: Some(Remedy::Longer), ..not_read.clone() };
    assert_eq!(
        command(Some(&longer), &cost, Some("/runs/a.jsonl")),
        "switchcost cost --pid 7 --budget 60s"
    );
    // Of several processes no further measurement of arrays is asked for first.
    let several = NotRead { remedy: Some(Remedy::Child(Some(8))), ..not_read.clone() };
    let unfit = program_cost(&program(10, 3000), &points);
    assert_eq!(
        command(Some(&several), &unfit, Some("/runs/a.jsonl")),
        "switchcost cost --pid 8 --no-children"
    );
    assert_eq!(answer::refill(&unfit, Some(&several)).why(), Some(several.why.as_str()));
    // Read, but beyond the arrays.
    let large = program(10, 3000);
    let beyond = program_cost(&large, &points);
    assert_eq!(
        command(None, &beyond, Some("/runs/a.jsonl")),
        "switchcost cost --array 1K..4MiB:x2"
    );
    let words = headline((&beyond, None), &large, direct, by);
    assert!(words.starts_with("Switching takes at least 0.4 % of"), "{words}");
    // Without a profile nothing else helps.
    let none = program_cost(&unread, &[]);
    assert_eq!(command(Some(&not_read), &none, None), "switchcost cost");
    assert_eq!(
        headline((&none, Some(&not_read)), &unread, None, (None, "")),
        "What switching costs this program is unknown: no stored cost profile: run `switchcost cost` first."
    );
    // Read, but wider than an answer may be: 3 to 180 us a switch.
    let wide = program(64, 512);
    let estimate = program_cost(&wide, &points);
    assert_eq!(
        headline((&estimate, None), &wide, direct, by),
        "Switching takes at least 0.6 % of its CPU time: 1,000 switches a second at 3.00 us or \
         more each, traced, by profile x, 1 hour old; the upper end is unknown: a longer watch \
         would narrow it."
    );
    let narrower =
        |sampled: Option<AccessPattern>, command: Option<Vec<String>>, high_bytes: u64| {
            let set = WorkingSet { low_bytes: 64 * KIB, high_bytes, sampled };
            let program = Program { working_set: Reading::Known(set), ..program(0, 0) };
            answer::narrower(&ProgramObservation { command, ..seen.clone() }, &program)
        };
    let sampled = AccessPattern {
        sets_per_cpu: 2.0,
        threads_per_cpu: 1.0,
        memory_share: 1.0,
        dependent_share: 1.0,
        involuntary_share: 0.0,
    };
    assert!(narrower(None, None, 512 * KIB).contains("CAP_PERFMON"));
    assert!(narrower(Some(sampled), None, 512 * KIB).contains("--budget 60s"));
    assert!(narrower(Some(sampled), Some(Vec::new()), 512 * KIB).contains("a longer run"));
    assert!(narrower(Some(sampled), None, 65 * KIB).contains("--array 8K..256KiB:x2"));
    // Read and measured: what is left beside the direct cost.
    let read = program_cost(&program(128, 256), &points);
    let refill = answer::refill(&read, None);
    let refill = refill.known().unwrap();
    assert!(near((refill.low, refill.high), (0.002, 0.036)), "{refill:?}");
}

/// The busiest process of a program may end before it is watched.
#[test]
fn the_next_process_is_watched_where_one_has_ended() {
    let mut ended = std::process::Command::new("true").spawn().expect("true");
    ended.wait().expect("its end");
    let own = std::process::id() as i32;
    let gone = ended.id() as i32;
    let second = std::time::Duration::from_secs(1);
    let watcher = super::watch_first([gone, own], second).expect("this process runs");
    assert_eq!(watcher.pid(), std::process::id());
    assert!(super::watch_first([gone], second).is_err_and(|error| error.is_end()));
}

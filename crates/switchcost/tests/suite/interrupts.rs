//! Gaps and wake-ups by the real program: counts, classes, and a neighbour that takes the CPU for 5
//! ms of every 50, which the report must show for what it is.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Home, Said, allowed_cpus};
use probe::idle::LatencyBound;
use probe::{placement, policy};
use rundata::ring::Policy;
use serde_json::Value;
use testing::{Need, lacks, skip, wait_for};

const PERIOD: Duration = Duration::from_millis(50);
const BURST: Duration = Duration::from_millis(5);
/// So much later than due, and its period is none.
const LATE: Duration = Duration::from_millis(1);
/// Above the priority 1 of what is measured.
const PRIORITY: i32 = 20;

/// A thread of the test that takes a CPU for 5 ms of every 50, under a real-time policy.
struct Hostile {
    end: Arc<AtomicBool>,
    /// Whether a burst began too late or lasted too long: something of higher priority, or the
    /// host, had the CPU.
    was_late: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    /// None where the policy is not granted.
    fn on(cpu: u32) -> Option<Self> {
        policy::check(Policy::Fifo).ok()?;
        let [end, was_late] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (told, tells) = (Arc::clone(&end), Arc::clone(&was_late));
        let thread = std::thread::spawn(move || {
            placement::pin(&[cpu]).expect("an allowed CPU");
            policy::take_at(Policy::Fifo, PRIORITY).expect("it was granted a moment ago");
            let mut due = Instant::now();
            while !told.load(Ordering::Relaxed) {
                let begun = Instant::now();
                while begun.elapsed() < BURST {
                    std::hint::spin_loop();
                }
                if due.elapsed() > BURST + LATE {
                    tells.store(true, Ordering::Relaxed);
                }
                // By the clock, not from the end of the burst: the period does not drift.
                due += PERIOD;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        });
        Some(Self { end, was_late, thread: Some(thread) })
    }

    /// Whether every burst so far came when it was due, for as long as it should.
    fn kept_its_period(&self) -> bool {
        !self.was_late.load(Ordering::Relaxed)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The CPU that these tests measure on; the program itself wants another.
fn cpu() -> Option<String> {
    match allowed_cpus()[..] {
        [_, .., last] => Some(last.to_string()),
        _ => None,
    }
}

fn respond(home: &Home, args: &[&str]) -> Said {
    let all = [&["response", "--budget", "60s", "--json", "-", "--verbose"], args].concat();
    let said = home.run(&all);
    assert_eq!(said.code, Some(0), "{all:?}: {}", said.err);
    said
}

fn list<'a>(of: &'a Value, name: &str) -> &'a Vec<Value> {
    of[name].as_array().unwrap_or_else(|| panic!("no list {name} in {of}"))
}

fn class<'a>(gaps: &'a Value, name: &str) -> &'a Value {
    let is_it = |class: &&Value| class["class"] == name;
    list(gaps, "classes").iter().find(is_it).unwrap_or_else(|| panic!("no class {name}"))
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("no number {name} in {of}"))
}

/// Gaps of at least so many nanoseconds in a class's histogram, whose bins begin at 2, 5, 10 ms.
fn gaps_from(class: &Value, from_ns: f64) -> f64 {
    let bins = class["histogram"].as_array().expect("bins");
    let is_above = |bin: &&Value| number(bin, "from_ns") >= from_ns;
    bins.iter().filter(is_above).map(|bin| number(bin, "count")).sum()
}

#[test]
fn gaps_are_counted_and_told_apart() {
    let said = respond(&Home::new(), &["--only", "interrupts", "--rounds", "2"]);
    let record = said.json();
    let gaps = &list(&record, "gaps")[0];
    // On a busy machine the greater part is not watched: it passes while a gap is looked into.
    assert!(number(gaps, "watched_ns") > 0.0, "{gaps}");
    assert!(number(gaps, "threshold_ns") > number(gaps, "loop_ns"), "{gaps}");
    let classes: Vec<&Value> = list(gaps, "classes").iter().map(|class| &class["class"]).collect();
    assert_eq!(classes, ["interrupt", "switched_out", "uncharged"]);
    // Every gap is in exactly one class, and every one that was kept is counted.
    let in_classes: f64 = list(gaps, "classes")
        .iter()
        .map(|class| class["length_ns"]["count"].as_f64().unwrap_or(0.0))
        .sum();
    let kept = &record["cases"][0]["trial"]["quantities"]["gap_ticks"]["count"];
    assert_eq!(kept.as_f64(), Some(in_classes));
    // What was switched out was switched by the kernel's count, at least once each.
    let out = class(gaps, "switched_out")["length_ns"]["count"].as_f64().unwrap_or(0.0);
    assert!(number(&record["cases"][0]["trial"]["counts"], "switches") >= out, "{gaps}");
    assert!(said.err.contains("interrupts per second"), "{}", said.err);
    assert!(said.err.contains("the kernel's tick"), "{}", said.err);
    let long = said.err.lines().filter(|line| line.contains('#') && line.len() > 80);
    assert_eq!(long.count(), 0, "{}", said.err);
}

/// Wakes of each sleeper in a round.
const WAKES: f64 = 400.0;

/// One round of sleepers, measured once for all tests that read it.
fn slept() -> &'static Said {
    static SLEPT: OnceLock<Said> = OnceLock::new();
    SLEPT.get_or_init(|| respond(&Home::new(), &["--only", "wakeup", "--rounds", "1"]))
}

/// Whether idle states can be forbidden here.
fn forbids_idle_states() -> bool {
    LatencyBound::hold(0).is_ok()
}

#[test]
fn a_sleeper_wakes_as_often_as_asked_and_sleeps_each_time() {
    let said = slept();
    let record = said.json();
    let granted = policy::check(Policy::Fifo).is_ok() && allowed_cpus().len() > 1;
    let wakeups = list(&record, "wakeups");
    // Idle, busy and the default slack; under fifo two; without idle states where that is granted.
    let wanted = 3 + usize::from(forbids_idle_states()) + if granted { 2 } else { 0 };
    assert_eq!(wakeups.len(), wanted, "{wakeups:?}");
    assert_eq!(said.err.contains("measured under SCHED_OTHER only"), !granted, "{}", said.err);
    for of in wakeups {
        assert_eq!(number(&of["late_ns"], "count"), WAKES, "{of}");
        // Nobody is woken before the moment that was asked for.
        assert!(number(&of["late_ns"], "min") >= 0.0, "{of}");
        assert!(number(of, "switches_per_wake") >= 0.99, "{of}");
        assert_eq!(of["busy_percent"].is_null(), of["load"] == "idle", "{of}");
        assert!(of["p99_ns"].is_object() && of["p999_ns"].is_null(), "400 wakes: {of}");
    }
    if !lacks([Need::TwoCpus]) && !granted {
        skip(Need::RealTime, "wake-ups under SCHED_FIFO");
    }
}

/// The sleepers of a record by slack and bound, of the normal policy on an idle CPU.
fn sleepers(record: &Value) -> Vec<(u64, Option<u64>)> {
    let cases = list(record, "cases").iter().map(|case| &case["trial"]["case"]);
    let cases = cases.filter(|case| case["policy"] == "other" && case["trial"]["load"] == "idle");
    let of = |case: &Value| {
        let number = |name: &str| case["trial"][name].as_u64();
        (number("timer_slack_ns").expect("a slack"), number("cpu_latency_us"))
    };
    cases.map(of).collect()
}

#[test]
fn slack_and_idle_states_are_sleepers_of_their_own_and_what_was_in_force_is_told() {
    let said = slept();
    let record = said.json();
    let is_awake = forbids_idle_states();
    let mut wanted = vec![(1, None), (50_000, None)];
    wanted.extend(is_awake.then_some((1, Some(0))));
    assert_eq!(sleepers(&record), wanted);
    let of = |slack: u64, latency: Value| {
        let wanted = |found: &&Value| {
            let case = found["case"].as_u64().expect("a number") as usize;
            let case = &record["cases"][case]["trial"]["case"];
            let trial = &case["trial"];
            let setting = (&trial["timer_slack_ns"], &trial["cpu_latency_us"], &trial["load"]);
            setting == (&slack.into(), &latency, &"idle".into()) && case["policy"] == "other"
        };
        list(&record, "wakeups").iter().find(wanted).expect("a sleeper")
    };
    let by_default = of(50_000, Value::Null);
    assert_eq!(
        (&by_default["timer_slack_ns"], &by_default["cpu_latency_us"]),
        (&50_000.into(), &Value::Null)
    );
    assert!(by_default["above_plain_ns"]["value"].is_number(), "{by_default}");
    assert!(of(1, Value::Null)["above_plain_ns"].is_null());
    assert!(said.err.contains("timer slack: the default of 50 us"), "{}", said.err);
    if !is_awake {
        return skip(Need::Hardware("/dev/cpu_dma_latency"), "sleepers without idle states");
    }
    let awake = of(1, 0.into());
    assert_eq!(awake["cpu_latency_us"], 0, "as the device said while it was held: {awake}");
    assert!(awake["above_plain_ns"]["value"].is_number(), "{awake}");
    assert!(
        said.err.contains("idle states: ") && said.err.contains("leaving one "),
        "{}",
        said.err
    );
    // It is let go. Others may hold it meanwhile: other tests, too.
    let left = LatencyBound::hold(2_000_000_000).expect("it was opened before");
    wait_for("the end of the bound", || left.in_force_us().filter(|us| *us > 0));
}

#[test]
fn without_the_device_the_report_says_how_to_get_it() {
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let home = Home::new();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777))
        .expect("it is ours");
    let program = home.path().join("switchcost-copy");
    crate::common::copy_program(crate::common::PROGRAM.as_ref(), &program);
    let program = program.to_str().expect("a path in UTF-8");
    let mut command = home.command("setpriv");
    command
        .args(nobody)
        .args([program, "response", "--only", "wakeup", "--rounds", "1", "--json", "-"]);
    let said = Said::of(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = said.json();
    assert_eq!(sleepers(&record), [(1, None), (50_000, None)]);
    let words = said.err.replace("\n  ", " ");
    let told = "idle states: what leaving one adds is not measured: it needs access to \
         /dev/cpu_dma_latency (root)";
    assert!(words.contains(told), "{}", said.err);
    let notices = record["header"]["notices"].to_string();
    assert!(notices.contains("/dev/cpu_dma_latency: "), "the errno stands with it: {notices}");
}

/// What is missing where something does not hold.
fn claim(holds: bool, what: impl Display) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| what.to_string())
}

/// Rounds of gaps beside the neighbour, and of wake-ups.
const ROUNDS: [f64; 2] = [4.0, 1.0];

#[test]
fn a_hostile_neighbour_is_shown_and_not_taken_for_the_tick() {
    const ATTEMPTS: u32 = 8;
    let Some(cpu) = cpu() else { return skip(Need::TwoCpus, "not here") };
    let number_of_cpu: u32 = cpu.parse().expect("a number");
    for _ in 0..ATTEMPTS {
        let Some(hostile) = Hostile::on(number_of_cpu) else {
            return skip(Need::RealTime, "SCHED_FIFO is refused here");
        };
        let [gaps, wakeups] = ROUNDS.map(|rounds| rounds.to_string());
        let of_gaps = ["--only", "interrupts", "--busy-policy", "fifo", "--rounds", &gaps];
        let of_wakeups = ["--only", "wakeup", "--rounds", &wakeups];
        let measure = |args: &[&str]| respond(&Home::new(), &[args, &["--cpu", &cpu]].concat());
        let shown = gaps_show_the_neighbour(&measure(&of_gaps))
            .and_then(|()| wakeups_show_the_neighbour(&measure(&of_wakeups)));
        match shown {
            Ok(()) => return,
            Err(what) => assert!(!hostile.kept_its_period(), "{what}"),
        }
    }
    skip(Need::Quiet, "something of higher priority comes between the neighbour's bursts");
}

fn gaps_show_the_neighbour(said: &Said) -> Result<(), String> {
    let record = said.json();
    let gaps = &list(&record, "gaps")[0];
    let out = class(gaps, "switched_out");
    // Four whole periods fit into each window of 250 ms; a burst lasts 5 ms or more.
    claim(gaps_from(out, 2e6) >= ROUNDS[0] * 4.0, out)?;
    let of_the_neighbour = |comb: &&Value| (number(comb, "period_ns") / 50e6 - 1.0).abs() < 0.02;
    let comb = list(out, "combs").iter().find(of_the_neighbour);
    let comb = comb.ok_or_else(|| format!("no comb of 50 ms: {out}\n{}", said.err))?;
    claim(comb["is_tick"] == false, comb)?;
    claim(number(&comb["length_ns"], "p50") >= 4e6, comb)?;
    claim(number(comb, "lost_percent") >= 7.0, comb)?;
    let is_tick = |comb: &Value| comb["is_tick"] == true;
    // Where a host's tick comes at the same moments, theirs is one comb, and that is told.
    let may_be = |comb: &Value| comb["tick_may_be_one_of"].is_number();
    let mut combs = list(gaps, "classes").iter().flat_map(|class| list(class, "combs"));
    let has_tick = combs.any(|comb| is_tick(comb) || may_be(comb));
    let tick_period = number(gaps, "told_tick_period_ns");
    // Where the kernel ticks through it all.
    let ticks = number(&gaps["interrupts_per_second"], "LOC") >= 0.9e9 / tick_period;
    claim(has_tick || !ticks, format!("no tick beside the neighbour: {gaps}"))?;
    let words = "another task ran (counted switches); not the timer tick";
    claim(said.err.contains(words), &said.err)
}

/// A sleeper of lower priority that would wake within a burst wakes at its end: it never sleeps for
/// more than 750 us, so the first moment in each burst is in its first millisecond. Three whole
/// periods at least fit into the wakes of a round.
fn wakeups_show_the_neighbour(said: &Said) -> Result<(), String> {
    let record = said.json();
    let shows = |of: &Value| claim(gaps_from(of, 2e6) >= ROUNDS[1] * 3.0, of);
    list(&record, "wakeups").iter().try_for_each(shows)
}

#[test]
fn a_policy_that_cannot_be_is_refused_with_a_word() {
    let home = Home::new();
    for (policy, words) in [("batch", "accepted are other and fifo"), ("best", "best")] {
        let said = home.run(&["response", "--only", "interrupts", "--busy-policy", policy]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
    }
}

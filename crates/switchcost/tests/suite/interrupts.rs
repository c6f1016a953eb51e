//! Gaps and wake-ups by the real program: counts, classes, and a neighbour that takes the CPU for 5 ms
//! of every 50, which the report must show for what it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Home, Said, allowed_cpus, skip};
use model::case::Policy;
use probe::{placement, policy};
use serde_json::Value;

const PERIOD: Duration = Duration::from_millis(50);
const BURST: Duration = Duration::from_millis(5);
/// Above the priority 1 of what is measured.
const PRIORITY: i32 = 20;

/// A thread of the test that takes a CPU for 5 ms of every 50, under a real-time policy.
struct Hostile {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    /// None where the policy is not granted.
    fn on(cpu: u32) -> Option<Self> {
        policy::check(Policy::Fifo).ok()?;
        let end = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            placement::pin(&[cpu]).expect("an allowed CPU");
            policy::take_at(Policy::Fifo, PRIORITY).expect("it was granted a moment ago");
            let mut next = Instant::now();
            while !told.load(Ordering::Relaxed) {
                let begun = Instant::now();
                while begun.elapsed() < BURST {
                    std::hint::spin_loop();
                }
                // By the clock, not from the end of the burst: the period does not drift.
                next += PERIOD;
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        });
        Some(Self { end, thread: Some(thread) })
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
    let all = [&["response", "--budget", "60s", "--json", "-"], args].concat();
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
    let said = respond(&Home::new(), &["--only", "interrupts", "--rounds", "5"]);
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

#[test]
fn a_sleeper_wakes_as_often_as_asked_and_sleeps_each_time() {
    let said = respond(&Home::new(), &["--only", "wakeup", "--rounds", "2"]);
    let record = said.json();
    let granted = policy::check(Policy::Fifo).is_ok() && allowed_cpus().len() > 1;
    let wakeups = list(&record, "wakeups");
    assert_eq!(wakeups.len(), if granted { 4 } else { 2 }, "{wakeups:?}");
    assert_eq!(said.err.contains("measured under SCHED_OTHER only"), !granted, "{}", said.err);
    for of in wakeups {
        assert_eq!(number(&of["late_ns"], "count"), 800.0, "{of}");
        // Nobody is woken before the moment that was asked for.
        assert!(number(&of["late_ns"], "min") >= 0.0, "{of}");
        assert!(number(of, "switches_per_wake") >= 0.99, "{of}");
        assert_eq!(of["busy_percent"].is_null(), of["load"] == "idle", "{of}");
        assert!(of["p99_ns"].is_object() && of["p999_ns"].is_null(), "800 wakes: {of}");
    }
    if !granted {
        skip("real-time wake-ups: SCHED_FIFO is refused here, or there is one CPU");
    }
}

#[test]
fn a_hostile_neighbour_is_shown_and_not_taken_for_the_tick() {
    let Some(cpu) = cpu() else { return skip("one CPU only") };
    let number_of_cpu: u32 = cpu.parse().expect("a number");
    let Some(hostile) = Hostile::on(number_of_cpu) else {
        return skip("SCHED_FIFO is refused here");
    };
    let args = ["--only", "interrupts,wakeup", "--rounds", "8", "--cpu", &cpu];
    let said = respond(&Home::new(), &[&args[..], &["--busy-policy", "fifo"]].concat());
    drop(hostile);
    let record = said.json();
    let gaps = &list(&record, "gaps")[0];
    let out = class(gaps, "switched_out");
    // Four whole periods fit into each window of 250 ms; a burst lasts 5 ms or more.
    assert!(gaps_from(out, 2e6) >= 8.0 * 4.0, "{out}");
    let of_the_neighbour = |comb: &&Value| (number(comb, "period_ns") / 50e6 - 1.0).abs() < 0.02;
    let comb = list(out, "combs").iter().find(of_the_neighbour);
    let comb = comb.unwrap_or_else(|| panic!("no comb of 50 ms: {out}\n{}", said.err));
    assert_eq!(comb["is_tick"], false, "{comb}");
    assert!(number(&comb["length_ns"], "p50") >= 4e6, "{comb}");
    assert!(number(comb, "lost_percent") >= 7.0, "{comb}");
    let ticks: Vec<&Value> = list(gaps, "classes")
        .iter()
        .flat_map(|class| list(class, "combs"))
        .filter(|comb| comb["is_tick"] == true)
        .collect();
    let tick_period = number(gaps, "told_tick_period_ns");
    // Where the kernel ticks through it all.
    if number(&gaps["interrupts_per_second"], "LOC") >= 0.9e9 / tick_period {
        assert!(!ticks.is_empty(), "no tick beside the neighbour: {gaps}");
    }
    assert!(said.err.contains("another task ran (counted switches); not the timer tick"));
    // A sleeper of lower priority that would wake within a burst wakes at its end: it never sleeps for
    // more than 750 us, so the first moment in each burst is in its first millisecond. Three whole
    // periods at least fit into 400 wakes.
    for of in list(&record, "wakeups") {
        assert!(gaps_from(of, 2e6) >= 8.0 * 3.0, "{of}");
    }
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

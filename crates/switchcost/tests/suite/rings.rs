//! `switchcost ring --rings`: several rings at the same time.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::wait_for;

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Process, Said, allowed_cpus, lines_of};

const SHORT: [&str; 4] = ["--rings", "1,2,3", "--laps", "300"];

/// Measures so many rounds, and returns what was said and the samples of the run file.
fn measure(rounds: &str, args: &[&str]) -> (Said, Vec<Value>) {
    let home = Home::new();
    let said = home.measure(&[&SHORT[..], &["--rounds", rounds], args].concat());
    let mut samples = Vec::new();
    for line in lines_of(&home.run_file()) {
        if let Some(sample) = line.get("sample") {
            samples.push(sample.clone());
        }
    }
    (said, samples)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

fn rings_of(sample: &Value) -> &[Value] {
    sample["rings"].as_array().map_or(&[], Vec::as_slice)
}

/// A ring of two on one CPU switches in each hop, and is never switched less.
fn assert_counted(ring: &Value, members: u64) {
    let hops = number(ring, "/hops");
    assert_eq!((number(ring, "/laps"), hops), (300, 300 * members), "{ring}");
    let switches = number(ring, "/counters/voluntary") + number(ring, "/counters/involuntary");
    assert!(switches >= hops, "{switches} switches in {hops} hops: {ring}");
}

#[test]
fn counts_of_all_rings_are_the_kernels_each_and_together() {
    for placement in ["spread", "same"] {
        let (_, samples) = measure("2", &["--placement", placement, "--quiet"]);
        let mut seen = Vec::new();
        for sample in &samples {
            let rings = rings_of(sample);
            seen.push(rings.len());
            if rings.is_empty() {
                continue;
            }
            for ring in rings {
                assert_counted(ring, 2);
            }
            for counter in ["/laps", "/hops", "/counters/voluntary", "/counters/involuntary"] {
                let sum: u64 = rings.iter().map(|ring| number(ring, counter)).sum();
                assert_eq!(number(sample, counter), sum, "{counter}: {sample}");
            }
            // The first to begin did so at 0.
            assert!(rings.iter().any(|ring| number(ring, "/start_ns") == 0), "{sample}");
        }
        seen.sort_unstable();
        seen.dedup();
        // A ring by itself is stored as ever.
        assert_eq!(seen, [0, 2, 3], "{placement}");
    }
}

#[test]
fn a_row_of_csv_is_a_sample_of_all_rings() {
    let (said, samples) = measure("2", &["--csv", "-"]);
    let rows = said.rows();
    assert_eq!(rows.rows.len(), samples.len());
    let mut numbers = Vec::new();
    for row in &rows.rows {
        let (rings, members) = (row.number("rings"), row.number("members"));
        assert_eq!(row.number("hops"), 300 * rings * members, "{row:?}");
        numbers.push((members, rings, row.text("placement").to_string()));
    }
    numbers.sort();
    numbers.dedup();
    let cpus = allowed_cpus().len();
    let name = if cpus > 1 { "spread" } else { "same" };
    let one = |members, rings, name: &str| (members, rings, name.to_string());
    assert_eq!(numbers, [one(1, 1, "same"), one(2, 1, "same"), one(2, 2, name), one(2, 3, name)]);
}

/// Without rings beside it nothing of a plan, a sample or a table is new.
#[test]
fn one_ring_is_measured_and_stored_as_without_the_flag() {
    let home = Home::new();
    // Which CPU is the least busy may change between the two.
    let cpu = allowed_cpus()[0].to_string();
    let args = ["--members", "2", "--rounds", "1", "--laps", "50", "--placement", &cpu];
    let plain = home.measure(&[&args[..], &["--csv", "-"]].concat());
    let one = home.measure(&[&args[..], &["--rings", "1", "--csv", "-"]].concat());
    assert_eq!(plain.rows().columns, one.rows().columns);
    let files = home.run_files();
    let plans: Vec<Value> = files.iter().map(|file| lines_of(file)[0]["header"].clone()).collect();
    assert_eq!(plans[0]["plan"]["cases"], plans[1]["plan"]["cases"]);
    assert!(!plans[1].to_string().contains("beside"));
}

#[test]
fn the_record_has_each_ring_and_all_together() {
    let (said, _) = measure("5", &["--json", "-"]);
    let record = said.json();
    Schema::of("record").assert_holds(&record);
    let cases = record["cases"].as_array().expect("cases");
    let rings: Vec<_> = cases.iter().map(|case| case["rings_at_once"]["rings"].as_u64()).collect();
    assert_eq!(rings, [None, Some(1), Some(2), Some(3)]);
    let three = &cases[3]["rings_at_once"];
    assert!(three["switches_per_second"]["value"].as_f64() > Some(0.0), "{three}");
    assert!(three["efficiency"]["value"].as_f64() > Some(0.0), "{three}");
    let each = three["each"].as_array().expect("rings");
    let numbers: Vec<_> = each.iter().map(|ring| ring["ring"].as_u64()).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
    for ring in each {
        let per_hop = ring["switches_per_hop"].as_f64();
        assert!(per_hop >= Some(1.0), "{ring}");
        assert_eq!(ring["cpus"].as_array().map(Vec::len), Some(1), "{ring}");
    }
    let series = &record["rings_at_once"][0];
    assert_eq!(series["cases"], serde_json::json!([1, 2, 3]), "{series}");
}

#[test]
fn the_answer_and_the_table_are_of_all_rings() {
    let (said, _) = measure("5", &[]);
    assert!(said.out.contains("3 rings on "), "{}", said.out);
    assert!(said.out.contains("the switches of one"), "{}", said.out);
    let sizes = said.sizes();
    assert_eq!(sizes, ["1", "2", "3"], "{}", said.out);
}

#[test]
fn efficiency_and_rates_stand_where_other_measures_do() {
    let home = Home::new();
    // The speed of rings on one CPU is not judged: no neighbour of the core makes it unknown.
    let args = ["--rings", "1,2", "--placement", "same", "--laps", "300", "--rounds", "10"];
    home.measure(&args);
    let rows = home.run(&["runs", "export", "last", "--format", "summary-csv"]).rows();
    let two = rows.rows.iter().find(|row| row.text("rings") == "2").expect("two rings");
    let [low, efficiency, high] = ["efficiency_low", "efficiency", "efficiency_high"]
        .map(|name| two.text(name).parse::<f64>().unwrap_or(f64::NAN));
    assert!(0.0 < low && low <= efficiency && efficiency <= high, "{two:?}");
    for name in ["switches_per_second", "hops_per_second", "switches_per_hop"] {
        assert!(two.text(name).parse::<f64>().is_ok_and(|rate| rate > 0.0), "{name}: {two:?}");
    }
    for format in ["markdown", "openmetrics"] {
        let text = home.run(&["runs", "export", "last", "--format", format]).out;
        assert!(text.contains("efficiency"), "{text}");
    }
    let changes = home.run(&["compare", "last", "last", "--json", "-"]).json()["changes"].clone();
    let changes = changes.as_array().expect("changes");
    let two = changes.iter().find(|change| change["labels"]["rings"] == "2").expect("two rings");
    assert!(two["measures"]["efficiency"]["base"].as_f64() > Some(0.0), "{two}");
}

/// A switch is shared by many items: what rings make of those of one is told in items.
#[test]
fn rings_with_several_items_under_way_are_compared_by_items() {
    let home = Home::new();
    let args = ["--rings", "1,2", "--flight", "16", "--laps", "300", "--rounds", "5"];
    let said = home.measure(&[&args[..], &["--json", "-"]].concat());
    let record = said.json();
    Schema::of("record").assert_holds(&record);
    let cases = record["cases"].as_array().expect("cases");
    let rings = cases.iter().find(|case| case["rings_at_once"]["rings"] == 2).expect("two rings");
    let rings = &rings["rings_at_once"];
    for figure in ["efficiency", "hops_per_second"] {
        assert!(rings[figure]["value"].as_f64() > Some(0.0), "{figure}: {rings}");
    }
    let shown = home.run(&["runs", "show", "last", "--verbose"]).out;
    assert!(shown.contains("2 rings on ") && shown.contains("the items of one"), "{shown}");
    for word in ["hops/s", "wake-ups/hop", "the efficiency is of these"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

#[test]
fn each_placement_of_rings_is_kept() {
    let cpus = allowed_cpus();
    let free: Vec<String> = cpus.iter().map(u32::to_string).collect();
    for (placement, used) in [("same", 1), ("free", cpus.len()), ("spread", cpus.len().min(3))] {
        let (said, samples) = measure("2", &["--placement", placement, "--csv", "-"]);
        let rows = said.rows();
        let three = rows.rows.iter().find(|row| row.number("rings") == 3).expect("three rings");
        assert_eq!(three.text("cpus").split(' ').count(), used, "{placement}");
        if placement == "free" {
            assert_eq!((three.text("cpus"), three.text("placement")), (&*free.join(" "), "free"));
        }
        assert!(samples.iter().any(|sample| rings_of(sample).len() == 3), "{placement}");
    }
    if cpus.len() < 2 {
        let said = Home::new().run(&["ring", "--rings", "2", "--placement", "pairs"]);
        return assert!(said.error().contains("one CPU only"), "{}", said.err);
    }
    let (said, _) = measure("2", &["--placement", "pairs", "--csv", "-"]);
    let rows = said.rows();
    let three = rows.rows.iter().find(|row| row.number("rings") == 3).expect("three rings");
    assert!(three.text("placement").len() > 2, "{three:?}");
}

#[test]
fn links_and_kinds_run_at_the_same_time() {
    for more in [&["--link", "futex,eventfd"][..], &["--kind", "thread"], &["--members", "2,5"]] {
        let (said, _) = measure("2", &[more, &["--csv", "-"]].concat());
        for row in said.rows().rows {
            let hops = 300 * row.number("rings") * row.number("members");
            assert_eq!(row.number("hops"), hops, "{row:?}");
        }
    }
}

/// Two programs in sessions of their own: with `sched_autogroup_enabled` Linux 6.18 ran the turning
/// rings of each for minutes, and never the ring of the other that these waited for.
#[test]
fn programs_beside_each_other_end() {
    for _ in 0..4 {
        let homes = [Home::new(), Home::new()];
        let args = [&["ring", "--quiet", "--budget", "600s", "--rounds", "3"], &SHORT[..]].concat();
        let started = homes.each_ref().map(|home| home.start(&args));
        for child in started {
            let said = Said::at_end(child);
            assert_eq!(said.code, Some(0), "{}", said.err);
        }
    }
}

#[test]
fn what_cannot_be_measured_is_refused_by_name() {
    for (args, said_of) in [
        (&["--rings", "0"][..], "--rings"),
        (&["--rings", "many"], "max"),
        (&["--rings", "2", "--placement", "sweep"], "pairs"),
        (&["--rings", "2", "--events", "page-faults"], "--events"),
        (&["--rings", "100001"], "100000"),
        (&["--placement", "spread"], "--rings"),
    ] {
        let said = Home::new().run(&[&["ring"], args].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.error().contains(said_of) || said.err.contains(said_of), "{}", said.err);
    }
}

/// Twenty descriptors are too few for fifty rings; each has a pipe.
#[test]
fn a_limit_of_descriptors_is_named_beforehand() {
    let home = Home::new();
    let mut command = home.command("sh");
    let script = format!("ulimit -n 40 && exec {PROGRAM} ring --rings 50 --rounds 1 --laps 9");
    let said = Said::of(command.args(["-c", &script]));
    assert!(said.err.contains("50 rings at the same time cannot be made"), "{}", said.err);
    assert!(said.err.contains("RLIMIT_NOFILE is 40"), "{}", said.err);
    home.wait_until_alone();
}

/// Starts a run of many rounds, and waits until it measures several rings and each has its
/// leader and its member. The single ring and the solo have their turns before and after.
///
/// There are so many rounds because this test may not see the first of them: a scheduler may keep
/// it from the CPUs that the rings turn on.
fn start_long(home: &Home, rings: usize) -> (Child, Process, Vec<Process>) {
    let count = rings.to_string();
    let laps = ["--laps", "100000", "--rounds", "200", "--budget", "600"];
    let args = [&["ring", "--rings", &count, "--quiet"][..], &laps].concat();
    let mut command: Command = home.command(PROGRAM);
    let mut child = command.args(&args).stderr(Stdio::piped()).spawn().expect("a start");
    let own = child.id() as i32;
    let found = wait_for("all rings", || {
        assert_eq!(child.try_wait().expect("a child"), None, "it ended by itself");
        turning_rings(home, own, rings)
    });
    (child, found.0, found.1)
}

/// The worker of a program and the leaders of its rings, if all of these turn.
fn turning_rings(home: &Home, program: i32, rings: usize) -> Option<(Process, Vec<Process>)> {
    let all = home.processes();
    let worker = *all.iter().find(|p| p.parent == program && p.is_worker)?;
    let leaders: Vec<Process> = all.iter().filter(|p| p.parent == worker.pid).copied().collect();
    let turns =
        |leader: &Process| all.iter().any(|p| p.parent == leader.pid && p.waits() >= Some(100));
    (leaders.len() == rings && leaders.iter().all(turns)).then_some((worker, leaders))
}

/// The leader is stopped before it is killed: the rings wait for it, and it is known to be killed
/// while all of them are there.
#[test]
fn a_killed_ring_ends_all_and_is_named() {
    let home = Home::new();
    let (child, ..) = start_long(&home, 3);
    let program = child.id() as i32;
    let worker = wait_for("all rings with one that is stopped", || {
        let found = turning_rings(&home, program, 3)?;
        let (worker, leader) = (found.0, found.1[1]);
        leader.signal(Signal::STOP);
        let is_held = turning_rings(&home, program, 3) == Some(found);
        leader.signal(if is_held { Signal::KILL } else { Signal::CONT });
        is_held.then_some(worker)
    });
    interrupt_in_the_next_case(&home, &child, worker);
    let said = Said::at_end(child);
    assert!(said.err.contains("3 rings of 2"), "{}", said.err);
    assert!(said.err.contains(" of 3: its leader was killed by signal 9"), "{}", said.err);
    home.wait_until_alone();
}

/// The cases that do not fail would go on for all rounds.
fn interrupt_in_the_next_case(home: &Home, program: &Child, worker: Process) {
    let own = program.id() as i32;
    wait_for("a worker after that one", || {
        home.processes().into_iter().find(|p| p.is_worker && p.parent == own && *p != worker)
    });
    kill_process(Pid::from_child(program), Signal::INT).expect("the program is there");
}

#[test]
fn a_killed_worker_or_controller_leaves_no_ring() {
    for kill_worker in [true, false] {
        let home = Home::new();
        let (mut child, worker, _) = start_long(&home, 3);
        if kill_worker {
            worker.kill();
            interrupt_in_the_next_case(&home, &child, worker);
        } else {
            child.kill().expect("a living controller");
        }
        let _ = child.wait_with_output();
        home.wait_until_alone();
    }
}

//! `switchcost ring` measures what it is asked to, and its outputs say so.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::sync::OnceLock;

use crate::common::schema::Schema;
use crate::common::{
    Home, PROGRAM, Rows, Said, allowed_cpus, assert_no_switch_is_missing, order_of,
    switches_per_hop,
};
use serde_json::Value;
use testing::{Need, lacks};

/// The promise of docs and of every later experiment.
const COLUMNS: &str = "experiment,case,round,sample,members,kind,link,work_bytes,stride_bytes,op,\
    placement,policy,hops,elapsed_ns,user_ns,system_ns,voluntary,involuntary,migrations,\
    minor_faults,major_faults,steal_ns";

const SMALL: [&str; 8] = ["--members", "2,4", "--rounds", "2", "--laps", "200", "--csv", "-"];

const ONE_ROUND: [&str; 8] = ["--members", "2", "--rounds", "1", "--laps", "50", "--csv", "-"];

/// What such a run says: one, for all tests that only read it.
fn small() -> &'static Said {
    static SAID: OnceLock<Said> = OnceLock::new();
    SAID.get_or_init(|| Home::new().measure(&SMALL))
}

fn small_rows() -> Rows {
    small().rows()
}

#[test]
fn csv_has_the_promised_columns_first() {
    let rows = small_rows();
    assert_eq!(rows.columns[..22].join(","), COLUMNS);
}

#[test]
fn csv_has_a_row_for_each_sample_of_each_ring_in_each_round() {
    let rows = small_rows();
    assert_eq!(rows.rings(), [(0, 1), (0, 2), (0, 4), (1, 1), (1, 2), (1, 4)]);
    for (round, members) in rows.rings() {
        let ring = rows.of_members(members).filter(|row| row.number("round") == round);
        let samples: Vec<u64> = ring.map(|row| row.number("sample")).collect();
        assert!((1..=3).contains(&samples.len()), "{samples:?}");
        assert_eq!(samples, (0..samples.len() as u64).collect::<Vec<_>>(), "in order, none twice");
    }
}

#[test]
fn hops_are_all_hops_of_a_sample() {
    for row in small_rows().rows {
        assert_eq!(row.number("hops"), row.number("members") * 200, "{row:?}");
        assert_eq!(row.number("laps"), 200, "{row:?}");
        assert!(row.number("elapsed_ns") > 0, "{row:?}");
    }
}

#[test]
fn what_is_not_there_is_empty() {
    for row in small_rows().rows {
        assert_eq!(row.text("experiment"), "ring");
        assert_eq!((row.text("kind"), row.text("link")), ("process", "pipe"));
        assert_eq!((row.text("placement"), row.text("policy")), ("same", "other"));
        assert_eq!(row.text("work_bytes"), "0");
        assert_eq!((row.text("stride_bytes"), row.text("op")), ("", ""), "{row:?}");
        // Without a tick the kernel has no split of the CPU time: neither part, or both.
        assert_eq!(row.text("user_ns").is_empty(), row.text("system_ns").is_empty(), "{row:?}");
    }
}

/// The law that all figures rest on: a hop of a pinned ring of two is one switch, that of a solo
/// ring none.
fn assert_counts(kind: &str) {
    // Short samples: on a busy machine some of them are alone on their CPU.
    let args = ["--members", "2", "--rounds", "3", "--laps", "200", "--kind", kind, "--csv", "-"];
    let Some([solo, two]) = switches_per_hop([1, 2], &args) else { return };
    assert!((two - 1.0).abs() <= 0.05, "{kind}: {two} switches per hop of two");
    assert!(solo <= 0.05, "{kind}: {solo} switches per hop of one");
}

#[test]
fn a_ring_of_two_processes_switches_once_a_hop_and_a_solo_ring_never() {
    assert_counts("process");
}

#[test]
fn a_ring_of_two_threads_switches_once_a_hop_and_a_solo_ring_never() {
    assert_counts("thread");
}

#[test]
fn every_member_of_a_larger_ring_is_counted() {
    let args = ["--members", "16", "--rounds", "1", "--laps", "100", "--csv", "-"];
    for kind in ["process", "thread"] {
        let rows = Home::new().measure(&[&args[..], &["--kind", kind]].concat()).rows();
        assert_eq!(rows.rings(), [(0, 1), (0, 16)]);
        assert_no_switch_is_missing(rows.of_members(16));
    }
}

#[test]
fn pinned_members_never_move() {
    for row in small_rows().rows {
        // Empty where the kernel was built without the scheduler's debug files.
        assert!(["0", ""].contains(&row.text("migrations")), "{row:?}");
    }
}

#[test]
fn work_is_done_as_asked() {
    let work = ["--work", "4K", "--stride", "64", "--op", "read"];
    for row in Home::new().measure(&[&ONE_ROUND[..], &work].concat()).rows().rows {
        assert_eq!((row.number("work_bytes"), row.number("stride_bytes")), (4096, 64));
        assert_eq!(row.text("op"), "read");
    }
}

#[test]
fn placements_are_kept() {
    let cpus = allowed_cpus();
    let one = cpus.last().expect("a CPU").to_string();
    let all: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let cases = [
        ("free".to_string(), all.join(" ")),
        (one.clone(), one.clone()),
        (all.join(","), all.join(" ")),
    ];
    for (placement, used) in cases {
        let args = [&ONE_ROUND[..], &["--placement", &placement]].concat();
        let rows = Home::new().measure(&args).rows();
        assert_eq!(rows.rings().len(), 2);
        for row in rows.rows {
            assert_eq!((row.text("placement"), row.text("cpus")), (&*placement, &*used));
        }
    }
}

/// Which one depends on what others use at the moment (`probe::placement`).
#[test]
fn all_members_are_on_one_cpu_that_is_allowed() {
    let allowed: Vec<String> = allowed_cpus().iter().map(u32::to_string).collect();
    let rows = small_rows().rows;
    let cpus: Vec<&str> = rows.iter().map(|row| row.text("cpus")).collect();
    assert!(allowed.iter().any(|cpu| *cpu == cpus[0]), "{cpus:?}");
    assert!(cpus.iter().all(|cpu| *cpu == cpus[0]), "{cpus:?}");
}

#[test]
fn the_ring_of_one_is_measured_once_also_when_it_is_asked_for() {
    for members in ["1", "1,2"] {
        let said = Home::new().measure(&["--members", members, "--rounds", "1", "--laps", "9"]);
        assert_eq!(said.sizes().join(","), members);
    }
}

fn estimate<'a>(case: &'a Value, name: &str) -> &'a Value {
    let estimate = &case[name];
    for field in
        ["value", "standard_error", "speed", "low", "high", "confidence", "resolved", "rounds"]
    {
        assert!(estimate.get(field).is_some(), "{name} has no {field}: {estimate}");
    }
    estimate
}

const JSON: [&str; 6] = ["--members", "2,4", "--laps", "100", "--json", "-"];

/// The record of eight rounds: one, for all tests that only read it.
fn record() -> Value {
    static SAID: OnceLock<Said> = OnceLock::new();
    let args = || [&JSON[..], &["--rounds", "8", "--seed", "77"]].concat();
    SAID.get_or_init(|| Home::new().measure(&args())).json()
}

#[test]
fn the_record_holds_header_and_estimates() {
    let record = record();
    let header = &record["header"];
    assert_eq!(header["schema"], 2);
    assert_eq!(header["plan"]["seed"], 77);
    assert_eq!(header["plan"]["experiment"], "ring");
    assert_eq!(header["build"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(header["machine"]["kernel"]["release"].to_string().len() > 4);
    let members: Vec<_> = record["cases"].as_array().expect("cases").iter().collect();
    assert_eq!(members.iter().map(|c| &c["case"]["members"]).collect::<Vec<_>>(), [1, 2, 4]);
    for case in members {
        assert_eq!(case["rounds"], 8);
        assert!(case["samples"].as_u64().is_some_and(|samples| (8..=24).contains(&samples)));
        assert!(case["clean_share"].as_f64().is_none_or(|share| (0.0..=1.0).contains(&share)));
        assert_interval(estimate(case, "ns_per_hop"));
        assert_interval(estimate(case, "switches_per_hop"));
        match case["case"]["members"].as_u64() {
            Some(1) => assert!(case["ns_per_switch_above_solo"].is_null()),
            _ => assert_interval(estimate(case, "ns_per_switch_above_solo")),
        }
        assert_cycles(case);
    }
    assert_eq!(record["end"]["reason"], "rounds_done");
    assert_eq!(record["scaling"].as_array().map(Vec::len), Some(1));
}

/// There is an interval at whatever speed; which one this machine had is not ours to say.
fn assert_interval(estimate: &Value) {
    let is_rough = ["contended", "not_alone", "cpu_time"].iter().any(|s| estimate["speed"] == *s);
    assert!(estimate["not_quotable"].is_string() || !is_rough, "{estimate}");
    let number = |name: &str| estimate[name].as_f64().expect("a number");
    let (low, high) = (number("low"), number("high"));
    assert!(low <= number("value") && number("value") <= high, "{estimate}");
    assert_eq!(number("confidence"), 0.95);
    assert_eq!(estimate["resolved"].as_bool(), Some(low > 0.0 || high < 0.0), "{estimate}");
}

/// The cost in cycles is that in nanoseconds at the clock beside it, which only figures at full
/// speed have.
fn assert_cycles(case: &Value) {
    let Some(clock_ghz) = case["clock_ghz"].as_f64() else {
        assert!(case["cycles_per_switch"].is_null() && case["elasticity"].is_null(), "{case}");
        return;
    };
    assert!((0.1..10.0).contains(&clock_ghz), "{clock_ghz} GHz");
    if let Some(cycles) = case["cycles_per_switch"]["value"].as_f64() {
        let ns = case["ns_per_switch_above_solo"]["value"].as_f64().expect("a cost");
        assert!((cycles / (ns * clock_ghz) - 1.0).abs() < 1e-9, "{case}");
    }
}

#[test]
fn one_round_has_the_interval_that_one_round_leaves() {
    let record = Home::new().measure(&[&JSON[..], &["--rounds", "1"]].concat()).json();
    for case in record["cases"].as_array().expect("cases") {
        let hop = estimate(case, "ns_per_hop");
        assert_eq!(hop["rounds"], 1);
        assert!(hop["speed"] != "full", "{hop}");
        let is_judged = hop["speed"] != "not_judged";
        assert_eq!((hop["low"].is_number(), hop["high"].is_number()), (is_judged, is_judged));
    }
}

#[test]
fn the_record_follows_its_schema() {
    let schema = Schema::of("record");
    let mut record = record();
    schema.assert_holds(&record);
    // A schema that takes anything would not tell.
    record["cases"][0]["ns_per_hop"]["value"] = "dear".into();
    assert!(!schema.holds(&record));
}

#[test]
fn the_table_has_a_row_for_each_size_and_says_how_far_to_trust_it() {
    let home = Home::new();
    let said = home.measure(&["--members", "2,4", "--rounds", "1", "--laps", "200"]);
    assert_eq!(said.sizes(), ["1", "2", "4"]);
    assert_eq!(said.err, "");
    for row in &said.table()[1..] {
        // One round has a figure, whatever the core was like; where others made slices long it is
        // not judged, and has no interval.
        let row = row.join(" ");
        let is_told = [" to ", "1 round "].iter().any(|words| row.contains(words));
        assert!(is_told && row.ends_with(" 1"), "{row}");
    }
    let solo = said.table()[0].join(" ");
    assert!(solo.contains(" - (solo) ") && solo.ends_with(" 1"), "{solo}");
    let columns = "members real s CPU s user s system s projected s ns/switch interval \
         cycles/switch GHz ns/hop switches/hop clean % rounds";
    let header = said.out.lines().find(|line| line.starts_with("members")).expect("a header");
    assert_eq!(header.split_whitespace().collect::<Vec<_>>().join(" "), columns);
    for word in ["scaling: ", "machine: ", "stopped: all rounds are done", "run file: "] {
        let lines = said.out.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(lines, 1, "{word} in {}", said.out);
    }
    let file = format!("run file: {}", home.run_file().display());
    assert_eq!(said.out.lines().last(), Some(&*file));
}

#[test]
fn the_projected_line_starts_at_the_ring_of_two() {
    let said = Home::new().measure(&["--members", "2,4,64", "--rounds", "1", "--laps", "50"]);
    let table = said.table();
    let cpu_of_two: f64 = table[1][2].parse().expect("CPU seconds");
    for row in &table[1..] {
        let (members, projected): (f64, f64) =
            (row[0].parse().expect("members"), row[5].parse().expect("projected seconds"));
        // Both are printed with three digits.
        let wanted = cpu_of_two * members / 2.0;
        assert!((projected - wanted).abs() <= wanted * 0.006, "{row:?}");
    }
    assert_eq!(table[0][5], "-", "a ring of one has no projection");
}

#[test]
fn quiet_is_silent() {
    let home = Home::new();
    let said = home.measure(&["--members", "2", "--rounds", "1", "--laps", "9", "--quiet"]);
    assert_eq!((&*said.out, &*said.err), ("", ""));
    assert_eq!(home.run_files().len(), 1);
}

#[test]
fn the_table_makes_way_for_what_is_read_by_machines() {
    let said = small();
    assert!(said.out.starts_with("experiment,case,"), "{}", said.out);
    assert!(said.err.contains("run file: "), "{}", said.err);
}

#[test]
fn json_and_csv_go_to_files_beside_the_table() {
    let home = Home::new();
    let file = |name: &str| home.path().join(name).display().to_string();
    let (json, csv) = (file("record.json"), file("samples.csv"));
    let small = ["--members", "2", "--rounds", "1", "--laps", "200"];
    let said = home.measure(&[&small[..], &["--json", &json, "--csv", &csv]].concat());
    assert_eq!(said.sizes(), ["1", "2"]);
    let record: Value =
        serde_json::from_str(&fs::read_to_string(json).expect("a record")).expect("JSON");
    assert_eq!(record["cases"].as_array().map(Vec::len), Some(2));
    let rows = crate::common::Rows::parse(&fs::read_to_string(csv).expect("samples"));
    assert_eq!(rows.rings(), [(0, 1), (0, 2)]);
}

fn order(seed: &str) -> Vec<(u64, u64)> {
    let home = Home::new();
    let five = ["--members", "2,3,4,5,6", "--rounds", "3", "--laps", "1"];
    home.measure(&[&five[..], &["--quiet", "--seed", seed]].concat());
    order_of(&home.run_file())
}

#[test]
fn rounds_are_shuffled_by_the_seed_and_each_anew() {
    let first = order("7");
    assert_eq!(first, order("7"), "the seed does not fix the order");
    assert_ne!(first, order("8"), "the seed does not change the order");
    let round = |number: u64| -> Vec<u64> {
        first.iter().filter(|(round, _)| *round == number).map(|(_, case)| *case).collect()
    };
    for number in 0..3 {
        let mut cases = round(number);
        cases.sort_unstable();
        assert_eq!(cases, (0..6).collect::<Vec<_>>(), "each case once, the solo ring among them");
    }
    assert_ne!(round(0), round(1));
    assert_ne!(round(1), round(2));
    assert!((0..3).any(|n| !round(n).is_sorted()), "not shuffled");
}

#[test]
fn a_ring_on_every_cpu_and_a_ring_on_one_are_told_apart() {
    if lacks([Need::TwoCpus]) {
        return;
    }
    let all: Vec<String> = allowed_cpus().iter().map(u32::to_string).collect();
    let heading = |placement: &str| {
        let small = ["--members", "2", "--rounds", "1", "--laps", "9"];
        let said = Home::new().measure(&[&small[..], &["--placement", placement]].concat());
        said.out.lines().find(|line| line.contains("members by")).expect("a heading").to_string()
    };
    let (same, free) = (heading("same"), heading("free"));
    assert!(same.contains("placement same (CPU "), "{same}");
    assert!(free.contains(&format!("placement free (CPU {}", all[..2].join(","))), "{free}");
}

/// Started through /proc/self/exe all would be `exe`, in ps, in top, and where we say who ran
/// beside.
#[test]
fn processes_of_ours_have_names_that_tell_what_they_are() {
    let names = |args: &[&str], until: &str| -> BTreeSet<String> {
        let home = Home::new();
        let mut child = home.command(PROGRAM).args(args).stdout(Stdio::null()).spawn().unwrap();
        let all = home.wait_for_command(until);
        let comm = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        let names = all.iter().filter_map(|process| comm(process.pid));
        let names = names.map(|name| name.trim_end().to_string()).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        names
    };
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    // No ring of one and no other case: whatever is there is of it.
    let ring = ["ring", "--members", "3", "--rounds", "1", "--laps", "2000000"];
    // The worker is the first member, the others are told apart.
    let found = ["switchcost", "switchcost-ring", "switchcost-2/3", "switchcost-3/3"];
    assert_eq!(names(&ring, "switchcost-3/3"), set(&found));
    let found: BTreeSet<String> = set(&["switchcost", "switchcost-cmd", "sleep"]);
    assert_eq!(names(&["run", "-n", "1", "--", "sleep", "30"], "sleep"), found);
    let sweep = ["classic", "sweep", "--counts", "2", "--laps", "2000000"];
    let found: BTreeSet<String> = set(&["switchcost", "getrusage", "pipeline"]);
    assert_eq!(names(&sweep, "pipeline"), found);
    // A trial has no members.
    let trial = ["classic", "experiment", "sampling", "--duration", "2s"];
    let found: BTreeSet<String> = set(&["switchcost", "switchcost-work"]);
    assert_eq!(names(&trial, "switchcost-work"), found);
}

/// The software events, which every machine has, are counted in the same slices as the time.
#[test]
fn what_the_cpu_counts_is_told_by_hop_and_by_switch() {
    if lacks([Need::Root]) {
        return;
    }
    let home = Home::new();
    let args = ["ring", "--members", "2", "--rounds", "3", "--laps", "2000", "--verbose"];
    let events = ["--events", "context-switches,page-faults"];
    let said = home.run(&[&args[..], &events].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("context-switches") && said.out.contains("per hop"), "{}", said.out);
    let record = home.run(&["runs", "export", "last"]).json();
    Schema::of("record").assert_holds(&record);
    let case = &record["cases"][1];
    let [switches, faults] = [0, 1].map(|at| case["events"][at].clone());
    assert_eq!(
        (&switches["event"], &faults["event"]),
        (&"context-switches".into(), &"page-faults".into())
    );
    // Others on the CPU switch, too, and nobody switches less than the ring does.
    let a_hop = |of: &Value| of["per_hop"]["value"].as_f64().expect("a count");
    let own = case["switches_per_hop"]["value"].as_f64().expect("a count");
    assert!(a_hop(&switches) >= 0.98 * own, "{case}");
    assert!(switches["per_switch_above_solo"]["value"].as_f64() > Some(0.5), "{case}");
    let csv = home.run(&["runs", "export", "last", "--format", "csv"]);
    let columns = csv.out.lines().next().expect("columns");
    assert!(columns.ends_with("context-switches,page-faults"), "{columns}");
}

#[test]
fn an_event_that_cannot_be_counted_is_refused_by_name() {
    let home = Home::new();
    let said = home.run(&["ring", "--events", "cyles"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("did you mean 'cycles'"), "{}", said.err);
    let said = home.run(&["ring", "--events", "context-switches", "--placement", "free"]);
    assert!(said.code == Some(2) && said.err.contains("several CPUs"), "{}", said.err);
}

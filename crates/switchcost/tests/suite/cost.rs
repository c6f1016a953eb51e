//! `switchcost cost` as a program: counts, figures that are there, what was granted, bad input.

use std::fs;

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Said, allowed_cpus};
use crate::exports::read_metrics;
use serde_json::Value;
use testing::{Need, lacks, repeats};

/// Few laps: the rings of 64 that yield, which every run has, take their time for each where others
/// want the CPU.
const GRID: [&str; 9] = [
    "cost",
    "--array",
    "1K,4K",
    "--stride",
    "64",
    "--laps",
    "20",
    "--budget=60s",
    "--walk=whole,chase",
];

fn cost(home: &Home, args: &[&str]) -> Said {
    let said = home.run(&[&GRID[..], args].concat());
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
    said
}

#[test]
fn every_ring_is_measured_beside_its_solo_with_and_without_work() {
    let said = cost(&Home::new(), &["--op", "read,rmw", "--rounds", "1", "--csv", "-"]);
    let rows = said.rows();
    // A ring without work, and one for each of two walks, arrays and operations; one sample a
    // round. Beside them rings of three sizes that yield, of threads and of processes.
    let (yielding, by_pipe): (Vec<_>, Vec<_>) =
        rows.rows.iter().partition(|row| row.text("link") == "yield");
    assert_eq!((by_pipe.len(), yielding.len()), (1 + 2 * 2 * 2, 3 * 2));
    let chases = rows.rows.iter().filter(|row| row.text("walk") == "chase").count();
    assert_eq!(chases, 2 * 2);
    for row in by_pipe {
        assert_eq!(row.text("experiment"), "cost");
        assert_eq!((row.number("members"), row.number("hops")), (2, 40));
        assert!(row.switches() * 100 >= row.number("hops") * 95, "{row:?}");
    }
    let of = |bytes: &str| rows.rows.iter().filter(|r| r.text("work_bytes") == bytes).count();
    assert_eq!((of("0"), of("1024"), of("4096")), (1 + 3 * 2, 4, 4));
}

/// Solos are made by the members themselves, on the memory that they have in the ring, before and
/// after it.
#[test]
fn each_worker_measures_the_ring_between_the_solos_of_its_members() {
    let home = Home::new();
    cost(&home, &["--rounds", "1"]);
    let run = fs::read_to_string(home.run_file()).expect("the run");
    let triples: Vec<Value> = run
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"))
        .filter_map(|line| line.pointer("/sample/triples").cloned())
        .collect();
    assert_eq!(triples.len(), 1 + 2 * 2, "one sample a case");
    for of_worker in &triples {
        let all = of_worker["all"].as_array().expect("triples");
        assert!((1..=4).contains(&all.len()), "{of_worker}");
        for triple in all {
            let length = |name: &str| triple[name].as_array().map(Vec::len);
            // Two members, twice; a quantum before and behind each solo, around and between the
            // ring's slices.
            assert_eq!((length("solos_ns"), length("ring_ns")), (Some(4), Some(6)), "{triple}");
            assert_eq!((length("latency_ns"), length("throughput_ns")), (Some(15), Some(15)));
        }
    }
}

#[test]
fn the_record_has_all_three_costs_and_follows_its_schema() {
    let rounds = repeats("2", "8");
    let bounds = ["--walk", "whole", "--laps", "5", "--rounds", rounds, "--budget", "60s"];
    let args = [&["cost", "--array", "1K,4K", "--json", "-"], &bounds[..]].concat();
    let said = Home::new().run(&args);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = said.json();
    let found = &record["cost"];
    assert_eq!(found["direct"].as_array().map(Vec::len), Some(1));
    let is_figure = |figure: &Value| {
        // Whatever this machine was like there is an answer with an interval; whether it ever was at
        // full speed is not ours to say.
        assert!(figure["value"].is_number(), "{found}");
        if figure["speed"] != "not_judged" {
            assert!(figure["low"].is_number() && figure["high"].is_number(), "{figure}");
        }
    };
    is_figure(&found["direct"][0]["cost_ns"]);
    let points = found["curves"][0]["points"].as_array().expect("points");
    assert_eq!(points.iter().map(|p| &p["array_bytes"]).collect::<Vec<_>>(), [1024, 4096]);
    points.iter().for_each(|point| {
        is_figure(&point["total_ns"]);
        // There is none above a direct cost that may be zero.
        if !point["indirect_ns"].is_null() {
            is_figure(&point["indirect_ns"]);
        }
    });
    Schema::of("record").assert_holds(&record);
}

#[test]
fn show_prints_what_was_printed_and_a_run_can_be_resumed() {
    let home = Home::new();
    let said = cost(&home, &["--rounds", "1", "--verbose", "--history"]);
    let name = home.run_file().file_stem().expect("a name").to_string_lossy().into_owned();
    let shown = home.run(&["runs", "show", &name, "--verbose", "--history"]);
    assert_eq!((shown.code, &shown.out), (Some(0), &said.out));
    for word in [
        "direct cost (c1) with 2 members",
        "rmw by 64 B",
        "indirect",
        "regions, ",
        "; 4.44 to 48.4 in Li",
    ] {
        assert!(said.out.contains(word), "no {word} in {}", said.out);
    }
    let resumed = home.run(&["runs", "resume", &name, "--rounds", "1"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("after 2 rounds in "), "{}", resumed.out);
    // The answer and its table by default, and no machine of 2007.
    let brief = home.run(&["runs", "show", &name]).out;
    // Whether others had the CPU, of two rounds, is not ours to say: then the answer says that.
    let is_answer = [
        "A switch costs ",
        "What a switch costs without a working set and with 4 KiB is not known (",
        "No cost of a switch at full speed: other tasks",
    ];
    assert!(is_answer.iter().any(|answer| brief.starts_with(answer)), "{brief}");
    assert!(brief.contains("ns/switch"), "{brief}");
    for word in ["c1 of", "theirs", "Li, Ding", "counted switches"] {
        assert!(!brief.contains(word), "{word} in {brief}");
    }
}

#[test]
fn what_was_granted_of_the_setting_is_printed() {
    if lacks([Need::TwoCpus]) {
        return;
    }
    let said = cost(&Home::new(), &["--rounds", "1", "--verbose"]);
    let granted = said.out.contains(" was granted");
    let refused = said.out.contains("note: policy fifo was refused (");
    assert!(granted != refused, "{}", said.out);
    assert!(said.out.contains("note: setting: members on CPU "), "{}", said.out);
}

#[test]
fn without_the_privilege_the_policy_is_the_normal_one_and_that_is_said() {
    if lacks([Need::Root, Need::TwoCpus, Need::Program("setpriv")]) {
        return;
    }
    let home = Home::new();
    let mut command = home.command("setpriv");
    command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", PROGRAM]).args(GRID);
    let said = Said::of(command.args(["--rounds", "1", "--verbose"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("policy other, "), "{}", said.out);
    assert!(said.out.contains("note: policy fifo was refused ("), "{}", said.out);
}

#[test]
fn on_one_cpu_there_is_no_realtime_ring() {
    if lacks([Need::Program("taskset")]) {
        return;
    }
    let home = Home::new();
    let cpu = allowed_cpus()[0].to_string();
    let with = |args: &[&str]| {
        Said::of(home.command("taskset").args(["-c", &cpu, PROGRAM]).args(GRID).args(args))
    };
    let said = with(&["--rounds", "1", "--verbose"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("policy other, ") && said.out.contains("SCHED_FIFO is not used"));
    let refused = with(&["--policy", "fifo"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.error().contains("every CPU that this program may use"), "{}", refused.err);
}

#[test]
fn pages_are_touched_by_one_line_each_and_recorded_so() {
    let tlb =
        ["cost", "--tlb", "--array", "16K,32K", "--rounds", "1", "--laps", "5", "--json", "-"];
    let record = Home::new().run(&tlb).json();
    let work = &record["cost"]["curves"][0]["work"];
    assert_eq!((&work["walk"], &work["stride_bytes"]), (&"sparse".into(), &4096.into()));
    assert_eq!(record["cost"]["curves"][0]["outcome"]["breaks"]["axis"]["name"], "pages");
}

#[test]
fn larger_rings_have_curves_of_their_own() {
    let args = ["--members", "2..4", "--huge-pages", "on", "--rounds", "1", "--json", "-"];
    let record = cost(&Home::new(), &args).json();
    assert_eq!(record["cost"]["direct"].as_array().map(Vec::len), Some(3));
    assert_eq!(record["cost"]["curves"].as_array().map(Vec::len), Some(2 * 3));
    assert_eq!(record["cost"]["by_members"].as_array().map(Vec::len), Some(1 + 2 * 2));
    assert_eq!(record["cost"]["curves"][0]["work"]["huge_pages"], true);
}

/// Nine rings of one working set are one table, and one of nine kinds of nothing is not.
#[test]
fn members_are_rows_of_one_table() {
    let args = ["--tlb", "--op", "read", "--array", "16K", "--members", "2..5"];
    let said = Home::new().run(&[&["cost", "--rounds", "1", "--laps", "5"], &args[..]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.out.matches("ns/switch").count(), 1, "{}", said.out);
    let rows = said.out.lines().skip_while(|line| !line.contains("ns/switch")).skip(2);
    let sizes: Vec<&str> = rows.map_while(|line| line.split_whitespace().next()).take(4).collect();
    assert_eq!(sizes, ["2", "3", "4", "5"], "{}", said.out);
    for row in said.out.lines().skip_while(|line| !line.contains("ns/switch")).skip(2).take(4) {
        let cell = row.split_whitespace().nth(1).expect("a figure");
        let figure = cell.trim_start_matches(['c', '~']).trim_end_matches('\'');
        assert!(figure.parse::<f64>().is_ok() || figure == "not", "{row}");
    }
}

#[test]
fn prices_are_all_that_standard_output_has_where_it_is_asked_for_them() {
    let said = cost(&Home::new(), &["--rounds", "1", "--openmetrics", "-"]);
    let metrics = read_metrics(&said.out);
    assert_eq!(metrics["switchcost_price_high_seconds"].len(), 2);
    // Upper estimates have no least.
    let is_rough = metrics["switchcost_price_rough"][0].1 == 1.0;
    let lows = metrics.get("switchcost_price_low_seconds").map_or(0, Vec::len);
    assert_eq!(lows, if is_rough { 0 } else { 2 });
    assert!(said.err.contains("ns/switch"), "{}", said.err);
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    for (args, named) in [
        (&["--array", "12"][..], "--array 12"),
        (&["--array", "0"], "--array 0"),
        (&["--array", "lots"], "'lots'"),
        (&["--stride", "7"], "--stride 7"),
        (&["--stride", "8K", "--array", "1K"], "larger than every array"),
        (&["--op", "jump"], "'jump'"),
        (&["--walk", "sparse"], "'sparse'"),
        (&["--members", "1"], "--members 1"),
        (&["--huge-pages", "maybe"], "maybe"),
        (&["--tlb", "--stride", "64"], "--stride"),
        (&["--deep", "--array", "1K"], "--array"),
        (&["--array", "900000G"], "--array"),
        (&["--openmetrics", "/nonexistent/x"], "--openmetrics /nonexistent/x"),
        (&["--openmetrics", "-", "--csv", "-"], "--csv - and --openmetrics -"),
        (&["--pid", "1", "--openmetrics", "x"], "--openmetrics x: a program has no prices"),
        (&["--tlb", "--openmetrics", "x"], "--openmetrics x: --tlb has no prices"),
        (
            &["--kind", "thread", "--openmetrics", "x"],
            "--openmetrics x: --kind thread has no prices",
        ),
        (&["--members", "4", "--openmetrics", "x"], "--members without 2 has no prices"),
    ] {
        let home = Home::new();
        let said = home.run(&[&["cost"], args].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {said:?}");
        assert!(said.error().contains(named), "{args:?}: {}", said.err);
        assert_eq!(home.run_files().len(), 0, "{args:?}");
    }
}

#[test]
fn the_default_budget_ends_within_a_minute_and_no_other_experiments() {
    let home = Home::new();
    assert!(home.run(&["cost", "-h"]).out.contains("[default: 55s+]"));
    assert!(home.run(&["ring", "-h"]).out.contains("[default: 20s+]"));
}

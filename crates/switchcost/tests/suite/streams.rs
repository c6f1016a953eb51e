//! `switchcost ring --flight`: several items under way, and streams over full links.

use crate::common::{Home, Rows, allowed_cpus, lines_of, seed_of_order};
use serde_json::Value;

/// Laps of each sample.
const LAPS: u64 = 3000;
/// Enough laps for a full pipe, which holds 65,536 bytes.
const FULL_LAPS: u64 = 4 * 65_536;

fn measure(home: &Home, more: &[&str]) -> Rows {
    let laps = LAPS.to_string();
    let args = ["--rounds", "2", "--laps", &laps, "--csv", "-"];
    home.measure(&[&args[..], more].concat()).rows()
}

/// Measures a full pipe; returns its items by sample.
fn measure_full(more: &[&str]) -> Vec<u64> {
    let laps = FULL_LAPS.to_string();
    let args = ["--flight", "full", "--rounds", "1", "--laps", &laps, "--csv", "-"];
    let rows = Home::new().measure(&[&args[..], more].concat()).rows();
    let streams = rows.rows.iter().filter(|row| row.text("flight") == "full");
    streams.map(|row| row.number("hops")).collect()
}

/// Returns the cases of the plan of the only run.
fn planned_cases(home: &Home) -> Value {
    lines_of(&home.run_file())[0]["header"]["plan"]["cases"].clone()
}

#[test]
fn every_item_is_counted() {
    let rows = measure(&Home::new(), &["--flight", "1,16"]);
    let mut flights = Vec::new();
    for row in &rows.rows {
        let (members, flight) = (row.number("members"), row.text("flight"));
        assert_eq!((row.number("hops"), row.number("laps")), (LAPS * members, LAPS), "{row:?}");
        flights.push((members, flight.to_string()));
    }
    flights.sort();
    flights.dedup();
    let expected = [(1, ""), (2, ""), (2, "16")];
    assert_eq!(flights, expected.map(|(members, flight)| (members, flight.to_string())));
    let items = measure_full(&[]);
    assert!(!items.is_empty() && items.iter().all(|items| *items == FULL_LAPS), "{items:?}");
}

#[test]
fn laps_too_few_for_the_items_under_way_are_refused() {
    let home = Home::new();
    for (flight, laps, least) in
        [("16", "63", "64"), ("2,100,4", "399", "400"), ("1,2", "7", "8"), ("full", "40", "")]
    {
        let said = home.run(&["ring", "--flight", flight, "--laps", laps]);
        assert_eq!(said.code, Some(2), "{flight}: {}", said.err);
        let error = said.error();
        assert!(error.contains(&format!("--laps {laps} with --flight ")), "{error}");
        assert!(error.contains(&format!("(use --laps {least}")), "{error}");
    }
    let said = home.run(&["ring", "--flight", "full", "--laps", "40"]);
    assert!(said.error().contains("--flight full by pipe, which holds "), "{}", said.err);
    assert_eq!(home.run_files().len(), 0);
    let args = ["--flight", "16", "--laps", "64", "--rounds", "1", "--csv", "-"];
    let rows = home.measure(&args).rows();
    let items = rows.rows.iter().find(|row| row.text("flight") == "16").expect("items");
    assert_eq!((items.number("laps"), items.number("hops")), (64, 128));
}

/// A last slice of a few laps would never have all items under way.
#[test]
fn each_slice_has_laps_for_its_items() {
    let args = ["--flight", "1000", "--rounds", "1", "--laps", "9001", "--csv", "-"];
    let rows = Home::new().measure(&args).rows();
    for row in rows.rows.iter().filter(|row| row.text("flight") == "1000") {
        let (laps, slice_laps) = (row.number("laps"), row.number("slice_laps"));
        let rest = laps % slice_laps;
        assert!(slice_laps >= 4000 && (rest == 0 || rest >= 4000), "{row:?}");
    }
}

#[test]
fn one_item_is_the_ring_of_two() {
    let (plain, one) = (Home::new(), Home::new());
    // Which CPU is the least busy may change between the two.
    let cpu = allowed_cpus()[0].to_string();
    let rows = [
        measure(&plain, &["--members", "2", "--seed", "7", "--placement", &cpu]),
        measure(&one, &["--flight", "1", "--seed", "7", "--placement", &cpu]),
    ];
    assert_eq!(planned_cases(&plain), planned_cases(&one));
    assert_eq!(rows[0].columns, rows[1].columns, "no column of its own");
    let hops = |rows: &Rows| rows.rows.iter().map(|row| row.number("hops")).max();
    assert_eq!(hops(&rows[0]), hops(&rows[1]));
    // The columns of a plan with several are the same, and one more.
    let several = measure(&Home::new(), &["--flight", "2"]);
    assert_eq!(several.columns.len(), rows[0].columns.len() + 1);
}

#[test]
fn an_item_has_time_switches_and_wake_ups_in_every_output() {
    let home = Home::new();
    let args = ["--flight", "1,8", "--rounds", "6", "--json", "-"];
    let record = home.measure(&args).json();
    for case in record["cases"].as_array().expect("cases") {
        assert!(case["ns_per_hop"]["value"].as_f64().expect("a time") > 0.0, "{case}");
        let count = |name: &str| case[name]["value"].as_f64().expect("a count");
        let (switches, wakeups) = (count("switches_per_hop"), count("wakeups_per_hop"));
        assert!(0.0 <= wakeups && wakeups <= switches, "{case}");
        if case["case"]["flight"].is_object() {
            assert!(case["ns_per_switch_above_solo"].is_null(), "{case}");
            assert_eq!(
                (&case["does_not_switch"], &case["counts_disagree"]),
                (&false.into(), &false.into())
            );
        }
    }
    let shown = home.run(&["runs", "show", "last"]).out;
    assert!(shown.starts_with("With 8 items under way an item takes "), "{shown}");
    assert!(shown.contains("wake-ups/hop") && shown.contains("under way"), "{shown}");
    let summary = home.run(&["runs", "export", "last", "--format", "summary-csv"]).rows();
    let flights: Vec<&str> = summary.rows.iter().map(|row| row.text("flight")).collect();
    assert_eq!(flights, ["", "", "8"]);
    for count in ["wakeups_per_hop", "switches_per_hop"] {
        assert!(summary.rows.iter().all(|row| !row.text(count).is_empty()), "{count}");
    }
    let markdown = home.run(&["runs", "export", "last", "--format", "markdown"]).out;
    assert!(markdown.contains("wake-ups/hop"), "{markdown}");
    // The same beside itself.
    let said = home.run(&["compare", "last", "last", "--verbose", "--json", "-"]);
    let changes = said.json()["changes"].clone();
    let item = changes.as_array().expect("changes").iter().find(|c| c["labels"]["flight"] == "8");
    assert!(item.expect("the item")["measures"]["wakeups_per_hop"].is_object(), "{changes}");
    let said = home.run(&["compare", "last", "last", "--verbose"]);
    assert!(said.out.contains("switches/hop") && said.out.contains("wake-ups/hop"), "{}", said.out);
    // Runs without it have no such columns.
    let plain = Home::new();
    plain.measure(&["--members", "2", "--rounds", "1", "--laps", "50"]);
    let markdown = plain.run(&["runs", "export", "last", "--format", "markdown"]).out;
    assert!(!markdown.contains("wake-ups"), "{markdown}");
}

#[test]
fn work_threads_policies_and_placements_go_with_it() {
    let rows = measure(&Home::new(), &["--flight", "4", "--kind", "thread", "--placement", "free"]);
    assert_eq!(rows.of_members(2).next().expect("a pair").number("hops"), 2 * LAPS);
    let with_work = ["--work", "4K", "--policy", "batch"];
    let rows = measure(&Home::new(), &[&["--flight", "4"], &with_work[..]].concat());
    assert_eq!(rows.of_members(2).next().expect("a pair").number("hops"), 2 * LAPS);
    assert!(measure_full(&with_work).contains(&FULL_LAPS));
    let rows = measure(&Home::new(), &["--flight", "4", "--members", "2,5"]);
    assert_eq!(rows.of_members(5).next().expect("a ring of five").number("hops"), 5 * LAPS);
}

#[test]
fn a_link_that_holds_one_item_is_refused_or_left_out() {
    let home = Home::new();
    let said = home.run(&["ring", "--flight", "16", "--link", "futex"]);
    assert_eq!(said.code, Some(2));
    let error = said.error();
    assert!(error.contains("--flight 16 with --link futex: its token lies in"), "{error}");
    assert!(error.contains("(links that can: pipe, fifo, "), "{error}");
    let said = home.run(&["ring", "--flight", "65536", "--link", "socket-dgram"]);
    assert!(said.error().contains("items here (links that can: pipe"), "{}", said.err);
    assert_eq!(home.run_files().len(), 0);
    let args = ["--flight", "full", "--link", "all", "--rounds", "1"];
    let said = home.measure(&args);
    let notes = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(notes.contains("left out: --flight full with --link futex"), "{notes}");
}

#[test]
fn a_stream_that_is_killed_leaves_nothing() {
    // The solo would take as long.
    let seed = seed_of_order("2", |sizes| sizes.first() == Some(&2));
    for flight in ["16", "full"] {
        let home = Home::new();
        let laps = ["--laps", "1000000000", "--rounds", "1", "--seed", &seed];
        let args = [&["ring", "--flight", flight], &laps[..]].concat();
        let mut child = home.start(&args);
        home.wait_for_worker(&mut child, 2).expect("a pair");
        child.kill().expect("the controller is killed");
        child.wait().expect("its end");
        home.wait_until_alone();
    }
}

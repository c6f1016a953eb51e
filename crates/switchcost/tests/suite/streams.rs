//! `switchcost ring --flight`: several items under way, and streams over full links.

use crate::common::{Home, Rows, allowed_cpus, lines_of, seed_of_order};
use serde_json::Value;

/// Laps of each sample.
const LAPS: u64 = 3000;

fn measure(home: &Home, more: &[&str]) -> Rows {
    let laps = LAPS.to_string();
    let args = ["--rounds", "2", "--laps", &laps, "--csv", "-"];
    home.measure(&[&args[..], more].concat()).rows()
}

/// Returns the cases of the plan of the only run.
fn planned_cases(home: &Home) -> Value {
    lines_of(&home.run_file())[0]["header"]["plan"]["cases"].clone()
}

#[test]
fn every_item_is_counted() {
    let rows = measure(&Home::new(), &["--flight", "1,16,full"]);
    let mut flights = Vec::new();
    for row in &rows.rows {
        let (members, flight) = (row.number("members"), row.text("flight"));
        let per_lap = if flight == "full" { 1 } else { members };
        assert_eq!((row.number("hops"), row.number("laps")), (LAPS * per_lap, LAPS), "{row:?}");
        flights.push((members, flight.to_string()));
    }
    flights.sort();
    flights.dedup();
    let expected = [(1, ""), (2, ""), (2, "16"), (2, "full")];
    assert_eq!(flights, expected.map(|(members, flight)| (members, flight.to_string())));
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
    assert!(summary.rows.iter().all(|row| !row.text("wakeups_per_hop").is_empty()));
    let markdown = home.run(&["runs", "export", "last", "--format", "markdown"]).out;
    assert!(markdown.contains("wake-ups/hop"), "{markdown}");
    // The same beside itself.
    let said = home.run(&["compare", "last", "last", "--verbose", "--json", "-"]);
    let changes = said.json()["changes"].clone();
    let item = changes.as_array().expect("changes").iter().find(|c| c["labels"]["flight"] == "8");
    assert!(item.expect("the item")["measures"]["wakeups_per_hop"].is_object(), "{changes}");
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
    let args = ["--flight", "4,full", "--work", "4K", "--policy", "batch"];
    let rows = measure(&Home::new(), &args);
    let hops: Vec<u64> = rows.of_members(2).map(|row| row.number("hops")).collect();
    assert!(hops.contains(&LAPS) && hops.contains(&(2 * LAPS)), "{hops:?}");
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
    let args = ["--flight", "full", "--link", "all", "--rounds", "1", "--laps", "100"];
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

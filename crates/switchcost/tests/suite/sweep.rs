//! Rings in several placements, and with registers in use.

use crate::common::{Home, allowed_cpus};
use testing::{Need, lacks, skip};

const FEW: [&str; 6] = ["--members", "2", "--laps", "100", "--rounds", "1"];

#[test]
fn a_sweep_has_a_labelled_row_for_each_placement_with_counted_switches() {
    let home = Home::new();
    let said = home.measure(&[&FEW[..], &["--placement", "sweep"]].concat());
    if allowed_cpus().len() < 2 {
        assert!(said.out.contains("may use one CPU only"), "{}", said.out);
        return skip(Need::TwoCpus, "one CPU only");
    }
    assert!(said.out.contains("placement sweep, no work"), "{}", said.out);
    let table = said.table();
    let rings: Vec<_> = table.iter().filter(|row| row[1] == "2").collect();
    assert!(rings.len() >= 2, "{}", said.out);
    assert!(rings[0][0].starts_with("same:"), "{}", said.out);
    for row in &rings[1..] {
        let (relation, cpus) = row[0].split_once(':').expect("a label");
        assert_eq!(cpus.split(',').count(), 2, "{row:?}");
        assert!(said.out.contains(&format!("{relation}: ")), "not explained: {}", said.out);
    }
    for row in rings {
        // From the end: rounds, share of clean slices, maybe a mark.
        let last = row.iter().rev().filter(|cell| *cell != "!").nth(2);
        let switches: f64 = last.expect("a column").parse().expect("switches per hop");
        assert!(switches > 0.5, "{row:?}");
    }
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]);
    assert_eq!(shown.table(), said.table());
}

#[test]
fn the_rows_of_a_sweep_say_their_placement_and_solo_rings_run_on_one_cpu() {
    let two = ["--members", "1,2,3", "--laps", "100", "--rounds", "1", "--placement", "sweep"];
    let home = Home::new();
    let rows = home.measure(&[&two[..], &["--csv", "-"]].concat()).rows();
    let mut labels: Vec<&str> = rows.of_members(2).map(|row| row.text("placement")).collect();
    labels.dedup();
    for row in rows.of_members(1) {
        assert_eq!(row.text("placement"), "same");
        assert_eq!(row.text("state"), "");
    }
    for members in [2, 3] {
        for row in rows.of_members(members).filter(|row| row.text("placement") != "same") {
            let (_, cpus) = row.text("placement").split_once(':').expect("a label");
            let mut listed: Vec<&str> = row.text("cpus").split(' ').collect();
            let mut of_label: Vec<&str> = cpus.split(',').collect();
            listed.sort_unstable();
            of_label.sort_unstable();
            assert_eq!(of_label, listed);
            // Empty where the kernel does not give them.
            let migrations = row.text("migrations");
            assert!(migrations.is_empty() || migrations == "0", "{row:?}");
        }
    }
    let record = home.run(&["runs", "export", "last", "--format", "json"]).json();
    let cases = record["cases"].as_array().expect("cases");
    let pairs = cases.iter().filter(|case| case["case"]["placement"]["mode"] == "pinned");
    for pair in pairs {
        assert!(pair["case"]["placement"]["relation"].is_string(), "{pair}");
        assert!(pair["ns_per_switch_above_solo"]["value"].is_number(), "{pair}");
    }
}

#[test]
fn links_that_need_one_cpu_are_left_out_of_the_pairs_with_a_word() {
    if lacks([Need::TwoCpus]) {
        return;
    }
    let said = Home::new()
        .measure(&[&FEW[..], &["--placement", "sweep", "--link", "pipe,yield"]].concat());
    assert!(said.out.contains("note: left out: placement "), "{}", said.out);
    let of_yield = said.table().into_iter().filter(|row| row[0] == "yield");
    assert!(
        of_yield.clone().count() == 2 && of_yield.clone().all(|row| row[1].starts_with("same:"))
    );
}

#[test]
fn a_sweep_is_for_rings() {
    let said = Home::new().run(&["cost", "--placement", "sweep"]);
    assert_eq!(said.code, Some(2));
    assert!(said.error().contains("--placement sweep"), "{}", said.err);
}

/// What this CPU has, by the kernel's word for it.
fn states_here() -> Vec<&'static str> {
    let text = std::fs::read_to_string("/proc/cpuinfo").expect("/proc/cpuinfo");
    let has = |flag: &str| text.split_whitespace().any(|word| word == flag);
    let of = [("sse", has("sse2")), ("avx", has("avx")), ("vzeroupper", has("avx"))];
    let of = of.into_iter().chain([("avx512", has("avx512f")), ("neon", has("asimd"))]);
    of.filter(|(_, is_here)| *is_here).map(|(name, _)| name).collect()
}

#[test]
fn all_states_have_a_row_and_those_that_the_cpu_lacks_a_word() {
    let home = Home::new();
    let few = ["--members", "2", "--laps", "100", "--rounds", "5"];
    let said = home.measure(&[&few[..], &["--state", "all"]].concat());
    let here = [vec!["none"], states_here()].concat();
    let lines = said.out.lines().skip_while(|line| !line.contains("above none"));
    let rows: Vec<Vec<&str>> = lines
        .skip(2)
        .take_while(|line| !line.trim().is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    let found: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(found, here, "{}", said.out);
    for state in ["sse", "avx", "vzeroupper", "avx512", "neon"] {
        let word = format!("note: left out: --state {state}: ");
        assert_eq!(said.out.contains(&word), !here.contains(&state), "{state}: {}", said.out);
    }
    let record = home.run(&["runs", "export", "last", "--format", "json"]).json();
    let cases = record["cases"].as_array().expect("cases");
    let has_cost = |case: &serde_json::Value| case["ns_per_switch_above_solo"].is_object();
    let is_without_state = |case: &serde_json::Value| case["case"]["state"] == "none";
    let none_has_cost = cases.iter().any(|case| is_without_state(case) && has_cost(case));
    for case in cases {
        let above = &case["ns_per_switch_above_none"];
        let is_ring = case["case"]["members"] == 2 && !is_without_state(case);
        // On a busy machine a ring may have no sample that waited for nothing.
        let is_compared = is_ring && has_cost(case) && none_has_cost;
        assert_eq!(above.is_object(), is_compared, "{case}");
        if is_compared {
            assert!(above["low"].as_f64() <= above["high"].as_f64(), "{above}");
            // A shared core leaves less than the five that were asked for.
            assert!(above["rounds"].as_u64().is_some_and(|n| (1..=5).contains(&n)), "{above}");
        }
    }
    let rows = home.run(&["runs", "export", "last", "--format", "csv"]).rows();
    for state in here {
        assert!(rows.of_members(1).any(|row| row.text("state") == state), "no solo ring: {state}");
        for row in rows.of_members(2).filter(|row| row.text("state") == state) {
            assert!(row.switches() * 100 >= row.number("hops") * 95, "{row:?}");
        }
    }
}

#[test]
fn states_that_cannot_be_are_usage_errors() {
    let lacking = ["avx512", "neon"].into_iter().find(|state| !states_here().contains(state));
    let lacking = lacking.expect("no CPU has both");
    for (args, words) in [
        (&["--state", lacking][..], &["--state", lacking, "this CPU has no"][..]),
        (&["--state", "mmx"], &["'mmx'", "sse", "or all"]),
        (&["--state", ""], &["''", "accepted"]),
        (&["--state", "sse", "--work", "64K"], &["--state", "--work"]),
    ] {
        let said = Home::new().run(&[&["ring", "--verbose", "--wide"], args].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        for word in words {
            assert!(said.error().contains(word), "no {word:?} in {}", said.err);
        }
    }
}

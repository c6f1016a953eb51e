//! `switchcost classic sweep`: Sloan's procedure, and what it leaves when it is cut short.

use crate::common::group::Group;
use crate::common::{Home, PROGRAM, Said, allowed_cpus, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use testing::{Need, skip};

const SMALL: [&str; 6] = ["classic", "sweep", "--laps", "200", "--counts", "2,3,8"];

/// Rows of the table: those that begin with a number and have seven columns.
fn table(text: &str) -> Vec<Vec<f64>> {
    let cells = |line: &str| -> Vec<f64> {
        let numbers = line.split_whitespace().map_while(|cell| cell.parse().ok());
        numbers.collect()
    };
    text.lines().map(cells).filter(|row| row.len() == 7).collect()
}

#[test]
fn the_table_has_sloans_columns_and_the_counted_switches() {
    let cpu = allowed_cpus().pop().expect("a CPU").to_string();
    let said = Home::new().run(&[&SMALL[..], &["--cpu", &cpu]].concat());
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].contains(", Linux "), "{}", said.out);
    assert_eq!(lines[1], format!("200 iterations (Sloan: 1000000), all on CPU {cpu}"));
    let names = "Real CPU User System Projected Switches";
    assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>().join(" "), names);
    let rows = table(&said.out);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [2.0, 3.0, 8.0]);
    for row in &rows {
        // Each figure is rounded to a millisecond.
        assert!((row[2] - row[3] - row[4]).abs() < 0.002, "{row:?}");
        assert!((row[5] - rows[0][2] * row[0] / 2.0).abs() < 0.0005 * row[0] + 0.001, "{row:?}");
        // On one CPU a hop is a switch or more.
        assert!(row[6] >= 1.0, "{row:?}");
    }
    assert!(said.out.lines().all(|line| line.len() <= 80), "{}", said.out);
    assert!(said.out.contains("CPU Seconds\n") && said.out.contains("Processes"), "{}", said.out);
    let (_, graph) = said.out.split_once("CPU time (").expect("a graph");
    let (graph, _) = graph.split_once("Processes").expect("its axis");
    assert_eq!(graph.chars().filter(|c| *c == 'o').count(), 3, "{}", said.out);
}

#[test]
fn without_a_ring_of_two_nothing_is_projected() {
    let said = Home::new().run(&["classic", "sweep", "--laps", "50", "--counts", "3"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let row = said.out.lines().find(|line| line.trim_start().starts_with("3 ")).expect("a row");
    assert_eq!(row.split_whitespace().nth(5), Some("-"), "{row}");
    assert!(!said.out.contains("CPU Seconds\n"), "one point is no graph: {}", said.out);
}

#[test]
fn rows_for_machines_are_all_that_standard_output_gets() {
    let said = Home::new().run(&[&SMALL[..], &["--csv", "-"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let rows = said.rows();
    let columns =
        "processes,laps,real_us,cpu_us,user_us,system_us,projected_us,voluntary,involuntary";
    assert_eq!(rows.columns.join(","), columns);
    assert_eq!(rows.rows.len(), 3);
    for row in &rows.rows {
        assert_eq!(row.number("cpu_us"), row.number("user_us") + row.number("system_us"));
        assert_eq!(row.number("laps"), 200);
    }
    assert_eq!(rows.rows[0].number("projected_us"), rows.rows[0].number("cpu_us"));
    assert_eq!(table(&said.err).len(), 3, "the table goes beside it: {}", said.err);
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let home = Home::new();
        // The last one has sixty times as much to do as the others together.
        let laps = ["classic", "sweep", "--laps", "4000", "--counts", "2,3,300"];
        let child = home.start(&laps);
        wait_for("a pipeline of 300", || (home.processes().len() >= 302).then_some(()));
        kill_process(Pid::from_child(&child), signal).expect("a living process");
        let said = Said::at_end(child);
        assert_eq!(said.code, Some(code), "{}", said.err);
        assert_eq!(said.err, "interrupted: 2 of 3 numbers of processes are measured\n");
        assert_eq!(table(&said.out).len(), 2, "{}", said.out);
        assert!(said.out.contains("CPU Seconds\n"), "{}", said.out);
        home.wait_until_alone();
    }
}

#[test]
fn a_killed_sweep_leaves_no_process() {
    let home = Home::new();
    let mut child = home.start(&["classic", "sweep", "--laps", "1000000", "--counts", "64"]);
    wait_for("a pipeline of 64", || (home.processes().len() >= 66).then_some(()));
    child.kill().expect("a living process");
    child.wait().expect("an end");
    home.wait_until_alone();
}

#[test]
fn a_ring_that_cannot_be_is_told_and_the_others_are_measured() {
    let Some(group) = Group::with_tasks(30) else {
        return skip(Need::ControlGroup, "none can be made");
    };
    let home = Home::new();
    let script = r#"echo $$ > "$GROUP/cgroup.procs" && exec "$0" "$@""#;
    let mut command = home.command("sh");
    command.args(["-c", script, PROGRAM, "classic", "sweep", "--laps", "50", "--counts", "2,64,3"]);
    let said = Said::of(command.env("GROUP", &group.0));
    assert_eq!(said.code, Some(1), "{said:?}");
    let refused = "error: pipeline 50 64: fork: Resource temporarily unavailable (fewer --counts; ";
    assert!(said.error().starts_with(refused), "{}", said.err);
    let sizes: Vec<f64> = table(&said.out).iter().map(|row| row[0]).collect();
    assert_eq!(sizes, [2.0, 3.0], "{}", said.out);
    home.wait_until_alone();
}

#[test]
fn what_cannot_be_swept_is_refused() {
    for (args, words) in [
        (&["--counts", "1"][..], "--counts 1: a pipeline has 2 processes or more"),
        (&["--counts", "2,zwei"], "'zwei': not a whole number"),
        (&["--laps", "0"], "accepted: whole numbers from 1 on"),
        (&["--cpu", "99999"], "--cpu 99999: "),
    ] {
        let said = Home::new().run(&[&["classic", "sweep"], args].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        assert!(said.error().contains(words), "{args:?}: {}", said.err);
    }
}

#[test]
fn getrusage_by_hand_does_not_take_the_sweeps_own_flag() {
    let said = Home::new().run(&["classic", "getrusage", "--parent", "1", "/bin/true"]);
    assert_eq!((said.code, &*said.out), (Some(127), ""));
    assert!(said.err.contains("--parent"), "{}", said.err);
}

#[test]
fn a_table_that_cannot_be_written_is_refused_before_anything_runs() {
    let said = Home::new().run(&[&SMALL[..], &["--csv", "/nonesuch/sweep.csv"]].concat());
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
    assert!(said.error().contains("/nonesuch"), "{}", said.err);
}

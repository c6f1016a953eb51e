//! `switchcost top` as a program. Needs root, and is skipped without.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::{Need, lacks};

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Said, catches_interrupts, wait_for};
use crate::exports::{Metrics, read_metrics};
use crate::trace::can_trace;

#[test]
fn updates_are_lines_of_json_that_follow_the_schema() {
    if !can_trace() {
        return;
    }
    let args = ["top", "--batch=json", "--interval", "0.1", "--updates", "3", "--by", "user"];
    let said = Home::new().run(&args);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let updates: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(updates.len(), 3);
    let schema = Schema::of("top-update");
    updates.iter().for_each(|update| schema.assert_holds(update));
    // Whoever runs this has switched.
    let has_root = |of: &Value| {
        of["rows"].as_array().is_some_and(|rows| rows.iter().any(|row| row["name"] == "root"))
    };
    assert!(updates.iter().all(has_root), "{updates:?}");
}

#[test]
fn text_for_scripts_is_filtered_sorted_and_ends_with_a_signal() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let mut command = home.command(PROGRAM);
    command.args([
        "top",
        "--batch",
        "--interval",
        "60",
        "--by",
        "thread",
        "--filter",
        "switchcost",
    ]);
    let child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    wait_for("its handler", || catches_interrupts(child.id()).then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.err), (Some(130), ""));
    let mut lines = said.out.lines();
    assert!(lines.next().is_some_and(|line| line.contains("switches a second")), "{}", said.out);
    assert!(said.out.contains("\nthis tracer: "), "{}", said.out);
    // There is no profile in this home.
    assert!(said.out.contains("\ncost: no stored cost profile"), "{}", said.out);
    let rows = said.out.lines().skip_while(|line| !line.starts_with("name ")).skip(1);
    assert!(
        rows.filter(|line| !line.is_empty() && *line != "this program:")
            .all(|line| line.starts_with("switchcost")),
        "{}",
        said.out
    );
    assert!(said.out.lines().all(|line| line.len() <= 80), "{}", said.out);
}

#[test]
fn a_terminal_is_taken_and_given_back() {
    if !can_trace() || lacks([Need::Program("script")]) {
        return;
    }
    let line = format!("stty cols 120 rows 30; {PROGRAM} top --interval 0.1 --updates 2; stty -a");
    let home = Home::new();
    let mut command = home.command("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let said = Said::of(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.out);
    let (enter, leave) = (said.out.find("\u{1b}[?1049h"), said.out.find("\u{1b}[?1049l"));
    assert!(enter.is_some() && enter < leave, "{}", said.out);
    assert!(
        said.out.contains("preempted by") && said.out.contains("\u{1b}[30;1Hq quit"),
        "{}",
        said.out
    );
    assert!(said.out.contains(" icanon") && said.out.contains(" echo "), "{}", said.out);
}

#[test]
fn it_ends_when_nobody_reads_any_longer() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let mut command = home.command(PROGRAM);
    command.args(["top", "--batch=json", "--interval", "0.1"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    drop(out);
    let status = wait_for("its end", || child.try_wait().expect("a child"));
    assert_eq!((status.code(), line.ends_with('\n')), (Some(0), true));
}

#[test]
fn without_a_terminal_it_says_what_to_type() {
    let said = Home::new().run(&["top"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""));
    assert!(said.error().contains("--batch prints the updates"), "{}", said.err);
}

/// Returns the sum of a counter over the lines that have this label.
fn total(metrics: &Metrics, name: &str, label: (&str, &str)) -> f64 {
    let mut total = 0.0;
    for (labels, value) in &metrics[name] {
        if labels.get(label.0).is_some_and(|found| found == label.1) {
            total += value;
        }
    }
    total
}

#[test]
fn counters_for_prometheus_grow_and_have_no_idle_task() {
    if !can_trace() {
        return;
    }
    let args =
        ["top", "--openmetrics", "-", "--interval", "0.2", "--updates", "3", "--series", "1"];
    let said = Home::new().run(&args);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let updates: Vec<Metrics> = said.out.split_inclusive("# EOF\n").map(read_metrics).collect();
    // The first one is from before anything was counted.
    assert_eq!(updates.len(), 4);
    let switches = "switchcost_cgroup_switches";
    assert_eq!(total(&updates[0], switches, ("kind", "voluntary")), 0.0);
    for pair in updates.windows(2) {
        for kind in ["voluntary", "involuntary"] {
            let (before, now) = (
                total(&pair[0], switches, ("kind", kind)),
                total(&pair[1], switches, ("kind", kind)),
            );
            assert!(now >= before, "{before} to {now}");
        }
    }
    let last = &updates[3];
    // This program has slept at the least.
    assert!(total(last, switches, ("kind", "voluntary")) >= 3.0);
    assert_eq!(last["switchcost_cgroups_in_other"].len(), 1);
    // One group, by its whole path, and the rest, by kind.
    let groups = last[switches].iter().map(|(labels, _)| labels["cgroup"].as_str());
    assert!(groups.clone().all(|group| group.starts_with('/') || group == "other"), "{}", said.out);
    assert_eq!(last[switches].len(), 4);
    assert_eq!(last["switchcost_cgroup_cpu_seconds"].len(), 2);
    assert!(last["switchcost_exporter_cpu_seconds"][0].1 > 0.0);
    assert_eq!(last["switchcost_lost_threads"][0].1, 0.0);
    assert!(!said.out.contains("swapper"), "{}", said.out);
}

#[test]
fn a_file_of_counters_is_replaced_and_nothing_is_left_beside_it() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let folder = home.path().join("collector");
    fs::create_dir(&folder).expect("a folder");
    let file = folder.join("top.prom");
    let path = file.to_str().expect("UTF-8").to_string();
    let mut command = home.command(PROGRAM);
    command.args(["top", "--openmetrics", &path, "--interval", "0.05"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a start");
    // A reader sees a whole file at any time.
    let read = || fs::read_to_string(&file).ok();
    let first = wait_for("a file", read);
    wait_for("another file", || {
        let text = read()?;
        read_metrics(&text);
        (text != first).then_some(())
    });
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.out, &*said.err), (Some(143), "", ""));
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
}

/// Starts a program that writes counters to a file in this folder.
fn exporter(home: &Home, file: &Path) -> Command {
    let mut command = home.command(PROGRAM);
    command.args(["top", "--openmetrics"]).arg(file).args(["--interval", "0.05"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_file_of_counters_can_be_read_by_others_whatever_the_mask_is() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let file = home.path().join("top.prom");
    let left = home.path().join(".switchcost-top");
    fs::write(&left, "of a killed program").expect("a file");
    let mut command = home.command("sh");
    let line = format!(
        "umask 077; exec {PROGRAM} top --openmetrics {} --updates 1 --interval 0.05",
        file.display()
    );
    let said = Said::of(command.args(["-c", &line]));
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!((mode & 0o777, left.exists()), (0o644, false));
}

#[test]
fn counters_end_with_their_terminal_and_leave_nothing() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let folder = home.path().join("collector");
    fs::create_dir(&folder).expect("a folder");
    let file = folder.join("top.prom");
    let child = exporter(&home, &file).spawn().expect("a start");
    wait_for("a file", || file.exists().then_some(()));
    kill_process(Pid::from_child(&child), Signal::HUP).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.out, &*said.err), (Some(129), "", ""));
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
}

#[test]
fn counters_end_when_nobody_reads_them_any_longer() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let mut child = exporter(&home, Path::new("-")).spawn().expect("a start");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    drop(out);
    let status = wait_for("its end", || child.try_wait().expect("a child"));
    assert_eq!((status.code(), line.starts_with("# TYPE")), (Some(0), true));
}

/// /dev/full is a disk without room.
#[test]
fn counters_are_given_up_after_several_updates_that_could_not_be_written() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let said = Said::at_end(exporter(&home, Path::new("/dev/full")).spawn().expect("a start"));
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{}", said.err);
    assert_eq!(said.err.matches("warning: cannot write").count(), 4, "{}", said.err);
    assert!(said.error().contains("5 times in a row"), "{}", said.err);
}

#[test]
fn counters_for_prometheus_are_by_control_group_alone() {
    let home = Home::new();
    for words in [&["--by", "process"][..], &["--batch"], &["--sort", "cpu"], &["--profile", "x"]] {
        let said = home.run(&[&["top", "--openmetrics", "x"][..], words].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{words:?}");
        assert!(said.error().contains("--openmetrics"), "{words:?}: {}", said.err);
    }
    let said = home.run(&["top", "--openmetrics", "/nonexistent/top.prom"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""));
    assert!(said.error().contains("--openmetrics /nonexistent/top.prom"), "{}", said.err);
}

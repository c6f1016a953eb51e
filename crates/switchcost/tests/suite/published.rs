//! Machines of today among the published ones: `data/modern.csv` and what is made of it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::Home;
use crate::snapshots::{said, unpacked};

fn modern() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/modern.csv")
}

/// The rows that a run has.
fn rows(home: &Home, run: &str) -> Vec<String> {
    let printed = said(home, &["runs", "export", &unpacked(home, run), "--format", "history"]).out;
    printed.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect()
}

/// What `measure --share` writes is this format; `data/add` reads the comment lines.
#[test]
fn a_file_to_share_says_what_measured_and_names_no_machine() {
    let home = Home::new();
    let path = home.path().join(unpacked(&home, "cost"));
    let text = fs::read_to_string(&path).expect("a run");
    let (header, samples) = text.split_once('\n').expect("lines");
    let mut header: Value = serde_json::from_str(header).expect("JSON");
    let secrets = ["the-host", "the-boot", "the-command-line", "the-command", "the-name"];
    header["header"]["host"] = secrets[0].into();
    header["header"]["machine"]["kernel"]["boot_id"] = secrets[1].into();
    header["header"]["machine"]["kernel"]["command_line"] = secrets[2].into();
    header["header"]["invocation"] = [secrets[3]].into();
    header["header"]["name"] = secrets[4].into();
    fs::write(&path, format!("{header}\n{samples}")).expect("a run");

    let printed = said(&home, &["runs", "export", "cost.jsonl", "--format", "history"]).out;
    let comments: Vec<&str> = printed.lines().map_while(|line| line.strip_prefix("# ")).collect();
    let keys: Vec<&str> =
        comments.iter().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert_eq!(keys, ["version", "commit", "profile", "experiment", "budget_s", "day"]);
    assert_eq!(printed, said_of_captured(), "the words of the header are not in it");
    for identity in [&secrets[..], &["T22:57:36", "20261123T225736938Z"]].concat() {
        assert!(!printed.contains(identity), "{identity}: {printed}");
    }
}

/// The captured run as it is.
fn said_of_captured() -> String {
    let home = Home::new();
    said(&home, &["runs", "export", &unpacked(&home, "cost"), "--format", "history"]).out
}

/// The runs that the file names are captured ones: no figure is from elsewhere.
#[test]
fn the_machines_of_the_captured_runs_have_the_figures_that_they_export() {
    let home = Home::new();
    let file = fs::read_to_string(modern()).expect("data/modern.csv");
    let (mut of_runs, mut head) = (Vec::new(), None);
    for run in ["ring-again", "cost", "clock"] {
        let mut all = rows(&home, run);
        head = Some(all.remove(0));
        assert!(all.len() > 2, "{run}: {all:?}");
        of_runs.extend(all);
    }
    let lines: Vec<&str> = file.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(Some(lines[0]), head.as_deref());
    let is_of_them =
        |line: &&&str| ["amd-epyc-25/17,", "amd-epyc-26/2,"].iter().any(|of| line.starts_with(of));
    let known: Vec<&&str> = lines.iter().filter(is_of_them).collect();
    assert_eq!(known.len(), of_runs.len());
    for (line, of_run) in known.into_iter().zip(&of_runs) {
        assert_eq!(line, of_run);
    }
    assert_eq!(rows(&home, "wakeup").len(), 1, "nothing there may be quoted");
}

#[test]
fn a_machine_of_today_is_listed_shown_compared_and_drawn() {
    let home = Home::new();
    let list = said(&home, &["runs", "list", "--history", "--wide"]).out;
    let row = list.lines().find(|line| line.starts_with("amd-epyc-25/17 ")).expect("a machine");
    for words in ["2026", "AMD EPYC family 25 model 17 guest, 2 CPUs", "1.51 us a switch"] {
        assert!(row.contains(words), "{row}");
    }
    let one = said(&home, &["runs", "show", "history:amd-epyc-25/17"]).out;
    for words in ["1.51 us   1.48 to 1.54", "ring of 2, fifo ", "1 MiB each, rmw by 128 B, fifo "] {
        assert!(one.contains(words), "no {words}: {one}");
    }
    let other = said(&home, &["compare", "history:pentium", "history:amd-epyc-26/2"]).out;
    assert!(other.contains("getrusage") && other.contains("457 ns"), "{other}");

    let [ring, cost] = ["ring-again", "cost"].map(|name| unpacked(&home, name));
    let compared = said(&home, &["compare", "history:amd-epyc-25/17", &ring]).out;
    assert!(compared.contains("ring of 2") && compared.contains("not changed"), "{compared}");
    let report = home.path().join("report.html");
    for run in [&ring, &cost] {
        let to = report.display().to_string();
        said(&home, &["report", run, "history:amd-epyc-25/17", "-o", &to]);
        let html = fs::read_to_string(&report).expect("a report");
        assert!(html.contains("amd-epyc-25/17, 2026"), "{run}");
        fs::remove_file(&report).expect("a report");
    }
}

#[test]
fn a_switch_is_drawn_by_year_with_every_machine_that_has_a_ring_of_two() {
    let home = Home::new();
    let drawn = home.run(&["runs", "list", "--history", "--svg", "-"]);
    assert_eq!((drawn.code, &*drawn.err), (Some(0), ""));
    assert!(drawn.out.starts_with("<svg ") && drawn.out.ends_with("</svg>\n"));
    let file = home.path().join("years.svg").display().to_string();
    assert_eq!(home.run(&["runs", "list", "--history", "--svg", &file]).code, Some(0));
    assert_eq!(fs::read_to_string(file).expect("a picture"), drawn.out);
    assert_eq!(home.run(&["runs", "list", "--svg", "-"]).code, Some(2), "it is of all");
}

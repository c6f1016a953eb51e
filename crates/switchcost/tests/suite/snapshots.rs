//! What is printed of stored runs, to the letter: `tests/captured` has runs of this machine and
//! what is printed of them. With UPDATE_SNAPSHOTS=1 it is written anew, for `git diff` to show what
//! has changed.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use crate::common::{Home, PROGRAM, Said};

/// Runs of ring, cost, response, clock and trace, each with what it is called in `tests/captured`.
pub const RUNS: [&str; 10] = [
    "ring",
    "ring-again",
    "links",
    "cost",
    "response",
    "calls",
    "wakeup",
    "clock",
    "clock-not-seen",
    "trace",
];

fn captured(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured").join(name)
}

/// Unpacks a run, and gives its file in the home.
pub fn unpacked(home: &Home, name: &str) -> String {
    let packed = fs::File::open(captured(&format!("{name}.jsonl.gz"))).expect("a captured run");
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("a gzip file");
    let file = format!("{name}.jsonl");
    fs::write(home.path().join(&file), text).expect("a file");
    file
}

/// What is printed in the folder of the unpacked runs.
pub fn said(home: &Home, args: &[&str]) -> Said {
    let mut command = home.command(PROGRAM);
    command.args(args).current_dir(home.path()).env_remove("COLUMNS");
    let said = Said::of(&mut command);
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
    said
}

/// The first line that differs tells more than both texts.
fn assert_as_captured(name: &str, printed: &str) {
    let path = captured(&format!("{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, printed).expect("a file");
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    for (number, (line, wanted)) in printed.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(line, wanted, "{name}, line {}", number + 1);
    }
    assert_eq!(printed.lines().count(), wanted.lines().count(), "{name}: lines\n{printed}");
}

#[test]
fn runs_are_shown_as_captured_in_eighty_columns() {
    let home = Home::new();
    for name in RUNS {
        let said = said(&home, &["runs", "show", &unpacked(&home, name)]);
        let widest = said.out.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{name}: {widest:?} columns");
        assert_as_captured(name, &said.out);
    }
}

/// In cycles, too, what may be quoted; with dashes what may not.
#[test]
fn wide_tables_are_as_captured() {
    let home = Home::new();
    for name in ["ring", "cost", "response", "calls", "clock", "clock-not-seen"] {
        let said = said(&home, &["runs", "show", &unpacked(&home, name), "--wide"]);
        assert_as_captured(&format!("{name}-wide"), &said.out);
    }
}

#[test]
fn comparisons_and_tables_are_as_captured() {
    let home = Home::new();
    let [one, two, links, cost, calls, trace, trace_again] =
        ["ring", "ring-again", "links", "cost", "calls", "trace", "trace-again"]
            .map(|name| unpacked(&home, name));
    for (name, args) in [
        ("compare", &["compare", &*one, &*two][..]),
        ("compare-several", &["compare", &*one, &*two, &*links]),
        ("compare-markdown", &["compare", &*one, &*two, "--markdown"]),
        ("compare-traces", &["compare", &*trace, &*trace_again, "--verbose"]),
        ("trace-summary-csv", &["runs", "export", &*trace, "--format", "summary-csv"]),
        ("trace-openmetrics", &["runs", "export", &*trace, "--format", "openmetrics"]),
        ("trace-markdown", &["runs", "export", &*trace, "--format", "markdown"]),
        ("summary-csv", &["runs", "export", &*one, "--format", "summary-csv"]),
        ("markdown", &["runs", "export", &*one, "--format", "markdown"]),
        ("go-bench", &["runs", "export", &*one, "--format", "go-bench"]),
        ("openmetrics", &["runs", "export", &*one, "--format", "openmetrics"]),
        ("bmf", &["runs", "export", &*one, "--format", "bmf"]),
        ("gab", &["runs", "export", &*one, "--format", "gab"]),
        ("otava", &["runs", "export", &*one, &*two, "--format", "otava"]),
        ("history", &["runs", "export", &*cost, "--format", "history"]),
        ("calls-openmetrics", &["runs", "export", &*calls, "--format", "openmetrics"]),
    ] {
        assert_as_captured(name, &said(&home, args).out);
    }
}

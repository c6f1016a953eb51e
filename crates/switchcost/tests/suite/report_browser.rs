//! Reports of real runs in a real browser: `tests/browser/report.mjs` opens them in Chromium.
//!
//! Needs Chromium, Node and `npm ci` in `tests/browser`; without them it is skipped, unless
//! `SWITCHCOST_NEED_BROWSER=1` says that they must be there. Screenshots go to the folder that
//! `SWITCHCOST_SCREENSHOTS` names, else below `target`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Home;
use crate::common::stored::{captured_on_one_machine, stored_run};
use testing::{Need, skip};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const MOST_BYTES: u64 = 1_000_000;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser")
}

fn in_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The browser, or what is missing.
fn browser() -> Result<PathBuf, String> {
    let browser = BROWSERS.iter().find_map(|name| in_path(name));
    let browser = browser.ok_or_else(|| format!("no browser ({})", BROWSERS.join(", ")))?;
    in_path("node").ok_or("no node")?;
    let packages = ["playwright-core", "axe-core"];
    match packages.iter().all(|name| scripts().join("node_modules").join(name).is_dir()) {
        true => Ok(browser),
        false => Err(format!("no {}: npm ci in tests/browser", packages.join(" or no "))),
    }
}

/// Runs a script of `tests/browser` in the browser, if there is one; prints what it saw.
fn passes(script: &str, args: impl FnOnce() -> Vec<PathBuf>) {
    let browser = match browser() {
        Ok(browser) => browser,
        Err(why) if env::var_os("SWITCHCOST_NEED_BROWSER").is_some() => panic!("{why}"),
        Err(why) => return skip(Need::Browser, why),
    };
    let mut node = Command::new("node");
    node.arg(scripts().join(script)).arg(browser).args(args());
    let said = node.output().expect("node starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&said.stdout));
    assert!(said.status.success(), "{}", text(&said.stderr));
}

/// A stored run, then small runs of every instrument; rounds and laps bound them, not time. On a
/// busy machine the small ones may have no cost to draw; the stored one always has.
fn measure(home: &Home) -> Vec<String> {
    let small: [&[&str]; 7] = [
        &["ring", "--members", "2,4,8,16,32", "--rounds", "6", "--laps", "50"],
        &["ring", "--members", "2,4,8,16,32", "--rounds", "6", "--laps", "60"],
        &["ring", "--members", "2", "--link", "all", "--rounds", "5", "--laps", "50"],
        &[
            "cost",
            "--array",
            "4K,16K,64K,256K",
            "--stride",
            "64,1K",
            "--rounds",
            "5",
            "--laps",
            "5",
        ],
        &["response", "--rounds", "2"],
        &["clock", "overhead", "--rounds", "5", "--trials", "50"],
        &[
            "classic",
            "experiment",
            "primes",
            "--rounds",
            "5",
            "--trials",
            "7",
            "--primes",
            "100,300,1000",
        ],
    ];
    for args in small {
        let said = home.run(&[args, &["--quiet", "--budget", "600s"]].concat());
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
    }
    let measured = home.run_files().into_iter().map(|path| path.display().to_string());
    [stored_run(home, "stored.jsonl", |_| {})].into_iter().chain(measured).collect()
}

fn screenshots() -> PathBuf {
    let below_target = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    let folder = env::var_os("SWITCHCOST_SCREENSHOTS").map_or_else(below_target, PathBuf::from);
    fs::create_dir_all(&folder).expect("a folder for screenshots");
    folder
}

/// The report of these runs in the folder of screenshots.
fn report(home: &Home, name: &str, runs: &[String], most_bytes: u64) -> PathBuf {
    let file = screenshots().join(name);
    let to = file.display().to_string();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let said = home.run(&[&["report"], &runs[..], &["-o", &to]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let bytes = fs::metadata(&file).expect("a report").len();
    println!("{to}: {bytes} bytes");
    assert!(bytes < most_bytes, "{bytes} bytes");
    file
}

#[test]
fn a_report_of_real_runs_is_drawn_whole_and_answers_its_reader() {
    passes("report.mjs", || {
        let home = Home::new();
        let runs = measure(&home);
        vec![report(&home, "report.html", &runs, MOST_BYTES), screenshots()]
    });
}

/// Reports of captured runs that are kept as references: what they show is stored below
/// `tests/browser/references`.
const REFERENCES: [(&str, &[&str]); 9] = [
    ("members", &["ring"]),
    ("working-set", &["cost"]),
    ("comparison", &["ring", "ring-again"]),
    ("machine", &["ring", "cost", "response", "clock"]),
    ("links", &["links"]),
    ("response", &["response"]),
    ("calls", &["calls"]),
    ("wake-ups", &["wakeup"]),
    ("clocks", &["clock"]),
];

/// Runs of the fixtures, of a machine that was never quiet.
const ROUGH_REFERENCES: [(&str, &str); 4] = [
    ("parts", "explain"),
    ("measure", "measure"),
    ("malloc", "clock-malloc"),
    ("ticks", "clock-sampling"),
];

/// Records of what is no stored run: commands, and calls.
const RECORDS: [&str; 2] = ["run", "profile"];

/// A file that a folder of the tests has.
fn kept(folder: &str, name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    folder.join(name).display().to_string()
}

/// The report of twelve runs whose cost and kernel change once.
fn trend() -> PathBuf {
    let home = Home::new();
    crate::trend::twelve(&home, 1040);
    let file = screenshots().join("trend.html");
    let to = file.display().to_string();
    let said = home.run(&["trend", "--quiet", "--report", &to]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    file
}

/// Of runs that are not laid over each other.
const MOST_BYTES_OF_FEW: u64 = 400_000;

#[test]
fn reports_of_fixed_runs_show_what_is_stored_of_them() {
    passes("references.mjs", || {
        let home = Home::new();
        let drawn = |(name, runs): &(&str, &[&str])| {
            let runs = captured_on_one_machine(&home, runs);
            report(&home, &format!("{name}.html"), &runs, MOST_BYTES_OF_FEW)
        };
        let rough = |(name, run): &(&str, &str)| {
            let run = kept("fixtures", &format!("{run}.jsonl"));
            report(&home, &format!("{name}.html"), &[run], MOST_BYTES_OF_FEW)
        };
        let published = ["history:xeon-2.0".to_string(), "history:sun-4/280".to_string()];
        let beside = [captured_on_one_machine(&home, &["ring"]), published[..1].to_vec()].concat();
        let of_history = [
            report(&home, "published.html", &published, MOST_BYTES_OF_FEW),
            report(&home, "beside-published.html", &beside, MOST_BYTES_OF_FEW),
        ];
        let record = |name: &str| {
            let record = kept("captured", &format!("{name}.json"));
            report(&home, &format!("{name}.html"), &[record], MOST_BYTES_OF_FEW)
        };
        let records = RECORDS.map(record);
        let reports = REFERENCES.iter().map(drawn);
        let reports = reports.chain(ROUGH_REFERENCES.iter().map(rough)).chain(of_history);
        let reports = reports.chain(records).chain([trend()]);
        [scripts().join("references"), screenshots()].into_iter().chain(reports).collect()
    });
}

/// A gap of 100 ms, as a busy machine has them: the last label of its axis is wider than the room
/// beside it on a phone.
#[test]
fn the_last_label_of_an_axis_stays_on_the_page() {
    const RUN: &str = include_str!("../fixtures/response-gaps.jsonl");
    const GAP: &str = "[4837170,19567262,";
    const LONGER: &str = "[4837170,160000000,";
    passes("references.mjs", || {
        let home = Home::new();
        assert!(RUN.contains(GAP));
        let run = home.path().join("gaps.jsonl");
        fs::write(&run, RUN.replace(GAP, LONGER)).expect("a run");
        let runs = [run.display().to_string()];
        let report = report(&home, "live-gaps.html", &runs, MOST_BYTES_OF_FEW);
        vec![scripts().join("references"), screenshots(), report]
    });
}

/// A traced command with threads that wait for each other and preempt each other.
#[test]
fn a_trace_is_drawn_whole() {
    if !crate::trace::can_trace() {
        return;
    }
    passes("references.mjs", || {
        let home = Home::new();
        let file = screenshots().join("live-trace.html");
        let to = file.display().to_string();
        let script = "for i in 1 2 3; do (for k in 1 2 3 4; do /bin/true; done) & done; wait";
        let said = home.run(&["trace", "--report", &to, "--", "sh", "-c", script]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(fs::metadata(&file).expect("a report").len() < MOST_BYTES_OF_FEW);
        vec![scripts().join("references"), screenshots(), file]
    });
}

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
use crate::common::stored::stored_run;
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
    match scripts().join("node_modules/playwright-core").is_dir() {
        true => Ok(browser),
        false => Err("no playwright-core: npm ci in tests/browser".to_string()),
    }
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
        &["clock", "primes", "--rounds", "5", "--trials", "7", "--primes", "100,300,1000"],
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
    env::var_os("SWITCHCOST_SCREENSHOTS").map_or_else(below_target, PathBuf::from)
}

#[test]
fn a_report_of_real_runs_is_drawn_whole_and_answers_its_reader() {
    let browser = match browser() {
        Ok(browser) => browser,
        Err(why) if env::var_os("SWITCHCOST_NEED_BROWSER").is_some() => panic!("{why}"),
        Err(why) => return skip(Need::Browser, why),
    };
    let home = Home::new();
    let runs = measure(&home);
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let folder = screenshots();
    fs::create_dir_all(&folder).expect("a folder for screenshots");
    let report = folder.join("report.html").display().to_string();
    let said = home.run(&[&["report"], &runs[..], &["-o", &report]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let bytes = fs::metadata(&report).expect("a report").len();
    println!("{report}: {bytes} bytes");
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
    let mut node = Command::new("node");
    node.arg(scripts().join("report.mjs")).arg(browser).arg(&report).arg(&folder);
    let said = node.output().expect("node starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&said.stdout));
    assert!(said.status.success(), "{}", text(&said.stderr));
}

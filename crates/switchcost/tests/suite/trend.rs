//! The stored runs as a record: changes, what they are put down to, gates.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::common::schema::Schema;
use crate::common::stored::full_speed_run;
use crate::common::{Home, Said};

/// Stores a run of the day, with times of so many thousandths and one sample a round.
fn store(home: &Home, day: usize, permille: u64, change: impl Fn(&mut Value)) {
    fs::create_dir_all(home.runs_folder()).expect("a folder");
    let name = format!("202611{day:02}T120000-ring");
    full_speed_run(home, &format!("switchcost/runs/{name}.jsonl"), |line| {
        if let Some(header) = line.get_mut("header") {
            header["run"] = name.clone().into();
            header["started"] = format!("2026-11-{day:02}T12:00:00Z").into();
            change(header);
        }
        if let Some(sample) = line.get_mut("sample") {
            // A hop of 1 us alone and of 3 us in company, in each of ten slices.
            let hops = sample["hops"].as_u64().expect("hops");
            let hop_ns = if sample["case"] == 0 { 1000 } else { 3000 };
            let elapsed_ns = hops * hop_ns * permille / 1000;
            sample["elapsed_ns"] = elapsed_ns.into();
            sample["slices"]["elapsed_ns"] = vec![elapsed_ns / 10; 10].into();
        }
    });
    let file = home.runs_folder().join(format!("{name}.jsonl"));
    let text = fs::read_to_string(&file).expect("a run");
    let is_kept = |line: &&str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        line.pointer("/sample/sample").is_none_or(|number| *number == 0)
    };
    let kept = text.lines().filter(is_kept).map(|line| format!("{line}\n"));
    fs::write(file, kept.collect::<String>()).expect("a file");
}

fn set_kernel(header: &mut Value, release: &str) {
    header["machine"]["kernel"]["release"] = release.into();
}

/// Twelve runs that scatter by 0.2 %; from the seventh on the kernel is another, and costs so many
/// thousandths. They are made once; each home has a copy of its own.
pub fn twelve(home: &Home, permille: u64) {
    type Made = BTreeMap<u64, (Home, Vec<PathBuf>)>;
    static MADE: Mutex<Made> = Mutex::new(Made::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, files) = made.entry(permille).or_insert_with(|| {
        let home = Home::new();
        make_twelve(&home, permille);
        let files = home.run_files();
        (home, files)
    });
    fs::create_dir_all(home.runs_folder()).expect("a folder");
    for file in files {
        let name = file.file_name().expect("a name");
        fs::copy(&*file, home.runs_folder().join(name)).expect("a copy");
    }
}

fn make_twelve(home: &Home, permille: u64) {
    for day in 1..=12 {
        let off = [0, 3, 1, 4, 2][day % 5];
        let (level, release) = if day < 7 { (1000, "6.12.3") } else { (permille, "6.12.9") };
        store(home, day, level + off, |header| set_kernel(header, release));
    }
}

fn trend(home: &Home, args: &[&str]) -> Said {
    home.run(&[&["trend"], args].concat())
}

fn json(said: &Said) -> Value {
    let value = said.json();
    Schema::of("trend").assert_holds(&value);
    value
}

fn first(said: &Said) -> &str {
    said.out.lines().next().unwrap_or_default()
}

#[test]
fn a_change_is_put_down_to_the_kernel_that_came_with_it() {
    let home = Home::new();
    twelve(&home, 1050);
    let said = trend(&home, &[]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    assert!(first(&said).starts_with("A switch is 5.0 % ("), "{}", said.out);
    let text = said.out.replace("\n  ", " ");
    assert!(text.contains(": kernel 6.12.3 -> 6.12.9\n"), "{text}");
    let narrow = home.run_in_eighty_columns(&["trend"]).out;
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    let found = json(&trend(&home, &["--json", "-"]));
    assert_eq!(found["runs"], 12);
    assert_eq!(found["changes"][0]["at"], 6);
    assert_eq!(found["changes"][0]["machine"][0]["field"], "kernel.release");
    assert_eq!(found["points"].as_array().map(Vec::len), Some(12));
    // The same runs, the same answer.
    assert_eq!(trend(&home, &[]).out, said.out);
    let all = trend(&home, &["--verbose", "--plot"]);
    assert!(all.out.contains("20261107T120000-ring  <"), "{}", all.out);
    assert!(all.out.contains("Cost over time"), "{}", all.out);
    let quiet = trend(&home, &["--quiet"]);
    assert_eq!((quiet.code, &*quiet.out, &*quiet.err), (Some(0), "", ""));
    let markdown = trend(&home, &["--markdown"]);
    assert!(first(&markdown).starts_with("**A switch is 5.0 %"), "{}", markdown.out);
    assert_eq!(markdown.out.lines().filter(|line| line.starts_with("| 2026-")).count(), 2);
}

#[test]
fn runs_and_cases_are_chosen_by_words() {
    let home = Home::new();
    twelve(&home, 1050);
    let found = |args: &[&str]| json(&trend(&home, &[args, &["--json", "-"]].concat()));
    assert_eq!(found(&["ring of 4"])["case"]["title"], "ring of 4");
    assert_eq!(found(&["members=4", "pipe"])["case"]["title"], "ring of 4");
    let some = found(&["2026110"]);
    assert_eq!((&some["runs"], &some["case"]["title"]), (&9.into(), &"ring of 2".into()));
    let folder = format!("{}/", home.runs_folder().display());
    assert_eq!(found(&[&folder, "ring of 4"])["runs"], 12);
    let file = home.run_files()[0].display().to_string();
    let one = found(&[&file, &file]);
    assert_eq!((&one["runs"], one.get("detectable")), (&1.into(), None));
    let hop = found(&["--cost", "hop"]);
    assert_eq!(hop["of"], "ns_per_hop");
    let kernels = found(&["--by", "kernel"]);
    assert_eq!(kernels["points"].as_array().map(Vec::len), Some(2));
    assert_eq!(kernels["changes"][0]["at"], 1);
    assert_eq!(found(&["--by", "build"])["points"].as_array().map(Vec::len), Some(1));
    let said = trend(&home, &["--by", "kernel", "--plot"]);
    assert!(said.out.contains("6.12.9  <"), "{}", said.out);
}

#[test]
fn a_gate_has_the_exit_codes_of_a_comparison() {
    let (slower, faster) = (Home::new(), Home::new());
    twelve(&slower, 1050);
    twelve(&faster, 950);
    for (home, args, code, last) in [
        (&slower, &[][..], 0, ""),
        (&slower, &["--fail-above", "3%"], 1, "FAIL: "),
        (&slower, &["--fail-above", "10%"], 0, "PASS: "),
        (&faster, &["--fail-above", "3%"], 0, "PASS: "),
        // No change so small would be seen.
        (&faster, &["--fail-above", "0.01%"], 3, "UNDECIDED: "),
        (&faster, &["--fail-above", "0.01%", "--allow-undecided"], 0, "UNDECIDED: "),
        (&slower, &["2026110", "--fail-above", "3%", "--json", "-", "--quiet"], 1, ""),
        (&slower, &["--fail-above", "0%"], 2, ""),
        (&slower, &["--allow-undecided"], 2, ""),
        (&slower, &["--json", "/nonesuch/trend.json"], 2, ""),
    ] {
        let said = trend(home, args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.out.contains(last), "{args:?}: {}", said.out);
    }
    let few = trend(&slower, &["2026111", "--fail-above", "3%"]);
    assert_eq!(few.code, Some(3), "{few:?}");
    assert!(few.out.contains("3 usable runs so far"), "{}", few.out);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let home = Home::new();
    let empty = trend(&home, &[]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert!(empty.error().contains("there is no stored run in "), "{}", empty.err);
    twelve(&home, 1000);
    for (args, words) in [
        (&["nonesuch"][..], "no run, case or label is called 'nonesuch'"),
        (&["ring of 3"], "did you mean 'ring of "),
        (&["./nonesuch/"], "no run file or folder is called './nonesuch/'"),
        (&["nonesuch.jsonl"], "no run file or folder is called"),
        (&["members=2", "members=4"], "no case of the stored runs is all of these"),
    ] {
        let said = trend(&home, args);
        assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
        assert!(said.error().contains(words), "{args:?}: {}", said.err);
    }
}

#[test]
fn what_does_not_count_is_told() {
    let home = Home::new();
    twelve(&home, 1000);
    let files = home.run_files();
    let cut = |file: &std::path::Path| {
        let text = fs::read_to_string(file).expect("a run");
        let end = text.rfind("{\"end\"").expect("an end");
        fs::write(file, &text[..end]).expect("a file");
    };
    cut(&files[2]);
    fs::write(&files[3], "nonsense\n").expect("a file");
    let said = trend(&home, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(first(&said).contains("no change in 10 runs"), "{}", said.out);
    let text = said.out.replace("\n  ", " ");
    let left = "2 runs not used: 1 (interrupted or not finished), 1 (cannot be read)";
    assert!(text.contains(left), "{text}");
    let verbose = trend(&home, &["--verbose"]);
    assert!(verbose.out.contains("cannot be read: 20261104T120000-ring"), "{}", verbose.out);
    let one = files[3].display().to_string();
    assert_eq!(trend(&home, &[&one]).code, Some(2));
}

/// Where nothing can be read, that is what is wrong, and not that there is no case.
#[test]
fn files_that_cannot_be_read_are_told_first() {
    let home = Home::new();
    fs::create_dir_all(home.runs_folder()).expect("a folder");
    for name in ["20261101T120000-ring", "20261102T120000-ring"] {
        fs::write(home.runs_folder().join(format!("{name}.jsonl")), "{}\n").expect("a file");
    }
    let said = trend(&home, &[]);
    assert_eq!((said.code, &*said.out), (Some(2), ""));
    let error = said.error();
    assert!(error.contains("20261101T120000-ring.jsonl"), "{error}");
    assert!(error.ends_with(" (and 1 more cannot be read)"), "{error}");
}

#[test]
fn the_page_has_the_answer_and_a_mark_at_each_change() {
    let home = Home::new();
    twelve(&home, 1040);
    let said = trend(&home, &["--report", "-", "--fail-above", "3%"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.out.starts_with("<!doctype html>"), "{}", said.out);
    let (_, chart) = said.out.split_once("<figure id=\"trend\"").expect("a chart");
    let (chart, _) = chart.split_once("</figure>").expect("its end");
    assert!(chart.contains(">2026-11-07</text>"), "{chart}");
    assert!(said.out.contains("cost since 2026-11-07, over that before"));
    assert!(said.out.contains("<p class=\"lead\">FAIL: "), "the verdict is told");
    // The table is for people, and standard output has the page.
    assert!(said.err.contains("since"), "{}", said.err);
}

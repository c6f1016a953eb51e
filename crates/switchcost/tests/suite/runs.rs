//! Stored runs: listed, shown, exported, resumed and removed, also when their files are damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Said, lines_of, order_of};
use serde_json::{Value, json};

const SMALL: [&str; 6] = ["--members", "2", "--rounds", "2", "--laps", "200"];

/// One round more than there are.
const GO_ON: [&str; 9] =
    ["runs", "resume", "last", "--verbose", "--wide", "--budget", "600s", "--rounds", "1"];

/// The smallest run that there is.
const SMALLEST: [&str; 6] = ["--members", "2", "--rounds", "1", "--laps", "9"];

/// A home with such a run. It is measured once: each test has a copy of its own.
fn stored() -> (Home, PathBuf) {
    static MEASURED: OnceLock<(Home, PathBuf)> = OnceLock::new();
    let (_, measured) = MEASURED.get_or_init(|| {
        let home = Home::new();
        home.measure(&SMALL);
        let file = home.run_file();
        (home, file)
    });
    let home = Home::new();
    fs::create_dir_all(home.runs_folder()).expect("a folder");
    let file = home.runs_folder().join(measured.file_name().expect("a name"));
    fs::copy(measured, &file).expect("a copy");
    (home, file)
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).expect("a file")
}

/// Puts `lines` in place of what the file held.
fn rewrite(file: &Path, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(file, text).expect("a file to write to");
}

fn kinds(file: &Path) -> Vec<String> {
    let kind = |line: &Value| line.as_object().and_then(|o| o.keys().next().cloned());
    lines_of(file).iter().map(|line| kind(line).expect("a kind of line")).collect()
}

/// The round of each ring, in the order in which they were measured.
fn rounds(file: &Path) -> Vec<u64> {
    order_of(file).iter().map(|(round, _)| *round).collect()
}

/// Fails with one line that holds `words`; nothing is printed.
fn assert_fails(home: &Home, args: &[&str], words: &str) {
    assert_ends(home, args, 1, words);
}

/// The same where what was typed names nothing.
fn assert_refused(home: &Home, args: &[&str], words: &str) {
    assert_ends(home, args, 2, words);
}

fn assert_ends(home: &Home, args: &[&str], code: i32, words: &str) {
    let said = home.run(args);
    assert_eq!((said.code, &*said.out), (Some(code), ""), "{args:?}: {said:?}");
    assert!(said.error().contains(words), "{args:?}: no {words:?} in {}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

fn listed(home: &Home) -> Vec<String> {
    let said = home.run(&["runs", "list"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let row = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    // A legend of figures stands below an empty line.
    let rows = said.out.lines().take_while(|line| !line.is_empty());
    rows.filter(|line| !line.starts_with("--")).map(row).collect()
}

fn name(file: &Path) -> String {
    file.file_stem().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn a_run_file_is_a_header_then_samples_then_competing_tasks_an_end_and_its_result() {
    let (_home, file) = stored();
    let mut order = kinds(&file);
    order.dedup();
    assert_eq!(order, ["header", "sample", "competing_tasks", "end", "result"]);
    assert_eq!(rounds(&file), [0, 0, 1, 1], "two rings in each of two rounds");
}

#[test]
fn every_line_follows_its_schema() {
    let schema = Schema::of("run-line");
    let (home, file) = stored();
    assert_eq!(home.run(&GO_ON).code, Some(0));
    let lines = lines_of(&file);
    assert!(lines.iter().any(|line| line.get("resumed").is_some()));
    lines.iter().for_each(|line| schema.assert_holds(line));
    assert!(!schema.holds(&json!({"sample": {"case": "first"}})));
}

#[test]
fn a_run_is_shown_as_it_was_printed() {
    // Five rounds have intervals, which come from seeded resampling.
    for rounds in ["1", "5"] {
        let home = Home::new();
        let args = ["--members", "2,4", "--rounds", rounds, "--laps", "100"];
        let printed = home.measure(&args);
        let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]);
        assert_eq!((shown.code, &*shown.err), (Some(0), ""));
        assert_eq!(shown.out, printed.out);
    }
}

#[test]
fn a_run_is_exported_as_it_was_written() {
    let home = Home::new();
    let written = |name: &str| home.path().join(name).display().to_string();
    let (json, csv) = (written("record.json"), written("samples.csv"));
    home.measure(&[&SMALL[..], &["--json", &json, "--csv", &csv]].concat());
    let as_json = home.run(&["runs", "export", "last"]);
    assert_eq!((as_json.code, as_json.out), (Some(0), text(Path::new(&json))));
    let as_csv = home.run(&["runs", "export", "last", "--format", "csv"]);
    assert_eq!((as_csv.code, &as_csv.out), (Some(0), &text(Path::new(&csv))));
    let again = written("again.csv");
    let said = home.run(&["runs", "export", "last", "--format", "csv", "--output", &again]);
    assert_eq!((said.code, &*said.out), (Some(0), ""));
    assert_eq!(text(Path::new(&again)), as_csv.out);
}

/// Of a run of rings as the file is read, of one with trials too by round and case.
#[test]
fn csv_is_to_the_byte_what_it_was() {
    let home = Home::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for name in ["ring", "response"] {
        let run = folder.join(format!("fixtures/{name}.jsonl")).display().to_string();
        let said = home.run(&["runs", "export", &run, "--format", "csv"]);
        let captured = text(&folder.join(format!("captured/{name}.csv")));
        assert_eq!((said.code, said.out), (Some(0), captured), "{name}");
    }
}

#[test]
fn a_run_without_samples_has_a_line_of_columns_in_csv() {
    let home = Home::new();
    let file = home.path().join("empty.jsonl");
    let header = crate::common::stored::RUN.lines().next().expect("a header");
    fs::write(&file, format!("{header}\n")).expect("a file");
    let file = file.display().to_string();
    let said = home.run(&["runs", "export", &file, "--format", "csv"]);
    assert_eq!((said.code, said.out.lines().count()), (Some(0), 1), "{}", said.out);
    assert!(said.out.starts_with("experiment,case,round,sample,members,"), "{}", said.out);
}

#[test]
fn a_run_is_found_by_name_by_the_start_of_one_and_by_file() {
    let (home, file) = stored();
    let name = name(&file);
    let path = file.display().to_string();
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]).out;
    for wanted in [&*name, &name[..12], &*path] {
        let said = home.run(&["runs", "show", wanted, "--verbose", "--wide"]);
        assert_eq!((said.code, &said.out), (Some(0), &shown), "{wanted}");
    }
    // A file need not be in the folder, nor be called as ours are.
    let elsewhere = home.path().join("elsewhere.txt");
    fs::copy(&file, &elsewhere).expect("a copy");
    let elsewhere = elsewhere.display().to_string();
    let said = home.run(&["runs", "show", &elsewhere, "--verbose", "--wide"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.out, shown.replace(&path, &elsewhere));
}

#[test]
fn a_run_is_found_by_the_name_that_it_was_given_and_by_its_place() {
    let home = Home::new();
    for name in ["base", "base", "bare"] {
        home.measure(&[&SMALLEST[..], &["--name", name]].concat());
    }
    let [first, second, third] = &home.run_files()[..] else { panic!("three runs") };
    for (wanted, file) in [
        ("last", third),
        ("last~0", third),
        ("last~1", second),
        ("last~2", first),
        ("base", second),
        ("bas", second),
        ("bar", third),
    ] {
        let said = home.run(&["runs", "show", wanted, "--verbose"]);
        assert!(said.out.contains(&file.display().to_string()), "{wanted}: {said:?}");
    }
    assert_refused(&home, &["runs", "show", "last~3"], "there are 3 stored runs");
    assert_refused(&home, &["runs", "show", "ba"], "names: base, bare");
    // Two runs have that name, and each is told with its own.
    assert!(listed(&home)[1].contains(" base (20"), "{:?}", listed(&home));
    assert!(listed(&home)[3].contains(" bare ring "), "{:?}", listed(&home));
    // A file of the folder where the program is started must not stand for a run.
    let planted = home.path().join("last");
    fs::copy(first, &planted).expect("a copy");
    let said = Said::of(home.command(PROGRAM).current_dir(home.path()).args([
        "runs",
        "show",
        "last",
        "--verbose",
    ]));
    assert!(said.out.contains(&third.display().to_string()), "{said:?}");
}

#[test]
fn what_identifies_the_machine_is_left_out_if_asked() {
    let header = |more: &[&str]| {
        let home = Home::new();
        home.measure(&[&SMALLEST[..], more].concat());
        lines_of(&home.run_file())[0]["header"].clone()
    };
    let named = header(&[]);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert_eq!(named["host"], Value::from(host.clone()));
    let bare = header(&["--anonymous"]);
    assert_eq!((bare.get("host"), &bare["invocation"]), (None, &json!([])));
    let why = json!({"unknown": "left out (--anonymous)"});
    assert_eq!(bare["machine"]["kernel"]["boot_id"], why);
    assert_eq!(bare["machine"]["kernel"]["command_line"], why);
    let quoted = Value::from(host).to_string();
    assert!(!bare.to_string().contains(&quoted), "{bare}");
}

#[test]
fn a_name_that_is_none_and_one_that_is_several() {
    let (home, file) = stored();
    assert_refused(&home, &["runs", "show", "nonesuch"], "called 'nonesuch'");
    assert_refused(&home, &["runs", "show", ""], "called ''");
    assert_refused(&home, &["runs", "export", "history:sun-4/280"], "published figures are no run");
    fs::copy(&file, file.with_file_name("20260101-a.jsonl")).expect("a copy");
    fs::copy(&file, file.with_file_name("20260101-b.jsonl")).expect("a copy");
    for command in ["show", "export", "resume", "remove"] {
        let said = home.run(&["runs", command, "20260101"]);
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{command}: {said:?}");
        assert!(said.error().contains("'20260101' is the start of several names"), "{}", said.err);
    }
    assert_eq!(home.run_files().len(), 3);
    // The whole of a name is that name, also where it is the start of another.
    fs::copy(&file, file.with_file_name("20260101-ab.jsonl")).expect("a copy");
    assert_eq!(home.run(&["runs", "show", "20260101-a"]).code, Some(0));
}

/// The whole of a name stands for all runs that have it; its start, and `last`, for one.
#[test]
fn the_whole_of_a_name_stands_for_all_runs_of_it() {
    let home = Home::new();
    for _ in 0..4 {
        home.measure(&[&SMALLEST[..], &["--name", "last-week"]].concat());
    }
    for (wanted, left) in [("last", 3), ("last-w", 2), ("last-week", 0)] {
        let said = home.run(&["runs", "remove", wanted]);
        assert_eq!((said.code, home.run_files().len()), (Some(0), left), "{wanted}: {said:?}");
    }
}

#[test]
fn a_run_on_both_sides_is_told_and_refused_by_a_gate() {
    let home = Home::new();
    for _ in 0..2 {
        home.measure(&[&SMALLEST[..], &["--name", "weekly"]].concat());
    }
    let said = home.run(&["compare", "weekly", "last"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("is a run of both weekly and last"), "{}", said.err);
    let gate = home.run(&["compare", "weekly", "last", "--fail-above", "3%"]);
    assert_eq!((gate.code, &*gate.out), (Some(2), ""), "{gate:?}");
    assert!(gate.error().contains("is a run of both weekly and last"), "{}", gate.err);
}

#[test]
fn without_any_run() {
    let home = Home::new();
    let none = format!("no runs in {}", home.runs_folder().display());
    assert_eq!(listed(&home), [none]);
    for command in ["show", "export", "resume", "remove"] {
        assert_refused(&home, &["runs", command, "last"], "there is no stored run in ");
    }
    assert!(!home.runs_folder().exists(), "looking makes no folder");
}

#[test]
fn runs_are_listed_oldest_first_with_what_became_of_them() {
    let (home, file) = stored();
    let old = file.with_file_name("20200101T000000Z-ring-1.jsonl");
    let mut lines = lines_of(&file);
    // As a kill leaves it: neither who else was there nor an end.
    lines.truncate(lines.len() - 3);
    lines[0]["header"]["started"] = "2020-01-01T00:00:00Z".into();
    lines[0]["header"]["host"] = "elsewhere".into();
    rewrite(&old, &lines);
    fs::write(file.with_file_name("20210101-bad.jsonl"), "not a run\n").expect("a file");
    fs::write(file.with_file_name("notes.txt"), "not ours\n").expect("a file");
    let listed = listed(&home);
    assert_eq!(listed[0], "age name command result host");
    let command = "ring --verbose --wide --budget 600s --members 2 --rounds 2 --laps 200";
    let old = format!(" days 20200101T000000Z {command} killed (resume) elsewhere");
    assert!(listed[1].ends_with(&old), "{}", listed[1]);
    assert!(listed[2].starts_with("- 20210101-bad - "), "{}", listed[2]);
    assert!(listed[2].contains("is not a run file"), "{}", listed[2]);
    let short = &name(&file)[.."20261123T155012".len()];
    assert!(listed[3].contains(&format!(" {short} {command} ")), "{}", listed[3]);
    // Of two rounds on a very busy machine only the hop may be resolved.
    let results = [" a switch (2) ", " a hop (2) "];
    assert!(results.iter().any(|result| listed[3].contains(result)), "{}", listed[3]);
    assert_eq!(listed.len(), 4);
}

/// What the session before came to is not what became of the run.
#[test]
fn a_run_whose_later_session_was_killed_is_listed_as_killed() {
    let (home, file) = stored();
    assert!(!listed(&home)[1].contains("killed"), "{:?}", listed(&home));
    let mut lines = lines_of(&file);
    lines.push(json!({"resumed": {
        "at": lines[0]["header"]["started"],
        "spent_ns": 1,
        "stopping": lines[0]["header"]["plan"]["stopping"],
        "differences": [],
    }}));
    rewrite(&file, &lines);
    assert!(listed(&home)[1].contains(" killed (resume)"), "{:?}", listed(&home));
}

#[test]
fn a_file_without_an_end_goes_on_where_it_stopped() {
    let (home, file) = stored();
    let mut lines = lines_of(&file);
    // Neither its end nor its result.
    lines.truncate(lines.len() - 2);
    rewrite(&file, &lines);
    let before = text(&file);
    assert!(
        home.run(&["runs", "show", "last", "--verbose", "--wide"])
            .out
            .contains("stopped: the run was killed")
    );
    let resumed = home.run(&GO_ON);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(text(&file).starts_with(&before), "what there was has changed");
    let kinds = kinds(&file);
    assert_eq!(kinds[lines.len()], "resumed");
    assert_eq!(kinds.last().map(String::as_str), Some("result"));
    assert_eq!(rounds(&file), [0, 0, 1, 1, 2, 2]);
    for row in resumed.table() {
        assert_eq!(row.last().map(String::as_str), Some("3"), "{row:?}");
    }
}

#[test]
fn a_line_that_was_cut_off_is_told_and_cut_away_on_resuming() {
    for lost in ["sample", "end"] {
        let (home, file) = stored();
        let mut lines = lines_of(&file);
        let last = lines.iter().rposition(|line| line.get(lost).is_some()).expect("a line");
        let broken = lines[last].to_string();
        lines.truncate(last);
        rewrite(&file, &lines);
        let whole = text(&file);
        let half = &broken[..broken.len() / 2];
        fs::write(&file, format!("{whole}{half}")).expect("a file to write to");

        let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]);
        assert_eq!(shown.code, Some(0), "{}", shown.err);
        let words = format!("line {} is cut off after {} bytes", last + 1, half.len());
        assert!(shown.out.contains(&words), "no {words:?} in {}", shown.out);
        assert_eq!(shown.sizes(), ["1", "2"]);
        assert!(listed(&home)[1].contains("killed (resume)"));

        let resumed = home.run(&GO_ON);
        assert_eq!(resumed.code, Some(0), "{}", resumed.err);
        let after = text(&file);
        assert!(after.starts_with(&whole), "what was whole has changed");
        assert!(after[whole.len()..].starts_with("{\"resumed\":"), "{}", &after[whole.len()..]);
        assert_eq!(kinds(&file).last().map(String::as_str), Some("result"));
        assert!(
            !home.run(&["runs", "show", "last", "--verbose", "--wide"]).out.contains("cut off")
        );
    }
}

#[test]
fn a_character_that_was_cut_off_is_no_reason_to_fail() {
    let (home, file) = stored();
    let mut bytes = text(&file).into_bytes();
    bytes.extend(b"{\"failure\":{\"case\":1,\"round\":0,\"message\":\"\xc3");
    fs::write(&file, bytes).expect("a file to write to");
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("is cut off after"), "{}", shown.out);
}

#[test]
fn a_complete_run_can_be_made_more_precise() {
    let (home, file) = stored();
    let resumed = home.run(&GO_ON);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert_eq!(rounds(&file), [0, 0, 1, 1, 2, 2]);
    assert_eq!(kinds(&file).iter().filter(|kind| *kind == "end").count(), 2);
    let quiet = home.run(&[&GO_ON[..], &["--quiet"]].concat());
    assert_eq!((quiet.code, &*quiet.out, &*quiet.err), (Some(0), "", ""));
    assert_eq!(rounds(&file), [0, 0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn a_run_whose_rounds_are_done_asks_for_more() {
    let (home, file) = stored();
    let before = text(&file);
    let said = home.run(&["runs", "resume", "last"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
    assert!(said.error().contains("all 2 rounds are done"), "{}", said.err);
    assert!(said.error().contains("--rounds"), "{}", said.err);
    assert_eq!(text(&file), before);
}

#[test]
fn a_run_whose_budget_is_spent_asks_for_more() {
    let home = Home::new();
    let args = ["ring", "--members", "2", "--laps", "200", "--budget", "1ms"];
    assert_eq!(home.run(&args).code, Some(0));
    let before = text(&home.run_file());
    let said = home.run(&["runs", "resume", "last"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
    assert!(said.error().contains("the run's budget of 1ms is spent"), "{}", said.err);
    assert!(said.error().contains("--budget"), "{}", said.err);
    assert_eq!(text(&home.run_file()), before);
}

#[test]
fn a_resumed_run_is_shown_as_it_was_printed() {
    let (home, _file) = stored();
    let printed = home.run(&GO_ON);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert_eq!(home.run(&["runs", "show", "last", "--verbose", "--wide"]).out, printed.out);
}

#[test]
fn another_precision_is_kept_with_the_run() {
    let (home, _file) = stored();
    let printed = home.run(&[&GO_ON[..], &["--precision", "50%"]].concat());
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert!(printed.out.contains("asked: +-50.0 %"), "{}", printed.out);
    assert_eq!(home.run(&["runs", "show", "last", "--verbose", "--wide"]).out, printed.out);
}

#[test]
fn a_failure_that_is_made_good_by_resuming_is_over() {
    let (home, file) = stored();
    let mut lines = lines_of(&file);
    let last = lines.len() - 2;
    lines.pop();
    lines[last] = json!({"failure": {"case": 1, "round": 1, "message": "out of everything"}});
    rewrite(&file, &lines);
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]).out;
    assert!(shown.contains("failed in some rounds: ring of 2: out of everything"), "{shown}");
    let printed = home.run(&GO_ON);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert!(!printed.out.contains("out of everything"), "{}", printed.out);
    assert_eq!(home.run(&["runs", "show", "last", "--verbose", "--wide"]).out, printed.out);
}

const EVERY_COMMAND: [&str; 4] = ["show", "export", "resume", "remove"];

#[test]
fn a_newer_file_is_left_alone() {
    let (home, file) = stored();
    let mut lines = lines_of(&file);
    lines[0]["header"]["schema"] = 999.into();
    lines[0]["header"]["plan"] = "of a later time".into();
    rewrite(&file, &lines);
    let before = text(&file);
    for command in EVERY_COMMAND {
        let words = "has schema version 999, this program reads up to 2";
        assert_fails(&home, &["runs", command, "last"], words);
    }
    assert_eq!(text(&file), before);
    assert!(listed(&home)[1].contains("has schema version 999"));
}

#[test]
fn what_is_not_a_run_file_is_left_alone() {
    let garbage: Vec<u8> = (0..=255).cycle().take(5000).collect();
    for (bytes, words) in [
        (&b"shopping: milk, eggs\n"[..], "is not a run file"),
        (b"shopping: milk,\neggs", "is not a run file"),
        (b"no line end at all", "is not a run file"),
        (b"{\"header\":{\"schema\":\"one\"}}\n", "is not a run file"),
        (b"{\"header\":{\"schema\":1}}\n", "is not a run file"),
        (b"{\"sample\":{}}\n", "is not a run file"),
        (b"[]\n{}\n", "is not a run file"),
        (b"", "is empty: not a run file"),
        (b"\n\n\n", "is empty: not a run file"),
        (&garbage, "is not a run file"),
    ] {
        let home = Home::new();
        let file = home.path().join("precious");
        fs::write(&file, bytes).expect("a file");
        let wanted = file.display().to_string();
        for command in EVERY_COMMAND {
            assert_fails(&home, &["runs", command, &wanted], words);
            let left = fs::read(&file).expect("the file is still there");
            assert_eq!(left, bytes, "{command} changed {}", String::from_utf8_lossy(bytes));
        }
    }
}

#[test]
fn a_folder_is_not_a_run_file() {
    let (home, file) = stored();
    let wanted = home.path().display().to_string();
    for command in EVERY_COMMAND {
        assert_refused(&home, &["runs", command, &wanted], &format!("called '{wanted}'"));
    }
    fs::create_dir(file.with_file_name("30000101-folder.jsonl")).expect("a folder");
    let said = home.run(&["runs", "list"]);
    // The figure of a busy machine has a legend below an empty line.
    let rows = said.out.lines().take_while(|line| !line.is_empty()).count();
    assert_eq!((said.code, rows), (Some(0), 3), "{}", said.out);
    assert!(
        said.err.contains("30000101-folder.jsonl is not a file and is ignored"),
        "{}",
        said.err
    );
    assert_eq!(home.run(&["runs", "show", "last"]).code, Some(0));
}

#[test]
fn samples_of_no_case_are_told() {
    let (home, file) = stored();
    let mut lines = lines_of(&file);
    let mut foreign = lines[1].clone();
    foreign["sample"]["case"] = 99.into();
    lines.insert(2, foreign);
    rewrite(&file, &lines);
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]);
    assert!(shown.out.contains("1 samples of cases not in the plan"), "{}", shown.out);
}

#[test]
fn runs_are_removed_all_or_none() {
    let (home, file) = stored();
    let second = file.with_file_name("20260101-second.jsonl");
    fs::copy(&file, &second).expect("a copy");
    assert_refused(&home, &["runs", "remove", "20260101", "nonesuch"], "called 'nonesuch'");
    assert_eq!(home.run_files().len(), 2);
    let said = home.run(&["runs", "remove", "20260101", &name(&file)]);
    let told = [&second, &file].map(|file| format!("removed {}\n", file.display())).concat();
    assert_eq!((said.code, &*said.out, &*said.err), (Some(0), &*told, ""));
    assert_eq!(home.run_files().len(), 0);
}

#[test]
fn a_file_that_is_not_ours_among_those_to_remove_keeps_all() {
    let (home, file) = stored();
    let notes = home.path().join("notes.txt");
    fs::write(&notes, "not ours\n").expect("a file");
    let notes = notes.display().to_string();
    assert_fails(&home, &["runs", "remove", &name(&file), &notes], "is not a run file");
    assert_eq!((home.run_files().len(), text(Path::new(&notes))), (1, "not ours\n".into()));
}

#[test]
fn a_run_that_goes_on_is_neither_resumed_nor_removed() {
    let home = Home::new();
    // More precise than it can be: it goes on.
    let long = ["--laps", "200", "--budget", "600s", "--precision", "0.01%"];
    let mut child = home.start(&[&["ring", "--members", "2"], &long[..]].concat());
    let file = home.wait_for_sample();
    assert!(listed(&home)[1].contains(" running "), "{:?}", listed(&home));
    assert_fails(&home, &["runs", "remove", "last"], "is still running");
    assert_fails(&home, &["runs", "resume", "last"], "is being written by another switchcost");
    assert!(file.exists());
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
    assert!(listed(&home)[1].contains("killed (resume)"));
    assert_eq!(home.run(&["runs", "remove", "last"]).code, Some(0));
}

#[test]
fn a_run_of_a_cpu_that_is_not_here_is_not_resumed() {
    let (home, file) = stored();
    let mut lines = lines_of(&file);
    for case in lines[0]["header"]["plan"]["cases"].as_array_mut().expect("cases") {
        case["placement"] = json!({"mode": "same", "cpu": 9999});
    }
    rewrite(&file, &lines);
    let before = text(&file);
    let said: Said = home.run(&GO_ON);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{said:?}");
    assert!(said.error().contains("CPU 9999 is not present"), "{}", said.err);
    assert_eq!(text(&file), before);
}

#[test]
fn a_run_of_another_machine_is_resumed_with_a_warning() {
    let (home, file) = stored();
    let mut lines = lines_of(&file);
    let release = &mut lines[0]["header"]["machine"]["kernel"]["release"];
    assert!(release.to_string().contains('.'), "{release}");
    match release.as_object_mut().and_then(|known| known.values_mut().next()) {
        Some(value) => *value = "2.4.20".into(),
        None => *release = "2.4.20".into(),
    }
    rewrite(&file, &lines);
    let said = home.run(&GO_ON);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("warning: the machine differs from the run's: "), "{}", said.err);
    assert!(said.err.contains("kernel.release: \"2.4.20\" then"), "{}", said.err);
}

/// A run that is resumed does what its plan says: one with a number out of range is refused, without a
/// panic.
#[test]
fn a_plan_with_a_number_out_of_range_is_refused() {
    type Change = (&'static str, Value, &'static str);
    let changes: [Change; 8] = [
        (
            "/header/plan/stopping/confidence",
            json!(2.0),
            "confidence is 2 (accepted: 0.5 to 0.9999)",
        ),
        ("/header/plan/stopping/confidence", json!(-1e308), "accepted: 0.5 to 0.9999"),
        ("/header/plan/stopping/precision", json!(-1), "precision is -1 (accepted: 0 to 1)"),
        ("/header/plan/cases/1/members", json!(0), "case 1: members is 0 (accepted: 1 to 4194304)"),
        ("/header/plan/cases", json!([]), "number of cases is 0"),
        (
            "/header/plan/cases/0/placement",
            json!({"mode": "pinned", "cpus": []}),
            "number of CPUs is 0",
        ),
        ("/header/plan/batching/laps", json!(0), "laps is 0"),
        (
            "/header/plan/cases/0/work",
            json!({"bytes": 8, "stride_bytes": 8, "op": "read", "walk": "chase"}),
            "number of elements is 0",
        ),
    ];
    for (field, value, told) in changes {
        let home = Home::new();
        let run = crate::common::stored::stored_run(&home, "run.jsonl", |line| {
            if let Some(part) = line.pointer_mut(field) {
                *part = value.clone();
            }
        });
        for command in [&["resume", &*run, "--rounds", "1", "--budget", "9s"][..], &["show", &*run]]
        {
            assert_fails(&home, &[&["runs"], command].concat(), told);
        }
    }
}

/// Such a file was sent by somebody: resuming it would have their library loaded.
#[test]
fn a_run_file_has_no_library_loaded() {
    let fixture = include_str!("../fixtures/clock-malloc.jsonl");
    let home = Home::new();
    let proof = home.path().join("library.so");
    let library = proof.display().to_string();
    let named = fixture.replacen("\"preload\":null", &format!("\"preload\":\"{library}\""), 1);
    assert_ne!(named, fixture);
    let path = home.path().join("run.jsonl");
    let args = ["runs", "resume", path.to_str().expect("UTF-8"), "--rounds", "1", "--budget", "9s"];
    fs::write(&path, &named).expect("a file");
    for more in [&[][..], &["--preload", "other.so"]] {
        let said = home.run(&[&args, more].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{said:?}");
        assert!(said.error().contains(&format!("resume with --preload {library}")), "{}", said.err);
    }
    assert_eq!(text(&path), named, "nothing was added");
    // Asked for, it is tried: there is none of that name.
    let said = home.run(&[&args[..], &["--preload", &library]].concat());
    assert!(said.err.contains(&library) && !said.err.contains("if you trust it"), "{said:?}");
}

#[test]
fn what_is_no_file_in_the_folder_is_passed_over() {
    let (home, file) = stored();
    let folder = home.runs_folder();
    let fifo = folder.join("20990101-fifo.jsonl");
    assert!(home.command("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    std::os::unix::fs::symlink("/dev/zero", folder.join("20990101-zero.jsonl")).expect("a link");
    std::os::unix::fs::symlink("nowhere", folder.join("20990101-none.jsonl")).expect("a link");
    std::os::unix::fs::symlink(&file, folder.join("20990101-run.jsonl")).expect("a link");
    let path = file.display().to_string();
    let args = [&["ring", "--quiet", "--budget", "600s"], &SMALLEST[..]].concat();
    for args in [&["runs", "list"][..], &["runs", "show", "last", "--verbose"], &args] {
        let said = home.run(args);
        assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
        assert!(args[0] == "ring" || args[1] == "list" || said.out.contains(&path), "{}", said.out);
        for name in ["fifo", "zero", "none", "run"] {
            let told = format!("20990101-{name}.jsonl is not a file and is ignored");
            assert!(said.err.contains(&told), "{args:?}: no {told} in {}", said.err);
        }
    }
}

#[test]
fn a_file_that_is_larger_than_any_run_is_not_read() {
    let (home, file) = stored();
    let hole = home.runs_folder().join("20990101-hole.jsonl");
    fs::File::create(&hole).and_then(|hole| hole.set_len(1 << 40)).expect("a file of holes");
    let said = home.run(&["runs", "list"]);
    assert!(said.out.contains("a run has at most 256"), "{said:?}");
    let other = &name(&file)[.."20261123T155012".len()];
    assert!(said.out.contains(other), "the other is listed: {said:?}");
    for args in [&["runs", "show", "20990101"][..], &["report", "20990101", "-o", "-"]] {
        let said = home.run(args);
        assert_eq!(said.code, Some(1), "{args:?}: {said:?}");
        assert!(said.err.contains("it has 1048576 MiB"), "{args:?}: {}", said.err);
    }
    let said = home.run(&["runs", "remove", "20990101-hole"]);
    assert!(said.code == Some(0) || said.err.contains("1048576 MiB"), "{said:?}");
    let path = file.display().to_string();
    assert_eq!(home.run(&["runs", "show", &path]).code, Some(0));
}

/// Values of secrets are stored nowhere and shown nowhere, also of files that older programs have
/// written.
#[test]
fn secrets_of_command_lines_are_masked() {
    let home = Home::new();
    let prefix = "env TOKEN=hidden-1 DB_PASSWORD=hidden-2";
    let json = home.path().join("out.json").display().to_string();
    let ab = ["compare", "--ab", prefix, "env", "--members", "2", "--rounds", "1", "--laps", "9"];
    let said = home.run(&[&ab[..], &["--json", &json]].concat());
    assert!(!said.out.is_empty(), "{said:?}");
    let command = ["sh", "-c", "exit 0", "x", "--password", "hidden-3", "API_KEY=hidden-4"];
    let run = home.run(&[&["run", "--json", &json, "--no-estimate", "--"][..], &command].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    let stored = home.run_files().iter().map(|file| text(file)).collect::<String>();
    let all =
        [&*said.out, &said.err, &run.out, &run.err, &text(Path::new(&json)), &stored].concat();
    assert!(stored.contains(r#""prefix":["env","words:"#), "{stored}");
    assert!(!all.contains("hidden-"), "{all}");
    // As an older program has stored it.
    let old = crate::common::stored::stored_run(&home, "old.jsonl", |line| {
        if let Some(words) = line.pointer_mut("/header/invocation") {
            *words = json!(["switchcost", "--password", "hidden-5"]);
        }
    });
    fs::copy(&old, home.runs_folder().join("old.jsonl")).expect("a copy");
    for args in [&["runs", "export", &*old][..], &["report", &old, "-o", "-"], &["runs", "list"]] {
        let said = home.run(args);
        assert!(said.code == Some(0) && !said.out.contains("hidden-"), "{args:?}: {said:?}");
    }
}

/// Of commands their programs and hashes, wherever a record names them; all with --store-command.
#[test]
fn records_keep_no_words_of_commands_unless_asked() {
    let home = Home::new();
    let json = home.path().join("out.json").display().to_string();
    let run = |words: &[&str]| {
        let args = [&["run", "--no-estimate", "-n", "2", "--json", &json][..], words].concat();
        (home.run(&args), text(Path::new(&json)))
    };
    let lines = ["true my-1", "false my-2", "P=my-3 true", "-s", "true my-4", "-p", "true my-5"];
    let gate = [&["--fail-above", "5%", "-c", "true my-6"], &lines[..]].concat();
    let behind = ["--vs", "true my-2", "--", "true", "my-1"];
    let values = ["--command-name", "mine", "-L", "n", "1,2", "true my-{n}"];
    for words in [&gate[..], &behind, &values] {
        let (said, stored) = run(words);
        let is_told = ["my-1", "mine"].iter().any(|words| said.err.contains(words));
        assert!(is_told && !stored.contains("my-"), "{said:?} {stored}");
        assert!(stored.contains("true words:"), "{stored}");
        let (_, stored) = run(&[&["--store-command"], words].concat());
        assert!(stored.contains("my-1"), "{stored}");
    }
    let (_, stored) = run(&values);
    assert!(stored.contains("mine"), "what somebody has called it is kept: {stored}");
    let args = ["profile", "--malloc", "--json", &json, "--", "sh", "-c", "exit 0", "my-1"];
    let said = home.run(&args);
    let stored = text(Path::new(&json));
    assert!(stored.contains("words:") && !stored.contains("my-1"), "{said:?}");
    let prefixes = ["chrt -o 0", "nice -n 0 env A=my-1"];
    let ring = ["--members", "2", "--rounds", "1", "--laps", "9"];
    let ab = |more: &[&str]| {
        let before = home.run_files();
        let said = home.run(&[&["compare", "--ab"], &prefixes[..], &ring, more].concat());
        assert_eq!(said.err.matches("error").count(), 0, "{said:?}");
        let new = home.run_files().into_iter().filter(|file| !before.contains(file));
        new.map(|file| text(&file)).collect::<String>()
    };
    let stored = ab(&[]);
    assert!(
        stored.contains(r#""prefix":["chrt","-o","0"]"#) && !stored.contains("my-1"),
        "{stored}"
    );
    assert!(ab(&["--store-command"]).contains(r#""prefix":["nice","-n","0","env","A=my-1"]"#));
}

#[test]
fn anonymous_leaves_out_the_command_line_of_the_command() {
    let home = Home::new();
    let json = home.path().join("out.json").display().to_string();
    let to = ["--anonymous", "--json", &json];
    let run = [&["run", "--no-estimate"], &to[..], &["--", "sh", "-c", "exit 0 # my-own"]].concat();
    let two =
        [&["run", "--no-estimate", "-n", "2", "--vs", "true my-own"], &to[..], &["--", "true"]]
            .concat();
    let cost = [&["cost"], &to[..], &["--", "sh", "-c", "exit 0 # my-own"]].concat();
    let ab =
        ["compare", "--ab", "env A=my-own", "", "--members", "2", "--rounds", "1", "--laps", "9"];
    for args in [run, two, cost, [&ab[..], &to].concat()] {
        let said = home.run(&args);
        let stored = home.run_files().iter().map(|file| text(file)).collect::<String>();
        let all = [said.out, said.err, text(Path::new(&json)), stored].concat();
        assert!(all.contains("command") && !all.contains("my-own"), "{args:?}: {all}");
    }
}

//! Comparisons: of stored runs, with published figures, and of two settings in one session.

use std::fs;
use std::path::Path;

use crate::common::schema::Schema;
use crate::common::stored::{full_speed_run, lengthen, measured, stored_run};
use crate::common::{Home, Said, lines_of};
use serde_json::Value;

/// The stored run with every sample so many hundredths longer, in a file of the home.
fn run_at(home: &Home, percent: u64) -> String {
    full_speed_run(home, &format!("run-{percent}.jsonl"), |line| lengthen(line, percent))
}

fn compared(home: &Home, args: &[&str]) -> Said {
    home.run(&[&["compare"], args].concat())
}

fn json(said: &Said) -> Value {
    assert!(said.code == Some(0) || said.code == Some(1), "{}", said.err);
    let value = said.json();
    Schema::of("comparison").assert_holds(&value);
    value
}

fn answers(found: &Value) -> Vec<&str> {
    let changes = found["changes"].as_array().expect("changes");
    changes.iter().map(|change| change["answer"].as_str().expect("an answer")).collect()
}

#[test]
fn only_slower_beyond_the_limit_and_only_with_a_gate_is_exit_1() {
    let home = Home::new();
    let (base, slow) = (run_at(&home, 100), run_at(&home, 300));
    let same = full_speed_run(&home, "same.jsonl", |_| {});
    for (args, code) in [
        (&[&*base, &*slow][..], 0),
        (&[&*base, &*slow, "--fail-above", "3%"], 1),
        (&[&*base, &*slow, "--fail-above", "3%", "--quiet"], 1),
        (&[&*slow, &*base, "--fail-above", "3%"], 0),
        // Six rounds do not settle a difference of 3 %.
        (&[&*base, &*same, "--fail-above", "3%"], 3),
        (&[&*base, &*same, "--fail-above", "3%", "--allow-undecided"], 0),
        (&[&*base, &*slow, "--fail-above", "3%", "--allow-undecided"], 1),
        (&[&*base, &*base, "--allow-undecided"], 2),
        (&[&*base, "nonesuch", "--fail-above", "3%"], 2),
        (&[&*base, "history:nonesuch"], 2),
        // No interval, so nothing that a gate could go by.
        (&["history:sun-4/280", "history:sun-4/280"], 0),
        (&["history:sun-4/280", "history:sun-4/280", "--fail-above", "3%"], 3),
        (&[&*base], 2),
        (&[&*base, &*slow, "--fail-above", "0%"], 2),
        (&[&*base, &*slow, "--csv", "-"], 2),
        (&[&*base, &*slow, "--json", "/nonesuch/changes.json"], 2),
    ] {
        let said = compared(&home, args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
    }
    let quiet = compared(&home, &[&base, &slow, "--quiet"]);
    assert_eq!((&*quiet.out, &*quiet.err), ("", ""));
}

#[test]
fn the_record_follows_its_schema_and_says_what_the_table_says() {
    let home = Home::new();
    let (base, slow) = (run_at(&home, 100), run_at(&home, 300));
    let found = json(&compared(&home, &[&base, &slow, "--json", "-"]));
    assert_eq!(answers(&found), ["changed"; 3]);
    let ratio = found["changes"][0]["ratio"]["value"].as_f64().expect("a ratio");
    assert!((ratio - 3.0).abs() < 1e-9, "{ratio}");
    assert_eq!(found["changes"][1]["of"], "ns_per_switch_above_solo");
    let table = compared(&home, &[&base, &slow]);
    assert!(
        table.out.contains("run-300 is slower than run-100 in all 3 cases; most in ring of"),
        "{}",
        table.out
    );
    assert_eq!(table.out.matches("slower  !").count(), 3, "{}", table.out);
    // The same runs, the same answer.
    assert_eq!(compared(&home, &[&base, &slow]).out, table.out);
    let hop = json(&compared(&home, &[&base, &slow, "--cost", "hop", "--json", "-"]));
    assert_eq!(hop["changes"][1]["of"], "ns_per_hop");
}

#[test]
fn machines_that_differ_are_listed_first_and_warned_of() {
    let home = Home::new();
    let base = run_at(&home, 100);
    let other = stored_run(&home, "other.jsonl", |line| {
        if let Some(machine) = line.pointer_mut("/header/machine") {
            machine["kernel"]["release"] = "2.4.20".into();
            machine["cpu"]["models"][0]["name"] = "another".into();
        }
    });
    let said = compared(&home, &[&base, &other, "--verbose"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let place =
        |word: &str| said.out.find(word).unwrap_or_else(|| panic!("no {word}: {}", said.out));
    assert!(place("differs: cpu.models[0].name") < place("differs: kernel.release"));
    assert!(place("differs: kernel.release") < place("warning: not fair"));
    assert!(place("change") < place("differs: cpu.models[0].name"), "the answer stands first");
}

/// Launches on one side were measured on one machine; where not, the mean is of both.
#[test]
fn a_side_with_launches_of_two_kernels_is_told() {
    let home = Home::new();
    let base = run_at(&home, 100);
    let one = full_speed_run(&home, "one.jsonl", |_| {});
    let other = full_speed_run(&home, "other.jsonl", |line| {
        if let Some(release) = line.pointer_mut("/header/machine/kernel/release") {
            *release = "2.4.20".into();
        }
    });
    let said = compared(&home, &[&base, &format!("{one},{other}"), "--verbose"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("has another kernel: the mean is of both"), "{}", said.out);
}

#[test]
fn what_is_in_one_run_only_is_listed_and_nothing_in_common_is_no_comparison() {
    let home = Home::new();
    let base = run_at(&home, 100);
    let move_to = |link: &'static str, from: usize| {
        stored_run(&home, &format!("{link}{from}.jsonl"), move |line| {
            let cases = line.pointer_mut("/header/plan/cases").and_then(Value::as_array_mut);
            for case in cases.into_iter().flatten().skip(from) {
                case["link"] = link.into();
            }
        })
    };
    let said = compared(&home, &[&base, &move_to("futex", 2), "--verbose"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("not compared: ring of 4 by futex (in futex2 only, "),
        "{}",
        said.out
    );
    assert!(said.out.contains("not compared: ring of 4 (in run-100 only, "), "{}", said.out);
    let none = compared(&home, &[&base, &move_to("futex", 0), "--fail-above", "1%"]);
    assert_eq!(none.code, Some(2), "{}", none.err);
    let told = "they differ in link (pipe, futex): --across link compares them";
    assert!(none.error().contains(told), "{}", none.err);
}

#[test]
fn published_machines_are_listed_and_compared() {
    let home = Home::new();
    let list = home.run(&["runs", "list", "--history"]);
    assert_eq!((list.code, &*list.err), (Some(0), ""));
    for name in ["80186", "sun-4/280", "rs6000/530-aix-3.1", "pentium-pro/166", "xeon-2.0"] {
        let row = list.out.lines().any(|line| line.starts_with(&format!("{name} ")));
        assert!(row, "no {name} in {}", list.out);
    }
    let all = home.run(&["runs", "list", "--history", "--json", "-"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(16));
    Schema::of("history").assert_holds(&all);
    let one = home.run(&["runs", "show", "history:Sun-4/280"]);
    assert!(one.out.contains("647 us"), "{}", one.out);
    let several = home.run(&["runs", "show", "history:sun"]);
    assert_eq!(several.code, Some(2), "{several:?}");
    assert!(several.error().contains("the start of several names"), "{}", several.err);

    let base = run_at(&home, 100);
    let said = compared(&home, &["history:sun-4/280", &base]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("the published figure has no interval"), "{}", said.out);
    let found = json(&compared(&home, &["history:sun-4/280", &base, "--json", "-"]));
    assert_eq!(answers(&found), ["changed"; 2]);
    assert_eq!(found["changes"][0]["base_rounds"], Value::Null);
    assert_eq!(found["base"]["origin"]["from"], "publication");
}

/// The run without the samples of a case, which failed instead.
fn run_without(home: &Home, case: u64, name: &str) -> String {
    let path = home.path().join(name);
    // Written under this name first, so that it is a run of its own.
    let whole = fs::read_to_string(full_speed_run(home, name, |_| {})).expect("a run");
    let is_of_case = |line: &&str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        line.pointer("/sample/case") == Some(&case.into())
    };
    let mut lines: Vec<String> =
        whole.lines().filter(|line| !is_of_case(line)).map(str::to_string).collect();
    let message = "out of members: 5 of 5 (ulimit -u)";
    let failure = serde_json::json!({"failure": {"case": case, "round": 0, "message": message}});
    lines.insert(1, failure.to_string());
    fs::write(&path, lines.join("\n") + "\n").expect("a file");
    path.display().to_string()
}

#[test]
fn a_gate_does_not_pass_over_what_the_new_side_could_not_measure() {
    let home = Home::new();
    let (base, slow) = (run_at(&home, 100), run_at(&home, 300));
    let lost = run_without(&home, 2, "lost.jsonl");
    let gate = ["--fail-above", "3%"];
    let said = compared(&home, &[&[&*base, &*lost], &gate[..]].concat());
    assert_eq!(said.code, Some(2), "{said:?}");
    let error = said.error();
    assert!(error.contains("ring of 4: nothing was measured of it in lost"), "{error}");
    assert!(error.contains("out of members: 5 of 5"), "{error}");
    // Nobody asked for a gate; or it is the base that lacks it; or something else is slower for
    // certain.
    let plain = compared(&home, &[&base, &lost, "--verbose"]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    assert!(plain.out.contains("not compared: ring of 4"), "{}", plain.out);
    assert_eq!(compared(&home, &[&[&*lost, &*base], &gate[..]].concat()).code, Some(3));
    let again = run_without(&home, 2, "again.jsonl");
    assert_eq!(compared(&home, &[&[&*lost, &*again], &gate[..]].concat()).code, Some(3));
    let tripled = run_without(&home, 2, "tripled.jsonl");
    let text = fs::read_to_string(&slow).expect("a run");
    let tail = fs::read_to_string(&tripled).expect("a run");
    let failure = tail.lines().nth(1).expect("the failure");
    let kept = text.lines().filter(|line| !line.contains("\"case\":2,"));
    let mut lines: Vec<&str> = kept.collect();
    lines.insert(1, failure);
    fs::write(&tripled, lines.join("\n") + "\n").expect("a file");
    assert_eq!(compared(&home, &[&[&*base, &*tripled], &gate[..]].concat()).code, Some(1));
}

#[test]
fn a_cost_of_nothing_is_no_ratio_and_no_null_that_the_schema_does_not_know() {
    let home = Home::new();
    let base = run_at(&home, 100);
    // All hops take as long: a switch costs nothing above solo.
    let nothing = full_speed_run(&home, "nothing.jsonl", |line| {
        if let Some(sample) = line.get_mut("sample") {
            let hops = sample["hops"].as_u64().expect("hops");
            sample["elapsed_ns"] = (hops * 1000).into();
            sample["slices"]["elapsed_ns"] = vec![hops * 100; 10].into();
        }
    });
    for new in [&base, &nothing] {
        let found = json(&compared(&home, &[&nothing, new, "--json", "-"]));
        assert_eq!(answers(&found)[1..], ["cannot_tell"; 2]);
        for change in &found["changes"].as_array().expect("changes")[1..] {
            assert_eq!(change["of"], "ns_per_switch_above_solo");
            assert_eq!(change["base_ns"], 0.0, "{change}");
            assert_eq!(change["ratio"]["value"], Value::Null, "{change}");
            assert_eq!(change["reason"], "base_not_resolved", "{change}");
        }
        let table = compared(&home, &[&nothing, new]);
        assert_eq!((table.code, table.out.contains("inf")), (Some(0), false), "{}", table.out);
    }
    json(&compared(&home, &[&base, &nothing, "--json", "-"]));
}

/// A run of which nobody knows at which speed it was is never called changed, and no gate passes on
/// it.
#[test]
fn runs_without_reference_quanta_are_inconclusive() {
    let home = Home::new();
    let old = stored_run(&home, "old.jsonl", |_| {});
    let slow = stored_run(&home, "old-slow.jsonl", |line| lengthen(line, 300));
    let found = json(&compared(&home, &[&old, &slow, "--json", "-"]));
    assert_eq!(answers(&found), ["cannot_tell"; 3]);
    assert!(
        found["changes"]
            .as_array()
            .is_some_and(|all| { all.iter().all(|change| change["reason"] == "no_full_speed") })
    );
    let gate = compared(&home, &[&old, &slow, "--fail-above", "3%"]);
    assert_eq!(gate.code, Some(3), "{gate:?}");
    let last = gate.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("UNDECIDED: ") && last.contains("full speed"), "{last}");
}

/// Rings and trials: each is measured twice, and compared with the other and itself.
#[test]
fn runs_of_every_instrument_are_compared() {
    for (args, rounds, of) in [
        (
            &["cost", "--array", "4K", "--walk", "whole", "--laps", "5"][..],
            1,
            "ns_per_switch_above_solo",
        ),
        (&["clock", "overhead", "--calls", "monotonic,times", "--trials", "50"], 5, "trial_ns"),
        (
            &["classic", "experiment", "primes", "--primes", "100,300", "--trials", "7"],
            5,
            "trial_ns",
        ),
    ] {
        let home = Home::new();
        let each = rounds.to_string();
        for _ in 0..2 {
            // However busy the machine is, all rounds are done.
            let said = home.run(&[args, &["--rounds", &each, "--budget", "600s"]].concat());
            assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        }
        let files: Vec<_> =
            home.run_files().iter().map(|file| file.display().to_string()).collect();
        let [one, other] = &files[..] else { panic!("{files:?}") };
        assert_are_compared(&home, [one, other], rounds, of);
    }
}

/// Those of several experiments in one run, as `measure` left it, and a copy of it under another
/// name.
#[test]
fn runs_of_rings_and_trials_are_compared() {
    let home = Home::new();
    let (_, text) = measured().runs.first().expect("a run of measure");
    let [one, other] = ["one", "other"].map(|name| {
        let (header, samples) = text.split_once('\n').expect("lines");
        let mut header: Value = serde_json::from_str(header).expect("JSON");
        header["header"]["run"] = name.into();
        let file = home.path().join(format!("{name}.jsonl"));
        fs::write(&file, format!("{header}\n{samples}")).expect("a file");
        file.display().to_string()
    });
    assert_are_compared(&home, [&one, &other], 1, "trial_ns");
}

/// Every case of two runs of one plan is compared, some of them by that cost.
fn assert_are_compared(home: &Home, [one, other]: [&str; 2], rounds: u32, of: &str) {
    let lines = lines_of(Path::new(one));
    let plan = &lines[0]["header"]["plan"];
    let what = &plan["experiment"];
    let found = json(&compared(home, &[one, other, "--json", "-"]));
    let changes = found["changes"].as_array().expect("changes");
    assert_eq!(found["unpaired"], serde_json::json!([]), "{what}");
    assert!(changes.iter().any(|change| change["of"] == of), "{what}: {found}");
    assert_eq!(plan["cases"].as_array().map(Vec::len), Some(changes.len()), "{what}");
    for change in changes {
        let of_both = (&change["base_rounds"], &change["new_rounds"]);
        assert_eq!(of_both, (&rounds.into(), &rounds.into()), "{what}");
    }
    let table = compared(home, &[one, other, "--verbose"]);
    let title = changes[0]["title"].as_str().expect("a title");
    assert!(table.out.contains(title), "{what}: {}", table.out);
    let itself = json(&compared(home, &[one, one, "--json", "-"]));
    assert!(!answers(&itself).contains(&"changed"), "{what}: {itself}");
}

#[test]
fn flags_of_rings_are_for_sessions_only() {
    let home = Home::new();
    let base = run_at(&home, 100);
    for flags in [&["--members", "2"][..], &["--budget", "1s"], &["--policy", "batch"]] {
        let said = compared(&home, &[&[&*base, &*base], flags].concat());
        assert_eq!(said.code, Some(2), "{flags:?}: {said:?}");
        assert!(said.err.contains("--ab"), "{}", said.err);
    }
    let both = compared(&home, &[&base, &base, "--ab", "", ""]);
    assert_eq!(both.code, Some(2), "{both:?}");
    let launches = compared(&home, &["--ab", "", "", "--launches", "3"]);
    assert_eq!(launches.code, Some(2), "{launches:?}");
    assert!(launches.err.contains("--launches 3"), "{}", launches.err);
    let flag = compared(&home, &["--ab", "taskset -c 0", "--quiet"]);
    assert_eq!(flag.code, Some(2), "{flag:?}");
    assert!(flag.err.contains("'--quiet' is none"), "{}", flag.err);
}

#[test]
fn a_run_that_was_cut_off_is_told() {
    let home = Home::new();
    let whole = run_at(&home, 100);
    let cut = home.path().join("cut.jsonl");
    let text = fs::read_to_string(&whole).expect("a run");
    let end = text.rfind("{\"end\"").expect("an end");
    fs::write(&cut, &text[..end - 20]).expect("a file");
    let said = compared(&home, &[&whole, &cut.display().to_string(), "--verbose"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for words in ["is cut off after", "incomplete: it was killed"] {
        assert!(said.out.contains(words), "no '{words}' in {}", said.out);
    }
}

#[test]
fn what_a_terminal_would_obey_is_not_printed() {
    let home = Home::new();
    let plain = run_at(&home, 100);
    let hostile = stored_run(&home, "hostile.jsonl", |line| {
        if let Some(release) = line.pointer_mut("/header/machine/kernel/release") {
            *release = "6\u{1b}[31m\u{202e}x".into();
        }
    });
    for said in [
        compared(&home, &[&plain, &hostile, "--verbose"]),
        home.run(&["runs", "show", &hostile, "--verbose"]),
    ] {
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.contains("6[31mx"), "{}", said.out);
        assert!(!said.out.contains(['\u{1b}', '\u{202e}']), "{:?}", said.out);
    }
}

#[test]
fn of_three_runs_the_odd_one_is_named_first() {
    let home = Home::new();
    let [one, two] = ["one.jsonl", "two.jsonl"].map(|name| stored_run(&home, name, |_| {}));
    let said = compared(&home, &[&one, &two, &one]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("are the same run"), "{}", said.err);
    let three = stored_run(&home, "three.jsonl", |_| {});
    let said = compared(&home, &[&one, &two, &three, "--json", "-"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.starts_with("None of the 3 runs is shown to differ"), "{}", said.err);
    let found = said.json();
    assert_eq!(found["runs"].as_array().map(Vec::len), Some(3), "{found}");
    // They have no reference loops, so that nothing is known of the CPU's speed.
    assert_eq!((&found["pairs"], &found["inconclusive"]), (&9.into(), &9.into()), "{found}");
    let words = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("9 of 9 comparisons are inconclusive"), "{words}");
    assert_eq!(found["runs"][1]["name"], two.as_str());
    let said = compared(&home, &[&one, &two, "history:sun-4/280"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let said = compared(&home, &[&one, &two, &three, "--fail-above", "3%"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}

#[test]
fn records_of_commands_are_compared() {
    let home = Home::new();
    let session = |name: &str, commands: &[&str]| {
        let path = home.path().join(name).to_str().expect("a path").to_string();
        let said = home.run(&[&["run", "-n", "5", "-q", "--json", &path], commands].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        path
    };
    let before = session("before.json", &["true", "echo"]);
    let after = session("after.json", &["true", "cat /dev/null"]);
    let said = compared(&home, &[&before, &after, "--json", "-"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found = said.json();
    let [change] = &found["changes"].as_array().expect("changes")[..] else { panic!("{found}") };
    assert_eq!((&change["title"], &change["of"]), (&"true".into(), &"real_ns".into()));
    assert_eq!((&change["base_rounds"], &change["new_rounds"]), (&5.into(), &5.into()));
    assert_eq!(found["unpaired"].as_array().map(Vec::len), Some(2), "{found}");
    // Two sessions are one side, and CPU time is compared on request.
    let both = format!("{before},{after}");
    let said = compared(&home, &[&both, &after, "--cost", "cpu", "--json", "-"]);
    assert_eq!(said.json()["changes"][0]["of"], "cpu_ns");
    let stored = stored_run(&home, "one.jsonl", |_| {});
    for (args, told) in [
        (vec![&*before, &stored], "no case in common"),
        (vec![&*before, "absent.json"], "cannot read absent.json"),
        (vec![&*before, &after, "--report", "page.html"], "switchcost report FILE.json"),
    ] {
        let said = compared(&home, &args);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.error().contains(told), "{}", said.err);
    }
}

#[test]
fn a_gate_does_not_compare_a_run_with_itself() {
    let home = Home::new();
    let one = stored_run(&home, "one.jsonl", |_| {});
    assert_eq!(compared(&home, &[&one, &one]).code, Some(0));
    let said = compared(&home, &[&one, &one, "--fail-above", "3%"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("are the same run"), "{}", said.err);
}

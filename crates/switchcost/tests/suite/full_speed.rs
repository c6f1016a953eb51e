//! What a run knows of its CPU's full speed, and leaves to others. A stored run is read by what its
//! file says, whatever has come to be known since, and wherever it is read.

use std::fs;

use serde_json::{Value, json};

use crate::common::schema::Schema;
use crate::common::speed::{Known, cpu};
use crate::common::stored::{full_speed_run, measured};
use crate::common::{Home, Said, lines_of};
use testing::{Need, skip};

/// Lower than any CPU's own: no quantum is at it.
const LOW: f64 = 0.2;
/// Higher than any CPU's own, which is taken in its place.
const HIGH: f64 = 5.0;

const KNOWN: [Known; 5] = [
    Known::InTable(LOW),
    Known::InTable(HIGH),
    Known::Seen(LOW, 3),
    Known::Seen(HIGH, 1),
    Known::Never,
];

const SMALL: [&str; 9] =
    ["ring", "--members", "2", "--rounds", "1", "--laps", "200", "--placement", "same"];

/// What its header has, or the file of its run.
fn reference(of: &Value) -> Value {
    of["header"]["plan"]["reference"].clone()
}

fn as_stored(known: Known) -> Value {
    match known {
        Known::InTable(ratio) | Known::Seen(ratio, 3..) => {
            json!({"unshared_ratio": ratio, "established": true})
        }
        Known::Seen(ratio, _) => json!({"unshared_ratio": ratio}),
        Known::Never => json!({}),
    }
}

/// The CPU of these tests, or a word why there are none.
fn named_cpu() -> Option<String> {
    let cpu = cpu();
    if cpu.is_none() {
        skip(Need::Hardware("cpu-name"), "this machine does not say which CPU it has");
    }
    cpu
}

/// Asks at once, when others have found lower levels since, and where nothing is known.
fn by_whatever_is_known(home: &Home, cpu: &str, args: &[&str], wanted: &str) {
    let state = home.path().join("state");
    let ask = |when: &str| {
        let said = home.run(args);
        assert_eq!((said.code, &*said.out), (Some(0), wanted), "{when}: {args:?}: {}", said.err);
    };
    ask("at once");
    home.know(cpu, Known::Seen(LOW, 9));
    ask("by a lower level");
    fs::remove_dir_all(state).expect("a folder");
    ask("where nothing is known");
}

#[test]
fn a_record_read_again_is_the_record_that_was_printed() {
    let Some(cpu) = named_cpu() else { return };
    for known in KNOWN {
        let home = Home::new();
        home.know(&cpu, known);
        let json = home.path().join("record.json").display().to_string();
        let view = ["--verbose", "--wide"];
        let printed = home.run(&[&SMALL[..], &view, &["--json", &json]].concat());
        assert_eq!(printed.code, Some(0), "{known:?}: {}", printed.err);
        let record = fs::read_to_string(json).expect("a record");
        let value: Value = serde_json::from_str(&record).expect("JSON");
        assert_eq!(reference(&value), as_stored(known), "{known:?}");
        assert_eq!(reference(&lines_of(&home.run_file())[0]), as_stored(known), "{known:?}");
        by_whatever_is_known(&home, &cpu, &["runs", "export", "last"], &record);
        let show = [&["runs", "show", "last"], &view[..]].concat();
        by_whatever_is_known(&home, &cpu, &show, &printed.out);
    }
}

#[test]
fn so_it_is_of_every_experiment() {
    let Some(cpu) = named_cpu() else { return };
    for args in [
        // All parts of a response are among the runs of `measure` below.
        &["response", "--rounds", "1", "--only", "system-calls"][..],
        &["cost", "--rounds", "1", "--array", "4K", "--walk", "whole", "--laps", "10"],
        &["clock", "overhead", "--rounds", "1", "--trials", "20"],
        &["classic", "experiment", "malloc", "--rounds", "1", "--sizes", "64", "--trials", "4"],
    ] {
        let home = Home::new();
        home.know(&cpu, Known::Never);
        let json = home.path().join("record.json").display().to_string();
        let said = home.run(&[args, &["--quiet", "--json", &json]].concat());
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        let record = fs::read_to_string(json).expect("a record");
        by_whatever_is_known(&home, &cpu, &["runs", "export", "last"], &record);
    }
}

#[test]
fn so_it_is_of_the_run_of_measure() {
    let Some(cpu) = named_cpu() else { return };
    let measured = measured();
    assert_eq!(measured.runs.len(), 1, "{}", measured.said.err);
    for (name, text) in &measured.runs {
        let home = Home::new();
        home.know(&cpu, Known::Never);
        let file = home.path().join(name);
        fs::write(&file, text).expect("a file");
        let args = ["runs", "export", &file.display().to_string()];
        let record = home.run(&args).out;
        by_whatever_is_known(&home, &cpu, &args, &record);
    }
}

/// What was known when it went on is in the file, and decides for all of it.
#[test]
fn a_resumed_run_is_read_by_what_was_known_when_it_went_on() {
    let Some(cpu) = named_cpu() else { return };
    let home = Home::new();
    home.know(&cpu, Known::Never);
    assert_eq!(home.run(&SMALL).code, Some(0));
    home.know(&cpu, Known::Seen(LOW, 3));
    let more = ["--rounds", "1", "--budget", "60s", "--verbose", "--wide"];
    let resumed = home.run(&[&["runs", "resume", "last"], &more[..]].concat());
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let lines = lines_of(&home.run_file());
    let line = lines.iter().find(|line| line.get("resumed").is_some()).expect("a line");
    Schema::of("run-line").assert_holds(line);
    assert_eq!(line["resumed"]["reference"], as_stored(Known::Seen(LOW, 3)));
    assert_eq!(reference(&lines[0]), json!({}), "the first line stays as it was written");
    let show = ["runs", "show", "last", "--verbose", "--wide"];
    by_whatever_is_known(&home, &cpu, &show, &resumed.out);
    let record = home.run(&["runs", "export", "last"]).json();
    assert_eq!(reference(&record), as_stored(Known::Seen(LOW, 3)));
}

/// What one run leaves is known to the next.
#[test]
fn what_a_run_finds_the_next_one_knows() {
    let Some(cpu) = named_cpu() else { return };
    let ring = ["ring", "--members", "2", "--rounds", "4", "--laps", "1000", "--placement", "same"];
    let ring = [&ring[..], &["--budget", "600s", "--quiet", "--json", "-"]].concat();
    // Where others take the CPU, its quanta agree on no level: later they may.
    let found = (0..20).find_map(|_| {
        let home = Home::new();
        home.know(&cpu, Known::Never);
        let record = home.run(&ring).json();
        let level = record["speed"][0]["level"].clone();
        (level["unshared_share"].as_f64()? >= 0.05).then_some((home, level))
    });
    let Some((home, level)) = found else {
        return skip(Need::Quiet, "the quanta of no run agree on a level");
    };
    let state = home.state_now();
    assert_eq!(state["cpus"][&cpu], json!([{"ratio": level["unshared_ratio"], "launches": 1}]));
    assert_eq!(state["table"], json!({}), "what it was given stays");
    let next = home.run(&ring).json();
    let clock_ns = &level["clock_ns"];
    assert_eq!(state["clocks"][&cpu], json!([{"clock_ns": clock_ns, "launches": 1}]));
    let known = json!({"unshared_ratio": level["unshared_ratio"], "clock_ns": clock_ns});
    assert_eq!(reference(&next), known);
}

/// Whatever the state file says, it is measured, and what is stored can be read.
#[test]
fn a_state_that_cannot_be_meant_is_passed_over() {
    let Some(cpu) = named_cpu() else { return };
    let seen = |ratio: &str, launches: &str| {
        format!(
            "{{\"cpus\":{{\"{cpu}\":[{{\"ratio\":{ratio},\"launches\":{launches}}}]}},\"table\":{{}}}}"
        )
    };
    let clock = |ns: &str| {
        format!(
            "{{\"clocks\":{{\"{cpu}\":[{{\"clock_ns\":{ns},\"launches\":9}}]}},\"table\":{{}}}}"
        )
    };
    let table = |ratio: &str| format!("{{\"table\":{{\"{cpu}\":{ratio}}}}}");
    for text in [
        seen("0.001", "9"),
        seen("1e300", "9"),
        seen("-1", "9"),
        seen("0", "4294967295"),
        table("0.001"),
        table("1e300"),
        table("-1"),
        clock("1e300"),
        clock("-1"),
        clock("99"),
    ] {
        let home = Home::new();
        home.state(&text);
        let said = home.run(&[&SMALL[..], &["--quiet", "--json", "-"]].concat());
        assert_eq!((said.code, &*said.err), (Some(0), ""), "{text}");
        assert_eq!(reference(&said.json()), json!({}), "{text}");
        assert_eq!(home.run(&["runs", "export", "last"]).out, said.out, "{text}");
    }
    for text in ["", "[]", "{\"cpus\":3}", "{\"cpus\":{\"x\":[{}]}}", "\u{0}"] {
        let home = Home::new();
        home.state(text);
        let said = home.run(&[&SMALL[..], &["--quiet", "--json", "-"]].concat());
        assert_eq!((said.code, &*said.err), (Some(0), ""), "{text}");
        assert_eq!(home.run(&["runs", "export", "last"]).out, said.out, "{text}");
    }
}

/// It would be waited for.
#[test]
fn a_state_that_is_no_file_is_not_waited_for() {
    let home = Home::new();
    home.state("");
    let fifo = home.path().join("state/switchcost/full-speed.json");
    fs::remove_file(&fifo).expect("a file");
    assert!(home.command("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    assert_eq!(home.run(&SMALL).code, Some(0));
}

/// A run whose throughput-bound loops took so many nanoseconds, against 5,860 of the latency-bound
/// ones.
fn run_at(home: &Home, throughput_ns: u32) -> String {
    full_speed_run(home, &format!("run-{throughput_ns}.jsonl"), |line| {
        let quanta = line.pointer_mut("/sample/slices/throughput_ns").and_then(Value::as_array_mut);
        quanta.into_iter().flatten().for_each(|ns| *ns = throughput_ns.into());
    })
}

fn compared(home: &Home, args: &[&str]) -> Said {
    let said = home.run(&[&["compare"], args].concat());
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
    said
}

/// One never saw its core unshared. By itself nothing tells so; the other does.
#[test]
fn runs_that_are_compared_are_read_by_the_lowest_level_of_them() {
    let home = Home::new();
    let [shared, also_shared, unshared] = [8000, 8001, 5920].map(|ns| run_at(&home, ns));
    let reason = |base: &str, new: &str| {
        let found = compared(&home, &[base, new, "--json", "-"]).json();
        found["changes"][1]["reason"].clone()
    };
    assert_eq!(reason(&shared, &also_shared), "too_wide", "both are at full speed");
    assert_eq!(reason(&shared, &unshared), "no_full_speed");
    assert_eq!(reason(&unshared, &shared), "no_full_speed");
    // Whatever is known here of that CPU.
    let wanted = compared(&home, &[&shared, &unshared]).out;
    let cpu = "AuthenticAMD family 25 model 1 stepping 1 microcode 0x1000065 capacity 1024";
    by_whatever_is_known(&home, cpu, &["compare", &shared, &unshared], &wanted);
}

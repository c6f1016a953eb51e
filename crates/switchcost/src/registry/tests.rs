//! Run files are data that anybody may have written: whatever stands in them, reading, printing,
//! drawing and exporting them ends without a panic.

use std::panic::catch_unwind;

use charts::render_svg;
use rundata::run::Run;
use serde_json::{Value, json};

use super::*;
use crate::report::output::{exports, history, summary};

/// A small run of each experiment, as they were written.
pub(super) const RUNS: [&str; 11] = [
    include_str!("../../tests/fixtures/interference.jsonl"),
    include_str!("../../../rundata/tests/fixtures/run-v1.jsonl"),
    include_str!("../../tests/fixtures/ring.jsonl"),
    include_str!("../../tests/fixtures/cost.jsonl"),
    include_str!("../../tests/fixtures/response.jsonl"),
    include_str!("../../tests/fixtures/explain.jsonl"),
    include_str!("../../tests/fixtures/measure.jsonl"),
    include_str!("../../tests/fixtures/clock-overhead.jsonl"),
    include_str!("../../tests/fixtures/clock-primes.jsonl"),
    include_str!("../../tests/fixtures/clock-malloc.jsonl"),
    include_str!("../../tests/fixtures/clock-sampling.jsonl"),
];

/// One with gaps, whose periods take longer to find than all else.
pub(super) const GAPS: &str = include_str!("../../tests/fixtures/response-gaps.jsonl");

/// Files that are tried if SWITCHCOST_RUN_FILES says no other number: of the core, of all.
const FILES: (u64, u64) = (500, 20_000);

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * end as u128) >> 64) as usize
    }

    pub(super) fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// What no writer of ours would have put in place of a value: for the most part of its own kind,
/// which can be read.
fn hostile(of: &Value, random: &mut Random) -> Value {
    let numbers =
        [0, 1, 2, 3, 95, 65_536, 1 << 32, 1 << 53, i64::MAX as u64, u64::MAX].map(Value::from);
    let signed =
        [json!(-1), json!(i64::MIN), json!(0.5), json!(1e-300), json!(1e308), json!(-1e308)];
    let texts =
        ["", "\u{1b}[31m\u{0}\n", "ring", "0-4294967295", "\u{e9}\u{202e}"].map(Value::from);
    let others =
        [json!(null), json!(true), json!([]), json!({}), json!([0, 0]), json!({"unknown": "why"})];
    match of {
        _ if random.below(8) == 0 => random.of(&others),
        Value::String(_) => random.of(&texts),
        Value::Number(number) if number.is_f64() => random.of(&[&numbers[..], &signed].concat()),
        Value::Number(_) if random.below(8) > 0 => random.of(&numbers),
        Value::Number(_) => random.of(&signed),
        _ => random.of(&others),
    }
}

/// A part of a value, somewhere below it.
fn place<'a>(value: &'a mut Value, random: &mut Random) -> &'a mut Value {
    let inner = match value {
        Value::Array(all) => all.len(),
        Value::Object(all) => all.len(),
        _ => 0,
    };
    // Now and then a whole part, else one figure.
    if inner == 0 || random.below(20) == 0 {
        return value;
    }
    let index = random.below(inner);
    let part = match value {
        Value::Array(all) => all.get_mut(index),
        Value::Object(all) => all.values_mut().nth(index),
        _ => None,
    };
    place(part.expect("it was counted"), random)
}

fn change(value: &mut Value, random: &mut Random) {
    let part = place(value, random);
    let with = hostile(part, random);
    match part {
        Value::Array(all) if !all.is_empty() && random.below(2) == 0 => match random.below(3) {
            0 => all.clear(),
            1 => drop(all.pop()),
            _ => all.extend(all.first().cloned()),
        },
        Value::Object(all) if !all.is_empty() && random.below(2) == 0 => {
            let name = all.keys().nth(random.below(all.len())).cloned();
            all.remove(&name.expect("a name"));
        }
        part => *part = with,
    }
}

/// A run file with one to four things changed: figures for the most part, else lines and bytes.
fn changed(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for _ in 0..=random.below(4) {
        // Half of them in the header, whose plan decides all that follows.
        let number = random.below(2) * random.below(lines.len());
        match random.below(12) {
            0 => drop(lines.remove(number)),
            1 => lines.push(lines[number].clone()),
            2 => {
                let at = random.below(lines[number].len() + 1);
                let line = lines[number].as_bytes()[..at].to_vec();
                lines[number] = String::from_utf8_lossy(&line).into_owned();
            }
            3 => {
                let (from, to) = random.of(&[
                    ("0", "9"),
                    ("1", "-1"),
                    ("5", "e5"),
                    (",", ""),
                    (":", "::"),
                    ("e", "E"),
                ]);
                lines[number] = lines[number].replacen(from, to, 1 + random.below(3));
            }
            _ => {
                if let Ok(mut line) = serde_json::from_str(&lines[number]) {
                    change(&mut line, random);
                    lines[number] = line.to_string();
                }
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// What is made of every run.
fn read(run: &Run) {
    let record = Record::from_run(run);
    assert!(!record.text(run, None, View::default()).is_empty());
    csv::samples(run, Vec::new()).expect("CSV");
}

/// What takes longer, or is made of the same figures.
fn export(run: &Run) {
    let (record, results) = (Record::from_run(run), Results::from_run(run));
    to_json(&record).expect("JSON");
    summary::summary_csv(run).expect("CSV");
    // Of a machine that is not known there are no rows.
    let _ = history::rows(run);
    summary::markdown(run);
    exports::go_bench(&results);
    exports::openmetrics(&results);
}

fn draw(run: &Run) {
    let record = Record::from_run(run);
    record.plotted(run, &PlotStyle { columns: 80, colour: false, unicode: true });
    for figure in record.figures(run, 0) {
        render_svg(&figure, &[], "caption");
    }
}

/// Whether a file could be read; a panic where it is not handled.
fn try_one(seed: u64) -> bool {
    let base = if seed % 250 == 0 { GAPS } else { RUNS[seed as usize % RUNS.len()] };
    let Ok(run) = Run::parse(&changed(base, &mut Random(seed))) else { return false };
    read(&run);
    if seed % 10 == 0 {
        export(&run);
    }
    if seed % 149 == 0 {
        draw(&run);
    }
    true
}

#[test]
fn no_run_file_makes_the_program_panic() {
    let asked = std::env::var("SWITCHCOST_RUN_FILES").ok().and_then(|text| text.parse().ok());
    let files = asked.unwrap_or(testing::repeats(FILES.0, FILES.1));
    let part = |part: u64| {
        let seeds = (0..files).filter(move |seed| seed % 2 == part);
        seeds.map(|seed| (seed, catch_unwind(|| try_one(seed)).ok())).collect::<Vec<_>>()
    };
    let tried = std::thread::scope(|scope| {
        let other = scope.spawn(|| part(1));
        [part(0), other.join().expect("the other half")].concat()
    });
    let failed: Vec<u64> =
        tried.iter().filter(|(_, done)| done.is_none()).map(|(seed, _)| *seed).collect();
    assert_eq!(failed, [0; 0], "seeds of files that panic");
    // Else the changes were too coarse to reach anything.
    let readable = tried.iter().filter(|(_, done)| *done == Some(true)).count() as u64;
    assert!(readable * 3 > files, "{readable} of {files} could be read");
}

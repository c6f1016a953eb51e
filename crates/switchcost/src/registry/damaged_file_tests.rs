//! Run files are data that anybody may have written: whatever stands in them, reading, printing,
//! drawing and exporting them ends without a panic.
//!
//! A test takes a good run file, damages it by a seeded random generator, and does with it what the
//! program does with runs. A seed that fails is printed, and fails again alone. Damage is gentle, so
//! that at least a third of the files can still be read: one number in a header is changed far more
//! often than a line is lost.

use std::panic::catch_unwind;

use charts::render_svg;
use rundata::run::Run;
use serde_json::{Value, json};

use super::*;
use crate::report::output::{exports, history, summary};

/// Good run files, as the program wrote them: one of each experiment, and one of schema version 1.
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

/// A good run file with gaps. It is tried less often: the search for periods of gaps takes longer
/// than all else.
pub(super) const GAPS: &str = include_str!("../../tests/fixtures/response-gaps.jsonl");

/// FileOptions that are tried unless SWITCHCOST_RUN_FILES says how many: by default, and at night.
const FILES: (u64, u64) = (500, 20_000);

/// Random numbers by SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Draws a number from 0 to `end` - 1.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * end as u128) >> 64) as usize
    }

    /// Draws an item.
    pub(super) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Draws whether something happens that happens once in `times`.
    pub(super) fn is_once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Counts and sizes at the ends of their types, and beside powers of two.
const COUNTS: [u64; 10] = [0, 1, 2, 3, 95, 65_536, 1 << 32, 1 << 53, i64::MAX as u64, u64::MAX];

/// Texts that no writer of ours makes: empty, with escapes of a terminal, a name where it does not
/// belong, a huge list of CPUs, a mark of direction.
const TEXTS: [&str; 5] = ["", "\u{1b}[31m\u{0}\n", "ring", "0-4294967295", "\u{e9}\u{202e}"];

/// Numbers that most fields cannot have: below zero, fractions, too small or too large to add up.
fn odd_numbers() -> [Value; 6] {
    [json!(-1), json!(i64::MIN), json!(0.5), json!(1e-300), json!(1e308), json!(-1e308)]
}

/// Values of another kind than a field has.
fn other_kinds() -> [Value; 6] {
    [json!(null), json!(true), json!([]), json!({}), json!([0, 0]), json!({"unknown": "why"})]
}

/// Draws a value that no writer of ours would have put in place of `value`: for the most part of
/// its own kind, so that the line can be read.
fn hostile_value(value: &Value, random: &mut Random) -> Value {
    let (counts, texts) = (COUNTS.map(Value::from), TEXTS.map(Value::from));
    match value {
        _ if random.is_once_in(8) => random.pick(&other_kinds()),
        Value::String(_) => random.pick(&texts),
        Value::Number(number) if number.is_f64() => {
            random.pick(&[&counts[..], &odd_numbers()].concat())
        }
        Value::Number(_) if !random.is_once_in(8) => random.pick(&counts),
        Value::Number(_) => random.pick(&odd_numbers()),
        _ => random.pick(&other_kinds()),
    }
}

/// Draws a part of a value, somewhere below it: mostly a single figure, now and then a whole part.
fn random_part<'a>(value: &'a mut Value, random: &mut Random) -> &'a mut Value {
    let count = match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    if count == 0 || random.is_once_in(20) {
        return value;
    }
    let index = random.below(count);
    let part = match value {
        Value::Array(items) => items.get_mut(index),
        Value::Object(fields) => fields.values_mut().nth(index),
        _ => None,
    };
    random_part(part.expect("it was counted"), random)
}

/// Damages a line: a list loses or repeats items, an object loses a field, or a value is replaced.
fn damage_line(line: &mut Value, random: &mut Random) {
    let part = random_part(line, random);
    let replacement = hostile_value(part, random);
    match part {
        Value::Array(items) if !items.is_empty() && random.is_once_in(2) => match random.below(3) {
            0 => items.clear(),
            1 => drop(items.pop()),
            _ => items.extend(items.first().cloned()),
        },
        Value::Object(fields) if !fields.is_empty() && random.is_once_in(2) => {
            let name = fields.keys().nth(random.below(fields.len())).cloned();
            fields.remove(&name.expect("a name"));
        }
        part => *part = replacement,
    }
}

/// Characters that are replaced in the text of a line, and by what: numbers change their size or
/// sign, JSON loses its form.
const REPLACED_TEXTS: [(&str, &str); 6] =
    [("0", "9"), ("1", "-1"), ("5", "e5"), (",", ""), (":", "::"), ("e", "E")];

/// Damages a run file in one to four places.
fn damage_file(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for _ in 0..=random.below(4) {
        // Half of all damage is in the header, whose plan decides all that follows.
        let number = random.below(2) * random.below(lines.len());
        match random.below(12) {
            0 => drop(lines.remove(number)),
            1 => lines.push(lines[number].clone()),
            2 => {
                let length = random.below(lines[number].len() + 1);
                let beginning = &lines[number].as_bytes()[..length];
                lines[number] = String::from_utf8_lossy(beginning).into_owned();
            }
            3 => {
                let (from, to) = random.pick(&REPLACED_TEXTS);
                lines[number] = lines[number].replacen(from, to, 1 + random.below(3));
            }
            _ => {
                if let Ok(mut line) = serde_json::from_str(&lines[number]) {
                    damage_line(&mut line, random);
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

/// Makes what every run is made into: its report and its samples.
fn read_run(run: &Run) {
    let record = Record::from_run(run);
    assert!(!record.text(run, None, View::default()).is_empty());
    csv::samples(run, Vec::new()).expect("CSV");
}

/// Makes all other formats, which take longer or are made of the same figures.
fn export_run(run: &Run) {
    let (record, results) = (Record::from_run(run), Results::from_run(run));
    to_json(&record).expect("JSON");
    summary::summary_csv(run).expect("CSV");
    // A run of an unknown machine is refused.
    let _ = history::rows(run);
    summary::markdown(run);
    exports::go_bench(&results);
    exports::openmetrics(&results, None);
}

fn draw_run(run: &Run) {
    let record = Record::from_run(run);
    record.plot(run, &PlotStyle { columns: 80, colour: false, unicode: true });
    for figure in record.figures(run, 0) {
        render_svg(&figure, &[], "caption");
    }
}

/// Damages a file and does with it what the program does; returns whether it could be read. Panics
/// where the program would.
fn try_damaged_file(seed: u64) -> bool {
    let file = if seed % 250 == 0 { GAPS } else { RUNS[seed as usize % RUNS.len()] };
    let Ok(run) = Run::parse(&damage_file(file, &mut Random(seed))) else { return false };
    read_run(&run);
    if seed % 10 == 0 {
        export_run(&run);
    }
    if seed % 149 == 0 {
        draw_run(&run);
    }
    true
}

/// Outcome of one seed.
pub(super) struct SeedOutcome {
    pub(super) seed: u64,
    /// Whether there was a run to look at; absent where the trial panicked.
    pub(super) has_run: Option<bool>,
}

/// Tries all seeds below `count` on two threads. Panics of a trial are caught, so that all seeds
/// that fail are known.
pub(super) fn try_seeds(count: u64, trial: fn(u64) -> bool) -> Vec<SeedOutcome> {
    std::thread::scope(|scope| {
        let odd = scope.spawn(|| try_half(count, 1, trial));
        let mut outcomes = try_half(count, 0, trial);
        outcomes.extend(odd.join().expect("the other half"));
        outcomes
    })
}

fn try_half(count: u64, first: u64, trial: fn(u64) -> bool) -> Vec<SeedOutcome> {
    let mut outcomes = Vec::new();
    for seed in (first..count).step_by(2) {
        outcomes.push(SeedOutcome { seed, has_run: catch_unwind(|| trial(seed)).ok() });
    }
    outcomes
}

/// Returns the seeds whose trial panicked.
pub(super) fn failed_seeds(outcomes: &[SeedOutcome]) -> Vec<u64> {
    let failed = outcomes.iter().filter(|outcome| outcome.has_run.is_none());
    failed.map(|outcome| outcome.seed).collect()
}

/// Counts the seeds that had a run to look at.
pub(super) fn count_runs(outcomes: &[SeedOutcome]) -> u64 {
    outcomes.iter().filter(|outcome| outcome.has_run == Some(true)).count() as u64
}

/// Returns how many seeds are tried: what the variable says, else the first number, or the second
/// in nightly tests.
pub(super) fn seeds_to_try(variable: &str, (few, many): (u64, u64)) -> u64 {
    let asked = std::env::var(variable).ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(testing::repeats(few, many))
}

#[test]
fn no_run_file_makes_the_program_panic() {
    let files = seeds_to_try("SWITCHCOST_RUN_FILES", FILES);
    let outcomes = try_seeds(files, try_damaged_file);
    assert_eq!(failed_seeds(&outcomes), [0; 0], "seeds of files that panic");
    // Otherwise the damage is too coarse to reach anything.
    let readable = count_runs(&outcomes);
    assert!(readable * 3 > files, "{readable} of {files} could be read");
}

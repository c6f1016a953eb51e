//! Whatever was measured, and wherever a run was cut off, its texts, figures and records say
//! nothing that cannot be: no cost below zero that is not said to be not resolved, no law outside
//! of its data, no sum that is not that of its parts, and nothing that is built on a run that did
//! not end.
//!
//! A test takes a good run file, multiplies its samples by random factors, ends it somewhere, and
//! looks through all that the program says of it. So solos may cost more than rings, as on a very
//! busy machine.

use analysis::comparison::{ChangeAnswer, Comparison, ComparisonTerms, LIMIT, WantedCost};
use analysis::estimate::Estimate;
use analysis::record::course;
use charts::{FigureBody, Point, PointCertainty, Series, Unit};
use rundata::run::{RunEnd, StopReason};
use serde_json::Value;

use super::damaged_file_tests::{
    GAPS, RUNS, Random, count_runs, failed_seeds, seeds_to_try, try_seeds,
};
use super::*;
use crate::report::output::summary;

/// Records that are tried unless SWITCHCOST_RECORDS says how many: by default, one of them with
/// gaps, and at night.
const RECORDS: (u64, u64) = (50, 300);

/// A number below zero is a difference where its line, or the head of its column, has one of these
/// texts.
const DIFFERENCE_WORDS: [&str; 16] = [
    "not resolved",
    "not explained",
    "would add",
    "above pipe",
    "above none",
    "unexplained",
    "disagree",
    "error %",
    "gain %",
    "gains in precision",
    "agree to",
    "differ by",
    "timer slack",
    "deviates most",
    "mean moved %",
    "moved by",
];

/// Standard deviations of the logarithm of the factors: hardly any, as noise has it, or beyond all
/// reason.
const SPREADS: [f64; 4] = [0.005, 0.05, 0.7, 3.0];

/// Fields of samples that say what was measured; all other numbers are figures.
const LABEL_FIELDS: [&str; 5] = ["case", "round", "sample", "member", "cpu"];

/// Draws a factor about one, by the sum of four uniform numbers.
fn random_factor(random: &mut Random, spread: f64) -> f64 {
    let sum: f64 = (0..4).map(|_| random.below(1001) as f64 / 1000.0 - 0.5).sum();
    (1.7 * spread * sum).exp()
}

/// Multiplies every figure of a part by a factor of its own; a count stays a whole number.
fn scatter(part: &mut Value, random: &mut Random, spread: f64) {
    match part {
        Value::Array(items) => {
            for item in items {
                scatter(item, random, spread);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                if !LABEL_FIELDS.contains(&name.as_str()) {
                    scatter(field, random, spread);
                }
            }
        }
        Value::Number(number) => {
            let factor = random_factor(random, spread);
            let scaled = number.as_f64().unwrap_or_default() * factor;
            *part = if number.is_f64() {
                Value::from(scaled)
            } else if number.is_u64() {
                Value::from(scaled.round() as u64)
            } else {
                Value::from(scaled.round() as i64)
            };
        }
        _ => {}
    }
}

/// Builds a run of any experiment with other samples: up to three times as many rounds, scattered,
/// cut off anywhere.
fn random_run(seed: u64) -> Option<Run> {
    let random = &mut Random(seed);
    let has_gaps = seed % 50 == 49;
    let file = if has_gaps { GAPS } else { RUNS[random.below(RUNS.len())] };
    let (header, lines) = file.split_once('\n')?;
    let lines: Vec<Value> =
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let spread = random.pick(&SPREADS);
    // Each case has a factor of its own, by which solos may cost more than rings.
    let biases: Vec<f64> = (0..64).map(|_| random_factor(random, spread)).collect();
    let mut text = format!("{header}\n");
    let copies = if has_gaps { 1 } else { 1 + random.below(3) };
    for copy in 0..copies as u64 {
        for line in lines.iter().filter(|line| line.get("sample").is_some_and(Value::is_object)) {
            let mut line = line.clone();
            let sample = bare_sample(&mut line)?;
            let bias = biases[sample["case"].as_u64()? as usize % biases.len()];
            sample["round"] = Value::from(sample["round"].as_u64()? + 100 * copy);
            let elapsed = sample["elapsed_ns"].as_f64().map(|ns| (ns * bias).round() as u64);
            scatter(sample, random, spread);
            if let Some(elapsed) = elapsed.filter(|_| random.is_once_in(2)) {
                sample["elapsed_ns"] = Value::from(elapsed);
            }
            text += &format!("{line}\n");
        }
    }
    let length = if random.is_once_in(3) { random.below(text.len()) } else { text.len() };
    let mut run = Run::parse(&String::from_utf8_lossy(&text.as_bytes()[..length])).ok()?;
    let reasons = [StopReason::RoundsDone, StopReason::Interrupted, StopReason::BudgetSpent];
    run.end = if random.is_once_in(4) { None } else { Some(run_end(random.pick(&reasons))) };
    Some(run)
}

/// Returns the sample of a line: an experiment of rings and trials stores it under its kind.
fn bare_sample(line: &mut Value) -> Option<&mut Value> {
    let sample = line.get_mut("sample")?;
    for kind in ["ring", "trial"] {
        if sample.get(kind).is_some() {
            return sample.get_mut(kind);
        }
    }
    Some(sample)
}

/// Returns whether a word is a number below zero: `-12`, `(-0.4`.
fn is_below_zero(word: &str) -> bool {
    let number = word.trim_start_matches('(').trim_end_matches([',', ';', ')', '%']);
    number.starts_with('-') && number.parse::<f64>().is_ok_and(|number| number < 0.0)
}

/// Returns the paragraphs of a text that print a number below zero and do not say why.
fn paragraphs_below_zero(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for paragraph in text.split("\n\n") {
        let unbroken = paragraph.replace("\n  ", " ");
        let is_difference = DIFFERENCE_WORDS.iter().any(|word| unbroken.contains(word));
        if !is_difference && paragraph.split_whitespace().any(is_below_zero) {
            found.push(paragraph);
        }
    }
    found
}

/// Checks that a report begins with how the run ended, prints no cost below zero, and ranks and
/// compares nothing of a run that did not end.
fn check_text(record: &Record, run: &Run) {
    let unfinished = run.unfinished();
    for view in [View::default(), View::ALL] {
        let text = record.text(run, None, view).to_string();
        let beginnings = ["Interrupted: ", "Not finished: "];
        let beginning = beginnings.into_iter().find(|words| text.starts_with(words));
        assert_eq!(beginning.map(|words| words.trim_end_matches(": ")), unfinished, "{text}");
        assert_eq!(paragraphs_below_zero(&text), [""; 0], "{text}");
        if unfinished.is_some() {
            assert!(!text.contains("heapest"), "ranked: {text}");
            // Without the figures of a paper, which are of another run.
            let text = record.text(run, None, View { history: false, ..view }).to_string();
            assert!(!text.contains("its interval grew"), "compared: {text}");
            assert!(!text.contains(" as wide"), "compared: {text}");
        }
    }
}

/// Checks that a law of growth is above zero, and ends where the quotable sizes do.
fn check_laws(record: &RingRecord, run: &Run) {
    assert!(run.unfinished().is_none() || record.found.scaling.is_empty());
    for series in &record.found.scaling {
        let mut sizes = Vec::new();
        for case in &series.cases {
            let summary = &record.cases[*case];
            if summary.ns_per_switch_above_solo.is_some_and(|cost| cost.quote_cost().is_ok()) {
                sizes.push(summary.case.members);
            }
        }
        let (least, most) = (sizes.iter().min().copied(), sizes.iter().max().copied());
        for (members, ns) in course(&series.law) {
            assert!(ns > 0.0, "{series:?}");
            assert!(Some(members as u32) >= least && Some(members as u32) <= most, "{series:?}");
        }
    }
}

/// Returns value and ends of a cost; `None` where it is not quotable.
fn quoted_ends(cost: &Estimate) -> Option<[f64; 3]> {
    let quoted = cost.quote_cost().ok()?;
    Some([quoted.value(), quoted.low(), quoted.high()])
}

/// Checks that the response budget is the sum of its parts, and absent where one is not quotable.
fn check_sums(record: &ResponseRecord) {
    let Some(budget) = &record.found.budget else { return };
    let entry_and_handler = budget.entry_and_handler_ns.as_ref().and_then(quoted_ends);
    let switch = budget.switch_ns.as_ref().and_then(quoted_ends);
    let Some(sum) = &budget.sum_ns else {
        for wakeup in &budget.against {
            assert!(wakeup.unexplained_ns.is_none(), "{budget:?}");
        }
        assert!(entry_and_handler.is_none() || switch.is_none(), "{budget:?}");
        return;
    };
    let (one, other) = (entry_and_handler.expect("quotable"), switch.expect("quotable"));
    assert_eq!(quoted_ends(sum), Some([0, 1, 2].map(|end| one[end] + other[end])), "{budget:?}");
    for wakeup in &budget.against {
        if let Some(rest) = &wakeup.unexplained_ns {
            let measured = wakeup.measured_ns.expect("measured");
            assert_eq!(rest.value, measured.value - sum.value, "{budget:?}");
        }
    }
}

/// Returns the points of all series of a figure that have one of these roles.
fn points_of<'a>(figure: &'a Figure, roles: &[Role]) -> Vec<&'a Point> {
    let is_wanted = |series: &&Series| roles.contains(&series.role);
    figure.series().iter().filter(is_wanted).flat_map(|series| &series.points).collect()
}

/// Checks that a law lies within the measured points, and that a cost is above zero.
fn check_figures(record: &Record, run: &Run) {
    for figure in record.figures(run, 0) {
        if !matches!(figure.body, FigureBody::Series(_)) {
            continue;
        }
        assert_eq!(paragraphs_below_zero(&figure.in_words), [""; 0], "{}", figure.id);
        let measured = points_of(&figure, &[Role::Measured, Role::Bars]);
        let law = points_of(&figure, &[Role::Law]);
        assert!(law.is_empty() || run.unfinished().is_none(), "{}", figure.id);
        let first = measured.iter().map(|point| point.x).reduce(f64::min);
        let last = measured.iter().map(|point| point.x).reduce(f64::max);
        for point in law {
            let is_within = Some(point.x) >= first && Some(point.x) <= last;
            assert!(point.y > 0.0 && is_within, "{}", figure.id);
        }
        if figure.y.unit == Unit::Nanoseconds {
            for point in measured {
                assert!(is_cost(point), "{}: {:?}", figure.id, figure.series());
            }
        }
    }
}

/// Returns whether a point is above zero. A part of a whole that is not resolved from zero may end
/// below it.
fn is_cost(point: &Point) -> bool {
    let is_sure = point.certainty == PointCertainty::Sure;
    point.y > 0.0 && (!is_sure || point.low.is_some_and(|low| low > 0.0))
}

/// Checks that exports leave out what is not quotable, and have no cost below zero.
fn check_exports(run: &Run) {
    let table = String::from_utf8(summary::summary_csv(run).expect("CSV")).expect("UTF-8");
    let mut rows = ::csv::Reader::from_reader(table.as_bytes());
    let names = rows.headers().expect("names").clone();
    let column = |wanted: &str| names.iter().position(|name| name == wanted).expect("a column");
    let (estimate, value, why) = (column("estimate"), column("value"), column("not_quotable"));
    for row in rows.records().map(|row| row.expect("a row")) {
        assert_eq!(row[estimate].is_empty(), row[value].is_empty() || !row[why].is_empty());
        assert!(!row[estimate].starts_with('-'), "{row:?}");
    }
    let metrics =
        String::from_utf8(exports::openmetrics(&Results::from_run(run), None)).expect("UTF-8");
    for line in metrics.lines() {
        assert!(!line.contains("_seconds{") || !line.contains("} -"), "{metrics}");
    }
}

/// Compares a run with itself, had it ended: what did not end, or is not quotable, gives no answer.
fn check_comparison(run: &Run) {
    let whole = Run { end: Some(run_end(StopReason::RoundsDone)), ..run.clone() };
    let terms = ComparisonTerms {
        limit: LIMIT,
        confidence: 0.95,
        wanted: WantedCost::Switch,
        across: None,
    };
    let comparison =
        Comparison::from_results(&Results::from_run(&whole), &Results::from_run(run), terms);
    for change in &comparison.changes {
        let has_answer = !matches!(change.answer, ChangeAnswer::CannotTell { .. });
        assert!(run.unfinished().is_none() || !has_answer, "{change:?}");
        let not_quotable = change.base_not_quotable.is_some() || change.new_not_quotable.is_some();
        // A side that is not quotable may have a bound.
        assert!(!(has_answer && not_quotable) || change.is_bounded(), "{change:?}");
    }
}

fn run_end(reason: StopReason) -> RunEnd {
    RunEnd { reason, finished: String::new(), spent_ns: 1 }
}

fn check_findings(record: &Record, run: &Run) {
    match record {
        Record::Rings(record) => check_laws(record, run),
        Record::Response(record) => check_sums(record),
        Record::Trials(_) | Record::Explain(_) | Record::Measure(_) => {}
    }
}

/// Checks all that is said of a random run; returns whether there was one. Panics where it says what
/// cannot be.
fn try_random_run(seed: u64) -> bool {
    let Some(run) = random_run(seed) else { return false };
    let record = Record::from_run(&run);
    check_text(&record, &run);
    check_figures(&record, &run);
    check_exports(&run);
    match &record {
        Record::Measure(whole) => {
            for (part, run) in whole.parts.iter().zip(part_runs(&run)) {
                check_findings(part, &run);
            }
        }
        record => check_findings(record, &run),
    }
    if seed % 4 == 0 {
        check_comparison(&run);
    }
    true
}

#[test]
fn random_and_interrupted_runs_say_nothing_that_cannot_be() {
    let records = seeds_to_try("SWITCHCOST_RECORDS", RECORDS);
    let outcomes = try_seeds(records, try_random_run);
    assert_eq!(failed_seeds(&outcomes), [0; 0], "seeds of records that say what cannot be");
    let runs = count_runs(&outcomes);
    assert!(runs * 2 > records, "{runs} of {records} could be read");
}

//! Whatever was measured, and wherever a run was cut off, its texts, figures and records say
//! nothing that cannot be: no cost below zero that is not said to be not resolved, no law outside
//! of its data, no sum that is not that of its parts, and nothing that is built on a run that did
//! not end.

use analysis::comparison::{ChangeAnswer, Comparison, ComparisonTerms, LIMIT, WantedCost};
use analysis::estimate::Estimate;
use charts::{FigureBody, Series, Unit};
use rundata::run::{RunEnd, StopReason};
use serde_json::Value;

use super::tests::{GAPS, RUNS, Random};
use super::*;
use crate::report::output::summary;

/// Records that are tried if SWITCHCOST_RECORDS says no other number: of the core, with one of
/// gaps, of all.
const RECORDS: (u64, u64) = (50, 300);

/// What a line or the head of its column says where less than nothing is a difference.
const DIFFERENCES: [&str; 16] = [
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

/// As far as a figure of a run is moved: hardly, as noise does, or beyond all reason.
const SPREADS: [f64; 4] = [0.005, 0.05, 0.7, 3.0];

/// A factor about one, by the sum of uniform numbers.
fn factor(random: &mut Random, spread: f64) -> f64 {
    let sum: f64 = (0..4).map(|_| random.below(1001) as f64 / 1000.0 - 0.5).sum();
    (1.7 * spread * sum).exp()
}

/// Times every number of a part by a factor of its own: what was counted stays a count.
fn scatter(part: &mut Value, random: &mut Random, spread: f64) {
    match part {
        Value::Array(all) => all.iter_mut().for_each(|one| scatter(one, random, spread)),
        Value::Object(all) => {
            let kept = ["case", "round", "sample", "member", "cpu"];
            let figures = all.iter_mut().filter(|(name, _)| !kept.contains(&&***name));
            figures.for_each(|(_, one)| scatter(one, random, spread));
        }
        Value::Number(number) => {
            let times = factor(random, spread);
            let scaled = number.as_f64().unwrap_or_default() * times;
            *part = match number.is_f64() {
                true => Value::from(scaled),
                false if number.is_u64() => Value::from(scaled.round() as u64),
                false => Value::from(scaled.round() as i64),
            };
        }
        _ => {}
    }
}

/// A run of any experiment with other samples: more rounds of them, scattered, cut off anywhere.
fn made(seed: u64) -> Option<Run> {
    let random = &mut Random(seed);
    let base = if seed % 50 == 49 { GAPS } else { RUNS[random.below(RUNS.len())] };
    let (header, lines) = base.split_once('\n')?;
    let lines: Vec<Value> =
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let spread = random.of(&SPREADS);
    // Of each case its own: solos may be dearer than rings.
    let biases: Vec<f64> = (0..64).map(|_| factor(random, spread)).collect();
    let mut text = format!("{header}\n");
    let again = if seed % 50 == 49 { 1 } else { 1 + random.below(3) };
    for copy in 0..again as u64 {
        for line in lines.iter().filter(|line| line.get("sample").is_some_and(Value::is_object)) {
            let mut line = line.clone();
            let sample = line.get_mut("sample")?;
            // Of both kinds it says which.
            let kind = ["ring", "trial"].into_iter().find(|kind| sample.get(kind).is_some());
            let sample = match kind {
                Some(kind) => sample.get_mut(kind)?,
                None => sample,
            };
            let bias = biases[sample["case"].as_u64()? as usize % biases.len()];
            sample["round"] = Value::from(sample["round"].as_u64()? + 100 * copy);
            let elapsed = sample["elapsed_ns"].as_f64().map(|ns| (ns * bias).round() as u64);
            scatter(sample, random, spread);
            if let Some(elapsed) = elapsed.filter(|_| random.below(2) == 0) {
                sample["elapsed_ns"] = Value::from(elapsed);
            }
            text += &format!("{line}\n");
        }
    }
    let cut = if random.below(3) == 0 { random.below(text.len()) } else { text.len() };
    let mut run = Run::parse(&String::from_utf8_lossy(&text.as_bytes()[..cut])).ok()?;
    let reasons = [StopReason::RoundsDone, StopReason::Interrupted, StopReason::BudgetSpent];
    let end = |reason| RunEnd { reason, finished: String::new(), spent_ns: 1 };
    run.end = (random.below(4) > 0).then(|| end(random.of(&reasons)));
    Some(run)
}

/// Whether a word is a number below zero: `-12`, `(-0.4`.
fn is_below_zero(word: &str) -> bool {
    let number = word.trim_start_matches('(').trim_end_matches([',', ';', ')', '%']);
    number.starts_with('-') && number.parse::<f64>().is_ok_and(|number| number < 0.0)
}

/// Parts of a text that print less than nothing and do not say why.
fn below_zero(text: &str) -> Vec<&str> {
    let says = |part: &str| DIFFERENCES.iter().any(|word| part.contains(word));
    let joined = |part: &str| part.split_whitespace().any(is_below_zero);
    text.split("\n\n").filter(|part| joined(part) && !says(&part.replace("\n  ", " "))).collect()
}

fn check_text(record: &Record, run: &Run) {
    let unfinished = run.unfinished();
    for view in [View::default(), View::ALL] {
        let text = record.text(run, None, view).to_string();
        let start = ["Interrupted: ", "Not finished: "].into_iter().find(|of| text.starts_with(of));
        assert_eq!(start.map(|of| of.trim_end_matches(": ")), unfinished, "{text}");
        assert_eq!(below_zero(&text), [""; 0], "{text}");
        if unfinished.is_some() {
            assert!(!text.contains("heapest"), "ranked: {text}");
            // What a paper found is another run's.
            let own = record.text(run, None, View { history: false, ..view });
            assert!(!own.to_string().contains("its interval grew"), "compared: {own}");
            assert!(!own.to_string().contains(" as wide"), "compared: {own}");
        }
    }
}

fn check_laws(record: &record::RingRecord, run: &Run) {
    assert!(run.unfinished().is_none() || record.found.scaling.is_empty());
    for series in &record.found.scaling {
        let quoted = |case: &&usize| {
            let of = &record.cases[**case];
            of.ns_per_switch_above_solo.is_some_and(|cost| cost.quote_cost().is_ok())
        };
        let sizes = series.cases.iter().filter(quoted).map(|case| record.cases[*case].case.members);
        let (least, most) = (sizes.clone().min(), sizes.max());
        for (members, ns) in record::course(&series.law) {
            assert!(ns > 0.0, "{series:?}");
            assert!(Some(members as u32) >= least && Some(members as u32) <= most, "{series:?}");
        }
    }
}

fn check_sums(record: &record::ResponseRecord) {
    let Some(budget) = &record.found.budget else { return };
    let parts = budget.entry_and_handler_ns.zip(budget.switch_ns);
    let ends = |of: &Estimate| of.quote_cost().map(|of| [of.value(), of.low(), of.high()]);
    let Some(sum) = &budget.sum_ns else {
        assert!(budget.against.iter().all(|of| of.unexplained_ns.is_none()), "{budget:?}");
        let both = |(one, other): (Estimate, Estimate)| ends(&one).is_ok() && ends(&other).is_ok();
        assert!(!parts.is_some_and(both), "{budget:?}");
        return;
    };
    let (one, other) = parts.expect("parts of a sum");
    let (one, other) = (ends(&one).expect("quotable"), ends(&other).expect("quotable"));
    assert_eq!(ends(sum), Ok([0, 1, 2].map(|end| one[end] + other[end])), "{budget:?}");
    for of in budget.against.iter().filter(|of| of.unexplained_ns.is_some()) {
        let (late, rest) = (of.measured_ns.expect("measured"), of.unexplained_ns.expect("a rest"));
        assert_eq!(rest.value, late.value - sum.value, "{budget:?}");
    }
}

fn range(all: &[&Series]) -> Option<(f64, f64)> {
    let places = || all.iter().flat_map(|of| &of.points).map(|point| point.x);
    places().reduce(f64::min).zip(places().reduce(f64::max))
}

fn check_figures(record: &Record, run: &Run) {
    for figure in
        record.figures(run, 0).iter().filter(|of| matches!(of.body, FigureBody::Series(_)))
    {
        let of_role = |roles: &[Role]| {
            figure.series().iter().filter(|of| roles.contains(&of.role)).collect::<Vec<&Series>>()
        };
        let (told, laws) = (of_role(&[Role::Measured, Role::Bars]), of_role(&[Role::Law]));
        assert_eq!(below_zero(&figure.in_words), [""; 0], "{}", figure.id);
        assert!(laws.iter().all(|of| of.points.is_empty()) || run.unfinished().is_none());
        let is_within = |x: f64| range(&told).is_some_and(|(low, high)| x >= low && x <= high);
        let of_laws = || laws.iter().flat_map(|of| &of.points);
        assert!(of_laws().all(|point| point.y > 0.0 && is_within(point.x)), "{}", figure.id);
        if figure.y.unit == Unit::Nanoseconds {
            let points = || told.iter().flat_map(|of| &of.points);
            // A part of a whole that is not resolved from zero may end below it.
            let is_sure = |of: &charts::Point| of.certainty == charts::PointCertainty::Sure;
            let has_sure_ends = |of: &charts::Point| of.low.is_some_and(|low| low > 0.0);
            let is_cost = |of: &charts::Point| of.y > 0.0 && (!is_sure(of) || has_sure_ends(of));
            assert!(points().all(is_cost), "{}: {:?}", figure.id, figure.series());
        }
    }
}

fn check_exports(run: &Run) {
    let table = String::from_utf8(summary::summary_csv(run).expect("CSV")).expect("UTF-8");
    let mut rows = ::csv::Reader::from_reader(table.as_bytes());
    let names = rows.headers().expect("names").clone();
    let at = |name: &str| names.iter().position(|known| known == name).expect("a column");
    let (estimate, value, why) = (at("estimate"), at("value"), at("not_quotable"));
    for row in rows.records().map(|row| row.expect("a row")) {
        assert_eq!(row[estimate].is_empty(), row[value].is_empty() || !row[why].is_empty());
        assert!(!row[estimate].starts_with('-'), "{row:?}");
    }
    let metrics = String::from_utf8(exports::openmetrics(&Results::from_run(run))).expect("UTF-8");
    let is_cost = |line: &&str| line.contains("_seconds{");
    let costs = metrics.lines().filter(is_cost);
    assert!(costs.filter(|line| line.contains("} -")).count() == 0, "{metrics}");
}

/// Against a run that is known to be whole.
fn check_comparison(run: &Run) {
    let whole = Run { end: Some(end_of(StopReason::RoundsDone)), ..run.clone() };
    let terms = ComparisonTerms {
        limit: LIMIT,
        confidence: 0.95,
        wanted: WantedCost::Switch,
        across: None,
    };
    let found =
        Comparison::from_results(&Results::from_run(&whole), &Results::from_run(run), terms);
    for change in &found.changes {
        let is_told = !matches!(change.answer, ChangeAnswer::CannotTell { .. });
        assert!(run.unfinished().is_none() || !is_told, "{change:?}");
        let not_quotable = change.base_not_quotable.is_some() || change.new_not_quotable.is_some();
        // A bound is told of a side that may not be quoted.
        assert!(!(is_told && not_quotable) || change.is_bounded(), "{change:?}");
    }
}

fn end_of(reason: StopReason) -> RunEnd {
    RunEnd { reason, finished: String::new(), spent_ns: 1 }
}

fn check_findings(record: &Record, run: &Run) {
    match record {
        Record::Rings(of) => check_laws(of, run),
        Record::Response(of) => check_sums(of),
        Record::Trials(_) | Record::Explain(_) | Record::Measure(_) => {}
    }
}

/// Whether there was a record to look at.
fn try_one(seed: u64) -> bool {
    let Some(run) = made(seed) else { return false };
    let record = Record::from_run(&run);
    check_text(&record, &run);
    check_figures(&record, &run);
    check_exports(&run);
    match &record {
        Record::Measure(of) => {
            for (part, run) in of.parts.iter().zip(analysis::parts::part_runs(&run)) {
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
    let asked = std::env::var("SWITCHCOST_RECORDS").ok().and_then(|text| text.parse().ok());
    let records: u64 = asked.unwrap_or(testing::repeats(RECORDS.0, RECORDS.1));
    let of_part = |part: u64| {
        let seeds = (0..records).filter(move |seed| seed % 2 == part);
        let tried = seeds.map(|seed| (seed, std::panic::catch_unwind(|| try_one(seed)).ok()));
        tried.collect::<Vec<_>>()
    };
    let tried = std::thread::scope(|scope| {
        let other = scope.spawn(|| of_part(1));
        [of_part(0), other.join().expect("the other half")].concat()
    });
    let failed: Vec<u64> =
        tried.iter().filter(|(_, done)| done.is_none()).map(|(seed, _)| *seed).collect();
    assert_eq!(failed, [0; 0], "seeds of records that say what cannot be");
    let looked_at = tried.iter().filter(|(_, done)| *done == Some(true)).count() as u64;
    assert!(looked_at * 2 > records, "{looked_at} of {records} could be read");
}

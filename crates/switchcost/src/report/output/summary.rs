//! A run in one row a case: as CSV, and as a table in Markdown.

use std::collections::{BTreeMap, BTreeSet};

use analysis::estimate::Estimate;
use analysis::subject::{Measured, Quantity, Subcase, Subject};
use anyhow::Result;
use charts::clean;
use rundata::run::Run;
use rundata::words;

use super::columns::Columns;

/// The figure that stands for a case, of which a run has one estimate.
fn figure(case: &Subcase) -> Option<(Quantity, Estimate)> {
    Some((*case.figures.first_key_value()?.0, launch(case)?.estimate?))
}

fn launch(case: &Subcase) -> Option<&Measured> {
    case.figures.first_key_value()?.1.launches().first()
}

/// Columns of what else tells cases apart, behind the others, with the label that each has.
const LABELS: [(&str, &str); 14] = [
    ("walk", "walk"),
    ("huge_pages", "huge-pages"),
    ("burden", "burden"),
    ("call", "call"),
    ("primes", "primes"),
    ("bytes", "bytes"),
    ("preload", "preload"),
    ("phase", "phase"),
    ("setting", "setting"),
    ("environment", "environment"),
    ("noise", "noise"),
    ("load", "load"),
    ("timer_slack_ns", "timer-slack-ns"),
    ("cpu_latency_us", "cpu-latency-us"),
];

/// The priority under real-time policies if none is asked for.
const LOWEST_PRIORITY: &str = "1";

/// Returns a key for each case: unique within the run, and the same on every host, as titles are not.
fn keys(cases: &[Subcase]) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for case in cases {
        *counts.entry(key(case)).or_insert(0) += 1;
    }
    let mut keys = BTreeSet::new();
    let mut unique = |case: &Subcase| {
        let mut key = key(case);
        if counts[&key] > 1 {
            for (name, value) in &case.details {
                key += &format!(" {name}={value}");
            }
        }
        if !keys.insert(key.clone()) {
            key += &format!(" case={}", case.number);
        }
        key
    };
    cases.iter().map(&mut unique).collect()
}

fn key(case: &Subcase) -> String {
    let mut key = case.experiment.to_string();
    for (name, value) in &case.labels {
        key += &format!(" {name}={value}");
    }
    if let Some(priority) = priority(case).filter(|priority| *priority != LOWEST_PRIORITY) {
        key += &format!(" priority={priority}");
    }
    key
}

/// Returns the priority of a case under a real-time policy.
fn priority(case: &Subcase) -> Option<&str> {
    let (_, value) = case.details.iter().find(|(name, _)| name == "real-time priority")?;
    Some(value.as_str()).filter(|value| *value != "0")
}

/// One row a case; the guide lists the columns with their units.
pub(crate) fn summary_csv(run: &Run) -> Result<Vec<u8>> {
    summary_of(run, &Subject::of_run(run))
}

/// A case and its key.
type Row<'a> = (&'a Subcase, &'a str);

pub(super) fn summary_of(run: &Run, subject: &Subject) -> Result<Vec<u8>> {
    let keys = keys(&subject.cases);
    let header = &run.header;
    let target = &*header.build.target;
    let label = |name| move |(case, _): &Row| case.label(name).map(str::to_string);
    let estimate = |case: &Subcase| figure(case).map(|(_, estimate)| estimate);
    let mut columns = Columns::<Row>::new()
        .right("run", |_| header.run.clone())
        .known("name", |_| header.name.clone())
        .known("host", |_| header.host.clone())
        .right("experiment", |(case, _)| case.experiment)
        .right("case", |(case, _)| case.number)
        .right("title", |(case, _)| case.title.clone())
        .known("members", label("members"))
        .known("kind", label("kind"))
        .known("link", label("link"))
        .known("work_bytes", label("work"))
        .known("stride_bytes", label("stride"))
        .known("op", label("op"))
        .known("placement", label("placement"))
        .known("policy", label("policy"))
        .known("state", label("state"))
        .known("quantity", |(case, _)| Some(figure(case)?.0.in_words()))
        // The figure if it may be quoted.
        .known("estimate", |(case, _)| Some(estimate(case)?.quote_cost().ok()?.value()))
        .known("low", |(case, _)| estimate(case)?.low)
        .known("high", |(case, _)| estimate(case)?.high)
        .known("unit", |(case, _)| figure(case).map(|_| "ns"))
        // Whatever was found.
        .known("value", |(case, _)| Some(estimate(case)?.value))
        .known("not_quotable", |(case, _)| {
            Some(estimate(case)?.quote_cost().err()?.with_time_unit())
        })
        // In cycles of the core's clock, if it may be quoted; that clock.
        .known("cycles", |(case, _)| Some(launch(case)?.cycles(target)?.quote_cost().ok()?.value()))
        .known("clock_ghz", |(case, _)| launch(case)?.clock_ghz(target))
        // By which power of the clock's period the figure goes, and that one's standard error.
        .known("elasticity", |(case, _)| Some(launch(case)?.clock?.elasticity?.value))
        .known("elasticity_error", |(case, _)| {
            Some(launch(case)?.clock?.elasticity?.standard_error)
        })
        .right("quotable", |(case, _)| estimate(case).is_some_and(|of| of.quote_cost().is_ok()))
        .known("speed", |(case, _)| estimate(case).map(|of| of.speed))
        .known("rounds", |(case, _)| estimate(case).map(|of| of.rounds));
    columns = columns
        .known("priority", |(case, _)| priority(case).map(str::to_string))
        .right("key", |(_, key)| *key);
    for (column, name) in LABELS {
        columns = columns.known(column, label(name));
    }
    columns.csv(subject.cases.iter().zip(keys.iter().map(String::as_str)))
}

/// A table for a page or a comment.
pub(crate) fn markdown(run: &Run) -> Vec<u8> {
    let subject = Subject::of_run(run);
    let answer = |case: &&Subcase| figure(case)?.1.answer_cost().ok();
    let note = |case: &&Subcase| match (figure(case), &case.failure) {
        (None, Some(failure)) => format!("not measured: {failure}"),
        (None, None) => "not measured".to_string(),
        (Some((_, of)), _) => match of.answer_cost() {
            Ok(answer) => match answer.few_rounds() {
                Some(rounds) => rounds,
                None => answer.kind().to_string(),
            },
            Err(why) => why.with_time_unit(),
        },
    };
    let columns = Columns::<&Subcase>::new()
        .left("case", |case| clean(&case.title))
        .left("cost of", |case| figure(case).map_or("-", |(of, _)| of.in_words()))
        .or_dash("estimate", |case| Some(answer(case)?.brief_time()))
        .or_dash("interval", |case| {
            let (low, high) = answer(case)?.ends()?;
            Some(format!("{} to {}", words::time(low), words::time(high)))
        })
        .left("note", |case| clean(&note(case)));
    let escaped = |text: &str| clean(text).replace('|', "\\|");
    let text = format!(
        "**{}** on {}{}\n\n{}",
        escaped(run.header.called()),
        escaped(&subject.side.machine),
        run.unfinished().map_or(String::new(), |how| format!(" ({})", how.to_lowercase())),
        columns.markdown(&subject.cases)
    );
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::output::declarations;

    #[test]
    fn the_columns_of_cases_are_those_declared() {
        let run = Run::parse(include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl"))
            .expect("a run file");
        let text = String::from_utf8(summary_csv(&run).expect("CSV")).expect("UTF-8");
        let mut names: Vec<&str> = text.lines().next().expect("a heading").split(',').collect();
        names.sort_unstable();
        assert_eq!(names, declarations::names(declarations::Table::Cases));
    }
}

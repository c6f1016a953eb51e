//! `switchcost compare` on the terminal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use model::comparison::{Answer, Change, Comparison, Member, Several, Unpaired, Verdict};
use model::machine::Difference;
use model::subject::{Origin, Quantity, Side};
use model::words;
use serde::Serialize;
use textwrap::core::display_width;

use super::CompareArgs;
use crate::base::lines;
use crate::base::values::Destination;
use crate::present::output::columns::Columns;
use crate::present::output::{print_text, put_json, say_text};
use crate::present::terminal::{self, counted};

/// Differences that --verbose prints; the JSON form has all.
const MOST_DIFFERENCES: usize = 12;

/// Warnings that are printed without --verbose.
const MOST_WARNINGS: usize = 2;

/// Writes what was asked for: text, to standard error where something else has standard output, and
/// JSON.
pub(crate) fn write(found: &Comparison, paths: &[PathBuf], args: &CompareArgs) -> Result<()> {
    let text = match args.markdown {
        true => markdown(found, args),
        false => {
            let is_wide = args.ring.output.view.wide;
            lines::with_tables(is_wide, || text(found, paths, args))
        }
    };
    match args.markdown {
        true => lines::unbroken(|| put(&text, found, args)),
        false => put(&text, found, args),
    }
}

/// The same of several runs.
pub(crate) fn write_several(found: &Several, args: &CompareArgs) -> Result<()> {
    let text = lines::with_tables(args.ring.output.view.wide, || several(found));
    put(&text, found, args)
}

fn put(text: &str, found: &impl Serialize, args: &CompareArgs) -> Result<()> {
    say(text, args)?;
    put_json(found, args.ring.output.files.json.as_ref())
}

/// Says something to who reads, unless nothing is wanted: on standard error where JSON or the
/// report has standard output.
pub(crate) fn say(text: &str, args: &CompareArgs) -> Result<()> {
    let files = &args.ring.output.files;
    let is_taken = [&files.json, &args.report].contains(&&Some(Destination::Stdout));
    match is_taken {
        _ if files.quiet => {}
        true => say_text(text),
        false => print_text(text).context("cannot print the comparison")?,
    }
    Ok(())
}

fn several(found: &Several) -> String {
    let columns = Columns::<(usize, &Member)>::new()
        .left("run", |(_, run)| run.name.clone())
        .left("farthest case", |(_, run)| {
            run.farthest.as_ref().map_or("-".to_string(), |far| far.title.clone())
        })
        .or_dash("/ others", |(_, run)| Some(ratio(run.farthest.as_ref()?.ratio)))
        .right("interval", |(_, run)| interval(run.farthest.as_ref().and_then(|far| far.interval)))
        .right("differs from", |(_, run)| run.differs_from.len())
        .right("", |(number, _)| if found.odd.contains(number) { "odd" } else { "" });
    format!(
        "{}\n\n{}\n\n{}\n",
        found.in_words,
        columns.table(found.runs.iter().enumerate()),
        "/ others: its cost divided by the median of the others; differs from: number of \
                runs that it differs from in some case"
    )
}

/// The answer, the table, the warnings that matter and the verdict, ending with a newline.
fn text(found: &Comparison, paths: &[PathBuf], args: &CompareArgs) -> String {
    let is_verbose = args.ring.output.view.verbose;
    let mut parts = vec![headline(found)];
    if !found.changes.is_empty() {
        let table = columns(found, false).table(&found.changes);
        // The answer stays.
        parts.push(table.first_to_go(&["new", "base", "interval"]).to_string());
    }
    let mut lines = Vec::new();
    if is_verbose {
        lines.push(legend(found));
        lines.push(format!("base: {}\nnew:  {}", side(&found.base), side(&found.new)));
        lines.extend(differences(found));
    }
    let all = &found.conditions.warnings;
    let shown = if is_verbose { all.len() } else { MOST_WARNINGS };
    lines.extend(all.iter().take(shown).map(|warning| format!("warning: {warning}")));
    let left = all.len().saturating_sub(shown) + if is_verbose { 0 } else { found.unpaired.len() };
    if is_verbose {
        lines.extend(left_over(&found.unpaired));
        lines.extend(paths.iter().map(|path| terminal::place(Some(path))));
        lines.push(verdict(found, args));
    } else {
        lines.extend((left > 0).then(|| format!("{}: --verbose", counted(left, "further note"))));
        lines.extend(narrow_verdict(found));
    }
    parts.push(lines.join("\n"));
    terminal::page(&parts)
}

/// The verdict with its reason on the last line; where that is too wide, the reason on the line
/// before.
fn narrow_verdict(found: &Comparison) -> Vec<String> {
    let gate = &found.gate;
    let fits = |line: &&&String| display_width(line) <= lines::width();
    if let Some(line) = [&gate.in_words, &gate.brief].iter().find(fits) {
        return vec![(*line).clone()];
    }
    let reason = gate.in_words.strip_prefix(&*gate.summary).unwrap_or_default();
    vec![reason.trim_start_matches(": ").to_string(), gate.summary.clone()]
}

/// The answer to what was asked: of one case its own, of several how many have which.
fn headline(found: &Comparison) -> String {
    let answer = match &found.changes[..] {
        [change] => format!("{}: {}", name(change, &found.changes), change.in_words),
        _ => found.in_words.clone(),
    };
    let clocks = found.clocks.as_ref().filter(|_| !found.changes.is_empty());
    clocks.map_or(answer.clone(), |clocks| format!("{answer}; {}", clocks.in_words))
}

/// The gate's line. Its exit code is only given where it was asked for.
fn verdict(found: &Comparison, args: &CompareArgs) -> String {
    let line = &found.gate.in_words;
    match (args.fail_above, found.gate.verdict) {
        (Some(_), _) | (None, Verdict::Pass) => line.clone(),
        (None, _) => format!("{line} (exit code 0: no --fail-above)"),
    }
}

/// The same for a comment on a pull request.
fn markdown(found: &Comparison, args: &CompareArgs) -> String {
    let table = columns(found, true).markdown(&found.changes);
    let warnings = found.conditions.warnings.iter().take(MOST_WARNINGS);
    let warnings: String = warnings.map(|warning| format!("- {warning}\n")).collect();
    format!("**{}**\n\n{table}\n{warnings}\n{}\n", headline(found), verdict(found, args))
}

/// A side in a line.
fn side(side: &Side) -> String {
    let from = match &side.origin {
        Origin::Publication { source } => source.clone(),
        Origin::Run { session: Some(session), .. } => match session.prefix.is_empty() {
            true => format!("{}: as it is", session.arm.name()),
            false => format!("{}: {}", session.arm.name(), session.prefix.join(" ")),
        },
        Origin::Run { .. } => side.experiment.clone(),
    };
    let launches = match side.launches {
        0 | 1 => String::new(),
        count => format!(", {count} launches"),
    };
    format!("{} ({from}{launches}) on {}", side.name, side.machine)
}

fn differences(found: &Comparison) -> Vec<String> {
    let conditions = &found.conditions;
    let listed = || conditions.program.iter().chain(&conditions.bearing);
    let line = |Difference { field, base, other }: &Difference| {
        format!("differs: {field}: {base} in base, {other} in new")
    };
    let left = listed().skip(MOST_DIFFERENCES).count() + conditions.others.len();
    let more =
        (left > 0).then(|| format!("differs: {} (--json has all)", counted(left, "more field")));
    listed().take(MOST_DIFFERENCES).map(line).chain(more).collect()
}

/// Why a side may not be quoted stands beside the other, or, in 80 columns, once, where there is no
/// interval.
fn columns(found: &Comparison, is_wide: bool) -> Columns<'_, &Change> {
    let side = move |ns: f64, why: &Option<String>| match why {
        None => words::time(ns),
        Some(why) if is_wide => why.clone(),
        Some(_) => "-".to_string(),
    };
    Columns::<&Change>::new()
        // What a case costs is the cost of a switch, unless it says otherwise.
        .left("case", |change| match (name(change, &found.changes), change.of) {
            (name, Quantity::NsPerSwitchAboveSolo) => name,
            (name, of) => format!("{name} ({})", of.in_words()),
        })
        .right("base", move |change| side(change.base_ns, &change.base_not_quotable))
        .right("new", move |change| side(change.new_ns, &change.new_not_quotable))
        .or_dash("new/base", |change| change.ratio.value.filter(|_| change.has_ratio()).map(ratio))
        .right("interval", move |change| {
            let why = change.new_not_quotable.as_ref().or(change.base_not_quotable.as_ref());
            let ends = change.ratio.interval().filter(|_| change.is_tested());
            why.filter(|_| !is_wide).cloned().unwrap_or_else(|| interval(ends))
        })
        .left("answer", |change| answer(change))
}

/// The title; where several have the same, with the labels in which they differ.
fn name(change: &Change, all: &[Change]) -> String {
    let alike = || all.iter().filter(|other| other.title == change.title);
    let differs = |name: &str, value: &str| {
        alike().any(|other| other.labels.get(name).is_none_or(|other| other != value))
    };
    match label_words(&change.labels, differs) {
        apart if apart.is_empty() => change.title.clone(),
        apart => format!("{}, {apart}", change.title),
    }
}

fn label_words(labels: &BTreeMap<String, String>, is_told: impl Fn(&str, &str) -> bool) -> String {
    let told = labels.iter().filter(|(name, value)| is_told(name, value));
    told.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// Cases without a partner, those that differ in nothing but their size on one line.
fn left_over(unpaired: &[Unpaired]) -> Vec<String> {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for Unpaired { in_base, labels, why, title, .. } in unpaired {
        let whose = if *in_base { "base" } else { "new" };
        let labels = label_words(labels, |name, _| name != "members");
        let kind = format!("in {whose} only, {labels}: {why}");
        match lines.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, titles)) => titles.push(title),
            None => lines.push((kind, vec![title])),
        }
    }
    let line = |(kind, titles): (String, Vec<&str>)| {
        format!("not compared: {} ({kind})", titles.join(", "))
    };
    lines.into_iter().map(line).collect()
}

/// Three decimals around 1, else three digits.
fn ratio(ratio: f64) -> String {
    match ratio.abs() {
        0.1..10.0 => format!("{ratio:.3}"),
        1e-3..0.1 => format!("{ratio:.5}"),
        _ => terminal::figure(ratio),
    }
}

fn interval(ends: Option<(f64, f64)>) -> String {
    ends.map_or("none".to_string(), |(low, high)| format!("{} to {}", ratio(low), ratio(high)))
}

fn answer(change: &Change) -> &'static str {
    match change.answer {
        Answer::NotChanged => "not changed",
        Answer::Changed { worse: true, beyond_limit: true } => "slower  !",
        Answer::Changed { worse: true, .. } => "slower",
        Answer::Changed { worse: false, .. } => "faster",
        Answer::CannotTell { .. } => "inconclusive",
    }
}

fn legend(found: &Comparison) -> String {
    let limit = found.terms.limit * 100.0;
    let how = match found.paired {
        true => {
            "measured in one session: differences are taken within rounds, base and new: mean of \
             the middle half of the rounds"
        }
        false => {
            "base and new: at the CPU's full speed, mean of the launches; the interval has a \
             term for the scatter between launches"
        }
    };
    format!(
        "{how}\ninterval: all intervals together hold with {:.0} % confidence; not changed: the \
            interval lies within {limit:.3} %\nslower, faster: the interval excludes 1; !: the \
            ratio is above the limit too",
        found.terms.confidence * 100.0,
        limit = terminal::figure(limit)
    )
}

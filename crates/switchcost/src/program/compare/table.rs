//! `switchcost compare` on the terminal.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table};
use model::comparison::{Answer, Change, Comparison, Member, Several, Side, Unpaired, Verdict};
use model::machine::Difference;
use model::subject::{Origin, Quantity};
use model::words;

use super::CompareArgs;
use crate::base::values::Destination;
use crate::present::output::{print_text, put_json, say_text};
use crate::present::terminal::{self, counted};

/// Differences that --verbose prints; the JSON form has all.
const MOST_DIFFERENCES: usize = 12;

/// Warnings that are printed without --verbose.
const MOST_WARNINGS: usize = 2;

/// Writes what was asked for: text, to standard error where JSON has standard output, and JSON.
pub(crate) fn write(found: &Comparison, paths: &[&Path], args: &CompareArgs) -> Result<()> {
    let output = &args.ring.output;
    let text = match args.markdown {
        true => markdown(found, args),
        false => text(found, paths, args),
    };
    match &output.files.json {
        _ if output.files.quiet => {}
        Some(Destination::Stdout) => say_text(&text),
        _ => print_text(&text).context("cannot print the comparison")?,
    }
    put_json(found, output.files.json.as_ref())
}

/// The same of several runs.
pub(crate) fn write_several(found: &Several, args: &CompareArgs) -> Result<()> {
    let output = &args.ring.output;
    let text = several(found);
    match &output.files.json {
        _ if output.files.quiet => {}
        Some(Destination::Stdout) => say_text(&text),
        _ => print_text(&text).context("cannot print the comparison")?,
    }
    put_json(found, output.files.json.as_ref())
}

fn several(found: &Several) -> String {
    let row = |(number, run): (usize, &Member)| {
        let far = run.farthest.as_ref();
        let ends = far.and_then(|far| far.interval);
        [
            run.name.clone(),
            far.map_or("-".to_string(), |far| far.title.clone()),
            far.map_or("-".to_string(), |far| ratio(far.ratio)),
            ends.map_or("none".to_string(), |(low, high)| {
                format!("{} to {}", ratio(low), ratio(high))
            }),
            run.differs_from.len().to_string(),
            if found.odd.contains(&number) { "odd" } else { "" }.to_string(),
        ]
    };
    let columns = ["run", "farthest case", "/ others", "interval", "differs from", ""];
    let mut table = terminal::table(columns, found.runs.iter().enumerate().map(row));
    for left in [0, 1] {
        if let Some(column) = table.column_mut(left) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    format!(
        "{}\n\n{table}\n\n{}\n",
        terminal::wrapped(&found.in_words),
        terminal::wrapped(
            "/ others: its cost by the median of the others'; differs from: runs from which it \
             differs in some case"
        )
    )
}

/// The answer, the table, the warnings that matter and the verdict, ending with a newline.
fn text(found: &Comparison, paths: &[&Path], args: &CompareArgs) -> String {
    let is_verbose = args.ring.output.view.verbose;
    let mut parts = vec![terminal::wrapped(&headline(found))];
    if !found.changes.is_empty() {
        parts.push(table(found).to_string());
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
        lines = lines.iter().map(|line| terminal::wrapped(line)).collect();
        lines.extend(narrow_verdict(found));
    }
    parts.push(lines.join("\n"));
    terminal::page(&parts)
}

/// The verdict with its reason on the last line; where that is too wide, the reason on the line
/// before.
fn narrow_verdict(found: &Comparison) -> Vec<String> {
    let gate = &found.gate;
    let fits = |line: &&&String| line.chars().count() <= terminal::WIDTH;
    if let Some(line) = [&gate.in_words, &gate.brief].iter().find(fits) {
        return vec![(*line).clone()];
    }
    let reason = gate.in_words.strip_prefix(&*gate.summary).unwrap_or_default();
    vec![terminal::wrapped(reason.trim_start_matches(": ")), gate.summary.clone()]
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
    let row = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.trim().replace('|', "\\|")).collect();
        format!("| {} |", cells.join(" | "))
    };
    let mut lines = vec![format!("**{}**\n", headline(found))];
    lines.push(row(COLUMNS.map(String::from).to_vec()));
    lines.push("|:--|--:|--:|--:|--:|:--|".to_string());
    lines.extend(found.changes.iter().map(|change| row(cells(change, found).to_vec())));
    lines.push(String::new());
    let warnings = found.conditions.warnings.iter().take(MOST_WARNINGS);
    lines.extend(warnings.map(|warning| format!("- {warning}")));
    lines.push(format!("\n{}", verdict(found, args)));
    lines.join("\n") + "\n"
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

const COLUMNS: [&str; 6] = ["case", "base", "new", "new/base", "interval", "answer"];

fn cells(change: &Change, found: &Comparison) -> [String; 6] {
    let name = name(change, &found.changes);
    [
        // What a case costs is the cost of a switch, unless it says otherwise.
        match change.of {
            Quantity::NsPerSwitchAboveSolo => name,
            of => format!("{name} ({})", of.in_words()),
        },
        side_cost(change.base_ns, change.base_not_quotable.as_ref()),
        side_cost(change.new_ns, change.new_not_quotable.as_ref()),
        change.ratio.value.filter(|_| change.has_ratio()).map_or("-".to_string(), ratio),
        interval(change),
        answer(change),
    ]
}

/// A cost, or why it may not be quoted.
fn side_cost(ns: f64, not_quotable: Option<&String>) -> String {
    not_quotable.map_or_else(|| words::time(ns), Clone::clone)
}

fn table(found: &Comparison) -> Table {
    let mut table = terminal::table(COLUMNS, found.changes.iter().map(|of| narrow(of, found)));
    for left in [0, 5] {
        if let Some(column) = table.column_mut(left) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    table
}

/// The cells in 80 columns: why a side may not be quoted stands once, where there is no interval.
fn narrow(change: &Change, found: &Comparison) -> [String; 6] {
    let mut cells = cells(change, found);
    let sides = [&change.base_not_quotable, &change.new_not_quotable];
    for (side, why) in sides.into_iter().enumerate() {
        let Some(why) = why else { continue };
        cells[1 + side] = "-".to_string();
        cells[4].clone_from(why);
    }
    cells
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

fn interval(change: &Change) -> String {
    let ends = change.ratio.interval().filter(|_| change.is_tested());
    ends.map_or("none".to_string(), |(low, high)| format!("{} to {}", ratio(low), ratio(high)))
}

fn answer(change: &Change) -> String {
    match change.answer {
        Answer::NotChanged => "not changed".to_string(),
        Answer::Changed { worse: true, beyond_limit: true } => "slower  !".to_string(),
        Answer::Changed { worse: true, .. } => "slower".to_string(),
        Answer::Changed { worse: false, .. } => "faster".to_string(),
        Answer::CannotTell { .. } => "inconclusive".to_string(),
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
        "{how}\ninterval: all of them together hold with {:.0} % confidence; not changed: the \
         interval lies within {limit:.3} %\nslower, faster: it excludes 1; ! the ratio is above \
         the limit too",
        found.terms.confidence * 100.0,
        limit = terminal::figure(limit)
    )
}

//! `switchcost compare` on the terminal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use analysis::comparison::{
    CaseChange, ChangeAnswer, ComparedRun, ComparedSetting, Comparison, Conditions,
    PairwiseComparison, UnpairedCase, round_bound,
};
use analysis::marked::{MarkedText, SpanRole};
use analysis::measures::{self, MeasurePair};
use analysis::results::{ComparisonSide, Origin, Quantity};
use anyhow::{Context, Result};
use rundata::machine::FieldDifference;
use rundata::words;
use serde::Serialize;
use textwrap::core::display_width;

use super::CompareArgs;
use crate::base::lines::Layout;
use crate::base::values::Destination;
use crate::report::output::columns::Columns;
use crate::report::output::{print_fitted, say_fitted, write_json};
use crate::report::printout::{Printout, printout};
use crate::report::terminal::{self, counted, figure};

/// Differences that --verbose prints; the JSON form has all.
const MOST_DIFFERENCES: usize = 12;

/// Columns with longer names than this are called base and new.
const WIDEST_HEAD: usize = 14;

/// Cases that are named where they have no answer.
const MOST_TITLES: usize = 3;

/// Rows that are printed although none of them is decided.
const MOST_UNDECIDED: usize = 12;

/// Warnings that are printed without --verbose.
const MOST_WARNINGS: usize = 2;

/// Writes what was asked for: text, to standard error where something else has standard output, and
/// JSON.
pub(crate) fn write(found: &Comparison, paths: &[PathBuf], args: &CompareArgs) -> Result<()> {
    if args.markdown {
        return put(&markdown(found, args).into(), Layout::UNBROKEN, found, args);
    }
    put(&text(found, paths, args), layout(args), found, args)
}

/// The same of several runs.
pub(crate) fn write_several(found: &PairwiseComparison, args: &CompareArgs) -> Result<()> {
    put(&several(found), layout(args), found, args)
}

/// Returns the layout of the terminal with the tables that are asked for.
fn layout(args: &CompareArgs) -> Layout {
    Layout::terminal().with_wide_tables(args.ring.output.view.wide)
}

fn put(text: &Printout, layout: Layout, found: &impl Serialize, args: &CompareArgs) -> Result<()> {
    say_in(layout, text.clone(), args)?;
    write_json(found, args.ring.output.files.json.as_ref())
}

/// Says something to who reads, unless nothing is wanted: on standard error where JSON or the
/// report has standard output.
pub(crate) fn say(text: impl Into<Printout>, args: &CompareArgs) -> Result<()> {
    say_in(layout(args), text, args)
}

/// Like [`say`], as `layout` has room for it.
fn say_in(layout: Layout, text: impl Into<Printout>, args: &CompareArgs) -> Result<()> {
    let files = &args.ring.output.files;
    let is_taken = [&files.json, &args.report].contains(&&Some(Destination::Stdout));
    match is_taken {
        _ if files.quiet => {}
        true => say_fitted(text, layout),
        false => print_fitted(text, layout).context("cannot print the comparison")?,
    }
    Ok(())
}

fn several(found: &PairwiseComparison) -> Printout {
    let columns = Columns::<(usize, &ComparedRun)>::new()
        .left("run", |(_, run)| run.name.clone())
        .left("farthest case", |(_, run)| {
            run.farthest.as_ref().map_or("-".to_string(), |far| far.title.clone())
        })
        .or_dash("/ others", |(_, run)| Some(ratio(run.farthest.as_ref()?.ratio)))
        .right("interval", |(_, run)| interval(run.farthest.as_ref().and_then(|far| far.interval)))
        .right("differs from", |(_, run)| run.differs_from.len())
        .right("", |(number, _)| if found.odd.contains(number) { "odd" } else { "" });
    let table = columns.table(found.runs.iter().enumerate());
    let legend = "/ others: its cost divided by the median of the others; differs from: number of \
                  runs that it differs from in some case";
    printout![&found.in_words, "\n\n", table, format!("\n\n{legend}\n")]
}

/// The answer, the table, what was equal and what not, and the verdict where a gate was asked for;
/// ending with a newline.
fn text(found: &Comparison, paths: &[PathBuf], args: &CompareArgs) -> Printout {
    let is_verbose = args.ring.output.view.verbose;
    let mut parts: Vec<Printout> = vec![headline(found).into()];
    let rows = rows(found, args);
    let rows_are_left_out = rows.is_empty() && !found.changes.is_empty();
    if !rows.is_empty() {
        let names = column_names(found);
        let table = columns(found, &names).table(rows);
        // The answer stays.
        let mut leaving: Vec<&str> =
            measures::exported_measures().map(|measure| measure.title).collect();
        leaving.extend([names[1], names[0]]);
        parts.push(table.first_to_go(&leaving).into());
    }
    let mut lines = Vec::new();
    if rows_are_left_out {
        lines.push("--verbose lists all cases".to_string());
    }
    lines.extend(untested(found, args));
    lines.extend(nice_without_effect(found, args));
    lines.extend(conditions(found));
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
        lines.extend(left_over(&found.unpaired, found.names()));
        lines.extend(paths.iter().map(|path| terminal::run_file_line(Some(path))));
    } else {
        lines.extend((left > 0).then(|| format!("{}: --verbose", counted(left, "further note"))));
    }
    let mut lines: Vec<MarkedText> = lines.into_iter().map(MarkedText::from).collect();
    if args.fail_above.is_some() {
        lines.extend(if is_verbose {
            vec![found.gate.in_words.clone()]
        } else {
            narrow_verdict(found)
        });
    }
    parts.push(MarkedText::join(lines, "\n").into());
    Printout::paragraphs(parts)
}

/// The cases that have a row: where many have no ratio, these are told below. Of many cases of
/// which none is decided no row says more than the lines below.
fn rows<'a>(found: &'a Comparison, args: &CompareArgs) -> Vec<&'a CaseChange> {
    let all: Vec<&CaseChange> = found.changes.iter().collect();
    let (told, untold): (Vec<&CaseChange>, Vec<&CaseChange>) =
        all.iter().partition(|change| change.has_ratio() && change.ratio.value.is_some());
    let view = &args.ring.output.view;
    let is_all_wanted = view.wide || view.verbose;
    if !is_all_wanted && all.len() > MOST_UNDECIDED && !all.iter().any(|of| of.is_tested()) {
        return Vec::new();
    }
    if told.is_empty() || untold.len() <= MOST_TITLES || is_all_wanted {
        return all;
    }
    told
}

/// Why cases have no answer, each reason once with the cases that have it.
fn untested(found: &Comparison, args: &CompareArgs) -> Vec<String> {
    let (changes, names) = (&found.changes, found.names());
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for change in changes.iter().filter(|change| !change.is_tested()) {
        let Some(why) = change.why_undecided(names) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, titles)) => titles.push(name(change, changes)),
            None => reasons.push((why, vec![name(change, changes)])),
        }
    }
    let line = |(why, titles): (String, Vec<String>)| match titles.len() {
        many if many == changes.len() => format!("inconclusive: {why}"),
        many if many > MOST_TITLES => format!("inconclusive: {}: {why}", counted(many, "case")),
        _ => format!("inconclusive: {}: {why}", titles.join(", ")),
    };
    let mut lines: Vec<String> = reasons.into_iter().map(line).collect();
    lines.extend(fifo_hint(found, args));
    lines
}

/// What to measure again where other tasks kept rings from their CPU. Where the scheduler chooses
/// the CPUs, it may choose others for a real-time policy.
fn fifo_hint(found: &Comparison, args: &CompareArgs) -> Option<String> {
    if !found.would_fifo_help(&prefix_words(args)) {
        return None;
    }
    let is_free = |change: &CaseChange| {
        change.labels.get("placement").is_some_and(|placement| placement == "free")
    };
    let has_free =
        found.terms.across == Some(ComparedSetting::Placement) || found.changes.iter().any(is_free);
    let only_fifo = if has_free {
        "; the answer then holds for fifo only, under which free rings may run on other CPUs"
    } else {
        ""
    };
    Some(format!(
        "to decide it, measure both sides with --policy fifo, so that other tasks wait{only_fifo}"
    ))
}

/// Returns the words of the prefixes that were typed.
fn prefix_words(args: &CompareArgs) -> Vec<String> {
    let prefixes = args.ab.iter().flatten();
    prefixes.flat_map(|prefix| shell_words::split(prefix).unwrap_or_default()).collect()
}

/// Says that a nice value has no effect where all rings have a real-time policy.
fn nice_without_effect(found: &Comparison, args: &CompareArgs) -> Option<String> {
    let typed = prefix_words(args);
    let policy = found.policy_without_nice(&typed)?;
    Some(format!("note: nice has no effect under {policy}"))
}

/// What was equal on both sides and what was not, of what affects a switch; nothing of published
/// figures.
fn conditions(found: &Comparison) -> Option<String> {
    if [&found.base, &found.new]
        .iter()
        .any(|side| matches!(side.origin, Origin::Publication { .. }))
    {
        return None;
    }
    let across = found.terms.across.map(|across| format!("; cases differ in {across}"));
    let across = across.unwrap_or_default();
    let Conditions { bearing, same_kernel, .. } = &found.conditions;
    let [first, others @ ..] = &bearing[..] else {
        let is_session = matches!(found.new.origin, Origin::Run { session: Some(_), .. });
        let same = if is_session { "same machine, in turn" } else { "same machine and settings" };
        return Some(format!("{same}: {}{across}", found.new.machine));
    };
    let FieldDifference { field, base, other } = first;
    let more = match others.len() {
        0 => String::new(),
        many => format!(", and {} (--verbose)", counted(many, "more setting")),
    };
    let kernel = same_kernel.as_ref().map(|release| format!("same kernel {release}; "));
    let kernel = kernel.unwrap_or_default();
    Some(format!("{kernel}different {field}: {base} and {other}{more}{across}"))
}

/// The heads of both columns: what the sides are called, unless that is long or the same.
fn column_names(found: &Comparison) -> [&str; 2] {
    let labels = [&*found.base.label, &*found.new.label];
    let fits = |label: &&str| (1..=WIDEST_HEAD).contains(&display_width(label));
    if labels[0] != labels[1] && labels.iter().all(fits) { labels } else { ["base", "new"] }
}

/// The verdict with its reason on the last line; where that is too wide, the reason on the line
/// before.
fn narrow_verdict(found: &Comparison) -> Vec<MarkedText> {
    let gate = &found.gate;
    let fits = |line: &&&MarkedText| display_width(line) <= Layout::terminal().prose;
    if let Some(line) = [&gate.in_words, &gate.brief].iter().find(fits) {
        return vec![(*line).clone()];
    }
    vec![gate.worst.clone().into(), gate.summary.clone()]
}

/// The answer to what was asked, and that the clocks differ.
fn headline(found: &Comparison) -> MarkedText {
    let mut answer = found.in_words.clone();
    if let Some(clocks) = found.clocks.as_ref().filter(|_| !found.changes.is_empty()) {
        answer.push(format!("; {}", clocks.in_words));
    }
    answer
}

/// The same for a comment on a pull request.
fn markdown(found: &Comparison, args: &CompareArgs) -> String {
    let table = columns(found, &column_names(found)).markdown(&found.changes);
    let gate = args.fail_above.map(|_| found.gate.in_words.clone());
    let warnings = found.conditions.warnings.iter().take(MOST_WARNINGS).cloned();
    let notes: String = conditions(found)
        .into_iter()
        .chain(nice_without_effect(found, args))
        .chain(warnings)
        .map(|note| format!("- {note}\n"))
        .collect();
    // Who asked for a verdict reads it first; scripts find it at the beginning of a line.
    let gate = gate.map_or(String::new(), |gate| format!("{gate}\n\n"));
    let answer = format!("{gate}**{}**", headline(found));
    format!("{answer}\n\n{table}\n{notes}")
}

/// A side in a line.
fn side(side: &ComparisonSide) -> String {
    let from = match &side.origin {
        Origin::Publication { source } => source.clone(),
        Origin::Run { session: Some(session), .. } => match session.prefix.is_empty() {
            true => format!("{}: no prefix", session.arm.name()),
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
    let names = found.names();
    let listed = || conditions.program.iter().chain(&conditions.bearing);
    let line = |FieldDifference { field, base, other }: &FieldDifference| {
        format!("differs: {field}: {base} in {}, {other} in {}", names[0], names[1])
    };
    let left = listed().skip(MOST_DIFFERENCES).count() + conditions.others.len();
    let more =
        (left > 0).then(|| format!("differs: {} (--json has all)", counted(left, "more field")));
    listed().take(MOST_DIFFERENCES).map(line).chain(more).collect()
}

/// A side that may not be quoted is marked; the interval is of what is tested alone.
fn columns<'a>(found: &'a Comparison, [base, new]: &[&str; 2]) -> Columns<'a, &'a CaseChange> {
    let side = |ns: f64, why: &Option<String>| {
        format!("{}{}", if why.is_some() { "~" } else { "" }, words::time(ns))
    };
    let mark = |change: &CaseChange| if change.is_seen_only() { "~" } else { "" };
    let mut columns = Columns::<&CaseChange>::new()
        // What a case costs is the cost of a switch, unless it says otherwise.
        .left("case", |change| match (name(change, &found.changes), change.quantity) {
            (name, Quantity::NsPerSwitchAboveSolo) => name,
            (name, of) => format!("{name} ({})", of.in_words()),
        })
        .right(base, move |change| side(change.base_ns, &change.base_not_quotable))
        .right(new, move |change| side(change.new_ns, &change.new_not_quotable))
        .or_dash("change", move |change| {
            if let ChangeAnswer::Bounded { worse, ratio, .. } = change.answer {
                let sign = if worse { ">" } else { "<" };
                let told = difference(round_bound(ratio), is_factor(ratio));
                return Some(format!("{sign}{told}"));
            }
            let ratio = change.ratio_told().filter(|_| change.has_ratio())?;
            Some(format!("{}{}", mark(change), difference(ratio, is_factor(ratio))))
        })
        .or_dash("interval", |change| {
            let (low, high) = change.ratio.interval().filter(|_| change.is_tested())?;
            let is_factor = change.ratio.value.is_some_and(is_factor);
            Some(format!("{} to {}", difference(low, is_factor), difference(high, is_factor)))
        })
        .marked("answer", |change| answer(change));
    for measure in measures::exported_measures() {
        columns = columns.or_dash(measure.title, |change| {
            let MeasurePair { base, new } = *change.measures.get(measure.id)?;
            let [base, new] = [base, new].map(figure);
            Some(format!("{base}, {new}"))
        });
    }
    columns
}

/// The title; where several have the same, with the labels in which they differ.
fn name(change: &CaseChange, all: &[CaseChange]) -> String {
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
fn left_over(unpaired: &[UnpairedCase], names: [&str; 2]) -> Vec<String> {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for UnpairedCase { in_base, labels, why, title, .. } in unpaired {
        let whose = if *in_base { names[0] } else { names[1] };
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

/// Whether a ratio is told as a factor: from the double and the half on.
fn is_factor(ratio: f64) -> bool {
    !(0.5..2.0).contains(&ratio)
}

/// A ratio as a difference, `+3.2 %`, or as a factor: `13.0x`, `1/13.0`.
fn difference(ratio: f64, is_factor: bool) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match ratio {
        // Without the sign of what is rounded to nothing.
        _ if !is_factor && percent.abs() < 0.05 => "0.0 %".to_string(),
        _ if !is_factor => format!("{percent:+.1} %"),
        0.0..1.0 if ratio > 0.0 => format!("1/{}", terminal::figure(1.0 / ratio)),
        _ => format!("{}x", terminal::figure(ratio)),
    }
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

fn answer(change: &CaseChange) -> MarkedText {
    match change.answer {
        ChangeAnswer::NotChanged => "not changed".into(),
        ChangeAnswer::Changed { worse: true, beyond_limit: true } => {
            MarkedText::direction(true) + "  !"
        }
        ChangeAnswer::Changed { worse, .. } | ChangeAnswer::Bounded { worse, .. } => {
            MarkedText::direction(worse)
        }
        ChangeAnswer::CannotTell { .. } => MarkedText::new(SpanRole::Doubtful, "inconclusive"),
    }
}

fn legend(found: &Comparison) -> String {
    let limit = found.terms.limit * 100.0;
    let how = if found.paired {
        "measured in one session: differences are taken within rounds, base and new: mean of \
         the middle half of the rounds"
    } else if found.changes.iter().all(|change| change.quantity.needs_full_speed()) {
        "base and new: at the CPU's full speed, mean of the launches; the interval has a \
         term for the scatter between launches"
    } else {
        "base and new: median of the runs, mean of the sessions; the interval has a term of 7 % \
         for the scatter between sessions"
    };
    format!(
        "{how}\ninterval: all intervals together hold with {:.0} % confidence; not changed: the \
            interval lies within {limit:.3} %\nslower, faster: the interval excludes 1; !: the \
            ratio is above the limit too",
        found.terms.confidence * 100.0,
        limit = terminal::figure(limit)
    )
}

//! `switchcost compare` on the terminal and as Markdown: the answer in a sentence, a row a case, notes
//! on what was different beside it, and the verdict of the gate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use analysis::comparison::{
    CaseChange, CaseJudgement, ChangeAnswer, ComparedRun, ComparedSetting, Comparison, Conditions,
    PairwiseComparison, UnpairedCase, round_bound,
};
use analysis::marked::{MarkedText, SpanRole};
use analysis::measures::{self, MeasurePair, RingMeasure, SWITCHES_PER_HOP};
use analysis::results::{ComparisonSide, Origin, Quantity};
use anyhow::{Context, Result};
use rundata::machine::FieldDifference;
use rundata::run::{Arm, SessionHalf};
use serde::Serialize;
use textwrap::core::display_width;

use super::CompareArgs;
use crate::base::lines::Layout;
use crate::base::values::Destination;
use crate::report::output::columns::Columns;
use crate::report::output::{print_fitted, say_fitted, write_json};
use crate::report::printout::{Printout, printout};
use crate::report::terminal::{self, counted, figure};

/// Head of the column of ratios.
const CHANGE: &str = "change";

/// Most differences that --verbose prints; the JSON form has all.
const MAX_DIFFERENCES: usize = 12;

/// Columns with longer names than this are called base and new.
const MAX_HEAD_WIDTH: usize = 14;

/// Most cases without an answer that are named.
const MAX_TITLES: usize = 3;

/// Most rows that are printed although none of them is decided.
const MAX_UNDECIDED_ROWS: usize = 12;

/// Most warnings that are printed without --verbose.
const MAX_WARNINGS: usize = 2;

/// Writes what was asked for: text, to standard error where something else has standard output, and
/// JSON. `paths` is where runs were stored that have just been measured.
pub(crate) fn write(comparison: &Comparison, paths: &[PathBuf], args: &CompareArgs) -> Result<()> {
    if args.markdown {
        let text = markdown(comparison, args).into();
        return put(&text, Layout::UNBROKEN, comparison, args);
    }
    put(&text(comparison, paths, args), layout(args), comparison, args)
}

/// Like [`write()`], for three runs or more.
pub(crate) fn write_several(comparison: &PairwiseComparison, args: &CompareArgs) -> Result<()> {
    put(&text_of_several(comparison), layout(args), comparison, args)
}

/// Returns the layout of the terminal with the tables that are asked for.
fn layout(args: &CompareArgs) -> Layout {
    Layout::terminal().with_wide_tables(args.ring.output.view.wide)
}

fn put(
    text: &Printout,
    layout: Layout,
    comparison: &impl Serialize,
    args: &CompareArgs,
) -> Result<()> {
    print_in(layout, text.clone(), args)?;
    write_json(comparison, args.ring.output.files.json.as_ref())
}

/// Prints a text, unless --quiet was given: on standard error where JSON or the report has standard
/// output.
pub(crate) fn print_text(text: impl Into<Printout>, args: &CompareArgs) -> Result<()> {
    print_in(layout(args), text, args)
}

/// Like [`print_text`], in this layout.
fn print_in(layout: Layout, text: impl Into<Printout>, args: &CompareArgs) -> Result<()> {
    let files = &args.ring.output.files;
    if files.quiet {
        return Ok(());
    }
    let is_taken = [&files.json, &args.report].contains(&&Some(Destination::Stdout));
    if is_taken || args.judgements.on_stdout().is_some() {
        say_fitted(text, layout);
    } else {
        print_fitted(text, layout).context("cannot print the comparison")?;
    }
    Ok(())
}

/// A run of several, with its place among them.
struct RankedRun<'a> {
    number: usize,
    run: &'a ComparedRun,
}

fn text_of_several(comparison: &PairwiseComparison) -> Printout {
    let columns = Columns::<RankedRun>::new()
        .left("run", |row| row.run.name.clone())
        .left("farthest case", |row| {
            row.run.farthest.as_ref().map_or("-".to_string(), |far| far.title.clone())
        })
        .or_dash("/ others", |row| Some(ratio(row.run.farthest.as_ref()?.ratio)))
        .right("interval", |row| interval(row.run.farthest.as_ref().and_then(|far| far.interval)))
        .right("differs from", |row| row.run.differs_from.len())
        .right("", |row| if comparison.odd.contains(&row.number) { "odd" } else { "" });
    let rows = comparison.runs.iter().enumerate();
    let table = columns.table(rows.map(|(number, run)| RankedRun { number, run }));
    let legend = "/ others: its cost divided by the median of the others; differs from: number of \
                  runs that it differs from in some case";
    printout![&comparison.in_words, "\n\n", table, format!("\n\n{legend}\n")]
}

/// Returns the answer, the table, what was equal and what not, and the verdict where a gate was asked
/// for; ending with a newline.
fn text(comparison: &Comparison, paths: &[PathBuf], args: &CompareArgs) -> Printout {
    let is_verbose = args.ring.output.view.verbose;
    let mut parts: Vec<Printout> = vec![headline(comparison).into()];
    let rows = shown_changes(comparison, args);
    let has_hidden_rows = rows.is_empty() && !comparison.changes.is_empty();
    if !rows.is_empty() {
        let heads = column_heads(comparison);
        let table = columns(comparison, heads).table(rows);
        // On a narrow terminal the change is the last that goes, and one side without the other says
        // little.
        let mut first_to_go = Vec::new();
        for measure in measures::exported_measures() {
            if !comparison.is_of_machine() || measure.id != SWITCHES_PER_HOP.id {
                first_to_go.push(measure.title);
            }
        }
        first_to_go.extend([heads[1], heads[0]]);
        if comparison.is_of_machine() {
            first_to_go.push(SWITCHES_PER_HOP.title);
        }
        parts.push(table.first_to_go(&first_to_go).first_column_stays().into());
    }
    let mut lines = Vec::new();
    if has_hidden_rows {
        lines.push("--verbose lists all cases".to_string());
    }
    lines.extend(inconclusive_lines(comparison, args));
    lines.extend(nice_without_effect(comparison, args));
    lines.extend(conditions(comparison));
    if is_verbose {
        lines.push(legend(comparison));
        let (base, new) = (side_in_words(&comparison.base), side_in_words(&comparison.new));
        lines.push(format!("base: {base}\nnew:  {new}"));
        lines.extend(difference_lines(comparison));
    }
    let warnings = &comparison.conditions.warnings;
    let shown = if is_verbose { warnings.len() } else { MAX_WARNINGS };
    for warning in warnings.iter().take(shown) {
        lines.push(format!("warning: {warning}"));
    }
    if is_verbose {
        lines.extend(unpaired_lines(&comparison.unpaired, comparison.names()));
        lines.extend(paths.iter().map(|path| terminal::run_file_line(Some(path))));
    } else {
        let hidden = warnings.len().saturating_sub(shown) + comparison.unpaired.len();
        if hidden > 0 {
            lines.push(format!("{}: --verbose", counted(hidden, "further note")));
        }
    }
    let mut lines: Vec<MarkedText> = lines.into_iter().map(MarkedText::from).collect();
    if args.fail_above.is_some() && is_verbose {
        lines.push(comparison.gate.in_words.clone());
    } else if args.fail_above.is_some() {
        lines.extend(verdict_that_fits(comparison));
    }
    parts.push(MarkedText::join(lines, "\n").into());
    Printout::paragraphs(parts)
}

/// Returns the cases that have a row. Where many have no ratio, these are told below instead. Of many
/// cases of which none is decided, no row says more than the lines below. Of two states of the
/// machine the worst case comes first.
fn shown_changes<'a>(comparison: &'a Comparison, args: &CompareArgs) -> Vec<&'a CaseChange> {
    let changes = ordered_changes(comparison);
    let view = &args.ring.output.view;
    if view.wide || view.verbose {
        return changes;
    }
    let is_decided = changes.iter().any(|change| change.is_tested());
    if changes.len() > MAX_UNDECIDED_ROWS && !is_decided {
        return Vec::new();
    }
    let mut with_ratio = changes.clone();
    with_ratio.retain(|change| {
        let has_ratio = change.has_ratio() && change.ratio.value.is_some();
        has_ratio || change.is_none_on_one_side()
    });
    let without_ratio = changes.len() - with_ratio.len();
    if with_ratio.is_empty() || without_ratio <= MAX_TITLES { changes } else { with_ratio }
}

fn ordered_changes(comparison: &Comparison) -> Vec<&CaseChange> {
    if comparison.is_of_machine() {
        comparison.worst_first()
    } else {
        comparison.changes.iter().collect()
    }
}

/// Cases that have no answer for the same reason.
struct InconclusiveCases {
    why: String,
    titles: Vec<String>,
}

/// Returns why cases have no answer, each reason once with the cases that have it, and how to decide
/// them.
fn inconclusive_lines(comparison: &Comparison, args: &CompareArgs) -> Vec<String> {
    let mut reasons: Vec<InconclusiveCases> = Vec::new();
    for change in comparison.changes.iter().filter(|change| !change.is_tested()) {
        let Some(why) = change.why_undecided(comparison.names()) else { continue };
        let title = distinct_title(change, &comparison.changes);
        match reasons.iter_mut().find(|reason| reason.why == why) {
            Some(reason) => reason.titles.push(title),
            None => reasons.push(InconclusiveCases { why, titles: vec![title] }),
        }
    }
    let mut lines = Vec::new();
    for InconclusiveCases { why, titles } in reasons {
        lines.push(match titles.len() {
            count if count == comparison.changes.len() => format!("inconclusive: {why}"),
            count if count > MAX_TITLES => {
                format!("inconclusive: {}: {why}", counted(count, "case"))
            }
            _ => format!("inconclusive: {}: {why}", titles.join(", ")),
        });
    }
    lines.extend(fifo_hint(comparison, args));
    lines
}

/// Returns what to measure again where competing tasks kept rings from their CPU. Where the scheduler
/// chooses the CPUs, it may choose others for a real-time policy.
fn fifo_hint(comparison: &Comparison, args: &CompareArgs) -> Option<String> {
    if !comparison.would_fifo_help(&prefix_words(args)) {
        return None;
    }
    let has_free = comparison
        .changes
        .iter()
        .any(|change| change.labels.get("placement").is_some_and(|placement| placement == "free"));
    let is_across_placement = comparison.terms.across == Some(ComparedSetting::Placement);
    let limit = if has_free || is_across_placement {
        "; the answer then holds for fifo only, under which free rings may run on other CPUs"
    } else {
        ""
    };
    Some(format!(
        "to decide it, measure both sides with --policy fifo, so that other tasks wait{limit}"
    ))
}

/// Returns the words of the prefixes that were typed.
fn prefix_words(args: &CompareArgs) -> Vec<String> {
    let mut words = Vec::new();
    for prefix in args.ab.iter().flatten() {
        words.extend(shell_words::split(prefix).unwrap_or_default());
    }
    words
}

/// Returns a note that a nice value has no effect, where all rings have a real-time policy.
fn nice_without_effect(comparison: &Comparison, args: &CompareArgs) -> Option<String> {
    let policy = comparison.policy_without_nice(&prefix_words(args))?;
    Some(format!("note: nice has no effect under {policy}"))
}

/// Returns what was equal on both sides and what was not, of what affects a switch; `None` for
/// published figures.
fn conditions(comparison: &Comparison) -> Option<String> {
    for side in [&comparison.base, &comparison.new] {
        if matches!(side.origin, Origin::Publication { .. }) {
            return None;
        }
    }
    let across = match comparison.terms.across {
        Some(across) => format!("; cases differ in {across}"),
        None => String::new(),
    };
    let Conditions { bearing, same_kernel, .. } = &comparison.conditions;
    let [first, others @ ..] = &bearing[..] else {
        let is_session = matches!(comparison.new.origin, Origin::Run { session: Some(_), .. });
        let same = if is_session { "same machine, in turn" } else { "same machine and settings" };
        return Some(format!("{same}: {}{across}", comparison.new.machine));
    };
    let FieldDifference { field, base, other } = first;
    let more = match others.len() {
        0 => String::new(),
        count => format!(", and {} (--verbose)", counted(count, "more setting")),
    };
    let kernel = match same_kernel {
        Some(release) => format!("same kernel {release}; "),
        None => String::new(),
    };
    Some(format!("{kernel}different {field}: {base} and {other}{more}{across}"))
}

/// Returns the heads of the columns of both sides: what these are called, unless that is long or the
/// same. Sides that are commands have their letters.
fn column_heads(comparison: &Comparison) -> [&str; 2] {
    if let Origin::Run { session: Some(SessionHalf { command: Some(_), .. }), .. } =
        &comparison.new.origin
    {
        return [Arm::A.name(), Arm::B.name()];
    }
    let labels = [&*comparison.base.label, &*comparison.new.label];
    let fits = |label: &&str| (1..=MAX_HEAD_WIDTH).contains(&display_width(label));
    if labels[0] != labels[1] && labels.iter().all(fits) { labels } else { ["base", "new"] }
}

/// Returns the verdict with its reason on the last line; where that is too wide, the reason on the
/// line before.
fn verdict_that_fits(comparison: &Comparison) -> Vec<MarkedText> {
    let gate = &comparison.gate;
    for line in [&gate.in_words, &gate.brief] {
        if display_width(line) <= Layout::terminal().prose {
            return vec![line.clone()];
        }
    }
    vec![gate.worst.clone().into(), gate.summary.clone()]
}

/// Returns the answer to what was asked, and that the clocks differ.
fn headline(comparison: &Comparison) -> MarkedText {
    let mut answer = comparison.in_words.clone();
    if let Some(clocks) = &comparison.clocks {
        if !comparison.changes.is_empty() {
            answer.push(format!("; {}", clocks.in_words));
        }
    }
    answer
}

/// Returns the comparison as a comment on a pull request. A verdict that was asked for comes first:
/// scripts find it at the beginning of a line.
fn markdown(comparison: &Comparison, args: &CompareArgs) -> String {
    let mut text = String::new();
    if args.fail_above.is_some() {
        text += &format!("{}\n\n", comparison.gate.in_words);
    }
    let heads = column_heads(comparison);
    let table = columns(comparison, heads).markdown(ordered_changes(comparison));
    text += &format!("**{}**\n\n{table}\n", headline(comparison));
    let mut notes = Vec::new();
    notes.extend(conditions(comparison));
    notes.extend(nice_without_effect(comparison, args));
    notes.extend(comparison.conditions.warnings.iter().take(MAX_WARNINGS).cloned());
    for note in notes {
        text += &format!("- {note}\n");
    }
    text
}

/// Returns a side in a line.
fn side_in_words(side: &ComparisonSide) -> String {
    let from = match &side.origin {
        Origin::Publication { source } => source.clone(),
        Origin::Run { session: Some(session), .. } => {
            let words = session.in_words();
            match &session.command {
                Some(command) if command.line.is_empty() => words,
                Some(command) => format!("{}: {}", session.arm.name(), command.line),
                None => format!("{}: {words}", session.arm.name()),
            }
        }
        Origin::Run { .. } => side.experiment.clone(),
    };
    let launches = match side.launches {
        0 | 1 => String::new(),
        count => format!(", {count} launches"),
    };
    format!("{} ({from}{launches}) on {}", side.name, side.machine)
}

/// Returns the differences between the machines and the builds, a line each.
fn difference_lines(comparison: &Comparison) -> Vec<String> {
    let conditions = &comparison.conditions;
    let names = comparison.names();
    let mut lines = Vec::new();
    for difference in conditions.program.iter().chain(&conditions.bearing) {
        let FieldDifference { field, base, other } = difference;
        let (first, second) = (names[0], names[1]);
        lines.push(format!("differs: {field}: {base} in {first}, {other} in {second}"));
    }
    let hidden = lines.len().saturating_sub(MAX_DIFFERENCES) + conditions.others.len();
    lines.truncate(MAX_DIFFERENCES);
    if hidden > 0 {
        lines.push(format!("differs: {} (--json has all)", counted(hidden, "more field")));
    }
    lines
}

/// Returns the columns of a table of cases, with these heads of both sides. A side that is not
/// quotable is marked; only what is tested has an interval.
fn columns<'a>(comparison: &'a Comparison, [base, new]: [&str; 2]) -> Columns<'a, &'a CaseChange> {
    let mut columns = Columns::<&CaseChange>::new()
        .left("case", |change| case_title(change, &comparison.changes))
        .right(base, |change| {
            side_cost(change.quantity, change.base_ns, change.base_not_quotable.is_some())
        })
        .right(new, |change| {
            side_cost(change.quantity, change.new_ns, change.new_not_quotable.is_some())
        })
        .or_dash(CHANGE, |change| change_in_words(change))
        .or_dash("interval", |change| interval_in_words(change))
        .marked("answer", |change| answer(change));
    for measure in measures::exported_measures() {
        let is_known =
            comparison.changes.iter().any(|change| change.measures.contains_key(measure.id));
        if is_known && (measure.id != SWITCHES_PER_HOP.id || tells_switches(comparison)) {
            columns = columns.or_dash(measure.title, |change| both_values(change, measure));
        }
    }
    columns
}

/// Returns whether the switches of a hop have a column: a scheduler that switches more often may be
/// dearer at the same cost of a switch, and several items share one.
fn tells_switches(comparison: &Comparison) -> bool {
    let mut changes = comparison.changes.iter();
    comparison.is_of_machine() || changes.any(|change| change.labels.contains_key("flight"))
}

/// Writes a measure of a case on both sides: `1.00, 1.37`.
fn both_values(change: &CaseChange, measure: &RingMeasure) -> Option<String> {
    let MeasurePair { base, new } = *change.measures.get(measure.id)?;
    let [base, new] = [base, new].map(figure);
    Some(format!("{base}, {new}"))
}

/// Returns the title of a case and its quantity, unless that is the cost of a switch, or the title
/// says it.
fn case_title(change: &CaseChange, changes: &[CaseChange]) -> String {
    let title = distinct_title(change, changes);
    match change.quantity {
        Quantity::NsPerSwitchAboveSolo => title,
        quantity if quantity.is_of_trace() => title,
        quantity => format!("{title} ({})", quantity.in_words()),
    }
}

fn side_cost(quantity: Quantity, value: f64, is_rough: bool) -> String {
    let mark = if is_rough { "~" } else { "" };
    format!("{mark}{}", quantity.value_in_words(value))
}

/// Returns how much a case has changed: `+3.2 %`, or `>+3.2 %` where only a bound is known.
fn change_in_words(change: &CaseChange) -> Option<String> {
    if let ChangeAnswer::Bounded { worse, ratio, .. } = change.answer {
        let sign = if worse { ">" } else { "<" };
        let bound = difference(round_bound(ratio), is_factor(ratio));
        return Some(format!("{sign}{bound}"));
    }
    if !change.has_ratio() {
        return None;
    }
    let ratio = change.ratio_told()?;
    let mark = if change.is_seen_only() { "~" } else { "" };
    Some(format!("{mark}{}", difference(ratio, is_factor(ratio))))
}

/// Returns the interval of the change in the form of the change.
fn interval_in_words(change: &CaseChange) -> Option<String> {
    let (mark, interval) = match change.interval_as_seen() {
        Some(interval) => ("~", interval),
        None if change.is_tested() => ("", change.ratio.interval()?),
        None => return None,
    };
    let (low, high) = interval;
    let is_factor = change.ratio.value.is_some_and(is_factor);
    Some(format!("{mark}{} to {}", difference(low, is_factor), difference(high, is_factor)))
}

/// Returns the title; where several cases have the same, with the labels in which they differ.
fn distinct_title(change: &CaseChange, changes: &[CaseChange]) -> String {
    let mut namesakes = Vec::new();
    for other in changes.iter().filter(|other| other.title == change.title) {
        namesakes.push(&other.labels);
    }
    title_among(&change.title, &change.labels, &namesakes)
}

/// Returns the titles of judgements, each of which is there once: with the labels in which those of one
/// title differ, else with the number of the case in its plan.
pub(super) fn judgement_titles(judgements: &[CaseJudgement]) -> Vec<String> {
    let (mut titles, mut used) = (Vec::new(), BTreeSet::new());
    for judgement in judgements {
        let mut namesakes = Vec::new();
        for other in judgements.iter().filter(|other| other.title == judgement.title) {
            namesakes.push(other.labels);
        }
        let mut title = title_among(judgement.title, judgement.labels, &namesakes);
        if used.contains(&title) {
            title += &format!(", case {}", judgement.case);
        }
        used.insert(title.clone());
        titles.push(title);
    }
    titles
}

/// Returns a title with those labels that some case of the same title, of `namesakes`, does not have.
fn title_among(
    title: &str,
    labels: &BTreeMap<String, String>,
    namesakes: &[&BTreeMap<String, String>],
) -> String {
    let differs = |name: &str, value: &str| {
        let mut others = namesakes.iter().map(|namesake| namesake.get(name));
        others.any(|other| other.is_none_or(|other| other != value))
    };
    let labels = label_words(labels, differs);
    if labels.is_empty() { title.to_string() } else { format!("{title}, {labels}") }
}

/// Writes the labels that are wanted on a line.
fn label_words(
    labels: &BTreeMap<String, String>,
    is_wanted: impl Fn(&str, &str) -> bool,
) -> String {
    let mut words = Vec::new();
    for (name, value) in labels {
        if is_wanted(name, value) {
            words.push(format!("{name} {value}"));
        }
    }
    words.join(", ")
}

/// Cases without a partner that differ in nothing but their size.
struct UnpairedGroup<'a> {
    kind: String,
    titles: Vec<&'a str>,
}

/// Returns the cases without a partner, those that differ in nothing but their size on one line.
fn unpaired_lines(unpaired: &[UnpairedCase], names: [&str; 2]) -> Vec<String> {
    let mut groups: Vec<UnpairedGroup> = Vec::new();
    for UnpairedCase { in_base, labels, why, title, .. } in unpaired {
        let side = if *in_base { names[0] } else { names[1] };
        let labels = label_words(labels, |name, _| name != "members");
        let kind = format!("in {side} only, {labels}: {why}");
        match groups.iter_mut().find(|group| group.kind == kind) {
            Some(group) => group.titles.push(title),
            None => groups.push(UnpairedGroup { kind, titles: vec![title] }),
        }
    }
    let mut lines = Vec::new();
    for UnpairedGroup { kind, titles } in groups {
        lines.push(format!("not compared: {} ({kind})", titles.join(", ")));
    }
    lines
}

/// Returns whether a ratio is told as a factor: from the double and the half on.
fn is_factor(ratio: f64) -> bool {
    !(0.5..2.0).contains(&ratio)
}

/// Writes a ratio as a difference, `+3.2 %`, or as a factor: `13.0x`, `1/13.0`.
fn difference(ratio: f64, is_factor: bool) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if !is_factor && percent.abs() < 0.05 {
        // Without the sign of what is rounded to nothing.
        "0.0 %".to_string()
    } else if !is_factor {
        format!("{percent:+.1} %")
    } else if ratio > 0.0 && ratio < 1.0 {
        format!("1/{}", terminal::figure(1.0 / ratio))
    } else {
        format!("{}x", terminal::figure(ratio))
    }
}

/// Writes a ratio with three decimals around 1, else with three digits.
fn ratio(ratio: f64) -> String {
    match ratio.abs() {
        0.1..10.0 => format!("{ratio:.3}"),
        1e-3..0.1 => format!("{ratio:.5}"),
        _ => terminal::figure(ratio),
    }
}

fn interval(ends: Option<(f64, f64)>) -> String {
    match ends {
        Some((low, high)) => format!("{} to {}", ratio(low), ratio(high)),
        None => "none".to_string(),
    }
}

fn answer(change: &CaseChange) -> MarkedText {
    match change.answer {
        ChangeAnswer::NotChanged => "not changed".into(),
        ChangeAnswer::Changed { worse: true, beyond_limit: true } => {
            direction(change, true) + "  !"
        }
        ChangeAnswer::Changed { worse, .. } | ChangeAnswer::Bounded { worse, .. } => {
            direction(change, worse)
        }
        ChangeAnswer::CannotTell { .. } => MarkedText::new(SpanRole::Doubtful, "inconclusive"),
    }
}

fn direction(change: &CaseChange, is_more: bool) -> MarkedText {
    MarkedText::change(is_more, change.quantity.direction(is_more))
}

fn legend(comparison: &Comparison) -> String {
    let is_of_trace = comparison.changes.iter().any(|change| change.quantity.is_of_trace());
    let directions = if is_of_trace { "higher, lower" } else { "slower, faster" };
    let limit = comparison.terms.limit * 100.0;
    let how = if comparison.paired {
        "measured in one session: differences are taken within rounds, base and new: mean of \
         the middle half of the rounds"
    } else if is_of_trace {
        "base and new: all parts of the traces together; the interval has a term of 7 % for the \
         scatter between traces, with five on each side what these scatter by"
    } else if comparison.changes.iter().any(|change| change.quantity.is_of_wakes()) {
        "base and new: all rounds together, mean of the launches; the interval has a term for the \
         scatter between launches: under load 5 % of a median, 12 % of a p99; of a timer 25 %; \
         with five stored launches theirs"
    } else if comparison.changes.iter().all(|change| change.quantity.needs_full_speed()) {
        "base and new: at the CPU's full speed, mean of the launches; the interval has a \
         term for the scatter between launches"
    } else {
        "base and new: median of the runs, mean of the sessions; the interval has a term of 7 % \
         for the scatter between sessions"
    };
    format!(
        "{how}\ninterval: all intervals together hold with {:.0} % confidence; not changed: the \
            interval lies within {limit:.3} %\n{directions}: the interval excludes 1; !: the \
            ratio is above the limit too",
        comparison.terms.confidence * 100.0,
        limit = terminal::figure(limit)
    )
}

#[cfg(test)]
mod tests {
    use analysis::comparison::CaseVerdict;

    use super::*;

    #[test]
    fn each_judgement_has_a_title_that_no_other_has() {
        let labels = |cpus: &str| BTreeMap::from([("cpus".to_string(), cpus.to_string())]);
        let (one, two) = (labels("0"), labels("1"));
        let judge = |title, labels, case| CaseJudgement {
            title,
            labels,
            case,
            verdict: CaseVerdict::Lost,
            in_words: String::new(),
        };
        let judgements = [
            judge("ring of 2", &one, 0),
            judge("ring of 2", &one, 3),
            judge("ring of 2", &two, 5),
            judge("ring of 4", &two, 6),
            judge("ring of 4", &two, 7),
            judge("ring of 8", &two, 8),
        ];
        let expected = [
            "ring of 2, cpus 0",
            "ring of 2, cpus 0, case 3",
            "ring of 2, cpus 1",
            "ring of 4",
            "ring of 4, case 7",
            "ring of 8",
        ];
        assert_eq!(judgement_titles(&judgements), expected);
    }
}

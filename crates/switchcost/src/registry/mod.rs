//! The record of each experiment, and what is done with any: printed, drawn, stored, exported.
//!
//! ```text
//! Run --Record::from_run--> Record --ExperimentReport--> Printout, Figures, Tiles, RunResult
//!                           Rings, Trials, ...            by the experiment's own table.rs, answer.rs, figures.rs
//! ```
//!
//! A record is what `--json` writes. The trait [`ExperimentReport`] is its text and its charts, and
//! has an implementation for each kind of record. Records of trials are told apart once more, by
//! their findings (`trials.rs`). `measure` stands here, above all experiments, because its record is
//! made of theirs.

pub(crate) mod measure;
mod trials;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::slice;

use analysis::findings::TrialSummary;
use analysis::marked::MarkedText;
use analysis::parts::part_runs;
use analysis::program::{RatePrices, points_of, rough_points_of};
use analysis::quote::QuotedFigure;
use analysis::record::{ExplainRecord, ResponseRecord, RingRecord, TrialRecord};
use analysis::results::Results;
use analysis::summary::CaseSummary;
use analysis::summary_line;
use anstream::stream::RawStream;
use anyhow::{Context, Result, bail};
use charts::{Figure, FigureBody, PlotStyle, Role, render_text};
use rundata::experiment::{CaseKinds, Experiment};
use rundata::ring::{Policy, RingCase};
use rundata::run::{Header, Run, RunResult, StopReason};
use rundata::words;
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::failure::{print_message, usage};
use crate::base::lines::Layout;
use crate::base::values::Destination;
use crate::engine::execute::RecordedRun;
use crate::experiments::{cost, explain, response, ring};
use crate::report::figures::{rounds, with_note_on_rough};
use crate::report::output::printed::{PrintableRun, PrintedMeasure};
use crate::report::output::{
    self, ExportFormat, OutputOptions, csv, exports, history, print, rows, summary, to_json,
    trackers, write_json, write_output, write_output_with,
};
use crate::report::page::MAX_TILES;
use crate::report::printout::Printout;
use crate::report::terminal::{self, CommonFacts, View};
use crate::report::tiles::Tile;

pub(crate) use measure::MeasureRecord;

/// The record of a run, which `--json` and `runs export` write.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AnyRecord")]
pub(crate) enum Record {
    /// The record of `ring` or `cost`.
    Rings(Box<RingRecord>),
    /// The record of `clock` or `classic experiment interference`.
    Trials(Box<TrialRecord>),
    /// The record of `response`.
    Response(Box<ResponseRecord>),
    /// The record of `explain`.
    Explain(Box<ExplainRecord>),
    /// The record of `measure`, made of those of its experiments.
    Measure(Box<MeasureRecord>),
}

impl Record {
    /// Computes the record of a run.
    pub(crate) fn from_run(run: &Run) -> Self {
        match run.header.plan.experiment {
            Experiment::Measure => return Self::Measure(Box::new(MeasureRecord::from_run(run))),
            Experiment::Explain => return Self::Explain(Box::new(ExplainRecord::from_run(run))),
            _ => {}
        }
        match run.header.plan.experiment.case_kinds() {
            CaseKinds::Rings => Self::Rings(Box::new(RingRecord::from_run(run))),
            CaseKinds::Trials => Self::Trials(Box::new(TrialRecord::from_run(run))),
            CaseKinds::Both => Self::Response(Box::new(ResponseRecord::from_run(run))),
        }
    }

    fn report(&self) -> &dyn ExperimentReport {
        match self {
            Self::Rings(record) => &**record,
            Self::Trials(record) => &**record,
            Self::Response(record) => &**record,
            Self::Explain(record) => &**record,
            Self::Measure(record) => &**record,
        }
    }

    /// Returns the result in a few words, for a list of runs: `1.55 us a switch (2)` of a ring of
    /// two, else the figure that stands for the run: `114 ns getuid`.
    pub(crate) fn result(&self) -> Option<RunResult> {
        self.report().result()
    }

    /// Returns the first line of the run file.
    pub(crate) fn header(&self) -> &Header {
        self.common().header
    }

    /// Returns what every record has beside its findings.
    pub(crate) fn common(&self) -> CommonFacts<'_> {
        self.report().common()
    }

    /// Returns all that is printed, ending with a newline; `path` is where the run is stored.
    pub(crate) fn text(&self, run: &Run, path: Option<&Path>, view: View) -> Printout {
        self.report().printout(run, path, view)
    }

    /// Returns the charts. `index` is the run's place among the runs that are drawn together.
    pub(crate) fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        self.report().figures(run, index)
    }

    /// Returns the sentence that a report begins with, as the terminal does.
    pub(crate) fn headline(&self) -> MarkedText {
        self.report().headline()
    }

    /// Returns the figures that stand for the run, what matters most first.
    pub(crate) fn tiles(&self) -> Vec<Tile> {
        self.report().tiles()
    }

    /// Writes one number of the run to a file or standard output.
    ///
    /// # Errors
    /// No case has the measure, or it is open which case is meant.
    pub(crate) fn write_number(
        &self,
        run: &Run,
        asked: &PrintedMeasure,
        to: &Destination,
    ) -> Result<()> {
        let results = Results::from_run(run);
        let printable = PrintableRun::from_results(&results);
        let printable = printable.with_trials(|case| self.trial(case));
        printable.with_answer(self.report().answer_cases()).write(asked, to)
    }

    /// Returns the summary of a trial by its number in the plan; absent for a ring.
    fn trial(&self, case: usize) -> Option<&TrialSummary> {
        match self {
            Self::Rings(_) => None,
            Self::Trials(record) => record.cases.get(case),
            Self::Response(record) => record.trial(case),
            Self::Explain(record) => record.cases.get(case)?.trial(),
            Self::Measure(record) => {
                let (part, case) = record.header.plan.place_of(case)?;
                record.parts.get(part)?.trial(case)
            }
        }
    }

    /// Writes all that `output` and `metrics` (OpenMetrics with prices) ask for. The table goes to standard
    /// output, or to standard error where that belongs to a machine-readable format. One error of
    /// several is returned, the others are printed.
    fn write(
        &self,
        run: &Run,
        path: Option<&Path>,
        output: &OutputOptions,
        metrics: Option<&Destination>,
    ) -> Result<()> {
        let mut errors = Vec::new();
        if !output.files.quiet {
            let takes_stdout =
                output.files.on_stdout().is_some() || metrics == Some(&Destination::Stdout);
            let printed = self.print(run, path, output, takes_stdout);
            errors.extend(printed.context("cannot print the report").err());
        }
        if let Some(to) = &output.files.json {
            errors.extend(write_json(self, Some(to)).err());
        }
        if let Some(to) = &output.files.csv {
            errors.extend(export(run, ExportFormat::Csv, to).err());
        }
        if let Some(asked) = output.files.number() {
            errors.extend(self.write_number(run, asked, &Destination::Stdout).err());
        }
        if let Some(to) = metrics {
            errors.extend(export_prices(run, to).err());
        }
        let last = errors.pop();
        for error in errors {
            print_message(&format!("error: {error:#}"));
        }
        match last {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Prints the report of a run that was just measured, to standard error if standard output is
    /// taken.
    fn print(
        &self,
        run: &Run,
        path: Option<&Path>,
        output: &OutputOptions,
        stdout_is_taken: bool,
    ) -> io::Result<()> {
        let text = self.text(run, path, output.view);
        if stdout_is_taken {
            let text = self.with_plot(&text, run, output.view, output.plot, &io::stderr());
            output::ignore_broken_pipe(io::stderr().write_all(text.as_bytes()))
        } else {
            let text = self.with_plot(&text, run, output.view, output.plot, &io::stdout());
            print(text.as_bytes())
        }
    }

    /// Prints the report of a stored run, with its charts if they are asked for.
    pub(crate) fn show(&self, run: &Run, path: &Path, view: View, plot: bool) -> Result<()> {
        let text = self.text(run, Some(path), view);
        print(self.with_plot(&text, run, view, plot, &io::stdout()).as_bytes())
            .context("cannot print the report")
    }

    /// Returns the report in the width and colours of a stream, with its charts if they are asked
    /// for.
    fn with_plot(
        &self,
        text: &Printout,
        run: &Run,
        view: View,
        is_plotted: bool,
        stream: &(impl RawStream + AsFd),
    ) -> String {
        let layout = Layout::terminal().with_wide_tables(view.wide);
        let mut text = output::render_printout(text, layout, stream);
        if is_plotted {
            text += &self.plot(run, &output::plot_style(stream));
        }
        text
    }

    /// Draws the charts in text. Single samples by round are left to the report in HTML: they are
    /// too many for a terminal. Maps are in the report already.
    fn plot(&self, run: &Run, style: &PlotStyle) -> String {
        let mut text = String::new();
        for figure in self.figures(run, 0) {
            let has_samples = figure.series().iter().any(|series| series.role == Role::Raw);
            if !has_samples && matches!(figure.body, FigureBody::Series(_)) {
                text += &format!("\n{}", render_text(&figure, &[], style));
            }
        }
        if text.is_empty() {
            text += "\nplot: nothing was measured that can be drawn\n";
        }
        text
    }
}

/// Stores the result of a run that was just measured, and writes its report and all files that were
/// asked for.
pub(crate) fn report_new_run(taken: RecordedRun, output: &OutputOptions) -> Result<ExitCode> {
    report_with_metrics(taken, output, None)
}

/// Like [`report_new_run`]; writes the run as OpenMetrics, too, if a destination was asked for.
pub(crate) fn report_with_metrics(
    mut taken: RecordedRun,
    output: &OutputOptions,
    metrics: Option<&Destination>,
) -> Result<ExitCode> {
    taken.run.header.plan.reference.strict = output.view.strict;
    let record = Record::from_run(&taken.run);
    if let Some(result) = record.result() {
        taken.keep_result(result);
    }
    record.write(&taken.run, taken.path().as_deref(), output, metrics)?;
    // Last: a report takes seconds, in which the user may interrupt it.
    Ok(taken.exit_code())
}

/// A record of one experiment beside those of others.
pub(crate) struct NamedRecord<'a> {
    /// Name of the experiment, as the answer calls it.
    pub(crate) name: &'static str,
    /// The record.
    pub(crate) record: &'a Record,
    /// Beginning of a sentence on the run, if it did not end.
    pub(crate) unfinished: Option<&'static str>,
}

/// Returns the answer of several experiments on one machine in one sentence, without its full stop.
pub(crate) fn joint_answer(parts: &[NamedRecord]) -> MarkedText {
    let mut noise = Vec::new();
    for part in parts {
        noise.push((part.name, part.record.common().noise));
    }
    let ring = find_rings(parts, Experiment::Ring);
    let words = summary_line::in_words(ring, find_rings(parts, Experiment::Cost), &noise);
    terminal::sentence(parts.iter().find_map(|part| part.unfinished), words)
}

/// Returns the first record of rings that is of this experiment.
fn find_rings<'a>(parts: &[NamedRecord<'a>], experiment: Experiment) -> Option<&'a RingRecord> {
    for part in parts {
        if let Record::Rings(record) = part.record {
            if part.name == experiment.name() {
                return Some(record);
            }
        }
    }
    None
}

/// Writes a run in a machine-readable format. The record is computed only for JSON, which is the
/// record.
pub(crate) fn export(run: &Run, format: ExportFormat, to: &Destination) -> Result<()> {
    let bytes = match format {
        ExportFormat::Json => to_json(&Record::from_run(run))?,
        ExportFormat::Csv => return write_output_with(to, |to| csv::samples(run, to)),
        ExportFormat::SummaryCsv => summary::summary_csv(run)?,
        ExportFormat::Markdown => summary::markdown(run),
        ExportFormat::GoBench
        | ExportFormat::Openmetrics
        | ExportFormat::Bmf
        | ExportFormat::Gab
        | ExportFormat::Otava => {
            let results = Results::from_run(run);
            export_results(&results, find_rate_prices(run), format)?
        }
        ExportFormat::Rows => rows::dataset_line(Ok(run.clone()))?,
        ExportFormat::History => history::rows(run)?,
    };
    write_output(&bytes, to)
}

/// Returns results in a format that is made of them alone, with the prices of a switch where the
/// format has these.
///
/// # Errors
/// The format needs the samples of a run, or has no figure of these results.
pub(crate) fn export_results(
    results: &Results,
    prices: Option<RatePrices>,
    format: ExportFormat,
) -> Result<Vec<u8>> {
    match format {
        ExportFormat::GoBench => Ok(exports::go_bench(results)),
        ExportFormat::Openmetrics => Ok(exports::openmetrics(results, prices)),
        ExportFormat::Bmf => trackers::bmf(results),
        ExportFormat::Gab => trackers::gab(results),
        ExportFormat::Otava => trackers::otava(slice::from_ref(results)),
        ExportFormat::Json
        | ExportFormat::Csv
        | ExportFormat::SummaryCsv
        | ExportFormat::Markdown
        | ExportFormat::History
        | ExportFormat::Rows => Err(usage(format!(
            "{}: a record in JSON has no samples (accepted of it: go-bench, openmetrics, bmf, gab, \
             otava)",
            results.side.name
        ))),
    }
}

/// Returns the prices of a switch that the costs of a run give, at the clock of the run; those of
/// `cost` in a run of several experiments. Costs of too few rounds for an interval are upper estimates.
fn find_rate_prices(run: &Run) -> Option<RatePrices> {
    let parts = part_runs(run);
    let part = parts.iter().find(|part| part.header.plan.experiment == Experiment::Cost)?;
    let record = RingRecord::from_run(part);
    RatePrices::from_points(&points_of(&record, None))
        .or_else(|| RatePrices::from_rough_points(&rough_points_of(&record)))
}

/// Writes a run of `cost` as OpenMetrics, for its prices. Without these the old file stays.
///
/// # Errors
/// The run has no prices, or they cannot be written.
fn export_prices(run: &Run, to: &Destination) -> Result<()> {
    let Some(prices) = find_rate_prices(run) else {
        let why = match &run.end {
            Some(end) if end.reason != StopReason::Interrupted => {
                "two processes on one CPU had no cost of a switch in it"
            }
            _ => "it ended before two processes on one CPU had a cost of a switch",
        };
        bail!(
            "--openmetrics {to}: not written, as this run has no prices: {why} (`switchcost cost \
             --openmetrics {to}` has them, with a budget of 55 s)"
        );
    };
    let results = Results::from_run(run);
    write_output(&export_results(&results, Some(prices), ExportFormat::Openmetrics)?, to)
}

/// Text and charts of a record.
trait ExperimentReport {
    /// Returns what every record has beside its findings.
    fn common(&self) -> CommonFacts<'_>;

    /// Returns the result in a few words, for a list of runs; by default the first tile.
    fn result(&self) -> Option<RunResult> {
        first_tile(&self.tiles())
    }

    /// Returns the sentence that every report begins with.
    fn headline(&self) -> MarkedText;

    /// Returns the numbers of the cases that the first line answers with, in its order; empty where
    /// it answers with none alone.
    fn answer_cases(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns the report for a terminal; `path` is where the run is stored.
    fn printout(&self, run: &Run, path: Option<&Path>, view: View) -> Printout;

    /// Returns the charts. `index` is the run's place among the runs that are drawn together.
    fn figures(&self, run: &Run, index: usize) -> Vec<Figure>;

    /// Returns the figures that stand for the run, what matters most first.
    fn tiles(&self) -> Vec<Tile>;
}

/// Returns the first tile in a few words.
fn first_tile(tiles: &[Tile]) -> Option<RunResult> {
    let tile = tiles.first()?;
    let text = format!("{} {} {}", tile.figure(), tile.unit, tile.name);
    Some(RunResult { text, is_rough: !tile.mark.is_empty() })
}

/// Adds the charts of single rounds to those of an experiment, and a note where figures are rough.
fn with_rounds(mut figures: Vec<Figure>, run: &Run, index: usize) -> Vec<Figure> {
    let mut samples = rounds::ring_values(run);
    samples.extend(rounds::trial_values(run));
    figures.extend(rounds::rounds_figure(samples, index));
    figures.into_iter().map(with_note_on_rough).collect()
}

impl ExperimentReport for RingRecord {
    fn common(&self) -> CommonFacts<'_> {
        CommonFacts { speed: &self.found.speed, ..CommonFacts::from_record(self) }
    }

    fn result(&self) -> Option<RunResult> {
        switch_of_smallest_ring(&self.cases)
    }

    fn printout(&self, run: &Run, path: Option<&Path>, view: View) -> Printout {
        let text = match &self.found.cost {
            Some(found) => cost::table::text(self, found, view),
            None => ring::table::text(self, view),
        };
        terminal::report(run, text, &self.common(), path, view)
    }

    fn headline(&self) -> MarkedText {
        match &self.found.cost {
            Some(found) => cost::answer::headline(self, found),
            None => ring::answer::headline(self),
        }
    }

    fn answer_cases(&self) -> Vec<usize> {
        answer_ring(&self.cases).into_iter().collect()
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        let figures = match &self.found.cost {
            Some(found) => cost::figures::figures(self, found, index),
            None => ring::figures::figures(run, self, index),
        };
        with_rounds(figures, run, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        match &self.found.cost {
            Some(found) => cost::figures::tiles(self, found),
            None => ring::figures::tiles(self),
        }
    }
}

/// Returns the number of the ring that [`switch_of_smallest_ring`] is of; absent without one.
fn answer_ring(cases: &[CaseSummary]) -> Option<usize> {
    let smallest = smallest_ring(cases)?;
    let mut ring = &smallest.case;
    if smallest.ns_per_switch_above_solo.is_some_and(|cost| cost.quote_cost().is_err()) {
        if let Some((twin, _)) = quotable_twin_under_fifo(cases, ring) {
            ring = twin;
        }
    }
    cases.iter().position(|summary| summary.case == *ring)
}

/// Returns the cost of a switch in the smallest ring that has a figure. Where that is not quotable
/// under the normal policy, the ring of this size under fifo stands for it, if its cost is. Where no
/// switch is resolved from the solo ring, the result is the time of a hop.
fn switch_of_smallest_ring(cases: &[CaseSummary]) -> Option<RunResult> {
    let smallest = smallest_ring(cases)?;
    let Some(cost) = smallest.ns_per_switch_above_solo else { return item_of(smallest) };
    if cost.quote_cost().is_err() {
        if let Some((twin, cost)) = quotable_twin_under_fifo(cases, &smallest.case) {
            let text = switch_in_words(&words::time(cost.value()), twin);
            return Some(RunResult { text, is_rough: false });
        }
    }
    Some(match cost.answer_cost() {
        Ok(cost) => RunResult {
            text: switch_in_words(&cost.brief_time(), &smallest.case),
            is_rough: cost.is_rough(),
        },
        Err(why) => match smallest.ns_per_hop.map(|hop| hop.answer_cost()) {
            Some(Ok(hop)) => RunResult {
                text: format!("{} a hop ({})", hop.brief_time(), smallest.case.members),
                is_rough: hop.is_rough(),
            },
            Some(Err(_)) | None => RunResult { text: why.with_time_unit(), is_rough: false },
        },
    })
}

/// Returns the time of an item of a ring with several under way: `310 ns an item (16 under way)`.
fn item_of(ring: &CaseSummary) -> Option<RunResult> {
    let flight = ring.case.flight?.in_words();
    let time = ring.ns_per_hop?.answer_cost().ok()?;
    let text = format!("{} an item ({flight})", time.brief_time());
    Some(RunResult { text, is_rough: time.is_rough() })
}

/// Returns the first ring of several members whose switch has a figure; else the first of all.
fn smallest_ring(cases: &[CaseSummary]) -> Option<&CaseSummary> {
    let mut first = None;
    for summary in cases {
        if summary.case.members > 1 {
            if summary.ns_per_switch_above_solo.is_some_and(|cost| cost.answer_cost().is_ok()) {
                return Some(summary);
            }
            first = first.or(Some(summary));
        }
    }
    first
}

/// Returns the case under fifo that is otherwise the same as a case with the normal policy, with its
/// cost, if that is quotable.
fn quotable_twin_under_fifo<'a>(
    cases: &'a [CaseSummary],
    case: &RingCase,
) -> Option<(&'a RingCase, QuotedFigure)> {
    if case.policy != Policy::Other {
        return None;
    }
    let under_fifo = RingCase { policy: Policy::Fifo, ..case.clone() };
    let twin = cases.iter().find(|summary| summary.case == under_fifo)?;
    let cost = twin.ns_per_switch_above_solo?.quote_cost().ok()?;
    Some((&twin.case, cost))
}

/// Returns `1.55 us a switch (2)`, with the policy if it is not the normal one.
fn switch_in_words(cost: &str, case: &RingCase) -> String {
    let policy = if case.policy == Policy::Fifo { ", fifo" } else { "" };
    format!("{cost} a switch ({}{policy})", case.members)
}

impl ExperimentReport for TrialRecord {
    fn common(&self) -> CommonFacts<'_> {
        CommonFacts { ns_per_tick: self.found.ns_per_tick, ..CommonFacts::from_record(self) }
    }

    fn result(&self) -> Option<RunResult> {
        trials::result(self)
    }

    fn printout(&self, run: &Run, path: Option<&Path>, view: View) -> Printout {
        if let Some(printout) = trials::own_printout(self, run, path, view) {
            return printout;
        }
        let mut text = trials::text(self, view);
        if let Some(cpu) = self.cases.first().and_then(|case| case.case.measured_cpu()) {
            text.heading = format!(", on CPU {cpu}");
        }
        terminal::report(run, text, &self.common(), path, view)
    }

    fn headline(&self) -> MarkedText {
        trials::text(self, View::default()).headline
    }

    fn answer_cases(&self) -> Vec<usize> {
        trials::answer_cases(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        let figures = trials::figure(self, index).into_iter().collect();
        if self.header.plan.experiment == Experiment::Trace {
            // Its parts are no repetitions of each other, and in its own chart.
            return figures;
        }
        with_rounds(figures, run, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        trials::tiles(self)
    }
}

impl ExperimentReport for ResponseRecord {
    fn common(&self) -> CommonFacts<'_> {
        CommonFacts { ns_per_tick: self.found.ns_per_tick, ..CommonFacts::from_record(self) }
    }

    fn printout(&self, run: &Run, path: Option<&Path>, view: View) -> Printout {
        terminal::report(run, response::table::text(self, view), &self.common(), path, view)
    }

    fn headline(&self) -> MarkedText {
        response::answer::headline(self)
    }

    fn answer_cases(&self) -> Vec<usize> {
        response::answer::answer_cases(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        with_rounds(response::figures::figures(self, index), run, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        response::figures::tiles(self)
    }
}

impl ExperimentReport for ExplainRecord {
    fn common(&self) -> CommonFacts<'_> {
        CommonFacts { ns_per_tick: self.found.ns_per_tick, ..CommonFacts::from_record(self) }
    }

    fn result(&self) -> Option<RunResult> {
        let whole = self.found.explained.as_ref()?.whole_ns?.answer_cost().ok()?;
        let policy = explain::table::policy_words(self);
        let text = format!("{} a switch{policy}, all included", whole.brief_time());
        Some(RunResult { text, is_rough: whole.is_rough() })
    }

    fn printout(&self, run: &Run, path: Option<&Path>, view: View) -> Printout {
        terminal::report(run, explain::table::text(self, view), &self.common(), path, view)
    }

    fn headline(&self) -> MarkedText {
        explain::answer::headline(self)
    }

    fn answer_cases(&self) -> Vec<usize> {
        // The switch as a whole is the first of the cases behind those of the plan.
        vec![self.header.plan.cases.len()]
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        with_rounds(explain::figures::figures(self, index), run, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        explain::figures::tiles(self)
    }
}

impl ExperimentReport for MeasureRecord {
    fn common(&self) -> CommonFacts<'_> {
        CommonFacts {
            header: &self.header,
            noise: &self.noise,
            speed: &self.speed,
            ns_per_tick: None,
            precision: self.worst_precision,
        }
    }

    fn result(&self) -> Option<RunResult> {
        self.parts.iter().find_map(Record::result)
    }

    fn printout(&self, _run: &Run, path: Option<&Path>, view: View) -> Printout {
        measure::table::text(self, path, view)
    }

    fn headline(&self) -> MarkedText {
        measure::table::answer(self) + "."
    }

    fn answer_cases(&self) -> Vec<usize> {
        let mut cases = Vec::new();
        for (part, (_, numbers)) in self.parts.iter().zip(self.header.plan.spans()) {
            for case in part.report().answer_cases() {
                cases.push(numbers.start + case);
            }
        }
        cases
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (part, part_run) in self.parts.iter().zip(&part_runs(run)) {
            figures.extend(part.figures(part_run, index));
        }
        figures
    }

    fn tiles(&self) -> Vec<Tile> {
        let tiles: Vec<Vec<Tile>> = self.parts.iter().map(Record::tiles).collect();
        Tile::in_turn(&tiles, MAX_TILES)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::report::figures::tests::fixture;

    #[test]
    fn a_run_without_prices_leaves_the_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchcost.prom");
        fs::write(&path, "old").unwrap();
        let error = export_prices(&fixture(), &Destination::File(path.clone())).unwrap_err();
        assert!(error.to_string().contains("`switchcost cost --openmetrics "), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}
#[cfg(test)]
mod damaged_file_tests;
#[cfg(test)]
mod nonsense_tests;
#[cfg(test)]
mod trials_tests;

//! Which record an experiment has, and what is done with any: printed, drawn, exported. The registry
//! above all experiments: `measure` is made of others' records, so that it stands here too.

pub(crate) mod measure;
mod records;
mod trials;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use analysis::marked::MarkedText;
use analysis::results::Results;
use analysis::{record, summary_line};
use anstream::stream::RawStream;
use anyhow::{Context, Result};
use charts::{Figure, FigureBody, PlotStyle, Role, render_text};
use rundata::experiment::{CaseKinds, Experiment};
use rundata::run::{Header, Run, RunResult};
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::failure::print_message;
use crate::base::lines::Layout;
use crate::base::values::Destination;
use crate::report::output::{
    self, ExportFormat, OutputOptions, csv, exports, history, print, rows, summary, to_json,
    write_json, write_output, write_output_with,
};
use crate::report::printout::Printout;
use crate::report::terminal::{self, CommonFacts, View};
use crate::report::tiles::Tile;

use records::Reported;

pub(crate) use measure::MeasureRecord;

/// What `--json` writes of a run, and what `runs export` does.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AnyRecord")]
pub(crate) enum Record {
    /// Of `ring` and `cost`.
    Rings(Box<record::RingRecord>),
    /// Of `clock` and `classic experiment interference`.
    Trials(Box<record::TrialRecord>),
    /// Of `response`.
    Response(Box<record::ResponseRecord>),
    /// Of `explain`.
    Explain(Box<record::ExplainRecord>),
    /// Of `measure`: of each of its experiments.
    Measure(Box<MeasureRecord>),
}

impl Record {
    /// Computes the record of a run.
    pub(crate) fn from_run(run: &Run) -> Self {
        if run.header.plan.experiment == Experiment::Measure {
            return Self::Measure(Box::new(MeasureRecord::from_run(run)));
        }
        match run.header.plan.experiment.case_kinds() {
            CaseKinds::Both if run.header.plan.experiment == Experiment::Explain => {
                Self::Explain(Box::new(record::ExplainRecord::from_run(run)))
            }
            CaseKinds::Rings => Self::Rings(Box::new(record::RingRecord::from_run(run))),
            CaseKinds::Trials => Self::Trials(Box::new(record::TrialRecord::from_run(run))),
            CaseKinds::Both => Self::Response(Box::new(record::ResponseRecord::from_run(run))),
        }
    }

    /// Returns what the experiment makes of its record.
    fn reported(&self) -> &dyn Reported {
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
        self.reported().result()
    }

    /// Returns the first line of the run file.
    pub(crate) fn header(&self) -> &Header {
        self.common().header
    }

    /// Returns what every record has beside its findings.
    pub(crate) fn common(&self) -> CommonFacts<'_> {
        self.reported().common()
    }

    /// Returns all that is printed, ending with a newline; `path` is where the run is stored.
    pub(crate) fn text(&self, run: &Run, path: Option<&Path>, view: View) -> Printout {
        self.reported().printout(run, path, view)
    }

    /// Returns the charts. `index` is the run's place among the runs that are drawn together.
    pub(crate) fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        self.reported().figures(run, index)
    }

    /// Returns the sentence that a report begins with, as the terminal does.
    pub(crate) fn headline(&self) -> MarkedText {
        self.reported().headline()
    }

    /// Returns the figures that stand for the run, what matters most first.
    pub(crate) fn tiles(&self) -> Vec<Tile> {
        self.reported().tiles()
    }

    /// Writes all that `output` asks for. The table goes to standard output, or to standard error
    /// where that belongs to a machine-readable format.
    pub(crate) fn write(
        &self,
        run: &Run,
        path: Option<&Path>,
        output: &OutputOptions,
    ) -> Result<()> {
        let mut errors = Vec::new();
        if !output.files.quiet {
            let is_taken =
                [&output.files.json, &output.files.csv].contains(&&Some(Destination::Stdout));
            let text = self.text(run, path, output.view);
            let printed = if is_taken {
                let text = self.shown(&text, run, output.view, output.plot, &io::stderr());
                output::ignore_broken_pipe(io::stderr().write_all(text.as_bytes()))
            } else {
                let text = self.shown(&text, run, output.view, output.plot, &io::stdout());
                print(text.as_bytes())
            };
            errors.extend(printed.context("cannot print the report").err());
        }
        let json = output.files.json.as_ref().and_then(|to| write_json(self, Some(to)).err());
        let csv = output.files.csv.as_ref().and_then(|to| export(run, ExportFormat::Csv, to).err());
        errors.extend(json.into_iter().chain(csv));
        // The last is told by whoever asked; the others would be lost.
        let last = errors.pop();
        errors.iter().for_each(|error| print_message(&format!("error: {error:#}")));
        last.map_or(Ok(()), Err)
    }

    /// Prints the report of a stored run, with its charts if they are asked for.
    pub(crate) fn show(&self, run: &Run, path: &Path, view: View, plot: bool) -> Result<()> {
        let text = self.text(run, Some(path), view);
        print(self.shown(&text, run, view, plot, &io::stdout()).as_bytes())
            .context("cannot print the report")
    }

    /// The report as a stream shows it, with its charts if they are asked for.
    fn shown(
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
            text += &self.plotted(run, &output::plot_style(stream));
        }
        text
    }

    /// Its charts in text. Single samples by round are left to the report in HTML: they are too
    /// many for a terminal. Maps are in the report already.
    fn plotted(&self, run: &Run, look: &PlotStyle) -> String {
        let is_raw = |figure: &Figure| figure.series().iter().any(|of| of.role == Role::Raw);
        let is_shown =
            |figure: &Figure| !is_raw(figure) && matches!(figure.body, FigureBody::Series(_));
        let figures = self.figures(run, 0).into_iter().filter(is_shown);
        let drawn: String =
            figures.map(|figure| format!("\n{}", render_text(&figure, &[], look))).collect();
        match drawn.is_empty() {
            true => "\nplot: nothing was measured that can be drawn\n".to_string(),
            false => drawn,
        }
    }
}

/// What runs of several experiments say together, each with its name and what is said of it if it
/// did not end.
pub(crate) fn sentence(all: &[(&'static str, &Record, Option<&'static str>)]) -> MarkedText {
    let rings = |experiment: Experiment| {
        all.iter().find_map(|(name, record, _)| match record {
            Record::Rings(record) if *name == experiment.name() => Some(&**record),
            _ => None,
        })
    };
    let noise: Vec<_> = all.iter().map(|(name, of, _)| (*name, of.common().noise)).collect();
    let words = summary_line::in_words(rings(Experiment::Ring), rings(Experiment::Cost), &noise);
    terminal::sentence(all.iter().find_map(|(.., unfinished)| *unfinished), words)
}

/// Writes a run in a machine-readable format. The record is computed only for the one that is the
/// record.
pub(crate) fn export(run: &Run, format: ExportFormat, to: &Destination) -> Result<()> {
    let bytes = match format {
        ExportFormat::Json => to_json(&Record::from_run(run))?,
        ExportFormat::Csv => return write_output_with(to, |to| csv::samples(run, to)),
        ExportFormat::SummaryCsv => summary::summary_csv(run)?,
        ExportFormat::Markdown => summary::markdown(run),
        ExportFormat::GoBench => exports::go_bench(&Results::from_run(run)),
        ExportFormat::Openmetrics => exports::openmetrics(&Results::from_run(run)),
        ExportFormat::Rows => rows::dataset_line(Ok(run.clone()))?,
        ExportFormat::History => history::rows(run)?,
    };
    write_output(&bytes, to)
}

#[cfg(test)]
mod nonsense;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trials_tests;

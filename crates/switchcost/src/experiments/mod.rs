//! What this program makes of a run, whatever was measured: the registry above the experiments, a
//! folder each. In one `mod` is what may be typed, `plan` the plan from it, `table` and `figures`
//! what is shown.

pub(crate) mod clock;
pub(crate) mod cost;
mod events;
pub(crate) mod explain;
pub(crate) mod interference;
pub(crate) mod links;
pub(crate) mod measure;
pub(crate) mod measures;
pub(crate) mod response;
pub(crate) mod ring;
pub(crate) mod sensitivity;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use analysis::findings::Findings;
use analysis::marked::MarkedText;
use analysis::subject::Subject;
use analysis::summary::CaseSummary;
use analysis::{record, summary_line};
use anstream::stream::RawStream;
use anyhow::{Context, Result};
use charts::{Body, Figure, Look, Role, terminal as plot};
use rundata::experiment::{Experiment, Takes};
use rundata::ring::{Case, Policy};
use rundata::run::{Header, Run};
use rundata::words;
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::failure::say;
use crate::base::lines;
use crate::base::values::Destination;
use crate::present::figures::{rounds, with_note_on_rough};
use crate::present::output::{
    self, ExportFormat, Output, csv, exports, history, print, put, put_by, put_json, rows, summary,
    to_json,
};
use crate::present::page::MOST_TILES;
use crate::present::terminal::{self, Common, Text, View};
use crate::present::tiles::Tile;

pub(crate) use measure::MeasureRecord;

/// Returns `1.55 us a switch (2)`, with the policy if it is not the normal one.
fn switch_in_words(cost: &str, case: &Case) -> String {
    let policy = if case.policy == Policy::Fifo { ", fifo" } else { "" };
    format!("{cost} a switch ({}{policy})", case.members)
}

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
    pub(crate) fn of(run: &Run) -> Self {
        if run.header.plan.experiment == Experiment::Measure {
            return Self::Measure(Box::new(MeasureRecord::from_run(run)));
        }
        match run.header.plan.experiment.takes() {
            Takes::Both if run.header.plan.experiment == Experiment::Explain => {
                Self::Explain(Box::new(record::ExplainRecord::of(run)))
            }
            Takes::Rings => Self::Rings(Box::new(record::RingRecord::of(run))),
            Takes::Trials => Self::Trials(Box::new(record::TrialRecord::of(run))),
            Takes::Both => Self::Response(Box::new(record::ResponseRecord::of(run))),
        }
    }

    /// What it says in a few words, for a list of runs: `1.55 us a switch (2)` of a ring of two, of
    /// what is no ring the figure that stands for it: `114 ns getuid`.
    pub(crate) fn result(&self) -> Option<String> {
        let cost = |cases: &[CaseSummary]| {
            let rings = || cases.iter().filter(|case| case.case.members > 1);
            let is_known = |case: &&CaseSummary| {
                case.ns_per_switch_above_solo.is_some_and(|cost| cost.answer_cost().is_ok())
            };
            let smallest = rings().find(is_known).or(rings().next())?;
            let own = smallest.ns_per_switch_above_solo?;
            // A normal ring that others kept from the CPU was measured under fifo, too.
            let normal = Case { policy: Policy::Other, ..smallest.case.clone() };
            let under_fifo = Case { policy: Policy::Fifo, ..normal.clone() };
            let twin = cases.iter().find(|of| normal == smallest.case && of.case == under_fifo);
            let twin = twin.and_then(|of| of.ns_per_switch_above_solo?.quote_cost().ok());
            match (own.quote_cost(), twin) {
                (Err(_), Some(cost)) => {
                    Some(switch_in_words(&words::time(cost.value()), &under_fifo))
                }
                _ => Some(match own.answer_cost() {
                    Ok(cost) => switch_in_words(&cost.brief_time(), &smallest.case),
                    // Where the switch is not resolved from the solo ring, a hop still is known.
                    Err(why) => match smallest.ns_per_hop.map(|hop| hop.answer_cost()) {
                        Some(Ok(hop)) => {
                            format!("{} a hop ({})", hop.brief_time(), smallest.case.members)
                        }
                        Some(Err(_)) | None => why.of_time(),
                    },
                }),
            }
        };
        match self {
            Self::Rings(of) => cost(&of.cases),
            Self::Explain(of) => {
                let whole = of.found.explained.as_ref()?.whole_ns?.answer_cost().ok()?;
                let policy = explain::table::policy_words(of);
                Some(format!("{} a switch{policy}, all included", whole.brief_time()))
            }
            Self::Measure(of) => of.parts.iter().find_map(Self::result),
            Self::Trials(_) | Self::Response(_) => {
                let tile = self.tiles().into_iter().next()?;
                Some(format!("{} {} {}", tile.figure(), tile.unit, tile.name))
            }
        }
    }

    /// The first line of the run file.
    pub(crate) fn header(&self) -> &Header {
        match self {
            Self::Rings(of) => &of.header,
            Self::Trials(of) => &of.header,
            Self::Response(of) => &of.header,
            Self::Explain(of) => &of.header,
            Self::Measure(of) => &of.header,
        }
    }

    /// What every record has beside its findings.
    pub(crate) fn common(&self) -> Common<'_> {
        let (noise, precision, speed, ns_per_tick) = match self {
            Self::Rings(of) => (&of.noise, of.worst_precision, &of.found.speed[..], None),
            Self::Trials(of) => (&of.noise, of.worst_precision, &[][..], of.found.ns_per_tick),
            Self::Response(of) => (&of.noise, of.worst_precision, &[][..], of.found.ns_per_tick),
            Self::Explain(of) => (&of.noise, of.worst_precision, &[][..], of.found.ns_per_tick),
            Self::Measure(of) => (&of.noise, of.worst_precision, &of.speed[..], None),
        };
        Common { noise, speed, ns_per_tick, precision }
    }

    /// All that is printed of it, ending with a newline; `path` is where the run is stored.
    pub(crate) fn text(&self, run: &Run, path: Option<&Path>, view: View) -> MarkedText {
        if let Self::Measure(of) = self {
            return measure::table::text(of, path, view);
        }
        lines::with_tables(view.wide, || {
            terminal::report(run, self.parts(view), &self.common(), path, view)
        })
    }

    /// What its experiment says of it.
    fn parts(&self, view: View) -> Text {
        match self {
            Self::Rings(of) => match &of.found.cost {
                Some(found) => cost::table::text(of, found, view),
                None => ring::table::text(of, view),
            },
            Self::Response(of) => crate::experiments::response::table::text(of, view),
            Self::Explain(of) => explain::table::text(of, view),
            Self::Measure(of) => {
                let headline = measure::table::sentence(of) + ".";
                Text { headline, ..Text::default() }
            }
            Self::Trials(of) => {
                let text = match &of.found.findings {
                    Some(Findings::Interference(found)) => {
                        interference::table::text(of, found, view)
                    }
                    Some(Findings::Sensitivity(found)) => sensitivity::table::text(of, found),
                    _ => clock::text(of, view),
                };
                let cpu = of.cases.first().map(|case| format!(", on CPU {}", case.case.cpu));
                Text { heading: cpu.unwrap_or_default(), ..text }
            }
        }
    }

    /// Its charts. `run` is the run that it is of, `index` its place among the runs that are drawn
    /// together.
    pub(crate) fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        if let Self::Measure(of) = self {
            let runs = analysis::parts::part_runs(run);
            let parts = of.parts.iter().zip(&runs);
            return parts.flat_map(|(part, run)| part.figures(run, index)).collect();
        }
        let mut all = match self {
            Self::Rings(of) => match &of.found.cost {
                Some(found) => cost::figures::figures(of, found, index),
                None => ring::figures::figures(run, of, index),
            },
            Self::Response(of) => crate::experiments::response::figures::figures(of, index),
            Self::Explain(of) => explain::figures::figures(of, index),
            Self::Measure(_) => Vec::new(),
            Self::Trials(of) => {
                let found = match &of.found.findings {
                    Some(Findings::Interference(found)) => {
                        interference::table::figure(of, found, index)
                    }
                    Some(Findings::Sensitivity(found)) => {
                        sensitivity::figures::figure(found, index)
                    }
                    _ => clock::figure(of, index),
                };
                found.into_iter().collect()
            }
        };
        let mut seen = rounds::of_rings(run);
        seen.extend(rounds::of_trials(run));
        all.extend(rounds::figure(seen, index));
        all.into_iter().map(with_note_on_rough).collect()
    }

    /// What a report begins with, as the terminal does.
    pub(crate) fn headline(&self) -> MarkedText {
        match self {
            Self::Rings(of) => match &of.found.cost {
                Some(found) => cost::answer::headline(of, found),
                None => ring::answer::headline(of),
            },
            Self::Response(of) => crate::experiments::response::answer::headline(of),
            Self::Explain(of) => explain::answer::headline(of),
            Self::Measure(of) => measure::table::sentence(of) + ".",
            Self::Trials(of) => match &of.found.findings {
                Some(Findings::Interference(found)) => {
                    interference::table::text(of, found, View::default()).headline
                }
                _ => clock::text(of, View::default()).headline,
            },
        }
    }

    /// Figures that stand for it, what matters most first.
    pub(crate) fn tiles(&self) -> Vec<Tile> {
        match self {
            Self::Rings(of) => match &of.found.cost {
                Some(found) => cost::figures::tiles(of, found),
                None => ring::figures::tiles(of),
            },
            Self::Response(of) => crate::experiments::response::figures::tiles(of),
            Self::Explain(of) => explain::figures::tiles(of),
            Self::Measure(of) => {
                let all: Vec<Vec<Tile>> = of.parts.iter().map(Self::tiles).collect();
                Tile::in_turn(&all, MOST_TILES)
            }
            Self::Trials(of) => match &of.found.findings {
                Some(Findings::Sensitivity(found)) => sensitivity::figures::tiles(found),
                _ => measures::tiles(of, &clock::FIRST),
            },
        }
    }

    /// Writes all that `output` asks for. The table goes to standard output, or to standard error
    /// where that belongs to a machine-readable format.
    pub(crate) fn write(&self, run: &Run, path: Option<&Path>, output: &Output) -> Result<()> {
        let mut errors = Vec::new();
        if !output.files.quiet {
            let is_taken =
                [&output.files.json, &output.files.csv].contains(&&Some(Destination::Stdout));
            let text = self.text(run, path, output.view);
            let printed = match is_taken {
                true => {
                    let text = self.shown(&text, run, output.plot, &io::stderr());
                    output::ignore_broken_pipe(io::stderr().write_all(text.as_bytes()))
                }
                false => print(self.shown(&text, run, output.plot, &io::stdout()).as_bytes()),
            };
            errors.extend(printed.context("cannot print the report").err());
        }
        let json = output.files.json.as_ref().and_then(|to| put_json(self, Some(to)).err());
        let csv = output.files.csv.as_ref().and_then(|to| export(run, ExportFormat::Csv, to).err());
        errors.extend(json.into_iter().chain(csv));
        // The last is told by whoever asked; the others would be lost.
        let last = errors.pop();
        errors.iter().for_each(|error| say(&format!("error: {error:#}")));
        last.map_or(Ok(()), Err)
    }

    /// Prints the report of a stored run, with its charts if they are asked for.
    pub(crate) fn show(&self, run: &Run, path: &Path, view: View, plot: bool) -> Result<()> {
        let text = self.text(run, Some(path), view);
        print(self.shown(&text, run, plot, &io::stdout()).as_bytes())
            .context("cannot print the report")
    }

    /// The report as a stream shows it, with its charts if they are asked for.
    fn shown(
        &self,
        text: &MarkedText,
        run: &Run,
        is_plotted: bool,
        stream: &(impl RawStream + AsFd),
    ) -> String {
        let text = output::for_people(text, stream);
        match is_plotted {
            true => text + &self.plotted(run, &output::look_of(stream)),
            false => text,
        }
    }

    /// Its charts in text. Single samples by round are left to the report in HTML: they are too
    /// many for a terminal. Maps are in the report already.
    fn plotted(&self, run: &Run, look: &Look) -> String {
        let is_raw = |figure: &Figure| figure.series().iter().any(|of| of.role == Role::Raw);
        let is_shown = |figure: &Figure| !is_raw(figure) && matches!(figure.body, Body::Series(_));
        let figures = self.figures(run, 0).into_iter().filter(is_shown);
        let drawn: String =
            figures.map(|figure| format!("\n{}", plot(&figure, &[], look))).collect();
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
        ExportFormat::Json => to_json(&Record::of(run))?,
        ExportFormat::Csv => return put_by(to, |to| csv::samples(run, to)),
        ExportFormat::SummaryCsv => summary::summary_csv(run)?,
        ExportFormat::Markdown => summary::markdown(run),
        ExportFormat::GoBench => exports::go_bench(&Subject::of_run(run)),
        ExportFormat::Openmetrics => exports::openmetrics(&Subject::of_run(run)),
        ExportFormat::Rows => rows::line(Ok(run.clone()))?,
        ExportFormat::History => history::rows(run)?,
    };
    put(&bytes, to)
}

#[cfg(test)]
mod nonsense;
#[cfg(test)]
mod tests;

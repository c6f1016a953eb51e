//! What each kind of record makes of itself.

use std::path::Path;

use analysis::marked::MarkedText;
use analysis::parts::part_runs;
use analysis::quote::QuotedFigure;
use analysis::record::{ExplainRecord, ResponseRecord, RingRecord, TrialRecord};
use analysis::summary::CaseSummary;
use charts::Figure;
use rundata::ring::{Policy, RingCase};
use rundata::run::{Run, RunResult};
use rundata::words;

use super::measure::{self, MeasureRecord};
use super::{Record, trials};
use crate::experiments::{cost, explain, response, ring};
use crate::report::figures::{rounds, with_note_on_rough};
use crate::report::page::MAX_TILES;
use crate::report::printout::Printout;
use crate::report::terminal::{self, CommonFacts, View};
use crate::report::tiles::Tile;

/// What an experiment makes of its record.
pub(super) trait Reported {
    /// Returns what every record has beside its findings.
    fn common(&self) -> CommonFacts<'_>;

    /// Returns the result in a few words, for a list of runs; by default the first tile.
    fn result(&self) -> Option<RunResult> {
        let tile = self.tiles().into_iter().next()?;
        let text = format!("{} {} {}", tile.figure(), tile.unit, tile.name);
        Some(RunResult { text, is_rough: !tile.mark.is_empty() })
    }

    /// Returns what every report begins with.
    fn headline(&self) -> MarkedText;

    /// Returns the report for a terminal; `path` is where the run is stored.
    fn printout(&self, run: &Run, path: Option<&Path>, view: View) -> Printout;

    /// Returns the charts. `index` is the run's place among the runs that are drawn together.
    fn figures(&self, run: &Run, index: usize) -> Vec<Figure>;

    /// Returns the figures that stand for the run, what matters most first.
    fn tiles(&self) -> Vec<Tile>;
}

/// Adds the charts of single rounds to those of an experiment, and a note where figures are rough.
fn with_rounds(mut figures: Vec<Figure>, run: &Run, index: usize) -> Vec<Figure> {
    let mut values = rounds::ring_values(run);
    values.extend(rounds::trial_values(run));
    figures.extend(rounds::rounds_figure(values, index));
    figures.into_iter().map(with_note_on_rough).collect()
}

impl Reported for RingRecord {
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

/// Returns the cost of a switch in the smallest ring that has a figure. Where that is not quotable
/// under the normal policy, the ring of this size under fifo stands for it, if its cost is. Where no
/// switch is resolved from the solo ring, the result is the time of a hop.
fn switch_of_smallest_ring(cases: &[CaseSummary]) -> Option<RunResult> {
    let smallest = smallest_ring(cases)?;
    let cost = smallest.ns_per_switch_above_solo?;
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

impl Reported for TrialRecord {
    fn common(&self) -> CommonFacts<'_> {
        CommonFacts { ns_per_tick: self.found.ns_per_tick, ..CommonFacts::from_record(self) }
    }

    fn printout(&self, run: &Run, path: Option<&Path>, view: View) -> Printout {
        let mut text = trials::text(self, view);
        if let Some(case) = self.cases.first() {
            text.heading = format!(", on CPU {}", case.case.cpu);
        }
        terminal::report(run, text, &self.common(), path, view)
    }

    fn headline(&self) -> MarkedText {
        trials::text(self, View::default()).headline
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        with_rounds(trials::figure(self, index).into_iter().collect(), run, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        trials::tiles(self)
    }
}

impl Reported for ResponseRecord {
    fn common(&self) -> CommonFacts<'_> {
        CommonFacts { ns_per_tick: self.found.ns_per_tick, ..CommonFacts::from_record(self) }
    }

    fn printout(&self, run: &Run, path: Option<&Path>, view: View) -> Printout {
        terminal::report(run, response::table::text(self, view), &self.common(), path, view)
    }

    fn headline(&self) -> MarkedText {
        response::answer::headline(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        with_rounds(response::figures::figures(self, index), run, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        response::figures::tiles(self)
    }
}

impl Reported for ExplainRecord {
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

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        with_rounds(explain::figures::figures(self, index), run, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        explain::figures::tiles(self)
    }
}

impl Reported for MeasureRecord {
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
        measure::table::sentence(self) + "."
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (part, run) in self.parts.iter().zip(&part_runs(run)) {
            figures.extend(part.figures(run, index));
        }
        figures
    }

    fn tiles(&self) -> Vec<Tile> {
        let tiles: Vec<Vec<Tile>> = self.parts.iter().map(Record::tiles).collect();
        Tile::in_turn(&tiles, MAX_TILES)
    }
}

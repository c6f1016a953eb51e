//! What each kind of record makes of itself.

use std::path::Path;

use analysis::marked::MarkedText;
use analysis::parts::part_runs;
use analysis::record::{ExplainRecord, ResponseRecord, RingRecord, TrialRecord};
use analysis::summary::CaseSummary;
use charts::Figure;
use rundata::ring::{Policy, RingCase};
use rundata::run::Run;
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
    fn result(&self) -> Option<String> {
        let tile = self.tiles().into_iter().next()?;
        Some(format!("{} {} {}", tile.figure(), tile.unit, tile.name))
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

    fn result(&self) -> Option<String> {
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

/// Returns what a switch costs in the smallest ring that has a figure; a hop where a switch is not
/// resolved from the solo ring.
fn switch_of_smallest_ring(cases: &[CaseSummary]) -> Option<String> {
    let rings = || cases.iter().filter(|case| case.case.members > 1);
    let is_known = |case: &&CaseSummary| {
        case.ns_per_switch_above_solo.is_some_and(|cost| cost.answer_cost().is_ok())
    };
    let smallest = rings().find(is_known).or(rings().next())?;
    let cost = smallest.ns_per_switch_above_solo?;
    if cost.quote_cost().is_err() {
        // A normal ring that others kept from the CPU was measured under fifo, too.
        let under_fifo = RingCase { policy: Policy::Fifo, ..smallest.case.clone() };
        let is_normal = smallest.case.policy == Policy::Other;
        if let Some(twin) = cases.iter().find(|case| is_normal && case.case == under_fifo) {
            let twin_cost = twin.ns_per_switch_above_solo.and_then(|cost| cost.quote_cost().ok());
            if let Some(cost) = twin_cost {
                return Some(switch_in_words(&words::time(cost.value()), &under_fifo));
            }
        }
    }
    Some(match cost.answer_cost() {
        Ok(cost) => switch_in_words(&cost.brief_time(), &smallest.case),
        Err(why) => match smallest.ns_per_hop.map(|hop| hop.answer_cost()) {
            Some(Ok(hop)) => format!("{} a hop ({})", hop.brief_time(), smallest.case.members),
            Some(Err(_)) | None => why.with_time_unit(),
        },
    })
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

    fn result(&self) -> Option<String> {
        let whole = self.found.explained.as_ref()?.whole_ns?.answer_cost().ok()?;
        let policy = explain::table::policy_words(self);
        Some(format!("{} a switch{policy}, all included", whole.brief_time()))
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

    fn result(&self) -> Option<String> {
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

//! What each kind of record makes of itself.

use analysis::marked::MarkedText;
use analysis::record::{ExplainRecord, ResponseRecord, RingRecord, TrialRecord};
use analysis::summary::CaseSummary;
use charts::Figure;
use rundata::ring::{Case, Policy};
use rundata::run::{Header, Run};
use rundata::words;

use super::measure::{self, MeasureRecord};
use super::{Record, trials};
use crate::experiments::{cost, explain, response, ring};
use crate::report::page::MOST_TILES;
use crate::report::terminal::{Common, Text, View};
use crate::report::tiles::Tile;

/// What an experiment makes of its record.
pub(super) trait Reported {
    /// Returns the first line of the run file.
    fn header(&self) -> &Header;

    /// Returns what every record has beside its findings.
    fn common(&self) -> Common<'_>;

    /// Returns the result in a few words, for a list of runs; by default the first tile.
    fn result(&self) -> Option<String> {
        let tile = self.tiles().into_iter().next()?;
        Some(format!("{} {} {}", tile.figure(), tile.unit, tile.name))
    }

    /// Returns the report for a terminal.
    fn text(&self, view: View) -> Text;

    /// Returns what every report begins with.
    fn headline(&self) -> MarkedText;

    /// Returns the charts, without those of single rounds.
    fn figures(&self, run: &Run, index: usize) -> Vec<Figure>;

    /// Returns the figures that stand for the run, what matters most first.
    fn tiles(&self) -> Vec<Tile>;
}

impl Reported for RingRecord {
    fn header(&self) -> &Header {
        &self.header
    }

    fn common(&self) -> Common<'_> {
        Common {
            noise: &self.noise,
            speed: &self.found.speed,
            ns_per_tick: None,
            precision: self.worst_precision,
        }
    }

    fn result(&self) -> Option<String> {
        switch_of_smallest_ring(&self.cases)
    }

    fn text(&self, view: View) -> Text {
        match &self.found.cost {
            Some(found) => cost::table::text(self, found, view),
            None => ring::table::text(self, view),
        }
    }

    fn headline(&self) -> MarkedText {
        match &self.found.cost {
            Some(found) => cost::answer::headline(self, found),
            None => ring::answer::headline(self),
        }
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        match &self.found.cost {
            Some(found) => cost::figures::figures(self, found, index),
            None => ring::figures::figures(run, self, index),
        }
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
        let under_fifo = Case { policy: Policy::Fifo, ..smallest.case.clone() };
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
fn switch_in_words(cost: &str, case: &Case) -> String {
    let policy = if case.policy == Policy::Fifo { ", fifo" } else { "" };
    format!("{cost} a switch ({}{policy})", case.members)
}

impl Reported for TrialRecord {
    fn header(&self) -> &Header {
        &self.header
    }

    fn common(&self) -> Common<'_> {
        Common {
            noise: &self.noise,
            speed: &[],
            ns_per_tick: self.found.ns_per_tick,
            precision: self.worst_precision,
        }
    }

    fn text(&self, view: View) -> Text {
        let text = trials::text(self, view);
        let cpu = self.cases.first().map(|case| format!(", on CPU {}", case.case.cpu));
        Text { heading: cpu.unwrap_or_default(), ..text }
    }

    fn headline(&self) -> MarkedText {
        trials::text(self, View::default()).headline
    }

    fn figures(&self, _run: &Run, index: usize) -> Vec<Figure> {
        trials::figure(self, index).into_iter().collect()
    }

    fn tiles(&self) -> Vec<Tile> {
        trials::tiles(self)
    }
}

impl Reported for ResponseRecord {
    fn header(&self) -> &Header {
        &self.header
    }

    fn common(&self) -> Common<'_> {
        Common {
            noise: &self.noise,
            speed: &[],
            ns_per_tick: self.found.ns_per_tick,
            precision: self.worst_precision,
        }
    }

    fn text(&self, view: View) -> Text {
        response::table::text(self, view)
    }

    fn headline(&self) -> MarkedText {
        response::answer::headline(self)
    }

    fn figures(&self, _run: &Run, index: usize) -> Vec<Figure> {
        response::figures::figures(self, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        response::figures::tiles(self)
    }
}

impl Reported for ExplainRecord {
    fn header(&self) -> &Header {
        &self.header
    }

    fn common(&self) -> Common<'_> {
        Common {
            noise: &self.noise,
            speed: &[],
            ns_per_tick: self.found.ns_per_tick,
            precision: self.worst_precision,
        }
    }

    fn result(&self) -> Option<String> {
        let whole = self.found.explained.as_ref()?.whole_ns?.answer_cost().ok()?;
        let policy = explain::table::policy_words(self);
        Some(format!("{} a switch{policy}, all included", whole.brief_time()))
    }

    fn text(&self, view: View) -> Text {
        explain::table::text(self, view)
    }

    fn headline(&self) -> MarkedText {
        explain::answer::headline(self)
    }

    fn figures(&self, _run: &Run, index: usize) -> Vec<Figure> {
        explain::figures::figures(self, index)
    }

    fn tiles(&self) -> Vec<Tile> {
        explain::figures::tiles(self)
    }
}

impl Reported for MeasureRecord {
    fn header(&self) -> &Header {
        &self.header
    }

    fn common(&self) -> Common<'_> {
        Common {
            noise: &self.noise,
            speed: &self.speed,
            ns_per_tick: None,
            precision: self.worst_precision,
        }
    }

    fn result(&self) -> Option<String> {
        self.parts.iter().find_map(Record::result)
    }

    fn text(&self, _view: View) -> Text {
        Text { headline: self.headline(), ..Text::default() }
    }

    fn headline(&self) -> MarkedText {
        measure::table::sentence(self) + "."
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        let _ = (run, index);
        Vec::new()
    }

    fn tiles(&self) -> Vec<Tile> {
        let tiles: Vec<Vec<Tile>> = self.parts.iter().map(Record::tiles).collect();
        Tile::in_turn(&tiles, MOST_TILES)
    }
}

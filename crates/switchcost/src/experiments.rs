//! The registry: what this program makes of the runs of each experiment.

use std::path::Path;

use anyhow::Result;
use charts::Figure;
use model::experiment::Experiment;
use model::run::Run;
use model::{record, response, trial};

use crate::figures;
use crate::report::{self, Record};

/// What a run says, by its experiment.
pub(crate) fn record(run: &Run) -> Box<dyn Record> {
    match run.header.plan.experiment {
        Experiment::Ring | Experiment::Cost => Box::new(record::Record::of(run)),
        Experiment::Response => Box::new(response::Record::of(run)),
        Experiment::Interference
        | Experiment::ClockOverhead
        | Experiment::ClockPrimes
        | Experiment::ClockMalloc
        | Experiment::ClockSampling => Box::new(trial::Record::of(run)),
    }
}

impl Record for record::Record {
    fn json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    fn table(&self, path: Option<&Path>) -> String {
        match &self.cost {
            Some(found) => report::cost::report(self, found, path),
            None => report::terminal::report(self, path),
        }
    }

    fn headline(&self) -> Vec<String> {
        report::headline::of_rings(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        figures::of_rings(run, self, index)
    }

    fn csv(&self, run: &Run) -> Result<Vec<u8>> {
        report::rings_csv(run)
    }
}

impl Record for trial::Record {
    fn json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    fn table(&self, path: Option<&Path>) -> String {
        report::trials::report(self, path)
    }

    fn headline(&self) -> Vec<String> {
        report::headline::of_trials(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        figures::of_trials(run, self, index)
    }

    fn csv(&self, run: &Run) -> Result<Vec<u8>> {
        report::trials_csv(run)
    }
}

impl Record for response::Record {
    fn json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    fn table(&self, path: Option<&Path>) -> String {
        report::response::report(self, path)
    }

    fn headline(&self) -> Vec<String> {
        report::headline::of_response(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        figures::of_response(run, self, index)
    }

    fn csv(&self, run: &Run) -> Result<Vec<u8>> {
        report::response_csv(run)
    }
}

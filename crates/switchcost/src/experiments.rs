//! The registry: what this program makes of the runs of each experiment.

use std::path::Path;

use anyhow::Result;
use charts::Figure;
use model::experiment::Experiment;
use model::run::Run;
use model::trial::{self, Findings, headlines_ns};
use model::{record, response};

use crate::figures::rounds;
use crate::output::{Record, csv, to_json};
use crate::report::headline;
use crate::{clock, cost, interference, ring, terminal};

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
    fn json(&self) -> Result<Vec<u8>> {
        to_json(self)
    }

    fn table(&self, path: Option<&Path>) -> String {
        match &self.cost {
            Some(found) => cost::table::report(self, found, path),
            None => ring::table::report(self, path),
        }
    }

    fn headline(&self) -> Vec<String> {
        headline::of_rings(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        let mut all = match &self.cost {
            Some(found) => cost::figures::figures(self, found, index),
            None => ring::figures::figures(run, self, index),
        };
        all.extend(rounds::figure(rounds::of_rings(run), index));
        all
    }

    fn csv(&self, run: &Run) -> Result<Vec<u8>> {
        csv::of_rings(run)
    }
}

impl Record for trial::Record {
    fn json(&self) -> Result<Vec<u8>> {
        to_json(self)
    }

    fn table(&self, path: Option<&Path>) -> String {
        let findings = match &self.findings {
            Findings::Overhead(found) => clock::table::overhead(self, found),
            Findings::Primes(found) => clock::table::primes(found),
            Findings::Malloc(found) => clock::table::malloc(self, found),
            Findings::Interference(found) => interference::table::text(self, found),
            Findings::Sampling(points) => clock::table::sampling(self, points),
        };
        terminal::of_trials(self, &findings, path)
    }

    fn headline(&self) -> Vec<String> {
        headline::of_trials(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        let found = match &self.findings {
            Findings::Overhead(found) => clock::figures::calls(self, found, index),
            Findings::Primes(found) => clock::figures::deviations(found, index),
            Findings::Malloc(found) => clock::figures::blocks(self, found, index),
            Findings::Sampling(found) => clock::figures::accounts(found, index),
            Findings::Interference(found) => interference::figures::executions(found, index),
        };
        let by_round = rounds::figure(rounds::of_cases(&headlines_ns(run)), index);
        found.into_iter().chain(by_round).collect()
    }

    fn csv(&self, run: &Run) -> Result<Vec<u8>> {
        csv::of_trials(run)
    }
}

impl Record for response::Record {
    fn json(&self) -> Result<Vec<u8>> {
        to_json(self)
    }

    fn table(&self, path: Option<&Path>) -> String {
        crate::response::table::report(self, path)
    }

    fn headline(&self) -> Vec<String> {
        headline::of_response(self)
    }

    fn figures(&self, run: &Run, index: usize) -> Vec<Figure> {
        crate::response::figures::figures(run, self, index)
    }

    fn csv(&self, run: &Run) -> Result<Vec<u8>> {
        csv::of_both(run)
    }
}

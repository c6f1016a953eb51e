//! What is known of a program, on this machine's costs.

use std::time::Duration;

use model::program_cost::{self as cost, Program, Report, SCHEMA, Window, WorkingSet};
use model::reading::Reading;
use probe::program::Switches;

use super::{nanoseconds, surface};

/// Counts of a program over a time.
pub(super) struct Seen {
    pub(super) switches: Switches,
    pub(super) cpu_ns: Reading<u64>,
    pub(super) watched: Duration,
}

/// All that is known of a program.
pub(super) struct Known {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) threads: Option<u64>,
    pub(super) seen: Seen,
    pub(super) working_set: Reading<WorkingSet>,
    pub(super) resident_bytes: Reading<u64>,
    pub(super) windows: Vec<Window>,
    pub(super) notices: Vec<String>,
}

impl Known {
    /// The same, on this machine's costs.
    pub(super) fn report(mut self) -> Report {
        let seconds = self.seen.watched.as_secs_f64();
        let rate = |count: f64| match seconds > 0.0 {
            true => Reading::Known(count / seconds),
            false => Reading::unknown("it was not watched for long enough"),
        };
        let Switches { voluntary, involuntary } = self.seen.switches;
        let program = Program {
            voluntary_per_s: rate(voluntary as f64),
            involuntary_per_s: rate(involuntary as f64),
            cpu_share: self.seen.cpu_ns.clone().and_then(|ns| rate(ns as f64 / 1e9)),
            working_set: self.working_set,
        };
        let set = program.working_set.known().copied();
        let surface = surface::stored(set, &mut self.notices);
        let points = surface.known().map_or(&[][..], |surface| &surface.points);
        let answer = cost::program_cost(&program, points);
        Report {
            schema: SCHEMA,
            pid: self.pid,
            name: self.name,
            command: None,
            watched_ns: nanoseconds(self.seen.watched),
            threads: self.threads,
            voluntary: Reading::Known(voluntary),
            involuntary: Reading::Known(involuntary),
            cpu_ns: self.seen.cpu_ns,
            resident_bytes: self.resident_bytes,
            windows: self.windows,
            program,
            surface,
            in_words: answer.in_words(),
            cost: answer,
            notices: self.notices,
        }
    }
}

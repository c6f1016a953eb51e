//! What a comparison or an export takes: a run of whatever experiment, or published figures, as
//! cases by name with their figures by round.

mod history;
mod rings;
mod trials;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use history::{PREFIX, Published, PublishedCase, Range, published};

use crate::case;
use crate::estimate::Estimate;
use crate::machine::Machine;
use crate::noise::NoiseVerdict;
use crate::pairing::Grouped;
use crate::response::noise_of;
use crate::run::{Build, Failure, Run, Session};
use crate::speed::LAUNCH_SCATTER;
use crate::speed::{levels, with_shared_level};
use stats::mean;

/// What a figure is of.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Cost of a counted switch above the solo ring, in nanoseconds.
    NsPerSwitchAboveSolo,
    /// Time of a hop, in nanoseconds.
    NsPerHop,
    /// As the first, by CPU time.
    CpuNsPerSwitchAboveSolo,
    /// CPU time of a hop, in nanoseconds.
    CpuNsPerHop,
    /// What the trial is judged by, in nanoseconds.
    TrialNs,
}

impl Quantity {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::NsPerSwitchAboveSolo => "ns_per_switch_above_solo",
            Self::NsPerHop => "ns_per_hop",
            Self::CpuNsPerSwitchAboveSolo => "cpu_ns_per_switch_above_solo",
            Self::CpuNsPerHop => "cpu_ns_per_hop",
            Self::TrialNs => "trial_ns",
        }
    }

    /// What it is the cost of, in tables.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::NsPerSwitchAboveSolo => "switch",
            Self::NsPerHop => "hop",
            Self::CpuNsPerSwitchAboveSolo => "switch (CPU)",
            Self::CpuNsPerHop => "hop (CPU)",
            Self::TrialNs => "trial",
        }
    }
}

/// A figure of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The figure of every round in which it could be taken, by the number of the round.
    pub by_round: BTreeMap<u32, f64>,
    /// What the run says of it; absent without a round.
    pub estimate: Option<Estimate>,
}

/// What is known of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// A number that was printed: no rounds, so no interval.
    Published(f64),
    /// One launch or several of the same plan.
    Measured(Vec<Measured>),
}

impl Values {
    /// The figure itself: the mean of the launches. Absent without a launch that has it.
    pub fn middle(&self) -> Option<f64> {
        match self {
            Self::Published(value) => Some(*value),
            Self::Measured(launches) => {
                let values = launches.iter().filter_map(|launch| Some(launch.estimate?.value));
                mean(&values.collect::<Vec<f64>>())
            }
        }
    }

    /// The rounds of the only launch, or of the first of several; none of a published figure.
    pub fn by_round(&self) -> Option<&BTreeMap<u32, f64>> {
        match self {
            Self::Published(_) => None,
            Self::Measured(launches) => launches.first().map(|launch| &launch.by_round),
        }
    }
}

/// A figure of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is of.
    pub quantity: Quantity,
    /// What is known of it.
    pub values: Values,
}

impl Figure {
    /// A figure of one run; absent where no round has it.
    pub(crate) fn measured(
        quantity: Quantity,
        by_round: BTreeMap<u32, f64>,
        estimate: Option<Estimate>,
    ) -> Option<Self> {
        estimate?;
        let values = Values::Measured(vec![Measured { by_round, estimate }]);
        Some(Self { quantity, values })
    }
}

/// What tells a case from others: names with what they stand at, in a fixed order.
pub type Labels = Vec<(String, String)>;

/// A case with its figures.
pub struct Subcase {
    /// Its number in the plan.
    pub number: usize,
    /// In words: `ring of 64`.
    pub title: String,
    /// By these it is paired with a case of another subject. Which CPU of a machine `same` is, and
    /// the priority of a real-time policy, are not among them.
    pub labels: Labels,
    /// The CPUs that it ran on, and what else may differ between two cases that are paired.
    pub details: Labels,
    /// The one that stands for the case first. None where nothing was measured.
    pub figures: Vec<Figure>,
    /// Why it could not be measured in some round, as last told.
    pub failure: Option<String>,
    /// Hops or trials by the number of the round, for formats that tell how often something was done.
    pub iterations: Vec<(u32, u64)>,
}

impl Subcase {
    /// The figure of that quantity.
    pub fn figure(&self, quantity: Quantity) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.quantity == quantity)
    }

    /// What a label stands at.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Where a subject's figures are from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// A run of this program.
    Run {
        /// When it began, RFC 3339, UTC.
        started: String,
        /// What had been built.
        build: Build,
        /// The session that it is one half of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Session>,
    },
    /// A publication.
    Publication {
        /// Which.
        source: String,
    },
}

/// A run or published figures.
pub struct Subject {
    /// The run's name, or `history:` and the machine's.
    pub name: String,
    /// The experiment.
    pub experiment: String,
    /// Where the figures are from.
    pub origin: Origin,
    /// What they were measured on.
    pub machine: Machine,
    /// The verdict on its noise; absent for published figures.
    pub noise: Option<NoiseVerdict>,
    /// The clock that most of it had, in GHz, by the reference quanta: of the first CPU that has a level, of several
    /// launches their mean. Absent where that is not known.
    pub clock_ghz: Option<f64>,
    /// Launches that its figures are of; 0 for published figures.
    pub launches: u32,
    /// The seed of its plan; 0 for published figures.
    pub seed: u64,
    /// tau: the standard deviation between launches as a share of a figure; 0 for published figures.
    pub launch_scatter: f64,
    /// What its file could not tell; empty for published figures.
    pub warnings: Vec<String>,
    /// Its cases.
    pub cases: Vec<Subcase>,
}

fn clock_ghz(run: &Run) -> Option<f64> {
    let levels = levels(&run.header.plan, &run.samples);
    levels.values().find_map(|level| level.clock_ghz(&run.header.build.target))
}

impl Subject {
    /// A run with the figures of its cases.
    pub fn of_run(run: &Run) -> Self {
        let header = &run.header;
        let plan = with_shared_level(&header.plan, &run.samples);
        let grouped = Grouped::new(&plan, case::rings(&run.samples));
        let mut cases = rings::cases(&plan, &grouped, &run.failures);
        cases.extend(trials::cases(run));
        cases.sort_by_key(|case| case.number);
        let no_end = "it has no end: it was killed, or goes on".to_string();
        let no_end = run.end.is_none().then_some(no_end);
        Self {
            name: header.run.clone(),
            experiment: header.plan.experiment.to_string(),
            origin: Origin::Run {
                started: header.started.clone(),
                build: header.build.clone(),
                session: header.session.clone(),
            },
            machine: header.machine.clone(),
            noise: Some(noise_of(run, &grouped)),
            clock_ghz: clock_ghz(run),
            launches: 1,
            seed: header.plan.seed,
            launch_scatter: header.plan.reference.launch_scatter.unwrap_or(LAUNCH_SCATTER),
            warnings: run.warnings.iter().cloned().chain(no_end).collect(),
            cases,
        }
    }

    /// Several launches of one plan as one subject: each case of the first with the figures of all that have
    /// it. Absent without a launch.
    pub fn of_launches(launches: Vec<Self>) -> Option<Self> {
        let clocks: Vec<f64> = launches.iter().filter_map(|launch| launch.clock_ghz).collect();
        let mut launches = launches.into_iter();
        let mut all = launches.next()?;
        for other in launches {
            all.launches += 1;
            all.launch_scatter = all.launch_scatter.max(other.launch_scatter);
            let named = |warning: &String| format!("{}: {warning}", other.name);
            all.warnings.extend(other.warnings.iter().map(named));
            for case in &mut all.cases {
                let same = other.cases.iter().find(|candidate| candidate.labels == case.labels);
                for figure in &mut case.figures {
                    let more = same.and_then(|same| same.figure(figure.quantity));
                    if let (
                        Values::Measured(own),
                        Some(Figure { values: Values::Measured(more), .. }),
                    ) = (&mut figure.values, more)
                    {
                        own.extend(more.iter().cloned());
                    }
                }
            }
        }
        all.clock_ghz = mean(&clocks);
        Some(all)
    }

    /// The session that it is one half of, if it is.
    pub fn session(&self) -> Option<&Session> {
        match &self.origin {
            Origin::Run { session, .. } => session.as_ref(),
            Origin::Publication { .. } => None,
        }
    }
}

/// What was last told of a case that failed.
fn failure_of(failures: &[Failure], case: usize) -> Option<String> {
    let last = failures.iter().rev().find(|failure| failure.case == case);
    last.map(|failure| failure.message.clone())
}

#[cfg(test)]
mod tests;

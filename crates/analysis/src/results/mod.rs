//! What a comparison or an export takes: a run of whatever experiment, or published figures, as
//! cases by name with their figures by round.

mod history;
mod launches;
mod parts;
mod runs;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::measures::Quantity;
pub use history::{
    PUBLISHED_PREFIX, PublishedCase, PublishedMachine, PublishedRange, published_machines,
};
pub use launches::known_from_launches;
pub(crate) use parts::WHOLE;
pub use runs::plan_cases;

use crate::at_clock::{AtClock, ClockConversion, common_elasticity};
use crate::estimate::{Estimate, Speed};
use crate::noise::{self, NoiseVerdict};
use crate::speed::SpeedLevel;
use crate::summary::CaseSummary;
use crate::table::Table;
use rundata::machine::Machine;
use rundata::plan::ASSUMED_LAUNCH_SCATTER;
use rundata::run::{Header, ProgramBuild, Run, SessionHalf};
use stats::{Elasticity, mean, median};

/// A figure of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFigure {
    /// The figure of every round in which it could be taken, by the number of the round.
    pub by_round: BTreeMap<u32, f64>,
    /// What the run says of it; absent without a round.
    pub estimate: Option<Estimate>,
    /// Whether the run ended: nothing is built on one that did not.
    pub is_complete: bool,
    /// At which clock it is; absent where that is not known, and of what no clock of the core
    /// bounds.
    pub clock: Option<AtClock>,
}

impl LaunchFigure {
    /// Its clock in GHz, of a program that was built for `target`; absent where that is not known.
    pub fn clock_ghz(&self, target: &str) -> Option<f64> {
        self.clock?.ghz(target)
    }

    /// What the run says of it in cycles of its clock; absent as that is.
    pub fn cycles(&self, target: &str) -> Option<Estimate> {
        self.estimate?.cycles(self.clock_ghz(target)?)
    }

    /// The same at the clock of a quantum of `to_ns`, and by what it was brought there; as it is
    /// where its clock is not known.
    fn at(&self, to_ns: f64, power: Option<Elasticity>) -> (Self, Option<ClockConversion>) {
        let Some(clock) = self.clock else { return (self.clone(), None) };
        let by = clock.conversion_to(to_ns, power);
        let figures = self.by_round.iter().map(|(round, figure)| (*round, figure * by.factor()));
        let there = Self {
            by_round: figures.collect(),
            estimate: self.estimate.map(|of| of.times_factor(by.factor(), 0.0)),
            clock: Some(AtClock { quantum_ns: to_ns, ..clock }),
            is_complete: self.is_complete,
        };
        (there, Some(by))
    }
}

/// What is known of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseFigure {
    /// A number that was printed: no rounds, so no interval.
    Published(f64),
    /// One launch or several of the same plan.
    Measured(Vec<LaunchFigure>),
}

impl CaseFigure {
    /// Those of the launches that count, and whether they ended: only those that did, and of these
    /// only those at full speed in many rounds, else those in few, where there are any.
    pub fn counted_estimates(&self) -> (Vec<Estimate>, bool) {
        let known = |whole: bool| {
            let such = self.launches().iter().filter(move |launch| !whole || launch.is_complete);
            such.filter_map(|launch| launch.estimate).collect::<Vec<Estimate>>()
        };
        let whole = known(true);
        let are_whole = !whole.is_empty();
        let mut all = if are_whole { whole } else { known(false) };
        for speed in [Speed::Full, Speed::FewRounds] {
            if all.iter().any(|estimate| estimate.speed == speed) {
                all.retain(|estimate| estimate.speed == speed);
                break;
            }
        }
        (all, are_whole)
    }

    /// What these say together: their mean, by their own errors and their scatter. Of one its own
    /// estimate; absent of published figures.
    pub fn mean_estimate(&self, launch_scatter: f64) -> Option<Estimate> {
        let (all, _) = self.counted_estimates();
        let (first, count) = (all.first()?, all.len() as f64);
        let squares: Option<f64> = all.iter().map(|of| Some(of.standard_error?.powi(2))).sum();
        let value = mean(&all.iter().map(|of| of.value).collect::<Vec<f64>>())?;
        let known = squares.filter(|_| count > 1.0 && first.speed.is_full());
        let rounds = all.iter().map(|of| of.rounds).fold(0, u32::saturating_add);
        let scatter = launch_scatter / count.sqrt();
        let mean = known.map(|squares| {
            let error = squares.sqrt() / count;
            let mean = Estimate::at_full_speed(value, error, rounds, scatter, first.confidence)?;
            Some(Estimate { speed: first.speed, ..mean })
        });
        mean.unwrap_or(Some(Estimate { value, ..*first }))
    }

    /// The middle of its launches' clocks: their latency quantum in nanoseconds. Absent where none
    /// is known.
    pub fn quantum_ns(&self) -> Option<f64> {
        let quanta = self.launches().iter().filter_map(|launch| Some(launch.clock?.quantum_ns));
        median(&quanta.collect::<Vec<f64>>())
    }

    /// The clocks of its launches, as far as they are known.
    pub fn clocks(&self) -> Vec<AtClock> {
        self.launches().iter().filter_map(|launch| launch.clock).collect()
    }

    /// The same with all launches at one clock, and how far they were brought on average, as ln of
    /// the quanta. What that leaves open is the same in all of them, and not in their intervals.
    pub fn at(&self, to_ns: f64, power: Option<Elasticity>) -> (Self, f64) {
        let Self::Measured(launches) = self else { return (self.clone(), 0.0) };
        let (launches, by): (Vec<LaunchFigure>, Vec<Option<ClockConversion>>) =
            launches.iter().map(|launch| launch.at(to_ns, power)).unzip();
        let apart: Vec<f64> = by.into_iter().flatten().map(|by| by.log_ratio).collect();
        (Self::Measured(launches), mean(&apart).unwrap_or(0.0))
    }

    /// What all launches say together at the middle one's clock.
    pub fn mean_at_one_clock(&self, launch_scatter: f64) -> Option<Estimate> {
        let Some(to_ns) = self.quantum_ns() else { return self.mean_estimate(launch_scatter) };
        let power = common_elasticity(&self.clocks());
        let (there, apart) = self.at(to_ns, power);
        Some(
            there
                .mean_estimate(launch_scatter)?
                .widened_by(ClockConversion { log_ratio: apart, elasticity: power }.uncertainty()),
        )
    }

    /// The launches; none of a published figure.
    pub fn launches(&self) -> &[LaunchFigure] {
        match self {
            Self::Published(_) => &[],
            Self::Measured(launches) => launches,
        }
    }

    /// The rounds of the only launch, or of the first of several; none of a published figure.
    pub fn by_round(&self) -> Option<&BTreeMap<u32, f64>> {
        self.launches().first().map(|launch| &launch.by_round)
    }
}

/// What tells a case from others: names with what they stand at, in a fixed order.
pub type Labels = Vec<(String, String)>;

/// A case with its figures.
pub struct CaseResults {
    /// Its number in the plan.
    pub number: usize,
    /// What measured it: the experiment, of a run of several that of its part, or `run`.
    pub experiment: &'static str,
    /// In words: `ring of 64`.
    pub title: String,
    /// By these it is paired with a case of other results. Which CPU of a machine `same` is, and
    /// the priority of a real-time policy, are not among them.
    pub labels: Labels,
    /// The CPUs that it ran on, and what else may differ between two cases that are paired.
    pub details: Labels,
    /// The one that stands for the case first. None where nothing was measured.
    pub figures: BTreeMap<Quantity, CaseFigure>,
    /// The summary of a ring that was measured, of several launches of the first; what else is
    /// exported of it is read from there.
    pub summary: Option<Box<CaseSummary>>,
    /// Why it could not be measured in some round, as last told.
    pub failure: Option<String>,
    /// Hops or trials by the number of the round, for formats that tell how often something was
    /// done.
    pub iterations: Vec<(u32, u64)>,
}

impl CaseResults {
    /// What a label stands at.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Where the figures of results are from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// A run of this program.
    Run {
        /// When it began, RFC 3339, UTC.
        started: String,
        /// What had been built.
        build: ProgramBuild,
        /// The session that it is one half of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionHalf>,
    },
    /// A publication.
    Publication {
        /// Which.
        source: String,
    },
}

/// Fields of a machine by which runs under one name are no launches of one plan, by their starts.
const BEARING: [(&str, &str); 4] = [
    ("cpu.models", "CPU"),
    ("kernel.release", "kernel"),
    ("kernel.command_line", "kernel command line"),
    ("mitigations", "setting of mitigations"),
];

/// One side of a comparison, in its record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Side")]
pub struct ComparisonSide {
    /// The run's name, or `history:` and the machine's.
    pub name: String,
    /// What its reader calls it: as typed, or the name or prefix that it was measured with.
    #[serde(default)]
    pub label: String,
    /// The experiment.
    pub experiment: String,
    /// Where its figures are from.
    pub origin: Origin,
    /// The CPU and the system, in words: `Sun-4/280, SunOS 4.1.1`.
    pub machine: String,
    /// Launches that its figures are of; 0 for published figures.
    pub launches: u32,
}

impl ComparisonSide {
    /// Whether both are one run, whatever its reader calls it.
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.name == other.name && self.origin == other.origin
    }
}

/// A run or published figures.
pub struct Results {
    /// What it is, and on which machine.
    pub side: ComparisonSide,
    /// What its figures were measured on; of published ones nothing is known but their side's
    /// words.
    pub machine: Machine,
    /// The verdict on its noise; absent for published figures.
    pub noise: Option<NoiseVerdict>,
    /// The clock that most of it had, in GHz, by the reference quanta: of the first CPU that has a
    /// level, of several launches their mean. Absent where that is not known.
    pub clock_ghz: Option<f64>,
    /// The seed of its plan; 0 for published figures.
    pub seed: u64,
    /// tau: the standard deviation between launches as a share of a figure; 0 for published
    /// figures.
    pub launch_scatter: f64,
    /// The same of each case, by its number, as far as launches say it.
    pub case_scatters: Vec<Option<f64>>,
    /// What its file could not tell; empty for published figures.
    pub warnings: Vec<String>,
    /// Its cases.
    pub cases: Vec<CaseResults>,
}

impl Results {
    /// A run with the figures of its cases. Of a run of several experiments it has the cases of
    /// all, each as in a run of its own experiment, numbered as in the whole plan.
    pub fn from_run(run: &Run) -> Self {
        let plan = &run.header.plan;
        if plan.parts.is_empty() {
            return Self::of_experiment(run);
        }
        let sides: Vec<Self> =
            crate::parts::part_runs(run).iter().map(Self::of_experiment).collect();
        let verdicts = sides
            .iter()
            .filter_map(|part| Some((part.side.experiment.clone(), part.noise.clone()?)));
        let verdicts: Vec<(String, NoiseVerdict)> = verdicts.collect();
        let named = verdicts.iter().map(|(name, verdict)| (&**name, verdict.clone()));
        let noise = NoiseVerdict::together(named, &[]);
        let mut whole = Self::without_cases(run);
        whole.noise = Some(noise);
        whole.clock_ghz = sides.iter().find_map(|part| part.clock_ghz);
        for (results, (_, cases)) in sides.into_iter().zip(plan.spans()) {
            for case in results.cases {
                whole.cases.push(CaseResults { number: cases.start + case.number, ..case });
            }
        }
        whole
    }

    fn of_experiment(run: &Run) -> Self {
        let header = &run.header;
        let table = &Table::new(&header.plan, &run.samples);
        let clock = |level: &SpeedLevel| level.clock_ghz(&header.build.target);
        let mut cases = runs::rings(run, table);
        cases.extend(runs::trials(run, table));
        cases.sort_by_key(|case| case.number);
        cases.extend(parts::parts(run, table));
        Self {
            noise: Some(noise::judge(table)),
            clock_ghz: table.levels().values().find_map(clock),
            cases,
            ..Self::without_cases(run)
        }
    }

    /// What is known of a run without a look at its samples.
    fn without_cases(run: &Run) -> Self {
        let header = &run.header;
        let no_end = || "incomplete: it was killed or is still running".to_string();
        let no_end = run.end.is_none().then(no_end);
        let cpu = header.machine.cpu_name().map_or("unknown CPU", String::as_str);
        let kernel = header.machine.kernel.release.known();
        let kernel = kernel.map_or("unknown system", String::as_str);
        let side = ComparisonSide {
            name: header.run.clone(),
            label: label(header),
            experiment: header.plan.experiment.to_string(),
            origin: Origin::Run {
                started: header.started.clone(),
                build: header.build.clone(),
                session: header.session.clone(),
            },
            machine: format!("{cpu}, {kernel}"),
            launches: 1,
        };
        Self {
            side,
            machine: header.machine.clone(),
            noise: None,
            clock_ghz: None,
            seed: header.plan.seed,
            launch_scatter: header.plan.reference.launch_scatter.unwrap_or(ASSUMED_LAUNCH_SCATTER),
            case_scatters: header.plan.reference.cases.iter().map(|of| of.launch_scatter).collect(),
            warnings: run.warnings.iter().cloned().chain(no_end).collect(),
            cases: Vec::new(),
        }
    }

    /// Several launches of one plan as one: each case of the first with the figures of all
    /// that have it, each at its own clock. Absent without a launch.
    pub fn from_launches(launches: Vec<Self>) -> Option<Self> {
        let clocks: Vec<f64> = launches.iter().filter_map(|launch| launch.clock_ghz).collect();
        let mut launches = launches.into_iter();
        let mut all = launches.next()?;
        for other in launches {
            all.side.launches += 1;
            all.warn_of_other_machine(&other);
            all.launch_scatter = all.launch_scatter.max(other.launch_scatter);
            for (own, other) in all.case_scatters.iter_mut().zip(&other.case_scatters) {
                *own = own.zip(*other).map(|(own, other)| own.max(other));
            }
            let named = |warning: &String| format!("{}: {warning}", other.side.name);
            all.warnings.extend(other.warnings.iter().map(named));
            for case in &mut all.cases {
                let is_same = |candidate: &&CaseResults| {
                    candidate.experiment == case.experiment && candidate.labels == case.labels
                };
                let same = other.cases.iter().find(is_same);
                for (of, values) in &mut case.figures {
                    let more = same.and_then(|same| same.figures.get(of));
                    if let (CaseFigure::Measured(own), Some(CaseFigure::Measured(more))) =
                        (values, more)
                    {
                        own.extend(more.iter().cloned());
                    }
                }
            }
        }
        all.clock_ghz = mean(&clocks);
        Some(all)
    }

    /// Runs of one experiment or several as one: launches of each as
    /// [`Self::from_launches`], and the cases of all. Absent without a run.
    pub fn from_runs(runs: Vec<Self>) -> Option<Self> {
        let mut by_experiment: Vec<(String, Vec<Self>)> = Vec::new();
        for run in runs {
            let experiment = run.side.experiment.clone();
            match by_experiment.iter_mut().find(|(known, _)| *known == experiment) {
                Some((_, launches)) => launches.push(run),
                None => by_experiment.push((experiment, vec![run])),
            }
        }
        let sides = by_experiment.into_iter();
        let mut sides = sides.filter_map(|(_, launches)| Self::from_launches(launches));
        let mut all = sides.next()?;
        for other in sides {
            let count = all.cases.iter().map(|case| case.number + 1).max().unwrap_or(0);
            let count = count.max(all.case_scatters.len());
            all.side.experiment += &format!(", {}", other.side.experiment);
            all.side.launches = all.side.launches.max(other.side.launches);
            all.warn_of_other_machine(&other);
            all.warnings.extend(other.warnings);
            all.case_scatters.resize(count, None);
            all.case_scatters.extend(other.case_scatters);
            let cases = other.cases.into_iter();
            all.cases.extend(cases.map(|case| CaseResults { number: count + case.number, ..case }));
        }
        Some(all)
    }

    /// Warns where a run that is added was measured on another machine or kernel, or in another
    /// setting that affects a switch.
    fn warn_of_other_machine(&mut self, other: &Self) {
        let all = self.machine.differences(&other.machine);
        let bears = |field: &str| BEARING.iter().find(|(start, _)| field.starts_with(start));
        let Some((_, kind)) = all.iter().find_map(|of| bears(&of.field)) else { return };
        self.warnings.push(format!("{} has another {kind}: the mean is of both", other.side.name));
    }

    /// tau of a case.
    pub fn case_launch_scatter(&self, case: usize) -> f64 {
        self.case_scatters.get(case).copied().flatten().unwrap_or(self.launch_scatter)
    }

    /// What of it is compared: the parts of a switch where it has some, else its cases.
    pub(crate) fn compared_cases(&self) -> impl Iterator<Item = &CaseResults> {
        let is_part = |of: &&CaseResults| of.label(parts::PART).is_some();
        let has_parts = self.cases.iter().any(|of| is_part(&of));
        self.cases.iter().filter(move |of| !has_parts || is_part(of))
    }

    /// The session that it is one half of, if it is.
    pub fn session(&self) -> Option<&SessionHalf> {
        match &self.side.origin {
            Origin::Run { session, .. } => session.as_ref(),
            Origin::Publication { .. } => None,
        }
    }
}

/// What a run was called when it was measured: the prefix of its half of a session, the name that
/// was given, or its own.
fn label(header: &Header) -> String {
    match &header.session {
        Some(session) if session.prefix.is_empty() => "no prefix".to_string(),
        Some(session) => session.prefix.join(" "),
        None => header.name.clone().unwrap_or_else(|| header.run.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_machine_has_a_name_of_its_own_and_figures() {
        let all = published_machines().unwrap();
        let names: Vec<&str> = all.iter().map(|machine| &*machine.name).collect();
        assert_eq!(
            names,
            [
                "80186",
                "8088",
                "lsi-11/23",
                "aviion-av400",
                "hp-9000/720",
                "370/4381",
                "rs6000/530-aix-3.1",
                "rs6000/530-aix-3.2",
                "702/e",
                "sun-4/280",
                "sun-4/470",
                "sun-4/630",
                "pentium-pro/166",
                "xeon-2.0",
                "amd-epyc-25/17",
                "amd-epyc-26/2",
            ]
        );
        assert!(all.is_sorted_by_key(|machine| machine.year));
        assert!(all.iter().all(|machine| !machine.cases.is_empty()));
        // Of several CPUs the scheduler chose.
        let solbourne = all.iter().find(|machine| machine.name == "702/e").unwrap();
        assert_eq!(solbourne.to_results().cases[0].label("placement"), Some("free"));
    }

    /// The memorandum's switch is half a loop less a signal, to the digit that it prints.
    #[test]
    fn the_switch_of_1984_is_the_difference_of_its_rings() {
        for machine in published_machines().unwrap().iter().filter(|machine| machine.year == 1984) {
            let figure = |case: usize, of: Quantity| {
                let figures = &machine.cases[case].figures;
                figures[&of]
            };
            let difference = figure(1, Quantity::NsPerHop) - figure(0, Quantity::NsPerHop);
            let printed = figure(1, Quantity::NsPerSwitchAboveSolo);
            assert!(
                (difference - printed).abs() < 0.051e6,
                "{}: {difference} {printed}",
                machine.name
            );
        }
    }
}

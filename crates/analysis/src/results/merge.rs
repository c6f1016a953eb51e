//! Several launches of one plan as one, and runs of several experiments as one.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use stats::mean;

use super::{CaseFigure, CaseResults, Quantity, Results};

/// Starts of machine fields in which the launches of one plan must agree, and their names.
const LAUNCH_FIELDS: [(&str, &str); 8] = [
    ("cpu.models", "CPU"),
    ("kernel.release", "kernel"),
    ("kernel.command_line", "kernel command line"),
    ("mitigations", "setting of mitigations"),
    ("scheduler.name", "scheduler"),
    ("scheduler.features", "setting of scheduler features"),
    ("kernel.preemption.model", "preemption"),
    ("memory.thp_enabled", "setting of huge pages"),
];

impl Results {
    /// Merges several launches of one plan: each case of the first gets the figures of all launches
    /// that have it, each at its own clock. Traces become one trace. Absent without a launch.
    pub fn from_launches(launches: Vec<Self>) -> Option<Self> {
        let clocks: Vec<f64> = launches.iter().filter_map(|launch| launch.clock_ghz).collect();
        let mut launches = launches.into_iter();
        let mut merged = launches.next()?;
        for launch in launches {
            merged.add_launch(&launch);
        }
        merged.clock_ghz = mean(&clocks);
        Some(merged)
    }

    fn add_launch(&mut self, launch: &Self) {
        self.side.launches += 1;
        self.warn_of_other_machine(launch);
        self.launch_scatter = self.launch_scatter.max(launch.launch_scatter);
        for (scatter, added) in self.case_scatters.iter_mut().zip(&launch.case_scatters) {
            *scatter = match (*scatter, *added) {
                (Some(scatter), Some(added)) => Some(scatter.max(added)),
                _ => None,
            };
        }
        for warning in &launch.warnings {
            self.warnings.push(format!("{}: {warning}", launch.side.name));
        }
        if let (Some(trace), Some(added)) = (&mut self.trace, &launch.trace) {
            trace.append(added);
            self.cases = trace.cases();
            return;
        }
        for case in &mut self.cases {
            if let Some(added) = launch.cases.iter().find(|added| added.is_same_case(case)) {
                add_figures(&mut case.figures, &added.figures);
            }
        }
    }

    /// Merges runs of one experiment or several: launches of each experiment as
    /// [`Self::from_launches`] does, then the cases of all experiments. Absent without a run.
    pub fn from_runs(runs: Vec<Self>) -> Option<Self> {
        let mut by_experiment: Vec<(String, Vec<Self>)> = Vec::new();
        for run in runs {
            let experiment = run.side.experiment.clone();
            match by_experiment.iter_mut().find(|(known, _)| *known == experiment) {
                Some((_, launches)) => launches.push(run),
                None => by_experiment.push((experiment, vec![run])),
            }
        }
        let mut merged: Option<Self> = None;
        for (_, launches) in by_experiment {
            let Some(experiment) = Self::from_launches(launches) else { continue };
            match &mut merged {
                Some(merged) => merged.add_experiment(experiment),
                None => merged = Some(experiment),
            }
        }
        merged
    }

    /// Appends the cases of another experiment, numbered behind those that are there.
    fn add_experiment(&mut self, added: Self) {
        let mut first = self.case_scatters.len();
        for case in &self.cases {
            first = first.max(case.number + 1);
        }
        self.side.experiment += &format!(", {}", added.side.experiment);
        self.side.launches = self.side.launches.max(added.side.launches);
        self.warn_of_other_machine(&added);
        self.warnings.extend(added.warnings);
        self.case_scatters.resize(first, None);
        self.case_scatters.extend(added.case_scatters);
        for case in added.cases {
            self.cases.push(CaseResults { number: first + case.number, ..case });
        }
    }

    /// Warns if a run that is added was measured on another machine or kernel, or in another
    /// setting that affects a switch.
    fn warn_of_other_machine(&mut self, added: &Self) {
        for difference in self.machine.differences(&added.machine) {
            let is_start = |(start, _): &&(&str, &str)| difference.field.starts_with(start);
            if let Some((_, kind)) = LAUNCH_FIELDS.iter().find(is_start) {
                let name = &added.side.name;
                self.warnings.push(format!("{name} has another {kind}: the mean is of both"));
                return;
            }
        }
    }
}

/// Two runs that were measured under different schedulers, whose figures have no common mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerConflict {
    /// Names of the runs.
    runs: [String; 2],
    /// The scheduler of each.
    schedulers: [String; 2],
}

impl SchedulerConflict {
    /// Finds the first run under another scheduler than an earlier one. Runs that do not say under
    /// which are passed over.
    pub fn among(runs: &[Results]) -> Option<Self> {
        let mut first: Option<(&Results, &String)> = None;
        for run in runs {
            let Some(scheduler) = run.machine.scheduler.name.known() else { continue };
            match first {
                Some((first_run, first_scheduler)) if first_scheduler != scheduler => {
                    return Some(Self {
                        runs: [first_run.side.name.clone(), run.side.name.clone()],
                        schedulers: [first_scheduler.clone(), scheduler.clone()],
                    });
                }
                Some(_) => {}
                None => first = Some((run, scheduler)),
            }
        }
        None
    }
}

impl Display for SchedulerConflict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ([first, second], [first_name, second_name]) = (&self.runs, &self.schedulers);
        write!(
            f,
            "{first} ran under the scheduler {first_name}, {second} under {second_name}: launches \
             on one side have one scheduler (switchcost compare {first} {second} compares the two)"
        )
    }
}

/// Adds the launches of a case to those of the same case.
fn add_figures(
    figures: &mut BTreeMap<Quantity, CaseFigure>,
    added: &BTreeMap<Quantity, CaseFigure>,
) {
    for (quantity, figure) in figures {
        if let (CaseFigure::Measured(launches), Some(CaseFigure::Measured(added))) =
            (figure, added.get(quantity))
        {
            launches.extend_from_slice(added);
        }
    }
}

#[cfg(test)]
mod tests {
    use rundata::reading::Reading;
    use rundata::run::Run;

    use super::*;

    fn run_under(name: &str, scheduler: Option<&str>) -> Results {
        let text = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");
        let mut run = Run::parse(text).expect("a run file");
        run.header.run = name.to_string();
        if let Some(scheduler) = scheduler {
            run.header.machine.scheduler.name = Reading::Known(scheduler.to_string());
        }
        Results::from_run(&run)
    }

    #[test]
    fn launches_under_two_schedulers_are_a_conflict_and_unknown_ones_are_not() {
        let old = || run_under("c", None);
        let one = || run_under("a", Some("kernel"));
        let conflict = SchedulerConflict::among(&[old(), one(), run_under("b", Some("lavd"))]);
        let conflict = conflict.expect("two schedulers").to_string();
        let words = "a ran under the scheduler kernel, b under lavd: launches on one side have one";
        assert!(conflict.starts_with(words), "{conflict}");
        assert_eq!(SchedulerConflict::among(&[one(), old(), one()]), None);
    }
}

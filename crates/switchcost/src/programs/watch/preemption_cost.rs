//! Cost of a preemption that was measured on the program itself, by `switchcost sensitivity`. It
//! replaces the costs of rings in the estimate for this program: those walk arrays of its size, but
//! not with its pattern.

use analysis::findings::ExperimentFindings;
use analysis::findings::sensitivity::{SensitivityFindings, SensitivityPoint};
use analysis::program::{Program, ProgramCost, Range, old};
use analysis::record::TrialRecord;
use probe::executable;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::plan::Plan;
use rundata::trial::Trial;
use rundata::trial::command::{CommandSubject, Executable};
use rundata::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stored_runs::{age_s, foreign_fields, newest_runs, this_machine};
use crate::base::secrets::kept;
use crate::engine::store::{StoredRun, header, read};

/// CPU time that a preemption costs one program, as measured on that program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PreemptionCost {
    /// Stored run that measured it.
    pub(crate) run: String,
    /// Age of the run in seconds, if known.
    pub(crate) age_s: Option<u64>,
    /// Program that was measured.
    pub(crate) executable: Executable,
    /// Words that the program was started with, if known.
    pub(crate) words: Option<Vec<String>>,
    /// CPU time in nanoseconds that a preemption costs the program, over all competing tasks.
    pub(crate) each_ns: Range,
    /// Bytes that the largest of these competing tasks uses.
    pub(crate) most_bytes: u64,
    /// Longest time for which one of them stays, in nanoseconds; 0 if all leave at once.
    #[serde(default)]
    pub(crate) most_stay_ns: u64,
}

impl PreemptionCost {
    /// Returns the range over all competing tasks whose cost is quotable; none if no cost is.
    fn from_findings(
        findings: &SensitivityFindings,
        run: String,
        age_s: Option<u64>,
    ) -> Option<Self> {
        let executable = findings.executable.clone()?;
        let mut most_bytes: Option<u64> = None;
        let mut most_stay_ns = 0;
        for point in &findings.points {
            if is_quotable(point) {
                most_bytes = most_bytes.max(Some(point.bytes));
                most_stay_ns = most_stay_ns.max(point.stays_ns);
            }
        }
        let most_bytes = most_bytes?;
        // A cost that is not resolved counts as well if its task uses no more than these.
        let mut each_ns: Option<Range> = None;
        for point in &findings.points {
            let Some(cost) = point.ns_per_preemption else { continue };
            let Some(interval) = cost.interval() else { continue };
            if point.bytes > most_bytes {
                continue;
            }
            let (low, high) = (interval.low.max(0.0), interval.high.max(0.0));
            each_ns = Some(match each_ns {
                None => Range { low, high },
                Some(range) => Range { low: range.low.min(low), high: range.high.max(high) },
            });
        }
        let words = match &findings.subject {
            CommandSubject::Command(words) => Some(words.clone()),
            CommandSubject::Process { .. } => None,
        };
        let each_ns = each_ns?;
        Some(Self { run, age_s, executable, words, each_ns, most_bytes, most_stay_ns })
    }

    /// Loads the newest cost of each program that was measured on this machine.
    pub(crate) fn load_newest() -> Vec<Self> {
        let here = this_machine();
        let mut newest: Vec<Self> = Vec::new();
        for run in newest_runs().unwrap_or_default() {
            let Some(cost) = load(&run, &here, |_| true) else { continue };
            if newest.iter().all(|newer| newer.executable != cost.executable) {
                newest.push(cost);
            }
        }
        newest
    }

    /// Loads the newest cost of one program that was started with these words.
    pub(super) fn find(
        executable: &Executable,
        words: Option<&[String]>,
        here: &Machine,
    ) -> Option<Self> {
        for run in newest_runs().ok()? {
            let cost = load(&run, here, |measured| measured == executable);
            if let Some(cost) = cost.filter(|cost| cost.is_same_program(executable, words)) {
                return Some(cost);
            }
        }
        None
    }

    /// Returns whether a process or thread runs the program that was measured.
    pub(crate) fn applies_to(&self, id: i32) -> bool {
        // Reading the identity of a file takes longer than its path.
        if executable::read_path(id).is_none_or(|path| path != self.executable.path) {
            return false;
        }
        let words = executable::read_words(id);
        executable::find_for_process(id)
            .is_some_and(|executable| self.is_same_program(&executable, words.as_deref()))
    }

    /// Returns whether this program was measured. An interpreter does the work of a script, which
    /// only its words tell.
    fn is_same_program(&self, executable: &Executable, words: Option<&[String]>) -> bool {
        if self.executable != *executable {
            return false;
        }
        if !is_interpreter(&executable.path) {
            return true;
        }
        match (self.words.as_deref(), words) {
            (Some(measured), Some(words)) => are_same_words(measured, words),
            _ => false,
        }
    }

    /// Returns what the costs rest on: `as measured on gzip itself (run 2026-…, 2 hours old)`.
    pub(crate) fn in_words(&self) -> String {
        let name = file_name(&self.executable.path);
        let age = self.age_s.map_or(String::new(), |age| format!(", {}", old(age)));
        format!("as measured on {name} itself (run {}{age})", self.run)
    }

    /// Returns the cost of a program that was watched, in place of what a profile tells; absent
    /// without switches or CPU time.
    pub(super) fn program_cost(
        &self,
        program: &Program,
        direct_share: Option<Range>,
    ) -> Option<ProgramCost> {
        let switches_per_s = program.switches_per_s()?;
        let cpu_share = program.cpu_share.known().filter(|share| **share > 0.0)?;
        let unlimited = self.each_ns.map(|ns| switches_per_s * ns * 1e-9 / cpu_share);
        let share = unlimited.map(|end| end.clamp(0.0, 1.0));
        let largest = words::bytes(self.most_bytes);
        let stay = match self.most_stay_ns {
            0 => String::new(),
            ns => format!(" that stays for up to {}", words::time(ns as f64)),
        };
        Some(ProgramCost::Estimated {
            share,
            limited: share != unlimited,
            direct_share: direct_share.map(|direct| direct.map(|end| end.min(share.high))),
            cost_ns: self.each_ns,
            switches_per_s,
            assumptions: vec![
                format!(
                    "each switch costs it what a preemption by a neighbour of 0 to {largest}{stay} \
                     cost it when it was measured"
                ),
                "its workload is the same as when it was measured".to_string(),
                "the watched time is typical".to_string(),
            ],
        })
    }
}

fn is_quotable(point: &SensitivityPoint) -> bool {
    point.ns_per_preemption.is_some_and(|cost| cost.quote_cost().is_ok())
}

/// Compares the arguments of a measured program with those of a running one. A run file keeps a
/// hash of them; an older one keeps the words.
fn are_same_words(measured: &[String], words: &[String]) -> bool {
    measured.get(1..) == words.get(1..) || measured.get(1..) == kept(words).get(1..)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Programs whose work is that of a script or a class.
const INTERPRETERS: [&str; 14] = [
    "bash", "bun", "dash", "deno", "java", "lua", "node", "perl", "php", "pypy", "python", "R",
    "ruby", "sh",
];

/// Returns whether the file is one of [`INTERPRETERS`], of any version: `python3.11`.
fn is_interpreter(path: &str) -> bool {
    INTERPRETERS.contains(&file_name(path).trim_end_matches(is_version))
}

fn is_version(letter: char) -> bool {
    letter.is_ascii_digit() || letter == '.' || letter == '-'
}

/// Loads the cost from a stored run; none if the run is of another experiment, program or machine,
/// or has no cost.
fn load(
    entry: &StoredRun,
    here: &Machine,
    is_wanted: impl Fn(&Executable) -> bool,
) -> Option<PreemptionCost> {
    // Most runs are something else, which their header tells.
    let header = header(&entry.path).ok()?;
    let is_sensitivity = header.plan.experiment == Experiment::Sensitivity;
    if !is_sensitivity
        || !foreign_fields(&header.machine, here).is_empty()
        || !measured_executables(&header.plan).any(is_wanted)
    {
        return None;
    }
    let record = TrialRecord::from_run(&read(&entry.path).ok()?);
    let Some(ExperimentFindings::Sensitivity(findings)) = &record.found.findings else {
        return None;
    };
    PreemptionCost::from_findings(findings, entry.name.clone(), age_s(&header))
}

/// Returns the files of the commands that a plan runs.
fn measured_executables(plan: &Plan) -> impl Iterator<Item = &Executable> {
    plan.trials().filter_map(|(_, case)| match &case.trial {
        Trial::Command(command) => command.executable.as_ref(),
        _ => None,
    })
}

//! What a preemption costs a program as it was measured on that program: a stored run of
//! `switchcost sensitivity`, which counts more than costs of rings.

use std::time::SystemTime;

use analysis::findings::ExperimentFindings;
use analysis::findings::sensitivity::{SensitivityFindings, SensitivityPoint};
use analysis::program::{Program, ProgramCost, Range, old};
use analysis::record::TrialRecord;
use probe::executable;
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::trial::Trial;
use rundata::trial::command::{CommandSubject, Executable};
use rundata::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::{foreign, this_machine};
use crate::base::secrets::kept;
use crate::engine::store::{RunStore, StoredRun, header, read};

/// What was measured on the program itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PreemptionCost {
    /// The stored run.
    pub(crate) run: String,
    /// Its age, where that is known.
    pub(crate) age_s: Option<u64>,
    /// Whose it is.
    pub(crate) executable: Executable,
    /// The words that it was started with, where they are known.
    pub(crate) words: Option<Vec<String>>,
    /// CPU time in nanoseconds that a preemption costs the program, by any of the neighbours.
    pub(crate) each_ns: Range,
    /// Bytes that the largest of these neighbours uses.
    pub(crate) most_bytes: u64,
    /// How long any of them stays at most, in nanoseconds; 0 where all leave at once.
    #[serde(default)]
    pub(crate) most_stay_ns: u64,
}

impl PreemptionCost {
    /// The range over all neighbours whose cost is known; none where no cost is.
    fn of(found: &SensitivityFindings, run: String, age_s: Option<u64>) -> Option<Self> {
        let executable = found.executable.clone()?;
        let known =
            |of: &&SensitivityPoint| of.ns_per_preemption.is_some_and(|of| of.quote_cost().is_ok());
        let costs: Vec<&SensitivityPoint> = found.points.iter().filter(known).collect();
        let most_bytes = costs.iter().map(|of| of.bytes).max()?;
        // Of a neighbour that uses less, a cost that is not resolved is as low as it may be.
        let all = found.points.iter().filter(|of| of.bytes <= most_bytes);
        let intervals = all.filter_map(|of| of.ns_per_preemption?.interval());
        let each_ns =
            intervals.map(|of| Range { low: of.low.max(0.0), high: of.high.max(0.0) }).reduce(
                |one, other| Range { low: one.low.min(other.low), high: one.high.max(other.high) },
            )?;
        let most_stay_ns = costs.iter().map(|of| of.stays_ns).max().unwrap_or_default();
        let words = match &found.subject {
            CommandSubject::Command(words) => Some(words.clone()),
            CommandSubject::Process { .. } => None,
        };
        Some(Self { run, age_s, executable, words, each_ns, most_bytes, most_stay_ns })
    }

    /// The newest of each program that was measured on this machine.
    pub(crate) fn load_newest() -> Vec<Self> {
        let here = this_machine();
        let entries = RunStore::of_user().and_then(|folder| folder.entries()).unwrap_or_default();
        let mut all: Vec<Self> = Vec::new();
        for own in entries.iter().rev().filter_map(|entry| of_entry(entry, &here, |_| true)) {
            if all.iter().all(|of| of.executable != own.executable) {
                all.push(own);
            }
        }
        all
    }

    /// Whether a process or thread runs it.
    pub(crate) fn applies_to(&self, id: i32) -> bool {
        // The identity is read only where the path is the same.
        executable::read_path(id).is_some_and(|path| path == self.executable.path)
            && executable::find_for_process(id).is_some_and(|executable| {
                self.is(&executable, executable::read_words(id).as_deref())
            })
    }

    /// What an interpreter runs is told by its words only.
    fn is(&self, executable: &Executable, words: Option<&[String]>) -> bool {
        // Of the words a run file has the hash; one of before all of them.
        let is_same = |own: &[String], words: &[String]| {
            own.get(1..) == words.get(1..) || own.get(1..) == kept(words).get(1..)
        };
        self.executable == *executable
            && (!is_interpreter(&executable.path)
                || self.words.as_deref().zip(words).is_some_and(|(own, words)| is_same(own, words)))
    }

    /// `measured on gzip itself (run 2026-…, 2 hours old)`.
    pub(crate) fn in_words(&self) -> String {
        let name = self.executable.path.rsplit('/').next().unwrap_or_default();
        let age = self.age_s.map_or(String::new(), |age| format!(", {}", old(age)));
        format!("as measured on {name} itself (run {}{age})", self.run)
    }

    /// The cost of a program that was watched, in place of what a profile says.
    pub(super) fn cost(
        &self,
        program: &Program,
        direct_share: Option<Range>,
    ) -> Option<ProgramCost> {
        let switches_per_s = program.switches_per_s()?;
        let cpu = program.cpu_share.known().filter(|share| **share > 0.0)?;
        let share = |ns: f64| switches_per_s * ns * 1e-9 / cpu;
        let whole = self.each_ns.map(share);
        let within = whole.map(|end| end.clamp(0.0, 1.0));
        let largest = words::bytes(self.most_bytes);
        let stay = match self.most_stay_ns {
            0 => String::new(),
            ns => format!(" that stays for up to {}", words::time(ns as f64)),
        };
        Some(ProgramCost::Estimated {
            share: within,
            limited: within != whole,
            direct_share: direct_share
                .map(|of| Range { low: of.low.min(within.high), high: of.high.min(within.high) }),
            cost_ns: self.each_ns,
            switches_per_s,
            assumptions: vec![
                format!(
                    "each switch costs it what a preemption by a neighbour of 0 to {largest}{stay} \
                     cost it when it was measured"
                ),
                "it does now what it did then".to_string(),
                "the watched time is typical".to_string(),
            ],
        })
    }
}

/// The newest of one program, with the words that it was started with.
pub(super) fn of(
    executable: &Executable,
    words: Option<&[String]>,
    here: &Machine,
) -> Option<PreemptionCost> {
    let entries = RunStore::of_user().and_then(|folder| folder.entries()).ok()?;
    let found =
        entries.iter().rev().filter_map(|entry| of_entry(entry, here, |of| of == executable));
    { found }.find(|own| own.is(executable, words))
}

/// Programs whose work is that of a script or a class: `python3.11`, `java`.
fn is_interpreter(path: &str) -> bool {
    const ALL: [&str; 14] = [
        "bash", "bun", "dash", "deno", "java", "lua", "node", "perl", "php", "pypy", "python", "R",
        "ruby", "sh",
    ];
    let name = path.rsplit('/').next().unwrap_or_default();
    ALL.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-'))
}

/// None where the run is of something else, of another machine, or says no cost.
fn of_entry(
    entry: &StoredRun,
    here: &Machine,
    is_meant: impl Fn(&Executable) -> bool,
) -> Option<PreemptionCost> {
    // Most runs are something else: what their header says is enough to know that.
    let header = header(&entry.path).ok()?;
    let mut trials = header.plan.trials();
    let is_one = header.plan.experiment == Experiment::Sensitivity
        && foreign(&header.machine, here).is_empty()
        && trials.any(|(_, case)| match &case.trial {
            Trial::Command(of) => of.executable.as_ref().is_some_and(&is_meant),
            _ => false,
        });
    if !is_one {
        return None;
    }
    let record = TrialRecord::from_run(&read(&entry.path).ok()?);
    let Some(ExperimentFindings::Sensitivity(found)) = &record.found.findings else { return None };
    let began = humantime::parse_rfc3339(&header.started).ok();
    let age = began.and_then(|began| SystemTime::now().duration_since(began).ok());
    PreemptionCost::of(found, entry.name.clone(), age.map(|age| age.as_secs()))
}

//! The run file: JSON Lines, a header, a line per sample as each arrives, an end line.
//!
//! Reading is forgiving where nothing is lost by it: a file without its end line is a run that was
//! killed; a last line that was cut off is skipped with a warning.

use std::mem;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::Sample;
use crate::competing::CompetingTasks;
use crate::experiment::{CaseKinds, Experiment, named};
use crate::machine::{FieldDifference, Machine};
use crate::notice::Notice;
use crate::plan::{Plan, Reference, Stopping};
use crate::stored::{self, StoredSample};
use crate::upgrade::{self, upgrade_header};

/// Version of the format that this program writes; older ones stay readable. In version 2 samples
/// of rings are in slices with reference quanta, which are part of their counters' CPU time.
pub const RUN_SCHEMA: u32 = 2;

/// The program that measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramBuild {
    /// Version of the program.
    pub version: String,
    /// Commit, where the build could tell.
    pub commit: Option<String>,
    /// `release` or `debug`.
    pub profile: String,
    /// Target triple.
    pub target: String,
}

/// First line of a run file: everything that is known before the first sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// Version of the format.
    pub schema: u32,
    /// Name of the run, also of its file.
    pub run: String,
    /// Start of the run, RFC 3339, UTC.
    pub started: String,
    /// The command line as given.
    pub invocation: Vec<String>,
    /// Name that was given with `--name`: of several runs with the same name the newest is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of the host; absent with `--anonymous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The program that measured.
    pub build: ProgramBuild,
    /// Cases, order and stopping rule.
    pub plan: Plan,
    /// Machine that is measured.
    pub machine: Machine,
    /// Notices of what was asked for and not granted, and how to get it.
    #[schemars(default)]
    pub notices: Vec<Notice>,
    /// `true` for a quick measurement that `switchcost run` made for itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_quick: bool,
    /// Session of which the run is one half; absent for a run of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionHalf>,
    /// Position among several launches of one plan; absent for a run of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchPosition>,
}

/// Returns whether a flag has its default, and so is not stored.
fn is_false(value: &bool) -> bool {
    !value
}

impl Header {
    /// Returns the name that the run was given, or the run's own.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.run)
    }
}

/// Position of a run among launches of the same plan, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchPosition {
    /// Name of the set, with which the names of all its runs begin.
    pub set: String,
    /// Number of the launch, from 1.
    pub number: u32,
    /// Number of launches that were asked for.
    #[serde(rename = "of")]
    pub count: u32,
}

/// A setting of the two that are measured in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Arm {
    /// The first, with which the second is compared.
    A,
    /// The second.
    B,
}

named!(Arm, "half", A => "A", B => "B");

/// Half of a session: a run that was measured interleaved with another, round by round, each case
/// of both next to each other, so that what is common to a round is common to both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionHalf {
    /// Name of the session, in both halves.
    pub id: String,
    /// Setting of this half.
    pub arm: Arm,
    /// The command that started each worker, in words; empty where they were started as they are.
    pub prefix: Vec<String>,
    /// The name of the other half's run.
    pub other: String,
    /// The setting of the machine that was in force while this half was measured; absent where the
    /// halves differ by their prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<Box<MachineSetting>>,
    /// The command that brought the machine into the state under which this half was measured;
    /// absent where the halves differ in something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<StateCommand>>,
}

impl SessionHalf {
    /// Returns what tells this half from the other: its setting, its command or its prefix.
    pub fn in_words(&self) -> String {
        match (&self.setting, &self.command) {
            (Some(setting), _) => setting.in_words(),
            (None, Some(command)) => {
                let program = command.line.split_whitespace().next().unwrap_or("no command");
                format!("{} ({program})", self.arm.name())
            }
            (None, None) if self.prefix.is_empty() => "no prefix".to_string(),
            (None, None) => self.prefix.join(" "),
        }
    }

    /// Returns whether the halves differ in the state of the whole machine.
    pub fn is_of_machine(&self) -> bool {
        self.setting.is_some() || self.command.is_some()
    }
}

/// A command that brings the whole machine into a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateCommand {
    /// Its program and a hash of the other words, unless all was to be stored; empty where the
    /// machine was left as it was.
    pub line: String,
}

/// A setting of the whole machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineSetting {
    /// The file below /proc/sys or /sys.
    pub file: String,
    /// What was written to it.
    pub value: String,
}

impl MachineSetting {
    /// Returns `sched_autogroup_enabled=0`: the name of the file, and the value.
    pub fn in_words(&self) -> String {
        let name = self.file.rsplit('/').next().unwrap_or(&self.file);
        format!("{name}={}", self.value)
    }
}

/// A case that could not be measured, and the reason. Its smaller rings are still measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Number of the case in the plan.
    pub case: usize,
    /// Round in which it failed.
    pub round: u32,
    /// The value, the limit or errno, and the next step.
    pub message: String,
}

/// Reason for which a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Every interval is narrow enough.
    Precise,
    /// The time is spent.
    BudgetSpent,
    /// The asked number of rounds is done.
    RoundsDone,
    /// Somebody asked to stop.
    Interrupted,
    /// No case could be measured any further.
    Failed,
}

/// Last line of a run file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunEnd {
    /// Reason of the end.
    pub reason: StopReason,
    /// End of the run, RFC 3339, UTC.
    pub finished: String,
    /// Time spent measuring, in nanoseconds: the sum over all sessions of a resumed run.
    pub spent_ns: u64,
}

impl RunEnd {
    /// Returns whether the run did what was asked for: it was not stopped, and could be measured to
    /// its end.
    fn is_whole(&self) -> bool {
        match self.reason {
            StopReason::Precise | StopReason::BudgetSpent | StopReason::RoundsDone => true,
            StopReason::Interrupted | StopReason::Failed => false,
        }
    }
}

/// Returns the beginning of a sentence on a run that did not end, by its end line; `None` where it
/// did end. No law, ranking, verdict or profile is built on such a run.
pub fn unfinished(end: Option<&RunEnd>) -> Option<&'static str> {
    match end {
        Some(end) if end.is_whole() => None,
        Some(RunEnd { reason: StopReason::Interrupted, .. }) => Some("Interrupted"),
        _ => Some("Not finished"),
    }
}

/// A run that goes on in a later session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResumedSession {
    /// Start of the session, RFC 3339, UTC.
    pub at: String,
    /// Time spent measuring before, in nanoseconds.
    pub spent_ns: u64,
    /// The stopping rule from here on.
    pub stopping: Stopping,
    /// Differences to the machine of the header, a line for each field.
    pub differences: Vec<String>,
    /// Knowledge of the CPU at that time, which replaces the plan's: the whole run is read by it.
    /// It is absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// A change of the machine's settings while a run went on ([`Machine::changed_settings`]). They are
/// read before each round and after the last: the round in which a setting changed is under the
/// new ones.
///
/// ```text
/// round     0    1    2    3    4        lines of the file
/// settings  A    A   A,B   B    A        {"round": 2, "differences": [A -> B]}, {"round": 4}
/// holds    yes  yes   no   no  yes
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingChange {
    /// First round under the new settings, if only at its end.
    pub round: u32,
    /// When the change was seen, RFC 3339, UTC.
    pub at: String,
    /// Differences of the new settings to those of the header; empty where they are the same again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<FieldDifference>,
}

/// A line of a run file; [`RunFileLine::to_text`] writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunFileLine {
    /// Always the first.
    Header(Box<Header>),
    /// A measurement. Where the experiment has rings or trials only it stands bare.
    Sample(#[schemars(with = "StoredSample<'static>")] Sample),
    /// A case that could not be measured.
    Failure(Failure),
    /// The run went on after an earlier end.
    Resumed(ResumedSession),
    /// Settings of the machine changed.
    Setting(SettingChange),
    /// Tasks that competed for the measured CPUs in this session; before its end line.
    // Its name in older files.
    #[serde(alias = "company")]
    CompetingTasks(Box<CompetingTasks>),
    /// The end of a run that was not killed; only its result may follow.
    End(RunEnd),
    /// Result of the run, as it was computed when the run ended.
    Result(RunResult),
}

/// Result of a run in a few words, for lists of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "StoredResult")]
pub struct RunResult {
    /// The run's main figure: `2.06 us a switch (2)`.
    pub text: String,
    /// Whether the figure is not quotable: no comparison uses it.
    pub is_rough: bool,
}

/// A result as it stands in a run file.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum StoredResult {
    /// A result with its kind.
    WithKind {
        /// The run's main figure: `2.06 us a switch (2)`.
        text: String,
        /// Whether the figure is not quotable: no comparison uses it.
        is_rough: bool,
    },
    /// The text alone, in files of older programs.
    Text(String),
}

impl From<StoredResult> for RunResult {
    fn from(stored: StoredResult) -> Self {
        match stored {
            StoredResult::WithKind { text, is_rough } => Self { text, is_rough },
            StoredResult::Text(text) => Self { is_rough: upgrade::is_rough_result(&text), text },
        }
    }
}

impl RunFileLine {
    /// Writes the line for a run file of that experiment, without the end of line.
    pub fn to_text(&self, experiment: Experiment) -> serde_json::Result<String> {
        match self {
            Self::Sample(sample) => stored::sample_to_text(sample, experiment),
            line => serde_json::to_string(line),
        }
    }

    /// Reads a line of a run file of that experiment.
    pub fn from_text(text: &str, experiment: Experiment) -> serde_json::Result<Self> {
        match experiment.case_kinds() {
            CaseKinds::Rings if is_sample(text) => {
                return stored::ring_sample_from_text(text).map(Self::Sample);
            }
            CaseKinds::Trials if is_sample(text) => {
                return stored::trial_sample_from_text(text).map(Self::Sample);
            }
            _ => {}
        }
        let line = serde_json::from_str(text)?;
        if let Self::Resumed(ResumedSession { stopping, reference, .. }) = &line {
            stopping.check().map_err(serde_json::Error::custom)?;
            if let Some(reference) = reference {
                reference.check().map_err(serde_json::Error::custom)?;
            }
        }
        Ok(line)
    }
}

/// Returns whether a line is a sample's: a line is an object of one field, whose name is the kind
/// of the line.
fn is_sample(text: &str) -> bool {
    match text.trim_start().strip_prefix('{') {
        Some(field) => field.trim_start().starts_with("\"sample\""),
        None => false,
    }
}

/// A run as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The first line.
    pub header: Header,
    /// Samples in the order of arrival, of the rounds under the settings of the header.
    pub samples: Vec<Sample>,
    /// Samples of rounds in which a setting of the machine was another one. No figure has them.
    pub set_aside: Vec<Sample>,
    /// Changes of the machine's settings, in the order in which they were seen.
    pub setting_changes: Vec<SettingChange>,
    /// Cases that could not be measured.
    pub failures: Vec<Failure>,
    /// The end line; absent for a run that was killed or is still going on.
    pub end: Option<RunEnd>,
    /// Later sessions.
    pub resumed: Vec<ResumedSession>,
    /// Tasks that competed for the measured CPUs, all sessions together; absent for a run that was
    /// killed and for one that is older than the line.
    pub competing_tasks: Option<CompetingTasks>,
    /// Descriptions of lines that could not be read.
    pub warnings: Vec<String>,
}

/// Reason why a text is not a run file, in words that follow the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RunError(String);

impl Run {
    /// Builds a run that has just begun.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            samples: Vec::new(),
            set_aside: Vec::new(),
            setting_changes: Vec::new(),
            failures: Vec::new(),
            end: None,
            resumed: Vec::new(),
            competing_tasks: None,
            warnings: Vec::new(),
        }
    }

    /// Reads the text of a run file.
    pub fn parse(text: &str) -> Result<Self, RunError> {
        let (mut reader, mut samples) = (RunFileReader::default(), Vec::new());
        for line in text.lines() {
            samples.extend(reader.line(line)?);
        }
        Ok(reader.finish()?.with_samples(samples))
    }

    /// Adds all samples of the run. Those of rounds under other settings are set aside.
    pub fn with_samples(mut self, samples: Vec<Sample>) -> Self {
        self.samples.extend(samples);
        self.set_other_settings_aside();
        self
    }

    /// Sets the samples aside that were measured under other settings of the machine than those of
    /// the header.
    pub fn set_other_settings_aside(&mut self) {
        if self.setting_changes.is_empty() {
            return;
        }
        for sample in mem::take(&mut self.samples) {
            if self.is_under_header_settings(sample.round()) {
                self.samples.push(sample);
            } else {
                self.set_aside.push(sample);
            }
        }
    }

    /// Returns whether the machine had the settings of the header all through a round. The last line
    /// on a round counts: a setting may change back and forth.
    pub fn is_under_header_settings(&self, round: u32) -> bool {
        let earlier = self.setting_changes.iter().rev().find(|change| change.round <= round);
        earlier.is_none_or(|change| change.differences.is_empty())
    }

    /// Adds the next line of the file.
    pub fn push(&mut self, line: RunFileLine) {
        match line {
            RunFileLine::Header(_) => self.warnings.push("a second header was skipped".to_string()),
            RunFileLine::Sample(sample) => self.samples.push(sample),
            RunFileLine::Failure(failure) => self.failures.push(failure),
            RunFileLine::Resumed(resumed) => {
                // What failed is tried again, under the new stopping rule.
                self.failures.clear();
                self.end = None;
                let plan = &mut self.header.plan;
                plan.stopping = resumed.stopping.clone();
                if let Some(reference) = &resumed.reference {
                    plan.reference.clone_from(reference);
                }
                self.resumed.push(resumed);
            }
            RunFileLine::Setting(change) => self.setting_changes.push(change),
            RunFileLine::CompetingTasks(tasks) => {
                self.competing_tasks = Some(match self.competing_tasks.take() {
                    Some(earlier) => earlier.plus(*tasks),
                    None => *tasks,
                });
            }
            RunFileLine::End(end) => self.end = Some(end),
            // Computed anew from the samples.
            RunFileLine::Result(_) => {}
        }
    }

    /// Returns the beginning of a sentence on the run if it did not end: see [`unfinished`].
    pub fn unfinished(&self) -> Option<&'static str> {
        unfinished(self.end.as_ref())
    }

    /// Returns the number of rounds that were begun.
    pub fn rounds(&self) -> u32 {
        let mut rounds = 0;
        for sample in self.samples.iter().chain(&self.set_aside) {
            rounds = rounds.max(sample.round().saturating_add(1));
        }
        rounds
    }

    /// Returns the time spent measuring by all sessions, in nanoseconds, as far as the file tells.
    pub fn spent_ns(&self) -> u64 {
        match (&self.end, self.resumed.last()) {
            (Some(end), _) => end.spent_ns,
            (None, Some(resumed)) => resumed.spent_ns,
            (None, None) => 0,
        }
    }
}

/// Reads a run file line by line, so that only what is wanted of it needs memory.
#[derive(Default)]
pub struct RunFileReader {
    lines: usize,
    run: Option<Run>,
    foreign: usize,
}

impl RunFileReader {
    /// Reads the next line; returns the sample, if it is one. Only a header that cannot be read is
    /// an error: other lines are skipped with a warning.
    pub fn line(&mut self, line: &str) -> Result<Option<Sample>, RunError> {
        self.lines += 1;
        if line.trim().is_empty() {
            return Ok(None);
        }
        let Some(run) = &mut self.run else {
            self.run = Some(Run::new(parse_header(line)?));
            return Ok(None);
        };
        let plan = &run.header.plan;
        match RunFileLine::from_text(line, plan.experiment) {
            // Samples of cases that the plan does not have, or has of another kind, would only be
            // miscounted.
            Ok(RunFileLine::Sample(sample)) => {
                let case = plan.cases.get(sample.case());
                if case.is_some_and(|case| case.ring().is_some() == sample.ring().is_some()) {
                    return Ok(Some(sample));
                }
                self.foreign += 1;
            }
            Ok(line) => run.push(line),
            Err(error) => run.warnings.push(unreadable(self.lines, line, &error)),
        }
        Ok(None)
    }

    /// Returns the run without its samples.
    pub fn finish(self) -> Result<Run, RunError> {
        let mut run = self.run.ok_or_else(empty)?;
        let cases = run.header.plan.cases.len();
        run.failures.retain(|failure| failure.case < cases);
        if self.foreign > 0 {
            let lost = self.foreign;
            run.warnings.push(format!("{lost} samples of cases not in the plan were skipped"));
        }
        Ok(run)
    }
}

/// Reads the header alone of a run file, from its text or its first line.
pub fn parse_header_of(text: &str) -> Result<Header, RunError> {
    parse_header(text.lines().find(|line| !line.trim().is_empty()).ok_or_else(empty)?)
}

fn empty() -> RunError {
    RunError("is empty: not a run file".to_string())
}

/// Reads a header. The version comes first: a newer header may not be readable at all.
fn parse_header(line: &str) -> Result<Header, RunError> {
    let lacks =
        |what: &str| RunError(format!("is not a run file: its first line is no header ({what})"));
    let not_a_run = |error: serde_json::Error| lacks(&error.to_string());
    let mut value: Value = serde_json::from_str(line).map_err(not_a_run)?;
    let schema = value.pointer("/header/schema").and_then(Value::as_u64);
    let found = schema.ok_or_else(|| lacks("no schema version"))?;
    if found > u64::from(RUN_SCHEMA) {
        return Err(RunError(format!(
            "has schema version {found}, this program reads up to {RUN_SCHEMA}: read it with a newer \
             switchcost"
        )));
    }
    let experiment = value.pointer("/header/plan/experiment").and_then(Value::as_str);
    let experiment = experiment.ok_or_else(|| lacks("no experiment"))?;
    experiment.parse::<Experiment>().map_err(|why| {
        RunError(format!("is a run of another experiment than this program has: {why}"))
    })?;
    upgrade_header(&mut value);
    match serde_json::from_value(value).map_err(not_a_run)? {
        RunFileLine::Header(header) => Ok(*header),
        _ => Err(lacks("another kind of line")),
    }
}

fn unreadable(number: usize, line: &str, error: &serde_json::Error) -> String {
    if error.is_eof() {
        format!("line {number} is cut off after {} bytes and was skipped", line.len())
    } else {
        format!("line {number} cannot be read and was skipped: {error}")
    }
}

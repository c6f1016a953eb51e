//! The plan of `switchcost run`: which commands run how often, and how reports label them.

use std::collections::{BTreeMap, BTreeSet};

use launcher::Ending;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::terminal::shortened;

/// Commands, and how they are run and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub(crate) struct CommandPlan {
    /// Words of each command; all are compared with the first.
    pub(crate) commands: Vec<Vec<String>>,
    /// Name of each command; an empty name means that the command is labelled by its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<String>,
    /// Measured runs of each command.
    pub(crate) runs: u32,
    /// Runs of each command beforehand; they are discarded.
    pub(crate) warmup: u32,
    /// Seed of the order of commands and of every resampling.
    pub(crate) seed: u64,
    /// True if descendants that outlive their parents are counted too.
    pub(crate) tree: bool,
    /// Confidence of every interval: 0.95 is 95 %.
    pub(crate) confidence: f64,
    /// True if the output of commands is shown in all runs, and not discarded.
    #[serde(default)]
    pub(crate) show_output: bool,
    /// Shell that runs command lines; absent if they run without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shell: Option<String>,
    /// Kind of output of each command, if it was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<OutputKind>,
    /// Input of all runs; absent if it was that of switchcost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<InputKind>,
    /// True if a run that fails is measured like any other.
    #[serde(default)]
    pub(crate) ignore_failure: bool,
    /// Exit codes of runs that are measured like any other; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored_codes: Vec<u8>,
    /// Commands that run around the measured ones.
    #[serde(default, rename = "around")]
    pub(crate) hooks: HookLines,
}

/// Kind of place that the output of a command goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputKind {
    /// It is discarded.
    Null,
    /// It goes through a pipe, and is discarded.
    Pipe,
    /// It is shown.
    Inherit,
    /// It goes to a file.
    File,
}

/// Kind of input of all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputKind {
    /// The runs read nothing.
    Null,
    /// A file, which each run reads from its beginning.
    File,
}

/// Command lines that run around the measured commands, as typed; they are not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Around")]
pub(crate) struct HookLines {
    /// Runs before the first round.
    pub(crate) setup: Option<String>,
    /// Run before each measured run: one line for all commands, or one for each.
    pub(crate) prepare: Vec<String>,
    /// Run after each measured run: one line for all commands, or one for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) conclude: Vec<String>,
    /// Runs after the last round.
    pub(crate) cleanup: Option<String>,
}

/// Most characters of a label; the middle of a longer one is left out.
const MAX_LABEL_CHARS: usize = 48;

/// Returns a label with its number behind it, shortened to fit.
fn numbered(label: &str, suffix: &str) -> String {
    shortened(label, MAX_LABEL_CHARS.saturating_sub(suffix.len())) + suffix
}

impl CommandPlan {
    /// Returns whether a run that ended so is a failure.
    pub(super) fn is_failure(&self, ending: Ending) -> bool {
        let code = ending.shell_code();
        code != 0 && !self.ignore_failure && !self.ignored_codes.contains(&code)
    }

    /// Returns the label of a command in sentences, tables and charts: its name or its words, and
    /// its number if another command has the same ones, as long as a label is.
    pub(super) fn label(&self, number: usize) -> String {
        self.labels().into_iter().nth(number).unwrap_or_default()
    }

    /// Returns the labels of all commands, each of which is there once.
    fn labels(&self) -> Vec<String> {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for number in 0..self.commands.len() {
            let label = shortened(&self.full_label(number), MAX_LABEL_CHARS);
            *counts.entry(label).or_default() += 1;
        }
        let (mut labels, mut used) = (Vec::new(), BTreeSet::new());
        for number in 0..self.commands.len() {
            let full = self.full_label(number);
            let mut label = shortened(&full, MAX_LABEL_CHARS);
            if counts[&label] > 1 {
                label = numbered(&full, &format!(" ({})", number + 1));
            }
            // A typed name may be the numbered label of another command.
            let mut tries = 1;
            while used.contains(&label) {
                label = numbered(&full, &format!(" ({}.{tries})", number + 1));
                tries += 1;
            }
            used.insert(label.clone());
            labels.push(label);
        }
        labels
    }

    /// Returns the label of a command in its whole length, which other commands may have too.
    pub(super) fn full_label(&self, number: usize) -> String {
        match self.names.get(number) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => shell_words::join(self.commands.get(number).into_iter().flatten()),
        }
    }

    /// Returns `LABEL: `, which begins a line about one of several commands; empty for a single
    /// command.
    pub(super) fn prefix(&self, number: usize) -> String {
        match self.commands.len() {
            1 => String::new(),
            _ => format!("{}: ", self.label(number)),
        }
    }
}

//! What `switchcost run` was asked for, and what its commands are called.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::terminal::shortened;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Plan {
    /// One command, or several that are compared with the first.
    pub(crate) commands: Vec<Vec<String>>,
    /// What each is called; empty where that is its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<String>,
    /// Runs of each.
    pub(crate) runs: u32,
    /// Runs of each beforehand, of which nothing is kept.
    pub(crate) warmup: u32,
    /// Seed of the order of commands and of every resampling.
    pub(crate) seed: u64,
    /// Whether descendants that outlive their parents are counted too.
    pub(crate) tree: bool,
    /// Confidence of every interval: 0.95 is 95 %.
    pub(crate) confidence: f64,
    /// Whether what the commands print is shown in all runs, and not discarded.
    #[serde(default)]
    pub(crate) show_output: bool,
    /// What runs command lines; absent where no shell does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shell: Option<String>,
    /// Whether a command that does not succeed is measured as any other.
    #[serde(default)]
    pub(crate) ignore_failure: bool,
    /// What is run around the commands and not measured.
    #[serde(default)]
    pub(crate) around: Around,
}

/// Command lines that are run around those that are measured, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Around {
    /// Before the first round.
    pub(crate) setup: Option<String>,
    /// Before each run: of all commands, or one for each.
    pub(crate) prepare: Vec<String>,
    /// After the last round.
    pub(crate) cleanup: Option<String>,
}

/// Characters of a command in sentences and tables: of a longer one the middle is left out.
const LONGEST_LABEL: usize = 48;

impl Plan {
    /// Returns what a command is called, in all places alike.
    pub(super) fn label(&self, number: usize) -> String {
        let label = self.long_label(number);
        let is_own = |other: usize| other == number || self.long_label(other) != label;
        if (0..self.commands.len()).all(is_own) {
            return shortened(&label, LONGEST_LABEL);
        }
        // The same twice, to see what comes of nothing.
        let suffix = format!(" ({})", number + 1);
        shortened(&label, LONGEST_LABEL - suffix.len()) + &suffix
    }

    fn long_label(&self, number: usize) -> String {
        let name = self.names.get(number).filter(|name| !name.is_empty()).cloned();
        name.unwrap_or_else(|| shell_words::join(self.commands.get(number).into_iter().flatten()))
    }

    /// What comes before a line about one of several commands.
    pub(super) fn prefix(&self, number: usize) -> String {
        match self.commands.len() {
            1 => String::new(),
            _ => format!("{}: ", self.label(number)),
        }
    }
}

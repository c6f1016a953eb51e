//! The side of a comparison as its JSON has it: name, origin and machine of results.

use rundata::run::{Header, ProgramBuild, SessionHalf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// A run of this program.
    Run {
        /// Start of the run, RFC 3339, UTC.
        started: String,
        /// The build of the program.
        build: ProgramBuild,
        /// The session that the run is one half of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionHalf>,
    },
    /// A publication.
    Publication {
        /// Title and year of the publication.
        source: String,
    },
}

/// A side of a comparison, in its record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Side")]
pub struct ComparisonSide {
    /// Name of the run, or `history:` and the name of the machine.
    pub name: String,
    /// Name in sentences: as typed, or the name or prefix that it was measured with.
    #[serde(default)]
    pub label: String,
    /// The experiment.
    pub experiment: String,
    /// The source of the figures.
    pub origin: Origin,
    /// CPU and system in words: `Sun-4/280, SunOS 4.1.1`.
    pub machine: String,
    /// Number of launches behind the figures; 0 for published figures.
    pub launches: u32,
}

impl ComparisonSide {
    /// Builds the side of a run.
    pub(super) fn from_header(header: &Header) -> Self {
        let cpu = header.machine.cpu_name().map_or("unknown CPU", String::as_str);
        let kernel = header.machine.kernel.release.known();
        let kernel = kernel.map_or("unknown system", String::as_str);
        Self {
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
        }
    }

    /// Returns whether both are one run, whatever their labels.
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.name == other.name && self.origin == other.origin
    }
}

/// Returns what a run was called when it was measured: the prefix or setting of its half of a session, the
/// name that was given, or its own name.
fn label(header: &Header) -> String {
    match &header.session {
        Some(session) => session.in_words(),
        None => header.name.clone().unwrap_or_else(|| header.run.clone()),
    }
}

//! The report of `cost --pid` and `cost -- CMD`: counts and memory of a program, priced by this
//! machine's costs.

use analysis::marked::MarkedText;
use analysis::program::{
    CostProfile, Direct, ProfilePoint, Program, ProgramCost, Range, RingsBeyond, WorkingSet,
    direct_by_kind, program_cost,
};
use rundata::machine::Machine;
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{self, HeadlineFacts};
use super::figure::CostFigure;
use super::observation::{ProgramObservation, WorkingSetReading};
use super::preemption_cost::PreemptionCost;
use super::profile_choice::{AcceptedRuns, ChosenProfile, best_profile};
use super::stored_runs::this_machine;

/// Version of [`ProgramCostReport`].
pub(crate) const SCHEMA: u32 = 1;

/// Everything that `cost --pid` and `cost -- CMD` tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProgramCostReport {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// Counts and memory of the program.
    #[serde(flatten)]
    pub(crate) seen: ProgramObservation,
    /// Rates and working set.
    pub(crate) program: Program,
    /// Cost profile that the estimate rests on.
    #[serde(rename = "surface")]
    pub(crate) profile: Reading<CostProfile>,
    /// Cost of a preemption that was measured on this program itself, on which the estimate rests
    /// if there is one.
    #[serde(default, rename = "own")]
    pub(crate) preemption_cost: Option<PreemptionCost>,
    /// Reason for the choice of the profile.
    pub(crate) profile_choice: Option<String>,
    /// Estimate; if the working set was not read, for any up to the resident memory.
    pub(crate) cost: ProgramCost,
    /// Figure that is printed, as `trace` prints it. Absent if nothing is known.
    #[serde(default)]
    pub(crate) figure: Option<CostFigure>,
    /// Cost of a switch itself in ns, from which the answer's direct share comes; absent if it was
    /// not measured.
    pub(crate) direct_ns: Option<Range>,
    /// Share of the CPU time that refilling caches takes, beside the switches themselves; unknown
    /// if the working set was not read, or its costs were not measured.
    pub(crate) refill_share: Reading<Range>,
    /// Command that would make an unknown share known, if there is one.
    pub(crate) command_to_know: Option<String>,
    /// Answer in words.
    pub(crate) in_words: MarkedText,
}

impl ProgramCostReport {
    /// Returns the cost of the switch itself by its kind, from which the answer's direct share
    /// comes.
    pub(crate) fn direct(&self) -> Option<Direct> {
        direct_by_kind(&self.program, &self.profile.known()?.points)
    }

    /// Prices what was observed by the profile that was asked for, or else by the best one of this
    /// machine.
    pub(super) fn from_observation(
        mut seen: ProgramObservation,
        working_set: WorkingSetReading,
        named: Option<&ChosenProfile>,
    ) -> Self {
        let WorkingSetReading { set, unread } = working_set;
        let here = this_machine();
        let program = program_rates(&seen, set);
        let cached = Program {
            working_set: program.working_set.clone().map(|set| set.in_caches(&here)),
            ..program.clone()
        };
        let chosen = match named {
            Some(named) => Ok(named.clone()),
            None => best_profile_for(&cached, &here),
        };
        let mut points: &[ProfilePoint] = &[];
        if let Ok(chosen) = &chosen {
            seen.notices.extend_from_slice(&chosen.notices);
            points = &chosen.profile.points;
        }
        let profile_cost = match &chosen {
            Ok(_) => program_cost(&cached, points),
            Err(why) => program_cost(&cached, points).without_profile(why),
        };
        // What was measured on the program itself comes first, unless a profile was asked for.
        let preemption_cost = match (&seen.executable, named) {
            (Some(executable), None) => {
                PreemptionCost::find(executable, seen.words.as_deref(), &here)
            }
            _ => None,
        };
        let measured_cost = match &preemption_cost {
            Some(cost) => cost.program_cost(&cached, profile_cost.direct_share()),
            None => None,
        };
        let (cost, preemption_cost, unread) = match measured_cost {
            Some(measured_cost) => (measured_cost, preemption_cost, None),
            None => (profile_cost, None, unread),
        };
        let direct_ns = direct_by_kind(&cached, points).map(|direct| cached.direct(direct));
        let figure = CostFigure::from_estimate(&cost, unread.as_ref(), direct_ns);
        let (path, profile_choice, priced_by) = match &chosen {
            Ok(chosen) => (
                Some(chosen.path.display().to_string()),
                Some(chosen.why.clone()),
                Some(profile_in_words(chosen, &cached)),
            ),
            Err(_) => (None, None, None),
        };
        let priced_by = preemption_cost.as_ref().map(PreemptionCost::in_words).or(priced_by);
        let command_to_know =
            answer::command_to_know(&cost, unread.as_ref(), &seen, path.as_deref());
        let answer = answer::headline(&HeadlineFacts {
            figure: figure.as_ref(),
            cost: &cost,
            unread: unread.as_ref(),
            program: &cached,
            source: seen.counted_by,
            priced_by: priced_by.as_deref(),
            advice: &answer::narrowing_advice(&seen, &cached),
        });
        Self {
            schema: SCHEMA,
            program,
            profile: chosen.map(|chosen| chosen.profile).into(),
            preemption_cost,
            profile_choice,
            figure,
            direct_ns,
            refill_share: answer::refill_share(&cost, unread.as_ref()),
            cost,
            command_to_know,
            in_words: answer + &answer::omitted_in_words(seen.left_out.as_ref()),
            seen,
        }
    }
}

/// Returns the best profile for a program's working set.
fn best_profile_for(program: &Program, here: &Machine) -> Result<ChosenProfile, String> {
    let set = program.working_set.known().copied();
    best_profile(set, program.between_ns(), AcceptedRuns::Costs, here)
}

/// Returns the source of the costs: `by profile x, 1 hour old`, and what they cover if the program
/// has more working sets than the rings.
fn profile_in_words(chosen: &ChosenProfile, program: &Program) -> String {
    let set = program.working_set.known().copied();
    let profile = chosen.profile.called();
    match RingsBeyond::find(set, &chosen.profile.points) {
        Some(beyond) => format!("by {profile}, {}", beyond.in_words()),
        None => format!("by {profile}"),
    }
}

/// Returns the rates of a program, and its working set with the share of switches that were
/// preemptions.
fn program_rates(seen: &ProgramObservation, mut set: Reading<WorkingSet>) -> Program {
    let counts = [&seen.voluntary, &seen.involuntary, &seen.cpu_ns];
    let counts = counts.map(|count| count.clone().map(|count| count as f64));
    let involuntary_share = match (seen.voluntary.known(), seen.involuntary.known()) {
        (Some(voluntary), Some(involuntary)) => {
            *involuntary as f64 / (voluntary + involuntary).max(1) as f64
        }
        _ => 0.0,
    };
    if let Reading::Known(WorkingSet { sampled: Some(pattern), .. }) = &mut set {
        pattern.involuntary_share = involuntary_share;
    }
    Program::over(seen.watched_ns as f64, counts, set)
}

//! The report of `cost --pid` and `cost -- CMD`: counts and memory of a program, priced by this
//! machine's costs.

use analysis::marked::MarkedText;
use analysis::program::{
    AccessPattern, CostProfile, Direct, ProfilePoint, Program, ProgramCost, Range, RingsBeyond,
    WorkingSet, direct_by_kind, program_cost,
};
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{self, HeadlineFacts};
use super::figure::CostFigure;
use super::machine_match::this_machine;
use super::observation::{ProgramObservation, WorkingSetReading};
use super::preemption_cost::PreemptionCost;
use super::profile_choice::{AcceptedRuns, ChosenProfile, best_profile};

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
    /// Why this profile was chosen.
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
        let program = program_rates(&seen, set);
        let here = this_machine();
        let working_set = program.working_set.clone().map(|set| set.in_caches(&here));
        let cached = Program { working_set, ..program.clone() };
        let cached_set = cached.working_set.known().copied();
        let chosen = match named {
            Some(named) => Ok(named.clone()),
            None => best_profile(cached_set, cached.between_ns(), AcceptedRuns::Costs, &here),
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
        let own_executable = seen.executable.as_ref().filter(|_| named.is_none());
        let preemption_cost = own_executable
            .and_then(|executable| PreemptionCost::find(executable, seen.words.as_deref(), &here));
        let direct_share = profile_cost.direct_share();
        let measured_cost =
            preemption_cost.as_ref().and_then(|cost| cost.program_cost(&cached, direct_share));
        let (cost, preemption_cost, unread) = match measured_cost {
            Some(measured_cost) => (measured_cost, preemption_cost, None),
            None => (profile_cost, None, unread),
        };
        let direct_ns = direct_by_kind(&cached, points).map(|direct| cached.direct(direct));
        let path = chosen.as_ref().ok().map(|chosen| chosen.path.display().to_string());
        let priced_by = match (&preemption_cost, &chosen) {
            (Some(cost), _) => Some(cost.in_words()),
            (None, Ok(chosen)) => {
                let beyond = RingsBeyond::find(cached_set, points).map(RingsBeyond::in_words);
                let beyond = beyond.map_or(String::new(), |words| format!(", {words}"));
                Some(format!("by {}{beyond}", chosen.profile.called()))
            }
            (None, Err(_)) => None,
        };
        let figure = CostFigure::from_estimate(&cost, unread.as_ref(), direct_ns);
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
            profile_choice: chosen.as_ref().ok().map(|chosen| chosen.why.clone()),
            figure,
            refill_share: answer::refill_share(&cost, unread.as_ref()),
            direct_ns,
            command_to_know: answer::command_to_know(
                &cost,
                unread.as_ref(),
                &seen,
                path.as_deref(),
            ),
            in_words: answer + &answer::omitted_in_words(seen.left_out.as_ref()),
            seen,
            profile: chosen.map(|chosen| chosen.profile).into(),
            cost,
            preemption_cost,
        }
    }
}

/// Returns the rates of a program, and its working set with the share of switches that were
/// preemptions.
fn program_rates(seen: &ProgramObservation, set: Reading<WorkingSet>) -> Program {
    let counts = [&seen.voluntary, &seen.involuntary, &seen.cpu_ns];
    let counts = counts.map(|count| count.clone().map(|count| count as f64));
    let involuntary_share = match (seen.voluntary.known(), seen.involuntary.known()) {
        (Some(voluntary), Some(involuntary)) => {
            *involuntary as f64 / (voluntary + involuntary).max(1) as f64
        }
        _ => 0.0,
    };
    let set = set.map(|set| {
        let sampled = set.sampled.map(|pattern| AccessPattern { involuntary_share, ..pattern });
        WorkingSet { sampled, ..set }
    });
    Program::over(seen.watched_ns as f64, counts, set)
}

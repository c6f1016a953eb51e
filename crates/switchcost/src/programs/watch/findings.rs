//! What `cost --pid` and `cost -- CMD` say of a program.

use analysis::marked::MarkedText;
use analysis::program::{
    AccessPattern, CostProfile, Direct, Program, ProgramCost, Range, RingsBeyond, WorkingSet,
    direct_by_kind, program_cost,
};
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer;
use super::choice::{self, Accepts, ChosenProfile};
use super::figure::CostFigure;
use super::own::{self, PreemptionCost};
use super::seen::{NotRead, ProgramObservation};

/// Version of [`ProgramCostReport`].
pub(crate) const SCHEMA: u32 = 1;

/// All that `cost --pid` and `cost -- CMD` say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProgramCostReport {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    #[serde(flatten)]
    pub(crate) seen: ProgramObservation,
    /// The same as rates.
    pub(crate) program: Program,
    /// The cost profile that the estimate rests on.
    #[serde(rename = "surface")]
    pub(crate) profile: Reading<CostProfile>,
    /// What was measured on this program itself: the estimate rests on it, if it is there.
    #[serde(default)]
    pub(crate) own: Option<PreemptionCost>,
    /// Why it is this one.
    pub(crate) profile_choice: Option<String>,
    /// The estimate: where the working set was not read, for anything up to the resident memory.
    pub(crate) cost: ProgramCost,
    /// The figure that is told: `trace` has the same. Absent where nothing is known.
    #[serde(default)]
    pub(crate) figure: Option<CostFigure>,
    /// Cost of a switch itself in ns, by which the answer's direct share is; absent where it was
    /// not measured.
    pub(crate) direct_ns: Option<Range>,
    /// Share of the CPU time that refilling caches takes, beside the switches themselves; unknown
    /// where the working set was not read, or its costs were not measured.
    pub(crate) refill_share: Reading<Range>,
    /// The command that would make an unknown share known, where there is one.
    pub(crate) command_to_know: Option<String>,
    /// The answer in words.
    pub(crate) in_words: MarkedText,
}

/// What was seen of a program's working set, and why if it was not read.
pub(super) type SeenSet = (Reading<WorkingSet>, Option<NotRead>);

impl ProgramCostReport {
    /// The cost of the switch itself by its kind, as the answer has it.
    pub(crate) fn direct(&self) -> Option<Direct> {
        direct_by_kind(&self.program, &self.profile.known()?.points)
    }

    /// What was seen, and what it means with this machine's cost profile, or with the one that was
    /// asked for.
    pub(super) fn of(
        mut seen: ProgramObservation,
        set: SeenSet,
        named: Option<&ChosenProfile>,
    ) -> Self {
        let (working_set, not_read) = set;
        let counts = [&seen.voluntary, &seen.involuntary, &seen.cpu_ns];
        let counts = counts.map(|count| count.clone().map(|count| count as f64));
        let kinds = seen.voluntary.known().zip(seen.involuntary.known());
        let involuntary_share = kinds.map_or(0.0, |(voluntary, involuntary)| {
            *involuntary as f64 / (voluntary + involuntary).max(1) as f64
        });
        let working_set = working_set.map(|set| WorkingSet {
            sampled: set.sampled.map(|of| AccessPattern { involuntary_share, ..of }),
            ..set
        });
        let program = Program::over(seen.watched_ns as f64, counts, working_set);
        let here = choice::this_machine();
        let working_set = program.working_set.clone().map(|set| set.in_caches(&here));
        let cached = Program { working_set, ..program.clone() };
        let known = cached.working_set.known().copied();
        let chosen = match named {
            Some(named) => Ok(named.clone()),
            None => choice::best(known, cached.between_ns(), Accepts::Costs, &here),
        };
        seen.notices.extend(chosen.iter().flat_map(|chosen| chosen.notices.clone()));
        let points = chosen.as_ref().map_or(&[][..], |chosen| &chosen.profile.points);
        let cost = program_cost(&cached, points);
        let cost = match &chosen {
            Ok(_) => cost,
            Err(why) => cost.without_profile(why),
        };
        // What was measured on it counts more than rings do, unless others are asked for.
        let own = seen.executable.as_ref().filter(|_| named.is_none());
        let own = own.and_then(|executable| own::of(executable, seen.words.as_deref(), &here));
        let measured = own.as_ref().and_then(|own| own.cost(&cached, cost.direct_share()));
        let own = own.filter(|_| measured.is_some());
        let not_read = not_read.filter(|_| measured.is_none());
        let cost = measured.unwrap_or(cost);
        let direct = direct_by_kind(&cached, points).map(|of| cached.direct(of));
        let refill_share = answer::refill(&cost, not_read.as_ref());
        let path = chosen.as_ref().ok().map(|chosen| chosen.path.display().to_string());
        let command_to_know =
            answer::command_to_know(&cost, not_read.as_ref(), &seen, path.as_deref());
        let beyond = RingsBeyond::find(known, points).map(RingsBeyond::in_words);
        let by = chosen.as_ref().ok().map(|chosen| {
            let beyond = beyond.map_or(String::new(), |words| format!(", {words}"));
            format!("by {}{beyond}", chosen.profile.called())
        });
        let by = own.as_ref().map(PreemptionCost::in_words).or(by);
        let narrower = answer::narrower(&seen, &cached);
        let figure = CostFigure::from_estimate(&cost, not_read.as_ref(), direct);
        let answer = answer::headline(
            figure.as_ref(),
            (&cost, not_read.as_ref()),
            (&cached, seen.counted_by),
            (by.as_deref(), &narrower),
        );
        let in_words = answer + &answer::left_out_in_words(seen.left_out.as_ref());
        Self {
            schema: SCHEMA,
            seen,
            program,
            profile_choice: chosen.as_ref().ok().map(|chosen| chosen.why.clone()),
            profile: chosen.map(|chosen| chosen.profile).into(),
            cost,
            figure,
            refill_share,
            direct_ns: direct,
            command_to_know,
            in_words,
            own,
        }
    }
}

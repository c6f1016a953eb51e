//! The plan of a run: its cases, how they are sampled, in which order, and when the run may stop.
//!
//! Every round measures every case once, in an order of its own, so that drift of the machine does
//! not fall on one case. With the solo as case 0, the ring of 2 as case 1 and the ring of 4 as case
//! 2, the first rounds may be:
//!
//! ```text
//! round 0   2 0 1
//! round 1   0 1 2
//! round 2   1 2 0
//! ```

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Elasticity;

use crate::bounds::{check_known_within, check_within};
use crate::case::Case;
use crate::experiment::Experiment;
use crate::notice::Notice;
use crate::ring::{self, RegisterState};
use crate::stored::{StoredBatching, StoredCase};
use crate::trial;

/// Fewest rounds for an interval where no reference quanta judge the speed.
pub const MIN_ROUNDS: u32 = 5;

/// Fewest rounds with clean slices for an interval of these.
pub const MIN_CLEAN_ROUNDS: u32 = 8;
/// tau, the relative scatter between launches, where earlier launches do not tell: 1 % of a figure,
/// as launches of one hour scatter on the test machine (docs/validation.md).
pub const ASSUMED_LAUNCH_SCATTER: f64 = 0.01;

/// When a run may stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    /// Relative half-width of the interval at which a case is precise enough: 0.01 is 1 %.
    pub precision: f64,
    /// Time for the whole plan, in nanoseconds. The first round is always finished.
    pub budget_ns: u64,
    /// Rounds after which the run stops in any case; no such limit when absent.
    pub rounds: Option<u32>,
    /// Confidence of every interval: 0.95 is 95 %.
    pub confidence: f64,
    /// `true` where the run ends with its budget even if cases lack clean slices, which otherwise
    /// extend it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed_budget: bool,
}

/// Most time that a run may take which goes on for cases that lack clean slices, as a multiple of
/// its budget.
pub const MAX_BUDGET_FACTOR: u32 = 3;

impl Stopping {
    /// Returns the most time that the run may take, in nanoseconds: its budget, or
    /// [`MAX_BUDGET_FACTOR`] times as much.
    pub fn most_budget_ns(&self) -> u64 {
        let times = if self.fixed_budget { 1 } else { MAX_BUDGET_FACTOR };
        self.budget_ns.saturating_mul(times.into())
    }
}

/// Stops at a precision of 1 %, or after a minute.
impl Default for Stopping {
    fn default() -> Self {
        let (precision, budget_ns, confidence) = (0.01, 60_000_000_000, 0.95);
        Self { precision, budget_ns, rounds: None, confidence, fixed_budget: false }
    }
}

impl Stopping {
    /// Checks that all numbers are in range.
    pub fn check(&self) -> Result<(), String> {
        check_within("precision", self.precision, 0.0..=1.0)?;
        check_within("confidence", self.confidence, 0.5..=0.9999)?;
        check_known_within("rounds", self.rounds, 1..=u32::MAX)
    }
}

/// Rules by which a worker makes samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Batching {
    /// Batching of rings.
    pub ring: ring::RingBatching,
    /// Batching of trials.
    pub trial: trial::TrialBatching,
}

impl Batching {
    /// Checks that the numbers of a case and of its batching are in range.
    pub fn check(&self, case: &Case) -> Result<(), String> {
        match case {
            Case::Ring(case) => {
                case.check()?;
                self.ring.check()
            }
            Case::Trial(case) => {
                case.check()?;
                self.trial.check()
            }
        }
    }

    /// Builds the batching of a plan that has rings only.
    pub fn of_rings(ring: ring::RingBatching) -> Self {
        Self { ring, ..Self::default() }
    }

    /// Builds the batching of a plan that has trials only.
    pub fn of_trials(trial: trial::TrialBatching) -> Self {
        Self { trial, ..Self::default() }
    }
}

/// Latency quanta that a core may have, in nanoseconds: clocks from 22 MHz to 216 GHz.
pub const LATENCY_QUANTUM_NS: RangeInclusive<f64> = 100.0..=1e6;

/// Scatter and elasticity of one case in earlier launches of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CaseHistory {
    /// Standard deviation between launches as a share of the case's figure at one clock; absent
    /// where too few were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_scatter: Option<f64>,
    /// Power of the period of the core's clock with which the figure goes; absent where no launch
    /// saw several clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// Like `elasticity`, for a hop of a ring of several members, whose figure is the cost of a
    /// switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_elasticity: Option<Elasticity>,
    /// Standard deviation between the rounds of a launch at full speed, as a share of the case's
    /// figure; absent where too few launches were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_scatter: Option<f64>,
    /// Like `round_scatter`, for a hop of a ring of several members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_round_scatter: Option<f64>,
    /// Standard deviations between launches of the quantiles of wake-ups, under load and of a timer's
    /// sleeper; absent where too few were seen, and for figures whose speed is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantile_scatter: Option<QuantileScatter>,
}

/// Standard deviations between launches of quantiles under load, as shares of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QuantileScatter {
    /// That of the median of the wake-ups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_p50: Option<f64>,
    /// That of the 99th percentile of the wake-ups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_p99: Option<f64>,
    /// That of the median of the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_p50: Option<f64>,
    /// That of the 99th percentile of the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_p99: Option<f64>,
}

/// Knowledge of the CPU and of earlier launches before a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reference {
    /// k0: time of the throughput-bound loop over that of the latency-bound one on a core that
    /// nobody shares, from the program's table or earlier launches. Absent on a CPU that nobody has
    /// measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unshared_ratio: Option<f64>,
    /// `true` where enough launches agree on the ratio, or the program's table has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub established: bool,
    /// Usual clock of the CPU in earlier launches, by its latency quantum in nanoseconds. Times are
    /// given at this clock where a run shows how all of them go with the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ns: Option<f64>,
    /// tau: standard deviation between launches as a share of a figure; 1 % when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_scatter: Option<f64>,
    /// History of each case, by its number; empty where there were no earlier launches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseHistory>,
    /// `true` where only figures at full speed in many rounds are given (`--strict`). It is a way
    /// of reading, and never stored.
    #[serde(skip)]
    pub strict: bool,
}

impl Reference {
    /// Checks that all numbers are in range.
    pub fn check(&self) -> Result<(), String> {
        check_known_within("unshared_ratio", self.unshared_ratio, 0.01..=100.0)?;
        check_known_within("launch_scatter", self.launch_scatter, 0.0..=1.0)?;
        check_known_within("clock_ns", self.clock_ns, LATENCY_QUANTUM_NS)?;
        for known in &self.cases {
            let CaseHistory { launch_scatter, elasticity, hop_elasticity, .. } = known;
            check_known_within("launch_scatter", *launch_scatter, 0.0..=1.0)?;
            check_known_within("round_scatter", known.round_scatter, 0.0..=1.0)?;
            check_known_within("hop_round_scatter", known.hop_round_scatter, 0.0..=1.0)?;
            let quantiles = known.quantile_scatter.unwrap_or_default();
            let QuantileScatter { wake_p50, wake_p99, request_p50, request_p99 } = quantiles;
            for scatter in [wake_p50, wake_p99, request_p50, request_p99] {
                check_known_within("quantile_scatter", scatter, 0.0..=1.0)?;
            }
            for elasticity in [elasticity, hop_elasticity].into_iter().flatten() {
                let Elasticity { value, standard_error, .. } = *elasticity;
                check_within("elasticity", value, -10.0..=10.0)?;
                check_within("standard_error of an elasticity", standard_error, 0.0..=10.0)?;
            }
        }
        Ok(())
    }

    /// Returns tau, as known or assumed.
    pub fn scatter(&self) -> f64 {
        self.launch_scatter.unwrap_or(ASSUMED_LAUNCH_SCATTER)
    }

    /// Returns tau of the figure of a case.
    pub fn scatter_of(&self, case: usize) -> f64 {
        self.known_of(case).launch_scatter.unwrap_or_else(|| self.scatter())
    }

    /// Returns the history of a case; an empty one where there is none.
    pub fn known_of(&self, case: usize) -> CaseHistory {
        self.cases.get(case).copied().unwrap_or_default()
    }

    /// Returns the reference of the plan that has only these cases.
    fn for_cases(&self, numbers: Range<usize>) -> Self {
        let mut histories = Vec::new();
        if !self.cases.is_empty() {
            histories.extend(numbers.map(|case| self.known_of(case)));
        }
        Self { cases: histories, ..self.clone() }
    }
}

/// The cases that one experiment has in a plan of several experiments (`measure`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanPart {
    /// The experiment that these cases are of.
    pub experiment: Experiment,
    /// Number of its cases. They follow the cases of the part before it in the plan's `cases`.
    pub cases: usize,
    /// Batching of these cases, instead of the plan's own `batching`.
    pub batching: Batching,
    /// Notices of what was not available for this experiment; the header's notices have them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// The cases of a run, its seed and its stopping rule.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
pub struct Plan {
    /// The experiment's name: the subcommand that made the plan.
    pub experiment: Experiment,
    /// Grid of cases, solo rings included. Where the experiment has rings or trials only they stand
    /// bare ([`crate::stored`]).
    #[schemars(with = "Vec<StoredCase<'static>>")]
    pub cases: Vec<Case>,
    /// Seed of the order of cases and of every resampling.
    pub seed: u64,
    /// Batching of the cases. Where the experiment has rings or trials only theirs stands bare.
    #[schemars(with = "StoredBatching<'static>")]
    pub batching: Batching,
    /// When to stop.
    pub stopping: Stopping,
    /// Knowledge of the CPU's full speed and of earlier launches when the plan was made.
    #[schemars(default)]
    pub reference: Reference,
    /// The experiments that the cases are of, where these are several (`measure`); empty else.
    #[schemars(default)]
    pub parts: Vec<PlanPart>,
}

impl Plan {
    /// Builds a plan of these cases with default settings and no knowledge from earlier launches.
    pub fn from_cases<C: Into<Case>>(
        experiment: Experiment,
        cases: impl IntoIterator<Item = C>,
    ) -> Self {
        Self {
            experiment,
            cases: cases.into_iter().map(Into::into).collect(),
            seed: 1992,
            batching: Batching::default(),
            stopping: Stopping::default(),
            reference: Reference::default(),
            parts: Vec::new(),
        }
    }

    /// Builds the plan that measures the cases of all these plans in the same rounds. `notices` of
    /// each are what was not available for it.
    pub fn from_parts(plans: Vec<(Plan, Vec<Notice>)>, seed: u64, stopping: Stopping) -> Self {
        let mut whole =
            Self { seed, stopping, ..Self::from_cases::<Case>(Experiment::Measure, []) };
        for (plan, notices) in plans {
            let Plan { experiment, cases, batching, .. } = plan;
            whole.parts.push(PlanPart { experiment, cases: cases.len(), batching, notices });
            whole.cases.extend(cases);
        }
        whole
    }

    /// Checks that all numbers are in range; an error names the case.
    pub(crate) fn check(&self) -> Result<(), String> {
        check_within("number of cases", self.cases.len(), 1..=usize::MAX)?;
        self.check_parts()?;
        for (number, case) in self.cases.iter().enumerate() {
            let batching = self.batching_of(number);
            batching.check(case).map_err(|why| format!("case {number}: {why}"))?;
        }
        self.stopping.check()?;
        self.reference.check()
    }

    /// Checks that a plan of several experiments says of each case which one it is of, and that no
    /// other plan has parts.
    fn check_parts(&self) -> Result<(), String> {
        if self.experiment != Experiment::Measure {
            if self.parts.is_empty() {
                return Ok(());
            }
            return Err(format!("a plan of {} has no parts", self.experiment));
        }
        let mut first = 0_usize;
        let mut known = Vec::new();
        for part in &self.parts {
            let name = part.experiment;
            if name == Experiment::Measure || known.contains(&name) {
                return Err(format!("parts: {name} cannot be a part here, or is one already"));
            }
            known.push(name);
            check_within("number of cases of a part", part.cases, 1..=self.cases.len())?;
            let end = first.saturating_add(part.cases);
            let Some(cases) = self.cases.get(first..end) else {
                let (all, end) = (self.cases.len(), end);
                return Err(format!("parts: they have {end} cases or more, the plan has {all}"));
            };
            if let Some(at) = cases.iter().position(|case| !case.is_one_of(name.case_kinds())) {
                return Err(format!("case {}: {name} has no such case", first + at));
            }
            first = end;
        }
        match self.cases.len() {
            all if all == first => Ok(()),
            all => Err(format!("parts: they have {first} cases, the plan has {all}")),
        }
    }

    /// Returns the experiments of the plan with the numbers of their cases. A plan of one
    /// experiment returns that one with all cases.
    pub fn spans(&self) -> Vec<(Experiment, Range<usize>)> {
        if self.parts.is_empty() {
            return vec![(self.experiment, 0..self.cases.len())];
        }
        let mut first = 0;
        let mut spans = Vec::new();
        for part in &self.parts {
            let end = first + part.cases;
            spans.push((part.experiment, first..end));
            first = end;
        }
        spans
    }

    /// Returns the part of the plan to which a case belongs, and the number of the case within that
    /// part; `None` for a case that the plan does not have.
    pub fn place_of(&self, case: usize) -> Option<(usize, usize)> {
        let mut spans = self.spans().into_iter().enumerate();
        let (part, (_, cases)) = spans.find(|(_, (_, cases))| cases.contains(&case))?;
        Some((part, case - cases.start))
    }

    /// Returns the batching of this case.
    pub fn batching_of(&self, case: usize) -> &Batching {
        match self.place_of(case) {
            Some((part, _)) if part < self.parts.len() => &self.parts[part].batching,
            _ => &self.batching,
        }
    }

    /// Builds the plan of each experiment, with its cases numbered from 0; of a plan of one
    /// experiment itself.
    pub fn part_plans(&self) -> Vec<Self> {
        if self.parts.is_empty() {
            return vec![self.clone()];
        }
        let mut plans = Vec::new();
        for (part, (experiment, cases)) in self.parts.iter().zip(self.spans()) {
            plans.push(Self {
                experiment,
                cases: self.cases[cases.clone()].to_vec(),
                seed: self.seed,
                batching: part.batching.clone(),
                stopping: self.stopping.clone(),
                reference: self.reference.for_cases(cases),
                parts: Vec::new(),
            });
        }
        plans
    }

    /// Returns the order in which the cases of round `round` (from 0) are run: a permutation of the
    /// case numbers, different from round to round and fixed by the seed.
    ///
    /// Cases that belong together stay together: their blocks are shuffled, and each within itself.
    /// The first round of a plan of several experiments begins with the smallest ring and its solo,
    /// so that whoever waits sees a figure soon.
    pub fn order(&self, round: u32) -> Vec<usize> {
        let mut rng = self.rng_of(u64::from(round));
        let mut blocks = self.blocks();
        blocks.shuffle(&mut rng);
        blocks.iter_mut().for_each(|block| block.shuffle(&mut rng));
        let mut order = blocks.concat();
        if round == 0 && !self.parts.is_empty() {
            let first = self.smallest_with_solo();
            order.sort_by_key(|case| !first.contains(case));
        }
        order
    }

    /// Returns the numbers of the smallest ring that switches and of its solo; an empty list
    /// without such a ring.
    pub fn smallest_with_solo(&self) -> Vec<usize> {
        let switching = self.rings().filter(|(_, case)| case.members > 1);
        let smallest = switching.min_by_key(|(number, case)| (case.members, *number));
        let Some((smallest, _)) = smallest else { return Vec::new() };
        let mut numbers = vec![smallest];
        numbers.extend(self.solo_of(smallest));
        numbers
    }

    /// Returns the order of a round in which each case is measured twice, in two settings: as
    /// itself and as its twin, whose number is higher by the number of cases. Twins are next to
    /// each other.
    pub fn order_of_twins(&self, round: u32) -> Vec<usize> {
        // Another stream than the round's own order has.
        let mut rng = self.rng_of((1 << 32) + u64::from(round));
        let mut order = Vec::with_capacity(2 * self.cases.len());
        for case in self.order(round) {
            let mut twins = [case, case + self.cases.len()];
            twins.shuffle(&mut rng);
            order.extend(twins);
        }
        order
    }

    /// Returns the order of a round in which each case of this plan is measured twice, as case `n` and
    /// as case `n + count of cases`, under two settings that take long to change: all cases under
    /// one, then all under the other. Which comes first is random.
    pub fn order_of_halves(&self, round: u32) -> Vec<usize> {
        let mut rng = self.rng_of((2 << 32) + u64::from(round));
        let cases = self.order(round);
        let mut firsts = [0, self.cases.len()];
        firsts.shuffle(&mut rng);
        let mut order = Vec::with_capacity(2 * cases.len());
        for first in firsts {
            order.extend(cases.iter().map(|case| first + case));
        }
        order
    }

    fn rng_of(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }

    fn blocks(&self) -> Vec<Vec<usize>> {
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        for (index, case) in self.cases.iter().enumerate() {
            match blocks.iter_mut().find(|block| self.cases[block[0]].belongs_to(case)) {
                Some(block) => block.push(index),
                None => blocks.push(vec![index]),
            }
        }
        blocks
    }

    /// Returns every CPU that is measured on, sorted, each once.
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus = BTreeSet::new();
        for case in &self.cases {
            cpus.extend(case.cpus());
        }
        cpus.into_iter().collect()
    }

    /// Returns the processes of a running program that the plan measures.
    pub fn subject_pids(&self) -> Vec<i32> {
        let mut pids = BTreeSet::new();
        for (_, case) in self.trials() {
            if let trial::Trial::Command(command) = &case.trial {
                pids.extend(command.subject.pids());
            }
        }
        pids.into_iter().collect()
    }

    /// Returns the ring of that number; `None` where the plan has none there.
    pub fn ring(&self, case: usize) -> Option<&ring::RingCase> {
        self.cases.get(case)?.ring()
    }

    /// Returns the trial of that number; `None` where the plan has none there.
    pub fn trial(&self, case: usize) -> Option<&trial::TrialCase> {
        self.cases.get(case)?.trial()
    }

    /// Iterates over the rings with their numbers.
    pub fn rings(&self) -> impl Iterator<Item = (usize, &ring::RingCase)> + Clone {
        self.cases.iter().enumerate().filter_map(|(number, case)| Some((number, case.ring()?)))
    }

    /// Iterates over the trials with their numbers.
    pub fn trials(&self) -> impl Iterator<Item = (usize, &trial::TrialCase)> + Clone {
        self.cases.iter().enumerate().filter_map(|(number, case)| Some((number, case.trial()?)))
    }

    /// Returns the title of a case; where the plan has rings of several policies, with a policy that
    /// is not the normal one: `ring of 2 under fifo`.
    pub fn title(&self, case: usize) -> String {
        let title = self.cases.get(case).map_or(String::new(), Case::title);
        let Some(ring) = self.ring(case) else { return title };
        let policy = ring.policy;
        let is_only = self.rings().all(|(_, ring)| ring.policy == policy);
        if is_only || policy == ring::Policy::Other {
            return title;
        }
        format!("{title} under {policy}")
    }

    /// Returns the number of the first ring that fits.
    pub fn find_ring(&self, is_it: impl Fn(&ring::RingCase) -> bool) -> Option<usize> {
        let (number, _) = self.rings().find(|(_, case)| is_it(case))?;
        Some(number)
    }

    /// Returns the number of the solo with which a case is compared, if the plan has it.
    pub fn solo_of(&self, case: usize) -> Option<usize> {
        self.solo_among(&self.solos(), case)
    }

    /// Returns the numbers of the rings of one member.
    pub fn solos(&self) -> Vec<usize> {
        let mut solos = Vec::new();
        for (number, _) in self.rings().filter(|(_, case)| case.members == 1) {
            solos.push(number);
        }
        solos
    }

    /// Like [`Self::solo_of`], among [`Self::solos`]: whoever asks for many cases looks for these
    /// once.
    pub fn solo_among(&self, solos: &[usize], case: usize) -> Option<usize> {
        let solo = self.ring(case)?.solo();
        solos.iter().copied().find(|number| self.ring(*number) == Some(&solo))
    }

    /// Returns the number of the ring that differs from `case` only in having no registers in use;
    /// `None` where `case` has none in use.
    pub fn none_of(&self, case: usize) -> Option<usize> {
        let ring = self.ring(case)?;
        if matches!(ring.state, None | Some(RegisterState::None)) {
            return None;
        }
        let none = ring::RingCase { state: Some(RegisterState::None), ..ring.clone() };
        self.find_ring(|candidate| *candidate == none)
    }

    /// Adds the missing solo rings, so that every ring has one to be compared with.
    pub fn with_solos(mut self) -> Self {
        let mut solos: Vec<ring::RingCase> = Vec::new();
        for (_, case) in self.rings() {
            let solo = case.solo();
            if !self.rings().any(|(_, ring)| *ring == solo) && !solos.contains(&solo) {
                solos.push(solo);
            }
        }
        self.cases.splice(..0, solos.into_iter().map(Case::Ring));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placement;
    use crate::ring::{AccessKind, Work};

    fn case(members: u32) -> ring::RingCase {
        ring::RingCase::of_processes(members, Placement::Same { cpu: 1 })
    }

    fn plan(sizes: &[u32], seed: u64) -> Plan {
        Plan {
            seed,
            ..Plan::from_cases(Experiment::Ring, sizes.iter().map(|members| case(*members)))
        }
    }

    #[test]
    fn every_round_holds_each_case_once_in_an_order_of_its_own() {
        let plan = plan(&[1, 2, 4, 8, 10, 16, 20, 32, 48, 64], 7);
        let orders: Vec<_> = (0..20).map(|round| plan.order(round)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        let mut distinct = orders.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 20, "two of twenty rounds have the same order");
        // No place in the round belongs to one case: drift must not fall on it alone.
        for place in 0..10 {
            let first = orders[0][place];
            assert!(orders.iter().any(|order| order[place] != first), "place {place} is fixed");
        }
    }

    #[test]
    fn a_ring_and_its_solo_stay_together_in_an_order_of_their_own() {
        let mut plan = plan(&[], 7);
        let with = |bytes| Work::new(bytes, 8, AccessKind::Rmw).ok();
        let works = [None, with(1024), with(2048), with(4096), with(8192)];
        plan.cases = works.map(|work| ring::RingCase { work, ..case(2) }.into()).to_vec();
        let plan = plan.with_solos();
        let (mut solo_first, mut blocks) = (0, Vec::new());
        for round in 0..20 {
            let order = plan.order(round);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
            for pair in order.chunks(2) {
                let [one, other] = [pair[0], pair[1]].map(|case| plan.ring(case).unwrap());
                assert_eq!(one.work, other.work, "{order:?}");
                solo_first += usize::from(one.members == 1);
            }
            blocks.push(order.chunks(2).map(|pair| pair[0] % 5).collect::<Vec<_>>());
        }
        assert!(
            (30..70).contains(&solo_first),
            "of 100 pairs the solo comes first in {solo_first}"
        );
        blocks.sort();
        blocks.dedup();
        assert!(blocks.len() > 15, "blocks are shuffled");
    }

    #[test]
    fn twins_are_next_to_each_other() {
        let plan = plan(&[2, 4, 8], 7).with_solos();
        let count = plan.cases.len();
        let mut first = [0, 0];
        for round in 0..40 {
            let order = plan.order_of_twins(round);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..2 * count).collect::<Vec<_>>());
            for pair in order.chunks(2) {
                assert_eq!(pair[0] % count, pair[1] % count, "{order:?}");
                first[pair[0] / count] += 1;
            }
        }
        // Neither setting goes first by rule.
        assert!(first.iter().all(|count| (60..=100).contains(count)), "{first:?}");
    }

    #[test]
    fn halves_are_measured_one_after_the_other_and_neither_is_always_the_first() {
        let plan = plan(&[1, 2, 4, 8], 5);
        let count = plan.cases.len();
        let mut second_first = 0;
        for round in 0..80 {
            let order = plan.order_of_halves(round);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..2 * count).collect::<Vec<_>>());
            let half = |case: &usize| case / count;
            let changes = order.windows(2).filter(|pair| half(&pair[0]) != half(&pair[1])).count();
            assert_eq!(changes, 1, "{order:?}");
            second_first += half(&order[0]);
        }
        assert!((25..=55).contains(&second_first), "{second_first}");
    }

    #[test]
    fn the_seed_fixes_the_order() {
        let sizes = [1, 2, 4, 8, 16, 32];
        assert_eq!(plan(&sizes, 7).order(3), plan(&sizes, 7).order(3));
        assert_ne!(plan(&sizes, 7).order(3), plan(&sizes, 8).order(3));
    }

    #[test]
    fn solos_are_added_once_and_found() {
        let plan = plan(&[2, 4], 1).with_solos();
        assert_eq!(plan.rings().map(|(_, c)| c.members).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(plan.clone().with_solos(), plan);
        assert_eq!(plan.solo_of(2), Some(0));
        assert_eq!(plan.solo_of(9), None);
    }
}

//! The share of its CPU time that a program spends on switching.
//!
//! Share = switches per second * cost of a switch / CPU seconds per second. Formulas:
//! `docs/method.md`.

use rundata::reading::Reading;
use rundata::words::{plain, time_unit, two_digits, whole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::candidate::NO_PROFILE;
use super::lookup::cost_at;
use super::price::{Direct, Range, percents};
use super::profile::{AccessPattern, Cost, MissingCost, ProfilePoint, WorkingSet, direct};
use super::refill;

/// Rates and working set of a program that was watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Voluntary switches per second.
    pub voluntary_per_s: Reading<f64>,
    /// Involuntary switches per second.
    pub involuntary_per_s: Reading<f64>,
    /// CPU seconds per second over all its threads: 1 is one CPU kept busy.
    pub cpu_share: Reading<f64>,
    /// Bytes that it touches between switches.
    pub working_set: Reading<WorkingSet>,
}

impl Program {
    /// Returns the rates of counts over `ns` nanoseconds: voluntary and involuntary switches, and
    /// nanoseconds of CPU time.
    pub fn over(ns: f64, counts: [Reading<f64>; 3], working_set: Reading<WorkingSet>) -> Self {
        let [voluntary_per_s, involuntary_per_s, cpu] = counts.map(|count| rate_over(count, ns));
        let cpu_share = cpu.map(|ns_per_s| ns_per_s / 1e9);
        Self { voluntary_per_s, involuntary_per_s, cpu_share, working_set }
    }

    /// Returns the cost of one of its switches itself.
    pub fn direct(&self, direct: Direct) -> Range {
        direct.at(self.sampled().map_or(0.0, |sampled| sampled.involuntary_share))
    }

    fn sampled(&self) -> Option<AccessPattern> {
        self.working_set.known()?.sampled
    }

    /// Returns whether samples leave its working set uncertain by more than a factor of two.
    pub fn is_loosely_sampled(&self) -> bool {
        match self.working_set.known() {
            Some(set) => set.sampled.is_some() && set.high_bytes / 2 > set.low_bytes,
            None => false,
        }
    }

    /// Returns the switches per second of both kinds.
    pub fn switches_per_s(&self) -> Option<f64> {
        Some(self.voluntary_per_s.known()? + self.involuntary_per_s.known()?)
    }

    /// Returns the CPU time from one switch to the next in ns; absent without switches.
    pub fn between_ns(&self) -> Option<f64> {
        let ns = self.cpu_share.known()? * 1e9 / self.switches_per_s()?;
        if ns.is_finite() && ns > 0.0 { Some(ns) } else { None }
    }
}

/// Returns a count over `ns` nanoseconds as a rate per second.
fn rate_over(count: Reading<f64>, ns: f64) -> Reading<f64> {
    count.and_then(|count| {
        if ns > 0.0 {
            Reading::Known(count / ns * 1e9)
        } else {
            Reading::unknown("it was not watched for long enough")
        }
    })
}

impl From<Cost> for Range {
    fn from(cost: Cost) -> Self {
        Self { low: cost.low_ns, high: cost.high_ns }
    }
}

/// Returns the share limited to 0 to 1, and whether that changed it.
fn limited(share: Range) -> (Range, bool) {
    let limited = share.map(|end| end.clamp(0.0, 1.0));
    (limited, limited != share)
}

/// The answer of [`program_cost`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum ProgramCost {
    /// An estimate.
    Estimated {
        /// Share of the program's CPU time that goes to switching, from 0 to 1: 0.01 is 1 %.
        share: Range,
        /// True if an end of it was outside of 0 to 1 by the costs alone, and was limited.
        #[serde(default)]
        limited: bool,
        /// Share of the CPU time for the direct cost alone. `None` where it was not measured.
        direct_share: Option<Range>,
        /// Cost of one switch in ns that the share rests on; its lower end is below 0 where the
        /// measured costs are not resolved from zero.
        cost_ns: Range,
        /// Switches per second, voluntary and not.
        switches_per_s: f64,
        /// Assumptions that the share rests on, a clause each.
        assumptions: Vec<String>,
    },
    /// Inputs are missing or do not fit.
    #[serde(rename = "cannot_tell")]
    Inconclusive {
        /// The inputs and the reasons.
        missing: Vec<String>,
        /// Share of CPU time for the direct cost alone, which no working set goes into. `None`
        /// where it was not measured, or the rates are missing.
        #[serde(default)]
        direct_share: Option<Range>,
        /// The command that would measure what is missing, where there is one.
        #[serde(default)]
        command: Option<String>,
    },
}

/// Estimates the share of a program's CPU time that goes to switching, from the costs of a switch
/// on this machine at several array sizes.
///
/// Between two sizes the cost is assumed to lie between the lowest lower end and the highest upper
/// end of the two; outside the measured sizes there is no answer. A working set below the smallest
/// array is no extrapolation if c1, the cost without work, was measured. An array that a ring does
/// not walk in the CPU time between two switches is not the program's.
pub fn program_cost(program: &Program, points: &[ProfilePoint]) -> ProgramCost {
    let mut missing = Vec::new();
    let rates = SwitchRates::from_program(program, &mut missing);
    let mut direct_share = None;
    if let Some(direct) = direct_by_kind(program, points) {
        direct_share = rates.share_at(program.direct(direct)).map(|share| limited(share).0);
    }
    let cost = match &program.working_set {
        Reading::Known(set) => cost_at(*set, program.between_ns(), points),
        Reading::Unknown { why } => {
            // Both inputs are needed: both are named at once.
            let profile = if points.is_empty() { format!("; {NO_PROFILE}") } else { String::new() };
            Err(MissingCost { why: format!("working set: {why}{profile}"), command: None })
        }
    };
    let cost = match cost {
        Ok(cost) => cost,
        Err(MissingCost { why, command }) => {
            missing.push(why);
            return ProgramCost::Inconclusive { missing, direct_share, command };
        }
    };
    let Some(whole) = rates.share_at(cost.into()) else {
        if missing.is_empty() {
            missing.push("the figures are too large".into());
        }
        return ProgramCost::Inconclusive { missing, direct_share, command: None };
    };
    let (share, limited) = limited(whole);
    ProgramCost::Estimated {
        share,
        limited,
        direct_share,
        cost_ns: cost.into(),
        switches_per_s: rates.switches_per_s(),
        assumptions: match program.sampled() {
            Some(_) => assumptions_with_samples(),
            None => assumptions(whole, rates.involuntary_per_s > rates.voluntary_per_s),
        },
    }
}

/// The rates of a program as numbers: NaN for one that is missing.
struct SwitchRates {
    voluntary_per_s: f64,
    involuntary_per_s: f64,
    cpu_share: f64,
}

impl SwitchRates {
    /// Reads the rates of a program, and adds those that are missing to `missing`, with the reasons.
    fn from_program(program: &Program, missing: &mut Vec<String>) -> Self {
        let rates = Self {
            voluntary_per_s: rate("voluntary switches", &program.voluntary_per_s, missing),
            involuntary_per_s: rate("involuntary switches", &program.involuntary_per_s, missing),
            cpu_share: rate("CPU time", &program.cpu_share, missing),
        };
        if rates.cpu_share == 0.0 {
            missing.push("CPU time: the program used none while it was watched".into());
        }
        rates
    }

    fn switches_per_s(&self) -> f64 {
        self.voluntary_per_s + self.involuntary_per_s
    }

    /// Returns the share of the CPU time that switches at this cost take; absent where it is not
    /// finite, as where a rate is missing.
    fn share_at(&self, cost_ns: Range) -> Option<Range> {
        let share = cost_ns.map(|ns| self.switches_per_s() * ns * 1e-9 / self.cpu_share);
        let is_sound = self.cpu_share > 0.0 && share.low.is_finite() && share.high.is_finite();
        if is_sound { Some(share) } else { None }
    }
}

/// Returns a rate; NaN, and the reason in `missing`, where it is not known or no rate.
fn rate(name: &str, reading: &Reading<f64>, missing: &mut Vec<String>) -> f64 {
    match reading {
        Reading::Known(rate) if rate.is_finite() && *rate >= 0.0 => return *rate,
        Reading::Known(rate) => missing.push(format!("{name}: {rate} is no rate")),
        Reading::Unknown { why } => missing.push(format!("{name}: {why}")),
    }
    f64::NAN
}

/// Returns the cost of a switch itself; by the kind of its switches where the program's accesses
/// were sampled.
pub fn direct_by_kind(program: &Program, points: &[ProfilePoint]) -> Option<Direct> {
    match program.sampled() {
        Some(sampled) => refill::direct_of(points, Some(sampled.threads_per_cpu)),
        None => Some(Direct { pipe: direct(points)?.into(), yields: None }),
    }
}

/// Words in the assumption that says of a share that it was limited.
pub const LIMITED: &str = "limited to";

/// Returns the assumptions that a share of a program with sampled accesses rests on.
fn assumptions_with_samples() -> Vec<String> {
    let always = [
        "between two switches a thread touches its whole working set",
        "its threads take turns on a CPU, also with other processes that use at least a quarter \
         of its time there",
        "it may use some parts of its working set more than others",
        "fetching a line again costs the same as in a ring of as many members with such working \
         sets, within a factor of 1.5 for others in the same caches",
        "the watched time is typical",
    ];
    always.map(String::from).to_vec()
}

/// Returns the assumptions that a share rests on; `share` is that before it was limited.
fn assumptions(share: Range, mostly_involuntary: bool) -> Vec<String> {
    let always = [
        "each switch costs the same as in a ring of two whose members touch a working set of this \
         size",
        "it walks its memory no faster than the members of the ring",
        "a task that runs in between displaces as much cache as the program touches",
        "a cost between two measured arrays lies between theirs",
        "the watched time is typical",
    ];
    let mut assumptions = always.map(String::from).to_vec();
    if mostly_involuntary {
        assumptions.push(
            "most switches are involuntary and come at any point of the work; a ring switches \
             between two rounds of it"
                .to_string(),
        );
    }
    if share.low <= 0.0 {
        let limited =
            if share.low < 0.0 { format!(": it is {LIMITED} 0 %") } else { String::new() };
        assumptions.push(format!("the lower end is not resolved from zero{limited}"));
    }
    if share.high > 1.0 {
        let high = two_digits(100.0 * share.high);
        assumptions.push(format!(
            "the upper end is not known: by the stored costs it is {high} %, {LIMITED} 100 %, as \
             they do not fit this program"
        ));
    }
    assumptions
}

impl ProgramCost {
    /// Returns the share of the CPU time, where it is estimated.
    pub fn share(&self) -> Option<Range> {
        match self {
            Self::Estimated { share, .. } => Some(*share),
            Self::Inconclusive { .. } => None,
        }
    }

    /// Returns the share of the CPU time for the direct cost alone.
    pub fn direct_share(&self) -> Option<Range> {
        let (Self::Estimated { direct_share, .. } | Self::Inconclusive { direct_share, .. }) = self;
        *direct_share
    }

    /// Returns the answer with `why` in place of [`NO_PROFILE`]: no stored run can be the profile,
    /// for this reason.
    pub fn without_profile(mut self, why: &str) -> Self {
        if let Self::Inconclusive { missing, .. } = &mut self {
            for reason in missing {
                *reason = reason.replace(NO_PROFILE, why);
            }
        }
        self
    }

    /// Returns the answer in one sentence, without a full stop and without the assumptions.
    pub fn in_words(&self) -> String {
        let direct = self.direct_share().map(percents);
        match self {
            Self::Inconclusive { missing, .. } => {
                let direct = match direct {
                    Some(share) => format!("; the direct cost alone takes {share} of the CPU time"),
                    None => String::new(),
                };
                format!("inconclusive: {}{direct}", missing.join("; "))
            }
            Self::Estimated { share, cost_ns, switches_per_s, .. } => {
                let direct = match direct {
                    Some(share) => format!(", {share} for the direct cost alone"),
                    None => String::new(),
                };
                let share = percents(*share);
                let switches = switches_in_words(*switches_per_s, *cost_ns);
                format!("switching takes {share} of the CPU time{direct}: {switches}")
            }
        }
    }
}

/// Returns `5,300 switches a second at 1.5 to 2.6 us each`. A negative cost, which is not resolved
/// from zero, is printed as 0.
pub fn switches_in_words(per_s: f64, cost_ns: Range) -> String {
    let Range { low, high } = cost_ns.map(|ns| ns.max(0.0));
    let (scale, unit) = time_unit(high);
    let each = range(low / scale, high / scale);
    format!("{} switches a second at {each} {unit} each", count(per_s))
}

/// Returns a count with a comma for each thousand, and three digits of one below a thousand:
/// `5,300`.
pub fn count(value: f64) -> String {
    let text = plain(value);
    match text.parse() {
        Ok(value) if value >= 1000.0 => whole(value),
        _ => text,
    }
}

/// Returns `1.5 to 2.6`, or one of them where both read the same.
fn range(low: f64, high: f64) -> String {
    let (low, high) = (plain(low), plain(high));
    if low == high { high } else { format!("{low} to {high}") }
}

//! What does switching cost one program? Its own switch rate and working set, looked up on the
//! machine's cost profile.
//!
//! Share of CPU time = switches per second x cost of a switch / CPU seconds per second. Formulas:
//! `docs/method.md`.

use rundata::reading::Reading;
use rundata::words::{plain, time_unit, two_digits, whole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::candidate::NO_PROFILE;
use super::lookup::cost_at;
use super::price::{Direct, Range, percents};
use super::profile::{Cost, Lack, ProfilePoint, Sampled, WorkingSet, direct};
use super::refill;

/// What was seen of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Voluntary switches per second.
    pub voluntary_per_s: Reading<f64>,
    /// Involuntary switches per second.
    pub involuntary_per_s: Reading<f64>,
    /// CPU seconds per second over all its threads: 1 is one CPU kept busy.
    pub cpu_share: Reading<f64>,
    /// What it touches between switches.
    pub working_set: Reading<WorkingSet>,
}

impl Program {
    /// The rates of counts over `ns` nanoseconds: switches of both kinds and nanoseconds of CPU
    /// time.
    pub fn over(ns: f64, counts: [Reading<f64>; 3], working_set: Reading<WorkingSet>) -> Self {
        let rate = |count: f64| match ns > 0.0 {
            true => Reading::Known(count / ns * 1e9),
            false => Reading::unknown("it was not watched for long enough"),
        };
        let [voluntary_per_s, involuntary_per_s, cpu] = counts.map(|count| count.and_then(rate));
        let cpu_share = cpu.map(|ns_per_s| ns_per_s / 1e9);
        Self { voluntary_per_s, involuntary_per_s, cpu_share, working_set }
    }

    /// The cost of one of its switches itself.
    pub fn direct(&self, of: Direct) -> Range {
        of.at(self.sampled().map_or(0.0, |sampled| sampled.involuntary_share))
    }

    fn sampled(&self) -> Option<Sampled> {
        self.working_set.known().and_then(|set| set.sampled)
    }

    /// Whether samples leave its working set open within more than a factor of two.
    pub fn is_loosely_sampled(&self) -> bool {
        let set = self.working_set.known().filter(|set| set.sampled.is_some());
        set.is_some_and(|set| set.high_bytes / 2 > set.low_bytes)
    }

    /// Switches per second of both kinds.
    pub fn switches_per_s(&self) -> Option<f64> {
        Some(self.voluntary_per_s.known()? + self.involuntary_per_s.known()?)
    }

    /// CPU time from one switch to the next, in ns; absent where it made none.
    pub fn between_ns(&self) -> Option<f64> {
        let ns = self.cpu_share.known()? * 1e9 / self.switches_per_s()?;
        (ns.is_finite() && ns > 0.0).then_some(ns)
    }
}

impl From<Cost> for Range {
    fn from(cost: Cost) -> Self {
        Self { low: cost.low_ns, high: cost.high_ns }
    }
}

/// Within 0 to 1, and whether it was outside.
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
        /// Whether an end of it was outside of 0 to 1 by the costs alone, and was limited.
        #[serde(default)]
        limited: bool,
        /// The same for the direct cost alone. `None` where it was not measured.
        direct_share: Option<Range>,
        /// Cost of one switch in ns that the share rests on; its lower end is below 0 where the
        /// measured costs are not resolved from zero.
        cost_ns: Range,
        /// Switches per second, voluntary and not.
        switches_per_s: f64,
        /// What was taken for granted, a clause each.
        assumptions: Vec<String>,
    },
    /// Inputs are missing or do not fit.
    #[serde(rename = "cannot_tell")]
    Inconclusive {
        /// Which, and why.
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
/// on this machine at several array sizes. Between two sizes the cost is taken to lie between the
/// lowest lower end and the highest upper end of the two; outside the measured sizes there is no
/// answer. A working set below the smallest array is no extrapolation if c1, the cost without any,
/// was measured; one that a ring does not walk in the CPU time between two switches is not the
/// program's.
pub fn program_cost(program: &Program, points: &[ProfilePoint]) -> ProgramCost {
    let mut missing = Vec::new();
    let mut rate = |what: &str, reading: &Reading<f64>| {
        match reading {
            Reading::Unknown { why } => missing.push(format!("{what}: {why}")),
            Reading::Known(rate) if !(rate.is_finite() && *rate >= 0.0) => {
                missing.push(format!("{what}: {rate} is no rate"));
            }
            Reading::Known(rate) => return *rate,
        }
        f64::NAN
    };
    let voluntary = rate("voluntary switches", &program.voluntary_per_s);
    let involuntary = rate("involuntary switches", &program.involuntary_per_s);
    let cpu_share = rate("CPU time", &program.cpu_share);
    if cpu_share == 0.0 {
        missing.push("CPU time: the program used none while it was watched".into());
    }
    let switches_per_s = voluntary + involuntary;
    // Of a rate that is missing it is not finite.
    let share = |cost: Range| {
        let share = cost.map(|ns| switches_per_s * ns * 1e-9 / cpu_share);
        (cpu_share > 0.0 && share.low.is_finite() && share.high.is_finite()).then_some(share)
    };
    let direct = direct_by_kind(program, points);
    let direct_share =
        direct.and_then(|of| share(program.direct(of))).map(|share| limited(share).0);
    let cost = match &program.working_set {
        Reading::Known(set) => cost_at(*set, program.between_ns(), points),
        Reading::Unknown { why } => {
            // Both are needed: both are named at once.
            let other = if points.is_empty() { format!("; {NO_PROFILE}") } else { String::new() };
            Err(Lack { why: format!("working set: {why}{other}"), command: None })
        }
    };
    let mut command = None;
    let whole = match cost {
        Ok(cost) => share(cost.into()).map(|whole| (cost, whole)),
        Err(lack) => {
            missing.push(lack.why);
            command = lack.command;
            None
        }
    };
    let Some((cost, whole)) = whole else {
        if missing.is_empty() {
            missing.push("the figures are too large".into());
        }
        return ProgramCost::Inconclusive { missing, direct_share, command };
    };
    let (share, limited) = limited(whole);
    ProgramCost::Estimated {
        share,
        limited,
        direct_share,
        cost_ns: cost.into(),
        switches_per_s,
        assumptions: assumptions(whole, involuntary > voluntary, program.sampled().is_some()),
    }
}

/// The cost of a switch itself, of a program whose accesses were sampled by the kind of its
/// switches.
pub fn direct_by_kind(program: &Program, points: &[ProfilePoint]) -> Option<Direct> {
    match program.sampled() {
        Some(sampled) => refill::direct_of(points, Some(sampled.threads_per_cpu)),
        None => Some(Direct { pipe: direct(points)?.into(), yields: None }),
    }
}

/// In the assumption that says of a share that it was limited.
pub const LIMITED: &str = "limited to";

/// What was taken for granted; `share` as it was before it was limited.
fn assumptions(share: Range, mostly_involuntary: bool, sampled: bool) -> Vec<String> {
    if sampled {
        let always = [
            "between two switches a thread touches its whole working set",
            "its threads take turns on a CPU, also with other processes that use at least a \
                quarter of its time there",
            "it may use some parts of its working set more than others",
            "fetching a line again costs the same as in a ring of as many members with such \
                working sets, within a factor of 1.5 for others in the same caches",
            "the watched time is typical",
        ];
        return always.map(String::from).to_vec();
    }
    let always = [
        "each switch costs the same as in a ring of two whose members touch a working set of \
            this size",
        "it walks its memory no faster than the members of the ring",
        "a task that runs in between displaces as much cache as the program touches",
        "a cost between two measured arrays lies between theirs",
        "the watched time is typical",
    ];
    let mut all = always.map(String::from).to_vec();
    if mostly_involuntary {
        all.push(
            "most switches are involuntary and come at any point of the work; a ring switches \
                between two rounds of it"
                .to_string(),
        );
    }
    if share.low <= 0.0 {
        let limited =
            if share.low < 0.0 { format!(": it is {LIMITED} 0 %") } else { String::new() };
        all.push(format!("the lower end is not resolved from zero{limited}"));
    }
    if share.high > 1.0 {
        let high = two_digits(100.0 * share.high);
        all.push(format!(
            "the upper end is not known: by the stored costs it is {high} %, {LIMITED} 100 %, as \
             they do not fit this program"
        ));
    }
    all
}

impl ProgramCost {
    /// Share of the CPU time, where it is estimated.
    pub fn share(&self) -> Option<Range> {
        match self {
            Self::Estimated { share, .. } => Some(*share),
            Self::Inconclusive { .. } => None,
        }
    }

    /// Share of the CPU time for the direct cost alone.
    pub fn direct_share(&self) -> Option<Range> {
        let (Self::Estimated { direct_share, .. } | Self::Inconclusive { direct_share, .. }) = self;
        *direct_share
    }

    /// The same where no stored run serves as a profile: why, in place of there being none.
    pub fn without_profile(mut self, why: &str) -> Self {
        if let Self::Inconclusive { missing, .. } = &mut self {
            missing.iter_mut().for_each(|of| *of = of.replace(NO_PROFILE, why));
        }
        self
    }

    /// The estimate in one sentence, without a full stop and without the assumptions.
    pub fn in_words(&self) -> String {
        let direct = self.direct_share().map(percents);
        match self {
            Self::Inconclusive { missing, .. } => {
                let direct =
                    direct.map(|of| format!("; the direct cost alone takes {of} of the CPU time"));
                format!("inconclusive: {}{}", missing.join("; "), direct.unwrap_or_default())
            }
            Self::Estimated { share, cost_ns, switches_per_s, .. } => {
                let direct = direct.map(|of| format!(", {of} for the direct cost alone"));
                let (share, direct) = (percents(*share), direct.unwrap_or_default());
                let switches = switches_in_words(*switches_per_s, *cost_ns);
                format!("switching takes {share} of the CPU time{direct}: {switches}")
            }
        }
    }
}

/// `5,300 switches a second at 1.5 to 2.6 us each`. A cost that is not resolved from zero is told
/// from 0 on.
pub fn switches_in_words(per_s: f64, cost_ns: Range) -> String {
    let Range { low, high } = cost_ns.map(|ns| ns.max(0.0));
    let (scale, unit) = time_unit(high);
    let each = range(low / scale, high / scale);
    format!("{} switches a second at {each} {unit} each", count(per_s))
}

/// A count with a comma for each thousand, of a broken one three digits: `5,300`.
pub fn count(value: f64) -> String {
    let text = plain(value);
    text.parse().ok().filter(|value| *value >= 1000.0).map_or(text, whole)
}

/// `1.5 to 2.6`, or one of them where both read the same.
fn range(low: f64, high: f64) -> String {
    match (plain(low), plain(high)) {
        (low, high) if low == high => high,
        (low, high) => format!("{low} to {high}"),
    }
}

//! What does switching cost one program? Its own switch rate and working set, looked up on the
//! machine's cost profile.
//!
//! Share of CPU time = switches per second x cost of a switch / CPU seconds per second. The formula
//! and its assumptions are in `docs/method.md`.

use model::reading::Reading;
use model::words::{plain, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::{self, Cost, CostProfile, NO_PROFILE, ProfilePoint, WorkingSet};

/// Version of [`Report`].
pub(crate) const SCHEMA: u32 = 1;

/// A range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Range {
    /// Its lower end.
    pub(crate) low: f64,
    /// Its upper end.
    pub(crate) high: f64,
}

/// What was seen of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Program {
    /// Voluntary switches per second.
    pub(crate) voluntary_per_s: Reading<f64>,
    /// Involuntary switches per second.
    pub(crate) involuntary_per_s: Reading<f64>,
    /// CPU seconds per second over all its threads: 1 is one CPU kept busy.
    pub(crate) cpu_share: Reading<f64>,
    /// What it touches between switches.
    pub(crate) working_set: Reading<WorkingSet>,
}

impl Program {
    /// The rates of counts over `ns` nanoseconds: switches of both kinds and nanoseconds of CPU time.
    pub(crate) fn over(
        ns: f64,
        counts: [Reading<f64>; 3],
        working_set: Reading<WorkingSet>,
    ) -> Self {
        let rate = |count: f64| match ns > 0.0 {
            true => Reading::Known(count / ns * 1e9),
            false => Reading::unknown("it was not watched for long enough"),
        };
        let [voluntary_per_s, involuntary_per_s, cpu] = counts.map(|count| count.and_then(rate));
        let cpu_share = cpu.map(|ns_per_s| ns_per_s / 1e9);
        Self { voluntary_per_s, involuntary_per_s, cpu_share, working_set }
    }
}

/// The answer of [`program_cost`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum ProgramCost {
    /// An estimate.
    Estimated {
        /// Share of the program's CPU time that goes to switching: 0.01 is 1 %. Signed at its lower
        /// end, where the measured costs are not resolved from zero; above 1 where the assumptions
        /// cannot hold.
        share: Range,
        /// The same for the direct cost alone. `None` where it was not measured.
        direct_share: Option<Range>,
        /// Cost of one switch in ns that the share rests on.
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
        /// Share of CPU time for the direct cost alone, which no working set goes into. `None` where it was
        /// not measured, or the rates are missing.
        #[serde(default)]
        direct_share: Option<Range>,
    },
}

/// Estimates the share of a program's CPU time that goes to switching, from the costs of a switch on
/// this machine at several array sizes. Between two sizes the cost is taken to lie between the lowest
/// lower end and the highest upper end of the two; outside the measured sizes there is no answer. A
/// working set below the smallest array is no extrapolation if c1, the cost without any, was measured.
pub(crate) fn program_cost(program: &Program, points: &[ProfilePoint]) -> ProgramCost {
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
    let share = |cost: Cost| {
        let part = |ns: f64| switches_per_s * ns * 1e-9 / cpu_share;
        let share = Range { low: part(cost.low_ns), high: part(cost.high_ns) };
        (cpu_share > 0.0 && share.low.is_finite() && share.high.is_finite()).then_some(share)
    };
    let direct_share = profile::direct(points).and_then(share);
    let cost = match &program.working_set {
        Reading::Known(set) => profile::cost_at(*set, points),
        // Both are needed: both are named at once.
        Reading::Unknown { why } if points.is_empty() => {
            Err(format!("working set: {why}; {NO_PROFILE}"))
        }
        Reading::Unknown { why } => Err(format!("working set: {why}")),
    };
    let whole = match cost {
        Ok(cost) => share(cost).map(|whole| (cost, whole)),
        Err(why) => {
            missing.push(why);
            None
        }
    };
    let Some((cost, share)) = whole else {
        if missing.is_empty() {
            missing.push("the figures are too large".into());
        }
        return ProgramCost::Inconclusive { missing, direct_share };
    };
    ProgramCost::Estimated {
        share,
        direct_share,
        cost_ns: Range { low: cost.low_ns, high: cost.high_ns },
        switches_per_s,
        assumptions: assumptions(share, involuntary > voluntary),
    }
}

fn assumptions(share: Range, mostly_involuntary: bool) -> Vec<String> {
    let always = [
        "each switch costs what one of a ring of two costs here, whose members each touch a working set of this size",
        "a task that runs in between displaces as much cache as the program touches",
        "a cost between two measured arrays lies between theirs",
        "the time that was watched is typical",
    ];
    let conditional = [
        (
            mostly_involuntary,
            "most switches are involuntary: they come at any point of the work, where a ring switches between two rounds of it",
        ),
        (share.low <= 0.0, "the lower end is not resolved from zero"),
        (
            share.high > 1.0,
            "the upper end is above the CPU time that there was: the cost profile overstates this program's switches",
        ),
    ];
    let held = conditional.into_iter().filter_map(|(holds, words)| holds.then_some(words));
    always.into_iter().chain(held).map(String::from).collect()
}

impl ProgramCost {
    /// The estimate in one sentence, without a full stop and without the assumptions.
    pub(crate) fn in_words(&self) -> String {
        let (Self::Estimated { direct_share, .. } | Self::Inconclusive { direct_share, .. }) = self;
        let direct = direct_share.map(percents);
        match self {
            Self::Inconclusive { missing, .. } => {
                let direct = direct.map_or(String::new(), |direct| {
                    format!("; by the direct cost alone {direct} of the CPU time")
                });
                format!("inconclusive: {}{direct}", missing.join("; "))
            }
            Self::Estimated { share, cost_ns, switches_per_s, .. } => format!(
                "switching takes {} of the CPU time{}: {} switches a second at {} to {} each",
                percents(*share),
                direct
                    .map_or(String::new(), |direct| format!(", {direct} by the direct cost alone")),
                plain(*switches_per_s),
                time(cost_ns.low),
                time(cost_ns.high),
            ),
        }
    }
}

/// `0.1 to 2 %`, two digits.
fn percents(share: Range) -> String {
    let two = |part: f64| {
        let percent = 100.0 * part;
        plain(format!("{percent:.1e}").parse().unwrap_or(percent))
    };
    format!("{} to {} %", two(share.low), two(share.high))
}

/// Bytes of a cache line: of a page that was touched at least one was.
const LINE_BYTES: u64 = 64;

/// A stretch of time for which the pages that the program touched were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Window {
    /// How long, in nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// CPU time of the program in it, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Its switches in it.
    pub(crate) switches: u64,
    /// Its threads.
    pub(crate) threads: u64,
    /// Bytes of the pages touched, as far as the page tables tell.
    pub(crate) referenced_bytes: u64,
    /// Bytes of the huge pages that it has, touched or not.
    #[serde(default)]
    pub(crate) huge_bytes: u64,
}

/// Sizes of pages in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageSizes {
    pub(crate) page: u64,
    /// Of a transparent huge page; absent where it is not known.
    pub(crate) huge: Option<u64>,
}

impl WorkingSet {
    /// The range that windows leave open. At least: each page touched was so in one of the stretches
    /// between switches, and one line of it. At most: all resident memory, the most that there was; the
    /// pages touched are no upper end, as one whose translation is still cached is touched without a
    /// trace. Windows without CPU time say nothing; absent where there is no other, or no upper end.
    pub(crate) fn seen_in(
        windows: &[Window],
        sizes: PageSizes,
        resident: Option<u64>,
    ) -> Option<Self> {
        let active = windows.iter().filter(|window| window.cpu_ns > 0);
        let least = |window: &Window| {
            // Which of the huge pages were touched is not told: all, if that makes fewer lines.
            let huge = window.huge_bytes.min(window.referenced_bytes);
            let huge_pages = sizes.huge.map_or(0, |size| huge / size.max(1));
            let pages = (window.referenced_bytes - huge) / sizes.page.max(1) + huge_pages;
            pages * LINE_BYTES / window.switches.saturating_add(window.threads).max(1)
        };
        let low_bytes = active.map(least).min()?;
        let high_bytes = resident?;
        Some(Self { low_bytes: low_bytes.min(high_bytes), high_bytes })
    }
}

/// All that was read of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Seen {
    /// The process.
    pub(crate) pid: u32,
    /// Its name.
    pub(crate) name: String,
    /// The command, where it was started here.
    pub(crate) command: Option<Vec<String>>,
    /// For how long it was watched, in nanoseconds.
    pub(crate) watched_ns: u64,
    /// Its threads at the last look; absent where it ended before any.
    pub(crate) threads: Option<u64>,
    /// Voluntary switches while it was watched.
    pub(crate) voluntary: Reading<u64>,
    /// Involuntary ones.
    pub(crate) involuntary: Reading<u64>,
    /// CPU time while it was watched, in nanoseconds.
    pub(crate) cpu_ns: Reading<u64>,
    /// Resident memory in bytes: the most at any look.
    pub(crate) resident_bytes: Reading<u64>,
    /// The windows in which touched pages were counted.
    pub(crate) windows: Vec<Window>,
    /// What was not available, and what was not counted.
    pub(crate) notices: Vec<String>,
}

/// All that `cost --pid` and `cost -- CMD` say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Report {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    #[serde(flatten)]
    pub(crate) seen: Seen,
    /// The same as rates.
    pub(crate) program: Program,
    /// The cost profile that the estimate rests on.
    #[serde(rename = "surface")]
    pub(crate) profile: Reading<CostProfile>,
    /// The estimate.
    pub(crate) cost: ProgramCost,
    /// The estimate in words.
    pub(crate) in_words: String,
}

impl Report {
    /// What was seen, and what it means with this machine's cost profile.
    pub(super) fn of(mut seen: Seen, working_set: Reading<WorkingSet>) -> Self {
        let counts = [&seen.voluntary, &seen.involuntary, &seen.cpu_ns];
        let counts = counts.map(|count| count.clone().map(|count| count as f64));
        let program = Program::over(seen.watched_ns as f64, counts, working_set);
        let set = program.working_set.known().copied();
        let profile = profile::stored(set, &mut seen.notices);
        let points = profile.known().map_or(&[][..], |profile| &profile.points);
        let cost = program_cost(&program, points);
        Self { schema: SCHEMA, seen, program, profile, in_words: cost.in_words(), cost }
    }
}

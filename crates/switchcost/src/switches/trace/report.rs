//! What `trace` says: arithmetic on what was added up, without a kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use analysis::marked;
use analysis::marked::MarkedText;
use analysis::program::{CostProfile, Price, Range};
use rundata::reading::Reading;
use rundata::words::{grouped, plain, two_digits};
use schemars::JsonSchema;
use serde::Serialize;
use switchtrace::{DurationHistogram, SwitchCause};

use super::pinning::PinningSaving;
use crate::observe::live::GroupBy;
use crate::observe::live::account::{SwitchAccount, ThreadUsage, TracedTask};
use crate::observe::live::labels::ProcessLabels;
use crate::observe::live::rows::{PreemptionCount, SwitchRow, direct_share, rows, share};
use crate::observe::live::session::TracerOverhead;
use crate::observe::processes::program_in_words;
use crate::programs::watch::{Apart, CostFigure, OpenEnd, OwnCost, PricedShare};

/// Version of [`TraceReport`].
const SCHEMA: u32 = 1;

/// Pairs and neighbours that are listed.
const MOST_LISTED: usize = 20;

/// Rows that are kept.
const MOST_ROWS: usize = 1_000;

/// What was traced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Target")]
pub(crate) struct TraceTarget {
    /// Its name; `machine` for all.
    pub(crate) name: String,
    /// The process; absent for all, and where several were asked for.
    pub(crate) pid: Option<u32>,
    /// The processes that were asked for; empty for all.
    pub(crate) pids: Vec<u32>,
    /// Processes that belong to it beside them, those that have ended among them.
    pub(crate) children: usize,
    /// The command, where it was started here.
    pub(crate) command: Option<Vec<String>>,
}

impl TraceTarget {
    /// The whole machine.
    pub(crate) fn machine() -> Self {
        Self { name: "machine".to_string(), ..Self::default() }
    }

    fn is_machine(&self) -> bool {
        self.pids.is_empty()
    }

    /// `postgres (pid 2075 and 13 children)`. Of a command it goes without saying that what it
    /// starts belongs to it.
    fn in_words(&self) -> String {
        let children = if self.command.is_some() { 0 } else { self.children };
        program_in_words(&self.name, &self.pids, children)
    }
}

/// Processes that did not switch, while others that belong to them did.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SleepingRoots {
    /// Others that belong to them.
    others: usize,
    /// Switches of these a second.
    per_s: f64,
    /// Whether they are in the figures.
    is_counted: bool,
}

/// What its switches cost it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceCosts {
    pub(crate) price: Price,
    /// The figure that `cost` tells of the same program; absent of several programs.
    pub(crate) figure: Option<CostFigure>,
    /// The stored run that has the costs, or why there is none.
    pub(crate) profile: Reading<CostProfile>,
    /// What was measured on the program itself, if that is what prices its switches.
    pub(crate) own: Option<OwnCost>,
    /// What handing over to another CPU costs, and CPUs that there are; absent where no sweep of
    /// placements is stored.
    pub(crate) apart: Option<(Apart, usize)>,
    /// Why the working set is not known; absent where it is.
    pub(crate) refill_unknown: Option<String>,
    /// The command that would tell.
    pub(crate) command_to_know: Option<String>,
}

/// Who took the CPU from a thread that could have run on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Neighbour")]
pub(crate) struct PreempterThread {
    /// Its name.
    pub(crate) name: String,
    /// Its thread; absent where it is of several that have ended.
    pub(crate) id: Option<u32>,
    /// How often.
    pub(crate) preemptions: PreemptionCount,
}

/// All who have one name and took the CPU from a thread that could have run on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct PreempterGroup {
    /// Their name; `its own threads` or `its own processes` where these are the program's.
    pub(crate) name: String,
    /// Whether these are the program's own threads.
    pub(crate) is_own: bool,
    /// How often a second.
    pub(crate) per_s: f64,
    /// Share of all preemptions, from 0 to 1; those by this program are in none.
    pub(crate) share: f64,
}

impl fmt::Display for PreempterGroup {
    /// `curl (7 %)`; all but a few are no 100 %.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let is_nearly_all = self.share > 0.99 && self.share < 1.0;
        let percent = if is_nearly_all { "over 99".into() } else { two_digits(100.0 * self.share) };
        write!(f, "{} ({percent} %)", self.name)
    }
}

/// Switches from one thread to another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct PairRow {
    /// Who left the CPU.
    pub(crate) from: String,
    /// Its thread.
    pub(crate) from_id: Option<u32>,
    /// Who got it; `idle` if nobody did.
    pub(crate) to: String,
    /// Its thread.
    pub(crate) to_id: Option<u32>,
    /// How often because `from` slept.
    pub(crate) voluntary: u64,
    /// How often while `from` could have run on.
    pub(crate) involuntary: u64,
    /// Share of one CPU that the switches themselves take; absent where their cost is not known.
    pub(crate) cpu_share: Option<Range>,
}

/// Lengths of time, counted by powers of two.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Lengths")]
pub(crate) struct DurationCounts {
    /// `wait`: in the run queue; `run`: on a CPU; else off the CPU, by cause.
    pub(crate) of: String,
    /// How many were below 128 ns, then below 256 ns and so on; the last from 137 s on.
    pub(crate) counts: Vec<u32>,
}

/// What happened until a look, since the one before.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Point")]
pub(crate) struct TimelinePoint {
    /// Seconds since the beginning.
    pub(crate) at_s: f64,
    /// Switches a second.
    pub(crate) switches_per_s: f64,
    /// Preemptions a second.
    pub(crate) preempted_per_s: f64,
    /// CPU seconds a second.
    pub(crate) cpu_share: f64,
}

/// All that `trace` says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Trace")]
pub(crate) struct TraceReport {
    /// Version of this form.
    pub(crate) schema: u32,
    /// What was traced.
    pub(crate) target: TraceTarget,
    /// For how long, in seconds.
    pub(crate) seconds: f64,
    /// The answer in words.
    pub(crate) in_words: MarkedText,
    /// All of its threads together.
    pub(crate) total: SwitchRow,
    /// The figure that is told of what its switches cost: that of `cost`. Absent where nothing is
    /// known.
    pub(crate) figure: Option<CostFigure>,
    /// Share of its CPU time that the switches themselves take.
    pub(crate) direct_share: Reading<Range>,
    /// The same with what refilling caches takes.
    pub(crate) share: Reading<Range>,
    /// What refilling caches takes.
    pub(crate) refill_share: Reading<Range>,
    /// What it would save if its threads did not share CPUs; absent where that is not known, or
    /// nothing.
    pub(crate) pinning: Option<PinningSaving>,
    /// The stored run that the costs are from.
    pub(crate) profile: Reading<String>,
    /// Seconds from its start to now; null where that cannot be told.
    pub(crate) profile_age_s: Option<u64>,
    /// What was measured on the program itself: the estimate rests on it, if it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priced_by: Option<OwnCost>,
    /// The command that would make an unknown share known, where there is one.
    pub(crate) command_to_know: Option<String>,
    /// Each thread or process, that with the most switches first; a thousand at most.
    pub(crate) rows: Vec<SwitchRow>,
    /// Who took the CPU from it, most often first: others than itself (of the machine anybody), and
    /// not this program.
    pub(crate) neighbours: Vec<PreempterThread>,
    /// Who took the CPU from it, by name, most often first; the program's own threads are one.
    pub(crate) preempters: Vec<PreempterGroup>,
    /// The twenty most expensive pairs.
    pub(crate) pairs: Vec<PairRow>,
    /// Lengths of waits, bursts and times off the CPU.
    pub(crate) lengths: Vec<DurationCounts>,
    /// How it went over time.
    pub(crate) timeline: Vec<TimelinePoint>,
    /// What tracing itself took.
    pub(crate) own: TracerOverhead,
    /// What is not in the figures, and what happened.
    pub(crate) notices: Vec<String>,
    /// Switches of the machine for which the kernel ran no program: they are counted, and lack in
    /// lengths and pairs.
    pub(crate) missed_switches: u64,
}

impl TraceReport {
    pub(crate) fn of(
        account: &SwitchAccount,
        (target, seconds): (TraceTarget, f64),
        costs: TraceCosts,
        by: (GroupBy, &ProcessLabels),
        own: TracerOverhead,
        timeline: Vec<TimelinePoint>,
    ) -> Self {
        let (used, price) = (account.total(), costs.price);
        let total = SwitchRow {
            name: target.name.clone(),
            id: target.pid,
            ..SwitchRow::of(&used, seconds, price)
        };
        let no_cost = match used.cpu_ns {
            0 => "it used no CPU time",
            _ => "the cost profile has no cost of a switch",
        };
        let unknown = || costs.profile.why().unwrap_or(no_cost).to_string();
        let direct_share: Reading<Range> = direct_share(price, &used).ok_or_else(unknown).into();
        let refill_unknown = costs.refill_unknown.clone().unwrap_or_else(unknown);
        let whole: Reading<Range> = share(price.total, &used).ok_or(refill_unknown).into();
        let figure = costs.figure.or_else(|| own_figure(price, &used));
        let refill_share =
            whole.clone().and_then(|whole| direct_share.clone().map(|direct| whole.beside(direct)));
        let priced = costs.profile.known().map(|profile| format!("by {}", profile.called()));
        let priced = costs.own.as_ref().map(OwnCost::in_words).or(priced);
        let mut rows = rows(account, by, seconds, price);
        rows.truncate(MOST_ROWS);
        let mut pairs = all_pairs(account, seconds, price);
        pairs.truncate(MOST_LISTED);
        let apart = costs.apart.filter(|_| !target.is_machine());
        let sleepers = sleepers(account, &target, seconds);
        let pinning = apart.and_then(|(of, cpus)| PinningSaving::of(account, price, &of, cpus));
        let mut trace = Self {
            schema: SCHEMA,
            in_words: MarkedText::default(),
            total,
            figure,
            direct_share,
            share: whole,
            refill_share,
            pinning,
            profile_age_s: costs.profile.known().and_then(|profile| profile.age_s),
            profile: costs.profile.map(|profile| profile.run),
            priced_by: costs.own,
            command_to_know: costs.command_to_know,
            rows,
            neighbours: neighbours(account, &used, seconds),
            preempters: preempters(account, target.is_machine(), seconds),
            pairs,
            lengths: lengths(&used),
            timeline,
            own,
            notices: Vec::new(),
            missed_switches: 0,
            target,
            seconds,
        };
        if used.switches() == 0 {
            // No cost and no working set makes a cost of nothing.
            trace.command_to_know = None;
        }
        trace.in_words = trace.headline(priced.as_deref(), sleepers);
        trace
    }

    /// Whether the whole machine was traced.
    pub(super) fn is_of_machine(&self) -> bool {
        self.target.is_machine()
    }

    /// `postgres (pid 812): 41,200 switches a second, 93 % voluntary; they cost 7.8 to 11 % of its
    /// CPU time, ...`.
    fn headline(&self, by: Option<&str>, sleepers: Option<SleepingRoots>) -> MarkedText {
        let Self { target, total, .. } = self;
        let per_s = total.switches_per_s();
        let asleep = sleepers.map_or(String::new(), |sleepers| asleep_in_words(target, sleepers));
        if per_s == 0.0 {
            let (what, seconds) = (target.in_words(), plain(self.seconds));
            return format!("{what} was not switched once in {seconds} s{asleep}.").into();
        }
        let whose = if target.is_machine() { "the" } else { "its" };
        let by = by.map_or(String::new(), |by| format!(", {by}"));
        let cost = match &self.figure {
            Some(figure) => {
                let open = match figure.open {
                    None | Some(OpenEnd::NotResolved) => "",
                    Some(OpenEnd::NoRefill) => " (what refilling caches adds is unknown)",
                    Some(OpenEnd::TooWide) => " (the upper end is unknown)",
                };
                let behind = format!(" of {whose} CPU time{by}{open}");
                marked!["they cost ", MarkedText::figure(figure.share_in_words()), behind]
            }
            None => "their cost is unknown".into(),
        };
        let voluntary = 100.0 * total.voluntary_per_s / per_s;
        marked![
            format!("{}: {} switches a second, ", target.in_words(), grouped(per_s)),
            format!("{voluntary:.0} % voluntary{asleep}; "),
            cost,
            self.preempted_in_words(),
            ".",
            self.pinning.as_ref().map_or(String::new(), PinningSaving::in_words)
        ]
    }

    /// `; preempted 69 times a second, mostly by its own threads (85 %), then curl (7 %)`; empty
    /// where nobody did.
    fn preempted_in_words(&self) -> String {
        let Some(first) = self.preempters.first() else { return String::new() };
        let per_s = grouped(self.preempters.iter().map(|group| group.per_s).sum());
        let mostly = if first.share > 0.5 { "mostly" } else { "most often" };
        let yields = if self.total.yielded_per_s > 0.0 { " (yields included)" } else { "" };
        let mut words = format!("; preempted {per_s} times a second{yields}, {mostly} by {first}");
        if let Some(second) = self.preempters.get(1) {
            words += &format!(", then {second}");
        }
        words
    }
}

/// What is told of switches where no working set goes with them, as of the whole machine.
fn own_figure(price: Price, used: &ThreadUsage) -> Option<CostFigure> {
    let direct_ns = price.direct.map(|direct| direct.at(used.involuntary_share()));
    let priced = |each_ns: Option<Range>| {
        let share = share(each_ns, used)?;
        Some(PricedShare { share, each_ns: each_ns? })
    };
    CostFigure::choose(priced(price.total), priced(direct_ns))
}

/// Whether the processes that were asked for did not switch while others that belong to them did.
fn sleepers(account: &SwitchAccount, target: &TraceTarget, seconds: f64) -> Option<SleepingRoots> {
    if target.is_machine() || account.total_of_roots().switches() > 0 {
        return None;
    }
    let counted = (account.children(), account.total());
    let left_out = account.left_out();
    let is_counted = left_out.is_none();
    let (others, used) = left_out.unwrap_or(counted);
    let per_s = used.switches() as f64 / seconds;
    (per_s > 0.0).then_some(SleepingRoots { others, per_s, is_counted })
}

/// `; its 13 children, which --no-children leaves out, made 29,000 switches a second`
fn asleep_in_words(target: &TraceTarget, sleepers: SleepingRoots) -> String {
    let SleepingRoots { others, per_s, is_counted } = sleepers;
    let (whose, itself) = match target.pids[..] {
        [pid] => ("its", format!("pid {pid} itself")),
        _ => ("their", "those that were asked for".to_string()),
    };
    let children = if others == 1 { "1 child".to_string() } else { format!("{others} children") };
    if is_counted {
        return format!(", all by {whose} {children} ({itself} slept)");
    }
    let rate = grouped(per_s);
    format!("; {whose} {children}, which --no-children leaves out, made {rate} switches a second")
}

/// Who took the CPU from those inside: others, or for the whole machine anybody; the observer is
/// told apart.
fn neighbours(account: &SwitchAccount, used: &ThreadUsage, seconds: f64) -> Vec<PreempterThread> {
    let is_all = account.lives.values().all(|life| life.inside);
    let sums =
        account.preempters(|from, to| (is_all || !to.inside) && !from.observes && !to.observes);
    let neighbour = |(who, count): (&TracedTask, u64)| {
        let (name, id) = named(account, who);
        PreempterThread { name, id, preemptions: PreemptionCount::of(count, used, seconds) }
    };
    let mut found: Vec<PreempterThread> = sums.into_iter().map(neighbour).collect();
    found.sort_by(|one, other| {
        let by_count = other.preemptions.count.cmp(&one.preemptions.count);
        by_count.then_with(|| (&one.name, one.id).cmp(&(&other.name, other.id)))
    });
    found.truncate(MOST_LISTED);
    found
}

/// Name of the group of the program's own threads, where it is one process.
const OWN_THREADS: &str = "its own threads";

/// The same where it has several.
const OWN_PROCESSES: &str = "its own processes";

/// Sums by name who took the CPU from those inside, most often first. The observer is in no group.
fn preempters(account: &SwitchAccount, is_machine: bool, seconds: f64) -> Vec<PreempterGroup> {
    let counts = account.preempters(|from, to| !from.observes && !to.observes);
    let inside = account.lives.values().filter(|life| life.inside);
    let processes: BTreeSet<u32> = inside.map(|life| life.tgid).collect();
    let own_name = if processes.len() > 1 { OWN_PROCESSES } else { OWN_THREADS };
    let mut sums: BTreeMap<(bool, String), u64> = BTreeMap::new();
    for (who, count) in counts {
        let is_own = !is_machine && account.life(who).is_some_and(|life| life.inside);
        let name = if is_own { own_name.to_string() } else { named(account, who).0 };
        *sums.entry((is_own, name)).or_default() += count;
    }
    let total: u64 = sums.values().sum();
    let mut groups = Vec::new();
    for ((is_own, name), count) in sums {
        let (per_s, share) = (count as f64 / seconds, count as f64 / total as f64);
        groups.push(PreempterGroup { name, is_own, per_s, share });
    }
    // A stable sort: groups of one size stay in the order of their names.
    groups.sort_by(|one, other| other.per_s.total_cmp(&one.per_s));
    groups
}

/// How somebody is called in a list.
pub(super) fn named(account: &SwitchAccount, who: &TracedTask) -> (String, Option<u32>) {
    let name = account.life(who).map_or("?".to_string(), |life| life.name.clone());
    match who {
        TracedTask::Idle => ("idle".to_string(), None),
        TracedTask::Thread(of) => (name, Some(of.tid)),
        TracedTask::Ended { .. } => (name, None),
    }
}

/// All pairs of which one is inside, those with the most switches first.
pub(super) fn all_pairs(account: &SwitchAccount, seconds: f64, price: Price) -> Vec<PairRow> {
    let is_inside = |who| account.life(who).is_some_and(|life| life.inside);
    let inside =
        account.pairs.iter().filter(|((prev, next), _)| is_inside(prev) || is_inside(next));
    let mut pairs: Vec<PairRow> = inside
        .map(|((prev, next), [voluntary, involuntary])| {
            let ((from, from_id), (to, to_id)) = (named(account, prev), named(account, next));
            let per_s = (voluntary + involuntary) as f64 / seconds;
            let of_cpu = |ns: f64| (per_s * ns / 1e9).max(0.0);
            let (voluntary, involuntary) = (*voluntary, *involuntary);
            let involuntary_share = involuntary as f64 / (voluntary + involuntary).max(1) as f64;
            let cpu_share = price.direct.map(|of| of.at(involuntary_share).map(of_cpu));
            PairRow { from, from_id, to, to_id, voluntary, involuntary, cpu_share }
        })
        .collect();
    pairs.sort_by(|one, other| {
        let count = |of: &PairRow| of.voluntary + of.involuntary;
        let names = |of: &PairRow| (of.from.clone(), of.from_id, of.to.clone(), of.to_id);
        count(other).cmp(&count(one)).then_with(|| names(one).cmp(&names(other)))
    });
    pairs
}

fn lengths(used: &ThreadUsage) -> Vec<DurationCounts> {
    let of = |name: &str, histogram: &DurationHistogram| {
        let counts = histogram.counts();
        let end = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        DurationCounts { of: name.to_string(), counts: counts[..end].to_vec() }
    };
    let mut all = vec![of("wait", &used.waits), of("run", &used.bursts)];
    all.extend(
        SwitchCause::ALL.iter().zip(&used.off).map(|(cause, off)| of(cause_words(*cause), off)),
    );
    all
}

pub(super) fn cause_words(cause: SwitchCause) -> &'static str {
    match cause {
        SwitchCause::Preempted => "preempted",
        SwitchCause::Yielded => "yielded",
        SwitchCause::Sleep => "asleep",
        SwitchCause::Uninterruptible => "disk",
        SwitchCause::Other => "other",
    }
}

/// The timeline, in a bounded number of points.
#[derive(Default)]
pub(crate) struct TraceTimeline {
    /// When was looked, in seconds, and the switches, preemptions and CPU time in ns until then.
    looks: Vec<(f64, [u64; 3])>,
    /// Shortest time between two points, in seconds.
    apart_s: f64,
}

/// Points of a timeline that are kept; then two become one, and later ones are as far apart.
const MOST_POINTS: usize = 2_048;

impl TraceTimeline {
    /// Notes what has happened in all until now.
    pub(crate) fn add(&mut self, at_s: f64, total: &ThreadUsage) {
        let then_s = self.looks.last().map_or(0.0, |(then_s, _)| *then_s);
        if at_s > then_s && at_s - then_s >= self.apart_s {
            self.looks.push((at_s, [total.switches(), total.preempted(), total.cpu_ns]));
        }
        if self.looks.len() > MOST_POINTS {
            self.looks = self.looks.chunks(2).filter_map(|two| two.last().copied()).collect();
            self.apart_s = 2.0 * at_s / MOST_POINTS as f64;
        }
    }

    pub(crate) fn points(self) -> Vec<TimelinePoint> {
        let mut before = (0.0, [0; 3]);
        let point = |look: (f64, [u64; 3])| {
            let (then_s, counts) = std::mem::replace(&mut before, look);
            let per_s =
                |of: usize| look.1[of].saturating_sub(counts[of]) as f64 / (look.0 - then_s);
            let (switches_per_s, preempted_per_s) = (per_s(0), per_s(1));
            TimelinePoint {
                at_s: look.0,
                switches_per_s,
                preempted_per_s,
                cpu_share: per_s(2) / 1e9,
            }
        };
        self.looks.into_iter().map(point).collect()
    }
}

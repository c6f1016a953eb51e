//! The report of `trace`: arithmetic on what was added up, without a kernel.

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
use crate::observe::live::account::{PairCounts, SwitchAccount, ThreadUsage, TracedTask};
use crate::observe::live::rows::{
    PreemptionCount, RowGrouping, SwitchRow, direct_share, rows, share,
};
use crate::observe::live::session::TracerOverhead;
use crate::observe::processes::program_in_words;
use crate::programs::watch::{CostFigure, HandOverCost, OpenEnd, PreemptionCost, PricedShare};

/// Version of [`TraceReport`].
const SCHEMA: u32 = 1;

/// Pairs and preempters that are listed.
const MAX_LISTED: usize = 20;

/// Rows that are kept.
const MAX_ROWS: usize = 1_000;

/// The subject of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Target")]
pub(crate) struct TraceTarget {
    /// The name of the program; `machine` for all.
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
    /// Returns the whole machine.
    pub(crate) fn machine() -> Self {
        Self { name: "machine".to_string(), ..Self::default() }
    }

    fn is_machine(&self) -> bool {
        self.pids.is_empty()
    }

    /// Returns `postgres (pid 2075 and 13 children)`. For a command it goes without saying that
    /// what it starts belongs to it.
    fn in_words(&self) -> String {
        let children = if self.command.is_some() { 0 } else { self.children };
        program_in_words(&self.name, &self.pids, children)
    }
}

/// The processes that were asked for did not switch, while their children did.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SleepingRoots {
    children: usize,
    /// Switches of the children a second.
    per_s: f64,
    /// Set if the children are in the figures.
    is_counted: bool,
}

/// Costs by which the switches of a program are priced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceCosts {
    pub(crate) price: Price,
    /// The figure that `cost` tells of the same program; absent for several programs.
    pub(crate) figure: Option<CostFigure>,
    /// The stored run that has the costs, or why there is none.
    pub(crate) profile: Reading<CostProfile>,
    /// Costs measured on the program itself, if these price its switches.
    pub(crate) own: Option<PreemptionCost>,
    /// Cost of handing over to another CPU, and the number of CPUs; absent where no sweep of
    /// placements is stored.
    pub(crate) apart: Option<(HandOverCost, usize)>,
    /// The reason why the working set is not known; absent where it is.
    pub(crate) refill_unknown: Option<String>,
    /// The command that would tell.
    pub(crate) command_to_know: Option<String>,
}

/// A thread that took the CPU from another that could have run on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Neighbour")]
pub(crate) struct PreempterThread {
    /// The name of the thread.
    pub(crate) name: String,
    /// The id of the thread; absent for several that have ended.
    pub(crate) id: Option<u32>,
    /// Number and rate of its preemptions.
    pub(crate) preemptions: PreemptionCount,
}

/// The tasks of one name that took the CPU from a thread that could have run on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct PreempterGroup {
    /// Their name; `its own threads` or `its own processes` where these are the program's.
    pub(crate) name: String,
    /// Set if these are the program's own threads.
    pub(crate) is_own: bool,
    /// Preemptions a second.
    pub(crate) per_s: f64,
    /// Share of all preemptions, from 0 to 1; those by this program are in none.
    pub(crate) share: f64,
}

impl fmt::Display for PreempterGroup {
    /// Writes `curl (7 %)`; all but a few are no 100 %.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let is_nearly_all = self.share > 0.99 && self.share < 1.0;
        let percent = if is_nearly_all { "over 99".into() } else { two_digits(100.0 * self.share) };
        write!(f, "{} ({percent} %)", self.name)
    }
}

/// Switches from one thread to another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct PairRow {
    /// The task that left the CPU.
    pub(crate) from: String,
    /// The thread's id.
    pub(crate) from_id: Option<u32>,
    /// The task that got it; `idle` for none.
    pub(crate) to: String,
    /// The thread's id.
    pub(crate) to_id: Option<u32>,
    /// Switches because `from` slept.
    pub(crate) voluntary: u64,
    /// Switches while `from` could have run on.
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
    /// Counts below 128 ns, then below 256 ns and so on; the last from 137 s on.
    pub(crate) counts: Vec<u32>,
}

/// Rates between two looks.
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

/// The report of `trace`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Trace")]
pub(crate) struct TraceReport {
    /// Version of this form.
    pub(crate) schema: u32,
    /// The subject of the trace.
    pub(crate) target: TraceTarget,
    /// For how long, in seconds.
    pub(crate) seconds: f64,
    /// The answer in words.
    pub(crate) in_words: MarkedText,
    /// Figures of its threads together.
    pub(crate) total: SwitchRow,
    /// The figure that is told of what its switches cost: that of `cost`. Absent where nothing is
    /// known.
    pub(crate) figure: Option<CostFigure>,
    /// Share of its CPU time that the switches themselves take.
    pub(crate) direct_share: Reading<Range>,
    /// Share of its CPU time that the switches take with the refilling of caches.
    pub(crate) share: Reading<Range>,
    /// Share of its CPU time that refilling caches takes.
    pub(crate) refill_share: Reading<Range>,
    /// The saving if its threads did not share CPUs; absent where that is not known, or nothing.
    pub(crate) pinning: Option<PinningSaving>,
    /// The stored run that the costs are from.
    pub(crate) profile: Reading<String>,
    /// Seconds from its start to now; null where that cannot be told.
    pub(crate) profile_age_s: Option<u64>,
    /// Costs measured on the program itself: the estimate rests on them, if they are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priced_by: Option<PreemptionCost>,
    /// The command that would make an unknown share known, where there is one.
    pub(crate) command_to_know: Option<String>,
    /// Each thread or process, that with the most switches first; a thousand at most.
    pub(crate) rows: Vec<SwitchRow>,
    /// Threads that took the CPU from it, most often first: others than its own (for the machine
    /// any), and not this program's.
    pub(crate) neighbours: Vec<PreempterThread>,
    /// Tasks that took the CPU from it, by name, most often first; the program's own threads are
    /// one group.
    pub(crate) preempters: Vec<PreempterGroup>,
    /// The twenty most expensive pairs.
    pub(crate) pairs: Vec<PairRow>,
    /// Lengths of waits, bursts and times off the CPU.
    pub(crate) lengths: Vec<DurationCounts>,
    /// Rates over time.
    pub(crate) timeline: Vec<TimelinePoint>,
    /// The cost of tracing itself.
    pub(crate) own: TracerOverhead,
    /// Notes on what is not in the figures, and on what happened.
    pub(crate) notices: Vec<String>,
    /// Switches of the machine for which the kernel ran no program: they are counted, and lack in
    /// lengths and pairs.
    pub(crate) missed_switches: u64,
}

/// Facts of a trace beside its account.
pub(super) struct TraceFacts {
    pub(super) target: TraceTarget,
    pub(super) seconds: f64,
    pub(super) costs: TraceCosts,
    pub(super) overhead: TracerOverhead,
    pub(super) timeline: Vec<TimelinePoint>,
}

impl TraceReport {
    /// Computes the report of an account.
    pub(super) fn from_account(
        account: &SwitchAccount,
        grouping: RowGrouping<'_>,
        facts: TraceFacts,
    ) -> Self {
        let TraceFacts { target, seconds, costs, overhead, timeline } = facts;
        let (used, price) = (account.total(), costs.price);
        let mut total = SwitchRow::from_usage(&used, seconds, price);
        total.name.clone_from(&target.name);
        total.id = target.pid;
        let figure = costs.figure.or_else(|| cost_figure(price, &used));
        let CostShares { direct_share, share, refill_share } = CostShares::new(&costs, &used);
        let priced_by = match (&costs.own, costs.profile.known()) {
            (Some(own_cost), _) => Some(own_cost.in_words()),
            (None, Some(profile)) => Some(format!("by {}", profile.called())),
            (None, None) => None,
        };
        let mut rows = rows(account, grouping, seconds, price);
        rows.truncate(MAX_ROWS);
        let mut pairs = all_pairs(account, seconds, price);
        pairs.truncate(MAX_LISTED);
        let pinning = match &costs.apart {
            Some((apart, cpus)) if !target.is_machine() => {
                PinningSaving::compute(account, price, apart, *cpus)
            }
            _ => None,
        };
        let sleepers = sleeping_roots(account, &target, seconds);
        let mut report = Self {
            schema: SCHEMA,
            in_words: MarkedText::default(),
            total,
            figure,
            direct_share,
            share,
            refill_share,
            pinning,
            profile_age_s: costs.profile.known().and_then(|profile| profile.age_s),
            profile: costs.profile.map(|profile| profile.run),
            priced_by: costs.own,
            command_to_know: costs.command_to_know,
            rows,
            neighbours: outside_preempters(account, &used, seconds),
            preempters: preempter_groups(account, target.is_machine(), seconds),
            pairs,
            lengths: lengths(&used),
            timeline,
            own: overhead,
            notices: Vec::new(),
            missed_switches: 0,
            target,
            seconds,
        };
        if used.switches() == 0 {
            // No cost and no working set makes a cost of nothing.
            report.command_to_know = None;
        }
        report.in_words = report.headline(priced_by.as_deref(), sleepers);
        report
    }

    /// Returns whether the whole machine was traced.
    pub(super) fn is_of_machine(&self) -> bool {
        self.target.is_machine()
    }

    /// Returns `postgres (pid 812): 41,200 switches a second, 93 % voluntary; they cost 7.8 to 11 %
    /// of its CPU time, ...`.
    fn headline(&self, priced_by: Option<&str>, sleepers: Option<SleepingRoots>) -> MarkedText {
        let Self { target, total, .. } = self;
        let per_s = total.switches_per_s();
        let asleep = sleepers.map_or(String::new(), |sleepers| asleep_in_words(target, sleepers));
        if per_s == 0.0 {
            let (what, seconds) = (target.in_words(), plain(self.seconds));
            return format!("{what} was not switched once in {seconds} s{asleep}.").into();
        }
        let whose = if target.is_machine() { "the" } else { "its" };
        let priced_by = priced_by.map_or(String::new(), |words| format!(", {words}"));
        let cost = match &self.figure {
            Some(figure) => {
                let open = match figure.open {
                    None | Some(OpenEnd::NotResolved) => "",
                    Some(OpenEnd::NoRefill) => " (what refilling caches adds is unknown)",
                    Some(OpenEnd::TooWide) => " (the upper end is unknown)",
                };
                let behind = format!(" of {whose} CPU time{priced_by}{open}");
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

    /// Returns `; preempted 69 times a second, mostly by its own threads (85 %), then curl (7 %)`;
    /// empty where nobody did.
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

/// Shares of the CPU time that switches take.
struct CostShares {
    direct_share: Reading<Range>,
    share: Reading<Range>,
    refill_share: Reading<Range>,
}

impl CostShares {
    fn new(costs: &TraceCosts, used: &ThreadUsage) -> Self {
        let no_cost = if used.cpu_ns == 0 {
            "it used no CPU time"
        } else {
            "the cost profile has no cost of a switch"
        };
        let unknown = costs.profile.why().unwrap_or(no_cost).to_string();
        let refill_unknown = costs.refill_unknown.clone().unwrap_or_else(|| unknown.clone());
        let direct: Reading<Range> = direct_share(costs.price, used).ok_or(unknown).into();
        let whole: Reading<Range> = share(costs.price.total, used).ok_or(refill_unknown).into();
        let refill_share =
            whole.clone().and_then(|whole| direct.clone().map(|direct| whole.beside(direct)));
        Self { direct_share: direct, share: whole, refill_share }
    }
}

/// Returns the figure that is told of the cost of switches where no working set goes with them, as
/// for the whole machine.
fn cost_figure(price: Price, used: &ThreadUsage) -> Option<CostFigure> {
    let direct_ns = price.direct.map(|direct| direct.at(used.involuntary_share()));
    CostFigure::choose(priced_share(price.total, used), priced_share(direct_ns, used))
}

fn priced_share(each_ns: Option<Range>, used: &ThreadUsage) -> Option<PricedShare> {
    let share = share(each_ns, used)?;
    Some(PricedShare { share, each_ns: each_ns? })
}

/// Returns the children of the processes that were asked for, if these did not switch while the
/// children did.
fn sleeping_roots(
    account: &SwitchAccount,
    target: &TraceTarget,
    seconds: f64,
) -> Option<SleepingRoots> {
    if target.is_machine() || account.total_of_roots().switches() > 0 {
        return None;
    }
    let (children, used, is_counted) = match account.left_out() {
        Some((children, used)) => (children, used, false),
        None => (account.children(), account.total(), true),
    };
    if used.switches() == 0 {
        return None;
    }
    Some(SleepingRoots { children, per_s: used.switches() as f64 / seconds, is_counted })
}

/// Returns `; its 13 children, which --no-children leaves out, made 29,000 switches a second`.
fn asleep_in_words(target: &TraceTarget, sleepers: SleepingRoots) -> String {
    let SleepingRoots { children, per_s, is_counted } = sleepers;
    let (whose, itself) = match target.pids[..] {
        [pid] => ("its", format!("pid {pid} itself")),
        _ => ("their", "those that were asked for".to_string()),
    };
    let children =
        if children == 1 { "1 child".to_string() } else { format!("{children} children") };
    if is_counted {
        return format!(", all by {whose} {children} ({itself} slept)");
    }
    let rate = grouped(per_s);
    format!("; {whose} {children}, which --no-children leaves out, made {rate} switches a second")
}

/// Lists the threads that took the CPU from those in scope: others, or for the whole machine any.
/// The observer is told apart.
fn outside_preempters(
    account: &SwitchAccount,
    used: &ThreadUsage,
    seconds: f64,
) -> Vec<PreempterThread> {
    let is_all = account.tasks.values().all(|task| task.in_scope);
    let counts = account
        .preempters(|from, to| (is_all || !to.in_scope) && !from.is_observer && !to.is_observer);
    let mut found = Vec::new();
    for (task, count) in counts {
        let NamedTask { name, id } = named(account, task);
        let preemptions = PreemptionCount::new(count, used, seconds);
        found.push(PreempterThread { name, id, preemptions });
    }
    found.sort_by(|a, b| {
        let by_count = b.preemptions.count.cmp(&a.preemptions.count);
        by_count.then_with(|| (&a.name, a.id).cmp(&(&b.name, b.id)))
    });
    found.truncate(MAX_LISTED);
    found
}

/// Name of the group of the program's own threads, where it is one process.
const OWN_THREADS: &str = "its own threads";

/// Name of the group of the program's own threads, where it has several processes.
const OWN_PROCESSES: &str = "its own processes";

/// Sums by name who took the CPU from those in scope, most often first. The observer is in no
/// group.
fn preempter_groups(
    account: &SwitchAccount,
    is_machine: bool,
    seconds: f64,
) -> Vec<PreempterGroup> {
    let mut processes = BTreeSet::new();
    for task in account.tasks.values() {
        if task.in_scope {
            processes.insert(task.tgid);
        }
    }
    let own_name = if processes.len() > 1 { OWN_PROCESSES } else { OWN_THREADS };
    let mut sums: BTreeMap<(bool, String), u64> = BTreeMap::new();
    for (task, count) in account.preempters(|from, to| !from.is_observer && !to.is_observer) {
        let is_own = !is_machine && account.task(task).is_some_and(|task| task.in_scope);
        let name = if is_own { own_name.to_string() } else { named(account, task).name };
        *sums.entry((is_own, name)).or_default() += count;
    }
    let total: u64 = sums.values().sum();
    let mut groups = Vec::new();
    for ((is_own, name), count) in sums {
        let (per_s, share) = (count as f64 / seconds, count as f64 / total as f64);
        groups.push(PreempterGroup { name, is_own, per_s, share });
    }
    // A stable sort: groups of one size stay in the order of their names.
    groups.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    groups
}

/// The name of a task in a list, and its thread; no thread for an idle CPU and for several that
/// have ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedTask {
    pub(super) name: String,
    pub(super) id: Option<u32>,
}

impl fmt::Display for NamedTask {
    /// Writes `postgres (812)`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "{} ({id})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Returns the name of a task in a list.
pub(super) fn named(account: &SwitchAccount, task: &TracedTask) -> NamedTask {
    let id = match task {
        TracedTask::Idle => return NamedTask { name: "idle".to_string(), id: None },
        TracedTask::Thread(key) => Some(key.tid),
        TracedTask::Ended { .. } => None,
    };
    let name = account.task(task).map_or("?".to_string(), |record| record.name.clone());
    NamedTask { name, id }
}

/// Returns all pairs of which one task is in scope, those with the most switches first.
pub(super) fn all_pairs(account: &SwitchAccount, seconds: f64, price: Price) -> Vec<PairRow> {
    let mut pairs = Vec::new();
    for ((prev, next), counts) in &account.pairs {
        let has_prev = account.task(prev).is_some_and(|task| task.in_scope);
        let has_next = account.task(next).is_some_and(|task| task.in_scope);
        if !has_prev && !has_next {
            continue;
        }
        let NamedTask { name: from, id: from_id } = named(account, prev);
        let NamedTask { name: to, id: to_id } = named(account, next);
        pairs.push(PairRow {
            from,
            from_id,
            to,
            to_id,
            voluntary: counts.voluntary,
            involuntary: counts.involuntary,
            cpu_share: pair_share(*counts, seconds, price),
        });
    }
    pairs.sort_by(|a, b| {
        let by_count = (b.voluntary + b.involuntary).cmp(&(a.voluntary + a.involuntary));
        by_count
            .then_with(|| (&a.from, a.from_id).cmp(&(&b.from, b.from_id)))
            .then_with(|| (&a.to, a.to_id).cmp(&(&b.to, b.to_id)))
    });
    pairs
}

/// Returns the share of one CPU that the switches of a pair take.
fn pair_share(counts: PairCounts, seconds: f64, price: Price) -> Option<Range> {
    let per_s = counts.total() as f64 / seconds;
    let involuntary_share = counts.involuntary as f64 / counts.total().max(1) as f64;
    let each_ns = price.direct?.at(involuntary_share);
    Some(each_ns.map(|ns| (per_s * ns / 1e9).max(0.0)))
}

fn lengths(used: &ThreadUsage) -> Vec<DurationCounts> {
    let mut lengths = vec![
        DurationCounts::new("wait", &used.waits.by_octaves()),
        DurationCounts::new("run", &used.bursts),
    ];
    for (cause, off) in SwitchCause::ALL.iter().zip(&used.off) {
        lengths.push(DurationCounts::new(cause_words(*cause), off));
    }
    lengths
}

impl DurationCounts {
    fn new(kind: &str, histogram: &DurationHistogram) -> Self {
        let mut counts = histogram.counts().to_vec();
        while counts.last() == Some(&0) {
            counts.pop();
        }
        Self { of: kind.to_string(), counts }
    }
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

/// Totals at a look.
#[derive(Clone, Copy, Default)]
struct TimelineLook {
    /// Seconds since the beginning.
    at_s: f64,
    switches: u64,
    preempted: u64,
    cpu_ns: u64,
}

/// The timeline, in a bounded number of points.
#[derive(Default)]
pub(crate) struct TraceTimeline {
    looks: Vec<TimelineLook>,
    /// Shortest time between two points, in seconds.
    apart_s: f64,
}

/// Points of a timeline that are kept; then two become one, and later ones are as far apart.
const MAX_POINTS: usize = 2_048;

impl TraceTimeline {
    /// Notes what has happened in all until now.
    pub(crate) fn add(&mut self, at_s: f64, total: &ThreadUsage) {
        let then_s = self.looks.last().map_or(0.0, |look| look.at_s);
        if at_s > then_s && at_s - then_s >= self.apart_s {
            let (switches, preempted) = (total.switches(), total.preempted());
            self.looks.push(TimelineLook { at_s, switches, preempted, cpu_ns: total.cpu_ns });
        }
        if self.looks.len() > MAX_POINTS {
            self.looks = self.looks.chunks(2).filter_map(|two| two.last().copied()).collect();
            self.apart_s = 2.0 * at_s / MAX_POINTS as f64;
        }
    }

    /// Returns the rates between the looks.
    pub(crate) fn points(self) -> Vec<TimelinePoint> {
        let mut before = TimelineLook::default();
        let mut points = Vec::new();
        for look in self.looks {
            let seconds = look.at_s - before.at_s;
            let cpu_ns = look.cpu_ns.saturating_sub(before.cpu_ns);
            points.push(TimelinePoint {
                at_s: look.at_s,
                switches_per_s: look.switches.saturating_sub(before.switches) as f64 / seconds,
                preempted_per_s: look.preempted.saturating_sub(before.preempted) as f64 / seconds,
                cpu_share: cpu_ns as f64 / seconds / 1e9,
            });
            before = look;
        }
        points
    }
}

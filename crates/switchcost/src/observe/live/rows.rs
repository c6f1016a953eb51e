//! Figures of what was seen, a row for each thread or process, as lines of at most so many columns.
//!
//! A figure of the tracer is a field of [`SwitchRow`], which [`SwitchRow::from_usage`] fills, and
//! an entry of [`COLUMNS`], which says how it is shown.

use std::collections::HashMap;

use analysis::program::{Price, Range};
use charts::printable;
use rundata::words::{grouped, percent_of, two_digits};
use schemars::JsonSchema;
use serde::Serialize;
use switchtrace::{DurationHistogram, WaitHistogram};
use textwrap::core::display_width;

use super::GroupBy;
use super::account::{SwitchAccount, TaskRecord, ThreadUsage, TracedTask};
use super::labels::ProcessLabels;

/// The figure that rows are sorted by, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RowOrder {
    Switches,
    /// How often others took the CPU from it
    Preempted,
    /// 99th percentile of the wait in the run queue
    Wait,
    Cost,
    Cpu,
}

impl RowOrder {
    /// Returns the number that rows are sorted by.
    fn key(self, row: &SwitchRow) -> f64 {
        match self {
            Self::Switches => row.switches_per_s(),
            Self::Preempted => row.preempted_per_s,
            Self::Wait => row.wait_99.map_or(0.0, |wait| wait.high_ns as f64),
            Self::Cost => row.cost_share.map_or(0.0, |share| share.high),
            Self::Cpu => row.cpu_share,
        }
    }

    /// Sorts rows; of equals the one with more switches comes first, then by name.
    pub(crate) fn sort(self, rows: &mut [SwitchRow]) {
        rows.sort_by(|a, b| {
            let by_key = self.key(b).total_cmp(&self.key(a));
            by_key
                .then_with(|| b.switches_per_s().total_cmp(&a.switches_per_s()))
                .then_with(|| (&a.name, a.id).cmp(&(&b.name, b.id)))
        });
    }
}

/// Returns the share of the CPU time that switches of so many ns each take, from 0 to 1; nothing
/// without CPU time.
pub(crate) fn share(each_ns: Option<Range>, used: &ThreadUsage) -> Option<Range> {
    if used.cpu_ns == 0 {
        return None;
    }
    let (switches, cpu_ns) = (used.switches() as f64, used.cpu_ns as f64);
    Some(each_ns?.map(|ns| (switches * ns / cpu_ns).clamp(0.0, 1.0)))
}

/// Returns the share of the CPU time that the switches themselves take, by their kinds.
pub(crate) fn direct_share(price: Price, used: &ThreadUsage) -> Option<Range> {
    share(price.direct.map(|direct| direct.at(used.involuntary_share())), used)
}

/// The bucket that a quantile lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Between")]
pub(crate) struct QuantileBucket {
    /// From so many nanoseconds.
    pub(crate) low_ns: u64,
    /// To below so many.
    pub(crate) high_ns: u64,
}

impl QuantileBucket {
    /// Returns the octave of this number.
    pub(crate) fn bucket(number: usize) -> Self {
        let low_ns = <DurationHistogram>::lower_ns(number);
        let high_ns = <DurationHistogram>::lower_ns(number + 1);
        Self { low_ns, high_ns }
    }

    fn of_quantile<const N: usize>(histogram: &DurationHistogram<N>, q: f64) -> Option<Self> {
        let (low_ns, high_ns) = histogram.quantile_ns(q)?;
        Some(Self { low_ns, high_ns })
    }
}

/// Figures of a thread, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Row")]
pub(crate) struct SwitchRow {
    /// The name of the task.
    pub(crate) name: String,
    /// The id of the task; absent for several that have ended.
    pub(crate) id: Option<u32>,
    /// Switches because it slept, a second.
    pub(crate) voluntary_per_s: f64,
    /// Switches because another was to run, a second.
    pub(crate) preempted_per_s: f64,
    /// Switches by sched_yield(2), a second.
    pub(crate) yielded_per_s: f64,
    /// Moves to another CPU, a second.
    pub(crate) migrations_per_s: f64,
    /// CPU seconds per second.
    pub(crate) cpu_share: f64,
    /// Wait in the run queue: the median.
    pub(crate) wait_median: Option<QuantileBucket>,
    /// Wait in the run queue: the 99th percentile.
    pub(crate) wait_99: Option<QuantileBucket>,
    /// Time on a CPU between two switches: the median.
    pub(crate) burst_median: Option<QuantileBucket>,
    /// Share of its CPU time that the switches themselves take; absent where their cost is not
    /// known.
    pub(crate) cost_share: Option<Range>,
    /// The task that preempted it most often, itself and this program left out.
    pub(crate) preempted_by: Option<TopPreempter>,
    /// Set for this program itself, which looks.
    pub(crate) own: bool,
}

/// Preemptions of the tasks in scope, which could have run on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Preemptions")]
pub(crate) struct PreemptionCount {
    /// Number of preemptions.
    pub(crate) count: u64,
    /// Number of their switches of all causes.
    pub(crate) of_switches: u64,
    /// Preemptions a second.
    pub(crate) per_s: f64,
}

impl PreemptionCount {
    pub(crate) fn new(count: u64, used: &ThreadUsage, seconds: f64) -> Self {
        Self { count, of_switches: used.switches(), per_s: count as f64 / seconds }
    }

    /// Returns `50 of 82,400 switches (0.061 %), 25 a second`.
    pub(crate) fn in_words(&self) -> String {
        let (count, switches) = (self.count as f64, self.of_switches.max(1) as f64);
        let percent = two_digits(100.0 * count / switches);
        format!(
            "{} of {} switches ({percent} %), {} a second",
            grouped(count),
            grouped(self.of_switches as f64),
            grouped(self.per_s)
        )
    }
}

/// The task that took the CPU most often from another that could have run on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Preempter")]
pub(crate) struct TopPreempter {
    /// The name of the task.
    pub(crate) name: String,
    /// Preemptions a second.
    pub(crate) per_s: f64,
}

impl SwitchRow {
    /// Returns the figures of what was done in so many seconds, without a name.
    pub(crate) fn from_usage(used: &ThreadUsage, seconds: f64, price: Price) -> Self {
        Self {
            name: String::new(),
            id: None,
            voluntary_per_s: used.voluntary as f64 / seconds,
            preempted_per_s: used.preempted() as f64 / seconds,
            yielded_per_s: used.yields.min(used.involuntary) as f64 / seconds,
            migrations_per_s: used.migrations as f64 / seconds,
            cpu_share: used.cpu_ns as f64 / 1e9 / seconds,
            wait_median: QuantileBucket::of_quantile(&used.waits, 0.5),
            wait_99: QuantileBucket::of_quantile(&used.waits, 0.99),
            burst_median: QuantileBucket::of_quantile(&used.bursts, 0.5),
            cost_share: direct_share(price, used),
            preempted_by: None,
            own: false,
        }
    }

    pub(crate) fn switches_per_s(&self) -> f64 {
        self.voluntary_per_s + self.preempted_per_s + self.yielded_per_s
    }
}

/// The subject of each row, and the labels of processes that this takes.
#[derive(Clone, Copy)]
pub(crate) struct RowGrouping<'a> {
    pub(crate) by: GroupBy,
    pub(crate) labels: &'a ProcessLabels,
}

/// The tasks of a row: those of an id, or for id 0 those of a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RowGroup {
    id: u32,
    name: String,
}

impl RowGroup {
    fn id(&self) -> Option<u32> {
        if self.id == 0 { None } else { Some(self.id) }
    }
}

impl RowGrouping<'_> {
    /// Returns the group of a task; none where nothing is known of the task.
    fn group(&self, account: &SwitchAccount, task: &TracedTask) -> Option<RowGroup> {
        let record = account.task(task)?;
        let (id, name) = match (self.by, task) {
            (GroupBy::Cgroup | GroupBy::User, _) => (0, self.labels.label(record.tgid)),
            (GroupBy::Thread, TracedTask::Thread(key)) => (key.tid, record.name.clone()),
            (GroupBy::Process, _) if record.tgid != 0 => (record.tgid, String::new()),
            _ => (0, record.name.clone()),
        };
        Some(RowGroup { id, name })
    }

    /// Returns the name of a row after one of its tasks.
    fn row_name(&self, group: &RowGroup, task: &TaskRecord) -> String {
        match self.by {
            GroupBy::Cgroup | GroupBy::User => group.name.clone(),
            GroupBy::Thread | GroupBy::Process => task.name.clone(),
        }
    }
}

/// Usage of the tasks of a group together.
struct GroupUsage {
    name: String,
    used: ThreadUsage,
    /// Set if all of them are the observer's.
    is_observer: bool,
}

/// Adds up by group what the tasks in scope did.
fn sum_groups(account: &SwitchAccount, grouping: RowGrouping<'_>) -> HashMap<RowGroup, GroupUsage> {
    let mut sums: HashMap<RowGroup, GroupUsage> = HashMap::new();
    for (task, record) in &account.tasks {
        if !record.in_scope {
            continue;
        }
        let Some(group) = grouping.group(account, task) else { continue };
        let name = grouping.row_name(&group, record);
        let sum = sums.entry(group).or_insert_with(|| GroupUsage {
            name: String::new(),
            used: ThreadUsage::default(),
            is_observer: true,
        });
        sum.is_observer &= record.is_observer;
        // A process is called by its first thread.
        let is_first = matches!(task, TracedTask::Thread(key) if key.tid == record.tgid);
        if is_first || sum.name.is_empty() {
            sum.name = name;
        }
        sum.used.add(&record.used);
    }
    sums
}

/// The waits of a row's tasks in the run queue.
pub(crate) struct RowWaits {
    pub(crate) name: String,
    pub(crate) id: Option<u32>,
    pub(crate) waits: WaitHistogram,
}

/// Returns how long each waited in the run queue, the one with the most switches first. Those that
/// never waited and the observer are left out.
pub(crate) fn waits(account: &SwitchAccount, grouping: RowGrouping<'_>) -> Vec<RowWaits> {
    let mut sums = Vec::from_iter(sum_groups(account, grouping));
    sums.retain(|(_, sum)| !sum.is_observer && sum.used.waits.total() > 0);
    sums.sort_by(|(a_group, a), (b_group, b)| {
        b.used.switches().cmp(&a.used.switches()).then_with(|| a_group.cmp(b_group))
    });
    let mut waits = Vec::new();
    for (group, sum) in sums {
        waits.push(RowWaits { name: sum.name, id: group.id(), waits: sum.used.waits });
    }
    waits
}

/// Returns a row for each group, the one with the most switches first.
pub(crate) fn rows(
    account: &SwitchAccount,
    grouping: RowGrouping<'_>,
    seconds: f64,
    price: Price,
) -> Vec<SwitchRow> {
    let mut preempters = top_preempters(account, grouping);
    let mut rows = Vec::new();
    for (group, sum) in sum_groups(account, grouping) {
        let mut row = SwitchRow::from_usage(&sum.used, seconds, price);
        if let Some(preempter) = preempters.remove(&group) {
            let per_s = preempter.count as f64 / seconds;
            row.preempted_by = Some(TopPreempter { name: preempter.name, per_s });
        }
        row.id = group.id();
        row.name = sum.name;
        row.own = sum.is_observer;
        rows.push(row);
    }
    RowOrder::Switches.sort(&mut rows);
    rows
}

/// Preemptions of one group by another.
#[derive(Clone, Debug, Default)]
struct GroupPreemptions {
    name: String,
    count: u64,
}

/// Finds who took the CPU most often from a thread of each group that could have run on, others
/// than the group itself and the observer.
fn top_preempters(
    account: &SwitchAccount,
    grouping: RowGrouping<'_>,
) -> HashMap<RowGroup, GroupPreemptions> {
    let mut sums: HashMap<(RowGroup, RowGroup), GroupPreemptions> = HashMap::new();
    for ((prev, next), counts) in &account.pairs {
        let Some(taker) = account.task(next) else { continue };
        let (Some(from), Some(to)) = (grouping.group(account, prev), grouping.group(account, next))
        else {
            continue;
        };
        if taker.is_observer || from == to {
            continue;
        }
        let name = grouping.row_name(&to, taker);
        let sum = sums.entry((from, to)).or_insert(GroupPreemptions { name, ..Default::default() });
        sum.count += counts.involuntary;
    }
    let mut most: HashMap<RowGroup, GroupPreemptions> = HashMap::new();
    for ((from, _), sum) in sums {
        if sum.count == 0 {
            continue;
        }
        let best = most.entry(from).or_default();
        // Of equals the first by name.
        if (sum.count, &best.name) > (best.count, &sum.name) {
            *best = sum;
        }
    }
    most
}

/// A column of `trace` and `top`.
struct RowColumn {
    heading: &'static str,
    width: usize,
    /// Place in the order in which columns are kept where there is less room; the name, 0, always
    /// stands first.
    keep_rank: u8,
    cell: fn(&SwitchRow) -> String,
    /// The meaning in words, in lines. A column without one shares that of the next.
    meaning: &'static str,
}

/// The columns of `trace` and `top`, in their order; the first ten make 80 characters.
const COLUMNS: [RowColumn; 12] = [
    column(NAME, 15, 0, |row| row.name.clone(), ""),
    column("id", 7, 6, |row| id_cell(row.id), ""),
    column("sleeps", 6, 1, |row| rate(row.voluntary_per_s), "switches a second because it slept"),
    column(
        "prmpts",
        6,
        2,
        |row| rate(row.preempted_per_s),
        "because another was to run (preempted)",
    ),
    column("yields", 6, 9, |row| rate(row.yielded_per_s), "by sched_yield(2)"),
    column("moves", 6, 8, |row| rate(row.migrations_per_s), "moves to another CPU, a second"),
    column("wait", 6, 7, |row| below(row.wait_median), ""),
    column("p99", 6, 3, |row| below(row.wait_99), WAIT),
    column(
        "run",
        6,
        5,
        |row| below(row.burst_median),
        "time on the CPU between two switches: median",
    ),
    column("cost %", 7, 4, |row| cost_cell(row.cost_share), COST),
    column("cpu %", 5, 10, |row| percent_of(row.cpu_share), "100 is one CPU"),
    column(TAKER, 15, 11, taker_cell, TOOK),
];

const fn column(
    heading: &'static str,
    width: usize,
    keep_rank: u8,
    cell: fn(&SwitchRow) -> String,
    meaning: &'static str,
) -> RowColumn {
    RowColumn { heading, width, keep_rank, cell, meaning }
}

/// Columns of names, which stand to the left.
const NAME: &str = "name";
const TAKER: &str = "preempted by";

const WAIT: &str = "wait in the run queue: median and 99th percentile, each at most that";
const COST: &str = "what the switches themselves take of its CPU time, by stored costs;\n\
     refilling caches is not in it: `switchcost trace --pid` has it";
const TOOK: &str = "who took the CPU from it most often";

fn id_cell(id: Option<u32>) -> String {
    id.map_or("-".to_string(), |id| id.to_string())
}

fn cost_cell(share: Option<Range>) -> String {
    share.map_or("-".to_string(), percent_range)
}

fn taker_cell(row: &SwitchRow) -> String {
    row.preempted_by.as_ref().map_or(String::new(), |preempter| preempter.name.clone())
}

/// Returns the headings of all columns but the name, those first that are kept longest.
fn headings_by_rank() -> Vec<&'static str> {
    let mut columns: Vec<&RowColumn> = COLUMNS.iter().collect();
    columns.retain(|column| column.heading != NAME);
    columns.sort_by_key(|column| column.keep_rank);
    columns.into_iter().map(|column| column.heading).collect()
}

/// The meanings of all columns in a paragraph.
pub(crate) const LEGEND: &str = "sleeps, prmpts, yields: switches a second because it slept, \
     because another was to run, by sched_yield(2); moves: to another CPU; wait, p99: median and 99th \
     percentile of the wait in the run queue; run: median of the time on a CPU between two \
     switches; cost: what the switches themselves take of its CPU time";

/// Returns the meaning of each column, in lines.
pub(crate) fn meanings() -> Vec<String> {
    let (mut lines, mut headings) = (Vec::new(), Vec::new());
    // Names and ids say what they are.
    for column in &COLUMNS[2..] {
        headings.push(column.heading);
        let mut heading = headings.join(", ");
        for line in column.meaning.lines() {
            lines.push(format!("{heading:<9}  {line}"));
            heading.clear();
            headings.clear();
        }
    }
    lines
}

/// Columns that are shown together, in a line.
pub(crate) struct ShownColumns {
    columns: Vec<&'static RowColumn>,
    /// Headings of all other columns.
    pub(crate) left_out: Vec<&'static str>,
}

impl ShownColumns {
    /// Returns the columns that fit into so many characters: set 0 has those that matter most, the
    /// next ones those that are in no set before, round and round.
    pub(crate) fn fitting(characters: usize, set: usize) -> Self {
        let sets = column_sets(characters);
        let chosen: &[&str] = if sets.is_empty() { &[] } else { &sets[set % sets.len()] };
        let (mut columns, mut left_out) = (Vec::new(), Vec::new());
        for column in &COLUMNS {
            let is_shown = if column.heading == NAME {
                column.width <= characters
            } else {
                chosen.contains(&column.heading)
            };
            if is_shown {
                columns.push(column);
            } else {
                left_out.push(column.heading);
            }
        }
        Self { columns, left_out }
    }

    fn line(&self, text: impl Fn(&RowColumn) -> String) -> String {
        let mut cells = Vec::new();
        for column in &self.columns {
            let cell = cut(&text(column), column.width);
            let blanks = " ".repeat(column.width - display_width(&cell));
            let is_name = [NAME, TAKER].contains(&column.heading);
            cells.push(if is_name { cell + &blanks } else { blanks + &cell });
        }
        cells.join(" ").trim_end().to_string()
    }

    /// Returns the line of headings.
    pub(crate) fn head(&self) -> String {
        self.line(|column| column.heading.to_string())
    }

    /// Returns the line of a row.
    pub(crate) fn row(&self, row: &SwitchRow) -> String {
        self.line(|column| (column.cell)(row))
    }
}

/// Divides the columns, but for names, into sets that fit beside the name into so many characters.
fn column_sets(characters: usize) -> Vec<Vec<&'static str>> {
    let mut sets: Vec<Vec<&str>> = Vec::new();
    let mut set = Vec::new();
    let mut used = width_of(NAME);
    for heading in headings_by_rank() {
        let width = width_of(heading) + 1;
        if used + width > characters && !set.is_empty() {
            sets.push(std::mem::take(&mut set));
            used = width_of(NAME);
        }
        if used + width <= characters {
            used += width;
            set.push(heading);
        }
    }
    if !set.is_empty() {
        sets.push(set);
    }
    sets
}

fn width_of(heading: &str) -> usize {
    COLUMNS.iter().find(|column| column.heading == heading).map_or(0, |column| column.width)
}

/// Cuts a text to so many columns, without characters that a terminal obeys.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut kept = printable(text).replace(['\n', '\t'], " ");
    while display_width(&kept) > width {
        kept.pop();
    }
    kept
}

/// Returns a rate in six columns at most: `0`, `0.3`, `950`, `41k`, `1.2M`.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        none if none <= 0.0 => "0".to_string(),
        small if small < 0.095 => "<0.1".to_string(),
        _ => scaled(per_s, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]),
    }
}

/// Returns the end of a bucket: `<16us`; a dash for none.
pub(crate) fn below(bucket: Option<QuantileBucket>) -> String {
    let Some(QuantileBucket { low_ns, high_ns }) = bucket else { return "-".to_string() };
    // The last bucket has no end.
    if high_ns == u64::MAX || high_ns <= low_ns {
        return format!(">{}", short_time(low_ns));
    }
    format!("<{}", short_time(high_ns))
}

fn short_time(ns: u64) -> String {
    scaled(ns as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
}

/// Returns a value in the largest unit that leaves one of it; below ten with a digit behind the
/// point.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fitting = units.iter().find(|(scale, _)| value >= 0.995 * scale);
    let (scale, unit) = fitting.or(units.last()).copied().unwrap_or((1.0, ""));
    let part = value / scale;
    let decimals = usize::from(part < 9.95 && (part - part.round()).abs() > 0.05);
    format!("{part:.decimals$}{unit}")
}

/// Returns a range of shares in percent: `6.0-16`, `6.0` where both ends read alike, `>=6.0` where
/// the upper end is not known.
pub(crate) fn percent_range(share: Range) -> String {
    let (low, high) = (percent_of(share.low), percent_of(share.high));
    if share.low < 1.0 && share.high >= 1.0 {
        format!(">={low}")
    } else if low == high {
        high
    } else {
        format!("{low}-{high}")
    }
}

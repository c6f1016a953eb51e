//! Figures of what was seen, a row for each thread or process, as lines of at most so many columns.

use std::collections::HashMap;

use analysis::program::{Price, Range};
use charts::printable;
use rundata::words::{grouped, percent_of, two_digits};
use schemars::JsonSchema;
use serde::Serialize;
use switchtrace::DurationHistogram;
use textwrap::core::display_width;

use super::GroupBy;
use super::account::{SwitchAccount, TaskRecord, ThreadUsage, TracedTask};
use super::labels::ProcessLabels;

/// What rows are sorted by, most first.
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
    fn key(self, row: &SwitchRow) -> f64 {
        match self {
            Self::Switches => row.switches_per_s(),
            Self::Preempted => row.preempted_per_s,
            Self::Wait => row.wait_99.map_or(0.0, |wait| wait.high_ns as f64),
            Self::Cost => row.cost_share.map_or(0.0, |share| share.high),
            Self::Cpu => row.cpu_share,
        }
    }

    /// The rows in its order; of equals the one with more switches, then by name.
    pub(crate) fn sort(self, rows: &mut [SwitchRow]) {
        rows.sort_by(|one, other| {
            let most = |of: fn(Self, &SwitchRow) -> f64| of(self, other).total_cmp(&of(self, one));
            most(Self::key)
                .then_with(|| most(|_, row| row.switches_per_s()))
                .then_with(|| (&one.name, one.id).cmp(&(&other.name, other.id)))
        });
    }
}

/// Share of the CPU time that switches of so many ns each take, from 0 to 1.
pub(crate) fn share(each_ns: Option<Range>, used: &ThreadUsage) -> Option<Range> {
    let of = |ns: f64| (used.switches() as f64 * ns / used.cpu_ns as f64).clamp(0.0, 1.0);
    each_ns.filter(|_| used.cpu_ns > 0).map(|each| each.map(of))
}

/// The same of the switches themselves, by their kinds.
pub(crate) fn direct_share(price: Price, used: &ThreadUsage) -> Option<Range> {
    share(price.direct.map(|of| of.at(used.involuntary_share())), used)
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
    /// The bucket itself.
    pub(crate) fn bucket(number: usize) -> Self {
        let [low_ns, high_ns] = [number, number + 1].map(DurationHistogram::lower_ns);
        Self { low_ns, high_ns }
    }
}

fn quantile(of: &DurationHistogram, q: f64) -> Option<QuantileBucket> {
    of.quantile_ns(q).map(|(low_ns, high_ns)| QuantileBucket { low_ns, high_ns })
}

/// What a thread did, or those of a process together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Row")]
pub(crate) struct SwitchRow {
    /// Its name.
    pub(crate) name: String,
    /// Its id; absent where it is of several that have ended.
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
    /// Its 99th percentile.
    pub(crate) wait_99: Option<QuantileBucket>,
    /// Time on a CPU between two switches: the median.
    pub(crate) burst_median: Option<QuantileBucket>,
    /// Share of its CPU time that the switches themselves take; absent where their cost is not
    /// known.
    pub(crate) cost_share: Option<Range>,
    /// Who preempted it most often, others than itself and this program.
    pub(crate) preempted_by: Option<TopPreempter>,
    /// Whether it is this program itself, which looks.
    pub(crate) own: bool,
}

/// How often the CPU was taken from those that are looked at while they could have run on, of all
/// their switches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Preemptions")]
pub(crate) struct PreemptionCount {
    /// How often.
    pub(crate) count: u64,
    /// Of so many switches of all causes.
    pub(crate) of_switches: u64,
    /// How often a second.
    pub(crate) per_s: f64,
}

impl PreemptionCount {
    pub(crate) fn of(count: u64, used: &ThreadUsage, seconds: f64) -> Self {
        Self { count, of_switches: used.switches(), per_s: count as f64 / seconds }
    }

    /// `50 of 82,400 switches (0.061 %), 25 a second`.
    pub(crate) fn in_words(&self) -> String {
        let [count, all] = [self.count, self.of_switches].map(|count| grouped(count as f64));
        let percent = two_digits(100.0 * self.count as f64 / self.of_switches.max(1) as f64);
        format!("{count} of {all} switches ({percent} %), {} a second", grouped(self.per_s))
    }
}

/// Who took the CPU from somebody that could have run on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Preempter")]
pub(crate) struct TopPreempter {
    /// Its name.
    pub(crate) name: String,
    /// How often a second.
    pub(crate) per_s: f64,
}

impl SwitchRow {
    /// Its figures, without a name.
    pub(crate) fn of(used: &ThreadUsage, seconds: f64, price: Price) -> Self {
        let per_s = |count: u64| count as f64 / seconds;
        Self {
            name: String::new(),
            id: None,
            voluntary_per_s: per_s(used.voluntary),
            preempted_per_s: per_s(used.preempted()),
            yielded_per_s: per_s(used.yields.min(used.involuntary)),
            migrations_per_s: per_s(used.migrations),
            cpu_share: used.cpu_ns as f64 / 1e9 / seconds,
            wait_median: quantile(&used.waits, 0.5),
            wait_99: quantile(&used.waits, 0.99),
            burst_median: quantile(&used.bursts, 0.5),
            cost_share: direct_share(price, used),
            preempted_by: None,
            own: false,
        }
    }

    pub(crate) fn switches_per_s(&self) -> f64 {
        self.voluntary_per_s + self.preempted_per_s + self.yielded_per_s
    }
}

/// What a row is of: a process or a thread, or those of a name.
type Group = (u32, String);

fn group(
    account: &SwitchAccount,
    who: &TracedTask,
    (by, labels): (GroupBy, &ProcessLabels),
) -> Option<Group> {
    let life = account.life(who)?;
    Some(match (by, who) {
        (GroupBy::Cgroup | GroupBy::User, _) => (0, labels.of(life.tgid)),
        (GroupBy::Thread, TracedTask::Thread(of)) => (of.tid, life.name.clone()),
        (GroupBy::Process, _) if life.tgid != 0 => (life.tgid, String::new()),
        _ => (0, life.name.clone()),
    })
}

/// What somebody of a group calls it.
fn called(by: GroupBy, (_, label): &Group, life: &TaskRecord) -> String {
    if matches!(by, GroupBy::Cgroup | GroupBy::User) { label.clone() } else { life.name.clone() }
}

/// What those of each group did together: what the group is called, and whether it is the observer.
type Sums = HashMap<Group, (String, ThreadUsage, bool)>;

fn sums(account: &SwitchAccount, by: (GroupBy, &ProcessLabels)) -> Sums {
    let mut sums = Sums::new();
    for (who, life) in account.lives.iter().filter(|(_, life)| life.inside) {
        let Some(group) = group(account, who, by) else { continue };
        let called = called(by.0, &group, life);
        let (name, sum, own) =
            sums.entry(group).or_insert_with(|| (String::new(), ThreadUsage::default(), true));
        *own &= life.observes;
        // A process is called by its first thread.
        if name.is_empty() || matches!(who, TracedTask::Thread(of) if of.tid == life.tgid) {
            *name = called;
        }
        sum.add(&life.used);
    }
    sums
}

/// How long each waited in the run queue: name, id, waits; the one with the most switches first.
/// Those that never waited and the observer are left out.
pub(crate) fn waits(
    account: &SwitchAccount,
    by: (GroupBy, &ProcessLabels),
) -> Vec<(String, Option<u32>, DurationHistogram)> {
    let all = sums(account, by).into_iter();
    let mut all: Vec<_> =
        all.filter(|(_, (_, used, own))| !own && used.waits.total() > 0).collect();
    all.sort_by(|(one_group, (_, one, _)), (other_group, (_, other, _))| {
        other.switches().cmp(&one.switches()).then_with(|| one_group.cmp(other_group))
    });
    let named = |((id, _), (name, used, _)): (Group, (String, ThreadUsage, bool))| {
        (name, (id != 0).then_some(id), used.waits)
    };
    all.into_iter().map(named).collect()
}

/// A row for each, the one with the most switches first.
pub(crate) fn rows(
    account: &SwitchAccount,
    by: (GroupBy, &ProcessLabels),
    seconds: f64,
    price: Price,
) -> Vec<SwitchRow> {
    let sums = sums(account, by);
    let mut preempters = preempters(account, by);
    let row = |(group, (name, used, own)): (Group, (String, ThreadUsage, bool))| {
        let by = preempters.remove(&group);
        let preempted_by =
            by.map(|(name, count)| TopPreempter { name, per_s: count as f64 / seconds });
        let id = (group.0 != 0).then_some(group.0);
        SwitchRow { name, id, preempted_by, own, ..SwitchRow::of(&used, seconds, price) }
    };
    let mut rows: Vec<SwitchRow> = sums.into_iter().map(row).collect();
    RowOrder::Switches.sort(&mut rows);
    rows
}

/// Who took the CPU most often from a thread of each group that could have run on, others than the
/// group itself and the observer.
fn preempters(
    account: &SwitchAccount,
    by: (GroupBy, &ProcessLabels),
) -> HashMap<Group, (String, u64)> {
    let mut sums: HashMap<(Group, Group), (String, u64)> = HashMap::new();
    for ((prev, next), [_, involuntary]) in &account.pairs {
        let Some(taker) = account.life(next).filter(|life| !life.observes) else { continue };
        let groups = group(account, prev, by).zip(group(account, next, by));
        let Some(groups) = groups.filter(|(prev, next)| prev != next) else { continue };
        let name = called(by.0, &groups.1, taker);
        sums.entry(groups).or_insert((name, 0)).1 += involuntary;
    }
    let mut most: HashMap<Group, (String, u64)> = HashMap::new();
    for ((prev, _), (name, count)) in sums.into_iter().filter(|(_, (_, count))| *count > 0) {
        let best = most.entry(prev).or_default();
        if (count, &best.0) > (best.1, &name) {
            *best = (name, count);
        }
    }
    most
}

/// A column: its heading, its width, what stands in it, and what that is. One without a meaning
/// shares that of the next.
type RowColumn = (&'static str, usize, fn(&SwitchRow) -> String, &'static str);

/// All columns of `trace` and `top`, in their order; the first ten make 80.
const COLUMNS: [RowColumn; 12] = [
    (NAME, 15, |row| row.name.clone(), ""),
    ("id", 7, |row| row.id.map_or("-".to_string(), |id| id.to_string()), ""),
    ("sleeps", 6, |row| rate(row.voluntary_per_s), "switches a second because it slept"),
    ("prmpts", 6, |row| rate(row.preempted_per_s), "because another was to run (preempted)"),
    ("yields", 6, |row| rate(row.yielded_per_s), "by sched_yield(2)"),
    ("moves", 6, |row| rate(row.migrations_per_s), "moves to another CPU, a second"),
    ("wait", 6, |row| below(row.wait_median), ""),
    ("p99", 6, |row| below(row.wait_99), WAIT),
    ("run", 6, |row| below(row.burst_median), "time on the CPU between two switches: median"),
    ("cost %", 7, |row| row.cost_share.map_or("-".to_string(), percent_range), COST),
    ("cpu %", 5, |row| percent_of(row.cpu_share), "100 is one CPU"),
    (TAKER, 15, |row| row.preempted_by.as_ref().map_or(String::new(), |by| by.name.clone()), TOOK),
];

/// Columns of names, which stand to the left.
const NAME: &str = "name";
const TAKER: &str = "preempted by";

const WAIT: &str = "wait in the run queue: median and 99th percentile, each at most that";
const COST: &str = "what the switches themselves take of its CPU time, by stored costs;\n\
     refilling caches is not in it: `switchcost trace --pid` has it";
const TOOK: &str = "who took the CPU from it most often";

/// What stays the longer where there is less room, by their headings; names always stand first.
const KEPT: [&str; 11] =
    ["sleeps", "prmpts", "p99", "cost %", "run", "id", "wait", "moves", "yields", "cpu %", TAKER];

/// The same in a paragraph.
pub(crate) const LEGEND: &str = "sleeps, prmpts, yields: switches a second because it slept, \
     because another was to run, by sched_yield(2); moves: to another CPU; wait, p99: median and 99th \
     percentile of the wait in the run queue; run: median of the time on a CPU between two \
     switches; cost: what the switches themselves take of its CPU time";

/// What each column is, in lines.
pub(crate) fn meanings() -> Vec<String> {
    let (mut lines, mut names) = (Vec::new(), Vec::new());
    // Names and ids say what they are.
    for (name, _, _, meaning) in &COLUMNS[2..] {
        names.push(*name);
        let mut heading = names.join(", ");
        for line in meaning.lines() {
            lines.push(format!("{heading:<9}  {line}"));
            heading.clear();
            names.clear();
        }
    }
    lines
}

/// Columns that are shown together, in a line.
pub(crate) struct ShownColumns {
    columns: Vec<&'static RowColumn>,
    /// Headings of all others.
    pub(crate) left_out: Vec<&'static str>,
}

impl ShownColumns {
    /// Those that fit into so many characters: set 0 has what matters most, the next ones what is
    /// not in those before, round and round.
    pub(crate) fn of(characters: usize, set: usize) -> Self {
        let mut sets: Vec<Vec<&str>> = vec![Vec::new()];
        let mut used = width_of(NAME);
        for heading in KEPT {
            let own = width_of(heading) + 1;
            if used + own > characters && sets.last().is_some_and(|set| !set.is_empty()) {
                sets.push(Vec::new());
                used = width_of(NAME);
            }
            if used + own <= characters {
                used += own;
                sets.last_mut().into_iter().for_each(|set| set.push(heading));
            }
        }
        sets.retain(|set| !set.is_empty());
        let none = Vec::new();
        let chosen = sets.get(set % sets.len().max(1)).unwrap_or(&none);
        let is_shown = |heading: &str| match heading {
            NAME => width_of(NAME) <= characters,
            _ => chosen.contains(&heading),
        };
        let columns = COLUMNS.iter().filter(|(heading, ..)| is_shown(heading)).collect();
        let left_out = COLUMNS.iter().map(|(heading, ..)| *heading);
        Self { columns, left_out: left_out.filter(|of| !is_shown(of)).collect() }
    }

    fn line(&self, cell: impl Fn(&RowColumn) -> String) -> String {
        let cell = |column: &&RowColumn| {
            let (heading, width, ..) = **column;
            let cell = cut(&cell(column), width);
            let blanks = " ".repeat(width - display_width(&cell));
            let is_name = [NAME, TAKER].contains(&heading);
            if is_name { cell + &blanks } else { blanks + &cell }
        };
        let cells: Vec<String> = self.columns.iter().map(cell).collect();
        cells.join(" ").trim_end().to_string()
    }

    pub(crate) fn head(&self) -> String {
        self.line(|(heading, ..)| heading.to_string())
    }

    pub(crate) fn row(&self, row: &SwitchRow) -> String {
        self.line(|(_, _, shown, _)| shown(row))
    }
}

fn width_of(heading: &str) -> usize {
    COLUMNS.iter().find(|(of, ..)| *of == heading).map_or(0, |(_, width, ..)| *width)
}

/// So many columns of a text at most.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut kept = printable(text).replace(['\n', '\t'], " ");
    while display_width(&kept) > width {
        kept.pop();
    }
    kept
}

/// Six columns at most: `0`, `0.3`, `950`, `41k`, `1.2M`.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        none if none <= 0.0 => "0".to_string(),
        small if small < 0.095 => "<0.1".to_string(),
        _ => scaled(per_s, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]),
    }
}

/// The end of a bucket: `<16us`; a dash for none.
pub(crate) fn below(bucket: Option<QuantileBucket>) -> String {
    let time = |ns: u64| scaled(ns as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")]);
    match bucket {
        None => "-".to_string(),
        // The last bucket has no end.
        Some(QuantileBucket { low_ns, high_ns }) if high_ns == u64::MAX || high_ns <= low_ns => {
            format!(">{}", time(low_ns))
        }
        Some(QuantileBucket { high_ns, .. }) => format!("<{}", time(high_ns)),
    }
}

/// In the largest unit that leaves one of it; below ten with a digit behind the point.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fitting = units.iter().find(|(scale, _)| value >= 0.995 * scale);
    let (scale, unit) = fitting.or(units.last()).copied().unwrap_or((1.0, ""));
    let part = value / scale;
    let decimals = usize::from(part < 9.95 && (part - part.round()).abs() > 0.05);
    format!("{part:.decimals$}{unit}")
}

pub(crate) fn percent_range(share: Range) -> String {
    if share.low < 1.0 && share.high >= 1.0 {
        return format!(">={}", percent_of(share.low));
    }
    match (percent_of(share.low), percent_of(share.high)) {
        (low, high) if low == high => high,
        (low, high) => format!("{low}-{high}"),
    }
}

//! Charts of what was traced: who preempts whom, how long each waits for a CPU.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use rundata::words::{grouped, time, two_digits};
use switchtrace::{DurationHistogram, SwitchCause, WaitHistogram};

use super::report::{cause_words, named};
use crate::base::values::each_once;
use crate::observe::live::GroupBy;
use crate::observe::live::account::{SwitchAccount, TracedTask};
use crate::observe::live::rows::{RowGrouping, waits};

/// Pairs that are drawn: as many as the first screen has room for.
const MAX_PAIRS: usize = 10;

/// Waits that are drawn: more lines cannot be told apart.
const MAX_WAITS: usize = 6;

/// The percentiles that are marked.
const MARKED: [f64; 3] = [50.0, 90.0, 99.0];

/// Charts by id, each with its question.
pub(super) const QUESTIONS: [(&str, &str); 3] = [
    ("preempts", "Who preempts whom?"),
    ("waits", "How long does it wait for a CPU?"),
    ("lengths", "How long does it run and sleep?"),
];

/// Draws all charts for which there is something to draw.
pub(super) fn figures(account: &SwitchAccount, grouping: RowGrouping<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(draw_preemptions(account));
    figures.extend(draw_waits(account, grouping));
    figures.extend(draw_lengths(account));
    figures
}

/// Preemptions by pair: `postgres by kworker/1:2`.
struct PairPreemptions {
    title: String,
    count: u64,
}

/// Counts who took the CPU from whom while that could have run on, by their names, most first. The
/// observer is in no pair.
fn count_pairs(
    account: &SwitchAccount,
    name: fn(&SwitchAccount, &TracedTask) -> String,
) -> Vec<PairPreemptions> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for ((prev, next), counts) in &account.pairs {
        let is_counted = account.task(prev).is_some_and(|task| task.in_scope && !task.is_observer);
        let by_observer = account.task(next).is_some_and(|task| task.is_observer);
        if is_counted && !by_observer && counts.involuntary > 0 {
            let title = format!("{} by {}", name(account, prev), name(account, next));
            *sums.entry(title).or_default() += counts.involuntary;
        }
    }
    let mut pairs = Vec::new();
    for (title, count) in sums {
        pairs.push(PairPreemptions { title, count });
    }
    // A stable sort: pairs of one count stay in the order of their names.
    pairs.sort_by_key(|pair| Reverse(pair.count));
    pairs
}

fn thread_name(account: &SwitchAccount, task: &TracedTask) -> String {
    named(account, task).to_string()
}

fn group_name(account: &SwitchAccount, task: &TracedTask) -> String {
    named(account, task).name
}

fn sum(pairs: &[PairPreemptions]) -> u64 {
    pairs.iter().map(|pair| pair.count).sum()
}

/// Draws a bar for each pair, the most frequent on top: threads, or where these come and go all of
/// a name together.
fn draw_preemptions(account: &SwitchAccount) -> Option<Figure> {
    let mut pairs = count_pairs(account, thread_name);
    let drawn = &pairs[..pairs.len().min(MAX_PAIRS)];
    let are_together = 2 * sum(drawn) < sum(&pairs);
    if are_together {
        pairs = count_pairs(account, group_name);
    }
    let total = sum(&pairs);
    let worst = pairs.first()?;
    let share = two_digits(100.0 * worst.count as f64 / total as f64);
    let mut in_words = format!(
        "{} preemptions of threads that could have run on, sched_yield(2) included; most \
         often of {}: {} ({share} %).",
        grouped(total as f64),
        worst.title,
        grouped(worst.count as f64)
    );
    if are_together {
        in_words += " Threads of one name are taken together.";
    }
    if pairs.len() > MAX_PAIRS {
        let count = grouped(pairs.len() as f64);
        in_words += &format!(" The {MAX_PAIRS} most frequent of {count} pairs are drawn.");
        pairs.truncate(MAX_PAIRS);
    }
    let (mut names, mut bars) = (Vec::new(), Vec::new());
    for (place, pair) in pairs.into_iter().enumerate() {
        names.push(pair.title);
        bars.push(Point::bare(place as f64, pair.count as f64));
    }
    let counts = Axis::new("times", Unit::Count, Scale::Linear);
    let names = Axis::with_names("who was preempted, by whom", names);
    let figure = Figure::new("preempts", "Who preempts whom", names, counts);
    Figure { in_words, ..figure }.with_series([Series::new("counted", 0, Role::Bars, bars)])
}

/// Waits in the run queue that are drawn as one line.
struct DrawnWaits {
    name: String,
    waits: WaitHistogram,
}

/// Draws the waits in the run queue by thread (or what rows stand for), those with the most
/// switches.
fn draw_waits(account: &SwitchAccount, grouping: RowGrouping<'_>) -> Option<Figure> {
    let rows = waits(account, grouping);
    let count = rows.len();
    let mut drawn = Vec::new();
    for row in rows.into_iter().take(MAX_WAITS) {
        let name = match row.id {
            Some(id) => format!("{} ({id})", row.name),
            None => row.name,
        };
        drawn.push(DrawnWaits { name, waits: row.waits });
    }
    let percentiles = percentiles_in_words(&drawn)?;
    let left_out = if count > MAX_WAITS {
        let count = grouped(count as f64);
        let rows = plural(grouping.by);
        format!(" Of {count} {rows} those {MAX_WAITS} with the most switches are drawn.")
    } else {
        String::new()
    };
    let mut series = Vec::new();
    for DrawnWaits { name, waits } in &drawn {
        series.extend(distribution(name, waits));
    }
    let in_words = format!("{percentiles}{left_out} {MARKS}");
    let figure = Figure::new(
        "waits",
        "Wait in the run queue",
        time_axis("wait in the run queue"),
        share_axis("waits"),
    );
    Figure { in_words, ..figure }.with_series(series)
}

/// Returns the lowest and the highest of the 99th percentiles in words; nothing without one.
fn percentiles_in_words(drawn: &[DrawnWaits]) -> Option<String> {
    let mut ends = Vec::new();
    for DrawnWaits { name, waits } in drawn {
        if let Some((_, end_ns)) = waits.quantile_ns(0.99) {
            ends.push((end_ns, name.as_str()));
        }
    }
    ends.sort_unstable();
    let (lowest, name_of_lowest) = *ends.first()?;
    let (highest, name_of_highest) = *ends.last()?;
    let lowest_in_words = below_in_words(lowest);
    if lowest == highest {
        return Some(format!("99 % of the waits are {lowest_in_words}."));
    }
    let highest = below_in_words(highest);
    Some(format!(
        "99 % of the waits of {name_of_lowest} are {lowest_in_words}, of {name_of_highest} \
         {highest}."
    ))
}

/// Returns `below 16 us` for the end of a bucket. The last one has no end.
fn below_in_words(end_ns: u64) -> String {
    if end_ns == u64::MAX {
        return "longer than two minutes".to_string();
    }
    format!("below {}", time(end_ns as f64))
}

fn plural(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Thread => "threads",
        GroupBy::Process => "processes",
        GroupBy::Cgroup => "control groups",
        GroupBy::User => "users",
    }
}

/// Draws the times on the CPU and off it, by cause, of all tasks together.
fn draw_lengths(account: &SwitchAccount) -> Option<Figure> {
    let used = account.total();
    let mut histograms = vec![("on a CPU", &used.bursts)];
    for (cause, off) in SwitchCause::ALL.iter().zip(&used.off) {
        histograms.push((cause_words(*cause), off));
    }
    let (mut medians, mut series) = (Vec::new(), Vec::new());
    for (name, histogram) in histograms {
        if let Some((_, end_ns)) = histogram.quantile_ns(0.5) {
            // The last bucket has no end.
            if end_ns != u64::MAX {
                medians.push(format!("{name} below {}", time(end_ns as f64)));
            }
        }
        series.extend(distribution(name, histogram));
    }
    let in_words = format!("Half of the times are: {}. {MARKS}", medians.join(", "));
    let figure =
        Figure::new("lengths", "Times on and off the CPU", time_axis("time"), share_axis("times"));
    Figure { in_words, ..figure }.with_series(series)
}

const MARKS: &str = "Marked: the ends of buckets below which 50, 90 and 99 % lie.";

fn time_axis(times: &str) -> Axis {
    Axis::new(times, Unit::Nanoseconds, Scale::Log)
}

/// Returns the axis of the share of all times that is below each.
fn share_axis(times: &str) -> Axis {
    Axis::new(&format!("share of {times} below it"), Unit::Percent, Scale::Linear)
}

/// Returns how many are below each end of the buckets, in percent, with the first ends that have
/// 50, 90 and 99 % below them. Only at these ends the share is known.
pub(super) fn distribution<const N: usize>(
    name: &str,
    histogram: &DurationHistogram<N>,
) -> [Series; 2] {
    let total = histogram.total();
    let mut seen = 0_u64;
    let (mut line, mut seen_before) = (Vec::new(), None);
    for (bucket, count) in histogram.counts().iter().enumerate() {
        let low = DurationHistogram::<N>::lower_ns(bucket) as f64;
        let high = DurationHistogram::<N>::lower_ns(bucket + 1) as f64;
        if *count > 0 && seen == 0 && low > 0.0 {
            line.push(Point::bare(low, 0.0));
        }
        seen += u64::from(*count);
        // The last bucket has no end.
        if seen > 0 && high > low && seen_before != Some(total) {
            line.push(Point::bare(high, 100.0 * seen as f64 / total as f64));
        }
        seen_before = Some(seen);
    }
    let mut marked = Vec::new();
    for share in MARKED {
        marked.extend(line.iter().find(|point| point.y >= share).copied());
    }
    [
        Series::new(name, 0, Role::Distribution, line),
        Series::new(format!("{name}, percentiles"), 0, Role::Quantiles, each_once(marked)),
    ]
}

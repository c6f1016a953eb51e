//! Charts of what was traced: who preempts whom, how long each waits for a CPU.

use std::collections::BTreeMap;

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};
use rundata::words::{grouped, time, two_digits};
use switchtrace::{DurationHistogram, SwitchCause};

use super::report::{cause_words, named};
use crate::base::values::each_once;
use crate::observe::live::GroupBy;
use crate::observe::live::account::{SwitchAccount, TracedTask};
use crate::observe::live::labels::ProcessLabels;
use crate::observe::live::rows::waits;

/// Pairs that are drawn: as many as the first screen has room for.
const MOST_PAIRS: usize = 10;

/// Waits that are drawn: more lines cannot be told apart.
const MOST_WAITS: usize = 6;

/// The percentiles that are marked.
const MARKED: [f64; 3] = [50.0, 90.0, 99.0];

/// Charts by id, each with its question.
pub(super) const QUESTIONS: [(&str, &str); 3] = [
    ("preempts", "Who preempts whom?"),
    ("waits", "How long does it wait for a CPU?"),
    ("lengths", "How long does it run and sleep?"),
];

/// All that there is to draw.
pub(super) fn figures(
    account: &SwitchAccount,
    (by, labels): (GroupBy, &ProcessLabels),
) -> Vec<Figure> {
    let all = [preempts(account), waiting(account, (by, labels)), lengths(account)];
    all.into_iter().flatten().collect()
}

fn with_id((name, id): (String, Option<u32>)) -> String {
    id.map_or(name.clone(), |id| format!("{name} ({id})"))
}

/// Pairs by what both are called, with how often the one was preempted by the other, most first.
type Pairs = Vec<(String, u64)>;

/// Who took the CPU from whom while that could have run on. The observer is in no pair.
fn pairs(account: &SwitchAccount, called: impl Fn(&TracedTask) -> String) -> Pairs {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for ((prev, next), [_, involuntary]) in &account.pairs {
        let observes = |who| account.life(who).is_some_and(|life| life.observes);
        let is_inside = account.life(prev).is_some_and(|life| life.inside);
        if is_inside && *involuntary > 0 && !observes(prev) && !observes(next) {
            let pair = format!("{} by {}", called(prev), called(next));
            *sums.entry(pair).or_default() += involuntary;
        }
    }
    let mut all: Pairs = sums.into_iter().collect();
    all.sort_by(|(_, one), (_, other)| other.cmp(one));
    all
}

fn sum(pairs: &[(String, u64)]) -> u64 {
    pairs.iter().map(|(_, count)| count).sum()
}

/// A bar for each pair, the most frequent on top: threads, or where these come and go all of a name
/// together.
fn preempts(account: &SwitchAccount) -> Option<Figure> {
    let threads = pairs(account, |who| with_id(named(account, who)));
    let are_told = 2 * sum(&threads[..threads.len().min(MOST_PAIRS)]) >= sum(&threads);
    let mut all = match are_told {
        true => threads,
        false => pairs(account, |who| named(account, who).0),
    };
    let (total, many) = (sum(&all), all.len());
    let (worst, count) = all.first()?;
    let share = two_digits(100.0 * *count as f64 / total as f64);
    let [count, total] = [*count, total].map(|count| grouped(count as f64));
    let together = if are_told { "" } else { " Threads of one name are taken together." };
    let drawn = match many > MOST_PAIRS {
        true => {
            format!(" The {MOST_PAIRS} most frequent of {} pairs are drawn.", grouped(many as f64))
        }
        false => String::new(),
    };
    let in_words = format!(
        "{total} preemptions of threads that could have run on, sched_yield(2) included; most \
         often of {worst}: {count} ({share} %).{together}{drawn}"
    );
    all.truncate(MOST_PAIRS);
    let (names, counts): (Vec<String>, Vec<u64>) = all.into_iter().unzip();
    let bars = counts.iter().enumerate();
    let bars = bars.map(|(place, count)| Point::bare(place as f64, *count as f64)).collect();
    let counts = Axis::new("times", Unit::Count, Scale::Linear);
    let names = Axis::with_names("who was preempted, by whom", names);
    let figure = Figure::new("preempts", "Who preempts whom", names, counts);
    Figure { in_words, ..figure }.with_series([Series::new("counted", 0, Role::Bars, bars)])
}

/// Waits in the run queue by thread (or what rows are of), those with the most switches.
fn waiting(account: &SwitchAccount, (by, labels): (GroupBy, &ProcessLabels)) -> Option<Figure> {
    let all = waits(account, (by, labels));
    let all: Vec<(String, DurationHistogram)> =
        all.into_iter().map(|(name, id, waits)| (with_id((name, id)), waits)).collect();
    let drawn = &all[..all.len().min(MOST_WAITS)];
    let mut far: Vec<(u64, &str)> = drawn
        .iter()
        .filter_map(|(name, waits)| Some((waits.quantile_ns(0.99)?.1, name.as_str())))
        .collect();
    far.sort_unstable();
    let below = |ns: u64| match ns {
        // The last length has no end.
        u64::MAX => "longer than two minutes".to_string(),
        ns => format!("below {}", time(ns as f64)),
    };
    let said = match (far.first()?, far.last()?) {
        ((least, _), (most, _)) if least == most => {
            format!("99 % of the waits are {}.", below(*least))
        }
        ((least, one), (most, other)) => format!(
            "99 % of the waits of {one} are {}, of {other} {}.",
            below(*least),
            below(*most)
        ),
    };
    let left_out = match all.len() - drawn.len() {
        0 => String::new(),
        _ => format!(
            " Of {} {} those {MOST_WAITS} with the most switches are drawn.",
            grouped(all.len() as f64),
            match by {
                GroupBy::Thread => "threads",
                GroupBy::Process => "processes",
                GroupBy::Cgroup => "control groups",
                GroupBy::User => "users",
            }
        ),
    };
    let series = drawn.iter().flat_map(|(name, waits)| distribution(name, waits));
    let (x, y) = axes("wait in the run queue", "waits");
    let in_words = format!("{said}{left_out} {MARKS}");
    Figure { in_words, ..Figure::new("waits", "Wait in the run queue", x, y) }.with_series(series)
}

/// Times on the CPU and off it, by cause, of all together.
fn lengths(account: &SwitchAccount) -> Option<Figure> {
    let used = account.total();
    let off = SwitchCause::ALL.iter().zip(&used.off).map(|(cause, of)| (cause_words(*cause), of));
    let all: Vec<(&str, &DurationHistogram)> =
        [("on a CPU", &used.bursts)].into_iter().chain(off).collect();
    let median = |(name, of): &(&str, &DurationHistogram)| {
        let (_, end) = of.quantile_ns(0.5).filter(|(_, end)| *end != u64::MAX)?;
        Some(format!("{name} below {}", time(end as f64)))
    };
    let medians: Vec<String> = all.iter().filter_map(median).collect();
    let in_words = format!("Half of the times are: {}. {MARKS}", medians.join(", "));
    let series = all.iter().flat_map(|(name, of)| distribution(name, of));
    let (x, y) = axes("time", "times");
    Figure { in_words, ..Figure::new("lengths", "Times on and off the CPU", x, y) }
        .with_series(series)
}

const MARKS: &str = "Marked: the power of two below which 50, 90 and 99 % lie.";

/// Times, and the share of all that is below each.
fn axes(times: &str, of: &str) -> (Axis, Axis) {
    let x = Axis::new(times, Unit::Nanoseconds, Scale::Log);
    (x, Axis::new(&format!("share of {of} below it"), Unit::Percent, Scale::Linear))
}

/// How many are below each end of the lengths that were counted, in percent, with the first ends
/// that have so many below them. Only there the share is known.
pub(super) fn distribution(name: &str, of: &DurationHistogram) -> [Series; 2] {
    let total = of.total() as f64;
    let mut seen = 0_u64;
    let (mut line, mut last) = (Vec::new(), None);
    for (bucket, count) in of.counts().iter().enumerate() {
        let [low, high] = [bucket, bucket + 1].map(|at| DurationHistogram::lower_ns(at) as f64);
        if *count > 0 && seen == 0 && low > 0.0 {
            line.push(Point::bare(low, 0.0));
        }
        seen += u64::from(*count);
        // The last has no end.
        let is_seen = seen > 0 && high > low && last != Some(of.total());
        line.extend(is_seen.then(|| Point::bare(high, 100.0 * seen as f64 / total)));
        last = Some(seen);
    }
    let reach = |share: f64| line.iter().find(|point| point.y >= share).copied();
    let marked = each_once(MARKED.into_iter().filter_map(reach));
    [
        Series::new(name, 0, Role::Distribution, line),
        Series::new(format!("{name}, percentiles"), 0, Role::Quantiles, marked),
    ]
}

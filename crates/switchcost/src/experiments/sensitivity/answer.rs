//! What `sensitivity` answers, in a sentence or two.

use model::estimate::Speed;
use model::findings::sensitivity::{Found, Point};
use model::quote::{Quoted, cost};
use model::trial::command::Subject;
use model::words;

use crate::present::terminal::shortened;

/// Preemptions a second for which the loss is told.
const USUAL_HZ: f64 = 1000.0;
/// Longest name of a command in a sentence.
const LONGEST_NAME: usize = 24;

/// `A preemption costs gzip 2.1 us (1.9 to 2.3) by a neighbour without memory, 14 us (12 to 16)
/// by one of 1 MiB. At 1,000 a second, 0.2 to 1.4 % of its CPU time.`
pub(crate) fn headline(found: &Found) -> String {
    let name = name(found);
    let quoted = |of: &Point| Some((of.bytes, of.ns_per_preemption?.quote_cost().ok()?));
    let known: Vec<(u64, Quoted)> = found.points.iter().filter_map(quoted).collect();
    let Some((first, least)) = known.first() else { return not_known(found, &name) };
    let by = |bytes: u64, whose: &str| match bytes {
        0 => format!("{whose} without memory"),
        bytes => format!("{whose} of {}", words::bytes(bytes)),
    };
    let mut told =
        format!("A preemption costs {name} {} by {}", least.time(), by(*first, "a neighbour"));
    let most = known.iter().max_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    let most = most.filter(|(_, of)| of.differs_from(least));
    if let Some((bytes, most)) = most {
        told += &format!(", {} by {}", most.time(), by(*bytes, "one"));
    }
    let share = |of: &Quoted| words::two_digits(100.0 * of.value() * USUAL_HZ / 1e9);
    let shares = match most.map(|(_, most)| (share(least), share(most))) {
        Some((low, high)) if low != high => format!("{low} to {high}"),
        _ => share(least),
    };
    format!("{told}. At 1,000 preemptions a second that is {shares} % of its CPU time.")
}

/// The program's own name.
pub(crate) fn name(found: &Found) -> String {
    let first = match &found.subject {
        Subject::Command(words) => words.first(),
        Subject::Process { .. } => found.executable.as_ref().map(|of| &of.path),
    };
    let program = first.map_or("the program", String::as_str);
    shortened(program.rsplit('/').next().unwrap_or(program), LONGEST_NAME)
}

fn not_known(found: &Found, name: &str) -> String {
    let known = found.points.iter().find_map(|of| of.ns_per_preemption);
    if known.is_some_and(|of| of.speed == Speed::NotAlone) {
        return format!(
            "What a preemption costs {name} is unknown: other tasks ran on its CPU. Stop them, or choose \
             another (--cpus)."
        );
    }
    let why = known.map(|of| cost(&of));
    let why =
        why.unwrap_or_else(|| "it was preempted too seldom, or no round is whole".to_string());
    format!("What a preemption costs {name}: {why}.")
}

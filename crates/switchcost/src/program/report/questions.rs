//! What each chart answers, and in which order they stand.

use charts::Figure;

use crate::report::figures::published::AS_PRINTED;
use crate::report::figures::{CLOCK_CALLS, CLOCK_MALLOC, COST_BY_ARRAY, RING_COST, RING_CPU};

/// The chart of the difference of two runs.
pub(super) const DIFFERENCE: &str = "difference";
/// The cost of a switch over the years.
pub(super) const HISTORY: &str = "history";

/// Charts by id, each with its question: what matters most first.
const QUESTIONS: [(&str, &str); 26] = [
    (DIFFERENCE, "What differs?"),
    (RING_COST, "By processes?"),
    ("explain", "What is a switch made of?"),
    ("explain-added", "What would add to it?"),
    (COST_BY_ARRAY, "By working set?"),
    ("cost-by-pages", "By pages touched?"),
    ("cost-by-members", "By processes with a working set?"),
    ("links", "What wakes fastest?"),
    ("placements", "Between which CPUs?"),
    ("states", "With which registers?"),
    ("policies", "Under which policy?"),
    ("response-late", "How late are timers?"),
    ("sensitivity", "What does a preemption cost the program?"),
    (CLOCK_CALLS, "What does a clock cost?"),
    ("response-gaps", "Who disturbed?"),
    ("interference", "Does disturbance slow it?"),
    ("response-budget", "What is a wake-up made of?"),
    ("response-calls", "What does a call cost?"),
    (CLOCK_MALLOC, "What does malloc cost?"),
    ("clock-primes", "How precise are clocks?"),
    ("clock-sampling", "What do ticks see?"),
    ("cost-indirect", "What does the working set add?"),
    ("cost-map", "By array and access?"),
    (RING_CPU, "How much CPU time?"),
    ("ring-switches", "How many switches a hop?"),
    (AS_PRINTED, "What was published?"),
];

/// Charts without a question are behind those with one, but before the samples.
const ROUNDS: (&str, &str) = ("rounds", "Did it drift?");
const YEARS: (&str, &str) = (HISTORY, "And since 1984?");

/// The id without the number that tells charts of several runs apart.
fn kind(figure: &Figure) -> &str {
    let number = |(_, end): &(&str, &str)| end.parse::<u32>().is_ok();
    figure.id.rsplit_once('-').filter(number).map_or(&figure.id, |(id, _)| id)
}

/// The place of a chart among others.
pub(super) fn rank(figure: &Figure) -> usize {
    let kind = kind(figure);
    let last = QUESTIONS.len()
        + [ROUNDS.0, YEARS.0].iter().position(|id| *id == kind).map_or(0, |at| at + 1);
    QUESTIONS.iter().position(|(id, _)| *id == kind).unwrap_or(last)
}

/// Returns the question that a chart answers, with its run where those of several could not be one
/// chart; its title if it has no question.
pub(super) fn heading(figure: &Figure) -> String {
    let kind = kind(figure);
    let Some((_, question)) = QUESTIONS.iter().chain([&ROUNDS, &YEARS]).find(|(id, _)| *id == kind)
    else {
        return figure.title.clone();
    };
    match &figure.run {
        Some(run) => format!("{question} ({run})"),
        None => question.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use charts::{Axis, Scale, Unit};

    use super::*;

    fn of(id: &str, title: &str) -> Figure {
        let axis = || Axis::new("", Unit::Count, Scale::Linear);
        Figure::new(id, title, axis(), axis())
    }

    #[test]
    fn charts_are_asked_for_in_the_order_of_what_matters() {
        let ids =
            ["history", "rounds-2", "rounds", "unknown", "ring-cpu", "cost-by-array", "ring-cost"];
        let mut figures = ids.map(|id| of(id, "Title")).to_vec();
        figures.sort_by_key(rank);
        let sorted: Vec<&str> = figures.iter().map(|figure| &*figure.id).collect();
        let wanted =
            ["ring-cost", "cost-by-array", "ring-cpu", "unknown", "rounds-2", "rounds", "history"];
        assert_eq!(sorted, wanted);
    }

    #[test]
    fn a_chart_without_a_question_keeps_its_title_and_one_of_several_runs_names_its_own() {
        assert_eq!(heading(&of("ring-cost", "Cost of a switch")), "By processes?");
        let of_second =
            Figure { run: Some("B".to_string()), ..of("rounds-2", "Samples by round (B)") };
        assert_eq!(heading(&of_second), "Did it drift? (B)");
        assert_eq!(heading(&of("trend", "Cost over time")), "Cost over time");
    }
}

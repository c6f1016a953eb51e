//! The question that each chart answers, and the order in which charts stand.

use charts::Figure;

use crate::report::figures::published::AS_PRINTED;
use crate::report::figures::{CLOCK_CALLS, CLOCK_MALLOC, COST_BY_ARRAY, RING_COST, RING_CPU};

/// Id of the chart of the difference of two runs.
pub(super) const DIFFERENCE: &str = "difference";
/// Id of the chart of the switches of a hop in two states of the machine.
pub(super) const SWITCHES: &str = "difference-switches";
/// Id of the chart of the cost of a switch over the years.
pub(super) const HISTORY: &str = "history";

/// Charts by id, each with its question: what matters most first.
const QUESTIONS: &[(&str, &str)] = &[
    (DIFFERENCE, "What differs?"),
    (SWITCHES, "Does it switch more often?"),
    (RING_COST, "By processes?"),
    ("rings-rate", "What do many rings make?"),
    ("rings-hop", "Which ring is slow?"),
    ("explain", "What is a switch made of?"),
    ("explain-added", "What would add to it?"),
    (COST_BY_ARRAY, "By working set?"),
    ("cost-by-pages", "By pages touched?"),
    ("cost-by-members", "By processes with a working set?"),
    ("links", "What wakes fastest?"),
    ("placements", "Between which CPUs?"),
    ("states", "With which registers?"),
    ("policies", "Under which policy?"),
    ("flights", "How many items under way?"),
    ("response-late", "How late are timers?"),
    ("sensitivity", "What does a preemption cost the program?"),
    ("trace-rates", "How often is it switched?"),
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

/// Charts that stand last, behind those without a question.
const LAST_QUESTIONS: [(&str, &str); 2] =
    [("rounds", "Did it drift?"), (HISTORY, "And since 1984?")];

/// Returns the id without the number that tells charts of several runs apart.
fn base_id(figure: &Figure) -> &str {
    match figure.id.rsplit_once('-') {
        Some((id, end)) if end.parse::<u32>().is_ok() => id,
        _ => &figure.id,
    }
}

/// Returns the place of a chart among others.
pub(super) fn rank(figure: &Figure) -> usize {
    let id = base_id(figure);
    if let Some(place) = QUESTIONS.iter().position(|(known, _)| *known == id) {
        return place;
    }
    let without_question = QUESTIONS.len();
    match LAST_QUESTIONS.iter().position(|(known, _)| *known == id) {
        Some(place) => without_question + 1 + place,
        None => without_question,
    }
}

/// Returns the question that a chart answers, with its run where those of several could not be one
/// chart; its title if it has no question.
pub(super) fn heading(figure: &Figure) -> String {
    let id = base_id(figure);
    let mut questions = QUESTIONS.iter().chain(&LAST_QUESTIONS);
    let Some((_, question)) = questions.find(|(known, _)| *known == id) else {
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

    fn empty_figure(id: &str, title: &str) -> Figure {
        let axis = Axis::new("", Unit::Count, Scale::Linear);
        Figure::new(id, title, axis.clone(), axis)
    }

    #[test]
    fn charts_are_asked_for_in_the_order_of_what_matters() {
        let ids =
            ["history", "rounds-2", "rounds", "unknown", "ring-cpu", "cost-by-array", "ring-cost"];
        let mut figures = ids.map(|id| empty_figure(id, "Title")).to_vec();
        figures.sort_by_key(rank);
        let sorted: Vec<&str> = figures.iter().map(|figure| &*figure.id).collect();
        let wanted =
            ["ring-cost", "cost-by-array", "ring-cpu", "unknown", "rounds-2", "rounds", "history"];
        assert_eq!(sorted, wanted);
    }

    #[test]
    fn a_chart_without_a_question_keeps_its_title_and_one_of_several_runs_names_its_own() {
        assert_eq!(heading(&empty_figure("ring-cost", "Cost of a switch")), "By processes?");
        let samples = empty_figure("rounds-2", "Samples by round (B)");
        let samples_of_second = Figure { run: Some("B".to_string()), ..samples };
        assert_eq!(heading(&samples_of_second), "Did it drift? (B)");
        assert_eq!(heading(&empty_figure("trend", "Cost over time")), "Cost over time");
    }
}

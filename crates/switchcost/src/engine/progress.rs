//! The progress bar: on a terminal only, drawn between measurements, never by a thread of its own,
//! so that it cannot run while something is measured.

use std::time::Duration;

use charts::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::estimate::Estimate;
use model::plan::Plan;
use model::quote::{NotQuotable, brief_cost};
use model::words::{time, two_digits};

use crate::base::failure;
use crate::base::lines::fitted;
use crate::engine::schedule::State;

/// Shows how far a run is, or several, one after the other.
pub(crate) struct Progress {
    bar: ProgressBar,
    budget: Duration,
    /// If it is one of several runs: which.
    of_whole: Option<Part>,
    precision: f64,
    titles: Vec<String>,
}

/// A run that is one of several on a bar.
struct Part {
    /// What was spent on the bar before.
    before: Duration,
    name: String,
    /// What all of them are about, as far as it is known by now; absent where this run tells it.
    headline: Option<String>,
}

impl Progress {
    /// A bar over the budget of `plan`; hidden when standard error is no terminal.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let budget = Duration::from_nanos(plan.stopping.budget_ns);
        Self { of_whole: None, ..Self::whole(budget, quiet).part(plan, Duration::ZERO, None) }
    }

    /// A bar over all of `budget`, for several runs.
    pub(crate) fn whole(budget: Duration, quiet: bool) -> Self {
        let bar = bar(millis(budget), quiet);
        Self { bar, budget, of_whole: None, precision: 0.0, titles: Vec::new() }
    }

    /// The part of it that `plan` has, which begins where `before` is spent. The first tells what a
    /// switch costs; the others say on what that came to.
    pub(crate) fn part(&self, plan: &Plan, before: Duration, headline: Option<String>) -> Self {
        Self {
            bar: self.bar.clone(),
            budget: self.budget,
            of_whole: Some(Part { before, name: plan.experiment.to_string(), headline }),
            precision: plan.stopping.precision,
            titles: (0..plan.cases.len()).map(|case| plan.title(case)).collect(),
        }
    }

    /// Draws the state before a case.
    pub(crate) fn show(&self, state: &State) {
        let before = self.of_whole.as_ref().map_or(Duration::ZERO, |of| of.before);
        self.bar.set_message(printable(&self.message(state)));
        self.bar.set_position(millis(before + state.spent));
    }

    /// What is told of the state before a case.
    fn message(&self, state: &State) -> String {
        let title = self.titles.get(state.case).map_or("", String::as_str);
        let of = self.of_whole.as_ref();
        let spent = of.map_or(Duration::ZERO, |of| of.before) + state.spent;
        let (round, left) = (state.round + 1, self.budget.saturating_sub(spent).as_secs());
        let so_far = so_far(state.figure.as_ref(), state.precision, self.precision);
        match of {
            None => format!("{so_far}, {left} s left, round {round}, {title}"),
            Some(of) => {
                let found = of.headline.clone().or_else(|| switch_so_far(state.figure.as_ref()?));
                let found = found.map_or(String::new(), |found| format!("{found}; "));
                format!("{found}{left} s left, {} round {round}", of.name)
            }
        }
    }

    /// Draws what was found of a program so far.
    pub(crate) fn tell(&self, spent: Duration, found: &str) {
        let left = self.budget.saturating_sub(spent).as_secs();
        self.bar.set_message(printable(&format!("{found}, {left} s left")));
        self.bar.set_position(millis(spent));
    }

    /// Whether anybody sees it.
    pub(crate) fn is_seen(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        match self.bar.is_hidden() {
            true => failure::say(line),
            false => self.bar.println(fitted(&printable(line))),
        }
    }

    /// Takes the bar away, unless others come after.
    pub(crate) fn end(&self) {
        if self.of_whole.is_none() {
            self.bar.finish_and_clear();
        }
    }
}

/// A bar over so many steps, hidden when standard error is no terminal.
fn bar(steps: u64, quiet: bool) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(steps), target);
    // What does not fit is cut: a line that a terminal breaks would be left behind.
    if let Ok(style) = ProgressStyle::with_template("{bar:10} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

/// The figure so far and its interval beside the one asked for: `2.10 us +-4 %, asked 1 %`.
/// `widest` is the interval that the run stops by, where others are wider; shares, 0 where none is
/// asked for.
fn so_far(figure: Option<&Estimate>, widest: Option<f64>, asked: f64) -> String {
    let percent = |share: f64| format!("{} %", two_digits(100.0 * share));
    let own = figure.and_then(Estimate::relative_half_width);
    let told = figure.map(|of| match (of.answer_cost(), own) {
        (Ok(of), Some(own)) => format!("{} +-{}", of.brief_time(), percent(own)),
        _ => about(of).unwrap_or_else(|| brief_cost(of)),
    });
    let is_wider = |widest: &f64| own.is_none_or(|own| percent(own) != percent(*widest));
    let widest = widest.filter(is_wider).map(|widest| format!("widest +-{}", percent(widest)));
    let asked = (asked > 0.0).then(|| format!("asked {}", percent(asked)));
    let parts: Vec<String> = [told, widest, asked].into_iter().flatten().collect();
    if parts.is_empty() { "no figure yet".to_string() } else { parts.join(", ") }
}

/// `about 640 ns so far`: a figure that lacks nothing but rounds for an interval.
fn about(figure: &Estimate) -> Option<String> {
    let lacks_rounds = matches!(figure.quote_cost(), Err(NotQuotable::TooFewRounds(_)));
    (lacks_rounds && figure.value > 0.0).then(|| format!("about {} so far", time(figure.value)))
}

/// `a switch costs 640 ns`, or about so much so far; nothing where what was measured does not hold.
pub(crate) fn switch_so_far(figure: &Estimate) -> Option<String> {
    let known = figure.answer_cost().ok().filter(|cost| cost.ends().is_some());
    let known = known.map(|cost| cost.brief_time());
    Some(format!("a switch costs {}", known.or_else(|| about(figure))?))
}

/// Shows how far the runs of commands are.
pub(crate) struct RunsProgress(ProgressBar);

impl RunsProgress {
    /// A bar over so many runs, where that is known; hidden when standard error is no terminal.
    pub(crate) fn new(runs: Option<u64>, quiet: bool) -> Self {
        let bar = bar(runs.unwrap_or_default(), quiet);
        if runs.is_none() {
            bar.unset_length();
        }
        Self(bar)
    }

    /// Whether nobody sees it.
    pub(crate) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// Draws what is known after so many runs: of the last command its time, a share of it to
    /// either side (none below five runs), and what it is called.
    pub(crate) fn show(&self, runs: u64, (ns, half_width): (f64, Option<f64>), name: &str) {
        let half = half_width.map(|half| format!(" +-{} %", two_digits(100.0 * half)));
        let (time, half) = (time(ns), half.unwrap_or_default());
        let all = self.0.length().map_or(String::new(), |all| format!(" of {all}"));
        self.0.set_message(printable(&format!("{time}{half}, run {runs}{all}, {name}")));
        self.0.set_position(runs);
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use model::case::Sample;
    use model::estimate::Speed;
    use model::run::Run;

    use super::*;
    use crate::engine::schedule::Course;

    /// A run of ring that was captured on a quiet machine.
    fn captured() -> Run {
        let packed = include_bytes!("../../tests/captured/ring.jsonl.gz");
        let mut text = String::new();
        GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        Run::parse(&text).unwrap()
    }

    #[test]
    fn what_a_switch_costs_is_told_from_the_first_round_of_several_runs_on() {
        let run = captured();
        let plan = &run.header.plan;
        let whole = Progress::whole(Duration::from_secs(60), true);
        let part = whole.part(plan, Duration::from_secs(3), None);
        let state = |rounds: u32| {
            let of_rounds = run.samples.iter().filter(|sample| sample.round() < rounds);
            let samples: Vec<Sample> = of_rounds.cloned().collect();
            let figure = (Course::of(plan).figure)(&samples);
            let spent = Duration::from_secs(2);
            State { case: 0, round: rounds, spent, precision: None, figure }
        };
        let line = |rounds| part.message(&state(rounds));
        assert_eq!(line(0), "55 s left, ring round 1");
        assert_eq!(line(1), "a switch costs 2.00 us; 55 s left, ring round 2");
        let last = run.rounds();
        let told = format!("a switch costs 1.92 us; 55 s left, ring round {}", last + 1);
        assert_eq!(line(last), told);
        // The later runs say on what that came to.
        let found = switch_so_far(&state(last).figure.unwrap());
        let next = whole.part(plan, Duration::from_secs(30), found);
        let told = "a switch costs 1.92 us; 28 s left, ring round 1";
        assert_eq!(next.message(&State { figure: None, ..state(0) }), told);
    }

    #[test]
    fn the_figure_so_far_stands_beside_what_is_asked() {
        let few = Estimate::over(&[2100.0], 5, 0.95, 1).unwrap();
        let full = Estimate { low: Some(2016.0), high: Some(2184.0), ..few };
        let contended = Estimate { speed: Speed::Contended, ..few };
        for (figure, widest, asked, words) in [
            (None, None, 0.01, "asked 1 %"),
            (None, None, 0.0, "no figure yet"),
            (None, Some(0.05), 0.025, "widest +-5 %, asked 2.5 %"),
            (Some(&few), None, 0.01, "about 2.10 us so far, asked 1 %"),
            (Some(&contended), None, 0.01, "full speed not seen, asked 1 %"),
            (Some(&full), Some(0.04), 0.01, "2.10 us +-4 %, asked 1 %"),
            (Some(&full), Some(0.123), 0.01, "2.10 us +-4 %, widest +-12 %, asked 1 %"),
            (Some(&full), None, 0.0, "2.10 us +-4 %"),
        ] {
            assert_eq!(so_far(figure, widest, asked), words);
        }
        // What does not hold is no headline; what lacks rounds only is about so much.
        let told = [&few, &full, &contended].map(switch_so_far);
        let words = ["a switch costs about 2.10 us so far", "a switch costs 2.10 us"];
        assert_eq!(told, [Some(words[0].to_string()), Some(words[1].to_string()), None]);
        let below = Estimate { value: -5.0, ..few };
        assert_eq!(switch_so_far(&below), None);
    }
}

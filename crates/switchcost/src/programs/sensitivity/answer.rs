//! What `sensitivity` answers, in a sentence or two.

use analysis::estimate::{Estimate, Speed};
use analysis::findings::sensitivity::{SensitivityFindings, SensitivityPoint};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::{NotQuotable, QuotedFigure, cost};
use rundata::trial::command::{CommandSubject, neighbour_words};
use rundata::words;

use crate::report::terminal::shortened;

/// Preemptions a second for which the loss is told.
const USUAL_HZ: f64 = 1000.0;
/// Longest name of a command in a sentence.
const LONGEST_NAME: usize = 24;

/// `A preemption costs gzip 2.1 us (1.9 to 2.3) by a neighbour without memory, 14 us (12 to 16)
/// by one of 1 MiB. At 1,000 a second, 0.2 to 1.4 % of its CPU time.`
pub(crate) fn headline(found: &SensitivityFindings) -> MarkedText {
    let name = name(found);
    let quoted = |of: &SensitivityPoint| {
        let cost = of.ns_per_preemption?.quote_cost().ok()?;
        Some((by_rate(of), (of.bytes, of.stays_ns), cost))
    };
    let known: Vec<(Option<String>, (u64, u64), QuotedFigure)> =
        found.points.iter().filter_map(quoted).collect();
    let Some((first_rate, first, least)) = known.first() else { return not_known(found, &name) };
    let at = |rate: &Option<String>| rate.as_deref().unwrap_or_default().to_string();
    let by_first = neighbour_words("a neighbour", first.0, first.1) + &at(first_rate);
    let before = format!("A preemption costs {name} ");
    let mut told = marked![before, least.marked_time(), format!(" by {by_first}")];
    let most = known.iter().max_by(|(.., one), (.., other)| one.value().total_cmp(&other.value()));
    let most = most.filter(|(.., of)| of.differs_from(least));
    if let Some((rate, (bytes, stays_ns), most)) = most {
        let by = format!(" by {}{}", neighbour_words("one", *bytes, *stays_ns), at(rate));
        told.push(marked![", ", most.marked_time(), by]);
    }
    // At another rate only what goes with the count is known; no second has 1,000 long stays.
    let share = |(rate, (_, stays_ns), of): &(Option<String>, (u64, u64), QuotedFigure)| {
        (rate.is_none() && *stays_ns == 0)
            .then(|| words::two_digits(100.0 * of.value() * USUAL_HZ / 1e9))
    };
    let costs = match (share(&known[0]), most.map(share)) {
        (Some(low), Some(Some(high))) if low != high => format!("that is {low} to {high}"),
        (Some(both), None | Some(Some(_))) => format!("that is {both}"),
        (Some(low), Some(None)) => format!("the first costs {low}"),
        (None, Some(Some(high))) => format!("the second costs {high}"),
        (None, None | Some(None)) => return told + ".",
    };
    marked![told, format!(". At 1,000 preemptions a second {costs} % of its CPU time.")]
}

/// ` at 304 to 608 a second`, of a neighbour by which the loss does not go with the count: the
/// figure holds there only.
fn by_rate(of: &SensitivityPoint) -> Option<String> {
    of.highest_above_lowest_ns?.quote().ok()?;
    let (first, last) = (of.rates.first()?, of.rates.last()?);
    Some(format!(" at {} to {} a second", first.rate_hz, last.rate_hz))
}

/// The program's own name.
pub(crate) fn name(found: &SensitivityFindings) -> String {
    let first = match &found.subject {
        CommandSubject::Command(words) => words.first(),
        CommandSubject::Process { .. } => found.executable.as_ref().map(|of| &of.path),
    };
    let program = first.map_or("the program", String::as_str);
    shortened(program.rsplit('/').next().unwrap_or(program), LONGEST_NAME)
}

fn not_known(found: &SensitivityFindings, name: &str) -> MarkedText {
    let mut answers = found
        .points
        .iter()
        .filter_map(|point| Some((point, point.ns_per_preemption?.answer_cost().ok()?)));
    let rough = answers.next().map(|(point, cost)| {
        let by = neighbour_words("a neighbour", point.bytes, point.stays_ns);
        let rate = by_rate(point).unwrap_or_default();
        let before = format!("A preemption costs {name} ");
        marked![before, cost.marked_time(), format!(" by {by}{rate}.")]
    });
    let known = found.points.iter().find_map(|of| of.ns_per_preemption);
    if known.is_some_and(|of| of.speed == Speed::NotAlone) {
        let advice = match found.subject {
            CommandSubject::Command(_) => "Stop them, or choose another (--cpus)",
            // They may be the program's own threads and processes, which share its CPUs.
            CommandSubject::Process { .. } => {
                "Where they are its own threads and processes, measure while fewer of them run; \
                 else move the others away"
            }
        };
        let told = rough.or_else(|| upper_end(&known?, name));
        let unknown = || format!("What a preemption costs {name} is unknown.").into();
        let told = told.unwrap_or_else(unknown);
        return marked![told, format!(" Other tasks ran on its CPU. {advice}.")];
    }
    match known {
        _ if rough.is_some() => rough.unwrap_or_default(),
        Some(known) => format!("What a preemption costs {name}: {}.", cost(&known)).into(),
        None => {
            format!("Too few preemptions of {name} to tell what one costs: try a longer --budget.")
                .into()
        }
    }
}

/// What a preemption costs at most by an interval that does not exclude zero; none without one, and
/// where it lies below zero as a whole.
fn upper_end(cost: &Estimate, name: &str) -> Option<MarkedText> {
    let (low, high) = cost.low.zip(cost.high)?;
    if high <= 0.0 {
        return None;
    }
    let interval = NotQuotable::NotResolved { low, high }.with_time_unit();
    let most = MarkedText::figure(words::time(high));
    Some(marked![format!("A preemption costs {name} at most "), most, format!(" ({interval}).")])
}

#[cfg(test)]
mod tests {
    use analysis::findings::sensitivity::RatePoint;

    use super::*;

    fn point(bytes: u64, us: f64, apart_us: f64) -> SensitivityPoint {
        let about = |us: f64| {
            let figures: Vec<f64> = (-3..4).map(|at| 1000.0 * us + f64::from(at)).collect();
            Estimate::over(&figures, 5, 0.95, 1)
        };
        let rate = |rate_hz| RatePoint {
            case: 0,
            rate_hz,
            ns_per_preemption: about(us),
            preemptions_per_cpu_second: None,
            more_cpu_share: None,
        };
        SensitivityPoint {
            bytes,
            stays_ns: 0,
            ns_per_preemption: about(us),
            rates: vec![rate(304), rate(608)],
            highest_above_lowest_ns: about(apart_us),
        }
    }

    fn told(points: Vec<SensitivityPoint>) -> String {
        told_of(CommandSubject::Command(vec!["gzip".to_string()]), points)
    }

    fn told_of(subject: CommandSubject, points: Vec<SensitivityPoint>) -> String {
        headline(&SensitivityFindings {
            subject,
            executable: None,
            alone_cpu_ns: None,
            core_speed: None,
            timer_ns: None,
            points,
        })
        .into()
    }

    #[test]
    fn a_cost_that_does_not_go_with_the_count_is_told_at_its_rates_and_at_no_other() {
        let proportional = told(vec![point(0, 2.0, 0.0), point(8 << 20, 300.0, 0.0)]);
        assert!(
            proportional.ends_with("a second that is 0.2 to 30 % of its CPU time."),
            "{proportional}"
        );
        let one = told(vec![point(0, 2.0, 0.0), point(8 << 20, 300.0, -100.0)]);
        assert!(one.contains("by one of 8 MiB at 304 to 608 a second. At 1,000"), "{one}");
        assert!(one.ends_with("a second the first costs 0.2 % of its CPU time."), "{one}");
        let other = told(vec![point(0, 2.0, -1.0), point(8 << 20, 300.0, 0.0)]);
        assert!(other.ends_with("a second the second costs 30 % of its CPU time."), "{other}");
        let both = told(vec![point(0, 2.0, -1.0), point(8 << 20, 300.0, -100.0)]);
        assert!(
            both.contains("without memory at 304 to 608 a second") && !both.contains("1,000"),
            "{both}"
        );
    }

    /// On a busy machine the difference is often not resolved, and its upper end known.
    #[test]
    fn what_is_not_resolved_has_an_upper_end() {
        let at = |low: f64, high: f64| {
            let point = point(0, 2.0, 0.0);
            let ends = [low, high].map(|us| Some(1000.0 * us));
            let cost = point.ns_per_preemption.map(|of| Estimate {
                value: -1000.0,
                low: ends[0],
                high: ends[1],
                speed: Speed::NotAlone,
                ..of
            });
            told(vec![SensitivityPoint { ns_per_preemption: cost, ..point }])
        };
        let bounded = at(-46.7, 9.44);
        let words =
            "A preemption costs gzip at most 9.44 us (not resolved: -46.7 to 9.44 us). Other";
        assert!(bounded.starts_with(words), "{bounded}");
        assert!(at(-46.7, -1.0).starts_with("What a preemption costs gzip is unknown. Other"));
    }

    #[test]
    fn nobody_is_told_to_stop_the_threads_of_a_process() {
        let shared = || {
            let point = point(0, 2.0, 0.0);
            let cost = point.ns_per_preemption;
            let cost = cost.map(|of| Estimate { speed: Speed::NotAlone, ..of });
            vec![SensitivityPoint { ns_per_preemption: cost, ..point }]
        };
        let command = told(shared());
        assert!(command.contains("Stop them, or choose another (--cpus)"), "{command}");
        let progress = rundata::trial::command::ProgressSource::Instructions;
        let (others, has_children) = (vec![8], true);
        let process =
            CommandSubject::Process { pid: 7, others, has_children, window_ns: 1, progress };
        let process = told_of(process, shared());
        assert!(process.contains("its own threads") && !process.contains("Stop"), "{process}");
    }
}

//! The answer of `sensitivity`, in a sentence or two.

use analysis::estimate::{Estimate, Speed};
use analysis::findings::sensitivity::{SensitivityFindings, SensitivityPoint};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::{NotQuotable, QuotedFigure, cost};
use rundata::trial::command::{CommandSubject, neighbour_words};
use rundata::words;

use crate::report::terminal::shortened;

/// Preemptions a second at which the headline states the share of CPU time.
const HEADLINE_RATE_HZ: f64 = 1000.0;
/// Most characters of a command's name in a sentence.
const MAX_NAME_CHARS: usize = 24;

/// A point whose cost is quotable.
struct QuotedPoint<'a> {
    point: &'a SensitivityPoint,
    cost: QuotedFigure,
    /// Rates at which the cost was measured, if it holds at no others.
    rates: Option<String>,
}

impl<'a> QuotedPoint<'a> {
    /// Returns the point with its cost; `None` if the cost is not quotable.
    fn from_point(point: &'a SensitivityPoint) -> Option<Self> {
        let cost = point.ns_per_preemption?.quote_cost().ok()?;
        Some(Self { point, cost, rates: describe_rates(point) })
    }

    /// Returns ` by a neighbour of 1 MiB`, where `subject` is `a neighbour`.
    fn neighbour_words(&self, subject: &str) -> String {
        let SensitivityPoint { bytes, stays_ns, .. } = self.point;
        let rates = self.rates.as_deref().unwrap_or_default();
        format!(" by {}{rates}", neighbour_words(subject, *bytes, *stays_ns))
    }

    /// Returns the share of CPU time at 1,000 preemptions a second, in percent.
    ///
    /// `None` if the cost holds only at the measured rates, and for a neighbour that stays: a second
    /// has no room for 1,000 long stays.
    fn percent_at_headline_rate(&self) -> Option<String> {
        if self.rates.is_some() || self.point.stays_ns > 0 {
            return None;
        }
        Some(words::two_digits(100.0 * self.cost.value() * HEADLINE_RATE_HZ / 1e9))
    }
}

/// Returns `A preemption costs gzip 2.1 us (1.9 to 2.3) by a neighbour without memory, 14 us (12 to
/// 16) by one of 1 MiB. At 1,000 preemptions a second that is 0.2 to 1.4 % of its CPU time.`
pub(crate) fn headline(found: &SensitivityFindings) -> MarkedText {
    let name = program_name(found);
    let mut quoted: Vec<QuotedPoint> = Vec::new();
    for point in &found.points {
        quoted.extend(QuotedPoint::from_point(point));
    }
    let [first, ..] = &quoted[..] else { return describe_unknown(found, &name) };
    let mut line = marked![
        format!("A preemption costs {name} "),
        first.cost.marked_time(),
        first.neighbour_words("a neighbour")
    ];
    let dearest =
        quoted.iter().max_by(|one, other| one.cost.value().total_cmp(&other.cost.value()));
    let dearest = dearest.filter(|dearest| dearest.cost.differs_from(&first.cost));
    if let Some(dearest) = dearest {
        let by = dearest.neighbour_words("one");
        line.push(marked![", ", dearest.cost.marked_time(), by]);
    }
    let first_percent = first.percent_at_headline_rate();
    let dearest_percent = dearest.map(|dearest| dearest.percent_at_headline_rate());
    let shares = match (first_percent, dearest_percent) {
        (Some(low), Some(Some(high))) if low != high => format!("that is {low} to {high}"),
        (Some(both), None | Some(Some(_))) => format!("that is {both}"),
        (Some(low), Some(None)) => format!("the first costs {low}"),
        (None, Some(Some(high))) => format!("the second costs {high}"),
        (None, None | Some(None)) => return line + ".",
    };
    line + &format!(". At 1,000 preemptions a second {shares} % of its CPU time.")
}

/// Returns ` at 304 to 608 a second` for a point whose loss is not proportional to the count of
/// preemptions: its cost holds only at these rates. `None` for other points.
fn describe_rates(point: &SensitivityPoint) -> Option<String> {
    point.highest_above_lowest_ns?.quote().ok()?;
    let (first, last) = (point.rates.first()?, point.rates.last()?);
    Some(format!(" at {} to {} a second", first.rate_hz, last.rate_hz))
}

/// Returns the program's name, without its path.
pub(crate) fn program_name(found: &SensitivityFindings) -> String {
    let path = match &found.subject {
        CommandSubject::Command(words) => words.first(),
        CommandSubject::Process { .. } => found.executable.as_ref().map(|file| &file.path),
    };
    let path = path.map_or("the program", String::as_str);
    shortened(path.rsplit('/').next().unwrap_or(path), MAX_NAME_CHARS)
}

/// Describes findings without a quotable cost: a rough cost or an upper bound, and the reason.
fn describe_unknown(found: &SensitivityFindings, name: &str) -> MarkedText {
    let rough = found.points.iter().find_map(|point| describe_rough_cost(point, name));
    let estimate = found.points.iter().find_map(|point| point.ns_per_preemption);
    match (rough, estimate) {
        (rough, Some(estimate)) if estimate.speed == Speed::NotAlone => {
            let line = match rough.or_else(|| describe_upper_bound(&estimate, name)) {
                Some(line) => line,
                None => format!("What a preemption costs {name} is unknown.").into(),
            };
            let advice = competing_tasks_advice(&found.subject);
            line + &format!(" Other tasks ran on its CPU. {advice}.")
        }
        (Some(rough), _) => rough,
        (None, Some(estimate)) => {
            format!("What a preemption costs {name}: {}.", cost(&estimate)).into()
        }
        (None, None) => {
            format!("Too few preemptions of {name} to tell what one costs: try a longer --budget.")
                .into()
        }
    }
}

fn describe_rough_cost(point: &SensitivityPoint, name: &str) -> Option<MarkedText> {
    let cost = point.ns_per_preemption?.answer_cost().ok()?;
    let neighbour = neighbour_words("a neighbour", point.bytes, point.stays_ns);
    let rates = describe_rates(point).unwrap_or_default();
    let start = format!("A preemption costs {name} ");
    Some(marked![start, cost.marked_time(), format!(" by {neighbour}{rates}.")])
}

/// Returns advice against competing tasks on the program's CPU.
fn competing_tasks_advice(subject: &CommandSubject) -> &'static str {
    match subject {
        CommandSubject::Command(_) => "Stop them, or choose another (--cpus)",
        // They may be the program's own threads and processes, which share its CPUs.
        CommandSubject::Process { .. } => {
            "Where they are its own threads and processes, measure while fewer of them run; else \
             move the others away"
        }
    }
}

/// Describes the upper end of an interval that does not exclude zero; `None` without an interval, or
/// if all of it is below zero.
fn describe_upper_bound(estimate: &Estimate, name: &str) -> Option<MarkedText> {
    let (low, high) = (estimate.low?, estimate.high?);
    if high <= 0.0 {
        return None;
    }
    let interval = NotQuotable::NotResolved { low, high }.with_time_unit();
    let bound = MarkedText::figure(words::time(high));
    Some(marked![format!("A preemption costs {name} at most "), bound, format!(" ({interval}).")])
}

#[cfg(test)]
mod tests {
    use analysis::findings::sensitivity::RatePoint;
    use rundata::trial::command::ProgressSource;

    use super::*;

    /// Builds an estimate of a time in microseconds with little scatter.
    fn estimate(us: f64) -> Option<Estimate> {
        let costs: Vec<f64> = (-3..4).map(|step| 1000.0 * us + f64::from(step)).collect();
        Estimate::over(&costs, 5, 0.95, 1)
    }

    /// Builds a point at 304 and 608 wake-ups a second, between which the cost differs by
    /// `difference_us`.
    fn point(bytes: u64, us: f64, difference_us: f64) -> SensitivityPoint {
        let rates = [304, 608].map(|rate_hz| RatePoint {
            case: 0,
            rate_hz,
            ns_per_preemption: estimate(us),
            preemptions_per_cpu_second: None,
            more_cpu_share: None,
        });
        SensitivityPoint {
            bytes,
            stays_ns: 0,
            ns_per_preemption: estimate(us),
            rates: rates.to_vec(),
            highest_above_lowest_ns: estimate(difference_us),
        }
    }

    /// Builds a point that competing tasks disturbed.
    fn disturbed_point() -> SensitivityPoint {
        let mut point = point(0, 2.0, 0.0);
        let cost = point.ns_per_preemption.unwrap();
        point.ns_per_preemption = Some(Estimate { speed: Speed::NotAlone, ..cost });
        point
    }

    fn gzip() -> CommandSubject {
        CommandSubject::Command(vec!["gzip".to_string()])
    }

    fn headline_of(subject: CommandSubject, points: Vec<SensitivityPoint>) -> String {
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
    fn proportional_costs_have_a_share_at_a_thousand_preemptions_a_second() {
        let line = headline_of(gzip(), vec![point(0, 2.0, 0.0), point(8 << 20, 300.0, 0.0)]);
        assert!(line.ends_with("a second that is 0.2 to 30 % of its CPU time."), "{line}");
    }

    #[test]
    fn a_cost_that_is_not_proportional_is_quoted_only_at_its_rates() {
        let points = vec![point(0, 2.0, 0.0), point(8 << 20, 300.0, -100.0)];
        let dearest = headline_of(gzip(), points);
        assert!(dearest.contains("by one of 8 MiB at 304 to 608 a second. At 1,000"), "{dearest}");
        let end = "a second the first costs 0.2 % of its CPU time.";
        assert!(dearest.ends_with(end), "{dearest}");
        let first = headline_of(gzip(), vec![point(0, 2.0, -1.0), point(8 << 20, 300.0, 0.0)]);
        assert!(first.ends_with("a second the second costs 30 % of its CPU time."), "{first}");
        let both = headline_of(gzip(), vec![point(0, 2.0, -1.0), point(8 << 20, 300.0, -100.0)]);
        assert!(both.contains("without memory at 304 to 608 a second"), "{both}");
        assert!(!both.contains("1,000"), "{both}");
    }

    /// Returns the headline of a cost that is not resolved, with this interval in microseconds.
    fn headline_of_unresolved(low_us: f64, high_us: f64) -> String {
        let mut point = disturbed_point();
        let cost = point.ns_per_preemption.unwrap();
        let (low, high) = (Some(1000.0 * low_us), Some(1000.0 * high_us));
        point.ns_per_preemption = Some(Estimate { value: -1000.0, low, high, ..cost });
        headline_of(gzip(), vec![point])
    }

    #[test]
    fn an_unresolved_cost_has_an_upper_bound() {
        let bounded = headline_of_unresolved(-46.7, 9.44);
        let start =
            "A preemption costs gzip at most 9.44 us (not resolved: -46.7 to 9.44 us). Other";
        assert!(bounded.starts_with(start), "{bounded}");
        let unknown = headline_of_unresolved(-46.7, -1.0);
        assert!(unknown.starts_with("What a preemption costs gzip is unknown. Other"), "{unknown}");
    }

    #[test]
    fn competing_tasks_of_a_command_are_to_be_stopped() {
        let line = headline_of(gzip(), vec![disturbed_point()]);
        assert!(line.contains("Stop them, or choose another (--cpus)"), "{line}");
    }

    #[test]
    fn competing_tasks_of_a_process_may_be_its_own_threads() {
        let process = CommandSubject::Process {
            pid: 7,
            others: vec![8],
            has_children: true,
            window_ns: 1,
            progress: ProgressSource::Instructions,
        };
        let line = headline_of(process, vec![disturbed_point()]);
        assert!(line.contains("its own threads") && !line.contains("Stop"), "{line}");
    }
}

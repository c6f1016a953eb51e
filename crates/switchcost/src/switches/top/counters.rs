//! Counters as OpenMetrics text, for `top --openmetrics`.

use crate::report::output::exports::{Labels, labels_text};

/// A family of counters, whose values only grow. Its lines have the name with `_total` behind it.
///
/// node_exporter's textfile collector, which parses Prometheus' older format, takes the lines for
/// metrics without a type; rate() reads these all the same.
pub(super) struct CounterFamily<'a> {
    /// Name without `_total`.
    pub(super) name: &'a str,
    /// Ends the name; empty for counts.
    pub(super) unit: &'a str,
    /// A sentence.
    pub(super) help: &'a str,
}

/// A line of a family of counters.
pub(super) struct CounterValue {
    pub(super) labels: Labels,
    pub(super) value: f64,
}

impl CounterFamily<'_> {
    /// Returns the family with its lines.
    pub(super) fn text(&self, values: &[CounterValue]) -> String {
        let Self { name, unit, help } = self;
        let mut text = format!("# TYPE {name} counter\n");
        if !unit.is_empty() {
            text += &format!("# UNIT {name} {unit}\n");
        }
        text += &format!("# HELP {name} {help}\n");
        for CounterValue { labels, value } in values {
            text += &format!("{name}_total{} {value}\n", labels_text(labels));
        }
        text
    }
}

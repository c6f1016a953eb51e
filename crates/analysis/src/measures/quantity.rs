//! The quantities of a case that comparisons, trends and exports take: their names, their units, and
//! how those of a ring are read from a run, by round and as an estimate.

use rundata::plan::CaseHistory;
use rundata::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::quote::{BestEstimate, NotQuotable, QuotedFigure};
use crate::summary::CaseSummary;
use crate::table::{Figures, Table};

/// The quantity that a figure measures.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Cost of a counted switch above the solo ring, in nanoseconds.
    NsPerSwitchAboveSolo,
    /// Time of a hop, in nanoseconds.
    NsPerHop,
    /// CPU time of a counted switch above the solo ring, in nanoseconds.
    CpuNsPerSwitchAboveSolo,
    /// CPU time of a hop, in nanoseconds.
    CpuNsPerHop,
    /// The headline figure of a trial, in nanoseconds.
    TrialNs,
    /// A part of a switch, in nanoseconds.
    PartNs,
    /// Real time of a command, in nanoseconds.
    RealNs,
    /// CPU time of a command, in nanoseconds.
    CpuNs,
    /// CPU time of a call of a function, in nanoseconds.
    CallNs,
    /// Time in the run queue before a burst on a CPU, in nanoseconds.
    QueueWaitNs,
    /// Events of a trace a second.
    PerSecond,
    /// Share of the time, 0 to 1, that a CPU was busy during a trace.
    CpuShare,
    /// Median of wake-ups under load, in nanoseconds.
    WakeP50Ns,
    /// 99th percentile of wake-ups under load, in nanoseconds.
    WakeP99Ns,
    /// Median of requests under load, in nanoseconds.
    RequestP50Ns,
    /// 99th percentile of requests under load, in nanoseconds.
    RequestP99Ns,
}

/// The unit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Events a second.
    PerSecond,
    /// Share of a whole, 0 to 1.
    Share,
}

impl QuantityUnit {
    /// Returns the unit's name in tables of cases; empty for a share.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::PerSecond => "1/s",
            Self::Share => "",
        }
    }
}

/// Units of a quantity in Go's benchmark format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoUnits {
    /// Unit of the nanoseconds.
    pub ns: &'static str,
    /// Unit of the cycles; absent where no clock of the core bounds the quantity.
    pub cycles: Option<&'static str>,
}

/// Assumed scatter of a median under load between launches, as a share (docs/validation.md).
const LOAD_MEDIAN_SCATTER: f64 = 0.05;
/// Assumed scatter of a 99th percentile under load between launches, as a share.
const LOAD_TAIL_SCATTER: f64 = 0.12;
/// Assumed scatter of every quantile of a timer's sleeper between launches, as a share: idle states
/// and the timers of a hypervisor differ from launch to launch (docs/decisions.md).
const TIMER_SCATTER: f64 = 0.25;

/// What wakes the tasks whose times are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeSource {
    /// Messengers, with requests.
    Messenger,
    /// A timer.
    Timer,
}

/// The names and units of a quantity.
struct QuantityDeclaration {
    /// Name in JSON and in exports, as it is serialised.
    id: &'static str,
    /// Name in tables.
    name: &'static str,
    /// Name in OpenMetrics, without the unit.
    metric: &'static str,
    /// The quantity in a sentence without its full stop.
    meaning: &'static str,
    /// Units in Go's benchmark format; absent where that does not have the quantity.
    go: Option<GoUnits>,
}

impl Quantity {
    /// Every quantity; the first one that a case has stands for it.
    pub const ALL: [Self; 16] = [
        Self::NsPerSwitchAboveSolo,
        Self::NsPerHop,
        Self::CpuNsPerSwitchAboveSolo,
        Self::CpuNsPerHop,
        Self::TrialNs,
        Self::PartNs,
        Self::RealNs,
        Self::CpuNs,
        Self::CallNs,
        Self::QueueWaitNs,
        Self::PerSecond,
        Self::CpuShare,
        Self::WakeP50Ns,
        Self::WakeP99Ns,
        Self::RequestP50Ns,
        Self::RequestP99Ns,
    ];

    fn declaration(self) -> QuantityDeclaration {
        match self {
            Self::NsPerSwitchAboveSolo => QuantityDeclaration {
                id: "ns_per_switch_above_solo",
                name: "switch",
                metric: "switchcost_switch",
                meaning: "Cost of a counted context switch above the solo ring, median over rounds",
                go: Some(GoUnits { ns: "ns/switch", cycles: Some("cycles/switch") }),
            },
            Self::NsPerHop => QuantityDeclaration {
                id: "ns_per_hop",
                name: "hop",
                metric: "switchcost_hop",
                meaning: "Time of a hop, median over rounds",
                go: Some(GoUnits { ns: "ns/op", cycles: Some("cycles/op") }),
            },
            Self::CpuNsPerSwitchAboveSolo => QuantityDeclaration {
                id: "cpu_ns_per_switch_above_solo",
                name: "switch (CPU)",
                metric: "switchcost_switch_cpu",
                meaning: "CPU time of a counted context switch above the solo ring, median over \
                    rounds",
                go: None,
            },
            Self::CpuNsPerHop => QuantityDeclaration {
                id: "cpu_ns_per_hop",
                name: "hop (CPU)",
                metric: "switchcost_hop_cpu",
                meaning: "CPU time of a hop, median over rounds",
                go: Some(GoUnits { ns: "cpu-ns/op", cycles: None }),
            },
            Self::TrialNs => QuantityDeclaration {
                id: "trial_ns",
                name: "trial",
                metric: "switchcost_trial",
                meaning: "What a trial measures, median over rounds",
                go: Some(GoUnits { ns: "ns/op", cycles: Some("cycles/op") }),
            },
            Self::PartNs => QuantityDeclaration {
                id: "part_ns",
                name: "part",
                metric: "switchcost_part",
                meaning: "A part of a context switch",
                go: Some(GoUnits { ns: "ns/part", cycles: None }),
            },
            Self::RealNs => QuantityDeclaration {
                id: "real_ns",
                name: "real time",
                metric: "switchcost_run_real",
                meaning: "Real time of a command, median over rounds",
                go: Some(GoUnits { ns: "ns/op", cycles: None }),
            },
            Self::CpuNs => QuantityDeclaration {
                id: "cpu_ns",
                name: "CPU time",
                metric: "switchcost_run_cpu",
                meaning: "CPU time of a command, median over rounds",
                go: Some(GoUnits { ns: "cpu-ns/op", cycles: None }),
            },
            Self::CallNs => QuantityDeclaration {
                id: "call_ns",
                name: "call",
                metric: "switchcost_call_cpu",
                meaning: "CPU time of a call, median over rounds",
                go: Some(GoUnits { ns: "cpu-ns/op", cycles: None }),
            },
            Self::QueueWaitNs => QuantityDeclaration {
                id: "queue_wait_ns",
                name: "wait",
                metric: "switchcost_trace_wait",
                meaning: "Time in the run queue before a burst on a CPU, of a trace",
                go: None,
            },
            Self::PerSecond => QuantityDeclaration {
                id: "per_second",
                name: "rate",
                metric: "switchcost_trace_events",
                meaning: "Events of a trace",
                go: None,
            },
            Self::CpuShare => QuantityDeclaration {
                id: "cpu_share",
                name: "share",
                metric: "switchcost_trace_busy",
                meaning: "Share of the time that a CPU was busy during a trace",
                go: None,
            },
            Self::WakeP50Ns => QuantityDeclaration {
                id: "wake_p50_ns",
                name: "wake p50",
                metric: "switchcost_wake_p50",
                meaning: "Median time of a wake-up",
                go: Some(GoUnits { ns: "p50-ns/wake", cycles: None }),
            },
            Self::WakeP99Ns => QuantityDeclaration {
                id: "wake_p99_ns",
                name: "wake p99",
                metric: "switchcost_wake_p99",
                meaning: "99th percentile of the time of a wake-up, over all rounds",
                go: Some(GoUnits { ns: "p99-ns/wake", cycles: None }),
            },
            Self::RequestP50Ns => QuantityDeclaration {
                id: "request_p50_ns",
                name: "request p50",
                metric: "switchcost_request_p50",
                meaning: "Median of the requests under load, over all rounds",
                go: Some(GoUnits { ns: "p50-ns/request", cycles: None }),
            },
            Self::RequestP99Ns => QuantityDeclaration {
                id: "request_p99_ns",
                name: "request p99",
                metric: "switchcost_request_p99",
                meaning: "99th percentile of the requests under load, over all rounds",
                go: Some(GoUnits { ns: "p99-ns/request", cycles: None }),
            },
        }
    }

    /// Returns the unit of its values.
    pub fn unit(self) -> QuantityUnit {
        match self {
            Self::PerSecond => QuantityUnit::PerSecond,
            Self::CpuShare => QuantityUnit::Share,
            _ => QuantityUnit::Nanoseconds,
        }
    }

    /// Returns whether it is of a trace: nobody's cost, so that it is higher or lower, not slower or
    /// faster.
    pub fn is_of_trace(self) -> bool {
        matches!(self, Self::QueueWaitNs | Self::PerSecond | Self::CpuShare)
    }

    /// Writes a value with its unit: `1.46 us`, `1,200/s`, `93.4 %`.
    pub fn value_in_words(self, value: f64) -> String {
        match self.unit() {
            QuantityUnit::Nanoseconds => words::time(value),
            QuantityUnit::PerSecond => format!("{}/s", words::grouped(value)),
            QuantityUnit::Share => format!("{} %", words::three_digits(100.0 * value)),
        }
    }

    /// Returns an estimate of it, if that may be quoted: a time is above zero, a rate or a share may be
    /// zero.
    pub fn quote(self, estimate: &Estimate) -> Result<QuotedFigure, NotQuotable> {
        match self.unit() {
            QuantityUnit::Nanoseconds => estimate.quote_cost(),
            QuantityUnit::PerSecond | QuantityUnit::Share => estimate.quote_count(),
        }
    }

    /// Returns the best that is known of it, quotable or not; an error if nothing is known.
    pub fn answer(self, estimate: &Estimate) -> Result<BestEstimate, NotQuotable> {
        match self.unit() {
            QuantityUnit::Nanoseconds => estimate.answer_cost(),
            QuantityUnit::PerSecond | QuantityUnit::Share => estimate.answer_count(),
        }
    }

    /// Says why it may not be quoted, with the unit of a time.
    pub fn why_not(self, why: &NotQuotable) -> String {
        match self.unit() {
            QuantityUnit::Nanoseconds => why.with_time_unit(),
            QuantityUnit::PerSecond | QuantityUnit::Share => why.to_string(),
        }
    }

    /// Returns which way a figure went: `slower` or `faster`, of a trace `higher` or `lower`.
    pub fn direction(self, is_more: bool) -> &'static str {
        match (self.is_of_trace(), is_more) {
            (false, true) => "slower",
            (false, false) => "faster",
            (true, true) => "higher",
            (true, false) => "lower",
        }
    }

    /// Returns whether an answer on it needs the CPU's full speed. The times of a program and of
    /// wake-ups do not, as their user waits for them whoever shared the core, and a trace is of the
    /// machine as it was.
    pub fn needs_full_speed(self) -> bool {
        let is_of_program = matches!(self, Self::RealNs | Self::CpuNs | Self::CallNs);
        !is_of_program && !self.is_of_trace() && !self.is_of_wakes()
    }

    /// Returns whether it is a quantile of wake-ups or requests.
    pub fn is_of_wakes(self) -> bool {
        use Quantity::{RequestP50Ns, RequestP99Ns, WakeP50Ns, WakeP99Ns};
        matches!(self, WakeP50Ns | WakeP99Ns | RequestP50Ns | RequestP99Ns)
    }

    /// Returns whether it is above zero by its nature, so that its interval is of its logarithm: a
    /// quantile of wake-ups, and a figure of a trace.
    pub(crate) fn is_above_zero(self) -> bool {
        self.is_of_trace() || self.is_of_wakes()
    }

    /// Returns the standard deviation between launches of a quantile of wake-ups, as a share. It is the
    /// one that earlier launches of the case have shown, at least half of the assumed one, as few
    /// launches may show none by chance; or the assumed one. Absent for other quantities.
    pub(crate) fn wake_scatter(self, source: WakeSource, history: &CaseHistory) -> Option<f64> {
        let assumed = self.assumed_wake_scatter(source)?;
        match self.shown_wake_scatter(history) {
            Some(shown) => Some(shown.max(assumed / 2.0)),
            None => Some(assumed),
        }
    }

    fn assumed_wake_scatter(self, source: WakeSource) -> Option<f64> {
        match (self, source) {
            (Self::WakeP50Ns | Self::WakeP99Ns, WakeSource::Timer) => Some(TIMER_SCATTER),
            (Self::WakeP50Ns | Self::RequestP50Ns, _) => Some(LOAD_MEDIAN_SCATTER),
            (Self::WakeP99Ns | Self::RequestP99Ns, _) => Some(LOAD_TAIL_SCATTER),
            _ => None,
        }
    }

    /// Returns the standard deviation that earlier launches of the case have shown, as a share.
    fn shown_wake_scatter(self, history: &CaseHistory) -> Option<f64> {
        let quantiles = history.quantile_scatter?;
        match self {
            Self::WakeP50Ns => quantiles.wake_p50,
            Self::WakeP99Ns => quantiles.wake_p99,
            Self::RequestP50Ns => quantiles.request_p50,
            Self::RequestP99Ns => quantiles.request_p99,
            _ => None,
        }
    }

    /// Returns its id, by which JSON and exports call it: `ns_per_hop`.
    pub fn id(self) -> &'static str {
        self.declaration().id
    }

    /// Returns its name in tables.
    pub fn in_words(self) -> &'static str {
        self.declaration().name
    }

    /// Returns its name in OpenMetrics, without the unit.
    pub fn metric(self) -> &'static str {
        self.declaration().metric
    }

    /// Returns its meaning in a sentence without its full stop.
    pub fn meaning(self) -> &'static str {
        self.declaration().meaning
    }

    /// Returns its units in Go's benchmark format; absent where that does not have it.
    pub fn go_units(self) -> Option<GoUnits> {
        self.declaration().go
    }
}

/// A quantity of a ring, and how it is read from a run.
pub(crate) struct RingQuantity {
    pub(crate) quantity: Quantity,
    /// The elasticity that it follows the clock by.
    pub(crate) elasticity: ElasticityKind,
    /// Returns its figures by round, from which the estimate is computed.
    pub(crate) by_round: fn(&Table, usize) -> Figures,
    /// Returns its estimate, from the case's summary where that has it.
    pub(crate) estimate: fn(&Table, usize, &CaseSummary) -> Option<Estimate>,
}

/// The elasticity of a quantity of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElasticityKind {
    /// The elasticity of the cost of a switch.
    Switch,
    /// The elasticity of a hop.
    Hop,
    /// No elasticity: CPU time is not compared at one clock.
    Unclocked,
}

/// The quantities of a ring.
pub(crate) const RING_QUANTITIES: [RingQuantity; 4] = [
    RingQuantity {
        quantity: Quantity::NsPerSwitchAboveSolo,
        elasticity: ElasticityKind::Switch,
        by_round: |table, case| table.above_solo_by_round(case),
        estimate: |_, _, summary| summary.ns_per_switch_above_solo,
    },
    RingQuantity {
        quantity: Quantity::NsPerHop,
        elasticity: ElasticityKind::Hop,
        by_round: |table, case| table.hop_by_round(case),
        estimate: |_, _, summary| summary.ns_per_hop,
    },
    RingQuantity {
        quantity: Quantity::CpuNsPerSwitchAboveSolo,
        elasticity: ElasticityKind::Unclocked,
        by_round: |table, case| table.cpu_above_solo_by_round(case),
        estimate: |_, _, summary| summary.cpu_ns_per_switch_above_solo,
    },
    RingQuantity {
        quantity: Quantity::CpuNsPerHop,
        elasticity: ElasticityKind::Unclocked,
        by_round: |table, case| table.cpu_hop_by_round(case),
        estimate: |table, case, _| table.cpu_hop(case),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_what_json_has() {
        for quantity in Quantity::ALL {
            let json = serde_json::to_value(quantity).expect("a word");
            assert_eq!(json, quantity.id());
        }
    }
}

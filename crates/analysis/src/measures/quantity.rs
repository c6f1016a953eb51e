//! The quantities of a case that comparisons, trends and exports take: their names, their units, and
//! how those of a ring are read from a run, by round and as an estimate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
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
}

/// Units of a quantity in Go's benchmark format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoUnits {
    /// Unit of the nanoseconds.
    pub ns: &'static str,
    /// Unit of the cycles; absent where no clock of the core bounds the quantity.
    pub cycles: Option<&'static str>,
}

/// The names and units of a quantity.
struct QuantityDeclaration {
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
    pub const ALL: [Self; 9] = [
        Self::NsPerSwitchAboveSolo,
        Self::NsPerHop,
        Self::CpuNsPerSwitchAboveSolo,
        Self::CpuNsPerHop,
        Self::TrialNs,
        Self::PartNs,
        Self::RealNs,
        Self::CpuNs,
        Self::CallNs,
    ];

    fn declaration(self) -> QuantityDeclaration {
        match self {
            Self::NsPerSwitchAboveSolo => QuantityDeclaration {
                name: "switch",
                metric: "switchcost_switch",
                meaning: "Cost of a counted context switch above the solo ring, median over rounds",
                go: Some(GoUnits { ns: "ns/switch", cycles: Some("cycles/switch") }),
            },
            Self::NsPerHop => QuantityDeclaration {
                name: "hop",
                metric: "switchcost_hop",
                meaning: "Time of a hop, median over rounds",
                go: Some(GoUnits { ns: "ns/op", cycles: Some("cycles/op") }),
            },
            Self::CpuNsPerSwitchAboveSolo => QuantityDeclaration {
                name: "switch (CPU)",
                metric: "switchcost_switch_cpu",
                meaning: "CPU time of a counted context switch above the solo ring, median over \
                    rounds",
                go: None,
            },
            Self::CpuNsPerHop => QuantityDeclaration {
                name: "hop (CPU)",
                metric: "switchcost_hop_cpu",
                meaning: "CPU time of a hop, median over rounds",
                go: Some(GoUnits { ns: "cpu-ns/op", cycles: None }),
            },
            Self::TrialNs => QuantityDeclaration {
                name: "trial",
                metric: "switchcost_trial",
                meaning: "What a trial measures, median over rounds",
                go: Some(GoUnits { ns: "ns/op", cycles: Some("cycles/op") }),
            },
            Self::PartNs => QuantityDeclaration {
                name: "part",
                metric: "switchcost_part",
                meaning: "A part of a context switch",
                go: Some(GoUnits { ns: "ns/part", cycles: None }),
            },
            Self::RealNs => QuantityDeclaration {
                name: "real time",
                metric: "switchcost_run_real",
                meaning: "Real time of a command, median over rounds",
                go: Some(GoUnits { ns: "ns/op", cycles: None }),
            },
            Self::CpuNs => QuantityDeclaration {
                name: "CPU time",
                metric: "switchcost_run_cpu",
                meaning: "CPU time of a command, median over rounds",
                go: Some(GoUnits { ns: "cpu-ns/op", cycles: None }),
            },
            Self::CallNs => QuantityDeclaration {
                name: "call",
                metric: "switchcost_call_cpu",
                meaning: "CPU time of a call, median over rounds",
                go: Some(GoUnits { ns: "cpu-ns/op", cycles: None }),
            },
        }
    }

    /// Returns whether an answer on it needs the CPU's full speed. The times of a program do not, as
    /// its user waits for them whoever shared the core.
    pub fn needs_full_speed(self) -> bool {
        !matches!(self, Self::RealNs | Self::CpuNs | Self::CallNs)
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

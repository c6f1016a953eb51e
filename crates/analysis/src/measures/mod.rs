//! The measures of a ring, each declared once: its id, title, unit and meaning, and how it is read
//! from a [`CaseSummary`].
//!
//! The terminal's table of `ring`, `summary-csv`, Markdown, OpenMetrics, comparisons, and the list
//! of columns for Python and docs/columns.md go over [`MEASURES`]. Comparisons, trends and exports
//! of every experiment take its [`Quantity`]s, which are declared beside.

mod quantity;

pub(crate) use quantity::WakeSource;
pub(crate) use quantity::{ElasticityKind, RING_QUANTITIES, RingQuantity};
pub use quantity::{GoUnits, Quantity, QuantityUnit};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::quote::{NotQuotable, QuotedFigure};
use crate::rings_at_once::SimultaneousRings;
use crate::summary::{CaseSummary, NoCost, Totals};

/// Unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// Cycles of the core's clock.
    Cycles,
    /// 10^9 cycles per second.
    Gigahertz,
    /// A count per hop.
    PerHop,
    /// A count per second.
    PerSecond,
    /// Share of a whole, 0 to 1; tables show it as a percentage.
    Share,
    /// A whole number.
    Whole,
    /// Yes or no.
    Flag,
}

impl ColumnUnit {
    /// Returns the unit's name in lists of columns; empty for counts, shares and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Seconds => "s",
            Self::Cycles => "cycles",
            Self::Gigahertz => "GHz",
            Self::PerSecond => "1/s",
            Self::PerHop | Self::Share | Self::Whole | Self::Flag => "",
        }
    }

    /// Returns the kind of the values that have this unit.
    pub fn value_kind(self) -> ValueKind {
        match self {
            Self::Whole => ValueKind::Integer,
            Self::Flag => ValueKind::Boolean,
            _ => ValueKind::Float,
        }
    }
}

/// Kind of a column's values, of measures and of all other columns and facts that are declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// Words.
    Text,
    /// A whole number.
    Integer,
    /// Any other number.
    Float,
    /// `true` or `false`.
    Boolean,
    /// Whole numbers with blanks between them.
    Integers,
    /// A point in time, RFC 3339, UTC.
    Time,
}

/// The tables of a terminal that have the column of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnVisibility {
    /// Every table.
    Always,
    /// Tables of `--wide`.
    Wide,
    /// Tables in which the flag is set in some row.
    WhereSet,
    /// Tables in which some row has a value.
    WhereKnown,
    /// Tables of rings that run at the same time.
    SeveralRings,
    /// Tables of rings that run at the same time, some with several items under way.
    RingsInFlight,
}

impl ColumnVisibility {
    /// Returns whether only tables of rings that run at the same time have the column.
    pub fn is_of_several_rings(self) -> bool {
        matches!(self, Self::SeveralRings | Self::RingsInFlight)
    }
}

/// What more of a measure means to whoever waits for the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureDirection {
    /// More is worse, as of every cost.
    Cost,
    /// More is better: work in a second, an efficiency.
    Gain,
    /// Neither: a clock, a number of rounds.
    Neutral,
}

/// A measure of a ring.
#[derive(Clone, Copy, Debug)]
pub struct RingMeasure {
    /// Name in CSV, OpenMetrics and JSON; where [`CaseSummary`] has such a field, the field's.
    pub id: &'static str,
    /// Head of the column, with the unit.
    pub title: &'static str,
    /// Unit of the values.
    pub unit: ColumnUnit,
    /// The measure in a few words, as lists of columns explain it.
    pub meaning: &'static str,
    /// Priority of the column where a table is too narrow; the lowest ones leave first.
    pub priority: u8,
    /// The tables that have the column.
    pub shown: ColumnVisibility,
    /// True if the interval has a column beside it.
    pub has_interval: bool,
    /// True if it has a column of its own in `summary-csv` and Markdown, a gauge in OpenMetrics, and
    /// a column in comparisons.
    pub is_exported: bool,
    /// What more of it means; an exported measure is a cost or a gain.
    pub direction: MeasureDirection,
    /// Names of the columns of both ends of its interval in `summary-csv`; absent where that has the
    /// value alone.
    pub end_ids: Option<[&'static str; 2]>,
    /// Reads the value from a case.
    pub read: fn(&CaseSummary) -> MeasureValue,
}

/// The value of a measure in a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeasureValue {
    /// A cost, rate or ratio above zero, which is shown only as far as it may be quoted.
    Cost(Estimate),
    /// A cost that the case does not have.
    NoCost(NoCost),
    /// A count, which may be zero and is shown as it was counted, whatever the core's speed.
    Count(Estimate),
    /// A number that is as it was counted or computed, whatever the core's speed.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Not known, or it does not apply.
    Unknown,
}

impl MeasureValue {
    /// Returns the number to show; absent for a flag, and for a cost that may not be quoted. A count is
    /// shown without an interval, too.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Cost(estimate) => Some(estimate.quote_cost().ok()?.value()),
            Self::Count(estimate) => Some(estimate.value),
            Self::Number(number) => Some(number),
            Self::NoCost(_) | Self::Flag(_) | Self::Unknown => None,
        }
    }

    /// Returns the ends of the interval of what may be quoted; absent where nothing may be.
    pub fn ends(self) -> Option<[f64; 2]> {
        let Self::Cost(estimate) = self else { return None };
        let quoted = estimate.quote_cost().ok()?;
        Some([quoted.low(), quoted.high()])
    }

    /// Returns the estimate behind it, if there is one.
    pub fn estimate(self) -> Option<Estimate> {
        match self {
            Self::Cost(estimate) | Self::Count(estimate) => Some(estimate),
            Self::NoCost(_) | Self::Number(_) | Self::Flag(_) | Self::Unknown => None,
        }
    }

    /// Returns the figure with its interval, or why it may not be quoted; absent without an estimate.
    pub fn quote(self) -> Option<Result<QuotedFigure, NotQuotable>> {
        match self {
            Self::Cost(estimate) => Some(estimate.quote_cost()),
            Self::Count(estimate) => Some(estimate.quote_count()),
            Self::NoCost(_) | Self::Number(_) | Self::Flag(_) | Self::Unknown => None,
        }
    }

    fn from_cost(estimate: Option<Estimate>) -> Self {
        match estimate {
            Some(estimate) => Self::Cost(estimate),
            None => Self::Unknown,
        }
    }

    /// Reads a figure of rings that run at the same time.
    fn of_rings(case: &CaseSummary, read: fn(&SimultaneousRings) -> Self) -> Self {
        case.rings_at_once.as_deref().map_or(Self::Unknown, read)
    }

    fn from_count(estimate: Option<Estimate>) -> Self {
        match estimate {
            Some(estimate) => Self::Count(estimate),
            None => Self::Unknown,
        }
    }

    fn from_number(number: Option<f64>) -> Self {
        match number {
            Some(number) => Self::Number(number),
            None => Self::Unknown,
        }
    }
}

/// A measure that has a column in all tables, no interval beside it, and no column in exports.
const PLAIN: RingMeasure = RingMeasure {
    id: "",
    title: "",
    unit: ColumnUnit::Whole,
    meaning: "",
    priority: 0,
    shown: ColumnVisibility::Always,
    has_interval: false,
    is_exported: false,
    direction: MeasureDirection::Neutral,
    end_ids: None,
    read: |_| MeasureValue::Unknown,
};

/// Laps that Sloan's columns are scaled to: his own, so that his table can be laid beside ours.
const SLOAN_LAPS: f64 = 1e6;

/// Returns the time of a million laps in seconds. `total_ns` reads the time of all laps.
fn sloan_seconds(case: &CaseSummary, total_ns: fn(&Totals) -> Option<u64>) -> MeasureValue {
    let Some(totals) = &case.totals else { return MeasureValue::Unknown };
    match total_ns(totals) {
        Some(ns) => million_laps(ns as f64 / totals.laps as f64),
        None => MeasureValue::Unknown,
    }
}

fn million_laps(ns_per_lap: f64) -> MeasureValue {
    MeasureValue::Number(ns_per_lap * SLOAN_LAPS / 1e9)
}

/// Declares a column of `--wide` in seconds for a million laps.
const fn sloan(
    id: &'static str,
    title: &'static str,
    meaning: &'static str,
    read: fn(&CaseSummary) -> MeasureValue,
) -> RingMeasure {
    RingMeasure {
        id,
        title,
        unit: ColumnUnit::Seconds,
        meaning,
        priority: 7,
        shown: ColumnVisibility::Wide,
        read,
        ..PLAIN
    }
}

/// Time of a hop.
pub const NS_PER_HOP: RingMeasure = RingMeasure {
    id: "ns_per_hop",
    title: "ns/hop",
    unit: ColumnUnit::Nanoseconds,
    meaning: "time of a hop",
    priority: 3,
    read: |case| MeasureValue::from_cost(case.ns_per_hop),
    ..PLAIN
};

/// Counted switches of a hop.
pub const SWITCHES_PER_HOP: RingMeasure = RingMeasure {
    id: "switches_per_hop",
    title: "switches/hop",
    unit: ColumnUnit::PerHop,
    meaning: "switches that the kernel counted per hop",
    priority: 2,
    is_exported: true,
    direction: MeasureDirection::Cost,
    read: |case| MeasureValue::from_count(case.switches_per_hop),
    ..PLAIN
};

/// Cost of a switch.
pub const NS_PER_SWITCH: RingMeasure = RingMeasure {
    id: "ns_per_switch_above_solo",
    title: "ns/switch",
    unit: ColumnUnit::Nanoseconds,
    meaning: "cost of a counted switch above the solo ring",
    priority: 6,
    has_interval: true,
    read: |case| match case.cost_of_switch() {
        Ok(cost) => MeasureValue::Cost(cost),
        Err(why) => MeasureValue::NoCost(why),
    },
    ..PLAIN
};

/// Rounds in which a case was measured.
pub const ROUNDS: RingMeasure = RingMeasure {
    id: "rounds",
    title: "rounds",
    unit: ColumnUnit::Whole,
    meaning: "rounds in which it was measured",
    priority: 0,
    read: |case| MeasureValue::Number(case.rounds.into()),
    ..PLAIN
};

/// The measures of a ring, in the order of their columns.
pub const MEASURES: &[RingMeasure] = &[
    sloan("real_s", "real s", "real time of a million laps", |case| {
        sloan_seconds(case, |totals| Some(totals.real_ns))
    }),
    sloan("cpu_s", "CPU s", "CPU time of a million laps", |case| {
        sloan_seconds(case, |totals| Some(totals.cpu_ns))
    }),
    sloan("user_s", "user s", "CPU time of a million laps in user mode", |case| {
        sloan_seconds(case, |totals| totals.user_ns)
    }),
    sloan("system_s", "system s", "CPU time of a million laps in the kernel", |case| {
        sloan_seconds(case, |totals| totals.system_ns)
    }),
    sloan("projected_s", "projected s", "CPU time of the ring of two x members / 2", |case| {
        case.projected_cpu_ns_per_lap.map_or(MeasureValue::Unknown, million_laps)
    }),
    NS_PER_SWITCH,
    RingMeasure {
        id: "cycles_per_switch",
        title: "cycles/switch",
        unit: ColumnUnit::Cycles,
        meaning: "cost of a switch in cycles of the core's clock",
        priority: 5,
        shown: ColumnVisibility::Wide,
        read: |case| MeasureValue::from_cost(case.cycles_per_switch),
        ..PLAIN
    },
    RingMeasure {
        id: "clock_ghz",
        title: "GHz",
        unit: ColumnUnit::Gigahertz,
        meaning: "clock of the core",
        priority: 4,
        shown: ColumnVisibility::Wide,
        read: |case| MeasureValue::from_number(case.clock_ghz),
        ..PLAIN
    },
    NS_PER_HOP,
    SWITCHES_PER_HOP,
    RingMeasure {
        id: "wakeups_per_hop",
        title: "wake-ups/hop",
        unit: ColumnUnit::PerHop,
        meaning: "wake-ups per hop (voluntary switches), in plans with several items under way",
        priority: 2,
        shown: ColumnVisibility::WhereKnown,
        is_exported: true,
        direction: MeasureDirection::Cost,
        read: |case| MeasureValue::from_count(case.wakeups_per_hop),
        ..PLAIN
    },
    RingMeasure {
        id: "counts_disagree",
        title: "",
        unit: ColumnUnit::Flag,
        meaning: "whether over 5 % more or fewer switches than hops were counted",
        priority: 2,
        shown: ColumnVisibility::WhereSet,
        read: |case| MeasureValue::Flag(case.counts_disagree),
        ..PLAIN
    },
    RingMeasure {
        id: "clean_share",
        title: "clean %",
        unit: ColumnUnit::Share,
        meaning: "share of clean slices",
        priority: 1,
        shown: ColumnVisibility::Wide,
        read: |case| MeasureValue::from_number(case.clean_share),
        ..PLAIN
    },
    RingMeasure {
        id: "rings_at_once",
        title: "rings",
        meaning: "rings that run at the same time",
        priority: 7,
        shown: ColumnVisibility::SeveralRings,
        read: |case| MeasureValue::Number(case.case.rings().into()),
        ..PLAIN
    },
    RingMeasure {
        id: "switches_per_second",
        title: "switches/s",
        unit: ColumnUnit::PerSecond,
        meaning: "switches of all rings in a second",
        priority: 6,
        shown: ColumnVisibility::SeveralRings,
        is_exported: true,
        direction: MeasureDirection::Gain,
        read: |case| {
            MeasureValue::of_rings(case, |rings| MeasureValue::from_cost(rings.switches_per_second))
        },
        ..PLAIN
    },
    RingMeasure {
        id: "hops_per_second",
        title: "hops/s",
        unit: ColumnUnit::PerSecond,
        meaning: "hops of all rings in a second; items, if several are under way",
        priority: 5,
        shown: ColumnVisibility::RingsInFlight,
        is_exported: true,
        direction: MeasureDirection::Gain,
        read: |case| {
            MeasureValue::of_rings(case, |rings| MeasureValue::from_cost(rings.hops_per_second))
        },
        ..PLAIN
    },
    RingMeasure {
        id: "efficiency",
        title: "efficiency",
        unit: ColumnUnit::Share,
        meaning: "switches of all rings (items, if several are under way) over as many times \
            those of the single ring",
        priority: 6,
        shown: ColumnVisibility::SeveralRings,
        has_interval: true,
        is_exported: true,
        direction: MeasureDirection::Gain,
        end_ids: Some(["efficiency_low", "efficiency_high"]),
        read: |case| {
            MeasureValue::of_rings(case, |rings| MeasureValue::from_cost(rings.efficiency))
        },
    },
    RingMeasure {
        id: "fastest_ns_per_hop",
        title: "fastest",
        unit: ColumnUnit::Nanoseconds,
        meaning: "time of a hop of the fastest of several rings",
        priority: 4,
        shown: ColumnVisibility::SeveralRings,
        read: |case| {
            MeasureValue::of_rings(case, |rings| {
                let fastest = rings.fastest_ring();
                MeasureValue::from_cost(fastest.and_then(|ring| ring.ns_per_hop))
            })
        },
        ..PLAIN
    },
    RingMeasure {
        id: "slowest_ns_per_hop",
        title: "slowest",
        unit: ColumnUnit::Nanoseconds,
        meaning: "time of a hop of the slowest of several rings",
        priority: 4,
        shown: ColumnVisibility::SeveralRings,
        read: |case| {
            MeasureValue::of_rings(case, |rings| {
                let slowest = rings.slowest_ring();
                MeasureValue::from_cost(slowest.and_then(|ring| ring.ns_per_hop))
            })
        },
        ..PLAIN
    },
    RingMeasure {
        id: "migrations_at_once",
        title: "migrations",
        unit: ColumnUnit::Whole,
        meaning: "moves of members of several rings from one CPU to another",
        priority: 1,
        shown: ColumnVisibility::SeveralRings,
        read: |case| {
            MeasureValue::of_rings(case, |rings| {
                let migrations = rings.migrations;
                MeasureValue::from_number(migrations.map(|count| count as f64))
            })
        },
        ..PLAIN
    },
    ROUNDS,
];

/// A measure on both sides of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurePair {
    /// Value of the base; absent where it is not known.
    pub base: Option<f64>,
    /// Value of the new side; absent where it is not known.
    pub new: Option<f64>,
}

/// Returns these measures of two cases, by their ids; those that neither case has are left out.
pub(crate) fn pairs(
    base: Option<&CaseSummary>,
    new: Option<&CaseSummary>,
    measures: impl Iterator<Item = &'static RingMeasure>,
) -> BTreeMap<String, MeasurePair> {
    let mut pairs = BTreeMap::new();
    for measure in measures {
        let pair = MeasurePair { base: measure.number(base), new: measure.number(new) };
        if pair.base.or(pair.new).is_some() {
            pairs.insert(measure.id.to_string(), pair);
        }
    }
    pairs
}

impl RingMeasure {
    /// Returns the number to quote of a case; absent without a case, and where nothing may be quoted.
    fn number(&self, case: Option<&CaseSummary>) -> Option<f64> {
        (self.read)(case?).number()
    }
}

/// Returns the measures that have columns of their own in exports and comparisons. Tables for people
/// leave out those that no row has.
pub fn exported_measures() -> impl Iterator<Item = &'static RingMeasure> {
    MEASURES.iter().filter(|measure| measure.is_exported)
}

#[cfg(test)]
mod tests {
    use rundata::run::Run;

    use super::*;
    use crate::record::RingRecord;

    #[test]
    fn each_measure_is_declared_once_and_says_what_it_is() {
        let mut ids: Vec<&str> = MEASURES.iter().map(|measure| measure.id).collect();
        ids.extend(MEASURES.iter().filter_map(|measure| measure.end_ids).flatten());
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(MEASURES.iter().all(|measure| !measure.meaning.is_empty()));
    }

    #[test]
    fn each_exported_measure_says_whether_more_is_worse() {
        for measure in exported_measures() {
            assert_ne!(measure.direction, MeasureDirection::Neutral, "{}", measure.id);
        }
    }

    #[test]
    fn a_count_is_shown_unquoted_and_quoted_with_its_interval() {
        let text = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");
        let record = RingRecord::from_run(&Run::parse(text).unwrap());
        let counted = record.cases[1].switches_per_hop.unwrap();
        let value = (SWITCHES_PER_HOP.read)(&record.cases[1]);
        let quoted = value.quote().unwrap().unwrap();
        assert_eq!(quoted.value(), counted.value);
        assert_eq!([Some(quoted.low()), Some(quoted.high())], [counted.low, counted.high]);
        let open = MeasureValue::Count(Estimate { low: None, high: None, ..counted });
        assert_eq!(open.number(), Some(counted.value));
        assert!(open.quote().is_some_and(|quoted| quoted.is_err()));
        assert!(MeasureValue::Number(1.0).quote().is_none());
    }

    #[test]
    fn pairs_have_what_one_side_knows() {
        let text = include_str!("../../../rundata/tests/fixtures/run-v1.jsonl");
        let record = RingRecord::from_run(&Run::parse(text).unwrap());
        let (solo, two) = (&record.cases[0], &record.cases[1]);
        let both = || [&NS_PER_SWITCH, &ROUNDS].into_iter();
        let found = pairs(Some(solo), Some(two), both());
        let cost = two.ns_per_switch_above_solo.map(|cost| cost.value);
        assert_eq!(found[NS_PER_SWITCH.id], MeasurePair { base: None, new: cost });
        let rounds = [solo, two].map(|case| Some(f64::from(case.rounds)));
        assert_eq!(found[ROUNDS.id], MeasurePair { base: rounds[0], new: rounds[1] });
        assert!(pairs(None, Some(solo), [&NS_PER_SWITCH].into_iter()).is_empty());
    }
}

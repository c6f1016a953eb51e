//! The experiments, which are the subcommands that make plans; and the macro for the names of enums
//! on the command line, in CSV and in JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Gives the values of an enum the names that the command line, CSV and JSON share.
#[macro_export]
macro_rules! named {
    ($type:ty, $what:literal, $($variant:ident => $name:literal),+) => {
        impl $type {
            /// Every value, in the order in which help lists them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The name used on the command line, in CSV and in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|one| one.name() == text).ok_or_else(|| {
                    let accepted = [$($name),+];
                    let suggestion = $crate::experiment::suggest_name(text, accepted);
                    let accepted = accepted.join(", ");
                    format!(
                        concat!("'{}' is not a ", $what, "{} (accepted: {})"), text, suggestion, accepted
                    )
                })
            }
        }
    };
}

pub use crate::named;

/// Returns `, did you mean 'thread'?` for the name that is most like the word; an empty text where
/// none is like it.
pub fn suggest_name<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    const MIN_LIKENESS: f64 = 0.8;
    let mut best = (MIN_LIKENESS, None);
    for name in names {
        let likeness = strsim::jaro_winkler(word, name);
        // Of equally like names the last.
        if likeness > best.0 || (best.1.is_some() && likeness >= best.0) {
            best = (likeness, Some(name));
        }
    }
    best.1.map_or(String::new(), |name| format!(", did you mean '{name}'?"))
}

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// `ring`: what a switch costs by the size of the ring.
    Ring,
    /// `cost`: direct and total cost of a switch by working set.
    Cost,
    /// `classic experiment interference`: execution times in quiet and under disturbance.
    Interference,
    /// `response`: what a kernel's response time is made of.
    Response,
    /// `explain`: what a switch is made of.
    Explain,
    /// `clock overhead`: what it costs to read a clock.
    ClockOverhead,
    /// `classic experiment primes`: how precisely clocks time the same work.
    ClockPrimes,
    /// `classic experiment malloc`: what malloc and free cost.
    ClockMalloc,
    /// `classic experiment sampling`: what accounting by timer ticks makes of a sleeper.
    ClockSampling,
    /// `sensitivity`: what a preemption costs a command.
    Sensitivity,
    /// `trace`: every switch of a program or of the machine.
    Trace,
    /// `measure`: cases of several experiments in one plan, each experiment a part of it.
    Measure,
}

named!(Experiment, "known experiment", Ring => "ring", Cost => "cost",
    Interference => "interference", Response => "response", Explain => "explain",
    ClockOverhead => "clock-overhead",
    ClockPrimes => "clock-primes", ClockMalloc => "clock-malloc", ClockSampling => "clock-sampling",
    Sensitivity => "sensitivity", Trace => "trace", Measure => "measure");

/// Kinds of cases that an experiment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseKinds {
    /// Rings only.
    Rings,
    /// Trials only.
    Trials,
    /// Rings and trials.
    Both,
}

impl Experiment {
    /// Returns the kinds of its cases.
    pub fn case_kinds(self) -> CaseKinds {
        match self {
            Self::Ring | Self::Cost => CaseKinds::Rings,
            Self::Response | Self::Explain | Self::Measure => CaseKinds::Both,
            Self::Interference
            | Self::ClockOverhead
            | Self::ClockPrimes
            | Self::ClockMalloc
            | Self::ClockSampling
            | Self::Sensitivity
            | Self::Trace => CaseKinds::Trials,
        }
    }
}

//! What a report says differently when a run compares links, placements, states of the registers or
//! policies.

use std::collections::BTreeSet;

use analysis::record::{RingRecord, Series};
use analysis::summary::CaseSummary;
use rundata::machine::CpuRelation;
use rundata::placement::Placement;
use rundata::ring::{Policy, RegisterState, RingCase};

use crate::base::values::each_once;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{cpu_list, difference, interval, told_interval, told_value, value};

/// What the rings of a run differ in beside their size, each in the order of its plan.
pub(crate) struct Comparison {
    /// Links, placements, states, policies.
    seen: [Vec<String>; 4],
}

/// Returns link, placement, state of the registers and policy, as tables of several have them.
fn labels(case: &RingCase) -> [String; 4] {
    let placement = match &case.placement {
        // `same` alone would not say where.
        Placement::Same { cpu } => format!("same:{cpu}"),
        other => other.to_string(),
    };
    let state = case.state.map_or("-", RegisterState::name).to_string();
    [case.link.clone(), placement, state, case.policy.to_string()]
}

/// Returns ` under fifo`; nothing for the normal policy, which goes without saying.
pub(crate) fn under_policy(policy: Policy) -> String {
    if policy == Policy::Other { String::new() } else { format!(" under {policy}") }
}

impl Comparison {
    pub(crate) fn of(record: &RingRecord) -> Self {
        let all = |which: usize| record.cases.iter().map(move |of| labels(&of.case)[which].clone());
        Self { seen: [0, 1, 2, 3].map(|which| each_once(all(which))) }
    }

    /// Returns those of link, placement, state and policy in which rings differ.
    fn differing(&self, all: [String; 4]) -> Vec<String> {
        self.seen.iter().zip(all).filter(|(seen, _)| seen.len() > 1).map(|(_, one)| one).collect()
    }

    /// First columns, which tables of one kind of ring do not have.
    pub(crate) fn header(&self) -> Vec<String> {
        self.differing(["link", "placement", "registers", "policy"].map(String::from))
    }

    /// Whether rings differ in more than their size and their policy.
    pub(crate) fn has_settings(&self) -> bool {
        self.seen[..3].iter().any(|seen| seen.len() > 1)
    }

    /// Returns the policies for a heading: `policy other`, `policies other and fifo`.
    pub(crate) fn policies(&self) -> String {
        match &self.seen[3][..] {
            [only] => format!("policy {only}"),
            many => format!("policies {}", many.join(" and ")),
        }
    }

    /// Returns the place of a ring's policy in the order of the plan.
    pub(crate) fn policy_rank(&self, case: &RingCase) -> Option<usize> {
        let name = case.policy.to_string();
        self.seen[3].iter().position(|known| *known == name)
    }

    /// What stands in them.
    pub(crate) fn cells(&self, case: &RingCase) -> Vec<String> {
        self.differing(labels(case))
    }

    /// The cases link by link, then policy by policy, state by state, placement by placement: a
    /// plan has all solo rings first.
    pub(crate) fn in_order<'a>(&self, record: &'a RingRecord) -> Vec<&'a CaseSummary> {
        let mut cases: Vec<&CaseSummary> = record.cases.iter().collect();
        cases.sort_by_key(|summary| {
            let own = labels(&summary.case);
            [0, 3, 2, 1].map(|which| self.seen[which].iter().position(|known| *known == own[which]))
        });
        cases
    }

    /// Links and placement, for a heading. The CPUs of a sweep stand in the table.
    pub(crate) fn links_and_placement(&self, case: &RingCase) -> (String, String) {
        let [links, placements, ..] = &self.seen;
        let links = match links.len() {
            ..=3 => links.join(", "),
            many => format!("{many} links"),
        };
        let placement = match placements.len() {
            ..=1 => format!("{} (CPU {})", case.placement, cpu_list(&case.placement.cpus())),
            _ => "sweep".to_string(),
        };
        (links, placement)
    }

    /// A ring by its size, and by whatever else tells it from others.
    pub(crate) fn ring(&self, case: &RingCase) -> String {
        format!("{}{}", case.members, self.apart(case))
    }

    /// The same with its link, whether there are others or not.
    pub(crate) fn ring_and_link(&self, case: &RingCase) -> String {
        match self.seen[0].len() {
            1 => format!("{} by {}{}", case.members, case.link, self.apart(case)),
            _ => self.ring(case),
        }
    }

    fn apart(&self, case: &RingCase) -> String {
        let [link, placement, state, _] = labels(case);
        let state = case.state.map_or(String::new(), |_| format!(" with {state}"));
        let policy = under_policy(case.policy);
        self.differing([format!(" by {link}"), format!(" on {placement}"), state, policy]).concat()
    }

    /// The laws of scaling. In a comparison at one size there is nothing to say.
    pub(crate) fn scaling(&self, record: &RingRecord) -> Vec<String> {
        let is_one = self.header().is_empty();
        let line = |series: &Series| {
            let first = series.cases.first().and_then(|case| record.cases.get(*case));
            let apart = first.map_or_else(String::new, |summary| self.apart(&summary.case));
            format!("scaling{apart}: {}", series.in_words)
        };
        record.found.scaling.iter().filter(|s| is_one || s.cases.len() > 1).map(line).collect()
    }
}

/// What the placements of a sweep are, and what a hop between CPUs consists of.
pub(crate) fn placements(record: &RingRecord) -> Option<String> {
    let relations = record.cases.iter().filter_map(|summary| summary.case.placement.relation());
    let words = |relation: CpuRelation| format!("{relation}: {}", relation.in_words());
    let words: Vec<String> = each_once(relations).into_iter().map(words).collect();
    (!words.is_empty()).then(|| {
        format!(
            "placements: {}; members take turns on the pair\nbetween CPUs: a switch is to or from \
             idle; a hop wakes another CPU, with the interrupt between processors and leaving the \
             idle state; switches/hop are counted there too",
            words.join("; ")
        )
    })
}

/// A line of what is known of each case; none where nothing is.
pub(crate) fn listed<'a>(
    what: &str,
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    words: impl Fn(&CaseSummary) -> Option<String>,
) -> Option<String> {
    let all: Vec<String> = cases.into_iter().filter_map(words).collect();
    (!all.is_empty()).then(|| format!("{what}: {}", all.join("; ")))
}

/// Rings in which the kernel counted hardly a switch: their hops are none.
pub(crate) fn not_switching<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    name: impl Fn(&RingCase) -> String,
) -> Option<String> {
    let line = listed("does not switch", cases, |case| {
        let switches = case.switches_per_hop.filter(|_| case.does_not_switch)?;
        Some(format!("{} ({:.3} switches/hop)", name(&case.case), switches.value))
    });
    line.map(|line| format!("{line}: the cost of a hop there is not that of a switch"))
}

/// A row for each ring of several whose members have a state, with the cost of its switch and what
/// that is above state none; nothing without such rings.
pub(crate) fn states(record: &RingRecord, comparison: &Comparison) -> Option<Printout> {
    let rings: Vec<(&CaseSummary, RegisterState)> = comparison
        .in_order(record)
        .into_iter()
        .filter_map(|of| Some((of, of.case.state.filter(|_| of.case.members > 1)?)))
        .collect();
    let states: BTreeSet<RegisterState> = rings.iter().map(|(_, state)| *state).collect();
    let row = |(of, state): &(&CaseSummary, RegisterState)| {
        let (cost, above) = (of.ns_per_switch_above_solo, of.ns_per_switch_above_none);
        let [above, its_interval] = match state {
            RegisterState::None => cells!["-", "(none)"],
            _ => cells![told_value(difference(above)), told_interval(difference(above))],
        };
        let ring = comparison.ring(&RingCase { state: None, ..of.case.clone() });
        cells![state.to_string(), ring, value(cost), interval(cost), above, its_interval]
    };
    let columns = ["registers", "ring", "ns/switch", "interval", "above none", "interval"];
    let words = states.iter().map(|state| format!("\n{state}: {}", state.in_words()));
    (!rings.is_empty()).then(|| {
        let legend = "\n\nabove none: ns/switch less that of none, paired within rounds, median and \
                      95 % interval";
        printout![Table::new(columns, rings.iter().map(row)), legend, words.collect::<String>()]
    })
}

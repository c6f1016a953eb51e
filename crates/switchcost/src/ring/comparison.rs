//! What a report says differently when a run compares links, placements or states of the registers.

use model::machine::Relation;
use model::record::{CaseSummary, Record};
use model::ring::{Case, Placement};
use model::state::State;

use crate::terminal::{self, figure, interval_words};

/// What the rings of a run differ in beside their size, each in the order of its plan.
pub(crate) struct Comparison<'a> {
    links: Vec<&'a str>,
    placements: Vec<&'a Placement>,
    states: Vec<Option<State>>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn of(record: &'a Record) -> Self {
        let cases = || record.cases.iter().map(|summary| &summary.case);
        Self {
            links: each(cases().map(|case| &*case.link)),
            placements: each(cases().map(|case| &case.placement)),
            states: each(cases().map(|case| case.state)),
        }
    }

    fn is_one(&self) -> bool {
        self.links.len() < 2 && self.placements.len() < 2 && self.states.len() < 2
    }

    /// First columns, which tables of one kind of ring do not have.
    pub(crate) fn header(&self) -> Vec<String> {
        self.columns("link", "placement", "registers")
    }

    /// What stands in them.
    pub(crate) fn cells(&self, case: &Case) -> Vec<String> {
        let state = case.state.map_or("-", State::name);
        self.columns(&case.link, &placement_words(&case.placement), state)
    }

    fn columns(&self, link: &str, placement: &str, state: &str) -> Vec<String> {
        let all = [
            (self.links.len(), link),
            (self.placements.len(), placement),
            (self.states.len(), state),
        ];
        all.iter().filter(|(many, _)| *many > 1).map(|(_, cell)| (*cell).to_string()).collect()
    }

    /// The cases link by link, then state by state, then placement by placement: a plan has all solo
    /// rings first.
    pub(crate) fn in_order(&self, record: &'a Record) -> Vec<&'a CaseSummary> {
        let mut cases: Vec<&CaseSummary> = record.cases.iter().collect();
        cases.sort_by_key(|summary| {
            let Case { link, placement, state, .. } = &summary.case;
            (
                self.links.iter().position(|known| known == link),
                self.states.iter().position(|known| known == state),
                self.placements.iter().position(|known| *known == placement),
            )
        });
        cases
    }

    pub(crate) fn in_words(&self) -> String {
        match self.links.len() {
            ..=3 => self.links.join(", "),
            many => format!("{many} links"),
        }
    }

    /// Which CPUs: of a sweep those that the table tells one by one.
    pub(crate) fn placed(&self) -> String {
        if self.placements.len() > 1 {
            return "placement sweep".to_string();
        }
        let placement = |placement: &&Placement| {
            let cpus: Vec<String> = placement.cpus().iter().map(u32::to_string).collect();
            format!("placement {placement} (CPU {})", cpus.join(","))
        };
        self.placements.first().map_or_else(String::new, placement)
    }

    /// A ring by its size, and by whatever else tells it from others.
    pub(crate) fn ring(&self, case: &Case) -> String {
        format!("{}{}", case.members, self.apart(case))
    }

    /// The same for a table that tells the states apart itself.
    pub(crate) fn ring_but_state(&self, case: &Case) -> String {
        self.ring(&Case { state: None, ..case.clone() })
    }

    /// The same with its link, whether there are others or not.
    pub(crate) fn ring_and_link(&self, case: &Case) -> String {
        match self.links.len() {
            1 => format!("{} by {}{}", case.members, case.link, self.apart(case)),
            _ => self.ring(case),
        }
    }

    fn apart(&self, case: &Case) -> String {
        let mut words = String::new();
        if self.links.len() > 1 {
            words.push_str(&format!(" by {}", case.link));
        }
        if self.placements.len() > 1 {
            words.push_str(&format!(" on {}", placement_words(&case.placement)));
        }
        if let Some(state) = case.state.filter(|_| self.states.len() > 1) {
            words.push_str(&format!(" with {state}"));
        }
        words
    }

    /// The laws of scaling. In a comparison at one size there is nothing to say.
    pub(crate) fn scaling(&self, record: &Record) -> Vec<String> {
        let spoken = record.scaling.iter().filter(|s| self.is_one() || s.cases.len() > 1);
        let line = |series: &model::record::Series| {
            let first = series.cases.first().and_then(|case| record.cases.get(*case));
            let apart = first.map_or_else(String::new, |summary| self.apart(&summary.case));
            format!("scaling{apart}: {}", series.in_words)
        };
        spoken.map(line).collect()
    }

    /// What the placements of a sweep are, and what a hop between CPUs consists of.
    pub(crate) fn legend(&self) -> Vec<String> {
        let of = |placement: &&Placement| placement.relation();
        let relations: Vec<Relation> = self.placements.iter().filter_map(of).collect();
        if relations.is_empty() {
            return Vec::new();
        }
        let words = |relation: &Relation| format!("{relation}: {}", relation.in_words());
        let words: Vec<String> = relations.iter().map(words).collect();
        vec![
            format!("placements: {}; members take turns on the pair", words.join("; ")),
            "between CPUs a switch is to and from idle, and a hop is a wake-up of another CPU: with the \
             interrupt\n  between processors that it takes, and leaving the idle state; switches/hop are \
             counted there too"
                .to_string(),
        ]
    }
}

/// Each once, in their order.
fn each<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// A placement as tables of several tell it: `same` alone would not say where.
fn placement_words(placement: &Placement) -> String {
    match placement {
        Placement::Same { cpu } => format!("same:{cpu}"),
        other => other.to_string(),
    }
}

/// Rings in which the kernel counted hardly a switch: their hops are none.
pub(crate) fn not_switching<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    name: impl Fn(&Case) -> String,
) -> Option<String> {
    let words = |case: &CaseSummary| {
        let switches = case.switches_per_hop.filter(|_| case.does_not_switch)?;
        Some(format!("{} ({:.3} switches/hop)", name(&case.case), switches.value))
    };
    let all: Vec<String> = cases.into_iter().filter_map(words).collect();
    let all = all.join(", ");
    (!all.is_empty())
        .then(|| format!("does not switch: {all}: what a hop costs there is no switch"))
}

/// A row for each ring of several whose members have a state, with the cost of its switch and what that
/// is above state none; nothing without such rings.
pub(crate) fn states(record: &Record) -> Option<String> {
    let comparison = Comparison::of(record);
    let has_state = |case: &&CaseSummary| case.case.members > 1 && case.case.state.is_some();
    let rings: Vec<_> = comparison.in_order(record).into_iter().filter(has_state).collect();
    if rings.is_empty() {
        return None;
    }
    let columns = ["registers", "ring", "ns/switch", "interval", "above none", "interval"];
    let mut table = terminal::table(columns.map(String::from).to_vec());
    for case in &rings {
        table.add_row(states_row(&comparison, case));
    }
    terminal::align(&mut table);
    let mut states: Vec<State> = rings.iter().filter_map(|case| case.case.state).collect();
    states.sort();
    states.dedup();
    let words = states.iter().map(|state| format!("{state}: {}", state.in_words()));
    Some(format!(
        "{table}\n\nabove none: ns/switch less that of none, paired within rounds, median and 95 % interval\n{}",
        words.collect::<Vec<_>>().join("\n")
    ))
}

fn states_row(comparison: &Comparison, case: &CaseSummary) -> Vec<String> {
    let state = case.case.state;
    let pair = |estimate: Option<&model::estimate::Estimate>| {
        let value = figure(estimate.map(|e| e.value));
        [value, estimate.map_or("-".to_string(), interval_words)]
    };
    let above = match state {
        Some(State::None) => ["-".to_string(), "(none)".to_string()],
        _ => pair(case.ns_per_switch_above_none.as_ref()),
    };
    let name = state.map_or("-", State::name).to_string();
    let ring = comparison.ring_but_state(&case.case);
    let cost = pair(case.ns_per_switch_above_solo.as_ref());
    [vec![name, ring], cost.to_vec(), above.to_vec()].concat()
}

//! Settings that a run compares (links, placements, states of the registers, policies), and the
//! columns and words that a report then has for them.

use analysis::record::RingRecord;
use analysis::summary::CaseSummary;
use rundata::placement::Placement;
use rundata::ring::{Flight, Policy, RegisterState, RingCase};

use crate::base::values::each_once;
use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    answer_interval, answer_value, cpu_list, difference, interval, value,
};

/// Setting in which rings of one size may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    Rings,
    Link,
    Placement,
    Registers,
    Policy,
    Flight,
}

impl Setting {
    /// Every setting, in the order of their columns.
    const ALL: [Self; 6] =
        [Self::Rings, Self::Link, Self::Placement, Self::Registers, Self::Policy, Self::Flight];

    /// Returns the heading of its column.
    fn name(self) -> &'static str {
        match self {
            Self::Rings => "rings",
            Self::Link => "link",
            Self::Placement => "placement",
            Self::Registers => "registers",
            Self::Policy => "policy",
            Self::Flight => "under way",
        }
    }

    /// Returns what a ring has, as its column says it.
    fn value(self, case: &RingCase) -> String {
        match self {
            Self::Rings => case.rings().to_string(),
            Self::Link => case.link.clone(),
            Self::Placement => match &case.placement {
                // `same` alone would not say where.
                Placement::Same { cpu } => format!("same:{cpu}"),
                other => other.to_string(),
            },
            Self::Registers => case.state.map_or("-", RegisterState::name).to_string(),
            Self::Policy => case.policy.to_string(),
            Self::Flight => case.flight.unwrap_or(Flight::Items(1)).to_string(),
        }
    }

    /// Returns what a ring has, as a phrase behind its size: ` by futex`.
    fn phrase(self, case: &RingCase) -> String {
        match self {
            Self::Rings if case.has_several_rings() => format!(" in {} rings", case.rings()),
            Self::Rings => String::new(),
            Self::Link => format!(" by {}", case.link),
            Self::Placement => format!(" on {}", self.value(case)),
            Self::Registers => match case.state {
                Some(state) => format!(" with {state}"),
                None => String::new(),
            },
            Self::Policy => under_policy(case.policy),
            Self::Flight => match case.flight {
                Some(flight) => format!(" with {}", flight.in_words()),
                None => String::new(),
            },
        }
    }
}

/// Returns ` under fifo`; empty for the normal policy, which goes without saying.
pub(crate) fn under_policy(policy: Policy) -> String {
    if policy == Policy::Other { String::new() } else { format!(" under {policy}") }
}

/// Values of each setting that the rings of a run have, in the order of its plan.
pub(crate) struct RingSettings {
    values: Vec<(Setting, Vec<String>)>,
    /// Placement of the most rings that run at the same time; absent without several rings.
    placement_of_several: Option<String>,
}

impl RingSettings {
    pub(crate) fn from_record(record: &RingRecord) -> Self {
        let mut values = Vec::new();
        for setting in Setting::ALL {
            let all = record.cases.iter().map(|summary| setting.value(&summary.case));
            values.push((setting, each_once(all)));
        }
        let mut several: Vec<&RingCase> =
            record.cases.iter().map(|summary| &summary.case).collect();
        several.retain(|case| case.has_several_rings());
        let most = several.into_iter().max_by_key(|case| case.rings());
        let placement_of_several = most.map(|case| {
            let name = case.placement_name();
            let name = if name.starts_with("pairs") { "pairs".to_string() } else { name };
            format!("{name} (CPU {})", cpu_list(&case.cpus()))
        });
        Self { values, placement_of_several }
    }

    /// Returns what the rings have of a setting.
    fn values_of(&self, setting: Setting) -> &[String] {
        match self.values.iter().find(|(known, _)| *known == setting) {
            Some((_, values)) => values,
            None => &[],
        }
    }

    /// Returns whether rings differ in a setting.
    fn differs(&self, setting: Setting) -> bool {
        self.values_of(setting).len() > 1
    }

    /// Returns the place of a ring's value of a setting in the order of the plan.
    fn rank(&self, setting: Setting, case: &RingCase) -> Option<usize> {
        let value = setting.value(case);
        self.values_of(setting).iter().position(|known| *known == value)
    }

    /// Returns the settings in which rings differ.
    fn differing(&self) -> Vec<Setting> {
        let mut settings = Setting::ALL.to_vec();
        settings.retain(|setting| self.differs(*setting));
        settings
    }

    /// Returns the heads of the first columns, which tables of one kind of ring do not have.
    pub(crate) fn header(&self) -> Vec<String> {
        self.columns().into_iter().map(|setting| setting.name().to_string()).collect()
    }

    /// Returns the cells of these columns.
    pub(crate) fn cells(&self, case: &RingCase) -> Vec<String> {
        self.columns().into_iter().map(|setting| setting.value(case)).collect()
    }

    /// Returns the settings that have columns. The number of rings has one as a measure.
    fn columns(&self) -> Vec<Setting> {
        let mut columns = self.differing();
        columns.retain(|setting| *setting != Setting::Rings);
        columns
    }

    /// Returns whether rings differ in more than their size and their policy.
    pub(crate) fn has_settings(&self) -> bool {
        self.differing().into_iter().any(|setting| setting != Setting::Policy)
    }

    /// Returns the policies for a heading: `policy other`, `policies other and fifo`.
    pub(crate) fn policies(&self) -> String {
        match self.values_of(Setting::Policy) {
            [only] => format!("policy {only}"),
            many => format!("policies {}", many.join(" and ")),
        }
    }

    /// Returns the place of a ring's policy in the order of the plan.
    pub(crate) fn policy_rank(&self, case: &RingCase) -> Option<usize> {
        self.rank(Setting::Policy, case)
    }

    /// Returns the cases link by link, then policy by policy, state by state, placement by
    /// placement: a plan has all solo rings first.
    pub(crate) fn in_order<'a>(&self, record: &'a RingRecord) -> Vec<&'a CaseSummary> {
        let order = [
            Setting::Link,
            Setting::Policy,
            Setting::Registers,
            Setting::Placement,
            Setting::Flight,
        ];
        let mut cases: Vec<&CaseSummary> = record.cases.iter().collect();
        cases.sort_by_key(|summary| {
            (order.map(|setting| self.rank(setting, &summary.case)), summary.case.rings())
        });
        cases
    }

    /// Returns links and placement, for a heading. The CPUs of a sweep stand in the table.
    pub(crate) fn links_and_placement(&self, case: &RingCase) -> (String, String) {
        let links = self.values_of(Setting::Link);
        let links = match links.len() {
            ..=3 => links.join(", "),
            many => format!("{many} links"),
        };
        let placement = if let Some(placement) = &self.placement_of_several {
            placement.clone()
        } else if self.differs(Setting::Placement) {
            "sweep".to_string()
        } else {
            format!("{} (CPU {})", case.placement, cpu_list(&case.placement.cpus()))
        };
        (links, placement)
    }

    /// Returns a ring by its size, and by whatever else tells it from others: `2 by futex`.
    pub(crate) fn ring(&self, case: &RingCase) -> String {
        format!("{}{}", case.members, self.phrases(case))
    }

    /// Like [`Self::ring`], with its link even if there is no other.
    pub(crate) fn ring_and_link(&self, case: &RingCase) -> String {
        match self.values_of(Setting::Link).len() {
            1 => format!("{} by {}{}", case.members, case.link, self.phrases(case)),
            _ => self.ring(case),
        }
    }

    fn phrases(&self, case: &RingCase) -> String {
        self.differing().into_iter().map(|setting| setting.phrase(case)).collect()
    }

    /// Returns the laws of scaling. In a comparison at one size there is nothing to say.
    pub(crate) fn scaling(&self, record: &RingRecord) -> Vec<String> {
        let is_comparison = !self.differing().is_empty();
        let mut lines = Vec::new();
        for series in &record.found.scaling {
            if is_comparison && series.cases.len() <= 1 {
                continue;
            }
            let phrases = match series.cases.first() {
                Some(case) if *case < record.cases.len() => self.phrases(&record.cases[*case].case),
                _ => String::new(),
            };
            lines.push(format!("scaling{phrases}: {}", series.in_words));
        }
        lines
    }
}

/// Returns what the placements of a sweep are, and what a hop between CPUs consists of; `None`
/// without a sweep.
pub(crate) fn placements(record: &RingRecord) -> Option<String> {
    let relations = record.cases.iter().filter_map(|summary| summary.case.placement.relation());
    let mut words = Vec::new();
    for relation in each_once(relations) {
        words.push(format!("{relation}: {}", relation.in_words()));
    }
    if words.is_empty() {
        return None;
    }
    Some(format!(
        "placements: {}; members take turns on the pair\nbetween CPUs: a switch is to or from \
         idle; a hop wakes another CPU, with the interrupt between processors and leaving the \
         idle state; switches/hop are counted there too",
        words.join("; ")
    ))
}

/// Returns a line of what is known of each case; `None` where nothing is.
pub(crate) fn listed<'a>(
    what: &str,
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    words: impl Fn(&CaseSummary) -> Option<String>,
) -> Option<String> {
    let mut known = Vec::new();
    for case in cases {
        known.extend(words(case));
    }
    if known.is_empty() { None } else { Some(format!("{what}: {}", known.join("; "))) }
}

/// Returns a line on rings in which the kernel counted hardly a switch: their hops are none.
pub(crate) fn not_switching<'a>(
    cases: impl IntoIterator<Item = &'a CaseSummary>,
    name: impl Fn(&RingCase) -> String,
) -> Option<String> {
    let line = listed("does not switch", cases, |summary| {
        let switches = summary.switches_per_hop?;
        if !summary.does_not_switch {
            return None;
        }
        Some(format!("{} ({:.3} switches/hop)", name(&summary.case), switches.value))
    });
    Some(line? + ": the cost of a hop there is not that of a switch")
}

/// Returns a table of the rings whose members have a state, with the cost of a switch and what that
/// is above state none; `None` without such rings.
pub(crate) fn states(record: &RingRecord, settings: &RingSettings) -> Option<Printout> {
    let mut rows = Vec::new();
    let mut states: Vec<RegisterState> = Vec::new();
    for summary in settings.in_order(record) {
        let Some(state) = summary.case.state else { continue };
        if summary.case.members == 1 {
            continue;
        }
        states.push(state);
        let above = difference(summary.ns_per_switch_above_none);
        let [above, its_interval] = match state {
            RegisterState::None => cells!["-", "(none)"],
            _ => cells![answer_value(above), answer_interval(above)],
        };
        let ring = settings.ring(&RingCase { state: None, ..summary.case.clone() });
        let cost = summary.ns_per_switch_above_solo;
        rows.push(cells![
            state.to_string(),
            ring,
            value(cost),
            interval(cost),
            above,
            its_interval
        ]);
    }
    if rows.is_empty() {
        return None;
    }
    states.sort_unstable();
    states.dedup();
    let columns = ["registers", "ring", "ns/switch", "interval", "above none", "interval"];
    let mut legend =
        "\n\nabove none: ns/switch less that of none, paired within rounds, median and \
                      95 % interval"
            .to_string();
    for state in states {
        legend += &format!("\n{state}: {}", state.in_words());
    }
    Some(printout![Table::new(columns, rows), legend])
}

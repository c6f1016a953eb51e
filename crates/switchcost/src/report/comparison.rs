//! What a report says differently when a run compares links.

use model::case::Case;
use model::record::{CaseSummary, Record};

/// The links of a run, in the order of its plan.
pub(super) struct Comparison<'a> {
    links: Vec<&'a str>,
}

impl<'a> Comparison<'a> {
    pub(super) fn of(record: &'a Record) -> Self {
        let mut links: Vec<&str> = Vec::new();
        for case in &record.cases {
            if !links.contains(&&*case.case.link) {
                links.push(&case.case.link);
            }
        }
        Self { links }
    }

    fn is_one(&self) -> bool {
        self.links.len() < 2
    }

    /// A first column, which tables of one link do not have.
    pub(super) fn column(&self, cell: &str) -> Vec<String> {
        if self.is_one() { Vec::new() } else { vec![cell.to_string()] }
    }

    /// The cases link by link: a plan has all solo rings first.
    pub(super) fn in_order(&self, record: &'a Record) -> impl Iterator<Item = &'a CaseSummary> {
        let of = |link: &'a str| record.cases.iter().filter(move |case| case.case.link == link);
        self.links.iter().copied().flat_map(of)
    }

    pub(super) fn in_words(&self) -> String {
        match self.links.len() {
            ..=3 => self.links.join(", "),
            many => format!("{many} links"),
        }
    }

    /// A ring by its size, and by its link where there are others.
    pub(super) fn ring(&self, case: &Case) -> String {
        match self.is_one() {
            true => case.members.to_string(),
            false => format!("{} by {}", case.members, case.link),
        }
    }

    /// The laws of scaling. In a comparison of links at one size there is nothing to say.
    pub(super) fn scaling(&self, record: &Record) -> Vec<String> {
        let spoken = record.scaling.iter().filter(|s| self.is_one() || s.cases.len() > 1);
        let line = |series: &model::record::Series| {
            let link = series.cases.first().map_or("", |case| &*record.cases[*case].case.link);
            match self.is_one() {
                true => format!("scaling: {}", series.in_words),
                false => format!("scaling by {link}: {}", series.in_words),
            }
        };
        spoken.map(line).collect()
    }
}

/// Rings in which the kernel counted hardly a switch: their hops are none.
pub(super) fn not_switching(record: &Record) -> Option<String> {
    let words = |case: &CaseSummary| {
        let switches = case.switches_per_hop.filter(|_| case.does_not_switch)?;
        let Case { members, link, .. } = &case.case;
        Some(format!("{members} by {link} ({:.3} switches/hop)", switches.value))
    };
    let all: Vec<String> = record.cases.iter().filter_map(words).collect();
    let all = all.join(", ");
    (!all.is_empty())
        .then(|| format!("does not switch: {all}: what a hop costs there is no switch"))
}

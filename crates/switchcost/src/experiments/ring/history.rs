//! The cost of the smallest ring of a run beside the published machines that measured the same.

use analysis::estimate::Estimate;
use analysis::marked::MarkedText;
use analysis::record::RingRecord;
use analysis::results::{PublishedCase, PublishedMachine, Quantity, published_machines};
use analysis::summary::CaseSummary;
use rundata::ring::RingCase;
use rundata::words;

use crate::report::printout::{Printout, printout};
use crate::report::table::{Table, cells};
use crate::report::terminal::with_mark;

/// A machine with what its ring costs: of a switch where that was published, else of a hop.
struct PublishedRing {
    machine: String,
    year: u32,
    cost: &'static str,
    published_ns: f64,
    /// Ratio of the published cost to this machine's, with the mark of the latter; absent where
    /// that is not known.
    times: Option<MarkedText>,
}

/// Builds a table of the published machines that measured the smallest ring of the record, the
/// fastest first; `None` where there is no such machine.
pub(super) fn beside_published(record: &RingRecord) -> Option<Printout> {
    let rings = record.cases.iter().filter(|ring| ring.case.members > 1);
    let own = rings.min_by_key(|ring| ring.case.members)?;
    let mut rows = Vec::new();
    for machine in published_machines().ok()? {
        if let Some(row) = published_ring(&machine, own) {
            rows.push(row);
        }
    }
    rows.sort_by(|one, other| one.published_ns.total_cmp(&other.published_ns));
    if rows.is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    for row in rows {
        let times = row.times.unwrap_or("-".into());
        let published = format!("{} a {}", words::time(row.published_ns), row.cost);
        lines.push(cells![row.machine, row.year.to_string(), published, times]);
    }
    let table = Table::new(["published machine", "year", "cost", "times this one"], lines);
    let table = table.texts(|column| column == 0).first_to_go(&["year"]);
    Some(printout![table, "\n"])
}

fn published_ring(machine: &PublishedMachine, own: &CaseSummary) -> Option<PublishedRing> {
    let case = machine.cases.iter().find(|case| is_same_case(case, &own.case))?;
    let costs = [
        (Quantity::NsPerSwitchAboveSolo, own.ns_per_switch_above_solo),
        (Quantity::NsPerHop, own.ns_per_hop),
    ];
    for (quantity, own) in costs {
        if let Some(published_ns) = case.figures.get(&quantity) {
            return Some(PublishedRing {
                machine: machine.machine.clone(),
                year: machine.year,
                cost: quantity.in_words(),
                published_ns: *published_ns,
                times: times_own(*published_ns, own),
            });
        }
    }
    None
}

/// Returns how many times this machine's cost goes into the published one.
fn times_own(published_ns: f64, own: Option<Estimate>) -> Option<MarkedText> {
    let own = own?.answer_cost().ok()?;
    Some(with_mark(&own, &words::times(published_ns / own.value())))
}

fn is_same_case(case: &PublishedCase, own: &RingCase) -> bool {
    match &case.ring {
        Some(ring) => is_same_ring(ring, own),
        None => false,
    }
}

/// Returns whether both are rings of one size and kind by one link, with the same work. The policy
/// may differ: few of the papers' systems had another.
fn is_same_ring(one: &RingCase, other: &RingCase) -> bool {
    one.members == other.members
        && one.kind == other.kind
        && one.link == other.link
        && one.work.map(|work| (work.bytes, work.op))
            == other.work.map(|work| (work.bytes, work.op))
}

#[cfg(test)]
mod tests {
    use rundata::run::Run;

    use super::*;

    #[test]
    fn machines_that_measured_the_same_ring_are_listed_fastest_first() {
        let run = Run::parse(include_str!("../../../../rundata/tests/fixtures/run-v1.jsonl"))
            .expect("a run file");
        let mut record = RingRecord::from_run(&run);
        let text = beside_published(&record).expect("rings of two by pipe were published");
        let text = text.to_string();
        let [fast, slow] = ["Sun-4/470", "370/4381"].map(|name| text.find(name).expect(name));
        assert!(fast < slow, "{text}");
        assert!(text.contains("179 us a hop"), "{text}");
        for case in &mut record.cases {
            case.case.link = "futex".to_string();
        }
        assert!(beside_published(&record).is_none());
    }
}

//! Published figures as results: the machines of 1984 to 2007, and those of today.

use std::collections::{BTreeMap, BTreeSet};

use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::placement::Placement;
use rundata::ring::{Policy, RingCase};
use schemars::JsonSchema;
use serde::Serialize;

use super::runs::ring_labels;
use super::{CaseFigure, CaseResults, ComparisonSide, Labels, Origin, Quantity, Results};
use crate::published::PublishedError;
use crate::published::hines2000::{self, CallCycles};
use crate::published::li2007::{self, LiFigures, TotalCost};
use crate::published::modern::{self, ModernFigure, ModernRow};
use crate::published::sloan1992::{self, SloanRow};
use crate::published::venix1984::{self, VenixProcessor};

/// Prefix of a published machine's name where a command takes runs, too.
pub const PUBLISHED_PREFIX: &str = "history:";

/// A case of a publication.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PublishedCase {
    /// The case in words.
    pub title: String,
    /// The labels by which it is paired with a case of a run.
    pub labels: BTreeMap<String, String>,
    /// The figures in nanoseconds.
    pub figures: BTreeMap<Quantity, f64>,
    /// Lower and upper end of the intervals of the figures that were printed with one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<Quantity, (f64, f64)>,
    /// The ring; absent for a call.
    #[serde(skip)]
    pub ring: Option<RingCase>,
}

/// A figure that no single case has, so that it is shown and not compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Range")]
pub struct PublishedRange {
    /// The subject of the figure.
    #[serde(rename = "of")]
    pub subject: String,
    /// Lower end in nanoseconds.
    pub low_ns: f64,
    /// Upper end in nanoseconds.
    pub high_ns: f64,
}

/// A machine with published figures.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Published")]
pub struct PublishedMachine {
    /// Name that follows `history:`.
    pub name: String,
    /// The machine.
    pub machine: String,
    /// Operating system of the machine.
    pub system: String,
    /// Year of the publication.
    pub year: u32,
    /// Authors and title, or file.
    pub source: String,
    /// The experiment of this program that measures the same.
    pub experiment: Experiment,
    /// Cases that can be compared.
    pub cases: Vec<PublishedCase>,
    /// Figures that are shown beside the cases.
    pub ranges: Vec<PublishedRange>,
    /// Notes for a reader who compares.
    pub notes: Vec<String>,
}

/// Returns all published machines, the oldest first.
pub fn published_machines() -> Result<Vec<PublishedMachine>, PublishedError> {
    let mut machines = venix_machines()?;
    machines.extend(sloan_machines()?);
    machines.push(hines_machine());
    machines.push(li_machine()?);
    machines.extend(modern_machines()?);
    Ok(machines)
}

impl PublishedMachine {
    /// Returns the figures as results, which a comparison takes.
    pub fn to_results(&self) -> Results {
        let mut cases = Vec::new();
        for (number, case) in self.cases.iter().enumerate() {
            cases.push(self.case_results(number, case));
        }
        let side = ComparisonSide {
            name: format!("{PUBLISHED_PREFIX}{}", self.name),
            label: self.name.clone(),
            experiment: self.experiment.to_string(),
            origin: Origin::Publication { source: format!("{} ({})", self.source, self.year) },
            machine: format!("{}, {}", self.machine, self.system),
            launches: 0,
        };
        Results {
            side,
            machine: Machine::default(),
            noise: None,
            clock_ghz: None,
            seed: 0,
            launch_scatter: 0.0,
            case_scatters: Vec::new(),
            warnings: Vec::new(),
            trace: None,
            cases,
        }
    }

    fn case_results(&self, number: usize, case: &PublishedCase) -> CaseResults {
        let labels = match &case.ring {
            // In the order in which runs have them.
            Some(ring) => ring_labels(ring),
            None => case.labels.clone().into_iter().collect(),
        };
        let mut figures = BTreeMap::new();
        for (quantity, ns) in &case.figures {
            figures.insert(*quantity, CaseFigure::Published(*ns));
        }
        CaseResults {
            number,
            experiment: self.experiment.name(),
            title: case.title.clone(),
            labels,
            details: Labels::new(),
            figures,
            summary: None,
            failure: None,
            iterations: Vec::new(),
        }
    }

    /// Builds a machine without figures. Its name in `history:` is `name` in lower case, with `-`
    /// for blanks.
    fn without_figures(
        publication: &Publication,
        name: &str,
        machine: String,
        system: &str,
    ) -> Self {
        let words: Vec<String> = name.split_whitespace().map(str::to_lowercase).collect();
        Self {
            name: words.join("-"),
            machine,
            system: system.to_string(),
            year: publication.year,
            source: publication.source.to_string(),
            experiment: publication.experiment,
            cases: Vec::new(),
            ranges: Vec::new(),
            notes: vec![publication.note.to_string()],
        }
    }
}

/// Facts that all machines of a publication share.
struct Publication {
    year: u32,
    source: &'static str,
    experiment: Experiment,
    note: &'static str,
}

const VENIX: Publication = Publication {
    year: 1984,
    source: "VenturCom, VENIX Kernel Response Time",
    experiment: Experiment::Ring,
    note: "compare with `ring --members 2 --link handler-signal`",
};

const SLOAN: Publication = Publication {
    year: 1992,
    source: "Sloan, Context Switch Time Scalability: Benchmark Results",
    experiment: Experiment::Ring,
    note: "seconds are printed whole; there was no ring of one, so a hop is compared, with all \
        its other costs",
};

const HINES: Publication = Publication {
    year: 2000,
    source: "Hines, Wyatt and Chang, Increasing Timing Resolution for Processes and Threads in \
         Linux",
    experiment: Experiment::ClockOverhead,
    note: "means of single calls; today's are compared by calls in a row, and getpinfo, a call \
         of their kernel, has no counterpart",
};

const LI: Publication = Publication {
    year: 2007,
    source: "Li, Ding and Shen, Quantifying the Cost of Context Switch",
    experiment: Experiment::Cost,
    note: "measured under SCHED_FIFO on one CPU, as `switchcost cost` does where it may",
};

const MODERN: Publication = Publication {
    year: 0,
    source: "switchcost, data/modern.csv",
    experiment: Experiment::Ring,
    note: "measured by this program; `compare` takes its figures as printed, without intervals: \
        two runs are compared better",
};

/// Builds a ring of processes without work under SCHED_OTHER. Several CPUs are those among which
/// the scheduler chose.
fn ring(members: u32, link: &str, cpus: u32) -> RingCase {
    let placement = if cpus == 1 {
        Placement::Same { cpu: 0 }
    } else {
        Placement::Free { cpus: (0..cpus).collect() }
    };
    RingCase { link: link.to_string(), ..RingCase::of_processes(members, placement) }
}

fn ring_case<const N: usize>(ring: RingCase, figures: [(Quantity, f64); N]) -> PublishedCase {
    PublishedCase {
        title: ring.title(),
        labels: ring_labels(&ring).into_iter().collect(),
        figures: figures.into(),
        intervals: BTreeMap::new(),
        ring: Some(ring),
    }
}

/// Builds the case of a call without figures, with the labels that its trial has. `kind` is the kind
/// of that trial.
fn call_case(kind: &str, call: &str, policy: Policy) -> PublishedCase {
    let mut labels = BTreeMap::new();
    for (name, value) in [("of", kind), ("call", call), ("policy", policy.name())] {
        labels.insert(name.to_string(), value.to_string());
    }
    PublishedCase {
        title: call.to_string(),
        labels,
        figures: BTreeMap::new(),
        intervals: BTreeMap::new(),
        ring: None,
    }
}

/// Returns the machines of 1992. Two of one model are told apart by their operating systems.
fn sloan_machines() -> Result<Vec<PublishedMachine>, PublishedError> {
    let rows = sloan1992::published()?;
    let mut systems_by_model: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in &rows {
        systems_by_model.entry(&row.model).or_default().insert(&row.os);
    }
    let mut machines = Vec::new();
    for rows in rows.chunk_by(|row, next| row.machine() == next.machine()) {
        let SloanRow { vendor, model, os, .. } = &rows[0];
        let is_only = systems_by_model.get(model.as_str()).is_some_and(|known| known.len() == 1);
        let name = if is_only { model.clone() } else { format!("{model} {os}") };
        let mut machine =
            PublishedMachine::without_figures(&SLOAN, &name, format!("{vendor} {model}"), os);
        for row in rows {
            let hop = (Quantity::NsPerHop, row.ns_per_hop(row.real_s));
            let cpu_hop = (Quantity::CpuNsPerHop, row.ns_per_hop(row.cpu_s));
            let ring = ring(row.processes.get(), "pipe", row.cpus.get());
            machine.cases.push(ring_case(ring, [hop, cpu_hop]));
        }
        machines.push(machine);
    }
    Ok(machines)
}

/// Returns the processors of 1984. The memorandum's simsig is a hop of a ring of one, half a loop of
/// its twosig a hop of a ring of two, and their difference the switch.
fn venix_machines() -> Result<Vec<PublishedMachine>, PublishedError> {
    let mut machines = Vec::new();
    for processor in venix1984::published()? {
        let VenixProcessor { name, clock_mhz, .. } = &processor;
        let clock = clock_mhz.map_or(String::new(), |mhz| format!(", {mhz} MHz"));
        let words = format!("{name}{clock}");
        let mut machine = PublishedMachine::without_figures(&VENIX, name, words, "VENIX");
        let solo_hop = (Quantity::NsPerHop, processor.signal_ms * 1e6);
        let switch = (Quantity::NsPerSwitchAboveSolo, processor.context_switch_ms * 1e6);
        let hop = (Quantity::NsPerHop, processor.two_process_loop_ms / 2.0 * 1e6);
        machine.cases.push(ring_case(ring(1, "handler-signal", 1), [solo_hop]));
        machine.cases.push(ring_case(ring(2, "handler-signal", 1), [switch, hop]));
        machines.push(machine);
    }
    Ok(machines)
}

/// Returns the machine of 2000, whose costs were printed in cycles of 166 MHz.
fn hines_machine() -> PublishedMachine {
    let words = "Pentium Pro, 166 MHz".to_string();
    let mut machine =
        PublishedMachine::without_figures(&HINES, "pentium-pro/166", words, "Linux 2.2.14");
    for (call, cost) in [("getrusage", hines2000::GETRUSAGE), ("getpinfo", hines2000::GETPINFO)] {
        let CallCycles { mean_cycles, .. } = cost;
        let mut case = call_case("call", call, Policy::Other);
        case.figures.insert(Quantity::TrialNs, hines_ns(mean_cycles));
        machine.cases.push(case);
    }
    let malloc_ns = hines_ns(hines2000::MALLOC_CYCLES);
    let subject = "malloc of a small block, mean".to_string();
    machine.ranges.push(PublishedRange { subject, low_ns: malloc_ns, high_ns: malloc_ns });
    machine
}

/// Converts cycles of the Pentium Pro to nanoseconds.
fn hines_ns(cycles: f64) -> f64 {
    cycles * 1000.0 / 166.0
}

/// Returns the machine of 2007 with its c1. Its total costs are ranges over ranges of arrays.
fn li_machine() -> Result<PublishedMachine, PublishedError> {
    let figures = LiFigures::published()?;
    let words = "dual Pentium Xeon, 2.0 GHz, 512 KB L2".to_string();
    let mut machine = PublishedMachine::without_figures(&LI, "xeon-2.0", words, "Linux 2.6.17");
    let direct = RingCase { policy: Policy::Fifo, ..ring(2, "pipe", 1) };
    let switch = (Quantity::NsPerSwitchAboveSolo, li2007::DIRECT_US * 1e3);
    machine.cases.push(ring_case(direct, [switch]));
    machine.ranges.push(total_range(&figures.first_region));
    machine.ranges.push(total_range(&figures.second_region));
    for total in &figures.by_stride {
        machine.ranges.push(total_range(total));
    }
    Ok(machine)
}

fn total_range(total: &TotalCost) -> PublishedRange {
    let arrays = rundata::words::byte_range(total.smallest_bytes, total.largest_bytes);
    let stride = match total.stride_bytes {
        Some(bytes) => format!("stride {bytes} B"),
        None => "sequential".to_string(),
    };
    PublishedRange {
        subject: format!("switch with arrays of {arrays}, {stride}: {}", total.condition),
        low_ns: total.low_us * 1e3,
        high_ns: total.high_us * 1e3,
    }
}

/// Returns the machines that this program measured. Of a case that two runs have the first counts.
fn modern_machines() -> Result<Vec<PublishedMachine>, PublishedError> {
    let rows = modern::published()?;
    let mut machines = Vec::new();
    for rows in rows.chunk_by(|row, next| row.machine == next.machine) {
        let ModernRow { machine, cpu, kernel, cpus, year, .. } = &rows[0];
        let publication = Publication { year: *year, ..MODERN };
        let words = format!("{cpu}, {cpus} CPUs");
        let system = format!("Linux {kernel}");
        let mut machine = PublishedMachine::without_figures(&publication, machine, words, &system);
        let mut known = BTreeSet::new();
        for rows in rows.chunk_by(ModernRow::is_same_case) {
            let case = modern_case(rows);
            if known.insert(case.labels.clone()) {
                machine.cases.push(case);
            }
        }
        machines.push(machine);
    }
    Ok(machines)
}

/// Builds a case from its rows; a ring has one for its hop and one for its switch.
fn modern_case(rows: &[ModernRow]) -> PublishedCase {
    let row = &rows[0];
    let mut case = match row.processes {
        Some(members) => {
            let ring = ring(members.get(), &row.name, 1);
            ring_case(RingCase { work: row.work(), policy: row.policy, ..ring }, [])
        }
        None if row.what == ModernFigure::Loop => call_case("loop", &row.name, row.policy),
        None => call_case("call", &row.name, row.policy),
    };
    for row in rows {
        let quantity = modern_quantity(row.what);
        case.figures.insert(quantity, row.us * 1e3);
        case.intervals.insert(quantity, (row.low_us * 1e3, row.high_us * 1e3));
    }
    case
}

fn modern_quantity(figure: ModernFigure) -> Quantity {
    match figure {
        ModernFigure::Hop => Quantity::NsPerHop,
        ModernFigure::Switch => Quantity::NsPerSwitchAboveSolo,
        ModernFigure::Call | ModernFigure::Loop => Quantity::TrialNs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_machine_has_a_name_of_its_own_and_figures() {
        let machines = published_machines().unwrap();
        let names: Vec<&str> = machines.iter().map(|machine| &*machine.name).collect();
        assert_eq!(
            names,
            [
                "80186",
                "8088",
                "lsi-11/23",
                "aviion-av400",
                "hp-9000/720",
                "370/4381",
                "rs6000/530-aix-3.1",
                "rs6000/530-aix-3.2",
                "702/e",
                "sun-4/280",
                "sun-4/470",
                "sun-4/630",
                "pentium-pro/166",
                "xeon-2.0",
                "amd-epyc-25/17",
                "amd-epyc-26/2",
            ]
        );
        assert!(machines.is_sorted_by_key(|machine| machine.year));
        assert!(machines.iter().all(|machine| !machine.cases.is_empty()));
        // The scheduler chose among its CPUs.
        let solbourne = machines.iter().find(|machine| machine.name == "702/e").unwrap();
        assert_eq!(solbourne.to_results().cases[0].label("placement"), Some("free"));
    }

    /// The memorandum's switch is half a loop less a signal, to the digit that it prints.
    #[test]
    fn the_switch_of_1984_is_the_difference_of_its_rings() {
        for machine in published_machines().unwrap() {
            if machine.year != 1984 {
                continue;
            }
            let (solo, two) = (&machine.cases[0].figures, &machine.cases[1].figures);
            let difference = two[&Quantity::NsPerHop] - solo[&Quantity::NsPerHop];
            let printed = two[&Quantity::NsPerSwitchAboveSolo];
            let name = &machine.name;
            assert!((difference - printed).abs() < 0.051e6, "{name}: {difference} {printed}");
        }
    }
}

//! Published figures as results: the machines of 1984 to 2007, and those of today.

use std::collections::{BTreeMap, BTreeSet};

use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::placement::Placement;
use rundata::ring::{Policy, RingCase};
use schemars::JsonSchema;
use serde::Serialize;

use super::{CaseFigure, CaseResults, ComparisonSide, Labels, Origin, Quantity, Results, runs};
use crate::published::{PublishedError, hines2000, li2007, modern, sloan1992, venix1984};

/// What stands before the name of a published machine where a run is meant otherwise.
pub const PUBLISHED_PREFIX: &str = "history:";

/// A case of a publication.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PublishedCase {
    /// In words.
    pub title: String,
    /// By these it is paired with a case of a run.
    pub labels: BTreeMap<String, String>,
    /// Its figures in nanoseconds.
    pub figures: BTreeMap<Quantity, f64>,
    /// Their intervals, lower and upper end; none of what was printed without.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<Quantity, (f64, f64)>,
    /// The ring, where it is one.
    #[serde(skip)]
    pub ring: Option<RingCase>,
}

/// A figure that is of no one case, so that it is shown and not compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Range")]
pub struct PublishedRange {
    /// Of what.
    #[serde(rename = "of")]
    pub subject: String,
    /// Lower end in nanoseconds.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
}

/// A machine that somebody has published figures of.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Published")]
pub struct PublishedMachine {
    /// By this it is asked for, behind `history:`.
    pub name: String,
    /// The machine.
    pub machine: String,
    /// What it ran.
    pub system: String,
    /// When the figures were published.
    pub year: u32,
    /// By whom, and where.
    pub source: String,
    /// The experiment of this program that measures the same.
    pub experiment: Experiment,
    /// What can be compared.
    pub cases: Vec<PublishedCase>,
    /// What is shown next to it.
    pub ranges: Vec<PublishedRange>,
    /// What to know when comparing.
    pub notes: Vec<String>,
}

/// All published machines, oldest first.
pub fn published_machines() -> Result<Vec<PublishedMachine>, PublishedError> {
    let mut all = venix()?;
    all.extend(sloan()?);
    all.push(hines());
    all.push(li()?);
    all.extend(machines_of_today()?);
    Ok(all)
}

impl PublishedMachine {
    /// The figures as what comparisons take.
    pub fn to_results(&self) -> Results {
        let case_results = |(number, case): (usize, &PublishedCase)| CaseResults {
            number,
            experiment: self.experiment.name(),
            title: case.title.clone(),
            // In the order in which runs have them.
            labels: match &case.ring {
                Some(ring) => runs::labels(ring),
                None => case.labels.clone().into_iter().collect(),
            },
            details: Labels::new(),
            figures: case
                .figures
                .iter()
                .map(|(of, ns)| (*of, CaseFigure::Published(*ns)))
                .collect(),
            summary: None,
            failure: None,
            iterations: Vec::new(),
        };
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
            cases: self.cases.iter().enumerate().map(case_results).collect(),
        }
    }

    /// A machine and what it ran, without figures.
    fn without_figures(
        paper: &PublicationFacts,
        name: &str,
        machine: String,
        system: &str,
    ) -> Self {
        Self {
            name: name.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-"),
            machine,
            system: system.to_string(),
            year: paper.year,
            source: paper.source.to_string(),
            experiment: paper.experiment,
            cases: Vec::new(),
            ranges: Vec::new(),
            notes: vec![paper.note.to_string()],
        }
    }
}

/// What all machines of a publication have in common.
struct PublicationFacts {
    year: u32,
    source: &'static str,
    experiment: Experiment,
    note: &'static str,
}

const VENIX: PublicationFacts = PublicationFacts {
    year: 1984,
    source: "VenturCom, VENIX Kernel Response Time",
    experiment: Experiment::Ring,
    note: "compare with `ring --members 2 --link handler-signal`",
};

const SLOAN: PublicationFacts = PublicationFacts {
    year: 1992,
    source: "Sloan, Context Switch Time Scalability: Benchmark Results",
    experiment: Experiment::Ring,
    note: "seconds are printed whole; there was no ring of one, so a hop is compared, with all \
        its other costs",
};

const HINES: PublicationFacts = PublicationFacts {
    year: 2000,
    source: "Hines, Wyatt and Chang, Increasing Timing Resolution for Processes and Threads in \
         Linux",
    experiment: Experiment::ClockOverhead,
    note: "means of single calls; today's are compared by calls in a row, and getpinfo, a call \
         of their kernel, has no counterpart",
};

const LI: PublicationFacts = PublicationFacts {
    year: 2007,
    source: "Li, Ding and Shen, Quantifying the Cost of Context Switch",
    experiment: Experiment::Cost,
    note: "measured under SCHED_FIFO on one CPU, as `switchcost cost` does where it may",
};

const TODAY: PublicationFacts = PublicationFacts {
    year: 0,
    source: "switchcost, data/modern.csv",
    experiment: Experiment::Ring,
    note: "measured by this program; `compare` takes its figures as printed, without intervals: \
        two runs are compared better",
};

/// A ring of processes without work under SCHED_OTHER; of several CPUs the scheduler chose.
fn ring(members: u32, link: &str, cpus: u32) -> RingCase {
    let placement = match cpus {
        1 => Placement::Same { cpu: 0 },
        many => Placement::Free { cpus: (0..many).collect() },
    };
    RingCase { link: link.to_string(), ..RingCase::of_processes(members, placement) }
}

fn case<const N: usize>(ring: RingCase, figures: [(Quantity, f64); N]) -> PublishedCase {
    let (title, labels) = (ring.title(), runs::labels(&ring).into_iter().collect());
    let intervals = BTreeMap::new();
    PublishedCase { title, labels, figures: figures.into(), intervals, ring: Some(ring) }
}

/// A call by its labels as a trial has them.
fn of_call(of: &str, call: &str, policy: Policy) -> PublishedCase {
    PublishedCase {
        title: call.to_string(),
        labels: [("of", of), ("call", call), ("policy", policy.name())]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into(),
        figures: BTreeMap::new(),
        intervals: BTreeMap::new(),
        ring: None,
    }
}

fn sloan() -> Result<Vec<PublishedMachine>, PublishedError> {
    let rows = sloan1992::published()?;
    let machines: Vec<&[sloan1992::SloanRow]> =
        rows.chunk_by(|one, other| one.machine() == other.machine()).collect();
    let of_machine = |rows: &&[sloan1992::SloanRow]| {
        let sloan1992::SloanRow { vendor, model, os, .. } = &rows[0];
        let ring = |row: &sloan1992::SloanRow| {
            let (hop, cpu) = (row.ns_per_hop(row.real_s), row.ns_per_hop(row.cpu_s));
            let ring = ring(row.processes.get(), "pipe", row.cpus.get());
            case(ring, [(Quantity::NsPerHop, hop), (Quantity::CpuNsPerHop, cpu)])
        };
        let is_one = machines.iter().filter(|other| other[0].model == *model).count() == 1;
        let name = if is_one { model.clone() } else { format!("{model} {os}") };
        let machine =
            PublishedMachine::without_figures(&SLOAN, &name, format!("{vendor} {model}"), os);
        PublishedMachine { cases: rows.iter().map(ring).collect(), ..machine }
    };
    Ok(machines.iter().map(of_machine).collect())
}

/// simsig is a hop alone, half a loop of twosig one of two, and their difference the switch.
fn venix() -> Result<Vec<PublishedMachine>, PublishedError> {
    let of_processor = |processor: &venix1984::VenixProcessor| {
        let ring = |members| ring(members, "handler-signal", 1);
        let two = [
            (Quantity::NsPerSwitchAboveSolo, processor.context_switch_ms * 1e6),
            (Quantity::NsPerHop, processor.two_process_loop_ms / 2.0 * 1e6),
        ];
        let alone = case(ring(1), [(Quantity::NsPerHop, processor.signal_ms * 1e6)]);
        let clock = processor.clock_mhz.map_or(String::new(), |mhz| format!(", {mhz} MHz"));
        let machine = format!("{}{clock}", processor.name);
        let machine = PublishedMachine::without_figures(&VENIX, &processor.name, machine, "VENIX");
        PublishedMachine { cases: vec![alone, case(ring(2), two)], ..machine }
    };
    Ok(venix1984::published()?.iter().map(of_processor).collect())
}

/// Costs in CPU cycles of 166 MHz.
fn hines() -> PublishedMachine {
    let ns = |cycles: f64| cycles * 1000.0 / 166.0;
    let call = |(call, published): (&str, hines2000::CallCost)| {
        let figures = [(Quantity::TrialNs, ns(published.mean_cycles))].into();
        PublishedCase { figures, ..of_call("call", call, Policy::Other) }
    };
    let (of, malloc) = ("malloc of a small block, mean".to_string(), ns(hines2000::MALLOC_CYCLES));
    let machine = "Pentium Pro, 166 MHz".to_string();
    PublishedMachine {
        cases: [("getrusage", hines2000::GETRUSAGE), ("getpinfo", hines2000::GETPINFO)]
            .map(call)
            .into(),
        ranges: vec![PublishedRange { subject: of, low_ns: malloc, high_ns: malloc }],
        ..PublishedMachine::without_figures(&HINES, "pentium-pro/166", machine, "Linux 2.2.14")
    }
}

/// c1; their total costs are ranges over ranges of arrays.
fn li() -> Result<PublishedMachine, PublishedError> {
    let figures = li2007::LiFigures::published()?;
    let direct = RingCase { policy: Policy::Fifo, ..ring(2, "pipe", 1) };
    let totals = [&figures.first_region, &figures.second_region].into_iter();
    let range = |total: &li2007::TotalCost| {
        let arrays = rundata::words::byte_range(total.smallest_bytes, total.largest_bytes);
        let stride = total.stride_bytes.map(|bytes| format!("stride {bytes} B"));
        let stride = stride.unwrap_or_else(|| "sequential".to_string());
        PublishedRange {
            subject: format!("switch with arrays of {arrays}, {stride}: {}", total.condition),
            low_ns: total.low_us * 1e3,
            high_ns: total.high_us * 1e3,
        }
    };
    let machine = "dual Pentium Xeon, 2.0 GHz, 512 KB L2".to_string();
    Ok(PublishedMachine {
        cases: vec![case(direct, [(Quantity::NsPerSwitchAboveSolo, li2007::DIRECT_US * 1e3)])],
        ranges: totals.chain(&figures.by_stride).map(range).collect(),
        ..PublishedMachine::without_figures(&LI, "xeon-2.0", machine, "Linux 2.6.17")
    })
}

/// A ring has its hop and its switch in rows that follow each other.
fn machines_of_today() -> Result<Vec<PublishedMachine>, PublishedError> {
    let of_case = |rows: &[modern::ModernRow]| {
        let row = &rows[0];
        let figures = rows.iter().map(|row| (quantity(row.what), row.us * 1e3));
        let intervals =
            rows.iter().map(|of| (quantity(of.what), (of.low_us * 1e3, of.high_us * 1e3)));
        let case = match row.processes {
            Some(members) => {
                let (work, policy) = (row.work(), row.policy);
                case(RingCase { work, policy, ..ring(members.get(), &row.name, 1) }, [])
            }
            None if row.what == modern::ModernFigure::Loop => {
                of_call("loop", &row.name, row.policy)
            }
            None => of_call("call", &row.name, row.policy),
        };
        PublishedCase { figures: figures.collect(), intervals: intervals.collect(), ..case }
    };
    let of_machine = |rows: &[modern::ModernRow]| {
        let modern::ModernRow { machine, cpu, kernel, cpus, year, .. } = &rows[0];
        let words = format!("{cpu}, {cpus} CPUs");
        let mut known = BTreeSet::new();
        let mut cases: Vec<_> =
            rows.chunk_by(modern::ModernRow::is_of_case_of).map(of_case).collect();
        // Two runs may have the same case.
        cases.retain(|case| known.insert(case.labels.clone()));
        let paper = PublicationFacts { year: *year, ..TODAY };
        PublishedMachine {
            cases,
            ..PublishedMachine::without_figures(&paper, machine, words, &format!("Linux {kernel}"))
        }
    };
    let rows = modern::published()?;
    Ok(rows.chunk_by(|one, other| one.machine == other.machine).map(of_machine).collect())
}

fn quantity(what: modern::ModernFigure) -> Quantity {
    match what {
        modern::ModernFigure::Hop => Quantity::NsPerHop,
        modern::ModernFigure::Switch => Quantity::NsPerSwitchAboveSolo,
        modern::ModernFigure::Call | modern::ModernFigure::Loop => Quantity::TrialNs,
    }
}

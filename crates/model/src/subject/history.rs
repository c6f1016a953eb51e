//! Published figures as subjects: the machines of 1984 to 2007.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Figure, Labels, Origin, Quantity, Subcase, Subject, Values, rings};
use crate::experiment::Experiment;
use crate::machine::{CpuModel, Machine};
use crate::published::{PublishedError, hines2000, li2007, sloan1992, venix1984};
use crate::reading::Reading;
use crate::ring::{Case, Kind, Placement, Policy};

/// What stands before the name of a published machine where a run is meant otherwise.
pub const PREFIX: &str = "history:";

/// A case of a publication.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PublishedCase {
    /// In words.
    pub title: String,
    /// By these it is paired with a case of a run.
    pub labels: BTreeMap<String, String>,
    /// Its figures in nanoseconds. They have no interval.
    pub figures: BTreeMap<Quantity, f64>,
    /// The ring, where it is one.
    #[serde(skip)]
    pub ring: Option<Case>,
}

/// A figure that is of no one case, so that it is shown and not compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Range {
    /// Of what.
    pub of: String,
    /// Lower end in nanoseconds.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
}

/// A machine that somebody has published figures of.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Published {
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
    /// What is told beside.
    pub ranges: Vec<Range>,
    /// What to know when comparing.
    pub notes: Vec<String>,
}

/// All published machines, oldest first.
pub fn published() -> Result<Vec<Published>, PublishedError> {
    let mut all = venix()?;
    all.extend(sloan()?);
    all.push(hines());
    all.push(li()?);
    Ok(all)
}

impl PublishedCase {
    /// The labels in the order in which runs have them.
    fn labels_in_order(&self) -> Labels {
        match &self.ring {
            Some(ring) => rings::labels(ring),
            None => self.labels.clone().into_iter().collect(),
        }
    }
}

impl Published {
    /// The figures as what comparisons take.
    pub fn subject(&self) -> Subject {
        let subcase = |(number, case): (usize, &PublishedCase)| Subcase {
            number,
            title: case.title.clone(),
            labels: case.labels_in_order(),
            details: Labels::new(),
            figures: case.figures.iter().map(figure).collect(),
            failure: None,
            iterations: Vec::new(),
        };
        let cpu = CpuModel { name: Reading::Known(self.machine.clone()), ..CpuModel::default() };
        let mut machine = Machine::default();
        machine.cpu.models = Reading::Known(vec![cpu]);
        machine.kernel.release = Reading::Known(self.system.clone());
        Subject {
            name: format!("{PREFIX}{}", self.name),
            experiment: self.experiment.to_string(),
            origin: Origin::Publication { source: format!("{} ({})", self.source, self.year) },
            machine,
            noise: None,
            clock_ghz: None,
            launches: 0,
            seed: 0,
            launch_scatter: 0.0,
            warnings: Vec::new(),
            cases: self.cases.iter().enumerate().map(subcase).collect(),
        }
    }
}

fn figure((quantity, value): (&Quantity, &f64)) -> Figure {
    Figure { quantity: *quantity, values: Values::Published(*value) }
}

fn ring(case: Case, figures: Vec<(Quantity, f64)>) -> PublishedCase {
    let (title, labels) = (case.title(), rings::labels(&case).into_iter().collect());
    PublishedCase { title, labels, figures: figures.into_iter().collect(), ring: Some(case) }
}

/// Processes without work under the normal policy; of several CPUs the scheduler chose.
fn bare(members: u32, link: &str, cpus: u32) -> Case {
    let placement = match cpus {
        1 => Placement::Same { cpu: 0 },
        many => Placement::Free { cpus: (0..many).collect() },
    };
    Case {
        members,
        kind: Kind::Process,
        link: link.to_string(),
        work: None,
        placement,
        policy: Policy::Other,
        priority: None,
        state: None,
    }
}

/// Lower case, without blanks.
fn name_of(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-")
}

fn sloan() -> Result<Vec<Published>, PublishedError> {
    let machines = sloan1992::published()?;
    let is_one = |model: &str| machines.iter().filter(|machine| machine.model == model).count() < 2;
    let of_machine = |machine: &sloan1992::Machine| {
        let case = |row: &sloan1992::Row| {
            let figures = vec![
                (Quantity::NsPerHop, row.ns_per_hop(row.real_s)),
                (Quantity::CpuNsPerHop, row.ns_per_hop(row.cpu_s)),
            ];
            ring(bare(row.processes, "pipe", machine.cpus), figures)
        };
        let name = match is_one(&machine.model) {
            true => name_of(&machine.model),
            false => name_of(&format!("{} {}", machine.model, machine.system)),
        };
        let notes = vec![
            "seconds are printed whole; there was no ring of one, so that a hop is compared, with all \
             that it costs beside the switch"
                .to_string(),
        ];
        Published {
            name,
            machine: format!("{} {}", machine.vendor, machine.model),
            system: machine.system.clone(),
            year: 1992,
            source: "Sloan, Context Switch Time Scalability: Benchmark Results".to_string(),
            experiment: Experiment::Ring,
            cases: machine.rows.iter().map(case).collect(),
            ranges: Vec::new(),
            notes,
        }
    };
    Ok(machines.iter().map(of_machine).collect())
}

/// simsig is a hop alone, half a loop of twosig one of two, and their difference the switch.
fn venix() -> Result<Vec<Published>, PublishedError> {
    const LINK: &str = "handler-signal";
    let processors = venix1984::published()?;
    let of_processor = |processor: &venix1984::Processor| {
        let ns = |ms: f64| ms * 1e6;
        let alone = vec![(Quantity::NsPerHop, ns(processor.signal_ms))];
        let two = vec![
            (Quantity::NsPerSwitchAboveSolo, ns(processor.context_switch_ms)),
            (Quantity::NsPerHop, ns(processor.two_process_loop_ms / 2.0)),
        ];
        let clock = processor.clock_mhz.map_or(String::new(), |mhz| format!(", {mhz} MHz"));
        Published {
            name: name_of(&processor.name),
            machine: format!("{}{clock}", processor.name),
            system: "VENIX".to_string(),
            year: 1984,
            source: "VenturCom, VENIX Kernel Response Time".to_string(),
            experiment: Experiment::Ring,
            cases: vec![ring(bare(1, LINK, 1), alone), ring(bare(2, LINK, 1), two)],
            ranges: Vec::new(),
            notes: vec!["compare with `ring --members 2 --link handler-signal`".to_string()],
        }
    };
    Ok(processors.iter().map(of_processor).collect())
}

/// Costs in CPU cycles of 166 MHz.
fn hines() -> Published {
    let ns = |cycles: f64| cycles * 1000.0 / 166.0;
    let call = |call: &str, published: hines2000::Call| PublishedCase {
        title: call.to_string(),
        labels: [("of", "call"), ("call", call), ("policy", Policy::Other.name())]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into(),
        figures: [(Quantity::TrialNs, ns(published.mean_cycles))].into(),
        ring: None,
    };
    let malloc = ns(hines2000::MALLOC_CYCLES);
    Published {
        name: "pentium-pro/166".to_string(),
        machine: "Pentium Pro, 166 MHz".to_string(),
        system: "Linux 2.2.14".to_string(),
        year: 2000,
        source: "Hines, Wyatt and Chang, Increasing Timing Resolution for Processes and Threads in Linux"
            .to_string(),
        experiment: Experiment::ClockOverhead,
        cases: vec![
            call("getrusage", hines2000::GETRUSAGE),
            call("getpinfo", hines2000::GETPINFO),
        ],
        ranges: vec![Range {
            of: "malloc of a small block, mean".to_string(),
            low_ns: malloc,
            high_ns: malloc,
        }],
        notes: vec![
            "means of single calls; today's are compared by calls in a row, and getpinfo, a call of \
             their kernel, has no counterpart"
                .to_string(),
        ],
    }
}

/// c1; their total costs are ranges over ranges of arrays.
fn li() -> Result<Published, PublishedError> {
    let figures = li2007::Figures::published()?;
    let direct = Case { policy: Policy::Fifo, ..bare(2, "pipe", 1) };
    let totals = [&figures.first_region, &figures.second_region].into_iter();
    let range = |total: &li2007::Total| Range {
        of: format!(
            "switch with arrays of {}, {}: {}",
            crate::words::byte_range(total.smallest_bytes, total.largest_bytes),
            match total.stride {
                li2007::Stride::Sequential => "sequential".to_string(),
                li2007::Stride::Bytes(bytes) => format!("stride {bytes} B"),
            },
            total.condition
        ),
        low_ns: total.low_us * 1e3,
        high_ns: total.high_us * 1e3,
    };
    Ok(Published {
        name: "xeon-2.0".to_string(),
        machine: "dual Pentium Xeon, 2.0 GHz, 512 KB L2".to_string(),
        system: "Linux 2.6.17".to_string(),
        year: 2007,
        source: "Li, Ding and Shen, Quantifying the Cost of Context Switch".to_string(),
        experiment: Experiment::Cost,
        cases: vec![ring(direct, vec![(Quantity::NsPerSwitchAboveSolo, figures.direct_us * 1e3)])],
        ranges: totals.chain(&figures.by_stride).map(range).collect(),
        notes: vec![
            "measured under SCHED_FIFO on one CPU, as `switchcost cost` does where it may"
                .to_string(),
        ],
    })
}

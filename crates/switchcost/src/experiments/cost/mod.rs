//! `switchcost cost`: what a switch costs by working set. Here is what may be typed.

pub(crate) mod answer;
pub(crate) mod figures;
pub(crate) mod plan;
pub(crate) mod table;
mod tables;
#[cfg(test)]
mod tests;

use analysis::program::{is_of_two, is_walk};
use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use rundata::case::Case;
use rundata::plan::Plan;
use rundata::ring::{AccessKind, MemberKind, Policy, RingCase, Walk};

use crate::base::failure::usage;
use crate::base::values::{Destination, List, above_zero, byte_sizes, policy, sizes};
use crate::engine::effort::Effort;
use crate::engine::setting::PlacementArg;
use crate::report::output::{OutputOptions, check_apart, check_destination};

/// How long to measure: a grid of working sets takes longer than a ring.
pub(crate) type CostEffort = Effort<55>;

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// Arrays of each member: a list (64K,256K) or a geometric range (1K..8M:x2)
    ///
    /// By default from 1 KiB to four times the last private cache of the CPU that is measured on,
    /// in doublings; --walk chase by halves of a doubling from half of its first cache on. Only
    /// this grid depends on the caches; where costs break is found from the costs. The direct cost
    /// (no array) is always measured.
    #[arg(long, value_name = "LIST", value_parser = byte_sizes, help_heading = "Working set")]
    pub(crate) array: Option<List<u64>>,

    /// Go on past the shared cache, to twice the largest (without --array)
    #[arg(long, conflicts_with_all = ["array", "tlb"], help_heading = "Working set")]
    pub(crate) deep: bool,

    /// Distances between successive accesses in bytes
    ///
    /// Every element of 8 bytes is touched once a hop, whatever the stride: first each stride-th
    /// from the first element, then each stride-th from the second, and so on. 128, the paper's
    /// stride, is a line or two: each pass touches every other line. 8 is sequential, where the
    /// machine prefetches. [default: 128]
    #[arg(long, value_name = "LIST", value_parser = byte_sizes, help_heading = "Working set")]
    pub(crate) stride: Option<List<u64>>,

    /// What is done to each element: read, write, rmw (load, add, store), or a list of them
    ///
    /// rmw needs the lines and leaves them to be written back, which is the paper's case; read only
    /// needs them. One kind by default: a second would halve the rounds.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "rmw",
        help_heading = "Working set"
    )]
    pub(crate) op: Vec<AccessKind>,

    /// How the array is walked: whole, chase, or both
    ///
    /// whole: every element, by each --stride, as in the paper. chase: every cache line once in
    /// random order, each line holding the place of the next, so that the machine cannot prefetch.
    /// With chase, what a switch has to fetch again stands out of the noise, also on machines that
    /// hide it from the paper's walk by prefetching.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = walks(),
        default_value = "whole,chase",
        conflicts_with = "tlb",
        help_heading = "Working set"
    )]
    pub(crate) walk: Vec<Walk>,

    /// Touch one cache line in each page only, by growing numbers of pages: what the TLB holds
    ///
    /// The line in each page is the next one after that in the page before, so that not all fall
    /// into one set of the cache. From 4 to 4096 pages by default.
    #[arg(long, conflicts_with = "stride", help_heading = "Working set")]
    pub(crate) tlb: bool,

    /// Ask for transparent huge pages for the arrays (on), or refuse them (off)
    ///
    /// A huge page is one piece of physical memory. Which lines share a cache set then depends on a
    /// few pages; each worker gets new ones. The report says where they were not given.
    #[arg(long, value_parser = on_or_off(), action = ArgAction::Set, default_value = "on", help_heading = "Working set")]
    pub(crate) huge_pages: bool,

    /// Ring sizes from 2: a list (2,4,8) or a range (2..16)
    ///
    /// The rings without work are always measured too. Each member measures its own solo.
    #[arg(long, short = 'N', short_alias = 'n', value_name = "LIST", value_parser = sizes, default_value = "2", help_heading = "Ring")]
    pub(crate) members: List<u32>,

    /// What the members are: process or thread
    #[arg(long, default_value_t = MemberKind::Process, help_heading = "Ring")]
    pub(crate) kind: MemberKind,

    /// Events to count in addition to time, by perf(1)'s names, or all that this machine has:
    /// cycles, instructions, L1-dcache-load-misses, LLC-load-misses, dTLB-load-misses,
    /// iTLB-load-misses, context-switches, page-faults, cpu-migrations
    ///
    /// The counts are of all that runs on the ring's CPU in the timed laps, in user space and in
    /// the kernel. They need CAP_PERFMON, or kernel.perf_event_paranoid of 0. Reading the counters
    /// disturbs the caches a little, and kernel events (the last three) add a little work to every
    /// switch. Nothing is counted if members run on several CPUs.
    #[arg(long, value_name = "EVENT,...|all", value_delimiter = ',', help_heading = "Ring")]
    pub(crate) events: Vec<String>,

    /// Where the members run: same, free, or a list of CPUs
    ///
    /// same: all on one CPU, an isolated one or else the one that serves the fewest interrupts of
    /// devices.
    #[arg(long, default_value = "same", value_name = "same|free|CPU,...", help_heading = "Ring")]
    pub(crate) placement: PlacementArg,

    /// Scheduling policy of the members: other, fifo, rr or batch
    ///
    /// By default fifo at the highest priority that is granted, so that only the kernel's own
    /// highest threads interrupt it. It is other where fifo is refused or this program has no
    /// second CPU to watch from. What was granted is printed.
    #[arg(long, help_heading = "Ring", value_parser = policy)]
    pub(crate) policy: Option<Policy>,

    /// Laps of the sample in which switches are counted, instead of as many as last 4 ms; a lap
    /// takes the token once round the ring
    ///
    /// The rings and solos of the costs themselves keep their own number of laps.
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u64>, help_heading = "Effort")]
    pub(crate) laps: Option<u64>,

    #[command(flatten)]
    pub(crate) effort: CostEffort,

    /// Write the least and the most that a switch costs as OpenMetrics to a file, or - for standard
    /// output: for the textfile collector of node_exporter (deploy/prometheus)
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub(crate) openmetrics: Option<Destination>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

impl CostArgs {
    /// Checks, before anything is measured, that all files can be written. Changes nothing.
    pub(crate) fn check_output(&self) -> Result<()> {
        self.output.files.check()?;
        let Some(to) = &self.openmetrics else { return Ok(()) };
        check_apart(&[&self.output.files.places()[..], &[("--openmetrics", Some(to))]].concat())?;
        check_destination("--openmetrics", to)
    }

    /// Refuses `--openmetrics` for a plan that has no prices: these are of two processes on one CPU that
    /// walk arrays.
    pub(crate) fn refuse_plan_without_prices(&self, plan: &Plan) -> Result<()> {
        if plan.cases.iter().filter_map(Case::ring).any(is_priced) {
            return Ok(());
        }
        if self.tlb {
            return self.refuse_openmetrics("--tlb");
        }
        if self.kind != MemberKind::Process {
            return self.refuse_openmetrics(&format!("--kind {}", self.kind));
        }
        if !self.members.contains(&2) {
            return self.refuse_openmetrics("--members without 2");
        }
        self.refuse_openmetrics("--placement on several CPUs")
    }

    /// Refuses `--openmetrics` for `what`, which has no prices.
    pub(crate) fn refuse_openmetrics(&self, what: &str) -> Result<()> {
        match &self.openmetrics {
            Some(to) => Err(usage(format!(
                "--openmetrics {to}: {what} has no prices of a switch (accepted: `switchcost cost` \
                 of rings of two processes on one CPU, and others beside them)"
            ))),
            None => Ok(()),
        }
    }
}

/// Returns whether a ring is of two processes on one CPU that walk arrays: its direct cost is a price.
fn is_priced(case: &RingCase) -> bool {
    is_of_two(case) && case.work.as_ref().is_some_and(is_walk)
}

/// The walks that can be asked for by name: `--tlb` is the third.
fn walks() -> impl TypedValueParser<Value = Walk> {
    PossibleValuesParser::new([Walk::Whole.name(), Walk::Chase.name()]).try_map(|name| name.parse())
}

fn on_or_off() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|name| name == "on")
}

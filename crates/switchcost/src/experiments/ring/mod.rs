//! `switchcost ring`: Sloan's pipeline, generalised. Here is what may be typed.

pub(crate) mod answer;
mod at_once;

pub(crate) mod figures;
mod flight;
mod history;
mod jump;
pub(crate) mod launches;
pub(crate) mod plan;
pub(crate) mod settings;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use clap::Args;
use clap::builder::ArgPredicate;
use rundata::ring::{AccessKind, Flight, MemberKind, Policy};

use crate::base::values::{List, RingCounts, above_zero, bytes, flights, policy, sizes};
use crate::engine::effort::Effort;
use crate::engine::setting::PlacementArg;
use crate::report::output::OutputOptions;

#[derive(Debug, Args)]
pub(crate) struct RingArgs {
    /// Ring sizes: a list (2,4,8), a range (2..64, 2..64:4) or a geometric one (2..20000:x2)
    ///
    /// The ring of one (solo) is always measured with the others, in every round.
    #[arg(long, short = 'N', short_alias = 'n', alias = "processes", value_name = "LIST", value_parser = sizes, default_value = "2,4,8,10,16,20,32,48,64", default_value_ifs([("flight", ArgPredicate::IsPresent, "2"), ("rings", ArgPredicate::IsPresent, "2")]))]
    pub(crate) members: List<u32>,

    /// Rings that run at the same time: a list; max is the number of CPUs
    ///
    /// A list as of --members: 1,2,4, 1..max or 1..max:x2. The single ring is always measured too, in every round. All rings begin their timed laps
    /// together, and go on turning until all have made theirs. With --rings, --members is 2 and
    /// --placement is spread unless given. Several rings have no --events.
    #[arg(long, value_name = "LIST", help_heading = "Ring")]
    pub(crate) rings: Option<RingCounts>,

    /// What the members are: process or thread
    #[arg(long, default_value_t = MemberKind::Process, help_heading = "Ring")]
    pub(crate) kind: MemberKind,

    /// What carries the token: a link, a list of links to compare, or all that are available here
    ///
    /// `--link help` lists them. all leaves out, with a note, what this machine or a ring of
    /// this kind cannot have.
    #[arg(
        long,
        default_value = "pipe",
        value_name = "LINK,...|all",
        value_delimiter = ',',
        help_heading = "Ring"
    )]
    pub(crate) link: Vec<String>,

    /// Bytes that each member touches before it passes the token on; 0 is none
    ///
    /// Suffixes K, M and G are powers of 1024. The array is private to its member.
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes, help_heading = "Ring")]
    pub(crate) work: u64,

    /// Distance between successive accesses; every element is touched, whatever the stride
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = bytes, help_heading = "Ring")]
    pub(crate) stride: u64,

    /// What is done to each element: read, write, or rmw (load, add, store)
    #[arg(long, default_value_t = AccessKind::Rmw, help_heading = "Ring")]
    pub(crate) op: AccessKind,

    /// Items under way: a list of numbers, or full (a full link) [default: 1]
    ///
    /// One item is the token of the ring. With 16 each member passes on one for each that it
    /// receives, and finds the next one waiting. full is a stream: the first of two members writes
    /// until the link makes it wait, the other reads. The table then has the time, the switches and
    /// the wake-ups of an item (a hop). The members are two, unless --members says otherwise. --laps,
    /// if given, is at least 4 times the items (full: 4 times what the link holds).
    #[arg(
        long,
        value_name = "LIST|full",
        value_parser = flights,
        conflicts_with = "state",
        help_heading = "Ring"
    )]
    pub(crate) flight: Option<List<Flight>>,

    /// Vector registers that each member writes in every hop: none, sse, avx, vzeroupper, avx512,
    /// neon, a list of them, or all that this CPU has
    ///
    /// The kernel then has to save and restore them. Each is compared with none, which is always
    /// measured too. vzeroupper is avx, released again before the token is passed on, as compilers
    /// do at the end of a function. Without this flag members leave registers alone.
    #[arg(
        long,
        value_name = "STATE,...|all",
        value_delimiter = ',',
        conflicts_with = "work",
        help_heading = "Ring"
    )]
    pub(crate) state: Vec<String>,

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

    /// CPUs of the members: same, free, sweep (near and far) or a list; of several rings also spread
    /// or pairs
    ///
    /// same: all on one CPU, away from CPU 0 and from this program if there is a choice. free: the
    /// scheduler decides. A list such as 1 or 0,2 pins member i to the i-th CPU of the list,
    /// starting again at its end. sweep: same, and a pair of CPUs at each distance that this
    /// machine has: hardware threads of one core (smt), cores that share a cache (shared-cache),
    /// cores that do not (other-cache), two memory nodes (other-node). Members of larger rings take
    /// turns on the pair. Of several rings (--rings): spread has each ring on a CPU of its own, one
    /// on each core first; pairs has each on a pair of CPUs, for each distance. More rings than
    /// CPUs or pairs share them.
    #[arg(
        long,
        default_value = "same",
        default_value_if("rings", ArgPredicate::IsPresent, "spread"),
        aliases = ["cpu", "cpus"],
        value_name = "same|free|sweep|spread|pairs|CPU,...",
        help_heading = "Ring"
    )]
    pub(crate) placement: PlacementArg,

    /// Scheduling policy: other, fifo, rr or batch [default: other]
    ///
    /// fifo and rr need CAP_SYS_NICE or an RLIMIT_RTPRIO of 1 or more.
    #[arg(long, help_heading = "Ring", value_parser = policy)]
    pub(crate) policy: Option<Policy>,

    /// Laps of every sample, instead of as many as last 10 ms; a lap takes the token once round the
    /// ring (Sloan used 1000000)
    #[arg(long, value_name = "COUNT", value_parser = above_zero::<u64>, help_heading = "Effort")]
    pub(crate) laps: Option<u64>,

    /// Number of runs of the same plan, one after the other, each with the whole budget
    ///
    /// Intervals of one launch have a term for the scatter between launches, 1 % by default.
    /// Several launches narrow it: `compare` takes all of them for one side. From five stored
    /// launches of the same plan on this machine their scatter is taken from them.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = above_zero::<u32>, help_heading = "Effort")]
    pub(crate) launches: u32,

    #[command(flatten)]
    pub(crate) effort: Effort,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

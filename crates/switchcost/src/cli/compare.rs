//! `switchcost compare` as typed.

use clap::{Arg, Args, ValueEnum};
use model::comparison::Wanted;

use super::ring::RingArgs;
use super::values::share;

/// Which cost is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostArg {
    /// Of a switch above solo; of a ring that does not switch, and where one side lacks it, of a hop
    Switch,
    /// Of a hop
    Hop,
    /// CPU time of a switch above solo, else of a hop: a ratio, and no answer, as nobody knows the CPU's speed
    /// of it
    Cpu,
}

impl CostArg {
    pub(crate) fn wanted(self) -> Wanted {
        match self {
            Self::Switch => Wanted::Switch,
            Self::Hop => Wanted::Hop,
            Self::Cpu => Wanted::Cpu,
        }
    }
}

/// What also serves a comparison of two runs; all else that `ring` takes is for --ab.
const ALSO_OF_RUNS: &[&str] = &["base", "new", "ab", "fail_above", "cost", "json", "csv", "quiet"];

/// An argument as a comparison takes it.
pub(super) fn of_session(arg: Arg) -> Arg {
    // A comparison has no charts.
    let arg = if arg.get_id() == "plot" { arg.hide(true) } else { arg };
    match ALSO_OF_RUNS.contains(&arg.get_id().as_str()) {
        true => arg,
        false => arg.requires("ab"),
    }
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What to compare with: a run (name, start of a name, `last`, or a file), or history:MACHINE
    ///
    /// Several launches of the same plan, with commas between them, are one side; a run of `ring --launches`
    /// stands for all launches that it was measured with.
    // No conflict with --ab here: clap takes what conflicts for not required.
    #[arg(required_unless_present = "ab")]
    pub(crate) base: Option<String>,

    /// What is compared, named in the same way
    #[arg(required_unless_present = "ab")]
    pub(crate) new: Option<String>,

    /// Measure two settings, interleaved in one session, instead of comparing stored runs
    ///
    /// A prefix is a command that starts the worker: 'taskset -c 1', 'chrt -f 10', 'nice -n 5',
    /// 'env GLIBC_TUNABLES=...'; '' leaves it as it is. Each is split into words as a shell does, but no
    /// shell runs it. It must become the worker (exec): one that starts it as a child is refused, as
    /// what it started would outlive this program. CPUs and policy that a prefix sets are those of its
    /// rings; a --policy that says otherwise is refused. What it leaves running is ended with each worker. Every round measures each case once behind each prefix, next to each other in shuffled order.
    #[arg(long, num_args = 2, value_names = ["PREFIX_A", "PREFIX_B"], allow_hyphen_values = true)]
    pub(crate) ab: Option<Vec<String>>,

    /// Exit with 1 if a case has become slower by more than this; also the share within which a case
    /// is called not changed [default for that: 3%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub(crate) fail_above: Option<f64>,

    /// Which cost is compared
    #[arg(long, value_enum, default_value_t = CostArg::Switch)]
    pub(crate) cost: CostArg,

    #[command(flatten)]
    pub(crate) ring: RingArgs,
}

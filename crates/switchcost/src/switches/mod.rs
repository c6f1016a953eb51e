//! Every switch of the machine, as the tracer sees it: live (`top`) and for a while (`trace`).
//! `observe/live` says how events become accounts and rows.

pub(crate) mod top;
pub(crate) mod trace;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use top::TopArgs;
use trace::TraceArgs;

/// The commands that trace.
#[derive(Debug, Subcommand)]
pub(crate) enum SwitchCommand {
    /// Every switch of the machine, live
    ///
    /// Shows who switches, waits and preempts whom, and what it costs. Switches are counted by
    /// eBPF, as with `trace`. Keys: s sorts, g groups, / filters, f freezes, h helps, q ends.
    /// --batch prints the same for scripts, --openmetrics writes counters for Prometheus.
    #[command(
        after_long_help = "Examples:\n  switchcost top\n  switchcost top --by cgroup --sort \
             wait\n  switchcost top --batch=json --updates 5\n  switchcost top --openmetrics \
             /var/lib/prometheus/node-exporter/switchcost-top.prom"
    )]
    Top(TopArgs),
    /// Trace every switch: who preempts whom, who waits, what it costs
    ///
    /// Each switch is counted by eBPF, by cause and by pair, with the wait in the run queue and the
    /// time on the CPU. Needs CAP_BPF and CAP_PERFMON, or root, and a kernel with BTF. What the
    /// switches cost is looked up in the stored run of `cost`. With a command the figures go to
    /// standard error, and the exit code is the command's. Figures are stored as a run, without the
    /// names of other programs: `compare` compares traces.
    #[command(
        after_long_help = "Examples:\n  switchcost trace --pid 812\n  switchcost trace --all \
             --budget 5s --name before\n  switchcost trace -- make -j4"
    )]
    #[command(
        mut_arg("csv", |arg| arg.help("Write who was switched to whom and how often as CSV to a \
             file, or - for standard output")),
        mut_arg("json", |arg| arg.help("Write all figures as JSON (`switchcost help schema trace`) to \
             a file, or - for standard output"))
    )]
    Trace(Box<TraceArgs>),
}

impl SwitchCommand {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Top(args) => top::run(args),
            Self::Trace(args) => trace::run(args),
        }
    }
}

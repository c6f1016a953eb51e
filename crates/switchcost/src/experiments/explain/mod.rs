//! `switchcost explain`: what a switch is made of. Here is what may be typed.

pub(crate) mod answer;
pub(crate) mod figures;
pub(crate) mod plan;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use clap::Args;
use rundata::ring::{MemberKind, Policy};

use crate::base::values::policy;
use crate::experiments::clock::OneCpuArgs;

#[derive(Debug, Args)]
#[command(next_help_heading = "Explain")]
pub(crate) struct ExplainArgs {
    /// What switches: two processes, or two threads of one: process or thread
    #[arg(long, value_name = "KIND", default_value_t = MemberKind::Process)]
    pub(crate) kind: MemberKind,

    /// Scheduling policy of the rings and calls: other, fifo, rr or batch [default: other, or fifo
    /// where other tasks use the CPU]
    ///
    /// Under fifo other tasks wait. fifo and rr need CAP_SYS_NICE or an RLIMIT_RTPRIO of 1 or more,
    /// and a second CPU for everything else; waking on another CPU needs a third.
    #[arg(long, value_parser = policy)]
    pub(crate) policy: Option<Policy>,

    /// Leave out what would add to a switch: registers, control groups, filters, other CPUs, ...
    #[arg(long)]
    pub(crate) parts_only: bool,

    #[command(flatten)]
    pub(crate) common: OneCpuArgs<30>,
}

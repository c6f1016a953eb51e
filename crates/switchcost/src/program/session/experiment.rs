//! What is measured under two states of the machine, as it stands behind `--`:
//!
//! ```text
//! compare --ab-setting FILE A B --members 2                    a ring, as `ring` measures it
//! compare --ab-setting FILE A B -- response --only wakeup      another experiment
//! compare --ab-commands A B     -- run 'make -j4'              a command
//! ```

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Args, FromArgMatches, Parser, Subcommand};
use rundata::experiment::Experiment;
use rundata::ring::Policy;

use crate::base::failure::usage;
use crate::engine::execute::HeaderOptions;
use crate::engine::setting::{LocalHost, PlanWithNotices};
use crate::experiments::clock::overhead::{self, OverheadArgs};
use crate::experiments::cost::{self, CostArgs};
use crate::experiments::explain::{self, ExplainArgs};
use crate::experiments::response::{self, ResponseArgs};
use crate::experiments::ring::{self, RingArgs};
#[cfg(feature = "programs")]
use crate::programs::run::RunArgs;
use crate::report::output::OutputOptions;

/// What may stand behind `--`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Cost of a switch by the number of processes
    Ring(RingArgs),
    /// Cost of a switch by working set
    Cost(CostArgs),
    /// Wake-ups, signals, interrupts, system calls
    Response(ResponseArgs),
    /// What a switch is made of
    Explain(ExplainArgs),
    /// What it costs to ask for the time
    Clock(OverheadCommand),
    /// A command, by its time
    #[cfg(feature = "programs")]
    Run(Box<RunArgs>),
}

/// `clock overhead`.
#[derive(Debug, Args)]
pub(crate) struct OverheadCommand {
    #[command(subcommand)]
    command: ClockCommand,
}

#[derive(Debug, Subcommand)]
enum ClockCommand {
    /// What it costs to ask for the time
    Overhead(OverheadArgs),
}

/// The words behind `--`.
#[derive(Debug, Parser)]
#[command(
    name = "switchcost compare --ab-setting FILE A B --",
    no_binary_name = true,
    disable_help_subcommand = true
)]
struct SessionWords {
    #[command(subcommand)]
    command: SessionCommand,
}

impl SessionCommand {
    /// Parses the words behind `--`.
    ///
    /// # Errors
    /// Says which experiments are accepted, or what of the experiment's own words is not.
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let command = <SessionWords as clap::CommandFactory>::command();
        let mut names = Vec::new();
        for subcommand in command.get_subcommands() {
            names.push(subcommand.get_name().to_string());
        }
        let first = words.first().map(String::as_str).unwrap_or_default();
        if !names.iter().any(|name| name == first) {
            return Err(usage(format!(
                "-- {first}: it is not measured under two states of the machine (accepted: {})",
                names.join(", ")
            )));
        }
        let matches = command.try_get_matches_from(words);
        let parsed = matches.and_then(|matches| SessionWords::from_arg_matches(&matches));
        parsed.map(|words| words.command).map_err(|error| {
            if error.kind() == ErrorKind::DisplayHelp {
                return usage(format!(
                    "-- {first}: its options are those of switchcost {first} -h"
                ));
            }
            let text = error.to_string();
            let what = text.lines().next().unwrap_or_default();
            let what = what.strip_prefix("error: ").unwrap_or(what);
            usage(format!("-- {first}: {what} (switchcost {first} --help)"))
        })
    }
}

/// An experiment with its arguments.
#[derive(Clone, Copy)]
pub(crate) enum SessionExperiment<'a> {
    Ring(&'a RingArgs),
    Cost(&'a CostArgs),
    Response(&'a ResponseArgs),
    Explain(&'a ExplainArgs),
    Overhead(&'a OverheadArgs),
}

impl<'a> SessionExperiment<'a> {
    /// Returns the experiment that stands behind `--`; `None` for a command, which is none.
    pub(crate) fn from_command(command: &'a SessionCommand) -> Option<Self> {
        Some(match command {
            SessionCommand::Ring(args) => Self::Ring(args),
            SessionCommand::Cost(args) => Self::Cost(args),
            SessionCommand::Response(args) => Self::Response(args),
            SessionCommand::Explain(args) => Self::Explain(args),
            SessionCommand::Clock(OverheadCommand { command: ClockCommand::Overhead(args) }) => {
                Self::Overhead(args)
            }
            #[cfg(feature = "programs")]
            SessionCommand::Run(_) => return None,
        })
    }

    pub(super) fn experiment(self) -> Experiment {
        match self {
            Self::Ring(_) => Experiment::Ring,
            Self::Cost(_) => Experiment::Cost,
            Self::Response(_) => Experiment::Response,
            Self::Explain(_) => Experiment::Explain,
            Self::Overhead(_) => Experiment::ClockOverhead,
        }
    }

    /// Plans the experiment on this machine.
    pub(super) fn plan(self, host: &LocalHost) -> Result<PlanWithNotices> {
        match self {
            Self::Ring(args) => ring::plan::plan(args, host),
            Self::Cost(args) => cost::plan::plan(args, host),
            Self::Response(args) => response::plan::plan(args, host),
            Self::Explain(args) => explain::plan::plan(args, host),
            Self::Overhead(args) => overhead::plan(args, host),
        }
    }

    /// Returns the policy that was typed.
    pub(super) fn policy(self) -> Option<Policy> {
        match self {
            Self::Ring(args) => args.policy,
            Self::Cost(args) => args.policy,
            Self::Response(args) => args.policy,
            Self::Explain(args) => args.policy,
            Self::Overhead(_) => None,
        }
    }

    fn output(self) -> &'a OutputOptions {
        match self {
            Self::Ring(args) => &args.output,
            Self::Cost(args) => &args.output,
            Self::Response(args) => &args.common.output,
            Self::Explain(args) => &args.common.output,
            Self::Overhead(args) => &args.common.output,
        }
    }

    /// Checks that nothing is asked for behind `--` that belongs before it: there is one answer, of
    /// both states.
    pub(crate) fn check_output(self) -> Result<()> {
        let files = &self.output().files;
        let asked = [
            ("--json", files.json.is_some()),
            ("--csv", files.csv.is_some()),
            ("--print", files.print.is_some()),
            ("--plot", self.output().plot),
            ("--openmetrics", matches!(self, Self::Cost(args) if args.openmetrics.is_some())),
        ];
        for (flag, is_asked) in asked {
            if is_asked {
                return Err(usage(format!(
                    "{flag} behind --: it is of one run, and two are compared (before the --: \
                     --json, --report)"
                )));
            }
        }
        if let Self::Ring(args) = self {
            if args.launches > 1 {
                return Err(usage(format!(
                    "--launches {}: both states are measured in one session (accepted with it: 1; \
                     several launches are compared as BASE NEW)",
                    args.launches
                )));
            }
        }
        Ok(())
    }

    /// Returns what the headers of both runs record, as typed before or behind the `--`.
    pub(super) fn header_options(self, output: &OutputOptions) -> HeaderOptions {
        let (before, behind) =
            (HeaderOptions::from_output(output), HeaderOptions::from_output(self.output()));
        HeaderOptions {
            name: before.name.or(behind.name),
            anonymous: before.anonymous || behind.anonymous,
            store_command: before.store_command || behind.store_command,
            ..HeaderOptions::from_output(output)
        }
    }

    /// Returns whether nothing but errors is to be printed.
    pub(super) fn is_quiet(self, output: &OutputOptions) -> bool {
        output.files.quiet || self.output().files.quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<SessionCommand> {
        let words: Vec<String> = words.split(' ').map(str::to_string).collect();
        SessionCommand::parse(&words)
    }

    fn refusal(words: &str) -> String {
        parse(words).expect_err("refused").to_string()
    }

    #[test]
    fn what_cannot_be_measured_under_two_states_is_refused_with_what_can() {
        for words in ["trace", "measure", "", "--members 2", "sensitivity -- true"] {
            let why = refusal(words);
            assert!(why.contains("(accepted: ring, cost, response, explain, clock"), "{why}");
        }
        let why = refusal("ring --no-such");
        assert!(why.contains("-- ring: unexpected argument '--no-such' found"), "{why}");
        let why = refusal("response --only nothing");
        assert!(why.contains("-- response: invalid value 'nothing'"), "{why}");
        assert!(refusal("ring --help").contains("switchcost ring -h"));
    }

    #[test]
    fn experiments_have_their_own_options() {
        let parsed = parse("response --only wakeup --budget 3s").expect("accepted");
        let experiment = SessionExperiment::from_command(&parsed).expect("an experiment");
        assert_eq!(experiment.experiment(), Experiment::Response);
        assert!(experiment.check_output().is_ok());
        let refused = [
            "ring --json x",
            "cost --csv -",
            "ring --plot",
            "ring --launches 2",
            "cost --openmetrics -",
        ];
        for words in refused {
            let parsed = parse(words).expect("accepted");
            let experiment = SessionExperiment::from_command(&parsed).expect("an experiment");
            assert!(experiment.check_output().is_err(), "{words}");
        }
    }
}

//! `switchcost run`: what a command used, and which of several is faster.

mod answer;
mod commands;
mod findings;
pub(crate) mod gate;
mod markdown;
mod plan;
pub(crate) mod record;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use clap::Args;
use launcher::{Launcher, Run, Series, Used, look_up};
use model::comparison::LIMIT;
use model::program::{CostProfile, WorkingSet};
use model::reading::Reading;
use stats::{median, median_interval};

use crate::base::failure::{say, usage};
use crate::base::secrets::masked;
use crate::base::values::{Destination, above_zero, each_once, share, whole};
use crate::engine::effort::CONFIDENCE;
use crate::engine::execute;
use crate::engine::progress::RunsProgress;
use crate::observe::watch::command::{Over, finish, not_measured, words};
use crate::observe::watch::quick;
use crate::observe::watch::{self, Chosen};
use crate::present::output::csv::{self, known};
use crate::present::output::{Files, all_written, check_place, put, say_text, to_json};
use crate::usage::Launched;
use findings::{SOURCES, Summary, Switching};
use gate::{Gate, Gated};
use plan::Plan;
use record::Record;

/// Runs with `--vs` if nothing is said: enough for an interval.
const RUNS_TO_COMPARE: u32 = 10;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Runs of the command [default: 1; of several commands 10]; from 5 on there are intervals
    ///
    /// All runs share this program's standard input: what the first has read is gone for the
    /// others.
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = above_zero::<u32>)]
    runs: Option<u32>,

    /// Runs beforehand, of which nothing is kept
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    warmup: u32,

    /// Another command to compare with, in one word; may be given several times
    ///
    /// All run once in every round, each time in a shuffled order; ratios are taken within
    /// rounds, to the command behind --. It is split into words as a shell does (quotes,
    /// backslashes), but no shell runs it: for pipes and variables write "sh -c '...'".
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    vs: Vec<String>,

    /// Compare the values A, B and C of a parameter: each takes the place of {NAME} in the command
    ///
    /// Ratios are to the first. Several parameters give all their combinations.
    #[arg(long, num_args = 2, value_names = ["NAME", "A,B,C"], allow_hyphen_values = true)]
    parameter: Vec<String>,

    /// Exit with 1 if a command takes more than the first by over this share; also the share within
    /// which a figure is called not changed [default for that: 3%]
    ///
    /// The first is the one behind --, or has the first values: the base. All intervals hold
    /// together. The exit codes are those of `compare`: 0 PASS, 1 FAIL, 3 UNDECIDED, and 2 if a run
    /// did not succeed.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_above: Option<f64>,

    /// With --fail-above: exit with 0 instead of 3 where nothing was decided
    #[arg(long, requires = "fail_above")]
    allow_undecided: bool,

    /// What --fail-above and --markdown compare
    ///
    /// Ten are added to both counts of switches, as so few come by chance.
    #[arg(long, value_name = "FIGURE,...", value_delimiter = ',', default_value = "real")]
    figures: Vec<Gated>,

    /// Write the comparison as Markdown to a file, or - for standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    markdown: Option<Destination>,

    /// Show what the commands print in all runs
    ///
    /// Otherwise both outputs of a command are discarded (/dev/null) from its second run on.
    #[arg(long)]
    show_output: bool,

    /// Also count descendants that the command did not wait for
    ///
    /// wait4(2) tells of the command and of the children that it waited for. With --tree those that
    /// outlived their parent are added, where they have ended within a second after the command.
    #[arg(long)]
    tree: bool,

    /// No estimate of what the switches cost, and no measurement for it
    #[arg(long)]
    no_estimate: bool,

    /// The stored run whose costs count, instead of the best one of this machine
    ///
    /// Name, start of a name, `last`, `last~1`, or a file.
    #[arg(long, value_name = "RUN", conflicts_with = "no_estimate")]
    profile: Option<String>,

    /// Seed of the order of commands and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    seed: u64,

    #[command(flatten)]
    of: Launched,
}

impl RunArgs {
    /// What is to be run, and the words of each command.
    fn plan(&self) -> Result<(Plan, Vec<Vec<OsString>>)> {
        let others = self.vs.iter().map(|text| commands::split(text));
        let typed: Result<Vec<_>> =
            std::iter::once(Ok(self.of.command.clone())).chain(others).collect();
        let typed = typed?;
        // Where several are typed the values alone do not say which it is.
        let is_one = typed.len() == 1 && !self.parameter.is_empty();
        let all = commands::expand(typed, &self.parameter)?;
        let anonymous = self.of.output.files.anonymous;
        let names = all.iter().filter(|_| is_one && !anonymous);
        let names = names.map(|command| masked(&command.values).join(" "));
        let plan = Plan {
            commands: all.iter().map(|of| words(&of.words, anonymous)).collect(),
            names: names.collect(),
            runs: self.runs.unwrap_or(if all.len() > 1 { RUNS_TO_COMPARE } else { 1 }),
            warmup: self.warmup,
            seed: self.seed,
            tree: self.tree,
            confidence: CONFIDENCE,
            show_output: self.show_output,
        };
        Ok((plan, all.into_iter().map(|command| command.words).collect()))
    }
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.of.output.files.check()?;
    args.markdown.iter().try_for_each(|to| check_place("--markdown", to))?;
    // What is wrong with it is told before anything is run.
    let named = args.profile.as_deref().map(watch::named).transpose()?;
    let (plan, commands) = args.plan()?;
    let compares = args.fail_above.is_some() || args.markdown.is_some();
    if compares && plan.commands.len() < 2 {
        return Err(usage(
            "--fail-above and --markdown compare commands: give another by --vs, or values by \
             --parameter",
        ));
    }
    look_up(&commands).map_err(|error| not_measured(Some(error), None))?;
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let Plan { runs: count, warmup, seed, tree, show_output, .. } = plan;
    let discard = !show_output && warmup.saturating_add(count) > 1;
    let whole = Series { announce: false, ..Series::watched(&[]) };
    let series = Series { commands, warmup, runs: count, seed, tree, discard, ..whole };
    let mut runs = Vec::new();
    let mut progress = SoFar::new(&plan, args.of.output.files.quiet);
    let Over { failed, signal, stopped } = finish(Launcher::start(series)?, |run| {
        runs.push(run);
        progress.show(&runs, &plan);
    });
    progress.bar.end();
    if let Some(error) = &failed {
        say(&format!("error: {error}"));
        if runs.is_empty() {
            return Ok(error.exit_code.into());
        }
    } else if runs.is_empty() {
        say("interrupted before the first measured run");
    }
    if let Some(error) = &stopped {
        say(&format!("error: {error}"));
    }
    let all = plan.runs as usize * plan.commands.len();
    let has_failed = failed.is_some();
    let code = match (failed, signal) {
        (Some(error), _) => error.exit_code,
        (None, Some(signal)) if runs.len() < all || stopped.is_some() => 128 + signal,
        (None, _) => {
            runs.iter().map(|run| run.used.ending.shell_code()).find(|code| *code != 0).unwrap_or(0)
        }
    };
    let gate = compares.then(|| {
        Gate::of(&plan, &runs, &each_once(args.figures.clone()), args.fail_above.unwrap_or(LIMIT))
    });
    let code = match (args.fail_above.and(gate.as_ref()), has_failed, signal) {
        // 1 and 3 are the gate's own.
        (Some(_), true, _) => gate::TROUBLE,
        (Some(gate), false, signal) if signal.is_none() || code < 128 => {
            gate.exit_code(args.allow_undecided)
        }
        _ => code,
    };
    let written = write(plan, runs, started, signal.is_some(), args, (gate, named.as_ref()));
    // A script that waits for the figures must learn that they are not there. 1 is a gate's FAIL.
    let unwritten = if args.fail_above.is_some() { gate::TROUBLE } else { 1 };
    Ok(if !written && code == 0 { unwritten } else { code }.into())
}

/// Shows how far the runs are, and the time of the command that ran last, so far.
struct SoFar {
    bar: RunsProgress,
    shown: Instant,
}

/// Time between two drawings of the bar: each takes some CPU time while a command runs.
const REDRAW: Duration = Duration::from_millis(200);

impl SoFar {
    /// Nothing is drawn where the commands may print.
    fn new(plan: &Plan, quiet: bool) -> Self {
        let all = u64::from(plan.runs) * plan.commands.len() as u64;
        Self { bar: RunsProgress::new(all, quiet || plan.show_output), shown: Instant::now() }
    }

    fn show(&mut self, runs: &[Run], plan: &Plan) {
        let Some(last) = runs.last() else { return };
        // By then each command's first run is over, whose outputs are the caller's.
        let is_first_round = runs.len() < plan.commands.len();
        if self.bar.is_hidden() || is_first_round || self.shown.elapsed() < REDRAW {
            return;
        }
        self.shown = Instant::now();
        let own = runs.iter().filter(|run| run.command == last.command && !run.interrupted);
        let times: Vec<f64> = own.map(|run| run.used.real_ns as f64).collect();
        let Some(middle) = median(&times) else { return };
        let interval = median_interval(&times, plan.confidence);
        let half = interval.map(|interval| interval.half_width() / middle);
        self.bar.show(runs.len() as u64, (middle, half), &plan.label(last.command));
    }
}

/// Writes all that was asked for; what cannot be written is reported, and the rest is written.
/// Whether all was written.
fn write(
    plan: Plan,
    runs: Vec<Run>,
    started: String,
    interrupted: bool,
    args: &RunArgs,
    (gate, named): (Option<Gate>, Option<&Chosen>),
) -> bool {
    let Files { json, csv, quiet, .. } = &args.of.output.files;
    let mut outputs = Vec::new();
    if let Some(to) = csv {
        outputs.push((to, rows(&runs)));
    }
    // Reading the machine and the estimate take time.
    if json.is_some() || args.markdown.is_some() || !quiet {
        let machine = match json {
            Some(_) => probe::machine::read_with_accounting(Path::new("/")),
            None => probe::machine::accounting(Path::new("/")),
        };
        let build = execute::build_info();
        let (machine, about) = match args.of.output.files.anonymous {
            false => (machine, (started, Some(execute::host()), execute::invocation(), build)),
            true => {
                let machine = (execute::anonymous(machine.0), machine.1);
                (machine, (started, None, Vec::new(), build))
            }
        };
        let mut record = Record::new(plan, runs, machine, about);
        if !args.no_estimate {
            estimate(&mut record, interrupted, args.of.output.files.anonymous, named);
        }
        if let (Some(to), Some(gate)) = (&args.markdown, &gate) {
            outputs.push((to, Ok(markdown::markdown(&record, gate).into_bytes())));
        }
        record.gate = args.fail_above.and(gate);
        if !quiet && !record.runs.is_empty() {
            let output = &args.of.output;
            say_text(&output.tables.text(|| table::text(&record, output.verbose)));
        }
        if let Some(to) = json {
            outputs.push((to, to_json(&record)));
        }
    }
    all_written(outputs.into_iter().map(|(to, bytes)| put(&bytes?, to)))
}

/// A row for each run.
fn rows(runs: &[Run]) -> Result<Vec<u8>> {
    let first = ["experiment", "command", "round", "interrupted", "exit_code", "signal"];
    let figures = SOURCES.map(|(name, ..)| name);
    let row = |run: &Run| {
        let Used { ending, orphans, .. } = &run.used;
        let (command, round) = (run.command.to_string(), run.round.to_string());
        let (exit_code, signal) = (known(ending.code().ok()), known(ending.code().err()));
        let first =
            ["run".to_string(), command, round, run.interrupted.to_string(), exit_code, signal];
        let figures = SOURCES.map(|(.., of)| known(of(&run.used).known()));
        let left_behind = known(orphans.left_behind.known().map(Vec::len));
        [&first[..], &figures, &[orphans.ended.to_string(), left_behind]].concat()
    };
    let names = [&first[..], &figures, &["orphans_ended", "left_behind"]].concat();
    csv::write(&names, runs.iter().map(row))
}

/// Adds what the switches cost, by the profile that was asked for. Where this machine has none a
/// quick one is measured, unless somebody has asked to stop.
fn estimate(record: &mut Record, interrupted: bool, anonymous: bool, named: Option<&Chosen>) {
    let resident =
        record.commands.iter().filter_map(|command| command.median("max_resident_bytes"));
    let set = WorkingSet::within(resident.fold(0.0, f64::max) as u64);
    let mut found = named.map_or_else(|| quick::stored(set), |named| Ok(named.clone()));
    let mut notices = Vec::new();
    if found.is_err() && !interrupted && record.commands.iter().any(Summary::switched) {
        let measured = quick::measure_quickly(anonymous);
        found = quick::stored(set);
        let notice = match (measured, &found) {
            (Ok(()), Ok(_)) => "no stored cost profile could be used, so a quick one was \
                measured; `switchcost cost` makes a better one"
                .to_string(),
            (Ok(()), Err(why)) => format!(
                "the quick measurement cannot be used as a profile: \
                {why}"
            ),
            (Err(error), _) => format!("the quick measurement failed: {error:#}"),
        };
        found = found.map_err(|_| notice.clone());
        notices.push(notice);
    }
    notices.extend(found.iter().flat_map(|chosen| chosen.notices.clone()));
    let profile: Reading<CostProfile> = found.map(|chosen| chosen.profile).into();
    for summary in &mut record.commands {
        summary.switching = Some(Switching::of(summary, profile.clone(), notices.clone()));
    }
}

//! `switchcost top`: every switch of the machine, live; the arguments and the two loops. The third,
//! of counters for Prometheus, is in `exporter`.

mod counters;
mod exporter;
mod keys;
mod screen;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{ErrorKind, IsTerminal, stdin, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use analysis::program::{CostProfile, Price, direct_of};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::failure::usage;
use crate::base::lines::WIDTH;
use crate::base::values::{Destination, MAX_DURATION, duration};
use crate::engine::interrupt::Interrupt;
use crate::observe::live::GroupBy;
use crate::observe::live::account::TraceScope;
use crate::observe::live::rows::{LEGEND, RowOrder, SwitchRow, rows};
use crate::observe::live::session::{LOOK, TracerOverhead, TracerSession};
use crate::programs::watch::{self, PreemptionCost};
use crate::report::output::{ignore_broken_pipe, print_or_broken_pipe, printable_text};
use exporter::ExportPace;
use keys::{KeyAction, ScreenState};
use terminal::RawTerminal;

/// Longest wait for a key: after it the size of the terminal is looked at.
const MAX_KEY_WAIT: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Time from one update to the next [default: 2, with --openmetrics 15]
    #[arg(long, short = 'd', alias = "delay", value_name = "TIME", value_parser = duration)]
    interval: Option<Duration>,

    /// A row for each thread, process, control group or user
    #[arg(long, default_value = "process")]
    by: GroupBy,

    /// What rows are sorted by
    #[arg(long, default_value = "switches")]
    sort: RowOrder,

    /// Only rows whose name has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    /// Print each update, as text or as a line of JSON, instead of showing them on the terminal
    #[arg(long, short = 'b', value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    batch: Option<BatchForm>,

    /// Write counters by control group to a file at each update, for the textfile collector of
    /// node_exporter, instead of showing anything
    ///
    /// Voluntary and involuntary switches and CPU time, as OpenMetrics. They are the kernel's counts:
    /// no program runs at a switch, so that it costs the same at any rate. deploy/prometheus has the
    /// rules that price them.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["by", "sort", "filter", "batch", "profile"])]
    openmetrics: Option<Destination>,

    /// Most control groups that have counters of their own; the rest is in `other`
    #[arg(long, value_name = "COUNT", default_value = "50", requires = "openmetrics", value_parser = crate::base::values::above_zero::<u64>)]
    series: u64,

    /// End after this time
    #[arg(long, aliases = ["time", "seconds", "duration"], short_alias = 't', value_name = "TIME", value_parser = duration)]
    budget: Option<Duration>,

    /// End after this many updates
    #[arg(long, short = 'n', alias = "iterations", value_name = "COUNT", value_parser = crate::base::values::above_zero::<u64>)]
    updates: Option<u64>,

    /// The stored run whose costs are used, instead of the best one of this machine
    ///
    /// Name, start of a name, `last`, `last~1`, or a file.
    #[arg(long, value_name = "RUN")]
    profile: Option<String>,
}

/// Time from one update to the next.
const INTERVAL: Duration = Duration::from_secs(2);
/// Time from one update of a file to the next: node_exporter is mostly asked as often.
const EXPORT_INTERVAL: Duration = Duration::from_secs(15);

impl TopArgs {
    fn interval(&self) -> Duration {
        self.interval.unwrap_or(INTERVAL)
    }

    /// Returns when the time is over.
    fn end(&self) -> Instant {
        Instant::now() + self.budget.unwrap_or(MAX_DURATION)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BatchForm {
    Text,
    Json,
}

/// Version of [`TopUpdate`].
const SCHEMA: u32 = 1;

/// The figures since the last update.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Update")]
pub(crate) struct TopUpdate {
    /// Version of this form.
    pub(crate) schema: u32,
    /// Seconds that it covers.
    pub(crate) seconds: f64,
    /// The machine as a whole.
    pub(crate) total: SwitchRow,
    /// The cost of tracing itself.
    pub(crate) own: TracerOverhead,
    /// A row for each.
    pub(crate) rows: Vec<SwitchRow>,
    /// The stored run that the costs are from.
    pub(crate) profile: Reading<String>,
    /// Seconds from its start to now; null where that cannot be told.
    pub(crate) profile_age_s: Option<u64>,
    /// Notes on what is not in the figures.
    pub(crate) notices: Vec<String>,
}

/// Writes counters to a file instead of showing anything.
fn export(args: &TopArgs, to: &Destination) -> Result<ExitCode> {
    let pace = ExportPace {
        interval: args.interval.unwrap_or(EXPORT_INTERVAL),
        end: args.end(),
        updates: args.updates.unwrap_or(u64::MAX),
        max_groups: usize::try_from(args.series).unwrap_or(usize::MAX),
    };
    let interrupt = Interrupt::watch_with_hangup()?;
    exporter::export(to, pace, &interrupt)?;
    Ok(interrupt.exit_code().unwrap_or(0).into())
}

pub(crate) fn run(args: &TopArgs) -> Result<ExitCode> {
    if let Some(to) = &args.openmetrics {
        return export(args, to);
    }
    if args.batch.is_none() && !(stdin().is_terminal() && stdout().is_terminal()) {
        return Err(usage("standard input and output are no terminal: --batch prints the updates"));
    }
    let chosen = match &args.profile {
        Some(name) => Ok(watch::find_profile(name)?),
        None => watch::newest_profile(),
    };
    let direct = match &chosen {
        Ok(chosen) => direct_of(&chosen.profile.points, None),
        Err(_) => None,
    };
    let price = Price { direct, total: None };
    let interrupt = Interrupt::watch()?;
    let instead = "switchcost cost --pid PID";
    let mut session = TracerSession::open(TraceScope::All, None, Some(args.by), instead)?;
    let mut state = ScreenState::new(args.by, args.sort, args.filter.clone());
    state.costs = Some(chosen.map(|chosen| chosen.profile));
    if args.profile.is_none() {
        state.own_costs = PreemptionCost::load_newest();
    }
    match args.batch {
        Some(form) => print_batch(args, &mut session, &state, price, form, &interrupt)?,
        None => show_live(args, &mut session, &mut state, price, &interrupt)?,
    }
    Ok(interrupt.exit_code().unwrap_or(0).into())
}

/// Prices the switches of programs that were measured themselves by what these cost: with the
/// refilling of caches, which prices of others are without. Returns a note for each of them.
fn reprice(rows: &mut [SwitchRow], own_costs: &[PreemptionCost]) -> Vec<String> {
    let mut notes = Vec::new();
    for row in rows {
        if row.cpu_share <= 0.0 {
            continue;
        }
        let Some(own_cost) = find_own_cost(row, own_costs) else { continue };
        let (per_s, cpu_share) = (row.switches_per_s(), row.cpu_share);
        let share = own_cost.each_ns.map(|ns| (per_s * ns * 1e-9 / cpu_share).clamp(0.0, 1.0));
        row.cost_share = Some(share);
        notes.push(format!("cost of {}: with refilling caches, {}", row.name, own_cost.in_words()));
    }
    notes.sort_unstable();
    notes.dedup();
    notes
}

fn find_own_cost<'a>(
    row: &SwitchRow,
    own_costs: &'a [PreemptionCost],
) -> Option<&'a PreemptionCost> {
    let pid = i32::try_from(row.id?).ok()?;
    own_costs.iter().find(|own_cost| own_cost.applies_to(pid))
}

/// Looks, and returns what has happened since the last update.
fn update(session: &mut TracerSession, state: &ScreenState, price: Price) -> TopUpdate {
    let profile: Reading<CostProfile> = match &state.costs {
        Some(costs) => costs.clone().into(),
        None => Reading::default(),
    };
    session.look();
    let seconds = session.elapsed().as_secs_f64();
    let mut total = SwitchRow::from_usage(&session.account.total(), seconds, price);
    total.name = "machine".to_string();
    let mut rows = rows(&session.account, session.grouping(state.by), seconds, price);
    let mut notices = session.gaps();
    notices.extend(reprice(&mut rows, &state.own_costs));
    let update = TopUpdate {
        schema: SCHEMA,
        seconds,
        total,
        own: session.overhead(),
        rows,
        profile_age_s: profile.known().and_then(|profile| profile.age_s),
        profile: profile.map(|profile| profile.run),
        notices,
    };
    session.begin_anew();
    update
}

/// Prints one update after another.
fn print_batch(
    args: &TopArgs,
    session: &mut TracerSession,
    state: &ScreenState,
    price: Price,
    form: BatchForm,
    interrupt: &Interrupt,
) -> Result<()> {
    let (mut left, end) = (args.updates.unwrap_or(u64::MAX), args.end());
    if form == BatchForm::Text {
        let legend = textwrap::fill(LEGEND, WIDTH) + "\n\n";
        ignore_broken_pipe(print_or_broken_pipe(legend.as_bytes()))
            .context("cannot print the legend")?;
    }
    while left > 0 {
        let time = end.saturating_duration_since(Instant::now());
        let is_over =
            wait(session, args.interval().min(time), interrupt) || time <= args.interval();
        let mut update = update(session, state, price);
        state.arrange(&mut update.rows);
        let text = match form {
            BatchForm::Text => {
                let lines = screen::lines(&update, state).join("\n") + "\n\n";
                printable_text(&lines, &stdout())
            }
            BatchForm::Json => serde_json::to_string(&update)? + "\n",
        };
        let printed = print_or_broken_pipe(text.as_bytes());
        let is_read = !matches!(&printed, Err(error) if error.kind() == ErrorKind::BrokenPipe);
        ignore_broken_pipe(printed).context("cannot print an update")?;
        if is_over || !is_read {
            break;
        }
        left -= 1;
    }
    Ok(())
}

/// Waits so long, but looks often enough to see threads that come and go. Returns whether a signal
/// ended it.
fn wait(session: &mut TracerSession, time: Duration, interrupt: &Interrupt) -> bool {
    let end = Instant::now() + time;
    while !interrupt.wait_until(end, LOOK) {
        session.look();
    }
    interrupt.signal().is_some()
}

/// Shows updates on the terminal and does what keys say.
fn show_live(
    args: &TopArgs,
    session: &mut TracerSession,
    state: &mut ScreenState,
    price: Price,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut terminal = RawTerminal::open().context("the terminal")?;
    let (mut left, end) = (args.updates.unwrap_or(u64::MAX), args.end());
    let (mut shown, mut due) = (None, Instant::now() + args.interval().min(LOOK));
    while interrupt.signal().is_none() && Instant::now() < end {
        if Instant::now() >= due {
            due = Instant::now() + args.interval();
            let new = update(session, state, price);
            if !state.is_frozen {
                shown = Some(new);
            }
            left -= 1;
        }
        terminal.draw(&screen::screen(shown.as_ref(), state, terminal.size()))?;
        if left == 0 {
            break;
        }
        session.look_if_due();
        let longest = due.saturating_duration_since(Instant::now()).min(MAX_KEY_WAIT);
        for key in terminal.keys(longest)? {
            match state.press(key) {
                KeyAction::Quit => return Ok(()),
                KeyAction::Regroup => {
                    session.group_by(state.by);
                    // What is shown is of other groups.
                    shown = None;
                    due = Instant::now() + args.interval().min(LOOK);
                    session.begin_anew();
                }
                KeyAction::Nothing => {}
            }
        }
    }
    Ok(())
}

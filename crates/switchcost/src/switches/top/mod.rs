//! `switchcost top`: every switch of the machine, live; here is what may be typed.

mod keys;
mod screen;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{ErrorKind, IsTerminal, stdin, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use analysis::program::{CostProfile, Price};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rundata::reading::Reading;
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::failure::usage;
use crate::base::lines::WIDTH;
use crate::base::values::{MAX_DURATION, duration};
use crate::engine::interrupt::Interrupt;
use crate::observe::live::GroupBy;
use crate::observe::live::account::TraceScope;
use crate::observe::live::rows::{LEGEND, RowOrder, SwitchRow, rows};
use crate::observe::live::session::{LOOK, TracerOverhead, TracerSession};
use crate::programs::watch::{self, OwnCost};
use crate::report::output::{for_people, ignore_broken_pipe, print_on};
use keys::{KeyAction, ScreenState};
use terminal::RawTerminal;

/// Longest wait for a key: after it the size of the terminal is looked at.
const SOON: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Time from one update to the next
    #[arg(long, short = 'd', alias = "delay", value_name = "TIME", default_value = "2", value_parser = duration)]
    interval: Duration,

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

impl TopArgs {
    /// When its time is over.
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

/// What happened since the update before.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Update")]
pub(crate) struct TopUpdate {
    /// Version of this form.
    pub(crate) schema: u32,
    /// Seconds that it covers.
    pub(crate) seconds: f64,
    /// The machine as a whole.
    pub(crate) total: SwitchRow,
    /// What tracing itself took.
    pub(crate) own: TracerOverhead,
    /// A row for each.
    pub(crate) rows: Vec<SwitchRow>,
    /// The stored run that the costs are from.
    pub(crate) profile: Reading<String>,
    /// Seconds from its start to now; null where that cannot be told.
    pub(crate) profile_age_s: Option<u64>,
    /// What is not in the figures.
    pub(crate) notices: Vec<String>,
}

pub(crate) fn run(args: &TopArgs) -> Result<ExitCode> {
    if args.batch.is_none() && !(stdin().is_terminal() && stdout().is_terminal()) {
        return Err(usage("standard input and output are no terminal: --batch prints the updates"));
    }
    let named = args.profile.as_deref().map(watch::named).transpose()?;
    let chosen = named.map_or_else(watch::newest, Ok);
    let direct = chosen.as_ref().ok().and_then(|of| watch::direct(&of.profile.points));
    let price = Price { direct, total: None };
    let interrupt = Interrupt::watch()?;
    let mut session =
        TracerSession::open(TraceScope::All, None, Some(args.by), "switchcost cost --pid PID")?;
    let mut state = ScreenState::new(args.by, args.sort, args.filter.clone());
    state.costs = Some(chosen.map(|chosen| chosen.profile));
    state.own = if args.profile.is_none() { OwnCost::all() } else { Vec::new() };
    match args.batch {
        Some(form) => batch(args, &mut session, &state, price, form, &interrupt)?,
        None => live(args, &mut session, &mut state, price, &interrupt)?,
    }
    Ok(interrupt.exit_code().unwrap_or(0).into())
}

/// Prices the switches of programs that were measured themselves by what these cost: with the
/// refill of caches, which others' are without. What was done, for each of them.
fn reprice(rows: &mut [SwitchRow], own: &[OwnCost]) -> Vec<String> {
    let mut told = Vec::new();
    for row in rows.iter_mut().filter(|row| row.cpu_share > 0.0) {
        let id = row.id.and_then(|id| i32::try_from(id).ok());
        let Some(of) = id.and_then(|id| own.iter().find(|of| of.is_of(id))) else { continue };
        let share = |ns: f64| (row.switches_per_s() * ns * 1e-9 / row.cpu_share).clamp(0.0, 1.0);
        row.cost_share = Some(of.each_ns.map(share));
        told.push(format!("cost of {}: with refilling caches, {}", row.name, of.in_words()));
    }
    told.sort_unstable();
    told.dedup();
    told
}

/// Looks, and gives what has happened since the update before.
fn update(session: &mut TracerSession, state: &ScreenState, price: Price) -> TopUpdate {
    let by = state.by;
    let profile: Reading<CostProfile> =
        state.costs.clone().map_or_else(Reading::default, Reading::from);
    session.look();
    let seconds = session.elapsed().as_secs_f64();
    let total = SwitchRow {
        name: "machine".into(),
        ..SwitchRow::of(&session.account.total(), seconds, price)
    };
    let mut rows = rows(&session.account, (by, &session.labels), seconds, price);
    let priced = reprice(&mut rows, &state.own);
    let update = TopUpdate {
        schema: SCHEMA,
        seconds,
        total,
        own: session.own(),
        rows,
        profile: profile.clone().map(|of| of.run),
        profile_age_s: profile.known().and_then(|of| of.age_s),
        notices: session.gaps().into_iter().chain(priced).collect(),
    };
    session.begin_anew();
    update
}

fn batch(
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
        ignore_broken_pipe(print_on(legend.as_bytes())).context("cannot print the legend")?;
    }
    while left > 0 {
        let time = end.saturating_duration_since(Instant::now());
        let is_over = wait(session, args.interval.min(time), interrupt) || time <= args.interval;
        let mut update = update(session, state, price);
        state.arrange(&mut update.rows);
        let text = match form {
            BatchForm::Text => {
                let lines = screen::lines(&update, state).join("\n") + "\n\n";
                for_people(&lines, &stdout())
            }
            BatchForm::Json => serde_json::to_string(&update)? + "\n",
        };
        let printed = print_on(text.as_bytes());
        let is_read = !matches!(&printed, Err(error) if error.kind() == ErrorKind::BrokenPipe);
        ignore_broken_pipe(printed).context("cannot print an update")?;
        if is_over || !is_read {
            break;
        }
        left -= 1;
    }
    Ok(())
}

/// Waits so long, but looks often enough to see threads that come and go; whether waiting was
/// ended.
fn wait(session: &mut TracerSession, time: Duration, interrupt: &Interrupt) -> bool {
    let end = Instant::now() + time;
    while !interrupt.wait_until(end, LOOK) {
        session.look();
    }
    interrupt.signal().is_some()
}

fn live(
    args: &TopArgs,
    session: &mut TracerSession,
    state: &mut ScreenState,
    price: Price,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut terminal = RawTerminal::open().context("the terminal")?;
    let (mut left, end) = (args.updates.unwrap_or(u64::MAX), args.end());
    let (mut shown, mut due) = (None, Instant::now() + args.interval.min(LOOK));
    while interrupt.signal().is_none() && Instant::now() < end {
        if Instant::now() >= due {
            due = Instant::now() + args.interval;
            let new = update(session, state, price);
            if !state.frozen {
                shown = Some(new);
            }
            left -= 1;
        }
        terminal.draw(&screen::screen(shown.as_ref(), state, terminal.size()))?;
        if left == 0 {
            break;
        }
        session.look_if_due();
        let longest = due.saturating_duration_since(Instant::now()).min(SOON);
        for key in terminal.keys(longest)? {
            match state.press(key) {
                KeyAction::Quit => return Ok(()),
                KeyAction::Regroup => {
                    session.group_by(state.by);
                    // What is shown is of other groups.
                    (shown, due) = (None, Instant::now() + args.interval.min(LOOK));
                    session.begin_anew();
                }
                KeyAction::Nothing => {}
            }
        }
    }
    Ok(())
}

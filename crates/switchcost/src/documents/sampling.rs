//! `classic experiment sampling`: what accounting by the timer tick makes of a process that sleeps
//! whenever the tick comes.
//!
//! At each tick the kernel charges the process that it finds running. A process that runs only
//! between ticks is never found, however much CPU time it takes:
//!
//! ```text
//! tick      |         |         |         |
//! sleeper     #####     #####     #####        50 % of the CPU; charged by ticks: 0 %
//! burner    ##     #####     #####     ##      the rest; charged by ticks: 100 %
//! ```

use std::ops::RangeInclusive;
use std::time::Duration;

use analysis::estimate::Estimate;
use analysis::findings::sampling::{AccountedTime, ProcessAccounts, SamplingPoint};
use analysis::marked;
use analysis::marked::MarkedText;
use analysis::quote::NotQuotable;
use analysis::record::TrialRecord;
use anyhow::Result;
use charts::{Axis, Figure, Role, Scale, Series, Unit};
use clap::Args;
use probe::policy;
use rundata::experiment::Experiment;
use rundata::notice::Notice;
use rundata::ring::Policy;
use rundata::trial::Trial;
use rundata::trial::sampling::{ACCOUNTS, PROCESSES, SleepPhase, TimeAccount};

use crate::base::failure::usage;
use crate::base::values::{duration, nanoseconds};
use crate::engine::setting::{self, LocalHost, PlanWithNotices};
use crate::experiments::clock::{OneCpuArgs, TrialPlan};
use crate::report::figures::{count_points, lines};
use crate::report::output::columns::Columns;
use crate::report::printout::printout;
use crate::report::table::Table;
use crate::report::terminal::{
    AnswerOrReason, ReportText, answer_value, answer_words, count, difference, figure as digits,
};

#[derive(Debug, Args)]
pub(crate) struct SamplingArgs {
    /// Time for which the two processes are watched in each round
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) duration: Duration,

    #[command(flatten)]
    pub(crate) common: OneCpuArgs,
}

/// Name of the process that sleeps; the other one is always busy.
const SLEEPER: &str = PROCESSES[0];

/// Shortest and longest time of a round.
const DURATIONS_NS: RangeInclusive<u64> = 100_000_000..=300_000_000_000;

pub(crate) fn plan(args: &SamplingArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let duration_ns = nanoseconds(args.duration);
    if !DURATIONS_NS.contains(&duration_ns) {
        return Err(usage(format!(
            "--duration {}: accepted are 100ms to 5m",
            humantime::format_duration(args.duration)
        )));
    }
    let mut notices = Vec::new();
    let mut sleeper_policy = Policy::Fifo;
    if let Err(errno) = policy::check(Policy::Fifo) {
        sleeper_policy = Policy::Other;
        let why = setting::describe_no_fifo(errno);
        let notice = format!(
            "the sleeper runs under SCHED_OTHER, so the busy process may delay it into the tick: \
                {why}"
        );
        notices.push(Notice::from(notice));
    }
    let phases = [SleepPhase::AcrossTicks, SleepPhase::Anywhere];
    let plan = TrialPlan {
        experiment: Experiment::ClockSampling,
        trials: phases.map(|phase| Trial::Sampling { phase, duration_ns }).to_vec(),
        policy: sleeper_policy,
        repeats: 1,
        notices,
    };
    plan.on_cpu(&args.common, here)
}

const SAMPLING_LEGEND: &str = "errors: of the whole against the scheduler's sum (CLOCK_PROCESS_CPUTIME_ID, \
     schedstat), of user time against threadclock around the system calls\n\
     ticks: utime + stime as the kernel samples them\n\
     precise on today's Linux: the scheduler's sum, and user + system of a process, which \
     is scaled to it\n\
     sampled by ticks: how that sum is split into user and system (getrusage, times, \
     /proc/PID/stat, time(1), top)\n";

pub(crate) fn text(record: &TrialRecord, points: &[SamplingPoint]) -> ReportText {
    let policy = record.cases.first().map_or(Policy::Other, |case| case.case.policy);
    let tick = tick_line(points);
    let legend = format!(
        "\n\n{SAMPLING_LEGEND}{tick}the sleeper runs for half of its period, under policy \
         {policy}\nthe precision below is that of the sleeper's share of the CPU; errors have \
         intervals of their own\n"
    );
    ReportText {
        headline: answer(points),
        table: printout![account_table(points, answer_value), "\n"],
        details: printout![account_table(points, answer_words), legend],
        ..ReportText::default()
    }
}

/// Says how far ticks are apart, the median of the phases; empty if it is unknown.
fn tick_line(points: &[SamplingPoint]) -> String {
    let mut ticks_ns = Vec::new();
    for point in points {
        ticks_ns.extend(point.tick_ns.map(|estimate| estimate.value));
    }
    match stats::median(&ticks_ns) {
        Some(ns) => format!("a tick every {} ms, as the kernel reports it\n", digits(ns / 1e6)),
        None => String::new(),
    }
}

/// A row of the table: an account of a process in a phase.
struct AccountRow<'a> {
    phase: SleepPhase,
    process: &'a str,
    account: &'a TimeAccount,
    /// Absent if this machine does not have the account.
    time: Option<&'a AccountedTime>,
}

/// Returns a row for each account of each process in each phase. `error_words` writes the error in
/// percent.
fn account_table(points: &[SamplingPoint], error_words: fn(AnswerOrReason) -> MarkedText) -> Table {
    let mut rows = Vec::new();
    for point in points {
        for process in &point.processes {
            for account in &ACCOUNTS {
                let time = process.accounts.get(account.name);
                rows.push(AccountRow {
                    phase: point.phase,
                    process: &process.process,
                    account,
                    time,
                });
            }
        }
    }
    let columns = Columns::<AccountRow>::new()
        .right("sleeping", |row| row.phase)
        .right("process", |row| row.process.to_string())
        .right("account", |row| row.account.in_words)
        .marked_figure("ms per s", |row| answer_value(count(row.time.map(|time| time.ms_per_s))))
        .marked_figure("error %", |row| match row.time {
            Some(AccountedTime { error_percent: None, .. }) => "(the truth)".into(),
            time => error_words(difference(time.and_then(|time| time.error_percent))),
        });
    columns.table(rows)
}

/// The CPU time of the sleeper by an account, beside its true CPU time.
struct AccountShare {
    /// Mark of the less certain of both.
    mark: &'static str,
    /// Milliseconds a second.
    charged_ms: f64,
    true_ms: f64,
}

impl AccountShare {
    /// Returns the share of an account; absent if one of both times is not quotable.
    fn from_points(points: &[SamplingPoint], account: &str) -> Option<Self> {
        let charged = sleeper_time(points, account)?.answer_count().ok()?;
        let truth = sleeper_time(points, "precise")?.answer_cost().ok()?;
        let mark = if charged.is_rough() { charged.mark() } else { truth.mark() };
        Some(Self { mark, charged_ms: charged.value(), true_ms: truth.value() })
    }

    fn percent(&self) -> f64 {
        100.0 * self.charged_ms / self.true_ms
    }
}

/// Returns the CPU time of the process that sleeps whenever the tick comes, by an account, in
/// milliseconds a second.
fn sleeper_time(points: &[SamplingPoint], account: &str) -> Option<Estimate> {
    let point = points.iter().find(|point| point.phase == SleepPhase::AcrossTicks)?;
    let sleeper = point.processes.iter().find(|process| process.process == SLEEPER)?;
    Some(sleeper.accounts.get(account)?.ms_per_s)
}

/// Says how much of its CPU time the ticks see of a process that sleeps whenever they come.
fn answer(points: &[SamplingPoint]) -> MarkedText {
    let Some(ticks) = AccountShare::from_points(points, "ticks") else {
        return unknown_share(points).into();
    };
    let usage = match AccountShare::from_points(points, "getrusage") {
        Some(share) => {
            format!("; getrusage's user + system is {} % of it", digits(share.percent()))
        }
        None => String::new(),
    };
    let [charged_ms, true_ms] = [ticks.charged_ms, ticks.true_ms].map(digits);
    let rest = format!(
        " of the CPU time of a process that sleeps whenever they come ({charged_ms} of {true_ms} \
         ms a second){usage}."
    );
    let percent = format!("{}{} %", ticks.mark, digits(ticks.percent()));
    marked!["Ticks see ", MarkedText::figure(percent), rest]
}

/// Says why it is unknown how much the ticks see.
fn unknown_share(points: &[SamplingPoint]) -> String {
    for account in ["ticks", "precise"] {
        let Some(estimate) = sleeper_time(points, account) else { continue };
        match estimate.answer_count() {
            Ok(_) => continue,
            Err(NotQuotable::TooFewRounds(_)) => {
                return "Too few rounds to tell what ticks see of a sleeper: raise --budget."
                    .to_string();
            }
            Err(why) => {
                let why = why.with_unit("ms a second");
                return format!("CPU time that ticks charge to a sleeper: {why}.");
            }
        }
    }
    "The CPU time that ticks charge to a sleeper was not measured.".to_string()
}

/// Draws the CPU time that each account charges to each process, as a share of the time.
pub(crate) fn figure(points: &[SamplingPoint], index: usize) -> Option<Figure> {
    let mut series = Vec::new();
    for point in points {
        for process in &point.processes {
            series.push(account_bars(point, process, index));
        }
    }
    let names = ACCOUNTS.iter().map(|account| account.in_words.to_string()).collect();
    let y = Axis::new("CPU time charged / time watched", Unit::Ratio, Scale::Linear);
    let axes = (Axis::with_names("account", names), y);
    let in_words = "Share of the time that each account gives to each process: where ticks \
         sample, a process that sleeps whenever the tick comes is charged too little.";
    let title = "What accounting by ticks makes of a sleeper";
    lines("clock-sampling", title, in_words.to_string(), axes, series)
}

fn account_bars(point: &SamplingPoint, process: &ProcessAccounts, index: usize) -> Series {
    let mut shares = Vec::new();
    for (place, account) in ACCOUNTS.iter().enumerate() {
        let time = process.accounts.get(account.name);
        shares.push((place as f64, time.and_then(|time| time.ms_per_s.scaled(1e-3))));
    }
    let name = format!("{}, sleeps {}", process.process, point.phase);
    Series::new(name, index, Role::Bars, count_points(shares))
}

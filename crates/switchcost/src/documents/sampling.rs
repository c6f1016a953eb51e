//! `classic experiment sampling`: what accounting by the timer tick makes of a sleeper.

use std::time::Duration;

use analysis::findings::sampling::{ProcessAccounts, SamplingPoint};
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
use rundata::trial::sampling::{ACCOUNTS, PROCESSES, SleepPhase};

use crate::base::failure::usage;
use crate::base::values::{duration, nanoseconds};
use crate::engine::setting::{self, LocalHost, PlanWithNotices};
use crate::experiments::clock::{OneCpuArgs, TrialPlan};
use crate::report::figures::{count_points, lines};
use crate::report::printout::printout;
use crate::report::table::{Table, cells};
use crate::report::terminal::{
    AnswerOrReason, ReportText, answer_value, answer_words, count, difference, figure as digits,
};

#[derive(Debug, Args)]
pub(crate) struct SamplingArgs {
    /// How long the two processes are watched in each round
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) duration: Duration,

    #[command(flatten)]
    pub(crate) common: OneCpuArgs,
}

pub(crate) fn plan(args: &SamplingArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    let duration_ns = nanoseconds(args.duration);
    if !(100_000_000..=300_000_000_000).contains(&duration_ns) {
        return Err(usage(format!(
            "--duration {}: accepted are 100ms to 5m",
            humantime::format_duration(args.duration)
        )));
    }
    let why = policy::check(Policy::Fifo).err().map(setting::describe_no_fifo);
    let policy = if why.is_some() { Policy::Other } else { Policy::Fifo };
    let notice = why.map(|why| {
        format!(
            "the sleeper runs under SCHED_OTHER, so the busy process may delay it into the tick: \
                {why}"
        )
    });
    let phases = [SleepPhase::AcrossTicks, SleepPhase::Anywhere];
    let trials = phases.map(|phase| Trial::Sampling { phase, duration_ns }).to_vec();
    let plan = TrialPlan {
        experiment: Experiment::ClockSampling,
        trials,
        policy,
        repeats: 1,
        notices: Notice::from_texts(notice),
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
    let columns = ["sleeping", "process", "account", "ms per s", "error %"];
    let ticks: Vec<f64> = points.iter().filter_map(|p| p.tick_ns).map(|e| e.value).collect();
    let tick = stats::median(&ticks).map_or(String::new(), |tick| {
        format!("a tick every {} ms, as the kernel reports it\n", digits(tick / 1e6))
    });
    let policy = record.cases.first().map_or(Policy::Other, |case| case.case.policy);
    let legend = format!(
        "\n\n{SAMPLING_LEGEND}{tick}the sleeper runs for half of its period, under policy \
         {policy}\nthe precision below is that of the sleeper's share of the CPU; errors have \
         intervals of their own\n"
    );
    let details = printout![Table::new(columns, accounts(points, answer_words)), legend];
    ReportText {
        headline: answer(points),
        table: printout![Table::new(columns, accounts(points, answer_value)), "\n"],
        details,
        ..ReportText::default()
    }
}

/// A row for each account of each process in each phase; `error` writes how far it is off, in
/// percent.
fn accounts(
    points: &[SamplingPoint],
    error: impl Fn(AnswerOrReason) -> MarkedText,
) -> Vec<[MarkedText; 5]> {
    let mut rows = Vec::new();
    for (point, process) in points.iter().flat_map(|of| of.processes.iter().map(move |p| (of, p))) {
        for account in &ACCOUNTS {
            let reading = process.accounts.get(account.name);
            let error = match reading.map(|of| of.error_percent) {
                Some(None) => "(the truth)".into(),
                off => error(difference(off.flatten())),
            };
            rows.push(cells![
                point.phase.to_string(),
                process.process.clone(),
                account.in_words.to_string(),
                answer_value(count(reading.map(|of| of.ms_per_s))),
                error,
            ]);
        }
    }
    rows
}

/// How much of its CPU time the ticks see of a process that sleeps whenever they come.
fn answer(points: &[SamplingPoint]) -> MarkedText {
    let told = |account: &str| {
        let point = points.iter().find(|point| point.phase == SleepPhase::AcrossTicks)?;
        let sleeper = point.processes.iter().find(|of| of.process == PROCESSES[0])?;
        Some(sleeper.accounts.get(account)?.ms_per_s)
    };
    let share = |account: &str| {
        let (told, truth) =
            (told(account)?.answer_count().ok()?, told("precise")?.answer_cost().ok()?);
        let mark = if told.is_rough() { told.mark() } else { truth.mark() };
        Some((mark, told.value(), truth.value(), 100.0 * told.value() / truth.value()))
    };
    let Some((mark, seen, truth, percent)) = share("ticks") else {
        let open = ["ticks", "precise"].into_iter().filter_map(told);
        let why = open.filter_map(|of| of.answer_count().err()).next();
        let open = match why {
            Some(NotQuotable::TooFewRounds(_)) => {
                "Too few rounds to tell what ticks see of a sleeper: raise --budget.".to_string()
            }
            Some(why) => {
                format!("What timer ticks see of a sleeper: {}.", why.with_unit("ms a second"))
            }
            None => "What timer ticks see of a sleeper was not measured.".to_string(),
        };
        return open.into();
    };
    let [percent, seen, truth] = [percent, seen, truth].map(digits);
    let usage = share("getrusage");
    let usage =
        usage.map(|(.., all)| format!("; getrusage's user + system is {} % of it", digits(all)));
    let behind = format!(
        " of the CPU time of a process that sleeps whenever they come ({seen} of {truth} ms a \
         second){}.",
        usage.unwrap_or_default()
    );
    marked!["Ticks see ", MarkedText::figure(format!("{mark}{percent} %")), behind]
}

/// What each account told of each process, as a share of the time.
pub(crate) fn figure(found: &[SamplingPoint], index: usize) -> Option<Figure> {
    let series = |point: &SamplingPoint, process: &ProcessAccounts| {
        let shares = ACCOUNTS.iter().enumerate().map(|(place, account)| {
            let reading = process.accounts.get(account.name);
            (place as f64, reading.and_then(|of| of.ms_per_s.scaled(1e-3)))
        });
        let name = format!("{}, sleeps {}", process.process, point.phase);
        Series::new(name, index, Role::Bars, count_points(shares))
    };
    let all =
        found.iter().flat_map(|point| point.processes.iter().map(move |of| series(point, of)));
    let names = ACCOUNTS.iter().map(|account| account.in_words.to_string()).collect();
    let y = Axis::new("CPU time charged / time watched", Unit::Ratio, Scale::Linear);
    let axes = (Axis::with_names("account", names), y);
    let in_words = "Share of the time that each account gives to each process: where ticks \
         sample, a process that sleeps whenever the tick comes is charged too little.";
    let title = "What accounting by ticks makes of a sleeper";
    lines("clock-sampling", title, in_words.to_string(), axes, all)
}

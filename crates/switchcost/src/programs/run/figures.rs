//! Charts of `switchcost run`: how long each command takes, how many times the first, and each run
//! by round.

use charts::{Axis, Figure, Point, Role, Scale, Series, Unit};

use super::findings::{
    CommandSummary, ComparedTime, complete_runs, runs_of_command, sort_by_real_time,
};
use super::record::CommandUseRecord;
use crate::report::figures::{cost_points, count_points, lines, nanoseconds};
use crate::report::terminal::counted;

/// Id of the chart of times: of each command, or of one command by the parts of its time.
pub(super) const TIMES: &str = "times";
/// Id of the chart of times over those of the first command.
pub(super) const RATIOS: &str = "ratios";
/// Id of the chart of each run's real time.
pub(super) const ROUNDS: &str = "rounds";

/// Draws all charts that the record has data for.
pub(super) fn draw_figures(record: &CommandUseRecord) -> Vec<Figure> {
    let times = match &record.commands[..] {
        [summary] => draw_time_parts(summary),
        summaries => draw_times(record, summaries),
    };
    [times, draw_ratios(record), draw_rounds(record)].into_iter().flatten().collect()
}

/// Draws real and CPU time of each command, the fastest first.
fn draw_times(record: &CommandUseRecord, summaries: &[CommandSummary]) -> Option<Figure> {
    let by_time = sort_by_real_time(summaries);
    let mut names = Vec::new();
    for summary in &by_time {
        names.push(record.plan.label(summary.number));
    }
    let series = ComparedTime::ALL.map(|time| time_bars(&by_time, time));
    let runs = by_time.iter().map(|summary| summary.runs).min()?;
    draw_bars(Axis::with_names("command", names), runs, series)
}

fn time_bars(summaries: &[&CommandSummary], time: ComparedTime) -> Series {
    let mut estimates = Vec::new();
    for (place, summary) in summaries.iter().enumerate() {
        let figure = summary.figure(time.name());
        estimates.push((place as f64, figure.map(|figure| figure.estimate)));
    }
    Series::new(time.title(), 0, Role::Bars, cost_points(estimates))
}

/// Draws real time, CPU time with its parts, and run delay of one command.
fn draw_time_parts(summary: &CommandSummary) -> Option<Figure> {
    let mut bars = NamedBars::default();
    bars.push("real time", median_bar(summary, "real_ns"));
    bars.push("CPU time", median_bar(summary, "cpu_ns"));
    if let (Some(cpu_ns), Some(user)) = (summary.median("cpu_ns"), summary.split.user) {
        bars.push_share("user", cpu_ns, [user.value, user.low, user.high]);
        let system = [1.0 - user.value, 1.0 - user.high, 1.0 - user.low];
        bars.push_share("system", cpu_ns, system);
    }
    bars.push("waiting for a CPU, all threads", median_bar(summary, "run_delay_ns"));
    let axis = Axis::with_names("part of the time", bars.names);
    draw_bars(axis, summary.runs, [Series::new("time", 0, Role::Bars, bars.points)])
}

/// Bars of one series, each with its name on the axis.
#[derive(Default)]
struct NamedBars {
    names: Vec<String>,
    points: Vec<Point>,
}

impl NamedBars {
    /// Adds a bar at the next place, if there is one.
    fn push(&mut self, name: &str, bar: Option<Point>) {
        if let Some(bar) = bar {
            self.points.push(Point { x: self.names.len() as f64, ..bar });
            self.names.push(name.to_string());
        }
    }

    /// Adds the bar of a share of a time and its interval; none for a share of zero.
    fn push_share(&mut self, name: &str, whole_ns: f64, [share, low, high]: [f64; 3]) {
        if share > 0.0 {
            let ends = [low * whole_ns, high * whole_ns];
            self.push(name, Some(Point::with_ends(0.0, share * whole_ns, ends)));
        }
    }
}

fn median_bar(summary: &CommandSummary, name: &str) -> Option<Point> {
    cost_points([(0.0, Some(summary.figure(name)?.estimate))]).pop()
}

/// Draws bars from zero: their lengths are compared.
fn draw_bars(x: Axis, runs: u32, series: impl IntoIterator<Item = Series>) -> Option<Figure> {
    let axes = (x, nanoseconds("time of a run"));
    let figure = lines(TIMES, "Time of a run", runs_words(runs), axes, series)?;
    Some(Figure { y: Axis { scale: Scale::Linear, ..figure.y }, ..figure })
}

/// Describes the bars by the number of runs.
fn runs_words(runs: u32) -> String {
    match runs {
        1 => "Of one run, without intervals.".to_string(),
        runs if runs < rundata::plan::MIN_ROUNDS => {
            format!("Medians of {runs} runs; hollow: too few for an interval.")
        }
        runs => format!("Medians of {}, with 95 % intervals.", counted(runs as usize, "run")),
    }
}

/// Draws real and CPU time of each further command over those of the first, with a line at no
/// change.
fn draw_ratios(record: &CommandUseRecord) -> Option<Figure> {
    let mut names = Vec::new();
    for number in 1..record.plan.commands.len() {
        names.push(record.plan.label(number));
    }
    let mut series = ComparedTime::ALL.map(|time| ratio_points(record, time)).to_vec();
    if series.iter().all(|series| series.points.is_empty()) {
        return None;
    }
    let ends = [-0.4, names.len() as f64 - 0.6].map(|x| Point::bare(x, 1.0)).to_vec();
    series.push(Series { name: "no change".into(), run: None, role: Role::Law, points: ends });
    let first = record.plan.label(0);
    let y = Axis::new(&format!("time / time of {first}"), Unit::Ratio, Scale::Linear);
    let axes = (Axis::with_names("command", names), y);
    let in_words = format!("Within each round; 1 is as long as {first}.");
    lines(RATIOS, "Times over that of the first", in_words, axes, series)
}

fn ratio_points(record: &CommandUseRecord, time: ComparedTime) -> Series {
    let mut ratios = Vec::new();
    for ratio in &record.ratios {
        if ratio.is_of(time) {
            ratios.push((ratio.command as f64 - 1.0, Some(ratio.estimate)));
        }
    }
    Series::new(time.title(), 0, Role::Measured, count_points(ratios))
}

/// Draws the real time of each run by its round, for commands with several runs.
fn draw_rounds(record: &CommandUseRecord) -> Option<Figure> {
    let runs = complete_runs(&record.runs);
    let mut series = Vec::new();
    for summary in &record.commands {
        let mut points = Vec::new();
        for run in runs_of_command(&runs, summary.number) {
            points.push(Point::bare(f64::from(run.round) + 1.0, run.used.real_ns as f64));
        }
        if points.len() > 1 {
            series.push(Series::new(record.plan.label(summary.number), 0, Role::Raw, points));
        }
    }
    let axes = (Axis::new("round", Unit::Count, Scale::Linear), nanoseconds("real time"));
    lines(ROUNDS, "Real time by round", outliers_words(record), axes, series)
}

fn outliers_words(record: &CommandUseRecord) -> String {
    let count: usize = record.commands.iter().map(|summary| summary.outliers.len()).sum();
    match count {
        0 => "No outliers.".to_string(),
        1 => "1 outlier.".to_string(),
        count => format!("{count} outliers."),
    }
}

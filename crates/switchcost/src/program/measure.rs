//! `switchcost measure`: the main job in one command, and its summary on one screen.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, Command, FromArgMatches};
use model::estimate::Estimate;
use model::findings::wakeup;
use model::noise::NoiseVerdict;
use model::quote::cost;
use model::run::Run;
use model::summary::CaseSummary;
use model::summary_line;
use model::trial::loops;
use model::{record, words};

use crate::base::failure::say;
use crate::base::values::{Budget, Destination, budget, each_once, run_name, whole};
use crate::engine::execute::{self, About};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::{Progress, switch_so_far};
use crate::engine::setting::{Here, Planned};
use crate::experiments::response::answer::sleeper_words;
use crate::experiments::{self, Record};
use crate::experiments::{clock, measures, ring};
use crate::present::machine_line::machine_line;
use crate::present::output::{print_text, say_text};
use crate::present::page;
use crate::present::terminal;
use crate::program::report;
use crate::program::report::drawn::Drawn;

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Stop when this much time is spent; a number is seconds
    ///
    /// Of each experiment the first round is always finished. With a + behind it each may go on up
    /// to three times as long with cases that have too few clean slices.
    #[arg(long, aliases = ["seconds", "duration"], default_value = "60s", value_name = "TIME", value_parser = budget)]
    pub(crate) budget: Budget,

    /// Seed of the order of cases and of the statistics' resampling; recorded
    #[arg(long, default_value_t = 1992, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,

    /// Write a report with charts in HTML to a file, or - for standard output
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(long, short = 'o', alias = "output", value_name = "FILE|-")]
    pub(crate) report: Option<Destination>,

    /// Name of the stored runs: NAME-ring, NAME-cost, NAME-response, NAME-clock
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    pub(crate) name: Option<String>,

    /// Leave out of the records what identifies the machine: host name, boot id, command lines
    #[arg(long)]
    pub(crate) anonymous: bool,

    /// No progress and no summary: only errors and the files
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print all that is known: what each experiment found, notes, where the runs are stored
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// Of the budget, for intervals and the report at the end.
const FOR_THE_END: f64 = 0.05;

/// The experiments in their order, each with its weight in the budget: by how many cases it has and
/// how far they scatter.
const PARTS: [(&str, u32); 4] = [("ring", 25), ("cost", 40), ("response", 25), ("clock", 10)];

pub(crate) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    if let Some(report) = &args.report {
        page::check("--report", report)?;
    }
    let mut course = Course {
        here: Here::detect()?,
        started: Instant::now(),
        budget: Budget { time: args.budget.time.mul_f64(1.0 - FOR_THE_END), ..args.budget },
        seed: args.seed,
        about: About { name: args.name.clone(), anonymous: args.anonymous, store_command: false },
        interrupt: Interrupt::watch()?,
        bar: Progress::whole(args.budget.time, args.quiet),
        headline: None,
        measured: Vec::new(),
        drawn: args.report.is_some().then(Vec::new),
        is_whole: true,
    };
    course.take(0, ring::plan::plan);
    course.take(1, crate::experiments::cost::plan::plan);
    course.take(2, crate::experiments::response::plan::plan);
    course.take(3, clock::overhead::plan);
    course.bar.end();
    let Course { measured, drawn, interrupt, is_whole, .. } = course;
    let mut errors = Vec::new();
    let mut text = text(&measured, args.verbose);
    if let (Some(drawn), Some(to)) = (drawn.filter(|drawn| !drawn.is_empty()), &args.report) {
        let written = report::write(drawn, &format!("{}.", sentence(&measured)), to)
            .context("the report is not written (`switchcost report` makes one of stored runs)");
        match (written, to) {
            (Ok(()), Destination::File(path)) => text += &format!("report: {}\n", path.display()),
            (written, _) => errors.extend(written.err()),
        }
    }
    // The summary goes where the report does not.
    match args.report {
        _ if args.quiet => {}
        Some(Destination::Stdout) => say_text(&text),
        _ => errors.extend(print_text(&text).context("cannot print the summary").err()),
    }
    errors.iter().for_each(|error| say(&format!("error: {error:#}")));
    let failed = !is_whole || !errors.is_empty();
    Ok(interrupt.exit_code().unwrap_or(u8::from(failed)).into())
}

/// An experiment that was measured.
struct Measured {
    name: &'static str,
    run: Run,
    record: Record,
    path: Option<PathBuf>,
}

/// The experiments one after the other. One that cannot be is told of, and leaves the others be.
struct Course {
    here: Here,
    started: Instant,
    budget: Budget,
    seed: u64,
    about: About,
    interrupt: Interrupt,
    bar: Progress,
    /// What a switch costs, for who waits for the rest.
    headline: Option<String>,
    measured: Vec<Measured>,
    /// The charts, if there is to be a report.
    drawn: Option<Vec<Drawn>>,
    is_whole: bool,
}

impl Course {
    fn take<A: Args + FromArgMatches>(
        &mut self,
        part: usize,
        plan: fn(&A, &Here) -> Result<Planned>,
    ) {
        if self.interrupt.signal().is_some() {
            return;
        }
        let (name, _) = PARTS[part];
        let before = self.started.elapsed();
        let budget = self.budget.of_part(part, before);
        let args = defaults(name, budget, self.seed);
        let planned = match args.and_then(|args| plan(&args, &self.here)) {
            // Links and policies are tried for a plan: that takes a moment, too.
            Ok(_) if self.interrupt.signal().is_some() => return,
            Ok(planned) => planned,
            Err(error) => {
                self.is_whole = false;
                return self.bar.say(&format!("error: {name}: {error:#}"));
            }
        };
        let progress = self.bar.part(&planned.0, before, self.headline.clone());
        let given = self.about.name.as_ref().map(|given| format!("{given}-{name}"));
        let about = About { name: given, ..self.about.clone() };
        let here = self.here.clone();
        let mut taken = execute::take(planned, here, &self.interrupt, progress, None, about);
        self.is_whole &= taken.is_whole();
        let record = Record::of(&taken.run);
        record.result().into_iter().for_each(|result| taken.keep_result(result));
        self.headline = self.headline.take().or_else(|| headline(&record));
        let (path, run) = (taken.path(), taken.run);
        if let Some(drawn) = &mut self.drawn {
            drawn.push(Drawn::of_run(&run, &record, path.as_deref(), drawn.len()));
        }
        self.measured.push(Measured { name, run, record, path });
    }
}

/// What a switch of the smallest ring costs.
fn headline(record: &Record) -> Option<String> {
    let Record::Rings(record) = record else { return None };
    let rings = record.cases.iter().filter(|of| of.case.members > 1);
    let smallest = rings.min_by_key(|of| of.case.members)?;
    switch_so_far(&smallest.ns_per_switch_above_solo?)
}

impl Budget {
    /// What an experiment has, where the earlier ones have taken so much.
    fn of_part(self, part: usize, taken: Duration) -> Self {
        // What one is extended by is not taken from the others.
        let weight: u32 = PARTS[..part].iter().map(|(_, weight)| weight).sum();
        let due = self.time * weight / PARTS.iter().map(|(_, weight)| weight).sum::<u32>();
        let taken = if self.extends { taken.min(due) } else { taken };
        Self { time: share(part, self.time.saturating_sub(taken)), ..self }
    }
}

/// What an experiment has of the time that is left: what an earlier one has taken too much or left
/// over is shared by the later ones.
fn share(part: usize, left: Duration) -> Duration {
    left * PARTS[part].1 / PARTS[part..].iter().map(|(_, weight)| weight).sum::<u32>()
}

/// An experiment's own arguments as if only budget and seed had been typed.
fn defaults<A: Args + FromArgMatches>(name: &'static str, budget: Budget, seed: u64) -> Result<A> {
    let extends = if budget.extends { "+" } else { "" };
    let budget = format!("{}ms{extends}", budget.time.as_millis().max(1));
    let words = [name, "--budget", &budget, "--seed", &seed.to_string()].map(String::from);
    let matches = A::augment_args(Command::new(name)).try_get_matches_from(words);
    let matches = matches.with_context(|| format!("the defaults of {name}"))?;
    A::from_arg_matches(&matches).with_context(|| format!("the defaults of {name}"))
}

fn noise(measured: &[Measured]) -> Vec<(&'static str, &NoiseVerdict)> {
    measured.iter().map(|of| (of.name, of.record.common().noise)).collect()
}

/// What matters.
fn sentence(measured: &[Measured]) -> String {
    let all = measured.iter().map(|of| (of.name, &of.record, of.run.unfinished()));
    experiments::sentence(&all.collect::<Vec<_>>())
}

/// All of it but for the report's place, ending with a newline.
fn text(measured: &[Measured], is_verbose: bool) -> String {
    let mut parts = vec![format!("{}.", sentence(measured))];
    let rows: Vec<(String, String)> = measured.iter().flat_map(rows).collect();
    let width = rows.iter().map(|(what, _)| what.chars().count()).max().unwrap_or_default();
    parts.push(rows.iter().map(|(what, cost)| format!("{what:<width$}  {cost}\n")).collect());
    if !is_verbose {
        let noise = NoiseVerdict::together(
            noise(measured).into_iter().map(|(name, verdict)| (name, verdict.clone())),
            &[],
        );
        let line = measured.first().and_then(|first| machine_line(&first.run, &noise));
        parts.extend(line);
        return terminal::page(&parts);
    }
    let lines = lines(measured);
    if let Some(first) = measured.first() {
        let heading = terminal::heading(&first.run.header);
        // The experiment's own name says nothing of several.
        parts.push(heading.replacen(first.run.header.plan.experiment.name(), "measured", 1));
    }
    parts.push(lines.iter().map(|(name, line)| format!("{name:<9} {line}\n")).collect());
    let paths = measured.iter().filter_map(|of| of.path.as_ref());
    parts.push(paths.map(|path| format!("run file: {}\n", path.display())).collect());
    terminal::page(&parts)
}

/// What was measured, and what it costs or takes.
fn rows(of: &Measured) -> Vec<(String, String)> {
    let row = |what: String, of: Estimate| (what, cost(&of));
    match &of.record {
        Record::Rings(record) if record.found.cost.is_none() => {
            let switch = |of: &CaseSummary| Some((of.case.members, of.ns_per_switch_above_solo?));
            let sizes: BTreeMap<u32, Estimate> = record.cases.iter().filter_map(switch).collect();
            let ends = [sizes.first_key_value(), sizes.last_key_value()];
            let ends = each_once(ends.into_iter().flatten()).into_iter();
            ends.map(|(of, cost)| row(format!("switch, {of} processes"), *cost)).collect()
        }
        Record::Rings(record) => {
            let found = summary_line::with_work(record).into_iter();
            let what = |set| format!("switch, working sets of {}", words::bytes(set));
            found.map(|(_, set, cost)| row(what(set), cost)).collect()
        }
        Record::Response(record) => {
            let calls = calls(record).into_iter().map(|(name, cost)| row(name, cost));
            let late = lateness(record, "in").map(|(who, late)| (format!("wake-up, {who}"), late));
            calls.chain(late).collect()
        }
        // It is none of its experiments.
        Record::Explain(_) => Vec::new(),
        Record::Trials(record) => {
            let clocks = clocks(record).into_iter();
            clocks.map(|(name, cost)| row(format!("reading {name}"), cost)).collect()
        }
    }
}

/// What each experiment found, a line or two each, why each ended, and what was not available.
fn lines(measured: &[Measured]) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let (mut stopped, mut notes) = (Vec::new(), Vec::new());
    for Measured { name, run, record, .. } in measured {
        let found = match record {
            Record::Rings(record) => of_rings(record),
            Record::Response(record) => of_response(record),
            Record::Explain(_) => Vec::new(),
            Record::Trials(record) => costs(&clocks(record)).into_iter().collect(),
        };
        lines.extend(found.into_iter().map(|line| (*name, line)));
        if let Some(end) = &run.end {
            let spent = Duration::from_nanos(end.spent_ns).as_secs_f64();
            stopped.push(format!("{name} {} ({spent:.1} s)", terminal::reason_words(end.reason)));
        }
        let of_run = run.header.notices.iter().chain(&run.warnings);
        notes.extend(of_run.map(|note| ("note", note.clone())));
    }
    let noisy = noise(measured).into_iter().filter(|(_, verdict)| !verdict.reasons.is_empty());
    lines.extend(noisy.map(|(name, noise)| ("machine", format!("{name}: {}", noise.in_words()))));
    lines.extend((!stopped.is_empty()).then(|| ("stopped", stopped.join("; "))));
    lines.extend(each_once(notes));
    lines
}

fn of_rings(record: &record::RingRecord) -> Vec<String> {
    let series = record.found.scaling.iter().map(|series| series.in_words.clone());
    let curves = record.found.cost.iter().flat_map(|cost| &cost.curves);
    let curves = curves.map(|curve| format!("{}: {}", curve.work.walk_in_words(), curve.in_words));
    series.chain(curves).collect()
}

/// Calls and signals of the memorandum.
const LOOPS: [&str; 2] = [loops::GETUID, loops::SIGNAL_SELF];

/// What a signal and a system call cost, how late a sleeper is woken.
fn of_response(record: &record::ResponseRecord) -> Vec<String> {
    let late = lateness(record, "within").map(|(who, late)| format!("late by, {who}: {late}"));
    costs(&calls(record)).into_iter().chain(late).collect()
}

fn calls(record: &record::ResponseRecord) -> Vec<(String, Estimate)> {
    let named = record.found.loops.iter().filter(|of| LOOPS.contains(&&*of.call));
    named.filter_map(|of| Some((of.call.clone(), of.ns?))).collect()
}

/// How late each sleeper is woken: the median, and below what nearly all are.
fn lateness<'a>(
    record: &'a record::ResponseRecord,
    within: &'static str,
) -> impl Iterator<Item = (String, String)> + 'a {
    let late = move |found: &wakeup::Found| {
        let far = found.p99_ns.map(|tail| words::time(tail.value_ns as f64));
        let far = far.map_or(String::new(), |far| format!(", 99 % {within} {far}"));
        Some((sleeper_words(record, found.case), cost(found.median_ns.as_ref()?) + &far))
    };
    record.found.wakeups.iter().filter_map(late)
}

fn clocks(record: &record::TrialRecord) -> Vec<(String, Estimate)> {
    let all = measures::costs(record).into_iter();
    all.filter(|(name, _)| clock::FIRST.contains(&&**name)).collect()
}

/// What these cost, in one line.
fn costs(all: &[(String, Estimate)]) -> Option<String> {
    let words = all.iter().map(|(name, of)| format!("{name}: {}", cost(of))).collect::<Vec<_>>();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::ring::RingArgs;

    #[test]
    fn what_is_left_goes_to_the_later_parts() {
        let seconds = Duration::from_secs;
        let [ring, cost, response, clock] = [0, 1, 2, 3];
        assert_eq!(share(ring, seconds(100)), seconds(25));
        // The rings were precise after five seconds.
        assert_eq!(share(cost, seconds(75)), seconds(40));
        assert_eq!(share(response, seconds(7)), seconds(5));
        assert_eq!(share(clock, seconds(3)), seconds(3), "the last has all");
        assert_eq!(share(clock, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_budget_that_may_be_extended_leaves_the_others_theirs_and_reaches_the_plans() {
        let seconds = Duration::from_secs;
        let [ring, cost, clock] = [0, 1, 3];
        let whole = |extends| Budget { time: seconds(100), extends };
        // The rings took three times their share.
        assert_eq!(whole(true).of_part(cost, seconds(75)).time, seconds(40));
        assert_eq!(whole(true).of_part(clock, seconds(300)).time, seconds(10));
        assert_eq!(whole(false).of_part(clock, seconds(300)).time, Duration::ZERO);
        // What is left over is shared.
        assert_eq!(whole(true).of_part(cost, seconds(10)).time, seconds(48));
        for extends in [false, true] {
            let args =
                defaults::<RingArgs>("ring", whole(extends).of_part(ring, Duration::ZERO), 1);
            assert_eq!(args.unwrap().effort.budget, Budget { time: seconds(25), extends });
        }
    }
}

//! `switchcost compare`: did it change? And of several runs: which is the odd one?
//!
//! ```text
//! switchcost compare BASE NEW       names --> find_sides --> Comparison         --> table, report, exit code
//! switchcost compare A B C          names --> find_sides --> PairwiseComparison --> table, report
//! switchcost compare --ab A B       session::measure     --> Comparison         --> table, report, exit code
//!                    --ab-setting ... -- run CMD    session::run_in_turn  --> the report of `run`
//! ```
//!
//! A side is what one name stands for: a run, several launches of one plan, a published machine, or
//! the commands that `run` has measured.

mod table;

use std::mem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::comparison::{
    CaseVerdict, ComparedSetting, Comparison, ComparisonTerms, GateVerdict, LIMIT,
    PairwiseComparison, WantedCost,
};
use analysis::results::{Origin, PUBLISHED_PREFIX, PublishedMachine, Results, SchedulerConflict};
use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgGroup, Args, Command};
use rundata::run::Arm;

use crate::base::failure::{UNDECIDED, exit_code_of_answer, print_message, usage};
use crate::base::values::{Destination, each_once, share};
use crate::engine::effort::CONFIDENCE;
use crate::engine::execute::RecordedRun;
use crate::engine::store::speed::{results_of, results_of_files};
use crate::engine::store::{self, RunStore, StoredRun, header};
use crate::experiments::ring::RingArgs;
use crate::program::history::find_published;
use crate::program::report::drawn::{DrawnFile, DrawnRun};
use crate::program::report::records::{self, is_record};
use crate::program::session::{MeasuredSession, SessionCommand, SessionExperiment, TypedSettings};
use crate::program::{report, session};
#[cfg(feature = "programs")]
use crate::programs::run::SessionOptions;
use crate::registry::Record;
use crate::report::output::judgements::{FigureJudgement, JudgementOptions, JudgementOutcome};
use crate::report::output::{OutputOptions, all_written, write_json};
use crate::report::page;

/// The options that measure two settings in one session.
const SESSION_OPTIONS: [&str; 3] = ["ab", "ab_setting", "ab_commands"];

/// The group of these options, one of which is given.
const SESSION_GROUP: &str = "session";

/// Options of `ring` that a comparison of stored runs takes, too; the others need a session.
const SHARED_OPTIONS: [&str; 5] = ["json", "csv", "print", "quiet", "verbose"];

/// Options of a session of which the short help does not tell.
const NOT_IN_SHORT_HELP: [&str; 2] = ["launches", "name"];

/// Returns the command, whose options of `ring` need a session.
pub(crate) fn with_session(command: Command) -> Command {
    let ring = RingArgs::augment_args(Command::new("ring"));
    let output = OutputOptions::augment_args(Command::new("output"));
    let command = command.group(ArgGroup::new(SESSION_GROUP).args(SESSION_OPTIONS));
    command.mut_args(|arg| {
        let id = arg.get_id().as_str();
        let is_of_ring = ring.get_arguments().any(|option| option.get_id() == id);
        if id == "plot" {
            // A comparison is no run: its charts are in the report.
            arg.requires(SESSION_GROUP).hide(true)
        } else if id == "experiment" {
            arg.requires(SESSION_GROUP)
        } else if NOT_IN_SHORT_HELP.contains(&id) {
            arg.requires(SESSION_GROUP).hide_short_help(true)
        } else if is_of_ring && !SHARED_OPTIONS.contains(&id) {
            let is_of_output = output.get_arguments().any(|option| option.get_id() == id);
            let arg = arg.requires(SESSION_GROUP);
            // An experiment behind -- has its own.
            if is_of_output { arg } else { arg.conflicts_with("experiment") }
        } else {
            arg
        }
    })
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What to compare with: a run (name, start of a name, `last`, `last~1`, or a file), or
    /// history:MACHINE
    ///
    /// Several launches of the same plan, with commas between them, are one side; a run of
    /// `ring --launches` stands for all launches that it was measured with.
    /// What `run` wrote (--json FILE.json) is a side, too: its commands, by real time or with
    /// `--cost cpu` by CPU time. So is what `profile` wrote: its functions, by the CPU time of a call.
    /// Stored traces on one side are one trace.
    // No conflict with --ab here: clap takes what conflicts for not required.
    #[arg(required_unless_present_any = SESSION_OPTIONS)]
    pub(crate) base: Option<String>,

    /// What is compared, named in the same way
    #[arg(required_unless_present_any = SESSION_OPTIONS)]
    pub(crate) new: Option<String>,

    /// Further runs: of three or more, which is the odd one?
    ///
    /// Each is compared with each. The odd one out differs from all others in a case in which the
    /// others agree.
    #[arg(conflicts_with_all = ["ab", "ab_setting", "ab_commands", "fail_above", "across", "markdown"])]
    pub(crate) more: Vec<String>,

    /// Measure two settings, interleaved in one session, not stored runs
    ///
    /// A prefix is a command that starts the worker: 'taskset -c 1', 'chrt -f 10', 'nice -n 5',
    /// 'env GLIBC_TUNABLES=...'; '' is no prefix. Each is split into words as a shell does,
    /// but no shell runs it. It must become the worker (exec). One that starts the worker as a
    /// child is refused, as the worker would outlive this program. CPUs and policy that a prefix
    /// sets
    /// are those of its rings; a --policy that says otherwise is refused. What it leaves running is
    /// ended with each worker. Every round measures each case once with each prefix, directly one
    /// after the other, in shuffled order.
    #[arg(long, num_args = 2, value_names = ["PREFIX_A", "PREFIX_B"], allow_hyphen_values = true)]
    pub(crate) ab: Option<Vec<String>>,

    /// Measure two values of a setting: a file below /proc/sys or /sys
    ///
    /// Every round measures each case under both values, in random order; what was set is read back
    /// before anything is measured. A file that chooses one of several words takes such a word, the
    /// scheduler's features take FEATURE or NO_FEATURE. The old value comes back when the session
    /// ends, is interrupted or killed: by a process of its own that outlives this one, and if that
    /// is killed, too, by the next start of switchcost. A file that does not take its own value back
    /// is refused. It needs root, mostly. A value that cannot be taken back once it is set, as some
    /// locks of the kernel, is not recognised as such.
    #[arg(long, num_args = 3, value_names = ["FILE", "A", "B"])]
    pub(crate) ab_setting: Option<Vec<String>>,

    /// Measure two states of the machine, each made by a command
    ///
    /// '' is no command: the machine as it is. Each is run by `sh -c` before the half of a round that is measured under it. One that goes
    /// on, as a scheduler does, is ended before the other begins: by SIGINT, after 3 s SIGTERM,
    /// after 1 s SIGKILL. One that ends by itself, as `sysctl -w` does, runs again at each change.
    /// Which it is, its first start shows: one that runs for 2 s goes on. A command that fails,
    /// hangs, or leaves something running in the background ends the session. When that ends, is
    /// interrupted or killed, nothing of the commands runs any more; if CMD_A ends by itself, it
    /// has been run last. A process of its own sees to that, which outlives this one. What CMD_B
    /// changes must be undone by CMD_A: both end by themselves, or both go on ('' goes with one
    /// that goes on). One that runs as another user, as by sudo, is refused: it could not be ended.
    #[arg(long, num_args = 2, value_names = ["CMD_A", "CMD_B"])]
    pub(crate) ab_commands: Option<Vec<String>>,

    /// What a session measures [default: ring]
    ///
    /// With --ab-setting or --ab-commands: ring, cost, response, explain, clock overhead, or run
    /// with one command; with their own options. What is measured under fifo by default, as cost,
    /// needs --policy other for schedulers to matter.
    #[arg(last = true, value_name = "EXPERIMENT")]
    pub(crate) experiment: Vec<String>,

    /// Exit with 1 if a case has become slower by more than this, with 3 if that is not decided,
    /// with 2 if there is nothing to compare; also the share within which a case is called not
    /// changed [default for that: 3%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) fail_above: Option<f64>,

    /// With --fail-above: exit with 0 instead of 3 where nothing was decided
    #[arg(long, requires = "fail_above")]
    pub(crate) allow_undecided: bool,

    /// Compare what differs in this alone: placement, kernel, scheduler, ...
    ///
    /// Without it only cases of the same setting are compared. `--across placement` answers what
    /// pinning brings, from one run pinned and one that is not.
    #[arg(long, value_name = "SETTING", conflicts_with_all = SESSION_OPTIONS)]
    pub(crate) across: Option<ComparedSetting>,

    /// Print the comparison as Markdown, for a comment on a pull request
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Which cost is compared: switch, hop, cpu; under load p99, request-p50, request-p99
    ///
    /// switch: a switch, as a hop less the ring of one; a hop if the ring does not switch or one
    /// side lacks it. hop: a hop. cpu: CPU time of a switch, else of a hop. For cpu there is a
    /// ratio, but no answer, as the CPU's speed is not known for it. Of commands that `run` ran:
    /// real time, with cpu CPU time, both with an answer. Of wake-ups by `response`: the median, with
    /// p99 the 99th percentile; under load with request-p50 and request-p99 those of whole requests.
    #[arg(long, default_value_t = WantedCost::Switch)]
    pub(crate) cost: WantedCost,

    /// Write a report with charts in HTML to a file, or - for standard output: the difference
    /// first, the worst case on top
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(long, short = 'o', alias = "output", value_name = "FILE|-")]
    pub(crate) report: Option<Destination>,

    #[command(flatten)]
    pub(crate) judgements: JudgementOptions,

    #[command(flatten)]
    pub(crate) ring: RingArgs,
}

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    Ok(exit_code_of_answer(answer(args)))
}

/// Compares what the arguments name; returns the exit code of the gate.
fn answer(args: &CompareArgs) -> Result<ExitCode> {
    check_outputs(args)?;
    let terms = ComparisonTerms {
        limit: args.fail_above.unwrap_or(LIMIT),
        confidence: CONFIDENCE,
        wanted: args.cost,
        across: args.across,
    };
    if let Some(settings) = typed_settings(args)? {
        return measure_session(args, settings, terms);
    }
    let names: Vec<&String> = args.base.iter().chain(&args.new).chain(&args.more).collect();
    let FoundSides { sources, results } = or_unjudged(find_sides(&names), args)?;
    check_apart(&names, &sources, args)?;
    if let [base, new] = &results[..] {
        let comparison = compare_two(base, new, args, terms)?;
        write_report(args, terms, &results, || draw_sources(&sources))?;
        return exit_code(&comparison, args);
    }
    let sides: Vec<(String, Results)> = names.into_iter().cloned().zip(results).collect();
    check_different(&sides)?;
    let comparison = PairwiseComparison::from_results(&sides, terms);
    table::write_several(&comparison, args)?;
    let results: Vec<Results> = sides.into_iter().map(|(_, results)| results).collect();
    write_report(args, terms, &results, || draw_sources(&sources))?;
    if comparison.cases == 0 { bail!("{}", comparison.in_words) } else { Ok(ExitCode::SUCCESS) }
}

/// Checks that all that is to be written can be, before anything is read or measured.
fn check_outputs(args: &CompareArgs) -> Result<()> {
    let output = &args.ring.output;
    output.refuse_plot("a comparison")?;
    if output.files.csv.is_some() {
        return Err(usage("--csv: a comparison has no samples (--json; runs export --format csv)"));
    }
    output.files.check()?;
    output
        .files
        .refuse_print("a comparison", "--json has all; runs show RUN --print has one side's")?;
    let json = output.files.json.as_ref();
    args.judgements.check(&[("--json", json), ("--report", args.report.as_ref())])?;
    let Some(to) = &args.report else { return Ok(()) };
    page::check("--report", to)?;
    if *to == Destination::Stdout && output.files.json == args.report {
        return Err(usage("--json - and --report -: only one of them can have standard output"));
    }
    Ok(())
}

/// Writes the report if one was asked for, and says where it is. `draw` is called only then.
fn write_report(
    args: &CompareArgs,
    terms: ComparisonTerms,
    sides: &[Results],
    draw: impl FnOnce() -> Result<Vec<DrawnRun>>,
) -> Result<()> {
    let Some(to) = &args.report else { return Ok(()) };
    report::compared(draw()?, sides, terms, to).context("the report is not written")?;
    match to {
        Destination::File(path) => table::print_text(format!("report: {}\n", path.display()), args),
        Destination::Stdout => Ok(()),
    }
}

/// Compares two sides and prints the comparison. Fails where they have no case in common.
fn compare_two(
    base: &Results,
    new: &Results,
    args: &CompareArgs,
    terms: ComparisonTerms,
) -> Result<Comparison> {
    let is_run = matches!(base.side.origin, Origin::Run { .. });
    if args.fail_above.is_some() && is_run && base.side.is_same_run(&new.side) {
        return Err(usage(format!(
            "BASE and NEW are the same run ({}): --fail-above needs two",
            base.side.name
        )));
    }
    if let Some(across) = terms.across {
        check_across(across, base, new)?;
    }
    let comparison = Comparison::from_results(base, new, terms);
    if comparison.changes.is_empty() {
        // Nothing is printed: the error says all.
        write_json(&comparison, args.ring.output.files.json.as_ref())?;
        return or_unjudged(Err(anyhow!(no_common_case(base, new, terms))), args);
    }
    table::write(&comparison, &[], args)?;
    write_judgements(&comparison, args)?;
    Ok(comparison)
}

/// Returns a result; where it is an error, writes as the judgement that nothing was judged.
fn or_unjudged<T>(result: Result<T>, args: &CompareArgs) -> Result<T> {
    if let Err(error) = &result {
        all_written([args.judgements.write_unjudged("compare", &format!("{error:#}"))]);
    }
    result
}

/// Writes the judgements of the gate where they were asked for.
fn write_judgements(comparison: &Comparison, args: &CompareArgs) -> Result<()> {
    let mut judgements = Vec::new();
    let found = comparison.judgements();
    for (judgement, title) in found.iter().zip(table::judgement_titles(&found)) {
        let name = match comparison.terms.wanted {
            WantedCost::Switch => title,
            wanted => format!("{title}: {wanted}"),
        };
        let outcome = match judgement.verdict {
            CaseVerdict::Pass => JudgementOutcome::Pass,
            CaseVerdict::Fail => JudgementOutcome::Fail,
            CaseVerdict::Undecided => JudgementOutcome::Undecided,
            CaseVerdict::Lost => JudgementOutcome::Unjudged,
        };
        judgements.push(FigureJudgement { name, outcome, words: judgement.in_words.clone() });
    }
    args.judgements.write("compare", &judgements)
}

/// Returns the message that two sides have no case in common, with the setting by which they could be
/// compared.
fn no_common_case(base: &Results, new: &Results, terms: ComparisonTerms) -> String {
    for &across in ComparedSetting::ALL {
        let terms = ComparisonTerms { across: Some(across), ..terms };
        let has_one_value = check_across(across, base, new).is_ok();
        if !has_one_value || Comparison::from_results(base, new, terms).changes.is_empty() {
            continue;
        }
        let values = match (first_label(base, across), first_label(new, across)) {
            (Some(base), Some(new)) => format!(" ({base}, {new})"),
            _ => String::new(),
        };
        return format!(
            "the runs have no case in common, as they differ in {across}{values}: --across \
             {across} compares them"
        );
    }
    "the runs have no case in common: nothing was compared".to_string()
}

fn first_label(results: &Results, setting: ComparedSetting) -> Option<&str> {
    results.cases.iter().find_map(|case| case.label(setting.name()))
}

/// Returns the two settings that are to be measured in one session; `None` where stored runs are
/// compared.
fn typed_settings(args: &CompareArgs) -> Result<Option<TypedSettings<'_>>> {
    let settings = match (&args.ab, &args.ab_setting, &args.ab_commands) {
        (Some(prefixes), _, _) => TypedSettings::Prefixes(prefixes),
        (None, Some(words), _) => match &words[..] {
            [file, values @ ..] => {
                TypedSettings::OfMachine { file: Path::new(file), values: two(values)? }
            }
            [] => return Ok(None),
        },
        (None, None, Some(commands)) => TypedSettings::Commands(two(commands)?),
        (None, None, None) => return Ok(None),
    };
    let option = settings.option();
    if args.ring.launches > 1 {
        return Err(usage(format!(
            "--launches {}: {option} measures both settings in one session (accepted with it: 1; \
             several launches are compared as BASE NEW)",
            args.ring.launches
        )));
    }
    let prefixes = args.ab.as_deref().unwrap_or_default();
    if let Some(flag) = prefixes.iter().find(|prefix| prefix.starts_with('-')) {
        return Err(usage(format!(
            "--ab: a prefix is a command, and '{flag}' is none: is one of the two missing? ('' \
             is no prefix)"
        )));
    }
    if let Some(base) = &args.base {
        return Err(usage(format!("{base}: {option} measures two settings and takes no runs")));
    }
    Ok(Some(settings))
}

/// Returns the two values of an option that takes two.
fn two(values: &[String]) -> Result<&[String; 2]> {
    <&[String; 2]>::try_from(values).context("two settings are compared")
}

/// Measures what stands behind `--`, or rings, under two settings and compares them.
fn measure_session(
    args: &CompareArgs,
    settings: TypedSettings<'_>,
    terms: ComparisonTerms,
) -> Result<ExitCode> {
    if args.experiment.is_empty() {
        return measure_and_compare(args, settings, SessionExperiment::Ring(&args.ring), terms);
    }
    #[cfg_attr(not(feature = "programs"), allow(unused_mut))]
    let mut command = SessionCommand::parse(&args.experiment)?;
    #[cfg(feature = "programs")]
    if let SessionCommand::Run(run) = &mut command {
        check_options_of_run(args)?;
        run.take_session_options(SessionOptions {
            fail_above: args.fail_above,
            allow_undecided: args.allow_undecided,
            markdown: args.markdown.then_some(Destination::Stdout),
            report: args.report.as_ref(),
            judgements: Some(&args.judgements),
            files: Some(&args.ring.output.files),
            verbose: args.ring.output.view.verbose,
            compares_cpu: args.cost == WantedCost::Cpu,
        });
        return session::run_in_turn(settings, run);
    }
    let Some(experiment) = SessionExperiment::from_command(&command) else {
        bail!("{}: nothing to measure", args.experiment.join(" "));
    };
    if let (TypedSettings::Prefixes(_), false) =
        (settings, matches!(experiment, SessionExperiment::Ring(_)))
    {
        return Err(usage("--ab: prefixes are compared by rings (accepted behind --: ring)"));
    }
    experiment.check_output()?;
    measure_and_compare(args, settings, experiment, terms)
}

/// Refuses options before `-- run` that say nothing to it.
#[cfg(feature = "programs")]
fn check_options_of_run(args: &CompareArgs) -> Result<()> {
    if !matches!(args.cost, WantedCost::Switch | WantedCost::Cpu) {
        return Err(usage(format!("--cost {}: (accepted with run: switch, cpu)", args.cost)));
    }
    if args.ring.output.name.is_some() {
        return Err(usage("--name: what run measures is not stored (--json FILE keeps it)"));
    }
    Ok(())
}

/// Measures two settings in one session and compares them.
fn measure_and_compare(
    args: &CompareArgs,
    settings: TypedSettings<'_>,
    experiment: SessionExperiment<'_>,
    terms: ComparisonTerms,
) -> Result<ExitCode> {
    let measured = session::measure(settings, experiment, &args.ring.output, terms);
    let MeasuredSession { comparison, halves, put_back } = or_unjudged(measured, args)?;
    let paths: Vec<PathBuf> = halves.iter().filter_map(RecordedRun::path).collect();
    // Asked before the answer is printed: an interrupt while it is printed does not change it.
    let interrupted = halves[0].interrupt.exit_code();
    table::write(&comparison, &paths, args)?;
    or_unjudged(put_back, args)?;
    if let Some(code) = interrupted {
        args.judgements.write_unjudged("compare", "interrupted")?;
        return Ok(ExitCode::from(code));
    }
    write_judgements(&comparison, args)?;
    let runs = halves.each_ref().map(|half| &half.run);
    write_report(args, terms, &results_of(&runs), || Ok(draw_halves(&halves)))?;
    let code = exit_code(&comparison, args)?;
    // A case that has become slower has done so whatever else failed.
    if !halves.iter().all(RecordedRun::is_complete) && code == ExitCode::SUCCESS {
        bail!("a case could not be measured, or the session could not be stored: see above");
    }
    Ok(code)
}

fn draw_halves(halves: &[RecordedRun]) -> Vec<DrawnRun> {
    let mut drawn = Vec::new();
    for (index, half) in halves.iter().enumerate() {
        let (record, path) = (Record::from_run(&half.run), half.path());
        drawn.push(DrawnRun::from_run(&half.run, &record, path.as_deref(), index));
    }
    drawn
}

/// Source of the figures of a side.
enum SideSource {
    Published(PublishedMachine),
    /// The files of one or more launches.
    Runs(Vec<PathBuf>),
    /// Figures of `run` or `profile`, of one session or more; `find_sides` takes them out.
    Commands(Vec<Results>),
}

/// Draws all sides.
fn draw_sources(sources: &[SideSource]) -> Result<Vec<DrawnRun>> {
    let mut drawn = Vec::new();
    for source in sources {
        let index = drawn.len();
        drawn.extend(source.draw(index)?);
    }
    Ok(drawn)
}

impl SideSource {
    /// Draws the first launch, with each of its experiments, from the `index`th place of a report
    /// on.
    fn draw(&self, index: usize) -> Result<Vec<DrawnRun>> {
        match self {
            Self::Published(machine) => Ok(vec![DrawnRun::from_published(machine, index)]),
            Self::Commands(_) => Err(usage(
                "--report: records in JSON have pages of their own (switchcost report FILE.json)",
            )),
            Self::Runs(paths) => {
                let first = paths.first().context("no run was named")?;
                let mut parts = DrawnFile::read(first, index)?.parts;
                if paths.len() > 1 {
                    for part in &mut parts {
                        part.title += &format!(" (the first of {} launches)", paths.len());
                    }
                }
                Ok(parts)
            }
        }
    }
}

/// Checks that no run is on both sides: it would pull the answer towards no change. Without a gate
/// that is a warning; a run compared with itself is accepted.
fn check_apart(names: &[&String], sources: &[SideSource], args: &CompareArgs) -> Result<()> {
    let [SideSource::Runs(base), SideSource::Runs(new), ..] = sources else { return Ok(()) };
    let Some(shared) = base.iter().find(|path| new.contains(path)) else { return Ok(()) };
    if base == new {
        return Ok(());
    }
    let message = format!("{} is a run of both {} and {}", shared.display(), names[0], names[1]);
    if args.fail_above.is_some() {
        return Err(usage(format!("{message}: --fail-above needs two")));
    }
    print_message(&format!("warning: {message}"));
    Ok(())
}

/// Sides with their results, in the order of their names.
struct FoundSides {
    sources: Vec<SideSource>,
    results: Vec<Results>,
}

/// Finds the sides of these names. Runs of one CPU are all read by the lowest level that they know of
/// it, so all files are read together.
fn find_sides(names: &[&String]) -> Result<FoundSides> {
    let mut sources = Vec::new();
    for name in names {
        sources.push(find_source(name)?);
    }
    let mut paths: Vec<&Path> = Vec::new();
    for source in &sources {
        if let SideSource::Runs(files) = source {
            paths.extend(files.iter().map(PathBuf::as_path));
        }
    }
    let runs = results_of_files(&paths).into_iter().collect::<Result<Vec<Results>>>()?;
    let mut runs = runs.into_iter();
    let mut sides = Vec::new();
    for (name, source) in names.iter().zip(&mut sources) {
        let mut results = match source {
            SideSource::Published(machine) => machine.to_results(),
            SideSource::Commands(sessions) => join_launches(name, mem::take(sessions))?,
            SideSource::Runs(files) => {
                join_launches(name, runs.by_ref().take(files.len()).collect())?
            }
        };
        results.side.label = report::label(name);
        sides.push(results);
    }
    Ok(FoundSides { sources, results: sides })
}

/// Finds the published machine of that name, or the runs of these names, with a comma between each
/// two: launches of the same plan. A run that was measured as one of several launches stands for all
/// of them, and a name that was given for all that was stored under it.
fn find_source(names: &str) -> Result<SideSource> {
    if let Some(machine) = names.strip_prefix(PUBLISHED_PREFIX) {
        return Ok(SideSource::Published(find_published(machine)?));
    }
    if names.split(',').any(is_record) {
        return Ok(SideSource::Commands(read_sessions(names)?));
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in names.split(',') {
        for entry in of_newest_half(store::find_all(name)?)? {
            paths.extend(launches_of(entry)?);
        }
    }
    Ok(SideSource::Runs(each_once(paths)))
}

/// Keeps the runs that are the same half of a session as the newest. Both halves of a session were
/// given one name, and only one of them is meant.
fn of_newest_half(entries: Vec<StoredRun>) -> Result<Vec<StoredRun>> {
    let Some(newest) = entries.last() else { return Ok(entries) };
    let wanted = half_of(newest)?;
    let mut kept = Vec::new();
    for entry in entries {
        if half_of(&entry)? == wanted {
            kept.push(entry);
        }
    }
    Ok(kept)
}

/// Reads the figures of the records that were named.
fn read_sessions(names: &str) -> Result<Vec<Results>> {
    let mut sessions = Vec::new();
    for name in names.split(',') {
        sessions.push(records::read(Path::new(name))?.results(name)?);
    }
    Ok(sessions)
}

/// Joins the launches of a side, which have to be of one experiment if they were named one by one.
fn join_launches(names: &str, launches: Vec<Results>) -> Result<Results> {
    if let [first, others @ ..] = &launches[..] {
        let experiment = &first.side.experiment;
        let other = others.iter().find(|other| other.side.experiment != *experiment);
        if let (Some(other), true) = (other, names.contains(',')) {
            return Err(usage(format!(
                "{names}: {} is a run of {}, {} of {experiment}: launches on one side are of one \
                 experiment",
                other.side.name, other.side.experiment, first.side.name
            )));
        }
    }
    if let Some(conflict) = SchedulerConflict::among(&launches) {
        return Err(usage(format!("{names}: {conflict}")));
    }
    Results::from_runs(launches).context("no run was named")
}

/// Returns which half of a session a run is, if it is one.
fn half_of(entry: &StoredRun) -> Result<Option<Arm>> {
    Ok(header(&entry.path)?.session.map(|session| session.arm))
}

/// Returns the files of all launches that a run is one of; of a file outside of the store, itself
/// alone.
fn launches_of(run: StoredRun) -> Result<Vec<PathBuf>> {
    let launch = header(&run.path)?.launch;
    let (Some(launch), Ok(store)) = (launch, RunStore::of_user()) else {
        return Ok(vec![run.path]);
    };
    if run.path.parent() != Some(store.path.as_path()) {
        return Ok(vec![run.path]);
    }
    let mut paths = Vec::new();
    for entry in store.entries()? {
        if entry.name.starts_with(&launch.set) && !entry.is_running() {
            paths.push(entry.path);
        }
    }
    Ok(paths)
}

/// Checks that each of several runs is there once, and was measured.
fn check_different(sides: &[(String, Results)]) -> Result<()> {
    for (index, (name, results)) in sides.iter().enumerate() {
        let side = &results.side;
        for (earlier, other) in &sides[..index] {
            if other.side.is_same_run(side) {
                return Err(usage(format!(
                    "{earlier} and {name} are the same run ({})",
                    side.name
                )));
            }
        }
        if matches!(side.origin, Origin::Publication { .. }) {
            return Err(usage(format!(
                "{name}: published figures have no interval: it cannot be one of several runs"
            )));
        }
    }
    Ok(())
}

/// Checks that the setting to compare across has one value on each side: otherwise it is open which
/// cases are pairs.
fn check_across(across: ComparedSetting, base: &Results, new: &Results) -> Result<()> {
    for results in [base, new] {
        let labels = results.cases.iter().filter_map(|case| case.label(across.name()));
        let values = each_once(labels);
        if values.len() > 1 {
            let (name, values) = (&results.side.name, values.join(", "));
            return Err(usage(format!(
                "--across {across}: {name} has several ({values}): measure one in each run \
                 (--{across})"
            )));
        }
    }
    Ok(())
}

/// Returns the exit code of the gate; success without one.
fn exit_code(comparison: &Comparison, args: &CompareArgs) -> Result<ExitCode> {
    if comparison.changes.is_empty() {
        bail!("{}", comparison.in_words);
    }
    if args.fail_above.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let mut lost = Vec::new();
    for case in comparison.lost_cases() {
        lost.push(format!("{}: {}", case.title, case.why));
    }
    match comparison.gate.verdict {
        GateVerdict::Fail => Ok(ExitCode::FAILURE),
        _ if !lost.is_empty() => {
            bail!("--fail-above: not tested, though the base has it: {}", lost.join("; "))
        }
        GateVerdict::Undecided if !args.allow_undecided => Ok(UNDECIDED.into()),
        GateVerdict::Undecided | GateVerdict::Pass => Ok(ExitCode::SUCCESS),
    }
}

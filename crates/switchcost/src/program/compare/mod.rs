//! `switchcost compare`: did it change? And of several runs: which is the odd one?

mod table;

use std::mem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::comparison::{
    ComparedSetting, Comparison, ComparisonTerms, GateVerdict, LIMIT, PairwiseComparison,
    WantedCost,
};
use analysis::results::{Origin, PUBLISHED_PREFIX, PublishedMachine, Results, SchedulerConflict};
use anyhow::{Context, Result, bail};
use clap::{Arg, Args, Command};
use rundata::run::Arm;

use crate::base::failure::{UNDECIDED, or_trouble, print_message, usage};
use crate::base::values::{Destination, each_once, share};
use crate::engine::effort::CONFIDENCE;
use crate::engine::execute::RecordedRun;
use crate::engine::store::speed::{results_of, results_of_files};
use crate::engine::store::{self, RunStore, StoredRun, header};
use crate::experiments::ring::RingArgs;
use crate::program::history::find_published;
use crate::program::report::drawn::Drawn;
use crate::program::report::records::{self, is_record};
use crate::program::{report, session};
use crate::registry::Record;
use crate::report::output::write_json;
use crate::report::page;

/// What of `ring` serves a comparison of stored runs too; all else that it takes is for --ab.
const OF_RUNS_TOO: [&str; 4] = ["json", "csv", "quiet", "verbose"];

/// The command with its arguments as a comparison takes them.
pub(crate) fn with_session(command: Command) -> Command {
    let ring = RingArgs::augment_args(Command::new("ring"));
    let is_of_ring = |arg: &Arg| ring.get_arguments().any(|of| of.get_id() == arg.get_id());
    command.mut_args(|arg| match arg.get_id().as_str() {
        // A comparison is no run: its charts are in the report.
        "plot" => arg.requires("ab").hide(true),
        name if is_of_ring(&arg) && !OF_RUNS_TOO.contains(&name) => arg.requires("ab"),
        _ => arg,
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
    /// `--cost cpu` by CPU time.
    // No conflict with --ab here: clap takes what conflicts for not required.
    #[arg(required_unless_present = "ab")]
    pub(crate) base: Option<String>,

    /// What is compared, named in the same way
    #[arg(required_unless_present = "ab")]
    pub(crate) new: Option<String>,

    /// Further runs: of three or more, which is the odd one?
    ///
    /// Each is compared with each. The odd one out differs from all others in a case in which the
    /// others agree.
    #[arg(conflicts_with_all = ["ab", "fail_above", "across", "markdown"])]
    pub(crate) more: Vec<String>,

    /// Measure two settings, interleaved in one session, instead of comparing stored runs
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

    /// Exit with 1 if a case has become slower by more than this, with 3 if that is not decided,
    /// with 2 if there is nothing to compare; also the share within which a case is called not
    /// changed [default for that: 3%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) fail_above: Option<f64>,

    /// With --fail-above: exit with 0 instead of 3 where nothing was decided
    #[arg(long, requires = "fail_above")]
    pub(crate) allow_undecided: bool,

    /// Compare cases that differ in this alone: policy, placement, link, kind or kernel
    ///
    /// Without it only cases of the same setting are compared. `--across placement` answers what
    /// pinning brings, from one run pinned and one that is not.
    #[arg(long, value_name = "SETTING", conflicts_with = "ab")]
    pub(crate) across: Option<ComparedSetting>,

    /// Print the comparison as Markdown, for a comment on a pull request
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Which cost is compared: switch, hop or cpu
    ///
    /// switch: a switch, as a hop less the ring of one; a hop if the ring does not switch or one
    /// side lacks it. hop: a hop. cpu: CPU time of a switch, else of a hop. For cpu there is a
    /// ratio, but no answer, as the CPU's speed is not known for it. Of commands that `run` ran:
    /// real time, with cpu CPU time, both with an answer.
    #[arg(long, default_value_t = WantedCost::Switch)]
    pub(crate) cost: WantedCost,

    /// Write a report with charts in HTML to a file, or - for standard output: the difference
    /// first, the worst case on top
    ///
    /// A report that is there already is replaced; any other file is left alone.
    #[arg(long, short = 'o', alias = "output", value_name = "FILE|-")]
    pub(crate) report: Option<Destination>,

    #[command(flatten)]
    pub(crate) ring: RingArgs,
}

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    Ok(or_trouble(compare(args)))
}

fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let output = &args.ring.output;
    output.refuse_plot("a comparison")?;
    if output.files.csv.is_some() {
        return Err(usage("--csv: a comparison has no samples (--json; runs export --format csv)"));
    }
    output.files.check()?;
    if let Some(to) = &args.report {
        page::check("--report", to)?;
        if *to == Destination::Stdout && output.files.json == args.report {
            return Err(usage(
                "--json - and --report -: only one of them can have standard output",
            ));
        }
    }
    let terms = ComparisonTerms {
        limit: args.fail_above.unwrap_or(LIMIT),
        confidence: CONFIDENCE,
        wanted: args.cost,
        across: args.across,
    };
    if let Some(prefixes) = &args.ab {
        return measured(args, prefixes, terms);
    }
    let names: Vec<&String> = args.base.iter().chain(&args.new).chain(&args.more).collect();
    let (named, sides) = find(&names)?;
    check_apart(&names, &named, args)?;
    let drawn = || {
        let mut drawn: Vec<Drawn> = Vec::new();
        for named in &named {
            drawn.extend(named.drawn(drawn.len())?);
        }
        Ok(drawn)
    };
    if let [base, new] = &sides[..] {
        let found = of_two(base, new, args, terms)?;
        report(args, terms, &sides, drawn)?;
        return exit_code(&found, args);
    }
    let sides: Vec<_> = names.into_iter().cloned().zip(sides).collect();
    check_different(&sides)?;
    let found = PairwiseComparison::from_results(&sides, terms);
    table::write_several(&found, args)?;
    let sides: Vec<Results> = sides.into_iter().map(|(_, results)| results).collect();
    report(args, terms, &sides, drawn)?;
    if found.cases == 0 { bail!("{}", found.in_words) } else { Ok(ExitCode::SUCCESS) }
}

/// Writes the report if one was asked for, and says where it is.
fn report(
    args: &CompareArgs,
    terms: ComparisonTerms,
    sides: &[Results],
    drawn: impl FnOnce() -> Result<Vec<Drawn>>,
) -> Result<()> {
    let Some(to) = &args.report else { return Ok(()) };
    report::compared(drawn()?, sides, terms, to).context("the report is not written")?;
    match to {
        Destination::File(path) => table::say(format!("report: {}\n", path.display()), args),
        Destination::Stdout => Ok(()),
    }
}

fn of_two(
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
    terms.across.map_or(Ok(()), |across| check_across(across, base, new))?;
    let found = Comparison::from_results(base, new, terms);
    if found.changes.is_empty() {
        // There is nothing to show: the error says all.
        write_json(&found, args.ring.output.files.json.as_ref())?;
        bail!("{}", nothing_in_both(base, new, terms));
    }
    table::write(&found, &[], args)?;
    Ok(found)
}

/// That they have no case in common, and by which setting they could be compared.
fn nothing_in_both(base: &Results, new: &Results, terms: ComparisonTerms) -> String {
    let pairs = |across: &&ComparedSetting| {
        check_across(**across, base, new).is_ok()
            && !Comparison::from_results(
                base,
                new,
                ComparisonTerms { across: Some(**across), ..terms },
            )
            .changes
            .is_empty()
    };
    let Some(across) = ComparedSetting::ALL.iter().find(pairs) else {
        return "the runs have no case in common: nothing was compared".to_string();
    };
    let value = |of: &Results| {
        of.cases.iter().find_map(|case| case.label(across.name())).map(str::to_string)
    };
    let values = value(base).zip(value(new));
    let values = values.map_or(String::new(), |(one, other)| format!(" ({one}, {other})"));
    format!(
        "the runs have no case in common, as they differ in {across}{values}: --across {across} \
         compares them"
    )
}

fn measured(args: &CompareArgs, prefixes: &[String], terms: ComparisonTerms) -> Result<ExitCode> {
    if args.ring.launches > 1 {
        return Err(usage(format!(
            "--launches {}: --ab measures both settings in one session (accepted with it: 1; \
             several launches are compared as BASE NEW)",
            args.ring.launches
        )));
    }
    if let Some(flag) = prefixes.iter().find(|prefix| prefix.starts_with('-')) {
        return Err(usage(format!(
            "--ab: a prefix is a command, and '{flag}' is none: is one of the two missing? ('' \
             is no prefix)"
        )));
    }
    if let Some(base) = &args.base {
        return Err(usage(format!("{base}: --ab measures two settings and takes no runs")));
    }
    let (found, runs) = session::measure(prefixes, &args.ring, terms)?;
    let paths: Vec<_> = runs.iter().filter_map(RecordedRun::path).collect();
    // Who interrupts what is being printed takes no answer back.
    let interrupted = runs[0].interrupt.exit_code();
    table::write(&found, &paths, args)?;
    if let Some(code) = interrupted {
        return Ok(ExitCode::from(code));
    }
    let runs_of = runs.each_ref().map(|taken| &taken.run);
    let drawn = || {
        let run = |(index, taken): (usize, &RecordedRun)| {
            Drawn::of_run(&taken.run, &Record::from_run(&taken.run), taken.path().as_deref(), index)
        };
        Ok(runs.iter().enumerate().map(run).collect())
    };
    report(args, terms, &results_of(&runs_of), drawn)?;
    let code = exit_code(&found, args)?;
    // That something is slower is true whatever else failed.
    if !runs.iter().all(RecordedRun::is_complete) && code == ExitCode::SUCCESS {
        bail!("a case could not be measured, or the session could not be stored: see above");
    }
    Ok(code)
}

/// What a name stands for.
enum Named {
    Published(PublishedMachine),
    /// The files of one or more launches.
    Runs(Vec<PathBuf>),
    /// Figures of `switchcost run`, of one session or more, until `find` takes them.
    Commands(Vec<Results>),
}

impl Named {
    /// The `index`th of a report; of several launches the first, with each of its experiments.
    fn drawn(&self, index: usize) -> Result<Vec<Drawn>> {
        match self {
            Self::Published(machine) => Ok(vec![Drawn::of_published(machine, index)]),
            Self::Commands(_) => Err(usage(
                "--report: records of `run` have pages of their own (switchcost report FILE.json)",
            )),
            Self::Runs(paths) => {
                let first = paths.first().context("no run was named")?;
                let (mut drawn, _) = Drawn::of_file(first, index)?;
                if paths.len() > 1 {
                    let first = format!(" (the first of {} launches)", paths.len());
                    drawn.iter_mut().for_each(|part| part.title += &first);
                }
                Ok(drawn)
            }
        }
    }
}

/// That no run is on two sides: it would pull the answer towards no change.
fn check_apart(names: &[&String], named: &[Named], args: &CompareArgs) -> Result<()> {
    let [Named::Runs(base), Named::Runs(new), ..] = named else { return Ok(()) };
    let Some(shared) = base.iter().find(|path| new.contains(path)) else { return Ok(()) };
    let told = format!("{} is a run of both {} and {}", shared.display(), names[0], names[1]);
    match (args.fail_above, base == new) {
        (_, true) => Ok(()),
        (Some(_), false) => Err(usage(format!("{told}: --fail-above needs two"))),
        (None, false) => {
            print_message(&format!("warning: {told}"));
            Ok(())
        }
    }
}

/// The sides of these names. Runs of one CPU are all read by the lowest level that they know of it.
fn find(names: &[&String]) -> Result<(Vec<Named>, Vec<Results>)> {
    let named = names.iter().map(|names| named(names));
    let mut named = named.collect::<Result<Vec<_>>>()?;
    let paths = named.iter().flat_map(|named| match named {
        Named::Published(_) | Named::Commands(_) => &[][..],
        Named::Runs(paths) => paths,
    });
    let paths: Vec<&Path> = paths.map(PathBuf::as_path).collect();
    let runs = results_of_files(&paths).into_iter().collect::<Result<Vec<Results>>>()?;
    let mut runs = runs.into_iter();
    let side = |(names, named): (&&String, &mut Named)| match named {
        Named::Published(machine) => Ok(machine.to_results()),
        Named::Commands(sessions) => side(names, mem::take(sessions)),
        Named::Runs(paths) => side(names, runs.by_ref().take(paths.len()).collect()),
    };
    let mut sides = names.iter().zip(&mut named).map(side).collect::<Result<Vec<_>>>()?;
    for (typed, results) in names.iter().zip(&mut sides) {
        results.side.label = report::label(typed);
    }
    Ok((named, sides))
}

/// The published machine of that name, or the runs of these names, with a comma between each two:
/// launches of the same plan. A run that was measured as one of several launches stands for all of
/// them, and a name that was given for all that was stored under it.
fn named(names: &str) -> Result<Named> {
    if let Some(machine) = names.strip_prefix(PUBLISHED_PREFIX) {
        return Ok(Named::Published(find_published(machine)?));
    }
    if names.split(',').any(is_record) {
        return Ok(Named::Commands(sessions(names)?));
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in names.split(',') {
        let mut all = store::find_all(name)?;
        // Both halves of a session were given one name: one of them is meant, the newest.
        let half = all.last().map(half_of).transpose()?.flatten();
        let mut halves = all.iter().map(half_of).collect::<Result<Vec<_>>>()?.into_iter();
        all.retain(|_| halves.next() == Some(half));
        for entry in all {
            paths.extend(launches_of(entry)?);
        }
    }
    Ok(Named::Runs(each_once(paths)))
}

/// Returns the figures of the records of `switchcost run` that were named.
fn sessions(names: &str) -> Result<Vec<Results>> {
    names.split(',').map(|name| records::read(Path::new(name))?.results(name)).collect()
}

fn side(names: &str, sides: Vec<Results>) -> Result<Results> {
    let first = sides.first().map(|results| results.side.experiment.clone());
    let is_list = names.contains(',');
    let other = sides.iter().find(|of| Some(&of.side.experiment) != first.as_ref());
    if let Some((other, first)) = other.zip(first).filter(|_| is_list) {
        return Err(usage(format!(
            "{names}: {} is a run of {}, {} of {first}: launches on one side are of one experiment",
            other.side.name, other.side.experiment, sides[0].side.name
        )));
    }
    if let Some(conflict) = SchedulerConflict::among(&sides) {
        return Err(usage(format!("{names}: {conflict}")));
    }
    Results::from_runs(sides).context("no run was named")
}

/// Which half of a session a run is, if it is one.
fn half_of(entry: &StoredRun) -> Result<Option<Arm>> {
    Ok(header(&entry.path)?.session.map(|session| session.arm))
}

/// The files of all launches that a run is one of: its own alone where it is a file outside of the
/// folder.
fn launches_of(found: StoredRun) -> Result<Vec<PathBuf>> {
    let launch = header(&found.path)?.launch;
    match launch.zip(RunStore::of_user().ok()) {
        Some((launch, folder)) if found.path.parent() == Some(folder.path.as_path()) => {
            let is_one = |of: &StoredRun| of.name.starts_with(&launch.set) && !of.is_running();
            Ok(folder.entries()?.into_iter().filter(is_one).map(|entry| entry.path).collect())
        }
        _ => Ok(vec![found.path]),
    }
}

/// Of several runs each is there once, and was measured.
fn check_different(sides: &[(String, Results)]) -> Result<()> {
    for (index, (name, results)) in sides.iter().enumerate() {
        let side = &results.side;
        if let Some((first, _)) =
            sides[..index].iter().find(|(_, other)| other.side.is_same_run(side))
        {
            return Err(usage(format!("{first} and {name} are the same run ({})", side.name)));
        }
        if matches!(side.origin, Origin::Publication { .. }) {
            return Err(usage(format!(
                "{name}: published figures have no interval: it cannot be one of several runs"
            )));
        }
    }
    Ok(())
}

/// A setting to compare across has one value on each side: else it is open which belong to each
/// other.
fn check_across(across: ComparedSetting, base: &Results, new: &Results) -> Result<()> {
    for results in [base, new] {
        let values = each_once(results.cases.iter().filter_map(|case| case.label(across.name())));
        if values.len() > 1 {
            let (name, all) = (&results.side.name, values.join(", "));
            return Err(usage(format!(
                "--across {across}: {name} has several ({all}): measure one in each run \
                 (--{across})"
            )));
        }
    }
    Ok(())
}

/// Only somebody who asked for a gate gets its exit code.
fn exit_code(found: &Comparison, args: &CompareArgs) -> Result<ExitCode> {
    if found.changes.is_empty() {
        bail!("{}", found.in_words);
    }
    if args.fail_above.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let mut lost = Vec::new();
    for case in found.lost_cases() {
        lost.push(format!("{}: {}", case.title, case.why));
    }
    match found.gate.verdict {
        GateVerdict::Fail => Ok(ExitCode::FAILURE),
        _ if !lost.is_empty() => {
            bail!("--fail-above: not tested, though the base has it: {}", lost.join("; "))
        }
        GateVerdict::Undecided if !args.allow_undecided => Ok(UNDECIDED.into()),
        GateVerdict::Undecided | GateVerdict::Pass => Ok(ExitCode::SUCCESS),
    }
}

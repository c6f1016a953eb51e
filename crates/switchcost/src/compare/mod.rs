//! `switchcost compare`: did it change?

mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Arg, Args};
use model::comparison::{Change, Comparison, LIMIT, Terms, Wanted};
use model::subject::{PREFIX, Side, Subject};

use crate::effort::CONFIDENCE;
use crate::execute::Taken;
use crate::failure::{Interrupted, tell, usage};
use crate::history::find_published;
use crate::ring::RingArgs;
use crate::session;
use crate::store::{Entry, Folder, header, read};
use crate::values::{each_once, share};

/// What also serves a comparison of two runs; all else that `ring` takes is for --ab.
const ALSO_OF_RUNS: &[&str] = &["base", "new", "ab", "fail_above", "cost", "json", "csv", "quiet"];

/// An argument as a comparison takes it.
pub(crate) fn of_session(arg: Arg) -> Arg {
    // A comparison has no charts.
    let arg = if arg.get_id() == "plot" { arg.hide(true) } else { arg };
    match ALSO_OF_RUNS.contains(&arg.get_id().as_str()) {
        true => arg,
        false => arg.requires("ab"),
    }
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What to compare with: a run (name, start of a name, `last`, or a file), or history:MACHINE
    ///
    /// Several launches of the same plan, with commas between them, are one side; a run of `ring --launches`
    /// stands for all launches that it was measured with.
    // No conflict with --ab here: clap takes what conflicts for not required.
    #[arg(required_unless_present = "ab")]
    pub(crate) base: Option<String>,

    /// What is compared, named in the same way
    #[arg(required_unless_present = "ab")]
    pub(crate) new: Option<String>,

    /// Measure two settings, interleaved in one session, instead of comparing stored runs
    ///
    /// A prefix is a command that starts the worker: 'taskset -c 1', 'chrt -f 10', 'nice -n 5',
    /// 'env GLIBC_TUNABLES=...'; '' leaves it as it is. Each is split into words as a shell does, but no
    /// shell runs it. It must become the worker (exec): one that starts it as a child is refused, as
    /// what it started would outlive this program. CPUs and policy that a prefix sets are those of its
    /// rings; a --policy that says otherwise is refused. What it leaves running is ended with each worker. Every round measures each case once behind each prefix, next to each other in shuffled order.
    #[arg(long, num_args = 2, value_names = ["PREFIX_A", "PREFIX_B"], allow_hyphen_values = true)]
    pub(crate) ab: Option<Vec<String>>,

    /// Exit with 1 if a case has become slower by more than this; also the share within which a case
    /// is called not changed [default for that: 3%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) fail_above: Option<f64>,

    /// Which cost is compared: switch, hop or cpu
    ///
    /// switch: of a switch above solo; of a ring that does not switch, and where one side lacks it, of a hop. hop: of a
    /// hop. cpu: CPU time of a switch above solo, else of a hop: a ratio, and no answer, as the CPU's speed is not
    /// known for it.
    #[arg(long, default_value_t = Wanted::Switch)]
    pub(crate) cost: Wanted,

    #[command(flatten)]
    pub(crate) ring: RingArgs,
}

/// What a script must be able to tell from "slower beyond the limit", which is 1 (diff(1), grep(1)).
const TROUBLE: u8 = 2;

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    Ok(compare(args).unwrap_or_else(|error| {
        let code = tell(&error);
        if error.is::<Interrupted>() { code } else { TROUBLE.into() }
    }))
}

fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let output = &args.ring.output;
    output.refuse_plot("a comparison")?;
    if output.csv.is_some() {
        return Err(usage("--csv: a comparison has no samples (--json; runs export --format csv)"));
    }
    output.check()?;
    let terms = Terms {
        limit: args.fail_above.unwrap_or(LIMIT),
        confidence: CONFIDENCE,
        wanted: args.cost,
    };
    match (&args.ab, &args.base, &args.new) {
        (Some(prefixes), base, _) => measured(args, prefixes, base.as_deref(), terms),
        (None, Some(base), Some(new)) => {
            let found = Comparison::of(&find(base)?, &find(new)?, terms);
            table::write(&found, &[], output)?;
            verdict(&found, args)
        }
        _ => Err(usage("BASE NEW: two runs are compared, or two settings (--ab)")),
    }
}

fn measured(
    args: &CompareArgs,
    prefixes: &[String],
    base: Option<&str>,
    terms: Terms,
) -> Result<ExitCode> {
    if args.ring.launches > 1 {
        return Err(usage(format!(
            "--launches {}: --ab measures both settings in one session (accepted with it: 1; several launches are \
             compared as BASE NEW)",
            args.ring.launches
        )));
    }
    if let Some(flag) = prefixes.iter().find(|prefix| prefix.starts_with('-')) {
        return Err(usage(format!(
            "--ab: a prefix is a command, and '{flag}' is none: is one of the two missing? ('' measures as it is)"
        )));
    }
    if let Some(base) = base {
        return Err(usage(format!("{base}: --ab measures two settings and takes no runs")));
    }
    let measured = session::measure(prefixes, &args.ring, terms)?;
    let paths: Vec<_> = measured.runs.iter().filter_map(|taken| taken.path.as_deref()).collect();
    table::write(&measured.found, &paths, &args.ring.output)?;
    if let Some(code) = measured.interrupted {
        return Ok(ExitCode::from(code));
    }
    let code = verdict(&measured.found, args)?;
    // That something is slower is true whatever else failed.
    if !measured.runs.iter().all(Taken::is_whole) && code == ExitCode::SUCCESS {
        bail!("a case could not be measured, or the session could not be stored: see above");
    }
    Ok(code)
}

/// The published machine of that name, or the runs of these names, with a comma between each two: launches of
/// the same plan. A run that was measured as one of several launches stands for all of them.
fn find(names: &str) -> Result<Subject> {
    if let Some(machine) = names.strip_prefix(PREFIX) {
        return Ok(find_published(machine)?.subject());
    }
    let folder = Folder::of_user()?;
    let paths = names.split(',').map(|name| launches_of(&folder, folder.find(name)?));
    let paths = each_once(paths.collect::<Result<Vec<_>>>()?.concat());
    let subjects = paths.iter().map(|path| read(path).map(|run| Subject::of_run(&run)));
    let subjects = subjects.collect::<Result<Vec<Subject>>>()?;
    let sides: Vec<&Side> = subjects.iter().map(|subject| &subject.side).collect();
    if let [first, others @ ..] = &sides[..]
        && let Some(other) = others.iter().find(|other| other.experiment != first.experiment)
    {
        return Err(usage(format!(
            "{names}: {} is a run of {}, {} of {}: launches on one side are of one experiment",
            first.name, first.experiment, other.name, other.experiment
        )));
    }
    Subject::of_launches(subjects).context("no run was named")
}

/// The files of all launches that a run is one of: its own alone where it is a file outside of the folder.
fn launches_of(folder: &Folder, found: Entry) -> Result<Vec<PathBuf>> {
    match header(&found.path)?.launch {
        Some(launch) if found.path.parent() == Some(folder.path.as_path()) => {
            let is_one = |of: &Entry| of.name.starts_with(&launch.set) && !of.is_running();
            Ok(folder.entries()?.into_iter().filter(is_one).map(|entry| entry.path).collect())
        }
        _ => Ok(vec![found.path]),
    }
}

/// Only somebody who asked for a gate gets one.
fn verdict(found: &Comparison, args: &CompareArgs) -> Result<ExitCode> {
    if found.changes.is_empty() {
        bail!("{}", found.in_words);
    }
    if args.fail_above.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_worse_beyond_limit() {
        return Ok(ExitCode::FAILURE);
    }
    let lost =
        found.lost().iter().map(|(title, why)| format!("{title}: {why}")).collect::<Vec<_>>();
    if !lost.is_empty() {
        bail!("--fail-above: not tested, though the base has it: {}", lost.join("; "));
    }
    if !found.changes.iter().any(Change::is_tested) {
        bail!(
            "--fail-above: nothing was tested: no case has an interval on both sides (not seen at the CPU's full \
             speed, too few rounds, a cost that is not resolved from zero, or published figures only)"
        );
    }
    Ok(ExitCode::SUCCESS)
}

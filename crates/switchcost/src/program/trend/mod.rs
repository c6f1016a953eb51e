//! `switchcost trend`: the stored runs as a record of the machine. When did the cost change, and
//! what changed with it?
//!
//! `mod.rs` finds the runs and the case that the words mean; `analysis::trend` finds the changes;
//! `table.rs`, `figures.rs` and `page.rs` show them.

mod figures;
mod page;
mod table;

pub(crate) use page::page;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::comparison::GateVerdict;
use analysis::trend::{
    CaseTrend, LeftOutRuns, PlannedCases, PointGrouping, TrendCost, TrendSettings, choose,
};
use anyhow::{Result, bail};
use clap::Args;

use crate::base::failure::{UNDECIDED, exit_code_of_answer, usage};
use crate::base::values::{Destination, each_once, share};
use crate::engine::store::speed::results_of_files;
use crate::engine::store::{RunStore, StoredRun, header};
use crate::report::output::judgements::{FigureJudgement, JudgementOptions, JudgementOutcome};
use crate::report::output::{TableOptions, all_written, check_destination};
use crate::report::page::ReportOutput;

#[derive(Debug, Args)]
pub(crate) struct TrendArgs {
    /// Which runs (beginnings of names, files, folders), and which case (a title or a label)
    ///
    /// Without runs: all stored ones. Without a case: the ring of two, or else the case that most
    /// runs have. Several words narrow a case: 'ring of 2' futex. A file ends in .jsonl or has a
    /// slash; a folder has a slash: ./host7/
    pub(crate) what: Vec<String>,

    /// What a point of the series is: a run, or all runs of a kernel, scheduler or build
    #[arg(long, default_value_t = PointGrouping::Run)]
    pub(crate) by: PointGrouping,

    /// Which cost to follow: switch (a hop less the ring of one; for calls the call itself) or hop
    #[arg(long, default_value_t = TrendCost::Switch)]
    pub(crate) cost: TrendCost,

    /// Exit with 1 if the newest change is slower by more than this, with 3 if that is open or such a
    /// change would not show
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) fail_above: Option<f64>,

    /// With --fail-above: exit with 0 instead of 3 where nothing was decided
    #[arg(long, requires = "fail_above")]
    pub(crate) allow_undecided: bool,

    /// Print Markdown, for a page or a comment
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Draw the cost over time below the table
    #[arg(long)]
    pub(crate) plot: bool,

    /// Write the record as JSON (docs/record-format.md) to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<Destination>,

    /// Print nothing but errors and --json
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print a row for every run, kernel or build, and the names of runs that do not count
    #[arg(long, short)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) judgements: JudgementOptions,

    #[command(flatten)]
    pub(crate) report: ReportOutput,

    #[command(flatten)]
    pub(crate) tables: TableOptions,
}

pub(crate) fn run(args: &TrendArgs) -> Result<ExitCode> {
    Ok(exit_code_of_answer(answer(args)))
}

/// Prints the trend; returns the exit code of its gate.
fn answer(args: &TrendArgs) -> Result<ExitCode> {
    if let Some(to) = &args.json {
        check_destination("--json", to)?;
    }
    args.report.check(&[("--json", args.json.as_ref())])?;
    let report = args.report.report.as_ref();
    args.judgements.check(&[("--json", args.json.as_ref()), ("--report", report)])?;
    let trend = match find_trend(args) {
        Ok(trend) => trend,
        Err(error) => {
            let reason = format!("{error:#}");
            all_written([args.judgements.write_unjudged("trend", &reason)]);
            return Err(error);
        }
    };
    table::write(&trend, args)?;
    write_judgement(&trend, args)?;
    Ok(match trend.gate.as_ref().map(|gate| gate.verdict) {
        Some(GateVerdict::Fail) => ExitCode::FAILURE,
        Some(GateVerdict::Undecided) if !args.allow_undecided => UNDECIDED.into(),
        Some(_) | None => ExitCode::SUCCESS,
    })
}

/// Writes the judgement of the gate where that was asked for.
fn write_judgement(trend: &CaseTrend, args: &TrendArgs) -> Result<()> {
    let mut judgements = Vec::new();
    if let Some(gate) = &trend.gate {
        let outcome = match gate.verdict {
            GateVerdict::Pass => JudgementOutcome::Pass,
            GateVerdict::Fail => JudgementOutcome::Fail,
            GateVerdict::Undecided => JudgementOutcome::Undecided,
        };
        let (name, words) = (trend.case.title.clone(), gate.reason.clone());
        judgements.push(FigureJudgement { name, outcome, words });
    }
    args.judgements.write("trend", &judgements)
}

/// A run whose header could be read.
struct PlannedRun {
    path: PathBuf,
    cases: PlannedCases,
}

/// A file that cannot be read.
struct UnreadFile {
    name: String,
    why: String,
}

impl UnreadFile {
    fn new(path: &Path, error: &anyhow::Error) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, why: format!("{error:#}") }
    }
}

/// Computes the trend of the case that is meant, over the runs that have it.
///
/// # Errors
/// No run can be read, or none of them has a figure of the case.
fn find_trend(args: &TrendArgs) -> Result<CaseTrend> {
    let WantedTrend { files, case_words } = parse_words(&args.what)?;
    let (mut planned, mut unread) = (Vec::new(), Vec::new());
    for path in files {
        match header(&path) {
            Ok(header) => {
                let cases = PlannedCases::from_plan(&header.plan);
                planned.push(PlannedRun { path, cases });
            }
            Err(error) => unread.push(UnreadFile::new(&path, &error)),
        }
    }
    // Without any run, the reason why says more than that there is no case.
    if let ([], [first, others @ ..]) = (&planned[..], &unread[..]) {
        let more = match others.len() {
            0 => String::new(),
            count => format!(" (and {count} more cannot be read)"),
        };
        bail!("{}{more}", first.why);
    }
    let (mut paths, mut plans) = (Vec::new(), Vec::new());
    for run in planned {
        paths.push(run.path);
        plans.push(run.cases);
    }
    let case = choose(&plans, &case_words).map_err(usage)?;
    let mut with_case: Vec<&Path> = Vec::new();
    for (path, cases) in paths.iter().zip(&plans) {
        if cases.has(&case) {
            with_case.push(path);
        }
    }
    let mut runs = Vec::new();
    for (path, results) in with_case.iter().zip(results_of_files(&with_case)) {
        match results {
            Ok(results) => runs.push(results),
            Err(error) => unread.push(UnreadFile::new(path, &error)),
        }
    }
    let terms = TrendSettings { cost: args.cost, by: args.by, limit: args.fail_above };
    let mut trend = CaseTrend::from_runs(&case, &runs, terms);
    if !unread.is_empty() {
        let runs = unread.into_iter().map(|file| file.name).collect();
        trend.left_out.push(LeftOutRuns { why: "cannot be read".to_string(), runs });
    }
    if trend.points.is_empty() {
        let why = table::left_out(&trend).map_or(String::new(), |words| format!(" ({words})"));
        bail!("{}{why}", trend.in_words);
    }
    Ok(trend)
}

/// The runs and the case that words mean.
struct WantedTrend {
    /// Each file once.
    files: Vec<PathBuf>,
    case_words: Vec<String>,
}

/// Tells the words for runs from those for a case: a word for runs finds some. Without one, all
/// stored runs are meant.
fn parse_words(words: &[String]) -> Result<WantedTrend> {
    let (mut files, mut case_words) = (Vec::new(), Vec::new());
    for word in words {
        let found = find_files(word)?;
        if found.is_empty() {
            case_words.push(word.clone());
        }
        files.extend(found);
    }
    if files.is_empty() {
        let folder = RunStore::of_user()?;
        files.extend(paths(folder.entries()?));
        if files.is_empty() {
            let place = folder.path.display();
            return Err(usage(format!(
                "there is no stored run in {place}: `switchcost ring --members 2` stores one"
            )));
        }
    }
    Ok(WantedTrend { files: each_once(files), case_words })
}

/// Finds the runs that a word means: those of a folder, a file, or stored ones whose names begin
/// with it. A word that is no path may find none.
fn find_files(word: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(word);
    let is_path = word.contains('/') || path.extension().is_some_and(|end| end == "jsonl");
    if !is_path {
        let Ok(store) = RunStore::of_user() else { return Ok(Vec::new()) };
        return Ok(paths(store.beginning(word)?));
    }
    if path.is_dir() {
        let entries = RunStore { path: path.to_path_buf() }.entries()?;
        if entries.is_empty() {
            return Err(usage(format!("{word}: no run file (.jsonl) is in this folder")));
        }
        return Ok(paths(entries));
    }
    if path.is_file() {
        return Ok(vec![path.to_path_buf()]);
    }
    Err(usage(format!("no run file or folder is called '{word}'")))
}

fn paths(entries: Vec<StoredRun>) -> Vec<PathBuf> {
    entries.into_iter().map(|entry| entry.path).collect()
}

/// Returns the day of a time in RFC 3339.
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

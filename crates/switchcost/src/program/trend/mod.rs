//! `switchcost trend`: the stored runs as a record of the machine. When did the cost change, and
//! what changed with it?

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

use crate::base::failure::{UNDECIDED, or_trouble, usage};
use crate::base::values::{Destination, each_once, share};
use crate::engine::store::speed::results_of_files;
use crate::engine::store::{RunStore, header};
use crate::report::output::{TableOptions, check_destination};
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
    pub(crate) report: ReportOutput,

    #[command(flatten)]
    pub(crate) tables: TableOptions,
}

pub(crate) fn run(args: &TrendArgs) -> Result<ExitCode> {
    Ok(or_trouble(trend(args)))
}

fn trend(args: &TrendArgs) -> Result<ExitCode> {
    args.json.iter().try_for_each(|to| check_destination("--json", to))?;
    args.report.check(&[("--json", args.json.as_ref())])?;
    let found = found(args)?;
    if found.points.is_empty() {
        let why = table::left_out(&found).map_or(String::new(), |words| format!(" ({words})"));
        bail!("{}{why}", found.in_words);
    }
    table::write(&found, args)?;
    Ok(match found.gate.as_ref().map(|gate| gate.verdict) {
        Some(GateVerdict::Fail) => ExitCode::FAILURE,
        Some(GateVerdict::Undecided) if !args.allow_undecided => UNDECIDED.into(),
        Some(_) | None => ExitCode::SUCCESS,
    })
}

fn found(args: &TrendArgs) -> Result<CaseTrend> {
    let (files, words) = files(&args.what)?;
    let mut unread = Vec::new();
    let mut planned = Vec::new();
    for file in &files {
        match header(file) {
            Ok(header) => planned.push((file, PlannedCases::from_plan(&header.plan))),
            Err(error) => unread.push((name(file), format!("{error:#}"))),
        }
    }
    let (files, plans): (Vec<&PathBuf>, Vec<PlannedCases>) = planned.into_iter().unzip();
    // What is wrong with the files is more than that there is no case.
    if let ([], [(_, why), others @ ..]) = (&plans[..], &unread[..]) {
        let more = match others.len() {
            0 => String::new(),
            more => format!(" (and {more} more cannot be read)"),
        };
        bail!("{why}{more}");
    }
    let case = choose(&plans, &words).map_err(usage)?;
    let having = files.into_iter().zip(&plans).filter(|(_, plan)| plan.has(&case));
    let having: Vec<&Path> = having.map(|(file, _)| file.as_path()).collect();
    let mut sides = Vec::new();
    for (file, results) in having.iter().zip(results_of_files(&having)) {
        match results {
            Ok(results) => sides.push(results),
            Err(error) => unread.push((name(file), format!("{error:#}"))),
        }
    }
    let terms = TrendSettings { cost: args.cost, by: args.by, limit: args.fail_above };
    let mut found = CaseTrend::from_runs(&case, &sides, terms);
    if !unread.is_empty() {
        let runs = unread.into_iter().map(|(name, _)| name).collect();
        found.left_out.push(LeftOutRuns { why: "cannot be read".to_string(), runs });
    }
    Ok(found)
}

fn name(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files of the runs that are meant, each once, and the words that mean a case.
fn files(what: &[String]) -> Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut files, mut words) = (Vec::new(), Vec::new());
    for word in what {
        match meant(word)? {
            named if named.is_empty() => words.push(word.clone()),
            named => files.extend(named),
        }
    }
    // A word for runs has found some: without one all are meant.
    if files.is_empty() {
        let folder = RunStore::of_user()?;
        files.extend(folder.entries()?.into_iter().map(|entry| entry.path));
        if files.is_empty() {
            let place = folder.path.display();
            return Err(usage(format!(
                "there is no stored run in {place}: `switchcost ring --members 2` stores one"
            )));
        }
    }
    Ok((each_once(files), words))
}

/// The runs that a word means; none if it is no word for runs.
fn meant(word: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(word);
    let is_path = word.contains('/') || path.extension().is_some_and(|end| end == "jsonl");
    let entries = match (is_path, path.is_dir(), path.is_file()) {
        (true, true, _) => {
            let all = RunStore { path: path.to_path_buf() }.entries()?;
            if all.is_empty() {
                return Err(usage(format!("{word}: no run file (.jsonl) is in this folder")));
            }
            all
        }
        (true, _, true) => return Ok(vec![path.to_path_buf()]),
        (true, _, false) => {
            return Err(usage(format!("no run file or folder is called '{word}'")));
        }
        (false, ..) => match RunStore::of_user() {
            Ok(folder) => folder.beginning(word)?,
            Err(_) => Vec::new(),
        },
    };
    Ok(entries.into_iter().map(|entry| entry.path).collect())
}

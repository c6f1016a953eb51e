//! The machine's costs from stored runs.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use model::case::{Case, Kind, Op, Placement, Policy, Work};
use model::instrument::Instrument;
use model::plan::{Batching, MINIMUM_ROUNDS, Plan, Stopping};
use model::program_cost::{Surface, points_of};
use model::reading::Reading;
use model::ring::Ring;
use probe::command::KeptActions;

use crate::cli::Output;
use crate::store::{Entry, Folder, experiment, read};
use crate::{measure, resolve};

/// Experiments that measure costs of rings with work, the better one first.
const EXPERIMENTS: [&str; 2] = ["cost", "ring"];

/// Differences of machines that are named one by one.
const MOST_DIFFERENCES: usize = 3;

/// The costs of the newest stored run that has any, and a word where it is of another machine.
pub(crate) fn stored(notices: &mut Vec<String>) -> Reading<Surface> {
    let entries = match Folder::of_user().and_then(|folder| folder.entries()) {
        Ok(entries) => entries,
        Err(error) => return Reading::unknown(format!("{error:#}")),
    };
    let found = EXPERIMENTS.iter().find_map(|wanted| {
        entries.iter().rev().find_map(|entry| surface_of(entry, wanted, notices))
    });
    found.ok_or("no stored surface: run `switchcost cost` first").into()
}

/// Arrays of the quick measurement: about a first-level cache, and well beyond it. Larger ones take
/// more rounds than there is time for.
const QUICK_ARRAYS: [u64; 2] = [32 << 10, 256 << 10];

/// Measures and stores a few costs, for whoever has none: rings of two by pipe on one CPU, one sample
/// in each of five rounds, a second or two in all.
pub(crate) fn measure_quickly() -> Result<()> {
    let (machine, allowed) = measure::look_around()?;
    let cpu = probe::placement::choose_one(&allowed, &machine).context("no CPU is allowed")?;
    let work = |bytes| Work::new(bytes, 64, Op::Rmw).map_err(|error| anyhow!("{error}"));
    let works = QUICK_ARRAYS.map(work).into_iter().collect::<Result<Vec<Work>>>()?;
    let case = |work| Case {
        members: 2,
        kind: Kind::Process,
        link: "pipe".to_string(),
        work,
        placement: Placement::Same { cpu },
        policy: Policy::Other,
        priority: None,
        state: None,
    };
    let plan = Plan {
        experiment: "ring".to_string(),
        cases: [None].into_iter().chain(works.into_iter().map(Some)).map(case).collect(),
        seed: 1992,
        batching: Batching { samples_per_round: 1, ..Batching::default() },
        stopping: Stopping {
            precision: 0.0,
            budget_ns: 10_000_000_000,
            rounds: Some(MINIMUM_ROUNDS),
            confidence: resolve::CONFIDENCE,
        },
    };
    let silent = Output { json: None, csv: None, quiet: true };
    let notices = vec!["a quick measurement of `switchcost run`".to_string()];
    let code = {
        // Its own handlers stay, and would keep Ctrl-C from ending what comes after.
        let _kept = KeptActions::keep();
        measure::new_run(plan.with_solos(), machine, &allowed, notices, &silent)?
    };
    if code != ExitCode::SUCCESS {
        bail!("interrupted");
    }
    // It has moved this process away from the CPU that it measured.
    probe::placement::pin(&allowed).context("cannot go back to all CPUs")
}

/// A file that cannot be read is no surface.
fn surface_of(entry: &Entry, wanted: &str, notices: &mut Vec<String>) -> Option<Surface> {
    if experiment(&entry.path).ok()? != wanted {
        return None;
    }
    let run = read::<Ring>(&entry.path).ok()?;
    let points = points_of(&Ring::record(&run));
    if points.is_empty() {
        return None;
    }
    let now = probe::machine::read(std::path::Path::new("/"));
    let differences = run.header.machine.differences(&now);
    let fields: Vec<&str> =
        differences.iter().take(MOST_DIFFERENCES).map(|difference| &*difference.field).collect();
    if !fields.is_empty() {
        notices.push(format!(
            "the surface ({}) was measured on a machine that differs in {} fields: {}{}",
            entry.name,
            differences.len(),
            fields.join(", "),
            if differences.len() > MOST_DIFFERENCES { ", ..." } else { "" }
        ));
    }
    Some(Surface { run: entry.name.clone(), points })
}

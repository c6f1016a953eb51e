//! The cost profile of `switchcost run`, and a quick measurement if there is none.

use std::process::ExitCode;
use std::time::Duration;

use analysis::program::WorkingSet;
use anyhow::{Context, bail};
use launcher::SavedActions;
use rundata::experiment::Experiment;
use rundata::placement::Placement;
use rundata::plan::{Batching, MIN_CLEAN_ROUNDS};
use rundata::ring::{AccessKind, RingCase, Work};

use super::profile_choice::{AcceptedRuns, ChosenProfile, best_profile};
use super::stored_runs::this_machine;
use crate::base::values::TimeBudget;
use crate::engine::effort::Effort;
use crate::engine::execute::{self, HeaderOptions};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::engine::setting::{LocalHost, pair};
use crate::engine::store::RunStore;
use crate::report::output::{FileOptions, OutputOptions};

/// Returns the stored costs that fit a working set best, quick measurements included.
///
/// # Errors
/// Says why there are none.
pub(crate) fn stored_profile(set: WorkingSet) -> Result<ChosenProfile, String> {
    best_profile(Some(set), None, AcceptedRuns::CostsAndQuick, &this_machine())
}

/// Arrays of the quick measurement in bytes: about a first-level cache, and well beyond it. Larger
/// ones take more rounds than there is time for.
const QUICK_ARRAYS: [u64; 2] = [32 << 10, 256 << 10];

/// Note on its run.
const NOTICE: &str = "a quick measurement of `switchcost run`";

/// Measures and stores a few costs: rings of two by pipe on one CPU, one sample in each of five
/// rounds, a second or two in all.
///
/// # Errors
/// Fails if nothing can be stored or measured, or a signal came.
pub(crate) fn measure_quickly(anonymous: bool) -> anyhow::Result<()> {
    RunStore::of_user()?.make()?;
    let here = LocalHost::detect()?;
    let allowed = here.allowed.clone();
    let cpu = probe::placement::choose_one(&allowed, &here.machine).context("no CPU is allowed")?;
    let mut cases = vec![pair(Placement::Same { cpu })];
    for bytes in QUICK_ARRAYS {
        let work = Work::new(bytes, 64, AccessKind::Rmw).ok();
        cases.push(RingCase { work, ..pair(Placement::Same { cpu }) });
    }
    let budget = TimeBudget { time: Duration::from_secs(10), extends: true };
    let rounds = Some(MIN_CLEAN_ROUNDS);
    let effort = Effort::<10> { precision: 0.0, budget, rounds, seed: 1992 };
    let plan = effort.plan(Experiment::Ring, cases, Batching::default()).with_solos();
    let notices = vec![NOTICE.into()];
    let quiet = OutputOptions {
        files: FileOptions { quiet: true, anonymous, ..FileOptions::default() },
        ..OutputOptions::default()
    };
    let taken = {
        // Its signal handlers would stay, and keep Ctrl-C from ending what comes after.
        let _kept = SavedActions::keep();
        let about = HeaderOptions { is_quick: true, ..HeaderOptions::from_output(&quiet) };
        let progress = Progress::new(&plan, true);
        let interrupt = Interrupt::watch()?;
        execute::measure_run((plan, notices), here, &interrupt, progress, None, about)
    };
    if taken.exit_code() != ExitCode::SUCCESS {
        bail!("interrupted");
    }
    // It has moved this process to the CPU that it measured.
    probe::placement::pin(&allowed).context("cannot go back to all CPUs")
}

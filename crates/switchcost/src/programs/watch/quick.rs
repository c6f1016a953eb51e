//! The profile of `switchcost run`, and a quick measurement where there is none.

use std::process::ExitCode;
use std::time::Duration;

use analysis::program::WorkingSet;
use anyhow::{Context, bail};
use launcher::SavedActions;
use rundata::experiment::Experiment;
use rundata::placement::Placement;
use rundata::plan::{Batching, MIN_CLEAN_ROUNDS};
use rundata::ring::{AccessKind, RingCase, Work};

use super::choice::{self, Accepts, ChosenProfile};
use crate::base::values::TimeBudget;
use crate::engine::effort::Effort;
use crate::engine::execute::{self, HeaderOptions};
use crate::engine::interrupt::Interrupt;
use crate::engine::progress::Progress;
use crate::engine::setting::{LocalHost, pair};
use crate::engine::store::RunStore;
use crate::report::output::{FileOptions, OutputOptions};

/// The profile of `switchcost run`, which may be a quick measurement of its own.
pub(crate) fn stored_profile(set: WorkingSet) -> Result<ChosenProfile, String> {
    choice::best(Some(set), None, Accepts::CostsAndQuick, &choice::this_machine())
}

/// Arrays of the quick measurement: about a first-level cache, and well beyond it. Larger ones take
/// more rounds than there is time for.
const QUICK_ARRAYS: [u64; 2] = [32 << 10, 256 << 10];

/// What notes on its run say.
const NOTICE: &str = "a quick measurement of `switchcost run`";

/// Measures and stores a few costs: rings of two by pipe on one CPU, one sample
/// in each of five rounds, a second or two in all.
pub(crate) fn measure_quickly(anonymous: bool) -> anyhow::Result<()> {
    RunStore::of_user()?.make()?;
    let here = LocalHost::detect()?;
    let allowed = here.allowed.clone();
    let cpu = probe::placement::choose_one(&allowed, &here.machine).context("no CPU is allowed")?;
    let works = [None, Some(QUICK_ARRAYS[0]), Some(QUICK_ARRAYS[1])];
    let works = works.map(|bytes| Work::new(bytes?, 64, AccessKind::Rmw).ok());
    let case = |work| RingCase { work, ..pair(Placement::Same { cpu }) };
    let budget = TimeBudget { time: Duration::from_secs(10), extends: true };
    let rounds = Some(MIN_CLEAN_ROUNDS);
    let effort = Effort::<10> { precision: 0.0, budget, rounds, seed: 1992 };
    let plan = effort.plan(Experiment::Ring, works.map(case), Batching::default());
    let plan = plan.with_solos();
    let notices = vec![NOTICE.into()];
    let quiet = OutputOptions {
        files: FileOptions { quiet: true, anonymous, ..FileOptions::default() },
        ..OutputOptions::default()
    };
    let taken = {
        // Its own handlers stay, and would keep Ctrl-C from ending what comes after.
        let _kept = SavedActions::keep();
        let about = HeaderOptions { is_quick: true, ..HeaderOptions::from_output(&quiet) };
        let progress = Progress::new(&plan, true);
        let interrupt = Interrupt::watch()?;
        execute::measure_run((plan, notices), here, &interrupt, progress, None, about)
    };
    if taken.exit_code() != ExitCode::SUCCESS {
        bail!("interrupted");
    }
    // It has moved this process away from the CPU that it measured.
    probe::placement::pin(&allowed).context("cannot go back to all CPUs")
}

//! The amount of work in tests: a part of the repetitions by `cargo test`, all by `.ci/nightly`.

use std::env;

/// The environment variable that asks for the nightly tier: all repetitions of a simulation.
const NIGHTLY: &str = "SWITCHCOST_NIGHTLY";

/// Returns whether this is the nightly tier, in which tests may take long: `.ci/nightly`.
pub fn is_nightly() -> bool {
    env::var_os(NIGHTLY).is_some()
}

/// Returns a number of repetitions: `core`, in the nightly tier `all`.
pub fn repeats<N>(core: N, all: N) -> N {
    if is_nightly() { all } else { core }
}

//! How much is done: a core of it by `cargo test`, all by `.ci/nightly`.

use std::env;

/// Says that this is the nightly tier: all repetitions of a simulation instead of a core of them.
const NIGHTLY: &str = "SWITCHCOST_NIGHTLY";

/// Whether all is to be done, however long it takes: `.ci/nightly`.
pub fn is_nightly() -> bool {
    env::var_os(NIGHTLY).is_some()
}

/// How often something is repeated: `core` times, in the nightly tier `all` times.
pub fn repeats<N>(core: N, all: N) -> N {
    if is_nightly() { all } else { core }
}

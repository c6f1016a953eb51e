//! What this program was built as.

use model::run::Build;

/// Version, commit, profile and target of the running program.
pub(crate) fn info() -> Build {
    let commit = env!("SWITCHCOST_COMMIT");
    Build {
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: (!commit.is_empty()).then(|| commit.to_string()),
        profile: env!("SWITCHCOST_PROFILE").to_string(),
        target: env!("SWITCHCOST_TARGET").to_string(),
    }
}

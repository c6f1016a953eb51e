//! Every switch of the running system: what `trace` and `top` share. `account` adds up what the
//! tracer saw, `rows` makes figures of it, both without a kernel; `session` reads the tracer.

pub(crate) mod account;
pub(crate) mod labels;
pub(crate) mod rows;
pub(crate) mod session;
#[cfg(test)]
pub(crate) mod tests;

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GroupBy {
    Thread,
    Process,
    /// Control group; of a container the start of its id
    Cgroup,
    User,
}

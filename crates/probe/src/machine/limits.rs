//! Limits of the process and of the system.

use model::machine::{Bound, Limits, ResourceLimit};
use model::reading::Reading;

use super::tree::{ReadError, Result, Tree, parse, reading};

const PATH: &str = "/proc/self/limits";

pub(super) fn read(tree: &Tree) -> Limits {
    let text = reading(tree.text(PATH));
    let limit = |name: &str| text.as_ref().and_then(|text| reading(limit_named(text, name)));
    let number = |path: &str| -> Reading<u64> { reading(tree.number(path)) };
    Limits {
        processes: limit("Max processes"),
        open_files: limit("Max open files"),
        realtime_priority: limit("Max realtime priority"),
        realtime_timeout_us: limit("Max realtime timeout"),
        locked_memory_bytes: limit("Max locked memory"),
        pid_max: number("/proc/sys/kernel/pid_max"),
        threads_max: number("/proc/sys/kernel/threads-max"),
        file_max: number("/proc/sys/fs/file-max"),
        pipe_max_bytes: number("/proc/sys/fs/pipe-max-size"),
        pipe_user_pages_soft: number("/proc/sys/fs/pipe-user-pages-soft"),
        pipe_user_pages_hard: number("/proc/sys/fs/pipe-user-pages-hard"),
    }
}

fn limit_named(text: &str, name: &str) -> Result<ResourceLimit> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| ReadError::no_item(PATH, name))?;
    let mut bounds = line.split_whitespace().map(bound);
    let mut next =
        || bounds.next().unwrap_or_else(|| Err(ReadError::invalid(PATH, line, "a limit")));
    Ok(ResourceLimit { soft: next()?, hard: next()? })
}

fn bound(item: &str) -> Result<Bound> {
    match item {
        "unlimited" => Ok(Bound::Unlimited),
        number => parse(PATH, number).map(Bound::At),
    }
}

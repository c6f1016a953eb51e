//! What the control groups of this process leave to it.

mod place;

use model::machine::{Cgroup, CgroupLimit, CpuQuota, Cpuset};
use model::reading::Reading;

use self::place::{Place, Places, Version};
use super::tree::{ReadError, Result, Tree, parse, reading};

/// Version 1 writes "no limit" as the largest whole number of pages; pages have up to 64 KiB.
const V1_UNLIMITED_BYTES: u64 = i64::MAX as u64 - 0xffff;

pub(super) fn read(tree: &Tree) -> Cgroup {
    let places = match Places::read(tree) {
        Ok(places) => places,
        Err(error) => return unknown(&error),
    };
    Cgroup {
        layout: reading(places.layout()),
        cpu_quota: reading(places.of("cpu").and_then(|place| cpu_quota(tree, &place))),
        cpuset: reading(places.of("cpuset").and_then(|place| cpuset(tree, &place))),
        pids_max: reading(places.of("pids").and_then(|place| pids(tree, &place))),
        memory_max_bytes: reading(places.of("memory").and_then(|place| memory(tree, &place))),
    }
}

fn unknown(error: &ReadError) -> Cgroup {
    let why = error.to_string();
    Cgroup {
        layout: Reading::unknown(&why),
        cpu_quota: Reading::unknown(&why),
        cpuset: Reading::unknown(&why),
        pids_max: Reading::unknown(&why),
        memory_max_bytes: Reading::unknown(&why),
    }
}

fn cpu_quota(tree: &Tree, place: &Place) -> Result<Option<CpuQuota>> {
    let quotas = at_each_level(place, |folder| match place.version {
        Version::V1 => cpu_quota_v1(tree, folder),
        Version::V2 => cpu_quota_v2(tree, folder),
    })?;
    // Cross-multiplied, in a type that cannot overflow: the shares are compared exactly.
    let product = |a: &CpuQuota, b: &CpuQuota| u128::from(a.quota_us) * u128::from(b.period_us);
    Ok(quotas.into_iter().min_by(|a, b| product(a, b).cmp(&product(b, a))))
}

/// `max 100000` or `50000 100000`.
fn cpu_quota_v2(tree: &Tree, folder: &str) -> Result<Option<CpuQuota>> {
    let path = format!("{folder}/cpu.max");
    let text = tree.word(&path)?;
    let Some((quota, period)) = text.split_once(' ') else {
        return Err(ReadError::invalid(&path, &text, "a quota and a period"));
    };
    if quota == "max" {
        return Ok(None);
    }
    Ok(Some(quota_of(&path, folder, quota, period.trim())?))
}

fn cpu_quota_v1(tree: &Tree, folder: &str) -> Result<Option<CpuQuota>> {
    let path = format!("{folder}/cpu.cfs_quota_us");
    let quota = tree.word(&path)?;
    if quota == "-1" {
        return Ok(None);
    }
    let path = format!("{folder}/cpu.cfs_period_us");
    let period = tree.word(&path)?;
    Ok(Some(quota_of(&path, folder, &quota, &period)?))
}

fn quota_of(path: &str, folder: &str, quota: &str, period: &str) -> Result<CpuQuota> {
    let period_us = parse(path, period)?;
    if period_us == 0 {
        return Err(ReadError::invalid(path, period, "a period above zero"));
    }
    Ok(CpuQuota { quota_us: parse(path, quota)?, period_us, path: folder.to_owned() })
}

/// The nearest level with the file: what it says already regards those above.
fn cpuset(tree: &Tree, place: &Place) -> Result<Cpuset> {
    let names: &[&str] = match place.version {
        Version::V1 => &["cpuset.effective_cpus", "cpuset.cpus"],
        Version::V2 => &["cpuset.cpus.effective"],
    };
    let mut missing = None;
    for folder in place.levels() {
        for name in names {
            match tree.cpu_list(&format!("{folder}/{name}")) {
                Ok(cpus) => {
                    return Ok(Cpuset { cpus, path: folder.to_owned() });
                }
                Err(error) if error.is_missing() => missing = missing.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
    }
    Err(missing.unwrap_or_else(|| ReadError::no_item(&place.folder, "cpuset")))
}

fn pids(tree: &Tree, place: &Place) -> Result<Option<CgroupLimit>> {
    tightest(tree, place, "pids.max", "pids.current")
}

fn memory(tree: &Tree, place: &Place) -> Result<Option<CgroupLimit>> {
    match place.version {
        Version::V1 => tightest(tree, place, "memory.limit_in_bytes", "memory.usage_in_bytes"),
        Version::V2 => tightest(tree, place, "memory.max", "memory.current"),
    }
}

fn tightest(tree: &Tree, place: &Place, max: &str, current: &str) -> Result<Option<CgroupLimit>> {
    let limits = at_each_level(place, |folder| {
        let path = format!("{folder}/{max}");
        let text = tree.word(&path)?;
        if text == "max" {
            return Ok(None);
        }
        let max = parse(&path, &text)?;
        let is_limit = place.version == Version::V2 || max < V1_UNLIMITED_BYTES;
        let current = reading(tree.number(&format!("{folder}/{current}")));
        Ok(is_limit.then(|| CgroupLimit { max, current, path: folder.to_owned() }))
    })?;
    Ok(limits.into_iter().min_by_key(|limit| limit.max))
}

/// The limits set on the way up. A level without the file sets none (the root never has it, nor
/// has a level without the controller); one that cannot be read might set the tightest, so the
/// whole is unknown.
fn at_each_level<T>(place: &Place, read: impl Fn(&str) -> Result<Option<T>>) -> Result<Vec<T>> {
    let mut limits = Vec::new();
    for folder in place.levels() {
        match read(folder) {
            Ok(limit) => limits.extend(limit),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(limits)
}

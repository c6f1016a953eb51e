//! What the control groups of this process leave to it, and where they are: cgroups(7),
//! /proc/pid/cgroup and mountinfo.

use model::machine::{Cgroup, CgroupLayout, CgroupLimit, CpuQuota, Cpuset};
use model::reading::Reading;

use super::tree::{MachineTree, ReadError, Result, parse, reading};

/// Version 1 writes "no limit" as the largest whole number of pages; pages have up to 64 KiB.
const V1_UNLIMITED_BYTES: u64 = i64::MAX as u64 - 0xffff;

pub(super) fn read(tree: &MachineTree) -> Cgroup {
    let groups = &reading(CgroupMounts::read(tree));
    Cgroup {
        layout: groups.as_ref().and_then(|groups| reading(groups.layout())),
        cpu_levels: limit(groups, "cpu", cpu_levels),
        cpu_quota: limit(groups, "cpu", cpu_quota),
        cpuset: limit(groups, "cpuset", cpuset),
        pids_max: limit(groups, "pids", |tree, place| {
            tightest(tree, place, "pids.max", "pids.current")
        }),
        memory_max_bytes: limit(groups, "memory", |tree, place| match place.is_v2 {
            false => tightest(tree, place, "memory.limit_in_bytes", "memory.usage_in_bytes"),
            true => tightest(tree, place, "memory.max", "memory.current"),
        }),
    }
}

/// Where the kernel counts for how long a control group did not run.
pub struct HaltCounter {
    /// A file of the group.
    pub path: String,
    /// Its line.
    pub item: &'static str,
    /// Nanoseconds of one unit of it.
    pub unit_ns: u64,
}

/// Of each level above this process that has a quota, how long it was throttled; and how long its
/// group was frozen (Linux 6.18).
pub(super) fn halts(tree: &MachineTree) -> (Vec<HaltCounter>, Option<HaltCounter>) {
    let place = CgroupMounts::read(tree).and_then(|groups| groups.place("cpu"));
    let Ok(place) = place else { return (Vec::new(), None) };
    let (item, unit_ns) =
        if place.is_v2 { ("throttled_usec", 1000) } else { ("throttled_time", 1) };
    let limited = |folder: &&str| matches!(quota_at(tree, &place, folder), Ok(Some(_)));
    let count = |folder| HaltCounter { path: format!("{folder}/cpu.stat"), item, unit_ns };
    let quotas = place.levels().filter(limited).map(count).collect();
    let path = format!("{}/cgroup.stat.local", place.folder);
    let has_frozen = place.is_v2 && tree.text(&path).is_ok();
    (quotas, has_frozen.then_some(HaltCounter { path, item: "frozen_usec", unit_ns: 1000 }))
}

/// The folder of this process for the cpu controller, the nearest one from there up below which
/// groups have it, and whether both are of version 2.
pub(super) fn with_cpu(tree: &MachineTree) -> Result<(String, String, bool)> {
    let place = CgroupMounts::read(tree)?.place("cpu")?;
    let hands_on = |folder: &&str| {
        let text = tree.text(&format!("{folder}/cgroup.subtree_control"));
        text.is_ok_and(|text| text.split_whitespace().any(|name| name == "cpu"))
    };
    let parent = match place.is_v2 {
        true => place.levels().find(hands_on).map(str::to_owned),
        false => Some(place.folder.clone()),
    };
    let file = format!("{}/cgroup.subtree_control", place.mount_point);
    let none = || ReadError::no_item(&file, "cpu (root: write +cpu to it)");
    let parent = parent.ok_or_else(none)?;
    Ok((place.folder, parent, place.is_v2))
}

/// What is read in the folder of this process for a controller.
fn limit<T>(
    groups: &Reading<CgroupMounts>,
    controller: &str,
    read: impl Fn(&MachineTree, &GroupPlace) -> Result<T>,
) -> Reading<T> {
    groups.as_ref().and_then(|groups| {
        reading(groups.place(controller).and_then(|place| read(groups.tree, &place)))
    })
}

fn quota_at(tree: &MachineTree, place: &GroupPlace, folder: &str) -> Result<Option<CpuQuota>> {
    let (path, of_period) = match place.is_v2 {
        true => (format!("{folder}/cpu.max"), format!("{folder}/cpu.max")),
        false => (format!("{folder}/cpu.cfs_quota_us"), format!("{folder}/cpu.cfs_period_us")),
    };
    let text = tree.word(&path)?;
    // `max 100000` or `50000 100000`; in version 1 a file for each number.
    let (quota, period) = match text.split_once(' ') {
        Some((quota, period)) => (quota, period.trim().to_owned()),
        None if place.is_v2 => {
            return Err(ReadError::invalid(&path, &text, "a quota and a period"));
        }
        None => (text.as_str(), tree.word(&of_period)?),
    };
    if quota == if place.is_v2 { "max" } else { "-1" } {
        return Ok(None);
    }
    let period_us = parse(&of_period, &period)?;
    if period_us == 0 {
        return Err(ReadError::invalid(&of_period, &period, "a period above zero"));
    }
    let quota_us = parse(&path, quota)?;
    Ok(Some(CpuQuota { quota_us, period_us, path: folder.to_owned() }))
}

/// Levels whose groups have a weight. The root has none; in version 1 it does, and alone has the file
/// `release_agent`.
fn cpu_levels(tree: &MachineTree, place: &GroupPlace) -> Result<u32> {
    let name = if place.is_v2 { "cpu.weight" } else { "cpu.shares" };
    let is_root =
        |folder: &str| !place.is_v2 && tree.text(&format!("{folder}/release_agent")).is_ok();
    let levels = at_each_level(place, |folder| match is_root(folder) {
        true => Ok(None),
        false => tree.word(&format!("{folder}/{name}")).map(Some),
    })?;
    Ok(levels.len() as u32)
}

fn cpu_quota(tree: &MachineTree, place: &GroupPlace) -> Result<Option<CpuQuota>> {
    let quotas = at_each_level(place, |folder| quota_at(tree, place, folder))?;
    // Cross-multiplied, in a type that cannot overflow: the shares are compared exactly.
    let product = |a: &CpuQuota, b: &CpuQuota| u128::from(a.quota_us) * u128::from(b.period_us);
    Ok(quotas.into_iter().min_by(|a, b| product(a, b).cmp(&product(b, a))))
}

/// The nearest level with the file: what it says already regards those above.
fn cpuset(tree: &MachineTree, place: &GroupPlace) -> Result<Cpuset> {
    let names: &[&str] = match place.is_v2 {
        false => &["cpuset.effective_cpus", "cpuset.cpus"],
        true => &["cpuset.cpus.effective"],
    };
    let mut missing = None;
    for (folder, name) in place.levels().flat_map(|at| names.iter().map(move |name| (at, name))) {
        match tree.cpu_list(&format!("{folder}/{name}")) {
            Ok(cpus) => return Ok(Cpuset { cpus, path: folder.to_owned() }),
            Err(error) if error.is_missing => missing = missing.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(missing.unwrap_or_else(|| ReadError::no_item(&place.folder, "cpuset")))
}

fn tightest(
    tree: &MachineTree,
    place: &GroupPlace,
    max: &str,
    current: &str,
) -> Result<Option<CgroupLimit>> {
    let limits = at_each_level(place, |folder| {
        let path = format!("{folder}/{max}");
        let text = tree.word(&path)?;
        if text == "max" {
            return Ok(None);
        }
        let max = parse(&path, &text)?;
        let is_limit = place.is_v2 || max < V1_UNLIMITED_BYTES;
        let current = reading(tree.number(&format!("{folder}/{current}")));
        Ok(is_limit.then(|| CgroupLimit { max, current, path: folder.to_owned() }))
    })?;
    Ok(limits.into_iter().min_by_key(|limit| limit.max))
}

/// The limits set on the way up. A level without the file sets none (the root never has it, nor
/// has a level without the controller); one that cannot be read might set the tightest, so the
/// whole is unknown.
fn at_each_level<T>(
    place: &GroupPlace,
    read: impl Fn(&str) -> Result<Option<T>>,
) -> Result<Vec<T>> {
    let found = place.levels().map(read).filter(|limit| match limit {
        Ok(limit) => limit.is_some(),
        Err(error) => !error.is_missing,
    });
    Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

const CGROUP: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";

/// The folder of this process in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupPlace {
    is_v2: bool,
    mount_point: String,
    folder: String,
}

impl GroupPlace {
    /// The folder and those above it, up to the mount point.
    fn levels(&self) -> impl Iterator<Item = &str> {
        let least = self.mount_point.len();
        std::iter::successors(Some(self.folder.as_str()), move |&folder| {
            let (above, _) = folder.rsplit_once('/')?;
            (above.len() >= least).then_some(above)
        })
    }
}

/// A hierarchy, from a line of /proc/self/cgroup or from a mount.
struct Hierarchy {
    is_v2: bool,
    controllers: Vec<String>,
    /// The control group of this process, or the one at the mount point.
    path: String,
}

/// All hierarchies and where this process is in them.
struct CgroupMounts<'a> {
    tree: &'a MachineTree,
    memberships: Vec<Hierarchy>,
    /// With their mount points.
    mounts: Vec<(Hierarchy, String)>,
}

impl<'a> CgroupMounts<'a> {
    fn read(tree: &'a MachineTree) -> Result<Self> {
        let memberships = tree.text(CGROUP)?.lines().map(membership).collect::<Result<Vec<_>>>()?;
        let mounts = tree.text(MOUNTS)?.lines().filter_map(mount).collect();
        Ok(Self { tree, memberships, mounts })
    }

    fn layout(&self) -> Result<CgroupLayout> {
        // A hierarchy without controllers (name=systemd) limits nothing.
        let has_v1 = self.memberships.iter().any(|of| {
            !of.is_v2 && of.controllers.iter().any(|controller| !controller.contains('='))
        });
        match (has_v1, self.memberships.iter().any(|of| of.is_v2)) {
            (true, true) => Ok(CgroupLayout::Hybrid),
            (true, false) => Ok(CgroupLayout::V1),
            (false, true) => Ok(CgroupLayout::V2),
            (false, false) => Err(ReadError::no_item(CGROUP, "0::")),
        }
    }

    /// The folder of this process for a controller; it exists.
    fn place(&self, controller: &str) -> Result<GroupPlace> {
        let is_named = |names: &[String]| names.iter().any(|name| name == controller);
        let v1 = self.memberships.iter().find(|of| is_named(&of.controllers));
        let v2 = || self.memberships.iter().find(|of| of.is_v2);
        let of = v1.or_else(v2).ok_or_else(|| ReadError::no_item(CGROUP, controller))?;
        let fits = |(mount, _): &&(Hierarchy, String)| {
            mount.is_v2 == of.is_v2 && (of.is_v2 || is_named(&mount.controllers))
        };
        let place = self.mounts.iter().filter(fits).find_map(|mount| place(mount, of));
        let place = place.ok_or_else(|| {
            let wanted = format!("a cgroup mount of '{controller}' that holds {}", of.path);
            ReadError::no_item(MOUNTS, &wanted)
        })?;
        self.tree.folder(&place.folder)?;
        Ok(place)
    }
}

/// `None` if the mount shows another part of the hierarchy (a bind mount, another namespace).
fn place((mount, point): &(Hierarchy, String), membership: &Hierarchy) -> Option<GroupPlace> {
    let below = membership.path.strip_prefix(mount.path.trim_end_matches('/'))?;
    let is_below = below.is_empty() || below.starts_with('/');
    if !is_below || below.split('/').any(|part| part == "..") {
        return None;
    }
    let mount_point = point.trim_end_matches('/').to_owned();
    let folder = format!("{mount_point}{}", below.trim_end_matches('/'));
    Some(GroupPlace { is_v2: mount.is_v2, mount_point, folder })
}

/// `4:memory:/user`, `0::/user` for version 2.
fn membership(line: &str) -> Result<Hierarchy> {
    let [id, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else {
        return Err(ReadError::invalid(CGROUP, line, "id:controllers:path"));
    };
    let is_v2 = id == "0" && controllers.is_empty();
    let controllers = controllers.split(',').map(str::to_owned).collect();
    Ok(Hierarchy { is_v2, controllers, path: path.to_owned() })
}

/// `31 23 0:28 /root /point rw - cgroup2 cgroup2 rw`; `None` for other file systems.
fn mount(line: &str) -> Option<(Hierarchy, String)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (path, point) = (unescape(place.next()?), unescape(place.next()?));
    let mut kind = kind.split(' ');
    let name = kind.next()?;
    let is_v2 = ["cgroup", "cgroup2"].iter().position(|known| name == *known)? == 1;
    let controllers = kind.nth(1).unwrap_or_default().split(',').map(str::to_owned).collect();
    Some((Hierarchy { is_v2, controllers, path }, point))
}

/// mountinfo writes blanks and backslashes as `\040`.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => format!("{plain}{}{}", char::from(code), &part[3..]),
            None => format!("{plain}\\{part}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(mount_line: &str, membership_line: &str) -> Option<String> {
        let mount = mount(mount_line).unwrap();
        place(&mount, &membership(membership_line).unwrap()).map(|place| place.folder)
    }

    #[test]
    fn the_part_of_the_path_above_the_mounts_root_is_not_in_the_file_system() {
        let whole = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(placed(whole, "0::/a/b").unwrap(), "/sys/fs/cgroup/a/b");
        assert_eq!(placed(whole, "0::/").unwrap(), "/sys/fs/cgroup");
        assert_eq!(placed(whole, "0::/../other"), None);
        let part = "30 23 0:26 /docker/a /sys/fs/cgroup ro shared:1 master:2 - cgroup2 c rw";
        assert_eq!(placed(part, "0::/docker/a/b").unwrap(), "/sys/fs/cgroup/b");
        assert_eq!(placed(part, "0::/docker/a").unwrap(), "/sys/fs/cgroup");
        assert_eq!(placed(part, "0::/docker/ab"), None);
    }

    #[test]
    fn levels_go_from_the_folder_up_to_the_mount_point() {
        let mount = mount("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw").unwrap();
        let place = place(&mount, &membership("0::/a/b").unwrap()).unwrap();
        let levels: Vec<&str> = place.levels().collect();
        assert_eq!(levels, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
    }

    #[test]
    fn blanks_in_mount_points_are_escaped() {
        assert_eq!(unescape(r"/a\040b\134c"), r"/a b\c");
        assert_eq!(unescape(r"/a\9\x"), r"/a\9\x");
    }
}

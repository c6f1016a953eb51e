//! Control groups of this process, and the limits that they set: cgroups(7), /proc/pid/cgroup and
//! mountinfo.

use std::cmp::Ordering;

use rundata::machine::{CgroupLayout, CgroupLimit, CgroupLimits, CpuQuota, Cpuset};
use rundata::reading::Reading;

use super::CpuGroup;
use super::tree::{MachineTree, ReadError, Result, parse, reading};

/// Version 1 writes "no limit" as the largest possible number of whole pages, of up to 64 KiB.
const V1_UNLIMITED_BYTES: u64 = i64::MAX as u64 - 0xffff;

/// Reads the limits that this process's control groups set.
pub(super) fn read(tree: &MachineTree) -> CgroupLimits {
    let groups = &reading(CgroupMounts::read(tree));
    CgroupLimits {
        layout: groups.as_ref().and_then(|groups| reading(groups.layout())),
        cpu_levels: limit(groups, "cpu", cpu_levels),
        cpu_quota: limit(groups, "cpu", cpu_quota),
        cpuset: limit(groups, "cpuset", cpuset),
        pids_max: limit(groups, "pids", |tree, place| {
            tightest(tree, place, "pids.max", "pids.current")
        }),
        memory_max_bytes: limit(groups, "memory", memory_max_bytes),
    }
}

fn memory_max_bytes(tree: &MachineTree, place: &GroupPlace) -> Result<Option<CgroupLimit>> {
    if place.is_v2 {
        tightest(tree, place, "memory.max", "memory.current")
    } else {
        tightest(tree, place, "memory.limit_in_bytes", "memory.usage_in_bytes")
    }
}

/// A counter of the time for which a control group did not run.
pub struct HaltCounter {
    /// File of the group.
    pub path: String,
    /// Name of its line.
    pub item: &'static str,
    /// Nanoseconds of one unit of its value.
    pub unit_ns: u64,
}

/// Counters of the time for which this process's groups did not run.
pub struct HaltCounters {
    /// Time for which each level with a quota was throttled.
    pub throttled: Vec<HaltCounter>,
    /// Time for which the own group was frozen (Linux 6.18).
    pub frozen: Option<HaltCounter>,
}

/// Finds the halt counters of this process's groups; none if the groups cannot be read.
pub(super) fn halt_counters(tree: &MachineTree) -> HaltCounters {
    let mut counters = HaltCounters { throttled: Vec::new(), frozen: None };
    let place = CgroupMounts::read(tree).and_then(|groups| groups.place("cpu"));
    let Ok(place) = place else { return counters };
    let (item, unit_ns) =
        if place.is_v2 { ("throttled_usec", 1000) } else { ("throttled_time", 1) };
    for folder in place.levels() {
        if let Ok(Some(_)) = quota_at(tree, &place, folder) {
            let path = format!("{folder}/cpu.stat");
            counters.throttled.push(HaltCounter { path, item, unit_ns });
        }
    }
    let path = format!("{}/cgroup.stat.local", place.folder);
    if place.is_v2 && tree.text(&path).is_ok() {
        counters.frozen = Some(HaltCounter { path, item: "frozen_usec", unit_ns: 1000 });
    }
    counters
}

/// Finds the nearest group, from this process's own up, within which groups have the cpu
/// controller.
pub(super) fn cpu_group(tree: &MachineTree) -> Result<CpuGroup> {
    let place = CgroupMounts::read(tree)?.place("cpu")?;
    let parent = if place.is_v2 {
        place.levels().find(|folder| hands_on_cpu(tree, folder)).map(str::to_owned)
    } else {
        Some(place.folder.clone())
    };
    let parent = parent.ok_or_else(|| {
        let file = format!("{}/cgroup.subtree_control", place.mount_point);
        ReadError::no_item(&file, "cpu (root: write +cpu to it)")
    })?;
    Ok(CpuGroup { own: place.folder.into(), parent: parent.into(), is_v2: place.is_v2 })
}

/// Returns whether groups within a group have the cpu controller (version 2).
fn hands_on_cpu(tree: &MachineTree, folder: &str) -> bool {
    let text = tree.text(&format!("{folder}/cgroup.subtree_control"));
    text.is_ok_and(|text| text.split_whitespace().any(|name| name == "cpu"))
}

/// Reads a limit in the folder of this process for a controller.
fn limit<T>(
    groups: &Reading<CgroupMounts>,
    controller: &str,
    read: impl Fn(&MachineTree, &GroupPlace) -> Result<T>,
) -> Reading<T> {
    groups.as_ref().and_then(|groups| {
        reading(groups.place(controller).and_then(|place| read(groups.tree, &place)))
    })
}

/// Reads the quota of one level; `None` if it has no limit.
fn quota_at(tree: &MachineTree, place: &GroupPlace, folder: &str) -> Result<Option<CpuQuota>> {
    let (path, period_path) = if place.is_v2 {
        (format!("{folder}/cpu.max"), format!("{folder}/cpu.max"))
    } else {
        (format!("{folder}/cpu.cfs_quota_us"), format!("{folder}/cpu.cfs_period_us"))
    };
    let text = tree.word(&path)?;
    // Version 2 has `max 100000` or `50000 100000`, version 1 a file for each number.
    let (quota, period) = match text.split_once(' ') {
        Some((quota, period)) => (quota, period.trim().to_owned()),
        None if place.is_v2 => {
            return Err(ReadError::invalid(&path, &text, "a quota and a period"));
        }
        None => (text.as_str(), tree.word(&period_path)?),
    };
    if quota == if place.is_v2 { "max" } else { "-1" } {
        return Ok(None);
    }
    let period_us = parse(&period_path, &period)?;
    if period_us == 0 {
        return Err(ReadError::invalid(&period_path, &period, "a period above zero"));
    }
    let quota_us = parse(&path, quota)?;
    Ok(Some(CpuQuota { quota_us, period_us, path: folder.to_owned() }))
}

/// Counts the levels whose groups have a weight. The root has no file for it in version 2; in
/// version 1 it has one, and is known by its file `release_agent`.
fn cpu_levels(tree: &MachineTree, place: &GroupPlace) -> Result<u32> {
    let name = if place.is_v2 { "cpu.weight" } else { "cpu.shares" };
    let levels = at_each_level(place, |folder| {
        let is_root = !place.is_v2 && tree.text(&format!("{folder}/release_agent")).is_ok();
        if is_root { Ok(None) } else { tree.word(&format!("{folder}/{name}")).map(Some) }
    })?;
    Ok(levels.len() as u32)
}

fn cpu_quota(tree: &MachineTree, place: &GroupPlace) -> Result<Option<CpuQuota>> {
    let quotas = at_each_level(place, |folder| quota_at(tree, place, folder))?;
    Ok(quotas.into_iter().min_by(compare_quotas))
}

/// Compares the shares of two quotas exactly: cross-multiplied, in a type that cannot overflow.
fn compare_quotas(a: &CpuQuota, b: &CpuQuota) -> Ordering {
    let left = u128::from(a.quota_us) * u128::from(b.period_us);
    let right = u128::from(b.quota_us) * u128::from(a.period_us);
    left.cmp(&right)
}

/// Reads the CPU set of the nearest level that has one, which already respects the levels above.
fn cpuset(tree: &MachineTree, place: &GroupPlace) -> Result<Cpuset> {
    let names: &[&str] = if place.is_v2 {
        &["cpuset.cpus.effective"]
    } else {
        &["cpuset.effective_cpus", "cpuset.cpus"]
    };
    let mut missing = None;
    for folder in place.levels() {
        for name in names {
            match tree.cpu_list(&format!("{folder}/{name}")) {
                Ok(cpus) => return Ok(Cpuset { cpus, path: folder.to_owned() }),
                Err(error) if error.is_missing => missing = missing.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
    }
    Err(missing.unwrap_or_else(|| ReadError::no_item(&place.folder, "cpuset")))
}

/// Returns the smallest limit of all levels; `None` if none sets one.
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

/// Collects the limits of all levels. A level without the file sets none: the root never has it,
/// nor has a level without the controller. A level that cannot be read is an error, as it might set
/// the tightest limit.
fn at_each_level<T>(
    place: &GroupPlace,
    read: impl Fn(&str) -> Result<Option<T>>,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    for folder in place.levels() {
        match read(folder) {
            Ok(limit) => found.extend(limit),
            Err(error) if error.is_missing => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

const CGROUP: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";

/// Folder of this process in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupPlace {
    is_v2: bool,
    mount_point: String,
    folder: String,
}

impl GroupPlace {
    /// Returns the folder and those above it, up to the mount point.
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
    /// Path of this process's control group, or of the one at the mount point.
    path: String,
}

/// A hierarchy and its mount point.
struct HierarchyMount {
    hierarchy: Hierarchy,
    point: String,
}

/// All hierarchies, and this process's groups in them.
struct CgroupMounts<'a> {
    tree: &'a MachineTree,
    memberships: Vec<Hierarchy>,
    mounts: Vec<HierarchyMount>,
}

impl<'a> CgroupMounts<'a> {
    fn read(tree: &'a MachineTree) -> Result<Self> {
        let memberships = tree.text(CGROUP)?.lines().map(membership).collect::<Result<Vec<_>>>()?;
        let mounts = tree.text(MOUNTS)?.lines().filter_map(mount).collect();
        Ok(Self { tree, memberships, mounts })
    }

    /// Returns which versions limit this process.
    fn layout(&self) -> Result<CgroupLayout> {
        let mut has_v1 = false;
        let mut has_v2 = false;
        for membership in &self.memberships {
            // A hierarchy without controllers (name=systemd) limits nothing.
            let has_controller = membership.controllers.iter().any(|name| !name.contains('='));
            has_v1 |= !membership.is_v2 && has_controller;
            has_v2 |= membership.is_v2;
        }
        match (has_v1, has_v2) {
            (true, true) => Ok(CgroupLayout::Hybrid),
            (true, false) => Ok(CgroupLayout::V1),
            (false, true) => Ok(CgroupLayout::V2),
            (false, false) => Err(ReadError::no_item(CGROUP, "0::")),
        }
    }

    /// Finds the folder of this process for a controller, and checks that it exists.
    fn place(&self, controller: &str) -> Result<GroupPlace> {
        let membership = self.membership(controller)?;
        let mount = self.mounts.iter().find_map(|mount| mount.place_of(membership, controller));
        let place = mount.ok_or_else(|| {
            let path = &membership.path;
            let wanted = format!("a cgroup mount of '{controller}' that holds {path}");
            ReadError::no_item(MOUNTS, &wanted)
        })?;
        self.tree.folder(&place.folder)?;
        Ok(place)
    }

    /// Returns the membership for a controller: of version 1 if that has it, else of version 2.
    fn membership(&self, controller: &str) -> Result<&Hierarchy> {
        let v1 = self.memberships.iter().find(|membership| membership.has(controller));
        v1.or_else(|| self.memberships.iter().find(|membership| membership.is_v2))
            .ok_or_else(|| ReadError::no_item(CGROUP, controller))
    }
}

impl Hierarchy {
    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }
}

impl HierarchyMount {
    /// Returns the folder of a membership below this mount. `None` if the mount is of another
    /// hierarchy, or shows another part of it (a bind mount, another namespace).
    fn place_of(&self, membership: &Hierarchy, controller: &str) -> Option<GroupPlace> {
        let Self { hierarchy, point } = self;
        let is_same =
            hierarchy.is_v2 == membership.is_v2 && (membership.is_v2 || hierarchy.has(controller));
        if !is_same {
            return None;
        }
        let below = membership.path.strip_prefix(hierarchy.path.trim_end_matches('/'))?;
        let is_below = below.is_empty() || below.starts_with('/');
        if !is_below || below.split('/').any(|part| part == "..") {
            return None;
        }
        let mount_point = point.trim_end_matches('/').to_owned();
        let folder = format!("{mount_point}{}", below.trim_end_matches('/'));
        Some(GroupPlace { is_v2: hierarchy.is_v2, mount_point, folder })
    }
}

/// Parses a line of /proc/self/cgroup: `4:memory:/user`, or `0::/user` for version 2.
fn membership(line: &str) -> Result<Hierarchy> {
    let [id, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else {
        return Err(ReadError::invalid(CGROUP, line, "id:controllers:path"));
    };
    let is_v2 = id == "0" && controllers.is_empty();
    let controllers = controllers.split(',').map(str::to_owned).collect();
    Ok(Hierarchy { is_v2, controllers, path: path.to_owned() })
}

/// Parses a line of mountinfo: `31 23 0:28 /root /point rw - cgroup2 cgroup2 rw`. Returns `None`
/// for other file systems.
fn mount(line: &str) -> Option<HierarchyMount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (path, point) = (unescape(place.next()?), unescape(place.next()?));
    let mut kind = kind.split(' ');
    let name = kind.next()?;
    let is_v2 = ["cgroup", "cgroup2"].iter().position(|known| name == *known)? == 1;
    let controllers = kind.nth(1).unwrap_or_default().split(',').map(str::to_owned).collect();
    Some(HierarchyMount { hierarchy: Hierarchy { is_v2, controllers, path }, point })
}

/// Decodes blanks and backslashes, which mountinfo writes as `\040` and `\134`.
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
        let membership = membership(membership_line).unwrap();
        mount.place_of(&membership, "cpu").map(|place| place.folder)
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
        let place = mount.place_of(&membership("0::/a/b").unwrap(), "cpu").unwrap();
        let levels: Vec<&str> = place.levels().collect();
        assert_eq!(levels, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
    }

    #[test]
    fn blanks_in_mount_points_are_escaped() {
        assert_eq!(unescape(r"/a\040b\134c"), r"/a b\c");
        assert_eq!(unescape(r"/a\9\x"), r"/a\9\x");
    }
}

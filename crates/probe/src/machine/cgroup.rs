//! What the control groups of this process leave to it, and where they are: cgroups(7), /proc/pid/cgroup and
//! mountinfo.

use model::machine::{Cgroup, CgroupLayout, CgroupLimit, CpuQuota, Cpuset};
use model::reading::Reading;

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

const CGROUP: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";

/// Which files a hierarchy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// The folder of this process in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    version: Version,
    mount_point: String,
    folder: String,
}

impl Place {
    /// The folder and those above it, up to the mount point.
    fn levels(&self) -> impl Iterator<Item = &str> {
        let least = self.mount_point.len();
        std::iter::successors(Some(self.folder.as_str()), move |&folder| {
            let (above, _) = folder.rsplit_once('/')?;
            (above.len() >= least).then_some(above)
        })
    }
}

/// A line of /proc/self/cgroup: `4:memory:/user`, `0::/user` for version 2.
struct Membership {
    version: Version,
    controllers: Vec<String>,
    path: String,
}

/// A mount of a hierarchy.
struct Mount {
    version: Version,
    /// The control group that stands at the mount point.
    root: String,
    point: String,
    options: Vec<String>,
}

/// All hierarchies and where this process is in them.
struct Places<'a> {
    tree: &'a Tree,
    memberships: Vec<Membership>,
    mounts: Vec<Mount>,
}

impl<'a> Places<'a> {
    fn read(tree: &'a Tree) -> Result<Self> {
        let memberships = tree.text(CGROUP)?.lines().map(membership).collect::<Result<Vec<_>>>()?;
        let mounts = tree.text(MOUNTS)?.lines().filter_map(mount).collect();
        Ok(Places { tree, memberships, mounts })
    }

    fn layout(&self) -> Result<CgroupLayout> {
        let mut versions = self.memberships.iter();
        // A hierarchy without controllers (name=systemd) holds nobody back.
        let has_v1 = self.memberships.iter().any(|of| {
            of.version == Version::V1 && of.controllers.iter().any(|name| !name.contains('='))
        });
        match (has_v1, versions.any(|of| of.version == Version::V2)) {
            (true, true) => Ok(CgroupLayout::Hybrid),
            (true, false) => Ok(CgroupLayout::V1),
            (false, true) => Ok(CgroupLayout::V2),
            (false, false) => Err(ReadError::no_item(CGROUP, "0::")),
        }
    }

    /// The folder of this process for a controller; it is there.
    fn of(&self, controller: &str) -> Result<Place> {
        let v1 = self.memberships.iter().find(|of| of.controllers.iter().any(|n| n == controller));
        let v2 = self.memberships.iter().find(|of| of.version == Version::V2);
        let membership = v1.or(v2).ok_or_else(|| ReadError::no_item(CGROUP, controller))?;
        let fits = |mount: &&Mount| match membership.version {
            Version::V1 => mount.options.iter().any(|option| option == controller),
            Version::V2 => true,
        };
        let mounts = self.mounts.iter().filter(|mount| mount.version == membership.version);
        let place = mounts.filter(fits).find_map(|mount| place(mount, membership));
        let place = place.ok_or_else(|| {
            let wanted = format!("a cgroup mount of '{controller}' that holds {}", membership.path);
            ReadError::no_item(MOUNTS, &wanted)
        })?;
        self.tree.folder(&place.folder)?;
        Ok(place)
    }
}

/// `None` if the mount shows another part of the hierarchy (a bind mount, another namespace).
fn place(mount: &Mount, membership: &Membership) -> Option<Place> {
    let below = membership.path.strip_prefix(mount.root.trim_end_matches('/'))?;
    let is_below = below.is_empty() || below.starts_with('/');
    if !is_below || below.split('/').any(|part| part == "..") {
        return None;
    }
    let mount_point = mount.point.trim_end_matches('/').to_owned();
    let folder = format!("{mount_point}{}", below.trim_end_matches('/'));
    Some(Place { version: mount.version, mount_point, folder })
}

fn membership(line: &str) -> Result<Membership> {
    let mut parts = line.splitn(3, ':');
    let (Some(id), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(ReadError::invalid(CGROUP, line, "id:controllers:path"));
    };
    let version = if id == "0" && controllers.is_empty() { Version::V2 } else { Version::V1 };
    let controllers = controllers.split(',').map(str::to_owned).collect();
    Ok(Membership { version, controllers, path: path.to_owned() })
}

/// `31 23 0:28 /root /point rw - cgroup2 cgroup2 rw`; `None` for other file systems.
fn mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (unescape(place.next()?), unescape(place.next()?));
    let mut kind = kind.split(' ');
    let version = match kind.next()? {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    let options = kind.nth(1).unwrap_or_default().split(',').map(str::to_owned).collect();
    Some(Mount { version, root, point, options })
}

/// mountinfo writes blanks and backslashes as `\040`.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
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

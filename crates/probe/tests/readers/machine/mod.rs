//! The machine readers on captured trees, and on this machine only for not failing.

mod firecracker;
mod hostile;
mod rockpi;
mod xeon;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use probe::placement::choose_one;
use rundata::machine::{CpuCache, CpuList, Machine};
use rundata::placement::placements_for_sweep;
use rundata::reading::Reading;
use tempfile::TempDir;

fn read(bundle: &str) -> Machine {
    let root = unpack(bundle);
    let machine = probe::machine::read(root.path());
    assert_round_trip(&machine);
    machine
}

fn assert_round_trip(machine: &Machine) {
    let json = serde_json::to_string(machine).unwrap();
    assert_eq!(&serde_json::from_str::<Machine>(&json).unwrap(), machine);
}

fn cpus(list: &str) -> CpuList {
    list.parse().unwrap()
}

fn known<T>(value: impl Into<T>) -> Reading<T> {
    Reading::Known(value.into())
}

/// The CPUs that share the CPU's data (or unified) cache of the level, the CPU among them.
fn sharing_cache(machine: &Machine, cpu: u32, level: u32) -> Reading<CpuList> {
    let is_it = |cache: &&CpuCache| {
        cache.holds_data() && cache.serves(cpu) && cache.level == Reading::Known(level)
    };
    machine.cpu.caches.known().unwrap().iter().find(is_it).unwrap().shared_cpus.clone()
}

/// One thing of every part, for comparison with a plain list.
fn each<T, U>(parts: &Reading<Vec<T>>, of: impl Fn(&T) -> U) -> Vec<U> {
    parts.known().unwrap().iter().map(of).collect()
}

#[test]
fn this_machine_is_read_and_survives_json() {
    let machine = probe::machine::read(Path::new("/"));
    assert_round_trip(&machine);
    assert_eq!(machine.differences(&machine), []);
}

#[test]
fn two_machines_differ_where_they_should() {
    let base = read("xeon-two-sockets.txt");
    let mut other = read("xeon-two-sockets.txt");
    assert_eq!(base.differences(&other), []);
    other.frequency.boost = known(true);
    other.load.over_1_min = known(99.0);
    let found = base.differences(&other);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].field, "frequency.boost");
    assert_eq!((&found[0].base, &found[0].other), (&false.into(), &true.into()));
}

// Which pairs of CPUs a sweep takes on captured machines.

fn labels(machine: &Machine, allowed: &str) -> Vec<String> {
    let allowed = cpus(allowed);
    let first = choose_one(allowed.as_slice(), machine).unwrap();
    let all = placements_for_sweep(machine, allowed.as_slice(), first);
    all.iter().map(|placement| format!("{placement} {:?}", placement.of_solo().cpus())).collect()
}

#[test]
fn two_sockets_with_hardware_threads_have_three_kinds_of_pairs() {
    let machine = read("xeon-two-sockets.txt");
    let own = machine.cpu.allowed.known().unwrap().to_string();
    let wanted = ["same [6]", "smt:6,2 [6]", "shared-cache:6,4 [6]", "other-node:6,5 [6]"];
    assert_eq!(labels(&machine, &own), wanted);
    // Its isolated CPUs are better, where they may be used.
    let wanted = ["same [7]", "smt:7,3 [7]", "shared-cache:7,5 [7]", "other-node:7,6 [7]"];
    assert_eq!(labels(&machine, "0-7"), wanted);
}

#[test]
fn clusters_have_a_cache_each() {
    let machine = read("rockpi-rt.txt");
    // Small cores, of which the last is isolated, and a large one.
    let wanted = ["same [3]", "shared-cache:3,2 [3]", "other-cache:3,4 [3]"];
    assert_eq!(labels(&machine, "0-4"), wanted);
    // That is alone in its cluster: the pair that shares a cache has a solo ring of its own.
    let wanted = ["same [4]", "shared-cache:2,1 [2]", "other-cache:4,2 [4]"];
    assert_eq!(labels(&machine, "0-2,4"), wanted);
}

#[test]
fn two_cpus_are_two_rows() {
    let machine = read("firecracker-epyc.txt");
    assert_eq!(labels(&machine, "0-1"), ["same [1]", "shared-cache:1,0 [1]"]);
    assert_eq!(labels(&machine, "0"), ["same [0]"]);
}

#[test]
fn a_machine_that_cannot_be_read_is_swept_without_a_guess() {
    for bundle in ["empty.txt", "garbage.txt"] {
        let machine = read(bundle);
        assert_eq!(labels(&machine, "0-2"), ["same [2]", "unknown:2,1 [2]"], "{bundle}");
    }
}

// A captured machine, unpacked into a temporary folder.

/// The paths and contents of a bundle.
fn files(name: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/machines");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let mut files: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let header = line.strip_prefix("==> ").and_then(|line| line.strip_suffix(" <==\n"));
        match (header, files.last_mut()) {
            (Some(path), _) => files.push((path.to_owned(), String::new())),
            (None, Some((_, content))) => content.push_str(line),
            (None, None) => panic!("{name} does not begin with a path"),
        }
    }
    files
}

/// A folder that holds the bundle's files.
fn unpack(name: &str) -> TempDir {
    // In memory where there is such a folder: on a slow disk the many small files take half a
    // minute.
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for (path, content) in files(name) {
        put(root.path(), &path, content.as_bytes());
    }
    root
}

/// Writes one file below the root, compressed if its name says so.
fn put(root: &Path, path: &str, content: &[u8]) {
    let place = below(root, path);
    if path.ends_with('/') {
        fs::create_dir_all(place).unwrap();
        return;
    }
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let file = fs::File::create(place).unwrap();
    if path.ends_with(".gz") {
        GzEncoder::new(file, Compression::fast()).write_all(content).unwrap();
    } else {
        (&file).write_all(content).unwrap();
    }
}

/// Where a path of the machine is.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

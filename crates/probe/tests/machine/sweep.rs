//! Which pairs of CPUs a sweep takes on captured machines.

use model::machine::Machine;
use model::placement::sweep;
use probe::placement::choose_one;

use super::{cpus, read};

fn labels(machine: &Machine, allowed: &str) -> Vec<String> {
    let allowed = cpus(allowed);
    let first = choose_one(allowed.as_slice(), machine).unwrap();
    let all = sweep(machine, allowed.as_slice(), first);
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

//! The machine readers on captured trees, and on this machine only for not failing.
// clippy.toml allows it in tests, but does not know their helpers for such.
#![allow(clippy::unwrap_used)]

mod bundle;
mod firecracker;
mod hostile;
mod rockpi;
mod sweep;
mod xeon;

use std::path::Path;

use model::machine::{CpuList, Machine};
use model::reading::Reading;

fn read(bundle: &str) -> Machine {
    let root = bundle::unpack(bundle);
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

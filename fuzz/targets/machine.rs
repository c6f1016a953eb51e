//! /proc and /sys of a machine that nobody has seen.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(tree) = fuzz::Tree::of(data) else { return };
    let (machine, _) = probe::machine::read_with_accounting(tree.root());
    serde_json::to_string(&machine).expect("a machine can be told");
});

//! /proc of processes, and the files that they run: 4 is watched, 5 does the watching.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rundata::machine::Machine;
use probe::competing::CompetitionWatcher;
use probe::executable;
use probe::program::{SwitchCounter, WatchedProcess, huge_page_bytes};

fuzz_target!(|data: &[u8]| {
    let Some(tree) = fuzz::Tree::of(data) else { return };
    if let Ok(watched) = WatchedProcess::find(tree.root(), 4) {
        let mut count = SwitchCounter::default();
        let _ = watched.look(&mut count);
        let _ = watched.look(&mut count);
        let _ = (count.switches(), count.cpu_ns(), watched.resident_bytes(), watched.referenced());
    }
    let _ = huge_page_bytes(&tree.root().join("proc/4"));
    let mut watcher = CompetitionWatcher::begin(tree.root(), 5, &[0, 1], &Machine::default());
    watcher.look_if_due();
    serde_json::to_string(&watcher.end()).expect("tasks can be told");
    let _ = executable::find_for_command(&tree.root().join("exe").to_string_lossy(), "");
});

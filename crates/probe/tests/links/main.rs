//! Every link in rings of both kinds: all hops made, switches as they should be, nothing left.
//!
//! A ring needs a process to itself, so that this test is its own worker, as the program is: it has
//! no harness and is run as `links [FILTER]`, or as `links worker` with an assignment on standard
//! input.
// clippy sees tests by their harness, which there is none of.
#![allow(clippy::unwrap_used)]

mod elsewhere;
mod flights;
mod left_behind;
mod losses;
mod pieces;
mod rings;
mod worker;

use std::cell::Cell;
use std::fmt::Display;
use std::fs;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use testing::{Need, wait_for};

/// A test and its name.
type Test = (&'static str, fn());

thread_local! {
    /// The test that this thread makes.
    static NAME: Cell<&'static str> = const { Cell::new("links") };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == worker::WORD) {
        return worker::main();
    }
    // cargo passes on what it is given; what is no flag is a filter.
    let filter = arguments.iter().find(|word| !word.starts_with('-'));
    let chosen = |(name, _): &&Test| filter.is_none_or(|filter| name.contains(&**filter));
    // Which links there are is found out by forks, which a process with threads cannot make.
    drop(rings::available());
    let before = left_behind::things();
    let one_by_one = [rings::TESTS, flights::TESTS, pieces::TESTS].concat();
    // A test that fails here ends all: what is wrong with one link is most often so with all.
    one_by_one.iter().filter(chosen).for_each(make);
    // These wait for deaths most of the time.
    let at_once = [losses::TESTS, left_behind::TESTS, elsewhere::TESTS].concat();
    let all_well = thread::scope(|scope| {
        let mut started = Vec::new();
        for test in at_once.iter().filter(chosen) {
            let thread = thread::Builder::new().name(test.0.to_string());
            started.push(thread.spawn_scoped(scope, || make(test)).unwrap());
        }
        started.into_iter().map(|test| test.join().is_ok()).filter(|well| !well).count() == 0
    });
    // What is left tells by its name whose it was.
    wait_for("end of all rings", || (!left_behind::anybody()).then_some(()));
    let mut left = Vec::new();
    let is_gone = || {
        left = left_behind::things();
        left.retain(|thing| !before.contains(thing));
        left.is_empty()
    };
    let is_gone = left_behind::is_so_soon(is_gone);
    assert!(is_gone, "left behind: {left:?}");
    fs::remove_dir_all(left_behind::NAMES.path()).unwrap();
    if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn make((name, test): &Test) {
    NAME.set(name);
    let began = Instant::now();
    test();
    eprintln!("{name} ... ok, {:.1} s", began.elapsed().as_secs_f64());
}

/// A test, or a part of it, that needs what this machine lacks.
fn skip(need: Need<'_>, why: impl Display) {
    match thread::current().name() {
        Some("main") => testing::skip(need, format_args!("{}: {why}", NAME.get())),
        _ => testing::skip(need, why),
    }
}

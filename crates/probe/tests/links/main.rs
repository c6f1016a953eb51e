//! Every link in rings of both kinds: all hops made, switches as they should be, nothing left.
//!
//! A ring needs a process to itself, so that this test is its own worker, as the program is: it has
//! no harness and is run as `links [FILTER]`, or as `links worker` with an assignment on standard
//! input.
// clippy sees tests by their harness, which there is none of.
#![allow(clippy::unwrap_used)]

mod elsewhere;
mod left_behind;
mod losses;
mod pieces;
mod rings;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == worker::WORD) {
        return worker::main();
    }
    // cargo passes on what it is given; what is no flag is a filter.
    let filter = arguments.iter().find(|word| !word.starts_with('-'));
    let tests =
        [rings::TESTS, losses::TESTS, pieces::TESTS, left_behind::TESTS, elsewhere::TESTS].concat();
    for (name, test) in tests.iter().filter(|(name, _)| filter.is_none_or(|f| name.contains(&**f)))
    {
        // A test that fails ends all: what is wrong with one link is most often so with all.
        eprint!("{name} ... ");
        test();
        left_behind::wait_until("no process is left", || !left_behind::anybody());
        eprintln!("ok");
    }
    ExitCode::SUCCESS
}

/// A test that needs what this machine lacks.
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

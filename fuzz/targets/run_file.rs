//! A run file that anybody may have written: read.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use rundata::run::Run;

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    fuzz::changed_lines(data, size, most, seed)
});

fuzz_target!(|data: &[u8]| {
    let _ = Run::parse(&String::from_utf8_lossy(data));
});

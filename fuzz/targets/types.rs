//! The types of a kernel (BTF), from which programs for the kernel are written.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    switchtrace::reads_types(data.to_vec());
});

//! Link flags of the shared library, a name that the tests in emulators set, and where the sources are
//! (`DEP_THREADCLOCK_ROOT` in build scripts of packages that use them).

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:root={}", env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo:rustc-check-cfg=cfg(threadclock_emulated)");
    // Not rustc-cdylib-link-arg: cargo passes that on to the libraries of crates that use this one.
    // A thread's end runs our pthread key destructor: after dlclose() it would not be there.
    println!("cargo:rustc-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-link-arg=-Wl,-soname,libthreadclock.so.0");
}

//! Tells the build script of switchcost where these sources are (`DEP_SWITCHCOST_PRELOAD_ROOT`).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=root={}", env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
}

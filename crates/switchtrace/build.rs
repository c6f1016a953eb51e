//! Link flags of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // As threadclock's, whose functions are in it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libswitchtrace.so.0");
}

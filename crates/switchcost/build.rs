//! Tells the program what it is built as; every record carries it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    for (name, from) in [("SWITCHCOST_TARGET", "TARGET"), ("SWITCHCOST_PROFILE", "PROFILE")] {
        println!("cargo::rustc-env={name}={}", env::var(from).unwrap_or_default());
    }
    // A source archive has no commit; then the record says that it does not know.
    let commit = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok();
    let commit = commit.filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
    println!("cargo::rustc-env=SWITCHCOST_COMMIT={}", commit.unwrap_or_default().trim());
    // A commit changes neither the source nor, on a branch, HEAD itself: the log of HEAD it does.
    for name in ["HEAD", "logs/HEAD"] {
        let path = Command::new("git").args(["rev-parse", "--git-path", name]).output().ok();
        let path = path.and_then(|output| String::from_utf8(output.stdout).ok());
        if let Some(path) = path.map(|path| PathBuf::from(path.trim())).filter(|path| path.exists())
        {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    // At a fixed address nothing is relocated when it starts: no page of it is written to, none of
    // them is a member's own. Of a static program that is the relocation model's business.
    let has = |name, value| env::var(name).is_ok_and(|all| all.split(',').any(|one| one == value));
    if has("CARGO_CFG_TARGET_ENV", "gnu") && !has("CARGO_CFG_TARGET_FEATURE", "crt-static") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_PROGRAMS").is_some() {
        preload();
    }
}

/// Builds the library that `profile` preloads (crates/preload). It is a shared object whatever this
/// program is linked as, so cargo is asked once more, without the flags that are meant for the
/// program.
fn preload() {
    let folder = |name| PathBuf::from(env::var_os(name).unwrap_or_default());
    let (crates, out) = (folder("CARGO_MANIFEST_DIR").join(".."), folder("OUT_DIR"));
    for name in ["../Cargo.toml", "preload", "threadclock/src", "threadclock/Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", crates.join(name).display());
    }
    let target = env::var("TARGET").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let kept = flags.split('\x1f').filter(|flag| flag.starts_with("--remap-path-prefix="));
    // Symbols are renamed before it is preloaded, which only this kind of table allows
    // (`preload::symbols`).
    let flags: Vec<&str> = kept.chain(["-Clink-arg=-Wl,--hash-style=sysv"]).collect();
    let built = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["rustc", "--quiet", "--locked", "--package", "switchcost-preload", "--lib"])
        .args(["--crate-type", "cdylib", "--features", "interpose", "--profile", "preload"])
        .args(["--target", &target, "--target-dir"])
        .arg(out.join("preload"))
        .current_dir(&crates)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        // clippy's and the like are for what cargo was asked for.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .status();
    let library = out.join("preload").join(target).join("preload/libpreload.so");
    match built {
        Ok(status) if status.success() => {}
        other => panic!("cargo did not build crates/preload: {other:?}"),
    }
    println!("cargo::rustc-env=SWITCHCOST_PRELOAD={}", library.display());
}

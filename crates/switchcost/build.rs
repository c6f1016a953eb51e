//! Passes target, profile and commit of the build to the program: every record carries them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() {
    for (name, from) in [("SWITCHCOST_TARGET", "TARGET"), ("SWITCHCOST_PROFILE", "PROFILE")] {
        println!("cargo::rustc-env={name}={}", env::var(from).unwrap_or_default());
    }
    // A source archive has no commit; the record then has an empty one.
    let commit = git_output(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    println!("cargo::rustc-env=SWITCHCOST_COMMIT={commit}");
    // A commit on a branch changes the log of HEAD, not HEAD itself.
    for name in ["HEAD", "logs/HEAD"] {
        let Some(path) = git_output(&["rev-parse", "--git-path", name]) else { continue };
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // A program at a fixed address needs no relocation at its start: its pages stay shared by all
    // members. The relocation model of a static program is set by its flags.
    let is_static = target_has("CARGO_CFG_TARGET_FEATURE", "crt-static");
    if target_has("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_PROGRAMS").is_some() {
        build_preload();
    }
}

/// Returns what git writes, without the end of the line; `None` where it fails.
fn git_output(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_string())
}

/// Returns whether a variable of cargo, a list with commas, has this value.
fn target_has(variable: &str, value: &str) -> bool {
    let list = env::var(variable).unwrap_or_default();
    list.split(',').any(|item| item == value)
}

/// Returns a folder that cargo names in a variable.
fn cargo_folder(variable: &str) -> PathBuf {
    PathBuf::from(env::var_os(variable).unwrap_or_default())
}

/// Returns the flags of the library: the path prefixes that the program's flags rename, and the one
/// kind of symbol table whose symbols can be renamed before it is preloaded (`preload::symbols`).
fn preload_flags() -> String {
    let mut flags = Vec::new();
    let program_flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    for flag in program_flags.split('\x1f') {
        if flag.starts_with("--remap-path-prefix=") {
            flags.push(flag);
        }
    }
    flags.push("-Clink-arg=-Wl,--hash-style=sysv");
    flags.join("\x1f")
}

/// Builds the library that `profile` preloads (crates/preload). It is a shared object whatever this
/// program is linked as, so cargo is asked once more, without the flags that are meant for the
/// program.
fn build_preload() {
    let out = cargo_folder("OUT_DIR");
    let crates = cargo_folder("CARGO_MANIFEST_DIR").join("..");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["rustc", "--quiet"]);
    if crates.join("preload/Cargo.toml").exists() {
        for name in ["../Cargo.toml", "preload", "threadclock/src", "threadclock/Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", crates.join(name).display());
        }
        cargo.args(["--locked", "--package", "switchcost-preload"]).current_dir(&crates);
    } else {
        // A package of a registry stands alone.
        let folder = out.join("package");
        write_preload_package(&folder).expect("the package of the preloaded library");
        cargo.current_dir(&folder);
    }
    let target = env::var("TARGET").unwrap_or_default();
    let built = cargo
        .args(["--lib", "--crate-type", "cdylib", "--features", "interpose"])
        .args(["--profile", "preload", "--target", &target, "--target-dir"])
        .arg(out.join("preload"))
        .env("CARGO_ENCODED_RUSTFLAGS", preload_flags())
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

/// Writes a package of the preloaded library from the sources that cargo has unpacked, with the
/// profile that the workspace has for it, and the versions of this package's lock file.
fn write_preload_package(folder: &Path) -> io::Result<()> {
    let manifest = format!(
        r#"[package]
name = "switchcost-preload"
version = "{version}"
edition = "2024"

[lib]
name = "preload"
path = "{preload}/src/lib.rs"

[features]
interpose = []

[dependencies]
libc = {{ version = "0.2", default-features = false }}
threadclock = {{ path = "{threadclock}", default-features = false, features = ["abort"] }}

[profile.preload]
inherits = "release"
codegen-units = 1
lto = "fat"
panic = "abort"
strip = true

[workspace]
"#,
        version = env::var("CARGO_PKG_VERSION").unwrap_or_default(),
        preload = cargo_folder("DEP_SWITCHCOST_PRELOAD_ROOT").display(),
        threadclock = cargo_folder("DEP_THREADCLOCK_ROOT").display(),
    );
    fs::create_dir_all(folder)?;
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let lock = cargo_folder("CARGO_MANIFEST_DIR").join("Cargo.lock");
    if lock.exists() {
        fs::copy(lock, folder.join("Cargo.lock"))?;
    }
    Ok(())
}

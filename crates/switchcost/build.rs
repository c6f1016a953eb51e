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
    // At a fixed address nothing is relocated when it starts: no page of it is written to, none of them is a member's own.
    // Of a static program that is the relocation model's business.
    let has = |name, value| env::var(name).is_ok_and(|all| all.split(',').any(|one| one == value));
    if has("CARGO_CFG_TARGET_ENV", "gnu") && !has("CARGO_CFG_TARGET_FEATURE", "crt-static") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-changed=build.rs");
}

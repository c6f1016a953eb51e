//! The C example against the header, linked to the static library.

#![allow(clippy::unwrap_used)]

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(command: &mut Command) -> Output {
    let shown = format!("{command:?}");
    command.output().unwrap_or_else(|error| panic!("{shown}: {error}"))
}

/// target/PROFILE of this test.
fn profile_directory() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_path_buf()
}

#[test]
fn the_example_compiles_links_and_runs() {
    if Command::new("cc").arg("--version").output().is_err() {
        let _ = writeln!(stderr(), "skipped: there is no cc here");
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Beside the running cargo's directory, whose lock that cargo may hold.
    let target = profile_directory().join("c-libraries");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--lib", "--target-dir"]).arg(&target).current_dir(here);
    let built = run(&mut cargo);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("switchtrace-example");
    let linked = run(Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-I"])
        .arg(here.join("include"))
        .arg(here.join("c/example.c"))
        .arg("-o")
        .arg(&program)
        .arg(target.join("debug/libswitchtrace.a"))
        .args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]));
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    let output = run(&mut Command::new(&program));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let _ = write!(stderr(), "{said}");
    assert!(matches!(output.status.code(), Some(0 | 77)), "{said}");
}

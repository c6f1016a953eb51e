//! The C example against the header, linked to the shared and to the static library, from an
//! installation that pkg-config describes; the C++ example, where there is one. Also the test of
//! switchtrace.
//!
//! `cargo test` does not build the C libraries, so this asks cargo for them.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAME: &str = env!("CARGO_PKG_NAME");

fn run(command: &mut Command) -> String {
    let shown = format!("{command:?}");
    let output = command.output().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // 77: the example says what it lacks.
    let is_well = matches!(output.status.code(), Some(0 | 77));
    assert!(is_well, "{shown}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Where cargo puts what this test belongs to: target/PROFILE/deps/this.
fn profile_directory() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.ancestors().nth(2).unwrap().to_path_buf()
}

fn install(prefix: &Path) {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = profile_directory();
    // Beside the running cargo's directory, whose lock that cargo may hold.
    let target = own.join("c-libraries");
    run(Command::new(env!("CARGO"))
        .args(["build", "--offline", "--lib", "--target-dir"])
        .arg(&target)
        .current_dir(crate_directory));
    run(Command::new("sh")
        .arg(crate_directory.join("c/install.sh"))
        .arg(prefix)
        .env("LIBRARIES", target.join("debug"))
        .env_remove("DESTDIR"));
}

fn here(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        let _ = writeln!(std::io::stderr(), "skipped: there is no {program} here");
    }
    found
}

#[test]
fn the_example_compiles_links_and_runs() {
    if !here("cc") || !here("pkg-config") {
        return;
    }
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{NAME}-installed"));
    install(&prefix);
    let package = |more: &[&str]| {
        let flags = run(Command::new("pkg-config")
            .args(["--cflags", "--libs"])
            .args(more)
            .arg(NAME)
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
        flags.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/example.c");
    let strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread"];

    let shared = prefix.join("example-shared");
    run(Command::new("cc").args(strict).arg(&source).arg("-o").arg(&shared).args(package(&[])));
    let said = run(Command::new(&shared).env("LD_LIBRARY_PATH", prefix.join("lib")));
    println!("shared: {said}");

    let linked = prefix.join("example-static");
    let flags = package(&["--static"]);
    let library = prefix.join(format!("lib/lib{NAME}.a")).display().to_string();
    let ours = format!("-l{NAME}");
    let others = flags.into_iter().map(|flag| if flag == ours { library.clone() } else { flag });
    run(Command::new("cc").args(strict).arg(&source).arg("-o").arg(&linked).args(others));
    println!("static: {}", run(&mut Command::new(&linked)));

    let source = source.with_extension("cpp");
    if !source.exists() || !here("c++") {
        return;
    }
    for standard in ["-std=c++17", "-std=c++20"] {
        let program = prefix.join("example-c++");
        run(Command::new("c++")
            .args([standard, "-Wpedantic", "-Wconversion"])
            .args(&strict[1..])
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .args(package(&[])));
        let said = run(Command::new(&program).env("LD_LIBRARY_PATH", prefix.join("lib")));
        println!("{standard}: {said}");
    }
}

//! The C example against the header, linked to the shared and to the static library, from an
//! installation that pkg-config describes; the C++ example, where there is one. Also the test of
//! switchtrace.
//!
//! The libraries are those beside this test: cargo builds all crate types of what a test is linked to.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use testing::Need;

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

/// Returns the folder where cargo puts this test, and the libraries of its crate.
fn libraries() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.parent().unwrap().to_path_buf()
}

fn install(prefix: &Path) {
    run(Command::new("sh")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("c/install.sh"))
        .arg(prefix)
        .env("LIBRARIES", libraries())
        .env_remove("DESTDIR"));
}

#[test]
fn the_example_compiles_links_and_runs() {
    if testing::lacks([Need::Program("cc"), Need::Program("pkg-config")]) {
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
    if !source.exists() || testing::lacks([Need::Program("c++")]) {
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

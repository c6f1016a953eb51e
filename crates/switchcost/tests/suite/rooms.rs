//! The layout: which crate and which room of the program may use which.

// Also the functions that walk the folders are tests.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// Each crate and those of ours that it may use (docs/architecture.md).
const MAY_USE: &[(&str, &[&str])] = &[
    ("analysis", &["rundata", "stats"]),
    ("charts", &[]),
    ("classic", &["probe", "threadclock"]),
    ("launcher", &["probe", "rundata"]),
    ("preload", &["threadclock"]),
    ("probe", &["rundata", "threadclock"]),
    ("rundata", &["stats"]),
    ("stats", &[]),
    (
        "switchcost",
        &[
            "analysis",
            "charts",
            "classic",
            "launcher",
            "preload",
            "probe",
            "rundata",
            "stats",
            "switchtrace",
            "threadclock",
        ],
    ),
    ("switchtrace", &["threadclock"]),
    ("testing", &[]),
    ("threadclock", &[]),
];

/// The rooms of the program, each of which may use those behind it (docs/architecture.md).
const ROOMS: [&str; 10] = [
    "program",
    "registry",
    "documents",
    "switches",
    "programs",
    "experiments",
    "observe",
    "engine",
    "report",
    "base",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn crates_use_what_lies_below_them() {
    let names: Vec<&str> = MAY_USE.iter().map(|(name, _)| *name).collect();
    for entry in fs::read_dir(crates()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (_, allowed) = MAY_USE.iter().find(|(known, _)| *known == name).unwrap_or_else(|| {
            panic!("crates/{name} is no room of docs/architecture.md");
        });
        let text = fs::read_to_string(crates().join(&name).join("Cargo.toml")).unwrap();
        let section = text.split("[dependencies]").nth(1).unwrap_or("");
        let section = section.split("\n[").next().unwrap();
        let used = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for used in used.filter(|used| names.contains(used)) {
            assert!(allowed.contains(&used), "{name} may not use {used}");
        }
    }
}

/// Adds the source files in `folder` and below it, without folders and files of tests.
fn add_source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            add_source_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the code before the tests of a file, without comments.
fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let text = text.split("#[cfg(test)]\npub(crate) mod tests {").next().unwrap();
    let mut code = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        code += line;
        code.push('\n');
    }
    code
}

/// Returns the rooms that a file names by `crate::ROOM`; of a list, `crate::{...}`, it panics.
fn named_rooms(code: &str) -> Vec<&str> {
    assert!(!code.contains("crate::{"), "rooms are named one by one: {code}");
    let mut rooms = Vec::new();
    for (start, prefix) in code.match_indices("crate::") {
        let path = &code[start + prefix.len()..];
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
        rooms.push(&path[..end]);
    }
    rooms
}

#[test]
fn rooms_of_the_program_use_what_lies_below_them() {
    let floor = |room: &str| ROOMS.iter().position(|known| *known == room);
    let mut count = 0;
    for room in ROOMS {
        let mut files = Vec::new();
        add_source_files(&crates().join("switchcost/src").join(room), &mut files);
        for file in files {
            let code = code_of(&file);
            for named in named_rooms(&code) {
                assert!(floor(named) >= floor(room), "{} may not use {named}", file.display());
                count += 1;
            }
        }
    }
    assert!(count > 500, "{count} uses");
}

#[test]
fn a_room_that_is_named_is_seen() {
    let code = "use crate::base::lines;\nfn act() { crate::engine::run(crate::x) }";
    assert_eq!(named_rooms(code), ["base", "engine", "x"]);
}

//! The house: which crate may use which, and no circle between the rooms (first-level modules) of any.

// Also the functions that walk the folders are tests.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate and those of ours that it may use (docs/architecture.md).
const MAY_USE: &[(&str, &[&str])] = &[
    ("charts", &[]),
    ("classic", &["probe", "threadclock"]),
    ("launcher", &["model", "probe"]),
    ("model", &["stats"]),
    ("preload", &["threadclock"]),
    ("probe", &["model", "threadclock"]),
    ("stats", &[]),
    (
        "switchcost",
        &[
            "charts",
            "classic",
            "launcher",
            "model",
            "preload",
            "probe",
            "stats",
            "switchtrace",
            "threadclock",
        ],
    ),
    ("switchtrace", &["threadclock"]),
    ("threadclock", &[]),
];

/// Rooms that still stand in a circle. None may join them, and one that left it leaves this list.
const IN_A_CIRCLE: &[&str] = &[];

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

/// All source files below `folder`, with their modules' paths.
fn sources(folder: &Path, path: &[String], found: &mut Vec<(Vec<String>, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap().to_string();
        let inner = |name: &str| [path, &[name.to_string()]].concat();
        if file.is_dir() && name != "tests" {
            sources(&file, &inner(&name), found);
        } else if file.extension().is_some_and(|extension| extension == "rs")
            && !name.ends_with("tests")
        {
            let is_own = ["mod", "lib", "main"].contains(&&*name);
            let module = if is_own { path.to_vec() } else { inner(&name) };
            let text = fs::read_to_string(&file).unwrap();
            // Tests may look at everything.
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            let code: Vec<&str> = text.lines().filter(is_code).collect();
            found.push((module, code.join("\n")));
        }
    }
}

/// The first-level modules that a module names by `crate::` or by `super::` up to the root.
fn named_rooms(module: &[String], code: &str) -> BTreeSet<String> {
    let up = "super::".repeat(module.len());
    let starts = ["crate::".to_string(), up];
    let mut rooms = BTreeSet::new();
    for start in starts.iter().filter(|start| !start.is_empty()) {
        for (at, _) in code.match_indices(start.as_str()) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let rest = &code[at + start.len()..];
            match rest.strip_prefix('{') {
                // `use crate::{build, known};`: names at the first level of the braces.
                Some(list) => {
                    let mut depth = 0;
                    let mut name = String::new();
                    for c in list.chars() {
                        match c {
                            '{' => depth += 1,
                            '}' if depth == 0 => break,
                            '}' => depth -= 1,
                            ',' if depth == 0 => {
                                rooms.insert(std::mem::take(&mut name));
                                continue;
                            }
                            _ => {}
                        }
                        if depth == 0 && !c.is_whitespace() {
                            name.push(c);
                        }
                    }
                    rooms.insert(name);
                }
                None => {
                    rooms.insert(
                        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect(),
                    );
                }
            }
        }
    }
    let first = |name: &String| name.split(':').next().unwrap_or_default().to_string();
    rooms.iter().map(first).collect()
}

/// Rooms from which one comes back to `room`.
fn reached(uses: &BTreeMap<String, BTreeSet<String>>, room: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut open: Vec<&String> = uses[room].iter().collect();
    while let Some(next) = open.pop() {
        if all.insert(next.clone()) {
            open.extend(uses.get(next).into_iter().flatten());
        }
    }
    all
}

#[test]
fn no_rooms_use_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for (name, _) in MAY_USE {
        let mut all = Vec::new();
        sources(&crates().join(name).join("src"), &[], &mut all);
        let rooms: BTreeSet<String> =
            all.iter().filter_map(|(module, _)| module.first().cloned()).collect();
        assert!(rooms.len() > 3, "{name}: {rooms:?}");
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, code) in all.iter().filter(|(module, _)| !module.is_empty()) {
            let named = named_rooms(module, code).into_iter();
            let others = named.filter(|room| rooms.contains(room) && *room != module[0]);
            uses.entry(module[0].clone()).or_default().extend(others);
        }
        let in_circle = uses.keys().filter(|room| reached(&uses, room).contains(*room));
        circles.extend(in_circle.map(|room| format!("{name}::{room}")));
    }
    let known: Vec<&str> = IN_A_CIRCLE.to_vec();
    assert_eq!(circles, known, "rooms in a circle: now, and known");
}

#[test]
fn a_circle_is_seen() {
    let module = |path: &[&str]| path.iter().map(|part| part.to_string()).collect::<Vec<_>>();
    let named = |path: &[&str], code: &str| named_rooms(&module(path), code);
    let all = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(named(&["a"], "use super::b::c; fn f() { crate::d::g() }"), all(&["b", "d"]));
    assert_eq!(named(&["a", "x"], "use super::y; use super::super::b;"), all(&["b"]));
    assert_eq!(named(&["a"], "use crate::{b, c::{d, e}, f};"), all(&["b", "c", "f"]));
    let uses = BTreeMap::from([("a".into(), all(&["b"])), ("b".into(), all(&["a"]))]);
    assert!(reached(&uses, "a").contains("a"));
}

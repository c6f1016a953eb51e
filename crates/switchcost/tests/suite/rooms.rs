//! The house: which crate and which room of the program may use which, and no circle between the
//! files of any crate.

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
    ("testing", &[]),
    ("threadclock", &[]),
];

/// The rooms of the program, each of which may use those behind it (docs/architecture.md).
const ROOMS: [&str; 7] =
    ["program", "usage", "experiments", "observe", "engine", "present", "base"];

/// Where a module is: the names on the way from the root of its crate.
type Module = Vec<String>;

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

/// All source files below `folder`, by their modules, without comments and tests.
fn sources(folder: &Path, path: &[String], found: &mut BTreeMap<Module, String>) {
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
            let text = text.split("#[cfg(test)]\npub(crate) mod tests {").next().unwrap();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            let code: Vec<&str> = text.lines().filter(is_code).collect();
            found.insert(module, code.join("\n"));
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The paths that a text begins with: of `a::{b, c::d}; ...` a::b and a::c::d.
fn paths(text: &str) -> Vec<Module> {
    let text = text.trim_start();
    if let Some(list) = text.strip_prefix('{') {
        return items(list).into_iter().flat_map(paths).collect();
    }
    let (word, rest) = text.split_at(text.find(|c| !is_of_word(c)).unwrap_or(text.len()));
    let further = match rest.strip_prefix("::") {
        Some(rest) => paths(rest),
        None => vec![Vec::new()],
    };
    further.into_iter().map(|rest| [vec![word.to_string()], rest].concat()).collect()
}

/// The items of a list in braces, up to the brace that ends it.
fn items(list: &str) -> Vec<&str> {
    let (mut all, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                all.push(&list[from..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                all.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all
}

/// The files that the code of a module names: by `crate`, `self`, `super`, or by a module within
/// it.
fn named(files: &BTreeMap<Module, String>, module: &[String], code: &str) -> BTreeSet<Module> {
    let is_within = |of: &&Module| of.len() == module.len() + 1 && of.starts_with(module);
    let within = files.keys().filter(is_within).filter_map(|of| of.last().cloned());
    let starts: Vec<String> =
        ["crate", "self", "super"].map(String::from).into_iter().chain(within).collect();
    let mut found = BTreeSet::new();
    for start in &starts {
        for (at, _) in code.match_indices(&format!("{start}::")) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| is_of_word(c) || c == ':' || c == '.') {
                continue;
            }
            for path in paths(&code[at..]) {
                let mut full = module.to_vec();
                for step in path {
                    match &*step {
                        "crate" => full.clear(),
                        "self" => {}
                        "super" => full.truncate(full.len().saturating_sub(1)),
                        _ => full.push(step),
                    }
                }
                let file = (0..=full.len()).rev().find(|end| files.contains_key(&full[..*end]));
                found.extend(file.map(|end| full[..end].to_vec()));
            }
        }
    }
    found
}

/// Of each file those that it names. A module and what lies in it are one thing.
fn uses(files: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let of = |(module, code): (&Module, &String)| {
        let mut all = named(files, module, code);
        all.retain(|other| !other.starts_with(module) && !module.starts_with(other));
        (module.clone(), all)
    };
    files.iter().map(of).collect()
}

/// Files from which one comes back to `file`.
fn reached(uses: &BTreeMap<Module, BTreeSet<Module>>, file: &Module) -> BTreeSet<Module> {
    let mut all = BTreeSet::new();
    let mut open: Vec<&Module> = uses[file].iter().collect();
    while let Some(next) = open.pop() {
        if all.insert(next.clone()) {
            open.extend(uses.get(next).into_iter().flatten());
        }
    }
    all
}

fn files_of(name: &str) -> BTreeMap<Module, String> {
    let mut files = BTreeMap::new();
    sources(&crates().join(name).join("src"), &[], &mut files);
    assert!(files.len() > 3, "{name}: {files:?}");
    files
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for (name, _) in MAY_USE {
        let uses = uses(&files_of(name));
        let in_circle = uses.keys().filter(|file| reached(&uses, file).contains(*file));
        circles.extend(in_circle.map(|file| format!("{name}::{}", file.join("::"))));
    }
    assert!(circles.is_empty(), "files in a circle: {circles:?}");
}

#[test]
fn rooms_of_the_program_use_what_lies_below_them() {
    let place = |module: &Module| ROOMS.iter().position(|room| *room == module[0]).unwrap();
    for (module, used) in uses(&files_of("switchcost")).iter().filter(|(of, _)| !of.is_empty()) {
        let above = used.iter().find(|other| place(other) < place(module));
        assert_eq!(above, None, "{} may not use it", module.join("::"));
    }
}

#[test]
fn a_circle_is_seen() {
    let module = |path: &str| path.split("::").map(String::from).collect::<Module>();
    let files: BTreeMap<Module, String> = [
        ("a", "use super::b::c; fn f() { crate::d::g() }"),
        ("a::x", "use super::y; use super::super::b; use super::Z;"),
        ("a::y", "fn f(b: B) { b.x::<T>() }"),
        ("b", "use crate::{a::{x::X, y}, d};"),
        ("d", ""),
    ]
    .map(|(path, code)| (module(path), code.to_string()))
    .into();
    let uses = uses(&files);
    let of = |path: &str| uses[&module(path)].iter().map(|of| of.join("::")).collect::<Vec<_>>();
    assert_eq!(of("a"), ["b", "d"]);
    assert_eq!(of("a::x"), ["a::y", "b"]);
    assert_eq!(of("a::y"), [""; 0]);
    assert_eq!(of("b"), ["a::x", "a::y", "d"]);
    let circle = |path: &str| reached(&uses, &module(path)).contains(&module(path));
    assert_eq!(["a", "a::x", "a::y", "b", "d"].map(circle), [false, true, false, true, false]);
}

//! README's examples are what the program prints of captured runs. With UPDATE_SNAPSHOTS=1 they are
//! written anew (docs/site/examples).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::Home;
use crate::snapshots::{said, unpacked};

/// Before an example: `<!-- captured run: NAME, first N lines -->`.
const MARK: &str = "<!-- captured run: ";

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")
}

/// The name and the number of lines of a line that is a mark.
fn marked(line: &str) -> Option<(&str, usize)> {
    let (name, lines) = line.strip_prefix(MARK)?.split_once(", first ")?;
    Some((name, lines.strip_suffix(" lines -->")?.parse().ok()?))
}

/// What a run was measured by, if it was by a command of its own: `$ switchcost ring`.
fn command(home: &Home, file: &str) -> String {
    let text = fs::read_to_string(home.path().join(file)).expect("a run");
    let header: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    let words = header["header"]["invocation"].as_array().expect("words").iter().skip(1);
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    format!("$ switchcost {}", words.join(" "))
}

/// The page with its examples as the program prints them, and how many there are.
fn renewed(page: &str) -> (String, usize) {
    let home = Home::new();
    let (mut lines, mut text, mut examples) = (page.lines().peekable(), String::new(), 0);
    while let Some(line) = lines.next() {
        text += &format!("{line}\n");
        let Some((name, count)) = marked(line) else { continue };
        examples += 1;
        let file = unpacked(&home, name);
        let printed = said(&home, &["runs", "show", &file]).out;
        let mut example: Vec<String> = printed.lines().take(count).map(str::to_string).collect();
        assert_eq!(example.len(), count, "{name}");
        if lines.peek().is_some_and(|line| line.starts_with("    $ ")) {
            example.insert(0, command(&home, &file));
        }
        let is_of_it = |line: &&str| line.is_empty() || line.starts_with("    ");
        while lines.next_if(is_of_it).is_some() {}
        for line in example {
            text += format!("    {line}").trim_end();
            text += "\n";
        }
        text += "\n";
    }
    (text, examples)
}

#[test]
fn examples_are_what_is_printed_of_captured_runs() {
    let page = fs::read_to_string(readme()).expect("README.md");
    let (wanted, examples) = renewed(&page);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(readme(), &wanted).expect("README.md");
        return;
    }
    assert!(examples >= 1 && examples == page.matches(MARK).count(), "{examples}");
    for (number, (line, wanted)) in page.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(line, wanted, "README.md, line {}: docs/site/examples", number + 1);
    }
    assert_eq!(page, wanted, "docs/site/examples");
}

/// What no example is held against would age.
#[test]
fn every_answer_has_its_run() {
    let page = fs::read_to_string(readme()).expect("README.md");
    let (_, rest) = page.split_once(MARK).expect("an example");
    let before = page.len() - rest.len() - MARK.len();
    let answers: Vec<usize> = page.match_indices("\n    A switch costs ").map(|of| of.0).collect();
    assert_eq!(answers.len(), page.matches(MARK).count());
    assert!(answers.iter().all(|at| *at > before));
    assert!(page.lines().count() <= 100, "a README of more than 100 lines");
    assert!(page.split_whitespace().count() <= 700, "a README of more than 700 words");
}

/// Each promise of SECURITY.md names tests that there are.
#[test]
fn promises_of_security_name_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../SECURITY.md")).expect("SECURITY.md");
    let section = page.split("## ").find(|part| part.starts_with("What is promised"));
    let promises = section.expect("promises").lines().filter(|line| line.starts_with("| "));
    let mut count = 0;
    for promise in promises.skip(1) {
        let tests = promise.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        for test in tests.split(", ") {
            let name = test.trim_matches('`').split_once("::");
            let (file, name) = name.unwrap_or_else(|| panic!("no test in: {promise}"));
            let code = root.join("tests/suite").join(file).with_extension("rs");
            let code = fs::read_to_string(code).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(code.contains(&format!("\nfn {name}() {{")), "{test}");
            count += 1;
        }
    }
    assert!(count >= 8, "{count} tests");
}

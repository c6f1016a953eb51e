//! Help, completions, manual: what stands around the measurements.

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Said};
use testing::{Need, lacks};

const ESCAPE: char = '\u{1b}';

#[test]
fn every_measuring_command_has_an_example() {
    let home = Home::new();
    for command in ["measure", "ring", "cost", "response", "run", "compare", "trend", "report"] {
        let help = home.run(&[command, "--help"]).out;
        assert!(help.contains(&format!("Examples:\n  switchcost {command}")), "{help}");
    }
}

#[test]
fn the_short_help_names_what_many_need_and_the_long_one_every_flag() {
    let home = Home::new();
    let (short, long) = (home.run(&["ring", "-h"]), home.run(&["ring", "--help"]));
    assert_eq!((short.code, long.code), (Some(0), Some(0)));
    assert!(short.out.len() < long.out.len());
    let detail = "Suffixes K, M and G are powers of 1024";
    assert!(!short.out.contains(detail) && !long.out.contains(detail), "{}", long.out);
    for option in ["--work", "work"] {
        let all = home.run(&["help", "ring", option]);
        assert_eq!(all.code, Some(0), "{}", all.err);
        assert!(all.out.contains(detail) && all.out.contains("Default: 0"), "{}", all.out);
    }
    // What many need is on both, what few need on the long one.
    let often =
        ["members", "kind", "link", "work", "placement", "policy", "budget", "json", "quiet"];
    let seldom = ["stride", "op", "laps", "rounds", "seed"];
    for flag in often.into_iter().chain(seldom) {
        let named = format!("--{flag}");
        assert!(long.out.contains(&named), "no --{flag} in {}", long.out);
        assert_eq!(short.out.contains(&named), often.contains(&flag), "--{flag}: {}", short.out);
    }
    assert!(short.out.contains("[default: 2,4,8,10,16,20,32,48,64]"), "{}", short.out);
}

#[test]
fn the_version_is_the_packages() {
    let said = Home::new().run(&["--version"]);
    let version = format!("switchcost {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((said.code, &*said.out), (Some(0), &*version));
}

#[test]
fn without_a_command_it_says_what_a_switch_costs_and_what_is_next() {
    let home = Home::new();
    let said = home.run(&[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.starts_with("A switch costs "), "{}", said.out);
    for next in ["switchcost measure", "switchcost trace", "switchcost compare"] {
        assert!(said.out.contains(next), "no {next} in {}", said.out);
    }
    assert_eq!(home.run_files().len(), 1, "the run is stored");
}

#[test]
fn commands_are_listed_in_groups_on_one_screen() {
    let home = Home::new();
    let (short, long) = (home.run(&["-h"]), home.run(&["--help"]));
    assert_eq!((short.code, long.code), (Some(0), Some(0)));
    assert!(short.out.lines().count() <= 45, "{}", short.out);
    for command in ["ring", "runs", "trace", "help"] {
        let listed = short.out.lines().any(|line| line.starts_with(&format!("  {command} ")));
        assert!(listed, "no {command} in {}", short.out);
    }
    for old in ["completions", "man", "schema", "links", "history"] {
        assert!(!short.out.contains(&format!("  {old} ")), "{old} in {}", short.out);
    }
}

/// `--help` of each command is two screens at most, and the manual no book.
#[test]
fn help_is_short() {
    let home = Home::new();
    let commands = [
        "measure",
        "ring",
        "cost",
        "response",
        "explain",
        "clock",
        "run",
        "trace",
        "top",
        "sensitivity",
        "profile",
        "compare",
        "trend",
        "report",
        "runs",
        "help",
    ];
    for command in commands {
        let help = home.run(&[command, "--help"]);
        let lines = help.out.lines().count();
        assert!((5..=120).contains(&lines), "{command}: {lines} lines\n{}", help.out);
    }
    let manual = home.run(&["help", "man"]).out;
    let words = manual.split_whitespace().count();
    assert!(words <= 8000, "{words} words");
}

/// What was called otherwise in the version before works and says the new name.
#[test]
fn old_names_work_and_say_the_new_ones() {
    let home = Home::new();
    for (old, new) in [
        (&["links"][..], &["ring", "--link", "help"][..]),
        (&["history"], &["runs", "list", "--history"]),
        (&["history", "sun-4/280"], &["runs", "show", "history:sun-4/280"]),
        (&["man"], &["help", "man"]),
        (&["schema", "trend"], &["help", "schema", "trend"]),
        (&["completions", "bash"], &["help", "completions", "bash"]),
    ] {
        let (before, now) = (home.run(old), home.run(new));
        assert_eq!((before.code, now.code), (Some(0), Some(0)), "{old:?}: {}", now.err);
        assert_eq!(before.out, now.out, "{old:?}");
        let named = format!("`switchcost {}", new[..2].join(" "));
        assert!(before.err.contains(&named) || new[0] == "runs", "{old:?}: {}", before.err);
        assert!(before.err.starts_with("note: ") && now.err.is_empty(), "{old:?}: {}", before.err);
    }
}

#[test]
fn completions_know_the_flags_but_not_the_worker() {
    for shell in ["bash", "zsh", "fish"] {
        let said = Home::new().run(&["help", "completions", shell]);
        assert_eq!((said.code, &*said.err), (Some(0), ""), "{shell}");
        for word in ["switchcost", "members", "placement", "resume"] {
            assert!(said.out.contains(word), "no {word} for {shell}");
        }
    }
}

#[test]
fn the_manual_is_a_manual() {
    let said = Home::new().run(&["help", "man"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    assert!(said.out.lines().any(|line| line.starts_with(".TH switchcost 1")), "{}", said.out);
    for page in ["switchcost-ring", "switchcost-runs"] {
        let title = format!(".TH {page} 1");
        assert_eq!(said.out.lines().filter(|line| line.starts_with(&title)).count(), 1, "{page}");
    }
    assert!(said.out.contains("\\-\\-members"), "{}", said.out);
    assert!(!said.out.contains(".TH switchcost-worker"));
}

#[test]
fn the_worker_is_hidden_and_cannot_be_started_by_hand() {
    let home = Home::new();
    for args in [&["--help"][..], &["-h"], &["help"], &["help", "man"]] {
        let said = home.run(args);
        let listed = said.out.lines().any(|line| line.trim_start().starts_with("worker"));
        assert!(!listed, "{args:?}: {}", said.out);
    }
    let said = home.run(&["worker", "--parent", "1"]);
    assert_eq!((said.code, &*said.out), (Some(1), ""));
    assert!(said.error().contains("an internal command"), "{}", said.err);
}

#[test]
fn a_worker_that_is_told_nonsense_says_so() {
    let own = std::process::id().to_string();
    let said = Home::new().run(&["worker", "--parent", &own]);
    assert_eq!((said.code, &*said.out), (Some(1), ""));
    assert!(said.error().contains("case cannot be read"), "{}", said.err);
}

#[test]
fn every_schema_that_is_listed_is_printed() {
    let said = Home::new().run(&["help", "schema"]);
    let names: Vec<&str> =
        said.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"record") && names.contains(&"run-line"), "{}", said.out);
    // The list of columns is no schema; another test reads it.
    let schemas = names.iter().filter(|name| **name != "columns");
    schemas.for_each(|name| drop(Schema::of(name)));
    let said = Home::new().run(&["help", "schema", "else"]);
    assert_eq!(said.code, Some(2));
    assert!(said.error().contains("command-use"), "{}", said.err);
}

#[test]
fn what_is_no_terminal_gets_no_escapes() {
    let home = Home::new();
    for args in [
        &["ring", "--members", "2", "--rounds", "1", "--laps", "9", "--budget", "600s"][..],
        &["ring", "--bogus"],
        &["ring", "--help"],
        &["runs", "list"],
        &["runs", "show", "nothing"],
    ] {
        let said = home.run(args);
        assert!(!said.out.contains(ESCAPE) && !said.err.contains(ESCAPE), "{args:?}: {said:?}");
    }
}

/// Runs the program on a terminal, whose two outputs are one.
fn on_terminal(home: &Home, line: &str, variables: &[(&str, &str)]) -> Said {
    let line = format!("{PROGRAM} {line}");
    let mut command = home.command("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.env("TERM", "xterm").envs(variables.iter().copied());
    Said::of(&mut command)
}

#[test]
fn no_color_means_no_color() {
    if lacks([Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    for line in ["ring --help", "ring --bogus"] {
        let plain = on_terminal(&home, line, &[("NO_COLOR", "1")]);
        assert!(plain.out.contains("--members") || plain.out.contains("--bogus"), "{plain:?}");
        assert!(!plain.out.contains(ESCAPE), "{line}: {}", plain.out);
    }
    // Otherwise this test could not fail.
    assert!(on_terminal(&home, "ring --help", &[]).out.contains(ESCAPE));
}

/// A state is drawn before each measurement: the first twenty however fast they come.
const THREE_ROUNDS: &str = "ring --members 2 --rounds 3 --laps 200 --budget 600s";

#[test]
fn on_a_terminal_a_bar_says_what_is_measured_how_well_and_how_long() {
    if lacks([Need::Program("script")]) {
        return;
    }
    let said = on_terminal(&Home::new(), THREE_ROUNDS, &[]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    for word in ["round 1, ring of ", "asked 2.5 %, ", "s left, round 2"] {
        assert!(said.out.contains(word), "no {word:?} in {}", said.out);
    }
    let quiet = on_terminal(&Home::new(), &format!("{THREE_ROUNDS} --quiet"), &[]);
    assert_eq!((quiet.code, &*quiet.out), (Some(0), ""));
}

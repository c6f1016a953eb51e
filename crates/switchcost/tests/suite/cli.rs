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
    assert!(!short.out.contains(detail) && long.out.contains(detail), "{}", long.out);
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
fn without_a_command_the_commands_are_listed() {
    let said = Home::new().run(&[]);
    assert_eq!((said.code, &*said.out), (Some(2), ""));
    for command in ["ring", "runs", "completions", "man"] {
        let listed = said.err.lines().any(|line| line.starts_with(&format!("  {command} ")));
        assert!(listed, "no {command} in {}", said.err);
    }
}

#[test]
fn completions_know_the_flags_but_not_the_worker() {
    for shell in ["bash", "zsh", "fish"] {
        let said = Home::new().run(&["completions", shell]);
        assert_eq!((said.code, &*said.err), (Some(0), ""), "{shell}");
        for word in ["switchcost", "members", "placement", "resume"] {
            assert!(said.out.contains(word), "no {word} for {shell}");
        }
    }
}

#[test]
fn the_manual_is_a_manual() {
    let said = Home::new().run(&["man"]);
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
    for args in [&["--help"][..], &["-h"], &["help"], &["man"]] {
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
    let said = Home::new().run(&["schema"]);
    let names: Vec<&str> =
        said.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"record") && names.contains(&"run-line"), "{}", said.out);
    names.iter().for_each(|name| drop(Schema::of(name)));
    let said = Home::new().run(&["schema", "else"]);
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

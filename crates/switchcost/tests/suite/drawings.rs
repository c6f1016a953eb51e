//! Charts on the terminal and as pictures, as the program draws them.

use std::fs;
use std::process::Command;

use crate::common::stored::RUN;
use crate::common::{Home, PROGRAM, Said};

/// The program in this home, on a terminal of 80 columns in UTF-8 without a word on colours.
fn program(home: &Home) -> Command {
    let mut command = home.command(PROGRAM);
    command.current_dir(home.path()).env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
    for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

fn home_with_run() -> Home {
    let home = Home::new();
    fs::write(home.path().join("run.jsonl"), RUN).expect("a file");
    home
}

fn shown(command: &mut Command) -> String {
    let said = Said::of(command.args(["runs", "show", "run.jsonl", "--plot"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    said.out
}

/// What follows the table.
fn plot(text: &str) -> &str {
    let start = text.find("\nCost of a switch by the size of the ring\n").expect("a plot");
    &text[start..]
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn a_stored_run_is_drawn_below_its_table() {
    let home = home_with_run();
    let text = shown(&mut program(&home));
    let plot = plot(&text);
    assert!(widest(plot) <= 80, "{plot}");
    for word in ["cost of a switch (us)", "members of the ring", "●", "│", "┤"] {
        assert!(plot.contains(word), "no {word}: {plot}");
    }
    assert!(!text.contains('\x1b'), "a file has no colours");
    let without = Said::of(program(&home).args(["runs", "show", "run.jsonl"])).out;
    assert!(text.starts_with(&without), "the table comes first, as it was");
}

#[test]
fn colours_are_there_when_asked_for_and_nothing_else_changes() {
    let home = home_with_run();
    let plain = shown(&mut program(&home));
    let coloured = shown(program(&home).env("CLICOLOR_FORCE", "1"));
    assert!(coloured.contains("\x1b[36m"), "{coloured}");
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped.push_str(before);
        rest = after.split_once('m').expect("an end of the escape").1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
    let refused = shown(program(&home).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"));
    let kept = [&plain, &coloured].contains(&&refused);
    assert!(kept, "NO_COLOR changed more than colours");
    assert_eq!(shown(program(&home).env("NO_COLOR", "1")), plain);
}

#[test]
fn without_a_locale_of_utf8_there_is_ascii_only() {
    let home = home_with_run();
    let text = shown(program(&home).env("LC_ALL", "C"));
    let plot = plot(&text);
    assert!(plot.is_ascii(), "{plot}");
    assert!(plot.contains('o') && widest(plot) <= 80, "{plot}");
}

#[test]
fn a_plot_is_as_narrow_as_the_terminal() {
    let home = home_with_run();
    for columns in ["40", "31", "20"] {
        let text = shown(program(&home).env("COLUMNS", columns));
        let start = text.find("\nCost of a switch by").expect("a plot");
        assert!(widest(&text[start..]) <= columns.parse().expect("a number"), "{text}");
    }
}

#[test]
fn a_run_is_drawn_where_its_table_is_printed() {
    let home = Home::new();
    let bounds = ["--rounds", "1", "--laps", "9", "--budget", "600s"];
    let args = ["ring", "--members", "2,4", "--plot", "--json", "-"];
    let said = Said::of(program(&home).args(args).args(bounds));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(serde_json::from_str::<serde_json::Value>(&said.out).is_ok(), "{}", said.out);
    assert!(said.err.contains("members of the ring"), "{}", said.err);
}

#[test]
fn what_has_no_chart_says_so() {
    let home = home_with_run();
    let refused: [(&[&str], &str); 5] = [
        (&["compare", "--plot", "--ab", "", ""], "no charts"),
        (&["cost", "--plot", "--", "true"], "no charts"),
        // What is not stored has no such option at all.
        (&["run", "--plot", "--", "true"], "unexpected argument"),
        (&["trace", "--plot", "--", "true"], "unexpected argument"),
        (&["profile", "--malloc", "--plot", "--", "true"], "unexpected argument"),
    ];
    for (args, why) in refused {
        let said = Said::of(program(&home).args(args));
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.err.contains("--plot") && said.err.contains(why), "{}", said.err);
    }
}

#[test]
fn a_report_comes_with_pictures() {
    let home = home_with_run();
    let args = ["report", "run.jsonl", "-o", "out.html", "--svg", "paper", "--png", "paper/png"];
    let said = Said::of(program(&home).args(args));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let svg = fs::read_to_string(home.path().join("paper/ring-cost.svg")).expect("a picture");
    assert!(svg.starts_with("<svg") && svg.contains("<title>Cost of a switch"), "{svg}");
    assert!(!svg.contains("<text"), "text must be outlines");
    let png = fs::read(home.path().join("paper/png/ring-cost.png")).expect("a picture");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    for line in
        ["report: out.html", "picture: paper/ring-cost.svg", "picture: paper/png/ring-cost.png"]
    {
        assert!(said.out.lines().any(|said| said == line), "no {line}: {}", said.out);
    }
}

#[test]
fn a_folder_for_pictures_that_cannot_be_made_is_an_error() {
    let home = home_with_run();
    let args = ["report", "run.jsonl", "-o", "out.html", "--svg", "run.jsonl"];
    let said = Said::of(program(&home).args(args));
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("run.jsonl") && said.err.contains("--svg"), "{}", said.err);
}

const FIGURE: &str = r#"{"id": "a", "title": "A", "x": {"label": "members", "unit": "count", "scale": "log"},
    "y": {"label": "cost", "unit": "nanoseconds", "scale": "linear"},
    "body": {"series": [{"name": "", "role": "measured", "points": [{"x": 2, "y": 1500}]}]}}"#;

#[test]
fn figures_of_others_are_drawn_a_line_each() {
    let home = Home::new();
    fs::write(home.path().join("figures.json"), format!("{FIGURE}\n{FIGURE}")).expect("a file");
    let said = Said::of(program(&home).args(["chart", "figures.json"]));
    assert_eq!((said.code, said.out.lines().count()), (Some(0), 2), "{}", said.err);
    assert!(said.out.contains("<title>2: 1.5 µs</title>"), "{}", said.out);
    let mut with_input = program(&home);
    with_input.stdin(fs::File::open(home.path().join("figures.json")).expect("the file"));
    let panels = Said::of(with_input.args(["chart", "--panel", "-"]));
    assert_eq!(panels.out.matches("viewBox=\"0 0 320 ").count(), 2, "{}", panels.err);
}

#[test]
fn a_figure_that_cannot_be_read_is_named() {
    let home = Home::new();
    let text = format!("{FIGURE} {}", FIGURE.replace("log", "cubic"));
    fs::write(home.path().join("figures.json"), text).expect("a file");
    let said = Said::of(program(&home).args(["chart", "figures.json"]));
    assert_eq!((said.code, &*said.out), (Some(1), ""));
    assert!(said.error().contains("figures.json: figure 2 cannot be read"), "{}", said.err);
    assert!(said.err.contains("unknown variant `cubic`"), "{}", said.err);
    let missing = Said::of(program(&home).args(["chart", "none.json"]));
    assert!(missing.error().contains("cannot read none.json"), "{}", missing.err);
}

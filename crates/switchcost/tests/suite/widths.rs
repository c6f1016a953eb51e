//! No line of text for people is wider than the terminal, whatever its width.
//!
//! Left alone by kind: what programs read (JSON, CSV, OpenMetrics, Go's benchmark format, scripts
//! for shells, the manual page, schemas), Markdown, in which a row of a table is a line, tables
//! with --wide, which has all columns, the programs of the papers behind `classic`, and single
//! words that are wider than the terminal: paths, and names of cases.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use testing::{Need, lacks};
use unicode_width::UnicodeWidthStr;

use crate::common::stored::{full_speed_run, lengthen};
use crate::common::{Home, PROGRAM, Said};
use crate::snapshots;

const WIDTHS: [usize; 3] = [60, 80, 200];

/// Lines that were too wide, each with what printed it.
#[derive(Default)]
struct TooWide(String);

impl TooWide {
    fn look(&mut self, args: &[&str], columns: usize, text: &str) {
        for line in text.lines().filter(|line| is_too_wide(line, columns)) {
            let shown = line.chars().take(60).collect::<String>();
            let (is, args) = (line.width(), args.join(" "));
            // Writing to a String cannot fail.
            let _ = writeln!(self.0, "{columns:>7}  {is:>5}  {args:<40}  {shown}");
        }
    }

    /// Runs the program in each width; gives what it says in the narrowest.
    fn print(&mut self, home: &Home, args: &[&str]) -> Said {
        let mut narrowest = None;
        for columns in WIDTHS {
            let said = said_in(home, args, columns);
            self.look(args, columns, &said.out);
            self.look(args, columns, &said.err);
            narrowest.get_or_insert(said);
        }
        narrowest.expect("a width")
    }

    /// The same of what must succeed.
    fn show(&mut self, home: &Home, args: &[&str]) -> Said {
        let said = self.print(home, args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        said
    }

    #[track_caller]
    fn assert_none(&self) {
        let head = "columns  width  command                                   line";
        assert!(self.0.is_empty(), "lines wider than the terminal:\n{head}\n{}", self.0);
    }
}

fn is_too_wide(line: &str, columns: usize) -> bool {
    line.width() > columns && line.trim().contains(' ')
}

fn said_in(home: &Home, args: &[&str], columns: usize) -> Said {
    let mut command = home.command(PROGRAM);
    command.args(args).current_dir(home.path()).env("COLUMNS", columns.to_string());
    Said::of(&mut command)
}

/// Stored runs of every experiment.
fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = fs::read_dir(folder).expect("the fixtures").flatten();
    let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
    files.sort();
    files
}

#[test]
fn a_line_that_is_too_wide_is_found() {
    let mut found = TooWide::default();
    found.look(
        &["ring"],
        20,
        "a line that fits\nand one that is wider than that\n/a/path/without/an/end\n",
    );
    assert_eq!(found.0.lines().count(), 1, "{}", found.0);
    assert!(found.0.contains("wider than that"), "{}", found.0);
}

#[test]
fn reports_of_stored_runs() {
    let mut found = TooWide::default();
    let home = Home::new();
    for file in fixtures() {
        let file = file.to_str().expect("a path in UTF-8");
        for more in [&[][..], &["--verbose", "--history"], &["--plot"]] {
            found.show(&home, &[&["runs", "show", file], more].concat());
        }
    }
    found.assert_none();
}

#[test]
fn reports_of_captured_runs() {
    let mut found = TooWide::default();
    let home = Home::new();
    for name in snapshots::RUNS {
        let file = snapshots::unpacked(&home, name);
        found.show(&home, &["runs", "show", &file]);
        let said = said_in(&home, &["runs", "show", &file, "--verbose"], WIDTHS[0]);
        found.look(&["runs", "show", &file, "--verbose"], WIDTHS[0], &said.out);
    }
    found.assert_none();
}

#[test]
fn comparisons() {
    let mut found = TooWide::default();
    let home = Home::new();
    let [one, two, links] =
        ["ring", "ring-again", "links"].map(|name| snapshots::unpacked(&home, name));
    for args in [
        &[&*one, &*two][..],
        &[&*one, &*two, "--verbose"],
        &[&*one, &*two, "--fail-above", "3%", "--allow-undecided"],
        &[&*one, &*two, &*links],
        &["history:sun-4/280", &*one],
        &["history:sun-4/280", "history:sun-4/280"],
    ] {
        found.show(&home, &[&["compare"], args].concat());
    }
    found.print(&home, &["compare", &one, &links]);
    let base = full_speed_run(&home, "base.jsonl", |_| {});
    let batch = full_speed_run(&home, "batch.jsonl", |line| {
        lengthen(line, 130);
        let cases = line.pointer_mut("/header/plan/cases").and_then(|of| of.as_array_mut());
        cases.into_iter().flatten().for_each(|case| case["policy"] = "batch".into());
    });
    for more in [&["--across", "policy"][..], &["--across", "policy", "--verbose"], &[]] {
        found.print(&home, &[&["compare", &base, &batch], more].concat());
    }
    found.assert_none();
}

#[test]
fn series_of_runs() {
    let mut found = TooWide::default();
    let home = Home::new();
    crate::trend::twelve(&home, 1150);
    for more in [&[][..], &["--verbose"], &["--by", "kernel"], &["--plot"], &["--fail-above", "3%"]]
    {
        found.print(&home, &[&["trend"], more].concat());
    }
    found.show(&home, &["runs", "list"]);
    found.assert_none();
}

#[test]
fn lists() {
    let mut found = TooWide::default();
    let home = Home::new();
    found.show(&home, &["runs", "list"]);
    fs::create_dir_all(home.runs_folder()).expect("a folder");
    for (number, file) in fixtures().iter().enumerate() {
        let name = format!("20261123T2211{number:02}Z-ring-1146{number}.jsonl");
        fs::copy(file, home.runs_folder().join(name)).expect("a copy");
    }
    fs::write(home.runs_folder().join("20261123T000000Z-broken.jsonl"), "{}\n").expect("a file");
    let list = found.show(&home, &["runs", "list"]);
    assert!(list.out.contains("\n--wide shows "), "{}", list.out);
    let history = found.show(&home, &["runs", "list", "--history"]);
    assert!(history.out.contains("\n--wide shows "), "{}", history.out);
    let machines: Vec<String> = history
        .out
        .lines()
        .filter_map(|line| {
            let (name, year) = (line.split_whitespace().next()?, line.split_whitespace().nth(1)?);
            year.parse::<u32>().ok().map(|_| name.to_string())
        })
        .collect();
    assert!(machines.len() > 5, "{}", history.out);
    for machine in &machines {
        found.print(&home, &["runs", "show", &format!("history:{machine}")]);
    }
    found.show(&home, &["ring", "--link", "help"]);
    found.show(&home, &["help", "schema"]);
    let file = fixtures()[0].display().to_string();
    found.show(
        &home,
        &["report", &file, "--svg", "pictures", "-o", "a-report-with-a-long-name.html"],
    );
    found.assert_none();
}

#[test]
fn wide_tables_have_all_columns() {
    let home = Home::new();
    for args in [&["runs", "list", "--history"][..], &["runs", "list"]] {
        let said = said_in(&home, &[args, &["--wide"]].concat(), 60);
        assert!(!said.out.contains("--wide shows"), "{}", said.out);
        let table = |said: Said| said.out.split("\n\n").next().map(str::to_string);
        assert_eq!(table(said), table(said_in(&home, &[args, &["--wide"]].concat(), 200)));
    }
    let file = fixtures().into_iter().find(|file| file.ends_with("clock-malloc.jsonl"));
    let file = file.expect("a run of malloc").display().to_string();
    let narrow = said_in(&home, &["runs", "show", &file, "--verbose"], 80);
    assert!(narrow.out.contains("--wide shows "), "{}", narrow.out);
    let wide = said_in(&home, &["runs", "show", &file, "--verbose", "--wide"], 80);
    assert!(!wide.out.contains("--wide shows "), "{}", wide.out);
}

/// All commands, each by its words, as the help names them.
fn commands(home: &Home, path: &[&str]) -> Vec<Vec<String>> {
    let said = said_in(home, &[path, &["-h"]].concat(), 200);
    // The program's own are in groups.
    let first = if path.is_empty() { "Measure this machine:\n" } else { "Commands:\n" };
    let below = said.out.split_once(first).map_or("", |(_, below)| below);
    let lines = below.lines().take_while(|line| *line != "Options:");
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut all = vec![path.iter().map(|word| word.to_string()).collect()];
    for name in names.filter(|name| !name.is_empty() && *name != "help") {
        // That belongs to another program.
        if name != "fleet" {
            all.extend(commands(home, &[path, &[name]].concat()));
        }
    }
    all
}

#[test]
fn help_and_usage_errors_of_every_command() {
    let mut found = TooWide::default();
    let home = Home::new();
    let all = commands(&home, &[]);
    assert!(all.len() > 20, "{all:?}");
    for command in &all {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        for more in ["-h", "--help", "--there-is-no-flag-of-such-a-name-anywhere-in-this-program"] {
            // Theirs are as they were.
            if words.first() != Some(&"classic")
                || more != "--there-is-no-flag-of-such-a-name-anywhere-in-this-program"
            {
                found.print(&home, &[&words[..], &[more]].concat());
            }
        }
    }
    found.assert_none();
}

/// Lines of a terminal of today, and its prompt.
const SCREEN: usize = 46;

#[test]
fn the_short_help_of_every_command_fits_a_screen_and_says_where_the_rest_is() {
    let home = Home::new();
    for command in commands(&home, &[]) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let [short, long] = ["-h", "--help"].map(|more| {
            let said = said_in(&home, &[&words[..], &[more]].concat(), 80);
            assert_eq!(said.code, Some(0), "{command:?} {more}: {}", said.err);
            said.out
        });
        let lines = short.lines().count();
        assert!(lines <= SCREEN, "{command:?}: {lines} lines\n{short}");
        // Flags that are on the long one alone are announced.
        let flags = |text: &str| -> BTreeSet<String> {
            let words = text.split(|c: char| c.is_whitespace() || c == ',');
            let flags = words.filter(|word| word.starts_with("--") && word.len() > 2);
            flags.map(|flag| flag.trim_end_matches(['.', ')', ':', ';']).to_string()).collect()
        };
        let listed = |text: &str| -> BTreeSet<String> {
            let lines = text.lines().filter(|line| line.trim_start().starts_with('-'));
            // All commands have that one; nobody looks for it.
            lines.flat_map(flags).filter(|flag| flag != "--color").collect()
        };
        assert!(listed(&short).is_subset(&listed(&long)), "{command:?}");
        if listed(&short).len() < listed(&long).len() {
            let typed = [&["switchcost"], &words[..]].concat().join(" ");
            let where_it_is = format!(": {typed} --help");
            assert!(short.contains(&where_it_is), "{command:?}: {short}");
        }
    }
}

/// The commands of a help's examples, each as a shell takes it: a backslash goes on.
fn examples(help: &str) -> Vec<Vec<String>> {
    let text = help.split_once("\nExample").map_or("", |(_, text)| text);
    let text = text.split_once(":\n").map_or("", |(_, text)| text).replace("\\\n", "");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| shell_words::split(line).expect("whole quotation marks")).collect()
}

#[test]
fn examples_can_be_copied_from_a_narrow_terminal() {
    let home = Home::new();
    let mut broken = 0;
    for command in commands(&home, &[]) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let help = |columns| said_in(&home, &[&words[..], &["--help"]].concat(), columns).out;
        let (whole, narrow) = (examples(&help(200)), examples(&help(60)));
        assert_eq!(narrow, whole, "{words:?}");
        assert!(whole.iter().all(|line| line[0] == "switchcost"), "{whole:?}");
        broken += help(60).matches("\\\n").count();
    }
    assert!(broken > 3, "{broken} examples are wider than 60 columns");
}

#[test]
fn what_is_refused() {
    let mut found = TooWide::default();
    let home = Home::new();
    for line in [
        "ring --members 0..4",
        "ring --members 2..",
        "ring --link pip",
        "ring --link pipe,nonesuch",
        "ring --work 4K --stride 8K",
        "ring --work 4096G --stride 8",
        "ring --placement here",
        "ring --placement 9999",
        "ring --budget soon",
        "ring --precision tight",
        "ring --kind fibre",
        "ring --policy nonesuch",
        "ring --state nonesuch",
        "ring --launches 2 --json -",
        "ring --json - --csv -",
        "ring --json /nonesuch/folder/of/a/long/name/figures.json",
        "ring --name a/b",
        "cost --array 4Q",
        "cost --walk nonesuch",
        "cost --pid abc",
        "cost --pid 999999",
        "cost --pid 1 --array 4K",
        "cost --profile nonesuch",
        "cost -- /nonesuch/program",
        "classic experiment interference --nonesuch",
        "response --only nonesuch",
        "clock overhead --trials 0",
        "classic experiment primes --primes 0",
        "classic experiment malloc --preload /nonesuch/library.so",
        "classic experiment sampling --duration 1ms",
        "compare nonesuch last",
        "compare last",
        "compare --ab --members 2",
        "compare history:nonesuch history:sun",
        "trend nonesuch",
        "trend --by nonesuch",
        "report nonesuch",
        "report history:nonesuch",
        "runs show history:nonesuch",
        "runs show history:s",
        "run",
        "run -- /nonesuch/program",
        "run -n 0 -- true",
        "run --parameter jobs 1,2 -- true",
        "profile -- true",
        "profile --malloc -- /nonesuch/program",
        "top",
        "top --sort nonesuch --batch",
        "trace",
        "trace --pid 999999",
        "trace --pid 1 --all",
        "runs show nonesuch",
        "runs export last --format nonesuch",
        "runs resume nonesuch",
        "runs remove nonesuch",
        "help schema nonesuch",
        "help completions nonesuch",
        "nonesuch",
    ] {
        let args: Vec<&str> = line.split_whitespace().collect();
        let said = found.print(&home, &args);
        assert!(said.code != Some(0), "{line}: {said:?}");
    }
    found.assert_none();
}

/// Bounded by rounds and laps, so that it takes a second.
const SMALL: [&str; 6] = ["--rounds", "2", "--laps", "100", "--budget", "60s"];

/// Measured in the narrowest terminal: what is printed at the end of a run.
#[test]
fn what_is_measured() {
    let mut found = TooWide::default();
    let home = Home::new();
    let mut measured = |args: &[&str]| {
        let said = said_in(&home, args, WIDTHS[0]);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        found.look(args, WIDTHS[0], &(said.out + &said.err));
    };
    for args in [
        &["--members", "2,4", "--verbose"][..],
        &["--members", "2", "--launches", "2"],
        &["--members", "2", "--link", "pipe,futex,socket-dgram", "--verbose"],
        &["--members", "2", "--state", "all", "--verbose"],
    ] {
        measured(&[&["ring"], args, &SMALL].concat());
    }
    measured(&["sensitivity", "--neighbour", "0,64K", "--rounds", "1", "--verbose", "--", "true"]);
    measured(&["run", "--", "true"]);
    measured(&["run", "--verbose", "--", "true"]);
    measured(&["run", "-n", "5", "--vs", "sh -c true", "--verbose", "--", "true"]);
    measured(&["run", "-n", "5", "--parameter", "seconds", "0,0.001", "--", "sleep", "{seconds}"]);
    measured(&["cost", "--", "true"]);
    measured(&["cost", "--verbose", "--", "sh", "-c", "true; true"]);
    measured(&["profile", "--calls", "write", "--", "true"]);
    if !lacks([Need::Program("python3")]) {
        measured(&[
            "profile",
            "--malloc",
            "-n",
            "5",
            "--verbose",
            "--",
            "python3",
            "-c",
            "list(range(1000))",
        ]);
    }
    if crate::trace::can_trace() {
        measured(&["trace", "--verbose", "--", "sh", "-c", "sleep 0.01; sleep 0.01"]);
        measured(&["trace", "--all", "--seconds", "0.2"]);
        let narrow = said_in(&home, &["trace", "--all", "--seconds", "0.2"], WIDTHS[0]);
        assert!(narrow.out.contains("\n--wide shows "), "{}", narrow.out);
        let wide = said_in(&home, &["trace", "--all", "--seconds", "0.2", "--wide"], WIDTHS[0]);
        assert!(!wide.out.contains("--wide shows "), "{}", wide.out);
    }
    found.assert_none();
}

/// A screen of so many columns, as a terminal makes it of what is written to it.
struct Screen {
    columns: usize,
    rows: Vec<String>,
    row: usize,
    column: usize,
    /// Lines that did not fit.
    broken: Vec<String>,
}

impl Screen {
    fn of(written: &str, columns: usize) -> Self {
        let mut screen =
            Self { columns, rows: vec![String::new()], row: 0, column: 0, broken: Vec::new() };
        let mut letters = written.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\r' => screen.column = 0,
                '\n' => screen.down(),
                '\u{1b}' => {
                    let mut sequence = String::new();
                    while !sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
                        sequence.extend(letters.next());
                    }
                    screen.obey(sequence.trim_start_matches('['));
                }
                letter => screen.put(letter),
            }
        }
        screen
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(String::new());
        }
    }

    fn put(&mut self, letter: char) {
        if self.column == self.columns {
            self.broken.push(self.rows[self.row].clone());
            self.column = 0;
            self.down();
        }
        let mut cells: Vec<char> = self.rows[self.row].chars().collect();
        cells.resize(cells.len().max(self.column + 1), ' ');
        cells[self.column] = letter;
        self.rows[self.row] = cells.into_iter().collect();
        self.column += 1;
    }

    /// Cursor up, and what erases a line (ECMA-48); colours change nothing.
    fn obey(&mut self, sequence: &str) {
        let (number, what) = sequence.split_at(sequence.len() - 1);
        match what {
            "A" => self.row = self.row.saturating_sub(number.parse().unwrap_or(1)),
            "K" if number == "2" => self.rows[self.row].clear(),
            "K" => self.rows[self.row] = self.rows[self.row].chars().take(self.column).collect(),
            _ => {}
        }
    }
}

/// What is left on a terminal of so many columns.
fn screen_after(home: &Home, line: &str, columns: usize) -> Screen {
    let line = format!("stty cols {columns} rows 30; {PROGRAM} {line}");
    let mut command = home.command("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.env("TERM", "xterm").env_remove("COLUMNS");
    let said = Said::of(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert!(
        said.out.contains(" s left") || said.out.contains("run 1 of "),
        "no progress: {}",
        said.out
    );
    Screen::of(&said.out, columns)
}

#[test]
fn progress_is_cut_and_nothing_of_it_is_left() {
    if lacks([Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    let ring = "ring --members 2,4 --link pipe,socket-dgram --rounds 3 --laps 200 --budget 600s";
    let run = "run -n 3 -- sh -c 'sleep 0.3; true with some words that make it long'";
    for (line, columns) in [(ring, 60), (ring, 100), (run, 60)] {
        let screen = screen_after(&home, line, columns);
        assert_eq!(screen.broken, [""; 0], "{line}: lines that the terminal broke");
        let left = screen
            .rows
            .iter()
            .find(|row| row.contains(" s left") || row.contains('█') || row.contains(" of 3, "));
        assert_eq!(left, None, "{line}: progress is left");
        let first = &screen.rows[0];
        assert!(first.starts_with(char::is_alphabetic), "{line}: {first:?} stands first");
    }
}

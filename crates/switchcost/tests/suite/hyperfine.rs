//! `run` as hyperfine: each of its options does what it does there, and its files are as its own.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pipe::pipe;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::{Need, lacks};

use crate::common::{Home, PROGRAM, Said, wait_for};

/// Long options of hyperfine 1.20, and two that it hides.
const LONG: &[&str] = &[
    "--warmup",
    "--min-runs",
    "--max-runs",
    "--runs",
    "--setup",
    "--reference",
    "--reference-name",
    "--prepare",
    "--conclude",
    "--cleanup",
    "--parameter-scan",
    "--parameter-step-size",
    "--parameter-list",
    "--shell",
    "--ignore-failure",
    "--style",
    "--sort",
    "--time-unit",
    "--export-asciidoc",
    "--export-csv",
    "--export-json",
    "--export-markdown",
    "--export-orgmode",
    "--show-output",
    "--output",
    "--input",
    "--command-name",
    "--min-benchmarking-time",
    "--help",
];

/// Short options of hyperfine 1.20.
const SHORT: &[&str] = &[
    "-w", "-m", "-M", "-r", "-s", "-p", "-C", "-c", "-P", "-D", "-L", "-S", "-N", "-i", "-u", "-n",
    "-h", "-V",
];

/// What is typed behind `run`, and what comes of it.
struct TypedCase {
    args: &'static [&'static str],
    code: i32,
    /// Lines that the commands add to the file `log`, in any order, each with its count.
    log: &'static [(&'static str, usize)],
    /// A part of what is said.
    said: &'static str,
}

const fn case(
    args: &'static [&'static str],
    code: i32,
    log: &'static [(&'static str, usize)],
    said: &'static str,
) -> TypedCase {
    TypedCase { args, code, log, said }
}

/// Commands that leave a line in the log.
const RUN: &str = "echo run >>log";
const OTHER: &str = "echo other >>log";

/// Says what its standard output is.
const TARGET: &str = "readlink /proc/$$/fd/1 | cut -c 1-9 >>log; echo out; echo err >&2";

const CASES: &[TypedCase] = &[
    case(&["--warmup", "2", "--runs", "3", RUN], 0, &[("run", 5)], "3 runs"),
    case(&["-w", "1", "-r", "2", RUN], 0, &[("run", 3)], "2 runs"),
    case(&["--min-runs", "4", "--max-runs", "4", RUN], 0, &[("run", 4)], "4 runs"),
    case(&["-m", "2", "-M", "2", RUN], 0, &[("run", 2)], "2 runs"),
    case(&["--max-runs", "3", RUN], 0, &[("run", 3)], "3 runs"),
    case(&["--min-benchmarking-time", "60", "-M", "6", RUN], 0, &[("run", 6)], "6 runs"),
    case(&["--min-benchmarking-time", "0", "-m", "2", RUN], 0, &[("run", 2)], "2 runs"),
    case(&["--min-benchmarking-time", "0.001", "-r", "2", RUN], 0, &[("run", 2)], "2 runs"),
    case(&["-m", "3", "-M", "2", RUN], 2, &[], "more than --max-runs 2"),
    case(&["-r", "3", "-m", "2", RUN], 2, &[], "cannot be used with"),
    case(&["--setup", OTHER, "-r", "2", RUN], 0, &[("other", 1), ("run", 2)], ""),
    case(&["-s", OTHER, "-r", "2", RUN], 0, &[("other", 1), ("run", 2)], ""),
    case(&["--prepare", OTHER, "-w", "1", "-r", "2", RUN], 0, &[("other", 3), ("run", 3)], ""),
    case(&["-p", OTHER, "-p", ":", "-r", "2", RUN, ":"], 0, &[("other", 2), ("run", 2)], ""),
    case(&["-s", "", "-p", "", "-C", " ", "-c", "", "-r", "2", RUN], 0, &[("run", 2)], ""),
    case(&["-p", "", "-p", OTHER, "-r", "2", RUN, ":"], 0, &[("run", 2), ("other", 2)], ""),
    case(
        &["-L", "pre", ",echo other >>log", "-p", "{pre}", "-r", "2", RUN],
        0,
        &[("other", 2), ("run", 4)],
        "",
    ),
    case(&["", "-r", "2"], 2, &[], "no command"),
    case(&["-N", "-p", "", "-r", "2", "true"], 2, &[], "--prepare: no command"),
    case(&["-p", "no-such-program -e . || true", "-r", "2", RUN], 0, &[("run", 2)], ""),
    case(&["-r", "2", "no-such-program x || echo run >>log"], 0, &[("run", 2)], ""),
    case(&["-i", "-r", "2", "no-such-program"], 0, &[], "exit code 127"),
    case(&["-i=127", "-r", "2", "no-such-program"], 0, &[], "exit code 127"),
    case(&["-i=1", "-r", "2", "no-such-program"], 127, &[], "command not found in PATH"),
    case(&["-p", "no-such-program", "-r", "2", RUN], 127, &[], "of --setup, --prepare"),
    case(&["-s", ":", "-p", "no-such-program", RUN], 1, &[], "'no-such-program' ended with exit"),
    case(
        &["-w", "2", "-r", "2", "echo run >>log; test \"$HYPERFINE_ITERATION\" != warmup-1"],
        1,
        &[("run", 4)],
        "warm-up run 2 ended with exit code 1",
    ),
    case(&["-i", "-w", "1", "-r", "2", "exit 3"], 0, &[], "exit code 3"),
    case(&["-p", ":", "-p", ":", RUN], 2, &[], "--prepare: given 2 times for 1 command"),
    case(&["--conclude", OTHER, "-w", "1", "-r", "2", RUN], 0, &[("run", 3), ("other", 3)], ""),
    case(&["-C", ":", "-C", OTHER, "-r", "2", RUN, ":"], 0, &[("run", 2), ("other", 2)], ""),
    case(&["-C", ":", "-C", ":", RUN], 2, &[], "--conclude: given 2 times for 1 command"),
    case(&["-C", "exit 4", "-r", "2", RUN], 1, &[("run", 1)], "--conclude 'exit 4' ended with"),
    case(&["--cleanup", OTHER, "-r", "2", RUN], 0, &[("run", 2), ("other", 1)], ""),
    case(&["-c", OTHER, "-r", "2", RUN], 0, &[("run", 2), ("other", 1)], ""),
    case(
        &["--reference", OTHER, "--reference-name", "base", "-r", "5", RUN],
        0,
        &[("other", 5), ("run", 5)],
        "base",
    ),
    case(
        &["--reference", OTHER, "-r", "1", "-L", "n", "1,2", "echo {n} >>log"],
        0,
        &[("other", 1), ("1", 1), ("2", 1)],
        "echo other",
    ),
    case(&["--reference-name", "base", RUN], 2, &[], "--reference"),
    case(
        &["--parameter-scan", "n", "1", "3", "-r", "2", "echo {n} >>log"],
        0,
        &[("1", 2), ("2", 2), ("3", 2)],
        "n=3",
    ),
    case(
        &["-P", "d", "0.3", "0.7", "--parameter-step-size", "0.2", "-r", "1", "echo {d} >>log"],
        0,
        &[("0.3", 1), ("0.5", 1), ("0.7", 1)],
        "d=0.5",
    ),
    case(
        &["-P", "n", "-1", "1", "-D", "2", "-r", "1", "echo {n} >>log"],
        0,
        &[("-1", 1), ("1", 1)],
        "n=-1",
    ),
    case(&["-P", "n", "0.5", "1", "echo {n}"], 2, &[], "--parameter-step-size"),
    case(&["-P", "n", "3", "1", "echo {n}"], 2, &[], "MIN is above MAX"),
    case(&["-D", "1", "echo {n}"], 2, &[], "--parameter-scan"),
    case(&["-P", "n", "1", "2", "-L", "m", "1", "echo {n}{m}"], 2, &[], "cannot be used with"),
    case(
        &["--parameter-list", "x", "a,b", "-r", "2", "echo {x} >>log"],
        0,
        &[("a", 2), ("b", 2)],
        "x=b",
    ),
    case(
        &["-L", "x", "a,b", "-L", "y", "1,2", "-r", "1", "echo {x}{y} >>log"],
        0,
        &[("a1", 1), ("a2", 1), ("b1", 1), ("b2", 1)],
        "",
    ),
    case(
        &["-L", "x", r"a\,b,", "-r", "1", "echo '[{x}]' >>log"],
        0,
        &[("[a,b]", 1), ("[]", 1)],
        "",
    ),
    case(
        &["-L", "rev", "old,new", "-p", "echo at {rev} >>log", "-r", "1", RUN],
        0,
        &[("at old", 1), ("at new", 1), ("run", 2)],
        "rev=new",
    ),
    case(&["-L", "n", "1,2", RUN], 2, &[], "--parameter n: there is no {n} in the command"),
    case(&["-P", "n", "1", "2", RUN], 2, &[], "--parameter-scan n: there is no {n}"),
    case(&["-L", "n", "", "-r", "1", "echo '[{n}]' >>log"], 0, &[("[]", 1)], ""),
    case(&["-L", "", "1,2", "-r", "1", "echo {} >>log"], 0, &[("1", 1), ("2", 1)], ""),
    case(&["-L", "cmd", ",echo run >>log", "-r", "2", "{cmd}"], 0, &[("run", 2)], ""),
    case(&["--shell", "sh -e", "-r", "2", "-i", "false; echo run >>log"], 0, &[("run", 0)], ""),
    case(&["-S", "default", "-r", "2", RUN], 0, &[("run", 2)], ""),
    case(&["-S", "false", "-S", "sh", "-r", "2", RUN], 0, &[("run", 2)], ""),
    case(&["--shell=none", "-r", "2", "sh -c 'echo run >>log'"], 0, &[("run", 2)], ""),
    case(&["-N", "-r", "2", "sh -c 'echo run >>log'"], 0, &[("run", 2)], ""),
    case(
        &["-N", "-r", "1", "-L", "cmd", "sh -c 'echo a >>log',sh -c 'echo b >>log'", "{cmd}"],
        0,
        &[("a", 1), ("b", 1)],
        "",
    ),
    case(
        &["-N", "-r", "1", "-L", "f", ",-O2,a b", "sh -c 'echo $# >>log' name {f}"],
        0,
        &[("0", 1), ("1", 1), ("2", 1)],
        "",
    ),
    case(&["-N", "-S", "sh", RUN], 2, &[], "cannot be used with"),
    case(&["--ignore-failure", "-r", "2", "exit 3"], 0, &[], "exit code 3"),
    case(&["-i", "-r", "2", "exit 3"], 0, &[], "exit code 3"),
    case(&["-i=3", "-r", "2", "exit 3"], 0, &[], "exit code 3"),
    case(&["--ignore-failure=1,3", "-r", "2", "exit 3"], 0, &[], "exit code 3"),
    case(&["--ignore-failure=all-non-zero", "-r", "2", "exit 3"], 0, &[], "exit code 3"),
    case(&["-i=1,4", "-r", "2", "exit 3"], 3, &[], "exit code 3"),
    case(&["-i=137", "-r", "2", "kill -9 $$"], 0, &[], "signal 9"),
    case(&["-i=some", RUN], 2, &[], "exit codes"),
    case(&["-r", "2", "exit 3"], 3, &[], "exit code 3"),
    case(&["--style", "basic", "-r", "5", RUN], 0, &[("run", 5)], "5 runs"),
    case(&["--style", "unknown", RUN], 2, &[], "nocolor"),
    case(&["--style", "none", "--show-output", RUN], 2, &[], "cannot be used with"),
    case(&["--sort", "auto", "-r", "2", RUN, ":"], 0, &[("run", 2)], "to first"),
    case(&["--time-unit", "microsecond", "-r", "2", ":", "true"], 0, &[], "real us"),
    case(&["-u", "second", "-r", "2", ":", "true"], 0, &[], "real s "),
    case(&["-u", "millisecond", "-r", "5", ":"], 0, &[], " ms ("),
    case(&["--show-output", "-r", "2", "echo shown"], 0, &[], "shown\nshown\n"),
    case(&["--output", "null", "-r", "2", TARGET], 0, &[("/dev/null", 2)], ""),
    case(&["-r", "1", TARGET], 0, &[("/dev/null", 1)], ""),
    case(&["-M", "1", TARGET], 0, &[("/dev/null", 1)], ""),
    case(&["--output", "pipe", "-r", "2", TARGET], 0, &[], ""),
    case(&["--output=inherit", "-r", "2", TARGET], 0, &[], "out\nout\n"),
    case(&["--output", "file", RUN], 2, &[], "./log"),
    case(&["--output=null", "--output=pipe", RUN], 2, &[], "--output: given 2 times for 1"),
    case(&["--output", "null", "--show-output", RUN], 2, &[], "cannot be used with"),
    case(&["--input", "input", "-r", "2", "cat >>log"], 0, &[("line", 2)], ""),
    case(&["--input", "null", "-r", "2", "cat; echo run >>log"], 0, &[("run", 2)], ""),
    case(&["--output", "./no/such/f", "-s", OTHER, RUN], 2, &[], "mkdir -p ./no/such)"),
    case(&["--output", "./folder", RUN], 2, &[], "it is a folder"),
    case(&["--output", "./fifo", RUN], 2, &[], "--output ./fifo: it is a FIFO"),
    case(&["--input", "fifo", RUN], 2, &[], "--input fifo: it is a FIFO"),
    case(&["--output=inherit", "--export-json=-", RUN], 2, &[], "with --output inherit"),
    case(&["--show-output", "--export-json=-", RUN], 2, &[], "with --show-output"),
    case(&["--input", "absent", RUN], 2, &[], "there is no such file"),
    case(&["--command-name", "this", "-r", "5", RUN], 0, &[("run", 5)], "this: "),
    case(&["-n", "this", RUN], 2, &[], "--command-name"),
    case(
        &["--command-name", "x-{n}", "-L", "n", "1,2", "-r", "2", "echo {n} >>log"],
        0,
        &[("1", 2), ("2", 2)],
        "x-2",
    ),
    case(
        &["--command-name", "a", "--command-name", "b", "-P", "n", "1", "3", "echo {n}"],
        2,
        &[],
        "--command-name: given 2 times for 3 commands",
    ),
];

/// Runs `switchcost run` in the home's folder.
fn run(home: &Home, args: &[&str]) -> Said {
    let mut command = home.command(PROGRAM);
    command.args(["run", "--no-estimate"]).args(args).current_dir(home.path());
    Said::of(&mut command)
}

/// Returns the lines of the log, and removes it.
fn take_log(home: &Home) -> Vec<String> {
    let path = home.path().join("log");
    let Ok(text) = fs::read_to_string(&path) else { return Vec::new() };
    fs::remove_file(path).expect("the log");
    text.lines().map(str::to_string).collect()
}

#[test]
fn each_of_its_options_does_what_it_does_there() {
    let home = Home::new();
    fs::write(home.path().join("input"), "line\n").expect("a file");
    fs::create_dir(home.path().join("folder")).expect("a folder");
    let fifo = home.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    for TypedCase { args, code, log, said } in CASES {
        let result = run(&home, args);
        assert_eq!(result.code, Some(*code), "{args:?}: {result:?}");
        let lines = take_log(&home);
        for (line, count) in *log {
            let found = lines.iter().filter(|logged| logged == line).count();
            assert_eq!(found, *count, "{args:?}: {line} in {lines:?}");
        }
        if *code == 2 {
            assert_eq!(lines, [""; 0], "{args:?}");
        }
        let text = result.out.clone() + &result.err;
        assert!(text.contains(said), "{args:?}: no {said:?} in {text}");
    }
    home.wait_until_alone();
}

#[test]
fn each_of_its_options_has_a_case() {
    let mut typed = BTreeSet::from(["--help", "-h", "-V", "--export-json", "--export-csv"]);
    typed.extend(["--export-markdown", "--export-asciidoc", "--export-orgmode"]);
    for case in CASES {
        for word in case.args {
            typed.insert(word.split_once('=').map_or(*word, |(option, _)| option));
            typed.insert(*word);
        }
    }
    for option in LONG.iter().chain(SHORT) {
        assert!(typed.contains(option), "{option} has no case");
    }
    let home = Home::new();
    for (option, said) in [("--help", "--warmup"), ("-h", "--warmup"), ("-V", "switchcost-run ")] {
        let result = run(&home, &[option]);
        assert_eq!(result.code, Some(0), "{option}: {result:?}");
        assert!(result.out.contains(said), "{option}: {}", result.out);
    }
}

#[test]
fn hooks_surround_each_run() {
    let home = Home::new();
    let note = |word: &str| format!("echo {word} >>log");
    let hooks = ["-s", &note("setup"), "-p", &note("prepare"), "-C", &note("conclude")];
    let said = run(
        &home,
        &[&hooks[..], &["-c", &note("cleanup"), "-w", "1", "-r", "2", &note("run")]].concat(),
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = take_log(&home);
    let round = ["prepare", "run", "conclude"];
    assert_eq!(lines, [&["setup"][..], &round, &round, &round, &["cleanup"]].concat());
}

#[test]
fn a_run_is_told_its_number() {
    let home = Home::new();
    let note = |word: &str| format!("echo {word}-${{HYPERFINE_ITERATION:-none}} >>log");
    let around = ["-s", &note("setup"), "-p", &note("prepare"), "-c", &note("cleanup")];
    let said = run(&home, &[&around[..], &["-w", "2", "-r", "2", &note("run")]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let mut expected = vec!["setup-none".to_string()];
    for number in ["warmup-0", "warmup-1", "0", "1"] {
        expected.extend([format!("prepare-{number}"), format!("run-{number}")]);
    }
    expected.push("cleanup-none".to_string());
    assert_eq!(take_log(&home), expected);
    // A command after -- has the environment of the caller.
    let line = format!("{}; env | grep -c HYPERFINE >>log || :", note("run"));
    let said = run(&home, &["-n", "2", "--", "sh", "-c", &line]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(take_log(&home), ["run-none", "0", "run-none", "0"]);
}

#[test]
fn the_environment_has_a_random_size_that_the_seed_fixes() {
    let home = Home::new();
    let line = "printf %s \"$HYPERFINE_RANDOMIZED_ENVIRONMENT_OFFSET\" | wc -c >>log";
    let sizes = |seed: &str| -> Vec<u32> {
        let said = run(&home, &["-r", "12", "--seed", seed, line]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        take_log(&home).iter().map(|size| size.trim().parse().expect("a size")).collect()
    };
    let first = sizes("1");
    assert_eq!((first.len(), first == sizes("1"), first == sizes("2")), (12, true, false));
    let distinct: BTreeSet<&u32> = first.iter().collect();
    assert!(distinct.len() > 6 && first.iter().all(|size| *size < 4096), "{first:?}");
}

#[test]
fn output_goes_where_it_was_sent() {
    let home = Home::new();
    let said = run(&home, &["--output", "pipe", "-r", "2", TARGET]);
    assert_eq!((said.code, &*said.out), (Some(0), ""), "{}", said.err);
    let lines = take_log(&home);
    assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("pipe:[")), "{lines:?}");
    // More than a pipe holds: it is read while the command runs, and after it has closed it.
    let long = "head -c 3000000 /dev/zero && exec >&- && echo run >>log; sleep 0.01";
    let said = run(&home, &["--output", "pipe", "-r", "2", long]);
    assert_eq!((said.code, take_log(&home).len()), (Some(0), 2), "{}", said.err);
    // Each run begins the file anew, and what runs around does not write to it.
    let outputs = ["--output=./one", "--output=inherit", "--output=null"];
    let lines = ["echo one; echo no >&2", "echo two", "echo three"];
    let said = run(&home, &[&outputs[..], &["-r", "3", "-C", "echo hook"], &lines].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.out, "two\ntwo\ntwo\n");
    assert_eq!(fs::read_to_string(home.path().join("one")).expect("a file"), "one\n");
    // Whoever has the pipe may write to it: it is read to the end.
    let late = "(sleep 0.2; echo late >>log) & echo run >>log";
    let said = run(&home, &["--output", "pipe", "-r", "1", "-C", "echo hook >>log", late]);
    assert_eq!((said.code, take_log(&home).join(" ")), (Some(0), "run late hook".to_string()));
    let said = run(&home, &["--output", "inherit", "--export-json", "-", "-r", "2", ":"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
    home.wait_until_alone();
}

#[test]
fn command_lines_read_nothing_but_their_input() {
    let home = Home::new();
    let input = home.path().join("lines");
    fs::write(&input, "line\n").expect("a file");
    let read = |args: &[&str]| {
        let mut command = home.command(PROGRAM);
        command.args(["run", "--no-estimate"]).args(args).args(["cat >>log; echo end >>log"]);
        let file = fs::File::open(&input).expect("a file");
        let said = Said::of(command.current_dir(home.path()).stdin(Stdio::from(file)));
        assert_eq!(said.code, Some(0), "{}", said.err);
        take_log(&home).join(" ")
    };
    assert_eq!(read(&["-r", "2"]), "end end");
    assert_eq!(read(&["-r", "1"]), "end");
    assert_eq!(read(&["-r", "1", "--input", "/dev/stdin"]), "line end");
    assert_eq!(read(&["-r", "2", "--input", "/dev/stdin"]), "line end line end");
    // A pipe can be read once; a command behind -- reads what there is.
    for (args, code, log) in [
        (&["-r", "1", "--input", "/dev/stdin", "cat >>log"][..], 0, "piped"),
        (&["-r", "2", "--input", "/dev/stdin", "cat >>log"], 2, ""),
        (&["-r", "1", "--input", "/dev/stdin", "cat >>log", ":"], 2, ""),
        (&["--", "sh", "-c", "cat >>log"], 0, "piped"),
    ] {
        let mut command = home.command(PROGRAM);
        command.args(["run", "--no-estimate"]).args(args).current_dir(home.path());
        let (reader, writer) = pipe().expect("a pipe");
        let mut writer = File::from(writer);
        writer.write_all(b"piped\n").expect("it is written");
        drop(writer);
        let said = Said::of(command.stdin(reader));
        assert_eq!((said.code, &*take_log(&home).join(" ")), (Some(code), log), "{args:?}");
        let is_refused = said.err.contains("the first run would read all of a pipe");
        assert_eq!(is_refused, code == 2, "{}", said.err);
    }
}

#[test]
fn files_of_an_earlier_series_do_not_outlive_a_failure() {
    let home = Home::new();
    let (json, csv) = (home.path().join("r.json"), home.path().join("r.csv"));
    let exports = ["--export-json=r.json", "--export-csv=r.csv"];
    let texts = || [&json, &csv].map(|path| fs::read_to_string(path).expect("a file"));
    for path in [&json, &csv] {
        fs::write(path, "old").expect("a file");
    }
    // Nothing was run: they are as they were.
    let said = run(&home, &[&exports[..], &["-L", "n", "1", ":"]].concat());
    assert_eq!((said.code, texts()), (Some(2), ["old", "old"].map(str::to_string)));
    let said = run(&home, &[&exports[..], &["-p", "false", "-r", "1", ":"]].concat());
    assert_eq!((said.code, texts()), (Some(1), ["", ""].map(str::to_string)), "{}", said.err);
}

/// Starts a series in the home's folder, waits until it has written to its log, and interrupts it.
fn interrupt(home: &Home, args: &[&str]) -> Said {
    let mut command = home.command(PROGRAM);
    command.args(["run", "--no-estimate"]).args(args).current_dir(home.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let log = home.path().join("log");
    wait_for("a line in the log", || fs::read(&log).ok().filter(|text| !text.is_empty()));
    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal");
    let said = Said::at_end(child);
    take_log(home);
    said
}

#[test]
fn a_run_that_was_stopped_is_no_result() {
    let home = Home::new();
    let said = interrupt(&home, &["--export-csv=r.csv", "-r", "1", "echo >>log; exec sleep 60"]);
    assert_eq!(said.code, Some(130), "{}", said.err);
    let csv = fs::read_to_string(home.path().join("r.csv")).expect("a file");
    assert_eq!(csv, "command,mean,stddev,median,user,system,min,max\n");
    home.wait_until_alone();
}

#[test]
fn a_signal_in_the_last_hook_is_told() {
    let home = Home::new();
    let hook = "echo >>log; exec sleep 60";
    for (args, flags) in [
        (&["-C", hook][..], "--conclude"),
        (&["-c", hook], "--cleanup"),
        (&["-C", ":", "-c", hook], "--conclude or --cleanup"),
    ] {
        let said = interrupt(&home, &[args, &["-r", "1", ":"]].concat());
        let told = format!("error: signal 2: {flags} was not run to its end");
        assert!(said.code == Some(130) && said.err.contains(&told), "{args:?}: {said:?}");
    }
    home.wait_until_alone();
}

#[test]
fn a_signal_ends_the_wait_for_a_pipe() {
    let home = Home::new();
    // The child that holds the pipe hears no interrupt.
    let line = "sleep 30 & echo >>log";
    let said = interrupt(&home, &["--output", "pipe", "-r", "2", line]);
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert_eq!(home.processes().len(), 1, "the child was not waited for");
}

#[test]
fn styles_choose_colours_and_silence() {
    let home = Home::new();
    for (style, is_coloured, is_silent) in [
        ("auto", false, false),
        ("basic", false, false),
        ("nocolor", false, false),
        ("full", true, false),
        ("color", true, false),
        ("none", false, true),
    ] {
        // The figures of one run are always printed, and marked.
        let said = run(&home, &["--style", style, "-r", "1", ":"]);
        let found = (said.err.contains("\u{1b}["), said.err.is_empty());
        assert_eq!(
            (said.code, found),
            (Some(0), (is_coloured, is_silent)),
            "{style}: {}",
            said.err
        );
    }
}

/// The results of hyperfine's JSON file.
fn read_results(path: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a file");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let keys: Vec<&String> = file.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["results"]);
    file["results"].as_array().expect("results").clone()
}

fn floats(value: &Value) -> Vec<f64> {
    let values = value.as_array().expect("a list").iter();
    values.map(|value| value.as_f64().expect("a number")).collect()
}

fn assert_near(value: &Value, expected: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{value}, not {expected}");
}

#[test]
fn results_are_as_documented_and_agree_with_their_times() {
    let home = Home::new();
    let path = home.path().join("results.json");
    let to = path.to_str().expect("UTF-8");
    let lines = ["exit {n}", "echo {n}; kill -9 $$"];
    let args = ["-i", "-r", "3", "-L", "n", "0,7", "--export-json", to];
    let said = run(&home, &[&args[..], &lines].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let results = read_results(&path);
    // The commands change first, as there.
    let commands: Vec<&Value> = results.iter().map(|result| &result["command"]).collect();
    assert_eq!(commands, ["exit 0", "echo 0; kill -9 $$", "exit 7", "echo 7; kill -9 $$"]);
    for (result, (n, code)) in results.iter().zip([("0", 0), ("0", 137), ("7", 7), ("7", 137)]) {
        let times = floats(&result["times"]);
        let mean = times.iter().sum::<f64>() / 3.0;
        let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
        let mut sorted = times.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        assert_near(&result["mean"], mean);
        assert_near(&result["stddev"], (squares / 2.0).sqrt());
        assert_near(&result["median"], sorted[1]);
        assert_near(&result["min"], sorted[0]);
        assert_near(&result["max"], sorted[2]);
        assert!(floats(&result["memory_usage_byte"]).iter().all(|bytes| *bytes > 4096.0));
        assert_eq!(result["exit_codes"], serde_json::json!([code, code, code]));
        assert_eq!(result["parameters"], serde_json::json!({ "n": n }));
        for name in ["user", "system"] {
            assert!(result[name].as_f64().is_some_and(|time| time >= 0.0), "{result}");
        }
    }
    let text = fs::read_to_string(&path).expect("a file");
    assert!(
        text.starts_with("{\n  \"results\": [\n    {\n      \"command\": ")
            && text.ends_with("}\n")
    );
    let said = run(&home, &["-r", "1", "--export-json", "-", "true"]);
    let single: Value = serde_json::from_str(&said.out).expect("JSON alone");
    let single = &single["results"][0];
    assert_eq!((&single["stddev"], single.get("parameters")), (&Value::Null, None), "{single}");
}

#[test]
fn all_formats_tell_the_same() {
    let home = Home::new();
    let path = |name: &str| home.path().join(name).to_str().expect("UTF-8").to_string();
    let (json, csv, markdown) = (path("r.json"), path("r.csv"), path("r.md"));
    let (asciidoc, orgmode) = (path("r.adoc"), path("r.org"));
    let args = [
        ["--export-json", &json],
        ["--export-csv", &csv],
        ["--export-markdown", &markdown],
        ["--export-asciidoc", &asciidoc],
        ["--export-orgmode", &orgmode],
    ]
    .concat();
    let more = ["-r", "2", "-u", "microsecond", "-p", ": {n}", "-L", "n", "1", "true", "a|b=1; :"];
    let said = run(&home, &[&args[..], &more].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let results = read_results(&PathBuf::from(&json));
    let text = |path: &str| fs::read_to_string(path).expect("a file");
    let rows: Vec<String> = text(&csv).lines().map(str::to_string).collect();
    assert_eq!(rows[0], "command,mean,stddev,median,user,system,min,max,parameter_n");
    for (row, result) in rows[1..].iter().zip(&results) {
        let cells: Vec<&str> = row.split(',').collect();
        let names = ["mean", "stddev", "median", "user", "system", "min", "max"];
        for (cell, name) in cells[1..8].iter().zip(names) {
            assert_near(&result[name], cell.parse().expect("a number"));
        }
        assert_eq!((cells[0], cells[8]), (result["command"].as_str().expect("a text"), "1"));
    }
    let microseconds = |value: &Value| format!("{:.1}", value.as_f64().expect("a number") * 1e6);
    let ends =
        format!("{} | {}", microseconds(&results[0]["min"]), microseconds(&results[0]["max"]));
    let markdown = text(&markdown);
    let heads =
        "| Command | Mean [µs] | Min [µs] | Max [µs] | Relative |\n|:---|---:|---:|---:|---:|\n";
    assert!(markdown.starts_with(heads) && markdown.contains(&ends), "{markdown}");
    assert!(markdown.contains("| `true (n = 1)` |"), "{markdown}");
    assert!(markdown.contains("| `a\\|b=1; : (n = 1)` |"), "{markdown}");
    assert!(text(&asciidoc).starts_with("[cols=\"<,>,>,>,>\"]\n|===\n| Command \n"));
    assert!(text(&orgmode).contains("| =true (n = 1)=  |  "), "{}", text(&orgmode));
    // Two of them cannot have one place.
    let said = run(&home, &["--export-json", "-", "--export-csv", "-", "true"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""));
    assert!(said.err.contains("only one of them"), "{}", said.err);
    let ours = run(&home, &["--json", &json, "--export-json", &json, "true"]);
    assert_eq!(ours.code, Some(2), "{}", ours.err);
}

#[test]
fn rows_are_in_the_order_that_was_asked_for() {
    let home = Home::new();
    let path = home.path().join("r.json");
    let lines = ["sleep 0.05", "true", "sleep 0.02"];
    for sort in ["auto", "command", "mean-time"] {
        let to = path.to_str().expect("UTF-8");
        let args = ["--sort", sort, "-r", "2", "--export-json", to, "--export-markdown", "-"];
        let said = run(&home, &[&args[..], &lines].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let mut results = read_results(&path);
        if sort == "mean-time" {
            let mean = |result: &Value| result["mean"].as_f64().expect("a number");
            results.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
        }
        let expected: Vec<&str> =
            results.iter().map(|result| result["command"].as_str().expect("a text")).collect();
        let exported: Vec<&str> =
            said.out.lines().skip(2).map(|row| row.split('`').nth(1).expect("a name")).collect();
        assert_eq!(exported, expected, "{sort}");
        let mut rows = Vec::new();
        for row in said.err.lines().skip_while(|line| !line.contains("to first")).skip(1) {
            rows.extend(lines.iter().find(|line| row.trim_start().starts_with(**line)).copied());
        }
        assert_eq!(rows, expected, "{sort}: {}", said.err);
    }
}

#[test]
fn each_value_is_in_the_column_of_its_parameter() {
    let home = Home::new();
    let rows = |args: &[&str]| {
        let said = run(&home, &[&["-r", "1", "--export-csv", "-"], args].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let mut rows = Vec::new();
        for row in csv::Reader::from_reader(said.out.as_bytes()).into_records() {
            let row = row.expect("CSV");
            let cells: Vec<&str> = row.iter().collect();
            rows.push([&cells[..1], &cells[8..]].concat().join("|"));
        }
        rows
    };
    assert_eq!(
        rows(&["-L", "x", "1,2", "-L", "y", "3", ": a {x}", ": b {y}"]),
        [": a 1|1|", ": b 3||3", ": a 2|2|"]
    );
    let reference = ["--reference", ": r", "-L", "n", "1,2", ": {n}"];
    assert_eq!(rows(&reference), [": r|", ": 1|1", ": 2|2"]);
    // Cells are as they are, and a number is no secret.
    assert_eq!(
        rows(&["-L", "f", "-O2,=1\t\n@2", ": '{f}'"]),
        [": '-O2'|-O2", ": '=1\t\n@2'|=1\t\n@2"]
    );
    assert_eq!(rows(&["-P", "tokens", "1", "2", ": {tokens}"]), [": 1|1", ": 2|2"]);
    assert_eq!(rows(&["-L", "a=b", "x=1", ": {a=b}"]), [": x=1|x=1"]);
    assert_eq!(rows(&["-L", "token", "hunter2", ": {token}"]), [": hunter2|***"]);
}

/// Recipes that people have for hyperfine's files, and what they give of ours.
#[test]
fn recipes_of_jq_work_on_our_files() {
    if lacks([Need::Program("jq")]) {
        return;
    }
    let home = Home::new();
    let path = home.path().join("r.json");
    let to = path.to_str().expect("UTF-8");
    let said = run(&home, &["-r", "3", "-L", "n", "1,2", "--export-json", to, "test {n}"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let results = read_results(&path);
    let means: Vec<f64> =
        results.iter().map(|result| result["mean"].as_f64().expect("a number")).collect();
    let jq = |recipe: &str| {
        let said = Said::of(home.command("jq").args(["-r", recipe, to]));
        assert_eq!(said.code, Some(0), "{recipe}: {}", said.err);
        said.out
    };
    let printed: Vec<f64> =
        jq(".results[].mean").lines().map(|mean| mean.parse().expect("a number")).collect();
    assert_eq!(printed.len(), means.len());
    for (printed, mean) in printed.iter().zip(&means) {
        assert!((printed - mean).abs() < 1e-12 * mean.max(1.0), "{printed}, not {mean}");
    }
    for (recipe, printed) in [
        (".results[].command", "test 1\ntest 2\n"),
        (".results[] | .times | length", "3\n3\n"),
        (".results[].parameters.n", "1\n2\n"),
        (".results | map(.exit_codes[]) | add", "0\n"),
        (".results | length", "2\n"),
        (
            ".results[] | [.command, (.mean > 0), (.stddev >= 0)] | @csv",
            "\"test 1\",true,true\n\"test 2\",true,true\n",
        ),
    ] {
        assert_eq!(jq(recipe), printed, "{recipe}");
    }
}

//! What somebody types first who knows hyperfine, perf or fio, and what happens: it does what was
//! meant, or says in a line what does.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use testing::{Need, lacks, wait_for};

use crate::common::{Home, PROGRAM, Said};

/// What is typed, the exit code, and what is said (on either output).
const HYPERFINE: [(&[&str], i32, &str); 20] = [
    (&["run", "true", "test 1"], 0, "between true and test 1|faster than"),
    (&["run", "sleep 0", "sleep 0.02", "sleep 0.04"], 0, "faster than|the fastest"),
    (&["run", "--warmup", "2", "--runs", "5", "true"], 0, "true: .*, 5 runs"),
    (&["run", "-w", "1", "-r", "5", "true"], 0, ", 5 runs"),
    (&["run", "-m", "2", "-M", "6", "true"], 0, ", 6 runs"),
    (&["run", "--budget", "0.05", "-m", "5", "-M", "5", "true"], 0, ", 5 runs"),
    (&["run", "-N", "-r", "5", "test -e /"], 0, "test -e /: "),
    (&["run", "--shell=none", "-r", "5", "true"], 0, "true: "),
    (&["run", "-S", "sh -e", "-r", "5", "false; true"], 1, "false; true"),
    (&["run", "-i", "-r", "5", "exit 3"], 0, "with exit code 3"),
    (&["run", "-r", "5", "exit 3"], 3, "with exit code 3"),
    (&["run", "-L", "n", "1,2", "-r", "5", "test {n}"], 0, "n=1"),
    (&["run", "--command-name", "this", "-r", "5", "true"], 0, "this: "),
    (&["run", "-n", "this", "true"], 2, "--command-name"),
    (&["run", "-P", "n", "1", "3", "-r", "5", "test {n}"], 0, "n=3"),
    (&["run", "--reference", "true", "-r", "5", "false"], 1, "false: 5 runs"),
    (&["run", "--style", "basic", "-r", "5", "true"], 0, "true: "),
    (&["run", "gzip", "-k", "file"], 2, "switchcost run -- gzip -k file"),
    (&["run", "true", "no-such-argument"], 127, "switchcost run -- true no-such-argument"),
    (&["run", "true", "--", "false"], 2, "one command behind --"),
];

/// The same for those who know perf.
const PERF: [(&[&str], i32, &str); 6] = [
    (&["stat", "--", "true"], 2, "switchcost run -- CMD"),
    (&["record", "-a"], 2, "switchcost trace -- CMD"),
    (&["bench", "sched", "pipe"], 2, "switchcost run -- CMD"),
    (&["trace", "-p", "abc"], 2, "no process is called 'abc' (ps -e lists"),
    (&["cost", "-p", "0"], 2, "a process id is a whole number from 1 on"),
    (&["trace", "-p", "4194304999"], 2, "a process id is a whole number from 1 on"),
];

/// And fio.
const FIO: [(&[&str], i32, &str); 5] = [
    (&["ring", "--runtime=10"], 2, "--budget 10s"),
    (&["ring", "--numjobs=4"], 2, "--members"),
    (&["cost", "--bs=4k"], 2, "--array"),
    (&["ring", "--output-format=json"], 2, "--json FILE"),
    (&["ring", "--members", "2", "--rounds", "1", "--laps", "9", "--budget", "600"], 0, "members"),
];

/// What newcomers type first, from memory of other tools or by guess.
const GUESSES: [(&[&str], i32, &str); 32] = [
    (&["ring", "-n", "2", "-t", "0.1"], 0, "members"),
    (&["ring", "--threads"], 2, "--kind thread"),
    (&["ring", "--pin", "1"], 2, "--placement 1"),
    (&["response", "signals"], 2, "switchcost response --only signals"),
    (&["wakeup"], 2, "switchcost response --only"),
    (&["clock", "--budget", "5"], 2, "switchcost clock overhead --budget 5"),
    (&["version"], 2, "switchcost --version"),
    (&["runs", "show", "last", "--json"], 2, "switchcost runs export"),
    (&["ring", "--processes", "2", "-t", "0.1"], 0, "members"),
    (&["ring", "-N", "2", "--time", "0.1"], 0, "members"),
    (&["ring", "4"], 2, "switchcost ring --members 4"),
    (&["ring", "-N", "2", "-t", "0.1", "--cpu", "0"], 0, "members"),
    (&["ring", "-N", "2", "-t", "0.1", "--cpus", "0"], 0, "members"),
    (&["ring", "--link", "help"], 0, "socket-stream"),
    (&["ring", "--link", "carrier-pigeon"], 2, "--link help"),
    (&["trace", "ls"], 2, "switchcost trace -- ls"),
    (&["cost", "ls", "-l"], 2, "switchcost cost -- ls -l"),
    (&["profile", "--malloc", "ls"], 2, "switchcost profile --malloc -- ls"),
    (&["sensitivity", "ls"], 2, "switchcost sensitivity -- ls"),
    (&["clock", "overhead", "-t", "0.1", "--cpus", "0"], 0, "time-stamp"),
    (&["help"], 0, "Measure this machine"),
    (&["help", "ring"], 0, "--members"),
    (&["help", "ring", "--members"], 0, "Ring sizes"),
    (&["help", "ring", "-N"], 0, "Ring sizes"),
    (&["help", "nothing"], 2, "no such command"),
    (&["help", "ring", "--nothing"], 2, "no such option"),
    (&["list"], 2, "switchcost runs list"),
    (&["ls"], 2, "switchcost runs list"),
    (&["diff", "a", "b"], 2, "switchcost compare BASE NEW"),
    (&["runs", "list", "--history"], 0, "sun-4/280"),
    (&["runs", "show", "history:sun-4/280"], 0, "647 us"),
    (&["runs", "rm", "nothing"], 2, "no stored run is called 'nothing'"),
];

/// What is typed to do something has no estimate: that would be measured first.
fn typed(home: &Home, args: &[&str]) -> Said {
    let runs = args[0] == "run" && !args.contains(&"--");
    let quick: &[&str] = if runs { &["--no-estimate"] } else { &[] };
    home.run(&[args, quick].concat())
}

#[test]
fn what_others_would_type_does_it_or_says_what_does() {
    let home = Home::new();
    for (args, code, told) in HYPERFINE.iter().chain(&PERF).chain(&FIO).chain(&GUESSES) {
        let said = typed(&home, args);
        assert_eq!(said.code, Some(*code), "{args:?}: {said:?}");
        let text = said.out.clone() + &said.err;
        let holds = |part: &str| {
            let mut rest = &*text;
            part.split(".*").all(|part| {
                let found = rest.find(part);
                rest = found.map_or("", |at| &rest[at + part.len()..]);
                found.is_some()
            })
        };
        assert!(told.split('|').any(holds), "{args:?}: no {told:?} in {text}");
        if *code == 2 {
            assert_eq!(said.out, "", "{args:?}");
            assert!(said.err.starts_with("error: "), "{args:?}: {}", said.err);
        }
    }
}

/// What begins with a plain word is looked up before anything is run, as the shell knows it.
#[test]
fn command_lines_are_looked_up_by_the_shell_that_runs_them() {
    let home = Home::new();
    let none = "no-such-command-anywhere -x";
    let code = |shell: &str, line: &str| {
        home.run(&["run", "--no-estimate", "-r", "1", "-S", shell, "true", line]).code
    };
    let known = ["for i in 1; do :; done", "cd / && ls", "X=1 true", "(true)", ": ; $none"];
    for line in known {
        assert_eq!(code("sh", line), Some(0), "{line}");
    }
    let said = home.run(&["run", "--no-estimate", "-n", "1", "echo ran", none]);
    assert_eq!((said.code, &*said.out), (Some(127), ""), "{}", said.err);
    assert!(said.error().contains("'no-such-command-anywhere': command not found"), "{}", said.err);
    // Who is no such shell is not asked: it says so itself.
    assert_eq!(code("env sh", &format!("{none} || true")), Some(0));
}

/// An option of a command that was not put behind -- is not taken for one that runs something.
#[test]
fn an_option_of_the_command_itself_runs_nothing_else() {
    let home = Home::new();
    let none = "no-such-command-anywhere";
    for args in
        [["run", "echo", "-c", none], ["run", "echo", "-p", none], ["run", "echo", "-s", none]]
    {
        let said = home.run(&args);
        assert_eq!((said.code, &*said.out), (Some(127), ""), "{args:?}: {}", said.err);
        assert!(said.err.contains("switchcost run -- COMMAND"), "{}", said.err);
    }
    let said = home.run(&["run", "grep", "-r", "x", "."]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("switchcost run [OPTIONS] -- COMMAND"), "{}", said.err);
}

/// A signal that comes while it cleans up is told, and is no success.
#[test]
fn a_cleanup_that_was_stopped_is_told() {
    let home = Home::new();
    let begun = home.path().join("begun");
    let cleanup = format!("echo >{}; exec sleep 600", begun.display());
    let program = home
        .command(PROGRAM)
        .args(["run", "--no-estimate", "-n", "1", "--cleanup", &cleanup, "true"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    wait_for("the cleanup", || begun.exists().then_some(()));
    let pid = Pid::from_raw(program.id() as i32).expect("a process");
    kill_process(pid, Signal::TERM).expect("it runs");
    let said = Said::at_end(program);
    assert_eq!(said.code, Some(128 + 15), "{}", said.err);
    assert!(said.err.contains("signal 15: --cleanup was not run to its end"), "{}", said.err);
    home.wait_until_alone();
}

#[test]
fn what_runs_around_is_counted() {
    let home = Home::new();
    let file = |name: &str| home.path().join(name).display().to_string();
    let (log, json) = (file("log"), file("run.json"));
    let note = |word: &str| format!("echo {word} >>{log}");
    let args = ["run", "--no-estimate", "-w", "1", "-r", "3", "-s", &note("setup"), "-p"];
    let more = [&note("prepare"), "-c", &note("cleanup"), "--store-command", "--json", &json];
    let both = [&*note("one"), &note("two")];
    let said = home.run(&[&args[..], &more, &both].concat());
    assert_eq!((said.code, &*said.out), (Some(0), ""), "{}", said.err);
    let text = fs::read_to_string(&log).expect("a log");
    let lines: Vec<&str> = text.lines().collect();
    let count = |word: &str| lines.iter().filter(|line| **line == word).count();
    // Before each of the four runs of both commands; setup and cleanup once.
    let counts = ["setup", "prepare", "one", "two", "cleanup"].map(count);
    assert_eq!(counts, [1, 8, 4, 4, 1], "{text}");
    assert_eq!((lines[0], lines[17]), ("setup", "cleanup"));
    assert!(lines[1..17].chunks(2).all(|pair| pair[0] == "prepare"), "{text}");
    let record = crate::common::commands::read(json.as_ref());
    assert_eq!(record["plan"]["names"][0], both[0]);
    assert_eq!(record["plan"]["shell"], "sh");
    assert_eq!(record["plan"]["around"]["setup"], note("setup"));
    assert_eq!(record["runs"].as_array().map(Vec::len), Some(6), "what runs around is no run");
}

#[test]
fn what_fails_around_ends_the_run_and_is_told() {
    let home = Home::new();
    for (flag, kept) in [("--setup", 0), ("--prepare", 0), ("--cleanup", 6)] {
        let json = home.path().join(format!("run{flag}.json"));
        let to = json.to_str().expect("UTF-8");
        let args = ["run", "--no-estimate", "-r", "3", flag, "exit 4", "--json", to, "true", ":"];
        let said = home.run(&args);
        assert_eq!(said.code, Some(1), "{flag}: {}", said.err);
        let told = format!("{flag} 'exit 4' ended with exit code 4");
        assert!(said.error().contains(&told), "{}", said.err);
        let runs = fs::read_to_string(&json).map_or(0, |text| text.matches("\"real_ns\":").count());
        assert!(runs >= kept && (kept > 0) == (runs > 0), "{flag}: {runs}");
    }
    // What is made before need not be there; one for each command.
    let made = home.path().join("made");
    let made = made.to_str().expect("UTF-8");
    let make = format!("printf '#!/bin/sh\\n' >{made}; chmod +x {made}");
    let said = home.run(&["run", "--no-estimate", "-r", "2", "-s", &make, made]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = home.run(&["run", "--no-estimate", "-p", ":", "-p", ":", "true", ":", "false"]);
    assert!(said.code == Some(2) && said.error().contains("given 2 times for 3"), "{}", said.err);
}

#[test]
fn values_are_filled_in_around_too() {
    let home = Home::new();
    let log = home.path().join("log");
    let log = log.to_str().expect("UTF-8");
    let note = |word: &str| format!("echo {word}-{{n}} >>{log}");
    let args = ["run", "--no-estimate", "-r", "1", "-L", "n", "1,2", "-s", &note("setup"), "-p"];
    let said = home.run(&[&args[..], &[&note("prepare"), &note("run")]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let text = fs::read_to_string(log).expect("a log");
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["setup-1", "setup-2"]);
    let pairs: Vec<_> = lines.split_off(2);
    for pair in pairs.chunks(2) {
        assert_eq!(pair[0].strip_prefix("prepare"), pair[1].strip_prefix("run"), "{text}");
    }
    assert_eq!(pairs.len(), 4, "{text}");
}

#[test]
fn stored_runs_go_by_other_names_too() {
    let home = Home::new();
    home.measure(&["--members", "2", "--rounds", "1", "--laps", "9", "--name", "old"]);
    let (list, ls) = (home.run(&["runs", "list"]), home.run(&["runs", "ls"]));
    assert_eq!((list.code, list.out.contains("old")), (Some(0), true));
    // But for the age, which goes on.
    let without_age = |text: &str| text.rsplit_once(" s  ").map(|(_, of)| of.to_string());
    assert_eq!(without_age(&ls.out), without_age(&list.out));
    assert!(without_age(&list.out).is_some_and(|of| of.starts_with("old ")), "{}", list.out);
    let gone = home.run(&["runs", "rm", "old"]);
    assert_eq!((gone.code, home.run_files().len()), (Some(0), 0), "{}", gone.err);
}

#[test]
fn what_differs_in_one_setting_is_compared_across_it() {
    let home = Home::new();
    for (name, kind) in [("one", "process"), ("other", "thread")] {
        let args = ["--members", "2", "--rounds", "1", "--laps", "9", "--kind", kind, "--name"];
        home.measure(&[&args[..], &[name]].concat());
    }
    let said = home.run(&["compare", "one", "other"]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
    let told = "differ in kind (process, thread): --across kind compares them";
    assert!(said.error().contains(told), "{}", said.err);
    assert_eq!(said.err.matches("no case in common").count(), 1, "{}", said.err);
    let across = home.run(&["compare", "one", "other", "--across", "kind"]);
    assert_eq!(across.code, Some(0), "{}", across.err);
}

/// A command that runs on gets SIGTERM when the time is over, which is no failure; one that has
/// ended before keeps its own code.
#[test]
fn a_command_is_watched_for_its_time_at_most() {
    let home = Home::new();
    let over = home.run(&["cost", "--budget", "0.2", "--", "sleep", "600"]);
    assert_eq!(over.code, Some(0), "{}", over.err);
    assert!(over.err.contains("stopped by SIGTERM after 200ms"), "{}", over.err);
    let before = home.run(&["cost", "--budget", "600", "--", "sh", "-c", "exit 7"]);
    assert_eq!((before.code, before.err.contains("SIGTERM")), (Some(7), false), "{}", before.err);
    // Who ignores it, and who stays behind, are told.
    let deaf = home.run(&["cost", "--budget", "0.2", "--", "sh", "-c", "trap '' TERM; sleep 1"]);
    assert_eq!(deaf.code, Some(0), "{}", deaf.err);
    assert!(deaf.err.contains("got SIGTERM after 200ms, as --budget says"), "{}", deaf.err);
    assert!(deaf.err.contains("s later with exit code 0"), "{}", deaf.err);
    let file = home.path().join("left");
    let parent = format!("sleep 600 >/dev/null 2>&1 & echo $! > {}; wait", file.display());
    let left = home.run(&["cost", "--budget", "0.5", "--", "sh", "-c", &parent]);
    assert_eq!(left.code, Some(0), "{}", left.err);
    let pid = fs::read_to_string(file).expect("a process id");
    let told = format!("process {} still ran after the end of ", pid.trim());
    assert!(left.err.contains(&told), "no {told}: {}", left.err);
    let pid = Pid::from_raw(pid.trim().parse().expect("a process id"));
    kill_process(pid.expect("a process"), Signal::KILL).expect("it runs");
    home.wait_until_alone();
    if !crate::trace::can_trace() {
        return;
    }
    let over = home.run(&["trace", "--seconds", "0.2", "--", "sleep", "600"]);
    assert_eq!(over.code, Some(0), "{}", over.err);
    assert!(over.err.contains("stopped by SIGTERM after 200ms"), "{}", over.err);
    let own = std::process::id().to_string();
    for watched in [
        &["cost", "--pid", &own, "--budget", "0.1"][..],
        &["trace", "-p", &own, "--duration", "0.1"],
    ] {
        let said = home.run(watched);
        assert_eq!(said.code, Some(0), "{watched:?}: {}", said.err);
    }
    let top = home.run(&["top", "--batch=json", "--interval", "600", "--budget", "0.1"]);
    assert_eq!((top.code, top.out.lines().count()), (Some(0), 1), "{}", top.err);
    home.wait_until_alone();
}

/// The rows of the table are above the bar as soon as they have a figure, and gone at the end.
#[test]
fn measure_shows_its_rows_on_a_terminal_as_they_are_found() {
    if lacks([Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    let line = format!("stty cols 200; {PROGRAM} measure --budget 2s");
    let mut command = home.command("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    let said = Said::of(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert!(said.out.contains(" s left, round 1, ring of "), "{}", said.out);
    let (drawn, table) = said.out.rsplit_once("switch, 2 processes ").expect("a table");
    // A time, or that it is not resolved.
    let is_known = !table.trim().starts_with("not resolved");
    let was_shown = drawn.contains("switch, 2 processes ");
    assert!(was_shown || !is_known, "{}", said.out);
    // Where nobody looks nothing is drawn.
    let unseen = home.run(&["measure", "--budget", "1ms"]);
    assert_eq!((unseen.code, unseen.err.as_str()), (Some(0), ""));
}

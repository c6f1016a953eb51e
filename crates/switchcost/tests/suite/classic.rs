//! `switchcost classic PROGRAM`: what each of the papers' programs takes, prints and exits with.

use std::process::{Child, Command, Stdio};

use crate::classic_links::NAMES;
use crate::common::{Home, PROGRAM, Process, Said, allowed_cpus, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use testing::{Need, lacks, skip};

fn classic(args: &[&str]) -> Said {
    Home::new().run(&[&["classic"], args].concat())
}

/// With every number as `#` and every moment as `DATE`: what is left is the output's shape.
fn shape(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut shape = String::new();
        for c in line.chars() {
            match c.is_ascii_digit() {
                true if shape.ends_with('#') => {}
                true => shape.push('#'),
                false => shape.push(c),
            }
        }
        lines.push(match shape.find(": st").filter(|_| shape.matches(':').count() == 3) {
            Some(_) => {
                // ctime(3): 24 characters.
                let (name, moment) = line.split_at(line.len() - 24);
                let words: Vec<&str> = moment.split_whitespace().collect();
                assert!(matches!(words[..], [_, _, _, time, _] if time.len() == 8), "{line}");
                let end = name.find(": ").map_or(0, |at| at);
                format!("#{}DATE", &name[end..])
            }
            None => shape,
        });
    }
    lines.join("\n")
}

/// A figure of getrusage's lines.
fn field(said: &str, name: &str) -> u64 {
    let lines = said.lines().filter_map(|line| line.split_once(": ")?.1.split_once(' '));
    let value = lines.filter(|(found, _)| *found == name).map(|(_, value)| value.trim()).next();
    let value = value.unwrap_or_else(|| panic!("no {name} in {said}"));
    value.trim_end_matches("usec").parse().unwrap_or_else(|_| panic!("{name}: {value}"))
}

/// As the listing of appendix 3 prints it, compiled with a declaration of ctime.
const GETRUSAGE: &str = "#: start      DATE
#: stop          DATE
#: exit  #
#: rtime          #usec
#: utime          #usec
#: stime          #usec
#: total          #usec
#: maxrss          #
#: ixrss          #
#: idrss          #
#: isrss          #
#: minflt          #
#: majflt          #
#: nswap          #
#: inblock          #
#: oublock          #
#: msgsnd          #
#: msgrcv          #
#: nsignals          #
#: nvcsw          #
#: nivcsw          #";

/// As the listing of appendix 4 prints it, its faults of syntax mended.
const TIMES: &str = "#: start      DATE
#: stop          DATE
#: exit  #
#: rtime      #usec
#: tics/sec   #
#: utime      #.#usec (#tics)
#: stime      #.#usec (#tics)
#: total      #.#usec (#tics)
#: since      #.#usec (#tics)";

#[test]
fn getrusage_prints_every_line_and_ends_as_the_program_did() {
    let said = classic(&["getrusage", "/bin/sh", "-c", "echo out; exit 7"]);
    assert_eq!((said.code, &*said.out), (Some(7), "out\n"), "{}", said.err);
    assert_eq!(shape(&said.err), GETRUSAGE);
    assert!(said.err.contains(": exit  7\n"), "{}", said.err);
    let time = |name| field(&said.err, name);
    assert_eq!(time("total"), time("utime") + time("stime"));
    assert!(time("maxrss") > 0 && time("minflt") > 0, "{}", said.err);
}

#[test]
fn times_prints_ticks_and_what_they_come_to() {
    let said = classic(&["times", "/bin/sh", "-c", "exit 7"]);
    assert_eq!((said.code, &*said.out), (Some(7), ""), "{}", said.err);
    assert_eq!(shape(&said.err), TIMES);
}

#[test]
fn ticks_count_a_program_that_runs() {
    // So many turns of the shell take some ticks on any machine.
    let turns = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let said = classic(&["times", "/bin/sh", "-c", turns]);
    let ticks = |name: &str| -> u64 {
        let line = said.err.lines().find(|line| line.contains(&format!(": {name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {}", said.err));
        let (_, ticks) = line.split_once('(').expect("ticks");
        ticks.trim_end_matches("tics)").parse().expect("a number")
    };
    assert!(ticks("utime") > 0, "{}", said.err);
    assert_eq!(ticks("total"), ticks("utime") + ticks("stime"));
    let per_second = field(&said.err, "tics/sec") as f64;
    let us = ticks("total") as f64 / per_second * 1e6;
    let converted = format!(": total      {us:.6}usec (");
    assert!(said.err.contains(&converted), "no {converted} in {}", said.err);
}

#[test]
fn a_program_that_a_signal_ended() {
    for (program, lines) in [("getrusage", GETRUSAGE), ("times", TIMES)] {
        let said = classic(&[program, "/bin/sh", "-c", "kill -9 $$"]);
        assert_eq!(said.code, Some(127), "{}", said.err);
        assert!(said.err.contains(": signal 9\n"), "{}", said.err);
        assert_eq!(shape(&said.err), lines.replace("exit  #", "signal #"));
    }
}

#[test]
fn a_program_that_cannot_be_run_is_named_and_told_as_127() {
    let home = Home::new();
    let file = home.path().join("file");
    std::fs::write(&file, "no program\n").expect("a file");
    let file = file.to_str().expect("UTF-8");
    for (program, errno, hint) in [
        ("/no/such/program", "No such file or directory", "'/no/such/program' was not run"),
        ("sh", "No such file or directory", "not in PATH; try /"),
        ("", "No such file or directory", "'' was not run"),
        ("/", "Permission denied", "it is a directory"),
        (file, "Permission denied", "it is not executable (chmod +x)"),
    ] {
        let said = home.run(&["classic", "getrusage", program]);
        assert_eq!((said.code, &*said.out), (Some(127), ""), "{said:?}");
        for line in [&format!("execve: {errno}\n"), ": exit  127\n", hint] {
            assert!(said.err.contains(line), "{program:?}: no {line:?} in {}", said.err);
        }
    }
    let none = classic(&["getrusage"]);
    assert_eq!(none.code, Some(127));
    assert_eq!(none.err, "usage: getrusage program [argument ...]\n");
}

#[test]
fn what_is_neither_a_program_nor_a_script_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let file = home.path().join("file");
    std::fs::write(&file, "no program\n").expect("a file");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("permissions");
    let said = home.run(&["classic", "times", file.to_str().expect("UTF-8")]);
    assert_eq!(said.code, Some(127));
    assert!(said.err.contains("execve: Exec format error\n"), "{}", said.err);
    assert!(said.err.contains("a script that begins with #!"), "{}", said.err);
}

#[test]
fn arguments_and_streams_pass_through_untouched() {
    let home = Home::new();
    let mut command = home.command(PROGRAM);
    command.args(["classic", "getrusage", "/bin/sh", "-c", "cat; printf '%s,' \"$@\"", "sh"]);
    command.args(["--help", "-h", "--", "--parent", "a b"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a start");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, b"in\n").expect("a reader");
    drop(stdin);
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.out), (Some(0), "in\n--help,-h,--,--parent,a b,"));
}

#[test]
fn who_ignores_its_children_does_not_keep_them_from_being_waited_for() {
    let home = Home::new();
    for rest in ["getrusage /bin/true", "times /bin/true", "pipeline 5 3", "twosig 5"] {
        let mut ignoring = home.command("env");
        ignoring.args(["--ignore-signal=CHLD,HUP", PROGRAM, "classic"]).args(rest.split(' '));
        let said = Said::of(&mut ignoring);
        assert_eq!(said.code, Some(0), "{rest}: {}", said.err);
    }
}

#[test]
fn pipeline_checks_its_arguments_as_it_did() {
    let usage = "usage: pipeline chars count\n";
    for (args, code, line) in [
        (&[][..], 1, usage),
        (&["5"], 1, usage),
        (&["5", "2", "1"], 1, usage),
        (&["0", "2"], 2, "pipeline: chars 0<1\n"),
        (&["-3", "2"], 2, "pipeline: chars -3<1\n"),
        (&["5", "1"], 3, "pipeline: count 1<2\n"),
        (&["5", "-64"], 3, "pipeline: count -64<2\n"),
        // Both are wrong: the first is told.
        (&["0", "0"], 2, "pipeline: chars 0<1\n"),
        (&["x", "2"], 2, "pipeline: chars 'x' is not a whole number\n"),
        (&["5", "2x"], 3, "pipeline: count '2x' is not a whole number\n"),
        (
            &["99999999999999999999", "2"],
            2,
            "pipeline: chars '99999999999999999999' is not a whole",
        ),
    ] {
        let said = classic(&[&["pipeline"], args].concat());
        assert_eq!((said.code, &*said.out), (Some(code), ""), "{args:?}: {}", said.err);
        assert!(said.err.starts_with(line), "{args:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

#[test]
fn pipeline_says_nothing_and_leaves_nothing() {
    for args in [["1", "2"], ["1", "50"], ["1000", "2"], ["100", "16"]] {
        let home = Home::new();
        let said = home.run(&[&["classic", "pipeline"], &args[..]].concat());
        assert_eq!((said.code, &*said.out, &*said.err), (Some(0), "", ""));
        assert_eq!(home.processes(), []);
    }
}

/// On one CPU the token cannot come back to a process that was not switched away from.
#[test]
fn sixteen_processes_and_1000_laps_switch_16000_times_or_more() {
    if lacks([Need::Program("taskset")]) {
        return;
    }
    let cpu = allowed_cpus().pop().expect("a CPU").to_string();
    let home = Home::new();
    let mut command = home.command("taskset");
    command.args(["-c", &cpu, PROGRAM, "classic", "getrusage"]);
    let said = Said::of(command.args([PROGRAM, "classic", "pipeline", "1000", "16"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let switches = field(&said.err, "nvcsw") + field(&said.err, "nivcsw");
    assert!(switches >= 16_000, "{}", said.err);
    assert!(field(&said.err, "total") > 0, "{}", said.err);
}

#[test]
fn pipeline_without_descriptors_exits_as_it_did() {
    let home = Home::new();
    for (limit, code) in [(4, 4), (6, 5)] {
        // What the test runner has left open counts too.
        let closed: String = (3..10).map(|fd| format!("exec {fd}>&-; ")).collect();
        let script = format!("{closed}ulimit -n {limit}; exec {PROGRAM} classic pipeline 5 3");
        let said = Said::of(home.command("sh").args(["-c", &script]));
        assert_eq!(said.code, Some(code), "{}", said.err);
        assert_eq!(said.err, "pipe: Too many open files\n");
    }
    home.wait_until_alone();
}

/// A pipeline of 16 that goes on for hours, and its processes but the first.
fn turning(home: &Home) -> (Child, Vec<Process>) {
    let child = home.start(&["classic", "pipeline", "1000000000", "16"]);
    let first = child.id() as i32;
    let others = wait_for("a pipeline of 16", || {
        let all = home.processes().into_iter().filter(|p| p.parent == first);
        Some(all.collect::<Vec<_>>()).filter(|all| all.len() == 15)
    });
    (child, others)
}

#[test]
fn a_killed_pipeline_leaves_no_process() {
    for signal in [Signal::KILL, Signal::TERM, Signal::INT] {
        let home = Home::new();
        let (mut child, _) = turning(&home);
        kill_process(Pid::from_child(&child), signal).expect("a living process");
        assert!(!child.wait().expect("an end").success());
        home.wait_until_alone();
    }
}

#[test]
fn a_pipeline_that_loses_a_process_says_which_and_does_not_end_well() {
    let home = Home::new();
    let (child, others) = turning(&home);
    others[7].kill();
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.out), (Some(12), ""), "{}", said.err);
    let killed =
        format!("pipeline: process {} of the ring was killed by signal 9\n", others[7].pid);
    assert!(said.err.starts_with(&killed), "{}", said.err);
    assert!(said.err.contains("pipeline: the token was lost in lap "), "{}", said.err);
    home.wait_until_alone();
}

/// Two lines on standard output, and a note where the tick cannot tell user from system time.
fn assert_displayed(program: &str, loops: &[&str], message: &str) {
    let said = classic(&[&[program], loops].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = " System #%, user #%, child sys #%, child user #%";
    assert_eq!(shape(&said.out), format!("{message}: #.# ms per loop.\n{lines}"));
    let shares =
        said.out.lines().nth(1).expect("a second line").split(|c: char| !c.is_ascii_digit());
    let sum: u32 = shares.filter_map(|share| share.parse::<u32>().ok()).sum();
    assert!((97..=100).contains(&sum), "{}", said.out);
    let (_, ms) = said.out.split_once(": ").expect("a figure");
    let ms: f64 = ms.split_whitespace().next().and_then(|ms| ms.parse().ok()).expect("a number");
    assert!(ms > 0.0, "{}", said.out);
}

#[test]
fn simsyscall_simsig_and_twosig_display_what_they_did() {
    assert_displayed("simsyscall", &[], "'getuid' system call");
    assert_displayed("simsig", &[], "simple kill-catch-signal");
    assert_displayed("twosig", &[], "two process catch-signal-kill loop");
    assert_displayed("twosig", &["1"], "two process catch-signal-kill loop");
}

#[test]
fn few_ticks_are_told() {
    let said = classic(&["simsyscall"]);
    assert!(said.err.starts_with("note: ") && said.err.contains("`simsyscall "), "{}", said.err);
}

#[test]
fn twosig_never_hangs() {
    let home = Home::new();
    // It hangs at its start or at its end if it does: loops are few.
    for run in 0..40 {
        let mut child = home.start(&["classic", "twosig", "200"]);
        wait_for("its end", || child.try_wait().expect("wait4"));
        let said = Said::at_end(child);
        assert_eq!(said.code, Some(0), "run {run}: {}", said.err);
    }
    assert_eq!(home.processes(), []);
}

#[test]
fn twosig_does_not_take_another_child_for_its_second() {
    // A child that it was started with, cat(1), ends in its midst; whether it did.
    let ends_well = |loops: u32| {
        let home = Home::new();
        let fifo = home.path().join("fifo");
        assert!(home.command("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        let script = format!("cat {} & exec {PROGRAM} classic twosig {loops}", fifo.display());
        let mut child = home.command("sh").args(["-c", &script]).spawn().expect("a shell");
        let first = child.id() as i32;
        // Waits for its reader.
        let writer = std::fs::OpenOptions::new().write(true).open(&fifo).expect("a reader");
        let is_second = |p: &Process| p.parent == first && p.name().as_deref() == Some("twosig");
        let is_within = wait_for("a second process", || {
            let is_there = home.processes().iter().any(is_second);
            is_there.then_some(true).or(child.try_wait().expect("wait4").map(|_| false))
        });
        drop(writer);
        let status = wait_for("its end", || child.try_wait().expect("wait4"));
        assert_eq!(status.code(), Some(0));
        home.wait_until_alone();
        is_within
    };
    assert!([10_000, 100_000, 1_000_000].into_iter().any(ends_well), "none goes on long enough");
}

/// A twosig that goes on for hours, and its second process.
fn signalling(home: &Home) -> (Child, Process) {
    let child = home.start(&["classic", "twosig", "4000000000"]);
    let first = child.id() as i32;
    let second = wait_for("a second process", || {
        home.processes().into_iter().find(|process| process.parent == first)
    });
    (child, second)
}

#[test]
fn twosig_notices_that_its_other_process_is_gone() {
    let home = Home::new();
    let (child, second) = signalling(&home);
    second.kill();
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{}", said.err);
    let line = "twosig: the other process was killed by signal 9 with ";
    assert!(said.err.starts_with(line) && said.err.ends_with(" of 4000000000 loops left\n"));
    home.wait_until_alone();
}

#[test]
fn a_killed_twosig_takes_its_other_process_with_it() {
    let home = Home::new();
    let (mut child, _) = signalling(&home);
    child.kill().expect("a living process");
    child.wait().expect("an end");
    home.wait_until_alone();
}

#[test]
fn test_cycles_prints_the_papers_table() {
    if threadclock::time_stamp().is_none() {
        return skip(Need::TimeStamp, "user space can read none");
    }
    let said = classic(&["test_cycles"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], "             Average Cycles per call  Standard Deviation");
    for (line, name) in lines[1..].iter().zip(["getrusage()", "getpinfo()"]) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((cells.len(), cells[0], line.len()), (3, name, lines[0].len()), "{line}");
        assert!(cells[1].parse::<u64>().is_ok_and(|ticks| ticks > 0), "{line}");
    }
    assert_eq!(lines.len(), 3);
}

#[test]
fn primes_prints_a_line_for_each_number_and_the_gain() {
    let said = classic(&["primes", "50", "20"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[1], "primes    average  std. dev.    average  std. dev.");
    let row: Vec<f64> = lines[2].split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
    assert!(row.len() == 5 && row[0] == 50.0 && row[3] > 0.0, "{}", lines[2]);
    assert!(lines[3].starts_with("increase in precision by getpinfo(): "), "{}", lines[3]);
    assert!(lines[3].ends_with('%'), "{}", lines[3]);
    assert_eq!(lines.len(), 4);
}

#[test]
fn malloc_stats_has_the_papers_sizes_and_all_of_them_together() {
    let said = classic(&["malloc_stats"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let first = |line: &str| line.split_whitespace().next().map(str::to_string);
    let sizes: Vec<String> = said.out.lines().skip(1).filter_map(first).collect();
    let papers = (1..=50).map(|hundreds| (hundreds * 100).to_string());
    assert_eq!(sizes, papers.chain(["all".to_string()]).collect::<Vec<_>>());
    assert!(
        said.out.starts_with("  bytes  average cycles  std. dev.  without getpinfo()       us\n")
    );
}

#[test]
fn counts_that_cannot_be_are_refused() {
    for (args, words) in [
        (&["simsyscall", "0"][..], "[loops]"),
        (&["simsig", "-1"], "[loops]"),
        (&["twosig", "many"], "[loops]"),
        (&["twosig", "4294967296"], "[loops]"),
        (&["test_cycles", "1000001"], "[trials]"),
        (&["primes", "10000001"], "[primes [trials]]"),
        (&["malloc_stats", "100", ""], "[bytes [trials]]"),
    ] {
        let said = classic(args);
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        let lines: Vec<&str> = said.err.lines().collect();
        let bad = args.last().expect("an argument");
        let named = format!("{}: '{bad}' (accepted: whole numbers from 1 to ", args[0]);
        assert!(lines[0].starts_with(&named), "{args:?}: {}", said.err);
        assert_eq!(lines[1..], [format!("usage: {} {words}", args[0])]);
    }
    let said = classic(&["simsyscall", "1", "2"]);
    assert_eq!((said.code, &*said.err), (Some(2), "usage: simsyscall [loops]\n"));
}

#[test]
fn blocks_that_do_not_fit_are_told() {
    let home = Home::new();
    let script = format!("ulimit -v 2000000; exec {PROGRAM} classic malloc_stats 4000000000 10");
    let said = Said::of(home.command("sh").args(["-c", &script]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.err.contains("malloc could not allocate 10 blocks of 4000000000 bytes: ask for"),
        "{}",
        said.err
    );
}

#[test]
fn a_reader_that_has_had_enough_ends_them() {
    let home = Home::new();
    let script = format!("{PROGRAM} classic malloc_stats 2>&1 | head -n 1");
    let said = Said::of(home.command("sh").args(["-c", &script]));
    assert_eq!(said.out, "  bytes  average cycles  std. dev.  without getpinfo()       us\n");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut command: Command = home.command(PROGRAM);
    let said =
        Said::of(command.args(["classic", "simsyscall"]).stdout(full).stderr(Stdio::piped()));
    assert_eq!(said.code, Some(1), "{}", said.err);
}

#[test]
fn help_names_every_program() {
    let (short, long) = (classic(&["-h"]), classic(&["--help"]));
    assert_eq!((short.code, long.code), (Some(0), Some(0)));
    for name in NAMES.into_iter().chain(["sweep", "install"]) {
        let listed = short.out.lines().any(|line| line.starts_with(&format!("  {name} ")));
        assert!(listed, "no {name} in {}", short.out);
    }
    let (short, long) = (classic(&["pipeline", "-h"]), classic(&["pipeline", "--help"]));
    assert!(short.out.len() < long.out.len() && long.out.contains("Exit codes"), "{}", long.out);
    assert!(!classic(&["getrusage", "--help"]).out.contains("--parent"));
}

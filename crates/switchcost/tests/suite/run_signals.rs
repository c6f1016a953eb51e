//! `switchcost run` and signals: each arrives once, and is noted.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Instant;

use crate::common::commands::{read, runs};
use crate::common::{Home, PROGRAM, Process, Said, wait_for};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use testing::{Need, lacks, repeats};

#[test]
fn signals_reach_the_command() {
    let home = Home::new();
    let script = "trap 'exit 40' INT; trap 'exit 41' TERM; trap 'exit 42' HUP; trap 'exit 43' \
         USR2; echo ready >&2; while :; do sleep 0.05; done";
    for (signal, code) in
        [(Signal::INT, 40), (Signal::TERM, 41), (Signal::HUP, 42), (Signal::USR2, 43)]
    {
        let ready = home.path().join(format!("ready{code}"));
        let script = script.replace(">&2", &format!("> {}", ready.display()));
        let child = home.start(&["run", "--no-estimate", "--", "sh", "-c", &script]);
        wait_for("its traps", || fs::read(&ready).ok().filter(|text| !text.is_empty()));
        let pid = Pid::from_raw(child.id() as i32).expect("a process id");
        kill_process(pid, signal).expect("a signal");
        let said = Said::at_end(child);
        assert_eq!(said.code, Some(code), "{}", said.err);
        assert!(said.err.contains("max resident"), "the figures all the same: {}", said.err);
        // A signal of the user's own asks nobody to stop.
        let told = format!("signal {} arrived during the run", signal.as_raw());
        assert_eq!(said.err.contains(&told), signal != Signal::USR2, "{}", said.err);
    }
}

#[test]
fn an_interrupted_series_gives_the_runs_that_are_done() {
    let home = Home::new();
    let file = home.path().join("count");
    let script = format!("echo x >> {}; sleep 0.01", file.display());
    let json = home.path().join("r.json");
    let to = json.to_str().expect("UTF-8");
    let args = ["run", "--no-estimate", "-n", "100000", "--json", to, "--", "sh", "-c", &script];
    let child = home.start(&args);
    wait_for("some runs", || fs::read(&file).ok().filter(|text| text.len() >= 10));
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    kill_process(pid, Signal::TERM).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(143), "{}", said.err);
    let record = read(&json);
    let done = runs(&record).iter().filter(|run| run["interrupted"] == false).count();
    assert!(done >= 4, "{}", said.err);
    assert_eq!(record["commands"][0]["runs"], done);
    home.wait_until_alone();
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    // It gives the terminal.
    if lacks([Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    let ready = home.path().join("ready");
    let trapped = home.path().join("trapped.sh");
    let text = format!(
        "trap 'echo got >> {0}' INT\necho ready > {0}\nn=0\nwhile [ $n -lt 1 ]; do sleep 0.05; \
         n=$(grep -c got {0}); done\nsleep 0.1\nexit 9\n",
        ready.display()
    );
    fs::write(&trapped, text).expect("a file");
    for (command, code) in [(format!("sh {}", trapped.display()), 9), ("sleep 60".to_string(), 130)]
    {
        // Without exec a shell that stays would end by the SIGINT itself, whatever its command
        // says.
        let typed = format!("exec {PROGRAM} run --no-estimate -- {command}");
        let mut script = home.command("script");
        script.args(["-qec", &typed, "/dev/null"]);
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = script.spawn().expect("script starts");
        let mut keys = child.stdin.take().expect("a pipe");
        home.wait_for_command("sleep");
        keys.write_all(b"\x03").expect("typed");
        keys.flush().expect("typed");
        let said = Said::at_end(child);
        drop(keys);
        assert_eq!(said.code, Some(code), "{said:?}");
        let words = if code == 9 {
            "signal 2 arrived during the run"
        } else {
            "interrupted: the figures cover the time"
        };
        assert!(said.out.contains(words), "{said:?}");
    }
    let told = fs::read_to_string(&ready).expect("a file");
    assert_eq!(told, "ready\ngot\n");
}

#[test]
fn a_killed_controller_leaves_no_launcher() {
    let home = Home::new();
    let child = home.start(&["run", "--no-estimate", "--", "sleep", "60"]);
    let all = home.wait_for_command("sleep");
    let launcher = all.iter().find(|p| p.parent == child.id() as i32).copied().expect("a launcher");
    kill_process(Pid::from_raw(child.id() as i32).expect("an id"), Signal::KILL).expect("killed");
    let alive = || home.processes().iter().any(|process| process.pid == launcher.pid);
    wait_for("the launcher's end", || (!alive()).then_some(()));
    // The command is its caller's, as under time(1).
    let mut command = home.processes();
    assert_eq!(command.len(), 1, "{command:?}");
    command.remove(0).kill();
    let mut child = child;
    child.wait().expect("an end");
}

/// A command that counts the signals that it gets, and its three files.
struct Counter {
    script: String,
    folder: PathBuf,
}

impl Counter {
    fn new(home: &Home, name: &str) -> Self {
        Self::of_signals(home, name, "INT TERM HUP USR1")
    }

    /// Counts these signals.
    fn of_signals(home: &Home, name: &str, signals: &str) -> Self {
        let folder = home.path().join(name);
        fs::create_dir(&folder).expect("a folder");
        let at = folder.display();
        // It waits for nothing: a shell runs its traps between two commands, and two signals before
        // that are one.
        let script = format!(
            "n=0; trap 'n=$((n+1)); echo x >> {at}/seen' {signals}; echo ready > \
             {at}/ready; while [ ! -e {at}/end ]; do :; done; echo $n > {at}/count"
        );
        Self { script, folder }
    }

    fn wait_for_traps(&self) {
        let ready = self.folder.join("ready");
        wait_for("its traps", || fs::read(&ready).ok().filter(|text| !text.is_empty()));
    }

    /// Waits until it has seen so many signals, and whatever more was on its way has arrived.
    fn wait_for_signals(&self, home: &Home, sent: usize) {
        let seen = || fs::read_to_string(self.folder.join("seen")).unwrap_or_default();
        wait_for("its signals", || (seen().lines().count() >= sent).then_some(()));
        settle(home);
    }

    /// How many it got once so many were sent.
    fn count(&self, home: &Home, sent: usize) -> String {
        self.wait_for_signals(home, sent);
        fs::write(self.folder.join("end"), "").expect("a file");
        let count = self.folder.join("count");
        wait_for("its count", || {
            fs::read_to_string(&count).ok().filter(|text| text.ends_with('\n'))
        })
    }
}

/// Waits until nobody of this home has a signal before him or on his hands: all have taken theirs,
/// the program has passed on what it passes on, and the launcher, which looks for that whenever it
/// wakes, has looked.
fn settle(home: &Home) {
    let is_ours = |p: &Process| p.name().is_some_and(|name| name.starts_with("switchcost"));
    let is_quiet = |p: &Process| !p.has_pending() && (!is_ours(p) || p.is_asleep());
    let all_are = || home.processes().iter().all(is_quiet).then_some(());
    wait_for("all signals taken", all_are);
    let is_launcher = |p: &Process| p.name().as_deref() == Some("switchcost-cmd");
    let launcher = home.processes().into_iter().find(is_launcher).expect("a launcher");
    let before = launcher.waits().expect("a living launcher");
    wait_for("two looks of the launcher", || (launcher.waits()? >= before + 2).then_some(()));
    wait_for("all signals taken", all_are);
}

fn id_of(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).expect("a process id")
}

/// A file in UTF-8.
fn path(home: &Home, name: &str) -> String {
    home.path().join(name).to_str().expect("UTF-8").to_string()
}

/// The program with a terminal of its own.
fn on_a_terminal(home: &Home, args: &str) -> Child {
    // Without exec a shell that stays would end by the SIGINT itself, whatever its command says.
    let typed = format!("exec {PROGRAM} run --no-estimate {args}");
    let mut script = home.command("script");
    script.args(["-qec", &typed, "/dev/null"]);
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    script.spawn().expect("script starts")
}

#[test]
fn a_signal_arrives_once_whoever_was_meant() {
    let home = Home::new();
    for (number, signal) in
        [Signal::TERM, Signal::HUP, Signal::INT, Signal::USR1].into_iter().enumerate()
    {
        // Two at one moment are one now and then: the group's often enough to see a second.
        let group = (0..repeats(2, 4)).map(|again| ("group", again, 1));
        let others = [("program", 0, 1), ("group-then-program", 0, 2)];
        for (whom, again, sent) in group.chain(others) {
            let counter = Counter::new(&home, &format!("{whom}{number}{again}"));
            let mut program = home.command(PROGRAM);
            program
                .args(["run", "--no-estimate", "--", "sh", "-c", &counter.script])
                .process_group(0);
            let child = program.stderr(Stdio::piped()).spawn().expect("the program starts");
            counter.wait_for_traps();
            if whom.starts_with("group") {
                kill_process_group(id_of(&child), signal).expect("a signal");
            }
            if sent == 2 {
                counter.wait_for_signals(&home, 1);
            }
            if whom.ends_with("program") {
                kill_process(id_of(&child), signal).expect("a signal");
            }
            assert_eq!(counter.count(&home, sent), format!("{sent}\n"), "{signal:?} to {whom}");
            Said::at_end(child);
        }
    }
}

/// A command that stands is continued to end it, and for nothing else.
#[test]
fn no_signal_but_those_that_end_continues_a_command() {
    let home = Home::new();
    for (name, signal, sent) in [("user", Signal::USR1, 1), ("end", Signal::TERM, 2)] {
        let counter = Counter::of_signals(&home, name, "TERM USR1 CONT");
        let mut program = home.command(PROGRAM);
        program.args(["run", "--no-estimate", "--", "sh", "-c", &counter.script]);
        let child = program.stderr(Stdio::piped()).spawn().expect("the program starts");
        counter.wait_for_traps();
        kill_process(id_of(&child), signal).expect("a signal");
        assert_eq!(counter.count(&home, sent), format!("{sent}\n"), "{signal:?}");
        Said::at_end(child);
    }
}

#[test]
fn ctrl_c_arrives_once() {
    if lacks([Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    let counter = Counter::new(&home, "counter");
    let file = path(&home, "script.sh");
    fs::write(&file, &counter.script).expect("a file");
    let mut child = on_a_terminal(&home, &format!("-- sh {file}"));
    let mut keys = child.stdin.take().expect("a pipe");
    counter.wait_for_traps();
    keys.write_all(b"\x03").expect("typed");
    assert_eq!(counter.count(&home, 1), "1\n");
    let said = Said::at_end(child);
    assert!(said.out.contains("signal 2 arrived during the run"), "{said:?}");
}

#[test]
fn ctrl_c_is_noted_with_the_run_that_it_ended() {
    if lacks([Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    for number in 0..repeats(4, 12) {
        let json = path(&home, &format!("{number}.json"));
        let mut child = on_a_terminal(&home, &format!("-n 1000 --json {json} -- sleep 60"));
        let mut keys = child.stdin.take().expect("a pipe");
        home.wait_for_command("sleep");
        keys.write_all(b"\x03").expect("typed");
        let said = Said::at_end(child);
        assert_eq!(said.code, Some(130), "{said:?}");
        let record = read(Path::new(&json));
        let ended = runs(&record);
        assert_eq!(ended.len(), 1, "one more was started: {record}");
        assert_eq!((&ended[0]["interrupted"], &ended[0]["signal"]), (&true.into(), &2.into()));
    }
    home.wait_until_alone();
}

#[test]
fn a_signal_at_any_moment_ends_the_series_in_order() {
    let home = Home::new();
    // Moments are parts of what twenty runs take here.
    let begun = Instant::now();
    assert_eq!(home.run(&["run", "--no-estimate", "-n", "20", "--", "true"]).code, Some(0));
    let (whole, count) = (begun.elapsed(), repeats(20, 80));
    for number in 0..count {
        let child = home.start(&["run", "--no-estimate", "-n", "1000000", "--", "true"]);
        sleep(whole * number / count);
        kill_process(id_of(&child), Signal::TERM).expect("a signal");
        let said = Said::at_end(child);
        // Absent: it came before there was anything to put in order.
        assert!(matches!(said.code, Some(143) | None), "{said:?}");
        assert!(!said.err.contains("error"), "{}", said.err);
    }
    home.wait_until_alone();
}

#[test]
fn signals_that_the_caller_ignores_do_not_end_a_series() {
    let home = Home::new();
    let json = path(&home, "r.json");
    let script = format!(
        "trap '' HUP; exec {PROGRAM} run --no-estimate -n 10 --json {json} -- sh -c 'echo x >> \
         {json}.count; sleep 0.01'"
    );
    let mut shell = home.command("sh");
    let child = shell.args(["-c", &script]).stderr(Stdio::piped()).spawn().expect("a shell");
    wait_for("some runs", || fs::read(format!("{json}.count")).ok().filter(|text| text.len() >= 6));
    kill_process(id_of(&child), Signal::HUP).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(runs(&read(Path::new(&json))).len(), 10);
    assert!(!said.err.contains("arrived during the run"), "{}", said.err);
}

#[test]
fn an_interrupt_before_the_first_run_is_told() {
    let home = Home::new();
    let child = home.start(&["run", "--no-estimate", "--warmup", "1", "--", "sleep", "60"]);
    home.wait_for_command("sleep");
    kill_process(id_of(&child), Signal::TERM).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.err), (Some(143), "interrupted before the first measured run\n"));
}

#[test]
fn a_launcher_that_was_to_stop_alone_is_told() {
    let home = Home::new();
    for args in [&["run", "--no-estimate"][..], &["cost"]] {
        let end = home.path().join(args[0]);
        let script = format!("while [ ! -e {} ]; do sleep 0.02; done", end.display());
        let child = home.start(&[args, &["--", "sh", "-c", &script]].concat());
        let all = home.wait_for_command("sleep");
        let launcher = all.iter().find(|p| p.parent == child.id() as i32).expect("a launcher");
        kill_process(Pid::from_raw(launcher.pid).expect("an id"), Signal::TERM).expect("a signal");
        fs::write(end, "").expect("a file");
        let said = Said::at_end(child);
        assert_eq!(said.code, Some(143), "{}", said.err);
        assert!(said.err.contains("signal 15 reached only the launcher"), "{}", said.err);
    }
}

#[test]
fn a_killed_launcher_does_not_cost_the_runs_before() {
    let home = Home::new();
    let json = path(&home, "r.json");
    let script = format!(
        "echo x >> {json}.count; [ $(wc -l < {json}.count) -lt 5 ] || exec sleep 60 >/dev/null 2>&1"
    );
    let args = ["run", "--no-estimate", "-n", "9", "--json", &json, "--", "sh", "-c", &script];
    let child = home.start(&args);
    let all = home.wait_for_command("sleep");
    let launcher = all.iter().find(|p| p.parent == child.id() as i32).expect("a launcher");
    // Whenever nothing has happened for a while it tells what was done.
    let before = launcher.waits().expect("a living launcher");
    wait_for("two looks of the launcher", || (launcher.waits()? >= before + 2).then_some(()));
    launcher.kill();
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.error().contains("the launcher has ended (signal: 9"), "{}", said.err);
    assert!(said.err.contains("max resident"), "{}", said.err);
    assert_eq!(runs(&read(Path::new(&json))).len(), 4);
}

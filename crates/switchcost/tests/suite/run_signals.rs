//! `switchcost run` and signals: each arrives once, and is noted.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::commands::{read, runs};
use crate::common::{Home, PROGRAM, Process, Said, has, skip, wait_for};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

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
    let script = format!("echo x >> {}; sleep 0.02", file.display());
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
    if !has("script") {
        return skip("script (util-linux) gives the terminal for this test");
    }
    let home = Home::new();
    let ready = home.path().join("ready");
    let trapped = home.path().join("trapped.sh");
    let text = format!(
        "trap 'echo got >> {0}' INT\necho ready > {0}\nn=0\nwhile [ $n -lt 1 ]; do sleep 0.05; \
         n=$(grep -c got {0}); done\nsleep 0.3\nexit 9\n",
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
        let runs = || {
            let name = |p: &crate::common::Process| {
                fs::read_to_string(format!("/proc/{}/comm", p.pid)).ok()
            };
            let sleeps = home.processes().iter().filter_map(name).any(|name| name == "sleep\n");
            sleeps.then_some(())
        };
        wait_for("the command", runs);
        keys.write_all(b"\x03").expect("typed");
        keys.flush().expect("typed");
        let said = Said::at_end(child);
        drop(keys);
        assert_eq!(said.code, Some(code), "{said:?}");
        let words =
            if code == 9 { "signal 2 arrived during the run" } else { "interrupted: these are" };
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
        let folder = home.path().join(name);
        fs::create_dir(&folder).expect("a folder");
        let at = folder.display();
        // It waits for nothing: a shell runs its traps between two commands, and two signals before
        // that are one.
        let script = format!(
            "n=0; trap 'n=$((n+1)); echo x >> {at}/seen' INT TERM HUP USR1; echo ready > \
             {at}/ready; while [ ! -e {at}/end ]; do :; done; echo $n > {at}/count"
        );
        Self { script, folder }
    }

    fn wait_for_traps(&self) {
        let ready = self.folder.join("ready");
        wait_for("its traps", || fs::read(&ready).ok().filter(|text| !text.is_empty()));
    }

    /// How many it got once so many were sent; whatever more is on its way has had time to arrive.
    fn count(&self, sent: usize) -> String {
        let seen = || fs::read_to_string(self.folder.join("seen")).unwrap_or_default();
        wait_for("its signals", || (seen().lines().count() >= sent).then_some(()));
        sleep(Duration::from_millis(300));
        fs::write(self.folder.join("end"), "").expect("a file");
        let count = self.folder.join("count");
        wait_for("its count", || {
            fs::read_to_string(&count).ok().filter(|text| text.ends_with('\n'))
        })
    }
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

fn has_no_terminal() -> bool {
    let missing = !has("script");
    if missing {
        skip("script (util-linux) gives the terminal for this test");
    }
    missing
}

#[test]
fn a_signal_arrives_once_whoever_was_meant() {
    let home = Home::new();
    for (number, signal) in
        [Signal::TERM, Signal::HUP, Signal::INT, Signal::USR1].into_iter().enumerate()
    {
        // Two at one moment are one now and then: the group's often enough to see a second.
        let group = (0..4).map(|again| ("group", again, 1));
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
                sleep(Duration::from_millis(100));
            }
            if whom.ends_with("program") {
                kill_process(id_of(&child), signal).expect("a signal");
            }
            assert_eq!(counter.count(sent), format!("{sent}\n"), "{signal:?} to {whom}");
            Said::at_end(child);
        }
    }
}

#[test]
fn ctrl_c_arrives_once() {
    if has_no_terminal() {
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
    assert_eq!(counter.count(1), "1\n");
    let said = Said::at_end(child);
    assert!(said.out.contains("signal 2 arrived during the run"), "{said:?}");
}

#[test]
fn ctrl_c_is_noted_with_the_run_that_it_ended() {
    if has_no_terminal() {
        return;
    }
    let home = Home::new();
    for number in 0..12 {
        let json = path(&home, &format!("{number}.json"));
        let mut child = on_a_terminal(&home, &format!("-n 1000 --json {json} -- sleep 60"));
        let mut keys = child.stdin.take().expect("a pipe");
        let named = |p: &Process| fs::read_to_string(format!("/proc/{}/comm", p.pid)).ok();
        let sleeps = || home.processes().iter().filter_map(named).any(|name| name == "sleep\n");
        wait_for("the command", || sleeps().then_some(()));
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
    for number in 0..80 {
        let child = home.start(&["run", "--no-estimate", "-n", "1000000", "--", "true"]);
        sleep(Duration::from_micros(number * 400));
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
        "trap '' HUP; exec {PROGRAM} run --no-estimate -n 20 --json {json} -- sh -c 'echo x >> \
         {json}.count; sleep 0.02'"
    );
    let mut shell = home.command("sh");
    let child = shell.args(["-c", &script]).stderr(Stdio::piped()).spawn().expect("a shell");
    wait_for("some runs", || fs::read(format!("{json}.count")).ok().filter(|text| text.len() >= 6));
    kill_process(id_of(&child), Signal::HUP).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(runs(&read(Path::new(&json))).len(), 20);
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
        assert!(said.err.contains("signal 15 reached the launcher alone"), "{}", said.err);
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
    wait_for("the fifth run", || fs::read(format!("{json}.count")).ok().filter(|t| t.len() >= 10));
    // By then what was done has been told.
    sleep(Duration::from_millis(300));
    let all = home.processes();
    let launcher = all.iter().find(|p| p.parent == child.id() as i32).expect("a launcher");
    launcher.kill();
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.error().contains("the launcher has ended (signal: 9"), "{}", said.err);
    assert!(said.err.contains("max resident"), "{}", said.err);
    assert_eq!(runs(&read(Path::new(&json))).len(), 4);
}

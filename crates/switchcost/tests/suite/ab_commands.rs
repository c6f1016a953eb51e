//! `compare --ab-commands`: two states of the machine, each brought about by a command. And what may
//! stand behind `--`.
//!
//! The commands here change nothing but files: one that goes on writes the name of its side to a file
//! when it begins, and takes it away when it ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use crate::common::{Home, PROGRAM, Said, copy_program, lines_of, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use testing::{Need, is_nightly, lacks};

/// More precise than it can be: it goes on until it is ended.
const LONG: [&str; 6] = ["--members", "2", "--budget", "600s", "--precision", "0.01%"];

const WHILE_MEASURED: &str = "ended with exit code 0: gone while it was measured";

const FEW: [&str; 8] = ["--members", "2", "--rounds", "2", "--laps", "50", "--budget", "600s"];

/// Checks of sessions. Only one may be on a machine: as tests of their own they would wait for each
/// other, each on a thread that could run another test.
const CHECKS: [(&str, fn()); 19] = [
    (
        "a_command_that_goes_on_runs_in_its_half_of_each_round_and_never_beside_the_other",
        a_command_that_goes_on_runs_in_its_half_of_each_round_and_never_beside_the_other,
    ),
    (
        "a_command_that_ends_by_itself_runs_at_each_change_and_that_of_a_last",
        a_command_that_ends_by_itself_runs_at_each_change_and_that_of_a_last,
    ),
    ("an_empty_command_is_the_machine_as_it_is", an_empty_command_is_the_machine_as_it_is),
    (
        "rings_are_measured_under_both_and_the_files_have_the_commands",
        rings_are_measured_under_both_and_the_files_have_the_commands,
    ),
    (
        "other_experiments_are_measured_under_two_commands",
        other_experiments_are_measured_under_two_commands,
    ),
    (
        "commands_that_fail_or_leave_something_running_are_refused_with_the_reason",
        commands_that_fail_or_leave_something_running_are_refused_with_the_reason,
    ),
    (
        "a_command_that_was_to_go_on_and_ends_is_an_error",
        a_command_that_was_to_go_on_and_ends_is_an_error,
    ),
    (
        "a_command_has_the_same_time_at_each_start_where_no_setting_shows_its_state",
        a_command_has_the_same_time_at_each_start_where_no_setting_shows_its_state,
    ),
    (
        "the_command_of_a_is_run_once_more_where_it_has_failed",
        the_command_of_a_is_run_once_more_where_it_has_failed,
    ),
    (
        "a_command_that_runs_as_another_user_is_refused",
        a_command_that_runs_as_another_user_is_refused,
    ),
    ("a_command_that_hangs_is_an_error", a_command_that_hangs_is_an_error),
    (
        "what_ignores_signals_or_hides_in_a_session_of_its_own_is_ended",
        what_ignores_signals_or_hides_in_a_session_of_its_own_is_ended,
    ),
    (
        "nothing_of_the_commands_is_left_whoever_is_killed",
        nothing_of_the_commands_is_left_whoever_is_killed,
    ),
    ("a_second_session_of_commands_is_refused", a_second_session_of_commands_is_refused),
    ("a_gate_has_the_exit_codes_of_compare", a_gate_has_the_exit_codes_of_compare),
    ("the_cost_that_is_compared_may_be_cpu_time", the_cost_that_is_compared_may_be_cpu_time),
    ("options_of_run_hold_under_both_states", options_of_run_hold_under_both_states),
    (
        "what_does_not_go_together_is_refused_before_anything_is_run",
        what_does_not_go_together_is_refused_before_anything_is_run,
    ),
    (
        "the_hidden_commands_do_nothing_for_a_stranger",
        the_hidden_commands_do_nothing_for_a_stranger,
    ),
];

#[test]
fn sessions_one_after_the_other() {
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        println!("{name}");
        if std::panic::catch_unwind(check).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// Files of two commands.
struct States {
    home: Home,
}

impl States {
    fn take() -> Self {
        Self { home: Home::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns a command that goes on: it keeps the name of its side in the file `state`, and logs
    /// its beginning and its end.
    fn going_on(&self, side: &str) -> String {
        let (state, log) = (self.path("state"), self.path("log"));
        let (state, log) = (state.display(), log.display());
        format!(
            "echo begin {side} >> {log}; echo {side} >> {state}; \
             trap 'echo end {side} >> {log}; rm {state}; exit 0' INT; \
             while :; do sleep 0.02; done"
        )
    }

    /// Returns a command that ends by itself: it writes the name of its side to the file `state`.
    fn writing(&self, side: &str) -> String {
        format!("echo {side} > {}", self.path("state").display())
    }

    /// Returns the words of a session of these commands.
    fn session<'a>(commands: [&'a str; 2], behind: &[&'a str]) -> Vec<&'a str> {
        [&["compare", "--ab-commands", commands[0], commands[1]], behind].concat()
    }

    fn run(&self, commands: [&str; 2], behind: &[&str]) -> Said {
        self.home.run(&Self::session(commands, behind))
    }

    /// Runs a command under both states that notes in which it runs. Returns what the session said,
    /// the sides by its record, and those that the command saw.
    fn notes(&self, commands: [&str; 2]) -> (Said, Vec<String>, Vec<String>) {
        let noting = format!(
            "cat {} >> {} || echo none >> {1}",
            self.path("state").display(),
            self.path("seen").display()
        );
        let json = self.path("record.json");
        let json = json.to_str().expect("UTF-8");
        let words = ["--json", json, "--", "run", "--no-estimate", "-n", "5", &noting];
        let said = self.run(commands, &words);
        let record: serde_json::Value =
            serde_json::from_str(&self.text("record.json")).expect("a record");
        let mut sides = Vec::new();
        for run in record["runs"].as_array().expect("runs") {
            sides.push(["A", "B"][run["command"].as_u64().expect("a number") as usize].to_string());
        }
        (said, sides, self.text("seen").lines().map(str::to_string).collect())
    }

    /// Starts a session that goes on, and waits until it measures.
    fn start(&self, commands: [&str; 2]) -> Child {
        let started = self.home.start(&Self::session(commands, &LONG));
        self.home.wait_for_sample();
        started
    }
}

/// Kills the process of this name below the session.
fn kill_below(session: &Child, name: &str) {
    let pid = wait_for(name, || below(session.id() as i32, name));
    let pid = Pid::from_raw(pid).expect("a process id");
    kill_process(pid, Signal::KILL).expect("it is killed");
}

/// Finds the process of this name among the descendants of a process.
fn below(parent: i32, name: &str) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    for child in children.split_whitespace() {
        let pid: i32 = child.parse().ok()?;
        let found = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if found.trim() == name {
            return Some(pid);
        }
        if let Some(pid) = below(pid, name) {
            return Some(pid);
        }
    }
    None
}

fn assert_refused(said: &Said, words: &str) {
    assert_eq!(said.code, Some(2), "{} {}", said.out, said.err);
    let text = said.err.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(text.contains(words), "{words}: {text}");
}

fn a_command_that_goes_on_runs_in_its_half_of_each_round_and_never_beside_the_other() {
    let states = States::take();
    let (a, b) = (states.going_on("A"), states.going_on("B"));
    let (said, sides, seen) = states.notes([&a, &b]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(sides.len(), 10);
    // The file had one name at each time: that of the side by which the run counts.
    assert_eq!(seen, sides);
    let log = states.text("log");
    let events: Vec<&str> = log.lines().collect();
    for pair in events.chunks(2) {
        assert_eq!(pair[0].replace("begin", "end"), pair[1], "{log}");
    }
    assert!(events.len() >= 8 && events.len() % 2 == 0, "{log}");
    assert_eq!(states.text("state"), "", "the last one has ended");
}

fn a_command_that_ends_by_itself_runs_at_each_change_and_that_of_a_last() {
    let states = States::take();
    let (a, b) = (states.writing("A"), states.writing("B"));
    for _ in 0..2 {
        let _ = fs::remove_file(states.path("seen"));
        let (said, sides, seen) = states.notes([&a, &b]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(seen, sides);
        assert_eq!(states.text("state").trim(), "A");
    }
}

fn an_empty_command_is_the_machine_as_it_is() {
    let states = States::take();
    let b = states.going_on("B");
    let (said, sides, seen) = states.notes(["", &b]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    // A record names it as the terminal does.
    assert!(states.text("record.json").contains("A: no command"));
    let expected: Vec<&str> =
        sides.iter().map(|side| if side == "A" { "none" } else { "B" }).collect();
    assert_eq!(seen, expected);
}

fn rings_are_measured_under_both_and_the_files_have_the_commands() {
    let states = States::take();
    let (a, b) = (states.going_on("A"), states.going_on("B"));
    for behind in [FEW.to_vec(), [&["--", "ring"], &FEW[..]].concat()] {
        let _ = fs::remove_dir_all(states.home.runs_folder());
        let said = states.run([&a, &b], &behind);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.contains("A (echo)") && said.out.contains("switches/hop"), "{}", said.out);
        let mut commands = Vec::new();
        for file in states.home.run_files() {
            let session = lines_of(&file)[0]["header"]["session"].clone();
            assert!(session["setting"].is_null());
            commands.push(session["command"]["line"].as_str().expect("a command").to_string());
        }
        assert_eq!(commands.len(), 2);
        // The program and a hash of the rest.
        assert!(commands.iter().all(|command| command.starts_with("echo words:")), "{commands:?}");
        assert_ne!(commands[0], commands[1]);
    }
}

fn other_experiments_are_measured_under_two_commands() {
    let states = States::take();
    let (a, b) = (states.writing("A"), states.writing("B"));
    let few = ["--rounds", "1", "--budget", "600s"];
    let experiments: [&[&str]; 3] = [
        &["response", "--only", "wakeup"],
        &["clock", "overhead", "--calls", "getrusage", "--trials", "100"],
        &["cost", "--array", "4K", "--walk", "whole"],
    ];
    for experiment in experiments {
        let _ = fs::remove_dir_all(states.home.runs_folder());
        let behind = [&["--"], experiment, &few].concat();
        let said = states.run([&a, &b], &behind);
        assert_eq!(said.code, Some(0), "{experiment:?}: {}", said.err);
        assert_eq!(states.home.run_files().len(), 2, "{experiment:?}");
    }
}

fn commands_that_fail_or_leave_something_running_are_refused_with_the_reason() {
    let states = States::take();
    let cases: [([&str; 2], &str); 9] = [
        (["", "echo no such scheduler >&2; exit 3"], "ended with exit code 3: no such scheduler"),
        (["exit 4", ""], "'exit 4' ended with exit code 4, and wrote nothing"),
        (["kill -9 $$", "true"], "ended with signal 9"),
        (["/no/such/scheduler", "true"], "exit code 127"),
        (["sleep 1000 & true", "true"], "running, which was ended: let the command itself go on"),
        (["", "true"], "'true' ends by itself, and '' does not undo it"),
        (["true", ""], "'true' ends by itself, and '' does not undo it"),
        (
            ["sleep 88", "true"],
            "'true' ends by itself, and 'sleep 88', which goes on, does not undo",
        ),
        (["true", "sleep 88"], "let both go on, or both end by themselves"),
    ];
    for (commands, words) in cases {
        for behind in [&FEW[..], &["--", "run", "true"]] {
            assert_refused(&states.run(commands, behind), words);
            assert!(states.home.run_files().is_empty());
        }
    }
    assert_eq!(states.home.processes(), []);
}

fn a_command_that_was_to_go_on_and_ends_is_an_error() {
    let states = States::take();
    let mark = states.path("mark");
    // Its second start shows for how long it is waited for; its end comes before or after that.
    for (time, words) in [("0.5", "went on at first, and ended now"), ("2.3", WHILE_MEASURED)] {
        let _ = fs::remove_file(&mark);
        let ends = format!(
            "test -e {0} && {{ sleep {time}; echo gone >&2; exit; }}; touch {0}; sleep 1000",
            mark.display()
        );
        let run = ["--", "run", "--no-estimate", "-n", "5", "sleep 2"];
        assert_refused(&states.run([&ends, ""], &run), words);
    }
}

fn a_command_has_the_same_time_at_each_start_where_no_setting_shows_its_state() {
    let states = States::take();
    let mark = states.path("mark");
    // From its second start on it needs a second.
    let late =
        format!("test -e {0} && sleep 1; touch {0}; {1}", mark.display(), states.going_on("B"));
    let (said, sides, seen) = states.notes(["", &late]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let expected: Vec<&str> =
        sides.iter().map(|side| if side == "A" { "none" } else { "B" }).collect();
    assert_eq!(seen, expected);
}

fn the_command_of_a_is_run_once_more_where_it_has_failed() {
    let states = States::take();
    let count = states.path("count");
    for (succeeds_again, left) in [(true, "A"), (false, "B")] {
        let _ = fs::remove_file(&count);
        // The second of its starts fails; whether the third does differs.
        let limit = if succeeds_again { "-eq 2" } else { "-ge 2" };
        let a = format!(
            "echo start >> {0}; test $(wc -l < {0}) {limit} && {{ echo no >&2; exit 5; }}; {1}",
            count.display(),
            states.writing("A")
        );
        let run = ["--", "run", "--no-estimate", "-n", "5", "true"];
        let said = states.run([&a, &states.writing("B")], &run);
        assert_refused(&said, "ended with exit code 5: no");
        assert_eq!(states.text("count").lines().count(), 3);
        assert_eq!(states.text("state").trim(), left);
        assert_eq!(
            said.err.contains("the state of A is not back"),
            !succeeds_again,
            "{}",
            said.err
        );
    }
}

fn a_command_that_runs_as_another_user_is_refused() {
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    let states = States::take();
    // As sudo does: a program that becomes root for everybody.
    let sudo = states.path("sudo");
    let mut copy = Command::new("sh");
    copy.args(["-c", "cp \"$(command -v setpriv)\" \"$0\""]).arg(&sudo);
    assert!(copy.status().expect("sh").success());
    fs::set_permissions(&sudo, fs::Permissions::from_mode(0o4755)).expect("its rights");
    let readable = fs::Permissions::from_mode(0o777);
    fs::set_permissions(states.home.path(), readable).expect("its rights");
    let program = states.path("switchcost-copy");
    copy_program(PROGRAM.as_ref(), &program);
    let as_nobody = || {
        let mut command: Command = states.home.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command
    };
    let sudo = format!("{} --ruid 0", sudo.display());
    let tried = Said::of(as_nobody().args(["sh", "-c", &format!("{sudo} true")]));
    if tried.code != Some(0) {
        eprintln!("skipped: nobody becomes root here: {}", tried.err);
        return;
    }
    let line = format!("exec {sudo} sleep 20");
    let mut session = as_nobody();
    session.arg(&program).args(States::session(["", &line], &["--", "run", "true"]));
    let said = Said::of(&mut session);
    assert_refused(&said, "runs as another user (sudo?): run switchcost itself as root");
    assert!(said.err.contains("EPERM"), "{}", said.err);
    for process in states.home.processes() {
        process.kill();
    }
    states.home.wait_until_alone();
}

fn a_command_that_hangs_is_an_error() {
    if !is_nightly() {
        return;
    }
    let states = States::take();
    let mark = states.path("mark");
    let hangs = format!("test -e {0} && sleep 1000; touch {0}", mark.display());
    let said = states.run([&hangs, "true"], &FEW);
    assert_refused(&said, "did not end within");
    assert_eq!(states.home.processes(), []);
}

fn what_ignores_signals_or_hides_in_a_session_of_its_own_is_ended() {
    let states = States::take();
    let stubborn = "trap '' INT TERM; while :; do sleep 0.05; done";
    let hiding = "setsid sleep 1000 & setsid sh -c 'sleep 1000 & wait' & sleep 1000";
    let words = ["--", "run", "--no-estimate", "-n", "1", "true"];
    let said = states.run([stubborn, hiding], &words);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(states.home.processes(), []);
}

fn nothing_of_the_commands_is_left_whoever_is_killed() {
    let states = States::take();
    let hiding = "setsid sleep 1000 & sleep 1000";
    let (a, b) = (states.writing("A"), states.writing("B"));
    // The program by any signal, the guard, the keeper: the others see to the commands.
    for commands in [[a.as_str(), b.as_str()], [hiding, hiding]] {
        let _ = fs::write(states.path("state"), "A");
        for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
            let session = states.start(commands);
            kill_process(Pid::from_child(&session), signal).expect("the program is told to end");
            let _ = Said::at_end(session);
            states.home.wait_until_alone();
            wait_for("the state of A", || (states.text("state").trim() == "A").then_some(()));
            let _ = fs::remove_dir_all(states.home.runs_folder());
        }
        for name in ["switchcost-cmds", "switchcost-keep"] {
            let session = states.start(commands);
            kill_below(&session, name);
            let said = Said::at_end(session);
            assert_eq!(said.code, Some(2), "{name}: {} {}", said.out, said.err);
            let is_told = said.err.contains("the guard of the commands was killed");
            assert!(is_told, "{name}: {}", said.err);
            states.home.wait_until_alone();
            assert_eq!(states.text("state").trim(), "A");
            let _ = fs::remove_dir_all(states.home.runs_folder());
        }
    }
}

fn a_second_session_of_commands_is_refused() {
    let states = States::take();
    let session = states.start(["sleep 1000", "sleep 1001"]);
    let second = Home::new();
    let said = second.run(&States::session(["true", "true"], &FEW));
    assert_refused(&said, "another session of switchcost runs such commands");
    // Whoever else has the lock can be found.
    assert_refused(&said, "holds a lock on /proc/sys/kernel/ostype");
    assert!(!said.err.contains("was killed"), "{}", said.err);
    kill_process(Pid::from_child(&session), Signal::INT).expect("the program is told to end");
    let _ = Said::at_end(session);
    states.home.wait_until_alone();
}

fn a_gate_has_the_exit_codes_of_compare() {
    let states = States::take();
    let (a, b) = (states.writing("A"), states.writing("B"));
    // Twice the sleep under B.
    let state = states.path("state");
    let line = format!("sleep 0.02; grep -q A {} || sleep 0.2", state.display());
    let words = ["--fail-above", "5%", "--", "run", "--no-estimate", "-n", "5", &line];
    let said = states.run([&a, &b], &words);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("FAIL"), "{}", said.err);
    let same = [
        "--fail-above",
        "5%",
        "--allow-undecided",
        "--",
        "run",
        "--no-estimate",
        "-n",
        "2",
        "true",
    ];
    let said = states.run([&a, &b], &same);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("UNDECIDED"), "{}", said.err);
    // 1 would be FAIL.
    let full = [&["--json", "/dev/full"], &same[..]].concat();
    let said = states.run([&a, &b], &full);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("No space left"), "{}", said.err);
    // Nothing was measured.
    let to = states.path("gate.xml");
    let to = to.to_str().expect("UTF-8");
    let gate = ["--fail-above", "5%", "--junit", to, "--", "run", "--no-estimate"];
    let said = states.run([&a, &b], &[&gate[..], &["--prepare", "false", "true"]].concat());
    assert_eq!(said.code, Some(2), "{}", said.err);
    let text = fs::read_to_string(to).expect("a file");
    assert_eq!(text.matches("<error ").count(), 1, "{text}");
    assert_eq!(text.matches("<testcase ").count(), 1, "{text}");
}

fn the_cost_that_is_compared_may_be_cpu_time() {
    let states = States::take();
    let (a, b) = (states.writing("A"), states.writing("B"));
    let run = ["--", "run", "--no-estimate", "-n", "5", "true"];
    for (cost, figure) in [("cpu", "cpu"), ("switch", "real")] {
        let words = [&["--cost", cost, "--fail-above", "5%", "--json", "-"], &run[..]].concat();
        let record = states.run([&a, &b], &words).json();
        assert_eq!(record["gate"]["changes"][0]["of"], figure, "{record}");
    }
}

fn options_of_run_hold_under_both_states() {
    let states = States::take();
    let a = format!("{}; : {}", states.writing("A"), "x".repeat(60));
    let csv = states.path("r.csv");
    let to = csv.to_str().expect("UTF-8");
    // The first warm-up run fails.
    let line = format!("echo >>{0}; test $(wc -l <{0}) -ne 1", states.path("seen").display());
    let run = ["--", "run", "--no-estimate", "-w", "1", "-n", "5"];
    let words = [&run[..], &["--style", "color", "--export-csv", to, &line]].concat();
    let said = states.run([&a, &states.writing("B")], &words);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("warm-up run 1 ended with exit code 1"), "{}", said.err);
    assert!(said.err.contains("\u{1b}["), "{}", said.err);
    let text = states.text("r.csv");
    assert!(text.contains(&format!(": {}", "x".repeat(60))), "{text}");
}

fn what_does_not_go_together_is_refused_before_anything_is_run() {
    let states = States::take();
    let a = states.writing("A");
    let setting = ["--ab-setting", "/proc/sys/kernel/printk_ratelimit_burst", "1", "2"];
    let cases: [(&[&str], &str); 10] = [
        (&setting, "cannot be used with"),
        (&["--ab", "", "nice"], "cannot be used with"),
        (&["--", "trace"], "accepted: ring, cost, response, explain, clock, run"),
        (&["--", "measure"], "accepted: ring, cost, response, explain, clock, run"),
        (&["--", "ring", "--json", "-"], "--json behind --"),
        (&["--members", "2", "--", "ring"], "cannot be used with"),
        (&["--", "run", "true", "false"], "-- run: 2 commands"),
        (&["--", "run"], "nothing to run"),
        (&["--cost", "hop", "--", "run", "true"], "--cost hop: (accepted with run: switch, cpu)"),
        (&["--name", "x", "--", "run", "true"], "--name: what run measures is not stored"),
    ];
    for (words, why) in cases {
        assert_refused(&states.run([&a, &a], words), why);
        assert_eq!(states.text("state"), "", "{words:?}");
    }
    let said = states.home.run(&["compare", "base", "new", "--", "ring"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let said = states.home.run(&["compare", "--ab", "", "nice", "--", "response"]);
    assert_refused(&said, "--ab: prefixes are compared by rings");
}

fn the_hidden_commands_do_nothing_for_a_stranger() {
    let states = States::take();
    for name in ["keep-commands", "guard-commands"] {
        let said = states.home.run(&[name]);
        assert_eq!(said.code, Some(1), "{name}");
        assert!(said.err.contains("internal command") || said.err.is_empty(), "{}", said.err);
    }
}

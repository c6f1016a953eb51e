//! However a run ends, nothing that was measured is lost, nothing of ours is left, and it is told.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::group::Group;
use crate::common::{
    Home, PROGRAM, Process, Said, allowed_cpus, copy_program, lines_of, order_of, seed_of_order,
    wait_for,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use testing::{Need, lacks, repeats, skip};

const SMALL: [&str; 11] = [
    "ring",
    "--verbose",
    "--wide",
    "--members",
    "2",
    "--rounds",
    "1",
    "--laps",
    "200",
    "--budget",
    "600s",
];

/// A seed with which the ring of 64 is the last of 1, 2 and 64 in the first round: then the others
/// are measured by the time that it runs.
fn seed_that_ends_with_64() -> &'static str {
    static SEED: OnceLock<String> = OnceLock::new();
    SEED.get_or_init(|| seed_of_order("2,64", |sizes| sizes.last() == Some(&64)))
}

/// A run that is in the midst of its ring of 64, which has a hundred times as much to do as whoever
/// ends it, with the rings of one and two already measured.
struct Midst {
    home: Home,
    child: Child,
    file: PathBuf,
    worker: Process,
}

impl Midst {
    fn of_run(more: &[&str]) -> Self {
        let home = Home::new();
        let seed = seed_that_ends_with_64();
        let large = [
            "ring",
            "--verbose",
            "--wide",
            "--members",
            "2,64",
            "--laps",
            "20000",
            "--rounds",
            "1",
        ];
        let mut command = home.command(PROGRAM);
        command.args(large).args(["--seed", seed, "--budget", "600s"]).args(more);
        // A group of its own, as a shell gives to each job.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the program starts");
        let file = home.wait_for_sample();
        let worker = home.wait_for_worker(&mut child, 64).expect("a ring that goes on");
        Self { home, child, file, worker }
    }

    fn controller(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Members that are children of the worker, in the order of the ring.
    fn member(&self, number: usize) -> Process {
        let (worker, home) = (self.worker.pid, &self.home);
        let list = fs::read_to_string(format!("/proc/{worker}/task/{worker}/children"));
        let pids: Option<Vec<i32>> =
            list.ok().map(|l| l.split_whitespace().filter_map(|pid| pid.parse().ok()).collect());
        // Without that file (CONFIG_PROC_CHILDREN) by process id: they are forked in order.
        let pids = pids.unwrap_or_else(|| {
            let all = home.processes();
            all.iter().filter(|p| p.parent == worker).map(|p| p.pid).collect()
        });
        Process { pid: pids[number - 1], parent: worker, is_worker: true }
    }

    /// Waits for the end of the controller, then until none of its processes is left.
    fn end(mut self) -> (Home, PathBuf, Said) {
        // Read meanwhile, as they may be more than a pipe takes; their end is waited for last, as a
        // worker that is left behind would hold them open.
        let stdout = read_apart(self.child.stdout.take());
        let stderr = read_apart(self.child.stderr.take());
        let status = self.child.wait().expect("the controller ends");
        self.home.wait_until_alone();
        let [stdout, stderr] = [stdout, stderr].map(|read| read.join().expect("an output"));
        (self.home, self.file, Output { status, stdout, stderr }.into())
    }
}

fn read_apart(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("a pipe");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("an output");
        bytes
    })
}

fn cases_in(file: &Path) -> Vec<u64> {
    let mut cases: Vec<u64> = order_of(file).iter().map(|(_, case)| *case).collect();
    cases.sort_unstable();
    cases
}

#[test]
fn a_killed_controller_leaves_a_readable_file_and_no_process() {
    let run = Midst::of_run(&[]);
    assert!(run.home.processes().len() >= 65, "controller, worker and 63 members");
    kill_process(run.controller(), Signal::KILL).expect("the controller is killed");
    let (home, file, said) = run.end();
    assert_eq!((said.code, &*said.out), (None, ""));
    assert_eq!(cases_in(&file), [0, 1]);
    assert!(lines_of(&file).iter().all(|line| line.get("end").is_none()));
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]);
    assert_eq!((shown.code, &*shown.err), (Some(0), ""));
    assert_eq!(shown.sizes(), ["1", "2", "64"]);
    assert!(shown.out.contains("stopped: the run was killed"), "{}", shown.out);
}

#[test]
fn a_controller_of_threads_leaves_no_process_either() {
    let home = Home::new();
    let long = [
        "ring",
        "--verbose",
        "--wide",
        "--members",
        "2",
        "--kind",
        "thread",
        "--laps",
        "100000000",
    ];
    let mut child = home.start(&long);
    wait_for("a worker", || home.processes().iter().any(|p| p.is_worker).then_some(()));
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
    home.wait_until_alone();
}

/// At whatever moment: before the first sample, between two workers, while one forks its members.
/// Moments are parts of what a whole run takes here, closer to each other the earlier they are.
#[test]
fn a_controller_killed_at_any_moment_leaves_nothing() {
    let rings = ["--members", "2,64,200", "--laps", "9", "--rounds", "1", "--budget", "600s"];
    let rings = [&["ring"], &rings[..]].concat();
    let begun = Instant::now();
    assert_eq!(Home::new().run(&rings).code, Some(0));
    let (whole, count) = (begun.elapsed(), repeats(9, 48));
    for number in 0..count {
        let home = Home::new();
        let mut child = home.start(&rings);
        sleep(whole * (number * number) / (count * count));
        child.kill().expect("the controller is killed");
        child.wait().expect("the controller has ended");
        home.wait_until_alone();
        for file in home.run_files() {
            let said = home.run(&["runs", "show", &file.display().to_string()]);
            assert_eq!(said.code, Some(0), "{number} of {count}: {said:?}");
        }
    }
}

/// Killed when the header is written and the file has no name yet. A file with a name and nothing
/// in it could not be read.
#[test]
fn a_controller_killed_while_it_makes_the_file_leaves_none() {
    if lacks([Need::Program("strace")]) {
        return;
    }
    let home = Home::new();
    let mut command = home.command("strace");
    let said = Said::of(
        command
            .args(["-qq", "-o", "/dev/null", "-e", "inject=linkat:signal=KILL:when=1", PROGRAM])
            .args(["ring", "--members", "2", "--laps", "50"]),
    );
    assert_eq!(said.code, None, "it was not killed: {said:?}");
    assert_eq!(home.run_files(), Vec::<PathBuf>::new());
}

fn assert_stopped_by(signal: Signal, code: i32, send: impl Fn(&Midst)) {
    let run = Midst::of_run(&[]);
    send(&run);
    let (home, file, said) = run.end();
    assert_eq!(said.code, Some(code), "{signal:?}: {said:?}");
    assert_eq!(said.err, "", "{signal:?}");
    assert_eq!(said.sizes(), ["1", "2", "64"]);
    let dash = "-".to_string();
    assert!(said.table()[..2].iter().all(|row| row[1] != dash), "{}", said.out);
    assert_eq!(said.table()[2][1], dash, "{}", said.out);
    assert!(said.out.contains("stopped: interrupted, after "), "{}", said.out);
    let lines = lines_of(&file);
    let end = lines.iter().rfind(|line| line.get("end").is_some()).expect("an end");
    assert_eq!(end["end"]["reason"], "interrupted", "{end}");
    assert!(lines.iter().all(|line| line.get("failure").is_none()), "stopping is no failure");
    assert_eq!(home.run(&["runs", "show", "last", "--verbose", "--wide"]).out, said.out);
    let listed = home.run(&["runs", "list"]).out;
    assert!(listed.contains("interrupted (resume)"), "{listed}");
}

#[test]
fn an_interrupted_run_prints_what_it_has() {
    assert_stopped_by(Signal::INT, 130, |run| {
        kill_process(run.controller(), Signal::INT).expect("a signal");
    });
}

#[test]
fn a_terminated_run_prints_what_it_has() {
    assert_stopped_by(Signal::TERM, 143, |run| {
        kill_process(run.controller(), Signal::TERM).expect("a signal");
    });
}

/// Ctrl-C on a terminal reaches the whole group: were the worker in it, its death could be seen
/// before the signal is, and pass for a failure.
#[test]
fn ctrl_c_reaches_the_whole_group() {
    assert_stopped_by(Signal::INT, 130, |run| {
        assert_ne!(run.worker.group(), u64::from(run.child.id()));
        kill_process_group(run.controller(), Signal::INT).expect("a signal");
    });
}

/// It waits longer than it has run for, whoever is at work on the CPU meanwhile. A stop between two
/// samples is seen by nobody: then once more.
#[test]
fn a_member_that_was_stopped_is_told() {
    let is_told = || {
        let home = Home::new();
        let args = ["ring", "--verbose", "--members", "2", "--placement", "same"];
        let begun = Instant::now();
        let mut child = home.start(
            &[&args[..], &["--laps", "20000", "--rounds", "1", "--budget", "600s"]].concat(),
        );
        let worker = home.wait_for_worker(&mut child, 2);
        // The solo ring has no member beside its leader.
        let of_it = |other: &Process| worker.is_some_and(|worker| other.parent == worker.pid);
        let member = home.processes().into_iter().find(of_it);
        if let Some(member) = member.and_then(|member| Pid::from_raw(member.pid)) {
            // One that has gone meanwhile is one that was not stopped.
            let _ = kill_process(member, Signal::STOP);
            // One that stands for longer is given up, with its ring.
            sleep(begun.elapsed().min(Duration::from_secs(3)));
            let _ = kill_process(member, Signal::CONT);
        }
        let said = Said::at_end(child);
        assert_eq!(said.code, Some(0), "{}", said.err);
        // On a machine that is busy too, it may be very noisy.
        let verdict = ["machine: noisy", "machine: very"].map(|of| said.out.contains(of));
        let told = "a member was stopped by a signal";
        said.out.contains(told) && verdict.contains(&true)
    };
    assert!((0..20).any(|_| is_told()), "no stop was told");
}

fn assert_given_up(who: &str, stopped: impl Fn(&Midst) -> Process) {
    let run = Midst::of_run(&["--csv", "-"]);
    let process = stopped(&run).pid;
    let pid = Pid::from_raw(process).expect("a process");
    kill_process(pid, Signal::STOP).expect("a living process");
    let (home, file, said) = run.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = format!("error: ring of 64: {who} (process {process}) was stopped by a signal");
    assert!(said.error().starts_with(&told), "{}", said.err);
    let rows = said.rows();
    assert!(rows.of_members(1).count() >= 1 && rows.of_members(2).count() >= 1);
    assert_eq!(cases_in(&file), [0, 1]);
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]).out;
    assert!(shown.contains("not measured: ring of 64: "), "{shown}");
}

/// Its own deadline (SIGALRM) waits with it.
#[test]
fn a_worker_that_was_stopped_and_not_continued_costs_its_ring_and_no_other() {
    assert_given_up("the worker", |run| run.worker);
}

#[test]
fn so_does_a_member() {
    assert_given_up("a member of the ring", |run| run.member(40));
}

/// As under nohup(1), or in a script behind an `&`.
#[test]
fn a_run_that_ignores_a_signal_goes_on() {
    let home = Home::new();
    // More precise than it can be: it ends by its rounds.
    let ring = "ring --members 2 --laps 500 --rounds 6 --precision 0.01% --budget 600s";
    let mut shell = home.command("sh");
    shell.args(["-c", &format!("trap '' INT; exec {PROGRAM} {ring}")]);
    let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh(1) starts");
    let file = home.wait_for_sample();
    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = lines_of(&file);
    let end = lines.iter().rfind(|line| line.get("end").is_some()).expect("an end");
    assert_eq!(end["end"]["reason"], "rounds_done", "{end}");
}

#[test]
fn an_interrupted_run_can_be_resumed() {
    let home = Home::new();
    // More precise than it can be: it goes on.
    let long = ["--laps", "2000", "--budget", "600s", "--precision", "0.01%"];
    let args = ["ring", "--verbose", "--wide", "--members", "2"];
    let child = home.start(&[&args[..], &long].concat());
    let file = home.wait_for_sample();
    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal");
    assert_eq!(Said::at_end(child).code, Some(130));
    let before = order_of(&file);
    let more = ["--budget", "600s", "--rounds", "1"];
    let resumed = home.run(&[&["runs", "resume", "last"], &more[..]].concat());
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let after = order_of(&file);
    assert_eq!(after[..before.len()], before);
    assert!(after[before.len()..].iter().all(|(round, _)| *round > before[before.len() - 1].0));
    assert!(after.len() > before.len());
}

#[test]
fn a_killed_worker_costs_its_ring_and_no_other() {
    let run = Midst::of_run(&["--csv", "-"]);
    run.worker.kill();
    let (home, file, said) = run.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.error().starts_with("error: ring of 64: "), "{}", said.err);
    assert!(said.error().contains("killed by signal 9"), "{}", said.err);
    let rows = said.rows();
    assert!(rows.of_members(1).count() >= 1 && rows.of_members(2).count() >= 1);
    assert_eq!(rows.of_members(64).count(), 0);
    assert_eq!(cases_in(&file), [0, 1]);
    assert!(lines_of(&file).iter().any(|line| line.get("failure").is_some()));
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]).out;
    assert!(
        shown.contains("not measured: ring of 64: the worker was killed by signal 9"),
        "{shown}"
    );
}

#[test]
fn a_killed_member_is_named() {
    let run = Midst::of_run(&[]);
    run.member(40).kill();
    let (_home, file, said) = run.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    let words = "error: ring of 64: member 40 ended early: it was killed by signal 9";
    assert!(said.error().starts_with(words), "{}", said.err);
    assert_eq!(said.sizes(), ["1", "2", "64"]);
    assert_eq!(cases_in(&file), [0, 1]);
}

/// The design: a crash of a worker costs one sample, not the run. Without its solo ring no other
/// ring has a cost, so that this is the dearest one to lose.
#[test]
fn a_killed_worker_of_the_ring_of_one_costs_a_round_and_not_the_run() {
    let seed = seed_of_order("2", |sizes| sizes == [1, 2]);
    let killed = |laps: u32| {
        let home = Home::new();
        let laps = laps.to_string();
        let long = ["--members", "2", "--laps", &laps, "--rounds", "3", "--budget", "600s"];
        let args = [&["ring", "--verbose", "--wide", "--seed", &seed], &long[..]].concat();
        let mut child = home.start(&args);
        let controller = child.id() as i32;
        let own = |p: &Process| p.is_worker && p.parent == controller;
        wait_for("a worker, or the end", || {
            let worker = home.processes().into_iter().find(own);
            worker.map(|worker| worker.kill()).or(child.try_wait().expect("wait4").map(|_| ()))
        });
        Said::at_end(child)
    };
    // With few laps it may have ended before it is killed, and another worker has its turn.
    let mut all = [2_000, 10_000, 50_000, 250_000].into_iter().map(killed);
    let of_one = |said: &Said| said.err.contains("ring of 1: the worker was killed by signal 9");
    let said = all.find(of_one).expect("one of them lives long enough");
    assert_eq!(said.code, Some(1), "{}", said.error());
    let two = &said.table()[1];
    assert_eq!((&*two[0], two.last().map(String::as_str)), ("2", Some("3")), "{}", said.out);
    assert!(said.out.contains("stopped: all rounds are done"), "{}", said.out);
}

#[test]
fn the_controller_keeps_off_the_cpu_that_is_measured() {
    if lacks([Need::TwoCpus]) {
        return;
    }
    let run = Midst::of_run(&[]);
    let cpus = |pid: i32, task: &str| -> String {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{task}/status"));
        let status = status.expect("a status file");
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list:"));
        line.expect("a list of CPUs").split_whitespace().nth(1).expect("a CPU").to_string()
    };
    let measured = cpus(run.worker.pid, &run.worker.pid.to_string());
    let member = run.member(63).pid;
    assert_eq!(cpus(member, &member.to_string()), measured);
    let controller = run.child.id() as i32;
    let tasks = fs::read_dir(format!("/proc/{controller}/task")).expect("tasks");
    let tasks: Vec<_> = tasks.flatten().map(|task| task.file_name()).collect();
    // It may fork: it has no other thread.
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    for task in tasks {
        let task = task.to_string_lossy();
        assert_ne!(cpus(controller, &task), measured, "a thread of the controller");
        assert!(!cpus(controller, &task).contains(['-', ',']) || allowed_cpus().len() > 2);
    }
    kill_process(run.controller(), Signal::TERM).expect("a signal");
    run.end();
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let home = Home::new();
    for args in
        [&SMALL[..], &[&SMALL[..], &["--csv", "-"]].concat(), &["help", "man"], &["runs", "list"]]
    {
        let mut child = home.start(args);
        drop(child.stdout.take());
        let said = Said::at_end(child);
        assert!(!said.err.contains("panicked") && !said.err.contains("error"), "{}", said.err);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
    }
}

#[test]
fn nobody_at_standard_error_is_no_failure() {
    let home = Home::new();
    // With --csv - the table goes there.
    let mut child = home.start(&[&SMALL[..], &["--csv", "-"]].concat());
    drop(child.stderr.take());
    let said = Said::at_end(child);
    assert_eq!(said.rows().rings(), [(0, 1), (0, 2)]);
    assert_eq!(said.code, Some(0));
}

#[test]
fn a_full_standard_output_is_told() {
    let home = Home::new();
    let full = || File::options().write(true).open("/dev/full").expect("/dev/full");
    for args in
        [&SMALL[..], &[&SMALL[..], &["--json", "-"]].concat(), &["runs", "list"], &["help", "man"]]
    {
        let said = Said::of(home.command(PROGRAM).args(args).stdout(full()));
        assert_eq!(said.code, Some(1), "{args:?}: {said:?}");
        assert!(said.error().contains("No space left on device"), "{}", said.err);
    }
    assert_eq!(home.run_files().len(), 2, "the runs are stored all the same");
}

#[test]
fn a_run_that_cannot_be_stored_is_printed_all_the_same() {
    let home = Home::new();
    let file = home.path().join("file");
    fs::write(&file, "").expect("a file");
    for place in ["/dev/null", &file.display().to_string()] {
        let said = Said::of(home.command(PROGRAM).args(SMALL).env("XDG_DATA_HOME", place));
        assert_eq!(said.code, Some(1), "{said:?}");
        let words = "error: the run is not stored: cannot make the folder ";
        assert!(said.error().starts_with(words), "{}", said.err);
        assert!(said.error().contains(&format!("{place}/switchcost/runs")), "{}", said.err);
        assert!(said.error().contains("Not a directory"), "{}", said.err);
        assert_eq!(said.sizes(), ["1", "2"]);
        assert_eq!(said.out.lines().last(), Some("run file: not stored"));
    }
}

/// Whether a mount namespace of one's own can be had.
fn can_mount() -> bool {
    if lacks([Need::Root, Need::Program("unshare")]) {
        return false;
    }
    let tried = Command::new("unshare").args(["--mount", "true"]).output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        skip(Need::Mounts, "unshare --mount is refused");
    }
    can
}

#[test]
fn a_full_disk_costs_the_file_but_not_the_measurement() {
    if !can_mount() {
        return;
    }
    // The mount goes with its namespace, however this ends. What the file holds is asked inside.
    let script = r#"mount -t tmpfs -o size=16k none "$XDG_DATA_HOME" || exit 99
        "$0" "$@"; code=$?; "$0" runs show last >&2 || exit 98; exit $code"#;
    let home = Home::new();
    // The header takes two pages of four; a round has two samples of 400 bytes or more.
    let many = ["--members", "2", "--rounds", "20", "--laps", "1", "--budget", "600s"];
    let mut command = home.command("unshare");
    command
        .args(["--mount", "sh", "-c", script, PROGRAM, "ring", "--verbose", "--wide"])
        .args(many);
    let said = Said::of(&mut command);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.error().contains("the run is not stored any further"), "{}", said.err);
    assert!(said.error().contains("No space left on device"), "{}", said.err);
    assert_eq!(said.sizes(), ["1", "2"]);
    for row in said.table() {
        assert_eq!(row.last().map(String::as_str), Some("20"), "all rounds: {}", said.out);
    }
    assert_eq!(said.out.lines().last(), Some("run file: not stored"));
    // The program shown from the full disk has the first rounds.
    assert!(said.err.contains("stopped: the run was killed"), "{}", said.err);
}

#[test]
fn a_full_control_group_is_named_and_smaller_rings_are_kept() {
    let Some(group) = Group::with_tasks(30) else {
        return skip(Need::ControlGroup, "none can be made");
    };
    let home = Home::new();
    let script = r#"echo $$ > "$GROUP/cgroup.procs" && exec "$0" "$@""#;
    let mut command = home.command("sh");
    command.args([
        "-c",
        script,
        PROGRAM,
        "ring",
        "--wide",
        "--verbose",
        "--members",
        "2,64,100",
        "--rounds",
        "1",
        "--budget",
        "600s",
    ]);
    let said = Said::of(command.args(["--laps", "200"]).env("GROUP", &group.0));
    assert_eq!(said.code, Some(1), "{said:?}");
    let error = said.err.lines().find(|line| line.contains("ring of 64")).unwrap_or_default();
    let raise = format!("to raise it: write more to {}/pids.max", group.0.display());
    for words in ["fork failed at member ", "pids.max of the control group is 30", &raise] {
        assert!(said.err.contains(words), "no {words:?} in {}", said.err);
    }
    assert!(!said.err.contains("panicked"), "{}", said.err);
    assert!(error.is_empty() || error.starts_with("error: ring of 64: "), "{error}");
    let table = said.table();
    assert_eq!(said.sizes(), ["1", "2", "64", "100"]);
    let is_measured = |row: &Vec<String>| !row.join(" ").contains("not measured");
    let measured: Vec<bool> = table.iter().map(is_measured).collect();
    assert_eq!(measured, [true, true, false, false], "{}", said.out);
    assert!(said.out.contains("not measured: ring of 64: "), "{}", said.out);
    home.wait_until_alone();
}

#[test]
fn threads_without_descriptors_are_told_the_limit() {
    if lacks([Need::Program("prlimit")]) {
        return;
    }
    let home = Home::new();
    let mut command = home.command("prlimit");
    command.args([
        "--nofile=64:64",
        PROGRAM,
        "ring",
        "--wide",
        "--verbose",
        "--kind",
        "thread",
        "--members",
        "2,200",
    ]);
    let said = Said::of(command.args(["--rounds", "1", "--laps", "200", "--budget", "600s"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    for words in ["error: ring of 200: ", "RLIMIT_NOFILE is 64", "to raise it: ulimit -n 128"] {
        assert!(said.error().contains(words), "no {words:?} in {}", said.err);
    }
    assert_eq!(said.sizes(), ["1", "2", "200"]);
    let is_measured = |row: usize| !said.table()[row].join(" ").contains("not measured");
    assert!(is_measured(1), "the ring of two is kept");
    assert!(!is_measured(2), "{}", said.out);
}

/// The program as a user without any privilege, who has no other process; by root only, others
/// skip it.
fn as_nobody(home: &Home, wrap: &[&str], args: &[&str]) -> Option<Said> {
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return None;
    }
    let user = (60_000 + std::process::id() % 5_000).to_string();
    // The target folder may be closed to others.
    let copy = home.path().join("program");
    copy_program(PROGRAM.as_ref(), &copy);
    let open = |path: &Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        fs::set_permissions(path, mode).expect("permissions");
    };
    open(home.path());
    open(&copy);
    let mut command = home.command("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).args(wrap);
    Some(Said::of(command.arg(copy).args(args)))
}

/// Counting a CPU's events needs one; the ring goes on without.
#[test]
fn a_ring_whose_events_may_not_be_counted_is_measured_all_the_same() {
    let home = Home::new();
    let args = [&SMALL[..], &["--events", "all"]].concat();
    let Some(said) = as_nobody(&home, &[], &args) else {
        return;
    };
    assert_eq!(said.code, Some(0), "{said:?}");
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim().parse::<i32>().is_ok_and(|level| level > 0) {
        assert!(said.out.contains("not counted: ") && said.out.contains("CAP_PERFMON"), "{said:?}");
    }
}

#[test]
fn a_ring_needs_no_privilege() {
    let home = Home::new();
    let Some(said) = as_nobody(&home, &[], &[&SMALL[..], &["--csv", "-"]].concat()) else {
        return;
    };
    assert_eq!(said.code, Some(0), "{said:?}");
    for row in said.rows().of_members(2) {
        assert_eq!(row.number("hops"), 400);
        assert!(row.switches() >= 380, "{row:?}");
    }
    assert_eq!(home.run_files().len(), 1);
}

#[test]
fn a_user_with_too_many_processes_is_told_the_limit() {
    let home = Home::new();
    let args =
        ["ring", "--wide", "--verbose", "--members", "2,64", "--rounds", "1", "--laps", "200"];
    let args = [&args[..], &["--budget", "600s"]].concat();
    let Some(said) = as_nobody(&home, &["prlimit", "--nproc=20:20"], &args) else {
        return;
    };
    assert_eq!(said.code, Some(1), "{said:?}");
    for words in ["error: ring of 64: ", "RLIMIT_NPROC is 20", "to raise it: ulimit -u 40"] {
        assert!(said.error().contains(words), "no {words:?} in {}", said.err);
    }
    assert!(!said.table()[1].join(" ").contains("not measured"), "the ring of two is kept");
}

#[test]
fn a_ring_that_cannot_be_had_is_not_begun() {
    let home = Home::new();
    let args = ["ring", "--members", "2,4194303", "--rounds", "1", "--laps", "200"];
    let said = home.run(&[&args[..], &["--budget", "600s"]].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("4194303 members cannot be made: "), "{}", said.err);
    assert_eq!(
        said.out.matches("not measured").count(),
        2,
        "the ring of two is kept: {}",
        said.out
    );
}

#[test]
fn a_refused_policy_says_what_it_needs() {
    for policy in ["fifo", "rr"] {
        let home = Home::new();
        let args = [&SMALL[..], &["--policy", policy]].concat();
        let Some(said) = as_nobody(&home, &["prlimit", "--rtprio=0:0"], &args) else {
            return;
        };
        assert_eq!((said.code, &*said.out), (Some(1), ""), "{said:?}");
        for words in [policy, "CAP_SYS_NICE", "RLIMIT_RTPRIO of 1 or more"] {
            assert!(said.error().contains(words), "no {words:?} in {}", said.err);
        }
        assert_eq!(home.run_files().len(), 0);
    }
}

/// The memory suffices for one thread more, or for none: that is told. A limit that ends Rust's
/// own start, before anything of the program runs, says nothing about it.
#[test]
fn a_session_without_a_thread_to_be_had_is_told_so() {
    if lacks([Need::Program("prlimit")]) {
        return;
    }
    let home = Home::new();
    let args =
        ["compare", "--ab", "", "nice -n 1", "--members", "2", "--rounds", "1", "--laps", "9"];
    let under = |limit: u64| {
        let limit = format!("--as={limit}");
        let mut command = home.command("timeout");
        // Who prints where a thread has panicked needs memory, too.
        let command = command.env("RUST_BACKTRACE", "1").args(["60", "prlimit", &limit, PROGRAM]);
        let said = Said::of(command.args(args));
        assert_ne!(said.code, Some(124), "{limit}: it stands");
        // Before main std needs the same of its first thread.
        let is_of_std =
            |line: &str| line.contains("thread 'main'") && line.contains("/library/std/src/sys/");
        let ours = |line: &&str| line.contains("panicked at") && !is_of_std(line);
        assert_eq!(said.err.lines().find(ours), None, "{limit}: {}", said.err);
        said
    };
    let up_to_what_suffices = (26_u64..)
        .map(|of| (of << 20, under(of << 20)))
        .take_while(|(_, said)| said.out.is_empty());
    let without = up_to_what_suffices.filter(|(_, said)| said.err.contains("no thread"));
    let most = without.map(|(limit, _)| limit).last().expect("a limit without a thread");
    // Just above the last of these there is room for its stack, and for nothing else.
    let (mut without, mut with) = (most, most + (1 << 20));
    while with - without > 4 << 10 {
        let between = (without + with) / 2 / 4096 * 4096;
        match under(between).err.contains("no thread") {
            true => without = between,
            false => with = between,
        }
    }
    (with..with + (32 << 10)).step_by(4 << 10).for_each(|limit| drop(under(limit)));
}

/// Without a home nothing is stored, and all else is done.
#[test]
fn without_a_home_files_are_read_and_rings_measured() {
    let home = Home::new();
    let run = crate::common::stored::stored_run(&home, "run.jsonl", |_| {});
    let bare = ["env", "-u", "HOME", "-u", "XDG_DATA_HOME", "-u", "XDG_STATE_HOME"];
    for args in
        [&["runs", "show", &*run][..], &["report", &run, "-o", "-"], &["compare", &run, &run]]
    {
        let Some(said) = as_nobody(&home, &bare, args) else {
            return;
        };
        assert!(!said.out.is_empty() && !said.err.contains("no home"), "{args:?}: {said:?}");
    }
    let said = as_nobody(&home, &bare, &SMALL).expect("root");
    assert!(said.err.contains("the run is not stored: there is no home directory"), "{said:?}");
    assert_eq!((said.code, said.table().len()), (Some(1), 2), "{said:?}");
}

#[test]
fn without_proc_stored_runs_are_read_and_written() {
    // For a /proc of its own.
    if lacks([Need::Root, Need::Program("unshare")]) {
        return;
    }
    let home = Home::new();
    let run = crate::common::stored::stored_run(&home, "run.jsonl", |_| {});
    let file = home.path().join("out").display().to_string();
    let without = |args: &[&str]| {
        let script = "mount -t tmpfs none /proc || exit 77; exec \"$0\" \"$@\"";
        Said::of(home.command("unshare").args(["-m", "sh", "-c", script, PROGRAM]).args(args))
    };
    for args in [
        &["runs", "show", &*run][..],
        &["runs", "export", &run, "-o", &file],
        &["runs", "list", "--history"],
    ] {
        let said = without(args);
        if said.code == Some(77) {
            return skip(Need::Mounts, "nothing can be mounted here");
        }
        assert_eq!((said.code, &*said.err), (Some(0), ""), "{args:?}");
    }
    assert!(fs::read_to_string(&file).is_ok_and(|text| text.ends_with("}\n")));
    let said = without(&SMALL);
    assert!(!said.err.contains("panicked") && said.code.is_some(), "{said:?}");
}

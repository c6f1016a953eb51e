//! What the tests of the program share: a home of its own for each test, and the program run in it.

// Every test file is a crate of its own and uses its own part of this one.
#![allow(dead_code)]

pub mod commands;
pub mod group;
pub mod schema;
pub mod signals;
pub mod speed;
pub mod stored;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use testing::Need;
pub use testing::{has, wait_for};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_switchcost");

/// Environment variable that tells the processes of one test from all others.
const MARK: &str = "SWITCHCOST_TEST_MARK";

/// With it plans are the same however busy the CPUs are.
pub const IGNORE_BUSY: &str = "SWITCHCOST_IGNORE_BUSY";

/// Columns of a terminal that breaks no line, so that texts can be searched.
const UNBROKEN: &str = "100000";

/// A data directory that goes with the test, and the processes that were started in it.
pub struct Home {
    folder: TempDir,
    mark: String,
}

impl Home {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder, mark: format!("{}-{number}", std::process::id()) }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `program` in this home, with no signal ignored or blocked; for the program under test behind
    /// a wrapper such as `taskset`.
    pub fn command(&self, program: &str) -> Command {
        let mut command = signals::command(program);
        command
            .env("XDG_DATA_HOME", self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("HOME", self.path())
            .env("COLUMNS", UNBROKEN)
            // Tests know the cases of their plans, whoever else uses the CPUs.
            .env(IGNORE_BUSY, "1")
            .env(MARK, &self.mark)
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR")
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end where nobody says how wide the terminal is.
    pub fn run_in_eighty_columns(&self, args: &[&str]) -> Said {
        Said::of(self.command(PROGRAM).args(args).env_remove("COLUMNS"))
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Said {
        Said::of(self.command(PROGRAM).args(args))
    }

    /// Measures a small ring, which must succeed: `args` bound it by rounds and laps, so that
    /// counts are known.
    pub fn measure(&self, args: &[&str]) -> Said {
        let said = self.run(&[&["ring", "--verbose", "--wide", "--budget", "600s"], args].concat());
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        said
    }

    /// Starts the program with both its outputs piped.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(PROGRAM);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    /// Where run files are kept; it need not exist.
    pub fn runs_folder(&self) -> PathBuf {
        self.path().join("switchcost/runs")
    }

    /// The run files, sorted by name.
    pub fn run_files(&self) -> Vec<PathBuf> {
        let Ok(files) = fs::read_dir(self.runs_folder()) else { return Vec::new() };
        let mut files: Vec<_> = files.flatten().map(|file| file.path()).collect();
        files.sort();
        files
    }

    /// The one run file that there is.
    pub fn run_file(&self) -> PathBuf {
        let files = self.run_files();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    /// Waits until the run file holds a sample; gives the file.
    pub fn wait_for_sample(&self) -> PathBuf {
        wait_for("a stored sample", || {
            let file = self.run_files().pop()?;
            let text = fs::read_to_string(&file).ok()?;
            text.contains("\n{\"sample\":").then_some(file)
        })
    }

    /// All living processes that were started in this home, by whomever.
    pub fn processes(&self) -> Vec<Process> {
        let mark = format!("{MARK}={}", self.mark);
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(|pid| Process::read(pid, &mark)).collect()
    }

    /// Waits until a process of this home runs the program of this name: the launcher's children
    /// are there before it does. Gives all of them.
    pub fn wait_for_command(&self, name: &str) -> Vec<Process> {
        let named = |process: &Process| process.name().as_deref() == Some(name);
        wait_for("the command", || Some(self.processes()).filter(|all| all.iter().any(named)))
    }

    /// The worker of `controller` once it has `members` members, two or more, that are processes
    /// of their own, and each of them has passed the token on a hundred times. Absent if the run has
    /// ended before that was seen.
    pub fn wait_for_worker(&self, controller: &mut Child, members: usize) -> Option<Process> {
        let own = controller.id() as i32;
        let seen = || {
            let all = self.processes();
            let is_worker = |p: &&Process| p.parent == own && p.is_worker;
            let worker = *all.iter().find(is_worker)?;
            let others: Vec<&Process> = all.iter().filter(|p| p.parent == worker.pid).collect();
            // The last one joins last, and until the laps begin it waits a few times at most.
            let turns = || others.iter().all(|other| other.waits() >= Some(100));
            (others.len() + 1 == members && turns()).then_some(worker)
        };
        wait_for("a worker in the midst of its laps, or the end", || {
            seen().map(Some).or(controller.try_wait().expect("wait4").map(|_| None))
        })
    }

    /// Waits until no process of this home is left.
    pub fn wait_until_alone(&self) {
        wait_for("end of the processes that were started", || {
            self.processes().is_empty().then_some(())
        });
    }
}

impl Drop for Home {
    /// A test that failed must not leave its ring turning.
    fn drop(&mut self) {
        for process in self.processes() {
            process.kill();
        }
    }
}

/// A living process of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub is_worker: bool,
}

impl Process {
    fn read(pid: i32, mark: &str) -> Option<Self> {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|byte| *byte == 0).find(|variable| *variable == mark.as_bytes())?;
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let is_worker = arguments.split(|byte| *byte == 0).nth(1) == Some(b"worker");
        let parent = stat_field(pid, 4)?.parse().ok()?;
        Some(Self { pid, parent, is_worker })
    }

    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid).expect("a process id");
        // One that has gone meanwhile is gone.
        let _ = kill_process(pid, signal);
    }

    /// Its scheduling policy (sched(7)) and real-time priority.
    pub fn policy(&self) -> (u64, u64) {
        self.try_policy().expect("a living process")
    }

    /// The same; absent once it has ended.
    pub fn try_policy(&self) -> Option<(u64, u64)> {
        self.field(41).zip(self.field(40))
    }

    /// The CPUs that it may run on, as a list; absent once it has ended.
    pub fn cpus(&self) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(list.trim().to_string())
    }

    /// Its process group.
    pub fn group(&self) -> u64 {
        self.field(5).expect("a living process")
    }

    fn field(&self, number: usize) -> Option<u64> {
        stat_field(self.pid, number)?.parse().ok()
    }

    /// CPU time that it has had, in ticks of the kernel's clock.
    pub fn cpu_ticks(&self) -> u64 {
        self.field(14).zip(self.field(15)).map_or(0, |(user, system)| user + system)
    }

    /// Its name; absent once it has ended.
    pub fn name(&self) -> Option<String> {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid)).ok()?;
        Some(name.trim_end().to_string())
    }

    /// Whether a signal has come that it has not taken yet.
    pub fn has_pending(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let sets = status.lines().filter(|l| l.starts_with("SigPnd:") || l.starts_with("ShdPnd:"));
        sets.filter_map(|line| line.split_whitespace().nth(1)).any(|set| set.contains(|c| c != '0'))
    }

    /// Whether it waits for something.
    pub fn is_asleep(&self) -> bool {
        stat_field(self.pid, 3).is_some_and(|state| state == "S")
    }

    /// How often it has waited for something (voluntary switches); absent once it has ended.
    pub fn waits(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let count = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse().ok()
    }
}

/// Field of /proc/PID/stat, numbered from 1 as in proc_pid_stat(5), behind the name.
fn stat_field(pid: i32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(number - 3).map(str::to_string)
}

/// Whether a program notes an interrupt instead of ending by it.
pub fn catches_interrupts(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (Signal::INT.as_raw() - 1) & 1 == 1)
}

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Said {
    pub out: String,
    pub err: String,
    /// Absent when a signal ended it.
    pub code: Option<i32>,
}

impl Said {
    pub fn of(command: &mut Command) -> Self {
        command.output().expect("the program starts").into()
    }

    /// Of a program that was started before.
    pub fn at_end(child: Child) -> Self {
        child.wait_with_output().expect("the program ends").into()
    }

    /// The one line that starts with `error:`; a panic has none.
    pub fn error(&self) -> &str {
        assert!(!self.err.contains("panicked"), "{}", self.err);
        let lines: Vec<_> = self.err.lines().filter(|line| line.starts_with("error:")).collect();
        assert_eq!(lines.len(), 1, "standard error: {}", self.err);
        lines[0]
    }

    /// The rows of the table, by column; those without a name are left out.
    pub fn table(&self) -> Vec<Vec<String>> {
        let lines = self.out.lines().skip_while(|line| !line.starts_with("---")).skip(1);
        let rows = lines.take_while(|line| !line.trim().is_empty());
        rows.map(|row| row.split_whitespace().map(str::to_string).collect()).collect()
    }

    /// The first column of the table.
    pub fn sizes(&self) -> Vec<String> {
        self.table().into_iter().map(|row| row[0].clone()).collect()
    }

    pub fn rows(&self) -> Rows {
        Rows::parse(&self.out)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("JSON on standard output")
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Self { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
    }
}

/// CSV as written by the program.
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
}

impl Rows {
    pub fn parse(text: &str) -> Self {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns: Vec<String> =
            reader.headers().expect("a header").iter().map(str::to_string).collect();
        let named = |record: csv::StringRecord| {
            Row(columns.iter().cloned().zip(record.iter().map(str::to_string)).collect())
        };
        let rows = reader.records().map(|record| named(record.expect("a row"))).collect();
        Self { columns, rows }
    }

    /// Round and size of each ring measured, without repetition and sorted. How many samples each
    /// has is for the worker to say: one to three, fewer when something else takes the CPU.
    pub fn rings(&self) -> Vec<(u64, u64)> {
        let ring = |row: &Row| (row.number("round"), row.number("members"));
        let mut all: Vec<_> = self.rows.iter().map(ring).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    pub fn of_members(&self, members: u64) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.number("members") == members)
    }
}

/// A row by the names of its columns.
#[derive(Debug)]
pub struct Row(BTreeMap<String, String>);

impl Row {
    pub fn text(&self, column: &str) -> &str {
        self.0.get(column).unwrap_or_else(|| panic!("no column {column} in {self:?}"))
    }

    pub fn number(&self, column: &str) -> u64 {
        self.text(column).parse().unwrap_or_else(|_| panic!("{column} of {self:?}"))
    }

    pub fn switches(&self) -> u64 {
        self.number("voluntary") + self.number("involuntary")
    }
}

/// Of the sample with the fewest, which nothing is known to have disturbed: whatever else runs on
/// the CPU adds switches and takes none away.
fn fewest_switches_per_hop<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<f64> {
    let undisturbed = rows.filter(|row| row.text("disturbed").is_empty());
    undisturbed.map(|row| row.switches() as f64 / row.number("hops") as f64).reduce(f64::min)
}

/// Measures until each ring of `members` has an undisturbed sample; gives their switches per hop.
/// Every ring must have all its switches in any case. Absent where the CPU is never left alone.
pub fn switches_per_hop<const N: usize>(members: [u64; N], args: &[&str]) -> Option<[f64; N]> {
    for _ in 0..40 {
        let rows = Home::new().measure(args).rows();
        assert_no_switch_is_missing(rows.rows.iter().filter(|row| row.number("members") > 1));
        for size in members {
            assert!(rows.of_members(size).next().is_some(), "no ring of {size} was measured");
        }
        let found = members.map(|members| fewest_switches_per_hop(rows.of_members(members)));
        if found.iter().all(Option::is_some) {
            return Some(found.map(Option::unwrap_or_default));
        }
    }
    testing::skip(Need::Quiet, "something else is running on the CPU all the time");
    None
}

/// Every hop is at least one switch, in every sample.
pub fn assert_no_switch_is_missing<'a>(rows: impl Iterator<Item = &'a Row>) {
    for row in rows {
        assert!(row.switches() * 100 >= row.number("hops") * 95, "{row:?}");
    }
}

/// The lines of a run file; each must be whole.
pub fn lines_of(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a run file");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Round and case of every sample, in the order in which they were stored.
pub fn order_of(file: &Path) -> Vec<(u64, u64)> {
    let number = |sample: &Value, name: &str| sample[name].as_u64().expect("a number");
    let lines = lines_of(file);
    // Of a run with rings and trials each stands under the name of its kind.
    let bare =
        |sample: &'_ Value| ["ring", "trial"].iter().find_map(|kind| sample.get(kind).cloned());
    let samples = lines.iter().filter_map(|line| line.get("sample"));
    let samples: Vec<Value> = samples.map(|s| bare(s).unwrap_or_else(|| s.clone())).collect();
    let samples = samples.iter();
    let mut order: Vec<_> = samples.map(|s| (number(s, "round"), number(s, "case"))).collect();
    order.dedup();
    order
}

/// A seed with which the first round of a ring of one and these has its sizes in an order that is
/// wanted. It depends on how many rings there are, and on nothing else of them.
pub fn seed_of_order(members: &str, is_wanted: impl Fn(&[u64]) -> bool) -> String {
    let home = Home::new();
    let has_order = |seed: &u32| {
        let seed = seed.to_string();
        let small = ["--rounds", "1", "--laps", "1", "--csv", "-", "--members", members];
        let rows = home.measure(&[&small[..], &["--seed", &seed]].concat()).rows();
        let mut sizes: Vec<u64> = rows.rows.iter().map(|row| row.number("members")).collect();
        sizes.dedup();
        is_wanted(&sizes)
    };
    (0..100).find(has_order).expect("orders differ from seed to seed").to_string()
}

/// Copies a program by cp(1). One that this process has written itself may be held open for writing by
/// the child that another test is about to start, and then it cannot be started (ETXTBSY).
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "{}", to.display());
}

/// CPUs that this test may use.
pub fn allowed_cpus() -> Vec<u32> {
    probe::placement::allowed_cpus().expect("an affinity mask")
}

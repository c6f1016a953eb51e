//! `trace` and `cost` of running programs of several processes: their children, lists, names and
//! control groups. Counts are compared with the kernel's own.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Home, Said, wait_for};
use crate::trace::can_trace;
use serde_json::Value;
use testing::{Need, lacks, skip};

/// Children that a parent has.
const CHILDREN: usize = 3;

/// A shell that sleeps, with children that sleep and wake all the time. All end with the test.
struct Family {
    shell: Child,
    /// The children's program, longer than the name that the kernel keeps of a process.
    name: String,
    _folder: tempfile::TempDir,
}

impl Family {
    fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().expect("a folder");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("switchcost-family-{}-{number}", std::process::id());
        // Each child reads a pipe with a time limit: it sleeps and wakes, and starts nothing.
        let child = "mkfifo $0/$1; exec 3<>$0/$1; while :; do read -t 0.002 x <&3; done";
        let script = format!(
            "cp \"$(command -v bash)\" \"$0/{name}\"; for i in $(seq {CHILDREN}); do \
             \"$0/{name}\" -c '{child}' \"$0\" $i & done; wait"
        );
        let mut shell = Command::new("setsid");
        shell.args(["sh", "-c", &script]).arg(folder.path());
        let shell = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell");
        let family = Self { shell, name, _folder: folder };
        wait_for("its children, which sleep and wake", || {
            let pids = family.children();
            let all_woke = pids.iter().all(|pid| voluntary(*pid).is_some_and(|count| count > 20));
            (pids.len() == CHILDREN && all_woke).then_some(())
        });
        family
    }

    fn pid(&self) -> u32 {
        self.shell.id()
    }

    fn children(&self) -> Vec<u32> {
        children_of(self.pid())
    }

    /// Voluntary switches of all its processes until now.
    fn voluntary(&self) -> u64 {
        let all = self.children().into_iter().chain([self.pid()]);
        all.filter_map(voluntary).sum()
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for pid in self.children() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

pub fn children_of(parent: u32) -> Vec<u32> {
    let folder = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folder.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| field(*pid, "PPid") == Some(u64::from(parent))).collect()
}

fn voluntary(pid: u32) -> Option<u64> {
    field(pid, "voluntary_ctxt_switches")
}

fn field(pid: u32, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

/// Traces for a second; gives the figures, and how many voluntary switches the kernel counted
/// from just before to just behind.
fn traced(family: &Family, args: &[&str]) -> (Value, u64) {
    let before = family.voluntary();
    let said = Home::new().run(&[&["trace", "--budget", "1", "--json", "-"], args].concat());
    let around = family.voluntary() - before;
    assert_eq!(said.code, Some(0), "{}", said.err);
    (said.json(), around)
}

/// Voluntary switches in the time that was traced.
fn count(trace: &Value) -> f64 {
    let number = |path: &str| trace.pointer(path).and_then(Value::as_f64).expect("a number");
    (number("/total/voluntary_per_s") * number("/seconds")).round()
}

/// A lower bound that no slow machine breaks: a woken child switches at least so often.
const SOME: f64 = 5.0;

#[test]
fn children_belong_to_a_program_unless_they_are_left_out() {
    if !can_trace() || lacks([Need::Program("bash"), Need::Program("setsid")]) {
        return;
    }
    let family = Family::start();
    let pid = family.pid().to_string();
    let (trace, around) = traced(&family, &["--pid", &pid]);
    let counted = count(&trace);
    assert!(counted > SOME && counted <= around as f64, "{counted} of {around}: {trace}");
    assert_eq!(trace["target"]["children"], CHILDREN, "{trace}");
    let words = trace["in_words"].as_str().expect("words");
    assert!(words.contains(&format!("(pid {pid} and {CHILDREN} children): ")), "{words}");
    assert!(words.contains(&format!("all by its {CHILDREN} children")), "{words}");
    // The rows are those of the children, each once, and add up.
    let rows = trace["rows"].as_array().expect("rows");
    let ids: Vec<u64> = rows.iter().filter_map(|row| row["id"].as_u64()).collect();
    let children = family.children();
    assert!(children.iter().all(|pid| ids.contains(&u64::from(*pid))), "{ids:?} {children:?}");
    let (alone, _) = traced(&family, &["--pid", &pid, "--no-children"]);
    assert_eq!(count(&alone), 0.0, "{alone}");
    let words = alone["in_words"].as_str().expect("words");
    let told = format!("its {CHILDREN} children, which --no-children leaves out, made ");
    assert!(words.contains("was not switched once in") && words.contains(&told), "{words}");
    // No cost helps where nothing was switched.
    assert!(alone["command_to_know"].is_null(), "{alone}");
}

/// As the kernel counted between two moments, exactly: nothing of the program runs around them.
#[test]
fn all_switches_of_a_program_are_counted_once() {
    if !can_trace() || lacks([Need::Program("setsid")]) {
        return;
    }
    let home = Home::new();
    let (go, end) = (home.path().join("go"), home.path().join("end"));
    let fifo = |path: &PathBuf| Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(fifo(&go).success() && fifo(&end).success());
    // The child is there before, its own children come while it is traced.
    let script = format!(
        "sh -c 'read x < {}; for i in $(seq 50); do sleep 0.001; done; read x < {}' & wait",
        go.display(),
        end.display()
    );
    let mut shell = Command::new("sh").args(["-c", &script]).spawn().expect("a shell");
    let pid = shell.id().to_string();
    wait_for("its child", || (children_of(shell.id()).len() == 1).then_some(()));
    let child = children_of(shell.id())[0];
    let before = voluntary(child).expect("a count");
    let tracer = home.start(&["trace", "--budget", "600", "--json", "-", "--pid", &pid]);
    wait_for("a tracer at work", || crate::trace::is_tracing(&tracer).then_some(()));
    fs::write(&go, "x\n").expect("a line");
    // A shell that waits for its next line has done all the rest.
    let waits = || {
        let now = voluntary(child)?;
        let asleep = fs::read_to_string(format!("/proc/{child}/stat")).ok()?.contains(") S ");
        (now > before + 50 && asleep && children_of(child).is_empty()).then_some(now)
    };
    wait_for("the end of its work", waits);
    fs::write(&end, "x\n").expect("a line");
    let said = Said::at_end(tracer);
    shell.wait().expect("its end");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let trace = said.json();
    // Fifty sleeps and their ends, the shell that waits for each, the first and the last line, its
    // end and its parent's.
    let counted = count(&trace);
    assert!((3.0 * 50.0..6.0 * 50.0).contains(&counted), "{counted}: {trace}");
    assert_eq!(trace["target"]["children"], 51 + 1, "seq is one of them: {trace}");
    let notices = trace["notices"].to_string();
    assert!(notices.contains("it ended after"), "{notices}");
}

/// Daemons that a program of one process starts by forking twice. The first child ends at once, on
/// the same CPU as the second: that has init as its parent before it runs for the first time, and
/// then goes to sleep a known number of times.
const DAEMONS: &str = r#"
import os, sys, time
_, go, done, daemons, sleeps = sys.argv
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
open(done, "w").close()
with open(go) as start:
    start.read(1)
counts, pids = [], []
for _ in range(int(daemons)):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() > 0:
            os._exit(0)
        for _ in range(int(sleeps)):
            time.sleep(0.001)
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        count = lines["voluntary_ctxt_switches"].strip()
        os.write(writing, f"{os.getpid()} {count}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    pid, count = map(int, os.read(reading, 40).split())
    counts.append(count)
    pids.append(pid)
    os.close(reading)
# All end before the recording does; who is gone may still have its last switch before it.
while any(os.path.exists(f"/proc/{pid}") for pid in pids):
    time.sleep(0.01)
time.sleep(0.5)
with open(done, "w") as file:
    file.write(" ".join(map(str, counts)))
with open(go) as end:
    end.read(1)
"#;

#[test]
fn daemons_belong_to_the_program_that_forked_them() {
    const COUNT: usize = 200;
    if !can_trace() || lacks([Need::Program("python3")]) {
        return;
    }
    let home = Home::new();
    let (go, done) = (home.path().join("go"), home.path().join("done"));
    assert!(Command::new("mkfifo").arg(&go).status().expect("mkfifo").success());
    let mut program = Command::new("python3");
    program.args(["-c", DAEMONS]).args([&go, &done]).args([&COUNT.to_string(), "5"]);
    let mut program = program.spawn().expect("python3");
    // What is called python3 may be a script that starts others first.
    wait_for("the program itself", || done.exists().then_some(()));
    let pid = program.id().to_string();
    let args = ["trace", "--budget", "600", "--by", "process", "--json", "-", "--pid", &pid];
    let tracer = home.start(&args);
    wait_for("a tracer at work", || crate::trace::is_tracing(&tracer).then_some(()));
    fs::write(&go, "x").expect("a line");
    let text = || fs::read_to_string(&done).ok().filter(|text| !text.is_empty());
    let counts: Vec<u64> = wait_for("its daemons", text)
        .split(' ')
        .map(|count| count.parse().expect("a count"))
        .collect();
    let parent = u64::from(program.id());
    fs::write(&go, "x").expect("a line");
    let said = Said::at_end(tracer);
    program.wait().expect("its end");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let trace = said.json();
    assert_eq!(trace["target"]["children"], 2 * COUNT, "{}", trace["in_words"]);
    assert!(!trace["notices"].to_string().contains("lost"), "{}", trace["notices"]);
    // The kernel's counts of each daemon until it wrote them, and the end of each process: a last
    // switch is voluntary.
    let seconds = trace["seconds"].as_f64().expect("a number");
    let rows = trace["rows"].as_array().expect("rows");
    let of_rows = |takes: &dyn Fn(&Value) -> bool| -> f64 {
        let rows = rows.iter().filter(|row| takes(row));
        rows.map(|row| (row["voluntary_per_s"].as_f64().expect("a rate") * seconds).round()).sum()
    };
    let told: u64 = counts.iter().sum();
    let children = of_rows(&|row| row["id"] != parent);
    assert_eq!(children, (told + 2 * COUNT as u64) as f64, "{}", trace["rows"]);
}

#[test]
fn lists_and_names_of_processes_are_one_program() {
    if !can_trace() || lacks([Need::Program("bash"), Need::Program("setsid")]) {
        return;
    }
    let family = Family::start();
    let children = family.children();
    let ids = children.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let (trace, around) = traced(&family, &["--pid", &ids]);
    assert_eq!(trace["target"]["pids"], serde_json::json!(children), "{trace}");
    assert!(count(&trace) > SOME && count(&trace) <= around as f64, "{trace}");
    let words = trace["in_words"].as_str().expect("words");
    assert!(words.starts_with("switchcost-fami (pids "), "{words}");
    let name = &family.name;
    let (trace, around) = traced(&family, &["--pid", name]);
    assert_eq!(trace["target"]["pids"], serde_json::json!(children), "{trace}");
    assert!(count(&trace) > SOME && count(&trace) <= around as f64, "{trace}");
    let none = Home::new().run(&["trace", "--pid", &name[..name.len() - 1]]);
    assert_eq!(none.code, Some(2), "{}", none.err);
    assert!(none.error().contains("no process is called 'switchcost-family"), "{}", none.err);
    assert!(none.error().contains("--cgroup"), "{}", none.err);
}

#[test]
fn a_control_group_is_a_program() {
    if !can_trace() || lacks([Need::Program("bash"), Need::Program("setsid")]) {
        return;
    }
    let Some(group) = Group::new() else {
        skip(Need::ControlGroup, "none can be made");
        return;
    };
    let home = Home::new();
    let name = group.0.file_name().and_then(|name| name.to_str()).expect("a name");
    let empty = home.run(&["trace", "--cgroup", name]);
    assert_eq!(empty.code, Some(2), "{}", empty.err);
    assert!(empty.error().contains("there is no process in it"), "{}", empty.err);
    let family = Family::start();
    let children = family.children();
    for pid in &children {
        fs::write(group.0.join("below/cgroup.procs"), pid.to_string()).expect("moved");
    }
    for typed in [name, group.0.to_str().expect("a path")] {
        let (trace, around) = traced(&family, &["--cgroup", typed]);
        assert_eq!(trace["target"]["pids"], serde_json::json!(children), "{trace}");
        assert_eq!(trace["target"]["name"], name);
        assert!(count(&trace) > SOME && count(&trace) <= around as f64, "{trace}");
    }
    let unknown = home.run(&["cost", "--cgroup", "no-such.service"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    assert!(unknown.error().contains("accepted: a unit such as"), "{}", unknown.err);
    drop(family);
}

/// A control group with one below it.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let name = format!("switchcost-program-{}", std::process::id());
        for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"] {
            let group = Self(PathBuf::from(root).join(&name));
            let has_made = fs::create_dir_all(group.0.join("below")).is_ok();
            if has_made && group.0.join("below/cgroup.procs").exists() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let remove = || fs::remove_dir(self.0.join("below")).is_ok() || !self.0.exists();
        wait_for("the group's end", || remove().then_some(()));
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn costs_are_those_of_the_whole_program() {
    if lacks([Need::Program("bash"), Need::Program("setsid"), Need::Program("setpriv")]) {
        return;
    }
    let family = Family::start();
    let pid = family.pid().to_string();
    let home = Home::new();
    let cost = ["cost", "--budget", "1", "--json", "-", "--pid", &pid];
    let watched = |command: &mut Command| {
        let before = family.voluntary();
        let said = Said::of(command);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let around = family.voluntary() - before;
        let figures = said.json();
        crate::common::schema::Schema::of("program").assert_holds(&figures);
        let voluntary = figures["voluntary"].as_u64().expect("a count");
        assert!(voluntary as f64 > SOME && voluntary <= around, "{voluntary} of {around}");
        assert_eq!(
            (&figures["children"], &figures["pid"]),
            (&CHILDREN.into(), &family.pid().into())
        );
        assert!(said.err.contains(&format!("(pid {pid} and {CHILDREN} children)")), "{}", said.err);
        figures
    };
    if can_trace() {
        let figures = watched(home.command(crate::common::PROGRAM).args(cost));
        assert_eq!(figures["counted_by"], "tracepoints", "{figures}");
        // Three that are alike: none stands for the others.
        let why = figures["refill_share"]["unknown"].as_str().expect("a reason");
        assert!(
            why.contains("no stored cost profile") || why.contains("several processes"),
            "{why}"
        );
    }
    // Without a tracer /proc has the same.
    if lacks([Need::Root]) {
        return;
    }
    let mut without = home.command("setpriv");
    let figures = watched(without.args(["--bounding-set=-all", crate::common::PROGRAM]).args(cost));
    assert_eq!(figures["counted_by"], "proc", "{figures}");
    let alone = home.run(&[&cost[..], &["--no-children"]].concat()).json();
    assert_eq!((&alone["voluntary"], &alone["children"]), (&0.into(), &0.into()), "{alone}");
    let words = alone["in_words"].as_str().expect("words");
    assert!(words.starts_with("It was not switched once while it was watched."), "{words}");
    assert!(alone["command_to_know"].is_null(), "{alone}");
    if can_trace() {
        assert_eq!(alone["left_out"]["children"], CHILDREN, "{alone}");
        assert!(words.contains(&format!(" Its {CHILDREN} children made ")), "{words}");
    }
}

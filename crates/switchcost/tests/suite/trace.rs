//! `switchcost trace` as a program. Needs root, and is skipped without.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testing::{Need, lacks, skip};

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Rows, Said, wait_for};
use crate::snapshots::unpacked;

/// Whether switches can be traced here: tried once.
pub fn can_trace() -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| {
        let said = Home::new().run(&["trace", "--all", "--seconds", "0.05", "--quiet"]);
        (said.code != Some(0)).then(|| said.error().to_string())
    });
    if let Some(why) = why_not {
        skip(Need::Tracing, why);
    }
    why_not.is_none()
}

fn read(home: &Home, name: &str) -> Value {
    let text = fs::read_to_string(home.path().join(name)).expect("a file");
    serde_json::from_str(&text).expect("JSON")
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

#[test]
fn a_command_is_traced_with_all_that_it_starts() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let file = home.path().join("trace.json");
    // The last one is an orphan's child.
    let script = "sleep 0.02; (sh -c 'sleep 0.03 & exec sleep 0.01'); echo done; exit 7";
    let said = home.run(&["trace", "--json", file.to_str().unwrap(), "--", "sh", "-c", script]);
    assert_eq!((said.code, &*said.out), (Some(7), "done\n"), "{}", said.err);
    assert!(said.err.starts_with("sh (pid "), "{}", said.err);
    let trace = read(&home, "trace.json");
    Schema::of("trace").assert_holds(&trace);
    assert_eq!(trace["target"]["command"][2], script);
    let named = |name: &str| {
        trace["rows"].as_array().unwrap().iter().filter(|of| of["name"] == name).count()
    };
    assert_eq!((named("sh"), named("sleep")), (1, 3), "{}", trace["rows"]);
    // Each of the four has slept at least once and ended.
    let switches = number(&trace, "/total/voluntary_per_s") * number(&trace, "/seconds");
    assert!((7.0..1_000.0).contains(&switches), "{trace}");
    assert_eq!(trace["notices"], Value::Array(Vec::new()));
    // There is no profile in this home.
    assert!(trace["in_words"].as_str().unwrap().contains("their cost is unknown"), "{trace}");
    assert!(said.err.contains("to find out: switchcost cost\n"), "{}", said.err);
    home.wait_until_alone();
}

#[test]
fn a_process_that_names_itself_is_called_so() {
    if !can_trace() {
        return;
    }
    let named = || {
        let home = Home::new();
        let file = home.path().join("trace.json");
        let ring = ["ring", "--members", "3", "--rounds", "1", "--laps", "50", "--budget", "600s"];
        let ring = [&[PROGRAM], &ring[..], &["--quiet"]].concat();
        let flags = ["trace", "--by", "thread", "--quiet", "--json", file.to_str().unwrap(), "--"];
        let said = home.run(&[&flags[..], &ring].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let trace = read(&home, "trace.json");
        // What the tracer itself did is no neighbour's doing.
        let of_switches = number(&trace, "/own/preemptions/of_switches");
        let switches = ["voluntary_per_s", "preempted_per_s", "yielded_per_s"];
        let switches = switches.map(|of| number(&trace["total"], &format!("/{of}")));
        let switches = switches.iter().sum::<f64>() * number(&trace, "/seconds");
        assert!((switches - of_switches).abs() < 0.5, "{switches} of {of_switches}");
        let rows = trace["rows"].as_array().unwrap();
        let count = |name: &str| rows.iter().filter(|of| of["name"] == name).count();
        (["ring", "2/3", "3/3"].map(|end| count(&format!("switchcost-{end}"))), count("exe"))
    };
    // A ring of one and one of three, a worker each, which is the first member. Who is not looked at between its name and its
    // end keeps the name before, on a busy machine.
    let all: Vec<_> = (0..10).map(|_| named()).take_while(|all| *all != ([2, 1, 1], 0)).collect();
    assert!(all.len() < 10, "{all:?}");
}

/// How many threads come and go.
pub const THREADS: u32 = 1000;

/// What a program says that looks at this process by its id, while threads come and go here, one
/// after the other. Each sleeps once, and ends. It is interrupted when they have gone.
pub fn threads_come_and_go(mut looker: Command) -> Said {
    looker.arg(std::process::id().to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let looker = looker.spawn().expect("the program starts");
    wait_for("a tracer at work", || is_tracing(&looker).then_some(()));
    for _ in 0..THREADS {
        let one = thread::spawn(|| thread::sleep(Duration::from_micros(10)));
        one.join().expect("a thread that sleeps");
    }
    kill_process(Pid::from_child(&looker), Signal::INT).expect("a living process");
    Said::at_end(looker)
}

/// Whether its programs are attached, and it waits for its time to be over: it has looked once. It
/// also sleeps while they are attached.
pub fn is_tracing(looker: &Child) -> bool {
    let pid = looker.id();
    let folder = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let mut texts = folder.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let is_attached = texts.any(|text| text.contains("link_type:"));
    let sleeps_in = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    is_attached && sleeps_in.contains("poll")
}

#[test]
fn a_thousand_threads_that_come_and_go_are_all_counted() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let mut looker = home.command(PROGRAM);
    looker.args(["trace", "--seconds", "600", "--json", "-", "--pid"]);
    let said = threads_come_and_go(looker);
    assert_eq!(said.code, Some(130), "{}", said.err);
    let trace = said.json();
    // Two switches each: when it sleeps and when it ends.
    let voluntary = number(&trace, "/total/voluntary_per_s") * number(&trace, "/seconds");
    assert!(voluntary + 0.5 > f64::from(2 * THREADS), "{voluntary}: {trace}");
    let notices = trace["notices"].as_array().expect("notices");
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    assert!(notice.as_str().is_some_and(|of| of.starts_with("stopped by signal 2")), "{notice}");
}

/// Its last look is the one that finds it gone: it has the switch by which it went.
#[test]
fn a_process_that_ends_is_told_by_its_end() {
    if !can_trace() {
        return;
    }
    let traced = |sleeps: u32| {
        let loops = format!("for i in $(seq {sleeps}); do sleep 0.02; done");
        let mut child = Command::new("sh").args(["-c", &loops]).spawn().unwrap();
        let pid = child.id().to_string();
        let said = Home::new().run(&["trace", "--pid", &pid, "--seconds", "60", "--json", "-"]);
        child.wait().unwrap();
        said
    };
    // On a slow machine the first may be gone before the tracer looks.
    let said = [20, 100, 500, 2500].into_iter().map(traced).find(|said| said.code == Some(0));
    let trace = said.expect("one of them lives long enough").json();
    let points = trace["timeline"].as_array().unwrap();
    let last = points.last().unwrap();
    assert!(last["switches_per_s"].as_f64().unwrap() > 0.0, "{points:?}");
    assert_eq!(last["at_s"], trace["seconds"]);
    let notice = trace["notices"][0].as_str().unwrap();
    assert!(notice.starts_with("it ended after"), "{notice}");
}

#[test]
fn what_is_missing_is_said_and_what_still_works() {
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    let home = Home::new();
    let mut command = home.command("setpriv");
    command.args(["--reuid", "65534", "--clear-groups", PROGRAM, "trace", "--pid", "1"]);
    let said = Said::of(&mut command);
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{}", said.err);
    for words in [
        "CAP_BPF and CAP_PERFMON missing: run as root",
        "without tracing: `switchcost cost --pid 1`",
    ] {
        assert!(said.error().contains(words), "{}", said.err);
    }
}

#[test]
fn a_trace_is_drawn_and_says_where() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let file = home.path().join("trace.html");
    let to = file.to_str().expect("a path");
    let script = "for i in 1 2 3; do sleep 0.01 & done; wait";
    let said = home.run(&["trace", "-o", to, "--", "sh", "-c", script]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.ends_with(&format!("report: {to}\n")), "{}", said.err);
    let html = fs::read_to_string(&file).expect("a report");
    let first = said.err.split([';', '(']).next().expect("a start");
    assert!(html.contains(&format!("<p class=\"lead\">{first}")), "{first}");
    assert!(html.contains(">How long does it wait for a CPU?</h2>"), "{html}");
    // It replaces a report, and nothing else.
    let again = ["trace", "--all", "--seconds", "0.1", "--report"];
    assert_eq!(home.run(&[&again[..], &[to]].concat()).code, Some(0));
    fs::write(&file, "mine").expect("a file");
    let refused = home.run(&[&again[..], &[to]].concat());
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.error().contains("--report FILE"), "{}", refused.err);
    let out = home.run(&[&again[..], &["-"]].concat());
    assert!(out.out.starts_with("<!doctype html>") && out.err.starts_with("machine: "), "{out:?}");
}

#[test]
fn what_was_typed_wrong_is_refused_before_anything_is_attached() {
    let own =
        thread::spawn(|| rustix::thread::gettid().as_raw_nonzero()).join().unwrap().to_string();
    for (args, words) in [
        (&["trace"][..], "--pid <PID|NAME,...>|--cgroup <UNIT|PATH>|--all|CMD"),
        (&["trace", "--all", "--pid", "1"], "cannot be used with"),
        (&["trace", "--pid", "2147483647"], "no process has this id"),
        (&["trace", "--pid", &own], "no process has this id"),
        (&["trace", "--all", "--seconds", "0"], "above zero"),
        (&["trace", "--seconds", "-3", "--", "true"], "above zero"),
        (&["trace", "--all", "--wakeups"], "--perfetto"),
        (&["trace", "--all", "--perfetto", "t", "--buffer", "1K"], "64K to 1G"),
        (&["trace", "--all", "--perfetto", "/no/such/folder/t"], "/no/such/folder"),
        (
            &["trace", "--all", "--folded", "t", "--perfetto", "t"],
            "another output is written there",
        ),
        (&["trace", "--json", "-", "--", "true"], "standard output is the command's"),
        (&["trace", "--all", "--profile", "none"], "none"),
    ] {
        let said = Home::new().run(args);
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.error().contains(words) || said.err.contains(words), "{args:?}: {}", said.err);
    }
    let unknown = Home::new().run(&["trace", "--", "/no/such/command"]);
    assert_eq!(unknown.code, Some(127), "{}", unknown.err);
}

/// The packets of a trace: each has field 1 and a length.
fn packets(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let [tag, rest @ ..] = bytes {
        assert_eq!(*tag, 1 << 3 | 2);
        let end = rest.iter().position(|byte| byte & 128 == 0).expect("a length") + 1;
        let length =
            rest[..end].iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 127));
        let (packet, behind) = rest[end..].split_at(length);
        all.push(packet);
        bytes = behind;
    }
    all
}

#[test]
fn a_recording_and_the_matrix_are_written_beside_the_figures() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let place = |name: &str| home.path().join(name).to_str().expect("a path").to_string();
    let (perfetto, csv, folded) = (place("t.pftrace"), place("t.csv"), place("t.folded"));
    fs::write(&perfetto, "old").expect("a file");
    let args = ["trace", "--perfetto", &perfetto, "--wakeups", "--csv", &csv, "--folded", &folded];
    let said =
        home.run(&[&args[..], &["--", "sh", "-c", "sleep 0.01; sleep 0.01; sleep 0.01"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let trace = fs::read(&perfetto).expect("the trace");
    let all = packets(&trace);
    // Clocks, the kernel, at least one look at the names, events in between.
    assert!(all.len() > 4, "{}", all.len());
    let has =
        |text: &[u8]| all.iter().any(|packet| packet.windows(text.len()).any(|part| part == text));
    assert!(has(b"Linux") && has(b"sleep"), "{all:?}");
    let rows = Rows::parse(&fs::read_to_string(&csv).expect("the matrix"));
    let columns = ["from", "from_id", "to", "to_id", "voluntary", "involuntary"];
    assert_eq!(rows.columns, columns);
    let slept: u64 = rows
        .rows
        .iter()
        .filter(|row| row.text("from") == "sleep")
        .map(|row| row.number("voluntary"))
        .sum();
    // Three that sleep and end.
    assert!(slept >= 6, "{slept}");
    let folded = fs::read_to_string(&folded).expect("the stacks");
    assert!(
        folded.lines().all(|line| line.rsplit_once(' ').is_some_and(|(stack, count)| {
            stack.split(';').count() == 4 && count.parse::<u64>().is_ok()
        })),
        "{folded}"
    );
    assert!(folded.contains(";slept;"), "{folded}");
}

#[test]
fn events_that_do_not_fit_in_are_told() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    // Ten thousand switches or more while nobody writes them down; 64 KiB hold two thousand.
    let (go, done) = (home.path().join("go"), home.path().join("done"));
    let ring = format!(
        "while [ ! -e {} ]; do sleep 0.01; done; {PROGRAM} classic pipeline 5000 2; : > {}",
        go.display(),
        done.display()
    );
    let trace = home.path().join("t.pftrace");
    let json = home.path().join("t.json");
    let args = [
        "trace",
        "--buffer",
        "64K",
        "--perfetto",
        trace.to_str().unwrap(),
        "--json",
        json.to_str().unwrap(),
    ];
    let child = home.start(&[&args[..], &["--", "sh", "-c", &ring]].concat());
    home.wait_for_command("sleep");
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).expect("a living process");
    fs::write(&go, "").expect("a file");
    wait_for("the end of the pipeline", || done.exists().then_some(()));
    kill_process(pid, Signal::CONT).expect("a living process");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let notices = read(&home, "t.json")["notices"].to_string();
    assert!(
        notices.contains("events are not in the recording (a larger --buffer keeps more)"),
        "{notices}"
    );
    assert!(!packets(&fs::read(trace).unwrap()).is_empty());
}

/// The ids of all BPF programs in the kernel.
const PROGRAMS: &str = "
import ctypes, struct
libc, id = ctypes.CDLL(None), 0
while True:
    attr = ctypes.create_string_buffer(struct.pack('III', id, 0, 0))
    if libc.syscall(321 if __import__('platform').machine() == 'x86_64' else 280, 11, attr, 12) != 0: break
    id = struct.unpack('III', attr.raw[:12])[1]
    print(id)
";

fn programs() -> Vec<String> {
    let said = Command::new("python3").args(["-c", PROGRAMS]).output().expect("python3");
    String::from_utf8_lossy(&said.stdout).lines().map(str::to_string).collect()
}

/// Killed, it leaves no program in the kernel, no process and no file.
#[test]
fn a_kill_leaves_nothing() {
    if !can_trace() || lacks([Need::Program("python3")]) {
        return;
    }
    let home = Home::new();
    let file = home.path().join("trace");
    let mut command = home.command(PROGRAM);
    command.args(["trace", "--perfetto", file.to_str().unwrap(), "--", "sleep", "600"]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("the program starts");
    home.wait_for_command("sleep");
    let own = |pid: u32| -> Vec<String> {
        let folder = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
        let texts = folder.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        let lines: Vec<String> =
            texts.flat_map(|text| text.lines().map(str::to_string).collect::<Vec<_>>()).collect();
        let ids = lines.iter().filter_map(|line| line.strip_prefix("prog_id:"));
        ids.map(|id| id.trim().to_string()).collect()
    };
    let ids = own(child.id());
    let all = programs();
    assert!(!ids.is_empty() && ids.iter().all(|id| all.contains(id)), "{ids:?} {all:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("end of its programs", || {
        let all = programs();
        ids.iter().all(|id| !all.contains(id)).then_some(())
    });
    // The command goes on, as under time(1).
    for process in home.processes() {
        process.kill();
    }
    home.wait_until_alone();
    // Nothing but the run, as far as it came.
    let left: Vec<_> =
        fs::read_dir(home.path()).unwrap().flatten().map(|of| of.file_name()).collect();
    assert_eq!(left, ["switchcost"]);
    let run = fs::read_to_string(home.run_file()).expect("a run file");
    assert!(run.starts_with("{\"header\":") && !run.contains("\n{\"end\":"), "{run}");
}

/// The lines of the run file that was stored under this name, as JSON.
fn stored(home: &Home, name: &str) -> (String, Vec<Value>) {
    for file in home.run_files() {
        let text = fs::read_to_string(file).expect("a run file");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        if lines[0]["header"]["name"] == name {
            return (text, lines);
        }
    }
    panic!("no run is called {name}");
}

/// The sum of a count over all parts of a stored trace.
fn sum(lines: &[Value], count: &str) -> i64 {
    let parts = lines.iter().filter_map(|line| line["sample"]["counts"][count].as_i64());
    parts.sum()
}

#[test]
fn a_trace_is_stored_with_the_counts_that_it_tells() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let (trace_file, ring_file) = (home.path().join("trace.json"), home.path().join("ring.csv"));
    // Then it sleeps, so that there are several parts.
    let ring = format!(
        "{PROGRAM} ring --members 2 --rounds 1 --laps 20000 --budget 600s --quiet --csv {}; sleep 3",
        ring_file.display()
    );
    let flags = ["trace", "--name", "load", "--json", trace_file.to_str().unwrap(), "--"];
    let said = home.run(&[&flags[..], &["sh", "-c", &ring]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let (_, lines) = stored(&home, "load");
    Schema::of("run-line").assert_holds(&lines[0]);
    let trial = &lines[0]["header"]["plan"]["cases"][0]["trial"];
    assert_eq!((&trial["of"], &trial["tasks"]), (&"switches".into(), &"command".into()));
    assert_eq!(lines.last().unwrap()["result"]["is_rough"], false);
    let parts = lines.iter().filter(|line| line.get("sample").is_some()).count();
    assert!(parts >= 2, "{parts}");
    // What the report tells as rates are the sums of the parts.
    let trace = read(&home, "trace.json");
    let seconds = number(&trace, "/seconds");
    for (count, rate) in [
        ("voluntary", "voluntary_per_s"),
        ("preempted", "preempted_per_s"),
        ("yielded", "yielded_per_s"),
    ] {
        let told = number(&trace["total"], &format!("/{rate}")) * seconds;
        let kept = sum(&lines, count) as f64;
        assert!((told - kept).abs() < 0.5, "{count}: {told} told, {kept} stored");
    }
    // All that the ring itself counted in its laps is among them.
    let rows = Rows::parse(&fs::read_to_string(ring_file).expect("rows"));
    let in_laps: u64 = rows.rows.iter().map(|row| row.switches()).sum();
    let switches = sum(&lines, "voluntary") + sum(&lines, "preempted") + sum(&lines, "yielded");
    assert!(in_laps >= 20_000 && switches as u64 > in_laps, "{switches} of {in_laps}");
    let mut waits = 0;
    for line in &lines {
        for bin in line["sample"]["tallies"]["wait_ns"].as_array().into_iter().flatten() {
            waits += bin[1].as_i64().expect("a count");
        }
    }
    assert!(waits as u64 >= in_laps / 2, "{waits} waits of {in_laps}");
}

#[test]
fn a_stored_trace_is_listed_shown_exported_and_compared() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    for name in ["one", "two"] {
        let said = home.run(&["trace", "--all", "--budget", "0.3", "--quiet", "--name", name]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let list = home.run(&["runs", "list"]);
    assert!(list.out.contains("one") && list.out.contains("switches a second"), "{}", list.out);
    let shown = home.run(&["runs", "show", "one"]);
    assert!(shown.out.starts_with("The machine: "), "{}", shown.out);
    // A third of a second is one part, which has no interval.
    assert!(shown.out.contains("not judged: 1 part"), "{}", shown.out);
    let csv = home.run(&["runs", "export", "one", "--format", "csv"]);
    assert!(csv.rows().rows.iter().any(|row| row.text("quantity") == "voluntary"), "{}", csv.out);
    let record = home.run(&["runs", "export", "one", "--format", "json"]).json();
    Schema::of("record").assert_holds(&record);
    assert_eq!(record["findings"]["trace"]["parts"], 1);
    for format in ["summary-csv", "markdown", "go-bench", "openmetrics", "history"] {
        let said = home.run(&["runs", "export", "one", "--format", format]);
        assert_eq!(said.code, Some(0), "{format}: {}", said.err);
    }
    let compared = home.run(&["compare", "one", "two", "--json", "-"]);
    assert_eq!(compared.code, Some(0), "{}", compared.err);
    let changes = compared.json()["changes"].as_array().expect("cases").clone();
    assert!(changes.iter().any(|change| change["of"] == "queue_wait_ns"), "{changes:?}");
    let resumed = home.run(&["runs", "resume", "one"]);
    assert_eq!(resumed.code, Some(2), "{}", resumed.err);
    assert!(resumed.err.contains("is a trace"), "{}", resumed.err);
    let page = home.path().join("report.html");
    let drawn = home.run(&["report", "one", "two", "-o", page.to_str().unwrap()]);
    assert_eq!(drawn.code, Some(0), "{}", drawn.err);
}

/// Two copies of a program with a name of its own, on one CPU, preempt each other.
#[test]
fn names_of_others_are_stored_only_where_they_are_asked_for() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let program = home.path().join("zyxload");
    let yes = Command::new("sh").args(["-c", "command -v yes"]).output().expect("sh");
    fs::copy(String::from_utf8(yes.stdout).unwrap().trim(), &program).expect("a copy of yes");
    let mut loads = Vec::new();
    for _ in 0..2 {
        let mut load = home.command("taskset");
        load.args(["-c", "0"]).arg(&program).stdout(Stdio::null());
        loads.push(load.spawn().expect("taskset"));
    }
    home.wait_for_command("zyxload");
    let name = |flags: &[&str]| {
        let said = home.run(&[&["trace", "--all", "--budget", "0.5", "--quiet"], flags].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
    };
    name(&["--name", "plain"]);
    name(&["--name", "named", "--store-names"]);
    for load in &mut loads {
        load.kill().expect("a load");
        load.wait().expect("its end");
    }
    let (plain, lines) = stored(&home, "plain");
    assert!(sum(&lines, "preempted") > 0, "{plain}");
    assert!(!plain.contains("zyxload") && !plain.contains("preempted_by:"), "{plain}");
    let (_, lines) = stored(&home, "named");
    assert!(sum(&lines, "preempted_by:zyxload") > 0, "{lines:?}");
    let shown = home.run(&["runs", "show", "named"]);
    // The names that preempted most often; on a busy machine others than these two.
    assert!(shown.out.contains("\npreempted by "), "{}", shown.out);
}

#[test]
fn a_trace_that_cannot_begin_stores_nothing() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    // A thread is refused once the tracer has seen it.
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let sleeper = thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero()).expect("a receiver");
        ended.recv().expect("the end");
    });
    let id = told.recv().expect("a thread id").to_string();
    let said = home.run(&["trace", "--pid", &id, "--budget", "0.1"]);
    end.send(()).expect("a sleeper");
    sleeper.join().expect("its end");
    assert!(said.error().contains("it is a thread of process"), "{}", said.err);
    assert_eq!(home.run_files(), Vec::<std::path::PathBuf>::new());
}

/// A trace of the fixtures in the home, with some of its parts changed.
fn captured_trace(home: &Home, name: &str, change: impl Fn(usize, &mut Value)) -> String {
    let text = fs::read_to_string(home.path().join(unpacked(home, "trace"))).expect("a run");
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(header) = line.get_mut("header") {
            header["run"] = name.into();
            header["name"] = name.into();
        }
        change(number, &mut line);
        lines.push(line.to_string());
    }
    let path = home.path().join(format!("{name}.jsonl"));
    fs::write(&path, lines.join("\n") + "\n").expect("a file");
    path.to_str().expect("UTF-8").to_string()
}

#[test]
fn two_stored_traces_are_compared_figure_by_figure() {
    let home = Home::new();
    let base = captured_trace(&home, "base", |_, _| ());
    // Four times the preemptions, in every part.
    let new = captured_trace(&home, "new", |_, line| {
        if let Some(count) = line.pointer_mut("/sample/counts/preempted") {
            *count = (4 * count.as_i64().expect("a count")).into();
        }
    });
    let said = home.run(&["compare", &base, &new, "--json", "-"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let comparison = said.json();
    Schema::of("comparison").assert_holds(&comparison);
    let mut answers = Vec::new();
    for change in comparison["changes"].as_array().expect("cases") {
        let (figure, answer) = (&change["labels"]["figure"], &change["answer"]);
        answers.push((figure.as_str().unwrap().to_string(), answer.as_str().unwrap().to_string()));
        if figure == "preempted" {
            let ratio = number(change, "/ratio/value");
            assert!((ratio - 4.0).abs() < 1e-9 && change["worse"] == true, "{change}");
            let words = change["in_words"].as_str().unwrap();
            assert!(words.contains("higher") && !words.contains("slower"), "{words}");
        }
    }
    let figures =
        ["wait-p50", "wait-p99", "voluntary", "preempted", "yielded", "migrations", "busiest-cpu"];
    let expected = figures.map(|figure| {
        let answer = if figure == "preempted" { "changed" } else { "cannot_tell" };
        (figure.to_string(), answer.to_string())
    });
    assert_eq!(answers, expected);
    let gate = home.run(&["compare", &base, &new, "--fail-above", "50%"]);
    assert_eq!(gate.code, Some(1), "{}", gate.out);
}

/// Three traces on one side are one of three times the parts.
#[test]
fn traces_with_commas_between_them_are_one_side() {
    let home = Home::new();
    let names = ["a", "b", "c"].map(|name| captured_trace(&home, name, |_, _| ()));
    let said = home.run(&["compare", &names[0], &names[1..].join(","), "--json", "-"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let comparison = said.json();
    for change in comparison["changes"].as_array().expect("cases") {
        let [base, new] = ["base_rounds", "new_rounds"].map(|of| number(change, &format!("/{of}")));
        assert!(base > 4.0 && new == 2.0 * base, "{change}");
        let [base, new] = ["base_ns", "new_ns"].map(|of| number(change, &format!("/{of}")));
        assert!((new - base).abs() <= 1e-9 * base.abs(), "{change}");
    }
}

/// Nothing resumes a trace, so that none is offered as if something did.
#[test]
fn a_trace_that_was_stopped_is_listed_with_its_result() {
    let home = Home::new();
    let file = captured_trace(&home, "stopped", |_, line| {
        if let Some(reason) = line.pointer_mut("/end/reason") {
            *reason = "interrupted".into();
        }
    });
    let text = fs::read_to_string(file).expect("a trace");
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("{\"result\"")).collect();
    let result = r#"{"result":{"text":"41 switches a second","is_rough":false}}"#;
    fs::create_dir_all(home.runs_folder()).expect("a folder");
    let stored = home.runs_folder().join("20260101T000000Z-1.jsonl");
    fs::write(&stored, lines.join("\n") + "\n" + result + "\n").expect("a file");
    let listed = home.run(&["runs", "list"]).out;
    assert!(listed.contains("41 switches a second") && !listed.contains("resume"), "{listed}");
    let open: Vec<_> = lines.into_iter().filter(|line| !line.starts_with("{\"end\"")).collect();
    fs::write(&stored, open.join("\n") + "\n").expect("a file");
    let listed = home.run(&["runs", "list"]).out;
    assert!(listed.contains("incomplete") && !listed.contains("resume"), "{listed}");
}

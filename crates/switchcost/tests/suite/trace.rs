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
use crate::common::{Home, PROGRAM, Process, Rows, Said, wait_for};

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

/// Whether its programs are attached, and it waits for its time to be over.
pub fn is_tracing(looker: &Child) -> bool {
    let pid = looker.id();
    let folder = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let mut texts = folder.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let looker = Process { pid: pid as i32, parent: 0, is_worker: false };
    texts.any(|text| text.contains("link_type:")) && looker.is_asleep()
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
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

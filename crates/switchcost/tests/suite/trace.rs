//! `switchcost trace` as a program. Needs root; says `skipped: why` without.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Rows, Said, has, is_root, skip, wait_for};

/// Whether switches can be traced here.
pub fn can_trace() -> bool {
    let said = Home::new().run(&["trace", "--all", "--seconds", "0.05", "--quiet"]);
    if said.code != Some(0) {
        skip(said.error());
    }
    said.code == Some(0)
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
    assert!(trace["in_words"].as_str().unwrap().contains("what they cost is not known"), "{trace}");
    assert!(said.err.contains("to know it: switchcost cost\n"), "{}", said.err);
    home.wait_until_alone();
}

#[test]
fn a_process_that_names_itself_is_called_so() {
    if !can_trace() {
        return;
    }
    let home = Home::new();
    let file = home.path().join("trace.json");
    let ring = [PROGRAM, "ring", "--members", "3", "--rounds", "1", "--laps", "2000", "--quiet"];
    let flags = ["trace", "--by", "thread", "--quiet", "--json", file.to_str().unwrap(), "--"];
    let said = home.run(&[&flags[..], &ring].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let trace = read(&home, "trace.json");
    let rows = trace["rows"].as_array().unwrap();
    let count = |name: &str| rows.iter().filter(|of| of["name"] == name).count();
    // A ring of one and one of three, a worker each.
    assert_eq!((count("switchcost-ring"), count("exe")), (4, 0), "{}", trace["rows"]);
    // What the tracer itself did is no neighbour's doing.
    let of_switches = number(&trace, "/own/preemptions/of_switches");
    let switches = ["voluntary_per_s", "preempted_per_s", "yielded_per_s"];
    let switches = switches.map(|of| number(&trace["total"], &format!("/{of}")));
    let switches = switches.iter().sum::<f64>() * number(&trace, "/seconds");
    assert!((switches - of_switches).abs() < 0.5, "{switches} of {of_switches}");
}

/// Looks at this process by its id, in which threads come and go meanwhile, a thousand a second.
/// Each sleeps once, and ends. Gives what was found, and how many they were.
pub fn threads_come_and_go<T>(look: impl FnOnce(&str) -> T) -> (T, f64) {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let one = thread::spawn(|| thread::sleep(Duration::from_micros(10)));
                one.join().expect("a thread that sleeps");
                count.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_micros(500));
            }
        });
        let own = std::process::id().to_string();
        let before = count.load(Ordering::Relaxed);
        let found = look(&own);
        let during = count.load(Ordering::Relaxed) - before;
        stop.store(true, Ordering::Relaxed);
        (found, during as f64)
    })
}

#[test]
fn a_thousand_threads_a_second_are_all_counted() {
    if !can_trace() {
        return;
    }
    let (said, threads) = threads_come_and_go(|own| {
        Home::new().run(&["trace", "--pid", own, "--seconds", "3", "--json", "-"])
    });
    assert_eq!(said.code, Some(0), "{}", said.err);
    let trace = said.json();
    // Two switches each: opening takes a moment in which threads come and go, too.
    let voluntary = number(&trace, "/total/voluntary_per_s") * number(&trace, "/seconds");
    assert!(voluntary > threads, "{voluntary} of {threads}");
    assert_eq!(trace["notices"], Value::Array(Vec::new()));
}

/// Its last look is the one that finds it gone: it has the switch by which it went.
#[test]
fn a_process_that_ends_is_told_by_its_end() {
    if !can_trace() {
        return;
    }
    let traced = |sleeps: u32| {
        let loops = format!("for i in $(seq {sleeps}); do sleep 0.05; done");
        let mut child = Command::new("sh").args(["-c", &loops]).spawn().unwrap();
        let pid = child.id().to_string();
        let said = Home::new().run(&["trace", "--pid", &pid, "--seconds", "60", "--json", "-"]);
        child.wait().unwrap();
        said
    };
    // On a slow machine the first may be gone before the tracer looks.
    let said = [20, 100, 500].into_iter().map(traced).find(|said| said.code == Some(0));
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
    if !is_root() || !has("setpriv") {
        return skip("needs root and setpriv(1)");
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
fn what_was_typed_wrong_is_refused_before_anything_is_attached() {
    let own =
        thread::spawn(|| rustix::thread::gettid().as_raw_nonzero()).join().unwrap().to_string();
    for (args, words) in [
        (&["trace"][..], "--pid <PID>|--all|CMD"),
        (&["trace", "--all", "--pid", "1"], "cannot be used with"),
        (&["trace", "--pid", "2147483647"], "no process has this id"),
        (&["trace", "--pid", &own], "no process has this id"),
        (&["trace", "--all", "--seconds", "0"], "above zero"),
        (&["trace", "--seconds", "3", "--", "true"], "cannot be used with"),
        (&["trace", "--all", "--wakeups"], "--perfetto"),
        (&["trace", "--all", "--perfetto", "t", "--buffer", "1K"], "64K to 1G"),
        (&["trace", "--all", "--perfetto", "/no/such/folder/t"], "/no/such/folder"),
        (&["trace", "--all", "--folded", "t", "--perfetto", "t"], "another output goes there"),
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
        home.run(&[&args[..], &["--", "sh", "-c", "sleep 0.3; sleep 0.01; sleep 0.01"]].concat());
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
    // Sixty thousand switches or more, of which 64 KiB hold two thousand for 20 ms.
    let ring = format!("{PROGRAM} classic pipeline 30000 2");
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
    let said = home.run(&[&args[..], &["--", "sh", "-c", &ring]].concat());
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
    if !can_trace() || !has("python3") {
        return skip("needs python3");
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

//! `switchcost cost --pid` and `-- CMD`: counts of programs of known behaviour, and their exit
//! codes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::schema::Schema;
use crate::common::{Home, PROGRAM, Said, allowed_cpus, catches_interrupts, wait_for};
use crate::trace::{THREADS, can_trace, threads_come_and_go};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testing::{Need, lacks};

/// A sleeper of known behaviour, ended with the test.
struct Sleeper(Child);

impl Sleeper {
    fn start(script: &str) -> Self {
        let child = Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn();
        Self(child.expect("a shell"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn assert_valid(value: &Value) {
    Schema::of("program").assert_holds(value);
}

/// Runs a command under the program; gives what was said, and the figures.
fn command(home: &Home, script: &str) -> (Said, Value) {
    command_with(home, &[], script)
}

fn command_with(home: &Home, flags: &[&str], script: &str) -> (Said, Value) {
    let file = home.path().join("figures.json");
    let to = file.to_str().expect("a path in UTF-8");
    let said = home.run(&[&["cost", "--json", to], flags, &["--", "sh", "-c", script]].concat());
    let figures = serde_json::from_str(&fs::read_to_string(&file).expect("figures")).expect("JSON");
    assert_valid(&figures);
    (said, figures)
}

/// Text without the ends of its lines.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A run file of `cost`: a ring of two at several arrays above its solo, six rounds of one sample.
/// hop = 1 us alone; 3 us with a switch and no work, 5 us with `bytes` of work.
fn store_profile(home: &Home, name: &str, sizes: &[u64]) {
    store_profile_of(home, name, sizes, "whole", |_| {});
}

fn this_machine() -> Value {
    serde_json::to_value(probe::machine::read(Path::new("/"))).expect("JSON")
}

/// The same, walked as said, with `change` made to its header.
fn store_profile_of(
    home: &Home,
    name: &str,
    sizes: &[u64],
    walk: &str,
    change: impl Fn(&mut Value),
) {
    let v1 = crate::common::stored::RUN;
    let mut header: Value =
        serde_json::from_str(v1.lines().next().expect("a header")).expect("JSON");
    let bare = header["header"]["plan"]["cases"][0].clone();
    let mut cases = Vec::new();
    for bytes in [None].into_iter().chain(sizes.iter().copied().map(Some)) {
        for members in [1, 2] {
            let mut case = bare.clone();
            case["members"] = members.into();
            case["work"] = bytes.map_or(
                Value::Null,
                |bytes| json!({"bytes": bytes, "stride_bytes": 64, "op": "rmw", "walk": walk}),
            );
            cases.push(case);
        }
    }
    let mut samples = Vec::new();
    for round in 0..6 {
        for (case, kind) in cases.iter().enumerate() {
            let members = kind["members"].as_u64().expect("a size");
            let ns = match (members, kind["work"].is_null()) {
                (1, _) => 1000,
                (_, true) => 3000,
                (_, false) => 5000,
            };
            let counters = json!({"voluntary": (members - 1) * 2000, "involuntary": 0,
                "migrations": 0, "minor_faults": 0, "major_faults": 0, "cpu_ns": 2000 * ns,
                "user_ns": null, "system_ns": null});
            samples.push(
                json!({"sample": {"case": case, "round": round, "sample": 0, "laps": 1000,
                "hops": 2000, "elapsed_ns": 2000 * ns + round, "counters": counters,
                "steal_ns": 0, "setup_ns": 1}}),
            );
        }
    }
    header["header"]["plan"]["cases"] = cases.into();
    header["header"]["plan"]["experiment"] = "cost".into();
    header["header"]["run"] = name.into();
    header["header"]["machine"] = this_machine();
    change(&mut header["header"]);
    fs::create_dir_all(home.runs_folder()).expect("a folder");
    let mut file =
        fs::File::create(home.runs_folder().join(format!("{name}.jsonl"))).expect("a file");
    let end = json!({"end": {"reason": "rounds_done", "finished": "2026-01-01T00:00:09Z", "spent_ns": 9}});
    for line in [header].iter().chain(&samples).chain([&end]) {
        writeln!(file, "{line}").expect("a line");
    }
}

#[test]
fn a_shell_that_waits_makes_at_least_that_many_switches() {
    let home = Home::new();
    let wait = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.001; done; echo done";
    let (said, figures) = command(&home, wait);
    assert_eq!((said.code, &*said.out), (Some(0), "done\n"), "{}", said.err);
    // Each sleep waits once, and the shell for each of them.
    let voluntary = figures["voluntary"].as_u64().expect("a count");
    assert!(voluntary >= 20, "{voluntary}");
    assert_eq!(figures["command"][0], "sh");
    assert!(
        unwrapped(&said.err).starts_with(
            "What switching costs this program is unknown: no stored cost profile: run \
                 `switchcost cost` first."
        ),
        "{}",
        said.err
    );
    assert_eq!(figures["command_to_know"], "switchcost cost");
}

#[test]
fn exit_codes_are_the_commands() {
    let home = Home::new();
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    {
        let (said, _) = command(&home, script);
        assert_eq!(said.code, Some(code), "{script}: {}", said.err);
    }
    let plain = home.path().join("plain");
    fs::write(&plain, "no program").expect("a file");
    for (name, code) in [("/no/such/command", 127), (plain.to_str().expect("UTF-8"), 126)] {
        let said = home.run(&["cost", "--", name]);
        assert_eq!((said.code, &*said.out), (Some(code), ""), "{}", said.err);
        assert!(said.error().contains(name), "{}", said.err);
    }
}

#[test]
fn streams_are_the_commands() {
    let home = Home::new();
    let mut started = home.command(PROGRAM);
    started.args(["cost", "--quiet", "--", "sh", "-c", "cat; echo err >&2"]);
    started.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started.spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(b"through").expect("written");
    let said = Said::at_end(child);
    assert_eq!((said.code, &*said.out, &*said.err), (Some(0), "through", "err\n"));
}

#[test]
fn signals_reach_the_command() {
    let home = Home::new();
    for (signal, code) in [(Signal::INT, 40), (Signal::TERM, 41)] {
        let script =
            "trap 'exit 40' INT; trap 'exit 41' TERM; echo ready; while :; do sleep 0.05; done";
        let child = home.start(&["cost", "--", "sh", "-c", script]);
        home.wait_for_command("sleep");
        let pid = Pid::from_raw(child.id() as i32).expect("a process id");
        kill_process(pid, signal).expect("a signal");
        let said = Said::at_end(child);
        assert_eq!((said.code, &*said.out), (Some(code), "ready\n"), "{}", said.err);
        assert!(
            said.err.contains("voluntary"),
            "the figures are printed all the same: {}",
            said.err
        );
    }
}

/// While the program is stopped it cannot see the end: whoever started the command stamps it.
#[test]
fn the_end_is_stamped_when_it_comes_not_when_it_is_seen() {
    let home = Home::new();
    let file = home.path().join("figures.json");
    let to = file.to_str().expect("a path in UTF-8");
    let before = Instant::now();
    let end = home.path().join("end");
    let script = format!("while [ ! -e {} ]; do sleep 0.01; done; exec sleep 0", end.display());
    let child = home.start(&["cost", "--json", to, "--", "sh", "-c", &script]);
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    home.wait_for_command("sleep");
    let shell = home.processes().into_iter().find(|process| process.name() == Some("sh".into()));
    let folder = format!("/proc/{}", shell.expect("the command").pid);
    kill_process(pid, Signal::STOP).expect("a signal");
    fs::write(end, "").expect("a file");
    wait_for("its end", || (!Path::new(&folder).exists()).then_some(()));
    let most = before.elapsed();
    // As long again: nobody who sees the end now can take it for one before.
    sleep(most);
    kill_process(pid, Signal::CONT).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let figures: Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("figures")).expect("JSON");
    let watched_ns = figures["watched_ns"].as_u64().expect("a time");
    assert!(u128::from(watched_ns) <= most.as_nanos(), "{watched_ns} ns of {most:?}");
}

/// A shell whose child does the work.
const CHILD: &str = "sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done'; exit 0";

#[test]
fn a_childs_switches_do_not_go_with_the_commands_own_pages() {
    let home = Home::new();
    let (_, figures) = command(&home, CHILD);
    assert_eq!(figures["program"]["working_set"]["low_bytes"], 0, "{figures}");
    let why = figures["refill_share"]["unknown"].as_str().expect("a reason");
    assert!(why.contains("% of the CPU time is its own"), "{why}");
    // Said where there are costs.
    store_profile(&home, "20260101T000000000Z-cost-1", &[4096, 1 << 30]);
    let (said, _) = command(&home, CHILD);
    let text = unwrapped(&said.err);
    assert!(text.contains("% of the CPU time is its own"), "{text}");
    assert!(text.contains("to find out: switchcost cost --pid PID"), "{text}");
}

/// Watches longer and longer, until there is what a moment on a slow machine does not have.
fn longer(watched: impl Fn(&str) -> Value, is_enough: impl Fn(&Value) -> bool) -> Value {
    let mut all = ["0.2", "1", "5", "25", "125"].into_iter().map(watched);
    all.find(|figures| is_enough(figures)).expect("enough is seen in two minutes")
}

fn has_windows(figures: &Value) -> bool {
    !figures["windows"].as_array().expect("windows").is_empty()
}

#[test]
fn a_running_program_is_counted() {
    let home = Home::new();
    let sleeper = Sleeper::start("while :; do sleep 0.01; done");
    let watched = |seconds: &str| {
        let args = ["cost", "--pid", &sleeper.pid(), "--seconds", seconds, "--json", "-"];
        let said = home.run(&args);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.json()
    };
    // Once for each sleep that it waits for.
    let enough = |of: &Value| of["voluntary"].as_u64().is_some_and(|count| count >= 3);
    let figures = longer(watched, enough);
    assert_valid(&figures);
    assert_eq!((&figures["name"], &figures["threads"]), (&"sh".into(), &1.into()));
    // Touched pages are counted for whoever may clear them.
    if lacks([Need::Root]) {
        return;
    }
    let figures = longer(watched, has_windows);
    let set = &figures["program"]["working_set"];
    assert!(set["low_bytes"].as_u64() <= set["high_bytes"].as_u64(), "{set}");
}

#[test]
fn threads_that_come_and_go_are_counted_where_tracing_is_permitted() {
    let home = Home::new();
    let cost = ["cost", "--json", "-", "--seconds"];
    if can_trace() {
        let mut looker = home.command(PROGRAM);
        looker.args(cost).args(["600", "--pid"]);
        let said = threads_come_and_go(looker);
        let figures = said.json();
        assert_valid(&figures);
        assert_eq!(figures["counted_by"], "tracepoints", "{figures}");
        // Two switches each: when it sleeps and when it ends.
        let voluntary = figures["voluntary"].as_u64().expect("a count");
        assert!(voluntary >= u64::from(2 * THREADS), "{figures}");
        assert!(figures["yields"].is_u64() && figures["migrations"].is_u64(), "{figures}");
        let text = unwrapped(&said.err);
        assert!(text.contains("counted by kernel tracepoints"), "{text}");
        let notices = figures["notices"].to_string();
        assert!(!notices.contains("threads ended"), "{notices}");
    }
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    let mut without = home.command("setpriv");
    let own = std::process::id().to_string();
    without.args(["--bounding-set=-all", PROGRAM]).args(cost).args(["0.2", "--pid", &own]);
    let mut child = without.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("setpriv");
    while child.try_wait().expect("a child").is_none() {
        std::thread::spawn(|| sleep(Duration::from_micros(10))).join().expect("a thread");
    }
    let said = Said::at_end(child);
    let figures = said.json();
    assert_valid(&figures);
    assert_eq!(figures["counted_by"], "proc", "{figures}");
    let notices = figures["notices"].to_string();
    assert!(notices.contains("CAP_BPF and CAP_PERFMON missing"), "{notices}");
}

#[test]
fn orphans_are_counted_where_tracing_is_permitted() {
    let home = Home::new();
    // Nobody waits for the one that sleeps a hundred times, but all of it is within the command's
    // time.
    let end = home.path().join("end").display().to_string();
    let script = format!(
        "mkfifo {end}; (sh -c 'for i in $(seq 100); do sleep 0.001; done; echo > {end}' &); read x \
         < {end}; rm {end}"
    );
    let script = &*script;
    if can_trace() {
        let (_, figures) = command(&home, script);
        assert_eq!(figures["counted_by"], "tracepoints", "{figures}");
        assert!(figures["voluntary"].as_u64().expect("a count") > 200, "{figures}");
    }
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    let mut without = home.command("setpriv");
    without.args(["--bounding-set=-all", PROGRAM, "cost", "--", "sh", "-c", script]);
    let said = Said::of(&mut without);
    assert!(unwrapped(&said.err).contains("involuntary a second, from wait4"), "{}", said.err);
}

/// Tells this test binary, started again, to be the program that is watched.
const WALKER: &str = "SWITCHCOST_TEST_WALKER";

/// What a walker touches between two sleeps.
const WALKED_BYTES: u64 = 256 << 10;

/// Not a test but a program of known working set: it touches each line of an array, then sleeps.
#[test]
#[ignore = "it is started by the test below"]
fn walker() {
    let Ok(cpu) = std::env::var(WALKER) else { return };
    probe::placement::pin(&[cpu.parse().expect("a CPU")]).expect("a CPU of ours");
    let mut array = vec![0_u8; WALKED_BYTES as usize];
    loop {
        array.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
        std::hint::black_box(&array);
        sleep(Duration::from_millis(1));
    }
}

fn start_walker(cpu: u32) -> Sleeper {
    let mut walker = Command::new(std::env::current_exe().expect("this test binary"));
    walker
        .args(["--exact", "program::walker", "--ignored", "--nocapture"])
        .env(WALKER, cpu.to_string());
    Sleeper(walker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a walker"))
}

/// Clearing referenced bits flushes no TLB: what a translation is still cached of is touched
/// unseen.
#[test]
fn the_working_set_holds_what_is_known_to_be_touched() {
    // Touched pages are counted for whoever may clear them.
    if lacks([Need::Root]) {
        return;
    }
    let home = Home::new();
    let cpu = allowed_cpus()[0];
    let (walker, _other) = (start_walker(cpu), start_walker(cpu));
    // Its array is there once it has slept a few times.
    let status = format!("/proc/{}/task", walker.pid());
    let switches = |task: &Path| {
        let text = fs::read_to_string(task.join("status")).ok()?;
        text.lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?
            .trim()
            .parse()
            .ok()
    };
    wait_for("a walker that walks", || {
        let tasks = fs::read_dir(&status).ok()?.flatten();
        tasks.filter_map(|task| switches(&task.path())).any(|n: u64| n > 50).then_some(())
    });
    let watched = |seconds: &str| {
        let args = ["cost", "--pid", &walker.pid(), "--seconds", seconds, "--json", "-"];
        home.run(&args).json()
    };
    let figures = longer(watched, has_windows);
    let end = |end: &str| figures["program"]["working_set"][end].as_u64().expect("bytes");
    let (low, high) = (end("low_bytes"), end("high_bytes"));
    assert!(low <= WALKED_BYTES && WALKED_BYTES <= high, "{low} to {high}: {figures}");
}

#[test]
fn what_a_terminal_would_obey_in_its_name_is_not_printed() {
    let home = Home::new();
    let named =
        Sleeper::start("printf '\\033[31mevil' >/proc/$$/comm; while :; do sleep 0.01; done");
    let comm = format!("/proc/{}/comm", named.pid());
    wait_for("its name", || fs::read_to_string(&comm).ok()?.contains("evil").then_some(()));
    let said = home.run(&["cost", "--pid", &named.pid(), "--seconds", "0.1"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.lines().any(|line| line.starts_with("[31mevil (pid ")), "{:?}", said.out);
}

#[test]
fn a_program_that_ends_is_told_with_what_was_seen() {
    let home = Home::new();
    let watched = |sleep: &str| {
        let sleeper = Sleeper::start(&format!("exec sleep {sleep}"));
        home.run(&["cost", "--pid", &sleeper.pid(), "--seconds", "600"])
    };
    // On a slow machine the first may be gone before it is looked at.
    let mut all = ["0.3", "2", "10", "60"].into_iter().map(watched);
    let said = all.find(|said| said.code == Some(0)).expect("one of them lives long enough");
    assert!(said.out.contains("it ended after"), "{}", said.out);
}

/// A loop of the shell's own, then a wait: its pages are looked at while it runs.
const WORK: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 0.01";

#[test]
fn the_estimate_is_that_of_the_stored_profile() {
    let home = Home::new();
    store_profile_of(&home, "20260101T000000000Z-cost-1", &[4096, 1 << 30], "whole", |header| {
        header["machine"]["kernel"]["release"] = "2.6.17".into();
    });
    // Of another kernel: not without being asked for.
    let (said, figures) = command(&home, "sleep 0.01");
    let why = "can be used: 20260101T000000 (of another machine: kernel.release): run `switchcost cost` first";
    assert!(unwrapped(&said.err).contains(why), "{}", said.err);
    assert_eq!(figures["command_to_know"], "switchcost cost");
    let (said, figures) = command_with(&home, &["--verbose", "--profile", "last"], WORK);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(figures["surface"]["points"].as_array().map(Vec::len), Some(2), "{figures}");
    assert_eq!(figures["cost"]["answer"], "estimated", "{figures}");
    // Between no work at 2 us a switch and 1 GiB at 4 us.
    let cost = |end: &str| figures["cost"]["cost_ns"][end].as_f64().expect("a cost");
    assert!(cost("low") >= 1999.0 && cost("low") <= 4001.0, "{figures}");
    let set = &figures["program"]["working_set"];
    let sampled = !set["sampled"].is_null();
    if sampled {
        // 2 us a switch, and for each line at most what the array of 4 KiB costs, 2 us for 64, half
        // as much again.
        let lines = set["high_bytes"].as_f64().expect("bytes") / 64.0;
        let most = 2000.0 + 1.5 * lines * 2000.0 / 64.0;
        assert!(cost("high") >= cost("low") && cost("high") <= most + 1.0, "{figures}");
    } else {
        assert!((cost("high") - 4000.0).abs() < 1.0, "{figures}");
    }
    let share = |end: &str| figures["cost"]["share"][end].as_f64().expect("a share");
    assert!(0.0 <= share("low") && share("low") <= share("high") && share("high") <= 1.0);
    let said = unwrapped(&said.err);
    assert!(said.starts_with("Switching "), "{said}");
    let assumed =
        if sampled { "between two switches a thread" } else { "each switch costs the same" };
    assert!(said.contains(&format!("assumed: {assumed}")), "{said}");
    assert!(said.contains("on a machine that differs"), "{said}");
    assert!(said.contains("asked for with --profile"), "{said}");
}

#[test]
fn the_profile_that_fits_is_taken_before_a_newer_one() {
    let home = Home::new();
    let fitting = "20260101T000000000Z-cost-1";
    store_profile(&home, fitting, &[4096, 1 << 30]);
    store_profile(&home, "20260102T000000000Z-cost-1", &[4096, 8192]);
    store_profile_of(&home, "20260103T000000000Z-cost-1", &[4096, 1 << 30], "whole", |header| {
        header["machine"]["kernel"]["release"] = "2.6.17".into();
    });
    let interrupted = "20260104T000000000Z-cost-1";
    store_profile(&home, interrupted, &[4096, 1 << 30]);
    let path = home.runs_folder().join(format!("{interrupted}.jsonl"));
    let text = fs::read_to_string(&path).expect("a run").replace("rounds_done", "interrupted");
    fs::write(&path, text).expect("a file");
    let (said, figures) = command(&home, "sleep 0.01");
    assert_eq!(figures["surface"]["run"], fitting, "{}", said.err);
    assert!(!said.err.contains("differs"), "{}", said.err);
    assert!(unwrapped(&said.err).contains("by profile 20260101T000000, "), "{}", said.err);
    assert!(figures["surface"]["age_s"].as_u64().is_some_and(|age| age > 0), "{figures}");
    let why = "the best run of `cost` on this machine that covers the working set";
    assert_eq!(figures["profile_choice"], why);
    assert!(unwrapped(&said.err).contains(&format!("{fitting}: {why}")), "{}", said.err);
}

/// The arrays that are advised, walked as the user likes.
#[test]
fn a_profile_as_advised_is_used() {
    let home = Home::new();
    store_profile(&home, "20260101T000000000Z-cost-1", &[4096, 8192]);
    let (_, figures) = command(&home, "sleep 0.01");
    let advice = figures["command_to_know"].as_str().expect("advice");
    let most = advice.strip_prefix("switchcost cost --array 1K..").expect("an array");
    let most = most.strip_suffix("MiB:x2").expect("MiB").parse::<u64>().expect("a size") << 20;
    let sizes: Vec<u64> = (10..).map(|power| 1 << power).take_while(|size| *size <= most).collect();
    for (name, walk) in
        [("20260102T000000000Z-cost-1", "chase"), ("20260103T000000000Z-cost-1", "whole")]
    {
        store_profile_of(&home, name, &sizes, walk, |_| {});
        let (said, figures) = command(&home, "sleep 0.01");
        assert_eq!(figures["surface"]["run"], name, "{}", said.err);
        assert_eq!(figures["surface"]["points"][0]["walk"], walk);
        assert_eq!(figures["cost"]["answer"], "estimated", "{figures}");
    }
}

#[test]
fn rings_and_quick_measurements_are_no_profile_unless_asked_for() {
    let home = Home::new();
    let ring = "20260102T000000000Z-ring-1";
    store_profile_of(&home, ring, &[4096, 1 << 30], "whole", |header| {
        header["plan"]["experiment"] = "ring".into();
        header["notices"] = json!(["a quick measurement of `switchcost run`"]);
    });
    let (said, figures) = command(&home, "sleep 0.01");
    assert!(figures["surface"]["unknown"].is_string(), "{figures}");
    assert!(said.err.contains("run `switchcost cost` first"), "{}", said.err);
    // With a name it is taken, also before one of `cost`.
    store_profile(&home, "20260103T000000000Z-cost-1", &[4096, 1 << 30]);
    let (said, figures) = command_with(&home, &["--profile", "20260102"], "sleep 0.01");
    assert_eq!(figures["surface"]["run"], ring, "{}", said.err);
    assert_eq!(figures["profile_choice"], "asked for with --profile");
    assert!(said.err.contains("asked for with --profile"), "{}", said.err);
    // So it is by `run`, which takes the best one else.
    let run = |more: &[&str]| {
        let said = home.run(&[&["run", "--json", "-"], more, &["--", "sleep", "0.01"]].concat());
        said.json()["commands"][0]["switching"]["surface"].clone()
    };
    assert_eq!(run(&["--profile", "20260102"])["run"], ring);
    assert_eq!(run(&[])["run"], "20260103T000000000Z-cost-1");
    // `run` may use what it has measured itself.
    fs::remove_file(home.runs_folder().join("20260103T000000000Z-cost-1.jsonl")).expect("gone");
    let said = home.run(&["run", "--json", "-", "--", "sleep", "0.01"]);
    assert_eq!(said.json()["commands"][0]["switching"]["surface"]["run"], ring, "{}", said.err);
}

#[test]
fn what_is_wrong_with_a_profile_is_said_before_anything_is_watched() {
    let home = Home::new();
    let change = |case: &'static str, value: Value| {
        move |header: &mut Value| {
            for of in header["plan"]["cases"].as_array_mut().expect("cases") {
                of[case] = value.clone();
            }
        }
    };
    let sizes = &[4096, 8192];
    store_profile_of(&home, "a", sizes, "sparse", |_| {});
    store_profile_of(&home, "b", sizes, "whole", change("kind", "thread".into()));
    store_profile_of(&home, "c", sizes, "whole", change("work", Value::Null));
    let apart = json!({"mode": "free", "cpus": [0, 1]});
    store_profile_of(&home, "d", sizes, "whole", change("placement", apart));
    store_profile_of(&home, "e", sizes, "whole", change("members", 1.into()));
    let file = home.path().join("ran");
    let script = format!("touch {}", file.display());
    for (name, why) in [
        ("a", "it touches one line a page (--tlb)"),
        ("b", "its members are threads"),
        ("c", "its rings of two do no work"),
        ("d", "its members run on several CPUs"),
        ("e", "it has no ring of two"),
        ("f", "no stored run is called 'f'"),
    ] {
        let said = home.run(&["cost", "--profile", name, "--", "sh", "-c", &script]);
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{name}: {}", said.err);
        assert!(said.error().contains(why), "{name}: {}", said.err);
    }
    assert!(!file.exists(), "a command was run");
}

#[test]
fn beyond_the_measured_arrays_the_way_out_and_the_direct_share_are_named() {
    let home = Home::new();
    store_profile(&home, "20260101T000000000Z-cost-1", &[4096, 8192]);
    let (said, figures) = command(&home, "sleep 0.01");
    assert_eq!(figures["cost"]["answer"], "cannot_tell", "{figures}");
    let direct = &figures["cost"]["direct_share"]["low"];
    assert!(direct.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n) && n > 0.0), "{figures}");
    assert!(figures["refill_share"]["unknown"].is_string(), "{figures}");
    let text = unwrapped(&said.err);
    assert!(text.starts_with("Switching takes at least "), "{text}");
    assert!(text.contains("; what refilling caches adds is unknown."), "{text}");
    assert!(text.contains("to find out: switchcost cost --array 1K.."), "{text}");
}

#[test]
fn the_report_fits_eighty_columns_and_begins_with_the_answer() {
    let home = Home::new();
    let fits = |text: &str| {
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && line == line.trim_end(), "{line:?}");
        }
    };
    let sleeper = Sleeper::start("while :; do sleep 0.01; done");
    let watch = ["cost", "--pid", &sleeper.pid(), "--seconds", "0.1"];
    let first = home.run_in_eighty_columns(&watch);
    assert!(
        first.out.starts_with("What switching costs this program is unknown: "),
        "{}",
        first.out
    );
    fits(&first.out);
    for (name, sizes) in [
        ("20260101T000000000Z-cost-1", [4096, 8192]),
        ("20260102T000000000Z-cost-1", [4096, 1 << 30]),
    ] {
        store_profile(&home, name, &sizes);
        let said = home.run_in_eighty_columns(&watch);
        assert!(said.out.starts_with("Switching "), "{}", said.out);
        fits(&said.out);
        fits(&home.run_in_eighty_columns(&["cost", "--", "sh", "-c", WORK]).err);
    }
}

#[test]
fn ctrl_c_ends_the_watching_and_not_what_was_seen() {
    let home = Home::new();
    let sleeper = Sleeper::start("while :; do sleep 0.01; done");
    let child = home.start(&["cost", "--pid", &sleeper.pid(), "--seconds", "600"]);
    wait_for("its handler", || catches_interrupts(child.id()).then_some(()));
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    kill_process(pid, Signal::INT).expect("a signal");
    let said = Said::at_end(child);
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(said.out.contains("stopped by signal 2, before its time was over"), "{}", said.out);
    assert!(said.out.contains("switches "), "{}", said.out);
}

#[test]
fn signals_that_are_ignored_stay_ignored() {
    let home = Home::new();
    let ignored = |signal: &str, program: &str| {
        let script = format!("trap '' {signal}; exec {program} grep SigIgn /proc/self/status");
        let said = Said::of(home.command("sh").args(["-c", &script]));
        assert_eq!(said.code, Some(0), "{signal}: {}", said.err);
        let mask = said.out.trim().strip_prefix("SigIgn:").expect("a mask").trim().to_string();
        u64::from_str_radix(&mask, 16).expect("a mask")
    };
    // Whoever runs this may ignore some too.
    for (signal, number) in [("HUP", 1), ("TERM", 15)] {
        let told = ignored(signal, &format!("{PROGRAM} cost -q --"));
        assert_eq!(told, ignored(signal, ""), "{signal}: {told:x}");
        assert_eq!(told >> (number - 1) & 1, 1, "{signal}: {told:x}");
    }
}

#[test]
fn what_cannot_be_watched_is_told() {
    let home = Home::new();
    let mut dead = Command::new("true").spawn().expect("true");
    let pid = dead.id().to_string();
    // Not waited for yet: a zombie.
    wait_for("its end", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.contains(") Z ").then_some(())
    });
    let zombie = home.run(&["cost", "--pid", &pid]);
    assert_eq!(zombie.code, Some(2));
    assert!(zombie.error().contains("zombie"), "{}", zombie.err);
    dead.wait().expect("its end");
    let gone = home.run(&["cost", "--pid", &pid]);
    assert_eq!((gone.code, &*gone.out), (Some(2), ""));
    assert!(gone.error().contains("no process has this id"), "{}", gone.err);
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        let kernel = home.run(&["cost", "--pid", "2"]);
        assert!(kernel.error().contains("'kthreadd' is a thread of the kernel"), "{}", kernel.err);
    }
    for (args, words) in [
        (&["--pid", "0"][..], "0"),
        (&["--pid", "-1"], "-1"),
        (&["--pid", "x"], "x"),
        (&["--pid", "1", "--seconds", "0"], "above zero"),
        (&["--pid", "1", "--", "true"], "CMD"),
        (&["--pid", "1", "--csv", "-"], "--csv"),
        (&["--json", "-", "--", "true"], "standard output is the command's"),
        (&["--profile", "last"], "--pid"),
        (&["--pid", "1", "--array", "64K"], "--array"),
        (&["--pid", "1", "--budget", "2days+"], "--budget"),
        (&["--pid", "1", "--op", "read"], "--op"),
        (&["--policy", "other", "--", "true"], "--policy"),
        (&["--seed", "3", "--", "true"], "--seed"),
    ] {
        let said = home.run(&[&["cost"], args].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: no {words:?} in {}", said.err);
    }
}

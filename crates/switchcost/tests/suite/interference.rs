//! `switchcost classic experiment interference`: counts that are laws, and a verdict of what was
//! measured.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use crate::common::schema::Schema;
use crate::common::stored::Kept;
use crate::common::{Home, PROGRAM, Process, Rows, Said, allowed_cpus, lines_of};
use serde_json::Value;
use testing::{Need, is_root, lacks, skip, wait_for};

const SIZES: u64 = 2;
/// The fewest that there can be.
const RUNS: u64 = 2;
const CONDITIONS: u64 = 4;

const INTERFERENCE: [&str; 3] = ["classic", "experiment", "interference"];

fn interference(home: &Home, args: &[&str]) -> Said {
    let said = home.run(&[&INTERFERENCE[..], &["--verbose", "--history"], args].concat());
    assert_eq!((said.code, &*said.err), (Some(0), ""), "{args:?}: {}", said.err);
    said
}

/// Short runs of known number, and more time than they need. Measured once for all tests that read
/// it.
fn measured() -> &'static Kept {
    static MEASURED: OnceLock<Kept> = OnceLock::new();
    MEASURED.get_or_init(|| {
        Kept::of(|home, csv| {
            let bounds = ["--sizes", "4K,8K", "--runs", "2", "--laps", "200", "--budget", "5m"];
            interference(home, &[&bounds[..], &["--csv", csv]].concat())
        })
    })
}

#[test]
fn every_condition_has_its_runs_of_the_same_laps_and_the_verdict_is_theirs() {
    let Kept { said, lines, record, .. } = measured();
    let schema = Schema::of("run-line");
    lines.iter().for_each(|line| schema.assert_holds(line));
    let samples: Vec<&Value> = lines.iter().filter_map(|line| line.get("sample")).collect();
    assert_eq!(samples.len() as u64, CONDITIONS * SIZES * RUNS);
    let mut of_case: BTreeMap<u64, u64> = BTreeMap::new();
    for sample in &samples {
        *of_case.entry(sample["case"].as_u64().expect("a case")).or_default() += 1;
    }
    assert!(of_case.values().all(|runs| *runs == RUNS), "{of_case:?}");

    let cases = lines[0]["header"]["plan"]["cases"].as_array().expect("cases").clone();
    let laps = cases[0]["trial"]["laps"].as_u64().expect("laps");
    let mut conditions = BTreeMap::new();
    for case in &cases {
        let trial = &case["trial"];
        assert_eq!((&trial["of"], &trial["laps"]), (&"execution".into(), &laps.into()));
        let plain = trial["setting"] == "plain";
        // In the plain setting all is on one CPU, in the other nothing but the ring is, if it can
        // be.
        let together = plain || allowed_cpus().len() == 1;
        assert_eq!(trial["noise_cpu"] == case["cpu"], together, "{case}");
        let realtime = !plain && is_root() && allowed_cpus().len() > 1;
        assert_eq!(case["policy"] == "fifo", realtime, "{case}");
        let condition = format!("{} {} {}", trial["setting"], trial["environment"], trial["work"]);
        conditions.insert(condition, ());
    }
    assert_eq!(conditions.len() as u64, CONDITIONS * SIZES);
    for sample in &samples {
        let disturbed = cases[sample["case"].as_u64().expect("a case") as usize]["trial"]["environment"]
            == "disturbed";
        assert_eq!(sample["counts"].get("noise_events").is_some(), disturbed, "{sample}");
        // Two hops a lap, at least a switch each.
        let switches = |kind: &str| sample["counts"][kind].as_u64().expect("a count");
        let all = switches("voluntary_switches") + switches("involuntary_switches");
        assert!(all * 100 >= 2 * laps * 95, "{all} switches in {laps} laps");
    }

    Schema::of("record").assert_holds(record);
    let found = &record["findings"]["interference"];
    assert_eq!(found["verdict"]["comparisons"].as_array().map(Vec::len), Some(2 * SIZES as usize));
    for comparison in found["verdict"]["comparisons"].as_array().expect("comparisons") {
        for environment in ["quiet", "disturbed"] {
            assert_eq!(comparison[environment]["confidence"], 0.9, "{comparison}");
        }
    }
    let verdict = format!("verdict: {}\n", found["in_words"].as_str().expect("words"));
    assert!(said.out.contains(&verdict), "{}", said.out);
    // The paper's table stands beside it.
    assert!(said.out.contains("(221.00, 226.35)"), "{}", said.out);
    assert_eq!(measured().shown, said.out);
    let short = &measured().shown_briefly;
    assert!(short.starts_with("Intervals of execution times (90 %): in quiet "));
    assert!(!short.contains("2007"), "{short}");
    assert!(measured().list.contains("interference"));
}

#[test]
fn each_noise_reaches_both_settings() {
    for noise in ["cpu", "timer", "net"] {
        // Gaps are up to 200 ms long, of timers up to 1 ms, and the shortest runs 100 ms. Where the
        // gap is a long one, or other work keeps the noise off its CPU, longer runs meet it.
        let budgets = ["1s", "2s", "4s", "8s", "16s", "32s", "64s"];
        let met = budgets.into_iter().any(|budget| meets_both(noise, budget));
        assert!(met, "{noise}: no event in any run of one of the settings");
    }
}

fn meets_both(noise: &str, budget: &str) -> bool {
    let home = Home::new();
    let bounds = ["--budget", budget, "--runs", "2", "--sizes", "64K"];
    let said = interference(&home, &[&bounds[..], &["--noise", noise]].concat());
    let record = home.run(&["runs", "export", "last"]).json();
    if noise == "net" {
        let wire = &record["header"]["plan"]["cases"][0]["trial"]["wire"];
        let why = said.out.contains("packets go through the loopback");
        assert_eq!(wire == "loopback", why, "{}", said.out);
    }
    let events = &record["findings"]["interference"]["events_per_run"];
    ["augmented", "plain"].iter().all(|setting| events[setting].as_f64().is_some_and(|n| n > 0.0))
}

/// A lap lasts microseconds, set-up and warm-up milliseconds, in which the timers go off too.
#[test]
fn noise_is_counted_within_the_laps_only() {
    let home = Home::new();
    let bounds = ["--sizes", "4K", "--runs", "3", "--laps", "1", "--budget", "5m"];
    let said = interference(&home, &[&bounds[..], &["--noise", "timer"]].concat());
    let mut disturbed: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for sample in lines_of(&home.run_file()).iter().filter_map(|line| line.get("sample")) {
        let Some(events) = sample["counts"]["noise_events"].as_u64() else { continue };
        disturbed.entry(sample["case"].as_u64().expect("a case")).or_default().push(events);
        // Gaps are even over a millisecond: hardly any is below 20 us.
        let most = sample["elapsed_ns"].as_u64().expect("a time") / 20_000 + 2;
        assert!(events <= most, "{sample}");
    }
    assert_eq!(disturbed.values().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    // Unless others kept the rings from the CPU in the midst of a lap.
    let are_few = disturbed.values().any(|events| events.iter().sum::<u64>() < 5);
    let doubt = said.out.contains("doubt: fewer than 5 timers in all runs");
    assert_eq!(doubt, are_few, "{disturbed:?}: {}", said.out);
}

#[test]
fn csv_has_the_condition_of_every_row() {
    let rows = Rows::parse(&measured().csv);
    let times = rows.rows.iter().filter(|row| row.text("quantity") == "execution_ns");
    let mut conditions: BTreeMap<String, u64> = BTreeMap::new();
    for row in times {
        assert_eq!((row.number("values"), row.number("max")), (1, row.number("elapsed_ns")));
        let noise = row.text("noise");
        assert_eq!(noise == "net", row.text("environment") == "disturbed");
        let name = format!("{} {} {}", row.text("bytes"), row.text("setting"), noise);
        *conditions.entry(name).or_default() += 1;
    }
    assert_eq!(conditions.len() as u64, CONDITIONS * SIZES);
    assert!(conditions.values().all(|runs| *runs == RUNS), "{conditions:?}");
}

#[test]
fn a_spent_budget_leaves_what_was_measured_and_it_can_be_resumed() {
    let home = Home::new();
    let bounds = ["--sizes", "4K", "--runs", "2", "--laps", "200", "--budget", "1ms"];
    let said = interference(&home, &bounds);
    assert!(said.out.contains("time is up"), "{}", said.out);
    let is_open = ["inconclusive", "growth of its interval not resolved"]
        .iter()
        .any(|told| said.out.contains(&format!("verdict: augmented setting: {told}")));
    assert!(is_open, "{}", said.out);
    let resumed = home.run(&["runs", "resume", "last", "--budget", "5m"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let record = home.run(&["runs", "export", "last"]).json();
    for case in record["cases"].as_array().expect("cases") {
        assert_eq!(case["rounds"], RUNS, "{case}");
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let home = Home::new();
    for (args, words) in [
        (&["--runs", "1"][..], "one run has no scatter"),
        (&["--laps", "0"], "from 1 on"),
        (&["--sizes", "12"], "--sizes 12"),
        (&["--sizes", "0"], "--sizes 0"),
        (&["--sizes", "much"], "much"),
        (&["--sizes", "100T"], "MiB are free"),
        (&["--noise", "loud"], "'loud'"),
        (&["--array", "64K"], "--array"),
        (&["--op", "read"], "--op"),
        (&["--placement", "0"], "--placement"),
        (&["--policy", "rr"], "--policy"),
        (&["--rounds", "3"], "--rounds"),
        (&["--precision", "3%"], "--precision"),
        (&["--pid", "1"], "--pid"),
        (&["--json", "-", "--csv", "-"], "only one"),
        (&["--json", "/nonesuch/cost.json"], "/nonesuch"),
        (&["--", "true"], "'true'"),
    ] {
        let said = home.run(&[&INTERFERENCE[..], args].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: no {words:?} in {}", said.err);
    }
    assert!(home.run_files().is_empty());
}

/// CPUs that a process may run on, its scheduling policy and its priority.
type Place = (String, (u64, u64));

/// Places of a worker and its two children, in the midst of a disturbed run.
fn seen_of_a_disturbed_run(home: &Home) -> Option<[Place; 3]> {
    let all = home.processes();
    let worker = *all.iter().find(|process| process.is_worker)?;
    let children: Vec<_> = all.iter().filter(|process| process.parent == worker.pid).collect();
    let [one, other] = children[..] else { return None };
    let of = |process: &Process| Some((process.cpus()?, process.try_policy()?));
    let mut seen = [of(&worker)?, of(one)?, of(other)?];
    // The member is where its leader is; the noise is told by its policy, or stands last in any
    // case.
    if seen[1] != seen[0] {
        seen.swap(1, 2);
    }
    Some(seen)
}

#[test]
fn the_noise_is_where_its_setting_has_it() {
    if lacks([Need::TwoCpus, Need::Root]) {
        return;
    }
    let home = Home::new();
    // Long runs, so that each is seen, and more of them than are needed.
    let args = [
        "classic",
        "experiment",
        "interference",
        "--sizes",
        "64K",
        "--budget",
        "120s",
        "--noise",
        "cpu",
    ];
    let mut child = home.start(&[&args[..], &["--runs", "60"]].concat());
    let mut settings: BTreeMap<bool, [Place; 3]> = BTreeMap::new();
    wait_for("a disturbed run in both settings", || {
        // A leader on its way to its place has no member like it yet.
        let seen = seen_of_a_disturbed_run(&home).filter(|seen| seen[0] == seen[1]);
        settings.extend(seen.map(|seen| (seen[0].1.0 == 0, seen)));
        (settings.len() == 2).then_some(())
    });
    let _ = child.kill();
    let _ = child.wait();
    let measured = lines_of(&home.run_file())[0]["header"]["plan"]["cases"][0]["cpu"].to_string();
    let [plain, augmented] = [true, false].map(|setting| settings.get(&setting).expect("seen"));
    for (cpus, policy) in plain {
        assert_eq!((&**cpus, *policy), (&*measured, (0, 0)), "{plain:?}");
    }
    let [(leader, policy), _, (noise, noise_policy)] = augmented;
    assert_eq!((&**leader, policy.0), (&*measured, 1), "{augmented:?}");
    assert!(policy.1 > 1, "the highest priority that is granted: {augmented:?}");
    assert_ne!(noise, leader);
    assert_eq!(*noise_policy, (0, 0), "{augmented:?}");
}

fn network_of(pid: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

fn devices() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").map(|entries| entries.flatten().collect());
    let entries: Vec<fs::DirEntry> = entries.unwrap_or_default();
    let mut names: Vec<String> =
        entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn packets_have_a_network_of_their_own_that_ends_with_them() {
    let home = Home::new();
    let before = devices();
    let args = [
        "classic",
        "experiment",
        "interference",
        "--sizes",
        "64K",
        "--budget",
        "60s",
        "--noise",
        "net",
    ];
    let mut child = home.start(&args);
    let header =
        wait_for("a run file", || Some(lines_of(home.run_files().first()?)[0]["header"].clone()));
    if header["plan"]["cases"][0]["trial"]["wire"] != "veth" {
        let _ = child.kill();
        let _ = child.wait();
        return skip(Need::Hardware("veth"), "no pair of virtual network devices can be made");
    }
    let own = network_of("self").expect("this process's network");
    wait_for("a process in a network of its own", || {
        let all = home.processes();
        let mut networks = all.iter().filter_map(|process| network_of(&process.pid.to_string()));
        networks.find(|network| *network != own)
    });
    assert_eq!(devices(), before, "while it is there");
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
    home.wait_until_alone();
    assert_eq!(devices(), before, "after a kill");
}

/// Where no more networks are allowed, packets take the loopback, and that is said.
#[test]
fn packets_without_a_network_of_their_own_say_so() {
    let home = Home::new();
    let no_networks = "echo 0 > /proc/sys/user/max_net_namespaces";
    let can = home.command("unshare").args(["-Ur", "sh", "-c", no_networks]).output();
    if !can.is_ok_and(|done| done.status.success()) {
        return skip(Need::Namespaces, "no user namespace without networks can be made");
    }
    let bounds = "--sizes 4K --runs 2 --laps 50 --budget 5m --noise net --verbose";
    let script =
        format!("{no_networks} && exec {} classic experiment interference {bounds}", PROGRAM);
    let said = Said::of(home.command("unshare").args(["-Ur", "sh", "-c", &script]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("noise (net by loopback)"), "{}", said.out);
    assert!(said.out.contains("packets go through the loopback"), "{}", said.out);
}

/// Its companion is told, not the ring that ended with it.
#[test]
fn a_noise_that_is_killed_is_named() {
    // One that is not seen in time is looked for in longer runs.
    let said = ["1s", "4s", "16s", "64s"].into_iter().find_map(said_without_a_noise);
    let said = said.expect("a disturbed run");
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("the noise exited without output"), "{}", said.err);
    assert!(!said.err.contains("token"), "{}", said.err);
}

/// What is said if a noise is killed; none if it was not seen in time.
fn said_without_a_noise(budget: &str) -> Option<Said> {
    let home = Home::new();
    let args = [
        "classic",
        "experiment",
        "interference",
        "--sizes",
        "64K",
        "--runs",
        "2",
        "--noise",
        "timer",
    ];
    let mut child = home.start(&[&args[..], &["--quiet", "--budget", budget]].concat());
    let mut was_killed = false;
    // Until the end: the member that was forked after it is there for a moment only.
    wait_for("the end", || {
        let noise = if was_killed { None } else { noise_beside_a_ring(&home) };
        was_killed |= noise.inspect(Process::kill).is_some();
        child.try_wait().expect("it is our child")
    });
    let said = Said::at_end(child);
    // One that was killed behind its run is not missed.
    (was_killed && said.code != Some(0)).then_some(said)
}

/// The noise is the child that was there first: a ring's member is forked after it.
fn noise_beside_a_ring(home: &Home) -> Option<Process> {
    let all = home.processes();
    let worker = all.iter().find(|process| process.is_worker)?;
    let mut children: Vec<_> = all.iter().filter(|p| p.parent == worker.pid).collect();
    children.sort_by_key(|process| process.pid);
    (children.len() == 2).then(|| *children[0])
}

#[test]
fn killed_it_leaves_no_process() {
    let home = Home::new();
    let args = [
        "classic",
        "experiment",
        "interference",
        "--sizes",
        "64K",
        "--budget",
        "10m",
        "--noise",
        "net",
    ];
    let mut child = home.start(&args);
    // Program, worker, member and what sends packets: in the midst of a disturbed run.
    wait_for("a disturbed run", || (home.processes().len() >= 4).then_some(()));
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
    home.wait_until_alone();
}

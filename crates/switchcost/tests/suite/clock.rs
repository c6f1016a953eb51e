//! `switchcost clock`: counts that are laws, and files that say what the table says.

use crate::common::schema::Schema;
use crate::common::{Home, Said, lines_of};
use serde_json::Value;
use testing::{Need, skip, wait_for};

/// Rounds and trials that make a short run of known size.
const ROUNDS: u64 = 2;

/// The command under which an experiment stands.
fn command_of(experiment: &str) -> &'static [&'static str] {
    match experiment {
        "overhead" => &["clock"],
        _ => &["classic", "experiment"],
    }
}

fn clock(home: &Home, args: &[&str]) -> Said {
    let bounds = ["--rounds", "2", "--budget", "60s", "--verbose"];
    let said = home.run(&[command_of(args[0]), args, &bounds].concat());
    assert_eq!((said.code, &*said.err), (Some(0), ""), "{args:?}: {}", said.err);
    said
}

fn record(home: &Home) -> Value {
    home.run(&["runs", "export", "last"]).json()
}

/// What holds for each of the experiments: the file, the record and the table are of one run.
fn assert_kept(home: &Home, said: &Said, experiment: &str, cases: usize) -> Value {
    let record = record(home);
    assert_eq!(record["header"]["plan"]["experiment"], experiment);
    assert_eq!(record["cases"].as_array().map(Vec::len), Some(cases));
    for case in record["cases"].as_array().expect("cases") {
        assert_eq!((&case["rounds"], &case["failure"]), (&ROUNDS.into(), &Value::Null), "{case}");
    }
    Schema::of("record").assert_holds(&record);
    let schema = Schema::of("run-line");
    let lines = lines_of(&home.run_file());
    let samples = lines.iter().filter(|line| line.get("sample").is_some());
    assert_eq!(samples.count(), cases * ROUNDS as usize);
    lines.iter().for_each(|line| schema.assert_holds(line));
    assert_eq!(home.run(&["runs", "show", "last", "--verbose"]).out, said.out);
    let name = experiment.replacen("clock-", "", 1);
    let command = [command_of(&name), &[&*name]].concat().join(" ");
    assert!(home.run(&["runs", "list"]).out.contains(&command));
    record
}

#[test]
fn overhead_times_every_call_that_there_is() {
    let home = Home::new();
    let said = clock(&home, &["overhead", "--trials", "50"]);
    let plan = lines_of(&home.run_file())[0]["header"]["plan"].clone();
    let cases = plan["cases"].as_array().expect("cases").len();
    let record = assert_kept(&home, &said, "clock-overhead", cases);
    for case in record["cases"].as_array().expect("cases") {
        for (quantity, count) in [("call_ticks", 100), ("empty_ticks", 100), ("batch_ticks", 2)] {
            assert_eq!(case["quantities"][quantity]["count"], count, "{case}");
        }
        let call = case["case"]["trial"]["call"].as_str().expect("a name");
        assert!(said.out.lines().any(|line| line.trim_start().starts_with(call)), "{call}");
    }
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        assert_slices(&home, &[("call_ticks", 50), ("batch_ticks", 1)], &[]);
    }
    // What is not available here is said, not left out: all calls are in the one or the other.
    let absent = said.out.lines().filter(|line| line.contains("is not available here")).count();
    assert_eq!(cases + absent, probe::trial::calls::CALLS.len(), "{}", said.out);
}

/// Each loop of each sample is in slices between quanta, and its outcomes are nowhere else: only
/// `whole` are.
fn assert_slices(home: &Home, loops: &[(&str, u64)], whole: &[String]) {
    let list = |of: &Value| of.as_array().cloned().expect("a list");
    let lines = lines_of(&home.run_file());
    let samples: Vec<&Value> = lines.iter().filter_map(|line| line.get("sample")).collect();
    assert!(!samples.is_empty());
    for sample in samples {
        let tallies: Vec<&String> =
            sample["tallies"].as_object().expect("tallies").keys().collect();
        assert_eq!(tallies, whole.iter().collect::<Vec<_>>());
        let sliced = list(&sample["sliced"]);
        assert_eq!(sliced.len(), loops.len(), "{sample}");
        for (sliced, (name, count)) in sliced.iter().zip(loops) {
            let slices = list(&sliced["slices"]["elapsed_ns"]).len();
            for quanta in ["latency_ns", "throughput_ns"] {
                assert_eq!(list(&sliced["slices"][quanta]).len(), slices + 3, "{sliced}");
            }
            let tallies = list(&sliced["tallies"][name]);
            assert_eq!(tallies.len(), slices, "{sliced}");
            let values = tallies.iter().flat_map(list);
            let times = values.map(|pair| pair[1].as_u64().expect("a number of times"));
            assert_eq!(times.sum::<u64>(), *count, "{sliced}");
        }
    }
}

#[test]
fn overhead_takes_calls_by_name() {
    let home = Home::new();
    let said = clock(&home, &["overhead", "--calls", "monotonic,times", "--trials", "20"]);
    let record = assert_kept(&home, &said, "clock-overhead", 2);
    // In the order of the registry, as in the full table.
    let name = |case: usize| record["cases"][case]["case"]["trial"]["call"].clone();
    assert_eq!((name(0), name(1)), ("monotonic".into(), "times".into()));
}

#[test]
fn primes_are_timed_as_often_by_each_way() {
    let home = Home::new();
    let said = clock(&home, &["primes", "--primes", "100,300", "--trials", "7"]);
    let record = assert_kept(&home, &said, "clock-primes", 2);
    let ways = ["threadclock_ns", "getrusage_ns", "getrusage_user_ns", "getrusage_thread_ns"];
    for case in record["cases"].as_array().expect("cases") {
        for way in ways {
            assert_eq!(case["quantities"][way]["count"], 7 * ROUNDS, "{way}");
            assert_eq!(case["quantities"][format!("empty_{way}")]["count"], 7 * ROUNDS, "{way}");
        }
        // user is a part of user + system.
        let total = |way: &str| case["quantities"][way]["mean"].as_f64().expect("a mean");
        assert!(total("getrusage_user_ns") <= total("getrusage_ns"), "{case}");
    }
    assert_eq!(record["findings"]["primes"]["points"][1]["primes"], 300);
    // Slices would bring the figures of the others up to date.
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        let mut whole: Vec<String> =
            ways[1..].iter().flat_map(|way| [way.to_string(), format!("empty_{way}")]).collect();
        whole.sort();
        assert_slices(&home, &[("threadclock_ns", 7)], &whole);
    }
}

#[test]
fn malloc_counts_what_the_allocator_asks_of_the_kernel() {
    let trials = 16 * ROUNDS;
    let counts = || {
        let home = Home::new();
        // glibc maps each block from 128 KiB on by itself, and unmaps it when it is freed
        // (mallopt(3)).
        let said = clock(&home, &["malloc", "--sizes", "64,200000", "--trials", "16"]);
        let record = assert_kept(&home, &said, "clock-malloc", 2);
        for case in record["cases"].as_array().expect("cases") {
            for quantity in ["malloc_ticks", "free_ticks", "empty_ticks"] {
                assert_eq!(case["quantities"][quantity]["count"], trials, "{case}");
            }
        }
        [0, 1].map(|case| record["cases"][case]["counts"].clone())
    };
    // That they are slow, and why, is seen; of some it may hide behind stolen time.
    let (mut is_seen, mut most) = (false, 0);
    for _ in 0..10 {
        let [small, large] = counts();
        if small.get("brk_calls").is_none() {
            return skip(Need::Ptrace, "calls of the kernel are not counted");
        }
        if cfg!(not(target_env = "gnu")) {
            return;
        }
        assert_eq!(small["mmap_calls"], 0, "{small}");
        assert_eq!(large["mmap_calls"], 2 * trials, "{large}");
        let seen = large["slow_malloc_mmap"].as_u64().expect("a count");
        assert!(seen <= trials, "{large}");
        most = most.max(seen);
        is_seen = seen >= trials - 4;
        if is_seen {
            break;
        }
    }
    assert!(most > 0, "no call of malloc was slow");
    if !is_seen {
        skip(Need::Quiet, "too much time is stolen for slow calls of malloc to show");
    }
}

#[test]
fn another_allocator_is_a_case_of_its_own_or_an_error() {
    let home = Home::new();
    let preload = ["malloc", "--sizes", "64", "--trials", "4", "--preload"];
    let said = clock(&home, &[&preload[..], &["libm.so.6"]].concat());
    let record = assert_kept(&home, &said, "clock-malloc", 2);
    assert_eq!(record["findings"]["malloc"]["overall"][1]["preload"], "libm.so.6");
    assert!(said.out.contains("libm.so.6 over all sizes"), "{}", said.out);

    // Whoever measures the C library's does not measure what the shell had preloaded.
    let mut inherited = home.command("env");
    inherited.args(["LD_PRELOAD=libnowhere.so.7", crate::common::PROGRAM]);
    inherited.args(["classic", "experiment", "malloc"]);
    inherited.args(["--sizes", "64", "--trials", "4", "--rounds", "1"]);
    let said = Said::of(&mut inherited);
    assert_eq!(said.code, Some(0), "{}", said.err);
    // The dynamic linker complains of it to the program itself, and not to its worker.
    assert_eq!(said.err.matches("libnowhere.so.7").count(), 1, "{}", said.err);

    let absent =
        home.run(&[&["classic", "experiment"], &preload[..], &["libnowhere.so.7"]].concat());
    assert_eq!((absent.code, &*absent.out), (Some(2), ""));
    assert!(absent.error().contains("libnowhere.so.7"), "{}", absent.err);
    assert_eq!(home.run_files().len(), 2, "nothing was measured");
}

#[test]
fn who_sleeps_across_ticks_is_not_seen_by_them() {
    // What has a higher priority may push the sleeper into the ticks, for a while.
    let is_not_seen = |_| {
        let home = Home::new();
        let said = clock(&home, &["sampling", "--duration", "200ms"]);
        let record = assert_kept(&home, &said, "clock-sampling", 2);
        let count = |case: usize, name: &str| {
            record["cases"][case]["counts"][name].as_i64().expect("a count")
        };
        let lines = lines_of(&home.run_file());
        for case in [0, 1] {
            for process in ["sleeper", "burner"] {
                for account in ["precise", "threadclock", "getrusage", "true_user"] {
                    let ns = count(case, &format!("{process}_{account}_ns"));
                    assert!(ns > 0, "{process} by {account}: {ns}");
                }
            }
            // Both were on one CPU: together they had no more than passed, but for what they did
            // before they were told to go.
            let both = count(case, "sleeper_precise_ns") + count(case, "burner_precise_ns");
            let of_case = lines.iter().filter_map(|line| line.get("sample"));
            let of_case = of_case.filter(|sample| sample["case"] == case);
            let passed: i64 = of_case.filter_map(|sample| sample["elapsed_ns"].as_i64()).sum();
            assert!(both <= passed + passed / 10, "{both} ns of {passed} ns on one CPU");
        }
        if record["header"]["plan"]["cases"][0]["policy"] != "fifo" {
            assert!(said.out.contains("note: the sleeper runs under SCHED_OTHER"), "{}", said.out);
            return None;
        }
        // A law and no timing: what is not running when the tick comes is not counted.
        let sampled = count(0, "sleeper_ticks_ns");
        Some(sampled < count(0, "sleeper_precise_ns") / 2)
    };
    // None where it has no real-time policy.
    match (0..10).map(is_not_seen).find(|is_not_seen| *is_not_seen != Some(false)) {
        Some(Some(_)) => {}
        Some(None) => skip(Need::RealTime, "the burner may push the sleeper into the ticks"),
        None => panic!("the ticks saw the sleeper each time"),
    }
}

#[test]
fn csv_has_a_row_for_each_tally_and_count() {
    let home = Home::new();
    let args = ["malloc", "--sizes", "64", "--trials", "5", "--csv", "-", "--quiet"];
    let said = clock(&home, &args);
    let mut rows = csv::Reader::from_reader(said.out.as_bytes());
    let columns = rows.headers().expect("a header").clone();
    let column = |name: &str| columns.iter().position(|column| column == name).expect("a column");
    let rows: Vec<_> = rows.records().map(|row| row.expect("a row")).collect();
    let of = |quantity: &str| {
        rows.iter().filter(|row| &row[column("quantity")] == quantity).cloned().collect::<Vec<_>>()
    };
    let mallocs = of("malloc_ticks");
    assert_eq!(mallocs.len() as u64, ROUNDS);
    for row in &mallocs {
        assert_eq!((&row[column("values")], &row[column("bytes")]), ("5", "64"));
        assert_eq!((&row[column("call")], &row[column("preload")]), ("", ""));
    }
    let faults = of("minor_faults");
    assert_eq!(faults.len() as u64, ROUNDS);
    assert!(faults.iter().all(|row| row[column("mean")].is_empty()), "a count has no mean");
}

#[test]
fn a_run_of_a_clock_can_be_resumed() {
    let home = Home::new();
    clock(&home, &["overhead", "--calls", "times", "--trials", "5"]);
    let said = home.run(&["runs", "resume", "last", "--rounds", "1", "--budget", "60s"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(record(&home)["cases"][0]["rounds"], ROUNDS + 1);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let home = Home::new();
    for (args, words) in [
        (&["overhead", "--calls", "sundial"][..], "sundial"),
        (&["overhead", "--trials", "0"], "1 to 1000000"),
        (&["overhead", "--trials", "4294967295"], "1 to 1000000"),
        (&["overhead", "--cpu", "4095"], "--cpu: CPU 4095"),
        (&["primes", "--primes", "0"], "'0'"),
        (&["primes", "--primes", "200000"], "200000"),
        (&["malloc", "--sizes", "none"], "none"),
        (&["malloc", "--sizes", "1073741824", "--trials", "1000000"], "MiB are free"),
        (&["malloc", "--preload", ""], "--preload ''"),
        (&["sampling", "--duration", "0s"], "0s"),
        (&["sampling", "--duration", "1ms"], "100ms"),
        (&["sampling", "--json", "-", "--csv", "-"], "only one"),
    ] {
        let said = home.run(&[command_of(args[0]), args].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: no {words:?} in {}", said.err);
    }
    assert!(home.run_files().is_empty());
}

#[test]
fn killed_it_leaves_no_process() {
    let home = Home::new();
    let mut child = home.start(&["classic", "experiment", "sampling", "--duration", "30s"]);
    wait_for("worker and both processes", || (home.processes().len() >= 4).then_some(()));
    child.kill().expect("the controller is killed");
    child.wait().expect("the controller has ended");
    home.wait_until_alone();
}

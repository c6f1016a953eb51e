//! `switchcost run`: what commands used, and that they are left as they are.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::common::commands::{assert_valid, number, read, record, runs};
use crate::common::{Home, PROGRAM, Said};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use testing::{Need, lacks, skip};

const MIB: u64 = 1 << 20;

/// As `args`, by itself and under the program: what it says must be the same.
fn same_under_the_program(prefix: &str, command: &[&str]) {
    let home = Home::new();
    let alone = format!("{prefix} exec $by \"$@\"");
    let under = format!("{prefix} exec $by {PROGRAM} run --quiet --no-estimate -- \"$@\"");
    let said = |script: &str| {
        let mut shell = home.command("sh");
        Said::of(shell.args(["-c", script, "sh"]).args(command))
    };
    let (alone, under) = (said(&alone), said(&under));
    assert!(!alone.out.is_empty(), "{alone:?}");
    assert_eq!((&alone.out, &alone.err), (&under.out, &under.err));
}

#[test]
fn exit_codes_are_the_commands_and_bad_commands_have_a_line() {
    let home = Home::new();
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    {
        let (said, record) = record(&home, &["--", "sh", "-c", script]);
        assert_eq!(said.code, Some(code), "{script}: {}", said.err);
        let ending = &runs(&record)[0]["ending"];
        match code {
            137 | 143 => assert_eq!(number(&ending["killed"]["signal"]), code as u64 - 128),
            code => assert_eq!(number(&ending["exited"]["code"]), code as u64),
        }
    }
    let file = |name: &str, text: &str, mode: u32| {
        let path = home.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        path.to_str().expect("UTF-8").to_string()
    };
    let plain = file("plain", "no program", 0o644);
    let orphaned = file("orphaned", "#!/no/such/interpreter\n", 0o755);
    for (name, code, words) in [
        ("/no/such/command", 127, "no such file"),
        ("no-such-command-anywhere", 127, "command not found in PATH"),
        ("", 127, "cannot run '': an empty name"),
        (&plain, 126, "may not be executed"),
        ("/", 126, "it is a directory"),
        (&orphaned, 126, "interpreter"),
    ] {
        let said = home.run(&["run", "--", name]);
        assert_eq!((said.code, &*said.out), (Some(code), ""), "{name}: {}", said.err);
        assert!(said.err.contains(words), "{name}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
    for (args, words) in [
        (&[][..], "CMD"),
        (&["-n", "0", "--", "true"], "from 1 on"),
        (&["--vs", "'", "--", "true"], "--vs"),
        (&["--vs", "", "--", "true"], "--vs"),
        (&["--json", "-", "--csv", "-", "--", "true"], "only one of them"),
    ] {
        let said = home.run(&[&["run"], args].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
    home.wait_until_alone();
}

#[test]
fn a_gate_ends_by_its_verdict() {
    let home = Home::new();
    // Many more children to wait for than the base has, though ten are added to both counts.
    let turns = |count: u32| format!("sh -c 'for i in $(seq {count}); do /bin/true; done; :'");
    let gate = |other: &str, more: &[&str]| {
        let base = ["run", "--no-estimate", "-n", "6", "--figures", "voluntary", "--vs", other];
        home.run(
            &[&base[..], more, &["--", "sh", "-c", "for i in $(seq 5); do /bin/true; done; :"]]
                .concat(),
        )
    };
    let table = home.path().join("table.md");
    let path = table.to_str().expect("UTF-8");
    let slow = gate(&turns(40), &["--fail-above", "50%", "--markdown", path]);
    assert_eq!(slow.code, Some(1), "{}", slow.err);
    assert!(slow.err.trim_end().lines().any(|line| line.starts_with("FAIL: ")), "{}", slow.err);
    let text = fs::read_to_string(&table).expect("a table");
    assert!(text.contains("\n| voluntary switches | "), "{text}");
    assert!(
        text.trim_end().lines().last().is_some_and(|line| line.starts_with("FAIL: ")),
        "{text}"
    );
    // Without a gate the commands' own code; one that fails is not compared, however fast it is.
    assert_eq!(gate(&turns(40), &["--markdown", "-"]).code, Some(0));
    let failed = gate("sh -c 'exit 3'", &["--fail-above", "50%", "--allow-undecided"]);
    assert_eq!(failed.code, Some(2), "{}", failed.err);
    let alone = home.run(&["run", "--fail-above", "5%", "--", "true"]);
    assert_eq!(alone.code, Some(2));
    assert!(alone.err.contains("--vs"), "{}", alone.err);
    let (said, record) =
        record(&home, &["-n", "2", "--fail-above", "50%", "--vs", "true", "--", "true"]);
    assert_eq!((said.code, &record["gate"]["verdict"]), (Some(3), &Value::from("undecided")));
}

#[test]
fn what_runs_out_is_named() {
    let home = Home::new();
    // From what the dynamic loader needs on: a clear line, or all works. No limit hangs or panics.
    let mut named = 0;
    for limit in 4.. {
        let script = format!("ulimit -n {limit}; exec {PROGRAM} run --no-estimate -- true");
        let said = Said::of(home.command("sh").args(["-c", &script]));
        match said.code {
            Some(0 | 127) => {}
            Some(1) if said.err.contains("error: ") => {
                named += u32::from(said.err.contains("Too many open files"));
            }
            _ => panic!("ulimit -n {limit}: {said:?}"),
        }
        // It suffices, and so does every higher one.
        if said.code == Some(0) {
            break;
        }
    }
    assert!(named > 0, "no limit was named");
    // The command's own standard error is closed: the report is not.
    let said = home.run(&["run", "--no-estimate", "--", "sh", "-c", "exec 2>&-; exit 3"]);
    assert_eq!(said.code, Some(3));
    assert!(said.err.contains("max resident"), "{}", said.err);
    let script = format!("exec 2>&-; exec {PROGRAM} run --no-estimate -- sh -c 'exit 4'");
    assert_eq!(Said::of(home.command("sh").args(["-c", &script])).code, Some(4));
}

#[test]
fn bytes_pass_through() {
    let home = Home::new();
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|i| ((i * 31) >> 3) as u8).collect();
    let mut program = home.command(PROGRAM);
    program.args(["run", "--quiet", "--no-estimate", "--", "sh", "-c", "cat; echo err >&2"]);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent).expect("written"));
    let output = child.wait_with_output().expect("an end");
    writer.join().expect("written");
    assert!(output.stdout == bytes, "{} bytes came through", output.stdout.len());
    assert_eq!(output.stderr, b"err\n");
}

#[test]
fn a_command_finds_its_process_as_without_us() {
    // What is open (the last one is ls's own), which signals are ignored and blocked, limits,
    // terminal.
    same_under_the_program("", &["ls", "/proc/self/fd"]);
    same_under_the_program("exec 7</dev/null;", &["ls", "/proc/self/fd"]);
    let signals = &["grep", "-E", "^Sig(Ign|Blk|Cgt)", "/proc/self/status"];
    same_under_the_program("", signals);
    same_under_the_program("trap '' INT HUP USR1;", signals);
    same_under_the_program("by='env --block-signal=TERM,QUIT';", signals);
    // Two that the runtime and this program change for themselves.
    // Some shells cannot ignore SIGCHLD.
    same_under_the_program("by='env --ignore-signal=PIPE,CHLD';", signals);
    same_under_the_program(
        "exec 0<&-;",
        // Nothing that opens a descriptor itself: it would be this one.
        &["sh", "-c", "if [ -e /proc/$$/fd/0 ]; then echo open; else echo closed; fi"],
    );
    same_under_the_program("ulimit -c 0;", &["sh", "-c", "ulimit -c; umask; pwd"]);
}

#[test]
fn a_small_command_after_a_large_one_has_its_own_maxrss() {
    if lacks([Need::Program("dd")]) {
        return;
    }
    let home = Home::new();
    let dd = |size: &str| format!("dd if=/dev/zero of=/dev/null bs={size} count=1");
    let (large, small) = (dd("64M"), dd("4M"));
    let words: Vec<&str> = large.split(' ').collect();
    let args = [&["-n", "4", "--vs", &small, "--"], &words[..]].concat();
    let (said, record) = record(&home, &args);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for run in runs(&record) {
        let resident = number(&run["usage"]["max_resident_bytes"]);
        // The buffer, and up to 8 MiB for dd and its libraries, or what it was forked from.
        let buffer = if run["command"] == 0 { 64 * MIB } else { 4 * MIB };
        assert!((buffer..buffer + 8 * MIB).contains(&resident), "{run}");
        assert!(number(&run["at_exec"]["resident_bytes"]) < 8 * MIB, "{run}");
    }
}

#[test]
fn two_commands_are_interleaved_in_a_recorded_order() {
    let home = Home::new();
    let order = |seed: &str| {
        let args =
            ["-n", "12", "--verbose", "--vs", "sh -c 'exit 3'", "--seed", seed, "--", "true"];
        let (said, record) = record(&home, &args);
        assert_eq!(said.code, Some(3), "{}", said.err);
        assert!(said.err.contains("command 2 / command 1, real time"), "{}", said.err);
        assert_eq!(record["ratios"].as_array().map(Vec::len), Some(2));
        assert_eq!(record["ratios"][0]["rounds"], 12);
        assert!(record["ratios"][0]["low"].is_number());
        let place = |run: &Value| (number(&run["round"]), number(&run["command"]));
        runs(&record).iter().map(place).collect::<Vec<_>>()
    };
    let first = order("5");
    assert_eq!(first.len(), 24);
    for round in 0..12 {
        let mut both: Vec<u64> =
            first.iter().filter(|place| place.0 == round).map(|place| place.1).collect();
        both.sort_unstable();
        assert_eq!(both, [0, 1], "round {round}");
    }
    let leads = |order: &[(u64, u64)]| order.iter().step_by(2).map(|p| p.1).collect::<Vec<_>>();
    assert!(leads(&first).contains(&0) && leads(&first).contains(&1), "{first:?}");
    assert_eq!(order("5"), first);
    assert_ne!(order("6"), first);
}

#[test]
fn csv_has_a_row_a_run_and_warm_ups_have_none() {
    let home = Home::new();
    let said = home.run(&[
        "run",
        "--no-estimate",
        "--quiet",
        "-n",
        "3",
        "--warmup",
        "2",
        "--csv",
        "-",
        "--",
        "sh",
        "-c",
        "exit 0",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let rows: Vec<&str> = said.out.lines().collect();
    assert_eq!(rows.len(), 4, "{}", said.out);
    assert!(rows[0].starts_with("experiment,command,round,interrupted,exit_code,signal,real_ns,"));
    assert!(rows[1].starts_with("run,0,0,false,0,,"), "{}", rows[1]);
    assert_eq!(rows[0].split(',').count(), rows[1].split(',').count());
}

#[test]
fn switches_and_bytes_are_counted() {
    let home = Home::new();
    let script = "for i in 1 2 3 4 5; do sleep 0.01; done; head -c 100000 /dev/zero";
    let (said, record) = record(&home, &["--", "sh", "-c", script]);
    assert_eq!(said.code, Some(0));
    let run = &runs(&record)[0];
    // Each sleep waits once, and the shell for each of them.
    assert!(number(&run["usage"]["voluntary"]) >= 10, "{run}");
    let io = &run["io"];
    match io.get("unknown") {
        Some(why) => skip(Need::Hardware("/proc/PID/io"), why),
        None => assert!((100_000..200_000).contains(&number(&io["write_call_bytes"])), "{io}"),
    }
    assert_eq!(record["not_kept"].as_array().map(Vec::len), Some(7));
    // Its own time without its children's is no more than all of it.
    let all = number(&run["usage"]["user_ns"]) + number(&run["usage"]["system_ns"]);
    assert!(number(&run["own_cpu_ns"]) <= all + 10_000, "{run}");
}

#[test]
fn what_is_left_behind_is_told_and_left_alone() {
    let home = Home::new();
    for tree in [&[][..], &["--tree"]] {
        let script = "sleep 60 >/dev/null 2>&1 & exit 0";
        let (said, record) = record(&home, &[tree, &["--", "sh", "-c", script]].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let left = runs(&record)[0]["orphans"]["left_behind"].as_array().expect("ids");
        assert_eq!(left.len(), 1, "{record}");
        let pid = Pid::from_raw(number(&left[0]) as i32).expect("an id");
        assert!(test_kill_process(pid).is_ok(), "it is gone");
        let words = format!("process {} still ran after the end of ", pid.as_raw_nonzero());
        assert!(said.err.contains(&words), "{}", said.err);
        kill_process(pid, Signal::KILL).expect("a signal");
    }
    home.wait_until_alone();
}

#[test]
fn a_tree_counts_orphans_that_end() {
    let home = Home::new();
    // The subshell is orphaned and waits for its ten sleeps.
    let script = "(for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done) >/dev/null 2>&1 & exit 0";
    let (said, with) = record(&home, &["--tree", "--verbose", "--", "sh", "-c", script]);
    let orphans = &runs(&with)[0]["orphans"];
    assert_eq!(number(&orphans["ended"]), 1, "{orphans}: {}", said.err);
    assert!(number(&orphans["usage"]["voluntary"]) >= 20, "{orphans}");
    assert!(said.err.contains("counted with it"), "{}", said.err);
    let (_, without) = record(&home, &["--", "sh", "-c", script]);
    assert!(runs(&without)[0]["orphans"]["usage"].is_null(), "{without}");
    home.wait_until_alone();
}

#[test]
fn switching_is_estimated_from_a_first_quick_measurement() {
    let home = Home::new();
    let run = || {
        let said = home.run(&["run", "--json", "-", "--quiet", "--", "sh", "-c", "sleep 0.01"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.json()
    };
    let first = run();
    assert_valid(&first);
    let switching = &first["commands"][0]["switching"];
    if switching["cost"]["answer"] == "cannot_tell" {
        // On a machine where five rounds take longer than their budget nothing of it holds: it says
        // so.
        let why = switching["surface"]["unknown"].as_str().expect("a reason");
        assert!(why.starts_with("the quick measurement is no profile: "), "{switching}");
        return skip(Need::Quiet, "the quick measurement gave no cost that holds");
    }
    assert_eq!(switching["cost"]["answer"], "estimated", "{switching}");
    assert!(switching["lost_ns"]["low"].as_f64() <= switching["lost_ns"]["high"].as_f64());
    assert_eq!(
        switching["surface"]["run"],
        home.run_file().file_stem().expect("a name").to_str().expect("UTF-8")
    );
    // It is stored: the second time nothing is measured.
    let second = run();
    home.run_file();
    // What is stored: it is older by then, and brought to the clock that the core has now.
    let stored = |switching: &Value| {
        let surface = &switching["surface"];
        let points = surface["points"].as_array().expect("points");
        let bytes: Vec<Value> = points.iter().map(|point| point["array_bytes"].clone()).collect();
        (surface["run"].clone(), surface["measured_ghz"].clone(), bytes)
    };
    assert_eq!(stored(&second["commands"][0]["switching"]), stored(switching));
    home.wait_until_alone();
}

#[test]
fn a_profile_that_is_asked_for_must_be_one() {
    let home = Home::new();
    let file = home.path().join("ran");
    let script = format!("touch {}", file.display());
    let said = home.run(&["run", "--profile", "none", "--", "sh", "-c", &script]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
    assert!(said.error().contains("no stored run is called 'none'"), "{}", said.err);
    assert!(!file.exists(), "a command was run");
    let both = home.run(&["run", "--profile", "none", "--no-estimate", "--", "true"]);
    assert_eq!(both.code, Some(2), "{}", both.err);
}

#[test]
fn a_small_command_beside_one_with_many_words_has_its_own_maxrss() {
    let home = Home::new();
    let word = "x".repeat(10_000);
    let most = |words: &[&str]| {
        let args = [&["-n", "5", "--vs", "true", "--", "true"], words].concat();
        let (said, record) = record(&home, &args);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let own = runs(&record).iter().filter(|run| run["command"] == 1);
        own.map(|run| number(&run["usage"]["max_resident_bytes"])).max().expect("runs")
    };
    // What it was forked from has a part in it, but not those words.
    let (alone, beside) = (most(&[]), most(&[&*word; 100]));
    assert!(beside < alone + MIB / 2, "{beside} beside a megabyte of words, {alone} without");
}

#[test]
fn the_greatest_of_all_children_hides_a_small_one() {
    if lacks([Need::Program("dd")]) {
        return;
    }
    let home = Home::new();
    let dd = |size: &str| format!("dd if=/dev/zero of=/dev/null bs={size} count=1");
    for size in ["64M", "4M"] {
        let mut shell = home.command("sh");
        assert_eq!(Said::of(shell.args(["-c", &dd(size)])).code, Some(0));
    }
    // What a tool says that asks for RUSAGE_CHILDREN after the small one.
    let both = probe::classic::usage(probe::classic::UsageScope::Children).max_resident_bytes();
    assert!(both >= 64 * MIB, "{both}");
    let small = dd("4M");
    let args: Vec<&str> = ["--"].into_iter().chain(small.split(' ')).collect();
    let (_, record) = record(&home, &args);
    let own = number(&runs(&record)[0]["usage"]["max_resident_bytes"]);
    assert!((4 * MIB..12 * MIB).contains(&own), "{own}");
}

#[test]
fn places_that_cannot_be_written_are_told_before_anything_runs() {
    let home = Home::new();
    let ran = home.path().join("ran");
    let kept = home.path().join("kept");
    fs::write(&kept, "kept").expect("a file");
    let kept = kept.to_str().expect("UTF-8");
    let folder = home.path().to_str().expect("UTF-8");
    for (json, words) in [("/no/such/folder/x", "/no/such/folder"), (folder, "it is a directory")] {
        let touch = ["--", "touch", ran.to_str().expect("UTF-8")];
        let said = home.run(&[&["run", "--csv", kept, "--json", json], &touch[..]].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
        assert!(said.error().contains(words), "{}", said.err);
        assert!(!ran.exists(), "the command has run");
        assert_eq!(fs::read_to_string(kept).expect("a file"), "kept");
    }
    // One that turns out to be full does not cost the other.
    let args = ["run", "--no-estimate", "--quiet", "--json", "/dev/full", "--csv", "-"];
    let said = home.run(&[&args[..], &["--", "true"]].concat());
    assert_eq!((said.code, said.out.lines().count()), (Some(1), 2), "{said:?}");
    assert!(said.error().contains("/dev/full"), "{}", said.err);
}

#[test]
fn what_an_earlier_run_has_left_is_not_charged_to_the_next() {
    let home = Home::new();
    let once = home.path().join("once");
    let stop = home.path().join("stop");
    let made = home.path().join("made");
    let (once, stop, made) = (once.display(), stop.display(), made.display());
    // A daemon of the first run that goes on making orphans while the others run: each of them
    // lasts until three more orphans have come, the first of which has ended by then.
    let script = format!(
        "count() {{ wc -l < {made}; }}
        if [ ! -e {once} ]; then
            : > {once}; : > {made}
            (while [ ! -e {stop} ]; do
                (sh -c 'echo x >> {made}' &); sleep 0.01
            done) >/dev/null 2>&1 &
        fi
        n=$(count); while [ $(count) -lt $((n + 3)) ]; do sleep 0.01; done"
    );
    let (said, record) =
        record(&home, &["-n", "3", "--tree", "--verbose", "--", "sh", "-c", &script]);
    fs::write(home.path().join("stop"), "").expect("a file");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let [_, later @ ..] = &runs(&record)[..] else { panic!("no runs") };
    for run in later {
        let orphans = &run["orphans"];
        assert_eq!(
            (number(&orphans["ended"]), number(&orphans["usage"]["voluntary"])),
            (0, 0),
            "{run}"
        );
    }
    assert!(later.iter().any(|run| number(&run["orphans"]["of_unknown_origin"]) > 0), "{record}");
    assert!(said.err.contains("so their run is unknown"), "{}", said.err);
    home.wait_until_alone();
}

#[test]
fn an_ordinary_user_learns_of_bytes_too() {
    // Without root all other tests run as an ordinary user.
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    let home = Home::new();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o1777)).expect("its mode");
    let to = home.path().join("r.json").display().to_string();
    let as_nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM];
    // What is over sooner than its file is opened is root's by then: it lasts until it is.
    let script = "head -c 100000 /dev/zero
        until ls -l /proc/$PPID/fd | grep -q \" /proc/$$/io$\"; do sleep 0.01; done";
    let args = ["run", "--no-estimate", "-n", "3", "--json", &to, "--", "sh", "-c", script];
    let said = Said::of(home.command("setpriv").args(as_nobody).args(args));
    assert_eq!(said.code, Some(0), "{}", said.err);
    for run in runs(&read(Path::new(&to))) {
        assert!(number(&run["io"]["write_call_bytes"]) >= 100_000, "{}", run["io"]);
    }
}

#[test]
fn figures_that_nobody_could_get_are_refused_before_anything_runs() {
    let home = Home::new();
    let under = |script: &str| {
        Said::of(home.command("sh").current_dir(home.path()).args(["-c", script, PROGRAM]))
    };
    for format in ["--json", "--csv"] {
        let closed = under(&format!("exec \"$0\" run --no-estimate {format} - -- touch ran >&-"));
        assert_eq!(closed.code, Some(2), "{}", closed.err);
        assert!(closed.error().contains("standard output is closed"), "{}", closed.err);
    }
    let twice = under("exec \"$0\" run --no-estimate --json same --csv ./same -- touch ran");
    assert_eq!(twice.code, Some(2), "{}", twice.err);
    assert!(twice.error().contains("only one of them can have that file"), "{}", twice.err);
    assert!(!home.path().join("ran").exists(), "it ran");
}

#[test]
fn what_a_terminal_would_obey_is_not_printed() {
    let home = Home::new();
    let said = home.run(&["run", "--no-estimate", "--", "true", "a\u{1b}[31m\u{202e}b"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("[31mb"), "{}", said.err);
    assert!(!said.err.contains(['\u{1b}', '\u{202e}']), "{:?}", said.err);
}

/// A script that says which run it is of all that were started, and how often it has run.
fn counting(home: &Home) -> String {
    let count = home.path().join("count");
    format!("echo x >> {0}; n=$(wc -l < {0}); echo out $n; echo err $n >&2", count.display())
}

#[test]
fn outputs_of_several_runs_are_discarded() {
    for (args, shown) in [
        (&["-n", "3"][..], 0),
        (&["-n", "2", "--warmup", "1"], 0),
        (&["--budget", "1ms"], 0),
        (&["-n", "3", "--show-output"], 3),
        (&["-n", "1"], 1),
        (&[], 1),
    ] {
        let home = Home::new();
        let script = counting(&home);
        let run = ["run", "--quiet", "--no-estimate"];
        let said = home.run(&[&run, args, &["--", "sh", "-c", &script]].concat());
        let lines = |what: &str| (1..=shown).map(|n| format!("{what} {n}\n")).collect::<String>();
        assert_eq!((said.out, said.err), (lines("out"), lines("err")), "{args:?}");
        let count = fs::read_to_string(home.path().join("count")).expect("a file");
        assert!(count.lines().count() >= shown, "{args:?}");
    }
}

#[test]
fn outputs_of_several_commands_are_discarded() {
    let home = Home::new();
    let quiet = ["run", "--quiet", "--no-estimate", "-n", "1"];
    let two = ["--vs", "echo b", "--", "echo", "a"];
    assert_eq!(home.run(&[&quiet[..], &two].concat()).out, "");
    let shown = home.run(&[&quiet[..], &["--show-output"], &two].concat());
    let mut lines: Vec<&str> = shown.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a", "b"]);
    // What was closed stays closed.
    let script = format!(
        "exec {PROGRAM} run --quiet --no-estimate -n 3 -- sh -c '[ ! -e /proc/$$/fd/1 ] || exit \
         9' >&-"
    );
    assert_eq!(Said::of(home.command("sh").args(["-c", &script])).code, Some(0));
}

/// Whoever reads the figures from standard output finds nothing else there.
#[test]
fn figures_are_alone_on_standard_output() {
    let home = Home::new();
    let run = ["run", "--no-estimate"];
    for command in [&["--", "echo", "a"][..], &["echo a", "echo b"]] {
        let said = home.run(&[&run[..], &["--json", "-"], command].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_valid(&said.json());
    }
    let csv = home.run(&[&run[..], &["--csv", "-", "--", "echo", "a"]].concat());
    assert!(csv.out.starts_with("experiment,"), "{}", csv.out);
    for flag in ["--json", "--csv", "--markdown"] {
        let said =
            home.run(&[&run[..], &["--show-output", flag, "-", "echo a", "echo b"]].concat());
        assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
        assert!(said.error().contains(&format!("{flag} FILE")), "{}", said.err);
    }
}

/// Measures sleeps, of which the first is the shortest, again while a busy machine does not let them
/// be told apart: by the ratios of the record, whatever the headline says. If it never does, that is
/// said.
fn told_apart(home: &Home, args: &[&str]) -> Option<(Said, Value)> {
    let is_apart = |(said, record): &(Said, Value)| {
        assert_eq!(said.code, Some(0), "{}", said.err);
        let ratios = record["ratios"].as_array().expect("ratios");
        let mut real = ratios.iter().filter(|ratio| ratio["of"] == "real_ns").peekable();
        assert!(real.peek().is_some(), "{record}");
        real.all(|ratio| ratio["low"].as_f64().is_some_and(|low| low > 1.0))
    };
    let found = (0..10).map(|_| record(home, args)).find(is_apart);
    if found.is_none() {
        skip(Need::Quiet, "sleeps cannot be told apart");
    }
    found
}

#[test]
fn three_commands_are_compared_with_the_first() {
    let home = Home::new();
    let args = ["-n", "6", "--vs", "sleep 0.03", "--vs", "sleep 0.05", "--", "sleep", "0.01"];
    let Some((said, record)) = told_apart(&home, &args) else { return };
    let first = said.err.lines().next().expect("a headline");
    assert!(first.starts_with("sleep 0.01 is ") && first.contains("x ("), "{first}");
    assert_eq!(record["schema"], 2);
    assert_eq!((runs(&record).len(), record["commands"].as_array().map(Vec::len)), (18, Some(3)));
    let of = |ratio: &Value| (ratio["of"].as_str().map(str::to_string), number(&ratio["command"]));
    let ratios: Vec<_> = record["ratios"].as_array().expect("ratios").iter().map(of).collect();
    let [real, cpu] = ["real_ns", "cpu_ns"].map(|name| Some(name.to_string()));
    assert_eq!(ratios, [(real.clone(), 1), (cpu.clone(), 1), (real, 2), (cpu, 2)]);
}

#[test]
fn a_parameter_makes_commands_that_are_named_by_its_values() {
    let home = Home::new();
    for (args, words) in [
        (&["--parameter", "n", "1,2", "--", "true"][..], "there is no {n} in the command"),
        (&["--parameter", "n", "1", "--parameter", "n", "2", "--", "echo", "{n}"], "given twice"),
        (&["--name", "x", "--", "true"], "unexpected argument '--name'"),
    ] {
        let said = home.run(&[&["run"], args].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.error().contains(words), "{args:?}: {}", said.err);
    }
    let values = ["--parameter", "time", "0.01,0.05", "--", "sleep", "{time}"];
    let args = [&["-n", "5", "--store-command"][..], &values].concat();
    let Some((said, record)) = told_apart(&home, &args) else { return };
    assert!(said.err.starts_with("time=0.01 is "), "{}", said.err);
    let commands = record["plan"]["commands"].to_string();
    assert_eq!(commands, r#"[["sleep","0.01"],["sleep","0.05"]]"#);
    assert_eq!(record["plan"]["names"].to_string(), r#"["time=0.01","time=0.05"]"#);
}

#[test]
fn all_commands_are_looked_up_before_the_first_is_run() {
    let home = Home::new();
    let ran = home.path().join("ran");
    let plain = home.path().join("plain");
    fs::write(&plain, "no program").expect("a file");
    let touch = ["--", "touch", ran.to_str().expect("UTF-8")];
    for (name, code) in [("no-such-command-anywhere", 127), (plain.to_str().expect("UTF-8"), 126)] {
        let args = ["run", "--warmup", "1", "--vs", "true", "--vs", name];
        let said = home.run(&[&args[..], &touch[..]].concat());
        assert_eq!(said.code, Some(code), "{}", said.err);
        assert!(said.error().contains(&format!("cannot run '{name}'")), "{}", said.err);
        assert!(!ran.exists(), "something ran");
    }
}

#[test]
fn the_answer_comes_first_and_what_is_known_on_request() {
    let home = Home::new();
    let one = home.run_in_eighty_columns(&["run", "--no-estimate", "--", "sleep", "0.01"]);
    assert!(one.err.starts_with("sleep 0.01: "), "{}", one.err);
    assert!(one.err.lines().next().is_some_and(|line| line.contains(" real, ")), "{}", one.err);
    assert!(!one.err.contains("not recorded by Linux"), "{}", one.err);
    let all = home.run(&["run", "--no-estimate", "--verbose", "--", "sleep", "0.01"]);
    assert!(all.err.contains("not recorded by Linux: ixrss"), "{}", all.err);
    let six = ["run", "--no-estimate", "-n", "6", "--", "sleep", "0.01"];
    let several = home.run_in_eighty_columns(&six);
    let first = several.err.lines().next().expect("a headline");
    assert!(first.starts_with("sleep 0.01: ") && first.ends_with("), 6 runs"), "{first}");
    for said in [&one, &several] {
        assert!(said.err.lines().all(|line| line.chars().count() <= 80), "{}", said.err);
        assert!(said.err.lines().all(|line| line == line.trim_end()), "{:?}", said.err);
    }
    // Nothing is stored.
    assert_eq!(home.run_files().len(), 0);
}

#[test]
fn colour_is_for_terminals_or_on_request() {
    let home = Home::new();
    let sleeps = ["--vs", "sleep 0.04", "--", "sleep", "0.01"];
    assert!(!home.run(&[&["run", "--no-estimate"], &sleeps[..]].concat()).err.contains('\x1b'));
    let args = [&["--color", "always"], &sleeps[..]].concat();
    let Some((coloured, _)) = told_apart(&home, &args) else { return };
    let coloured = coloured.err;
    assert!(coloured.contains("\x1b[32mfaster\x1b[0m"), "{coloured:?}");
    assert!(coloured.starts_with("sleep 0.01 is \x1b[1;36m"), "{coloured:?}");
    let mut never = home.command(PROGRAM);
    never.env("CLICOLOR_FORCE", "1").args([
        "run",
        "--color",
        "never",
        "--no-estimate",
        "--",
        "true",
    ]);
    assert!(!Said::of(&mut never).err.contains('\x1b'));
}

//! `switchcost ring --link help`, and rings that compare links.

use std::process::Stdio;

use crate::common::{Home, seed_of_order};
use testing::{Need, lacks, skip};

/// Of `switchcost ring --link help --json -`: the names of links, and whether they are here.
fn listed(home: &Home) -> Vec<(String, bool)> {
    let said = home.run(&["ring", "--link", "help", "--json", "-"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let list = said.json();
    let links = list.as_array().expect("a list");
    let one = |link: &serde_json::Value| {
        let text = |key: &str| link[key].as_str().expect("words").to_string();
        assert!(!text("summary").is_empty() && !text("needs").is_empty());
        let available = link["available"].as_bool().expect("yes or no");
        assert_eq!(link["why_not"].is_null(), available);
        (text("name"), available)
    };
    links.iter().map(one).collect()
}

#[test]
fn links_are_listed_with_what_they_need_and_whether_they_are_here() {
    let home = Home::new();
    let said = home.run(&["ring", "--link", "help"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let all = listed(&home);
    assert_eq!(said.out.lines().count(), 2 * all.len());
    for (name, available) in &all {
        let mut lines = said.out.lines().skip_while(|line| !line.starts_with(&format!("{name} ")));
        let needs = lines.nth(1).unwrap_or_default().trim();
        assert!(needs.starts_with("needs "), "{name}: {needs}");
        assert_eq!(needs.ends_with("; available"), *available, "{name}: {needs}");
    }
    home.wait_until_alone();
}

/// Signals that are ignored stay so over exec: the kernel would keep no child to be waited for.
#[test]
fn ignored_deaths_of_children_are_none_of_its_business() {
    let home = Home::new();
    if lacks([Need::Program("env")]) {
        return;
    }
    let mut command = home.command("env");
    command.args([
        "--ignore-signal=CHLD",
        crate::common::PROGRAM,
        "ring",
        "--link",
        "help",
        "--json",
        "-",
    ]);
    let said = crate::common::Said::of(&mut command);
    if said.err.contains("unrecognized option") {
        return skip(Need::Program("env --ignore-signal"), "this env(1) does not ignore signals");
    }
    let names = |list: serde_json::Value| -> Vec<_> {
        let all = list.as_array().expect("a list").iter();
        all.map(|link| (link["name"].to_string(), link["available"].to_string())).collect()
    };
    assert_eq!(
        names(said.json()),
        names(home.run(&["ring", "--link", "help", "--json", "-"]).json())
    );
}

#[test]
fn all_links_are_compared_in_one_table() {
    let home = Home::new();
    let few = ["--members", "2", "--laps", "100", "--rounds", "1", "--kind", "thread"];
    let said = home.measure(&[&["--link", "all"], &few[..]].concat());
    let wanted = listed(&home).into_iter().filter(|(_, available)| *available);
    let rings = |name: String| [(name.clone(), "1".to_string()), (name, "2".to_string())];
    let wanted: Vec<_> = wanted.flat_map(|(name, _)| rings(name)).collect();
    let table = said.table();
    let found: Vec<_> = table.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(found, wanted);
    let ring = said.out.lines().rfind(|line| line.trim_start().starts_with("coroutine  "));
    assert!(ring.is_some_and(|row| row.contains(" does not switch ")), "{}", said.out);
    let quiet = said.out.lines().find(|line| line.starts_with("does not switch: "));
    assert!(quiet.is_some_and(|line| line.contains("2 by coroutine (0.0")), "{}", said.out);
}

#[test]
fn what_does_not_switch_has_no_cost_of_a_switch_in_the_record_either() {
    let home = Home::new();
    let args = ["ring", "--link", "coroutine", "--kind", "thread", "--members", "2,3"];
    // Looked at after eight rounds, and after twelve.
    let stopping = ["--laps", "300", "--rounds", "13", "--precision", "99%", "--budget", "600s"];
    let stopping = [&stopping[..], &["--json", "-"]].concat();
    let said = home.run(&[&args[..], &stopping].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = said.json();
    let cases = record["cases"].as_array().expect("cases");
    for case in cases.iter().filter(|case| case["case"]["members"] != 1) {
        assert_eq!(case["does_not_switch"], true, "{case}");
        assert!(case["ns_per_switch_above_solo"].is_null(), "{case}");
        assert!(case["ns_per_hop"]["value"].as_f64().is_some_and(|ns| ns > 0.0), "{case}");
    }
    assert_eq!(record["scaling"].as_array().map(Vec::len), Some(0));
    // On a quiet machine its hops become precise at once; a cost that is not there never would.
    let (reason, noise) = (&record["end"]["reason"], &record["noise"]["level"]);
    assert!(reason == "precise" || noise != "quiet", "{}: {}", record["end"], record["noise"]);
}

#[test]
fn all_leaves_out_with_a_word_what_cannot_be() {
    let home = Home::new();
    let few = ["--members", "2", "--laps", "100", "--rounds", "1", "--placement", "free"];
    let said = home.measure(&[&["--link", "all"], &few[..]].concat());
    for (name, help) in [("yield", "--placement same"), ("coroutine", "--kind thread")] {
        let start = format!("note: left out: --link {name}: ");
        let note = said.out.lines().find(|line| line.starts_with(&start));
        assert!(note.is_some_and(|note| note.contains(help)), "{name}: {}", said.out);
        assert!(!said.table().iter().any(|row| row[0] == name));
    }
}

#[test]
fn a_list_of_links_is_measured_and_shown_again() {
    let home = Home::new();
    let few = ["--members", "2,3", "--laps", "100", "--rounds", "1"];
    let said = home.measure(&[&["--link", "futex,pipe,futex"], &few[..]].concat());
    assert!(said.out.contains("process members by futex, pipe, "), "{}", said.out);
    let names: Vec<String> = said.table().into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, ["futex", "futex", "futex", "pipe", "pipe", "pipe"]);
    for link in ["futex", "pipe"] {
        assert!(said.out.contains(&format!("scaling by {link}: ")), "{}", said.out);
    }
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]);
    assert_eq!(shown.table(), said.table());
}

#[test]
fn an_alias_is_measured_once_and_stored_under_the_links_name() {
    let home = Home::new();
    let few = ["--members", "2", "--laps", "100", "--rounds", "1", "--budget", "600s"];
    let args = ["ring", "--link", "unix,pipe,socket-stream", "--json", "-"];
    let said = home.run(&[&args[..], &few[..]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = said.json();
    let cases = record["cases"].as_array().expect("cases").iter();
    let mut stored: Vec<_> = cases.map(|case| case["case"]["link"].to_string()).collect();
    stored.sort();
    stored.dedup();
    assert_eq!(stored, ["\"pipe\"", "\"socket-stream\""]);
    let shown = home.run(&["runs", "show", "last", "--verbose", "--wide"]).table();
    let printed: Vec<String> = shown.into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(printed, ["socket-stream", "socket-stream", "pipe", "pipe"]);
    let list = home.run(&["ring", "--link", "help"]).out;
    assert!(list.contains("(also: unix)") && list.contains("(also: tcp-loopback)"), "{list}");
}

#[test]
fn a_link_that_cannot_be_had_is_refused_with_what_to_do() {
    let home = Home::new();
    for (args, code, words) in [
        (&["--link", "pigeon"][..], 2, &["'pigeon'", "socket-stream", "or all"][..]),
        (&["--link", "pipe,"], 2, &["''", "accepted"]),
        (&["--link", "coroutine"], 2, &["--kind thread"]),
        (&["--link", "yield", "--placement", "free"], 2, &["--placement same"]),
    ] {
        let said = home.run(&[&["ring", "--verbose", "--wide"], args].concat());
        assert_eq!((said.code, &*said.out), (Some(code), ""), "{args:?}");
        for word in words {
            assert!(said.error().contains(word), "no {word:?} in {}", said.err);
        }
    }
}

/// A new network namespace has a loopback device that is down.
#[test]
fn without_a_loopback_device_tcp_says_what_to_do() {
    let home = Home::new();
    if lacks([Need::Program("unshare")]) {
        return;
    }
    let without = |program: &str| {
        let mut command = home.command("unshare");
        command.args(["--user", "--map-root-user", "--net", program]);
        command
    };
    if !without("true").status().is_ok_and(|status| status.success()) {
        return skip(Need::Namespaces, "no network namespace");
    }
    let mut command = without(crate::common::PROGRAM);
    command.args(["ring", "--members", "2", "--link", "tcp-loopback"]);
    let said = crate::common::Said::of(&mut command);
    assert_eq!((said.code, &*said.out), (Some(1), ""), "{}", said.err);
    for words in ["--link tcp: not available: connect: ", "ip link set lo up"] {
        assert!(said.error().contains(words), "{}", said.err);
    }
}

/// Without privilege a user namespace does: members, counters and all.
#[test]
fn an_ordinary_user_has_the_same_links() {
    let home = Home::new();
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    // Somebody else may not look into the folder that the tests are built in.
    let program = home.path().join("program");
    crate::common::copy_program(crate::common::PROGRAM.as_ref(), &program);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    std::fs::set_permissions(home.path(), open).expect("a folder for all");
    let mut command = home.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    let few = ["--members", "3", "--laps", "50", "--rounds", "1", "--budget", "600s"];
    command.args(["ring", "--verbose", "--wide", "--link", "all"]).args(few);
    let said = crate::common::Said::of(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let has = |name: &str| said.table().iter().any(|row| row[0] == name && row[1] == "3");
    assert!(has("pipe") && has("futex") && has("signal"), "{}", said.out);
    // These may be refused, and then it is said.
    for name in ["sysv-sem", "sysv-msg", "posix-mq", "io-uring"] {
        let left_out = said.err.contains(&format!("left out: --link {name}: not available: "));
        assert!(has(name) != left_out, "{name}: {}{}", said.out, said.err);
    }
}

/// Objects of System V that can be seen from outside the ring.
fn sysv_objects() -> String {
    let read = |what: &str| std::fs::read_to_string(format!("/proc/sysvipc/{what}"));
    ["sem", "msg"].map(|what| read(what).unwrap_or_default()).concat()
}

#[test]
fn a_killed_controller_leaves_nothing_by_any_link() {
    let home = Home::new();
    let temporary = home.path().join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let before = sysv_objects();
    // The ring of three first: then it is there when all of its processes are.
    let seed = seed_of_order("3", |sizes| sizes == [3, 1]);
    for (link, _) in listed(&home).into_iter().filter(|(name, here)| *here && name != "coroutine") {
        let mut command = home.command(crate::common::PROGRAM);
        command.env("TMPDIR", &temporary).args([
            "ring",
            "--verbose",
            "--wide",
            "--members",
            "3",
            "--seed",
            &seed,
            "--link",
            &link,
        ]);
        let child = command.args(["--laps", "100000000"]).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the program starts");
        crate::common::wait_for("a ring of three in the midst of its laps", || {
            let ring: Vec<_> = home.processes().into_iter().filter(|p| p.is_worker).collect();
            let ticks: u64 = ring.iter().map(|member| member.cpu_ticks()).sum();
            (ring.len() == 3 && ticks >= 2).then_some(())
        });
        child.kill().expect("the controller is killed");
        child.wait().expect("the controller has ended");
        home.wait_until_alone();
        assert_eq!(sysv_objects(), before, "{link}");
        let names: Vec<_> = std::fs::read_dir(&temporary).expect("a folder").collect();
        assert!(names.is_empty(), "{link}: {names:?}");
    }
}

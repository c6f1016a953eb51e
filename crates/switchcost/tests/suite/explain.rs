//! `switchcost explain`: every ring has the property that its part is the difference of, what is not
//! granted is named, and nothing stays behind.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::common::schema::Schema;
use crate::common::stored::Kept;
use crate::common::{Home, PROGRAM, Row, Rows, Said, assert_no_switch_is_missing, copy_program};
use serde_json::Value;
use testing::{Need, lacks, skip, wait_for};

/// Rings of the chain of two processes: members, kind, link.
const CHAIN: [(u64, &str, &str); 7] = [
    (2, "process", "pipe"),
    (1, "process", "pipe"),
    (1, "thread", "yield"),
    (2, "thread", "yield"),
    (1, "thread", "eventfd"),
    (2, "thread", "eventfd"),
    (2, "process", "yield"),
];

/// One round of everything, measured once for all tests that read it.
fn measured() -> &'static Kept {
    static MEASURED: OnceLock<Kept> = OnceLock::new();
    MEASURED.get_or_init(|| {
        Kept::of(|home, csv| {
            let args = ["explain", "--rounds", "1", "--budget", "60s", "--verbose", "--csv", csv];
            let said = home.run(&args);
            assert_eq!((said.code, &*said.err), (Some(0), ""), "{}", said.err);
            said
        })
    })
}

fn rings(record: &Value) -> Vec<Value> {
    let cases = record["cases"].as_array().expect("cases");
    cases.iter().filter_map(|of| of.get("ring")).cloned().collect()
}

fn names(record: &Value, list: &str) -> Vec<String> {
    let parts = record["explained"][list].as_array().expect("parts");
    parts.iter().map(|of| of["part"].as_str().expect("a name").to_string()).collect()
}

#[test]
fn every_part_is_a_difference_of_rings_of_one_run() {
    let Kept { said, lines, record, shown, csv, list, .. } = measured();
    let rows = Rows::parse(csv);
    Schema::of("record").assert_holds(record);
    let schema = Schema::of("run-line");
    lines.iter().for_each(|line| schema.assert_holds(line));
    let all = rings(record);
    for (ring, (members, kind, link)) in all.iter().zip(CHAIN) {
        let case = &ring["case"];
        assert_eq!(
            (&case["members"], &case["kind"], &case["link"]),
            (&members.into(), &kind.into(), &link.into())
        );
    }
    for ring in &all {
        assert_eq!((&ring["rounds"], &ring["failure"]), (&1.into(), &Value::Null), "{ring}");
    }
    let parts = ["system-calls", "link", "scheduler", "address-space", "waking"];
    assert_eq!(names(record, "parts"), parts);
    // Of those that may be refused each is measured or named.
    let added: BTreeSet<String> = names(record, "added").into_iter().collect();
    let notices = record["header"]["notices"].to_string();
    for name in ["seccomp", "ibpb", "perf-event", "cgroup1", "cgroup4", "cgroup8"] {
        let is_named = notices.contains(&format!("not measured: {name}: "));
        assert!(added.contains(name) != is_named, "{name}: {notices}");
    }
    assert!(added.contains("runnable") && added.contains("timer-slack"), "{added:?}");
    // Each says what changes it, and of what cases it is.
    let cases = record["cases"].as_array().map_or(0, Vec::len) as u64;
    for list in ["parts", "added"] {
        for of in record["explained"][list].as_array().expect("parts") {
            assert!(of["changed_by"].as_str().is_some_and(|text| !text.is_empty()), "{of}");
            let numbers = of["cases"].as_array().expect("numbers");
            assert!(
                !numbers.is_empty() && numbers.iter().all(|n| n.as_u64() < Some(cases)),
                "{of}"
            );
        }
    }
    assert!(said.out.starts_with("A switch costs "), "{}", said.out);
    assert_eq!(*shown, said.out);
    assert!(list.contains(" explain ") && list.contains(" a switch, all included"), "{list}");
    let of_burdens = |name: &str| rows.rows.iter().filter(|row| row.text("burden") == name).count();
    for name in added.iter().filter(|name| name.starts_with("cgroup") || *name == "seccomp") {
        assert!(of_burdens(name) > 0, "{name}");
    }
}

/// What is divided by are switches that the kernel counted: one a hop at least, of all rings on one
/// CPU, burdened or not.
#[test]
fn every_hop_is_a_switch() {
    let rows = Rows::parse(&measured().csv);
    let is_ring = |row: &&Row| !row.text("link").is_empty();
    let one_cpu = rows.rows.iter().filter(is_ring).filter(|row| row.text("placement") == "same");
    let several = |row: &&Row| row.number("members") > 1;
    assert_no_switch_is_missing(one_cpu.filter(several));
}

#[test]
fn threads_are_explained_without_an_address_space() {
    let home = Home::new();
    let args = ["explain", "--kind", "thread", "--parts-only", "--rounds", "1", "--json", "-"];
    let said = home.run(&args);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = said.json();
    assert_eq!(names(&record, "parts"), ["system-calls", "link", "scheduler", "waking"]);
    assert!(names(&record, "added").is_empty());
    assert!(rings(&record).iter().all(|of| of["case"]["kind"] == "thread"));
}

#[test]
fn who_is_not_root_gets_the_chain_and_is_told_what_is_missing() {
    if lacks([Need::Root, Need::Program("setpriv")]) {
        return;
    }
    let home = Home::new();
    fs::set_permissions(home.path(), PermissionsExt::from_mode(0o1777)).expect("it is ours");
    let program = home.path().join("switchcost-copy");
    copy_program(PROGRAM.as_ref(), &program);
    let program = program.to_str().expect("a path in UTF-8");
    let mut command = home.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    let said = Said::of(command.args([program, "explain", "--rounds", "1", "--json", "-"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = said.json();
    assert_eq!(names(&record, "parts").len(), 5);
    let added = names(&record, "added");
    let notices = record["header"]["notices"].to_string();
    for (name, help) in [("awake", "run as root"), ("cgroup4", "run as root")] {
        let note = format!("not measured: {name}: ");
        assert!(notices.contains(&note) && notices.contains(help), "{notices}");
        assert!(!added.iter().any(|of| of == name || of == "other-cpu-awake"), "{added:?}");
    }
    assert!(said.err.contains("not measured: "), "{}", said.err);
    // A filter needs no privilege.
    assert!(added.iter().any(|of| of == "seccomp") || notices.contains("SECCOMP"), "{added:?}");
}

/// Where the hierarchies of control groups are, as far as their names are usual.
const MOUNTS: [&str; 4] = [
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup/cpu,cpuacct",
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
];
const PREFIX: &str = "switchcost-ring-";

/// The outermost group of ours that a process is in.
fn group_of(pid: i32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let (above, own) = text.lines().find_map(|line| line.split_once(PREFIX))?;
    let above = above.splitn(3, ':').nth(2)?;
    let name = own.split('/').next()?;
    let places = MOUNTS.iter().map(|mount| PathBuf::from(format!("{mount}{above}{PREFIX}{name}")));
    places.into_iter().find(|place| place.is_dir())
}

/// Killed while a ring is in its groups: the worker and its members go, and then the groups.
#[test]
fn a_killed_run_leaves_no_control_group() {
    let home = Home::new();
    let said = home.run(&["explain", "--rounds", "1", "--json", "-"]);
    if !names(&said.json(), "added").iter().any(|of| of == "cgroup8") {
        let need = Need::Hardware("groups with the cpu controller");
        return skip(need, "none may be made here");
    }
    let mut controller = home.start(&["explain", "--budget", "60s", "--quiet"]);
    let group = wait_for("a ring in a group", || {
        let workers = home.processes().into_iter().filter(|of| of.is_worker);
        workers.filter_map(|of| group_of(of.pid)).next()
    });
    controller.kill().expect("the controller is killed");
    controller.wait().expect("the controller has ended");
    home.wait_until_alone();
    wait_for("removal of the group", || (!group.exists()).then_some(()));
}

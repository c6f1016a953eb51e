//! Trees that hold nothing, or nothing of use.

use proptest::prelude::*;
use rundata::machine::Machine;
use serde_json::{Value, json};

use super::{assert_round_trip, below, files, known, put, read, unpack};

const BUNDLES: &[&str] =
    &["firecracker-epyc.txt", "xeon-two-sockets.txt", "rockpi-rt.txt", "garbage.txt"];

/// The paths in the JSON form at which something is known.
fn known_fields(machine: &Machine) -> Vec<String> {
    fn walk(at: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) if map.contains_key("unknown") => {}
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| walk(&format!("{at}/{key}"), value, found));
            }
            _ => found.push(at.to_owned()),
        }
    }
    let mut found = Vec::new();
    walk("", &serde_json::to_value(machine).unwrap(), &mut found);
    found
}

#[test]
fn of_an_empty_tree_nothing_is_known_and_everything_says_its_path() {
    let machine = read("empty.txt");
    assert_eq!(known_fields(&machine), [""; 0]);
    let json = serde_json::to_string(&machine).unwrap();
    assert!(!json.contains("not recorded"), "a field without a reader: {json}");
    for path in ["/proc/sys/kernel/osrelease", "/sys/devices/system/cpu/online"] {
        assert!(json.contains(&format!("{path}: No such file or directory (os error 2)")));
    }
    let nowhere = probe::machine::read(std::path::Path::new("/no/such/root"));
    assert_eq!(known_fields(&nowhere), [""; 0]);
}

#[test]
fn of_garbage_only_what_is_true_is_known() {
    let machine = read("garbage.txt");
    let json = serde_json::to_value(&machine).unwrap();
    let expected = [
        // Of the kernel.
        ("/kernel/release", json!("../../../../../../etc/passwd")),
        ("/kernel/version/unknown", json!("/proc/sys/kernel/version: is empty")),
        ("/kernel/command_line", json!("==== preempt=sideways")),
        (
            "/kernel/hz/unknown",
            json!(
                "/proc/config.gz: is not a regular file; \
                 /boot/config-../../../../../../etc/passwd: No such file or directory (os error \
                 2); /lib/modules/../../../../../../etc/passwd/config: No such file or directory \
                 (os error 2)"
            ),
        ),
        (
            "/kernel/randomize_va_space/unknown",
            json!("/proc/sys/kernel/randomize_va_space: \"two\" is not a number in range"),
        ),
        // Of the CPUs.
        (
            "/cpu/online/unknown",
            json!(
                "/sys/devices/system/cpu/online: \"0-4294967295\" is not a CPU list: \
             '0-4294967295' names a CPU of 65536 or more"
            ),
        ),
        ("/cpu/nohz_full", json!("")),
        (
            "/cpu/allowed/unknown",
            json!(
                "/proc/self/status: \"0-2,x\" is not a CPU list: \
             'x' is neither a CPU number nor a range"
            ),
        ),
        ("/cpu/models/0/cpus", json!("0")),
        ("/cpu/models/0/name/unknown", json!("/proc/cpuinfo: has no 'model name'")),
        (
            "/cpu/caches/0/kind/unknown",
            json!(
                "/sys/devices/system/cpu/cpu0/cache/index0/type: \"Trace\" is not a kind of cache"
            ),
        ),
        (
            "/cpu/caches/0/size_bytes/unknown",
            json!(
                "/sys/devices/system/cpu/cpu0/cache/index0/size: \
             \"18446744073709551615K\" is not a size in range"
            ),
        ),
        (
            "/mitigations/mds/unknown",
            json!("/sys/devices/system/cpu/vulnerabilities/mds: is empty"),
        ),
        // Of memory and load.
        (
            "/memory/total_bytes/unknown",
            json!("/proc/meminfo: \"99999999999999999999 kB\" is not a number of kB"),
        ),
        (
            "/memory/swap_total_bytes/unknown",
            json!("/proc/meminfo: \"5 pages\" is not a number of kB"),
        ),
        ("/memory/swap_free_bytes/unknown", json!("/proc/meminfo: has no 'SwapFree'")),
        (
            "/load/over_1_min/unknown",
            json!("/proc/loadavg: \"inf\" is not a number with two decimals"),
        ),
        ("/load/tasks/unknown", json!("/proc/loadavg: \"2\" is not two numbers with '/'")),
        // Of the limits.
        ("/cgroup/cpu_quota/unknown", json!("/cg/a/cpu.max: \"0\" is not a period above zero")),
        ("/cgroup/pids_max/unknown", json!("/cg/a/pids.max: \"-5\" is not a number in range")),
        // The level above may be tighter than the one byte here, for all that we can know.
        (
            "/cgroup/memory_max_bytes/unknown",
            json!("/cg/memory.max: \"lots\" is not a number in range"),
        ),
        ("/limits/processes/unknown", json!("/proc/self/limits: \"   12\" is not a limit")),
        (
            "/limits/open_files/unknown",
            json!("/proc/self/limits: \"lots\" is not a number in range"),
        ),
    ];
    for (at, value) in expected {
        assert_eq!(json.pointer(at), Some(&value), "{at}");
    }
    let mitigations = machine.mitigations.known().unwrap();
    assert!(!mitigations.contains_key("unknown"));
}

#[test]
fn a_fifo_or_a_folder_in_place_of_a_file_does_not_hold_the_reader() {
    let root = unpack("rockpi-rt.txt");
    let place = below(root.path(), "/proc/uptime");
    std::fs::remove_file(&place).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let machine = probe::machine::read(root.path());
    assert_eq!(machine.load.uptime_s.why(), Some("/proc/uptime: is not a regular file"));
}

#[test]
fn the_preemption_model_falls_back_from_source_to_source() {
    let root = unpack("xeon-two-sockets.txt");
    let remove = |path: &str| std::fs::remove_file(below(root.path(), path)).unwrap();
    let model = || probe::machine::read(root.path()).kernel.preemption;

    remove("/sys/kernel/debug/sched/preempt");
    let config = "/boot/config-5.14.0-427.13.1.el9_4.x86_64";
    assert_eq!(model().source, known(format!("{config} (CONFIG_PREEMPT_VOLUNTARY)")));

    put(root.path(), "/proc/cmdline", b"quiet preempt=full preempt=sideways -- preempt=none\n");
    assert_eq!(model().source, known("/proc/cmdline"));
    assert_eq!(model().model, known(rundata::machine::PreemptionModel::Full));

    put(root.path(), "/proc/cmdline", b"quiet\n");
    remove(config);
    let why = model().model.why().unwrap().to_owned();
    assert!(why.starts_with("/sys/kernel/debug/sched/preempt: No such file"), "{why}");
    assert!(why.ends_with("/proc/sys/kernel/version: dynamic, without the choice"), "{why}");
    assert_eq!(model().dynamic, known(true));

    // The parameter means nothing to a kernel of a fixed model.
    put(root.path(), "/proc/sys/kernel/version", b"#1 SMP PREEMPT Mon May 6\n");
    put(root.path(), "/proc/cmdline", b"preempt=none\n");
    assert_eq!(model().source, known("/proc/sys/kernel/version"));
    assert_eq!(model().model, known(rundata::machine::PreemptionModel::Full));
}

/// Pieces that parsers trip over, and bytes that are no text at all.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("0".to_owned()),
        Just("-1".to_owned()),
        Just("18446744073709551616".to_owned()),
        Just("0-65535".to_owned()),
        Just("max".to_owned()),
        Just("unlimited".to_owned()),
        Just("processor\t: 0".to_owned()),
        Just("CPU implementer : 0x41".to_owned()),
        Just("Max processes".to_owned()),
        Just("MemTotal:".to_owned()),
        Just("PREEMPT".to_owned()),
        Just("0::/..".to_owned()),
        Just("1 2 3 / / x - cgroup2 a b".to_owned()),
        Just("kB".to_owned()),
        Just("[é]".to_owned()),
        Just("(".to_owned()),
        Just("\\04".to_owned()),
        Just("1.5".to_owned()),
        "[0-9]{1,3}[.,:/-][0-9]{0,3}",
        any::<String>(),
    ];
    let separator = prop::sample::select(vec![" ", "\n", "\n\n", "\t", ":", ",", "", "\0", " - "]);
    let text = prop::collection::vec((piece, separator), 0..12).prop_map(|pieces| {
        pieces.into_iter().flat_map(|(piece, end)| (piece + end).into_bytes()).collect()
    });
    prop_oneof![4 => text, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases, ..Default::default() }
}

#[test]
fn no_content_makes_a_reader_panic_or_json_lie() {
    for bundle in BUNDLES {
        // Unpacked once and mended after each case: making files costs more than reading them.
        let root = unpack(bundle);
        let mut files = files(bundle);
        files.retain(|(path, _)| !path.ends_with('/'));
        let changes = prop::collection::vec((any::<prop::sample::Index>(), content()), 1..20);
        proptest!(config(testing::repeats(6, 24)), |(changes in changes)| {
            for (index, content) in &changes {
                put(root.path(), &index.get(&files).0, content);
            }
            assert_round_trip(&probe::machine::read(root.path()));
            for (index, _) in &changes {
                let (path, original) = index.get(&files);
                put(root.path(), path, original.as_bytes());
            }
        });
    }
}

#[test]
fn the_same_junk_in_every_file_is_survived() {
    let root = unpack("firecracker-epyc.txt");
    proptest!(config(testing::repeats(4, 8)), |(junk in content())| {
        for (path, _) in files("firecracker-epyc.txt") {
            put(root.path(), &path, &junk);
        }
        // Not compressed as it should be.
        std::fs::write(below(root.path(), "/proc/config.gz"), &junk).unwrap();
        assert_round_trip(&probe::machine::read(root.path()));
    });
}

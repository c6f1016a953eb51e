use serde_json::json;

use super::*;

fn cpus(text: &str) -> Reading<CpuList> {
    text.parse::<CpuList>().into()
}

fn cache(of_cpu: u32, level: u32, kind: CacheKind, size_bytes: u64, shared: &str) -> Cache {
    Cache {
        of_cpu,
        level: Reading::Known(level),
        kind: Reading::Known(kind),
        size_bytes: Reading::Known(size_bytes),
        shared_cpus: cpus(shared),
        ..Cache::default()
    }
}

/// Two cores of two hardware threads: 0 and 2, 1 and 3. The second core has no level 2 cache.
fn two_cores() -> Machine {
    let place =
        |cpu, siblings| LogicalCpu { cpu, smt_siblings: cpus(siblings), ..Default::default() };
    let mut machine = Machine::default();
    machine.cpu.topology =
        Reading::Known(vec![place(0, "0,2"), place(1, "1,3"), place(2, "0,2"), place(3, "1,3")]);
    machine.cpu.caches = Reading::Known(vec![
        cache(0, 1, CacheKind::Data, 32 << 10, "0,2"),
        cache(0, 1, CacheKind::Instruction, 64 << 10, "0,2"),
        cache(0, 2, CacheKind::Unified, 1 << 20, "0,2"),
        cache(0, 3, CacheKind::Unified, 8 << 20, "0-3"),
        cache(1, 1, CacheKind::Data, 32 << 10, "1,3"),
    ]);
    machine
}

#[test]
fn siblings_and_sharers_are_found_from_any_cpu() {
    let machine = two_cores();
    assert_eq!(machine.smt_siblings_of(2), cpus("0,2"));
    assert_eq!(machine.smt_siblings_of(9).why(), Some("CPU 9 is not online"));
    assert_eq!(machine.cpus_sharing_cache(2, 2), cpus("0,2"));
    assert_eq!(machine.cpus_sharing_cache(1, 3), cpus("0-3"));
    assert_eq!(machine.cpus_sharing_cache(1, 2).why(), Some("CPU 1 has no data cache of level 2"));
}

#[test]
fn a_cache_is_private_if_only_the_own_core_uses_it() {
    let machine = two_cores();
    let size_of = |cpu| machine.last_private_cache(cpu).map(|cache| cache.size_bytes.clone());
    assert_eq!(size_of(2), Reading::Known(Reading::Known(1 << 20)));
    assert_eq!(size_of(3), Reading::Known(Reading::Known(32 << 10)));
    let largest = machine.largest_cache().map(|cache| cache.level.clone());
    assert_eq!(largest, Reading::Known(Reading::Known(3)));
}

#[test]
fn unknown_sharing_does_not_pass_for_private() {
    let mut machine = two_cores();
    if let Reading::Known(caches) = &mut machine.cpu.caches {
        caches[2].shared_cpus = Reading::unknown("index2/shared_cpu_list: absent");
    }
    let private = machine.last_private_cache(0);
    assert_eq!(private.why(), Some("index2/shared_cpu_list: absent"));
    assert_eq!(Machine::default().last_private_cache(0).why(), Some("not recorded"));
    assert_eq!(Machine::default().largest_cache().why(), Some("not recorded"));
}

#[test]
fn a_parameter_given_twice_counts_last() {
    let command_line = Reading::Known("quiet preempt=none x=a=b preempt=full".to_owned());
    let kernel = Kernel { command_line, ..Kernel::default() };
    assert_eq!(kernel.parameter("preempt"), Some("full"));
    assert_eq!(kernel.parameter("quiet"), Some(""));
    assert_eq!(kernel.parameter("x"), Some("a=b"));
    assert_eq!(kernel.parameter("pre"), None);
}

#[test]
fn differences_name_the_field_and_both_values() {
    let base = two_cores();
    let mut other = two_cores();
    other.kernel.hz = Reading::Known(1000);
    if let Reading::Known(caches) = &mut other.cpu.caches {
        caches[3].size_bytes = Reading::Known(4 << 20);
    }
    let expected = [
        ("cpu.caches[3].size_bytes", json!(8 << 20), json!(4 << 20)),
        ("kernel.hz", json!({"unknown": "not recorded"}), json!(1000)),
    ];
    let mut found = base.differences(&other);
    found.sort_by(|a, b| a.field.cmp(&b.field));
    let expected =
        expected.map(|(field, base, other)| Difference { field: field.to_owned(), base, other });
    assert_eq!(found, expected);
}

#[test]
fn lists_of_unlike_length_are_counted_and_mitigations_found_by_name() {
    let mut base = two_cores();
    let mut other = two_cores();
    if let Reading::Known(caches) = &mut other.cpu.caches {
        caches.truncate(2);
    }
    let state = |text: &str| Reading::Known(text.to_owned());
    base.mitigations = Reading::Known([("mds".to_owned(), state("Vulnerable"))].into());
    other.mitigations = Reading::Known([("srso".to_owned(), state("Not affected"))].into());
    let mut found: Vec<_> = base.differences(&other).into_iter().map(|found| found.field).collect();
    found.sort();
    assert_eq!(found, ["cpu.caches.count", "mitigations.mds", "mitigations.srso"]);
}

#[test]
fn what_changes_by_itself_is_no_difference() {
    let base = two_cores();
    let mut other = two_cores();
    other.load.over_1_min = Reading::Known(3.5);
    other.memory.available_bytes = Reading::Known(1);
    other.kernel.boot_id = Reading::Known("x".to_owned());
    other.kernel.release = Reading::unknown("another reason");
    assert_eq!(base.differences(&other), []);
}

#[test]
fn bounds_are_numbers_or_the_word() {
    let limit = ResourceLimit { soft: Bound::At(0), hard: Bound::Unlimited };
    let json = serde_json::to_value(limit).unwrap();
    assert_eq!(json, json!({"soft": 0, "hard": "unlimited"}));
    assert_eq!(serde_json::from_value::<ResourceLimit>(json).unwrap(), limit);
}

#[test]
fn a_record_older_than_a_field_is_still_read() {
    let machine: Machine = serde_json::from_str(r#"{"kernel": {"hz": 250}}"#).unwrap();
    assert_eq!(machine.kernel.hz, Reading::Known(250));
    assert_eq!(machine.cpu.online.why(), Some("not recorded"));
}

#[test]
fn the_schema_shows_both_forms_of_a_reading() {
    let schema = serde_json::to_value(schemars::schema_for!(Machine)).unwrap();
    let hz = &schema["$defs"]["Reading_of_uint32"]["anyOf"];
    assert_eq!(hz[0]["required"], json!(["unknown"]), "{schema:#}");
    assert_eq!(hz[1]["type"], json!("integer"));
}

//! The measured machine. Plain data: `probe::machine` fills it from /proc and /sys.
//!
//! Not every machine tells everything. Each fact is therefore a [`Reading`]: the value, or the
//! reason why it could not be read. A fact that is missing in a stored machine, as older programs
//! did not read it, is unknown as well: that is why every struct here has `serde(default)`.

mod cpu;
mod cpu_list;
mod scheduler;
mod system;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use cpu::{
    CacheKind, CpuCache, CpuInventory, CpuModel, DataTlb, FrequencyPolicy, FrequencyState,
    LogicalCpu, Mitigations, Virtualization,
};
pub use cpu_list::MAX_CPUS;
pub use cpu_list::{CpuList, CpuRelation, CpuSurroundings};
pub use scheduler::{KERNEL_SCHEDULER, SchedExt, SchedulerSettings};
pub use system::{
    CgroupLayout, CgroupLimit, CgroupLimits, ClockSource, CpuAccounting, CpuInterrupts, CpuQuota,
    Cpuset, KernelPreemption, LimitValue, NumaNode, NumaNodes, PreemptionModel, ResourceLimit,
    RunningKernel, SystemLimits, SystemLoad, SystemMemory,
};

use crate::reading::Reading;

/// A machine as it was when a run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// The running kernel.
    pub kernel: RunningKernel,
    /// The scheduler and its settings.
    pub scheduler: SchedulerSettings,
    /// The processors and their arrangement.
    pub cpu: CpuInventory,
    /// Frequency and idle states.
    pub frequency: FrequencyState,
    /// CPU vulnerabilities and what is done about them.
    pub mitigations: Reading<Mitigations>,
    /// The hypervisor.
    pub virtualization: Virtualization,
    /// Memory nodes.
    pub numa: NumaNodes,
    /// Memory.
    pub memory: SystemMemory,
    /// Control group limits.
    pub cgroup: CgroupLimits,
    /// Resource limits and system-wide maxima.
    pub limits: SystemLimits,
    /// Load of the machine.
    pub load: SystemLoad,
    /// Interrupts of devices on each CPU, rising by CPU.
    pub interrupts: Reading<Vec<CpuInterrupts>>,
}

impl Machine {
    /// Returns the name of the first CPU model.
    pub fn cpu_name(&self) -> Option<&String> {
        self.cpu.models.known()?.first()?.name.known()
    }

    /// Returns the hardware threads of the CPU's core, the CPU among them.
    pub fn smt_siblings_of(&self, cpu: u32) -> Result<&CpuList, String> {
        let place = self.cpu.topology.ok()?.iter().find(|place| place.cpu == cpu);
        place.ok_or_else(|| format!("CPU {cpu} is not online"))?.smt_siblings.ok()
    }

    /// Returns the last data (or unified) cache on the CPU's way to memory that no other core
    /// shares. Hardware threads of one core count as one.
    pub fn last_private_cache(&self, cpu: u32) -> Result<&CpuCache, String> {
        let own = self.smt_siblings_of(cpu)?;
        let mut private = Vec::new();
        for cache in self.data_caches_of(cpu)? {
            if cache.shared_cpus.ok()?.is_subset(own) {
                private.push(cache);
            }
        }
        let last = private.into_iter().max_by_key(|cache| cache.level.known());
        last.ok_or_else(|| format!("CPU {cpu} has no private data cache"))
    }

    /// Returns the largest data (or unified) cache of the machine.
    pub fn largest_cache(&self) -> Result<&CpuCache, String> {
        let mut largest: Option<&CpuCache> = None;
        for cache in self.cpu.caches.ok()? {
            let bytes = cache.size_bytes.known();
            let known_bytes = largest.and_then(|largest| largest.size_bytes.known());
            // The first of equals, so that the answer does not hang on the number of CPUs.
            if cache.holds_data() && bytes > known_bytes {
                largest = Some(cache);
            }
        }
        largest.ok_or("no data cache with a known size".to_string())
    }

    /// Returns the size of the data (or unified) cache of a level that serves a CPU, in bytes.
    pub fn data_cache_bytes(&self, cpu: u32, level: u32) -> Option<u64> {
        let caches = self.data_caches_of(cpu).ok()?;
        let own = caches.into_iter().find(|cache| cache.level.known() == Some(&level));
        own?.size_bytes.known().copied()
    }

    /// Returns the caches for data that serve `cpu`; an error says why they are not known.
    pub fn data_caches_of(&self, cpu: u32) -> Result<Vec<&CpuCache>, String> {
        let mut serving: Vec<&CpuCache> = self.cpu.caches.ok()?.iter().collect();
        serving.retain(|cache| cache.holds_data() && cache.serves(cpu));
        if serving.is_empty() {
            return Err(format!("CPU {cpu} has no data cache listed"));
        }
        Ok(serving)
    }

    /// Lists the fields that differ in the other machine, in the order of the JSON form. Fields
    /// that change by themselves (load, free memory, boot id, cgroup paths) and those that are
    /// unknown on both sides are left out.
    pub fn differences(&self, other: &Machine) -> Vec<FieldDifference> {
        field_differences("", self, other)
    }
}

/// Fields that change by themselves between two runs on one machine, and name no property of it.
const VOLATILE_FIELDS: &[&str] = &[
    "load",
    "interrupts",
    "kernel.boot_id",
    "scheduler.sched_ext.enable_seq",
    // Of the CPU that was asked, where a machine has several kinds; older runs do not have them.
    "cpu.tlbs",
    "memory.available_bytes",
    "memory.swap_free_bytes",
    // The folder is a new one for every login session.
    "cgroup.cpu_quota.path",
    "cgroup.cpuset.path",
    "cgroup.pids_max.path",
    "cgroup.pids_max.current",
    "cgroup.memory_max_bytes.path",
    "cgroup.memory_max_bytes.current",
];

/// Beginnings of fields that were added later, so that older runs lack them: a difference to unknown
/// is none.
const ADDED_FIELDS: &[&str] = &["cgroup.cpu_levels", "scheduler."];

/// A field that differs between two machines or plans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldDifference {
    /// Path in the JSON form: `cpu.models[0].microcode`. For lists of different length it ends in
    /// `.count`, and the values are the lengths.
    pub field: String,
    /// Value on the first machine; null where it has none.
    pub base: Value,
    /// Value on the second machine.
    pub other: Value,
}

/// Lists the fields that differ, in the order of the JSON form, with `field` before each name.
pub fn field_differences<T: Serialize>(field: &str, base: &T, other: &T) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    // Cannot fail: every key is a string.
    let [base, other] = [base, other].map(|one| serde_json::to_value(one).unwrap_or_default());
    collect_differences(field, &base, &other, &mut found);
    found
}

fn collect_differences(field: &str, base: &Value, other: &Value, found: &mut Vec<FieldDifference>) {
    let unknown = [base, other].map(is_unknown);
    let was_added = ADDED_FIELDS.iter().any(|beginning| field.starts_with(beginning));
    let nothing_said = unknown == [true; 2] || was_added && unknown != [false; 2];
    if base == other || VOLATILE_FIELDS.contains(&field) || nothing_said {
        return;
    }
    match (base, other) {
        (Value::Object(a), Value::Object(b)) if !is_unknown(base) && !is_unknown(other) => {
            let added = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(added) {
                let dot = if field.is_empty() { "" } else { "." };
                let field = format!("{field}{dot}{key}");
                collect_differences(&field, &base[key], &other[key], found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.iter().chain(b).all(Value::is_object) => {
            if a.len() != b.len() {
                let (a, b) = (a.len().into(), b.len().into());
                return found.push(FieldDifference {
                    field: format!("{field}.count"),
                    base: a,
                    other: b,
                });
            }
            for (index, (base, other)) in a.iter().zip(b).enumerate() {
                collect_differences(&format!("{field}[{index}]"), base, other, found);
            }
        }
        _ => {
            let (field, base, other) = (field.to_owned(), base.clone(), other.clone());
            found.push(FieldDifference { field, base, other });
        }
    }
}

/// Returns whether a value is the JSON form of [`Reading::Unknown`].
fn is_unknown(value: &Value) -> bool {
    let map = value.as_object().filter(|map| map.len() == 1);
    map.and_then(|map| map.get("unknown")).is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cpus(text: &str) -> Reading<CpuList> {
        text.parse::<CpuList>().into()
    }

    fn cache(of_cpu: u32, level: u32, kind: CacheKind, size_bytes: u64, shared: &str) -> CpuCache {
        CpuCache {
            of_cpu,
            level: Reading::Known(level),
            kind: Reading::Known(kind),
            size_bytes: Reading::Known(size_bytes),
            shared_cpus: cpus(shared),
            ..CpuCache::default()
        }
    }

    /// Two cores of two hardware threads: 0 and 2, 1 and 3. The second core has no level 2 cache.
    fn two_cores() -> Machine {
        let place =
            |cpu, siblings| LogicalCpu { cpu, smt_siblings: cpus(siblings), ..Default::default() };
        let mut machine = Machine::default();
        machine.cpu.topology = Reading::Known(vec![
            place(0, "0,2"),
            place(1, "1,3"),
            place(2, "0,2"),
            place(3, "1,3"),
        ]);
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
        assert_eq!(machine.smt_siblings_of(2), cpus("0,2").ok());
        assert_eq!(machine.smt_siblings_of(9), Err("CPU 9 is not online".to_string()));
        let none = machine.data_caches_of(9).unwrap_err();
        assert_eq!(none, "CPU 9 has no data cache listed");
    }

    #[test]
    fn a_cache_is_private_if_only_the_own_core_uses_it() {
        let machine = two_cores();
        let size_of = |cpu| machine.last_private_cache(cpu).map(|cache| cache.size_bytes.clone());
        assert_eq!(size_of(2), Ok(Reading::Known(1 << 20)));
        assert_eq!(size_of(3), Ok(Reading::Known(32 << 10)));
        let largest = machine.largest_cache().map(|cache| cache.level.clone());
        assert_eq!(largest, Ok(Reading::Known(3)));
    }

    #[test]
    fn unknown_sharing_does_not_pass_for_private() {
        let mut machine = two_cores();
        if let Reading::Known(caches) = &mut machine.cpu.caches {
            caches[2].shared_cpus = Reading::unknown("index2/shared_cpu_list: absent");
        }
        let private = machine.last_private_cache(0).unwrap_err();
        assert_eq!(private, "index2/shared_cpu_list: absent");
        assert_eq!(Machine::default().last_private_cache(0).unwrap_err(), "not recorded");
        assert_eq!(Machine::default().largest_cache().unwrap_err(), "not recorded");
    }

    #[test]
    fn a_parameter_given_twice_counts_last() {
        let command_line = Reading::Known("quiet preempt=none x=a=b preempt=full".to_owned());
        let kernel = RunningKernel { command_line, ..RunningKernel::default() };
        assert_eq!(kernel.parameters("preempt").last(), Some("full"));
        assert_eq!(kernel.parameters("quiet").last(), Some(""));
        assert_eq!(kernel.parameters("x").last(), Some("a=b"));
        assert_eq!(kernel.parameters("pre").last(), None);
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
        let expected = expected.map(|(field, base, other)| FieldDifference {
            field: field.to_owned(),
            base,
            other,
        });
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
        let mut found: Vec<_> =
            base.differences(&other).into_iter().map(|found| found.field).collect();
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
    fn what_an_older_run_does_not_have_is_no_difference() {
        let (old, mut new) = (Machine::default(), Machine::default());
        new.cgroup.cpu_levels = Reading::Known(2);
        assert!(old.differences(&new).is_empty() && new.differences(&old).is_empty());
        let mut deeper = new.clone();
        deeper.cgroup.cpu_levels = Reading::Known(3);
        assert_eq!(new.differences(&deeper)[0].field, "cgroup.cpu_levels");
    }

    #[test]
    fn bounds_are_numbers_or_the_word() {
        let limit = ResourceLimit { soft: LimitValue::At(0), hard: LimitValue::Unlimited };
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
}

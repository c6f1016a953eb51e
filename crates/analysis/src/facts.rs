//! The facts of a run, each declared once: what it is called, where its record has it, and what it
//! means. `switchcost help schema columns` prints them, for docs/columns.md and the Python package,
//! whose tables `machine` and (in a fleet's dataset) `machines` have a column for each.
//!
//! A fact is read from the JSON of a record, as Python has nothing else: at its path, in the way of
//! its [`FactReading`]. `cpu_model` of a machine with two kinds of CPU lies at
//! `header.machine.cpu.models[].name`, which is a list of two names; `Distinct` makes `A, B` of it.
//! Files of any age are read so: a field that an older one lacks is an unknown fact, never an error.

use serde::Serialize;

use crate::measures::ValueKind;

use FactReading::{
    Count, Distinct, EndReason, File, First, Hypervisor, Pairs, Reasons, Steppings, Value,
};
use ValueKind::{Boolean, Float, Integer, Text, Time};

/// A table that has facts as columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactTable {
    /// A row for each run: `machine` of a run in Python.
    Machine,
    /// A row for each run of a fleet's dataset.
    Machines,
}

/// The way in which the value of a fact is made from the record at its path. An unknown reading gives
/// no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactReading {
    /// The value as it is.
    Value,
    /// The different values of a list, sorted, with commas between them.
    Distinct,
    /// The first known value of a list.
    First,
    /// The number of items of a list; unknown where it is empty.
    Count,
    /// The texts of a list with semicolons between them; empty where there is no list.
    Reasons,
    /// `name: value` of each known value of a map, by name, with semicolons between them.
    Pairs,
    /// The different `family-model-stepping` of CPU models.
    Steppings,
    /// `none`, the hypervisor's name, or `yes` where only CPUID says that there is one.
    Hypervisor,
    /// The reason of a run's end; `killed` where it has no end.
    EndReason,
    /// A fact of the run file itself, which the collector of files fills in.
    File,
}

/// A fact of a run: of the machine, the program or the conditions.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fact {
    /// Name of its column.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: ValueKind,
    /// Empty for counts and words.
    pub unit: &'static str,
    /// The tables that have it.
    pub tables: &'static [FactTable],
    /// Its path in the record, with `[]` for each item of a list; empty for a fact of the file.
    pub path: &'static str,
    /// The way in which its value is made from that.
    pub reading: FactReading,
    /// Whether it says what kind of machine a host is: a fleet compares hosts that have all of
    /// these in common.
    pub identifies: bool,
    /// Rank among the facts that may make a host slower than others of its kind: 1 is the
    /// likeliest. Absent for what is no cause.
    pub cause_rank: Option<u8>,
    /// Its meaning in a few words.
    pub meaning: &'static str,
}

/// The tables of nearly all facts.
const BOTH: &[FactTable] = &[FactTable::Machine, FactTable::Machines];

const fn fact(
    name: &'static str,
    kind: ValueKind,
    path: &'static str,
    reading: FactReading,
    meaning: &'static str,
) -> Fact {
    Fact {
        name,
        kind,
        unit: "",
        tables: BOTH,
        path,
        reading,
        identifies: false,
        cause_rank: None,
        meaning,
    }
}

impl Fact {
    const fn in_unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    const fn identifies(self) -> Self {
        Self { identifies: true, ..self }
    }

    const fn cause(self, rank: u8) -> Self {
        Self { cause_rank: Some(rank), ..self }
    }

    const fn of_datasets(self) -> Self {
        Self { tables: &[FactTable::Machines], ..self }
    }
}

/// The facts in the order of their columns.
pub const FACTS: &[Fact] = &[
    fact("run", Text, "header.run", Value, "id of the run, unique on a host"),
    fact("host", Text, "header.host", Value, "name of the host"),
    fact("started", Time, "header.started", Value, "when the run started, UTC"),
    fact("name", Text, "header.name", Value, "the run's name, if one was given"),
    fact("experiment", Text, "header.plan.experiment", Value, "`ring`, `cost`, ..."),
    fact("build_version", Text, "header.build.version", Value, "the program").cause(15),
    fact("build_commit", Text, "header.build.commit", Value, "the program's source").cause(16),
    fact("build_target", Text, "header.build.target", Value, "what it was built for").cause(17),
    fact("end_reason", Text, "end", EndReason, "why the run ended; `killed`: it has no end"),
    fact("noise", Text, "noise.level", Value, "the verdict on the machine's noise"),
    fact("noise_reasons", Text, "noise.reasons", Reasons, "why the machine is noisy"),
    fact("clean_share", Float, "noise.clean_share", Value, "share of slices at full speed")
        .in_unit("share"),
    fact("clock_ghz", Float, "speed[].clock_ghz", First, "the core's clock as it was measured")
        .in_unit("GHz"),
    fact("load_1_min", Float, "header.machine.load.over_1_min", Value, "load when the run started"),
    fact("kernel_release", Text, "header.machine.kernel.release", Value, "`uname -r`").cause(1),
    fact("kernel_version", Text, "header.machine.kernel.version", Value, "`uname -v`").cause(14),
    fact("kernel_command_line", Text, "header.machine.kernel.command_line", Value, "up to `--`"),
    fact("hz", Integer, "header.machine.kernel.hz", Value, "timer interrupts a second")
        .in_unit("Hz"),
    fact(
        "scheduler",
        Text,
        "header.machine.scheduler.name",
        Value,
        "`kernel`, or the name of the scheduler in BPF",
    )
    .identifies(),
    fact(
        "preemption",
        Text,
        "header.machine.kernel.preemption.model",
        Value,
        "`none`, `voluntary`, `full`, `lazy`",
    )
    .cause(10),
    fact(
        "realtime_kernel",
        Boolean,
        "header.machine.kernel.preemption.realtime",
        Value,
        "CONFIG_PREEMPT_RT",
    ),
    fact(
        "clock_source",
        Text,
        "header.machine.kernel.clock_source.current",
        Value,
        "`tsc`, `kvm-clock`, ...",
    )
    .cause(11),
    fact(
        "mitigations",
        Text,
        "header.machine.mitigations",
        Pairs,
        "`name: state` of each vulnerability, by name",
    )
    .cause(3),
    fact(
        "cpu_vendor",
        Text,
        "header.machine.cpu.models[].vendor",
        Distinct,
        "vendor of the CPU; several have commas between them",
    ),
    fact(
        "cpu_model",
        Text,
        "header.machine.cpu.models[].name",
        Distinct,
        "name of the CPU; several have commas between them",
    )
    .identifies(),
    fact("cpu_stepping", Text, "header.machine.cpu.models", Steppings, "family-model-stepping")
        .identifies(),
    fact(
        "microcode",
        Text,
        "header.machine.cpu.models[].microcode",
        Distinct,
        "revision of the microcode",
    )
    .cause(2),
    fact("cpus_online", Integer, "header.machine.cpu.topology", Count, "CPUs that run")
        .identifies(),
    fact(
        "smt_control",
        Text,
        "header.machine.cpu.smt_control",
        Value,
        "`on`, `off`, `forceoff`, `notsupported`, ...",
    )
    .cause(6),
    fact("numa_nodes", Integer, "header.machine.numa.nodes", Count, "memory nodes").identifies(),
    fact(
        "frequency_driver",
        Text,
        "header.machine.frequency.policies[].driver",
        Distinct,
        "driver of the CPU's frequency; several have commas between them",
    )
    .cause(7),
    fact(
        "frequency_governor",
        Text,
        "header.machine.frequency.policies[].governor",
        Distinct,
        "what chooses the frequency; several have commas between them",
    )
    .cause(4),
    fact(
        "boost",
        Boolean,
        "header.machine.frequency.boost",
        Value,
        "whether CPUs may run above their nominal frequency",
    )
    .cause(5),
    fact(
        "idle_driver",
        Text,
        "header.machine.frequency.idle_driver",
        Value,
        "driver of the idle states",
    )
    .cause(8),
    fact(
        "idle_governor",
        Text,
        "header.machine.frequency.idle_governor",
        Value,
        "what chooses among the idle states",
    )
    .cause(9),
    fact(
        "hypervisor",
        Text,
        "header.machine.virtualization",
        Hypervisor,
        "`none`, `yes` or its name",
    )
    .identifies(),
    fact(
        "cpu_flag",
        Boolean,
        "header.machine.virtualization.cpu_flag",
        Value,
        "whether CPUID says that there is a hypervisor",
    ),
    fact(
        "dmi_vendor",
        Text,
        "header.machine.virtualization.dmi_vendor",
        Value,
        "the system's vendor",
    ),
    fact("dmi_product", Text, "header.machine.virtualization.dmi_product", Value, "the system"),
    fact("memory_bytes", Integer, "header.machine.memory.total_bytes", Value, "MemTotal")
        .in_unit("bytes")
        .cause(18),
    fact(
        "thp_enabled",
        Text,
        "header.machine.memory.thp_enabled",
        Value,
        "of huge pages: `always`, `madvise`, `never`",
    )
    .cause(12),
    fact(
        "cgroup_levels",
        Integer,
        "header.machine.cgroup.cpu_levels",
        Value,
        "groups with a CPU controller above the process",
    )
    .cause(13),
    fact("recorded_host", Text, "header.host", Value, "name of the host by its own account")
        .of_datasets(),
    fact("file_bytes", Integer, "", File, "size of the run file").in_unit("bytes").of_datasets(),
    fact("sha256", Text, "", File, "SHA-256 of the run file").of_datasets(),
];

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;
    use crate::record::RingRecord;

    /// Returns the schemas that a field of this schema may have, references and alternatives
    /// followed.
    fn alternatives<'a>(root: &'a Json, schema: &'a Json) -> Vec<&'a Json> {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = root.pointer(reference.trim_start_matches('#')).expect("a definition");
            return alternatives(root, target);
        }
        let mut found = vec![schema];
        for key in ["anyOf", "oneOf", "allOf"] {
            for alternative in schema[key].as_array().into_iter().flatten() {
                found.extend(alternatives(root, alternative));
            }
        }
        found
    }

    /// Returns whether a record's schema has a field at this path.
    fn has_field(root: &Json, path: &str) -> bool {
        let mut schemas = alternatives(root, root);
        for step in path.split('.') {
            let (name, is_list) = match step.strip_suffix("[]") {
                Some(name) => (name, true),
                None => (step, false),
            };
            let mut next = Vec::new();
            for schema in schemas {
                if let Some(field) = schema["properties"].get(name) {
                    next.extend(alternatives(root, field));
                }
            }
            if is_list {
                let items = next.iter().filter_map(|schema| schema.get("items"));
                next = items.flat_map(|item| alternatives(root, item)).collect();
            }
            schemas = next;
        }
        !schemas.is_empty()
    }

    #[test]
    fn each_fact_is_declared_once_and_lies_where_records_have_it() {
        let schema = serde_json::to_value(schemars::schema_for!(RingRecord)).unwrap();
        for (number, fact) in FACTS.iter().enumerate() {
            let is_new = FACTS[..number].iter().all(|earlier| earlier.name != fact.name);
            assert!(is_new && !fact.meaning.is_empty(), "{fact:?}");
            let is_of_file = fact.reading == File;
            assert_eq!(is_of_file, fact.path.is_empty(), "{fact:?}");
            assert!(is_of_file || has_field(&schema, fact.path), "no field at {}", fact.path);
        }
        assert!(!has_field(&schema, "header.machine.kernel.hertz"));
        assert!(!has_field(&schema, "header.machine.cpu.models.name"));
    }

    #[test]
    fn causes_have_ranks_without_gaps_and_are_nothing_that_hosts_are_grouped_by() {
        let mut ranks: Vec<u8> = FACTS.iter().filter_map(|fact| fact.cause_rank).collect();
        ranks.sort_unstable();
        assert!(ranks.iter().copied().eq(1..=18), "{ranks:?}");
        assert!(FACTS.iter().all(|fact| !(fact.identifies && fact.cause_rank.is_some())));
    }
}

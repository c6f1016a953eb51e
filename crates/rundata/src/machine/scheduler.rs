//! The scheduler of the kernel, its settings, and what of the machine may change during a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FieldDifference, Machine, is_unknown};
use crate::reading::Reading;

/// Name of the kernel's own scheduler, beside the names of schedulers in BPF.
pub const KERNEL_SCHEDULER: &str = "kernel";

/// The scheduler that runs normal tasks, and its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SchedulerSettings {
    /// `kernel`, or the name of the scheduler in BPF that runs normal tasks.
    pub name: Reading<String>,
    /// State of sched_ext, by which a program in BPF schedules.
    pub sched_ext: Reading<SchedExt>,
    /// Features that are on or off (/sys/kernel/debug/sched/features), by name.
    pub features: Reading<BTreeMap<String, bool>>,
    /// Numbers in /sys/kernel/debug/sched, by file: `base_slice_ns`, `migration_cost_ns`, ...
    pub tunables: Reading<BTreeMap<String, String>>,
    /// The files /proc/sys/kernel/sched_*, by name; without `sched_rt_runtime_us`, which
    /// [`super::RunningKernel`] has.
    pub sysctls: Reading<BTreeMap<String, String>>,
    /// Whether core scheduling gave this process a cookie: then only tasks with the same cookie run
    /// beside it on a core.
    pub has_core_cookie: Reading<bool>,
    /// Parameters by which an idle guest polls before it halts (/sys/module/haltpoll/parameters),
    /// by file.
    pub halt_poll: Reading<BTreeMap<String, String>>,
}

/// State of sched_ext (Documentation/scheduler/sched-ext.rst).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SchedExt {
    /// `enabled`, `disabled`, `enabling` or `disabling`.
    pub state: Reading<String>,
    /// Name of the loaded scheduler; unknown while none is loaded.
    pub ops: Reading<String>,
    /// Number of schedulers that were loaded since the machine started. Volatile.
    pub enable_seq: Reading<u64>,
    /// Whether it runs all normal tasks, not only those with the policy SCHED_EXT.
    pub switch_all: Reading<bool>,
}

impl SchedExt {
    /// Returns the name of the scheduler that runs normal tasks.
    pub fn scheduler_name(&self) -> Reading<String> {
        let is_enabled = self.state.as_ref().map(|state| state == "enabled");
        let runs_all = is_enabled.and_then(|is_enabled| {
            if is_enabled { self.switch_all.clone() } else { Reading::Known(false) }
        });
        runs_all.and_then(|runs_all| {
            if runs_all { self.ops.clone() } else { Reading::Known(KERNEL_SCHEDULER.to_string()) }
        })
    }
}

/// Beginnings of the fields that somebody may set while a run goes on, in the JSON form.
const CHANGEABLE_FIELDS: &[&str] = &[
    "scheduler.",
    "kernel.preemption.model",
    "kernel.sched_rt_runtime_us",
    "frequency.boost",
    "frequency.idle_governor",
    "cpu.online",
    "cpu.smt_control",
    "memory.thp_enabled",
];

/// The field of the governors, which are compared CPU by CPU: how CPUs are grouped depends on limits
/// of the frequency, too, which the firmware changes by itself.
const GOVERNOR_FIELD: &str = "frequency.governor";

impl Machine {
    /// Lists the changeable settings that differ in a later reading of the same machine. A setting
    /// that is unknown on either side is none.
    pub fn changed_settings(&self, later: &Machine) -> Vec<FieldDifference> {
        let mut differences = self.differences(later);
        differences.retain(|difference| {
            let values = [&difference.base, &difference.other];
            let is_known = values.iter().all(|value| !is_unknown(value) && !value.is_null());
            let field = &difference.field;
            is_known && CHANGEABLE_FIELDS.iter().any(|beginning| field.starts_with(beginning))
        });
        differences.extend(self.changed_governor(later));
        differences
    }

    /// Returns the difference of the governor of the first CPU that has another one.
    fn changed_governor(&self, later: &Machine) -> Option<FieldDifference> {
        let after = later.governors();
        for (cpu, governor) in self.governors() {
            match after.get(&cpu) {
                Some(changed) if *changed != governor => {
                    let (base, other) = (governor.into(), (*changed).into());
                    return Some(FieldDifference {
                        field: GOVERNOR_FIELD.to_string(),
                        base,
                        other,
                    });
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the governor of each CPU of which it is known.
    fn governors(&self) -> BTreeMap<u32, &str> {
        let mut governors = BTreeMap::new();
        for policy in self.frequency.policies.known().into_iter().flatten() {
            if let Some(governor) = policy.governor.known() {
                for cpu in policy.cpus.iter() {
                    governors.insert(cpu, governor.as_str());
                }
            }
        }
        governors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{FrequencyPolicy, PreemptionModel};

    fn loaded(ops: &str, enable_seq: u64, switch_all: bool) -> SchedExt {
        SchedExt {
            state: Reading::Known("enabled".to_string()),
            ops: Reading::Known(ops.to_string()),
            enable_seq: Reading::Known(enable_seq),
            switch_all: Reading::Known(switch_all),
        }
    }

    fn machine_under(sched_ext: SchedExt) -> Machine {
        let mut machine = Machine::default();
        machine.scheduler.name = sched_ext.scheduler_name();
        machine.scheduler.sched_ext = Reading::Known(sched_ext);
        machine
    }

    fn unloaded() -> SchedExt {
        SchedExt {
            state: Reading::Known("disabled".to_string()),
            ops: Reading::unknown("/sys/kernel/sched_ext/root/ops: No such file or directory"),
            enable_seq: Reading::Known(0),
            switch_all: Reading::Known(false),
        }
    }

    fn fields(differences: &[FieldDifference]) -> Vec<&str> {
        differences.iter().map(|difference| difference.field.as_str()).collect()
    }

    #[test]
    fn a_scheduler_in_bpf_has_the_name_only_where_it_runs_all_normal_tasks() {
        let name = |state: SchedExt| state.scheduler_name().known().cloned();
        assert_eq!(name(loaded("simple", 1, true)).as_deref(), Some("simple"));
        assert_eq!(name(loaded("simple", 1, false)).as_deref(), Some("kernel"));
        assert_eq!(name(unloaded()).as_deref(), Some("kernel"));
        let ending = SchedExt {
            state: Reading::Known("disabling".to_string()),
            ..loaded("simple", 1, true)
        };
        assert_eq!(name(ending).as_deref(), Some("kernel"));
        assert_eq!(SchedExt::default().scheduler_name().why(), Some("not recorded"));
    }

    #[test]
    fn another_scheduler_is_a_changed_setting_and_its_count_of_loadings_is_none() {
        let (kernel, simple) =
            (machine_under(unloaded()), machine_under(loaded("simple", 1, true)));
        let changes = kernel.changed_settings(&simple);
        let mut changed = fields(&changes);
        changed.sort_unstable();
        let ext = ["state", "switch_all"].map(|f| format!("scheduler.sched_ext.{f}"));
        assert_eq!(changed, ["scheduler.name", &ext[0], &ext[1]]);
        let again = machine_under(loaded("simple", 2, true));
        assert!(simple.changed_settings(&again).is_empty());
        assert!(simple.differences(&again).is_empty());
    }

    #[test]
    fn what_changes_by_itself_or_is_unknown_is_no_changed_setting() {
        let mut before = Machine::default();
        before.load.over_1_min = Reading::Known(1.0);
        before.kernel.preemption.model = Reading::Known(PreemptionModel::Full);
        let policy = |cpus: &str, governor: &str, max_khz| FrequencyPolicy {
            cpus: cpus.parse().expect("a list"),
            governor: Reading::Known(governor.to_string()),
            max_khz: Reading::Known(max_khz),
            ..FrequencyPolicy::default()
        };
        before.frequency.policies = Reading::Known(vec![policy("0-3", "performance", 3_000_000)]);
        let mut after = before.clone();
        after.load.over_1_min = Reading::Known(9.0);
        after.kernel.preemption.model = Reading::unknown("debugfs is locked down");
        // The firmware limits two CPUs, which are a group of their own then; two others are offline.
        after.frequency.policies = Reading::Known(vec![policy("0-1", "performance", 2_000_000)]);
        assert!(before.changed_settings(&after).is_empty());

        after.kernel.preemption.model = Reading::Known(PreemptionModel::Lazy);
        let [limited, changed] =
            [policy("0-1", "performance", 2_000_000), policy("2-3", "powersave", 3_000_000)];
        after.frequency.policies = Reading::Known(vec![limited, changed]);
        let changes = before.changed_settings(&after);
        assert_eq!(fields(&changes), ["kernel.preemption.model", "frequency.governor"]);
        assert_eq!(
            (&changes[1].base, &changes[1].other),
            (&"performance".into(), &"powersave".into())
        );
    }
}

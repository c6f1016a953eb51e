//! The scheduler of the kernel, its settings, and what of the machine may change during a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FieldDifference, Machine, collect_differences, is_unknown};
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

/// Beginnings of the fields that somebody may set while a run goes on, in the JSON form. Limits of
/// the frequency are not among them: the firmware changes them by itself.
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

impl Machine {
    /// Lists the changeable settings that differ in a later reading of the same machine. Unlike in
    /// [`Machine::differences`], another count of loaded schedulers is a difference: the scheduler
    /// was loaded anew, perhaps with other options. A setting that is unknown on either side is
    /// none.
    pub fn changed_settings(&self, later: &Machine) -> Vec<FieldDifference> {
        // Cannot fail: every key is a string.
        let [before, after] =
            [self, later].map(|machine| serde_json::to_value(machine).unwrap_or_default());
        let mut differences = Vec::new();
        collect_differences("", &before, &after, &[], &mut differences);
        differences.retain(|difference| {
            let is_known = !is_unknown(&difference.base) && !is_unknown(&difference.other);
            is_known && is_changeable(&difference.field)
        });
        differences
    }
}

fn is_changeable(field: &str) -> bool {
    let is_governor = field.starts_with("frequency.policies[") && field.ends_with("].governor");
    is_governor || CHANGEABLE_FIELDS.iter().any(|beginning| field.starts_with(beginning))
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
    fn another_scheduler_or_the_same_one_loaded_anew_is_a_changed_setting() {
        let (kernel, simple) =
            (machine_under(unloaded()), machine_under(loaded("simple", 1, true)));
        let changes = kernel.changed_settings(&simple);
        let mut changed = fields(&changes);
        changed.sort_unstable();
        let ext = ["enable_seq", "state", "switch_all"].map(|f| format!("scheduler.sched_ext.{f}"));
        assert_eq!(changed, ["scheduler.name", &ext[0], &ext[1], &ext[2]]);

        let again = machine_under(loaded("simple", 2, true));
        assert_eq!(fields(&simple.changed_settings(&again)), [&ext[0]]);
        assert!(simple.differences(&again).is_empty(), "of two runs it is no difference");
        assert_eq!(fields(&kernel.differences(&again)).len(), 3);
    }

    #[test]
    fn what_changes_by_itself_or_is_unknown_is_no_changed_setting() {
        let mut before = Machine::default();
        before.load.over_1_min = Reading::Known(1.0);
        before.kernel.preemption.model = Reading::Known(PreemptionModel::Full);
        let policy = |governor: &str, max_khz| FrequencyPolicy {
            governor: Reading::Known(governor.to_string()),
            max_khz: Reading::Known(max_khz),
            ..FrequencyPolicy::default()
        };
        before.frequency.policies = Reading::Known(vec![policy("performance", 3_000_000)]);
        let mut after = before.clone();
        after.load.over_1_min = Reading::Known(9.0);
        after.kernel.preemption.model = Reading::unknown("debugfs is locked down");
        after.frequency.policies = Reading::Known(vec![policy("performance", 2_000_000)]);
        assert!(before.changed_settings(&after).is_empty());

        after.kernel.preemption.model = Reading::Known(PreemptionModel::Lazy);
        after.frequency.policies = Reading::Known(vec![policy("powersave", 2_000_000)]);
        let changes = before.changed_settings(&after);
        assert_eq!(fields(&changes), ["frequency.policies[0].governor", "kernel.preemption.model"]);
    }
}

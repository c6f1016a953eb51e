//! Stored runs that may price a program's switches: the newest first, how old they are, and whether
//! a switch costs the same on the machine that they measured.

use std::path::Path;
use std::time::SystemTime;

use anyhow::Result;
use rundata::machine::Machine;
use rundata::run::Header;

use crate::engine::store::{RunStore, StoredRun};
use crate::report::terminal::counted;

/// Returns the user's stored runs, the newest first.
///
/// # Errors
/// Fails if there is no store, or it cannot be read.
pub(super) fn newest_runs() -> Result<Vec<StoredRun>> {
    let mut runs = RunStore::of_user()?.entries()?;
    runs.reverse();
    Ok(runs)
}

/// Returns the age of a run in seconds; absent if its start is unreadable or in the future.
pub(super) fn age_s(header: &Header) -> Option<u64> {
    let began = humantime::parse_rfc3339(&header.started).ok()?;
    Some(SystemTime::now().duration_since(began).ok()?.as_secs())
}

/// Fields on which the cost of a switch depends.
const SWITCH_FIELDS: [&str; 3] = ["cpu.models", "kernel.release", "mitigations"];
/// Ends of such fields that do not matter: which CPUs are of a model, the revision of its microcode.
const IGNORED_ENDS: [&str; 2] = [".cpus", ".microcode"];
/// Fields that a notice tells of: the processors and the kernel.
const NOTED_FIELDS: [&str; 3] = ["cpu.", "kernel.", "mitigations"];
/// Fields that a notice names.
const MAX_NAMED_FIELDS: usize = 3;

/// Reads the machine that this program runs on.
pub(super) fn this_machine() -> Machine {
    probe::machine::read(Path::new("/"))
}

/// Returns the fields that make `machine` a foreign one: a switch may cost otherwise than `here`.
pub(super) fn foreign_fields(machine: &Machine, here: &Machine) -> Vec<String> {
    let mut fields = differing_fields(machine, here, &SWITCH_FIELDS);
    fields.retain(|field| !IGNORED_ENDS.iter().any(|end| field.ends_with(end)));
    fields
}

/// Returns a notice of the fields in which the machine of a cost profile, the run `name`, differs.
pub(super) fn difference_notice(machine: &Machine, here: &Machine, name: &str) -> Option<String> {
    let fields = differing_fields(machine, here, &NOTED_FIELDS);
    if fields.is_empty() {
        return None;
    }
    let count = counted(fields.len(), "field");
    let named = fields[..fields.len().min(MAX_NAMED_FIELDS)].join(", ");
    let more = if fields.len() > MAX_NAMED_FIELDS { ", ..." } else { "" };
    Some(format!(
        "the cost profile ({name}) was measured on a machine that differs in {count}: {named}{more}"
    ))
}

/// Returns the fields that differ and begin with one of `starts`.
fn differing_fields(machine: &Machine, here: &Machine, starts: &[&str]) -> Vec<String> {
    let mut fields = Vec::new();
    for difference in machine.differences(here) {
        if starts.iter().any(|start| difference.field.starts_with(start)) {
            fields.push(difference.field);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use rundata::machine::CpuModel;
    use rundata::reading::Reading;

    use super::*;

    fn cpu_model() -> CpuModel {
        CpuModel { name: Reading::Known("a CPU".into()), ..CpuModel::default() }
    }

    fn machine() -> Machine {
        let mut machine = Machine::default();
        machine.cpu.models = Reading::Known(vec![cpu_model()]);
        machine.kernel.release = Reading::Known("6.18".into());
        machine.mitigations =
            Reading::Known([("srso".into(), Reading::Known("off".into()))].into());
        machine
    }

    fn foreign_fields_after(change: fn(&mut Machine)) -> Vec<String> {
        let mut changed = machine();
        change(&mut changed);
        foreign_fields(&changed, &machine())
    }

    #[test]
    fn a_machine_is_foreign_if_a_switch_may_cost_otherwise_on_it() {
        let memory = |machine: &mut Machine| machine.memory.total_bytes = Reading::Known(1 << 40);
        assert_eq!(foreign_fields_after(memory), [""; 0]);
        let kernel = |machine: &mut Machine| machine.kernel.release = Reading::Known("6.1".into());
        assert_eq!(foreign_fields_after(kernel), ["kernel.release"]);
        let mitigated = foreign_fields_after(|machine| {
            machine.mitigations =
                Reading::Known([("srso".into(), Reading::Known("on".into()))].into());
        });
        assert_eq!(mitigated, ["mitigations.srso"]);
        let model_name = foreign_fields_after(|machine| {
            let name = Reading::Known("another".into());
            machine.cpu.models = Reading::Known(vec![CpuModel { name, ..cpu_model() }]);
        });
        assert_eq!(model_name, ["cpu.models[0].name"]);
        let microcode = foreign_fields_after(|machine| {
            let microcode = Reading::Known("0x1".into());
            machine.cpu.models = Reading::Known(vec![CpuModel { microcode, ..cpu_model() }]);
        });
        assert_eq!(microcode, [""; 0]);
    }
}

//! What differs between two machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Machine;

/// Fields that change by themselves between two runs on one machine, and name no property of it.
const VOLATILE: &[&str] = &[
    "load",
    "interrupts",
    "kernel.boot_id",
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

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The way to it in the JSON form: `cpu.models[0].microcode`. For lists of unlike length it
    /// ends in `.count`, and the lengths are given.
    pub field: String,
    /// Its value on the first machine; null if it has none.
    pub base: Value,
    /// Its value on the second.
    pub other: Value,
}

impl Machine {
    /// What differs in the other machine, in the order of the JSON form. Left out: what changes by
    /// itself (load, free memory, boot id, cgroup paths), and what is unknown on both sides.
    pub fn differences(&self, other: &Machine) -> Vec<Difference> {
        let mut found = Vec::new();
        // Cannot fail: every key is a string.
        let base = serde_json::to_value(self).unwrap_or_default();
        let other = serde_json::to_value(other).unwrap_or_default();
        compare("", &base, &other, &mut found);
        found
    }
}

fn compare(field: &str, base: &Value, other: &Value, found: &mut Vec<Difference>) {
    if base == other || VOLATILE.contains(&field) || (is_unknown(base) && is_unknown(other)) {
        return;
    }
    match (base, other) {
        (Value::Object(a), Value::Object(b)) if !is_unknown(base) && !is_unknown(other) => {
            let added = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(added) {
                let dot = if field.is_empty() { "" } else { "." };
                let get = |map: &serde_json::Map<_, _>| map.get(key).cloned().unwrap_or_default();
                compare(&format!("{field}{dot}{key}"), &get(a), &get(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if holds_objects(a) && holds_objects(b) => {
            if a.len() != b.len() {
                found.push(difference(&format!("{field}.count"), a.len(), b.len()));
                return;
            }
            for (index, (base, other)) in a.iter().zip(b).enumerate() {
                compare(&format!("{field}[{index}]"), base, other, found);
            }
        }
        _ => found.push(difference(field, base.clone(), other.clone())),
    }
}

fn difference(field: &str, base: impl Into<Value>, other: impl Into<Value>) -> Difference {
    Difference { field: field.to_owned(), base: base.into(), other: other.into() }
}

/// The JSON form of `Reading::Unknown`.
fn is_unknown(value: &Value) -> bool {
    let Value::Object(map) = value else {
        return false;
    };
    map.len() == 1 && map.get("unknown").is_some_and(Value::is_string)
}

fn holds_objects(array: &[Value]) -> bool {
    array.iter().all(Value::is_object)
}

//! Differences of machines in words: `kernel 6.12.3 -> 6.12.9`.

use rundata::machine::FieldDifference;
use serde_json::Value;

use super::bearing_kind;

/// Most characters of a value that are printed.
const MAX_VALUE_CHARS: usize = 48;

/// Returns the differences of the machine in words, each once.
pub(crate) fn machine_differences(differences: &[FieldDifference]) -> Vec<String> {
    let mut words = Vec::new();
    for difference in differences {
        if repeats_another(difference, differences) {
            continue;
        }
        if let Some((_, kind)) = bearing_kind(difference) {
            words.push(machine_difference(kind, difference));
        }
    }
    words
}

/// Returns whether another difference says the same: a kernel's version goes with its release, the
/// state of sched_ext with the scheduler's name.
fn repeats_another(difference: &FieldDifference, differences: &[FieldDifference]) -> bool {
    let main_field = match &*difference.field {
        "kernel.version" | "kernel.banner" => "kernel.release",
        field if field.starts_with("scheduler.sched_ext") => "scheduler.name",
        _ => return false,
    };
    differences.iter().any(|other| other.field == main_field)
}

fn machine_difference(kind: &str, difference: &FieldDifference) -> String {
    let field = &*difference.field;
    if field == "kernel.command_line" {
        return command_line(difference);
    }
    let last = field.rsplit('.').next().unwrap_or_default();
    let kind_suffices = field == "kernel.release"
        || field == "scheduler.name"
        || kind == "microcode"
        || kind == "clock source"
        || (kind == "CPU" && last == "name");
    let name = if kind_suffices { kind.to_string() } else { format!("{kind} ({last})") };
    format!("{name} {} -> {}", value_in_words(&difference.base), value_in_words(&difference.other))
}

/// Returns the parameters of the kernel that were removed and added.
fn command_line(difference: &FieldDifference) -> String {
    let old = words_of_value(&difference.base);
    let new = words_of_value(&difference.other);
    let mut changed = signed_words("-", &old, &new);
    changed.extend(signed_words("+", &new, &old));
    let shown = if changed.is_empty() { "in another order".to_string() } else { changed.join(" ") };
    format!("kernel command line {}", cut(&shown))
}

fn words_of_value(value: &Value) -> Vec<&str> {
    value.as_str().unwrap_or_default().split_whitespace().collect()
}

/// Returns the words that `known` does not have, each with a sign before it.
fn signed_words(sign: &str, words: &[&str], known: &[&str]) -> Vec<String> {
    let mut signed = Vec::new();
    for word in words {
        if !known.contains(word) {
            signed.push(format!("{sign}{}", cut(word)));
        }
    }
    signed
}

/// Returns a value of a setting in a few characters.
pub(crate) fn value_in_words(value: &Value) -> String {
    match value {
        Value::Null => "none".to_string(),
        Value::String(text) => cut(text),
        Value::Object(map) if map.len() == 1 && map.contains_key("unknown") => {
            "not recorded".to_string()
        }
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

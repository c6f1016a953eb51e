//! Brings what older programs stored to the form that is written today, so that the types have
//! today's fields only.
//!
//! Fields were added to the header without a new schema version: whether a file has them depends on
//! the program that wrote it. So every header is looked through, once a file, before it is
//! deserialised:
//!
//! ```text
//! {"bytes": 4096, "stride_bytes": 128, "op": "rmw"}              is read as
//! {"bytes": 4096, "stride_bytes": 128, "op": "rmw", "walk": "whole", "huge_pages": false}
//! ```
//!
//! The line of the competing tasks had the name `company`, which is an alias in
//! [`crate::run::RunFileLine`]. Two kinds of fields need no upgrade. Some are left out today, too, where they are empty: samples
//! and later lines of older files lack only such. And missing fields of the machine and of its
//! competing tasks read as unknown or nothing, whatever the file's age.

use serde_json::{Map, Value, json};

/// The notice by which older files say that they are a quick measurement.
const QUICK_NOTICE: &str = "a quick measurement of `switchcost run`";

/// Beginnings of notices of older files that the budget was too short for all sizes.
const TOO_SHORT: [&str; 2] = ["Measured ", "budget:"];

/// Beginning of notices of older files on a part of a switch that was not measured: its name and
/// the reason follow, with a colon between them.
const NOT_MEASURED: &str = "not measured: ";

/// The mark in results of older files before a figure that is not quotable.
const ROUGH_MARK: char = '~';

/// Returns whether the result of an older file is a figure that is not quotable.
pub(crate) fn is_rough_result(text: &str) -> bool {
    text.contains(ROUGH_MARK)
}

/// Adds to the line of a header what older programs did not write.
pub(crate) fn upgrade_header(line: &mut Value) {
    let Some(header) = line.get_mut("header").and_then(Value::as_object_mut) else { return };
    add_missing(header, "notices", json!([]));
    if header["notices"].as_array().is_some_and(|notices| notices.contains(&QUICK_NOTICE.into())) {
        header.insert("is_quick".to_string(), true.into());
    }
    upgrade_notices(header);
    if let Some(plan) = header.get_mut("plan").and_then(Value::as_object_mut) {
        upgrade_plan(plan);
    }
}

/// Adds the kind to notices that only their words tell from others.
fn upgrade_notices(owner: &mut Map<String, Value>) {
    for notice in owner.get_mut("notices").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(text) = notice.as_str() else { continue };
        let part = text.strip_prefix(NOT_MEASURED).and_then(|rest| rest.split_once(':'));
        let kind = if TOO_SHORT.iter().any(|beginning| text.starts_with(beginning)) {
            json!("too_short")
        } else if let Some((part, _)) = part {
            json!({"part_not_measured": part})
        } else {
            continue;
        };
        *notice = json!({"kind": kind, "text": text});
    }
}

fn upgrade_plan(plan: &mut Map<String, Value>) {
    add_missing(plan, "reference", json!({}));
    for part in plan.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        part.as_object_mut().into_iter().for_each(upgrade_notices);
    }
    for case in plan.get_mut("cases").and_then(Value::as_array_mut).into_iter().flatten() {
        upgrade_case(case);
    }
}

/// Upgrades a case, bare or under the name of its kind (see [`crate::stored`]). A bare trial has a
/// field `trial` as well, which is what is tried.
fn upgrade_case(case: &mut Value) {
    for path in ["", "/ring"] {
        if let Some(ring) = case.pointer_mut(path).and_then(Value::as_object_mut) {
            upgrade_work(ring);
        }
    }
    for path in ["/trial", "/trial/trial"] {
        let trial = case.pointer_mut(path).and_then(Value::as_object_mut);
        if let Some(execution) = trial.filter(|trial| trial.get("of") == Some(&json!("execution")))
        {
            upgrade_work(execution);
            add_missing(execution, "wire", json!("loopback"));
        }
    }
}

/// Upgrades the working set of a ring or an execution: the array was walked as a whole, and asked
/// for no huge pages.
fn upgrade_work(owner: &mut Map<String, Value>) {
    if let Some(work) = owner.get_mut("work").and_then(Value::as_object_mut) {
        add_missing(work, "walk", json!("whole"));
        add_missing(work, "huge_pages", json!(false));
    }
}

fn add_missing(object: &mut Map<String, Value>, key: &str, value: Value) {
    if !object.contains_key(key) {
        object.insert(key.to_string(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upgraded(mut line: Value) -> Value {
        upgrade_header(&mut line);
        line
    }

    fn header(cases: Value) -> Value {
        json!({"header": {"notices": [], "plan": {"cases": cases, "reference": {}}}})
    }

    #[test]
    fn every_field_that_was_added_is_there() {
        let old = json!({"header": {"plan": {}}});
        assert_eq!(upgraded(old), json!({"header": {"notices": [], "plan": {"reference": {}}}}));
    }

    #[test]
    fn notices_that_only_words_told_apart_have_a_kind() {
        let old = json!([
            "Measured 6 of 52 sizes; --budget 34s measures all",
            "budget: too short",
            "not measured: filter: no seccomp(2)",
            "CPU 1 was busy"
        ]);
        let part = json!({"notices": ["not measured: system calls: no counter"]});
        let line = upgraded(json!({"header": {"notices": old, "plan": {"parts": [part]}}}));
        let kinds: Vec<&Value> = line["header"]["notices"]
            .as_array()
            .expect("notices")
            .iter()
            .map(|notice| &notice["kind"])
            .collect();
        let filter = json!({"part_not_measured": "filter"});
        let too_short = json!("too_short");
        assert_eq!(kinds, [&too_short, &too_short, &filter, &Value::Null]);
        let of_part = &line["header"]["plan"]["parts"][0]["notices"][0];
        assert_eq!(of_part["kind"], json!({"part_not_measured": "system calls"}));
        assert_eq!(of_part["text"], "not measured: system calls: no counter");
    }

    #[test]
    fn works_and_wires_are_found_in_cases_bare_and_named() {
        let old = || json!({"bytes": 64, "stride_bytes": 8, "op": "read"});
        let new = || {
            json!({"bytes": 64, "stride_bytes": 8, "op": "read", "walk": "whole",
                "huge_pages": false})
        };
        let ring = |work: Value| json!({"members": 2, "work": work});
        let before = |work: Value| json!({"trial": {"of": "execution", "work": work}, "cpu": 1});
        let after = |work: Value| json!({"trial": {"of": "execution", "work": work, "wire": "loopback"}, "cpu": 1});
        let cases =
            json!([ring(old()), {"ring": ring(old())}, before(old()), {"trial": before(old())}]);
        let expected =
            json!([ring(new()), {"ring": ring(new())}, after(new()), {"trial": after(new())}]);
        assert_eq!(upgraded(header(cases)), header(expected));
    }

    #[test]
    fn what_is_of_today_or_no_header_stays_as_it_is() {
        let work = json!({"bytes": 64, "walk": "chase", "huge_pages": true});
        let execution = json!({"trial": {"of": "execution", "work": work, "wire": "veth"}});
        let other = json!({"trial": {"of": "two_processes"}});
        let today = header(json!([{"work": work}, {"work": null}, execution, other, 7]));
        for line in [today, json!({"header": 1}), json!({"sample": {}}), json!([])] {
            assert_eq!(upgraded(line.clone()), line);
        }
    }
}

//! Numbers of a stored plan: those out of range are refused by name.

// clippy.toml allows it in tests, but does not know their helpers for such.
#![allow(clippy::unwrap_used)]

use rundata::run::Run;
use serde_json::{Value, json};

const RINGS: &str = include_str!("fixtures/run-v1.jsonl");
const TRIALS: &str = include_str!("fixtures/trials-v1.jsonl");

/// Why a run is refused in whose header the field is `value`.
fn refused(text: &str, field: &str, value: Value) -> String {
    let mut header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let plan = header.pointer_mut("/header/plan").unwrap();
    let (part, name) = field.rsplit_once('/').unwrap();
    plan.pointer_mut(part).unwrap()[name] = value;
    Run::parse(&header.to_string()).map_or_else(|error| error.to_string(), |_| "read".to_string())
}

#[test]
fn of_rings() {
    for (field, value, told) in [
        ("/stopping/confidence", json!(1), "confidence is 1 (accepted: 0.5 to 0.9999)"),
        ("/stopping/precision", json!(1e308), "precision is 1"),
        ("/stopping/rounds", json!(0), "rounds is 0 (accepted: 1 to 4294967295)"),
        ("/batching/samples_per_round", json!(0), "samples_per_round is 0"),
        ("/batching/slice_ns", json!(0), "slice_ns is 0"),
        ("/cases/0/members", json!(u32::MAX), "case 0: members is 4294967295"),
        ("/cases/1/priority", json!(100), "case 1: priority is 100 (accepted: 0 to 99)"),
        ("/cases/1/placement", json!({"mode": "same", "cpu": 65536}), "CPU is 65536"),
        ("/cases/1/work", json!({"bytes": 12, "stride_bytes": 8, "op": "rmw"}), "--work 12"),
        ("/reference", json!({"unshared_ratio": -1.0}), "unshared_ratio is -1"),
        ("/seed", json!(u64::MAX), "read"),
    ] {
        let why = refused(RINGS, field, value);
        assert!(why.contains(told), "{field}: no {told:?} in {why}");
    }
}

#[test]
fn of_trials() {
    let trial = |trial: Value| refused(TRIALS, "/cases/0/trial", trial);
    for (of, told) in [
        (json!({"of": "primes", "primes": 0}), "primes is 0"),
        (
            json!({"of": "malloc", "bytes": u64::MAX, "preload": null}),
            "bytes is 18446744073709551615",
        ),
        (json!({"of": "gaps", "duration_ns": u64::MAX}), "duration_ns is 18446744073709551615"),
        (json!({"of": "two_processes"}), "read"),
    ] {
        let why = trial(of.clone());
        assert!(why.contains(told), "{of}: no {told:?} in {why}");
    }
    assert!(refused(TRIALS, "/batching/trials", json!(0)).contains("trials is 0"));
    assert!(refused(TRIALS, "/cases/0/cpu", json!(u32::MAX)).contains("CPU is 4294967295"));
}

/// A later session has a stopping rule of its own: its line is one that cannot be read.
#[test]
fn of_a_resumed_run() {
    let resumed = |confidence: f64| {
        let stopping =
            json!({"precision": 0.1, "budget_ns": 1, "rounds": null, "confidence": confidence});
        let line =
            json!({"resumed": {"at": "", "spent_ns": 0, "stopping": stopping, "differences": []}});
        Run::parse(&format!("{RINGS}{line}\n")).unwrap()
    };
    assert_eq!(resumed(0.9).header.plan.stopping.confidence, 0.9);
    let run = resumed(2.0);
    assert_eq!((run.header.plan.stopping.confidence, run.resumed.len()), (0.95, 0));
    assert!(run.warnings[0].contains("confidence is 2"), "{:?}", run.warnings);
}

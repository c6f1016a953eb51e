//! The verdicts on Sloan's nine machines (`data/sloan1992.csv`) against what his paper says.

// Clippy takes only functions marked as tests for tests, not their helpers.
#![allow(clippy::unwrap_used)]

use analysis::curve::{CurvePoint, TurnKind};
use analysis::scaling::{LawShape, ScalingVerdict, law, projected};

struct Row {
    machine: String,
    members: u32,
    cpu_s: f64,
    projected_s: f64,
}

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/sloan1992.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        Row {
            machine: format!("{} {}", fields[1], fields[3]),
            members: fields[4].parse().unwrap(),
            cpu_s: fields[6].parse().unwrap(),
            projected_s: fields[9].parse().unwrap(),
        }
    };
    lines.map(row).collect()
}

fn cpu_s(machine: &str, members: u32) -> f64 {
    let is_it = |row: &Row| row.machine == machine && row.members == members;
    rows().into_iter().find(is_it).unwrap().cpu_s
}

/// A million laps of N switches: seconds / N are microseconds a switch.
fn verdict(machine: &str) -> ScalingVerdict {
    let of_machine = |row: Row| {
        (row.machine == machine).then(|| CurvePoint {
            x: f64::from(row.members),
            y: 1000.0 * row.cpu_s / f64::from(row.members),
            error: None,
        })
    };
    let points: Vec<CurvePoint> = rows().into_iter().filter_map(of_machine).collect();
    assert!(points.len() >= 7, "no such machine: {machine}");
    law(&points)
}

/// Cost at the largest measured size over that at the smallest.
fn growth(verdict: &ScalingVerdict) -> f64 {
    let end = |members: u32| verdict.cost_at(f64::from(members)).unwrap();
    end(verdict.largest_members) / end(verdict.smallest_members)
}

#[test]
fn the_file_is_whole() {
    let rows = rows();
    assert_eq!(rows.len(), 78);
    let mut machines: Vec<&str> = rows.iter().map(|row| row.machine.as_str()).collect();
    machines.dedup();
    assert_eq!(machines.len(), 9);
}

#[test]
fn sun_4_280_jumps_between_10_and_16() {
    let verdict = verdict("Sun-4/280 SunOS 4.1.1");
    let [knee] = &verdict.knees[..] else {
        panic!("{verdict:?}");
    };
    assert_eq!((knee.low_members, knee.high_members), (10, 16), "{verdict:?}");
    assert_eq!(knee.kind, TurnKind::Step);
    let factor = knee.factor.unwrap();
    assert!((2.9..3.5).contains(&factor), "{verdict:?}");
    assert!(knee.factor_low.unwrap() > 2.5 && knee.factor_high.unwrap() < 4.0);
}

#[test]
fn sun_4_470_has_its_knee_after_32() {
    let verdict = verdict("Sun-4/470 SunOS 4.1_PSR");
    let [knee] = &verdict.knees[..] else {
        panic!("{verdict:?}");
    };
    assert!(knee.low_members >= 32 && knee.high_members <= 64, "{verdict:?}");
    assert!(knee.factor_low.unwrap() > 1.0, "{verdict:?}");
    assert!(verdict.in_words().contains("seen at one size only"));
}

#[test]
fn aix_3_2_is_flat_where_aix_3_1_is_not() {
    let new = verdict("RS6000/530 AIX 3.2");
    assert_eq!(new.shape(), Some(LawShape::Constant), "{new:?}");
    assert!(new.trend_below.unwrap() < 0.10, "{new:?}");
    let old = verdict("RS6000/530 AIX 3.1");
    // It rises and levels off; by nine points without errors a logarithm and a plateau are about as
    // near.
    assert!(matches!(old.shape(), Some(LawShape::Logarithmic | LawShape::Saturating)), "{old:?}");
    assert!(growth(&old) > 1.3, "{old:?}");
}

#[test]
fn sun_4_630_is_flat() {
    let verdict = verdict("Sun-4/630 SunOS 4.1.2");
    assert_eq!(verdict.shape(), Some(LawShape::Constant), "{verdict:?}");
    assert!(verdict.trend_below.unwrap() < 0.15, "{verdict:?}");
}

/// The paper draws these curves and says nothing of their law; only what is plain is asserted.
#[test]
fn the_other_machines_get_modest_verdicts() {
    let aviion = verdict("AViiON AV400 DG/UX 5.4");
    assert_eq!(aviion.shape(), Some(LawShape::Logarithmic), "{aviion:?}");
    for (machine, most) in [("HP 9000/720 HP-UX A.B8.05", 1.25), ("370/4381 VM AIX/370 1.2", 1.15)]
    {
        let verdict = verdict(machine);
        assert!(verdict.knees.is_empty(), "{verdict:?}");
        assert!((1.0..most).contains(&growth(&verdict)), "{verdict:?}");
    }
    let solbourne = verdict("702/E SunOS 4.1.1");
    assert_eq!(solbourne.shape(), None, "{solbourne:?}");
}

#[test]
fn rs6000_against_hp_720() {
    let ratio = |n| cpu_s("RS6000/530 AIX 3.1", n) / cpu_s("HP 9000/720 HP-UX A.B8.05", n);
    assert_eq!(format!("{:.2}", ratio(2)), "1.93");
    assert_eq!(format!("{:.2}", ratio(48)), "2.25");
}

/// cpu(2) is printed to a second, so N/2 times half a second is lost, and the result is rounded.
#[test]
fn every_projected_figure_is_reproduced() {
    for row in rows() {
        let ours = projected(cpu_s(&row.machine, 2), row.members);
        let allowed = f64::from(row.members) / 4.0 + 1.0;
        let off = (ours - row.projected_s).abs();
        assert!(off <= allowed, "{} at {}: {ours}", row.machine, row.members);
    }
}

//! `cost --interference` on the terminal.

use std::fmt::Write;

use model::interference::{Comparison, Verdict, judge};
use model::published::li2007::Figures;
use model::trial::interference::{Execution, Found, Noise};
use model::trial::{Record, Trial};
use stats::Interval;

use crate::terminal::{align, figure, table};

/// The paper's figures.
const PUBLISHED: &str = include_str!("../../../../data/li2007.csv");

pub(crate) fn text(record: &Record, found: &Found) -> String {
    let mut text = format!("{}\n\n", comparisons(&found.verdict, 1e6));
    for line in legend(record, found) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "\nverdict: {}", found.in_words);
    for doubt in &found.doubts {
        let _ = writeln!(text, "doubt: {doubt}");
    }
    text.push('\n');
    text.push_str(&published());
    text
}

/// Intervals of the mean execution time, in `unit_ns`.
fn comparisons(verdict: &Verdict, unit: f64) -> comfy_table::Table {
    let mut table = table(["array", "setting", "quiet", "disturbed", "grew", "moved %"]);
    for comparison in &verdict.comparisons {
        table.add_row(row(comparison, unit));
    }
    align(&mut table);
    table
}

fn row(comparison: &Comparison, unit: f64) -> [String; 6] {
    let interval = |interval: &Option<Interval>| match interval {
        Some(i) => format!("({:.2}, {:.2})", i.low / unit, i.high / unit),
        None => "-".to_string(),
    };
    let growth = comparison.growth.map_or("-".to_string(), |growth| {
        let mark = if growth.is_resolved() { "" } else { "not resolved " };
        format!(
            "{mark}{}x ({} to {})",
            figure(Some(growth.ratio)),
            figure(Some(growth.low)),
            figure(Some(growth.high))
        )
    });
    let moved = comparison.moved.map_or("-".to_string(), |moved| {
        format!(
            "{:+.2} ({:+.2} to {:+.2})",
            100.0 * moved.part,
            100.0 * moved.low,
            100.0 * moved.high
        )
    });
    [
        format!("{} KiB", figure(Some(comparison.array_bytes as f64 / 1024.0))),
        comparison.setting.to_string(),
        interval(&comparison.quiet),
        interval(&comparison.disturbed),
        growth,
        moved,
    ]
}

fn legend(record: &Record, found: &Found) -> Vec<String> {
    let executions = || {
        record.cases.iter().filter_map(|summary| match &summary.case.trial {
            Trial::Execution(execution) => Some((&summary.case, execution)),
            _ => None,
        })
    };
    let mut lines = vec![
        "quiet, disturbed: mean execution time in ms, 90 % interval (Student); grew: scatter disturbed / quiet, moved: of the mean"
            .to_string(),
    ];
    let Some((_, first)) = executions().next() else { return lines };
    lines.push(format!(
        "every run: a ring of two, {} laps, each member rmw over its array",
        first.laps
    ));
    let mut told: Vec<String> = Vec::new();
    for (case, Execution { setting, noise, wire, noise_cpu, priority, .. }) in executions() {
        let events = found.events_per_run.get(&setting.to_string());
        let events = events.map_or(String::new(), |events| {
            format!(", {} {} a run", figure(Some(*events)), noise.events())
        });
        let line = format!(
            "{setting}: members on CPU {} under policy {}{}, noise ({noise}{}) on CPU {noise_cpu}{events}",
            case.cpu,
            case.policy,
            priority.map_or(String::new(), |priority| format!(" at priority {priority}")),
            if *noise == Noise::Net { format!(" by {wire}") } else { String::new() }
        );
        if !told.contains(&line) {
            told.push(line);
        }
    }
    lines.extend(told);
    lines
}

/// The paper's Tables 1 and 2, read in the same way.
fn published() -> String {
    // The file is part of the program and read by its tests.
    let Ok(figures) = Figures::parse(PUBLISHED) else { return String::new() };
    let verdict = judge(&figures.runs);
    format!(
        "Li, Ding and Shen 2007 (dual Xeon 2.0 GHz, 512 KiB L2; unit not given; packets from another machine):\n\n{}\n\ntheir verdict: {}\n\n",
        comparisons(&verdict, 1.0),
        verdict.in_words()
    )
}

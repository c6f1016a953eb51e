//! `switchcost run` on the terminal, as JSON, as CSV.

mod csv;
mod table;

use std::fmt::Write;

use anyhow::{Context, Result};
use model::command_use::{Ending, Ratio, Record, Summary, Switching};
use model::program_cost::ProgramCost;
use model::words::time;

pub(crate) use csv::rows as csv;

use super::parts::figure;

/// Outliers that are named one by one.
const MOST_OUTLIERS: usize = 5;

/// The record as JSON, ending with a newline.
pub(crate) fn json(record: &Record) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(record).context("cannot write JSON")?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The whole report, ending with a newline.
pub(crate) fn text(record: &Record) -> String {
    let mut text = String::new();
    for summary in &record.commands {
        let name = match record.plan.commands.len() {
            1 => String::new(),
            _ => format!("command {}: ", summary.number + 1),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}{}: {}\n", shown(&summary.command), ends(summary));
        text.push_str(&table::of(summary));
        let _ = writeln!(text, "not kept by Linux: {}", record.not_kept.join(", "));
        for outlier in summary.outliers.iter().take(MOST_OUTLIERS) {
            let _ = writeln!(
                text,
                "outlier: round {}: real {}, {}x the median",
                outlier.round + 1,
                time(outlier.real_ns as f64),
                figure(Some(outlier.times_median))
            );
        }
        if let Some(more @ 1..) = summary.outliers.len().checked_sub(MOST_OUTLIERS) {
            let _ = writeln!(text, "and {more} outliers more (--json names all)");
        }
        if let Some(switching) = &summary.switching {
            text.push_str(&switching_words(switching));
        }
        text.push('\n');
    }
    for ratio in &record.ratios {
        let _ = writeln!(text, "{}", ratio_words(ratio));
    }
    for notice in &record.notices {
        let _ = writeln!(text, "note: {notice}");
    }
    text
}

fn shown(words: &[String]) -> String {
    shell_words::join(words)
}

fn ends(summary: &Summary) -> String {
    match (&summary.endings[..], summary.runs) {
        ([(ending, _)], 1) => ending.to_string(),
        ([(Ending::Exited { code: 0 }, _)], runs) => format!("{runs} runs"),
        ([(ending, _)], runs) => format!("{runs} runs, all with {ending}"),
        (_, runs) => format!("{runs} runs"),
    }
}

fn switching_words(switching: &Switching) -> String {
    let mut text = String::new();
    let lost = switching.lost_ns.map(|lost| {
        let direct = switching.direct_lost_ns.map_or(String::new(), |direct| {
            format!(" (direct cost alone: {} to {})", time(direct.low), time(direct.high))
        });
        format!("lost to switches: {} to {} a run{direct}; ", time(lost.low), time(lost.high))
    });
    let _ = writeln!(text, "{}{}", lost.unwrap_or_default(), switching.cost.in_words());
    if let ProgramCost::Estimated { assumptions, .. } = &switching.cost {
        let _ = writeln!(text, "  assumed: {}", assumptions.join("; "));
        if let Some(surface) = switching.surface.known() {
            let _ = writeln!(text, "  costs of {}", surface.run);
        }
    }
    for notice in &switching.notices {
        let _ = writeln!(text, "  {notice}");
    }
    text
}

fn ratio_words(ratio: &Ratio) -> String {
    let name = if ratio.of == "real_ns" { "real time" } else { "CPU time" };
    let range = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{low:.3} to {high:.3}"),
        _ => format!("{} rounds give no interval", ratio.rounds),
    };
    let range = if ratio.resolved { range } else { format!("not resolved from 1: {range}") };
    format!("command 2 / command 1, {name}: {:.3} ({range})", ratio.value)
}

//! A run as rows of data/modern.csv: `history` reads them as a machine of today.

use std::num::NonZeroU32;

use analysis::published::modern::{ModernFigure, ModernRow};
use analysis::quote::QuotedFigure;
use analysis::results::{CaseResults, Quantity, Results};
use anyhow::{Context, Result};
use rundata::machine::{CpuModel, Machine};
use rundata::placement::Placement;
use rundata::reading::Reading;
use rundata::ring::{MemberKind, Policy, RingCase};
use rundata::run::Run;
use rundata::trial::Trial;

use super::columns::Columns;

/// Rings of processes on one CPU, and calls, with each figure that may be quoted.
pub(crate) fn rows(run: &Run) -> Result<Vec<u8>> {
    let (results, blank) = (Results::from_run(run), blank(run)?);
    let mut rows = Vec::new();
    for case_results in &results.cases {
        let Some(row) = of_case(run, case_results.number, &blank) else { continue };
        for (what, figure) in figures(case_results, row.what) {
            // Of a working set the switch alone: its hop is mostly the walk.
            if what == ModernFigure::Hop && row.array_bytes.is_some() {
                continue;
            }
            let [us, low_us, high_us] =
                [figure.value(), figure.low(), figure.high()].map(|ns| four_digits(ns / 1e3));
            rows.push(ModernRow { what, us, low_us, high_us, ..row.clone() });
        }
    }
    columns().csv(rows)
}

/// The fields of a row, in the file's order.
fn columns() -> Columns<'static, ModernRow> {
    Columns::new()
        .right("machine", |row: &ModernRow| row.machine.clone())
        .right("cpu", |row| row.cpu.clone())
        .right("kernel", |row| row.kernel.clone())
        .right("cpus", |row| row.cpus)
        .right("year", |row| row.year)
        .right("what", |row| row.what)
        .right("name", |row| row.name.clone())
        .or_empty("processes", |row| row.processes)
        .or_empty("array_bytes", |row| row.array_bytes)
        .or_empty("stride_bytes", |row| row.stride_bytes)
        .or_empty("op", |row| row.op)
        .or_empty("walk", |row| row.walk)
        .or_empty("huge_pages", |row| row.huge_pages)
        .right("policy", |row| row.policy)
        .right("us", |row| row.us)
        .right("low_us", |row| row.low_us)
        .right("high_us", |row| row.high_us)
}

/// What all rows of a run have in common.
fn blank(run: &Run) -> Result<ModernRow> {
    let machine = &run.header.machine;
    let (name, cpu) = names(machine).context("the run does not tell its CPU")?;
    let cpus = machine.cpu.online.known().map(|list| list.as_slice().len());
    let cpus = cpus.and_then(|count| NonZeroU32::new(u32::try_from(count).ok()?));
    let year = run.header.started.split('-').next().and_then(|year| year.parse().ok());
    Ok(ModernRow {
        machine: name,
        cpu,
        kernel: machine.kernel.release.known().cloned().unwrap_or_default(),
        cpus: cpus.context("the run does not tell its CPUs")?,
        year: year.context("the run does not tell when it was")?,
        what: ModernFigure::Hop,
        name: String::new(),
        processes: None,
        array_bytes: None,
        stride_bytes: None,
        op: None,
        walk: None,
        huge_pages: None,
        policy: Policy::Other,
        us: 0.0,
        low_us: 0.0,
        high_us: 0.0,
    })
}

/// `amd-epyc-25/17`, and `AMD EPYC family 25 model 17 guest`.
fn names(machine: &Machine) -> Option<(String, String)> {
    let CpuModel { name, family, model, .. } = machine.cpu.models.known()?.first()?;
    let name = name.known()?.replace(',', " ");
    let words: Vec<&str> = name.split_whitespace().collect();
    let (mut short, mut long) = (words.join("-").to_lowercase(), words.join(" "));
    if let (Reading::Known(family), Reading::Known(model)) = (family, model) {
        short += &format!("-{family}/{model}");
        long += &format!(" family {family} model {model}");
    }
    let is_guest = machine.virtualization.cpu_flag.known() == Some(&true);
    Some((short, long + if is_guest { " guest" } else { "" }))
}

/// The case of a row; none of what the file has no columns for.
fn of_case(run: &Run, number: usize, blank: &ModernRow) -> Option<ModernRow> {
    let plan = &run.header.plan;
    if let Some(ring) = plan.ring(number) {
        let RingCase { members, link, work, policy, .. } = ring.clone();
        let is_same = matches!(ring.placement, Placement::Same { .. });
        let is_plain = ring.state.is_none() && ring.burden.is_none();
        return (is_same && is_plain && ring.kind == MemberKind::Process).then(|| ModernRow {
            name: link,
            processes: NonZeroU32::new(members),
            array_bytes: work.map(|work| work.bytes),
            stride_bytes: work.map(|work| work.stride_bytes),
            op: work.map(|work| work.op),
            walk: work.map(|work| work.walk),
            huge_pages: work.map(|work| work.huge_pages),
            policy,
            ..blank.clone()
        });
    }
    let case = plan.trial(number)?;
    let (what, name) = match &case.trial {
        Trial::Call { call } => (ModernFigure::Call, call.clone()),
        Trial::Loop { call } => (ModernFigure::Loop, call.clone()),
        _ => return None,
    };
    Some(ModernRow { what, name, policy: case.policy, ..blank.clone() })
}

/// What may be quoted of a case; `trial` is what it is if it is no ring.
fn figures(case_results: &CaseResults, trial: ModernFigure) -> Vec<(ModernFigure, QuotedFigure)> {
    let told = |(of, what): (Quantity, ModernFigure)| {
        let estimate = case_results.figures.get(&of)?.launches().first()?.estimate?;
        Some((what, estimate.quote_cost().ok()?))
    };
    let all = [
        (Quantity::NsPerSwitchAboveSolo, ModernFigure::Switch),
        (Quantity::NsPerHop, ModernFigure::Hop),
        (Quantity::TrialNs, trial),
    ];
    all.into_iter().filter_map(told).collect()
}

fn four_digits(us: f64) -> f64 {
    format!("{us:.3e}").parse().unwrap_or(us)
}

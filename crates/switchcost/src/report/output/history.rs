//! A run as rows of data/modern.csv, which `history` reads as a machine of today.

use std::num::NonZeroU32;

use analysis::published::modern::{ModernFigure, ModernRow};
use analysis::quote::QuotedFigure;
use analysis::results::{CaseResults, Quantity, Results};
use anyhow::{Context, Result, bail};
use rundata::machine::{CpuModel, Machine};
use rundata::placement::Placement;
use rundata::reading::Reading;
use rundata::ring::{MemberKind, Policy, RingCase};
use rundata::run::{Header, Run};
use rundata::trial::Trial;

use super::columns::Columns;

/// Returns rows, as CSV, of the rings of processes on one CPU and of the calls: one for each quotable
/// figure, the first of a case that several experiments measured. Comment lines above say what
/// measured them. Nothing names the machine, its users or a command. An error where the run lacks a
/// fact of the machine that every row has.
pub(crate) fn rows(run: &Run) -> Result<Vec<u8>> {
    file_of_rows(run, figure_rows(run)?)
}

/// Like [`rows`], but an error where no figure may be quoted.
pub(crate) fn rows_to_share(run: &Run) -> Result<Vec<u8>> {
    let rows = figure_rows(run)?;
    if rows.is_empty() {
        let budget_s = budget_s(run);
        bail!(
            "no figure was seen at full speed in {budget_s} s: measure longer (--budget {}s), when \
             nothing else runs",
            budget_s.saturating_mul(3)
        );
    }
    file_of_rows(run, rows)
}

fn file_of_rows(run: &Run, rows: Vec<ModernRow>) -> Result<Vec<u8>> {
    let mut file = origin_lines(run).into_bytes();
    file.extend(columns().csv(rows)?);
    Ok(file)
}

fn figure_rows(run: &Run) -> Result<Vec<ModernRow>> {
    let results = Results::from_run(run);
    let machine_row = machine_row(run)?;
    let mut rows: Vec<ModernRow> = Vec::new();
    for case_results in &results.cases {
        let Some(row) = case_row(run, case_results.number, &machine_row) else { continue };
        for quoted in quoted_figures(case_results, row.what) {
            // A hop with a working set is mostly its walk: only the switch says something.
            if quoted.what == ModernFigure::Hop && row.array_bytes.is_some() {
                continue;
            }
            let figure = quoted.figure;
            let row = ModernRow {
                what: quoted.what,
                us: four_digits(figure.value() / 1e3),
                low_us: four_digits(figure.low() / 1e3),
                high_us: four_digits(figure.high() / 1e3),
                ..row.clone()
            };
            if !rows.iter().any(|earlier| earlier.what == row.what && earlier.is_same_case(&row)) {
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// Returns comment lines with the version that measured, the day and the time that was allowed, as
/// data/add reads them.
fn origin_lines(run: &Run) -> String {
    let Header { build, plan, started, .. } = &run.header;
    // Seconds could be found again in logs of the machine.
    let day = started.split('T').next().unwrap_or_default();
    let commit = build.commit.as_ref().map(|commit| format!("# commit: {commit}\n"));
    format!(
        "# version: {}\n{}# profile: {}\n# experiment: {}\n# budget_s: {}\n# day: {day}\n",
        build.version,
        commit.unwrap_or_default(),
        build.profile,
        plan.experiment.name(),
        budget_s(run),
    )
}

/// Returns the time in seconds that the run was allowed.
fn budget_s(run: &Run) -> u64 {
    run.header.plan.stopping.budget_ns.saturating_add(500_000_000) / 1_000_000_000
}

/// Declares the columns of data/modern.csv, in their order.
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

/// Returns a row with what all rows of a run have in common: the machine, and the year.
fn machine_row(run: &Run) -> Result<ModernRow> {
    let machine = &run.header.machine;
    let names = MachineNames::from_machine(machine).context("the run does not tell its CPU")?;
    let year = run.header.started.split('-').next().and_then(|year| year.parse().ok());
    Ok(ModernRow {
        machine: names.short,
        cpu: names.long,
        kernel: machine.kernel.release.known().cloned().unwrap_or_default(),
        cpus: cpu_count(machine).context("the run does not tell its CPUs")?,
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

fn cpu_count(machine: &Machine) -> Option<NonZeroU32> {
    let online = machine.cpu.online.known()?;
    NonZeroU32::new(u32::try_from(online.as_slice().len()).ok()?)
}

/// Names of a machine in the file.
struct MachineNames {
    /// `amd-epyc-25/17`: `history` finds the machine by it.
    short: String,
    /// `AMD EPYC family 25 model 17 guest`.
    long: String,
}

impl MachineNames {
    /// Builds the names from the CPU's model; absent if the machine does not tell it.
    fn from_machine(machine: &Machine) -> Option<Self> {
        let CpuModel { name, family, model, .. } = machine.cpu.models.known()?.first()?;
        let name = name.known()?.replace(',', " ");
        let words: Vec<&str> = name.split_whitespace().collect();
        let (mut short, mut long) = (words.join("-").to_lowercase(), words.join(" "));
        if let (Reading::Known(family), Reading::Known(model)) = (family, model) {
            short += &format!("-{family}/{model}");
            long += &format!(" family {family} model {model}");
        }
        if machine.virtualization.cpu_flag.known() == Some(&true) {
            long += " guest";
        }
        Some(Self { short, long })
    }
}

/// Fills the row of a case; absent if it has a setting for which the file has no column.
fn case_row(run: &Run, number: usize, machine_row: &ModernRow) -> Option<ModernRow> {
    let plan = &run.header.plan;
    if let Some(ring) = plan.ring(number) {
        return ring_row(ring, machine_row);
    }
    let case = plan.trial(number)?;
    let (what, name) = match &case.trial {
        Trial::Call { call } => (ModernFigure::Call, call.clone()),
        Trial::Loop { call } => (ModernFigure::Loop, call.clone()),
        _ => return None,
    };
    Some(ModernRow { what, name, policy: case.policy, ..machine_row.clone() })
}

fn ring_row(ring: &RingCase, machine_row: &ModernRow) -> Option<ModernRow> {
    let is_on_one_cpu = matches!(ring.placement, Placement::Same { .. });
    let is_plain = ring.state.is_none() && ring.burden.is_none() && ring.flight.is_none();
    if !is_on_one_cpu || !is_plain || ring.kind != MemberKind::Process {
        return None;
    }
    let mut row = ModernRow {
        name: ring.link.clone(),
        processes: NonZeroU32::new(ring.members),
        policy: ring.policy,
        ..machine_row.clone()
    };
    if let Some(work) = ring.work {
        row.array_bytes = Some(work.bytes);
        row.stride_bytes = Some(work.stride_bytes);
        row.op = Some(work.op);
        row.walk = Some(work.walk);
        row.huge_pages = Some(work.huge_pages);
    }
    Some(row)
}

/// A quotable figure, and what the file calls it.
struct NamedFigure {
    what: ModernFigure,
    figure: QuotedFigure,
}

/// Returns the quotable figures of a case; the figure of a trial is called `trial`.
fn quoted_figures(case_results: &CaseResults, trial: ModernFigure) -> Vec<NamedFigure> {
    let mut quoted = Vec::new();
    for (quantity, what) in [
        (Quantity::NsPerSwitchAboveSolo, ModernFigure::Switch),
        (Quantity::NsPerHop, ModernFigure::Hop),
        (Quantity::TrialNs, trial),
    ] {
        if let Some(figure) = quoted_figure(case_results, quantity) {
            quoted.push(NamedFigure { what, figure });
        }
    }
    quoted
}

fn quoted_figure(case_results: &CaseResults, quantity: Quantity) -> Option<QuotedFigure> {
    let estimate = case_results.figures.get(&quantity)?.launches().first()?.estimate?;
    estimate.quote_cost().ok()
}

/// Rounds a figure to four significant digits.
fn four_digits(us: f64) -> f64 {
    format!("{us:.3e}").parse().unwrap_or(us)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps are no row of the file.
    #[test]
    fn a_run_without_a_figure_is_not_shared() {
        let text = include_str!("../../../tests/fixtures/response-gaps.jsonl");
        let run = Run::parse(text).unwrap();
        let lines = String::from_utf8(rows(&run).unwrap()).unwrap();
        assert!(lines.lines().last().unwrap().starts_with("machine,cpu,"), "{lines}");
        let error = rows_to_share(&run).unwrap_err().to_string();
        assert!(error.contains("full speed") && error.contains("--budget 12s"), "{error}");
    }

    /// `measure` has a ring of two of `ring`, and one of `cost`.
    #[test]
    fn a_case_of_several_experiments_has_one_row() {
        let text = include_str!("../../../tests/fixtures/measure.jsonl");
        let rows = figure_rows(&Run::parse(text).unwrap()).unwrap();
        assert!(rows.len() > 2, "{rows:?}");
        for (number, row) in rows.iter().enumerate() {
            let twins = rows[..number].iter().filter(|twin| twin.what == row.what);
            assert_eq!(twins.filter(|twin| twin.is_same_case(row)).count(), 0, "{row:?}");
        }
    }
}

//! What stands below a picture: on what, when, and by which plan.

use charts::clean;
use model::run::Run;

/// `AMD EPYC, Linux 6.1, 2026-11-22; ring: 7 cases, 12 rounds, seed 1992`.
pub(crate) fn of_run(run: &Run) -> String {
    let header = &run.header;
    let machine = &header.machine;
    let cpu = machine.cpu.models.known().and_then(|models| models.first()?.name.known());
    let kernel = machine.kernel.release.known();
    let day = header.started.split('T').next().unwrap_or(&header.started);
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    };
    clean(&format!(
        "{}, {}, {day}; {}: {}, {}, seed {}",
        cpu.map_or("unknown CPU", String::as_str),
        kernel.map_or("unknown kernel".to_string(), |release| format!("Linux {release}")),
        header.plan.experiment,
        count(header.plan.cases.len(), "case"),
        count(run.rounds() as usize, "round"),
        header.plan.seed,
    ))
}

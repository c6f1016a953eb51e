//! The columns of the tables that runs are exported as. Each is declared here and nowhere else: its
//! name, the kind and unit of its values, and its meaning. `switchcost help schema columns` prints
//! the declarations, for docs/columns.md and the Python package.
//!
//! | Column of | declared in | filled by |
//! |---|---|---|
//! | cases | [`COLUMNS`] | the function beside the declaration |
//! | cases: exported measures | `analysis::measures` | the measure's own function |
//! | samples | [`COLUMNS`] | `csv` |
//! | commands | [`COLUMNS`] | `programs::run` |
//!
//! Facts of the machine, which Python has as columns too, are declared in `analysis::facts`.

use analysis::measures::{self, ValueKind};
use serde::Serialize;

use ExportedTable::{Cases, Commands, Samples};
use ValueKind::{Boolean, Float, Integer, Integers, Text};

use super::summary::CaseRow;

/// A table that runs are exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExportedTable {
    /// A row for each sample of a ring, and for each quantity of a trial: `--csv`.
    Samples,
    /// A row for each case of a run: `summary-csv`.
    Cases,
    /// A row for each run of a command: `run --csv`.
    Commands,
}

/// Reads the cell of a case; absent where it is not known or does not apply.
pub(crate) type CaseCell = fn(&CaseRow) -> Option<String>;

/// Declaration of a column, which several tables may have.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ColumnDeclaration {
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    /// Empty for counts, shares of one and words.
    pub(crate) unit: &'static str,
    /// Tables that have the column.
    pub(crate) tables: &'static [ExportedTable],
    /// Says what a value is; begins with `ring:` or `trial:` where only these have the column.
    pub(crate) meaning: &'static str,
    /// Fills the column in the table of cases, if that has it.
    #[serde(skip)]
    pub(crate) cell: Option<CaseCell>,
}

impl ColumnDeclaration {
    /// Adds the function that fills the column in the table of cases.
    const fn filled(self, cell: CaseCell) -> Self {
        Self { cell: Some(cell), ..self }
    }
}

const fn column(
    name: &'static str,
    kind: ValueKind,
    unit: &'static str,
    tables: &'static [ExportedTable],
    meaning: &'static str,
) -> ColumnDeclaration {
    ColumnDeclaration { name, kind, unit, tables, meaning, cell: None }
}

/// Returns the text of a cell; absent where the value is not known.
fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// Returns all columns: those of [`COLUMNS`], and one for each exported measure.
pub(crate) fn all() -> Vec<ColumnDeclaration> {
    let mut columns = COLUMNS.to_vec();
    for measure in measures::exported_measures() {
        let (kind, unit) = (measure.unit.value_kind(), measure.unit.name());
        columns.push(column(measure.id, kind, unit, &[Cases], measure.meaning));
        for (id, meaning) in measure.end_ids.into_iter().flatten().zip(MEANINGS_OF_ENDS) {
            columns.push(column(id, kind, unit, &[Cases], meaning));
        }
    }
    columns
}

/// The lower and the upper end of a measure's interval.
const MEANINGS_OF_ENDS: [&str; 2] =
    ["lower end of the measure's 95 % interval", "upper end of the measure's 95 % interval"];

/// Columns in the order of the tables; exported measures follow them.
pub(super) const COLUMNS: &[ColumnDeclaration] = &[
    column("run", Text, "", &[Cases], "id of the run, unique on a host").filled(|row| Some(row.header.run.clone())),
    column("name", Text, "", &[Cases], "the run's name, if one was given").filled(|row| row.header.name.clone()),
    column("host", Text, "", &[Cases], "name of the host").filled(|row| row.header.host.clone()),
    column(
        "experiment",
        Text,
        "",
        &[Samples, Cases, Commands],
        "experiment that the case belongs to",
    ).filled(|row| Some(row.case.experiment.to_string())),
    column("case", Integer, "", &[Samples, Cases], "number of the case in its run").filled(|row| Some(row.case.number.to_string())),
    column("title", Text, "", &[Cases], "the case in words, by what differs within its run").filled(|row| Some(row.case.title.clone())),
    column("members", Integer, "", &[Samples, Cases], "ring: its size; 1 is a solo ring").filled(|row| row.label("members")),
    column("kind", Text, "", &[Samples, Cases], "ring: process or thread").filled(|row| row.label("kind")),
    column("link", Text, "", &[Samples, Cases], "ring: what carries the token").filled(|row| row.label("link")),
    column(
        "work_bytes",
        Integer,
        "bytes",
        &[Samples, Cases],
        "ring: memory that each member touches per hop",
    ).filled(|row| row.label("work")),
    column(
        "stride_bytes",
        Integer,
        "bytes",
        &[Samples, Cases],
        "ring: distance between two touches",
    ).filled(|row| row.label("stride")),
    column("op", Text, "", &[Samples, Cases], "ring: read, write or rmw").filled(|row| row.label("op")),
    column(
        "placement",
        Text,
        "",
        &[Samples, Cases],
        "ring: CPUs of the members, or their relation",
    ).filled(|row| row.label("placement")),
    column("policy", Text, "", &[Samples, Cases], "scheduling policy").filled(|row| row.label("policy")),
    column("state", Text, "", &[Samples, Cases], "ring: registers that each member writes per hop").filled(|row| row.label("state")),
    column(
        "quantity",
        Text,
        "",
        &[Samples, Cases],
        "cases: switch, hop, trial or part; trial: what was counted, its unit at the end of its name",
    ).filled(|row| Some(row.quantity()?.in_words().to_string())),
    column("estimate", Float, "", &[Cases], "the cost; null if it may not be quoted").filled(|row| text(row.quoted())),
    column("low", Float, "", &[Cases], "lower end of its 95 % interval").filled(|row| text(row.estimate()?.low)),
    column("high", Float, "", &[Cases], "upper end of its 95 % interval").filled(|row| text(row.estimate()?.high)),
    column("unit", Text, "", &[Cases], "unit of estimate, low, high and value").filled(|row| row.quantity().map(|quantity| quantity.unit().name().to_string())),
    column("value", Float, "", &[Cases], "what was found, whether it may be quoted or not").filled(|row| text(Some(row.estimate()?.value))),
    column("not_quotable", Text, "", &[Cases], "why it may not be quoted").filled(|row| row.why_not_quotable()),
    column("cycles", Float, "", &[Samples, Cases], "ring: cycles, if events were counted").filled(|row| text(row.quoted_cycles())),
    column("clock_ghz", Float, "GHz", &[Cases], "clock of the core").filled(|row| text(row.clock_ghz())),
    column(
        "elasticity",
        Float,
        "",
        &[Cases],
        "power of the clock's period that the cost follows: 1 core, 0 memory",
    ).filled(|row| text(Some(row.elasticity()?.value))),
    column("elasticity_error", Float, "", &[Cases], "standard error of the elasticity").filled(|row| text(Some(row.elasticity()?.standard_error))),
    column("quotable", Boolean, "", &[Cases], "whether the estimate may be quoted").filled(|row| text(Some(row.quoted().is_some()))),
    column(
        "speed",
        Text,
        "",
        &[Cases],
        "full, few_rounds, contended, not_alone, cpu_time or not_judged",
    ).filled(|row| text(Some(row.estimate()?.speed))),
    column("rounds", Integer, "", &[Cases], "rounds that count").filled(|row| text(Some(row.estimate()?.rounds))),
    column("priority", Integer, "", &[Samples, Cases], "real-time priority").filled(|row| row.priority().map(str::to_string)),
    column(
        "key",
        Text,
        "",
        &[Cases],
        "experiment and settings in one text: unique in a run, the same on all hosts",
    ).filled(|row| Some(row.key.to_string())),
    column(
        "walk",
        Text,
        "",
        &[Samples, Cases],
        "ring: order of the touches: whole, chase or sparse",
    ).filled(|row| row.label("walk")),
    column("huge_pages", Boolean, "", &[Samples, Cases], "ring: whether huge pages were asked for").filled(|row| row.label("huge-pages")),
    column("burden", Text, "", &[Samples, Cases], "ring: what was put on its switches on purpose").filled(|row| row.label("burden")),
    column("call", Text, "", &[Samples, Cases], "trial: what was called").filled(|row| row.label("call")),
    column("primes", Integer, "", &[Samples, Cases], "trial: how many primes were computed").filled(|row| row.label("primes")),
    column("bytes", Integer, "bytes", &[Samples, Cases], "trial: size of a block or working set").filled(|row| row.label("bytes")),
    column("preload", Text, "", &[Samples, Cases], "trial: library that provides malloc").filled(|row| row.label("preload")),
    column("phase", Text, "", &[Samples, Cases], "trial: when the sleeper sleeps").filled(|row| row.label("phase")),
    column("setting", Text, "", &[Samples, Cases], "trial: what was set").filled(|row| row.label("setting")),
    column("environment", Text, "", &[Samples, Cases], "trial: alone or disturbed").filled(|row| row.label("environment")),
    column("noise", Text, "", &[Samples, Cases], "trial: what disturbed it on purpose").filled(|row| row.label("noise")),
    column("load", Text, "", &[Samples, Cases], "trial: idle or busy CPU").filled(|row| row.label("load")),
    column("timer_slack_ns", Integer, "ns", &[Samples, Cases], "trial: timer slack of the sleeper").filled(|row| row.label("timer-slack-ns")),
    column(
        "cpu_latency_us",
        Integer,
        "us",
        &[Samples, Cases],
        "trial: exit latency of idle states that was asked for",
    ).filled(|row| row.label("cpu-latency-us")),
    column(
        "flight",
        Text,
        "",
        &[Samples, Cases],
        "ring: items under way at once, or full; empty where it is one",
    ).filled(|row| row.label("flight")),
    column("rings", Integer, "", &[Samples, Cases], "ring: how many run at the same time, if some case has several").filled(|row| row.label("rings")),
    column("round", Integer, "", &[Samples, Commands], "number of the round"),
    column("sample", Integer, "", &[Samples], "ring: number of the sample in its round"),
    column("hops", Integer, "", &[Samples], "hops of all members"),
    column(
        "elapsed_ns",
        Integer,
        "ns",
        &[Samples],
        "time of the timed laps, or of a trial's measurement",
    ),
    column(
        "user_ns",
        Integer,
        "ns",
        &[Samples, Commands],
        "CPU time in user mode, of all members or the command",
    ),
    column(
        "system_ns",
        Integer,
        "ns",
        &[Samples, Commands],
        "CPU time in the kernel, of all members or the command",
    ),
    column(
        "voluntary",
        Integer,
        "",
        &[Samples, Commands],
        "voluntary switches, of all members or the command",
    ),
    column(
        "involuntary",
        Integer,
        "",
        &[Samples, Commands],
        "involuntary switches, of all members or the command",
    ),
    column(
        "migrations",
        Integer,
        "",
        &[Samples, Commands],
        "migrations to another CPU, of all members or the command",
    ),
    column(
        "minor_faults",
        Integer,
        "",
        &[Samples, Commands],
        "page faults without input, of all members or the command",
    ),
    column(
        "major_faults",
        Integer,
        "",
        &[Samples, Commands],
        "page faults with input, of all members or the command",
    ),
    column("steal_ns", Integer, "ns", &[Samples], "time that the hypervisor took"),
    column("laps", Integer, "", &[Samples], "timed laps"),
    column(
        "cpu_ns",
        Integer,
        "ns",
        &[Samples, Commands],
        "CPU time, of all members or the command",
    ),
    column("setup_ns", Integer, "ns", &[Samples], "time to set the ring up"),
    column("cpus", Text, "", &[Samples], "ring: its CPUs"),
    column("disturbed", Text, "", &[Samples], "what disturbed the sample"),
    column("slice_laps", Integer, "", &[Samples], "ring: laps of a slice"),
    column("slices_ns", Integers, "ns", &[Samples], "ring: time of each slice, in time order"),
    column(
        "latency_quanta_ns",
        Integers,
        "ns",
        &[Samples],
        "ring: time of the loop of dependent operations beside each slice",
    ),
    column(
        "throughput_quanta_ns",
        Integers,
        "ns",
        &[Samples],
        "ring: time of the loop of independent operations beside each slice",
    ),
    column("waited_ns", Integer, "ns", &[Samples], "time waited for a clean core"),
    column("huge_page_bytes", Integer, "bytes", &[Samples], "memory that was on huge pages"),
    column("instructions", Integer, "", &[Samples], "ring: instructions"),
    column(
        "L1-dcache-load-misses",
        Integer,
        "",
        &[Samples],
        "ring: loads that missed the first level's cache",
    ),
    column(
        "LLC-load-misses",
        Integer,
        "",
        &[Samples],
        "ring: loads that missed the last level's cache",
    ),
    column("dTLB-load-misses", Integer, "", &[Samples], "ring: loads that missed the TLB of data"),
    column(
        "iTLB-load-misses",
        Integer,
        "",
        &[Samples],
        "ring: fetches that missed the TLB of instructions",
    ),
    column("context-switches", Integer, "", &[Samples], "ring: switches, as the event counts them"),
    column("page-faults", Integer, "", &[Samples], "ring: page faults, as the event counts them"),
    column("cpu-migrations", Integer, "", &[Samples], "ring: migrations, as the event counts them"),
    column("cpu", Integer, "", &[Samples], "trial: its CPU"),
    column("values", Integer, "", &[Samples], "trial: how many values there are"),
    column("total", Float, "", &[Samples], "trial: their sum, or the count"),
    column("mean", Float, "", &[Samples], "trial: their mean"),
    column("sd", Float, "", &[Samples], "trial: their standard deviation"),
    column("min", Float, "", &[Samples], "trial: the smallest"),
    column("p50", Float, "", &[Samples], "trial: their median"),
    column("p99", Float, "", &[Samples], "trial: their 99th percentile"),
    column("max", Float, "", &[Samples], "trial: the largest"),
    column(
        "command",
        Integer,
        "",
        &[Commands],
        "number of the command on the command line, from 0",
    ),
    column("interrupted", Boolean, "", &[Commands], "whether the run was interrupted"),
    column("exit_code", Integer, "", &[Commands], "empty if a signal ended the command"),
    column("signal", Integer, "", &[Commands], "that ended it; empty if none did"),
    column("real_ns", Integer, "ns", &[Commands], "from its start to the end of the wait"),
    column(
        "max_resident_bytes",
        Integer,
        "bytes",
        &[Commands],
        "largest resident set of one process",
    ),
    column("input_blocks", Integer, "", &[Commands], "blocks read from storage"),
    column("output_blocks", Integer, "", &[Commands], "blocks written to storage"),
    column("run_delay_ns", Integer, "ns", &[Commands], "time in the run queue"),
    column(
        "run_delay_covered_cpu_ns",
        Integer,
        "ns",
        &[Commands],
        "CPU time of the threads whose time in the run queue is known",
    ),
    column("read_call_bytes", Integer, "bytes", &[Commands], "bytes that system calls read"),
    column("write_call_bytes", Integer, "bytes", &[Commands], "bytes that system calls wrote"),
    column("storage_read_bytes", Integer, "bytes", &[Commands], "bytes read from storage"),
    column("storage_write_bytes", Integer, "bytes", &[Commands], "bytes written to storage"),
    column(
        "cancelled_write_bytes",
        Integer,
        "bytes",
        &[Commands],
        "bytes that were written and dropped before they reached storage",
    ),
    column("peak_threads_seen", Integer, "", &[Commands], "most threads at a time, as far as seen"),
    column(
        "at_exec_resident_bytes",
        Integer,
        "bytes",
        &[Commands],
        "resident set just before exec, part of the whole",
    ),
    column(
        "at_exec_minor_faults",
        Integer,
        "",
        &[Commands],
        "page faults without input before exec, part of the whole",
    ),
    column("at_exec_cpu_ns", Integer, "ns", &[Commands], "CPU time before exec, part of the whole"),
    column(
        "orphans_ended",
        Integer,
        "",
        &[Commands],
        "processes that outlived the command and were waited for",
    ),
    column(
        "left_behind",
        Integer,
        "",
        &[Commands],
        "processes that outlived the command and were ended",
    ),
];

/// Returns the unit of the column of this name; empty for counts, and where there is none.
pub(crate) fn unit_of(name: &str) -> &'static str {
    COLUMNS.iter().find(|column| column.name == name).map_or("", |column| column.unit)
}

/// Returns what a value of the column of this name is; empty where there is none.
pub(crate) fn meaning_of(name: &str) -> &'static str {
    COLUMNS.iter().find(|column| column.name == name).map_or("", |column| column.meaning)
}

/// Returns the names of a table's columns, sorted.
#[cfg(test)]
pub(crate) fn names(table: ExportedTable) -> Vec<&'static str> {
    let mut names = Vec::new();
    for column in all() {
        if column.tables.contains(&table) {
            names.push(column.name);
        }
    }
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_is_declared_once_and_says_what_it_is() {
        let mut names: Vec<&str> = all().iter().map(|column| column.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for column in COLUMNS {
            assert!(!column.meaning.is_empty() && !column.tables.is_empty(), "{column:?}");
            assert_eq!(column.tables.contains(&Cases), column.cell.is_some(), "{column:?}");
        }
    }

    /// Python looks kinds and units up by the name alone.
    #[test]
    fn a_fact_that_is_called_like_a_column_has_its_kind_and_unit() {
        let columns = all();
        for fact in analysis::facts::FACTS {
            if let Some(column) = columns.iter().find(|column| column.name == fact.name) {
                assert_eq!((column.kind, column.unit), (fact.kind, fact.unit), "{}", fact.name);
            }
        }
    }
}

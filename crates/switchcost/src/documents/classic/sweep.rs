//! `switchcost classic sweep`: Sloan's whole procedure. For each number of processes it runs the
//! programs that he ran, `getrusage pipeline chars count`, and makes his table and his graph from
//! what getrusage prints.
//!
//! ```text
//! sweep -- starts --> getrusage -- starts --> pipeline 10000 4 -- forks --> 4 processes
//!   ^                     |
//!   `--- standard error --'    19545: total  42800usec     CPU time of the pipeline
//!                              19545: nvcsw  3805          its voluntary switches
//! ```
//!
//! Sloan's projection says what more processes would cost if each switch cost the same: the CPU time
//! of two processes, times half the number of processes. His machines took more than that beyond some
//! number of processes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use analysis::scaling::projected;
use anyhow::{Context, Result};
use charts::{Axis, Figure, PlotStyle, Point, Role, Scale, Series, Unit};
use probe::{placement, spawn_watched};
use rustix::process::Pid;

use super::SweepArgs;
use crate::base::failure::{print_message, usage};
use crate::base::values::Destination;
use crate::engine::interrupt::Interrupt;
use crate::engine::worker_output::WorkerOutput;
use crate::report::machine_line::cpu_and_kernel;
use crate::report::output::columns::Columns;
use crate::report::output::{check_destination, print, write_output};

/// Sloan's own number of laps.
const SLOAN_LAPS: u32 = 1_000_000;

pub(crate) fn run(args: &SweepArgs) -> Result<ExitCode> {
    if let Some(count) = args.counts.iter().find(|count| **count < 2) {
        return Err(usage(format!("--counts {count}: a pipeline has 2 processes or more")));
    }
    if let Some(to) = &args.csv {
        check_destination("--csv", to)?;
    }
    if let Some(cpu) = args.cpu {
        placement::pin(&[cpu]).map_err(|errno| {
            usage(format!("--cpu {cpu}: {errno} (sched_setaffinity; see nproc)"))
        })?;
    }
    let interrupt = Interrupt::watch()?;
    print_for_people(args, &heading(args))?;
    let mut usages = Vec::new();
    let mut has_failed = false;
    for count in &args.counts {
        match measure(&interrupt, args.laps, *count)? {
            None => break,
            Some(Ok(usage)) => {
                usages.push(usage);
                print_for_people(args, &table_row(&usage, pair_cpu_us(&usages)))?;
            }
            Some(Err(why)) => {
                has_failed = true;
                print_message(&format!("error: pipeline {} {count}: {why}", args.laps));
            }
        }
    }
    print_for_people(args, &graph(&usages))?;
    if let Some(to) = &args.csv {
        write_output(&usages_csv(&usages, args.laps)?, to)?;
    }
    if let Some(signal) = interrupt.signal() {
        let asked = args.counts.len();
        let measured = usages.len();
        print_message(&format!(
            "interrupted: {measured} of {asked} numbers of processes are measured"
        ));
        return Ok(ExitCode::from(128 + signal as u8));
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints to standard output, or to standard error if CSV goes to standard output.
fn print_for_people(args: &SweepArgs, text: &str) -> Result<()> {
    match args.csv {
        Some(Destination::Stdout) => print_message(text.trim_end_matches('\n')),
        _ => print(text.as_bytes()).context("cannot print the table")?,
    }
    Ok(())
}

/// Returns the CPU time of two processes in microseconds, from which Sloan projects.
fn pair_cpu_us(usages: &[PipelineUsage]) -> Option<f64> {
    usages.iter().find(|usage| usage.processes == 2).map(|usage| usage.cpu_us as f64)
}

fn heading(args: &SweepArgs) -> String {
    let machine = cpu_and_kernel(&probe::machine::read(Path::new("/")));
    let place = match args.cpu {
        Some(cpu) => format!("all on CPU {cpu}"),
        None => "on whichever CPUs the scheduler takes".to_string(),
    };
    let laps = args.laps;
    let sloans = if laps == SLOAN_LAPS { String::new() } else { format!(" (Sloan: {SLOAN_LAPS})") };
    format!("{machine}\n{laps} iterations{sloans}, {place}\n\n{TABLE_HEAD}")
}

const TABLE_HEAD: &str = concat!(
    "                Real        CPU       User     System  Projected   Switches\n",
    "Processes    Seconds    Seconds    Seconds    Seconds    Seconds    per hop\n",
);

/// Returns a row of Sloan's table; the projection is a dash without the CPU time of two processes.
fn table_row(usage: &PipelineUsage, pair_cpu_us: Option<f64>) -> String {
    let processes = usage.processes;
    let times = [usage.real_us, usage.cpu_us, usage.user_us, usage.system_us];
    let times = times.map(|us| seconds_cell(us as f64)).join(" ");
    let projected = match pair_cpu_us {
        Some(us) => seconds_cell(projected(us, processes)),
        None => format!("{:>10}", "-"),
    };
    format!("{processes:>9} {times} {projected} {:>10.3}\n", usage.switches_per_hop())
}

fn seconds_cell(us: f64) -> String {
    format!("{:>10.3}", us / 1e6)
}

/// Returns Sloan's graph, CPU time against processes with the projected line, in 80 columns, and the
/// text that explains the table. Empty with fewer than two sizes and without CPU time.
fn graph(usages: &[PipelineUsage]) -> String {
    let Some(largest) = usages.iter().map(|usage| usage.processes).max() else {
        return String::new();
    };
    if usages.len() < 2 || usages.iter().all(|usage| usage.cpu_us == 0) {
        return String::new();
    }
    let mut measured = Vec::new();
    for usage in usages {
        measured.push(graph_point(usage.processes, usage.cpu_us as f64));
    }
    let mut line = Vec::new();
    if let Some(us) = pair_cpu_us(usages) {
        line.extend([0, largest].map(|count| graph_point(count, projected(us, count))));
    }
    let x = Axis::new("Processes", Unit::Count, Scale::Linear);
    let y = Axis::new("CPU time", Unit::Nanoseconds, Scale::Linear);
    let figure = Figure::new("sweep", "CPU Seconds", x, y).with_series([
        Series::new("measured", 0, Role::Measured, measured),
        Series::new("projected", 0, Role::Projected, line),
    ]);
    let style = PlotStyle { columns: 80, colour: false, unicode: false };
    let drawn = match figure {
        Some(figure) => charts::render_text(&figure, &[], &style),
        None => String::new(),
    };
    format!(
        "\n{drawn}\nprojected: CPU(2) x processes / 2\n\
         A switch is one that the kernel counted; hops are iterations x processes.\n\
         One run each, start and end of the processes included. For intervals:\n\
         switchcost ring\n"
    )
}

fn graph_point(processes: u32, cpu_us: f64) -> Point {
    Point::bare(processes.into(), 1000.0 * cpu_us)
}

/// Returns a row for each number of processes as CSV.
fn usages_csv(usages: &[PipelineUsage], laps: u32) -> Result<Vec<u8>> {
    let pair_cpu_us = pair_cpu_us(usages);
    Columns::<&PipelineUsage>::new()
        .right("processes", |usage| usage.processes)
        .right("laps", |_| laps)
        .right("real_us", |usage| usage.real_us)
        .right("cpu_us", |usage| usage.cpu_us)
        .right("user_us", |usage| usage.user_us)
        .right("system_us", |usage| usage.system_us)
        .or_empty("projected_us", |usage| Some(projected(pair_cpu_us?, usage.processes).round()))
        .right("voluntary", |usage| usage.voluntary)
        .right("involuntary", |usage| usage.involuntary)
        .csv(usages)
}

/// This very program, also when its file has been replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// The resources that getrusage printed for one pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PipelineUsage {
    processes: u32,
    hops: u64,
    real_us: u64,
    cpu_us: u64,
    user_us: u64,
    system_us: u64,
    voluntary: u64,
    involuntary: u64,
}

impl PipelineUsage {
    fn switches_per_hop(&self) -> f64 {
        (self.voluntary + self.involuntary) as f64 / self.hops as f64
    }
}

/// Runs a pipeline to its end; it is ended when this process ends. Absent if the user interrupted it;
/// the inner error says why the pipeline gave no figures.
fn measure(
    interrupt: &Interrupt,
    laps: u32,
    processes: u32,
) -> Result<Option<Result<PipelineUsage, String>>> {
    let mut command = Command::new(PROGRAM);
    command
        .args(["classic", "getrusage", "--parent", &std::process::id().to_string()])
        .args([PROGRAM, "classic", "pipeline", &laps.to_string(), &processes.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C comes to this program alone, which then ends the child.
        .process_group(0);
    let started = interrupt.start(
        || spawn_watched(&mut command),
        |child: &mut Child| (Pid::from_child(child), child.stderr.take()),
    );
    let (pid, stderr) = match started {
        Err(_) if interrupt.signal().is_some() => return Ok(None),
        // The other numbers of processes can still be measured.
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            return Ok(Some(Err(error.to_string())));
        }
        started => started.context("cannot start getrusage (/proc/self/exe)")?,
    };
    let stderr = stderr.context("getrusage has no standard error")?;
    let lines: Vec<Vec<u8>> = WorkerOutput::watch(interrupt, pid, stderr, Duration::MAX).collect();
    let output = String::from_utf8_lossy(&lines.join(&b'\n')).into_owned();
    let status = interrupt.wait_for_worker().context("getrusage")?;
    if interrupt.signal().is_some() {
        return Ok(None);
    }
    if !status.success() {
        return Ok(Some(Err(pipeline_error(&output, &status.to_string()))));
    }
    let usage = parse_usage(&output, laps, processes);
    Ok(Some(usage.ok_or_else(|| format!("getrusage printed no figures: {output:?}"))))
}

/// Reads the lines of getrusage, `PID: name  value`; absent if one is missing.
fn parse_usage(output: &str, laps: u32, processes: u32) -> Option<PipelineUsage> {
    let fields: BTreeMap<&str, &str> = output.lines().filter_map(parse_field).collect();
    Some(PipelineUsage {
        processes,
        hops: u64::from(laps) * u64::from(processes),
        real_us: number(&fields, "rtime")?,
        cpu_us: number(&fields, "total")?,
        user_us: number(&fields, "utime")?,
        system_us: number(&fields, "stime")?,
        voluntary: number(&fields, "nvcsw")?,
        involuntary: number(&fields, "nivcsw")?,
    })
}

fn number(fields: &BTreeMap<&str, &str>, name: &str) -> Option<u64> {
    fields.get(name)?.trim_end_matches("usec").parse().ok()
}

/// Returns name and value of a line of getrusage; absent for a line of another program.
fn parse_field(line: &str) -> Option<(&str, &str)> {
    let (pid, field) = line.split_once(": ")?;
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    let (name, value) = field.split_once(' ')?;
    if is_pid { Some((name, value.trim())) } else { None }
}

/// Returns what pipeline itself printed, which are the lines that are not getrusage's, and how it
/// ended.
fn pipeline_error(output: &str, status: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| parse_field(line).is_none()).collect();
    let hint = if lines.iter().any(|line| line.starts_with("fork:")) {
        " (fewer --counts; or more processes: ulimit -u, the pids control group)"
    } else {
        ""
    };
    let printed = if lines.is_empty() { "no output".to_string() } else { lines.join("; ") };
    format!("{printed}{hint}; {status}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(processes: u32, cpu_us: u64) -> PipelineUsage {
        PipelineUsage {
            processes,
            hops: 100 * u64::from(processes),
            real_us: cpu_us + 1_000,
            cpu_us,
            user_us: cpu_us / 10,
            system_us: cpu_us - cpu_us / 10,
            voluntary: 125 * u64::from(processes),
            involuntary: 0,
        }
    }

    #[test]
    fn the_columns_are_above_their_figures_and_within_80() {
        let text = TABLE_HEAD.to_string() + &table_row(&usage(2, 1), None);
        let ends = |line: &str| -> Vec<usize> {
            let is_end = |(at, _): &(usize, char)| {
                !line[*at..].starts_with(' ')
                    && line[at + 1..].chars().next().is_none_or(|c| c == ' ')
            };
            line.char_indices().filter(is_end).map(|(at, _)| at).collect()
        };
        let all: Vec<Vec<usize>> = text.lines().map(ends).collect();
        assert!(all[0].iter().all(|end| *end < 80 && all[2].contains(end)), "{text}");
        assert!(all[2].iter().all(|end| *end == 8 || all[0].contains(end)), "{text}");
    }

    /// The Data General's line of four: 2786 s of CPU time where 2192 were projected from 1096.
    #[test]
    fn a_row_has_sloans_columns() {
        let usages = [usage(2, 1_096_000_000), usage(4, 2_786_000_000)];
        assert_eq!(
            table_row(&usages[1], pair_cpu_us(&usages)),
            "        4   2786.001   2786.000    278.600   2507.400   2192.000      1.250\n"
        );
        assert!(table_row(&usages[1], None).contains("          -      1.250"));
    }

    #[test]
    fn machine_readable_rows_leave_empty_what_is_not_known() {
        let csv = String::from_utf8(usages_csv(&[usage(4, 700)], 100).unwrap()).unwrap();
        assert!(csv.ends_with("\n4,100,1700,700,70,630,,500,0\n"), "{csv}");
        let csv =
            String::from_utf8(usages_csv(&[usage(2, 300), usage(4, 700)], 100).unwrap()).unwrap();
        assert!(csv.ends_with("\n4,100,1700,700,70,630,600,500,0\n"), "{csv}");
        // Without rows there is still the line of names.
        let csv = String::from_utf8(usages_csv(&[], 100).unwrap()).unwrap();
        assert!(csv.starts_with("processes,laps,") && csv.lines().count() == 1, "{csv}");
    }

    const PRINTED: &str = "19545: start      Sun Nov 22 03:12:14 2026
19545: stop          Sun Nov 22 03:12:14 2026
19545: exit  0
19545: rtime          46857usec
19545: utime          0usec
19545: stime          42800usec
19545: total          42800usec
19545: maxrss          1112
19545: nvcsw          3805
19545: nivcsw          1570
";

    #[test]
    fn what_getrusage_prints_is_read() {
        let expected = PipelineUsage {
            processes: 4,
            hops: 4_000,
            real_us: 46_857,
            cpu_us: 42_800,
            user_us: 0,
            system_us: 42_800,
            voluntary: 3_805,
            involuntary: 1_570,
        };
        let usage = parse_usage(PRINTED, 1_000, 4).unwrap();
        assert_eq!(usage, expected);
        assert_eq!(usage.switches_per_hop(), 5_375.0 / 4_000.0);
    }

    #[test]
    fn a_missing_line_is_no_zero() {
        for line in PRINTED.lines().filter(|line| line.contains("csw") || line.contains("total")) {
            assert_eq!(parse_usage(&PRINTED.replace(line, ""), 1_000, 4), None, "{line}");
        }
    }

    #[test]
    fn only_the_lines_of_the_pipeline_are_its_error() {
        let output = format!("fork: Resource temporarily unavailable\n{PRINTED}");
        let error = pipeline_error(&output, "exit status: 6");
        assert!(error.starts_with("fork: Resource temporarily unavailable (fewer --counts"));
        assert!(error.ends_with("; exit status: 6"), "{error}");
    }

    /// The Sun-4/280, whose knee lies at sixteen processes.
    #[test]
    fn the_graph_is_80_columns_wide_and_has_all_points_and_the_line() {
        let table = [(2, 873), (4, 1835), (16, 21874), (32, 50551), (64, 96545)];
        let usages = table.map(|(processes, cpu_s)| usage(processes, cpu_s * 1_000_000));
        let text = graph(&usages);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.starts_with("\nCPU Seconds\n") && text.contains("Processes"), "{text}");
        assert!(text.contains("measured") && text.contains("projected"), "{text}");
        assert!(!graph(&usages[1..]).contains("projected  "), "{text}");
    }

    #[test]
    fn one_point_is_no_graph() {
        assert_eq!(graph(&[usage(2, 1)]), "");
        assert_eq!(graph(&[]), "");
        let idle = PipelineUsage { cpu_us: 0, ..usage(2, 1) };
        assert_eq!(graph(&[idle, idle]), "");
    }
}

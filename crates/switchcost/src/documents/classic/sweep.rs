//! `switchcost classic sweep`: Sloan's whole procedure. Each number of processes is a run of the
//! programs that he ran, `getrusage pipeline chars count`; what getrusage prints becomes his table
//! and his graph.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use analysis::scaling::projected;
use anyhow::{Context, Result};
use charts::{Axis, Figure, PlotStyle, Role, Scale, Series, Unit};
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
        let why = |errno| usage(format!("--cpu {cpu}: {errno} (sched_setaffinity; see nproc)"));
        placement::pin(&[cpu]).map_err(why)?;
    }
    let interrupt = Interrupt::watch()?;
    tell(args, &heading(args))?;
    let mut points = Vec::new();
    let mut failed = false;
    for count in &args.counts {
        match measure(&interrupt, args.laps, *count)? {
            None => break,
            Some(Ok(point)) => {
                points.push(point);
                tell(args, &row(&point, of_two(&points)))?;
            }
            Some(Err(why)) => {
                failed = true;
                print_message(&format!("error: pipeline {} {count}: {why}", args.laps));
            }
        }
    }
    tell(args, &end(&points))?;
    if let Some(to) = &args.csv {
        write_output(&rows(&points, args.laps)?, to)?;
    }
    if let Some(signal) = interrupt.signal() {
        let all = args.counts.len();
        print_message(&format!(
            "interrupted: {} of {all} numbers of processes are measured",
            points.len()
        ));
        return Ok(ExitCode::from(128 + signal as u8));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Standard output belongs to machine-readable output where that goes there.
fn tell(args: &SweepArgs, text: &str) -> Result<()> {
    match args.csv {
        Some(Destination::Stdout) => print_message(text.trim_end_matches('\n')),
        _ => print(text.as_bytes()).context("cannot print the table")?,
    }
    Ok(())
}

/// CPU time of the ring of two, in microseconds: what is projected from.
fn of_two(points: &[Point]) -> Option<f64> {
    points.iter().find(|point| point.processes == 2).map(|point| point.cpu_us as f64)
}

fn heading(args: &SweepArgs) -> String {
    let machine = cpu_and_kernel(&probe::machine::read(Path::new("/")));
    let place = match args.cpu {
        Some(cpu) => format!("all on CPU {cpu}"),
        None => "on whichever CPUs the scheduler takes".to_string(),
    };
    let laps = args.laps;
    let his = if laps == SLOAN_LAPS { String::new() } else { format!(" (Sloan: {SLOAN_LAPS})") };
    format!("{machine}\n{laps} iterations{his}, {place}\n\n{COLUMNS}")
}

const COLUMNS: &str = concat!(
    "                Real        CPU       User     System  Projected   Switches\n",
    "Processes    Seconds    Seconds    Seconds    Seconds    Seconds    per hop\n",
);

fn row(point: &Point, cpu_of_two_us: Option<f64>) -> String {
    let Point { processes, real_us, cpu_us, user_us, system_us, .. } = *point;
    let seconds = |us: f64| format!("{:>10.3}", us / 1e6);
    let times = [real_us, cpu_us, user_us, system_us].map(|us| seconds(us as f64)).join(" ");
    let projected = cpu_of_two_us.map(|us| seconds(projected(us, processes)));
    let projected = projected.unwrap_or_else(|| format!("{:>10}", "-"));
    format!("{processes:>9} {times} {projected} {:>10.3}\n", point.switches_per_hop())
}

/// Sloan's graph, CPU time against processes with the projected line, in 80 columns; and what to
/// read it by.
fn end(points: &[Point]) -> String {
    let Some(largest) = points.iter().map(|point| point.processes).max() else {
        return String::new();
    };
    if points.len() < 2 || points.iter().all(|point| point.cpu_us == 0) {
        return String::new();
    }
    let at = |processes: u32, cpu_us: f64| charts::Point::bare(processes.into(), 1000.0 * cpu_us);
    let measured = points.iter().map(|point| at(point.processes, point.cpu_us as f64)).collect();
    let line = |us: f64| [0, largest].map(|count| at(count, projected(us, count))).to_vec();
    let x = Axis::new("Processes", Unit::Count, Scale::Linear);
    let y = Axis::new("CPU time", Unit::Nanoseconds, Scale::Linear);
    let series = [
        Series::new("measured", 0, Role::Measured, measured),
        Series::new("projected", 0, Role::Projected, of_two(points).map_or(Vec::new(), line)),
    ];
    let figure = Figure::new("sweep", "CPU Seconds", x, y).with_series(series);
    let look = PlotStyle { columns: 80, colour: false, unicode: false };
    let drawn = figure.map_or(String::new(), |figure| charts::render_text(&figure, &[], &look));
    format!(
        "\n{drawn}\nprojected: CPU(2) x processes / 2\n\
         A switch is one that the kernel counted; hops are iterations x processes.\n\
         One run each, start and end of the processes included. For intervals:\n\
         switchcost ring\n"
    )
}

fn rows(points: &[Point], laps: u32) -> Result<Vec<u8>> {
    let of_two = of_two(points);
    Columns::<&Point>::new()
        .right("processes", |of| of.processes)
        .right("laps", |_| laps)
        .right("real_us", |of| of.real_us)
        .right("cpu_us", |of| of.cpu_us)
        .right("user_us", |of| of.user_us)
        .right("system_us", |of| of.system_us)
        .or_empty("projected_us", |of| Some(projected(of_two?, of.processes).round()))
        .right("voluntary", |of| of.voluntary)
        .right("involuntary", |of| of.involuntary)
        .csv(points)
}

/// This very program, also when its file has been replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// What getrusage said of one pipeline. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    processes: u32,
    hops: u64,
    real_us: u64,
    cpu_us: u64,
    user_us: u64,
    system_us: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Point {
    fn switches_per_hop(&self) -> f64 {
        (self.voluntary + self.involuntary) as f64 / self.hops as f64
    }
}

/// Runs a pipeline to its end, which goes when this process goes. None where somebody asked to
/// stop; the inner error is why it has no figures.
fn measure(
    interrupt: &Interrupt,
    laps: u32,
    processes: u32,
) -> Result<Option<Result<Point, String>>> {
    let mut command = Command::new(PROGRAM);
    command
        .args(["classic", "getrusage", "--parent", &std::process::id().to_string()])
        .args([PROGRAM, "classic", "pipeline", &laps.to_string(), &processes.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C comes to this program alone, which then ends the child.
        .process_group(0);
    let taken = |child: &mut Child| (Pid::from_child(child), child.stderr.take());
    let (pid, stderr) = match interrupt.start(|| spawn_watched(&mut command), taken) {
        Err(_) if interrupt.signal().is_some() => return Ok(None),
        // The others go on.
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            return Ok(Some(Err(error.to_string())));
        }
        started => started.context("cannot start getrusage (/proc/self/exe)")?,
    };
    let stderr = stderr.context("getrusage has no standard error")?;
    let lines: Vec<Vec<u8>> = WorkerOutput::watch(interrupt, pid, stderr, Duration::MAX).collect();
    let said = String::from_utf8_lossy(&lines.join(&b'\n')).into_owned();
    let status = interrupt.wait_for_worker().context("getrusage")?;
    if interrupt.signal().is_some() {
        return Ok(None);
    }
    Ok(Some(match status.success() {
        true => parse(&said, laps, processes)
            .ok_or_else(|| format!("getrusage printed no figures: {said:?}")),
        false => Err(complaint(&said, &status.to_string())),
    }))
}

/// Reads the lines `PID: name  value`.
fn parse(said: &str, laps: u32, processes: u32) -> Option<Point> {
    let fields: BTreeMap<&str, &str> = said.lines().filter_map(field).collect();
    let number = |name: &str| fields.get(name)?.trim_end_matches("usec").parse::<u64>().ok();
    Some(Point {
        processes,
        hops: u64::from(laps) * u64::from(processes),
        real_us: number("rtime")?,
        cpu_us: number("total")?,
        user_us: number("utime")?,
        system_us: number("stime")?,
        voluntary: number("nvcsw")?,
        involuntary: number("nivcsw")?,
    })
}

fn field(line: &str) -> Option<(&str, &str)> {
    let (pid, rest) = line.split_once(": ")?;
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    let (name, value) = rest.split_once(' ')?;
    is_pid.then_some((name, value.trim()))
}

/// What pipeline itself said, which is what is not getrusage's.
fn complaint(said: &str, status: &str) -> String {
    let own: Vec<&str> = said.lines().filter(|line| field(line).is_none()).collect();
    let hint = match own.iter().any(|line| line.starts_with("fork:")) {
        true => " (fewer --counts; or more processes: ulimit -u, the pids control group)",
        false => "",
    };
    format!("{}{hint}; {status}", if own.is_empty() { "no output".into() } else { own.join("; ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(processes: u32, cpu_us: u64) -> Point {
        Point {
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
        let text = COLUMNS.to_string() + &row(&point(2, 1), None);
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
        let points = [point(2, 1_096_000_000), point(4, 2_786_000_000)];
        assert_eq!(
            row(&points[1], of_two(&points)),
            "        4   2786.001   2786.000    278.600   2507.400   2192.000      1.250\n"
        );
        assert!(row(&points[1], None).contains("          -      1.250"));
    }

    #[test]
    fn machine_readable_rows_leave_empty_what_is_not_known() {
        let csv = String::from_utf8(rows(&[point(4, 700)], 100).unwrap()).unwrap();
        assert!(csv.ends_with("\n4,100,1700,700,70,630,,500,0\n"), "{csv}");
        let csv = String::from_utf8(rows(&[point(2, 300), point(4, 700)], 100).unwrap()).unwrap();
        assert!(csv.ends_with("\n4,100,1700,700,70,630,600,500,0\n"), "{csv}");
        // Without rows there is still the line of names.
        let csv = String::from_utf8(rows(&[], 100).unwrap()).unwrap();
        assert!(csv.starts_with("processes,laps,") && csv.lines().count() == 1, "{csv}");
    }

    const SAID: &str = "19545: start      Sun Nov 22 03:12:14 2026
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
        let expected = Point {
            processes: 4,
            hops: 4_000,
            real_us: 46_857,
            cpu_us: 42_800,
            user_us: 0,
            system_us: 42_800,
            voluntary: 3_805,
            involuntary: 1_570,
        };
        let point = parse(SAID, 1_000, 4).unwrap();
        assert_eq!(point, expected);
        assert_eq!(point.switches_per_hop(), 5_375.0 / 4_000.0);
    }

    #[test]
    fn a_missing_line_is_no_zero() {
        for line in SAID.lines().filter(|line| line.contains("csw") || line.contains("total")) {
            assert_eq!(parse(&SAID.replace(line, ""), 1_000, 4), None, "{line}");
        }
    }

    #[test]
    fn only_the_pipelines_own_words_are_handed_on() {
        let said = format!("fork: Resource temporarily unavailable\n{SAID}");
        let complaint = complaint(&said, "exit status: 6");
        assert!(complaint.starts_with("fork: Resource temporarily unavailable (fewer --counts"));
        assert!(complaint.ends_with("; exit status: 6"), "{complaint}");
    }

    /// The Sun-4/280, whose knee lies at sixteen processes.
    #[test]
    fn the_graph_is_80_columns_wide_and_has_all_points_and_the_line() {
        let table = [(2, 873), (4, 1835), (16, 21874), (32, 50551), (64, 96545)];
        let points = table.map(|(processes, cpu_s)| point(processes, cpu_s * 1_000_000));
        let text = end(&points);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.starts_with("\nCPU Seconds\n") && text.contains("Processes"), "{text}");
        assert!(text.contains("measured") && text.contains("projected"), "{text}");
        assert!(!end(&points[1..]).contains("projected  "), "{text}");
    }

    #[test]
    fn one_point_is_no_graph() {
        assert_eq!(end(&[point(2, 1)]), "");
        assert_eq!(end(&[]), "");
        let idle = Point { cpu_us: 0, ..point(2, 1) };
        assert_eq!(end(&[idle, idle]), "");
    }
}

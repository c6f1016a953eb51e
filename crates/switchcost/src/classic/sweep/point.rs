//! One number of processes: `getrusage pipeline`, started and read.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};

use crate::interrupt::Interrupt;

/// This very program, also when its file has been replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// What getrusage said of one pipeline. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) processes: u32,
    pub(super) hops: u64,
    pub(super) real_us: u64,
    pub(super) cpu_us: u64,
    pub(super) user_us: u64,
    pub(super) system_us: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
}

impl Point {
    pub(super) fn switches_per_hop(&self) -> f64 {
        (self.voluntary + self.involuntary) as f64 / self.hops as f64
    }
}

pub(super) enum Outcome {
    Measured(Point),
    Interrupted,
    /// In words.
    Failed(String),
}

/// Runs it to its end. It goes when this process goes.
pub(super) fn measure(interrupt: &Interrupt, laps: u32, processes: u32) -> Result<Outcome> {
    let mut stderr = {
        let mut slot = interrupt.worker();
        // With the lock held, either a signal is seen here or the child is seen there.
        if interrupt.signal().is_some() {
            return Ok(Outcome::Interrupted);
        }
        let mut child = Command::new(PROGRAM)
            .args(["classic", "getrusage", "--parent", &std::process::id().to_string()])
            .args([PROGRAM, "classic", "pipeline", &laps.to_string(), &processes.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C comes to this program alone, which then ends the child.
            .process_group(0)
            .spawn()
            .context("cannot start getrusage (/proc/self/exe)")?;
        let stderr = child.stderr.take();
        *slot = Some(child);
        stderr.context("getrusage has no standard error")?
    };
    let mut said = String::new();
    let read = stderr.read_to_string(&mut said);
    // The lock is not kept while waiting: the thread that waits for signals needs it.
    let child = interrupt.worker().take();
    let status = child.ok_or_else(|| anyhow!("getrusage is gone"))?.wait().context("wait4")?;
    if interrupt.signal().is_some() {
        return Ok(Outcome::Interrupted);
    }
    read.context("cannot read what getrusage says")?;
    Ok(match (status.success(), parse(&said, laps, processes)) {
        (true, Some(point)) => Outcome::Measured(point),
        (true, None) => Outcome::Failed(format!("getrusage said nothing of use: {said:?}")),
        (false, _) => Outcome::Failed(complaint(&said, &status.to_string())),
    })
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
    format!("{}{hint}; {status}", if own.is_empty() { "no word".into() } else { own.join("; ") })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

//! A program at its work, alone or beside a neighbour that preempts it.

mod neighbour;
mod process;

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{self as programs, ExitStatus, Stdio};

use model::trial::Case;
use model::trial::command::{
    CPU_NS, Command, DONE, LATENCY_QUANTUM_NS, LOOKS, Neighbour, PREEMPTIONS, QUANTUM_RATIO,
    REAL_NS, Subject, TIMER_INTERRUPTS, WAITS, WAKES,
};
use rustix::io::Errno;

use super::harness::{TrialError, TrialOutcome, check_alive};
use crate::placement;
use crate::sys::{
    ChildEnd, CpuTimer, QuantumTimes, at_fixed_addresses, monotonic_raw_ns, that_ends_with_us,
    wait_for,
};
use neighbour::RunningNeighbours;

/// What one sample is taken of.
struct CommandRuns {
    /// CPU time and time of each run, or of the window, in nanoseconds.
    runs: Vec<[u64; 2]>,
    /// What was done.
    done: i64,
    preemptions: i64,
    waits: i64,
}

/// Runs the command `runs` times, and `TIMES_ALONE` as often where it is alone; or looks at the
/// process for a window, or for as many.
pub(super) fn run(
    case: &Case,
    command: &Command,
    round: u32,
    runs: u32,
) -> Result<TrialOutcome, TrialError> {
    // What is measured has the CPUs; this process waits for it there, and looks from elsewhere.
    let own: &[u32] = match (&command.subject, command.away.as_ref()) {
        (Subject::Process { .. }, Some(away)) => std::slice::from_ref(away),
        _ => &command.cpus,
    };
    placement::pin(own).map_err(TrialError::at("sched_setaffinity of the command"))?;
    let mut neighbours = RunningNeighbours::start(command, case.policy, round)?;
    let has_timer = command.neighbour == Neighbour::Elsewhere && command.timer;
    let timed = command.cpus.iter().filter(|_| has_timer);
    let period_ns = 1_000_000_000 / u64::from(command.rate_hz.max(1));
    let timers: Vec<CpuTimer> = timed
        .map(|cpu| CpuTimer::open(*cpu, period_ns).map_err(TrialError::at("perf_event_open")))
        .collect::<Result<_, TrialError>>()?;
    let looks = neighbours.looks.clone();
    let (woken_before, looked_before) = (looks.wakes(), looks.quanta());
    let preempted_before = looks.preemptions();
    let start_ns = monotonic_raw_ns();
    let taken = match &command.subject {
        Subject::Command(words) => of_command(words, runs.saturating_mul(command.times()))?,
        Subject::Process { has_children, window_ns, progress, .. } => {
            let window_ns = window_ns.saturating_mul(command.times().into());
            process::look(&command.subject.pids(), *has_children, window_ns, progress)?
        }
    };
    let real_ns = monotonic_raw_ns() - start_ns;
    let (woken, looked) = (looks.wakes().wrapping_sub(woken_before), looks.quanta());
    let preempted = looks.preemptions().wrapping_sub(preempted_before);
    drop(timers);
    check_alive("neighbour", &mut neighbours.processes)?;
    let mut outcome = TrialOutcome { elapsed_ns: Some(real_ns), ..TrialOutcome::default() };
    let of = |which: usize| {
        taken.runs.iter().map(move |run| i64::try_from(run[which]).unwrap_or(i64::MAX))
    };
    outcome.tally(CPU_NS, of(0));
    outcome.tally(REAL_NS, of(1));
    outcome.count(DONE, taken.done);
    outcome.count(PREEMPTIONS, taken.preemptions);
    outcome.count(WAITS, taken.waits);
    if command.neighbour != Neighbour::Nobody {
        outcome.count(WAKES, woken.into());
    }
    outcome.count(LOOKS, preempted.into());
    if looked > looked_before {
        let quanta = looks.between(looked_before, looked);
        let latency_ns = quanta.iter().map(|times| times.latency_ns as i64);
        outcome.tally(LATENCY_QUANTUM_NS, latency_ns);
        outcome.tally(QUANTUM_RATIO, quanta.iter().map(ratio_per_mille));
    }
    if has_timer {
        // On a CPU that others use, too, only some of them interrupt the program.
        let fired = taken.runs.iter().map(|run| run[0]).sum::<u64>() / period_ns;
        outcome.count(TIMER_INTERRUPTS, i64::try_from(fired).unwrap_or(i64::MAX));
    }
    Ok(outcome)
}

/// Whether a command's addresses can be the same in every run.
pub fn check_fixed_addresses() -> Result<(), Errno> {
    crate::sys::check_fixed_addresses()
}

/// How often a timer may interrupt a CPU: beyond the kernel's limit on samples some are left out.
pub fn most_timer_hz() -> u32 {
    let limit = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    let limit = limit.ok().and_then(|text| text.trim().parse::<u32>().ok());
    limit.map_or(u32::MAX, |hz| hz / 2).max(1)
}

/// Whether a timer may interrupt a CPU without waking anybody.
pub fn check_timer(cpu: u32) -> Result<(), Errno> {
    CpuTimer::open(cpu, 1_000_000_000).map(drop)
}

/// Returns the ratio of the throughput-bound to the latency-bound loop in thousandths.
fn ratio_per_mille(times: &QuantumTimes) -> i64 {
    1000 * times.throughput_ns as i64 / times.latency_ns as i64
}

fn of_command(words: &[String], runs: u32) -> Result<CommandRuns, TrialError> {
    let mut taken = CommandRuns { runs: Vec::new(), done: runs.into(), preemptions: 0, waits: 0 };
    for _ in 0..runs {
        let start_ns = monotonic_raw_ns();
        let end = end_of(words, Stdio::null)?;
        let real_ns = monotonic_raw_ns() - start_ns;
        if end.status != 0 {
            return Err(TrialError(format!("the command failed: {}", how(end.status))));
        }
        taken.runs.push([end.usage.total_ns(), real_ns]);
        taken.preemptions += end.usage.0.ru_nivcsw;
        taken.waits += end.usage.0.ru_nvcsw;
    }
    Ok(taken)
}

/// Runs a command once, with its messages on standard error: how long that takes, in nanoseconds.
pub fn try_command(words: &[String]) -> Result<u64, String> {
    let start_ns = monotonic_raw_ns();
    let end = end_of(words, Stdio::inherit).map_err(|error| error.0)?;
    match end.status {
        0 => Ok(monotonic_raw_ns() - start_ns),
        _ => Err(how(end.status)),
    }
}

/// `exit status: 1`, `signal: 9 (SIGKILL)`.
fn how(status: i32) -> String {
    ExitStatus::from_raw(status).to_string()
}

/// Runs the command to its end, where this process may run. Its streams are /dev/null, but for
/// standard error, and it ends with this process. Its addresses are the same in every run: what
/// differs by them would scatter more than a preemption costs.
fn end_of(words: &[String], errors: fn() -> Stdio) -> Result<ChildEnd, TrialError> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| TrialError("the command has no words".to_string()))?;
    let mut command = programs::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors());
    that_ends_with_us(&mut command);
    at_fixed_addresses(&mut command);
    let cannot = |error: io::Error| TrialError(format!("cannot run {program}: {error}"));
    let child = command.spawn().map_err(cannot)?;
    wait_for(child.id() as i32).map_err(TrialError::at("wait4"))
}

/// Asks all that a sample takes of a process, once.
pub fn check_process(of: &Command) -> Result<(), String> {
    let Subject::Process { has_children, progress, .. } = &of.subject else { return Ok(()) };
    process::check(&of.subject.pids(), *has_children, progress)
}

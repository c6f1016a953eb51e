//! A whole program, alone or beside a neighbour that preempts it: a command that is run again and
//! again, or a process that runs already and is watched for a while.

mod neighbour;
mod process;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{self as programs, ExitStatus, Stdio};

use rundata::trial::TrialCase;
use rundata::trial::command::{
    CPU_NS, CommandSubject, CommandTrial, DONE, LATENCY_QUANTUM_NS, LOOKS, NeighbourKind,
    PREEMPTIONS, QUANTUM_RATIO, REAL_NS, TIMER_INTERRUPTS, WAITS, WAKES,
};
use rustix::io::Errno;

use super::harness::{TrialError, TrialOutcome, check_alive};
use crate::placement;
use crate::sys::{
    ChildEnd, CpuTimer, QuantumTimes, end_with_this_process, fix_addresses, monotonic_raw_ns,
    wait_for,
};
use neighbour::RunningNeighbours;

/// Times of a run, in nanoseconds.
struct RunTimes {
    cpu_ns: u64,
    real_ns: u64,
}

/// Counts of one sample.
struct CommandRuns {
    /// Times of each run of the command, or of the window.
    runs: Vec<RunTimes>,
    /// Runs of the command, or the progress of the process.
    done: i64,
    preemptions: i64,
    waits: i64,
}

/// Takes a sample: runs the command `runs` times, or watches the process for a window. Alone it
/// does so [`CommandTrial::times`] as often.
pub(super) fn run(
    case: &TrialCase,
    command: &CommandTrial,
    round: u32,
    runs: u32,
) -> Result<TrialOutcome, TrialError> {
    // The command inherits the CPUs. A process that runs already is watched from another CPU.
    let own_cpus: &[u32] = match (&command.subject, command.away.as_ref()) {
        (CommandSubject::Process { .. }, Some(away)) => std::slice::from_ref(away),
        _ => &command.cpus,
    };
    placement::pin(own_cpus).map_err(TrialError::at("sched_setaffinity of the command"))?;
    let mut neighbours = RunningNeighbours::start(command, case.policy, round)?;
    let has_timer = command.neighbour == NeighbourKind::Elsewhere && command.timer;
    let period_ns = 1_000_000_000 / u64::from(command.rate_hz.max(1));
    let mut timers = Vec::new();
    if has_timer {
        for cpu in &command.cpus {
            let timer = CpuTimer::open(*cpu, period_ns);
            timers.push(timer.map_err(TrialError::at("perf_event_open"))?);
        }
    }
    let log = neighbours.log.clone();
    let (wakes_before, quanta_before) = (log.wakes(), log.quanta());
    let preemptions_before = log.preemptions();
    let start_ns = monotonic_raw_ns();
    let sample = match &command.subject {
        CommandSubject::Command(words) => run_command(words, runs.saturating_mul(command.times()))?,
        CommandSubject::Process { has_children, window_ns, progress, .. } => {
            let window_ns = window_ns.saturating_mul(command.times().into());
            process::watch(&command.subject.pids(), *has_children, window_ns, progress)?
        }
    };
    let real_ns = monotonic_raw_ns() - start_ns;
    let wakes = log.wakes().wrapping_sub(wakes_before);
    let quanta_after = log.quanta();
    let preemptions = log.preemptions().wrapping_sub(preemptions_before);
    drop(timers);
    check_alive("neighbour", &mut neighbours.processes)?;
    let mut outcome = TrialOutcome { elapsed_ns: Some(real_ns), ..TrialOutcome::default() };
    outcome.tally(CPU_NS, sample.runs.iter().map(|run| to_i64(run.cpu_ns)));
    outcome.tally(REAL_NS, sample.runs.iter().map(|run| to_i64(run.real_ns)));
    outcome.count(DONE, sample.done);
    outcome.count(PREEMPTIONS, sample.preemptions);
    outcome.count(WAITS, sample.waits);
    if command.neighbour != NeighbourKind::Nobody {
        outcome.count(WAKES, wakes.into());
    }
    outcome.count(LOOKS, preemptions.into());
    if quanta_after > quanta_before {
        let quanta = log.between(quanta_before, quanta_after);
        let latency_ns = quanta.iter().map(|times| times.latency_ns as i64);
        outcome.tally(LATENCY_QUANTUM_NS, latency_ns);
        outcome.tally(QUANTUM_RATIO, quanta.iter().map(ratio_per_mille));
    }
    if has_timer {
        // Counted by CPU time: on a shared CPU only some of the interrupts meet the program.
        let cpu_ns: u64 = sample.runs.iter().map(|run| run.cpu_ns).sum();
        outcome.count(TIMER_INTERRUPTS, to_i64(cpu_ns / period_ns));
    }
    Ok(outcome)
}

/// Checks that a command's addresses can be the same in every run.
pub fn check_fixed_addresses() -> Result<(), Errno> {
    crate::sys::check_fixed_addresses()
}

/// Returns the highest rate at which a timer may interrupt a CPU: the kernel leaves out interrupts
/// beyond its limit on samples.
pub fn most_timer_hz() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    let Ok(limit_hz) = text.unwrap_or_default().trim().parse::<u32>() else { return u32::MAX };
    (limit_hz / 2).max(1)
}

/// Checks that a timer may interrupt a CPU without waking a task.
pub fn check_timer(cpu: u32) -> Result<(), Errno> {
    CpuTimer::open(cpu, 1_000_000_000).map(drop)
}

/// Returns the ratio of the throughput-bound to the latency-bound loop in thousandths.
fn ratio_per_mille(times: &QuantumTimes) -> i64 {
    1000 * times.throughput_ns as i64 / times.latency_ns as i64
}

fn to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Runs the command `runs` times, one run after the other.
fn run_command(words: &[String], runs: u32) -> Result<CommandRuns, TrialError> {
    let mut sample = CommandRuns { runs: Vec::new(), done: runs.into(), preemptions: 0, waits: 0 };
    for _ in 0..runs {
        let start_ns = monotonic_raw_ns();
        let end = run_to_end(words, Stdio::null)?;
        let real_ns = monotonic_raw_ns() - start_ns;
        if end.status != 0 {
            let status = describe_status(end.status);
            return Err(TrialError(format!("the command failed: {status}")));
        }
        sample.runs.push(RunTimes { cpu_ns: end.usage.total_ns(), real_ns });
        sample.preemptions += end.usage.0.ru_nivcsw;
        sample.waits += end.usage.0.ru_nvcsw;
    }
    Ok(sample)
}

/// Runs a command once, with its messages on standard error. Returns its time in nanoseconds.
pub fn try_command(words: &[String]) -> Result<u64, String> {
    let start_ns = monotonic_raw_ns();
    let end = run_to_end(words, Stdio::inherit).map_err(|error| error.0)?;
    match end.status {
        0 => Ok(monotonic_raw_ns() - start_ns),
        status => Err(describe_status(status)),
    }
}

/// Describes a wait status: `exit status: 1`, `signal: 9 (SIGKILL)`.
fn describe_status(status: i32) -> String {
    ExitStatus::from_raw(status).to_string()
}

/// Runs the command to its end on the CPUs of this process. Its streams are /dev/null, except
/// standard error, and it ends with this process. Its addresses are the same in every run: times
/// scatter more with addresses than a preemption costs.
fn run_to_end(words: &[String], errors: fn() -> Stdio) -> Result<ChildEnd, TrialError> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| TrialError("the command has no words".to_string()))?;
    let mut command = programs::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors());
    end_with_this_process(&mut command);
    fix_addresses(&mut command);
    let child =
        command.spawn().map_err(|error| TrialError(format!("cannot run {program}: {error}")))?;
    wait_for(child.id() as i32).map_err(TrialError::at("wait4"))
}

/// Checks that everything which a sample needs of a process can be read.
pub fn check_process(command: &CommandTrial) -> Result<(), String> {
    let CommandSubject::Process { has_children, progress, .. } = &command.subject else {
        return Ok(());
    };
    process::check(&command.subject.pids(), *has_children, progress)
}

//! The plan of `switchcost sensitivity`: which program runs beside which neighbours, and how often.
//!
//! The program runs alone, beside a neighbour on another CPU while only a timer interrupts it, and
//! beside each neighbour at two rates. A neighbour whose work takes long wakes less often, so that it
//! leaves the program at least 60 % of its CPU: one of 1 MiB writes 16,384 cache lines at 5 ns each,
//! 82 us, which fits 4,000 times into 0.4 s of a second; one that stays for 4 ms wakes 99 times.

use std::collections::BTreeSet;
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, Result, anyhow};
use probe::{executable, placement, policy, trial};
use rundata::experiment::Experiment;
use rundata::machine::Machine;
use rundata::notice::Notice;
use rundata::plan::Batching;
use rundata::ring::Policy;
use rundata::trial::command::{
    CommandSubject, CommandTrial, Executable, MAX_WAKE_HZ, NeighbourKind, ProgressSource,
    REPEATS_ALONE,
};
use rundata::trial::{Trial, TrialBatching, TrialCase};
use rundata::words;

use super::SensitivityArgs;
use crate::base::failure::usage;
use crate::base::values::nanoseconds;
use crate::engine::setting::{self, LocalHost, PlanWithNotices};
use crate::observe::processes::ProcessSet;

/// Sizes of neighbours if this machine's caches are unknown.
const DEFAULT_BYTES: [u64; 5] = [0, 32 << 10, 256 << 10, 1 << 20, 8 << 20];
/// Largest default size: a larger neighbour would wake too seldom.
const MAX_DEFAULT_BYTES: u64 = 8 << 20;
/// Time that a neighbour is taken to need for a cache line.
const LINE_NS: u64 = 5;
const LINE_BYTES: u64 = 64;
/// Time that is added to each wake-up of a neighbour for its switches.
const SWITCH_NS: u64 = 2_500;
/// Most time of a second that a neighbour may take of a command's CPU.
const MAX_COMMAND_LOAD_NS: u64 = 400_000_000;
/// Most time of a second that a neighbour may take of a running process's CPU. Others may rely on
/// that process, and what it loses is taken to be as much again.
const MAX_PROCESS_LOAD_NS: u64 = 8_000_000;
/// Number of rates of each neighbour, and the highest rate over the lowest.
const RATES: u32 = 2;
/// Timer interrupts for each preemption at the highest rate: the cost of an interrupt is subtracted
/// from that of each preemption, so it has to be known better.
const INTERRUPTS_PER_PREEMPTION: u32 = 3;
/// Aimed length of a sample: a shorter command runs several times.
const SAMPLE_TIME: Duration = Duration::from_millis(100);
/// Fewest preemptions of a sample by a neighbour that stays, at its lower rate.
const MIN_PREEMPTIONS: u32 = 20;
/// Length of a sample of a running process.
const WINDOW: Duration = Duration::from_millis(500);
/// Longest run of a command: a worker has ten minutes, in which it runs three times alone.
const MAX_RUN_TIME: Duration = Duration::from_secs(180);
/// Most runs of a sample.
const MAX_RUNS: u128 = 1000;
/// Time of a case by which the budget is divided.
const CASE_MS: u128 = 80;

/// Returns the plan, and notes on what is not available here.
pub(crate) fn plan(args: &SensitivityArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    check_policy(args.policy)?;
    let mut notices = Vec::new();
    let processes =
        ProcessSet::of_options(args.pid.as_ref(), args.cgroup.as_deref(), !args.no_children)?;
    let processes = processes.as_ref();
    let cpus = choose_cpus(args, processes, here, &mut notices)?;
    let policy = choose_policy(args, &mut notices)?;
    let has_timer = check_timer(cpus[0], &mut notices);
    if processes.is_none() {
        check_addresses(&mut notices);
    }
    let away = placement::choose_for_controller(&here.allowed, &cpus, &here.machine);
    let (subject, executable) = find_subject(args, processes)?;
    let alone = CommandTrial {
        subject,
        executable,
        away: away.into_iter().find(|cpu| !cpus.contains(cpu)),
        timer: has_timer,
        neighbour: NeighbourKind::Nobody,
        rate_hz: 0,
        bytes: 0,
        stays_ns: 0,
        cpus,
    };
    trial::check_process(&alone)
        .map_err(|reason| usage(no_progress_message(args, processes, &reason)))?;
    let run_time = measure_run_time(&alone.subject)?;
    let stays_ns = args.stay.map_or(0, nanoseconds);
    let mut runs = 1;
    if processes.is_none() {
        let sample_ns = sample_time(args.rate, stays_ns).as_nanos();
        runs = sample_ns.div_ceil(run_time.as_nanos().max(1)).clamp(1, MAX_RUNS) as u32;
    }
    let sizes = match &args.neighbour {
        Some(sizes) => sizes.clone(),
        None => default_sizes(&here.machine, alone.cpus[0]),
    };
    let sizes = with_zero(sizes);
    let largest = sizes.iter().copied().max().unwrap_or_default();
    here.check_memory(&format!("--neighbour {largest}"), largest.into(), "smaller sizes")?;
    let (sizes, left_out) = fit_sizes(args, &sizes, run_time * runs, stays_ns);
    notices.extend(left_out);
    let limit = RateLimit {
        asked_hz: args.rate,
        max_load_ns: if processes.is_some() { MAX_PROCESS_LOAD_NS } else { MAX_COMMAND_LOAD_NS },
    };
    let mut cases = Vec::new();
    for trial in list_trials(&alone, limit, &list_neighbours(&sizes, stays_ns)) {
        cases.push(TrialCase { cpu: trial.cpus[0], policy, trial: Trial::Command(trial) });
    }
    let batching = Batching::of_trials(TrialBatching { trials: runs });
    Ok((args.effort.plan(Experiment::Sensitivity, cases, batching), notices))
}

/// Refuses policies under which a command is not preempted as it is in use.
fn check_policy(asked: Option<Policy>) -> Result<()> {
    match asked {
        None | Some(Policy::Other) => Ok(()),
        Some(Policy::Batch) => Err(usage(
            "--policy batch: neighbours preempt under SCHED_FIFO, so that the command would be \
             preempted as under other (accepted: other)",
        )),
        Some(asked) => Err(usage(format!(
            "--policy {asked}: neighbours preempt under SCHED_FIFO, and a command under {asked} \
             would not be preempted as it is in use (accepted: other; where other tasks use the \
             CPU choose another by --cpus; what a switch costs under {asked}: switchcost ring \
             --policy {asked})"
        ))),
    }
}

/// Returns the policy of neighbours: SCHED_FIFO if it is granted, else SCHED_OTHER.
///
/// # Errors
/// A neighbour that stays needs SCHED_FIFO.
fn choose_policy(args: &SensitivityArgs, notices: &mut Vec<Notice>) -> Result<Policy> {
    let Err(errno) = policy::check(Policy::Fifo) else { return Ok(Policy::Fifo) };
    if args.stay.is_some() {
        let refused = policy::describe_refusal(Policy::Fifo, errno);
        return Err(usage(format!(
            "--stay: {refused}: without it the program would get its CPU back meanwhile"
        )));
    }
    let refused = setting::describe_refused(Policy::Fifo, errno);
    let text = format!(
        "{refused}: the neighbour runs under SCHED_OTHER at the nice value that is granted, \
         and may preempt less often than it wakes"
    );
    notices.push(text.into());
    Ok(Policy::Other)
}

/// Returns whether a timer can interrupt the CPU without a switch.
fn check_timer(cpu: u32, notices: &mut Vec<Notice>) -> bool {
    let Err(errno) = trial::check_timer(cpu) else { return true };
    let text = format!(
        "the cost of a timer's interrupt is not subtracted: perf_event_open: {errno} (it needs \
         CAP_PERFMON, or kernel.perf_event_paranoid of -1)"
    );
    notices.push(text.into());
    false
}

/// Notes if the addresses of a command cannot be fixed.
fn check_addresses(notices: &mut Vec<Notice>) {
    if let Err(errno) = trial::check_fixed_addresses() {
        let text = format!(
            "the command's addresses differ from run to run, so its times scatter more: \
             personality(2): {errno} (containers may refuse it: seccomp)"
        );
        notices.push(text.into());
    }
}

/// Returns the CPUs of the program; those of a running one are its own.
fn choose_cpus(
    args: &SensitivityArgs,
    processes: Option<&ProcessSet>,
    here: &LocalHost,
    notices: &mut Vec<Notice>,
) -> Result<Vec<u32>> {
    for cpu in &args.cpus {
        here.check_cpu("--cpus", *cpu)?;
    }
    if let Some(processes) = processes {
        let allowed = allowed_cpus(processes)?;
        if args.cpus.is_empty() {
            return Ok(allowed);
        }
        let mut missing = allowed;
        missing.retain(|cpu| !args.cpus.contains(cpu));
        if !missing.is_empty() {
            let missing = words::list(&missing);
            let text =
                format!("the program may run on CPU {missing}, too, where nobody preempts it");
            notices.push(text.into());
        }
    } else if args.cpus.is_empty() {
        let cpu =
            placement::choose_quiet(&here.allowed, &here.machine).context("no CPU is allowed")?;
        notices.push(setting::describe_chosen_cpu(cpu, &here.machine).into());
        return Ok(vec![cpu]);
    }
    Ok(args.cpus.clone())
}

/// Returns the CPUs on which any process of a running program may run.
fn allowed_cpus(processes: &ProcessSet) -> Result<Vec<u32>> {
    let mut cpus = BTreeSet::new();
    let mut refused = None;
    for pid in processes.all_pids() {
        match placement::allowed_cpus_of(pid) {
            Ok(allowed) => cpus.extend(allowed),
            Err(errno) => refused = Some(errno),
        }
    }
    match refused {
        Some(errno) if cpus.is_empty() => {
            Err(usage(format!("{}: sched_getaffinity: {errno}", processes.typed)))
        }
        _ => Ok(cpus.into_iter().collect()),
    }
}

/// Returns the program that is preempted, and its file if that was found.
fn find_subject(
    args: &SensitivityArgs,
    processes: Option<&ProcessSet>,
) -> Result<(CommandSubject, Option<Executable>)> {
    if let Some(processes) = processes {
        let progress = match (&args.progress, &args.progress_file) {
            (Some(command), _) => ProgressSource::Printed(command.clone()),
            (None, Some(file)) => ProgressSource::File(file.clone()),
            (None, None) => ProgressSource::Instructions,
        };
        let (pid, others) = processes.pids.split_first().context("no process was named")?;
        let busiest = processes.busiest(thread::sleep).unwrap_or(*pid);
        let subject = CommandSubject::Process {
            pid: *pid,
            others: others.to_vec(),
            has_children: processes.has_children,
            window_ns: nanoseconds(WINDOW),
            progress,
        };
        return Ok((subject, executable::find_for_process(busiest)));
    }
    let mut words = Vec::new();
    for word in &args.command {
        let word = word.to_str().ok_or_else(|| {
            usage("the command has a word that is not UTF-8, and a run file cannot hold it: put it into a script")
        })?;
        words.push(word.to_string());
    }
    let path = env::var("PATH").unwrap_or_default();
    let executable = executable::find_for_command(&words[0], &path);
    Ok((CommandSubject::Command(words), executable))
}

/// Returns the message for a process whose progress cannot be read.
fn no_progress_message(
    args: &SensitivityArgs,
    processes: Option<&ProcessSet>,
    reason: &str,
) -> String {
    let typed = processes.map_or("--pid", |processes| &processes.typed);
    if args.progress.is_some() || args.progress_file.is_some() {
        return format!("{typed}: {reason}");
    }
    format!("{typed}: {reason}; say what it has done by --progress 'CMD' or --progress-file FILE")
}

/// Returns the time of one run of a command, which is started for it; the window of a process.
fn measure_run_time(subject: &CommandSubject) -> Result<Duration> {
    let CommandSubject::Command(words) = subject else { return Ok(WINDOW) };
    let ns = trial::try_command(words).map_err(|reason| anyhow!("{}: {reason}", words[0]))?;
    let run_time = Duration::from_nanos(ns);
    if run_time > MAX_RUN_TIME {
        return Err(usage(format!(
            "the command takes {:.0} s: it runs many times (accepted: up to {} s; a process that runs on is \
             measured by --pid)",
            run_time.as_secs_f64(),
            MAX_RUN_TIME.as_secs()
        )));
    }
    Ok(run_time)
}

/// Returns the sizes for which the budget suffices, and a note if some were left out.
fn fit_sizes(
    args: &SensitivityArgs,
    sizes: &[u64],
    sample_time: Duration,
    stays_ns: u64,
) -> (Vec<u64>, Option<Notice>) {
    let stays = stays_ns > 0;
    // The plain neighbour is measured beside those that stay.
    let plain_cases = if stays { RATES } else { 0 };
    let other_time = sample_time * (REPEATS_ALONE + 1 + plain_cases);
    let other_cases = other_time.as_millis().div_ceil(CASE_MS) as usize + 1;
    // Neighbours that stay are measured twice in a round, and have the CPU for as long again.
    let case_time = if stays { sample_time * 3 } else { sample_time };
    args.effort.fitting(sizes, RATES as usize, other_cases, |_| case_time)
}

/// Limit of the rates of neighbours.
#[derive(Clone, Copy)]
struct RateLimit {
    /// Wake-ups a second that were asked for.
    asked_hz: u32,
    /// Most time of a second that a neighbour may take of the CPU.
    max_load_ns: u64,
}

/// Work of a neighbour whenever it wakes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NeighbourWork {
    bytes: u64,
    /// Time that it stays; 0 for once through its bytes.
    stays_ns: u64,
}

impl NeighbourWork {
    /// The work of a neighbour that uses no memory and leaves at once.
    const NONE: Self = Self { bytes: 0, stays_ns: 0 };

    /// Returns the highest rate within the limit, but at least [`RATES`].
    fn highest_rate(self, limit: RateLimit) -> u32 {
        let walk_ns = self.bytes.div_ceil(LINE_BYTES).saturating_mul(LINE_NS);
        let wake_ns = walk_ns.max(self.stays_ns).saturating_add(SWITCH_NS);
        let most = u32::try_from(limit.max_load_ns / wake_ns).unwrap_or(u32::MAX);
        limit.asked_hz.min(most.max(RATES))
    }
}

/// Returns the trials of a round: the program alone, beside a neighbour elsewhere while a timer
/// interrupts it, and beside each neighbour at two rates.
fn list_trials(
    alone: &CommandTrial,
    limit: RateLimit,
    neighbours: &[NeighbourWork],
) -> Vec<CommandTrial> {
    let mut trials = vec![alone.clone()];
    if alone.timer || alone.away.is_some() {
        let rate_hz = NeighbourWork::NONE.highest_rate(limit);
        let rate_hz = match alone.subject {
            CommandSubject::Command(_) => {
                (INTERRUPTS_PER_PREEMPTION * rate_hz).min(MAX_WAKE_HZ).min(trial::most_timer_hz())
            }
            CommandSubject::Process { .. } => rate_hz,
        };
        let neighbour = NeighbourKind::Elsewhere;
        trials.push(CommandTrial { neighbour, rate_hz, ..alone.clone() });
    }
    for work in neighbours {
        let NeighbourWork { bytes, stays_ns } = *work;
        let highest_hz = work.highest_rate(limit);
        for rate_hz in [highest_hz.div_ceil(RATES), highest_hz] {
            let neighbour = NeighbourKind::Preempts;
            trials.push(CommandTrial { neighbour, rate_hz, bytes, stays_ns, ..alone.clone() });
        }
    }
    trials
}

/// Returns a neighbour of each size that stays this long, and first of all one without work.
fn list_neighbours(sizes: &[u64], stays_ns: u64) -> Vec<NeighbourWork> {
    let mut neighbours = vec![NeighbourWork::NONE];
    for bytes in sizes {
        let work = NeighbourWork { bytes: *bytes, stays_ns };
        if work != NeighbourWork::NONE {
            neighbours.push(work);
        }
    }
    neighbours
}

/// Returns the aimed length of a sample. It is longer beside a neighbour that stays, which wakes
/// seldom, so that a sample has enough preemptions.
fn sample_time(asked_hz: u32, stays_ns: u64) -> Duration {
    if stays_ns == 0 {
        return SAMPLE_TIME;
    }
    let limit = RateLimit { asked_hz, max_load_ns: MAX_COMMAND_LOAD_NS };
    let lower_hz = NeighbourWork { bytes: 0, stays_ns }.highest_rate(limit).div_ceil(RATES);
    SAMPLE_TIME.max(Duration::from_secs(1) * MIN_PREEMPTIONS / lower_hz)
}

/// Adds the size 0, as its neighbour shows the cost of checking the CPU's speed.
fn with_zero(mut sizes: Vec<u64>) -> Vec<u64> {
    if !sizes.contains(&0) {
        sizes.insert(0, 0);
    }
    sizes
}

/// Returns 0, the sizes of the first and second cache, a quarter of the second, and that of the
/// cache that all CPUs share, up to a bound.
fn default_sizes(machine: &Machine, cpu: u32) -> Vec<u64> {
    let [first, second, third] = [1, 2, 3].map(|level| machine.data_cache_bytes(cpu, level));
    let (Some(first), Some(second)) = (first, second) else { return DEFAULT_BYTES.to_vec() };
    let last = third.unwrap_or(MAX_DEFAULT_BYTES).min(MAX_DEFAULT_BYTES);
    let mut sizes = vec![0, first, second / 4, second, last];
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use rundata::trial::command::MAX_STAY_NS;

    use super::*;

    fn alone() -> CommandTrial {
        CommandTrial {
            subject: CommandSubject::Command(vec!["true".to_string()]),
            executable: None,
            cpus: vec![1],
            neighbour: NeighbourKind::Nobody,
            rate_hz: 0,
            bytes: 0,
            stays_ns: 0,
            away: Some(0),
            timer: true,
        }
    }

    fn limit(asked_hz: u32) -> RateLimit {
        RateLimit { asked_hz, max_load_ns: MAX_COMMAND_LOAD_NS }
    }

    /// Returns the titles of the trials at 4,000 wake-ups a second.
    fn titles(sizes: &[u64], stays_ns: u64) -> Vec<String> {
        let trials = list_trials(&alone(), limit(4000), &list_neighbours(sizes, stays_ns));
        trials.iter().map(CommandTrial::to_string).collect()
    }

    #[test]
    fn each_neighbour_has_two_rates() {
        let titles = titles(&[0, 1 << 20], 0);
        let expected = [
            "alone",
            "timer and neighbour elsewhere, 12000 a second",
            "neighbour without memory, 2000 a second",
            "neighbour without memory, 4000 a second",
            "neighbour of 1 MiB, 2369 a second",
            "neighbour of 1 MiB, 4000 a second",
        ];
        assert_eq!(titles.len(), expected.len());
        assert_eq!(titles[..4], expected[..4]);
    }

    #[test]
    fn neighbours_that_stay_are_measured_beside_one_that_leaves_at_once() {
        let expected = [
            "neighbour without memory, 2000 a second",
            "neighbour without memory, 4000 a second",
            "neighbour without memory that stays for 4.00 ms, 50 a second",
            "neighbour without memory that stays for 4.00 ms, 99 a second",
            "neighbour of 1 MiB that stays for 4.00 ms, 50 a second",
            "neighbour of 1 MiB that stays for 4.00 ms, 99 a second",
        ];
        assert_eq!(titles(&[0, 1 << 20], 4_000_000)[2..], expected);
    }

    #[test]
    fn samples_beside_neighbours_that_stay_are_longer() {
        assert_eq!(sample_time(4000, 4_000_000), Duration::from_millis(400));
        assert_eq!(sample_time(4000, 0), SAMPLE_TIME);
    }

    #[test]
    fn without_a_timer_and_another_cpu_there_is_no_neighbour_elsewhere() {
        let alone = CommandTrial { away: None, timer: false, ..alone() };
        let trials = list_trials(&alone, limit(8), &list_neighbours(&[0], 0));
        assert!(trials.iter().all(|trial| trial.neighbour != NeighbourKind::Elsewhere));
    }

    #[test]
    fn a_neighbour_takes_no_more_of_the_cpu_than_its_limit() {
        assert_eq!(NeighbourWork::NONE.highest_rate(limit(4000)), 4000);
        for max_load_ns in [MAX_COMMAND_LOAD_NS, MAX_PROCESS_LOAD_NS] {
            for bytes in [0, 64, 1 << 20, 8 << 20, 1 << 40] {
                for stays_ns in [0, 4_000_000, MAX_STAY_NS] {
                    let limit = RateLimit { asked_hz: 20_000, max_load_ns };
                    let rate_hz = NeighbourWork { bytes, stays_ns }.highest_rate(limit);
                    let wake_ns = (u128::from(bytes.div_ceil(64)) * 5).max(stays_ns.into()) + 2500;
                    let load_ns = u128::from(rate_hz) * wake_ns;
                    assert!(
                        rate_hz == RATES || load_ns <= max_load_ns.into(),
                        "{bytes}: {rate_hz}"
                    );
                }
            }
        }
    }
}

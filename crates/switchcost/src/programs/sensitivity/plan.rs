//! `switchcost sensitivity`, from what was typed to a plan.

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
    CommandSubject, CommandTrial, MAX_WAKE_HZ, NeighbourKind, ProgressSource, REPEATS_ALONE,
};
use rundata::trial::{Trial, TrialBatching, TrialCase};

use super::SensitivityArgs;
use crate::base::failure::usage;
use crate::base::values::nanoseconds;
use crate::engine::setting::{self, LocalHost, PlanWithNotices};
use crate::observe::processes::ProcessSet;

/// Where this machine's caches are not known.
const USUAL_BYTES: [u64; 5] = [0, 32 << 10, 256 << 10, 1 << 20, 8 << 20];
/// A larger neighbour would hardly preempt.
const LARGEST_BYTES: u64 = 8 << 20;
/// What a cache line is taken to need of the neighbour's time.
const LINE_NS: u64 = 5;
const LINE_BYTES: u64 = 64;
/// How much of a second a neighbour may take of a command's CPU; of a process that others may rely
/// on, where what it costs that one is taken to be as much, and some microseconds for each switch.
const OF_COMMAND_NS: u64 = 400_000_000;
const OF_PROCESS_NS: u64 = 8_000_000;
const SWITCH_NS: u64 = 2_500;
/// The lower rate is this part of the higher.
const PART: u32 = 2;
/// The timer interrupts a command so many times as often as a neighbour preempts it: what it costs is
/// taken off each preemption.
const TIMER: u32 = 3;
/// A sample lasts about so long: a command that takes less runs several times.
const SAMPLE: Duration = Duration::from_millis(100);
/// Preemptions of a sample of a neighbour that stays, at its lower rate; it is taken twice in a round.
const FEWEST_PREEMPTIONS: u32 = 20;
/// How long a process is looked at for a sample.
const WINDOW: Duration = Duration::from_millis(500);
/// A worker has ten minutes, in which a command runs three times alone.
const LONGEST_RUN: Duration = Duration::from_secs(180);
/// Most runs of a sample.
const MOST_RUNS: u128 = 1000;

/// The plan, and notes on what is not available here.
pub(crate) fn plan(args: &SensitivityArgs, here: &LocalHost) -> Result<PlanWithNotices> {
    check_policy(args.policy)?;
    let mut notices = Vec::new();
    let processes =
        ProcessSet::of_options(args.pid.as_ref(), args.cgroup.as_deref(), !args.no_children)?;
    let processes = processes.as_ref();
    let cpus = cpus(args, processes, here, &mut notices)?;
    let policy = match policy::check(Policy::Fifo) {
        Ok(()) => Policy::Fifo,
        Err(errno) => {
            if args.stay.is_some() {
                let refused = policy::describe_refusal(Policy::Fifo, errno);
                return Err(usage(format!(
                    "--stay: {refused}: without it the program would get its CPU back meanwhile"
                )));
            }
            let refused = setting::describe_refused(Policy::Fifo, errno);
            notices.push(format!(
                "{refused}: the neighbour runs under SCHED_OTHER at the nice value that is granted, \
                 and may preempt less often than it wakes"
            ).into());
            Policy::Other
        }
    };
    let timer = trial::check_timer(cpus[0]);
    if let Err(errno) = &timer {
        notices.push(format!(
            "the cost of a timer's interrupt is not taken off: perf_event_open: {errno} (it needs \
             CAP_PERFMON, or kernel.perf_event_paranoid of -1)"
        ).into());
    }
    if let (None, Err(errno)) = (processes, trial::check_fixed_addresses()) {
        notices.push(
            format!(
                "the command's addresses differ from run to run, so its times scatter more: \
             personality(2): {errno} (containers may refuse it: seccomp)"
            )
            .into(),
        );
    }
    let away = placement::choose_for_controller(&here.allowed, &cpus, &here.machine);
    let (subject, executable) = subject(args, processes)?;
    let of = CommandTrial {
        subject,
        executable,
        away: away.into_iter().find(|cpu| !cpus.contains(cpu)),
        timer: timer.is_ok(),
        neighbour: NeighbourKind::Nobody,
        rate_hz: 0,
        bytes: 0,
        stays_ns: 0,
        cpus,
    };
    trial::check_process(&of).map_err(|why| usage(lacks_progress(args, processes, &why)))?;
    let once = match &of.subject {
        CommandSubject::Command(words) => {
            let ns = trial::try_command(words).map_err(|why| anyhow!("{}: {why}", words[0]))?;
            Duration::from_nanos(ns)
        }
        CommandSubject::Process { .. } => WINDOW,
    };
    if once > LONGEST_RUN {
        return Err(usage(format!(
            "the command takes {:.0} s: it runs many times (accepted: up to {} s; a process that runs on is \
             measured by --pid)",
            once.as_secs_f64(),
            LONGEST_RUN.as_secs()
        )));
    }
    let stays_ns = args.stay.map_or(0, nanoseconds);
    let sample = longest(args.rate, stays_ns).as_nanos();
    let runs = sample.div_ceil(once.as_nanos().max(1)).clamp(1, MOST_RUNS) as u32;
    let runs = if processes.is_some() { 1 } else { runs };
    let sizes = args.neighbour.clone().map(|list| list.to_vec());
    let sizes = with_nothing(sizes.unwrap_or_else(|| default_sizes(&here.machine, of.cpus[0])));
    let largest = sizes.iter().copied().max().unwrap_or_default();
    here.check_memory(&format!("--neighbour {largest}"), largest.into(), "smaller sizes")?;
    let sample = once * runs;
    // Beside the sizes, in cases of 80 ms: alone, and elsewhere.
    let plain = if stays_ns > 0 { PART } else { 0 };
    let others = sample * (REPEATS_ALONE + 1 + plain);
    let others = others.as_millis().div_ceil(80) as usize + 1;
    // Those that stay are measured twice in a round, and have the CPU for as long again.
    let beside = if stays_ns > 0 { sample * 3 } else { sample };
    let (sizes, left_out) = args.effort.fitting(&sizes, PART as usize, others, |_| beside);
    notices.extend(left_out);
    let most_ns = if processes.is_some() { OF_PROCESS_NS } else { OF_COMMAND_NS };
    let cases = cases(&of, (args.rate, most_ns), &neighbours(&sizes, stays_ns)).into_iter();
    let cases = cases.map(|of| TrialCase { cpu: of.cpus[0], policy, trial: Trial::Command(of) });
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

/// The CPUs of the program: those of a running one are its own.
fn cpus(
    args: &SensitivityArgs,
    processes: Option<&ProcessSet>,
    here: &LocalHost,
    notices: &mut Vec<Notice>,
) -> Result<Vec<u32>> {
    args.cpus.iter().try_for_each(|cpu| here.check_cpu("--cpus", *cpu))?;
    if let Some(processes) = processes {
        let own = allowed_of(processes)?;
        let cpus = if args.cpus.is_empty() { own.clone() } else { args.cpus.clone() };
        let missing: Vec<u32> = own.into_iter().filter(|cpu| !cpus.contains(cpu)).collect();
        if !missing.is_empty() {
            notices.push(
                format!(
                    "the program may run on CPU {}, too, where nobody preempts it",
                    rundata::words::list(&missing)
                )
                .into(),
            );
        }
        return Ok(cpus);
    }
    if args.cpus.is_empty() {
        let cpu =
            placement::choose_quiet(&here.allowed, &here.machine).context("no CPU is allowed")?;
        notices.push(setting::describe_chosen_cpu(cpu, &here.machine).into());
        return Ok(vec![cpu]);
    }
    Ok(args.cpus.clone())
}

/// The CPUs on which any process of a running program may run.
fn allowed_of(processes: &ProcessSet) -> Result<Vec<u32>> {
    let mut cpus = BTreeSet::new();
    let mut refused = None;
    for pid in processes.all_pids() {
        match placement::allowed_cpus_of(pid) {
            Ok(allowed) => cpus.extend(allowed),
            Err(errno) => refused = Some(errno),
        }
    }
    match (cpus.is_empty(), refused) {
        (true, Some(errno)) => {
            Err(usage(format!("{}: sched_getaffinity: {errno}", processes.typed)))
        }
        _ => Ok(cpus.into_iter().collect()),
    }
}

fn subject(
    args: &SensitivityArgs,
    processes: Option<&ProcessSet>,
) -> Result<(CommandSubject, Option<rundata::trial::command::Executable>)> {
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
    let words = args.command.iter().map(|word| word.to_str().map(str::to_string));
    let words: Option<Vec<String>> = words.collect();
    let words = words.ok_or_else(|| {
        usage("the command has a word that is not UTF-8, and a run file cannot hold it: put it into a script")
    })?;
    let path = env::var("PATH").unwrap_or_default();
    let executable = executable::find_for_command(&words[0], &path);
    Ok((CommandSubject::Command(words), executable))
}

fn lacks_progress(args: &SensitivityArgs, processes: Option<&ProcessSet>, why: &str) -> String {
    let typed = processes.map_or("--pid", |processes| &processes.typed);
    match (&args.progress, &args.progress_file) {
        (None, None) => format!(
            "{typed}: {why}; say what it has done by --progress 'CMD' or --progress-file FILE"
        ),
        _ => format!("{typed}: {why}"),
    }
}

/// The program alone, beside all of a preemption but the switch, and beside each neighbour at two
/// rates.
fn cases(of: &CommandTrial, (rate_hz, most_ns): (u32, u64), all: &[Kind]) -> Vec<CommandTrial> {
    let highest = |kind: Kind| highest_rate(rate_hz, most_ns, kind);
    let nothing = Kind { bytes: 0, stays_ns: 0 };
    let neighbour = NeighbourKind::Elsewhere;
    let timer_hz = match of.subject {
        CommandSubject::Command(_) => {
            (TIMER * highest(nothing)).min(MAX_WAKE_HZ).min(trial::most_timer_hz())
        }
        CommandSubject::Process { .. } => highest(nothing),
    };
    let elsewhere = CommandTrial { neighbour, rate_hz: timer_hz, ..of.clone() };
    let mut cases = vec![of.clone()];
    cases.extend((of.timer || of.away.is_some()).then_some(elsewhere));
    for kind in all {
        for rate_hz in [highest(*kind).div_ceil(PART), highest(*kind)] {
            let (neighbour, Kind { bytes, stays_ns }) = (NeighbourKind::Preempts, *kind);
            cases.push(CommandTrial { neighbour, rate_hz, bytes, stays_ns, ..of.clone() });
        }
    }
    cases
}

/// A neighbour that stays wakes seldom: a sample is so long that there are enough preemptions in it.
fn longest(asked_hz: u32, stays_ns: u64) -> Duration {
    if stays_ns == 0 {
        return SAMPLE;
    }
    let rate_hz = highest_rate(asked_hz, OF_COMMAND_NS, Kind { bytes: 0, stays_ns }).div_ceil(PART);
    SAMPLE.max(Duration::from_secs(1) * FEWEST_PREEMPTIONS / rate_hz)
}

/// What neighbours differ in.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    bytes: u64,
    stays_ns: u64,
}

/// One of each size that stays so long; and always one that uses nothing and leaves at once.
fn neighbours(sizes: &[u64], stays_ns: u64) -> Vec<Kind> {
    let all = sizes.iter().map(|bytes| Kind { bytes: *bytes, stays_ns });
    let plain = Kind { bytes: 0, stays_ns: 0 };
    [plain].into_iter().chain(all.filter(|kind| *kind != plain)).collect()
}

/// At which a neighbour takes no more than `most_ns` of a second.
fn highest_rate(asked_hz: u32, most_ns: u64, Kind { bytes, stays_ns }: Kind) -> u32 {
    let once_ns = bytes.div_ceil(LINE_BYTES).saturating_mul(LINE_NS);
    let each_ns = once_ns.max(stays_ns).saturating_add(SWITCH_NS);
    let most = u32::try_from(most_ns / each_ns).unwrap_or(u32::MAX);
    asked_hz.min(most.max(PART))
}

/// Sizes with 0 among them: by that is known what they cost who look at the CPU's speed.
fn with_nothing(mut sizes: Vec<u64>) -> Vec<u64> {
    if !sizes.contains(&0) {
        sizes.insert(0, 0);
    }
    sizes
}

/// Nothing, the first and last private cache and a quarter of that, and what all CPUs share, up to
/// a bound.
fn default_sizes(machine: &Machine, cpu: u32) -> Vec<u64> {
    let bytes = |level: u32| machine.data_cache_bytes(cpu, level);
    let (Some(first), Some(second)) = (bytes(1), bytes(2)) else { return USUAL_BYTES.to_vec() };
    let last = bytes(3).unwrap_or(LARGEST_BYTES).min(LARGEST_BYTES);
    let mut sizes = vec![0, first, second / 4, second, last];
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use rundata::trial::command::MAX_STAY_NS;

    use super::*;

    fn command() -> CommandTrial {
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

    #[test]
    fn each_neighbour_has_two_rates_beside_a_run_alone_and_one_elsewhere() {
        let cases = cases(&command(), (4000, OF_COMMAND_NS), &neighbours(&[0, 1 << 20], 0));
        let told: Vec<String> = cases.iter().map(CommandTrial::to_string).collect();
        let expected = [
            "alone",
            "timer and neighbour elsewhere, 12000 a second",
            "neighbour without memory, 2000 a second",
            "neighbour without memory, 4000 a second",
            "neighbour of 1 MiB, 2369 a second",
            "neighbour of 1 MiB, 4000 a second",
        ];
        assert_eq!(told.len(), expected.len());
        assert_eq!(told[..4], expected[..4]);
    }

    #[test]
    fn beside_those_that_stay_one_leaves_at_once_and_each_sample_has_enough_of_them() {
        let kinds = neighbours(&[0, 1 << 20], 4_000_000);
        let cases = cases(&command(), (4000, OF_COMMAND_NS), &kinds);
        let told: Vec<String> = cases[2..].iter().map(CommandTrial::to_string).collect();
        let expected = [
            "neighbour without memory, 2000 a second",
            "neighbour without memory, 4000 a second",
            "neighbour without memory that stays for 4.00 ms, 50 a second",
            "neighbour without memory that stays for 4.00 ms, 99 a second",
            "neighbour of 1 MiB that stays for 4.00 ms, 50 a second",
            "neighbour of 1 MiB that stays for 4.00 ms, 99 a second",
        ];
        assert_eq!(told, expected);
        assert_eq!(longest(4000, 4_000_000), Duration::from_millis(400));
        assert_eq!(longest(4000, 0), SAMPLE);
    }

    #[test]
    fn without_a_timer_and_another_cpu_nothing_is_elsewhere() {
        let of = CommandTrial { away: None, timer: false, ..command() };
        let cases = cases(&of, (8, OF_COMMAND_NS), &neighbours(&[0], 0));
        assert!(cases.iter().all(|of| of.neighbour != NeighbourKind::Elsewhere));
    }

    #[test]
    fn a_neighbour_takes_no_more_of_the_cpu_than_it_may() {
        assert_eq!(highest_rate(4000, OF_COMMAND_NS, neighbours(&[], 0)[0]), 4000);
        for most_ns in [OF_COMMAND_NS, OF_PROCESS_NS] {
            for bytes in [0, 64, 1 << 20, 8 << 20, 1 << 40] {
                for stays_ns in [0, 4_000_000, MAX_STAY_NS] {
                    let rate = highest_rate(20_000, most_ns, Kind { bytes, stays_ns });
                    let each = (u128::from(bytes.div_ceil(64)) * 5).max(stays_ns.into()) + 2500;
                    let spent = u128::from(rate) * each;
                    assert!(rate == PART || spent <= most_ns.into(), "{bytes}: {rate}");
                }
            }
        }
    }
}

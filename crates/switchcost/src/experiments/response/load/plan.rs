//! Cases of wake-ups under load.

use anyhow::Result;
use rundata::case::Case;
use rundata::placement::{Placement, placements_for_sweep};
use rundata::ring::{MemberKind, Policy};
use rundata::trial::load::{
    ArrivalSchedule, MAX_WORKERS, RequestWork, WakeLoad, WakeMechanism, WakerPlace,
    planned_messengers,
};
use rundata::trial::{Trial, TrialCase};

use super::LoadArgs;
use crate::base::failure::usage;
use crate::base::values::each_once;
use crate::engine::setting::LocalHost;

/// Length of the schedule of a round.
const SCHEDULE_NS: u64 = 250_000_000;
/// Load that is measured where nothing is asked for, in thousandths.
const DEFAULT_LOAD_PERMILLE: u32 = 800;
/// Time of a request where nothing is asked for.
const DEFAULT_THINK_NS: u64 = 20_000;

/// CPUs of workers and messengers.
struct LoadCpus {
    workers: Vec<u32>,
    messengers: Vec<u32>,
}

/// Plans the loads that were asked for, and the idle machine with which they are compared. `cpu` is
/// the workers' where they have one.
pub(in crate::experiments::response) fn plan_loads(
    args: &LoadArgs,
    cpu: u32,
    seed: u64,
    here: &LocalHost,
) -> Result<Vec<Case>> {
    let has_pair = here.allowed.len() > 1;
    let place = args.waker.unwrap_or(if has_pair { WakerPlace::Near } else { WakerPlace::Same });
    let cpus = choose_cpus(place, cpu, here)?;
    let default_workers = cpus.workers.len().min(MAX_WORKERS as usize) as u32;
    let template = WakeLoad {
        arrivals: ArrivalSchedule::Idle,
        work: request_work(args),
        mechanism: WakeMechanism::Futex,
        workers: args.workers.unwrap_or(default_workers),
        messengers: 1,
        kind: args.kind.unwrap_or(MemberKind::Thread),
        busy_tasks: args.busy.unwrap_or(0),
        place,
        worker_cpus: cpus.workers,
        messenger_cpus: cpus.messengers,
        duration_ns: SCHEDULE_NS,
        seed,
    };
    let messengers =
        args.messengers.unwrap_or_else(|| default_messengers(&template, &schedules(args)));
    let template = WakeLoad { messengers, ..template };
    let mut mechanisms = args.wake.clone();
    if mechanisms.is_empty() {
        mechanisms.push(WakeMechanism::Futex);
    }
    let mut cases: Vec<Case> = Vec::new();
    for mechanism in each_once(mechanisms) {
        let template = WakeLoad { mechanism, ..template.clone() };
        let mut loads = Vec::new();
        if args.sleep.is_empty() {
            loads.push(template.on_idle_machine());
        }
        for arrivals in schedules(args) {
            loads.push(WakeLoad { arrivals, ..template.clone() });
        }
        for load in loads {
            let cpu = load.worker_cpus.first().copied().unwrap_or(cpu);
            let trial = Trial::Load(Box::new(load));
            let case = TrialCase { trial, cpu, policy: Policy::Other };
            case.check().map_err(|why| usage(format!("--only load: {why}")))?;
            cases.push(case.into());
        }
    }
    check_memory(&template, here)?;
    Ok(each_once(cases))
}

/// Returns the schedules that were asked for.
fn schedules(args: &LoadArgs) -> Vec<ArrivalSchedule> {
    let mut schedules = Vec::new();
    for rate in &args.rate {
        schedules.push(ArrivalSchedule::RatePerS(*rate));
    }
    for permille in &args.load {
        schedules.push(ArrivalSchedule::LoadPermille(*permille));
    }
    for ns in &args.sleep {
        schedules.push(ArrivalSchedule::SleepNs(*ns));
    }
    if schedules.is_empty() {
        schedules.push(ArrivalSchedule::LoadPermille(DEFAULT_LOAD_PERMILLE));
    }
    each_once(schedules)
}

/// Time in nanoseconds that a walk over a word of eight bytes is taken to need, as long as nobody has
/// measured it.
const ASSUMED_WORD_NS: f64 = 1.0;

/// Returns the number of messengers for the schedule with most requests a second. All cases have as
/// many, so that they differ in the load alone.
fn default_messengers(load: &WakeLoad, schedules: &[ArrivalSchedule]) -> u32 {
    let request_ns = match load.work {
        RequestWork::ThinkNs(ns) => ns as f64,
        RequestWork::Bytes(bytes) => ASSUMED_WORD_NS * bytes as f64 / 8.0,
    };
    let mut most_per_s = 0.0_f64;
    for schedule in schedules {
        let load = WakeLoad { arrivals: *schedule, ..load.clone() };
        most_per_s = most_per_s.max(load.rate_per_s(request_ns).unwrap_or(0.0));
    }
    planned_messengers(most_per_s, load.workers)
}

fn request_work(args: &LoadArgs) -> RequestWork {
    let default_ns = if args.sleep.is_empty() { DEFAULT_THINK_NS } else { 0 };
    match (args.work, args.think) {
        (Some(bytes), _) => RequestWork::Bytes(bytes),
        (None, think) => RequestWork::ThinkNs(think.unwrap_or(default_ns)),
    }
}

/// Chooses the CPUs of workers and messengers.
fn choose_cpus(place: WakerPlace, cpu: u32, here: &LocalHost) -> Result<LoadCpus> {
    let pair = match place {
        WakerPlace::Same => [cpu, cpu],
        WakerPlace::Free => {
            let (workers, messengers) = (here.allowed.clone(), here.allowed.clone());
            return Ok(LoadCpus { workers, messengers });
        }
        WakerPlace::Near | WakerPlace::Far => choose_pair(place, cpu, here)?,
    };
    let [worker, messenger] = pair;
    Ok(LoadCpus { workers: vec![worker], messengers: vec![messenger] })
}

/// Chooses the nearest or the farthest pair of CPUs: that of the workers and that of the messengers.
fn choose_pair(place: WakerPlace, cpu: u32, here: &LocalHost) -> Result<[u32; 2]> {
    let mut pairs = Vec::new();
    for placement in placements_for_sweep(&here.machine, &here.allowed, cpu) {
        if let Placement::Pinned { cpus, .. } = placement {
            pairs.extend(<[u32; 2]>::try_from(cpus));
        }
    }
    // A machine that does not tell its topology has any pair.
    if pairs.is_empty() {
        let other = here.allowed.iter().find(|other| **other != cpu);
        pairs.extend(other.map(|other| [cpu, *other]));
    }
    let pair = if place == WakerPlace::Near { pairs.first() } else { pairs.last() };
    pair.copied().ok_or_else(|| {
        usage(format!(
            "--waker {place}: this program may use one CPU only (accepted here: same, free; see \
             taskset, cpuset)"
        ))
    })
}

/// Refuses arrays that do not fit into memory.
fn check_memory(load: &WakeLoad, here: &LocalHost) -> Result<()> {
    let RequestWork::Bytes(bytes) = load.work else { return Ok(()) };
    let needed = u128::from(bytes) * u128::from(load.workers);
    here.check_memory("the work of all workers", needed, "fewer --workers or less --work")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of messengers for workers that may use as many CPUs.
    fn messengers(workers: u32, work: RequestWork, schedules: &[ArrivalSchedule]) -> u32 {
        let load = WakeLoad {
            arrivals: ArrivalSchedule::Idle,
            work,
            mechanism: WakeMechanism::Futex,
            workers,
            messengers: 1,
            kind: MemberKind::Thread,
            busy_tasks: 0,
            place: WakerPlace::Free,
            worker_cpus: (0..workers).collect(),
            messenger_cpus: (0..workers).collect(),
            duration_ns: SCHEDULE_NS,
            seed: 1,
        };
        default_messengers(&load, schedules)
    }

    #[test]
    fn a_messenger_is_there_for_each_100_000_requests_a_second() {
        let think = RequestWork::ThinkNs(DEFAULT_THINK_NS);
        let load = ArrivalSchedule::LoadPermille(DEFAULT_LOAD_PERMILLE);
        let planned = |workers| messengers(workers, think, &[load]);
        assert_eq!([1, 2, 3, 26, 256].map(planned), [1, 1, 2, 11, 103]);
        let rates = [load, ArrivalSchedule::RatePerS(300_000), ArrivalSchedule::Idle];
        assert_eq!(messengers(4, think, &rates), 3);
        assert_eq!(messengers(4, think, &[ArrivalSchedule::SleepNs(10_000)]), 4);
        // No more messengers than workers.
        assert_eq!(messengers(1, RequestWork::ThinkNs(0), &[load]), 1);
        assert_eq!(messengers(64, RequestWork::Bytes(64 << 10), &[load]), 63);
    }
}

//! Which cache lines a program accesses, without hardware counters: its threads are sampled by the
//! kernel's clock, and the instructions that follow each sample tell which memory is accessed next.

#[cfg(target_arch = "x86_64")]
mod instructions;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::procfs::ids_in;
use crate::sys::{CpuSamples, ThreadSample};

/// User time between two samples of a CPU at the least: no multiple of a millisecond, at which
/// programs do things. A sample takes up to 15 us on a guest, whose timer is the host's.
const LEAST_PERIOD: Duration = Duration::from_micros(503);
/// Samples that are taken at the most.
const MOST_SAMPLES: u64 = 4000;
const LINE_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 4096;

/// CPUs that the threads of a process may use.
fn cpus_of(pid: i32) -> BTreeSet<u32> {
    let sets = ids_in(Path::new(&format!("/proc/{pid}/task")))
        .into_iter()
        .filter_map(|tid| sched_getaffinity(Pid::from_raw(tid)).ok());
    let of = |set: CpuSet| (0..CpuSet::MAX_CPU).filter(move |cpu| set.is_set(*cpu));
    sets.flat_map(of).map(|cpu| cpu as u32).collect()
}

/// What a sampled thread does next.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "nothing is decoded there"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextStep {
    /// It accesses memory; `dependent`: at an address that was read from memory.
    Access { address: u64, dependent: bool },
    /// It computes in a loop without memory.
    Compute,
    /// The code cannot be read or followed.
    Unknown,
}

/// The samples of one program's accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledAccesses {
    /// Samples whose next access is known.
    pub accesses: u64,
    /// Those of them at an address that was itself read from memory.
    pub dependent: u64,
    /// Samples in loops that access no memory.
    pub computing: u64,
    /// Samples whose code could not be read or followed.
    pub unknown: u64,
    /// How often each thread was seen to run, by CPU.
    running: BTreeMap<(u32, u32), u64>,
    /// How often each thread was seen before an access to each cache line.
    of_threads: HashMap<(u32, u64), u64>,
    /// The same by CPU.
    of_cpus: HashMap<(u32, u64), u64>,
    /// Other processes that ran on its CPUs, by process.
    pub neighbours: BTreeMap<u32, NeighbourAccesses>,
}

/// A thread that ran for less than this share of the average takes no turns with the others.
const LEAST_OF_A_TURN: f64 = 0.25;

/// A process that runs on the same CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeighbourAccesses {
    /// Samples of it.
    pub samples: u64,
    /// How often each line was seen.
    lines: HashMap<u64, u64>,
}

impl NeighbourAccesses {
    fn add(&mut self, next: NextStep) {
        self.samples += 1;
        if let NextStep::Access { address, .. } = next {
            *self.lines.entry(address / LINE_BYTES).or_default() += 1;
        }
    }

    /// How often each line was seen.
    pub fn line_counts(&self) -> impl Iterator<Item = u64> {
        self.lines.values().copied()
    }
}

impl SampledAccesses {
    fn add(&mut self, moment: &ThreadSample, next: NextStep) {
        *self.running.entry((moment.tid, moment.cpu)).or_default() += 1;
        match next {
            NextStep::Unknown => self.unknown += 1,
            NextStep::Compute => self.computing += 1,
            NextStep::Access { address, dependent } => {
                let line = address / LINE_BYTES;
                self.accesses += 1;
                self.dependent += u64::from(dependent);
                *self.of_threads.entry((moment.tid, line)).or_default() += 1;
                *self.of_cpus.entry((moment.cpu, line)).or_default() += 1;
            }
        }
    }

    /// All samples of the program itself.
    fn samples(&self) -> u64 {
        self.accesses + self.computing + self.unknown
    }

    /// Threads that take turns: without those that ran for less than a quarter of what each did on
    /// average, such as one that makes ready what the others work on.
    fn taking_turns(&self) -> BTreeSet<u32> {
        let mut by_thread: BTreeMap<u32, u64> = BTreeMap::new();
        for ((tid, _), count) in &self.running {
            *by_thread.entry(*tid).or_default() += count;
        }
        let samples: u64 = by_thread.values().sum();
        let least = LEAST_OF_A_TURN * samples as f64 / by_thread.len().max(1) as f64;
        let often = by_thread.into_iter().filter(|(_, count)| *count as f64 >= least);
        often.map(|(tid, _)| tid).collect()
    }

    /// Whether one of its threads was seen to run on a CPU.
    fn ran_on(&self, cpu: u32) -> bool {
        self.running.keys().any(|(_, ran)| *ran == cpu)
    }

    /// How many threads take turns on a CPU; 1 of a program that was not seen to run.
    pub fn threads_per_cpu(&self) -> f64 {
        let taking_turns = self.taking_turns();
        let ran = self.running.keys().filter(|(tid, _)| taking_turns.contains(tid));
        let cpus: BTreeSet<u32> = ran.map(|(_, cpu)| *cpu).collect();
        taking_turns.len().max(1) as f64 / cpus.len().max(1) as f64
    }

    /// Those of them that were seen before an access.
    pub fn threads(&self) -> usize {
        let taking_turns = self.taking_turns();
        let seen: BTreeSet<u32> = self.of_threads.keys().map(|(tid, _)| *tid).collect();
        seen.intersection(&taking_turns).count()
    }

    /// CPUs on which one was.
    pub fn cpus(&self) -> usize {
        self.of_cpus.keys().map(|(cpu, _)| cpu).collect::<BTreeSet<_>>().len()
    }

    /// How often each line of each of these was seen.
    pub fn line_counts_by_thread(&self) -> impl Iterator<Item = u64> {
        let taking_turns = self.taking_turns();
        let of_these = move |((tid, _), count): (&(u32, u64), &u64)| {
            taking_turns.contains(tid).then_some(*count)
        };
        self.of_threads.iter().filter_map(of_these)
    }

    /// How often each line was seen on each CPU.
    pub fn line_counts_by_cpu(&self) -> impl Iterator<Item = u64> {
        self.of_cpus.values().copied()
    }
}

/// What a process has in its memory, read as samples need it.
struct ProcessMemory {
    file: File,
    /// Pages of code; absent where one cannot be read.
    code: Code,
}

impl ProcessMemory {
    fn of(pid: u32) -> Result<Self, String> {
        let path = format!("/proc/{pid}/mem");
        let file = File::open(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
        Ok(Self { file, code: HashMap::new() })
    }
}

/// Samples a program. Nothing of it is stopped or changed.
pub struct AccessSampler {
    cpus: Vec<CpuSamples>,
    pid: u32,
    /// Period from the time on when it is known to use much of a CPU; none once that has begun.
    later_ns: Option<u64>,
    memory: ProcessMemory,
    /// The memory of its neighbours; absent where one may not be read.
    of_neighbours: HashMap<u32, Option<ProcessMemory>>,
    seen: SampledAccesses,
}

/// Samples after which those of the whole watch are spread over it: a program that sleeps mostly
/// gives fewer.
const AT_FIRST: u64 = MOST_SAMPLES / 4;
/// Other processes whose accesses are looked at, at the most.
const MOST_NEIGHBOURS: usize = 16;

impl AccessSampler {
    /// Begins to sample on the CPUs that its threads may use now: often at first, then so that the
    /// samples of one busy CPU last for `watch`; without it as often as is sensible. What is
    /// missing, where it cannot.
    pub fn start(pid: i32, watch: Option<Duration>) -> Result<Self, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("instructions of this architecture are not decoded (x86-64 is)".to_string());
        }
        let memory = ProcessMemory::of(pid.unsigned_abs())?;
        let cpus = sample(pid, LEAST_PERIOD.as_nanos() as u64)?;
        let later = watch.unwrap_or_default() / MOST_SAMPLES as u32;
        let later_ns = (later > LEAST_PERIOD).then_some(later.as_nanos() as u64);
        let (pid, of_neighbours) = (pid.unsigned_abs(), HashMap::new());
        Ok(Self { cpus, pid, later_ns, memory, of_neighbours, seen: SampledAccesses::default() })
    }

    /// Reads what was sampled since the last call.
    pub fn look(&mut self) {
        let Self { cpus, pid, memory, of_neighbours, seen, .. } = self;
        for samples in cpus.iter_mut() {
            samples.drain(|moment| match moment.pid == *pid {
                true => seen.add(&moment, next(&moment, memory)),
                false => see_neighbour(seen, of_neighbours, &moment),
            });
        }
        let samples = self.seen.samples();
        if samples >= MOST_SAMPLES {
            self.cpus.clear();
        } else if samples >= AT_FIRST {
            let later = self.later_ns.take().and_then(|ns| sample(*pid as i32, ns).ok());
            self.cpus = later.unwrap_or_else(|| std::mem::take(&mut self.cpus));
        }
    }

    /// What was seen.
    pub fn seen(&self) -> &SampledAccesses {
        &self.seen
    }
}

/// Samples of the CPUs that a process may use, or what is missing.
fn sample(pid: i32, period_ns: u64) -> Result<Vec<CpuSamples>, String> {
    let mut cpus = Vec::new();
    for cpu in cpus_of(pid) {
        match CpuSamples::open(cpu, period_ns) {
            Ok(samples) => cpus.push(samples),
            // A CPU that is offline.
            Err(Errno::NODEV | Errno::NXIO) => {}
            Err(Errno::ACCESS | Errno::PERM) => {
                return Err("sampling its accesses needs CAP_PERFMON: run as root".to_string());
            }
            Err(errno) => {
                return Err(format!("cannot sample CPU {cpu} (perf_event_open): {errno}"));
            }
        }
    }
    Ok(cpus)
}

/// A moment of another process, where the program itself has run.
fn see_neighbour(
    seen: &mut SampledAccesses,
    all: &mut HashMap<u32, Option<ProcessMemory>>,
    moment: &ThreadSample,
) {
    let is_beside = seen.ran_on(moment.cpu) && moment.pid != std::process::id();
    if !is_beside || (all.len() >= MOST_NEIGHBOURS && !all.contains_key(&moment.pid)) {
        return;
    }
    let memory = all.entry(moment.pid).or_insert_with(|| ProcessMemory::of(moment.pid).ok());
    let next = memory.as_mut().map_or(NextStep::Unknown, |memory| next(moment, memory));
    seen.neighbours.entry(moment.pid).or_default().add(next);
}

type Code = HashMap<u64, Option<Box<[u8; PAGE_BYTES as usize]>>>;

#[cfg(target_arch = "x86_64")]
fn next(moment: &ThreadSample, memory: &mut ProcessMemory) -> NextStep {
    use instructions::LONGEST_BYTES;
    use std::os::unix::fs::FileExt;

    let ProcessMemory { file, code } = memory;
    instructions::next(moment, |ip| {
        let mut bytes = [0; LONGEST_BYTES];
        let mut have = 0;
        while have < LONGEST_BYTES {
            let at = ip.checked_add(have as u64)?;
            let page = code.entry(at / PAGE_BYTES).or_insert_with(|| {
                let mut page = Box::new([0; PAGE_BYTES as usize]);
                file.read_exact_at(&mut page[..], at - at % PAGE_BYTES).ok().map(|()| page)
            });
            let Some(page) = page else { break };
            let rest = &page[(at % PAGE_BYTES) as usize..];
            let count = rest.len().min(LONGEST_BYTES - have);
            bytes[have..have + count].copy_from_slice(&rest[..count]);
            have += count;
        }
        (have > 0).then_some(bytes)
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn next(_: &ThreadSample, _: &mut ProcessMemory) -> NextStep {
    NextStep::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_thread_and_by_cpu() {
        let mut seen = SampledAccesses::default();
        let moment = |tid, cpu| ThreadSample { pid: 1, tid, cpu, ip: 0, registers: [0; 16] };
        for (tid, cpu, address) in [(1, 0, 0), (1, 0, 63), (2, 0, 0), (2, 1, 64)] {
            seen.add(&moment(tid, cpu), NextStep::Access { address, dependent: tid == 1 });
        }
        seen.add(&moment(3, 2), NextStep::Compute);
        seen.add(&moment(3, 2), NextStep::Unknown);
        assert_eq!((seen.accesses, seen.dependent, seen.computing, seen.unknown), (4, 2, 1, 1));
        assert_eq!((seen.threads(), seen.cpus()), (2, 2));
        assert_eq!(seen.threads_per_cpu(), 1.0, "three on three");
        let sorted = |counts: &mut dyn Iterator<Item = u64>| {
            let mut all: Vec<u64> = counts.collect();
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(&mut seen.line_counts_by_thread()), [1, 1, 2]);
        assert_eq!(sorted(&mut seen.line_counts_by_cpu()), [1, 3]);
    }

    #[test]
    fn a_thread_that_only_makes_ready_takes_no_turn() {
        let mut seen = SampledAccesses::default();
        let moment = |tid| ThreadSample { pid: 1, tid, cpu: 0, ip: 0, registers: [0; 16] };
        // The mean is 30 samples: a quarter of it is 7.5.
        for (tid, samples) in [(1, 7), (2, 41), (3, 42)] {
            for number in 0..samples {
                let address = (u64::from(tid) << 32) + number * LINE_BYTES;
                seen.add(&moment(tid), NextStep::Access { address, dependent: true });
            }
        }
        assert_eq!(
            (seen.threads_per_cpu(), seen.threads(), seen.line_counts_by_thread().count()),
            (2.0, 2, 83)
        );
        seen.add(&moment(1), NextStep::Compute);
        assert_eq!(
            (seen.threads_per_cpu(), seen.threads(), seen.line_counts_by_thread().count()),
            (3.0, 3, 90)
        );
    }

    #[test]
    fn neighbours_count_where_the_program_has_run() {
        let mut seen = SampledAccesses::default();
        let moment = |pid, cpu| ThreadSample { pid, tid: pid, cpu, ip: 0, registers: [0; 16] };
        seen.add(&moment(1, 0), NextStep::Access { address: 0, dependent: false });
        let mut all = HashMap::new();
        // No process has these numbers: their memory cannot be read.
        let none = u32::MAX - 1;
        for (pid, cpu) in [(none, 0), (none, 0), (none, 1), (std::process::id(), 0)] {
            see_neighbour(&mut seen, &mut all, &moment(pid, cpu));
        }
        assert_eq!(seen.neighbours.len(), 1);
        assert_eq!(seen.neighbours[&none].samples, 2);
        for other in 0..100 {
            see_neighbour(&mut seen, &mut all, &moment(none - other, 0));
        }
        assert_eq!(seen.neighbours.len(), MOST_NEIGHBOURS);
        let mut neighbour = NeighbourAccesses::default();
        for next in [
            NextStep::Access { address: 130, dependent: true },
            NextStep::Compute,
            NextStep::Unknown,
        ] {
            neighbour.add(next);
        }
        assert_eq!((neighbour.samples, neighbour.line_counts().collect()), (3, vec![1]));
    }
}

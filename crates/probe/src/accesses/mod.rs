//! Cache lines that a program accesses, found without hardware counters: its threads are sampled by
//! the kernel's clock, and the instructions after each sample show which memory is accessed next.

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

/// Shortest user time between two samples of a CPU. It is no fraction of a millisecond, at which
/// programs often act. A sample takes up to 15 us on a guest, whose timer is the host's.
const MIN_PERIOD: Duration = Duration::from_micros(503);
/// Largest number of samples.
const MAX_SAMPLES: u64 = 4000;
const LINE_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 4096;

/// Returns the CPUs that the threads of a process may use.
fn cpus_of(pid: i32) -> BTreeSet<u32> {
    let mut cpus = BTreeSet::new();
    for tid in ids_in(Path::new(&format!("/proc/{pid}/task"))) {
        let Ok(set) = sched_getaffinity(Pid::from_raw(tid)) else { continue };
        for cpu in 0..CpuSet::MAX_CPU {
            if set.is_set(cpu) {
                cpus.insert(cpu as u32);
            }
        }
    }
    cpus
}

/// The next step of a sampled thread.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "nothing is decoded there"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextStep {
    /// An access to memory; if `dependent`, at an address that was read from memory.
    Access { address: u64, dependent: bool },
    /// A loop that accesses no memory.
    Compute,
    /// Not known: the code cannot be read or followed.
    Unknown,
}

/// Accesses of one program that were sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledAccesses {
    /// Samples whose next access is known.
    pub accesses: u64,
    /// Samples whose next access is at an address that was read from memory.
    pub dependent: u64,
    /// Samples in loops that access no memory.
    pub computing: u64,
    /// Samples whose code could not be read or followed.
    pub unknown: u64,
    /// Samples by thread and CPU.
    running: BTreeMap<(u32, u32), u64>,
    /// Samples before an access, by thread and cache line.
    thread_lines: HashMap<(u32, u64), u64>,
    /// Samples before an access, by CPU and cache line.
    cpu_lines: HashMap<(u32, u64), u64>,
    /// Other processes that ran on its CPUs, by process id.
    pub neighbours: BTreeMap<u32, NeighbourAccesses>,
}

/// Share of the average running time below which a thread takes no turns with the others.
const MIN_TURN_SHARE: f64 = 0.25;

/// Accesses of another process on the same CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeighbourAccesses {
    /// Samples of the process.
    pub samples: u64,
    /// Samples before an access, by cache line.
    lines: HashMap<u64, u64>,
}

impl NeighbourAccesses {
    fn add(&mut self, next: NextStep) {
        self.samples += 1;
        if let NextStep::Access { address, .. } = next {
            *self.lines.entry(address / LINE_BYTES).or_default() += 1;
        }
    }

    /// Returns the number of samples of each line.
    pub fn line_counts(&self) -> impl Iterator<Item = u64> {
        self.lines.values().copied()
    }
}

impl SampledAccesses {
    /// Adds a sample of the program itself.
    fn add(&mut self, sample: &ThreadSample, next: NextStep) {
        *self.running.entry((sample.tid, sample.cpu)).or_default() += 1;
        match next {
            NextStep::Unknown => self.unknown += 1,
            NextStep::Compute => self.computing += 1,
            NextStep::Access { address, dependent } => {
                let line = address / LINE_BYTES;
                self.accesses += 1;
                self.dependent += u64::from(dependent);
                *self.thread_lines.entry((sample.tid, line)).or_default() += 1;
                *self.cpu_lines.entry((sample.cpu, line)).or_default() += 1;
            }
        }
    }

    /// Returns the number of samples of the program itself.
    fn samples(&self) -> u64 {
        self.accesses + self.computing + self.unknown
    }

    /// Returns the threads that take turns, without those that ran for less than a quarter of the
    /// average, such as one that prepares work for the others.
    fn taking_turns(&self) -> BTreeSet<u32> {
        let mut by_thread: BTreeMap<u32, u64> = BTreeMap::new();
        for ((tid, _), count) in &self.running {
            *by_thread.entry(*tid).or_default() += count;
        }
        let samples: u64 = by_thread.values().sum();
        let min_count = MIN_TURN_SHARE * samples as f64 / by_thread.len().max(1) as f64;
        by_thread.retain(|_, count| *count as f64 >= min_count);
        by_thread.into_keys().collect()
    }

    /// Returns whether a thread was sampled on a CPU.
    fn ran_on(&self, cpu: u32) -> bool {
        self.running.keys().any(|(_, ran)| *ran == cpu)
    }

    /// Returns the average number of threads that take turns on a CPU; 1 if the program was not
    /// sampled.
    pub fn threads_per_cpu(&self) -> f64 {
        let taking_turns = self.taking_turns();
        let mut cpus = BTreeSet::new();
        for (tid, cpu) in self.running.keys() {
            if taking_turns.contains(tid) {
                cpus.insert(*cpu);
            }
        }
        taking_turns.len().max(1) as f64 / cpus.len().max(1) as f64
    }

    /// Returns the number of threads that take turns and were sampled before an access.
    pub fn threads(&self) -> usize {
        let taking_turns = self.taking_turns();
        let accessing: BTreeSet<u32> = self.thread_lines.keys().map(|(tid, _)| *tid).collect();
        accessing.intersection(&taking_turns).count()
    }

    /// Returns the number of CPUs on which a thread was sampled before an access.
    pub fn cpus(&self) -> usize {
        let cpus: BTreeSet<u32> = self.cpu_lines.keys().map(|(cpu, _)| *cpu).collect();
        cpus.len()
    }

    /// Returns the number of samples of each line, for each thread that takes turns.
    pub fn line_counts_by_thread(&self) -> impl Iterator<Item = u64> {
        let taking_turns = self.taking_turns();
        let counts =
            self.thread_lines.iter().filter(move |((tid, _), _)| taking_turns.contains(tid));
        counts.map(|(_, count)| *count)
    }

    /// Returns the number of samples of each line, for each CPU.
    pub fn line_counts_by_cpu(&self) -> impl Iterator<Item = u64> {
        self.cpu_lines.values().copied()
    }
}

/// Memory of a process, of which pages of code are read when samples need them.
struct ProcessMemory {
    file: File,
    /// Pages of code by number; `None` for one that cannot be read.
    code: Code,
}

impl ProcessMemory {
    /// Opens the memory of a process.
    fn open(pid: u32) -> Result<Self, String> {
        let path = format!("/proc/{pid}/mem");
        let file = File::open(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
        Ok(Self { file, code: HashMap::new() })
    }
}

/// Samples a program without stopping or changing it.
pub struct AccessSampler {
    cpus: Vec<CpuSamples>,
    pid: u32,
    /// Period of the samples once [`FIRST_SAMPLES`] were taken; `None` afterwards.
    later_ns: Option<u64>,
    memory: ProcessMemory,
    /// Memory of other processes on its CPUs; `None` for one that may not be read.
    neighbour_memory: HashMap<u32, Option<ProcessMemory>>,
    seen: SampledAccesses,
}

/// Samples taken often at first, before the others are spread over the whole watch. A program that
/// mostly sleeps gives no more.
const FIRST_SAMPLES: u64 = MAX_SAMPLES / 4;
/// Largest number of other processes whose accesses are sampled.
const MAX_NEIGHBOURS: usize = 16;

impl AccessSampler {
    /// Begins to sample on the CPUs that the program's threads may use now: often at first, then so
    /// that the samples of one busy CPU last for `watch`, if that is given. The error says what is
    /// missing.
    pub fn start(pid: i32, watch: Option<Duration>) -> Result<Self, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("instructions of this architecture are not decoded (x86-64 is)".to_string());
        }
        let memory = ProcessMemory::open(pid.unsigned_abs())?;
        let cpus = open_samples(pid, MIN_PERIOD.as_nanos() as u64)?;
        let later = watch.unwrap_or_default() / MAX_SAMPLES as u32;
        let later_ns = (later > MIN_PERIOD).then_some(later.as_nanos() as u64);
        Ok(Self {
            cpus,
            pid: pid.unsigned_abs(),
            later_ns,
            memory,
            neighbour_memory: HashMap::new(),
            seen: SampledAccesses::default(),
        })
    }

    /// Reads the samples since the last call.
    pub fn look(&mut self) {
        let Self { cpus, pid, memory, neighbour_memory, seen, .. } = self;
        for samples in cpus.iter_mut() {
            samples.drain(|sample| {
                if sample.pid == *pid {
                    seen.add(&sample, next_step(&sample, memory));
                } else {
                    add_neighbour(seen, neighbour_memory, &sample);
                }
            });
        }
        let samples = self.seen.samples();
        if samples >= MAX_SAMPLES {
            self.cpus.clear();
        } else if samples >= FIRST_SAMPLES {
            if let Some(later_ns) = self.later_ns.take() {
                if let Ok(cpus) = open_samples(*pid as i32, later_ns) {
                    self.cpus = cpus;
                }
            }
        }
    }

    /// Returns the accesses sampled so far.
    pub fn seen(&self) -> &SampledAccesses {
        &self.seen
    }
}

/// Opens samples of all CPUs that a process may use. The error says what is missing.
fn open_samples(pid: i32, period_ns: u64) -> Result<Vec<CpuSamples>, String> {
    let mut cpus = Vec::new();
    for cpu in cpus_of(pid) {
        match CpuSamples::open(cpu, period_ns) {
            Ok(samples) => cpus.push(samples),
            // The CPU is offline.
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

/// Adds a sample of another process, on a CPU where the program itself was sampled.
fn add_neighbour(
    seen: &mut SampledAccesses,
    memories: &mut HashMap<u32, Option<ProcessMemory>>,
    sample: &ThreadSample,
) {
    if !seen.ran_on(sample.cpu) || sample.pid == std::process::id() {
        return;
    }
    if memories.len() >= MAX_NEIGHBOURS && !memories.contains_key(&sample.pid) {
        return;
    }
    let memory = memories.entry(sample.pid).or_insert_with(|| ProcessMemory::open(sample.pid).ok());
    let step = match memory {
        Some(memory) => next_step(sample, memory),
        None => NextStep::Unknown,
    };
    seen.neighbours.entry(sample.pid).or_default().add(step);
}

/// Pages of code by number; `None` for one that cannot be read.
type Code = HashMap<u64, Option<Box<[u8; PAGE_BYTES as usize]>>>;

#[cfg(target_arch = "x86_64")]
fn next_step(sample: &ThreadSample, memory: &mut ProcessMemory) -> NextStep {
    use instructions::MAX_INSTRUCTION_BYTES;
    use std::os::unix::fs::FileExt;

    let ProcessMemory { file, code } = memory;
    instructions::next(sample, |ip| {
        let mut bytes = [0; MAX_INSTRUCTION_BYTES];
        let mut have = 0;
        while have < MAX_INSTRUCTION_BYTES {
            let address = ip.checked_add(have as u64)?;
            let page = code.entry(address / PAGE_BYTES).or_insert_with(|| {
                let mut page = Box::new([0; PAGE_BYTES as usize]);
                file.read_exact_at(&mut page[..], address - address % PAGE_BYTES)
                    .ok()
                    .map(|()| page)
            });
            let Some(page) = page else { break };
            let rest_of_page = &page[(address % PAGE_BYTES) as usize..];
            let count = rest_of_page.len().min(MAX_INSTRUCTION_BYTES - have);
            bytes[have..have + count].copy_from_slice(&rest_of_page[..count]);
            have += count;
        }
        (have > 0).then_some(bytes)
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn next_step(_: &ThreadSample, _: &mut ProcessMemory) -> NextStep {
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
            add_neighbour(&mut seen, &mut all, &moment(pid, cpu));
        }
        assert_eq!(seen.neighbours.len(), 1);
        assert_eq!(seen.neighbours[&none].samples, 2);
        for other in 0..100 {
            add_neighbour(&mut seen, &mut all, &moment(none - other, 0));
        }
        assert_eq!(seen.neighbours.len(), MAX_NEIGHBOURS);
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

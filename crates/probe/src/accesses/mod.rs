//! Which cache lines a program accesses, without hardware counters: its threads are sampled by the kernel's clock, and
//! the instructions that follow each sample tell which memory is accessed next.

#[cfg(target_arch = "x86_64")]
mod instructions;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::procfs::ids_in;
use crate::sys::{CpuSamples, Moment};

/// User time between two samples of a CPU at the least: no multiple of a millisecond, at which programs do things. A
/// sample takes up to 15 us on a guest, whose timer is the host's.
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
enum Next {
    /// It accesses memory; `dependent`: at an address that was read from memory.
    Access { address: u64, dependent: bool },
    /// It computes in a loop without memory.
    Compute,
    /// The code cannot be read or followed.
    Unknown,
}

/// The samples of one program's accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Samples whose next access is known.
    pub accesses: u64,
    /// Those of them at an address that was itself read from memory.
    pub dependent: u64,
    /// Samples in loops that access no memory.
    pub computing: u64,
    /// Samples whose code could not be read or followed.
    pub unknown: u64,
    /// Threads that ran.
    pub running: BTreeSet<u32>,
    /// CPUs that they ran on.
    pub running_cpus: BTreeSet<u32>,
    /// How often each thread was seen before an access to each cache line.
    of_threads: HashMap<(u32, u64), u64>,
    /// The same by CPU.
    of_cpus: HashMap<(u32, u64), u64>,
}

impl Accesses {
    fn add(&mut self, moment: &Moment, next: Next) {
        self.running.insert(moment.tid);
        self.running_cpus.insert(moment.cpu);
        match next {
            Next::Unknown => self.unknown += 1,
            Next::Compute => self.computing += 1,
            Next::Access { address, dependent } => {
                let line = address / LINE_BYTES;
                self.accesses += 1;
                self.dependent += u64::from(dependent);
                *self.of_threads.entry((moment.tid, line)).or_default() += 1;
                *self.of_cpus.entry((moment.cpu, line)).or_default() += 1;
            }
        }
    }

    /// Threads that were seen before an access.
    pub fn threads(&self) -> usize {
        self.of_threads.keys().map(|(tid, _)| tid).collect::<BTreeSet<_>>().len()
    }

    /// CPUs on which one was.
    pub fn cpus(&self) -> usize {
        self.of_cpus.keys().map(|(cpu, _)| cpu).collect::<BTreeSet<_>>().len()
    }

    /// How often each line of each thread was seen.
    pub fn of_threads(&self) -> impl Iterator<Item = u64> {
        self.of_threads.values().copied()
    }

    /// How often each line was seen on each CPU.
    pub fn of_cpus(&self) -> impl Iterator<Item = u64> {
        self.of_cpus.values().copied()
    }
}

/// Samples a program. Nothing of it is stopped or changed.
pub struct Sampler {
    cpus: Vec<CpuSamples>,
    pid: u32,
    memory: File,
    /// Pages of code; absent where one cannot be read.
    code: HashMap<u64, Option<Box<[u8; PAGE_BYTES as usize]>>>,
    seen: Accesses,
}

impl Sampler {
    /// Begins to sample on the CPUs that its threads may use now, so that the samples of one busy CPU last for `watch`;
    /// without it as often as is sensible. What is missing, where it cannot.
    pub fn start(pid: i32, watch: Option<Duration>) -> Result<Self, String> {
        let period = watch.unwrap_or_default() / MOST_SAMPLES as u32;
        let period_ns = period.max(LEAST_PERIOD).as_nanos() as u64;
        if !cfg!(target_arch = "x86_64") {
            return Err("instructions of this architecture are not decoded (x86-64 is)".to_string());
        }
        let path = format!("/proc/{pid}/mem");
        let memory = File::open(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
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
        let pid = pid.unsigned_abs();
        Ok(Self { cpus, pid, memory, code: HashMap::new(), seen: Accesses::default() })
    }

    /// Reads what was sampled since the last call.
    pub fn look(&mut self) {
        let Self { cpus, pid, memory, code, seen } = self;
        for samples in cpus.iter_mut() {
            samples.drain(|moment| {
                if moment.pid == *pid {
                    seen.add(&moment, next(&moment, memory, code));
                }
            });
        }
        if seen.accesses + seen.computing + seen.unknown >= MOST_SAMPLES {
            cpus.clear();
        }
    }

    /// What was seen.
    pub fn seen(&self) -> &Accesses {
        &self.seen
    }
}

type Code = HashMap<u64, Option<Box<[u8; PAGE_BYTES as usize]>>>;

#[cfg(target_arch = "x86_64")]
fn next(moment: &Moment, memory: &File, code: &mut Code) -> Next {
    use instructions::LONGEST_BYTES;
    use std::os::unix::fs::FileExt;

    instructions::next(moment, |ip| {
        let mut bytes = [0; LONGEST_BYTES];
        let mut have = 0;
        while have < LONGEST_BYTES {
            let at = ip.checked_add(have as u64)?;
            let page = code.entry(at / PAGE_BYTES).or_insert_with(|| {
                let mut page = Box::new([0; PAGE_BYTES as usize]);
                memory.read_exact_at(&mut page[..], at - at % PAGE_BYTES).ok().map(|()| page)
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
fn next(_: &Moment, _: &File, _: &mut Code) -> Next {
    Next::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_thread_and_by_cpu() {
        let mut seen = Accesses::default();
        let moment = |tid, cpu| Moment { pid: 1, tid, cpu, ip: 0, registers: [0; 16] };
        for (tid, cpu, address) in [(1, 0, 0), (1, 0, 63), (2, 0, 0), (2, 1, 64)] {
            seen.add(&moment(tid, cpu), Next::Access { address, dependent: tid == 1 });
        }
        seen.add(&moment(3, 2), Next::Compute);
        seen.add(&moment(3, 2), Next::Unknown);
        assert_eq!((seen.accesses, seen.dependent, seen.computing, seen.unknown), (4, 2, 1, 1));
        assert_eq!((seen.threads(), seen.cpus()), (2, 2));
        assert_eq!((seen.running.len(), seen.running_cpus.len()), (3, 3));
        let sorted = |counts: &mut dyn Iterator<Item = u64>| {
            let mut all: Vec<u64> = counts.collect();
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(&mut seen.of_threads()), [1, 1, 2]);
        assert_eq!(sorted(&mut seen.of_cpus()), [1, 3]);
    }
}

//! A tracer: it creates the maps, writes and loads the programs, and attaches them.
//!
//! ```text
//! /sys/kernel/btf/vmlinux -> KernelLayout -+
//!                                          +-> ProgramTarget -> programs -> load -> attach
//! Options -> TracerMaps (descriptors) -----+      (program/)   (verifier)   (link)
//! ```
//!
//! A map is memory of the kernel that programs and this process share. A program is loaded by
//! bpf(2): the kernel's verifier proves that it ends and touches only what it may, then compiles it
//! to machine code. Attached, it is called at its tracepoint on every CPU until its link is closed.
//!
//! The order matters. The task iterator runs the program `seed` for each thread that exists, before
//! anything is attached; then the small programs are attached, and that of the switch last; then
//! each CPU is made to switch once, so that the times of running threads are known.
//!
//! Everything is held by descriptors of this process: when it ends, however it ends, the kernel
//! detaches and frees everything (but for a table that was pinned).

use crate::asm::{Asm, Insn};
use crate::error::Error;
use crate::events::EventReader;
use crate::kernel::KernelLayout;
use crate::layout::{ACTIVITY_BYTES, RECORD_BYTES};
use crate::options::Options;
use crate::pairs::{self, SwitchPair};
use crate::program::{self, MapDescriptors, ProgramTarget};
use crate::sys::{self, AttachType, EntrySizes, MapKind, ProgramRuns};
use crate::threads::{self, ThreadKey, ThreadSnapshot};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use threadclock::table::layout::{MAGIC, VERSION};
use threadclock::table::{ThreadTable, ThreadTimeReader};

/// Traces every switch of the system for as long as it lives.
///
/// Needs CAP_BPF and CAP_PERFMON (or root), and a kernel with BTF (Linux 5.8 or later).
#[derive(Debug)]
pub struct Tracer {
    map: OwnedFd,
    table: ThreadTable,
    pairs: Option<OwnedFd>,
    event_reader: Option<EventReader>,
    switch_program: OwnedFd,
    /// The programs' links; they detach when they are dropped.
    _links: Vec<OwnedFd>,
}

/// Counts of what there was no room for, since the tracer was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostCounts {
    /// Times that a thread without a record was forked or switched: raise [`Options::threads`].
    pub threads: u64,
    /// Switches for which the kernel did not run the programs, as far as records show: each once
    /// for the thread that left, once for the one that came. Their counts are right, as they are
    /// the kernel's.
    pub switches: u64,
    /// Switches of pairs that were not counted as pairs: raise [`Options::pairs`].
    pub pairs: u64,
    /// Events that were not recorded: read faster, or raise
    /// [`RecordingOptions::bytes`](crate::RecordingOptions::bytes).
    pub events: u64,
}

/// The cost of the program of the switch, measured by the kernel for as long as this lives.
#[derive(Debug)]
pub struct TracerCost {
    program: OwnedFd,
    runs_before: ProgramRuns,
    _stats: OwnedFd,
}

impl TracerCost {
    /// Returns the average nanoseconds of the program in a switch, without what it takes to enter
    /// it. `None` if no switch was measured.
    pub fn ns_per_switch(&self) -> Option<f64> {
        let now = sys::program_runs(&self.program).ok()?;
        let runs = now.runs.checked_sub(self.runs_before.runs)?;
        if runs == 0 {
            return None;
        }
        Some(now.ns.saturating_sub(self.runs_before.ns) as f64 / runs as f64)
    }
}

impl Tracer {
    /// Begins to trace.
    ///
    /// Threads that exist are known at once. To know how long those that run have run, each CPU is
    /// made to switch once, which takes some milliseconds.
    ///
    /// # Errors
    /// [`Error`] says what is missing and how to get it.
    pub fn open(options: &Options) -> Result<Self, Error> {
        if let Some(fault) = options.fault() {
            return Err(Error::Options(fault));
        }
        let kernel = KernelLayout::read(Path::new("/"))?;
        let maps = TracerMaps::create(options)?;
        let target = maps.target(kernel);
        let ids = &target.kernel.ids;
        let seed = load("seed", program::seed(&target), AttachType::Iterator, ids.task_iterator)?;
        let switch = load_tracepoint("switch_switch", program::switch(&target), ids.switch)?;
        let other_programs = load_other_programs(&target, options)?;
        sys::iterate(&seed)?;
        let mut links = Vec::new();
        for program in other_programs.iter().chain([&switch]) {
            links.push(sys::attach(program)?);
        }
        switch_every_cpu();
        let event_reader = match (&options.recording, maps.events) {
            (Some(recording), Some(events)) => {
                Some(EventReader::new(events, recording.bytes as usize)?)
            }
            _ => None,
        };
        let table = ThreadTable::map(maps.table.as_raw_fd())?;
        Ok(Self {
            map: maps.table,
            table,
            pairs: maps.pairs,
            event_reader,
            switch_program: switch,
            _links: links,
        })
    }

    /// Returns a reader of other threads' CPU time and counts; make one for each thread that reads.
    ///
    /// # Errors
    /// [`ThreadTimeError::NotTraced`](threadclock::table::ThreadTimeError::NotTraced) from within a pid
    /// namespace: thread ids are those of the initial one.
    pub fn thread_times(&self) -> Result<ThreadTimeReader, Error> {
        Ok(ThreadTimeReader::new(ThreadTable::map(self.map.as_raw_fd())?)?)
    }

    /// Pins the table of threads at `path` in a BPF file system, where anybody can read it, for
    /// [`ThreadTimeReader::open`]. It stays until the file is removed; when the tracer ends, readers are
    /// told.
    ///
    /// # Errors
    /// [`Error::Os`], most often because `path` is in no BPF file system or exists already.
    pub fn pin(&self, path: &Path) -> Result<(), Error> {
        sys::pin(&self.map, path)
    }

    /// Returns all threads seen, with their activity, including ended ones until they are replaced.
    /// Empty without [`Options::activity`].
    pub fn threads(&self) -> Vec<ThreadSnapshot> {
        if self.pairs.is_some() { threads::read_threads(&self.table) } else { Vec::new() }
    }

    /// Returns how often each thread was switched to each other. A pair that is being counted right
    /// now may lack its last switches. Empty without [`Options::activity`].
    pub fn pairs(&self) -> Vec<SwitchPair> {
        match &self.pairs {
            Some(map) => pairs::read_pairs(map, &self.table),
            None => Vec::new(),
        }
    }

    /// Frees the room of pairs that will not be counted again, as one of their threads has ended.
    /// [`Tracer::pairs`] does not return them any longer.
    pub fn forget(&self, pairs: impl IntoIterator<Item = (ThreadKey, ThreadKey)>) {
        if let Some(map) = &self.pairs {
            pairs::forget(map, pairs.into_iter());
        }
    }

    /// Makes the kernel measure the programs until the result is dropped. That makes them some tens
    /// of nanoseconds slower.
    ///
    /// # Errors
    /// [`Error::Os`] without CAP_SYS_ADMIN.
    pub fn measure_own_cost(&self) -> Result<TracerCost, Error> {
        let call = "bpf(BPF_ENABLE_STATS), which needs CAP_SYS_ADMIN";
        let stats = sys::measure_programs().map_err(|source| Error::Os { call, source })?;
        let program = self.switch_program.try_clone();
        let program = program.map_err(|source| Error::Os { call: "dup", source })?;
        let call = "bpf(BPF_OBJ_GET_INFO_BY_FD)";
        let runs = sys::program_runs(&program).map_err(|source| Error::Os { call, source })?;
        Ok(TracerCost { program, runs_before: runs, _stats: stats })
    }

    /// Returns the reader of the recording, if one was asked for.
    pub fn event_reader(&mut self) -> Option<&mut EventReader> {
        self.event_reader.as_mut()
    }

    /// Returns the counts of what there was no room for.
    pub fn lost(&self) -> LostCounts {
        let header = self.table.header();
        LostCounts {
            threads: header.threads_lost.load(Relaxed),
            switches: header.switches_missed.load(Relaxed),
            pairs: header.pairs_lost.load(Relaxed),
            events: header.events_lost.load(Relaxed),
        }
    }
}

/// Descriptors of the maps, and the shape of the table among them.
#[derive(Debug)]
pub(crate) struct TracerMaps {
    pub(crate) table: OwnedFd,
    pub(crate) free: OwnedFd,
    /// Of a counter: elements whose threads have ended, until they are read.
    pub(crate) ended: Option<OwnedFd>,
    pairs: Option<OwnedFd>,
    events: Option<OwnedFd>,
    shape: TableShape,
}

/// Positions of the index and the records in the table, in elements.
#[derive(Clone, Copy, Debug)]
struct TableShape {
    record_bytes: u32,
    tids: u32,
    index_at: u32,
    records_at: u32,
    records: u32,
}

impl TableShape {
    fn new(options: &Options, tids: u32) -> Self {
        let record_bytes = if options.activity { ACTIVITY_BYTES } else { RECORD_BYTES };
        let index_at = 1;
        let records_at = index_at + (tids * size_of::<u32>() as u32).div_ceil(record_bytes);
        Self { record_bytes, tids, index_at, records_at, records: options.threads }
    }

    /// Returns element 0: the plain fields of `threadclock::table::layout::TableHeader`, then zeros.
    fn header(&self) -> Vec<u8> {
        let words =
            [VERSION, self.record_bytes, self.tids, self.index_at, self.records_at, self.records];
        let mut header = MAGIC.to_ne_bytes().to_vec();
        for word in words {
            header.extend(word.to_ne_bytes());
        }
        header.resize(self.record_bytes as usize, 0);
        header
    }
}

impl TracerMaps {
    pub(crate) fn create(options: &Options) -> Result<Self, Error> {
        let shape = TableShape::new(options, pid_max());
        let table = create_table(&shape)?;
        let free = create_free_queue(&shape)?;
        let pairs = if options.activity {
            let sizes = EntrySizes { key: 16, value: 16 };
            Some(sys::create_map("switch_pairs", MapKind::Hash, sizes, options.pairs, 0)?)
        } else {
            None
        };
        let events = match &options.recording {
            Some(recording) => {
                let sizes = EntrySizes { key: 0, value: 0 };
                let kind = MapKind::RingBuffer;
                Some(sys::create_map("switch_events", kind, sizes, recording.bytes, 0)?)
            }
            None => None,
        };
        Ok(Self { table, free, ended: None, pairs, events, shape })
    }

    /// Creates the maps of a counter.
    pub(crate) fn create_for_counter(options: &Options) -> Result<Self, Error> {
        let maps = Self::create(options)?;
        let sizes = EntrySizes { key: 0, value: 4 };
        let ended = sys::create_map("switch_ended", MapKind::Queue, sizes, maps.shape.records, 0)?;
        Ok(Self { ended: Some(ended), ..maps })
    }

    /// Returns the element of the first record.
    pub(crate) fn first_record(&self) -> u32 {
        self.shape.records_at
    }

    pub(crate) fn target(&self, kernel: KernelLayout) -> ProgramTarget {
        let maps = MapDescriptors {
            table: self.table.as_raw_fd(),
            free: self.free.as_raw_fd(),
            ended: self.ended.as_ref().map(AsRawFd::as_raw_fd),
            pairs: self.pairs.as_ref().map(AsRawFd::as_raw_fd),
            events: self.events.as_ref().map(AsRawFd::as_raw_fd),
        };
        let TableShape { record_bytes, tids, index_at, .. } = self.shape;
        ProgramTarget { kernel, maps, tids, record_bytes, index_at }
    }
}

/// Creates the table with its header. Frozen, it can be written by programs only.
fn create_table(shape: &TableShape) -> Result<OwnedFd, Error> {
    let entries = shape.records_at + shape.records;
    let sizes = EntrySizes { key: 4, value: shape.record_bytes };
    let table = sys::create_map("switch_threads", MapKind::Array, sizes, entries, sys::MAPPABLE)?;
    sys::update_map(&table, &0u32.to_ne_bytes(), &shape.header())?;
    sys::freeze(&table)?;
    Ok(table)
}

/// Creates the queue of free records with all of them in it.
fn create_free_queue(shape: &TableShape) -> Result<OwnedFd, Error> {
    let sizes = EntrySizes { key: 0, value: 4 };
    let free = sys::create_map("switch_free", MapKind::Queue, sizes, shape.records, 0)?;
    for element in shape.records_at..shape.records_at + shape.records {
        sys::update_map(&free, &[], &element.to_ne_bytes())?;
    }
    Ok(free)
}

/// Returns the number of thread ids that the system gives. If it is raised later, threads above it
/// count as lost.
fn pid_max() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    // PID_MAX_LIMIT of include/linux/threads.h.
    text.trim().parse().unwrap_or(1 << 22).clamp(1, 1 << 22)
}

/// Instructions of a program, or the fault of this crate in writing them.
pub(crate) type WrittenProgram = io::Result<Vec<Insn>>;

pub(crate) fn load(
    name: &'static str,
    program: WrittenProgram,
    attach: AttachType,
    id: u32,
) -> Result<OwnedFd, Error> {
    let instructions = program.map_err(|source| Error::Os { call: "writing a program", source })?;
    sys::load(name, &instructions, attach, id)
}

pub(crate) fn load_tracepoint(
    name: &'static str,
    program: WrittenProgram,
    id: u32,
) -> Result<OwnedFd, Error> {
    load(name, program, AttachType::Tracepoint, id)
}

/// Loads the programs that are attached before that of the switch.
fn load_other_programs(target: &ProgramTarget, options: &Options) -> Result<Vec<OwnedFd>, Error> {
    let ids = &target.kernel.ids;
    let mut programs = vec![
        load_tracepoint("switch_exec", program::exec(target), ids.exec)?,
        load_tracepoint("switch_fork", program::fork(target), ids.fork)?,
        load_tracepoint("switch_migrate", program::migrate(target), ids.migrate)?,
    ];
    if options.recording.as_ref().is_some_and(|recording| recording.wakeups) {
        for (is_new, id) in [(false, ids.wakeup), (true, ids.wakeup_new)] {
            programs.push(load_tracepoint("switch_wakeup", program::wakeup(target, is_new), id)?);
        }
    }
    Ok(programs)
}

/// Attaches a program that does nothing to `sched_switch`. Returns the program and its link.
pub(crate) fn empty_probe() -> Result<(OwnedFd, OwnedFd), Error> {
    let id = KernelLayout::read(Path::new("/"))?.ids.switch;
    let mut asm = Asm::default();
    asm.exit();
    let program = load_tracepoint("switch_empty", asm.finish(), id)?;
    let link = sys::attach(&program)?;
    Ok((program, link))
}

/// Moves the calling thread to each CPU in turn, and back: what ran there is switched out, and its
/// time known. It starts no thread for it, as the first one of a process changes what it does on
/// signal 33 (nptl), which its children inherit.
fn switch_every_cpu() {
    // Where it is refused, those that run are known from their next switch on.
    let Some(allowed) = sys::affinity() else { return };
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    for cpu in parse_cpu_list(&online) {
        let mut only_cpu = vec![0; cpu / 64 + 1];
        only_cpu[cpu / 64] = 1 << (cpu % 64);
        sys::set_affinity(&only_cpu);
    }
    sys::set_affinity(&allowed);
}

/// Parses a list of CPUs such as `0-3,8`. Parts that are no numbers are skipped.
fn parse_cpu_list(list: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>())
        {
            cpus.extend(first..=last.min(MAX_CPU));
        }
    }
    cpus
}

/// Limits the CPUs of a list whose end makes no sense.
const MAX_CPU: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_parse_cpu_list() {
        assert_eq!(parse_cpu_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_cpu_list("0\n"), [0]);
        assert_eq!(parse_cpu_list(""), [0; 0]);
        assert_eq!(parse_cpu_list("x,2-y,4"), [4]);
    }

    #[test]
    fn the_index_lies_before_the_records() {
        for activity in [false, true] {
            let options = Options { activity, ..Options::default() };
            for tids in [1, 32_768, 1 << 22] {
                let shape = TableShape::new(&options, tids);
                assert!((shape.records_at - shape.index_at) * shape.record_bytes >= 4 * tids);
                assert_eq!(shape.header().len(), shape.record_bytes as usize);
            }
        }
    }
}

//! Maps made, programs loaded and attached. All of it is held by descriptors of this process: when
//! it ends, however it ends, the kernel detaches and frees everything (but for a table that was
//! pinned).

use crate::error::Error;
use crate::events::EventReader;
use crate::kernel::Kernel;
use crate::layout::{ACTIVITY_BYTES, RECORD_BYTES};
use crate::options::Options;
use crate::pairs::{self, SwitchPair};
use crate::program::{self, Maps, Setting};
use crate::sys::{self, Attach, MapKind};
use crate::threads::{self, ThreadKey, ThreadSnapshot};
use std::fs;
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
    /// The program of the switch.
    switch: OwnedFd,
    /// Programs' links; they detach when they are dropped.
    _links: Vec<OwnedFd>,
}

/// What there was no room for, since the tracer was opened.
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

/// What the program of the switch takes, measured by the kernel for as long as this lives.
#[derive(Debug)]
pub struct TracerCost {
    program: OwnedFd,
    before: (u64, u64),
    _stats: OwnedFd,
}

impl TracerCost {
    /// Nanoseconds a switch, on average; what it takes to get into the program is not in it. `None`
    /// if no switch was measured.
    pub fn ns_per_switch(&self) -> Option<f64> {
        let (ns, runs) = sys::run_time(&self.program).ok()?;
        let runs = runs.checked_sub(self.before.1).filter(|runs| *runs > 0)?;
        Some(ns.saturating_sub(self.before.0) as f64 / runs as f64)
    }
}

impl Tracer {
    /// Begins to trace.
    ///
    /// Threads that are there are known at once. To know how long those that run have run, each CPU
    /// is made to switch once, which takes some milliseconds.
    ///
    /// # Errors
    /// [`Error`] says what is missing and how to get it.
    pub fn open(options: &Options) -> Result<Self, Error> {
        if let Some(fault) = options.fault() {
            return Err(Error::Options(fault));
        }
        let kernel = Kernel::read(Path::new("/"))?;
        let parts = Parts::make(options)?;
        let setting = parts.setting(kernel);
        let ids = &setting.kernel.ids;
        let seed = load("seed", program::seed(&setting), Attach::Iterator, ids.task_iterator)?;
        let switch = on_tracepoint("switch_switch", program::switch(&setting), ids.switch)?;
        let programs = load_others(&setting, options)?;
        sys::iterate(&seed)?;
        let programs = programs.iter().chain([&switch]);
        let links = programs.map(sys::attach).collect::<Result<_, _>>()?;
        switch_every_cpu();
        let event_reader = options.recording.as_ref().zip(parts.events);
        let event_reader = event_reader
            .map(|(recording, events)| EventReader::new(events, recording.bytes as usize))
            .transpose()?;
        let table = ThreadTable::map(parts.table.as_raw_fd())?;
        Ok(Self {
            map: parts.table,
            table,
            pairs: parts.pairs,
            event_reader,
            switch,
            _links: links,
        })
    }

    /// A reader of other threads' CPU time and counts; make one for each thread that reads.
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
    /// [`Error::Os`], most often because `path` is in no BPF file system or is there already.
    pub fn pin(&self, path: &Path) -> Result<(), Error> {
        sys::pin(&self.map, path)
    }

    /// All threads seen, with their activity, ended ones among them until they are replaced. Empty
    /// without [`Options::activity`].
    pub fn threads(&self) -> Vec<ThreadSnapshot> {
        if self.pairs.is_some() { threads::all(&self.table) } else { Vec::new() }
    }

    /// How often each thread was switched to each other. A pair that is being counted right now may
    /// lack its last switches. Empty without [`Options::activity`].
    pub fn pairs(&self) -> Vec<SwitchPair> {
        self.pairs.as_ref().map_or_else(Vec::new, |map| pairs::all(map, &self.table))
    }

    /// Frees the room of pairs that will not be counted again, as one of their threads has ended.
    /// What was counted of them is not in [`Tracer::pairs`] any longer.
    pub fn forget(&self, pairs: impl IntoIterator<Item = (ThreadKey, ThreadKey)>) {
        if let Some(map) = &self.pairs {
            pairs::forget(map, pairs.into_iter());
        }
    }

    /// From now on the kernel measures the programs, which makes them some tens of nanoseconds
    /// slower, until what this returns is dropped.
    ///
    /// # Errors
    /// [`Error::Os`] without CAP_SYS_ADMIN.
    pub fn measure_own_cost(&self) -> Result<TracerCost, Error> {
        let os = |call| move |source| Error::Os { call, source };
        let call = "bpf(BPF_ENABLE_STATS), which needs CAP_SYS_ADMIN";
        let stats = sys::measure_programs().map_err(os(call))?;
        let program = self.switch.try_clone().map_err(os("dup"))?;
        let before = sys::run_time(&program).map_err(os("bpf(BPF_OBJ_GET_INFO_BY_FD)"))?;
        Ok(TracerCost { program, before, _stats: stats })
    }

    /// The recording, if one was asked for.
    pub fn event_reader(&mut self) -> Option<&mut EventReader> {
        self.event_reader.as_mut()
    }

    /// What there was no room for.
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

/// The maps.
struct Parts {
    table: OwnedFd,
    free: OwnedFd,
    pairs: Option<OwnedFd>,
    events: Option<OwnedFd>,
    shape: Shape,
}

/// Where in the table what lies, in elements.
#[derive(Clone, Copy)]
struct Shape {
    record_bytes: u32,
    tids: u32,
    index_at: u32,
    records_at: u32,
    records: u32,
}

impl Shape {
    fn of(options: &Options, tids: u32) -> Self {
        let record_bytes = if options.activity { ACTIVITY_BYTES } else { RECORD_BYTES };
        let index_at = 1;
        let records_at = index_at + (tids * size_of::<u32>() as u32).div_ceil(record_bytes);
        Self { record_bytes, tids, index_at, records_at, records: options.threads }
    }

    /// The plain fields of `threadclock::table::layout::TableHeader`.
    fn header(&self) -> Vec<u8> {
        let words =
            [VERSION, self.record_bytes, self.tids, self.index_at, self.records_at, self.records];
        let mut header = MAGIC.to_ne_bytes().to_vec();
        header.extend(words.into_iter().flat_map(u32::to_ne_bytes));
        header.resize(self.record_bytes as usize, 0);
        header
    }
}

impl Parts {
    fn make(options: &Options) -> Result<Self, Error> {
        let shape = Shape::of(options, pid_max());
        let entries = shape.records_at + shape.records;
        let sizes = (4, shape.record_bytes);
        let table =
            sys::create_map("switch_threads", MapKind::Array, sizes, entries, sys::MAPPABLE)?;
        sys::update_map(&table, &0u32.to_ne_bytes(), &shape.header())?;
        sys::freeze(&table)?;
        let free = sys::create_map("switch_free", MapKind::Queue, (0, 4), shape.records, 0)?;
        for element in shape.records_at..entries {
            sys::update_map(&free, &[], &element.to_ne_bytes())?;
        }
        let hash = |entries| sys::create_map("switch_pairs", MapKind::Hash, (16, 16), entries, 0);
        let ring = |bytes| sys::create_map("switch_events", MapKind::RingBuffer, (0, 0), bytes, 0);
        let pairs = options.activity.then(|| hash(options.pairs)).transpose()?;
        let events =
            options.recording.as_ref().map(|recording| ring(recording.bytes)).transpose()?;
        Ok(Self { table, free, pairs, events, shape })
    }

    fn setting(&self, kernel: Kernel) -> Setting {
        let number = |map: &OwnedFd| map.as_raw_fd();
        let maps = Maps {
            table: number(&self.table),
            free: number(&self.free),
            pairs: self.pairs.as_ref().map(number),
            events: self.events.as_ref().map(number),
        };
        let Shape { record_bytes, tids, index_at, .. } = self.shape;
        Setting { kernel, maps, tids, record_bytes, index_at }
    }
}

/// Thread ids that the system gives; raised later, threads above it count as lost.
fn pid_max() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    // PID_MAX_LIMIT of include/linux/threads.h.
    text.trim().parse().unwrap_or(1 << 22).clamp(1, 1 << 22)
}

type Written = std::io::Result<Vec<crate::asm::Insn>>;

fn load(name: &'static str, program: Written, attach: Attach, id: u32) -> Result<OwnedFd, Error> {
    let instructions = program.map_err(|source| Error::Os { call: "writing a program", source })?;
    sys::load(name, &instructions, attach, id)
}

fn on_tracepoint(name: &'static str, program: Written, id: u32) -> Result<OwnedFd, Error> {
    load(name, program, Attach::Tracepoint, id)
}

/// Those that are attached before that of the switch.
fn load_others(setting: &Setting, options: &Options) -> Result<Vec<OwnedFd>, Error> {
    let ids = &setting.kernel.ids;
    let mut programs = vec![
        on_tracepoint("switch_exec", program::exec(setting), ids.exec)?,
        on_tracepoint("switch_fork", program::fork(setting), ids.fork)?,
        on_tracepoint("switch_migrate", program::migrate(setting), ids.migrate)?,
    ];
    if options.recording.as_ref().is_some_and(|recording| recording.wakeups) {
        for (is_new, id) in [(false, ids.wakeup), (true, ids.wakeup_new)] {
            programs.push(on_tracepoint("switch_wakeup", program::wakeup(setting, is_new), id)?);
        }
    }
    Ok(programs)
}

/// The program and its link.
pub(crate) fn empty_probe() -> Result<(OwnedFd, OwnedFd), Error> {
    let id = Kernel::read(Path::new("/"))?.ids.switch;
    let mut asm = crate::asm::Asm::default();
    asm.exit();
    let program = on_tracepoint("switch_empty", asm.finish(), id)?;
    let link = sys::attach(&program)?;
    Ok((program, link))
}

/// Goes to each CPU in turn, and back: what ran there is switched out, and its time known. By no
/// thread of its own, as the first one of a process changes what it does on signal 33 (nptl), which
/// its children inherit.
fn switch_every_cpu() {
    // Where it is refused, those that run are known from their next switch on.
    let Some(own) = sys::affinity() else { return };
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    for cpu in cpus(&online) {
        let mut only = vec![0; cpu / 64 + 1];
        only[cpu / 64] = 1 << (cpu % 64);
        sys::set_affinity(&only);
    }
    sys::set_affinity(&own);
}

/// The CPUs of a list such as `0-3,8`.
fn cpus(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?.min(1 << 16))
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpus("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(cpus("0\n"), [0]);
        assert_eq!(cpus(""), [0; 0]);
        assert_eq!(cpus("x,2-y,4"), [4]);
    }

    #[test]
    fn the_index_lies_before_the_records() {
        for activity in [false, true] {
            let options = Options { activity, ..Options::default() };
            for tids in [1, 32_768, 1 << 22] {
                let shape = Shape::of(&options, tids);
                assert!((shape.records_at - shape.index_at) * shape.record_bytes >= 4 * tids);
                assert_eq!(shape.header().len(), shape.record_bytes as usize);
            }
        }
    }
}

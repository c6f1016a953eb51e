//! Perf events: samples of threads by the kernel's clock, counts of events, timers
//! (perf_event_open(2), include/uapi/linux/perf_event.h).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rundata::ring::CountedEvent;
use rustix::io::Errno;
use rustix::param::page_size;

use super::check;
use super::mapping::MemoryMapping;

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_CACHE: u32 = 3;
const HW_CYCLES: u64 = 0;
const HW_INSTRUCTIONS: u64 = 1;
const SW_CPU_CLOCK: u64 = 0;
const SW_PAGE_FAULTS: u64 = 2;
const SW_CONTEXT_SWITCHES: u64 = 3;
const SW_MIGRATIONS: u64 = 4;
/// Numbers of the caches L1D, LL, DTLB and ITLB, and the bit of missed loads.
const L1D: u64 = 0;
const LAST_LEVEL: u64 = 2;
const DATA_TLB: u64 = 3;
const INSTRUCTION_TLB: u64 = 4;
const LOAD_MISSES: u64 = 1 << 16;
/// TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, GROUP.
const READ_GROUP_AND_TIMES: u64 = 1 | 2 | 8;
const INHERIT: u64 = 1 << 1;
/// Only threads inherit the event, not forked processes (Linux 5.13).
const INHERIT_THREAD: u64 = 1 << 35;
const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const FD_CLOEXEC: u64 = 8;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const RECORD_SAMPLE: u32 = 9;
/// Bits of the registers AX, BX, CX, DX, SI, DI, BP, SP and R8 to R15
/// (arch/x86/include/uapi/asm/perf_regs.h).
const REGISTERS: u64 = 0xff_00ff;
const REGISTER_COUNT: usize = 16;
/// Pages of the sample ring, a power of two: room for samples every 250 us for a third of a second.
const RING_PAGES: usize = 64;
/// Offsets of `data_head` and `data_tail` in `struct perf_event_mmap_page`.
const HEAD_OFFSET: usize = 1024;
const TAIL_OFFSET: usize = 1032;

/// The kernel's `struct perf_event_attr` up to PERF_ATTR_SIZE_VER3, which has the registers.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    /// Fields wakeup_events and bp_type, config1, config2, branch_sample_type.
    unused: [u64; 4],
    sample_regs_user: u64,
    /// Fields sample_stack_user, clockid.
    unused_too: u64,
}

impl EventAttributes {
    /// Builds the attributes of the CPU's clock with a sample every `period_ns` nanoseconds.
    fn every(period_ns: u64) -> Self {
        Self {
            kind: TYPE_SOFTWARE,
            size: size_of::<Self>() as u32,
            config: SW_CPU_CLOCK,
            sample_period: period_ns,
            ..Self::default()
        }
    }
}

/// A sample of a thread in user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// CPU that it ran on.
    pub cpu: u32,
    /// Address of the next instruction.
    pub ip: u64,
    /// Registers AX, BX, CX, DX, SI, DI, BP, SP, R8 to R15.
    pub registers: [u64; REGISTER_COUNT],
}

/// Opens an event of one thread on all CPUs (`cpu` is -1), or of all threads on one CPU (`tid` is
/// -1).
fn open(attributes: &EventAttributes, tid: libc::pid_t, cpu: i32) -> Result<OwnedFd, Errno> {
    open_in(None, attributes, tid, cpu)
}

/// Opens an event in the group of another.
fn open_in(
    group: Option<&OwnedFd>,
    attributes: &EventAttributes,
    tid: libc::pid_t,
    cpu: i32,
) -> Result<OwnedFd, Errno> {
    let (call, attributes) = (libc::SYS_perf_event_open, &raw const *attributes);
    let group: libc::c_int = group.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: the kernel reads the attributes, which are whole; the call returns a new descriptor.
    unsafe {
        let fd = libc::syscall(call, attributes, tid, cpu, group, FD_CLOEXEC);
        Ok(OwnedFd::from_raw_fd(check(fd)? as i32))
    }
}

/// A timer that interrupts a CPU and wakes no task: an event of the CPU's clock without a buffer
/// for its samples. It ends when this is dropped.
pub struct CpuTimer {
    _event: OwnedFd,
}

impl CpuTimer {
    /// Starts a timer with an interrupt every `period_ns` nanoseconds.
    pub fn open(cpu: u32, period_ns: u64) -> Result<Self, Errno> {
        Ok(Self { _event: open(&EventAttributes::every(period_ns), -1, cpu as i32)? })
    }
}

/// Count of the instructions in user space of a thread and of the threads that it starts from now
/// on; before Linux 5.13 also of processes that it forks.
pub struct TaskInstructions(OwnedFd);

impl TaskInstructions {
    /// Opens the count. ENOENT if the machine does not count instructions.
    pub fn open(tid: i32) -> Result<Self, Errno> {
        let attributes = EventAttributes {
            kind: TYPE_HARDWARE,
            size: size_of::<EventAttributes>() as u32,
            config: HW_INSTRUCTIONS,
            flags: INHERIT | INHERIT_THREAD | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            ..EventAttributes::default()
        };
        let event = open(&attributes, tid, -1).or_else(|errno| match errno {
            Errno::INVAL => {
                let flags = attributes.flags & !INHERIT_THREAD;
                open(&EventAttributes { flags, ..attributes }, tid, -1)
            }
            errno => Err(errno),
        });
        Ok(Self(event?))
    }

    /// Reads how many instructions were executed so far.
    pub fn read(&self) -> Result<i64, Errno> {
        let mut count = [0_u8; 8];
        let bytes = rustix::io::read(&self.0, &mut count)?;
        if bytes == count.len() { Ok(i64::from_ne_bytes(count)) } else { Err(Errno::IO) }
    }
}

/// Opens an event that counts the switches of this process, and of all that it forks or starts from
/// now on, until it is closed.
pub fn count_own_switches() -> Result<OwnedFd, Errno> {
    let attributes = EventAttributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<EventAttributes>() as u32,
        config: SW_CONTEXT_SWITCHES,
        flags: INHERIT,
        ..EventAttributes::default()
    };
    open(&attributes, 0, -1)
}

/// Returns the type and the number of an event.
fn type_and_config(event: CountedEvent) -> (u32, u64) {
    match event {
        CountedEvent::Cycles => (TYPE_HARDWARE, HW_CYCLES),
        CountedEvent::Instructions => (TYPE_HARDWARE, HW_INSTRUCTIONS),
        CountedEvent::L1Misses => (TYPE_CACHE, L1D | LOAD_MISSES),
        CountedEvent::LastLevelMisses => (TYPE_CACHE, LAST_LEVEL | LOAD_MISSES),
        CountedEvent::DataTlbMisses => (TYPE_CACHE, DATA_TLB | LOAD_MISSES),
        CountedEvent::InstructionTlbMisses => (TYPE_CACHE, INSTRUCTION_TLB | LOAD_MISSES),
        CountedEvent::ContextSwitches => (TYPE_SOFTWARE, SW_CONTEXT_SWITCHES),
        CountedEvent::PageFaults => (TYPE_SOFTWARE, SW_PAGE_FAULTS),
        CountedEvent::Migrations => (TYPE_SOFTWARE, SW_MIGRATIONS),
    }
}

/// Largest number of events of a group: all that exist.
const MAX_EVENTS: usize = CountedEvent::ALL.len();

/// Counts of a CPU at a moment.
#[derive(Clone, Copy)]
pub struct EventCounts {
    /// Times for which the group was enabled and did count.
    times: [u64; 2],
    counts: [u64; MAX_EVENTS],
}

/// Events of everything that runs on one CPU, counted together.
pub struct CpuEvents {
    /// Events of the group, its leader first.
    events: Vec<OwnedFd>,
    /// Counts of two readings and of what always runs between them.
    empty: [u64; MAX_EVENTS],
}

impl CpuEvents {
    /// Counts these events from now on. ENOENT or EOPNOTSUPP if the machine has no such counter,
    /// EINVAL or EBUSY if it has too few for all of them, EACCES without the privilege.
    pub fn open(cpu: u32, events: &[CountedEvent]) -> Result<Self, (CountedEvent, Errno)> {
        let mut opened: Vec<OwnedFd> = Vec::new();
        for event in events {
            let (kind, config) = type_and_config(*event);
            let attributes = EventAttributes {
                kind,
                config,
                size: size_of::<EventAttributes>() as u32,
                read_format: READ_GROUP_AND_TIMES,
                ..EventAttributes::default()
            };
            let descriptor = open_in(opened.first(), &attributes, -1, cpu as i32);
            opened.push(descriptor.map_err(|errno| (*event, errno))?);
        }
        let mut group = Self { events: opened, empty: [0; MAX_EVENTS] };
        let does_count = group.measure_empty(|| ());
        match events.last() {
            Some(last) if !does_count => Err((*last, Errno::BUSY)),
            _ => Ok(group),
        }
    }

    /// Measures what two readings with `between` between them count, to subtract it later. Returns
    /// false if the kernel does not count.
    pub fn measure_empty(&mut self, between: impl Fn()) -> bool {
        // The minimum of several, as interrupts count, too.
        const READINGS: usize = 9;
        let mut empty = [u64::MAX; MAX_EVENTS];
        self.empty = [0; MAX_EVENTS];
        for _ in 0..READINGS {
            let before = self.read();
            between();
            let after = self.read();
            let (Some(before), Some(after)) = (before, after) else { return false };
            let Some(counted) = self.between(&before, &after) else { return false };
            for (minimum, count) in empty.iter_mut().zip(counted) {
                *minimum = (*minimum).min(count);
            }
        }
        self.empty = empty;
        true
    }

    /// Reads the counts so far.
    #[inline]
    pub fn read(&self) -> Option<EventCounts> {
        // The number of events, both times, and the counts.
        let mut words = [0_u64; 3 + MAX_EVENTS];
        let wanted = 8 * (3 + self.events.len());
        // SAFETY: any bytes make numbers, and these have no padding.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size_of_val(&words))
        };
        let read = rustix::io::read(self.events.first()?, bytes).ok()?;
        let [_, enabled, running, counts @ ..] = words;
        (read == wanted).then_some(EventCounts { times: [enabled, running], counts })
    }

    /// Returns what was counted between two readings, without the readings themselves. `None` if
    /// the kernel did not count all the time, because the counters are shared.
    pub fn between(&self, before: &EventCounts, after: &EventCounts) -> Option<[u64; MAX_EVENTS]> {
        let [enabled, running]: [u64; 2] =
            std::array::from_fn(|index| after.times[index].wrapping_sub(before.times[index]));
        if enabled != running {
            return None;
        }
        Some(std::array::from_fn(|index| {
            let counted = after.counts[index].wrapping_sub(before.counts[index]);
            counted.saturating_sub(self.empty[index])
        }))
    }
}

/// Samples of everything that runs in user space on one CPU, until this is dropped.
pub struct CpuSamples {
    ring: MemoryMapping,
    _event: OwnedFd,
}

impl CpuSamples {
    /// Takes a sample every `period_ns` nanoseconds of user time.
    pub fn open(cpu: u32, period_ns: u64) -> Result<Self, Errno> {
        let attributes = EventAttributes {
            sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_CPU | SAMPLE_REGS_USER,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            sample_regs_user: REGISTERS,
            ..EventAttributes::every(period_ns)
        };
        let event = open(&attributes, -1, cpu as i32)?;
        let bytes = (1 + RING_PAGES) * page_size();
        let ring = MemoryMapping::of_file(&event, bytes, true)?;
        Ok(Self { ring, _event: event })
    }

    /// Returns a word of the ring's first page.
    fn control_word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the first page, aligned, and used atomically by the kernel and by us.
        unsafe { &*self.ring.base.byte_add(offset).cast() }
    }

    /// Reads a word of the samples at an offset that only grows.
    fn word(&self, offset: u64) -> u64 {
        let data_bytes = (self.ring.bytes - page_size()) as u64;
        // SAFETY: records consist of whole words, and the offset is taken modulo the ring's size.
        unsafe {
            let data = self.ring.base.byte_add(page_size());
            data.byte_add((offset % data_bytes) as usize).cast::<u64>().read()
        }
    }

    /// Passes the samples since the last call to `each`, oldest first.
    pub fn drain(&mut self, mut each: impl FnMut(ThreadSample)) {
        // The kernel writes the samples before it moves the head.
        let head = self.control_word(HEAD_OFFSET).load(Ordering::Acquire);
        let mut tail = self.control_word(TAIL_OFFSET).load(Ordering::Relaxed);
        while tail < head {
            let header = self.word(tail);
            let (kind, bytes) = (header as u32, header >> 48);
            if bytes < 8 || tail + bytes > head {
                tail = head;
                break;
            }
            // A record has header, instruction, thread, CPU, the registers' ABI, and the registers.
            if kind == RECORD_SAMPLE && bytes as usize >= 8 * (5 + REGISTER_COUNT) {
                let thread = self.word(tail + 16);
                each(ThreadSample {
                    pid: thread as u32,
                    tid: (thread >> 32) as u32,
                    cpu: self.word(tail + 24) as u32,
                    ip: self.word(tail + 8),
                    registers: std::array::from_fn(|index| self.word(tail + 40 + 8 * index as u64)),
                });
            }
            tail += bytes;
        }
        // Everything was read before the kernel may write there again.
        self.control_word(TAIL_OFFSET).store(tail, Ordering::Release);
    }
}

//! Samples of what runs on a CPU, by the kernel's clock: perf_event_open(2),
//! include/uapi/linux/perf_event.h.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::param::page_size;

use super::check;
use super::mapping::MemoryMapping;
use model::ring::Event;

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_CACHE: u32 = 3;
const HW_CYCLES: u64 = 0;
const HW_INSTRUCTIONS: u64 = 1;
const SW_CPU_CLOCK: u64 = 0;
const SW_PAGE_FAULTS: u64 = 2;
const SW_CONTEXT_SWITCHES: u64 = 3;
const SW_MIGRATIONS: u64 = 4;
/// Of the caches L1D, LL, DTLB and ITLB: loads, misses.
const L1D: u64 = 0;
const LAST_LEVEL: u64 = 2;
const DATA_TLB: u64 = 3;
const INSTRUCTION_TLB: u64 = 4;
const LOAD_MISSES: u64 = 1 << 16;
/// TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, GROUP.
const READ_GROUP_AND_TIMES: u64 = 1 | 2 | 8;
const INHERIT: u64 = 1 << 1;
/// Only threads inherit, not the processes that are forked (Linux 5.13).
const INHERIT_THREAD: u64 = 1 << 35;
const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const FD_CLOEXEC: u64 = 8;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const RECORD_SAMPLE: u32 = 9;
/// AX, BX, CX, DX, SI, DI, BP, SP and R8 to R15 (arch/x86/include/uapi/asm/perf_regs.h).
const REGISTERS: u64 = 0xff_00ff;
const REGISTER_COUNT: usize = 16;
/// Pages of the ring, a power of two: a third of a second of samples every 250 us.
const RING_PAGES: usize = 64;
/// Places of `data_head` and `data_tail` in `struct perf_event_mmap_page`.
const HEAD_OFFSET: usize = 1024;
const TAIL_OFFSET: usize = 1032;

/// `struct perf_event_attr` up to PERF_ATTR_SIZE_VER3, which has the registers.
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
    /// wakeup_events and bp_type, config1, config2, branch_sample_type.
    unused: [u64; 4],
    sample_regs_user: u64,
    /// sample_stack_user, clockid.
    unused_too: u64,
}

impl EventAttributes {
    /// Of the CPU's clock, one sample every so many nanoseconds.
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

/// A moment of a thread in user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// The instruction that it was about to execute.
    pub ip: u64,
    /// Its registers AX, BX, CX, DX, SI, DI, BP, SP, R8 to R15.
    pub registers: [u64; REGISTER_COUNT],
}

/// Opens an event of a thread on all CPUs, or of all threads on one: the other of the two is -1.
fn open(attributes: &EventAttributes, tid: libc::pid_t, cpu: i32) -> Result<OwnedFd, Errno> {
    open_in(None, attributes, tid, cpu)
}

/// The same in the group of another.
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

/// A timer that interrupts a CPU and wakes nobody: an event of the CPU's clock whose samples have
/// nowhere to go. It ends when this is dropped.
pub struct CpuTimer {
    _event: OwnedFd,
}

impl CpuTimer {
    /// One interrupt every so many nanoseconds.
    pub fn open(cpu: u32, period_ns: u64) -> Result<Self, Errno> {
        Ok(Self { _event: open(&EventAttributes::every(period_ns), -1, cpu as i32)? })
    }
}

/// The instructions of a thread, and of the threads that it starts from now on, in user space.
/// Before Linux 5.13 those of the processes that it forks, too.
pub struct TaskInstructions(OwnedFd);

impl TaskInstructions {
    /// ENOENT where the machine does not count them.
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

    /// How many they have executed.
    pub fn read(&self) -> Result<i64, Errno> {
        let mut count = [0_u8; 8];
        let bytes = rustix::io::read(&self.0, &mut count)?;
        (bytes == count.len()).then(|| i64::from_ne_bytes(count)).ok_or(Errno::IO)
    }
}

/// An event that counts the switches of this process, and of all that it forks or starts from now
/// on, as long as it is open.
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

/// Type and number of an event.
fn config(event: Event) -> (u32, u64) {
    let misses = |cache: u64| (TYPE_CACHE, cache | LOAD_MISSES);
    match event {
        Event::Cycles => (TYPE_HARDWARE, HW_CYCLES),
        Event::Instructions => (TYPE_HARDWARE, HW_INSTRUCTIONS),
        Event::L1Misses => misses(L1D),
        Event::LastLevelMisses => misses(LAST_LEVEL),
        Event::DataTlbMisses => misses(DATA_TLB),
        Event::InstructionTlbMisses => misses(INSTRUCTION_TLB),
        Event::ContextSwitches => (TYPE_SOFTWARE, SW_CONTEXT_SWITCHES),
        Event::PageFaults => (TYPE_SOFTWARE, SW_PAGE_FAULTS),
        Event::Migrations => (TYPE_SOFTWARE, SW_MIGRATIONS),
    }
}

/// Most events of a group: there are no more.
const MOST_EVENTS: usize = Event::ALL.len();

/// What a CPU has counted at a moment.
#[derive(Clone, Copy)]
pub struct EventCounts {
    /// How long the group was to count, and how long it did.
    times: [u64; 2],
    counts: [u64; MOST_EVENTS],
}

/// Events of all that runs on one CPU, counted together.
pub struct CpuEvents {
    /// The first leads the group.
    events: Vec<OwnedFd>,
    /// What two readings one after the other count, with what is done between them.
    empty: [u64; MOST_EVENTS],
}

impl CpuEvents {
    /// Counts these from now on. ENOENT or EOPNOTSUPP where the machine has no such counter, EINVAL
    /// or EBUSY where it has too few for all of them at once, EACCES without the privilege.
    pub fn open(cpu: u32, events: &[Event]) -> Result<Self, (Event, Errno)> {
        let mut all: Vec<OwnedFd> = Vec::new();
        for event in events {
            let (kind, config) = config(*event);
            let attributes = EventAttributes {
                kind,
                config,
                size: size_of::<EventAttributes>() as u32,
                read_format: READ_GROUP_AND_TIMES,
                ..EventAttributes::default()
            };
            let opened = open_in(all.first(), &attributes, -1, cpu as i32);
            all.push(opened.map_err(|errno| (*event, errno))?);
        }
        let mut found = Self { events: all, empty: [0; MOST_EVENTS] };
        match (found.measure_empty(|| ()), events.last()) {
            (false, Some(last)) => Err((*last, Errno::BUSY)),
            _ => Ok(found),
        }
    }

    /// Measures what two readings count with this between them, which is no part of what is
    /// measured. False where the kernel does not count.
    pub fn measure_empty(&mut self, between: impl Fn()) -> bool {
        // The least of several: an interrupt counts, too.
        const READINGS: usize = 9;
        let mut empty = [u64::MAX; MOST_EVENTS];
        self.empty = [0; MOST_EVENTS];
        for _ in 0..READINGS {
            let before = self.read();
            between();
            let Some(counted) = before.zip(self.read()).and_then(|(a, b)| self.between(&a, &b))
            else {
                return false;
            };
            empty.iter_mut().zip(counted).for_each(|(least, now)| *least = (*least).min(now));
        }
        self.empty = empty;
        true
    }

    /// The counts so far.
    #[inline]
    pub fn read(&self) -> Option<EventCounts> {
        // How many, both times, and the counts.
        let mut words = [0_u64; 3 + MOST_EVENTS];
        let wanted = 8 * (3 + self.events.len());
        // SAFETY: any bytes make numbers, and these have no padding.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size_of_val(&words))
        };
        let read = rustix::io::read(self.events.first()?, bytes).ok()?;
        let [_, enabled, running, counts @ ..] = words;
        (read == wanted).then_some(EventCounts { times: [enabled, running], counts })
    }

    /// What was counted between two readings, without what these count themselves; none where the
    /// kernel did not count all the time, as others use the counters as well.
    pub fn between(&self, before: &EventCounts, after: &EventCounts) -> Option<[u64; MOST_EVENTS]> {
        let [enabled, running] =
            std::array::from_fn(|at| after.times[at].wrapping_sub(before.times[at]));
        let counted = |at: usize| {
            after.counts[at].wrapping_sub(before.counts[at]).saturating_sub(self.empty[at])
        };
        (enabled == running).then(|| std::array::from_fn(counted))
    }
}

/// Samples of all that runs in user space on one CPU. It ends when this is dropped.
pub struct CpuSamples {
    ring: MemoryMapping,
    _event: OwnedFd,
}

impl CpuSamples {
    /// One sample every so many nanoseconds of user space.
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

    fn place(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the first page, aligned, and used atomically by the kernel and by us.
        unsafe { &*self.ring.base.byte_add(offset).cast() }
    }

    /// The samples since the last call, oldest first.
    pub fn drain(&mut self, mut each: impl FnMut(ThreadSample)) {
        let data = (self.ring.bytes - page_size()) as u64;
        // The kernel's bytes are written before its head.
        let head = self.place(HEAD_OFFSET).load(Ordering::Acquire);
        let mut tail = self.place(TAIL_OFFSET).load(Ordering::Relaxed);
        let word = |at: u64| {
            // SAFETY: records are of whole words, and `at` is taken modulo the ring's size.
            unsafe {
                let ring = self.ring.base.byte_add(page_size());
                ring.byte_add((at % data) as usize).cast::<u64>().read()
            }
        };
        while tail < head {
            let header = word(tail);
            let (kind, bytes) = (header as u32, header >> 48);
            if bytes < 8 || tail + bytes > head {
                tail = head;
                break;
            }
            // Header, instruction, thread, CPU, the ABI of the registers and these.
            if kind == RECORD_SAMPLE && bytes as usize >= 8 * (5 + REGISTER_COUNT) {
                let thread = word(tail + 16);
                each(ThreadSample {
                    pid: thread as u32,
                    tid: (thread >> 32) as u32,
                    cpu: word(tail + 24) as u32,
                    ip: word(tail + 8),
                    registers: std::array::from_fn(|at| word(tail + 40 + 8 * at as u64)),
                });
            }
            tail += bytes;
        }
        // All was read before the kernel may write there again.
        self.place(TAIL_OFFSET).store(tail, Ordering::Release);
    }
}

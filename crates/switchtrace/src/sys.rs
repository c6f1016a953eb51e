//! bpf(2) and mappings: the only unsafe code besides the C interface and the reading of records.
//!
//! bpf(2) is one call with many commands. Each takes a struct of attributes (`union bpf_attr`), in
//! which addresses are plain numbers; commands that create something return a descriptor:
//!
//! ```text
//! BPF_MAP_CREATE            -> map          BPF_PROG_LOAD             -> program
//! BPF_MAP_UPDATE_ELEM, ...                  BPF_RAW_TRACEPOINT_OPEN   -> link: attached
//! BPF_MAP_FREEZE, BPF_OBJ_PIN               BPF_LINK_CREATE, BPF_ITER_CREATE: run on all tasks
//! ```

use crate::asm::Insn;
use crate::error::Error;
use crate::privilege::BpfRefusal;
use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::{self, NonNull};

/// Commands of bpf(2) (include/uapi/linux/bpf.h).
#[derive(Clone, Copy)]
enum BpfCommand {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgLoad = 5,
    ObjPin = 6,
    ObjInfo = 15,
    RawTracepointOpen = 17,
    MapLookupAndDelete = 21,
    MapFreeze = 22,
    LinkCreate = 28,
    EnableStats = 32,
    IterCreate = 33,
}

/// The kind of a map, `BPF_MAP_TYPE_*`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapKind {
    Hash = 1,
    Array = 2,
    Queue = 22,
    RingBuffer = 27,
}

/// `BPF_F_MMAPABLE`: user space may map the array.
pub(crate) const MAPPABLE: u32 = 1 << 10;
/// `BPF_PROG_TYPE_TRACING`.
const TRACING: u32 = 26;

/// The kind of thing that a program is attached to: `BPF_TRACE_RAW_TP`, `BPF_TRACE_ITER`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AttachType {
    Tracepoint = 23,
    Iterator = 28,
}

#[repr(C)]
#[derive(Default)]
struct MapCreation {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    _inner_map_and_numa_node: [u32; 2],
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct MapAccess {
    descriptor: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
    /// Debug information of types, functions and lines, which is not given.
    _debugging: [u32; 9],
    attach_btf_id: u32,
}

#[repr(C)]
#[derive(Default)]
struct ObjectPin {
    path: u64,
    descriptor: u32,
    flags: u32,
}

#[repr(C)]
struct InfoRequest {
    descriptor: u32,
    bytes: u32,
    info: u64,
}

#[repr(C)]
#[derive(Default)]
struct TracepointOpen {
    name: u64,
    program: u32,
    _pad: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    target: u32,
    attach: u32,
    flags: u32,
}

/// Calls bpf(2).
///
/// # Safety
/// The addresses in `attributes` must be what `command` expects, and live until it returns.
unsafe fn bpf<T>(command: BpfCommand, attributes: &T) -> io::Result<i32> {
    let address = &raw const *attributes;
    // SAFETY: a plain struct of the size that is given; its addresses are the caller's promise.
    let status = unsafe { libc::syscall(libc::SYS_bpf, command as i32, address, size_of::<T>()) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status as i32) }
}

/// Calls bpf(2) with a command that returns a descriptor.
///
/// # Safety
/// The promise of [`bpf`]; and the command must return a new descriptor.
unsafe fn bpf_descriptor<T>(command: BpfCommand, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises; the descriptor is new and nobody else's.
    unsafe { bpf(command, attributes).map(|descriptor| OwnedFd::from_raw_fd(descriptor)) }
}

/// Makes an error of a failed call, with what may have forbidden it.
fn explained(call: &'static str, source: io::Error) -> Error {
    match source.raw_os_error() {
        errno @ Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            Error::Refused { call, source, refusal: BpfRefusal::explain(Path::new("/"), errno) }
        }
        _ => Error::Os { call, source },
    }
}

/// Returns a name as the kernel takes it: at most 15 bytes, then zeros.
fn object_name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    for (to, from) in name[..15].iter_mut().zip(text.bytes()) {
        *to = from;
    }
    name
}

fn number(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd() as u32
}

/// Bytes of a key and a value of a map.
pub(crate) struct EntrySizes {
    pub(crate) key: u32,
    pub(crate) value: u32,
}

/// Creates a map; `entries` are bytes for a ring buffer.
pub(crate) fn create_map(
    name: &str,
    kind: MapKind,
    sizes: EntrySizes,
    entries: u32,
    flags: u32,
) -> Result<OwnedFd, Error> {
    let attributes = MapCreation {
        kind: kind as u32,
        key_bytes: sizes.key,
        value_bytes: sizes.value,
        entries,
        flags,
        name: object_name(name),
        ..Default::default()
    };
    // SAFETY: no addresses; gives a new descriptor.
    let made = unsafe { bpf_descriptor(BpfCommand::MapCreate, &attributes) };
    made.map_err(|source| explained("bpf(BPF_MAP_CREATE)", source))
}

/// Sets an element. `key` is empty for a queue. Both must have the sizes of the map.
pub(crate) fn update_map(map: &OwnedFd, key: &[u8], value: &[u8]) -> Result<(), Error> {
    let key = if key.is_empty() { 0 } else { key.as_ptr() as u64 };
    let value = value.as_ptr() as u64;
    let attributes = MapAccess { descriptor: number(map), key, value, ..Default::default() };
    // SAFETY: the kernel reads the map's sizes from both, which the callers give.
    let done = unsafe { bpf(BpfCommand::MapUpdate, &attributes) };
    done.map(drop).map_err(|source| explained("bpf(BPF_MAP_UPDATE_ELEM)", source))
}

/// Returns the value of a key; `None` if there is none.
pub(crate) fn look_up<const K: usize, const V: usize>(
    map: &OwnedFd,
    key: &[u8; K],
) -> Option<[u8; V]> {
    let mut value = [0; V];
    let (key, into) = (key.as_ptr() as u64, value.as_mut_ptr() as u64);
    let attributes = MapAccess { descriptor: number(map), key, value: into, ..Default::default() };
    // SAFETY: the callers' arrays have the map's sizes.
    unsafe { bpf(BpfCommand::MapLookup, &attributes) }.ok().map(|_| value)
}

/// Takes the first value of a queue; `None` if it is empty.
pub(crate) fn pop<const V: usize>(queue: &OwnedFd) -> Option<[u8; V]> {
    let mut value = [0; V];
    let into = value.as_mut_ptr() as u64;
    let attributes = MapAccess { descriptor: number(queue), value: into, ..Default::default() };
    // SAFETY: the callers' array has the queue's value size.
    unsafe { bpf(BpfCommand::MapLookupAndDelete, &attributes) }.ok().map(|_| value)
}

/// Returns the key that follows, or the first.
pub(crate) fn next_key<const K: usize>(map: &OwnedFd, after: Option<&[u8; K]>) -> Option<[u8; K]> {
    let mut next = [0; K];
    let (key, into) = (after.map_or(0, |key| key.as_ptr() as u64), next.as_mut_ptr() as u64);
    let attributes = MapAccess { descriptor: number(map), key, value: into, ..Default::default() };
    // SAFETY: the callers' arrays have the map's key size.
    unsafe { bpf(BpfCommand::MapNextKey, &attributes) }.ok().map(|_| next)
}

/// Deletes a key, if it is there.
pub(crate) fn delete<const K: usize>(map: &OwnedFd, key: &[u8; K]) {
    let key = key.as_ptr() as u64;
    let attributes = MapAccess { descriptor: number(map), key, ..Default::default() };
    // SAFETY: the callers' arrays have the map's key size.
    let _ = unsafe { bpf(BpfCommand::MapDelete, &attributes) };
}

/// Makes the kernel measure all programs for as long as the result is held. Needs CAP_SYS_ADMIN.
pub(crate) fn measure_programs() -> io::Result<OwnedFd> {
    // SAFETY: BPF_STATS_RUN_TIME is 0; gives a new descriptor.
    unsafe { bpf_descriptor(BpfCommand::EnableStats, &0u32) }
}

/// The runs of a program while it was measured, and their total duration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramRuns {
    pub(crate) ns: u64,
    pub(crate) runs: u64,
}

/// Reads how often a program has run while it was measured.
pub(crate) fn program_runs(program: &OwnedFd) -> io::Result<ProgramRuns> {
    // struct bpf_prog_info up to `run_cnt`.
    let mut info = [0u64; 26];
    let attributes = InfoRequest {
        descriptor: number(program),
        bytes: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes at most so many bytes, and asked for no lists it follows no
    // address.
    unsafe { bpf(BpfCommand::ObjInfo, &attributes) }?;
    Ok(ProgramRuns { ns: info[24], runs: info[25] })
}

/// Forbids user space to write to a map; programs go on writing.
pub(crate) fn freeze(map: &OwnedFd) -> Result<(), Error> {
    // SAFETY: no addresses.
    let done = unsafe { bpf(BpfCommand::MapFreeze, &number(map)) };
    done.map(drop).map_err(|source| explained("bpf(BPF_MAP_FREEZE)", source))
}

/// All signals of this thread, blocked until it is dropped.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn block() -> Self {
        // SAFETY: a set of signals is a plain array of bits, and zeros are the empty one.
        let (mut all, mut before) = unsafe { (mem::zeroed(), mem::zeroed()) };
        // SAFETY: both sets outlive the calls.
        unsafe {
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        }
        Self(before)
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set outlives the call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

/// Loads a program. If the verifier rejects it, loads it once more to get the verifier's log.
pub(crate) fn load(
    program: &'static str,
    instructions: &[Insn],
    attach: AttachType,
    btf_id: u32,
) -> Result<OwnedFd, Error> {
    let mut attributes = ProgramLoad {
        kind: TRACING,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        name: object_name(program),
        attach: attach as u32,
        attach_btf_id: btf_id,
        ..Default::default()
    };
    // The verifier gives up with EAGAIN if a signal waits for the thread (`do_check` in
    // kernel/bpf/verifier.c).
    let blocked = BlockedSignals::block();
    // SAFETY: the instructions and the license outlive the call.
    let loaded = unsafe { bpf_descriptor(BpfCommand::ProgLoad, &attributes) };
    drop(blocked);
    let source = match loaded {
        Ok(loaded) => return Ok(loaded),
        Err(source) => source,
    };
    if !matches!(source.raw_os_error(), Some(libc::EACCES | libc::EINVAL | libc::E2BIG)) {
        return Err(explained("bpf(BPF_PROG_LOAD)", source));
    }
    let mut log = vec![0u8; 1 << 20];
    attributes.log_level = 1;
    attributes.log_bytes = log.len() as u32;
    attributes.log = log.as_mut_ptr() as u64;
    // SAFETY: as above, and the kernel writes at most `log_bytes` to the log.
    drop(unsafe { bpf_descriptor(BpfCommand::ProgLoad, &attributes) });
    let log = log.split(|byte| *byte == 0).next().unwrap_or_default();
    // Without a log the load failed before the verifier.
    if log.is_empty() {
        return Err(explained("bpf(BPF_PROG_LOAD)", source));
    }
    Err(Error::Rejected { program, source, log: last_lines(&String::from_utf8_lossy(log)) })
}

/// Returns the end of the verifier's log, where it says why.
fn last_lines(log: &str) -> String {
    const MAX_LOG_LINES: usize = 40;
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(MAX_LOG_LINES)..].join("\n")
}

/// Attaches a program to the tracepoint that it was loaded for, until the result is closed.
pub(crate) fn attach(program: &OwnedFd) -> Result<OwnedFd, Error> {
    let attributes = TracepointOpen { program: number(program), ..Default::default() };
    // SAFETY: no addresses; gives a new descriptor.
    let link = unsafe { bpf_descriptor(BpfCommand::RawTracepointOpen, &attributes) };
    link.map_err(|source| explained("bpf(BPF_RAW_TRACEPOINT_OPEN)", source))
}

/// Runs an iterator's program once for each task: reading the iterator runs it.
pub(crate) fn iterate(program: &OwnedFd) -> Result<(), Error> {
    let attach = AttachType::Iterator as u32;
    let attributes = LinkCreate { program: number(program), attach, ..Default::default() };
    // SAFETY: no addresses; gives a new descriptor.
    let link = unsafe { bpf_descriptor(BpfCommand::LinkCreate, &attributes) }
        .map_err(|source| explained("bpf(BPF_LINK_CREATE)", source))?;
    // SAFETY: as above; the attributes are a link and flags.
    let iterator = unsafe { bpf_descriptor(BpfCommand::IterCreate, &[number(&link), 0]) }
        .map_err(|source| explained("bpf(BPF_ITER_CREATE)", source))?;
    let read = io::copy(&mut std::fs::File::from(iterator), &mut io::sink());
    read.map(drop).map_err(|source| Error::Os { call: "read of the iterator of tasks", source })
}

/// Pins a map in a BPF file system, readable and writable by all: a map can be mapped only where it
/// may be opened for writing too. To a frozen map nobody can write.
pub(crate) fn pin(map: &OwnedFd, path: &Path) -> Result<(), Error> {
    use std::os::unix::{ffi::OsStrExt, fs::PermissionsExt};
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Options("a path cannot have a NUL byte"))?;
    let attributes = ObjectPin { path: name.as_ptr() as u64, descriptor: number(map), flags: 0 };
    // SAFETY: `name` ends in NUL and outlives the call.
    unsafe { bpf(BpfCommand::ObjPin, &attributes) }
        .map_err(|source| explained("bpf(BPF_OBJ_PIN)", source))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(|source| {
        let _ = std::fs::remove_file(path);
        Error::Os { call: "chmod of the pinned table", source }
    })
}

/// A shared mapping, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct SharedMapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address range; code that reads it through `start` says how.
unsafe impl Send for SharedMapping {}

impl SharedMapping {
    /// Maps `bytes` of a descriptor from `offset` on.
    pub(crate) fn new(
        descriptor: RawFd,
        bytes: usize,
        offset: usize,
        writable: bool,
    ) -> Result<Self, Error> {
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping overlaps nothing.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                descriptor,
                offset as i64,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(at) if start != libc::MAP_FAILED => Ok(Self { start: at, bytes }),
            _ => Err(Error::Os { call: "mmap of a BPF map", source: io::Error::last_os_error() }),
        }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; what borrows from it borrows its owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Returns the size of a page in bytes.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Returns the CPUs that the calling thread may run on, a bit each.
pub(crate) fn affinity() -> Option<[u64; 1024]> {
    let mut set = [0; 1024];
    // SAFETY: the kernel writes at most so many bytes to the set.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&set), set.as_mut_ptr())
    };
    (bytes > 0).then_some(set)
}

/// Sets the CPUs that the calling thread may run on, as far as they are allowed.
pub(crate) fn set_affinity(set: &[u64]) {
    // SAFETY: the kernel reads so many bytes of the set.
    unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(set), set.as_ptr());
    }
}

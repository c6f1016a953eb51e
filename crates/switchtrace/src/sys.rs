//! bpf(2) and mappings: the only unsafe code besides the C interface and the reading of records.

use crate::asm::Insn;
use crate::error::Error;
use crate::privilege::BpfRefusal;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::{self, NonNull};

/// Commands of bpf(2) (include/uapi/linux/bpf.h).
#[derive(Clone, Copy)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgLoad = 5,
    ObjPin = 6,
    ObjInfo = 15,
    RawTracepointOpen = 17,
    MapFreeze = 22,
    LinkCreate = 28,
    EnableStats = 32,
    IterCreate = 33,
}

/// `BPF_MAP_TYPE_*`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapKind {
    Hash = 1,
    Array = 2,
    Queue = 22,
    RingBuffer = 27,
}

/// `BPF_F_MMAPABLE`.
pub(crate) const MAPPABLE: u32 = 1 << 10;
const TRACING: u32 = 26;
/// `BPF_TRACE_RAW_TP` and `BPF_TRACE_ITER`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attach {
    Tracepoint = 23,
    Iterator = 28,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
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
struct ProgLoad {
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
    /// Of types, functions and lines, of which nothing is told.
    _debugging: [u32; 9],
    attach_btf_id: u32,
}

#[repr(C)]
#[derive(Default)]
struct Pin {
    path: u64,
    descriptor: u32,
    flags: u32,
}

#[repr(C)]
struct ObjInfo {
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

/// bpf(2).
///
/// # Safety
/// The addresses in `attributes` must be what `command` expects, and live until it returns.
unsafe fn bpf<T>(command: Command, attributes: &T) -> io::Result<i32> {
    let address = &raw const *attributes;
    // SAFETY: a plain struct of the size that is given; its addresses are the caller's promise.
    let status = unsafe { libc::syscall(libc::SYS_bpf, command as i32, address, size_of::<T>()) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status as i32) }
}

/// # Safety
/// As [`bpf`]; the command must return a new descriptor.
unsafe fn bpf_descriptor<T>(command: Command, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises; the descriptor is new and nobody else's.
    unsafe { bpf(command, attributes).map(|descriptor| OwnedFd::from_raw_fd(descriptor)) }
}

/// Says what may have refused it, if it was refused.
fn explained(call: &'static str, source: io::Error) -> Error {
    match source.raw_os_error() {
        errno @ Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            Error::Refused { call, source, refusal: BpfRefusal::explain(Path::new("/"), errno) }
        }
        _ => Error::Os { call, source },
    }
}

fn name_of(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    for (to, from) in name[..15].iter_mut().zip(text.bytes()) {
        *to = from;
    }
    name
}

fn number(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd() as u32
}

/// A map of so many entries.
pub(crate) fn create_map(
    name: &str,
    kind: MapKind,
    sizes: (u32, u32),
    entries: u32,
    flags: u32,
) -> Result<OwnedFd, Error> {
    let (key_bytes, value_bytes) = sizes;
    let attributes = MapCreate {
        kind: kind as u32,
        key_bytes,
        value_bytes,
        entries,
        flags,
        name: name_of(name),
        ..Default::default()
    };
    // SAFETY: no addresses; gives a new descriptor.
    let made = unsafe { bpf_descriptor(Command::MapCreate, &attributes) };
    made.map_err(|source| explained("bpf(BPF_MAP_CREATE)", source))
}

/// Sets an element. `key` is empty for a queue. Both must have the sizes of the map.
pub(crate) fn update_map(map: &OwnedFd, key: &[u8], value: &[u8]) -> Result<(), Error> {
    let key = if key.is_empty() { 0 } else { key.as_ptr() as u64 };
    let value = value.as_ptr() as u64;
    let attributes = MapAccess { descriptor: number(map), key, value, ..Default::default() };
    // SAFETY: the kernel reads the map's sizes from both, which the callers give.
    let done = unsafe { bpf(Command::MapUpdate, &attributes) };
    done.map(drop).map_err(|source| explained("bpf(BPF_MAP_UPDATE_ELEM)", source))
}

/// The value of a key; `None` if there is none.
pub(crate) fn look_up<const K: usize, const V: usize>(
    map: &OwnedFd,
    key: &[u8; K],
) -> Option<[u8; V]> {
    let mut value = [0; V];
    let (key, into) = (key.as_ptr() as u64, value.as_mut_ptr() as u64);
    let attributes = MapAccess { descriptor: number(map), key, value: into, ..Default::default() };
    // SAFETY: the callers' arrays have the map's sizes.
    unsafe { bpf(Command::MapLookup, &attributes) }.ok().map(|_| value)
}

/// The key that follows, or the first.
pub(crate) fn next_key<const K: usize>(map: &OwnedFd, after: Option<&[u8; K]>) -> Option<[u8; K]> {
    let mut next = [0; K];
    let (key, into) = (after.map_or(0, |key| key.as_ptr() as u64), next.as_mut_ptr() as u64);
    let attributes = MapAccess { descriptor: number(map), key, value: into, ..Default::default() };
    // SAFETY: the callers' arrays have the map's key size.
    unsafe { bpf(Command::MapNextKey, &attributes) }.ok().map(|_| next)
}

/// Takes a key out, if it is there.
pub(crate) fn delete<const K: usize>(map: &OwnedFd, key: &[u8; K]) {
    let key = key.as_ptr() as u64;
    let attributes = MapAccess { descriptor: number(map), key, ..Default::default() };
    // SAFETY: the callers' arrays have the map's key size.
    let _ = unsafe { bpf(Command::MapDelete, &attributes) };
}

/// As long as this is held the kernel measures all programs. Needs CAP_SYS_ADMIN.
pub(crate) fn measure_programs() -> io::Result<OwnedFd> {
    // SAFETY: BPF_STATS_RUN_TIME is 0; gives a new descriptor.
    unsafe { bpf_descriptor(Command::EnableStats, &0u32) }
}

/// How long a program has run while it was measured, in nanoseconds, and how often.
pub(crate) fn run_time(program: &OwnedFd) -> io::Result<(u64, u64)> {
    // struct bpf_prog_info up to `run_cnt`.
    let mut info = [0u64; 26];
    let attributes = ObjInfo {
        descriptor: number(program),
        bytes: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes at most so many bytes, and asked for no lists it follows no
    // address.
    unsafe { bpf(Command::ObjInfo, &attributes) }?;
    Ok((info[24], info[25]))
}

/// From now on user space can only read it; programs go on writing.
pub(crate) fn freeze(map: &OwnedFd) -> Result<(), Error> {
    // SAFETY: no addresses.
    let done = unsafe { bpf(Command::MapFreeze, &number(map)) };
    done.map(drop).map_err(|source| explained("bpf(BPF_MAP_FREEZE)", source))
}

/// Loads a program; on rejection once more, for the verifier's log.
pub(crate) fn load(
    program: &'static str,
    instructions: &[Insn],
    attach: Attach,
    btf_id: u32,
) -> Result<OwnedFd, Error> {
    let mut attributes = ProgLoad {
        kind: TRACING,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        name: name_of(program),
        attach: attach as u32,
        attach_btf_id: btf_id,
        ..Default::default()
    };
    // SAFETY: the instructions and the license outlive the call.
    let source = match unsafe { bpf_descriptor(Command::ProgLoad, &attributes) } {
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
    drop(unsafe { bpf_descriptor(Command::ProgLoad, &attributes) });
    let log: Vec<u8> = log.into_iter().take_while(|byte| *byte != 0).collect();
    // It did not come to the verifier.
    if log.is_empty() {
        return Err(explained("bpf(BPF_PROG_LOAD)", source));
    }
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    let log = lines[lines.len().saturating_sub(40)..].join("\n");
    Err(Error::Rejected { program, source, log })
}

/// Attaches a program to the tracepoint that it was loaded for. Ends with the descriptor.
pub(crate) fn attach(program: &OwnedFd) -> Result<OwnedFd, Error> {
    let attributes = TracepointOpen { program: number(program), ..Default::default() };
    // SAFETY: no addresses; gives a new descriptor.
    let link = unsafe { bpf_descriptor(Command::RawTracepointOpen, &attributes) };
    link.map_err(|source| explained("bpf(BPF_RAW_TRACEPOINT_OPEN)", source))
}

/// Runs an iterator's program on all that it iterates over.
pub(crate) fn iterate(program: &OwnedFd) -> Result<(), Error> {
    let attach = Attach::Iterator as u32;
    let attributes = LinkCreate { program: number(program), attach, ..Default::default() };
    // SAFETY: no addresses; gives a new descriptor.
    let link = unsafe { bpf_descriptor(Command::LinkCreate, &attributes) }
        .map_err(|source| explained("bpf(BPF_LINK_CREATE)", source))?;
    // SAFETY: as above; the attributes are a link and flags.
    let iterator = unsafe { bpf_descriptor(Command::IterCreate, &[number(&link), 0]) }
        .map_err(|source| explained("bpf(BPF_ITER_CREATE)", source))?;
    let read = io::copy(&mut std::fs::File::from(iterator), &mut io::sink());
    read.map(drop).map_err(|source| Error::Os { call: "read of the iterator of tasks", source })
}

/// Pins a map in a BPF file system, open to all: a map can be mapped only where it may be opened
/// for writing too. What is frozen nobody can write to.
pub(crate) fn pin(map: &OwnedFd, path: &Path) -> Result<(), Error> {
    use std::os::unix::{ffi::OsStrExt, fs::PermissionsExt};
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Options("a path cannot have a NUL byte"))?;
    let attributes = Pin { path: name.as_ptr() as u64, descriptor: number(map), flags: 0 };
    // SAFETY: `name` ends in NUL and outlives the call.
    unsafe { bpf(Command::ObjPin, &attributes) }
        .map_err(|source| explained("bpf(BPF_OBJ_PIN)", source))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(|source| {
        let _ = std::fs::remove_file(path);
        Error::Os { call: "chmod of the pinned table", source }
    })
}

/// A shared mapping, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address range; who reads it through `start` says how.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` of a descriptor from `offset`.
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

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; what borrows from it borrows its owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The size of a page in bytes.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// The CPUs that the calling thread may run on, a bit each.
pub(crate) fn affinity() -> Option<[u64; 1024]> {
    let mut set = [0; 1024];
    // SAFETY: the kernel writes at most so many bytes to the set.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&set), set.as_mut_ptr())
    };
    (bytes > 0).then_some(set)
}

/// Sets them, as far as they are allowed, and moves it there.
pub(crate) fn set_affinity(set: &[u64]) {
    // SAFETY: the kernel reads so many bytes of the set.
    unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(set), set.as_ptr());
    }
}

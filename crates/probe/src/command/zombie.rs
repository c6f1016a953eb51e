//! What the kernel still shows of a process that has ended and was not reaped yet.

use std::io;
use std::path::Path;

use model::command_use::{IoBytes, Sampled};
use model::reading::Reading;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

use crate::sys::{CpuClock, cpu_clock_ns};

/// CPU time and run delay of a thread in nanoseconds (proc_pid_schedstat: the first two numbers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedstat {
    pub(super) cpu_ns: u64,
    pub(super) run_delay_ns: u64,
}

/// The figures that are gone with it.
pub(super) struct Zombie {
    /// Of all its threads.
    pub(super) cpu_ns: Reading<u64>,
    /// Of all its threads.
    pub(super) sampled: Reading<Sampled>,
    /// Of its first thread alone: the others' are lost with them.
    pub(super) first_thread: Reading<Schedstat>,
    /// Of its first thread alone.
    pub(super) migrations: Reading<u64>,
    /// Of all its threads and of the children that it waited for.
    pub(super) io: Reading<IoBytes>,
}

/// No file of a process that is read here is longer; the figures are in its first lines anyway.
const FILE_BYTES: usize = 4096;

/// By one call each of open, read and close: there are some of these in every run. The kernel gives what
/// of such a file fits.
fn read_once<'a>(path: &Path, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    read_from(&file, buffer)
}

fn read_from<'a>(file: &OwnedFd, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let count = read(file, &mut *buffer)?;
    Ok(&buffer[..count])
}

/// What a living child has read and written, to be read when it has ended: then the file is root's
/// (fs/proc/base.c, `task_dump_owner`). None if it is nobody's to open, or has ended already.
pub(super) fn open_io(pid: i32) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    open(format!("/proc/{pid}/{IO}"), flags, Mode::empty()).ok()
}

const IO: &str = "io";

/// Reads a child that has ended; `io` is what [`open_io`] gave.
pub(super) fn of(pid: i32, io: Option<OwnedFd>) -> Zombie {
    let folder = format!("/proc/{pid}");
    let clock = |which| {
        let ns = cpu_clock_ns(pid, false, which);
        Reading::from(ns.map_err(|errno| format!("the process's CPU clock: {errno}")))
    };
    let sampled = clock(CpuClock::TicksUser).and_then(|user_ns| {
        let both = clock(CpuClock::TicksUserSystem);
        both.map(|both_ns| Sampled { user_ns: user_ns.min(both_ns), both_ns })
    });
    Zombie {
        cpu_ns: clock(CpuClock::Precise),
        sampled,
        first_thread: schedstat(Path::new(&format!("{folder}/schedstat"))),
        migrations: parsed(Path::new(&format!("{folder}/sched")), "se.nr_migrations", |text| {
            item(text, "se.nr_migrations")
        }),
        io: match io {
            Some(file) => told(IO, read_from(&file, &mut [0; FILE_BYTES]), "counts", parse_io),
            None => late(parsed(Path::new(&format!("{folder}/{IO}")), "counts", parse_io)),
        },
    }
}

fn late(io: Reading<IoBytes>) -> Reading<IoBytes> {
    match io.why() {
        Some(why) => Reading::unknown(format!(
            "{why} (after a command's end it is root's, and it was not opened before)"
        )),
        None => io,
    }
}

pub(super) fn schedstat(path: &Path) -> Reading<Schedstat> {
    parsed(path, "CPU time and run delay", |text| {
        let mut numbers = text.split_whitespace().map(str::parse);
        let (cpu_ns, run_delay_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Schedstat { cpu_ns, run_delay_ns })
    })
}

fn parse_io(text: &str) -> Option<IoBytes> {
    Some(IoBytes {
        read_call_bytes: item(text, "rchar")?,
        write_call_bytes: item(text, "wchar")?,
        storage_read_bytes: item(text, "read_bytes")?,
        storage_write_bytes: item(text, "write_bytes")?,
        cancelled_write_bytes: item(text, "cancelled_write_bytes")?,
    })
}

fn item(text: &str, name: &str) -> Option<u64> {
    let mut items = text.lines().filter_map(|line| line.split_once(':'));
    items.find(|(key, _)| key.trim() == name)?.1.trim().parse().ok()
}

/// What `parse` finds in a file. Its name is given as /proc/PID, the same for every run.
fn parsed<T>(path: &Path, what: &str, parse: impl Fn(&str) -> Option<T>) -> Reading<T> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    told(&name, read_once(path, &mut [0; FILE_BYTES]), what, parse)
}

fn told<T>(
    name: &str,
    text: Result<&[u8], Errno>,
    what: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Reading<T> {
    match text {
        Err(errno) => Reading::unknown(format!("/proc/PID/{name}: {}", io::Error::from(errno))),
        Ok(text) => match std::str::from_utf8(text).ok().and_then(parse) {
            Some(value) => Reading::Known(value),
            None => Reading::unknown(format!("/proc/PID/{name} has no readable {what}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_files_as_linux_6_18_writes_them() {
        let io = "rchar: 280076\nwchar: 262238\nsyscr: 32\nsyscw: 7\nread_bytes: 110592\nwrite_bytes: 266240\ncancelled_write_bytes: 262144\n";
        let expected = IoBytes {
            read_call_bytes: 280_076,
            write_call_bytes: 262_238,
            storage_read_bytes: 110_592,
            storage_write_bytes: 266_240,
            cancelled_write_bytes: 262_144,
        };
        assert_eq!(parse_io(io), Some(expected));
        assert_eq!(parse_io("rchar: 1\nwchar: x\n"), None);
        let sched = "sh (18296, #threads: 1)\n-----\nse.sum_exec_runtime  :  54.757230\nse.nr_migrations  :   3\nnr_switches  :   17\n";
        assert_eq!(item(sched, "se.nr_migrations"), Some(3));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("schedstat");
        fs::write(&file, "54757230 53315812 17\n").unwrap();
        let read = Schedstat { cpu_ns: 54_757_230, run_delay_ns: 53_315_812 };
        assert_eq!(schedstat(&file), Reading::Known(read));
        fs::write(&file, "").unwrap();
        assert!(schedstat(&file).why().unwrap().contains("no readable"), "empty");
        assert!(schedstat(&folder.path().join("none")).why().is_some(), "absent");
    }
}

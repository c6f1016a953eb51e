//! What /proc says of a command: of its threads while it runs, as their run delay is lost when they
//! end, and of the zombie before it is reaped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use probe::command::{CpuClock, cpu_clock_ns};
use rundata::reading::Reading;

use crate::used::{Delay, IoBytes, Sampled, Threads};

/// Time from the start to the first look.
const FIRST: Duration = Duration::from_millis(10);
/// Longest time between two looks.
const RARELY: Duration = Duration::from_secs(1);
/// Time between two looks over the time that one takes: they cost 1 % of a CPU at most.
const SPARING: u32 = 100;
/// Time since the start over the time to the next look.
const GROWTH: u32 = 8;

/// What was seen of a running command's threads.
pub(crate) struct ThreadSamples {
    folder: PathBuf,
    first_thread: i32,
    started: Instant,
    /// Time to the next look.
    pub(crate) pause: Duration,
    threads: Threads,
    /// By thread id: what was seen last, on top of what earlier threads with that id had.
    seen: BTreeMap<i32, (Delay, Delay)>,
}

impl ThreadSamples {
    pub(crate) fn new(pid: i32) -> Self {
        Self {
            folder: PathBuf::from(format!("/proc/{pid}/task")),
            first_thread: pid,
            started: Instant::now(),
            pause: FIRST,
            threads: Threads::default(),
            seen: BTreeMap::new(),
        }
    }

    /// Looks at all threads, but stops once `ended` is true: a look at thousands of threads takes
    /// longer than the command's end may go unseen.
    pub(crate) fn look(&mut self, ended: impl Fn() -> bool) {
        let before = Instant::now();
        let folder = &self.folder;
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut count = 0;
        for tid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            count += 1;
            if ended() {
                break;
            }
            // One that has just ended was seen before, or never. The first is read at the end.
            if tid == self.first_thread {
                continue;
            }
            if let Reading::Known(now) = schedstat(&folder.join(format!("{tid}/schedstat"))) {
                let (banked, last) = self.seen.entry(tid).or_default();
                if now.covered_cpu_ns < last.covered_cpu_ns {
                    // Another thread has the id now.
                    *banked = sum(*banked, *last);
                }
                *last = now;
            }
        }
        self.threads.peak_seen = self.threads.peak_seen.max(count);
        self.threads.looks += 1;
        let sparing = before.elapsed() * SPARING;
        self.pause = (self.started.elapsed() / GROWTH).clamp(FIRST, RARELY).max(sparing);
    }

    pub(crate) fn threads(&self) -> Reading<Threads> {
        match self.threads.looks {
            0 => Reading::unknown("it ended within 10 ms, before it was read"),
            _ => Reading::Known(self.threads),
        }
    }

    /// The run delay of the first thread, as it was at the end, and of all others that were seen.
    pub(crate) fn delay(&self, first: Reading<Delay>) -> Reading<Delay> {
        let others = self.seen.values().map(|(banked, last)| sum(*banked, *last));
        first.map(|first| others.fold(first, sum))
    }
}

fn sum(a: Delay, b: Delay) -> Delay {
    Delay {
        run_delay_ns: a.run_delay_ns + b.run_delay_ns,
        covered_cpu_ns: a.covered_cpu_ns + b.covered_cpu_ns,
    }
}

/// Figures of a process that has ended and was not reaped: they go with it.
pub(crate) struct Zombie {
    /// Of all its threads.
    pub(crate) cpu_ns: Reading<u64>,
    /// Of all its threads.
    pub(crate) sampled: Reading<Sampled>,
    /// Of its first thread alone: the others' are lost with them.
    pub(crate) first_thread: Reading<Delay>,
    /// Of its first thread alone.
    pub(crate) migrations: Reading<u64>,
    /// Of all its threads and of the children that it waited for.
    pub(crate) io: Reading<IoBytes>,
}

/// No file of a process that is read here is longer; the figures are in its first lines anyway.
const FILE_BYTES: usize = 4096;

/// Opens /proc/PID/io of a living child, to be read when it has ended: then the file is root's
/// (fs/proc/base.c, `task_dump_owner`). Absent if it may not be opened, or the child has ended
/// already.
pub(crate) fn open_io(pid: i32) -> Option<File> {
    File::open(format!("/proc/{pid}/io")).ok()
}

/// Reads a child that has ended; `io` is what [`open_io`] gave.
pub(crate) fn of_zombie(pid: i32, io: Option<File>) -> Zombie {
    let path = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
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
        first_thread: schedstat(&path("schedstat")),
        migrations: parsed("sched", File::open(path("sched")), MIGRATIONS, |text| {
            item(text, MIGRATIONS)
        }),
        io: match io {
            Some(file) => parsed("io", Ok(file), "counts", parse_io),
            None => match parsed("io", File::open(path("io")), "counts", parse_io) {
                Reading::Unknown { why } => Reading::unknown(format!(
                    "{why} (after the end of a command it belongs to root, and it was not opened \
                        before)"
                )),
                known => known,
            },
        },
    }
}

const MIGRATIONS: &str = "se.nr_migrations";

/// CPU time and run delay of a thread (proc_pid_schedstat: the first two numbers).
fn schedstat(path: &Path) -> Reading<Delay> {
    parsed("schedstat", File::open(path), "CPU time and run delay", |text| {
        let mut numbers = text.split_whitespace().map(str::parse);
        let (covered_cpu_ns, run_delay_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Delay { run_delay_ns, covered_cpu_ns })
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

/// What `parse` finds in /proc/PID/`name`. One read: the kernel gives what fits of such a file.
fn parsed<T>(
    name: &str,
    file: io::Result<File>,
    what: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Reading<T> {
    let mut buffer = [0; FILE_BYTES];
    match file.and_then(|mut file| file.read(&mut buffer)) {
        Err(error) => Reading::unknown(format!("/proc/PID/{name}: {error}")),
        Ok(count) => match std::str::from_utf8(&buffer[..count]).ok().and_then(parse) {
            Some(value) => Reading::Known(value),
            None => Reading::unknown(format!("/proc/PID/{name} has no readable {what}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_end_keep_what_was_seen() {
        let folder = tempfile::tempdir().unwrap();
        let task = folder.path();
        let write = |tid: i32, text: &str| {
            fs::create_dir_all(task.join(tid.to_string())).unwrap();
            fs::write(task.join(format!("{tid}/schedstat")), text).unwrap();
        };
        let mut samples = ThreadSamples { folder: task.to_path_buf(), ..ThreadSamples::new(7) };
        write(7, "1 1 1");
        write(8, "100 10 1");
        write(9, "50 5 1");
        samples.look(|| false);
        fs::remove_dir_all(task.join("9")).unwrap();
        // A new thread with the old id: less CPU time than before.
        write(8, "30 3 1");
        samples.look(|| false);
        write(8, "40 4 1");
        samples.look(|| false);
        assert_eq!(samples.threads(), Reading::Known(Threads { peak_seen: 3, looks: 3 }));
        let first = Delay { covered_cpu_ns: 1000, run_delay_ns: 100 };
        let delay = samples.delay(Reading::Known(first));
        let expected =
            Delay { run_delay_ns: 100 + 10 + 4 + 5, covered_cpu_ns: 1000 + 100 + 40 + 50 };
        assert_eq!(delay, Reading::Known(expected));
    }

    #[test]
    fn the_files_as_linux_6_18_writes_them() {
        let io = "rchar: 280076\nwchar: 262238\nsyscr: 32\nsyscw: 7\nread_bytes: 110592\n\
             write_bytes: 266240\ncancelled_write_bytes: 262144\n";
        let expected = IoBytes {
            read_call_bytes: 280_076,
            write_call_bytes: 262_238,
            storage_read_bytes: 110_592,
            storage_write_bytes: 266_240,
            cancelled_write_bytes: 262_144,
        };
        assert_eq!(parse_io(io), Some(expected));
        assert_eq!(parse_io("rchar: 1\nwchar: x\n"), None);
        let sched = "sh (18296, #threads: 1)\n-----\nse.sum_exec_runtime  :  54.757230\n\
             se.nr_migrations  :   3\nnr_switches  :   17\n";
        assert_eq!(item(sched, "se.nr_migrations"), Some(3));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("schedstat");
        fs::write(&file, "54757230 53315812 17\n").unwrap();
        let read = Delay { covered_cpu_ns: 54_757_230, run_delay_ns: 53_315_812 };
        assert_eq!(schedstat(&file), Reading::Known(read));
        fs::write(&file, "").unwrap();
        assert!(schedstat(&file).why().unwrap().contains("no readable"), "empty");
        assert!(schedstat(&folder.path().join("none")).why().is_some(), "absent");
    }
}

//! Figures of a command in /proc: of its threads while it runs, as their run delay is lost when they
//! end, and of the zombie before it is reaped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use probe::command::{CpuClock, cpu_clock_ns};
use rundata::reading::Reading;

use crate::usage::{IoBytes, RunDelay, SampledTimes, ThreadPeak};

/// Time from the start to the first sample.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Limits the time between two samples.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Limits the cost of samples to 1 % of a CPU: the time between two over the time that one takes.
const MIN_PAUSE_RATIO: u32 = 100;
/// The time since the start over the time to the next sample.
const AGE_PER_PAUSE: u32 = 8;

/// Samples of a running command's threads.
pub(crate) struct ThreadSamples {
    folder: PathBuf,
    first_thread: i32,
    started: Instant,
    /// Time to the next sample.
    pub(crate) pause: Duration,
    threads: ThreadPeak,
    seen: BTreeMap<i32, SeenThread>,
}

impl ThreadSamples {
    pub(crate) fn new(pid: i32) -> Self {
        Self {
            folder: PathBuf::from(format!("/proc/{pid}/task")),
            first_thread: pid,
            started: Instant::now(),
            pause: FIRST_PAUSE,
            threads: ThreadPeak::default(),
            seen: BTreeMap::new(),
        }
    }

    /// Samples all threads, but stops once `has_ended` returns true: a sample of thousands of threads
    /// would delay the notice of the command's end.
    pub(crate) fn sample(&mut self, has_ended: impl Fn() -> bool) {
        let before = Instant::now();
        let folder = &self.folder;
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut count = 0;
        for tid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            count += 1;
            if has_ended() {
                break;
            }
            // The first thread is read at the end. Another one may just have ended.
            if tid == self.first_thread {
                continue;
            }
            if let Reading::Known(now) = schedstat(&folder.join(format!("{tid}/schedstat"))) {
                self.seen.entry(tid).or_default().update(now);
            }
        }
        self.threads.peak_seen = self.threads.peak_seen.max(count);
        self.threads.looks += 1;
        let min_pause = before.elapsed() * MIN_PAUSE_RATIO;
        let pause = (self.started.elapsed() / AGE_PER_PAUSE).clamp(FIRST_PAUSE, MAX_PAUSE);
        self.pause = pause.max(min_pause);
    }

    /// Returns the peak of the number of threads.
    pub(crate) fn threads(&self) -> Reading<ThreadPeak> {
        match self.threads.looks {
            0 => Reading::unknown("it ended within 10 ms, before it was read"),
            _ => Reading::Known(self.threads),
        }
    }

    /// Returns the run delay of the first thread, read at its end, and of all others that were seen.
    pub(crate) fn delay(&self, first_thread: Reading<RunDelay>) -> Reading<RunDelay> {
        first_thread.map(|first_thread| {
            let mut total = first_thread;
            for thread in self.seen.values() {
                total = sum(total, sum(thread.earlier, thread.last));
            }
            total
        })
    }
}

/// The run delay of the threads that had one id.
#[derive(Default)]
struct SeenThread {
    /// Sum of the threads that had the id before.
    earlier: RunDelay,
    /// The last sample of the thread that has it now.
    last: RunDelay,
}

impl SeenThread {
    fn update(&mut self, sample: RunDelay) {
        if sample.covered_cpu_ns < self.last.covered_cpu_ns {
            // Another thread has the id now.
            self.earlier = sum(self.earlier, self.last);
        }
        self.last = sample;
    }
}

fn sum(a: RunDelay, b: RunDelay) -> RunDelay {
    RunDelay {
        run_delay_ns: a.run_delay_ns + b.run_delay_ns,
        covered_cpu_ns: a.covered_cpu_ns + b.covered_cpu_ns,
    }
}

/// Figures of a process that has ended and is not reaped yet, which removes them.
pub(crate) struct ZombieFigures {
    /// CPU time of all its threads.
    pub(crate) cpu_ns: Reading<u64>,
    /// Sampled times of all its threads.
    pub(crate) sampled: Reading<SampledTimes>,
    /// Run delay of its first thread: that of the others is lost with them.
    pub(crate) first_thread: Reading<RunDelay>,
    /// Migrations of its first thread.
    pub(crate) migrations: Reading<u64>,
    /// Bytes of all its threads and of the children that it waited for.
    pub(crate) io: Reading<IoBytes>,
}

/// Limits how much of a file in /proc is read: the figures are in its first lines.
const MAX_FILE_BYTES: usize = 4096;

/// Opens /proc/PID/io of a living child, to be read when it has ended: then the file is root's
/// (fs/proc/base.c, `task_dump_owner`). `None` if it may not be opened, or the child has ended
/// already.
pub(crate) fn open_io(pid: i32) -> Option<File> {
    File::open(format!("/proc/{pid}/io")).ok()
}

/// Reads the figures of a child that has ended; `io` is the result of [`open_io`].
pub(crate) fn read_zombie(pid: i32, io: Option<File>) -> ZombieFigures {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let sched = File::open(folder.join("sched"));
    let io = match io {
        Some(file) => read_figure("io", Ok(file), "counts", parse_io),
        None => match read_figure("io", File::open(folder.join("io")), "counts", parse_io) {
            Reading::Unknown { why } => Reading::unknown(format!(
                "{why} (after the end of a command it belongs to root, and it was not opened \
                    before)"
            )),
            known => known,
        },
    };
    ZombieFigures {
        cpu_ns: read_clock(pid, CpuClock::Precise),
        sampled: read_sampled_times(pid),
        first_thread: schedstat(&folder.join("schedstat")),
        migrations: read_figure("sched", sched, MIGRATIONS, |text| item(text, MIGRATIONS)),
        io,
    }
}

fn read_clock(pid: i32, clock: CpuClock) -> Reading<u64> {
    let ns = cpu_clock_ns(pid, false, clock);
    Reading::from(ns.map_err(|errno| format!("the process's CPU clock: {errno}")))
}

fn read_sampled_times(pid: i32) -> Reading<SampledTimes> {
    read_clock(pid, CpuClock::TicksUser).and_then(|user_ns| {
        let both_ns = read_clock(pid, CpuClock::TicksUserSystem);
        both_ns.map(|both_ns| SampledTimes { user_ns: user_ns.min(both_ns), both_ns })
    })
}

/// The key of the number of migrations in /proc/PID/sched.
const MIGRATIONS: &str = "se.nr_migrations";

/// Reads CPU time and run delay of a thread (proc_pid_schedstat: the first two numbers).
fn schedstat(path: &Path) -> Reading<RunDelay> {
    read_figure("schedstat", File::open(path), "CPU time and run delay", |text| {
        let mut numbers = text.split_whitespace().map(str::parse);
        let (covered_cpu_ns, run_delay_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(RunDelay { run_delay_ns, covered_cpu_ns })
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

/// Returns the number behind `name:` in a text.
fn item(text: &str, name: &str) -> Option<u64> {
    for line in text.lines() {
        if let Some((key, value)) = line.split_once(':') {
            if key.trim() == name {
                return value.trim().parse().ok();
            }
        }
    }
    None
}

/// Reads what `parse` finds in /proc/PID/`name`. One read is enough: the kernel returns as much of such
/// a file as fits.
fn read_figure<T>(
    name: &str,
    file: io::Result<File>,
    what: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Reading<T> {
    let mut buffer = [0; MAX_FILE_BYTES];
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
        samples.sample(|| false);
        fs::remove_dir_all(task.join("9")).unwrap();
        // A new thread with the old id: less CPU time than before.
        write(8, "30 3 1");
        samples.sample(|| false);
        write(8, "40 4 1");
        samples.sample(|| false);
        assert_eq!(samples.threads(), Reading::Known(ThreadPeak { peak_seen: 3, looks: 3 }));
        let first = RunDelay { covered_cpu_ns: 1000, run_delay_ns: 100 };
        let delay = samples.delay(Reading::Known(first));
        let expected =
            RunDelay { run_delay_ns: 100 + 10 + 4 + 5, covered_cpu_ns: 1000 + 100 + 40 + 50 };
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
        let read = RunDelay { covered_cpu_ns: 54_757_230, run_delay_ns: 53_315_812 };
        assert_eq!(schedstat(&file), Reading::Known(read));
        fs::write(&file, "").unwrap();
        assert!(schedstat(&file).why().unwrap().contains("no readable"), "empty");
        assert!(schedstat(&folder.path().join("none")).why().is_some(), "absent");
    }
}

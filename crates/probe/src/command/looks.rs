//! A running command is looked at from time to time: how many threads it has, and how long each has
//! waited for a CPU, which is lost when a thread ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::command_use::{Delay, Threads};
use model::reading::Reading;

use super::zombie::{Schedstat, schedstat};

/// The first look; shorter commands are left alone.
const FIRST: Duration = Duration::from_millis(10);
/// Longest time between two looks.
const RARELY: Duration = Duration::from_secs(1);
/// Time between two looks over the time that one takes: they cost 1 % of a CPU at most.
const SPARING: u32 = 100;
/// Time since the start over the time to the next look.
const GROWTH: u32 = 8;

/// All looks at one command.
pub(super) struct Looks {
    folder: PathBuf,
    first_thread: i32,
    started: Instant,
    pause: Duration,
    threads: Threads,
    /// By thread id: what was seen last, on top of what earlier threads with that id had.
    seen: BTreeMap<i32, (Schedstat, Schedstat)>,
    why_not: Option<String>,
}

impl Looks {
    pub(super) fn new(pid: i32) -> Self {
        Self {
            folder: PathBuf::from(format!("/proc/{pid}/task")),
            first_thread: pid,
            started: Instant::now(),
            pause: FIRST,
            threads: Threads::default(),
            seen: BTreeMap::new(),
            why_not: None,
        }
    }

    /// Nobody can look, and why.
    pub(super) fn refuse(&mut self, why: String) {
        self.why_not = Some(why);
    }

    /// Time to the next look.
    pub(super) fn next(&self) -> Duration {
        self.pause
    }

    /// Looks, but no further once `ended` says that there is nothing to wait for: of thousands of threads
    /// a look takes longer than a command's end may go unseen.
    pub(super) fn look(&mut self, ended: impl Fn() -> bool) {
        let before = Instant::now();
        let folder = self.folder.clone();
        let Ok(entries) = fs::read_dir(&folder) else { return };
        let mut count = 0;
        for tid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            count += 1;
            if ended() {
                break;
            }
            self.see(tid, &folder);
        }
        self.threads.peak_seen = self.threads.peak_seen.max(count);
        self.threads.looks += 1;
        let sparing = before.elapsed() * SPARING;
        self.pause = (self.started.elapsed() / GROWTH).clamp(FIRST, RARELY).max(sparing);
    }

    fn see(&mut self, tid: i32, folder: &Path) {
        if tid == self.first_thread {
            return;
        }
        // One that has just ended was seen before, or never.
        let Reading::Known(now) = schedstat(&folder.join(format!("{tid}/schedstat"))) else {
            return;
        };
        let (banked, last) = self.seen.entry(tid).or_default();
        if now.cpu_ns < last.cpu_ns {
            // Another thread has the id now.
            *banked = sum(*banked, *last);
        }
        *last = now;
    }

    pub(super) fn threads(&self) -> Reading<Threads> {
        match (&self.why_not, self.threads.looks) {
            (Some(why), 0) => Reading::unknown(why.clone()),
            (None, 0) => Reading::unknown("it ended before it was looked at (10 ms)"),
            _ => Reading::Known(self.threads),
        }
    }

    /// The run delay of the first thread, as it was at the end, and of all others that were seen.
    pub(super) fn delay(&self, first: Reading<Schedstat>) -> Reading<Delay> {
        first.map(|first| {
            let others = self.seen.values().map(|(banked, last)| sum(*banked, *last));
            let all = others.fold(first, sum);
            Delay { run_delay_ns: all.run_delay_ns, covered_cpu_ns: all.cpu_ns }
        })
    }
}

fn sum(a: Schedstat, b: Schedstat) -> Schedstat {
    Schedstat { cpu_ns: a.cpu_ns + b.cpu_ns, run_delay_ns: a.run_delay_ns + b.run_delay_ns }
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
        let mut looks = Looks { folder: task.to_path_buf(), ..Looks::new(7) };
        write(7, "1 1 1");
        write(8, "100 10 1");
        write(9, "50 5 1");
        looks.look(|| false);
        fs::remove_dir_all(task.join("9")).unwrap();
        // A new thread with the old id: less CPU time than before.
        write(8, "30 3 1");
        looks.look(|| false);
        write(8, "40 4 1");
        looks.look(|| false);
        assert_eq!(looks.threads(), Reading::Known(Threads { peak_seen: 3, looks: 3 }));
        let first = Schedstat { cpu_ns: 1000, run_delay_ns: 100 };
        let delay = looks.delay(Reading::Known(first));
        let expected =
            Delay { run_delay_ns: 100 + 10 + 4 + 5, covered_cpu_ns: 1000 + 100 + 40 + 50 };
        assert_eq!(delay, Reading::Known(expected));
    }
}

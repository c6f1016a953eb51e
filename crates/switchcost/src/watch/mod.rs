//! A program is watched: looks at its threads and its memory until its time is over.

pub(crate) mod child;
mod known;
pub(crate) mod surface;

use std::path::Path;
use std::time::{Duration, Instant};

use model::program_cost::{PageSizes, Report, Window, WorkingSet};
use model::reading::Reading;
use probe::program::{Count, WatchError, Watched, huge_page_bytes};

use crate::bell::Bell;
use known::{Known, Seen};

/// Time between two looks: what a thread does between the last one and its end is not seen.
const LOOK: Duration = Duration::from_millis(50);
/// The first window in which touched pages are counted; each later one begins after twice the time.
const FIRST_WINDOW: Duration = Duration::from_millis(50);
/// Longest time between two windows.
const RARELY: Duration = Duration::from_secs(10);
/// Gaps between switches that a window should hold.
const GAPS: f64 = 4.0;
const SHORTEST_WINDOW: Duration = Duration::from_millis(2);
const LONGEST_WINDOW: Duration = Duration::from_millis(500);
/// Longest time for which a window may hold the program's memory map: a large one takes seconds.
const LONGEST_HOLD: Duration = Duration::from_millis(10);
/// CPU time missing to the threads' own that is more than reading them one after the other explains.
const UNSEEN: f64 = 0.05;
/// Time by which a running thread's sum may lag behind: a tick of the slowest timer (CONFIG_HZ=100).
const LAG: Duration = Duration::from_millis(10);

/// Whether the program is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    No,
    Yes,
}

/// What is known of a program that is watched.
pub(crate) struct Watcher {
    program: Watched,
    bell: Bell,
    started: Instant,
    count: Count,
    lost_threads: usize,
    cpu_first_ns: Option<u64>,
    cpu_last_ns: Option<u64>,
    last_look: Option<Duration>,
    resident_bytes: Reading<u64>,
    windows: Vec<Window>,
    next_window: Duration,
    no_window: Option<String>,
    /// Longest time for which a window held the memory map.
    held: Duration,
    ended: Ended,
    notices: Vec<String>,
}

impl Watcher {
    /// Of a program that is not looked at yet; `bell` cuts its windows short.
    pub(crate) fn new(program: Watched, bell: Bell) -> Self {
        Self {
            program,
            bell,
            started: Instant::now(),
            count: Count::default(),
            lost_threads: 0,
            cpu_first_ns: None,
            cpu_last_ns: None,
            last_look: None,
            resident_bytes: Reading::unknown("it ended before its memory was looked at"),
            windows: Vec::new(),
            next_window: FIRST_WINDOW,
            no_window: None,
            held: Duration::ZERO,
            ended: Ended::No,
            notices: Vec::new(),
        }
    }

    /// One look, with a window if it is time for one.
    pub(crate) fn look(&mut self) -> Result<Ended, WatchError> {
        let looked = self.try_look();
        match looked {
            Err(error) if error.is_end() => self.ended = Ended::Yes,
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        Ok(self.ended)
    }

    /// Waits for the next look, but not beyond `end`; gives whether somebody asked to stop.
    pub(crate) fn pause(&self, end: Instant) -> bool {
        self.bell.wait(Some(LOOK.min(end.saturating_duration_since(Instant::now()))))
    }

    /// Time until the next window; absent where there is none to come.
    pub(crate) fn until_window(&self) -> Option<Duration> {
        let comes = self.ended == Ended::No && self.no_window.is_none();
        comes.then(|| self.next_window.saturating_sub(self.started.elapsed()))
    }

    /// The last look; for how long the program was seen, if it was seen at all.
    pub(crate) fn look_last(&mut self) -> Option<Duration> {
        // It may have ended meanwhile.
        let _ = self.see();
        self.last_look
    }

    /// Whether it was looked at at least once.
    pub(crate) fn has_looked(&self) -> bool {
        self.last_look.is_some()
    }

    /// Adds a word to the report.
    pub(crate) fn note(&mut self, notice: String) {
        self.notices.push(notice);
    }

    fn try_look(&mut self) -> Result<(), WatchError> {
        self.see()?;
        if self.started.elapsed() >= self.next_window && self.no_window.is_none() {
            let now = self.started.elapsed();
            self.next_window = now + now.min(RARELY);
            match self.window() {
                Ok(window) => self.windows.extend(window),
                Err(error) if error.is_end() => return Err(error),
                Err(error) => self.no_window = Some(error.to_string()),
            }
        }
        Ok(())
    }

    fn see(&mut self) -> Result<(), WatchError> {
        self.program.look(&mut self.count)?;
        self.lost_threads = self.lost_threads.max(self.count.ended);
        // A first reading is what later ones are counted from.
        if let Ok(ns) = self.program.cpu_ns() {
            self.cpu_first_ns.get_or_insert(ns);
            self.cpu_last_ns = Some(ns);
        }
        if self.last_look.is_none() {
            self.started = Instant::now();
        }
        self.last_look = Some(self.started.elapsed());
        let resident: Reading<u64> = self.program.resident_bytes().into();
        self.resident_bytes = match (self.resident_bytes.known(), resident.known()) {
            (Some(before), Some(now)) => Reading::Known(*before.max(now)),
            (Some(before), None) => Reading::Known(*before),
            (None, _) => resident,
        };
        Ok(())
    }

    /// Forgets which pages were touched, waits for some switches, counts the pages. None where the
    /// program would be held for too long, or nobody waits for it any more.
    fn window(&mut self) -> Result<Option<Window>, WatchError> {
        let hold = Instant::now();
        if self.windows.is_empty() {
            // What may not be read, or takes long to be read, is not cleared for nothing.
            self.program.referenced()?;
            if self.has_held(hold.elapsed()) {
                return Ok(None);
            }
        }
        let rate = self.count.switches().all() as f64 / self.started.elapsed().as_secs_f64();
        let wanted = Duration::try_from_secs_f64(GAPS / rate).unwrap_or(LONGEST_WINDOW);
        let before = self.count.switches();
        let cpu_before = self.program.cpu_ns()?;
        let hold = Instant::now();
        self.program.clear_referenced()?;
        let cleared = hold.elapsed();
        let start = Instant::now();
        if self.bell.wait(Some(wanted.clamp(SHORTEST_WINDOW, LONGEST_WINDOW))) {
            return Ok(None);
        }
        let hold = Instant::now();
        let referenced = self.program.referenced()?;
        self.has_held(cleared.max(hold.elapsed()));
        let elapsed_ns = nanoseconds(start.elapsed());
        self.see()?;
        let cpu_ns = self.program.cpu_ns()?.saturating_sub(cpu_before);
        Ok(Some(Window {
            elapsed_ns,
            cpu_ns,
            switches: self.count.switches().all().saturating_sub(before.all()),
            threads: self.count.threads as u64,
            referenced_bytes: referenced.bytes,
            huge_bytes: referenced.huge_bytes,
        }))
    }

    /// Whether its memory map was held for so long that there are no further windows.
    fn has_held(&mut self, time: Duration) -> bool {
        self.held = self.held.max(time);
        let too_long = self.held > LONGEST_HOLD;
        if too_long {
            let why = format!(
                "reading or clearing them took {} ms, and holds its memory map; the limit is {} ms",
                self.held.as_millis(),
                LONGEST_HOLD.as_millis()
            );
            self.no_window = Some(why);
        }
        too_long
    }

    /// All that was seen, and what it means here.
    pub(crate) fn report(mut self) -> Report {
        let watched = self.last_look.unwrap_or_default();
        let mut notices = std::mem::take(&mut self.notices);
        if self.ended == Ended::Yes {
            notices.push(format!("it ended after {:.1} s", watched.as_secs_f64()));
        }
        if self.lost_threads > 0 {
            notices.push(format!(
                "{} of its threads ended meanwhile: their last switches (up to {} ms) are not counted",
                self.lost_threads,
                LOOK.as_millis()
            ));
        }
        let cpu = self.cpu_last_ns.zip(self.cpu_first_ns);
        let cpu = cpu.and_then(|(last, first)| last.checked_sub(first));
        notices.extend(cpu.and_then(|cpu_ns| self.unseen(cpu_ns)));
        let seen = Seen {
            switches: self.count.switches(),
            cpu_ns: cpu.ok_or("its CPU clock cannot be read").into(),
            watched,
        };
        let working_set = self.working_set(&mut notices);
        Known {
            pid: self.program.pid().unsigned_abs(),
            name: self.program.name.clone(),
            threads: Some(self.count.threads as u64),
            seen,
            working_set,
            resident_bytes: self.resident_bytes,
            windows: self.windows,
            notices,
        }
        .report()
    }

    /// A word on CPU time that no thread which was seen has used.
    fn unseen(&self, cpu_ns: u64) -> Option<String> {
        let missing_ns = cpu_ns.checked_sub(self.count.cpu_ns()?)?;
        let lag_ns = nanoseconds(LAG).saturating_mul(self.count.threads as u64);
        let share = missing_ns as f64 / cpu_ns as f64;
        (share > UNSEEN && missing_ns > lag_ns).then(|| {
            format!(
                "{:.0} % of its CPU time was in threads that came and ended unseen: its switches are a lower bound",
                100.0 * share
            )
        })
    }

    /// The working set, or the range within the resident memory, said so.
    fn working_set(&self, notices: &mut Vec<String>) -> Reading<WorkingSet> {
        let resident = self.resident_bytes.known().copied();
        let sizes = PageSizes {
            page: rustix::param::page_size() as u64,
            huge: huge_page_bytes(Path::new("/")),
        };
        if let Some(set) = WorkingSet::seen_in(&self.windows, sizes, resident) {
            notices.push(format!(
                "its referenced bits were cleared {} times (/proc/PID/clear_refs), which held its memory map for up to {:.1} ms; they give the lower end of the working set, its resident memory the upper one{}",
                self.windows.len(),
                1000.0 * self.held.as_secs_f64(),
                self.no_window.as_ref().map_or(String::new(), |why| format!("; no more windows: {why}"))
            ));
            return Reading::Known(set);
        }
        let why = match &self.no_window {
            Some(why) => why.clone(),
            None if self.windows.is_empty() => "it was not watched for long enough".to_string(),
            None => "it used no CPU time while they were counted".to_string(),
        };
        match resident {
            Some(bytes) => {
                notices.push(format!(
                    "touched pages were not counted ({why}): its working set may be anything up to its resident memory"
                ));
                Reading::Known(WorkingSet::within(bytes))
            }
            None => Reading::unknown(why),
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_process(bell: &Bell) -> Watcher {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let program = Watched::find(Path::new("/"), own).expect("this process");
        Watcher { next_window: Duration::ZERO, ..Watcher::new(program, bell.clone()) }
    }

    /// Its window would last half a second, as nothing is known of its switches yet.
    #[test]
    fn a_window_ends_with_whoever_waits_for_it() {
        let bell = Bell::default();
        bell.ring();
        let mut watcher = of_this_process(&bell);
        assert_eq!(watcher.look().expect("a look"), Ended::No);
        assert!(watcher.windows.is_empty() && watcher.has_looked());
        assert!(watcher.pause(Instant::now() + Duration::from_secs(3600)));
    }

    #[test]
    fn a_memory_map_that_is_held_for_long_is_let_alone() {
        let mut watcher = of_this_process(&Bell::default());
        assert!(!watcher.has_held(LONGEST_HOLD) && watcher.until_window().is_some());
        assert!(watcher.has_held(2 * LONGEST_HOLD));
        assert_eq!(watcher.until_window(), None);
        watcher.look().expect("a look");
        assert!(watcher.windows.is_empty());
        let mut notices = Vec::new();
        assert!(watcher.working_set(&mut notices).known().is_some());
        assert!(notices[0].contains("took 20 ms"), "{notices:?}");
    }
}

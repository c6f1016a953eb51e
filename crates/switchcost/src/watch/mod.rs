//! A program is watched: looks at its threads and its memory until its time is over.

pub(crate) mod child;
pub(crate) mod surface;

use std::thread::sleep;
use std::time::{Duration, Instant};

use model::program_cost::{self as cost, Program, Report, SCHEMA, Window, WorkingSet};
use model::reading::Reading;
use probe::program::{Count, Switches, WatchError, Watched};

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

/// Whether the program is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    No,
    Yes,
}

/// What is known of a program that is watched.
pub(crate) struct Watcher {
    program: Watched,
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
    ended: Ended,
}

impl Watcher {
    pub(crate) fn new(program: Watched) -> Self {
        Self {
            program,
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
            ended: Ended::No,
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

    /// Waits for the next look, but not beyond `end`.
    pub(crate) fn pause(&self, end: Instant) {
        if self.ended == Ended::No {
            sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// The last look; for how long the program was seen, if it was seen at all.
    pub(crate) fn look_last(&mut self) -> Option<Duration> {
        // It may have ended meanwhile.
        let _ = self.see();
        self.last_look
    }

    fn try_look(&mut self) -> Result<(), WatchError> {
        self.see()?;
        if self.started.elapsed() >= self.next_window && self.no_window.is_none() {
            let now = self.started.elapsed();
            self.next_window = now + now.min(RARELY);
            match self.window() {
                Ok(window) => self.windows.push(window),
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
        self.resident_bytes = self.program.resident_bytes().into();
        Ok(())
    }

    /// Forgets which pages were touched, waits for some switches, counts the pages.
    fn window(&mut self) -> Result<Window, WatchError> {
        let rate = self.count.switches().all() as f64 / self.started.elapsed().as_secs_f64();
        let wanted = Duration::try_from_secs_f64(GAPS / rate).unwrap_or(LONGEST_WINDOW);
        let before = self.count.switches();
        let cpu_before = self.program.cpu_ns().unwrap_or(0);
        self.program.clear_referenced()?;
        let start = Instant::now();
        sleep(wanted.clamp(SHORTEST_WINDOW, LONGEST_WINDOW));
        let referenced_bytes = self.program.referenced_bytes()?;
        let elapsed = start.elapsed();
        self.see()?;
        let cpu_ns = self.program.cpu_ns().unwrap_or(0).saturating_sub(cpu_before);
        let switches = self.count.switches().all().saturating_sub(before.all());
        let threads = self.count.threads as u64;
        Ok(Window { elapsed_ns: nanoseconds(elapsed), cpu_ns, switches, threads, referenced_bytes })
    }

    /// All that was seen, and what it means here.
    pub(crate) fn report(self) -> Report {
        let watched = self.last_look.unwrap_or_default();
        let mut notices = Vec::new();
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
        let cpu = self.cpu_last_ns.zip(self.cpu_first_ns).map(|(last, first)| last - first);
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

    /// The working set, or the range within the resident memory, said so.
    fn working_set(&self, notices: &mut Vec<String>) -> Reading<WorkingSet> {
        let resident = self.resident_bytes.known().copied();
        let page_bytes = rustix::param::page_size() as u64;
        if let Some(set) = WorkingSet::seen_in(&self.windows, page_bytes, resident) {
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

/// Counts of a program over a time.
struct Seen {
    switches: Switches,
    cpu_ns: Reading<u64>,
    watched: Duration,
}

/// All that is known of a program.
struct Known {
    pid: u32,
    name: String,
    threads: Option<u64>,
    seen: Seen,
    working_set: Reading<WorkingSet>,
    resident_bytes: Reading<u64>,
    windows: Vec<Window>,
    notices: Vec<String>,
}

impl Known {
    /// The same, on this machine's costs.
    fn report(mut self) -> Report {
        let seconds = self.seen.watched.as_secs_f64();
        let rate = |count: f64| match seconds > 0.0 {
            true => Reading::Known(count / seconds),
            false => Reading::unknown("it was not watched for long enough"),
        };
        let Switches { voluntary, involuntary } = self.seen.switches;
        let program = Program {
            voluntary_per_s: rate(voluntary as f64),
            involuntary_per_s: rate(involuntary as f64),
            cpu_share: self.seen.cpu_ns.clone().and_then(|ns| rate(ns as f64 / 1e9)),
            working_set: self.working_set,
        };
        let surface = surface::stored(&mut self.notices);
        let points = surface.known().map_or(&[][..], |surface| &surface.points);
        let answer = cost::program_cost(&program, points);
        Report {
            schema: SCHEMA,
            pid: self.pid,
            name: self.name,
            command: None,
            watched_ns: nanoseconds(self.seen.watched),
            threads: self.threads,
            voluntary: Reading::Known(voluntary),
            involuntary: Reading::Known(involuntary),
            cpu_ns: self.seen.cpu_ns,
            resident_bytes: self.resident_bytes,
            windows: self.windows,
            program,
            surface,
            in_words: answer.in_words(),
            cost: answer,
            notices: self.notices,
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

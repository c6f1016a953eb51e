//! A program is watched: looks at its threads and its memory until its time is over.

use std::path::Path;
use std::time::{Duration, Instant};

use launcher::Used;
use model::reading::Reading;
use probe::accesses::{Accesses, Sampler};
use probe::program::{Count, WatchError, Watched, huge_page_bytes};

use super::choice::Chosen;
use super::counts::{Counts, Source};
use super::findings::{Report, SeenSet};
use super::profile::WorkingSet;
use super::program::Program;
use super::refill;
use super::seen::{NotRead, PageSizes, Remedy, Seen, Window};
use crate::base::values::nanoseconds;

/// Time between two looks: what a thread does between the last one and its end is not seen.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
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
/// CPU time missing to the threads' own that is more than reading them one after the other
/// explains.
const UNSEEN: f64 = 0.05;
/// Time by which a running thread's sum may lag behind: a tick of the slowest timer
/// (CONFIG_HZ=100).
const LAG: Duration = Duration::from_millis(10);

/// What is known of a program that is watched.
pub(crate) struct Watcher {
    program: Watched,
    started: Instant,
    count: Count,
    lost_threads: usize,
    /// At the first look and at the last.
    cpu_ns: Option<(u64, u64)>,
    /// For how long the program was seen, if it was seen at all.
    pub(crate) last_look: Option<Duration>,
    resident_bytes: Reading<u64>,
    windows: Vec<Window>,
    next_window: Duration,
    no_window: Option<NotRead>,
    /// Longest time for which a window held the memory map.
    held: Duration,
    ended: bool,
    /// Samples of its accesses, or why there are none.
    sampler: Result<Sampler, String>,
    pub(crate) notices: Vec<String>,
}

impl Watcher {
    /// Of a program that is watched for so long, where that is known.
    pub(crate) fn new(program: Watched, watch: Option<Duration>) -> Self {
        let sampler = Sampler::start(program.pid(), watch);
        Self {
            sampler,
            program,
            started: Instant::now(),
            count: Count::default(),
            lost_threads: 0,
            cpu_ns: None,
            last_look: None,
            resident_bytes: Reading::unknown("it ended before its memory was looked at"),
            windows: Vec::new(),
            next_window: FIRST_WINDOW,
            no_window: None,
            held: Duration::ZERO,
            ended: false,
            notices: Vec::new(),
        }
    }

    /// One look, with a window if it is time for one. False if the program has ended. `wait` waits,
    /// and is true if watching ends meanwhile.
    pub(crate) fn look(&mut self, wait: impl Fn(Duration) -> bool) -> Result<bool, WatchError> {
        match self.see().and_then(|()| self.window_if_due(wait)) {
            Err(error) if error.is_end() => self.ended = true,
            looked => looked?,
        }
        Ok(!self.ended)
    }

    /// Time until the next window; absent where there is none to come.
    pub(crate) fn until_window(&self) -> Option<Duration> {
        (!self.ended && self.no_window.is_none())
            .then(|| self.next_window.saturating_sub(self.started.elapsed()))
    }

    /// Time until the next look that is needed: for a window, or for samples before they are
    /// overwritten.
    pub(crate) fn until_look(&self) -> Option<Duration> {
        let for_samples = self.sampler.is_ok().then_some(LOOK).filter(|_| !self.ended);
        self.until_window().into_iter().chain(for_samples).min()
    }

    fn window_if_due(&mut self, wait: impl Fn(Duration) -> bool) -> Result<(), WatchError> {
        if self.until_window() == Some(Duration::ZERO) {
            let now = self.started.elapsed();
            self.next_window = now + now.min(RARELY);
            match self.window(wait) {
                Ok(window) => self.windows.extend(window),
                Err(error) if error.is_end() => return Err(error),
                Err(error) => {
                    let remedy = error.is_refusal().then_some(Remedy::Privilege);
                    self.no_window = Some(NotRead::new(error.to_string(), remedy));
                }
            }
        }
        Ok(())
    }

    /// One look without a window.
    pub(crate) fn see(&mut self) -> Result<(), WatchError> {
        if let Ok(sampler) = &mut self.sampler {
            sampler.look();
        }
        self.program.look(&mut self.count)?;
        self.lost_threads = self.lost_threads.max(self.count.ended);
        if let Ok(ns) = self.program.cpu_ns() {
            self.cpu_ns = Some((self.cpu_ns.map_or(ns, |(first, _)| first), ns));
        }
        if self.last_look.is_none() {
            self.started = Instant::now();
        }
        self.last_look = Some(self.started.elapsed());
        let resident: Reading<u64> = self.program.resident_bytes().into();
        match (self.resident_bytes.known(), resident.known()) {
            (Some(before), now) if now <= Some(before) => {}
            _ => self.resident_bytes = resident,
        }
        Ok(())
    }

    /// Forgets which pages were touched, waits for some switches, counts the pages. None where the
    /// program would be held for too long, or watching has ended.
    fn window(&mut self, wait: impl Fn(Duration) -> bool) -> Result<Option<Window>, WatchError> {
        let hold = Instant::now();
        if self.windows.is_empty() {
            // What may not be read, or takes long to be read, is not cleared for nothing.
            self.program.referenced()?;
            if self.has_held(hold.elapsed()) {
                return Ok(None);
            }
        }
        let before = self.count.switches();
        let rate = before.all() as f64 / self.started.elapsed().as_secs_f64();
        let wanted = Duration::try_from_secs_f64(GAPS / rate).unwrap_or(LONGEST_WINDOW);
        let cpu_before = self.program.cpu_ns()?;
        let hold = Instant::now();
        self.program.clear_referenced()?;
        let cleared = hold.elapsed();
        let start = Instant::now();
        if wait(wanted.clamp(SHORTEST_WINDOW, LONGEST_WINDOW)) {
            return Ok(None);
        }
        let hold = Instant::now();
        let referenced = self.program.referenced()?;
        self.has_held(cleared.max(hold.elapsed()));
        let elapsed_ns = nanoseconds(start.elapsed());
        self.see()?;
        Ok(Some(Window {
            elapsed_ns,
            cpu_ns: self.program.cpu_ns()?.saturating_sub(cpu_before),
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
            self.no_window = Some(NotRead::new(why, None));
        }
        too_long
    }

    /// For how long it was watched, and the rates until now.
    pub(crate) fn so_far(&self) -> (Duration, Program) {
        let watched = self.last_look.unwrap_or_default();
        let switches = self.count.switches();
        let cpu_ns = self.cpu_ns.map_or(0, |(first, last)| last.saturating_sub(first));
        let counts = [switches.voluntary, switches.involuntary, cpu_ns];
        let counts = counts.map(|count| Reading::Known(count as f64));
        let set = Reading::unknown("it is still watched");
        (watched, Program::over(nanoseconds(watched) as f64, counts, set))
    }

    /// What was read from /proc; `untraced` is why it was not traced.
    fn counts(&self, untraced: &str) -> Counts {
        let mut notices = Vec::new();
        if self.lost_threads > 0 {
            notices.push(format!(
                "{} of its threads ended meanwhile: their last switches (up to {} ms) are not \
                 counted",
                self.lost_threads,
                LOOK.as_millis()
            ));
        }
        let cpu_ns = self.cpu_ns.and_then(|(first, last)| last.checked_sub(first));
        if let Some((all_ns, seen_ns)) = cpu_ns.zip(self.count.cpu_ns()) {
            let missing_ns = all_ns.saturating_sub(seen_ns);
            let share = missing_ns as f64 / all_ns as f64;
            let lag_ns = nanoseconds(LAG).saturating_mul(self.count.threads as u64);
            if share > UNSEEN && missing_ns > lag_ns {
                notices.push(format!(
                    "{:.0} % of its CPU time was in threads that came and ended unseen: its \
                     switches are a lower bound",
                    100.0 * share
                ));
            }
        }
        let mut method = format!("switches are read from /proc every {} ms", LOOK.as_millis());
        match notices.is_empty() {
            true => method += &format!("; {untraced}"),
            false => notices.push(untraced.to_string()),
        }
        let switches = self.count.switches();
        Counts {
            source: Source::Proc,
            watched_ns: nanoseconds(self.last_look.unwrap_or_default()),
            voluntary: switches.voluntary,
            involuntary: switches.involuntary,
            yields: Reading::unknown(NOT_IN_PROC),
            migrations: Reading::unknown(NOT_IN_PROC),
            cpu_ns: cpu_ns.ok_or("its CPU clock cannot be read").into(),
            method,
            notices,
        }
    }

    /// All that was seen, and what it means here, by the profile that was asked for or else the
    /// best one. `traced` are the exact counts, or why there are none.
    pub(crate) fn report(
        mut self,
        traced: Result<Counts, String>,
        named: Option<&Chosen>,
    ) -> Report {
        let mut notices = std::mem::take(&mut self.notices);
        if self.ended {
            let watched = self.last_look.unwrap_or_default();
            notices.push(format!("it ended after {:.1} s", watched.as_secs_f64()));
        }
        let counts = traced.unwrap_or_else(|why| self.counts(&untraced(&why)));
        notices.extend(counts.notices);
        notices.extend(self.unsampled());
        let mut method = vec![counts.method];
        let working_set = self.working_set(&mut method);
        let seen = Seen {
            pid: self.program.pid().unsigned_abs(),
            name: self.program.name.clone(),
            command: None,
            watched_ns: counts.watched_ns,
            threads: Some(self.count.threads as u64),
            counted_by: counts.source,
            voluntary: Reading::Known(counts.voluntary),
            involuntary: Reading::Known(counts.involuntary),
            yields: counts.yields,
            migrations: counts.migrations,
            cpu_ns: counts.cpu_ns,
            resident_bytes: self.resident_bytes,
            windows: self.windows,
            method,
            notices,
        };
        Report::of(seen, working_set, named)
    }

    /// The working set, or the range within the resident memory and why it was not read. Adds how
    /// it was looked at.
    fn working_set(&self, method: &mut Vec<String>) -> SeenSet {
        match &self.sampler {
            Ok(sampler) => self.sampled(sampler.seen(), method),
            Err(_) => self.touched(method),
        }
    }

    /// What is lost where its accesses cannot be sampled.
    fn unsampled(&self) -> Option<String> {
        let why = self.sampler.as_ref().err()?;
        Some(format!("its working set is known by pages only, a wide range: {why}"))
    }

    fn sampled(&self, seen: &Accesses, method: &mut Vec<String>) -> SeenSet {
        match refill::working_set(seen) {
            Ok(set) => {
                method.push(format!(
                    "its working set is estimated from {} samples of its accesses by how often \
                     the same cache line came again",
                    seen.accesses
                ));
                (Reading::Known(set), None)
            }
            Err(not_read) => {
                method.push(not_read.why);
                self.touched(method)
            }
        }
    }

    /// By the pages that were touched.
    fn touched(&self, method: &mut Vec<String>) -> SeenSet {
        let resident = self.resident_bytes.known().copied();
        let sizes = PageSizes {
            page: rustix::param::page_size() as u64,
            huge: huge_page_bytes(Path::new("/")),
        };
        if let Some(set) = WorkingSet::seen_in(&self.windows, sizes, resident) {
            let why = self.no_window.as_ref();
            let why = why.map_or(String::new(), |not| format!("; no more windows: {}", not.why));
            method.push(format!(
                "its referenced bits were cleared {} times (/proc/PID/clear_refs), which held \
                 its memory map for up to {:.1} ms; they give the lower end of the working set, \
                 its resident memory the upper one{why}",
                self.windows.len(),
                1000.0 * self.held.as_secs_f64(),
            ));
            return (Reading::Known(set), None);
        }
        let not_read = match &self.no_window {
            Some(not_read) => not_read.clone(),
            None if self.windows.is_empty() => {
                NotRead::new("it was not watched for long enough", Some(Remedy::Longer))
            }
            None => {
                let why = "it used no CPU time while they were counted";
                NotRead::new(why, Some(Remedy::Longer))
            }
        };
        let why = format!("touched pages were not counted ({})", not_read.why);
        let set = resident.ok_or_else(|| why.clone()).map(WorkingSet::within).into();
        method.push(format!("{why}: its working set may be anything up to its resident memory"));
        (set, Some(NotRead { why, ..not_read }))
    }
}

/// Share of the CPU time from which on a command's working set is taken for that of all of it.
const MOSTLY_OWN: f64 = 0.9;

/// Why there are no exact counts.
fn untraced(why: &str) -> String {
    format!("exact counts, by tracing: {why}")
}

const NOT_IN_PROC: &str = "not counted without tracing";

/// All that is known of a command that has ended. Its counts are those of the tracer, or else what
/// wait4(2) told: of all its threads and of the children that it waited for. Its time is the
/// launcher's, from the start to the end.
pub(crate) fn report_of_command(
    (words, pid): (Vec<String>, u32),
    used: &Used,
    traced: Result<Counts, String>,
    watcher: Option<Watcher>,
    named: Option<&Chosen>,
) -> Report {
    let mut method = Vec::new();
    let usage = &used.usage;
    let watcher = watcher.filter(|watcher| watcher.last_look.is_some());
    let own = match &watcher {
        Some(watcher) => watcher.working_set(&mut method),
        None => {
            let why = "it ended before its memory was looked at";
            method.push(format!(
                "{why}: its working set may be anything up to the greatest \
                 resident memory that the kernel saw"
            ));
            let set = WorkingSet::within(usage.max_resident_bytes);
            (Reading::Known(set), Some(NotRead::new(why, None)))
        }
    };
    let working_set = of_all(own, used);
    let counts = traced.unwrap_or_else(|why| told(used, &untraced(&why)));
    method.insert(0, counts.method);
    method.extend(working_set.1.as_ref().map(|not_read| not_read.why.clone()));
    method.dedup();
    let unsampled = watcher.as_ref().and_then(Watcher::unsampled);
    let seen = Seen {
        pid,
        // Looked at before its exec was through, it may still have this program's name.
        name: words.first().cloned().unwrap_or_default(),
        command: Some(words),
        watched_ns: used.real_ns,
        threads: watcher.as_ref().map(|watcher| watcher.count.threads as u64),
        counted_by: counts.source,
        voluntary: Reading::Known(counts.voluntary),
        involuntary: Reading::Known(counts.involuntary),
        yields: counts.yields,
        migrations: counts.migrations,
        cpu_ns: counts.cpu_ns,
        resident_bytes: Reading::Known(usage.max_resident_bytes),
        notices: counts.notices.into_iter().chain(unsampled).collect(),
        windows: watcher.map(|watcher| watcher.windows).unwrap_or_default(),
        method,
    };
    Report::of(seen, working_set, named)
}

/// What wait4(2) told of a command.
fn told(used: &Used, untraced: &str) -> Counts {
    let usage = &used.usage;
    Counts {
        source: Source::Wait4,
        watched_ns: used.real_ns,
        voluntary: usage.voluntary,
        involuntary: usage.involuntary,
        yields: Reading::unknown(NOT_IN_PROC),
        migrations: Reading::unknown(NOT_IN_PROC),
        cpu_ns: Reading::Known(usage.cpu_ns()),
        method: format!(
            "switches and CPU time are those of the command and of all children that it waited \
             for ({untraced})"
        ),
        notices: Vec::new(),
    }
}

/// The working set that goes with the switches of a command and its children: only the command's
/// own pages were looked at, and at moments only.
fn of_all((own, not_read): SeenSet, used: &Used) -> SeenSet {
    let most = used.usage.max_resident_bytes;
    let share = used.own_cpu_ns.known().map(|own_ns| *own_ns as f64 / used.usage.cpu_ns() as f64);
    if share.is_some_and(|share| share >= MOSTLY_OWN) {
        return (
            own.map(|set| match set.sampled {
                Some(_) => set,
                None => WorkingSet { high_bytes: set.high_bytes.max(most), ..set },
            }),
            not_read,
        );
    }
    let part =
        share.map_or("an unknown part".to_string(), |share| format!("{:.0} %", 100.0 * share));
    let high = own.known().map_or(0, |set| set.high_bytes).max(most);
    let why = format!(
        "{part} of the CPU time is its own, the rest its children's, whose memory was not looked at"
    );
    (Reading::Known(WorkingSet::within(high)), Some(NotRead::new(why, Some(Remedy::Child))))
}

#[cfg(test)]
mod tests {
    use launcher::{AtExec, Ending, Orphans, Usage};

    use super::*;

    fn of_this_process() -> Watcher {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let program = Watched::find(Path::new("/"), own).expect("this process");
        let sampler = Err("not asked for".to_string());
        Watcher { next_window: Duration::ZERO, sampler, ..Watcher::new(program, None) }
    }

    /// Its window would last half a second, as nothing is known of its switches yet.
    #[test]
    fn a_window_ends_with_whoever_waits_for_it() {
        let mut watcher = of_this_process();
        assert!(watcher.look(|_| true).expect("a look"));
        assert!(watcher.windows.is_empty() && watcher.last_look.is_some());
    }

    #[test]
    fn a_memory_map_that_is_held_for_long_is_let_alone() {
        let mut watcher = of_this_process();
        assert!(!watcher.has_held(LONGEST_HOLD) && watcher.until_window().is_some());
        assert!(watcher.has_held(2 * LONGEST_HOLD));
        assert_eq!(watcher.until_window(), None);
        watcher.look(|_| false).expect("a look");
        assert!(watcher.windows.is_empty());
        let mut method = Vec::new();
        let (set, not_read) = watcher.working_set(&mut method);
        assert!(set.known().is_some());
        assert!(not_read.is_some_and(|not| not.why.contains("took 20 ms")), "{method:?}");
        assert!(method.last().is_some_and(|how| how.contains("took 20 ms")), "{method:?}");
    }

    fn used(own_cpu_ns: Option<u64>) -> Used {
        Used {
            real_ns: 1,
            ending: Ending::of_status(0),
            usage: Usage { user_ns: 1000, max_resident_bytes: 5000, ..Usage::default() },
            delay: Reading::default(),
            threads: Reading::default(),
            own_cpu_ns: own_cpu_ns.ok_or("refused").into(),
            sampled: Reading::default(),
            migrations: Reading::default(),
            io: Reading::default(),
            orphans: Orphans {
                ended: 0,
                usage: None,
                left_behind: Reading::default(),
                of_unknown_origin: 0,
            },
            at_exec: AtExec { resident_bytes: 0, minor_faults: 0, cpu_ns: 0 },
        }
    }

    #[test]
    fn childrens_switches_do_not_go_with_their_parents_working_set() {
        let own = Reading::Known(WorkingSet { low_bytes: 10, high_bytes: 400, sampled: None });
        let range = |own_cpu_ns| {
            let (set, not_read) = of_all((own.clone(), None), &used(own_cpu_ns));
            let set = *set.known().unwrap();
            (set.low_bytes, set.high_bytes, not_read)
        };
        assert_eq!(range(Some(950)), (10, 5000, None));
        for (own_cpu_ns, part) in [(Some(120), "12 %"), (None, "unknown part")] {
            let (low, high, not_read) = range(own_cpu_ns);
            assert_eq!((low, high), (0, 5000));
            let not_read = not_read.unwrap();
            assert_eq!(not_read.remedy, Some(Remedy::Child));
            assert!(not_read.why.contains(part), "{}", not_read.why);
        }
    }
}

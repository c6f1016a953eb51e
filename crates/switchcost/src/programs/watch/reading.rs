//! A program is watched: looks at its threads and its memory until its time is over.

use std::path::Path;
use std::time::{Duration, Instant};

use analysis::program::{PageSizes, Program, Window, WorkingSet};
use probe::accesses::AccessSampler;
use probe::executable;
use probe::program::{SwitchCounter, SwitchCounts, WatchError, WatchedProcess, huge_page_bytes};
use rundata::reading::Reading;
use rundata::trial::command::Executable;

use super::choice::ChosenProfile;
use super::counts::{NOT_IN_PROC, untraced};
use super::findings::{ProgramCostReport, SeenSet};
use super::sampled;
use super::seen::{CountSource, NotRead, ProgramObservation, Remedy};
use super::whole::{Companions, ProgramProcesses};
use crate::base::values::nanoseconds;
use crate::observe::processes::ProcessSet;

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
pub(crate) struct ProgramWatcher {
    program: WatchedProcess,
    /// The file that it runs.
    executable: Option<Executable>,
    words: Option<Vec<String>>,
    started: Instant,
    count: SwitchCounter,
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
    /// The other processes of the program, where nobody traces them.
    companions: Option<Companions>,
    /// Samples of its accesses, or why there are none.
    sampler: Result<AccessSampler, String>,
    pub(crate) notices: Vec<String>,
}

impl ProgramWatcher {
    /// Of a program that is watched for so long, where that is known.
    pub(crate) fn new(program: WatchedProcess, watch: Option<Duration>) -> Self {
        let sampler = AccessSampler::start(program.pid(), watch);
        Self {
            sampler,
            executable: executable::find_for_process(program.pid()),
            words: executable::read_words(program.pid()),
            program,
            started: Instant::now(),
            count: SwitchCounter::default(),
            lost_threads: 0,
            cpu_ns: None,
            last_look: None,
            resident_bytes: Reading::unknown("it ended before its memory was looked at"),
            windows: Vec::new(),
            next_window: FIRST_WINDOW,
            no_window: None,
            held: Duration::ZERO,
            ended: false,
            companions: None,
            notices: Vec::new(),
        }
    }

    /// Counts the other processes of the program, too: what no tracer does.
    pub(super) fn follow(&mut self, processes: &ProcessSet) {
        let mut companions = Companions::new(processes.clone(), self.program.pid());
        companions.look();
        self.companions = Some(companions);
    }

    /// The process whose memory is watched.
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid().unsigned_abs()
    }

    /// Whether another process of the program lives that is counted here.
    pub(super) fn has_living_companion(&self) -> bool {
        self.companions.as_ref().is_some_and(Companions::is_alive)
    }

    /// Returns what was read of all processes of the program.
    pub(super) fn whole<'a>(&self, processes: &'a ProcessSet) -> ProgramProcesses<'a> {
        let none = Companions::new(processes.clone(), self.program.pid());
        let companions = self.companions.as_ref().unwrap_or(&none);
        ProgramProcesses::from_proc(processes, companions, self.pid(), self.own_cpu_ns())
    }

    /// CPU time of the watched process, in nanoseconds.
    fn own_cpu_ns(&self) -> u64 {
        self.cpu_ns.map_or(0, |(first, last)| last.saturating_sub(first))
    }

    /// Switches of all processes that are counted here.
    fn switches(&self) -> SwitchCounts {
        let own = self.count.switches();
        let others = self.companions.as_ref().map(Companions::switches).unwrap_or_default();
        SwitchCounts {
            voluntary: own.voluntary + others.voluntary,
            involuntary: own.involuntary + others.involuntary,
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

    /// Time until it is to be looked at: for a window, for samples before they are overwritten, or
    /// as `rarely` as that.
    fn until_look(&self, rarely: Option<Duration>) -> Option<Duration> {
        let every = if self.sampler.is_ok() { Some(LOOK) } else { rarely };
        let since = self.last_look.map(|last| self.started.elapsed().saturating_sub(last));
        let until = every.zip(since).filter(|_| !self.ended);
        let until = until.map(|(every, since)| every.saturating_sub(since));
        self.until_window().into_iter().chain(until).min()
    }

    /// One look if it is time for one; gives the time until the next, if there is any to come.
    pub(crate) fn look_if_due(
        &mut self,
        rarely: Option<Duration>,
        wait: impl Fn(Duration) -> bool,
    ) -> Option<Duration> {
        if self.last_look.is_none() || self.until_look(rarely) == Some(Duration::ZERO) {
            self.look(wait).ok()?;
        }
        self.until_look(rarely)
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
        let is_alive = self.companions.as_mut().is_some_and(Companions::look);
        if is_alive && self.last_look.is_some() {
            // The program goes on, even where the process has ended whose memory is watched.
            self.last_look = Some(self.started.elapsed());
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
                "reading or clearing them took {} ms, during which its memory map is held; the \
                    limit is {} ms",
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
        let switches = self.switches();
        let others_ns = self.companions.as_ref().map_or(0, Companions::cpu_ns);
        let cpu_ns = self.own_cpu_ns() + others_ns;
        let counts = [switches.voluntary, switches.involuntary, cpu_ns];
        let counts = counts.map(|count| Reading::Known(count as f64));
        let set = Reading::unknown("it is still watched");
        (watched, Program::over(nanoseconds(watched) as f64, counts, set))
    }

    /// What was read from /proc; `why` it was not traced.
    fn counts(&self, why: &str) -> ProgramObservation {
        let mut notices = Vec::new();
        let others = self.companions.as_ref().map_or(0, Companions::ended_threads);
        let lost_threads = self.lost_threads + others;
        if lost_threads > 0 {
            notices.push(format!(
                "{lost_threads} of its threads ended during the watch: their switches of up to \
                    the last {} ms are not counted",
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
                    "{:.0} % of its CPU time was in threads that ended before they were seen: \
                        the count of switches is a lower bound",
                    100.0 * share
                ));
            }
        }
        let mut method = format!("switches are read from /proc every {} ms", LOOK.as_millis());
        match notices.is_empty() {
            true => method += &format!("; {}", untraced(why)),
            false => notices.push(untraced(why)),
        }
        let switches = self.switches();
        let others_ns = self.companions.as_ref().map_or(0, Companions::cpu_ns);
        let cpu_ns = cpu_ns.map(|own_ns| own_ns + others_ns);
        let others = self.companions.as_ref().filter(|others| !others.is_empty());
        if others.is_some_and(|others| others.processes_have_children()) {
            method += "; of children those are counted that lived for a second";
        }
        ProgramObservation {
            counted_by: CountSource::Proc,
            watched_ns: nanoseconds(self.last_look.unwrap_or_default()),
            voluntary: Reading::Known(switches.voluntary),
            involuntary: Reading::Known(switches.involuntary),
            yields: Reading::unknown(NOT_IN_PROC),
            migrations: Reading::unknown(NOT_IN_PROC),
            cpu_ns: cpu_ns.ok_or("its CPU clock cannot be read").into(),
            method: vec![method],
            notices,
            ..ProgramObservation::default()
        }
    }

    /// All that was seen, and what it means here, by the profile that was asked for or else the
    /// best one. `traced` are the exact counts, or why there are none; `whole` is what is known of
    /// the program's other processes.
    pub(crate) fn report(
        mut self,
        traced: Result<ProgramObservation, String>,
        whole: &ProgramProcesses,
        named: Option<&ChosenProfile>,
    ) -> ProgramCostReport {
        let mut notices = std::mem::take(&mut self.notices);
        let processes = whole.processes;
        if self.ended {
            let watched = self.last_look.unwrap_or_default().as_secs_f64();
            let is_one = whole.children == 0 && processes.pids.len() == 1;
            notices.push(match is_one {
                true => format!("it ended after {watched:.1} s"),
                false => format!(
                    "pid {}, whose memory was looked at, ended after {watched:.1} s",
                    self.pid()
                ),
            });
        }
        let counts = traced.unwrap_or_else(|why| self.counts(&why));
        notices.extend(counts.notices);
        let pids: Vec<u32> = processes.pids.iter().map(|pid| pid.unsigned_abs()).collect();
        // What was measured on one executable is not that of others.
        let executable = self.executable.clone().filter(|_| !whole.has_other_memory());
        let mut seen = ProgramObservation {
            pid: pids.first().copied().unwrap_or(self.pid()),
            name: processes.name.clone(),
            children: whole.children,
            typed: Some(processes.arguments()),
            pids,
            executable,
            words: self.words.clone(),
            resident_bytes: self.resident_bytes.clone(),
            notices,
            ..counts
        };
        let program = self.program.clone();
        let own = self.add_to(&mut seen);
        let working_set = whole.working_set(&program, own);
        ProgramCostReport::of(seen, working_set, named)
    }

    /// Adds its threads and its memory to what was counted.
    pub(super) fn add_to(self, seen: &mut ProgramObservation) -> SeenSet {
        let working_set = self.working_set(&mut seen.method);
        // What is lost where its accesses cannot be sampled.
        seen.notices.extend(self.sampler.as_ref().err().map(|why| {
            format!(
                "its working set is only known by pages, which is a wide \
                    range: {why}"
            )
        }));
        let others = self.companions.as_ref().map_or(0, Companions::threads);
        seen.threads = Some((self.count.threads + others) as u64);
        seen.windows = self.windows;
        working_set
    }

    /// The working set, or the range within the resident memory and why it was not read. Adds how
    /// it was looked at.
    fn working_set(&self, method: &mut Vec<String>) -> SeenSet {
        let Ok(sampler) = &self.sampler else { return self.touched(method) };
        let seen = sampler.seen();
        match sampled::working_set(seen) {
            Ok(set) => {
                method.push(format!(
                    "its working set is estimated from {} samples of its memory accesses, by how \
                        often a cache line was used again",
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
                    its memory map for up to {:.1} ms. They give the lower end of the working \
                    set, resident memory the upper end{why}",
                self.windows.len(),
                1000.0 * self.held.as_secs_f64(),
            ));
            return (Reading::Known(set), None);
        }
        let not_read = match &self.no_window {
            Some(not_read) => not_read.clone(),
            None => {
                let why = match self.windows.is_empty() {
                    true => "it was not watched for long enough",
                    false => "it used no CPU time while they were counted",
                };
                NotRead::new(why, Some(Remedy::Longer))
            }
        };
        let why = format!("touched pages were not counted ({})", not_read.why);
        let set = resident.ok_or_else(|| why.clone()).map(WorkingSet::within).into();
        method.push(format!(
            "{why}: its working set is only known to be at most its resident \
            memory"
        ));
        (set, Some(NotRead { why, ..not_read }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_process() -> ProgramWatcher {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let program = WatchedProcess::find(Path::new("/"), own).expect("this process");
        let sampler = Err("not asked for".to_string());
        ProgramWatcher {
            next_window: Duration::ZERO,
            sampler,
            ..ProgramWatcher::new(program, None)
        }
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
}

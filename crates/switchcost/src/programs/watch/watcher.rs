//! Watches a program: looks at its threads and its memory until its time is over.
//!
//! A look every 50 ms reads switches and CPU time. The working set comes from samples of memory
//! accesses if these are permitted. Otherwise it comes from *windows*, in which the pages are
//! counted that the program touches:
//!
//! ```text
//!          clear              count
//!          referenced bits    referenced pages
//!               |                |
//!     ---s---s--[-s---s---s---s--]--------s---s---     s: a switch
//!                 about 4 switches
//! ```
//!
//! Clearing and counting hold the program's memory map, for some microseconds a MiB. So windows get
//! rarer (after 50, 100, 200, 400 ms, ...), and the first that holds it for over 10 ms is the last.

use std::path::Path;
use std::time::{Duration, Instant};

use analysis::program::{PageSizes, Program, Window, WorkingSet};
use probe::accesses::AccessSampler;
use probe::executable;
use probe::program::{SwitchCounter, SwitchCounts, WatchError, WatchedProcess, huge_page_bytes};
use rundata::reading::Reading;
use rundata::trial::command::Executable;

use super::counts::{NOT_IN_PROC, program_so_far, untraced};
use super::findings::ProgramCostReport;
use super::observation::{
    CountSource, ProgramObservation, UnreadReason, UnreadRemedy, WorkingSetReading,
};
use super::processes::{FollowedProcesses, ProgramProcesses};
use super::profile_choice::ChosenProfile;
use super::sampled;
use crate::base::values::nanoseconds;
use crate::observe::processes::ProcessSet;

/// Time between two looks. Switches of a thread between the last look and its end are not counted.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Time until the first window; each later one begins after twice the time.
const FIRST_WINDOW: Duration = Duration::from_millis(50);
const MAX_WINDOW_INTERVAL: Duration = Duration::from_secs(10);
/// Switches that a window should hold.
const SWITCHES_PER_WINDOW: f64 = 4.0;
const MIN_WINDOW: Duration = Duration::from_millis(2);
const MAX_WINDOW: Duration = Duration::from_millis(500);
/// Longest time for which a window may hold the program's memory map; a large map takes seconds.
const MAX_HOLD: Duration = Duration::from_millis(10);
/// Share of the CPU time that may be missing in the sum of the threads, which are read one after
/// the other.
const MAX_UNSEEN_CPU_SHARE: f64 = 0.05;
/// Time by which a running thread's sum may lag behind: a tick of the slowest timer
/// (CONFIG_HZ=100).
const THREAD_CPU_LAG: Duration = Duration::from_millis(10);

/// CPU clock of a process at the first look and at the last, in nanoseconds.
#[derive(Clone, Copy)]
struct CpuClockSpan {
    first_ns: u64,
    last_ns: u64,
}

/// A program that is watched, and what is known of it so far.
pub(crate) struct ProgramWatcher {
    program: WatchedProcess,
    /// File that the program runs.
    executable: Option<Executable>,
    words: Option<Vec<String>>,
    started: Instant,
    count: SwitchCounter,
    lost_threads: usize,
    cpu_clock: Option<CpuClockSpan>,
    /// Time from the first look to the last; absent before the first.
    pub(crate) last_look: Option<Duration>,
    resident_bytes: Reading<u64>,
    windows: Vec<Window>,
    next_window: Duration,
    /// Reason why there are no more windows.
    windows_end: Option<UnreadReason>,
    /// Longest time for which a window held the memory map.
    max_held: Duration,
    has_ended: bool,
    /// Further processes of the program; none if there is a tracer.
    followed: FollowedProcesses,
    /// Samples of its accesses, or why there are none.
    sampler: Result<AccessSampler, String>,
    pub(crate) notices: Vec<String>,
}

impl ProgramWatcher {
    /// Begins to watch a program, for `duration` if that is known.
    pub(crate) fn new(program: WatchedProcess, duration: Option<Duration>) -> Self {
        let sampler = AccessSampler::start(program.pid(), duration);
        Self {
            sampler,
            executable: executable::find_for_process(program.pid()),
            words: executable::read_words(program.pid()),
            program,
            started: Instant::now(),
            count: SwitchCounter::default(),
            lost_threads: 0,
            cpu_clock: None,
            last_look: None,
            resident_bytes: Reading::unknown("it ended before its memory was looked at"),
            windows: Vec::new(),
            next_window: FIRST_WINDOW,
            windows_end: None,
            max_held: Duration::ZERO,
            has_ended: false,
            followed: FollowedProcesses::default(),
            notices: Vec::new(),
        }
    }

    /// Counts the further processes of the program as well, which a tracer would do otherwise.
    pub(super) fn follow(&mut self, processes: &ProcessSet) {
        self.followed = FollowedProcesses::new(processes.clone(), self.program.pid());
        self.followed.look();
    }

    /// Returns the id of the process whose memory is watched.
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid().unsigned_abs()
    }

    /// Returns whether a followed process of the program lives.
    pub(super) fn has_living_process(&self) -> bool {
        self.followed.is_alive()
    }

    /// Returns how the CPU time is spread over all processes of the program, as read from /proc.
    pub(super) fn program_processes<'a>(&self, processes: &'a ProcessSet) -> ProgramProcesses<'a> {
        ProgramProcesses::from_proc(processes, &self.followed, self.pid(), self.watched_cpu_ns())
    }

    /// Returns the CPU time of the process whose memory is watched, in nanoseconds.
    fn watched_cpu_ns(&self) -> u64 {
        self.cpu_clock.map_or(0, |clock| clock.last_ns.saturating_sub(clock.first_ns))
    }

    /// Returns the switches of all processes that are counted here.
    fn switches(&self) -> SwitchCounts {
        let watched = self.count.switches();
        let followed = self.followed.switches();
        SwitchCounts {
            voluntary: watched.voluntary + followed.voluntary,
            involuntary: watched.involuntary + followed.involuntary,
        }
    }

    /// Looks once, with a window if one is due. `wait` waits, and returns whether watching ends
    /// meanwhile. Returns whether the program lives.
    ///
    /// # Errors
    /// Fails if the program cannot be read although it lives.
    pub(crate) fn look(&mut self, wait: impl Fn(Duration) -> bool) -> Result<bool, WatchError> {
        match self.read_counts().and_then(|()| self.window_if_due(wait)) {
            Err(error) if error.is_end() => self.has_ended = true,
            looked => looked?,
        }
        Ok(!self.has_ended)
    }

    /// Returns the time until the next window; absent if there are no more.
    pub(crate) fn until_window(&self) -> Option<Duration> {
        if self.has_ended || self.windows_end.is_some() {
            return None;
        }
        Some(self.next_window.saturating_sub(self.started.elapsed()))
    }

    /// Returns the time until the next look is due: for a window, for samples before they are
    /// overwritten, or else after `interval`.
    fn until_look(&self, interval: Option<Duration>) -> Option<Duration> {
        let until_window = self.until_window();
        let interval = if self.sampler.is_ok() { Some(LOOK_INTERVAL) } else { interval };
        let (Some(interval), Some(last_look), false) = (interval, self.last_look, self.has_ended)
        else {
            return until_window;
        };
        let since_look = self.started.elapsed().saturating_sub(last_look);
        let until_look = interval.saturating_sub(since_look);
        Some(until_window.map_or(until_look, |until_window| until_window.min(until_look)))
    }

    /// Looks if a look is due; returns the time until the next one, if there is any.
    pub(crate) fn look_if_due(
        &mut self,
        interval: Option<Duration>,
        wait: impl Fn(Duration) -> bool,
    ) -> Option<Duration> {
        if self.last_look.is_none() || self.until_look(interval) == Some(Duration::ZERO) {
            self.look(wait).ok()?;
        }
        self.until_look(interval)
    }

    fn window_if_due(&mut self, wait: impl Fn(Duration) -> bool) -> Result<(), WatchError> {
        if self.until_window() != Some(Duration::ZERO) {
            return Ok(());
        }
        let now = self.started.elapsed();
        self.next_window = now + now.min(MAX_WINDOW_INTERVAL);
        match self.measure_window(wait) {
            Ok(window) => self.windows.extend(window),
            Err(error) if error.is_end() => return Err(error),
            Err(error) => {
                let remedy = error.is_refusal().then_some(UnreadRemedy::Privilege);
                self.windows_end = Some(UnreadReason::new(error.to_string(), remedy));
            }
        }
        Ok(())
    }

    /// Looks once, without a window.
    ///
    /// # Errors
    /// Fails if the program has ended or cannot be read.
    pub(crate) fn read_counts(&mut self) -> Result<(), WatchError> {
        if let Ok(sampler) = &mut self.sampler {
            sampler.look();
        }
        let is_alive = self.followed.look();
        if is_alive && self.last_look.is_some() {
            // The program goes on, even if the process has ended whose memory is watched.
            self.last_look = Some(self.started.elapsed());
        }
        self.program.look(&mut self.count)?;
        self.lost_threads = self.lost_threads.max(self.count.ended);
        if let Ok(last_ns) = self.program.cpu_ns() {
            let first_ns = self.cpu_clock.map_or(last_ns, |clock| clock.first_ns);
            self.cpu_clock = Some(CpuClockSpan { first_ns, last_ns });
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

    /// Forgets which pages were touched, waits for some switches, counts the pages. Returns no
    /// window if the program would be held for too long, or watching has ended.
    fn measure_window(
        &mut self,
        wait: impl Fn(Duration) -> bool,
    ) -> Result<Option<Window>, WatchError> {
        let hold = Instant::now();
        if self.windows.is_empty() {
            // Before bits are cleared in vain: the pages may be read, and soon enough.
            self.program.referenced()?;
            self.record_hold(hold.elapsed());
            if self.windows_end.is_some() {
                return Ok(None);
            }
        }
        let before = self.count.switches();
        let rate = before.all() as f64 / self.started.elapsed().as_secs_f64();
        let length = Duration::try_from_secs_f64(SWITCHES_PER_WINDOW / rate).unwrap_or(MAX_WINDOW);
        let cpu_before = self.program.cpu_ns()?;
        let hold = Instant::now();
        self.program.clear_referenced()?;
        let cleared = hold.elapsed();
        let start = Instant::now();
        if wait(length.clamp(MIN_WINDOW, MAX_WINDOW)) {
            return Ok(None);
        }
        let hold = Instant::now();
        let referenced = self.program.referenced()?;
        self.record_hold(cleared.max(hold.elapsed()));
        let elapsed_ns = nanoseconds(start.elapsed());
        self.read_counts()?;
        Ok(Some(Window {
            elapsed_ns,
            cpu_ns: self.program.cpu_ns()?.saturating_sub(cpu_before),
            switches: self.count.switches().all().saturating_sub(before.all()),
            threads: self.count.threads as u64,
            referenced_bytes: referenced.bytes,
            huge_bytes: referenced.huge_bytes,
        }))
    }

    /// Records for how long the memory map was held. If that was too long, this is the end of
    /// windows.
    fn record_hold(&mut self, held: Duration) {
        self.max_held = self.max_held.max(held);
        if self.max_held > MAX_HOLD {
            let why = format!(
                "reading or clearing them took {} ms, during which its memory map is held; the \
                 limit is {} ms",
                self.max_held.as_millis(),
                MAX_HOLD.as_millis()
            );
            self.windows_end = Some(UnreadReason::new(why, None));
        }
    }

    /// Returns the time for which it was watched, at the last look.
    pub(crate) fn watched(&self) -> Duration {
        self.last_look.unwrap_or_default()
    }

    /// Returns the rates until the last look.
    pub(crate) fn so_far(&self) -> Program {
        let cpu_ns = self.watched_cpu_ns() + self.followed.cpu_ns();
        program_so_far(nanoseconds(self.watched()), self.switches(), cpu_ns)
    }

    /// Returns what was read from /proc; `why` it was not traced.
    fn observe_from_proc(&self, why: &str) -> ProgramObservation {
        let cpu_ns = self.cpu_clock.and_then(|clock| clock.last_ns.checked_sub(clock.first_ns));
        let mut notices: Vec<String> = self.lost_threads_notice().into_iter().collect();
        if let Some(cpu_ns) = cpu_ns {
            notices.extend(self.unseen_cpu_notice(cpu_ns));
        }
        let interval_ms = LOOK_INTERVAL.as_millis();
        let mut method = format!("switches are read from /proc every {interval_ms} ms");
        if notices.is_empty() {
            method += &format!("; {}", untraced(why));
        } else {
            notices.push(untraced(why));
        }
        if self.followed.finds_children() && !self.followed.is_empty() {
            method += "; of children those are counted that lived for a second";
        }
        let switches = self.switches();
        let cpu_ns = cpu_ns.map(|watched_ns| watched_ns + self.followed.cpu_ns());
        ProgramObservation {
            counted_by: CountSource::Proc,
            watched_ns: nanoseconds(self.watched()),
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

    /// Says how many threads ended while the program was watched, if any.
    fn lost_threads_notice(&self) -> Option<String> {
        let lost = self.lost_threads + self.followed.ended_threads();
        if lost == 0 {
            return None;
        }
        Some(format!(
            "{lost} of its threads ended during the watch: their switches of up to the last {} ms \
             are not counted",
            LOOK_INTERVAL.as_millis()
        ))
    }

    /// Says how much of the watched process's CPU time its threads do not account for, if that is
    /// more than reading them one after the other explains.
    fn unseen_cpu_notice(&self, cpu_ns: u64) -> Option<String> {
        let missing_ns = cpu_ns.saturating_sub(self.count.cpu_ns()?);
        let share = missing_ns as f64 / cpu_ns as f64;
        let lag_ns = nanoseconds(THREAD_CPU_LAG).saturating_mul(self.count.threads as u64);
        if share > MAX_UNSEEN_CPU_SHARE && missing_ns > lag_ns {
            return Some(format!(
                "{:.0} % of its CPU time was in threads that ended before they were seen: the \
                 count of switches is a lower bound",
                100.0 * share
            ));
        }
        None
    }

    /// Builds the report, with the costs of the profile that was asked for, or else of the best
    /// one. `traced` are the exact counts, or why there are none; `program` is what is known of all
    /// processes of the program.
    pub(crate) fn report(
        mut self,
        traced: Result<ProgramObservation, String>,
        program: &ProgramProcesses,
        named: Option<&ChosenProfile>,
    ) -> ProgramCostReport {
        let mut notices = std::mem::take(&mut self.notices);
        let processes = program.processes;
        if self.has_ended {
            let seconds = self.watched().as_secs_f64();
            if program.children == 0 && processes.pids.len() == 1 {
                notices.push(format!("it ended after {seconds:.1} s"));
            } else {
                let pid = self.pid();
                notices.push(format!(
                    "pid {pid}, whose memory was looked at, ended after {seconds:.1} s"
                ));
            }
        }
        let counts = traced.unwrap_or_else(|why| self.observe_from_proc(&why));
        notices.extend(counts.notices);
        let pids: Vec<u32> = processes.pids.iter().map(|pid| pid.unsigned_abs()).collect();
        // A cost that was measured on one executable does not apply to other ones.
        let executable = self.executable.clone().filter(|_| !program.has_other_memory());
        let mut observation = ProgramObservation {
            pid: pids.first().copied().unwrap_or(self.pid()),
            name: processes.name.clone(),
            children: program.children,
            typed: Some(processes.arguments()),
            pids,
            executable,
            words: self.words.clone(),
            resident_bytes: self.resident_bytes.clone(),
            notices,
            ..counts
        };
        let watched = self.program.clone();
        let watched_set = self.add_to(&mut observation);
        let working_set = program.working_set(&watched, watched_set);
        ProgramCostReport::from_observation(observation, working_set, named)
    }

    /// Adds threads, windows and notes to an observation; returns the working set.
    pub(super) fn add_to(self, observation: &mut ProgramObservation) -> WorkingSetReading {
        let working_set = self.working_set(&mut observation.method);
        if let Err(why) = &self.sampler {
            let notice =
                format!("its working set is only known by pages, which is a wide range: {why}");
            observation.notices.push(notice);
        }
        observation.threads = Some((self.count.threads + self.followed.threads()) as u64);
        observation.windows = self.windows;
        working_set
    }

    /// Returns the working set from samples, or else from touched pages. Adds to `method` how it
    /// was read.
    fn working_set(&self, method: &mut Vec<String>) -> WorkingSetReading {
        let Ok(sampler) = &self.sampler else { return self.touched_pages(method) };
        match sampled::working_set(sampler.seen()) {
            Ok(set) => {
                method.push(format!(
                    "its working set is estimated from {} samples of its memory accesses, by how \
                     often a cache line was used again",
                    sampler.seen().accesses
                ));
                WorkingSetReading::read(set)
            }
            Err(unread) => {
                method.push(unread.why);
                self.touched_pages(method)
            }
        }
    }

    /// Returns the working set from the pages that were touched in windows, or else the range
    /// within the resident memory. Adds to `method` how it was read.
    fn touched_pages(&self, method: &mut Vec<String>) -> WorkingSetReading {
        let resident = self.resident_bytes.known().copied();
        let sizes = PageSizes {
            page: rustix::param::page_size() as u64,
            huge: huge_page_bytes(Path::new("/")),
        };
        if let Some(set) = WorkingSet::seen_in(&self.windows, sizes, resident) {
            let end = match &self.windows_end {
                Some(end) => format!("; no more windows: {}", end.why),
                None => String::new(),
            };
            method.push(format!(
                "its referenced bits were cleared {} times (/proc/PID/clear_refs), which held its \
                 memory map for up to {:.1} ms. They give the lower end of the working set, \
                 resident memory the upper end{end}",
                self.windows.len(),
                1000.0 * self.max_held.as_secs_f64(),
            ));
            return WorkingSetReading::read(set);
        }
        let unread = self.windows_end.clone().unwrap_or_else(|| self.too_short_reason());
        let why = format!("touched pages were not counted ({})", unread.why);
        method.push(format!(
            "{why}: its working set is only known to be at most its resident memory"
        ));
        WorkingSetReading {
            set: resident.ok_or_else(|| why.clone()).map(WorkingSet::within).into(),
            unread: Some(UnreadReason { why, ..unread }),
        }
    }

    /// Says why the windows show no working set although nothing kept them from being measured.
    fn too_short_reason(&self) -> UnreadReason {
        let why = if self.windows.is_empty() {
            "it was not watched for long enough"
        } else {
            "it used no CPU time while they were counted"
        };
        UnreadReason::new(why, Some(UnreadRemedy::Longer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch_this_process() -> ProgramWatcher {
        let pid = i32::try_from(std::process::id()).expect("a process id");
        let program = WatchedProcess::find(Path::new("/"), pid).expect("this process");
        let sampler = Err("not asked for".to_string());
        let watcher = ProgramWatcher::new(program, None);
        ProgramWatcher { next_window: Duration::ZERO, sampler, ..watcher }
    }

    #[test]
    fn switches_are_those_of_all_processes() {
        let script = ["-c", "while sleep 0.01; do :; done"];
        let mut child = std::process::Command::new("sh").args(script).spawn().expect("a shell");
        let mut watcher = watch_this_process();
        watcher.follow(&ProcessSet {
            pids: vec![watcher.program.pid(), child.id() as i32],
            has_children: false,
            name: "two".to_string(),
            typed: String::new(),
        });
        let [watched, followed] = testing::wait_for("switches of both", || {
            watcher.read_counts().expect("a look");
            let (watched, followed) = (watcher.count.switches(), watcher.followed.switches());
            (watched.voluntary > 0 && followed.voluntary > 0).then_some([watched, followed])
        });
        let all = watcher.switches();
        child.kill().and_then(|()| child.wait().map(drop)).expect("its end");
        assert_eq!(all.voluntary, watched.voluntary + followed.voluntary);
        assert_eq!(all.involuntary, watched.involuntary + followed.involuntary);
    }

    /// The window would last half a second, as no switch was counted yet.
    #[test]
    fn a_window_ends_when_watching_ends() {
        let mut watcher = watch_this_process();
        assert!(watcher.look(|_| true).expect("a look"));
        assert!(watcher.windows.is_empty() && watcher.last_look.is_some());
    }

    #[test]
    fn there_are_no_more_windows_once_one_held_the_memory_map_for_long() {
        let mut watcher = watch_this_process();
        watcher.record_hold(MAX_HOLD);
        assert!(watcher.until_window().is_some());
        watcher.record_hold(2 * MAX_HOLD);
        assert_eq!(watcher.until_window(), None);
        watcher.look(|_| false).expect("a look");
        assert!(watcher.windows.is_empty());
        let mut method = Vec::new();
        let WorkingSetReading { set, unread } = watcher.working_set(&mut method);
        assert!(set.known().is_some());
        assert!(unread.is_some_and(|unread| unread.why.contains("took 20 ms")), "{method:?}");
        assert!(method.last().is_some_and(|how| how.contains("took 20 ms")), "{method:?}");
    }
}

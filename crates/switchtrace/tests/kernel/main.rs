//! On the running kernel: counts and times against its own. Needs root; says `skipped: why`
//! without.
#![allow(unsafe_code, clippy::unwrap_used)]

// The C example, as that of threadclock.
#[path = "../../../threadclock/tests/c_interface.rs"]
mod c_interface;
mod mixed_load;

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use switchtrace::{
    Error, EventKind, Options, RecordingOptions, SwitchCounter, ThreadCounts, ThreadSnapshot,
    ThreadTime, ThreadTimeError, ThreadTimeReader, Tracer,
};
use testing::{Need, PATIENCE, wait_for};

/// Limits how far a time may be ahead of the kernel's at a switch (`program::record::MAX_AHEAD_NS`).
const MAX_AHEAD_NS: u64 = 20_000;
const PINNED: &str = "SWITCHTRACE_TEST_PINNED";
const HOLD: &str = "SWITCHTRACE_TEST_HOLD";

fn tracer(options: &Options) -> Option<Tracer> {
    match Tracer::open(options) {
        Ok(tracer) => Some(tracer),
        Err(why @ (Error::Refused { .. } | Error::NoBtf { .. } | Error::NotInBtf(_))) => {
            testing::skip(Need::Tracing, why);
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// Returns the reading and the writing end of a pipe. `std::io::pipe` needs Rust 1.87.
fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which nobody else has.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}

fn own_tid() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() as u32 }
}

fn pin(cpu: usize) {
    let set = [1u64 << cpu];
    // SAFETY: the kernel reads eight bytes.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, 8, set.as_ptr()) };
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills `time`.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The kernel's own figures of a thread that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KernelFigures {
    runnable: bool,
    voluntary: u64,
    involuntary: u64,
    migrations: Option<u64>,
    cpu_ns: u64,
    waited_ns: u64,
}

fn kernel_figures(tid: u32) -> KernelFigures {
    let read = |name: &str| fs::read_to_string(format!("/proc/{tid}/{name}")).unwrap_or_default();
    let field = |text: &str, name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.rsplit([':', ' ', '\t']).next()?.parse().ok()
    };
    let (status, sched, schedstat) = (read("status"), read("sched"), read("schedstat"));
    let mut times = schedstat.split_whitespace().map(|number| number.parse().unwrap());
    KernelFigures {
        runnable: status.contains("State:\tR"),
        voluntary: field(&status, "voluntary_ctxt_switches").unwrap(),
        involuntary: field(&status, "nonvoluntary_ctxt_switches").unwrap(),
        migrations: field(&sched, "se.nr_migrations"),
        cpu_ns: times.next().unwrap(),
        waited_ns: times.next().unwrap(),
    }
}

/// Waits until all threads sleep and their figures no longer change.
fn at_rest(tids: &[u32]) -> Vec<KernelFigures> {
    let mut before = Vec::new();
    loop {
        let now: Vec<KernelFigures> = tids.iter().map(|tid| kernel_figures(*tid)).collect();
        // The figures of a thread that waits for a CPU do not change, except its wait if it is moved.
        if now == before && now.iter().all(|kernels| !kernels.runnable) {
            return now;
        }
        before = now;
        thread::sleep(Duration::from_millis(20));
    }
}

/// Threads that wait, do their work when told to, and wait again until they are let go.
struct Crowd {
    tids: Vec<u32>,
    /// Number of threads that have done their work.
    done: Arc<AtomicUsize>,
    start: Arc<Barrier>,
    end: Arc<Barrier>,
    handles: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn new(works: Vec<Box<dyn FnOnce() + Send>>) -> Self {
        let (start, end) = (works.len() + 1, works.len() + 1);
        let (start, end) = (Arc::new(Barrier::new(start)), Arc::new(Barrier::new(end)));
        let (tell, hear) = mpsc::channel();
        let done = Arc::new(AtomicUsize::new(0));
        let spawn = |work: Box<dyn FnOnce() + Send>| {
            let (tell, start, end) = (tell.clone(), start.clone(), end.clone());
            let done = done.clone();
            thread::spawn(move || {
                tell.send(own_tid()).unwrap();
                start.wait();
                work();
                done.fetch_add(1, Relaxed);
                end.wait();
            })
        };
        let handles: Vec<_> = works.into_iter().map(spawn).collect();
        let tids = (0..handles.len()).map(|_| hear.recv().unwrap()).collect();
        Self { tids, done, start, end, handles }
    }

    /// Lets them work until so many are done, and then tells those to stop who end when told to.
    /// Afterwards all sleep in the last barrier, or are on their way.
    fn work(&self, most: usize, stop: &AtomicBool) {
        let are_done = |count: usize| (self.done.load(Relaxed) >= count).then_some(());
        self.start.wait();
        wait_for("work that is done", || are_done(most));
        stop.store(true, Relaxed);
        wait_for("end of all work", || are_done(self.tids.len()));
    }

    fn leave(self) {
        self.end.wait();
        self.handles.into_iter().for_each(|handle| handle.join().unwrap());
    }
}

/// Two that pass a token by pipes, so many times, on a CPU or anywhere.
fn ping_pong(laps: usize, cpu: Option<usize>) -> [Box<dyn FnOnce() + Send>; 2] {
    let ((mut from_a, mut to_b), (mut from_b, mut to_a)) = (pipe(), pipe());
    let go = move |first: bool, from: &mut dyn Read, to: &mut dyn Write| {
        cpu.into_iter().for_each(pin);
        let mut token = [0; 1];
        for _ in 0..laps {
            if first {
                to.write_all(&token).unwrap();
            }
            from.read_exact(&mut token).unwrap();
            if !first {
                to.write_all(&token).unwrap();
            }
        }
    };
    [
        Box::new(move || go(true, &mut from_b, &mut to_b)),
        Box::new(move || go(false, &mut from_a, &mut to_a)),
    ]
}

/// Until it is told to stop.
fn busy(stop: &Arc<AtomicBool>, yields: bool) -> Box<dyn FnOnce() + Send> {
    let stop = stop.clone();
    Box::new(move || {
        while !stop.load(Relaxed) {
            if yields {
                thread::yield_now();
            }
        }
    })
}

fn by_tid(tracer: &Tracer) -> HashMap<u32, ThreadSnapshot> {
    tracer.threads().into_iter().map(|thread| (thread.key.tid, thread)).collect()
}

/// Asserts that a reading of a thread that sleeps agrees with the kernel's figures.
fn assert_agrees(time: &ThreadTime, is: &KernelFigures) {
    assert_eq!((time.voluntary, time.involuntary), (is.voluntary, is.involuntary));
    assert_eq!(time.migrations as u64, is.migrations.unwrap_or(time.migrations as u64));
    assert_eq!((time.waited_ns, time.kernel_ns), (is.waited_ns, is.cpu_ns));
    assert!((is.cpu_ns..=is.cpu_ns + MAX_AHEAD_NS).contains(&time.cpu_ns), "{time:?} {is:?}");
    assert!(!time.running && !time.ended);
}

/// A ring on one CPU, one anywhere, busy threads, one that yields: every count is the kernel's, to
/// the last switch, and the independent counts of pairs and bursts agree with them.
#[test]
fn counts_and_times_are_the_kernels() {
    let Some(tracer) = tracer(&Options::default()) else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let mut works = vec![busy(&stop, false), busy(&stop, false), busy(&stop, true)];
    works.extend(ping_pong(3_000, Some(0)));
    works.extend(ping_pong(3_000, None));
    let crowd = Crowd::new(works);
    let before = at_rest(&crowd.tids);
    let (known, pairs) = (by_tid(&tracer), tracer.pairs());
    crowd.work(4, &stop);
    let after = at_rest(&crowd.tids);
    let (now, pairs_now, lost) = (by_tid(&tracer), tracer.pairs(), tracer.lost());
    let times = tracer.thread_times().unwrap();
    let (mut ours_ns, mut kernels_ns) = (0, 0);
    for (number, tid) in crowd.tids.iter().enumerate() {
        let (was, is) = (before[number], after[number]);
        let time = times.read(*tid).unwrap();
        assert_agrees(&time, &is);
        (ours_ns, kernels_ns) = (ours_ns + time.cpu_ns, kernels_ns + is.cpu_ns);

        let switches = is.voluntary + is.involuntary - was.voluntary - was.involuntary;
        let (first, last) = (&known[tid], &now[tid]);
        let sum = |pairs: &[switchtrace::SwitchPair]| -> (u64, u64) {
            let own = pairs.iter().filter(|pair| pair.prev == last.key);
            own.fold((0, 0), |sum, pair| (sum.0 + pair.voluntary, sum.1 + pair.involuntary))
        };
        let (old, new) = (sum(&pairs), sum(&pairs_now));
        assert_eq!(new.0 - old.0, is.voluntary - was.voluntary, "voluntary pairs");
        assert_eq!(new.1 - old.1, is.involuntary - was.involuntary, "involuntary pairs");
        let bursts = (last.bursts - first.bursts).total();
        assert!(
            bursts <= switches && bursts + lost.switches >= switches,
            "{bursts} of {switches}, {lost:?}"
        );
        assert!(last.yields <= last.involuntary);
    }
    let most_ns = crowd.tids.len() as u64 * MAX_AHEAD_NS;
    assert!(ours_ns.abs_diff(kernels_ns) <= most_ns, "{ours_ns} {kernels_ns}");
    assert!(now.values().any(|thread| thread.yields > 0));
    assert_eq!((lost.threads, lost.pairs), (0, 0));
    crowd.leave();
}

fn counter(threads: u32) -> Option<SwitchCounter> {
    match SwitchCounter::open(threads) {
        Ok(counter) => Some(counter),
        Err(why @ (Error::Refused { .. } | Error::NoBtf { .. } | Error::NotInBtf(_))) => {
            testing::skip(Need::Tracing, why);
            None
        }
        Err(why) => panic!("{why}"),
    }
}

/// The last counts of those threads at whose end the kernel has run the counter's program, which it may
/// not do at all (see `counter.rs`): it is waited for one of them, and until none has come for 1 s.
fn ends_of(counter: &mut SwitchCounter, tids: &[u32]) -> Vec<ThreadCounts> {
    let mut ended = HashMap::new();
    let mut last = Instant::now();
    wait_for("threads that were freed", || {
        let count = ended.len();
        let mut threads = counter.read().unwrap();
        threads.retain(|thread| thread.ended && tids.contains(&thread.key.tid));
        ended.extend(threads.into_iter().map(|thread| (thread.key.tid, thread)));
        if ended.len() > count {
            last = Instant::now();
        }
        let is_done = ended.len() == tids.len()
            || !ended.is_empty() && last.elapsed() > Duration::from_secs(1);
        is_done.then(|| ended.values().copied().collect())
    })
}

/// A counter runs no program at switches: it has the counts of the kernel as of its look, and those of
/// threads that ended, also of those that no look has seen.
#[test]
fn a_counter_has_the_kernels_counts() {
    let Some(mut counter) = counter(16_384) else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let mut works = vec![busy(&stop, true)];
    works.extend(ping_pong(1_000, Some(0)));
    let crowd = Crowd::new(works);
    crowd.work(2, &stop);
    let figures = at_rest(&crowd.tids);
    let threads = counter.read().unwrap();
    for (tid, figures) in crowd.tids.iter().zip(&figures) {
        let lives = |thread: &&ThreadCounts| thread.key.tid == *tid && !thread.ended;
        let counts = threads.iter().find(lives).unwrap();
        assert_eq!(counts.voluntary, figures.voluntary);
        assert_eq!(counts.involuntary, figures.involuntary);
        assert_eq!(counts.cpu_ns, figures.cpu_ns);
    }
    assert!(threads.iter().all(|thread| thread.key.tid != 0), "the idle threads");
    let tids = crowd.tids.clone();
    crowd.leave();
    for counts in ends_of(&mut counter, &tids) {
        let number = tids.iter().position(|tid| *tid == counts.key.tid).unwrap();
        assert!(counts.voluntary >= figures[number].voluntary, "{counts:?}");
    }
    let ended = ends_of(&mut counter, &run_children(20));
    assert!(ended.iter().all(|thread| thread.cpu_ns > 0 && thread.voluntary > 0), "{ended:?}");
    assert_eq!(counter.lost_threads(), 0);
}

/// Processes of one thread each, one after the other, until they have ended.
fn run_children(count: usize) -> Vec<u32> {
    let mut tids = Vec::new();
    for _ in 0..count {
        let mut child = Command::new("true").spawn().unwrap();
        tids.push(child.id());
        child.wait().unwrap();
    }
    tids
}

/// There is room for the living threads and some that have ended: those that do not fit are counted, and
/// those that do are not overwritten. Once they are collected there is room again.
///
/// Threads of other tests take room as well: then it is tried anew.
#[test]
fn ended_threads_are_kept_until_they_are_read_or_counted_as_lost() {
    let Some(mut large) = counter(65_536) else { return };
    let are_kept = (0..20).any(|_| keeps_ended_threads(&mut large));
    assert!(are_kept, "ended threads were lost in each of 20 attempts");
}

/// Returns whether all ended threads were kept that have room; `large` has room for more.
fn keeps_ended_threads(large: &mut SwitchCounter) -> bool {
    let living = large.read().unwrap().iter().filter(|thread| !thread.ended).count();
    let room = 200;
    let mut counter = counter(living as u32 + room).unwrap();
    counter.read().unwrap();
    let tids = run_children(2 * room as usize);
    if ends_of(large, &tids).len() <= room as usize {
        return false;
    }
    let lost = counter.lost_threads();
    assert!(lost > 0);
    let read = counter.read().unwrap();
    let kept = read.iter().filter(|thread| thread.ended && tids.contains(&thread.key.tid));
    if kept.count() <= room as usize / 2 {
        return false;
    }
    // Collected as they come: none is lost, and all are in the next look.
    let mut tids = Vec::new();
    for _ in 0..40 {
        let some = run_children(10);
        tids.extend(ends_of(large, &some).iter().map(|thread| thread.key.tid));
        counter.collect().unwrap();
    }
    if counter.lost_threads() > lost {
        return false;
    }
    let mut ended = HashSet::new();
    wait_for("threads that were freed, or lost", || {
        let threads = counter.read().unwrap();
        ended.extend(threads.iter().filter(|thread| thread.ended).map(|thread| thread.key.tid));
        let is_lost = counter.lost_threads() > lost;
        (is_lost || tids.iter().all(|tid| ended.contains(tid))).then_some(!is_lost)
    })
}

/// A process whose second thread calls execve(2): its counts go on under the key that it was born with.
#[test]
fn a_thread_that_executes_a_program_keeps_its_key() {
    let Some(mut counter) = counter(65_536) else { return };
    if testing::lacks([Need::Program("python3")]) {
        return;
    }
    let script = "import os, sys, threading, time\n\
        def run():\n    print(threading.get_native_id(), flush=True)\n    sys.stdin.readline()\n    os.execv('/bin/cat', ['cat'])\n\
        threading.Thread(target=run).start()\ntime.sleep(600)";
    let mut command = Command::new("python3");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let tid: u32 = line.trim().parse().unwrap();
    let find = |counter: &mut SwitchCounter, tid: u32| {
        let threads = counter.read().unwrap();
        threads.into_iter().find(|thread| thread.key.tid == tid && !thread.ended)
    };
    let before = find(&mut counter, tid).unwrap();
    let first = find(&mut counter, child.id()).unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"go\n").unwrap();
    let name = format!("/proc/{}/comm", child.id());
    wait_for("execve", || {
        fs::read_to_string(&name).is_ok_and(|name| name == "cat\n").then_some(())
    });
    // It has the name before the tracepoint of execve(2), and answers after it.
    input.write_all(b"here\n").unwrap();
    output.read_line(&mut line).unwrap();
    let after = find(&mut counter, tid).unwrap();
    assert_eq!((after.key, after.tgid), (before.key, child.id()));
    assert!(after.voluntary > before.voluntary, "{before:?} {after:?}");
    assert_eq!(find(&mut counter, child.id()), None);
    drop(input);
    child.wait().unwrap();
    let ended = ends_of(&mut counter, &[tid]);
    assert_eq!(ended[0].tgid, first.tgid);
    assert_eq!(counter.lost_threads(), 0);
}

/// A CPU that is taken away, and given back whatever happens.
struct Unplugged(PathBuf);

impl Unplugged {
    fn new(cpu: usize) -> std::io::Result<Self> {
        let online = Self(format!("/sys/devices/system/cpu/cpu{cpu}/online").into());
        fs::write(&online.0, "0")?;
        Ok(online)
    }
}

impl Drop for Unplugged {
    fn drop(&mut self) {
        if let Err(why) = fs::write(&self.0, "1") {
            eprintln!("{} must be set to 1 by hand: {why}", self.0.display());
        }
    }
}

/// The last CPU goes and comes while all run: threads are moved off it, and back.
#[test]
fn cpus_come_and_go() {
    // It takes a CPU away from everybody.
    if testing::lacks([Need::Asked("SWITCHTRACE_TEST_HOTPLUG"), Need::TwoCpus]) {
        return;
    }
    let Some(tracer) = tracer(&Options::default()) else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let mut works = vec![busy(&stop, false), busy(&stop, false), busy(&stop, true)];
    works.extend(ping_pong(100_000, None));
    let crowd = Crowd::new(works);
    let before = at_rest(&crowd.tids);
    let times = tracer.thread_times().unwrap();
    let last = thread::available_parallelism().unwrap().get() - 1;
    crowd.start.wait();
    for _ in 0..5 {
        let unplugged = Unplugged::new(last).unwrap();
        let now_ns = || times.cpu_ns(crowd.tids[0]).unwrap();
        let from_ns = now_ns();
        wait_for("time of a busy thread", || (now_ns() > from_ns + 1_000_000).then_some(()));
        drop(unplugged);
        thread::sleep(Duration::from_millis(200));
    }
    stop.store(true, Relaxed);
    let after = at_rest(&crowd.tids);
    for (number, tid) in crowd.tids.iter().enumerate() {
        assert_agrees(&times.read(*tid).unwrap(), &after[number]);
        println!("{:?}, then {:?}", before[number], after[number]);
    }
    crowd.leave();
}

#[test]
fn forgotten_pairs_parents_and_what_a_switch_takes() {
    let Some(tracer) = tracer(&Options::default()) else { return };
    let own = match tracer.measure_own_cost() {
        Ok(own) => Some(own),
        Err(why) => {
            testing::skip(Need::Hardware("the kernel's count of what a BPF program takes"), why);
            None
        }
    };
    // A third one, which takes the pair of the other two to the map.
    let mut works: Vec<Box<dyn FnOnce() + Send>> = ping_pong(1_000, Some(0)).into();
    works.extend(ping_pong(1_000, Some(0)));
    let crowd = Crowd::new(works);
    crowd.work(4, &AtomicBool::new(false));
    at_rest(&crowd.tids);
    let known = by_tid(&tracer);
    for tid in &crowd.tids {
        assert_eq!(known[tid].parent, std::os::unix::process::parent_id());
    }
    let of_crowd = |tracer: &Tracer| -> Vec<(_, _)> {
        let pairs = tracer.pairs().into_iter().map(|pair| (pair.prev, pair.next));
        pairs.filter(|(prev, _)| crowd.tids.contains(&prev.tid)).collect()
    };
    let before = of_crowd(&tracer);
    tracer.forget(before.iter().copied());
    // What stays is the last pair of each, which is in its record.
    assert!(before.len() > 4 && of_crowd(&tracer).len() <= 4, "{before:?}");
    if let Some(own) = own {
        assert!(own.ns_per_switch().is_some_and(|ns| ns > 0.0));
    }
    crowd.leave();
}

/// Threads that come and go, with the same few ids where these can be asked for: none has another's
/// time, and the end of none is missed.
#[test]
fn a_thousand_threads_a_second() {
    let Some(tracer) = tracer(&Options::default()) else { return };
    let times = tracer.thread_times().unwrap();
    let mut ends: HashMap<u32, (std::ops::Range<u64>, u64)> = HashMap::new();
    let now = || clock_ns(libc::CLOCK_MONOTONIC);
    for number in 0..testing::repeats(600, 2_000u64) {
        let (spin, from) = (number % 7 * 20_000, now());
        let run = move || {
            let from = thread_cpu_ns();
            while thread_cpu_ns() - from < spin {}
            (own_tid(), thread_cpu_ns())
        };
        let (tid, cpu_ns) = thread::spawn(run).join().unwrap();
        ends.insert(tid, (from..now(), cpu_ns));
        if number % 8 == 7 {
            let _ = fs::write("/proc/sys/kernel/ns_last_pid", tid.saturating_sub(10).to_string());
        }
    }
    println!("all threads had {} ids", ends.len());
    for (tid, (life, at_least_ns)) in &ends {
        // The last ones are a little in ending, and then another process may have the id.
        let time = wait_for("end of a thread", || {
            let time = times.read(*tid).unwrap();
            (time.ended || time.start_ns > life.end).then_some(time)
        });
        if time.start_ns > life.end {
            continue;
        }
        assert!(time.ended && !time.running, "{tid}: {time:?}");
        assert!(time.cpu_ns >= *at_least_ns && time.cpu_ns <= time.kernel_ns + MAX_AHEAD_NS);
        // The last thread of this id, and nothing of those before.
        assert!(life.contains(&time.start_ns), "{time:?} {life:?}");
        assert!(time.voluntary + time.involuntary < 100, "{time:?}");
    }
    assert_eq!(tracer.lost().threads, 0);
}

/// One id, two threads, one after the other.
#[test]
fn an_id_given_anew_on_purpose() {
    let Some(tracer) = tracer(&Options::default()) else { return };
    let times = tracer.thread_times().unwrap();
    let spin = |ns: u64| {
        let from = thread_cpu_ns();
        while thread_cpu_ns() - from < ns {}
    };
    let old = thread::spawn(move || {
        spin(20_000_000);
        own_tid()
    })
    .join()
    .unwrap();
    let end = || times.read(old).ok().filter(|time| time.ended);
    let first = wait_for("end of a thread", end);
    assert!(first.cpu_ns >= 20_000_000);
    // Others may take the id first.
    for _ in 0..200 {
        if fs::write("/proc/sys/kernel/ns_last_pid", (old - 1).to_string()).is_err() {
            return testing::skip(Need::Hardware("ns_last_pid"), "ns_last_pid cannot be written");
        }
        let crowd = Crowd::new(vec![Box::new(|| {})]);
        if crowd.tids[0] == old {
            let is = at_rest(&[old])[0];
            let young = times.read(old).unwrap();
            assert!(young.start_ns > first.start_ns && !young.ended);
            assert_eq!((young.voluntary, young.involuntary), (is.voluntary, is.involuntary));
            assert!((is.cpu_ns..=is.cpu_ns + MAX_AHEAD_NS).contains(&young.cpu_ns));
            crowd.start.wait();
            crowd.leave();
            return;
        }
        crowd.start.wait();
        crowd.leave();
    }
    testing::skip(Need::Quiet, "the id was never given again");
}

#[test]
fn a_recording_has_every_switch_of_a_thread() {
    let recording = Some(RecordingOptions { bytes: 1 << 24, wakeups: true });
    let Some(mut tracer) = tracer(&Options { recording, ..Options::default() }) else { return };
    let crowd = Crowd::new(ping_pong(2_000, Some(0)).into_iter().collect());
    let before = at_rest(&crowd.tids);
    tracer.event_reader().unwrap().drain(|_| {});
    let mut counts: HashMap<u32, (u64, u64)> = HashMap::new();
    crowd.work(2, &AtomicBool::new(false));
    let after = at_rest(&crowd.tids);
    tracer.event_reader().unwrap().drain(|event| match event.kind {
        EventKind::Switch { prev, .. } => counts.entry(prev.tid).or_default().0 += 1,
        EventKind::Wakeup { wakee, .. } => counts.entry(wakee.tid).or_default().1 += 1,
        _ => {}
    });
    assert_eq!(tracer.lost().events, 0);
    for (number, tid) in crowd.tids.iter().enumerate() {
        let (was, is) = (before[number], after[number]);
        let switches = is.voluntary + is.involuntary - was.voluntary - was.involuntary;
        assert_eq!(counts[tid].0, switches);
        assert!(counts[tid].1 > 0);
    }
    crowd.leave();
}

#[test]
fn what_does_not_fit_into_a_recording_is_counted() {
    let recording = Some(RecordingOptions { bytes: 1 << 16, wakeups: false });
    let Some(mut tracer) = tracer(&Options { recording, ..Options::default() }) else { return };
    let crowd = Crowd::new(ping_pong(5_000, Some(0)).into_iter().collect());
    crowd.work(2, &AtomicBool::new(false));
    at_rest(&crowd.tids);
    let taken = tracer.event_reader().unwrap().drain(|_| {});
    // 64 KiB are 1,638 events of 40 bytes.
    assert!(taken <= (1 << 16) / 40 && taken > 0);
    assert!(tracer.lost().events > 0);
    crowd.leave();
}

/// The verifier gives up if a signal comes meanwhile.
#[test]
fn programs_are_loaded_while_signals_come() {
    extern "C" fn nothing(_: libc::c_int) {}
    let handler = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR2, handler) };
    // SAFETY: no arguments.
    let loader = unsafe { libc::pthread_self() };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                // SAFETY: the thread lives as long as the scope.
                unsafe { libc::pthread_kill(loader, libc::SIGUSR2) };
                thread::sleep(Duration::from_millis(3));
            }
        });
        let opened: Vec<_> = (0..5).map(|_| Tracer::open(&Options::default())).collect();
        is_over.store(true, Relaxed);
        for tracer in opened {
            match tracer {
                Ok(_) => {}
                Err(why @ (Error::Refused { .. } | Error::NoBtf { .. } | Error::NotInBtf(_))) => {
                    testing::skip(Need::Tracing, why);
                }
                Err(other) => panic!("{other}"),
            }
        }
    });
}

/// A BPF file system of the test's own.
struct Mounted(PathBuf);

impl Mounted {
    fn new() -> Option<Self> {
        let place = tempfile::Builder::new().prefix("switchtrace-bpf").tempdir().unwrap().keep();
        let path = CString::new(place.to_str().unwrap()).unwrap();
        // SAFETY: strings that end in NUL; no data.
        let status = unsafe {
            let bpf = c"bpf".as_ptr();
            libc::mount(bpf, path.as_ptr(), bpf, 0, c"mode=0755".as_ptr().cast())
        };
        if status != 0 {
            testing::skip(Need::Mounts, "no BPF file system can be mounted");
        }
        (status == 0).then_some(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let path = CString::new(self.0.to_str().unwrap()).unwrap();
        // SAFETY: a string that ends in NUL.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
        let _ = fs::remove_dir(&self.0);
    }
}

/// This test binary again, for one test, with a variable.
fn again(test: &str, variable: &str, value: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(variable, value).current_dir("/");
    command
}

fn as_nobody(command: &mut Command) -> String {
    let output = command.uid(65_534).gid(65_534).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn anybody_may_read_a_pinned_table_and_nobody_may_write() {
    if let Some(pinned) = std::env::var_os(PINNED) {
        read_pinned(Path::new(&pinned));
        return;
    }
    let Some(tracer) = tracer(&Options::times_only()) else { return };
    let Some(mounted) = Mounted::new() else { return };
    let pinned = mounted.0.join("threads");
    tracer.pin(&pinned).unwrap();
    let name = "anybody_may_read_a_pinned_table_and_nobody_may_write";
    let said = as_nobody(&mut again(name, PINNED, pinned.to_str().unwrap()));
    assert!(said.contains("was read"), "{said}");
    assert_refuses_writes(&pinned);

    // And when the tracer has ended, readers are told.
    let path = CString::new(pinned.to_str().unwrap()).unwrap();
    let times = ThreadTimeReader::open(&path).unwrap();
    assert!(times.cpu_ns(own_tid()).is_ok());
    drop(tracer);
    wait_for("word that the tracer has ended", || {
        (times.cpu_ns(own_tid()) == Err(ThreadTimeError::NotTraced)).then_some(())
    });
    assert!(matches!(ThreadTimeReader::open(&path), Err(ThreadTimeError::NotTraced)));
}

/// Reads the pinned table; runs as the user nobody.
fn read_pinned(path: &Path) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    let times = ThreadTimeReader::open(&path).unwrap();
    let parent = std::os::unix::process::parent_id();
    assert!(times.read(parent).unwrap().cpu_ns > 0);
    assert!(times.cpu_ns(own_tid()).unwrap() > 0);
    println!("{parent} was read");
}

/// Asserts that the map cannot be written even by root, as it is frozen.
fn assert_refuses_writes(pinned: &Path) {
    let path = CString::new(pinned.to_str().unwrap()).unwrap();
    let get = [path.as_ptr() as u64, 0];
    // SAFETY: BPF_OBJ_GET with a path that ends in NUL.
    let map = unsafe { libc::syscall(libc::SYS_bpf, 7, get.as_ptr(), 16) };
    assert!(map >= 0);
    let (key, value) = ([0u8; 4], [0u8; 64]);
    let update = [map as u64, key.as_ptr() as u64, value.as_ptr() as u64, 0];
    // SAFETY: BPF_MAP_UPDATE_ELEM with a key and a value of the map's sizes.
    assert_eq!(unsafe { libc::syscall(libc::SYS_bpf, 2, update.as_ptr(), 32) }, -1);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, if there is one.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, map as i32, 0)
    };
    assert_eq!(start, libc::MAP_FAILED);
    // SAFETY: ours.
    unsafe { libc::close(map as i32) };
}

#[test]
fn what_is_missing_is_said() {
    if std::env::var_os(HOLD).is_some() {
        println!("said: {}", Tracer::open(&Options::default()).unwrap_err());
        return;
    }
    if testing::lacks([Need::Root]) || tracer(&Options::times_only()).is_none() {
        return;
    }
    let said = as_nobody(&mut again("what_is_missing_is_said", HOLD, "1"));
    assert!(said.contains("CAP_BPF and CAP_PERFMON missing: run as root"), "{said}");
}

/// Returns the numbers behind `field` in the descriptors of a process.
fn fdinfo_numbers(child: &Child, field: &str) -> Vec<u32> {
    let folder = format!("/proc/{}/fdinfo", child.id());
    let text = |entry: std::io::Result<fs::DirEntry>| fs::read_to_string(entry.unwrap().path());
    let texts: Vec<String> =
        fs::read_dir(folder).unwrap().filter_map(|entry| text(entry).ok()).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter_map(|line| line.strip_prefix(field)?.trim().parse().ok()).collect()
}

/// Returns whether a program (command 13) or a map (14) of this id still exists.
fn exists(command: i32, id: u32) -> bool {
    let attributes = [id, 0, 0];
    // SAFETY: BPF_*_GET_FD_BY_ID: no addresses.
    let descriptor = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), 12) };
    if descriptor >= 0 {
        // SAFETY: ours.
        unsafe { libc::close(descriptor as i32) };
    }
    descriptor >= 0
}

#[test]
fn nothing_is_left_after_a_kill() {
    if std::env::var_os(HOLD).is_some() {
        let _tracer = Tracer::open(&Options::default()).unwrap();
        println!("held");
        thread::sleep(Duration::from_secs(600));
        return;
    }
    if tracer(&Options::times_only()).is_none() {
        return;
    }
    let mut child =
        again("nothing_is_left_after_a_kill", HOLD, "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("held") {
        let mut buffer = [0; 256];
        let length = output.read(&mut buffer).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&buffer[..length]);
    }
    let (mut programs, maps) =
        (fdinfo_numbers(&child, "prog_id:"), fdinfo_numbers(&child, "map_id:"));
    // That of the switch is held besides its link, for what it takes.
    programs.sort_unstable();
    programs.dedup();
    // sched_switch, sched_migrate_task, sched_process_exec, sched_process_fork: not more than was
    // asked for.
    assert_eq!(programs.len(), 4, "{programs:?}");
    assert!(!maps.is_empty() && programs.iter().all(|id| exists(13, *id)));
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel frees them a little later.
    let gone =
        || programs.iter().all(|id| !exists(13, *id)) && maps.iter().all(|id| !exists(14, *id));
    wait_for("end of all programs and maps", || gone().then_some(()));
}

/// Programs of many threads and forks while it is opened and closed again and again.
#[test]
fn opened_and_closed_under_load() {
    if tracer(&Options::times_only()).is_none() {
        return;
    }
    let crowd = Crowd::new(ping_pong(testing::repeats(20_000, 100_000), None).into());
    crowd.start.wait();
    for round in 0..testing::repeats(4, 10) {
        let options = if round % 2 == 0 { Options::default() } else { Options::times_only() };
        let tracer = Tracer::open(&options).unwrap();
        let status = Command::new("true").status().unwrap();
        assert!(status.success());
        let times = tracer.thread_times().unwrap();
        // Those who were there before are known.
        assert!(crowd.tids.iter().all(|tid| times.read(*tid).is_ok()));
        assert!(times.read(std::process::id()).unwrap().tgid == std::process::id());
        assert_eq!(times.cpu_ns(0), Err(ThreadTimeError::NoSuchThread(0)));
        assert_eq!(times.cpu_ns(u32::MAX), Err(ThreadTimeError::NoSuchThread(u32::MAX)));
    }
    crowd.leave();
}

//! The cost of tracing and reading, as differences and ratios of one run, alternating. `cargo
//! bench -p switchtrace --bench cost -- ring|reader|flood [ROUNDS]`; needs root. See
//! bench/switchtrace.sh. `around WAY CMD...` traces while a command runs, `once LAPS` is a ring
//! of two: for bench/tracers.py.
#![allow(unsafe_code, missing_docs, clippy::unwrap_used)]

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};
use switchtrace::{Options, RecordingOptions, Tracer};

/// Number of hops of a slice: some 10 ms, shorter than most states of a shared core.
const HOPS: u32 = 2_000;

fn pin(cpu: usize) {
    let set = [1u64 << cpu];
    // SAFETY: the kernel reads eight bytes.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, 8, set.as_ptr()) };
}

/// Returns the number of switches of the calling thread.
fn own_switches() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills `usage`; zeroes are one too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

fn clock_ns(clock: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills `time`.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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

/// Runs a ring of two threads on one CPU. Returns nanoseconds per counted switch.
fn ring(cpu: usize, hops: u32) -> f64 {
    let ((mut from_a, mut to_b), (mut from_b, mut to_a)) = (pipe(), pipe());
    let other = thread::spawn(move || {
        pin(cpu);
        let (mut token, before) = ([0; 1], own_switches());
        while from_a.read(&mut token).unwrap() == 1 {
            to_a.write_all(&token).unwrap();
        }
        own_switches() - before
    });
    let mine = thread::spawn(move || {
        pin(cpu);
        let mut token = [0; 1];
        let mut lap = || {
            to_b.write_all(&token).unwrap();
            from_b.read_exact(&mut token).unwrap();
        };
        (0..100).for_each(|_| lap());
        let (started, before) = (Instant::now(), own_switches());
        (0..hops).for_each(|_| lap());
        (started.elapsed().as_nanos() as f64, own_switches() - before)
    });
    let (elapsed_ns, switches) = mine.join().unwrap();
    other.join().unwrap();
    // The other thread has as many switches; it also counts those of the first laps.
    elapsed_ns / (2 * switches) as f64
}

fn show(name: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
    println!("{name:44} {:9.2} ({:.2} .. {:.2}), {} rounds", at(2), at(1), at(3), values.len());
}

fn recording(wakeups: bool) -> Options {
    Options { recording: Some(RecordingOptions { bytes: 1 << 26, wakeups }), ..Options::default() }
}

/// Measures untraced slices and each way of tracing in turn. Prints each less the untraced slices
/// around it, and the fast tenths of all, which are those of a core without competing tasks.
fn rings(rounds: usize) {
    const NAMES: [&str; 6] = [
        "untraced",
        "empty probe",
        "times only",
        "activity (default)",
        "recording",
        "recording with wake-ups",
    ];
    let options = [Options::times_only(), Options::default(), recording(false), recording(true)]
        .map(|options| Options { threads: 4_096, ..options });
    let mut slices = [(); 6].map(|()| Vec::new());
    let mut above = [(); 6].map(|()| Vec::new());
    for round in 0..rounds {
        for step in 0..5 {
            let which = 1 + (step + round) % 5;
            let before = ring(1, HOPS);
            let traced = if which == 1 {
                let _probe = switchtrace::empty_probe().unwrap();
                ring(1, HOPS)
            } else {
                let _tracer = Tracer::open(&options[which - 2]).unwrap();
                ring(1, HOPS)
            };
            let after = ring(1, HOPS);
            slices[0].extend([before, after]);
            slices[which].push(traced);
            above[which].push(traced - (before + after) / 2.0);
        }
    }
    println!("ring of two on one CPU, ns a switch: median (middle half)");
    let fast = slices.each_ref().map(|values| {
        let mut values = values.clone();
        values.sort_by(f64::total_cmp);
        values[values.len() / 10]
    });
    for (which, name) in NAMES.iter().enumerate() {
        show(name, std::mem::take(&mut slices[which]));
        if which > 0 {
            show("  above the untraced ones around it", std::mem::take(&mut above[which]));
            println!("  fast tenth, above that of untraced         {:9.2}", fast[which] - fast[0]);
        }
    }
}

fn each_ns(reads: u32, mut read: impl FnMut() -> u64) -> f64 {
    let started = Instant::now();
    for _ in 0..reads {
        black_box(read());
    }
    started.elapsed().as_nanos() as f64 / f64::from(reads)
}

/// Reads a thread of this process that is busy on another CPU.
fn reader(rounds: usize) {
    let tracer = Tracer::open(&Options::times_only()).unwrap();
    static TID: AtomicU64 = AtomicU64::new(0);
    static END: AtomicBool = AtomicBool::new(false);
    let busy = thread::spawn(|| {
        pin(1);
        // SAFETY: no arguments.
        TID.store(unsafe { libc::gettid() } as u64, Relaxed);
        while !END.load(Relaxed) {
            std::hint::spin_loop();
        }
    });
    thread::sleep(Duration::from_millis(20));
    pin(0);
    let tid = TID.load(Relaxed) as u32;
    let times = tracer.thread_times().unwrap();
    // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED, as pthread_getcpuclockid() makes it.
    let clock = (!(tid as i32) << 3) | 4 | 2;
    let path = format!("/proc/{tid}/schedstat");
    let schedstat = || std::fs::read_to_string(&path).unwrap().len() as u64;
    let mut file = std::fs::File::open(&path).unwrap();
    let mut kept_open = || {
        let mut buffer = [0; 64];
        std::io::Seek::rewind(&mut file).unwrap();
        file.read(&mut buffer).unwrap() as u64
    };
    let mut figures = [(); 9].map(|()| Vec::new());
    let mut ahead = Vec::new();
    for _ in 0..rounds * 20 {
        let before = times.read(tid).unwrap();
        let stamp = each_ns(10_000, || threadclock::time_stamp().unwrap_or(0));
        let ours = each_ns(10_000, || times.cpu_ns(tid).unwrap());
        let kernel = each_ns(500, || clock_ns(clock));
        let proc_open = each_ns(100, &mut kept_open);
        let proc = each_ns(100, schedstat);
        let again = each_ns(10_000, || times.cpu_ns(tid).unwrap());
        // Only while it ran throughout.
        let after = times.read(tid).unwrap();
        if !before.running || after.involuntary != before.involuntary || ahead.len() == rounds {
            continue;
        }
        let ours = (ours + again) / 2.0;
        let row = [
            stamp,
            ours,
            kernel,
            proc_open,
            proc,
            kernel / ours,
            proc_open / ours,
            proc / ours,
            ours / stamp,
        ];
        (0..9).for_each(|column| figures[column].push(row[column]));
        let (low, read, high) = (clock_ns(clock), times.cpu_ns(tid).unwrap(), clock_ns(clock));
        ahead.push(read as f64 - (low + high) as f64 / 2.0);
    }
    END.store(true, Relaxed);
    busy.join().unwrap();
    let names = [
        "time stamp, ns",
        "ThreadTimeReader::cpu_ns of a running thread, ns",
        "clock_gettime of its clock id, ns",
        "/proc/PID/schedstat kept open, ns",
        "/proc/PID/schedstat, ns",
        "clock_gettime / ours",
        "schedstat kept open / ours",
        "schedstat / ours",
        "ours / time stamp",
    ];
    println!("reading a thread that runs on another CPU: median (middle half)");
    names.into_iter().zip(figures).for_each(|(name, values)| show(name, values));
    show("our reading less the kernel's, ns", ahead);
}

/// Two threads on a CPU that yield to each other: the fastest switches there are. Their ids and
/// switches.
fn yielders(cpu: usize, end: Instant) -> Vec<thread::JoinHandle<(u32, u64)>> {
    let work = move || {
        pin(cpu);
        while Instant::now() < end {
            (0..1_000).for_each(|_| thread::yield_now());
        }
        // SAFETY: no arguments.
        (unsafe { libc::gettid() } as u32, own_switches())
    };
    (0..2).map(|_| thread::spawn(work)).collect()
}

/// As many switches as all CPUs can make, and whether each was counted.
fn flood(seconds: usize) {
    for options in [Options::default(), recording(false)] {
        let mut tracer = Tracer::open(&options).unwrap();
        let cpus = thread::available_parallelism().unwrap().get();
        let started = Instant::now();
        let end = started + Duration::from_secs(seconds as u64);
        let threads: Vec<_> = (0..cpus).flat_map(|cpu| yielders(cpu, end)).collect();
        let (mut events, mut most) = (0usize, 0);
        while threads.iter().any(|thread| !thread.is_finished()) {
            if let Some(event_reader) = tracer.event_reader() {
                let taken = event_reader.drain(|event| {
                    black_box(event);
                });
                (events, most) = (events + taken, most.max(taken));
            }
            thread::sleep(Duration::from_millis(5));
        }
        let elapsed = started.elapsed().as_secs_f64();
        let made: Vec<(u32, u64)> =
            threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        thread::sleep(Duration::from_millis(100));
        let pairs = tracer.pairs();
        let counted = |tid| -> u64 {
            let own = pairs.iter().filter(|pair| pair.prev.tid == tid);
            own.map(|pair| pair.voluntary + pair.involuntary).sum()
        };
        // The last switch of each comes after it was asked.
        let missing: i64 = made.iter().map(|(tid, n)| (*n + 1) as i64 - counted(*tid) as i64).sum();
        let switches: u64 = made.iter().map(|(_, switches)| switches).sum();
        let kind = if options.recording.is_some() { "recording" } else { "aggregated" };
        println!(
            "{kind}: {:.0} switches/s for {elapsed:.1} s on {cpus} CPUs, {missing} of {switches} \
             not counted; {:?}; {events} events, at most {most} at once",
            switches as f64 / elapsed,
            tracer.lost()
        );
    }
}

/// Traces one way while a command runs, and says what was lost. What is recorded is taken out and
/// dropped.
fn around(way: &str, command: &[String]) {
    let options = match way {
        "times" => Some(Options::times_only()),
        "activity" => Some(Options::default()),
        "recording" => Some(recording(false)),
        _ => None,
    };
    let _probe = options.is_none().then(|| switchtrace::empty_probe().unwrap());
    let mut tracer = options.map(|options| Tracer::open(&options).unwrap());
    let mut child = Command::new(&command[0]).args(&command[1..]).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if let Some(event_reader) = tracer.as_mut().and_then(Tracer::event_reader) {
            event_reader.drain(|event| {
                black_box(event);
            });
        }
        thread::sleep(Duration::from_millis(5));
    }
    let lost = tracer.map_or_else(Default::default, |tracer| tracer.lost());
    println!("{}", lost.threads + lost.pairs + lost.events);
}

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    match &words[..] {
        [first, way, command @ ..] if first == "around" => return around(way, command),
        [first, laps] if first == "once" => {
            return println!("{:.2}", ring(1, laps.parse().unwrap()));
        }
        _ => {}
    }
    if let Err(why) = Tracer::open(&Options::times_only()) {
        println!("skipped: {why}");
        return;
    }
    let number = |otherwise| words.get(1).and_then(|word| word.parse().ok()).unwrap_or(otherwise);
    match words.first().map(String::as_str) {
        Some("reader") => reader(number(201)),
        Some("flood") => flood(number(30)),
        _ => rings(number(101)),
    }
}

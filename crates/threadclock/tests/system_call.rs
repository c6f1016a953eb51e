//! getpinfo as a system call, on a kernel that has it (kernel/README.md): what it counts, whose
//! count it tells to whom, and what it refuses. Elsewhere every test here says "skipped".
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;
use common::{kernel_ns, spin_ns};
use std::sync::mpsc;
use std::time::Duration;
use testing::{Need, wait_for};
use threadclock::{ThreadClock, Tier, TimeReadError, pinfo};

/// Bytes of the struct's first version.
const SIZE: usize = size_of::<pinfo::Pinfo>();

/// Returns whether the kernel has the call, which it must if `GETPINFO_MUST_BE_THERE` is set.
fn has_call() -> bool {
    let found = pinfo::available();
    if let Err(why) = found {
        assert!(std::env::var_os("GETPINFO_MUST_BE_THERE").is_none(), "{why}");
        testing::skip(Need::Getpinfo, why);
    }
    found.is_ok()
}

/// The bare call: 0, or the errno.
fn call(id: i32, flags: u32, out: *mut u8, size: usize) -> i32 {
    // SAFETY: the tests give `out` room for `size` bytes, or an address that nobody has.
    let status = unsafe { libc::syscall(pinfo::NUMBER, id, flags, out, size) };
    if status == 0 { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap() }
}

fn own_tid() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}

/// Two clocks at one moment: the first is read between two readings of the second, the closest of
/// twenty pairs.
fn both(one: impl Fn() -> u64, other: impl Fn() -> u64) -> (u64, u64) {
    let (mut best, mut width) = ((0, 0), u64::MAX);
    for _ in 0..20 {
        let before = other();
        let first = one();
        let after = other();
        if after - before < width {
            (best, width) = ((first, before + (after - before) / 2), after - before);
        }
    }
    best
}

/// The caller's time in ns by the kernel's clock and in ticks by the call.
fn own() -> (u64, u64) {
    both(kernel_ns, || pinfo::thread(0).unwrap().cycles)
}

/// Ticks a nanosecond of the machine's time.
fn ticks_per_ns() -> f64 {
    let ns = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel fills `time`.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let moment = || both(ns, || threadclock::time_stamp_ordered().unwrap());
    let (from_ns, from) = moment();
    std::thread::sleep(Duration::from_millis(50));
    let (to_ns, to) = moment();
    (to - from) as f64 / (to_ns - from_ns) as f64
}

/// Returns the time that a hypervisor has taken from all CPUs, in ticks of the clock: the eighth figure
/// of /proc/stat.
fn stolen() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    text.split_whitespace().nth(8).and_then(|figure| figure.parse().ok()).unwrap_or(0)
}

/// Asserts that counter time and scheduler time agree. Interrupts, stale clocks and stolen time, which
/// only one of them has, set them apart: then both are measured again.
fn agree(mut ticks_and_ns: impl FnMut() -> (u64, u64)) {
    let before = stolen();
    let mut seen = Vec::new();
    for _ in 0..10 {
        let (ticks, ns) = ticks_and_ns();
        let ratio = ticks as f64 / (ns as f64 * ticks_per_ns());
        if (0.95..1.05).contains(&ratio) {
            return;
        }
        seen.push((ticks, ns, ratio));
    }
    assert!(stolen() > before, "ticks, ns, ratio: {seen:?}");
    testing::skip(Need::Quiet, format_args!("time was stolen from each attempt: {seen:?}"));
}

/// A child process that does `work` and then waits, until this is dropped.
struct Child {
    pid: i32,
    /// Closing it lets the child go.
    gate: i32,
    done: i32,
}

fn pipe() -> [i32; 2] {
    let mut ends = [0; 2];
    // SAFETY: the kernel fills both.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

impl Child {
    fn that_does(work: impl FnOnce() -> u64) -> Self {
        let (gate, done) = (pipe(), pipe());
        // SAFETY: the child holds no lock of its parent's (the C library sees to its own), and
        // leaves by _exit.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::close(gate[1]);
                let told = work();
                libc::write(done[1], (&raw const told).cast(), 8);
                libc::read(gate[0], [0_u8].as_mut_ptr().cast(), 1);
                libc::_exit(0);
            }
            libc::close(gate[0]);
            libc::close(done[1]);
            Self { pid, gate: gate[1], done: done[0] }
        }
    }

    /// Returns the result of its work, once it sleeps.
    fn result(&self) -> u64 {
        let mut result = 0_u64;
        // SAFETY: eight bytes go where there is room for them.
        assert_eq!(unsafe { libc::read(self.done, (&raw mut result).cast(), 8) }, 8);
        while pinfo::process(self.pid).unwrap().on_cpu > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        result
    }

    fn process(&self) -> pinfo::Pinfo {
        pinfo::process(self.pid).unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: these are ours; the child ends when the gate closes, or in its work.
        unsafe {
            libc::close(self.gate);
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
            libc::close(self.done);
        }
    }
}

#[test]
fn a_clock_goes_by_it() {
    if !has_call() {
        return;
    }
    match ThreadClock::with_tier(Tier::SystemCall) {
        Ok(clock) => {
            assert_eq!(clock.tier(), Tier::SystemCall);
            clock.set_error_bound_ns(u64::MAX);
            clock.now();
            std::thread::sleep(Duration::from_millis(1));
            let seen = clock.resyncs();
            clock.now();
            clock.now();
            // Seen by the count of switches alone, with a bound of seconds.
            assert!(clock.resyncs().switched > seen.switched);
        }
        Err(why) => {
            assert!(std::env::var_os("TIERS_MUST_BE_THERE").is_none(), "{why}");
            testing::skip(common::need_of(Tier::SystemCall, why), why);
        }
    }
}

#[test]
fn of_oneself_it_agrees_with_the_cpu_clock() {
    if !has_call() {
        return;
    }
    agree(|| {
        let (from_ns, from) = own();
        spin_ns(100_000_000);
        let (to_ns, to) = own();
        (to - from, to_ns - from_ns)
    });
}

#[test]
fn it_never_goes_back_and_never_runs_faster_than_the_counter() {
    if !has_call() {
        return;
    }
    let stamp = || threadclock::time_stamp_ordered().unwrap();
    let mut last = pinfo::thread(0).unwrap();
    let mut outside = stamp();
    for round in 0..50_000 {
        let first = stamp();
        let now = pinfo::thread(0).unwrap();
        assert_eq!((now.size as usize, now.on_cpu), (SIZE, 1));
        assert!(now.cycles >= last.cycles && now.swapins >= last.swapins);
        // One stretch on one CPU: not more cycles than the counter has gone on.
        if now.swapins == last.swapins {
            assert!(now.cycles - last.cycles <= stamp() - outside, "round {round}");
        }
        (last, outside) = (now, first);
        if round % 1_000 == 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_sleep_is_a_switch_and_no_cycles() {
    if !has_call() {
        return;
    }
    for _ in 0..5 {
        let (before, from) =
            (pinfo::thread(0).unwrap(), threadclock::time_stamp_ordered().unwrap());
        std::thread::sleep(Duration::from_millis(100));
        let after = pinfo::thread(0).unwrap();
        let elapsed = threadclock::time_stamp_ordered().unwrap() - from;
        assert!(after.swapins > before.swapins);
        assert!(after.cycles - before.cycles < elapsed / 2, "the sleep was counted");
    }
}

#[test]
fn a_busy_child_agrees_with_its_cpu_clock() {
    if !has_call() {
        return;
    }
    agree(|| {
        let child = Child::that_does(|| {
            spin_ns(100_000_000);
            kernel_ns()
        });
        let ns = child.result();
        (child.process().cycles, ns)
    });
}

#[test]
fn a_busy_child_grows_and_a_sleeping_one_does_not() {
    if !has_call() {
        return;
    }
    let child = Child::that_does(|| 0);
    child.result();
    let asleep = child.process();
    assert_eq!(asleep.on_cpu, 0);
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(child.process(), asleep);
    }
    if testing::lacks([Need::TwoCpus]) {
        return;
    }
    let busy = Child::that_does(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    wait_for("growth while it is on a CPU", || {
        let first = busy.process();
        std::thread::sleep(Duration::from_millis(1));
        let second = busy.process();
        let grows = second.cycles > first.cycles && first.swapins == second.swapins;
        (first.on_cpu == 1 && grows).then_some(())
    });
}

/// A child has its own count: much of its parent's would show.
#[test]
fn a_child_does_not_inherit() {
    if !has_call() {
        return;
    }
    spin_ns(200_000_000);
    let own = pinfo::thread(0).unwrap();
    let child = Child::that_does(|| pinfo::thread(0).map_or(u64::MAX, |info| info.cycles));
    let first_reading = child.result();
    assert!(first_reading < own.cycles / 2, "{first_reading} at once, of {} before", own.cycles);
    assert!(child.process().cycles < own.cycles / 2);
    let thread = std::thread::spawn(|| pinfo::thread(0).unwrap()).join().unwrap();
    assert!(thread.cycles < own.cycles / 2 && thread.swapins < 1_000);
}

#[test]
fn dead_threads_count_for_their_process() {
    if !has_call() {
        return;
    }
    agree(|| {
        let spin = || std::thread::spawn(|| spin_ns(200_000_000)).join().map_or(0, |()| 1);
        let child = Child::that_does(spin);
        assert_eq!(child.result(), 1);
        let whole = child.process();
        assert_eq!(whole.on_cpu, 0);
        assert!(whole.swapins >= 2);
        // At rest, as the clock of a process that runs is charged from its wake-up on.
        let ns = process_ns(child.pid);
        assert!(ns >= 200_000_000);
        (whole.cycles, ns)
    });
}

/// The CPU clock of a process that rests.
fn process_ns(pid: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills `time`.
    assert_eq!(unsafe { libc::clock_gettime((!pid << 3) | 2, &mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn siblings_tell_and_sum_up() {
    if !has_call() {
        return;
    }
    let (tell, told) = mpsc::channel();
    let (go_on, may_go) = mpsc::channel::<()>();
    let sibling = std::thread::spawn(move || {
        spin_ns(50_000_000);
        tell.send((own_tid(), pinfo::thread(0).unwrap())).unwrap();
        may_go.recv().unwrap_err();
    });
    let (tid, own) = told.recv().unwrap();
    let seen = pinfo::thread(tid).unwrap();
    assert!(seen.cycles >= own.cycles && seen.swapins >= own.swapins);
    let whole = pinfo::process(0).unwrap();
    assert!(whole.cycles > seen.cycles + pinfo::thread(0).unwrap().cycles / 2);
    assert!(whole.on_cpu >= 1);
    assert_eq!(pinfo::process(tid), Err(TimeReadError::InvalidId(tid)));
    drop(go_on);
    sibling.join().unwrap();
    // It can be joined a moment before the kernel has let go of its id.
    wait_for("end of a thread that was joined", || {
        (pinfo::thread(tid) == Err(TimeReadError::NoSuchTask(tid))).then_some(())
    });
}

/// The rule of CPU clocks: anybody's process, one's own threads. The superuser's rule too.
#[test]
fn another_processs_thread_is_not_told() {
    if !has_call() {
        return;
    }
    let child = Child::that_does(|| {
        // SAFETY: no arguments.
        let parent = unsafe { libc::getppid() };
        let refused = pinfo::thread(parent) == Err(TimeReadError::NotPermitted(parent));
        u64::from(refused && pinfo::process(parent).is_ok())
    });
    assert_eq!(child.result(), 1, "the child was told of its parent's thread");
    assert_eq!(pinfo::thread(child.pid), Err(TimeReadError::NotPermitted(child.pid)));
    assert!(pinfo::process(child.pid).unwrap().cycles > 0);
}

#[test]
fn ids_flags_and_sizes_are_refused() {
    if !has_call() {
        return;
    }
    let mut room = vec![0xaa_u8; 2 * 4096];
    let out = room.as_mut_ptr();
    assert_eq!(call(0, 0, out, SIZE), 0);
    assert_eq!(call(-1, 0, out, SIZE), libc::EINVAL);
    assert_eq!(call(0, 2, out, SIZE), libc::EINVAL);
    assert_eq!(call(0, pinfo::PROCESS | 1 << 31, out, SIZE), libc::EINVAL);
    assert_eq!(call(0, 0, out, SIZE - 1), libc::EINVAL);
    assert_eq!(call(0, 0, out, 0), libc::EINVAL);
    assert_eq!(call(0, 0, out, 4097), libc::E2BIG);
    assert_eq!(call(0, 0, out, usize::MAX), libc::E2BIG);
    for nobody in [4_194_304, i32::MAX] {
        assert_eq!(call(nobody, 0, out, SIZE), libc::ESRCH);
        assert_eq!(call(nobody, pinfo::PROCESS, out, SIZE), libc::ESRCH);
    }
    for nowhere in [std::ptr::null_mut(), usize::MAX as *mut u8, (usize::MAX / 2) as *mut u8] {
        assert_eq!(call(0, 0, nowhere, SIZE), libc::EFAULT);
    }
}

/// A caller of a later version: what the kernel does not know comes back as zeroes.
#[test]
fn a_longer_struct_is_filled_up() {
    if !has_call() {
        return;
    }
    for size in [SIZE, SIZE + 1, SIZE + 8, 4096] {
        let mut room = vec![0xaa_u8; 4096 + 1];
        assert_eq!(call(0, 0, room.as_mut_ptr(), size), 0);
        assert_eq!(u32::from_ne_bytes(room[..4].try_into().unwrap()) as usize, SIZE);
        assert!(room[SIZE..size].iter().all(|&byte| byte == 0), "size {size}");
        assert!(room[size..].iter().all(|&byte| byte == 0xaa), "size {size}");
    }
}

/// Readers on one CPU while what they read comes and goes on the other.
#[test]
fn a_process_that_switches_all_the_time_is_told_consistently() {
    if !has_call() {
        return;
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::thread::yield_now();
                    std::thread::sleep(Duration::from_micros(20));
                }
            });
        }
        let _stop = common::StopOnDrop(&stop);
        let cpus = common::cpus().len() as u64;
        let stamp = || threadclock::time_stamp_ordered().unwrap();
        let (start, from) = (stamp(), pinfo::process(0).unwrap());
        let mut last = from;
        for _ in 0..20_000 {
            let now = pinfo::process(0).unwrap();
            assert!(now.swapins >= last.swapins && u64::from(now.on_cpu) <= 6);
            // A torn reading would be off by a whole stamp, not by a part of what has passed.
            let most = (stamp() - start) * cpus;
            assert!(now.cycles - from.cycles.min(now.cycles) <= most + most / 4);
            last = now;
        }
        wait_for("switch that is counted", || {
            (pinfo::process(0).unwrap().swapins > from.swapins).then_some(())
        });
    });
}

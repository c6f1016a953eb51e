//! The hidden commands answer whatever they are told: with figures, a refusal or an error, never by
//! a crash. Their messages are sound ones with seeded changes; the tests of `probe` try many
//! thousands more in one process.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;
use serde_json::{Value, json};
use testing::{repeats, wait_for};

use crate::common::{Home, PROGRAM};

/// Messages of each kind in the nightly tier; else the first ones of these.
const MESSAGES: usize = 300;
/// Address space of a process, in KiB: what it maps by mistake must not be the machine's memory.
const MEMORY: &str = "ulimit -v 1500000; exec \"$0\" \"$@\"";
/// Numbers that lie at an end of something, or beyond it.
const ODD: [u64; 9] = [0, 1, 3, 255, 4096, 1 << 31, 1 << 32, u64::MAX - 1, u64::MAX];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn odd(&mut self) -> u64 {
        ODD[self.below(ODD.len())]
    }
}

fn start(home: &Home, args: &[&str]) -> Child {
    let mut command: Command = home.command("sh");
    command.args(["-c", MEMORY, PROGRAM]).args(args).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("sh(1) starts")
}

/// Waits for the end, but not of what was told to go on for hours: that is ended. No panic, no
/// signal but that and the one of a deadline.
fn assert_no_crash(mut child: Child, what: &dyn Fn() -> String) {
    let patience = Instant::now() + Duration::from_millis(repeats(400, 2000));
    let pid = child.id();
    drop(child.stdin.take());
    let status = wait_for("its end", || {
        if Instant::now() > patience {
            let _ = child.kill();
        }
        child.try_wait().expect("its status")
    });
    let mut said = String::new();
    let _ = child.stderr.take().expect("a pipe").read_to_string(&mut said);
    let ends = [Signal::KILL, Signal::ALARM].map(Signal::as_raw);
    let is_own = status.signal().is_none_or(|signal| ends.contains(&signal));
    assert!(is_own && status.code() != Some(101), "{pid}: {status}: {said}: {}", what());
}

/// Changes one number of a message.
fn change(message: &mut Value, random: &mut Random) {
    fn numbers<'a>(value: &'a mut Value, all: &mut Vec<&'a mut Value>) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| numbers(value, all)),
            Value::Array(items) => items.iter_mut().for_each(|value| numbers(value, all)),
            Value::Number(_) => all.push(value),
            _ => {}
        }
    }
    let mut all = Vec::new();
    numbers(message, &mut all);
    let which = random.below(all.len());
    *all[which] = json!(random.odd());
}

#[test]
fn a_worker_bounds_what_it_is_told() {
    let (home, mut random) = (Home::new(), Random(1));
    let parent = std::process::id().to_string();
    let cpu = crate::common::allowed_cpus()[0];
    let of_ring = json!({"laps": 8, "sample_ns": 100_000, "samples_per_round": 1, "enough_ns": 1,
        "slice_ns": 50_000, "triples": 1, "places": 1});
    let calibrated = json!({"laps": null, "sample_ns": 100_000, "samples_per_round": 1, "enough_ns": 1,
        "slice_ns": 50_000});
    let batchings = [of_ring, calibrated].map(|ring| json!({"ring": ring, "trial": {"trials": 4}}));
    let ring = json!({"members": 2, "kind": "process", "link": "pipe",
        "work": {"bytes": 4096, "stride_bytes": 64, "op": "rmw", "walk": "chase", "huge_pages": true},
        "placement": {"mode": "pinned", "cpus": [cpu, cpu]}, "policy": "other", "priority": 3, "state": null});
    let trials = [
        json!({"of": "primes", "primes": 10}),
        json!({"of": "malloc", "bytes": 64, "preload": null}),
        json!({"of": "gaps", "duration_ns": 100_000}),
        json!({"of": "sampling", "phase": "anywhere", "duration_ns": 100_000}),
        json!({"of": "wakeup", "load": "idle", "wakes": 2, "period_ns": 10_000, "timer_slack_ns": 1, "seed": 1}),
        json!({"of": "call", "call": "clock_gettime"}),
    ];
    let all = trials
        .iter()
        .map(|trial| json!({"trial": {"trial": trial, "cpu": cpu, "policy": "other"}}));
    let cases: Vec<Value> = std::iter::repeat_n(json!({"ring": ring}), 6).chain(all).collect();
    for number in 0..repeats(48, MESSAGES) {
        let case = cases[number % cases.len()].clone();
        let mut message = json!({"case_number": 0, "case": case, "round": 0, "batching": batchings[number % 2],
            "unshared_ratio": 1.0});
        (0..1 + random.below(2)).for_each(|_| change(&mut message, &mut random));
        let mut child = start(&home, &["worker", "--parent", &parent]);
        let mut input = child.stdin.take().expect("a pipe");
        let _ = input.write_all(message.to_string().as_bytes());
        drop(input);
        assert_no_crash(child, &|| message.to_string());
    }
    home.wait_until_alone();
}

fn keep_over_exec(descriptor: BorrowedFd<'_>) -> i32 {
    fcntl_setfd(descriptor, FdFlags::empty()).expect("an open descriptor");
    descriptor.as_raw_fd()
}

#[test]
fn a_launcher_bounds_what_it_is_told() {
    let (home, mut random) = (Home::new(), Random(2));
    let sound: Vec<u64> = vec![2, 1, 2, 1, 1];
    for number in 0..repeats(100, MESSAGES) {
        let mut head = sound.clone();
        let mut texts = b"/bin/true\0true\0x\0/bin/true\0true\0".to_vec();
        match number % 4 {
            0 => head[random.below(5)] = random.odd(),
            1 => texts.truncate(random.below(texts.len())),
            2 => head.truncate(random.below(5)),
            _ => (0..4).for_each(|_| {
                let at = random.below(texts.len());
                texts[at] = [0, 1, b'/', 255][random.below(4)];
            }),
        }
        let bytes: Vec<u8> = head.iter().flat_map(|n| n.to_ne_bytes()).chain(texts).collect();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create(c"test", flags).expect("a file in memory"));
        file.write_all(&bytes).expect("memory");
        let is_sealed = number % 3 > 0;
        if is_sealed {
            let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::WRITE;
            fcntl_add_seals(&file, seals).expect("sealed");
        }
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        let [socket, words] = [theirs.as_fd(), file.as_fd()].map(keep_over_exec);
        let mut request = json!({"parent": std::process::id(), "socket": socket, "words": words,
            "series": {"warmup": 0, "runs": 1, "seed": 1, "tree": false, "announce": false, "discard": true},
            "blocked": 0, "inherited": 0});
        if number % 2 == 1 {
            change(&mut request, &mut random);
        }
        let child = start(&home, &["launcher", &request.to_string()]);
        drop(theirs);
        if !is_sealed {
            // What is mapped and then taken away is a SIGBUS.
            let _ = file.set_len(random.below(bytes.len() + 1) as u64);
        }
        assert_no_crash(child, &|| format!("{request} {bytes:?}"));
        drop(ours);
    }
    home.wait_until_alone();
}
